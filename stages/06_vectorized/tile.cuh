#pragma once
// Narrow 16-bit rows side by side, of a width that is no multiple of 8. A block copies a tile of whole rows
// to shared memory, flat, 16 bytes at a time. There a thread, or a few, work on each row, two values at a
// time, and leave the results in their place. The block copies the tile out as it came in.
#include "kernels/ahead.cuh"
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "tile_shape.hpp"

namespace softmax {
namespace {

constexpr int tile_threads = 128;
constexpr int most_words = 32;  // of 32 bits, that a thread has of a row

/// Blocks that a multiprocessor holds at once, at least: a thread has 64 registers, or 128.
constexpr int tile_blocks(int words) { return words > 16 ? 4 : 8; }

/// Elements begin to end - 1, in vectors of 16 bytes. All are whole but the first, where the matrix starts
/// inside one, and the last tile's last.
struct tile_range {
  unsigned begin, end;
  /// Is the i-th vector of this thread whole?
  __device__ bool whole(unsigned i) const {
    return threadIdx.x + i * tile_threads < end / 8 && (i > 0 || threadIdx.x > 0 || begin == 0);
  }
  /// Calls f with the elements of this thread that are in no whole vector.
  template <class F>
  __device__ void one_by_one(F f) const {
    for (unsigned i = 0, first = 8 * threadIdx.x; first < end; ++i, first += 8 * tile_threads)
#pragma unroll 1
      for (unsigned k = first; k < first + 8 && !whole(i); ++k)
        if (begin <= k && k < end) f(k);
  }
};

/// Elements start to stop - 1 of shared memory become their softmax. Lanes threads share them: whole words,
/// of which each has Words or up to 2 fewer, and an element before and one behind them at most, whose words
/// are shared with the neighbours. Takes part: every lane of the warp. Barriers: none.
template <int WarpSize, int Lanes, int Words, class T>
__device__ void softmax_in_place(T* tile, unsigned start, unsigned stop, unsigned lane) {
  constexpr int edges = Lanes == 1 ? 2 : 1;
  auto* const word = reinterpret_cast<std::uint32_t*>(tile) + ((start + 1) / 2 + lane);
  const auto words = static_cast<int>(stop / 2 - (start + 1) / 2 - lane);
  const auto has = [&](int i) { return i < Words - 2 || i * Lanes < words; };
  const auto at = [&](unsigned e) { return lane + e == 0 ? start : stop - 1; };
  const auto has_edge = [&](unsigned e) { return (lane + e < 2) & (at(e) % 2 != lane + e); };
  std::uint32_t pair[Words], largest = simt::pack_pair<T>(-INFINITY, -INFINITY);
  float value[Words][2], edge[edges], d[2] = {};
#pragma unroll
  for (int i = 0; i < Words; ++i) {
    pair[i] = has(i) ? word[i * Lanes] : simt::pack_pair<T>(-INFINITY, -INFINITY);
    largest = simt::larger_pair<T>(largest, pair[i]);
  }
  simt::unpack_pair<T>(largest, value[0][0], value[0][1]);
  float m = fmaxf(value[0][0], value[0][1]);
  for (int e = 0; e < edges; ++e)
    m = fmaxf(m, edge[e] = has_edge(e) ? static_cast<float>(tile[at(e)]) : -INFINITY);
  m = reference(group_reduce<maximum, WarpSize, Lanes>(m));
  const folded_exponential e_to(m);
#pragma unroll
  for (int i = 0; i < Words; ++i) {
    simt::unpack_pair<T>(pair[i], value[i][0], value[i][1]);
    for (int e = 0; e < 2; ++e) d[e] += value[i][e] = e_to(value[i][e]);
  }
  for (int e = 0; e < edges; ++e) d[e] += edge[e] = e_to(edge[e]);
  const float scale = 1.0f / group_reduce<sum, WarpSize, Lanes>(d[0] + d[1]);
#pragma unroll
  for (int i = 0; i < Words; ++i)
    if (has(i)) word[i * Lanes] = simt::pack_pair<T>(value[i][0] * scale, value[i][1] * scale);
  for (int e = 0; e < edges; ++e)
    if (has_edge(e)) tile[at(e)] = static_cast<T>(edge[e] * scale);
}

/// y[row] = softmax of x[row], for a tile of tile_threads / Lanes rows a block.
template <int WarpSize, int Lanes, int Words, class T>
__global__ void __launch_bounds__(tile_threads, tile_blocks(Words))
    softmax_tile(const T* x, T* y, matrix_shape s, std::int64_t ahead) {
  constexpr int rows = tile_threads / Lanes;  // a multiple of 8, so that all tiles start alike in 16 bytes
  constexpr int slots = rows * (2 * Words * Lanes + 1) / (8 * tile_threads) + 1;  // vectors a thread
  __shared__ simt::vector16 tile[slots * tile_threads];
  auto* const element = reinterpret_cast<T*>(tile);
  const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(x) % 16 / sizeof(T));
  const auto cols = static_cast<unsigned>(s.cols), left = static_cast<unsigned>(s.rows) - blockIdx.x * rows;
  const unsigned place = threadIdx.x, start = past + place / Lanes * cols;
  const tile_range range = {past, past + (left < rows ? left : rows) * cols};
  const bool full = past == 0 && left >= rows;
  const std::int64_t first = std::int64_t{blockIdx.x} * (rows * cols) - past;
  const T* in = x + first;
  T* out = y + first;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * rows;
  if (first_row < ahead) prefetch_rows(x, s, first_row, rows);
  simt::wait_for_last_launch();  // it may have written x
  begin_next_launch_at_the_end();
  simt::vector16 held[slots];  // all loads are under way before the first is used
#pragma unroll
  for (int i = 0; i < slots; ++i)
    held[i] = range.whole(i) ? simt::load_vector(in + 8 * place + 8 * i * tile_threads) : simt::vector16{};
  if (ahead > 0) prefetch_rows(x, s, first_row + ahead, rows);
#pragma unroll
  for (int i = 0; i < slots; ++i) tile[place + i * tile_threads] = held[i];  // rows that are not there are 0
  if (!full) range.one_by_one([&](unsigned k) { element[k] = static_cast<T>(static_cast<float>(in[k])); });
  __syncthreads();  // the tile is complete
  softmax_in_place<WarpSize, Lanes, Words>(element, start, start + cols, place % Lanes);
  __syncthreads();  // the results are complete
#pragma unroll
  for (int i = 0; i < slots; ++i)
    if (range.whole(i))
      simt::store_vector(out + 8 * place + 8 * i * tile_threads, tile[place + i * tile_threads]);
  if (!full) range.one_by_one([&](unsigned k) { out[k] = static_cast<T>(static_cast<float>(element[k])); });
}

/// y = softmax of each row of x, for matrices that in_tile() takes and whose rows lie alike: by the kernel
/// with the fewest lanes and words that hold a row.
template <int WarpSize, int Lanes = 1, int Words = 2, class T>
void softmax_in_tiles(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  if constexpr (2 * Words * Lanes + 1 < widest_in_tile) {
    constexpr int more = Words < most_words ? 1 : Lanes == 1 ? 2 : 4;  // 1, 2, or 8 lanes, as was fastest
    constexpr int lanes = more * Lanes, words = Words / more + 2;
    if (s.cols / 2 > Words * Lanes) return softmax_in_tiles<WarpSize, lanes, words>(x, y, s, queue);
  }
  constexpr int rows = tile_threads / Lanes;
  const auto blocks = static_cast<unsigned>((s.rows + rows - 1) / rows);
  simt::launch(softmax_tile<WarpSize, Lanes, Words, T>,
               simt::geometry(blocks, tile_threads, 0, queue).early(), x, y, s,
               rows_ahead<T>(s, rows, 4 << 20));
}

}  // namespace
}  // namespace softmax
