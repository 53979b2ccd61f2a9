// What stage 02 says about itself. The byte model is checked against the simulator's count at every run.
#include <algorithm>
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "02",
      .folder = "stages/02_fused_row_block",
      .idea = "one kernel, one block a row, the row in registers from load to store",
      .launches = {{.kernel = "softmax_row", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}}},
      .widest_row = 16384,  // 256 threads hold 64 columns each
      // A thread adds every 256th element, then 256 threads are combined.
      .sum_depth = [](const matrix_shape& s) { return std::ceil(static_cast<double>(s.cols) / 256) + 13; },
      .pitfalls =
          {
              {.name = "zero-padding",
               .claim = "masked lanes load 0 instead of -inf: the maximum of a negative row becomes 0, and "
                        "each masked lane adds to the sum",
               .distribution = "negative",
               .cols = 1000},
              {.name = "no-max",
               .claim = "exp(x) without subtracting the maximum overflows",
               .distribution = "large",
               .cols = 1000},
              {.name = "short-block",
               .claim = "a block of fewer columns than the row leaves the rest of the row out of the sum, "
                        "and unwritten",
               .distribution = "normal",
               .cols = 1000},
          },
      .next = "make stage-03 && ./stage-03 --cols 32: what becomes of the idle lanes when rows are narrow",
  };
  return stage;
}

}  // namespace softmax
