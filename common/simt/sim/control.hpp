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

/// How the simulated device is built. Set it between launches only.
struct settings {
  int warp_size = 32;  ///< lanes: 32, or 64 as on CDNA
  int workers = 0;  ///< host threads that run blocks; 0: one a core
  bool check = true;  ///< watch and count every access; false runs faster and sees nothing
  bool execute = true;  ///< false: launches are checked and recorded, and no kernel runs
  std::size_t shared_bytes = 227 * 1024;  ///< most shared memory a block may ask for
  std::function<void(double)>
      on_progress;  ///< called now and then with the finished share of a launch, 0 to 1
};
settings& configuration();

/// Accesses of one kind. Counted for each warp instruction, as `l1tex__t_requests` and `l1tex__t_sectors`
/// are.
struct traffic {
  std::uint64_t requests = 0;  ///< warp instructions with at least one lane active
  std::uint64_t bytes = 0;  ///< asked for, summed over threads
  std::uint64_t sectors = 0;  ///< distinct 32-byte sectors, summed over requests; global memory only
  traffic& operator+=(const traffic& other);
};

/// What one launch did.
struct launch_record {
  std::string kernel;  ///< without namespace and template arguments
  std::string instance;  ///< with its template arguments, such as "row_max<32, float>"
  unsigned grid = 0;  ///< blocks
  unsigned block = 0;  ///< threads a block
  std::size_t shared_bytes = 0;
  traffic global_load, global_store, shared_load, shared_store;
  std::uint64_t barriers = 0;  ///< __syncthreads(), once a block
  std::uint64_t shuffles = 0;  ///< once a warp
};

/// Launches since the last clear, in order.
const std::vector<launch_record>& records();
void clear_records();

enum class fault_kind {
  out_of_bounds,
  use_after_free,
  uninitialised,
  host_memory,
  misaligned,
  divergent_barrier,
  divergent_shuffle,
};
const char* to_string(fault_kind);

/// A kernel did what a GPU does not survive or does not notice. what() is the whole report.
class fault : public error {
 public:
  fault(fault_kind kind, std::string kernel, std::string file, int line, const std::string& report)
      : error(report), kind(kind), kernel(std::move(kernel)), file(std::move(file)), line(line) {}
  fault_kind kind;
  std::string kernel;
  std::string file;  ///< of the statement at fault, relative to the source tree
  int line;
};

/// Bytes of memory that this host still has to give.
std::size_t host_memory();

/// Gives the buffer that starts at p a description for reports, such as "5x7 f32". Unknown addresses are
/// ignored.
void describe_buffer(const void* p, const std::string& description);

}  // namespace sim
}  // namespace simt
