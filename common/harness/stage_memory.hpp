#pragma once
/// @file
/// The device memory of one call of a stage, with what it takes to notice damage.
#include <cstdint>
#include <string>

#include "harness/backend.hpp"
#include "harness/stage_info.hpp"
#include "numerics/matrix.hpp"

namespace softmax {

/// "64x781 f32"
std::string shape_text(const matrix_shape& s, dtype t);
/// rows * ld elements, in bytes. @throws usage_error if 64 bits cannot count them
std::int64_t matrix_bytes(std::int64_t rows, std::int64_t ld, dtype t);
/// Scratch memory of a call. @throws usage_error if 64 bits cannot count it
std::int64_t workspace_bytes(const stage_info& stage, const matrix_shape& s);

/// x, y and workspace on the device. On a GPU, y lies between guards that must stay as they are; the
/// simulator watches every access, and a store outside y is a fault there, at its line.
class stage_memory {
 public:
  /// Before and behind y.
  static constexpr std::size_t guard_bytes = 4096;

  /// Uploads x, its padding included. Both matrices start `offset` elements behind a 256-byte boundary.
  stage_memory(backend& machine, const stage_info& stage, const host_matrix& x, const matrix_shape& s,
               std::int64_t offset = 0);

  /// The arguments of the call.
  stage_call call() const;
  /// Makes everything that the stage has to write look unwritten.
  void poison();
  /// Copies the output to `y`, whose shape is that of the call.
  /// @returns what was damaged: a guard, padding of y, or the input; empty if nothing
  std::string fetch(host_matrix& y, const host_matrix& x);

 private:
  backend& machine_;
  matrix_shape shape_;
  dtype type_;
  std::size_t shift_ = 0, guard_ = 0, y_bytes_ = 0;
  device_buffer x_, y_, workspace_;
};

}  // namespace softmax
