#include "harness/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/advice.hpp"
#include "harness/occupancy.hpp"
#include "harness/painter.hpp"
#include "harness/report.hpp"
#include "harness/stage_memory.hpp"

#ifndef SOFTMAX_SOURCE_ROOT
#define SOFTMAX_SOURCE_ROOT "."
#endif

namespace softmax {
namespace {

constexpr std::size_t width = 100;

/// The source tree that the program was built from, if it is still there.
class source_tree {
 public:
  /// All lines of a file; none if it cannot be read.
  const std::vector<std::string>& lines(const std::string& file) {
    auto [entry, is_new] = known_.try_emplace(file);
    if (is_new && !file.empty()) {
      const char* elsewhere = std::getenv("SOFTMAX_SOURCES");
      std::ifstream source(std::string(elsewhere ? elsewhere : SOFTMAX_SOURCE_ROOT) + "/" + file);
      for (std::string text; std::getline(source, text);) entry->second.push_back(text);
    }
    return entry->second;
  }
  /// One line, without the space around it; empty if it cannot be read.
  std::string line(const std::string& file, int number) {
    const auto& all = lines(file);
    if (number < 1 || number > static_cast<int>(all.size())) return "";
    const std::string& text = all[number - 1];
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string::npos) return "";
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
  }

 private:
  std::map<std::string, std::vector<std::string>> known_;
};

/// A launch seen from a multiprocessor.
struct launch_view {
  explicit launch_view(const simt::launch_record& k, const chosen_device& d)
      : record(k),
        full(occupancy_of(*d.gpu, static_cast<int>(k.block), k.shared_bytes + k.static_shared_bytes,
                          static_cast<double>(k.loaded_at_once), 0)),
        needed(bytes_in_flight_needed(*d.gpu)),
        lines(k.lines) {
    const auto warps = static_cast<double>((k.block + d.facts.warp_size - 1) / d.facts.warp_size);
    barriers = k.grid > 0 ? static_cast<double>(k.barriers) / k.grid : 0;
    shuffles = k.grid > 0 ? static_cast<double>(k.shuffles) / k.grid / warps : 0;
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return cost_of(a) > cost_of(b); });
    for (const auto& l : lines) cost += cost_of(l);
  }
  double share(const simt::line_record& l) const {
    return cost > 0 ? static_cast<double>(cost_of(l)) / static_cast<double>(cost) : 0;
  }

  const simt::launch_record& record;
  occupancy full;
  double needed;
  std::vector<simt::line_record> lines;  // the costliest first
  std::uint64_t cost = 0;
  double barriers = 0, shuffles = 0;  // a thread
};

/// Loads and stores of a line together.
simt::line_traffic global_of(const simt::line_record& l) {
  simt::line_traffic sum = l.global_load;
  return sum += l.global_store;
}
simt::line_traffic shared_of(const simt::line_record& l) {
  simt::line_traffic sum = l.shared_load;
  return sum += l.shared_store;
}
double ratio(std::uint64_t a, std::uint64_t b) {
  return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0.0;
}
/// Of the bytes in the sectors that moved, those that a lane wanted.
double efficiency(const simt::line_traffic& t) {
  return ratio(t.distinct_bytes, t.sectors * simt::sector_bytes);
}

/// Breaks a sentence into lines of at most `width` columns, each behind `indent`.
std::string wrapped(const std::string& sentence, const std::string& indent) {
  std::string out, line = indent;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    if (line.size() + 1 + (end - begin) > width && line != indent) {
      out += line + "\n";
      line = indent;
    }
    line += (line == indent ? "" : " ") + sentence.substr(begin, end - begin);
    begin = end + 1;
  }
  return out + line + "\n";
}

std::string cut(const std::string& text, std::size_t columns) {
  return text.size() <= columns ? text : text.substr(0, columns - 3) + "...";
}

std::string count_text(double n) {
  return n == static_cast<double>(static_cast<std::int64_t>(n)) ? fmt::format("{:.0f}", n)
                                                                : fmt::format("{:.2f}", n);
}

void append_line(std::string& out, const launch_view& v, const simt::line_record& l, source_tree& sources,
                 const painter& paint) {
  const simt::line_traffic g = global_of(l), s = shared_of(l);
  out += fmt::format("{:>4.0f} %", v.share(l) * 100);
  if (g.requests > 0)
    out += fmt::format(" {:>9} {:>10} {:>9} {:>6.2f} {:>6.2f} {:>4.0f} %", g.requests,
                       size_text(static_cast<double>(g.bytes)), g.sectors, ratio(g.sectors, g.requests),
                       ratio(g.ideal_sectors, g.requests), efficiency(g) * 100);
  else
    out += fmt::format("{:>51}", "");
  if (s.requests > 0) out += fmt::format("  {:>9} {:>10} {:>9}", s.requests, s.wavefronts, s.bank_conflicts);
  out += "\n";
  const std::string place = l.line > 0 ? fmt::format("{}:{}", l.file, l.line) : "an unknown line";
  const std::string text = cut(sources.line(l.file, l.line), width - 8 - place.size() - 2);
  out += "        " + paint.dim(place) + (text.empty() ? "" : "  " + paint.strong(text)) + "\n";
  if (const line_advice a = advise(l); a.what != line_fault::none)
    out += wrapped(fmt::format("{}: {}.", to_string(a.what), a.text), "        ");
}

void append_launch(std::string& out, const launch_view& v, source_tree& sources, const painter& paint) {
  const simt::launch_record& k = v.record;
  out += fmt::format("{} {}, {} blocks of {} threads\n", paint.strong("kernel "), cut(k.instance, 50), k.grid,
                     k.block);
  out += fmt::format("  a thread passes {} barriers and {} shuffles; a block has {} B of shared memory\n",
                     count_text(v.barriers), count_text(v.shuffles), k.shared_bytes + k.static_shared_bytes);
  out += fmt::format("  occupancy {:.0f} %: {} blocks, {} threads a multiprocessor, limited by {}\n",
                     v.full.share * 100, v.full.blocks, v.full.threads, v.full.limit);
  out += fmt::format("  in flight: up to {} a multiprocessor; Little's law asks for {}{}\n",
                     size_text(v.full.bytes_in_flight), size_text(v.needed),
                     v.full.bytes_in_flight >= v.needed ? "" : ": too few");
  if (v.lines.empty()) return;
  out += fmt::format("{:>6} {:>9} {:>10} {:>9} {:>6} {:>6} {:>6}  {:>9} {:>10} {:>9}\n", "cost", "global",
                     "bytes", "sectors", "a req.", "ideal", "used", "shared", "wavefronts", "conflicts");
  for (const auto& l : v.lines) append_line(out, v, l, sources, paint);
}

std::string verdict_word(const run_result& r) { return r.pass() ? "RIGHT" : "WRONG"; }

nlohmann::json traffic_json(const simt::line_traffic& t, bool global) {
  nlohmann::json j{
      {"requests", t.requests}, {"bytes", t.bytes}, {"lanes", t.lanes}, {"distinct_bytes", t.distinct_bytes}};
  if (global) {
    j["sectors"] = t.sectors;
    j["ideal_sectors"] = t.ideal_sectors;
    j["loaded_again_bytes"] = t.again_bytes;
  } else {
    j["wavefronts"] = t.wavefronts;
    j["bank_conflicts"] = t.bank_conflicts;
  }
  return j;
}

nlohmann::json launch_json(const launch_view& v, source_tree& sources) {
  const simt::launch_record& k = v.record;
  nlohmann::json j{{"kernel", k.kernel},
                   {"instance", k.instance},
                   {"grid", k.grid},
                   {"block", k.block},
                   {"shared_bytes", k.shared_bytes},
                   {"static_shared_bytes", k.static_shared_bytes},
                   {"barriers_a_thread", v.barriers},
                   {"shuffles_a_thread", v.shuffles},
                   {"occupancy",
                    {{"share", v.full.share},
                     {"blocks", v.full.blocks},
                     {"threads", v.full.threads},
                     {"limit", v.full.limit}}},
                   {"bytes_in_flight", v.full.bytes_in_flight},
                   {"bytes_in_flight_needed", v.needed},
                   {"lines", nlohmann::json::array()}};
  for (const auto& l : v.lines) {
    const line_advice a = advise(l);
    j["lines"].push_back({{"file", l.file},
                          {"line", l.line},
                          {"source", sources.line(l.file, l.line)},
                          {"cost", cost_of(l)},
                          {"global_load", traffic_json(l.global_load, true)},
                          {"global_store", traffic_json(l.global_store, true)},
                          {"shared_load", traffic_json(l.shared_load, false)},
                          {"shared_store", traffic_json(l.shared_store, false)},
                          {"advice", to_string(a.what)},
                          {"advice_text", a.text}});
  }
  return j;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

constexpr const char* style = R"(
:root { color-scheme: light dark; --text: #1b1f24; --page: #fff; --dim: #66707b; --rule: #d8dee4; --heat: 214,80,30; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dbe2ea; --page: #12161b; --dim: #8b96a3; --rule: #2d353e; --heat: 255,140,60; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 2em auto; max-width: 110em; padding: 0 1em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.15em; margin-top: 2em; } h3 { font-size: 1em; color: var(--dim); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font: 13px/1.45 ui-monospace, monospace; }
th { text-align: right; color: var(--dim); font-weight: normal; border-bottom: 1px solid var(--rule); }
th, td { padding: 0 .6em; white-space: pre; } td.n { text-align: right; }
td.no { text-align: right; color: var(--dim); } tr.advice td { white-space: normal; padding: .2em .6em .5em; font-family: system-ui, sans-serif; }
th:last-child { text-align: left; }
)";

void append_file(std::string& out, const launch_view& v, const std::string& file, source_tree& sources) {
  std::map<int, const simt::line_record*> by_number;
  for (const auto& l : v.lines)
    if (l.file == file) by_number[l.line] = &l;
  const auto& text = sources.lines(file);
  out += fmt::format(
      "<h3>{}</h3>\n<div class=\"scroll\"><table>\n<tr><th>cost</th><th>global req.</th><th>sectors</th>"
      "<th>a req.</th><th>ideal</th><th>used</th><th>shared req.</th><th>wavefronts</th><th>conflicts</th>"
      "<th>line</th><th>source</th></tr>\n",
      escaped(file.empty() ? "unknown" : file));
  const int last = std::max(static_cast<int>(text.size()), by_number.empty() ? 0 : by_number.rbegin()->first);
  for (int n = text.empty() ? 0 : 1; n <= last; ++n) {
    const auto found = by_number.find(n);
    const std::string source = n >= 1 && n <= static_cast<int>(text.size()) ? escaped(text[n - 1]) : "";
    if (found == by_number.end()) {
      if (!text.empty())
        out +=
            fmt::format("<tr><td colspan=\"9\"></td><td class=\"no\">{}</td><td>{}</td></tr>\n", n, source);
      continue;
    }
    const simt::line_record& l = *found->second;
    const simt::line_traffic g = global_of(l), s = shared_of(l);
    out += fmt::format("<tr style=\"background: rgba(var(--heat), {:.2f})\"><td class=\"n\">{:.0f} %</td>",
                       0.08 + 0.5 * v.share(l), v.share(l) * 100);
    const auto cells = [&](bool any, std::initializer_list<std::string> values) {
      for (const auto& value : values) out += "<td class=\"n\">" + (any ? value : std::string()) + "</td>";
    };
    cells(g.requests > 0, {std::to_string(g.requests), std::to_string(g.sectors),
                           fmt::format("{:.2f}", ratio(g.sectors, g.requests)),
                           fmt::format("{:.2f}", ratio(g.ideal_sectors, g.requests)),
                           fmt::format("{:.0f} %", efficiency(g) * 100)});
    cells(s.requests > 0,
          {std::to_string(s.requests), std::to_string(s.wavefronts), std::to_string(s.bank_conflicts)});
    out += fmt::format("<td class=\"no\">{}</td><td>{}</td></tr>\n", n, source);
    if (const line_advice a = advise(l); a.what != line_fault::none)
      out += fmt::format("<tr class=\"advice\"><td colspan=\"10\"></td><td><b>{}</b>: {}.</td></tr>\n",
                         to_string(a.what), escaped(a.text));
  }
  out += "</table></div>\n";
}

}  // namespace

std::string profile_text(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& d, const options& o) {
  const painter paint(o.color);
  source_tree sources;
  std::string out =
      fmt::format("stage {} by source line, on the simulator in place of an {}\n", stage.number, d.gpu->name);
  for (const run_result& r : results) {
    out += fmt::format("{} {}: {}\n", paint.strong("shape  "), shape_text(r.shape, r.type), verdict_word(r));
    if (!r.fault.empty()) out += r.fault + "\n";
    if (!r.counted) continue;
    for (const auto& k : r.counted->launches) append_launch(out, launch_view(k, d), sources, paint);
    if (r.counted->launches.empty()) out += "nothing was launched\n";
  }
  return out +
         "cost: share of all sectors and wavefronts; used: bytes that lanes wanted, of the sectors' bytes\n"
         "registers are not known to the simulator and limit nothing here (docs/simulator.md)\n";
}

std::string profile_json(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& d) {
  source_tree sources;
  nlohmann::json j;
  j["stage"] = {{"number", stage.number}, {"folder", stage.folder}, {"idea", stage.idea}};
  j["device"] = nlohmann::json::parse(device_json(d));
  j["runs"] = nlohmann::json::array();
  for (const run_result& r : results) {
    nlohmann::json launches = nlohmann::json::array();
    if (r.counted)
      for (const auto& k : r.counted->launches) launches.push_back(launch_json(launch_view(k, d), sources));
    j["runs"].push_back({{"rows", r.shape.rows},
                         {"cols", r.shape.cols},
                         {"dtype", name_of(r.type)},
                         {"pass", r.pass()},
                         {"fault", r.fault},
                         {"launches", launches}});
  }
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string profile_html(const std::vector<run_result>& results, const stage_info& stage,
                         const chosen_device& d) {
  source_tree sources;
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>Stage {0} by source line</title>"
      "<style>{1}</style></head><body>\n<h1>Stage {0}: {2}</h1>\n<p>Counted by the simulator in place of an "
      "{3}. "
      "Cost is the line's share of sectors and wavefronts; used is the share of the sectors' bytes that "
      "lanes "
      "wanted.</p>\n",
      stage.number, style, escaped(stage.idea), escaped(d.gpu->name));
  for (const run_result& r : results) {
    if (!r.fault.empty()) out += fmt::format("<pre>{}</pre>\n", escaped(r.fault));
    if (!r.counted) continue;
    for (const auto& k : r.counted->launches) {
      const launch_view v(k, d);
      out += fmt::format(
          "<h2>{}: {}</h2>\n<p>{} blocks of {} threads; {} barriers and {} shuffles a thread; occupancy "
          "{:.0f} %, "
          "limited by {}; up to {} in flight a multiprocessor, where Little's law asks for {}.</p>\n",
          escaped(shape_text(r.shape, r.type)), escaped(k.instance), k.grid, k.block, count_text(v.barriers),
          count_text(v.shuffles), v.full.share * 100, v.full.limit, size_text(v.full.bytes_in_flight),
          size_text(v.needed));
      std::set<std::string, std::greater<>> files;  // the stage before what it uses
      for (const auto& l : v.lines) files.insert(l.file);
      for (const auto& file : files) append_file(out, v, file, sources);
    }
  }
  return out + "</body></html>\n";
}

}  // namespace softmax
