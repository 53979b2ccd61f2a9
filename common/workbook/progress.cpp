#include "workbook/progress.hpp"

#include <algorithm>
#include <charconv>

#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"

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

}  // namespace softmax::workbook
