#pragma once
/// @file
/// Runs a learner's kernel over shapes and data that tell mistakes apart, and keeps what happened.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/backend.hpp"
#include "harness/stage_info.hpp"
#include "numerics/verify.hpp"
#include "simt/sim/control.hpp"
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

/// The cases of an exercise, the simplest first. The kernel's author does not see them.
std::vector<test_case> hidden_cases(const stage_info& stage, const exercise_info& exercise);

/// What one case did.
struct case_run {
  matrix_shape shape;
  dtype type = dtype::f32;
  std::string distribution;
  int warp = 32;
  bool simulated = true;
  host_matrix x, y;
  verdict check;
  std::optional<simt::fault> fault;
  std::string refused;  ///< what the launch threw, where it was no fault
  std::string damage;  ///< written where nothing may be written
  std::vector<simt::launch_record> launches;  ///< simulator only
  std::vector<launch_claim> claims;
  std::int64_t model_reads = 0, model_writes = 0;  ///< bytes
  int row_threads = 1;
  int part_threads = 1;  ///< of those, in one block
  std::int64_t padded = 0;
  bool masked_in_sum = false;
  int batch = 0;
  bool leaves_gaps = false;
  holder (*holder_of)(const exercise_case& c, std::int64_t row, std::int64_t col) = nullptr;

  exercise_case rules() const { return {shape, type, warp}; }
  /// Who holds the column; columns of the padding come after the row's own.
  holder held_by(std::int64_t row, std::int64_t col) const;
  bool ran() const { return !fault && refused.empty(); }
  bool values_right() const { return ran() && damage.empty() && check.pass; }
  /// The first launch whose lanes do not touch neighbouring columns: more sectors than their bytes can need.
  const simt::launch_record* scattered() const;
  /// The first launch that leaves a wide row to a few lanes of each warp.
  const simt::launch_record* few_lanes() const;
  /// Launches, bytes, grid, block and barriers are as the stage claims, and lanes share sectors.
  bool counts_right() const;
  bool pass() const { return values_right() && counts_right(); }
};

case_run run_case(backend& machine, const stage_info& stage, const exercise_info& exercise,
                  const test_case& c, int warp);

/// Runs all cases at each of the warp widths; a GPU has one, and the simulator both.
/// `before` hears of each case before it runs. Without `all_types`, only fp32 is stored.
std::vector<case_run> run_cases(backend& machine, const stage_info& stage, const exercise_info& exercise,
                                const std::vector<int>& warps,
                                const std::function<void(const std::string&)>& before = {},
                                bool all_types = true);

/// "7x781 f32"; strides are named where there is padding.
std::string case_text(const case_run& r);

}  // namespace softmax::workbook
