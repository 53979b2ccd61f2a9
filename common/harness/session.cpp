#include "harness/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "harness/dram.hpp"
#include "harness/launch_plan.hpp"
#include "harness/npy.hpp"
#include "harness/stage_memory.hpp"
#include "harness/usage_error.hpp"
#include "numerics/input.hpp"

namespace softmax {
namespace {

constexpr std::int64_t default_rows_sim = 256, default_cols_sim = 781;
constexpr std::int64_t default_rows_gpu = 16384, default_cols_gpu = 8192;
constexpr int timing_samples = 25;

/// Refuses what cannot work, in one sentence, before anything is allocated.
void check_plan(const planned_run& p, const options& o, const stage_info& stage, const backend& machine,
                int warp_size) {
  const matrix_shape& s = p.shape;
  if (const std::string problem = stage_problem(stage, s); !problem.empty()) throw usage_error(problem);
  if (o.trace && o.trace->row >= s.rows)
    throw usage_error(
        s.rows == 0 ? std::string("--trace needs a row, and the matrix has none: use --rows 1 or more.")
                    : fmt::format("--trace row={} is out of range: use 0 to {}.", o.trace->row, s.rows - 1));
  if (s.rows == 0 || s.cols == 0) return;
  if (const std::string problem = plan_problem(o.plan, machine.rule(s.cols), s.cols, warp_size);
      !problem.empty())
    throw usage_error(problem);
  const std::int64_t x = matrix_bytes(s.rows, s.ld_in, p.type), y = matrix_bytes(s.rows, s.ld_out, p.type);
  std::int64_t device_need = 0, host_need = 0;
  if (__builtin_add_overflow(x, y, &host_need) ||
      __builtin_add_overflow(host_need, workspace_bytes(stage, s), &device_need))
    throw usage_error("The shape is too large for 64-bit sizes: use a smaller one.");
  const bool simulated = machine.name() == "sim";
  const auto host_free = static_cast<std::int64_t>(simt::host_memory());
  const auto device_free = static_cast<std::int64_t>(machine.free_memory());
  // The simulator shares memory with the host's copies; its own free_memory() counts two bytes for each.
  std::int64_t total = device_need;
  if (simulated && __builtin_add_overflow(device_need, host_need / 2, &total)) total = INT64_MAX;
  if (total > device_free)
    throw usage_error(
        fmt::format("{} needs {:.1f} GB on the {} and {:.1f} GB are free: use fewer --rows or --cols.",
                    shape_text(s, p.type), static_cast<double>(total) * 1e-9, simulated ? "simulator" : "GPU",
                    static_cast<double>(device_free) * 1e-9));
  if (__builtin_add_overflow(host_need, verify_bytes(o.check, s.rows, s.cols), &host_need))
    host_need = INT64_MAX;
  if (host_need > host_free)
    throw usage_error(fmt::format(
        "{} needs {:.1f} GB of host memory to check the result and {:.1f} GB are free: use "
        "fewer --rows or --cols.",
        shape_text(s, p.type), static_cast<double>(host_need) * 1e-9, static_cast<double>(host_free) * 1e-9));
}

std::uint64_t hash_of(const host_matrix& m) {
  // FNV-1a over the elements; padding does not count.
  std::uint64_t hash = 0xcbf29ce484222325u;
  if (m.cols == 0) return hash;
  const std::size_t row_bytes = static_cast<std::size_t>(m.cols) * size_of(m.type);
  for (std::int64_t row = 0; row < m.rows; ++row) {
    const std::byte* p = m.data.data() + row * m.ld * static_cast<std::int64_t>(size_of(m.type));
    for (std::size_t i = 0; i < row_bytes; ++i)
      hash = (hash ^ std::to_integer<std::uint64_t>(p[i])) * 0x100000001b3u;
  }
  return hash;
}

/// One row of the input and of the output, as the simulator looks for them.
std::vector<simt::traced_row> traced_rows(const stage_call& call, std::int64_t row) {
  const auto size = static_cast<std::int64_t>(size_of(call.type));
  const auto place = [&](const void* p, std::int64_t ld) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    const std::uintptr_t first = begin + static_cast<std::uintptr_t>(row * ld * size);
    return simt::traced_row{first, first + static_cast<std::uintptr_t>(call.shape.cols * size), begin,
                            begin + static_cast<std::uintptr_t>(call.shape.rows * ld * size)};
  };
  return {place(call.x, call.shape.ld_in), place(call.y, call.shape.ld_out)};
}

run_result run_one(const planned_run& p, const host_matrix& x, const options& o, const stage_info& stage,
                   chosen_device& device) {
  backend& machine = *device.machine;
  run_result r{.shape = p.shape, .type = p.type, .input = p.input};
  host_matrix y(p.type, p.shape.rows, p.shape.cols, p.shape.ld_out);
  stage_memory memory(machine, stage, x, p.shape, o.offset);
  if (o.trace) simt::configuration().trace = traced_rows(memory.call(), o.trace->row);
  for (int turn = 0; turn < o.repeat; ++turn) {
    memory.poison();
    simt::clear_records();
    try {
      stage_call call = memory.call();
      call.plan = o.plan;
      machine.run(call);
    } catch (const simt::fault& f) {
      r.fault = f.what();
      r.check.pass = false;
      return r;
    }
    r.damage = memory.fetch(y, x);
    if (o.repeat > 1) {
      const std::uint64_t hash = hash_of(y);
      if (turn > 0 && hash != r.output_hash) r.differing_repeat = turn;
      r.output_hash = hash;
    }
    if (!r.damage.empty() || r.differing_repeat) break;
  }
  if (device.simulated && o.watch)
    r.counted = hold_against_model(
        simt::records(), fitted(stage, p.shape, p.type, device.facts.cluster_blocks), p.shape, p.type);
  r.check = verify(x, y, errors_of(stage, p.shape), o.check);
  if (r.pass() && o.time && !device.simulated && p.shape.rows > 0 && p.shape.cols > 0) {
    try {
      timing t =
          rotating_calls(machine, stage, x, p.shape, device.facts, o.offset).time(o.plan, timing_samples);
      if (!(t.seconds > 0)) throw simt::error("the clock saw no time pass: use more --rows.");
      t.copy = time_copy(machine, x, device.facts, timing_samples);
      r.timed = t;
    } catch (const simt::error& problem) {
      r.not_timed = problem.what();  // the result is right all the same
    }
  } else if (!device.simulated) {
    r.not_timed = !r.pass() ? "a wrong result has no time" : o.time ? "nothing to do" : "--no-time";
  }
  const bool empty = p.shape.rows == 0 || p.shape.cols == 0;
  if (r.pass() && o.counters && !device.simulated && !empty)
    r.dram = measure_dram(p, o, fitted(stage, p.shape, p.type, device.facts.cluster_blocks), device);
  if (r.pass() && !o.output.empty()) write_npy(o.output, y);
  return r;
}

host_matrix with_stride(const host_matrix& m, dtype type, std::int64_t ld) {
  host_matrix out(type, m.rows, m.cols, ld);
  for (std::int64_t row = 0; row < m.rows; ++row)
    for (std::int64_t col = 0; col < m.cols; ++col) out.set(row, col, m.at(row, col));
  out.fill_padding();
  return out;
}

}  // namespace

chosen_device choose_device(const options& o, std::vector<std::unique_ptr<backend>>& backends) {
  chosen_device chosen;
  for (auto& b : backends) {
    const bool is_simulator = b->name() == "sim";
    if (o.device != "auto" && o.device != b->name()) continue;
    try {
      if (is_simulator) {
        simt::configuration().warp_size = find_gpu(o.gpu)->warp_size;
        simt::configuration().shared_bytes = find_gpu(o.gpu)->shared_per_block;
        simt::configuration().workers = o.threads;
        simt::configuration().cluster_blocks = o.clusters ? find_gpu(o.gpu)->cluster_blocks : 0;
        simt::configuration().check = o.watch;
        simt::configuration().by_line = !o.profile.empty();
      }
      chosen.facts = b->open(is_simulator ? 0 : o.index);
      chosen.machine = b.get();
      chosen.simulated = is_simulator;
      chosen.gpu = is_simulator ? find_gpu(o.gpu) : match_gpu(chosen.facts.name);
      return chosen;
    } catch (const simt::no_device& problem) {
      if (o.device != "auto") throw usage_error(problem.what());
      const std::string why = problem.what();
      chosen.note += (chosen.note.empty() ? "" : "; ") + why.substr(0, why.find(':'));
    }
  }
  throw usage_error(fmt::format(
      "This program was built without {0}, because its compiler was not found: install the {1} and "
      "build again, or run on the simulator with --device sim.",
      o.device == "cuda" ? "CUDA" : "HIP",
      o.device == "cuda" ? "CUDA Toolkit" : "HIP compiler, use the preset hip"));
}

ledger hold_against_model(const std::vector<simt::launch_record>& launches, const stage_info& stage,
                          const matrix_shape& shape, dtype type) {
  ledger l;
  l.launches = launches;
  const bool empty = shape.rows == 0 || shape.cols == 0;
  const std::size_t expected = empty ? 0 : stage.launches.size();
  if (launches.size() != expected)
    l.mismatch = fmt::format("the model has {} launches and {} were made", expected, launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const simt::launch_record& seen = launches[i];
    const auto read = static_cast<std::int64_t>(seen.global_load.bytes);
    const auto write = static_cast<std::int64_t>(seen.global_store.bytes);
    l.requested_read += read;
    l.requested_write += write;
    l.sector_read += static_cast<std::int64_t>(seen.global_load.sectors * simt::sector_bytes);
    l.sector_write += static_cast<std::int64_t>(seen.global_store.sectors * simt::sector_bytes);
    if (i >= expected) continue;
    const kernel_model& model = stage.launches[i];
    const auto differs = [&](const std::string& how) {
      l.mismatch += (l.mismatch.empty() ? "" : "; ") + how;
    };
    if (seen.kernel != model.kernel)
      differs(fmt::format("launch {} is {}, the model says {}", i + 1, seen.kernel, model.kernel));
    if (read != model.read_bytes(shape, type))
      differs(fmt::format("{} reads {} bytes, its model {} says {}", seen.kernel, read, model.reads().text(),
                          model.read_bytes(shape, type)));
    if (write != model.write_bytes(shape, type))
      differs(fmt::format("{} writes {} bytes, its model {} says {}", seen.kernel, write,
                          model.writes().text(), model.write_bytes(shape, type)));
  }
  return l;
}

std::vector<planned_run> plan_runs(const options& o, const stage_info& stage, const chosen_device& device) {
  std::vector<planned_run> plan;
  const auto add = [&](std::int64_t rows, std::int64_t cols, const std::string& input, dtype type,
                       std::optional<host_matrix> file = {}) {
    matrix_shape s{rows, cols, o.ld_in.value_or(cols), o.ld_out.value_or(cols)};
    if (rows == 0 || cols == 0) s.ld_in = s.ld_out = 0;  // no row is ever addressed
    plan.push_back({s, type, input, std::move(file)});
  };
  if (!o.input.empty()) {
    host_matrix file = read_npy(o.input);
    const std::int64_t rows = file.rows, cols = file.cols;
    const dtype type = o.type.value_or(file.type);
    add(rows, cols, o.input, type, std::move(file));
  } else {
    const auto or_default = [&](const std::vector<std::int64_t>& given, std::int64_t simulated,
                                std::int64_t gpu) {
      return !given.empty() ? given : std::vector{device.simulated ? simulated : gpu};
    };
    for (std::int64_t m : or_default(o.rows, default_rows_sim, default_rows_gpu))
      for (std::int64_t n : or_default(o.cols, default_cols_sim, default_cols_gpu))
        add(m, n, o.distribution, o.type.value_or(dtype::f32));
  }
  for (const planned_run& p : plan) check_plan(p, o, stage, *device.machine, device.facts.warp_size);
  return plan;
}

host_matrix make_run_input(const planned_run& p, const options& o) {
  try {
    if (p.file) return with_stride(*p.file, p.type, p.shape.ld_in);
    return make_input(p.input, o.seed, p.type, p.shape.rows, p.shape.cols, p.shape.ld_in);
  } catch (const std::invalid_argument& mistake) {
    throw usage_error(mistake.what());
  } catch (const std::bad_alloc&) {
    throw usage_error(fmt::format("{} does not fit in this machine's memory: use fewer --rows or --cols.",
                                  shape_text(p.shape, p.type)));
  }
}

std::optional<best_fraction> best_of(const std::vector<run_result>& results, const simt::device& facts) {
  std::optional<best_fraction> best;
  for (const run_result& r : results) {
    if (!r.pass()) return std::nullopt;
    if (!r.timed || !(r.timed->seconds > 0) || !(r.timed->copy.best > 0)) continue;
    const auto useful = static_cast<double>(useful_bytes(r.shape, r.type));
    if (useful < static_cast<double>(facts.l2_bytes)) continue;
    const double of_copy = useful / r.timed->seconds / r.timed->copy.bytes_per_second();
    if (!best || of_copy > best->of_copy)
      best = {of_copy, fmt::format("{}, {}", shape_text(r.shape, r.type), facts.name)};
  }
  return best;
}

std::vector<run_result> run_all(const options& o, const stage_info& stage, chosen_device& device) {
  std::vector<run_result> results;
  for (const planned_run& p : plan_runs(o, stage, device))
    results.push_back(run_one(p, make_run_input(p, o), o, stage, device));
  return results;
}

}  // namespace softmax
