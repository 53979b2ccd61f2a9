#pragma once
#include <fstream>
#include <stdexcept>
#include <string>

/// The number of the line in a source file that holds the comment "// FAULT <name>".
inline int line_of(const std::string& file, const std::string& name) {
  std::ifstream source(std::string(SOFTMAX_SOURCE_DIR) + "/" + file);
  std::string text;
  for (int line = 1; std::getline(source, text); ++line)
    if (text.find("// FAULT " + name) != std::string::npos && text.ends_with("// FAULT " + name)) return line;
  throw std::runtime_error("no line is marked '// FAULT " + name + "' in " + file);
}
