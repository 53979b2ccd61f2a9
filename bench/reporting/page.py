"""The page: one HTML file that holds its data, its charts and the JavaScript that draws them. It asks the network for nothing."""
from __future__ import annotations

import html as escaping
import json
import re
from pathlib import Path

from reporting import charts, summary, table, words
from reporting.model import (DTYPES, FEW_ROWS, LIES, comparisons, few_rows, file_name, geometric_mean, lies, mark_of, series_order, winners)

HERE = Path(__file__).resolve().parent
FACTS = {"device": "device", "architecture": "architecture", "backend": "backend", "driver": "driver", "toolkit": "toolkit",
         "clock_sm_mhz": "clock, MHz", "clock_memory_mhz": "memory clock, MHz", "peak_bytes_per_second": "peak by data sheet, GB/s",
         "l2_bytes": "L2 cache, MiB", "cache": "caches", "input": "input", "commit": "commit", "build_type": "build", "date": "date",
         "program": "program", "host_name": "host"}


def esc(value):
    return escaping.escape(str(value), quote=True)


def tag(name, content, **attributes):
    attrs = "".join(f' {k.rstrip("_").replace("_", "-")}="{esc(v)}"' for k, v in attributes.items() if v not in (None, ""))
    return f"<{name}{attrs}>{content}</{name}>"


def script_json(value):
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def plain_table(head, rows, caption, **attributes):
    """A table with scopes; the first cell of a row is its header."""
    heads = "".join(tag("th", esc(h), scope="col") for h in head)
    lines = "".join("<tr>" + tag("th", esc(r[0]), scope="row") + "".join(tag("td", esc(c)) for c in r[1:]) + "</tr>" for r in rows)
    inside = f"<caption>{esc(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody>"
    return scrolling(tag("table", inside, **attributes), caption)


def scrolling(content, name):
    return tag("div", content, class_="scroll", role="region", tabindex="0", aria_label=f"{name}, scrolls sideways")


def section(key, title, content):
    return f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{esc(title)}</h2>{content}</section>'


# --- charts
def figure_html(figure, report):
    selector = ""
    if figure.shapes:
        selector = (f'<label class="choice">Shape <select data-shape="{figure.key}">'
                    + "".join(tag("option", esc(label), value=value) for value, label in figure.shapes) + "</select></label>")
    buttons = "".join(f'<button type="button" data-save="{figure.key}" data-kind="{k}">{k.upper()}'
                      f'<span class="unseen"> of the chart {esc(figure.title)}</span></button>' for k in ("svg", "png"))
    legend = legend_html(report) if figure.legend else ""
    return section(figure.key, figure.title,
                   f'<p class="note">{esc(figure.note)}</p>'
                   f'<div class="tools">{selector}<span class="save" aria-label="Save the chart" role="group">{buttons}</span></div>{legend}'
                   f'<figure><div class="chart" id="chart-{figure.key}" role="img" aria-label="{esc(figure.alt)}"></div>'
                   f'<p class="absent" id="absent-{figure.key}" hidden></p></figure>'
                   f'<details><summary>The numbers of this chart</summary>{plain_table(figure.head, figure.rows, figure.title)}</details>')


def legend_html(report):
    """One switch a series, for the charts that tell series by colour, and one a machine where several are compared."""
    points = [p for p in report.timed]
    light = charts.series_scale(points, charts.THEMES["light"], "colour")
    dark = charts.series_scale(points, charts.THEMES["dark"], "colour")
    names = {p.series: p.name for p in sorted(points, key=lambda p: series_order(p.series))}
    items = "".join(f'<label style="--light:{light[n]};--dark:{dark[n]}"><input type="checkbox" checked data-series="{esc(s)}">'
                    f'<span class="swatch" aria-hidden="true"></span>{esc(s)}</label>' for s, n in names.items())
    made = f'<fieldset class="legend"><legend>Series</legend>{items}</fieldset>'
    labels = charts.labels_of(points)
    if len(labels) < 2:
        return made
    items = "".join(f'<label><input type="checkbox" checked data-label="{esc(label)}"><svg class="dash" aria-hidden="true" viewBox="0 0 34 4">'
                    f'<path d="M0 2H34" stroke-dasharray="{" ".join(map(str, charts.DASHES[i % len(charts.DASHES)]))}"/></svg>{esc(label)}</label>'
                    for i, label in enumerate(labels))
    return made + f'<fieldset class="legend"><legend>Measured by</legend>{items}</fieldset>'


# --- tables
def few_html(report):
    points = [p for p in few_rows(report.points) if p.lie == "" and not p.source.simulated and not table.counted_only(p)]
    if not any(p.timed and not p.is_copy for p in points):
        return ""
    won = winners(report.points)
    names = charts.names_of(points)
    at = {(p.dtype, p.cols, p.rows, p.name): p for p in points}
    shapes = sorted({(p.dtype, p.cols, p.rows) for p in points})
    rows = [[f"{d} {m}×{n}", *(table.time_cell(at.get((d, n, m, s)), won).replace("~", " ≈").replace("*", " ★") for s in names)]
            for d, n, m in shapes]
    note = (f'<p class="note">At most {FEW_ROWS} rows, as when a model decodes: too little work to fill the GPU, so the time counts. '
            "Microseconds, and how many times the time of the copy. ★ is the fastest stage; ≈ marks stages that noise does not tell apart.</p>")
    return section("few", "Few rows", note + plain_table(["M×N", *names], rows, "Microseconds and times the copy's time"))


def comparison_html(report):
    pairs = comparisons(report)
    if not pairs:
        return ""
    groups = {}
    for a, b, ratio, sure in pairs:
        groups.setdefault((series_order(b.series), b.series, b.dtype, b.source.label), []).append((ratio, sure))
    rows = [[s, d, label, words.times(geometric_mean(r for r, _ in g)), len(g), sum(r > 1 and sure for r, sure in g),
             sum(r < 1 and sure for r, sure in g), sum(not sure for _, sure in g)] for (_, s, d, label), g in groups.items()]
    each = [[b.series, b.dtype, b.rows, b.cols, words.microseconds(a.seconds), words.microseconds(b.seconds), b.source.label, words.times(r),
             "within noise" if not sure else "faster" if r > 1 else "slower"] for a, b, r, sure in pairs]
    first = pairs[0][0].source.label
    return section("comparison", "Machines and commits",
                   f'<p class="note">Against {esc(first)}: geometric mean of the speed-up over all shapes that both measured. A difference '
                   "counts as faster or slower only if it is larger than the spread of both.</p>"
                   + plain_table(["series", "dtype", "measured by", "speed-up", "shapes", "faster", "slower", "within noise"], rows, "Speed-up by series")
                   + "<details><summary>Shape by shape</summary>" + plain_table(
                       ["series", "dtype", "M", "N", f"µs, {first}", "µs", "measured by", "speed-up", "verdict"], each, "Speed-up by shape") + "</details>")


def lies_html(report):
    """What each switched-off guard does; the chart of the lies comes with the other charts."""
    kinds = list(dict.fromkeys(l.lie for _, l in lies(report.points)))
    return "<dl>" + "".join(f"<dt>{esc(k)}</dt><dd>{esc(LIES.get(k, 'a guard that this report does not know'))}</dd>" for k in kinds) + "</dl>"


def full_columns(report):
    """(heading, text of a point, value to sort by) of the full table; a column without any value is left out."""
    won = winners(report.points)
    per = lambda p, v: None if v is None or not p.elements_bytes else v / p.elements_bytes
    number = lambda get, say: (lambda p: say(get(p)) if get(p) is not None else "", get)
    text = lambda get: (get, get)
    fastest = lambda p: {"*": "★", "~": "≈", "": ""}[mark_of(p, won)]
    columns = [
        ("series", text(lambda p: p.name)), ("dtype", text(lambda p: p.dtype)), ("M", number(lambda p: p.rows, str)),
        ("N", number(lambda p: p.cols, str)), ("lie", text(lambda p: p.lie)),
        ("µs", number(lambda p: p.seconds, words.microseconds)), ("spread", number(lambda p: p.spread, words.percent)),
        ("GB/s", number(lambda p: p.bytes_per_second, words.gigabytes)), ("of copy", number(lambda p: p.of_copy, words.fraction)),
        ("of peak", number(lambda p: p.of_peak, words.fraction)), ("fastest", text(fastest)),
        ("model, MN", number(lambda p: per(p, p.model_bytes), words.significant)),
        ("requested, MN", number(lambda p: per(p, p.requested_bytes), words.significant)),
        ("sectors, MN", number(lambda p: per(p, p.sector_bytes), words.significant)),
        ("DRAM, MN", number(lambda p: per(p, p.dram_bytes), words.significant)),
        ("launches", number(lambda p: p.launches, lambda v: f"{v:.0f}")), ("barriers", number(lambda p: p.barriers, lambda v: f"{v:.0f}")),
        ("occupancy", number(lambda p: p.occupancy, words.percent)),
        ("max ulp", number(lambda p: p.max_ulp, lambda v: words.significant(v, 6))), ("samples", number(lambda p: p.samples, lambda v: f"{v:.0f}")),
        ("status", text(lambda p: words.cell_word(p) if p.status != "right" else "right")), ("flags", text(lambda p: ", ".join(p.flags))),
        *([("file", text(lambda p: file_name(p.source.path)))] if len(report.sources) > 1 else []),
        ("note", text(lambda p: ": ".join(filter(None, [p.message, p.label])))),
    ]
    return [(head, say, value) for head, (say, value) in columns if any(value(p) not in (None, "") for p in report.points)]


def full_html(report):
    columns = full_columns(report)
    heads = "".join(f'<th scope="col" aria-sort="none"><button type="button" data-sort="{i}">{esc(h)}<span aria-hidden="true"></span></button></th>'
                    for i, (h, _, _) in enumerate(columns))
    lines = []
    for p in report.points:
        cells = []
        for i, (_, say, value) in enumerate(columns):
            v = value(p)
            sort = f' data-v="{v!r}"' if isinstance(v, (int, float)) else ""
            cells.append(f'<th scope="row">{esc(say(p))}</th>' if i == 0 else f"<td{sort}>{esc(say(p))}</td>")
        lines.append(f'<tr{"" if p.status == "right" else " class=odd"}>{"".join(cells)}</tr>')
    count = words.several(len(lines), "row")
    return section("table", "All numbers",
                   '<p class="note">MN: in units of the matrix. ★ is the fastest stage of its shape, ≈ one of several that noise does not tell apart. '
                   "A heading sorts; a word filters.</p>"
                   '<div class="tools"><label class="choice">Filter <input type="search" id="filter" autocomplete="off" placeholder="stage-02 bf16"></label>'
                   f'<button type="button" id="download">Download CSV</button><output id="count" aria-live="polite">{count}</output></div>'
                   + scrolling(f'<table id="full"><caption class="unseen">All numbers</caption><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>',
                               "All numbers"))


def problems_html(report):
    """What has no number, and what has one with a flag, each kind once."""
    items = []
    for points in table.by_message(report):
        one = points[0]
        shapes = words.listed([f"{p.shape} {p.dtype}" for p in points[:3]] + ([f"{len(points) - 3} more"] if len(points) > 3 else []))
        items.append(f"<li><strong>{esc(one.name)}: {esc(words.cell_word(one))}</strong> at {esc(shapes)}. {esc(one.message)}</li>")
    for line in table.doubts(report)[1:-1]:
        items.append(f"<li>{esc(line.strip())}</li>")
    return section("doubts", "Missing, failed, flagged", f"<ul>{''.join(items)}</ul>") if items else ""


def fact(key, value):
    if value in (None, ""):
        return "–"
    if key == "peak_bytes_per_second":
        return words.gigabytes(value) if isinstance(value, (int, float)) else value
    if key == "l2_bytes" and isinstance(value, (int, float)):
        return words.significant(value / (1 << 20))
    return f"{value:g}" if isinstance(value, float) else value


def environment_html(report):
    keys = [k for k in FACTS if any(s.facts.get(k) not in (None, "") for s in report.sources)]
    files = [file_name(s.path) + (f" ({s.label})" if s.label else "") for s in report.sources]
    rows = [["kind", *(s.kind for s in report.sources)], *([FACTS[k], *(fact(k, s.facts.get(k)) for s in report.sources)] for k in keys)]
    return section("environment", "Where the numbers come from",
                   '<p class="note">Clocks are as they were at the end of the run. – means that the file does not say.</p>'
                   + plain_table(["file", *files], rows, "Environment of each file"))


def html(report, figures):
    """The whole page as text."""
    payload = {"figures": [{"key": f.key, "spec": charts.spec(f), "dtypes": f.dtypes, "shapes": shapes_of(f), "legend": f.legend} for f in figures],
               "names": names_json(report), "swap": charts.swap_colours(), "config": {t: charts.config(t) for t in charts.THEMES}, "csv": table.as_csv(report)}
    dtypes = list(dict.fromkeys(d for f in figures for d in f.dtypes))
    dtypes.sort(key=DTYPES.index)
    parts = []
    for f in figures:
        part = figure_html(f, report)
        parts.append(part.replace("<figure>", lies_html(report) + "<figure>", 1) if f.key == "lies" else part)
        if f.key == "speed":
            parts += [comparison_html(report), few_html(report)]
    if not any(f.key == "speed" for f in figures):
        parts.append(few_html(report))
    parts += [problems_html(report), full_html(report), environment_html(report)]
    body = "".join(parts)
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in titles(parts))
    devices = words.listed(dict.fromkeys(str(s.facts["device"]) + (" (simulated)" if s.simulated else "")
                                         for s in report.sources if s.facts.get("device"))) or "no device named"
    return TEMPLATE.format(
        devices=esc(devices), css=colours_css() + (HERE / "page.css").read_text(encoding="utf-8"),
        banner=f'<p class="banner" role="note"><strong>No times.</strong> {esc(table.NO_TIMES.split(": ", 1)[1].capitalize())}</p>' if report.simulated_only else "",
        summary=" ".join(esc(s) for s in summary.sentences(report)).replace("N = ", "N\u00a0=\u00a0"), links=links, dtypes=dtype_html(dtypes), body=body,
        files=words.several(len(report.sources), "file"), vega=charts.javascript(), data=script_json(payload),
        js=(HERE / "page.js").read_text(encoding="utf-8"))


def names_json(report):
    """name -> its series and its machine, for the switches."""
    return {p.name: [p.series, p.source.label] for p in report.points}


def shapes_of(figure):
    """Selector entries with the types that have them."""
    if not figure.shapes:
        return []
    head = {h: i for i, h in enumerate(figure.head)}
    if "M" not in head:
        return [{"value": v, "label": l, "dtypes": []} for v, l in figure.shapes]
    have = {}
    for r in figure.rows:
        have.setdefault(charts.shape_value(r[head["M"]], r[head["N"]]), set()).add(r[head["dtype"]])
    return [{"value": v, "label": l, "dtypes": sorted(have.get(v, ()))} for v, l in figure.shapes]


def titles(parts):
    """(id, heading as HTML) of each section."""
    return re.findall(r'<h2 id="(\w+)-title">(.*?)</h2>', "".join(parts))


def dtype_html(dtypes):
    if len(dtypes) < 2:
        return ""
    items = "".join(f'<label><input type="radio" name="dtype" value="{d}"{" checked" if i == 0 else ""}><span>{d}</span></label>'
                    for i, d in enumerate(dtypes))
    return f'<fieldset class="dtypes"><legend>Type in all charts</legend>{items}</fieldset>'


def colours_css():
    """The palette as custom properties, for the system's choice and for the reader's."""
    rule = lambda theme: "".join(f"--{k}:{charts.THEMES[theme][k]};" for k in ("paper", "ink", "muted", "grid")) + f"--link:{charts.THEMES[theme]['stages'][2]};color-scheme:{theme};"
    return (f":root{{{rule('light')}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{rule('dark')}}}}}"
            f":root[data-theme=dark]{{{rule('dark')}}}")


TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Softmax side by side: {devices}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the numbers</a>
<header>
<div><p class="over">Softmax Workbook</p><h1>Softmax, side by side</h1><p class="where">{devices}; {files}</p></div>
<button type="button" id="theme" hidden>Theme: <span>system</span></button>
</header>
<main id="main" tabindex="-1">
{banner}
<section id="summary" aria-label="Summary"><p class="lead">{summary}</p></section>
<nav aria-label="Contents"><ul>{links}</ul></nav>
<noscript><p class="banner">The charts need JavaScript, which this browser does not run. Every chart's numbers are in the table below it.</p></noscript>
{dtypes}
{body}
</main>
<footer><p>Bandwidth counts 2MN bytes for each call, one read and one write of the matrix, over the median time. Written by bench/report.py.</p></footer>
<script>{vega}</script>
<script type="application/json" id="data">{data}</script>
<script>{js}</script>
</body>
</html>
"""
