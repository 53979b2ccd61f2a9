#pragma once
// How many blocks share a row, and how many threads each has. stage.hpp derives the byte model from it.
#include <algorithm>
#include <cstdint>

#include "numerics/shape.hpp"

namespace softmax {

inline constexpr int most_parts = 16;  // blocks of a cluster
inline constexpr int held_values = 32;  // registers a thread spends on the row
inline constexpr int most_part_threads = 256;  // of a block, without clusters

struct split_plan {
  int parts;  ///< blocks a row
  int threads;  ///< a block, a multiple of every warp
};

inline std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The power of two at or above n.
inline std::int64_t power_above(std::int64_t n) {
  std::int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/// With clusters, as measured on an H200 (bench/results/h200_designs.json). Few rows take as many blocks as
/// are worth their exchange, many rows as few as hold the row. Of 16-bit rows the blocks hold half or less:
/// to read the rest again from the cache costs less than more blocks.
inline split_plan cluster_plan(const matrix_shape& s, std::size_t element_bytes) {
  const bool wide = s.cols > 131072, four_bytes = element_bytes == 4, few = s.rows <= 8;
  const std::int64_t worthwhile = s.rows <= 4 && s.cols >= 65536 ? 16
                                  : s.rows <= 32                 ? 8
                                  : wide && !four_bytes          ? 8
                                                                 : 1;
  const std::int64_t needed = few ? 1 : power_above(divided_up(s.cols, wide && !four_bytes ? 65536 : 16384));
  const std::int64_t parts = std::clamp<std::int64_t>(needed, worthwhile, most_parts);
  const std::int64_t threads = divided_up(divided_up(s.cols, parts * held_values), 64) * 64;
  return {static_cast<int>(parts),
          static_cast<int>(std::min<std::int64_t>(threads, few || four_bytes || wide ? 512 : 256))};
}

/// Very few and very wide rows: more blocks than a cluster has, in two launches, are faster even where there
/// are clusters.
inline bool beyond_clusters(const matrix_shape& s) { return s.rows <= 2 && s.cols >= 200000; }

/// Without clusters: threads of a block.
inline int part_threads(const matrix_shape& s) { return s.cols <= 2048 ? 64 : most_part_threads; }

/// Without clusters: as many parts as fill a large GPU twice, none of them narrower than 4096 columns.
inline int parts_of(const matrix_shape& s) {
  constexpr std::int64_t filled = 2 * 132, narrowest = 4096;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(divided_up(filled, s.rows), s.cols / narrowest),
                                                   1, most_part_threads / 2));
}

}  // namespace softmax
