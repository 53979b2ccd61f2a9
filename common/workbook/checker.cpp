#include "workbook/checker.hpp"

#include <fmt/format.h>

#include "harness/stage_memory.hpp"
#include "numerics/input.hpp"

namespace softmax::workbook {
namespace {

constexpr std::uint64_t seed = 20;

}  // namespace

std::vector<test_case> hidden_cases(const stage_info& stage, const exercise_info& exercise) {
  std::vector<test_case> all = {
      {"normal", 3, 40},  // most of a block is masked
      {"normal", 5, 300},  // a second trip that is not full
      {"mixed", 9, 781},  // ordinary, negative, large and masked rows; a prime number of columns
      {"negative", 4, 512},  // no masked lane, so padding is not to blame
      {"normal", 5, 256},
      {"normal", 3, 257},
      {"ramp_up", 5, 1000},  // the maximum in the last column, and far above the others
      {"spike:last", 3, 777},
      {"spike:middle", 5, 96},
      {"normal", 7, 96, dtype::f32, 101, 99},  // rows apart, NaN between them
      {"normal", 11, 32},
      {"normal", 17, 64},
      {"mixed", 13, 65},
      {"normal", 1, 1},
      {"special", 10, 33},
      {"mixed", 5, 1000, dtype::f16},
      {"mixed", 5, 333, dtype::bf16},
      {"normal", 0, 5},
      {"normal", 5, 0},
  };
  for (std::int64_t cols : exercise.widths) {
    all.push_back({"normal", 3, cols});
    all.push_back({"ramp_up", 2, cols});
  }
  all.insert(all.end(), exercise.cases.begin(), exercise.cases.end());
  std::erase_if(all, [&](const test_case& c) { return stage.widest_row > 0 && c.cols > stage.widest_row; });
  return all;
}

bool case_run::counts_right() const {
  if (!simulated) return true;
  if (launches.size() != claims.size()) return false;
  std::int64_t read = 0, write = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const simt::launch_record& l = launches[i];
    read += static_cast<std::int64_t>(l.global_load.bytes);
    write += static_cast<std::int64_t>(l.global_store.bytes);
    const launch_claim& c = claims[i];
    const auto barriers = static_cast<std::int64_t>(l.barriers);
    if (c.most_threads > 0) {
      if (l.grid > ceiling(c.most_threads, l.block) || barriers > c.barriers) return false;
    } else if (l.grid != c.grid || static_cast<int>(l.block) != c.block || barriers != c.barriers) {
      return false;
    }
  }
  return read == model_reads && write == model_writes && !scattered() && !few_lanes();
}

holder case_run::held_by(std::int64_t row, std::int64_t col) const {
  if (holder_of && col < shape.cols) return holder_of(rules(), row, col);
  const std::int64_t trip = col / row_threads;
  return {col % row_threads, batch > 0 ? trip / batch : trip, batch > 0 ? static_cast<int>(trip % batch) : 0};
}

const simt::launch_record* case_run::scattered() const {
  if (leaves_gaps) return nullptr;
  // A run of neighbouring bytes begins and ends in a sector that it does not fill; a warp has a run a row.
  const std::uint64_t runs = std::max(1, warp / std::max(1, row_threads));
  for (const simt::launch_record& l : launches)
    for (const simt::traffic* t : {&l.global_load, &l.global_store})
      if (t->sectors > t->bytes / 32 + 2 * runs * t->requests) return &l;
  return nullptr;
}

const simt::launch_record* case_run::few_lanes() const {
  if (type != dtype::f32 || shape.cols < 256) return nullptr;
  const std::uint64_t matrix = 4 * shape.rows * shape.cols, lane_bytes = 4;
  for (const simt::launch_record& l : launches)
    for (const simt::traffic* t : {&l.global_load, &l.global_store})
      if (t->bytes >= matrix && t->bytes < lane_bytes * (warp / 4) * t->requests) return &l;
  return nullptr;
}

case_run run_case(backend& machine, const stage_info& stage, const exercise_info& exercise,
                  const test_case& c, int warp) {
  case_run r;
  r.shape = {c.rows, c.cols, c.ld_in > 0 ? c.ld_in : c.cols, c.ld_out > 0 ? c.ld_out : c.cols};
  r.type = c.type;
  r.distribution = c.distribution;
  r.warp = warp;
  r.simulated = machine.name() == "sim";
  r.x = make_input(c.distribution, seed, c.type, c.rows, c.cols, r.shape.ld_in);
  r.y = host_matrix(c.type, c.rows, c.cols, r.shape.ld_out);
  if (c.rows > 0 && c.cols > 0) {
    r.claims = exercise.launches(r.rules());
    r.row_threads = exercise.row_threads(r.rules());
    r.part_threads = exercise.part_threads ? exercise.part_threads(r.rules()) : r.row_threads;
    r.padded = exercise.padded(r.rules());
    r.leaves_gaps = exercise.leaves_gaps && exercise.leaves_gaps(r.rules());
    const stage_info fit = fitted(stage, r.shape, c.type, 0);
    r.model_reads = fit.read_bytes(r.shape, c.type);
    r.model_writes = fit.write_bytes(r.shape, c.type);
  }
  r.masked_in_sum = exercise.masked_in_sum;
  r.batch = exercise.batch;
  r.holder_of = exercise.holder_of;
  if (r.simulated) simt::configuration().warp_size = warp;
  stage_memory memory(machine, stage, r.x, r.shape);
  memory.poison();
  simt::clear_records();
  try {
    machine.run(memory.call());
  } catch (const simt::fault& f) {
    r.fault = f;
    return r;
  } catch (const simt::error& e) {
    r.refused = e.what();
    return r;
  }
  r.launches = simt::records();
  r.damage = memory.fetch(r.y, r.x);
  r.check = verify(r.x, r.y, errors_of(stage, r.shape));
  return r;
}

std::vector<case_run> run_cases(backend& machine, const stage_info& stage, const exercise_info& exercise,
                                const std::vector<int>& warps,
                                const std::function<void(const std::string&)>& before, bool all_types) {
  std::vector<case_run> all;
  for (int warp : warps)
    for (const test_case& c : hidden_cases(stage, exercise)) {
      if (!all_types && c.type != dtype::f32) continue;
      if (before)
        before(fmt::format("{}x{} {}  {}, warp {}", c.rows, c.cols, name_of(c.type),
                           machine.name() == "sim" ? "simulator" : "GPU", warp));
      all.push_back(run_case(machine, stage, exercise, c, warp));
    }
  return all;
}

std::string case_text(const case_run& r) {
  std::string text = fmt::format("{}x{} {}", r.shape.rows, r.shape.cols, name_of(r.type));
  if (r.shape.ld_in != r.shape.cols || r.shape.ld_out != r.shape.cols)
    text += fmt::format(", strides {} and {}", r.shape.ld_in, r.shape.ld_out);
  return text;
}

}  // namespace softmax::workbook
