#pragma once
// Narrow 16-bit rows side by side, of a width that is no multiple of 8. A block copies a tile of whole rows
// to shared memory, flat, 16 bytes at a time. There a thread, or a few, work on each row, two values at a
// time, and leave the results in its place; the block copies the tile out as it came in.
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"
#include "tile_shape.hpp"

namespace softmax {
namespace {

constexpr int tile_threads = 128;
constexpr int most_words = 16;  // of 32 bits, that a thread has of a row

/// A tile in vectors of 16 bytes, each thread's tile_threads apart: it has elements begin to end - 1. All
/// vectors are whole but for the first, where the matrix starts inside one, and in the last tile those at its
/// end.
struct tile_range {
  unsigned begin, end;

  /// Is the i-th vector of this thread whole?
  __device__ bool whole(unsigned i) const {
    return threadIdx.x + i * tile_threads < end / 8 && (i > 0 || threadIdx.x > 0 || begin == 0);
  }
  /// Calls f with the elements in those vectors of this thread that are not whole.
  template <class F>
  __device__ void one_by_one(F f) const {
#pragma unroll 1
    for (unsigned i = 0, k = 8 * threadIdx.x; k < end; ++i, k += 8 * tile_threads)
#pragma unroll 1
      for (unsigned e = 0; e < 8 && !whole(i); ++e)
        if (begin <= k + e && k + e < end) f(k + e);
  }
};

/// y[row] = softmax of x[row]. Lanes threads share a row, with Words words each, or up to 2 fewer.
template <int WarpSize, int Lanes, int Words, class T>
__global__ void __launch_bounds__(tile_threads) softmax_tile(const T* x, T* y, matrix_shape s) {
  constexpr int rows = tile_threads / Lanes;  // a multiple of 8: all tiles start alike within 16 bytes
  constexpr int slots = rows * (2 * Words * Lanes + 1) / (8 * tile_threads) + 1;  // vectors a thread
  constexpr int edges = Lanes == 1 ? 2 : 1, sure = Words - 2;
  __shared__ simt::vector16 tile[slots * tile_threads];
  auto* const element = reinterpret_cast<T*>(tile);
  const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(T));
  const auto cols = static_cast<unsigned>(s.cols);
  const unsigned place = threadIdx.x, lane = place % Lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * rows, left = s.rows - first;
  const tile_range range = {past, past + static_cast<unsigned>(left < rows ? left : rows) * cols};
  const bool full = past == 0 && left >= rows;
  const T* in = x + (first * s.cols - past);
  T* out = y + (first * s.cols - past);
  simt::vector16 held[slots];  // all loads are under way before the first is used
#pragma unroll
  for (int i = 0; i < slots; ++i)
    held[i] = range.whole(i) ? simt::load_vector(in + 8 * place + 8 * i * tile_threads) : simt::vector16{};
#pragma unroll
  for (int i = 0; i < slots; ++i) tile[place + i * tile_threads] = held[i];  // rows that are not there are 0
  if (!full) range.one_by_one([&](unsigned k) { element[k] = static_cast<T>(static_cast<float>(in[k])); });
  __syncthreads();  // the tile is complete

  // Whole words, and before and behind them an element each at most, which shares a word with a neighbour.
  const unsigned start = past + place / Lanes * cols, stop = start + cols;
  auto* const word = reinterpret_cast<std::uint32_t*>(tile) + ((start + 1) / 2 + lane);
  const auto words = static_cast<int>(stop / 2 - (start + 1) / 2 - lane);
  std::uint32_t pair[Words], largest = simt::pack_pair<T>(-INFINITY, -INFINITY);
#pragma unroll
  for (int i = 0; i < Words; ++i) {
    pair[i] = i < sure || i * Lanes < words ? word[i * Lanes] : simt::pack_pair<T>(-INFINITY, -INFINITY);
    largest = simt::larger_pair<T>(largest, pair[i]);
  }
  float value[Words][2], edge[edges];
  simt::unpack_pair<T>(largest, value[0][0], value[0][1]);
  float m = fmaxf(value[0][0], value[0][1]);
  bool has[edges];
#pragma unroll
  for (int e = 0; e < edges; ++e) {
    has[e] = lane + e == 0 ? start % 2 == 1 : lane + e == 1 && stop % 2 == 1;
    edge[e] = has[e] ? static_cast<float>(element[lane + e == 0 ? start : stop - 1]) : -INFINITY;
    m = fmaxf(m, edge[e]);
  }
  m = reference(group_reduce<maximum, WarpSize, Lanes>(m));
  // An exponent is one multiply-add. m * slope is rounded; that moves all exponents of the row alike, and the
  // result stays. Where they would move far, values are so far apart that any slope does.
  const float slope = fabsf(m) < 0x1p20f ? 1.44269504f : 1.0f, shift = -m * slope;
  float d[2] = {0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < Words; ++i) {
    simt::unpack_pair<T>(pair[i], value[i][0], value[i][1]);
#pragma unroll
    for (int e = 0; e < 2; ++e) d[e] += value[i][e] = simt::exp2(fmaf(value[i][e], slope, shift));
  }
#pragma unroll
  for (int e = 0; e < edges; ++e) d[e] += edge[e] = simt::exp2(fmaf(edge[e], slope, shift));
  const float scale = 1.0f / group_reduce<sum, WarpSize, Lanes>(d[0] + d[1]);
#pragma unroll
  for (int i = 0; i < Words; ++i)
    if (i < sure || i * Lanes < words)
      word[i * Lanes] = simt::pack_pair<T>(value[i][0] * scale, value[i][1] * scale);
#pragma unroll
  for (int e = 0; e < edges; ++e)
    if (has[e]) element[lane + e == 0 ? start : stop - 1] = static_cast<T>(edge[e] * scale);
  __syncthreads();  // the results are complete
#pragma unroll
  for (int i = 0; i < slots; ++i)
    if (range.whole(i))
      simt::store_vector(out + 8 * place + 8 * i * tile_threads, tile[place + i * tile_threads]);
  if (!full) range.one_by_one([&](unsigned k) { out[k] = static_cast<T>(static_cast<float>(element[k])); });
}

/// Launches the kernel with the fewest words that hold a row.
template <int WarpSize, int Lanes, int Words, class T>
void launch_tiles(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (Words < most_words)
    if (s.cols / 2 > Words * Lanes) return launch_tiles<WarpSize, Lanes, Words + 2>(x, y, s, queue);
  constexpr int rows = tile_threads / Lanes;
  const auto blocks = static_cast<unsigned>((s.rows + rows - 1) / rows);
  simt::launch(softmax_tile<WarpSize, Lanes, Words, T>, {blocks, tile_threads, 0, queue}, x, y, s);
}

/// y = softmax of each row of x, for matrices that in_tile() takes and whose rows lie alike.
template <int WarpSize, class T>
void softmax_in_tiles(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  constexpr int half = most_words / 2 + 2;
  if (s.cols / 2 <= most_words) return launch_tiles<WarpSize, 1, 2>(x, y, s, queue);
  if (s.cols / 2 <= 2 * most_words) return launch_tiles<WarpSize, 2, half>(x, y, s, queue);
  if (s.cols / 2 <= 4 * most_words) return launch_tiles<WarpSize, 4, half>(x, y, s, queue);
  launch_tiles<WarpSize, 8, half>(x, y, s, queue);
}

}  // namespace
}  // namespace softmax
