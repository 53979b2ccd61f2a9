#pragma once
// Designs for wide rows, and for few, to hold against stage 07. All of them need clusters.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "designs.hpp"
#include "harness/launch_plan.hpp"
#include "simt/simt.hpp"
#if defined(SIMT_BACKEND_CUDA)
#include "../../stages/07_split_row/kernel.cuh"
#include "grid.cuh"
#include "held.cuh"

namespace softmax {
namespace {

template <class T>
struct design {
  design_facts facts;
  std::function<void(const T*, T*, float*, const matrix_shape&, simt::stream)> launch;
};

constexpr std::int64_t any = INT64_MAX;

/// "C4 T512 I2"
inline std::string parameters(int parts, int threads, int items, const std::string& more = "") {
  return "C" + std::to_string(parts) + " T" + std::to_string(threads) + " I" + std::to_string(items) + more;
}

/// One cluster a row, of blocks of `threads` threads, which hold `items` vectors each. Measured where a row
/// fills a quarter of the cluster, since few rows may want more blocks than hold them, up to twice what it
/// holds, or four times for the largest, which have to do for all wider rows.
template <class T, class Kernel>
void add_cluster(std::vector<design<T>>& all, const char* name, Kernel kernel, int parts, int threads,
                 int items) {
  const std::int64_t held = std::int64_t{parts} * threads * items * per_vector<T>;
  all.push_back(
      {{name, parameters(parts, threads, items), held / 4 + 1, (parts == most_parts ? 4 : 2) * held, 1, any},
       [=](const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
         const auto blocks = static_cast<unsigned>(std::min(s.rows, max_blocks / parts) * parts);
         simt::launch_cluster(kernel, parts, {blocks, static_cast<unsigned>(threads), 0, queue}, x, y, s);
       }});
}

template <int Threads, int Items, template <int> class Exchange, class T>
void add_held(std::vector<design<T>>& all, const char* name, int parts) {
  add_cluster<T>(all, name, softmax_held<Threads, Items, Exchange, T>, parts, Threads, Items);
}

/// Stage 07's kernel, with another plan than its own: `parts` blocks with as many threads as hold the row,
/// and what they do not hold in shared memory.
template <int Items, bool Shared, class T>
void add_stage(std::vector<design<T>>& all, int parts) {
  const std::int64_t of_warps = std::int64_t{parts} * 32 * Items,
                     held = of_warps * (most_cluster_threads / 32);
  const std::int64_t most = held + parts * most_kept;
  all.push_back(
      {{Shared ? "stage 07, shared" : "stage 07", "C" + std::to_string(parts) + " I" + std::to_string(Items),
        (Shared ? held : of_warps) * per_vector<T> + 1,
        (!Shared               ? held
         : parts == most_parts ? 4 * most
                               : most) *
            per_vector<T>,
        1, any},
       [=](const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
         const std::int64_t vectors = s.cols / per_vector<T>;
         const std::int64_t warps =
             std::clamp<std::int64_t>(divided_up(vectors, of_warps), 1, most_cluster_threads / 32);
         const std::int64_t kept =
             Shared ? std::clamp<std::int64_t>(divided_up(vectors - held, parts), 0, most_kept) : 0;
         launch_cluster<32, Items, Shared>(
             {parts, static_cast<int>(32 * warps), Items, static_cast<int>(kept)}, x, y, s, queue);
       }});
}

/// Stage 07's ring, with other parameters than its own.
template <int Threads, int Items, int Slots, int Held, class T>
void add_ring(std::vector<design<T>>& all, int parts) {
  // Beyond twice what is kept, most of a row is read twice; below an eighth, a smaller cluster does. Few rows
  // have nothing to load ahead.
  const std::int64_t kept = std::int64_t{parts} * Threads * Items * (Slots + Held) * per_vector<T>;
  all.push_back(
      {{"stage 07, ring",
        parameters(parts, Threads, Items, " S" + std::to_string(Slots) + " H" + std::to_string(Held)),
        kept / 8 + 1, 2 * kept, 32, any},
       [=](const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
         launch_ring<32, Threads, Items, Slots, Held>(parts, x, y, workspace, s, queue);
       }});
}

/// A row over the whole GPU. Its states take more than other designs have room for where there are few rows.
template <int Threads, int Groups, int Items, int Exchangers, class T>
void add_grid(std::vector<design<T>>& all, int lag, int wait) {
  const std::string more = " G" + std::to_string(Groups) + " X" + std::to_string(Exchangers) + " L" +
                           std::to_string(lag) + " W" + std::to_string(wait);
  all.push_back({{"grid", "T" + std::to_string(Threads) + " I" + std::to_string(Items) + more,
                  32768 * per_vector<T>, 8 * 32768 * per_vector<T>, 64, any},
                 [=](const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
                   launch_grid<Threads, Groups, Items, Exchangers>(lag, wait, x, y, workspace, s, queue);
                 }});
}

/// Stage 07's two launches, with another number of parts and threads than its own.
template <int Items, class T>
void add_parts(std::vector<design<T>>& all, int parts, int threads) {
  if (parts > threads) return;  // the second launch merges one state a thread
  const std::int64_t held = std::int64_t{parts} * threads * Items * per_vector<T>;
  all.push_back({{"stage 07, two launches",
                  "P" + std::to_string(parts) + " T" + std::to_string(threads) + " I" + std::to_string(Items),
                  held / 8 + 1, held, 1, 16},
                 [=](const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
                   const dim3 grid(static_cast<unsigned>(s.rows), static_cast<unsigned>(parts));
                   const auto early = simt::geometry(grid, static_cast<unsigned>(threads), 0, queue).early();
                   auto* partial = reinterpret_cast<running*>(workspace);
                   simt::launch(reduce_parts<32, Items, T>, early, x, partial, s);
                   simt::launch(normalise_parts<32, Items, rows_lie::alike, T>, early, x, y, partial, s);
                 }});
}

template <class T>
const std::vector<design<T>>& designs() {
  static const std::vector<design<T>> every = [] {
    constexpr int most = 32 / per_vector<T>;  // vectors in 32 registers
    std::vector<design<T>> all;
    for (const int parts : {1, 2, 4, 8, 16}) {
      add_held<512, most, stores_and_barrier>(all, "held, barrier", parts);
      add_held<256, most, messages_in_turns>(all, "held, messages", parts);
      add_held<512, most, messages_in_turns>(all, "held, messages", parts);
      add_ring<512, 2, 13, 6>(all, parts);
      add_ring<512, 2, 12, 3>(all, parts);
      add_ring<256, 4, 12, 6>(all, parts);
    }
    add_grid<256, 1, 4, 1>(all, 3, 2);
    add_grid<512, 1, 4, 2>(all, 3, 1);
    add_grid<512, 1, 4, 2>(all, 4, 1);
    add_grid<256, 3, 4, 2>(all, 1, 1);
    add_grid<256, 3, 4, 4>(all, 2, 1);
    add_grid<128, 4, 8, 2>(all, 2, 2);
    for (const int parts : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}) {
      add_stage<8, false>(all, parts);
      add_stage<4, false>(all, parts);
      add_stage<8, true>(all, parts);
    }
    for (const int parts : {16, 32, 64, 128, 256})
      for (const int threads : {64, 128, 256}) {
        add_parts<most / 2>(all, parts, threads);
        add_parts<most / 4>(all, parts, threads);
      }
    return all;
  }();
  return every;
}

template <int WarpSize, class T>
void softmax(const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue,
             const launch_plan& plan) {
  if constexpr (std::is_same_v<T, simt::half>)
    throw simt::error("the designs are measured in f32 and bf16.");
  else
    designs<T>().at(static_cast<std::size_t>(plan.variant) - 1).launch(x, y, workspace, s, queue);
}

inline launch_plan plan_by_rule(std::int64_t) { return {}; }

template <class T>
std::vector<design_facts> facts() {
  std::vector<design_facts> all;
  for (const design<T>& d : designs<T>()) all.push_back(d.facts);
  return all;
}

}  // namespace

const std::vector<design_facts>& designs_of(dtype type) {
  static const std::vector<design_facts> f32 = facts<float>(), bf16 = facts<simt::bfloat16>();
  return type == dtype::f32 ? f32 : bf16;
}

}  // namespace softmax
#else
#include "not_here.cuh"
#endif
