#pragma once
// What ring.cuh works on: a block's part of a row in chunks, and a ring of such chunks in shared memory.
#include "cluster.cuh"
#include "kernels/row_share.cuh"
#include "simt/async.hpp"
#include "simt/simt.hpp"

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
  /// Does this thread have an element that is in no vector? The first block has them.
  __device__ bool has_edge() const {
    return simt::cluster_rank() == 0 && static_cast<int>(threadIdx.x) < l.edges;
  }
  __device__ std::int64_t edge_col() const { return row_share<T, 1, 1>::edge_col(l, threadIdx.x); }
};

/// Slots for chunks, in dynamic shared memory. Chunk q, counted from 0 through all rows, is in slot q % Slots
/// in its turn q / Slots. A phase of full[slot] ends when a chunk has arrived, one of empty[slot] when every
/// thread that computes has let go of it.
template <int ChunkVectors, int Slots>
struct chunk_ring {
  simt::transaction_barrier full[Slots], empty[Slots];

  /// One thread of the block, before the barrier of the cluster that begins everything.
  __device__ void init(int threads) {
    for (simt::transaction_barrier& b : full) simt::barrier_init(b, 1);
    for (simt::transaction_barrier& b : empty) simt::barrier_init(b, threads);
  }
  /// Begins to load chunk q as soon as its slot is free. One thread.
  __device__ void fill(unsigned q, const void* from, int vectors) {
    simt::barrier_wait(empty[q % Slots], q / Slots % 2 ^ 1);  // in turn 0 without waiting
    simt::barrier_arrive_expect(full[q % Slots], vectors * 16);
    if (vectors > 0) simt::copy_chunk(slot(q), from, vectors * 16, full[q % Slots]);
  }
  /// Waits for chunk q, and says where it is.
  template <class T>
  __device__ const T* wait_for(unsigned q) {
    simt::barrier_wait(full[q % Slots], q / Slots % 2);
    return reinterpret_cast<const T*>(slot(q));
  }
  /// Lets go of chunk q. Every thread that computes; one a warp would do, but is no faster, and racecheck
  /// does not see that it speaks for the others.
  __device__ void release(unsigned q) { simt::barrier_arrive(empty[q % Slots]); }
  __device__ static simt::vector16* slot(unsigned q) {
    return simt::dynamic_shared<simt::vector16>() + q % Slots * ChunkVectors;
  }
};

}  // namespace
}  // namespace softmax
