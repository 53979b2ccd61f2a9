#pragma once
// Stage 06's kernel, by how far ahead of its own loads a block asks the cache for rows.
#include <cstdint>
#include <string>
#include <type_traits>

#include "../designs/designs.hpp"
#include "harness/launch_plan.hpp"
#include "simt/simt.hpp"
#if defined(SIMT_BACKEND_CUDA)
#include "../../stages/06_vectorized/kernel.cuh"

namespace softmax {
namespace {

constexpr int megabytes[] = {0, 1, 2, 4, 6, 8, 10, 12, 16};

/// As launch_rows() of stage 06, but for the distance: a block has one row.
template <int WarpSize, int Lanes, int Items, class T>
void launch_ahead(std::int64_t bytes, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const std::int64_t vectors = s.cols / per_vector<T>;
  const std::int64_t threads = Lanes ? Lanes : (vectors - 1) / (Items * WarpSize) * WarpSize + WarpSize;
  const auto blocks = static_cast<unsigned>(s.rows < max_blocks ? s.rows : max_blocks);
  simt::launch(softmax_rows<WarpSize, Lanes, Items, rows_lie::aligned, T>,
               simt::geometry(blocks, static_cast<unsigned>(threads), 0, queue).early(), x, y, s,
               bytes / (s.cols * static_cast<std::int64_t>(sizeof(T))));
}

/// The kernel that stage 06 takes for rows of 65 vectors or more, with plan.variant counted from 1 in
/// `megabytes`.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue, const launch_plan& plan) {
  if constexpr (std::is_same_v<T, simt::half>) {
    throw simt::error("the distances are measured in f32 and bf16.");
  } else {
    const std::int64_t bytes = std::int64_t{megabytes[plan.variant - 1]} << 20;
    const std::int64_t vectors = s.cols / per_vector<T>;
    if (vectors <= 128) return launch_ahead<WarpSize, WarpSize, 128 / WarpSize>(bytes, x, y, s, queue);
    if (sizeof(T) == 4 && vectors <= 256) return launch_ahead<WarpSize, 0, 2>(bytes, x, y, s, queue);
    launch_ahead<WarpSize, 0, held_values / per_vector<T>>(bytes, x, y, s, queue);
  }
}

inline launch_plan plan_by_rule(std::int64_t) { return {.variant = 1}; }

}  // namespace

const std::vector<design_facts>& designs_of(dtype) {
  static const std::vector<design_facts> every = [] {
    std::vector<design_facts> all;
    for (const int n : megabytes)
      all.push_back({"ahead", std::to_string(n) + " MB", 1024, 16384, 1, INT64_MAX});
    return all;
  }();
  return every;
}

}  // namespace softmax
#else
#include "../designs/not_here.cuh"
#endif
