#pragma once
/// @file
/// Other programs: where they are, and what they say.
#include <string>
#include <vector>

namespace softmax {

/// "a,b" in parts; one empty part of an empty text.
std::vector<std::string> split(const std::string& text, char separator);

/// The text as one word for a shell.
std::string shell_quoted(const std::string& text);

/// What a command said.
struct command_output {
  std::string text;  ///< standard output and error
  int exit_code = 1;  ///< 1 too where there was none
};
/// Runs a shell command and waits for it.
command_output run_command(const std::string& command);

/// Nsight Compute, on the PATH or where its packages put it; empty if there is none.
std::string find_ncu();

}  // namespace softmax
