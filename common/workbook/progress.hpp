#pragma once
/// @file
/// What the learner has done: one plain text file, one line a fact, safe to copy between machines.
#include <filesystem>
#include <string>
#include <vector>

namespace softmax::workbook {

/// Lines such as "exercise 03 passed". Lines that are not understood stay as they are.
class progress {
 public:
  /// Reads the file, if there is one.
  explicit progress(const std::filesystem::path& root);

  /// What follows the words `fact` on the last line that begins with them; empty if there is none.
  std::string get(const std::string& fact) const;
  bool has(const std::string& fact) const { return !get(fact).empty(); }
  int number(const std::string& fact) const;
  void set(const std::string& fact, const std::string& value);
  void forget(const std::string& fact);
  /// Writes the file whole or not at all. @throws usage_error
  void save() const;

 private:
  std::filesystem::path file_;
  std::vector<std::string> lines_;
};

}  // namespace softmax::workbook
