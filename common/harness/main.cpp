// The program behind every ./stage-NN.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "harness/backend.hpp"
#include "harness/options.hpp"
#include "harness/output_file.hpp"
#include "harness/pitfall.hpp"
#include "harness/profile.hpp"
#include "harness/report.hpp"
#include "harness/session.hpp"
#include "harness/trace.hpp"
#include "harness/tune.hpp"
#include "harness/usage_error.hpp"
#include "workbook/files.hpp"
#include "workbook/progress.hpp"

namespace {

/// Prints the result. @throws usage_error if standard output takes it not
void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw softmax::usage_error(
        "The result could not be written to standard output: check the pipe or the disk.");
}

/// For `make map`. A checkout that is gone or cannot be written is no reason to fail.
void keep_best(const softmax::stage_info& stage, const std::optional<softmax::best_fraction>& best) {
  if (!best) return;
  try {
    softmax::workbook::record_best_copy(softmax::workbook::workbook_root(), stage.number, best->of_copy,
                                        best->where);
  } catch (const softmax::usage_error& problem) {
    fmt::print(stderr, "stage-{}: the map does not learn of this time: {}\n", stage.number, problem.what());
  }
}

/// What the options ask to be shown of a run.
std::string result_text(const std::vector<softmax::run_result>& results, const softmax::stage_info& stage,
                        const softmax::chosen_device& device, const softmax::options& o) {
  if (o.trace) return o.json ? trace_json(results, stage, device, o) : trace_text(results, stage, device, o);
  if (o.profile == "html") return "written " + o.profile_file + "\n";
  if (o.profile == "json") return profile_json(results, stage, device);
  if (!o.profile.empty()) return profile_text(results, stage, device, o);
  return o.json ? report_json(results, stage, device, o) : report_text(results, stage, device, o);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace softmax;
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is an error to report, no reason to die
  std::signal(SIGPIPE, SIG_IGN);
  const stage_info& stage = this_stage();
  const parsed_options parsed = parse_options(argc, argv, stage);
  if (parsed.exit_now) return *parsed.exit_now;
  const options& o = parsed.values;
  bool progress = false;
  const auto clear_progress = [&progress] {
    if (progress) fmt::print(stderr, "\r\x1b[K");
  };
  try {
    auto backends = make_backends();
    chosen_device device = choose_device(o, backends);
    if (!device.simulated && (!o.profile.empty() || o.trace))
      throw usage_error(std::string(o.trace ? "--trace" : "--profile") +
                        " looks into the kernel, which only the simulator can: add --device sim.");
    if (!o.pitfall.empty()) {
      bool as_promised = false;
      const std::string text = run_pitfall(o.pitfall, stage, device, as_promised);
      print(text);
      return as_promised ? 0 : 1;
    }
    if (o.tune) {
      bool right = false;
      print(run_tuner(o, stage, device, right));
      return right ? 0 : 1;
    }
    progress = device.simulated && isatty(STDERR_FILENO) && !o.json && o.profile != "json";
    if (progress)
      simt::configuration().on_progress = [](double share) {
        fmt::print(stderr, "\rsimulating {:3.0f} %", share * 100);
        std::fflush(stderr);
      };
    const std::vector<run_result> results = run_all(o, stage, device);
    clear_progress();
    if (o.profile == "html")
      write_whole(o.profile_file, "--profile=html:", [&](std::ostream& file) {
        file << profile_html(results, stage, device);
      });
    print(result_text(results, stage, device, o));
    const bool timed_for_people = !o.json && !o.trace && o.profile.empty() && !device.simulated;
    if (timed_for_people) keep_best(stage, best_of(results, device.facts));
    const bool pass =
        std::all_of(results.begin(), results.end(), [](const run_result& r) { return r.pass(); });
    return pass ? 0 : 1;
  } catch (const usage_error& mistake) {
    clear_progress();
    complain(stage.number, mistake.what());
    return 2;
  } catch (const std::bad_alloc&) {
    clear_progress();
    complain(stage.number, "This machine has not enough memory for that: use fewer --rows or --cols.");
    return 2;
  } catch (const std::exception& problem) {
    clear_progress();
    complain(stage.number, problem.what());
    return 1;
  }
}
