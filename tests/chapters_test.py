#!/usr/bin/env python3
"""What the documents say is still so: links lead somewhere, quoted byte formulas are the programs' own, quoted commands
run, kernels stay short and their steps small, and result files say where they come from.

Run by CTest as: chapters_test.py BIN_FOLDER.
"""
import difflib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BIN = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path("build/bin").resolve()
ROOT = Path(__file__).resolve().parent.parent
STAGES = sorted(p.parent for p in ROOT.glob("stages/*/kernel.cuh"))
DOCUMENTS = sorted(p for p in ROOT.glob("**/*.md") if "build" not in p.relative_to(ROOT).parts[0])

PARTS = ["The idea", "The bytes", "The kernel", "What changed", "Measured", "The profile", "Pitfalls", "Exercise", "Quiz"]
LONGEST_KERNEL = 131  # about 120, and more for the widths of stage 06; with the two marks of a quotation
LARGEST_STEP = 65  # lines added, or lines removed
LARGER_STEPS = {"06_vectorized": 102, "07_split_row": 85}  # kernels that share little more with the one before than their form


def program(stage_folder):
    return f"stage-{stage_folder.name[:2]}"


def model(stage_folder):
    text = subprocess.run([BIN / program(stage_folder), "--device", "sim", "--rows", "1", "--cols", "1", "--json"],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(text)["runs"][0]["model"]


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)  # in code, [&](int n) is no link
            for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose):
                if not target.startswith(("http:", "https:")):
                    self.assertTrue((document.parent / target).exists(), f"{document}: {target}")

    def test_the_front_page_lists_every_stage_with_its_formula(self):
        text = (ROOT / "README.md").read_text()
        for stage in STAGES:
            row = re.search(rf"\| \[`{stage.name}`\]\([^)]*\) \|[^|]*\| ([^|]*) \| ([^|]*) \|", text)
            self.assertIsNotNone(row, stage.name)
            self.assertEqual([row[1].strip(), row[2].strip()], [model(stage)["reads"], model(stage)["writes"]], stage.name)

    def test_each_chapter_states_the_formula_of_its_stage(self):
        for stage in STAGES:
            row = re.search(r"\| \*\*together\*\* \| \*\*([^*]*)\*\* \| \*\*([^*]*)\*\* \|", (stage / "README.md").read_text())
            self.assertIsNotNone(row, stage.name)
            formula = [re.sub(r"\s", "", part) for part in row.groups()]
            self.assertEqual(formula, [model(stage)["reads"], model(stage)["writes"]], stage.name)

    def test_each_chapter_has_its_fixed_parts(self):
        for stage in STAGES:
            text = (stage / "README.md").read_text()
            wanted = [p for p in PARTS if p != "What changed" or stage != STAGES[0]]
            self.assertEqual(re.findall(r"^## (.*)$", text, re.M), wanted, stage.name)
            part = lambda title: re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
            self.assertRegex(part("The idea"), r"!\[[^\]]+\]\([^)]*\.svg\)", stage.name)
            self.assertIn(f"figures/measured-{stage.name[:2]}.svg", part("Measured"))
            self.assertIn(f"<!-- results:{stage.name[:2]} -->", part("Measured"))
            self.assertIn("<!-- profile ", part("The profile"))
            if stage != STAGES[0]:
                self.assertIn("<!-- diff -->", part("What changed"))

    def test_generated_parts_are_current(self):
        r = subprocess.run([sys.executable, str(ROOT / "docs/book/refresh.py"), "--check", "--bin", BIN], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_a_change_makes_generated_parts_stale(self):
        """A kernel line, or a result, in a copy."""
        def refused(change, script, says):
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder)
                for name in ("stages", "bench", "docs", "common"):
                    shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("html", "__pycache__"))
                shutil.copy(ROOT / "README.md", copy)
                change(copy)
                r = subprocess.run([sys.executable, copy / script, "--check", *(["--bin", BIN] if "refresh" in script else [])],
                                   capture_output=True, text=True)
                self.assertEqual(r.returncode, 1, r.stdout + r.stderr)
                self.assertRegex(r.stderr, says)

        def kernel(copy):
            path = copy / "stages/02_fused_row_block/kernel.cuh"
            path.write_text(path.read_text().replace("most_items = 64", "most_items = 32"))

        def result(copy):
            path = copy / "bench/results/h200/bench-02.json"
            path.write_text(re.sub(r'"of_copy": 0\.9', '"of_copy": 0.8', path.read_text()))
        def design(copy):
            path = copy / "bench/results/h200_designs.json"
            path.write_text(path.read_text().replace('"microseconds": 5', '"microseconds": 6'))

        def unmeasured(copy):
            (copy / "bench/results/h200/bench-03.json").unlink()
        refused(design, "bench/tables.py", "stages/06_vectorized/README.md")
        refused(unmeasured, "bench/tables.py", "stages/03_multi_row/README.md")
        refused(unmeasured, "docs/book/refresh.py", r"docs/figures/measured-03\.svg")
        refused(kernel, "docs/book/refresh.py", "stages/02_fused_row_block/README.md.*stages/03_multi_row/README.md")
        refused(result, "docs/book/refresh.py", r"docs/figures/measured-02\.svg")
        refused(result, "bench/tables.py", "README.md, stages/02_fused_row_block/README.md")

    def test_quoted_stage_commands_run(self):
        """In a block, and in a line of text. Those that need a GPU are tried where there is one."""
        found = 0
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tests").symlink_to(ROOT / "tests")
            for document in DOCUMENTS:
                text = re.sub(r"<!--.*?-->", "", document.read_text())
                lines = re.findall(r"^(\./stage-\d\d.*?)(?:\s{2,}#.*|#.*)?$", text, re.M) + re.findall(r"`(\./stage-\d\d[^`]*)`", text)
                for line in sorted(set(lines)):
                    words = shlex.split(line, comments=True)
                    if "timing-the-allocator" in words:
                        continue
                    r = subprocess.run([BIN / words[0][2:], *words[1:]], cwd=folder, capture_output=True, text=True)
                    self.assertEqual(r.returncode, 0, f"{document}: {line}\n{r.stderr}")
                    found += 1
        self.assertGreater(found, 20)


class Kernels(unittest.TestCase):
    def test_kernels_stay_short(self):
        for stage in STAGES:
            self.assertLessEqual(len((stage / "kernel.cuh").read_text().splitlines()), LONGEST_KERNEL, stage.name)

    def test_steps_between_stages_stay_small(self):
        declared = dict(re.findall(r"softmax_add_stage\((\S+)[^)]*BUILDS_ON (\S+)\)", (ROOT / "stages/CMakeLists.txt").read_text()))
        for before, after in zip(STAGES, STAGES[1:]):
            before = ROOT / "stages" / declared.get(after.name, before.name)
            a, b = ((s / "kernel.cuh").read_text().splitlines() for s in (before, after))
            changed = [line for line in difflib.ndiff(a, b) if line[0] in "+-"]
            self.assertLessEqual(max(sum(c[0] == sign for c in changed) for sign in "+-"), LARGER_STEPS.get(after.name, LARGEST_STEP), after.name)

    def test_comments_speak_of_the_code_as_it_stands(self):
        for stage in STAGES:
            for text in re.findall(r"//(.*)", (stage / "kernel.cuh").read_text()):
                self.assertNotRegex(text, r"(?i)\bstage \d|\bas before\b|\bno longer\b|\bunlike\b", stage.name)


class Results(unittest.TestCase):
    def test_the_librarys_table_comes_from_the_results(self):
        r = subprocess.run([sys.executable, str(ROOT / "bench" / "dispatch.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_tables_come_from_the_results(self):
        r = subprocess.run([sys.executable, str(ROOT / "bench" / "tables.py"), "--check"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_files_say_where_they_come_from(self):
        for path in sorted((ROOT / "bench" / "results").glob("*.json")):
            with self.subTest(path.name):
                result = json.loads(path.read_text())
                self.assertTrue(result["device"].get("name"))
                self.assertTrue(result["device"].get("driver_version"))
                self.assertRegex(result["commit"], r"^[0-9a-f]{7,40}$")
                self.assertRegex(result["date"], r"^\d{4}-\d\d-\d\dT")


if __name__ == "__main__":
    unittest.main()
