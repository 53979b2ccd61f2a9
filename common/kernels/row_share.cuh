#pragma once
/// @file
/// A row taken 16 bytes at a time. It may start at any element, so it is cut into an aligned middle, whole
/// vectors of 16 bytes, and the few elements before and behind it, its edges.
#include "kernels/block.cuh"
#include "numerics/shape.hpp"
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// Elements in 16 bytes: 4 or 8.
template <class T>
inline constexpr int per_vector = 16 / static_cast<int>(sizeof(T));

/// The elements of a vector in fp32.
template <class T>
__device__ void unpack(simt::vector16 v, float (&value)[per_vector<T>]) {
  if constexpr (sizeof(T) == 4) {
    __builtin_memcpy(value, &v, 16);
  } else {
    std::uint32_t word[4];
    __builtin_memcpy(word, &v, 16);
#pragma unroll
    for (int w = 0; w < 4; ++w) simt::unpack_pair<T>(word[w], value[2 * w], value[2 * w + 1]);
  }
}

/// And back, rounded.
template <class T>
__device__ simt::vector16 pack(const float (&value)[per_vector<T>]) {
  simt::vector16 v;
  if constexpr (sizeof(T) == 4) {
    __builtin_memcpy(&v, value, 16);
  } else {
    std::uint32_t word[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) word[w] = simt::pack_pair<T>(value[2 * w], value[2 * w + 1]);
    __builtin_memcpy(&v, word, 16);
  }
  return v;
}

/// A vector of equal elements.
template <class T>
__device__ simt::vector16 filled(float value) {
  float all[per_vector<T>];
#pragma unroll
  for (int e = 0; e < per_vector<T>; ++e) all[e] = value;
  return pack<T>(all);
}

/// How a row lies in memory: `head` elements, `vectors` whole vectors, and the rest. The elements that are in
/// no vector are counted through, those of the head first.
struct row_layout {
  int head;  ///< elements before the first vector
  int vectors;  ///< so a row has at most 2^31 vectors, 34 GB
  int edges;  ///< elements that are in no vector, those of the head included
};

/// Maximum m of some values, and the sum d of 2^((value - m) log2(e)). Of nothing: -inf and 0.
struct alignas(8) running {
  float m;  ///< maximum
  float d;  ///< sum, relative to m
};

constexpr float log2_e = 1.44269504f;  ///< log2(e)

/// e^x, by the hardware's power of two.
__device__ inline float exponential(float x) { return simt::exp2(x * log2_e); }

/// What exponents are relative to: the maximum, or 0 if all was -inf, as -inf + inf would be a NaN.
__device__ inline float reference(float m) { return m == -INFINITY ? 0.0f : m; }

/// e^(x - m) of values of 16 bits, but for a factor: log2(e) and m are folded into one multiply-add before
/// the power of two. m log2(e) is rounded; that moves all exponents of this m alike, so it does no harm to
/// what is divided by their sum. Where it would move them far, values are so far apart that any slope will
/// do.
struct folded_exponential {
  float slope;  ///< log2(e), or 1 where m is far from 0
  float shift;  ///< what brings m to 0, rounded
  /// m is finite, or infinite where the row has an infinity.
  __device__ explicit folded_exponential(float m)
      : slope(fabsf(m) < 0x1p20f ? log2_e : 1.0f), shift(-m * slope) {}
  /// Of one value.
  __device__ float operator()(float x) const { return simt::exp2(fmaf(x, slope, shift)); }
};

/// Both sets of values together. Associative and commutative; {-inf, 0} changes nothing.
__device__ inline running merge(running a, running b) {
  const float m = fmaxf(a.m, b.m);
  return {m, a.d * exponential(a.m - reference(m)) + b.d * exponential(b.m - reference(m))};
}

/// Merges one state of each lane of the warp. Takes part: every lane. Valid on: every lane. Barriers: none.
template <int WarpSize>
__device__ running warp_merge(running r) {
  const float m = group_reduce<maximum, WarpSize, WarpSize>(r.m);
  return {m, group_reduce<sum, WarpSize, WarpSize>(r.d * exponential(r.m - reference(m)))};
}

/// Merges one state of each warp of the block. Takes part: every thread. Valid on: every thread. Barriers:
/// one, as calls take turns between two sets of states: `turn` is 0 and 1 from call to
/// call, the same in all threads.
template <int WarpSize>
__device__ running block_merge(running warp_state, int turn) {
  __shared__ running state[2][most_threads / WarpSize];
  const int warp = threadIdx.x / WarpSize, lane = threadIdx.x % WarpSize, warps = blockDim.x / WarpSize;
  if (lane == 0) state[turn][warp] = warp_state;
  __syncthreads();  // the states are complete
  return warp_merge<WarpSize>(lane < warps ? state[turn][lane] : running{-INFINITY, 0.0f});
}

/// How the rows of two matrices lie within 16 bytes: all start and end on a multiple; each row of y starts as
/// that of x does; or neither.
enum class rows_lie { aligned, alike, apart };

/// Looks at both addresses and strides. Exact; no element is read.
template <class T>
rows_lie how_rows_lie(const T* x, const T* y, const matrix_shape& s) {
  const auto in = reinterpret_cast<std::uintptr_t>(x), out = reinterpret_cast<std::uintptr_t>(y);
  const auto bytes = [](std::int64_t n) { return static_cast<std::uintptr_t>(n) * sizeof(T); };
  const std::uintptr_t ld_in = s.rows > 1 ? bytes(s.ld_in) : 0, ld_out = s.rows > 1 ? bytes(s.ld_out) : 0;
  if ((in | out | ld_in | ld_out | bytes(s.cols)) % 16 == 0) return rows_lie::aligned;
  return (in - out) % 16 == 0 && (ld_in - ld_out) % 16 == 0 ? rows_lie::alike : rows_lie::apart;
}

/// What one thread holds of a row: Items vectors and at most Edges edge elements, in fp32. Where rows are
/// aligned, there are none.
template <class T, int Items, int Edges>
struct row_share {
  static constexpr int size = per_vector<T>;  ///< elements of a vector
  float value[Items][size];  ///< of the vectors
  float edge[Edges ? Edges : 1];  ///< of the edges

  /// Column of the k-th edge element.
  static __device__ std::int64_t edge_col(const row_layout& l, int k) {
    return k < l.head ? k : k + std::int64_t{l.vectors} * size;
  }

  /// Loads vectors place, place + stride, ... and edge elements of the same numbers. What lies behind the
  /// last is -inf.
  __device__ void load(const T* in, const row_layout& l, int place, int stride) {
    simt::vector16 held[Items];  // all loads are under way before the first is used
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int v = place + i * stride;
      held[i] =
          v < l.vectors ? simt::load_vector(in + l.head + std::int64_t{v} * size) : filled<T>(-INFINITY);
    }
#pragma unroll
    for (int k = 0; k < Edges; ++k)
      edge[k] =
          place + k * stride < l.edges ? static_cast<float>(in[edge_col(l, place + k * stride)]) : -INFINITY;
#pragma unroll
    for (int i = 0; i < Items; ++i) unpack<T>(held[i], value[i]);
  }

  /// The largest value held.
  __device__ float largest() const {
    float m = -INFINITY;
#pragma unroll
    for (int k = 0; k < Edges; ++k) m = fmaxf(m, edge[k]);
#pragma unroll
    for (int i = 0; i < Items; ++i)
#pragma unroll
      for (int e = 0; e < size; ++e) m = fmaxf(m, value[i][e]);
    return m;
  }

  /// Turns each value into its exponential relative to m, and returns their sum.
  __device__ float exponentials(float m) {
    return turn_into([m](float x) { return exponential(x - m); });
  }

  /// The same in 16 bits with fewer instructions, but for a factor that depends on m: for rows whose threads
  /// all have the same m.
  __device__ float folded_exponentials(float m) {
    if constexpr (sizeof(T) == 4)
      return exponentials(m);
    else
      return turn_into(folded_exponential(m));
  }

  /// Stores scale times what is held to where load() found it; element by element where rows lie apart.
  template <rows_lie Lie>
  __device__ void store(T* out, const row_layout& l, int place, int stride, float scale) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int v = place + i * stride;
#pragma unroll
      for (int e = 0; e < size; ++e) value[i][e] *= scale;
      if (v >= l.vectors) continue;
      T* to = out + l.head + std::int64_t{v} * size;
      if constexpr (Lie != rows_lie::apart) {
        simt::store_vector(to, pack<T>(value[i]));
      } else {
#pragma unroll
        for (int e = 0; e < size; ++e) to[e] = static_cast<T>(value[i][e]);
      }
    }
#pragma unroll
    for (int k = 0; k < Edges; ++k)
      if (place + k * stride < l.edges)
        out[edge_col(l, place + k * stride)] = static_cast<T>(edge[k] * scale);
  }

 private:
  template <class F>
  __device__ float turn_into(F f) {
    float d = 0.0f;
#pragma unroll
    for (int k = 0; k < Edges; ++k) d += edge[k] = f(edge[k]);
#pragma unroll
    for (int i = 0; i < Items; ++i)
#pragma unroll
      for (int e = 0; e < size; ++e) d += value[i][e] = f(value[i][e]);
    return d;
  }
};

}  // namespace
}  // namespace softmax
