#pragma once
/// @file
/// Runs a learner's code where it can do no harm: in a process of its own, with a watch on its progress.
#include <functional>
#include <string>

namespace softmax::workbook {

/// How a supervised run ended.
struct supervised {
  enum class end { finished, endless, crashed } how = end::finished;
  int code = 0;  ///< what the body returned
  std::string step;  ///< what it was doing last
  std::string signal;  ///< where it crashed, what ended it, such as "Segmentation fault"
  std::string last_words;  ///< its standard error
};

/// Says what is being done now. A step that takes longer than the patience is taken for endless.
using announce = std::function<void(const std::string& step)>;

/// Forks; the body runs in the child. @throws std::runtime_error if the system gives no process
supervised supervise(double patience_seconds, const std::function<int(const announce&)>& body);

}  // namespace softmax::workbook
