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
#include "harness/pitfall.hpp"
#include "harness/report.hpp"
#include "harness/session.hpp"
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
    progress = device.simulated && isatty(STDERR_FILENO) && !o.json;
    if (progress)
      simt::configuration().on_progress = [](double share) {
        fmt::print(stderr, "\rsimulating {:3.0f} %", share * 100);
        std::fflush(stderr);
      };
    const std::vector<run_result> results = run_all(o, stage, device);
    clear_progress();
    const std::string text =
        o.json ? report_json(results, stage, device, o) : report_text(results, stage, device, o);
    print(text);
    if (!o.json && !device.simulated) keep_best(stage, best_of(results, device.facts));
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
