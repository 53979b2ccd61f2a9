// What the exercise of stage 06 is held to. How many lanes a narrow row gets is the learner's choice, as long
// as no row has more than twice the lanes that its vectors fill. Barriers: one where warps merge, a row. What
// is tried is the learner's kernel: no case is one that tile.cuh takes.
#include "tile_shape.hpp"
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

static_assert(widest_in_tile < 333, "333 columns of bf16 side by side are a case of every exercise");

const exercise_info& this_exercise() {
  // The lanes that the stage gives a row.
  static constexpr auto lanes = [](const exercise_case& c) {
    const std::int64_t vectors = c.shape.cols / elements_a_vector(c.type);
    const int most = 32 / elements_a_vector(c.type);  // vectors a thread
    const auto whole_warps = [&](int items) {
      return static_cast<int>(ceiling(vectors, std::int64_t{items} * c.warp)) * c.warp;
    };
    if (!rows_apart(c)) {
      if (vectors <= 4) return 4;
      if (vectors <= 16) return 8;
      if (vectors <= (c.type == dtype::f32 ? 40 : 56)) return 16;
      if (vectors <= (c.type == dtype::f32 ? 128 : 192)) return 32;
      if (c.type == dtype::f32 && vectors <= 256) return whole_warps(2);
    }
    return vectors > 0 ? whole_warps(most) : c.warp;
  };
  static const exercise_info exercise{
      .row_threads = lanes,
      .holder_of =
          [](const exercise_case& c, std::int64_t row, std::int64_t col) {
            return holder{.thread = in_vectors(c, row, col).number % lanes(c)};
          },
      .padded = [](const exercise_case& c) { return c.shape.cols; },
      .launches =
          [](const exercise_case& c) {
            const std::int64_t rows = c.shape.rows, vectors = c.shape.cols / elements_a_vector(c.type);
            if (rows_apart(c)) return std::vector<launch_claim>{{rows, lanes(c), rows}};
            const std::int64_t most = std::max<std::int64_t>(4, power_above(vectors));
            return std::vector<launch_claim>{{.barriers = rows, .most_threads = rows * most}};
          },
      .leaves_gaps = rows_apart,
      .widths = {516, 2053, 8209},
      .cases = {{"normal", 11, 3},
                {"mixed", 13, 6, dtype::f16, 7, 7},
                {"mixed", 20, 64},
                {"normal", 5, 1205, dtype::f32, 1209, 1206},
                {"mixed", 40, 2053},
                {"mixed", 20, 2053, dtype::bf16}},
  };
  return exercise;
}

}  // namespace softmax::workbook
