#!/usr/bin/env python3
"""Measures how fast the simulator runs stage 02, and how fast Oclgrind runs the same softmax with its race detection on.

    bench/simulator_speed.py --bin build/bin --json bench/results/simulator_speed.json

Oclgrind (Debian package oclgrind) is left out if it is not installed. Its start and compilation are not counted: the time
of a few rows is subtracted. The fastest of several runs counts, and for what checks cost the processor time, so that other
work on the machine matters little. Exit codes: 0 measured, 1 a wrong result or a goal missed, 2 a missing program.
"""
import argparse
import json
import math
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import records
from records import ROOT

KERNEL = ROOT / "bench" / "oclgrind" / "softmax.cl"
MOST_SLOWDOWN = 3  # of checking against not checking
LEAST_LEAD = 10  # over Oclgrind


def stop(code, sentence):
    print(f"simulator_speed: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def values_of(rows, cols):
    return [math.sin(0.37 * i) for i in range(rows * cols)]


def run_oclgrind(folder, rows, cols, threads, show=False):
    """Wall seconds of one run, and the result if it is to be shown."""
    x = values_of(rows, cols)
    simulation = folder / "softmax.sim"
    simulation.write_text(f"{KERNEL}\nsoftmax_row\n{rows * 256} 1 1\n256 1 1\n"
                          f"<size={4 * rows * cols} float>\n" + " ".join(map(repr, x)) +
                          f"\n<size={4 * rows * cols} float fill=0>\n<size=4 int>\n{cols}\n")
    command = ["oclgrind-kernel", "--data-races", "--num-threads", str(threads), *(["-g"] if show else []), str(simulation)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if done.returncode != 0 or done.stderr.strip():
        stop(1, f"{' '.join(command)} failed: {done.stderr.strip()[:300]}")
    if not show:
        return seconds, None
    lines = [line.split(":") for line in done.stdout.splitlines() if ":" in line and "Memory" not in line]
    second_buffer = [bytes.fromhex(text.replace(" ", "")) for address, text in lines if address.strip().startswith("2")]
    return seconds, [struct.unpack("<f", four)[0] for four in second_buffer]


def check_oclgrind(folder, rows, cols):
    x, (_, y) = values_of(rows, cols), run_oclgrind(folder, rows, cols, 1, show=True)
    for row in range(rows):
        exact = [math.exp(v) for v in x[row * cols:(row + 1) * cols]]
        for got, want in zip(y[row * cols:(row + 1) * cols], exact):
            if abs(got - want / sum(exact)) > 1e-5 * want / sum(exact):
                stop(1, f"Oclgrind's result is wrong: {got} where {want / sum(exact)} is right.")


def measure_oclgrind(rows, cols, repeats):
    runs = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_oclgrind(folder, 2, cols)
        for threads in (1, 2):
            seconds = []
            for _ in range(repeats):
                few, _ = run_oclgrind(folder, 2, cols, threads)
                all_rows, _ = run_oclgrind(folder, rows + 2, cols, threads)
                seconds.append(all_rows - few)
            runs.append({"threads": threads, "rows": rows, "cols": cols, "seconds": seconds,
                         "elements_per_second": rows * cols / min(seconds)})
    version = subprocess.run(["oclgrind-kernel", "--version"], capture_output=True, text=True).stdout.split()
    return {"version": " ".join(version[:2]), "options": "--data-races", "runs": runs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build" / "bin"))
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--cols", type=int, default=1024, help="at most 1024")
    parser.add_argument("--oclgrind-rows", type=int, default=64, help="it is slower")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", help="write the results here")
    args = parser.parse_args()
    program = Path(args.bin) / "simulator_speed"
    if not os.access(program, os.X_OK):
        stop(2, f"{program} is not built: run make test first.")
    done = subprocess.run([str(program), str(args.rows), str(args.cols), str(args.repeats)], capture_output=True, text=True)
    if done.returncode != 0:
        stop(1, done.stderr.strip())
    ours = json.loads(done.stdout)
    speed, cpu = {}, {}
    for run in ours["runs"]:
        run["elements_per_second"] = args.rows * args.cols / min(run["seconds"])
        speed[run["mode"], run["threads"]] = run["elements_per_second"]
        cpu[run["mode"], run["threads"]] = min(run["cpu_seconds"])
        print(f"simulator, {run['mode']:9} {run['threads']} thread(s): {run['elements_per_second'] / 1e6:8.3f} M elements/s")
    result = {"simulator": ours, "slowdown_by_checks": cpu["check", 1] / cpu["no check", 1],
              "two_threads": speed["check", 2] / speed["check", 1]}
    print(f"checks cost {result['slowdown_by_checks']:.2f} times (goal: at most {MOST_SLOWDOWN}); "
          f"two threads are {result['two_threads']:.2f} times as fast")
    goals = result["slowdown_by_checks"] <= MOST_SLOWDOWN
    if shutil.which("oclgrind-kernel"):
        result["oclgrind"] = measure_oclgrind(args.oclgrind_rows, args.cols, args.repeats)
        for run in result["oclgrind"]["runs"]:
            print(f"oclgrind, races      {run['threads']} thread(s): {run['elements_per_second'] / 1e6:8.3f} M elements/s")
        result["lead_over_oclgrind"] = {run["threads"]: speed["check", run["threads"]] / run["elements_per_second"]
                                        for run in result["oclgrind"]["runs"]}
        print("ahead of it by", ", ".join(f"{lead:.1f}" for lead in result["lead_over_oclgrind"].values()),
              f"times (goal: at least {LEAST_LEAD})")
        goals = goals and min(result["lead_over_oclgrind"].values()) >= LEAST_LEAD
    else:
        print("oclgrind-kernel is not installed: no comparison")
    result["machine"] = {"processor": next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line),
                                           platform.processor()), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    result["date"] = records.now()
    result["commit"] = records.commit()
    if args.json:
        try:
            records.write(args.json, result)
        except OSError as problem:
            stop(2, f"cannot write {args.json}: {problem.strerror}.")
    return 0 if goals else 1


if __name__ == "__main__":
    sys.exit(main())
