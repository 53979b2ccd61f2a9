#pragma once
// NVIDIA's cuDNN in the place of a stage, so that it is checked and timed as a stage is. The library is
// loaded at run time: neither building nor running the workbook needs it. Its accurate softmax subtracts the
// maximum; the mode (SOFTMAX_CUDNN_MODE: instance or channel) picks one of its two kernels. API:
// https://docs.nvidia.com/deeplearning/cudnn/backend/v9.10.2/api/cudnn-ops-library.html
#include <string>

#include "numerics/shape.hpp"
#include "simt/simt.hpp"

#if defined(SIMT_BACKEND_CUDA)
#include <dlfcn.h>
#endif

namespace softmax {
namespace {

#if defined(SIMT_BACKEND_CUDA)

/// The functions of cuDNN that are called, as cudnn.h declares them.
class cudnn_library {
 public:
  cudnn_library() {
    for (const char* name : {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"})
      if (!library_) library_ = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library_)
      throw simt::error(
          "cuDNN was not found: install it, or add the folder of libcudnn.so.9 to LD_LIBRARY_PATH.");
    find(create, "cudnnCreate");
    find(set_stream, "cudnnSetStream");
    find(create_tensor, "cudnnCreateTensorDescriptor");
    find(set_tensor, "cudnnSetTensor4dDescriptorEx");
    find(softmax_forward, "cudnnSoftmaxForward");
    check(create(&handle), "cudnnCreate");
    check(create_tensor(&x), "cudnnCreateTensorDescriptor");
    check(create_tensor(&y), "cudnnCreateTensorDescriptor");
  }

  static void check(int status, const char* call) {
    if (status != 0)
      throw simt::error(std::string(call) + " failed with status " + std::to_string(status) +
                        ": this shape or type is beyond cuDNN, or it does not fit this driver.");
  }

  int (*create)(void**) = nullptr;
  int (*set_stream)(void*, cudaStream_t) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*set_tensor)(void*, int, int, int, int, int, int, int, int, int) = nullptr;
  int (*softmax_forward)(void*, int, int, const void*, const void*, const void*, const void*, const void*,
                         void*) = nullptr;
  void* handle = nullptr;
  void *x = nullptr, *y = nullptr;  // tensor descriptors

 private:
  template <class F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    if (!function)
      throw simt::error(std::string(name) + " is not in the cuDNN that was found: use version 8 or 9.");
  }
  void* library_ = nullptr;
};

template <class T>
constexpr int cudnn_type() {
  return std::is_same_v<T, float> ? 0 : std::is_same_v<T, simt::half> ? 2 : 9;  // cudnnDataType_t
}

/// y = softmax of each row of x, rows without padding. Rows are N of the tensor, columns its channels.
template <int WarpSize, class T>
void softmax(const T* x, T* y, float*, const matrix_shape& s, simt::stream queue) {
  if (s.rows == 0 || s.cols == 0) return;
  if (s.rows > INT32_MAX || s.cols > INT32_MAX || s.rows * s.cols > INT32_MAX)
    throw simt::error("cuDNN counts elements in 32 bits: use fewer rows or columns.");
  static cudnn_library cudnn;
  constexpr int accurate = 1;  // cudnnSoftmaxAlgorithm_t
  const int rows = static_cast<int>(s.rows), cols = static_cast<int>(s.cols);
  const int ld_in = static_cast<int>(s.ld_in), ld_out = static_cast<int>(s.ld_out);
  const float one = 1.0f, zero = 0.0f;
  cudnn.check(cudnn.set_stream(cudnn.handle, queue), "cudnnSetStream");
  cudnn.check(cudnn.set_tensor(cudnn.x, cudnn_type<T>(), rows, cols, 1, 1, ld_in, 1, 1, 1),
              "cudnnSetTensor4dDescriptorEx");
  cudnn.check(cudnn.set_tensor(cudnn.y, cudnn_type<T>(), rows, cols, 1, 1, ld_out, 1, 1, 1),
              "cudnnSetTensor4dDescriptorEx");
  cudnn.check(
      cudnn.softmax_forward(cudnn.handle, accurate, SOFTMAX_CUDNN_MODE, &one, cudnn.x, x, &zero, cudnn.y, y),
      "cudnnSoftmaxForward");
}

#else

template <int WarpSize, class T>
void softmax(const T*, T*, float*, const matrix_shape&, simt::stream) {
  throw simt::error("cuDNN runs on NVIDIA GPUs only: use --device cuda.");
}

#endif

}  // namespace
}  // namespace softmax
