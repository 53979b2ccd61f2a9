#pragma once
/// @file
/// Results as text for people and as JSON for programs.
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace softmax {

/// About 25 lines a run: device, correctness, byte ledger, time, what to try next.
std::string report_text(const std::vector<run_result>& results, const stage_info& stage,
                        const chosen_device& device, const options& o);

/// The device as a JSON object: backend, name, architecture, sizes, versions.
std::string device_json(const chosen_device& device);

/// One object with `stage`, `device` and a list `runs`. Numbers that are not finite are null.
std::string report_json(const std::vector<run_result>& results, const stage_info& stage,
                        const chosen_device& device, const options& o);

}  // namespace softmax
