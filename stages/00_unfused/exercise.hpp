// What the exercise of stage 00 is held to. Barriers: two in each reduction and each block_load, a row.
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

const exercise_info& this_exercise() {
  static const exercise_info exercise{
      .row_threads = [](const exercise_case&) { return 256; },
      .padded = [](const exercise_case& c) { return ceiling(c.shape.cols, 256) * 256; },
      .launches =
          [](const exercise_case& c) {
            const auto m = c.shape.rows;
            return std::vector<launch_claim>{
                {m, 256, 2 * m}, {m, 256, 2 * m}, {m, 256, 0}, {m, 256, 2 * m}, {m, 256, 2 * m}};
          },
      .widths = {},
  };
  return exercise;
}

}  // namespace softmax::workbook
