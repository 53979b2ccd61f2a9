#pragma once
/// @file
/// The middle of a set of samples.
#include <algorithm>
#include <vector>

namespace softmax {

/// The middle value, the upper one of two; 0 if there is none.
inline double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace softmax
