#include "workbook/supervisor.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

namespace softmax::workbook {
namespace {

/// Seen by both processes.
struct notice {
  std::atomic<unsigned> beat{0};
  std::atomic<bool> finished{false};
  char step[256] = "";
};

}  // namespace

supervised supervise(double patience_seconds, const std::function<int(const announce&)>& body) {
  void* place = mmap(nullptr, sizeof(notice), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int words = memfd_create("stderr", 0);
  if (place == MAP_FAILED || words < 0)
    throw std::runtime_error("the system has no memory for a second process");
  auto* shared = new (place) notice;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("the system gives no second process");
  if (child == 0) {
    dup2(words, STDERR_FILENO);
    std::signal(SIGINT, SIG_DFL);
    const int code = body([&](const std::string& step) {
      std::strncpy(shared->step, step.c_str(), sizeof shared->step - 1);
      ++shared->beat;
    });
    std::fflush(nullptr);
    shared->finished = true;
    _exit(code);
  }
  supervised result;
  using clock = std::chrono::steady_clock;
  auto since = clock::now();
  unsigned beat = 0;
  int status = 0;
  for (;;) {
    if (waitpid(child, &status, WNOHANG) == child) break;
    if (shared->beat != beat) {
      beat = shared->beat;
      since = clock::now();
    }
    if (std::chrono::duration<double>(clock::now() - since).count() > patience_seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      result.how = supervised::end::endless;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (result.how != supervised::end::endless && !shared->finished) result.how = supervised::end::crashed;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  result.signal = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "the program ended early";
  result.step = shared->step;
  char piece[4096];
  lseek(words, 0, SEEK_SET);
  for (ssize_t n; (n = read(words, piece, sizeof piece)) > 0;) result.last_words.append(piece, n);
  close(words);
  munmap(place, sizeof(notice));
  return result;
}

}  // namespace softmax::workbook
