#pragma once
/// @file
/// Loading ahead through the L2 cache. A block that computes and stores loads nothing, and one that has just
/// begun waits for DRAM. So each block also asks the cache for rows that later blocks will load, and finds
/// its own there. No register waits for it, and each byte is still read from DRAM once. Where there is no
/// such request (simt/async.hpp), nothing is asked for.
#include <cstdint>

#include "numerics/shape.hpp"
#include "simt/async.hpp"

namespace softmax {
namespace {

/// How many rows after its own a block of `rows` rows asks for, so that they lie about `bytes` further on; 0:
/// it asks for none, as there are gaps between its rows, which would come too. Nearer than some megabytes,
/// what is asked for comes late; farther, it is pushed out of the cache before it is used: for an H200 see
/// bench/results/h200_ahead.json.
template <class T>
std::int64_t rows_ahead(const matrix_shape& s, std::int64_t rows, std::int64_t bytes) {
  if (rows > 1 && s.ld_in != s.cols) return 0;
  const std::int64_t blocks = bytes / (rows * s.cols * static_cast<std::int64_t>(sizeof(T)));
  return rows * (blocks > 1 ? blocks : 1);
}

/// Asks for `count` rows from `first` on, or those of them that there are. One thread of a block does, the
/// others nothing.
template <class T>
__device__ void prefetch_rows(const T* x, const matrix_shape& s, std::int64_t first, std::int64_t count) {
  const std::int64_t left = s.rows - first;
  if (threadIdx.x > 0 || left <= 0) return;
  const std::int64_t elements = ((count < left ? count : left) - 1) * s.ld_in + s.cols;
  simt::prefetch(x + first * s.ld_in, elements * static_cast<std::int64_t>(sizeof(T)));
}

/// Asks for this block's part of a row, if there is that row, in a cluster that shares it.
template <class T>
__device__ void prefetch_part(const T* x, const matrix_shape& s, std::int64_t row) {
  if (threadIdx.x > 0 || row >= s.rows) return;
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  const std::int64_t part = s.cols / blocks, rest = s.cols - (blocks - 1) * part;
  const std::int64_t elements = rank < blocks - 1 ? part : rest;
  simt::prefetch(x + row * s.ld_in + rank * part, elements * static_cast<std::int64_t>(sizeof(T)));
}

/// Lets the next launch begin, which was launched early, in the last blocks: as many as a large GPU has room
/// for where threads use many registers. If all did, the next launch would load while many of this one still
/// have to, and blocks would begin more slowly.
__device__ inline void begin_next_launch_at_the_end() {
  constexpr std::uint64_t threads = 132 * 1024;
  if ((gridDim.x - blockIdx.x) * std::uint64_t{blockDim.x} <= threads) simt::begin_next_launch();
}

}  // namespace
}  // namespace softmax
