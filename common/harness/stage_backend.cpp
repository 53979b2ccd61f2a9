// A stage on one backend. This file is compiled once for each backend, with the stage's kernel.cuh on the
// include path; on the simulator it is the one file whose memory accesses are watched, so it holds no more
// than it must.
#include <algorithm>

#include "harness/backend.hpp"
#include "harness/median.hpp"
#include "harness/stage_info.hpp"
#include "kernel.cuh"
#include "kernels/copy.cuh"
#include "kernels/fill.cuh"
#if __has_include("pitfalls.cuh")
#include "pitfalls.cuh"
#endif

#if defined(SIMT_BACKEND_CUDA)
#define SOFTMAX_BACKEND cuda
#elif defined(SIMT_BACKEND_HIP)
#define SOFTMAX_BACKEND hip
#else
#define SOFTMAX_BACKEND sim
#endif
#define SOFTMAX_CONCAT_(a, b) a##b
#define SOFTMAX_CONCAT(a, b) SOFTMAX_CONCAT_(a, b)
#define SOFTMAX_TEXT_(a) #a
#define SOFTMAX_TEXT(a) SOFTMAX_TEXT_(a)

namespace softmax {
namespace {

template <class T>
void enqueue(const stage_call& c, simt::stream queue) {
  const auto* x = static_cast<const T*>(c.x);
  auto* y = static_cast<T*>(c.y);
  simt::with_warp_size([&](auto width) {
#if __has_include("pitfalls.cuh")
    if (c.pitfall) return run_pitfall<width()>(c.pitfall, x, y, c.shape, queue);
#endif
#if defined(SOFTMAX_STAGE_TUNABLE)
    softmax<width()>(x, y, c.workspace, c.shape, queue, c.plan);
#else
    softmax<width()>(x, y, c.workspace, c.shape, queue);
#endif
  });
}

void enqueue(const stage_call& c, simt::stream queue) {
  if (const std::string problem = stage_problem(this_stage(), c.shape); !problem.empty())
    throw simt::error(problem);
  if (const std::string problem = overlap_problem(c.x, c.y, c.shape, c.type); !problem.empty())
    throw simt::error(problem);
  switch (c.type) {
    case dtype::f32:
      return enqueue<float>(c, queue);
    case dtype::f16:
      return enqueue<simt::half>(c, queue);
    case dtype::bf16:
      return enqueue<simt::bfloat16>(c, queue);
  }
}

class stage_backend final : public backend {
 public:
  ~stage_backend() override {
    if (queue_) (void)simt::destroy_stream(queue_);
  }

  std::string name() const override { return SOFTMAX_TEXT(SOFTMAX_BACKEND); }
  simt::device open(int index) override {
    simt::device facts = simt::find_device(index);
    if (!queue_) SIMT_CHECK(simt::create_stream(&queue_));
    return facts;
  }
  std::size_t free_memory() const override { return simt::free_memory(); }

  void* allocate(std::size_t bytes, const char* name) override {
    void* p = nullptr;
    SIMT_CHECK(simt::allocate(&p, bytes, name));
    return p;
  }
  void release(void* p) noexcept override { (void)simt::release(p); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    SIMT_CHECK(simt::copy_to_device(to, from, bytes));
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    SIMT_CHECK(simt::copy_to_host(to, from, bytes));
  }
  void poison(void* p, std::size_t bytes) override { SIMT_CHECK(simt::poison(p, bytes)); }

  void fill(void* x, dtype type, const matrix_shape& shape, std::uint64_t seed, double deviation) override {
    const auto size = static_cast<float>(deviation);
    switch (type) {
      case dtype::f32:
        softmax::fill(static_cast<float*>(x), shape, seed, size, queue_);
        break;
      case dtype::f16:
        softmax::fill(static_cast<simt::half*>(x), shape, seed, size, queue_);
        break;
      case dtype::bf16:
        softmax::fill(static_cast<simt::bfloat16*>(x), shape, seed, size, queue_);
        break;
    }
    wait();
  }

  void start(const stage_call& call) override { enqueue(call, queue_); }
  void wait() override { SIMT_CHECK(simt::synchronize()); }

  launch_plan rule([[maybe_unused]] std::int64_t cols) const override {
#if defined(SOFTMAX_STAGE_TUNABLE)
    return plan_by_rule(cols);
#else
    return {};
#endif
  }

  std::vector<double> time(const std::vector<stage_call>& calls, int repeats) override {
    return measure(calls, repeats, [this](const stage_call& c) { enqueue(c, queue_); });
  }

  copy_times time_copy(const std::vector<stage_call>& calls, std::size_t bytes, int repeats) override {
    copy_times result;
    result.bytes = bytes;
    const auto attempt = [&](const std::string& which, auto&& copy_one) {
      std::vector<double> seconds = measure(calls, repeats, copy_one);
      const double middle = median(seconds);
      if (result.which.empty() || middle < result.best) {
        result.best = middle;
        result.samples = std::move(seconds);
        result.which = which;
      }
    };
    attempt("16-byte vectors, 1 a thread", [&](const stage_call& c) { copy<1>(c.x, c.y, bytes, queue_); });
    attempt("16-byte vectors, 2 a thread", [&](const stage_call& c) { copy<2>(c.x, c.y, bytes, queue_); });
    attempt("16-byte vectors, 4 a thread", [&](const stage_call& c) { copy<4>(c.x, c.y, bytes, queue_); });
    attempt("16-byte vectors, 1 a thread, asked for ahead",
            [&](const stage_call& c) { copy<1, true>(c.x, c.y, bytes, queue_); });
    attempt("the runtime's device-to-device copy",
            [&](const stage_call& c) { SIMT_CHECK(simt::copy_on_device(c.y, c.x, bytes, queue_)); });
    return result;
  }

 private:
  /// Times batches long enough for the event clock. What is not counted loads the code and warms up.
  template <class F>
  std::vector<double> measure(const std::vector<stage_call>& calls, int repeats, F&& one) {
    constexpr double shortest_batch = 1e-3;
    constexpr int most_rounds = 4096;
    simt::stopwatch watch;
    for (const stage_call& c : calls) one(c);
    watch.start(queue_);
    for (const stage_call& c : calls) one(c);
    const double round = watch.stop(queue_) + 1e-9;
    const int rounds = std::clamp(static_cast<int>(shortest_batch / round) + 1, 1, most_rounds);
    simt::recording batch(queue_, [&] {
      for (int r = 0; r < rounds; ++r)
        for (const stage_call& c : calls) one(c);
    });
    batch.replay(queue_);
    std::vector<double> seconds;
    for (int r = 0; r < repeats; ++r) {
      watch.start(queue_);
      batch.replay(queue_);
      seconds.push_back(watch.stop(queue_) /
                        (static_cast<double>(rounds) * static_cast<double>(calls.size())));
    }
    return seconds;
  }

  simt::stream queue_ = nullptr;
};

}  // namespace

std::unique_ptr<backend> SOFTMAX_CONCAT(SOFTMAX_CONCAT(make_, SOFTMAX_BACKEND), _backend)() {
  return std::make_unique<stage_backend>();
}

}  // namespace softmax
