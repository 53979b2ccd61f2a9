// The designs of bench/designs and stage 07's kernels with other numbers, in the simulator: right at every
// width around their limits, on clusters of any size, and without a race, a lost byte or a deadlock. Compiled
// like a kernel file.
#include "../bench/designs/held.cuh"
#include "../stages/07_split_row/kernel.cuh"
#include "catch.hpp"
#include "numerics/input.hpp"
#include "numerics/verify.hpp"
#include "simulator_fixture.hpp"

using namespace softmax;

namespace {

constexpr error_model errors{.sum_depth = 512, .exponent_roundings = 2.5};

template <class T>
constexpr dtype type_of = sizeof(T) == 4 ? dtype::f32 : dtype::bf16;

/// Runs a design on a matrix of which both ends of each row lie anywhere, and checks every element.
template <class T, class F>
void check(std::int64_t rows, std::int64_t cols, std::int64_t ld, F&& launch) {
  INFO(rows << "x" << cols << " ld " << ld << " " << name_of(type_of<T>));
  const host_matrix x = make_input("special", 1, type_of<T>, rows, cols, ld);
  host_matrix y(type_of<T>, rows, cols, ld);
  const memory<T> in(static_cast<std::size_t>(rows * ld)), out(static_cast<std::size_t>(rows * ld));
  SIMT_CHECK(simt::copy_to_device(in.get(), x.data.data(), x.data.size()));
  SIMT_CHECK(simt::poison(out.get(), y.data.size()));
  launch(static_cast<const T*>(in.get()), out.get(), matrix_shape{rows, cols, ld, ld});
  SIMT_CHECK(simt::copy_to_host(y.data.data(), out.get(), y.data.size()));
  const verdict v = verify(x, y, errors);
  INFO("row " << v.worst.row << " col " << v.worst.col << ": got " << v.worst.got << ", want "
              << v.worst.want);
  REQUIRE(v.pass);
}

/// Widths on both sides of the multiples of `unit`, up to `most`.
std::vector<std::int64_t> widths(std::int64_t unit, std::int64_t most) {
  std::vector<std::int64_t> all = {1, 3, 17, 100};
  for (std::int64_t n = unit; n <= most; n *= 2)
    for (const std::int64_t cols : {n - 1, n, n + 5}) all.push_back(cols);
  return all;
}

/// `clusters` clusters take the rows from a counter.
template <int Threads, int Items, int Slots, int Held, class T>
void check_ring(int parts, unsigned clusters, std::int64_t rows, std::int64_t cols) {
  INFO(clusters << " clusters of " << parts);
  const memory<unsigned> taken(1);
  for (const bool apart : {false, true})
    check<T>(rows, cols, cols + 3, [&](const T* x, T* y, const matrix_shape& s) {
      const auto kernel = apart ? softmax_ring<32, Threads, Items, Slots, Held, rows_lie::apart, T>
                                : softmax_ring<32, Threads, Items, Slots, Held, rows_lie::alike, T>;
      constexpr std::size_t bytes = std::size_t{Slots} * Threads * Items * 16;
      SIMT_CHECK(simt::zero(taken.get(), sizeof(unsigned), nullptr));
      simt::launch_cluster(kernel, parts, {clusters * static_cast<unsigned>(parts), Threads + 32, bytes}, x,
                           y, s, taken.get());
    });
}

template <int Threads, int Items, int Slots, int Held, class T>
void check_ring(int parts) {
  constexpr std::int64_t chunk = Threads * Items * per_vector<T>;
  for (const std::int64_t cols : widths(chunk, chunk * parts * 3 * (Slots + Held) + 1))
    for (const unsigned clusters : {1u, 2u})
      check_ring<Threads, Items, Slots, Held, T>(parts, clusters, 5, cols);
}

/// `kernel` holds `held` elements in each block.
template <class T>
void check_held(void (*kernel)(const T*, T*, matrix_shape), int threads, std::int64_t held, int parts) {
  for (const std::int64_t cols : widths(held, 4 * parts * held))
    for (const unsigned clusters : {1u, 3u})
      check<T>(7, cols, cols + 1, [&](const T* x, T* y, const matrix_shape& s) {
        const auto blocks = clusters * static_cast<unsigned>(parts);
        simt::launch_cluster(kernel, parts, {blocks, static_cast<unsigned>(threads)}, x, y, s);
      });
}

/// Stage 07's kernel with `threads` threads of Items vectors, and `kept` more in shared memory.
template <int Items, bool Shared, class T>
void check_stage(int kept, int parts, int threads) {
  const std::int64_t held = (threads * Items + kept) * per_vector<T>;
  for (const std::int64_t cols : widths(held, 2 * parts * held))
    for (const std::int64_t apart : {0, 1})
      check<T>(3, cols, cols + 1, [&](const T* x, T* y, const matrix_shape& s) {
        const auto kernel = apart ? softmax_cluster<32, Items, Shared, false, rows_lie::apart, T>
                                  : softmax_cluster<32, Items, Shared, false, rows_lie::alike, T>;
        const auto blocks = static_cast<unsigned>(s.rows) * static_cast<unsigned>(parts);
        simt::launch_cluster(kernel, parts,
                             {blocks, static_cast<unsigned>(threads), static_cast<std::size_t>(kept) * 16}, x,
                             y, s, kept, 0);
      });
}

}  // namespace

TEMPLATE_TEST_CASE("a ring of chunks", "[designs]", float, simt::bfloat16) {
  const settings_guard guard(32, most_parts);
  const int parts = GENERATE(1, 4);
  check_ring<64, 1, 4, 0, TestType>(parts);
  check_ring<64, 2, 3, 0, TestType>(parts);
  check_ring<32, 1, 4, 2, TestType>(parts);
  check_ring<64, 1, 3, 5, TestType>(parts);
}

/// More rows than a cluster has places to be told them, of a few chunks each and of none.
TEMPLATE_TEST_CASE("a ring of many rows", "[designs]", float, simt::bfloat16) {
  const settings_guard guard(32, most_parts);
  const int parts = GENERATE(1, 2);
  constexpr std::int64_t chunk = 32 * per_vector<TestType>;
  for (const std::int64_t cols :
       {std::int64_t{1}, parts * chunk - 1, 5 * parts * chunk + 3, 9 * parts * chunk})
    for (const unsigned clusters : {1u, 3u}) {
      check_ring<32, 1, 4, 2, TestType>(parts, clusters, 40, cols);
      check_ring<32, 1, 16, 0, TestType>(parts, clusters, 40, cols);
    }
  check_ring<32, 1, 4, 2, TestType>(parts, 3, 2, chunk);  // a cluster too many
}

TEMPLATE_TEST_CASE("a row in the registers of a cluster", "[designs]", float, simt::bfloat16) {
  const settings_guard guard(32, most_parts);
  const int parts = GENERATE(1, 5);
  constexpr int size = per_vector<TestType>;
  check_held(softmax_held<32, 2, messages_in_turns, TestType>, 32, 64 * size, parts);
  check_held(softmax_held<64, 1, messages_in_turns, TestType>, 64, 64 * size, parts);
  check_held(softmax_held<64, 1, stores_and_barrier, TestType>, 64, 64 * size, parts);
  for (const int kept : {1, 64}) check_stage<8, true, TestType>(kept, parts, 32);
  check_stage<8, true, TestType>(100, parts, 96);
  check_stage<8, false, TestType>(0, parts, 64);
  check_stage<4, false, TestType>(0, parts, 32);
}

TEMPLATE_TEST_CASE("two launches", "[designs]", float, simt::bfloat16) {
  const settings_guard guard(32, most_parts);
  const unsigned parts = GENERATE(1u, 3u, 64u);
  constexpr int threads = 64, items = 2;
  const std::int64_t most = parts * threads * items * per_vector<TestType>;
  const memory<running> partial(3 * 64);
  for (const std::int64_t cols : {std::int64_t{1}, most / 3 + 1, most - 1, most, 3 * most + 1})
    check<TestType>(3, cols, cols + 1, [&](const TestType* x, TestType* y, const matrix_shape& s) {
      simt::launch(reduce_parts<32, items, TestType>, {dim3(3, parts), threads}, x, partial.get(), s);
      simt::launch(normalise_parts<32, items, rows_lie::alike, TestType>, {dim3(3, parts), threads}, x, y,
                   partial.get(), s);
    });
}
