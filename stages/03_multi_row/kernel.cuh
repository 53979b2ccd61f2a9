#pragma once
// Softmax in one kernel, several narrow rows a block: each row gets an equal share of the threads, so that
// none is idle when a row has fewer columns than the block has threads. Moves, in elements: reads MN, writes
// MN. A row is padded to a power of two of columns, and masked lanes hold -inf.
#include <string>

#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

constexpr int block_threads = 256;
constexpr int most_items = 64;  // registers a thread spends on the row
constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

//! [kernel]
/// Rows a block: 4096 / cols, at least 1, at most 8, rounded down to a power of two so that shares tile the
/// warps.
constexpr int rows_per_block(std::int64_t cols) {
  // exercise a: the rule above; starts as `return 1;`
  return cols <= 512 ? 8 : cols <= 1024 ? 4 : cols <= 2048 ? 2 : 1;
}

/// y[row] = softmax of x[row], for rows of at most Items * (block_threads / Rows) columns. Threads of a share
/// beyond the last row stay masked, and take part in every shuffle and barrier.
template <int WarpSize, int Rows, int Items, class T>
__global__ void softmax_rows(const T* x, T* y, matrix_shape s) {
  constexpr int row_threads = block_threads / Rows;
  // exercise b: which row of the block this thread works on, and as which of the row's threads; starts as
  // `const int share = 0, lane = threadIdx.x;`
  const int share = threadIdx.x / row_threads, lane = threadIdx.x % row_threads;
  // end
  for (std::int64_t first = std::int64_t{blockIdx.x} * Rows; first < s.rows;
       first += std::int64_t{gridDim.x} * Rows) {
    const std::int64_t row = first + share;
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    // exercise c: the columns that this row has; starts as `const int cols = s.cols;`
    const int cols = row < s.rows ? static_cast<int>(s.cols) : 0;
    // end
    float held[Items];
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int col = i * row_threads + lane;
      held[i] = col < cols ? static_cast<float>(in[col]) : -INFINITY;
      m = fmaxf(m, held[i]);
    }
    m = group_reduce<maximum, WarpSize, row_threads>(m);
    float d = 0.0f;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      held[i] = expf(held[i] - m);  // 0 in masked lanes
      d += held[i];
    }
    const float scale = 1.0f / group_reduce<sum, WarpSize, row_threads>(d);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int col = i * row_threads + lane;
      if (col < cols) out[col] = static_cast<T>(held[i] * scale);
    }
  }
}
//! [kernel]

/// Launches the kernel whose share is the next power of two at or above the row.
template <int WarpSize, int Rows, int Items, class T>
void launch_wide_enough(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (Items <= most_items) {
    if (s.cols > Items * (block_threads / Rows))
      return launch_wide_enough<WarpSize, Rows, 2 * Items>(x, y, s, queue);
    const std::int64_t needed = (s.rows + Rows - 1) / Rows;
    const auto blocks = static_cast<unsigned>(needed < max_blocks ? needed : max_blocks);
    simt::launch(softmax_rows<WarpSize, Rows, Items, T>, {blocks, block_threads, 0, queue}, x, y, s);
  } else {
    throw simt::error("no block holds a row of " + std::to_string(s.cols) + " columns: use stage 05.");
  }
}

/// y = softmax of each row of x, at most most_items * block_threads columns wide. workspace is not used.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  switch (rows_per_block(s.cols)) {
    case 8:
      return launch_wide_enough<WarpSize, 8, 1>(x, y, s, queue);
    case 4:
      return launch_wide_enough<WarpSize, 4, 16>(x, y, s, queue);
    case 2:
      return launch_wide_enough<WarpSize, 2, 16>(x, y, s, queue);
    default:
      return launch_wide_enough<WarpSize, 1, 16>(x, y, s, queue);
  }
}

}  // namespace
}  // namespace softmax
