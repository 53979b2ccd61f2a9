#include "harness/pitfall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "harness/median.hpp"
#include "harness/occupancy.hpp"
#include "harness/stage_memory.hpp"
#include "harness/usage_error.hpp"
#include "numerics/input.hpp"
#include "numerics/reference.hpp"

namespace softmax {
namespace {

const std::string allocator = "timing-the-allocator";

struct attempt {
  host_matrix y;
  verdict check;
  double seconds = 0;
};

/// What the launch looks like, counted by the simulator on a few rows.
simt::launch_record launch_of(const stage_info& stage, const pitfall_info& p, const char* mistake,
                              int warp_size) {
  const auto backends = make_backends();
  backend& simulator = *backends.back();
  simt::configuration().warp_size = warp_size;
  simt::configuration().check = true;
  const matrix_shape s{512, p.cols, p.cols, p.cols};
  const host_matrix x = make_input(p.distribution, 1, p.type, s.rows, s.cols, s.cols);
  stage_memory memory(simulator, stage, x, s);
  stage_call call = memory.call();
  call.pitfall = mistake;
  simt::clear_records();
  simulator.run(call);
  return simt::records().back();
}

attempt run_once(backend& machine, const stage_info& stage, const host_matrix& x, const matrix_shape& s,
                 const char* mistake) {
  attempt a{host_matrix(x.type, s.rows, s.cols, s.ld_out), {}};
  stage_memory memory(machine, stage, x, s);
  memory.poison();
  stage_call call = memory.call();
  call.pitfall = mistake;
  machine.run(call);
  (void)memory.fetch(a.y, x);
  a.check = verify(x, a.y, errors_of(stage, s));
  if (machine.name() != "sim") a.seconds = median(machine.time({call}, 15));
  return a;
}

std::string verdict_text(const verdict& v) {
  return v.pass ? "RIGHT" : fmt::format("WRONG in {} of {} elements", v.failures, v.elements);
}

/// Times calls with the output allocated inside the timed region, and without.
std::string allocator_lesson(const stage_info& stage, chosen_device& device, bool& as_promised) {
  as_promised = true;
  if (device.simulated)
    return "SKIP: times are only taken on a GPU; run this with --device cuda or --device hip.\n";
  backend& machine = *device.machine;
  const matrix_shape s{4096, 4096, 4096, 4096};
  const host_matrix x = make_input("normal", 1, dtype::f32, s.rows, s.cols, s.ld_in);
  stage_memory memory(machine, stage, x, s);
  const stage_call call = memory.call();
  const auto clock = [&](bool allocate) {
    std::vector<double> seconds;
    for (int i = 0; i < 30; ++i) {
      stage_call c = call;
      const auto begin = std::chrono::steady_clock::now();
      void* fresh = nullptr;
      if (allocate) c.y = fresh = machine.allocate(x.data.size(), "fresh output");
      machine.run(c);
      if (allocate) machine.release(fresh);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return seconds;
  };
  clock(true);  // warm up
  const std::vector<double> plain = clock(false), with = clock(true);
  const auto line = [](const char* what, const std::vector<double>& t) {
    const auto [fastest, slowest] = std::minmax_element(t.begin(), t.end());
    return fmt::format("  {:<34} {:>9.1f} us, from {:.1f} to {:.1f}\n", what, median(t) * 1e6, *fastest * 1e6,
                       *slowest * 1e6);
  };
  as_promised = median(with) > median(plain);
  return fmt::format("pitfall {}: a timer around the allocation measures the allocator too\n{}{}", allocator,
                     line("kernel alone", plain), line("allocation, kernel and release", with)) +
         "The second number moves with the allocator, not with the kernel. Allocate first, then start the "
         "clock.\n";
}

std::string occupancy_line(const char* what, const simt::launch_record& seen, dtype t, const gpu_facts& gpu) {
  const double bytes = static_cast<double>(seen.global_load.bytes) / seen.grid;
  const occupancy o = occupancy_of(gpu, static_cast<int>(seen.block), seen.shared_bytes, bytes, 0);
  const double lanes = bytes / static_cast<double>(size_of(t)) / seen.block;
  return fmt::format(
      "  {:<9} {:>2} blocks of {} threads a multiprocessor ({:.0f} %); {:.1f} % of the lanes hold data; "
      "{:.1f} kB in flight\n",
      what, o.blocks, seen.block, o.share * 100, std::min(1.0, lanes) * 100, o.bytes_in_flight * 1e-3);
}

}  // namespace

std::string pitfall_names(const stage_info& stage) {
  std::string names;
  for (const auto& p : stage.pitfalls) names += p.name + ", ";
  return names + allocator;
}

std::string run_pitfall(const std::string& name, const stage_info& stage, chosen_device& device,
                        bool& as_promised) {
  if (name == allocator) return allocator_lesson(stage, device, as_promised);
  const auto found = std::find_if(stage.pitfalls.begin(), stage.pitfalls.end(),
                                  [&](const auto& p) { return p.name == name; });
  if (found == stage.pitfalls.end())
    throw usage_error(fmt::format("--pitfall {} is not known to stage {}: use one of {}.", name, stage.number,
                                  pitfall_names(stage)));
  const pitfall_info& p = *found;
  matrix_shape s{p.rows, p.cols, p.cols, p.cols};
  if (p.is_right) s.rows = device.simulated ? 2048 : 1 << 22;
  const host_matrix x = make_input(p.distribution, 1, p.type, s.rows, s.cols, s.cols);
  backend& machine = *device.machine;
  const attempt right = run_once(machine, stage, x, s, nullptr);
  const attempt wrong = run_once(machine, stage, x, s, p.name.c_str());
  as_promised = right.check.pass && wrong.check.pass == p.is_right;

  std::string out = fmt::format("pitfall {}: {}\n", p.name, p.claim);
  out += fmt::format("shape   {} x {} {}, input {}\n", s.rows, s.cols, name_of(p.type), p.distribution);
  if (p.is_right) {
    const gpu_facts& gpu = device.gpu ? *device.gpu : *find_gpu("h200");
    for (const char* mistake : {p.name.c_str(), static_cast<const char*>(nullptr)})
      out += occupancy_line(mistake ? "mistake" : "kernel",
                            launch_of(stage, p, mistake, device.facts.warp_size), p.type, gpu);
    out += fmt::format("  {} needs about {:.0f} kB in flight on each multiprocessor (Little's law)\n",
                       gpu.name, bytes_in_flight_needed(gpu) * 1e-3);
    if (right.seconds > 0) {
      const auto useful = static_cast<double>(useful_bytes(s, p.type));
      out += fmt::format("  mistake    {:.1f} us, {:.0f} GB/s\n  kernel     {:.1f} us, {:.0f} GB/s\n",
                         wrong.seconds * 1e6, useful / wrong.seconds * 1e-9, right.seconds * 1e6,
                         useful / right.seconds * 1e-9);
    }
    return out;
  }
  std::vector<double> in(s.cols), want(s.cols);
  for (std::int64_t j = 0; j < s.cols; ++j) in[j] = x.at(0, j);
  reference_row(in, want);
  out +=
      fmt::format("  {:>8} {:>14} {:>14} {:>14} {:>14}\n", "column", "x", "reference", "kernel", "mistake");
  for (std::int64_t j : {std::int64_t{0}, std::int64_t{1}, s.cols / 2, s.cols - 1})
    out += fmt::format("  {:>8} {:>14.6e} {:>14.6e} {:>14.6e} {:>14.6e}\n", j, in[j], want[j],
                       right.y.at(0, j), wrong.y.at(0, j));
  double right_sum = 0, wrong_sum = 0;
  for (std::int64_t j = 0; j < s.cols; ++j) {
    right_sum += right.y.at(0, j);
    wrong_sum += wrong.y.at(0, j);
  }
  out += fmt::format("  {:>8} {:>14} {:>14} {:>14.6e} {:>14.6e}\n", "row sum", "", "1", right_sum, wrong_sum);
  out += fmt::format("kernel  {}\nmistake {}; the first: row {}, col {}: {}\n", verdict_text(right.check),
                     verdict_text(wrong.check), wrong.check.worst.row, wrong.check.worst.col,
                     to_string(wrong.check.worst.why));
  if (!as_promised) out += "This is not what was promised: please report it.\n";
  return out;
}

}  // namespace softmax
