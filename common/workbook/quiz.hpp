#pragma once
/// @file
/// The questions of a stage, from its quiz.toml. Keys are proven by tests/quiz_test.cpp.
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/devices.hpp"

namespace softmax::workbook {

struct choice {
  std::string text;
  std::string is;  ///< what an experiment calls it
  std::string reason;  ///< why it is right, or why it is not
  bool right = false;
};

struct question {
  std::string id;
  std::string ask;
  std::vector<choice> choices;  ///< none: the answer is a number
  std::string number;  ///< name of the fact that is the answer
  double tolerance = 0;  ///< relative
  std::string reason;  ///< of a number: how it comes about
  std::map<std::string, std::string> traps;  ///< fact that a wrong number may be: why it is not the answer
};

/// Numbers that questions speak of and ask for, computed from the GPU's datasheet and the stages' rules.
std::map<std::string, double> quiz_facts(const gpu_facts& gpu);

/// Text with {names} replaced by facts; {gpu} is the GPU's name.
std::string filled(const std::string& text, const gpu_facts& gpu, double answer = 0);

/// @throws usage_error if the file is not as it must be: file, question and what is missing
std::vector<question> read_quiz(const std::filesystem::path& file);

struct quiz_result {
  int correct = 0, asked = 0, total = 0;
  bool complete() const { return asked == total; }
};
/// Asks on `out` and reads answers, one a line, until they end. `interrupted` is looked at after each line.
quiz_result hold_quiz(const std::vector<question>& questions, const gpu_facts& gpu, std::istream& in,
                      std::ostream& out, bool prompts, const std::function<bool()>& interrupted);

/// All questions with their keys, reasons and traps, as each GPU of the table has them: one object, for the
/// book.
std::string quiz_json(const std::vector<question>& questions, const std::string& stage);

/// Lines of at most `width` characters, all but the first indented.
std::string folded(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace softmax::workbook
