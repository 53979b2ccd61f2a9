// The softmax of a matrix of 4 x 1000 numbers, with the installed library. Ends with 77 where there is no
// GPU.
#include <softmax.hpp>

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <vector>
#if defined(EXAMPLE_CUDA)
#include <cuda_runtime_api.h>
#endif

int main() {
  const softmax::softmax_problem matrix{4, 1000, 1000, 1000, softmax::dtype::f32};
  const std::size_t bytes = matrix.rows * matrix.cols * sizeof(float);
#if defined(EXAMPLE_CUDA)
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("there is no GPU to run on");
    return 77;
  }
  void *x = nullptr, *y = nullptr;
  if (cudaMalloc(&x, bytes) != cudaSuccess || cudaMalloc(&y, bytes) != cudaSuccess) {
    std::puts("no device memory");
    return 1;
  }
  std::vector<float> values(matrix.rows * matrix.cols);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 37);
  cudaMemcpy(x, values.data(), bytes, cudaMemcpyHostToDevice);
  softmax::softmax(x, y, matrix, nullptr);
  if (cudaMemcpy(values.data(), y, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  cudaFree(x);
  cudaFree(y);
  for (int row = 0; row < matrix.rows; ++row) {
    double sum = 0;
    for (int col = 0; col < matrix.cols; ++col) sum += values[row * matrix.cols + col];
    std::printf("row %d adds up to %.6f\n", row, sum);
    if (!(std::fabs(sum - 1) < 1e-5)) return 1;
  }
#else
  try {
    const auto address = [](std::uintptr_t a) { return reinterpret_cast<void*>(a); };
    const softmax::softmax_plan plan =
        softmax::plan_softmax(address(1 << 20), address((1 << 20) + bytes), matrix);
    std::printf("stage %s: %s\n", plan.stage.c_str(), plan.why.c_str());
  } catch (const std::runtime_error& problem) {  // of the device
    std::printf("there is no GPU to run on: %s\n", problem.what());
    return 77;
  }
#endif
  return 0;
}
