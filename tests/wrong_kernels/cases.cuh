#pragma once
// Each wrong kernel and its right twin as they are launched: buffers, geometry, what the simulator says, and
// which of NVIDIA's tools should see the same on a GPU. The test and the program for a GPU both launch these.
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "simt/simt.hpp"
#include "wrong_kernels/barriers.cuh"
#include "wrong_kernels/memory.cuh"
#include "wrong_kernels/performance.cuh"
#include "wrong_kernels/races.cuh"

/// Device memory, filled with 0, 1, 2 ... or not at all.
class floats {
 public:
  floats(std::size_t count, bool filled, const char* name) : count_(count) {
    void* p = nullptr;
    SIMT_CHECK(simt::allocate(&p, count * sizeof(float), name));
    p_ = static_cast<float*>(p);
    std::vector<float> ramp(count);
    std::iota(ramp.begin(), ramp.end(), 0.0f);
    if (filled) SIMT_CHECK(simt::copy_to_device(p_, ramp.data(), count * sizeof(float)));
  }
  ~floats() {
    if (p_) (void)simt::release(p_);
  }
  floats(const floats&) = delete;
  float* get() const { return p_; }
  void free() {
    SIMT_CHECK(simt::release(p_));
    p_ = nullptr;
  }
  std::vector<float> fetch() const {
    std::vector<float> values(count_);
    SIMT_CHECK(simt::copy_to_host(values.data(), p_, count_ * sizeof(float)));
    return values;
  }

 private:
  float* p_ = nullptr;
  std::size_t count_;
};

struct wrong_case {
  const char* name;  ///< of the fault; the kernels are <name>_wrong and <name>_right
  const char* file;
  const char* kind;  ///< as the simulator names it
  const char* tool;  ///< that should see it on a GPU: ncu, a tool of compute-sanitizer, or "none"
  const char* why;  ///< a sentence where no tool sees it, or not every version of one; "" else
  std::size_t in, out;  ///< elements of the two buffers
  bool filled;  ///< the first one is
  void (*wrong)(floats& in, floats& out);
  void (*right)(floats& in, floats& out);  ///< null: it has no twin
  bool on_gpu = true;  ///< false: a warp of 32 lanes shows nothing, so no GPU of NVIDIA's is asked
};

namespace wrong_kernels {

/// Calls f with the warp's width, of the device or of the simulator, as a constant.
template <class F>
void by_width(F f) {
  simt::with_warp_size(f);
}

// What the tools of NVIDIA do not look at.
constexpr const char* global_races = "racecheck looks at shared memory only";
constexpr const char* same_value =
    "racecheck said nothing on an H200 (CUDA 13.0), at its lowest level too; all threads write the same "
    "value";
constexpr const char* ended_threads =
    "synccheck said nothing on an H200 (CUDA 13.0); a barrier there waits for no thread that has ended";
constexpr const char* shuffles = "no tool looks at the lanes of a shuffle; synccheck knows barriers";
constexpr const char* at_64 = "wrong with 64 lanes only, which no NVIDIA GPU has";
constexpr const char* shared_values =
    "initcheck looks at shared memory only where it has --initcheck-address-space";
constexpr const char* host_pointers = "a GPU that reads the host's memory by itself takes it for right";

using simt::launch;

inline constexpr wrong_case wrong_cases[] = {
    // Races.
    {"missing_barrier", "races.cuh", "race", "racecheck", "", 1024, 1024, true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(missing_barrier_wrong<w()>, {1, 256}, i.get(), o.get()); });
     },
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(missing_barrier_right<w()>, {1, 256}, i.get(), o.get()); });
     }},
    {"reused_array", "races.cuh", "race", "racecheck", "", 1024, 1024, true,
     [](floats& i, floats& o) {
       launch(reused_array_wrong, {1, 128}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(reused_array_right, {1, 128}, i.get(), o.get());
     }},
    {"all_write_one", "races.cuh", "race", "none", same_value, 1024, 1024, true,
     [](floats& i, floats& o) {
       launch(all_write_one_wrong, {1, 128}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(all_write_one_right, {1, 128}, i.get(), o.get());
     }},
    {"warp_in_step", "races.cuh", "race", "racecheck", "", 1024, 1024, true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(warp_in_step_wrong<w()>, {1, w()}, i.get(), o.get()); });
     },
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(warp_in_step_right<w()>, {1, w()}, i.get(), o.get()); });
     }},
    {"blocks_share_a_result", "races.cuh", "race", "none", global_races, 1024, 1024, true,
     [](floats& i, floats& o) {
       launch(blocks_share_a_result_wrong, {8, 64}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(blocks_share_a_result_right, {8, 64}, i.get(), o.get());
     }},
    {"neighbour_in_place", "races.cuh", "race", "none", global_races, 1024, 1024, true,
     [](floats& i, floats& o) {
       launch(neighbour_in_place_wrong, {8, 128}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(neighbour_in_place_right, {8, 128}, i.get(), o.get());
     }},
    {"shift_in_place", "races.cuh", "race", "none", global_races, 1024, 1024, true,
     [](floats& i, floats& o) {
       launch(shift_in_place_wrong, {1, 256}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(shift_in_place_right, {1, 256}, i.get(), o.get());
     }},

    // Barriers and shuffles that not all reach. On today's GPUs these do not hang: a barrier waits for no
    // thread that has ended, and those that stay away end at once.
    {"barrier_in_branch", "barriers.cuh", "divergent barrier", "none", ended_threads, 256, 256, true,
     [](floats&, floats& o) {
       launch(barrier_in_branch_wrong, {1, 256}, o.get(), 100);
     },
     [](floats&, floats& o) {
       launch(barrier_in_branch_right, {1, 256}, o.get(), 100);
     }},
    {"early_return", "barriers.cuh", "divergent barrier", "none", ended_threads, 256, 256, true,
     [](floats&, floats& o) {
       launch(early_return_wrong, {1, 256}, o.get(), 100);
     },
     [](floats&, floats& o) {
       launch(early_return_right, {1, 256}, o.get(), 100);
     }},
    {"masked_shuffle", "barriers.cuh", "divergent shuffle", "none", shuffles, 256, 256, true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(masked_shuffle_wrong<w()>, {1, 256}, i.get(), o.get(), 100); });
     },
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(masked_shuffle_right<w()>, {1, 256}, i.get(), o.get(), 100); });
     }},
    {"literal_64", "barriers.cuh", "divergent shuffle", "none", shuffles, 256, 256, true,
     [](floats& i, floats& o) {
       launch(literal_64_wrong, {1, 256}, i.get(), o.get());
     },
     nullptr},
    {"literal_32", "barriers.cuh", "", "none", at_64, 256, 256, true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(literal_32_wrong<w()>, {1, 256}, i.get(), o.get()); });
     },
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(literal_32_right<w()>, {1, 256}, i.get(), o.get()); });
     },
     false},
    {"partials_of_32", "barriers.cuh", "read of uninitialised memory", "none", at_64, 256, 256, true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(partials_of_32_wrong<w()>, {1, 256}, i.get(), o.get()); });
     },
     nullptr, false},

    // Accesses that are wrong by themselves.
    {"off_by_one", "memory.cuh", "out-of-bounds access", "memcheck", "", 5 * 100, 1024, true,
     [](floats& i, floats& o) {
       launch(off_by_one_wrong, {5, 128}, i.get(), o.get(), 100);
     },
     [](floats& i, floats& o) {
       launch(off_by_one_right, {5, 128}, i.get(), o.get(), 100);
     }},
    {"unwritten_partial", "memory.cuh", "read of uninitialised memory", "initcheck", shared_values, 256, 1024,
     true,
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(unwritten_partial_wrong<w()>, {1, 256}, i.get(), o.get()); });
     },
     [](floats& i, floats& o) {
       by_width([&](auto w) { launch(unwritten_partial_right<w()>, {1, 256}, i.get(), o.get()); });
     }},
    {"unwritten_workspace", "memory.cuh", "read of uninitialised memory", "initcheck", "", 64, 1024, false,
     [](floats& i, floats& o) {
       launch(unwritten_workspace_wrong, {1, 64}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(unwritten_workspace_right, {1, 64}, i.get(), o.get());
     }},
    {"shared_index", "memory.cuh", "out-of-bounds access", "memcheck", "", 1, 1024, true,
     [](floats&, floats& o) {
       launch(shared_index_wrong, {1, 128, 128 * sizeof(float)}, o.get());
     },
     [](floats&, floats& o) {
       launch(shared_index_right, {1, 128, 128 * sizeof(float)}, o.get());
     }},
    {"misaligned_rows", "memory.cuh", "misaligned access", "memcheck", "", 3 * 129, 1024, true,
     [](floats& i, floats& o) {
       launch(misaligned_rows_wrong, {3, 32}, i.get(), o.get(), 129);
     },
     [](floats& i, floats& o) {
       launch(misaligned_rows_right, {3, 32}, i.get(), o.get(), 129);
     }},
    {"released_buffer", "memory.cuh", "use after free", "memcheck", "", 64, 1024, true,
     [](floats& i, floats& o) {
       float* const gone = i.get();
       i.free();
       launch(plain_copy, {1, 64}, gone, o.get());
     },
     [](floats& i, floats& o) {
       launch(plain_copy, {1, 64}, i.get(), o.get());
     }},
    {"host_buffer", "memory.cuh", "access to memory that is not the device's", "memcheck", host_pointers, 64,
     1024, true,
     [](floats&, floats& o) {
       static float host[64];  // outlives the launch
       launch(plain_copy, {1, 64}, host, o.get());
     },
     [](floats& i, floats& o) {
       launch(plain_copy, {1, 64}, i.get(), o.get());
     }},

    // Right results, slowly.
    {"bank_conflict", "performance.cuh", "bank conflict", "ncu", "", 128 * 64 + 64, 1024, true,
     [](floats& i, floats& o) {
       launch(bank_conflict_wrong, {1, 32}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(bank_conflict_right, {1, 32}, i.get(), o.get());
     }},
    {"column_walk", "performance.cuh", "uncoalesced", "ncu", "", 128 * 64 + 64, 1024, true,
     [](floats& i, floats& o) {
       launch(column_walk_wrong, {1, 128}, i.get(), o.get(), 64);
     },
     [](floats& i, floats& o) {
       launch(column_walk_right, {1, 128}, i.get(), o.get(), 64);
     }},
    {"shifted_rows", "performance.cuh", "misaligned", "ncu", "", 128 * 64 + 64, 1024, true,
     [](floats& i, floats& o) {
       launch(shifted_rows_wrong, {1, 128}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(shifted_rows_right, {1, 128}, i.get(), o.get());
     }},
    {"loaded_twice", "performance.cuh", "loaded again", "ncu", "", 128 * 64 + 64, 1024, true,
     [](floats& i, floats& o) {
       launch(loaded_twice_wrong, {1, 128}, i.get(), o.get());
     },
     [](floats& i, floats& o) {
       launch(loaded_twice_right, {1, 128}, i.get(), o.get());
     }},
};

}  // namespace wrong_kernels

using wrong_kernels::wrong_cases;

/// One case with buffers of its own. Keeps them until it goes, so that a result can be fetched.
class trial {
 public:
  explicit trial(const std::string& name) : trial(find(name)) {}
  explicit trial(const wrong_case& c) : what(c), in(c.in, c.filled, "in"), out(c.out, false, "out") {}
  void wrong() { what.wrong(in, out); }
  void right() { what.right(in, out); }

  const wrong_case& what;
  floats in, out;

 private:
  static const wrong_case& find(const std::string& name) {
    for (const wrong_case& c : wrong_cases)
      if (name == c.name) return c;
    throw std::runtime_error("there is no case " + name);
  }
};
