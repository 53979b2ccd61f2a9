#pragma once
// Softmax in one kernel: a block reads a row once, keeps it in registers through maximum, exponential and
// sum, and writes the result once. Moves, in elements: reads MN, writes MN. One block a row; a row is padded
// to a power of two of columns, and masked lanes hold -inf.
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
/// y[row] = softmax of x[row], for rows of at most Items * block_threads columns. Thread t holds the columns
/// t, t + block_threads, ... in held[]; the trip count is known to the compiler, so held[] lives in
/// registers.
template <int WarpSize, int Items, class T>
__global__ void softmax_row(const T* x, T* y, matrix_shape s) {
  const int cols = static_cast<int>(s.cols);
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    float held[Items];
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      // exercise a: load this thread's i-th column into held[i], -inf beyond the row; let m see it
      const int col = i * block_threads + threadIdx.x;
      held[i] = col < cols ? static_cast<float>(in[col]) : -INFINITY;
      m = fmaxf(m, held[i]);
    }
    m = block_reduce<maximum, WarpSize, block_threads>(m);
    float d = 0.0f;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      // exercise b: held[i] becomes its exponential relative to m, and d its sum
      held[i] = expf(held[i] - m);  // 0 in masked lanes
      d += held[i];
    }
    const float scale = 1.0f / block_reduce<sum, WarpSize, block_threads>(d);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      // exercise c: write the result from registers, and nothing beyond the row
      const int col = i * block_threads + threadIdx.x;
      if (col < cols) out[col] = static_cast<T>(held[i] * scale);
    }
  }
}
//! [kernel]

/// Launches the kernel whose block is the next power of two at or above the row.
template <int WarpSize, int Items, class T>
void launch_wide_enough(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (Items <= most_items) {
    if (s.cols > Items * block_threads) return launch_wide_enough<WarpSize, 2 * Items>(x, y, s, queue);
    const auto blocks = static_cast<unsigned>(s.rows < max_blocks ? s.rows : max_blocks);
    simt::launch(softmax_row<WarpSize, Items, T>, {blocks, block_threads, 0, queue}, x, y, s);
  } else {
    throw simt::error("no block holds a row of " + std::to_string(s.cols) + " columns: use stage 05.");
  }
}

/// y = softmax of each row of x, at most most_items * block_threads columns wide. workspace is not used.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  launch_wide_enough<WarpSize, 1>(x, y, s, queue);
}

}  // namespace
}  // namespace softmax
