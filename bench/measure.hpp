#pragma once
/// @file
/// One point of a benchmark: a stage at one shape, checked before and after it is timed, beside the copy
/// kernels over the same bytes.
#include <optional>
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace softmax {

/// A rule of honest timing that can be broken on purpose, to see the number it protects from.
struct timing_lie {
  std::string name;
  std::string what;  ///< one line
};
/// allocate, cold, l2, nosync, zeros
const std::vector<timing_lie>& timing_lies();

struct bench_point {
  dtype type = dtype::f32;
  matrix_shape shape;
  std::string lie;  ///< empty or "none": every rule is kept
  bool warm = false;  ///< time on one set of buffers, so that the cache may serve what fits
  int samples = 25;
  launch_plan plan{};  ///< for stages that take one
};

struct measured {
  std::string problem;  ///< why there is no time, in one sentence; empty if there is
  std::vector<double> seconds;  ///< a call, one value for each sample; empty on the simulator
  copy_times copy;  ///< in the same process, over the same buffers
  verdict check;  ///< of a sample of rows, the worse of before and after
  std::optional<ledger> counted;  ///< simulator only
};

/// Measures a point. What goes wrong with it is told in `problem`: the points after it can still be measured.
measured measure(const bench_point& point, const stage_info& stage, chosen_device& device);

}  // namespace softmax
