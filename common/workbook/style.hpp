#pragma once
/// @file
/// Colour, where standard output is a terminal that wants it.
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace softmax::workbook {

inline bool colourful() {
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !(none && *none) && !(term && std::string(term) == "dumb");
}
inline std::string painted(const std::string& code, const std::string& text) {
  return colourful() ? "\x1b[" + code + "m" + text + "\x1b[0m" : text;
}
inline std::string bold(const std::string& text) { return painted("1", text); }
inline std::string green(const std::string& text) { return painted("32", text); }
inline std::string red(const std::string& text) { return painted("31", text); }
inline std::string faint(const std::string& text) { return painted("2", text); }

}  // namespace softmax::workbook
