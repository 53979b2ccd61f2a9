#pragma once
// Barriers and shuffles that not all reach, and code that takes a warp to have 32 lanes.
#include "simt/simt.hpp"

__global__ void barrier_in_branch_wrong(float* out, int n) {
  __shared__ float held[256];
  if (static_cast<int>(threadIdx.x) < n) {
    held[threadIdx.x] = 1.0f;
    __syncthreads();  // FAULT barrier_in_branch
    out[threadIdx.x] = held[n - 1 - threadIdx.x];
  }
}
__global__ void barrier_in_branch_right(float* out, int n) {
  __shared__ float held[256];
  if (static_cast<int>(threadIdx.x) < n) held[threadIdx.x] = 1.0f;
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) out[threadIdx.x] = held[n - 1 - threadIdx.x];
}

__global__ void early_return_wrong(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();  // FAULT early_return
  out[threadIdx.x] = 1.0f;
}
__global__ void early_return_right(float* out, int n) {
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < n) out[threadIdx.x] = 1.0f;
}

// The lanes beyond the end of the row stay away from the shuffle.
template <int WarpSize>
__global__ void masked_shuffle_wrong(const float* in, float* out, int n) {
  float v = 0.0f;
  if (static_cast<int>(threadIdx.x) < n) {
    v = in[threadIdx.x];
    for (int mask = WarpSize / 2; mask > 0; mask /= 2)
      v += simt::shuffle_xor<WarpSize>(v, mask);  // FAULT masked_shuffle
    out[threadIdx.x] = v;
  }
}
template <int WarpSize>
__global__ void masked_shuffle_right(const float* in, float* out, int n) {
  float v = static_cast<int>(threadIdx.x) < n ? in[threadIdx.x] : 0.0f;
  for (int mask = WarpSize / 2; mask > 0; mask /= 2) v += simt::shuffle_xor<WarpSize>(v, mask);
  if (static_cast<int>(threadIdx.x) < n) out[threadIdx.x] = v;
}

// 64 lanes taken for granted: too wide for a warp of 32.
__global__ void literal_64_wrong(const float* in, float* out) {
  float v = in[threadIdx.x];
  for (int mask = 32; mask > 0; mask /= 2) v += simt::shuffle_xor<64>(v, mask);  // FAULT literal_64
  out[threadIdx.x] = v;
}

// 32 lanes taken for granted: of 64 lanes, half is never combined. No access is wrong; the result is.
template <int WarpSize>
__global__ void literal_32_wrong(const float* in, float* out) {
  __shared__ float partial[256 / WarpSize];
  float v = in[threadIdx.x];
  for (int mask = 16; mask > 0; mask /= 2) v += simt::shuffle_xor<32>(v, mask);
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = v;
  __syncthreads();
  v = 0.0f;
  for (int w = 0; w < 256 / WarpSize; ++w) v += partial[w];
  out[threadIdx.x] = v;
}
template <int WarpSize>
__global__ void literal_32_right(const float* in, float* out) {
  __shared__ float partial[256 / WarpSize];
  float v = in[threadIdx.x];
  for (int mask = WarpSize / 2; mask > 0; mask /= 2) v += simt::shuffle_xor<WarpSize>(v, mask);
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = v;
  __syncthreads();
  v = 0.0f;
  for (int w = 0; w < 256 / WarpSize; ++w) v += partial[w];
  out[threadIdx.x] = v;
}

// The same in the loop that reads the partial results: half of them were written by nobody.
template <int WarpSize>
__global__ void partials_of_32_wrong(const float* in, float* out) {
  __shared__ float partial[256 / 32];
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = in[threadIdx.x];
  __syncthreads();
  float v = 0.0f;
  for (int w = 0; w < 256 / 32; ++w) v += partial[w];  // FAULT partials_of_32
  out[threadIdx.x] = v;
}
