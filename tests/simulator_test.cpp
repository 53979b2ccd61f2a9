// The simulator's own tests: each fault is caught at its line and the right twin passes, counts are exact,
// and shuffles and barriers do what a GPU's do. This file is compiled like a kernel file, so its kernels are
// watched.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <set>
#include <vector>

#include "catch.hpp"
#include "kernels/block.cuh"
#include "simt/simt.hpp"
#include "simulator_fixture.hpp"
#include "source_line.hpp"

namespace {

// --- kernels with one fault each, and their right twins
// -------------------------------------------------------------

__global__ void add_one(float* p, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] += 1.0f;
}

__global__ void past_the_end(float* p, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= n) p[i] = 1.0f;  // FAULT past_the_end
}

__global__ void before_the_start(const float* p, float* out) {
  out[threadIdx.x] = p[static_cast<int>(threadIdx.x) - 1];  // FAULT before_the_start
}

__global__ void copy_values(const float* p, float* out) {
  out[threadIdx.x] = p[threadIdx.x];  // FAULT copy_values
}

__global__ void shared_unwritten(float* out) {
  __shared__ float partial[64];
  if (threadIdx.x % 2 == 0) partial[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = partial[threadIdx.x];  // FAULT shared_unwritten
}

__global__ void shared_written(float* out) {
  __shared__ float partial[64];
  partial[threadIdx.x] = 1.0f;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = partial[63 - threadIdx.x];
}

__global__ void dynamic_past_the_end(float* out) {
  float* tile = simt::dynamic_shared<float>();
  tile[threadIdx.x + 1] = 1.0f;  // FAULT dynamic_past_the_end
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void dynamic_in_range(float* out) {
  float* tile = simt::dynamic_shared<float>();
  tile[threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

typedef float four_floats __attribute__((vector_size(16)));

__global__ void vector_copy(const float* p, float* out) {
  const auto* from = reinterpret_cast<const four_floats*>(p);
  auto* to = reinterpret_cast<four_floats*>(out);
  to[threadIdx.x] = from[threadIdx.x];  // FAULT vector_copy
}

__global__ void barrier_in_branch(float* out, int n) {
  if (static_cast<int>(threadIdx.x) < n) {
    out[threadIdx.x] = 1.0f;
    __syncthreads();  // FAULT barrier_in_branch
  }
}

__global__ void early_return(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();  // FAULT early_return
  out[threadIdx.x] = 1.0f;
}

__global__ void two_barriers(float* out) {
  if (threadIdx.x < 32)
    __syncthreads();  // FAULT two_barriers
  else
    __syncthreads();
  out[threadIdx.x] = 1.0f;
}

template <int WarpSize>
__global__ void shuffle_after_return(float* out, int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  out[threadIdx.x] = simt::shuffle_xor<WarpSize>(1.0f, 1);  // FAULT shuffle_after_return
}

template <int WarpSize>
__global__ void shuffles_in_branches(float* out) {
  float v = 1.0f;
  if (threadIdx.x % 2 == 0)
    v = simt::shuffle_xor<WarpSize>(v, 2);  // FAULT shuffles_in_branches
  else
    v = simt::shuffle_xor<WarpSize>(v, 4);
  out[threadIdx.x] = v;
}

template <int WarpSize>
__global__ void warp_sum(const float* in, float* out) {
  float v = in[threadIdx.x];
  for (int mask = WarpSize / 2; mask > 0; mask /= 2)
    v += simt::shuffle_xor<WarpSize>(v, mask);  // FAULT warp_sum
  out[threadIdx.x] = v;
}

template <int Width>
__global__ void all_shuffles(float* from_lane, float* exclusive_or, float* down, int operand) {
  const auto lane = static_cast<float>(threadIdx.x);
  from_lane[threadIdx.x] = simt::shuffle<Width>(lane, operand);
  exclusive_or[threadIdx.x] = simt::shuffle_xor<Width>(lane, operand);
  down[threadIdx.x] = simt::shuffle_down<Width>(lane, operand);
}

__global__ void every_block_faults(float* p, int n) {
  p[n + blockIdx.x] = 1.0f;  // FAULT every_block_faults
}

__global__ void strided_copy(const float* in, float* out, int stride, int offset) {
  out[threadIdx.x * stride + offset] = in[threadIdx.x * stride + offset];
}

__global__ void one_for_all(const float* in, float* out, int place) { out[threadIdx.x] = in[place]; }

/// Lane l reads the words Words * Stride * l of shared memory and the ones behind it in one access.
template <class T, int Stride>
__global__ void shared_stride(float* out) {
  constexpr int words = sizeof(T) / 4;
  float* tile = simt::dynamic_shared<float>();
  for (int i = threadIdx.x; i < 64 * words * (Stride + 1); i += static_cast<int>(blockDim.x)) tile[i] = 1.0f;
  __syncthreads();
  const T v = reinterpret_cast<const T*>(tile)[threadIdx.x * Stride];
  __syncthreads();
  reinterpret_cast<T*>(tile)[threadIdx.x * Stride] = v;
  out[threadIdx.x] = 1.0f;
}

__global__ void read_by_one_barrier(float* out) {
  __shared__ float held;
  if (threadIdx.x == 0) held = 1.0f;
  __syncthreads();
  out[threadIdx.x] = held;
}

__device__ float told_by_one(const float* p) {
  __shared__ float value;
  __syncthreads();
  if (threadIdx.x == 0) value = *p;
  __syncthreads();
  return value;
}

/// The thread that takes both branches must not get a copy of the loads between them.
__global__ void told_twice(const float* in, float* out) {
  const float first = told_by_one(in), second = told_by_one(in + 1);
  out[threadIdx.x] = first + second;
}

/// Neighbouring halves of one word belong to two threads.
__global__ void halves_of_words(unsigned short* out) {
  __shared__ unsigned short held[128];
  __shared__ unsigned char small[128];
  held[threadIdx.x] = static_cast<unsigned short>(threadIdx.x);
  small[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);
  out[threadIdx.x] = static_cast<unsigned short>(held[threadIdx.x] + small[threadIdx.x]);
  held[threadIdx.x] = out[threadIdx.x];
}

/// Every lane reads what all wrote, once by barrier and once, within the warp, by shuffle.
template <int WarpSize>
__global__ void ordered_by_shuffle(float* out) {
  __shared__ float held[128];
  for (int turn = 0; turn < 3; ++turn) {
    held[threadIdx.x] = 1.0f;
    simt::shuffle_xor<WarpSize>(1.0f, 1);
    out[threadIdx.x] = held[threadIdx.x ^ 1];
    simt::sync_warp();
  }
  __syncthreads();
  out[threadIdx.x] = held[127 - threadIdx.x];
}

/// The reader is of the writer's warp, and then of another: one of the two is ordered.
template <int WarpSize>
__global__ void read_by_two_warps(float* out) {
  __shared__ float held;
  if (threadIdx.x == 0) held = 1.0f;
  __syncthreads();
  out[threadIdx.x] = held;  // FAULT read_by_two_warps other
  simt::sync_warp();
  if (threadIdx.x == blockDim.x - 1) held = 2.0f;  // FAULT read_by_two_warps
}

/// Some blocks write what block `reader` reads.
__global__ void one_block_reads(float* p, float* out, unsigned reader) {
  if (blockIdx.x == reader)
    out[threadIdx.x] = p[64 + threadIdx.x];  // FAULT one_block_reads reads
  else
    p[64 * blockIdx.x + threadIdx.x] = 1.0f;  // FAULT one_block_reads writes
}

__global__ void masked_rows(const float* in, float* out, int cols) {
  for (int start = 0; start < cols; start += static_cast<int>(blockDim.x)) {
    const int col = start + static_cast<int>(threadIdx.x);
    if (col < cols) out[blockIdx.x * cols + col] = in[blockIdx.x * cols + col];
  }
}

__global__ void three_dimensions(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

__attribute__((noinline)) float load_from(const float* p) { return *p; }

__global__ void one_load_for_two_spaces(const float* in, float* out) {
  __shared__ float held[64];
  held[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = load_from(threadIdx.x % 2 ? in + threadIdx.x : held + threadIdx.x);
}

__global__ void shuffle_of_64(float* out) {
  out[threadIdx.x] = simt::shuffle_xor<64>(1.0f, 32);  // FAULT shuffle_of_64
}

__global__ void misaligned_shared(float* out) {
  __shared__ float held[4 * 64 + 4];
  for (int i = 0; i < 4; ++i) held[64 * i + threadIdx.x] = 0.0f;
  if (threadIdx.x < 4) held[256 + threadIdx.x] = 0.0f;
  __syncthreads();
  const four_floats v =
      *reinterpret_cast<const four_floats*>(held + 4 * threadIdx.x + 1);  // FAULT misaligned_shared
  out[threadIdx.x] = v[0];
}

struct three_floats {
  float x, y, z;
};
__global__ void copy_structures(const three_floats* in, three_floats* out) {
  out[threadIdx.x] = in[threadIdx.x];
}

float host_array[64] = {1.0f};
__global__ void read_host_array(float* out) {
  out[threadIdx.x] = host_array[threadIdx.x];  // FAULT read_host_array
}

__global__ void read_table(float* out) {
  static const float table[4] = {1, 2, 3, 4};
  out[threadIdx.x] = table[threadIdx.x % 4];
}

#ifndef SOFTMAX_SANITIZE
__global__ void divide_by(const int* divisor, int* out, int n) { *out = n / *divisor; }

__attribute__((noinline)) float depth(int n) {
  volatile float local[64] = {};
  local[n % 64] = 1.0f;
  return n > 0 ? depth(n - 1) + local[0] : local[1];
}
__global__ void recurse(float* out, int n) { *out = depth(n); }
#endif

__global__ void barrier_for_warps(float* out) {
  simt::sync_warp();
  out[threadIdx.x] = 1.0f;
}

const char* const this_file = "tests/simulator_test.cpp";

void check_fault(const simt::fault& f, simt::fault_kind kind, const std::string& kernel,
                 const std::string& marker) {
  check_fault_in(this_file, f, kind, kernel, marker);
}

/// Each thread gets what its group of Group neighbours adds up to, `times` times in a row.
template <class Op, int WarpSize, int Group>
__global__ void reduce_groups(const float* in, float* out, int times) {
  for (int i = 0; i < times; ++i)
    out[threadIdx.x] = softmax::group_reduce<Op, WarpSize, Group>(in[threadIdx.x] + static_cast<float>(i));
}

template <int N>
using number = std::integral_constant<int, N>;

/// Runs it over a block and compares every thread's result, and the barriers.
template <class Op, int WarpSize, int Group>
void check_groups(int threads) {
  constexpr int times = 3;
  std::vector<float> values;
  for (int t = 0; t < threads; ++t) values.push_back(static_cast<float>(t * 37 % 101 - 120));
  const memory<float> in(values), out(static_cast<std::size_t>(threads));
  simt::launch(reduce_groups<Op, WarpSize, Group>, {1, static_cast<unsigned>(threads)},
               static_cast<const float*>(in.get()), out.get(), times);
  const std::vector<float> got = out.fetch();
  for (int t = 0; t < threads; ++t) {
    float want = Op::identity();
    for (int i = t / Group * Group; i < (t / Group + 1) * Group; ++i)
      want = Op::combine(want, values[i] + static_cast<float>(times - 1));
    if (got[t] != want)
      FAIL("thread " << t << " of " << threads << " in groups of " << Group << ", warps of " << WarpSize
                     << ": got " << got[t] << " want " << want);
  }
  // Two a call: one before partial[] is written, so that the readers of the call before are done, one after.
  CHECK(simt::records().back().barriers == (Group > WarpSize ? 2 * times : 0));
}

}  // namespace

TEST_CASE("memory faults are caught at their line", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> in(ramp(64), "in"), out(64, "out");

  SECTION("one element past the end") {
    memory<float> p(ramp(60), "p");
    const auto f = fault_of([&] { simt::launch(past_the_end, {1, 64}, p.get(), 60); });
    check_fault(f, simt::fault_kind::out_of_bounds, "past_the_end", "past_the_end");
    CHECK(std::string(f.what()).find("0 bytes past the end of p (240 bytes)") != std::string::npos);
    CHECK(std::string(f.what()).find("thread (60,0,0) of block (0,0,0)") != std::string::npos);
    simt::launch(add_one, {1, 64}, p.get(), 60);
    CHECK(p.fetch()[59] == 2.0f);
  }
  SECTION("one element before the start") {
    const auto f = fault_of([&] { simt::launch(before_the_start, {1, 64}, in.get(), out.get()); });
    check_fault(f, simt::fault_kind::out_of_bounds, "before_the_start", "before_the_start");
    CHECK(std::string(f.what()).find("4 bytes before the start of in") != std::string::npos);
  }
  SECTION("use after free") {
    memory<float> gone(ramp(64), "gone");
    const float* p = gone.get();
    gone.free();
    const auto f = fault_of([&] { simt::launch(copy_values, {1, 64}, p, out.get()); });
    check_fault(f, simt::fault_kind::use_after_free, "copy_values", "copy_values");
    CHECK(std::string(f.what()).find("gone (256 bytes) has been released") != std::string::npos);
  }
  SECTION("global memory that was never written") {
    memory<float> fresh(64, "fresh");
    const auto f = fault_of([&] { simt::launch(copy_values, {1, 64}, fresh.get(), out.get()); });
    check_fault(f, simt::fault_kind::uninitialised, "copy_values", "copy_values");
    SIMT_CHECK(simt::copy_to_device(fresh.get(), ramp(64).data(), 256));
    simt::launch(copy_values, {1, 64}, fresh.get(), out.get());
    CHECK(out.fetch() == ramp(64));
    SIMT_CHECK(simt::poison(fresh.get(), 256));
    check_fault(fault_of([&] {
                  simt::launch(copy_values, {1, 64}, fresh.get(), out.get());
                }),
                simt::fault_kind::uninitialised, "copy_values", "copy_values");
  }
  SECTION("shared memory that was never written, though the block before wrote it") {
    memory<float> four(4 * 64);
    simt::launch(shared_written, {4, 64}, four.get());
    check_fault(fault_of([&] {
                  simt::launch(shared_unwritten, {1, 64}, out.get());
                }),
                simt::fault_kind::uninitialised, "shared_unwritten", "shared_unwritten");
  }
  SECTION("dynamic shared memory past its end") {
    const auto f = fault_of([&] {
      simt::launch(dynamic_past_the_end, {1, 64, 64 * sizeof(float)}, out.get());
    });
    check_fault(f, simt::fault_kind::out_of_bounds, "dynamic_past_the_end", "dynamic_past_the_end");
    simt::launch(dynamic_in_range, {1, 64, 64 * sizeof(float)}, out.get());
    CHECK(out.fetch()[0] == 63.0f);
  }
  SECTION("a null pointer") {
    const auto f = fault_of([&] { simt::launch(copy_values, {1, 64}, nullptr, out.get()); });
    check_fault(f, simt::fault_kind::host_memory, "copy_values", "copy_values");
    CHECK(std::string(f.what()).find("null") != std::string::npos);
  }
  SECTION("a host pointer") {
    const std::vector<float> host = ramp(64);
    const auto f = fault_of([&] { simt::launch(copy_values, {1, 64}, host.data(), out.get()); });
    check_fault(f, simt::fault_kind::host_memory, "copy_values", "copy_values");
  }
  SECTION("a 16-byte access at a multiple of 4") {
    memory<float> wide_in(ramp(260), "wide_in"), wide_out(256, "wide_out");
    const auto f = fault_of([&] { simt::launch(vector_copy, {1, 64}, wide_in.get() + 1, wide_out.get()); });
    check_fault(f, simt::fault_kind::misaligned, "vector_copy", "vector_copy");
    simt::launch(vector_copy, {1, 64}, wide_in.get(), wide_out.get());
    CHECK(wide_out.fetch()[255] == 255.0f);
  }
}

TEST_CASE("divergent barriers and shuffles are caught at their line", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> in(ramp(128), "in"), out(128, "out");
  const auto by_width = [&](auto launch_it) { simt::with_warp_size(launch_it); };

  SECTION("a barrier inside a branch") {
    const auto f = fault_of([&] { simt::launch(barrier_in_branch, {1, 128}, out.get(), 100); });
    check_fault(f, simt::fault_kind::divergent_barrier, "barrier_in_branch", "barrier_in_branch");
    CHECK(std::string(f.what()).find("100 of 128 threads") != std::string::npos);
    simt::launch(barrier_in_branch, {1, 128}, out.get(), 128);
  }
  SECTION("a return before a barrier") {
    const auto f = fault_of([&] { simt::launch(early_return, {1, 128}, out.get(), 20); });
    check_fault(f, simt::fault_kind::divergent_barrier, "early_return", "early_return");
    CHECK(std::string(f.what()).find("20 of 128 threads; thread 20 is the first") != std::string::npos);
  }
  SECTION("two barriers in two branches") {
    const auto f = fault_of([&] { simt::launch(two_barriers, {1, 128}, out.get()); });
    check_fault(f, simt::fault_kind::divergent_barrier, "two_barriers", "two_barriers");
  }
  SECTION("a return before a shuffle") {
    const auto f = fault_of([&] {
      by_width([&](auto w) { simt::launch(shuffle_after_return<w()>, {1, 128}, out.get(), 20); });
    });
    check_fault(f, simt::fault_kind::divergent_shuffle, "shuffle_after_return", "shuffle_after_return");
    CHECK(std::string(f.what()).find("20 of " + std::to_string(width) + " threads") != std::string::npos);
  }
  SECTION("lanes at two different shuffles") {
    const auto f = fault_of([&] {
      by_width([&](auto w) { simt::launch(shuffles_in_branches<w()>, {1, 128}, out.get()); });
    });
    check_fault(f, simt::fault_kind::divergent_shuffle, "shuffles_in_branches", "shuffles_in_branches");
  }
  SECTION("a block that is no multiple of the warp") {
    const auto f = fault_of([&] {
      by_width([&](auto w) { simt::launch(warp_sum<w()>, {1, 100}, in.get(), out.get()); });
    });
    check_fault(f, simt::fault_kind::divergent_shuffle, "warp_sum", "warp_sum");
    by_width([&](auto w) { simt::launch(warp_sum<w()>, {1, 128}, in.get(), out.get()); });
    CHECK(out.fetch()[0] == static_cast<float>(width * (width - 1) / 2));
  }
}

#ifndef SOFTMAX_SANITIZE  // where the sanitizer has the last word
TEST_CASE("a kernel that the processor stops has last words", "[simulator]") {
  const settings_guard guard(GENERATE(32, 64));
  memory<int> zero(std::vector<int>{0}), out(1);
  memory<float> deep(1);
  const auto last_words = [](auto&& run) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      simt::configuration().workers = 1;
      dup2(ends[1], STDERR_FILENO);
      run();
      _exit(0);
    }
    close(ends[1]);
    std::string text(1000, '\0');
    text.resize(std::max<ssize_t>(0, read(ends[0], text.data(), text.size())));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    return text;
  };
  const std::string division = last_words([&] {
    simt::launch(divide_by, {1, 1}, zero.get(), out.get(), 100);
  });
  CHECK(division.find("crash in kernel divide_by: thread 0 of block 0") != std::string::npos);
  CHECK(division.find("an integer division has no result") != std::string::npos);
  const std::string overflow = last_words([&] { simt::launch(recurse, {1, 1}, deep.get(), 1 << 30); });
  CHECK(overflow.find("crash in kernel recurse") != std::string::npos);
  CHECK(overflow.find("its stack overflowed") != std::string::npos);
}
#endif

TEST_CASE("of several faults, the one in the first block is reported, every time", "[simulator]") {
  const settings_guard guard(32);
  memory<float> p(ramp(8), "p");
  for (int i = 0; i < 20; ++i) {
    const auto f = fault_of([&] { simt::launch(every_block_faults, {100, 32}, p.get(), 8); });
    check_fault(f, simt::fault_kind::out_of_bounds, "every_block_faults", "every_block_faults");
    CHECK(std::string(f.what()).find("thread (0,0,0) of block (0,0,0)") != std::string::npos);
  }
}

TEST_CASE("a kernel runs as before after a fault", "[simulator]") {
  const settings_guard guard(GENERATE(32, 64));
  memory<float> out(3 * 64, "out");
  for (int i = 0; i < 50; ++i) {
    fault_of([&] { simt::launch(barrier_in_branch, {3, 64}, out.get(), 10); });
    simt::launch(shared_written, {3, 64}, out.get());
    CHECK(out.fetch()[0] == 1.0f);
  }
}

TEST_CASE("what a fault left behind is not counted in the next launch", "[simulator]") {
  const settings_guard guard(32);
  simt::configuration().workers = 1;
  memory<float> p(ramp(60), "p"), in(ramp(64)), out(64);
  simt::launch(strided_copy, {1, 32}, in.get(), out.get(), 1, 0);
  const simt::launch_record before = simt::records().back();
  fault_of([&] { simt::launch(past_the_end, {1, 64}, p.get(), 60); });
  simt::launch(strided_copy, {1, 32}, in.get(), out.get(), 1, 0);
  CHECK(simt::records().back().global_load.bytes == before.global_load.bytes);
  CHECK(simt::records().back().global_store.sectors == before.global_store.sectors);
}

TEST_CASE("one statement that serves shared and global memory is counted in both", "[simulator]") {
  const settings_guard guard(GENERATE(32, 64));
  memory<float> in(ramp(64)), out(64);
  simt::launch(one_load_for_two_spaces, {1, 64}, in.get(), out.get());
  CHECK(simt::records().back().global_load.bytes == 32 * 4);
  CHECK(simt::records().back().shared_load.bytes == 32 * 4);
}

TEST_CASE("a shuffle wider than the warp is caught", "[simulator]") {
  memory<float> out(64);
  {
    const settings_guard guard(32);
    check_fault(fault_of([&] {
                  simt::launch(shuffle_of_64, {1, 64}, out.get());
                }),
                simt::fault_kind::divergent_shuffle, "shuffle_of_64", "shuffle_of_64");
  }
  const settings_guard guard(64);
  simt::launch(shuffle_of_64, {1, 64}, out.get());
}

TEST_CASE("alignment counts in shared memory, and only where the type promises it", "[simulator]") {
  const settings_guard guard(GENERATE(32, 64));
  memory<float> out(64), triples(ramp(192)), copies(192);
  check_fault(fault_of([&] {
                simt::launch(misaligned_shared, {1, 64}, out.get());
              }),
              simt::fault_kind::misaligned, "misaligned_shared", "misaligned_shared");
  simt::launch(copy_structures, {1, 64}, reinterpret_cast<const three_floats*>(triples.get()),
               reinterpret_cast<three_floats*>(copies.get()));
  CHECK(copies.fetch() == ramp(192));
#ifndef __clang__  // which does not report copies of whole structures
  CHECK(simt::records().back().global_load.bytes == 192 * 4);
#endif
}

TEST_CASE("constants may be read, the host's variables may not", "[simulator]") {
  const settings_guard guard(32);
  memory<float> out(64);
  host_array[5] = 2.0f;
  simt::launch(read_table, {1, 64}, out.get());
  CHECK(out.fetch()[5] == 2.0f);
  check_fault(fault_of([&] {
                simt::launch(read_host_array, {1, 64}, out.get());
              }),
              simt::fault_kind::host_memory, "read_host_array", "read_host_array");
}

TEST_CASE("a warp barrier is no shuffle", "[simulator]") {
  const settings_guard guard(32);
  memory<float> out(64);
  simt::launch(barrier_for_warps, {1, 64}, out.get());
  CHECK(simt::records().back().shuffles == 0);
}

TEST_CASE("shuffles exchange what a GPU's exchange", "[simulator]") {
  const settings_guard guard(GENERATE(32, 64));
  const int n = simt::configuration().warp_size;
  memory<float> a(n), b(n), c(n);
  const int operand = GENERATE(0, 1, 2, 3, 5, 8, 31);

  const auto expect = [&](int width) {
    const auto from_lane = a.fetch(), exclusive_or = b.fetch(), down = c.fetch();
    for (int lane = 0; lane < n; ++lane) {
      const int group = lane / width * width;
      const int x = lane ^ operand, d = lane + operand;
      CHECK(from_lane[lane] == static_cast<float>(group + operand % width));
      CHECK(exclusive_or[lane] == static_cast<float>(x < group + width ? x : lane));
      CHECK(down[lane] == static_cast<float>(d < group + width ? d : lane));
    }
  };
  SECTION("over groups of 8") {
    simt::launch(all_shuffles<8>, {1, static_cast<unsigned>(n)}, a.get(), b.get(), c.get(), operand);
    expect(8);
  }
  SECTION("over groups of 32") {
    simt::launch(all_shuffles<32>, {1, static_cast<unsigned>(n)}, a.get(), b.get(), c.get(), operand);
    expect(32);
  }
}

TEST_CASE("requests and sectors are those of the access pattern", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  const auto last = [] { return simt::records().back(); };
  const std::uint64_t warps = 128 / width;
  memory<float> in(ramp(4096), "in"), out(4096, "out");

  SECTION("neighbouring floats: one request a warp, 8 lanes a sector") {
    simt::launch(strided_copy, {1, 128}, in.get(), out.get(), 1, 0);
    CHECK(last().global_load.requests == warps);
    CHECK(last().global_load.bytes == 128 * 4);
    CHECK(last().global_load.sectors == 128 * 4 / 32);
    CHECK(last().global_store.sectors == 128 * 4 / 32);
  }
  SECTION("off by one float: each warp touches one sector more") {
    simt::launch(strided_copy, {1, 128}, in.get(), out.get(), 1, 1);
    CHECK(last().global_load.requests == warps);
    CHECK(last().global_load.sectors == 128 * 4 / 32 + warps);
  }
  SECTION("every second float: twice the sectors for the same bytes") {
    simt::launch(strided_copy, {1, 128}, in.get(), out.get(), 2, 0);
    CHECK(last().global_load.bytes == 128 * 4);
    CHECK(last().global_load.sectors == 2 * 128 * 4 / 32);
  }
  SECTION("a column walk: a sector a lane") {
    simt::launch(strided_copy, {1, 128}, in.get(), out.get(), 32, 0);
    CHECK(last().global_load.sectors == 128);
  }
  SECTION("one address for all: one sector a warp, the bytes of each thread counted") {
    simt::launch(one_for_all, {1, 128}, in.get(), out.get(), 7);
    CHECK(last().global_load.requests == warps);
    CHECK(last().global_load.bytes == 128 * 4);
    CHECK(last().global_load.sectors == warps);
  }
  SECTION("16 bytes a lane: one request for four times the bytes") {
    simt::launch(vector_copy, {1, 128}, in.get(), out.get());
    CHECK(last().global_load.requests == warps);
    CHECK(last().global_load.bytes == 128 * 16);
    CHECK(last().global_load.sectors == 128 * 16 / 32);
  }
  SECTION("a masked last step costs a request only in warps with a lane in it") {
    memory<float> rows(ramp(3 * 130)), copies(3 * 130);
    simt::launch(masked_rows, {3, 128}, rows.get(), copies.get(), 130);
    CHECK(last().global_load.requests == 3 * (warps + 1));
    CHECK(last().global_load.bytes == 3 * 130 * 4);
    CHECK(copies.fetch() == ramp(3 * 130));
  }
}

TEST_CASE("wavefronts and bank conflicts are those of the access pattern", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> out(64);
  // Two warps of 32, or one of 64, which counts the same; after a first loop without conflicts.
  const auto check = [&](auto kernel, unsigned words, int stride, std::uint64_t wavefronts,
                         std::uint64_t ideal) {
    CAPTURE(words, stride);
    const unsigned count = 64 * words * static_cast<unsigned>(stride + 1);
    simt::launch(kernel, {1, 64, count * sizeof(float)}, out.get());
    const simt::launch_record& r = simt::records().back();
    CHECK(r.shared_load.wavefronts == wavefronts);
    CHECK(r.shared_load.bank_conflicts == wavefronts - ideal);
    CHECK(r.shared_store.wavefronts == wavefronts + count / 32);
    CHECK(r.shared_store.bank_conflicts == wavefronts - ideal);
    CHECK(r.shared_load.requests == 64u / width);
  };
  typedef float two_floats __attribute__((vector_size(8)));
  check(shared_stride<float, 1>, 1, 1, 2, 2);
  check(shared_stride<float, 2>, 1, 2, 4, 2);
  check(shared_stride<float, 3>, 1, 3, 2, 2);
  check(shared_stride<float, 32>, 1, 32, 64, 2);
  check(shared_stride<float, 33>, 1, 33, 2, 2);
  check(shared_stride<two_floats, 1>, 2, 1, 4, 4);  // half a warp at a time
  check(shared_stride<two_floats, 2>, 2, 2, 8, 4);
  check(shared_stride<four_floats, 1>, 4, 1, 8, 8);  // a quarter
  check(shared_stride<four_floats, 8>, 4, 8, 64, 8);

  // One word for all lanes: a broadcast.
  simt::launch(read_by_one_barrier, {1, 64}, out.get());
  CHECK(simt::records().back().shared_load.wavefronts == 2);
  CHECK(simt::records().back().shared_load.bank_conflicts == 0);
  CHECK(simt::records().back().shared_store.wavefronts == 1);

  memory<float> in(ramp(2), "in");
  simt::launch(told_twice, {1, 64}, in.get(), out.get());
  CHECK(simt::records().back().shared_load.requests == 2 * 64u / width);
  CHECK(simt::records().back().shared_store.requests == 2);
}

TEST_CASE("what is ordered, or apart, is no race", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> out(128, "out");
  memory<unsigned short> halves(128);
  simt::launch(halves_of_words, {1, 128}, halves.get());
  CHECK(halves.fetch()[100] == 200);
  simt::with_warp_size([&](auto w) { simt::launch(ordered_by_shuffle<w()>, {1, 128}, out.get()); });
  CHECK(out.fetch()[5] == 1.0f);
}

TEST_CASE("a reader in another warp is remembered beside one in the writer's", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> out(128, "out");
  const auto run = [&](unsigned threads) {
    simt::with_warp_size([&](auto w) { simt::launch(read_by_two_warps<w()>, {1, threads}, out.get()); });
  };
  run(static_cast<unsigned>(width));  // one warp: its own barrier orders the two
  const auto f = fault_of([&] { run(128); });
  CHECK(f.kind == simt::fault_kind::race);
  CHECK(f.line == line_of(this_file, "read_by_two_warps"));
  CHECK(f.other_line == line_of(this_file, "read_by_two_warps other"));
}

TEST_CASE("a race of blocks is reported the same way by any number of host threads", "[simulator]") {
  const settings_guard guard(32);
  const unsigned reader = GENERATE(0u, 3u, 99u);
  std::set<std::string> reports;
  for (int workers : {1, 2, 3, 8, 2, 3, 8}) {
    simt::configuration().workers = workers;
    memory<float> p(6400, "p"), out(64, "out");
    const auto f = fault_of([&] { simt::launch(one_block_reads, {100, 64}, p.get(), out.get(), reader); });
    CHECK(f.kind == simt::fault_kind::race);
    reports.insert(f.what());
  }
  CHECK(reports.size() == 1);
  CHECK(reports.begin()->find("block (1,0,0)") != std::string::npos);
}

TEST_CASE("barriers, shuffles and shared accesses are counted", "[simulator]") {
  const int width = GENERATE(32, 64);
  const settings_guard guard(width);
  memory<float> in(ramp(64)), out(5 * 64);

  simt::launch(shared_written, {5, 64}, out.get());
  CHECK(simt::records().back().barriers == 5);
  CHECK(simt::records().back().shared_store.requests == 5u * 64 / width);
  CHECK(simt::records().back().shared_load.bytes == 5 * 64 * 4);
  simt::with_warp_size([&](auto w) { simt::launch(warp_sum<w()>, {1, 64}, in.get(), out.get()); });
  CHECK(simt::records().back().shuffles == (width == 32 ? 2 * 5 : 6));
  CHECK(simt::records().back().kernel == "warp_sum");
  CHECK(simt::records().size() == 2);
}

TEST_CASE("counts do not depend on the number of host threads", "[simulator]") {
  const settings_guard guard(32);
  memory<float> in(ramp(1000 * 130)), out(1000 * 130);
  std::set<std::uint64_t> sectors;
  for (int workers : {1, 2, 3, 8}) {
    simt::configuration().workers = workers;
    simt::launch(masked_rows, {1000, 128}, in.get(), out.get(), 130);
    sectors.insert(simt::records().back().global_load.sectors);
  }
  CHECK(sectors.size() == 1);
}

TEST_CASE("without checks a kernel gives the same result and counts nothing", "[simulator]") {
  const settings_guard guard(32);
  simt::configuration().check = false;
  memory<float> in(ramp(3 * 130)), out(3 * 130);
  simt::launch(masked_rows, {3, 128}, in.get(), out.get(), 130);
  CHECK(out.fetch() == ramp(3 * 130));
  CHECK(simt::records().back().global_load.requests == 0);
}

TEST_CASE("a grid and a block may have three dimensions", "[simulator]") {
  const settings_guard guard(32);
  memory<unsigned> out(3 * 2 * 2 * 4 * 4 * 2);
  simt::launch(three_dimensions, {dim3(3, 2, 2), dim3(4, 4, 2)}, out.get());
  const auto values = out.fetch();
  for (unsigned i = 0; i < values.size(); ++i) CHECK(values[i] == i / 32 * 1000 + i % 32);
}

TEST_CASE("a launch is recorded with its instance, and need not run", "[simulator]") {
  const settings_guard guard(32);
  simt::launch(reduce_groups<softmax::sum, 32, 64>, {1, 64}, static_cast<const float*>(nullptr),
               static_cast<float*>(nullptr), 0);
  CHECK(simt::records().back().kernel == "reduce_groups");
  CHECK(simt::records().back().instance == "reduce_groups<softmax::sum, 32, 64>");
  simt::configuration().execute = false;
  simt::launch(shared_written, {7, 64}, static_cast<float*>(nullptr));  // it would fault
  CHECK(simt::records().size() == 2);
  CHECK(simt::records().back().grid == 7);
  CHECK(simt::records().back().global_store.requests == 0);
  CHECK_THROWS_AS(simt::launch(shared_written, {1, 2048}, static_cast<float*>(nullptr)), simt::error);
}

TEST_CASE("groups of every size are reduced, with the barriers that are promised [T41 T42 T43 T46 T50]",
          "[simulator]") {
  const auto each_block = [](auto op, auto width, auto group) {
    for (int blocks_of : {group(), 2 * group(), 1024 / group() * group()}) {
      const int threads = std::max(blocks_of, width());
      if (threads > 1024 || threads % width() != 0 || threads % group() != 0) continue;
      const settings_guard guard(width());
      check_groups<decltype(op), width(), group()>(threads);
    }
  };
  const auto each_group = [&](auto width, auto... group) {
    (each_block(softmax::sum(), width, group), ...);
    (each_block(softmax::maximum(), width, group), ...);
  };
  const auto powers = [&](auto width) {
    each_group(width, number<1>(), number<2>(), number<4>(), number<8>(), number<16>(), number<32>(),
               number<64>(), number<128>(), number<256>(), number<512>(), number<1024>());
    each_group(width, number<192>(), number<384>(), number<768>());  // whole warps, no powers of two
  };
  powers(number<32>());
  powers(number<64>());
  each_group(number<32>(), number<96>());
}

TEST_CASE("a launch that no GPU takes is refused with the reason", "[simulator]") {
  const settings_guard guard(32);
  memory<float> out(64);
  const auto refused = [&](simt::geometry g) {
    try {
      simt::launch(shared_written, g, out.get());
    } catch (const simt::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(refused({1, 2048}).find("2048x1x1 threads") != std::string::npos);
  CHECK(refused({0, 64}).find("grid of 0x1x1") != std::string::npos);
  CHECK(refused({dim3(1, 65536), 64}).find("grid of 1x65536x1") != std::string::npos);
  CHECK(refused({1, 64, 300 * 1024}).find("307200 bytes of shared memory") != std::string::npos);
  CHECK(refused({1, 2048}).find("shared_written") != std::string::npos);
  CHECK(refused({1, 2048}).find("tests/simulator_test.cpp:") != std::string::npos);
}

TEST_CASE("the runtime refuses addresses outside its buffers", "[simulator]") {
  memory<float> p(ramp(8), "p");
  std::vector<float> host(16);
  CHECK(simt::copy_to_host(host.data(), p.get(), 64) == simt::status::invalid_value);
  CHECK(simt::copy_to_device(p.get() + 4, host.data(), 32) == simt::status::invalid_value);
  CHECK(simt::copy_to_device(host.data(), host.data(), 4) == simt::status::invalid_value);
  CHECK(simt::release(p.get() + 1) == simt::status::invalid_value);
  CHECK(simt::copy_on_device(p.get(), p.get() + 4, 16, nullptr) == simt::success);
  CHECK(p.fetch()[0] == 4.0f);
  CHECK(simt::zero(p.get() + 4, 32, nullptr) == simt::status::invalid_value);
  CHECK(simt::zero(p.get() + 4, 16, nullptr) == simt::success);
  CHECK(p.fetch() == std::vector<float>{4, 5, 6, 7, 0, 0, 0, 0});
  CHECK_THROWS_WITH(SIMT_CHECK(simt::copy_to_host(host.data(), nullptr, 4)),
                    Catch::Matchers::Contains("simt::copy_to_host(host.data(), nullptr, 4) failed") &&
                        Catch::Matchers::Contains("tests/simulator_test.cpp:"));
  void* huge = nullptr;
  CHECK(simt::allocate(&huge, std::size_t{1} << 60, "huge") == simt::status::out_of_memory);
  CHECK(huge == nullptr);
}
