// The compiler's -fsanitize=thread calls a hook before every load and store of a kernel that is not a private
// local. These are the hooks. The sanitizer's own runtime is not linked.
#include <algorithm>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {

traffic& traffic::operator+=(const traffic& other) {
  requests += other.requests;
  bytes += other.bytes;
  sectors += other.sectors;
  wavefronts += other.wavefronts;
  bank_conflicts += other.bank_conflicts;
  return *this;
}

line_traffic& line_traffic::operator+=(const line_traffic& other) {
  traffic::operator+=(other);
  lanes += other.lanes;
  distinct_bytes += other.distinct_bytes;
  ideal_sectors += other.ideal_sectors;
  again_bytes += other.again_bytes;
  if (other.again_line > 0) again_line = other.again_line;
  return *this;
}

namespace detail {
namespace {

/// Distinct sectors in one request. Neighbouring lanes mostly share one, so the newest are looked at first.
class sector_set {
 public:
  void add(std::uintptr_t sector) {
    for (int i = used_ - 1; i >= 0; --i)
      if (sector_[i] == sector) return;
    sector_[used_++] = sector;
  }
  int size() const { return used_; }
  void clear() { used_ = 0; }

 private:
  // A lane touches at most 16 bytes, which straddle two sectors at the most.
  std::array<std::uintptr_t, 2 * max_warp_size> sector_{};
  int used_ = 0;
};

/// The lanes of one request that are active, in order.
struct request {
  int lanes = 0;
  std::array<std::uintptr_t, max_warp_size> address;
  std::array<int, max_warp_size> lane;
};

int sectors_of(const request& r, unsigned size) {
  sector_set touched;
  for (int i = 0; i < r.lanes; ++i) {
    touched.add(r.address[i] / sector_bytes);
    touched.add((r.address[i] + size - 1) / sector_bytes);
  }
  return touched.size();
}

/// Adds the passes that shared memory takes to serve a request. It has 32 banks, 4 bytes wide; lanes that
/// want the same word share it. Accesses of 8 bytes are served half a warp at a time, of 16 bytes a quarter;
/// 64 lanes count as two warps of 32.
void count_wavefronts(const request& r, unsigned size, traffic& sum) {
  constexpr int banks = 32;
  const int group = size <= 4 ? 32 : 128 / static_cast<int>(size);  // lanes served together
  const unsigned words = std::max(1u, size / 4);
  for (int i = 0; i < r.lanes;) {
    std::array<std::array<std::uintptr_t, 32>, banks> wanted;  // distinct words of each bank
    std::array<unsigned char, banks> count{};
    int most = 0;
    for (const int first = r.lane[i] / group; i < r.lanes && r.lane[i] / group == first; ++i)
      for (unsigned k = 0; k < words; ++k) {
        const std::uintptr_t word = r.address[i] / 4 + k;
        auto& known = wanted[word % banks];
        unsigned char& n = count[word % banks];
        if (std::find(known.begin(), known.begin() + n, word) != known.begin() + n) continue;
        known[n++] = word;
        most = std::max<int>(most, n);
      }
    sum.wavefronts += most;
    sum.bank_conflicts += most - 1;
  }
}

/// Notes the runs of neighbouring bytes that neighbouring lanes touch.
void add_extents(const request& r, const site_log& site, const count_target& target) {
  const extent none{.block = target.block,
                    .pc = site.pc,
                    .size = site.size,
                    .write = site.write,
                    .cluster = target.cluster,
                    .phase = target.phase};
  extent run = none;
  for (int i = 0; i < r.lanes; ++i) {
    const int thread = target.first_thread + r.lane[i];
    if (run.end == r.address[i] && run.thread_at(run.end) == thread) {
      run.end += site.size;
    } else if (run.end != r.address[i] + site.size) {  // that is, unless all lanes want the same
      if (run.end > 0) target.extents->push_back(run);
      run = none;
      run.begin = r.address[i];
      run.end = run.begin + site.size;
      run.thread = thread;
    }
  }
  if (run.end > 0) target.extents->push_back(run);
}

/// What a request adds to its source line, beyond the traffic.
void add_details(request r, const site_log& site, int sectors, const count_target& target,
                 statement_traffic& sum) {
  std::sort(r.address.begin(), r.address.begin() + r.lanes);
  const auto end = std::unique(r.address.begin(), r.address.begin() + r.lanes);
  const auto bytes = static_cast<std::uint64_t>(end - r.address.begin()) * site.size;
  sum.lanes += r.lanes;
  sum.distinct_bytes += bytes;
  if (site.where == space::shared) return;
  sum.ideal_sectors += std::min<std::uint64_t>(sectors, (bytes + sector_bytes - 1) / sector_bytes);
  if (site.write) return;
  for (auto a = r.address.begin(); a != end;) {
    const std::uintptr_t begin = *a;
    std::uintptr_t stop = begin + site.size;
    for (++a; a != end && *a == stop; ++a) stop += site.size;
    sum.again_bytes += target.loaded->add(begin, stop, site.pc, sum.again);
  }
}

}  // namespace

std::uint64_t loaded_bytes::add(std::uintptr_t begin, std::uintptr_t end, const void* pc,
                                const void*& where) {
  std::uint64_t again = 0;
  auto next = spans_.upper_bound(begin);
  if (next != spans_.begin() && std::prev(next)->second.end > begin) --next;
  for (std::uintptr_t at = begin; at < end;) {
    if (next != spans_.end() && next->first <= at) {
      const std::uintptr_t stop = std::min(end, next->second.end);
      again += stop - at;
      where = next->second.pc;
      at = stop;
      ++next;
    } else {
      const std::uintptr_t stop = next == spans_.end() ? end : std::min(end, next->first);
      spans_.emplace_hint(next, at, span{stop, pc});
      at = stop;
    }
  }
  return again;
}

void warp_log::flush(const count_target& target) {
  request r;
  for (std::size_t s = 0; s < used_; ++s) {
    const site_log& site = sites_[s];
    statement_traffic sum;
    for (std::size_t k = 0;; ++k) {
      r.lanes = 0;
      for (int lane = 0; lane < target.lanes; ++lane) {
        if (k >= site.address[lane].size()) continue;
        r.address[r.lanes] = site.address[lane][k];
        r.lane[r.lanes++] = lane;
      }
      if (r.lanes == 0) break;
      ++sum.requests;
      sum.bytes += static_cast<std::uint64_t>(r.lanes) * site.size;
      int sectors = 0;
      if (site.where == space::global) {
        sectors = sectors_of(r, site.size);
        sum.sectors += sectors;
        add_extents(r, site, target);
      } else {
        count_wavefronts(r, site.size, sum);
      }
      if (target.statements) add_details(r, site, sectors, target, sum);
    }
    launch_record& t = *target.totals;
    (site.where == space::global ? (site.write ? t.global_store : t.global_load)
                                 : (site.write ? t.shared_store : t.shared_load)) += sum;
    if (!target.statements) continue;
    statement_traffic& known = (*target.statements)[{site.pc, site.write, site.where}];
    static_cast<line_traffic&>(known) += sum;
    if (sum.again) known.again = sum.again;
  }
  discard();
}

void warp_log::discard() {
  for (std::size_t s = 0; s < used_; ++s)
    for (auto& lane : sites_[s].address) lane.clear();
  used_ = 0;
  last_ = 0;
}

namespace {

inline void observe(const void* address, unsigned size, bool write, const void* pc) {
  if (!running || !running->job->check) return;
  const inside_simulator inside;
  inside.w.access(pc, reinterpret_cast<std::uintptr_t>(address), size, write);
}

void observe_range(const void* address, unsigned long size, bool write, const void* pc) {
  const auto* byte = static_cast<const char*>(address);
  while (size > 0) {
    const bool word = size >= 4 && reinterpret_cast<std::uintptr_t>(byte) % 4 == 0;
    observe(byte, word ? 4 : 1, write, pc);
    byte += word ? 4 : 1;
    size -= word ? 4 : 1;
  }
}

}  // namespace
}  // namespace detail
}  // namespace sim
}  // namespace simt

extern "C" {
#define SIMT_HOOK(name, call, size, write) \
  void name(void* address) { simt::detail::call(address, size, write, __builtin_return_address(0)); }
// Where the type does not promise the alignment, a GPU moves word by word, and so do the unaligned hooks.
#define SIMT_HOOKS_OF_SIZE(size)                                              \
  SIMT_HOOK(__tsan_read##size, observe, size, false)                          \
  SIMT_HOOK(__tsan_write##size, observe, size, true)                          \
  SIMT_HOOK(__tsan_volatile_read##size, observe, size, false)                 \
  SIMT_HOOK(__tsan_volatile_write##size, observe, size, true)                 \
  SIMT_HOOK(__tsan_unaligned_read##size, observe_range, size, false)          \
  SIMT_HOOK(__tsan_unaligned_write##size, observe_range, size, true)          \
  SIMT_HOOK(__tsan_unaligned_volatile_read##size, observe_range, size, false) \
  SIMT_HOOK(__tsan_unaligned_volatile_write##size, observe_range, size, true) \
  SIMT_COMPOUND_HOOK(__tsan_read_write##size, observe, size)                  \
  SIMT_COMPOUND_HOOK(__tsan_unaligned_read_write##size, observe_range, size)
// A load and a store of the same place, merged into one call by some compilers.
#define SIMT_COMPOUND_HOOK(name, call, size)                               \
  void name(void* address) {                                               \
    simt::detail::call(address, size, false, __builtin_return_address(0)); \
    simt::detail::call(address, size, true, __builtin_return_address(0));  \
  }

SIMT_HOOKS_OF_SIZE(1)
SIMT_HOOKS_OF_SIZE(2)
SIMT_HOOKS_OF_SIZE(4)
SIMT_HOOKS_OF_SIZE(8)
SIMT_HOOKS_OF_SIZE(16)

// A structure moved as a whole.
void __tsan_read_range(void* address, unsigned long size) {
  simt::detail::observe_range(address, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, unsigned long size) {
  simt::detail::observe_range(address, size, true, __builtin_return_address(0));
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
