// The learner's formulas, from the end of the exercise. A file without them predicts nothing.
#include "kernel.cuh"
#include "workbook/prediction.hpp"

namespace softmax {
namespace {

std::int64_t reads(...) { return 0; }
std::int64_t writes(...) { return 0; }

}  // namespace

workbook::predicted workbook::learners_prediction(std::int64_t rows, std::int64_t cols) {
  return {.reads = reads(rows, cols), .writes = writes(rows, cols)};
}

}  // namespace softmax
