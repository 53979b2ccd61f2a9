// The program behind every bench-NN: the stage and the copy kernels as Google Benchmarks with manual time.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "harness/command.hpp"
#include "harness/occupancy.hpp"
#include "harness/usage_error.hpp"
#include "measure.hpp"
#include "softmax_commit.hpp"

namespace softmax {
namespace {

volatile std::sig_atomic_t interrupted = 0;

struct shape_2d {
  std::int64_t rows, cols;
  bool operator==(const shape_2d&) const = default;
};

/// Widths of a table over N; rows follow from the number of elements.
constexpr std::int64_t widths[] = {32,   128,   256,   512,   781,   1000,   1024,   2048,   4096,
                                   8192, 16384, 32768, 50257, 65536, 128256, 131072, 262144, 1048576};
/// Few rows, as when a language model produces one token after another.
constexpr shape_2d few_rows[] = {{1823, 781},  {4096, 781},   {1, 1024},   {512, 1024},   {8, 4096},
                                 {8, 32000},   {128, 32000},  {1, 32768},  {132, 32768},  {1, 50257},
                                 {8, 50257},   {1, 128256},   {4, 128256}, {8, 128256},   {32, 128256},
                                 {64, 128256}, {128, 128256}, {1, 262144}, {132, 262144}, {1, 1048576}};

struct arguments {
  std::string device = "auto", set = "ladder", types = "f32,f16,bf16", rows, cols, elements, lie,
              gpu = "h200";
  int index = 0;
  bool warm = false;
};

std::vector<std::int64_t> numbers(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) {
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (problem != std::errc() || end != part.data() + part.size() || value < 1)
      throw usage_error(fmt::format("{} {} is no list of whole numbers from 1 up: write {} 32,1024.", option,
                                    text, option));
    values.push_back(value);
  }
  return values;
}

std::vector<shape_2d> shapes_of(const arguments& a, bool simulated) {
  std::vector<shape_2d> shapes;
  const std::vector<std::int64_t> sizes = a.elements.empty()
                                              ? std::vector<std::int64_t>{simulated ? 1 << 16 : 1 << 28}
                                              : numbers("--elements", a.elements);
  const auto add_width = [&](std::int64_t cols) {
    for (const std::int64_t elements : sizes) {
      const shape_2d shape{std::max<std::int64_t>(1, elements / cols), cols};
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  };
  if (!a.cols.empty()) {
    const std::vector<std::int64_t> cols = numbers("--cols", a.cols);
    if (a.rows.empty()) {
      for (std::int64_t n : cols) add_width(n);
      return shapes;
    }
    if (!a.elements.empty())
      throw usage_error("--elements is for --cols without --rows: leave one of them out.");
    const std::vector<std::int64_t> rows = numbers("--rows", a.rows);
    if (rows.size() != cols.size() && rows.size() != 1)
      throw usage_error("--rows and --cols go in pairs: give one --rows, or as many as --cols.");
    for (std::size_t i = 0; i < cols.size(); ++i) shapes.push_back({rows[rows.size() == 1 ? 0 : i], cols[i]});
    return shapes;
  }
  if (!a.rows.empty()) throw usage_error("--rows needs --cols.");
  if (a.set == "ladder" || a.set == "all")
    for (std::int64_t n : widths)
      if (!simulated || n <= *std::min_element(sizes.begin(), sizes.end())) add_width(n);
  if (a.set == "few-rows" || a.set == "all")
    shapes.insert(shapes.end(), std::begin(few_rows), std::end(few_rows));
  if (shapes.empty())
    throw usage_error(fmt::format("--set {} is not known: use ladder, few-rows or all.", a.set));
  return shapes;
}

/// "stage-03", or the name of a peer
std::string series_name(const stage_info& stage) {
  const bool digits =
      std::all_of(stage.number.begin(), stage.number.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? "stage-" + stage.number : stage.number;
}

/// Keeps the last point that was measured: the copy and the stage share one, and so do all repetitions.
class point_keeper {
 public:
  point_keeper(const stage_info& stage, chosen_device& device) : stage_(stage), device_(device) {}
  const measured& get(const std::string& key, const bench_point& point) {
    if (key != key_) {
      last_ = measure(point, stage_, device_);
      key_ = key;
    }
    return last_;
  }

 private:
  const stage_info& stage_;
  chosen_device& device_;
  std::string key_;
  measured last_;
};

void set_counts(benchmark::State& state, const measured& m, const chosen_device& device) {
  const ledger& l = *m.counted;
  state.counters["requested_bytes"] = static_cast<double>(l.requested_read + l.requested_write);
  state.counters["sector_bytes"] = static_cast<double>(l.sector_read + l.sector_write);
  state.counters["launches"] = static_cast<double>(l.launches.size());
  double barriers = 0;
  for (const auto& k : l.launches) barriers += static_cast<double>(k.barriers);
  state.counters["barriers"] = barriers;
  // The launch that loads most stands for the stage.
  const auto main = std::max_element(l.launches.begin(), l.launches.end(), [](const auto& a, const auto& b) {
    return a.global_load.bytes < b.global_load.bytes;
  });
  if (main == l.launches.end() || !device.gpu) return;
  const double block_bytes = static_cast<double>(main->global_load.bytes) / static_cast<double>(main->grid);
  state.counters["occupancy"] =
      occupancy_of(*device.gpu, static_cast<int>(main->block), main->shared_bytes, block_bytes, 0).share;
}

/// One repetition of a point: reports its next sample.
void report_sample(benchmark::State& state, const measured& m, const bench_point& p, const stage_info& stage,
                   const chosen_device& device, bool copy, std::size_t& turn) {
  const std::vector<double>& samples = copy ? m.copy.samples : m.seconds;
  if (interrupted || (!m.problem.empty() && !copy) || (samples.empty() && !m.counted)) {
    const std::string why = interrupted          ? "interrupted"
                            : !m.problem.empty() ? m.problem
                                                 : "nothing was timed";
    state.SkipWithError(why.c_str());
    return;
  }
  const double seconds = samples.empty() ? 0 : samples[turn++ % samples.size()];
  for (auto _ : state) state.SetIterationTime(seconds);
  const auto useful = static_cast<double>(useful_bytes(p.shape, p.type));
  const double moved = copy ? 2.0 * static_cast<double>(m.copy.bytes) : useful;
  state.counters["rows"] = static_cast<double>(p.shape.rows);
  state.counters["cols"] = static_cast<double>(p.shape.cols);
  state.counters["bytes_per_call"] = moved;
  if (!copy) {
    const stage_info fit = fitted(stage, p.shape, p.type, device.facts.cluster_blocks);
    const std::int64_t model = fit.read_bytes(p.shape, p.type) + fit.write_bytes(p.shape, p.type);
    if (model > 0) state.counters["model_bytes"] = static_cast<double>(model);
    state.counters["max_ulp"] = m.check.largest_ulp;
  }
  if (m.counted) set_counts(state, m, device);
  if (seconds > 0) {
    const double rate = moved / seconds;
    state.counters["bytes_per_second"] = rate;
    if (m.copy.best > 0) state.counters["of_copy"] = rate / m.copy.bytes_per_second();
    const double peak = device.peak_bytes_per_second();
    if (peak > 0) state.counters["of_peak"] = rate / peak;
    state.counters["samples"] = static_cast<double>(samples.size());
  }
  if (copy) state.SetLabel(m.copy.which);
}

void register_point(const std::string& series, const bench_point& point, const stage_info& stage,
                    chosen_device& device, const std::shared_ptr<point_keeper>& keeper) {
  std::string key =
      fmt::format("dtype:{}/rows:{}/cols:{}", name_of(point.type), point.shape.rows, point.shape.cols);
  if (!point.lie.empty()) key += "/lie:" + point.lie;
  const auto add = [&](const std::string& name, bool copy) {
    auto turn = std::make_shared<std::size_t>(0);
    auto* b = benchmark::RegisterBenchmark(
        (name + "/" + key).c_str(), [=, &stage, &device](benchmark::State& state) {
          static const measured nothing;
          const measured& m = interrupted ? nothing : keeper->get(key, point);
          report_sample(state, m, point, stage, device, copy, *turn);
        });
    b->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);
    if (device.simulated || point.lie == "cold") {
      b->Repetitions(1);
      return;
    }
    b->ComputeStatistics("min",
                         [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); });
    b->ComputeStatistics("max",
                         [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); });
  };
  const bool honest = point.lie.empty() || point.lie == "none";
  if (!device.simulated && honest && stage_problem(stage, point.shape).empty()) add("copy", true);
  add(series, false);
}

/// What `nvidia-smi` says after a moment of work; empty where it is not there.
std::vector<std::string> clocks_of(const simt::device& facts) {
  const std::string command = fmt::format(
      "nvidia-smi --query-gpu=clocks.sm,clocks.mem,driver_version --format=csv,noheader,nounits -i {}",
      facts.index);
  const command_output answer = run_command(command);
  if (answer.exit_code != 0) return {};
  std::vector<std::string> values = split(answer.text, ',');
  for (std::string& v : values) {
    v.erase(0, v.find_first_not_of(' '));
    v.erase(v.find_last_not_of(" \n") + 1);
  }
  return values.size() == 3 ? values : std::vector<std::string>{};
}

void add_context(const arguments& a, const stage_info& stage, chosen_device& device) {
  const simt::device& f = device.facts;
  const auto add = [](const char* key, const std::string& value) { benchmark::AddCustomContext(key, value); };
  add("program", "bench-" + stage.number);
  add("backend", device.machine->name());
  add("device", device.simulated ? "SIMT simulator in place of an " + device.gpu->name : f.name);
  add("architecture", f.architecture);
  add("toolkit", device.simulated ? "" : simt::version_text(f.runtime_version));
  std::vector<std::string> clocks;
  if (device.machine->name() == "cuda") {
    const matrix_shape warm_up{4096, 8192, 8192, 8192};
    const std::size_t bytes = 4096 * 8192 * 4;
    if (device.machine->free_memory() > 4 * bytes) {
      const device_buffer x(*device.machine, bytes, "warm-up source"),
          y(*device.machine, bytes, "warm-up target");
      device.machine->fill(x.get(), dtype::f32, warm_up, 1, 1);
      device.machine->time_copy({{.x = x.get(), .y = y.get()}}, bytes, 300);
    }
    clocks = clocks_of(f);
  }
  add("driver", !clocks.empty() ? clocks[2] : device.simulated ? "" : simt::version_text(f.driver_version));
  add("clock_sm_mhz", clocks.empty() ? "" : clocks[0]);
  add("clock_memory_mhz", clocks.empty() ? "" : clocks[1]);
  add("peak_bytes_per_second", fmt::format("{:.0f}", device.peak_bytes_per_second()));
  add("l2_bytes", fmt::format("{}", device.simulated && device.gpu ? device.gpu->l2 : f.l2_bytes));
  add("commit", SOFTMAX_COMMIT);
  add("build_type", SOFTMAX_BUILD_TYPE);
  add("input", "normal (sums of four uniform numbers), seed 1");
  add("cache", a.warm ? "warm" : "cold");
}

arguments parse(int argc, char** argv, const stage_info& stage) {
  arguments a;
  CLI::App app{
      fmt::format(
          "Benchmark of stage {}: {}.\nEvery point is checked before and after it is timed; times are of "
          "a GPU only, the simulator gives counts.",
          stage.number, stage.idea),
      "bench-" + stage.number};
  std::string lies;
  for (const timing_lie& l : timing_lies()) lies += fmt::format("\n  {:<9} {}", l.name, l.what);
  app.footer("Timing rules to break with --lie, beside the truth:" + lies +
             "\n\nGoogle Benchmark's own options work too: --benchmark_out=FILE, --benchmark_filter=REGEX, "
             "--benchmark_repetitions=25.\nExit codes: 0 every point measured, 1 a wrong result, 2 the "
             "command cannot be "
             "run as given.");
  app.set_help_flag("--help,-h", "Show this and exit");
  app.add_option("--device", a.device, "auto, cuda, hip or sim (auto)");
  app.add_option("--index", a.index, "Which GPU, counted from 0 (0)");
  app.add_option("--gpu", a.gpu, "The GPU that the simulator stands for (h200)");
  app.add_option("--set", a.set, "ladder (one width after another), few-rows, or all (ladder)");
  app.add_option("--dtype", a.types, "Types, with commas (f32,f16,bf16)");
  app.add_option("--elements", a.elements,
                 "Elements of the matrix where only N is given, with commas (2^28; simulator 2^16)");
  app.add_option("--rows", a.rows, "M, with commas, in place of a set");
  app.add_option("--cols", a.cols, "N, with commas, in place of a set");
  app.add_flag("--warm", a.warm, "Time on one set of buffers: the cache may serve what fits");
  app.add_option("--lie", a.lie, "Break a timing rule, or several with commas, and show the truth beside it");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ExtrasError&) {
    throw usage_error(app.remaining().front() + " is no option of this program: see --help.");
  } catch (const CLI::Error& mistake) {
    throw usage_error(std::string(mistake.what()) + ": see --help.");
  }
  return a;
}

void register_all(const arguments& a, const stage_info& stage, chosen_device& device, int samples) {
  const auto keeper = std::make_shared<point_keeper>(stage, device);
  std::vector<std::string> lies;
  if (!a.lie.empty()) {
    lies = split(a.lie, ',');
    for (const std::string& name : lies)
      if (std::none_of(timing_lies().begin(), timing_lies().end(),
                       [&](const auto& l) { return l.name == name; })) {
        std::string known;
        for (const auto& l : timing_lies()) known += (known.empty() ? "" : ", ") + l.name;
        throw usage_error(fmt::format("--lie {} is not known: use one of {}.", name, known));
      }
    if (device.simulated) throw usage_error("--lie needs a GPU: the simulator takes no times.");
    // The first call can be timed once, before anything else.
    std::stable_partition(lies.begin(), lies.end(), [](const std::string& l) { return l == "cold"; });
    lies.insert(lies.begin() + (lies.front() == "cold"), "none");
  } else {
    lies.emplace_back();
  }
  for (const std::string& name : split(a.types, ',')) {
    const auto type = parse_dtype(name);
    if (!type) throw usage_error(fmt::format("--dtype {} is not known: use f32, f16 or bf16.", name));
    for (const shape_2d& s : shapes_of(a, device.simulated))
      for (const std::string& lie : lies) {
        const bench_point point{.type = *type,
                                .shape = {s.rows, s.cols, s.cols, s.cols},
                                .lie = lie,
                                .warm = a.warm,
                                .samples = samples};
        (void)matrix_bytes(s.rows, s.cols, *type);  // refuses what no 64-bit size can hold
        register_point(series_name(stage), point, stage, device, keeper);
      }
  }
}

/// The repetitions that the options ask for: each of them reports one sample.
int repetitions(const std::vector<char*>& argv) {
  constexpr const char* flag = "--benchmark_repetitions=";
  int samples = 1;
  for (const char* a : argv)
    if (a && std::strncmp(a, flag, std::strlen(flag)) == 0) samples = std::atoi(a + std::strlen(flag));
  return std::clamp(samples, 1, 10000);
}

int run(int argc, char** argv) {
  const stage_info& stage = this_stage();
  try {
    // Defaults first: what stands behind them on the command line wins.
    static char repeat[] = "--benchmark_repetitions=25",
                aggregates[] = "--benchmark_report_aggregates_only=true",
                tabular[] = "--benchmark_counters_tabular=true";
    std::vector<char*> all{argv[0], repeat, aggregates, tabular};
    all.insert(all.end(), argv + 1, argv + argc);
    const int samples = repetitions(all);
    int count = static_cast<int>(all.size());
    all.push_back(nullptr);
    benchmark::Initialize(&count, all.data());
    const arguments a = parse(count, all.data(), stage);
    auto backends = make_backends();
    options o;
    o.device = a.device;
    o.gpu = a.gpu;
    o.index = a.index;
    if (a.device != "auto" && a.device != "cuda" && a.device != "hip" && a.device != "sim")
      throw usage_error(fmt::format("--device {} is not known: use auto, cuda, hip or sim.", a.device));
    if (!find_gpu(a.gpu))
      throw usage_error(fmt::format("--gpu {} is not known: see ./stage-00 --help.", a.gpu));
    chosen_device device = choose_device(o, backends);
    add_context(a, stage, device);
    register_all(a, stage, device, samples);
    std::signal(SIGINT, [](int) { interrupted = 1; });
    if (benchmark::RunSpecifiedBenchmarks() == 0)
      throw usage_error("--benchmark_filter leaves nothing to run.");
    benchmark::Shutdown();
    return interrupted ? 130 : 0;
  } catch (const usage_error& mistake) {
    fmt::print(stderr, "bench-{}: {}\n", stage.number, mistake.what());
    return 2;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "bench-{}: {}\n", stage.number, problem.what());
    return 1;
  }
}

}  // namespace
}  // namespace softmax

int main(int argc, char** argv) { return softmax::run(argc, argv); }
