#pragma once
/// @file
/// The tuner: tries launch plans and says what the rule costs.
#include <string>
#include <vector>

#include "harness/launch_plan.hpp"
#include "harness/occupancy.hpp"
#include "harness/session.hpp"

namespace softmax {

/// One way to launch, and what became of it.
struct tuned_plan {
  launch_plan plan{};
  int row_threads = 0;  ///< threads that share a row
  int items = 0;  ///< columns that a thread holds, a power of two
  std::string why_not;  ///< empty if the plan was tried
  double seconds = 0;  ///< median; 0 on the simulator
  occupancy full;
};

/// Plans of 1 to 32 warps and 1 to 8 rows a block for rows of `cols` columns. Those that do not fit say why.
std::vector<tuned_plan> possible_plans(std::int64_t cols, int warp_size);

/// Why the plan cannot be launched for rows of `cols` columns, in one sentence; empty if it can. Zeros are
/// left to `rule`.
std::string plan_problem(const launch_plan& plan, const launch_plan& rule, std::int64_t cols, int warp_size);

/// Tries every plan at each shape of the options, prints a table, the best plan, and by how much the stage's
/// rule misses it. On a GPU plans are timed; on the simulator they are ranked by a model, and the table says
/// so.
/// @returns the text to print; `right` says whether every plan that ran gave the right result
/// @throws usage_error as run_all() does
std::string run_tuner(const options& o, const stage_info& stage, chosen_device& device, bool& right);

}  // namespace softmax
