#pragma once
/// @file
/// The simulator seen from the host: what it is told before a launch, and what it tells afterwards.
/// Plain host code; kernels include simt/simt.hpp instead.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simt/error.hpp"

namespace simt {
inline namespace sim {

/// Bytes in a sector, the unit in which NVIDIA's L1 and L2 caches move memory. A warp instruction is charged
/// for each that it touches. AMD's caches have lines of 64 or 128 bytes instead.
inline constexpr std::size_t sector_bytes = 32;

/// A matrix in device memory and one of its rows, as addresses: what a trace looks for.
struct traced_row {
  std::uintptr_t begin = 0;  ///< of the row: its first byte
  std::uintptr_t end = 0;  ///< of the row: one past its last byte
  std::uintptr_t matrix_begin = 0;  ///< first byte of the whole matrix
  std::uintptr_t matrix_end = 0;  ///< one past its last byte
};

/// How the simulated device is built. Set it between launches only.
struct settings {
  int warp_size = 32;  ///< lanes: 32, or 64 as on CDNA
  int workers = 0;  ///< host threads that run blocks; 0: one a core
  bool check = true;  ///< watch and count every access; false runs faster and sees nothing
  bool execute = true;  ///< false: launches are checked and recorded, and no kernel runs
  bool by_line = false;  ///< fill launch_record::lines and what stands beside it; slower
  std::vector<traced_row> trace;  ///< record the steps of the warps that work on these rows; empty: none
  std::size_t shared_bytes = 227 * 1024;  ///< most shared memory a block may ask for
  int cluster_blocks = 0;  ///< most blocks of a cluster, at most 16; 0: none, as on most GPUs
  std::function<void(double)>
      on_progress;  ///< called now and then with the finished share of a launch, 0 to 1
};
/// The one set of settings, for all launches of this process.
settings& configuration();

/// Accesses of one kind. Counted for each warp instruction, as `l1tex__t_requests` and `l1tex__t_sectors`
/// are.
struct traffic {
  std::uint64_t requests = 0;  ///< warp instructions with at least one lane active
  std::uint64_t bytes = 0;  ///< asked for, summed over threads
  std::uint64_t sectors = 0;  ///< distinct 32-byte sectors, summed over requests; global memory only
  std::uint64_t wavefronts = 0;  ///< passes through the 32 banks, summed over requests; shared memory only
  std::uint64_t bank_conflicts = 0;  ///< wavefronts beyond those of a request without conflict
  /// Adds counts.
  traffic& operator+=(const traffic& other);
};

/// Accesses of one kind in one source line, and what they might have been.
struct line_traffic : traffic {
  std::uint64_t lanes = 0;  ///< active, summed over requests
  std::uint64_t distinct_bytes = 0;  ///< without those that several lanes of a request share
  std::uint64_t ideal_sectors = 0;  ///< that hold the distinct bytes of a request when they lie together
  std::uint64_t again_bytes = 0;  ///< distinct bytes that the block had loaded before; global loads only
  int again_line = 0;  ///< where it had; 0 if nowhere
  /// Adds counts; again_line stays where it is set.
  line_traffic& operator+=(const line_traffic& other);
};

/// What the statements in one source line did, all their inlined copies together.
struct line_record {
  std::string file;  ///< relative to the source tree
  int line = 0;  ///< counted from 1
  line_traffic global_load;  ///< loads of global memory
  line_traffic global_store;  ///< stores to global memory
  line_traffic shared_load;  ///< loads of shared memory
  line_traffic shared_store;  ///< stores to shared memory
};

/// A point where the lanes of a traced warp met.
struct trace_step {
  /// How lanes can meet: a barrier of the block, a shuffle, a barrier of the warp or of the cluster.
  enum class meeting { barrier, shuffle, warp_barrier, cluster_barrier };
  meeting what = meeting::barrier;  ///< how they met
  std::string file;  ///< of the statement, relative to the source tree
  int line = 0;  ///< of the statement
  std::string exchange;  ///< shuffles: "xor 16", "from lane 0", "down 8"
  bool floating = false;  ///< the values are numbers of type float or double, else integers
  std::vector<double> given;  ///< shuffles: by each lane
};

/// The steps of one warp while it worked on a traced row.
struct warp_trace {
  std::uint64_t block = 0;  ///< number within the grid
  int warp = 0;  ///< within the block
  std::vector<trace_step> steps;  ///< in order
};

/// What one launch did.
struct launch_record {
  std::string kernel;  ///< without namespace and template arguments
  std::string instance;  ///< with its template arguments, such as "row_max<32, float>"
  unsigned grid = 0;  ///< blocks
  unsigned block = 0;  ///< threads a block
  std::size_t shared_bytes = 0;  ///< dynamic, a block
  traffic global_load;  ///< loads of global memory
  traffic global_store;  ///< stores to global memory
  traffic shared_load;  ///< loads of shared memory
  traffic shared_store;  ///< stores to shared memory
  std::uint64_t barriers = 0;  ///< __syncthreads(), once a block
  std::uint64_t shuffles = 0;  ///< once a warp
  std::uint64_t prefetched_bytes = 0;  ///< that the cache was asked for; they count nowhere else
  std::vector<line_record> lines;  ///< with settings::by_line, sorted by file and line
  std::size_t static_shared_bytes = 0;  ///< written by a block; with settings::by_line
  std::uint64_t loaded_at_once = 0;  ///< most global bytes a block loads between two barriers; likewise
  std::vector<warp_trace> traces;  ///< with settings::trace, sorted by block and warp
};

/// Launches since the last clear, in order.
const std::vector<launch_record>& records();
/// Forgets the launches so far.
void clear_records();

/// Kinds of faults: see the table in docs/simulator.md.
enum class fault_kind {
  out_of_bounds,
  use_after_free,
  uninitialised,
  host_memory,
  misaligned,
  divergent_barrier,
  divergent_shuffle,
  race,
  deadlock,
};
/// "out-of-bounds access", for reports.
const char* to_string(fault_kind);

/// A kernel did what a GPU does not survive or does not notice. what() is the whole report.
class fault : public error {
 public:
  /// `report` is the whole text; the rest says where, for those who want to know without reading it.
  fault(fault_kind kind, std::string kernel, std::string file, int line, const std::string& report,
        std::string other_file = "", int other_line = 0)
      : error(report),
        kind(kind),
        kernel(std::move(kernel)),
        file(std::move(file)),
        line(line),
        other_file(std::move(other_file)),
        other_line(other_line) {}
  fault_kind kind;  ///< what went wrong
  std::string kernel;  ///< without namespace and template arguments
  std::string file;  ///< of the statement at fault, relative to the source tree
  int line;  ///< of the statement at fault
  std::string other_file;  ///< races: of the other access
  int other_line;  ///< races: counted from 1; 0 if there is none
};

/// Bytes of memory that this host still has to give.
std::size_t host_memory();

/// Gives the buffer that starts at p a description for reports, such as "5x7 f32". Unknown addresses are
/// ignored.
void describe_buffer(const void* p, const std::string& description);

}  // namespace sim
}  // namespace simt
