#pragma once
// Each warp's exponentials are relative to its own maximum, and their sums are added as if they were not.
#include "kernel.cuh"

namespace softmax {
namespace {

constexpr int mistaken_threads = 256;

/// Rows that begin on a multiple of 16 bytes, of at most 4096 columns.
template <int WarpSize, class T>
__global__ void own_maximum_row(const T* x, T* y, matrix_shape s) {
  const std::int64_t row = blockIdx.x;
  const row_layout layout = {0, static_cast<int>(s.cols / per_vector<T>), 0};
  row_share<T, 4096 / mistaken_threads / per_vector<T>, 0> mine;
  mine.load(x + row * s.ld_in, layout, threadIdx.x, mistaken_threads);
  const float m = group_reduce<maximum, WarpSize, WarpSize>(mine.largest());
  const float d = block_reduce<sum, WarpSize, mistaken_threads>(mine.exponentials(reference(m)));
  mine.template store<rows_lie::aligned>(y + row * s.ld_out, layout, threadIdx.x, mistaken_threads, 1.0f / d);
}

template <int WarpSize, class T>
void run_pitfall(const char*, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  simt::launch(own_maximum_row<WarpSize, T>, {static_cast<unsigned>(s.rows), mistaken_threads, 0, queue}, x,
               y, s);
}

}  // namespace
}  // namespace softmax
