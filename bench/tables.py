#!/usr/bin/env python3
"""Writes the result tables of the front page and the chapters from bench/results/*.json.

    bench/tables.py            rewrite what lies between the <!-- ... --> marks
    bench/tables.py --check    change nothing; exit code 1 if a table is stale

A table is never typed by hand: the test `chapters` runs --check.
"""
import argparse
import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
MACHINE = "h200"
NARROW, SIZES = "h200-narrow", "h200-sizes"  # one stage at narrow widths, and matrices of other sizes
BETWEEN = "h200-between"  # stages 06 and 07 at widths between those of the ladder, many of them odd
SMALLEST_LADDER = 1 << 27  # elements; matrices with fewer belong to the few-row shapes


def load(name):
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def measured(program, folder=MACHINE):
    """(series, dtype, rows, cols) -> the median entry of a point, or its error."""
    points = {}
    for entry in (load(f"{folder}/{program}.json") or {"benchmarks": []})["benchmarks"]:
        found = re.match(r"([\w-]+)/dtype:(\w+)/rows:(\d+)/cols:(\d+)/(lie:(\w+))?", entry["run_name"])
        if found[6] in (None, "none") and (entry.get("error_occurred") or entry.get("aggregate_name") == "median"):
            points[found[1], found[2], int(found[3]), int(found[4])] = entry
    return points


def ladder(points):
    """(series, dtype, cols) -> entry, of the large matrices."""
    return {(s, t, n): e for (s, t, m, n), e in points.items() if m * n > SMALLEST_LADDER}


def stages():
    return sorted(p.stem[-2:] for p in (RESULTS / MACHINE).glob("bench-[0-9][0-9].json"))


def all_stages():
    points = {}
    for number in stages():
        points.update({k: e for k, e in measured(f"bench-{number}").items() if k[0] == f"stage-{number}"})
    return points


def all_peers():
    points = {}
    for program in ("bench-cudnn-instance", "bench-cudnn-channel", "peers"):
        points.update({k: e for k, e in measured(program).items() if k[0] != "copy" and not e.get("error_occurred")})
    return points


def cell(entry):
    if entry is None:
        return "–"
    if entry.get("error_occurred"):
        if "takes at most" not in entry["error_message"]:
            raise SystemExit(f"tables: {entry['run_name']} did not run: {entry['error_message']}")
        return "too wide"
    return f"{entry['bytes_per_second'] * 1e-9:.0f} ({entry['of_copy']:.2f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def best_peer(peers, dtype, cols):
    rivals = [(e["bytes_per_second"], s) for (s, t, n), e in peers.items() if (t, n) == (dtype, cols)]
    return f"{max(rivals)[0] * 1e-9:.0f}, {max(rivals)[1]}" if rivals else "–"


def front_page(runs, peers):
    widths = sorted({cols for _, dtype, cols in runs if dtype == "f32"})
    return table(["N"] + [f"stage {s}" for s in stages()] + ["best peer"],
                 [[str(n)] + [cell(runs.get((f"stage-{s}", "f32", n))) for s in stages()] + [best_peer(peers, "f32", n)] for n in widths])


NOT_YET = "Not measured yet."
BESIDE = {"06": "04", "07": "05"}  # the stage that a chapter's table shows beside its own, where that is not the one before


def stage_table(runs, stage):
    name, before = f"stage-{stage}", f"stage-{BESIDE.get(stage, f'{int(stage) - 1:02d}')}"
    if not any(key[0] == name for key in runs):
        return NOT_YET
    shown = [s for s in (before, name) if any(key[0] == s for key in runs)]
    widths = sorted({cols for (s, _, cols), e in runs.items() if s in shown and not e.get("error_occurred")})
    return table(["N"] + [f"stage {s[-2:]}, {t}" for t in ("fp32", "bf16") for s in shown],
                 [[str(n)] + [cell(runs.get((s, t, n))) for t in ("f32", "bf16") for s in shown] for n in widths]) + \
        "\n\nGB/s (fraction of the best copy kernel in the same process)."


def target_sentence(runs, stage):
    """Where a stage reaches 60 % of the memory's peak, and where it does not."""
    said = []
    for dtype, name in (("f32", "fp32"), ("bf16", "bf16")):
        rates = {n: e["bytes_per_second"] for (s, t, n), e in runs.items() if (s, t) == (f"stage-{stage}", dtype) and not e.get("error_occurred")}
        peak = next(e["bytes_per_second"] / e["of_peak"] for e in runs.values() if "of_peak" in e)
        missed = [f"{n} ({rate * 1e-9:.0f})" for n, rate in sorted(rates.items()) if rate < 0.6 * peak]
        said.append(f"In {name} it is " + (f"missed at N = {', '.join(missed)}, and reached at the other {len(rates) - len(missed)} widths"
                                           if missed else f"reached at all {len(rates)} widths"))
    return f"60 % of the peak is {0.6 * peak * 1e-9:.0f} GB/s. " + ". ".join(said) + "."


def few_rows_table(points, peers, dtype, last):
    """Microseconds a call: the best stage up to the last, the best peer, the copy of the same bytes."""
    if not any(key[0] == f"stage-{last}" for key in points):
        return NOT_YET
    points = {key: e for key, e in points.items() if key[0] <= f"stage-{last}"}
    rows = []
    copies = {k[1:]: e for k, e in measured("bench-05").items() if k[0] == "copy"}
    shapes = [(m, n) for (s, t, m, n) in points if (s, t) == ("stage-05", dtype) and m * n <= SMALLEST_LADDER]
    for m, n in sorted(set(shapes), key=lambda s: (s[1], s[0])):
        fastest = lambda group: min(((e["real_time"], s) for (s, t, r, c), e in group.items()
                                     if (t, r, c) == (dtype, m, n) and not e.get("error_occurred")), default=None)
        text = lambda found: f"{found[0]:.1f}, {found[1]}" if found else "–"
        rows.append([f"{m} x {n}", f"{copies[dtype, m, n]['real_time']:.1f}", text(fastest(points)), text(fastest(peers))])
    return table(["M x N", "copy", "best stage", "best peer"], rows) + "\n\nMicroseconds a call in a graph of calls, cold caches."


def tune_table():
    rows = []
    for entry in sorted(load(f"{MACHINE}/tune.json")["tuned"], key=lambda e: e["cols"]):
        plan = lambda p: f"{p['warps']} warps, {p['rows']} row{'s' if p['rows'] > 1 else ''}"
        rows.append([str(entry["cols"]), plan(entry["rule"]), plan(entry["best"]), f"{entry['regret'] * 100:.1f} %"])
    return table(["N", "the rule", "best", "regret"], rows)


def traffic(r):
    """Sectors read, DRAM read and DRAM written of all launches of a counted run, in units of MN elements."""
    mn = r["rows"] * r["cols"] * {"f32": 4, "f16": 2, "bf16": 2}[r["dtype"]]
    asked = sum(launch["ld_sectors"]["hardware"] for launch in r["launches"]) * 32
    return [f"{value / mn:.2f} MN" for value in
            (asked, sum(x["dram_read_bytes"] for x in r["launches"]), sum(x["dram_write_bytes"] for x in r["launches"]))]


def dram_table():
    counted = [r for name in ("h200_stages.json", "h200_stages_2.json") for r in (load(name) or {"counters": []})["counters"]]
    return table(["4096 x 8192 fp32", "sectors read", "DRAM read", "DRAM written"],
                 [[r["stage"], *traffic(r)] for r in sorted(counted, key=lambda r: r["stage"])
                  if (r["rows"], r["cols"], r["dtype"]) == (4096, 8192, "f32")])


def dram_by_width():
    return table(["N, fp32", "rows", "sectors read", "DRAM read", "DRAM written"],
                 [[str(r["cols"]), str(r["rows"]), *traffic(r)] for r in load("h200_dram_05.json")["results"]])


DESIGNS = "h200_designs.json"
AHEAD = "h200_ahead.json"


def type_text(dtype):
    return {"f32": "fp32"}.get(dtype, dtype)


def timed(entry):
    """Microseconds of a design, and the fraction of a copy."""
    return f"{entry['microseconds']:.0f} ({entry['fraction_of_copy']:.2f})"


def designs_table(names, shapes):
    """Microseconds of designs at some shapes, and the fraction of a copy. `names`: design -> what the table calls it."""
    found = {(r["dtype"], r["cols"]): r for r in load(DESIGNS)["results"]}
    rows = []
    for dtype, cols in shapes:
        times = {m["design"]: timed(m) for m in found[dtype, cols]["measured"]}
        rows.append([type_text(dtype), str(cols)] + [times.get(name, "–") for name in names])
    return table(["type", "N", *names.values()], rows) + "\n\nMicroseconds a call for 2^28 elements (fraction of the best copy); – is not measured."


def narrow_designs_table():
    """Narrow rows by the design of stage 06, in both sizes of storage."""
    found = {(r["dtype"], r["cols"], m["design"]): timed(m)
             for r in load(DESIGNS)["results"] for m in r["measured"]}
    return table(["N", "fp32", "bf16"], [[str(n)] + [found[t, n, "edges a lane each"] for t in ("f32", "bf16")]
                                         for n in (32, 33, 64, 100, 128, 256, 512)]) + \
        "\n\nMicroseconds a call for 2^28 elements (fraction of the best copy)."


def narrow_table():
    """Stage 06 at narrow widths, most of them odd: microseconds and the fraction of a copy."""
    points = ladder(measured("bench-06", NARROW))
    widths = sorted({n for s, _, n in points if s == "stage-06"})
    return table(["N", "fp32", "fp16", "bf16"],
                 [[str(n)] + [f"{e['real_time']:.0f} ({e['of_copy']:.2f})" if (e := points.get(("stage-06", t, n))) else "–"
                              for t in ("f32", "f16", "bf16")] for n in widths]) + \
        "\n\nMicroseconds a call for 2^28 elements (fraction of the best copy in the same process)."


def between_table():
    """Stages 06 and 07 at widths between those of the ladder: the fraction of a copy beside them."""
    points = {}
    for number in ("06", "07"):
        points.update(ladder({k: e for k, e in measured(f"bench-{number}", BETWEEN).items() if k[0] != "copy"}))
    kinds = [(s, t) for t in ("f32", "bf16") for s in ("stage-06", "stage-07")]
    return table(["N", *(f"{s.replace('-', ' ')}, {type_text(t)}" for s, t in kinds)],
                 [[str(n)] + [f"{e['of_copy']:.3f}" if (e := points.get((s, t, n))) and "of_copy" in e else "–" for s, t in kinds]
                  for n in sorted({n for _, _, n in points})]) + \
        "\n\nFraction of the best copy kernel in the same process, 2^28 elements; – is not measured."


def sizes_table():
    """Time an element over the number of elements, against that of 2^28, of a stage and of the best copy beside it."""
    each = {}
    for stage in ("06", "07"):
        for (s, t, m, n), e in measured(f"bench-{stage}", SIZES).items():
            each.setdefault((t, n, "a copy" if s == "copy" else s), {})[round(math.log2(m * n))] = e["real_time"] / (m * n)
    powers = sorted({p for times in each.values() for p in times})
    return table(["type", "N", "what", *(f"2^{p}" for p in powers)],
                 [[type_text(t), str(n), s] + [f"{times[p] / times[28]:.2f}" if p in times else "–" for p in powers]
                  for (t, n, s), times in sorted(each.items())]) + \
        "\n\nTime an element, as a multiple of that at 2^28 elements; – is not measured."


def ahead_table():
    """Stage 06, by how far ahead it asks the cache: the fraction of a copy."""
    results = load(AHEAD)["results"]
    distances = sorted({m["parameters"] for r in results for m in r["measured"]}, key=lambda text: int(text.split()[0]))
    rows = [[type_text(r["dtype"]), str(r["cols"])] +
            [f"{m['fraction_of_copy']:.3f}" for d in distances for m in r["measured"] if m["parameters"] == d] for r in results]
    return table(["type", "N", *distances], rows) + "\n\nFraction of the best copy beside it, 2^28 elements, by the distance."


def limits_table():
    """What holds kernels back: DRAM's and the schedulers' time, and how many multiprocessors and warps there are."""
    rows = [[r["stage"][-2:], type_text(r["dtype"]), f"{r['rows']} x {r['cols']}"] +
            [f"{r[name]:.0f}" for name in ("dram_busy_percent", "multiprocessors_active_percent", "warps_active_percent", "issue_slots_busy_percent")]
            for r in load("h200_limits.json")["results"]]
    return table(["stage", "type", "M x N", "DRAM busy", "multiprocessors at work", "warps there", "issue slots busy"], rows) + \
        "\n\nPercent, by Nsight Compute, in one launch each; of the multiprocessors and DRAM over the whole time, of the others while at work."


def as_called(*names):
    return {name: name for name in names}


# The mark in a chapter -> the designs side by side, and the types and widths that tell something.
DESIGNS_SHOWN = {
    "06": (as_called("edges a lane each", "elementwise edges", "tile"),
           [("f32", n) for n in (33, 129, 781, 4097, 12671)] + [("bf16", n) for n in (33, 100, 129, 781, 4097, 12671)]),
    "06 exponentials": ({"edges a lane each": "one exponential", "two exponentials": "two exponentials"},
                        [("f32", n) for n in (2048, 4096, 8192, 16384)] + [("bf16", n) for n in (2048, 4096, 8192, 16384, 32768)]),
    "06 stores": ({"next row in shared memory": "stores of 16 bytes", "stores split by the compiler": "split by the compiler"},
                  [("f32", n) for n in (8192, 16384, 32768, 131072)] + [("bf16", n) for n in (8192, 16384, 32768, 131072)]),
}


WIDE_DESIGNS = "h200_designs_7.json"  # of designs.py; many rows
FEW_DESIGNS = "h200_designs_5.json"  # few rows; and the ring with a fixed share of the rows


def fastest(entries, design):
    """The entry of the parameters that were fastest, of those that were measured."""
    return min((e for e in entries if e["design"] == design and "microseconds" in e), key=lambda e: e["microseconds"], default=None)


def wide_designs_table(name, names, narrowest):
    """Many wide rows: each of these designs of bench/designs with its best parameters. `names`: design -> what the table calls it."""
    rows = []
    for r in load(name)["results"]:
        if r["rows"] * r["cols"] < 1 << 27 or r["cols"] < narrowest:
            continue
        best = [fastest(r["measured"], d) for d in names]
        rows.append([type_text(r["dtype"]), str(r["cols"])] +
                    [timed(b) if b else "–" for b in best])
    return table(["type", "N", *names.values()], rows) + \
        "\n\nMicroseconds a call for 2^28 elements (fraction of the best copy beside it); – is not measured."


def few_rows_designs_table():
    """Few rows: a cluster a row, against two launches."""
    names = {"held, barrier": "barrier", "stage 07": "this stage, a cluster a row", "stage 07, two launches": "two launches"}
    rows = []
    for r in load(FEW_DESIGNS)["results"]:
        if r["rows"] * r["cols"] >= 1 << 27:
            continue
        best = [fastest(r["measured"], d) for d in names]
        copy = min(e["copy_microseconds"] for e in r["measured"] if "copy_microseconds" in e)
        rows.append([type_text(r["dtype"]), f"{r['rows']} x {r['cols']}", f"{copy:.1f}"] +
                    [f"{b['microseconds']:.1f}" if b else "–" for b in best])
    return table(["type", "M x N", "copy", *names.values()], rows)


def lies_table():
    """Each broken timing rule beside the truth."""
    found = {}
    for entry in load(f"{MACHINE}/lies.json")["benchmarks"]:
        lie = re.search(r"lie:(\w+)", entry["run_name"])
        if lie and not entry["run_name"].startswith("copy/") and entry.get("aggregate_name", "median") == "median":
            found[lie[1]] = entry
    truth = found["none"]["real_time"]
    return table(["rule broken", "us a call", "GB/s", "against the truth"],
                 [[name, f"{e['real_time']:.1f}", f"{e['bytes_per_second'] * 1e-9:.0f}", f"{e['real_time'] / truth:.2f} x the time"]
                  for name, e in sorted(found.items(), key=lambda f: f[0] != "none")])


def wrong_kernel_row(case):
    """What the simulator and NVIDIA's tools said of a wrong kernel."""
    name, kind = f"`{case['name']}`", case["kind"] or "a wrong result"
    if not case["launched"]:
        return [name, kind, "not launched", case["why"]]
    doubt = "**disagrees**: " if case["verdict"] == "DISAGREE" else ""
    wrong = case["wrong"]
    if case["tool"] == "ncu":
        twin = case["right"]
        same = (wrong["measured"], twin["measured"]) == (wrong["simulated"], twin["simulated"])
        counted = "as counted" if same else f"counted: {wrong['simulated']} and {twin['simulated']}"
        return [name, kind, "ncu", f"{doubt}{wrong['measured']} {wrong['unit']}, {twin['measured']} in the twin, {counted}"]
    if not wrong["seen_by"]:
        why = re.sub(r"(--[\w-]+)", r"`\1`", case["why"])  # or two hyphens become a dash
        return [name, kind, "none", doubt + why]
    said = next(r["says"] for r in wrong["runs"] if r["tool"] == wrong["seen_by"][0]).replace("|", "/")
    return [name, kind, ", ".join(wrong["seen_by"]), f"{doubt}`{said}`" + (", at the same line" if wrong["same_line"] else "")]


def wrong_kernels_table():
    report = load(f"{MACHINE}_wrong_kernels.json")
    launched = [c for c in report["cases"] if c["launched"]]
    count = lambda verdict: sum(c["verdict"] == verdict for c in launched)
    twins = [c for c in launched if c["tool"] != "ncu" and c.get("right")]
    noisy = [f"`{c['name']}`" for c in twins if any(r["errors"] != 0 for r in c["right"]["runs"])]
    return table(["wrong kernel", "the simulator", "seen by", "which says"], [wrong_kernel_row(c) for c in report["cases"]]) + \
        f"\n\nOf {len(launched)} faults the GPU's tools see {count('agree')} as the simulator does, of {count('blind')} they say nothing, " + \
        f"in {count('DISAGREE')} they disagree. Of the {len(twins)} right twins under compute-sanitizer " + \
        (f"something is reported in {', '.join(noisy)}. " if noisy else "nothing is reported. ") + \
        f"{report['device']['name']}, driver {report['device']['driver_version']}; compute-sanitizer: {report['compute_sanitizer']}."


# How rows lay in the runs of counters.py: what a file's name ends with -> what a table says.
LAID_OUT = {"": "aligned", "_strided": "padded rows", "_misaligned": "shifted by one element"}
COUNTS_OF_GLOBAL = ("ld_requests", "ld_sectors", "st_requests", "st_sectors")


def laid_out(kind):
    """What was measured of that kind -> how rows lay; nothing unless all three are there."""
    files = {what: load(f"{MACHINE}_{kind}{name}.json") for name, what in LAID_OUT.items()}
    return files if all(files.values()) else {}


def shared_table(files):
    """By kernel: what the simulator counted and what an NVIDIA GPU did, over all runs of counters.py --shared."""
    launches = {}
    for result in (r for f in files.values() for r in f["results"]):
        for launch in result["launches"]:
            launches.setdefault((result["stage"][-2:], launch["kernel"]), []).append(launch)
    total = lambda of, name, side: sum(abs(x[name][side]) for x in of)
    rows = []
    for (stage, kernel), of in launches.items():
        wrong = sum(x[name]["difference"] != 0 for x in of for name in COUNTS_OF_GLOBAL)
        cells = [stage, f"`{kernel}`", f"{len(COUNTS_OF_GLOBAL) * len(of)}, " + (f"**{wrong} differ**" if wrong else "all equal")]
        why = []
        for way in ("sh_st", "sh_ld"):
            name = f"{way}_wavefronts"
            simulated, measured = total(of, name, "simulator"), total(of, name, "hardware")
            cells.append(f"{simulated:,}, {measured:,}" if total(of, name, "difference") else f"{simulated:,}, equal")
            said = {x[way]["why"] for x in of if x[way]["verdict"] == "explained"}
            why += sorted({reason for text in said for reason in text.split("; ")}, reverse=True)
            left = sum(x[way]["verdict"] == "unexplained" for x in of)
            why += [f"**unexplained in {left} launches**"] if left else []
        rows.append(cells + ["; ".join(why)])
    every = [x for of in launches.values() for x in of]
    waits = max(x[f"sh_{way}_wavefronts_l1tex"] - x[f"sh_{way}_wavefronts"]["hardware"] for x in every for way in ("ld", "st"))
    device = files[LAID_OUT[""]]["device"]
    return table(["stage", "kernel", "global counts", "wavefronts of stores", "wavefronts of loads", "why fewer"], rows) + \
        f"\n\nSums over launches: rows that are aligned, padded, and shifted by one element. Where two numbers stand, the first is the " + \
        f"simulator's. {device['name']}, driver {device['driver_version']}. The unit's own counters (`l1tex__…`) say up to {waits:,} " + \
        "wavefronts more in a launch, another number each time: turns that a request waits for other traffic."


def counters_table(files):
    """By stage: how many counts of global memory were compared with an NVIDIA GPU's, and how many differ."""
    rows = []
    for stage in sorted({r["stage"] for f in files.values() for r in f["results"]}):
        cells = [stage[-2:]]
        for file in files.values():
            of = [x[name] for r in file["results"] if r["stage"] == stage for x in r["launches"] for name in COUNTS_OF_GLOBAL]
            cells.append(f"{len(of)}, {sum(c['difference'] != 0 for c in of)} differ, "
                         f"{sum(c['simulator'] for c in of):,} against {sum(c['hardware'] for c in of):,}")
        rows.append(cells)
    one = files[LAID_OUT[""]]
    shapes = sorted({r["cols"] for r in one["results"]})
    return table(["stage", *files], rows) + \
        f"\n\nFive widths ({', '.join(map(str, shapes))}), fp32 and bf16, requests and sectors of loads and stores of every launch: counts " + \
        f"compared, how many differ, and their sums. {one['device']['name']}, driver {one['device']['driver_version']}."


def speed_table(speed):
    """The simulator's speed by host threads, and Oclgrind's beside it."""
    modes = {"no check": "without checks", "check": "with checks", "by line": "with checks, by source line"}
    runs = {(r["mode"], r["threads"]): r for r in speed["simulator"]["runs"]}
    rate = lambda run, digits: f"{run['elements_per_second'] / 1e6:.{digits}f}"
    rows = [[text, rate(runs[mode, 1], 2), rate(runs[mode, 2], 2), f"{min(runs[mode, 1]['cpu_seconds']):.2f}"] for mode, text in modes.items()]
    other = speed["oclgrind"]
    rows.append([f"{other['version']}, `{other['options']}`", *(rate(r, 3) for r in other["runs"]), ""])
    leads = [f"{lead:.0f}" for lead in speed["lead_over_oclgrind"].values()]
    shape = f"{other['runs'][0]['rows']}×{other['runs'][0]['cols']}"
    return table(["M elements a second", "1 thread", "2 threads", "processor seconds, 1 thread"], rows) + \
        f"\n\nChecks cost {speed['slowdown_by_checks']:.1f} times the processor time. With them, two threads are " + \
        f"{speed['two_threads']:.2f} times as fast as one. The simulator leads Oclgrind, which runs {shape} of it, {leads[0]} times on " + \
        f"one thread and {leads[1]} times on two."


def tables():
    """(document, mark) -> text. A table whose file is missing is left out."""
    points, peers = all_stages(), all_peers()
    runs = ladder(points)
    result = {}
    if runs:
        result[ROOT / "README.md", "ladder"] = front_page(runs, ladder(peers))
        for chapter in sorted(ROOT.glob("stages/*/README.md")):
            stage = chapter.parent.name[:2]
            if f"<!-- results:{stage} -->" in chapter.read_text():
                result[chapter, f"results:{stage}"] = stage_table(runs, stage)
            if f"<!-- target:{stage} -->" in chapter.read_text():
                result[chapter, f"target:{stage}"] = target_sentence(runs, stage)
        result[ROOT / "stages/05_online_streaming/README.md", "few-rows"] = few_rows_table(points, peers, "f32", "05")
        result[ROOT / "stages/07_split_row/README.md", "few-rows"] = few_rows_table(points, peers, "f32", "07")
    if load(f"{MACHINE}/tune.json"):
        result[ROOT / "stages/04_warp_count/README.md", "tune:04"] = tune_table()
    if load(f"{MACHINE}/lies.json"):
        result[ROOT / "docs/benchmarking.md", "lies"] = lies_table()
    if load("h200_stages.json"):
        result[ROOT / "stages/02_fused_row_block/README.md", "dram"] = dram_table()
    if speed := load("simulator/speed.json"):
        result[ROOT / "docs/simulator.md", "speed"] = speed_table(speed)
    if load(f"{MACHINE}_wrong_kernels.json"):
        result[ROOT / "docs/simulator.md", "wrong-kernels"] = wrong_kernels_table()
    for kind, table_of in (("counters", counters_table), ("shared", shared_table)):
        if files := laid_out(kind):
            result[ROOT / "docs/simulator.md", kind] = table_of(files)
    if load("h200_dram_05.json"):
        result[ROOT / "stages/05_online_streaming/README.md", "dram:05"] = dram_by_width()
    if load(DESIGNS):
        for name, shown in DESIGNS_SHOWN.items():
            result[next(ROOT.glob(f"stages/{name[:2]}_*/README.md")), f"designs:{name}"] = designs_table(*shown)
        result[ROOT / "stages/06_vectorized/README.md", "designs:06 narrow"] = narrow_designs_table()
    if load(AHEAD):
        result[ROOT / "stages/06_vectorized/README.md", "ahead"] = ahead_table()
    if load(f"{NARROW}/bench-06.json"):
        result[ROOT / "stages/06_vectorized/README.md", "narrow"] = narrow_table()
    result[ROOT / "stages/07_split_row/README.md", "between"] = between_table() if load(f"{BETWEEN}/bench-06.json") else NOT_YET
    if load("h200_limits.json"):
        result[ROOT / "stages/07_split_row/README.md", "limits"] = limits_table()
    if load(f"{SIZES}/bench-06.json"):
        result[ROOT / "stages/07_split_row/README.md", "sizes"] = sizes_table()
    chapter = next(ROOT.glob("stages/07_*/README.md"))
    if load(WIDE_DESIGNS):
        result[chapter, "designs:07"] = wide_designs_table(WIDE_DESIGNS, {
            "held, barrier": "barrier", "held, messages": "messages", "stage 07": "this stage, registers",
            "stage 07, shared": "this stage, shared memory too", "stage 07, ring": "this stage, ring",
            "grid": "the whole GPU"}, 8192)
    if load(FEW_DESIGNS):
        result[chapter, "designs:07 shares"] = wide_designs_table(FEW_DESIGNS, {"ring": "a fixed share", "ring, rows taken": "rows taken"}, 65536)
        result[chapter, "designs:07 few"] = few_rows_designs_table()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a table is stale")
    args = parser.parse_args()
    stale = {}  # in order, each once
    for (document, mark), text in tables().items():
        old = document.read_text()
        pattern = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.S)
        if not pattern.search(old):
            print(f"tables: {document.relative_to(ROOT)} has no mark '<!-- {mark} -->' with an end.", file=sys.stderr)
            return 2
        new = pattern.sub(lambda m: m[1] + text + "\n" + m[2], old, count=1)
        if new != old:
            stale[str(document.relative_to(ROOT))] = True
            if not args.check:
                document.write_text(new)
    if args.check and stale:
        print(f"tables: stale in {', '.join(stale)}: run bench/tables.py.", file=sys.stderr)
        return 1
    print(f"tables: {'all are current' if not stale else 'rewritten in ' + ', '.join(stale)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
