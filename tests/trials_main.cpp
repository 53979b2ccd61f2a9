// Judges the skeleton, the solution and every wrong solution of one stage as the exercise program does: the
// skeleton is not attempted, the solution passes at both warp widths, and each wrong solution fails with its
// own label.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "trial.hpp"
#include "workbook/checker.hpp"
#include "workbook/diagnosis.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/supervisor.hpp"

using namespace softmax;
using namespace softmax::workbook;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t least = 8;  // wrong solutions a stage
constexpr double patience = 15;  // seconds a case; one takes milliseconds

/// The simulator, running a trial in place of the stage.
class trial_backend final : public backend {
 public:
  trial_backend(backend& machine, const trial& t) : machine_(machine), trial_(t) {}
  std::string name() const override { return machine_.name(); }
  simt::device open(int index) override { return machine_.open(index); }
  std::size_t free_memory() const override { return machine_.free_memory(); }
  void* allocate(std::size_t bytes, const char* name) override { return machine_.allocate(bytes, name); }
  void release(void* p) noexcept override { machine_.release(p); }
  void upload(void* to, const void* from, std::size_t bytes) override { machine_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override {
    machine_.download(to, from, bytes);
  }
  void poison(void* p, std::size_t bytes) override { machine_.poison(p, bytes); }
  void fill(void* x, dtype type, const matrix_shape& s, std::uint64_t seed, double deviation) override {
    machine_.fill(x, type, s, seed, deviation);
  }
  void start(const stage_call& call) override { trial_.run(call); }
  void wait() override {}
  launch_plan rule(std::int64_t) const override { return {}; }
  std::vector<double> time(const std::vector<stage_call>&, int) override { return {}; }
  copy_times time_copy(const std::vector<stage_call>&, std::size_t, int) override { return {}; }

 private:
  backend& machine_;
  const trial& trial_;
};

/// What the program would say of the text, run at these widths.
std::pair<std::string, std::string> judged(backend& machine, const std::string& text,
                                           const std::string& kernel, const std::vector<int>& warps,
                                           bool all_types) {
  const std::string folder = this_stage().folder;
  std::string report;
  const fs::path out = fs::temp_directory_path() / fmt::format("trial-{}", getpid());
  const supervised s = supervise(patience, [&](const announce& step) {
    source_facts source;
    source.regions = find_regions(kernel).size();
    for (const region& r : open_regions(text, kernel, folder)) source.open.push_back(r.name);
    const std::vector<case_run> runs =
        run_cases(machine, this_stage(), this_exercise(), warps, step, all_types);
    const diagnosis d = diagnose(runs, this_stage(), source);
    write_text(out, (d.pass ? "pass" : d.label) + "\n" +
                        (d.pass ? "" : failure_text(d, this_stage(), text, kernel)));
    return 0;
  });
  if (s.how == supervised::end::endless) return {"endless", ""};
  if (s.how == supervised::end::crashed) return {"crash", s.last_words};
  const std::string result = read_text(out);
  fs::remove(out);
  const auto line = result.find('\n');
  return {result.substr(0, line), result.substr(line + 1)};
}

}  // namespace

int main(int argc, char** argv) try {
  const fs::path root = workbook_root();
  const std::string only = argc > 1 ? argv[1] : "";
  const stage_info& stage = this_stage();
  const std::string kernel = read_text(root / stage.folder / "kernel.cuh");
  const std::unique_ptr<backend> simulator = std::move(make_backends().back());
  simulator->open(0);
  int failures = 0;
  std::size_t wrong = 0, hits = 0, located = 0;
  const auto expect = [&](bool right, const std::string& what) {
    if (right) return;
    ++failures;
    fmt::print("FAILED: {}\n", what);
  };

  if (only.empty()) {
    const auto [label, text] = judged(*simulator, kernel, kernel, {32, 64}, true);
    expect(label == "pass", fmt::format("the solution fails with {}\n{}", label, text));
  }
  for (const trial& t : trials()) {
    if (!only.empty() && only != t.name) continue;
    trial_backend machine(*simulator, t);
    if (std::string(t.name) == "skeleton") {
      const auto [label, text] = judged(machine, make_skeleton(kernel, stage.folder), kernel, {32}, false);
      expect(label == "not-attempted", "the skeleton is judged " + label);
      continue;
    }
    const wrong_solution w = parse_wrong_solution(
        t.name, read_text(root / "tests" / "wrong" / stage.number / (std::string(t.name) + ".diff")));
    const std::string learner = apply_edits(kernel, w);
    const auto [label, text] = judged(machine, learner, kernel, {w.warp}, t.all_types);
    ++wrong;
    expect(label == w.expect, fmt::format("{} is judged {}, not {}\n{}", t.name, label, w.expect, text));
    if (!only.empty()) fmt::print("{}\n{}", label, text);
    if (label == "endless" || label == "crash" || label == "pass") continue;
    expect(find_label(label) != nullptr, "no meaning is given for " + label);
    const std::vector<std::string> lines = lines_of(text);
    expect(lines.size() != 5 || !lines[2].ends_with("..."), t.name + std::string(": cut: ") + text);
    expect(lines.size() == 5, fmt::format("{}: the report has {} lines", t.name, lines.size()));
    for (const std::string& line : lines)
      expect(line.size() <= 80, fmt::format("{}: {} characters: {}", t.name, line.size(), line));
    // Is the line to look at one of those that the mistake changed?
    if (std::all_of(w.edits.begin(), w.edits.end(), [](const edit& e) { return e.replace.empty(); }))
      continue;
    ++located;
    const std::string& look = lines.size() == 5 ? lines[3] : text;
    const auto colon = look.find("cuh:");
    const int at = colon == std::string::npos ? 0 : std::atoi(look.c_str() + colon + 4);
    const std::vector<std::string> source = lines_of(learner);
    bool hit = false;
    for (const edit& e : w.edits)
      for (const std::string& r : e.replace)
        for (int near = at - 2; near <= at + 2; ++near)
          hit |= near >= 1 && near <= static_cast<int>(source.size()) && source[near - 1] == r;
    hits += hit;
    if (!hit) fmt::print("note: {} is located at line {}: {}\n", t.name, at, trimmed(look));
  }
  if (only.empty()) {
    expect(wrong >= least, fmt::format("{} wrong solutions, and {} are wanted", wrong, least));
    expect(hits * 10 >= located * 8, fmt::format("{} of {} mistakes are located", hits, located));
    fmt::print("stage {}: {} wrong solutions, {} of {} located\n", stage.number, wrong, hits, located);
  }
  return failures == 0 ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
