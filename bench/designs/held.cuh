#pragma once
/// @file
/// A row in the registers of a cluster, as in stage 07, with any exchange of exchange.cuh. All kernels of
/// this folder store whole vectors, so the rows of x and y must lie alike (rows_lie).
#include "../../stages/07_split_row/cluster.cuh"
#include "exchange.cuh"
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

/// What was seen so far, and values of which m is the maximum, r's included, and d the sum relative to
/// reference(m).
__device__ inline running extend(running r, float m, float d) {
  return {m, r.d * exponential(r.m - reference(m)) + d};
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

/// The largest of several vectors in each place. 16-bit values are compared two at once, as they are packed.
template <class T, int Items>
__device__ simt::vector16 largest_of(const simt::vector16 (&held)[Items]) {
  simt::vector16 m = filled<T>(-INFINITY);
  if constexpr (sizeof(T) == 4) {
    float largest[4], value[4];
    unpack<T>(m, largest);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      unpack<T>(held[i], value);
#pragma unroll
      for (int e = 0; e < 4; ++e) largest[e] = fmaxf(largest[e], value[e]);
    }
    m = pack<T>(largest);
  } else {
    std::uint32_t largest[4], word[4];
    __builtin_memcpy(largest, &m, 16);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      __builtin_memcpy(word, &held[i], 16);
#pragma unroll
      for (int w = 0; w < 4; ++w) largest[w] = simt::larger_pair<T>(largest[w], word[w]);
    }
    __builtin_memcpy(&m, largest, 16);
  }
  return m;
}

/// Items vectors of a row as they were loaded, so that 16-bit values stay packed.
template <class T, int Items>
struct packed_share {
  static constexpr int size = per_vector<T>;
  simt::vector16 held[Items];

  __device__ void load(const T* in, const row_layout& l, int place, int stride) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int v = place + i * stride;
      held[i] =
          v < l.vectors ? simt::load_vector(in + l.head + std::int64_t{v} * size) : filled<T>(-INFINITY);
    }
  }
  __device__ float largest() const {
    float value[size];
    unpack<T>(largest_of<T>(held), value);
    float m = -INFINITY;
#pragma unroll
    for (int e = 0; e < size; ++e) m = fmaxf(m, value[e]);
    return m;
  }
  __device__ float sum_of_exponentials(float m) const {
    float d = 0.0f, value[size];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      unpack<T>(held[i], value);
#pragma unroll
      for (int e = 0; e < size; ++e) d += exponential(value[e] - m);
    }
    return d;
  }
  /// Stores scale times the exponentials relative to m.
  __device__ void store(T* out, const row_layout& l, int place, int stride, float m, float scale) const {
    float value[size];
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int v = place + i * stride;
      unpack<T>(held[i], value);
#pragma unroll
      for (int e = 0; e < size; ++e) value[e] = exponential(value[e] - m) * scale;
      if (v < l.vectors) simt::store_vector(out + l.head + std::int64_t{v} * size, pack<T>(value));
    }
  }
};

/// As softmax_held(), but exponentials are computed once for the sum and again for the result. With Shared,
/// each block keeps `kept` more vectors of the row in dynamic shared memory, copied by cp.async.bulk: block b
/// those from number b * kept on; what is in registers follows. At most MostThreads a block. Resident: the
/// threads that a multiprocessor is to hold, which limits the registers of each.
template <int MostThreads, int Items, int Resident, bool Shared, class T>
__global__ void __launch_bounds__(MostThreads, Resident / MostThreads)
    softmax_packed(const T* x, T* y, matrix_shape s, int kept) {
  if constexpr (!simt::clusters_here) return;
  if constexpr (!Shared) kept = 0;
  constexpr int at_once = Items / 4;  // kept vectors a thread takes up
  auto* chunk = simt::dynamic_shared<simt::vector16>();
  __shared__ messages<MostThreads / 32 * most_parts> exchange;
  __shared__ simt::transaction_barrier arrived;
  const int threads = blockDim.x, warps = threads / 32, stride = simt::cluster_blocks() * threads;
  const int place = simt::cluster_rank() * threads + threadIdx.x,
            of_registers = simt::cluster_blocks() * kept;
  if (threadIdx.x == 0) simt::barrier_init(arrived, 1);
  begin_exchange(exchange);
  unsigned n = 0;
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row += simt::cluster_count(), ++n) {
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    const row_layout l = layout_of(in, s.cols);
    const std::int64_t first_kept = l.head + std::int64_t{simt::cluster_rank()} * kept * per_vector<T>;
    const int left = l.vectors - static_cast<int>(simt::cluster_rank()) * kept;
    const int here = left < 0 ? 0 : left < kept ? left : kept;
    if constexpr (Shared) {
      if (n > 0) __syncthreads();  // the chunk of the row before has been read
      if (threadIdx.x == 0) {
        simt::barrier_arrive_expect(arrived, here * 16);
        if (here > 0) simt::copy_chunk(chunk, in + first_kept, here * 16, arrived);
      }
    }
    const std::int64_t edge_col = row_share<T, 1, 1>::edge_col(l, place);
    const float edge = place < l.edges ? static_cast<float>(in[edge_col]) : -INFINITY;
    packed_share<T, Items> mine;
    running r = {-INFINITY, 0.0f};
    int first = of_registers + place;
    for (;; first += Items * stride) {
      mine.load(in, l, first, stride);
      const float m = fmaxf(r.m, mine.largest());
      r = extend(r, m, mine.sum_of_exponentials(reference(m)));
      if (l.vectors - (first - place) <= Items * stride) break;
    }
    packed_share<T, at_once> values;
    if constexpr (Shared) {
      simt::barrier_wait(arrived, n % 2);
#pragma unroll 1
      for (int v = threadIdx.x; v < here; v += at_once * threads) {
        values.load(reinterpret_cast<const T*>(chunk), {0, here, 0}, v, threads);
        const float m = fmaxf(r.m, values.largest());
        r = extend(r, m, values.sum_of_exponentials(reference(m)));
      }
    }
    const float larger = fmaxf(r.m, edge);
    r = extend(r, larger, exponential(edge - reference(larger)));  // last: nothing else waits for it
    const running of_warp = warp_merge<32>(r);
    if (n == 0) simt::cluster_wait();
    exchange.send(of_warp, threadIdx.x / 32, warps, n);
    const running all = exchange.receive(warps, n);
    const float scale = 1.0f / all.d;
    if (place < l.edges) out[edge_col] = static_cast<T>(exponential(edge - all.m) * scale);
    mine.store(out, l, first, stride, all.m, scale);
    if constexpr (Shared) {
#pragma unroll 1
      for (int v = threadIdx.x; v < here; v += at_once * threads) {
        values.load(reinterpret_cast<const T*>(chunk), {0, here, 0}, v, threads);
        values.store(out + first_kept, {0, here, 0}, v, threads, all.m, scale);
      }
    }
    for (first -= Items * stride; first >= of_registers; first -= Items * stride) {
      mine.load(in, l, first, stride);
      mine.store(out, l, first, stride, all.m, scale);
    }
  }
  if (n == 0) simt::cluster_wait();
}

}  // namespace
}  // namespace softmax
