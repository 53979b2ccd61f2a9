#include "harness/command.hpp"

#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace softmax {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

command_output run_command(const std::string& command) {
  command_output out;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) return out;
  char piece[4096];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) out.text.append(piece, n);
  const int status = pclose(pipe);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  return out;
}

std::string find_ncu() {
  std::vector<std::string> candidates;
  if (const char* path = std::getenv("PATH"))
    for (const std::string& folder : split(path, ':')) candidates.push_back(folder + "/ncu");
  candidates.emplace_back("/usr/local/cuda/bin/ncu");
  glob_t found{};
  if (glob("/opt/nvidia/nsight-compute/*/ncu", 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) candidates.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  const auto usable = [](const std::string& file) { return access(file.c_str(), X_OK) == 0; };
  const auto first = std::find_if(candidates.begin(), candidates.end(), usable);
  return first == candidates.end() ? "" : *first;
}

}  // namespace softmax
