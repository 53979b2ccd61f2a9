#pragma once
/// @file
/// The oracle: softmax in double precision, straight from the definition.
#include <span>

namespace softmax {

/// What the reference says of one row, besides its values.
struct row_facts {
  bool special = false;  ///< the row holds a NaN or +inf, or nothing but -inf: every output is NaN
  double maximum = 0;  ///< meaningless when special
  double sum = 0;  ///< of exp(x - maximum), at least 1
  double mean_distance =
      0;  ///< of maximum - x, weighted by the result: how far down the mass of the row lies
};

/// y = exp(x - max(x)) / sum(exp(x - max(x))) in fp64, the sum compensated (Neumaier 1974).
/// x and y have the same length; an empty row gives an empty result.
/// A row with a NaN or +inf, or wholly -inf, is NaN in every column, as in PyTorch's torch.softmax.
/// `threads` threads share a long row; the result is the same, bit by bit, for any number of them.
row_facts reference_row(std::span<const double> x, std::span<double> y, int threads = 1);

}  // namespace softmax
