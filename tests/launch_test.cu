// A launch that the GPU refuses is never silent: the error names the kernel, the reason, the line and what to
// do [T60].
#include <cstdio>
#include <string>

#include "simt/simt.hpp"

namespace {

__global__ void write_one(float* p) { *p = 1.0f; }

/// What a launch says; empty if it went through.
std::string refusal(const simt::geometry& g) {
  try {
    simt::launch(write_one, g, static_cast<float*>(nullptr));
  } catch (const simt::error& e) {
    return e.what();
  }
  return "";
}

int failures = 0;

void expect(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  std::printf("%s: '%s' in: %s\n", found ? "ok" : "FAILED", part.c_str(), text.c_str());
  failures += !found;
}

}  // namespace

int main() {
  try {
    simt::find_device(0);
  } catch (const simt::no_device& problem) {
    std::printf("SKIP: %s\n", problem.what());
    return 77;
  }
  for (const simt::geometry& g :
       {simt::geometry(1, 2048), simt::geometry(1, 32, 1 << 30), simt::geometry(dim3(1, 65536), 32)}) {
    const std::string text = refusal(g);
    expect(text, "write_one");
    expect(text, "tests/launch_test.cu:");
    expect(text, "cudaErrorInvalid");
  }
  // The refused launch leaves no error behind that a later call would report.
  SIMT_CHECK(simt::synchronize());
  // An error that the caller has not looked at yet is not the launch's, and stays for the caller.
  float* p = nullptr;
  SIMT_CHECK(cudaMalloc(&p, sizeof(float)));
  void* none = nullptr;
  const simt::status earlier = cudaMalloc(&none, std::size_t{1} << 60);
  simt::launch(write_one, {1, 1}, p);
  const bool kept = cudaGetLastError() == earlier && earlier != simt::success;
  std::printf("%s: an earlier error stays for the caller\n", kept ? "ok" : "FAILED");
  failures += !kept;
  SIMT_CHECK(simt::synchronize());
  SIMT_CHECK(cudaFree(p));
  return failures == 0 ? 0 : 1;
}
