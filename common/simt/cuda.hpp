#pragma once
/// @file
/// The portability layer for CUDA. hip.hpp and sim.hpp define the same names in the same order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "simt/device.hpp"
#include "simt/error.hpp"

namespace simt {
inline namespace cuda {

/// 16-bit float of IEEE 754; computed with as float.
using half = __half;
/// 16-bit float with the exponent of fp32; computed with as float.
using bfloat16 = __nv_bfloat16;

/// What a call of the runtime returns.
using status = cudaError_t;
/// The status of a call that went well.
inline constexpr status success = cudaSuccess;
/// Name and meaning of a status, as the runtime has them.
inline std::string describe(status s) {
  return std::string(cudaGetErrorName(s)) + ", " + cudaGetErrorString(s);
}

/// What a user can do about a failed call.
inline std::string advice(status s) {
  if (s == cudaErrorMemoryAllocation) return "Use fewer --rows or --cols, or free memory on the GPU.";
  if (s == cudaErrorNoKernelImageForDevice)
    return "Build for this GPU: cmake -B build -DCMAKE_CUDA_ARCHITECTURES=<its compute capability, such as "
           "90>.";
  if (s == cudaErrorInvalidConfiguration || s == cudaErrorLaunchOutOfResources)
    return "Launch fewer threads a block or ask for less shared memory.";
  return "Run the same command under compute-sanitizer to find the line, or with --device sim.";
}

/// @throws error with `call`, its line, the reason and what to do, unless s is success
inline void check(status s, const char* call, const char* file, int line) {
  if (s != success) throw error(error_text(call, describe(s), advice(s), file, line));
}

/// A queue of work on the device; nullptr is the default one.
using stream = cudaStream_t;
/// Makes a stream that must be destroyed.
inline status create_stream(stream* queue) { return cudaStreamCreate(queue); }
/// Ends a stream; what is queued still runs.
inline status destroy_stream(stream queue) { return cudaStreamDestroy(queue); }

/// Device memory of `bytes` bytes, aligned to 256 or more, uninitialised. The name is for the simulator's
/// reports.
inline status allocate(void** p, std::size_t bytes, const char*) { return cudaMalloc(p, bytes); }
/// Gives back what allocate() gave; nullptr is allowed.
inline status release(void* p) { return cudaFree(p); }
/// Copies `bytes` bytes and waits for it.
inline status copy_to_device(void* to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice);
}
/// Copies `bytes` bytes, after all that was launched, and waits for it.
inline status copy_to_host(void* to, const void* from, std::size_t bytes) {
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
}
/// Copies `bytes` bytes between buffers of the device, in the order of the stream.
inline status copy_on_device(void* to, const void* from, std::size_t bytes, stream queue) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, queue);
}
/// Fills memory with 0xff, which is a NaN in every dtype: what no kernel wrote cannot look like a result.
inline status poison(void* p, std::size_t bytes) { return cudaMemset(p, 0xff, bytes); }
/// Waits for all that was launched, and returns its first error.
inline status synchronize() { return cudaDeviceSynchronize(); }

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
};

/// The name of a kernel, where the runtime can tell.
inline std::string kernel_name(const void* kernel) {
#if CUDART_VERSION >= 12030
  const char* name = nullptr;
  if (cudaFuncGetName(&name, kernel) == success && name) return demangled(name);
  (void)cudaGetLastError();
#else
  (void)kernel;
#endif
  return "a kernel";
}

/// The one place where a kernel is launched, so that no launch goes unchecked.
template <class... P, class... A>
void launch(void (*kernel)(P...), const geometry& g, A... args) {
  constexpr std::size_t without_asking = 48 * 1024;  // more dynamic shared memory has to be asked for
  if (g.shared_bytes > without_asking)
    (void)cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(g.shared_bytes));  // refused: the launch will say so
  kernel<<<g.grid, g.block, g.shared_bytes, g.queue>>>(static_cast<P>(args)...);
  if (const status s = cudaGetLastError(); s != success)
    check(s, ("launch of " + kernel_name(reinterpret_cast<const void*>(kernel))).c_str(), g.file, g.line);
}

/// Calls f with the warp width of the current device as a compile-time constant.
template <class F>
void with_warp_size(F f) {
  f(std::integral_constant<int, 32>());
}

// The shuffles. Takes part: every lane of the warp, or the result is undefined. Valid on: every lane.
// Barrier: none. Width is a power of two, at most the warp.

/// Lane `source` of each group of Width lanes gives its value to the whole group.
template <int Width, class T>
__device__ inline T shuffle(T value, int source) {
  return __shfl_sync(0xffffffffu, value, source, Width);
}
/// The value of the lane whose number differs in the bits of `mask`, within groups of Width lanes.
template <int Width, class T>
__device__ inline T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask, Width);
}
/// The value of the lane `delta` higher; the last lanes of a group of Width keep their own.
template <int Width, class T>
__device__ inline T shuffle_down(T value, int delta) {
  return __shfl_down_sync(0xffffffffu, value, delta, Width);
}
/// Waits for the lanes of the warp, and orders their memory accesses. Takes part: every lane.
__device__ inline void sync_warp() { __syncwarp(); }

/// The block's dynamic shared memory, as many bytes as the launch asked for.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char simt_dynamic_shared[];
  return reinterpret_cast<T*>(simt_dynamic_shared);
}

/// Asks the runtime for devices; never throws.
inline device_query query_devices() {
  device_query q;
  const status s = cudaGetDeviceCount(&q.count);
  if (s == cudaErrorNoDevice) q.count = 0;
  q.ok = s == success || s == cudaErrorNoDevice;
  if (!q.ok) q.reason = describe(s);
  cudaDriverGetVersion(&q.driver_version);
  cudaRuntimeGetVersion(&q.runtime_version);
  cudaGetLastError();
  return q;
}

/// Makes device `index` current and describes it. @throws no_device with one sentence when it cannot be used.
inline device find_device(int index) {
  const device_query q = query_devices();
  const std::string problem = device_problem(q, index, "NVIDIA");
  if (!problem.empty()) throw no_device(problem);
  SIMT_CHECK(cudaSetDevice(index));
  cudaDeviceProp p{};
  SIMT_CHECK(cudaGetDeviceProperties(&p, index));
  const auto attribute = [index](cudaDeviceAttr a) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, a, index) == success) return value;
    (void)cudaGetLastError();  // or the next launch would report it as its own
    return 0;
  };
  device d;
  d.name = p.name;
  d.architecture = "sm_" + std::to_string(p.major) + std::to_string(p.minor);
  d.index = index;
  d.multiprocessors = p.multiProcessorCount;
  d.warp_size = p.warpSize;
  d.threads_per_multiprocessor = p.maxThreadsPerMultiProcessor;
  d.shared_bytes_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  d.l2_bytes = p.l2CacheSize;
  d.memory_bytes = p.totalGlobalMem;
  d.peak_bytes_per_second =
      2.0 * 1e3 * attribute(cudaDevAttrMemoryClockRate) * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  d.driver_version = q.driver_version;
  d.runtime_version = q.runtime_version;
  return d;
}

/// Bytes that can still be allocated on the current device.
inline std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  SIMT_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

/// Times what is put on a stream between start and stop, by device events.
class stopwatch {
 public:
  /// Makes two device events. @throws error if the runtime cannot
  stopwatch() {
    SIMT_CHECK(cudaEventCreate(&begin_));
    SIMT_CHECK(cudaEventCreate(&end_));
  }
  stopwatch(const stopwatch&) = delete;
  stopwatch& operator=(const stopwatch&) = delete;
  ~stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  /// Begins to count when the stream gets here.
  void start(stream queue) { SIMT_CHECK(cudaEventRecord(begin_, queue)); }
  /// Waits for the work and returns seconds.
  double stop(stream queue) {
    float milliseconds = 0;
    SIMT_CHECK(cudaEventRecord(end_, queue));
    SIMT_CHECK(cudaEventSynchronize(end_));
    SIMT_CHECK(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e-3;
  }

 private:
  cudaEvent_t begin_{}, end_{};
};

/// Launches recorded once and submitted as one, so that short kernels follow each other without the host.
class recording {
 public:
  /// Records what `enqueue` puts on the stream. It does not run yet.
  template <class F>
  recording(stream queue, F&& enqueue) {
    cudaGraph_t graph = nullptr;
    SIMT_CHECK(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal));
    try {
      enqueue();
    } catch (...) {
      (void)cudaStreamEndCapture(queue, &graph);
      if (graph) (void)cudaGraphDestroy(graph);
      throw;
    }
    SIMT_CHECK(cudaStreamEndCapture(queue, &graph));
    const status s = cudaGraphInstantiateWithFlags(&ready_, graph, 0);
    (void)cudaGraphDestroy(graph);
    SIMT_CHECK(s);
  }
  recording(const recording&) = delete;
  recording& operator=(const recording&) = delete;
  ~recording() {
    if (ready_) (void)cudaGraphExecDestroy(ready_);
  }
  /// Submits what was recorded, as one. @throws error if the runtime refuses
  void replay(stream queue) { SIMT_CHECK(cudaGraphLaunch(ready_, queue)); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace cuda
}  // namespace simt
