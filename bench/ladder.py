#!/usr/bin/env python3
"""The stages side by side on a GPU: GB/s and the fraction of the best copy kernel, over row widths.

    bench/ladder.py --build build --out bench/results/h200_ladder.json

Each entry is one process: a sample of rows is verified, then the stage and the copy kernels are timed with cold caches.
A width that a stage refuses is recorded with its sentence. Exit codes: 0 all right, 1 a wrong result, 2 a wrong command.
"""
import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters

WIDTHS = "32,128,256,512,781,1024,2048,4096,8192,16384,32768,131072,262144"


def measure(program, rows, cols, dtype, extra):
    command = [str(program), "--device", "cuda", "--rows", str(rows), "--cols", str(cols), "--dtype", dtype,
               "--dist", "normal", "--check", "rows:64", "--json", *extra]
    r = subprocess.run(command, capture_output=True, text=True)
    entry = {"stage": program.name, "rows": rows, "cols": cols, "dtype": dtype}
    if not r.stdout:
        return {**entry, "refused": r.stderr.strip(), "exit": r.returncode}
    result = json.loads(r.stdout)
    run = result["runs"][0]
    return {**entry, "pass": run["pass"], "check": run["check"], "time": run.get("time"), "device": result["device"],
            "input": run["input"], "build_type": result["build_type"]}


def write(path, report):
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(json.dumps(report, indent=1) + "\n")
    unfinished.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--stages", default="00,01,02,03,04,05")
    parser.add_argument("--widths", default=WIDTHS)
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--elements", type=int, default=1 << 28, help="of the matrix; rows follow from the width")
    parser.add_argument("--commit", default="", help="the commit that was built, where there is no git")
    parser.add_argument("--out", required=True)
    args, extra = parser.parse_known_args()
    out = Path(args.out)
    if not out.parent.is_dir():
        counters.stop(2, f"there is no directory {out.parent} to write to.")
    commit = args.commit or subprocess.run(["git", "-C", str(counters.ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
                                           capture_output=True, text=True).stdout.strip()
    report = {"device": counters.describe_device(), "commit": commit,
              "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "runs": []}
    good = True
    for dtype in args.dtypes.split(","):
        for cols in map(int, args.widths.split(",")):
            line = f"{dtype:5}{cols:>8}"
            for number in args.stages.split(","):
                program = Path(args.build) / "bin" / f"stage-{number}"
                if not program.is_file():
                    counters.stop(2, f"{program} is not built: run make stage-{number} first.")
                entry = measure(program, max(1, args.elements // cols), cols, dtype, extra)
                report["runs"].append(entry)
                if "refused" in entry:
                    good &= entry["exit"] == 2
                    line += f"  {number}: {'too wide' if entry['exit'] == 2 else entry['refused'][:60]:>12}"
                else:
                    good &= entry["pass"]
                    t = entry["time"] or {}
                    line += f"  {number}: {(t.get('bytes_per_second') or 0) * 1e-9:5.0f} {t.get('fraction_of_copy') or 0:.3f}" + ("" if entry["pass"] else " WRONG")
            print(line, flush=True)
            write(out, report)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
