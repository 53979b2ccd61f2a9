// What stage 06 says about itself. The byte model is checked against the simulator's count at every run.
#include "harness/stage_info.hpp"
#include "tile_shape.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "06",
      .folder = "stages/06_vectorized",
      .idea =
          "16 bytes an access at any width and alignment, one exponential an element, one reciprocal a row",
      .launches = {{.kernel = "softmax_rows", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}}},
      .fit =
          [](stage_info& stage, const matrix_shape& s, dtype t, int) {
            if (in_tile(s, size_of(t))) stage.launches[0].kernel = "softmax_tile";
          },
      .widest_row = 32768,  // 1024 threads hold 32 columns each
      .wider = "07",
      // A thread adds at most 32 + 4 values; lanes and warps are merged in two times at most 6 steps, each
      // with an exponential, two products and a sum.
      .sum_depth = [](const matrix_shape&) { return 36.0 + 12 * 6; },
      .exponent_roundings = 2.5,  // the difference, its product with log2(e), and log2(e); folded, one less
      .pitfalls =
          {{.name = "own-maximum",
            .claim = "sums relative to different maxima are added: results are off, and rows still sum to 1",
            .distribution = "normal",
            .cols = 4096}},
      .next = "make stage-07 && ./stage-07 --cols 131072: a row over several blocks",
  };
  return stage;
}

}  // namespace softmax
