// What every stage promises, on every backend: compiled once for each stage, run once for each backend. The
// names in brackets are explained in tests/README.md.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "catch.hpp"
#include "harness/backend.hpp"
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
  return test_machine().name() == "sim" ? std::vector{32, 64} : std::vector{test_device().warp_size};
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
  const verdict v = verify(x, o.y, this_stage().sum_depth(s));
  INFO(shape_text(s, x.type) << ", first or worst: row " << v.worst.row << " col " << v.worst.col << " got "
                             << v.worst.got << " want " << v.worst.want << " ulp " << v.worst.ulp << " limit "
                             << v.worst.limit << " " << to_string(v.worst.why));
  CHECK(v.pass);
  CHECK(v.elements == x.rows * x.cols);
  CHECK(o.damage == "");
  if (test_machine().name() == "sim")
    CHECK(hold_against_model(o.launches, this_stage(), s, x.type).mismatch == "");
  return o;
}

void check_distribution(const std::string& dist, dtype t, std::int64_t rows, std::int64_t cols) {
  check(make_input(dist, 7, t, rows, cols, cols));
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

TEST_CASE("a model that is off by one M is found out, kernel by kernel", "[ledger]") {
  if (test_machine().name() != "sim") return;
  const host_matrix x = make_input("normal", 1, dtype::f32, 7, 33, 33);
  const outcome o = run(x);
  const matrix_shape s{7, 33, 33, 33};
  CHECK(hold_against_model(o.launches, this_stage(), s, dtype::f32).mismatch == "");
  for (std::size_t k = 0; k < this_stage().launches.size(); ++k)
    for (element_count kernel_model::*field : {&kernel_model::reads_storage, &kernel_model::reads_f32,
                                               &kernel_model::writes_storage, &kernel_model::writes_f32})
      for (std::int64_t change : {-1, 1}) {
        stage_info wrong = this_stage();
        (wrong.launches[k].*field).m += change;
        const std::string mismatch = hold_against_model(o.launches, wrong, s, dtype::f32).mismatch;
        CHECK(mismatch.find(wrong.launches[k].kernel) != std::string::npos);
      }
  stage_info renamed = this_stage();
  renamed.launches[0].kernel = "another";
  CHECK(hold_against_model(o.launches, renamed, s, dtype::f32).mismatch != "");
  stage_info shorter = this_stage();
  shorter.launches.pop_back();
  CHECK(hold_against_model(o.launches, shorter, s, dtype::f32).mismatch != "");
}

TEST_CASE("one column gives exactly one [T05]", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types)
      for (std::int64_t m : {1, 7, 300})
        for (double v : {-100.0, 0.0, 5.0, 88.0}) {
          host_matrix x(t, m, 1, 1);
          for (std::int64_t i = 0; i < m; ++i) x.set(i, 0, v);
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
  const std::int64_t m = gpu ? 3000000 : 65536;  // on a GPU more rows than the grid has blocks
  check(make_input("normal", 3, dtype::f32, m, 1, 1));
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

TEST_CASE("narrow rows whose number is no multiple of anything [T13 T45 T49]", "[contract]") {
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) {
      for (std::int64_t m : {1, 3, 5, 7, 13})
        for (std::int64_t n : {4, 31, 40, 100}) check_distribution("normal", t, m, n);
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

TEST_CASE("rows wider than the stage can hold are refused by name, and the widest is right", "[contract]") {
  const std::int64_t widest = this_stage().widest_row;
  if (widest == 0) return check_distribution("normal", dtype::f32, 1, 1 << 20);
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (dtype t : all_types) check_distribution("normal", t, 2, widest);
    CHECK_THROWS_WITH(
        run(make_input("normal", 1, dtype::f32, 1, widest + 1, widest + 1)),
        Catch::Matchers::Contains("stage 05") && Catch::Matchers::Contains(std::to_string(widest)));
  }
}

TEST_CASE("every width from 1 to 1100 is right and moves what the model says", "[contract][ledger]") {
  if (test_machine().name() != "sim") {
    for (std::int64_t n = 1; n <= 1100; ++n) check_distribution("normal", dtype::f32, 5, n);
    return;
  }
  for (int width : warp_widths()) {
    set_warp_width(width);
    for (std::int64_t n = 1; n <= 1100; ++n) check_distribution("normal", dtype::f32, 5, n);
  }
}

TEST_CASE("more rows than blocks fit in a grid's row loop", "[contract]") {
  if (test_machine().name() == "sim") return;  // "many rows of one column" goes beyond the grid there
  for (std::int64_t m : {65535, 65536, 90000, 1048576, 1048577})
    check_distribution("normal", dtype::f32, m, 2);
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
