// Writes one C++ file with the skeleton and every wrong solution of a stage, each in a namespace of its own,
// for one warp width: many small programs would compile the same headers again and again.
//
//   trials_generator STAGE_FOLDER WRONG_FOLDER TUNABLE OUTPUT
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"

using namespace softmax::workbook;
namespace fs = std::filesystem;

namespace {

/// The kernel inside `name`, its lines where they were; its includes go to the head of the file.
std::string inside(const std::string& text, const std::string& name, std::string& includes) {
  std::string out;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("#include") && includes.find(line) == std::string::npos) includes += line + "\n";
    if (line.starts_with("#include") || line == "#pragma once")
      out += "\n";
    else if (line == "namespace softmax {")
      out += "namespace softmax::" + name + " {\n";
    else
      out += line + "\n";
  }
  return out;
}

std::string identifier(const std::string& name) {
  std::string id = "trial_" + name;
  std::replace(id.begin(), id.end(), '-', '_');
  return id;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  const fs::path stage = argv[1], wrong = argv[2];
  const std::string plan = std::string(argv[3]) == "TUNABLE" ? ", c.plan" : "";
  const std::string kernel = read_text(stage / "kernel.cuh"), folder = "stages/" + stage.filename().string();
  std::string includes, bodies, runs, list;
  const auto add = [&](const std::string& name, const std::string& text, int warp, bool all_types) {
    const std::string id = identifier(name), width = std::to_string(warp);
    bodies += "#line 1 \"" + folder + "/exercise.cuh\"\n" + inside(text, id, includes) + "\n";
    const auto call = [&](const std::string& type) {
      return "    return " + id + "::softmax<" + width + ">(static_cast<const " + type +
             "*>(c.x), static_cast<" + type + "*>(c.y), c.workspace, c.shape, nullptr" + plan + ");\n";
    };
    runs += "void run_" + id + "(const stage_call& c) {\n";
    if (all_types)
      runs += "  if (c.type == dtype::f16)\n" + call("simt::half") + "  if (c.type == dtype::bf16)\n" +
              call("simt::bfloat16");
    runs += "  if (c.type == dtype::f32)\n" + call("float") + "}\n";
    list += "      {\"" + name + "\", " + (all_types ? "true" : "false") + ", run_" + id + "},\n";
  };
  add("skeleton", make_skeleton(kernel, folder), 32, false);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(wrong)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (file.extension() != ".diff") continue;
    const wrong_solution w = parse_wrong_solution(file.stem().string(), read_text(file));
    const std::string text = apply_edits(kernel, w);
    add(w.name, text, w.warp, w.all_types || text.find("half") != std::string::npos);
  }
  write_text(argv[4], includes + "#include \"trial.hpp\"\n" + bodies +
                          "#line 1 \"trials\"\nnamespace softmax {\nnamespace {\n" + runs +
                          "}  // namespace\nstd::span<const workbook::trial> workbook::trials() {\n"
                          "  static constexpr trial all[] = {\n" +
                          list + "  };\n  return all;\n}\n}  // namespace softmax\n");
  return 0;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "trials_generator: %s\n", problem.what());
  return 1;
}
