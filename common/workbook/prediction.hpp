#pragma once
/// @file
/// Predict, then measure: the learner's formulas for what a stage moves, against what was counted.
#include <cstdint>
#include <functional>
#include <string>

#include "harness/stage_info.hpp"

namespace softmax::workbook {

/// reads(M, N) and writes(M, N) as the learner's file has them.
struct predicted {
  std::int64_t reads = 0, writes = 0;
};
predicted learners_prediction(std::int64_t rows, std::int64_t cols);

struct grade {
  bool attempted = false;
  bool right = false;
  std::string text;  ///< one line
};

using formula = std::function<std::int64_t(std::int64_t, std::int64_t)>;

/// Compares a formula with what the stage was counted to move, and names the term that is off. `what` is
/// "reads" or "writes".
grade grade_formula(const std::string& what, const formula& learner, const stage_info& stage);

}  // namespace softmax::workbook
