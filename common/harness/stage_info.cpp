#include "harness/stage_info.hpp"

namespace softmax {
namespace {

std::string term(std::int64_t factor, const std::string& unit) {
  if (factor == 0) return "";
  return (factor == 1 ? "" : std::to_string(factor)) + unit;
}

std::int64_t bytes(const element_count& storage, const element_count& f32, const matrix_shape& s, dtype t) {
  return storage.of(s) * static_cast<std::int64_t>(size_of(t)) + f32.of(s) * 4;
}

}  // namespace

std::int64_t useful_bytes(const matrix_shape& s, dtype t) {
  return 2 * s.rows * s.cols * static_cast<std::int64_t>(size_of(t));
}

std::string element_count::text() const {
  const std::string a = term(mn, "MN"), b = term(m, "M");
  if (a.empty() && b.empty()) return "0";
  return a + (a.empty() || b.empty() ? "" : "+") + b;
}

std::int64_t kernel_model::read_bytes(const matrix_shape& s, dtype t) const {
  return bytes(reads_storage, reads_f32, s, t);
}
std::int64_t kernel_model::write_bytes(const matrix_shape& s, dtype t) const {
  return bytes(writes_storage, writes_f32, s, t);
}

element_count stage_info::reads() const {
  element_count sum;
  for (const auto& k : launches) sum = sum + k.reads();
  return sum;
}
element_count stage_info::writes() const {
  element_count sum;
  for (const auto& k : launches) sum = sum + k.writes();
  return sum;
}

std::int64_t stage_info::read_bytes(const matrix_shape& s, dtype t) const {
  std::int64_t sum = 0;
  for (const auto& k : launches) sum += k.read_bytes(s, t);
  return sum;
}
std::int64_t stage_info::write_bytes(const matrix_shape& s, dtype t) const {
  std::int64_t sum = 0;
  for (const auto& k : launches) sum += k.write_bytes(s, t);
  return sum;
}

stage_info fitted(const stage_info& stage, const matrix_shape& s, dtype t, int cluster_blocks) {
  stage_info fit = stage;
  if (fit.fit && s.rows > 0 && s.cols > 0) fit.fit(fit, s, t, cluster_blocks);
  return fit;
}

error_model errors_of(const stage_info& stage, const matrix_shape& s) {
  return {stage.sum_depth(s), stage.exponent_roundings, stage.extra_ulp};
}

std::string stage_problem(const stage_info& stage, const matrix_shape& s) {
  if (std::string problem = shape_problem(s); !problem.empty()) return problem;
  if (stage.widest_row == 0 || s.rows == 0 || s.cols <= stage.widest_row) return "";
  return "Stage " + stage.number + " keeps a row in registers and takes at most " +
         std::to_string(stage.widest_row) + " columns, not " + std::to_string(s.cols) + ": use stage " +
         stage.wider + ", which takes rows of any width.";
}

std::string overlap_problem(const void* x, const void* y, const matrix_shape& s, dtype t) {
  return overlap_problem(x, y, s, size_of(t));
}

}  // namespace softmax
