// Runs the contract of one stage on the backend named in SOFTMAX_TEST_BACKEND. Where there is no such device
// it says SKIP and exits with 77, which CTest shows as skipped, never as passed. SOFTMAX_TEST_CLUSTERS=16
// gives the simulated device clusters of 16 blocks.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "catch.hpp"
#include "simt/error.hpp"
#include "simt/sim/control.hpp"
#include "test_backend.hpp"

namespace {

constexpr int skipped = 77;

struct under_test {
  std::vector<std::unique_ptr<softmax::backend>> all = softmax::make_backends();
  softmax::backend* machine = nullptr;
  simt::device device;
};

under_test& state() {
  static under_test s;
  return s;
}

}  // namespace

softmax::backend& test_machine() { return *state().machine; }
const simt::device& test_device() { return state().device; }

int main(int argc, char** argv) {
  const char* wanted = std::getenv("SOFTMAX_TEST_BACKEND");
  const std::string name = wanted ? wanted : "sim";
  for (auto& b : state().all)
    if (b->name() == name) state().machine = b.get();
  if (!state().machine) {
    std::printf("SKIP: this program was built without the backend %s\n", name.c_str());
    return skipped;
  }
  if (const char* blocks = std::getenv("SOFTMAX_TEST_CLUSTERS"))
    simt::configuration().cluster_blocks = std::atoi(blocks);
  try {
    state().device = state().machine->open(0);
  } catch (const simt::no_device& problem) {
    std::printf("SKIP: %s\n", problem.what());
    return skipped;
  }
  std::printf("backend %s, %s\n", name.c_str(), state().device.name.c_str());
  return run_tests(argc, argv);
}
