#pragma once
/// @file
/// The error a user can mend.
#include <cstdio>
#include <stdexcept>
#include <string>

namespace softmax {

/// Something the user asked for cannot be done. what() is one sentence: what, where, what to do next. Exit
/// code 2.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Says it on standard error; where there is none, the exit code has to do.
inline void complain(const std::string& stage_number, const std::string& sentence) {
  std::fputs(("stage-" + stage_number + ": " + sentence + "\n").c_str(), stderr);
}

}  // namespace softmax
