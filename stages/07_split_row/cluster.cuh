#pragma once
// A row over the blocks of a cluster, which exchange maximum and sum through each other's shared memory.
// Moves, in elements: reads MN, writes MN; columns that the cluster cannot hold are read twice.
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"
#include "split_plan.hpp"

namespace softmax {
namespace {

constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

/// Cuts a row into the elements before the first multiple of 16 bytes, whole vectors, and the rest.
template <class T>
__device__ row_layout layout_of(const T* in, std::int64_t cols) {
  const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % 16 / sizeof(T));
  const int to_boundary = (per_vector<T> - past) % per_vector<T>;
  const int head = to_boundary < cols ? to_boundary : static_cast<int>(cols);
  const auto vectors = static_cast<int>((cols - head) / per_vector<T>);
  return {head, vectors, static_cast<int>(cols - std::int64_t{vectors} * per_vector<T>)};
}

/// Merges one state of each thread of the cluster. Takes part: every thread. Valid on: every thread. Barriers
/// of the cluster: the second half of one that was begun before, and one.
template <int WarpSize>
__device__ running cluster_merge(running r) {
  __shared__ running partial[most_threads / WarpSize * most_parts];
  const int warps = blockDim.x / WarpSize, warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  r = warp_merge<WarpSize>(r);
  simt::cluster_wait();  // every block has begun, and has read the states of the row before
  if (lane < simt::cluster_blocks())
    simt::store_pair(&partial[simt::cluster_rank() * warps + warp], lane, r.m, r.d);
  simt::cluster_arrive();
  simt::cluster_wait();  // every block has the states of every warp
  r = {-INFINITY, 0.0f};
#pragma unroll 1
  for (int k = lane; k < warps * simt::cluster_blocks(); k += WarpSize) r = merge(r, partial[k]);
  return warp_merge<WarpSize>(r);
}

/// y[row] = softmax of x[row], by the blocks of a cluster. Each thread keeps its last Items vectors; what
/// came before is loaded again, last first, as the cache keeps what was read last.
template <int WarpSize, int Items, rows_lie Lie, class T>
__global__ void __launch_bounds__(most_threads) softmax_cluster(const T* x, T* y, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;  // never launched there
  const int parts = simt::cluster_blocks(), stride = parts * blockDim.x;
  const int place = simt::cluster_rank() * blockDim.x + threadIdx.x;
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row += simt::cluster_count()) {
    simt::cluster_arrive();  // waited for in cluster_merge
    const row_layout l = layout_of(x + row * s.ld_in, s.cols);
    row_share<T, Items, 1> mine;
    running r = {-INFINITY, 0.0f};
    int first = 0;
    for (;; first += Items * stride) {
      mine.load(x + row * s.ld_in, l, first + place, stride);
      const float m = fmaxf(r.m, mine.largest());
      r = {m, r.d * exponential(r.m - reference(m)) + mine.exponentials(reference(m))};
      if (l.vectors - first <= Items * stride) break;
    }
    const running all = cluster_merge<WarpSize>(r);
    mine.template store<Lie>(y + row * s.ld_out, l, first + place, stride,
                             exponential(r.m - all.m) * (1.0f / all.d));
    for (first -= Items * stride; first >= 0; first -= Items * stride) {
      mine.load(x + row * s.ld_in, l, first + place, stride);
      mine.exponentials(all.m);
      mine.template store<Lie>(y + row * s.ld_out, l, first + place, stride, 1.0f / all.d);
    }
  }
}

/// Launches clusters of plan.parts blocks, one a row.
template <int WarpSize, int Items, class T>
void launch_cluster(const split_plan& plan, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const std::int64_t most = max_blocks / plan.parts;
  const auto blocks = static_cast<unsigned>((s.rows < most ? s.rows : most) * plan.parts);
  const auto kernel = how_rows_lie(x, y, s) == rows_lie::apart
                          ? softmax_cluster<WarpSize, Items, rows_lie::apart, T>
                          : softmax_cluster<WarpSize, Items, rows_lie::alike, T>;
  simt::launch_cluster(kernel, plan.parts, {blocks, static_cast<unsigned>(plan.threads), 0, queue}, x, y, s);
}

}  // namespace
}  // namespace softmax
