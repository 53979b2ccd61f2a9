#pragma once
/// @file
/// Stage 07's kernel for clusters, with the exchange by st.async. A thread holds its vectors in registers.
#include "../../stages/07_split_row/cluster.cuh"
#include "exchange.cuh"
#include "numerics/shape.hpp"

namespace softmax {
namespace {

/// As softmax_cluster of stage 07. Again: exponentials are computed once for the sum and again for the
/// result, so that 16-bit values can stay packed.
template <int Threads, int Items, bool Again, template <int> class Exchange, class T>
__global__ void __launch_bounds__(Threads) softmax_held(const T* x, T* y, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;
  __shared__ Exchange<Threads / 32 * most_parts> mail;
  const int parts = simt::cluster_blocks(), stride = parts * Threads, warps = Threads / 32;
  const int place = simt::cluster_rank() * Threads + threadIdx.x;
  if (threadIdx.x == 0) {
    mail.set_up();
    simt::barrier_publish();
  }
  simt::sync_warp();
  simt::cluster_arrive_relaxed();
  bool begun = false;
  unsigned n = 0;
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row += simt::cluster_count(), ++n) {
    const row_layout l = layout_of(x + row * s.ld_in, s.cols);
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    if constexpr (Again) {
      simt::vector16 held[Items];
      float edge =
          place < l.edges ? static_cast<float>(in[row_share<T, 1, 1>::edge_col(l, place)]) : -INFINITY;
      float value[per_vector<T>];
      running r = {-INFINITY, 0.0f};
      int first = 0;
      for (;; first += Items * stride) {
#pragma unroll
        for (int i = 0; i < Items; ++i) {
          const int v = first + place + i * stride;
          held[i] = v < l.vectors ? simt::load_vector(in + l.head + std::int64_t{v} * per_vector<T>)
                                  : filled<T>(-INFINITY);
        }
        float m = first ? r.m : fmaxf(r.m, edge);
#pragma unroll
        for (int i = 0; i < Items; ++i) {
          unpack<T>(held[i], value);
#pragma unroll
          for (int e = 0; e < per_vector<T>; ++e) m = fmaxf(m, value[e]);
        }
        const float ref = reference(m);
        float d = r.d * exponential(r.m - ref);
        if (!first) d += exponential(edge - ref);
#pragma unroll
        for (int i = 0; i < Items; ++i) {
          unpack<T>(held[i], value);
#pragma unroll
          for (int e = 0; e < per_vector<T>; ++e) d += exponential(value[e] - ref);
        }
        r = {m, d};
        if (l.vectors - first <= Items * stride) break;
      }
      r = warp_merge<32>(r);
      if (!begun) simt::cluster_wait();
      begun = true;
      mail.send(r, threadIdx.x / 32, warps, n);
      const running all = mail.receive(warps, n);
      const float scale = 1.0f / all.d;
      for (;; first -= Items * stride) {
#pragma unroll
        for (int i = 0; i < Items; ++i) {
          const int v = first + place + i * stride;
          unpack<T>(held[i], value);
#pragma unroll
          for (int e = 0; e < per_vector<T>; ++e) value[e] = exponential(value[e] - all.m) * scale;
          if (v < l.vectors)
            simt::store_vector(out + l.head + std::int64_t{v} * per_vector<T>, pack<T>(value));
        }
        if (first == 0) break;
#pragma unroll
        for (int i = 0; i < Items; ++i) {
          const int v = first - Items * stride + place + i * stride;
          held[i] = simt::load_vector(in + l.head + std::int64_t{v} * per_vector<T>);
        }
      }
      if (place < l.edges)
        out[row_share<T, 1, 1>::edge_col(l, place)] = static_cast<T>(exponential(edge - all.m) * scale);
    } else {
      row_share<T, Items, 1> mine;
      running r = {-INFINITY, 0.0f};
      int first = 0;
      for (;; first += Items * stride) {
        mine.load(in, l, first + place, stride);
        const float m = fmaxf(r.m, mine.largest());
        r = {m, r.d * exponential(r.m - reference(m)) + mine.exponentials(reference(m))};
        if (l.vectors - first <= Items * stride) break;
      }
      const float own = r.m;
      r = warp_merge<32>(r);
      if (!begun) simt::cluster_wait();
      begun = true;
      mail.send(r, threadIdx.x / 32, warps, n);
      const running all = mail.receive(warps, n);
      mine.template store<rows_lie::alike>(out, l, first + place, stride,
                                           exponential(own - all.m) * (1.0f / all.d));
      for (first -= Items * stride; first >= 0; first -= Items * stride) {
        mine.load(in, l, first + place, stride);
        mine.exponentials(all.m);
        mine.template store<rows_lie::alike>(out, l, first + place, stride, 1.0f / all.d);
      }
    }
  }
  if (!begun) simt::cluster_wait();
}

}  // namespace
}  // namespace softmax
