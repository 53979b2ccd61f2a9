#!/usr/bin/env python3
"""Runs every benchmark program that was built, one after another, and writes one JSON file for each.

    bench/run.py --bin build/bin --out build/report
    bench/run.py --bin build/bin --out build/report --study between,narrow,sizes    more about stages 06 and 07

On a GPU: all stages, cuDNN and PyTorch where they are installed, the warp tuner of stage 04, and the broken timing rules. Without
one: the simulator's counts, no times. Prints the files it wrote on standard output, one a line, and progress with the time left on
standard error. Ctrl-C keeps what is finished. Exit codes: 0 done, 1 a wrong result, 2 a wrong command, 130 interrupted.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import records
from records import ROOT

LIES = "allocate,cold,l2,nosync,zeros"
# What is measured beside the ladder, into folders of their own: a study -> a stage -> what its program is told.
BOTH = "2047,2501,3001,4097,5001,6001,7001,10001,12001,14001,16001,17001,20001,24577,28001"
ELEMENTS = ",".join(str(1 << power) for power in (24, 26, 28, 30))
STUDIES = {
    "narrow": {"06": ["--cols", "9,17,25,33,36,49,63,65,81,97,100,113,127,129,150,191,225,239,255"]},
    "between": {"06": ["--cols", f"261,300,385,520,600,641,1032,1101,1300,1501,{BOTH}"],
                "07": ["--cols", f"{BOTH},33001,40001,66001,80000,100001,200001,300000,400000,600000,800000"]},
    "sizes": {"06": ["--cols", "1024,8192", "--elements", ELEMENTS], "07": ["--cols", "65536,1048576", "--elements", ELEMENTS]},
}
STUDY_REPETITIONS = 11
TUNED_WIDTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def stop(code, sentence):
    print(f"run: {sentence}", file=sys.stderr)
    raise SystemExit(code)


class Progress:
    """One line on a terminal, a line a task elsewhere: what runs, and how long the rest will take at this pace."""

    def __init__(self, total):
        self.total, self.done, self.begin = total, 0, time.monotonic()
        self.terminal = sys.stderr.isatty()

    def step(self, what, points=1):
        self.done += points
        self.show(what)

    def show(self, what):
        spent = time.monotonic() - self.begin
        left = spent / self.done * (self.total - self.done) if self.done else 0
        text = f"[{self.done}/{self.total}] {what}" + (f", about {left:.0f} s left" if self.done else "")
        if self.terminal:
            print(f"\r{text[:100]:100}", end="", file=sys.stderr, flush=True)

    def finish(self, what):
        print(f"{chr(13) if self.terminal else ''}[{self.done}/{self.total}] {what:85}".rstrip(), file=sys.stderr, flush=True)


def points_of(command):
    """How many benchmarks a program would run; 0 if it cannot say."""
    listed = subprocess.run([*command, "--benchmark_list_tests=true"], capture_output=True, text=True)
    if listed.returncode != 0:
        stop(2, f"{Path(command[0]).name} does not start: {listed.stderr.strip()[-300:]}")
    return sum("/dtype:" in line for line in listed.stdout.splitlines())


def on_a_gpu(programs, device):
    """What --device auto chooses here."""
    stage = programs / "stage-00"
    answer = subprocess.run([stage, "--device", device, "--rows", "1", "--cols", "1", "--no-time", "--json"], capture_output=True, text=True)
    if answer.returncode != 0:
        stop(2, answer.stderr.strip() or f"{stage} failed: run make stage-00 and look at ./stage-00.")
    return not json.loads(answer.stdout)["device"]["simulated"]


def short(value):
    """Seven digits are more than a clock gives, and a third of the file; counts stay exact."""
    if not isinstance(value, float):
        return value
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else float(f"{value:.7g}")


def keep(unfinished, target):
    """Moves a finished file to its place, one line an entry. Of a point that failed, one entry is enough. Files without any result,
    of a run that was stopped at once, are dropped."""
    try:
        report = json.loads(unfinished.read_text())
        entries = [e for e in report["benchmarks"] if not (e.get("error_occurred") and e.get("repetition_index", 0) > 0)
                   and e.get("error_message") != "interrupted"]
        good = any(not e.get("error_occurred") for e in entries)
    except (OSError, ValueError, KeyError):
        good = False
    if good:
        lines = ",\n".join(json.dumps({k: short(v) for k, v in e.items()}) for e in entries)
        unfinished.write_text(f'{{"context": {json.dumps(report["context"], indent=1)},\n"benchmarks": [\n{lines}\n]}}\n')
        unfinished.replace(target)
    else:
        unfinished.unlink(missing_ok=True)
    return good


def bench(command, target, progress):
    """Runs one program. Returns its exit code."""
    unfinished = target.with_name(target.name + ".unfinished")
    target.unlink(missing_ok=True)  # of an earlier run
    process = subprocess.Popen([*command, f"--benchmark_out={unfinished}", "--benchmark_out_format=json"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    seen = set()
    try:
        for line in process.stdout:
            point = re.match(r"(\S+/dtype:\S+?/cols:\d+(/lie:\w+)?)", line)
            if point and point[1] not in seen:
                seen.add(point[1])
                progress.step(point[1])
        code = process.wait()
    except KeyboardInterrupt:  # the program was interrupted too, and closes its file
        process.stdout.read()
        process.wait()
        code = 130
    keep(unfinished, target)
    return code


def wrong_results(path):
    """How many points of a finished file are wrong."""
    return sum(e.get("error_message", "").startswith("wrong result") for e in json.loads(path.read_text())["benchmarks"])


def tune(programs, device, target, elements, progress):
    """The warp tuner of stage 04 over many widths, in one file."""
    whole = None
    for cols in TUNED_WIDTHS:
        rows = max(1, elements // cols)
        r = subprocess.run([programs / "stage-04", "--device", device, "--tune", "--rows", str(rows), "--cols", str(cols), "--dist",
                            "normal", "--check", "rows:16", "--json"], capture_output=True, text=True)
        progress.step(f"stage-04 --tune, {cols} columns")
        if r.returncode != 0 or not r.stdout:
            print(f"run: stage-04 --tune failed at {cols} columns: {r.stderr.strip()[-200:]}", file=sys.stderr)
            return False
        one = json.loads(r.stdout)
        if whole:
            whole["tuned"] += one["tuned"]
        whole = whole or one
    records.write(target, whole)
    return True


def make_folder(folder):
    """Stops where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".writable").touch()
        (folder / ".writable").unlink()
    except OSError as problem:
        stop(2, f"cannot write to {folder}: {problem.strerror}.")


def studied(args, programs, out):
    """(command, file) of each stage of the studies."""
    tasks, place = [], out.resolve()
    if args.stages or args.quick or args.no_peers:
        stop(2, "--study measures what it is made of: leave out --stages, --quick and --no-peers.")
    for study in dict.fromkeys(args.study.split(",")):
        if study not in STUDIES:
            stop(2, f"--study {study} is not known: use {', '.join(STUDIES)}, with commas.")
        for number, options in STUDIES[study].items():
            program = programs / f"bench-{number}"
            if not program.is_file():
                stop(2, f"there is no bench-{number} in {programs}: run cmake --build build.")
            command = [str(program.resolve()), "--device", args.device, "--dtype", args.dtype, *options]
            target = place.with_name(f"{place.name}-{study}") / f"bench-{number}.json"
            tasks.append(([*command, f"--benchmark_repetitions={STUDY_REPETITIONS}"], target))
    if not on_a_gpu(programs, args.device):
        stop(2, "--study needs a GPU: the simulator takes no times.")
    return tasks


def found_in(args, programs, out):
    """Is there a GPU, and (command, file) of each program that was built."""
    numbers = args.stages.split(",") if args.stages else ["[0-9][0-9]"]
    found = sorted(p for n in numbers for p in programs.glob(f"bench-{n}"))
    if not found:
        stop(2, f"there is no benchmark program in {programs}: run make report, or cmake --build build.")
    gpu = on_a_gpu(programs, args.device)
    if gpu and not args.no_peers:
        found += sorted(programs.glob("bench-cudnn-*"))
    shapes = ["--cols", "32,128,781,1024,4096,32768,262144"] if args.quick else ["--set", "all" if gpu else "ladder"]
    tasks = [([str(p.resolve()), "--device", args.device, "--dtype", args.dtype, *shapes], out / f"{p.name}.json") for p in found]
    liar = programs / "bench-04"  # a fast kernel, and matrices that fit the cache: there a lie is large
    if gpu and liar.is_file():
        lie = [str(liar.resolve()), "--device", args.device, "--dtype", "f32", "--rows", "4096", "--cols", "1024", "--lie", LIES]
        tasks.append((lie, out / "lies.json"))
    return gpu, tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="folder of the programs")
    parser.add_argument("--out", default="build/report", help="folder for the JSON files")
    parser.add_argument("--device", default="auto", choices=["auto", "cuda", "hip", "sim"])
    parser.add_argument("--stages", default="", help="such as 02,03; all that are built if left out")
    parser.add_argument("--dtype", default="f32,bf16", help="f16 too with f32,f16,bf16; it behaves as bf16 does")
    parser.add_argument("--quick", action="store_true", help="seven widths in place of eighteen, and no few-row shapes")
    parser.add_argument("--study", default="", help="measure only these, on a GPU: narrow (widths up to 255), between (widths between those of "
                        "the ladder), sizes (matrices of 2^24 to 2^30 elements); each is written into a folder of its own, OUT-STUDY")
    parser.add_argument("--no-peers", action="store_true", help="leave out cuDNN, PyTorch and Triton")
    parser.add_argument("--python", default="python3", help="the Python that has PyTorch, for the peers")
    args = parser.parse_args()
    programs, out = Path(args.bin), Path(args.out)
    whole = not args.study
    gpu, tasks = found_in(args, programs, out) if whole else (True, studied(args, programs, out))
    for folder in sorted({target.parent for _, target in tasks}):
        make_folder(folder)
    tuner = whole and (programs / "stage-04").is_file()
    peers = whole and gpu and not args.no_peers and shutil.which(args.python)
    progress = Progress(sum(points_of(command) for command, _ in tasks) + (len(TUNED_WIDTHS) if tuner else 0))
    written, code = [], 0
    for command, target in tasks:
        status = bench(command, target, progress)
        if target.exists():
            written.append(target)
            if wrong_results(target):
                code = 1
        name = f"{target.parent.name}/{target.name}" if args.study else target.name
        progress.finish(f"{name}: {'interrupted' if status == 130 else 'done' if status == 0 else f'exit code {status}'}")
        if status == 130:
            code = 130
            break
    try:
        if code != 130 and tuner and tune(programs, args.device, out / "tune.json", 1 << 26 if gpu else 1 << 15, progress):
            written.append(out / "tune.json")
            progress.finish("tune.json: done")
        if code != 130 and peers:
            commit = json.loads(written[0].read_text())["context"].get("commit", "") if written else ""
            status = subprocess.run([args.python, ROOT / "bench" / "peers.py", "--out", out / "peers.json", "--dtype", args.dtype,
                                     "--commit", commit, "--set", "ladder" if args.quick else "all"],
                                    stdout=sys.stderr, env={**os.environ}).returncode
            if (out / "peers.json").exists() and status in (0, 1, 130):
                written.append(out / "peers.json")
            code = status if status in (1, 130) else code
    except KeyboardInterrupt:
        code = 130
    for path in written:
        print(path)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before anything was measured
        stop(130, "interrupted.")
