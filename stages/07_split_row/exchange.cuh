#pragma once
// How the blocks of a cluster tell each other the states of their parts of a row: by messages.
#include "kernels/row_share.cuh"
#include "simt/async.hpp"

namespace softmax {
namespace {

/// The states of all warps of a cluster, as each block receives them. The barrier counts bytes as they
/// arrive, and nobody waits for anything else. A barrier of the whole cluster would do as well, but its
/// release makes every store of the block visible to the whole GPU first, which takes longer than the
/// exchange.
template <int MostStates>
struct messages {
  running state[MostStates];
  simt::transaction_barrier arrived;

  /// Sets the barrier up. One thread of each block, which publishes it before the barrier of the cluster
  /// that comes before the first send.
  __device__ void init() { simt::barrier_init(arrived, 1); }

  /// Says that `states` states will arrive, those of one row. The same thread, once a row; it does not matter
  /// whether some have arrived already.
  __device__ void expect(int states) {
    simt::barrier_arrive_expect(arrived, states * static_cast<int>(sizeof(running)));
  }

  /// Sends the state of this warp, number `warp` of `warps` in the block, to every block. Takes part: every
  /// lane. r is the same in all of them.
  __device__ void send(running r, int lane, int warp, int warps) {
    if (lane < simt::cluster_blocks())
      simt::send_pair(&state[simt::cluster_rank() * warps + warp], arrived, lane, r.m, r.d);
  }

  /// Waits for all states, and merges them. Takes part: every lane. Valid on: every lane. Barriers: none.
  /// `turn` counts the rows that this set was used for; the last bit is enough.
  template <int WarpSize>
  __device__ running receive(int lane, int states, unsigned turn = 0) {
    simt::barrier_wait_cluster(arrived, turn % 2);
    running r = {-INFINITY, 0.0f};
#pragma unroll 1
    for (int k = lane; k < states; k += WarpSize) r = merge(r, state[k]);
    return warp_merge<WarpSize>(r);
  }
};

}  // namespace
}  // namespace softmax
