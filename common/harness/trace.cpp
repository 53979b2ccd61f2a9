#include "harness/trace.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/painter.hpp"
#include "harness/report.hpp"
#include "harness/stage_memory.hpp"
#include "harness/usage_error.hpp"

namespace softmax {
namespace {

using simt::trace_step;

/// What the chosen warp of one launch did; nullptr where no warp works on the row between two meetings.
const simt::warp_trace* chosen_warp(const simt::launch_record& k, const options& o) {
  if (k.traces.empty()) return nullptr;
  if (o.trace->warp >= static_cast<int>(k.traces.size()))
    throw usage_error(
        fmt::format("--trace warp={} is out of range: {} works on row {} with {} warp{}, so use 0{}.",
                    o.trace->warp, k.kernel, o.trace->row, k.traces.size(), k.traces.size() == 1 ? "" : "s",
                    k.traces.size() == 1 ? "" : fmt::format(" to {}", k.traces.size() - 1)));
  return &k.traces[o.trace->warp];
}

/// Do two shuffles exchange the two halves of one state?
bool are_a_pair(const trace_step& a, const trace_step& b) {
  return a.what == trace_step::meeting::shuffle && b.what == trace_step::meeting::shuffle &&
         a.file == b.file && a.line == b.line && a.exchange == b.exchange;
}

std::string value_text(const trace_step& s, std::size_t lane, int digits) {
  const double v = s.given[lane];
  return s.floating ? fmt::format("{:.{}g}", v, digits) : fmt::format("{:.0f}", v);
}

bool same_bits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool all_alike(const trace_step& s) {
  for (double v : s.given)
    if (!same_bits(v, s.given[0])) return false;
  return true;
}

/// The values of the lanes, eight a line; of pairs, four. `second` is nullptr where there are no pairs.
std::string lanes_text(const trace_step& first, const trace_step* second) {
  const auto one = [&](std::size_t lane) {
    return second ? "(" + value_text(first, lane, 3) + ", " + value_text(*second, lane, 3) + ")"
                  : value_text(first, lane, 4);
  };
  if (all_alike(first) && (!second || all_alike(*second)))
    return fmt::format("    all {} lanes: {}\n", first.given.size(), one(0));
  const std::size_t a_line = second ? 4 : 8;
  std::string out;
  for (std::size_t begin = 0; begin < first.given.size(); begin += a_line) {
    out += fmt::format("    lane {:>2}:", begin);
    for (std::size_t lane = begin; lane < std::min(begin + a_line, first.given.size()); ++lane)
      out += fmt::format(" {:>{}}", one(lane), second ? 21 : 10);
    out += "\n";
  }
  return out;
}

std::string heading(const trace_step& s) {
  const std::string place = fmt::format("{}:{}", s.file, s.line);
  switch (s.what) {
    case trace_step::meeting::barrier:
      return "__syncthreads() at " + place;
    case trace_step::meeting::warp_barrier:
      return "sync_warp() at " + place;
    case trace_step::meeting::cluster_barrier:
      return "cluster_wait() at " + place;
    case trace_step::meeting::shuffle:
      return fmt::format("shuffle {} at {}", s.exchange, place);
  }
  return place;
}

nlohmann::json number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}

}  // namespace

std::string trace_text(const std::vector<run_result>& results, const stage_info& stage,
                       const chosen_device& d, const options& o) {
  const painter paint(o.color);
  std::string out =
      fmt::format("stage {}, row {}: what the lanes give whenever they meet ({} lanes a warp)\n",
                  stage.number, o.trace->row, d.facts.warp_size);
  for (const run_result& r : results) {
    out += fmt::format("{} {}\n", paint.strong("shape  "), shape_text(r.shape, r.type));
    if (!r.fault.empty()) out += r.fault + "\n";
    if (!r.counted) continue;
    for (const auto& k : r.counted->launches) {
      const simt::warp_trace* warp = chosen_warp(k, o);
      if (!warp) {
        out += fmt::format("{} {}: no warp meets while it works on this row\n", paint.strong("kernel "),
                           k.kernel);
        continue;
      }
      out += fmt::format("{} {}, block {}, warp {} of the block, {} of {} at work on the row\n",
                         paint.strong("kernel "), k.kernel, warp->block, warp->warp, o.trace->warp + 1,
                         k.traces.size());
      int number = 0;
      for (std::size_t i = 0; i < warp->steps.size(); ++i) {
        const trace_step& s = warp->steps[i];
        const bool pair = i + 1 < warp->steps.size() && are_a_pair(s, warp->steps[i + 1]);
        out += fmt::format("{:>4}  {}{}\n", ++number, heading(s), pair ? ", two values" : "");
        if (s.what == trace_step::meeting::shuffle)
          out += lanes_text(s, pair ? &warp->steps[i + 1] : nullptr);
        i += pair;
      }
    }
  }
  return out;
}

std::string trace_json(const std::vector<run_result>& results, const stage_info& stage,
                       const chosen_device& d, const options& o) {
  nlohmann::json j;
  j["stage"] = {{"number", stage.number}, {"folder", stage.folder}, {"idea", stage.idea}};
  j["device"] = nlohmann::json::parse(device_json(d));
  j["row"] = o.trace->row;
  j["warp"] = o.trace->warp;
  j["runs"] = nlohmann::json::array();
  for (const run_result& r : results) {
    nlohmann::json launches = nlohmann::json::array();
    for (const auto& k : r.counted ? r.counted->launches : std::vector<simt::launch_record>()) {
      nlohmann::json steps = nlohmann::json::array();
      const simt::warp_trace* warp = chosen_warp(k, o);
      for (const trace_step& s : warp ? warp->steps : std::vector<trace_step>()) {
        nlohmann::json step{{"what", s.what == trace_step::meeting::barrier           ? "barrier"
                                     : s.what == trace_step::meeting::warp_barrier    ? "sync_warp"
                                     : s.what == trace_step::meeting::cluster_barrier ? "cluster_wait"
                                                                                      : "shuffle"},
                            {"file", s.file},
                            {"line", s.line}};
        if (s.what == trace_step::meeting::shuffle) {
          step["exchange"] = s.exchange;
          step["given"] = nlohmann::json::array();
          for (double v : s.given) step["given"].push_back(number(v));
        }
        steps.push_back(step);
      }
      launches.push_back({{"kernel", k.kernel},
                          {"block", warp ? nlohmann::json(warp->block) : nlohmann::json()},
                          {"warp_of_block", warp ? nlohmann::json(warp->warp) : nlohmann::json()},
                          {"steps", steps}});
    }
    j["runs"].push_back(
        {{"rows", r.shape.rows}, {"cols", r.shape.cols}, {"fault", r.fault}, {"launches", launches}});
  }
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace softmax
