#pragma once
// Softmax in three kernels: row maximum, row sum of exponentials, normalise. The exponential is computed
// twice instead of being stored. Moves, in elements: reads 3MN + 3M, writes MN + 2M. One block a row; its
// threads stride over the columns.
#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

constexpr int block_threads = 256;
constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

/// row_max[row] = max over the row. The trip count is the same for all threads, so none misses a shuffle or a
/// barrier.
template <int WarpSize, class T>
__global__ void max_rows(const T* x, std::int64_t ld, float* row_max, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float m = -INFINITY;
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      const std::int64_t col = start + threadIdx.x;
      m = fmaxf(m, col < cols ? static_cast<float>(x[row * ld + col]) : -INFINITY);
    }
    m = block_reduce<maximum, WarpSize, block_threads>(m);
    if (threadIdx.x == 0) row_max[row] = m;
  }
}

//! [kernel]
/// row_sum[row] = sum over the row of exp(x - max)
template <int WarpSize, class T>
__global__ void sum_rows(const T* x, std::int64_t ld, const float* row_max, float* row_sum, std::int64_t rows,
                         std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float m = block_load(row_max + row);
    float d = 0.0f;
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      // exercise a: add exp(x - m) of this thread's column to d, and nothing beyond the row
      const std::int64_t col = start + threadIdx.x;
      d += col < cols ? expf(static_cast<float>(x[row * ld + col]) - m) : 0.0f;
    }
    d = block_reduce<sum, WarpSize, block_threads>(d);
    if (threadIdx.x == 0) row_sum[row] = d;
  }
}

/// y = exp(x - max) / sum
template <class T>
__global__ void normalise(const T* x, const float* row_max, const float* row_sum, T* y, matrix_shape s) {
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const float m = block_load(row_max + row);
    const float d = block_load(row_sum + row);
    for (std::int64_t start = 0; start < s.cols; start += block_threads) {
      // exercise b: y of this thread's column, from x, m and d alone
      const std::int64_t col = start + threadIdx.x;
      if (col < s.cols)
        y[row * s.ld_out + col] = static_cast<T>(expf(static_cast<float>(x[row * s.ld_in + col]) - m) / d);
    }
  }
}
//! [kernel]

/// y = softmax of each row of x. workspace holds 2M floats: the maximum and the sum of each row.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  float* row_max = workspace;
  float* row_sum = row_max + s.rows;
  const auto blocks = static_cast<unsigned>(s.rows < max_blocks ? s.rows : max_blocks);
  const simt::geometry one_block_a_row(blocks, block_threads, 0, queue);
  simt::launch(max_rows<WarpSize, T>, one_block_a_row, x, s.ld_in, row_max, s.rows, s.cols);
  simt::launch(sum_rows<WarpSize, T>, one_block_a_row, x, s.ld_in, row_max, row_sum, s.rows, s.cols);
  simt::launch(normalise<T>, one_block_a_row, x, row_max, row_sum, y, s);
}

}  // namespace
}  // namespace softmax
