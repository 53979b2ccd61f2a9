#!/usr/bin/env python3
"""bench/report.py: what it says about good and doubtful numbers, and every mistake with its sentence and exit code 2.

Run by CTest as: report_test.py PYTHON, the Python that has the packages of bench/requirements.txt (make setup-report).
Without them the charts are not tested; if the rest is right, the exit code is 77: skipped.

The inputs are the measured files in bench/results. Where a rule needs numbers that no GPU gives (NaN, a time of zero, a
tie), a test writes Google Benchmark's JSON with just these.
"""
import copy
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PYTHON = str(ROOT / "build/venv/bin/python")
if len(sys.argv) > 1 and "/" in sys.argv[1]:
    PYTHON = sys.argv.pop(1)
if not os.access(PYTHON, os.X_OK):
    PYTHON = sys.executable
CHARTS = subprocess.run([PYTHON, "-c", "import altair, vl_convert"], capture_output=True).returncode == 0
H200 = RESULTS / "h200"
# Without stages 06 and 07, which would be the fastest everywhere: the tests are about more than that.
RUN = [p for p in sorted(H200.glob("*.json")) if p.stem not in ("bench-06", "bench-07")]
COUNTED = [RESULTS / "h200_stages.json", RESULTS / "h200_stages_2.json", RESULTS / "h200_dram_05.json"]
CONTEXT = json.loads((H200 / "bench-00.json").read_text())["context"]


def report(*args, env=None, stdout=subprocess.PIPE):
    return subprocess.run([PYTHON, str(ROOT / "bench" / "report.py"), *map(str, args)], stdout=stdout,
                          stderr=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "0", **(env or {})}, timeout=300)


def strict(text):
    def no_constant(name):
        raise ValueError(name)
    return json.loads(text, parse_constant=no_constant)


def entries(series, dtype, rows, cols, seconds, low=None, high=None, lie="", label="", **counters):
    """The aggregates of one benchmark, as Google Benchmark writes them."""
    lie = f"/lie:{lie}" if lie else ""
    run_name = f"{series}/dtype:{dtype}/rows:{rows}/cols:{cols}{lie}/iterations:1/repeats:25/manual_time"
    size = 2 * rows * cols * (4 if dtype == "f32" else 2)
    made = []
    for aggregate, value in (("mean", seconds), ("median", seconds), ("min", low or seconds), ("max", high or seconds)):
        made.append({"name": f"{run_name}_{aggregate}", "run_name": run_name, "run_type": "aggregate",
                     "repetitions": 25, "threads": 1, "aggregate_name": aggregate, "aggregate_unit": "time",
                     "iterations": 25,
                     "real_time": value * 1e6, "cpu_time": 1.0, "time_unit": "us", "label": label, "rows": rows,
                     "cols": cols, "bytes_per_call": size, "bytes_per_second": size / value if value else 0,
                     "samples": 25, **counters})
    return made


def failed(series, dtype, rows, cols, message):
    run_name = f"{series}/dtype:{dtype}/rows:{rows}/cols:{cols}/manual_time"
    return {"name": run_name, "run_name": run_name, "run_type": "iteration", "repetitions": 25, "repetition_index": 0,
            "error_occurred": True, "error_message": message, "iterations": 0, "real_time": 0.0, "time_unit": "us"}


def measured(dtypes=("f32", "bf16")):
    """What the stages measured on an H200, of two types, in one list."""
    made = []
    for path in (p for p in RUN if p.stem.startswith("bench-0")):
        made += [e for e in json.loads(path.read_text())["benchmarks"]
                 if any(f"/dtype:{d}/" in e["run_name"] for d in dtypes)]
    return made


def simulated():
    """Two stages counted without a clock; the bytes are those of their formulas."""
    made = []
    for stage, factor, launches in (("stage-00", 8, 5), ("stage-02", 2, 1)):
        for dtype, element in (("f32", 4), ("bf16", 2)):
            for rows, cols in ((64, 256), (64, 1024)):
                counted = factor * rows * cols * element
                one = entries(stage, dtype, rows, cols, 0.0, model_bytes=counted, requested_bytes=counted,
                              sector_bytes=counted, launches=launches, barriers=3, occupancy=0.75, max_ulp=0.5)
                made += [{k: v for k, v in e.items() if k != "bytes_per_second"} for e in one]
    return made


class Folder(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = Path(self.holder.name)
        self.addCleanup(self.holder.cleanup)

    def file(self, name, benchmarks, **context):
        path = self.folder / name
        path.write_text(json.dumps({"context": {**CONTEXT, **context}, "benchmarks": benchmarks}))
        return path

    def text(self, *args, **options):
        r = report(*args, "--no-html", **options)
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        return r.stdout.decode("ascii")  # any terminal can show it

    def points(self, *args):
        out = self.folder / "points.json"
        r = report(*args, "--no-html", "--quiet", "--json", out)
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        return strict(out.read_text())["points"]

    def point(self, points, series, cols, dtype="f32", **more):
        found = [p for p in points if (p["series"], p["cols"], p["dtype"]) == (series, cols, dtype)
                 and all(p[k] == v for k, v in more.items())]
        self.assertEqual(len(found), 1, (series, cols, found))
        return found[0]


class Numbers(Folder):
    def test_the_files_of_one_run_stand_in_one_table(self):
        text = self.text(*RUN, *COUNTED)
        for head in ("copy +stage-00 +stage-01 +stage-02 +stage-03 +stage-04 +stage-05",
                     "cudnn-instance +torch-compile +torch-eager +triton-tutorial"):
            self.assertRegex(text, f"N +M .*{head}")
        self.assertNotIn("Against", text)
        self.assertEqual(text.count("f32: GB/s"), 1)
        points = self.points(*RUN, *COUNTED)
        copies = [p for p in points if p["series"] == "copy" and not p["lie"]]
        self.assertEqual(len(copies), len({(p["dtype"], p["rows"], p["cols"]) for p in copies}))
        # The copy of one process is not that of another: all stand below the best of them.
        self.assertLessEqual(max(p["of_copy"] for p in points if p["of_copy"] and not p["lie"]), 1.005)

    def test_inputs_are_compared_by_kind(self):
        some = entries("stage-00", "f32", 4096, 1024, 1e-5)
        same = ("normal (sums of four uniform numbers), seed 1", "normal, mean 0, deviation 1, seed 1",
                "sums of four uniform numbers, mean 0, deviation 1, seed 1")
        series = ("stage-00", "peer-1", "peer-2")
        files = [self.file(f"{s}.json", entries(s, "f32", 4096, 1024, 1e-5), input=i) for s, i in zip(series, same)]
        self.assertRegex(self.text(*files), r"(?m)^ +N +M +stage-00 +peer-1 +peer-2$")
        text = self.text(files[0], self.file("z.json", some, input="all zeros"))
        self.assertIn("f32, zeros input: GB/s", text)
        self.assertIn("f32, normal input: GB/s", text)

    def test_who_is_fastest(self):
        text = self.text(*RUN)
        self.assertRegex(text, r"(?m)^ +32 +8388608 +stage-04 +3617 +0\.85 +cudnn-channel +0\.62 +x1\.37 ahead$")
        self.assertRegex(text, r"(?m)^ +8192 +32768 +stage-04 ~ 03 ~ 02 +4065 +0\.95 +cudnn-instance .* even$")
        self.assertRegex(text, r"(?m)^ +50257 +5341 +stage-05 .* behind$")

    def test_the_table_fits_and_shows_what_has_no_number(self):
        text = self.text(self.file("gb.json", measured(("f32",))))
        self.assertNotIn("\x1b", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 120)
        self.assertEqual(text.count("too wide"), 22 + 22 + 17 + 3)  # each point in its cell, each kind once below
        self.assertRegex(text, r"(?m)^ +32 +8388608 +\d{4} +74 0\.017 +80 0\.019 +292 0\.068 +2320 0\.54 "
                               r"+3617 0\.85\* +20 0\.005$")
        self.assertIn("stage-02, too wide:", text)

    def test_many_series_are_split_into_panels(self):
        many = [e for i in range(15) for e in entries(f"stage-{i:02d}", "f32", 1024, 1024, 1e-5 * (i + 1), of_copy=0.9)]
        text = self.text(self.file("many.json", many))
        self.assertLessEqual(max(map(len, text.splitlines())), 120)
        for i in range(15):
            self.assertIn(f"stage-{i:02d}", text)

    def test_missing_points_are_called_missing(self):
        some = entries("stage-00", "f32", 1024, 1024, 1e-4) + entries("stage-01", "f32", 512, 2048, 1e-4)
        self.assertEqual(self.text(self.file("gb.json", some)).count("missing"), 2)

    def test_repetitions_without_aggregates(self):  # [T69]
        name = "stage-01/dtype:f32/rows:1024/cols:1024/manual_time"
        some = [{"name": name, "run_name": name, "run_type": "iteration", "repetition_index": i, "real_time": t,
                 "time_unit": "us", "max_ulp": u} for i, (t, u) in enumerate(((10, 1), (12, 3), (11, 2)))]
        p = self.point(self.points(self.file("gb.json", some)), "stage-01", 1024)
        self.assertAlmostEqual(p["seconds"], 11e-6)
        self.assertAlmostEqual(p["spread"], 2 / 11)
        self.assertEqual((p["max_ulp"], p["samples"]), (3, 3))
        self.assertAlmostEqual(p["bytes_per_second"], 2 * 4 * 2**20 / 11e-6)  # [T71]
        self.assertIn("noisy", p["flags"])

    def test_no_winner_inside_the_noise(self):  # [T69]
        base = entries("stage-00", "f32", 4096, 1024, 50e-6, 49.9e-6, 50.1e-6)
        near = entries("stage-01", "f32", 4096, 1024, 10e-6, 9.9e-6, 10.2e-6)
        for fast, says in ((9.9e-6, ["", "within noise", "within noise"]), (9e-6, ["", "", "alone"])):
            last = entries("stage-02", "f32", 4096, 1024, fast, fast - 1e-7, fast + 1e-7)
            points = self.points(self.file("gb.json", base + near + last))
            self.assertEqual([self.point(points, f"stage-0{i}", 1024)["fastest"] for i in range(3)], says)

    def test_above_the_roof_is_flagged_and_wins_nothing(self):  # [T64] [T67]
        some = (entries("stage-01", "f32", 4096, 1024, 10e-6, of_copy=0.9)
                + entries("stage-02", "f32", 4096, 1024, 5e-6, of_copy=1.8)
                + entries("copy", "f32", 4096, 1024, 9e-6, of_copy=1.0))
        path = self.file("gb.json", some)
        points = self.points(path)
        self.assertEqual([(self.point(points, s, 1024)["flags"], self.point(points, s, 1024)["fastest"])
                          for s in ("stage-01", "stage-02")], [("", "alone"), ("cache", "")])
        text = self.text(path)
        self.assertRegex(text, r"1\.80 cache\b(?![*~])")
        self.assertIn("Above the copy", text)

    def test_what_a_launch_may_spare_is_no_cache(self):
        some = (entries("stage-06", "f32", 512, 1024, 4.7e-6, of_copy=1.06)
                + entries("stage-07", "f32", 512, 1024, 2e-6, of_copy=2.5)
                + entries("copy", "f32", 512, 1024, 5e-6, of_copy=1.0))
        points = self.points(self.file("gb.json", some))
        self.assertEqual([self.point(points, s, 1024)["flags"] for s in ("stage-06", "stage-07")], ["", "cache"])

    def test_warm_numbers_are_labelled(self):  # [T67]
        path = self.file("gb.json", entries("stage-01", "f32", 4096, 1024, 10e-6, of_copy=0.9), cache="warm")
        self.assertEqual(self.points(path)[0]["fastest"], "")
        self.assertIn("0.90 warm", self.text(path))

    def test_errors_and_skips_appear(self):  # [T73]
        skipped = {**failed("torch-compile", "f32", 4096, 1024, ""), "skipped": True,
                   "skip_message": "torch is not installed"}
        skipped.pop("error_occurred")
        path = self.file("gb.json", entries("stage-01", "f32", 4096, 1024, 10e-6) + [skipped]
                         + [failed("stage-00", "f32", 4096, 1024, "out of memory"),
                            failed("stage-02", "f32", 4096, 1024, "boom"),
                            failed("stage-03", "f32", 4096, 1024, "wrong result at row 3")])
        text = self.text(path)
        for word in ("no memory", "FAILED", "WRONG", "skipped", "torch is not installed", "boom"):
            self.assertIn(word, text)
        self.assertEqual([p["status"] for p in self.points(path)][:4], ["no memory", "right", "failed", "wrong"])

    def test_nan_and_infinity(self):  # [T74]
        some = (entries("stage-00", "f32", 4096, 1024, 10e-6, max_ulp=float("nan"))
                + entries("stage-01", "f32", 4096, 1024, 10e-6, of_copy=float("inf"), max_ulp=2.0)
                + entries("stage-02", "f32", 4096, 1024, 10e-6, of_copy=0.5, max_ulp=2.0))
        path = self.file("gb.json", some)
        self.assertIn("NaN", path.read_text())
        points = self.points(path)
        self.assertEqual([p["status"] for p in points[:3]], ["wrong", "right", "right"])
        self.assertIsNone(points[0]["max_ulp"])
        self.assertIsNone(points[1]["of_copy"])
        text = self.text(path)
        self.assertIn("WRONG", text)
        self.assertIn("n/a", text)
        self.assertIn("0.50", text)

    def test_zero_and_negative_times(self):  # [T70]
        some = [e for i, t in enumerate((0.0, -1e-6, 1e-6)) for e in entries(f"stage-0{i}", "f32", 1, 1, t)]
        path = self.file("gb.json", some)
        self.assertIn("n/a", self.text(path))
        self.assertEqual([(p["seconds"], p["bytes_per_second"]) for p in self.points(path)][:2], [(None, None)] * 2)

    def test_quantities_that_cannot_be(self):
        odd = [dict(real_time=1e308), dict(bytes_per_second=1e-300), dict(of_copy=1e-300), dict(of_copy=-1.0),
               dict(bytes_per_second=-1.0), dict(max_ulp=10**400), dict(samples="many"), dict(bytes_per_call=True)]
        for one in odd:
            with self.subTest(str(one)[:60]):
                some = entries("stage-00", "f32", 4096, 1024, 1e-5, of_copy=0.5)
                path = self.file("gb.json", [{**e, **one} for e in some] + entries("stage-01", "f32", 4096, 1024, 1e-5))
                self.assertIn("3355", self.text(path))
                self.assertGreaterEqual(len(self.points(path)), 2)

    def test_bytes_that_disagree_with_the_time(self):  # [T72]
        some = entries("stage-00", "f32", 1024, 1024, 1e-5)
        for e in some:
            e["bytes_per_second"] *= 4
        self.assertIn("time and bytes disagree", self.points(self.file("gb.json", some))[0]["flags"])

    def test_locale_makes_no_difference(self):  # [T75]
        path = self.file("gb.json", measured(("f32",)))
        texts = []
        for locale in ("C", "de_DE.UTF-8"):
            env = {"LC_ALL": locale, "LANG": locale}
            r = report(path, "--no-html", "--csv", self.folder / "t.csv", "--json", self.folder / "t.json", env=env)
            texts.append((r.stdout, (self.folder / "t.csv").read_bytes(), (self.folder / "t.json").read_bytes()))
        self.assertEqual(texts[0], texts[1])

    def test_csv_has_every_point(self):
        path = self.file("gb.json", measured(("f32",)))
        report(path, "--no-html", "--quiet", "--csv", self.folder / "t.csv")
        rows = list(csv.DictReader(io.StringIO((self.folder / "t.csv").read_text())))
        self.assertEqual(len(rows), len(self.points(path)))
        self.assertEqual(float(rows[0]["seconds"]), self.points(path)[0]["seconds"])

    def test_simulator_only(self):
        text = self.text(self.file("sim.json", simulated(), backend="sim", device="NVIDIA H200"))
        self.assertTrue(text.startswith("NO TIMES"), text)
        self.assertNotIn("GB/s", text)
        self.assertRegex(text, r"stage-00 +64x1024 +f32 +8\.00 +8\.00 +8\.00 +- +5 +3 +75 %")

    def test_counters_add_dram(self):
        points = self.points(RESULTS / "h200_stages.json", self.file("gb.json", measured()))
        p = self.point(points, "stage-00", 8192, rows=4096)
        self.assertAlmostEqual(p["dram_bytes"] / (4096 * 8192 * 4), 7.59, places=2)

    def test_two_commits(self):
        old = measured()
        new = copy.deepcopy(old)
        for e in new:
            if e["run_name"].startswith("stage-03/") and not e.get("error_occurred"):
                e["real_time"] /= 2
                e["bytes_per_second"] *= 2
        text = self.text(self.file("old.json", old), self.file("new.json", new, commit="0123456789ab"))
        commit = json.loads((H200 / "bench-00.json").read_text())["context"]["commit"][:7]
        self.assertIn(f"f32, {commit}: GB/s", text)
        self.assertIn("f32, 0123456: GB/s", text)
        self.assertRegex(text, r"stage-03 +f32 +x2\.00 +16 shapes +16 faster +0 slower")
        self.assertRegex(text, r"stage-00 +f32 +x1\.00 +38 shapes +0 faster +0 slower +38 within noise")

    def test_files_of_one_run_are_one_series_and_repeated_runs_are_not(self):
        a, b = entries("stage-00", "f32", 4096, 1024, 1e-5), entries("stage-01", "f32", 4096, 1024, 1e-5)
        self.assertNotIn("Against", self.text(self.file("a.json", a), self.file("b.json", b)))
        self.assertIn("Against a.json (geometric", self.text(self.file("a.json", a + b), self.file("c.json", a)))

    def test_lies_stand_beside_the_truth(self):
        some = (entries("stage-02", "f32", 4096, 1024, 1e-5, of_copy=0.9)
                + entries("stage-02", "f32", 4096, 1024, 1e-5, lie="none")
                + entries("stage-02", "f32", 4096, 1024, 1e-6, lie="nosync", of_copy=9))
        text = self.text(self.file("gb.json", some))
        self.assertRegex(text, r"stage-02 +4096x1024 f32 +nosync +33554 GB/s +3355 GB/s +x10\.0")
        points = self.points(self.file("gb.json", some))
        self.assertEqual(self.point(points, "stage-02", 1024, lie="")["fastest"], "alone")

    def test_a_wide_matrix_of_few_rows_stays_in_the_main_table(self):
        some = entries("stage-05", "f32", 16, 1 << 20, 1e-4, of_copy=0.5) + entries("stage-05", "f32", 16, 1024, 1e-6)
        text = self.text(self.file("gb.json", some))
        self.assertRegex(text, r"1048576 +16 +2684 +1342 0\.50")
        self.assertRegex(text, r"few rows[^\n]*\n[^\n]*\n1024 +16 +1\.000")

    def test_few_rows_are_judged_by_time(self):
        some = (entries("stage-02", "bf16", 8, 128256, 4.2e-6, of_copy=0.5)
                + entries("copy", "bf16", 8, 128256, 2.1e-6, of_copy=1.0))
        self.assertRegex(self.text(self.file("gb.json", some)),
                         r"few rows[^\n]*\n[^\n]*\n128256 +8 +2\.100 +4\.200 x2\.00\*")


class Mistakes(Folder):
    """Each is one sentence on stderr, exit code 2, nothing on stdout, and no file."""

    def refused(self, *args, says):
        r = report(*args, "--no-html" if "--html" not in args else "--quiet")
        error = r.stderr.decode()
        self.assertEqual(r.returncode, 2, error)
        self.assertEqual(r.stdout, b"")
        self.assertEqual(len(error.strip().splitlines()), 1, error)
        self.assertTrue(error.startswith("report: ") and error.rstrip().endswith("."), error)
        self.assertRegex(error, says)
        self.assertEqual([p.name for p in self.folder.rglob("*.unfinished")], [])

    def broken(self, text, says):
        path = self.folder / "x.json"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.refused(path, says=says)

    def test_inputs(self):
        self.refused(self.folder / "none.json", says="cannot read .*none.json: No such file")
        self.refused(self.folder, says="cannot read .*: Is a directory")
        self.broken("", "broken JSON")
        self.broken('{"context": {}, "benchmarks": [', "broken JSON .line 1")
        self.broken(b"\xff\xfe\x00", "no text file")
        self.broken("[1, 2]", "not known here")
        self.broken('{"a": 1}', "not known here")
        self.broken("[" * 100000, "broken JSON|nested")
        self.broken('{"context": {}, "benchmarks": []}', "holds no result")
        self.broken('{"context": {}, "benchmarks": [{"name": "BM_other/8", "real_time": 1}]}', "holds no result")
        self.broken('{"context": {}, "benchmarks": [3]}', "cannot be understood")
        self.broken('{"results": [{"stage": "stage-00"}]}', "cannot be understood")
        self.broken('{"results": []}', "holds no result")
        self.broken('{"tuned": []}', "holds no result")
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        self.refused(path, path, says="given twice")

    def test_files_with_another_purpose_are_left_out_and_named(self):
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        others = [RESULTS / name for name in ("h200_designs.json", "h200_large_1.json", "h200_widths.json", "simulator/speed.json")]
        r = report(path, *others, "--no-html")
        self.assertEqual(r.returncode, 0, r.stderr)
        for other in others:
            self.assertRegex(r.stderr.decode(), f"{other.name} is left out: it holds .*, no times and no bytes of a stage")
        self.refused(others[0], says="is left out")
        self.refused(*others, says="no file holds times or bytes")
        wrong = json.loads((RESULTS / "h200_stages_06.json").read_text())
        self.assertTrue(wrong["shapes"])
        wrong["shapes"][0]["pass"] = False  # what was checked and found wrong is never left out
        (self.folder / "checked.json").write_text(json.dumps(wrong))
        self.assertIn(b"wrong", report(path, self.folder / "checked.json", "--no-html").stdout.lower())

    def test_a_good_file_beside_a_bad_one_writes_nothing(self):
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        (self.folder / "bad.json").write_text("{")
        self.refused(path, self.folder / "bad.json", "--csv", self.folder / "t.csv", says="bad.json is broken")
        self.assertFalse((self.folder / "t.csv").exists())

    def test_outputs(self):
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        for option in ("--csv", "--json"):
            self.refused(path, "--quiet", option, self.folder / "none" / "t", says="cannot write .*No such file")
            self.refused(path, "--quiet", option, self.folder, says="cannot write .*directory")

    def test_options(self):
        self.refused(says="required: FILE.json; see --help")
        self.refused("a.json", "--nonsense", says="--nonsense; see --help")

    def test_a_full_disk_is_no_success(self):
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        with open("/dev/full", "w") as full:
            r = report(path, "--no-html", stdout=full)
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"standard output", r.stderr)

    def test_without_the_packages(self):
        if subprocess.run([sys.executable, "-c", "import altair"], capture_output=True).returncode == 0:
            self.skipTest("this Python has them")
        path = self.file("gb.json", entries("stage-00", "f32", 64, 64, 1e-6))
        command = [sys.executable, ROOT / "bench" / "report.py", path, "--html", self.folder / "r.html"]
        r = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        self.assertEqual(r.returncode, 2)
        self.assertIn("make setup-report", r.stderr)
        self.assertEqual(len(r.stderr.strip().splitlines()), 1)


@unittest.skipUnless(CHARTS, "altair and vl-convert are not installed: run make setup-report")
class Page(Folder):
    def page(self, *args, name="r.html"):
        out = self.folder / name
        r = report(*args, "--quiet", "--html", out)
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        return out.read_text(encoding="utf-8")

    def without_scripts(self, text):
        return re.sub(r"<script.*?</script>", "", text, flags=re.S)

    def test_every_part_is_there_and_nothing_is_asked_of_the_network(self):  # [T92]
        text = self.page(*RUN, *COUNTED, self.file("sim.json", simulated(), backend="sim"))
        charts = ["speed", "steps", "bytes", "dram", "warps", "occupancy", "error", "lies"]
        for key in charts + ["glance", "few", "doubts", "table", "environment"]:
            self.assertIn(f'<section id="{key}"', text)
            self.assertIn(f'<a href="#{key}">', text)
        self.assertNotRegex(text, r"""(src|srcset|action|poster)\s*=\s*["']?(https?:)?//""")
        self.assertEqual(re.findall(r"""<link[^>]*href=(?!["']?data:)""", text), [])
        self.assertNotRegex(self.without_scripts(text), r"@import|url\(")
        data = strict(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])
        self.assertEqual([f["key"] for f in data["figures"]], charts)
        self.assertNotIn('"url"', json.dumps([f["spec"] for f in data["figures"]]))

    def test_facts_of_the_machine(self):
        text = self.page(self.file("gb.json", measured(("f32",))))
        self.assertIn('<th scope="row">peak by data sheet, GB/s</th><td>4800</td>', text)
        self.assertIn('<th scope="row">L2 cache, MiB</th><td>60.0</td>', text)
        self.assertIn('<th scope="row">clock, MHz</th><td>1980</td>', text)
        data = strict(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        self.assertEqual(data["figures"][0]["spec"]["datasets"]["peak"], [{"GB/s": 4800}])
        text = self.page(self.file("gb.json", measured(("f32",)), peak_bytes_per_second="unknown", l2_bytes="0"))
        self.assertNotIn('<th scope="row">peak by data sheet', text)

    def test_accessible(self):
        text = self.without_scripts(self.page(self.file("gb.json", measured(("f32",)))))
        for piece in ('<html lang="en">', "<main", "<nav aria-label", "<header>", "<footer>", 'class="skip"',
                      'aria-sort="none"', 'scope="col"', 'scope="row"', "aria-live"):
            self.assertIn(piece, text)
        self.assertEqual(text.count("<h1"), 1)
        charts = re.findall(r'<div class="chart"[^>]*>', text)
        self.assertEqual(len(charts), 4)
        for chart in charts:
            self.assertRegex(chart, r'role="img" aria-label="[^"]{40,}"')
        self.assertEqual(text.count("<details>"), len(charts))  # the numbers as a table
        ids = re.findall(r'\bid="([^"]+)"', text)
        self.assertEqual(len(ids), len(set(ids)))

    def test_headline_is_two_sentences_from_the_data(self):
        text = self.page(self.file("gb.json", measured(("f32",))))
        lead = re.search(r'class="lead">(.*?)</p>', text)[1]
        self.assertIn("reaches 0.34 to 0.96 of the best copy", lead)
        self.assertIn("stage-04 is 5.34 times as fast as stage-00", lead)
        self.assertEqual(len(re.findall(r"[a-z0-9)]\.(?: |$)", lead)), 2)

    def test_tables_of_one_type_and_the_best_of_each_shape(self):
        text = self.without_scripts(self.page(*RUN))
        glance = re.search(r'<section id="glance".*?</section>', text, re.S)[0]
        self.assertEqual(len(re.findall(r'<tr data-dtype="f16">', glance)), 18)
        self.assertRegex(glance, r'(?s)>32<span class="type"> f32</span></th>.*?stage-04.*?>0.85</td>.*?'
                                 r'cudnn-channel.*?class="ahead[^"]*">×1.37 ahead<')
        few = re.search(r'<section id="few".*?</section>', text, re.S)[0]
        self.assertEqual(len(re.findall(r'<tr data-dtype="bf16">', few)), 15)
        self.assertRegex(few, r'(?s)1×1024<.*?>1.06</td>.*?stage-02</span> 1.63 .*?×1.5')
        self.assertNotIn("· ", text.split('<section id="table"')[0])  # one run: no name needs a file behind it

    def test_bytes_stand_once_and_dram_by_width(self):
        text = self.page(*RUN, *COUNTED)
        data = strict(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        figures = {f["key"]: f["spec"]["datasets"]["points"] for f in data["figures"]}
        self.assertEqual({d["series"] for d in figures["bytes"]}, {f"stage-0{i}" for i in range(6)})
        self.assertEqual({d["shape"] for d in figures["bytes"]}, {"1823x781", "4096x8192"})
        for d in figures["bytes"]:
            self.assertEqual(sum(all(d[k] == e[k] for k in ("series", "dtype", "shape", "kind"))
                                 for e in figures["bytes"]), 1, d)
        dram = [(d["N"], round(d["matrices"], 2)) for d in figures["dram"] if d["kind"] == "DRAM"]
        self.assertEqual(dram, [(1024, 1.93), (4096, 1.93), (8192, 1.93), (16384, 2.43), (32768, 2.93), (65536, 2.93),
                                (131072, 2.93), (262144, 2.93)])

    def test_simulator_only(self):
        text = self.page(self.file("sim.json", simulated(), backend="sim"))
        self.assertIn("<strong>No times.</strong>", text)
        self.assertNotIn('<section id="speed"', text)
        self.assertIn("Requested bytes equal the model at 8 of 8 points.", text)

    def test_text_from_files_cannot_become_markup(self):
        evil = '</script><script>alert(1)</script><img src="http://x/">'
        text = self.page(self.file("gb.json", entries("stage-00", "f32", 4096, 64, 1e-6, label=evil) +
                                   [failed("stage-01", "f32", 4096, 64, evil)], device=evil, commit=evil))
        self.assertFalse("<script>alert" in text)
        self.assertFalse("<img" in self.without_scripts(text))
        self.assertEqual(text.count("</script>"), 3)

    def test_nan_and_only_errors(self):  # [T74]
        some = entries("stage-00", "f32", 4096, 1024, 10e-6, max_ulp=float("nan"), of_copy=float("-inf"))
        text = self.page(self.file("gb.json", some + [failed("stage-01", "f32", 4096, 1024, "boom")]))
        strict(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        self.assertIn("WRONG", text)
        self.assertIn("boom", self.page(self.file("only.json", [failed("stage-01", "f32", 4096, 1024, "boom")])))

    def test_locale_makes_no_difference(self):  # [T75]
        path = self.file("gb.json", measured(("f32",)))
        pages = []
        for locale in ("C", "de_DE.UTF-8"):
            r = report(path, "--quiet", "--html", self.folder / "r.html", env={"LC_ALL": locale, "LANG": locale})
            self.assertEqual(r.returncode, 0, r.stderr.decode())
            pages.append((self.folder / "r.html").read_bytes())
        self.assertEqual(pages[0], pages[1])

    def test_pictures(self):
        r = report(self.file("gb.json", measured()), "--quiet", "--no-html", "--svg", self.folder / "a" / "svg",
                   "--png", self.folder / "png")
        self.assertEqual(r.returncode, 0, r.stderr.decode())
        names = sorted(p.stem for p in (self.folder / "a" / "svg").iterdir())
        charts = ("bytes", "error", "speed", "steps")
        self.assertEqual(names, [f"{chart}-{dtype}" for chart in charts for dtype in ("bf16", "f32")])
        self.assertEqual(names, sorted(p.stem for p in (self.folder / "png").iterdir()))
        for p in (self.folder / "a" / "svg").iterdir():
            self.assertIn("</svg>", p.read_text(encoding="utf-8"))
        for p in (self.folder / "png").iterdir():
            self.assertEqual(p.read_bytes()[:4], b"\x89PNG")

    def test_unwritable_page(self):
        path = self.file("gb.json", entries("stage-00", "f32", 4096, 64, 1e-6))
        r = report(path, "--quiet", "--html", self.folder / "none" / "r.html")
        self.assertEqual(r.returncode, 2)
        self.assertRegex(r.stderr.decode(), r"^report: cannot write .*\.\n$")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["gb.json"])


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if not CHARTS:
        print("SKIP: altair and vl-convert are not installed (make setup-report); the charts were not tested")
    sys.exit(0 if CHARTS else 77)
