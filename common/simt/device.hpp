#pragma once
/// @file
/// What a backend says about the machine it runs on, and the sentence a user gets when there is none.
#include <cstddef>
#include <string>
#include <vector>

/// What CUDA, HIP and the simulator spell differently, under one set of names.
namespace simt {

/// Facts about one device, as its runtime reports them. A value the runtime does not give is 0.
struct device {
  std::string name;  ///< as the driver reports it
  std::string architecture;  ///< "sm_90", "gfx90a", ...
  int index = 0;  ///< among the devices of this backend, from 0
  int multiprocessors = 0;  ///< NVIDIA's SMs, AMD's compute units
  int warp_size = 0;  ///< lanes: 32 or 64
  int threads_per_multiprocessor = 0;  ///< that can be resident
  std::size_t shared_bytes_per_block = 0;  ///< with opt-in
  int cluster_blocks = 0;  ///< blocks of a cluster, at most; 0: there are no clusters
  std::size_t l2_bytes = 0;  ///< size of the L2 cache
  std::size_t memory_bytes = 0;  ///< size of device memory
  double peak_bytes_per_second = 0;  ///< memory clock x bus width where reported
  int driver_version = 0;  ///< as the runtime numbers it: 13000 is 13.0 for CUDA
  int runtime_version = 0;  ///< numbered like driver_version
};

/// A launch that was asked for: what a plan says.
struct launch_note {
  std::string kernel;  ///< with its template arguments, where the runtime can tell
  unsigned grid_x = 1;  ///< blocks in x
  unsigned grid_y = 1;  ///< blocks in y
  unsigned block = 1;  ///< threads
  std::size_t shared_bytes = 0;  ///< dynamic
  int cluster = 1;  ///< blocks of a cluster
};

/// Where not null, launches of this thread are noted there and do not run.
inline thread_local std::vector<launch_note>* noted_launches = nullptr;

/// What the runtime answered when asked for devices. Pure data, so that each answer can be tested without a
/// GPU.
struct device_query {
  bool ok = false;  ///< the count call succeeded
  std::string reason;  ///< what the runtime said when it did not
  int count = 0;  ///< devices found; meaningless unless ok
  int driver_version = 0;  ///< 0: no driver at all
  int runtime_version = 0;  ///< of the toolkit this program was built with
};

/// "13.0" from CUDA's 13000, "5.2" from HIP's 50221153.
inline std::string version_text(int version) {
  const bool hip = version >= 1000000;
  return std::to_string(version / (hip ? 10000000 : 1000)) + "." +
         std::to_string(hip ? version / 100000 % 100 : version % 1000 / 10);
}

/// Why device `index` cannot be used, in one sentence; empty when it can.
inline std::string device_problem(const device_query& q, int index, const std::string& vendor) {
  const std::string instead = ", or run on the simulator with --device sim.";
  if (!q.ok && q.driver_version == 0)
    return "No " + vendor + " driver was found: install the driver and look at it with " +
           (vendor == "NVIDIA" ? "nvidia-smi" : "rocminfo") + instead;
  if (!q.ok && q.driver_version < q.runtime_version)
    return "The " + vendor + " driver supports version " + version_text(q.driver_version) +
           ", but this program was built with toolkit " + version_text(q.runtime_version) +
           ": update the driver or build with an older toolkit" + instead;
  if (!q.ok)
    return "The " + vendor + " runtime found no device (" + q.reason + "): check the driver" + instead;
  if (q.count == 0) return "There is no " + vendor + " GPU in this machine: use one that has it" + instead;
  if (index < 0 || index >= q.count)
    return "There is no " + vendor + " GPU number " + std::to_string(index) + ": this machine has " +
           std::to_string(q.count) + ", counted from 0" + instead;
  return "";
}

}  // namespace simt
