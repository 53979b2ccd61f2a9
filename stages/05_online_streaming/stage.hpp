// What stage 05 says about itself. The byte model is checked against the simulator's count at every run.
#include <algorithm>
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "05",
      .folder = "stages/05_online_streaming",
      .idea = "one pass for a running maximum and a rescaled sum, one pass to write: rows of any width",
      .launches = {{.kernel = "softmax_row", .reads_storage = {.mn = 2}, .writes_storage = {.mn = 1}}},
      // A thread adds every 512th element and may rescale its sum once in 2048 columns, an exponential and a
      // product each time; then 5 or 6 steps in a warp and up to 16 warps are merged, two exponentials, two
      // products and a sum each.
      .sum_depth =
          [](const matrix_shape& s) {
            return std::ceil(static_cast<double>(s.cols) / 512) +
                   5 * std::ceil(static_cast<double>(s.cols) / 2048) + 6 * 22;
          },
      .pitfalls =
          {{.name = "fp16-sum",
            .claim =
                "a sum kept in fp16 ends at 65504: with more equal columns it is infinite and the result 0",
            .distribution = "const:0",
            .cols = 100000,
            .type = dtype::f16}},
      .next =
          "compare with ./stage-04 at --cols 8192: what does the second read cost, and when does the cache "
          "pay for it",
  };
  return stage;
}

}  // namespace softmax
