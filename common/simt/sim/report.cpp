// From addresses to source lines, and from faults to sentences.
#include <backtrace.h>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {

const char* to_string(fault_kind kind) {
  switch (kind) {
    case fault_kind::out_of_bounds:
      return "out-of-bounds access";
    case fault_kind::use_after_free:
      return "use after free";
    case fault_kind::uninitialised:
      return "read of uninitialised memory";
    case fault_kind::host_memory:
      return "access to memory that is not the device's";
    case fault_kind::misaligned:
      return "misaligned access";
    case fault_kind::divergent_barrier:
      return "divergent barrier";
    case fault_kind::divergent_shuffle:
      return "divergent shuffle";
  }
  return "fault";
}

namespace detail {
namespace {

void ignore_error(void*, const char*, int) {}

backtrace_state* symbols() {
  static backtrace_state* state = backtrace_create_state(nullptr, /*threaded=*/1, ignore_error, nullptr);
  return state;
}

/// "row_max<32, float>" from "void softmax::(anonymous namespace)::row_max<32, float>(float const*, ...)".
std::string name_with_arguments(const std::string& full) {
  std::string name;
  int depth = 0;  // inside template arguments
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full.compare(i, anonymous.size(), anonymous) == 0) {
      i += anonymous.size() - 1;
      continue;
    }
    const char c = full[i];
    if (c == '<') ++depth;
    if (depth == 0 && c == '(') break;
    if (depth == 0 && (c == ' ' || c == ':'))
      name.clear();
    else
      name += c;
    if (c == '>') --depth;
  }
  return name.empty() ? full : name;
}

/// "row_max"
std::string short_name(const std::string& full) {
  const std::string name = name_with_arguments(full);
  return name.substr(0, name.find('<'));
}

bool belongs_to_user(const std::string& file) {
  return !file.starts_with("/usr/") && file.find("common/simt/") == std::string::npos;
}

}  // namespace

source_line resolve(const void* return_address) {
  source_line best;
  backtrace_pcinfo(
      symbols(), reinterpret_cast<std::uintptr_t>(return_address) - 1,
      [](void* out, std::uintptr_t, const char* file, int line, const char* function) {
        if (!file || line == 0) return 0;
        auto& place = *static_cast<source_line*>(out);
        const bool users = belongs_to_user(file);
        // Inlined frames come innermost first; a header of the layer only counts when there is nothing
        // better.
        if (place.line == 0 || users)
          place = {function ? short_name(demangled(function)) : "", project_path(file), line};
        return users ? 1 : 0;
      },
      ignore_error, &best);
  return best;
}

std::string kernel_instance(const void* function) {
  static std::mutex guard;
  static std::map<const void*, std::string> known;
  const std::scoped_lock lock(guard);
  auto [entry, is_new] = known.try_emplace(function, "kernel");
  if (is_new)
    backtrace_syminfo(
        symbols(), reinterpret_cast<std::uintptr_t>(function),
        [](void* out, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
          if (symbol) *static_cast<std::string*>(out) = name_with_arguments(demangled(symbol));
        },
        ignore_error, &entry->second);
  return entry->second;
}

std::string kernel_name(const void* function) {
  const std::string name = kernel_instance(function);
  return name.substr(0, name.find('<'));
}

namespace {

std::string triple(std::uint64_t linear, const dim3& extent) {
  return "(" + std::to_string(linear % extent.x) + "," + std::to_string(linear / extent.x % extent.y) + "," +
         std::to_string(linear / extent.x / extent.y) + ")";
}

}  // namespace

fault explain(const fault_info& f, const launch_job& job) {
  const bool divergence = f.kind == fault_kind::divergent_barrier || f.kind == fault_kind::divergent_shuffle;
  const source_line place = divergence ? source_line{"", f.site.file, f.site.line} : resolve(f.pc);
  const std::string kernel = kernel_name(job.kernel);
  const std::string where = place.line > 0 ? place.file + ":" + std::to_string(place.line)
                                           : "an unknown line (build with -g to see it)";
  const std::string who = "thread " + triple(f.thread, job.block) + " of block " + triple(f.block, job.grid);
  std::string what = who + ": " + f.text;
  if (!divergence)
    what = who + (f.write ? " writes " : " reads ") + std::to_string(f.size) + " bytes of " +
           (f.where == space::shared ? "shared" : "global") + " memory: " + f.text;
  return fault(f.kind, kernel, place.file, place.line,
               std::string(to_string(f.kind)) + " in kernel " + kernel + " at " + where + "\n  " + what +
                   "\n  " + f.next);
}

}  // namespace detail
}  // namespace sim
}  // namespace simt
