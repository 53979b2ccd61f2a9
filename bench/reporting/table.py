"""The terminal's tables, in plain ASCII for any terminal and any pipe; the full table as CSV and as JSON."""
from __future__ import annotations

import csv
import io
import json
import math
import re
import textwrap

from reporting import words
from reporting.model import (DTYPES, FEW_ROWS, compare, comparisons, file_name, full_rows, geometric_mean, lies,
                             mark_of, series_order, short, winners)

COLUMNS = ("file", "device", "commit", "cache", "series", "dtype", "rows", "cols", "lie", "status", "seconds", "spread",
           "bytes_per_call", "bytes_per_second", "of_copy", "of_peak", "model_bytes", "requested_bytes", "sector_bytes",
           "dram_bytes", "launches", "barriers", "occupancy", "max_ulp", "samples", "calls_per_sample", "fastest",
           "flags", "label", "message")
MANY = 60  # lines; more counts than that are joined by width
NO_TIMES = "Everything here was counted by the simulator, which has no clock of a GPU. Counts only."


def ascii_only(text):
    return text.replace("×", "x").replace("·", "-").replace("–", "-").encode("ascii", "replace").decode()


# --- the full table
def records(report):
    """One flat dict a point; what is not known is None."""
    won = winners(report.points)
    result = []
    for p in report.points:
        facts = p.source.facts
        known = {"file": p.source.path, "fastest": {"*": "alone", "~": "within noise", "": ""}[mark_of(p, won)],
                 "flags": "; ".join(p.flags)}
        known.update({c: facts.get(c) for c in ("device", "commit", "cache")})
        result.append({c: known[c] if c in known else getattr(p, c) for c in COLUMNS})
    return result


def whole(value):
    """Counts without a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53 else value


def as_csv(report):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for r in records(report):
        writer.writerow("" if v is None else repr(whole(v)) if isinstance(v, float) else v for v in r.values())
    return out.getvalue()


def as_json(report):
    """Strict: what is not known is null."""
    sources = [{"file": s.path, "kind": s.kind, "label": s.label, **finite_only(s.facts)} for s in report.sources]
    points = [{k: whole(v) for k, v in r.items()} for r in records(report)]
    return json.dumps({"sources": sources, "points": points}, indent=1, allow_nan=False, ensure_ascii=True) + "\n"


def finite_only(facts):
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}


# --- who is fastest
def duel(group, points):
    """(fastest stage, best peer or None, times as fast, beyond noise) of the stages that won a shape."""
    best = min(group, key=lambda p: p.seconds)
    at = lambda p: (p.source.label, p.dtype, p.rows, p.cols)
    peers = [p for p in points if p.counts and not p.is_stage and not p.is_copy and at(p) == at(best)]
    peer = min(peers, key=lambda p: p.seconds, default=None)
    return best, peer, *(compare(peer, best) if peer else (None, False))


def tied(group):
    """stage-03, or stage-03 ≈ 04: the fastest first, then what noise does not tell from it."""
    names = [p.series for p in sorted(group, key=lambda p: p.seconds)]
    return " ≈ ".join([names[0], *(n.removeprefix("stage-") for n in names[1:])])


def stands(ratio, sure):
    """How a stage stands to a peer: a number and a word."""
    if ratio is None:
        return "–", ""
    word = "even" if not sure else "ahead" if ratio > 1 else "behind"
    return f"×{ratio:.2f}" if ratio < 10 else words.times(ratio), word


def glance(report):
    """For each machine, type and width (the matrix with the most rows): who is fastest, and how near the roof."""
    points = full_rows(report.timed)
    made = []
    for group in winners(points).values():
        best, peer, ratio, sure = duel(group, points)
        against, word = stands(ratio, sure)
        made.append({"label": best.source.label, "dtype": best.dtype, "cols": best.cols, "rows": best.rows,
                     "stage": tied(group), "speed": words.gigabytes(best.bytes_per_second), "of_copy": best.of_copy,
                     "peer": peer.series if peer else "–", "peer_of_copy": peer.of_copy if peer else None,
                     "against": against, "word": word, "number": best.source.number})
    labels = list(dict.fromkeys(r["label"] for r in sorted(made, key=lambda r: r["number"])))
    return sorted(made, key=lambda r: (labels.index(r["label"]), DTYPES.index(r["dtype"]), r["cols"]))


def glance_table(report, width):
    """The same for the terminal, where several series were measured."""
    rows = glance(report)
    if not any(r["peer"] != "–" or " " in r["stage"] for r in rows) and len({r["stage"] for r in rows}) < 2:
        return []
    lines = []
    for label, dtype in dict.fromkeys((r["label"], r["dtype"]) for r in rows):
        some = [r for r in rows if (r["label"], r["dtype"]) == (label, dtype)]
        cells = [[str(r["cols"]), str(r["rows"]), r["stage"].replace("≈", "~"), r["speed"],
                  words.fraction(r["of_copy"]), r["peer"], words.fraction(r["peer_of_copy"]),
                  f"{r['against']} {r['word']}".strip()] for r in some]
        head = ["N", "M", "fastest", "GB/s", "of copy", "best peer", "of copy", "stage to peer"]
        peers = any(r["peer"] != "–" for r in some)
        lines += [f"{dtype}{label and ', ' + label}: the fastest stage{', and the best peer' if peers else ''}",
                  *grid(head if peers else head[:5], cells if peers else [c[:5] for c in cells], width)]
    return lines


# --- the terminal
def grid(head, rows, width):
    """Right-aligned columns; where they do not fit side by side, panels that repeat the first two columns."""
    sizes = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    fixed = sum(sizes[:2]) + 4
    panels, panel, used = [], [], fixed
    for i in range(2, len(head)):
        if panel and used + sizes[i] + 2 > width:
            panels.append(panel)
            panel, used = [], fixed
        panel.append(i)
        used += sizes[i] + 2
    panels.append(panel)
    lines = []
    for panel in panels:
        lines += ["  ".join(r[i].rjust(sizes[i]) for i in [0, 1, *panel]).rstrip() for r in [head, *rows]] + [""]
    return lines


def speed_cell(point, won):
    """GB/s and fraction of the copy; or the word for why there is none."""
    if point is None:
        return "missing"
    if not point.timed:
        return words.cell_word(point)
    text = words.gigabytes(point.bytes_per_second)
    if point.is_copy:
        return text
    word = "cache" if "cache" in point.flags else "warm" if "warm" in point.flags else ""
    return f"{text} {words.fraction(point.of_copy)}{word and ' ' + word}{mark_of(point, won)}"


def time_cell(point, won):
    """Microseconds and how many times the copy's time."""
    if point is None:
        return "missing"
    if not point.timed:
        return words.cell_word(point)
    text = words.microseconds(point.seconds)
    if point.is_copy:
        return text
    word = " cache" if "cache" in point.flags else " warm" if "warm" in point.flags else ""
    factor = f" {words.times(1 / point.of_copy)}" if point.of_copy else ""
    return f"{text}{factor}{word}{mark_of(point, won)}"


def table_order(series):
    """The roof beside the stages, then the peers."""
    return (0, series) if series == "copy" else (1, *map(str, series_order(series)))


def side_by_side(points, series, cell, won, width):
    """One table: a line for each N (and M), a column for each series."""
    at = {(p.cols, p.rows, p.series): p for p in points}
    shapes = sorted({(p.cols, p.rows) for p in points}, key=lambda s: (s[0], -s[1]))
    rows = [[str(n), str(m), *(cell(at.get((n, m, s)), won) for s in series)] for n, m in shapes]
    return grid(["N", "M", *series], rows, width)


def measured(report, points, title, cell, width):
    """The tables of one kind, for each machine and type that has any."""
    won = winners(report.points)
    lines = []
    points = [p for p in points if p.lie == "" and not p.source.simulated and counted_only(p) is False]
    for label in dict.fromkeys(p.source.label for p in points):
        for dtype in DTYPES:
            some = [p for p in points if p.dtype == dtype and p.source.label == label]
            if any(not p.is_copy for p in some):
                series = sorted({p.series for p in points if p.source.label == label}, key=table_order)
                lines += [f"{dtype}{label and ', ' + label}: {title}", *side_by_side(some, series, cell, won, width)]
    return lines


def counted_only(point):
    """A point of a counters file: bytes and errors, never meant to have a time."""
    return point.seconds is None and point.status == "right" and "no time" not in point.flags


def counts_table(report, width):
    """What was counted, in matrices: bytes divided by those of M x N elements."""
    rows = []
    for p in report.points:
        if p.lie or not any((p.requested_bytes, p.sector_bytes, p.dram_bytes)) and not p.source.simulated:
            continue
        size = p.elements_bytes or 1
        per = lambda v: "-" if v is None else f"{v / size:.2f}"
        plain = lambda v: "-" if v is None else f"{v:.0f}"
        if p.status != "right":
            rows.append([p.name, f"{p.rows}x{p.cols}", p.dtype, words.cell_word(p), *[""] * 6])
        else:
            rows.append([p.name, f"{p.rows}x{p.cols}", p.dtype, per(p.model_bytes), per(p.requested_bytes),
                         per(p.sector_bytes), per(p.dram_bytes), plain(p.launches), plain(p.barriers),
                         "-" if p.occupancy is None else f"{p.occupancy * 100:.0f} %"])
    if not rows:
        return []
    if len(rows) > MANY and report.simulated_only:
        return counts_by_width(report, width)
    head = ["series", "M x N", "dtype", "model", "requested", "sectors", "DRAM", "launches", "barriers", "occupancy"]
    return ["Bytes in units of the matrix (MN elements); no softmax gets below 2:", *grid(head, rows, width)]


def counts_by_width(report, width):
    """The same of many shapes: a line for each N, a column for each stage; the rest is in the page and the CSV."""
    def cell(point, won):
        if point is None or not point.requested_bytes:
            return words.cell_word(point) if point else "missing"
        per = lambda v: f"{v / point.elements_bytes:.2f}" if v is not None else "-"
        told = "" if point.model_bytes in (None, point.requested_bytes) else f" MODEL {per(point.model_bytes)}"
        return f"{per(point.requested_bytes)} {per(point.sector_bytes)}{told}"
    points = [p for p in report.points if not p.lie]
    series = sorted({p.series for p in points}, key=series_order)
    lines = ["Bytes in units of the matrix (MN elements), requested and touched in sectors of 32 bytes; no softmax",
             "gets below 2, and MODEL stands where the model says otherwise:", ""]
    for dtype in dtypes_of(points):
        lines += [f"{dtype}:", *side_by_side([p for p in points if p.dtype == dtype], series, cell, {}, width)]
    return lines


def dtypes_of(points):
    return [d for d in DTYPES if any(p.dtype == d for p in points)]


def lies_table(report, width):
    rows = []
    for truth, lie in lies(report.points):
        told = words.cell_word(lie) if not lie.timed else f"{words.gigabytes(lie.bytes_per_second)} GB/s"
        right = "missing" if truth is None or not truth.timed else f"{words.gigabytes(truth.bytes_per_second)} GB/s"
        factor = words.times(truth.seconds / lie.seconds) if truth and truth.timed and lie.timed else words.NOT_KNOWN
        rows.append([lie.name, f"{lie.rows}x{lie.cols} {lie.dtype}", lie.lie, told, right, factor])
    return ["Lies beside the truth (never counted above):",
            *grid(["series", "shape", "guard off", "lie", "truth", "lie/truth"], rows, width)] if rows else []


def comparison_table(report, width):
    groups = {}
    for a, b, ratio, sure in comparisons(report):
        groups.setdefault((b.series, b.dtype, a.source.label, b.source.label), []).append((ratio, sure))
    if not groups:
        return []
    rows = [[series, dtype, words.times(geometric_mean(r for r, _ in g)), words.several(len(g), "shape"),
             f"{sum(r > 1 and s for r, s in g)} faster", f"{sum(r < 1 and s for r, s in g)} slower",
             f"{sum(not s for _, s in g)} within noise", b] for (series, dtype, _, b), g in groups.items()]
    first = next(iter(groups))[2]
    return [f"Against {words.machine(first)} (geometric mean of the speed-up):",
            *grid(["series", "dtype", "speed-up", "of", "", "", "", "measured by"], rows, width)]


def by_message(report):
    """The points that stand for the same: series, status, and a message but for its numbers."""
    groups = {}
    for p in report.points:
        if p.status != "right":
            groups.setdefault((p.series, p.status, re.sub(r"\d+", "#", p.message)), []).append(p)
    return list(groups.values())


def shapes_of(points):
    """Each shape once, whoever measured it."""
    return dict.fromkeys(f"{p.shape} {p.dtype}" for p in points)


def problems(report):
    """Each kind of message once."""
    lines = []
    for points in by_message(report):
        one = points[0]
        lines += [f"  {one.series}, {words.cell_word(one)}: {words.first_few(shapes_of(points))}",
                  *textwrap.wrap(one.message, 92, initial_indent="    ", subsequent_indent="    ", max_lines=4)]
    return ["Points without a number:", *lines, ""] if lines else []


def doubtful(report):
    """(flag, where, what it means) of each kind of flag."""
    says = {"cache": "Above the copy: a cache served part of the data, so this is no bandwidth of DRAM; it wins "
                     "nothing.",
            "warm": "Measured with warm caches: no bandwidth of DRAM; it wins nothing.",
            "noisy": "The samples spread by more than 5 %.",
            "no time": "The clock showed nothing above zero."}
    flags = {}
    for p in report.points:
        for f in p.flags if p.lie in ("", "none") else ():  # what a lie shows is no surprise
            flags.setdefault(f, []).append(p)
    return [(f, f"{words.several(len(points), 'point')}, such as {points[0].name} {points[0].shape} {points[0].dtype}",
             says.get(f, "")) for f, points in flags.items()]


def doubts(report):
    lines = [f"  {f}: {where}. {why}".rstrip() for f, where, why in doubtful(report)]
    return ["Flags:", *lines, ""] if lines else []


def files_read(report, width):
    """The files, those that say the same of themselves together."""
    groups = {}
    for s in report.sources:
        f = s.facts
        said = [str(f[k])[:10] if k == "date" else short(k, f[k]) for k in ("device", "commit", "date") if f.get(k)]
        said += [f"{f['cache']} caches"] if f.get("cache") else []
        said += [short("input", f["input"])] if f.get("input") else []
        groups.setdefault(", ".join(said) or s.kind, []).append(s.path)
    lines = []
    for said, paths in groups.items():
        folders = {p[:-len(file_name(p))] for p in paths}
        told = f"{folders.pop()}: {', '.join(map(file_name, paths))}" if len(folders) == 1 else ", ".join(paths)
        lines += [*textwrap.wrap(f"{said}:", width), *textwrap.wrap(told, width, initial_indent="  ",
                                                                   subsequent_indent="    ", break_on_hyphens=False)]
    return lines


def text(report, width):
    """The whole report for a terminal."""
    lines = [f"NO TIMES. {NO_TIMES}", ""] if report.simulated_only else []
    lines += [*files_read(report, width), ""]
    many = [p for p in report.points if not p.few]
    speed = measured(report, many, "GB/s (2MN bytes over the median time) and the fraction of the best copy",
                     speed_cell, width)
    few = measured(report, [p for p in report.points if p.few],
                   f"few rows (at most {FEW_ROWS}): microseconds, and times the copy's", time_cell, width)
    if speed or few:
        lines += [*glance_table(report, width), *speed, *few,
                  "* fastest stage   ~ one of the fastest: the noise does not tell them apart", ""]
    lines += [*comparison_table(report, width), *counts_table(report, width), *lies_table(report, width),
              *problems(report), *doubts(report)]
    return ascii_only("\n".join(lines).rstrip()) + "\n"
