#pragma once
/// @file
/// Seeded inputs. An element depends on the seed, its place and the number of columns alone, whatever the
/// number of rows or threads. Logarithm and cosine come from the C library, so the last bit may differ
/// between machines.
#include <cstdint>
#include <string>
#include <vector>

#include "numerics/matrix.hpp"

namespace softmax {

/// A way to fill a matrix.
struct distribution {
  std::string name;  ///< as on the command line
  std::string description;  ///< one line for --help
};
/// All that make_input() knows, in the order of --help.
const std::vector<distribution>& distributions();

/// `text` is a name of distributions(), some with a parameter behind a colon ("const:0.5", "spike:last").
/// Padding behind each row is NaN, so that a kernel which reads it cannot be right.
/// @throws std::invalid_argument with one sentence if there is no such distribution or its parameter is wrong
host_matrix make_input(const std::string& text, std::uint64_t seed, dtype type, std::int64_t rows,
                       std::int64_t cols, std::int64_t ld);

}  // namespace softmax
