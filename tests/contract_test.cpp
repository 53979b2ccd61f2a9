// What every stage promises, on every backend: compiled once for each stage, run once for each backend. The
// names in brackets are explained in tests/README.md.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include "catch.hpp"
#include "harness/backend.hpp"
#include "harness/launch_plan.hpp"
#include "harness/session.hpp"
#include "harness/stage_memory.hpp"
#include "numerics/input.hpp"
#include "numerics/reference.hpp"
#include "numerics/verify.hpp"
#include "simt/sim/control.hpp"
#include "test_backend.hpp"

using namespace softmax;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
const dtype all_types[] = {dtype::f32, dtype::f16, dtype::bf16};

/// Both warp widths on the simulator; the GPU's own elsewhere.
std::vector<int> warp_widths() {
  if (test_machine().name() != "sim") return {test_device().warp_size};
  if (test_device().cluster_blocks > 0) return {32};  // as the GPUs that have clusters
  return {32, 64};
}

void set_warp_width(int width) { simt::configuration().warp_size = width; }

struct outcome {
  host_matrix y;
  std::string damage;
  std::vector<simt::launch_record> launches;
};

/// The width, or the widest row of the stage if that is less.
std::int64_t fit(std::int64_t cols) {
  const std::int64_t widest = this_stage().widest_row;
  return widest > 0 ? std::min(cols, widest) : cols;
}

/// Runs the stage on x, with guards and poison around the output.
outcome run(const host_matrix& x, std::int64_t ld_out = -1, std::int64_t offset = 0) {
  const matrix_shape s{x.rows, x.cols, x.ld, ld_out < 0 ? x.cols : ld_out};
  outcome o{host_matrix(x.type, s.rows, s.cols, s.ld_out), "", {}};
  stage_memory memory(test_machine(), this_stage(), x, s, offset);
  memory.poison();
  simt::clear_records();
  test_machine().run(memory.call());
  o.damage = memory.fetch(o.y, x);
  o.launches = simt::records();
  return o;
}

host_matrix matrix(dtype t, const std::vector<std::vector<double>>& rows) {
  host_matrix m(t, static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows[0].size()),
                static_cast<std::int64_t>(rows[0].size()));
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) m.set(i, j, rows[i][j]);
  return m;
}

/// Runs the stage and compares each element with the reference.
outcome check(const host_matrix& x, std::int64_t ld_out = -1, std::int64_t offset = 0) {
  outcome o = run(x, ld_out, offset);
  const matrix_shape s{x.rows, x.cols, x.ld, o.y.ld};
  const verdict v = verify(x, o.y, errors_of(this_stage(), s));
  INFO(shape_text(s, x.type) << ", first or worst: row " << v.worst.row << " col " << v.worst.col << " got "
                             << v.worst.got << " want " << v.worst.want << " ulp " << v.worst.ulp << " limit "
                             << v.worst.limit << " " << to_string(v.worst.why));
  CHECK(v.pass);
  CHECK(v.elements == x.rows * x.cols);
  CHECK(o.damage == "");
  if (test_machine().name() == "sim")
    CHECK(hold_against_model(o.launches, fitted(this_stage(), s, x.type, test_device().cluster_blocks), s,
                             x.type)
              .mismatch == "");
  return o;
}

void check_distribution(const std::string& dist, dtype t, std::int64_t rows, std::int64_t cols) {
  check(make_input(dist, 7, t, rows, cols, cols));
}

/// As the stages cap their grids; stage 06 loses time where a block works on one row after another.
std::int64_t most_blocks() { return this_stage().number == "06" ? 1 << 21 : 1 << 15; }
constexpr std::int64_t most_parts = 256;  // of a row, where a stage splits it

/// May several blocks share a row?
bool splits_rows() { return this_stage().number == "07"; }

/// Does the stage put a row on a cluster of blocks here? Rows are not looped over then: more than a grid has
/// clusters take more launches.
bool in_clusters() { return this_stage().uses_clusters && test_device().cluster_blocks > 0; }

/// While it lives, the simulator looks at launches and runs none of them. No stage asks for dynamic shared
/// memory, whatever a device has, so it gets none; but clusters do, and have what an H200 has.
class launches_alone {
 public:
  launches_alone() : saved_(simt::configuration()) {
    simt::configuration().execute = false;
    simt::configuration().shared_bytes = in_clusters() ? 227 * 1024 : 0;
  }
  ~launches_alone() { simt::configuration() = saved_; }
  launches_alone(const launches_alone&) = delete;
  std::vector<simt::launch_record> of(std::int64_t rows, std::int64_t cols, const launch_plan& plan = {}) {
    simt::clear_records();
    static float workspace;  // somewhere: nothing runs
    test_machine().run({.workspace = &workspace, .shape = {rows, cols, cols, cols}, .plan = plan});
    return simt::records();
  }

 private:
  simt::settings saved_;
};

/// Threads that share a row and columns that each of them holds, from a kernel's template arguments:
/// <warp, items>, <warp, rows, items>, <warp, row threads, items>, or of stage 06.
std::pair<int, int> share_of(const simt::launch_record& launch) {
  std::vector<int> numbers;
  const std::regex number("[0-9]+");
  for (auto it = std::sregex_iterator(launch.instance.begin(), launch.instance.end(), number);
       it != std::sregex_iterator(); ++it)
    numbers.push_back(std::stoi(it->str()));
  const auto block = static_cast<int>(launch.block);
  if (numbers.size() == 2) return {block, numbers[1]};
  if (numbers.size() == 4) return {numbers[1] ? numbers[1] : block, 4 * numbers[2]};
  if (numbers.size() != 3) return {0, 0};
  return {this_stage().tunable ? numbers[1] : block / numbers[1], numbers[2]};
}

/// Runs the stage where input and output start that many elements off a boundary, each its own.
void check_apart(const host_matrix& x, std::int64_t in_offset, std::int64_t out_offset) {
  constexpr std::int64_t behind = 5;
  const auto element = static_cast<std::int64_t>(size_of(x.type));
  const matrix_shape s{x.rows, x.cols, x.ld, x.cols};
  backend& machine = test_machine();
  const auto y_elements = static_cast<std::size_t>(out_offset + x.rows * x.cols + behind);
  device_buffer in(machine, x.data.size() + static_cast<std::size_t>(in_offset * element), "x");
  device_buffer out(machine, y_elements * size_of(x.type), "y");
  device_buffer workspace(machine, static_cast<std::size_t>(workspace_bytes(this_stage(), s)), "workspace");
  machine.upload(static_cast<std::byte*>(in.get()) + in_offset * element, x.data.data(), x.data.size());
  machine.poison(out.get(), out.bytes());
  machine.run({.type = x.type,
               .x = static_cast<std::byte*>(in.get()) + in_offset * element,
               .y = static_cast<std::byte*>(out.get()) + out_offset * element,
               .workspace = static_cast<float*>(workspace.get()),
               .shape = s});
  std::vector<std::byte> all(out.bytes());
  machine.download(all.data(), out.get(), all.size());
  host_matrix y(x.type, x.rows, x.cols, x.cols);
  std::copy_n(all.begin() + out_offset * element, y.data.size(), y.data.begin());
  const verdict v = verify(x, y, errors_of(this_stage(), s));
  INFO(shape_text(s, x.type) << " input at +" << in_offset << ", output at +" << out_offset << ": row "
                             << v.worst.row << " col " << v.worst.col << " " << to_string(v.worst.why));
  CHECK(v.pass);
  const auto untouched = [](std::byte b) { return b == std::byte{0xff}; };
  CHECK(std::all_of(all.begin(), all.begin() + out_offset * element, untouched));
  CHECK(std::all_of(all.end() - behind * element, all.end(), untouched));
}

bool row_is_nan(const host_matrix& y, std::int64_t row) {
  for (std::int64_t col = 0; col < y.cols; ++col)
    if (!std::isnan(y.at(row, col))) return false;
  return true;
}

}  // namespace

TEST_CASE("bytes requested are those of the model, at every shape and width", "[ledger]") {
  if (test_machine().name() != "sim") return;  // a GPU does not say; bench/counters.py asks its counters
  set_warp_width(GENERATE(32, 64));
  const dtype t = GENERATE(dtype::f32, dtype::f16, dtype::bf16);
  const std::pair<std::int64_t, std::int64_t> shapes[] = {{1, 1}, {3, 5}, {7, 33}, {64, 781}, {5, 4097}};
  for (const auto& [m, n] : shapes) check_distribution("normal", t, m, n);
}

TEST_CASE("each row is asked for once, ahead of its load", "[ledger]") {
  const bool clusters = test_device().cluster_blocks > 0;
  if (test_machine().name() != "sim" || (this_stage().number != "06" && !clusters)) return;
  struct shape {
    dtype type;
    std::int64_t rows, cols;  // more bytes than lie between asking and loading
  };
  std::vector<shape> shapes{{dtype::f32, 400, 4096}, {dtype::f32, 400, 4097}};
  if (!clusters) shapes.insert(shapes.end(), {{dtype::f32, 2101, 512}, {dtype::bf16, 64001, 33}});
  for (const auto& [type, rows, cols] : shapes) {
    const outcome o = check(make_input("normal", 7, type, rows, cols, cols));
    std::int64_t asked = 0;
    for (const simt::launch_record& launch : o.launches)
      asked += static_cast<std::int64_t>(launch.prefetched_bytes);
    INFO(rows << "x" << cols << " " << name_of(type));
    CHECK(asked == matrix_bytes(rows, cols, type));
  }
}

TEST_CASE("a model that is off by one M is found out, kernel by kernel", "[ledger]") {
  if (test_machine().name() != "sim") return;
  const host_matrix x = make_input("normal", 1, dtype::f32, 7, 33, 33);
  const outcome o = run(x);
  const matrix_shape s{7, 33, 33, 33};
  const stage_info stage = fitted(this_stage(), s, dtype::f32, test_device().cluster_blocks);
  CHECK(hold_against_model(o.launches, stage, s, dtype::f32).mismatch == "");
  for (std::size_t k = 0; k < stage.launches.size(); ++k)
    for (element_count kernel_model::*field : {&kernel_model::reads_storage, &kernel_model::reads_f32,
                                               &kernel_model::writes_storage, &kernel_model::writes_f32})
      for (std::int64_t change : {-1, 1}) {
        stage_info wrong = stage;
        (wrong.launches[k].*field).m += change;
        const std::string mismatch = hold_against_model(o.launches, wrong, s, dtype::f32).mismatch;
        CHECK(mismatch.find(wrong.launches[k].kernel) != std::string::npos);
      }
  stage_info renamed = stage;
  renamed.launches[0].kernel = "another";
  CHECK(hold_against_model(o.launches, renamed, s, dtype::f32).mismatch != "");
  stage_info shorter = stage;
  shorter.launches.pop_back();
  CHECK(hold_against_model(o.launches, shorter, s, dtype::f32).mismatch != "");
}

TEST_CASE("one column gives exactly one [T05]", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t m : {1, 7, 300})
        for (std::size_t first = 0; first < (m == 1 ? 4 : 1); ++first) {
          const double values_of_rows[] = {-100.0, 0.0, 5.0, 88.0};
          host_matrix x(t, m, 1, 1);
          for (std::int64_t i = 0; i < m; ++i)
            x.set(i, 0, values_of_rows[(first + static_cast<std::size_t>(i)) % 4]);
          const outcome o = check(x);
          std::set<double> values;
          for (std::int64_t i = 0; i < m; ++i) values.insert(o.y.at(i, 0));
          CHECK(values == std::set<double>{1.0});
        }
  }
}

TEST_CASE("many rows of one column [T05]", "[contract]") {
  const bool gpu = test_machine().name() != "sim";
  set_warp_width(warp_widths().back());
  // More rows than the grid has blocks: some blocks take two. In clusters none does.
  const std::int64_t m = gpu ? 3000000 : in_clusters() ? 1007 : most_blocks() + 7;
  const outcome o = check(make_input("normal", 3, dtype::f32, m, 1, 1));
  for (const simt::launch_record& launch : o.launches)
    CHECK(launch.grid <= (in_clusters() ? m * most_parts : most_blocks()));
}

TEST_CASE("an empty matrix succeeds and touches nothing [T06 T07]", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (const auto& [m, n, ld] : {std::tuple{0, 128, 128}, {10, 0, 0}, {16, 0, 4}, {0, 0, 0}}) {
        const host_matrix x(t, m, n, ld);
        const outcome o = run(x, ld);
        CHECK(o.damage == "");
        CHECK(o.launches.empty());
        for (std::byte b : o.y.data) CHECK(b == std::byte{0xff});
        // Null pointers are fine where there is nothing to point at.
        test_machine().run(
            {.type = t, .x = nullptr, .y = nullptr, .workspace = nullptr, .shape = {m, n, ld, ld}});
      }
  }
}

TEST_CASE("large logits do not overflow [T18]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) check(matrix(t, {{90, 2, -2}, {800, 1, 1}, {60000, 0, -60000}}));
    host_matrix steep(dtype::f32, 1, 1000, 1000);
    for (int j = 0; j < 1000; ++j) steep.set(0, j, 1e4 * j);
    const outcome o = check(steep);
    CHECK(o.y.at(0, 999) == 1.0);
    CHECK(o.y.at(0, 998) == 0.0);
    check(matrix(dtype::f32, {{3e38, -3e38, 0}}));
  }
}

TEST_CASE("rows of negative numbers alone [T19 T20]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    const outcome o = check(matrix(dtype::f32, {{-10000, -10000}}));
    CHECK(o.y.at(0, 0) == 0.5);
    CHECK(o.y.at(0, 1) == 0.5);
    for (dtype t : all_types) {
      for (std::int64_t n : {2, 3, 5, 6, 7, 30, 33, 50, 385, 1000, 1025})
        check_distribution("negative", t, 3, n);
      check_distribution("const:-200", t, 2, 33);
      check_distribution("const:-5", t, 2, 385);
    }
    host_matrix falling(dtype::f32, 1, 1025, 1025);
    for (int j = 0; j < 1025; ++j) falling.set(0, j, -1000 - j);
    check(falling);
  }
}

TEST_CASE("a row known to six digits [T21]", "[contract][numerics]") {
  const double x[] = {9.34623, 8.43469, 7.19462, 6.59385, 5.89481, 5.67304};
  const double want[] = {0.610101, 0.245202, 0.070953, 0.038910, 0.019341, 0.015494};
  for (int width : warp_widths()) {
    set_warp_width(width);
    const outcome o = check(matrix(dtype::f32, {{x[0], x[1], x[2], x[3], x[4], x[5]}}));
    for (int j = 0; j < 6; ++j) CHECK(std::abs(o.y.at(0, j) - want[j]) < 1e-6);
  }
}

TEST_CASE("a row wholly -inf is NaN and its neighbours are not [T22]", "[contract][special]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t n : {1L, 8L, 1000L, fit(40000)}) {
        host_matrix x = make_input("normal", 5, t, 3, n, n);
        for (std::int64_t j = 0; j < n; ++j) x.set(1, j, -infinity);
        const outcome o = check(x);
        CHECK(row_is_nan(o.y, 1));
        CHECK_FALSE(std::isnan(o.y.at(0, 0)));
        CHECK_FALSE(std::isnan(o.y.at(2, n - 1)));
      }
  }
}

TEST_CASE("-inf in part of a row is exactly zero there [T23]", "[contract][special]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (std::int64_t at : {0, 1500, 4095}) {
      host_matrix x(dtype::f32, 1, 4096, 4096);
      for (std::int64_t j = 0; j < 4096; ++j) x.set(0, j, j == at ? 3 : -infinity);
      const outcome o = check(x);
      for (std::int64_t j = 0; j < 4096; ++j)
        if (o.y.at(0, j) != (j == at ? 1.0 : 0.0)) FAIL("column " << j << " is " << o.y.at(0, j));
    }
    host_matrix tile(dtype::f32, 1, 4096, 4096);  // only a tile in the middle is finite
    for (std::int64_t j = 0; j < 4096; ++j)
      tile.set(0, j, j >= 2048 && j < 2304 ? 0.01 * static_cast<double>(j) : -infinity);
    check(tile);
    const std::int64_t wide = fit(100000);
    host_matrix sparse(dtype::f32, 1, wide, wide);
    for (std::int64_t j = 0; j < wide; ++j)
      sparse.set(0, j, j % 2000 == 777 ? 0.001 * static_cast<double>(j) : -infinity);
    check(sparse);
    for (dtype t : all_types) check_distribution("masked", t, 9, 1000);
  }
}

TEST_CASE("+inf makes its row NaN, and no other [T24]", "[contract][special]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) {
      const outcome o = check(matrix(
          t, {{1, 2, 3}, {infinity, 1, 2}, {0, infinity, infinity}, {-infinity, 0, infinity}, {1, 2, 3}}));
      CHECK_FALSE(std::isnan(o.y.at(0, 0)));
      for (int row : {1, 2, 3}) CHECK(row_is_nan(o.y, row));
      CHECK_FALSE(std::isnan(o.y.at(4, 0)));
    }
  }
}

TEST_CASE("a NaN makes its row NaN, wherever it stands [T25 T26]", "[contract][special]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t at : {0, 31, 32, 999}) {
        host_matrix x = make_input("normal", 5, t, 3, 1000, 1000);
        x.set(1, at, nan_value);
        const outcome o = check(x);
        CHECK(row_is_nan(o.y, 1));
        CHECK_FALSE(row_is_nan(o.y, 0));
        CHECK_FALSE(row_is_nan(o.y, 2));
      }
    for (std::int64_t n : {4L, 1024L, fit(40000)}) {  // hidden among -inf: max() alone would lose it
      host_matrix x(dtype::f32, 1, n, n);
      for (std::int64_t j = 0; j < n; ++j) x.set(0, j, j == 1 ? nan_value : -infinity);
      CHECK(row_is_nan(check(x).y, 0));
    }
    check_distribution("special", dtype::f32, 20, 70);
  }
}

TEST_CASE("results too small for a float fade to zero [T27]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    const outcome o = check(matrix(dtype::f32, {{0, -87.5, -100, -104, -1000}}));
    CHECK(o.y.at(0, 0) == 1.0);
    for (int j = 1; j < 5; ++j) {
      CHECK(o.y.at(0, j) >= 0.0);
      CHECK(o.y.at(0, j) < 1.2e-38);
    }
  }
}

TEST_CASE("constant rows are 1/N, with the same bits each time [T28]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (std::int64_t n : {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 4096}) {
      const host_matrix x = make_input("const:0", 1, dtype::f32, 2, n, n);
      const outcome first = check(x);
      for (std::int64_t j = 0; j < n; ++j)
        if (first.y.at(0, j) != static_cast<float>(1.0 / static_cast<double>(n)))
          FAIL("N " << n << " column " << j);
      for (int again = 0; again < 19; ++again)
        if (run(x).y.data != first.y.data) FAIL("other bits in repetition " << again);
    }
  }
}

TEST_CASE("sums are accumulated in fp32 whatever is stored [T29]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    const std::tuple<dtype, std::int64_t, int> exact[] = {
        {dtype::f16, 4096, -12}, {dtype::f16, 8192, -13}, {dtype::bf16, 512, -9}, {dtype::bf16, 4096, -12}};
    for (const auto& [t, n, exponent] : exact) {
      const outcome o = check(make_input("const:0", 1, t, 1, n, n));
      for (std::int64_t j = 0; j < n; ++j)
        if (o.y.at(0, j) != std::ldexp(1.0, exponent)) FAIL(name_of(t) << " N " << n << " column " << j);
    }
    for (dtype t : {dtype::f16, dtype::bf16}) {
      const outcome o = check(make_input("normal", 11, t, 2, 4096, 4096));
      double sum = 0;
      for (std::int64_t j = 0; j < 4096; ++j) sum += o.y.at(0, j);
      CHECK(std::abs(sum - 1) < 0.005);
    }
  }
}

TEST_CASE("right 16-bit outputs pass though their rows do not sum to one [T31]", "[contract][numerics]") {
  set_warp_width(warp_widths().front());
  check_distribution("const:0", dtype::bf16, 2, 3);
  check_distribution("const:0", dtype::bf16, 2, 7);
  check_distribution("const:0", dtype::f16, 1, fit(100000));
  if (test_machine().name() != "sim") check_distribution("const:0", dtype::f16, 1, fit(3000000));
}

TEST_CASE("fp32 results are within the bound at ordinary arguments [T33]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    host_matrix x = make_input("normal", 13, dtype::f32, 4, 4096, 4096);
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.cols; ++j) x.set(i, j, 3 * x.at(i, j));
    const outcome o = check(x);
    // exp(x - max) of arguments above -20 errs by at most 2e-6, sum and division included.
    std::vector<double> in(4096), want(4096);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t j = 0; j < x.cols; ++j) in[j] = x.at(i, j);
      const row_facts facts = reference_row(in, want);
      for (std::int64_t j = 0; j < x.cols; ++j)
        if (facts.maximum - in[j] < 20 && !(std::abs(o.y.at(i, j) - want[j]) <= 2e-6 * want[j]))
          FAIL("row " << i << " column " << j << " got " << o.y.at(i, j) << " want " << want[j]);
    }
  }
}

TEST_CASE("the same row gives the same bits, alone or among others, run after run [T34]",
          "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    const std::int64_t n = fit(40960);
    const std::int64_t many = test_machine().name() == "sim" ? 40 : 2048;
    const host_matrix few = make_input("normal", 17, dtype::f32, 10, n, n);
    const host_matrix more = make_input("normal", 17, dtype::f32, many, n, n);
    const outcome a = check(few);
    const outcome b = run(more);
    const std::size_t bytes = a.y.data.size();
    if (!this_stage().bits_depend_on_rows)
      CHECK(std::equal(a.y.data.begin(), a.y.data.end(), b.y.data.begin()));
    CHECK(b.y.data.size() > bytes);
    for (int again = 0; again < (test_machine().name() == "sim" ? 2 : 20); ++again)
      CHECK(run(few).y.data == a.y.data);
  }
}

TEST_CASE("row strides: padding neither counts nor changes [T35]", "[contract][layout]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) {
      check(make_input("normal", 19, t, 4, 2, 4), 2);
      check(make_input("normal", 19, t, 4, 2, 4), 7);
      check(make_input("normal", 19, t, 8, 781, 800), 784);
      check(make_input("normal", 19, t, 5, 33, 33), 64);
    }
    const host_matrix x = make_input("normal", 19, dtype::f32, 8, fit(50257), fit(50257) + 47);
    const outcome o = check(x, fit(50257) + 47);
    double sum = 0;
    for (std::int64_t i = 0; i < 8; ++i)
      for (std::int64_t j = 0; j < x.cols; ++j) sum += o.y.at(i, j);
    CHECK(std::abs(sum - 8) < 1e-4);
  }
}

TEST_CASE("overlapping rows and negative sizes are refused before anything is written [T37]",
          "[contract][layout]") {
  for (const matrix_shape& bad : {matrix_shape{4, 8, 0, 8},
                                  {4, 8, 7, 8},
                                  {4, 8, -8, 8},
                                  {4, 8, 8, 0},
                                  {4, 8, 8, 7},
                                  {-1, 8, 8, 8},
                                  {4, -8, 8, 8}}) {
    const host_matrix x = make_input("normal", 1, dtype::f32, 4, 8, 8);
    stage_memory memory(test_machine(), this_stage(), x, {4, 8, 8, 8});
    memory.poison();
    stage_call call = memory.call();
    call.shape = bad;
    CHECK_THROWS_AS(test_machine().run(call), simt::error);
    host_matrix y(dtype::f32, 4, 8, 8);
    CHECK(memory.fetch(y, x) == "");
    for (std::byte b : y.data) CHECK(b == std::byte{0xff});
  }
}

TEST_CASE("matrices may start at any element [T38 T39]", "[contract][layout]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t offset : {1, 2, 3})
        for (std::int64_t n : {10, 81, 385}) check(make_input("normal", 23, t, 9, n, n + offset), n, offset);
  }
}

TEST_CASE("input and output are aligned each in its own way [T38 T39]", "[contract][layout]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) {
      for (std::int64_t in : {0, 1, 2, 3})
        for (std::int64_t out : {0, 1, 2, 3})
          for (std::int64_t n : {10, 81, 82})
            if (in != out) check_apart(make_input("normal", 23, t, 9, n, n), in, out);
      check_apart(make_input("normal", 23, t, 9, 385, 385), 1, 0);
      check_apart(make_input("normal", 23, t, 2, fit(30443), fit(30443)), 1, 2);
      // A view that starts two rows down and one column to the right.
      const std::int64_t n = fit(30064), ld = n + 1;
      check_apart(make_input("normal", 23, t, 2, n, ld), 2 * ld + 1, 0);
    }
  }
}

TEST_CASE("narrow rows side by side, of every width and in 16 bits, special ones among others",
          "[contract][special][layout][ledger]") {
  // A block of stage 06 may take 128 rows; of others, eight.
  const bool few = test_machine().name() == "sim" && this_stage().number != "06";
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : {dtype::f16, dtype::bf16}) {
      if (few && t == dtype::f16) continue;  // their kernels do not tell 16-bit types apart
      // Other stages have one kernel for all these widths: few of them tell as much.
      for (std::int64_t n = 1; n <= 300; n += few && n >= 17 ? 13 : n < 140 ? 1 : 3) {
        const std::int64_t rows = few ? 11 : n <= 33 ? 141 : 75;  // what a block may take, and part of that
        check(make_input(n % 2 ? "special" : "mixed", 61, t, rows, n, n));
        for (std::int64_t offset : {1, 2, 7})
          if (n < 10 || n % 16 == 2 || n % 16 == 9)
            check(make_input("special", 61, t, rows, n, n), n, offset);
      }
      for (std::int64_t n : {1, 2, 3, 17, 33, 66, 100, 127})
        for (std::int64_t rows : {1, 2, 7, 8, 127, 128, 129, 256})
          if (!few || rows <= 8 || n == 33) check(make_input("normal", 67, t, rows, n, n));
      // Ordinary rows around one that is all -inf, and one with a NaN among -inf, at its ends and inside.
      for (std::int64_t n : {1, 2, 3, 33, 50, 101})
        for (std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
          host_matrix x = make_input("normal", 71, t, 9, n, n);
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t row : {2, 5}) x.set(row, j, row == 5 && j == at ? nan_value : -infinity);
          x.set(7, at, infinity);
          const outcome o = check(x);
          for (std::int64_t row = 0; row < 9; ++row)
            CHECK(row_is_nan(o.y, row) == (row == 2 || row == 5 || row == 7));
        }
    }
    // A multiple of log2(e) is not exact where values are this large, or overflows; neighbours differ by
    // much.
    for (double size : {3e38, 1.7e38, 1e30, 4e9, 1049088.0, 1048576.0, 1044480.0, 520192.0, 1000.0})
      for (double sign : {1.0, -1.0})
        check(matrix(dtype::bf16,
                     {{sign * size, sign * size, 0}, {sign * size, sign * 0.99 * size, 1}, {0, 1, 2}}));
    for (double size : {65504.0, 60000.0, 2049.0})
      for (double sign : {1.0, -1.0})
        check(matrix(dtype::f16,
                     {{sign * size, sign * size, 0}, {sign * size, sign * 0.9995 * size, 1}, {0, 1, 2}}));
  }
}

TEST_CASE("matrices that overlap in part are refused [T40]", "[contract][layout]") {
  constexpr std::int64_t rows = 4, cols = 33;
  const host_matrix x = make_input("normal", 31, dtype::f32, 3 * rows, cols, cols);
  stage_memory memory(test_machine(), this_stage(), x, {3 * rows, cols, cols, cols});
  memory.poison();
  stage_call call = memory.call();
  call.shape = {rows, cols, cols, cols};
  auto* const base = static_cast<float*>(const_cast<void*>(call.x));
  const auto refused = [&](std::int64_t in, std::int64_t out, std::int64_t ld_out) {
    call.x = base + in;
    call.y = base + out;
    call.shape.ld_out = ld_out;
    CHECK_THROWS_WITH(test_machine().run(call), Catch::Matchers::Contains("overlaps the input"));
  };
  refused(0, cols, cols);  // a row further on
  refused(cols, 0, cols);  // a row further back
  refused(0, 1, cols);
  refused(0, rows * cols - 1, cols);
  refused(rows * cols - 1, 0, cols);
  refused(0, 0, cols + 1);  // the same address, another stride
  host_matrix y(dtype::f32, 3 * rows, cols, cols);
  CHECK(memory.fetch(y, x) == "");  // that is, the input is as it was
  call.x = base;
  call.y = base + rows * cols;  // the first row behind it
  call.shape.ld_out = cols;
  test_machine().run(call);
}

TEST_CASE("in place gives the same bits [T40]", "[contract][layout]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t n : {33L, 1024L, fit(40000)}) {
        const host_matrix x = make_input("normal", 31, t, 3, n, n);
        const outcome apart = check(x);
        stage_memory memory(test_machine(), this_stage(), x, {3, n, n, n});
        memory.poison();
        stage_call call = memory.call();
        call.y = const_cast<void*>(call.x);
        test_machine().run(call);
        host_matrix y(t, 3, n, n);
        test_machine().download(y.data.data(), call.y, y.data.size());
        if (y.data != apart.y.data) FAIL(name_of(t) << " N " << n);
      }
  }
}

TEST_CASE("narrow rows whose number is no multiple of anything [T13 T44 T45 T49 T52]", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) {
      for (std::int64_t m : {1, 3, 5, 7, 13})
        for (std::int64_t n : {4, 20, 31, 40, 100}) check_distribution("normal", t, m, n);
      for (std::int64_t n : {8, 32, 48}) check_distribution("row_ramp", t, 37, n);  // rows that share a warp
      for (std::int64_t n : {7, 24, 50, 100, 127}) check_distribution("logits", t, 9, n);
      for (std::int64_t n : {1, 2, 3, 17, 31, 32, 33})
        for (double base : {-100.0, 90.0}) {
          host_matrix x = make_input("normal", 37, t, 6, n, n);
          for (std::int64_t i = 0; i < x.rows; ++i)
            for (std::int64_t j = 0; j < n; ++j) x.set(i, j, base + std::abs(x.at(i, j)));
          check(x);
        }
    }
  }
}

TEST_CASE("widths around warps, blocks and powers of two", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    // One, a warp and its neighbours, a block and its neighbours, a prime, and rows that take several steps.
    for (std::int64_t n :
         {1, 2, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 781, 1023, 1024, 1025, 8192})
      for (std::int64_t m : {1, 5}) check_distribution("normal", dtype::f32, m, n);
    for (const char* dist :
         {"ramp_up", "ramp_down", "spike:first", "spike:middle", "spike:last", "logits", "large", "row_ramp"})
      check_distribution(dist, dtype::f32, 3, 1000);
  }
}

TEST_CASE("the maximum moves on, from lane to lane, warp to warp and step to step [T48]",
          "[contract][numerics]") {
  constexpr std::int64_t cols = 9001;  // several steps of every stage
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (const char* dist : {"ramp_up", "ramp_down", "spike:first", "spike:middle", "spike:last"})
      check_distribution(dist, dtype::f32, 2, cols);
    host_matrix x = make_input("normal", 41, dtype::f32, 12, cols, cols);
    std::int64_t row = 0;
    for (std::int64_t at : {1, 31, 32, 255, 256, 511, 512, 2047, 2048, 4095, 4096, 8192})
      x.set(row++, at, 50);
    const outcome o = check(x);
    CHECK(o.y.at(0, 1) == 1.0);
    CHECK(o.y.at(11, 8192) == 1.0);
    // Stairs: each step is one up, so that the maximum grows in the middle of a thread's columns.
    host_matrix stairs(dtype::f32, 2, cols, cols);
    for (std::int64_t j = 0; j < cols; ++j) {
      stairs.set(0, j, static_cast<double>(j / 300));
      stairs.set(1, j, static_cast<double>((j * 7919) % cols) * 0.01);
    }
    check(stairs);
  }
}

TEST_CASE("rows sum to one at 32 and at 64 lanes [T50]", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (std::int64_t n : {1000L, 2048L, 8192L, fit(32768)}) {
      const outcome o = check(make_input("normal", 43, dtype::f32, 2, n, n));
      for (std::int64_t row : {0, 1}) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += o.y.at(row, j);
        CHECK(std::abs(sum - 1) < 1e-5);
      }
    }
  }
}

TEST_CASE("rows lie where 64-bit arithmetic puts them [T01 T02]", "[contract][layout]") {
  // Three short rows, so far apart that the second starts past element 2^31 and the third past 2^32. What
  // lies between is reserved and, on the simulator, never touched.
  constexpr std::int64_t cols = 40, ld_in = (std::int64_t{1} << 31) + 24, ld_out = ld_in + 40;
  const auto bytes = [](std::int64_t rows, std::int64_t ld) {
    return static_cast<std::size_t>((rows - 1) * ld + cols) * 2;
  };
  backend& machine = test_machine();
  std::int64_t rows = 3;
  const auto fits = [&] {
    const std::size_t x = bytes(rows, ld_in), y = bytes(rows, ld_out);
    return (machine.name() == "sim" ? y : x + y) + (1 << 20) < machine.free_memory();
  };
  while (rows > 1 && !fits()) --rows;
  if (rows < 3)
    WARN("SKIP: " << (rows == 2 ? "past 2^32" : "past 2^31") << ", since too little memory is free");
  if (rows == 1) return;
  const host_matrix x = make_input("normal", 47, dtype::f16, rows, cols, cols);
  const std::size_t row_bytes = cols * 2;
  device_buffer in(machine, bytes(rows, ld_in), "x"), out(machine, bytes(rows, ld_out), "y");
  const matrix_shape s{rows, cols, ld_in, ld_out};
  device_buffer workspace(machine, static_cast<std::size_t>(workspace_bytes(this_stage(), s)), "workspace");
  for (std::int64_t row = 0; row < rows; ++row) {
    machine.upload(static_cast<std::byte*>(in.get()) + row * ld_in * 2, x.data.data() + row * cols * 2,
                   row_bytes);
    machine.poison(static_cast<std::byte*>(out.get()) + row * ld_out * 2, row_bytes);
  }
  for (int width : warp_widths()) {
    set_warp_width(width);
    machine.run({.type = dtype::f16,
                 .x = in.get(),
                 .y = out.get(),
                 .workspace = static_cast<float*>(workspace.get()),
                 .shape = s});
    host_matrix y(dtype::f16, rows, cols, cols);
    for (std::int64_t row = 0; row < rows; ++row) {
      auto* const there = static_cast<std::byte*>(out.get()) + row * ld_out * 2;
      machine.download(y.data.data() + row * cols * 2, there, row_bytes);
      machine.poison(there, row_bytes);
    }
    const verdict v = verify(x, y, errors_of(this_stage(), s));
    INFO("row " << v.worst.row << " col " << v.worst.col << " " << to_string(v.worst.why));
    CHECK(v.pass);
  }
}

TEST_CASE("every launch is one that each GPU takes, however many rows there are [T08 T09 T15 T53 T54]",
          "[contract][launch]") {
  if (test_machine().name() != "sim") return;  // the next test but one runs them
  // A launch on an AMD GPU has fewer than 2^32 threads.
  REQUIRE(most_blocks() * 1024 < (std::int64_t{1} << 32));
  for (int width : warp_widths()) {
    set_warp_width(width);
    launches_alone look;
    for (std::int64_t m : {1L, 2L, 13L, 65535L, 65536L, 90000L, 98304L, 1048577L, 20000000L, 67108864L,
                           1100000000L, 2200000000L, 1L << 40})
      for (std::int64_t n : {1L, 2L, 500L, 1024L, 2049L, fit(20000), fit(200000), fit(300000)}) {
        const std::vector<simt::launch_record> launches = look.of(m, n);
        const stage_info fit = fitted(this_stage(), {m, n, n, n}, dtype::f32, test_device().cluster_blocks);
        std::int64_t blocks = 0;
        for (const simt::launch_record& launch : launches) {
          INFO(m << "x" << n << " " << launch.instance << " grid " << launch.grid << " block "
                 << launch.block);
          CHECK(launch.grid >= 1);
          CHECK(launch.block % static_cast<unsigned>(width) == 0);
          blocks += launch.grid;
          if (launch.kernel == "softmax_cluster") continue;
          if (launch.kernel == "softmax_ring") {  // as many blocks as an H200 holds
            CHECK(launch.grid <= 128);
            CHECK(launch.shared_bytes > 0);
            continue;
          }
          CHECK(launch.grid <= std::min(splits_rows() ? m * most_parts : m, most_blocks()));
          CHECK(launch.shared_bytes == 0);
        }
        if (launches.at(0).kernel == "softmax_cluster") {
          constexpr std::int64_t most = 0x7fffffff;
          INFO(m << "x" << n << " " << launches.size() << " launches of " << blocks << " blocks");
          CHECK(blocks % m == 0);
          CHECK(static_cast<std::int64_t>(launches.size()) <= 1 + blocks / (most - blocks / m));
        } else {
          CHECK(launches.size() == fit.launches.size());
        }
      }
  }
}

TEST_CASE("every width has a kernel that holds it, and every kernel its widths [T11 T12]",
          "[contract][launch]") {
  if (test_machine().name() != "sim") return;
  const std::int64_t widest = this_stage().widest_row;
  for (int width : warp_widths()) {
    set_warp_width(width);
    launches_alone look;
    std::set<std::string> entered;
    std::set<std::pair<int, int>> shares;
    for (std::int64_t n = 1; n <= (widest > 0 ? widest : 131072); n += widest > 0 || n < 4096 ? 1 : 255) {
      for (const simt::launch_record& launch : look.of(5, n)) {
        entered.insert(launch.instance);
        if (widest == 0) continue;
        const auto [row_threads, items] = share_of(launch);
        shares.insert({row_threads, items});
        const bool vectors = this_stage().number == "06";  // which keeps apart what does not fill one
        if (items * row_threads < (vectors ? n / 4 * 4 : n) ||
            (!vectors && items > 1 && items / 2 * row_threads >= n))
          FAIL(launch.instance << " for " << n << " columns");
        if (!this_stage().tunable) continue;
        const launch_plan rule = test_machine().rule(n);
        for (const plan_share& p : possible_plans(n, width))
          if (p.plan.warps == rule.warps && p.plan.rows == rule.rows &&
              (p.why_not != "" || p.row_threads != row_threads || p.items != items))
            FAIL("the rule for " << n << " columns: " << plan_text(rule) << " " << p.why_not);
      }
    }
    std::set<std::string> named;
    for (const std::string& instance : entered) named.insert(instance.substr(0, instance.find('<')));
    for (const kernel_model& k :
         fitted(this_stage(), {5, 1, 1, 1}, dtype::f32, test_device().cluster_blocks).launches)
      CHECK(named.count(k.kernel) == 1);
    std::set<std::pair<int, int>> expected;
    if (this_stage().number == "02")
      for (int items = 1; items <= 64; items *= 2) expected.insert({256, items});
    if (this_stage().number == "03")
      expected = {{32, 1},  {32, 2},   {32, 4},   {32, 8},   {32, 16},
                  {64, 16}, {128, 16}, {256, 16}, {256, 32}, {256, 64}};
    if (!expected.empty()) CHECK(shares == expected);
  }
}

TEST_CASE("each plan that is accepted is right, and the others are refused by name [T46]",
          "[contract][launch]") {
  if (!this_stage().tunable) return;
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (std::int64_t n : {100, 768, 1000}) {
      const host_matrix x = make_input("normal", 53, dtype::f32, 13, n, n);
      stage_memory memory(test_machine(), this_stage(), x, {13, n, n, n});
      const auto result = [&](const launch_plan& plan) {
        memory.poison();
        stage_call call = memory.call();
        call.plan = plan;
        test_machine().run(call);
        host_matrix y(dtype::f32, 13, n, n);
        CHECK(memory.fetch(y, x) == "");
        return verify(x, y, errors_of(this_stage(), {13, n, n, n})).pass;
      };
      for (const plan_share& p : possible_plans(n, width)) {
        INFO(n << " columns, " << plan_text(p.plan) << " " << p.why_not);
        CHECK((plan_problem(p.plan, {}, n, width) == "") == p.why_not.empty());
        if (p.why_not.empty()) CHECK(result(p.plan));
        if (p.why_not == "over 1024 threads")
          CHECK_THROWS_WITH(result(p.plan), Catch::Matchers::Contains("softmax_rows") ||
                                                Catch::Matchers::Contains("a block has at most 1024"));
        if (p.why_not == "row does not fit")
          CHECK_THROWS_WITH(result(p.plan), Catch::Matchers::Contains("stage " + this_stage().wider));
      }
      // 96, 192, 384 and 768 threads a row become 128, 256, 512 and 1024.
      for (int warps : {96 / 32, 192 / 32, 384 / 32, 768 / 32})
        if (warps * 32 % width == 0) CHECK(result({warps * 32 / width, 1}));
    }
    if (test_machine().name() != "sim") continue;
    launches_alone look;
    std::set<std::pair<int, int>> entered, expected;
    for (std::int64_t n = 1; n <= this_stage().widest_row; n *= 2)
      for (const plan_share& p : possible_plans(n, width))
        if (p.why_not.empty()) {
          const auto share = share_of(look.of(5, n, p.plan).at(0));
          CHECK(share == std::pair(p.row_threads, p.items));
          entered.insert(share);
        }
    for (int threads = 8; threads <= 1024; threads *= 2)
      for (int items = 1; items <= 64; items *= 2)
        if (threads * items <= this_stage().widest_row) expected.insert({threads, items});
    CHECK(entered == expected);
  }
}

TEST_CASE("rows too wide for one way of holding them go another [T10 T12]", "[contract]") {
  const bool gpu = test_machine().name() != "sim";
  set_warp_width(warp_widths().front());
  const auto right_or_refused = [&](dtype t, std::int64_t m, std::int64_t n) {
    if (fit(n) == n) return check_distribution("normal", t, m, n);
    const stage_memory memory(test_machine(), this_stage(), host_matrix(t, 1, 1, 1), {1, 1, 1, 1});
    stage_call call = memory.call();
    call.shape = {m, n, n, n};
    CHECK_THROWS_WITH(test_machine().run(call), Catch::Matchers::Contains("stage " + this_stage().wider));
  };
  for (std::int64_t n : {10000, 13000, 16384, 25000, 57000, 58500}) right_or_refused(dtype::f32, 4, n);
  for (std::int64_t n : {1025, 1088, 2049, 4097, 8193, 16385, 102400, 128256, 131072, 151936})
    for (dtype t : all_types)
      if (gpu || t == dtype::bf16) right_or_refused(t, 2, n);
}

TEST_CASE("narrow rows, more than are given a block each", "[contract][special][layout][ledger]") {
  if (!in_clusters()) return;  // others make no difference, or not between 512 and 513 rows
  constexpr std::int64_t many = 513;
  for (dtype t : {dtype::f32, dtype::bf16}) {
    for (std::int64_t n : {1, 7, 8, 33, 129, 257})
      check(make_input(n % 2 ? "special" : "mixed", 71, t, many, n, n));
    check(make_input("special", 71, t, many, 65, 68), 67, 3);
    check_apart(make_input("normal", 71, t, many, 81, 81), 1, 2);
  }
  // On both sides of each limit: rows, vectors a row, and threads in all.
  for (std::int64_t m : {512, 513}) check_distribution("mixed", dtype::f32, m, 270);
  for (std::int64_t n : {8191, 8192, 8199, 8200, 8208}) check_distribution("mixed", dtype::bf16, 3, n);
  for (std::int64_t m : {256, 257}) check_distribution("mixed", dtype::bf16, m, 8192);
}

TEST_CASE("one row or a few, all widths that one block holds", "[contract][special][layout]") {
  if (!in_clusters()) return;
  for (dtype t : all_types) {
    for (std::int64_t n : {1, 3, 8, 33, 255, 781, 1024, 1031, 2049, 4095, 4096, 4102})
      check(make_input(n % 2 ? "special" : "masked", 73, t, 3, n, n + n % 3), -1, n % 5);
    for (std::int64_t n : {81, 1030, 4100}) check_apart(make_input("normal", 73, t, 2, n, n), 1, 3);
  }
}

TEST_CASE("many rows as wide as a cluster holds, and wider, special ones too", "[contract][special]") {
  // Others have nothing else for them; and the simulator takes minutes: there, tests/designs_test.cpp has
  // rings of smaller chunks, and the library one of this size.
  if (!in_clusters() || test_machine().name() == "sim") return;
  constexpr std::int64_t wide = 4 * 100000 + 40;  // in fp32, more than 100000 vectors
  check(make_input("special", 59, dtype::f32, 33, wide, wide + 3), wide + 7);
  check(make_input("mixed", 59, dtype::bf16, 32, 2 * wide, 2 * wide), -1, 3);
}

TEST_CASE("rows wider than the stage can hold are refused by name, and the widest is right", "[contract]") {
  const std::int64_t widest = this_stage().widest_row;
  if (widest == 0) return check_distribution("normal", dtype::f32, 1, 1 << 20);
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) check_distribution("normal", t, 2, widest);
    CHECK_THROWS_WITH(run(make_input("normal", 1, dtype::f32, 1, widest + 1, widest + 1)),
                      Catch::Matchers::Contains("stage " + this_stage().wider) &&
                          Catch::Matchers::Contains(std::to_string(widest)));
  }
}

TEST_CASE("every width from 1 to 1100 is right and moves what the model says", "[contract][ledger]") {
  if (test_machine().name() != "sim") {
    for (std::int64_t n = 1; n <= 1100; ++n) check_distribution("normal", dtype::f32, 5, n);
    return;
  }
  for (int width : warp_widths()) {
    set_warp_width(width);
    // Wide warps again find what depends on the warp, which widths around its multiples show; but in stages
    // 06 and 07 kernels change with the width.
    const bool all = width == 32 || this_stage().number >= "06";
    for (std::int64_t n = 1; n <= 1100; ++n)
      if (all || n <= 130 || n % 64 <= 1 || n % 64 == 63 || n % 7 == 0)
        check_distribution("normal", dtype::f32, 5, n);
  }
}

TEST_CASE("more rows than blocks fit in a grid's row loop [T08]", "[contract]") {
  if (test_machine().name() == "sim") return;  // "many rows of one column" goes beyond the grid there
  for (std::int64_t m : {65535, 65536, 90000, 98304, 1048577})
    for (std::int64_t n : {1, 2, 500})
      if (m * n < 100000000) check_distribution("normal", dtype::f32, m, n);
}

TEST_CASE("properties of softmax: shift, order, permutation", "[contract][numerics]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    host_matrix x = make_input("normal", 29, dtype::f32, 1, 300, 300);
    for (std::int64_t j = 0; j < 300; ++j)
      x.set(0, j, std::round(x.at(0, j) * 64) / 64);  // shifts stay exact
    host_matrix shifted = x, reversed = x;
    for (std::int64_t j = 0; j < 300; ++j) {
      shifted.set(0, j, x.at(0, j) + 8);
      reversed.set(0, j, x.at(0, 299 - j));
    }
    const outcome a = check(x), b = check(shifted), c = check(reversed);
    for (std::int64_t j = 0; j < 300; ++j) {
      CHECK(a.y.at(0, j) == b.y.at(0, j));
      CHECK(std::abs(a.y.at(0, j) - c.y.at(0, 299 - j)) <= 1e-6 * a.y.at(0, j));
    }
    for (std::int64_t j = 1; j < 300; ++j)
      if (x.at(0, j) > x.at(0, j - 1)) CHECK(a.y.at(0, j) > a.y.at(0, j - 1));
  }
}
