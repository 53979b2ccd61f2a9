// What the exercise of stage 07 is held to: the two launches that every GPU has, with one barrier a part
// each, where the warps of a block merge their states.
#include "split_plan.hpp"
#include "workbook/exercise_info.hpp"

namespace softmax::workbook {

const exercise_info& this_exercise() {
  // Threads of all blocks of a row.
  static constexpr auto row_threads = [](const exercise_case& c) {
    return parts_of(c.shape) * part_threads(c.shape);
  };
  static const exercise_info exercise{
      .row_threads = row_threads,
      .holder_of =
          [](const exercise_case& c, std::int64_t row, std::int64_t col) {
            const vector_column v = in_vectors(c, row, col);
            const int threads = row_threads(c), items = part_values / elements_a_vector(c.type);
            return holder{v.number % threads, v.edge ? 0 : v.number / threads / items};
          },
      .part_threads = [](const exercise_case& c) { return part_threads(c.shape); },
      .padded = [](const exercise_case& c) { return c.shape.cols; },
      .batch = part_values,
      .launches =
          [](const exercise_case& c) {
            const std::int64_t blocks = c.shape.rows * parts_of(c.shape);
            const launch_claim each{blocks, part_threads(c.shape), blocks};
            return std::vector<launch_claim>{each, each};
          },
      // Both numbers of a state are loads of their own, and many parts read many states.
      .leaves_gaps = [](const exercise_case& c) { return rows_apart(c) || parts_of(c.shape) > 64; },
      .widths = {4099, 12301},
      // The last two: more parts than a warp has lanes, in two launches on every GPU; and rows enough that a
      // block takes several trips over each.
      .cases = {{"normal", 11, 3},
                {"mixed", 5, 12301, dtype::f16},
                {"normal", 3, 9001, dtype::f32, 9010, 9003},
                {"normal", 1, 140003},
                {"mixed", 264, 8210}},
  };
  return exercise;
}

}  // namespace softmax::workbook
