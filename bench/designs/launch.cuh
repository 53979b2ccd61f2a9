#pragma once
/// @file
/// Launches that only designs need.
#include <type_traits>

#include "simt/simt.hpp"

namespace softmax {
namespace {

/// How many clusters of `parts` blocks of `threads` threads and `bytes` of dynamic shared memory the GPU
/// holds at once. Allows the kernel as much.
template <class... P>
std::int64_t clusters_that_fit(void (*kernel)(P...), int parts, int threads, std::size_t bytes) {
  const auto* function = reinterpret_cast<const void*>(kernel);
  SIMT_CHECK(
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  SIMT_CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(parts);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(static_cast<unsigned>(parts));
  c.blockDim = dim3(static_cast<unsigned>(threads));
  c.dynamicSmemBytes = bytes;
  c.attrs = &attribute;
  c.numAttrs = 1;
  int clusters = 0;
  SIMT_CHECK(cudaOccupancyMaxActiveClusters(&clusters, function, &c));
  return clusters;
}

/// Launches a kernel that may begin before the one before it has ended; it waits by griddepcontrol.wait.
template <class... P, class... A>
void launch_early(void (*kernel)(P...), const simt::geometry& g, A... args) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c = simt::launch_configuration(g);
  c.attrs = &attribute;
  c.numAttrs = 1;
  simt::launch_checked(c, g, kernel, static_cast<P>(args)...);
}

}  // namespace
}  // namespace softmax
