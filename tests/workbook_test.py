#!/usr/bin/env python3
"""Exercises, hints, quizzes and the map as a learner meets them, right uses and mistakes.

Run by CTest as: workbook_test.py BUILD_FOLDER. Works in folders of its own: nobody's exercise or progress is touched.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else Path("build").resolve()
ROOT = Path(__file__).resolve().parent.parent
WORKBOOK = BUILD / "bin" / "workbook"
STAGES = sorted(p.parent.name for p in ROOT.glob("stages/*/kernel.cuh"))


class Folder(unittest.TestCase):
    """A workbook without the learner's files."""

    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.root = Path(self.place.name)
        for stage in STAGES:
            shutil.copytree(ROOT / "stages" / stage, self.root / "stages" / stage, ignore=shutil.ignore_patterns("exercise.cuh*"))
        self.env = {**os.environ, "SOFTMAX_WORKBOOK": str(self.root)}

    def tearDown(self):
        self.place.cleanup()

    def run_it(self, *args, code=0, **options):
        r = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=self.env, timeout=300, **options)
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        for line in r.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)
        self.assertNotIn("\x1b", r.stdout)
        return r

    def workbook(self, *args, code=0, **options):
        return self.run_it(WORKBOOK, *args, code=code, **options)

    def refused(self, *args, says, **options):
        r = self.workbook(*args, code=2, **options)
        self.assertEqual(r.stdout, "")
        self.assertEqual(len(r.stderr.strip().splitlines()), 1, r.stderr)
        self.assertTrue(r.stderr.startswith("workbook: ") and r.stderr.strip().endswith("."), r.stderr)
        self.assertRegex(r.stderr, says)

    def progress(self):
        file = self.root / "progress.txt"
        return file.read_text() if file.exists() else ""


class Map(Folder):
    def test_a_new_map_names_the_first_step(self):
        text = self.workbook("map").stdout
        for stage in STAGES:
            self.assertIn(stage[:2] + " " + stage[3:], text)
        self.assertIn(f"0 / {3 * len(STAGES)} done", text)
        self.assertIn("next: make exercise-00 && ./exercise-00\n      (read stages/00_unfused/README.md first)", text)
        self.assertNotIn("copy", text)
        self.assertEqual(self.progress(), "")

    def test_the_map_shows_what_is_done(self):
        (self.root / "progress.txt").write_text(
            "exercise 00 passed with hint level 2\nprediction 00 right\nquiz 00 5 / 5\nexercise 01 passed after reveal\n"
            "diagnosis 02 zero-padding line 7\nquiz 01 2 / 6\n\0\x07?\nexercise\n")
        text = self.workbook("map").stdout
        self.assertIn("passed, hint level 2", text)
        self.assertIn("passed, revealed", text)
        self.assertIn("zero-padding", text)
        self.assertIn("2 / 6", text)
        self.assertIn(f"4 / {3 * len(STAGES)} done", text)
        self.assertIn("next: make exercise-01", text)


    def test_the_next_step_says_what_is_to_be_done_before_it(self):
        self.workbook("start", "00")
        self.assertIn("(after the next change of stages/00_unfused/exercise.cuh)", self.workbook("map").stdout)
        (self.root / "progress.txt").write_text("exercise 00 passed\n")
        self.assertIn("(it passes: now predict its bytes, at the end of exercise.cuh)", self.workbook("map").stdout)
        (self.root / "progress.txt").write_text("exercise 00 passed\nprediction 00 right\nquiz 00 4 / 5\n")
        self.assertTrue(self.workbook("map").stdout.endswith("next: make quiz-00\n"))

    def test_the_map_shows_what_a_gpu_reached(self):
        (self.root / "progress.txt").write_text("copy 01 0.371 16384x781 f32, NVIDIA H200\nquiz 01 2 / 6\ncopy 02 nonsense\n")
        text = self.workbook("map").stdout
        self.assertRegex(text.splitlines()[2], r"quiz +of a copy$")
        self.assertRegex(text, r"01 three_kernels .* 2 / 6 +0\.371\n")
        self.assertRegex(text, r"02 fused_row_block .* - +-\n")


class Files(Folder):
    def test_start_makes_a_file_once(self):
        file = self.root / "stages" / STAGES[3] / "exercise.cuh"
        self.assertIn("made", self.workbook("start", "3").stdout)
        self.assertIn("TODO(3a)", file.read_text())
        file.write_text("mine")
        self.assertEqual(self.workbook("start", "03").stdout, "")
        self.assertEqual(file.read_text(), "mine")

    def test_reset_keeps_every_version(self):
        file = self.root / "stages" / STAGES[3] / "exercise.cuh"
        self.workbook("start", "03")
        skeleton = file.read_text()
        for n, text in enumerate(("first", "second"), 1):
            file.write_text(text)
            self.assertIn(f"exercise.cuh.backup-{n}", self.workbook("reset", "03").stdout)
            self.assertEqual(file.read_text(), skeleton)
            self.assertEqual(Path(f"{file}.backup-{n}").read_text(), text)
        self.assertIn("skeleton already", self.workbook("reset", "03").stdout)

    def test_reveal_is_recorded(self):
        text = self.workbook("reveal", "02").stdout
        self.assertIn("held[i] = expf(held[i] - m);", text)
        self.assertIn("TODO(2a)", text)
        self.assertIn("reveal 02 seen", self.progress())


class Hints(Folder):
    def test_three_levels_by_the_diagnosis(self):
        self.workbook("start", "02")
        solution = (self.root / "stages" / STAGES[2] / "kernel.cuh").read_text()
        (self.root / "stages" / STAGES[2] / "exercise.cuh").write_text(solution)
        (self.root / "progress.txt").write_text("diagnosis 02 zero-padding line 33\n")
        texts = [self.workbook("hint", "02").stdout for _ in range(4)]
        self.assertIn("hint 1 of 3", texts[0])
        self.assertIn("masked lanes must lose the maximum", texts[0])
        self.assertNotIn("exercise.cuh:33", texts[0])
        self.assertIn("exercise.cuh:33", texts[1])
        self.assertIn("hint 3 of 3", texts[2])
        self.assertIn("make reveal-02", texts[2])
        self.assertEqual(texts[2], texts[3])
        self.assertIn("help 02 3", self.progress())

    def test_an_open_region_is_helped_with_first(self):
        self.workbook("start", "02")
        self.assertIn("TODO(2a)", self.workbook("hint", "02").stdout)

    def test_nothing_to_help_with(self):
        self.refused("hint", "02", says="run make exercise-02 first")


class Quiz(Folder):
    right = "b,c,c,8,c"

    def test_answers_from_the_command_line(self):
        text = self.workbook("quiz", "00", "--answers", self.right).stdout
        self.assertTrue(text.endswith("\n5 / 5 correct\nnext: make exercise-00 && ./exercise-00\n"), text)
        self.assertIn("quiz 00 5 / 5", self.progress())

    def test_a_worse_score_does_not_replace_a_better_one(self):
        self.workbook("quiz", "00", "--answers", self.right)
        text = self.workbook("quiz", "00", "--answers", "a,c,a,32,c", code=1).stdout
        self.assertTrue(text.endswith("2 / 5 correct\nnext: make quiz-00 again\n"))
        self.assertIn("quiz 00 5 / 5", self.progress())

    def test_answers_are_shown_and_may_have_a_bracket(self):
        text = self.workbook("quiz", "00", "--answers", "B),c.,c,8,c").stdout
        self.assertIn("   a to d: B)\n   right. ", text)
        self.assertIn("   a number: 8\n   right. ", text)

    def json_of(self, number):
        return json.loads(subprocess.run([WORKBOOK.parent / "questions", number], capture_output=True, text=True, env=self.env, check=True).stdout)

    def test_as_json(self):
        """What the book shows: each question once a GPU, with its key and the reason for every answer. Nothing is recorded."""
        for stage in sorted(ROOT.glob("stages/*/quiz.toml")):
            quiz = self.json_of(stage.parent.name[:2])
            self.assertEqual(quiz["stage"], stage.parent.name[:2])
            self.assertEqual([g["key"] for g in quiz["gpus"]], ["h200", "a100", "rtx4090", "mi250x", "mi300x"])
            for gpu in quiz["gpus"]:
                self.assertEqual(len(gpu["questions"]), stage.read_text().count("[[question]]"))
                for q in gpu["questions"]:
                    self.assertNotRegex(json.dumps(q), r"\{[a-z_0-9]+\}")
                    if "choices" in q:
                        self.assertEqual(sum(c["right"] for c in q["choices"]), 1)
                        self.assertTrue(all(c["reason"] for c in q["choices"]))
                    else:
                        self.assertGreater(q["number"]["within"], 0)
                        self.assertTrue(q["number"]["reason"] and q["miss"])
        wave = [g["questions"] for g in self.json_of("00")["gpus"] if g["key"] == "mi250x"][0]
        self.assertEqual([q["number"]["value"] for q in wave if q["id"] == "warps-meet"], [4])
        self.assertFalse((self.root / "progress.txt").exists())

    def test_answers_from_a_pipe(self):
        text = self.workbook("quiz", "0", input=self.right.replace(",", "\n")).stdout
        self.assertIn("\n5 / 5 correct\n", text)

    def test_the_end_of_input(self):
        text = self.workbook("quiz", "00", input="b\nnonsense\n", code=1).stdout
        self.assertIn("'nonsense' is no answer here: write a to d.", text)
        self.assertIn("ended after 1 of 5 questions: nothing was recorded", text)
        self.assertTrue(text.endswith("1 / 5 correct\n"))
        self.assertNotIn("quiz", self.progress())

    def test_interrupted(self):
        process = subprocess.Popen([str(WORKBOOK), "quiz", "00"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env, text=True)
        process.stdin.write("b\n")
        process.stdin.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertIn("Interrupted: nothing was recorded.", text)
        self.assertEqual(os.listdir(self.root), ["stages"])

    def test_the_gpu_decides_numbers(self):
        self.assertIn("64 lanes", self.workbook("quiz", "00", "--gpu", "mi250x", "--answers", "b,c,c,4,c").stdout)

    def test_every_stage_has_one_and_no_line_is_too_long(self):
        for stage in STAGES:
            for gpu in ("h200", "mi300x"):
                text = self.workbook("quiz", stage[:2], "--gpu", gpu, "--answers", "a,1," * 12, code=1).stdout
                self.assertRegex(text, r"\n\d / \d correct\nnext: make quiz-\d\d again\n$")


class Mistakes(Folder):
    def test_each_is_one_sentence(self):
        self.refused(says="A command is missing")
        self.refused("mapp", says="see --help")
        self.refused("hint", says="stage")
        self.refused("hint", "9", says="There is no stage 9: use one of 00, 01")
        self.refused("quiz", "x", says="There is no stage x")
        self.refused("quiz", "00", "--gpu", "voodoo", says="--gpu voodoo is not known: use one of h200")
        self.env["SOFTMAX_WORKBOOK"] = "/nowhere"
        self.refused("map", says="There is no workbook in /nowhere")

    def test_damaged_questions(self):
        file = self.root / "stages" / STAGES[0] / "quiz.toml"
        for text, says in (("[[question]\n", "line 1"), ("x = 1\n", "holds no"), ('[[question]]\nid = "a"\n', "question a has no ask"),
                           ('[[question]]\nid = "a"\nask = "b"\nnumber = "c"\nreason = "d"\n', "no fact is named c")):
            file.write_text(text)
            self.refused("quiz", "00", says=says)

    def test_progress_that_cannot_be_written(self):
        (self.root / "progress.txt").mkdir()
        self.refused("map", says="Cannot read")

    def test_help(self):
        text = self.workbook("--help").stdout
        for word in ("map", "doctor", "hint", "reset", "reveal", "Exit codes"):
            self.assertIn(word, text)


class Doctor(Folder):
    def test_it_is_one_screen(self):
        text = self.workbook("doctor").stdout
        for word in ("C++", "simulator", "nvcc", "hipcc", "NVIDIA GPU", "AMD GPU", "counters", "Python"):
            self.assertIn(word, text)
        self.assertLessEqual(len(text.splitlines()), 24)


class Exercise(Folder):
    """The whole way of one exercise: compiled from a file in the build folder, judged in a folder of its own."""

    program = BUILD / "bin" / "trial-exercise"
    source = BUILD / "tests" / "trial" / "exercise.cuh"

    def build(self, text):
        if text is None:
            self.source.unlink(missing_ok=True)
        else:
            self.source.write_text(text)
        self.source.parent.mkdir(exist_ok=True)
        r = subprocess.run(["cmake", "--build", str(BUILD), "--target", "trial-exercise"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout[-3000:])
        self.assertNotIn("warning:", r.stdout)
        shutil.copyfile(self.source, self.root / "stages" / STAGES[1] / "exercise.cuh")
        os.utime(self.root / "stages" / STAGES[1] / "exercise.cuh", (1, 1))

    def exercise(self, *args, code):
        r = self.run_it(self.program, "--device", "sim", *args, code=code)
        self.assertEqual(r.stdout.splitlines()[0], f"checking YOUR stages/{STAGES[1]}/exercise.cuh")
        return r.stdout

    def test_from_skeleton_to_solution(self):
        self.build(None)
        text = self.exercise(code=1).splitlines()
        self.assertEqual(len(text), 6)
        self.assertTrue(text[1].startswith("FAIL stage 01 (your code)  "))
        self.assertRegex(text[3], r"^  diagnosis: not-attempted: ")
        self.assertRegex(text[4], r"^  look at  : stages/01_three_kernels/exercise.cuh:\d+  // TODO\(1a\)")
        self.assertEqual(text[5], "  next     : make hint-01")
        self.assertIn("hint 1 of 3", self.workbook("hint", "01").stdout)

        skeleton = self.source.read_text()
        kernel = (ROOT / "stages" / STAGES[1] / "kernel.cuh").read_text()
        predicted = skeleton[skeleton.index("// Predict, then measure"):]
        right = predicted.replace("0 * M * N;  // TODO(predict)", "3 * M * N + 3 * M;", 1).replace(
            "0 * M * N;  // TODO(predict)", "M * N + 3 * M;", 1)
        self.build(kernel + right)
        text = self.exercise(code=0)
        self.assertIn("PASS stage 01", text)
        self.assertIn("warps of 32 and 64", text)
        self.assertIn("stages/01_three_kernels/kernel.cuh", text)
        self.assertIn("reads: right, 3MN+3M", text)
        self.assertIn("writes: you say MN+3M, counted MN+2M: M comes from max_rows, sum_rows", text)
        self.assertIn("exercise 01 passed with hint level 1", self.progress())
        self.assertNotIn("prediction 01", self.progress())

        os.utime(self.root / "stages" / STAGES[1] / "exercise.cuh")
        r = self.run_it(self.program, "--device", "sim", code=2)
        self.assertIn("newer than this program: run make exercise-01 first", r.stderr)

        endless = kernel.replace("      d += col < cols", "      start -= block_threads;\n      d += col < cols")
        self.assertNotEqual(endless, kernel)
        self.build(endless)
        text = self.exercise("--patience", "2", code=1)
        self.assertIn("diagnosis: endless: no end after 2 s", text)
        self.assertEqual(len(text.splitlines()), 6)

        self.build(kernel + predicted.replace("0 * M * N;  // TODO(predict)", "M / (N / 1000000);", 1))
        text = self.exercise(code=1)
        self.assertIn("PASS stage 01", text)
        self.assertRegex(text, r"reads\(\) or writes\(\) at the end of the file crashed: [^\n]*\n$")

        crash = kernel.replace("    float d = 0.0f;", "    volatile int zero = 0;\n    float d = static_cast<float>(7 / zero);")
        self.assertNotEqual(crash, kernel)
        self.build(crash)
        text = self.exercise(code=1)
        self.assertIn("diagnosis: crash: an integer division has no result", text)
        self.assertEqual(len(text.splitlines()), 6)

    def test_mistakes_on_the_command_line(self):
        if not self.program.exists():
            self.build(None)
        for args in (("--devise", "sim"), ("--device", "gpu"), ("--patience", "never")):
            r = self.run_it(self.program, *args, code=2)
            self.assertRegex(r.stderr, r"^exercise-01: .*see --help\.\n$")
        (self.root / "stages" / STAGES[1] / "exercise.cuh").unlink(missing_ok=True)
        self.assertIn("make exercise-01 makes one", self.run_it(self.program, code=2).stderr)

    def test_nothing_of_it_is_built_by_default(self):
        r = subprocess.run(["cmake", "--build", str(BUILD), "--target", "help"], capture_output=True, text=True)
        self.assertIn("exercise-01", r.stdout)
        makefile = (ROOT / "Makefile").read_text()
        self.assertRegex(makefile, r"(?m)^exercise-%:")
        self.assertRegex((ROOT / ".gitignore").read_text(), r"(?m)^/stages/\*/exercise\.cuh$")
        if (BUILD / "build.ninja").exists():
            everything = re.search(r"(?m)^build all: phony (.*)$", (BUILD / "build.ninja").read_text())[1]
            inner = re.findall(r"(?m)^build (?:stages|tests)/all: phony (.*)$", (BUILD / "build.ninja").read_text())
            for targets in [everything, *inner]:
                self.assertNotRegex(targets, r"exercise-\d\d\b|trial-exercise")


if __name__ == "__main__":
    unittest.main()
