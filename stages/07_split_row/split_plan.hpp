#pragma once
// How many blocks share a row, and how many threads each has. stage.hpp derives the byte model from it.
#include <algorithm>
#include <cstdint>

#include "numerics/shape.hpp"

namespace softmax {

inline constexpr int most_parts = 16;  // blocks of a cluster
inline constexpr int most_cluster_threads = 256;  // of a block in a cluster
inline constexpr int part_values = 16;  // without clusters: of a row, in the registers of a thread
inline constexpr int most_part_threads = 256;  // without clusters: of a block

/// A row over the blocks of a cluster.
struct split_plan {
  int parts;  ///< blocks a row
  int threads;  ///< a block, a multiple of every warp
  int items;  ///< vectors of 16 bytes in the registers of a thread
  int kept;  ///< vectors in the shared memory of a block
};

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// With clusters, as measured on an H200 (bench/results/h200_designs_4.json). As few blocks as hold the row
/// with 128 to 256 threads each; what 16 blocks do not hold in registers, they keep in shared memory. Few
/// rows have no others to hide behind: half as much a thread, and twice the threads.
inline split_plan cluster_plan(const matrix_shape& s, std::size_t element_bytes) {
  constexpr std::int64_t few_rows = 160, most_kept = 200 * 1024 / 16;
  const std::int64_t vectors = s.cols * static_cast<std::int64_t>(element_bytes) / 16;
  const bool few = s.rows <= few_rows && vectors <= 16384;
  const std::int64_t half = few ? vectors : divided_up(vectors, 2);
  const std::int64_t parts = half > 8192 ? 16 : half > 2048 ? 8 : half > 1024 ? 4 : 1, items = few ? 4 : 8;
  const std::int64_t a_block = divided_up(vectors, parts);
  const std::int64_t threads =
      std::min<std::int64_t>(divided_up(a_block, items * 64) * 64, most_cluster_threads);
  const std::int64_t kept = std::clamp<std::int64_t>(a_block - items * most_cluster_threads, 0, most_kept);
  return {static_cast<int>(parts), static_cast<int>(std::max<std::int64_t>(threads, 64)),
          static_cast<int>(items), static_cast<int>(kept)};
}

/// Very few and very wide rows: more blocks than a cluster has, in two launches, are faster even where there
/// are clusters.
inline bool beyond_clusters(const matrix_shape& s) { return s.rows <= 2 && s.cols >= 200000; }

/// Without clusters: threads of a block.
inline int part_threads(const matrix_shape& s) { return s.cols <= 2048 ? 64 : most_part_threads; }

/// Without clusters: as many parts as fill a large GPU twice, none of them narrower than 2048 columns.
inline int parts_of(const matrix_shape& s) {
  constexpr std::int64_t filled = 2 * 132, narrowest = 2048;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(divided_up(filled, s.rows), s.cols / narrowest),
                                                   1, most_part_threads));
}

}  // namespace softmax
