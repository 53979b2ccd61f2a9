#!/usr/bin/env python3
"""Shapes that need many gigabytes, verified on a GPU: more elements than 31 or 32 bits count, more rows than a grid has blocks.

    bench/large_cases.py --build build --out bench/results/h200_large.json

The first and last rows and a sample between them are verified. A case for which the memory does not suffice is recorded as skipped,
with the sentence of the program. Exit codes: 0 all right or skipped, 1 a wrong result, 2 a wrong command.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters
import records

# (what, rows, columns, dtype, distribution, stages)
CASES = [
    ("offsets of the last rows pass 2^31 elements", 2097160, 1024, "f16", "row_ramp", "00,01,02,03,04,05"),
    ("offsets pass 2^32 elements", 85632, 50259, "f32", "row_ramp", "01,05"),
    ("more rows than 2^28, odd width", 1 << 28, 9, "f32", "row_ramp", "02,03,04"),
    ("elements just past 2^31", 42692, 50304, "f32", "row_ramp", "01,05"),
    ("one row just below 2^31 columns", 1, (1 << 31) - 1, "f16", "const:0.5", "05"),
    ("one row past 2^31 columns", 1, (1 << 31) + 2, "f16", "const:0.5", "07,05,01"),
    ("more rows than a grid has blocks", 2200000000, 1, "f16", "const:1", "02,03,05"),
    ("more rows than a grid has blocks, in pairs", 1100000000, 2, "f16", "row_ramp", "03,04"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counters.add_build_options(parser)
    parser.add_argument("--only", default="", help="words of the cases to run, such as 2^32; several with commas")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    programs = Path(args.build) / "bin"
    report = counters.new_report(args.commit, cases=[])
    good = True
    for what, rows, cols, dtype, dist, stages in CASES:
        for number in stages.split(",") if any(w in what for w in args.only.split(",")) else []:
            program = programs / f"stage-{number}"
            if not program.is_file():
                counters.stop(2, f"{program} is not built: run make stage-{number} first.")
            begin = time.monotonic()
            r = subprocess.run([program, "--device", "cuda", "--rows", str(rows), "--cols", str(cols), "--dtype", dtype, "--dist", dist,
                                "--check", "rows:32", "--no-time", "--json"], capture_output=True, text=True)
            entry = {"case": what, "stage": number, "rows": rows, "cols": cols, "dtype": dtype, "distribution": dist, "exit": r.returncode,
                     "seconds": round(time.monotonic() - begin, 1)}
            if r.stdout:
                run = json.loads(r.stdout)["runs"][0]
                entry.update(verdict="right" if run["pass"] else "WRONG", rows_checked=run["check"]["rows"],
                             largest_ulp=run["check"]["largest_ulp"], model=run["model"])
            else:
                entry.update(verdict="skipped" if r.returncode == 2 else "FAILED", says=r.stderr.strip())
            good &= entry["verdict"] in ("right", "skipped")
            report["cases"].append(entry)
            print(f"stage {number} {rows}x{cols} {dtype}: {entry['verdict']} {entry.get('says', '')} ({entry['seconds']} s)", flush=True)
            records.write(args.out, report)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
