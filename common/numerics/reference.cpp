#include "numerics/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numerics/parallel.hpp"

namespace softmax {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A sum whose rounding errors are carried along and added at the end.
class compensated_sum {
 public:
  void add(double term) {
    const double t = sum_ + term;
    carry_ += std::abs(sum_) >= std::abs(term) ? (sum_ - t) + term : (term - t) + sum_;
    sum_ = t;
  }
  void add(const compensated_sum& other) {
    add(other.sum_);
    carry_ += other.carry_;
  }
  double value() const { return sum_ + carry_; }

 private:
  double sum_ = 0, carry_ = 0;
};

/// What one piece of a row adds to the facts of the row.
struct piece {
  double maximum = -infinity;
  bool special = false;  // a NaN or +inf
  compensated_sum sum;
  double weighted = 0;
};

// Fixed, and not a share of the row for each thread, or sums would depend on the number of cores.
constexpr std::int64_t piece_length = 1 << 16;

}  // namespace

row_facts reference_row(std::span<const double> x, std::span<double> y, int threads) {
  row_facts facts;
  if (x.empty()) return facts;
  const auto length = static_cast<std::int64_t>(x.size());
  std::vector<piece> pieces((length - 1) / piece_length + 1);
  const auto in_pieces = [&](const auto& work) {
    parallel_pieces(length, piece_length, threads, [&](std::int64_t begin, std::int64_t end) {
      work(pieces[begin / piece_length], begin, end);
    });
  };

  in_pieces([&](piece& p, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (std::isnan(x[i]) || x[i] == infinity) p.special = true;
      p.maximum = std::max(p.maximum, x[i]);
    }
  });
  double maximum = -infinity;
  for (const piece& p : pieces) {
    facts.special |= p.special;
    maximum = std::max(maximum, p.maximum);
  }
  if (maximum == -infinity) facts.special = true;
  if (facts.special) {
    std::fill(y.begin(), y.end(), std::numeric_limits<double>::quiet_NaN());
    return facts;
  }

  in_pieces([&](piece& p, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = std::exp(x[i] - maximum);
      p.sum.add(y[i]);
      if (y[i] > 0) p.weighted += y[i] * (maximum - x[i]);
    }
  });
  compensated_sum sum;
  double weighted = 0;
  for (const piece& p : pieces) {
    sum.add(p.sum);
    weighted += p.weighted;
  }
  facts.maximum = maximum;
  facts.sum = sum.value();
  facts.mean_distance = weighted / facts.sum;
  in_pieces([&](piece&, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] /= facts.sum;
  });
  return facts;
}

}  // namespace softmax
