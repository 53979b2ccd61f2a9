#pragma once
/// @file
/// Datasheet facts about the GPUs that the simulator can stand for and that a report compares with.
#include <cstddef>
#include <string>
#include <vector>

namespace softmax {

/// One GPU. Sizes in bytes; "multiprocessor" is NVIDIA's SM and AMD's compute unit.
struct gpu_facts {
  std::string key;  ///< for --gpu
  std::string name;  ///< as on the datasheet
  std::string match;  ///< the name that the driver reports, whole: variants differ in memory
  int multiprocessors = 0;  ///< on the GPU, or on one die where a program sees one
  int warp_size = 0;  ///< lanes: 32 or 64
  int threads_per_multiprocessor = 0;  ///< that can be resident
  int blocks_per_multiprocessor = 0;  ///< that can be resident
  std::size_t shared_per_multiprocessor = 0;  ///< of all its blocks
  std::size_t shared_per_block = 0;  ///< with opt-in where the GPU asks for it
  int registers_per_multiprocessor = 0;  ///< of 32 bits
  int cluster_blocks = 0;  ///< blocks of a cluster, at most; 0: no clusters
  std::size_t l2 = 0;  ///< of the GPU, or of one die
  double peak_bytes_per_second = 0;  ///< of device memory
  std::string source;  ///< where these numbers stand
};

/// All GPUs; the first is the default of --gpu.
const std::vector<gpu_facts>& gpu_table();
/// By key; nullptr if unknown.
const gpu_facts* find_gpu(const std::string& key);
/// By the name that a driver reports; nullptr if the table does not have it.
const gpu_facts* match_gpu(const std::string& driver_name);

}  // namespace softmax
