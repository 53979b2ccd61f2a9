// One screen: what this machine has, and what each lack limits.
#include <fmt/format.h>

#include <thread>

#include "harness/command.hpp"
#include "simt/sim/control.hpp"
#include "workbook/commands.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/style.hpp"

namespace softmax::workbook {
namespace {

namespace fs = std::filesystem;

/// The first line that says something, and `containing`; empty if none does.
std::string first_line(const std::string& text, const std::string& containing = "") {
  for (const std::string& line : lines_of(text))
    if (const std::string said = trimmed(line); !said.empty() && said.find(containing) != std::string::npos)
      return said;
  return "";
}

bool on_path(const std::string& program) { return run_command("command -v " + program).exit_code == 0; }

void row(const std::string& what, bool there, const std::string& text, const std::string& lack) {
  const std::string mark = there ? green("yes") : red("no ");
  const std::string all = there || lack.empty() ? text : text.empty() ? lack : text + "; " + lack;
  // One line each, so that it stays a screen.
  fmt::print("  {} {:<11} {}\n", mark, what, all.size() > 62 ? all.substr(0, 59) + "..." : all);
}

std::string version_of(const std::string& program) {
  const std::string line = first_line(run_command(program + " --version").text);
  return line.empty() ? program : line;
}

/// A stage program that was built, to ask it for devices: the runtimes are compiled into it.
std::string built_stage(const fs::path& root) {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  for (const stage_folder& s : find_stages(root))
    if (fs::exists(bin / ("stage-" + s.number))) return (bin / ("stage-" + s.number)).string();
  return "";
}

void gpu(const std::string& stage, const std::string& vendor, const std::string& backend) {
  if (stage.empty()) return row(vendor + " GPU", false, "not asked", "run make stage-00 first");
  const auto [text, code] =
      run_command(shell_quoted(stage) + " --device " + backend + " --rows 1 --cols 1 --no-time");
  std::string why = first_line(text);
  if (const auto colon = why.find(": "); code != 0 && colon != std::string::npos) why = why.substr(colon + 2);
  if (code != 0 && why.find(':') != std::string::npos) why = why.substr(0, why.find(':'));
  if (why.find("built without") != std::string::npos)
    why = "built without " + std::string(backend == "cuda" ? "CUDA" : "HIP") +
          "; its compiler was off or missing";
  row(vendor + " GPU", code == 0, code == 0 ? first_line(text, "device") : why, "");
}

}  // namespace

int show_doctor(const fs::path& root) {
  fmt::print("{}\n\n", bold("What this machine has"));
  row("C++", on_path("g++") || on_path("clang++"), version_of(on_path("g++") ? "g++" : "clang++"),
      "nothing can be built: make setup");
  row("CMake", on_path("cmake"), version_of("cmake"), "nothing can be built: make setup");
  row("simulator", true,
      fmt::format("{} cores; warps of 32 and 64; counts bytes, finds faults",
                  std::thread::hardware_concurrency()),
      "");
  const bool nvcc = on_path("nvcc") || fs::exists("/usr/local/cuda/bin/nvcc");
  row("nvcc", nvcc, nvcc ? "CUDA Toolkit found" : "",
      "nothing runs on an NVIDIA GPU; the simulator does all");
  row("hipcc", on_path("hipcc"), on_path("hipcc") ? "HIP compiler found" : "",
      "nothing runs on an AMD GPU (make setup-hip)");
  const std::string stage = built_stage(root);
  gpu(stage, "NVIDIA", "cuda");
  gpu(stage, "AMD", "hip");
  const bool ncu = !find_ncu().empty();
  bool admin_only = false;
  if (fs::exists("/proc/driver/nvidia/params"))
    admin_only = read_text("/proc/driver/nvidia/params").find("RmProfilingAdminOnly: 1") != std::string::npos;
  row("counters", ncu && !admin_only,
      !ncu         ? "ncu (Nsight Compute) is not here"
      : admin_only ? "the driver keeps them for root"
                   : "ncu may read them",
      ncu ? "ncu ends with ERR_NVGPUCTRPERM" : "no DRAM bytes");
  const bool python = on_path("python3");
  row("Python", python, python ? version_of("python3") : "",
      "no tests, no reports from bench/; exercises need none");
  fmt::print("\nWithout a GPU all exercises and quizzes can be done; only times are missing.\n");
  return 0;
}

}  // namespace softmax::workbook
