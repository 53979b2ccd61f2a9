#pragma once
// The faster of stages 06 and 07 at the shapes that were measured on an NVIDIA H200.
// Written by bench/dispatch.py from bench/results/h200 and h200-between; do not edit.
#include <cstdint>

namespace softmax::library {

/// The faster stage at one shape.
struct measured_choice {
  bool four_bytes;  ///< f32, or else a 16-bit type
  std::int64_t rows;  ///< M
  std::int64_t cols;  ///< N
  int stage;  ///< 6 or 7
};

/// All shapes at which both were timed.

// clang-format off
inline constexpr measured_choice measured_sm_90[] = {
    {false, 1, 1024, 7},
    {false, 1, 32768, 7},
    {false, 8, 4096, 6},
    {false, 8, 32000, 7},
    {false, 128, 32000, 6},
    {false, 132, 32768, 6},
    {false, 512, 1024, 6},
    {false, 1823, 781, 6},
    {false, 4096, 781, 6},
    {false, 8192, 32768, 7},
    {false, 16384, 16384, 6},
    {false, 32768, 8192, 6},
    {false, 65536, 4096, 6},
    {false, 131072, 2048, 6},
    {false, 262144, 1024, 6},
    {false, 268435, 1000, 6},
    {false, 343707, 781, 6},
    {false, 524288, 512, 6},
    {false, 1048576, 256, 6},
    {false, 2097152, 128, 6},
    {false, 8388608, 32, 6},
    {true, 1, 1024, 6},
    {true, 1, 32768, 7},
    {true, 8, 4096, 6},
    {true, 8, 32000, 7},
    {true, 128, 32000, 7},
    {true, 132, 32768, 7},
    {true, 512, 1024, 6},
    {true, 1823, 781, 6},
    {true, 4096, 781, 6},
    {true, 8192, 32768, 7},
    {true, 16384, 16384, 6},
    {true, 32768, 8192, 7},
    {true, 65536, 4096, 7},
    {true, 131072, 2048, 6},
    {true, 262144, 1024, 6},
    {true, 268435, 1000, 6},
    {true, 343707, 781, 6},
    {true, 524288, 512, 6},
    {true, 1048576, 256, 6},
    {true, 2097152, 128, 6},
    {true, 8388608, 32, 6},
};
// clang-format on

}  // namespace softmax::library
