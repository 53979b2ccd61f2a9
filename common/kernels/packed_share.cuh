#pragma once
/// @file
/// Vectors of a row as they were loaded, for kernels that keep many of them: 16-bit values stay packed, two
/// in a register, and the exponential of each is computed for the sum and again for the result.
#include "kernels/row_share.cuh"
#include "simt/simt.hpp"

namespace softmax {
namespace {

/// What was seen so far, and further values of which d is the sum of exponentials relative to reference(m). m
/// is the maximum of everything.
__device__ inline running extend(running r, float m, float d) {
  return {m, r.d * exponential(r.m - reference(m)) + d};
}

/// The larger of two vectors in each place. 16-bit values are compared two at a time, packed.
template <class T>
__device__ simt::vector16 larger_vector(simt::vector16 a, simt::vector16 b) {
  if constexpr (sizeof(T) == 4) {
    float x[4], y[4];
    unpack<T>(a, x);
    unpack<T>(b, y);
#pragma unroll
    for (int e = 0; e < 4; ++e) x[e] = fmaxf(x[e], y[e]);
    return pack<T>(x);
  } else {
    std::uint32_t x[4], y[4];
    __builtin_memcpy(x, &a, 16);
    __builtin_memcpy(y, &b, 16);
#pragma unroll
    for (int w = 0; w < 4; ++w) x[w] = simt::larger_pair<T>(x[w], y[w]);
    __builtin_memcpy(&a, x, 16);
    return a;
  }
}

/// Items vectors of one thread. What lies behind the last vector of the row is -inf.
template <class T, int Items>
struct packed_share {
  static constexpr int size = per_vector<T>;  ///< elements of a vector
  simt::vector16 held[Items];  ///< as they were loaded

  /// Takes vectors place, place + stride, ... of `vectors` that start at `in`, which is a multiple of 16.
  __device__ void load(const T* in, int vectors, int place, int stride) {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int v = place + i * stride;
      held[i] = v < vectors ? simt::load_vector(in + std::int64_t{v} * size) : filled<T>(-INFINITY);
    }
  }

  /// What was seen before, and what is held.
  __device__ running add_to(running r) const {
    simt::vector16 largest = filled<T>(-INFINITY);
#pragma unroll
    for (int i = 0; i < Items; ++i) largest = larger_vector<T>(largest, held[i]);
    float value[size], m = r.m, d = 0.0f;
    unpack<T>(largest, value);
#pragma unroll
    for (int e = 0; e < size; ++e) m = fmaxf(m, value[e]);
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      unpack<T>(held[i], value);
#pragma unroll
      for (int e = 0; e < size; ++e) d += exponential(value[e] - reference(m));
    }
    return extend(r, m, d);
  }

  /// Stores scale times the exponentials, relative to m, to where load() found the values in a row of y;
  /// element by element where the rows of x and y lie apart.
  template <rows_lie Lie>
  __device__ void store(T* out, int vectors, int place, int stride, float m, float scale) const {
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      float value[size];
      unpack<T>(held[i], value);
#pragma unroll
      for (int e = 0; e < size; ++e) value[e] = exponential(value[e] - m) * scale;
      const int v = place + i * stride;
      if (v >= vectors) continue;
      T* to = out + std::int64_t{v} * size;
      if constexpr (Lie != rows_lie::apart) {
        simt::store_vector(to, pack<T>(value));
      } else {
#pragma unroll
        for (int e = 0; e < size; ++e) to[e] = static_cast<T>(value[e]);
      }
    }
  }
};

}  // namespace
}  // namespace softmax
