#pragma once
/// @file
/// What a stage says about itself: name, limits, and the bytes it promises to move. The simulator holds it to
/// that.
#include <cstdint>
#include <string>
#include <vector>

#include "numerics/dtype.hpp"
#include "numerics/shape.hpp"
#include "numerics/verify.hpp"

namespace softmax {

/// mn * M * N + m * M elements.
struct element_count {
  std::int64_t mn = 0;  ///< matrices
  std::int64_t m = 0;  ///< columns of row results

  /// Elements, for matrices of shape s.
  std::int64_t of(const matrix_shape& s) const { return mn * s.rows * s.cols + m * s.rows; }
  /// Term by term.
  element_count operator+(const element_count& o) const { return {mn + o.mn, m + o.m}; }
  /// Equal in both terms.
  bool operator==(const element_count& o) const { return mn == o.mn && m == o.m; }
  /// "5MN+2M"
  std::string text() const;
};

/// Bytes that any softmax has to move: each element read once and written once. What GB/s are counted with.
std::int64_t useful_bytes(const matrix_shape& s, dtype t);

/// What one launch of a stage moves. Elements of the matrices x and y have the storage type, intermediate
/// results fp32.
struct kernel_model {
  std::string kernel;  ///< name of the `__global__` function
  element_count reads_storage;  ///< elements of x and y
  element_count reads_f32;  ///< elements of intermediate results
  element_count writes_storage;  ///< elements of x and y
  element_count writes_f32;  ///< elements of intermediate results

  /// Both kinds together.
  element_count reads() const { return reads_storage + reads_f32; }
  /// Both kinds together.
  element_count writes() const { return writes_storage + writes_f32; }
  /// Bytes read, where x and y have type t.
  std::int64_t read_bytes(const matrix_shape& s, dtype t) const;
  /// Bytes written, where x and y have type t.
  std::int64_t write_bytes(const matrix_shape& s, dtype t) const;
};

/// A mistake worth seeing: code beside the kernel that makes it, and an input that shows it.
struct pitfall_info {
  std::string name;  ///< for --pitfall
  std::string claim;  ///< what goes wrong, one line
  std::string distribution;  ///< of the input, as for --dist
  std::int64_t rows = 4;  ///< of the input
  std::int64_t cols = 0;  ///< of the input
  dtype type = dtype::f32;  ///< of x and y
  bool is_right = false;  ///< the result is right, and the cost is what goes wrong
};

/// One stage of the workbook.
struct stage_info {
  std::string number;  ///< "01"
  std::string folder;  ///< "stages/01_three_kernels"
  std::string idea;  ///< one line
  std::vector<kernel_model> launches;  ///< in order; none when M = 0 or N = 0
  element_count workspace;  ///< fp32 elements of scratch memory
  /// Sets launches and workspace where they depend on the shape, the type, or on how many blocks a
  /// cluster of the GPU may have.
  void (*fit)(stage_info&, const matrix_shape&, dtype, int cluster_blocks) = nullptr;
  bool uses_clusters = false;  ///< puts a row on a cluster of blocks where the GPU has them
  std::int64_t widest_row = 0;  ///< most columns; 0: no limit
  std::string wider = "05";  ///< the stage for rows beyond that
  /// Most additions on the way of one term into the row sum: the error bound grows with it.
  double (*sum_depth)(const matrix_shape&) = nullptr;
  /// Roundings of an exponent on its way from x to exp(x - max): 1 where only the difference is rounded.
  double exponent_roundings = 1;
  bool bits_depend_on_rows = false;  ///< a row's sum is added in another order among more or fewer rows
  double extra_ulp = 0;  ///< of a 16-bit result that somebody else's code need not round to nearest
  bool tunable = false;  ///< takes a launch_plan
  std::vector<pitfall_info> pitfalls;  ///< mistakes that it can show
  std::string next;  ///< what to try next, one line

  element_count reads() const;  ///< of all launches together
  element_count writes() const;  ///< of all launches together
  /// Bytes that all launches together promise to read, where x and y have type t.
  std::int64_t read_bytes(const matrix_shape& s, dtype t) const;
  /// Bytes that they promise to write.
  std::int64_t write_bytes(const matrix_shape& s, dtype t) const;
};

/// The stage with the launches and the workspace that it has for this shape and type.
stage_info fitted(const stage_info& stage, const matrix_shape& s, dtype t, int cluster_blocks);

/// How far a result of this stage may be from the exact one, see error_limit().
error_model errors_of(const stage_info& stage, const matrix_shape& s);

/// Why the stage does not take the shape, in one sentence; empty if it does.
std::string stage_problem(const stage_info& stage, const matrix_shape& s);

/// overlap_problem() for matrices of a type.
std::string overlap_problem(const void* x, const void* y, const matrix_shape& s, dtype t);

/// The stage that this program is built from; defined by the stage's own stage.hpp.
const stage_info& this_stage();

}  // namespace softmax
