#include "harness/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "harness/devices.hpp"
#include "harness/output_file.hpp"
#include "harness/pitfall.hpp"
#include "harness/usage_error.hpp"
#include "numerics/input.hpp"

namespace softmax {
namespace {

constexpr std::int64_t largest = INT64_MAX;

/// A whole number in [low, high]; the sentence names the option.
std::int64_t whole_number(const std::string& option, const std::string& text, std::int64_t low,
                          std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range)
    throw usage_error(fmt::format("{} {} does not fit in 64 bits: use a smaller number.", option, text));
  if (problem != std::errc() || end != text.data() + text.size())
    throw usage_error(
        fmt::format("{} {} is no whole number: write digits, such as {} 64.", option, text, option));
  if (value < low || value > high)
    throw usage_error(fmt::format("{} {} is out of range: use {} to {}.", option, text, low, high));
  return value;
}

/// "1,5,7"
std::vector<std::int64_t> whole_numbers(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> values;
  std::size_t begin = 0;
  for (std::size_t comma; (comma = text.find(',', begin)) != std::string::npos; begin = comma + 1)
    values.push_back(whole_number(option, text.substr(begin, comma - begin), 0, largest));
  values.push_back(whole_number(option, text.substr(begin), 0, largest));
  return values;
}

/// 0, or a power of two up to `high`.
int power_of_two(const std::string& option, const std::string& text, int high) {
  const auto value = static_cast<int>(whole_number(option, text, 0, high));
  if ((value & (value - 1)) != 0)
    throw usage_error(
        fmt::format("{} {} is no power of two: use 1, 2, 4 and so on up to {}.", option, text, high));
  return value;
}

row_choice parse_check(const std::string& text) {
  if (text == "full") return {};
  if (text.starts_with("rows:")) return {.rows = whole_number("--check rows:", text.substr(5), 1, INT64_MAX)};
  throw usage_error(
      fmt::format("--check {} is not known: use full, or rows:K for a sample of K rows.", text));
}

/// "text", "json", or "html" with a file, from what stands behind --profile.
void parse_profile(const std::string& text, options& o) {
  if (text.starts_with("html:")) {
    o.profile = "html";
    o.profile_file = text.substr(5);
    if (o.profile_file.empty())
      throw usage_error("--profile=html: needs a path to write to, such as --profile=html:report.html.");
    check_writable(o.profile_file, "--profile=html:");
  } else if (text == "text" || text == "json") {
    o.profile = text;
  } else {
    throw usage_error(fmt::format("--profile={} is not known: use text, json, or html:FILE.", text));
  }
}

/// "row=3,warp=1", either part or none.
trace_choice parse_trace(const std::string& text) {
  trace_choice t;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    if (part.starts_with("row="))
      t.row = whole_number("--trace row=", part.substr(4), 0, largest);
    else if (part.starts_with("warp="))
      t.warp = static_cast<int>(whole_number("--trace warp=", part.substr(5), 0, 31));
    else
      throw usage_error(
          fmt::format("--trace {} is not known: write row=R,warp=W, such as --trace row=0,warp=0.", text));
    begin = comma + 1;
  }
  return t;
}

std::string keys() {
  std::string all;
  for (const auto& g : gpu_table()) all += (all.empty() ? "" : ", ") + g.key;
  return all;
}

std::string examples(const stage_info& stage) {
  std::string lines = "Inputs for --dist:\n";
  for (const auto& d : distributions()) lines += fmt::format("  {:<10} {}\n", d.name, d.description);
  lines += fmt::format(
      "\nExamples:\n"
      "  ./stage-{0}                                    run, check and count at the default shape\n"
      "  ./stage-{0} --rows 5 --cols 31,32,33 --dtype bf16   three shapes in one call\n"
      "  ./stage-{0} --device sim --gpu mi250x          the same kernel with 64-wide warps\n"
      "  ./stage-{0} --profile                          which source line moves what, and what to change\n"
      "  ./stage-{0} --trace row=3                      how the lanes of a warp reduce row 3\n"
      "  ./stage-{0} --input tests/data/attention_scores.npy --output y.npy\n"
      "\nExit codes: 0 right, 1 wrong result or a fault in the kernel, 2 the command cannot be run as "
      "given.\n",
      stage.number);
  return lines;
}

}  // namespace

parsed_options parse_options(int argc, const char* const* argv, const stage_info& stage) {
  parsed_options parsed;
  options& o = parsed.values;
  CLI::App app{
      fmt::format(
          "Stage {}: {}.\nRow-wise softmax of an M x N matrix: rows (M) are independent, columns (N) are "
          "normalised.",
          stage.number, stage.idea),
      "stage-" + stage.number};
  app.footer(examples(stage));
  app.set_help_flag("--help,-h", "Show this and exit");

  std::string rows, cols, type, ld_in, ld_out, offset = "0", seed = "1", check = "full", repeat = "1",
                                               index = "0", threads = "0";
  app.add_option("--rows", rows, "Rows, M; several values with commas (256 on the simulator, 16384 on a GPU)")
      ->type_name("M");
  app.add_option("--cols", cols, "Columns, N; several values with commas (781 or 8192)")->type_name("N");
  app.add_option("--dtype", type, "Storage: f32, f16 or bf16; arithmetic is fp32 (f32)")->type_name("T");
  app.add_option("--ld-in", ld_in, "Row stride of the input in elements, at least N (N)")->type_name("LD");
  app.add_option("--ld-out", ld_out, "Row stride of the output in elements, at least N (N)")->type_name("LD");
  app.add_option("--offset", offset,
                 "Start both matrices this many elements off a 256-byte boundary, 0 to 1024 (0)")
      ->type_name("K");
  app.add_option("--input", o.input, "Read the matrix from a .npy file (float32 or float16)")
      ->type_name("FILE");
  app.add_option("--output", o.output, "Write the result to a .npy file")->type_name("FILE");
  app.add_option("--dist", o.distribution, "Made-up input, see below (mixed)")->type_name("D");
  app.add_option("--seed", seed, "Seed of the made-up input (1)")->type_name("K");
  app.add_option("--check", check, "full, or rows:K for a sample of K rows (full)")->type_name("C");
  app.add_option("--repeat", repeat, "Run this often, 1 to 1000000, and compare the outputs bit for bit (1)")
      ->type_name("K");
  app.add_option("--device", o.device, "auto, cuda, hip or sim (auto)")->type_name("DEV");
  app.add_option("--index", index, "Which GPU, counted from 0 (0)")->type_name("K");
  app.add_option("--gpu", o.gpu, "The GPU that the simulator stands for: " + keys() + " (h200)")
      ->type_name("NAME");
  app.add_option("--threads", threads, "Host threads for the simulator, up to 16; 0: one a core (0)")
      ->type_name("K");
  std::string warps = "0", rows_per_block = "0";
  if (stage.tunable) {
    app.add_option("--warps", warps, "Warps a block: 1, 2, 4, 8, 16 or 32; 0: by rule (0)")->type_name("K");
    app.add_option("--rows-per-block", rows_per_block, "Rows a block: 1, 2, 4 or 8; 0: by rule (0)")
        ->type_name("K");
    app.add_flag("--tune", o.tune, "Try all warps and rows a block, and say what the rule costs");
  }
  app.add_option("--pitfall", o.pitfall, "Show a mistake beside the right result: " + pitfall_names(stage))
      ->type_name("NAME");
  std::string profile = "text", trace;
  app.add_option("--profile", profile,
                 "Simulator: what each source line moves, and what to change; =json, or =html:FILE")
      ->type_name("F")
      ->expected(0, 1);
  app.add_option("--trace", trace, "Simulator: the values that a warp exchanges for a row (row=0,warp=0)")
      ->type_name("row=R,warp=W")
      ->expected(0, 1);
  if (stage.uses_clusters)
    app.add_flag("--clusters", o.clusters, "Simulator: let the GPU use its clusters of blocks");
  bool no_check = false;
  app.add_flag("--no-check", no_check, "Simulator: do not watch memory accesses (faster, counts nothing)");
  bool no_time = false;
  app.add_flag("--no-time", no_time, "GPU: check the result only");
  app.add_flag("--counters", o.counters,
               "GPU: read its DRAM counters too (takes a second run under a profiler)");
  app.add_flag("--json", o.json, "Print one JSON object instead of text");

  const auto refuse = [&](const std::string& sentence) {
    complain(stage.number, sentence);
    parsed.exit_now = 2;
  };
  try {
    app.parse(argc, argv);
    if (app.count("--rows") > 0) o.rows = whole_numbers("--rows", rows);
    if (app.count("--cols") > 0) o.cols = whole_numbers("--cols", cols);
    if (!type.empty()) {
      o.type = parse_dtype(type);
      if (!o.type) throw usage_error(fmt::format("--dtype {} is not known: use f32, f16 or bf16.", type));
    }
    if (!ld_in.empty()) o.ld_in = whole_number("--ld-in", ld_in, 0, largest);
    if (!ld_out.empty()) o.ld_out = whole_number("--ld-out", ld_out, 0, largest);
    o.offset = whole_number("--offset", offset, 0, 1024);
    o.seed = static_cast<std::uint64_t>(whole_number("--seed", seed, 0, largest));
    o.check = parse_check(check);
    o.repeat = static_cast<int>(whole_number("--repeat", repeat, 1, 1000000));
    o.index = static_cast<int>(whole_number("--index", index, 0, 1023));
    o.threads = static_cast<int>(whole_number("--threads", threads, 0, 16));
    o.watch = !no_check;
    o.time = !no_time;
    o.plan.warps = power_of_two("--warps", warps, 32);
    o.plan.rows = power_of_two("--rows-per-block", rows_per_block, 8);
    const auto exclude = [&](const char* mode, std::initializer_list<const char*> others) {
      if (app.count(mode) == 0) return;
      for (const char* other : others)
        if (std::string_view(mode) != other && app.get_option_no_throw(other) && app.count(other) > 0)
          throw usage_error(
              fmt::format("{} has its own choice of what {} says: leave out {}.", mode, other, other));
    };
    exclude("--pitfall",
            {"--rows", "--cols", "--dtype", "--ld-in", "--ld-out", "--offset", "--input", "--output",
             "--dist", "--seed", "--check", "--repeat", "--json", "--tune", "--warps", "--rows-per-block"});
    for (const char* mode : {"--profile", "--trace"})
      exclude(mode, {"--pitfall", "--tune", "--repeat", "--output", "--no-check", "--no-time", "--trace"});
    if (app.count("--profile") > 0) parse_profile(profile.empty() ? "text" : profile, o);
    if (o.json && !o.profile.empty()) o.profile = "json";
    if (app.count("--trace") > 0) o.trace = parse_trace(trace);
    if (stage.tunable)
      exclude("--tune", {"--warps", "--rows-per-block", "--output", "--repeat", "--no-time"});
    if (app.count("--pitfall") > 0 && o.pitfall.empty())
      throw usage_error(fmt::format("--pitfall needs a name: use one of {}.", pitfall_names(stage)));
    if (o.device != "auto" && o.device != "cuda" && o.device != "hip" && o.device != "sim")
      throw usage_error(fmt::format("--device {} is not known: use auto, cuda, hip or sim.", o.device));
    if (!find_gpu(o.gpu))
      throw usage_error(fmt::format("--gpu {} is not known: use one of {}.", o.gpu, keys()));
    if (o.clusters && find_gpu(o.gpu)->cluster_blocks == 0)
      throw usage_error(fmt::format("--clusters: the {} has none; use --gpu h200.", find_gpu(o.gpu)->name));
    if (!o.input.empty() && !(o.rows.empty() && o.cols.empty()))
      throw usage_error("--input brings its own shape: leave out --rows and --cols.");
    if (!o.output.empty() && (o.rows.size() > 1 || o.cols.size() > 1))
      throw usage_error("--output holds one matrix: give one value for --rows and --cols.");
    if (app.count("--input") > 0 && o.input.empty())
      throw usage_error("--input needs the path of a .npy file.");
    if (app.count("--output") > 0 && o.output.empty())
      throw usage_error("--output needs a path to write to.");
    if (!o.output.empty()) check_writable(o.output);
  } catch (const CLI::CallForHelp& help) {
    std::fputs(app.help().c_str(), stdout);
    parsed.exit_now = 0;
  } catch (const CLI::ArgumentMismatch& mistake) {
    const std::string text = mistake.what();
    refuse(text.substr(0, text.find(':')) + " needs exactly one value and may stand once: see --help.");
  } catch (const CLI::ExtrasError&) {
    refuse(app.remaining().front() + " is no option of this program: see --help.");
  } catch (const CLI::Error& mistake) {
    refuse(std::string(mistake.what()) + ": see --help.");
  } catch (const usage_error& mistake) {
    refuse(mistake.what());
  }
  o.color = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return parsed;
}

}  // namespace softmax
