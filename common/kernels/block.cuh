#pragma once
/// @file
/// What the threads of a block do together. Each helper says who takes part, where its result is valid, and
/// how many barriers it holds.
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// Maximum as a monoid: an associative operation and the value that changes nothing.
struct maximum {
  static __device__ float identity() { return -INFINITY; }
  static __device__ float combine(float a, float b) { return fmaxf(a, b); }
};

struct sum {
  static __device__ float identity() { return 0.0f; }
  static __device__ float combine(float a, float b) { return a + b; }
};

/// Combines one value of each thread: lanes by shuffles, then warps through shared memory.
/// Takes part: every thread of a block of Threads. Valid on: every thread. Barriers: two.
template <class Op, int WarpSize, int Threads>
__device__ float block_reduce(float value) {
  static_assert(Threads % WarpSize == 0, "a shuffle needs whole warps");
  __shared__ float partial[Threads / WarpSize];
  for (int mask = WarpSize / 2; mask > 0; mask /= 2)
    value = Op::combine(value, simt::shuffle_xor<WarpSize>(value, mask));
  __syncthreads();  // readers of the last call are done with partial[]
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = value;
  __syncthreads();  // partial[] is complete
  value = Op::identity();
  for (int warp = 0; warp < Threads / WarpSize; ++warp) value = Op::combine(value, partial[warp]);
  return value;
}

/// One thread loads *p and tells the others: one element of traffic instead of one a thread.
/// Takes part: every thread of the block. Valid on: every thread. Barriers: two.
__device__ inline float block_load(const float* p) {
  __shared__ float value;
  __syncthreads();  // readers of the last call are done with value
  if (threadIdx.x == 0) value = *p;
  __syncthreads();
  return value;
}

}  // namespace
}  // namespace softmax
