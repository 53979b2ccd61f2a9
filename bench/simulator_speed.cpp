// How fast the simulator runs a stage: seconds of one launch, with and without checks, on one and more host
// threads. Prints one JSON object; simulator_speed.py calls it.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "harness/backend.hpp"
#include "harness/stage_memory.hpp"
#include "numerics/input.hpp"
#include "simt/sim/control.hpp"

int main(int argc, char** argv) {
  using namespace softmax;
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 2048,
                     cols = argc > 2 ? std::atoll(argv[2]) : 1024;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 7;
  const auto backends = make_backends();
  backend& machine = *backends.back();  // the simulator
  (void)machine.open(0);
  const matrix_shape s{rows, cols, cols, cols};
  const host_matrix x = make_input("normal", 1, dtype::f32, rows, cols, cols);
  std::string results;
  struct mode {
    const char* name;
    bool check, by_line;
  };
  for (const mode m :
       {mode{"no check", false, false}, mode{"check", true, false}, mode{"by line", true, true}})
    for (const int threads : {1, 2}) {
      simt::configuration().check = m.check;
      simt::configuration().by_line = m.by_line;
      simt::configuration().workers = threads;
      stage_memory memory(machine, this_stage(), x, s);
      std::string seconds, cpu_seconds;
      for (int i = 0; i < repeats; ++i) {
        memory.poison();
        simt::clear_records();
        const std::clock_t cpu_begin = std::clock();
        const auto begin = std::chrono::steady_clock::now();
        machine.run(memory.call());
        const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
        seconds += fmt::format("{}{:.6f}", i > 0 ? ", " : "", wall.count());
        cpu_seconds += fmt::format("{}{:.6f}", i > 0 ? ", " : "",
                                   static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC);
      }
      results +=
          fmt::format("{}{{\"mode\": \"{}\", \"threads\": {}, \"seconds\": [{}], \"cpu_seconds\": [{}]}}",
                      results.empty() ? "" : ", ", m.name, threads, seconds, cpu_seconds);
    }
  fmt::print("{{\"stage\": \"{}\", \"rows\": {}, \"cols\": {}, \"runs\": [{}]}}\n", this_stage().number, rows,
             cols, results);
}
