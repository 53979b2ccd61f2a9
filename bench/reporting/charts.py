"""The charts, as Altair specifications that follow the page's theme, width and selectors through parameters.

Parameters every chart knows: ink, muted and paper (colours of the theme), narrow (a phone), hidden (series that the
reader switched off); and dtype and shape where the page has a selector for them."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
import vl_convert

from reporting import words
from reporting.table import dtypes_of
from reporting.model import (DTYPES, file_name, finite, full_rows, ladder, lies, mark_of, series_order, tallest,
                             winners)

ROOT = Path(__file__).resolve().parent.parent.parent
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif"
HEIGHT = 440
SPEED_HEAD = ["series", "dtype", "M", "N", "GB/s", "of copy", "µs", "spread", "fastest", "flags"]
WIDTH_TITLE = "N, columns of a row"
SPEED_TITLE = "useful GB/s (2MN bytes over the time)"

# Stages: hues spread for the largest distance between any two, as seen with normal, protan, deutan and tritan vision
# (CIE76, at least 17 among the first seven), and at least 3:1 against the paper. Shapes tell them apart once more.
THEMES = {
    "light": {
        "paper": "#ffffff", "ink": "#1c2024", "muted": "#5b6570", "grid": "#e3e7eb",
        "stages": ["#d0458e", "#7c5325", "#1099dd", "#681320", "#78976a", "#4f159a", "#165e5d", "#6264cc", "#a69021",
                   "#4d4d4d"],
        "peers": ["#8a8378", "#3f4a57", "#c96a00", "#96670f", "#00857a", "#5c6670"],
        "kinds": ["#8a94a0", "#b8730a", "#0072b2", "#3b2f9e"],
        "heat": ["#eef4f9", "#9cc3de", "#2f7fb8", "#0a3d6b"],
        "steps": ["#0072b2", "#8a94a0", "#cf4014"],
    },
    "dark": {
        "paper": "#15191e", "ink": "#e8ebee", "muted": "#a3adb7", "grid": "#2d343c",
        "stages": ["#f7b6bf", "#f6ebc1", "#a3def6", "#d6701b", "#34d25f", "#9f7fb8", "#59968e", "#66a7fe", "#bbd941",
                   "#c4c4c4"],
        "peers": ["#99917f", "#d3dbe4", "#ffb02e", "#cd9a3c", "#2fcfbf", "#aab4be"],
        "kinds": ["#87919c", "#f0b440", "#5ab4ee", "#a5a8ff"],
        "heat": ["#1d2731", "#2f5f86", "#5aa5dc", "#cdeaff"],
        "steps": ["#5ab4ee", "#87919c", "#ff8360"],
    },
}
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
          "M-1,-1L1,1M-1,1L1,-1", "stroke"]
KINDS = ["model", "requested", "sectors", "DRAM"]
PEERS = ["cudnn-channel", "cudnn-instance", "torch-compile", "torch-eager", "triton-tutorial"]
DASHES = [[1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [4, 2]]
STEPS = ["faster", "within noise", "slower"]


@dataclass
class Figure:
    """One chart with the words around it, and its data as a table: head, and rows of text."""
    key: str
    title: str
    note: str
    alt: str
    chart: alt.TopLevelMixin
    head: list
    rows: list
    dtypes: list = field(default_factory=list)
    shapes: list = field(default_factory=list)  # (value, label) of a selector, the first is shown
    legend: bool = False


def figures(report):
    """All charts for which there is data, in the order of the page."""
    made = (make(report) for make in (speed, steps, traffic, dram, tuner, occupancy, error, lie_chart))
    return [f for f in made if f]


# --- shared pieces
def param(name, value):
    return alt.param(name=name, value=value)


def base_params(**more):
    colours = THEMES["light"]
    fixed = [param(k, colours[k]) for k in ("ink", "muted", "paper")]
    return fixed + [param("narrow", False), param("hidden", [])] + [param(k, v) for k, v in more.items()]


def data_chart(name="points"):
    """A chart over one of the data sets that finish() puts beside it; layers share them."""
    return alt.Chart(alt.NamedData(name=name))


def finish(chart, data, height, **params):
    data = data if isinstance(data, dict) else {"points": data}
    return chart.add_params(*base_params(**params)).properties(
        datasets=data, width="container", height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        padding={"left": 4, "top": 8, "bottom": 4, "right": 12})


def tips_of(*fields):
    """Tooltips from name:type:format:title, of which all but the name may be left out."""
    tips = []
    for one in fields:
        name, kind, form, title = (one.split(":") + ["", "", ""])[:4]
        kind = {"Q": "quantitative"}.get(kind, "nominal")
        tips.append(alt.Tooltip(field=name, type=kind, **({"format": form} if form else {}), title=title or name))
    return tips


def names_of(points):
    """Names in the order of the legend: by stage, then peers, the copy last."""
    return list(dict.fromkeys(p.name for p in sorted(points, key=lambda p: (series_order(p.series), p.source.number))))


def peers_of(points):
    """The peers in an order that depends on what was measured as little as can be: known ones have their colour."""
    return PEERS + sorted({p.series for p in points if not p.is_stage and not p.is_copy} - set(PEERS))


def series_scale(points, colours, what):
    """Colour or shape of each name: the same for a stage whatever machine it ran on."""
    stages = sorted({p.series for p in points if p.is_stage})
    peers = peers_of(points)
    chosen = {}
    for p in points:
        if p.is_copy:
            chosen[p.name] = colours["ink"] if what == "colour" else "stroke"
        elif what == "colour":
            group, palette = (stages, colours["stages"]) if p.is_stage else (peers, colours["peers"])
            number = int(re.sub(r"\D", "", p.series) or group.index(p.series)) if p.is_stage else group.index(p.series)
            chosen[p.name] = palette[number % len(palette)]
        else:
            group = stages if p.is_stage else peers
            chosen[p.name] = SHAPES[:8][(group.index(p.series) + (0 if p.is_stage else 3)) % 8]
    return chosen


def labels_of(points):
    """The machines or commits that are compared, in the order of the command line."""
    return list(dict.fromkeys(p.source.label for p in sorted(points, key=lambda p: p.source.number)))


def dash_of(points):
    """Solid for stages, a dash for each peer; where several machines are compared, the dash says which."""
    labels, peers = labels_of(points), peers_of(points)
    if len(labels) > 1:
        return {p.name: DASHES[labels.index(p.source.label) % len(DASHES)] for p in points}
    peer_dash = lambda p: DASHES[1:][peers.index(p.series) % (len(DASHES) - 1)]
    return {p.name: DASHES[0] if p.is_stage or p.is_copy else peer_dash(p) for p in points}


def widths_axis(cols, title="N, columns of a row (log scale)"):
    """Powers of four from 32 where they fit, fewer on a phone."""
    low, high = min(cols), max(cols)
    ticks = [2**k for k in range(0, 31) if low / 1.42 <= 2**k <= high * 1.42]
    wide = [t for t in ticks if int(math.log2(t)) % 2 == 1] if len(ticks) > 9 else ticks
    thin = wide[::2] if len(wide) > 5 else wide
    label = ("datum.value >= 1048576 ? format(datum.value / 1048576, 'd') + 'M' : "
             "datum.value >= 1024 ? format(datum.value / 1024, 'd') + 'k' : format(datum.value, 'd')")
    return alt.Axis(values=alt.ExprRef(f"narrow ? {thin} : {wide}"), labelExpr=label, title=title, grid=False,
                    labelOverlap="greedy")


def names_axis(grid):
    """Names of series; on a phone the machine stands on a second line."""
    return alt.Axis(labelLimit=220, grid=grid, ticks=False, domain=False, labelAngle=0,
                    labelExpr="narrow ? split(datum.label, ' · ') : datum.label")


def top_legend():
    return alt.Legend(orient="top", title=None, symbolType="square")


def shape_value(rows, cols):
    return f"{rows}x{cols}"


def shape_choices(points, best=lambda shape: 0):
    """Selector entries for the shapes of some points: by width, the best one first in line as the default."""
    shapes = sorted({(p.cols, p.rows) for p in points}, key=lambda s: (s[0], -s[1]))
    entries = [(shape_value(m, n), f"N = {words.count(n)}, M = {m}") for n, m in shapes]
    default = max(shapes, key=best)
    return entries, shape_value(default[1], default[0])


# --- GB/s against N
def speed(report):
    """Lines of GB/s over N, the copy as a line of its own, names at the right where there is room."""
    points = [p for p in full_rows(report.timed) if p.bytes_per_second]
    if not any(not p.is_copy for p in points):
        return None
    names, cols, dtypes = names_of(points), [p.cols for p in points], dtypes_of(points)
    peak = peak_of(points)
    top = max(1.06 * max(p.bytes_per_second for p in points) * 1e-9, 1.03 * (peak or 0))
    data = {"points": speed_data(points), "labels": label_places(points, top), "peak": [{"GB/s": peak}] if peak else []}
    return Figure("speed", "Bandwidth by row width",
                  "Useful bytes are those of one read and one write of the matrix, whatever a kernel really moves. The "
                  "line named copy is the best copy kernel at the same shape: the roof. A point above it was served by "
                  "a cache; it has a ring and says so. Where a line ends early, a kernel takes no wider rows.",
                  f"Line chart of useful gigabytes per second against the number of columns from {min(cols)} to "
                  f"{max(cols)}, one line each for {words.listed(names)}. The table below it has the numbers.",
                  finish(alt.layer(*speed_layers(points, names, cols, top)), data, HEIGHT, dtype=dtypes[0]),
                  SPEED_HEAD, speed_rows(points), dtypes, legend=True)


def peak_of(points):
    """The data sheet's GB/s, if all files that know it say the same."""
    peaks = {finite(p.source.facts.get("peak_bytes_per_second")) for p in points} - {0.0, None}
    return peaks.pop() * 1e-9 if len(peaks) == 1 else None


def speed_data(points):
    above = [p for p in points if "cache" in p.flags]
    told = {(p.name, p.dtype): p for p in reversed(above)}  # the word once a line, a ring at each point
    return [{"series": p.name, "dtype": p.dtype, "N": p.cols, "M": p.rows, "GB/s": p.bytes_per_second * 1e-9,
             "of copy": words.fraction(p.of_copy), "time": f"{words.microseconds(p.seconds)} µs",
             "spread": words.percent(p.spread), "said": ", ".join(p.flags) or "–", "cache": "cache" in p.flags,
             "told": told.get((p.name, p.dtype)) is p, "copy": p.is_copy, "peer": not p.is_stage and not p.is_copy,
            "which": p.label or "–"} for p in points]


def speed_rows(points):
    won = winners(points)
    verdict = {"*": "alone", "~": "within noise", "": ""}
    return [[p.name, p.dtype, str(p.rows), str(p.cols), words.gigabytes(p.bytes_per_second), words.fraction(p.of_copy),
             words.microseconds(p.seconds), words.percent(p.spread), verdict[mark_of(p, won)], ", ".join(p.flags)]
            for p in points]


def speed_layers(points, names, cols, top):
    """Lines, the copy, points, rings above the roof, the peak, names."""
    ranged = lambda values: alt.Scale(domain=names, range=[values[n] for n in names])
    colour = alt.Color("series:N", legend=None, scale=ranged(series_scale(points, THEMES["light"], "colour")))
    shape = alt.Shape("series:N", legend=None, scale=ranged(series_scale(points, THEMES["light"], "shape")))
    dash = alt.StrokeDash("series:N", legend=None, scale=ranged(dash_of(points)))
    ends = [min(cols), max(cols)] if min(cols) < max(cols) else [cols[0] / 2, cols[0] * 2]
    x = alt.X("N:Q", scale=alt.Scale(type="log", base=2, domain=ends, nice=False), axis=widths_axis(cols))
    y = alt.Y("GB/s:Q", scale=alt.Scale(domain=[0, top], nice=False), title=SPEED_TITLE,
              axis=alt.Axis(format="~d", tickCount=6))
    ink, muted = alt.value(alt.ExprRef("ink")), alt.ExprRef("muted")
    tips = tips_of("series", "dtype", "M:Q:d", "N:Q:d", "GB/s:Q:.1f", "of copy", "time", "spread", "said:N::flags")
    chart = data_chart().transform_filter("datum.dtype == dtype && indexof(hidden, datum.series) < 0")
    rest, copy = chart.transform_filter("!datum.copy"), chart.transform_filter("datum.copy")
    stages, peers = rest.transform_filter("!datum.peer"), rest.transform_filter("datum.peer")
    above, told = chart.transform_filter("datum.cache"), chart.transform_filter("datum.told")
    peak, end = data_chart("peak"), alt.value("width")
    return [peers.mark_line(strokeWidth=1.5, clip=True).encode(x, y, color=colour, strokeDash=dash),
            stages.mark_line(strokeWidth=2.5, clip=True).encode(x, y, color=colour, strokeDash=dash),
            copy.mark_line(strokeWidth=2.5, clip=True).encode(x, y, detail="series:N", color=ink),
            peers.mark_point(size=26, filled=True, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
            stages.mark_point(size=46, filled=True, opacity=1).encode(x, y, color=colour, shape=shape, tooltip=tips),
            copy.mark_point(size=90, opacity=0).encode(x, y, tooltip=tips + tips_of("which")),
            above.mark_point(size=170, strokeWidth=1.5, opacity=1).encode(x, y, color=ink, tooltip=tips),
            told.mark_text(dy=-15, fontSize=11, text="cache").encode(x, y, color=ink),
            peak.mark_rule(strokeDash=[1, 3], color=muted).encode(y=y),
            peak.mark_text(align="right", dx=-2, dy=-6, color=muted, text="peak by the data sheet").encode(x=end, y=y),
            *end_labels(top, colour, x, y)]


def label_places(points, top):
    """Where the names stand: beside the last point of each line, those that end at the same width pushed apart."""
    places, widest = [], {d: max(p.cols for p in points if p.dtype == d) for d in dtypes_of(points)}
    for dtype in widest:
        last = {}
        for p in points:
            if p.dtype == dtype and (p.name not in last or p.cols > last[p.name].cols):
                last[p.name] = p
        labels = [{"series": p.name, "dtype": dtype, "N": p.cols, "end": p.cols == widest[dtype],
                   "GB/s": p.bytes_per_second * 1e-9} for p in sorted(last.values(), key=lambda p: p.bytes_per_second)]
        places += pushed_apart([d for d in labels if d["end"]], top) + dropped([d for d in labels if not d["end"]], top)
    return places


def dropped(labels, top):
    """Names inside the chart, each a little below its point, and below the names that stand close by."""
    least = 15 * top / HEIGHT
    for label in sorted(labels, key=lambda d: (-d["N"], -d["GB/s"])):
        label["at"] = label["GB/s"] - 0.8 * least
        near = (d["at"] for d in labels if "at" in d and d is not label and d["N"] <= 4 * label["N"])
        for at in sorted(near, reverse=True):
            if abs(at - label["at"]) < least:
                label["at"] = at - least
    return labels


def pushed_apart(labels, top):
    """Names one under another, each as near to its point as the rest allows."""
    least = 15 * top / HEIGHT
    limit = top + least
    for label in reversed(labels):  # from the top down ...
        limit = label["at"] = min(limit - least, label["GB/s"])
    limit = -least
    for label in labels:  # ... and what fell below the axis up again
        limit = label["at"] = max(limit + least, label["at"])
    return labels


def end_labels(top, colour, x, y):
    """The names: in the margin, with a fine line to where it was pushed; in the chart where a line ends early. Not on
    a phone, where the legend has to do."""
    shown = "!narrow && datum.dtype == dtype && indexof(hidden, datum.series) < 0"
    chart = data_chart("labels").transform_filter(shown).encode(color=colour)
    at = alt.Y("at:Q", scale=alt.Scale(domain=[0, top], nice=False), title=SPEED_TITLE)
    text = chart.encode(x=x, y=at, text="series:N")
    look = {"align": "left", "fontSize": 12, "fontWeight": 600}
    moved = "datum.end && abs(datum.at - datum['GB/s']) > 0"
    inside = text.transform_filter("!datum.end")
    return [chart.transform_filter(moved).mark_rule(strokeWidth=1, opacity=0.7).encode(
                x=x, x2=alt.value(alt.ExprRef("width + 10")), y=y, y2="at:Q"),
            inside.mark_text(dx=7, stroke=alt.ExprRef("paper"), strokeWidth=4, strokeJoin="round", **look).encode(
                color=alt.value(alt.ExprRef("paper"))),
            inside.mark_text(dx=7, **look), text.transform_filter("datum.end").mark_text(dx=13, **look)]


# --- from stage to stage
def builds_on():
    """stage -> the stage it builds on, where that is not the one before it: as stages/CMakeLists.txt has it."""
    try:
        text = (ROOT / "stages" / "CMakeLists.txt").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = re.findall(r"softmax_add_stage\((\d\d)\w*[^)]*BUILDS_ON (\d\d)", text)
    return {f"stage-{a}": f"stage-{b}" for a, b in pairs}


def before(series):
    number = re.sub(r"\D", "", series)
    return builds_on().get(series) or (f"stage-{int(number) - 1:02d}" if number and int(number) else "")


def steps(report):
    """A bar from where the stage before stood to where this one stands, as speed-ups over the first."""
    points = [p for p in full_rows(report.timed) if p.counts and p.is_stage]
    if len({p.series for p in points}) < 2:
        return None
    names, dtypes = names_of(points), dtypes_of(points)
    stages_at = lambda s: (len({p.series for p in points if (p.cols, p.rows) == s}), -abs(math.log2(s[0] / 1024)))
    choices, default = shape_choices(points, stages_at)
    data = [step_of(points, *step) for step in ladder(points, before)]
    return Figure("steps", "The ladder, from stage to stage",
                  "Each bar starts where the stage that it builds on stands and ends at the tick where it stands "
                  "itself, so its length is the gain of its one idea. ≈ marks a step that is smaller than the "
                  "spread of the samples.",
                  f"Bar chart of the speed-up of each stage over the stage it builds on, for {words.listed(names)}.",
                  finish(steps_chart(names), data, max(120, 34 * len(names) + 20), dtype=dtypes[0], shape=default),
                  ["stage", "dtype", "M", "N", "time", "builds on", "step", "verdict", "over the first"],
                  [[d["series"], d["dtype"], *d["shape"].split("x"), d["time"], d["after"], d["short"], d["step"],
                    words.times(d["to"])] for d in data], dtypes, choices)


def step_of(points, p, previous, ratio, sure):
    """One bar: where it starts and ends, as speed-ups over the first stage at this shape, and what it says."""
    shape = lambda q: (q.source.label, q.dtype, q.rows, q.cols)
    first = next(q for q in points if shape(q) == shape(p))
    now = first.seconds / p.seconds
    start = first.seconds / previous.seconds if previous else now
    kind = "–" if not previous else "within noise" if not sure else "faster" if ratio > 1 else "slower"
    short = words.times(ratio) + ("" if sure else " ≈") if previous else "start" if p is first else "–"
    return {"series": p.name, "dtype": p.dtype, "shape": shape_value(p.rows, p.cols), "from": start, "to": now,
            "high": max(start, now), "step": kind, "short": short, "after": previous.name if previous else "–",
            "time": f"{words.microseconds(p.seconds)} µs"}


def steps_chart(names):
    chart = data_chart().transform_filter("datum.dtype == dtype && datum.shape == shape")
    y = alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=False))
    x = alt.X("from:Q", scale=alt.Scale(type="log", base=2, nice=False, padding=8),
              title="times as fast as the first stage (log scale)",
              axis=alt.Axis(tickCount=6, labelExpr="'×' + format(datum.value, '~g')"))
    colour = alt.Color("step:N", scale=alt.Scale(domain=STEPS, range=THEMES["light"]["steps"]), legend=top_legend())
    ink = alt.ExprRef("ink")
    tips = tips_of("series", "dtype", "shape", "time", "after:N::builds on", "short:N::step",
                   "to:Q:.3~g:times as fast as the first")
    return alt.layer(
        chart.mark_bar(height=16, cornerRadius=3).encode(x=x, x2="to:Q", y=y, color=colour, tooltip=tips),
        chart.mark_tick(thickness=3, height=24, color=ink, opacity=1).encode(x="to:Q", y=y, tooltip=tips),
        chart.mark_text(align="left", dx=8, fontSize=12, color=ink).encode(x="high:Q", y=y, text="short:N"))


# --- bytes
def traffic_of(p):
    return {"model": p.model_bytes, "requested": p.requested_bytes, "sectors": p.sector_bytes, "DRAM": p.dram_bytes}


def traffic(report):
    """Bars: model, requested, sectors and DRAM of each stage, in matrices."""
    points = [p for p in report.points if p.status == "right" and p.is_stage and p.lie == ""
              and p.elements_bytes and any(traffic_of(p).values())]
    if not points:
        return None
    data = worth_showing(traffic_data(points), points)
    kinds = [k for k in KINDS if any(d["kind"] == k for d in data)]
    names, dtypes = sorted({d["series"] for d in data}), [t for t in DTYPES if any(d["dtype"] == t for d in data)]
    at = lambda shape: [d for d in data if (d["N"], d["M"]) == shape]
    shown = {(d["N"], d["M"]) for d in data}
    choices, default = shape_choices([p for p in points if (p.cols, p.rows) in shown],
                                     lambda s: (sum(d["kind"] != "model" for d in at(s)), round(math.log2(s[0] * s[1])),
                                                -abs(math.log2(s[0] / 1024))))
    missing = [k for k in KINDS if k not in kinds]
    rows = [[d["series"], d["dtype"], str(d["M"]), str(d["N"]), d["kind"], str(d["bytes"]), d["text"]] for d in data]
    height = max(140, len(names) * (18 * len(kinds) + 10) + 50)
    said = {"model": "Model: what the formula of the stage promises. ",
            "requested": "Requested: what its threads ask for, counted by the simulator. ",
            "sectors": "Sectors: the 32-byte units that its requests touch. ",
            "DRAM": "DRAM: what passed the caches, by the counters of a GPU; it may be less than the model where the "
                    "L2 cache keeps data. "}
    return Figure("bytes", "Bytes that move",
                  "".join(said[k] for k in kinds) + "The dashed line is 2, the least any softmax moves."
                  + (f" Not measured here: {words.listed(missing)}." if missing else ""),
                  f"Bar chart of bytes moved by {words.listed(names)}, by kind of count: {words.listed(kinds)}.",
                  finish(traffic_chart(names, kinds), {"points": data, "floor": [{"matrices": 2}]}, height,
                         dtype=dtypes[0], shape=default),
                  ["stage", "dtype", "M", "N", "count", "bytes", "matrices"], sorted(rows), dtypes, choices)


def traffic_data(points):
    """One bar a stage, shape and kind. The same count from several files stands once; others are named apart."""
    told = {}
    for p in points:
        for kind, value in traffic_of(p).items():
            if value:
                same = told.setdefault((p.series, p.dtype, p.rows, p.cols, kind), {})
                # Files of benchmarks may keep seven digits of a count.
                rounded = next((v for v in same if math.isclose(v, value, rel_tol=1e-6)), None)
                if rounded is None or not p.seconds:
                    same.pop(rounded, None)
                    same[value] = p
    data = []
    for (series, dtype, m, n, kind), values in told.items():
        for value, p in values.items():
            name = series if len(values) == 1 else f"{series} · {p.source.label or file_name(p.source.path)}"
            matrices = value / p.elements_bytes
            data.append({"series": name, "dtype": dtype, "shape": shape_value(m, n), "M": m, "N": n, "kind": kind,
                         "matrices": matrices, "bytes": round(value), "text": words.significant(matrices)})
    return data


def worth_showing(data, points):
    """Shapes at which something was counted, and of most stages; else, with nothing but the model, one a width."""
    kinds, stages = {}, {}
    for d in data:
        kinds.setdefault((d["N"], d["M"]), set()).add(d["kind"])
        stages.setdefault((d["N"], d["M"]), set()).add(d["series"])
    counted = {s for s in kinds if len(kinds[s]) > 1}
    most = max((len(stages[s]) for s in counted), default=0)
    shapes = {s for s in counted if 2 * len(stages[s]) > most} or {(p.cols, p.rows) for p in full_rows(points)}
    return [d for d in data if (d["N"], d["M"]) in shapes] or data


def traffic_chart(names, kinds):
    palette = [THEMES["light"]["kinds"][KINDS.index(k)] for k in kinds]
    ink, paper = alt.ExprRef("ink"), alt.ExprRef("paper")
    y = alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=False), scale=alt.Scale(paddingInner=0.25))
    x = alt.X("matrices:Q", title="bytes, in units of the matrix (MN elements)",
              axis=alt.Axis(tickCount=8, format="~f"))
    colour = alt.Color("kind:N", sort=kinds, scale=alt.Scale(domain=kinds, range=palette), legend=top_legend())
    chart = data_chart().transform_filter("datum.dtype == dtype && datum.shape == shape").encode(
        x=x, y=y, yOffset=alt.YOffset("kind:N", sort=kinds))
    tips = tips_of("series", "kind", "dtype", "shape", "matrices:Q:.4~g", "bytes:Q:,d")
    words_of = lambda **look: chart.mark_text(align="left", dx=4, fontSize=11, **look).encode(text="text:N")
    return alt.layer(chart.mark_bar(cornerRadiusEnd=2).encode(color=colour, tooltip=tips),
                     data_chart("floor").mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=ink).encode(x=x),
                     words_of(stroke=paper, strokeWidth=4), words_of(color=ink))


def dram(report):
    """Lines over N of what a stage touches and what of it reached DRAM, where enough widths were counted."""
    points = [p for p in report.points if p.status == "right" and p.is_stage and p.lie == "" and p.dram_bytes]
    widths = {}
    for p in points:
        widths.setdefault((p.series, p.dtype), set()).add(p.cols)
    points = [p for p in points if len(widths[p.series, p.dtype]) > 3]
    most = max((p.elements_bytes for p in points), default=0)
    points = tallest([p for p in points if 4 * p.elements_bytes >= most])  # a small matrix fits the cache as a whole
    if not points:
        return None
    data = [{"series": p.series, "dtype": p.dtype, "N": p.cols, "M": p.rows, "kind": kind, "bytes": value,
             "matrices": value / p.elements_bytes, "text": words.significant(value / p.elements_bytes)}
            for p in points for kind, value in (("sectors", p.sector_bytes), ("DRAM", p.dram_bytes)) if value]
    names, dtypes = sorted({d["series"] for d in data}), [t for t in DTYPES if any(d["dtype"] == t for d in data)]
    return Figure("dram", f"What reaches DRAM, {words.listed(names)}",
                  "The threads touch the same bytes at every width (sectors). Where all rows in flight fit the L2 "
                  "cache, a row that is read again comes from there, and DRAM moves about the least of 2; "
                  "where they do not, every pass reaches DRAM.",
                  f"Line chart of bytes touched and of DRAM over the number of columns, for {words.listed(names)}.",
                  finish(dram_chart(data), {"points": data, "floor": [{"matrices": 2}]}, 240, dtype=dtypes[0]),
                  ["stage", "dtype", "M", "N", "count", "bytes", "matrices"],
                  [[d["series"], d["dtype"], str(d["M"]), str(d["N"]), d["kind"], f"{d['bytes']:.0f}", d["text"]]
                   for d in data], dtypes)


def dram_chart(data):
    kinds = ["sectors", "DRAM"]
    cols = [d["N"] for d in data]
    x = alt.X("N:Q", scale=alt.Scale(type="log", base=2, domain=[min(cols), max(cols)], nice=False, padding=16),
              axis=widths_axis(cols))
    y = alt.Y("matrices:Q", title="bytes / (MN elements)", scale=alt.Scale(
        domain=[0, 1.15 * max(d["matrices"] for d in data)], nice=False), axis=alt.Axis(tickCount=4, format="~f"))
    palette = [THEMES["light"]["kinds"][KINDS.index(k)] for k in kinds]
    colour = alt.Color("kind:N", sort=kinds, scale=alt.Scale(domain=kinds, range=palette), legend=top_legend())
    chart = data_chart().transform_filter("datum.dtype == dtype").encode(x=x, y=y)
    tips = tips_of("series", "kind", "dtype", "M:Q:d", "N:Q:d", "matrices:Q:.4~g", "bytes:Q:,d")
    detail = {"detail": "series:N"}
    return alt.layer(data_chart("floor").mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=alt.ExprRef("ink")).encode(
                         y=y),
                     chart.mark_line(strokeWidth=2.5).encode(color=colour, **detail),
                     chart.mark_point(size=60, filled=True, opacity=1).encode(color=colour, tooltip=tips),
                     chart.transform_filter("datum.kind == 'DRAM'").mark_text(
                         dy=alt.ExprRef("datum.matrices > 2.2 ? 16 : -12"), fontSize=11,
                         color=alt.ExprRef("ink")).encode(text="text:N"))


# --- heat maps
def heat(data, x, y, xsort, ysort, titles, height, dtype):
    """Cells of 0 to 100 with their number; a cell whose value is None stays empty, one with rule has a frame."""
    plain = {"labelAngle": 0, "grid": False, "ticks": False, "domain": False}
    chart = data_chart().transform_filter("datum.dtype == dtype").encode(
        x=alt.X(f"{x}:N", sort=xsort, title=titles[0], axis=alt.Axis(labelOverlap=True, **plain)),
        y=alt.Y(f"{y}:N", sort=ysort, title=titles[1], axis=names_axis(grid=False)))
    low = min([50, *(d["value"] for d in data if d["value"] is not None)])
    shade = alt.Color("value:Q", legend=None, scale=alt.Scale(domain=[low, 100], range=THEMES["light"]["heat"]))
    ink, paper = alt.value(alt.ExprRef("ink")), alt.value(alt.ExprRef("paper"))
    tips = tips_of(*(k for k in data[0] if k not in ("value", "text", "rule", "cols")))
    return finish(alt.layer(
        chart.mark_rect(cornerRadius=3, stroke=alt.ExprRef("paper"), strokeWidth=2).encode(
            tooltip=tips, color=alt.condition("isValid(datum.value)", shade, alt.value("transparent"))),
        chart.mark_text(fontSize=alt.ExprRef("narrow ? 10 : 12")).encode(
            text="text:N", color=alt.condition(f"datum.value > {(low + 100) / 2}", paper, ink)),
        chart.transform_filter("datum.rule == true").mark_rect(
            filled=False, cornerRadius=3, strokeWidth=2.5, stroke=THEMES["light"]["steps"][2])),
        data, height, dtype=dtype)


def tuner(report):
    """Warps against N: the best plan with so many warps, in percent of the best of all."""
    plans = [p for p in report.plans if p.score]
    if not plans:
        return None
    data = tuner_data(report.plans)
    xs = list(dict.fromkeys(d["N"] for d in data))
    ys = sorted({d["warps"] for d in data}, key=int, reverse=True)
    timed, dtypes = all(p.timed for p in plans), [d for d in DTYPES if any(p.dtype == d for p in plans)]
    regret = [p.regret for p in report.plans if p.is_best and p.regret is not None]
    cost = f"; it costs at most {words.percent(max(regret))} against the best plan" if regret and timed else ""
    rows = [[d["dtype"], str(d["M"]), str(d["cols"]), d["warps"], d["rows a block"], d["percent of the best"],
             d["chosen by the rule"]] for d in data]
    return Figure("warps", "How many warps a block",
                  ("Percent of the best plan's speed, with the best number of rows a block for each cell. " if timed
                   else "Ranked by a model, not by times: percent of the best plan's bytes in flight. ")
                  + f"The frame is what the rule of the stage chooses{cost}.",
                  f"Heat map of speed over warps a block and columns, for N = {words.listed(xs)}.",
                  heat(data, "N", "warps", xs, ys, (WIDTH_TITLE, "warps a block"), 38 * len(ys) + 60, dtypes[0]),
                  ["dtype", "M", "N", "warps", "rows a block", "% of best", "rule"], rows, dtypes)


def tuner_data(plans):
    """One cell a width and number of warps."""
    cells, best = {}, {}
    for p in plans:
        shape = (p.source.path, p.dtype, p.cols, p.rows)
        best[shape] = max(best.get(shape, 0), p.score or 0)
        cells.setdefault((shape, p.warps), []).append(p)
    data = []
    for (shape, warps), group in cells.items():
        one, tried = group[0], [p for p in group if p.score]
        top = max(tried, key=lambda p: p.score, default=None)
        value = 100 * top.score / best[shape] if top else None
        rule = any(p.is_rule for p in group)
        data.append({"N": words.count(one.cols), "M": one.rows, "cols": one.cols, "warps": str(warps),
                     "dtype": one.dtype, "value": value, "text": f"{value:.0f}" if top else "",
                     "percent of the best": f"{value:.1f}" if top else one.not_tried or "not tried",
                     "rows a block": str(top.rows_per_block) if top else "–",
                     "occupancy, a model": words.percent(top.occupancy) if top else "–",
                     "rule": rule, "chosen by the rule": "yes" if rule else "no"})
    return sorted(data, key=lambda d: (DTYPES.index(d["dtype"]), d["cols"], int(d["warps"])))


def occupancy(report):
    """Stage against N: the share of thread slots that are taken."""
    points = [p for p in report.points if p.occupancy is not None and p.lie in ("", "none") and p.status == "right"]
    points = tallest(points)
    if not points:
        return None
    names, dtypes = names_of(points), dtypes_of(points)
    data = [{"N": words.count(p.cols), "M": p.rows, "series": p.name, "dtype": p.dtype, "value": 100 * p.occupancy,
             "text": f"{100 * p.occupancy:.0f}", "percent": f"{100 * p.occupancy:.1f}"}
            for p in sorted(points, key=lambda p: p.cols)]
    xs = list(dict.fromkeys(d["N"] for d in data))
    return Figure("occupancy", "Occupancy",
                  "Percent of the thread slots of a multiprocessor that hold resident threads, by the occupancy model: "
                  "a limit that threads, shared memory and registers set, not a measurement of speed.",
                  f"Heat map of occupancy over stages and columns, for {words.listed(names)}.",
                  heat(data, "N", "series", xs, names, (WIDTH_TITLE, None), 38 * len(names) + 60, dtypes[0]),
                  ["stage", "dtype", "M", "N", "occupancy"],
                  [[p.name, p.dtype, str(p.rows), str(p.cols), words.percent(p.occupancy)] for p in points], dtypes)


# --- numeric error
def error(report):
    """One strip a stage, one point a shape: the largest error in units of the last place."""
    points = [p for p in report.points if p.max_ulp is not None and p.status == "right" and not p.is_copy
              and p.lie == ""]
    if not points:
        return None
    names, dtypes = names_of(points), dtypes_of(points)
    data = [{"series": p.name, "dtype": p.dtype, "ulp": p.max_ulp, "shape": p.shape, "file": p.source.path}
            for p in points]
    return Figure("error", "Numeric error",
                  "Against softmax in double precision, on the rows that were checked. Rounding alone costs up to "
                  "0.5 ulp; fp16 and bf16 round so coarsely that the arithmetic in fp32 hides below it. Each point "
                  "passed its own bound, which grows with the range of the row (docs/numerics.md).",
                  f"Strip chart of the largest error in units of the last place for {words.listed(names)}.",
                  finish(error_chart(points, names), data, 34 * len(names) + 50, dtype=dtypes[0]),
                  ["stage", "dtype", "M", "N", "largest error, ulp"],
                  [[p.name, p.dtype, str(p.rows), str(p.cols), words.significant(p.max_ulp, 6)] for p in points],
                  dtypes)


def error_chart(points, names):
    chosen = series_scale(points, THEMES["light"], "colour")
    widest = max(0.6, 1.04 * max(p.max_ulp for p in points))
    return data_chart().transform_filter("datum.dtype == dtype && indexof(hidden, datum.series) < 0").mark_point(
        size=70, filled=True, opacity=0.55).encode(
        x=alt.X("ulp:Q", title="largest error of a shape, ulp of the stored type",
                scale=alt.Scale(domain=[0, widest], nice=False), axis=alt.Axis(tickCount=6, format="~f")),
        y=alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=True)),
        color=alt.Color("series:N", scale=alt.Scale(domain=names, range=[chosen[n] for n in names]), legend=None),
        tooltip=tips_of("series", "dtype", "shape", "ulp:Q:.4~g", "file"))


# --- lies
def lie_chart(report):
    """Truth and lie of the same point, joined by a line."""
    pairs = [(truth, lie) for truth, lie in lies(report.points)
             if truth and truth.timed and lie.timed and truth.bytes_per_second and lie.bytes_per_second]
    if not pairs:
        return None
    data = [{"what": lie.lie, "shape": f"{lie.name} {lie.shape} {lie.dtype}", "truth": truth.bytes_per_second * 1e-9,
             "lie": lie.bytes_per_second * 1e-9, "factor": words.times(truth.seconds / lie.seconds),
             "high": max(truth.bytes_per_second, lie.bytes_per_second) * 1e-9} for truth, lie in pairs]
    choices = [(s, s) for s in dict.fromkeys(d["shape"] for d in data)]
    return Figure("lies", "How benchmarks lie",
                  "The same kernel at the same shape with one guard of the clock switched off (diamond), beside the "
                  "truth (dot).",
                  "Chart of measured gigabytes per second with one timing guard switched off, beside the true value.",
                  finish(lies_layers(data), data, 40 * len({d["what"] for d in data}) + 50, shape=choices[0][0]),
                  ["guard off", "series and shape", "lie, GB/s", "truth, GB/s", "lie / truth"],
                  [[d["what"], d["shape"], words.significant(d["lie"]), words.significant(d["truth"]), d["factor"]]
                   for d in data], [], choices)


def lies_layers(data):
    ends = [v for d in data for v in (d["truth"], d["lie"])]
    tens = [10.0**k for k in range(math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends))) + 1)]
    x = lambda field: alt.X(f"{field}:Q", title="GB/s (log scale)", axis=alt.Axis(values=tens, format="~s"),
                            scale=alt.Scale(type="log", domain=[tens[0], tens[-1]], nice=False))
    ink, paper, muted = alt.ExprRef("ink"), alt.ExprRef("paper"), alt.ExprRef("muted")
    tips = tips_of("what:N::guard off", "shape", "truth:Q:.4~g", "lie:Q:.4~g", "factor")
    chart = data_chart().transform_filter("datum.shape == shape").encode(
        y=alt.Y("what:N", title=None, axis=names_axis(grid=False)))
    dot = {"filled": True, "color": ink}
    diamond = {"shape": "diamond", "stroke": ink, "fill": paper, "strokeWidth": 2.5}
    return alt.layer(chart.mark_rule(strokeWidth=2, color=muted).encode(x=x("truth"), x2="lie:Q"),
                     chart.mark_point(size=110, opacity=1, **dot).encode(x=x("truth"), tooltip=tips),
                     chart.mark_point(size=110, opacity=1, **diamond).encode(x=x("lie"), tooltip=tips),
                     chart.mark_text(align="left", dx=12, fontSize=12, color=ink).encode(x=x("high"), text="factor:N"))


# --- themes and pictures
def config(theme):
    """Everything about looks that is the same in all charts."""
    c = THEMES[theme]
    axis = {"labelColor": c["muted"], "titleColor": c["muted"], "gridColor": c["grid"], "domainColor": c["muted"],
            "tickColor": c["muted"], "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
            "titlePadding": 8, "labelPadding": 4}
    return {"background": None, "font": FONT, "view": {"stroke": None}, "axis": axis,
            "legend": {"labelColor": c["ink"], "titleColor": c["ink"], "labelFontSize": 12, "symbolSize": 120,
                       "offset": 4},
            "title": {"color": c["ink"]}}


def swap_colours():
    """Each colour of the light theme -> the same in the dark one."""
    light, dark = THEMES["light"], THEMES["dark"]
    swap = {}
    for key, value in light.items():
        pairs = zip(value, dark[key]) if isinstance(value, list) else [(value, dark[key])]
        swap.update(pairs)
    return swap


def spec(figure):
    return figure.chart.to_dict()


def pictures(figure):
    """(name, specification) for each choice of type; fixed width, the light theme, on white."""
    for dtype in figure.dtypes or [None]:
        one = spec(figure)
        one["params"] = [{**p, "value": dtype} if p["name"] == "dtype" and dtype else p for p in one["params"]]
        shown = {p["name"]: p["value"] for p in one["params"]}
        one.update(width=860, autosize="pad", padding=12, background="#ffffff",
                   title={"text": f"{figure.title}{', ' + dtype if dtype else ''}", "anchor": "start", "offset": 14,
                          "subtitle": dict(figure.shapes).get(shown["shape"], "") if "shape" in shown else ""})
        one["config"] = {k: v for k, v in config("light").items() if k != "background"}
        yield f"{figure.key}{'-' + dtype if dtype else ''}", one


def as_svg(figure):
    for name, one in pictures(figure):
        yield name, vl_convert.vegalite_to_svg(one, vl_version=VEGA_LITE, allowed_base_urls=[])


def as_png(figure):
    for name, one in pictures(figure):
        yield name, vl_convert.vegalite_to_png(one, vl_version=VEGA_LITE, scale=2, allowed_base_urls=[])


def javascript():
    """Vega, Vega-Lite and Vega-Embed, to stand inside the page."""
    return vl_convert.javascript_bundle(vl_version=VEGA_LITE)
