#pragma once
/// @file
/// The shape of a launch, where a stage lets it be chosen, and which shapes a row allows.
#include <cstdint>
#include <string>
#include <vector>

namespace softmax {

/// 0 leaves a value to the stage's own rule.
struct launch_plan {
  int warps = 0;  ///< of a block
  int rows = 0;  ///< of a block, a power of two
  int variant = 0;  ///< which kernel, counted from 1, where a program compares several
};

/// What a plan leaves to a thread, and why that cannot be launched.
struct plan_share {
  launch_plan plan{};  ///< the plan
  int row_threads = 0;  ///< threads that share a row
  int items = 0;  ///< columns that a thread holds, a power of two
  std::string why_not;  ///< empty if the plan can be launched
};

/// Plans of 1 to 32 warps and 1 to 8 rows a block for rows of `cols` columns. Those that do not fit say why.
std::vector<plan_share> possible_plans(std::int64_t cols, int warp_size);

/// Why the plan cannot be launched for rows of `cols` columns, in one sentence; empty if it can. Zeros are
/// left to `rule`.
std::string plan_problem(const launch_plan& plan, const launch_plan& rule, std::int64_t cols, int warp_size);

/// "4 warps, 1 row a block"
std::string plan_text(const launch_plan& p);

}  // namespace softmax
