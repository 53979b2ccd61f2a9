#include "workbook/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "harness/usage_error.hpp"

namespace softmax::workbook {

namespace fs = std::filesystem;

fs::path workbook_root() {
  const char* chosen = std::getenv("SOFTMAX_WORKBOOK");
  const fs::path root = chosen && *chosen ? chosen : SOFTMAX_SOURCE_DIR;
  if (!fs::exists(root / "stages"))
    throw usage_error(
        fmt::format("There is no workbook in {}: build again with make in its folder, or set "
                    "SOFTMAX_WORKBOOK to it.",
                    root.string()));
  return root;
}

std::vector<stage_folder> find_stages(const fs::path& root) {
  std::vector<stage_folder> all;
  for (const auto& entry : fs::directory_iterator(root / "stages")) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 3 && name[2] == '_' && fs::exists(entry.path() / "kernel.cuh"))
      all.push_back({name.substr(0, 2), "stages/" + name, name.substr(3)});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return all;
}

stage_folder find_stage(const fs::path& root, const std::string& number) {
  const std::string wanted = number.size() == 1 ? "0" + number : number;
  std::string known;
  for (const stage_folder& s : find_stages(root)) {
    if (s.number == wanted) return s;
    known += (known.empty() ? "" : ", ") + s.number;
  }
  throw usage_error(fmt::format("There is no stage {}: use one of {}.", number, known));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string read_text(const fs::path& file) {
  std::FILE* f = std::fopen(file.c_str(), "rb");
  if (!f) throw usage_error(fmt::format("Cannot read {}: {}.", file.string(), std::strerror(errno)));
  std::string text;
  char piece[8192];
  for (std::size_t n; (n = std::fread(piece, 1, sizeof piece, f)) > 0;) text.append(piece, n);
  const bool failed = std::ferror(f) != 0;
  std::fclose(f);
  if (failed) throw usage_error(fmt::format("Cannot read {}: it is no file.", file.string()));
  return text;
}

void write_text(const fs::path& file, const std::string& text) {
  const std::string unfinished = fmt::format("{}.{}.unfinished", file.string(), getpid());
  std::FILE* f = std::fopen(unfinished.c_str(), "wb");
  const auto give_up = [&](const char* what) {
    const std::string why = std::strerror(errno);
    std::remove(unfinished.c_str());
    throw usage_error(fmt::format("Cannot {} {}: {}.", what, file.string(), why));
  };
  if (!f) give_up("write");
  const bool whole = std::fwrite(text.data(), 1, text.size(), f) == text.size() && std::fflush(f) == 0 &&
                     fsync(fileno(f)) == 0;
  if (std::fclose(f) != 0 || !whole) give_up("write");
  if (std::rename(unfinished.c_str(), file.c_str()) != 0) give_up("replace");
}

}  // namespace softmax::workbook
