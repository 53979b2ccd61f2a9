#include "harness/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/usage_error.hpp"

namespace softmax {
namespace {

[[noreturn]] void cannot_write(const std::string& path, const std::string& option, const std::string& why) {
  throw usage_error(
      fmt::format("Cannot write {} {}: {}; choose a file in a directory that exists, that you may "
                  "write to, and that has room.",
                  option, path, why));
}

}  // namespace

void check_writable(const std::string& path, const std::string& option) {
  namespace fs = std::filesystem;
  std::error_code problem;
  if (fs::is_directory(path, problem)) cannot_write(path, option, "it is a directory");
  if (fs::exists(path, problem) && !fs::is_regular_file(path, problem))
    cannot_write(path, option, "it is a device or a pipe, which would be replaced");
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, problem))
    cannot_write(path, option, "there is no directory " + folder.string());
  if (access(folder.c_str(), W_OK) != 0) cannot_write(path, option, std::strerror(errno));
  if (fs::exists(path, problem) && access(path.c_str(), W_OK) != 0)
    cannot_write(path, option, std::strerror(errno));
}

void write_whole(const std::string& path, const std::string& option,
                 const std::function<void(std::ostream&)>& fill) {
  check_writable(path, option);
  std::error_code problem;
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, problem);
  const std::string target = problem ? path : resolved.string();
  const std::string unfinished = fmt::format("{}.{}.unfinished", target, getpid());
  std::ofstream file(unfinished, std::ios::binary);
  if (!file) cannot_write(path, option, std::strerror(errno));
  fill(file);
  file.close();
  if (!file || std::rename(unfinished.c_str(), target.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::remove(unfinished.c_str());
    cannot_write(path, option, why);
  }
}

}  // namespace softmax
