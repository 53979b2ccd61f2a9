"""The stages as their folders tell: what they are called, what they build on, what they move, and how fast they were."""
import difflib
import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import tables  # noqa: E402


def builds_on():
    """folder name -> folder name, where a stage does not build on the one before it."""
    return dict(re.findall(r"softmax_add_stage\((\S+)[^)]*BUILDS_ON (\w+)", (ROOT / "stages/CMakeLists.txt").read_text()))


def found_in(file, pattern, what):
    found = re.search(pattern, file.read_text())
    if not found:
        raise SystemExit(f"book: {file.relative_to(ROOT)} has no {what}: see CONTRIBUTING.md.")
    return found


@dataclass(frozen=True)
class Launch:
    kernel: str
    reads: str
    writes: str


@dataclass(frozen=True)
class Stage:
    folder: Path
    before: "Stage | None"

    @property
    def number(self):
        return self.folder.name[:2]

    @property
    def page(self):
        return f"stage{self.number}"

    @property
    def name(self):
        return self.folder.name[3:].replace("_", " ")

    @functools.cached_property
    def chapter(self):
        return (self.folder / "README.md").read_text()

    @functools.cached_property
    def kernel(self):
        return (self.folder / "kernel.cuh").read_text()

    @property
    def has_quotation(self):
        return self.kernel.count("//! [kernel]") == 2

    @functools.cached_property
    def launches(self):
        """The table of bytes in the chapter, which the test `chapters` holds against the program."""
        rows = found_in(self.folder / "README.md", r"\| kernel \| reads \| writes \|\n\|[-|]+\|\n((?:\|.*\n)+)", "table of what each kernel reads and writes")[1].splitlines()
        cells = [[c.strip().strip("*").replace("`", "") for c in row.strip("|").split("|")] for row in rows]
        return [Launch(*c) for c in cells]

    @property
    def together(self):
        return next(launch for launch in self.launches if launch.kernel == "together")

    @functools.cached_property
    def idea(self):
        """Its line on the front page of the repository."""
        return found_in(ROOT / "README.md", rf"\| \[`{self.folder.name}`\]\([^)]*\) \| ([^|]*) \|", f"line for {self.folder.name}")[1].strip()

    @property
    def parts(self):
        """Files that the kernel is made of beside kernel.cuh, of this stage alone."""
        known = {"kernel.cuh", "exercise.cuh", "pitfalls.cuh", "stage.hpp", "exercise.hpp"}
        return sorted(p for pattern in ("*.cuh", "*.hpp") for p in self.folder.glob(pattern) if p.name not in known)

    def diff(self):
        """What its kernel changes in that of the stage it builds on, as lines of a unified diff."""
        old, new = ([line for line in s.kernel.splitlines() if not line.startswith("//! [")] for s in (self.before, self))
        return list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]


@functools.lru_cache(None)
def stages():
    """Those that have a chapter."""
    found, declared = {}, builds_on()
    previous = None
    for kernel in sorted(ROOT.glob("stages/[0-9][0-9]_*/kernel.cuh")):
        folder = kernel.parent
        if not (folder / "README.md").exists() or not (folder / "README.md").read_text().strip():
            continue
        previous = found[folder.name] = Stage(folder, found.get(declared.get(folder.name)) or previous)
    return list(found.values())


def elements(formula):
    """"5MN + 2M" -> 5.0: how many times MN; the M terms are too small to be drawn."""
    return sum(float(n or 1) for n in re.findall(r"(\d*)MN", formula))


@functools.lru_cache(None)
def measured():
    """(series, dtype, cols) -> entry of bench/results, for the large matrices."""
    return tables.ladder(tables.all_stages())


def fractions(stage, dtype="f32"):
    """[(cols, fraction of the best copy in the same process)]"""
    return sorted((n, e["of_copy"]) for (s, t, n), e in measured().items()
                  if (s, t) == (f"stage-{stage.number}", dtype) and not e.get("error_occurred"))


def peer_fractions(dtype="f32"):
    """The best peer at each width, against the copy that was measured with stage 05."""
    copies = {n: e for (s, t, n), e in tables.ladder(tables.measured("bench-05")).items() if (s, t) == ("copy", dtype)}
    best = {}
    for (s, t, n), e in tables.ladder(tables.all_peers()).items():
        if t == dtype and n in copies:
            best[n] = max(best.get(n, 0), e["bytes_per_second"] / copies[n]["bytes_per_second"])
    return sorted(best.items())


def best_fraction(stage):
    """(fraction, cols) of the best width, or None."""
    return max(((f, n) for n, f in fractions(stage)), default=None)
