// The backends of this program: which of them were compiled is known to the build alone.
#include "harness/backend.hpp"

namespace softmax {

#ifdef SOFTMAX_WITH_CUDA
std::unique_ptr<backend> make_cuda_backend();
#endif
#ifdef SOFTMAX_WITH_HIP
std::unique_ptr<backend> make_hip_backend();
#endif
std::unique_ptr<backend> make_sim_backend();

std::vector<std::unique_ptr<backend>> make_backends() {
  std::vector<std::unique_ptr<backend>> all;
#ifdef SOFTMAX_WITH_CUDA
  all.push_back(make_cuda_backend());
#endif
#ifdef SOFTMAX_WITH_HIP
  all.push_back(make_hip_backend());
#endif
  all.push_back(make_sim_backend());
  return all;
}

}  // namespace softmax
