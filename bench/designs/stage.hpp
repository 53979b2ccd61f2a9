// What the benchmark knows of the designs. They state no byte model.
#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info designs{
      .number = "designs",
      .folder = "bench/designs",
      .idea = "Kernels for wide rows beside stage 07",
      .workspace = {.m = 512},  // two numbers for each of at most 256 parts
      .sum_depth = [](const matrix_shape&) { return 512.0; },
      .exponent_roundings = 2.5,
      .next = "",
  };
  return designs;
}

}  // namespace softmax
