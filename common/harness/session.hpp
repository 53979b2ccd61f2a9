#pragma once
/// @file
/// One run of a stage: input, launch, check, count, time. Knows nothing of how results are shown.
#include <optional>
#include <string>
#include <vector>

#include "harness/backend.hpp"
#include "harness/devices.hpp"
#include "harness/options.hpp"
#include "harness/stage_info.hpp"
#include "harness/timing.hpp"
#include "numerics/verify.hpp"
#include "simt/sim/control.hpp"

namespace softmax {

/// The machine a run uses, and why it is that one.
struct chosen_device {
  backend* machine = nullptr;  ///< not owned
  simt::device facts;  ///< as its runtime reports them
  const gpu_facts* gpu =
      nullptr;  ///< datasheet; on the simulator the GPU it stands for; nullptr: not in the table
  bool simulated = false;  ///< no GPU: nothing is timed
  std::string note;  ///< why no GPU is used, where --device auto looked for one

  /// Of its memory: by the datasheet, or by its clock where the table has none; 0 if neither is known.
  double peak_bytes_per_second() const {
    return gpu ? gpu->peak_bytes_per_second : facts.peak_bytes_per_second;
  }
};

/// Picks the backend for --device. @throws usage_error if the one asked for cannot be used
chosen_device choose_device(const options& o, std::vector<std::unique_ptr<backend>>& backends);

/// Simulator counts held against the stage's model.
struct ledger {
  std::vector<simt::launch_record> launches;  ///< one call, in order
  std::int64_t requested_read = 0;  ///< bytes that threads asked to read
  std::int64_t requested_write = 0;  ///< bytes that threads asked to write
  std::int64_t sector_read = 0;  ///< bytes of the sectors read, 32 each
  std::int64_t sector_write = 0;  ///< bytes of the sectors written, 32 each
  std::string mismatch;  ///< every launch that did not request exactly what the model says; empty if none
};
/// Adds up the launches and compares each with its model, that of a fitted() stage.
ledger hold_against_model(const std::vector<simt::launch_record>& launches, const stage_info& stage,
                          const matrix_shape& shape, dtype type);

/// Bytes between a GPU's caches and its memory, over all launches of one call.
struct dram_traffic {
  double read_bytes = 0;  ///< from memory
  double write_bytes = 0;  ///< to memory
  std::string why_not;  ///< why they are not known; empty if they are
};

/// What one run found: the result's verdict, and counts or times.
struct run_result {
  matrix_shape shape;  ///< in elements
  dtype type = dtype::f32;  ///< of x and y
  std::string input;  ///< file or distribution
  verdict check;  ///< against the reference
  std::string damage;  ///< what was written where nothing may be written; empty if nothing
  std::optional<int> differing_repeat;  ///< first repetition whose output had other bits
  std::uint64_t output_hash = 0;  ///< of the first of several repetitions
  std::optional<ledger> counted;  ///< simulator only
  std::string fault;  ///< the simulator's report; the run stopped there
  std::optional<timing> timed;  ///< GPU only
  std::string not_timed;  ///< why, on a GPU
  std::optional<dram_traffic> dram;  ///< with --counters, on a GPU

  /// Nothing at all was wrong.
  bool pass() const {
    return check.pass && damage.empty() && fault.empty() && !differing_repeat &&
           !(counted && !counted->mismatch.empty());
  }
};

/// The best fraction of the copy kernel among runs that were timed, and where it was reached.
struct best_fraction {
  double of_copy = 0;  ///< 1 is the speed of the copy
  std::string where;  ///< "16384x781 f32, NVIDIA H200"
};
/// Nothing where a run failed, none was timed, or the matrices are smaller than the L2 cache `facts` tells
/// of: then launches, not bytes, decide.
std::optional<best_fraction> best_of(const std::vector<run_result>& results, const simt::device& facts);

/// A shape that was found to fit, and the input that goes with it.
struct planned_run {
  matrix_shape shape;  ///< in elements
  dtype type = dtype::f32;  ///< of x and y
  std::string input;  ///< file or distribution
  std::optional<host_matrix> file;  ///< what was read, with --input
};
/// The shapes that the options ask for. @throws usage_error with the first that cannot be run
std::vector<planned_run> plan_runs(const options& o, const stage_info& stage, const chosen_device& device);
/// The input of a planned run. @throws usage_error if it cannot be made
host_matrix make_run_input(const planned_run& p, const options& o);

/// Runs every shape that the options ask for. @throws usage_error before the first launch when one cannot be
/// run
std::vector<run_result> run_all(const options& o, const stage_info& stage, chosen_device& device);

}  // namespace softmax
