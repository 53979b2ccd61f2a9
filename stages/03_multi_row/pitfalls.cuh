#pragma once
// A block for each row, however narrow: the same kernel with a share of the whole block.
#include "kernel.cuh"

namespace softmax {
namespace {

template <int WarpSize, class T>
void run_pitfall(const char*, const T* x, T* y, const matrix_shape& s, simt::stream queue) {
  launch_wide_enough<WarpSize, 1, 1>(x, y, s, queue);
}

}  // namespace
}  // namespace softmax
