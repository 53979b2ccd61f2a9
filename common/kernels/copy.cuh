#pragma once
/// @file
/// Copy kernels: the roof under which every softmax stays, since it reads and writes what a copy reads and
/// writes.
#include <cstdint>

#include "simt/async.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

using simt::vector16;

/// Each thread copies Unroll vectors of 16 bytes, all loaded before the first is stored. With Ahead, each
/// block also asks the cache for what one 4 MB further on will load.
template <int Unroll, bool Ahead>
__global__ void copy_vectors(const vector16* from, vector16* to, std::int64_t count) {
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x * Unroll + threadIdx.x;
  if constexpr (Ahead) {
    constexpr std::int64_t vectors_ahead = 4 << 16;
    const std::int64_t vectors = std::int64_t{blockDim.x} * Unroll;
    if (threadIdx.x == 0 && first + vectors_ahead + vectors <= count)
      simt::prefetch(from + first + vectors_ahead, vectors * 16);
  }
  vector16 held[Unroll];
#pragma unroll
  for (int i = 0; i < Unroll; ++i)
    if (first + i * std::int64_t{blockDim.x} < count) held[i] = from[first + i * std::int64_t{blockDim.x}];
#pragma unroll
  for (int i = 0; i < Unroll; ++i)
    if (first + i * std::int64_t{blockDim.x} < count) to[first + i * std::int64_t{blockDim.x}] = held[i];
}

/// Copies bytes / 16 vectors. Both pointers are multiples of 16.
template <int Unroll, bool Ahead = false>
void copy(const void* from, void* to, std::size_t bytes, simt::stream queue) {
  constexpr int threads = 256;
  const auto count = static_cast<std::int64_t>(bytes / sizeof(vector16));
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + threads * Unroll - 1) / (threads * Unroll));
  simt::launch(copy_vectors<Unroll, Ahead>, {blocks, threads, 0, queue}, static_cast<const vector16*>(from),
               static_cast<vector16*>(to), count);
}

}  // namespace
}  // namespace softmax
