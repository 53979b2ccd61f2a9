#pragma once
/// @file
/// Clusters that stay: each block has a ring of chunks in shared memory, which one warp fills, with whole
/// chunks of this row and of the next ones, as fast as the others free them. So loads of later rows are under
/// way while the states of a row are exchanged and its result is stored.
#include "held.cuh"

namespace softmax {
namespace {

/// y[row] = softmax of x[row] by the blocks of a cluster. Threads compute, 32 more load. A chunk is Threads *
/// Items vectors. Ahead: the states of a row are sent before the result of the row before it is stored, so
/// that nobody waits for the exchange; then the ring has to hold the block's parts of two rows.
template <int Threads, int Items, int Slots, bool Ahead, class T>
__global__ void __launch_bounds__(Threads + 32) softmax_ring(const T* x, T* y, matrix_shape s) {
  if constexpr (!simt::clusters_here) return;
  constexpr int warps = Threads / 32, chunk_vectors = Threads * Items, size = per_vector<T>;
  auto* ring = simt::dynamic_shared<simt::vector16>();  // Slots chunks
  __shared__ simt::transaction_barrier full[Slots], empty[Slots];
  __shared__ messages<warps * most_parts> mail;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t rows_apart = simt::cluster_count(), parts = simt::cluster_blocks();
  if (threadIdx.x == 0) {
    for (int k = 0; k < Slots; ++k) {
      simt::barrier_init(full[k], 1);
      simt::barrier_init(empty[k], warps);
    }
    mail.set_up();
    simt::barrier_publish();
  }
  simt::sync_warp();
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();

  // Vectors of a row that are this block's, in chunks. Those that the ring cannot keep are loaded again.
  const auto most = static_cast<int>((s.cols / size + parts - 1) / parts);
  const int chunks = (most + chunk_vectors - 1) / chunk_vectors, again = chunks > Slots ? chunks - Slots : 0;
  struct part {
    row_layout l;
    int begin, vectors;  // this block's
    __device__ part(const T* in, std::int64_t cols, int most) : l(layout_of(in, cols)) {
      const int first = simt::cluster_rank() * most;
      begin = first < l.vectors ? first : l.vectors;
      vectors = l.vectors - begin < most ? l.vectors - begin : most;
    }
    /// Vectors of a chunk, 0 where the row is shorter.
    __device__ int in_chunk(int chunk) const {
      const int left = vectors - chunk * chunk_vectors;
      return left < 0 ? 0 : left < chunk_vectors ? left : chunk_vectors;
    }
    /// Where the chunk begins, in elements of the row.
    __device__ std::int64_t first(int chunk) const {
      return l.head + (begin + std::int64_t{chunk} * chunk_vectors) * size;
    }
  };

  if (warp == warps) {  // loads
    if (lane > 0) return;
    unsigned q = 0;  // chunks so far
    for (std::int64_t row = simt::cluster_id(); row < s.rows; row += rows_apart) {
      const T* in = x + row * s.ld_in;
      const part mine(in, s.cols, most);
      for (int k = 0; k < chunks + again; ++k, ++q) {
        const int chunk = k < chunks ? k : k - chunks, vectors = mine.in_chunk(chunk);
        simt::barrier_wait(empty[q % Slots], q / Slots % 2 ^ 1);
        simt::barrier_arrive_expect(full[q % Slots], vectors * 16);
        if (vectors > 0)
          simt::copy_chunk(ring + q % Slots * chunk_vectors, in + mine.first(chunk), vectors * 16,
                           full[q % Slots]);
      }
    }
    return;
  }

  float edge = -INFINITY, edge_before = -INFINITY;  // of this row and the one before
  unsigned q = 0, n = 0;
  const auto load = [&](row_share<T, Items, 0>& values, const part& mine, int chunk) {
    simt::barrier_wait(full[q % Slots], q / Slots % 2);
    values.load(reinterpret_cast<const T*>(ring + q % Slots * chunk_vectors), {0, mine.in_chunk(chunk), 0},
                threadIdx.x, Threads);
  };
  const auto release = [&] {
    simt::sync_warp();
    if (lane == 0) simt::barrier_arrive(empty[q % Slots]);
  };
  const auto has_edge = [&](const part& mine) {
    return simt::cluster_rank() == 0 && static_cast<int>(threadIdx.x) < mine.l.edges;
  };
  const auto begin_row = [&](std::int64_t row) {
    const part mine(x + row * s.ld_in, s.cols, most);
    edge_before = edge;
    edge = has_edge(mine)
               ? static_cast<float>(x[row * s.ld_in + row_share<T, 1, 1>::edge_col(mine.l, threadIdx.x)])
               : -INFINITY;
    running r = {-INFINITY, 0.0f};
    for (int chunk = 0; chunk < chunks; ++chunk, ++q) {
      row_share<T, Items, 0> values;
      load(values, mine, chunk);
      if (chunk < again) release();
      const float m = fmaxf(r.m, values.largest());
      r = {m, r.d * exponential(r.m - reference(m)) + values.exponentials(reference(m))};
    }
    const float m = fmaxf(r.m, edge);
    r = {m, r.d * exponential(r.m - reference(m)) + exponential(edge - reference(m))};
    mail.send(warp_merge<32>(r), warp, warps, n);
  };
  // q is that of the first chunk that the ring kept.
  const auto end_row = [&](std::int64_t row, unsigned which, float its_edge) {
    const part mine(x + row * s.ld_in, s.cols, most);
    const running all = mail.receive(warps, which);
    const float scale = 1.0f / all.d;
    T* out = y + row * s.ld_out;
    if (has_edge(mine))
      out[row_share<T, 1, 1>::edge_col(mine.l, threadIdx.x)] =
          static_cast<T>(exponential(its_edge - all.m) * scale);
    for (int k = 0; k < chunks; ++k, ++q) {
      const int chunk = again + k < chunks ? again + k : again + k - chunks;
      row_share<T, Items, 0> values;
      load(values, mine, chunk);
      release();
      values.exponentials(all.m);
      values.template store<rows_lie::alike>(out + mine.first(chunk), {0, mine.in_chunk(chunk), 0},
                                             threadIdx.x, Threads, scale);
    }
  };

  unsigned behind = 0;  // chunk number of the row that is ended next, with Ahead
  for (std::int64_t row = simt::cluster_id(); row < s.rows; row += rows_apart, ++n) {
    if constexpr (Ahead) {
      begin_row(row);
      const unsigned next = q;
      q = behind;
      if (n > 0) end_row(row - rows_apart, n - 1, edge_before);
      behind = q;
      q = next;
    } else {
      begin_row(row);
      q -= chunks - again;
      end_row(row, n, edge);
    }
  }
  if constexpr (Ahead) {
    q = behind;
    if (n > 0) end_row(simt::cluster_id() + (n - 1) * rows_apart, n - 1, edge);
  }
}

}  // namespace
}  // namespace softmax
