#pragma once
/// @file
// clang-format off
/// The one header a kernel includes. CUDA and HIP spell most of the language alike (`__global__`, `threadIdx`,
/// `__shared__`, `__syncthreads`), and kernels use that spelling directly. This layer wraps only what differs,
/// with the same names in the same order in each backend file: `diff cuda.hpp hip.hpp` is a porting guide.
/// What waits for data in place of threads, on sm_90 alone, is in simt/async.hpp.
///
/// | host                                                      | device                                   |
/// |-----------------------------------------------------------|------------------------------------------|
/// | `status` `success` `describe` `advice` `check`            | `half` `bfloat16`                        |
/// | `allocate` `release` `copy_to_device` `copy_to_host`      | `shuffle` `shuffle_xor` `shuffle_down`   |
/// | `copy_on_device` `zero` `poison` `synchronize`            | `sync_warp` `dynamic_shared`             |
/// | `stream` `create_stream` `destroy_stream`                 | `vector16` `load_vector` `store_vector`  |
/// | `geometry` `launch` `with_warp_size`                      | `unpack_pair` `pack_pair` `larger_pair` `exp2` |
/// | `most_cluster_blocks` `launch_cluster`                    | `cluster_id` `cluster_count`             |
/// | `query_devices` `find_device` `free_memory`               | `cluster_blocks` `cluster_rank`          |
/// | `resident_clusters` `stopwatch` `recording`               | `cluster_arrive` `cluster_wait` `store_pair` `fetch_increment` |
// clang-format on
#include "simt/device.hpp"
#include "simt/error.hpp"

#if defined(SIMT_BACKEND_CUDA)
#include "simt/cuda.hpp"
#elif defined(SIMT_BACKEND_HIP)
#include "simt/hip.hpp"
#elif defined(SIMT_BACKEND_SIM)
#include "simt/sim.hpp"
#else
#error \
    "define one of SIMT_BACKEND_CUDA, SIMT_BACKEND_HIP or SIMT_BACKEND_SIM: they say for which machine this file is compiled"
#endif
