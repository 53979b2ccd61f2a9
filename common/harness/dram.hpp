#pragma once
/// @file
/// Bytes that reached a GPU's memory, by its hardware counters.
#include <string>
#include <vector>

#include "harness/session.hpp"

namespace softmax {

/// Reads the output of `ncu --csv --page raw --print-units base`: the sums of dram__bytes_read.sum and
/// dram__bytes_write.sum over all launches in it. `launches`: how many there must be.
dram_traffic parse_counters(const std::string& csv, std::size_t launches);

/// Runs this program once more under Nsight Compute and reads the counters of its launches. Takes seconds.
/// Where that is not possible, `why_not` says so, and what to do.
dram_traffic measure_dram(const planned_run& run, const options& o, const stage_info& stage,
                          const chosen_device& device);

}  // namespace softmax
