#pragma once
/// @file
/// The shape of a launch, where a stage lets it be chosen.

namespace softmax {

/// 0 leaves a value to the stage's own rule.
struct launch_plan {
  int warps = 0;  ///< of a block
  int rows = 0;  ///< of a block, a power of two
};

}  // namespace softmax
