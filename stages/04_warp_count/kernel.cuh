#pragma once
// Softmax in one kernel, with as many warps a block as the width of a row asks for. Moves, in elements: reads
// MN, writes MN. Threads and rows of a block are chosen at run time; the share of a row is known to the
// compiler. A row is padded to a power of two of columns, and masked lanes hold -inf.
#include <string>

#include "harness/launch_plan.hpp"
#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

constexpr int most_items = 64;  // registers a thread spends on the row
constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

/// Rows a block: 4096 / cols, at least 1, at most 8, rounded down to a power of two so that shares tile the
/// warps.
constexpr int rows_per_block(std::int64_t cols) {
  return cols <= 512 ? 8 : cols <= 1024 ? 4 : cols <= 2048 ? 2 : 1;
}

//! [kernel]
/// Warps a block: 4 up to 2048 columns, 8 up to 8192, 16 beyond.
constexpr int warps_per_block(std::int64_t cols) {
  // exercise a: the rule above; starts as `return 4;`
  return cols <= 2048 ? 4 : cols <= 8192 ? 8 : 16;
}

/// Threads a block may have when each holds that many columns, so that the registers of a multiprocessor
/// suffice.
constexpr int threads_with(int items) { return items > 32 ? most_threads / 2 : most_threads; }

/// y[row] = softmax of x[row], for rows of at most Items * RowThreads columns. Threads of a share beyond the
/// last row stay masked, and take part in every shuffle and barrier.
template <int WarpSize, int RowThreads, int Items, class T>
__global__ void __launch_bounds__(threads_with(Items)) softmax_rows(const T* x, T* y, matrix_shape s) {
  // exercise b: rows of this block, and this thread's place among them; starts as
  // `const int rows = 1, share = 0, lane = threadIdx.x;`
  const int rows = blockDim.x / RowThreads;
  const int share = threadIdx.x / RowThreads, lane = threadIdx.x % RowThreads;
  // end
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows; first < s.rows;
       first += std::int64_t{gridDim.x} * rows) {
    const std::int64_t row = first + share;
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    const int cols = row < s.rows ? static_cast<int>(s.cols) : 0;
    float held[Items];
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int col = i * RowThreads + lane;
      held[i] = col < cols ? static_cast<float>(in[col]) : -INFINITY;
      m = fmaxf(m, held[i]);
    }
    m = group_reduce<maximum, WarpSize, RowThreads>(m);
    float d = 0.0f;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      held[i] = expf(held[i] - m);  // 0 in masked lanes
      d += held[i];
    }
    const float scale = 1.0f / group_reduce<sum, WarpSize, RowThreads>(d);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int col = i * RowThreads + lane;
      if (col < cols) out[col] = static_cast<T>(held[i] * scale);
    }
  }
}
//! [kernel]

/// Launches the kernel whose share is the next power of two at or above the row.
template <int WarpSize, int RowThreads, int Items, class T>
void launch_wide_enough(int rows, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (Items <= most_items) {
    if (s.cols > Items * RowThreads)
      return launch_wide_enough<WarpSize, RowThreads, 2 * Items>(rows, x, y, s, queue);
    const std::int64_t needed = (s.rows + rows - 1) / rows;
    const auto blocks = static_cast<unsigned>(needed < max_blocks ? needed : max_blocks);
    simt::launch(softmax_rows<WarpSize, RowThreads, Items, T>,
                 {blocks, static_cast<unsigned>(rows * RowThreads), 0, queue}, x, y, s);
  } else {
    throw simt::error("no block holds a row of " + std::to_string(s.cols) + " columns: use stage 05.");
  }
}

/// Launches the kernel whose rows get row_threads threads each.
template <int WarpSize, int RowThreads, class T>
void launch_shares(int row_threads, int rows, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (RowThreads <= most_threads) {
    if (row_threads > RowThreads)
      return launch_shares<WarpSize, 2 * RowThreads>(row_threads, rows, x, y, s, queue);
    launch_wide_enough<WarpSize, RowThreads, 1>(rows, x, y, s, queue);
  } else {
    throw simt::error("a row cannot have " + std::to_string(row_threads) +
                      " threads: a block has at most 1024.");
  }
}

constexpr launch_plan plan_by_rule(std::int64_t cols) {
  return {warps_per_block(cols), rows_per_block(cols)};
}

/// y = softmax of each row of x. `plan` overrides the rules where it is not 0. workspace is not used.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue, launch_plan plan = {}) {
  if (s.rows == 0 || s.cols == 0) return;
  const launch_plan rule = plan_by_rule(s.cols);
  const int rows = plan.rows > 0 ? plan.rows : rule.rows;
  const int warps = plan.warps > 0 ? plan.warps : rule.warps;
  // exercise c: launch with as many threads a row as warps and rows of a block leave
  launch_shares<WarpSize, 8>(warps * WarpSize / rows, rows, x, y, s, queue);
}

}  // namespace
}  // namespace softmax
