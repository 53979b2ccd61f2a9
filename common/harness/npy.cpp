#include "harness/npy.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>

#include "harness/output_file.hpp"
#include "harness/usage_error.hpp"

namespace softmax {
namespace {

constexpr char magic[] = "\x93NUMPY";
constexpr std::size_t magic_bytes = 6;
constexpr std::int64_t most_at_once = 1 << 16;  // elements written at a time
constexpr std::uint32_t longest_header = 10000;  // as numpy.load has it

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw usage_error(fmt::format("Cannot read --input {}: {}", path, why));
}

struct npy_header {
  std::string type;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

npy_header parse_header(const std::string& path, const std::string& text) {
  std::smatch found;
  npy_header h;
  if (!std::regex_search(text, found, std::regex("'descr'\\s*:\\s*'([^']*)'")))
    refuse(path, "its array has a structured type; save a plain float32 array with numpy.save.");
  h.type = found[1];
  if (!std::regex_search(text, found, std::regex("'fortran_order'\\s*:\\s*(True|False)")))
    refuse(path, "its header names no order; save it again with numpy.save.");
  h.fortran_order = found[1] == "True";
  if (!std::regex_search(text, found, std::regex("'shape'\\s*:\\s*\\(([0-9, L]*)\\)")))
    refuse(path, "its header names no shape; save it again with numpy.save.");
  const std::string axes = found[1];
  const std::regex number("[0-9]+");
  for (auto it = std::sregex_iterator(axes.begin(), axes.end(), number); it != std::sregex_iterator(); ++it) {
    const std::string digits = it->str();
    if (digits.size() > 18) refuse(path, fmt::format("an axis of {} elements is too long.", digits));
    h.shape.push_back(std::stoll(digits));
  }
  return h;
}

}  // namespace

host_matrix read_npy(const std::string& path) {
  std::error_code problem;
  if (std::filesystem::is_directory(path, problem)) refuse(path, "it is a directory; name a .npy file.");
  if (std::filesystem::exists(path, problem) && !std::filesystem::is_regular_file(path, problem))
    refuse(path, "it is no regular file; name a .npy file.");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, fmt::format("{}; check the path.", std::strerror(errno)));

  char head[12] = {};
  file.read(head, 8);
  if (file.gcount() < 8 || std::memcmp(head, magic, magic_bytes) != 0)
    refuse(path, "it is no .npy file (the first bytes are not \\x93NUMPY); save it with numpy.save.");
  const int version = static_cast<unsigned char>(head[6]);
  if (version < 1 || version > 3)
    refuse(path, fmt::format("its format version {} is not known; use 1 to 3.", version));
  const int length_bytes = version == 1 ? 2 : 4;
  file.read(head + 8, length_bytes);
  std::uint32_t length = 0;
  for (int i = 0; i < length_bytes; ++i)
    length |= std::uint32_t{static_cast<unsigned char>(head[8 + i])} << (8 * i);
  if (!file || length > longest_header)
    refuse(path, fmt::format("its header is damaged or over {} bytes; save it again with numpy.save.",
                             longest_header));
  std::string text(length, '\0');
  file.read(text.data(), length);
  if (!file) refuse(path, "it ends inside its header; it was not written completely.");
  const npy_header header = parse_header(path, text);

  const bool swapped = header.type.starts_with('>');
  const std::string kind = header.type.empty() ? "" : header.type.substr(1);
  if (kind != "f4" && kind != "f2")
    refuse(path,
           fmt::format("its type is '{}'; convert it with numpy's astype('float32') or astype('float16').",
                       header.type));
  if (header.fortran_order && header.shape.size() > 1)
    refuse(path,
           "it is in Fortran order, so its rows are not contiguous; save numpy.ascontiguousarray of it.");
  if (header.shape.empty()) refuse(path, "it holds a single number; save an array with at least one axis.");

  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < header.shape.size(); ++i)
    if (__builtin_mul_overflow(rows, header.shape[i], &rows)) refuse(path, "its shape overflows 64 bits.");
  const std::int64_t cols = header.shape.back();
  const dtype type = kind == "f4" ? dtype::f32 : dtype::f16;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, cols, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<std::int64_t>(size_of(type)), &bytes))
    refuse(path, "its shape overflows 64 bits.");
  const std::int64_t here = file.tellg();
  file.seekg(0, std::ios::end);
  const std::int64_t present = static_cast<std::int64_t>(file.tellg()) - here;
  file.seekg(here);
  if (present < bytes)
    refuse(path, fmt::format("its header promises {} bytes of data and {} are there; the file is truncated.",
                             bytes, present));

  host_matrix m(type, rows, cols, cols);
  file.read(reinterpret_cast<char*>(m.data.data()), bytes);
  if (file.gcount() != bytes) refuse(path, "reading stopped early; check the disk.");
  if (swapped != (std::endian::native == std::endian::big))
    for (std::size_t i = 0; i < m.data.size(); i += size_of(type))
      std::reverse(m.data.begin() + i, m.data.begin() + i + size_of(type));
  return m;
}

void write_npy(const std::string& path, const host_matrix& m) {
  const bool half = m.type == dtype::f16;
  std::string header = fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   half ? 2 : 4, m.rows, m.cols);
  // Magic, version and length take 10 bytes; the data starts at a multiple of 64, as the format asks for.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';

  write_whole(path, "--output", [&](std::ostream& file) {
    file.write(magic, magic_bytes);
    file.write("\x01\x00", 2);
    const char length[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    file.write(length, 2);
    file << header;
    // In pieces, so that a long row is not held twice.
    const dtype type = half ? dtype::f16 : dtype::f32;
    std::vector<char> piece(static_cast<std::size_t>(std::min(m.cols, most_at_once)) * size_of(type));
    for (std::int64_t row = 0; row < m.rows; ++row)
      for (std::int64_t begin = 0; begin < m.cols; begin += most_at_once) {
        const std::int64_t count = std::min(most_at_once, m.cols - begin);
        for (std::int64_t i = 0; i < count; ++i) store(type, piece.data(), i, m.at(row, begin + i));
        file.write(piece.data(),
                   static_cast<std::streamsize>(count) * static_cast<std::streamsize>(size_of(type)));
      }
  });
}

}  // namespace softmax
