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
constexpr int most = 16;  // blocks of a cluster, as on an H100

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
  __shared__ simt::transaction_barrier arrived[2];
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  if (threadIdx.x == 0) {
    for (simt::transaction_barrier& b : arrived) simt::barrier_init(b, 1);
    simt::barrier_publish();
  }
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  float total = 0.0f;
  for (int n = 0; n < rounds; ++n) {
    const int turn = n % 2;
    if (threadIdx.x == 0) simt::barrier_arrive_expect(arrived[turn], 8 * blocks);
    if (static_cast<int>(threadIdx.x) < blocks)
      simt::send_pair(&share[turn][2 * rank], arrived[turn], threadIdx.x,
                      in[blockIdx.x] + static_cast<float>(n), 1.0f);
    simt::barrier_wait(arrived[turn], n / 2 % 2);
    for (int k = 0; k < blocks; ++k) total += share[turn][2 * k];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

/// Doubles chunks that one warp loads and the others free, through a ring of two.
__global__ void double_by_chunks(const float* in, float* out, int chunks) {
  constexpr int slots = 2, width = 128;
  alignas(16) __shared__ float ring[slots][width];
  __shared__ simt::transaction_barrier full[slots], empty[slots];
  const int workers = blockDim.x / 2;
  if (threadIdx.x == 0) {
    for (int k = 0; k < slots; ++k) {
      simt::barrier_init(full[k], 1);
      simt::barrier_init(empty[k], workers);
    }
    simt::barrier_publish();
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= workers) {
    if (static_cast<int>(threadIdx.x) > workers) return;
    for (int q = 0; q < chunks; ++q) {
      simt::barrier_wait(empty[q % slots], q / slots % 2 ^ 1);
      simt::barrier_arrive_expect(full[q % slots], width * 4);
      simt::copy_chunk(ring[q % slots], in + q * width, width * 4, full[q % slots]);
    }
    return;
  }
  for (int q = 0; q < chunks; ++q) {
    simt::barrier_wait(full[q % slots], q / slots % 2);
    for (int i = static_cast<int>(threadIdx.x); i < width; i += workers)
      out[q * width + i] = 2.0f * ring[q % slots][i];
    simt::barrier_arrive(empty[q % slots]);
  }
}

/// A round of __syncthreads and one of a transaction barrier in turn, and each orders what comes before it.
__global__ void reverses_twice(float* p) {
  __shared__ float a[64], b[64];
  __shared__ simt::transaction_barrier written;
  const int t = threadIdx.x;
  if (t == 0) simt::barrier_init(written, 64);
  __syncthreads();
  a[t] = p[t];
  simt::barrier_arrive(written);
  simt::barrier_wait(written, 0);
  b[t] = a[63 - t];
  __syncthreads();
  p[t] = b[63 - t] + 1.0f;
}

/// The barrier of the cluster orders global memory too.
__global__ void passes_through_global(float* between, float* out) {
  if (threadIdx.x == 0) between[blockIdx.x] = static_cast<float>(blockIdx.x);
  simt::cluster_arrive();
  simt::cluster_wait();
  const unsigned first = simt::cluster_id() * simt::cluster_blocks();
  if (threadIdx.x == 0) out[blockIdx.x] = between[first + (blockIdx.x + 1 - first) % simt::cluster_blocks()];
}

/// Each block gives its number to the next, for several rounds; who reads arrives again only when it has.
__global__ void passes_on(float* out, int rounds) {
  alignas(8) __shared__ float share[2];
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  float total = 0.0f;
  for (int n = 0; n < rounds; ++n) {
    simt::cluster_arrive();
    simt::cluster_wait();
    if (threadIdx.x == 0) simt::store_pair(share, (rank + 1) % blocks, static_cast<float>(rank + n), 0.0f);
    simt::cluster_arrive();
    simt::cluster_wait();
    total += share[0];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// --- the same, wrong

/// What a kernel of one chunk begins with.
__device__ void begin(simt::transaction_barrier& full, int arrivals = 1) {
  if (threadIdx.x == 0) {
    simt::barrier_init(full, arrivals);
    simt::barrier_publish();
  }
  __syncthreads();
}

__global__ void greets_once(float* out) {
  alignas(8) __shared__ float share[2];
  float total = 0.0f;
  simt::cluster_arrive();
  simt::cluster_wait();
  for (int n = 0; n < 3; ++n) {
    if (threadIdx.x == 0)
      simt::store_pair(share, 1 - simt::cluster_rank(), static_cast<float>(n), 0.0f);  // FAULT greets_once
    simt::cluster_arrive();
    simt::cluster_wait();
    total += share[0];  // FAULT reads_what_may_be_next
  }
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

__global__ void never_greets(float* out) {
  alignas(8) __shared__ float share[2];
  if (threadIdx.x == 0) simt::store_pair(share, 1 - simt::cluster_rank(), 1.0f, 0.0f);  // FAULT never_greets
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];
}

__global__ void names_a_third_block() {
  alignas(8) __shared__ float share[2];
  simt::cluster_arrive();
  simt::cluster_wait();
  simt::store_pair(share, 2, 1.0f, 0.0f);  // FAULT names_a_third_block
}

__global__ void stores_from_a_local() {
  alignas(8) float share[2];
  simt::store_pair(share, 0, 1.0f, 0.0f);  // FAULT stores_from_a_local
}

__global__ void stores_between_pairs() {
  alignas(8) __shared__ float share[4];
  simt::store_pair(share + 1, 0, 1.0f, 0.0f);  // FAULT stores_between_pairs
}

__global__ void reads_before_bytes(const float* in, float* out) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x == 0) {
    simt::barrier_arrive_expect(full, 128);
    simt::copy_chunk(chunk, in, 128, full);
  }
  __syncthreads();
  out[threadIdx.x] = chunk[threadIdx.x % 32];  // FAULT reads_before_bytes
}

__global__ void copies_too_early(const float* in, float* out) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x == 0) {
    simt::barrier_arrive_expect(full, 128);
    simt::copy_chunk(chunk, in, 128, full);
  }
  simt::barrier_wait(full, 0);
  if (threadIdx.x == 0) {
    simt::barrier_arrive_expect(full, 128);
    simt::copy_chunk(chunk, in + 32, 128, full);  // the others have not read the first
  }
  simt::sync_warp();
  out[threadIdx.x] = chunk[threadIdx.x % 32];  // FAULT copies_too_early
  simt::barrier_wait(full, 1);
}

__global__ void leaves_a_copy(const float* in) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 128);
  simt::copy_chunk(chunk, in, 128, full);  // FAULT leaves_a_copy
}

__global__ void expects_too_much(float* out) {
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x == 0) simt::barrier_arrive_expect(full, 8);
  simt::barrier_wait(full, 0);  // FAULT expects_too_much
  out[threadIdx.x] = 1.0f;
}

__global__ void arrives_too_often() {
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 8);
  simt::barrier_arrive(full);  // FAULT arrives_too_often
}

__global__ void sets_up_for_nobody() {
  __shared__ simt::transaction_barrier full;
  if (threadIdx.x == 0) simt::barrier_init(full, 0);  // FAULT sets_up_for_nobody
}

__global__ void barrier_in_a_local() {
  simt::transaction_barrier full;
  simt::barrier_init(full, 1);  // FAULT barrier_in_a_local
}

__global__ void uses_at_once() {
  __shared__ simt::transaction_barrier full;
  if (threadIdx.x == 0) simt::barrier_init(full, 64);
  simt::barrier_arrive(full);  // FAULT uses_at_once
  simt::barrier_wait(full, 0);
}

__global__ void keeps_it_secret(const float* in) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  if (threadIdx.x > 0) return;
  simt::barrier_init(full, 1);
  simt::barrier_arrive_expect(full, 128);
  simt::copy_chunk(chunk, in, 128, full);  // FAULT keeps_it_secret
  simt::barrier_wait(full, 0);
}

__global__ void sends_to_whom_is_not_ready(float* out) {
  alignas(8) __shared__ float share[2];
  __shared__ simt::transaction_barrier arrived;
  if (simt::cluster_rank() == 0) begin(arrived);
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  if (simt::cluster_rank() == 0 && threadIdx.x == 0)
    simt::send_pair(share, arrived, 1, 1.0f, 2.0f);  // FAULT not_ready
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x == 0) out[blockIdx.x] = 0.0f;
}

__global__ void leaves_too_early(float* out) {
  alignas(8) __shared__ float share[2];
  __shared__ simt::transaction_barrier arrived;
  begin(arrived);
  if (threadIdx.x == 0) simt::barrier_arrive_expect(arrived, 8);
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  if (threadIdx.x == 0)
    simt::send_pair(share, arrived, 1 - simt::cluster_rank(), 1.0f, 2.0f);  // FAULT leaves_too_early
  if (simt::cluster_rank() == 0) return;
  simt::barrier_wait_cluster(arrived, 0);
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];
}

__global__ void writes_to_a_block_that_left(float* out) {
  alignas(8) __shared__ float share[2];
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x > 0) return;
  out[blockIdx.x] = 1.0f;
  if (simt::cluster_rank() == 1) simt::store_pair(share, 0, 1.0f, 2.0f);  // FAULT that_left
}

__global__ void stores_into_a_block_that_will_leave(float* out) {
  alignas(8) __shared__ float share[2];
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x > 0) return;
  out[blockIdx.x] = 1.0f;
  if (simt::cluster_rank() == 0) simt::store_pair(share, 1, 1.0f, 2.0f);  // FAULT will_leave
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

__global__ void arrives_twice() {
  if (simt::cluster_rank() == 0) {
    simt::cluster_arrive();
    simt::cluster_arrive();  // FAULT arrives_twice
  }
  simt::cluster_wait();
}

__global__ void waits_in_a_branch() {
  simt::cluster_arrive();
  if (threadIdx.x < 32) simt::cluster_wait();  // FAULT waits_in_a_branch
}

__global__ void copies_past_the_end(const float* in) {
  alignas(16) __shared__ float chunk[64];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 256);
  simt::copy_chunk(chunk, in, 256, full);  // FAULT copies_past_the_end
  simt::barrier_wait(full, 0);
}

__global__ void asks_for(const float* in, std::int64_t bytes) {
  if (threadIdx.x == 0) simt::prefetch(in, bytes);  // FAULT asks_for
}

/// When a kernel that may begin early waits for the launch before.
enum class order { waits, begins_next_first, one_waits, reads_first, never, counts_first, does_nothing };

__global__ void adds_one(const float* in, float* out, unsigned* count, order when) {
  if (when == order::does_nothing) return;
  if (when == order::counts_first) simt::fetch_increment(count);  // FAULT counts_ahead
  if (when == order::begins_next_first) simt::begin_next_launch();  // FAULT begins_next_ahead
  if (when == order::waits || when == order::begins_next_first) simt::wait_for_last_launch();
  if (when == order::one_waits) {
    if (threadIdx.x == 0) simt::wait_for_last_launch();
    __syncthreads();
  }
  const float value = in[threadIdx.x];  // FAULT reads_ahead
  if (when == order::reads_first) simt::wait_for_last_launch();
  if (when != order::never && when != order::counts_first) simt::begin_next_launch();
  out[threadIdx.x] = value + 1.0f;  // FAULT writes_ahead
}

__global__ void second_block_reads_first(float* p) {
  if (blockIdx.x == 0) simt::wait_for_last_launch();
  if (blockIdx.x == 0) p[threadIdx.x] = 2.0f;
  if (blockIdx.x == 1 && p[threadIdx.x] > 5.0f) __syncthreads();  // FAULT reads_first_in_block_1
  simt::wait_for_last_launch();
}

__global__ void counts(unsigned* count) { simt::fetch_increment(count); }

__global__ void reads_counter(unsigned* count) {
  const unsigned before = *count;  // FAULT reads_counter
  simt::wait_for_last_launch();
  if (before == 12345) *count = 0;
}

__global__ void copies_to_past_the_end(const float* in) {
  auto* chunk = simt::dynamic_shared<float>();
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 128);
  simt::copy_chunk(chunk + 4, in, 128, full);  // FAULT copies_to_past_the_end
  simt::barrier_wait(full, 0);
}

__global__ void copies_bytes(const float* in, int offset, int bytes) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 64);
  simt::copy_chunk(chunk, in + offset, bytes, full);  // FAULT copies_bytes
  simt::barrier_wait(full, 0);
}

__global__ void copies_from_shared() {
  alignas(16) __shared__ float from[32], to[32];
  __shared__ simt::transaction_barrier full;
  if (threadIdx.x < 32) from[threadIdx.x] = 1.0f;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 128);
  simt::copy_chunk(to, from, 128, full);  // FAULT copies_from_shared
  simt::barrier_wait(full, 0);
}

__global__ void sets_up_twice() {
  __shared__ simt::transaction_barrier full;
  simt::barrier_init(full, 1);  // FAULT sets_up_twice
}

__global__ void waits_for_parity_2() {
  __shared__ simt::transaction_barrier full;
  begin(full);
  simt::barrier_wait(full, 2);  // FAULT waits_for_parity_2
}

__global__ void expects_less_than_nothing() {
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x == 0) simt::barrier_arrive_expect(full, -8);  // FAULT less_than_nothing
}

__global__ void copies_onto_the_barrier(const float* in) {
  struct alignas(16) both {
    float chunk[32];
    simt::transaction_barrier full;
  };
  __shared__ both b;
  begin(b.full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(b.full, 144);
  simt::copy_chunk(b.chunk, in, 144, b.full);  // FAULT copies_onto_the_barrier
  simt::barrier_wait(b.full, 0);
}

__global__ void writes_under_way(const float* in) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x > 0) return;
  simt::barrier_arrive_expect(full, 128);
  simt::copy_chunk(chunk, in, 128, full);
  chunk[5] = 1.0f;  // FAULT writes_under_way
  simt::barrier_wait(full, 0);
}

/// The last warp copies again what the first has just read, and nothing says that it has.
__global__ void copies_what_is_read(const float* in, float* out) {
  alignas(16) __shared__ float chunk[32];
  __shared__ simt::transaction_barrier full;
  begin(full);
  if (threadIdx.x == 0) {
    simt::barrier_arrive_expect(full, 128);
    simt::copy_chunk(chunk, in, 128, full);
  }
  simt::barrier_wait(full, 0);
  if (threadIdx.x == 0) out[blockIdx.x] = chunk[1];
  if (threadIdx.x == blockDim.x - 1) {
    simt::barrier_arrive_expect(full, 128);
    simt::copy_chunk(chunk, in + 32, 128, full);  // FAULT copies_what_is_read
  }
  simt::barrier_wait(full, 1);
}

/// One barrier for every round: what is sent for the next may end this one.
__global__ void one_barrier_for_all(float* out) {
  alignas(8) __shared__ float share[2][2 * most];
  __shared__ simt::transaction_barrier arrived;
  const int blocks = simt::cluster_blocks(), rank = simt::cluster_rank();
  begin(arrived);
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  float total = 0.0f;
  for (int n = 0; n < 4; ++n) {
    if (threadIdx.x == 0) {
      simt::barrier_arrive_expect(arrived, 8 * blocks);
      for (int k = 0; k < blocks; ++k)
        simt::send_pair(&share[n % 2][2 * rank], arrived, k, static_cast<float>(n), 0.0f);
    }
    simt::barrier_wait_cluster(arrived, n % 2);
    for (int k = 0; k < blocks; ++k) total += share[n % 2][2 * k];  // FAULT one_barrier_for_all
  }
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

__global__ void a_wait_that_orders_nothing(float* out) {
  __shared__ float c[64];
  __shared__ simt::transaction_barrier never;
  begin(never, 64);
  if (threadIdx.x < 64) c[threadIdx.x] = 1.0f;
  simt::barrier_wait(never, 1);  // as a producer's first wait: nobody has arrived
  if (threadIdx.x >= 64) out[threadIdx.x - 64] = c[threadIdx.x - 64];  // FAULT orders_nothing
}

__global__ void arrives_relaxed(float* out) {
  alignas(8) __shared__ float share[2];
  simt::cluster_arrive();
  simt::cluster_wait();
  if (threadIdx.x == 0) simt::store_pair(share, 1 - simt::cluster_rank(), 1.0f, 2.0f);
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();
  if (threadIdx.x == 0) out[blockIdx.x] = share[0];  // FAULT arrives_relaxed
}

__global__ void no_set_up() {
  __shared__ simt::transaction_barrier full;
  simt::barrier_wait(full, 1);  // FAULT no_set_up
}

}  // namespace

TEST_CASE("blocks of a cluster exchange through shared memory", "[clusters]") {
  const int width = GENERATE(32, 64), blocks = GENERATE(1, 2, 3, 8, 16);
  const settings_guard guard(width, most);
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
  const settings_guard guard(width, most);
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

TEST_CASE("a launch that begins early waits for the one before it", "[early]") {
  const settings_guard guard(32, most);
  const std::vector<float> start(64, 1.0f);
  const memory<float> x(start), a(start), b(start), c(start);
  const memory<unsigned> count(std::vector<unsigned>{0});
  const simt::geometry plain(1, 64);
  const auto add = [&](const simt::geometry& g, const memory<float>& in, const memory<float>& out,
                       order when) {
    simt::launch(adds_one, g, static_cast<const float*>(in.get()), out.get(), count.get(), when);
  };
  const auto early = [&](const memory<float>& in, const memory<float>& out, order when) {
    add(plain.early(), in, out, when);
  };
  const auto refused = [&](const char* line, const char* says, const memory<float>& in,
                           const memory<float>& out, order when) {
    const simt::fault f = fault_of([&] { early(in, out, when); });
    check_fault(f, simt::fault_kind::race, "adds_one", line);
    CHECK_THAT(f.what(), Catch::Matchers::Contains(says));
  };
  const char* const not_ended = "written by the launch before, which may not have ended";
  SECTION("what it reads and writes") {
    early(x, a, order::waits);
    refused("reads_ahead", not_ended, a, b, order::never);
    early(x, a, order::waits);
    refused("reads_ahead", not_ended, a, b, order::reads_first);
    early(x, a, order::waits);
    early(a, b, order::one_waits);
    early(b, c, order::waits);
    CHECK(c.fetch() == std::vector<float>(64, 4.0f));
    early(x, a, order::waits);
    early(c, b, order::reads_first);  // what was written before the launch before
    refused("writes_ahead", "which the launch before may still use", x, b, order::never);
    refused("counts_ahead", "that the launch before may still use", x, b, order::counts_first);
  }
  SECTION("launches that do not begin early") {
    early(x, a, order::waits);
    add(plain, a, b, order::never);
    early(x, a, order::waits);
    simt::synchronize();
    early(a, b, order::reads_first);
  }
  SECTION("what the next launch counts on") {
    early(x, a, order::waits);
    early(x, b, order::waits);
    early(a, c, order::reads_first);
    refused("begins_next_ahead", "lets the next launch begin", x, b, order::begins_next_first);
    const simt::fault f = fault_of([&] { early(x, a, order::does_nothing); });
    CHECK(f.kind == simt::fault_kind::race);
    CHECK_THAT(f.what(), Catch::Matchers::Contains("the block ends and has not waited"));
  }
  SECTION("any number of host threads, and a block that overwrites what another one reads too early") {
    simt::configuration().workers = GENERATE(1, 2);
    early(x, a, order::waits);
    const simt::fault f =
        fault_of([&] { simt::launch(second_block_reads_first, simt::geometry(2, 64).early(), a.get()); });
    check_fault(f, simt::fault_kind::race, "second_block_reads_first", "reads_first_in_block_1");
    CHECK_THAT(f.what(), Catch::Matchers::Contains(not_ended));
  }
  SECTION("a counter") {
    simt::launch(counts, plain, count.get());
    const simt::fault f = fault_of([&] { simt::launch(reads_counter, plain.early(), count.get()); });
    check_fault(f, simt::fault_kind::race, "reads_counter", "reads_counter");
  }
  SECTION("many launches") {
    for (int n = 0; n < 600; ++n) {
      early(c, n % 2 ? a : b, order::reads_first);
      if (n % 100 == 99 || (n > 245 && n < 260)) {
        refused("reads_ahead", not_ended, n % 2 ? a : b, c, order::never);
        early(c, n % 2 ? a : b, order::reads_first);
      }
    }
  }
}

TEST_CASE("chunks are copied, counted and freed", "[clusters]") {
  const int width = GENERATE(32, 64), chunks = GENERATE(1, 2, 3, 9);
  const settings_guard guard(width, most);
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

TEST_CASE("barriers of both kinds order a block", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> p(ramp(64));
  simt::launch(reverses_twice, {1, 64}, p.get());
  const std::vector<float> got = p.fetch();
  for (int i = 0; i < 64; ++i) CHECK(got[i] == static_cast<float>(i + 1));
}

TEST_CASE("a place is used again once its reader has arrived", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const unsigned blocks = GENERATE(2u, 5u);
  const memory<float> out(2 * blocks);
  simt::launch_cluster(passes_on, static_cast<int>(blocks), {2 * blocks, 64}, out.get(), 4);
  const std::vector<float> got = out.fetch();
  for (unsigned b = 0; b < 2 * blocks; ++b)
    CHECK(got[b] == 4.0f * static_cast<float>((b % blocks + blocks - 1) % blocks) + 6.0f);
  CHECK(simt::records().back().barriers == 2 * blocks * 8);
  CHECK(simt::records().back().shared_store.bytes == 2 * blocks * 4 * 8);
}

TEST_CASE("each mistake with clusters and bytes is caught at its line", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> in(ramp(64), "in"), out(64, "out");
  const float* x = in.get();
  using simt::fault_kind;
  const auto check = [&](fault_kind kind, const std::string& kernel, const std::string& marker,
                         const std::string& says, auto&& run) {
    INFO(kernel);
    const simt::fault f = fault_of(run);
    check_fault(f, kind, kernel, marker);
    CHECK_THAT(f.what(), Catch::Matchers::Contains(says));
    // Who was faster makes no difference.
    CHECK(std::string(fault_of(run).what()) == f.what());
  };
  const auto alone = [&](fault_kind kind, const std::string& name, const std::string& says, auto kernel,
                         auto... a) {
    check(kind, name, name, says, [&] { simt::launch(kernel, {2, 64}, a...); });
  };
  const auto pairs = [&](fault_kind kind, const std::string& name, const std::string& marker,
                         const std::string& says, auto kernel, auto... a) {
    check(kind, name, marker, says, [&] { simt::launch_cluster(kernel, 2, {4, 64}, a...); });
  };
  pairs(fault_kind::use_after_free, "never_greets", "never_greets", "may not have begun", never_greets,
        out.get());
  pairs(fault_kind::out_of_bounds, "names_a_third_block", "names_a_third_block",
        "of block 2 of a cluster of 2 blocks", names_a_third_block);
  alone(fault_kind::out_of_bounds, "stores_from_a_local", "outside the shared memory", stores_from_a_local);
  alone(fault_kind::misaligned, "stores_between_pairs", "no multiple of 8", stores_between_pairs);
  alone(fault_kind::uninitialised, "reads_before_bytes", "has not arrived", reads_before_bytes, x, out.get());
  check(fault_kind::uninitialised, "copies_too_early", "copies_too_early", "has not arrived", [&] {
    const auto one_warp = static_cast<unsigned>(simt::configuration().warp_size);
    simt::launch(copies_too_early, {1, one_warp}, x, out.get());
  });
  alone(fault_kind::use_after_free, "leaves_a_copy", "128 bytes are on their way", leaves_a_copy, x);
  alone(fault_kind::deadlock, "expects_too_much", "0 arrivals and 8 bytes are still to come",
        expects_too_much, out.get());
  alone(fault_kind::deadlock, "arrives_too_often", "all 1 arrivals of the phase", arrives_too_often);
  alone(fault_kind::deadlock, "sets_up_for_nobody", "0 arrivals a phase", sets_up_for_nobody);
  alone(fault_kind::out_of_bounds, "barrier_in_a_local", "declare it __shared__", barrier_in_a_local);
  alone(fault_kind::uninitialised, "uses_at_once", "thread 0 sets the barrier up", uses_at_once);
  alone(fault_kind::uninitialised, "keeps_it_secret", "not published", keeps_it_secret, x);
  alone(fault_kind::out_of_bounds, "copies_past_the_end", "past the end of in", copies_past_the_end, x + 16);
  alone(fault_kind::out_of_bounds, "asks_for", "260 bytes, not all of one", asks_for, x, 260);
  alone(fault_kind::out_of_bounds, "asks_for", "8 bytes, not all of one", asks_for, x - 1, 8);
  alone(fault_kind::out_of_bounds, "asks_for", "0 bytes, not all of one", asks_for, x, 0);
  simt::launch(asks_for, {1, 64}, x, 128);
  CHECK(simt::records().back().prefetched_bytes == 128);
  CHECK(simt::records().back().global_load.bytes == 0);
  check(fault_kind::out_of_bounds, "copies_to_past_the_end", "copies_to_past_the_end",
        "outside the shared memory", [&] {
          simt::launch(copies_to_past_the_end, {1, 64, 128}, x);
        });
  alone(fault_kind::misaligned, "copies_bytes", "64 bytes from an address 4 past", copies_bytes, x, 1, 64);
  alone(fault_kind::misaligned, "copies_bytes", "copies 24 bytes", copies_bytes, x, 0, 24);
  alone(fault_kind::misaligned, "copies_bytes", "copies -16 bytes", copies_bytes, x, 0, -16);
  alone(fault_kind::host_memory, "copies_from_shared", "copies a chunk that is in no device buffer",
        copies_from_shared);
  alone(fault_kind::deadlock, "sets_up_twice", "that thread 0 has set up", sets_up_twice);
  alone(fault_kind::deadlock, "waits_for_parity_2", "parity 2, and a phase has", waits_for_parity_2);
  check(fault_kind::deadlock, "expects_less_than_nothing", "less_than_nothing", "expects -8 bytes", [&] {
    simt::launch(expects_less_than_nothing, {1, 64});
  });
  alone(fault_kind::out_of_bounds, "copies_onto_the_barrier", "144 bytes onto a barrier",
        copies_onto_the_barrier, x);
  alone(fault_kind::uninitialised, "no_set_up", "was not set up", no_set_up);
  pairs(fault_kind::uninitialised, "sends_to_whom_is_not_ready", "not_ready",
        "block 1 of the cluster has not set up", sends_to_whom_is_not_ready, out.get());
  pairs(fault_kind::use_after_free, "leaves_too_early", "leaves_too_early", "8 bytes are on their way",
        leaves_too_early, out.get());
  pairs(fault_kind::use_after_free, "writes_to_a_block_that_left", "that_left", "may have left the kernel",
        writes_to_a_block_that_left, out.get());
  pairs(fault_kind::use_after_free, "stores_into_a_block_that_will_leave", "will_leave",
        "has left the kernel", stores_into_a_block_that_will_leave, out.get());
  pairs(fault_kind::uninitialised, "reads_before_the_cluster_met", "cluster_met", "written that place",
        reads_before_the_cluster_met, out.get());
  pairs(fault_kind::deadlock, "waits_without_arriving", "without_arriving",
        "not all of their threads have arrived", waits_without_arriving);
  pairs(fault_kind::divergent_barrier, "arrives_twice", "arrives_twice", "again before it has waited",
        arrives_twice);
  pairs(fault_kind::divergent_barrier, "waits_in_a_branch", "waits_in_a_branch",
        "reached by 32 of 64 threads", waits_in_a_branch);
  // And after all that, the simulator still runs.
  simt::launch_cluster(sum_over_cluster, 2, {2, 32}, x, out.get());
  CHECK(out.fetch()[0] == 32.0f + 0.0f + 10000.0f);
}

TEST_CASE("what is not ordered by what was waited for is a race", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> in(ramp(64)), out(64);
  const float* x = in.get();
  const auto race_at = [&](const std::string& marker, auto&& run) {
    const simt::fault f = fault_of(run);
    INFO(f.what());
    CHECK(f.kind == simt::fault_kind::race);
    CHECK((f.line == line_of(this_file, marker) || f.other_line == line_of(this_file, marker)));
  };
  race_at("writes_under_way", [&] { simt::launch(writes_under_way, {1, 64}, x); });
  race_at("copies_what_is_read", [&] { simt::launch(copies_what_is_read, {1, 128}, x, out.get()); });
  race_at("orders_nothing", [&] { simt::launch(a_wait_that_orders_nothing, {1, 128}, out.get()); });
  race_at("arrives_relaxed", [&] { simt::launch_cluster(arrives_relaxed, 2, {2, 64}, out.get()); });
}

TEST_CASE("messages of two rounds need two barriers", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> out(6);
  const simt::fault f = fault_of([&] { simt::launch_cluster(one_barrier_for_all, 3, {3, 64}, out.get()); });
  INFO(f.what());
  CHECK((f.kind == simt::fault_kind::uninitialised || f.kind == simt::fault_kind::deadlock));
}

TEST_CASE("the barrier of a cluster orders global memory, within the cluster", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> between(8), out(8);
  simt::launch_cluster(passes_through_global, 4, {8, 64}, between.get(), out.get());
  const std::vector<float> got = out.fetch();
  for (int b = 0; b < 8; ++b) CHECK(got[b] == static_cast<float>(b / 4 * 4 + (b + 1) % 4));
}

TEST_CASE("nothing is watched or counted where it was asked not to be", "[clusters]") {
  const settings_guard guard(32, most);
  simt::configuration().check = false;
  const memory<float> in(256), doubled(256), out(256);
  simt::launch(double_by_chunks, {1, 64}, static_cast<const float*>(in.get()), doubled.get(), 2);
  simt::launch(double_by_chunks, {1, 64}, static_cast<const float*>(doubled.get()), out.get(), 2);
  CHECK(simt::records().back().global_load.bytes == 0);
}

TEST_CASE("a store that may come before a read of the round before is a race", "[clusters]") {
  const settings_guard guard(GENERATE(32, 64), most);
  const memory<float> out(4);
  const simt::fault f = fault_of([&] { simt::launch_cluster(greets_once, 2, {4, 64}, out.get()); });
  INFO(f.what());
  CHECK(f.kind == simt::fault_kind::race);
  CHECK_THAT(f.what(), Catch::Matchers::Contains("ordered by its barrier alone"));
  CHECK((f.file == this_file && f.other_file == this_file));
  const std::set<int> lines{f.line, f.other_line};
  CHECK(lines ==
        std::set<int>{line_of(this_file, "greets_once"), line_of(this_file, "reads_what_may_be_next")});
}

TEST_CASE("clusters that no GPU takes are refused", "[clusters]") {
  const settings_guard guard(32, most);
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
  CHECK_THAT(refused(17, 17),
             Catch::Matchers::Contains("clusters of 17 blocks, and this GPU has at most 16"));
  CHECK_THAT(refused(2, 3), Catch::Matchers::Contains("a grid of 3 blocks is no multiple of clusters of 2"));
  simt::configuration().cluster_blocks = 0;
  CHECK_THAT(refused(2, 2), Catch::Matchers::Contains("this GPU has no clusters"));
}
