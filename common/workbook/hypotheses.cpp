#include "workbook/hypotheses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace softmax::workbook {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// A prediction that agrees with everything: where a divisor is so small that dividing by it and multiplying
/// with its reciprocal differ, or where both numbers are so small that few bits are left of the first.
constexpr float anything = std::numeric_limits<float>::lowest();

float quotient(float a, float b) {
  const auto subnormal = [](float n) { return n > 0 && n < 1.2e-38f; };
  return subnormal(b) || (subnormal(a) && b < 1e-4f) ? anything : a / b;
}

}  // namespace

view::view(const case_run& r) : run(&r), rows(r.shape.rows), cols(r.shape.cols) {
  for (std::int64_t i = 0; i < rows; ++i) {
    std::vector<double> in(cols), out(cols);
    for (std::int64_t j = 0; j < cols; ++j) in[j] = r.x.at(i, j);
    facts.push_back(reference_row(in, out));
    x.emplace_back(in.begin(), in.end());
    want.push_back(out);
  }
}

bool view::is_written(std::int64_t row, std::int64_t col) const {
  return bits_of(run->type, run->y.data.data(), row * run->y.ld + col) != poison_bits(run->type);
}

bool view::fails(std::int64_t row, std::int64_t col) const {
  const double g = got(row, col), w = want[row][col];
  if (!is_written(row, col)) return true;
  if (std::isnan(w) || std::isnan(g)) return std::isnan(w) != std::isnan(g);
  const double rough = run->type == dtype::f32 ? 2e-5 : run->type == dtype::f16 ? 2e-3 : 1e-2;
  return !(std::abs(g - w) <= rough * w + (run->type == dtype::f16 ? 1e-7 : 1e-37));
}

bool agrees(const view& v, const prediction& p) {
  const double relative = v.run->type == dtype::f32 ? 1e-4 : v.run->type == dtype::f16 ? 2e-3 : 1.6e-2;
  const double tiny = v.run->type == dtype::f16 ? 1.2e-7 : 1.2e-38;
  // Half a unit in the last place: nearer than that no 16-bit result comes to what is predicted.
  const double rounding = v.run->type == dtype::bf16 ? 0x1.01p-8 : v.run->type == dtype::f16 ? 0x1.01p-11 : 0;
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
        allowed =
            std::max(std::min(allowed, 0.25 * std::abs(g - v.want[i][j]) + tiny), rounding * std::abs(e));
      if (!(std::abs(g - e) <= allowed)) return false;
    }
  return true;
}

namespace {

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
  bool compares_maxima = true;  ///< of the trip and of those before it
  bool keeps_sum = true;  ///< of the trips before
  bool trip_rescales = true;  ///< the sum of a trip is relative to the new maximum, not to the trip's own
  std::function<bool(std::int64_t thread, const case_run&)> counted = {};
};

prediction streamed(const view& v, const stream_mistake& how) {
  const case_run& r = *v.run;
  const auto safe = [&](float m) { return how.guarded && m == -infinity ? 0.0f : m; };
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> m(r.row_threads, -infinity), d(r.row_threads, 0.0f);
    std::vector<std::vector<std::pair<std::int64_t, holder>>> trips;  // their columns
    for (std::int64_t c = 0; c < v.cols; ++c) {
      const holder h = r.held_by(i, c);
      if (static_cast<std::int64_t>(trips.size()) <= h.trip) trips.resize(h.trip + 1);
      trips[h.trip].emplace_back(c, h);
    }
    for (const auto& trip : trips) {
      std::vector<float> largest(r.row_threads, -infinity);
      for (const auto& [c, h] : trip) largest[h.thread] = std::fmax(largest[h.thread], v.x[i][c]);
      std::vector<float> now = largest;
      for (int t = 0; t < r.row_threads; ++t) {
        if (how.compares_maxima) now[t] = std::fmax(m[t], largest[t]);
        if (how.wrong_way)
          d[t] *= std::exp(safe(now[t]) - safe(m[t]));
        else if (how.rescales)
          d[t] *= std::exp(m[t] - safe(now[t]));
        if (!how.keeps_sum) d[t] = 0;
        if (!how.guarded && now[t] == -infinity) d[t] = not_a_number;  // masked columns are added, too
      }
      for (const auto& [c, h] : trip)
        if (how.whole_batch || h.place == 0)
          d[h.thread] += std::exp(v.x[i][c] - safe((how.trip_rescales ? now : largest)[h.thread]));
      if (how.keeps_maximum) m = now;
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
      row[c] = std::exp(v.x[i][c] - (how.own_maximum ? m[r.held_by(i, c).thread] : m_row)) * scale;
    p.push_back(row);
  }
  return p;
}

/// A mistake where the states of the warps of a row, or of the blocks that share it, are merged.
struct merge_mistake {
  bool rescales = true;  ///< sums, before they are added
  bool keeps_larger = false;  ///< the sum of the one with the maximum, for that of all
  bool guarded = true;  ///< against -inf - (-inf)
  bool own_maximum = false;  ///< results are relative to it
  bool own_sum = false;  ///< results are divided by it
  std::function<bool(std::int64_t group, std::int64_t groups)> counted = {};
};

/// Groups are `size` neighbouring threads of a row.
prediction grouped(const view& v, std::int64_t size, const merge_mistake& how) {
  const case_run& r = *v.run;
  const std::int64_t groups = ceiling(r.row_threads, size);
  const auto safe = [](float m) { return m == -infinity ? 0.0f : m; };
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> m(groups, -infinity);
    std::vector<double> d(groups, 0);
    std::vector<std::int64_t> group(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c) group[c] = r.held_by(i, c).thread / size;
    for (std::int64_t c = 0; c < v.cols; ++c) m[group[c]] = std::fmax(m[group[c]], v.x[i][c]);
    for (std::int64_t c = 0; c < v.cols; ++c) d[group[c]] += std::exp(v.x[i][c] - safe(m[group[c]]));
    float m_row = -infinity;
    for (std::int64_t g = 0; g < groups; ++g)
      if (!how.counted || how.counted(g, groups)) m_row = std::fmax(m_row, m[g]);
    double d_row = 0;
    bool found = false;
    for (std::int64_t g = 0; g < groups; ++g) {
      if (how.counted && !how.counted(g, groups)) continue;
      if (!how.guarded && m[g] == -infinity) d_row = not_a_number;
      if (!how.keeps_larger)
        d_row += how.rescales ? d[g] * std::exp(m[g] - safe(m_row)) : d[g];
      else if (!found && m[g] == m_row)
        d_row = d[g], found = true;
    }
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c) {
      const double sum = how.own_sum ? d[group[c]] : d_row;
      row[c] = std::exp(v.x[i][c] - (how.own_maximum ? safe(m[group[c]]) : m_row)) / static_cast<float>(sum);
    }
    p.push_back(row);
  }
  return p;
}
prediction by_warp(const view& v, const merge_mistake& how) { return grouped(v, v.run->warp, how); }
prediction by_part(const view& v, const merge_mistake& how) { return grouped(v, v.run->part_threads, how); }

/// What a kernel gives that does all right but what the recipe says.
prediction cook(const view& v, const recipe& how) {
  const case_run& r = *v.run;
  if (r.batch > 0 && how.counted && how.max_subset) return streamed(v, {.counted = how.counted});
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    const auto value = [&](std::int64_t c) { return c < v.cols ? v.x[i][c] : how.padding; };
    std::vector<std::int64_t> threads(std::max(r.padded, v.cols));
    for (std::size_t c = 0; c < threads.size(); ++c)
      threads[c] = r.held_by(i, static_cast<std::int64_t>(c)).thread;
    const auto safe = [&](float most) { return r.holder_of && most == -infinity ? 0.0f : most; };
    const auto hears = [&](std::int64_t c) { return !how.counted || how.counted(threads[c], r); };
    std::map<std::int64_t, float> m, d;
    for (std::int64_t c = 0; c < r.padded; ++c) {
      float& mine = m.try_emplace(member(how.max_over, threads[c], r.warp), how.seed).first->second;
      if (!how.max_subset || hears(c)) mine = std::fmax(mine, value(c));
    }
    std::map<std::int64_t, double> exact;
    for (std::int64_t c = 0; c < r.padded; ++c) {
      if (c >= v.cols && !r.masked_in_sum) continue;
      const std::int64_t thread = threads[c];
      double& sum = exact[member(how.sum_over, thread, r.warp)];
      if (hears(c)) sum += std::exp(value(c) - safe(m[member(how.max_over, thread, r.warp)]));
    }
    for (const auto& [key, sum] : exact) d[key] = static_cast<float>(sum);
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c) {
      const std::int64_t thread = threads[c];
      row[c] = quotient(std::exp(v.x[i][c] - safe(m[member(how.max_over, thread, r.warp)])),
                        d[member(how.sum_over, thread, r.warp)]);
    }
    p.push_back(row);
  }
  return p;
}

/// The same for rows that have a part of a warp; what wide rows would hold depends on how their warps meet.
prediction of_narrow_rows(const view& v, const recipe& how) {
  if (v.run->row_threads < 32) return cook(v, how);
  return prediction(v.rows, std::vector<float>(v.cols, anything));
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
    if (first + together > v.rows && r.masked_in_sum)
      return not_a_number;  // a share without a row: -inf - (-inf)
    float d = 0;
    for (std::int64_t k = first; k < std::min(first + together, v.rows); ++k) {
      const float most = *std::max_element(v.x[k].begin(), v.x[k].end());
      d += sum_of(v.x[k], [most](float a) { return std::exp(a - most); });
    }
    return std::exp(x - m) / d;
  });
}

/// The same of the maximum, too: the rows of a warp are one.
prediction rows_as_one(const view& v) {
  const case_run& r = *v.run;
  const std::int64_t together = std::max(1, r.warp / r.row_threads);
  prediction p;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    std::vector<float> all;
    const std::int64_t first = i - i % together;
    for (std::int64_t k = first; k < std::min(first + together, v.rows); ++k)
      all.insert(all.end(), v.x[k].begin(), v.x[k].end());
    const std::vector<float> y = softmax_of(all);
    const auto mine = y.begin() + (i - first) * v.cols;
    p.emplace_back(mine, mine + v.cols);
  }
  return p;
}

/// Every row relative to the maximum of row 0, and divided by its sum.
prediction state_of_first_row(const view& v) {
  const float m = *std::max_element(v.x[0].begin(), v.x[0].end());
  const float d = sum_of(v.x[0], [m](float a) { return std::exp(a - m); });
  return each(v, [m, d](auto, float x, float, float) { return std::exp(x - m) * (1.0f / d); });
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
    const auto lane = [&](std::int64_t c) { return r.held_by(i, c).thread; };
    for (std::int64_t c = 0; c < r.padded; ++c) m[lane(c)] = std::fmax(m[lane(c)], value(c));
    m = reduce(m, [](float a, float b) { return std::fmax(a, b); });
    for (std::int64_t c = 0; c < r.padded; ++c) d[lane(c)] += std::exp(value(c) - m[lane(c)]);
    d = reduce(d, [](float a, float b) { return a + b; });
    std::vector<float> row(v.cols);
    for (std::int64_t c = 0; c < v.cols; ++c) row[c] = std::exp(v.x[i][c] - m[lane(c)]) * (1.0f / d[lane(c)]);
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

bool wave64_only(const view& v) { return v.run->warp == 64; }
bool streams(const view& v) { return v.run->batch > 0; }
bool takes_vectors(const view& v) { return v.run->holder_of != nullptr; }
/// Narrow rows have a part of a warp each, and the first case is one.
bool shares_warps(const view& v) { return takes_vectors(v) && v.run->row_threads < 32; }
/// Blocks share a row; the widths of an exercise are such that some row has several.
bool splits(const view& v) { return takes_vectors(v) && streams(v); }

}  // namespace

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
      {"not-normalised", "y is exp(x - max): the largest of each row is 1",
       [](const view& v) {
         return each(
             v, [](auto, float x, float m, float) { return m == -infinity ? std::exp(x) : std::exp(x - m); });
       },
       takes_vectors},
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
      {"maximum-not-reduced", "in narrow rows, each lane subtracts its own",
       [](const view& v) { return of_narrow_rows(v, {.max_over = scope::thread}); }, shares_warps},
      {"sum-not-reduced", "in narrow rows, each lane divides by its own",
       [](const view& v) { return of_narrow_rows(v, {.sum_over = scope::thread}); }, shares_warps},
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
      {"warp-not-share", "rows of a warp have one maximum and one sum", rows_as_one, shares_warps},
      {"sum-of-another-row", "every row has the maximum and the sum of row 0", state_of_first_row},
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
      {"maximum-forgotten", "each trip's maximum replaces the one before it",
       [](const view& v) { return streamed(v, {.compares_maxima = false}); }, streams},
      {"last-batch-only", "only the last trip of each thread is in the sum",
       [](const view& v) { return streamed(v, {.keeps_sum = false}); }, streams},
      {"missing-rescale", "a trip's sum stays relative to its own maximum",
       [](const view& v) { return streamed(v, {.trip_rescales = false}); }, streams},
      {"part-only", "each part of a row has a maximum and a sum of its own",
       [](const view& v) { return by_part(v, {.own_maximum = true, .own_sum = true}); }, splits},
      {"part-only", "each part of a row is divided by its own sum",
       [](const view& v) { return by_part(v, {.own_sum = true}); }, splits},
      {"part-only", "only the first part of a row is heard",
       [](const view& v) { return by_part(v, {.counted = [](auto g, auto) { return g == 0; }}); }, splits},
      {"last-part-dropped", "the last part of a row is left out of the sum",
       [](const view& v) { return by_part(v, {.counted = [](auto g, auto all) { return g < all - 1; }}); },
       splits},
      {"last-part-dropped", "the last of several parts is left out of the sum",
       [](const view& v) {
         return by_part(v, {.counted = [](auto g, auto all) { return all == 1 || g < all - 1; }});
       },
       splits},
      {"merge-without-rescale", "sums of different parts are just added",
       [](const view& v) { return by_part(v, {.rescales = false}); }, splits},
      {"merge-keeps-one", "the sum is of the part with the maximum",
       [](const view& v) { return by_part(v, {.keeps_larger = true}); }, splits},
      {"result-not-rescaled", "values stay relative to their warp's maximum",
       [](const view& v) { return by_warp(v, {.own_maximum = true}); }},
      {"warp-only", "each warp divides by the sum of its own columns",
       [](const view& v) { return by_warp(v, {.own_sum = true}); }},
      {"inf-minus-inf", "NaN wherever a warp has seen nothing but -inf",
       [](const view& v) { return by_warp(v, {.guarded = false}); }, takes_vectors},
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

}  // namespace softmax::workbook
