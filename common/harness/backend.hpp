#pragma once
/// @file
/// A machine that can run a stage, seen from the harness. One source, stage_backend.cpp, implements it three
/// times.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "harness/launch_plan.hpp"
#include "numerics/dtype.hpp"
#include "numerics/shape.hpp"
#include "simt/device.hpp"

namespace softmax {

/// Memory and parameters of one call of the stage.
struct stage_call {
  dtype type = dtype::f32;  ///< of x and y
  const void* x = nullptr;  ///< on the device, shape.rows rows of shape.ld_in elements
  void* y = nullptr;  ///< on the device, shape.rows rows of shape.ld_out elements
  float* workspace = nullptr;  ///< on the device, stage_info::workspace elements
  matrix_shape shape;  ///< of both matrices, in elements
  launch_plan plan{};  ///< for stages that take one
  const char* pitfall = nullptr;  ///< run this mistake of the stage instead
};

/// Seconds of the copy kernels that bound what a stage can reach: they read and write `bytes` each.
struct copy_times {
  double best = 0;  ///< median seconds
  std::vector<double> samples;  ///< of the kernel that took it
  std::string which;  ///< the kernel that took it
  std::size_t bytes = 0;  ///< read, and as many written

  /// Read and written bytes over time, where a copy was timed.
  double bytes_per_second() const { return 2.0 * static_cast<double>(bytes) / best; }
};

/// Not thread-safe; one thread drives it. Calls throw simt::error when the runtime fails.
class backend {
 public:
  virtual ~backend() = default;

  virtual std::string name() const = 0;  ///< "cuda", "hip" or "sim"
  /// Makes device `index` current. @throws simt::no_device with one sentence
  virtual simt::device open(int index) = 0;
  /// Bytes that can still be allocated.
  virtual std::size_t free_memory() const = 0;

  /// Device memory of `bytes` bytes, aligned to 256; `name` is for reports of faults.
  virtual void* allocate(std::size_t bytes, const char* name) = 0;
  /// Gives back what allocate() gave.
  virtual void release(void* p) noexcept = 0;
  /// Copies `bytes` bytes to the device, and waits.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  /// Copies `bytes` bytes from the device, after all that was launched, and waits.
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  /// Sets `bytes` bytes to 0xff, a NaN in every dtype.
  virtual void poison(void* p, std::size_t bytes) = 0;

  /// Makes up the matrix x, row i at element i * shape.ld_in: nearly normal numbers with mean 0 and standard
  /// deviation `deviation`. Padding stays as it is.
  virtual void fill(void* x, dtype type, const matrix_shape& shape, std::uint64_t seed, double deviation) = 0;

  /// Launches the stage and returns at once. @throws simt::error, before any launch, if the shape cannot be
  /// run
  virtual void start(const stage_call& call) = 0;
  /// Waits for what was launched.
  virtual void wait() = 0;
  /// Launches the stage and waits. @throws simt::error as start() and wait() do
  void run(const stage_call& call) {
    start(call);
    wait();
  }
  /// What the stage's own rule launches for rows of `cols` columns; zeros if the stage takes no plan.
  virtual launch_plan rule(std::int64_t cols) const = 0;
  /// Seconds a call, by device events, for each of `repeats` batches. A batch goes through all of `calls`, as
  /// often as it takes to last longer than the clock's error, in one submission. Together the calls should
  /// exceed the L2 cache.
  virtual std::vector<double> time(const std::vector<stage_call>& calls, int repeats) = 0;
  /// Copies the first `bytes`, a multiple of 16, of calls[i].x to calls[i].y with each copy kernel, and keeps
  /// the fastest. @see time()
  virtual copy_times time_copy(const std::vector<stage_call>& calls, std::size_t bytes, int repeats) = 0;
};

/// Backends compiled into this program, the preferred one first; the simulator is always among them.
std::vector<std::unique_ptr<backend>> make_backends();

/// Device memory that frees itself.
class device_buffer {
 public:
  device_buffer() = default;
  /// Allocates; `owner` has to live longer. @throws simt::error if there is not enough memory
  device_buffer(backend& owner, std::size_t bytes, const char* name)
      : owner_(&owner), p_(owner.allocate(bytes, name)), bytes_(bytes) {}
  /// Takes over; `o` is left empty.
  device_buffer(device_buffer&& o) noexcept { *this = std::move(o); }
  /// Exchanges the two.
  device_buffer& operator=(device_buffer&& o) noexcept {
    std::swap(owner_, o.owner_);
    std::swap(p_, o.p_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~device_buffer() {
    if (p_) owner_->release(p_);
  }
  /// The address on the device; nullptr if empty.
  void* get() const { return p_; }
  /// The size asked for.
  std::size_t bytes() const { return bytes_; }

 private:
  backend* owner_ = nullptr;
  void* p_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace softmax
