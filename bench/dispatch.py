#!/usr/bin/env python3
"""Writes the table by which softmax.hpp chooses between stages 06 and 07, from what was measured.

    bench/dispatch.py           write common/library/measured.hpp
    bench/dispatch.py --check   say whether it is current, and write nothing

Shapes at which only one of them was timed are left out; the nearest other shape then decides. Exit codes: 0 written or current, 1 stale,
2 no results.
"""
import argparse
import json
import sys

from records import ROOT

RESULTS = [ROOT / "bench" / "results" / folder for folder in ("h200", "h200-between")]
HEADER = ROOT / "common" / "library" / "measured.hpp"

TEXT = """#pragma once
// The faster of stages 06 and 07 at the shapes that were measured on an NVIDIA H200.
// Written by bench/dispatch.py from bench/results/h200 and h200-between; do not edit.
#include <cstdint>

namespace softmax::library {{

/// The faster stage at one shape.
struct measured_choice {{
  bool four_bytes;  ///< f32, or else a 16-bit type
  std::int64_t rows;  ///< M
  std::int64_t cols;  ///< N
  int stage;  ///< 6 or 7
}};

/// All shapes at which both were timed.

// clang-format off
inline constexpr measured_choice measured_sm_90[] = {{
{rows}
}};
// clang-format on

}}  // namespace softmax::library
"""


def medians(number):
    """Seconds of each (four bytes, rows, columns) that was timed."""
    paths = [folder / f"bench-{number}.json" for folder in RESULTS]
    seconds = {}
    for b in (b for path in paths if path.is_file() for b in json.loads(path.read_text())["benchmarks"]):
        if b.get("aggregate_name") != "median" or b.get("error_occurred") or "copy" in b["name"]:
            continue
        dtype = next(t for t in ("bf16", "f16", "f32") if t in b["name"])
        if dtype != "f16":
            seconds[dtype == "f32", int(b["rows"]), int(b["cols"])] = b["real_time"]
    return seconds


def table():
    one, split = medians("06"), medians("07")
    lines = []
    for shape in sorted(set(one) & set(split)):
        four_bytes, rows, cols = shape
        stage = 6 if one[shape] <= split[shape] else 7
        lines.append(f"    {{{str(four_bytes).lower()}, {rows}, {cols}, {stage}}},")
    return TEXT.format(rows="\n".join(lines)) if lines else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, say whether the table is current")
    args = parser.parse_args()
    text = table()
    if text is None:
        print("dispatch: stages 06 and 07 have no results in bench/results/h200: run bench/run.py on a GPU.", file=sys.stderr)
        return 2
    current = HEADER.is_file() and HEADER.read_text() == text
    if args.check:
        print("dispatch: the table is current" if current else "dispatch: the table is stale: run bench/dispatch.py")
        return 0 if current else 1
    HEADER.write_text(text)
    print(f"dispatch: {HEADER.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
