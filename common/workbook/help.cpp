// The learner's file: made, started again, helped with, and solved.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <cstdio>

#include "harness/usage_error.hpp"
#include "workbook/commands.hpp"
#include "workbook/diagnosis.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/progress.hpp"
#include "workbook/quiz.hpp"
#include "workbook/style.hpp"

namespace softmax::workbook {
namespace {

namespace fs = std::filesystem;

constexpr int most_help = 3;
const char* const level_names[] = {"nudge", "localise", "near"};

/// The hint for a region at a level. @throws usage_error if the file does not have it
std::string hint_text(const fs::path& file, const std::string& region, int level) {
  try {
    const toml::table hints = toml::parse(read_text(file), file.string());
    if (const auto text = hints[region][level_names[level - 1]].value<std::string>()) return *text;
  } catch (const toml::parse_error& e) {
    throw usage_error(fmt::format("{}: line {}: {}.", file.string(), e.source().begin.line, e.description()));
  }
  throw usage_error(
      fmt::format("{} has no '{}' for region {}.", file.string(), level_names[level - 1], region));
}

/// The region that a line of the learner's file belongs to: the last TODO above it, else the first region.
region region_of_line(const std::vector<region>& regions, const std::string& learner,
                      const std::string& number, int line) {
  const std::vector<std::string> lines = lines_of(learner);
  for (int at = std::min(line, static_cast<int>(lines.size())); at >= 1; --at)
    for (const region& r : regions)
      if (lines[at - 1].find(todo_mark(number, r)) != std::string::npos) return r;
  return regions.at(0);
}

}  // namespace

int start_exercise(const fs::path& root, const std::string& number, const std::string& file) {
  const stage_folder s = find_stage(root, number);
  const fs::path learner = file.empty() ? root / s.folder / "exercise.cuh" : fs::path(file);
  if (fs::exists(learner)) return 0;
  write_text(learner, make_skeleton(read_text(root / s.folder / "kernel.cuh"), s.folder));
  fmt::print("made {}: write what its TODOs ask for\n", fs::relative(learner, root).string());
  return 0;
}

int reset_exercise(const fs::path& root, const std::string& number) {
  const stage_folder s = find_stage(root, number);
  const fs::path learner = root / s.folder / "exercise.cuh";
  const std::string skeleton = make_skeleton(read_text(root / s.folder / "kernel.cuh"), s.folder);
  if (fs::exists(learner)) {
    if (read_text(learner) == skeleton) {
      fmt::print("{}/exercise.cuh is the skeleton already\n", s.folder);
      return 0;
    }
    int n = 1;
    while (fs::exists(learner.string() + fmt::format(".backup-{}", n))) ++n;
    const std::string backup = learner.string() + fmt::format(".backup-{}", n);
    std::error_code problem;
    fs::copy_file(learner, backup, problem);
    if (problem) throw usage_error(fmt::format("Cannot keep a copy as {}: {}.", backup, problem.message()));
    fmt::print("kept your work as {}\n", fs::relative(backup, root).string());
  }
  write_text(learner, skeleton);
  progress done(root);
  done.forget("diagnosis " + s.number);
  done.forget("hint " + s.number);
  done.save();
  fmt::print("{}/exercise.cuh is the skeleton again\n", s.folder);
  return 0;
}

int show_hint(const fs::path& root, const std::string& number) {
  const stage_folder s = find_stage(root, number);
  const fs::path learner = root / s.folder / "exercise.cuh";
  if (!fs::exists(learner))
    throw usage_error(
        fmt::format("There is no {}/exercise.cuh yet: run make exercise-{} first.", s.folder, s.number));
  const std::string text = read_text(learner), kernel = read_text(root / s.folder / "kernel.cuh");
  const std::vector<region> regions = find_regions(kernel);
  progress done(root);
  const std::string last = done.get("diagnosis " + s.number);
  if (last.empty() && done.has("exercise " + s.number)) {
    fmt::print("Stage {} has passed: the solution is {}/kernel.cuh, to compare.\n", s.number, s.folder);
    return 0;
  }
  const std::string label = last.substr(0, last.find(' '));
  int line = 1;
  if (const auto at = last.find("line "); at != std::string::npos) line = std::atoi(last.c_str() + at + 5);
  const std::vector<region> open = open_regions(text, kernel, s.folder);
  const region about = open.empty() ? region_of_line(regions, text, s.number, line) : open[0];
  const int level = std::min(done.number("hint " + s.number) + 1, most_help);
  done.set("hint " + s.number, std::to_string(level));
  done.set("help " + s.number, std::to_string(std::max(level, done.number("help " + s.number))));
  done.save();

  fmt::print("{}\n", bold(fmt::format("hint {} of {}, stage {}", level, most_help, s.number)));
  const label_facts* facts = find_label(label);
  if (facts && open.empty()) {
    fmt::print("  {}: {}\n", label, folded(facts->meaning, 76 - label.size(), 4));
    if (level >= 2) fmt::print("  look at {}/exercise.cuh:{}\n", s.folder, line);
  } else {
    fmt::print("  {}: {}\n", todo_mark(s.number, about), folded(about.task, 68, 4));
  }
  fmt::print("  {}\n", folded(hint_text(root / s.folder / "hints.toml", about.name, level), 78, 2));
  if (level < most_help)
    fmt::print("  {}\n", faint(fmt::format("make hint-{} again says more", s.number)));
  else
    fmt::print("  {}\n", faint(fmt::format("that is all; make reveal-{} shows the solution", s.number)));
  return 0;
}

int reveal_solution(const fs::path& root, const std::string& number) {
  const stage_folder s = find_stage(root, number);
  const std::string kernel = read_text(root / s.folder / "kernel.cuh");
  const std::vector<std::string> lines = lines_of(kernel);
  progress done(root);
  if (!done.has("exercise " + s.number)) done.set("reveal " + s.number, "seen");
  done.save();
  for (const region& r : find_regions(kernel)) {
    fmt::print("{} {}\n", bold(todo_mark(s.number, r) + ":"), folded(r.task, 68, 4));
    for (int line = r.first; line <= r.last; ++line) fmt::print("{}\n", lines[line - 1]);
    fmt::print("\n");
  }
  fmt::print("The whole: {}/kernel.cuh\n", s.folder);
  return 0;
}

}  // namespace softmax::workbook
