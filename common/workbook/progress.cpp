#include "workbook/progress.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "workbook/files.hpp"

namespace softmax::workbook {
namespace {

constexpr const char* head =
    "# What you have done in the Softmax Workbook: one line a fact. Delete it to start again.";

bool speaks_of(const std::string& line, const std::string& fact) { return line.starts_with(fact + " "); }

}  // namespace

progress::progress(const std::filesystem::path& root) : file_(root / "progress.txt") {
  if (std::filesystem::exists(file_)) lines_ = lines_of(read_text(file_));
  if (lines_.empty()) lines_.push_back(head);
}

std::string progress::get(const std::string& fact) const {
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line)
    if (speaks_of(*line, fact)) return trimmed(line->substr(fact.size() + 1));
  return "";
}

int progress::number(const std::string& fact) const {
  const std::string text = get(fact);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double progress::real(const std::string& fact) const {
  const std::string text = get(fact);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? value : 0;
}

bool progress::all_correct(const std::string& stage) const {
  const std::string score = get("quiz " + stage);
  const auto slash = score.find(" / ");
  return slash != std::string::npos && score.substr(0, slash) == score.substr(slash + 3);
}

void progress::set(const std::string& fact, const std::string& value) {
  forget(fact);
  lines_.push_back(fact + " " + value);
}

void progress::forget(const std::string& fact) {
  std::erase_if(lines_, [&](const std::string& line) { return speaks_of(line, fact); });
}

void progress::save() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  write_text(file_, text);
}

bool record_best_copy(const std::filesystem::path& root, const std::string& stage, double fraction,
                      const std::string& where) {
  if (!(fraction > 0) || !std::isfinite(fraction)) return false;
  progress p(root);
  // As it is written, so that a difference nobody sees replaces nothing.
  if (std::round(1000 * fraction) <= std::round(1000 * p.real("copy " + stage))) return false;
  p.set("copy " + stage, fmt::format("{:.3f} {}", fraction, where));
  p.save();
  return true;
}

step next_step(const std::filesystem::path& root, const progress& p) {
  const std::vector<stage_folder> stages = find_stages(root);
  for (const stage_folder& s : stages) {
    const std::string exercise = fmt::format("make exercise-{0} && ./exercise-{0}", s.number);
    if (!p.has("exercise " + s.number))
      return {exercise, std::filesystem::exists(root / s.folder / "exercise.cuh")
                            ? fmt::format("after the next change of {}/exercise.cuh", s.folder)
                            : fmt::format("read {}/README.md first", s.folder)};
    if (p.get("prediction " + s.number) != "right")
      return {exercise, "it passes: now predict its bytes, at the end of exercise.cuh"};
    if (!p.all_correct(s.number)) return {"make quiz-" + s.number, ""};
  }
  return {"", ""};
}

}  // namespace softmax::workbook
