"""The page: one HTML file that holds its data, its charts and the JavaScript that draws them. It asks the network for
nothing. page.html is the template, page.css and page.js stand inside it."""
from __future__ import annotations

import json
from pathlib import Path

import jinja2

from reporting import charts, summary, table, words
from reporting.model import (DTYPES, FEW_ROWS, LIES, comparisons, file_name, geometric_mean, lies, mark_of,
                             series_order, winners)

HERE = Path(__file__).resolve().parent
FACTS = {"device": "device", "architecture": "architecture", "backend": "backend", "driver": "driver",
         "toolkit": "toolkit", "clock_sm_mhz": "clock, MHz", "clock_memory_mhz": "memory clock, MHz",
         "peak_bytes_per_second": "peak by data sheet, GB/s", "l2_bytes": "L2 cache, MiB", "cache": "caches",
         "commit": "commit", "build_type": "build", "date": "date", "program": "program",
         "host_name": "host", "input": "input"}
NOTHING = "–"
MARKS = {"*": "★", "~": "≈", "": ""}


def html(report, figures):
    """The whole page as text."""
    by_key = {f.key: f for f in figures}
    parts = {"glance": glance(report), "comparison": comparison(report), "few": few(report), "doubts": doubts(report),
             "table": full(report) if report.points else None, "environment": environment(report)}
    environ = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
    return environ.get_template("page.html").render(
        css=colours_css() + (HERE / "page.css").read_text(encoding="utf-8"),
        js=(HERE / "page.js").read_text(encoding="utf-8"), vega=charts.javascript(), data=data_json(report, figures),
        devices=devices(report), files=words.several(len(report.sources), "file"),
        simulated_only=report.simulated_only, no_times=table.NO_TIMES,
        summary=" ".join(summary.sentences(report)).replace("N = ", "N\u00a0=\u00a0"),
        sections=sections(by_key, parts), figures=by_key, switches=switches(report), guards=guards(report),
        dtypes=[d for d in DTYPES if any(d in f.dtypes for f in figures)], comparison=parts["comparison"],
        few=parts["few"], glance=parts["glance"], doubts=parts["doubts"], full=parts["table"],
        environment=parts["environment"])


def sections(figures, parts):
    """key -> heading, in the order of the page, of what there is."""
    order = {"speed": None, "glance": "Fastest stage, best peer", "comparison": "Machines and commits",
             "few": "Few rows", "steps": None, "bytes": None, "dram": None, "warps": None, "occupancy": None,
             "error": None, "lies": None, "doubts": "Missing, failed, flagged", "table": "All numbers",
             "environment": "Where the numbers come from"}
    return {key: title or figures[key].title for key, title in order.items() if key in figures or parts.get(key)}


def devices(report):
    names = [str(s.facts["device"]) + (" (simulated)" if s.simulated else "")
             for s in report.sources if s.facts.get("device")]
    return words.listed(dict.fromkeys(names)) or "no device named"


# --- what the script needs
def data_json(report, figures):
    """JSON that cannot end the script element it stands in."""
    data = {"figures": [{"key": f.key, "spec": charts.spec(f), "dtypes": f.dtypes, "shapes": shapes_of(f),
                         "legend": f.legend} for f in figures],
            "names": {p.name: [p.series, p.source.label] for p in report.points},
            "swap": charts.swap_colours(), "config": {t: charts.config(t) for t in charts.THEMES},
            "csv": table.as_csv(report)}
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def shapes_of(figure):
    """Entries of the selector of shapes, each with the types that were measured at it."""
    at = {h: i for i, h in enumerate(figure.head)}
    have = {}
    for row in figure.rows if "M" in at else []:
        have.setdefault(charts.shape_value(row[at["M"]], row[at["N"]]), set()).add(row[at["dtype"]])
    return [{"value": value, "label": label, "dtypes": sorted(have.get(value, ()))} for value, label in figure.shapes]


def colours_css():
    """The palette as custom properties, for the system's choice and for the reader's."""
    def rule(theme):
        colours = charts.THEMES[theme]
        named = {k: colours[k] for k in ("paper", "ink", "muted", "grid")}
        named.update(link=colours["steps"][0], ahead=colours["steps"][0], behind=colours["steps"][2])
        return "".join(f"--{k}:{v};" for k, v in named.items()) + f"color-scheme:{theme};"
    return (f":root{{{rule('light')}}}\n"
            f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{rule('dark')}}}}}\n"
            f":root[data-theme=dark]{{{rule('dark')}}}\n")


def switches(report):
    """One for each series, for the charts that tell series by colour, and one for each machine that is compared."""
    points = report.timed
    light, dark = (charts.series_scale(points, charts.THEMES[t], "colour") for t in ("light", "dark"))
    names = {p.series: p.name for p in sorted(points, key=lambda p: series_order(p.series))}
    dash = lambda i: " ".join(map(str, charts.DASHES[i % len(charts.DASHES)]))
    dashes = charts.dash_of(points) if len(charts.labels_of(points)) < 2 else {}
    kind = lambda s: "Stages" if s.startswith("stage-") else "Roof" if s == "copy" else "Peers"
    series = [{"name": s, "light": light[n], "dark": dark[n], "kind": kind(s),
               "dash": " ".join(map(str, dashes.get(n, [1, 0])))} for s, n in names.items()]
    groups = {k: [s for s in series if s["kind"] == k] for k in ("Stages", "Peers", "Roof")}
    return {"series": [(k, group) for k, group in groups.items() if group],
            "labels": [{"name": label, "dash": dash(i)} for i, label in enumerate(charts.labels_of(points))]}


# --- tables
def glance(report):
    """Who is fastest, at each width."""
    rows = table.glance(report)
    series = {p.series for p in report.timed if p.counts and not p.is_copy}
    if len({(r["dtype"], r["cols"]) for r in rows}) < 2 or len(series) < 2:
        return None
    several = len({r["label"] for r in rows}) > 1
    labels = list(dict.fromkeys(r["label"] for r in rows))
    rows.sort(key=lambda r: (DTYPES.index(r["dtype"]), r["cols"], labels.index(r["label"])))
    share = lambda v: {"text": words.fraction(v) if v is not None else "–", "bar": None if v is None else min(1, v)}
    return {"caption": "Fastest stage and best peer at each width", "several": several,
            "peers": any(r["peer"] != "–" for r in rows),
            "rows": [{**r, "of_copy": share(r["of_copy"]), "peer_of_copy": share(r["peer_of_copy"])} for r in rows]}


def few(report):
    """Few rows: a line a shape, type and machine; the copy, the best stage, the best peer, then each stage."""
    points = [p for p in report.points if p.few and p.lie == "" and not p.source.simulated
              and not table.counted_only(p)]
    if not any(p.timed and not p.is_copy for p in points):
        return None
    won = winners(report.points)
    at = {(p.source.label, p.dtype, p.cols, p.rows, p.series): p for p in points}
    labels = charts.labels_of(points)
    told = {key[1:4] for key, p in at.items() if p.timed and not p.is_copy}
    shapes = sorted({key[:4] for key in at if key[1:4] in told},
                    key=lambda s: (DTYPES.index(s[1]), *s[2:], labels.index(s[0])))
    names = sorted({p.series for p in points if p.is_stage}, key=series_order)
    rows = []
    for label, dtype, cols, m in shapes:
        group = won.get((label, dtype, m, cols))
        best, peer, ratio, sure = table.duel(group, points) if group else (None, None, None, False)
        against, word = table.stands(ratio, sure)
        get = lambda name: at.get((label, dtype, cols, m, name))
        rows.append({"label": label, "dtype": dtype, "shape": f"{m}×{cols}", "roof": few_cell(get("copy")),
                     "best": {**few_cell(best), "name": table.tied(group)} if group else few_cell(None),
                     "peer": {**few_cell(peer), "name": peer.series} if peer else few_cell(None),
                     "against": against, "word": word,
                     "stages": [{**few_cell(get(n)), "won": bool(group) and get(n) in group} for n in names]})
    return {"most": FEW_ROWS, "caption": "Microseconds, and times the copy's time", "names": names, "rows": rows,
            "several": len(labels) > 1, "peers": any(r["peer"]["time"] != "–" for r in rows)}


def few_cell(point):
    """µs, and how many times the copy's time; or why there is none."""
    if point is None or not point.timed:
        return {"time": words.cell_word(point) if point else "–", "factor": "", "odd": True}
    factor = f"×{words.digits(1 / point.of_copy)}" if point.of_copy and not point.is_copy else ""
    word = next((f for f in ("cache", "warm") if f in point.flags), "")
    return {"time": words.significant(point.seconds * 1e6), "factor": " ".join(filter(None, (factor, word)))}


def comparison(report):
    """The first machine or commit against the others, by series and by shape."""
    pairs = comparisons(report)
    if not pairs:
        return None
    groups = {}
    for _, b, ratio, sure in pairs:
        groups.setdefault((b.series, b.dtype, b.source.label), []).append((ratio, sure))
    several = len({label for _, _, label in groups}) > 1  # else the caption says it
    rows = [[series, dtype, *([label] if several else []), words.times(geometric_mean(r for r, _ in g)), len(g),
             sum(r > 1 and sure for r, sure in g), sum(r < 1 and sure for r, sure in g),
             sum(not sure for _, sure in g)] for (series, dtype, label), g in groups.items()]
    first = words.machine(pairs[0][0].source.label)
    other = "" if several else f" of {words.machine(pairs[0][1].source.label)}"
    each = [[b.series, b.dtype, b.source.label, b.rows, b.cols, words.microseconds(a.seconds),
             words.microseconds(b.seconds), words.times(ratio), verdict(ratio, sure)] for a, b, ratio, sure in pairs]
    return {"first": first,
            "by_series": {"caption": f"Speed-up{other} by series", "rows": rows,
                          "head": ["series", "dtype", *(["measured by"] if several else []), "speed-up", "shapes",
                                   "faster", "slower", "within noise"]},
            "by_shape": {"caption": "Speed-up by shape", "rows": each,
                         "head": ["series", "dtype", "measured by", "M", "N", f"µs, {first}", "µs", "speed-up",
                                  "verdict"]}}


def verdict(ratio, sure):
    return "within noise" if not sure else "faster" if ratio > 1 else "slower"


def guards(report):
    """(lie, what it does) of those that were measured."""
    kinds = dict.fromkeys(lie.lie for _, lie in lies(report.points))
    return [(k, LIES.get(k, "a guard that this report does not know")) for k in kinds]


def columns(report):
    """(heading, text of a point, value of a point to sort by) of the full table; empty columns are left out."""
    won = winners(report.points)
    def number(head, field, say=lambda v: f"{v:.0f}"):
        get = lambda p: getattr(p, field)
        return head, lambda p: "" if get(p) is None else say(get(p)), get
    def matrices(head, field):
        get = lambda p: getattr(p, field) / p.elements_bytes if getattr(p, field) and p.elements_bytes else None
        return head, lambda p: "" if get(p) is None else words.significant(get(p)), get
    text = lambda head, get: (head, get, get)
    made = [
        text("series", lambda p: p.name), text("dtype", lambda p: p.dtype), number("M", "rows"), number("N", "cols"),
        text("lie", lambda p: p.lie), number("µs", "seconds", words.microseconds),
        number("spread", "spread", words.percent), number("GB/s", "bytes_per_second", words.gigabytes),
        number("of copy", "of_copy", words.fraction), number("of peak", "of_peak", words.fraction),
        text("fastest", lambda p: MARKS[mark_of(p, won)]), matrices("model, MN", "model_bytes"),
        matrices("requested, MN", "requested_bytes"), matrices("sectors, MN", "sector_bytes"),
        matrices("DRAM, MN", "dram_bytes"), number("launches", "launches"), number("barriers", "barriers"),
        number("occupancy", "occupancy", words.percent),
        number("max ulp", "max_ulp", lambda v: words.significant(v, 6)), number("samples", "samples"),
        text("status", words.status), text("flags", lambda p: ", ".join(p.flags)),
        text("file", lambda p: file_name(p.source.path) if len(report.sources) > 1 else ""),
        text("note", lambda p: ": ".join(filter(None, [p.message, p.label]))),
    ]
    return [c for c in made if any(c[2](p) not in (None, "") for p in report.points)]


def full(report):
    """Every point."""
    chosen = columns(report)
    rows = [{"odd": p.status != "right", "cells": [(say(p), value(p)) for _, say, value in chosen]}
            for p in report.points]
    return {"head": [head for head, _, _ in chosen], "rows": rows, "count": words.several(len(rows), "row")}


def doubts(report):
    """What has no number, and what has one with a flag, each kind once."""
    made = [{"what": f"{group[0].series}: {words.status(group[0])}", "why": words.sentence(group[0].message),
             "where": f"at {words.first_few(table.shapes_of(group))}"} for group in table.by_message(report)]
    return made + [{"what": f"{f}:", "where": where, "why": why} for f, where, why in table.doubtful(report)]


def environment(report):
    """What all files say alike, once; and a line a file for the rest."""
    said = lambda k: {fact(k, s.facts.get(k)) for s in report.sources} - {NOTHING}
    alike = [k for k in FACTS if len(said(k)) == 1]
    rest = [k for k in FACTS if len(said(k)) > 1]
    value = lambda k: next(iter(said(k)))
    files = [[file_name(s.path) + (f" ({s.label})" if s.label else ""), s.kind,
              *(fact(k, s.facts.get(k)) for k in rest)] for s in report.sources]
    return {"alike": {"caption": "The same in all files that say it" if len(report.sources) > 1 else "The file",
                      "head": ["", ""], "rows": [[FACTS[k], value(k)] for k in alike]},
            "files": {"caption": "File by file", "head": ["file", "kind", *(FACTS[k] for k in rest)], "rows": files}}


def fact(key, value):
    """A fact as it stands in the table of environments."""
    if value in (None, ""):
        return NOTHING
    if key == "date":
        return str(value)[:16].replace("T", " ")
    if not isinstance(value, (int, float)):
        return str(value)
    if key == "peak_bytes_per_second":
        return words.gigabytes(value)
    return words.significant(value / (1 << 20)) if key == "l2_bytes" else f"{value:g}"
