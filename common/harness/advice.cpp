#include "harness/advice.hpp"

#include <fmt/format.h>

namespace softmax {
namespace {

double each(std::uint64_t sum, std::uint64_t requests) {
  return requests > 0 ? static_cast<double>(sum) / static_cast<double>(requests) : 0.0;
}

line_advice advise_shared(const simt::line_traffic& t) {
  const std::uint64_t ideal = t.wavefronts - t.bank_conflicts;
  if (2 * t.bank_conflicts >= ideal && t.bank_conflicts > 0)
    return {
        line_fault::bank_conflict,
        fmt::format("lanes want different words of one bank, so a request takes {:.1f} wavefronts instead of "
                    "{:.1f}; make rows of the array one word longer, or exchange its indices",
                    each(t.wavefronts, t.requests), each(ideal, t.requests))};
  return {};
}

line_advice advise_global(const simt::line_traffic& t, const char* verb) {
  const std::uint64_t excess = t.sectors - t.ideal_sectors;
  const double lanes = each(t.lanes, t.requests);
  if (t.sectors >= 2 * t.ideal_sectors && lanes >= 4)
    return {line_fault::uncoalesced,
            fmt::format(
                "neighbouring lanes {} far apart, {:.1f} sectors a request where {:.1f} hold the data; let "
                "neighbouring lanes take neighbouring columns",
                verb, each(t.sectors, t.requests), each(t.ideal_sectors, t.requests))};
  if (8 * excess >= t.requests && excess > 0)
    return {
        line_fault::misaligned,
        fmt::format("{:.0f} % of the requests begin inside a sector and touch one more; let rows begin at "
                    "multiples of 32 bytes (a padded row stride)",
                    100.0 * each(excess, t.requests))};
  return {};
}

}  // namespace

const char* to_string(line_fault f) {
  switch (f) {
    case line_fault::none:
      return "";
    case line_fault::bank_conflict:
      return "bank conflict";
    case line_fault::uncoalesced:
      return "uncoalesced";
    case line_fault::misaligned:
      return "misaligned";
    case line_fault::loaded_again:
      return "loaded again";
    case line_fault::single_lane:
      return "single lane";
    case line_fault::broadcast:
      return "broadcast";
  }
  return "";
}

line_advice advise(const simt::line_record& l) {
  for (const auto* t : {&l.shared_load, &l.shared_store})
    if (line_advice a = advise_shared(*t); a.what != line_fault::none) return a;
  if (line_advice a = advise_global(l.global_load, "load"); a.what != line_fault::none) return a;
  if (line_advice a = advise_global(l.global_store, "store"); a.what != line_fault::none) return a;
  const simt::line_traffic& load = l.global_load;
  if (load.again_bytes > 0 && 2 * load.again_bytes >= load.distinct_bytes)
    return {
        line_fault::loaded_again,
        fmt::format("the block loaded {:.0f} % of these bytes before, in line {}; keep them in registers or "
                    "shared memory, or count on the L2 cache",
                    100.0 * each(load.again_bytes, load.distinct_bytes), load.again_line)};
  for (const auto* t : {&l.global_load, &l.global_store})
    if (t->requests > 0 && t->lanes == t->requests)
      return {line_fault::single_lane,
              fmt::format(
                  "one lane moves {:.0f} of the 32 bytes of a sector; no matter once a row, a waste if it "
                  "is the matrix itself",
                  each(t->distinct_bytes, t->requests))};
  const simt::line_traffic& s = l.shared_load;
  if (s.requests > 0 && s.lanes >= 16 * s.requests && 16 * s.distinct_bytes <= s.bytes)
    return {
        line_fault::broadcast,
        "all lanes read one word, which is free of conflicts but a request each time; fewer partial results "
        "or a shuffle need fewer"};
  return {};
}

std::uint64_t cost_of(const simt::line_record& l) {
  return l.global_load.sectors + l.global_store.sectors + l.shared_load.wavefronts +
         l.shared_store.wavefronts;
}

}  // namespace softmax
