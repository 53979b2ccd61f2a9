#pragma once
/// @file
/// What the threads of a block do together. Each helper says who takes part, where its result is valid, and
/// how many barriers it holds.
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// Maximum as a monoid: an associative operation and the value that changes nothing.
struct maximum {
  /// -inf, which loses against everything.
  static __device__ float identity() { return -INFINITY; }
  /// The larger; a NaN loses, as in fmaxf().
  static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

/// The sum as a monoid.
struct sum {
  /// 0, which adds nothing.
  static __device__ float identity() { return 0.0f; }
  /// a + b, rounded once.
  static __device__ float combine(float a, float b) { return a + b; }
};

/// Threads that a block may have, on every GPU.
inline constexpr int most_threads = 1024;

/// Combines one value of each thread within groups of Group neighbouring threads: lanes by shuffles, then the
/// warps of a group through shared memory. Takes part: every thread of the block. Valid on: every thread.
/// Barriers: two if a group is wider than a warp, else none.
template <class Op, int WarpSize, int Group>
__device__ float group_reduce(float value) {
  constexpr int lanes = Group < WarpSize ? Group : WarpSize;
  for (int mask = lanes / 2; mask > 0; mask /= 2)
    value = Op::combine(value, simt::shuffle_xor<lanes>(value, mask));
  if constexpr (Group > WarpSize) {
    static_assert(Group % WarpSize == 0, "a shuffle needs whole warps");
    __shared__ float partial[most_threads / WarpSize];
    __syncthreads();  // readers of the last call are done with partial[]
    if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = value;
    __syncthreads();  // partial[] is complete
    const float* mine = partial + threadIdx.x / Group * (Group / WarpSize);
    value = Op::identity();
    for (int warp = 0; warp < Group / WarpSize; ++warp) value = Op::combine(value, mine[warp]);
  }
  return value;
}

/// The same over a whole block of Threads.
template <class Op, int WarpSize, int Threads>
__device__ float block_reduce(float value) {
  return group_reduce<Op, WarpSize, Threads>(value);
}

/// One thread loads *p and tells the others, so that the block requests one element. Lanes that load the same
/// address share a request and a sector anyway, and cost no barrier: that is the usual code. This one can be
/// held to a formula. Takes part: every thread of the block. Valid on: every thread. Barriers: two.
__device__ inline float block_load(const float* p) {
  __shared__ float value;
  __syncthreads();  // readers of the last call are done with value
  if (threadIdx.x == 0) value = *p;
  __syncthreads();
  return value;
}

}  // namespace
}  // namespace softmax
