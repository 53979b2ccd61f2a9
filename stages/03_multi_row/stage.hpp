// What stage 03 says about itself. The byte model is checked against the simulator's count at every run.
#include <algorithm>
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "03",
      .folder = "stages/03_multi_row",
      .idea = "several narrow rows share a block, so that no lane is idle",
      .launches = {{.kernel = "softmax_rows", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}}},
      .widest_row = 16384,  // 256 threads hold 64 columns each
      // A thread adds at most 64 elements of its row, then at most 256 threads are combined.
      .sum_depth = [](const matrix_shape& s) { return std::min(static_cast<double>(s.cols), 64.0) + 13; },
      .pitfalls =
          {{.name = "one-row-a-block",
            .claim =
                "a block for each narrow row: right, but most lanes hold nothing and few bytes are in flight",
            .distribution = "normal",
            .cols = 32,
            .is_right = true}},
      .next = "make stage-04 && ./stage-04 --tune: how many warps a block should have",
  };
  return stage;
}

}  // namespace softmax
