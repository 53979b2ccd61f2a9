#!/usr/bin/env python3
"""Asks Nsight Compute what holds a kernel back: how busy DRAM and the issue slots are, how many warps are there, and what they wait for.

    bench/limits.py stage-07:256x1048576:bf16 stage-06:343707x781:bf16 --build build --out bench/results/h200_limits.json

Each point is a stage, its rows and columns, and a type; a launch each is recorded. Times under a profiler are not those of the benchmark.
Exit codes: 0 done, 1 a stage failed, 2 a wrong command, 3 counters not permitted on this machine.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters
import records

BUSY = {
    "nanoseconds": "gpu__time_duration.sum",
    "dram_busy_percent": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "issue_slots_busy_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "warps_active_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "multiprocessors_active_percent": "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "warp_instructions": "smsp__inst_executed.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
}
# Warps that wait for this, on average, whenever an instruction is issued.
WAITS = {reason: f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
         for reason in ("long_scoreboard", "short_scoreboard", "barrier", "membar", "lg_throttle", "mio_throttle", "wait", "not_selected")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("points", nargs="+", help="STAGE:ROWSxCOLS:TYPE")
    counters.add_build_options(parser)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    report = counters.new_report(args.commit, results=[])
    for point in args.points:
        found = re.fullmatch(r"(stage-0\d):(\d+)x(\d+):(f32|f16|bf16)", point)
        if not found:
            counters.stop(2, f"{point} is no point: write it as stage-07:256x1048576:bf16.")
        stage, rows, cols, dtype = found.groups()
        program = counters.find_program(stage, Path(args.build) / "bin")
        command = [program, "--device", "cuda", "--rows", rows, "--cols", cols, "--dtype", dtype, "--check", "rows:4", "--no-time"]
        names = {**BUSY, **WAITS}
        launch = counters.profiled(command, 1, list(names.values()))[0]
        report["results"].append({"stage": stage, "rows": int(rows), "cols": int(cols), "dtype": dtype, "kernel": launch["kernel"],
                                  **{name: launch[metric] for name, metric in BUSY.items()},
                                  "warps_waiting_for": {reason: launch[metric] for reason, metric in WAITS.items()}})
        records.write(args.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
