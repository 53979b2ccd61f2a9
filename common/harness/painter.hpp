#pragma once
/// @file
/// Colours for a terminal, and numbers as people read them.
#include <fmt/format.h>

#include <string>

namespace softmax {

/// Text with the colours of a terminal, or without any.
class painter {
 public:
  /// `on`: the output is a terminal.
  explicit painter(bool on) : on_(on) {}
  /// Green: as it should be.
  std::string good(const std::string& s) const { return paint("32;1", s); }
  /// Red: wrong.
  std::string bad(const std::string& s) const { return paint("31;1", s); }
  /// Less important.
  std::string dim(const std::string& s) const { return paint("2", s); }
  /// More important.
  std::string strong(const std::string& s) const { return paint("1", s); }

 private:
  std::string paint(const char* code, const std::string& s) const {
    return on_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, s) : s;
  }
  bool on_;
};

/// "1.60 MB"
inline std::string size_text(double bytes) {
  if (bytes < 1e4) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes * 1e-3);
  if (bytes < 1e9) return fmt::format("{:.2f} MB", bytes * 1e-6);
  return fmt::format("{:.2f} GB", bytes * 1e-9);
}

}  // namespace softmax
