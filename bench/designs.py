#!/usr/bin/env python3
"""Times the kernels of bench/designs side by side at wide rows and at few rows, and writes what each took. Or those of bench/distances:
stage 06, by how far ahead it asks the cache.

    bench/designs.py --build build --out bench/results/h200_designs_2.json
    bench/designs.py --build build --program distances --out bench/results/h200_ahead.json

Needs a GPU with clusters of 16 blocks. A design that fails at a shape is recorded with its sentence. Ctrl-C keeps the shapes that
are finished. Exit codes: 0 all right, 1 a design was wrong or failed, 2 a wrong command, 130 interrupted.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters
import records

WIDE = [(0, n) for n in (8192, 16384, 32768, 50257, 65536, 128256, 131072, 200001, 262144, 524288, 1048576)]  # of 2^28 elements
ROWS = [(0, n) for n in (1024, 2048, 4096, 8192, 16384)]
FEW = [(1, 32768), (8, 32000), (128, 32000), (132, 32768), (1, 50257), (8, 50257), (1, 128256), (4, 128256), (8, 128256), (32, 128256),
       (64, 128256), (128, 128256), (1, 262144), (132, 262144), (1, 1048576)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counters.add_build_options(parser)
    parser.add_argument("--dtype", default="f32,bf16", help="types, with commas")
    parser.add_argument("--program", choices=("designs", "distances"), default="designs", help="what to compare")
    parser.add_argument("--shapes", choices=("all", "wide", "few"), default="all", help="many wide rows, few rows, or both")
    parser.add_argument("--cols", default="", help="only shapes of these widths, with commas")
    parser.add_argument("--only", default="", help="designs whose name and parameters hold this")
    parser.add_argument("--samples", type=int, default=15, help="batches that a median is of")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    program = Path(args.build) / "bin" / args.program
    if not program.is_file():
        counters.stop(2, f"{program} is not built: run make test, on a machine with nvcc.")
    wanted = {int(n) for n in args.cols.split(",") if n}
    known = ROWS if args.program == "distances" else WIDE * (args.shapes != "few") + FEW * (args.shapes != "wide")
    shapes = [(m, n) for m, n in known if not wanted or n in wanted]
    if not shapes:
        counters.stop(2, f"--cols {args.cols} leaves none of these shapes.")
    command = [program, "--dtype", args.dtype, "--samples", str(args.samples), "--rows", ",".join(str(m) for m, _ in shapes), "--cols",
               ",".join(str(n) for _, n in shapes), *(["--only", args.only] if args.only else [])]
    report = counters.new_report(args.commit, designs=f"bench/{args.program}", results=[])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout:
            report["results"].append(json.loads(line))
            records.write(args.out, report)
        code = process.wait()
    except KeyboardInterrupt:
        process.wait()
        code = 130
    return code


if __name__ == "__main__":
    sys.exit(main())
