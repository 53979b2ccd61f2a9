#pragma once
/// @file
/// A matrix on the host.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/dtype.hpp"

namespace softmax {

/// rows x cols elements of `type`, row i at element i * ld. The ld - cols elements behind each row are
/// padding.
struct host_matrix {
  dtype type = dtype::f32;  ///< of an element
  std::int64_t rows = 0;  ///< M
  std::int64_t cols = 0;  ///< N
  std::int64_t ld = 0;  ///< elements from row to row, at least cols
  std::vector<std::byte> data;  ///< rows * ld elements

  host_matrix() = default;
  /// All bytes 0xff: a NaN in each element.
  host_matrix(dtype type, std::int64_t rows, std::int64_t cols, std::int64_t ld)
      : type(type),
        rows(rows),
        cols(cols),
        ld(ld),
        data(static_cast<std::size_t>(rows * ld) * size_of(type), std::byte{0xff}) {}

  /// Makes the padding the canonical NaN: not the bits of poison, so that a kernel which copies it is seen to
  /// write.
  void fill_padding() {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t col = cols; col < ld; ++col) set(row, col, __builtin_nan(""));
  }
  /// A copy of the first `count` rows, at most all of them.
  host_matrix first_rows(std::int64_t count) const {
    host_matrix part(type, std::min(count, rows), cols, ld);
    std::copy_n(data.begin(), part.data.size(), part.data.begin());
    return part;
  }
  /// An element, exactly. Indices are not checked.
  double at(std::int64_t row, std::int64_t col) const { return load(type, data.data(), row * ld + col); }
  /// Stores an element, rounded as store() does. Indices are not checked.
  void set(std::int64_t row, std::int64_t col, double value) {
    store(type, data.data(), row * ld + col, value);
  }
};

}  // namespace softmax
