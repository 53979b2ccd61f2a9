#pragma once
/// @file
/// The error a user can mend.
#include <stdexcept>

namespace softmax {

/// Something the user asked for cannot be done. what() is one sentence: what, where, what to do next. Exit
/// code 2.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace softmax
