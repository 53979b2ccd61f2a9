#pragma once
// Which matrices go through tiles in shared memory. Host code, which the stage's byte model needs too.
#include <cstddef>

#include "numerics/shape.hpp"

namespace softmax {

constexpr std::int64_t widest_in_tile = 240;  // columns; beyond, edges are few
constexpr std::int64_t most_in_tiles =
    1 << 28;  // rows: a block has 16 or more, a launch fewer than 2^32 threads

/// 16-bit rows side by side, narrow, and of a width that no whole vectors fill.
constexpr bool in_tile(const matrix_shape& s, std::size_t element_bytes) {
  const bool dense = s.rows == 1 || (s.ld_in == s.cols && s.ld_out == s.cols);
  return element_bytes == 2 && dense && s.cols % 8 != 0 && s.cols <= widest_in_tile &&
         s.rows <= most_in_tiles;
}

}  // namespace softmax
