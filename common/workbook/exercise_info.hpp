#pragma once
/// @file
/// What the exercise of a stage is held to, beyond values and bytes: the shape of its launches, its barriers,
/// and how the columns of a row are spread over threads. Defined by the stage's own exercise.hpp.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "numerics/dtype.hpp"
#include "numerics/shape.hpp"

namespace softmax::workbook {

/// What the learner's kernel is tried with.
struct test_case {
  std::string distribution;
  std::int64_t rows = 0, cols = 0;
  dtype type = dtype::f32;
  std::int64_t ld_in = 0, ld_out = 0;  ///< 0: cols
};

/// A case as a stage's rules see it.
struct exercise_case {
  matrix_shape shape;
  dtype type = dtype::f32;
  int warp = 32;
};

/// What one launch looks like.
struct launch_claim {
  std::int64_t grid = 0;
  int block = 0;
  std::int64_t barriers = 0;  ///< summed over blocks
  /// Where the learner chooses grid and block: no more blocks than this many threads need, and no more
  /// barriers than claimed. 0: grid, block and barriers are as claimed.
  std::int64_t most_threads = 0;
};

/// Who holds a column of a row.
struct holder {
  std::int64_t thread = 0;  ///< of those that share the row
  std::int64_t trip = 0;  ///< in which trip of its loop, where a stage streams
  int place = 0;  ///< among the columns of the trip
};

struct exercise_info {
  /// Threads that share a row: column c belongs to thread c % row_threads, unless holder_of says otherwise.
  int (*row_threads)(const exercise_case& c) = nullptr;
  holder (*holder_of)(const exercise_case& c, std::int64_t row, std::int64_t col) = nullptr;
  /// Of the threads of a row, those in one block; none: all are.
  int (*part_threads)(const exercise_case& c) = nullptr;
  /// Columns that a row is padded to.
  std::int64_t (*padded)(const exercise_case& c) = nullptr;
  /// Masked lanes take part in the sum, as exp(-inf - m).
  bool masked_in_sum = false;
  /// Columns that a thread loads before it rescales its sum; 0 where nothing is rescaled.
  int batch = 0;
  std::vector<launch_claim> (*launches)(const exercise_case& c) = nullptr;
  /// Cases in which the stage itself leaves gaps between the columns of neighbouring lanes; none: it never
  /// does.
  bool (*leaves_gaps)(const exercise_case& c) = nullptr;
  /// Further numbers of columns to try: where this stage changes its ways.
  std::vector<std::int64_t> widths;
  /// Further cases to try, after all others.
  std::vector<test_case> cases;
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

// --- rows taken 16 bytes at a time, of matrices that start on a multiple of 16 bytes

inline int elements_a_vector(dtype t) { return 16 / static_cast<int>(size_of(t)); }

/// Where a column lies in its row.
struct vector_column {
  bool edge = false;  ///< in no whole vector
  std::int64_t number = 0;  ///< of the vector, or of the edge element, the first ones of the row first
};
inline vector_column in_vectors(const exercise_case& c, std::int64_t row, std::int64_t col) {
  const std::int64_t size = elements_a_vector(c.type), past = row * c.shape.ld_in % size;
  const std::int64_t head = std::min((size - past) % size, c.shape.cols);
  const std::int64_t vectors = (c.shape.cols - head) / size;
  if (col < head) return {true, col};
  if (col >= head + vectors * size) return {true, col - vectors * size};
  return {false, (col - head) / size};
}

/// Rows of y start elsewhere within 16 bytes than those of x do.
inline bool rows_apart(const exercise_case& c) {
  return c.shape.rows > 1 && (c.shape.ld_in - c.shape.ld_out) % elements_a_vector(c.type) != 0;
}

}  // namespace softmax::workbook
