#include "numerics/verify.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "numerics/parallel.hpp"
#include "numerics/reference.hpp"

#ifdef __FAST_MATH__
#error "the verifier must see NaN: compile it without -ffast-math"
#endif

namespace softmax {
namespace {

/// Does the report gain by showing `a` in place of `b`? A failure beats none, the first failure beats later
/// ones, and among right elements the one nearest to its limit wins, so that the order of threads does not
/// matter.
bool more_telling(const element_report& a, const element_report& b) {
  if (a.row < 0 || b.row < 0) return b.row < 0 && a.row >= 0;
  const bool a_failed = a.why != failure::none, b_failed = b.why != failure::none;
  if (a_failed != b_failed) return a_failed;
  const bool a_first = std::pair(a.row, a.col) < std::pair(b.row, b.col);
  if (a_failed) return a_first;
  const double left = a.ulp * b.limit, right = b.ulp * a.limit;
  return left > right || (left == right && a_first);
}

/// Columns begin to end - 1 of one row.
verdict judge(const host_matrix& y, std::int64_t row, std::int64_t begin, std::int64_t end,
              const std::vector<double>& x, const std::vector<double>& want, const row_facts& facts,
              const error_model& errors) {
  verdict v;
  for (std::int64_t col = begin; col < end; ++col) {
    element_report e{.row = row, .col = col, .got = y.at(row, col), .want = want[col]};
    const double distance = facts.maximum - x[col];
    const double ulp = ulp_at(y.type, e.want);
    const double allowed = facts.special || std::isinf(distance)  // -inf among numbers: exactly 0
                               ? 0
                               : error_limit(y.type, e.want, distance, facts.mean_distance, errors);
    e.limit = allowed / ulp;
    e.ulp = std::abs(e.got - e.want) / ulp;
    if (bits_of(y.type, y.data.data(), row * y.ld + col) == poison_bits(y.type))
      e.why = failure::never_written;
    else if (facts.special)
      e.why = std::isnan(e.got) ? failure::none : failure::nan_expected;
    else if (std::isnan(e.got))
      e.why = failure::nan_unexpected;
    else if (!(std::abs(e.got - e.want) <= allowed))
      e.why = failure::error_too_large;

    ++v.elements;
    if (facts.special || !(e.want <= allowed)) ++v.zero_output_would_fail;
    const bool failed = e.why != failure::none;
    v.failures += failed;
    if (!failed && facts.special) continue;  // NaN as it must be: no error to compare
    if (!failed) v.largest_ulp = std::max(v.largest_ulp, e.ulp);
    if (more_telling(e, v.worst)) v.worst = e;
  }
  return v;
}

constexpr std::int64_t ends_checked = 8;  // rows at either end that every sample holds
constexpr std::int64_t piece_length = 1 << 16;  // columns of a long row that one thread judges at a time

bool takes_all(row_choice choice, std::int64_t rows) { return choice.rows < 0 || choice.rows >= rows; }

void merge(verdict& into, const verdict& from) {
  if (more_telling(from.worst, into.worst)) into.worst = from.worst;
  into.rows_checked += from.rows_checked;
  into.elements += from.elements;
  into.failures += from.failures;
  into.special_rows += from.special_rows;
  into.zero_output_would_fail += from.zero_output_would_fail;
  into.largest_ulp = std::max(into.largest_ulp, from.largest_ulp);
}

struct row_buffers {
  std::vector<double> x, want;
};

verdict check_row(const host_matrix& x, const host_matrix& y, std::int64_t row, const error_model& errors,
                  row_buffers& buffers, int threads) {
  parallel_pieces(x.cols, piece_length, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t col = begin; col < end; ++col) buffers.x[col] = x.at(row, col);
  });
  const row_facts facts = reference_row(buffers.x, buffers.want, threads);
  verdict v;
  std::mutex guard;
  parallel_pieces(x.cols, piece_length, threads, [&](std::int64_t begin, std::int64_t end) {
    const verdict of_piece = judge(y, row, begin, end, buffers.x, buffers.want, facts, errors);
    const std::scoped_lock lock(guard);
    merge(v, of_piece);
  });
  v.rows_checked = 1;
  v.special_rows = facts.special;
  return v;
}

}  // namespace

const char* to_string(failure why) {
  switch (why) {
    case failure::none:
      return "right";
    case failure::error_too_large:
      return "error too large";
    case failure::never_written:
      return "never written";
    case failure::nan_unexpected:
      return "NaN where a number belongs";
    case failure::nan_expected:
      return "a number where NaN belongs";
  }
  return "unknown";
}

std::vector<std::int64_t> chosen_rows(row_choice choice, std::int64_t rows) {
  std::vector<std::int64_t> chosen;
  if (takes_all(choice, rows)) {
    chosen.resize(rows);
    for (std::int64_t i = 0; i < rows; ++i) chosen[i] = i;
    return chosen;
  }
  // Evenly spread, and some at either end, where index arithmetic goes wrong.
  const std::int64_t ends = std::min(ends_checked, rows / 2);
  for (std::int64_t i = 0; i < ends; ++i) {
    chosen.push_back(i);
    chosen.push_back(rows - 1 - i);
  }
  for (std::int64_t i = 0; i < choice.rows; ++i)
    chosen.push_back(static_cast<std::int64_t>(static_cast<double>(i) / static_cast<double>(choice.rows) *
                                               static_cast<double>(rows)));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

std::int64_t verify_bytes(row_choice choice, std::int64_t rows, std::int64_t cols) {
  if (rows == 0 || cols == 0) return 0;
  const std::int64_t checked =
      takes_all(choice, rows) ? rows : std::min(rows, choice.rows + 2 * ends_checked);
  const std::int64_t per_column = 2 * static_cast<std::int64_t>(sizeof(double)) * threads_for(checked);
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(per_column, cols, &bytes) ? INT64_MAX : bytes;
}

double error_limit(dtype type, double want, double distance, double mean_distance,
                   const error_model& errors) {
  const double unit_roundoff = std::ldexp(1.0, -24);
  const double exponents = errors.exponent_roundings * (distance + mean_distance);
  const double relative = want > 0 ? unit_roundoff * (exponents + errors.sum_depth + 10) : 0;
  const double storage =
      type == dtype::f32 ? 0.0
                         : 0.5 * ulp_at(type, want * (1 + relative)) + errors.extra_ulp * ulp_at(type, want);
  return want * relative + storage + flush_floor(type);
}

verdict verify(const host_matrix& x, const host_matrix& y, const error_model& errors, row_choice choice) {
  verdict total;
  if (x.rows == 0 || x.cols == 0) return total;
  // All rows need no list of their own: at 2^31 rows it would be larger than the matrices.
  const bool all = takes_all(choice, x.rows);
  const std::vector<std::int64_t> sample = all ? std::vector<std::int64_t>() : chosen_rows(choice, x.rows);
  const std::int64_t count = all ? x.rows : static_cast<std::int64_t>(sample.size());
  // Where there are fewer rows than cores, several threads share a row.
  const int rows_at_once = threads_for(count), threads_a_row = cores() / rows_at_once;
  struct checker {
    row_buffers buffers;
    verdict found;
  };
  std::vector<checker> checkers(rows_at_once);
  parallel_for(count, rows_at_once, [&](std::int64_t i, int thread) {
    checker& mine = checkers[thread];
    mine.buffers.x.resize(x.cols);
    mine.buffers.want.resize(x.cols);
    merge(mine.found, check_row(x, y, all ? i : sample[i], errors, mine.buffers, threads_a_row));
  });
  for (const checker& c : checkers) merge(total, c.found);
  total.pass = total.failures == 0;
  return total;
}

}  // namespace softmax
