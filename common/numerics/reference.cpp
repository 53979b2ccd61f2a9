#include "numerics/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace softmax {
namespace {

/// A sum whose rounding errors are carried along and added at the end.
class compensated_sum {
 public:
  void add(double term) {
    const double t = sum_ + term;
    carry_ += std::abs(sum_) >= std::abs(term) ? (sum_ - t) + term : (term - t) + sum_;
    sum_ = t;
  }
  double value() const { return sum_ + carry_; }

 private:
  double sum_ = 0, carry_ = 0;
};

}  // namespace

row_facts reference_row(std::span<const double> x, std::span<double> y) {
  row_facts facts;
  if (x.empty()) return facts;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double maximum = -infinity;
  for (double v : x) {
    if (std::isnan(v) || v == infinity) facts.special = true;
    maximum = std::max(maximum, v);
  }
  if (maximum == -infinity) facts.special = true;
  if (facts.special) {
    std::fill(y.begin(), y.end(), std::numeric_limits<double>::quiet_NaN());
    return facts;
  }
  compensated_sum sum;
  double weighted = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = std::exp(x[i] - maximum);
    sum.add(y[i]);
    if (y[i] > 0) weighted += y[i] * (maximum - x[i]);
  }
  facts.maximum = maximum;
  facts.sum = sum.value();
  facts.mean_distance = weighted / facts.sum;
  for (double& v : y) v /= facts.sum;
  return facts;
}

}  // namespace softmax
