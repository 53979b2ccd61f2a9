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
  /// The number that the fact begins with; 0 if it begins with none.
  double real(const std::string& fact) const;
  /// Whether the best score of the stage's quiz has no wrong answer.
  bool all_correct(const std::string& stage) const;
  void set(const std::string& fact, const std::string& value);
  void forget(const std::string& fact);
  /// Writes the file whole or not at all. @throws usage_error
  void save() const;

 private:
  std::filesystem::path file_;
  std::vector<std::string> lines_;
};

/// Keeps the best fraction of the copy kernel that the stage has reached on a GPU; `where` says at what shape
/// and on which GPU. @returns whether it is better than what was there. @throws usage_error
bool record_best_copy(const std::filesystem::path& root, const std::string& stage, double fraction,
                      const std::string& where);

struct step {
  std::string command;  ///< empty: all is done
  std::string remark;  ///< what to do before it; may be empty
};
/// The first thing that is not done yet.
step next_step(const std::filesystem::path& root, const progress& p);

}  // namespace softmax::workbook
