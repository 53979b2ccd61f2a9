#!/usr/bin/env python3
"""Each command that a document quotes runs: here, or in the file that the table below names.

CI runs it after everything else, since it configures the build folder for the simulator alone. It makes exercises and removes
them, and leaves a folder in which somebody has begun one as it is. `./stage-NN ...` are run by chapters_test.py.
"""
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("stages/*/README.md")), ROOT / "bench/README.md"]

# What cannot run here, and where it does or why it does not.
ELSEWHERE = {
    r"git clone .*": "no address is known",
    r"make setup|make setup stage-\d\d": ".ci/run",
    r"make setup-(hip|docs|docs docs|report)|make (check-format|docs|check-docs)": ".ci/run",
    r"make test": ".ci/run",
    r"cmake -B build|cmake --build build|cmake --install build --prefix \w+": "tests/installed/run.cmake",
    r"make report": "tests/report_test.py",
    r"make report FROM=a.json,b.json": "tests/report_test.py",
    r"cmake --build --preset sim|ctest --preset sim|cmake --preset sanitize": "CMakePresets.json",
    r"\./build/bin/bench-\d\d .*--lie .*": "tests/bench_test.py",
    r"\./stage-\d\d.*": "tests/chapters_test.py",
}
STARTS = r"(?:make|cmake|ctest|git|\./stage-\d\d|\./exercise-\d\d|\./build/bin/\S+)(?: |$)"


def quoted():
    """command -> a document that has it; what is joined by && is taken apart."""
    found = {}
    for document in DOCUMENTS:
        text = document.read_text()
        blocks = re.findall(r"^```\n(.*?)^```$", text, re.M | re.S)
        lines = [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
        for line in lines:
            for command in re.split(r" && ", re.sub(r"\s+#.*", "", line).strip()):
                if re.match(STARTS, command):
                    found.setdefault(command, document.relative_to(ROOT))
    return found


class Commands(unittest.TestCase):
    def setUp(self):
        self.left_alone = [ROOT / "progress.txt", *ROOT.glob("stages/*/exercise.cuh*")]
        self.left_alone = [path for path in self.left_alone if path.exists()]
        if self.left_alone:
            self.skipTest(f"{self.left_alone[0].relative_to(ROOT)} is somebody's work")

    def tearDown(self):
        if not self.left_alone:
            for path in [ROOT / "progress.txt", *ROOT.glob("stages/*/exercise.cuh*")]:
                path.unlink(missing_ok=True)

    def test_each_runs_or_is_run_elsewhere(self):
        # First the build for the simulator alone, which is quick; then the exercises, which hints are about, and what a program
        # is built with.
        first = ["make CMAKE_FLAGS", "make exercise", "./exercise", "cmake --build"]
        rank = lambda command: next((i for i, start in enumerate(first) if command.startswith(start)), len(first))
        ran = 0
        for command, document in sorted(quoted().items(), key=lambda found: (rank(found[0]), found[0])):
            place = next((where for pattern, where in ELSEWHERE.items() if re.fullmatch(pattern, command)), None)
            if place:
                self.assertTrue(" " in place or (ROOT / place).exists(), place)
                continue
            if command.startswith("make report") and not (ROOT / "build/venv/report").exists():
                continue  # make setup-report failed, as it does with an old Python
            if re.fullmatch(r"make quiz-\d\d", command):
                command += " ANSWERS=a"  # and the end of the input; not all correct is no failure
            with self.subTest(command):
                r = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=900)
                # A new exercise has not been attempted, and two files differ: both are answers.
                answers = {0, 1} if command.startswith(("./exercise-", "git diff")) else {0}
                self.assertIn(r.returncode, answers, f"{document}: {command}\n{r.stdout[-600:]}{r.stderr[-600:]}")
                ran += 1
        self.assertGreater(ran, 15)


if __name__ == "__main__":
    unittest.main()
