#pragma once
/// @file
/// Mistakes worth seeing: the wrong result beside the right one.
#include <string>

#include "harness/session.hpp"

namespace softmax {

/// Runs the stage and its mistake `name` on the input that shows it, and compares both with the reference.
/// @returns the text to print; `as_promised` says whether the mistake went wrong as its claim has it
/// @throws usage_error if the stage has no such pitfall
std::string run_pitfall(const std::string& name, const stage_info& stage, chosen_device& device,
                        bool& as_promised);

/// Names of the stage's pitfalls, with commas.
std::string pitfall_names(const stage_info& stage);

}  // namespace softmax
