#pragma once
// Right results, slowly. The profile says where and why.
#include "simt/simt.hpp"

// A column of a tile that is 32 words wide: all lanes meet in one bank. The loops that read are not unrolled,
// as a GPU's compiler would then read four columns with one instruction.
__global__ void bank_conflict_wrong(const float* in, float* out) {
  __shared__ float tile[32][32];
  for (int i = 0; i < 32; ++i) tile[i][threadIdx.x] = in[32 * i + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < 32; ++i) out[32 * i + threadIdx.x] = tile[threadIdx.x][i];  // FAULT bank_conflict
}
__global__ void bank_conflict_right(const float* in, float* out) {
  __shared__ float tile[32][33];
  for (int i = 0; i < 32; ++i) tile[i][threadIdx.x] = in[32 * i + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < 32; ++i) out[32 * i + threadIdx.x] = tile[threadIdx.x][i];  // FAULT bank_conflict right
}

// A row a thread: neighbouring lanes are a row apart.
__global__ void column_walk_wrong(const float* in, float* out, int cols) {
  float sum = 0.0f;
  for (int col = 0; col < cols; ++col) sum += in[threadIdx.x * cols + col];  // FAULT column_walk
  out[threadIdx.x] = sum;
}
__global__ void column_walk_right(const float* in, float* out, int cols) {
  float sum = 0.0f;
  for (int row = 0; row < cols; ++row) sum += in[row * blockDim.x + threadIdx.x];  // FAULT column_walk right
  out[threadIdx.x] = sum;
}

// Each request begins in the middle of a sector.
__global__ void shifted_rows_wrong(const float* in, float* out) {
  for (int i = 0; i < 4; ++i)
    out[i * blockDim.x + threadIdx.x] = in[1 + i * blockDim.x + threadIdx.x];  // FAULT shifted_rows
}
__global__ void shifted_rows_right(const float* in, float* out) {
  for (int i = 0; i < 4; ++i)
    out[i * blockDim.x + threadIdx.x] = in[i * blockDim.x + threadIdx.x];  // FAULT shifted_rows right
}

// The row is loaded a second time, though the thread could have kept it.
__global__ void loaded_twice_wrong(const float* in, float* out) {
  float sum = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = sum + in[blockDim.x - 1 - threadIdx.x];  // FAULT loaded_twice
}
__global__ void loaded_twice_right(const float* in, float* out) {
  const float v = in[threadIdx.x];
  out[threadIdx.x] = v + v;  // FAULT loaded_twice right
}
