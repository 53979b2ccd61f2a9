#pragma once
/// @file
/// Is an output the softmax of an input? Each element is judged by itself, against an error bound that
/// follows from how the kernel computes, so that neither an all-zero nor a uniform output can pass at any
/// width.
#include <cstdint>
#include <string>
#include <vector>

#include "numerics/matrix.hpp"

namespace softmax {

/// Why an element failed.
enum class failure { none, error_too_large, never_written, nan_unexpected, nan_expected };
/// One word or two, for reports.
const char* to_string(failure);

/// One element, as the report shows it.
struct element_report {
  std::int64_t row = -1;  ///< -1: no element was checked
  std::int64_t col = -1;  ///< likewise
  double got = 0;  ///< the output
  double want = 0;  ///< the reference, in fp64
  double ulp = 0;  ///< |got - want| in ulp of the storage type at want
  double limit = 0;  ///< allowed, in the same unit
  failure why = failure::none;  ///< none: the element is right
};

/// What verify() found.
struct verdict {
  bool pass = true;  ///< no element failed
  std::int64_t rows_checked = 0;  ///< of the matrix
  std::int64_t elements = 0;  ///< checked
  std::int64_t failures = 0;  ///< elements that are wrong
  std::int64_t special_rows = 0;  ///< checked rows whose right answer is NaN
  std::int64_t zero_output_would_fail = 0;  ///< elements that an all-zero output would get wrong
  element_report worst;  ///< the first failure, else the error nearest to its limit
  double largest_ulp = 0;  ///< over the elements that are right
};

/// Which rows to look at: all, or a sample of about `rows` that holds the first and the last ones.
struct row_choice {
  std::int64_t rows = -1;  ///< -1: all
};
/// The rows that a choice means, in order, of a matrix of `rows` rows.
std::vector<std::int64_t> chosen_rows(row_choice choice, std::int64_t rows);

/// Host memory that verify() takes beside the matrices, in bytes: each of its threads, one a core and never
/// more than there are rows to check, holds a row and its softmax in fp64. At most INT64_MAX.
std::int64_t verify_bytes(row_choice choice, std::int64_t rows, std::int64_t cols);

/// How a kernel computes, as far as its errors depend on it.
struct error_model {
  double sum_depth = 0;  ///< additions on the way of a term into the row sum, at most
  double exponent_roundings = 1;  ///< of an exponent, from x to exp(x - max)
  double extra_ulp = 0;  ///< of a 16-bit result that need not be rounded to nearest
};

/// The allowed |got - want| of one element. A kernel that computes in fp32, unit roundoff u = 2^-24, with an
/// exponential good to 2 ulp, r roundings of an exponent and k additions on the longest path of the sum, errs
/// relatively by at most u (r distance + r mean_distance + k + 10), where distance = max - x, since an
/// exponent is rounded before it is exponentiated (Higham 2002, section 4.2, for the sum). Rounding to the
/// storage type adds half an ulp. What is smaller than the smallest normal number may be flushed to zero.
double error_limit(dtype type, double want, double distance, double mean_distance, const error_model& errors);

/// Compares y with the reference of x, row by row, on all cores. x and y have the same shape; strides may
/// differ.
verdict verify(const host_matrix& x, const host_matrix& y, const error_model& errors, row_choice choice = {});

}  // namespace softmax
