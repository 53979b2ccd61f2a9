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
  std::int64_t row = 0;  ///< of the matrix, from 0
  int warp = 0;  ///< of those that touch the row
};

/// The command line, in names of its options.
struct options {
  std::vector<std::int64_t> rows;  ///< every pair with cols is run; empty: the default of the device
  std::vector<std::int64_t> cols;  ///< see rows
  std::optional<dtype> type;  ///< unset: that of the input file, else f32
  std::optional<std::int64_t> ld_in;  ///< row stride of x in elements; unset: cols
  std::optional<std::int64_t> ld_out;  ///< row stride of y in elements; unset: cols
  std::int64_t offset = 0;  ///< elements by which x and y start off a 256-byte boundary
  std::string input;  ///< path of an .npy file; empty: made-up input
  std::string output;  ///< path of an .npy file; empty: none is written
  std::string distribution = "mixed";  ///< --dist, where there is no input file
  std::uint64_t seed = 1;  ///< of made-up input
  row_choice check;  ///< rows to compare with the reference
  int repeat = 1;  ///< runs, whose outputs must be equal bit for bit
  std::string device = "auto";  ///< "auto", "cuda", "hip" or "sim"
  std::string gpu = "h200";  ///< that the simulator stands for
  int index = 0;  ///< of the device, from 0
  int threads = 0;  ///< host threads of the simulator; 0: one a core
  bool clusters = false;  ///< the simulated GPU has clusters, of 16 blocks
  launch_plan plan{};  ///< --warps and --rows-per-block
  bool tune = false;  ///< try plans instead of running one
  std::string pitfall;  ///< show this mistake instead
  std::string profile;  ///< "text", "json" or "html": show accesses by source line instead; empty: no
  std::string profile_file;  ///< where the HTML goes
  std::optional<trace_choice> trace;  ///< show how the lanes of a warp meet instead
  bool watch = true;  ///< --no-check turns the simulator's watching off
  bool time = true;  ///< --no-time checks only
  bool counters = false;  ///< read the GPU's DRAM counters too
  bool json = false;  ///< print one JSON object
  bool color = false;  ///< standard output is a terminal
};

/// What to do after reading the command line.
struct parsed_options {
  options values;  ///< what was read
  std::optional<int> exit_now;  ///< --help was shown, or a mistake was explained
};

/// Reads the command line; explains mistakes on stderr in one sentence.
parsed_options parse_options(int argc, const char* const* argv, const stage_info& stage);

}  // namespace softmax
