"""The charts, as Altair specifications that follow the page's theme, width and selectors through parameters.

Parameters every chart knows: ink, muted and paper (colours of the theme), narrow (a phone), hidden (series that the reader
switched off); and dtype and shape where the page has a selector for them."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
import vl_convert

from reporting import words
from reporting.model import (DTYPES, comparisons, compare, full_rows, geometric_mean, ladder, lies, mark_of, series_order,
                             winners)

ROOT = Path(__file__).resolve().parent.parent.parent
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', sans-serif"
HEIGHT = 440
SPEED_TITLE = "useful GB/s (2MN bytes over the time)"

# Told apart by people with any colour vision, with the shapes' help; at least 3:1 against the paper.
THEMES = {
    "light": {
        "paper": "#ffffff", "ink": "#1c2024", "muted": "#5b6570", "grid": "#e3e7eb",
        "stages": ["#8c2d5e", "#b8730a", "#0072b2", "#cf4014", "#117a52", "#9355b8", "#0b7f8c", "#3b2f9e", "#6f6a00", "#4d4d4d"],
        "peers": ["#5c6670", "#7d6b57", "#56708a", "#6d5f78"],
        "kinds": ["#8a94a0", "#b8730a", "#0072b2", "#3b2f9e"],
        "heat": ["#eef4f9", "#9cc3de", "#2f7fb8", "#0a3d6b"],
        "steps": ["#117a52", "#8a94a0", "#cf4014"],
    },
    "dark": {
        "paper": "#15191e", "ink": "#e8ebee", "muted": "#a3adb7", "grid": "#2d343c",
        "stages": ["#ee93bd", "#f0b440", "#5ab4ee", "#ff8360", "#5fcf93", "#cf9cf0", "#4fd3d6", "#a5a8ff", "#d8cf5c", "#c4c4c4"],
        "peers": ["#aab4be", "#c7b299", "#9fb9d3", "#bba9c8"],
        "kinds": ["#87919c", "#f0b440", "#5ab4ee", "#a5a8ff"],
        "heat": ["#1d2731", "#2f5f86", "#5aa5dc", "#cdeaff"],
        "steps": ["#5fcf93", "#87919c", "#ff8360"],
    },
}
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left",
          "M-1,-1L1,1M-1,1L1,-1", "stroke"]
KINDS = ["model", "requested", "sectors", "DRAM"]
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
    made = [speed(report), steps(report), traffic(report), tuner(report), occupancy(report), error(report), lie_chart(report)]
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


def series_scale(points, colours, what):
    """Colour or shape of each name: the same for a stage whatever machine it ran on."""
    stages = sorted({p.series for p in points if p.is_stage})
    peers = sorted({p.series for p in points if not p.is_stage and not p.is_copy})
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
    """Solid for stages; where several machines are compared, the dash says which."""
    labels = labels_of(points)
    return {p.name: DASHES[labels.index(p.source.label) % len(DASHES)] if len(labels) > 1 else [1, 0] if p.is_stage or p.is_copy else [5, 3]
            for p in points}


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


def dtypes_of(points):
    return [d for d in DTYPES if any(p.dtype == d for p in points)]


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
    won = winners(points)
    top = max(p.bytes_per_second for p in points) * 1e-9 * 1.06
    peak = {p.source.facts.get("peak_bytes_per_second") for p in points} - {None, 0}
    peak = peak.pop() * 1e-9 if len(peak) == 1 else None
    top = max(top, peak * 1.03) if peak else top
    above = [p for p in points if "cache" in p.flags]
    first_above = list({(p.name, p.dtype): p for p in reversed(above)}.values())  # one word a line, a ring at each point
    data = [{"series": p.name, "dtype": p.dtype, "N": p.cols, "M": p.rows, "GB/s": p.bytes_per_second * 1e-9,
             "of copy": words.fraction(p.of_copy), "time": f"{words.microseconds(p.seconds)} µs",
             "spread": words.percent(p.spread), "said": ", ".join(p.flags) or "–", "cache": "cache" in p.flags,
             "told": p in first_above, "copy": p.is_copy} for p in points]
    names = names_of(points)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=list(series_scale(points, THEMES["light"], "colour").get(n) for n in names)),
                       legend=None)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=names, range=[series_scale(points, THEMES["light"], "shape")[n] for n in names]), legend=None)
    dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=[dash_of(points)[n] for n in names]), legend=None)
    cols = [p.cols for p in points]
    ends = [min(cols), max(cols)] if min(cols) < max(cols) else [cols[0] / 2, cols[0] * 2]
    x = alt.X("N:Q", scale=alt.Scale(type="log", base=2, domain=ends, nice=False), axis=widths_axis(cols))
    y = alt.Y("GB/s:Q", scale=alt.Scale(domain=[0, top], nice=False), title=SPEED_TITLE,
              axis=alt.Axis(format="~d", tickCount=6))
    tips = tips_of("series", "dtype", "M:Q:d", "N:Q:d", "GB/s:Q:.1f", "of copy", "time", "spread", "said:N::flags")
    shown = "datum.dtype == dtype && indexof(hidden, datum.series) < 0"
    chart = data_chart().transform_filter(shown)
    layers = [chart.transform_filter("!datum.copy").mark_line(strokeWidth=2, clip=True).encode(x, y, color=colour, strokeDash=dash),
              chart.transform_filter("datum.copy").mark_line(strokeWidth=2.5, clip=True).encode(
                  x, y, detail="series:N", color=alt.value(alt.ExprRef("ink"))),
              chart.transform_filter("!datum.copy").mark_point(size=46, filled=True, opacity=1).encode(
                  x, y, color=colour, shape=shape, tooltip=tips),
              chart.transform_filter("datum.copy").mark_point(size=90, opacity=0).encode(x, y, tooltip=tips),
              chart.transform_filter("datum.cache").mark_point(size=170, strokeWidth=1.5, opacity=1).encode(
                  x, y, color=alt.value(alt.ExprRef("ink")), tooltip=tips),
              chart.transform_filter("datum.told").mark_text(dy=-15, fontSize=11, text="cache").encode(
                  x, y, color=alt.value(alt.ExprRef("ink")))]
    layers += end_labels(top, colour, x, y)
    sets = {"points": data, "labels": label_places(points, top)}
    if peak:
        sets["peak"] = [{"GB/s": peak}]
        rule = data_chart("peak")
        layers += [rule.mark_rule(strokeDash=[1, 3], color=alt.ExprRef("muted")).encode(y=y),
                   rule.mark_text(align="right", dx=-2, dy=-6, color=alt.ExprRef("muted"), text="peak by the data sheet").encode(
                       y=y, x=alt.value("width"))]
    chart = finish(alt.layer(*layers), sets, HEIGHT, dtype=dtypes_of(points)[0])
    head = ["series", "dtype", "M", "N", "GB/s", "of copy", "µs", "spread", "fastest", "flags"]
    rows = [[p.name, p.dtype, str(p.rows), str(p.cols), words.gigabytes(p.bytes_per_second), words.fraction(p.of_copy),
             words.microseconds(p.seconds), words.percent(p.spread), {"*": "alone", "~": "within noise", "": ""}[mark_of(p, won)],
             ", ".join(p.flags)] for p in points]
    return Figure("speed", "Bandwidth by row width",
                  "Useful bytes are those of one read and one write of the matrix, whatever a kernel really moves. The line "
                  "named copy is the best copy kernel measured in the same process: the roof. A point above it was served by "
                  "a cache; it has a ring and says so. A line that ends early: the stage takes no wider rows.",
                  f"Line chart of useful gigabytes per second against the number of columns from {min(cols)} to {max(cols)}, "
                  f"one line each for {words.listed(names)}. The table below it has the numbers.",
                  chart, head, rows, dtypes_of(points), legend=True)


def label_places(points, top):
    """Where the names stand in the right margin: at the height of the last point, pushed apart."""
    places = []
    for dtype in dtypes_of(points):
        last = {}
        for p in points:
            if p.dtype == dtype and (p.name not in last or p.cols > last[p.name].cols):
                last[p.name] = p
        least = 15 * top / HEIGHT
        labels = [{"series": p.name, "dtype": dtype, "N": p.cols, "GB/s": p.bytes_per_second * 1e-9}
                  for p in sorted(last.values(), key=lambda p: p.bytes_per_second)]
        limit = top + least
        for label in reversed(labels):  # from the top down ...
            limit = label["at"] = min(limit - least, label["GB/s"])
        limit = -least
        for label in labels:  # ... and what fell below the axis up again
            limit = label["at"] = max(limit + least, label["at"])
        places += labels
    return places


def end_labels(top, colour, x, y):
    """The names, each with a fine line to where its series ends; not on a phone."""
    chart = data_chart("labels").transform_filter("!narrow && datum.dtype == dtype && indexof(hidden, datum.series) < 0")
    at = alt.Y("at:Q", scale=alt.Scale(domain=[0, top], nice=False), title=SPEED_TITLE)
    end = alt.value("width")
    lines = chart.mark_rule(strokeWidth=1, strokeDash=[1, 2], opacity=0.7).encode(x=x, x2=end, y=y, y2="at:Q", color=colour)
    text = chart.mark_text(align="left", dx=8, fontSize=12, fontWeight=600).encode(x=end, y=at, text="series:N", color=colour)
    return [lines, text]


# --- from stage to stage
def builds_on():
    """stage -> the stage it builds on, where that is not the one before it: as stages/CMakeLists.txt has it."""
    try:
        text = (ROOT / "stages" / "CMakeLists.txt").read_text(encoding="utf-8")
    except OSError:
        return {}
    return {f"stage-{a}": f"stage-{b}" for a, b in re.findall(r"softmax_add_stage\((\d\d)\w*[^)]*BUILDS_ON (\d\d)", text)}


def before(series):
    number = re.sub(r"\D", "", series)
    return builds_on().get(series) or (f"stage-{int(number) - 1:02d}" if number and int(number) else "")


def steps(report):
    """A bar from where the stage before stood to where this one stands, as speed-ups over the slowest start."""
    points = [p for p in full_rows(report.timed) if p.counts and p.is_stage]
    if len({p.series for p in points}) < 2:
        return None
    data, rows = [], []
    for p, previous, ratio, sure in ladder(points, before):
        first = next(q for q in points if (q.source.label, q.dtype, q.rows, q.cols) == (p.source.label, p.dtype, p.rows, p.cols))
        now = first.seconds / p.seconds
        start = first.seconds / previous.seconds if previous else now
        kind = "within noise" if previous and not sure else "slower" if previous and ratio < 1 else "faster"
        said = (f"{words.times(ratio)} {'≈ ' if not sure else ''}over {previous.series}" if previous
                else "the start" if p is first else "no step: the stage it builds on has no time here")
        short = words.times(ratio) + ("" if sure else " ≈") if previous else "start" if p is first else "–"
        data.append({"series": p.name, "dtype": p.dtype, "shape": shape_value(p.rows, p.cols), "from": start, "to": now,
                     "high": max(start, now), "step": kind, "said": said, "short": short,
                     "after": previous.name if previous else "–", "time": f"{words.microseconds(p.seconds)} µs"})
        rows.append([p.name, p.dtype, str(p.rows), str(p.cols), words.microseconds(p.seconds), previous.series if previous else "–",
                     words.times(ratio), kind if previous else "–", words.times(now)])
    names = names_of(points)
    stages_at = lambda s: (len({p.series for p in points if (p.cols, p.rows) == s}), -abs(math.log2(s[0] / 1024)))
    choices, default = shape_choices(points, stages_at)
    chart = data_chart().transform_filter("datum.dtype == dtype && datum.shape == shape")
    y = alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=False))
    x = alt.X("from:Q", scale=alt.Scale(type="log", base=2, nice=False, padding=8), title="times as fast as the first stage (log scale)",
              axis=alt.Axis(format="~g", tickCount=6, labelExpr="'×' + format(datum.value, '~g')"))
    colour = alt.Color("step:N", scale=alt.Scale(domain=STEPS, range=THEMES["light"]["steps"]),
                       legend=alt.Legend(orient="top", title=None, symbolType="square"))
    tips = tips_of("series", "dtype", "shape", "time", "after:N::builds on", "said:N::step", "to:Q:.3~g:times as fast as the first")
    bars = chart.mark_bar(height=16, cornerRadius=3).encode(x=x, x2="to:Q", y=y, color=colour, tooltip=tips)
    ends = chart.mark_tick(thickness=3, height=24, color=alt.ExprRef("ink"), opacity=1).encode(
        x=alt.X("to:Q"), y=y, tooltip=tips)
    text = chart.mark_text(align="left", dx=8, fontSize=12, color=alt.ExprRef("ink")).encode(
        x=alt.X("high:Q"), y=y, text="short:N")
    height = max(120, 34 * len(names) + 20)
    return Figure("steps", "The ladder, from stage to stage",
                  "Each bar starts where the stage that it builds on stands and ends at the tick where it stands itself, so its "
                  "length is the gain of its one idea. ≈ marks a step that is smaller than the spread of the samples.",
                  f"Bar chart of the speed-up of each stage over the stage it builds on, for {words.listed(names)}.",
                  finish(alt.layer(bars, ends, text), data, height, dtype=dtypes_of(points)[0], shape=default),
                  ["stage", "dtype", "M", "N", "µs", "builds on", "step", "verdict", "over the first"], rows,
                  dtypes_of(points), choices)


# --- bytes
def traffic_of(p):
    return {"model": p.model_bytes, "requested": p.requested_bytes, "sectors": p.sector_bytes, "DRAM": p.dram_bytes}


def traffic(report):
    """Bars: model, requested, sectors and DRAM of each stage, in matrices."""
    points = [p for p in report.points if p.status == "right" and p.is_stage and p.lie in ("", "none") and p.elements_bytes
              and any(traffic_of(p).values())]
    if not points:
        return None
    told = {}
    for p in points:  # the same count from several files stands once
        for kind, value in traffic_of(p).items():
            if value:
                told.setdefault((p.series, p.dtype, p.rows, p.cols, kind), {}).setdefault(round(value), p)
    data = []
    for (series, dtype, m, n, kind), values in told.items():
        for value, p in values.items():
            name = series if len(values) == 1 else f"{series} · {p.source.label or p.source.path}"
            data.append({"series": name, "dtype": dtype, "shape": shape_value(m, n), "M": m, "N": n, "kind": kind,
                         "matrices": value / p.elements_bytes, "bytes": value, "text": words.significant(value / p.elements_bytes)})
    kinds = [k for k in KINDS if any(d["kind"] == k for d in data)]
    names = sorted({d["series"] for d in data})
    kinds_at = lambda s: (len({d["kind"] for d in data if (d["N"], d["M"]) == s}), sum((d["N"], d["M"]) == s for d in data), s[0] * s[1])
    choices, default = shape_choices(points, kinds_at)
    palette = [THEMES["light"]["kinds"][KINDS.index(k)] for k in kinds]
    y = alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=False),
              scale=alt.Scale(paddingInner=0.25))
    x = alt.X("matrices:Q", title="bytes, in units of the matrix (MN elements)", axis=alt.Axis(tickCount=8, format="~g"))
    chart = data_chart().transform_filter("datum.dtype == dtype && datum.shape == shape")
    offset = alt.YOffset("kind:N", sort=kinds)
    bars = chart.mark_bar(cornerRadiusEnd=2).encode(
        x=x, y=y, yOffset=offset, tooltip=tips_of("series", "kind", "dtype", "shape", "matrices:Q:.4~g", "bytes:Q:,d"),
        color=alt.Color("kind:N", sort=kinds, scale=alt.Scale(domain=kinds, range=palette),
                        legend=alt.Legend(orient="top", title=None, symbolType="square")))
    text = chart.mark_text(align="left", dx=4, fontSize=11, color=alt.ExprRef("ink")).encode(x=x, y=y, yOffset=offset, text="text:N")
    halo = chart.mark_text(align="left", dx=4, fontSize=11, stroke=alt.ExprRef("paper"), strokeWidth=4).encode(
        x=x, y=y, yOffset=offset, text="text:N")
    floor = data_chart("floor").mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=alt.ExprRef("ink")).encode(x=x)
    rows = [[d["series"], d["dtype"], str(d["M"]), str(d["N"]), d["kind"], str(d["bytes"]), d["text"]] for d in data]
    rows.sort()
    missing = [k for k in KINDS if k not in kinds]
    return Figure("bytes", "Bytes that move",
                  "Model: what the formula of the stage promises. Requested: what its threads ask for, counted by the simulator. "
                  "Sectors: the 32-byte units that these requests touch. DRAM: what passed the caches, by the counters of a GPU; "
                  "it may be less than the model where the L2 cache keeps data. The dashed line is 2, the least any softmax moves."
                  + (f" Not measured here: {words.listed(missing)}." if missing else ""),
                  f"Bar chart of bytes moved by {words.listed(names)}, by kind of count: {words.listed(kinds)}.",
                  finish(alt.layer(bars, floor, halo, text), {"points": data, "floor": [{"matrices": 2}]}, max(140, len(names) * (18 * len(kinds) + 10) + 50),
                         dtype=dtypes_of(points)[0], shape=default),
                  ["stage", "dtype", "M", "N", "count", "bytes", "matrices"], rows, dtypes_of(points), choices)


# --- heat maps
def heat(data, x, y, xsort, ysort, xtitle, ytitle, height, **params):
    """Cells of 0 to 100 with their number; data have x, y, value, text and tip fields."""
    chart = data_chart()
    for p in params:
        chart = chart.transform_filter(f"datum.{p} == {p}")
    ex = alt.X(f"{x}:N", sort=xsort, title=xtitle, axis=alt.Axis(labelAngle=0, grid=False, ticks=False, domain=False, labelOverlap=True))
    ey = alt.Y(f"{y}:N", sort=ysort, title=ytitle, axis=names_axis(grid=False))
    tips = tips_of(*(k for k in data[0] if k not in ("value", "text", "rule", "cols")))
    low = min(d["value"] for d in data if d["value"] is not None)
    cells = chart.mark_rect(cornerRadius=3, stroke=alt.ExprRef("paper"), strokeWidth=2).encode(
        ex, ey, tooltip=tips, color=alt.condition("isValid(datum.value)", alt.Color("value:Q", legend=None, scale=alt.Scale(
            domain=[min(low, 50), 100], range=THEMES["light"]["heat"])), alt.value("transparent")))
    middle = (min(low, 50) + 100) / 2
    text = chart.mark_text(fontSize=alt.ExprRef("narrow ? 10 : 12")).encode(
        ex, ey, text="text:N", color=alt.condition(f"datum.value > {middle}", alt.value(alt.ExprRef("paper")), alt.value(alt.ExprRef("ink"))))
    ring = chart.transform_filter("datum.rule == true").mark_rect(filled=False, cornerRadius=3, strokeWidth=2.5, stroke=THEMES["light"]["stages"][3]).encode(ex, ey)
    return finish(alt.layer(cells, ring, text), data, height, **params)


def tuner(report):
    """Warps against N: the best plan with so many warps, in percent of the best of all."""
    plans = [p for p in report.plans if p.score]
    if not plans:
        return None
    cells, best = {}, {}
    for p in report.plans:
        shape = (p.source.path, p.dtype, p.cols, p.rows)
        best[shape] = max(best.get(shape, 0), p.score or 0)
        cells.setdefault((shape, p.warps), []).append(p)
    data, rows = [], []
    for (shape, warps), group in cells.items():
        tried = [p for p in group if p.score]
        top = max(tried, key=lambda p: p.score) if tried else None
        value = 100 * top.score / best[shape] if top else None
        rule = any(p.is_rule for p in group)
        one = group[0]
        data.append({"N": words.count(one.cols), "warps": str(warps), "dtype": one.dtype, "value": value,
                     "text": f"{value:.0f}" if top else "", "percent of the best": f"{value:.1f}" if top else one.not_tried or "not tried",
                     "rows a block": str(top.rows_per_block) if top else "–", "chosen by the rule": "yes" if rule else "no",
                     "rule": rule, "cols": one.cols, "M": one.rows})
        rows.append([one.dtype, str(one.rows), str(one.cols), str(warps), str(top.rows_per_block) if top else "–",
                     f"{value:.1f}" if top else "not tried", words.gigabytes(top.score) if top and top.timed else "–", "yes" if rule else ""])
    data.sort(key=lambda d: (d["cols"], int(d["warps"])))
    rows.sort(key=lambda r: (r[0], int(r[2]), int(r[3])))
    timed = all(p.timed for p in plans)
    dtypes = [d for d in DTYPES if any(p.dtype == d for p in plans)]
    xs = list(dict.fromkeys(d["N"] for d in data))
    ys = sorted({d["warps"] for d in data}, key=int, reverse=True)
    regret = [p.regret for p in report.plans if p.is_best and p.regret is not None]
    chart = heat(data, "N", "warps", xs, ys, "N, columns of a row", "warps a block", 38 * len(ys) + 60, dtype=dtypes[0])
    return Figure("warps", "How many warps a block",
                  ("Percent of the best plan's speed, with the best number of rows a block for each cell. "
                   if timed else "Ranked by a model, not by times: percent of the best plan's bytes in flight. ")
                  + "The frame is what the rule of stage 04 chooses"
                  + (f"; following it costs at most {words.percent(max(regret))} against the best plan." if regret and timed else "."),
                  f"Heat map of speed over warps a block and columns, for N = {words.listed(xs)}.",
                  chart, ["dtype", "M", "N", "warps", "rows a block", "% of best", "GB/s", "rule"], rows, dtypes)


def occupancy(report):
    """Stage against N: the share of thread slots that are taken."""
    points = [p for p in report.points if p.occupancy is not None and p.lie in ("", "none") and p.status == "right"]
    if not points:
        return None
    points = full_rows(points) or points
    names = names_of(points)
    data = [{"N": words.count(p.cols), "series": p.name, "dtype": p.dtype, "value": 100 * p.occupancy, "text": f"{100 * p.occupancy:.0f}",
             "percent": f"{100 * p.occupancy:.1f}", "M": p.rows} for p in sorted(points, key=lambda p: p.cols)]
    xs = list(dict.fromkeys(d["N"] for d in data))
    return Figure("occupancy", "Occupancy",
                  "Percent of the thread slots of a multiprocessor that hold resident threads, by the occupancy model: a limit that "
                  "threads, shared memory and registers set, not a measurement of speed.",
                  f"Heat map of occupancy over stages and columns, for {words.listed(names)}.",
                  heat(data, "N", "series", xs, names, "N, columns of a row", None, 38 * len(names) + 60, dtype=dtypes_of(points)[0]),
                  ["stage", "dtype", "M", "N", "occupancy"],
                  [[p.name, p.dtype, str(p.rows), str(p.cols), words.percent(p.occupancy)] for p in points], dtypes_of(points))


# --- numeric error
def error(report):
    """One strip a stage, one point a shape: the largest error in units of the last place."""
    points = [p for p in report.points if p.max_ulp is not None and p.status == "right" and not p.is_copy and p.lie in ("", "none")]
    if not points:
        return None
    names = names_of(points)
    chosen = series_scale(points, THEMES["light"], "colour")
    data = [{"series": p.name, "dtype": p.dtype, "ulp": p.max_ulp, "shape": p.shape, "file": p.source.path} for p in points]
    y = alt.Y("series:N", sort=names, title=None, axis=names_axis(grid=True))
    x = alt.X("ulp:Q", title="largest error of a shape, in ulp of the stored type", scale=alt.Scale(domain=[0, max(0.6, 1.04 * max(p.max_ulp for p in points))], nice=False),
              axis=alt.Axis(tickCount=6, format="~g"))
    chart = data_chart().transform_filter("datum.dtype == dtype && indexof(hidden, datum.series) < 0")
    dots = chart.mark_point(size=70, filled=True, opacity=0.55).encode(
        x, y, tooltip=tips_of("series", "dtype", "shape", "ulp:Q:.4~g", "file"),
        color=alt.Color("series:N", scale=alt.Scale(domain=names, range=[chosen[n] for n in names]), legend=None))
    return Figure("error", "Numeric error",
                  "Against softmax in double precision, on the rows that were checked. Rounding alone costs up to 0.5 ulp; fp16 and "
                  "bf16 round so coarsely that the arithmetic in fp32 hides below it. Each point passed its own bound, which grows with "
                  "the range of the row (docs/numerics.md).",
                  f"Strip chart of the largest error in units of the last place for {words.listed(names)}.",
                  finish(dots, data, 34 * len(names) + 50, dtype=dtypes_of(points)[0]), ["series", "dtype", "M", "N", "largest error, ulp"],
                  [[p.name, p.dtype, str(p.rows), str(p.cols), words.significant(p.max_ulp, 6)] for p in points], dtypes_of(points))


# --- lies
def lie_chart(report):
    """Truth and lie of the same point, joined by a line."""
    pairs = [(t, l) for t, l in lies(report.points) if t and t.timed and l.timed and t.bytes_per_second and l.bytes_per_second]
    if not pairs:
        return None
    data = []
    for t, l in pairs:
        name = f"{l.name} {l.shape} {l.dtype}"
        data.append({"what": l.lie, "shape": name, "truth": t.bytes_per_second * 1e-9, "lie": l.bytes_per_second * 1e-9,
                     "factor": words.times(t.seconds / l.seconds), "high": max(t.bytes_per_second, l.bytes_per_second) * 1e-9})
    choices = [(s, s) for s in dict.fromkeys(d["shape"] for d in data)]
    chart = data_chart().transform_filter("datum.shape == shape")
    y = alt.Y("what:N", title=None, axis=alt.Axis(grid=False, ticks=False, domain=False))
    ends = [v for d in data for v in (d["truth"], d["lie"])]
    tens = [10.0**k for k in range(math.floor(math.log10(min(ends))), math.ceil(math.log10(max(ends))) + 1)]
    x = lambda f: alt.X(f"{f}:Q", title="GB/s (log scale)", scale=alt.Scale(type="log", domain=[tens[0], tens[-1]], nice=False),
                        axis=alt.Axis(values=tens, format="~s"))
    tips = tips_of("what:N::guard off", "shape", "truth:Q:.4~g", "lie:Q:.4~g", "factor")
    layers = [chart.mark_rule(strokeWidth=2, color=alt.ExprRef("muted")).encode(x=x("truth"), x2="lie:Q", y=y),
              chart.mark_point(size=110, filled=True, opacity=1, color=alt.ExprRef("ink")).encode(x=x("truth"), y=y, tooltip=tips),
              chart.mark_point(size=110, filled=False, strokeWidth=2.5, shape="diamond", opacity=1, color=alt.ExprRef("ink"),
                               fill=alt.ExprRef("paper")).encode(x=x("lie"), y=y, tooltip=tips),
              chart.mark_text(align="left", dx=12, fontSize=12, color=alt.ExprRef("ink")).encode(x=x("high"), y=y, text="factor:N")]
    height = 40 * len({d["what"] for d in data}) + 50
    return Figure("lies", "How benchmarks lie",
                  "The same kernel at the same shape with one guard of the clock switched off (diamond), beside the truth (dot).",
                  "Chart of measured gigabytes per second with one timing guard switched off, beside the true value.",
                  finish(alt.layer(*layers), data, height, shape=choices[0][0]),
                  ["guard off", "series and shape", "lie, GB/s", "truth, GB/s", "lie / truth"],
                  [[d["what"], d["shape"], words.significant(d["lie"]), words.significant(d["truth"]), d["factor"]] for d in data],
                  [], choices)


# --- themes and pictures
def config(theme):
    """Everything about looks that is the same in all charts."""
    c = THEMES[theme]
    axis = {"labelColor": c["muted"], "titleColor": c["muted"], "gridColor": c["grid"], "domainColor": c["muted"], "tickColor": c["muted"],
            "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 4}
    return {"background": None, "font": FONT, "view": {"stroke": None}, "axis": axis,
            "legend": {"labelColor": c["ink"], "titleColor": c["ink"], "labelFontSize": 12, "symbolSize": 120, "offset": 4},
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
        one.update(width=860, autosize="pad", padding=12, background="#ffffff",
                   title={"text": f"{figure.title}{', ' + dtype if dtype else ''}", "anchor": "start", "offset": 14})
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
