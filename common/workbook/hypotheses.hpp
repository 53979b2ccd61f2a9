#pragma once
/// @file
/// Known mistakes, each as a prediction: what a kernel gives that does all right but one thing.
#include <functional>
#include <string>
#include <vector>

#include "numerics/reference.hpp"
#include "workbook/checker.hpp"

namespace softmax::workbook {

/// One case as the hypotheses see it: values of x, and the right answer.
struct view {
  const case_run* run;
  std::int64_t rows, cols;
  std::vector<std::vector<float>> x;
  std::vector<std::vector<double>> want;
  std::vector<row_facts> facts;

  explicit view(const case_run& r);
  double got(std::int64_t row, std::int64_t col) const { return run->y.at(row, col); }
  bool is_written(std::int64_t row, std::int64_t col) const;
  /// The element is wrong beyond any rounding.
  bool fails(std::int64_t row, std::int64_t col) const;
};

/// A prediction for the whole matrix, row by row.
using prediction = std::vector<std::vector<float>>;

/// Every element of the output is as predicted.
bool agrees(const view& v, const prediction& p);

struct hypothesis {
  std::string label;
  std::string evidence;  ///< what can be said if all agrees
  std::function<prediction(const view&)> predict;
  std::function<bool(const view&)> applies = {};  ///< to this stage and width; empty: always
};
/// The more telling ones first.
const std::vector<hypothesis>& hypotheses();

}  // namespace softmax::workbook
