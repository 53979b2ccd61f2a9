// Races: who accessed which byte, and what ordered it.
#include "simt/sim/race.hpp"

#include <algorithm>
#include <tuple>

namespace simt {
inline namespace sim {
namespace detail {
void block_accesses::begin(int warp_shift) {
  warp_shift_ = warp_shift;
  granule_ = 2;
  ordered_.fill(0);
  forget();
}

void block_accesses::forget() {
  used_ = 0;
  if (++generation_ < std::uint64_t{1} << (64 - generation_shift)) return;
  generation_ = 1;
  std::fill(cells_.begin(), cells_.end(), cell());
}

block_accesses::cell& block_accesses::find(std::uintptr_t granule, std::uint64_t key) {
  if (4 * used_ >= 3 * cells_.size()) grow();
  const std::size_t mask = cells_.size() - 1;
  for (std::size_t i = place_of(granule);; ++i) {
    cell& c = cells_[i & mask];
    if (c.key == key) return c;
    if (c.key >> generation_shift == generation_) continue;
    c = {key, {}, {}};
    ++used_;
    return c;
  }
}

void block_accesses::grow() {
  std::vector<cell> before(std::max<std::size_t>(1024, 2 * cells_.size()));
  before.swap(cells_);
  used_ = 0;
  for (const cell& c : before)
    if (c.key >> generation_shift == generation_)
      at(c.key & ((std::uint64_t{1} << generation_shift) - 1)) = c;
}

/// Halves what a cell stands for.
void block_accesses::split() {
  std::vector<cell> before(cells_.size());
  before.swap(cells_);
  used_ = 0;
  --granule_;
  for (const cell& c : before) {
    if (c.key >> generation_shift != generation_) continue;
    const std::uintptr_t granule = c.key & ((std::uint64_t{1} << generation_shift) - 1);
    for (std::uintptr_t half : {2 * granule, 2 * granule + 1}) {
      cell& fresh = at(half);
      fresh = {fresh.key, c.write, {c.read[0], c.read[1]}};
    }
  }
}

std::optional<block_accesses::conflict> block_accesses::note_read(cell& c, access_stamp me) {
  if (unordered(c.write, me)) return conflict{c.write, true};
  access_stamp &one = c.read[0], &other = c.read[1];
  const auto older = [&](access_stamp s) {
    return warp_of(s) == warp_of(me) && s.when >> 16 < me.when >> 16;
  };
  if (other.when != 0 && warp_of(one) != warp_of(other)) return std::nullopt;  // any writer meets one of them
  if (one.when == 0 || one.thread() == me.thread() || older(one)) {
    one = me;
    return std::nullopt;
  }
  if (other.when == 0 || warp_of(one) != warp_of(me) || older(other)) other = me;
  return std::nullopt;
}

std::optional<block_accesses::conflict> block_accesses::note_write(cell& c, access_stamp me) {
  if (unordered(c.write, me)) return conflict{c.write, true};
  for (access_stamp s : c.read)
    if (unordered(s, me)) return conflict{s, false};
  c.write = me;
  c.read[0] = c.read[1] = {};
  return std::nullopt;
}

namespace {

auto order(const extent& e) { return std::tuple(e.begin, e.end, e.block, e.write, e.thread, e.size, e.pc); }

/// Of the extents seen so far, the one that reaches furthest, and the one of another block that does.
class reach {
 public:
  void add(const extent& e) {
    if (!first_ || (e.block == first_->block && e.end > first_->end)) {
      first_ = &e;
    } else if (e.block != first_->block && e.end > first_->end) {
      second_ = first_;
      first_ = &e;
    } else if (e.block != first_->block && (!second_ || e.end > second_->end)) {
      second_ = &e;
    }
  }
  /// One of another block that covers where e begins.
  const extent* meets(const extent& e) const {
    for (const extent* known : {first_, second_})
      if (known && known->block != e.block && known->end > e.begin &&
          !(known->cluster == e.cluster && known->phase != e.phase))
        return known;
    return nullptr;
  }

 private:
  const extent *first_ = nullptr, *second_ = nullptr;
};

}  // namespace

void condense(std::vector<extent>& all) {
  std::sort(all.begin(), all.end(), [](const extent& a, const extent& b) {
    return std::tuple(a.write, a.begin, a.end, a.thread, a.pc) <
           std::tuple(b.write, b.begin, b.end, b.thread, b.pc);
  });
  std::size_t kept = 0;
  for (const extent& e : all) {
    if (kept > 0) {
      extent& last = all[kept - 1];
      if (last.write == e.write && last.phase == e.phase && last.begin <= e.begin && e.end <= last.end)
        continue;
      if (last.write == e.write && last.phase == e.phase && last.end == e.begin && last.pc == e.pc &&
          last.size == e.size && last.thread_at(e.begin) == e.thread) {
        last.end = e.end;
        continue;
      }
    }
    all[kept++] = e;
  }
  all.resize(kept);
}

void join(std::vector<byte_range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::size_t joined = 0;
  for (const byte_range& r : ranges) {
    if (joined > 0 && r.begin <= ranges[joined - 1].end)
      ranges[joined - 1].end = std::max(ranges[joined - 1].end, r.end);
    else
      ranges[joined++] = r;
  }
  ranges.resize(joined);
}

bool holds_any(const std::vector<byte_range>& joined, std::uintptr_t address, unsigned size) {
  const auto behind = std::partition_point(joined.begin(), joined.end(),
                                           [&](const byte_range& r) { return r.end <= address; });
  return behind != joined.end() && behind->begin < address + size;
}

std::optional<block_conflict> find_conflict(std::vector<extent>& all) {
  std::sort(all.begin(), all.end(), [](const extent& a, const extent& b) { return order(a) < order(b); });
  reach reads, writes;
  for (const extent& e : all) {
    const extent* other = writes.meets(e);
    if (!other && e.write) other = reads.meets(e);
    if (other) return block_conflict{*other, e, e.begin};
    (e.write ? writes : reads).add(e);
  }
  return std::nullopt;
}

}  // namespace detail
}  // namespace sim
}  // namespace simt
