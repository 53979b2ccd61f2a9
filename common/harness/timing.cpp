#include "harness/timing.hpp"

#include <algorithm>

#include "harness/median.hpp"

namespace softmax {
namespace {

constexpr std::size_t most_sets = 512;

/// How many sets of `one` bytes make up three L2 caches, at least two, at most half of the free memory.
std::size_t sets_for(std::size_t one, const simt::device& facts, const backend& machine) {
  const std::size_t wanted = 3 * facts.l2_bytes / std::max<std::size_t>(one, 1) + 1;
  const std::size_t possible = machine.free_memory() / (one + 2 * stage_memory::guard_bytes + 1024) / 2;
  return std::max<std::size_t>(1, std::min({std::max<std::size_t>(2, wanted), most_sets, possible}));
}

}  // namespace

rotating_calls::rotating_calls(backend& machine, const stage_info& stage, const host_matrix& x,
                               const matrix_shape& s, const simt::device& facts, std::int64_t offset)
    : machine_(machine) {
  const auto y_bytes = static_cast<std::size_t>(matrix_bytes(s.rows, s.ld_out, x.type));
  const std::size_t one = x.data.size() + y_bytes + static_cast<std::size_t>(workspace_bytes(stage, s));
  const std::size_t sets = sets_for(one, facts, machine);
  for (std::size_t i = 0; i < sets; ++i) {
    memory_.emplace_back(machine, stage, x, s, offset);
    calls_.push_back(memory_.back().call());
  }
  bytes_ = one * sets;
}

timing rotating_calls::time(const launch_plan& plan, int samples) {
  for (stage_call& c : calls_) c.plan = plan;
  const std::vector<double> seconds = machine_.time(calls_, samples);
  const auto [fastest, slowest] = std::minmax_element(seconds.begin(), seconds.end());
  timing t;
  t.seconds = median(seconds);
  t.fastest = *fastest;
  t.slowest = *slowest;
  t.samples = static_cast<int>(seconds.size());
  t.rotated_bytes = bytes_;
  return t;
}

copy_times time_copy(backend& machine, const host_matrix& x, const simt::device& facts, int samples) {
  // What the matrices hold, in whole vectors, between buffers that are aligned.
  const std::size_t bytes = static_cast<std::size_t>(x.rows * x.cols) * size_of(x.type) / 16 * 16;
  if (bytes == 0) return {};
  std::vector<device_buffer> buffers;
  std::vector<stage_call> pairs;
  const std::size_t sets = sets_for(2 * bytes, facts, machine);
  for (std::size_t i = 0; i < sets; ++i) {
    buffers.emplace_back(machine, bytes, "copy source");
    machine.upload(buffers.back().get(), x.data.data(), std::min(bytes, x.data.size()));
    const void* from = buffers.back().get();
    buffers.emplace_back(machine, bytes, "copy target");
    pairs.push_back({.x = from, .y = buffers.back().get()});
  }
  return machine.time_copy(pairs, bytes, samples);
}

}  // namespace softmax
