#include "measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/stage_memory.hpp"
#include "harness/timing.hpp"
#include "harness/usage_error.hpp"

namespace softmax {
namespace {

constexpr std::uint64_t seed = 1;
constexpr std::int64_t most_checked = std::int64_t{1} << 20;  // elements, unless that is less than two rows

using clock = std::chrono::steady_clock;
double since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

/// Buffers for as many calls as a timing rotates through.
class call_sets {
 public:
  call_sets(backend& machine, const stage_info& stage, const bench_point& p, std::size_t sets) {
    const auto matrix = static_cast<std::size_t>(matrix_bytes(p.shape.rows, p.shape.cols, p.type));
    const auto scratch = static_cast<std::size_t>(workspace_bytes(stage, p.shape));
    const double deviation = p.lie == "zeros" ? 0 : 1;
    for (std::size_t i = 0; i < sets; ++i) {
      const auto hold = [&](std::size_t bytes, const char* name) {
        return buffers_.emplace_back(machine, bytes, name).get();
      };
      void* x = hold(matrix, "x");
      void* y = hold(matrix, "y");
      machine.fill(x, p.type, p.shape, seed + i, deviation);
      calls_.push_back({.type = p.type,
                        .x = x,
                        .y = y,
                        .workspace = static_cast<float*>(hold(scratch, "workspace")),
                        .shape = p.shape,
                        .plan = p.plan});
    }
  }
  const std::vector<stage_call>& calls() const { return calls_; }

 private:
  std::vector<device_buffer> buffers_;
  std::vector<stage_call> calls_;
};

/// Rows `chosen` of a matrix on the device.
host_matrix fetch_rows(backend& machine, const void* matrix, const bench_point& p,
                       const std::vector<std::int64_t>& chosen) {
  host_matrix rows(p.type, static_cast<std::int64_t>(chosen.size()), p.shape.cols, p.shape.cols);
  const std::size_t bytes = static_cast<std::size_t>(p.shape.cols) * size_of(p.type);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    machine.download(rows.data.data() + i * bytes,
                     static_cast<const std::byte*>(matrix) + static_cast<std::size_t>(chosen[i]) * bytes,
                     bytes);
  return rows;
}

/// Compares the rows at both ends and a sample between them with the fp64 reference.
verdict check_sample(backend& machine, const stage_info& stage, const bench_point& p,
                     const stage_call& call) {
  constexpr std::int64_t many = 256;
  const row_choice sample{std::clamp<std::int64_t>(most_checked / p.shape.cols, 2, many)};
  const std::vector<std::int64_t> chosen = chosen_rows(sample, p.shape.rows);
  return verify(fetch_rows(machine, call.x, p, chosen), fetch_rows(machine, call.y, p, chosen),
                errors_of(stage, p.shape));
}

std::vector<double> time_calls(backend& machine, const bench_point& p, const std::vector<stage_call>& calls) {
  if (p.lie != "allocate" && p.lie != "nosync") return machine.time(calls, p.samples);
  const auto bytes = static_cast<std::size_t>(matrix_bytes(p.shape.rows, p.shape.cols, p.type));
  std::vector<double> seconds;
  for (int i = 0; i < p.samples; ++i) {
    stage_call call = calls[static_cast<std::size_t>(i) % calls.size()];
    machine.wait();
    const auto begin = clock::now();
    if (p.lie == "allocate") {
      const device_buffer fresh(machine, bytes, "fresh output");
      call.y = fresh.get();
      machine.run(call);
    } else {
      machine.start(call);  // and nobody waits
    }
    seconds.push_back(since(begin));
  }
  machine.wait();
  if (p.lie == "allocate") machine.run(calls.front());  // the check looks there
  return seconds;
}

std::string wrong_text(const verdict& v, const char* when) {
  return fmt::format("wrong result {} timing: row {} of the sample, col {}: got {}, want {} ({})", when,
                     v.worst.row, v.worst.col, v.worst.got, v.worst.want, to_string(v.worst.why));
}

measured measure_unguarded(const bench_point& p, const stage_info& stage, chosen_device& device) {
  measured m;
  backend& machine = *device.machine;
  if (m.problem = stage_problem(stage, p.shape); !m.problem.empty()) return m;
  const auto matrix = static_cast<std::size_t>(matrix_bytes(p.shape.rows, p.shape.cols, p.type));
  const std::size_t one = 2 * matrix + static_cast<std::size_t>(workspace_bytes(stage, p.shape));
  const bool alone = device.simulated || p.warm || p.lie == "l2" || p.lie == "cold";
  const std::size_t sets = alone ? 1 : cold_sets(one, device.facts, machine);
  if (one * sets > machine.free_memory()) {
    m.problem = fmt::format("needs {:.1f} GB of device memory and {:.1f} GB are free",
                            static_cast<double>(one * sets) * 1e-9,
                            static_cast<double>(machine.free_memory()) * 1e-9);
    return m;
  }
  const call_sets sets_of_buffers(machine, stage, p, sets);
  const std::vector<stage_call>& calls = sets_of_buffers.calls();
  const stage_call& first = calls.front();
  const auto poison = [&] { machine.poison(first.y, matrix); };

  // The first call of the process must come before all others, the copies too.
  const std::size_t whole = matrix / 16 * 16;
  if (!device.simulated && p.lie != "cold" && whole > 0) m.copy = machine.time_copy(calls, whole, p.samples);
  poison();
  simt::clear_records();
  const auto begin = clock::now();
  machine.run(first);
  const double first_call = since(begin);
  m.check = check_sample(machine, stage, p, first);
  if (device.simulated)
    m.counted = hold_against_model(
        simt::records(), fitted(stage, p.shape, p.type, device.facts.cluster_blocks), p.shape, p.type);
  if (!m.check.pass) {
    m.problem = wrong_text(m.check, "before");
    return m;
  }
  if (m.counted) {
    m.problem = m.counted->mismatch;
    return m;
  }
  poison();
  m.seconds = p.lie == "cold" ? std::vector{first_call} : time_calls(machine, p, calls);
  const verdict after = check_sample(machine, stage, p, first);
  m.check.largest_ulp = std::max(m.check.largest_ulp, after.largest_ulp);
  if (!after.pass && p.lie != "cold") m.problem = wrong_text(after, "after");
  return m;
}

}  // namespace

const std::vector<timing_lie>& timing_lies() {
  static const std::vector<timing_lie> all = {
      {"allocate", "the output is allocated and released inside the timed region"},
      {"cold", "the first call of the process is timed: the driver loads the code in it"},
      {"l2", "every call works on the same buffers, so the cache serves what fits"},
      {"nosync", "the host's clock stops before the GPU has finished, or begun"},
      {"zeros", "the input is all zeros, which takes less power to move and compute with"},
  };
  return all;
}

measured measure(const bench_point& point, const stage_info& stage, chosen_device& device) {
  try {
    return measure_unguarded(point, stage, device);
  } catch (const std::exception& mistake) {
    measured m;
    m.problem = mistake.what();
    return m;
  }
}

}  // namespace softmax
