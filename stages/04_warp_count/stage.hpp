// What stage 04 says about itself. The byte model is checked against the simulator's count at every run.
#include <algorithm>
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "04",
      .folder = "stages/04_warp_count",
      .idea = "as many warps a block as the width of a row asks for, and a tuner that doubts the rule",
      .launches = {{.kernel = "softmax_rows", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}}},
      .widest_row = 32768,  // 512 threads hold 64 columns each, or 1024 hold 32
      // A thread adds at most 64 elements of its row, then lanes and at most 32 warps are combined.
      .sum_depth = [](const matrix_shape& s) { return std::min(static_cast<double>(s.cols), 64.0) + 38; },
      .tunable = true,
      .next = "make stage-05 && ./stage-05 --cols 200000: rows that no block can hold",
  };
  return stage;
}

}  // namespace softmax
