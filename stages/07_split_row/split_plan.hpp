#pragma once
// How many blocks share a row, and how many threads each has. stage.hpp derives the byte model from it.
#include <algorithm>
#include <cstdint>

#include "numerics/shape.hpp"

namespace softmax {

inline constexpr int most_parts = 16;  // blocks of a cluster
inline constexpr int most_cluster_threads = 256;  // of a block in a cluster
inline constexpr std::int64_t most_kept =
    200 * 1024 / 16;  // vectors of a row in the shared memory of a block
inline constexpr int most_few_threads = 1024;  // of a block that has a row for itself
inline constexpr int part_values = 8;  // in two launches: of a row, in the registers of a thread
inline constexpr int most_part_threads = 256;  // in two launches: of a block

inline constexpr int items_of_few_rows = 4;  // vectors of a thread where there are few rows, else 8

/// A row over the blocks of a cluster.
struct split_plan {
  int parts;  ///< blocks a row
  int threads;  ///< a block, whole warps
  int items;  ///< vectors of 16 bytes in the registers of a thread
  int kept;  ///< vectors in the shared memory of a block
};

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Vectors of 16 bytes in a row; one that starts between two multiples of 16 has one less at times.
inline std::int64_t vectors_of(const matrix_shape& s, std::size_t element_bytes) {
  return s.cols * static_cast<std::int64_t>(element_bytes) / 16;
}

/// Threads of as many warps as that takes. GPUs that have clusters have warps of 32 lanes.
inline std::int64_t whole_warps(std::int64_t threads) { return divided_up(threads, 32) * 32; }

/// With clusters: rows of which a block holds each with one vector a thread, and so few that all blocks fit
/// on the GPU at once. They take a block each.
inline bool for_lone_blocks(const matrix_shape& s, std::size_t element_bytes) {
  constexpr std::int64_t most_rows = 512, processors = 128, resident = 2048;  // threads; of a large GPU
  const std::int64_t threads = std::max<std::int64_t>(whole_warps(vectors_of(s, element_bytes)), 32);
  return s.rows <= most_rows && threads <= most_few_threads && s.rows <= processors * (resident / threads);
}

/// Blocks of at most 256 threads, 8 vectors each, which put most of the row into the registers of a GPU at a
/// time: a multiprocessor has room for 1024 such threads, and blocks of a cluster have to find room on 16 of
/// them.
inline std::int64_t blocks_that_fill(std::int64_t vectors) {
  std::int64_t best = most_parts, most = 0;
  for (std::int64_t parts = 2; parts <= most_parts; ++parts) {
    const std::int64_t a_block = divided_up(vectors, parts);
    if (a_block > 8 * most_cluster_threads) continue;
    const std::int64_t threads = std::max<std::int64_t>(whole_warps(divided_up(a_block, 8)), 128);
    const std::int64_t clusters = 16 * (1024 / threads) / parts;
    if (a_block * parts * clusters < most) continue;
    most = a_block * parts * clusters;
    best = parts;
  }
  return best;
}

/// Blocks a row, as measured: wide rows keep vectors in shared memory too. Narrow ones of fp32 are faster in
/// blocks of up to 96 threads, though these leave more registers empty.
inline std::int64_t cluster_parts(std::int64_t vectors, std::size_t element_bytes, bool few_rows) {
  if (vectors > 16384) return vectors > 28000 ? 16 : 8;
  if (few_rows) return vectors > 8192 ? 16 : 8;
  if (element_bytes == 4 && vectors <= 4096)
    return std::max<std::int64_t>(divided_up(vectors, std::int64_t{8} * 96), 2);
  return blocks_that_fill(vectors);
}

/// With clusters, as measured on an H200 (bench/results/h200_designs_7.json). What the registers of its
/// blocks do not hold of a row, they keep in shared memory. Few rows have no others to hide behind: half as
/// much a thread, and twice the threads.
inline split_plan cluster_plan(const matrix_shape& s, std::size_t element_bytes) {
  constexpr std::int64_t few_rows = 16;
  const std::int64_t vectors = vectors_of(s, element_bytes);
  const bool few = s.rows <= few_rows && vectors <= 16384;
  const std::int64_t parts = cluster_parts(vectors, element_bytes, few);
  const std::int64_t items = few ? items_of_few_rows : 8, a_block = divided_up(vectors, parts);
  const std::int64_t threads =
      std::clamp<std::int64_t>(whole_warps(divided_up(a_block, items)), 64, most_cluster_threads);
  const std::int64_t kept = std::clamp<std::int64_t>(a_block - items * threads, 0, most_kept);
  return {static_cast<int>(parts), static_cast<int>(threads), static_cast<int>(items),
          static_cast<int>(kept)};
}

/// With clusters: rows for which it is faster, as measured on an H200, that each block asks the cache for its
/// part of a later row (kernels/ahead.cuh). Of wider ones, each takes too much of the cache.
inline bool asks_ahead(const matrix_shape& s, std::size_t element_bytes) {
  const std::int64_t vectors = vectors_of(s, element_bytes);
  return vectors >= 512 && vectors <= (element_bytes == 4 ? 16384 : 8192);
}

/// Few rows, and so wide that clusters leave most of the GPU idle: more blocks than a cluster has, in two
/// launches, are faster even where there are clusters.
inline bool beyond_clusters(const matrix_shape& s) {
  return s.rows <= 20 && s.cols >= 32768 && s.cols >= 15000 * s.rows;
}

// The ring of ring.cuh.
inline constexpr int ring_threads = 512;  // of a block, that compute
inline constexpr int ring_items = 2;  // vectors of a chunk, a thread
inline constexpr int ring_slots = 13;  // chunks of a block in shared memory
inline constexpr int ring_held = 6;  // chunks of a row in the registers of a block
inline constexpr std::int64_t ring_chunk = ring_threads * ring_items;  // vectors

/// With clusters: rows so wide that the GPU holds few of them at a time, and few others load while a cluster
/// exchanges and stores; and enough rows that there are some to load ahead.
inline bool in_ring(const matrix_shape& s, std::size_t element_bytes) {
  constexpr std::int64_t fewest_rows = 32, widest = 100000;  // vectors
  return vectors_of(s, element_bytes) > widest && s.rows >= fewest_rows;
}

/// Blocks of a cluster of the ring, as measured on an H200 (bench/results/h200_designs_7.json): twice as many
/// clusters of half the size are faster for 16-bit values, as long as they hold the row.
inline int ring_parts(const matrix_shape& s, std::size_t element_bytes) {
  constexpr std::int64_t half = most_parts / 2, held = half * (ring_held + ring_slots) * ring_chunk;
  return element_bytes == 2 && vectors_of(s, element_bytes) <= held ? static_cast<int>(half) : most_parts;
}

/// Vectors of a row that the ring loads twice: each block's chunks beyond those that it keeps.
inline std::int64_t ring_reloads(const matrix_shape& s, std::size_t element_bytes) {
  const std::int64_t parts = ring_parts(s, element_bytes);
  const std::int64_t chunks = divided_up(divided_up(vectors_of(s, element_bytes), parts), ring_chunk);
  return parts * std::max<std::int64_t>(chunks - ring_held - ring_slots, 0) * ring_chunk;
}

/// In two launches: threads of a block. Up to 2048 columns a row is one part.
inline int part_threads(const matrix_shape& s) { return s.cols <= 2048 ? 64 : most_part_threads; }

/// In two launches: as many parts as fill a large GPU twice, at most one for every 2048 columns, and at most
/// 256, as the second launch merges one a thread.
inline int parts_of(const matrix_shape& s) {
  constexpr std::int64_t filled = 2 * 132, narrowest = 2048;
  return static_cast<int>(std::clamp<std::int64_t>(
      std::min(divided_up(filled, s.rows), divided_up(s.cols, narrowest)), 1, most_part_threads));
}

}  // namespace softmax
