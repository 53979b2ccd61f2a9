// What the exercise of stage 04 is held to: 4, 8 or 16 warps a block by the width of the row, and no barrier
// where the share of a row is no wider than a warp.
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

const exercise_info& this_exercise() {
  static constexpr auto rows = [](std::int64_t cols) {
    return cols <= 512 ? 8 : cols <= 1024 ? 4 : cols <= 2048 ? 2 : 1;
  };
  static constexpr auto threads = [](std::int64_t cols, int warp) {
    return warp * (cols <= 2048 ? 4 : cols <= 8192 ? 8 : 16);
  };
  static const exercise_info exercise{
      .row_threads =
          [](const exercise_case& c) { return threads(c.shape.cols, c.warp) / rows(c.shape.cols); },
      .padded =
          [](const exercise_case& c) {
            const int share = threads(c.shape.cols, c.warp) / rows(c.shape.cols);
            return share * power_above(ceiling(c.shape.cols, share));
          },
      .masked_in_sum = true,
      .launches =
          [](const exercise_case& c) {
            const matrix_shape& s = c.shape;
            const std::int64_t blocks = ceiling(s.rows, rows(s.cols));
            const int block = threads(s.cols, c.warp);
            return std::vector<launch_claim>{{blocks, block, block / rows(s.cols) > c.warp ? 4 * blocks : 0}};
          },
      .widths = {512, 513, 2049, 8193},
  };
  return exercise;
}

}  // namespace softmax::workbook
