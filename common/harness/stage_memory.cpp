#include "harness/stage_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/usage_error.hpp"
#include "simt/sim/control.hpp"

namespace softmax {

std::string shape_text(const matrix_shape& s, dtype t) {
  return fmt::format("{}x{} {}", s.rows, s.cols, name_of(t));
}

std::int64_t matrix_bytes(std::int64_t rows, std::int64_t ld, dtype t) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, ld, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<std::int64_t>(size_of(t)), &bytes))
    throw usage_error(fmt::format(
        "{} rows of {} elements are more bytes than 64 bits can count: use a smaller shape.", rows, ld));
  return bytes;
}

std::int64_t workspace_bytes(const stage_info& stage, const matrix_shape& s) {
  if (s.rows == 0 || s.cols == 0) return 0;
  const element_count needed = fitted(stage, s, dtype::f32, 0).workspace;
  std::int64_t elements = 0, part = 0;
  if (__builtin_mul_overflow(s.rows, s.cols, &part) || __builtin_mul_overflow(part, needed.mn, &elements) ||
      __builtin_mul_overflow(needed.m, s.rows, &part) || __builtin_add_overflow(elements, part, &elements))
    throw usage_error("The shape is too large for 64-bit sizes: use a smaller one.");
  return matrix_bytes(elements, 1, dtype::f32);
}

namespace {

bool all_poison(const std::byte* begin, std::size_t bytes) {
  return std::all_of(begin, begin + bytes, [](std::byte b) { return b == std::byte{0xff}; });
}

}  // namespace

stage_memory::stage_memory(backend& machine, const stage_info& stage, const host_matrix& x,
                           const matrix_shape& s, std::int64_t offset)
    : machine_(machine), shape_(s), type_(x.type) {
  shift_ = static_cast<std::size_t>(offset) * size_of(x.type);
  y_bytes_ = static_cast<std::size_t>(matrix_bytes(s.rows, s.ld_out, x.type));
  x_ = device_buffer(machine, x.data.size() + shift_, "x");
  guard_ = machine.name() == "sim" && simt::configuration().check ? 0 : guard_bytes;
  y_ = device_buffer(machine, guard_ + shift_ + y_bytes_ + guard_, "y");
  workspace_ = device_buffer(machine, static_cast<std::size_t>(workspace_bytes(stage, s)), "workspace");
  simt::describe_buffer(x_.get(), shape_text(s, x.type));
  simt::describe_buffer(y_.get(), shape_text(s, x.type));
  if (!x.data.empty())
    machine.upload(static_cast<std::byte*>(x_.get()) + shift_, x.data.data(), x.data.size());
}

stage_call stage_memory::call() const {
  return {.type = type_,
          .x = x_.get() ? static_cast<std::byte*>(x_.get()) + shift_ : nullptr,
          .y = y_.get() ? static_cast<std::byte*>(y_.get()) + guard_ + shift_ : nullptr,
          .workspace = static_cast<float*>(workspace_.get()),
          .shape = shape_};
}

void stage_memory::poison() {
  machine_.poison(y_.get(), y_.bytes());
  if (workspace_.bytes() > 0) machine_.poison(workspace_.get(), workspace_.bytes());
}

std::string stage_memory::fetch(host_matrix& y, const host_matrix& x) {
  const auto* device_y = static_cast<const std::byte*>(y_.get()) + guard_ + shift_;
  if (y_bytes_ > 0) machine_.download(y.data.data(), device_y, y_bytes_);
  std::vector<std::byte> guard(guard_ + shift_);
  if (!guard.empty() && y_.get()) machine_.download(guard.data(), y_.get(), guard.size());
  if (!all_poison(guard.data(), y_.get() ? guard.size() : 0)) return "the guard before y was overwritten";
  if (guard_ > 0) machine_.download(guard.data(), device_y + y_bytes_, guard_);
  if (!all_poison(guard.data(), guard_)) return "the guard behind y was overwritten";

  const std::size_t element = size_of(type_);
  const std::size_t used = static_cast<std::size_t>(shape_.cols) * element;
  const std::size_t stride = static_cast<std::size_t>(shape_.ld_out) * element;
  for (std::int64_t row = 0; row < shape_.rows && stride > used; ++row)
    if (!all_poison(y.data.data() + static_cast<std::size_t>(row) * stride + used, stride - used))
      return fmt::format("the padding behind row {} of y was overwritten", row);

  // In pieces, so that a large input is not held twice.
  std::vector<std::byte> piece(std::min<std::size_t>(x.data.size(), std::size_t{64} << 20));
  for (std::size_t begin = 0; begin < x.data.size(); begin += piece.size()) {
    const std::size_t bytes = std::min(piece.size(), x.data.size() - begin);
    machine_.download(piece.data(), static_cast<const std::byte*>(x_.get()) + shift_ + begin, bytes);
    if (std::memcmp(piece.data(), x.data.data() + begin, bytes) != 0) return "the input was modified";
  }
  return "";
}

}  // namespace softmax
