// The path through the stages, what is done, and the next step.
#include <fmt/format.h>

#include "workbook/commands.hpp"
#include "workbook/files.hpp"
#include "workbook/progress.hpp"
#include "workbook/style.hpp"

namespace softmax::workbook {
namespace {

/// Padded before it is painted: colour codes have no width.
std::string cell(const std::string& text, std::size_t width, bool done) {
  const std::string padded = fmt::format("{:<{}}", text, width);
  return done ? green(padded) : padded;
}

}  // namespace

int show_map(const std::filesystem::path& root) {
  const progress p(root);
  int done = 0, total = 0;
  const std::vector<stage_folder> stages = find_stages(root);
  bool timed = false;  // without a GPU there is nothing to show
  for (const stage_folder& s : stages) timed |= p.real("copy " + s.number) > 0;
  fmt::print("{}\n\n", bold("Softmax Workbook"));
  fmt::print("{}\n", faint(fmt::format("     {:<20} {:<26} {:<9} {}", "stage", "exercise", "bytes",
                                       timed ? "quiz    of a copy" : "quiz")));
  for (const stage_folder& s : stages) {
    const std::string passed = p.get("exercise " + s.number), failing = p.get("diagnosis " + s.number);
    const bool started = std::filesystem::exists(root / s.folder / "exercise.cuh");
    std::string exercise = started ? "started" : "-";
    if (passed == "passed after reveal")
      exercise = "passed, revealed";
    else if (!passed.empty())
      exercise = passed.ends_with(" 0") || !passed.starts_with("passed with hint level ")
                     ? "passed"
                     : "passed, hint level " + passed.substr(passed.size() - 1);
    else if (!failing.empty())
      exercise = failing.substr(0, failing.find(' '));
    const bool predicted = p.get("prediction " + s.number) == "right";
    const std::string score = p.get("quiz " + s.number);
    const bool all_correct = p.all_correct(s.number);
    done += !passed.empty() + predicted + all_correct;
    total += 3;
    const bool complete = !passed.empty() && predicted && all_correct;
    const double copy = p.real("copy " + s.number);
    fmt::print("  {}  {} {:<17} {} {} {}{}\n", complete ? green("*") : "o", s.number, s.title,
               cell(exercise, 26, !passed.empty()), cell(predicted ? "right" : "-", 9, predicted),
               cell(score.empty() ? "-" : score, timed ? 8 : 0, all_correct),
               !timed     ? ""
               : copy > 0 ? fmt::format("{:.3f}", copy)
                          : "-");
    if (s.number != stages.back().number) fmt::print("  {}\n", faint("|"));
  }
  fmt::print("\n{} / {} done\n", done, total);
  const step next = next_step(root, p);
  fmt::print("next: {}\n",
             bold(next.command.empty() ? "all is done; ./stage-05 --help has more to try" : next.command));
  if (!next.remark.empty()) fmt::print("      ({})\n", next.remark);
  return 0;
}

}  // namespace softmax::workbook
