#pragma once
// Softmax with a row split over several blocks, for rows that no block can hold and for rows too few to fill
// the GPU. This form runs on every GPU: one launch leaves the maximum and the sum of each part of a row in
// memory, a second one merges them and writes. Moves, in elements: reads 2MN, writes MN, and two numbers a
// part. Where there are clusters of blocks, cluster.cuh does it in one launch; many of the widest rows,
// ring.cuh; and few.cuh what is best not split.
#include "cluster.cuh"
#include "few.cuh"
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "ring.cuh"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "split_plan.hpp"

namespace softmax {
namespace {

constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

//! [kernel]
/// partial[row][part] = maximum and sum of that part of x[row]. Block (row, part) takes every parts-th piece
/// of the row.
template <int WarpSize, int Items, class T>
__global__ void __launch_bounds__(most_part_threads)
    reduce_parts(const T* x, running* partial, matrix_shape s) {
  simt::wait_for_last_launch();  // it may have written x, or still read partial
  simt::begin_next_launch();  // as soon as there is room, with what it can do before this one has ended
  const int stride = gridDim.y * blockDim.x, place = blockIdx.y * blockDim.x + threadIdx.x;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x, turn = 1 - turn) {
    const T* in = x + row * s.ld_in;
    const row_layout l = layout_of(in, s.cols);
    row_share<T, Items, 1> mine;
    running r = {-INFINITY, 0.0f};
    for (int first = 0; first == 0 || first < l.vectors; first += Items * stride) {
      mine.load(in, l, first + place, stride);
      // exercise a: bring r.d to the new maximum and add the piece's exponentials; starts as
      // `r.m = mine.largest();`
      const float m = fmaxf(r.m, mine.largest());
      r.d = r.d * exponential(r.m - reference(m)) + mine.exponentials(reference(m));
      r.m = m;
      // end
    }
    r = block_merge<WarpSize>(warp_merge<WarpSize>(r), turn);
    if (threadIdx.x == 0) partial[row * gridDim.y + blockIdx.y] = r;
  }
}

/// y[row] = softmax of x[row], with the states of its parts.
template <int WarpSize, int Items, rows_lie Lie, class T>
__global__ void __launch_bounds__(most_part_threads)
    normalise_parts(const T* x, T* y, const running* partial, matrix_shape s) {
  const int stride = gridDim.y * blockDim.x, place = blockIdx.y * blockDim.x + threadIdx.x;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x, turn = 1 - turn) {
    const T* in = x + row * s.ld_in;
    const row_layout l = layout_of(in, s.cols);
    row_share<T, Items, 1> mine;
    mine.load(in, l, place, stride);
    simt::wait_for_last_launch();  // for the states
    // exercise b: the states of all parts of this row, one a thread, merged; starts as
    // `const running all = partial[row * gridDim.y + blockIdx.y];`
    running all = {-INFINITY, 0.0f};
    if (threadIdx.x < gridDim.y) all = partial[row * gridDim.y + threadIdx.x];
    all = block_merge<WarpSize>(warp_merge<WarpSize>(all), turn);
    // end
    for (int first = 0;;) {
      mine.exponentials(all.m);
      mine.template store<Lie>(y + row * s.ld_out, l, first + place, stride, 1.0f / all.d);
      first += Items * stride;
      if (first >= l.vectors) break;
      mine.load(in, l, first + place, stride);
    }
  }
}
//! [kernel]

/// Launches both kernels, with `parts` blocks a row.
template <int WarpSize, int Items, class T>
void launch_parts(int parts, const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
  const std::int64_t most = max_blocks / parts;
  const dim3 grid(static_cast<unsigned>(s.rows < most ? s.rows : most), static_cast<unsigned>(parts));
  const auto threads = static_cast<unsigned>(part_threads(s));
  auto* partial = reinterpret_cast<running*>(workspace);
  const auto early = simt::geometry(grid, threads, 0, queue).early();
  simt::launch(reduce_parts<WarpSize, Items, T>, early, x, partial, s);
  const auto normalise = how_rows_lie(x, y, s) == rows_lie::apart
                             ? normalise_parts<WarpSize, Items, rows_lie::apart, T>
                             : normalise_parts<WarpSize, Items, rows_lie::alike, T>;
  simt::launch(normalise, early, x, y, partial, s);
}

/// y = softmax of each row of x. workspace has room for a maximum and a sum for each part of each row; where
/// there are clusters, it may be null.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  const bool clusters = simt::most_cluster_blocks() >= most_parts;
  if (clusters && for_lone_blocks(s, sizeof(T))) return launch_few<WarpSize>(x, y, s, queue);
  if (clusters && workspace && in_ring(s, sizeof(T)))
    return launch_ring<WarpSize, ring_threads, ring_items, ring_slots, ring_held>(ring_parts(s, sizeof(T)), x,
                                                                                  y, workspace, s, queue);
  if (clusters && (!workspace || !beyond_clusters(s))) return softmax_in_clusters<WarpSize>(x, y, s, queue);
  launch_parts<WarpSize, part_values / per_vector<T>>(parts_of(s), x, y, workspace, s, queue);
}

}  // namespace
}  // namespace softmax
