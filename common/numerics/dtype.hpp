#pragma once
/// @file
/// Storage types on the host: fp32, fp16 and bf16, all computed with in fp32.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "softmax.hpp"

namespace softmax {

/// Bytes of an element: 4 or 2.
std::size_t size_of(dtype t);
/// "f32", "f16" or "bf16".
const char* name_of(dtype t);
/// "f32", "f16" or "bf16"; nothing for any other text.
std::optional<dtype> parse_dtype(std::string_view text);

/// Element `index` of an array of `t`, exactly.
double load(dtype t, const void* data, std::int64_t index);
/// Stores the value, rounded to fp32 and then to nearest even in `t`; any NaN as the canonical one.
void store(dtype t, void* data, std::int64_t index, double value);
/// The bits of element `index`, in the low end of the result.
std::uint32_t bits_of(dtype t, const void* data, std::int64_t index);
/// What memory holds that was poisoned and never written: all bits set, a NaN in each type.
std::uint32_t poison_bits(dtype t);

/// The distance between two neighbouring values of `t` at the magnitude of `value`; the smallest subnormal at
/// 0.
double ulp_at(dtype t, double value);
/// Below this, a GPU may flush a result to zero: the smallest normal number for f32 and bf16, 0 for f16.
double flush_floor(dtype t);

}  // namespace softmax
