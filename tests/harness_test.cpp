// The harness's own tests: the verifier cannot be fooled, inputs are what they say, files are read and
// written whole, and each lack of a device has its sentence.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <thread>

#include "catch.hpp"
#include "harness/devices.hpp"
#include "harness/dram.hpp"
#include "harness/launch_plan.hpp"
#include "harness/median.hpp"
#include "harness/npy.hpp"
#include "harness/occupancy.hpp"
#include "harness/session.hpp"
#include "harness/stage_info.hpp"
#include "harness/stage_memory.hpp"
#include "harness/usage_error.hpp"
#include "numerics/dtype.hpp"
#include "numerics/input.hpp"
#include "numerics/parallel.hpp"
#include "numerics/reference.hpp"
#include "numerics/verify.hpp"
#include "simt/device.hpp"

using namespace softmax;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr error_model depth{20};

/// The correctly rounded softmax of x.
host_matrix right_answer(const host_matrix& x) {
  host_matrix y(x.type, x.rows, x.cols, x.cols);
  std::vector<double> in(x.cols), out(x.cols);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) in[j] = x.at(i, j);
    reference_row(in, out);
    for (std::int64_t j = 0; j < x.cols; ++j) y.set(i, j, out[j]);
  }
  return y;
}

host_matrix filled(const host_matrix& like, double value) {
  host_matrix y(like.type, like.rows, like.cols, like.cols);
  for (std::int64_t i = 0; i < y.rows; ++i)
    for (std::int64_t j = 0; j < y.cols; ++j) y.set(i, j, value);
  return y;
}

std::string temporary(const std::string& name) {
  static const std::string folder = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "softmax-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  return folder + "/" + name;
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string npy_bytes(const std::string& header, const std::string& data, char version = 1) {
  std::string text = header + "\n";
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + text + data;
}

/// The sentence that a call is refused with; empty if it is not.
template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const usage_error& e) {
    return e.what();
  }
  return "";
}

/// A GPU with that much free memory, as far as planning goes.
class planned_gpu final : public backend {
 public:
  explicit planned_gpu(std::size_t free) : free_(free) {}
  std::string name() const override { return "cuda"; }
  simt::device open(int) override { return {}; }
  std::size_t free_memory() const override { return free_; }
  void* allocate(std::size_t, const char*) override { throw simt::error("nothing runs here"); }
  void release(void*) noexcept override {}
  void upload(void*, const void*, std::size_t) override {}
  void download(void*, const void*, std::size_t) override {}
  void poison(void*, std::size_t) override {}
  void fill(void*, dtype, const matrix_shape&, std::uint64_t, double) override {}
  void start(const stage_call&) override {}
  void wait() override {}
  launch_plan rule(std::int64_t) const override { return {}; }
  std::vector<double> time(const std::vector<stage_call>&, int) override { return {}; }
  copy_times time_copy(const std::vector<stage_call>&, std::size_t, int) override { return {}; }

 private:
  std::size_t free_;
};

/// What planning a run of that shape says; empty if it may run.
std::string planning(std::size_t device_free, std::int64_t rows, std::int64_t cols, dtype t,
                     const stage_info& stage, row_choice choice = {}) {
  planned_gpu gpu(device_free);
  chosen_device device;
  device.machine = &gpu;
  device.facts.warp_size = 32;
  options o;
  o.rows = {rows};
  o.cols = {cols};
  o.type = t;
  o.check = choice;
  return refusal([&] { plan_runs(o, stage, device); });
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the right answer passes in every type", "[verify]") {
  for (dtype t : {dtype::f32, dtype::f16, dtype::bf16})
    for (const char* dist :
         {"normal", "logits", "masked", "special", "large", "negative", "ramp_up", "spike:last", "const:0"})
      for (std::int64_t n : {1, 3, 7, 1000, 8192}) {
        const host_matrix x = make_input(dist, 1, t, 12, n, n);
        const verdict v = verify(x, right_answer(x), depth);
        INFO(dist << " " << name_of(t) << " N " << n << " worst ulp " << v.worst.ulp << " limit "
                  << v.worst.limit);
        CHECK(v.pass);
        CHECK(v.elements == 12 * n);
        CHECK(v.largest_ulp <= 0.51);
      }
}

TEST_CASE("right 16-bit outputs pass although their rows do not sum to one [T31]", "[verify]") {
  for (const auto& [t, n] :
       {std::pair{dtype::bf16, 3}, {dtype::bf16, 7}, {dtype::f16, 100000}, {dtype::f16, 3000000}}) {
    const host_matrix x = make_input("const:0", 1, t, 1, n, n);
    CHECK(verify(x, right_answer(x), depth).pass);
  }
}

TEST_CASE("all-zero outputs fail up to a million columns, uniform ones up to 100 000 [T32]", "[verify]") {
  for (dtype t : {dtype::f32, dtype::f16, dtype::bf16})
    for (std::int64_t n : {2, 8, 128, 1024, 8192, 100000, 1048576}) {
      const host_matrix x = make_input("normal", 1, t, 1, n, n);
      INFO(name_of(t) << " N " << n);
      const verdict zero = verify(x, filled(x, 0), depth);
      CHECK_FALSE(zero.pass);
      CHECK(zero.failures == zero.zero_output_would_fail);
      if (t == dtype::f32 && n <= 100000) CHECK(zero.failures == n);
      if (1.0 / static_cast<double>(n) > 1e-6)
        CHECK_FALSE(verify(x, filled(x, 1.0 / static_cast<double>(n)), depth).pass);
    }
}

TEST_CASE("one wrong element among many is found and named", "[verify]") {
  const host_matrix x = make_input("normal", 1, dtype::f32, 40, 300, 300);
  host_matrix y = right_answer(x);
  y.set(39, 299, y.at(39, 299) * (1 + 1e-5));
  const verdict v = verify(x, y, depth);
  CHECK_FALSE(v.pass);
  CHECK(v.failures == 1);
  CHECK(v.worst.row == 39);
  CHECK(v.worst.col == 299);
  CHECK(v.worst.ulp > 80);
  CHECK(v.worst.why == failure::error_too_large);
}

TEST_CASE("NaN and inf never pass where a number belongs [T57]", "[verify]") {
  const host_matrix x = make_input("normal", 1, dtype::f32, 4, 50, 50);
  for (double bad : {nan_value, infinity, -infinity}) {
    host_matrix y = right_answer(x);
    y.set(3, 49, bad);
    const verdict v = verify(x, y, depth);
    CHECK_FALSE(v.pass);
    CHECK(v.worst.row == 3);
    CHECK(v.worst.col == 49);
    CHECK(v.worst.why == (std::isnan(bad) ? failure::nan_unexpected : failure::error_too_large));
    CHECK_FALSE(std::isfinite(v.worst.ulp));
  }
  const verdict all_nan = verify(x, filled(x, nan_value), depth);
  CHECK(all_nan.failures == 200);
}

TEST_CASE("NaN is expected where the row is special, and only there [T58]", "[verify]") {
  host_matrix x = make_input("normal", 1, dtype::f32, 3, 10, 10);
  x.set(1, 4, nan_value);
  const host_matrix y = right_answer(x);
  CHECK(verify(x, y, depth).pass);
  CHECK(verify(x, y, depth).special_rows == 1);

  host_matrix number_for_nan = y;
  number_for_nan.set(1, 7, 0);
  CHECK_FALSE(verify(x, number_for_nan, depth).pass);
  CHECK(verify(x, number_for_nan, depth).worst.why == failure::nan_expected);

  host_matrix nan_for_number = y;
  nan_for_number.set(0, 0, nan_value);
  CHECK_FALSE(verify(x, nan_for_number, depth).pass);
}

TEST_CASE("an element that was never written fails, even where NaN is right", "[verify]") {
  for (dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {
    const host_matrix x = make_input("const:0", 1, t, 2, 6, 6);
    host_matrix nan_row = x;
    nan_row.set(1, 0, infinity);
    host_matrix y = right_answer(nan_row);
    std::memset(y.data.data() + 7 * size_of(t), 0xff, size_of(t));
    const verdict v = verify(nan_row, y, depth);
    CHECK(v.failures == 1);
    CHECK(v.worst.why == failure::never_written);
  }
}

TEST_CASE("zero is near enough to what is too small for a normal float [T59]", "[verify]") {
  host_matrix x(dtype::f32, 1, 3, 3);
  x.set(0, 0, 0);
  x.set(0, 1, -100);
  x.set(0, 2, -87.5);
  host_matrix y = right_answer(x);
  y.set(0, 1, 1e-44);
  y.set(0, 2, 0);
  CHECK(verify(x, y, depth).pass);
  y.set(0, 1, 1);
  CHECK_FALSE(verify(x, y, depth).pass);
}

TEST_CASE("a sample of rows holds the first and the last", "[verify]") {
  const auto rows = chosen_rows({.rows = 10}, 1000000);
  CHECK(rows.front() == 0);
  CHECK(rows.back() == 999999);
  CHECK(rows.size() >= 10);
  CHECK(rows.size() <= 30);
  CHECK(chosen_rows({}, 7).size() == 7);
  CHECK(chosen_rows({.rows = 50}, 7).size() == 7);
  CHECK(chosen_rows({.rows = 5}, 0).empty());

  const host_matrix x = make_input("normal", 1, dtype::f32, 5000, 3, 3);
  host_matrix y = right_answer(x);
  y.set(4999, 2, 0);
  CHECK_FALSE(verify(x, y, depth, {.rows = 4}).pass);
}

TEST_CASE("the reference follows the definition and the rule for special rows", "[reference]") {
  std::vector<double> y(4);
  const auto row = [&](std::vector<double> x) {
    y.resize(x.size());
    return reference_row(x, y);
  };
  CHECK_FALSE(row({1, 2, 3, 4}).special);
  CHECK(std::abs(y[3] - 0.64391425988797231) < 1e-15);
  CHECK(row({5}).sum == 1);
  CHECK(y[0] == 1);
  CHECK(row({-infinity, 3}).maximum == 3);
  CHECK(y[0] == 0);
  CHECK(y[1] == 1);
  CHECK(row({infinity, 1}).special);
  CHECK(std::isnan(y[1]));
  CHECK(row({-infinity, -infinity}).special);
  CHECK(std::isnan(y[0]));
  CHECK(row({nan_value, 1}).special);
  CHECK(std::isnan(y[1]));
  std::vector<double> none;
  CHECK_FALSE(reference_row(none, none).special);
}

TEST_CASE("threads share a long row, and the result does not depend on how many", "[reference][T03]") {
  const host_matrix x = make_input("normal", 3, dtype::f32, 1, 200001, 200001);
  std::vector<double> in(x.cols), alone(x.cols), shared(x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j) in[j] = x.at(0, j);
  const row_facts a = reference_row(in, alone, 1);
  for (const int threads : {2, 5}) {
    const row_facts b = reference_row(in, shared, threads);
    CHECK((b.sum == a.sum && b.maximum == a.maximum && b.mean_distance == a.mean_distance));
    CHECK(shared == alone);
  }
  in.back() = nan_value;
  CHECK(reference_row(in, shared, 2).special);
  CHECK(std::isnan(shared.front()));

  host_matrix y = right_answer(x);
  CHECK(verify(x, y, depth).pass);
  y.set(0, 200000, 0);
  y.set(0, 66000, 0);
  const verdict v = verify(x, y, depth);
  CHECK((v.failures == 2 && v.rows_checked == 1 && v.elements == 200001));
  CHECK(v.worst.col == 66000);
}

TEST_CASE("a shared loop does each piece once and passes on what a piece threw", "[parallel]") {
  for (const int threads : {1, 3}) {
    std::vector<std::atomic<int>> done(1000);
    std::atomic<int> strangers{0};
    parallel_for(1000, threads, [&](std::int64_t i, int thread) {
      ++done[i];
      if (thread < 0 || thread >= threads) ++strangers;
    });
    CHECK(strangers == 0);
    CHECK(std::all_of(done.begin(), done.end(), [](const auto& n) { return n == 1; }));
    const auto trip = [](std::int64_t i, int) {
      if (i == 500) throw std::bad_alloc();
    };
    CHECK_THROWS_AS(parallel_for(1000, threads, trip), std::bad_alloc);
  }
  parallel_for(0, 4, [](std::int64_t, int) { FAIL("there is no piece"); });
  CHECK(threads_for(0) == 1);
}

TEST_CASE("storage types round to nearest even and know their ulp", "[dtype]") {
  unsigned char memory[8] = {};
  const auto through = [&](dtype t, double v) {
    store(t, memory, 1, v);
    return load(t, memory, 1);
  };
  CHECK(through(dtype::f32, 0.1) == static_cast<double>(0.1f));
  CHECK(through(dtype::f16, 1 + 1.0 / 2048) == 1.0);  // a tie, to even
  CHECK(through(dtype::f16, 1 + 3.0 / 2048) == 1 + 2.0 / 1024);  // a tie, to even
  CHECK(through(dtype::f16, 65520) == infinity);
  CHECK(through(dtype::f16, 6e-8) == std::ldexp(1.0, -24));
  CHECK(through(dtype::bf16, 1 + 1.0 / 256) == 1.0);
  CHECK(std::isnan(through(dtype::bf16, nan_value)));
  CHECK(through(dtype::bf16, -infinity) == -infinity);
  CHECK(ulp_at(dtype::f32, 1) == std::ldexp(1.0, -23));
  CHECK(ulp_at(dtype::f16, 1) == std::ldexp(1.0, -10));
  CHECK(ulp_at(dtype::bf16, 1.99) == std::ldexp(1.0, -7));
  CHECK(ulp_at(dtype::f16, 0) == std::ldexp(1.0, -24));
  CHECK(ulp_at(dtype::f32, 0.5) == std::ldexp(1.0, -24));
  CHECK(parse_dtype("f16") == dtype::f16);
  CHECK_FALSE(parse_dtype("fp16"));
}

TEST_CASE("inputs are what their name says, and the same every time", "[input]") {
  const auto make = [](const std::string& dist, std::int64_t rows, std::int64_t cols,
                       std::uint64_t seed = 1) {
    return make_input(dist, seed, dtype::f32, rows, cols, cols + 3);
  };
  CHECK(make("normal", 20, 30).data == make("normal", 20, 30).data);
  CHECK(make("normal", 20, 30).data != make("normal", 20, 30, 2).data);
  // A row depends on its place, not on how many there are.
  CHECK(make("normal", 20, 30).at(3, 4) == make("normal", 5, 30).at(3, 4));

  const host_matrix normal = make("normal", 100, 1000);
  double sum = 0, squares = 0;
  for (int i = 0; i < 100; ++i)
    for (int j = 0; j < 1000; ++j) {
      sum += normal.at(i, j);
      squares += normal.at(i, j) * normal.at(i, j);
    }
  CHECK(std::abs(sum / 1e5) < 0.02);
  CHECK(std::abs(squares / 1e5 - 1) < 0.03);
  CHECK(std::isnan(load(dtype::f32, normal.data.data(), 1000)));  // padding

  const host_matrix masked = make("masked", 50, 64);
  int hidden = 0;
  for (int i = 0; i < 50; ++i) {
    CHECK(std::isfinite(masked.at(i, 0)));
    for (int j = 0; j < 64; ++j) hidden += masked.at(i, j) == -infinity;
  }
  CHECK(hidden > 500);
  const host_matrix special = make("special", 10, 8);
  CHECK(std::isnan(special.at(1, 4)));
  CHECK(special.at(3, 7) == infinity);
  CHECK(special.at(5, 0) == -infinity);
  CHECK(make("const:0.5", 1, 3).at(0, 2) == 0.5);
  CHECK(make("spike:first", 1, 5).at(0, 0) > 40);
  CHECK(make("ramp_up", 1, 5).at(0, 4) == 2);
  for (const auto& d : distributions()) CHECK(make(d.name, 2, 5).rows == 2);
  for (const char* wrong : {"gauss", "const:", "const:x", "const:1x", "spike:nowhere", "normal:3", ""}) {
    if (std::string(wrong) == "const:") continue;  // the parameter may be left out
    CHECK_THROWS_AS(make(wrong, 1, 3), std::invalid_argument);
  }
}

TEST_CASE(".npy files survive the round trip", "[npy]") {
  for (dtype t : {dtype::f32, dtype::f16, dtype::bf16}) {
    const host_matrix x = make_input("special", 1, t, 11, 13, 17);
    const std::string path = temporary("round.npy");
    write_npy(path, x);
    const host_matrix back = read_npy(path);
    CHECK(back.rows == 11);
    CHECK(back.cols == 13);
    CHECK(back.type == (t == dtype::f16 ? dtype::f16 : dtype::f32));
    for (int i = 0; i < 11; ++i)
      for (int j = 0; j < 13; ++j) {
        const bool same =
            back.at(i, j) == x.at(i, j) || (std::isnan(back.at(i, j)) && std::isnan(x.at(i, j)));
        CHECK(same);
      }
    CHECK(std::filesystem::file_size(path) % 64 == (11 * 13 * (t == dtype::f16 ? 2 : 4)) % 64);
  }
}

TEST_CASE(".npy rows longer than what is written at once", "[npy]") {
  const host_matrix x = make_input("normal", 1, dtype::f32, 3, (1 << 17) + 5, (1 << 17) + 9);
  const std::string path = temporary("long.npy");
  write_npy(path, x);
  const host_matrix back = read_npy(path);
  CHECK(back.cols == x.cols);
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j)
      if (back.at(i, j) != x.at(i, j)) FAIL("row " << i << " column " << j);
}

TEST_CASE(".npy shapes and byte orders", "[npy]") {
  const std::string path = temporary("shape.npy");
  const std::string two_floats_little("\0\0\x80\x3f\0\0\0\x40", 8),
      two_floats_big("\x3f\x80\0\0\x40\0\0\0", 8);
  const auto shape_of = [&](const std::string& shape, const std::string& data) {
    write_file(path, npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", data));
    const host_matrix m = read_npy(path);
    return std::pair{m.rows, m.cols};
  };
  CHECK(shape_of("(2,)", two_floats_little) == std::pair<std::int64_t, std::int64_t>{1, 2});
  CHECK(shape_of("(1, 2, 1)", two_floats_little) == std::pair<std::int64_t, std::int64_t>{2, 1});
  CHECK(shape_of("(0, 5)", "") == std::pair<std::int64_t, std::int64_t>{0, 5});
  write_file(path,
             npy_bytes("{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), }", two_floats_big, 2));
  CHECK(read_npy(path).at(0, 1) == 2.0);
}

TEST_CASE("broken .npy files are refused with the reason", "[npy]") {
  const std::string path = temporary("broken.npy");
  const auto reason = [&](const std::string& bytes) {
    write_file(path, bytes);
    const std::string text = refusal([&] { read_npy(path); });
    CHECK(has(text, path));
    CHECK(text.back() == '.');
    return text;
  };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
  CHECK(has(refusal([] { read_npy("/nowhere/x.npy"); }), "No such file"));
  CHECK(has(refusal([] { read_npy("/tmp"); }), "directory"));
  CHECK(has(reason(""), "no .npy file"));
  CHECK(has(reason("hello world, this is text"), "no .npy file"));
  CHECK(has(reason(npy_bytes(good, "1234")), "promises 16 bytes of data and 4 are there"));
  CHECK(has(reason(npy_bytes(good, "").substr(0, 20)), "ends inside its header"));
  CHECK(has(reason(npy_bytes(good, "", 9)), "version 9"));
  CHECK(has(reason(npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }", "12345678")),
            "'<i8'"));
  CHECK(has(reason(npy_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", "12345678")),
            "float32"));
  CHECK(has(reason(npy_bytes("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")),
            "structured"));
  CHECK(has(
      reason(npy_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, 'x'))),
      "Fortran"));
  CHECK(has(reason(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "1234")),
            "single number"));
  CHECK(has(reason(npy_bytes("{'descr': '" + std::string(9000, 'a') + "'}", "")), "names no order"));
  CHECK(has(reason(npy_bytes("{'descr': '" + std::string(60000, 'a') + "'}", "")), "over 10000 bytes"));
  CHECK(has(
      reason(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1), }", "")),
      "too long"));
  CHECK(has(
      reason(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "")),
      "too long"));
  CHECK(has(
      reason(npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (461168601842738790, 400), }", "")),
      "64 bits"));
}

TEST_CASE(".npy files past 2^31 elements and 2^32 bytes say so in 64 bits [T02 T03]", "[npy]") {
  const std::string path = temporary("large.npy");
  const auto promised = [&](const std::string& type, const std::string& shape) {
    write_file(path, npy_bytes("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }",
                               "1234"));
    return refusal([&] { read_npy(path); });
  };
  CHECK(has(promised("<f4", "(85632, 50259)"), "promises 17215114752 bytes of data and 4 are there"));
  CHECK(has(promised("<f2", "(1, 2147483650)"), "promises 4294967300 bytes of data and 4 are there"));
  CHECK(has(promised("<f2", "(2200000000, 1)"), "promises 4400000000 bytes of data and 4 are there"));
  write_npy(path, host_matrix(dtype::f16, 0, 4303778688, 4303778688));
  CHECK(read_npy(path).cols == 4303778688);
}

TEST_CASE("an output that cannot be written leaves nothing behind", "[npy]") {
  const host_matrix y(dtype::f32, 1, 1, 1);
  CHECK(has(refusal([&] { write_npy("/nowhere/y.npy", y); }), "no directory /nowhere"));
  CHECK(has(refusal([&] { write_npy("/tmp", y); }), "directory"));
  const std::string folder = temporary("locked");
  std::filesystem::create_directory(folder);
  write_npy(folder + "/y.npy", y);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  if (geteuid() != 0) {
    chmod(folder.c_str(), 0555);
    CHECK(has(refusal([&] { write_npy(folder + "/z.npy", y); }), "Permission denied"));
  }
}

TEST_CASE("a full disk is reported and leaves nothing behind", "[npy]") {
  // /dev/full accepts nothing; a link to it stands for a full disk.
  if (!std::filesystem::exists("/dev/full")) return;
  const std::string path = temporary("full.npy");
  std::filesystem::create_symlink("/dev/full", path + "." + std::to_string(getpid()) + ".unfinished");
  const host_matrix y(dtype::f32, 100, 1000, 1000);
  CHECK(has(refusal([&] { write_npy(path, y); }), "No space left"));
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(std::filesystem::exists(path + "." + std::to_string(getpid()) + ".unfinished"));
}

TEST_CASE("each lack of a device has its sentence [T62 T63]", "[device]") {
  using simt::device_problem;
  using simt::device_query;
  const auto says = [](const device_query& q, int index, const std::string& part) {
    const std::string text = device_problem(q, index, "NVIDIA");
    INFO(text);
    CHECK(has(text, part));
    CHECK(has(text, "--device sim"));
    CHECK(text.find('.') != std::string::npos);
  };
  says({.ok = false, .reason = "insufficient", .count = 0, .driver_version = 0, .runtime_version = 13000}, 0,
       "No NVIDIA driver");
  says({.ok = false, .reason = "insufficient", .count = 0, .driver_version = 12040, .runtime_version = 13000},
       0, "driver supports version 12.4, but this program was built with toolkit 13.0");
  says(
      {.ok = false, .reason = "unknown error", .count = 0, .driver_version = 13000, .runtime_version = 13000},
      0, "unknown error");
  says({.ok = true, .reason = "", .count = 0, .driver_version = 13000, .runtime_version = 13000}, 0,
       "no NVIDIA GPU in this machine");
  says({.ok = true, .reason = "", .count = 1, .driver_version = 13000, .runtime_version = 13000}, 7,
       "no NVIDIA GPU number 7");
  says({.ok = true, .reason = "", .count = 1, .driver_version = 13000, .runtime_version = 13000}, -1,
       "number -1");
  CHECK(device_problem(
            {.ok = true, .reason = "", .count = 2, .driver_version = 13000, .runtime_version = 13000}, 1,
            "NVIDIA") == "");
}

TEST_CASE("occupancy follows from the limits of the GPU", "[model]") {
  const gpu_facts& h200 = *find_gpu("h200");
  const auto check = [&](int threads, std::size_t shared, int registers, int blocks,
                         const std::string& limit) {
    const occupancy o = occupancy_of(h200, threads, shared, 1000, registers);
    INFO(threads << " threads, " << shared << " bytes, " << registers << " registers");
    CHECK(o.blocks == blocks);
    CHECK(o.limit == limit);
    CHECK(o.bytes_in_flight == 1000.0 * blocks);
  };
  check(256, 0, 0, 8, "threads");
  check(1024, 0, 0, 2, "threads");
  check(32, 0, 0, 32, "blocks");  // 32 warps of 64: one warp a block fills half of a multiprocessor
  check(256, 0, 64, 4, "registers");
  check(256, 0, 57, 4, "registers");  // handed out in eights
  check(256, 100 * 1024, 0, 2, "shared memory");
  check(100, 0, 0, 16, "threads");  // whole warps count
  CHECK(occupancy_of(h200, 32, 0, 0, 0).share == 0.5);
  CHECK(occupancy_of(*find_gpu("rtx4090"), 1024, 0, 0, 0).blocks == 1);
  // 4.8 TB/s, half of it reads, 0.8 us, 132 multiprocessors
  CHECK(std::abs(bytes_in_flight_needed(h200) - 14545) < 1);
}

TEST_CASE("sizes are counted in 64 bits [T01 T02 T03 T04 T09]", "[model]") {
  struct large {
    std::int64_t rows, cols;
    dtype type;
    std::int64_t bytes;  // of one matrix
    std::int64_t scratch;  // of stage 00: 2MN + 2M floats
    const char *apart, *with_scratch;  // both matrices, in words
  };
  for (const large& l : {large{2097160, 1024, dtype::f16, 4294983680, 17196712000, "8.6 GB", "25.8 GB"},
                         {756480, 3152, dtype::f16, 4768849920, 19081451520, "9.5 GB", "28.6 GB"},
                         {85632, 50259, dtype::f32, 17215114752, 34430914560, "34.4 GB", "68.9 GB"},
                         {1, 2147483647, dtype::f16, 4294967294, 17179869184, "8.6 GB", "25.8 GB"},
                         {1, 2147483650, dtype::bf16, 4294967300, 17179869208, "8.6 GB", "25.8 GB"},
                         {1 << 28, 9, dtype::f32, 9663676416, 21474836480, "19.3 GB", "40.8 GB"},
                         {42692, 50304, dtype::f32, 8590313472, 17180968480, "17.2 GB", "34.4 GB"},
                         {2200000000, 1, dtype::f16, 4400000000, 35200000000, "8.8 GB", "44.0 GB"},
                         {1100000000, 2, dtype::f16, 4400000000, 26400000000, "8.8 GB", "35.2 GB"}}) {
    const matrix_shape s{l.rows, l.cols, l.cols, l.cols};
    INFO(shape_text(s, l.type));
    CHECK(matrix_bytes(l.rows, l.cols, l.type) == l.bytes);
    CHECK(useful_bytes(s, l.type) == 2 * l.bytes);
    const kernel_model once{
        .kernel = "k", .reads_storage = {.mn = 1}, .writes_storage = {.mn = 1}, .writes_f32 = {.m = 2}};
    CHECK(once.read_bytes(s, l.type) == l.bytes);
    CHECK(once.write_bytes(s, l.type) == l.bytes + 8 * l.rows);
    CHECK(workspace_bytes(this_stage(), s) == l.scratch);  // these tests are linked with stage 00

    stage_info fused = this_stage();
    fused.workspace = {};
    constexpr std::size_t little = 1000000000;
    CHECK(has(planning(little, l.rows, l.cols, l.type, fused),
              std::string(" needs ") + l.apart + " on the GPU and 1.0 GB are free"));
    CHECK(has(planning(little, l.rows, l.cols, l.type, this_stage()),
              std::string(" needs ") + l.with_scratch + " on the GPU and 1.0 GB are free"));
  }
}

TEST_CASE("the memory of the check is that of the threads that check [T03 T61]", "[verify]") {
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  constexpr std::int64_t cols = std::int64_t{1} << 31;
  CHECK(verify_bytes({}, 1, cols) == 16 * cols);  // a row and its softmax in fp64, once
  CHECK(verify_bytes({}, 1000000, 10) == 160 * cores);
  CHECK(verify_bytes({.rows = 1}, 2, 10) == 160 * std::min<std::int64_t>(cores, 2));
  CHECK(verify_bytes({}, 0, 10) == 0);
  CHECK(verify_bytes({}, 10, 0) == 0);
  CHECK(verify_bytes({}, 1 << 20, INT64_MAX / 8) == INT64_MAX);

  // One row that fits once, and not once a core: 4 bytes an element for the matrices, 16 a thread.
  const auto wide = static_cast<std::int64_t>(0.7 * static_cast<double>(simt::host_memory())) / 20;
  stage_info stage = this_stage();
  stage.workspace = {};
  constexpr std::size_t plenty = std::size_t{1} << 50;
  CHECK(planning(plenty, 1, wide, dtype::f16, stage) == "");
  CHECK(has(planning(plenty, 1, 2 * wide, dtype::f16, stage), "of host memory to check the result"));
}

TEST_CASE("matrices lie apart or in the same place [T40]", "[model]") {
  const auto overlap = [](std::uintptr_t x, std::uintptr_t y, const matrix_shape& s, dtype t = dtype::f32) {
    return overlap_problem(reinterpret_cast<void*>(x), reinterpret_cast<void*>(y), s, t) != "";
  };
  const matrix_shape s{4, 8, 8, 8};  // 128 bytes of f32
  CHECK_FALSE(overlap(1024, 1024, s));
  CHECK_FALSE(overlap(1024, 1024 + 128, s));
  CHECK_FALSE(overlap(1024, 1024 - 128, s));
  CHECK(overlap(1024, 1024 + 127, s));
  CHECK(overlap(1024, 1024 - 127, s));
  CHECK_FALSE(overlap(1024, 1024 + 64, s, dtype::f16));
  CHECK(overlap(1024, 1024, {4, 8, 8, 9}));
  CHECK_FALSE(overlap(1024, 1024 + 4 * (3 * 10 + 8), {4, 8, 10, 8}));  // the last row has no padding
  CHECK_FALSE(overlap(1024, 1024 + 4, {0, 8, 8, 8}));
}

TEST_CASE("the median is the value in the middle", "[model]") {
  CHECK(median({7}) == 7);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 3);  // of two, the larger
  CHECK(median({5, 5, 1, 9, 9}) == 5);
}

TEST_CASE("plans that do not fit say why", "[model]") {
  const auto reason = [](int warps, int rows, std::int64_t cols, int width) {
    return plan_problem({warps, rows}, {4, 8}, cols, width);
  };
  CHECK(reason(4, 8, 32, 32) == "");
  CHECK(reason(0, 0, 1000000, 32) == "");  // left to the rule
  CHECK(has(reason(1, 0, 32, 32), "fewer than 8 threads"));  // the rule's 8 rows share one warp
  CHECK(has(reason(0, 8, 4096, 32), "does not fit"));
  CHECK(has(reason(1, 8, 32, 32), "fewer than 8 threads"));
  CHECK(has(reason(32, 1, 32, 64), "1024"));
  CHECK(has(reason(4, 1, 8193, 32), "does not fit"));
  CHECK(has(reason(32, 1, 40000, 32), "registers"));
  CHECK(possible_plans(781, 32).size() == 24);
  int possible = 0;
  for (const plan_share& p : possible_plans(781, 32)) {
    possible += p.why_not.empty();
    if (p.why_not.empty()) CHECK(p.items * p.row_threads >= 781);
  }
  CHECK(possible > 15);
}

TEST_CASE("versions read as their vendors write them", "[device]") {
  CHECK(simt::version_text(13000) == "13.0");
  CHECK(simt::version_text(12040) == "12.4");
  CHECK(simt::version_text(50221153) == "5.2");
}

TEST_CASE("the device table is complete", "[device]") {
  for (const gpu_facts& g : gpu_table()) {
    INFO(g.key);
    CHECK(find_gpu(g.key) == &g);
    CHECK((g.warp_size == 32 || g.warp_size == 64));
    CHECK(g.multiprocessors > 0);
    CHECK(g.peak_bytes_per_second > 1e12);
    CHECK(g.shared_per_block <= g.shared_per_multiprocessor);
    CHECK(g.threads_per_multiprocessor % g.warp_size == 0);
    CHECK_FALSE(g.source.empty());
  }
  CHECK(find_gpu("h100") == nullptr);
  CHECK(match_gpu("NVIDIA H200") == find_gpu("h200"));
  CHECK(match_gpu("NVIDIA A100-SXM4-80GB") == find_gpu("a100"));
  // Variants with other memory are not taken for the one in the table.
  for (const char* other :
       {"Tesla T4", "NVIDIA GH200 480GB", "NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe",
        "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 4090 D"})
    CHECK(match_gpu(other) == nullptr);
}

TEST_CASE("element counts print as the field writes them", "[model]") {
  CHECK(element_count{5, 2}.text() == "5MN+2M");
  CHECK(element_count{1, 0}.text() == "MN");
  CHECK(element_count{0, 1}.text() == "M");
  CHECK(element_count{0, 0}.text() == "0");
  CHECK(element_count{3, 2}.of({7, 11, 11, 11}) == 3 * 77 + 14);
  CHECK(element_count{1, 0}.of({1 << 28, 9, 9, 9}) == 2415919104);  // past 2^31 [T04]
  const kernel_model k{.kernel = "k",
                       .reads_storage = {1, 0},
                       .reads_f32 = {0, 1},
                       .writes_storage = {},
                       .writes_f32 = {0, 2}};
  CHECK(k.read_bytes({3, 5, 5, 5}, dtype::f16) == 15 * 2 + 3 * 4);
  CHECK(k.write_bytes({3, 5, 5, 5}, dtype::f16) == 6 * 4);
}

TEST_CASE("counters of Nsight Compute are added up, and their absence is explained", "[dram]") {
  const std::string head =
      "==PROF== Connected\n\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"dram__bytes_write.sum\"\n"
      "\"\",\"\",\"byte\",\"byte\"\n";
  const std::string rows =
      "\"0\",\"max_rows(const float *, long)\",\"1,000\",\"24\"\n\"1\",\"sum_rows(a, b)\",\"2000.0\",\"8\"\n";

  const dram_traffic both = parse_counters(head + rows, 2);
  CHECK(both.why_not == "");
  CHECK(both.read_bytes == 3000);
  CHECK(both.write_bytes == 32);

  CHECK(parse_counters(head + rows, 3).why_not.find("2 launches") != std::string::npos);
  CHECK(parse_counters("", 1).why_not.find("0 launches") != std::string::npos);
  CHECK(parse_counters("==ERROR== ERR_NVGPUCTRPERM - no permission", 1).why_not.find("administrator") !=
        std::string::npos);
}
