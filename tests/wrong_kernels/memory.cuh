#pragma once
// Accesses that are wrong by themselves.
#include "simt/simt.hpp"

// One element too many in every row: the last row ends where the buffer does.
__global__ void off_by_one_wrong(const float* x, float* y, int cols) {
  float sum = 0.0f;
  for (int col = static_cast<int>(threadIdx.x); col <= cols; col += static_cast<int>(blockDim.x))
    sum += x[blockIdx.x * cols + col];  // FAULT off_by_one
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void off_by_one_right(const float* x, float* y, int cols) {
  float sum = 0.0f;
  for (int col = static_cast<int>(threadIdx.x); col < cols; col += static_cast<int>(blockDim.x))
    sum += x[blockIdx.x * cols + col];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// 32 entries are added up, whatever the number of warps that wrote one.
template <int WarpSize>
__global__ void unwritten_partial_wrong(const float* in, float* out) {
  __shared__ float partial[32];
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = in[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (float p : partial) sum += p;  // FAULT unwritten_partial
  out[threadIdx.x] = sum;
}
template <int WarpSize>
__global__ void unwritten_partial_right(const float* in, float* out) {
  __shared__ float partial[32];
  if (threadIdx.x < 32) partial[threadIdx.x] = 0.0f;
  __syncthreads();
  if (threadIdx.x % WarpSize == 0) partial[threadIdx.x / WarpSize] = in[threadIdx.x];
  __syncthreads();
  float sum = 0.0f;
  for (float p : partial) sum += p;
  out[threadIdx.x] = sum;
}

// Scratch memory holds what was there before: nothing.
__global__ void unwritten_workspace_wrong(float* workspace, float* out) {
  out[threadIdx.x] = workspace[threadIdx.x];  // FAULT unwritten_workspace
}
__global__ void unwritten_workspace_right(float* workspace, float* out) {
  workspace[threadIdx.x] = 1.0f;
  out[threadIdx.x] = workspace[threadIdx.x];
}

// The last thread writes behind the shared memory that the launch asked for.
__global__ void shared_index_wrong(float* out) {
  float* tile = simt::dynamic_shared<float>();
  tile[threadIdx.x + 1] = 1.0f;  // FAULT shared_index
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 1];
}
__global__ void shared_index_right(float* out) {
  float* tile = simt::dynamic_shared<float>();
  tile[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

// Moved as one access of 16 bytes. nvcc takes no vectors of g++, and g++ would take a structure apart.
#ifdef SIMT_BACKEND_SIM
typedef float vector4 __attribute__((vector_size(16)));
#else
struct alignas(16) vector4 {
  float columns[4];
  __device__ float operator[](int i) const { return columns[i]; }
};
#endif

// Four columns at a time, though the rows do not begin at multiples of 16 bytes.
__global__ void misaligned_rows_wrong(const float* x, float* y, int cols) {
  const auto* from = reinterpret_cast<const vector4*>(x + blockIdx.x * cols);
  const vector4 v = from[threadIdx.x];  // FAULT misaligned_rows
  for (int i = 0; i < 4; ++i) y[blockIdx.x * cols + 4 * threadIdx.x + i] = v[i];
}
__global__ void misaligned_rows_right(const float* x, float* y, int cols) {
  for (int i = 0; i < 4; ++i)
    y[blockIdx.x * cols + 4 * threadIdx.x + i] = x[blockIdx.x * cols + 4 * threadIdx.x + i];
}

// For a buffer that is released, or memory of the host.
__global__ void plain_copy(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];  // FAULT plain_copy
}
