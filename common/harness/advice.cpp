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

line_advice advise_distance(const simt::line_traffic& t, const char* verb) {
  if (t.sectors < 2 * t.ideal_sectors || each(t.lanes, t.requests) < 4) return {};
  return {
      line_fault::uncoalesced,
      fmt::format("neighbouring lanes {} far apart, {:.1f} sectors a request where {:.1f} hold the data; let "
                  "neighbouring lanes take neighbouring columns",
                  verb, each(t.sectors, t.requests), each(t.ideal_sectors, t.requests))};
}

line_advice advise_again(const simt::line_traffic& t) {
  if (t.again_bytes == 0 || 2 * t.again_bytes < t.distinct_bytes) return {};
  return {
      line_fault::loaded_again,
      fmt::format("the block loaded {:.0f} % of these bytes before, in line {}; keep them in registers or "
                  "shared memory, or count on the L2 cache",
                  100.0 * each(t.again_bytes, t.distinct_bytes), t.again_line)};
}

line_advice advise_start(const simt::line_traffic& t) {
  const std::uint64_t excess = t.sectors - t.ideal_sectors;
  if (excess == 0 || 8 * excess < t.requests) return {};
  if (excess > t.requests)
    return {
        line_fault::misaligned,
        fmt::format("a request touches {:.1f} sectors where {:.1f} would do, as its pieces begin inside a "
                    "sector; let rows begin at multiples of 32 bytes (a padded row stride)",
                    each(t.sectors, t.requests), each(t.ideal_sectors, t.requests))};
  return {line_fault::misaligned,
          fmt::format("{:.0f} % of the requests begin inside a sector and touch one more; let rows begin at "
                      "multiples of 32 bytes (a padded row stride)",
                      100.0 * each(excess, t.requests))};
}

line_advice advise_lanes(const simt::line_traffic& t) {
  if (t.requests == 0 || t.lanes > t.requests) return {};
  return {
      line_fault::single_lane,
      fmt::format("one lane moves {:.0f} of the 32 bytes of a sector; no matter once a row, a waste if it is "
                  "the matrix itself",
                  each(t.distinct_bytes, t.requests))};
}

line_advice advise_broadcast(const simt::line_traffic& t) {
  if (t.requests == 0 || t.lanes < 16 * t.requests || 16 * t.distinct_bytes > t.bytes) return {};
  return {
      line_fault::broadcast,
      "all lanes read one word, which is free of conflicts but a request each time; fewer partial results "
      "or a shuffle need fewer"};
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
  for (const line_advice& a :
       {advise_shared(l.shared_load), advise_shared(l.shared_store), advise_distance(l.global_load, "load"),
        advise_distance(l.global_store, "store"), advise_again(l.global_load), advise_start(l.global_load),
        advise_start(l.global_store), advise_lanes(l.global_load), advise_lanes(l.global_store),
        advise_broadcast(l.shared_load)})
    if (a.what != line_fault::none) return a;
  return {};
}

std::uint64_t cost_of(const simt::line_record& l) {
  return l.global_load.sectors + l.global_store.sectors + l.shared_load.wavefronts +
         l.shared_store.wavefronts;
}

}  // namespace softmax
