// The program behind every ./exercise-NN: checks the learner's kernel, says what is wrong with it, and
// records what is right.
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "harness/usage_error.hpp"
#include "workbook/checker.hpp"
#include "workbook/diagnosis.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/prediction.hpp"
#include "workbook/progress.hpp"
#include "workbook/quiz.hpp"
#include "workbook/style.hpp"
#include "workbook/supervisor.hpp"

using namespace softmax;
using namespace softmax::workbook;

namespace {

constexpr const char* prediction_step = "the prediction";

struct request {
  std::string device = "auto";
  double patience = 20;  // seconds that one case may take; the simulator needs milliseconds
};

/// The devices to run on: the simulator always, a GPU where there is one.
std::vector<backend*> machines(const std::vector<std::unique_ptr<backend>>& all, const std::string& device) {
  std::vector<backend*> chosen;
  for (const auto& b : all) {
    if (device == "sim" && b->name() != "sim") continue;
    try {
      b->open(0);
      chosen.insert(b->name() == "sim" ? chosen.begin() : chosen.end(), b.get());
    } catch (const simt::no_device&) {
      // The simulator remains.
    }
  }
  return chosen;
}

/// "PASS" in green, "FAIL" in red, and the names of the lines bold.
std::string coloured(const std::string& report) {
  std::string out;
  for (const std::string& line : lines_of(report)) {
    if (line.starts_with("FAIL"))
      out += red("FAIL") + line.substr(4);
    else if (line.starts_with("PASS"))
      out += green("PASS") + line.substr(4);
    else if (line.size() > 11 && line[11] == ':')
      out += bold(line.substr(0, 12)) + line.substr(12);
    else
      out += line;
    out += "\n";
  }
  return out;
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw usage_error("The result could not be written to standard output: check the pipe or the disk.");
}

/// Keeps what a failure tells for the hints.
void record_failure(progress& p, const std::string& number, const diagnosis& d, const place& where) {
  if (p.get("diagnosis " + number).substr(0, d.label.size() + 1) != d.label + " ") p.forget("hint " + number);
  p.set("diagnosis " + number, fmt::format("{} line {}", d.label, where.line));
}

/// Runs everything in the child. @returns the exit code
int judge(const request& asked, const announce& step, const std::string& learner, const std::string& kernel,
          const std::filesystem::path& root) {
  const stage_info& stage = this_stage();
  const auto backends = make_backends();
  std::vector<case_run> runs;
  std::string where;
  for (backend* machine : machines(backends, asked.device)) {
    const bool simulator = machine->name() == "sim";
    const std::vector<int> warps = simulator ? std::vector{32, 64} : std::vector{machine->open(0).warp_size};
    for (case_run& r : run_cases(*machine, stage, this_exercise(), warps, step)) runs.push_back(std::move(r));
    where += simulator ? "simulator, warps of 32 and 64" : ", and the GPU";
  }
  step("the verdict");
  source_facts source;
  source.regions = find_regions(kernel).size();
  for (const region& r : open_regions(learner, kernel, stage.folder))
    source.open.push_back(std::to_string(std::stoi(stage.number)) + r.name);
  const diagnosis d = diagnose(runs, stage, source);
  progress done(root);
  if (d.pass) {
    print(coloured(fmt::format("PASS stage {}  {} cases: values, bytes, launches, barriers\n", stage.number,
                               runs.size())));
    print(fmt::format("  on       : {}\n  solution : {}/kernel.cuh, to compare\n", where, stage.folder));
    if (!done.has("exercise " + stage.number))
      done.set("exercise " + stage.number,
               done.has("reveal " + stage.number)
                   ? "passed after reveal"
                   : fmt::format("passed with hint level {}", done.number("help " + stage.number)));
    done.forget("diagnosis " + stage.number);
    done.forget("hint " + stage.number);
  } else {
    print(coloured(failure_text(d, stage, learner, kernel)));
    record_failure(done, stage.number, d, line_to_look_at(learner, kernel, d));
  }
  // The learner's formulas run here, too, and may stop the program: what is known by now is kept.
  done.save();
  step(prediction_step);
  const grade reads = grade_formula(
      "reads", [](auto m, auto n) { return learners_prediction(m, n).reads; }, stage);
  const grade writes = grade_formula(
      "writes", [](auto m, auto n) { return learners_prediction(m, n).writes; }, stage);
  if (d.pass || reads.attempted || writes.attempted) {
    print("Prediction of the bytes, in elements\n");
    for (const grade& g : {reads, writes}) {
      const std::string text = folded(g.text, 78, 4);
      print("  " + (g.right ? green(text) : text) + "\n");
    }
  }
  if (reads.right && writes.right) done.set("prediction " + stage.number, "right");
  if (d.pass)
    print(fmt::format("  next     : {}\n",
                      !(reads.right && writes.right)
                          ? fmt::format("predict, then make exercise-{0} && ./exercise-{0}", stage.number)
                      : done.all_correct(stage.number) ? "make map"
                                                       : "make quiz-" + stage.number));
  done.save();
  return d.pass ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  const stage_info& stage = this_stage();
  const std::string name = "exercise-" + stage.number;
  request asked;
  CLI::App app("Checks " + stage.folder +
               "/exercise.cuh on the simulator, at both warp widths, and on a GPU if there is one.");
  app.add_option("--device", asked.device, "auto, or sim to leave the GPU out")
      ->check(CLI::IsMember({"auto", "sim"}));
  app.add_option("--patience", asked.patience, "seconds that one case may take before it counts as endless")
      ->check(CLI::Range(0.1, 3600.0));
  app.footer("Exit codes: 0 passed, 1 failed, 2 the command or the files are wrong.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    std::fputs(fmt::format("{}: {}: see --help.\n", name, e.what()).c_str(), stderr);
    return 2;
  }
  try {
    const std::filesystem::path root = workbook_root(), file = root / stage.folder / "exercise.cuh";
    print("checking YOUR " + stage.folder + "/exercise.cuh\n");
    if (!std::filesystem::exists(file))
      throw usage_error(fmt::format("There is no {}/exercise.cuh: make {} makes one.", stage.folder, name));
    if (std::filesystem::last_write_time(file) > std::filesystem::last_write_time("/proc/self/exe"))
      throw usage_error(fmt::format("exercise.cuh is newer than this program: run make {} first.", name));
    const std::string learner = read_text(file), kernel = read_text(root / stage.folder / "kernel.cuh");
    const supervised s = supervise(asked.patience, [&](const announce& step) {
      try {
        return judge(asked, step, learner, kernel, root);
      } catch (const std::exception& problem) {
        std::fputs((name + ": " + problem.what() + "\n").c_str(), stderr);
        return 2;
      }
    });
    if (s.how == supervised::end::finished) {
      std::fputs(s.last_words.c_str(), stderr);
      return s.code;
    }
    if (s.step == prediction_step) {
      print(fmt::format("Prediction of the bytes\n  reads() or writes(), at the end of exercise.cuh, {}\n",
                        s.how == supervised::end::crashed ? "crashed: " + s.signal : "does not end"));
      return 1;
    }
    diagnosis d{.label = "endless",
                .evidence = fmt::format("no end after {:.0f} s, where it takes moments", asked.patience)};
    if (s.how == supervised::end::crashed) {
      d.label = "crash";
      const auto colon = s.last_words.find("processor: ");
      const std::string why = colon == std::string::npos ? s.signal : s.last_words.substr(colon + 11);
      d.evidence = why.substr(0, why.find('\n'));
    }
    const std::vector<std::string> lines = lines_of(failure_text(d, stage, learner, kernel));
    std::string report = fmt::format("FAIL stage {} (your code)  {}\n", stage.number, s.step);
    for (std::size_t i = 1; i < lines.size(); ++i) report += lines[i] + "\n";
    print(coloured(report));
    progress done(root);
    record_failure(done, stage.number, d, line_to_look_at(learner, kernel, d));
    done.save();
    return 1;
  } catch (const std::exception& problem) {
    std::fputs((name + ": " + problem.what() + "\n").c_str(), stderr);
    return 2;
  }
}
