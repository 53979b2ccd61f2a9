#pragma once
/// @file
/// How full a launch keeps a multiprocessor. A calculation from the GPU's limits, not a measurement.
#include <cstdint>
#include <string>

#include "harness/devices.hpp"
#include "simt/sim/control.hpp"

namespace softmax {

/// Bytes that a multiprocessor of this GPU must have under way to use its share of the memory's bandwidth, by
/// Little's law, bandwidth times latency: half of the peak, since reads make up half of the traffic, and an
/// assumed latency of 0.8 us under load.
double bytes_in_flight_needed(const gpu_facts& gpu);

/// What is resident on a multiprocessor at once.
struct occupancy {
  int blocks = 0;  ///< resident on a multiprocessor
  int threads = 0;  ///< in those blocks
  double share = 0;  ///< of the threads that the multiprocessor can hold, 0 to 1
  std::string limit;  ///< what keeps a further block out: "threads", "blocks", "registers" or "shared memory"
  double bytes_in_flight = 0;  ///< that the resident blocks load between two barriers
};

/// A block of `threads` threads with `shared_bytes`, that loads `bytes_per_block` at once. `registers` a
/// thread; 0 if not known, and then not counted.
occupancy occupancy_of(const gpu_facts& gpu, int threads, std::size_t shared_bytes, double bytes_per_block,
                       int registers);

}  // namespace softmax
