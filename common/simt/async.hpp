#pragma once
/// @file
/// Waiting for data in place of threads, as sm_90 can: barriers in shared memory that count the bytes which
/// arrive (PTX: mbarrier), copies of whole chunks from global to shared memory (cp.async.bulk), and stores
/// into another block of the cluster that arrive at such a barrier (st.async); asking the L2 cache for what
/// will be loaded (cp.async.bulk.prefetch); and the wait of a launch that begins early, for the one before
/// it. Source: PTX ISA 8.5; from CUDA 12.1 on. Older GPUs and AMD's have nothing like it; there, what uses it
/// compiles and is never launched, but for that wait and the prefetch, which do nothing. In the simulator
/// these two move nothing either, but a prefetch of what is no buffer is found, and a wait that is missing.
#include <cstdint>

#if defined(SIMT_BACKEND_CUDA)
#include "simt/cuda.hpp"
#elif defined(SIMT_BACKEND_HIP)
#include "simt/hip.hpp"
#else
#include "simt/sim.hpp"
#endif

#if defined(SIMT_BACKEND_CUDA) || defined(SIMT_BACKEND_HIP)
namespace simt {

struct alignas(8) transaction_barrier {
  std::uint64_t state;
};

// What each does is said at the simulator's, below.
#if defined(SIMT_BACKEND_CUDA) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900)
__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void barrier_init(transaction_barrier& b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&b)), "r"(arrivals) : "memory");
}
__device__ inline void barrier_publish() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void barrier_arrive_expect(transaction_barrier& b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&b)), "r"(bytes)
               : "memory");
}
__device__ inline void barrier_arrive(transaction_barrier& b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&b)) : "memory");
}
__device__ inline void barrier_wait(transaction_barrier& b, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n"
        "  .reg .pred done;\n"
        "  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(&b)), "r"(parity)
        : "memory");
}
__device__ inline void barrier_wait_cluster(transaction_barrier& b, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n"
        "  .reg .pred done;\n"
        "  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, done;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(&b)), "r"(parity)
        : "memory");
}

__device__ inline void copy_chunk(void* to, const void* from, int bytes, transaction_barrier& b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&b))
      : "memory");
}
__device__ inline void prefetch(const void* p, std::int64_t bytes) {
  constexpr std::uintptr_t line = 128;
  const auto begin = reinterpret_cast<std::uintptr_t>(p), first = begin / line * line;
  const std::uintptr_t size = (begin + static_cast<std::uintptr_t>(bytes)) / line * line - first;
  if (size > 0)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(first), "r"(static_cast<unsigned>(size)));
}
__device__ inline void send_pair(void* p, transaction_barrier& barrier, int rank, float a, float b) {
  asm volatile(
      "{\n"
      "  .reg .b32 value, counted;\n"
      "  mapa.shared::cluster.u32 value, %0, %2;\n"
      "  mapa.shared::cluster.u32 counted, %1, %2;\n"
      "  st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [value], {%3, %4}, [counted];\n"
      "}" ::"r"(shared_address(p)),
      "r"(shared_address(&barrier)), "r"(rank), "f"(a), "f"(b)
      : "memory");
}

__device__ inline void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ inline void begin_next_launch() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ inline void wait_for_last_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ inline void barrier_init(transaction_barrier&, int) {}
__device__ inline void barrier_publish() {}
__device__ inline void barrier_arrive_expect(transaction_barrier&, int) {}
__device__ inline void barrier_arrive(transaction_barrier&) {}
__device__ inline void barrier_wait(transaction_barrier&, unsigned) {}
__device__ inline void barrier_wait_cluster(transaction_barrier&, unsigned) {}
__device__ inline void copy_chunk(void*, const void*, int, transaction_barrier&) {}
__device__ inline void prefetch(const void*, std::int64_t) {}
__device__ inline void send_pair(void*, transaction_barrier&, int, float, float) {}
__device__ inline void cluster_arrive_relaxed() {}
__device__ inline void begin_next_launch() {}
__device__ inline void wait_for_last_launch() {}
#endif

}  // namespace simt
#else
namespace simt {
inline namespace sim {

/// A barrier in shared memory. A phase ends when all its arrivals and all its bytes have come; phases are
/// counted from 0, and the parity of a phase is its number modulo 2.
struct alignas(8) transaction_barrier {
  std::uint64_t state;  ///< not looked at: the simulator keeps its own
};

/// Sets up a barrier of `arrivals` arrivals a phase, at least 1. One thread; others may use it after
/// barrier_publish() by that thread and a barrier of the cluster, or of the block if no other block does.
void barrier_init(transaction_barrier& b, int arrivals, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());
/// Makes the barriers that the thread has set up known to other blocks and to copies. A fence.
void barrier_publish();

/// Arrives, and adds to the bytes that the phase waits for.
void barrier_arrive_expect(transaction_barrier& b, int bytes, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE());
/// Arrives. What the thread has read before may be overwritten by those who wait.
void barrier_arrive(transaction_barrier& b, const char* file = __builtin_FILE(), int line = __builtin_LINE());
/// Waits for the end of the phase of this parity; a new barrier counts as if one of parity 1 had ended. What
/// copy_chunk() brought for the phase can be read then.
void barrier_wait(transaction_barrier& b, unsigned parity, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE());
/// As barrier_wait(), and what other blocks sent for the phase can be read too.
inline void barrier_wait_cluster(transaction_barrier& b, unsigned parity, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  barrier_wait(b, parity, file, line);
}

/// Begins to copy `bytes` bytes, a positive multiple of 16, from global to shared memory, both multiples
/// of 16. They are counted at b as they arrive.
void copy_chunk(void* to, const void* from, int bytes, transaction_barrier& b,
                const char* file = __builtin_FILE(), int line = __builtin_LINE());
/// Asks for what is in global memory from p on to come to the L2 cache, and waits for nothing. Bytes: from 1
/// to 2^31. Whole lines of 128 bytes come: that in which p lies, but not one that only begins before the end,
/// which whoever asks for what follows asks for. It is right at any time: what is stored later replaces what
/// has come.
void prefetch(const void* p, std::int64_t bytes, const char* file = __builtin_FILE(),
              int line = __builtin_LINE());
/// Stores two values where block `rank` of the cluster has what is at p in this one, and counts their 8 bytes
/// at the barrier that is there what `barrier` is here. p is a multiple of 8.
void send_pair(void* p, transaction_barrier& barrier, int rank, float a, float b,
               const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// The first half of a cluster's barrier, as cluster_arrive(), but it orders no memory accesses.
void cluster_arrive_relaxed(const char* file = __builtin_FILE(), int line = __builtin_LINE());

/// Where the next launch was begun early: it may begin as soon as every block of this one has come here. That
/// launch counts on all that came before this one, so a thread waits for it before it comes here.
void begin_next_launch(const char* file = __builtin_FILE(), int line = __builtin_LINE());
/// Waits until the launch before has ended, and what it stored can be read. Holds for the thread, and for the
/// whole block behind its next __syncthreads().
void wait_for_last_launch();

}  // namespace sim
}  // namespace simt
#endif
