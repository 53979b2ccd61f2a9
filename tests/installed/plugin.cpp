// What a program may load while it runs.
#include <softmax.hpp>

extern "C" void softmax_of_rows(const float* x, float* y, std::int64_t rows, std::int64_t cols,
                                void* stream) {
  softmax::softmax(x, y, rows, cols, cols, cols, softmax::dtype::f32, stream);
}
