#include "harness/occupancy.hpp"

#include <algorithm>

namespace softmax {

double bytes_in_flight_needed(const gpu_facts& gpu) {
  constexpr double latency = 0.8e-6;
  return gpu.peak_bytes_per_second / 2 * latency / gpu.multiprocessors;
}

occupancy occupancy_of(const gpu_facts& gpu, int threads, std::size_t shared_bytes, double bytes_per_block,
                       int registers) {
  occupancy o;
  // Threads and registers are handed out a warp at a time.
  const int rounded = (threads + gpu.warp_size - 1) / gpu.warp_size * gpu.warp_size;
  o.blocks = gpu.threads_per_multiprocessor / rounded;
  o.limit = "threads";
  const auto tighten = [&](int blocks, const char* what) {
    if (blocks < o.blocks) {
      o.blocks = blocks;
      o.limit = what;
    }
  };
  tighten(gpu.blocks_per_multiprocessor, "blocks");
  if (shared_bytes > 0)
    tighten(static_cast<int>(gpu.shared_per_multiprocessor / shared_bytes), "shared memory");
  if (registers > 0) {
    const int granted = (registers + 7) / 8 * 8;
    tighten(gpu.registers_per_multiprocessor / (granted * rounded), "registers");
  }
  o.threads = o.blocks * rounded;
  o.share = static_cast<double>(o.threads) / gpu.threads_per_multiprocessor;
  o.bytes_in_flight = o.blocks * bytes_per_block;
  return o;
}

}  // namespace softmax
