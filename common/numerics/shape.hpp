#pragma once
/// @file
/// The shape of the operator's two matrices.
#include <cstddef>
#include <cstdint>
#include <string>

/// Row-wise softmax: its numbers, the stages, and the programs around them.
namespace softmax {

/// Row-wise softmax of an M x N matrix: rows (M) are independent, columns (N) are normalised. Row i of the
/// input starts at x + i * ld_in, row i of the output at y + i * ld_out. All counts are in elements, and 64
/// bits wide: M * N passes 2^31 on every GPU with 8 GB. The elements of a row lie side by side; a transposed
/// view has to be copied first.
struct matrix_shape {
  std::int64_t rows = 0;  ///< M
  std::int64_t cols = 0;  ///< N
  std::int64_t ld_in = 0;  ///< row stride of x, at least cols
  std::int64_t ld_out = 0;  ///< row stride of y, at least cols
};

/// Why the shape cannot be run, in one sentence; empty if it can. Strides do not matter to an empty matrix.
/// `in_name` and `out_name` are what the caller calls the strides.
inline std::string shape_problem(const matrix_shape& s, const char* in_name = "--ld-in",
                                 const char* out_name = "--ld-out") {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  if (s.rows < 0 || s.cols < 0)
    return "A matrix of " + number(s.rows) + " rows and " + number(s.cols) +
           " columns does not exist: use 0 or more.";
  if (s.rows == 0 || s.cols == 0) return "";
  const auto stride = [&](const char* option, std::int64_t ld) {
    return ld >= s.cols
               ? std::string()
               : std::string(option) + " " + number(ld) + " is below the " + number(s.cols) +
                     " columns of a row, so rows would overlap: use at least " + number(s.cols) + ".";
  };
  const std::string in = stride(in_name, s.ld_in);
  return in.empty() ? stride(out_name, s.ld_out) : in;
}

/// Why a softmax cannot work on matrices at these addresses, in one sentence; empty if it can. The output may
/// take the input's place, row for row; otherwise the two lie apart.
inline std::string overlap_problem(const void* x, const void* y, const matrix_shape& s,
                                   std::size_t element_bytes) {
  if (s.rows == 0 || s.cols == 0) return "";
  if (x == y && s.ld_in == s.ld_out) return "";
  const auto bytes = [&](std::int64_t ld) {
    return static_cast<std::uintptr_t>((s.rows - 1) * ld + s.cols) * element_bytes;
  };
  const auto in = reinterpret_cast<std::uintptr_t>(x), out = reinterpret_cast<std::uintptr_t>(y);
  if (in + bytes(s.ld_in) <= out || out + bytes(s.ld_out) <= in) return "";
  return "The output overlaps the input without being it, so rows would be overwritten before they are read: "
         "use the same address and row stride for both, or memory apart.";
}

}  // namespace softmax
