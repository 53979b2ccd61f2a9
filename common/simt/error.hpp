#pragma once
/// @file
/// Errors of the portability layer.
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace simt {

/// A runtime call or a launch failed. what() holds the call, the reason, file and line and what to do next.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine has no device for this backend, or its driver does not fit. what() is one sentence for the
/// user.
class no_device : public error {
 public:
  using error::error;
};

/// "void softmax::row_max<float>(...)" from the name that the linker sees.
inline std::string demangled(const char* symbol) {
  int failed = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &failed),
                                                    std::free);
  return failed == 0 && text ? text.get() : symbol;
}

/// A path below the root of this project, however the compiler was told to write it.
inline std::string project_path(const std::string& file) {
  for (const char* folder : {"stages/", "common/", "tests/", "bench/"})
    if (const auto at = file.rfind(std::string("/") + folder); at != std::string::npos)
      return file.substr(at + 1);
  return file;
}

/// The text of an error: `call` as written in the source, what the runtime said, where, and the next thing to
/// do.
inline std::string error_text(const std::string& call, const std::string& reason, const std::string& advice,
                              const char* file, int line) {
  return call + " failed: " + reason + " (" + project_path(file) + ":" + std::to_string(line) + "). " +
         advice;
}

}  // namespace simt

/// Evaluates a runtime call once and throws simt::error unless it succeeded.
#define SIMT_CHECK(call) ::simt::check((call), #call, __FILE__, __LINE__)
