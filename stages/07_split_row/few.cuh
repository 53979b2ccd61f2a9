#pragma once
// Few rows that a block holds with one vector a thread: nothing is split. There is little to load and nothing
// behind which to hide, so each step is as short as it can be, and the launch begins early. Moves, in
// elements: reads MN, writes MN.
#include <algorithm>

#include "cluster.cuh"
#include "kernels/row_share.cuh"
#include "simt/async.hpp"
#include "split_plan.hpp"

namespace softmax {
namespace {

/// y[row] = softmax of x[row], by block number `row`.
template <int WarpSize, rows_lie Lie, class T>
__global__ void __launch_bounds__(most_few_threads) softmax_few(const T* x, T* y, matrix_shape s) {
  simt::wait_for_last_launch();  // it may have written x
  simt::begin_next_launch();
  const T* in = x + blockIdx.x * s.ld_in;
  const row_layout l = layout_of(in, s.cols);
  row_share<T, 1, 1> mine;
  mine.load(in, l, threadIdx.x, blockDim.x);
  running r = {group_reduce<maximum, WarpSize, WarpSize>(mine.largest()), 0.0f};
  r.d = group_reduce<sum, WarpSize, WarpSize>(mine.exponentials(reference(r.m)));
  const running all = block_merge<WarpSize>(r, 0);
  mine.template store<Lie>(y + blockIdx.x * s.ld_out, l, threadIdx.x, blockDim.x,
                           exponential(r.m - all.m) / all.d);
}

/// Launches a block a row.
template <int WarpSize, class T>
void launch_few(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const auto kernel = how_rows_lie(x, y, s) == rows_lie::apart ? softmax_few<WarpSize, rows_lie::apart, T>
                                                               : softmax_few<WarpSize, rows_lie::alike, T>;
  const std::int64_t warps = std::max<std::int64_t>(divided_up(vectors_of(s, sizeof(T)), WarpSize), 1);
  const auto threads = static_cast<unsigned>(warps * WarpSize);  // enough for the elements beside the vectors
  simt::launch(kernel, simt::geometry(static_cast<unsigned>(s.rows), threads, 0, queue).early(), x, y, s);
}

}  // namespace
}  // namespace softmax
