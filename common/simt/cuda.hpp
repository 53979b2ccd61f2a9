#pragma once
/// @file
/// The portability layer for CUDA. hip.hpp and sim.hpp define the same names in the same order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <atomic>
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
  if (s == cudaErrorMemoryAllocation) return "Use fewer rows or columns, or free memory on the GPU.";
  if (s == cudaErrorNoKernelImageForDevice)
    return "Build for this GPU: cmake -B build -DCMAKE_CUDA_ARCHITECTURES=<its compute capability, such as "
           "90>.";
  if (s == cudaErrorInvalidConfiguration || s == cudaErrorLaunchOutOfResources)
    return "Launch fewer threads a block or ask for less shared memory.";
  return "Run the same under compute-sanitizer to find the line, or on the simulator.";
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
/// Fills memory with zeros, in the order of the stream: a part of a launch, so not where launches are noted.
inline status zero(void* p, std::size_t bytes, stream queue) {
  return noted_launches ? success : cudaMemsetAsync(p, 0, bytes, queue);
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
  bool begins_early = false;  ///< see early()
  /// `file` and `line` name the caller by themselves.
  geometry(dim3 grid, dim3 block, std::size_t shared_bytes = 0, stream queue = nullptr,
           const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : grid(grid), block(block), shared_bytes(shared_bytes), queue(queue), file(file), line(line) {}
  /// The same launch, which may begin before the one before it in the stream has ended, from the point on
  /// where all blocks of that one have called begin_next_launch() or ended (programmatic dependent launch).
  /// The kernel calls wait_for_last_launch() before it reads what that one writes, before it writes what that
  /// one reads or writes, and before it lets the next launch begin, which may count on all that came before.
  /// Every block has to call it, as the launch behind this one waits for no other. Before compute capability
  /// 9.0 the launch does not begin early.
  geometry early() const {
    geometry g = *this;
    g.begins_early = true;
    return g;
  }
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

inline int most_cluster_blocks();

/// What the runtime wants to know of a launch, in clusters of `cluster` blocks if not 0.
class launch_request {
 public:
  /// Not in clusters where `cluster` is 0.
  explicit launch_request(const geometry& g, int cluster = 0) {
    configuration_.gridDim = g.grid;
    configuration_.blockDim = g.block;
    configuration_.dynamicSmemBytes = g.shared_bytes;
    configuration_.stream = g.queue;
    if (cluster > 0) {
      cudaLaunchAttribute& a = next(cudaLaunchAttributeClusterDimension);
      a.val.clusterDim.x = static_cast<unsigned>(cluster);
      a.val.clusterDim.y = a.val.clusterDim.z = 1;
    }
    if (g.begins_early && most_cluster_blocks() > 0)
      next(cudaLaunchAttributeProgrammaticStreamSerialization).val.programmaticStreamSerializationAllowed = 1;
  }
  launch_request(const launch_request&) = delete;
  launch_request& operator=(const launch_request&) = delete;
  /// As long as this object lives.
  const cudaLaunchConfig_t& configuration() const { return configuration_; }

 private:
  cudaLaunchAttribute& next(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& a = attributes_[configuration_.numAttrs++];
    a.id = id;
    configuration_.attrs = attributes_;
    return a;
  }
  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t configuration_ = {};
};

/// Lets a kernel have more dynamic shared memory than it gets unasked.
inline void allow_shared(const void* kernel, std::size_t bytes) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes > without_asking)
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes));  // refused: the launch will say so
}

/// The one place where a kernel is launched, so that no launch goes unchecked. The launch's own answer is
/// looked at, not the runtime's last error, which may be an earlier one of the caller's.
template <class... P>
void launch_checked(const launch_request& request, const geometry& g, void (*kernel)(P...), P... args) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  allow_shared(function, g.shared_bytes);
  if (const status s = cudaLaunchKernelEx(&request.configuration(), kernel, args...); s != success) {
    (void)cudaGetLastError();
    check(s, ("launch of " + kernel_name(function)).c_str(), g.file, g.line);
  }
}

/// Launches a kernel; the arguments become the types of its parameters.
/// @throws error that names the kernel, the reason and the caller's line
template <class... P, class... A>
void launch(void (*kernel)(P...), const geometry& g, A... args) {
  if (noted_launches)
    return noted_launches->push_back({kernel_name(reinterpret_cast<const void*>(kernel)), g.grid.x, g.grid.y,
                                      g.block.x, g.shared_bytes, 1});
  launch_checked(launch_request(g), g, kernel, static_cast<P>(args)...);
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

/// Adds 1 to a word of global memory in one step, whoever else does, and returns what stood there before.
/// Orders no other access. Good for less than 2^32 - 1 calls.
// With atomicAdd, or without a limit, one lane adds for all, which then wait for what it got (ptxas 13.0).
__device__ inline unsigned fetch_increment(unsigned* p) { return atomicInc(p, 0xfffffffeu); }

/// 16 bytes, the most that a thread loads or stores at once. Addresses are multiples of 16.
using vector16 = uint4;
/// One load of 16 bytes.
__device__ inline vector16 load_vector(const void* p) { return *static_cast<const vector16*>(p); }
/// One instruction: the compiler may split the assignment of a vector type into four stores.
__device__ inline void store_vector(void* p, vector16 v) { __stwb(static_cast<uint4*>(p), v); }

/// The two 16-bit values of a word, the first in the lower half.
template <class T>
__device__ inline void unpack_pair(std::uint32_t bits, float& low, float& high) {
  if constexpr (std::is_same_v<T, half>) {
    __half2 pair;
    __builtin_memcpy(&pair, &bits, 4);
    low = __low2float(pair);
    high = __high2float(pair);
  } else {
    low = __uint_as_float(bits << 16);  // bfloat16 is the upper half of fp32
    high = __uint_as_float(bits & 0xffff0000u);
  }
}
/// And back, rounded.
template <class T>
__device__ inline std::uint32_t pack_pair(float low, float high) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, half>) {
    const __half2 pair = __floats2half2_rn(low, high);
    __builtin_memcpy(&bits, &pair, 4);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    __builtin_memcpy(&bits, &pair, 4);
  }
  return bits;
}

/// The larger of the first values, and of the second ones; a number where one of two is a NaN.
template <class T>
__device__ inline std::uint32_t larger_pair(std::uint32_t a, std::uint32_t b) {
  using pair = std::conditional_t<std::is_same_v<T, half>, __half2, __nv_bfloat162>;
  pair x, y;
  __builtin_memcpy(&x, &a, 4);
  __builtin_memcpy(&y, &b, 4);
  x = __hmax2(x, y);
  __builtin_memcpy(&a, &x, 4);
  return a;
}

/// 2^x, to 2 ulp; a result below the smallest normal number is 0.
__device__ inline float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Nothing, to be asked what for it was compiled.
template <int>
__global__ void compiled_like_all() {}

/// A cluster is a group of blocks that run at the same time and can write to each other's shared memory.
/// Blocks of a cluster, at most; 0: this GPU has no clusters, which came with compute capability 9.0, or this
/// program was compiled for one that has none. Asked for once a device, and remembered.
inline int most_cluster_blocks() {
  static std::atomic<int> known[64] = {};  // of each device: 1 more than the answer, once it was asked for
  int device = 0, has_clusters = 0, major = 0;
  SIMT_CHECK(cudaGetDevice(&device));
  if (device < 64 && known[device] > 0) return known[device] - 1;
  cudaFuncAttributes built;
  SIMT_CHECK(cudaFuncGetAttributes(&built, compiled_like_all<0>));
  constexpr int first_with_clusters = 90;
  SIMT_CHECK(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, device));
  SIMT_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  const bool some = has_clusters && built.ptxVersion >= first_with_clusters;
  const int most = !some ? 0 : major == 9 || major == 10 ? 16 : 8;
  if (device < 64) known[device] = most + 1;
  return most;
}

/// Allows a kernel clusters of `blocks` blocks.
inline void allow_cluster(const void* kernel, int blocks) {
  constexpr int portable = 8;  // more have to be asked for
  if (blocks > portable)
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed,
                               1);  // refused: the launch will say so
}

/// How many clusters of `blocks` blocks, of `threads` threads and `bytes` of dynamic shared memory each, the
/// GPU holds at once.
template <class... P>
std::int64_t resident_clusters(void (*kernel)(P...), int blocks, int threads, std::size_t bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  allow_shared(function, bytes);
  allow_cluster(function, blocks);
  const launch_request one({static_cast<unsigned>(blocks), static_cast<unsigned>(threads), bytes}, blocks);
  int clusters = 0;
  SIMT_CHECK(cudaOccupancyMaxActiveClusters(&clusters, function, &one.configuration()));
  return clusters;
}

/// Launches clusters of `blocks` blocks; the grid is a multiple of that.
template <class... P, class... A>
void launch_cluster(void (*kernel)(P...), int blocks, const geometry& g, A... args) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (noted_launches)
    return noted_launches->push_back(
        {kernel_name(function), g.grid.x, g.grid.y, g.block.x, g.shared_bytes, blocks});
  allow_cluster(function, blocks);
  launch_checked(launch_request(g, blocks), g, kernel, static_cast<P>(args)...);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
/// Is this code for a GPU that clusters can be launched on?
inline constexpr bool clusters_here = false;
// Older GPUs: each block is a cluster of its own. What the functions do is said below.
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
#else
/// Is this code for a GPU that clusters can be launched on?
inline constexpr bool clusters_here = true;
/// The number of this cluster among all.
__device__ inline unsigned cluster_id() {
  unsigned n;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(n));
  return n;
}
/// Clusters of the launch.
__device__ inline unsigned cluster_count() {
  unsigned n;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(n));
  return n;
}
/// Blocks of this cluster.
__device__ inline int cluster_blocks() {
  int n;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  return n;
}
/// The number of this block among them, from 0.
__device__ inline int cluster_rank() {
  int n;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(n));
  return n;
}
/// The first half of a cluster's barrier. Takes part: every thread, which may then do what concerns no other
/// block.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
/// The second half: waits until every thread of the cluster has arrived.
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
/// Stores 8 bytes where block `rank` of the cluster has what is at p in this block's shared memory.
__device__ inline void store_pair(void* p, int rank, float a, float b) {
  const auto here = static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(a), "f"(b) : "memory");
}
#endif

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
  d.cluster_blocks = most_cluster_blocks();
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
