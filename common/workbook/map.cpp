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
  std::string next;
  fmt::print("{}\n\n", bold("Softmax Workbook"));
  fmt::print("{}\n", faint(fmt::format("     {:<20} {:<26} {:<9} quiz", "stage", "exercise", "bytes")));
  const std::vector<stage_folder> stages = find_stages(root);
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
    const auto slash = score.find(" / ");
    const bool all_correct = slash != std::string::npos && score.substr(0, slash) == score.substr(slash + 3);
    done += !passed.empty() + predicted + all_correct;
    total += 3;
    const bool complete = !passed.empty() && predicted && all_correct;
    fmt::print("  {}  {} {:<17} {} {} {}\n", complete ? green("*") : "o", s.number, s.title,
               cell(exercise, 26, !passed.empty()), cell(predicted ? "right" : "-", 9, predicted),
               cell(score.empty() ? "-" : score, 0, all_correct));
    if (s.number != stages.back().number) fmt::print("  {}\n", faint("|"));
    if (!next.empty() || complete) continue;
    if (passed.empty() || !predicted)
      next = fmt::format("make exercise-{0} && ./exercise-{0}", s.number);
    else
      next = "make quiz-" + s.number;
  }
  fmt::print("\n{} / {} done\n", done, total);
  fmt::print("next: {}\n", bold(next.empty() ? "all is done; ./stage-05 --help has more to try" : next));
  return 0;
}

}  // namespace softmax::workbook
