// Small wrong kernels, each beside its right twin: every one is caught, at its line, for what it is, with
// warps of 32 and of 64 lanes; the twin passes. This file is compiled like a kernel file, so its kernels are
// watched.
#include <algorithm>
#include <numeric>
#include <vector>

#include "catch.hpp"
#include "harness/advice.hpp"
#include "simt/simt.hpp"
#include "source_line.hpp"
#include "wrong_kernels/barriers.cuh"
#include "wrong_kernels/memory.cuh"
#include "wrong_kernels/performance.cuh"
#include "wrong_kernels/races.cuh"

namespace {

using simt::fault_kind;

/// Sets the simulator up for one test, and back.
class simulator {
 public:
  explicit simulator(int warp_size) : saved_(simt::configuration()) {
    simt::configuration().warp_size = warp_size;
    simt::configuration().by_line = true;
    simt::clear_records();
  }
  ~simulator() { simt::configuration() = saved_; }

 private:
  simt::settings saved_;
};

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

const std::string folder = "tests/wrong_kernels/";

/// The launch must fault for the reason given, at the line that is marked with the name.
template <class F>
void check_caught(fault_kind kind, const std::string& file, const std::string& name, F&& launch) {
  INFO(name);
  try {
    launch();
  } catch (const simt::fault& f) {
    INFO(f.what());
    CHECK(simt::to_string(f.kind) == std::string(simt::to_string(kind)));
    CHECK(f.file == folder + file);
    CHECK(f.line == line_of(folder + file, name));
    const std::string text = f.what();
    CHECK(std::count(text.begin(), text.end(), '\n') <= 5);
    return;
  }
  FAIL("no fault was reported");
}

/// The same for two accesses. The second line is marked with "other", or is the first one again.
template <class F>
void check_race(const std::string& name, bool two_lines, F&& launch) {
  const std::string file = "races.cuh";
  INFO(name);
  try {
    launch();
  } catch (const simt::fault& f) {
    INFO(f.what());
    CHECK(simt::to_string(f.kind) == std::string("race"));
    CHECK(f.file == folder + file);
    CHECK(f.line == line_of(folder + file, name));
    CHECK(f.other_file == folder + file);
    CHECK(f.other_line == line_of(folder + file, two_lines ? name + " other" : name));
    const std::string text = f.what();
    CHECK(std::count(text.begin(), text.end(), '\n') <= 5);
    return;
  }
  FAIL("no race was reported");
}

/// What the profile says of the line that is marked with the name.
softmax::line_fault advice_at(const std::string& name) {
  const int line = line_of(folder + "performance.cuh", name);
  for (const auto& l : simt::records().back().lines)
    if (l.file == folder + "performance.cuh" && l.line == line) return softmax::advise(l).what;
  FAIL("the line of " << name << " was never reached");
  return {};
}

}  // namespace

TEST_CASE("races", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  floats in(1024, true, "in"), out(1024, false, "out");
  float *i = in.get(), *o = out.get();
  const auto by_width = [](auto run) { simt::with_warp_size(run); };

  SECTION("missing barrier") {
    check_race("missing_barrier", true, [&] {
      by_width([&](auto w) { simt::launch(missing_barrier_wrong<w()>, {1, 256}, i, o); });
    });
    by_width([&](auto w) { simt::launch(missing_barrier_right<w()>, {1, 256}, i, o); });
  }
  SECTION("reused shared memory") {
    check_race("reused_array", true, [&] { simt::launch(reused_array_wrong, {1, 128}, i, o); });
    simt::launch(reused_array_right, {1, 128}, i, o);
  }
  SECTION("all threads write one value") {
    check_race("all_write_one", false, [&] { simt::launch(all_write_one_wrong, {1, 128}, i, o); });
    simt::launch(all_write_one_right, {1, 128}, i, o);
  }
  SECTION("lanes that are taken to run in step") {
    check_race("warp_in_step", false, [&] {
      by_width([&](auto w) {
        simt::launch(warp_in_step_wrong<w()>, {1, static_cast<unsigned>(width)}, i, o);
      });
    });
    by_width([&](auto w) { simt::launch(warp_in_step_right<w()>, {1, static_cast<unsigned>(width)}, i, o); });
    CHECK(out.fetch()[0] == static_cast<float>(width * (width - 1) / 2));
  }
  SECTION("two blocks write one result") {
    check_race("blocks_share_a_result", false, [&] {
      simt::launch(blocks_share_a_result_wrong, {8, 64}, i, o);
    });
    simt::launch(blocks_share_a_result_right, {8, 64}, i, o);
  }
  SECTION("a block reads what its neighbour overwrites") {
    check_race("neighbour_in_place", true, [&] { simt::launch(neighbour_in_place_wrong, {8, 128}, i, o); });
    simt::launch(neighbour_in_place_right, {8, 128}, i, o);
  }
  SECTION("a row is shifted in place") {
    check_race("shift_in_place", true, [&] { simt::launch(shift_in_place_wrong, {1, 256}, i, o); });
    simt::launch(shift_in_place_right, {1, 256}, i, o);
    CHECK(in.fetch()[10] > 10.0f);
  }
}

TEST_CASE("barriers and shuffles that not all reach", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  floats in(256, true, "in"), out(256, false, "out");
  float *i = in.get(), *o = out.get();
  const auto by_width = [](auto run) { simt::with_warp_size(run); };

  SECTION("a barrier in a branch") {
    check_caught(fault_kind::divergent_barrier, "barriers.cuh", "barrier_in_branch", [&] {
      simt::launch(barrier_in_branch_wrong, {1, 256}, o, 100);
    });
    simt::launch(barrier_in_branch_right, {1, 256}, o, 100);
  }
  SECTION("a thread that returned") {
    check_caught(fault_kind::divergent_barrier, "barriers.cuh", "early_return", [&] {
      simt::launch(early_return_wrong, {1, 256}, o, 100);
    });
    simt::launch(early_return_right, {1, 256}, o, 100);
  }
  SECTION("masked lanes stay away from a shuffle") {
    check_caught(fault_kind::divergent_shuffle, "barriers.cuh", "masked_shuffle", [&] {
      by_width([&](auto w) { simt::launch(masked_shuffle_wrong<w()>, {1, 256}, i, o, 100); });
    });
    by_width([&](auto w) { simt::launch(masked_shuffle_right<w()>, {1, 256}, i, o, 100); });
  }
}

TEST_CASE("code that takes a warp to have 32 lanes, or 64", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  floats in(256, true, "in"), out(256, false, "out");
  float *i = in.get(), *o = out.get();
  const auto by_width = [](auto run) { simt::with_warp_size(run); };
  const float sum = 255 * 256 / 2;

  SECTION("shuffles over 64 lanes") {
    const auto run = [&] { simt::launch(literal_64_wrong, {1, 256}, i, o); };
    if (width == 64)
      run();
    else
      check_caught(fault_kind::divergent_shuffle, "barriers.cuh", "literal_64", run);
  }
  SECTION("shuffles over 32 lanes: the result gives it away") {
    by_width([&](auto w) { simt::launch(literal_32_wrong<w()>, {1, 256}, i, o); });
    CHECK((out.fetch()[0] == sum) == (width == 32));
    by_width([&](auto w) { simt::launch(literal_32_right<w()>, {1, 256}, i, o); });
    CHECK(out.fetch()[0] == sum);
  }
  SECTION("as many partial results as there are warps of 32") {
    const auto run = [&] {
      by_width([&](auto w) { simt::launch(partials_of_32_wrong<w()>, {1, 256}, i, o); });
    };
    if (width == 32)
      run();
    else
      check_caught(fault_kind::uninitialised, "barriers.cuh", "partials_of_32", run);
  }
}

TEST_CASE("accesses that are wrong by themselves", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  floats out(1024, false, "out");
  float* o = out.get();
  const auto by_width = [](auto run) { simt::with_warp_size(run); };

  SECTION("off by one at the end of the row") {
    floats x(5 * 100, true, "x");
    check_caught(fault_kind::out_of_bounds, "memory.cuh", "off_by_one", [&] {
      simt::launch(off_by_one_wrong, {5, 128}, x.get(), o, 100);
    });
    simt::launch(off_by_one_right, {5, 128}, x.get(), o, 100);
  }
  SECTION("partial results that no warp wrote") {
    floats in(256, true, "in");
    check_caught(fault_kind::uninitialised, "memory.cuh", "unwritten_partial", [&] {
      by_width([&](auto w) { simt::launch(unwritten_partial_wrong<w()>, {1, 256}, in.get(), o); });
    });
    by_width([&](auto w) { simt::launch(unwritten_partial_right<w()>, {1, 256}, in.get(), o); });
  }
  SECTION("scratch memory that nobody wrote") {
    floats workspace(64, false, "workspace");
    check_caught(fault_kind::uninitialised, "memory.cuh", "unwritten_workspace", [&] {
      simt::launch(unwritten_workspace_wrong, {1, 64}, workspace.get(), o);
    });
    simt::launch(unwritten_workspace_right, {1, 64}, workspace.get(), o);
  }
  SECTION("past the end of shared memory") {
    check_caught(fault_kind::out_of_bounds, "memory.cuh", "shared_index", [&] {
      simt::launch(shared_index_wrong, {1, 128, 128 * sizeof(float)}, o);
    });
    simt::launch(shared_index_right, {1, 128, 128 * sizeof(float)}, o);
  }
  SECTION("16 bytes at a multiple of 4") {
    floats x(3 * 129, true, "x");
    check_caught(fault_kind::misaligned, "memory.cuh", "misaligned_rows", [&] {
      simt::launch(misaligned_rows_wrong, {3, 32}, x.get(), o, 129);
    });
    simt::launch(misaligned_rows_right, {3, 32}, x.get(), o, 129);
  }
  SECTION("a buffer that was released, and one of the host") {
    floats gone(64, true, "gone"), kept(64, true, "kept");
    float* const p = gone.get();
    gone.free();
    std::vector<float> host(64);
    check_caught(fault_kind::use_after_free, "memory.cuh", "plain_copy", [&] {
      simt::launch(plain_copy, {1, 64}, p, o);
    });
    check_caught(fault_kind::host_memory, "memory.cuh", "plain_copy", [&] {
      simt::launch(plain_copy, {1, 64}, host.data(), o);
    });
    simt::launch(plain_copy, {1, 64}, kept.get(), o);
  }
}

TEST_CASE("what is right and slow is named by the profile", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  floats in(128 * 64 + 64, true, "in"), out(1024, false, "out");
  float *i = in.get(), *o = out.get();
  using softmax::line_fault;

  SECTION("lanes that meet in one bank") {
    simt::launch(bank_conflict_wrong, {1, 32}, i, o);
    CHECK(advice_at("bank_conflict") == line_fault::bank_conflict);
    CHECK(simt::records().back().shared_load.bank_conflicts == 32 * 31);
    simt::launch(bank_conflict_right, {1, 32}, i, o);
    CHECK(advice_at("bank_conflict right") == line_fault::none);
    CHECK(simt::records().back().shared_load.bank_conflicts == 0);
  }
  SECTION("lanes that walk down their own rows") {
    simt::launch(column_walk_wrong, {1, 128}, i, o, 64);
    CHECK(advice_at("column_walk") == line_fault::uncoalesced);
    simt::launch(column_walk_right, {1, 128}, i, o, 64);
    CHECK(advice_at("column_walk right") == line_fault::none);
  }
  SECTION("requests that begin inside a sector") {
    simt::launch(shifted_rows_wrong, {1, 128}, i, o);
    CHECK(advice_at("shifted_rows") == line_fault::misaligned);
    simt::launch(shifted_rows_right, {1, 128}, i, o);
    CHECK(advice_at("shifted_rows right") == line_fault::none);
  }
  SECTION("bytes that the block had already") {
    simt::launch(loaded_twice_wrong, {1, 128}, i, o);
    CHECK(advice_at("loaded_twice") == line_fault::loaded_again);
    simt::launch(loaded_twice_right, {1, 128}, i, o);
    CHECK(advice_at("loaded_twice right") == line_fault::none);
  }
}
