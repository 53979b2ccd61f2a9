#pragma once
/// @file
/// Clusters that stay: each block has a ring of chunks in shared memory, which one warp fills, with whole
/// chunks of this row and of the next ones, as fast as the others free them. So loads of later rows are under
/// way while the states of a row are exchanged and its result is stored.
#include "../../stages/07_split_row/cluster.cuh"
#include "exchange.cuh"
#include "held.cuh"
#include "kernels/packed_share.cuh"
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "taken.cuh"

namespace softmax {
namespace {

/// A block's part of a row, in chunks of ChunkVectors vectors.
template <class T, int ChunkVectors>
struct row_part {
  row_layout l;  ///< of the row
  int begin, vectors;  ///< of the part

  /// `part_vectors` is the part of each block of the cluster; the last ones may have less.
  __device__ row_part(const T* in, std::int64_t cols, int part_vectors) : l(layout_of(in, cols)) {
    const int first = simt::cluster_rank() * part_vectors;
    begin = first < l.vectors ? first : l.vectors;
    vectors = l.vectors - begin < part_vectors ? l.vectors - begin : part_vectors;
  }
  /// Vectors of a chunk; 0 where the part is shorter.
  __device__ int in_chunk(int chunk) const {
    const int left = vectors - chunk * ChunkVectors;
    return left < 0 ? 0 : left < ChunkVectors ? left : ChunkVectors;
  }
  /// Where a chunk begins, in elements of the row.
  __device__ std::int64_t first(int chunk) const {
    return l.head + (begin + std::int64_t{chunk} * ChunkVectors) * per_vector<T>;
  }
  /// Has this thread an element that is in no vector? The first block has them.
  __device__ bool has_edge() const {
    return simt::cluster_rank() == 0 && static_cast<int>(threadIdx.x) < l.edges;
  }
  __device__ std::int64_t edge_col() const { return row_share<T, 1, 1>::edge_col(l, threadIdx.x); }
};

/// y[row] = softmax of x[row] by the blocks of a cluster. Threads compute, 32 more load. A chunk is Threads *
/// Items vectors, a ring has Slots of them, in dynamic shared memory. The first Held chunks of a row go on to
/// registers, so that their slots are free for the next row at once; what the registers do not hold stays in
/// the ring until its result is stored. With Taken, clusters take their rows from the counter `taken`, which
/// has to be 0 and is good for 2^31 rows; without, each has every so many, and `taken` is not used.
template <int Threads, int Items, int Slots, int Held, bool Taken, class T>
__global__ void __launch_bounds__(Threads + 32, Threads* Items* Slots <= 6144 ? 2 : 1)
    softmax_ring(const T* x, T* y, matrix_shape s, unsigned* taken) {
  if constexpr (!simt::clusters_here) return;
  constexpr int warps = Threads / 32, chunk_vectors = Threads * Items;
  using part = row_part<T, chunk_vectors>;
  auto* ring = simt::dynamic_shared<simt::vector16>();
  __shared__ simt::transaction_barrier full[Slots], empty[Slots];
  __shared__ messages_in_turns<warps * most_parts> exchange;
  __shared__ taken_rows<Slots> rows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t rows_apart = simt::cluster_count(), parts = simt::cluster_blocks();
  if (threadIdx.x == 0) {
    for (int k = 0; k < Slots; ++k) {
      simt::barrier_init(full[k], 1);
      simt::barrier_init(empty[k], warps);
    }
    if constexpr (Taken) rows.init();
  }
  begin_exchange(exchange);
  simt::cluster_wait();

  const auto part_vectors = static_cast<int>((s.cols / per_vector<T> + parts - 1) / parts);
  // A row without a vector has an empty chunk, or nothing would hold those back who load and take rows.
  const int chunks = part_vectors > 0 ? (part_vectors + chunk_vectors - 1) / chunk_vectors : 1;
  const int ringed = chunks > Held ? chunks - Held : 0;  // chunks that the registers do not hold
  const int reloaded = ringed > Slots ? ringed - Slots : 0;  // and the ring neither

  const auto after = [&](std::int64_t row, unsigned n) {  // the n-th
    if constexpr (Taken)
      return rows.receive(n);
    else
      return row + rows_apart;
  };
  unsigned q = 0, n = 0;  // chunks and rows so far

  if (warp == warps) {  // loads
    if (lane > 0) return;
    row_taker taker(rows, Taken && simt::cluster_rank() == 0 ? taken : nullptr, chunks + reloaded);
    for (std::int64_t row = simt::cluster_id(); row < s.rows; row = after(row, n++)) {
      const T* in = x + row * s.ld_in;
      const part mine(in, s.cols, part_vectors);
      if constexpr (Taken) rows.expect(n);
      for (int k = 0; k < chunks + reloaded; ++k, ++q) {
        taker.step(k, n);
        const int chunk = k < chunks ? k : k - chunks + Held, bytes = mine.in_chunk(chunk) * 16;
        simt::barrier_wait(empty[q % Slots], q / Slots % 2 ^ 1);
        simt::barrier_arrive_expect(full[q % Slots], bytes);
        if (bytes > 0)
          simt::copy_chunk(ring + q % Slots * chunk_vectors, in + mine.first(chunk), bytes, full[q % Slots]);
      }
    }
    return;
  }

  const auto load = [&](auto& values, const part& mine, int chunk) {
    simt::barrier_wait(full[q % Slots], q / Slots % 2);
    values.load(reinterpret_cast<const T*>(ring + q % Slots * chunk_vectors), mine.in_chunk(chunk),
                threadIdx.x, Threads);
  };
  const auto release = [&] {
    simt::sync_warp();
    if (lane == 0) simt::barrier_arrive(empty[q % Slots]);
  };
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row = after(row, n++)) {
    const T* in = x + row * s.ld_in;
    const part mine(in, s.cols, part_vectors);
    const float edge = mine.has_edge() ? static_cast<float>(in[mine.edge_col()]) : -INFINITY;
    running r = {-INFINITY, 0.0f};
    packed_share<T, Items> held[Held ? Held : 1];
#pragma unroll
    for (int k = 0; k < Held; ++k)
      if (k < chunks) {
        load(held[k], mine, k);
        release();
        ++q;
        r = held[k].add_to(r);
      }
    for (int k = 0; k < ringed; ++k, ++q) {
      packed_share<T, Items> values;
      load(values, mine, Held + k);
      if (k < reloaded) release();
      r = values.add_to(r);
    }
    const float m = fmaxf(r.m, edge);  // leaves a NaN out, which the sum does not
    r = extend(r, m, exponential(edge - reference(m)));
    exchange.send(warp_merge<32>(r), warp, warps, n);
    const running all = exchange.receive(warps, n);
    const float scale = 1.0f / all.d;
    T* out = y + row * s.ld_out;
    if (mine.has_edge()) out[mine.edge_col()] = static_cast<T>(exponential(edge - all.m) * scale);
    const auto store = [&](const auto& values, int chunk) {
      values.template store<rows_lie::alike>(out + mine.first(chunk), mine.in_chunk(chunk), threadIdx.x,
                                             Threads, all.m, scale);
    };
    // The ring's part first: its slots are what the next loads wait for.
    q -= static_cast<unsigned>(ringed - reloaded);  // the first chunk that the ring kept
    for (int k = 0; k < ringed; ++k, ++q) {
      const int chunk = Held + (reloaded + k < ringed ? reloaded + k : reloaded + k - ringed);
      packed_share<T, Items> values;
      load(values, mine, chunk);
      release();
      store(values, chunk);
    }
#pragma unroll
    for (int k = 0; k < Held; ++k)
      if (k < chunks) store(held[k], k);
  }
}

}  // namespace
}  // namespace softmax
