#pragma once
// Softmax as an eager framework runs it: five kernels, each of which reads its input from memory and writes
// its result back. Moves, in elements: reads 5MN + 2M, writes 3MN + 2M. One block a row; its threads stride
// over the columns.
#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

constexpr int block_threads = 256;
constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

//! [kernel]
/// out[row] = Op over the row. The trip count is the same for all threads, so none misses a shuffle or a
/// barrier.
template <class Op, int WarpSize, class T>
__global__ void reduce_rows(const T* in, std::int64_t ld, float* out, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    float value = Op::identity();
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      // exercise a: combine this thread's column into value; beyond the row it counts as the identity
      const std::int64_t col = start + threadIdx.x;
      value = Op::combine(value, col < cols ? static_cast<float>(in[row * ld + col]) : Op::identity());
    }
    value = block_reduce<Op, WarpSize, block_threads>(value);
    if (threadIdx.x == 0) out[row] = value;
  }
}

/// z = x - max
template <class T>
__global__ void subtract_max(const T* x, std::int64_t ld, const float* row_max, float* z, std::int64_t rows,
                             std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float m = block_load(row_max + row);
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      // exercise b: z of this thread's column is x - m; z has no padding between its rows
      const std::int64_t col = start + threadIdx.x;
      if (col < cols) z[row * cols + col] = static_cast<float>(x[row * ld + col]) - m;
    }
  }
}
//! [kernel]

/// e = exp(z)
__global__ void exponentiate(const float* z, float* e, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      const std::int64_t col = start + threadIdx.x;
      if (col < cols) e[row * cols + col] = expf(z[row * cols + col]);
    }
}

/// y = e / sum
template <class T>
__global__ void divide(const float* e, const float* row_sum, T* y, std::int64_t ld, std::int64_t rows,
                       std::int64_t cols) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float d = block_load(row_sum + row);
    for (std::int64_t start = 0; start < cols; start += block_threads) {
      const std::int64_t col = start + threadIdx.x;
      if (col < cols) y[row * ld + col] = static_cast<T>(e[row * cols + col] / d);
    }
  }
}

/// y = softmax of each row of x. workspace holds 2MN + 2M floats: what a framework would allocate for z, e
/// and two columns of row results.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  float* z = workspace;
  float* e = z + s.rows * s.cols;
  float* row_max = e + s.rows * s.cols;
  float* row_sum = row_max + s.rows;
  const auto blocks = static_cast<unsigned>(s.rows < max_blocks ? s.rows : max_blocks);
  const simt::geometry one_block_a_row(blocks, block_threads, 0, queue);
  simt::launch(reduce_rows<maximum, WarpSize, T>, one_block_a_row, x, s.ld_in, row_max, s.rows, s.cols);
  simt::launch(subtract_max<T>, one_block_a_row, x, s.ld_in, row_max, z, s.rows, s.cols);
  simt::launch(exponentiate, one_block_a_row, z, e, s.rows, s.cols);
  simt::launch(reduce_rows<sum, WarpSize, float>, one_block_a_row, e, s.cols, row_sum, s.rows, s.cols);
  simt::launch(divide<T>, one_block_a_row, e, row_sum, y, s.ld_out, s.rows, s.cols);
}

}  // namespace
}  // namespace softmax
