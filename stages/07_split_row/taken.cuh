#pragma once
// Rows that clusters take one by one, so that one that is late takes fewer: from a counter in global memory,
// which must be 0 at the launch. The first row of a cluster is that of its own number.
#include "simt/async.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// Which rows a cluster of the ring takes, in the shared memory of each of its blocks. Entry n is the row
/// after the n-th. One thread of the first block takes them and tells every block; in each block one thread
/// expects them, and whoever works on a row waits for it.
///
/// An entry's place is used again without asking. When entry n is told, during row n, the first block has had
/// a free slot for every chunk of row n - 1; as each row has a chunk or more, all its threads had let go of
/// one of row n - 1 - Slots or later, so they had received the states of row n - 2 - Slots from every warp of
/// the cluster. Those warps had been told that row, and so had the threads that loaded it for them: all have
/// read entry n - 3 - Slots and every one before.
template <int Slots>
struct taken_rows {
  static constexpr unsigned entries = 32;
  static_assert(Slots + 3 <= entries, "a place would be used again too early");
  std::int64_t row[entries];
  simt::transaction_barrier told[entries];

  /// One thread of each block, before the barrier of the cluster that begins everything.
  __device__ void init() {
    for (simt::transaction_barrier& b : told) simt::barrier_init(b, 1);
  }
  /// One thread of each block, once for each entry.
  __device__ void expect(unsigned n) { simt::barrier_arrive_expect(told[n % entries], sizeof *row); }
  /// One thread of the cluster.
  __device__ void tell(unsigned n, std::int64_t next) {
    float words[2];  // a pair is sent as two floats
    __builtin_memcpy(words, &next, sizeof words);
    for (int rank = 0; rank < simt::cluster_blocks(); ++rank)
      simt::send_pair(&row[n % entries], told[n % entries], rank, words[0], words[1]);
  }
  /// Any thread, each entry in turn.
  __device__ std::int64_t receive(unsigned n) {
    simt::barrier_wait_cluster(told[n % entries], n / entries % 2);
    return row[n % entries];
  }
};

/// Takes rows for a cluster, by one thread of it; in the other blocks it has no counter, and takes none. The
/// counter's answer takes as long as a load, so it is asked some chunks before the row is needed: late in the
/// row before, as a row taken early may end late. If that has too few chunks, a row earlier.
template <int Slots>
class row_taker {
 public:
  /// `chunks` is how many are loaded for a row.
  __device__ row_taker(taken_rows<Slots>& rows, unsigned* counter, int chunks)
      : rows_(rows), counter_(counter), last_(chunks - 1), ask_(last_ - chunks_ahead) {
    if (counter_ && ask_ < 0) taken_ = take();
  }
  /// To be called before the wait for a slot for chunk k of row n.
  __device__ void step(int k, unsigned n) {
    if (counter_ && k == ask_) taken_ = take();
    if (!counter_ || k < last_) return;
    rows_.tell(n, std::int64_t{simt::cluster_count()} + taken_);
    if (ask_ < 0) taken_ = take();
  }

 private:
  static constexpr int chunks_ahead = 4;
  __device__ unsigned take() const { return simt::fetch_increment(counter_); }

  taken_rows<Slots>& rows_;
  unsigned* counter_;
  int last_, ask_;  // chunks: when the next row is told, and when it is asked for
  unsigned taken_ = 0;  // not added to before it is told, or its answer would be waited for
};

}  // namespace
}  // namespace softmax
