"""Two sentences that say what the numbers say, computed from them."""
from __future__ import annotations

from reporting import words
from reporting.model import DTYPES, comparisons, compare, full_rows, geometric_mean, lies, winners


def sentences(report):
    """At most two."""
    points = [p for p in full_rows(report.timed) if p.counts and p.is_stage]
    if not points:
        return counted(report)
    dtype = next(d for d in DTYPES if any(p.dtype == d for p in points))
    label = points[0].source.label
    points = [p for p in points if p.dtype == dtype and p.source.label == label]
    return [reach(points, dtype), second(report, points) + leftovers(report) + "."]


def reach(points, dtype):
    """How near the copy the fastest stage comes."""
    best = [group for group in winners(points).values()]
    tops = [max(group, key=lambda p: p.bytes_per_second) for group in best]
    top = max(tops, key=lambda p: p.bytes_per_second)
    tied = [p.series for p in next(g for g in best if top in g)]
    who = f"{words.listed(tied)} at N = {top.cols}" + (", within noise" if len(tied) > 1 else "")
    facts = top.source.facts
    where = f"On {facts.get('device', 'an unnamed device')}, {dtype}, {facts.get('cache', 'unknown')} caches"
    fractions = [p.of_copy for p in tops if p.of_copy is not None]
    speed = f"{words.gigabytes(top.bytes_per_second)} GB/s at most ({who})"
    if not fractions:
        return f"{where}: the fastest stage reaches {speed}."
    low, high = words.fraction(min(fractions)), words.fraction(max(fractions))
    span = f"{low} to {high}" if low != high else low
    widths = sorted(p.cols for p in tops)
    over = f"N from {widths[0]} to {widths[-1]}" if len(widths) > 1 else f"N = {widths[0]}"
    return f"{where}: the fastest stage reaches {span} of the best copy kernel's bandwidth for {over}, {speed}."


def second(report, points):
    """Two machines if there are two, else the way from the first stage to the fastest."""
    pairs = [(b, ratio, sure) for a, b, ratio, sure in comparisons(report) if b.is_stage]
    if pairs:
        other = pairs[0][0].source.label
        some = [(r, s) for b, r, s in pairs if b.source.label == other]
        first = next(s.label for s in report.sources if s.label)
        factor = words.significant(geometric_mean(r for r, _ in some))
        return (f"Against {words.machine(first)}, {words.machine(other)} is {factor} times as fast (geometric mean "
                f"over {words.several(len(some), 'point')}, {sum(s for _, s in some)} of them beyond the noise)")
    widths = {}
    for p in points:
        widths.setdefault(p.cols, []).append(p)
    cols = max(widths, key=lambda n: (len(widths[n]), -abs(n - 1024)))
    group = widths[cols]
    first, best = group[0], min(group, key=lambda p: p.seconds)
    if first is best:
        return f"No stage was faster than {first.series} at N = {cols}"
    factor = words.significant(first.seconds / best.seconds)
    said = f"At N = {cols}, {best.series} is {factor} times as fast as {first.series}"
    peers = [p for p in report.timed if p.counts and not p.is_stage and not p.is_copy
             and (p.dtype, p.rows, p.cols) == (best.dtype, best.rows, best.cols)]
    if peers:
        peer = min(peers, key=lambda p: p.seconds)
        ratio, sure = compare(peer, best)
        said += (f" and {words.significant(ratio)} times as fast as the best peer, {peer.series}" if sure
                 else f", and noise does not tell it from the best peer, {peer.series}")
    return said


def leftovers(report):
    """What has no number, and what has one that must not be believed."""
    without = sum(p.status not in ("right", "too wide") for p in report.points)
    above = sum("cache" in p.flags and p.lie in ("", "none") for p in report.points)
    parts = []
    if without:
        have = "has" if without == 1 else "have"
        parts.append(f"{words.several(without, 'point')} {have} no time (skipped or failed)")
    if above:
        parts.append(f"{words.several(above, 'point')} above the copy {'is' if above == 1 else 'are'} flagged as cache")
    return "; " + " and ".join(parts) if parts else ""


def counted(report):
    """Without a time of any stage: what was counted."""
    points = [p for p in report.points if p.is_stage and p.requested_bytes and p.elements_bytes and p.status == "right"]
    told = [truth.seconds / lie.seconds for truth, lie in lies(report.points) if truth and truth.timed and lie.timed]
    if not points and told:
        return [f"With one guard of the clock switched off, a kernel appears {words.significant(min(told))} to "
                f"{words.significant(max(told))} times as fast as it is."]
    if not points:
        return [f"No stage has a time here: {words.several(len(report.points), 'point')} and "
                f"{words.several(len(report.plans), 'plan')} of the tuner from "
                f"{words.several(len(report.sources), 'file')}."]
    per = lambda p: p.requested_bytes / p.elements_bytes
    most, least = max(points, key=per), min(points, key=per)
    held = [p for p in points if p.model_bytes]
    equal = sum(p.model_bytes == p.requested_bytes for p in held)
    return [f"The threads of {most.series} ask for {words.significant(per(most))} times the bytes of the matrix and "
            f"those of {least.series} for {words.significant(per(least))}; no softmax gets below 2.",
            f"Requested bytes equal the model at {equal} of {words.several(len(held), 'point')}{leftovers(report)}."]
