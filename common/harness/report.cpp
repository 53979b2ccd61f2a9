#include "harness/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/painter.hpp"
#include "numerics/dtype.hpp"
#include "softmax_commit.hpp"

#ifndef SOFTMAX_BUILD_TYPE
#define SOFTMAX_BUILD_TYPE "unknown"
#endif

namespace softmax {
namespace {

// What five separate operations move, intermediate results in fp32: the yardstick of every ledger.
const kernel_model unfused{.kernel = "",
                           .reads_storage = {.mn = 2},
                           .reads_f32 = {.mn = 3, .m = 2},
                           .writes_storage = {.mn = 1},
                           .writes_f32 = {.mn = 2, .m = 2}};
constexpr element_count floor_reads{1, 0}, floor_writes{1, 0};

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string number_text(double v) { return fmt::format("{:.6e}", v); }

std::string ledger_line(const std::string& label, const std::string& reads, double read_bytes,
                        const std::string& writes, double write_bytes, const std::string& total) {
  return fmt::format("  {:<21} {:>8} {:>10} {:>8} {:>10} {:>9} {:>10}\n", label, reads, size_text(read_bytes),
                     writes, size_text(write_bytes), total, size_text(read_bytes + write_bytes));
}

/// Why more sectors move than were asked for; one line each.
std::string sector_reasons(const run_result& r, const stage_info& stage, const options& o) {
  const auto row_bytes = [&](std::int64_t ld) { return ld * static_cast<std::int64_t>(size_of(r.type)); };
  std::string lines;
  if (o.offset * static_cast<std::int64_t>(size_of(r.type)) % static_cast<std::int64_t>(simt::sector_bytes) !=
      0)
    lines += "    the matrices themselves start inside a sector (--offset)\n";
  for (std::int64_t ld : {r.shape.ld_in, r.shape.ld_out, r.shape.cols})
    if (row_bytes(ld) % static_cast<std::int64_t>(simt::sector_bytes) != 0) {
      lines += fmt::format(
          "    rows lie {} bytes apart, so they start inside a sector that two requests then share\n",
          row_bytes(ld));
      break;
    }
  if (stage.reads().m + stage.writes().m > 0)
    lines += "    each result of a row is 4 bytes and moves a sector of 32\n";
  return lines;
}

void append_ledger(std::string& out, const run_result& r, const stage_info& stage, const options& o,
                   const painter& paint) {
  const double element = static_cast<double>(size_of(r.type));
  const auto elements = [&](const element_count& c) { return static_cast<double>(c.of(r.shape)) * element; };
  out += fmt::format("{} {:>22} {:>19} {:>20}\n", paint.strong("byte ledger"), "reads", "writes", "total");
  out += ledger_line("unfused, five kernels", unfused.reads().text(),
                     static_cast<double>(unfused.read_bytes(r.shape, r.type)), unfused.writes().text(),
                     static_cast<double>(unfused.write_bytes(r.shape, r.type)),
                     (unfused.reads() + unfused.writes()).text());
  out += ledger_line("this stage's model", stage.reads().text(),
                     static_cast<double>(stage.read_bytes(r.shape, r.type)), stage.writes().text(),
                     static_cast<double>(stage.write_bytes(r.shape, r.type)),
                     (stage.reads() + stage.writes()).text());
  if (r.counted) {
    const ledger& l = *r.counted;
    out += ledger_line("requested by threads", "", static_cast<double>(l.requested_read), "",
                       static_cast<double>(l.requested_write), "");
    const auto requested = static_cast<double>(l.requested_read + l.requested_write);
    const auto sectors = static_cast<double>(l.sector_read + l.sector_write);
    out += ledger_line("32-byte sectors", "", static_cast<double>(l.sector_read), "",
                       static_cast<double>(l.sector_write), "");
    out += ledger_line("fused floor", "MN", elements(floor_reads), "MN", elements(floor_writes), "2MN");
    if (l.mismatch.empty())
      out += fmt::format("  requested = model, byte for byte\n");
    else
      out += fmt::format("  {} {}\n", paint.bad("requested differs from the model:"), l.mismatch);
    if (requested > 0)
      out += fmt::format("  sectors / requested = {:.3f}\n{}", sectors / requested,
                         sectors > requested ? sector_reasons(r, stage, o) : "");
  } else {
    if (r.dram && r.dram->why_not.empty())
      out += ledger_line("DRAM, by its counters", "", r.dram->read_bytes, "", r.dram->write_bytes, "");
    out += ledger_line("fused floor", "MN", elements(floor_reads), "MN", elements(floor_writes), "2MN");
    out += "  requested bytes and sectors are counted by the simulator alone, and not with --no-check\n";
  }
  if (r.type != dtype::f32)
    out += "  intermediate results are fp32 and weigh twice what an element of the matrix does\n";
  if (!r.dram)
    out += o.counters && r.counted ? "  DRAM bytes: the simulator has no caches; --counters needs a GPU\n"
                                   : "  DRAM bytes: not measured; on a GPU, --counters reads them\n";
  else if (!r.dram->why_not.empty())
    out += fmt::format("  DRAM bytes: not available: {}\n", r.dram->why_not);
}

void append_launches(std::string& out, const ledger& l, const painter& paint) {
  out += fmt::format("{} {:>15} {:>9} {:>9} {:>10} {:>9} {:>9}\n", paint.strong("launches "),
                     "blocks x threads", "load req.", "sect./req.", "store req.", "barriers", "shuffles");
  for (const auto& k : l.launches) {
    const auto requests = static_cast<double>(k.global_load.requests);
    out += fmt::format("  {:<13} {:>5} x {:<4} {:>9} {:>10.2f} {:>10} {:>9} {:>9}\n", k.kernel, k.grid,
                       k.block, k.global_load.requests,
                       requests > 0 ? static_cast<double>(k.global_load.sectors) / requests : 0.0,
                       k.global_store.requests, k.barriers, k.shuffles);
  }
}

void append_check(std::string& out, const run_result& r, const painter& paint) {
  if (!r.fault.empty()) {
    out += fmt::format("{} {}\n", paint.bad("FAULT  "), r.fault);
    return;
  }
  const verdict& v = r.check;
  if (v.elements == 0) {
    out += fmt::format("{} an empty matrix: nothing was launched, read or written\n", paint.good("RIGHT  "));
  } else if (v.pass) {
    out += fmt::format("{} {} elements in {} rows; largest error {:.2f} ulp of {}", paint.good("RIGHT  "),
                       v.elements, v.rows_checked, v.largest_ulp, name_of(r.type));
    if (v.special_rows > 0) out += fmt::format("; {} rows are NaN, as they must be", v.special_rows);
    out += "\n";
    if (v.worst.row >= 0)
      out += fmt::format("        nearest to its limit: row {}, col {}: {}, want {} ({:.2f} of {:.2f} ulp)\n",
                         v.worst.row, v.worst.col, number_text(v.worst.got), number_text(v.worst.want),
                         v.worst.ulp, v.worst.limit);
    out += fmt::format("        an all-zero output would get {} of these elements wrong\n",
                       v.zero_output_would_fail);
  } else {
    out +=
        fmt::format("{} {} of {} elements are wrong; the first: row {}, col {}: {}\n", paint.bad("WRONG  "),
                    v.failures, v.elements, v.worst.row, v.worst.col, to_string(v.worst.why));
    out += fmt::format("        got {}, want {}", number_text(v.worst.got), number_text(v.worst.want));
    out += std::isfinite(v.worst.ulp)
               ? fmt::format(", {:.3g} ulp where {:.3g} are allowed\n", v.worst.ulp, v.worst.limit)
               : "\n";
  }
  if (!r.damage.empty()) out += fmt::format("{} {}\n", paint.bad("DAMAGE "), r.damage);
  if (r.differing_repeat)
    out += fmt::format("{} repetition {} gave other bits than the first: look for a race\n",
                       paint.bad("UNSTEADY"), *r.differing_repeat + 1);
}

/// Do the buffers that a timing rotates through exceed the L2 cache by far?
const char* cache_state(const timing& t, const chosen_device& d) {
  return static_cast<double>(t.rotated_bytes) >= 2.0 * static_cast<double>(d.facts.l2_bytes) ? "cold"
                                                                                             : "warm";
}

void append_time(std::string& out, const run_result& r, const chosen_device& d, const painter& paint) {
  const auto useful = static_cast<double>(useful_bytes(r.shape, r.type));
  if (d.simulated) {
    if (d.gpu && useful > 0)
      out += fmt::format(
          "{} none: this is no GPU. The floor of 2MN would take {} at the {:.2f} TB/s\n"
          "        of an {} (a model)\n",
          paint.strong("time   "), time_text(useful / d.gpu->peak_bytes_per_second),
          d.gpu->peak_bytes_per_second * 1e-12, d.gpu->name);
    return;
  }
  if (!r.timed) {
    out += fmt::format("{} not taken: {}\n", paint.strong("time   "), r.not_timed);
    return;
  }
  const timing& t = *r.timed;
  const double rate = useful / t.seconds;
  out += fmt::format("{} {} a call, median of {} ({} to {}); {} caches ({} of buffers rotate, L2 is {})\n",
                     paint.strong("time   "), time_text(t.seconds), t.samples, time_text(t.fastest),
                     time_text(t.slowest), cache_state(t, d), size_text(static_cast<double>(t.rotated_bytes)),
                     size_text(static_cast<double>(d.facts.l2_bytes)));
  out += fmt::format("        {:.1f} GB/s useful (2MN)", rate * 1e-9);
  if (t.copy.best > 0) {
    const double roof = t.copy.bytes_per_second();
    out += fmt::format(" = {:.3f} of a copy, {:.1f} GB/s ({})", rate / roof, roof * 1e-9, t.copy.which);
  }
  const double peak = d.peak_bytes_per_second();
  if (peak > 0)
    out += fmt::format("\n        = {:.3f} of the {:.2f} TB/s peak{}", rate / peak, peak * 1e-12,
                       d.gpu ? " in the datasheet" : " by its clock");
  else
    out += "\n        peak bandwidth of this GPU: unknown";
  out += "\n";
  if (d.gpu && rate > peak)
    out += "        faster than the memory can be: this shape was served from a cache\n";
}

/// The last line of a run that is not as it should be.
std::string failure_text(const run_result& r) {
  if (!r.fault.empty()) return "the kernel was stopped at the fault above";
  if (!r.check.pass) return "the result is wrong";
  if (!r.damage.empty()) return "the result is right, but " + r.damage;
  if (r.differing_repeat) return "the result differs from run to run";
  return "the result is right, but the bytes requested are not those of the model: " + r.counted->mismatch;
}

nlohmann::json launch_json(const simt::launch_record& k) {
  const auto traffic = [](const simt::traffic& t, bool global) {
    nlohmann::json j{{"requests", t.requests}, {"bytes", t.bytes}};
    if (global) {
      j["sectors"] = t.sectors;
    } else {
      j["wavefronts"] = t.wavefronts;
      j["bank_conflicts"] = t.bank_conflicts;
    }
    return j;
  };
  return {{"kernel", k.kernel},
          {"grid", k.grid},
          {"block", k.block},
          {"shared_bytes", k.shared_bytes},
          {"global_load", traffic(k.global_load, true)},
          {"global_store", traffic(k.global_store, true)},
          {"shared_load", traffic(k.shared_load, false)},
          {"shared_store", traffic(k.shared_store, false)},
          {"barriers", k.barriers},
          {"shuffles", k.shuffles}};
}

nlohmann::json run_json(const run_result& r, const stage_info& stage, const chosen_device& d) {
  const verdict& v = r.check;
  nlohmann::json j;
  j["rows"] = r.shape.rows;
  j["cols"] = r.shape.cols;
  j["ld_in"] = r.shape.ld_in;
  j["ld_out"] = r.shape.ld_out;
  j["dtype"] = name_of(r.type);
  j["input"] = r.input;
  j["pass"] = r.pass();
  j["fault"] = r.fault;
  j["damage"] = r.damage;
  j["steady"] = !r.differing_repeat.has_value();
  j["hash"] = fmt::format("{:016x}", r.output_hash);
  j["check"] = {{"pass", v.pass},
                {"rows", v.rows_checked},
                {"elements", v.elements},
                {"failures", v.failures},
                {"special_rows", v.special_rows},
                {"largest_ulp", v.largest_ulp},
                {"zero_output_would_fail", v.zero_output_would_fail},
                {"worst",
                 {{"row", v.worst.row},
                  {"col", v.worst.col},
                  {"got", v.worst.got},
                  {"want", v.worst.want},
                  {"ulp", v.worst.ulp},
                  {"limit", v.worst.limit},
                  {"why", to_string(v.worst.why)}}}};
  j["model"] = {{"reads", stage.reads().text()},
                {"writes", stage.writes().text()},
                {"read_bytes", static_cast<double>(stage.read_bytes(r.shape, r.type))},
                {"write_bytes", static_cast<double>(stage.write_bytes(r.shape, r.type))}};
  j["useful_bytes"] = useful_bytes(r.shape, r.type);
  if (r.counted) {
    nlohmann::json launches = nlohmann::json::array();
    for (const auto& k : r.counted->launches) launches.push_back(launch_json(k));
    j["simulator"] = {
        {"requested_read", r.counted->requested_read}, {"requested_write", r.counted->requested_write},
        {"sector_read", r.counted->sector_read},       {"sector_write", r.counted->sector_write},
        {"model_mismatch", r.counted->mismatch},       {"launches", launches}};
  }
  if (r.dram && r.dram->why_not.empty())
    j["dram"] = {{"read_bytes", r.dram->read_bytes}, {"write_bytes", r.dram->write_bytes}};
  else if (r.dram)
    j["dram"] = {{"not_available", r.dram->why_not}};
  if (r.timed) {
    const timing& t = *r.timed;
    j["time"] = {
        {"seconds", t.seconds},        {"fastest", t.fastest},       {"slowest", t.slowest},
        {"samples", t.samples},        {"cache", cache_state(t, d)}, {"rotated_bytes", t.rotated_bytes},
        {"copy_seconds", t.copy.best}, {"copy_bytes", t.copy.bytes}, {"copy_kernel", t.copy.which}};
    const double roof = t.copy.best > 0 ? t.copy.bytes_per_second() : std::nan("");
    const double rate = static_cast<double>(j["useful_bytes"]) / t.seconds;
    j["time"]["bytes_per_second"] = rate;
    j["time"]["fraction_of_copy"] = rate / roof;
  }
  return j;
}

}  // namespace

std::string report_text(const std::vector<run_result>& results, const stage_info& stage,
                        const chosen_device& d, const options& o) {
  const painter paint(o.color);
  std::string out = fmt::format("{} {}\n", paint.strong("stage " + stage.number), stage.idea);
  if (d.simulated)
    out += fmt::format("{} SIMT simulator in place of an {}, {} lanes a warp\n", paint.strong("device "),
                       d.gpu->name, d.facts.warp_size);
  else
    out += fmt::format("{} {} ({}, {} multiprocessors, driver {})\n", paint.strong("device "), d.facts.name,
                       d.facts.architecture, d.facts.multiprocessors,
                       simt::version_text(d.facts.driver_version));
  if (!d.note.empty()) out += fmt::format("        {}\n", paint.dim(d.note));
  for (const run_result& r : results) {
    out += fmt::format("{} {} x {} {}", paint.strong("shape  "), r.shape.rows, r.shape.cols, name_of(r.type));
    if (r.shape.ld_in != r.shape.cols || r.shape.ld_out != r.shape.cols)
      out += fmt::format(", row strides {} and {}", r.shape.ld_in, r.shape.ld_out);
    out += o.input.empty() ? fmt::format(", input {} (seed {})\n", r.input, o.seed)
                           : fmt::format(", input {}\n", r.input);
    append_check(out, r, paint);
    if (!r.fault.empty()) continue;
    append_ledger(out, r, fitted(stage, r.shape, r.type, d.facts.cluster_blocks), o, paint);
    if (r.counted) append_launches(out, *r.counted, paint);
    append_time(out, r, d, paint);
    if (!o.output.empty() && r.pass()) out += fmt::format("{} {}\n", paint.strong("written"), o.output);
    if (!o.output.empty() && !r.pass())
      out += fmt::format("{} {} was not written\n", paint.bad("wrong: "), o.output);
  }
  const auto failed =
      std::find_if(results.begin(), results.end(), [](const run_result& r) { return !r.pass(); });
  if (failed == results.end())
    out += fmt::format("{} {}\n", paint.strong("next   "), stage.next);
  else
    out += fmt::format("{} {}\n", paint.bad("FAILED "), failure_text(*failed));
  return out;
}

std::string device_json(const chosen_device& d) {
  nlohmann::json j;
  j = {{"backend", d.machine->name()},
       {"name", d.simulated && d.gpu ? d.gpu->name : d.facts.name},
       {"simulated", d.simulated},
       {"architecture", d.facts.architecture},
       {"warp_size", d.facts.warp_size},
       {"multiprocessors", d.simulated && d.gpu ? d.gpu->multiprocessors : d.facts.multiprocessors},
       {"l2_bytes", d.simulated && d.gpu ? d.gpu->l2 : d.facts.l2_bytes},
       {"driver_version", d.facts.driver_version},
       {"runtime_version", d.facts.runtime_version},
       {"note", d.note}};
  return j.dump();
}

std::string report_json(const std::vector<run_result>& results, const stage_info& stage,
                        const chosen_device& d, const options& o) {
  nlohmann::json j;
  j["stage"] = {{"number", stage.number}, {"folder", stage.folder}, {"idea", stage.idea}};
  j["device"] = nlohmann::json::parse(device_json(d));
  j["seed"] = o.seed;
  j["build_type"] = SOFTMAX_BUILD_TYPE;
  j["commit"] = SOFTMAX_COMMIT;
  j["runs"] = nlohmann::json::array();
  for (const run_result& r : results)
    j["runs"].push_back(run_json(r, fitted(stage, r.shape, r.type, d.facts.cluster_blocks), d));
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace softmax
