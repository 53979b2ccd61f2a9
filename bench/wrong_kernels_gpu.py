#!/usr/bin/env python3
"""Holds what the simulator says of the wrong kernels in tests/wrong_kernels, and of their right twins, against what NVIDIA's
tools say of them on a GPU.

Every wrong kernel runs under all four tools of compute-sanitizer, each run in a process of its own and all of them side by
side; its twin runs under the tool that should see the fault, or under all four if none should. What is right and slow is
counted by Nsight Compute. Writes one JSON file.

    bench/wrong_kernels_gpu.py --bin build/bin --out bench/results/h200_wrong_kernels.json

What no tool is known to see has a verdict of its own, "blind": the tools ran and said nothing.

Exit codes: 0 none disagrees, 1 one does, 2 a wrong command or a missing program, 3 counters not permitted on this machine.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import counters
import records

SANITIZERS = ("memcheck", "racecheck", "initcheck", "synccheck")
# What a tool must print to mean what the simulator means.
SAME_KIND = {
    "race": r"Race reported|Potential \w+ hazard",
    "divergent barrier": r"Barrier error",
    "divergent shuffle": r"Barrier error|Divergent",
    "out-of-bounds access": r"out of bounds",
    "misaligned access": r"misaligned",
    "read of uninitialised memory": r"Uninitialized",
    "use after free": r"out of bounds|freed",
    "access to memory that is not the device's": r"out of bounds|Invalid",
}
COUNTED = counters.COMPARED + counters.SHARED


def find_sanitizer():
    place = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(place, os.X_OK):
        counters.stop(2, "compute-sanitizer was not found: install the CUDA Toolkit with it, or put it on PATH.")
    return place


def call(command, timeout):
    """Output and exit code of a program; None for the code if it had to be ended, with all that it started."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    try:
        return process.communicate(timeout=timeout)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] or "", None


def list_cases(program):
    keys = ("name", "kind", "tool", "twin", "launched", "why")
    r = subprocess.run([program, "--list"], capture_output=True, text=True)
    if r.returncode != 0:
        counters.stop(2, f"{program} --list failed: {r.stderr.strip()[-300:]}.")
    cases = [dict(zip(keys, line.split("\t"))) for line in r.stdout.splitlines()]
    for c in cases:
        c["twin"], c["launched"] = c["twin"] == "yes", c["launched"] == "yes"
    return cases


def simulate(program, kernel):
    r = subprocess.run([program, kernel], capture_output=True, text=True)
    if r.returncode != 0:
        counters.stop(2, f"{program} {kernel} failed: {(r.stderr or r.stdout).strip()[-300:]}.")
    said = json.loads(r.stdout)
    if 0 in said["lines"]:
        counters.stop(2, f"{program} knows no source lines: it was stripped, take it as it was built.")
    return said


def short(line):
    """Without the kernel's arguments, addresses and folders."""
    line = re.sub(r"\bat .*? in (\S+:\d+)", lambda m: "at " + Path(m[1]).name, line)
    return re.sub(r"0x[0-9a-fA-F]+", "0x...", line).rstrip(" .:")


def read_sanitizer(text, code):
    """Number of errors, the first of them, and the lines of the kernel files that are named. None for the number: the
    tool did not get to the end, and the text says why."""
    said = [m[1].strip() for m in re.finditer(r"^=========(.*)$", text, re.M) if m[1].strip()]
    summary = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
    heads = [s for s in said if s != "COMPUTE-SANITIZER" and "SUMMARY:" not in s]
    heads.sort(key=lambda s: not re.search(r"Race reported", s))  # stable: races before their single hazards
    address = next((s for s in said if re.match(r"Address 0x", s)), "")
    lines = sorted({int(n) for n in re.findall(r"\.cuh:(\d+)", text)})
    if summary is None:
        last = (text.strip().splitlines() or [f"nothing, exit code {code}"])[-1]
        return {"errors": None, "says": "still running at the time limit" if code is None else short(last), "lines": lines}
    says = short(heads[0]) if heads and int(summary[1]) else ""
    result = {"errors": int(summary[1]), "says": says, "lines": lines}
    if address and says:
        result["address"] = short(address)
    return result


def sanitize(sanitizer, options, program, kernel, tool, kind, timeout):
    begin = time.monotonic()
    text, code = call([sanitizer, "--tool", tool, *options.get(tool, []), program, kernel], timeout)
    return {"tool": tool, **read_sanitizer(text, code), "same_kind": bool(re.search(SAME_KIND.get(kind, "$^"), text)),
            "reads_host_memory": "reads the host's memory: yes" in text, "seconds": round(time.monotonic() - begin, 1)}


def tools_of(case, right, quick):
    if case["tool"] == "none" or not (right or quick):
        return SANITIZERS
    return (case["tool"],)


def excused(case, wrong, shared_initcheck):
    """Whether the reason that the list gives for a tool that sees nothing holds here."""
    if case["kind"].startswith("access to memory that is not"):
        return any(r["reads_host_memory"] for r in wrong["runs"])
    return bool(case["why"]) and case["tool"] == "initcheck" and not shared_initcheck


def judge(case, shared_initcheck):
    """Adds to the case who saw the fault, whether at the simulator's line, and whether both agree."""
    wrong, twin = case["wrong"], case.get("right")
    wrong["seen_by"] = [r["tool"] for r in wrong["runs"] if r["errors"] and r["same_kind"]]
    wrong["same_line"] = any(set(r["lines"]) & set(wrong["simulator"]["lines"]) for r in wrong["runs"] if r["tool"] in wrong["seen_by"])
    if case["tool"] == "none" or excused(case, wrong, shared_initcheck):
        # Each tool got to the end, and said nothing or saw it after all.
        asked = [r for r in wrong["runs"] if case["tool"] in ("none", r["tool"])]
        as_expected = all(r["errors"] == 0 or r["tool"] in wrong["seen_by"] for r in asked)
    else:
        as_expected = case["tool"] in wrong["seen_by"]
    case["agree"] = as_expected and wrong["simulator"]["kind"] == case["kind"]
    if twin:
        case["agree"] &= twin["simulator"]["kind"] == "" and all(r["errors"] == 0 for r in twin["runs"])
    case["verdict"] = "DISAGREE" if not case["agree"] else "agree" if wrong["seen_by"] else "blind"


def print_case(case):
    wrong = case["wrong"]
    seen = [f"{r['tool']}: {r['says']}" for r in wrong["runs"] if r["errors"]]
    seen = seen or ["nothing" + (": " + case["why"] if case["verdict"] == "blind" else "")]
    place = " (same line)" if wrong["same_line"] else ""
    print(f"{case['verdict']:9}{case['name']:22} {wrong['simulator']['kind']}; {' | '.join(seen)}{place}")
    for r in wrong["runs"] + case.get("right", {}).get("runs", []):
        twin = r not in wrong["runs"]
        if r["errors"] is None or (twin and r["errors"]):
            print(f"{'':9}{case['name']}_{'right' if twin else 'wrong'} under {r['tool']}: {r['says']}")


def check_faults(cases, args, sanitizer, options):
    jobs = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case in cases:
            for side in ("wrong", "right") if case["twin"] else ("wrong",):
                kernel = f"{case['name']}_{side}"
                case[side] = {"simulator": simulate(args.bin / "wrong-kernels-sim", kernel), "runs": []}
                for tool in tools_of(case, side == "right", args.quick):
                    jobs.append((case[side]["runs"], pool.submit(sanitize, sanitizer, options, args.bin / "wrong-kernels-cuda",
                                                                 kernel, tool, case["kind"], args.timeout)))
        for runs, job in jobs:
            runs.append(job.result())
    for case in cases:
        judge(case, "initcheck" in options)
        print_case(case)


def telling(kind, counts):
    """The number in which a slow kernel differs from its twin."""
    if kind == "bank conflict":
        return "wavefronts of shared loads", counts["sh_ld_wavefronts"]
    if kind == "loaded again":
        return "sectors loaded", counts["ld_sectors"]
    return "sectors a load request", round(counts["ld_sectors"] / max(counts["ld_requests"], 1), 2)


def check_counts(cases, args):
    kernels = [f"{c['name']}_{side}" for c in cases for side in ("wrong", "right")]
    launches = counters.profiled([args.bin / "wrong-kernels-cuda", *kernels], len(kernels), [m for _, m, _ in COUNTED])
    for case in cases:
        case["agree"] = True
        for side in ("wrong", "right"):
            kernel = f"{case['name']}_{side}"
            said = simulate(args.bin / "wrong-kernels-sim", kernel)
            seen = launches[kernels.index(kernel)]
            simulated = {name: said[group][key] for name, _, (group, key) in COUNTED}
            hardware = {name: seen[metric] for name, metric, _ in COUNTED}
            unit, number = telling(case["kind"], hardware)
            case[side] = {"simulator": {"kind": said["kind"], "lines": said["lines"], "counts": simulated}, "kernel": seen["kernel"],
                          "hardware": hardware, "unit": unit, "simulated": telling(case["kind"], simulated)[1], "measured": number,
                          "different": [n for n in hardware if simulated[n] != hardware[n]]}
            case["agree"] &= (kernel in seen["kernel"] and not case[side]["different"]
                              and said["kind"] == (case["kind"] if side == "wrong" else ""))
        wrong, twin = case["wrong"], case["right"]
        case["agree"] &= wrong["measured"] > twin["measured"]
        case["verdict"] = "agree" if case["agree"] else "DISAGREE"
        print(f"{case['verdict']:9}{case['name']:22} {case['kind']}; ncu: {wrong['measured']} {wrong['unit']}, "
              f"twin {twin['measured']} (simulator {wrong['simulated']}, {twin['simulated']})"
              + "".join(f"; {n} of {k['kernel']}: {k['simulator']['counts'][n]} simulated, {k['hardware'][n]} measured"
                        for k in (wrong, twin) for n in k["different"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", type=Path, help="folder with wrong-kernels-cuda and wrong-kernels-sim")
    parser.add_argument("--commit", default="", help="the commit that was built, where there is no git")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--timeout", type=float, default=40, help="seconds for a launch under a tool; a kernel may hang")
    parser.add_argument("--quick", action="store_true", help="wrong kernels too only under the tool that should see the fault")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    for name in ("wrong-kernels-sim", "wrong-kernels-cuda"):
        if not (args.bin / name).is_file():
            counters.stop(2, f"{name} is not in {args.bin}: build it first.")
    if not counters.describe_device():
        counters.stop(2, "there is no working NVIDIA GPU here (nvidia-smi does not answer): run this on a machine that has one.")
    sanitizer = find_sanitizer()
    version = next((w for w in call([sanitizer, "--version"], 30)[0].splitlines() if "ersion" in w), "").strip()
    options = {"racecheck": ["--racecheck-report", "all", "--racecheck-detect-level", "info"]}
    if "--initcheck-address-space" in call([sanitizer, "--help"], 30)[0]:
        options["initcheck"] = ["--initcheck-address-space", "all"]

    begin = time.monotonic()
    cases = list_cases(args.bin / "wrong-kernels-sim")
    report = counters.new_report(args.commit, compute_sanitizer=version, options=options, cases=cases)

    def write():
        report["seconds"] = round(time.monotonic() - begin, 1)
        try:
            records.write(args.out, report)
        except OSError as problem:
            counters.stop(2, f"cannot write {args.out}: {problem.strerror}.")

    check_faults([c for c in cases if c["launched"] and c["tool"] != "ncu"], args, sanitizer, options)
    write()  # and again at the end: a run that is cut short keeps what it found
    check_counts([c for c in cases if c["launched"] and c["tool"] == "ncu"], args)
    write()
    launched = [c for c in cases if c["launched"]]
    for c in cases:
        if not c["launched"]:
            print(f"{'':9}{c['name']:22} not launched: {c['why']}")
    count = {v: sum(c["verdict"] == v for c in launched) for v in ("agree", "blind", "DISAGREE")}
    print(f"{count['agree']} of {len(launched)} agree, {count['blind']} are such as no tool sees, {count['DISAGREE']} disagree; "
          f"{report['seconds']:.0f} s")
    return 1 if count["DISAGREE"] else 0


if __name__ == "__main__":
    sys.exit(main())
