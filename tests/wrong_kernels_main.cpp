// Launches kernels of wrong_kernels/ by name and ends, for a tool that watches: bench/wrong_kernels_gpu.py.
// Compiled once for the simulator, which says what it found as a line of JSON, and once for a GPU.
#include <cstdio>
#include <cstring>

#include "wrong_kernels/cases.cuh"

#ifdef SIMT_BACKEND_SIM
#include "harness/advice.hpp"
#endif

namespace {

const char usage[] =
    "usage: %s NAME_wrong|NAME_right ...\n"
    "       %s --list     name, what the simulator finds, the tool that should see it on a GPU, twin (yes,\n"
    "                     no), launched on a GPU (yes, no), why a tool may not see it; with tabs between\n";

void list() {
  for (const wrong_case& c : wrong_cases)
    std::printf("%s\t%s\t%s\t%s\t%s\t%s\n", c.name, c.kind, c.tool, c.right ? "yes" : "no",
                c.on_gpu ? "yes" : "no", c.why);
}

/// The launch that a name such as "off_by_one_wrong" stands for; false if it stands for none.
bool find(const std::string& name, const wrong_case*& found, bool& right) {
  for (const wrong_case& c : wrong_cases) {
    right = name == c.name + std::string("_right");
    found = &c;
    if (name == c.name + std::string("_wrong") || (right && c.right)) return true;
  }
  return false;
}

void run(const wrong_case& c, bool right) {
  trial t(c);
  right ? t.right() : t.wrong();
  SIMT_CHECK(simt::synchronize());
}

#ifdef SIMT_BACKEND_SIM

/// Of what is right and slow, the line that costs most of those that the profile has something to say about.
void print_advice(const simt::launch_record& r) {
  const simt::line_record* worst = nullptr;
  for (const auto& l : r.lines)
    if (softmax::advise(l).what != softmax::line_fault::none &&
        (!worst || softmax::cost_of(l) > softmax::cost_of(*worst)))
      worst = &l;
  std::printf("\"kind\": \"%s\", \"lines\": [",
              worst ? softmax::to_string(softmax::advise(*worst).what) : "");
  if (worst) std::printf("%d", worst->line);
  std::printf("]");
  for (const auto& [name, t] :
       {std::pair("global_load", r.global_load), std::pair("global_store", r.global_store)})
    std::printf(", \"%s\": {\"requests\": %llu, \"sectors\": %llu}", name,
                static_cast<unsigned long long>(t.requests), static_cast<unsigned long long>(t.sectors));
  for (const auto& [name, t] :
       {std::pair("shared_load", r.shared_load), std::pair("shared_store", r.shared_store)})
    std::printf(", \"%s\": {\"requests\": %llu, \"wavefronts\": %llu, \"bank_conflicts\": %llu}", name,
                static_cast<unsigned long long>(t.requests), static_cast<unsigned long long>(t.wavefronts),
                static_cast<unsigned long long>(t.bank_conflicts));
}

void report(const std::string& name, const wrong_case& c, bool right) {
  simt::configuration().by_line = true;
  std::printf("{\"kernel\": \"%s\", ", name.c_str());
  try {
    run(c, right);
    if (std::strcmp(c.tool, "ncu") == 0)
      print_advice(simt::records().back());
    else
      std::printf("\"kind\": \"\", \"lines\": []");
  } catch (const simt::fault& f) {
    std::printf("\"kind\": \"%s\", \"lines\": [%d", simt::to_string(f.kind), f.line);
    if (f.other_line && f.other_line != f.line) std::printf(", %d", f.other_line);
    std::printf("]");
  }
  std::printf("}\n");
}

#else

/// The GPU may follow pointers of the host by itself, and then a host pointer is no fault.
void report(const std::string& name, const wrong_case& c, bool right) {
  int follows = 0;
#ifdef SIMT_BACKEND_CUDA
  SIMT_CHECK(cudaDeviceGetAttribute(&follows, cudaDevAttrPageableMemoryAccess, 0));
#endif
  std::printf("%s: launched; this GPU reads the host's memory: %s\n", name.c_str(), follows ? "yes" : "no");
  std::fflush(stdout);  // the launch may end the program
  run(c, right);
}

#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list();
    return 0;
  }
  const wrong_case* c = nullptr;
  bool right = false;
  for (int i = 1; i < argc; ++i)
    if (!find(argv[i], c, right)) {
      std::fprintf(stderr, "%s: there is no kernel %s: --list prints the names.\n", argv[0], argv[i]);
      return 2;
    }
  if (argc < 2) {
    std::fprintf(stderr, usage, argv[0], argv[0]);
    return 2;
  }
  try {
    simt::find_device(0);
    for (int i = 1; i < argc; ++i) {
      find(argv[i], c, right);
      report(argv[i], *c, right);
    }
  } catch (const simt::no_device& problem) {
    std::printf("SKIP: %s\n", problem.what());
    return 77;
  } catch (const simt::error& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
  return 0;
}
