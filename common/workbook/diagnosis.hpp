#pragma once
/// @file
/// From what went wrong to the mistake that explains it. Each known mistake predicts an output; it is named
/// only if its prediction agrees with every element of every case that ran, the right ones included.
#include <string>
#include <vector>

#include "workbook/checker.hpp"

namespace softmax::workbook {

struct diagnosis {
  bool pass = false;
  std::string label;  ///< "zero-padding"; empty after a pass
  std::string evidence;  ///< one line
  const case_run* shown = nullptr;  ///< the failing case that the report is about
  int fault_line = 0;  ///< in the learner's file, where the simulator knows it
};

/// What the learner's text tells, beside the runs.
struct source_facts {
  std::vector<std::string> open;  ///< regions still as in the skeleton: "3a"
  std::size_t regions = 0;
};

diagnosis diagnose(const std::vector<case_run>& runs, const stage_info& stage, const source_facts& source);

/// The labels that diagnose() can give, each with its meaning in one line, and words that the line at fault
/// may hold.
struct label_facts {
  std::string label;
  std::string meaning;
  std::string anchors;  ///< regular expression
};
const std::vector<label_facts>& labels();
const label_facts* find_label(const std::string& label);

/// A line of the learner's file, counted from 1.
struct place {
  int line = 1;
  bool missing = false;  ///< the mistake is that something does not stand before it
};
/// Where to look: of the lines that differ from the stage's kernel, the one that the label speaks of.
place line_to_look_at(const std::string& learner, const std::string& kernel, const diagnosis& d);

/// The five lines. No line is longer than 80 characters.
std::string failure_text(const diagnosis& d, const stage_info& stage, const std::string& learner,
                         const std::string& kernel);

}  // namespace softmax::workbook
