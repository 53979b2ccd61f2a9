// softmax.hpp for one backend: looks at the arguments, and at what was measured, and calls a stage.
#include "softmax.hpp"

#include <limits>
#include <stdexcept>

#include "library/measured.hpp"
#include "library/stage.hpp"
#include "split_plan.hpp"

namespace softmax {
namespace {

constexpr std::int64_t widest_of_06 = 32768;

std::size_t bytes_of(dtype type) { return type == dtype::f32 ? 4 : 2; }

/// Why the call makes no sense, in one sentence; empty if it does.
std::string problem_with(const void* x, const void* y, const softmax_problem& p) {
  if (std::string why = shape_problem({p.rows, p.cols, p.ld_in, p.ld_out}, "ld_in", "ld_out"); !why.empty())
    return why;
  if (p.type != dtype::f32 && p.type != dtype::f16 && p.type != dtype::bf16)
    return "The type is none that softmax() knows: use dtype::f32, f16 or bf16.";
  if (p.rows == 0 || p.cols == 0) return "";
  const auto size = static_cast<std::int64_t>(bytes_of(p.type));
  const auto countable = [&](std::int64_t ld) {
    std::int64_t bytes = 0;
    return !__builtin_mul_overflow(p.rows - 1, ld, &bytes) &&
           !__builtin_add_overflow(bytes, p.cols, &bytes) && !__builtin_mul_overflow(bytes, size, &bytes);
  };
  if (!countable(p.ld_in) || !countable(p.ld_out))
    return "The matrix has more bytes than 64 bits can count: use fewer rows or columns.";
  constexpr std::int64_t most_vectors = std::int64_t{1} << 30;  // of a row, as kernels count them in 32 bits
  if (p.cols / (16 / size) >= most_vectors)
    return "A row of " + std::to_string(p.cols) +
           " columns is too wide: use less than 2^30 vectors of 16 bytes.";
  if (!x || !y) return "x and y must point to device memory; one of them is null.";
  const auto in = reinterpret_cast<std::uintptr_t>(x), out = reinterpret_cast<std::uintptr_t>(y);
  if (in % static_cast<std::uintptr_t>(size) != 0 || out % static_cast<std::uintptr_t>(size) != 0)
    return "x and y must be aligned to their elements of " + std::to_string(size) + " bytes.";
  // The stride of a single row does not matter.
  return overlap_problem(x, y, {p.rows, p.cols, p.ld_in, p.rows == 1 ? p.ld_in : p.ld_out}, bytes_of(p.type));
}

struct choice {
  int stage;
  const char* why;
};

/// The stage that was fastest at the measured shape nearest to this one, of those that stage 07 would treat
/// alike: a block a row, or several. Narrower shapes count as farther: where a row is a little wider than
/// what blocks hold well, as powers of two often are, it is like a wider one to them.
int nearest_measured(const softmax_problem& p) {
  // Shapes are as far apart as the ratios of their rows and columns, those of the columns squared.
  const auto ratio = [](std::int64_t a, std::int64_t b) {
    return a > b ? static_cast<double>(a) / static_cast<double>(b)
                 : static_cast<double>(b) / static_cast<double>(a);
  };
  const std::size_t size = bytes_of(p.type);
  const bool lone = for_lone_blocks({p.rows, p.cols, p.ld_in, p.ld_out}, size);
  constexpr double narrower_is_farther = 16;
  double nearest = std::numeric_limits<double>::infinity();
  int stage = 6;
  for (const library::measured_choice& m : library::measured_sm_90) {
    if (m.four_bytes != (p.type == dtype::f32)) continue;
    if (lone != for_lone_blocks({m.rows, m.cols, m.cols, m.cols}, size)) continue;
    const double of_cols = ratio(p.cols, m.cols);
    const double apart =
        ratio(p.rows, m.rows) * of_cols * of_cols * (m.cols < p.cols ? narrower_is_farther : 1);
    if (apart < nearest) {
      nearest = apart;
      stage = m.stage;
    }
  }
  return stage;
}

choice choose(const softmax_problem& p, bool has_workspace) {
  const int clusters = simt::most_cluster_blocks();
  const bool split_possible = clusters >= most_parts || has_workspace;
  if (p.cols > widest_of_06)
    return split_possible ? choice{7, "no block holds the row"}
                          : choice{5, "no block holds the row, and there is no workspace"};
  if (!split_possible) return {6, "a block holds the row, and there is no workspace"};
  if (clusters >= most_parts)
    return {nearest_measured(p), "the faster one at the nearest shape measured on an H200"};
  constexpr std::int64_t few_rows = 64, narrow = 8192;
  return p.rows < few_rows && p.cols > narrow ? choice{7, "by rule: few rows, and wide"}
                                              : choice{6, "by rule: a block holds the row"};
}

/// What stage 07 keeps of the parts of all rows: a maximum and a sum of 4 bytes each. In the ring, a counter
/// of rows that fits in there.
std::size_t bytes_of_parts(const matrix_shape& s) {
  return static_cast<std::size_t>(parts_of(s) * s.rows) * 8;
}

/// What is done for the call, once it makes sense.
choice run(const void* x, void* y, const softmax_problem& p, simt::stream queue, void* workspace,
           std::size_t workspace_bytes) {
  const matrix_shape s{p.rows, p.cols, p.ld_in, p.ld_out};
  const bool enough = workspace_bytes >= bytes_of_parts(s);
  auto* const scratch = enough ? static_cast<float*>(workspace) : nullptr;
  const choice c = choose(p, scratch != nullptr);
  const auto stage = c.stage == 5 ? library::run_05 : c.stage == 6 ? library::run_06 : library::run_07;
  stage(x, y, scratch, s, p.type, queue);
  return c;
}

}  // namespace

std::size_t softmax_workspace(const softmax_problem& p) {
  if (p.rows <= 0 || p.cols <= 0) return 0;
  const matrix_shape s{p.rows, p.cols, p.ld_in, p.ld_out};
  const bool clusters = simt::most_cluster_blocks() >= most_parts;
  const bool used = clusters ? beyond_clusters(s) || in_ring(s, bytes_of(p.type))
                             : p.cols > widest_of_06 || choose(p, true).stage == 7;
  return used ? bytes_of_parts(s) : 0;
}

void softmax(const void* x, void* y, const softmax_problem& p, void* stream, void* workspace,
             std::size_t workspace_bytes) {
  if (const std::string why = problem_with(x, y, p); !why.empty()) throw std::invalid_argument(why);
  if (workspace_bytes > 0 && (!workspace || reinterpret_cast<std::uintptr_t>(workspace) % 8 != 0))
    throw std::invalid_argument("The workspace must be device memory aligned to 8 bytes.");
  if (p.rows == 0 || p.cols == 0) return;
  run(x, y, p, static_cast<simt::stream>(stream), workspace, workspace_bytes);
}

softmax_plan plan_softmax(const void* x, const void* y, const softmax_problem& p,
                          std::size_t workspace_bytes) {
  if (const std::string why = problem_with(x, y, p); !why.empty()) throw std::invalid_argument(why);
  softmax_plan plan;
  if (p.rows == 0 || p.cols == 0) return plan;
  std::vector<simt::launch_note> notes;
  float nowhere[2];
  struct noting {
    explicit noting(std::vector<simt::launch_note>& notes) { simt::noted_launches = &notes; }
    ~noting() { simt::noted_launches = nullptr; }
  };
  choice c{};
  {
    const noting all(notes);
    c = run(x, const_cast<void*>(y), p, simt::stream(), nowhere, workspace_bytes);
  }
  plan.stage = "0" + std::to_string(c.stage);
  plan.why = c.why;
  for (const simt::launch_note& n : notes)
    plan.launches.push_back(
        {n.kernel, std::int64_t{n.grid_x} * n.grid_y, static_cast<int>(n.block), n.cluster});
  return plan;
}

}  // namespace softmax
