// Clusters in the simulator: blocks that exchange through each other's shared memory, barriers that count
// bytes, and each way to get them wrong, at its line. Compiled like a kernel file, so its kernels are
// watched.
#include <set>
#include <vector>

#include "catch.hpp"
#include "kernels/block.cuh"
#include "simt/async.hpp"
#include "simt/simt.hpp"
#include "simulator_fixture.hpp"

namespace {

const char* const this_file = "tests/cluster_test.cpp";
constexpr int most = 16;

/// Clusters of 16 blocks, as on an H100.
class cluster_guard : settings_guard {
 public:
  explicit cluster_guard(int warp_size) : settings_guard(warp_size) {
    simt::configuration().cluster_blocks = most;
  }
};

void check_fault(const simt::fault& f, simt::fault_kind kind, const std::string& kernel,
                 const std::string& marker) {
  check_fault_in(this_file, f, kind, kernel, marker);
}

/// Each block gives its rank and its sum to all; the first thread of each adds them up.
__global__ void sum_over_cluster(const float* in, float* out) {
  __shared__ float share[2 * most];
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  simt::cluster_arrive();
  simt::cluster_wait();
  const float mine = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (static_cast<int>(threadIdx.x) < blocks) simt::store_pair(&share[2 * rank], threadIdx.x, mine, 1.0f);
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x > 0) return;
  float total = 0.0f;
  for (int k = 0; k < blocks; ++k) total += share[2 * k] * share[2 * k + 1];
  out[blockIdx.x] = total + 1000.0f * simt::cluster_id() + 10000.0f * simt::cluster_count();
}

/// The same by messages: nobody waits but for the bytes. `rounds` times, with two sets of places in turn.
__global__ void sum_by_messages(const float* in, float* out, int rounds) {
  alignas(8) __shared__ float share[2][2 * most];
  __shared__ simt::byte_barrier arrived[2];
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  if (threadIdx.x == 0) {
    for (simt::byte_barrier& b : arrived) simt::set_up(b, 1);
    simt::publish_barriers();
  }
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  float total = 0.0f;
  for (int n = 0; n < rounds; ++n) {
    const int turn = n % 2;
    if (threadIdx.x == 0) simt::expect(arrived[turn], 8 * blocks);
    if (static_cast<int>(threadIdx.x) < blocks)
      simt::send_pair(&share[turn][2 * rank], arrived[turn], threadIdx.x,
                      in[blockIdx.x] + static_cast<float>(n), 1.0f);
    simt::wait(arrived[turn], n / 2 % 2);
    for (int k = 0; k < blocks; ++k) total += share[turn][2 * k];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

/// Doubles chunks that one warp loads and the others free, through a ring of two.
__global__ void double_by_chunks(const float* in, float* out, int chunks) {
  constexpr int slots = 2, width = 128;
  alignas(16) __shared__ float ring[slots][width];
  __shared__ simt::byte_barrier full[slots], empty[slots];
  const int workers = blockDim.x / 2;
  if (threadIdx.x == 0) {
    for (int k = 0; k < slots; ++k) {
      simt::set_up(full[k], 1);
      simt::set_up(empty[k], workers);
    }
    simt::publish_barriers();
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= workers) {
    if (static_cast<int>(threadIdx.x) > workers) return;
    for (int q = 0; q < chunks; ++q) {
      simt::wait(empty[q % slots], q / slots % 2 ^ 1);
      simt::expect(full[q % slots], width * 4);
      simt::copy_chunk(ring[q % slots], in + q * width, width * 4, full[q % slots]);
    }
    return;
  }
  for (int q = 0; q < chunks; ++q) {
    simt::wait(full[q % slots], q / slots % 2);
    for (int i = static_cast<int>(threadIdx.x); i < width; i += workers)
      out[q * width + i] = 2.0f * ring[q % slots][i];
    simt::arrive(empty[q % slots]);
  }
}

// --- the same, wrong

__global__ void reads_before_bytes(const float* in, float* out) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::byte_barrier full;
  if (threadIdx.x == 0) {
    simt::set_up(full, 1);
    simt::expect(full, 128);
    simt::copy_chunk(chunk, in, 128, full);
  }
  __syncthreads();
  out[threadIdx.x] = chunk[threadIdx.x % 32];  // FAULT reads_before_bytes
}

__global__ void frees_too_early(const float* in, float* out) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::byte_barrier full;
  if (threadIdx.x == 0) {
    simt::set_up(full, 1);
    simt::expect(full, 128);
    simt::copy_chunk(chunk, in, 128, full);
  }
  __syncthreads();
  simt::wait(full, 0);
  if (threadIdx.x == 0) {
    simt::expect(full, 128);
    simt::copy_chunk(chunk, in + 32, 128, full);  // the others have not read the first
  }
  simt::sync_warp();
  out[threadIdx.x] = chunk[threadIdx.x % 32];  // FAULT frees_too_early
  simt::wait(full, 1);
}

__global__ void expects_too_much(float* out) {
  __shared__ simt::byte_barrier full;
  if (threadIdx.x == 0) {
    simt::set_up(full, 1);
    simt::expect(full, 8);
  }
  __syncthreads();
  simt::wait(full, 0);  // FAULT expects_too_much
  out[threadIdx.x] = 1.0f;
}

__global__ void arrives_too_often() {
  __shared__ simt::byte_barrier full;
  if (threadIdx.x == 0) {
    simt::set_up(full, 1);
    simt::expect(full, 8);
    simt::arrive(full);  // FAULT arrives_too_often
  }
}

__global__ void sends_without_greeting(float* out) {
  alignas(8) __shared__ float share[2];
  __shared__ simt::byte_barrier arrived;
  if (threadIdx.x == 0) {
    simt::set_up(arrived, 1);
    simt::expect(arrived, 8);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    simt::send_pair(share, arrived, 1 - simt::cluster_rank(), 1.0f, 2.0f);  // FAULT sends_without_greeting
  simt::wait(arrived, 0);
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];
}

__global__ void leaves_too_early(float* out) {
  alignas(8) __shared__ float share[2];
  __shared__ simt::byte_barrier arrived;
  if (threadIdx.x == 0) {
    simt::set_up(arrived, 1);
    simt::expect(arrived, 8);
  }
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  if (threadIdx.x == 0)
    simt::send_pair(share, arrived, 1 - simt::cluster_rank(), 1.0f, 2.0f);  // FAULT leaves_too_early
  if (simt::cluster_rank() == 0) return;
  simt::wait(arrived, 0);
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];
}

__global__ void writes_to_a_block_that_left(float* out) {
  alignas(8) __shared__ float share[2];
  if (simt::cluster_rank() == 1 && threadIdx.x == 0)
    simt::store_pair(share, 0, 1.0f, 2.0f);  // FAULT that_left
  if (threadIdx.x == 0) out[blockIdx.x] = 1.0f;
}

__global__ void reads_before_the_cluster_met(float* out) {
  alignas(8) __shared__ float share[2];
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x == 0) simt::store_pair(share, 1 - simt::cluster_rank(), 1.0f, 2.0f);
  simt::cluster_arrive();
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];  // FAULT cluster_met
  simt::cluster_wait();
}

__global__ void waits_without_arriving() {
  if (simt::cluster_rank() == 0) simt::cluster_arrive();
  simt::cluster_wait();  // FAULT without_arriving
}

__global__ void waits_in_a_branch() {
  simt::cluster_arrive();
  if (threadIdx.x < 32) simt::cluster_wait();  // FAULT waits_in_a_branch
}

__global__ void copies_past_the_end(const float* in) {
  alignas(16) __shared__ float chunk[64];
  __shared__ simt::byte_barrier full;
  if (threadIdx.x > 0) return;
  simt::set_up(full, 1);
  simt::expect(full, 256);
  simt::copy_chunk(chunk, in, 256, full);  // FAULT copies_past_the_end
  simt::wait(full, 0);
}

__global__ void copies_from_anywhere(const float* in) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::byte_barrier full;
  if (threadIdx.x > 0) return;
  simt::set_up(full, 1);
  simt::expect(full, 64);
  simt::copy_chunk(chunk, in + 1, 64, full);  // FAULT copies_from_anywhere
  simt::wait(full, 0);
}

__global__ void no_set_up() {
  __shared__ simt::byte_barrier full;
  simt::wait(full, 1);  // FAULT no_set_up
}

}  // namespace

TEST_CASE("blocks of a cluster exchange through shared memory", "[clusters]") {
  const int width = GENERATE(32, 64), blocks = GENERATE(1, 2, 3, 8, 16);
  const cluster_guard guard(width);
  const int clusters = 5, grid = clusters * blocks, threads = 64;
  const memory<float> in(ramp(static_cast<std::size_t>(grid * threads))), out(static_cast<std::size_t>(grid));
  simt::launch_cluster(sum_over_cluster, blocks, {static_cast<unsigned>(grid), threads},
                       static_cast<const float*>(in.get()), out.get());
  const std::vector<float> got = out.fetch();
  for (int b = 0; b < grid; ++b) {
    float want = 1000.0f * static_cast<float>(b / blocks) + 10000.0f * clusters;
    for (int k = 0; k < blocks; ++k)  // thread `rank` of each block sent its own element to this block
      want += static_cast<float>((b / blocks * blocks + k) * threads + b % blocks);
    CHECK(got[b] == want);
  }
}

TEST_CASE("messages carry their own barrier", "[clusters]") {
  const int width = GENERATE(32, 64), blocks = GENERATE(1, 2, 16), rounds = GENERATE(1, 2, 7);
  const cluster_guard guard(width);
  const int grid = 3 * blocks;
  const memory<float> in(ramp(static_cast<std::size_t>(grid))), out(static_cast<std::size_t>(grid));
  simt::launch_cluster(sum_by_messages, blocks, {static_cast<unsigned>(grid), 64},
                       static_cast<const float*>(in.get()), out.get(), rounds);
  const std::vector<float> got = out.fetch();
  for (int b = 0; b < grid; ++b) {
    float want = 0.0f;
    for (int n = 0; n < rounds; ++n)
      for (int k = 0; k < blocks; ++k) want += static_cast<float>(b / blocks * blocks + k + n);
    CHECK(got[b] == want);
  }
}

TEST_CASE("chunks are copied, counted and freed", "[clusters]") {
  const int width = GENERATE(32, 64), chunks = GENERATE(1, 2, 3, 9);
  const cluster_guard guard(width);
  const auto elements = static_cast<std::size_t>(chunks) * 128;
  const memory<float> in(ramp(elements)), out(elements);
  simt::launch(double_by_chunks, {1, static_cast<unsigned>(2 * width)}, static_cast<const float*>(in.get()),
               out.get(), chunks);
  const std::vector<float> got = out.fetch();
  for (std::size_t i = 0; i < elements; ++i) CHECK(got[i] == 2.0f * static_cast<float>(i));
  const simt::traffic& loads = simt::records().back().global_load;
  CHECK(loads.bytes == elements * 4);
  CHECK(loads.sectors == elements / 8);
  CHECK(loads.requests == static_cast<std::uint64_t>(chunks));
}

TEST_CASE("each mistake with clusters and bytes is caught at its line", "[clusters]") {
  const cluster_guard guard(GENERATE(32, 64));
  const memory<float> in(ramp(64), "in"), out(64, "out");
  const float* x = in.get();
  using simt::fault_kind;
  const auto check = [&](fault_kind kind, const std::string& kernel, const std::string& marker, auto&& run) {
    INFO(kernel);
    check_fault(fault_of(run), kind, kernel, marker);
  };
  check(fault_kind::uninitialised, "reads_before_bytes", "reads_before_bytes", [&] {
    simt::launch(reads_before_bytes, {1, 64}, x, out.get());
  });
  check(fault_kind::uninitialised, "frees_too_early", "frees_too_early", [&] {
    simt::launch(frees_too_early, {1, 64}, x, out.get());
  });
  check(fault_kind::deadlock, "expects_too_much", "expects_too_much", [&] {
    simt::launch(expects_too_much, {2, 64}, out.get());
  });
  check(fault_kind::deadlock, "arrives_too_often", "arrives_too_often", [&] {
    simt::launch(arrives_too_often, {1, 64});
  });
  check(fault_kind::uninitialised, "sends_without_greeting", "sends_without_greeting", [&] {
    simt::launch_cluster(sends_without_greeting, 2, {4, 64}, out.get());
  });
  check(fault_kind::use_after_free, "leaves_too_early", "leaves_too_early", [&] {
    simt::launch_cluster(leaves_too_early, 2, {4, 64}, out.get());
  });
  check(fault_kind::use_after_free, "writes_to_a_block_that_left", "that_left", [&] {
    simt::launch_cluster(writes_to_a_block_that_left, 2, {2, 64}, out.get());
  });
  check(fault_kind::uninitialised, "reads_before_the_cluster_met", "cluster_met", [&] {
    simt::launch_cluster(reads_before_the_cluster_met, 2, {2, 64}, out.get());
  });
  check(fault_kind::deadlock, "waits_without_arriving", "without_arriving", [&] {
    simt::launch_cluster(waits_without_arriving, 2, {2, 64});
  });
  check(fault_kind::divergent_barrier, "waits_in_a_branch", "waits_in_a_branch", [&] {
    simt::launch_cluster(waits_in_a_branch, 2, {2, 64});
  });
  check(fault_kind::out_of_bounds, "copies_past_the_end", "copies_past_the_end", [&] {
    simt::launch(copies_past_the_end, {1, 64}, x + 16);
  });
  check(fault_kind::misaligned, "copies_from_anywhere", "copies_from_anywhere", [&] {
    simt::launch(copies_from_anywhere, {1, 64}, x);
  });
  check(fault_kind::uninitialised, "no_set_up", "no_set_up", [&] { simt::launch(no_set_up, {1, 64}); });
  // And after all that, the simulator still runs.
  simt::launch_cluster(sum_over_cluster, 2, {2, 32}, x, out.get());
  CHECK(out.fetch()[0] == 32.0f + 0.0f + 10000.0f);
}

TEST_CASE("clusters that no GPU takes are refused", "[clusters]") {
  const cluster_guard guard(32);
  const memory<float> in(ramp(64)), out(64);
  const auto refused = [&](int blocks, unsigned grid) {
    try {
      simt::launch_cluster(sum_over_cluster, blocks, {grid, 32}, static_cast<const float*>(in.get()),
                           out.get());
    } catch (const simt::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused(17, 17).find("clusters of 17 blocks") != std::string::npos);
  CHECK(refused(2, 3).find("no GPU takes") != std::string::npos);
  simt::configuration().cluster_blocks = 0;
  CHECK_FALSE(refused(2, 2).empty());
}
