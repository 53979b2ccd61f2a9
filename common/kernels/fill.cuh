#pragma once
/// @file
/// Made-up input, written where it is needed: uploading gigabytes takes longer than measuring with them.
#include <cstdint>

#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014): a bijection that turns a counter into random-looking bits.
__device__ inline std::uint64_t scramble(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// x[row][col] = `deviation` times a sum of four uniform numbers, moved and scaled to mean 0 and standard
/// deviation 1: close to normal, and within 3.5 of 0.
template <class T>
__global__ void fill_rows(T* x, matrix_shape s, std::uint64_t seed, float deviation) {
  for (std::int64_t row = blockIdx.x; row < s.rows; row += gridDim.x)
    for (std::int64_t start = 0; start < s.cols; start += blockDim.x) {
      const std::int64_t col = start + threadIdx.x;
      if (col >= s.cols) continue;
      const std::uint64_t bits = scramble(scramble(seed) ^ static_cast<std::uint64_t>(row * s.cols + col));
      float sum = 0.0f;
      for (int i = 0; i < 4; ++i) sum += static_cast<float>(bits >> (16 * i) & 0xffff) * (1.0f / 65536);
      x[row * s.ld_in + col] = static_cast<T>(deviation * (sum - 2.0f) * 1.7320508f);  // variance 4 / 12
    }
}

/// Launches fill_rows(). Padding is left as it is.
template <class T>
void fill(T* x, const matrix_shape& s, std::uint64_t seed, float deviation, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  constexpr std::int64_t most = 1 << 16;
  const unsigned threads = s.cols < 256 ? 64 : 256;
  simt::launch(fill_rows<T>, {static_cast<unsigned>(s.rows < most ? s.rows : most), threads, 0, queue}, x, s,
               seed, deviation);
}

}  // namespace
}  // namespace softmax
