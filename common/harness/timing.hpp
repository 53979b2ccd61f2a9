#pragma once
/// @file
/// Time on a GPU, with cold caches.
#include <string>
#include <vector>

#include "harness/stage_memory.hpp"

namespace softmax {

/// Times of one shape.
struct timing {
  double seconds = 0;  ///< median of a call
  double fastest = 0;  ///< seconds of a call, of the samples
  double slowest = 0;  ///< likewise
  int samples = 0;  ///< batches that the median is of
  std::size_t rotated_bytes = 0;  ///< of all buffers that the calls rotate through
  copy_times copy;  ///< over the same bytes, in the same process
};

/// How many sets of buffers of `one` bytes a timing rotates through, so that a call finds nothing of its own
/// in the cache: three L2 caches full and at least two, one alone if it is far larger than the cache, and at
/// most half of the free memory.
std::size_t cold_sets(std::size_t one, const simt::device& facts, const backend& machine);

/// Calls of one shape on several sets of buffers, together three times as large as the L2 cache where memory
/// allows, so that a call finds nothing of its own left there.
class rotating_calls {
 public:
  /// Fills x of each set from `x`; matrices start `offset` elements behind a 256-byte boundary.
  /// @throws simt::error if memory is short
  rotating_calls(backend& machine, const stage_info& stage, const host_matrix& x, const matrix_shape& s,
                 const simt::device& facts, std::int64_t offset);
  /// Times `samples` batches of calls with `plan`. The copy is not measured.
  timing time(const launch_plan& plan, int samples);

 private:
  backend& machine_;
  std::vector<stage_memory> memory_;
  std::vector<stage_call> calls_;
  std::size_t bytes_ = 0;
};

/// The best copy kernel over as many bytes as x has elements for, with cold caches.
copy_times time_copy(backend& machine, const host_matrix& x, const simt::device& facts, int samples);

}  // namespace softmax
