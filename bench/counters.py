#!/usr/bin/env python3
"""Holds the simulator's counts against the hardware counters of an NVIDIA GPU.

Runs a stage once under Nsight Compute and once on the simulator, at the same shapes, and compares for every launch the
warp requests and 32-byte sectors of global loads and stores. Also reports the bytes that reached DRAM, which only the
hardware knows.

    bench/counters.py stage-01 --rows 1823 --cols 781 --dtype f32,bf16 --json counters.json

With --shared it compares the wavefronts and bank conflicts of shared memory too.

Exit codes: 0 equal, 1 a difference, 2 a wrong command or a missing program, 3 counters not permitted on this machine.
"""
import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import records
from records import ROOT

# (name here, Nsight Compute's name, path in the simulator's launch record)
COMPARED = [
    ("ld_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", ("global_load", "requests")),
    ("ld_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", ("global_load", "sectors")),
    ("st_requests", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", ("global_store", "requests")),
    ("st_sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", ("global_store", "sectors")),
]
# With --shared: a model that has not been held against a GPU yet, so it stands apart.
SHARED = [
    ("sh_ld_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", ("shared_load", "wavefronts")),
    ("sh_ld_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", ("shared_load", "bank_conflicts")),
    ("sh_st_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", ("shared_store", "wavefronts")),
    ("sh_st_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", ("shared_store", "bank_conflicts")),
]
DRAM = [("dram_read_bytes", "dram__bytes_read.sum"), ("dram_write_bytes", "dram__bytes_write.sum")]


def stop(code, sentence):
    print(f"counters: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def find_program(stage):
    for place in (ROOT / stage, ROOT / "build" / "bin" / stage, ROOT / "build" / "cuda" / "bin" / stage):
        if place.is_file() and os.access(place, os.X_OK):
            return place
    stop(2, f"{stage} is not built: run make {stage} first.")


def find_ncu():
    candidates = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/ncu"]
    candidates += sorted(str(p) for p in Path("/opt/nvidia/nsight-compute").glob("*/ncu"))
    for place in candidates:
        if place and os.access(place, os.X_OK):
            return place
    stop(3, "Nsight Compute (ncu) was not found: install it, or read the sectors of --device sim instead.")


def profiled(command, launches, names):
    """Runs a command under Nsight Compute. One dict a launch, metric name -> count."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [find_ncu(), "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
                   "--launch-count", str(launches), "--metrics", ",".join(names), "--log-file", str(log), *map(str, command)]
        run = subprocess.run(command, capture_output=True, text=True)
        text = log.read_text() if log.exists() else ""
    if "ERR_NVGPUCTRPERM" in text + run.stderr + run.stdout:
        stop(3, "this machine does not permit GPU counters (ERR_NVGPUCTRPERM): an administrator has to allow them, "
                "see https://developer.nvidia.com/ERR_NVGPUCTRPERM; the simulator needs no permission.")
    if run.returncode != 0:
        stop(1, f"{' '.join(command)} failed: {(run.stderr or text or run.stdout).strip()[-500:]}")
    table = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(table))))
    rows = [r for r in rows if r.get("ID", "").isdigit()]  # the second line holds units
    if len(rows) != launches:
        stop(1, f"Nsight Compute saw {len(rows)} launches where {launches} were expected.")
    return [{"kernel": r["Kernel Name"],
             **{m: int(float(r[m].replace(",", ""))) for m in names}}
            for r in rows]


def hardware(program, arguments, launches, compared=COMPARED):
    """The counters of a stage's launches."""
    return profiled([program, *arguments, "--device", "cuda", "--no-time", "--json"], launches,
                    [m for _, m, _ in compared] + [m for _, m in DRAM])


def simulated(program, arguments):
    run = subprocess.run([str(program), *arguments, "--device", "sim", "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        stop(run.returncode, run.stderr.strip() or "the simulator run failed.")
    report = json.loads(run.stdout)
    return [r["simulator"]["launches"] for r in report["runs"]], report["commit"]


def compare(stage, rows, widths, dtype, extra, compared=COMPARED):
    """One dict for each width. All are run by one process, since starting the profiler takes seconds."""
    program = find_program(stage)
    arguments = ["--rows", str(rows), "--cols", ",".join(map(str, widths)), "--dtype", dtype, *extra]
    runs, commit = simulated(program, arguments)
    seen = iter(hardware(program, arguments, sum(map(len, runs)), compared))
    results = []
    for cols, run in zip(widths, runs):
        launches = []
        for s in run:
            h = next(seen)
            entry = {"kernel": s["kernel"], "hardware_kernel": h["kernel"]}
            for name, metric, (group, key) in compared:
                entry[name] = {"simulator": s[group][key], "hardware": h[metric], "difference": s[group][key] - h[metric]}
            for name, metric in DRAM:
                entry[name] = h[metric]
            launches.append(entry)
        results.append({"stage": stage, "rows": rows, "cols": cols, "dtype": dtype, "options": extra, "commit": commit,
                        "launches": launches})
    return results


def describe_device():
    query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
    run = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True)
    values = [v.strip() for v in run.stdout.splitlines()[0].split(",")] if run.returncode == 0 and run.stdout else []
    return dict(zip(query.split(","), values))


def print_table(results, compared=COMPARED):
    print(f"{'stage':9}{'shape':>16} {'dtype':5}{'kernel':15}{'counter':17}{'simulator':>12}{'hardware':>12}{'diff.':>7}")
    for r in results:
        for launch in r["launches"]:
            for name, _, _ in compared:
                c = launch[name]
                print(f"{r['stage']:9}{r['rows']:>8}x{r['cols']:<7} {r['dtype']:5}{launch['kernel']:15}{name:17}"
                      f"{c['simulator']:>12}{c['hardware']:>12}{c['difference']:>7}")
            print(f"{'':50}DRAM: {launch['dram_read_bytes']} bytes read, {launch['dram_write_bytes']} written")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="+", help="such as stage-00")
    parser.add_argument("--rows", default="1823", help="one number, or as many as --cols has")
    parser.add_argument("--cols", default="781")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--json", help="write the table here")
    parser.add_argument("--quiet", action="store_true", help="print differences and the summary only")
    parser.add_argument("--shared", action="store_true", help="compare shared memory's wavefronts and conflicts too")
    args, extra = parser.parse_known_args()
    compared = COMPARED + (SHARED if args.shared else [])
    rows, cols = args.rows.split(","), args.cols.split(",")
    if len(rows) == 1:
        rows *= len(cols)
    if len(rows) != len(cols):
        stop(2, "--rows and --cols go in pairs: give as many of one as of the other.")
    widths = {}  # of each number of rows
    for m, n in zip(rows, cols):
        widths.setdefault(int(m), []).append(int(n))
    results = []
    for stage in args.stages:
        for m, of_these in widths.items():
            for dtype in args.dtype.split(","):
                results += compare(Path(stage).name, m, of_these, dtype, extra, compared)
    if not args.quiet:
        print_table(results, compared)
    different = [(r["stage"], r["rows"], r["cols"], r["dtype"], launch["kernel"], name, launch[name])
                 for r in results for launch in r["launches"] for name, _, _ in compared if launch[name]["difference"]]
    total = sum(len(r["launches"]) for r in results) * len(compared)
    for d in different:
        print("differs:", *d)
    print(f"{total - len(different)} of {total} counts are equal")
    if args.json:
        commit = results[0]["commit"]  # of the program, which need not be that of the folder
        try:
            records.write(args.json, {"device": describe_device(), "commit": commit, "date": records.now(), "results": results})
        except OSError as problem:
            stop(2, f"cannot write {args.json}: {problem.strerror}.")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
