#include "workbook/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <regex>
#include <set>

#include "workbook/hypotheses.hpp"
#include "workbook/kernel_text.hpp"

namespace softmax::workbook {
namespace {

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

// --- rows that are off by one factor

/// want / got of a row where it is the same everywhere: the sum in use over the right one. Nothing if it is
/// not.
std::optional<double> row_factor(const view& v, std::int64_t row) {
  if (v.facts[row].special) return std::nullopt;
  // A sum of 0: the largest of the row is infinite, and 0 / 0 is NaN.
  bool divided_by_zero = true, infinite = false;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    divided_by_zero &= v.is_written(row, j) && !std::isfinite(v.got(row, j));
    infinite |= std::isinf(v.got(row, j));
  }
  if (divided_by_zero && infinite) return 0;
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
  bool half = true, bf16 = true, whole = true, fractions = false, columns = true;
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
      columns &= std::abs(d - static_cast<double>(v.cols)) <= 1e-4 * d;
      half &= std::abs(rounded(dtype::f16, d) - d) <= 3e-6 * d;
      fractions |= std::abs(std::round(d) - d) > 1e-4 * d;
      bf16 &= std::abs(rounded(dtype::bf16, d) - d) <= 3e-6 * d;
      whole &= std::abs(std::round(*factor[i]) - *factor[i]) < 1e-4;
      times.insert(std::lround(*factor[i]));
    }
  }
  if (off == 0) return std::nullopt;
  if (columns && rows > 3)
    return std::pair("divided-by-n", fmt::format("{} rows are divided by N, the number of columns", rows));
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
    if (c.most_threads > 0 && l.grid > ceiling(c.most_threads, l.block))
      return std::pair("too-many-threads", fmt::format("{} threads for {} rows of {}; {} are enough",
                                                       l.grid * l.block, shown.shape.rows, shown.shape.cols,
                                                       ceiling(c.most_threads, l.block) * l.block));
    if (c.most_threads == 0 && static_cast<int>(l.block) != c.block)
      return std::pair("wrong-block-size", fmt::format("{} threads a block for N={}; rule: {}", l.block,
                                                       shown.shape.cols, c.block));
    if (c.most_threads == 0 && l.grid != c.grid)
      return std::pair(l.grid == shown.shape.rows ? "one-row-a-block" : "wrong-grid",
                       fmt::format("{} blocks for {} rows of {}; rule: {}", l.grid, shown.shape.rows,
                                   shown.shape.cols, c.grid));
    if (const auto barriers = static_cast<std::int64_t>(l.barriers);
        c.most_threads > 0 ? barriers > c.barriers : barriers != c.barriers)
      return std::pair(barriers < c.barriers ? "missing-barrier" : "extra-barrier",
                       fmt::format("{} barriers in {} blocks; it needs {}", barriers, l.grid, c.barriers));
  }
  const auto each = [](std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
  };
  if (const simt::launch_record* l = shown.scattered())
    return std::pair("uncoalesced", fmt::format("{}: {:.1f} sectors a load, {:.1f} a store", l->kernel,
                                                each(l->global_load.sectors, l->global_load.requests),
                                                each(l->global_store.sectors, l->global_store.requests)));
  if (const simt::launch_record* l = shown.few_lanes())
    return std::pair("idle-lanes",
                     fmt::format("{}: {} load and {} store requests, of {} lanes", l->kernel,
                                 l->global_load.requests, l->global_store.requests, shown.warp));
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
    case simt::fault_kind::race:
      if (text.find("this one begins early") != std::string::npos)
        return {"race", "a place that the launch before may still use; nothing waits for it"};
      if (text.find("shared memory") == std::string::npos &&
          text.find("blocks of a launch") == std::string::npos)
        return {"race", "two threads of a block share a place of x or y"};
      if (text.find("no __syncthreads()") != std::string::npos)
        return {"missing-barrier", "two warps share a place, and no barrier is between"};
      if (text.find("no barrier, shuffle") != std::string::npos)
        return {"missing-barrier", "two lanes share a place, and nothing is between"};
      if (text.find("blocks of a launch") != std::string::npos)
        return {"race", "two blocks share a place; nothing orders blocks"};
      return {"race", "two threads write one place, in no order"};
    case simt::fault_kind::host_memory:
      return {"wild-pointer", detail};
    case simt::fault_kind::misaligned:
      return {"misaligned", std::regex_replace(detail, std::regex(R"( \([^)]*\))"), "")};
    case simt::fault_kind::divergent_barrier:
      return {"divergent-barrier", detail.substr(0, detail.find(';'))};
    case simt::fault_kind::divergent_shuffle:
      if (text.find("but a warp has") != std::string::npos) return {"64-lanes-on-warp32", detail};
      return {"divergent-shuffle", detail.substr(0, detail.find_first_of(";,"))};
    case simt::fault_kind::deadlock:
      return {"deadlock", detail};
  }
  return {"fault", detail};
}

/// Where the wrong elements lie, for want of a better word.
std::string distribution_of_errors(const view& v) {
  std::int64_t wrong = 0;
  std::set<std::int64_t> rows, cols, warps, all_warps;
  for (std::int64_t i = 0; i < v.rows; ++i)
    for (std::int64_t j = 0; j < v.cols; ++j) {
      const std::int64_t warp = v.run->held_by(i, j).thread / v.run->warp;
      all_warps.insert(warp);
      if (!v.fails(i, j)) continue;
      ++wrong;
      rows.insert(i);
      cols.insert(j);
      warps.insert(warp);
    }
  if (wrong == 0) return "errors a little above the limit";
  std::string text = fmt::format("{} of {} wrong: ", wrong, v.rows * v.cols);
  text += static_cast<std::int64_t>(rows.size()) == v.rows
              ? "all rows"
              : "row " + list_of(std::vector<std::int64_t>(rows.begin(), rows.end()));
  text += static_cast<std::int64_t>(cols.size()) == v.cols ? ", all columns"
          : *cols.rbegin() - *cols.begin() == v.cols - 1
              ? fmt::format(", {} columns", cols.size())
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
    return {
        .label = "not-attempted", .evidence = "nothing is written yet; the TODOs say what", .shown = failing};

  // A width at which all is right says nothing about the mistake; of several, the first that fails is shown.
  std::vector<const case_run*> seen;
  for (const case_run& r : runs)
    if (r.warp == failing->warp && r.simulated == failing->simulated) seen.push_back(&r);
  diagnosis d;
  const auto decide = [&]() -> diagnosis {
    if (const case_run* r = first_of([](const case_run& c) { return c.fault.has_value(); });
        r && r->warp == failing->warp) {
      diagnosis found = named(explain_fault(*r->fault), r);
      // Who reads what was never written, or meets another there, is not the one to look at.
      const bool itself =
          r->fault->kind != simt::fault_kind::uninitialised && r->fault->kind != simt::fault_kind::race;
      if (r->fault->file.ends_with("exercise.cuh") && itself) found.fault_line = r->fault->line;
      return found;
    }
    if (const case_run* r = first_of([](const case_run& c) { return !c.refused.empty(); }))
      return {.label = r->simulated ? "launch-refused" : "gpu-error",
              .evidence = r->refused.substr(0, r->refused.find(':')),
              .shown = r};

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
        for (const auto& c : r->claims) claimed += c.most_threads > 0 ? 0 : c.barriers;
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
  if (d.label == "not-attempted") return "every TODO of the file";
  const case_run& r = *d.shown;
  if (r.fault) {
    const std::vector<std::string> lines = lines_of(r.fault->what());
    std::string who = lines.size() > 1 ? trimmed(lines[1]) : "";
    // Of two threads, the line has no room for what they do.
    who = r.fault->kind == simt::fault_kind::race ? who.substr(0, who.find(") ", who.find("block")) + 1)
                                                  : who.substr(0, who.find(": "));
    who = std::regex_replace(who, std::regex(R"(\((\d+),0,0\))"), "$1");
    return r.fault->kernel + ", " + who;
  }
  if (!r.refused.empty()) return "the launcher, before any kernel ran";
  if (!r.values_right() && r.check.worst.row >= 0 && !r.check.pass) {
    const element_report& e = r.check.worst;
    if (e.why == failure::never_written)
      return fmt::format("row {}, col {}: never written, want {}", e.row, e.col, value_text(e.want));
    std::string text =
        fmt::format("row {}, col {}: got {}, want {}", e.row, e.col, value_text(e.got), value_text(e.want));
    if (std::isfinite(e.got) && e.want > 0)
      text += e.got > 100 * e.want ? fmt::format(", {:.1g} times that", e.got / e.want)
                                   : fmt::format(", off by {:.2g} %", 100 * std::abs(e.got / e.want - 1));
    return text;
  }
  if (!r.damage.empty()) return r.damage;
  std::int64_t barriers = 0, claimed = 0;
  for (const auto& l : r.launches) barriers += static_cast<std::int64_t>(l.barriers);
  for (const auto& c : r.claims) claimed += c.barriers;
  if (loaded(r) != r.model_reads || stored(r) != r.model_writes)
    return fmt::format("values right; bytes read {} of {}, written {} of {}", loaded(r), r.model_reads,
                       stored(r), r.model_writes);
  if (const simt::launch_record* l = r.scattered() ? r.scattered() : r.few_lanes())
    return fmt::format("values and bytes right; {} bytes read in {} sectors", l->global_load.bytes,
                       l->global_load.sectors);
  if (!r.launches.empty() && !r.claims.empty() && r.claims[0].most_threads > 0)
    return fmt::format("values right; {} blocks of {} threads, {} barriers", r.launches[0].grid,
                       r.launches[0].block, barriers);
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
