#pragma once
/// @file
/// What each source line of the kernels did: as a table, as JSON, and as annotated source.
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace softmax {

/// At most 100 columns wide. Lines by cost, with their source and one sentence where something stands out.
std::string profile_text(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& device, const options& o);
/// One object with `stage`, `device` and a list `runs` of `launches` of `lines`.
std::string profile_json(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& device);
/// One page that needs nothing else, for light and dark screens.
std::string profile_html(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& device);

}  // namespace softmax
