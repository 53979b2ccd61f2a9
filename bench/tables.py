#!/usr/bin/env python3
"""Writes the result tables of the front page and the chapters from bench/results/*.json.

    bench/tables.py            rewrite what lies between the <!-- ... --> marks
    bench/tables.py --check    change nothing; exit code 1 if a table is stale

A table is never typed by hand: the test `chapters` runs --check.
"""
import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
# The first that has a measurement wins.
LADDERS = ("h200_ladder.json", "h200_ladder_half_1.json", "h200_ladder_half_2.json", "h200_ladder_half_3.json")


def load(name):
    path = RESULTS / name
    return json.loads(path.read_text()) if path.exists() else None


def ladder():
    """(stage, dtype, cols) -> the run that measured it, and the elements of its matrix."""
    runs = {}
    for name in LADDERS:
        for run in (load(name) or {"runs": []})["runs"]:
            runs.setdefault((run["stage"][-2:], run["dtype"], run["cols"]), run)
    return runs


def cell(run):
    if run is None:
        return "–"
    if "refused" in run:
        if run["exit"] != 2 or "takes at most" not in run["refused"]:
            raise SystemExit(f"tables: {run['stage']} at N = {run['cols']} did not run: {run['refused']}")
        return "too wide"
    if not run["pass"]:
        return "WRONG"
    time = run["time"]
    return f"{time['bytes_per_second'] * 1e-9:.0f} ({time['fraction_of_copy']:.2f})"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def front_page(runs):
    widths = sorted({cols for _, dtype, cols in runs if dtype == "f32"})
    stages = sorted({stage for stage, _, _ in runs})
    return table(["N"] + [f"stage {s}" for s in stages],
                 [[str(n)] + [cell(runs.get((s, "f32", n))) for s in stages] for n in widths])


def stage_table(runs, stage):
    widths = sorted({cols for s, _, cols in runs if s == stage})
    before = f"{int(stage) - 1:02d}"
    smaller = sorted({n for (s, t, n), run in runs.items() if s in (stage, before) and t == "bf16" and run["rows"] * n < 2**28 - n})
    note = "\n\nGB/s (fraction of the best copy kernel)."
    if smaller:
        note += f" bf16 at N = {', '.join(map(str, smaller))}: 2^27 elements."
    return table(["N", f"stage {before}, fp32", f"stage {stage}, fp32", f"stage {before}, bf16", f"stage {stage}, bf16"],
                 [[str(n)] + [cell(runs.get((s, t, n))) for t in ("f32", "bf16") for s in (before, stage)] for n in widths]) + note


def tune_table():
    rows = []
    for entry in sorted((e for t in load("h200_tune.json")["tuned"] for e in t["tuned"]), key=lambda e: e["cols"]):
        plan = lambda p: f"{p['warps']} warps, {p['rows']} row{'s' if p['rows'] > 1 else ''}"
        rows.append([str(entry["cols"]), plan(entry["rule"]), plan(entry["best"]), f"{entry['regret'] * 100:.1f} %"])
    return table(["N", "the rule", "best", "regret"], rows)


def dram_table():
    rows = []
    for r in load("h200_stages.json")["counters"]:
        if (r["rows"], r["cols"], r["dtype"]) != (4096, 8192, "f32"):
            continue
        mn = r["rows"] * r["cols"] * 4
        read, written = (sum(launch[k] for launch in r["launches"]) for k in ("dram_read_bytes", "dram_write_bytes"))
        asked = sum(launch["ld_sectors"]["hardware"] for launch in r["launches"]) * 32
        rows.append([r["stage"], f"{asked / mn:.2f} MN", f"{read / mn:.2f} MN", f"{written / mn:.2f} MN"])
    return table(["4096 x 8192 fp32", "sectors read", "DRAM read", "DRAM written"], rows)


def tables():
    """(document, mark) -> text. A table whose file is missing is left out."""
    runs = ladder()
    result = {}
    if runs:
        result[ROOT / "README.md", "ladder"] = front_page(runs)
        for chapter in sorted(ROOT.glob("stages/*/README.md")):
            stage = chapter.parent.name[:2]
            if f"<!-- results:{stage} -->" in chapter.read_text():
                result[chapter, f"results:{stage}"] = stage_table(runs, stage)
    if load("h200_tune.json"):
        result[ROOT / "stages/04_warp_count/README.md", "tune:04"] = tune_table()
    if load("h200_stages.json"):
        result[ROOT / "stages/02_fused_row_block/README.md", "dram"] = dram_table()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a table is stale")
    args = parser.parse_args()
    stale = []
    for (document, mark), text in tables().items():
        old = document.read_text()
        pattern = re.compile(rf"(<!-- {re.escape(mark)} -->\n).*?(<!-- end -->)", re.S)
        if not pattern.search(old):
            print(f"tables: {document.relative_to(ROOT)} has no mark '<!-- {mark} -->' with an end.", file=sys.stderr)
            return 2
        new = pattern.sub(lambda m: m[1] + text + "\n" + m[2], old, count=1)
        if new != old:
            stale.append(str(document.relative_to(ROOT)))
            if not args.check:
                document.write_text(new)
    if args.check and stale:
        print(f"tables: stale in {', '.join(stale)}: run bench/tables.py.", file=sys.stderr)
        return 1
    print(f"tables: {'all are current' if not stale else 'rewritten in ' + ', '.join(stale)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
