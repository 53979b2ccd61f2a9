#include "quiz_kernels.hpp"

#include "simt/async.hpp"
#include "simt/simt.hpp"

namespace {

__global__ void fill(float* p, int n) {
  if (static_cast<int>(threadIdx.x) < n) p[threadIdx.x] = static_cast<float>(threadIdx.x);
}
__global__ void load_one(const float* p, float* out) { out[threadIdx.x] = p[7]; }

__global__ void leave_in_shared(float* out) {
  __shared__ float kept[32];
  kept[threadIdx.x] = 1.0f;
  out[threadIdx.x] = kept[threadIdx.x];
}
__global__ void look_in_shared(float* out) {
  __shared__ float kept[32];
  if (out == nullptr) kept[threadIdx.x] = 1.0f;
  out[threadIdx.x] = kept[threadIdx.x];
}

/// 256 threads; out[t] is 1 where thread t knows the total of 8 partial results that the first warp combined.
__global__ void first_warp_kernel(float* out) {
  __shared__ float partial[8];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = 1.0f;
  __syncthreads();
  float total = 0.0f;
  if (threadIdx.x < 32) {
    total = threadIdx.x < 8 ? partial[threadIdx.x] : 0.0f;
    for (int mask = 16; mask > 0; mask /= 2) total += simt::shuffle_xor<32>(total, mask);
  }
  out[threadIdx.x] = total == 8.0f;
}

__global__ void xor_kernel(float* out) {
  float v = static_cast<float>(1u << threadIdx.x % 24);
  for (int s = 16; s > 0; s /= 2) v += simt::shuffle_xor<32>(v, s);
  out[threadIdx.x] = v;
}
__global__ void down_kernel(float* out) {
  float v = static_cast<float>(1u << threadIdx.x % 24);
  for (int s = 16; s > 0; s /= 2) v += simt::shuffle_down<32>(v, s);
  out[threadIdx.x] = v;
}

/// A fence waits for nobody: on the simulator it is nothing at all.
__global__ void fence_between(float* out) {
  __shared__ float partial[2];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = 1.0f;
  out[threadIdx.x] = partial[0] + partial[1];
}
__global__ void barrier_between(float* out) {
  __shared__ float partial[2];
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = partial[0] + partial[1];
}
__global__ void leave_before_barrier(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();
  out[threadIdx.x] = 1.0f;
}
__global__ void partner(float* out) {
  out[threadIdx.x] = simt::shuffle_xor<32>(static_cast<float>(threadIdx.x), 16);
}

__global__ void load_vectors(const float* row, float* out) {
  simt::store_vector(out + 4 * threadIdx.x, simt::load_vector(row + 4 * threadIdx.x));
}
__global__ void head_by_one_lane(const float* row, float* out) {
  float total = 0.0f;
  if (threadIdx.x == 0)
    for (int k = 0; k < 7; ++k) total += row[k];
  out[threadIdx.x] = total;
}
__global__ void head_by_seven_lanes(const float* row, float* out) {
  out[threadIdx.x] = threadIdx.x < 7 ? row[threadIdx.x] : 0.0f;
}

__global__ void copy_row(const float* in, float* out, bool asks) {
  const float* row = in + blockIdx.x * 32;
  out[blockIdx.x * 32 + threadIdx.x] = row[threadIdx.x];
  if (asks && threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x) simt::prefetch(row + 32, 128);
}

/// 4 rows of 32, one a block.
void copy_rows(float* p, bool asks) {
  for (int row = 0; row < 4; ++row) simt::launch(fill, {1, 32}, p + row * 32, 32);
  simt::launch(copy_row, {4, 32}, static_cast<const float*>(p), p + 128, asks);
}

}  // namespace

std::vector<float> on_device(std::size_t count, int warp, void (*run)(float*)) {
  simt::configuration().warp_size = warp;
  simt::clear_records();
  void* p = nullptr;
  SIMT_CHECK(simt::allocate(&p, count * sizeof(float), "out"));
  std::vector<float> values(count);
  try {
    run(static_cast<float*>(p));
    // What nobody wrote stays 0.
    SIMT_CHECK(simt::copy_to_host(values.data(), p, count * sizeof(float)));
  } catch (...) {
    (void)simt::release(p);
    throw;
  }
  SIMT_CHECK(simt::release(p));
  return values;
}

void lanes_load_one_float(float* p) {
  simt::launch(fill, {1, 64}, p, 64);
  simt::launch(load_one, {1, 32}, static_cast<const float*>(p), p + 32);
}
void shared_memory_over_two_launches(float* p) {
  simt::launch(leave_in_shared, {1, 32}, p);
  simt::launch(look_in_shared, {1, 32}, p);
}
void first_warp_combines(float* p) { simt::launch(first_warp_kernel, {1, 256}, p); }
void sum_by_xor(float* p) { simt::launch(xor_kernel, {1, 32}, p); }
void sum_by_down(float* p) { simt::launch(down_kernel, {1, 32}, p); }
void nothing_waits(float* p) { simt::launch(fence_between, {1, 64}, p); }
void a_barrier_waits(float* p) { simt::launch(barrier_between, {1, 64}, p); }
void some_threads_leave(float* p) { simt::launch(leave_before_barrier, {1, 64}, p, 32); }
void some_shares_leave(float* p) { simt::launch(leave_before_barrier, {1, 256}, p, 128); }
void partners(float* p) { simt::launch(partner, {1, 64}, p); }
void one_column_a_thread(float* p) { simt::launch(fill, {1, 1024}, p, 256); }
void vectors_of_row_1(float* p) {
  simt::launch(fill, {1, 1024}, p, 1024);
  simt::launch(load_vectors, {1, 32}, static_cast<const float*>(p) + 781, p + 1024);
}
void one_lane_loads_7(float* p) {
  simt::launch(fill, {1, 32}, p, 7);
  simt::launch(head_by_one_lane, {1, 32}, static_cast<const float*>(p), p + 32);
}
void lanes_load_7(float* p) {
  simt::launch(fill, {1, 32}, p, 7);
  simt::launch(head_by_seven_lanes, {1, 32}, static_cast<const float*>(p), p + 32);
}
void blocks_load_rows(float* p) { copy_rows(p, false); }
void blocks_ask_ahead(float* p) { copy_rows(p, true); }
