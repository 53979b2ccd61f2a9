// Simulated device memory: allocations with room around them, and a byte a byte that says what was ever
// written.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {
namespace detail {
namespace {

// Reserved, never mapped: far enough that an index a few rows off does not land in the next buffer.
constexpr std::size_t margin = std::size_t{1} << 30;
constexpr std::size_t small_margin = std::size_t{1} << 20;  // where the system limits address space
constexpr std::size_t remembered_releases = 256;

std::vector<std::unique_ptr<buffer_region>>& regions() {
  static std::vector<std::unique_ptr<buffer_region>> all;  // sorted by address
  return all;
}

std::vector<buffer_region*>& released() {
  static std::vector<buffer_region*> oldest_first;
  return oldest_first;
}

buffer_region* mutable_region(std::uintptr_t address) {
  auto& all = regions();
  auto it = std::upper_bound(all.begin(), all.end(), address,
                             [](std::uintptr_t a, const auto& r) { return a < r->map_begin; });
  if (it == all.begin()) return nullptr;
  buffer_region* r = std::prev(it)->get();
  return address < r->map_end ? r : nullptr;
}

/// The live buffer that holds [p, p + bytes); nullptr if there is none.
buffer_region* live_range(const void* p, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  buffer_region* r = mutable_region(address);
  if (!r || !r->alive || address < r->begin || bytes > r->bytes || address - r->begin > r->bytes - bytes)
    return nullptr;
  return r;
}

void mark_written(buffer_region& r, const void* p, std::size_t bytes, bool written) {
  std::memset(r.written + (reinterpret_cast<std::uintptr_t>(p) - r.begin), written, bytes);
}

void forget(buffer_region* r) {
  munmap(reinterpret_cast<void*>(r->map_begin), r->map_end - r->map_begin);
  auto& all = regions();
  all.erase(std::find_if(all.begin(), all.end(), [r](const auto& p) { return p.get() == r; }));
}

}  // namespace

std::vector<byte_range> under_way;

const buffer_region* find_region(std::uintptr_t address) { return mutable_region(address); }

std::string region_text(const buffer_region& r) {
  return r.name + " (" + (r.description.empty() ? "" : r.description + ", ") + std::to_string(r.bytes) +
         " bytes)";
}

}  // namespace detail

using namespace detail;

status allocate(void** p, std::size_t bytes, const char* name) {
  *p = nullptr;
  if (bytes == 0) return success;
  if (bytes > free_memory()) return status::out_of_memory;
  const std::size_t page = page_bytes();
  const std::size_t mapped = (bytes + page - 1) / page * page;
  void* base = MAP_FAILED;
  std::size_t room = margin;
  for (; base == MAP_FAILED && room >= small_margin; room /= 1024)
    base = mmap(nullptr, room + mapped + room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return status::out_of_memory;
  room *= 1024;
  const std::size_t span = room + mapped + room;
  const auto map_begin = reinterpret_cast<std::uintptr_t>(base);
  void* written =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (written == MAP_FAILED ||
      mprotect(reinterpret_cast<void*>(map_begin + room), mapped, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, span);
    if (written != MAP_FAILED) munmap(written, mapped);
    return status::out_of_memory;
  }
  auto r = std::make_unique<buffer_region>();
  r->map_begin = map_begin;
  r->map_end = map_begin + span;
  r->begin = map_begin + room;
  r->bytes = bytes;
  r->mapped_bytes = mapped;
  r->written = static_cast<unsigned char*>(written);
  r->name = name;
  *p = reinterpret_cast<void*>(r->begin);
  auto& all = regions();
  all.insert(std::upper_bound(all.begin(), all.end(), map_begin,
                              [](std::uintptr_t a, const auto& other) { return a < other->map_begin; }),
             std::move(r));
  return success;
}

status release(void* p) {
  if (!p) return success;
  buffer_region* r = mutable_region(reinterpret_cast<std::uintptr_t>(p));
  if (!r || !r->alive || r->begin != reinterpret_cast<std::uintptr_t>(p)) return status::invalid_value;
  // The addresses stay reserved for a while, so that a use after this is recognised as one.
  mmap(p, r->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  munmap(r->written, r->mapped_bytes);
  r->written = nullptr;
  r->alive = false;
  released().push_back(r);
  if (released().size() > remembered_releases) {
    forget(released().front());
    released().erase(released().begin());
  }
  return success;
}

status copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return success;
  buffer_region* r = live_range(to, bytes);
  if (!r) return status::invalid_value;
  under_way.clear();
  std::memcpy(to, from, bytes);
  mark_written(*r, to, bytes, true);
  return success;
}

status copy_to_host(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return success;
  if (!live_range(from, bytes)) return status::invalid_value;
  under_way.clear();
  std::memcpy(to, from, bytes);
  return success;
}

status copy_on_device(void* to, const void* from, std::size_t bytes, stream) {
  if (bytes == 0) return success;
  buffer_region* target = live_range(to, bytes);
  const buffer_region* source = live_range(from, bytes);
  if (!target || !source) return status::invalid_value;
  under_way.clear();
  std::memmove(to, from, bytes);
  std::memmove(target->written + (reinterpret_cast<std::uintptr_t>(to) - target->begin),
               source->written + (reinterpret_cast<std::uintptr_t>(from) - source->begin), bytes);
  return success;
}

status zero(void* p, std::size_t bytes, stream) {
  if (bytes == 0 || noted_launches || !configuration().execute) return success;
  buffer_region* r = live_range(p, bytes);
  if (!r) return status::invalid_value;
  under_way.clear();
  std::memset(p, 0, bytes);
  mark_written(*r, p, bytes, true);
  return success;
}

status poison(void* p, std::size_t bytes) {
  if (bytes == 0) return success;
  buffer_region* r = live_range(p, bytes);
  if (!r) return status::invalid_value;
  under_way.clear();
  std::memset(p, 0xff, bytes);
  mark_written(*r, p, bytes, false);
  return success;
}

status synchronize() {
  under_way.clear();
  return success;
}

void describe_buffer(const void* p, const std::string& description) {
  if (buffer_region* r = mutable_region(reinterpret_cast<std::uintptr_t>(p))) r->description = description;
}

std::size_t host_memory() {
  std::ifstream info("/proc/meminfo");
  std::string key, unit;
  std::size_t kilobytes = 0;
  while (info >> key >> kilobytes) {
    std::getline(info, unit);
    if (key == "MemAvailable:") return kilobytes * 1024;
  }
  return std::size_t{1} << 40;  // not known: let the allocation decide
}

std::size_t free_memory() { return host_memory() / 2; }  // a watched byte costs two

}  // namespace sim
}  // namespace simt
