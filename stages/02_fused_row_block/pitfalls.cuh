#pragma once
// Three ways to get the fused kernel wrong: the kernel reduced to one row a block and up to 1024 columns,
// with one line changed.
#include <cstring>

#include "kernel.cuh"

namespace softmax {
namespace {

enum class mistake { zero_padding, no_max, short_block };

template <int WarpSize, mistake Made, class T>
__global__ void mistaken_row(const T* x, T* y, matrix_shape s) {
  constexpr int items = Made == mistake::short_block ? 2 : 4;  // of 4, a block of 1024 columns
  const float masked = Made == mistake::zero_padding ? 0.0f : -INFINITY;
  const std::int64_t row = blockIdx.x;
  float held[items];
  float m = -INFINITY;
  for (int i = 0; i < items; ++i) {
    const std::int64_t col = i * block_threads + threadIdx.x;
    held[i] = col < s.cols ? static_cast<float>(x[row * s.ld_in + col]) : masked;
    m = fmaxf(m, held[i]);
  }
  m = block_reduce<maximum, WarpSize, block_threads>(m);
  if (Made == mistake::no_max) m = 0.0f;
  float d = 0.0f;
  for (int i = 0; i < items; ++i) {
    held[i] = expf(held[i] - m);
    d += held[i];
  }
  d = block_reduce<sum, WarpSize, block_threads>(d);
  for (int i = 0; i < items; ++i) {
    const std::int64_t col = i * block_threads + threadIdx.x;
    if (col < s.cols) y[row * s.ld_out + col] = static_cast<T>(held[i] / d);
  }
}

template <int WarpSize, class T>
void run_pitfall(const char* name, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const simt::geometry one_block_a_row(static_cast<unsigned>(s.rows), block_threads, 0, queue);
  if (std::strcmp(name, "zero-padding") == 0)
    simt::launch(mistaken_row<WarpSize, mistake::zero_padding, T>, one_block_a_row, x, y, s);
  if (std::strcmp(name, "no-max") == 0)
    simt::launch(mistaken_row<WarpSize, mistake::no_max, T>, one_block_a_row, x, y, s);
  if (std::strcmp(name, "short-block") == 0)
    simt::launch(mistaken_row<WarpSize, mistake::short_block, T>, one_block_a_row, x, y, s);
}

}  // namespace
}  // namespace softmax
