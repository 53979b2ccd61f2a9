// What the benchmark knows of stage 06 with other distances. They state no byte model.
#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info distances{
      .number = "distances",
      .folder = "bench/distances",
      .idea = "Stage 06, by how far ahead it asks the cache",
      .sum_depth = [](const matrix_shape&) { return 512.0; },
      .exponent_roundings = 2.5,
      .next = "",
  };
  return distances;
}

}  // namespace softmax
