// What the exercise of stage 00 is held to. Barriers: two in each reduction and each block_load, a row.
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

const exercise_info& this_exercise() {
  static const exercise_info exercise{
      .row_threads = [](std::int64_t, int) { return 256; },
      .padded = [](std::int64_t cols, int) { return ceiling(cols, 256) * 256; },
      .launches =
          [](const matrix_shape& s, int) {
            const auto m = s.rows;
            return std::vector<launch_claim>{
                {m, 256, 2 * m}, {m, 256, 2 * m}, {m, 256, 0}, {m, 256, 2 * m}, {m, 256, 2 * m}};
          },
      .widths = {},
  };
  return exercise;
}

}  // namespace softmax::workbook
