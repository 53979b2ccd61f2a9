#pragma once
/// @file
/// From a stage's kernel to its exercise. A comment "// exercise a: what to write" opens a region of the
/// kernel;
/// "// end", or the end of the block that it stands in, closes it. The learner's file is the kernel with
/// those regions cut, so that the two cannot drift apart.
#include <string>
#include <vector>

#include "workbook/files.hpp"

namespace softmax::workbook {

/// A part of the kernel that the learner writes.
struct region {
  std::string name;  ///< "a"
  std::string task;  ///< one sentence
  std::string stub;  ///< code that stands in its place; may be empty
  int first = 0, last = 0;  ///< lines of the solution within the kernel, counted from 1
  std::string indent;
};

/// @throws std::runtime_error if a marker is not understood
std::vector<region> find_regions(const std::string& kernel);

/// The learner's file: head, the kernel without its regions, and the prediction to fill in.
/// `folder` is "stages/03_multi_row".
std::string make_skeleton(const std::string& kernel, const std::string& folder);

/// "TODO(3a)"
std::string todo_mark(const std::string& number, const region& r);

/// Regions in which the learner's file still holds nothing but the skeleton's text.
std::vector<region> open_regions(const std::string& learner, const std::string& kernel,
                                 const std::string& folder);

/// The code of the text: no comments, no blank lines, single spaces.
std::vector<std::string> code_lines(const std::string& text);

/// A change of some lines, as in a unified diff without context: lines with '-' must stand in the kernel
/// exactly once, one below the other, whatever their indentation; lines with '+' take their place.
struct edit {
  std::vector<std::string> find, replace;
};

/// A wrong solution: a file of comments "# key: value" and of edits, blank lines between them.
struct wrong_solution {
  std::string name, expect, why;
  int warp = 32;  ///< lanes, where it shows
  bool all_types = false;  ///< tried with 16-bit storage, too
  std::vector<edit> edits;
};
wrong_solution parse_wrong_solution(const std::string& name, const std::string& text);
/// @throws std::runtime_error if the lines to change are not there exactly once
std::string apply_edits(const std::string& kernel, const wrong_solution& wrong);

}  // namespace softmax::workbook
