#pragma once
// The faster of stages 06 and 07 at the shapes that were measured on an NVIDIA H200.
// Written by bench/dispatch.py from bench/results/h200; do not edit.
#include <cstdint>

namespace softmax::library {

struct measured_choice {
  bool four_bytes;  // f32, or else a 16-bit type
  std::int64_t rows, cols;
  int stage;
};

inline constexpr measured_choice measured_sm_90[] = {
    {true, 8, 4096, 6},
};

}  // namespace softmax::library
