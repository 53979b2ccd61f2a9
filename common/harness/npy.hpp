#pragma once
/// @file
/// Matrices from and to NumPy's .npy files (format version 1 to 3, numpy.lib.format).
#include <string>

#include "numerics/matrix.hpp"

namespace softmax {

/// Reads float32 or float16 data in C order, of any byte order. The last axis is the row: an array of shape
/// (a, b, n) becomes a matrix of a*b rows and n columns, one of shape (n,) a single row.
/// @throws usage_error if the file is missing, truncated, no .npy file, or of another type or order
host_matrix read_npy(const std::string& path);

/// Writes a 2-D array without padding: f32 as '<f4', f16 as '<f2'. NumPy has no bf16, so bf16 is widened to
/// '<f4', exactly. The file appears under its name only when it is complete.
/// @throws usage_error if the file cannot be written
void write_npy(const std::string& path, const host_matrix& m);

}  // namespace softmax
