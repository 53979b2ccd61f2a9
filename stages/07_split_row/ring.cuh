#pragma once
// Many rows, wider still, by clusters that stay. One warp of each block loads chunks of this row and of the
// next ones into a ring in shared memory, as fast as the others free its slots. So loads are under way while
// the states of a row are exchanged and its result is stored, where cluster.cuh has none. Moves, in elements:
// reads MN, writes MN; columns that the cluster cannot hold are read twice.
#include "chunks.cuh"
#include "cluster.cuh"
#include "taken.cuh"

namespace softmax {
namespace {

/// y[row] = softmax of x[row] by the blocks of a cluster. Threads compute, a warp more loads. A chunk is
/// Threads * Items vectors, a ring has Slots of them, in dynamic shared memory. The first Held chunks of a
/// row go on to registers, so that their slots are free at once; the others stay in the ring until their
/// result is stored. If they are too many for it, the first of them are loaded again behind the last.
/// Clusters take their rows from the counter `taken`, which has to be 0.
template <int WarpSize, int Threads, int Items, int Slots, int Held, rows_lie Lie, class T>
__global__ void __launch_bounds__(Threads + WarpSize, 1)
    softmax_ring(const T* x, T* y, matrix_shape s, unsigned* taken) {
  if constexpr (!simt::clusters_here) return;  // never launched there
  constexpr int warps = Threads / WarpSize, chunk_vectors = Threads * Items;
  using part = row_part<T, chunk_vectors>;
  __shared__ chunk_ring<chunk_vectors, Slots> ring;
  // Two sets in turn. A warp sends row n when it has received row n - 1; every warp had sent that, and so had
  // received row n - 2, whose set is used again.
  __shared__ messages<warps * most_parts> exchange[2];
  __shared__ taken_rows<Slots> rows;
  const int warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize;
  const int blocks = simt::cluster_blocks(), states = warps * blocks;
  if (threadIdx.x == 0) {
    ring.init(Threads);
    rows.init();
    for (auto& set : exchange) set.init();
    simt::barrier_publish();
  }
  simt::sync_warp();
  simt::cluster_arrive_relaxed();
  simt::cluster_wait();

  const auto part_vectors = static_cast<int>((s.cols / per_vector<T> + blocks - 1) / blocks);
  // A row without a vector has an empty chunk, or nothing would hold back the threads that load and take
  // rows.
  const int chunks = part_vectors > 0 ? (part_vectors + chunk_vectors - 1) / chunk_vectors : 1;
  const int ringed = chunks > Held ? chunks - Held : 0;  // chunks that the registers do not hold
  const int reloaded = ringed > Slots ? ringed - Slots : 0;  // and the ring neither
  unsigned q = 0, n = 0;  // chunks and rows so far

  if (warp == warps) {  // loads
    if (lane > 0) return;
    row_taker taker(rows, simt::cluster_rank() == 0 ? taken : nullptr, chunks + reloaded);
    for (std::int64_t row = simt::cluster_id(); row < s.rows; row = rows.receive(n++)) {
      const T* in = x + row * s.ld_in;
      const part mine(in, s.cols, part_vectors);
      rows.expect(n);
      for (int k = 0; k < chunks + reloaded; ++k, ++q) {
        taker.step(k, n);
        const int chunk = k < chunks ? k : Held + k - chunks;
        ring.fill(q, in + mine.first(chunk), mine.in_chunk(chunk));
      }
    }
    return;
  }

  for (std::int64_t row = simt::cluster_id(); row < s.rows; row = rows.receive(n++)) {
    const T* in = x + row * s.ld_in;
    T* out = y + row * s.ld_out;
    const part mine(in, s.cols, part_vectors);
    const auto load = [&](auto& values, int chunk) {
      values.load(ring.template wait_for<T>(q), mine.in_chunk(chunk), threadIdx.x, Threads);
    };
    const float edge = mine.has_edge() ? static_cast<float>(in[mine.edge_col()]) : -INFINITY;
    running r = {-INFINITY, 0.0f};
    packed_share<T, Items> held[Held ? Held : 1], values;
#pragma unroll
    for (int k = 0; k < Held; ++k)
      if (k < chunks) {
        load(held[k], k);
        ring.release(q++);
        r = held[k].add_to(r);
      }
    for (int k = 0; k < ringed; ++k, ++q) {
      load(values, Held + k);
      if (k < reloaded) ring.release(q);
      r = values.add_to(r);
    }
    const float m = fmaxf(r.m, edge);  // leaves a NaN out, which the sum does not
    r = extend(r, m, exponential(edge - reference(m)));
    auto& set = exchange[n % 2];
    if (threadIdx.x == 0) set.expect(states);
    set.send(warp_merge<WarpSize>(r), lane, warp, warps);
    const running all = set.template receive<WarpSize>(lane, states, n / 2);

    const float scale = 1.0f / all.d;
    if (mine.has_edge()) out[mine.edge_col()] = static_cast<T>(exponential(edge - all.m) * scale);
    const auto store = [&](const auto& share, int chunk) {
      share.template store<Lie>(out + mine.first(chunk), mine.in_chunk(chunk), threadIdx.x, Threads, all.m,
                                scale);
    };
    // The ring's part before that of the registers: its slots are what the next loads wait for.
    q -= static_cast<unsigned>(ringed - reloaded);  // the first chunk that the ring kept
    for (int k = 0; k < ringed; ++k, ++q) {
      const int chunk = Held + (reloaded + k < ringed ? reloaded + k : reloaded + k - ringed);
      load(values, chunk);
      ring.release(q);
      store(values, chunk);
    }
#pragma unroll
    for (int k = 0; k < Held; ++k)
      if (k < chunks) store(held[k], k);
  }
}

/// Launches as many clusters of `parts` blocks as fit at once, which the runtime is asked at each call,
/// behind a memset of the counter, the start of the workspace.
template <int WarpSize, int Threads, int Items, int Slots, int Held, class T>
void launch_ring(int parts, const T* x, T* y, float* workspace, const matrix_shape& s, simt::stream queue) {
  const auto kernel = how_rows_lie(x, y, s) == rows_lie::apart
                          ? softmax_ring<WarpSize, Threads, Items, Slots, Held, rows_lie::apart, T>
                          : softmax_ring<WarpSize, Threads, Items, Slots, Held, rows_lie::alike, T>;
  constexpr int threads = Threads + WarpSize;
  constexpr std::size_t bytes = std::size_t{Slots} * Threads * Items * 16;
  auto* taken = reinterpret_cast<unsigned*>(workspace);
  SIMT_CHECK(simt::zero(taken, sizeof *taken, queue));
  const std::int64_t fit = simt::resident_clusters(kernel, parts, threads, bytes);
  const std::int64_t clusters = std::clamp<std::int64_t>(fit, 1, s.rows);  // none: the launch says why
  simt::launch_cluster(kernel, parts, {static_cast<unsigned>(clusters * parts), threads, bytes, queue}, x, y,
                       s, taken);
}

}  // namespace
}  // namespace softmax
