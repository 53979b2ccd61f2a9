#pragma once
/// @file
/// The command line that all stages share.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/launch_plan.hpp"
#include "harness/stage_info.hpp"
#include "numerics/verify.hpp"

namespace softmax {

/// A row, and which of the warps that work on it, counted from 0.
struct trace_choice {
  std::int64_t row = 0;
  int warp = 0;
};

struct options {
  std::vector<std::int64_t> rows, cols;  ///< every pair is run; empty: the default of the device
  std::optional<dtype> type;  ///< unset: that of the input file, else f32
  std::optional<std::int64_t> ld_in, ld_out;
  std::int64_t offset = 0;  ///< elements by which x and y start off a 256-byte boundary
  std::string input, output;
  std::string distribution = "mixed";
  std::uint64_t seed = 1;
  row_choice check;
  int repeat = 1;
  std::string device = "auto";
  std::string gpu = "h200";
  int index = 0;
  int threads = 0;
  launch_plan plan{};  ///< --warps and --rows-per-block
  bool tune = false;  ///< try plans instead of running one
  std::string pitfall;  ///< show this mistake instead
  std::string profile;  ///< "text", "json" or "html": show accesses by source line instead; empty: no
  std::string profile_file;  ///< where the HTML goes
  std::optional<trace_choice> trace;  ///< show how the lanes of a warp meet instead
  bool watch = true;  ///< --no-check turns the simulator's watching off
  bool time = true;  ///< --no-time checks only
  bool counters = false;  ///< read the GPU's DRAM counters too
  bool json = false;
  bool color = false;
};

/// What to do after reading the command line.
struct parsed_options {
  options values;
  std::optional<int> exit_now;  ///< --help was shown, or a mistake was explained
};

/// Reads the command line; explains mistakes on stderr in one sentence.
parsed_options parse_options(int argc, const char* const* argv, const stage_info& stage);

}  // namespace softmax
