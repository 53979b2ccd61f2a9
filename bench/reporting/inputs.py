"""Reads result files: Google Benchmark's JSON, and what counters.py, gpu_check.py and the tuner write.

Each kind is told by its keys. Whatever cannot be read ends in Trouble, with one sentence: what, where, what next."""
from __future__ import annotations

import json
import re
import statistics
from pathlib import Path

from reporting.model import DTYPES, SHORTEST, Plan, Point, Report, Source, complete, finite, status_of

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
SECTOR = 32
COUNTERS = ("bytes_per_call", "bytes_per_second", "of_copy", "of_peak", "model_bytes", "requested_bytes",
            "sector_bytes", "launches", "barriers", "occupancy", "max_ulp", "samples", "calls_per_sample")
FACTS = ("device", "architecture", "backend", "driver", "toolkit", "clock_sm_mhz", "clock_memory_mhz",
         "peak_bytes_per_second", "l2_bytes", "commit", "date", "build_type", "cache", "input", "program",
         "host_name", "num_cpus")
NUMBERS = ("peak_bytes_per_second", "l2_bytes", "clock_sm_mhz", "clock_memory_mhz")  # the context holds them as text


class Trouble(Exception):
    """One sentence for the user."""


def load(path):
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise Trouble(f"cannot read {path}: {problem.strerror}; give files that bench/run.py or --benchmark_out wrote.")
    except UnicodeDecodeError:
        raise Trouble(f"{path} is no text file; give JSON that bench/run.py or --benchmark_out wrote.")
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise Trouble(f"{path} is broken JSON (line {problem.lineno}: {problem.msg}); measure again, "
                      "with --benchmark_out_format=json if Google Benchmark wrote it.")
    except RecursionError:
        raise Trouble(f"{path} is nested too deeply to be a result; measure again.")


def read(paths):
    """All files together, labelled and flagged."""
    report = Report([], [], [], [])
    seen = set()
    for path in map(str, paths):
        if Path(path).resolve() in seen:
            raise Trouble(f"{path} is given twice; give each file once.")
        seen.add(Path(path).resolve())
        data = load(path)
        other = other_purpose(data)
        if other:
            report.left_out.append(f"{path} is left out: it holds {other}, no times and no bytes of a stage.")
        else:
            read_one(path, data, report)
    if not report.sources:
        raise Trouble(report.left_out[0] if len(report.left_out) == 1 else "no file holds times or bytes of a stage; give files that "
                      "bench/run.py wrote.")
    return complete(report)


def other_purpose(data):
    """What a result file of this project holds that has no place in a report; None for every other file."""
    purposes = {"designs": "prototypes of kernels", "cases": "checks of single cases", "simulator": "the speed of the simulator"}
    checks = {"contract", "sanitizer", "widths"}
    if not isinstance(data, dict) or not {"commit", "date"} <= data.keys() or data.get("counters") or data.get("benchmarks"):
        return None
    if checks <= data.keys() and not data.get("shapes"):
        return "checks of stages"
    return next((purpose for key, purpose in purposes.items() if key in data), None)


def read_one(path, data, report):
    reader, kind = reader_of(data)
    if not reader:
        raise Trouble(f"{path} is JSON of a kind that is not known here; give Google Benchmark's output or a file such "
                      "as those in bench/results.")
    source = Source(path, kind, number=len(report.sources))
    points, plans = len(report.points), len(report.plans)
    try:
        reader(data, source, report)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as problem:
        reason = f"{type(problem).__name__}: {problem}"
        raise Trouble(f"{path} looks like {source.kind} but cannot be understood ({reason}); measure again with the "
                      "programs of this version.")
    if len(report.points) == points and len(report.plans) == plans:
        raise Trouble(f"{path} holds no result of a stage or a peer; look at the filter it was measured with, and "
                      "measure again.")
    source.facts = {k: v for k, v in ((k, plain(v)) for k, v in source.facts.items()) if v is not None}
    report.sources.append(source)


def plain(value):
    """A fact as text or as a finite number; None if it says nothing."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = finite(value)
        return int(value) if value and value.is_integer() else value or None
    return str(value)[:200] if value not in (None, "", [], {}) else None


def reader_of(data):
    """The function for a file of this kind, and what the kind is called."""
    kinds = {"benchmarks": (read_benchmarks, "Google Benchmark's JSON"), "tuned": (read_tuned, "a file of the tuner"),
             "counters": (read_counters, "a file of gpu_check.py"),
             "results": (read_counters, "a file of counters.py")}
    for key, known in kinds.items():
        if isinstance(data, dict) and isinstance(data.get(key), list):
            return known
    return None, ""


# --- Google Benchmark
def read_benchmarks(data, source, report):
    """A point for each name; the context holds the facts."""
    context = data.get("context") or {}
    source.facts = {k: number(context[k]) if k in NUMBERS else context[k] for k in FACTS if k in context}
    if context.get("backend") == "sim":
        source.facts["device"] = re.sub("^SIMT simulator in place of an? ", "", str(context.get("device", "")))
    groups = {}
    for entry in data["benchmarks"]:
        groups.setdefault(entry.get("run_name") or entry["name"], []).append(entry)
    for name, entries in groups.items():
        point = named_point(name, source)
        if point:
            fill(point, entries)
            report.points.append(point)


def number(value):
    """A fact that stands as text, as a number; None if it is none."""
    try:
        return finite(float(value))
    except (TypeError, ValueError):
        return None


def named_point(name, source):
    """stage-01/dtype:f32/rows:64/cols:32/lie:none/manual_time -> a Point, or None if it is no benchmark of ours."""
    series, *parts = name.split("/")
    keys = dict(p.split(":", 1) for p in parts if ":" in p)
    try:
        point = Point(series, keys["dtype"], int(keys["rows"]), int(keys["cols"]), source, lie=keys.get("lie", ""))
    except (KeyError, ValueError):
        return None
    return point if point.dtype in DTYPES and point.rows > 0 and point.cols > 0 else None


def fill(point, entries):
    """A point from all entries of one name: aggregates where there are any, else the median of the repetitions."""
    repetitions = [e for e in entries if e.get("run_type", "iteration") == "iteration"]
    by_aggregate = {e.get("aggregate_name"): e for e in entries if e.get("run_type") == "aggregate"}
    for e in entries:
        if e.get("label"):
            point.label = str(e["label"])
        if e.get("error_occurred") or e.get("skipped"):
            point.message = str(e.get("error_message") or e.get("skip_message") or "no reason given")
            point.status = status_of(point.message, skipped=bool(e.get("skipped")))
    if point.status != "right":
        return

    median = by_aggregate.get("median") or by_aggregate.get("mean")
    odd = []
    for key in COUNTERS:
        raw = [median[key]] if median and key in median else [e[key] for e in repetitions if key in e]
        values = [v for v in map(finite, raw) if v is not None and v >= 0]
        if len(values) < len(raw):
            odd.append(key)
        elif values:
            setattr(point, key, statistics.median(values))
    worst = [finite(e.get("max_ulp")) for e in [by_aggregate.get("max"), *repetitions] if e]
    point.max_ulp = max([v for v in [point.max_ulp, *worst] if v is not None], default=None)
    times = sorted(t for t in map(seconds_of, [median] if median else repetitions) if t is not None)
    point.seconds = statistics.median(times) if times else None
    point.spread = spread_of(by_aggregate, repetitions, point.seconds)
    if point.seconds is None:
        point.bytes_per_second = point.of_copy = point.of_peak = None
        if not point.source.simulated:
            point.flags.append("no time")
    elif point.bytes_per_second is None:
        point.bytes_per_second = finite((point.bytes_per_call or 2.0 * point.elements_bytes) / point.seconds)
    if point.samples is None and len(repetitions) > 1:
        point.samples = float(len(repetitions))
    if odd:
        point.flags.append(f"not a number: {', '.join(odd)}")
        if "max_ulp" in odd:
            point.status, point.message = "wrong", "the largest error is not a finite number"


def seconds_of(entry):
    """Positive and finite, or None."""
    value = finite(entry.get("real_time"))
    scale = SECONDS.get(entry.get("time_unit", "ns"))
    return value * scale if value and scale and value * scale > SHORTEST else None


def spread_of(by_aggregate, repetitions, seconds):
    if not seconds:
        return None
    if "min" in by_aggregate and "max" in by_aggregate:
        low, high = seconds_of(by_aggregate["min"]), seconds_of(by_aggregate["max"])
        return (high - low) / seconds if low and high else None
    if "cv" in by_aggregate:
        cv = finite(by_aggregate["cv"].get("real_time"))
        return None if cv is None else 2 * abs(cv)
    if "stddev" in by_aggregate:
        deviation = seconds_of(by_aggregate["stddev"])
        return 2 * deviation / seconds if deviation else None
    times = [t for t in map(seconds_of, repetitions) if t is not None]
    return (max(times) - min(times)) / seconds if len(times) > 1 else None


# --- files of this project's own programs
def facts_of(data, device=None):
    """What gpu_check.py, counters.py and the tuner note about a machine; clocks come as '1980 MHz'."""
    smi, device = data.get("device") or {}, device or {}
    clock = lambda key: float(re.match(r"[\d.]+", smi[key])[0]) if re.match(r"[\d.]+", str(smi.get(key, ""))) else None
    driver = smi.get("driver_version")  # a whole number is the version of CUDA that it serves
    facts = {"device": smi.get("name") or device.get("name"), "driver": None if isinstance(driver, int) else driver,
             "commit": data.get("commit"), "date": data.get("date"), "backend": device.get("backend"),
             "architecture": device.get("architecture"),
             "l2_bytes": device.get("l2_bytes"), "clock_sm_mhz": clock("clocks.sm"),
             "clock_memory_mhz": clock("clocks.mem")}
    return facts


def check(entry):
    if entry["dtype"] not in DTYPES or int(entry["rows"]) < 1 or int(entry["cols"]) < 1:
        raise ValueError(f"{entry['dtype']} {entry['rows']}x{entry['cols']}")
    if not isinstance(entry.get("stage", ""), str):
        raise ValueError(f"stage {entry['stage']}")


def own_point(entry, source):
    check(entry)
    return Point(entry["stage"], entry["dtype"], int(entry["rows"]), int(entry["cols"]), source)


def read_counters(data, source, report):
    """A point for each stage and shape, without a time: bytes, model, errors."""
    counted = data.get("counters") or data.get("results") or []
    shapes = data.get("shapes") or []
    source.facts = facts_of(data, next((s["device"] for s in shapes if s.get("device")), None))
    points = {}
    for entry in shapes + counted:
        key = (entry["stage"], entry["dtype"], entry["rows"], entry["cols"])
        point = points.setdefault(key, own_point(entry, source))
        model = entry.get("model")
        if model:
            point.model_bytes = finite(model["read_bytes"] + model["write_bytes"])
        if entry.get("check"):
            point.max_ulp = finite(entry["check"].get("largest_ulp"))
        if entry.get("pass") is False or (entry.get("exit") and "says" in entry):
            point.message = entry.get("says") or "the result is wrong"
            point.status = status_of(point.message)
        if "launches" in entry:
            launches = entry["launches"]
            point.launches = float(len(launches))
            point.dram_bytes = float(sum(l["dram_read_bytes"] + l["dram_write_bytes"] for l in launches))
            sectors = sum(l[k]["hardware"] for l in launches for k in ("ld_sectors", "st_sectors"))
            point.sector_bytes = float(SECTOR * sectors)
    report.points.extend(points.values())


def read_tuned(data, source, report):
    """Plans; from one run of the tuner, or from several joined."""
    parts = data["tuned"] if any("tuned" in t for t in data["tuned"]) else [data]
    source.facts = facts_of(data, parts[0].get("device") if parts else None)
    for part in parts:
        for entry in part["tuned"]:
            for plan in entry["plans"]:
                report.plans.append(plan_of(plan, entry, bool(part["timed"]), source))


def plan_of(plan, entry, timed, source):
    same = lambda other: bool(other) and (plan["warps"], plan["rows"]) == (other["warps"], other["rows"])
    check(entry)
    return Plan(entry["dtype"], int(entry["rows"]), int(entry["cols"]), int(plan["warps"]), int(plan["rows"]),
                finite(plan.get("seconds")), finite(plan.get("bytes_per_second" if timed else "bytes_in_flight_model")),
                finite(plan.get("occupancy_model")), same(entry.get("rule")), same(entry.get("best")),
                finite(entry.get("regret")), timed, source, plan.get("not_tried", ""))
