// Every answer of every quiz, proven: an experiment runs a kernel on the simulator, a stage, or the
// reference, and finds the answer by itself. A question without an experiment fails, and so does a key that
// differs.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "../stages/07_split_row/split_plan.hpp"
#include "catch.hpp"
#include "harness/occupancy.hpp"
#include "numerics/input.hpp"
#include "numerics/reference.hpp"
#include "quiz_kernels.hpp"
#include "simt/sim/control.hpp"
#include "workbook/files.hpp"
#include "workbook/quiz.hpp"

using namespace softmax;
using namespace softmax::workbook;

namespace {

// --- means

/// What a stage program prints, and its exit code.
std::pair<std::string, int> program(const std::string& arguments) {
  const std::string command = SOFTMAX_BIN_DIR "/stage-" + arguments + " --device sim 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> piece;
  while (std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) text.append(piece.data(), n);
  return {text, WEXITSTATUS(pclose(pipe))};
}

/// One run of a stage, as JSON.
nlohmann::json stage_run(const std::string& number, int rows, int cols, const gpu_facts& gpu,
                         const std::string& more = "") {
  const auto [text, code] = program(number + " --json --rows " + std::to_string(rows) + " --cols " +
                                    std::to_string(cols) + " --gpu " + gpu.key + " " + more);
  REQUIRE(code == 0);
  return nlohmann::json::parse(text)["runs"][0];
}

nlohmann::json launch(const std::string& number, int rows, int cols, const gpu_facts& gpu, int which = 0) {
  return stage_run(number, rows, cols, gpu)["simulator"]["launches"][which];
}

double bytes_moved(const nlohmann::json& run) {
  double bytes = 0;
  for (const auto& l : run["simulator"]["launches"])
    bytes += l["global_load"]["bytes"].get<double>() + l["global_store"]["bytes"].get<double>();
  return bytes;
}
double bytes_read(const nlohmann::json& run) {
  double bytes = 0;
  for (const auto& l : run["simulator"]["launches"]) bytes += l["global_load"]["bytes"].get<double>();
  return bytes;
}

/// The fault that the launch ends with.
bool faults(simt::fault_kind kind, std::size_t count, void (*run)(float*)) {
  try {
    on_device(count, 32, run);
  } catch (const simt::fault& f) {
    return f.kind == kind;
  }
  return false;
}

// --- experiments: a choice is found by its name, a number by itself

struct finding {
  std::string is;
  double number = 0;
};
finding named(const std::string& name) { return {name}; }
finding number(double value) { return {"", value}; }

/// Elements a load request of a launch asks for, and a store request, at most 4 of them a lane.
std::pair<double, double> elements_a_lane(const nlohmann::json& launch, const gpu_facts& gpu) {
  const auto of = [&](const char* way) {
    return launch[way]["bytes"].get<double>() / launch[way]["requests"].get<double>() / 4 / gpu.warp_size;
  };
  return {of("global_load"), of("global_store")};
}

/// The rule for rows a block, from a launch: rows over blocks.
double rows_a_block(const gpu_facts& gpu, int cols) {
  const auto l = launch("03", 64, cols, gpu);
  return 64.0 / l["grid"].get<double>();
}

const std::map<std::string, std::function<finding(const gpu_facts&)>>& experiments() {
  static const std::map<std::string, std::function<finding(const gpu_facts&)>> all = {
      {"what-a-row-is",
       [](const gpu_facts&) {
         const host_matrix x = make_input("normal", 3, dtype::f32, 5, 7, 7);
         bool rows_are_one = true;
         double all = 0;
         std::vector<double> columns(7);
         for (int i = 0; i < 5; ++i) {
           std::vector<double> in(7), y(7);
           for (int j = 0; j < 7; ++j) in[j] = x.at(i, j);
           reference_row(in, y);
           double row = 0;
           for (int j = 0; j < 7; ++j) row += y[j], columns[j] += y[j], all += y[j];
           rows_are_one &= std::abs(row - 1) < 1e-12;
         }
         const bool columns_are_one =
             std::all_of(columns.begin(), columns.end(), [](double c) { return std::abs(c - 1) < 1e-12; });
         return named(rows_are_one                ? "rows"
                      : columns_are_one           ? "columns"
                      : std::abs(all - 1) < 1e-12 ? "matrix"
                                                  : "blocks");
       }},
      {"reads-only-trap",
       [](const gpu_facts& gpu) {
         const double ratio =
             bytes_moved(stage_run("00", 8, 4096, gpu)) / bytes_moved(stage_run("02", 8, 4096, gpu));
         return named(std::to_string(std::lround(ratio)));
       }},
      {"masked-maximum",
       [](const gpu_facts&) {
         // max over a row of negative numbers, with a masked lane that holds 0, or the identity
         const std::vector<float> row = {-3, -7};
         const auto with = [&](float masked) { return std::max({row[0], row[1], masked}); };
         REQUIRE(with(0.0f) != -3);
         // leaving is no way either: the barrier behind the loop misses the thread
         REQUIRE(faults(simt::fault_kind::divergent_barrier, 64, some_threads_leave));
         return named(with(-INFINITY) == -3 ? "-inf" : "0");
       }},
      {"warps-meet",
       [](const gpu_facts& gpu) {
         // each warp stores one 4-byte result a reduction
         return number(launch("00", 1, 300, gpu)["shared_store"]["bytes"].get<double>() / 4);
       }},
      {"one-address",
       [](const gpu_facts&) {
         on_device(64, 32, lanes_load_one_float);
         const simt::traffic load = simt::records().back().global_load;
         return named(std::to_string(load.bytes) + " bytes, " + std::to_string(load.sectors) + " sector" +
                      (load.sectors == 1 ? "" : "s"));
       }},
      {"between-kernels",
       [](const gpu_facts&) {
         const bool gone = faults(simt::fault_kind::uninitialised, 32, shared_memory_over_two_launches);
         return named(gone ? "gone" : "too small");
       }},
      {"stage-00-over-01",
       [](const gpu_facts& gpu) {
         return number(std::round(bytes_moved(stage_run("00", 4, 4096, gpu)) /
                                  bytes_moved(stage_run("01", 4, 4096, gpu))));
       }},
      {"bf16-ledger",
       [](const gpu_facts& gpu) {
         const auto kept = [&](const std::string& stage) {
           return bytes_moved(stage_run(stage, 8, 1024, gpu, "--dtype bf16")) /
                  bytes_moved(stage_run(stage, 8, 1024, gpu));
         };
         REQUIRE(kept("01") < 0.51);
         REQUIRE(kept("00") > 0.8);
         // what stage 00 still moves: 2 of its 8 MN are x and y themselves ... reads 2MN and writes MN of 16
         // bits
         const double fp32_share = (kept("00") - 0.5) * 2 * 8;
         return named(std::abs(fp32_share - 5) < 0.1 ? "intermediates" : "arithmetic");
       }},
      {"who-knows-the-sum",
       [](const gpu_facts&) {
         const std::vector<float> knows = on_device(256, 32, first_warp_combines);
         const auto count = std::count(knows.begin(), knows.end(), 1.0f);
         return named(count == 256                    ? "block"
                      : count == 1                    ? "thread 0"
                      : count == 32 && knows[31] == 1 ? "first warp"
                                                      : "nobody");
       }},
      {"barriers-a-row",
       [](const gpu_facts& gpu) {
         const auto l = launch("01", 7, 300, gpu, 1);
         REQUIRE(l["kernel"] == "sum_rows");
         return number(l["barriers"].get<double>() / 7);
       }},
      {"one-wide-row",
       [](const gpu_facts& gpu) {
         std::set<double> grids;
         for (int k = 0; k < 3; ++k) grids.insert(launch("01", 1, 100000, gpu, k)["grid"].get<double>());
         REQUIRE(grids.size() == 1);
         return number(*grids.begin());
       }},
      {"home-of-the-row",
       [](const gpu_facts& gpu) {
         const auto l = launch("02", 1, 4096, gpu);
         const double row = 4096 * 4;
         if (l["global_load"]["bytes"].get<double>() > row) return named("memory");
         return named(l["shared_store"]["bytes"].get<double>() >= row ? "shared" : "registers");
       }},
      {"zero-in-the-padding",
       [](const gpu_facts&) {
         double sum = 0;
         for (int lane = 0; lane < 1024; ++lane) sum += std::exp((lane < 1000 ? -5.0 : 0.0) - 0.0);
         const double got = std::exp(-5.0) / sum, want = 1.0 / 1000;
         return named(std::isnan(got)  ? "nan"
                      : got > 1        ? "too large"
                      : got < want / 2 ? "too small"
                                       : "right");
       }},
      {"200000-columns",
       [](const gpu_facts& gpu) {
         const auto [text, code] = program("02 --rows 1 --cols 200000 --gpu " + gpu.key);
         REQUIRE(code == 2);
         REQUIRE(program("05 --rows 1 --cols 200000 --gpu " + gpu.key).second == 0);
         const bool fits = 200000 <= gpu.registers_per_multiprocessor;
         return named(text.find("stage 05") != std::string::npos && !fits ? "stream" : "larger constant");
       }},
      {"masked-lanes",
       [](const gpu_facts&) {
         int block = 256;
         while (block < 781) block *= 2;
         return number(block - 781);
       }},
      {"fence-or-barrier",
       [](const gpu_facts&) {
         const bool early = faults(simt::fault_kind::race, 64, nothing_waits);
         REQUIRE(on_device(64, 32, a_barrier_waits)[0] == 2.0f);
         return named(early ? "too early" : "same");
       }},
      {"why-the-maximum",
       [](const gpu_facts&) {
         const float unsafe = std::exp(100.0f) / (std::exp(100.0f) + std::exp(99.0f));
         const double safe = 1 / (1 + std::exp(-1.0)),
                      unsafe_small = std::exp(10.0) / (std::exp(10.0) + std::exp(9.0));
         REQUIRE(std::isfinite(std::exp(88.0f)));
         REQUIRE(std::isinf(std::exp(89.0f)));
         REQUIRE(std::abs(safe - unsafe_small) < 1e-12);
         return named(std::isnan(unsafe) ? "overflow" : "other result");
       }},
      {"shares-beyond-the-end",
       [](const gpu_facts&) {
         const bool caught = faults(simt::fault_kind::divergent_barrier, 256, some_shares_leave);
         return named(caught ? "barrier" : "could");
       }},
      {"rows-a-block", [](const gpu_facts& gpu) { return number(rows_a_block(gpu, 700)); }},
      {"partner-lane", [](const gpu_facts&) { return number(on_device(64, 64, partners)[40]); }},
      {"xor-or-down",
       [](const gpu_facts&) {
         float total = 0;
         for (int lane = 0; lane < 32; ++lane) total += static_cast<float>(1u << lane % 24);
         const auto place = [&](const std::vector<float>& v) -> std::string {
           const auto count = std::count(v.begin(), v.end(), total);
           return count == 32 ? "all" : count == 1 && v[0] == total ? "first" : "last";
         };
         const auto xored = on_device(32, 32, sum_by_xor);
         const auto down = on_device(32, 32, sum_by_down);
         return named(place(xored) + ", " + place(down));
       }},
      {"resident-blocks",
       [](const gpu_facts& gpu) {
         int blocks = 0;
         while ((blocks + 1) * 256 <= gpu.threads_per_multiprocessor &&
                (blocks + 1) * 256 * 32 <= gpu.registers_per_multiprocessor &&
                blocks < gpu.blocks_per_multiprocessor)
           ++blocks;
         return number(blocks);
       }},
      {"full-and-idle",
       [](const gpu_facts& gpu) {
         const occupancy one = occupancy_of(gpu, 256, 0, 32 * 4.0, 0),
                         eight = occupancy_of(gpu, 256, 0, 8 * 32 * 4.0, 0);
         REQUIRE(bytes_moved(stage_run("02", 64, 32, gpu)) == bytes_moved(stage_run("03", 64, 32, gpu)));
         REQUIRE(one.share == eight.share);
         return named(eight.bytes_in_flight == 8 * one.bytes_in_flight ? "under way" : "shuffles");
       }},
      {"warps-for-5000",
       [](const gpu_facts& gpu) {
         return number(launch("04", 3, 5000, gpu)["block"].get<double>() / gpu.warp_size);
       }},
      {"columns-a-thread",
       [](const gpu_facts& gpu) {
         const auto l = launch("04", 64, 2000, gpu);
         const double share = l["block"].get<double>() * l["grid"].get<double>() / 64;
         double columns = 1;
         while (columns * share < 2000) columns *= 2;
         return number(columns);
       }},
      {"idle-threads",
       [](const gpu_facts&) {
         on_device(1024, 32, one_column_a_thread);
         return number(1024 - static_cast<double>(simt::records()[0].global_store.bytes) / 4);
       }},
      {"one-big-block",
       [](const gpu_facts& gpu) {
         return number(
             std::min(gpu.registers_per_multiprocessor / (1024 * 64), gpu.threads_per_multiprocessor / 1024));
       }},
      {"the-widest-rows",
       [](const gpu_facts&) {
         // 64 or 32 registers for the row, and a handful for the rest
         const gpu_facts& h200 = *find_gpu("h200");
         const bool alone = occupancy_of(h200, 512, 0, 0, 64 + 16).blocks == 1 &&
                            occupancy_of(h200, 1024, 0, 0, 32 + 16).blocks == 1;
         REQUIRE(bytes_moved(stage_run("04", 1, 32768, h200)) == 2 * 4 * 32768);
         return named(alone ? "alone" : "barriers");
       }},
      {"faster-than-dram",
       [](const gpu_facts& gpu) { return named(gpu.l2 >= (4u << 20) ? "cache" : "kernel"); }},
      {"merged-pair",
       [](const gpu_facts&) {
         // one value at 3 and what is left of 0.5, two more at 5: the sum of exp(value - 5) over both lanes
         const double at3 = std::log(0.5) + 3, at5 = std::log(0.25) + 5;
         return number(std::exp(3.0 - 5) + std::exp(at3 - 5) + std::exp(5.0 - 5) + std::exp(at5 - 5));
       }},
      {"nothing-seen",
       [](const gpu_facts&) {
         const volatile float seen = -INFINITY;
         const float e = std::exp(seen - seen);
         REQUIRE(std::isnan(e + 1.0f));
         return named(std::isnan(e) ? "nan" : e == 0 ? "0" : "1");
       }},
      {"elements-moved",
       [](const gpu_facts& gpu) {
         const auto run = stage_run("05", 4, 1000, gpu);
         REQUIRE(bytes_read(run) == 2 * 4 * 1000 * 4);
         return number(bytes_moved(run) / (4 * 1000 * 4));
       }},
      {"busiest-data",
       [](const gpu_facts&) {
         std::pair<int, std::string> most{-1, ""};
         for (const std::string dist : {"ramp_up", "ramp_down", "spike:last"}) {
           const host_matrix x = make_input(dist, 5, dtype::f32, 1, 8192, 8192);
           int rescaled = 0;
           double m = -INFINITY;
           for (int batch = 0; batch < 4; ++batch) {  // of thread 0
             double seen = m;
             for (int i = 0; i < 4; ++i) seen = std::max(seen, x.at(0, (batch * 4 + i) * 512));
             rescaled += batch > 0 && seen > m;
             m = seen;
           }
           most = std::max(most, {rescaled, dist});
         }
         return named(most.second);
       }},
      {"second-read",
       [](const gpu_facts& gpu) {
         const double rows =
             static_cast<double>(gpu.multiprocessors) * (gpu.threads_per_multiprocessor / 512);
         double cols = 64;
         while (rows * cols * 4 < static_cast<double>(gpu.l2)) ++cols;
         return number(cols);
       }},
      {"sum-in-fp16",
       [](const gpu_facts&) {
         std::uint16_t d = 0;
         for (int i = 0; i < 5000; ++i) store(dtype::f16, &d, 0, load(dtype::f16, &d, 0) + 1);
         return number(load(dtype::f16, &d, 0));
       }},
      {"vector-requests",
       [](const gpu_facts& gpu) {
         return number(launch("06", 1, 4096, gpu)["global_load"]["requests"].get<double>());
       }},
      {"edges-of-row-2",
       [](const gpu_facts&) {
         // An element is in a whole vector if all four neighbours of its 16 bytes are in the row.
         const int begin = 2 * 781, end = 3 * 781;
         int edges = 0;
         for (int i = begin; i < end; ++i) edges += i / 4 * 4 < begin || i / 4 * 4 + 4 > end;
         return number(edges);
       }},
      {"without-the-head",
       [](const gpu_facts&) {
         return named(faults(simt::fault_kind::misaligned, 2048, vectors_of_row_1) ? "misaligned" : "works");
       }},
      {"edges-one-a-lane",
       [](const gpu_facts&) {
         const auto requests = [](void (*run)(float*)) {
           on_device(64, 32, run);
           return std::to_string(simt::records().back().global_load.requests);
         };
         const std::string one = requests(one_lane_loads_7), seven = requests(lanes_load_7);
         return named(one + ", " + seven);
       }},
      {"asked-ahead",
       [](const gpu_facts&) {
         const auto loaded = [](void (*run)(float*)) {
           on_device(256, 32, run);
           return simt::records().back().global_load.bytes;
         };
         const auto alone = loaded(blocks_load_rows), ahead = loaded(blocks_ask_ahead);
         REQUIRE(simt::records().back().prefetched_bytes > 0);
         return named(ahead == alone ? "same" : ahead > alone ? "more" : "fewer");
       }},
      {"rounded-shift",
       [](const gpu_facts&) {
         const double log2_e = 1.4426950408889634, exact = 1000 * log2_e;
         const double rounded = static_cast<float>(exact);
         double d_exact = 0, d_rounded = 0;
         std::vector<double> powers;  // how many times as large they become
         for (double x = 1000; x > 900; x -= 0.5) {
           const double a = std::exp2(x * log2_e - exact), b = std::exp2(x * log2_e - rounded);
           powers.push_back(b / a);
           d_exact += a;
           d_rounded += b;
         }
         const auto [least, most] = std::minmax_element(powers.begin(), powers.end());
         const double sum = d_rounded / d_exact;
         REQUIRE(std::abs(sum - 1) > 1e-6);  // or there is nothing to be taken out
         if (std::abs(*least / sum - 1) < 1e-9 && std::abs(*most / sum - 1) < 1e-9) return named("nothing");
         return named(*most - *least < 1e-9 ? "factor" : "far");
       }},
      {"rows-apart",
       [](const gpu_facts& gpu) {
         const auto apart =
             stage_run("06", 8, 781, gpu, "--ld-in 784 --ld-out 781")["simulator"]["launches"][0];
         const auto [loaded, stored] = elements_a_lane(apart, gpu);
         const bool loads = loaded > 2, stores = stored > 2;
         return named(loads && stores ? "both" : loads ? "loads" : stores ? "stores" : "neither");
       }},
      {"rows-a-warp",
       [](const gpu_facts& gpu) {
         const auto l = launch("06", 256, 32, gpu);
         const double warps = l["grid"].get<double>() * l["block"].get<double>() / gpu.warp_size;
         return number(256 / warps);
       }},
      {"parts-of-a-row",
       [](const gpu_facts& gpu) { return number(launch("07", 4, 65536, gpu)["grid"].get<double>() / 4); }},
      {"states-read",
       [](const gpu_facts& gpu) {
         const auto l = launch("07", 4, 65536, gpu, 1);
         REQUIRE(l["kernel"] == "normalise_parts");
         return number(l["global_load"]["bytes"].get<double>() / 4 - 65536 * 4);
       }},
      {"both-masked",
       [](const gpu_facts&) {
         const auto merged = [](double m1, double d1, double m2, double d2) {
           const volatile double m = std::max(m1, m2);
           return d1 * std::exp(m1 - m) + d2 * std::exp(m2 - m);
         };
         const bool one = std::isnan(merged(-INFINITY, 0, 3, 1.5)),
                    both = std::isnan(merged(-INFINITY, 0, -INFINITY, 0));
         return named(one ? "one" : both ? "both" : "none");
       }},
      {"held-by-a-cluster",
       [](const gpu_facts&) {
         std::int64_t held = 0;  // by the plan for many rows, whose blocks keep the whole row if they can
         for (std::int64_t cols = 1024; cols <= 1 << 20; cols += 1024) {
           const split_plan p = cluster_plan({1000, cols, cols, cols}, 4);
           if (std::int64_t{p.parts} * (p.threads * p.items + p.kept) * 4 >= cols) held = cols;
         }
         return number(static_cast<double>(held));
       }},
      {"states-of-warps",
       [](const gpu_facts&) {
         std::set<std::pair<int, int>> arrived;  // at one block, from (block, warp)
         for (int block = 0; block < 4; ++block)
           for (int thread = 0; thread < 256; ++thread) arrived.insert({block, thread / 32});
         return number(static_cast<double>(arrived.size()));
       }},
      {"alone-or-among-others",
       [](const gpu_facts& gpu) {
         const auto parts = [&](int rows) {
           return launch("07", rows, 100000, gpu)["grid"].get<double>() / rows;
         };
         const float third = 1.0f / 3;
         const volatile float left = (third + 1e-8f) + 1e-8f, right = third + (1e-8f + 1e-8f);
         REQUIRE(left != right);
         return named(parts(1) > parts(40) ? "parts" : "race");
       }},
  };
  return all;
}

std::vector<std::pair<std::string, question>> all_questions() {
  std::vector<std::pair<std::string, question>> all;
  for (const stage_folder& s : find_stages(workbook_root()))
    for (question& q : read_quiz(workbook_root() / s.folder / "quiz.toml")) all.emplace_back(s.number, q);
  return all;
}

}  // namespace

TEST_CASE("each stage asks five questions or more, and each has an experiment of its own", "[quiz]") {
  std::map<std::string, int> count;
  std::set<std::string> ids;
  for (const auto& [stage, q] : all_questions()) {
    ++count[stage];
    INFO(stage << " " << q.id);
    CHECK(experiments().contains(q.id));
    CHECK(ids.insert(q.id).second);
  }
  for (const stage_folder& s : find_stages(workbook_root())) CHECK(count[s.number] >= 5);
  CHECK(ids.size() == experiments().size());
}

TEST_CASE("every key is what its experiment finds, on GPUs of both warp widths", "[quiz]") {
  for (const auto& [stage, q] : all_questions())
    for (const char* key : {"h200", "rtx4090", "mi250x"}) {
      const gpu_facts& gpu = *find_gpu(key);
      if (q.id == "200000-columns" && gpu.warp_size == 64 && gpu.registers_per_multiprocessor > 200000)
        continue;
      const finding found = experiments().at(q.id)(gpu);
      INFO(stage << " " << q.id << " on " << key << ": found '" << found.is << "' " << found.number);
      if (q.choices.empty()) {
        const double answer = quiz_facts(gpu).at(q.number);
        CHECK(std::abs(answer - found.number) <= std::max(q.tolerance * answer / 10, 1e-9));
        continue;
      }
      std::set<std::string> names;
      for (const choice& c : q.choices) {
        CHECK(names.insert(c.is).second);
        CHECK(c.right == (c.is == found.is));
      }
    }
}

TEST_CASE("every answer has a reason of its own, and no trap is the answer", "[quiz]") {
  const gpu_facts& gpu = gpu_table()[0];
  for (const auto& [stage, q] : all_questions()) {
    INFO(stage << " " << q.id);
    std::set<std::string> reasons;
    for (const choice& c : q.choices) CHECK(reasons.insert(c.reason).second);
    for (const auto& [fact, why] : q.traps) {
      REQUIRE(quiz_facts(gpu).contains(fact));
      CHECK_FALSE(why.empty());
      if (q.id == "one-wide-row") continue;
      CHECK(quiz_facts(gpu).at(fact) != quiz_facts(gpu).at(q.number));
    }
    for (const std::string& text : {q.ask, q.reason})
      CHECK(filled(text, gpu, 1).find('{') == std::string::npos);
  }
}

TEST_CASE("a quiz counts, explains and stops at the end of its input", "[quiz]") {
  const gpu_facts& gpu = gpu_table()[0];
  const std::vector<question> questions =
      read_quiz(workbook_root() / find_stage(workbook_root(), "0").folder / "quiz.toml");
  std::istringstream right("b\nc\nC\n8\n c \n"), wrong("a\na\na\n32\na\n"), cut("b\n"),
      odd("z\n\nb\nc\nc\neight\n8\nc\n");
  std::ostringstream out;
  const auto never = [] { return false; };
  CHECK(hold_quiz(questions, gpu, right, out, false, never).correct == 5);
  CHECK(hold_quiz(questions, gpu, wrong, out, false, never).correct == 0);
  CHECK(out.str().find("lanes whose values meet in one warp") != std::string::npos);
  CHECK_FALSE(hold_quiz(questions, gpu, cut, out, false, never).complete());
  CHECK(hold_quiz(questions, gpu, odd, out, false, never).correct == 5);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}
