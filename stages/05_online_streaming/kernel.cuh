#pragma once
// Softmax for rows of any width: one pass keeps a running maximum and a sum that is rescaled whenever the
// maximum grows, a second pass writes. Moves, in elements: reads 2MN, writes MN; where L2 keeps the row, DRAM
// sees MN and MN. Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, algorithm 3.
#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

constexpr int block_threads = 512;
constexpr int batch = 4;  // loads in flight a thread
constexpr std::int64_t max_blocks = 1 << 15;  // many times what any GPU holds; further rows are looped over

//! [kernel]
/// Maximum m of the values seen, and the sum d of exp(value - m). Of nothing seen: -inf and 0.
struct running {
  float m;
  float d;
};

/// What exponents are relative to: the maximum, or 0 if all was -inf, as exp(-inf + inf) would be a NaN.
__device__ inline float reference(float m) { return m == -INFINITY ? 0.0f : m; }

/// Both sets of values together. Associative and commutative; {-inf, 0} changes nothing.
__device__ inline running merge(running a, running b) {
  // exercise a: both sums relative to the larger maximum, see reference(); starts as `return a;`
  const float m = fmaxf(a.m, b.m);
  return {m, a.d * expf(a.m - reference(m)) + b.d * expf(b.m - reference(m))};
}

/// Merges one state of each thread. Takes part: every thread. Valid on: every thread. Barriers: two.
template <int WarpSize>
__device__ running block_merge(running r) {
  __shared__ float partial_m[block_threads / WarpSize], partial_d[block_threads / WarpSize];
  for (int mask = WarpSize / 2; mask > 0; mask /= 2)
    r = merge(r, {simt::shuffle_xor<WarpSize>(r.m, mask), simt::shuffle_xor<WarpSize>(r.d, mask)});
  __syncthreads();  // readers of the row before are done
  if (threadIdx.x % WarpSize == 0) {
    partial_m[threadIdx.x / WarpSize] = r.m;
    partial_d[threadIdx.x / WarpSize] = r.d;
  }
  __syncthreads();  // the partial states are complete
  r = {-INFINITY, 0.0f};
  for (int warp = 0; warp < block_threads / WarpSize; ++warp)
    r = merge(r, {partial_m[warp], partial_d[warp]});
  return r;
}

/// y[row] = softmax of x[row]
template <int WarpSize, class T>
__global__ void softmax_row(const T* x, T* y, matrix_shape s) {
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    running r = {-INFINITY, 0.0f};
    for (std::int64_t start = 0; start < s.cols; start += batch * block_threads) {
      float value[batch];
      float m = r.m;
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const std::int64_t col = start + i * block_threads + threadIdx.x;
        value[i] = col < s.cols ? static_cast<float>(in[col]) : -INFINITY;
        m = fmaxf(m, value[i]);
      }
      // exercise b: bring r.d from r.m to m, add the exponentials of the batch, and keep m
      r.d *= expf(r.m - reference(m));  // the sum so far, relative to the new maximum
#pragma unroll
      for (int i = 0; i < batch; ++i) r.d += expf(value[i] - reference(m));
      r.m = m;
    }
    r = block_merge<WarpSize>(r);
    const float scale = 1.0f / r.d;
    for (std::int64_t start = 0; start < s.cols; start += batch * block_threads) {
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const std::int64_t col = start + i * block_threads + threadIdx.x;
        if (col < s.cols) out[col] = static_cast<T>(expf(static_cast<float>(in[col]) - r.m) * scale);
      }
    }
  }
}
//! [kernel]

/// y = softmax of each row of x. workspace is not used.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  const auto blocks = static_cast<unsigned>(s.rows < max_blocks ? s.rows : max_blocks);
  simt::launch(softmax_row<WarpSize, T>, {blocks, block_threads, 0, queue}, x, y, s);
}

}  // namespace
}  // namespace softmax
