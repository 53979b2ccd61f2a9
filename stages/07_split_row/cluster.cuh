#pragma once
// A row over the blocks of a cluster, each of which keeps its part in registers and in shared memory. Moves,
// in elements: reads MN, writes MN; columns that the cluster cannot hold are read twice.
#include <algorithm>
#include <limits>

#include "exchange.cuh"
#include "kernels/ahead.cuh"
#include "kernels/packed_share.cuh"
#include "numerics/shape.hpp"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "split_plan.hpp"

namespace softmax {
namespace {

/// Cuts a row into the elements before the first multiple of 16 bytes, whole vectors, and the rest.
template <class T>
__device__ row_layout layout_of(const T* in, std::int64_t cols) {
  const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % 16 / sizeof(T));
  const int to_boundary = (per_vector<T> - past) % per_vector<T>;
  const int head = to_boundary < cols ? to_boundary : static_cast<int>(cols);
  const auto vectors = static_cast<int>((cols - head) / per_vector<T>);
  return {head, vectors, static_cast<int>(cols - std::int64_t{vectors} * per_vector<T>)};
}

/// y[row] = softmax of x[row], by cluster number `row`. The first vectors of the row, `kept` a block, are
/// copied to shared memory; of the others each thread keeps Items in registers. Where that is not the whole
/// row, threads take several trips, and load again what came before the last one, last first, as the cache
/// keeps what was read last. If Asks, the cluster also asks for the row `ahead` of its own.
template <int WarpSize, int Items, bool Shared, bool Asks, rows_lie Lie, class T>
__global__ void __launch_bounds__(most_cluster_threads, Items == 8 ? 4 : 6)
    softmax_cluster(const T* x, T* y, matrix_shape s, int kept, std::int64_t ahead) {
  if constexpr (!simt::clusters_here) return;  // never launched there
  __shared__ messages<most_cluster_threads / WarpSize * most_parts> exchange;
  __shared__ simt::transaction_barrier copied;
  const int threads = blockDim.x, warps = threads / WarpSize, blocks = simt::cluster_blocks();
  const int rank = simt::cluster_rank(), place = rank * threads + threadIdx.x, stride = blocks * threads;
  if constexpr (Asks)
    if (simt::cluster_id() < ahead) prefetch_part(x, s, simt::cluster_id());
  simt::wait_for_last_launch();  // it may have written x
  if constexpr (Items == items_of_few_rows) simt::begin_next_launch();  // as short as a launch
  if constexpr (Asks) begin_next_launch_at_the_end();
  const T* in = x + simt::cluster_id() * s.ld_in;
  T* out = y + simt::cluster_id() * s.ld_out;
  const row_layout l = layout_of(in, s.cols);
  const T* vectors = in + l.head;
  T* results = out + l.head;

  // What is kept in shared memory arrives by itself, while registers are loaded.
  auto* chunk = simt::dynamic_shared<simt::vector16>();
  const int begin = Shared ? rank * kept : 0, left = l.vectors - begin;
  const int here = !Shared || left < 0 ? 0 : left < kept ? left : kept;
  if (threadIdx.x == 0) {
    exchange.init();
    if constexpr (Shared) simt::barrier_init(copied, 1);
    simt::barrier_publish();
  }
  simt::sync_warp();
  simt::cluster_arrive_relaxed();  // waited for below, when the loads are under way
  if (threadIdx.x == 0) {
    exchange.expect(warps * blocks);
    if constexpr (Shared) {
      simt::barrier_arrive_expect(copied, here * 16);
      if (here > 0) simt::copy_chunk(chunk, vectors + std::int64_t{begin} * per_vector<T>, here * 16, copied);
    }
  }

  const std::int64_t edge_col = row_share<T, 1, 1>::edge_col(l, place);
  float edge = -INFINITY;
  if (place < l.edges) edge = static_cast<float>(in[edge_col]);
  packed_share<T, Items> mine;
  running r = {-INFINITY, 0.0f};
  const int first = Shared ? blocks * kept : 0;  // vector of the registers
  int trip = first;
  for (;; trip += Items * stride) {
    mine.load(vectors, l.vectors, trip + place, stride);
    r = mine.add_to(r);
    if (l.vectors - trip <= Items * stride) break;
  }
  if constexpr (Asks)
    if (ahead > 0) prefetch_part(x, s, simt::cluster_id() + ahead);
  simt::cluster_wait();  // every block has begun, and can be sent to
  packed_share<T, Items / 4> taken;
  if constexpr (Shared) {
    simt::barrier_wait(copied, 0);
#pragma unroll 1
    for (int v = threadIdx.x; v < here; v += Items / 4 * threads) {
      taken.load(reinterpret_cast<const T*>(chunk), here, v, threads);
      r = taken.add_to(r);
    }
  }
  const float m = fmaxf(r.m, edge);  // leaves a NaN out, which the sum does not
  r = extend(r, m, exponential(edge - reference(m)));

  const int warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  exchange.send(warp_merge<WarpSize>(r), lane, warp, warps);
  const running all = exchange.template receive<WarpSize>(lane, warps * blocks);

  const float scale = 1.0f / all.d;
  if (place < l.edges) out[edge_col] = static_cast<T>(exponential(edge - all.m) * scale);
  mine.template store<Lie>(results, l.vectors, trip + place, stride, all.m, scale);
  if constexpr (Shared) {
#pragma unroll 1
    for (int v = threadIdx.x; v < here; v += Items / 4 * threads) {
      taken.load(reinterpret_cast<const T*>(chunk), here, v, threads);
      taken.template store<Lie>(results + std::int64_t{begin} * per_vector<T>, here, v, threads, all.m,
                                scale);
    }
  }
  for (trip -= Items * stride; trip >= first; trip -= Items * stride) {
    mine.load(vectors, l.vectors, trip + place, stride);
    mine.template store<Lie>(results, l.vectors, trip + place, stride, all.m, scale);
  }
}

/// Launches clusters of plan.parts blocks, one a row; for more rows than a grid has clusters, several times.
template <int WarpSize, int Items, bool Shared, class T>
void launch_cluster(const split_plan& plan, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const rows_lie lie = how_rows_lie(x, y, s);
  auto* kernel = lie == rows_lie::apart ? softmax_cluster<WarpSize, Items, Shared, false, rows_lie::apart, T>
                                        : softmax_cluster<WarpSize, Items, Shared, false, rows_lie::alike, T>;
  if constexpr (Items == 8 && !Shared)
    if (lie != rows_lie::apart && asks_ahead(s, sizeof(T)))
      kernel = softmax_cluster<WarpSize, Items, Shared, true, rows_lie::alike, T>;
  const std::int64_t ahead = rows_ahead<T>(s, 1, 6 << 20);
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / plan.parts;
  for (std::int64_t row = 0; row < s.rows; row += most) {
    matrix_shape here = s;
    here.rows = std::min(s.rows - row, most);
    const auto blocks = static_cast<unsigned>(here.rows * plan.parts);
    const simt::geometry g(blocks, static_cast<unsigned>(plan.threads),
                           static_cast<std::size_t>(plan.kept) * 16, queue);
    simt::launch_cluster(kernel, plan.parts, g.early(), x + row * s.ld_in, y + row * s.ld_out, here,
                         plan.kept, ahead);
  }
}

/// y = softmax of each row of x.
template <int WarpSize, class T>
void softmax_in_clusters(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const split_plan plan = cluster_plan(s, sizeof(T));
  if (plan.kept > 0) return launch_cluster<WarpSize, 8, true>(plan, x, y, s, queue);
  if (plan.items == 8) return launch_cluster<WarpSize, 8, false>(plan, x, y, s, queue);
  launch_cluster<WarpSize, items_of_few_rows, false>(plan, x, y, s, queue);
}

}  // namespace
}  // namespace softmax
