#include "workbook/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace softmax::workbook {
namespace {

/// Shapes that no formula fits by accident.
constexpr std::int64_t shapes[][2] = {{1, 1}, {3, 5}, {7, 33}, {64, 781}, {5, 4097}, {129, 2}};

/// a MN + b M + c N + d
struct terms {
  std::int64_t mn = 0, m = 0, n = 0, one = 0;

  std::int64_t of(std::int64_t rows, std::int64_t cols) const {
    return mn * rows * cols + m * rows + n * cols + one;
  }
  std::string text() const {
    std::string out;
    const auto add = [&](std::int64_t factor, const std::string& unit) {
      if (factor == 0) return;
      out += factor < 0 ? "-" : out.empty() ? "" : "+";
      const std::int64_t size = factor < 0 ? -factor : factor;
      out += (size == 1 && !unit.empty() ? "" : std::to_string(size)) + unit;
    };
    add(mn, "MN"), add(m, "M"), add(n, "N"), add(one, "");
    return out.empty() ? "0" : out;
  }
};

std::optional<terms> terms_of(const formula& f) {
  const std::int64_t a = f(2, 2), b = f(3, 2), c = f(2, 3), d = f(3, 3);
  terms t;
  t.mn = d - c - b + a;
  t.m = b - a - 2 * t.mn;
  t.n = c - a - 2 * t.mn;
  t.one = a - 4 * t.mn - 2 * t.m - 2 * t.n;
  for (const auto& [rows, cols] : shapes)
    if (t.of(rows, cols) != f(rows, cols)) return std::nullopt;
  return t;
}

/// "reduce_rows twice, divide": the kernels in which the count has such a term, and how many of it.
std::string kernels_with(const stage_info& stage, bool reads, std::int64_t element_count::*term) {
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (const kernel_model& k : stage.launches) {
    const std::int64_t times = (reads ? k.reads() : k.writes()).*term;
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.first == k.kernel; });
    if (same != found.end())
      same->second += times;
    else if (times > 0)
      found.emplace_back(k.kernel, times);
  }
  std::string names;
  for (const auto& [name, times] : found)
    names += (names.empty() ? "" : ", ") + name +
             (times == 1   ? ""
              : times == 2 ? " twice"
                           : fmt::format(" {} times", times));
  return names.empty() ? "no kernel" : names;
}

}  // namespace

grade grade_formula(const std::string& what, const formula& learner, const stage_info& stage) {
  const bool is_reads = what == "reads";
  const auto at = [&](std::int64_t rows, std::int64_t cols) {
    return fitted(stage, {rows, cols, cols, cols}, dtype::f32, 0);
  };
  // Where the counts depend on the shape, the sentences speak of a small one.
  const stage_info small = at(shapes[0][0], shapes[0][1]);
  const element_count counted = is_reads ? small.reads() : small.writes();
  const element_count other = is_reads ? small.writes() : small.reads();
  grade g;
  bool zero = true, same = true;
  std::int64_t bad_rows = 0, bad_cols = 0, bad_count = 0;
  for (const auto& [rows, cols] : shapes) {
    const std::int64_t said = learner(rows, cols);
    zero &= said == 0;
    const stage_info fit = at(rows, cols);
    const std::int64_t here = (is_reads ? fit.reads() : fit.writes()).of({rows, cols, cols, cols});
    if (said != here) {
      if (same) bad_rows = rows, bad_cols = cols, bad_count = here;
      same = false;
    }
  }
  g.attempted = !zero;
  g.right = same;
  if (zero) {
    g.text = fmt::format("{}: not predicted yet; it is the end of exercise.cuh", what);
    return g;
  }
  if (same) {
    g.text = fmt::format("{}: right, {}", what, counted.text());
    return g;
  }
  const std::optional<terms> said = terms_of(learner);
  if (!said) {
    g.text = fmt::format("{}: at M={} N={} you say {}, counted {}", what, bad_rows, bad_cols,
                         learner(bad_rows, bad_cols), bad_count);
    return g;
  }
  const std::string head = fmt::format("{}: you say {}, counted {}", what, said->text(), counted.text());
  if (said->n != 0 || said->one != 0)
    g.text = head + fmt::format(": no term goes with {} alone", said->n != 0 ? "N" : "the number 1");
  else if (said->mn == (counted + other).mn && said->m == (counted + other).m)
    g.text = head + ": that is reads and writes together";
  else if (said->mn == other.mn && said->m == other.m)
    g.text = head + fmt::format(": those are the {}", is_reads ? "writes" : "reads");
  else if (said->mn > counted.mn && said->mn - counted.mn == counted.m - said->m)
    g.text = head + fmt::format(": {} of M values charged as MN",
                                said->mn - counted.mn == 1 ? "one access" : "accesses");
  else if (said->mn != counted.mn)
    g.text = head + fmt::format(": MN comes from {}", kernels_with(small, is_reads, &element_count::mn));
  else
    g.text = head + fmt::format(": M comes from {}", kernels_with(small, is_reads, &element_count::m));
  return g;
}

}  // namespace softmax::workbook
