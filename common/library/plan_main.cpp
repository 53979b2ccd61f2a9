// softmax-plan-<backend>: says what softmax() would launch for a shape, and runs nothing.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include "numerics/dtype.hpp"
#include "softmax.hpp"

int main(int argc, char** argv) {
  CLI::App app("What softmax() would launch for a matrix, on the current device.");
  softmax::softmax_problem p{.rows = 4096, .cols = 8192};
  std::int64_t ld_in = -1, ld_out = -1, offset = 0;
  std::string type = "f32";
  bool workspace = false;
  app.add_option("--rows", p.rows, "rows")->capture_default_str();
  app.add_option("--cols", p.cols, "columns")->capture_default_str();
  app.add_option("--dtype", type, "f32, f16 or bf16")->capture_default_str();
  app.add_option("--ld-in", ld_in, "row stride of the input in elements (the columns)");
  app.add_option("--ld-out", ld_out, "row stride of the output in elements (the columns)");
  app.add_option("--offset", offset, "elements that x and y lie off a multiple of 16 bytes")
      ->capture_default_str();
  app.add_flag("--workspace", workspace, "with as much workspace as softmax_workspace() says");
  CLI11_PARSE(app, argc, argv);
  const auto known = softmax::parse_dtype(type);
  if (!known) {
    std::fprintf(stderr, "softmax-plan: --dtype %s is not known: use f32, f16 or bf16.\n", type.c_str());
    return 2;
  }
  p.type = *known;
  p.ld_in = ld_in < 0 ? p.cols : ld_in;
  p.ld_out = ld_out < 0 ? p.cols : ld_out;
  try {
    // Addresses of no memory: apart, and aligned as asked for. Nothing is read or written.
    const auto address = [&](std::uintptr_t base) {
      return reinterpret_cast<void*>(base + static_cast<std::uintptr_t>(offset) * softmax::size_of(p.type));
    };
    const std::size_t bytes = softmax::softmax_workspace(p);
    const softmax::softmax_plan plan = softmax::plan_softmax(
        address(std::uintptr_t{1} << 20), address(std::uintptr_t{1} << 62), p, workspace ? bytes : 0);
    std::printf("%lld x %lld %s: stage %s (%s); workspace %zu bytes\n", static_cast<long long>(p.rows),
                static_cast<long long>(p.cols), type.c_str(), plan.stage.c_str(), plan.why.c_str(), bytes);
    for (const softmax::planned_launch& l : plan.launches)
      std::printf(
          "  %s: %lld blocks of %d threads%s\n", l.kernel.c_str(), static_cast<long long>(l.blocks),
          l.threads,
          l.blocks_a_cluster > 1 ? (", clusters of " + std::to_string(l.blocks_a_cluster)).c_str() : "");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "softmax-plan: %s\n", problem.what());
    return 1;
  }
  return 0;
}
