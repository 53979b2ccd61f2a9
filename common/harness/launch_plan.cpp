#include "harness/launch_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace softmax {
namespace {

constexpr int most_threads = 1024;
constexpr int fewest_row_threads = 8;
constexpr int most_items = 64;

/// The share of a row and why it is too little or too much.
plan_share share_of(const launch_plan& plan, std::int64_t cols, int warp_size) {
  plan_share p;
  p.plan = plan;
  const int threads = plan.warps * warp_size;
  p.row_threads = threads / plan.rows;
  p.items = 1;
  while (static_cast<std::int64_t>(p.items) * std::max(1, p.row_threads) < cols && p.items <= most_items)
    p.items *= 2;
  if (threads > most_threads)
    p.why_not = "over 1024 threads";
  else if (p.row_threads < fewest_row_threads)
    p.why_not = "fewer than 8 threads a row";
  else if (p.items > most_items)
    p.why_not = "row does not fit";
  else if (p.items > most_items / 2 && threads > most_threads / 2)
    p.why_not = "too few registers";
  return p;
}

}  // namespace

std::vector<plan_share> possible_plans(std::int64_t cols, int warp_size) {
  std::vector<plan_share> plans;
  for (int warps = 1; warps <= 32; warps *= 2)
    for (int rows = 1; rows <= 8; rows *= 2) plans.push_back(share_of({warps, rows}, cols, warp_size));
  return plans;
}

std::string plan_problem(const launch_plan& plan, const launch_plan& rule, std::int64_t cols, int warp_size) {
  if (plan.warps == 0 && plan.rows == 0) return "";
  const launch_plan whole{plan.warps > 0 ? plan.warps : rule.warps, plan.rows > 0 ? plan.rows : rule.rows};
  const std::string why = share_of(whole, cols, warp_size).why_not;
  if (why.empty()) return "";
  return fmt::format(
      "{} warps of {} lanes and {} rows a block cannot run {} columns ({}): see the list of --tune.",
      whole.warps, warp_size, whole.rows, cols, why);
}

std::string plan_text(const launch_plan& p) {
  return fmt::format("{} warp{}, {} row{} a block", p.warps, p.warps > 1 ? "s" : "", p.rows,
                     p.rows > 1 ? "s" : "");
}

}  // namespace softmax
