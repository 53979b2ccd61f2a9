#include "numerics/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace softmax {

int cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

int threads_for(std::int64_t pieces) {
  return static_cast<int>(std::clamp<std::int64_t>(pieces, 1, cores()));
}

void parallel_for(std::int64_t pieces, int threads, const std::function<void(std::int64_t, int)>& work) {
  if (threads <= 1 || pieces <= 1) {
    for (std::int64_t i = 0; i < pieces; ++i) work(i, 0);
    return;
  }
  std::atomic<std::int64_t> next{0};
  std::exception_ptr trouble;
  std::mutex guard;
  const auto take = [&](int thread) {
    try {
      for (std::int64_t i; (i = next.fetch_add(1)) < pieces;) work(i, thread);
    } catch (...) {
      next = pieces;
      const std::scoped_lock lock(guard);
      trouble = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = static_cast<int>(std::min<std::int64_t>(threads, pieces));
    try {
      for (int t = 1; t < wanted; ++t) others.emplace_back(take, t);
    } catch (const std::system_error&) {
      // No more threads to be had: those that run take the pieces.
    }
    take(0);
  }
  if (trouble) std::rethrow_exception(trouble);
}

void parallel_pieces(std::int64_t length, std::int64_t piece_length, int threads,
                     const std::function<void(std::int64_t, std::int64_t)>& work) {
  parallel_for((length + piece_length - 1) / piece_length, threads, [&](std::int64_t i, int) {
    work(i * piece_length, std::min(length, (i + 1) * piece_length));
  });
}

}  // namespace softmax
