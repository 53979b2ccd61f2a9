// What the benchmark knows of cuDNN. It states no byte model.
#include <cmath>

#include "harness/stage_info.hpp"

namespace softmax {

const stage_info& this_stage() {
  static const stage_info peer{
      .number = SOFTMAX_CUDNN_NAME,
      .folder = "bench/peers/cudnn",
      .idea = "cudnnSoftmaxForward, accurate algorithm",
      // How it sums is not published: a sum one by one is the worst it can be.
      .sum_depth = [](const matrix_shape& s) { return static_cast<double>(s.cols); },
      .extra_ulp = 1,
      .next = "",
  };
  return peer;
}

}  // namespace softmax
