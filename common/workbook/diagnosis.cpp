#include "workbook/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <set>

#include "numerics/reference.hpp"
#include "workbook/kernel_text.hpp"

namespace softmax::workbook {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

bool written(const case_run& r, std::int64_t row, std::int64_t col) {
  return bits_of(r.type, r.y.data.data(), row * r.y.ld + col) != poison_bits(r.type);
}

/// One case as the hypotheses see it: values of x, and the right answer.
struct view {
  const case_run* run;
  std::int64_t rows, cols;
  std::vector<std::vector<float>> x;
  std::vector<std::vector<double>> want;
  std::vector<row_facts> facts;

  explicit view(const case_run& r) : run(&r), rows(r.shape.rows), cols(r.shape.cols) {
    for (std::int64_t i = 0; i < rows; ++i) {
      std::vector<double> in(cols), out(cols);
      for (std::int64_t j = 0; j < cols; ++j) in[j] = r.x.at(i, j);
      facts.push_back(reference_row(in, out));
      x.emplace_back(in.begin(), in.end());
      want.push_back(out);
    }
  }
  double got(std::int64_t row, std::int64_t col) const { return run->y.at(row, col); }
  bool is_written(std::int64_t row, std::int64_t col) const { return written(*run, row, col); }
  bool fails(std::int64_t row, std::int64_t col) const {
    const double g = got(row, col), w = want[row][col];
    if (!is_written(row, col)) return true;
    if (std::isnan(w) || std::isnan(g)) return std::isnan(w) != std::isnan(g);
    const double rough = run->type == dtype::f32 ? 2e-5 : run->type == dtype::f16 ? 2e-3 : 1e-2;
    return !(std::abs(g - w) <= rough * w + (run->type == dtype::f16 ? 1e-7 : 1e-37));
  }
};

/// A prediction that agrees with everything: where a divisor is so small that dividing by it and multiplying
/// with its reciprocal differ.
constexpr float anything = std::numeric_limits<float>::lowest();

float quotient(float a, float b) { return b > 0 && b < 1.2e-38f ? anything : a / b; }

/// A prediction for the whole matrix, row by row.
using prediction = std::vector<std::vector<float>>;

bool agrees(const view& v, const prediction& p) {
  const double relative = v.run->type == dtype::f32 ? 1e-4 : v.run->type == dtype::f16 ? 2e-3 : 1.6e-2;
  const double tiny = v.run->type == dtype::f16 ? 1.2e-7 : 1.2e-38;
  for (std::int64_t i = 0; i < v.rows; ++i)
    for (std::int64_t j = 0; j < v.cols; ++j) {
      if (!v.is_written(i, j)) return false;
      const double g = v.got(i, j), e = p[i][j];
      if (p[i][j] == anything) continue;
      if (std::isnan(g) || std::isnan(e)) {
        if (std::isnan(g) != std::isnan(e)) return false;
        continue;
      }
      if (v.run->type == dtype::f16 && std::isinf(g) && e > 65000) continue;
      if (std::isinf(g) || std::isinf(e)) {
        if (g != e) return false;
        continue;
      }
      double allowed = relative * std::abs(e) + tiny;
      if (!std::isnan(v.want[i][j]) && v.fails(i, j))
        allowed = std::min(allowed, 0.25 * std::abs(g - v.want[i][j]) + tiny);
      if (!(std::abs(g - e) <= allowed)) return false;
    }
  return true;
}

// --- how the columns of a row meet

enum class scope { thread, half, warp, row };

struct recipe {
  scope max_over = scope::row, sum_over = scope::row;
  std::function<bool(std::int64_t thread, const case_run&)> counted;  ///< threads that a reduction hears of
  bool max_subset = true;  ///< the maximum is over those, too
  float seed = -infinity;  ///< of the maximum
  float padding = -infinity;  ///< what masked lanes hold
};

std::int64_t member(scope s, std::int64_t thread, int warp) {
  switch (s) {
    case scope::thread:
      return thread;
    case scope::half:
      return thread / 32;
    case scope::warp:
      return thread / warp;
    case scope::row:
      return 0;
  }
  return 0;
}

/// A mistake in the running pair of a stage that streams.
struct stream_mistake {
  bool rescales = true;  ///< the sum so far, when the maximum grows
  bool wrong_way = false;  ///< by the reciprocal of what it should be
  bool keeps_maximum = true;
  bool whole_batch = true;
  bool merge_rescales = true;
  bool merge_keeps_larger = false;
  bool guarded = true;  ///< against -inf - (-inf)
  bool own_maximum = false;  ///< in the result, of each thread
  std::function<bool(std::int64_t thread, const case_run&)> counted = {};
};

prediction streamed(const view& v, const stream_mistake& how) {
  const case_run& r = *v.run;
  const auto safe = [&](float m) { return how.guarded && m == -infinity ? 0.0f : m; };
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> m(r.row_threads, -infinity), d(r.row_threads, 0.0f);
    for (int t = 0; t < r.row_threads; ++t)
      for (std::int64_t start = 0; start < v.cols; start += std::int64_t{r.batch} * r.row_threads) {
        const auto value = [&](int k) {
          const std::int64_t c = start + std::int64_t{k} * r.row_threads + t;
          return c < v.cols ? v.x[i][c] : -infinity;
        };
        float now = m[t];
        for (int k = 0; k < r.batch; ++k) now = std::fmax(now, value(k));
        if (how.wrong_way)
          d[t] *= std::exp(safe(now) - safe(m[t]));
        else if (how.rescales)
          d[t] *= std::exp(m[t] - safe(now));
        for (int k = 0; k < (how.whole_batch ? r.batch : 1); ++k) d[t] += std::exp(value(k) - safe(now));
        if (how.keeps_maximum) m[t] = now;
      }
    float m_row = -infinity;
    for (int t = 0; t < r.row_threads; ++t)
      if (!how.counted || how.counted(t, r)) m_row = std::fmax(m_row, m[t]);
    double d_row = 0;
    bool found = false;
    for (int t = 0; t < r.row_threads; ++t) {
      if (how.counted && !how.counted(t, r)) continue;
      if (!how.merge_keeps_larger)
        d_row += how.merge_rescales ? d[t] * std::exp(m[t] - safe(m_row)) : d[t];
      else if (!found && m[t] == m_row)
        d_row = d[t], found = true;
    }
    const float scale = 1.0f / static_cast<float>(d_row);
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c)
      row[c] = std::exp(v.x[i][c] - (how.own_maximum ? m[c % r.row_threads] : m_row)) * scale;
    p.push_back(row);
  }
  return p;
}

/// What a kernel gives that does all right but what the recipe says.
prediction cook(const view& v, const recipe& how) {
  const case_run& r = *v.run;
  if (r.batch > 0 && how.counted && how.max_subset) return streamed(v, {.counted = how.counted});
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    const auto value = [&](std::int64_t c) { return c < v.cols ? v.x[i][c] : how.padding; };
    const auto hears = [&](std::int64_t c) { return !how.counted || how.counted(c % r.row_threads, r); };
    std::map<std::int64_t, float> m, d;
    for (std::int64_t c = 0; c < r.padded; ++c) {
      float& mine = m.try_emplace(member(how.max_over, c % r.row_threads, r.warp), how.seed).first->second;
      if (!how.max_subset || hears(c)) mine = std::fmax(mine, value(c));
    }
    std::map<std::int64_t, double> exact;
    for (std::int64_t c = 0; c < r.padded; ++c) {
      if (c >= v.cols && !r.masked_in_sum) continue;
      const std::int64_t thread = c % r.row_threads;
      double& sum = exact[member(how.sum_over, thread, r.warp)];
      if (hears(c)) sum += std::exp(value(c) - m[member(how.max_over, thread, r.warp)]);
    }
    for (const auto& [key, sum] : exact) d[key] = static_cast<float>(sum);
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c) {
      const std::int64_t thread = c % r.row_threads;
      row[c] = quotient(std::exp(v.x[i][c] - m[member(how.max_over, thread, r.warp)]),
                        d[member(how.sum_over, thread, r.warp)]);
    }
    p.push_back(row);
  }
  return p;
}

/// y[i][j] = f(x, max, sum) for rows that are not special; those stay NaN unless f makes a number of them.
template <class F>
prediction each(const view& v, F f) {
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    float m = -infinity;
    for (float x : v.x[i]) m = std::fmax(m, x);
    double d = 0;
    for (float x : v.x[i]) d += std::exp(x - m);
    std::vector<float> row(v.cols);
    for (std::int64_t j = 0; j < v.cols; ++j) row[j] = f(i, v.x[i][j], m, static_cast<float>(d));
    p.push_back(row);
  }
  return p;
}

template <class F>
float sum_of(const std::vector<float>& x, F f) {
  double d = 0;
  for (float value : x) d += f(value);
  return static_cast<float>(d);
}

/// The softmax of each row of `rows` values.
std::vector<float> softmax_of(const std::vector<float>& x) {
  std::vector<double> in(x.begin(), x.end()), out(x.size());
  reference_row(in, out);
  return {out.begin(), out.end()};
}

/// Rows divided by the sum of row which(i).
prediction with_sum_of(const view& v, const std::function<std::int64_t(std::int64_t)>& which) {
  std::vector<float> sums(v.rows, not_a_number);
  each(v,
       [&](std::int64_t i, float, float m, float d) { return sums[i] = m == infinity ? not_a_number : d; });
  return each(v, [&](std::int64_t i, float x, float m, float) { return std::exp(x - m) / sums[which(i)]; });
}

/// Where rows share a warp, the sum is over the whole warp; where a row has several, over each of them.
prediction over_the_warp(const view& v) {
  const case_run& r = *v.run;
  if (r.row_threads >= r.warp) return cook(v, {.sum_over = scope::warp});
  const std::int64_t together = r.warp / r.row_threads;
  return each(v, [&](std::int64_t i, float x, float m, float) {
    const std::int64_t first = i - i % together;
    if (first + together > v.rows) return not_a_number;  // a share without a row: -inf - (-inf)
    float d = 0;
    for (std::int64_t k = first; k < first + together; ++k) {
      const float most = *std::max_element(v.x[k].begin(), v.x[k].end());
      d += sum_of(v.x[k], [most](float a) { return std::exp(a - most); });
    }
    return std::exp(x - m) / d;
  });
}

prediction of_row(const view& v, const std::function<std::int64_t(std::int64_t)>& which) {
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) p.push_back(softmax_of(v.x[which(i)]));
  return p;
}

/// Reductions by shuffle_down within the lanes of a row: only the first lane ends with the whole.
prediction shifted_down(const view& v) {
  const case_run& r = *v.run;
  const int width = std::min(r.row_threads, r.warp);
  if (r.row_threads > r.warp) return cook(v, {});  // lane 0 is the one that is passed on
  prediction p;
  const auto reduce = [&](std::vector<float> lanes, auto op) {
    for (int step = width / 2; step > 0; step /= 2) {
      std::vector<float> next = lanes;
      for (int l = 0; l < width; ++l) next[l] = op(lanes[l], lanes[l + step < width ? l + step : l]);
      lanes = next;
    }
    return lanes;
  };
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> m(width, -infinity), d(width, 0.0f);
    const auto value = [&](std::int64_t c) { return c < v.cols ? v.x[i][c] : -infinity; };
    for (std::int64_t c = 0; c < r.padded; ++c) m[c % width] = std::fmax(m[c % width], value(c));
    m = reduce(m, [](float a, float b) { return std::fmax(a, b); });
    for (std::int64_t c = 0; c < r.padded; ++c) d[c % width] += std::exp(value(c) - m[c % width]);
    d = reduce(d, [](float a, float b) { return a + b; });
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c)
      row[c] = std::exp(v.x[i][c] - m[c % width]) * (1.0f / d[c % width]);
    p.push_back(row);
  }
  return p;
}

/// The right results, in the wrong columns.
prediction moved(const view& v, const std::function<std::int64_t(std::int64_t)>& from) {
  prediction p;
  for (const auto& right : v.want) {
    std::vector<float> row(v.cols);
    for (std::int64_t j = 0; j < v.cols; ++j) row[j] = static_cast<float>(right[from(j)]);
    p.push_back(row);
  }
  return p;
}

/// Every fp32 result is a number that fp16 can hold, where the right ones are not.
bool held_in_fp16(const std::vector<view>& views) {
  std::int64_t seen = 0;
  for (const view& v : views) {
    if (v.run->type != dtype::f32) continue;
    for (std::int64_t i = 0; i < v.rows; ++i)
      for (std::int64_t j = 0; j < v.cols; ++j) {
        const double g = v.got(i, j);
        unsigned char bits[2];
        store(dtype::f16, bits, 0, g);
        int exponent = 0;
        if (!std::isfinite(g) || g == 0 || std::frexp(g, &exponent) == 0.5)
          continue;  // every type holds those
        if (load(dtype::f16, bits, 0) != g) return false;
        ++seen;
      }
  }
  return seen > 100;
}

/// The row taken from memory as if rows lay side by side.
prediction without_stride(const view& v) {
  const host_matrix& x = v.run->x;
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> row(v.cols);
    for (std::int64_t j = 0; j < v.cols; ++j)
      row[j] = static_cast<float>(load(x.type, x.data.data(), i * v.cols + j));
    p.push_back(softmax_of(row));
  }
  return p;
}

prediction over_columns(const view& v) {
  prediction p(v.rows, std::vector<float>(v.cols));
  for (std::int64_t j = 0; j < v.cols; ++j) {
    std::vector<float> column;
    for (std::int64_t i = 0; i < v.rows; ++i) column.push_back(v.x[i][j]);
    const std::vector<float> y = softmax_of(column);
    for (std::int64_t i = 0; i < v.rows; ++i) p[i][j] = y[i];
  }
  return p;
}

prediction over_matrix(const view& v) {
  double total = 0;
  std::vector<float> m;
  for (const auto& row : v.x) {
    m.push_back(*std::max_element(row.begin(), row.end()));
    for (float x : row) total += std::exp(x - m.back());
  }
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> row;
    for (float x : v.x[i]) row.push_back(static_cast<float>(std::exp(x - m[i]) / total));
    p.push_back(row);
  }
  return p;
}

/// The sum leaves out columns from `kept` on; the maximum may see them.
prediction prefix(const view& v, std::int64_t kept, bool max_sees_all) {
  return each(
      v, [&, row = std::int64_t{-1}, m = 0.0f, d = 0.0f](std::int64_t i, float x, float all, float) mutable {
        if (i != row) {
          row = i;
          m = -infinity;
          for (std::int64_t c = 0; c < std::min(kept, v.cols); ++c) m = std::fmax(m, v.x[i][c]);
          if (max_sees_all) m = all;
          double sum = 0;
          for (std::int64_t c = 0; c < std::min(kept, v.cols); ++c) sum += std::exp(v.x[i][c] - m);
          d = static_cast<float>(sum);
        }
        return std::exp(x - m) / d;
      });
}

/// The sum holds nothing but each thread's last column, as with = in place of +=.
prediction last_trip(const view& v) {
  const std::int64_t begin = v.run->padded - v.run->row_threads;
  return each(v, [&](std::int64_t i, float x, float m, float) {
    float d = 0;
    for (std::int64_t c = std::max<std::int64_t>(begin, 0); c < v.cols; ++c) d += std::exp(v.x[i][c] - m);
    return quotient(std::exp(x - m), d);
  });
}

struct hypothesis {
  std::string label;
  std::string evidence;
  std::function<prediction(const view&)> predict;
  std::function<bool(const view&)> applies = {};  ///< to the stage at all; empty: always
};

bool wave64_only(const view& v) { return v.run->warp == 64; }
bool streams(const view& v) { return v.run->batch > 0; }

const std::vector<hypothesis>& hypotheses() {
  static const std::vector<hypothesis> all = {
      {"zero-padding", "the results are those of masked lanes that hold 0",
       [](const view& v) { return cook(v, {.padding = 0.0f}); }},
      {"maximum-starts-at-0", "negative rows come out as with maximum 0",
       [](const view& v) { return cook(v, {.seed = 0.0f}); }},
      {"no-maximum", "the results are those of exp(x) / sum(exp(x))",
       [](const view& v) {
         return each(v, [&, row = std::int64_t{-1}, d = 0.0f](std::int64_t i, float x, float, float) mutable {
           if (i != row) d = sum_of(v.x[row = i], [](float a) { return std::exp(a); });
           return std::exp(x) / d;
         });
       }},
      {"sum-without-maximum", "y is exp(x - max) / sum(exp(x))",
       [](const view& v) {
         return each(v,
                     [&, row = std::int64_t{-1}, d = 0.0f](std::int64_t i, float x, float m, float) mutable {
                       if (i != row) d = sum_of(v.x[row = i], [](float a) { return std::exp(a); });
                       return std::exp(x - m) / d;
                     });
       }},
      {"numerator-without-maximum", "y is exp(x) / sum(exp(x - max))",
       [](const view& v) {
         return each(v, [](std::int64_t, float x, float, float d) { return std::exp(x) / d; });
       }},
      {"not-normalised", "y is exp(x - max): the largest of each row is 1",
       [](const view& v) { return each(v, [](auto, float x, float m, float) { return std::exp(x - m); }); }},
      {"no-exponential", "y is (x - max) / sum: the exponential is missing",
       [](const view& v) { return each(v, [](auto, float x, float m, float d) { return (x - m) / d; }); }},
      {"no-exponential", "y is x - max: the exponential is missing",
       [](const view& v) { return each(v, [](auto, float x, float m, float) { return x - m; }); }},
      {"no-exponential", "sum and y are of x - max, without exp",
       [](const view& v) {
         return each(v, [&](std::int64_t i, float x, float m, float) {
           return (x - m) / sum_of(v.x[i], [m](float a) { return a - m; });
         });
       }},
      {"log-softmax", "y is x - max - log(sum), the logarithm of the softmax",
       [](const view& v) {
         return each(v, [](auto, float x, float m, float d) { return x - m - std::log(d); });
       }},
      {"multiplied-by-sum", "y is exp(x - max) times the sum",
       [](const view& v) {
         return each(v, [](auto, float x, float m, float d) { return std::exp(x - m) * d; });
       }},
      {"exponentiated-twice", "the sum is of exp(exp(x - max) - max)",
       [](const view& v) {
         return each(v, [&](std::int64_t i, float x, float m, float) {
           const auto twice = [m](float a) { return std::exp(std::exp(a - m) - m); };
           return twice(x) / sum_of(v.x[i], twice);
         });
       }},
      {"base-2", "y is the softmax to base 2: exp2 instead of exp",
       [](const view& v) {
         return each(v, [&](std::int64_t i, float x, float m, float) {
           return std::exp2(x - m) / sum_of(v.x[i], [m](float a) { return std::exp2(a - m); });
         });
       }},
      {"uniform", "every column of a row is 1 / N, whatever x is",
       [](const view& v) {
         return each(v, [&](std::int64_t, float, float, float) { return 1.0f / static_cast<float>(v.cols); });
       }},
      {"sign-flipped", "large x give small y: the sign of x - max is flipped",
       [](const view& v) {
         return each(v, [&](std::int64_t i, float x, float m, float) {
           return std::exp(m - x) / sum_of(v.x[i], [m](float a) { return std::exp(m - a); });
         });
       }},
      {"first-row-everywhere", "every row holds the softmax of row 0",
       [](const view& v) { return of_row(v, [](std::int64_t) { return 0; }); }},
      {"wrong-row", "each row holds the softmax of the row before it",
       [](const view& v) {
         return of_row(v, [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); });
       }},
      {"wrong-row", "each row holds the softmax of the row behind it",
       [](const view& v) { return of_row(v, [&](std::int64_t i) { return std::min(i + 1, v.rows - 1); }); }},
      {"wrong-row", "the rows come out in reverse order",
       [](const view& v) { return of_row(v, [&](std::int64_t i) { return v.rows - 1 - i; }); }},
      {"wrong-axis", "each column sums to 1, not each row", [](const view& v) { return over_columns(v); }},
      {"sum-over-matrix", "the whole matrix sums to 1, not each row",
       [](const view& v) { return over_matrix(v); }},
      {"32-lanes-on-wave64", "only the first 32 of 64 lanes are heard",
       [](const view& v) {
         return cook(v, {.counted = [](std::int64_t t, const case_run&) { return t % 64 < 32; }});
       },
       wave64_only},
      {"32-lanes-on-wave64", "each 32 lanes have results of their own",
       [](const view& v) { return cook(v, {.max_over = scope::half, .sum_over = scope::half}); },
       wave64_only},
      {"32-lanes-on-wave64", "sums are over 32 lanes of 64",
       [](const view& v) { return cook(v, {.sum_over = scope::half}); }, wave64_only},
      {"32-lanes-on-wave64", "maxima are over 32 lanes of 64",
       [](const view& v) { return cook(v, {.max_over = scope::half}); }, wave64_only},
      {"32-lanes-on-wave64", "the sum hears only the first 32 of 64 lanes",
       [](const view& v) {
         return cook(v, {.counted = [](std::int64_t t, const case_run&) { return t % 64 < 32; },
                         .max_subset = false});
       },
       wave64_only},
      {"warp-only", "each warp has a maximum and a sum of its own",
       [](const view& v) { return cook(v, {.max_over = scope::warp, .sum_over = scope::warp}); }},
      {"warp-only", "each warp divides by its own sum",
       [](const view& v) { return cook(v, {.sum_over = scope::warp}); }},
      {"warp-only", "each warp subtracts its own maximum",
       [](const view& v) { return cook(v, {.max_over = scope::warp}); }},
      {"maximum-not-reduced", "each thread subtracts its own maximum",
       [](const view& v) { return cook(v, {.max_over = scope::thread}); }},
      {"sum-not-reduced", "each thread divides by its own sum",
       [](const view& v) { return cook(v, {.sum_over = scope::thread}); }},
      {"not-reduced", "each thread has a maximum and a sum of its own",
       [](const view& v) { return cook(v, {.max_over = scope::thread, .sum_over = scope::thread}); }},
      {"first-warp-only", "the sum hears only the first warp of a row",
       [](const view& v) {
         return cook(v, {.counted = [](std::int64_t t, const case_run& r) { return t < r.warp; }});
       }},
      {"first-warp-only", "the sum hears only the first warp of a row",
       [](const view& v) {
         return cook(v, {.counted = [](std::int64_t t, const case_run& r) { return t < r.warp; },
                         .max_subset = false});
       }},
      {"last-warp-dropped", "the last warp of a row is left out of the sum",
       [](const view& v) {
         return cook(v, {.counted = [](std::int64_t t, const case_run& r) {
                       return r.row_threads <= r.warp || t < r.row_threads - r.warp;
                     }});
       }},
      {"last-warp-dropped", "the last warp of a row is left out of the sum",
       [](const view& v) {
         return cook(v, {.counted =
                             [](std::int64_t t, const case_run& r) {
                               return r.row_threads <= r.warp || t < r.row_threads - r.warp;
                             },
                         .max_subset = false});
       }},
      {"sum-of-one-thread", "the sum is of one thread's columns",
       [](const view& v) {
         return cook(
             v, {.counted = [](std::int64_t t, const case_run&) { return t == 0; }, .max_subset = false});
       }},
      {"warp-not-share", "rows of a warp are divided by their joint sum", over_the_warp},
      {"sum-of-another-row", "rows are divided by the next row's sum",
       [](const view& v) { return with_sum_of(v, [&](std::int64_t i) { return (i + 1) % v.rows; }); }},
      {"sum-of-another-row", "rows are divided by the next row's sum",
       [](const view& v) {
         return with_sum_of(v, [&](std::int64_t i) { return std::min(i + 1, v.rows - 1); });
       }},
      {"sum-of-another-row", "rows are divided by the sum before theirs",
       [](const view& v) {
         return with_sum_of(v, [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); });
       }},
      {"sum-of-another-row", "every row is divided by the sum of row 0",
       [](const view& v) { return with_sum_of(v, [](std::int64_t) { return 0; }); }},
      {"shuffle-down", "only a row's first lane has the whole result", shifted_down},
      {"last-column-dropped", "the last column is left out of the sum",
       [](const view& v) { return prefix(v, v.cols - 1, true); }},
      {"last-column-dropped", "the last column is left out of maximum and sum",
       [](const view& v) { return prefix(v, v.cols - 1, false); }},
      {"first-batch-only", "only each thread's first column is summed",
       [](const view& v) { return prefix(v, v.run->row_threads, true); }},
      {"first-batch-only", "only each thread's first column is counted",
       [](const view& v) { return prefix(v, v.run->row_threads, false); }},
      {"last-batch-only", "only each thread's last column is summed",
       [](const view& v) { return last_trip(v); }},
      {"missing-rescale", "a growing maximum leaves the sum as it was",
       [](const view& v) { return streamed(v, {.rescales = false}); }, streams},
      {"merge-without-rescale", "sums of different maxima are just added",
       [](const view& v) { return streamed(v, {.merge_rescales = false}); }, streams},
      {"missing-rescale", "no sum is ever brought to the new maximum",
       [](const view& v) { return streamed(v, {.rescales = false, .merge_rescales = false}); }, streams},
      {"rescaled-the-wrong-way", "the sum grows by exp(new - old maximum)",
       [](const view& v) { return streamed(v, {.wrong_way = true}); }, streams},
      {"maximum-forgotten", "the running maximum is still -inf at the end",
       [](const view& v) { return streamed(v, {.keeps_maximum = false}); }, streams},
      {"one-of-a-batch", "only the first value of each batch is in the sum",
       [](const view& v) { return streamed(v, {.whole_batch = false}); }, streams},
      {"merge-keeps-one", "the sum is of the thread with the maximum",
       [](const view& v) { return streamed(v, {.merge_keeps_larger = true}); }, streams},
      {"inf-minus-inf", "NaN wherever a thread has seen nothing but -inf",
       [](const view& v) { return streamed(v, {.guarded = false}); }, streams},
      {"maximum-not-reduced", "each thread's results use its own maximum",
       [](const view& v) { return streamed(v, {.own_maximum = true}); }, streams},
      {"exp-quotient", "the sum is of exp(x) / exp(max), which overflows",
       [](const view& v) {
         return each(v,
                     [&, row = std::int64_t{-1}, d = 0.0f](std::int64_t i, float x, float m, float) mutable {
                       if (i != row)
                         d = sum_of(v.x[row = i], [m](float a) { return std::exp(a) / std::exp(m); });
                       return std::exp(x - m) / d;
                     });
       }},
      {"exp-quotient", "y is of exp(x) / exp(max), which overflows",
       [](const view& v) {
         return each(v, [](auto, float x, float m, float d) { return std::exp(x) / std::exp(m) / d; });
       }},
      {"wrong-column", "the columns of each row come out in reverse order",
       [](const view& v) { return moved(v, [&](std::int64_t j) { return v.cols - 1 - j; }); }},
      {"wrong-column", "each column holds the result of the one before it",
       [](const view& v) { return moved(v, [&](std::int64_t j) { return (j + v.cols - 1) % v.cols; }); }},
      {"wrong-column", "each column holds the result of the one behind it",
       [](const view& v) { return moved(v, [&](std::int64_t j) { return (j + 1) % v.cols; }); }},
      {"ignores-stride", "rows are read as if they lay side by side", without_stride},
      {"reads-padding", "the NaN between the rows gets into each row",
       [](const view& v) {
         return each(v, [&](std::int64_t i, float x, float m, float d) {
           return v.run->shape.ld_in > v.cols && i < v.rows ? not_a_number : std::exp(x - m) / d;
         });
       }},
  };
  return all;
}

// --- rows that are off by one factor

/// want / got of a row where it is the same everywhere: the sum in use over the right one. Nothing if it is
/// not.
std::optional<double> row_factor(const view& v, std::int64_t row) {
  if (v.facts[row].special) return std::nullopt;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (!v.is_written(row, j)) return std::nullopt;
    const double g = v.got(row, j), w = v.want[row][j];
    if (w < 1e-30) continue;
    if (!(g > 0) || std::isinf(g)) return std::nullopt;
    low = std::min(low, w / g);
    high = std::max(high, w / g);
  }
  if (high == 0 || high - low > 2e-5 * high) return std::nullopt;
  return std::sqrt(low * high);
}

double rounded(dtype t, double value) {
  unsigned char place[4];
  store(t, place, 0, value);
  return load(t, place, 0);
}

/// All fp32 rows are off by a factor of their own: what kind of sum would do that?
std::optional<std::pair<std::string, std::string>> explain_factors(const std::vector<view>& views) {
  int rows = 0, off = 0;
  bool half = true, bf16 = true, whole = true, fractions = false;
  std::set<long> times;
  double example = 0;
  for (const view& v : views) {
    if (v.run->type != dtype::f32) continue;
    std::vector<std::optional<double>> factor(v.rows);
    for (std::int64_t i = 0; i < v.rows; ++i) {
      if (v.facts[i].special) continue;
      factor[i] = row_factor(v, i);
      if (!factor[i]) return std::nullopt;
      ++rows;
      const double d = v.facts[i].sum * *factor[i];
      if (std::abs(*factor[i] - 1) > 1e-5) {
        ++off;
        if (example == 0) example = *factor[i];
      }
      half &= std::abs(rounded(dtype::f16, d) - d) <= 3e-6 * d;
      fractions |= std::abs(std::round(d) - d) > 1e-4 * d;
      bf16 &= std::abs(rounded(dtype::bf16, d) - d) <= 3e-6 * d;
      whole &= std::abs(std::round(*factor[i]) - *factor[i]) < 1e-4;
      times.insert(std::lround(*factor[i]));
    }
  }
  if (off == 0) return std::nullopt;
  if (!fractions && rows > 3)
    return std::pair("whole-sum", fmt::format("the sum of each of {} rows is a whole number", rows));
  if (half && rows > 3)
    return std::pair("fp16-sum", fmt::format("the sums of {} rows are all fp16 numbers", rows));
  if (bf16 && rows > 3)
    return std::pair("bf16-sum", fmt::format("the sums of {} rows are all bf16 numbers", rows));
  if (whole && times.size() == 1 && *times.begin() > 1)
    return std::pair("counted-twice", fmt::format("every sum is {} times what it should be", *times.begin()));
  return std::pair("wrong-sum",
                   fmt::format("{} of {} rows off by one factor each, here 1/{:.6g}", off, rows, example));
}

// --- elements that nobody wrote

struct unwritten_facts {
  bool any = false, all = true;
  bool same_tail = true;  ///< in each row, the columns from `tail` on
  std::int64_t tail = 0;
  bool whole_rows = true;
  std::vector<std::int64_t> rows;
};

unwritten_facts look_for_unwritten(const view& v) {
  unwritten_facts f;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::int64_t first = v.cols;
    bool tail = true;
    for (std::int64_t j = 0; j < v.cols; ++j) {
      const bool here = v.is_written(i, j);
      if (here)
        f.all = false;
      else
        f.any = true;
      if (!here && first == v.cols) first = j;
      if (here && first < j) tail = false;
    }
    if (first < v.cols) f.rows.push_back(i);
    if (first != 0 && first != v.cols) f.whole_rows = false;
    if (i == 0) f.tail = first;
    f.same_tail &= tail && first == f.tail;
  }
  f.same_tail &= f.any;
  return f;
}

std::string list_of(const std::vector<std::int64_t>& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.size() && i < 4; ++i) text += fmt::format("{}{}", i ? ", " : "", rows[i]);
  return text + (rows.size() > 4 ? ", ..." : "");
}

std::optional<std::pair<std::string, std::string>> explain_unwritten(const std::vector<view>& views) {
  const view* first = nullptr;
  bool all = true, one_row = true, last_row = true, last_column = true, tail = true, whole_rows = true;
  bool first_share = true;
  for (const view& v : views) {
    const unwritten_facts f = look_for_unwritten(v);
    all &= f.all;
    if (v.rows > 1) {
      one_row &= f.whole_rows && static_cast<std::int64_t>(f.rows.size()) == v.rows - 1 && f.rows[0] == 1;
      first_share &= f.whole_rows;
    }
    if (!f.any) {
      if (v.cols > 1) last_column = false;
      continue;
    }
    if (!first) first = &v;
    last_row &= f.whole_rows && f.rows.size() == 1 && f.rows[0] == v.rows - 1;
    last_column &= f.same_tail && f.tail == v.cols - 1;
    tail &= f.same_tail;
    whole_rows &= f.whole_rows;
  }
  if (!first) return std::nullopt;
  const unwritten_facts f = look_for_unwritten(*first);
  if (all) return std::pair("writes-nothing", "no element of y was written, in any case");
  if (one_row) return std::pair("first-row-only", "row 0 is written, no other row is");
  if (last_row)
    return std::pair("last-row-not-written", fmt::format("row {}, the last, is not written", f.rows[0]));
  if (last_column) return std::pair("last-column-not-written", "the last column of each row is not written");
  if (tail)
    return std::pair("tail-not-written",
                     fmt::format("columns from {} on are not written, of {}", f.tail, first->cols));
  if (whole_rows)
    return std::pair("rows-not-written",
                     fmt::format("rows {} of {} are not written", list_of(f.rows), first->rows));
  std::int64_t missing = 0, col = -1;
  for (std::int64_t j = 0; j < first->cols; ++j) {
    if (first->is_written(f.rows[0], j)) continue;
    ++missing;
    if (col < 0) col = j;
  }
  return std::pair("not-written", fmt::format("row {}: {} of {} columns not written, from {} on", f.rows[0],
                                              missing, first->cols, col));
}

// --- counts

/// "MN", "2M", "MN+255M": what the differences are, in fp32 elements, over all fp32 cases.
std::optional<std::pair<int, int>> in_elements(const std::vector<const case_run*>& runs,
                                               const std::function<std::int64_t(const case_run&)>& bytes) {
  std::vector<int> per_row;
  for (int b = -6; b <= 6; ++b) per_row.push_back(b);
  for (int threads : {128, 256, 512})
    per_row.insert(per_row.end(), {threads - 1, 2 * (threads - 1), threads});
  std::sort(per_row.begin(), per_row.end(), [](int a, int b) { return std::abs(a) < std::abs(b); });
  for (int a : {0, 1, -1, 2, -2, 3, -3, 4})
    for (int b : per_row) {
      bool fits = true;
      for (const case_run* r : runs) fits &= bytes(*r) == 4 * r->shape.rows * (a * r->shape.cols + b);
      if (fits) return std::pair(a, b);
    }
  return std::nullopt;
}

std::string amount(int mn, int m) {
  const bool same_sign = (mn >= 0) == (m >= 0);
  return element_count{std::abs(mn), mn == 0 || same_sign ? std::abs(m) : 0}.text();
}

std::int64_t loaded(const case_run& r) {
  std::int64_t sum = 0;
  for (const auto& l : r.launches) sum += static_cast<std::int64_t>(l.global_load.bytes);
  return sum;
}
std::int64_t stored(const case_run& r) {
  std::int64_t sum = 0;
  for (const auto& l : r.launches) sum += static_cast<std::int64_t>(l.global_store.bytes);
  return sum;
}

std::optional<std::pair<std::string, std::string>> explain_counts(const std::vector<const case_run*>& runs,
                                                                  const case_run& shown) {
  const std::size_t made = shown.launches.size(), claimed = shown.claims.size();
  if (made > claimed)
    return std::pair("extra-launch", fmt::format("{} launches, where the stage makes {}", made, claimed));
  if (made < claimed)
    return std::pair("missing-launch", fmt::format("{} launches, where the stage makes {}", made, claimed));
  const std::int64_t reads = loaded(shown) - shown.model_reads, writes = stored(shown) - shown.model_writes;
  std::vector<const case_run*> f32;
  for (const case_run* r : runs)
    if (r->type == dtype::f32 && r->simulated && r->shape.rows > 0 && r->shape.cols > 0) f32.push_back(r);
  if (reads != 0) {
    const auto e = in_elements(f32, [](const case_run& r) { return loaded(r) - r.model_reads; });
    const char* const more = reads > 0 ? "more" : "less";
    std::string label = reads > 0 ? "reads-too-much" : "reads-too-little";
    if (e && e->first > 0) label = "reads-the-row-twice";
    if (e && e->first == 0 && e->second > 100) label = "every-thread-loads";
    return std::pair(
        label,
        e ? fmt::format("{} {} is read than claimed, in all cases", amount(e->first, e->second), more)
          : fmt::format("{} bytes {} are read than {} claimed", std::abs(reads), more, shown.model_reads));
  }
  if (writes != 0) {
    const auto e = in_elements(f32, [](const case_run& r) { return stored(r) - r.model_writes; });
    return std::pair(writes > 0 ? "writes-too-much" : "writes-too-little",
                     e ? fmt::format("{} {} is written than claimed, everywhere", amount(e->first, e->second),
                                     writes > 0 ? "more" : "less")
                       : fmt::format("{} bytes {} are written than claimed", std::abs(writes),
                                     writes > 0 ? "more" : "less"));
  }
  for (std::size_t i = 0; i < made; ++i) {
    const auto& l = shown.launches[i];
    const launch_claim& c = shown.claims[i];
    if (static_cast<int>(l.block) != c.block)
      return std::pair("wrong-block-size", fmt::format("{} threads a block for N={}; rule: {}", l.block,
                                                       shown.shape.cols, c.block));
    if (l.grid != c.grid)
      return std::pair(l.grid == shown.shape.rows ? "one-row-a-block" : "wrong-grid",
                       fmt::format("{} blocks for {} rows of {}; rule: {}", l.grid, shown.shape.rows,
                                   shown.shape.cols, c.grid));
    if (const auto barriers = static_cast<std::int64_t>(l.barriers); barriers != c.barriers)
      return std::pair(barriers < c.barriers ? "missing-barrier" : "extra-barrier",
                       fmt::format("{} barriers in {} blocks; it needs {}", barriers, l.grid, c.barriers));
  }
  return std::nullopt;
}

// --- faults

std::pair<std::string, std::string> explain_fault(const simt::fault& f) {
  const std::string text = f.what();
  const std::string second = lines_of(text).size() > 1 ? trimmed(lines_of(text)[1]) : "";
  const auto colon = second.find("memory: ");
  const std::string detail =
      colon == std::string::npos ? second.substr(second.find(": ") + 2) : second.substr(colon + 8);
  switch (f.kind) {
    case simt::fault_kind::out_of_bounds:
      return {"out-of-bounds", detail};
    case simt::fault_kind::use_after_free:
      return {"use-after-free", detail};
    case simt::fault_kind::uninitialised:
      if (text.find("shared memory") != std::string::npos)
        return {"missing-barrier", "shared memory is read before it is written"};
      return {"reads-unwritten", detail.substr(detail.find(" of ") + 4)};
    case simt::fault_kind::host_memory:
      return {"wild-pointer", detail};
    case simt::fault_kind::misaligned:
      return {"misaligned", detail};
    case simt::fault_kind::divergent_barrier:
      return {"divergent-barrier", detail.substr(0, detail.find(';'))};
    case simt::fault_kind::divergent_shuffle:
      if (text.find("but a warp has") != std::string::npos) return {"64-lanes-on-warp32", detail};
      return {"divergent-shuffle", detail.substr(0, detail.find_first_of(";,"))};
  }
  return {"fault", detail};
}

/// Where the wrong elements lie, for want of a better word.
std::string distribution_of_errors(const view& v) {
  std::int64_t wrong = 0;
  std::set<std::int64_t> rows, cols;
  for (std::int64_t i = 0; i < v.rows; ++i)
    for (std::int64_t j = 0; j < v.cols; ++j)
      if (v.fails(i, j)) {
        ++wrong;
        rows.insert(i);
        cols.insert(j);
      }
  if (wrong == 0) return "errors a little above the limit";
  std::string text = fmt::format("{} of {} wrong: ", wrong, v.rows * v.cols);
  text += static_cast<std::int64_t>(rows.size()) == v.rows
              ? "all rows"
              : "row " + list_of(std::vector<std::int64_t>(rows.begin(), rows.end()));
  std::set<std::int64_t> warps, all_warps;
  for (std::int64_t c : cols) warps.insert(c % v.run->row_threads / v.run->warp);
  for (std::int64_t c = 0; c < v.cols; ++c) all_warps.insert(c % v.run->row_threads / v.run->warp);
  text += static_cast<std::int64_t>(cols.size()) == v.cols
              ? ", all columns"
              : fmt::format(", columns {} to {}", *cols.begin(), *cols.rbegin());
  if (warps.size() < all_warps.size())
    text += fmt::format(", {} of {} warps", warps.size(), all_warps.size());
  if (v.run->distribution == "mixed" && static_cast<std::int64_t>(rows.size()) < v.rows) {
    const char* const kinds[] = {"ordinary", "negative", "large", "masked"};
    std::set<std::int64_t> hit;
    for (std::int64_t r : rows) hit.insert(r % 4);
    std::string list;
    for (std::int64_t k : hit) list += (list.empty() ? "" : ", ") + std::string(kinds[k]);
    text = fmt::format("{} of {} wrong, in rows that are {}", wrong, v.rows * v.cols, list);
  }
  return text;
}

diagnosis named(const std::pair<std::string, std::string>& found, const case_run* shown) {
  return {.label = found.first, .evidence = found.second, .shown = shown};
}

}  // namespace

diagnosis diagnose(const std::vector<case_run>& runs, const stage_info& stage, const source_facts& source) {
  const auto first_of = [&](auto what) -> const case_run* {
    const auto it = std::find_if(runs.begin(), runs.end(), what);
    return it == runs.end() ? nullptr : &*it;
  };
  const case_run* failing = first_of([](const case_run& r) { return !r.pass(); });
  if (!failing) return {.pass = true};
  if (!source.open.empty() && source.open.size() == source.regions)
    return {.label = "not-attempted",
            .evidence = "the skeleton is untouched; its TODOs say what to write",
            .shown = failing};

  // A width at which all is right says nothing about the mistake; of several, the first that fails is shown.
  std::vector<const case_run*> seen;
  for (const case_run& r : runs)
    if (r.warp == failing->warp && r.simulated == failing->simulated) seen.push_back(&r);
  diagnosis d;
  const auto decide = [&]() -> diagnosis {
    if (const case_run* r = first_of([](const case_run& c) { return c.fault.has_value(); });
        r && r->warp == failing->warp) {
      diagnosis found = named(explain_fault(*r->fault), r);
      // Who reads what was never written is not the one to look at.
      if (r->fault->file.ends_with("exercise.cuh") && r->fault->kind != simt::fault_kind::uninitialised)
        found.fault_line = r->fault->line;
      return found;
    }
    if (const case_run* r = first_of([](const case_run& c) { return !c.refused.empty(); }))
      return {.label = "launch-refused", .evidence = r->refused.substr(0, r->refused.find(':')), .shown = r};

    std::vector<view> views;
    for (const case_run* r : seen)
      if (r->shape.rows > 0 && r->shape.cols > 0) views.emplace_back(*r);
    const case_run* wrong = nullptr;
    for (const case_run* r : seen)
      if (!wrong && !r->values_right()) wrong = r;
    if (!wrong) {
      if (failing->shape.rows == 0 || failing->shape.cols == 0)
        return {
            .label = "launch-for-nothing", .evidence = "an empty matrix is launched for", .shown = failing};
      if (auto found = explain_counts(seen, *failing)) return named(*found, failing);
    } else {
      if (auto found = explain_unwritten(views)) {
        // Whole results in the wrong place: padding was overwritten in their stead.
        for (const case_run* r : seen)
          if (r->damage.starts_with("the padding behind") && found->first != "writes-nothing")
            return {.label = "ignores-stride",
                    .evidence = "y is written as if rows lay side by side",
                    .shown = r};
        return named(*found, wrong);
      }
      if (!wrong->damage.empty())
        return {
            .label = wrong->damage.find("input") != std::string::npos ? "modifies-input" : "writes-outside",
            .evidence = wrong->damage,
            .shown = wrong};
      for (const hypothesis& h : hypotheses()) {
        if (h.applies && !h.applies(views[0])) continue;
        if (std::all_of(views.begin(), views.end(), [&](const view& v) { return agrees(v, h.predict(v)); }))
          return {.label = h.label, .evidence = h.evidence, .shown = wrong};
      }
      if (held_in_fp16(views))
        return {.label = "fp16-result", .evidence = "every result is an fp16 number", .shown = wrong};
      // A count that is off names the cause sooner than a value that nothing predicts.
      for (const case_run* r : seen) {
        std::int64_t made = 0, claimed = 0;
        for (const auto& l : r->launches) made += static_cast<std::int64_t>(l.barriers);
        for (const auto& c : r->claims) claimed += c.barriers;
        if (r->simulated && r->launches.size() == r->claims.size() && made < claimed)
          return {.label = "missing-barrier",
                  .evidence = fmt::format("{} barriers, needs {}, and values are wrong", made, claimed),
                  .shown = wrong};
      }
      if (auto found = explain_factors(views)) return named(*found, wrong);
    }
    if (wrong)
      for (const view& v : views)
        if (v.run == wrong)
          return {.label = "unknown", .evidence = distribution_of_errors(v), .shown = wrong};
    return {
        .label = "unknown", .evidence = "no known mistake predicts this", .shown = wrong ? wrong : failing};
  };
  d = decide();
  if (!source.open.empty()) {
    d.label = "unfinished";
    std::string list;
    for (const auto& name : source.open)
      list += (list.empty() ? "" : ", ") + std::string("TODO(") + name + ")";
    d.evidence = list + (source.open.size() == 1 ? " is still open" : " are still open");
    d.fault_line = 0;
  }
  (void)stage;
  return d;
}

const std::vector<label_facts>& labels() {
  static const std::vector<label_facts> all = {
      {"not-attempted", "nothing has been written yet", "TODO"},
      {"unfinished", "a TODO is still as it was", "TODO"},
      {"zero-padding", "masked lanes must lose the maximum and add nothing", R"(0\.0f|: 0|identity|else)"},
      {"maximum-starts-at-0", "a maximum that starts at 0 is wrong for negative rows",
       R"(float m|= 0\.0f|fmaxf)"},
      {"no-maximum", "exp(x) overflows at 89 unless the maximum is subtracted", "exp"},
      {"sum-without-maximum", "the sum has to be relative to the maximum too", "exp"},
      {"numerator-without-maximum", "the result has to be relative to the maximum too", "exp"},
      {"not-normalised", "each row has to be divided by its sum", R"(out\[|y\[|scale|/ d)"},
      {"no-exponential", "x - max has to be exponentiated", R"(- m|exp)"},
      {"log-softmax", "the logarithm is not asked for", "log"},
      {"multiplied-by-sum", "divide by the sum, or multiply by its reciprocal", R"(\* d|scale|out\[|y\[)"},
      {"exponentiated-twice", "exponentiate once", "exp"},
      {"base-2", "exp2(x) is 2 to the x", "exp2"},
      {"uniform", "the result has to depend on x", R"(out\[|y\[|held|value|exp)"},
      {"sign-flipped", "subtract the maximum from x, not x from the maximum", R"(m - |exp)"},
      {"first-row-everywhere", "each row has its own place in memory", R"(row|in =)"},
      {"wrong-row", "row i of y comes from row i of x", R"(row)"},
      {"wrong-axis", "a row is what is normalised: its N columns sum to 1", R"(col|row)"},
      {"sum-over-matrix", "each row has a sum of its own", R"(sum|d \+|float d)"},
      {"32-lanes-on-wave64", "a warp has WarpSize lanes, 32 or 64", R"(32|16|warp|lane)"},
      {"64-lanes-on-warp32", "a warp has WarpSize lanes, 32 or 64", R"(64|shuffle)"},
      {"warp-only", "the warps of a row have to meet in shared memory", R"(shuffle|reduce|warp)"},
      {"maximum-not-reduced", "the maximum of the row is that of all its threads",
       R"(m = |fmaxf|reduce|exp)"},
      {"sum-not-reduced", "the sum of the row is that of all its threads", R"(scale|reduce|/ d|d =)"},
      {"not-reduced", "the threads of a row have to tell each other", R"(reduce|shuffle|merge)"},
      {"first-warp-only", "every warp of the row counts", R"(warp|partial|reduce)"},
      {"last-warp-dropped", "every warp of the row counts, the last one too", R"(warp|partial|reduce)"},
      {"shuffle-down", "after shuffle_down only lane 0 has the result", "shuffle_down"},
      {"last-column-dropped", "a row has N columns, 0 to N - 1", R"(cols|col)"},
      {"first-batch-only", "each thread has more than one column of a wide row", R"(for|\+=|if|d =)"},
      {"last-batch-only", "each thread has more than one column of a wide row", R"(d =|held|\+=)"},
      {"sum-of-one-thread", "the sum of the row is that of all its threads", R"(reduce|row_sum|d =|scale)"},
      {"warp-not-share", "a row has row_threads threads, which may be half a warp", R"(reduce|shuffle)"},
      {"missing-rescale", "when the maximum grows, the sum so far has to shrink", R"(r\.d|d \+=|r\.m)"},
      {"merge-without-rescale", "sums can be added once they are relative to one maximum",
       R"(a\.d|b\.d|return)"},
      {"rescaled-the-wrong-way", "a growing maximum makes the old sum smaller", R"(r\.d|exp)"},
      {"maximum-forgotten", "the new maximum has to be kept for the next batch", R"(r\.m|r\.d)"},
      {"one-of-a-batch", "every value of a batch belongs into the sum", R"(value|r\.d)"},
      {"merge-keeps-one", "both sums belong into the merged one", R"(return|a\.|b\.)"},
      {"inf-minus-inf", "-inf - (-inf) is NaN: see reference()", R"(reference|exp|a\.m|r\.m)"},
      {"ignores-stride", "row i starts at i * ld, not at i * cols", R"(cols|ld)"},
      {"reads-padding", "nothing behind column N - 1 belongs to the row", R"(ld|<=|cols)"},
      {"fp16-sum", "a sum in 16 bits loses the small terms: keep it in fp32", R"(half|d \+|d =)"},
      {"bf16-sum", "a sum in 16 bits loses the small terms: keep it in fp32", R"(bfloat16|d \+|d =)"},
      {"whole-sum", "the sum has been rounded to a whole number", R"(floor|int|round|d =|row_sum)"},
      {"fp16-result", "the result is rounded to fp16 on its way", R"(half)"},
      {"exp-quotient", "subtract before the exponential, do not divide after it", R"(exp)"},
      {"wrong-column", "column j of y comes from column j of x", R"(out\[|y\[|col)"},
      {"counted-twice", "each column belongs into the sum once", R"(d \+=|\+ |sum)"},
      {"sum-of-another-row", "a row is divided by its own sum", R"(row_sum|row|sum)"},
      {"wrong-sum", "the maximum cancels out, so it is the sum that is wrong", R"(d \+=|sum|d =|d \*)"},
      {"writes-nothing", "nothing is written to y", R"(out\[|y\[|launch)"},
      {"first-row-only", "every row has to be done", R"(row|launch|blocks)"},
      {"last-row-not-written", "M may be odd, and no multiple of anything", R"(rows|needed|row)"},
      {"last-column-not-written", "a row has N columns, 0 to N - 1", R"(cols|col)"},
      {"tail-not-written", "the columns behind a multiple of the threads belong to the row too",
       R"(cols|Items|start|col|for)"},
      {"rows-not-written", "every row has to be done", R"(row|share|lane|needed|blocks)"},
      {"not-written", "every element has to be written", R"(out\[|y\[|if)"},
      {"modifies-input", "x is for reading only", R"(x\[|in\[)"},
      {"writes-outside", "nothing but the rows of y may be written", R"(out\[|y\[|ld)"},
      {"out-of-bounds", "an index has to be checked before the access", R"(\[)"},
      {"use-after-free", "the memory has been released", R"(\[)"},
      {"reads-unwritten", "memory is read that nobody has written", R"(\[)"},
      {"missing-barrier", "who reads what others write has to wait for them: __syncthreads()",
       R"(partial|shared|syncthreads)"},
      {"extra-barrier", "a barrier that nothing needs costs time", "syncthreads"},
      {"wild-pointer", "the address is not the device's", R"(\[|\*)"},
      {"misaligned", "the address has to be a multiple of the access", R"(reinterpret|\[)"},
      {"divergent-barrier", "all threads of a block have to reach each barrier",
       R"(return|if|syncthreads|continue)"},
      {"divergent-shuffle", "all lanes of a warp have to reach each shuffle",
       R"(return|if|shuffle|continue)"},
      {"launch-refused", "the launcher finds no kernel for a row that the stage takes",
       R"(launch|return|Items)"},
      {"launch-for-nothing", "M = 0 or N = 0 launches nothing", R"(launch|if)"},
      {"extra-launch", "each launch goes through memory", "launch"},
      {"missing-launch", "a kernel is not launched", "launch"},
      {"reads-the-row-twice", "what has been read can be kept", R"(in\[|x\[)"},
      {"reads-too-much", "more is read than needed", R"(in\[|x\[|\[)"},
      {"reads-too-little", "less is read than the stage claims", R"(\[)"},
      {"every-thread-loads", "one load a block is enough: block_load()", R"(row_max|row_sum|block_load|\[)"},
      {"writes-too-much", "more is written than needed", R"(\] =)"},
      {"writes-too-little", "less is written than the stage claims", R"(\] =)"},
      {"one-row-a-block", "narrow rows share a block", R"(return|rows)"},
      {"wrong-grid", "the number of blocks is not that of the rule", R"(return|blocks|needed|rows)"},
      {"wrong-block-size", "the number of threads is not that of the rule", R"(return|warps|threads)"},
      {"endless", "the kernel does not come to an end", R"(for|while)"},
      {"crash", "the processor stopped the kernel", R"(\[|/|%)"},
      {"unknown", "nothing that is known predicts this", ""},
  };
  return all;
}

const label_facts* find_label(const std::string& label) {
  for (const label_facts& l : labels())
    if (l.label == label) return &l;
  return nullptr;
}

place line_to_look_at(const std::string& learner, const std::string& kernel, const diagnosis& d) {
  if (d.fault_line > 0) return {d.fault_line};
  const std::vector<std::string> lines = lines_of(learner);
  if (d.label == "not-attempted" || d.label == "unfinished") {
    const std::string mark =
        d.label == "unfinished" ? d.evidence.substr(0, d.evidence.find(')') + 1) + ":" : "TODO(";
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (lines[i].find(mark) != std::string::npos) return {static_cast<int>(i) + 1};
  }
  // The longest common subsequence of code lines; what is not in it is the learner's own.
  std::vector<std::pair<std::string, int>> mine;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("Predict, then measure") != std::string::npos) break;
    for (const std::string& code : code_lines(lines[i])) mine.emplace_back(code, static_cast<int>(i) + 1);
  }
  const std::vector<std::string> theirs = code_lines(kernel);
  std::vector<std::vector<int>> common(mine.size() + 1, std::vector<int>(theirs.size() + 1, 0));
  for (std::size_t i = mine.size(); i-- > 0;)
    for (std::size_t j = theirs.size(); j-- > 0;)
      common[i][j] = mine[i].first == theirs[j] ? common[i + 1][j + 1] + 1
                                                : std::max(common[i + 1][j], common[i][j + 1]);
  std::vector<int> own;
  int gap = 0;  // where a line of the stage's is missing
  for (std::size_t i = 0, j = 0; i < mine.size();) {
    if (j < theirs.size() && mine[i].first == theirs[j]) {
      ++i, ++j;
    } else if (j < theirs.size() && common[i][j + 1] >= common[i + 1][j]) {
      if (gap == 0) gap = mine[i].second;
      ++j;
    } else {
      own.push_back(mine[i++].second);
    }
  }
  const label_facts* facts = find_label(d.label);
  if (facts && !facts->anchors.empty()) {
    const std::regex wanted(facts->anchors);
    for (int line : own)
      if (std::regex_search(lines[line - 1], wanted)) return {line};
  }
  return own.empty() && gap > 0 ? place{gap, true} : place{own.empty() ? 1 : own[0]};
}

namespace {

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

/// Six digits; the sign of a NaN says nothing.
std::string value_text(double value) { return std::isnan(value) ? "NaN" : fmt::format("{:.6g}", value); }

std::string where_text(const diagnosis& d) {
  const case_run& r = *d.shown;
  if (r.fault) {
    const std::vector<std::string> lines = lines_of(r.fault->what());
    const std::string who = lines.size() > 1 ? trimmed(lines[1]) : "";
    return r.fault->kernel + ", " + who.substr(0, who.find(": "));
  }
  if (!r.refused.empty()) return "the launcher, before any kernel ran";
  if (!r.values_right() && r.check.worst.row >= 0 && !r.check.pass) {
    const element_report& e = r.check.worst;
    if (e.why == failure::never_written)
      return fmt::format("row {}, col {}: never written, want {}", e.row, e.col, value_text(e.want));
    std::string text =
        fmt::format("row {}, col {}: got {}, want {}", e.row, e.col, value_text(e.got), value_text(e.want));
    if (std::isfinite(e.got) && e.want > 0)
      text += fmt::format(", off by {:.2g} %", 100 * std::abs(e.got / e.want - 1));
    return text;
  }
  if (!r.damage.empty()) return r.damage;
  std::int64_t barriers = 0, claimed = 0;
  for (const auto& l : r.launches) barriers += static_cast<std::int64_t>(l.barriers);
  for (const auto& c : r.claims) claimed += c.barriers;
  if (loaded(r) != r.model_reads || stored(r) != r.model_writes)
    return fmt::format("values right; {} bytes read, {} claimed; {} written, {} claimed", loaded(r),
                       r.model_reads, stored(r), r.model_writes);
  if (!r.launches.empty() && !r.claims.empty())
    return fmt::format("values right; grid {} block {} barriers {}, claimed {} {} {}", r.launches[0].grid,
                       r.launches[0].block, barriers, r.claims[0].grid, r.claims[0].block, claimed);
  return fmt::format("values right; {} launches, claimed {}", r.launches.size(), r.claims.size());
}

}  // namespace

std::string failure_text(const diagnosis& d, const stage_info& stage, const std::string& learner,
                         const std::string& kernel) {
  constexpr std::size_t width = 80;
  const auto [line, missing] = line_to_look_at(learner, kernel, d);
  const std::vector<std::string> lines = lines_of(learner);
  std::string code = static_cast<std::size_t>(line) <= lines.size() ? trimmed(lines[line - 1]) : "";
  if (missing) code = "something is missing before this line";
  const auto row = [&](const std::string& text) { return cut(text, width) + "\n"; };
  std::string text;
  if (d.shown)
    text += row(fmt::format("FAIL stage {} (your code)  {}  {}, warp {}", stage.number, case_text(*d.shown),
                            d.shown->simulated ? "simulator" : "GPU", d.shown->warp));
  else
    text += row(fmt::format("FAIL stage {} (your code)", stage.number));
  text += row("  where    : " + (d.shown ? where_text(d) : "the run did not come to an end"));
  text += row("  diagnosis: " + d.label + ": " + d.evidence);
  text += row(fmt::format("  look at  : {}/exercise.cuh:{}  {}", stage.folder, line, code));
  text += row(fmt::format("  next     : make hint-{}", stage.number));
  return text;
}

}  // namespace softmax::workbook
