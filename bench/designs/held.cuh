#pragma once
/// @file
/// A row in the registers of a cluster, with any exchange of exchange.cuh. All kernels of
/// this folder store whole vectors, so the rows of x and y must lie alike (rows_lie).
#include "../../stages/07_split_row/cluster.cuh"
#include "exchange.cuh"
#include "kernels/packed_share.cuh"
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/async.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// Sets up the exchange and arrives at the barrier of the cluster, which is waited for before the first send.
/// Takes part: every thread.
template <class Exchange>
__device__ void begin_exchange(Exchange& exchange) {
  if (threadIdx.x == 0) {
    exchange.init();
    simt::barrier_publish();
  }
  simt::sync_warp();
  simt::cluster_arrive_relaxed();
}

/// y[row] = softmax of x[row] by the blocks of a cluster. Each thread keeps the exponentials of its last
/// Items vectors; what came before is loaded again, last first.
template <int Threads, int Items, template <int> class Exchange, class T>
__global__ void __launch_bounds__(Threads) softmax_held(const T* x, T* y, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;
  constexpr int warps = Threads / 32;
  __shared__ Exchange<warps * most_parts> exchange;
  const int stride = simt::cluster_blocks() * Threads, place = simt::cluster_rank() * Threads + threadIdx.x;
  begin_exchange(exchange);
  unsigned n = 0;
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row += simt::cluster_count(), ++n) {
    const T* in = x + row * s.ld_in;
    const row_layout l = layout_of(in, s.cols);
    row_share<T, Items, 1> mine;
    running r = {-INFINITY, 0.0f};
    int first = 0;
    for (;; first += Items * stride) {
      mine.load(in, l, first + place, stride);
      const float m = fmaxf(r.m, mine.largest());
      r = extend(r, m, mine.exponentials(reference(m)));
      if (l.vectors - first <= Items * stride) break;
    }
    const running of_warp = warp_merge<32>(r);
    if (n == 0) simt::cluster_wait();
    exchange.send(of_warp, threadIdx.x / 32, warps, n);
    const running all = exchange.receive(warps, n);
    const float scale = 1.0f / all.d;
    T* out = y + row * s.ld_out;
    mine.template store<rows_lie::alike>(out, l, first + place, stride, exponential(r.m - all.m) * scale);
    for (first -= Items * stride; first >= 0; first -= Items * stride) {
      mine.load(in, l, first + place, stride);
      mine.exponentials(all.m);
      mine.template store<rows_lie::alike>(out, l, first + place, stride, scale);
    }
  }
  if (n == 0) simt::cluster_wait();
}

}  // namespace
}  // namespace softmax
