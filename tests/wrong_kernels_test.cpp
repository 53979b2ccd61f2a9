// Small wrong kernels, each beside its right twin: every one is caught, at its line, for what it is, with
// warps of 32 and of 64 lanes; the twin passes. This file is compiled like a kernel file, so its kernels are
// watched.
#include <algorithm>
#include <set>

#include "catch.hpp"
#include "harness/advice.hpp"
#include "simt/simt.hpp"
#include "source_line.hpp"
#include "wrong_kernels/cases.cuh"

namespace {

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

const std::string folder = "tests/wrong_kernels/";

/// What the wrong kernel must fault for, and where: at the line that is marked with its name. A race names a
/// second line, which is marked with "other", or is the first one again.
void check_caught(const std::string& name) {
  trial t(name);
  const std::string file = folder + t.what.file;
  // One kernel for a buffer that is released and one of the host.
  const std::string mark = name == "released_buffer" || name == "host_buffer" ? "plain_copy" : name;
  INFO(name);
  try {
    t.wrong();
  } catch (const simt::fault& f) {
    INFO(f.what());
    CHECK(simt::to_string(f.kind) == std::string(t.what.kind));
    CHECK(f.file == file);
    CHECK(f.line == line_of(file, mark));
    if (f.kind == simt::fault_kind::race) {
      const std::set<std::string> one_line = {"all_write_one", "warp_in_step", "blocks_share_a_result"};
      CHECK(f.other_file == file);
      CHECK(f.other_line == line_of(file, one_line.count(name) ? name : name + " other"));
    }
    const std::string text = f.what();
    CHECK(std::count(text.begin(), text.end(), '\n') <= 5);
    return;
  }
  FAIL("no fault was reported");
}

/// What the profile says of the line that is marked with the name.
std::string advice_at(const std::string& name) {
  const int line = line_of(folder + "performance.cuh", name);
  for (const auto& l : simt::records().back().lines)
    if (l.file == folder + "performance.cuh" && l.line == line)
      return softmax::to_string(softmax::advise(l).what);
  FAIL("the line of " << name << " was never reached");
  return {};
}

}  // namespace

TEST_CASE("wrong kernels fault, their twins do not", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);
  int found = 0;
  for (const wrong_case& c : wrong_cases) {
    if (c.file == std::string("performance.cuh") || c.name == std::string("literal_32")) continue;
    DYNAMIC_SECTION(c.name << " at " << width) {
      const bool only_at_32 = c.name == std::string("literal_64");
      const bool only_at_64 = c.name == std::string("partials_of_32");
      if ((only_at_32 && width == 64) || (only_at_64 && width == 32))
        trial(c).wrong();
      else
        check_caught(c.name);
      if (c.right) trial(c).right();
    }
    ++found;
  }
  CHECK(found == 19);
}

TEST_CASE("results of the twins", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);

  SECTION("lanes that are taken to run in step") {
    trial t("warp_in_step");
    t.right();
    CHECK(t.out.fetch()[0] == static_cast<float>(width * (width - 1) / 2));
  }
  SECTION("a row is shifted in place") {
    trial t("shift_in_place");
    t.right();
    CHECK(t.in.fetch()[10] == 11.0f);
  }
  SECTION("shuffles over 32 lanes: the result gives it away") {
    const float sum = 255 * 256 / 2;
    trial t("literal_32");
    t.wrong();
    CHECK((t.out.fetch()[0] == sum) == (width == 32));
    t.right();
    CHECK(t.out.fetch()[0] == sum);
  }
}

TEST_CASE("what is right and slow is named by the profile", "[wrong]") {
  const int width = GENERATE(32, 64);
  const simulator guard(width);

  for (const std::string name : {"bank_conflict", "column_walk", "shifted_rows", "loaded_twice"}) {
    INFO(name);
    trial t(name);
    t.wrong();
    CHECK(advice_at(name) == t.what.kind);
    t.right();
    CHECK(advice_at(name + " right") == "");
  }
  trial t("bank_conflict");
  t.wrong();
  CHECK(simt::records().back().shared_load.bank_conflicts == 32 * 31);
  t.right();
  CHECK(simt::records().back().shared_load.bank_conflicts == 0);
}
