#pragma once
/// @file
/// How the lanes of one warp reduce a row, meeting by meeting.
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace softmax {

/// Each barrier and shuffle of the chosen warp while it works on the chosen row, with the values that its
/// lanes give. Two shuffles of one line with one operand are shown as pairs. At most 100 columns wide.
/// @throws usage_error if fewer warps work on the row
std::string trace_text(const std::vector<run_result>& results, const stage_info& stage,
                       const chosen_device& device, const options& o);
/// The same as one object with a list `runs` of `launches` of `steps`.
std::string trace_json(const std::vector<run_result>& results, const stage_info& stage,
                       const chosen_device& device, const options& o);

}  // namespace softmax
