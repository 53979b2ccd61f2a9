#include "harness/dram.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "harness/command.hpp"

namespace softmax {
namespace {

const std::string read_metric = "dram__bytes_read.sum", write_metric = "dram__bytes_write.sum";

/// The cells of a line of quoted, comma-separated values.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> values;
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (quoted) values.emplace_back();
    } else if (quoted) {
      values.back() += c;
    }
  }
  return values;
}

std::string this_program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : "";
}

}  // namespace

dram_traffic parse_counters(const std::string& csv, std::size_t launches) {
  dram_traffic t;
  std::vector<std::string> header;
  std::size_t seen = 0;
  for (const std::string& line : split(csv, '\n')) {
    if (line.empty() || line.front() != '"') continue;
    const std::vector<std::string> row = cells(line);
    if (header.empty()) {
      header = row;
      continue;
    }
    if (row.size() != header.size() || row.front().find_first_not_of("0123456789") != std::string::npos ||
        row.front().empty())
      continue;  // the line of units
    ++seen;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string digits = row[i];
      std::erase(digits, ',');
      if (header[i] == read_metric) t.read_bytes += std::strtod(digits.c_str(), nullptr);
      if (header[i] == write_metric) t.write_bytes += std::strtod(digits.c_str(), nullptr);
    }
  }
  if (csv.find("ERR_NVGPUCTRPERM") != std::string::npos)
    t.why_not =
        "this machine does not permit GPU counters (ERR_NVGPUCTRPERM): an administrator has to allow them, "
        "see "
        "https://developer.nvidia.com/ERR_NVGPUCTRPERM";
  else if (seen != launches || !(t.read_bytes > 0))
    t.why_not = fmt::format("Nsight Compute reported {} launches with counters where {} were expected", seen,
                            launches);
  return t;
}

dram_traffic measure_dram(const planned_run& run, const options& o, const stage_info& stage,
                          const chosen_device& device) {
  dram_traffic t;
  if (device.machine->name() != "cuda") {
    t.why_not = "on an AMD GPU, rocprofv3 reads them: rocprofv3 --pmc FETCH_SIZE WRITE_SIZE -- this command";
    return t;
  }
  const std::string ncu = find_ncu();
  if (ncu.empty()) {
    t.why_not = "Nsight Compute (ncu) was not found: install it, or read the sectors of --device sim instead";
    return t;
  }
  std::string command = fmt::format(
      "{} --clock-control none --csv --page raw --print-units base --launch-count {} --metrics {},{} {} "
      "--device cuda "
      "--index {} --no-time --check rows:1 --json --ld-in {} --ld-out {} --offset {}",
      shell_quoted(ncu), stage.launches.size(), read_metric, write_metric, shell_quoted(this_program()),
      device.facts.index, run.shape.ld_in, run.shape.ld_out, o.offset);
  if (run.file)
    command += fmt::format(" --input {} --dtype {}", shell_quoted(o.input), name_of(run.type));
  else
    command += fmt::format(" --rows {} --cols {} --dtype {} --dist {} --seed {}", run.shape.rows,
                           run.shape.cols, name_of(run.type), shell_quoted(o.distribution), o.seed);
  if (o.plan.warps > 0) command += fmt::format(" --warps {}", o.plan.warps);
  if (o.plan.rows > 0) command += fmt::format(" --rows-per-block {}", o.plan.rows);
  const command_output seen = run_command(command);
  t = parse_counters(seen.text, stage.launches.size());
  if (seen.exit_code != 0 && t.why_not.empty())
    t.why_not = "Nsight Compute failed: run bench/counters.py to see why";
  return t;
}

}  // namespace softmax
