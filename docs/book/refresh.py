#!/usr/bin/env python3
"""Writes what is generated and still committed, so that the chapters read well without the book: the drawings in
docs/figures/, and in each chapter the diff of its kernel, the simulator's profile, and what bytes predict.

    docs/book/refresh.py            rewrite them; the profile needs the stages in build/bin
    docs/book/refresh.py --check    change nothing; exit code 1 if something is stale

In a chapter, `<!-- diff -->`, `<!-- profile --rows 64 --cols 1024 -->` and `<!-- prediction 8192 00 01 -->` open such a part
and `<!-- end -->` closes it. What follows the word profile are options of the stage's program; a prediction is held against
what was measured at a width, for some stages.
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import figures  # noqa: E402
from stages import ROOT, elements, fractions, stages, tables  # noqa: E402

FIGURES = ROOT / "docs" / "figures"
LEAST_SHARE = 0.1  # of a launch's cost, for a line to be shown


def diff(stage):
    return "```diff\n" + "\n".join(stage.diff()) + "\n```"


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"refresh: {Path(program).name} {' '.join(arguments)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def source_line(entry, width):
    """The line itself from the source tree, so that no stale text is quoted."""
    text = (ROOT / entry["file"]).read_text().splitlines()[entry["line"] - 1].split("//")[0].strip().replace("|", "\\|")
    return f"`{text if len(text) <= width else text[:width - 1] + '…'}`"


def traffic(entry):
    """(what, requests, bytes, sectors a request) of a line."""
    for key, name in (("global_load", "load"), ("global_store", "store"), ("shared_load", "shared load"), ("shared_store", "shared store")):
        g = entry[key]
        if g["requests"]:
            yield name, f"{g['requests']}", f"{g['bytes']}", f"{g['sectors'] / g['requests']:.2f}" if "sectors" in g else "–"


def profile(stage, arguments, bin_folder):
    found = json.loads(run(bin_folder / f"stage-{stage.number}", "--device", "sim", "--profile=json", *arguments))["runs"][0]
    rows, remarks, several = [], {}, len(found["launches"]) > 1
    for launch in found["launches"]:
        whole = sum(e["cost"] for e in launch["lines"])
        for entry in sorted(launch["lines"], key=lambda e: (-e["cost"], e["file"], e["line"])):
            if entry["cost"] < LEAST_SHARE * whole:
                break
            where = f"{entry['file'].split('/')[-1]}:{entry['line']}"
            for numbers in traffic(entry):
                row = [*([f"`{launch['kernel']}`"] if several else []), where, source_line(entry, 24 if several else 42), *numbers]
                if row not in rows:
                    rows.append(row)
            if entry["advice_text"]:
                remarks.setdefault(entry["advice_text"], []).append(where)
    head = [*(["kernel"] if several else []), "line", "source", "what", "requests", "bytes", "sectors a request"]
    launch = found["launches"][0]
    facts = (f"{found['rows']} rows of {found['cols']} columns, {found['dtype']}: {launch['grid']} blocks of {launch['block']} threads, "
             f"of which a multiprocessor of the H200 holds {launch['occupancy']['blocks']} at once. Lines with a tenth or more of a kernel's traffic:")
    text = f"{facts}\n\n{tables.table(head, rows)}"
    if remarks:
        text += "\n\nThe simulator remarks:\n\n" + "\n".join(f"- {', '.join(sorted(set(where)))}: {said}." for said, where in remarks.items())
    return text


def prediction(cols, numbers):
    """Speed by bytes alone, as a fraction of a copy, beside the measured one."""
    rows, first, first_moved = [], None, None
    for stage in (s for s in stages() if s.number in numbers):
        moved = elements(stage.together.reads) + elements(stage.together.writes)
        fraction = dict(fractions(stage))[cols]
        first, first_moved = first or fraction, first_moved or moved
        rows.append([stage.number, f"{stage.together.reads}, {stage.together.writes}", f"{moved:g} MN", f"{2 / moved:.2f}", f"{fraction:.2f}",
                     f"{first_moved / moved:.1f} ×", f"{fraction / first:.1f} ×"])
    head = ["stage", "reads, writes", "together", "speed by bytes", f"measured, N = {cols}", f"against {numbers[0]} by bytes", f"against {numbers[0]} measured"]
    return tables.table(head, rows) + "\n\nSpeed as a fraction of the best copy, which moves 2 MN; fp32, H200."


MARK = re.compile(r"(<!-- (diff|profile|prediction)( [^>]*?)? -->\n).*?(<!-- end -->)", re.S)


def refreshed(stage, bin_folder):
    """The chapter with its generated parts as they must be."""
    def part(m):
        words = (m[3] or "").split()
        text = (diff(stage) if m[2] == "diff" else prediction(int(words[0]), words[1:]) if m[2] == "prediction"
                else profile(stage, words, bin_folder))
        return m[1] + text + "\n" + m[4]
    return MARK.sub(part, stage.chapter)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if something is stale")
    parser.add_argument("--bin", type=Path, default=ROOT / "build" / "bin", help="where the stages' programs are")
    args = parser.parse_args()
    wanted = {FIGURES / f"{name}.svg": drawing.file() for name, drawing in figures.all_figures().items()}
    wanted.update({s.folder / "README.md": refreshed(s, args.bin) for s in stages()})
    unknown = {p for p in FIGURES.glob("*.svg") if p not in wanted}
    stale = sorted(p for p, text in wanted.items() if not p.exists() or p.read_text() != text) + sorted(unknown)
    names = ", ".join(str(p.relative_to(ROOT)) for p in stale)
    if args.check and stale:
        print(f"refresh: stale: {names}: run make chapters.", file=sys.stderr)
        return 1
    for path in stale:
        if path in unknown:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path])
    print("refresh: " + (f"rewritten: {names}" if stale else "all is current"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
