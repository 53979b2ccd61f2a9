// softmax.hpp, as a program of its own would call it: every width, random shapes, strides and addresses,
// streams, graphs, plans and refusals. Linked once with the library of each backend; memory comes from a
// stage's harness.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "catch.hpp"
#include "harness/backend.hpp"
#include "harness/stage_info.hpp"
#include "library/measured.hpp"
#include "numerics/input.hpp"
#include "numerics/verify.hpp"
#include "simt/sim/control.hpp"
#include "softmax.hpp"
#if defined(LIBRARY_TEST_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace softmax {
namespace {

constexpr dtype all_types[] = {dtype::f32, dtype::f16, dtype::bf16};

/// The machine that the library was built for, or nothing.
backend* machine() {
#if defined(LIBRARY_TEST_CUDA)
  const std::string name = "cuda";
#else
  const std::string name = "sim";
#endif
  static const std::vector<std::unique_ptr<backend>> all = make_backends();
  static backend* const there = [&]() -> backend* {
    for (const auto& one : all) {
      if (one->name() != name) continue;
      try {
        one->open(0);
        return one.get();
      } catch (const simt::no_device&) {
      }
    }
    return nullptr;
  }();
  return there;
}

bool on_gpu() { return machine()->name() != "sim"; }

/// One matrix in device memory with poison around and between its rows.
class device_matrix {
 public:
  device_matrix(dtype type, std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t offset)
      : type_(type),
        rows_(rows),
        cols_(cols),
        ld_(ld),
        offset_(offset),
        image_(static_cast<std::size_t>(offset + rows * ld + guard) * size_of(type), std::byte{0xff}) {
    memory_ = machine()->allocate(image_.size(), "matrix");
    machine()->upload(memory_, image_.data(), image_.size());
  }
  ~device_matrix() { machine()->release(memory_); }
  device_matrix(const device_matrix&) = delete;
  void* data() const {
    return static_cast<std::byte*>(memory_) + static_cast<std::size_t>(offset_) * size_of(type_);
  }
  void set(const host_matrix& m) {
    for (std::int64_t row = 0; row < rows_; ++row)
      std::memcpy(image_.data() + at(row),
                  m.data.data() + static_cast<std::size_t>(row * m.ld) * size_of(type_), row_bytes());
    machine()->upload(memory_, image_.data(), image_.size());
  }
  host_matrix get() const {
    std::vector<std::byte> now(image_.size());
    machine()->download(now.data(), memory_, now.size());
    host_matrix m(type_, rows_, cols_, cols_);
    for (std::int64_t row = 0; row < rows_; ++row)
      std::memcpy(m.data.data() + static_cast<std::size_t>(row * cols_) * size_of(type_),
                  now.data() + at(row), row_bytes());
    // What is no element must be as it was.
    std::vector<std::byte> outside = now;
    for (std::int64_t row = 0; row < rows_; ++row)
      std::memcpy(outside.data() + at(row), image_.data() + at(row), row_bytes());
    CHECK(outside == image_);
    return m;
  }

 private:
  static constexpr std::int64_t guard = 64;
  std::size_t row_bytes() const { return static_cast<std::size_t>(cols_) * size_of(type_); }
  /// Where a row begins, in bytes.
  std::size_t at(std::int64_t row) const {
    return static_cast<std::size_t>(offset_ + row * ld_) * size_of(type_);
  }
  dtype type_;
  std::int64_t rows_, cols_, ld_, offset_;
  std::vector<std::byte> image_;
  void* memory_ = nullptr;
};

/// No tighter than any of the stages that the library calls: of 06 and 07 at most 200 additions of values,
/// lanes and warps, of 05 every 512th element and a rescale of 5 roundings each 2048.
error_model library_errors(std::int64_t cols) {
  return {200.0 + static_cast<double>(cols) / 512 + 5 * static_cast<double>(cols) / 2048, 2.5};
}

struct layout {
  std::int64_t more_in = 0, more_out = 0, offset_in = 0, offset_out = 0;
  bool in_place = false, workspace = true;
};

void check_right(const std::string& distribution, dtype type, std::int64_t rows, std::int64_t cols,
                 const layout& l = {}) {
  INFO(rows << "x" << cols << " " << name_of(type) << " " << distribution << " strides +" << l.more_in << " +"
            << l.more_out << " offsets " << l.offset_in << " " << l.offset_out
            << (l.in_place ? " in place" : "") << (l.workspace ? "" : " without workspace"));
  const host_matrix x =
      make_input(distribution, static_cast<std::uint64_t>(rows * 131 + cols), type, rows, cols, cols);
  const softmax_problem p{rows, cols, cols + l.more_in, cols + (l.in_place ? l.more_in : l.more_out), type};
  device_matrix in(type, rows, cols, p.ld_in, l.offset_in), out(type, rows, cols, p.ld_out, l.offset_out);
  in.set(x);
  const std::size_t bytes = l.workspace ? softmax_workspace(p) : 0;
  void* const workspace = bytes ? machine()->allocate(bytes, "workspace") : nullptr;
  softmax(in.data(), l.in_place ? in.data() : out.data(), p, nullptr, workspace, bytes);
  machine()->wait();
  if (workspace) machine()->release(workspace);
  const verdict v = verify(x, (l.in_place ? in : out).get(), library_errors(cols));
  INFO("row " << v.worst.row << " col " << v.worst.col << ": " << v.worst.got << ", want " << v.worst.want);
  CHECK(v.pass);
}

}  // namespace

TEST_CASE("every width is right", "[library]") {
  for (dtype type : all_types)
    for (std::int64_t n = 1; n <= 4100; n += on_gpu() ? 1 : n < 70 ? 1 : 97) check_right("mixed", type, 3, n);
}

TEST_CASE("rows that no block holds are right, with and without workspace", "[library]") {
  for (dtype type : all_types)
    for (std::int64_t n : {32768L, 32769L, 50257L, on_gpu() ? 128256L : 65551L, on_gpu() ? 1048576L : 70001L})
      for (std::int64_t m : {1L, 3L, on_gpu() ? 131L : 2L})
        for (bool workspace : {true, false}) check_right("normal", type, m, n, {.workspace = workspace});
}

TEST_CASE("the workspace is small", "[library]") {
  for (const std::int64_t rows : {1, 2, 20, 33})
    for (std::int64_t cols = 1000; cols <= 1 << 26; cols *= 2)
      CHECK(softmax_workspace({rows, cols, cols, cols}) <= 2048 * static_cast<std::size_t>(rows));
}

namespace {

/// While it lives, the simulated GPU has clusters of that many blocks.
struct simulated_clusters {
  explicit simulated_clusters(int blocks) { simt::configuration().cluster_blocks = blocks; }
  ~simulated_clusters() { simt::configuration().cluster_blocks = 0; }
  simulated_clusters(const simulated_clusters&) = delete;
  simulated_clusters& operator=(const simulated_clusters&) = delete;
};

}  // namespace

TEST_CASE("many of the widest rows are right, with and without workspace", "[library]") {
  constexpr std::int64_t cols = 4 * 100000 + 5;
  const simulated_clusters sixteen(16);  // or it would be two launches again
  for (const bool workspace : {true, false}) {
    const std::int64_t rows = workspace || on_gpu() ? 33 : 3;
    simt::clear_records();
    check_right("special", dtype::f32, rows, cols, {.more_out = 3, .workspace = workspace});
    if (on_gpu()) continue;
    REQUIRE(simt::records().size() == 1);
    const std::string kernel = workspace ? "softmax_ring" : "softmax_cluster";
    CHECK(simt::records()[0].kernel == kernel);
    device_matrix m(dtype::f32, 1, 1, 1, 0);  // a plan reads no element
    const softmax_plan plan =
        plan_softmax(m.data(), m.data(), {rows, cols, cols, cols}, workspace ? 1 << 20 : 0);
    REQUIRE(plan.launches.size() == 1);
    CHECK(plan.launches[0].kernel.find(kernel + "<") == 0);
    CHECK(plan.launches[0].blocks == (workspace ? 128 : 16 * rows));
  }
}

TEST_CASE("random shapes, strides and addresses are right, special rows too", "[library]") {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const std::vector<std::string> distributions = {"mixed", "special",  "masked",
                                                  "large", "negative", "logits"};
  for (int i = 0; i < (on_gpu() ? 200 : 60); ++i) {
    const std::int64_t cols = 1 + below(i % 3      ? 3000
                                        : on_gpu() ? 100000
                                                   : 9000),
                       rows = 1 + below(on_gpu() ? 40 : 8);
    check_right(distributions[static_cast<std::size_t>(i) % distributions.size()], all_types[i % 3], rows,
                cols,
                {.more_in = below(2) * below(40),
                 .more_out = below(2) * below(40),
                 .offset_in = below(2) * below(16),
                 .offset_out = below(2) * below(16),
                 .in_place = below(4) == 0,
                 .workspace = below(2) == 0});
  }
}

TEST_CASE("an empty matrix is no error, and nonsense is refused in a sentence", "[library]") {
  softmax(nullptr, nullptr, 0, 100, 100, 100, dtype::f32, nullptr);
  softmax(nullptr, nullptr, 100, 0, 0, 0, dtype::bf16, nullptr);
  device_matrix m(dtype::f32, 4, 100, 100, 0), other(dtype::f32, 4, 100, 100, 0);
  const auto refused = [](const char* why, auto&& call) {
    CHECK_THROWS_WITH(call(), Catch::Matchers::Contains(why));
  };
  auto* const x = static_cast<float*>(m.data());
  auto* const y = static_cast<float*>(other.data());
  refused("null", [&] { softmax(nullptr, y, 4, 100, 100, 100, dtype::f32, nullptr); });
  refused("64 bits",
          [&] { softmax(x, y, 2, INT64_MAX / 2, INT64_MAX / 2, INT64_MAX / 2, dtype::f32, nullptr); });
  refused("too wide", [&] {
    softmax(x, y, 1, std::int64_t{1} << 33, std::int64_t{1} << 33, std::int64_t{1} << 33, dtype::f32,
            nullptr);
  });
  refused("ld_in 99 is", [&] { softmax(x, y, 4, 100, 99, 100, dtype::f32, nullptr); });
  refused("rows would overlap", [&] { softmax(x, y, 4, 100, 99, 100, dtype::f32, nullptr); });
  refused("does not exist", [&] { softmax(x, y, -1, 100, 100, 100, dtype::f32, nullptr); });
  refused("overlaps", [&] { softmax(x, x + 1, 4, 50, 50, 50, dtype::f32, nullptr); });
  refused("overlaps", [&] { softmax(x, x, 4, 50, 50, 60, dtype::f32, nullptr); });
  refused("aligned", [&] { softmax(reinterpret_cast<char*>(x) + 1, y, 4, 50, 50, 50, dtype::f32, nullptr); });
  refused("64 bits", [&] { softmax(x, y, INT64_MAX / 2, 4, 4, 4, dtype::f32, nullptr); });
  refused("type", [&] { softmax(x, y, 4, 50, 50, 50, static_cast<dtype>(9), nullptr); });
  refused("workspace", [&] { softmax(x, y, {4, 50, 50, 50}, nullptr, nullptr, 64); });
}

TEST_CASE("a plan names the launches, and makes none", "[library]") {
  const int blocks = GENERATE(0, 16);
  const simulated_clusters simulated(blocks);
  const char* const few = on_gpu() ? "softmax_" : blocks > 0 ? "softmax_few" : "softmax_rows";
  for (const auto& [type, rows, cols, kernel] : {std::tuple{dtype::f32, 600L, 33L, "softmax_rows"},
                                                 {dtype::bf16, 600L, 33L, "softmax_tile"},
                                                 {dtype::f32, 600L, 1000L, "softmax_rows"},
                                                 {dtype::bf16, 1L, 1000L, few},
                                                 {dtype::f32, 2L, 50257L, ""}}) {
    device_matrix in(type, rows, cols, cols, 0), out(type, rows, cols, cols, 0);
    const softmax_problem p{rows, cols, cols, cols, type};
    const softmax_plan plan = plan_softmax(in.data(), out.data(), p);
    REQUIRE(!plan.launches.empty());
    CHECK(!plan.why.empty());
    for (const planned_launch& l : plan.launches) {
      CHECK(l.kernel.find(kernel) != std::string::npos);
      CHECK(l.blocks > 0);
      CHECK(l.threads % 32 == 0);
    }
    const host_matrix untouched = out.get();
    CHECK(std::all_of(untouched.data.begin(), untouched.data.end(),
                      [](std::byte b) { return b == std::byte{0xff}; }));
    if (on_gpu()) continue;
    in.set(make_input("normal", 1, type, rows, cols, cols));
    simt::clear_records();
    softmax(in.data(), out.data(), p, nullptr);
    REQUIRE(simt::records().size() == plan.launches.size());
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      CHECK(simt::records()[i].instance == plan.launches[i].kernel);
      CHECK(simt::records()[i].grid == plan.launches[i].blocks);
      CHECK(simt::records()[i].block == static_cast<unsigned>(plan.launches[i].threads));
    }
  }
}

TEST_CASE("between two measured widths, the wider one decides", "[library]") {
  if (on_gpu()) return;  // a GPU without clusters follows a rule
  const simulated_clusters simulated(16);
  const auto* const x = reinterpret_cast<const void*>(std::uintptr_t{1} << 44);  // no launch is made
  const auto* const y = reinterpret_cast<const void*>(std::uintptr_t{1} << 45);
  for (const dtype type : {dtype::f32, dtype::bf16}) {
    std::map<std::int64_t, const library::measured_choice*> by_width;
    for (const auto& m : library::measured_sm_90)
      if (m.four_bytes == (type == dtype::f32) && m.rows * m.cols > 1 << 27) by_width[m.cols] = &m;
    REQUIRE(by_width.size() > 10);
    const library::measured_choice* narrower = nullptr;
    for (const auto& [width, measured] : by_width) {
      const auto stage_at = [&](std::int64_t cols) {
        return plan_softmax(x, y, {measured->rows, cols, cols, cols, type}).stage;
      };
      const std::string stage = "0" + std::to_string(measured->stage);
      INFO(name_of(type) << ", up to " << width << " columns");
      CHECK(stage_at(width) == stage);
      CHECK(stage_at(width - 1) == stage);
      if (narrower) CHECK(stage_at(narrower->cols + 1) == stage);
      narrower = measured;
    }
    // A few columns more do not make few rows another shape.
    const auto stage_of = [&](std::int64_t rows, std::int64_t cols) {
      return plan_softmax(x, y, {rows, cols, cols, cols, type}).stage;
    };
    CHECK(stage_of(1, 1025) == stage_of(1, 1024));
    CHECK(stage_of(4096, 782) == stage_of(4096, 781));
  }
}

namespace {

struct rows_by_cols {
  std::int64_t rows, cols;
};

/// Calls of which each reads what the one before wrote, and the last writes what the first read. What is not
/// written yet is NaN. `run` gets what enqueues all of them on a stream, and returns when they have ended.
template <class Run>
void check_chain(const std::vector<rows_by_cols>& shapes, Run run) {
  constexpr dtype type = dtype::bf16;
  const std::int64_t elements = shapes[0].rows * shapes[0].cols;  // the others have as many at most
  const auto reshaped = [](const host_matrix& from, const rows_by_cols& shape) {
    host_matrix m(type, shape.rows, shape.cols, shape.cols);
    std::memcpy(m.data.data(), from.data.data(), m.data.size());
    return m;
  };
  std::vector<std::unique_ptr<device_matrix>> matrices;
  std::size_t bytes = 0;
  for (const rows_by_cols& s : shapes) {
    matrices.push_back(std::make_unique<device_matrix>(type, 1, elements, elements, 0));
    bytes = std::max(bytes, softmax_workspace({s.rows, s.cols, s.cols, s.cols, type}));
  }
  const host_matrix first = make_input("normal", 11, type, 1, elements, elements);
  matrices[0]->set(first);
  void* const workspace = bytes ? machine()->allocate(bytes, "workspace") : nullptr;
  machine()->wait();
  run([&](void* stream) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto& [rows, cols] = shapes[i];
      softmax(matrices[i]->data(), matrices[(i + 1) % shapes.size()]->data(), {rows, cols, cols, cols, type},
              stream, workspace, bytes);
    }
  });
  if (workspace) machine()->release(workspace);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    INFO("call " << i << ", " << shapes[i].rows << "x" << shapes[i].cols);
    const host_matrix x = i == 0 ? first : matrices[i]->get();
    const host_matrix y = matrices[(i + 1) % shapes.size()]->get();
    CHECK(verify(reshaped(x, shapes[i]), reshaped(y, shapes[i]), library_errors(shapes[i].cols)).pass);
  }
}

}  // namespace

TEST_CASE("a call takes what the one before it wrote", "[library]") {
  if (on_gpu()) return;  // has larger ones, below
  check_chain({{64, 33}, {16, 132}, {4, 528}, {2, 1000}, {1, 2000}}, [](const auto& enqueue) {
    enqueue(nullptr);
    machine()->wait();
  });
}

#if defined(LIBRARY_TEST_CUDA)
namespace {

struct work {
  work(std::int64_t rows, std::int64_t cols, dtype type)
      : p{rows, cols, cols, cols, type},
        x(make_input("normal", 5, type, rows, cols, cols)),
        in(type, rows, cols, cols, 0),
        out(type, rows, cols, cols, 0) {
    in.set(x);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // streams that do not block do not wait for the upload
    REQUIRE(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking) == cudaSuccess);
    if (const std::size_t bytes = softmax_workspace(p))
      REQUIRE(cudaMalloc(&workspace, workspace_bytes = bytes) == cudaSuccess);
  }
  ~work() {
    cudaStreamDestroy(queue);
    cudaFree(workspace);
  }
  void enqueue() { softmax(in.data(), out.data(), p, queue, workspace, workspace_bytes); }
  void check() { CHECK(verify(x, out.get(), library_errors(p.cols)).pass); }
  softmax_problem p;
  host_matrix x;
  device_matrix in, out;
  cudaStream_t queue = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// Captures what `enqueue` does on the stream into a graph, and runs that `turns` times.
template <class Enqueue>
void replay(cudaStream_t queue, int turns, Enqueue enqueue) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  REQUIRE(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  enqueue();
  REQUIRE(cudaStreamEndCapture(queue, &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiateWithFlags(&ready, graph, 0) == cudaSuccess);
  for (int turn = 0; turn < turns; ++turn) REQUIRE(cudaGraphLaunch(ready, queue) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(queue) == cudaSuccess);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
}

}  // namespace

TEST_CASE("streams do not disturb each other", "[library]") {
  work a(64, 128256, dtype::f32), b(3, 1048576, dtype::bf16), c(1, 262144, dtype::f32),
      d(4096, 781, dtype::f16), e(33, 262148, dtype::f32);
  for (int turn = 0; turn < 50; ++turn)
    for (work* w : {&a, &b, &c, &d, &e}) w->enqueue();
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (work* w : {&a, &b, &c, &d, &e}) w->check();
  std::vector<std::jthread> threads;  // and from threads of their own
  for (work* w : {&a, &b, &c, &d, &e})
    threads.emplace_back([w] {
      for (int turn = 0; turn < 50; ++turn) w->enqueue();
    });
  threads.clear();
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (work* w : {&a, &b, &c, &d, &e}) w->check();
}

TEST_CASE("calls are captured into a graph and replayed", "[library]") {
  for (const auto& [rows, cols] : {std::pair{512L, 1000L}, {8L, 128256L}, {1L, 1048576L}, {33L, 1048584L}}) {
    work w(rows, cols, dtype::bf16);
    replay(w.queue, 3, [&] { w.enqueue(); });
    w.check();
  }
}

TEST_CASE("each call waits for the one before it, on a stream and in a graph", "[library]") {
  // A tile, lanes, clusters, the ring, two launches, a block a row, two launches.
  const std::vector<rows_by_cols> shapes = {{819200, 33},  {25600, 1056}, {200, 135168}, {32, 844800},
                                            {16, 1081344}, {512, 1024},   {1, 524288}};
  cudaStream_t queue = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&queue, cudaStreamNonBlocking) == cudaSuccess);
  check_chain(shapes, [&](const auto& enqueue) {
    enqueue(queue);
    REQUIRE(cudaStreamSynchronize(queue) == cudaSuccess);
  });
  check_chain(shapes, [&](const auto& enqueue) { replay(queue, 1, [&] { enqueue(queue); }); });
  cudaStreamDestroy(queue);
}
#endif

}  // namespace softmax

int main(int argc, char** argv) {
  if (!softmax::machine()) {
    std::puts("SKIP: there is no GPU to run on");
    return 77;
  }
  return run_tests(argc, argv);
}
