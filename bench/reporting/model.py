"""Measured points, and what may be said about them: noise, the roof, winners, ratios. Knows no file, draws nothing."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

DTYPES = ("f32", "f16", "bf16")
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
FEW_ROWS, FEW_ELEMENTS = 128, 1 << 24  # at most so many rows and fewer elements: decoding, judged by its time
ABOVE_ROOF = 1.02  # of the copy; kernels that ask the cache ahead come to 1.01
EARLY = 2e-6  # seconds: what a launch that begins early spares is less
NOISY = 0.05
LARGEST, SHORTEST = 1e24, 1e-12  # no quantity is larger or (but 0) below its inverse, no time in seconds shorter
LIES = {
    "none": "every guard on",
    "allocate": "memory is allocated and freed while the clock runs",
    "cold": "no warm-up: the first launch, with the loading of the code, counts",
    "l2": "the same buffers in each call: part of the data waits in the L2 cache",
    "zeros": "the input is all zeros, which switches fewer transistors and keeps clocks high",
    "nosync": "the clock stops when the launch returns, before the kernel has run",
}


@dataclass
class Source:
    """One input file: where its numbers come from."""
    path: str
    kind: str
    facts: dict = field(default_factory=dict)
    label: str = ""
    number: int = 0  # in the order of the command line; the first is what others are compared with

    @property
    def simulated(self):
        return self.facts.get("backend") == "sim"


@dataclass
class Point:
    """One series at one shape. A quantity that was not measured is None; none of them is ever NaN or infinite."""
    series: str
    dtype: str
    rows: int
    cols: int
    source: Source
    lie: str = ""
    status: str = "right"  # right, failed, skipped, too wide, no memory, wrong
    message: str = ""
    label: str = ""
    seconds: float | None = None
    spread: float | None = None  # (slowest - fastest) / median, or two standard deviations
    bytes_per_call: float | None = None
    bytes_per_second: float | None = None
    of_copy: float | None = None
    of_peak: float | None = None
    model_bytes: float | None = None
    requested_bytes: float | None = None
    sector_bytes: float | None = None
    dram_bytes: float | None = None
    launches: float | None = None
    barriers: float | None = None
    occupancy: float | None = None
    max_ulp: float | None = None
    samples: float | None = None
    calls_per_sample: float | None = None
    flags: list = field(default_factory=list)

    @property
    def name(self):
        return f"{self.series} · {self.source.label}" if self.source.label else self.series

    @property
    def shape(self):
        return f"{self.rows}×{self.cols}"

    @property
    def elements_bytes(self):
        return self.rows * self.cols * BYTES[self.dtype]

    @property
    def few(self):
        return self.rows <= FEW_ROWS and self.rows * self.cols < FEW_ELEMENTS

    @property
    def timed(self):
        return self.status == "right" and bool(self.seconds) and bool(self.bytes_per_second)

    @property
    def counts(self):
        """May win or be averaged: timed, right, the truth, and below the roof."""
        return self.timed and self.lie == "" and "cache" not in self.flags and "warm" not in self.flags

    @property
    def is_stage(self):
        return self.series.startswith("stage-")

    @property
    def is_copy(self):
        return self.series == "copy"


@dataclass
class Plan:
    """One plan of the tuner: so many warps and rows a block."""
    dtype: str
    rows: int
    cols: int
    warps: int
    rows_per_block: int
    seconds: float | None
    score: float | None  # bytes per second, or the model's where nothing was timed
    occupancy: float | None
    is_rule: bool
    is_best: bool
    regret: float | None
    timed: bool
    source: Source
    not_tried: str = ""


@dataclass
class Report:
    sources: list
    points: list
    plans: list
    left_out: list  # a sentence for each file that says nothing about speed or bytes

    @property
    def timed(self):
        """Of what has a time: the truth, not the lies."""
        return [p for p in self.points if p.timed and p.lie == ""]

    @property
    def simulated_only(self):
        return not any(p.seconds for p in self.points) and not any(p.timed for p in self.plans)


def finite(value):
    """The value as a float, or None if it is no finite number, or one that no quantity here can be."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if value == 0 or 1 / LARGEST < abs(value) < LARGEST else None  # NaN is neither


def status_of(message, skipped=False):
    """One word for a message, for tables."""
    words = message.lower()
    for word, pattern in (("too wide", "too wide|(takes|holds) at most"), ("no memory", "memory"), ("wrong", "wrong")):
        if re.search(pattern, words):
            return word
    return "skipped" if skipped or "skip" in words else "failed"


def series_order(name):
    """Stages by number, then peers, the copy last."""
    if name.startswith("stage-"):
        return (0, name)
    return (2, name) if name == "copy" else (1, name)


def sort_key(point):
    return (series_order(point.series), point.source.number, DTYPES.index(point.dtype), point.cols, -point.rows,
            point.lie)


def label_sources(report):
    """Names sources by what tells them apart. Files of one run (same device, commit, cache, ...) share a label."""
    sources = [s for s in report.sources if any(p.source is s for p in report.points)]
    for s in sources:
        s.facts.setdefault("run", "simulated" if s.simulated else "")
    # A file that only counts bytes stands for no series of its own.
    timed = [s for s in sources if any(p.source is s and p.seconds for p in report.points)] or sources
    # What a file does not say, tells it from no other.
    telling = [k for k in ("device", "run", "commit", "cache", "input")
               if len({compared(k, s.facts.get(k)) for s in timed} - {"" if k != "run" else None}) > 1]
    for s in timed:
        s.label = ", ".join(short(k, s.facts.get(k)) for k in telling if k != "run" or s.facts.get(k))
    seen = {}
    for p in report.points:
        if p.source in timed and not p.is_copy:
            seen.setdefault((p.series, p.dtype, p.rows, p.cols, p.lie, p.source.label), []).append(p)
    twice = {id(p.source) for ps in seen.values() for p in ps if len(ps) > 1}
    names = {}
    for s in timed:
        if id(s) in twice:
            names.setdefault(file_name(s.path), []).append(s)
    for name, same in names.items():
        for s in same:
            s.label = ", ".join(filter(None, [s.label, name if len(same) == 1 else s.path]))


def compared(key, value):
    """A fact as it is compared with that of another file: of an input its kind."""
    return input_kind(value) if key == "input" else "" if value is None else str(value)


def input_kind(text):
    """One word for the numbers that a program was given: programs draw normal numbers in different ways."""
    said = str(text or "").lower()
    kinds = (("normal", "^(normal|gauss|sums of four)"), ("zeros", "zero"), ("constant", "const"), ("uniform", "unif"))
    return next((kind for kind, pattern in kinds if re.search(pattern, said)), said)


def short(key, value):
    """A fact as part of a label: of a commit the first seven digits, and whether it was changed."""
    if value in (None, ""):
        return f"{key} unknown"
    if key == "input":
        return f"{input_kind(value)} input"
    return re.sub(r"^([0-9a-f]{7})[0-9a-f]+", r"\1", value) if key == "commit" else str(value)


def file_name(path):
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def began_early(point):
    """May it be faster than the copy by its launch alone?"""
    return bool(point.seconds) and point.seconds * (point.of_copy - 1) < EARLY


def flag(point):
    """Everything a reader must know before believing a point."""
    if point.of_copy is not None and point.of_copy >= ABOVE_ROOF and not point.is_copy and not began_early(point):
        point.flags.append("cache")
    elif point.of_peak is not None and point.of_peak > 1:
        point.flags.append("cache")
    if point.source.facts.get("cache") == "warm":
        point.flags.append("warm")
    if point.spread is not None and point.spread > NOISY:
        point.flags.append("noisy")
    if point.seconds and point.bytes_per_call and point.bytes_per_second:
        if abs(point.bytes_per_call / point.seconds / point.bytes_per_second - 1) > 0.02:
            point.flags.append("time and bytes disagree")
    if str(point.source.facts.get("build_type", "")).lower() == "debug":
        point.flags.append("debug build")


def roofs(points):
    """(source label, dtype, rows, cols) -> bytes per second of the best copy: measured as such, or from of_copy."""
    best, derived = {}, {}
    for p in points:
        key = (p.source.label, p.dtype, p.rows, p.cols)
        if not p.bytes_per_second or p.status != "right" or p.lie:
            continue
        if p.is_copy:
            best[key] = max(best.get(key, 0), p.bytes_per_second)
        elif p.of_copy:
            derived[key] = max(derived.get(key, 0), finite(p.bytes_per_second / p.of_copy) or 0)
    return {**derived, **best}


def add_copies(points):
    """Where a file holds fractions of a copy and no copy of its own, the copy follows from them."""
    have = {(p.source.label, p.dtype, p.rows, p.cols) for p in points if p.is_copy}
    sources = {(p.source.label, p.dtype, p.rows, p.cols): p.source for p in points if p.of_copy}
    for key, speed in roofs(points).items():
        if key in have or not speed:
            continue
        _, dtype, rows, cols = key
        size = 2 * rows * cols * BYTES[dtype]
        points.append(Point("copy", dtype, rows, cols, sources[key], label="from the fraction of copy of the stages",
                            seconds=size / speed, bytes_per_call=size, bytes_per_second=speed, of_copy=1.0))


def keep_best_copies(points):
    """One copy a shape: each process measures its own; the roof is the best of them."""
    best = {}
    for p in points:
        if p.is_copy and p.status == "right":
            key = (p.source.label, p.dtype, p.rows, p.cols, p.lie)
            if key not in best or (p.bytes_per_second or 0) > (best[key].bytes_per_second or 0):
                best[key] = p
    is_best = lambda p: best[p.source.label, p.dtype, p.rows, p.cols, p.lie] is p
    return [p for p in points if not p.is_copy or p.status != "right" or is_best(p)]


def hold_against_the_roof(points):
    """Processes of one run each measured a copy, and not the same one: all are held against the best of them."""
    best = {(p.source.label, p.dtype, p.rows, p.cols): p.bytes_per_second
            for p in points if p.is_copy and p.timed and p.lie == ""}
    for p in points:
        roof = best.get((p.source.label, p.dtype, p.rows, p.cols))
        share = finite(p.bytes_per_second / roof) if roof and p.timed and p.lie == "" else None
        if share and p.of_copy and share < p.of_copy:
            p.of_copy = share


def complete(report):
    """Labels, the copy, flags, order."""
    label_sources(report)
    add_copies(report.points)
    report.points = sorted(keep_best_copies(report.points), key=sort_key)
    hold_against_the_roof(report.points)
    for p in report.points:
        flag(p)
    return report


def tallest(points):
    """For each type, width and machine the matrix with the most rows."""
    most = {}
    for p in points:
        key = (p.source.label, p.dtype, p.cols)
        most[key] = max(most.get(key, 0), p.rows)
    return [p for p in points if p.rows == most[p.source.label, p.dtype, p.cols]]


def full_rows(points):
    """The points of the main comparison."""
    return tallest([p for p in points if not p.few])


def noise(a, b):
    """The relative difference below which two points cannot be told apart."""
    return max(a.spread or 0, b.spread or 0)


def compare(a, b):
    """How many times faster b is than a, and whether that is more than noise."""
    ratio = a.seconds / b.seconds
    return ratio, abs(ratio - 1) > noise(a, b)


def winners(points):
    """The fastest stage of each (label, dtype, rows, cols), with all that noise does not tell from it."""
    groups = {}
    for p in points:
        if p.counts and p.is_stage:
            groups.setdefault((p.source.label, p.dtype, p.rows, p.cols), []).append(p)
    result = {}
    for key, group in groups.items():
        best = min(group, key=lambda p: p.seconds)
        result[key] = [p for p in group if p is best or not compare(p, best)[1]]
    return result


def mark_of(point, won):
    """'*' for a winner alone, '~' for one of several inside the noise, '' for the rest."""
    group = won.get((point.source.label, point.dtype, point.rows, point.cols), [])
    if point not in group:
        return ""
    return "*" if len(group) == 1 else "~"


def ladder(points, before):
    """For each stage the step from the one it builds on: rows of (point, previous or None, ratio, beyond noise)."""
    by_key = {(p.source.label, p.dtype, p.rows, p.cols, p.series): p for p in points if p.counts and p.is_stage}
    steps = []
    for (label, dtype, rows, cols, series), p in by_key.items():
        previous = by_key.get((label, dtype, rows, cols, before(series)))
        ratio, sure = compare(previous, p) if previous else (None, False)
        steps.append((p, previous, ratio, sure))
    return steps


def comparisons(report):
    """Pairs of the same series and shape from the first source and another: (a, b, ratio, beyond noise)."""
    labels = list(dict.fromkeys(s.label for s in report.sources if s.label))
    first = {(p.series, p.dtype, p.rows, p.cols): p for p in report.timed if labels and p.source.label == labels[0]}
    pairs = []
    for p in report.timed:
        a = first.get((p.series, p.dtype, p.rows, p.cols))
        if a and p.source.label != labels[0]:
            pairs.append((a, p, *compare(a, p)))
    return pairs


def lies(points):
    """(truth, lie) pairs at the same series and shape."""
    truth = {(p.source.label, p.series, p.dtype, p.rows, p.cols): p for p in points if p.lie == "none"}
    plain = {(p.source.label, p.series, p.dtype, p.rows, p.cols): p for p in points if p.lie == ""}
    pairs = []
    for p in points:
        key = (p.source.label, p.series, p.dtype, p.rows, p.cols)
        if p.lie not in ("", "none"):
            pairs.append((truth.get(key) or plain.get(key), p))
    return pairs


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
