#pragma once
// Each row over all blocks of the GPU, which stay. Every block has the same part of each row. One warp loads
// it, for some rows ahead, into a ring in shared memory; groups of warps find its maximum and sum, and, `lag`
// of their rows later, when those of all blocks are known, store its result. Warps of their own post the
// state of the part in global memory and collect those of the other blocks, `wait` of their rows later.
#include "kernels/packed_share.cuh"
#include "simt/async.hpp"

namespace softmax {
namespace {

constexpr int most_grid_slots = 16;  // rows of which a block keeps its part, at most
constexpr int posted_rows = 64;  // rows of which the states are kept
static_assert(posted_rows >= 2 * most_grid_slots, "a word would be used again too early");

/// States that blocks post for each other in global memory, which is 0 at first. A state is one word, so it
/// is there as a whole or not at all. The sign of the sum, which has none, changes from turn to turn.
///
/// A word is used again without asking. A block that posts row q has stored row q - most_grid_slots or a
/// later one, so every block had posted that, and had itself collected row q - 2 * most_grid_slots.
struct posted_states {
  std::uint64_t* memory;
  int blocks;

  /// One lane.
  __device__ void post(std::int64_t q, running r) const {
    std::uint64_t word;
    __builtin_memcpy(&word, &r, 8);
    word = word << 1 >> 1 | turn(q) << 63;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(row(q) + blockIdx.x), "l"(word) : "memory");
  }
  /// Waits for the states of row q, and merges them. Takes part: every lane of a warp.
  template <int WarpSize>
  __device__ running collect(std::int64_t q, int lane) const {
    constexpr int most = 8;  // states a lane
    std::uint64_t word[most];  // all loads are under way before the first is looked at
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (lane + i * WarpSize < blocks) word[i] = load(row(q) + lane + i * WarpSize);
    running r = {-INFINITY, 0.0f};
#pragma unroll
    for (int i = 0; i < most; ++i)
      if (lane + i * WarpSize < blocks) {
        while (word[i] >> 63 != turn(q)) word[i] = load(row(q) + lane + i * WarpSize);
        word[i] = word[i] << 1 >> 1;
        running other;
        __builtin_memcpy(&other, &word[i], 8);
        r = merge(r, other);
      }
    return warp_merge<WarpSize>(r);
  }

 private:
  __device__ std::uint64_t* row(std::int64_t q) const { return memory + q % posted_rows * blocks; }
  static __device__ std::uint64_t turn(std::int64_t q) {
    return static_cast<std::uint64_t>(q / posted_rows % 2 ^ 1);
  }
  static __device__ std::uint64_t load(const std::uint64_t* p) {
    std::uint64_t word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
    return word;
  }
};

/// A block's part of a row.
template <class T>
struct grid_part {
  row_layout l;
  int vectors;
  std::int64_t first;  ///< element of the row
  bool has_edges;  ///< the last block has the elements that are in no vector

  __device__ grid_part(const T* in, std::int64_t cols, int part_vectors) : l(layout_of(in, cols)) {
    const int begin = static_cast<int>(blockIdx.x) * part_vectors, left = l.vectors - begin;
    vectors = left < 0 ? 0 : left < part_vectors ? left : part_vectors;
    first = l.head + std::int64_t{begin} * per_vector<T>;
    has_edges = blockIdx.x == gridDim.x - 1;
  }
};

template <int Threads, int Groups, int Items, int Exchangers, class T>
__global__ void __launch_bounds__(Threads* Groups + (1 + Exchangers) * 32, 1)
    softmax_grid(const T* x, T* y, std::uint64_t* memory, matrix_shape s, int part_vectors, int slots,
                 int lag, int wait) {
  if constexpr (!simt::clusters_here) return;  // never launched there
  constexpr int warp_size = 32, warps = Threads / warp_size;  // of a group
  __shared__ simt::transaction_barrier full[most_grid_slots], empty[most_grid_slots],
      reduced[most_grid_slots], merged[most_grid_slots];
  __shared__ running state[most_grid_slots][warps], total[most_grid_slots];
  const int group = threadIdx.x / Threads, place = threadIdx.x % Threads, lane = place % warp_size;
  auto* const ring = simt::dynamic_shared<simt::vector16>();
  const auto slot_of = [&](std::int64_t q) { return static_cast<int>(q % slots); };
  const auto turn_of = [&](std::int64_t q) { return static_cast<unsigned>(q / slots) % 2; };
  if (threadIdx.x == 0) {
    for (int k = 0; k < slots; ++k) {
      simt::barrier_init(full[k], 1);
      simt::barrier_init(empty[k], warps);
      simt::barrier_init(reduced[k], warps);
      simt::barrier_init(merged[k], 1);
    }
    simt::barrier_publish();
  }
  __syncthreads();

  const int extra = static_cast<int>(threadIdx.x) / warp_size - Groups * warps;
  if (extra == 0) {  // loads
    if (lane > 0) return;
    for (std::int64_t q = 0; q < s.rows; ++q) {
      const T* in = x + q * s.ld_in;
      const grid_part<T> part(in, s.cols, part_vectors);
      const int slot = slot_of(q);
      simt::barrier_wait(empty[slot], turn_of(q) ^ 1);
      simt::barrier_arrive_expect(full[slot], part.vectors * 16);
      if (part.vectors > 0)
        simt::copy_chunk(ring + slot * part_vectors, in + part.first, part.vectors * 16, full[slot]);
    }
    return;
  }
  if (extra > 0) {  // exchange
    const posted_states posted{memory, static_cast<int>(gridDim.x)};
    const std::int64_t behind = std::int64_t{wait} * Exchangers;
    for (std::int64_t q = extra - 1; q - behind < s.rows; q += Exchangers) {
      if (q < s.rows) {
        simt::barrier_wait(reduced[slot_of(q)], turn_of(q));
        const running r =
            warp_merge<warp_size>(lane < warps ? state[slot_of(q)][lane] : running{-INFINITY, 0.0f});
        if (lane == 0) posted.post(q, r);
      }
      if (q < behind) continue;
      const running all = posted.template collect<warp_size>(q - behind, lane);
      if (lane > 0) continue;
      total[slot_of(q - behind)] = all;
      simt::barrier_arrive(merged[slot_of(q - behind)]);
    }
    return;
  }

  const std::int64_t behind = std::int64_t{lag} * Groups;
  for (std::int64_t q = group; q - behind < s.rows; q += Groups) {
    if (q < s.rows) {
      const T* in = x + q * s.ld_in;
      const grid_part<T> part(in, s.cols, part_vectors);
      const int slot = slot_of(q);
      float edge = -INFINITY;
      if (part.has_edges && place < part.l.edges)
        edge = static_cast<float>(in[row_share<T, 1, 1>::edge_col(part.l, place)]);
      running r = {-INFINITY, 0.0f};
      simt::barrier_wait(full[slot], turn_of(q));
      packed_share<T, Items> mine;
      for (int v = place; v < part.vectors; v += Items * Threads) {
        mine.load(reinterpret_cast<const T*>(ring + slot * part_vectors), part.vectors, v, Threads);
        r = mine.add_to(r);
      }
      const float m = fmaxf(r.m, edge);  // leaves a NaN out, which the sum does not
      r = warp_merge<warp_size>(extend(r, m, exponential(edge - reference(m))));
      if (lane == 0) {
        state[slot][place / warp_size] = r;
        simt::barrier_arrive(reduced[slot]);
      }
    }
    if (q < behind) continue;
    const std::int64_t row = q - behind;
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    const grid_part<T> part(in, s.cols, part_vectors);
    const int slot = slot_of(row);
    simt::barrier_wait(merged[slot], turn_of(row));
    const running all = total[slot];
    const float scale = 1.0f / all.d;
    if (part.has_edges && place < part.l.edges) {
      const std::int64_t col = row_share<T, 1, 1>::edge_col(part.l, place);
      out[col] = static_cast<T>(exponential(static_cast<float>(in[col]) - all.m) * scale);
    }
    packed_share<T, Items> mine;
    for (int v = place; v < part.vectors; v += Items * Threads) {
      mine.load(reinterpret_cast<const T*>(ring + slot * part_vectors), part.vectors, v, Threads);
      mine.template store<rows_lie::alike>(out + part.first, part.vectors, v, Threads, all.m, scale);
    }
    simt::sync_warp();
    if (lane == 0) simt::barrier_arrive(empty[slot]);
  }
}

/// Launches a block on each multiprocessor, all at once (a cooperative launch), behind a memset of the
/// states.
template <int Threads, int Groups, int Items, int Exchangers, class T>
void launch_grid(int lag, int wait, const T* x, T* y, float* workspace, const matrix_shape& s,
                 simt::stream queue) {
  constexpr std::int64_t room = 218 * 1024 / 16;  // vectors in shared memory
  const auto kernel = softmax_grid<Threads, Groups, Items, Exchangers, T>;
  int device = 0, blocks = 0;
  SIMT_CHECK(cudaGetDevice(&device));
  SIMT_CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, device));
  if (blocks > 256) throw simt::error("a lane collects at most 8 states.");
  auto part = static_cast<int>(divided_up(s.cols / per_vector<T>, blocks));
  auto slots = static_cast<int>(std::min<std::int64_t>(most_grid_slots, room / std::max(part, 1)));
  lag = std::min(lag, (slots - 1) / Groups);
  wait = std::min(wait, lag * Groups / Exchangers);
  if (lag < 1) throw simt::error("shared memory holds too few of these rows.");
  auto* memory = reinterpret_cast<std::uint64_t*>(workspace);
  SIMT_CHECK(simt::zero(memory, static_cast<std::size_t>(blocks) * posted_rows * 8, queue));
  const auto* function = reinterpret_cast<const void*>(kernel);
  const auto bytes = static_cast<std::size_t>(slots) * static_cast<std::size_t>(part) * 16;
  simt::allow_shared(function, bytes);
  matrix_shape shape = s;
  void* arguments[] = {&x, &y, &memory, &shape, &part, &slots, &lag, &wait};
  SIMT_CHECK(cudaLaunchCooperativeKernel(function, static_cast<unsigned>(blocks),
                                         Threads * Groups + (1 + Exchangers) * 32, arguments, bytes, queue));
}

}  // namespace
}  // namespace softmax
