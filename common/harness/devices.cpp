#include "harness/devices.hpp"

namespace softmax {

namespace {
constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
const std::string cuda_limits =
    "; limits per multiprocessor: CUDA C++ Programming Guide, compute capabilities table";
}  // namespace

const std::vector<gpu_facts>& gpu_table() {
  static const std::vector<gpu_facts> all = {
      {.key = "h200",
       .name = "NVIDIA H200 SXM",
       .match = "NVIDIA H200",
       .multiprocessors = 132,
       .warp_size = 32,
       .threads_per_multiprocessor = 2048,
       .blocks_per_multiprocessor = 32,
       .shared_per_multiprocessor = 228 * kib,
       .shared_per_block = 227 * kib,
       .registers_per_multiprocessor = 65536,
       .cluster_blocks = 16,
       .l2 = 60 * mib,
       .peak_bytes_per_second = 4.8e12,
       .source = "NVIDIA H200 datasheet; L2 as its driver reports it (bench/results)" + cuda_limits},
      {.key = "a100",
       .name = "NVIDIA A100 80GB SXM",
       .match = "NVIDIA A100-SXM4-80GB",
       .multiprocessors = 108,
       .warp_size = 32,
       .threads_per_multiprocessor = 2048,
       .blocks_per_multiprocessor = 32,
       .shared_per_multiprocessor = 164 * kib,
       .shared_per_block = 163 * kib,
       .registers_per_multiprocessor = 65536,
       .l2 = 40 * mib,
       .peak_bytes_per_second = 2.039e12,
       .source = "NVIDIA A100 80GB datasheet; A100 architecture whitepaper" + cuda_limits},
      {.key = "rtx4090",
       .name = "NVIDIA GeForce RTX 4090",
       .match = "NVIDIA GeForce RTX 4090",
       .multiprocessors = 128,
       .warp_size = 32,
       .threads_per_multiprocessor = 1536,
       .blocks_per_multiprocessor = 24,
       .shared_per_multiprocessor = 100 * kib,
       .shared_per_block = 99 * kib,
       .registers_per_multiprocessor = 65536,
       .l2 = 72 * mib,
       .peak_bytes_per_second = 1.008e12,
       .source = "NVIDIA Ada GPU architecture whitepaper, appendix A" + cuda_limits},
      {.key = "mi250x",
       .name = "AMD Instinct MI250X, one of its two dies",
       .match = "AMD Instinct MI250X",
       .multiprocessors = 110,
       .warp_size = 64,
       .threads_per_multiprocessor = 2048,
       .blocks_per_multiprocessor = 32,
       .shared_per_multiprocessor = 64 * kib,
       .shared_per_block = 64 * kib,
       .registers_per_multiprocessor = 131072,
       .l2 = 8 * mib,
       .peak_bytes_per_second = 1.6384e12,
       .source = "AMD Instinct MI250X datasheet; CDNA 2 architecture whitepaper"},
      {.key = "mi300x",
       .name = "AMD Instinct MI300X",
       .match = "AMD Instinct MI300X",
       .multiprocessors = 304,
       .warp_size = 64,
       .threads_per_multiprocessor = 2048,
       .blocks_per_multiprocessor = 32,
       .shared_per_multiprocessor = 64 * kib,
       .shared_per_block = 64 * kib,
       .registers_per_multiprocessor = 131072,
       .l2 = 32 * mib,
       .peak_bytes_per_second = 5.3e12,
       .source =
           "AMD Instinct MI300X datasheet; CDNA 3 architecture whitepaper (L2: 4 MiB on each of 8 dies)"},
  };
  return all;
}

const gpu_facts* find_gpu(const std::string& key) {
  for (const gpu_facts& g : gpu_table())
    if (g.key == key) return &g;
  return nullptr;
}

const gpu_facts* match_gpu(const std::string& driver_name) {
  for (const gpu_facts& g : gpu_table())
    if (driver_name == g.match) return &g;
  return nullptr;
}

}  // namespace softmax
