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
    case fault_kind::race:
      return "race";
    case fault_kind::deadlock:
      return "deadlock";
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

/// "shared memory" or "global memory: byte 0 of out (4 bytes)"
std::string memory_text(const fault_info& f) {
  if (f.where == space::shared) return "shared memory";
  const buffer_region* r = find_region(f.address);
  return "global memory" +
         (r ? ": byte " + std::to_string(f.address - r->begin) + " of " + region_text(*r) : "");
}

/// "common/kernels/block.cuh:40"
std::string line_text(const source_line& place) {
  return place.line > 0 ? place.file + ":" + std::to_string(place.line)
                        : "an unknown line (build with -g to see it)";
}

}  // namespace

void describe_race(fault_info& f, int warp_size) {
  const bool both_write = f.write && f.other_write;
  if (f.block != f.other_block && f.where == space::shared) {
    f.text = "blocks of a cluster are ordered by its barrier alone, and it does not stand between the two";
    f.next =
        "let the reader arrive when it has read, and the writer wait before it stores: cluster_arrive(), "
        "cluster_wait()";
  } else if (f.block != f.other_block) {
    f.text = "blocks of a launch run in any order, and no barrier reaches from one to another";
    f.next = both_write
                 ? "let one block own each result, or combine partial results in a second launch"
                 : "move the readers into a second launch, or let each block read what it wrote itself";
  } else if (both_write && f.pc == f.other_pc) {
    f.text = "which of the two is last is chance, and a race even where both write the same value";
    f.next = "let one thread write, as in if (threadIdx.x == 0), or give each thread a place of its own";
  } else if (f.thread / warp_size == f.other_thread / warp_size) {
    f.text =
        "no barrier, shuffle or sync_warp stands between the two, and lanes of a warp need not run in step";
    f.next = "put simt::sync_warp() between the two, or __syncthreads() if other warps take part";
  } else {
    f.text = "no __syncthreads() stands between the two, and the threads are in different warps";
    f.next = "put a __syncthreads() between the two statements, where every thread of the block reaches it";
  }
}

std::vector<line_record> by_line(const statement_table& statements) {
  std::map<std::pair<std::string, int>, line_record> lines;
  for (const auto& [key, counted] : statements) {
    const source_line place = resolve(key.pc);
    line_record& line = lines[{place.file, place.line}];
    line.file = place.file;
    line.line = place.line;
    line_traffic sum = counted;
    if (counted.again) sum.again_line = resolve(counted.again).line;
    (key.where == space::global ? (key.write ? line.global_store : line.global_load)
                                : (key.write ? line.shared_store : line.shared_load)) += sum;
  }
  std::vector<line_record> sorted;
  for (auto& [place, line] : lines) sorted.push_back(std::move(line));
  return sorted;
}

fault explain(const fault_info& f, const launch_job& job) {
  const bool no_access = f.pc == nullptr;
  const source_line place = no_access ? source_line{"", f.site.file, f.site.line} : resolve(f.pc);
  const std::string kernel = kernel_name(job.kernel);
  const std::string where = line_text(place);
  const auto name = [&](int thread, std::uint64_t block) {
    return "thread " + triple(thread, job.block) + " of block " + triple(block, job.grid);
  };
  const std::string who = name(f.thread, f.block);
  const std::string head = std::string(to_string(f.kind)) + " in kernel " + kernel + " at " + where;
  if (f.kind == fault_kind::race && f.other_pc) {
    const source_line other = resolve(f.other_pc);
    return fault(f.kind, kernel, place.file, place.line,
                 head + "\n  " + who + (f.write ? " writes " : " reads ") + std::to_string(f.size) +
                     " bytes of " + memory_text(f) + "\n  " + name(f.other_thread, f.other_block) +
                     (f.other_write ? " writes" : " reads") + " there too, at " + line_text(other) + "\n  " +
                     f.text + "\n  " + f.next,
                 other.file, other.line);
  }
  std::string what = who + ": " + f.text;
  if (!no_access)
    what = who + (f.write ? " writes " : " reads ") + std::to_string(f.size) + " bytes of " +
           (f.where == space::shared ? "shared" : "global") + " memory: " + f.text;
  return fault(f.kind, kernel, place.file, place.line, head + "\n  " + what + "\n  " + f.next);
}

}  // namespace detail

std::string launch_name(const void* kernel) { return detail::kernel_instance(kernel); }

}  // namespace sim
}  // namespace simt
