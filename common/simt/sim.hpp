#pragma once
/// @file
/// The portability layer for a machine without a GPU. Kernels run on fibers, one a GPU thread; cuda.hpp and
/// hip.hpp define the same names in the same order. See docs/simulator.md for what is modelled and what is
/// not.
#include <Eigen/Core>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "simt/device.hpp"
#include "simt/error.hpp"
#include "simt/sim/control.hpp"

// What the CUDA compiler knows by itself. Standard headers come first, since these are macros.
#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __syncthreads() ::simt::block_barrier(__FILE__, __LINE__)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

namespace simt {
inline namespace sim {

// Constant for as long as a kernel runs in a thread, so the compiler may read each of them once.
[[gnu::const]] unsigned thread_x() noexcept;
[[gnu::const]] unsigned thread_y() noexcept;
[[gnu::const]] unsigned thread_z() noexcept;
[[gnu::const]] unsigned block_x() noexcept;
[[gnu::const]] unsigned block_y() noexcept;
[[gnu::const]] unsigned block_z() noexcept;
[[gnu::const]] unsigned block_size_x() noexcept;
[[gnu::const]] unsigned block_size_y() noexcept;
[[gnu::const]] unsigned block_size_z() noexcept;
[[gnu::const]] unsigned grid_size_x() noexcept;
[[gnu::const]] unsigned grid_size_y() noexcept;
[[gnu::const]] unsigned grid_size_z() noexcept;

/// `threadIdx` and its kin: members that read as unsigned numbers.
template <unsigned (*X)() noexcept, unsigned (*Y)() noexcept, unsigned (*Z)() noexcept>
struct index_triple {
  template <unsigned (*Read)() noexcept>
  struct component {
    operator unsigned() const { return Read(); }
  };
  component<X> x;
  component<Y> y;
  component<Z> z;
};

}  // namespace sim
}  // namespace simt

inline constexpr simt::index_triple<simt::thread_x, simt::thread_y, simt::thread_z> threadIdx{};
inline constexpr simt::index_triple<simt::block_x, simt::block_y, simt::block_z> blockIdx{};
inline constexpr simt::index_triple<simt::block_size_x, simt::block_size_y, simt::block_size_z> blockDim{};
inline constexpr simt::index_triple<simt::grid_size_x, simt::grid_size_y, simt::grid_size_z> gridDim{};

namespace simt {
inline namespace sim {

/// A call, as the branches of a conversion in the middle of a kernel would split its loops by value.
template <class Number>
[[gnu::noinline, gnu::const]] inline float widened(std::uint16_t bits) {
  return static_cast<float>(Eigen::numext::bit_cast<Number>(bits));
}

/// A 16-bit number of Eigen's. Its conversion reads the bits as an integer: an object that is handed to a
/// function as it is would be loaded without telling the simulator.
template <class Number>
struct small_float : Number {
  small_float() = default;
  explicit small_float(float value) : Number(value) {}
  [[gnu::always_inline]] operator float() const {
    using bits [[gnu::may_alias]] = std::uint16_t;
    return widened<Number>(*reinterpret_cast<const bits*>(this));
  }
};
using half = small_float<Eigen::half>;
using bfloat16 = small_float<Eigen::bfloat16>;

enum class status { success, out_of_memory, invalid_value, invalid_configuration };
inline constexpr status success = status::success;
std::string describe(status);
std::string advice(status);

inline void check(status s, const char* call, const char* file, int line) {
  if (s != success) throw error(error_text(call, describe(s), advice(s), file, line));
}

using stream = void*;
inline status create_stream(stream* queue) {
  *queue = nullptr;
  return success;
}
inline status destroy_stream(stream) { return success; }

/// Memory that kernels may use, watched byte by byte. `name` appears in fault reports.
status allocate(void** p, std::size_t bytes, const char* name);
status release(void* p);
status copy_to_device(void* to, const void* from, std::size_t bytes);
status copy_to_host(void* to, const void* from, std::size_t bytes);
status copy_on_device(void* to, const void* from, std::size_t bytes, stream queue);
/// Fills memory with zeros, in the order of the stream: a part of a launch, so not where launches are noted
/// or do not run.
status zero(void* p, std::size_t bytes, stream queue);
/// Fills memory with 0xff, which is a NaN in every dtype, and forgets that it was ever written.
status poison(void* p, std::size_t bytes);
status synchronize();

/// Grid, block and dynamic shared memory of a launch, and the line that asked for it.
struct geometry {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  stream queue;
  const char* file;
  int line;
  bool begins_early = false;  ///< see early()
  geometry(dim3 grid, dim3 block, std::size_t shared_bytes = 0, stream queue = nullptr,
           const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : grid(grid), block(block), shared_bytes(shared_bytes), queue(queue), file(file), line(line) {}
  /// The same launch, which may begin before the one before it in the stream has ended. Here it does not, but
  /// a kernel is held to what it has to do then: each block calls wait_for_last_launch(), before it reads
  /// what that one wrote, before it writes, and before it lets the next launch begin.
  geometry early() const {
    geometry g = *this;
    g.begins_early = true;
    return g;
  }
};

/// "row_max<32, float>"
std::string launch_name(const void* kernel);

/// Runs `invoke(kernel, arguments)` in every thread of the grid, and returns when all are done.
/// @throws fault when a thread does what a GPU would not survive or not notice
/// @throws error when the geometry is none that a GPU takes
void run_grid(const void* kernel, const geometry& g, int cluster_blocks,
              void (*invoke)(const void*, const void*), const void* arguments, std::size_t argument_bytes);

/// The one place where a kernel is launched, so that no launch goes unchecked.
template <class... P, class... A>
void launch_grid(void (*kernel)(P...), const geometry& g, int cluster_blocks, A... args) {
  if (noted_launches)
    return noted_launches->push_back({launch_name(reinterpret_cast<const void*>(kernel)), g.grid.x, g.grid.y,
                                      g.block.x, g.shared_bytes, cluster_blocks});
  const std::tuple<P...> bound(static_cast<P>(args)...);
  const auto invoke = [](const void* k, const void* a) {
    std::apply(reinterpret_cast<void (*)(P...)>(const_cast<void*>(k)),
               *static_cast<const std::tuple<P...>*>(a));
  };
  run_grid(reinterpret_cast<const void*>(kernel), g, cluster_blocks, invoke, &bound, sizeof bound);
}

/// Launches a kernel; the arguments become the types of its parameters.
template <class... P, class... A>
void launch(void (*kernel)(P...), const geometry& g, A... args) {
  launch_grid(kernel, g, 1, args...);
}

/// Calls f with the simulated warp width as a compile-time constant.
template <class F>
void with_warp_size(F f) {
  if (configuration().warp_size == 64)
    f(std::integral_constant<int, 64>());
  else
    f(std::integral_constant<int, 32>());
}

enum class exchange_kind { from_lane, exclusive_or, down };

void block_barrier(const char* file, int line);
void warp_barrier(const char* file, int line);
/// What the bits of a value are, for those who print them.
enum class value_kind : unsigned char { f32, f64, integer };
std::uint64_t exchange(exchange_kind kind, value_kind type, int width, std::uint64_t bits, int operand,
                       const char* file, int line);

template <class T>
T exchange_value(exchange_kind kind, int width, T value, int operand, const char* file, int line) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  constexpr value_kind type = std::is_same_v<T, float>    ? value_kind::f32
                              : std::is_same_v<T, double> ? value_kind::f64
                                                          : value_kind::integer;
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = exchange(kind, type, width, bits, operand, file, line);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

// The shuffles. Takes part: every lane of the warp, or the run stops. Valid on: every lane. Barrier: none.
// Width is a power of two, at most the warp.

/// Lane `source` of each group of Width lanes gives its value to the whole group.
template <int Width, class T>
T shuffle(T value, int source, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return exchange_value(exchange_kind::from_lane, Width, value, source, file, line);
}
/// The value of the lane whose number differs in the bits of `mask`, within groups of Width lanes.
template <int Width, class T>
T shuffle_xor(T value, int mask, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return exchange_value(exchange_kind::exclusive_or, Width, value, mask, file, line);
}
/// The value of the lane `delta` higher; the last lanes of a group of Width keep their own.
template <int Width, class T>
T shuffle_down(T value, int delta, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return exchange_value(exchange_kind::down, Width, value, delta, file, line);
}
inline void sync_warp(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  warp_barrier(file, line);
}

/// Adds 1 to a word of global memory in one step, whoever else does, and returns what stood there before.
/// Orders no other access. Good for less than 2^32 - 1 calls.
unsigned fetch_increment(unsigned* p, const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// 16 bytes, the most that a thread loads or stores at once. Addresses are multiples of 16.
using vector16 = std::uint32_t __attribute__((vector_size(16)));
inline vector16 load_vector(const void* p) { return *static_cast<const vector16*>(p); }
inline void store_vector(void* p, vector16 v) { *static_cast<vector16*>(p) = v; }

/// The two 16-bit values of a word, the first in the lower half.
template <class T>
void unpack_pair(std::uint32_t bits, float& low, float& high) {
  T pair[2];
  __builtin_memcpy(static_cast<void*>(pair), &bits, 4);
  low = static_cast<float>(pair[0]);
  high = static_cast<float>(pair[1]);
}
/// And back, rounded.
template <class T>
std::uint32_t pack_pair(float low, float high) {
  const T pair[2] = {static_cast<T>(low), static_cast<T>(high)};
  std::uint32_t bits;
  __builtin_memcpy(&bits, pair, 4);
  return bits;
}

/// The larger of the first values, and of the second ones; a number where one of two is a NaN.
template <class T>
std::uint32_t larger_pair(std::uint32_t a, std::uint32_t b) {
  float x[2], y[2];
  unpack_pair<T>(a, x[0], x[1]);
  unpack_pair<T>(b, y[0], y[1]);
  return pack_pair<T>(std::fmax(x[0], y[0]), std::fmax(x[1], y[1]));
}

/// 2^x, to 2 ulp.
inline float exp2(float x) { return ::exp2f(x); }

/// A cluster is a group of blocks that run at the same time and can write to each other's shared memory. The
/// most blocks of one; 0 if the device has no clusters.
inline int most_cluster_blocks() { return configuration().cluster_blocks; }

/// How many clusters of `blocks` blocks the GPU holds at once: here, of large blocks, what an H200 does.
template <class... P>
std::int64_t resident_clusters(void (*)(P...), int blocks, int, std::size_t) {
  constexpr int blocks_in_clusters = 128;  // of its 132 multiprocessors, 4 are left without
  return blocks_in_clusters / blocks;
}

/// Launches clusters of `blocks` blocks; the grid is a multiple of that.
template <class... P, class... A>
void launch_cluster(void (*kernel)(P...), int blocks, const geometry& g, A... args) {
  launch_grid(kernel, g, blocks, args...);
}

inline constexpr bool clusters_here = true;
[[gnu::const]] unsigned cluster_id() noexcept;
[[gnu::const]] unsigned cluster_count() noexcept;
[[gnu::const]] int cluster_blocks() noexcept;
[[gnu::const]] int cluster_rank() noexcept;
void cluster_arrive(const char* file = __builtin_FILE(), int line = __builtin_LINE());
void cluster_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE());
void store_pair(void* p, int rank, float a, float b);

void* dynamic_shared_memory() noexcept;
/// The block's dynamic shared memory, as many bytes as the launch asked for, from a multiple of 128 on: a
/// copy of chunks (simt/async.hpp) is slower to a place that is not even a multiple of 32.
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_memory());
}

/// A laptop always has a simulator.
inline device_query query_devices() { return {.ok = true, .reason = "", .count = 1}; }

/// The host as a device: its cores run the blocks.
device find_device(int index);

/// Bytes that can still be allocated on the host.
std::size_t free_memory();

/// Host time. It says how long the simulation took, nothing about a GPU.
class stopwatch {
 public:
  void start(stream) { begin_ = std::chrono::steady_clock::now(); }
  double stop(stream) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_{};
};

/// Launches kept for later. The simulator runs them at each replay.
class recording {
 public:
  template <class F>
  recording(stream, F&& enqueue) : enqueue_(std::forward<F>(enqueue)) {}
  void replay(stream) { enqueue_(); }

 private:
  std::function<void()> enqueue_;
};

}  // namespace sim
}  // namespace simt
