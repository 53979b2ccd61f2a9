#include "numerics/dtype.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace softmax {
namespace {

struct format {
  const char* name;
  std::size_t bytes;
  int digits;  // of the significand, the hidden one included
  int min_exponent;  // the smallest normal number is 2^min_exponent
  double floor;
};

const format& format_of(dtype t) {
  static const format f32{"f32", 4, 24, -126, std::ldexp(1.0, -126)};
  static const format f16{"f16", 2, 11, -14, 0.0};
  static const format bf16{"bf16", 2, 8, -126, std::ldexp(1.0, -126)};
  return t == dtype::f32 ? f32 : t == dtype::f16 ? f16 : bf16;
}

template <class T>
T read(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void write(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

std::size_t size_of(dtype t) { return format_of(t).bytes; }
const char* name_of(dtype t) { return format_of(t).name; }

std::optional<dtype> parse_dtype(std::string_view text) {
  for (dtype t : {dtype::f32, dtype::f16, dtype::bf16})
    if (text == name_of(t)) return t;
  return std::nullopt;
}

double load(dtype t, const void* data, std::int64_t index) {
  switch (t) {
    case dtype::f32:
      return read<float>(data, index);
    case dtype::f16:
      return static_cast<float>(read<Eigen::half>(data, index));
    case dtype::bf16:
      return static_cast<float>(read<Eigen::bfloat16>(data, index));
  }
  return 0;
}

void store(dtype t, void* data, std::int64_t index, double value) {
  // Through fp32, which rounds twice in rare ties. One NaN for all: an odd one from a file could look like
  // poison.
  const float single =
      std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(value);
  switch (t) {
    case dtype::f32:
      return write(data, index, single);
    case dtype::f16:
      return write(data, index, Eigen::half(single));
    case dtype::bf16:
      return write(data, index, Eigen::bfloat16(single));
  }
}

std::uint32_t bits_of(dtype t, const void* data, std::int64_t index) {
  return size_of(t) == 4 ? read<std::uint32_t>(data, index) : read<std::uint16_t>(data, index);
}

std::uint32_t poison_bits(dtype t) { return size_of(t) == 4 ? 0xffffffffu : 0xffffu; }

double ulp_at(dtype t, double value) {
  const format& f = format_of(t);
  int exponent = f.min_exponent;
  if (value != 0 && std::isfinite(value)) exponent = std::max(f.min_exponent, std::ilogb(value));
  return std::ldexp(1.0, exponent - (f.digits - 1));
}

double flush_floor(dtype t) { return format_of(t).floor; }

}  // namespace softmax
