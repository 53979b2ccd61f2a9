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

}  // namespace

void warp_log::flush(launch_record& totals) {
  for (std::size_t s = 0; s < used_; ++s) {
    site_log& site = sites_[s];
    traffic sum;
    std::size_t longest = 0;
    for (const auto& lane : site.address) {
      longest = std::max(longest, lane.size());
      sum.bytes += lane.size() * site.size;
    }
    sum.requests = longest;
    if (site.where == space::global) {
      sector_set touched;
      for (std::size_t k = 0; k < longest; ++k) {
        touched.clear();
        for (const auto& lane : site.address) {
          if (k >= lane.size()) continue;
          touched.add(lane[k] / sector_bytes);
          touched.add((lane[k] + site.size - 1) / sector_bytes);
        }
        sum.sectors += touched.size();
      }
      (site.write ? totals.global_store : totals.global_load) += sum;
    } else {
      (site.write ? totals.shared_store : totals.shared_load) += sum;
    }
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
