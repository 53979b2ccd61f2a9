#include "harness/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "harness/occupancy.hpp"
#include "harness/report.hpp"
#include "harness/stage_memory.hpp"
#include "harness/timing.hpp"
#include "harness/usage_error.hpp"
#include "numerics/input.hpp"

namespace softmax {
namespace {

constexpr int samples = 15;
// Each plan is checked on the first rows, about so many elements, before all rows are timed: to fetch a large
// matrix for each of two dozen plans takes far longer than the calls. The best plan is checked on all rows.
constexpr std::int64_t elements_checked_per_plan = 1 << 22;
// A thread keeps its columns in registers, and about two dozen values beside them. An estimate, for the model
// alone.
constexpr int registers_beside_items = 24;

/// One way to launch, and what became of it.
struct tuned_plan : plan_share {
  double seconds = 0;  // median; 0 on the simulator
  occupancy full;
};

bool same(const launch_plan& a, const launch_plan& b) { return a.warps == b.warps && a.rows == b.rows; }

/// Is `a` better than `b`? On a GPU by time. By the model: enough bytes under way come first; then three
/// resident blocks, so that one loads while others compute and store; then the occupancy, more bytes under
/// way, and fewer warps.
bool better(const tuned_plan& a, const tuned_plan& b, double needed) {
  if (a.seconds > 0 || b.seconds > 0) return a.seconds < b.seconds;
  constexpr int phases = 3;
  const auto rank = [&](const tuned_plan& p) {
    return std::tuple(std::min(p.full.bytes_in_flight, needed), std::min(p.full.blocks, phases), p.full.share,
                      p.full.bytes_in_flight, -p.plan.warps);
  };
  return rank(a) > rank(b);
}

}  // namespace

std::string run_tuner(const options& o, const stage_info& stage, chosen_device& device, bool& right) {
  right = true;
  if (!device.gpu)
    throw usage_error(
        "--tune needs the limits of this GPU, and common/harness/devices.cpp does not list it: add it "
        "there.");
  std::string text;
  nlohmann::json all = nlohmann::json::array();
  for (const planned_run& run : plan_runs(o, stage, device)) {
    const matrix_shape& s = run.shape;
    if (s.rows == 0 || s.cols == 0)
      throw usage_error("--tune has nothing to try on an empty matrix: use at least one row and column.");
    const int width = device.facts.warp_size;
    const double needed = bytes_in_flight_needed(*device.gpu);
    const auto useful = static_cast<double>(useful_bytes(s, run.type));
    std::vector<tuned_plan> plans;
    for (const plan_share& p : possible_plans(s.cols, width)) plans.push_back({p});
    const launch_plan rule = device.machine->rule(s.cols);
    const host_matrix x = make_run_input(run, o);
    std::optional<rotating_calls> calls;
    if (!device.simulated) calls.emplace(*device.machine, stage, x, s, device.facts, o.offset);
    // An odd number, unless there are fewer: with several rows a block, the last block is not full.
    const host_matrix first = x.first_rows(elements_checked_per_plan / s.cols | 1);
    std::optional<stage_memory> memory;
    const auto is_right = [&](const host_matrix& rows, const launch_plan& plan) {
      matrix_shape shape = s;
      shape.rows = rows.rows;
      if (!memory) memory.emplace(*device.machine, stage, rows, shape, o.offset);
      memory->poison();
      stage_call call = memory->call();
      call.plan = plan;
      device.machine->run(call);
      host_matrix y(run.type, shape.rows, shape.cols, shape.ld_out);
      const std::string damage = memory->fetch(y, rows);
      return damage.empty() && verify(rows, y, errors_of(stage, shape), o.check).pass;
    };
    for (tuned_plan& p : plans) {
      if (!p.why_not.empty()) continue;
      const double row_bytes = static_cast<double>(s.cols) * static_cast<double>(size_of(run.type));
      p.full = occupancy_of(*device.gpu, p.plan.warps * width, 0, row_bytes * p.plan.rows,
                            p.items + registers_beside_items);
      if (!is_right(first, p.plan)) {
        p.why_not = "WRONG RESULT";
        right = false;
        continue;
      }
      if (calls) p.seconds = calls->time(p.plan, samples).seconds;
    }
    tuned_plan* best = nullptr;
    const tuned_plan* by_rule = nullptr;
    for (tuned_plan& p : plans) {
      if (p.why_not.empty() && (!best || better(p, *best, needed))) best = &p;
      if (same(p.plan, rule)) by_rule = &p;
    }
    calls.reset();
    memory.reset();
    if (best && first.rows < s.rows && !is_right(x, best->plan)) {
      best->why_not = "WRONG RESULT behind the first rows";
      best = nullptr;
      right = false;
    }
    if (!best && right)
      throw usage_error(fmt::format("No plan holds a row of {} columns: use stage 05.", s.cols));

    text += fmt::format("{} x {} {} on {}, warps of {}\n", s.rows, s.cols, name_of(run.type),
                        device.gpu->name, width);
    text += device.simulated
                ? "ranked by a model: enough bytes in flight, three blocks, occupancy. Nothing was timed.\n"
                : "timed with cold caches, median of a call\n";
    text += fmt::format("  {:>5} {:>5} {:>8} {:>6} {:>6} {:>7} {:>10}  {}\n", "warps", "rows", "thr./row",
                        "items", "blocks", "occup.", "in flight", device.simulated ? "" : "time, GB/s");
    nlohmann::json table = nlohmann::json::array();
    for (const tuned_plan& p : plans) {
      const char* mark = &p == best && &p == by_rule ? "  <- best, and the rule"
                         : &p == best                ? "  <- best"
                         : &p == by_rule             ? "  <- the rule"
                                                     : "";
      nlohmann::json j{
          {"warps", p.plan.warps}, {"rows", p.plan.rows}, {"row_threads", p.row_threads}, {"items", p.items}};
      if (!p.why_not.empty()) {
        j["not_tried"] = p.why_not;
        text += fmt::format("  {:>5} {:>5} {:>8} {:>6} {}{}\n", p.plan.warps, p.plan.rows, p.row_threads,
                            p.items, p.why_not, mark);
      } else {
        j["occupancy_model"] = p.full.share;
        j["bytes_in_flight_model"] = p.full.bytes_in_flight;
        std::string time;
        if (p.seconds > 0) {
          j["seconds"] = p.seconds;
          j["bytes_per_second"] = useful / p.seconds;
          time = fmt::format("{:.2f} us {:.0f}", p.seconds * 1e6, useful / p.seconds * 1e-9);
        }
        text += fmt::format("  {:>5} {:>5} {:>8} {:>6} {:>6} {:>6.0f}% {:>8.1f} kB  {}{}\n", p.plan.warps,
                            p.plan.rows, p.row_threads, p.items, p.full.blocks, p.full.share * 100,
                            p.full.bytes_in_flight * 1e-3, time, mark);
      }
      table.push_back(j);
    }
    nlohmann::json entry{{"rows", s.rows},
                         {"cols", s.cols},
                         {"dtype", name_of(run.type)},
                         {"plans", table},
                         {"rule", {{"warps", rule.warps}, {"rows", rule.rows}}}};
    if (best) entry["best"] = {{"warps", best->plan.warps}, {"rows", best->plan.rows}};
    text += "best: " + (best ? plan_text(best->plan) : "none, every plan gave a wrong result");
    if (best && best->seconds > 0 && by_rule && by_rule->seconds > 0) {
      const double regret = by_rule->seconds / best->seconds - 1;
      entry["regret"] = regret;
      text += fmt::format("; the rule ({}) takes {:.1f} % longer\n", plan_text(rule), regret * 100);
    } else {
      text += fmt::format("; the rule says {}\n", plan_text(rule));
    }
    all.push_back(entry);
  }
  if (!o.json) return text;
  return nlohmann::json{{"stage", stage.number},
                        {"device", nlohmann::json::parse(device_json(device))},
                        {"timed", !device.simulated},
                        {"tuned", all}}
             .dump(2) +
         "\n";
}

}  // namespace softmax
