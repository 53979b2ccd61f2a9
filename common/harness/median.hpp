#pragma once
/// @file
/// The median that times are reported by.
#include <algorithm>
#include <vector>

namespace softmax {

/// The value in the middle; of two, the larger. There is at least one.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace softmax
