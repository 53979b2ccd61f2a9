// What stage 01 says about itself. The byte model is checked against the simulator's count at every run.
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info stage{
      .number = "01",
      .folder = "stages/01_three_kernels",
      .idea = "three kernels: row maximum, row sum of exponentials, normalise",
      .launches =
          {
              {.kernel = "max_rows", .reads_storage = {.mn = 1}, .writes_f32 = {.m = 1}},
              {.kernel = "sum_rows",
               .reads_storage = {.mn = 1},
               .reads_f32 = {.m = 1},
               .writes_f32 = {.m = 1}},
              {.kernel = "normalise",
               .reads_storage = {.mn = 1},
               .reads_f32 = {.m = 2},
               .writes_storage = {.mn = 1}},
          },
      .workspace = {.m = 2},
      // A thread adds every 256th element, then 256 threads are combined.
      .sum_depth = [](const matrix_shape& s) { return std::ceil(static_cast<double>(s.cols) / 256) + 13; },
      .next = "make stage-02 && ./stage-02: keep the row on the chip, and read it once",
  };
  return stage;
}

}  // namespace softmax
