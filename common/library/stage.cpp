// One stage's kernel file, compiled for one backend, behind the name that stage.hpp gives it.
#include "library/stage.hpp"

#include "kernel.cuh"

namespace softmax::library {

void SOFTMAX_LIBRARY_RUN(const void* x, void* y, float* workspace, const matrix_shape& s, dtype type,
                         simt::stream queue) {
  simt::with_warp_size([&](auto width) {
    const auto run = [&](auto element) {
      using T = decltype(element);
      softmax<width()>(static_cast<const T*>(x), static_cast<T*>(y), workspace, s, queue);
    };
    if (type == dtype::f32) run(float());
    if (type == dtype::f16) run(simt::half());
    if (type == dtype::bf16) run(simt::bfloat16());
  });
}

}  // namespace softmax::library
