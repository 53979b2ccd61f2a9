#!/usr/bin/env python3
"""Results side by side: a table in the terminal, and one self-contained page with charts.

    bench/report.py build/report/*.json                      table, and report.html
    bench/report.py old.json new.json --html compare.html    two machines or two commits
    bench/report.py bench/results/h200/*.json --svg charts --csv all.csv

Takes Google Benchmark's JSON from bench-NN and peers.py, and what counters.py, gpu_check.py and the tuner write.
Several files of one run (same device, commit, caches, kind of input) are one series; others are told apart.
The page needs the packages in bench/requirements.txt (make setup-report); with --no-html Python alone is enough.
Exit codes: 0 all written, 2 a wrong command, an input that cannot be read, or an output that cannot be written.
"""
import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from reporting import inputs, table


def stop(sentence):
    print(f"report: {sentence}", file=sys.stderr)
    raise SystemExit(2)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(f"{message}; see --help.")


def arguments():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.json", help="results; several are compared")
    parser.add_argument("--html", metavar="FILE", default="report.html", help="the page (default: report.html)")
    parser.add_argument("--no-html", action="store_true", help="no page")
    parser.add_argument("--svg", metavar="DIR", help="each chart as SVG too")
    parser.add_argument("--png", metavar="DIR", help="each chart as PNG too")
    parser.add_argument("--csv", metavar="FILE", help="the full table as CSV")
    parser.add_argument("--json", metavar="FILE", help="the full table as strict JSON")
    parser.add_argument("--quiet", action="store_true", help="no table in the terminal")
    return parser.parse_args()


def write(path, data):
    """Whole or not at all."""
    path = Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        try:
            unfinished.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as problem:
        stop(f"cannot write {path}: {problem.strerror}; name a file in a folder that exists and that you may write to.")


def folder(path):
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        stop(f"cannot make the folder {path}: {problem.strerror}; name another.")
    return Path(path)


def show(text):
    """On standard output; a reader that leaves early (| head) is no mistake."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        stop(f"cannot write to standard output: {problem.strerror}; free some space or write elsewhere.")


def charts_module():
    try:
        from reporting import charts
    except ImportError as problem:
        stop(f"the charts need Python packages that are missing ({problem}): run make setup-report and then "
             "build/venv/bin/python bench/report.py, or give --no-html.")
    return charts


def main():
    args = arguments()
    drawn = not args.no_html or args.svg or args.png
    charts = charts_module() if drawn else None
    try:
        report = inputs.read(args.files)
    except inputs.Trouble as problem:
        stop(str(problem))
    for sentence in report.left_out:
        print(f"report: {sentence}", file=sys.stderr)

    written = []
    if not args.quiet:
        width = max(80, min(120, shutil.get_terminal_size((120, 24)).columns))
        show(table.text(report, width))
    for target, text in ((args.csv, table.as_csv), (args.json, table.as_json)):
        if target:
            write(target, text(report))
            written.append(target)
    if drawn:
        figures = charts.figures(report)
    for target, kind, render in ((args.svg, "svg", "as_svg"), (args.png, "png", "as_png")):
        if target:
            place = folder(target)
            for figure in figures:
                for name, picture in getattr(charts, render)(figure):
                    write(place / f"{name}.{kind}", picture)
            written.append(target)
    if not args.no_html:
        from reporting import page
        write(args.html, page.html(report, figures))
        written.append(args.html)
    if written:
        print(f"report: wrote {', '.join(written)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
