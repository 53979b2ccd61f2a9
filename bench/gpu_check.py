#!/usr/bin/env python3
"""Everything that needs an NVIDIA GPU to be checked, in one run: the contract tests, chosen shapes, many widths, the same bits
in 100 runs, compute-sanitizer, and the simulator's counts against the hardware's. Writes one JSON file; times are run.py's.

    bench/gpu_check.py --build build --out bench/results/h200_stages.json

Exit codes: 0 all of it is right, 1 something is not, 2 a wrong command.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters
import records

WIDTHS = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 781, 1000, 1023, 1024, 1025, 2048, 4097, 8192, 12672, 32768, 50257, 128256,
          200000, 1048576]
WIDEST = {"02": 16384, "03": 16384, "04": 32768, "06": 32768}  # checked: a wider row must be refused, the widest must be right
DTYPES = ("f32", "f16", "bf16")
# Of stage 07: more clusters of 16 blocks than run at once. There synccheck (of CUDA 13.0) reports missing waits at barriers, and
# disturbs the run, in any program, as in one whose blocks only send each other a number; with clusters of 8 it does not.
CLUSTERS_OF_16 = ((8, 50257), (33, 200001))
SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run(command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def contract(binary):
    r = run([binary], env={**os.environ, "SOFTMAX_TEST_BACKEND": "cuda"})
    last = [line for line in r.stdout.splitlines() if line.strip()][-1:] or [r.stderr.strip()]
    return {"program": binary.name, "exit": r.returncode, "says": last[0], "log": "" if r.returncode == 0 else r.stdout[-3000:]}


def shape(binary, rows, cols, dtype, extra=("--no-time",)):
    r = run([binary, "--device", "cuda", "--rows", rows, "--cols", cols, "--dtype", dtype, "--json", *extra])
    if r.returncode not in (0, 1):
        return {"stage": binary.name, "rows": rows, "cols": cols, "dtype": dtype, "exit": r.returncode, "says": r.stderr.strip()}
    if not r.stdout:
        return {"stage": binary.name, "rows": rows, "cols": cols, "dtype": dtype, "exit": r.returncode, "says": r.stderr.strip()}
    result = json.loads(r.stdout)
    return {"stage": binary.name, "exit": r.returncode, "options": list(extra), "device": result["device"], **result["runs"][0]}


def widths(binary, rows, columns, dtype):
    """Verifies many shapes in one process. Widths that the stage refuses are tried one by one, for their sentence."""
    result = {"stage": binary.name, "dtype": dtype, "rows": rows, "verified": [], "refused": {}, "wrong": []}
    limit = WIDEST.get(binary.name[-2:], 1 << 62)
    fits = [n for n in columns if n <= limit]
    command = [binary, "--device", "cuda", "--rows", ",".join(map(str, rows)), "--cols", ",".join(map(str, fits)),
               "--dtype", dtype, "--check", "rows:48", "--no-time", "--json"]
    r = run(command)
    for one in json.loads(r.stdout)["runs"] if r.stdout else []:
        result["verified" if one["pass"] else "wrong"].append([one["rows"], one["cols"]])
    if not r.stdout:
        result["wrong"].append(r.stderr.strip())
    for n in columns:
        if n > limit:
            refused = run([binary, "--device", "cuda", "--rows", 1, "--cols", n, "--dtype", dtype, "--no-time"])
            result["refused"][n] = refused.stderr.strip()
            wider = "stage 07" if binary.name == "stage-06" else "stage 05"
            if refused.returncode != 2 or wider not in refused.stderr:
                result["wrong"].append([1, n])
    return result


def steady(binary, rows, cols, dtype):
    r = run([binary, "--device", "cuda", "--rows", rows, "--cols", cols, "--dtype", dtype, "--repeat", 100, "--no-time",
             "--check", "rows:16", "--json"])
    ok = bool(r.stdout) and json.loads(r.stdout)["runs"][0]["steady"] and r.returncode == 0
    return {"stage": binary.name, "rows": rows, "cols": cols, "dtype": dtype, "repetitions": 100, "same_bits": ok}


def sanitize(binary, tool):
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    options = ["--leak-check", "full"] if tool == "memcheck" else []
    results = []
    shapes = [(67, 781, "f32", ()), (5, 4097, "bf16", ("--ld-in", "4100", "--ld-out", "4099", "--offset", "1"))]
    if binary.name == "stage-07":
        # Two launches, clusters of few rows, of many, with shared memory, and the ring.
        shapes += [(1, 262144, "bf16", ()), (8, 50257, "f32", ()), (600, 100, "f32", ()), (33, 200001, "f32", ()),
                   (33, 400020, "f32", ()), (400, 4096, "f32", ())]
    if binary.name == "stage-06":
        shapes += [(300, 33, "bf16", ()), (70, 150, "f16", ("--offset", "1")), (40, 333, "bf16", ()),  # tiles, lanes
                   (70, 1101, "bf16", ()), (300, 2501, "bf16", ()),
                   (1100, 1024, "f32", ())]  # more than lies between asking the cache and loading
    for rows, cols, dtype, extra in shapes:
        if tool == "synccheck" and (rows, cols) in CLUSTERS_OF_16:
            results.append({"stage": binary.name, "tool": tool, "rows": rows, "cols": cols, "dtype": dtype, "exit": 0,
                            "says": "SKIP: synccheck takes clusters of 16 blocks that do not all fit at once for missing waits"})
            continue
        r = run([program, "--tool", tool, *options, "--error-exitcode", "9", binary, "--device", "cuda", "--rows", rows,
                 "--cols", cols, "--dtype", dtype, "--no-time", *extra])
        summary = re.findall(r"=+ (.*(?:SUMMARY|ERROR SUMMARY).*)", r.stdout)
        results.append({"stage": binary.name, "tool": tool, "rows": rows, "cols": cols, "dtype": dtype, "exit": r.returncode,
                        "says": summary[-1] if summary else r.stdout[-500:],
                        **({"log": r.stdout[:4000]} if r.returncode else {})})
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    counters.add_build_options(parser)
    parser.add_argument("--stages", default="00,01,02,03,04,05")
    parser.add_argument("--shapes", default="4096x8192,1823x781", help="verified and counted")
    parser.add_argument("--extra-shapes", default="", help="verified")
    parser.add_argument("--skip", default="", help="any of shapes,widths,steady,contract,sanitizer,counters")
    parser.add_argument("--dtype", default="f32,f16,bf16", help="of the widths")
    parser.add_argument("--only-many", type=int, default=0, help="with this width and wider, at 4096 rows, and no other widths")
    parser.add_argument("--widest-of-many", type=int, default=1048576, help="widest row tried with 4096 rows (34 GB at 1048576 f32)")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    binaries = Path(args.build) / "bin"
    stages = [f"stage-{n}" for n in args.stages.split(",")]
    missing = [s for s in stages if not (binaries / s).is_file()]
    if missing:
        counters.stop(2, f"{missing[0]} is not in {binaries}: build it first.")
    if not shutil.which("nvidia-smi") or run(["nvidia-smi"]).returncode != 0:
        counters.stop(2, "there is no working NVIDIA GPU here (nvidia-smi does not answer): run this on a machine that has one.")

    # Written after each part, so that a run that is cut short keeps what it found.
    report = counters.new_report(args.commit, contract=[], shapes=[], widths=[], steady=[], sanitizer=[], counters=[])
    good = True
    pairs = [tuple(map(int, s.split("x"))) for s in args.shapes.split(",")]
    extra = [tuple(map(int, s.split("x"))) for s in args.extra_shapes.split(",") if s]
    for stage in stages:
        for m, n in [] if "shapes" in args.skip else pairs + extra:
            for dtype in DTYPES:
                result = shape(binaries / stage, m, n, dtype)
                good &= result.get("pass", False)
                report["shapes"].append(result)
                print(f"{stage} {m}x{n} {dtype}: {'right' if result.get('pass') else 'WRONG ' + str(result)[:300]}", flush=True)
        records.write(args.out, report)
        if "widths" not in args.skip:
            many = [n for n in WIDTHS if args.only_many <= n <= args.widest_of_many]
            for dtype in args.dtype.split(","):
                for rows, columns in (([4096], many),) if args.only_many else (([1, 5, 131], WIDTHS), ([4096], many)):
                    result = widths(binaries / stage, rows, columns, dtype)
                    good &= not result["wrong"]
                    report["widths"].append(result)
                    records.write(args.out, report)
                    print(stage, dtype, "rows", rows, len(result["verified"]), "shapes right,", len(result["refused"]), "refused",
                          f"WRONG {result['wrong']}" if result["wrong"] else "", flush=True)
        if "steady" not in args.skip:
            for cols, dtype in ((781, "f32"), (8192, "bf16")):
                result = steady(binaries / stage, 2048, cols, dtype)
                good &= result["same_bits"]
                report["steady"].append(result)
                print(stage, f"2048x{cols}", dtype, "100 runs", "same bits" if result["same_bits"] else "DIFFER", flush=True)
        if "contract" not in args.skip:
            result = contract(binaries / stage.replace("stage", "contract"))
            good &= result["exit"] == 0
            report["contract"].append(result)
            print(result["program"], result["says"], result["log"], flush=True)
        if "sanitizer" not in args.skip:
            for tool in SANITIZERS:
                for result in sanitize(binaries / stage, tool):
                    good &= result["exit"] == 0
                    report["sanitizer"].append(result)
                    print(stage, tool, f"{result['rows']}x{result['cols']}", result["says"], flush=True)
        if "counters" not in args.skip:
            for m, n in pairs:
                for dtype in DTYPES:
                    result = counters.compare(stage, m, [n], dtype, [], folder=binaries)[0]
                    report["counters"].append(result)
                    differences = [c[name]["difference"] for c in result["launches"] for name, _, _ in counters.COMPARED]
                    good &= not any(differences)
                    print(stage, f"{m}x{n}", dtype, "counters", "equal" if not any(differences) else f"DIFFER {differences}", flush=True)
        records.write(args.out, report)
    print("all right" if good else "NOT all right")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
