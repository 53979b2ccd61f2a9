#include "workbook/quiz.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <charconv>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>

#include "harness/occupancy.hpp"
#include "harness/usage_error.hpp"
#include "workbook/exercise_info.hpp"
#include "workbook/files.hpp"
#include "workbook/kernel_text.hpp"
#include "workbook/style.hpp"

namespace softmax::workbook {

std::map<std::string, double> quiz_facts(const gpu_facts& gpu) {
  const double lanes = gpu.warp_size, mib = 1024 * 1024;
  std::map<std::string, double> f;
  f["lanes"] = lanes;
  f["multiprocessors"] = gpu.multiprocessors;
  f["thread_slots"] = gpu.threads_per_multiprocessor;
  f["registers"] = gpu.registers_per_multiprocessor;
  f["l2_mib"] = static_cast<double>(gpu.l2) / mib;
  f["warps_of_256"] = 256 / lanes;
  f["threads_of_256"] = 256;
  f["shuffle_steps"] = std::log2(lanes);
  f["blocks_256_32"] = occupancy_of(gpu, 256, 0, 0, 32).blocks;
  f["blocks_256_by_threads"] = static_cast<double>(gpu.threads_per_multiprocessor) / 256;
  f["blocks_1024_64"] = occupancy_of(gpu, 1024, 0, 0, 64).blocks;
  f["blocks_512"] = occupancy_of(gpu, 512, 0, 0, 0).blocks;
  f["masked_781"] = static_cast<double>(power_above(781) - 781);
  f["masked_781_whole_warps"] = static_cast<double>(ceiling(781, 32) * 32 - 781);
  f["masked_1024_256"] = 1024 - 256;
  f["rows_700"] = 4;
  f["rows_700_unrounded"] = 5;  // 4096 / 700, rounded down
  f["partner_of_40"] = 40 ^ 16;
  f["partner_of_40_from_start"] = (40 ^ 16) % 32;
  f["barriers_sum_rows"] = 4;
  f["barriers_reduction"] = 2;
  f["warps_5000"] = 8;
  f["columns_2000"] = static_cast<double>(power_above(ceiling(2000, gpu.warp_size * 4 / 2)));
  f["columns_2000_one_row"] =
      static_cast<double>(power_above(ceiling(2000, std::int64_t{gpu.warp_size} * 4)));
  f["merged_sum"] = 1.5 * std::exp(-2.0) + 1.25;
  f["merged_unscaled"] = 2.75;
  f["elements_online"] = 3;
  f["elements_fused"] = 2;
  f["elements_three_pass"] = 4;
  f["fp16_stall"] = 2048;
  f["fp16_largest"] = 65504;
  f["fp16_terms"] = 5000;
  f["ratio_00_01"] = 2;
  f["ratio_reads"] = 5.0 / 3;
  f["one"] = 1;
  f["l2_width"] = static_cast<double>(gpu.l2) / (4.0 * f["blocks_512"] * gpu.multiprocessors);
  f["l2_width_one_block"] = static_cast<double>(gpu.l2) / (4.0 * gpu.multiprocessors);
  f["l2_width_alone"] = static_cast<double>(gpu.l2) / 4.0;
  f["vectors_4096"] = 4096 * 4 / 16;
  f["requests_4096_vectors"] = 4096 * 4 / 16 / lanes;
  f["requests_4096_floats"] = 4096 / lanes;
  f["edges_row_0"] = 781 % 4;
  f["head_row_2"] = 4 - 2 * 781 % 4;
  f["tail_row_2"] = (781 - f["head_row_2"]) - std::floor((781 - f["head_row_2"]) / 4) * 4;
  f["edges_row_2"] = f["head_row_2"] + f["tail_row_2"];
  f["rows_a_warp_32"] = lanes / (32 * 4 / 16);
  f["rows_a_block_32"] = 128 / (32 * 4 / 16);
  f["blocks_wanted"] = 2 * 132;
  f["parts_by_blocks"] = f["blocks_wanted"] / 4;
  f["parts_4_65536"] = 65536 / 2048;
  f["states_written_32"] = 32 * 8;
  f["states_read_32"] = 32 * 32 * 8;
  f["columns_held_block"] = 256 * 8 * 4 + 200 * 1024 / 4;
  f["columns_held"] = 16 * f["columns_held_block"];
  f["columns_held_registers"] = 16 * 256 * 8 * 4;
  f["states_warps"] = 256 / 32;
  f["states_blocks"] = 4;
  f["states_cluster"] = f["states_blocks"] * f["states_warps"];
  return f;
}

std::string filled(const std::string& text, const gpu_facts& gpu, double answer) {
  const std::map<std::string, double> facts = quiz_facts(gpu);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto close = text[i] == '{' ? text.find('}', i) : std::string::npos;
    const std::string name = close == std::string::npos ? "" : text.substr(i + 1, close - i - 1);
    if (name == "gpu")
      out += gpu.name;
    else if (name == "answer")
      out += answer >= 1000 ? fmt::format("{:.0f}", answer) : fmt::format("{:.4g}", answer);
    else if (facts.contains(name))
      out += fmt::format("{:.6g}", facts.at(name));
    else {
      out += text[i];
      continue;
    }
    i = close;
  }
  return out;
}

std::vector<question> read_quiz(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) -> usage_error {
    return usage_error(fmt::format("{}: {}.", file.string(), what));
  };
  toml::table root;
  try {
    root = toml::parse(read_text(file), file.string());
  } catch (const toml::parse_error& e) {
    throw refuse(fmt::format("line {}: {}", e.source().begin.line, e.description()));
  }
  std::vector<question> all;
  std::set<std::string> ids;
  const auto* questions = root["question"].as_array();
  if (!questions) throw refuse("it holds no [[question]]");
  for (const auto& node : *questions) {
    const toml::table* t = node.as_table();
    if (!t) throw refuse("a question is no table");
    question q;
    q.id = (*t)["id"].value_or(std::string());
    if (q.id.empty() || !ids.insert(q.id).second)
      throw refuse("a question needs an id of its own, not '" + q.id + "'");
    const auto need = [&](const toml::table& from, const char* key) {
      const std::string value = from[key].value_or(std::string());
      if (value.empty()) throw refuse("question " + q.id + " has no " + key);
      return value;
    };
    q.ask = need(*t, "ask");
    if (const auto* choices = (*t)["choice"].as_array()) {
      int right = 0;
      for (const auto& entry : *choices) {
        const toml::table* c = entry.as_table();
        if (!c) throw refuse("question " + q.id + ": a choice is no table");
        q.choices.push_back(
            {need(*c, "text"), need(*c, "is"), need(*c, "reason"), (*c)["right"].value_or(false)});
        right += q.choices.back().right;
      }
      if (right != 1 || q.choices.size() < 2)
        throw refuse("question " + q.id + " needs one right choice of several");
    } else {
      q.number = need(*t, "number");
      q.reason = need(*t, "reason");
      q.tolerance = (*t)["tolerance"].value_or(0.0);
      if (!quiz_facts(gpu_table()[0]).contains(q.number))
        throw refuse("question " + q.id + ": no fact is named " + q.number);
      if (const auto* traps = (*t)["traps"].as_table())
        for (const auto& [key, value] : *traps)
          q.traps[std::string(key.str())] = value.value_or(std::string());
    }
    all.push_back(q);
  }
  return all;
}

std::string folded(const std::string& text, std::size_t width, std::size_t indent) {
  std::istringstream words(text);
  std::string out, line;
  for (std::string word; words >> word;) {
    const std::size_t used = indent + line.size();
    if (!line.empty() && used + 1 + word.size() > width) {
      out += line + "\n" + std::string(indent, ' ');
      line = word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line;
}

namespace {

constexpr std::size_t width = 78;

constexpr double least_tolerance = 1e-9;  // of a number that a person writes

/// What is said to a number that is neither right nor a trap.
std::string plain_miss(const question& q) { return "It is {answer}. " + q.reason; }

/// Judges one answer. @returns nothing if it is no answer at all
std::optional<std::pair<bool, std::string>> judge_answer(const question& q, const gpu_facts& gpu,
                                                         const std::string& answer) {
  if (!q.choices.empty()) {
    std::string letter = trimmed(answer);
    if (letter.size() == 2 && (letter[1] == ')' || letter[1] == '.')) letter.pop_back();
    const std::size_t index =
        letter.size() == 1 ? static_cast<std::size_t>(std::tolower(letter[0]) - 'a') : 99;
    if (index >= q.choices.size()) return std::nullopt;
    return std::pair(q.choices[index].right, filled(q.choices[index].reason, gpu));
  }
  std::string digits = trimmed(answer);
  double value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  const std::map<std::string, double> facts = quiz_facts(gpu);
  const double right = facts.at(q.number);
  const auto near = [&](double target) {
    return std::abs(value - target) <= std::max(q.tolerance * std::abs(target), least_tolerance);
  };
  if (near(right)) return std::pair(true, filled(q.reason, gpu, right));
  for (const auto& [fact, why] : q.traps)
    if (facts.contains(fact) && near(facts.at(fact))) return std::pair(false, filled(why, gpu, right));
  return std::pair(false, filled(plain_miss(q), gpu, right));
}

nlohmann::json question_json(const question& q, const gpu_facts& gpu) {
  nlohmann::json out = {{"id", q.id}, {"ask", filled(q.ask, gpu)}};
  if (!q.choices.empty()) {
    for (const choice& c : q.choices)
      out["choices"].push_back(
          {{"text", filled(c.text, gpu)}, {"right", c.right}, {"reason", filled(c.reason, gpu)}});
    return out;
  }
  const std::map<std::string, double> facts = quiz_facts(gpu);
  const double right = facts.at(q.number);
  const auto key = [&](double value, const std::string& reason) -> nlohmann::json {
    return {{"value", value},
            {"within", std::max(q.tolerance * std::abs(value), least_tolerance)},
            {"reason", filled(reason, gpu, right)}};
  };
  out["number"] = key(right, q.reason);
  out["traps"] = nlohmann::json::array();
  for (const auto& [fact, why] : q.traps)
    if (facts.contains(fact)) out["traps"].push_back(key(facts.at(fact), why));
  out["miss"] = filled(plain_miss(q), gpu, right);
  return out;
}

}  // namespace

std::string quiz_json(const std::vector<question>& questions, const std::string& stage) {
  nlohmann::json out = {{"stage", stage}};
  for (const gpu_facts& gpu : gpu_table()) {
    nlohmann::json& entry = out["gpus"].emplace_back();
    entry = {{"key", gpu.key}, {"name", gpu.name}};
    for (const question& q : questions) entry["questions"].push_back(question_json(q, gpu));
  }
  return out.dump(2);
}

quiz_result hold_quiz(const std::vector<question>& questions, const gpu_facts& gpu, std::istream& in,
                      std::ostream& out, bool prompts, const std::function<bool()>& interrupted) {
  quiz_result result{.total = static_cast<int>(questions.size())};
  for (const question& q : questions) {
    out << "\n"
        << bold(fmt::format("{}. ", result.asked + 1)) << folded(filled(q.ask, gpu), width, 3) << "\n";
    for (std::size_t i = 0; i < q.choices.size(); ++i)
      out << "   " << static_cast<char>('a' + i) << ") " << folded(filled(q.choices[i].text, gpu), width, 6)
          << "\n";
    const std::string ask = q.choices.empty()
                                ? "a number"
                                : fmt::format("a to {}", static_cast<char>('a' + q.choices.size() - 1));
    for (;;) {
      if (prompts) out << "   " << ask << ": " << std::flush;
      std::string answer;
      if (!std::getline(in, answer) || interrupted()) return result;
      if (!prompts) out << "   " << ask << ": " << trimmed(answer).substr(0, 40) << "\n";
      const auto verdict = judge_answer(q, gpu, answer);
      if (!verdict) {
        out << "   '" << trimmed(answer).substr(0, 40) << "' is no answer here: write " << ask << ".\n";
        continue;
      }
      ++result.asked;
      result.correct += verdict->first;
      const std::string head = verdict->first ? "right. " : "wrong. ";
      out << "   " << (verdict->first ? green(head) : red(head)) << folded(verdict->second, width, 10)
          << "\n";
      break;
    }
  }
  return result;
}

}  // namespace softmax::workbook
