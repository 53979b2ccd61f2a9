#pragma once
/// @file
/// What to take away: row-wise softmax for a program of your own. Link one of the CMake targets
/// softmax::on_cuda and softmax::on_hip; see tests/installed for a whole project. (softmax::on_sim, for this
/// workbook's own tests, works on the simulator's memory.) Calls from several threads do not disturb each
/// other.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace softmax {

/// How x and y are stored: IEEE single, IEEE half, or bfloat16.
enum class dtype { f32, f16, bf16 };

/// A matrix of `rows` x `cols` elements, the softmax of which is taken row by row. Row i of the input starts
/// at x + i * ld_in, row i of the output at y + i * ld_out, counted in elements.
struct softmax_problem {
  std::int64_t rows = 0;  ///< M
  std::int64_t cols = 0;  ///< less than 2^30 vectors of 16 bytes
  std::int64_t ld_in = 0;  ///< row stride of x, at least cols
  std::int64_t ld_out = 0;  ///< row stride of y, at least cols
  dtype type = dtype::f32;  ///< of x and y
};

/// One launch that softmax() makes.
struct planned_launch {
  std::string kernel;  ///< with its template arguments, where the runtime can tell
  std::int64_t blocks = 0;  ///< of the grid
  int threads = 0;  ///< of a block
  int blocks_a_cluster = 1;  ///< 1: no clusters
};

/// What softmax() would do.
struct softmax_plan {
  std::string stage;  ///< of the workbook that explains the kernel: "06"; empty where nothing is launched
  std::string why;  ///< how it was chosen: measured, or by a rule
  std::vector<planned_launch> launches;  ///< in order
};

/// Bytes of workspace with which softmax() is fastest; it works with less, and with none. 0 for most shapes.
/// At most 2048 bytes a row. Depends on the current device.
/// @throws std::runtime_error where there is none
std::size_t softmax_workspace(const softmax_problem& p);

/// y = softmax of each row of x, in device memory, enqueued on `stream` (a cudaStream_t or hipStream_t; null
/// is the default stream) of the current device. Allocates no device memory, keeps nothing between calls but
/// what a device can do, and may be captured into a graph. Computes in fp32; special values as torch.softmax.
/// y may be x, with equal strides; otherwise the two must lie apart. `workspace` is device memory of
/// `workspace_bytes`, a multiple of 8 as its address is, apart from x and y, for this call alone until it has
/// finished; a captured graph needs it at each replay. From compute capability 9.0 on, the call may begin
/// before the kernel before it has ended, for whose end it waits, and lets the next kernel begin early if
/// that is launched so (programmatic dependent launch). A kernel of yours that is launched so, before or
/// after the call, has to wait as well (griddepcontrol.wait).
/// @throws std::invalid_argument when the matrix, an address or the type makes no sense: nothing was enqueued
/// @throws std::runtime_error when the device refuses a launch; what is in y then is not specified
void softmax(const void* x, void* y, const softmax_problem& p, void* stream, void* workspace = nullptr,
             std::size_t workspace_bytes = 0);

/// The same for the common case.
inline void softmax(const void* x, void* y, std::int64_t rows, std::int64_t cols, std::int64_t ld_in,
                    std::int64_t ld_out, dtype type, void* stream) {
  softmax(x, y, {rows, cols, ld_in, ld_out, type}, stream);
}

/// The launches that softmax() would make for the same arguments. Nothing is run, and nothing is read or
/// written at the addresses.
/// @throws as softmax() does
softmax_plan plan_softmax(const void* x, const void* y, const softmax_problem& p,
                          std::size_t workspace_bytes = 0);

}  // namespace softmax
