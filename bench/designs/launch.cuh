#pragma once
/// @file
/// Launches that only designs need. For CUDA alone.
#include <type_traits>

#include "simt/simt.hpp"

namespace softmax {
namespace {

/// How many clusters of `parts` blocks of `threads` threads and `bytes` of dynamic shared memory the GPU
/// holds at once. The kernel is allowed as much, as it will be when it is launched.
template <class... P>
std::int64_t clusters_that_fit(void (*kernel)(P...), int parts, int threads, std::size_t bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  simt::allow_shared(function, bytes);
  SIMT_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchAttribute attribute = simt::cluster_attribute(parts);
  cudaLaunchConfig_t c = simt::launch_configuration(
      {static_cast<unsigned>(parts), static_cast<unsigned>(threads), bytes, nullptr});
  c.attrs = &attribute;
  c.numAttrs = 1;
  int clusters = 0;
  SIMT_CHECK(cudaOccupancyMaxActiveClusters(&clusters, function, &c));
  return clusters;
}

}  // namespace
}  // namespace softmax
