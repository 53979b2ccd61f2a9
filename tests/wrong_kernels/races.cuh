#pragma once
// Two threads at one byte, and nothing that orders them. The line of the access that the simulator meets
// second is marked with the kernel's name, the line of the other with the word "other" behind it.
#include "simt/simt.hpp"

// A warp's result is read before the warp is known to have written it.
template <int WarpSize>
__global__ void missing_barrier_wrong(const float* in, float* out) {
  __shared__ float partial[256 / WarpSize];
  const float v = in[threadIdx.x];
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = v;  // FAULT missing_barrier other
  float sum = 0.0f;
  for (int w = 0; w < 256 / WarpSize; ++w) sum += partial[w];  // FAULT missing_barrier
  out[threadIdx.x] = sum;
}
template <int WarpSize>
__global__ void missing_barrier_right(const float* in, float* out) {
  __shared__ float partial[256 / WarpSize];
  const float v = in[threadIdx.x];
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = v;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < 256 / WarpSize; ++w) sum += partial[w];
  out[threadIdx.x] = sum;
}

// The next turn of the loop writes while slower warps still read the last one's value.
__global__ void reused_array_wrong(const float* in, float* out) {
  __shared__ float first;
  for (int turn = 0; turn < 3; ++turn) {
    if (threadIdx.x == 0) first = in[turn];  // FAULT reused_array other
    __syncthreads();
    out[turn * blockDim.x + threadIdx.x] = first;  // FAULT reused_array
  }
}
__global__ void reused_array_right(const float* in, float* out) {
  __shared__ float first;
  for (int turn = 0; turn < 3; ++turn) {
    __syncthreads();
    if (threadIdx.x == 0) first = in[turn];
    __syncthreads();
    out[turn * blockDim.x + threadIdx.x] = first;
  }
}

// Every thread writes what one should; all of them write the same.
__global__ void all_write_one_wrong(const float* in, float* out) {
  __shared__ float maximum;
  maximum = in[0];  // FAULT all_write_one
  __syncthreads();
  out[threadIdx.x] = maximum;
}
__global__ void all_write_one_right(const float* in, float* out) {
  __shared__ float maximum;
  if (threadIdx.x == 0) maximum = in[0];
  __syncthreads();
  out[threadIdx.x] = maximum;
}

// Lanes of a warp are taken to run in step, as GPUs once did.
template <int WarpSize>
__global__ void warp_in_step_wrong(const float* in, float* out) {
  __shared__ float tree[WarpSize];
  const int lane = static_cast<int>(threadIdx.x);
  tree[lane] = in[lane];
  simt::sync_warp();
  for (int half = WarpSize / 2; half > 0; half /= 2)
    if (lane < half) tree[lane] += tree[lane + half];  // FAULT warp_in_step
  __syncthreads();
  out[lane] = tree[0];
}
template <int WarpSize>
__global__ void warp_in_step_right(const float* in, float* out) {
  __shared__ float tree[WarpSize];
  const int lane = static_cast<int>(threadIdx.x);
  tree[lane] = in[lane];
  simt::sync_warp();
  for (int half = WarpSize / 2; half > 0; half /= 2) {
    if (lane < half) tree[lane] += tree[lane + half];
    simt::sync_warp();
  }
  out[lane] = tree[0];
}

// Each block leaves its result in the same place.
__global__ void blocks_share_a_result_wrong(const float* in, float* out) {
  if (threadIdx.x == 0) out[0] = in[blockIdx.x];  // FAULT blocks_share_a_result
}
__global__ void blocks_share_a_result_right(const float* in, float* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = in[blockIdx.x];
}

// A block reads its neighbour's first element, which the neighbour overwrites.
__global__ void neighbour_in_place_wrong(float* p, float*) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float mine = p[i];
  float next = mine;
  if (i + 1 < gridDim.x * blockDim.x) next = p[i + 1];  // FAULT neighbour_in_place other
  __syncthreads();
  p[i] = mine + next;  // FAULT neighbour_in_place
}
__global__ void neighbour_in_place_right(float* p, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = p[i] + (i + 1 < gridDim.x * blockDim.x ? p[i + 1] : p[i]);
}

// A row is shifted in place: whether a thread sees its neighbour's old value is chance.
__global__ void shift_in_place_wrong(float* p, float*) {
  const unsigned i = threadIdx.x;
  const float next = i + 1 < blockDim.x ? p[i + 1] : 0.0f;  // FAULT shift_in_place other
  p[i] = next;  // FAULT shift_in_place
}
__global__ void shift_in_place_right(float* p, float*) {
  const unsigned i = threadIdx.x;
  const float next = i + 1 < blockDim.x ? p[i + 1] : 0.0f;
  __syncthreads();
  p[i] = next;
}
