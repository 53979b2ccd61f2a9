#pragma once
/// @file
/// The tuner: tries launch plans and says what the rule costs.
#include <string>

#include "harness/session.hpp"

namespace softmax {

/// Tries every plan at each shape of the options, prints a table, the best plan, and by how much the stage's
/// rule misses it. On a GPU plans are timed; on the simulator they are ranked by a model, and the table says
/// so.
/// @returns the text to print; `right` says whether every plan that ran gave the right result
/// @throws usage_error as run_all() does
std::string run_tuner(const options& o, const stage_info& stage, chosen_device& device, bool& right);

}  // namespace softmax
