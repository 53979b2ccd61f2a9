// What exercises are made of: skeletons cut from the kernels, edits, predictions, progress, and processes
// that are watched.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "catch.hpp"
#include "harness/session.hpp"
#include "harness/usage_error.hpp"
#include "workbook/diagnosis.hpp"
#include "workbook/exercise_info.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/prediction.hpp"
#include "workbook/progress.hpp"
#include "workbook/supervisor.hpp"

using namespace softmax;
using namespace softmax::workbook;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone afterwards.
class scratch {
 public:
  scratch() : path_(fs::temp_directory_path() / ("workbook-" + std::to_string(getpid()))) {
    fs::create_directory(path_);
  }
  ~scratch() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const char* const kernel = R"(#pragma once
// A kernel. Moves, in elements: reads MN. Two rows.
int a() {
  // exercise a: give back one; starts as `return 0;`
  return 1;
}
void b() {
  int x = 0;
  // exercise b: count
  // up to two
  for (int i = 0; i < 2; ++i) {
    ++x;
  }
  // end
  use(x);
}
)";

stage_info example() {
  stage_info s;
  s.launches = {
      {.kernel = "first", .reads_storage = {.mn = 5}, .reads_f32 = {.m = 2}, .writes_storage = {.mn = 3}}};
  return s;
}

std::string graded(const std::string& what, const formula& f) {
  return grade_formula(what, f, example()).text;
}

}  // namespace

TEST_CASE("a skeleton is the kernel without its regions", "[skeleton]") {
  const std::vector<region> regions = find_regions(kernel);
  REQUIRE(regions.size() == 2);
  CHECK(regions[0].task == "give back one");
  CHECK(regions[0].stub == "return 0;");
  CHECK(regions[1].task == "count up to two");
  CHECK((regions[1].first == 11 && regions[1].last == 13));

  const std::string skeleton = make_skeleton(kernel, "stages/07_new");

  CHECK(skeleton.find("return 1;") == std::string::npos);
  CHECK(skeleton.find("++x") == std::string::npos);
  CHECK(skeleton.find("// TODO(7a): give back one\n  return 0;") != std::string::npos);
  CHECK(skeleton.find("// TODO(7b): count up to two\n  use(x);") != std::string::npos);
  CHECK(skeleton.find("reads MN") == std::string::npos);
  CHECK(open_regions(skeleton, kernel, "stages/07_new").size() == 2);
  CHECK(open_regions(kernel, kernel, "stages/07_new").empty());
}

TEST_CASE("a region is open until something is written in it", "[skeleton]") {
  std::string half = make_skeleton(kernel, "stages/07_new");
  half.insert(half.find("  use(x);"), "  x = 2;\n");
  const auto open = open_regions(half, kernel, "stages/07_new");
  REQUIRE(open.size() == 1);
  CHECK(open[0].name == "a");
}

TEST_CASE("every kernel has one to three regions, with hints at three levels", "[skeleton]") {
  for (const stage_folder& s : find_stages(workbook_root())) {
    INFO(s.folder);
    const std::string text = read_text(workbook_root() / s.folder / "kernel.cuh");
    const auto regions = find_regions(text);
    CHECK((!regions.empty() && regions.size() <= 3));
    const std::string hints = read_text(workbook_root() / s.folder / "hints.toml");
    for (const region& r : regions) {
      const auto at = hints.find("\n[" + r.name + "]\n");
      REQUIRE(at != std::string::npos);
      const std::string part = hints.substr(at + 1, hints.find("\n[", at + 1) - at);
      for (const char* level : {"nudge = \"", "localise = \"", "near = \""})
        CHECK(part.find(level) != std::string::npos);
    }
    const std::string skeleton = make_skeleton(text, s.folder);
    CHECK(open_regions(skeleton, text, s.folder).size() == regions.size());
    for (const std::string& line : lines_of(skeleton)) {
      CHECK(line.find("// exercise") == std::string::npos);
      CHECK(line.size() <= 115);
    }
  }
}

TEST_CASE("an edit whose lines are not there exactly once is an error", "[edit]") {
  const auto changed = [](const std::string& find) {
    return apply_edits(kernel,
                       parse_wrong_solution("w", "# expect: x\n# why: y\n\n-" + find + "\n+  return 2;\n"));
  };
  CHECK(changed("return 1;").find("  return 2;") != std::string::npos);
  CHECK_THROWS_WITH(changed("return 5;"), Catch::Contains("stands 0 times"));
  CHECK_THROWS_WITH(changed("}"), Catch::Contains("stands 3 times"));
  CHECK_THROWS(parse_wrong_solution("w", "# why: no label\n\n-a\n+b\n"));
}

TEST_CASE("a prediction that is off is told which term", "[prediction]") {
  CHECK(grade_formula(
            "reads", [](auto m, auto n) { return 5 * m * n + 2 * m; }, example())
            .right);
  CHECK_FALSE(grade_formula(
                  "reads", [](auto, auto) { return 0; }, example())
                  .attempted);
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 7 * m * n; }),
             Catch::Contains("of M values charged as MN"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 8 * m * n + 2 * m; }),
             Catch::Contains("reads and writes together"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 3 * m * n; }),
             Catch::Contains("those are the writes"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 5 * m * n + 3 * m; }),
             Catch::Contains("you say 5MN+3M, counted 5MN+2M: M comes"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 4 * m * n + 2 * m; }),
             Catch::Contains("MN comes from first 5 times"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return 5 * m * n + 2 * n; }),
             Catch::Contains("no term goes with N"));
  CHECK_THAT(graded("reads", [](auto m, auto n) { return m * m * n; }), Catch::Contains("at M="));
  for (int a = 0; a < 9; ++a)
    CHECK(graded("writes", [a](auto m, auto n) { return a * m * n + (8 - a) * m; }).size() <= 78);
}

TEST_CASE("a prediction is held to the counts of each shape", "[prediction]") {
  stage_info s;
  s.fit = [](stage_info& stage, const matrix_shape& shape, dtype, int) {
    stage.launches = {{.kernel = "only", .reads_storage = {.mn = shape.cols > 1000 ? 2 : 1}}};
  };
  const auto reads = [&](std::int64_t wide) {
    return grade_formula(
        "reads", [wide](auto m, auto n) { return (n > 1000 ? wide : 1) * m * n; }, s);
  };
  CHECK(reads(2).right);
  CHECK_FALSE(reads(1).right);
  CHECK_THAT(reads(3).text, Catch::Contains("at M=5 N=4097 you say 61455, counted 40970"));
}

TEST_CASE("columns of a row that is taken by vectors", "[exercise]") {
  const exercise_case c{{3, 13, 13, 13}, dtype::f32, 32};
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t head = (4 - row * 13 % 4) % 4, vectors = (13 - head) / 4;
    for (std::int64_t col = 0; col < 13; ++col) {
      const vector_column v = in_vectors(c, row, col);
      CHECK(v.edge == (col < head || col >= head + 4 * vectors));
      CHECK(v.number == (!v.edge ? (col - head) / 4 : col < head ? col : col - 4 * vectors));
    }
  }
  CHECK(in_vectors({{2, 2, 3, 3}, dtype::bf16, 32}, 1, 1).edge);
  CHECK_FALSE(rows_apart(c));
  CHECK(rows_apart({{2, 8, 9, 11}, dtype::f16, 32}));
}

TEST_CASE("progress keeps what it does not understand, and is written whole", "[progress]") {
  const scratch folder;
  write_text(folder.path() / "progress.txt",
             "garbage \x01\xff\nquiz 01 2 / 5\nquiz 01\n\nfuture 7 things\nquiz 01 3 / 5");
  progress p(folder.path());
  CHECK(p.get("quiz 01") == "3 / 5");
  CHECK(p.get("quiz 0").empty());
  CHECK(p.number("hint 01") == 0);
  p.set("hint 01", "2");
  p.set("quiz 01", "5 / 5");
  p.save();

  const std::string text = read_text(folder.path() / "progress.txt");
  CHECK(text.find("garbage \x01\xff\n") != std::string::npos);
  CHECK(text.find("future 7 things\n") != std::string::npos);
  CHECK(text.find("3 / 5") == std::string::npos);
  CHECK(progress(folder.path()).number("hint 01") == 2);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("the best fraction of a copy is kept, and only that", "[progress]") {
  const scratch folder;
  const auto kept = [&] { return progress(folder.path()).get("copy 02"); };
  CHECK_FALSE(record_best_copy(folder.path(), "02", std::nan(""), "nowhere"));
  CHECK_FALSE(record_best_copy(folder.path(), "02", -1, "nowhere"));
  CHECK(fs::is_empty(folder.path()));
  CHECK(record_best_copy(folder.path(), "02", 0.8, "16384x781 f32, a GPU"));
  CHECK(kept() == "0.800 16384x781 f32, a GPU");
  CHECK_FALSE(record_best_copy(folder.path(), "02", 0.8004, "elsewhere"));
  CHECK_FALSE(record_best_copy(folder.path(), "02", 0.7, "elsewhere"));
  CHECK(record_best_copy(folder.path(), "02", 0.95, "elsewhere"));
  CHECK(kept() == "0.950 elsewhere");
  CHECK(record_best_copy(folder.path(), "03", 0.1, "elsewhere"));
  CHECK(progress(folder.path()).real("copy 03") == 0.1);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("runs that failed, were not timed or fit the cache have no best fraction", "[progress]") {
  const auto run = [](std::int64_t rows, double seconds) {
    run_result r{.shape = {rows, 1024, 1024, 1024}};
    r.check.pass = true;
    r.timed = timing{.seconds = seconds};
    r.timed->copy = {.best = 1e-3, .bytes = 4 << 20};
    return r;
  };
  simt::device gpu;
  gpu.name = "a GPU";
  gpu.l2_bytes = 1 << 20;
  // 8 MiB in 2 ms, where the copy kernel moves them in 1 ms; then half of that in as much time
  const auto best = best_of({run(512, 2e-3), run(1024, 2e-3)}, gpu);
  REQUIRE(best);
  CHECK(std::abs(best->of_copy - 0.5) < 1e-9);
  CHECK(best->where == "1024x1024 f32, a GPU");
  run_result wrong = run(1024, 1e-3), untimed = run(1024, 1e-3);
  wrong.check.pass = false;
  untimed.timed.reset();
  CHECK_FALSE(best_of({run(1024, 2e-3), wrong}, gpu));
  CHECK_FALSE(best_of({untimed}, gpu));
  CHECK_FALSE(best_of({}, gpu));
  gpu.l2_bytes = 64 << 20;
  CHECK_FALSE(best_of({run(1024, 2e-3)}, gpu));
}

TEST_CASE("a file that cannot be written leaves nothing behind", "[progress]") {
  const scratch folder;
  fs::create_directory(folder.path() / "progress.txt");
  CHECK_THROWS_AS(write_text(folder.path() / "progress.txt", "text"), usage_error);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a supervised body ends, hangs or crashes", "[supervisor]") {
  const supervised fine = supervise(20, [](const announce& step) {
    step("one");
    return 7;
  });
  CHECK((fine.how == supervised::end::finished && fine.code == 7 && fine.step == "one"));
  const supervised hangs = supervise(0.2, [](const announce& step) {
    step("two");
    for (volatile bool for_ever = true; for_ever;) continue;
    return 0;
  });
  CHECK((hangs.how == supervised::end::endless && hangs.step == "two"));
  const supervised crash = supervise(20, [](const announce&) -> int {
    std::fputs("last words\n", stderr);
    std::fflush(nullptr);
    _exit(1);
  });
  CHECK((crash.how == supervised::end::crashed && crash.last_words == "last words\n"));
}

TEST_CASE("labels are known once, with a meaning that fits a line", "[diagnosis]") {
  std::set<std::string> seen;
  for (const label_facts& l : labels()) {
    INFO(l.label);
    CHECK(seen.insert(l.label).second);
    CHECK((!l.meaning.empty() && l.meaning.size() <= 78));
  }
}

TEST_CASE("the line to look at is the learner's own", "[diagnosis]") {
  std::string learner = kernel;
  learner.replace(learner.find("return 1;"), 9, "return 3;");
  CHECK(line_to_look_at(learner, kernel, {.label = "unknown"}).line == 5);
  learner = kernel;
  learner.erase(learner.find("  int x = 0;\n"), 13);
  const place gap = line_to_look_at(learner, kernel, {.label = "unknown"});
  CHECK((gap.missing && gap.line == 10));
}
