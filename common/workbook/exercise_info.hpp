#pragma once
/// @file
/// What the exercise of a stage is held to, beyond values and bytes: the shape of its launches, its barriers,
/// and how the columns of a row are spread over threads. Defined by the stage's own exercise.hpp.
#include <cstdint>
#include <vector>

#include "numerics/shape.hpp"

namespace softmax::workbook {

/// What one launch looks like.
struct launch_claim {
  std::int64_t grid = 0;
  int block = 0;
  std::int64_t barriers = 0;  ///< summed over blocks
};

struct exercise_info {
  /// Threads that share a row: column c belongs to thread c % row_threads.
  int (*row_threads)(std::int64_t cols, int warp) = nullptr;
  /// Columns that a row is padded to.
  std::int64_t (*padded)(std::int64_t cols, int warp) = nullptr;
  /// Masked lanes take part in the sum, as exp(-inf - m).
  bool masked_in_sum = false;
  /// Columns that a thread loads before it rescales its sum; 0 where nothing is rescaled.
  int batch = 0;
  std::vector<launch_claim> (*launches)(const matrix_shape& s, int warp) = nullptr;
  /// Further numbers of columns to try: where this stage changes its ways.
  std::vector<std::int64_t> widths;
};

/// The exercise of the stage that this program is built from.
const exercise_info& this_exercise();

/// The power of two at or above n.
constexpr std::int64_t power_above(std::int64_t n) {
  std::int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}
constexpr std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace softmax::workbook
