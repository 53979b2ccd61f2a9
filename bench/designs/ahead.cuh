#pragma once
/// @file
/// Stage 07's two launches, where the second begins before the first has ended: its blocks load their part of
/// the row, and then wait for the states (programmatic dependent launch).
#include "../../stages/07_split_row/cluster.cuh"
#include "simt/async.hpp"

namespace softmax {
namespace {

/// partial[row][part] = maximum and sum of that part of x[row].
template <int Threads, int Items, class T>
__global__ void __launch_bounds__(Threads) reduce_parts(const T* x, running* partial, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;
  simt::begin_next_launch();
  const T* in = x + blockIdx.x * s.ld_in;
  row_share<T, Items, 1> mine;
  mine.load(in, layout_of(in, s.cols), blockIdx.y * Threads + threadIdx.x, gridDim.y * Threads);
  running r = {mine.largest(), 0.0f};
  r.d = mine.exponentials(reference(r.m));
  r = block_merge<32>(warp_merge<32>(r), 0);
  if (threadIdx.x == 0) partial[blockIdx.x * gridDim.y + blockIdx.y] = r;
}

/// y[row] = softmax of x[row], with the states of its parts, at most one a thread.
template <int Threads, int Items, class T>
__global__ void __launch_bounds__(Threads)
    normalise_parts(const T* x, T* y, const running* partial, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;
  const T* in = x + blockIdx.x * s.ld_in;
  const row_layout l = layout_of(in, s.cols);
  const int place = blockIdx.y * Threads + threadIdx.x, stride = gridDim.y * Threads;
  row_share<T, Items, 1> mine;
  mine.load(in, l, place, stride);
  simt::wait_for_last_launch();
  running all = {-INFINITY, 0.0f};
  if (threadIdx.x < gridDim.y) all = partial[blockIdx.x * gridDim.y + threadIdx.x];
  all = block_merge<32>(warp_merge<32>(all), 0);
  mine.exponentials(all.m);
  mine.template store<rows_lie::alike>(y + blockIdx.x * s.ld_out, l, place, stride, 1.0f / all.d);
}

}  // namespace
}  // namespace softmax
