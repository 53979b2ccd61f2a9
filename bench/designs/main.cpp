// Times the designs of this folder, or of distances/, side by side, each against the best copy over the same
// buffers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "designs.hpp"
#include "harness/command.hpp"
#include "harness/median.hpp"
#include "harness/options.hpp"
#include "harness/session.hpp"
#include "harness/stage_memory.hpp"
#include "harness/usage_error.hpp"
#include "measure.hpp"

namespace softmax {
namespace {

struct arguments {
  std::string types = "f32,bf16", only;
  std::vector<std::int64_t> rows, cols;
  int samples = 15;
};

/// Measures one design; the entry says what came of it.
nlohmann::json measured_design(const bench_point& point, const design_facts& design, chosen_device& device) {
  const measured m = measure(point, this_stage(), device);
  nlohmann::json entry{{"design", design.name}, {"parameters", design.parameters}};
  if (!m.problem.empty()) {
    entry["problem"] = m.problem;
    return entry;
  }
  const double seconds = median(m.seconds);
  entry["microseconds"] = seconds * 1e6;
  entry["fraction_of_copy"] = m.copy.best / seconds;
  entry["copy_microseconds"] = m.copy.best * 1e6;
  return entry;
}

nlohmann::json measured_shape(const arguments& a, dtype type, const matrix_shape& shape,
                              chosen_device& device, bool& right) {
  nlohmann::json entries = nlohmann::json::array();
  const std::vector<design_facts>& designs = designs_of(type);
  for (std::size_t i = 0; i < designs.size(); ++i) {
    const design_facts& d = designs[i];
    if (shape.cols < d.narrowest || shape.cols > d.widest || shape.rows < d.fewest_rows ||
        shape.rows > d.most_rows)
      continue;
    if (!a.only.empty() && (d.name + " " + d.parameters).find(a.only) == std::string::npos) continue;
    bench_point point{.type = type, .shape = shape, .samples = a.samples};
    point.plan.variant = static_cast<int>(i) + 1;
    entries.push_back(measured_design(point, d, device));
    if (entries.back().contains("problem")) {
      right = false;
      fmt::print(stderr, "{} {}: {}\n", d.name, d.parameters, entries.back()["problem"].get<std::string>());
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const nlohmann::json& x, const nlohmann::json& y) {
    return x.value("microseconds", 1e9) < y.value("microseconds", 1e9);
  });
  fmt::print(stderr, "{}\n", shape_text(shape, type));
  for (std::size_t i = 0; i < std::min<std::size_t>(entries.size(), 6); ++i)
    if (entries[i].contains("microseconds"))
      fmt::print(stderr, "  {:8.2f} us {:6.3f} of copy  {} {}\n", entries[i]["microseconds"].get<double>(),
                 entries[i]["fraction_of_copy"].get<double>(), entries[i]["design"].get<std::string>(),
                 entries[i]["parameters"].get<std::string>());
  return {{"dtype", name_of(type)}, {"rows", shape.rows}, {"cols", shape.cols}, {"measured", entries}};
}

int run(int argc, char** argv) {
  arguments a;
  CLI::App app{
      this_stage().idea +
          ": cold caches, each checked before and after it is timed, against the best copy over the same "
          "buffers. One line of JSON for each shape on standard output, the fastest on standard error.",
      this_stage().number};
  app.add_option("--rows", a.rows, "Rows, with commas; 0 for 2^28 elements")
      ->delimiter(',')
      ->required()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--cols", a.cols, "As many columns")->delimiter(',')->required()->check(CLI::PositiveNumber);
  app.add_option("--dtype", a.types, "f32, bf16, or both with a comma (f32,bf16)");
  app.add_option("--only", a.only, "Designs whose name and parameters hold this");
  app.add_option("--samples", a.samples, "Batches that a median is of (15)")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  try {
    if (a.rows.size() != a.cols.size())
      throw usage_error("--rows and --cols go in pairs: give as many of both.");
    auto backends = make_backends();
    options o;
    o.device = "cuda";
    chosen_device device = choose_device(o, backends);
    if (device.facts.cluster_blocks < 16)
      throw usage_error("the designs need a GPU with clusters of 16 blocks.");
    bool right = true;
    for (const std::string& name : split(a.types, ',')) {
      const auto type = parse_dtype(name);
      if (!type || *type == dtype::f16)
        throw usage_error(fmt::format("--dtype {} is not compiled here: use f32 or bf16.", name));
      for (std::size_t i = 0; i < a.rows.size(); ++i) {
        const std::int64_t cols = a.cols[i], rows = a.rows[i] ? a.rows[i] : (std::int64_t{1} << 28) / cols;
        if (rows < 1) throw usage_error("--rows 0 means 2^28 elements, which are fewer than such a row has.");
        fmt::print("{}\n", measured_shape(a, *type, {rows, cols, cols, cols}, device, right).dump());
        std::fflush(stdout);
      }
    }
    return right ? 0 : 1;
  } catch (const usage_error& mistake) {
    fmt::print(stderr, "{}: {}\n", this_stage().number, mistake.what());
    return 2;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}: {}\n", this_stage().number, problem.what());
    return 1;
  }
}

}  // namespace
}  // namespace softmax

int main(int argc, char** argv) { return softmax::run(argc, argv); }
