#!/usr/bin/env python3
"""Holds the simulator's counts against the hardware counters of an NVIDIA GPU.

Runs a stage once under Nsight Compute and once on the simulator, at the same shapes, and compares for every launch the
warp requests and 32-byte sectors of global loads and stores. Also reports the bytes that reached DRAM, which only the
hardware knows.

    bench/counters.py stage-01 --rows 1823 --cols 781 --dtype f32,bf16 --json counters.json

With --shared it compares the wavefronts of shared memory too; bank conflicts are the wavefronts beyond one a request. The
simulator counts the accesses of the source, a GPU those that the compiler left. Where these differ the kernel's machine code
(cuobjdump) has to say why: loads that became LDS.64 or LDS.128, or that stand behind a branch.

With --hardware FILE the GPU's side is that of an earlier result, and only the simulator counts again, which needs no GPU. The kernels
must be the same as then.

Exit codes: 0 all counts are equal or the machine code explains the difference, 1 one is not explained, 2 a wrong command or a
missing program, 3 counters not permitted on this machine.
"""
import argparse
import csv
import functools
import io
import json
import os
import re
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
# With --shared. Counted by patched machine code: the same in every run, where the unit's own counters (RECORDED) also count
# the turns that a request waits for other traffic.
SHARED = [
    ("sh_ld_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", ("shared_load", "wavefronts")),
    ("sh_st_wavefronts", "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum", ("shared_store", "wavefronts")),
]
RECORDED = [
    ("sh_ld_instructions", "smsp__sass_inst_executed_op_shared_ld.sum"),
    ("sh_st_instructions", "smsp__sass_inst_executed_op_shared_st.sum"),
    ("sh_ld_wavefronts_l1tex", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    ("sh_ld_conflicts_l1tex", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    ("sh_st_wavefronts_l1tex", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
    ("sh_st_conflicts_l1tex", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
]
DRAM = [("dram_read_bytes", "dram__bytes_read.sum"), ("dram_write_bytes", "dram__bytes_write.sum")]


def stop(code, sentence):
    print(f"counters: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def find_program(stage, folder=None):
    usual = (ROOT / stage, ROOT / "build" / "bin" / stage, ROOT / "build" / "cuda" / "bin" / stage)
    for place in [folder / stage] if folder else usual:
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


def number(text):
    """What Nsight Compute prints, as an int if it is one."""
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def profiled(command, launches, names):
    """Runs a command under Nsight Compute. One dict a launch, metric name -> count or ratio."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [find_ncu(), "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
                   "--print-kernel-base", "mangled", "--launch-count", str(launches),
                   "--metrics", ",".join(names), "--log-file", str(log), *map(str, command)]
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
             **{m: number(r[m]) for m in names}}
            for r in rows]


def hardware(program, arguments, launches, names):
    """The counters of a stage's launches."""
    return profiled([program, *arguments, "--device", "cuda", "--no-time", "--json"], launches, names)


def simulated(program, arguments):
    run = subprocess.run([str(program), *arguments, "--device", "sim", "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        stop(run.returncode, run.stderr.strip() or "the simulator run failed.")
    report = json.loads(run.stdout)
    return [r["simulator"]["launches"] for r in report["runs"]], report["commit"]


@functools.lru_cache(maxsize=None)
def capability():
    """90 for a GPU of compute capability 9.0; 0 if there is none."""
    if not shutil.which("nvidia-smi"):
        return 0
    run = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
    found = re.match(r"(\d+)\.(\d)", run.stdout)
    return int(found[1] + found[2]) if found else 0


def read_sass(text):
    """Architecture -> symbol -> instructions (address, predicate, operation, operands) of what cuobjdump -sass prints."""
    found, arch, code = {}, 0, []
    for line in text.splitlines():
        if m := re.search(r"\bcode for sm_(\d+)", line):
            arch = int(m[1])
        elif m := re.search(r"Function : (\S+)", line):
            code = found.setdefault(arch, {}).setdefault(m[1], [])
        elif m := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(@\S+)?\s*([A-Z][\w.]*)([^;]*);", line):
            code.append((int(m[1], 16), m[2] or "", m[3], m[4]))
    return found


def shared_accesses(code):
    """Loads and stores of shared memory in a kernel's instructions, by width, and those of them that some lanes may pass by."""
    jumps = [(at, int(m[1], 16)) for at, predicate, operation, operands in code
             if predicate and operation.startswith("BRA") and (m := re.search(r"0x([0-9a-f]+)\s*$", operands))]
    result = {"instructions": {}, "behind_a_branch": {}}
    for at, predicate, operation, _ in code:
        if operation.split(".")[0] in ("LDS", "STS"):
            result["instructions"][operation] = result["instructions"].get(operation, 0) + 1
            if predicate or any(start < at < end for start, end in jumps):
                result["behind_a_branch"][operation] = result["behind_a_branch"].get(operation, 0) + 1
    return result


@functools.lru_cache(maxsize=None)
def shared_code(program):
    """Symbol -> shared_accesses() of the machine code that this GPU runs; empty if there is no cuobjdump."""
    tool = shutil.which("cuobjdump") or "/usr/local/cuda/bin/cuobjdump"
    if not os.access(tool, os.X_OK):
        print("counters: cuobjdump was not found, so that no difference can be explained: install it with the CUDA Toolkit.",
              file=sys.stderr)
        return {}
    run = subprocess.run([tool, "-sass", str(program)], capture_output=True, text=True)
    if run.returncode != 0:
        stop(2, f"{tool} -sass {program} failed: {run.stderr.strip()[-300:]}.")
    found = read_sass(run.stdout)
    fits = [a for a in found if not capability() or (a // 10 == capability() // 10 and a <= capability())]
    if not fits:
        return {}
    return {symbol: {"arch": f"sm_{max(fits)}", **shared_accesses(code)} for symbol, code in found[max(fits)].items()}


def words(operation):
    """4-byte words that an instruction moves for a lane."""
    return 4 if ".128" in operation else 2 if ".64" in operation else 1


def explain(launch, way):
    """Whether the wavefronts of a launch's loads ("ld") or stores ("st") are equal, and if not, what in the machine code says
    so. An instruction that moves several words stands for as many accesses of the source; behind a branch fewer warps may run
    it. What is left must be free of bank conflicts: no more wavefronts than words."""
    counted = launch[f"sh_{way}_wavefronts"]
    if not counted["difference"]:
        return {"verdict": "equal", "why": ""}
    code, ran, requests = launch["shared_code"], launch[f"sh_{way}_instructions"], launch[f"sh_{way}_requests"]
    of_kind = lambda part: {o: n for o, n in code.get(part, {}).items() if o.startswith({"ld": "LDS", "st": "STS"}[way])}
    found = of_kind("instructions")
    if not found:
        return {"verdict": "unexplained", "why": "its machine code was not found" if not code else "no such instruction"}
    wide = sorted(o for o in found if words(o) > 1)
    expected = requests * sum(found.values()) / sum(n * words(o) for o, n in found.items())
    why = [f"merged into {', '.join(wide)}"] if wide else []
    if ran < expected and of_kind("behind_a_branch"):
        why.append("behind a branch, run by fewer warps")
    holds = (why and (ran == expected or (ran < expected and of_kind("behind_a_branch"))) and launch[f"sh_{way}_conflicts"] == 0
             and ran <= counted["hardware"] <= ran * max(map(words, found)) and counted["hardware"] < counted["simulator"])
    return {"verdict": "explained", "why": "; ".join(why)} if holds else {"verdict": "unexplained", "why": ""}


def seen_before(report, key, compared, recorded):
    """The launches of an earlier result at one shape, as hardware() gives them, each with its machine code."""
    for r in report["results"]:
        if (r["stage"], r["rows"], r["cols"], r["dtype"], r["options"]) == key:
            return [{"kernel": e["hardware_kernel"], "shared_code": e.get("shared_code", {}),
                     **{metric: e[name]["hardware"] for name, metric, _ in compared}, **{metric: e[name] for name, metric in recorded}}
                    for e in r["launches"]]
    stop(2, f"--hardware has no {key[0]} at {key[1]}x{key[2]} {key[3]} {' '.join(key[4])}: measure that first.")


def compare(stage, rows, widths, dtype, extra, compared=COMPARED, folder=None, earlier=None):
    """One dict for each width. All are run by one process, since starting the profiler takes seconds."""
    program = find_program(stage, folder)
    arguments = ["--rows", str(rows), "--cols", ",".join(map(str, widths)), "--dtype", dtype, *extra]
    runs, commit = simulated(program, arguments)
    shared = any(c in compared for c in SHARED)
    recorded = DRAM + (RECORDED if shared else [])
    if earlier:
        seen = iter([h for n in widths for h in seen_before(earlier, (stage, rows, n, dtype, extra), compared, recorded)])
    else:
        seen = iter(hardware(program, arguments, sum(map(len, runs)), [m for _, m, _ in compared] + [m for _, m in recorded]))
    results = []
    for cols, run in zip(widths, runs):
        launches = []
        for s in run:
            h = next(seen)
            entry = {"kernel": s["kernel"], "hardware_kernel": h["kernel"]}
            for name, metric, (group, key) in compared:
                entry[name] = {"simulator": s[group][key], "hardware": h[metric], "difference": s[group][key] - h[metric]}
            for name, metric in recorded:
                entry[name] = h[metric]
            if shared:
                entry["shared_code"] = h["shared_code"] if earlier else shared_code(program).get(h["kernel"], {})
                for way, group in (("ld", "shared_load"), ("st", "shared_store")):
                    entry[f"sh_{way}_requests"], entry[f"sh_{way}_conflicts"] = s[group]["requests"], s[group]["bank_conflicts"]
                    entry[f"sh_{way}"] = explain(entry, way)
            launches.append(entry)
        results.append({"stage": stage, "rows": rows, "cols": cols, "dtype": dtype, "options": extra, "commit": commit,
                        "launches": launches})
    return results


def differences(results, compared):
    """(where, simulator, hardware, verdict, why) of each count that is not equal."""
    found = []
    for r in results:
        for launch in r["launches"]:
            for name, _, _ in compared:
                c = launch[name]
                if c["difference"]:
                    said = launch.get(name[:5], {"verdict": "unexplained", "why": ""})
                    where = f"{r['stage']} {r['rows']}x{r['cols']} {r['dtype']} {launch['kernel']} {name}"
                    found.append((where, c["simulator"], c["hardware"], said["verdict"], said["why"]))
    return found


def describe_device():
    query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"
    run = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True, text=True)
    values = [v.strip() for v in run.stdout.splitlines()[0].split(",")] if run.returncode == 0 and run.stdout else []
    return dict(zip(query.split(","), values))


def add_build_options(parser):
    """Of the scripts that run what was built, perhaps on another machine."""
    parser.add_argument("--build", default="build", help="build folder with bin/")
    parser.add_argument("--commit", default="", help="the commit that was built, where there is no git")


def new_report(commit, **parts):
    """A result that says where, from what and when it was measured; `commit` is that of --commit, or empty."""
    return {"device": describe_device(), "commit": commit or records.commit(), "date": records.now(), **parts}


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
    parser.add_argument("--shared", action="store_true", help="compare shared memory's wavefronts too")
    parser.add_argument("--hardware", type=Path, metavar="FILE", help="take the GPU's side from this earlier result")
    parser.add_argument("--bin", type=Path, help="folder with the stages; this one or build/bin if not given")
    args, extra = parser.parse_known_args()
    compared = COMPARED + (SHARED if args.shared else [])
    earlier = device = None
    if args.hardware:
        try:
            earlier = json.loads(args.hardware.read_text())
            device = earlier["device"]
        except (OSError, ValueError, KeyError) as problem:
            stop(2, f"--hardware {args.hardware} is no result of this command: {problem}.")
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
                results += compare(Path(stage).name, m, of_these, dtype, extra, compared, args.bin, earlier)
    if not args.quiet:
        print_table(results, compared)
    different = differences(results, compared)
    unexplained = [d for d in different if d[3] != "explained"]
    total = sum(len(r["launches"]) for r in results) * len(compared)
    for where, simulated_count, measured, verdict, why in different:
        print(f"differs: {where}: {simulated_count} simulated, {measured} measured; {verdict}{': ' + why if why else ''}")
    print(f"{total - len(different)} of {total} counts are equal, {len(different) - len(unexplained)} differ as the machine code "
          f"explains, {len(unexplained)} are unexplained")
    if args.json:
        commit = results[0]["commit"]  # of the program, which need not be that of the folder
        try:
            measured = {"hardware_measured": {"commit": earlier["commit"], "date": earlier["date"]}} if earlier else {}
            records.write(args.json, {"device": device or describe_device(), "commit": commit, "date": records.now(), **measured,
                                      "results": results})
        except OSError as problem:
            stop(2, f"cannot write {args.json}: {problem.strerror}.")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
