#!/usr/bin/env python3
"""What others offer, measured like the stages: PyTorch eager, torch.compile, and a fused Triton kernel of the tutorial's design.

    bench/peers.py --out build/report/peers.json

Writes Google Benchmark's JSON with the names and counters that the bench-NN programs use: cold caches (buffers rotate), replayed
CUDA graphs, medians of device events, a sample of rows checked in fp64 before and after. Needs PyTorch with a GPU; Triton where it
is installed. Exit codes: 0 measured, 1 a wrong result, 2 a wrong command, 77 nothing to measure with here.
"""
import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import records

try:
    import torch
except ImportError:
    torch = None
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

WIDTHS = [32, 128, 256, 512, 781, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 50257, 65536, 128256, 131072, 262144, 1048576]
COMPILED_WIDTHS = [256, 4096, 131072]  # compiling takes seconds for each width
FEW_ROWS = [(1823, 781), (4096, 781), (1, 1024), (512, 1024), (8, 4096), (8, 32000), (128, 32000), (1, 32768), (132, 32768),
            (1, 50257), (8, 50257), (1, 128256), (4, 128256), (8, 128256), (32, 128256), (64, 128256), (128, 128256), (1, 262144),
            (132, 262144), (1, 1048576)]
SAMPLES = 25
SHORTEST_BATCH = 1e-3  # seconds
WIDEST_BLOCK = 65536  # columns that one Triton program is asked to hold

if triton:
    @triton.jit
    def fused_row(y, x, ld_out, ld_in, cols, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        col = tl.arange(0, BLOCK)
        inside = col < cols
        value = tl.load(x + row * ld_in + col, mask=inside, other=float("-inf")).to(tl.float32)
        weight = tl.exp(value - tl.max(value, axis=0))
        tl.store(y + row * ld_out + col, weight / tl.sum(weight, axis=0), mask=inside)


def stop(code, sentence):
    print(f"peers: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def triton_tutorial(x, y):
    block = triton.next_power_of_2(x.shape[1])
    warps = 4 if block <= 2048 else 8 if block <= 8192 else 16
    fused_row[(x.shape[0],)](y, x, y.stride(0), x.stride(0), x.shape[1], BLOCK=block, num_warps=warps)


def torch_eager(x, y):
    torch.softmax(x, dim=-1, out=y)


def runtime_copy(x, y):
    y.copy_(x)


def elementwise(x, y):
    """Reads and writes what a copy does, by PyTorch's vectorised kernel, which is faster than its copy."""
    torch.neg(x, out=y)


def make_compiled():
    """A fresh torch.compile for one shape; it allocates its own output."""
    torch._dynamo.reset()
    return torch.compile(lambda x: torch.softmax(x, dim=-1), dynamic=False)


def wrong_rows(x, y):
    """Why a sample of rows is not the softmax, in one sentence; empty if it is. An ulp of the type, and 1e-5 for fp32."""
    rows = torch.unique(torch.linspace(0, x.shape[0] - 1, min(x.shape[0], max(2, min(64, 2**20 // x.shape[1])))).long()).to(x.device)
    want = torch.softmax(x[rows].double(), dim=-1)
    got = y[rows].double()
    limit = want * {torch.float32: 1e-5, torch.float16: 2**-10, torch.bfloat16: 2**-7}[x.dtype] + torch.finfo(x.dtype).tiny
    bad = ~((got - want).abs() <= limit)
    return f"wrong result: {int(bad.sum())} of {bad.numel()} elements of the sample" if bool(bad.any()) else ""


def sets_for(one, device):
    """How many pairs of buffers make three L2 caches; one is enough if it is far larger."""
    l2 = device.L2_cache_size
    return 1 if one > 16 * l2 else min(512, max(2, 3 * l2 // max(one, 1) + 1))


def timed(calls, name, compiled=None):
    """Seconds a call, one value a sample, over graphs that go through all of `calls`."""
    def round_of_calls():
        for x, y in calls:
            compiled(x) if compiled else name(x, y)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            round_of_calls()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        round_of_calls()
        end.record()
    torch.cuda.synchronize()
    rounds = min(4096, int(SHORTEST_BATCH / (begin.elapsed_time(end) * 1e-3 + 1e-9)) + 1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(rounds):
            round_of_calls()
    graph.replay()
    torch.cuda.synchronize()
    seconds = []
    for _ in range(SAMPLES):
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3 / (rounds * len(calls)))
    return seconds


def entries(series, dtype, rows, cols, seconds, copy_median, moved):
    """Google Benchmark's aggregates of one point."""
    name = f"{series}/dtype:{dtype}/rows:{rows}/cols:{cols}/iterations:1/manual_time"
    aggregates = {"mean": statistics.fmean(seconds), "median": statistics.median(seconds), "stddev": statistics.stdev(seconds),
                  "cv": statistics.stdev(seconds) / statistics.fmean(seconds), "min": min(seconds), "max": max(seconds)}
    result = []
    for aggregate, value in aggregates.items():
        entry = {"name": f"{name}_{aggregate}", "run_name": name, "run_type": "aggregate", "repetitions": SAMPLES, "threads": 1,
                 "aggregate_name": aggregate, "aggregate_unit": "percentage" if aggregate == "cv" else "time", "iterations": SAMPLES,
                 "real_time": value if aggregate == "cv" else value * 1e6, "cpu_time": 0.0, "time_unit": "us",
                 "rows": rows, "cols": cols, "bytes_per_call": moved}
        if aggregate not in ("stddev", "cv"):
            entry.update(bytes_per_second=moved / value, of_copy=copy_median / value, samples=len(seconds))
        result.append(entry)
    return result


def failed(series, dtype, rows, cols, why):
    name = f"{series}/dtype:{dtype}/rows:{rows}/cols:{cols}/iterations:1/manual_time"
    return [{"name": name, "run_name": name, "run_type": "iteration", "repetitions": SAMPLES, "threads": 1, "error_occurred": True,
             "error_message": why, "iterations": 0, "real_time": 0.0, "cpu_time": 0.0, "time_unit": "us"}]


def measure(dtype, rows, cols, wanted):
    """All peers at one shape."""
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    size = torch.finfo(kind).bits // 8
    device = torch.cuda.get_device_properties(0)
    count = sets_for(2 * rows * cols * size, device)
    torch.manual_seed(1)
    calls = [(torch.randn(rows, cols, device="cuda", dtype=kind), torch.full((rows, cols), float("nan"), device="cuda", dtype=kind))
             for _ in range(count)]
    moved = 2 * rows * cols * size
    copy_median = min(statistics.median(timed(calls, kernel)) for kernel in (runtime_copy, elementwise))
    result = []
    peers = {"torch-eager": torch_eager, "triton-tutorial": triton_tutorial if triton else None, "torch-compile": None}
    for series, function in peers.items():
        if series not in wanted:
            continue
        if series == "triton-tutorial" and (not triton or cols > WIDEST_BLOCK):
            why = "Triton is not installed" if not triton else f"a program holds at most {WIDEST_BLOCK} columns"
            result += failed(series, dtype, rows, cols, why)
            continue
        try:
            x, y = calls[0]
            compiled = make_compiled() if series == "torch-compile" else None
            y.fill_(float("nan"))
            output = compiled(x) if compiled else y
            if not compiled:
                function(x, y)
            why = wrong_rows(x, output)
            if why:
                result += failed(series, dtype, rows, cols, why)
                continue
            del output
            if not compiled:
                y.fill_(float("nan"))
            seconds = timed(calls, function, compiled)
            why = "" if compiled else wrong_rows(x, y)
            result += failed(series, dtype, rows, cols, why) if why else entries(series, dtype, rows, cols, seconds, copy_median, moved)
        except Exception as problem:  # a peer that cannot do a shape must not end the run
            result += failed(series, dtype, rows, cols, f"{type(problem).__name__}: {str(problem).splitlines()[0][:200]}")
    del calls
    torch.cuda.empty_cache()
    return result


def describe():
    properties = torch.cuda.get_device_properties(0)
    query = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,driver_version", "--format=csv,noheader,nounits", "-i", "0"],
                           capture_output=True, text=True)
    clocks = [v.strip() for v in query.stdout.split(",")] if query.returncode == 0 else ["", "", ""]
    return {"date": records.now(), "host_name": platform.node(),
            "executable": "bench/peers.py", "num_cpus": os.cpu_count(), "library_build_type": "release", "program": "peers",
            "backend": "cuda", "device": properties.name, "architecture": f"sm_{properties.major}{properties.minor}",
            "toolkit": torch.version.cuda or "", "driver": clocks[2], "clock_sm_mhz": clocks[0], "clock_memory_mhz": clocks[1],
            "l2_bytes": str(properties.L2_cache_size), "torch": torch.__version__, "triton": triton.__version__ if triton else "",
            "input": "normal, seed 1", "cache": "cold"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--dtype", default="f32,f16,bf16")
    parser.add_argument("--set", default="all", choices=["ladder", "few-rows", "all"])
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--commit", default="")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop before the next shape after this many seconds")
    args = parser.parse_args()
    if torch is None or not torch.cuda.is_available():
        stop(77, "PyTorch with a GPU is not here, so there are no peers to measure.")
    target = Path(args.out)
    if not target.parent.is_dir():
        stop(2, f"there is no directory {target.parent} to write to.")
    shapes = [] if args.set == "few-rows" else [(max(1, args.elements // n), n) for n in WIDTHS]
    shapes += [] if args.set == "ladder" else FEW_ROWS
    report = {"context": {**describe(), "commit": args.commit}, "benchmarks": []}
    begin = time.monotonic()
    late = interrupted = False
    try:
        for dtype in args.dtype.split(","):
            for rows, cols in shapes:
                late = time.monotonic() - begin > args.seconds
                if late:
                    break
                compiled = {"torch-compile"} if cols in COMPILED_WIDTHS and rows * cols >= args.elements // 2 else set()
                report["benchmarks"] += measure(dtype, rows, cols, {"torch-eager", "triton-tutorial"} | compiled)
                print(f"peers: {dtype} {rows}x{cols}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        interrupted = True
    at_the_end = describe()
    report["context"].update({k: at_the_end[k] for k in ("clock_sm_mhz", "clock_memory_mhz")})
    try:
        records.write(target, report)
    except OSError as problem:
        stop(2, f"cannot write {args.out}: {problem.strerror}.")
    if late:
        print("peers: time is up; the shapes that are left were not measured", file=sys.stderr)
    wrong = any(e.get("error_message", "").startswith("wrong result") for e in report["benchmarks"])
    return 130 if interrupted else 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
