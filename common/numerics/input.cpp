#include "numerics/input.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <stdexcept>

#include "numerics/parallel.hpp"

namespace softmax {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// SplitMix64 (Steele, Lea, Flood 2014): a bijection that turns a counter into random-looking bits.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Random numbers that belong to one place of the matrix.
class place_random {
 public:
  place_random(std::uint64_t row_key, std::int64_t col)
      : state_(mix(row_key ^ static_cast<std::uint64_t>(col))) {}
  /// In (0, 1).
  double uniform() {
    state_ = mix(state_);
    return (static_cast<double>(state_ >> 11) + 0.5) * 0x1p-53;
  }
  /// Standard normal, by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

struct place {
  std::int64_t row, col, rows, cols;
  std::uint64_t row_key;  // random bits that belong to seed and row
};

using generator = std::function<double(const place&)>;

double normal_at(const place& p) { return place_random(p.row_key, p.col).normal(); }

/// Like the last layer of a language model: most of the vocabulary well below, a few words far above.
double logits_at(const place& p) {
  place_random r(p.row_key, p.col);
  const double base = 2.5 * r.normal() - 4;
  return r.uniform() < 0.002 ? base + 12 : base;
}

/// Attention scores with padding: row i keeps a prefix of at least one column, the rest is -inf.
double masked_at(const place& p) {
  const double share = place_random(~p.row_key, 0).uniform();
  const auto kept = 1 + static_cast<std::int64_t>(share * static_cast<double>(p.cols));
  return p.col < kept ? normal_at(p) : -infinity;
}

/// A different trap in each row: NaN, +inf, all -inf, one finite value, and ordinary neighbours between.
double special_at(const place& p) {
  switch (p.row % 10) {
    case 1:
      return p.col == p.cols / 2 ? not_a_number : normal_at(p);
    case 3:
      return p.col == p.cols - 1 ? infinity : normal_at(p);
    case 5:
      return -infinity;
    case 7:
      return p.col == p.cols - 1 ? 3.0 : -infinity;
    case 9:
      return p.col == 0 ? not_a_number : -infinity;
    default:
      return normal_at(p);
  }
}

/// Four kinds of rows in turn, so that no common mistake stays unseen: ordinary, negative, large, masked.
double mixed_at(const place& p) {
  switch (p.row % 4) {
    case 1:
      return normal_at(p) - 200;
    case 2:
      return 80 * normal_at(p);
    case 3:
      return masked_at(p);
    default:
      return normal_at(p);
  }
}

double parse_number(const std::string& text, const std::string& what) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("--dist " + what + ":" + text + " needs a number behind the colon, such as " +
                                what + ":0.5.");
  return value;
}

generator spike(const std::string& where, const place& shape) {
  std::int64_t at = shape.cols - 1;
  if (where == "first")
    at = 0;
  else if (where == "middle")
    at = shape.cols / 2;
  else if (where != "last" && !where.empty())
    throw std::invalid_argument("--dist spike:" + where +
                                " is not known: use spike:first, spike:middle or spike:last.");
  return [at](const place& p) { return normal_at(p) + (p.col == at ? 50 : 0); };
}

generator find(const std::string& text, const place& shape) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string parameter = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (name == "const") {
    const double value = parameter.empty() ? 0 : parse_number(parameter, name);
    return [value](const place&) { return value; };
  }
  if (name == "spike") return spike(parameter, shape);
  if (parameter.empty()) {
    if (name == "mixed") return mixed_at;
    if (name == "normal") return normal_at;
    if (name == "logits") return logits_at;
    if (name == "masked") return masked_at;
    if (name == "special") return special_at;
    if (name == "ramp_up") return [](const place& p) { return 0.5 * static_cast<double>(p.col); };
    if (name == "ramp_down") return [](const place& p) { return -0.5 * static_cast<double>(p.col); };
    if (name == "negative") return [](const place& p) { return normal_at(p) - 200; };
    if (name == "large") return [](const place& p) { return 80 * normal_at(p); };
    if (name == "row_ramp") return [](const place& p) { return static_cast<double>(p.row % 1024) * 0.125; };
  }
  std::string known;
  for (const auto& d : distributions()) known += (known.empty() ? "" : ", ") + d.name;
  throw std::invalid_argument("--dist " + text + " is not known: use one of " + known + ".");
}

}  // namespace

const std::vector<distribution>& distributions() {
  static const std::vector<distribution> all = {
      {"mixed", "rows of normal, negative, large and masked in turn"},
      {"normal", "standard normal"},
      {"logits", "like a language model's: most far below, a few spikes"},
      {"masked", "normal, with a different number of trailing -inf in each row"},
      {"special", "NaN, +inf, all -inf and one finite value, in rows between ordinary ones"},
      {"large", "normal times 80: overflows without the maximum subtracted"},
      {"negative", "all about -200: wrong where padding counts as 0"},
      {"ramp_up", "rising by 0.5 a column: a running maximum changes at every step"},
      {"ramp_down", "falling by 0.5 a column"},
      {"row_ramp", "constant within a row, different between rows"},
      {"spike", "normal, and one value 50 higher: spike:first, spike:middle, spike:last"},
      {"const", "one value everywhere: const:0"},
  };
  return all;
}

host_matrix make_input(const std::string& text, std::uint64_t seed, dtype type, std::int64_t rows,
                       std::int64_t cols, std::int64_t ld) {
  const place shape{0, 0, rows, cols, 0};
  const generator value = find(text, shape);
  host_matrix m(type, rows, cols, ld);
  if (rows == 0 || cols == 0) return m;
  // By elements, not by rows: a single long row is shared too.
  const std::int64_t elements = rows * cols;
  constexpr std::int64_t piece_length = 1 << 14;
  parallel_pieces(elements, piece_length, cores(), [&](std::int64_t at, std::int64_t end) {
    while (at < end) {
      const std::int64_t row = at / cols;
      const std::uint64_t row_key = mix(mix(seed) ^ 3 * mix(static_cast<std::uint64_t>(row)));
      const std::int64_t row_end = std::min(end, (row + 1) * cols);
      for (std::int64_t col = at - row * cols; at < row_end; ++at, ++col)
        m.set(row, col, value({row, col, rows, cols, row_key}));
    }
  });
  m.fill_padding();
  return m;
}

}  // namespace softmax
