#pragma once
/// @file
/// The shape of the operator's two matrices.
#include <cstdint>

namespace softmax {

/// Row-wise softmax of an M x N matrix: rows (M) are independent, columns (N) are normalised. Row i of the
/// input starts at x + i * ld_in, row i of the output at y + i * ld_out. All counts are in elements, and 64
/// bits wide: M * N passes 2^31 on every GPU with 8 GB.
struct matrix_shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld_in = 0;  ///< row stride of x, at least cols
  std::int64_t ld_out = 0;  ///< row stride of y, at least cols
};

}  // namespace softmax
