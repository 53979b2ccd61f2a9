#include "workbook/kernel_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace softmax::workbook {
namespace {

constexpr std::size_t line_width = 110;

bool is_comment(const std::string& line) { return trimmed(line).starts_with("//"); }

/// "//! [kernel]" begins or ends the part that the book quotes.
bool is_quotation_mark(const std::string& line) { return trimmed(line).starts_with("//! ["); }

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

/// Comment lines of at most line_width columns.
std::string wrapped(const std::string& text, const std::string& indent) {
  std::istringstream words(text);
  std::string out, line = indent + "//";
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > line_width) {
      out += line + "\n";
      line = indent + "//";
    }
    line += " " + word;
  }
  return out + line + "\n";
}

std::string stage_number(const std::string& folder) { return folder.substr(folder.find('/') + 1, 2); }

/// The kernel's own head comment, less the sentence that gives the prediction away.
std::string head_of(const std::vector<std::string>& lines, std::size_t& next) {
  std::string text;
  for (next = 1; next < lines.size() && lines[next].starts_with("// "); ++next)
    text += (text.empty() ? "" : " ") + lines[next].substr(3);
  return std::regex_replace(text, std::regex("Moves, in elements: [^.]*\\. ?"), "");
}

constexpr const char* prediction_text = R"(
// Predict, then measure: the elements that one call asks memory for, all kernels of the stage together, when x
// has M rows of N columns. For example 7 * M * N + 3 * M. ./exercise-{} compares with what the simulator counts.
namespace softmax {{
namespace {{

inline std::int64_t reads(std::int64_t M, std::int64_t N) {{
  return 0 * M * N;  // TODO(predict)
}}
inline std::int64_t writes(std::int64_t M, std::int64_t N) {{
  return 0 * M * N;  // TODO(predict)
}}

}}  // namespace
}}  // namespace softmax
)";

/// The lines that stand in the place of a region.
std::string placeholder(const region& r, const std::string& number) {
  std::string text = wrapped(todo_mark(number, r) + ": " + r.task, r.indent);
  if (!r.stub.empty()) text += r.indent + r.stub + "\n";
  return text;
}

}  // namespace

std::string todo_mark(const std::string& number, const region& r) {
  return "TODO(" + std::to_string(std::stoi(number)) + r.name + ")";
}

std::vector<region> find_regions(const std::string& kernel) {
  static const std::regex marker(R"((\s*)// exercise ([a-z]): (.*))");
  const std::vector<std::string> lines = lines_of(kernel);
  std::vector<region> regions;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch m;
    if (!std::regex_match(lines[i], m, marker)) continue;
    region r{.name = m[2], .task = m[3], .indent = m[1]};
    while (++i < lines.size() && is_comment(lines[i])) r.task += " " + trimmed(trimmed(lines[i]).substr(2));
    static const std::regex starts(R"((.*); starts as `(.*)`)");
    if (std::smatch s; std::regex_match(r.task, s, starts)) {
      const std::string whole = r.task;
      r.stub = s[2];
      r.task = s[1];
    }
    r.first = static_cast<int>(i) + 1;
    int depth = 0;
    for (; i < lines.size() && trimmed(lines[i]) != "// end"; ++i) {
      const std::string code = without_comment(lines[i]);
      for (char c : code) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (depth < 0) break;
    }
    r.last = static_cast<int>(i);
    if (r.last < r.first)
      throw std::runtime_error("exercise " + r.name + " has no lines: put its comment above the code.");
    regions.push_back(r);
  }
  return regions;
}

std::string make_skeleton(const std::string& kernel, const std::string& folder) {
  const std::vector<std::string> lines = lines_of(kernel);
  const std::string number = stage_number(folder);
  const std::vector<region> regions = find_regions(kernel);
  std::size_t next = 0;
  std::string text = "#pragma once\n";
  text += wrapped(head_of(lines, next), "");
  text += fmt::format(
      "//\n// This is YOUR file: write what each TODO asks for, then run\n//\n"
      "//   make exercise-{0} && ./exercise-{0}\n//\n"
      "// make hint-{0} helps; make reset-{0} starts again and keeps a copy. The chapter is README.md beside "
      "this "
      "file.\n",
      number);
  for (; next < lines.size(); ++next) {
    const auto at = static_cast<int>(next) + 1;
    const auto r = std::find_if(regions.begin(), regions.end(),
                                [&](const region& x) { return at >= x.first && at <= x.last; });
    if (r != regions.end()) {
      if (at == r->first) text += placeholder(*r, number);
      continue;
    }
    // A marker is the comment above its region, down to the first line of code.
    const auto owner = std::find_if(regions.begin(), regions.end(), [&](const region& x) {
      if (at >= x.first) return false;
      for (int l = at; l < x.first; ++l)
        if (!is_comment(lines[l - 1])) return false;
      for (int l = at; l >= 1 && is_comment(lines[l - 1]); --l)
        if (trimmed(lines[l - 1]).starts_with("// exercise ")) return true;
      return false;
    });
    if (owner != regions.end() || trimmed(lines[next]) == "// end" || is_quotation_mark(lines[next]))
      continue;
    text += lines[next] + "\n";
  }
  return text + fmt::format(prediction_text, number);
}

std::vector<std::string> code_lines(const std::string& text) {
  std::vector<std::string> code;
  for (const std::string& line : lines_of(text)) {
    std::istringstream words(without_comment(line));
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    if (!joined.empty()) code.push_back(joined);
  }
  return code;
}

std::vector<region> open_regions(const std::string& learner, const std::string& kernel,
                                 const std::string& folder) {
  const std::string number = stage_number(folder);
  const std::vector<std::string> solution = lines_of(kernel);
  const auto next_code = [](const std::vector<std::string>& lines, std::size_t from) {
    for (; from < lines.size(); ++from)
      if (const auto code = code_lines(lines[from]); !code.empty()) return std::pair(code[0], from);
    return std::pair(std::string(), from);
  };
  const std::vector<std::string> lines = lines_of(learner);
  std::vector<region> open;
  for (const region& r : find_regions(kernel)) {
    const std::string mark = todo_mark(number, r) + ":";
    const auto at = std::find_if(lines.begin(), lines.end(),
                                 [&](const std::string& l) { return l.find(mark) != std::string::npos; });
    if (at == lines.end()) continue;
    auto [code, where] = next_code(lines, at - lines.begin());
    if (!r.stub.empty()) {
      if (code != code_lines(r.stub).at(0)) continue;
      code = next_code(lines, where + 1).first;
    }
    if (code == next_code(solution, r.last).first) open.push_back(r);
  }
  return open;
}

wrong_solution parse_wrong_solution(const std::string& name, const std::string& text) {
  wrong_solution w{.name = name};
  bool fresh = true;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("#")) {
      const auto colon = line.find(": ");
      if (colon == std::string::npos) throw std::runtime_error(name + ": '" + line + "' has no value");
      const std::string key = trimmed(line.substr(1, colon - 1)), value = trimmed(line.substr(colon + 2));
      if (key == "expect")
        w.expect = value;
      else if (key == "warp")
        w.warp = std::stoi(value);
      else if (key == "types" && value == "all")
        w.all_types = true;
      else if (key == "why")
        w.why = value;
      else
        throw std::runtime_error(name + ": '" + line + "' is none of expect, warp, types: all, why");
    } else if (trimmed(line).empty()) {
      fresh = true;
    } else if (line[0] == '-' || line[0] == '+') {
      if (fresh) w.edits.emplace_back();
      fresh = false;
      (line[0] == '-' ? w.edits.back().find : w.edits.back().replace).push_back(line.substr(1));
    } else {
      throw std::runtime_error(name + ": '" + line + "' begins with none of #, - and +");
    }
  }
  if (w.expect.empty() || w.why.empty() || w.edits.empty())
    throw std::runtime_error(name + " needs '# expect:', '# why:' and an edit");
  return w;
}

std::string apply_edits(const std::string& kernel, const wrong_solution& wrong) {
  std::vector<std::string> lines = lines_of(kernel);
  for (const edit& e : wrong.edits) {
    if (e.find.empty()) throw std::runtime_error(wrong.name + ": an edit needs lines to replace");
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i + e.find.size() <= lines.size(); ++i) {
      bool same = true;
      for (std::size_t k = 0; k < e.find.size(); ++k) same &= trimmed(lines[i + k]) == trimmed(e.find[k]);
      if (same) places.push_back(i);
    }
    if (places.size() != 1)
      throw std::runtime_error(fmt::format("{}: '{}' stands {} times in the kernel, and must stand once",
                                           wrong.name, trimmed(e.find[0]), places.size()));
    const auto at = lines.begin() + static_cast<std::ptrdiff_t>(places[0]);
    const auto rest = lines.erase(at, at + static_cast<std::ptrdiff_t>(e.find.size()));
    lines.insert(rest, e.replace.begin(), e.replace.end());
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace softmax::workbook
