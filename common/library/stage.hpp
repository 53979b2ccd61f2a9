#pragma once
// The kernels of one stage, as the library calls them.
#include "numerics/shape.hpp"
#include "simt/simt.hpp"
#include "softmax.hpp"

namespace softmax::library {

void run_05(const void* x, void* y, float* workspace, const matrix_shape& s, dtype type, simt::stream queue);
void run_06(const void* x, void* y, float* workspace, const matrix_shape& s, dtype type, simt::stream queue);
void run_07(const void* x, void* y, float* workspace, const matrix_shape& s, dtype type, simt::stream queue);

}  // namespace softmax::library
