#pragma once
/// @file
/// Wrong solutions compiled beside each other, for the tests.
#include <span>

#include "harness/backend.hpp"

namespace softmax::workbook {

/// One wrong solution, at one warp width.
struct trial {
  const char* name;
  bool all_types;  ///< fp16 and bf16 are compiled too
  void (*run)(const stage_call& call);
};
/// Those of the stage that this program is built from, and "skeleton"; written by trials_generator.cpp.
std::span<const trial> trials();

}  // namespace softmax::workbook
