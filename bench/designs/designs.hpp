#pragma once
/// @file
/// The designs that this folder compares. A design is launched through the plan of a call: plan.variant is
/// its number in the list, counted from 1.
#include <string>
#include <vector>

#include "numerics/dtype.hpp"
#include "numerics/shape.hpp"

namespace softmax {

struct design_facts {
  std::string name;  ///< "ring"
  std::string parameters;  ///< "C4 T512 I2 S12"
  std::int64_t narrowest, widest;  ///< columns; outside, it cannot be launched or is not worth measuring
  std::int64_t fewest_rows, most_rows;  ///< likewise
};

/// All designs for matrices of this type, in the order of their numbers.
const std::vector<design_facts>& designs_of(dtype type);

}  // namespace softmax
