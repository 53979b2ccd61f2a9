#pragma once
/// @file
/// How the blocks of a cluster tell each other maximum and sum of their parts of a row.
#include "../../stages/07_split_row/cluster.cuh"
#include "kernels/row_share.cuh"
#include "simt/async.hpp"

namespace softmax {
namespace {

/// Merges the states of all warps of a cluster. Takes part: every lane. Valid on: every lane. Barriers: none.
__device__ inline running merge_states(const running* state, int states) {
  const int lane = threadIdx.x % 32;
  float m = -INFINITY, d = 0.0f;
#pragma unroll 1
  for (int k = lane; k < states; k += 32) m = fmaxf(m, state[k].m);
  m = group_reduce<maximum, 32, 32>(m);
#pragma unroll 1
  for (int k = lane; k < states; k += 32) d += state[k].d * exponential(state[k].m - reference(m));
  return {m, group_reduce<sum, 32, 32>(d)};
}

/// By messages: each pair of numbers counts its own bytes where it arrives, and nobody waits for anything
/// else. Two sets of states in turn. A warp sends row n when it has received row n - 1; every warp had sent
/// that, and so had received row n - 2, whose set is used again. Not stage 07's `messages`: with its merge
/// the kernel of 256 threads spills registers.
template <int MostStates>
struct messages_in_turns {
  static constexpr int turns = 2;
  running state[turns][MostStates];
  simt::transaction_barrier arrived[turns];

  /// One thread of each block, before the barrier of the cluster that begins everything.
  __device__ void init() {
    for (simt::transaction_barrier& b : arrived) simt::barrier_init(b, 1);
  }

  /// Sends the state of this warp, number `warp` of `warps` in the block, to every block. Takes part: every
  /// lane. r is that of warp_merge(). `n` counts the rows.
  __device__ void send(running r, int warp, int warps, unsigned n) {
    const int lane = threadIdx.x % 32, blocks = simt::cluster_blocks(), turn = n % turns;
    if (warp == 0 && lane == 0)
      simt::barrier_arrive_expect(arrived[turn], warps * blocks * static_cast<int>(sizeof(running)));
    if (lane < blocks)
      simt::send_pair(&state[turn][simt::cluster_rank() * warps + warp], arrived[turn], lane, r.m, r.d);
  }

  /// Waits for the states of row n, and merges them. Takes part: every lane. Valid on: every lane.
  __device__ running receive(int warps, unsigned n) {
    const int turn = n % turns;
    simt::barrier_wait_cluster(arrived[turn], n / turns % 2);
    return merge_states(state[turn], warps * simt::cluster_blocks());
  }
};

/// By the barrier of the cluster, with its default release, which is a fence of the whole GPU.
template <int MostStates>
struct stores_and_barrier {
  running state[2][MostStates];

  __device__ void init() {}
  __device__ void send(running r, int warp, int warps, unsigned n) {
    const int lane = threadIdx.x % 32;
    if (lane < simt::cluster_blocks())
      simt::store_pair(&state[n % 2][simt::cluster_rank() * warps + warp], lane, r.m, r.d);
    simt::cluster_arrive();
  }
  __device__ running receive(int warps, unsigned n) {
    simt::cluster_wait();
    return merge_states(state[n % 2], warps * simt::cluster_blocks());
  }
};

}  // namespace
}  // namespace softmax
