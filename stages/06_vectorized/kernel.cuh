#pragma once
// Softmax as fast as a copy, for rows that a block can hold: 16 bytes an access at any width and alignment,
// one exponential an element, one reciprocal a row. Moves, in elements: reads MN, writes MN.
#include <string>

#include "kernels/ahead.cuh"
#include "kernels/row_share.cuh"
#include "numerics/shape.hpp"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "tile.cuh"

namespace softmax {
namespace {

constexpr int held_values = 32;  // registers a thread spends on the row, at most
constexpr std::int64_t max_blocks = 1 << 21;  // fewer than 2^32 threads; further rows are looped over

//! [kernel]
/// Cuts a row into the elements before the first multiple of 16 bytes, whole vectors, and the rest.
template <class T>
__device__ row_layout layout_of(const T* in, std::int64_t cols) {
  // exercise a: head, vectors and edges of a row at any address; starts as
  // `return {0, static_cast<int>(cols / per_vector<T>), 0};`
  const auto past = static_cast<int>(reinterpret_cast<std::uintptr_t>(in) % 16 / sizeof(T));
  const int to_boundary = (per_vector<T> - past) % per_vector<T>;
  const int head = to_boundary < cols ? to_boundary : static_cast<int>(cols);
  const auto vectors = static_cast<int>((cols - head) / per_vector<T>);
  return {head, vectors, static_cast<int>(cols - std::int64_t{vectors} * per_vector<T>)};
  // end
}

/// Does a block ask for rows ahead? Where it has several, with edges, it is faster without, as measured.
template <int Lanes, rows_lie Lie>
constexpr bool asks = Lie == rows_lie::aligned || (Lie == rows_lie::alike && Lanes == 0);

/// y[row] = softmax of x[row]. Lanes threads share a row, or the whole block if Lanes is 0. If the block asks
/// for rows, those that lie `ahead` of its own are on their way to the cache meanwhile.
template <int WarpSize, int Lanes, int Items, rows_lie Lie, class T>
__global__ void __launch_bounds__(Lanes ? 128 : most_threads)
    softmax_rows(const T* x, T* y, matrix_shape s, std::int64_t ahead) {
  constexpr int most_edges = Lie == rows_lie::aligned ? 0 : 2 * (per_vector<T> - 1);
  constexpr int edges = Lanes ? (most_edges + Lanes - 1) / Lanes : most_edges > 0;
  constexpr int group = Lanes ? Lanes : WarpSize;
  const int lanes = Lanes ? Lanes : static_cast<int>(blockDim.x), shares = Lanes ? blockDim.x / Lanes : 1;
  const int share = Lanes ? threadIdx.x / lanes : 0, lane = Lanes ? threadIdx.x % lanes : threadIdx.x;
  std::int64_t first = std::int64_t{blockIdx.x} * shares;
  if (asks<Lanes, Lie> && first < ahead) prefetch_rows(x, s, first, shares);
  simt::wait_for_last_launch();  // it may have written x
  if constexpr (asks<Lanes, Lie>) begin_next_launch_at_the_end();
  for (int turn = 0; first < s.rows; first += std::int64_t{gridDim.x} * shares, turn = 1 - turn) {
    const std::int64_t row = first + share;
    const std::int64_t cols = row < s.rows ? s.cols : 0;
    const T* in = x + row * s.ld_in;
    row_layout layout = {0, static_cast<int>(cols / per_vector<T>), 0};
    if constexpr (Lie != rows_lie::aligned) layout = layout_of(in, cols);
    row_share<T, Items, edges> mine;
    mine.load(in, layout, lane, lanes);
    if (asks<Lanes, Lie> && ahead > 0) prefetch_rows(x, s, first + ahead, shares);
    // exercise b: what this thread's exponentials have to be multiplied with, from the maximum and the sum of
    // its lanes and of the row; starts as `const float scale = 1.0f / mine.exponentials(mine.largest());`
    running r = {group_reduce<maximum, WarpSize, group>(mine.largest()), 0.0f};
    const float m = reference(r.m);
    r.d = group_reduce<sum, WarpSize, group>(Lanes ? mine.folded_exponentials(m) : mine.exponentials(m));
    float scale = 1.0f / r.d;
    if constexpr (Lanes == 0) {
      const running all = block_merge<WarpSize>(r, turn);
      scale = exponential(r.m - all.m) * (1.0f / all.d);
    }
    // end
    mine.template store<Lie>(y + row * s.ld_out, layout, lane, lanes, scale);
  }
}
//! [kernel]

/// Launches blocks of `threads`, each with as many rows as it has room for.
template <int WarpSize, int Lanes, int Items, rows_lie Lie, class T>
void launch_rows(int threads, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  const int rows = Lanes ? threads / Lanes : 1;
  const std::int64_t needed = (s.rows + rows - 1) / rows;
  const auto blocks = static_cast<unsigned>(needed < max_blocks ? needed : max_blocks);
  const std::int64_t ahead_bytes = sizeof(T) == 2 && s.cols > 2048 ? 6 << 20 : 4 << 20;  // as measured
  simt::launch(softmax_rows<WarpSize, Lanes, Items, Lie, T>,
               simt::geometry(blocks, static_cast<unsigned>(threads), 0, queue).early(), x, y, s,
               asks<Lanes, Lie> ? rows_ahead<T>(s, rows, ahead_bytes) : 0);
}

/// Launches the kernel for the width of the rows.
template <int WarpSize, rows_lie Lie, class T>
void launch_width(const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  constexpr int most = held_values / per_vector<T>;
  const auto vectors = static_cast<int>(s.cols / per_vector<T>);  // at most: where a row starts on 16 bytes
  const auto threads = [&](int items) { return (vectors - 1) / (items * WarpSize) * WarpSize + WarpSize; };
  if constexpr (Lie != rows_lie::apart) {
    // exercise c: launches for narrower rows, with no more lanes a row than 4 or the power of two at or above
    // its vectors
    if (vectors <= 4) return launch_rows<WarpSize, 4, 1, Lie>(128, x, y, s, queue);
    if (vectors <= 8) return launch_rows<WarpSize, 8, 1, Lie>(128, x, y, s, queue);
    if (vectors <= 16) return launch_rows<WarpSize, 8, 2, Lie>(128, x, y, s, queue);
    if (vectors <= 32) return launch_rows<WarpSize, 16, 2, Lie>(128, x, y, s, queue);
    if (vectors <= (sizeof(T) == 4 ? 40 : 48)) return launch_rows<WarpSize, 16, 3, Lie>(128, x, y, s, queue);
    if (sizeof(T) == 2 && vectors <= 56) return launch_rows<WarpSize, 16, 4, Lie>(128, x, y, s, queue);
    if (vectors <= 64) return launch_rows<WarpSize, 32, 2, Lie>(128, x, y, s, queue);
    if (vectors <= 96) return launch_rows<WarpSize, 32, 3, Lie>(64, x, y, s, queue);
    if (vectors <= 128) return launch_rows<WarpSize, 32, 4, Lie>(64, x, y, s, queue);
    if (sizeof(T) == 4 && vectors <= 256) return launch_rows<WarpSize, 0, 2, Lie>(threads(2), x, y, s, queue);
    if constexpr (sizeof(T) == 2) {
      if (vectors <= 160) return launch_rows<WarpSize, 32, 5, Lie>(64, x, y, s, queue);
      if (vectors <= 192) return launch_rows<WarpSize, 32, 6, Lie>(64, x, y, s, queue);
    }
    // end
  }
  launch_rows<WarpSize, 0, most, Lie>(threads(most), x, y, s, queue);
}

/// y = softmax of each row of x. workspace is not used.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  if (most_threads * (held_values / per_vector<T>) < s.cols / per_vector<T>)
    throw simt::error("no block holds a row of " + std::to_string(s.cols) + " columns: use stage 07.");
  const rows_lie lie = how_rows_lie(x, y, s);
  if constexpr (sizeof(T) == 2)
    if (lie == rows_lie::alike && in_tile(s, sizeof(T))) return softmax_in_tiles<WarpSize>(x, y, s, queue);
  if (lie == rows_lie::aligned) return launch_width<WarpSize, rows_lie::aligned>(x, y, s, queue);
  if (lie == rows_lie::alike) return launch_width<WarpSize, rows_lie::alike>(x, y, s, queue);
  launch_width<WarpSize, rows_lie::apart>(x, y, s, queue);
}

}  // namespace
}  // namespace softmax
