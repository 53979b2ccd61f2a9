// What stage 00 says about itself. The byte model is checked against the simulator's count at every run.
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "00",
      .folder = "stages/00_unfused",
      .idea = "five kernels, as an eager framework runs softmax: every intermediate goes through memory",
      .launches =
          {
              {.kernel = "reduce_rows", .reads_storage = {.mn = 1}, .writes_f32 = {.m = 1}},
              {.kernel = "subtract_max",
               .reads_storage = {.mn = 1},
               .reads_f32 = {.m = 1},
               .writes_f32 = {.mn = 1}},
              {.kernel = "exponentiate", .reads_f32 = {.mn = 1}, .writes_f32 = {.mn = 1}},
              {.kernel = "reduce_rows", .reads_f32 = {.mn = 1}, .writes_f32 = {.m = 1}},
              {.kernel = "divide", .reads_f32 = {.mn = 1, .m = 1}, .writes_storage = {.mn = 1}},
          },
      .workspace = {.mn = 2, .m = 2},
      // A thread adds every 256th element, then 256 threads are combined.
      .sum_depth = [](const matrix_shape& s) { return std::ceil(static_cast<double>(s.cols) / 256) + 13; },
      .next =
          "make stage-01 && ./stage-01: keep nothing that can be computed again, and read 3MN instead of 5MN",
  };
  return stage;
}

}  // namespace softmax
