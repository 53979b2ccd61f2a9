#pragma once
/// @file
/// The portability layer for HIP. cuda.hpp and sim.hpp define the same names in the same order.
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "simt/device.hpp"
#include "simt/error.hpp"

namespace simt {
inline namespace hip {

/// 16-bit float of IEEE 754; computed with as float.
using half = __half;
/// 16-bit float with the exponent of fp32; computed with as float.
using bfloat16 = hip_bfloat16;

/// What a call of the runtime returns.
using status = hipError_t;
/// The status of a call that went well.
inline constexpr status success = hipSuccess;
/// Name and meaning of a status, as the runtime has them.
inline std::string describe(status s) {
  return std::string(hipGetErrorName(s)) + ", " + hipGetErrorString(s);
}

/// What a user can do about a failed call.
inline std::string advice(status s) {
  if (s == hipErrorOutOfMemory) return "Use fewer rows or columns, or free memory on the GPU.";
  if (s == hipErrorNoBinaryForGpu)
    return "Build for this GPU: cmake --preset hip -DSOFTMAX_HIP_ARCHITECTURES=<its name in rocminfo, such "
           "as gfx90a>.";
  if (s == hipErrorInvalidConfiguration || s == hipErrorLaunchOutOfResources)
    return "Launch fewer threads a block or ask for less shared memory.";
  return "Run the same on the simulator to find the line.";
}

/// @throws error with `call`, its line, the reason and what to do, unless s is success
inline void check(status s, const char* call, const char* file, int line) {
  if (s != success) throw error(error_text(call, describe(s), advice(s), file, line));
}

/// A queue of work on the device; nullptr is the default one.
using stream = hipStream_t;
/// Makes a stream that must be destroyed.
inline status create_stream(stream* queue) { return hipStreamCreate(queue); }
/// Ends a stream; what is queued still runs.
inline status destroy_stream(stream queue) { return hipStreamDestroy(queue); }

/// Device memory of `bytes` bytes, aligned to 256 or more, uninitialised. The name is for the simulator's
/// reports.
inline status allocate(void** p, std::size_t bytes, const char*) { return hipMalloc(p, bytes); }
/// Gives back what allocate() gave; nullptr is allowed.
inline status release(void* p) { return hipFree(p); }
/// Copies `bytes` bytes and waits for it.
inline status copy_to_device(void* to, const void* from, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyHostToDevice);
}
/// Copies `bytes` bytes, after all that was launched, and waits for it.
inline status copy_to_host(void* to, const void* from, std::size_t bytes) {
  return hipMemcpy(to, from, bytes, hipMemcpyDeviceToHost);
}
/// Copies `bytes` bytes between buffers of the device, in the order of the stream.
inline status copy_on_device(void* to, const void* from, std::size_t bytes, stream queue) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, queue);
}
/// Fills memory with zeros, in the order of the stream: a part of a launch, so not where launches are noted.
inline status zero(void* p, std::size_t bytes, stream queue) {
  return noted_launches ? success : hipMemsetAsync(p, 0, bytes, queue);
}
/// Fills memory with 0xff, which is a NaN in every dtype: what no kernel wrote cannot look like a result.
inline status poison(void* p, std::size_t bytes) { return hipMemset(p, 0xff, bytes); }
/// Waits for all that was launched, and returns its first error.
inline status synchronize() { return hipDeviceSynchronize(); }

/// Grid, block and dynamic shared memory of a launch, and the line that asked for it.
struct geometry {
  dim3 grid;  ///< blocks
  dim3 block;  ///< threads a block
  std::size_t shared_bytes;  ///< dynamic, a block
  stream queue;  ///< where the launch goes
  const char* file;  ///< of the launch, for reports
  int line;  ///< of the launch
  /// `file` and `line` name the caller by themselves.
  geometry(dim3 grid, dim3 block, std::size_t shared_bytes = 0, stream queue = nullptr,
           const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : grid(grid), block(block), shared_bytes(shared_bytes), queue(queue), file(file), line(line) {}
  /// The same launch, which may begin before the one before it in the stream has ended; not here.
  geometry early() const { return *this; }
};

/// The name of a kernel, where the runtime can tell.
inline std::string kernel_name(const void* kernel) {
  const char* name = hipKernelNameRefByPtr(kernel, nullptr);
  return name ? demangled(name) : "a kernel";
}

/// The one place where a kernel is launched, so that no launch goes unchecked. The launch's own answer is
/// looked at, not the runtime's last error, which may be an earlier one of the caller's. The arguments become
/// the types of the kernel's parameters.
/// @throws error that names the kernel, the reason and the caller's line
template <class... P, class... A>
void launch(void (*kernel)(P...), const geometry& g, A... args) {
  if (noted_launches)
    return noted_launches->push_back({kernel_name(reinterpret_cast<const void*>(kernel)), g.grid.x, g.grid.y,
                                      g.block.x, g.shared_bytes, 1});
  const auto* function = reinterpret_cast<const void*>(kernel);
  const auto start = [&](P... values) {
    void* pointers[] = {&values..., nullptr};
    return hipLaunchKernel(function, g.grid, g.block, pointers, g.shared_bytes, g.queue);
  };
  if (const status s = start(static_cast<P>(args)...); s != success) {
    (void)hipGetLastError();
    check(s, ("launch of " + kernel_name(function)).c_str(), g.file, g.line);
  }
}

/// Calls f with the warp width of the current device as a compile-time constant. SIMT_HIP_WARP_SIZE names it
/// where all architectures of the build have the same; else both are compiled.
template <class F>
void with_warp_size(F f) {
#ifdef SIMT_HIP_WARP_SIZE
  f(std::integral_constant<int, SIMT_HIP_WARP_SIZE>());
#else
  int index = 0, width = 0;
  SIMT_CHECK(hipGetDevice(&index));
  SIMT_CHECK(hipDeviceGetAttribute(&width, hipDeviceAttributeWarpSize, index));
  if (width == 64)
    f(std::integral_constant<int, 64>());
  else
    f(std::integral_constant<int, 32>());
#endif
}

// The shuffles. Takes part: every lane of the warp, or the result is undefined. Valid on: every lane.
// Barrier: none. Width is a power of two, at most the warp.

/// Lane `source` of each group of Width lanes gives its value to the whole group.
template <int Width, class T>
__device__ inline T shuffle(T value, int source) {
  return __shfl(value, source, Width);
}
/// The value of the lane whose number differs in the bits of `mask`, within groups of Width lanes.
template <int Width, class T>
__device__ inline T shuffle_xor(T value, int mask) {
  return __shfl_xor(value, mask, Width);
}
/// The value of the lane `delta` higher; the last lanes of a group of Width keep their own.
template <int Width, class T>
__device__ inline T shuffle_down(T value, int delta) {
  return __shfl_down(value, delta, Width);
}
/// Waits for the lanes of the warp, and orders their memory accesses. Takes part: every lane.
__device__ inline void sync_warp() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

/// Adds 1 to a word of global memory in one step, whoever else does, and returns what stood there before.
/// Orders no other access. Good for less than 2^32 - 1 calls.
__device__ inline unsigned fetch_increment(unsigned* p) { return atomicAdd(p, 1u); }

/// 16 bytes, the most that a thread loads or stores at once. Addresses are multiples of 16.
using vector16 = uint4;
/// One load of 16 bytes.
__device__ inline vector16 load_vector(const void* p) { return *static_cast<const vector16*>(p); }
__device__ inline void store_vector(void* p, vector16 v) { *static_cast<vector16*>(p) = v; }

/// The two 16-bit values of a word, the first in the lower half.
template <class T>
__device__ inline void unpack_pair(std::uint32_t bits, float& low, float& high) {
  T pair[2];
  __builtin_memcpy(static_cast<void*>(pair), &bits, 4);
  low = static_cast<float>(pair[0]);
  high = static_cast<float>(pair[1]);
}
/// And back, rounded.
template <class T>
__device__ inline std::uint32_t pack_pair(float low, float high) {
  const T pair[2] = {static_cast<T>(low), static_cast<T>(high)};
  std::uint32_t bits;
  __builtin_memcpy(&bits, pair, 4);
  return bits;
}

/// The larger of the first values, and of the second ones; a number where one of two is a NaN.
template <class T>
__device__ inline std::uint32_t larger_pair(std::uint32_t a, std::uint32_t b) {
  float x[2], y[2];
  unpack_pair<T>(a, x[0], x[1]);
  unpack_pair<T>(b, y[0], y[1]);
  return pack_pair<T>(fmaxf(x[0], y[0]), fmaxf(x[1], y[1]));
}

/// 2^x, to 2 ulp.
__device__ inline float exp2(float x) { return exp2f(x); }

/// A cluster is a group of blocks that run at the same time and can write to each other's shared memory.
/// Here each block is a cluster of its own.
inline int most_cluster_blocks() { return 0; }

/// How many clusters the GPU holds at once: there are none.
template <class... P>
std::int64_t resident_clusters(void (*)(P...), int, int, std::size_t) {
  return 0;
}

/// Launches clusters of one block.
template <class... P, class... A>
void launch_cluster(void (*kernel)(P...), int, const geometry& g, A... args) {
  launch(kernel, g, args...);
}

inline constexpr bool clusters_here = false;  // kernels of clusters compile to nothing
__device__ inline unsigned cluster_id() { return blockIdx.x; }
__device__ inline unsigned cluster_count() { return gridDim.x; }
__device__ inline int cluster_blocks() { return 1; }
__device__ inline int cluster_rank() { return 0; }
__device__ inline void cluster_arrive() {}
__device__ inline void cluster_wait() { __syncthreads(); }
__device__ inline void store_pair(void* p, int, float a, float b) {
  static_cast<float*>(p)[0] = a;
  static_cast<float*>(p)[1] = b;
}

/// The block's dynamic shared memory, as many bytes as the launch asked for, from a multiple of 128 on: a
/// copy of chunks (simt/async.hpp) is slower to a place that is not even a multiple of 32.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char simt_dynamic_shared[];
  return reinterpret_cast<T*>(simt_dynamic_shared);
}

/// Asks the runtime for devices; never throws.
inline device_query query_devices() {
  device_query q;
  const status s = hipGetDeviceCount(&q.count);
  if (s == hipErrorNoDevice) q.count = 0;
  q.ok = s == success || s == hipErrorNoDevice;
  if (!q.ok) q.reason = describe(s);
  (void)hipDriverGetVersion(&q.driver_version);
  (void)hipRuntimeGetVersion(&q.runtime_version);
  (void)hipGetLastError();
  return q;
}

/// Makes device `index` current and describes it. @throws no_device with one sentence when it cannot be used.
inline device find_device(int index) {
  const device_query q = query_devices();
  const std::string problem = device_problem(q, index, "AMD");
  if (!problem.empty()) throw no_device(problem);
  SIMT_CHECK(hipSetDevice(index));
  hipDeviceProp_t p{};
  SIMT_CHECK(hipGetDeviceProperties(&p, index));
  const auto attribute = [index](hipDeviceAttribute_t a) {
    int value = 0;
    if (hipDeviceGetAttribute(&value, a, index) == success) return value;
    (void)hipGetLastError();  // or the next launch would report it as its own
    return 0;
  };
  device d;
  d.name = p.name;
  d.architecture = p.gcnArchName;
  d.index = index;
  d.multiprocessors = p.multiProcessorCount;
  d.warp_size = p.warpSize;
  d.threads_per_multiprocessor = p.maxThreadsPerMultiProcessor;
  d.shared_bytes_per_block = attribute(hipDeviceAttributeMaxSharedMemoryPerBlock);
  d.l2_bytes = p.l2CacheSize;
  d.memory_bytes = p.totalGlobalMem;
  // Clock and bus width do not tell the data rate of HBM3 and GDDR6, so the peak stays unknown here.
  d.driver_version = q.driver_version;
  d.runtime_version = q.runtime_version;
  return d;
}

/// Bytes that can still be allocated on the current device.
inline std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  SIMT_CHECK(hipMemGetInfo(&free, &total));
  return free;
}

/// Times what is put on a stream between start and stop, by device events.
class stopwatch {
 public:
  /// Makes two device events. @throws error if the runtime cannot
  stopwatch() {
    SIMT_CHECK(hipEventCreate(&begin_));
    SIMT_CHECK(hipEventCreate(&end_));
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() {
    (void)hipEventDestroy(begin_);
    (void)hipEventDestroy(end_);
  }
  /// Begins to count when the stream gets here.
  void start(stream queue) { SIMT_CHECK(hipEventRecord(begin_, queue)); }
  /// Waits for the work and returns seconds.
  double stop(stream queue) {
    float milliseconds = 0;
    SIMT_CHECK(hipEventRecord(end_, queue));
    SIMT_CHECK(hipEventSynchronize(end_));
    SIMT_CHECK(hipEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e-3;
  }

 private:
  hipEvent_t begin_{}, end_{};
};

/// Launches recorded once and submitted as one, so that short kernels follow each other without the host.
class recording {
 public:
  /// Records what `enqueue` puts on the stream. It does not run yet.
  template <class F>
  recording(stream queue, F&& enqueue) {
    hipGraph_t graph = nullptr;
    SIMT_CHECK(hipStreamBeginCapture(queue, hipStreamCaptureModeThreadLocal));
    try {
      enqueue();
    } catch (...) {
      (void)hipStreamEndCapture(queue, &graph);
      if (graph) (void)hipGraphDestroy(graph);
      throw;
    }
    SIMT_CHECK(hipStreamEndCapture(queue, &graph));
    const status s = hipGraphInstantiate(&ready_, graph, nullptr, nullptr, 0);
    (void)hipGraphDestroy(graph);
    SIMT_CHECK(s);
  }
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;
  ~recording() {
    if (ready_) (void)hipGraphExecDestroy(ready_);
  }
  /// Submits what was recorded, as one. @throws error if the runtime refuses
  void replay(stream queue) { SIMT_CHECK(hipGraphLaunch(ready_, queue)); }

 private:
  hipGraphExec_t ready_ = nullptr;
};

}  // namespace hip
}  // namespace simt
