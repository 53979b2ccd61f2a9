#!/usr/bin/env python3
"""The command line of the stages, as a user meets it: right runs, and every mistake with its sentence and exit code 2.

Run by CTest as: cli_test.py BIN_FOLDER. Needs no package beyond Python itself.
"""
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

BIN = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else Path("build/bin")
DATA = Path(__file__).resolve().parent / "data"
STAGES = sorted(p.name for p in BIN.glob("stage-[0-9][0-9]"))


def run(stage, *args, env=None, cwd=None):
    return subprocess.run([str(BIN.resolve() / stage), *map(str, args)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, **(env or {})}, timeout=120)


def npy(path, shape, descr="<f4", data=None, fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    count = 1
    for n in shape:
        count *= n
    body = struct.pack(f"<{count}f", *([0.5] * count)) if data is None else data
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body)
    return path


def read_npy(path):
    raw = path.read_bytes()
    length = struct.unpack("<H", raw[8:10])[0]
    header = eval(raw[10:10 + length].decode())
    code = {"<f4": "f", "<f2": "e"}[header["descr"]]
    values = struct.unpack(f"<{(len(raw) - 10 - length) // struct.calcsize(code)}{code}", raw[10 + length:])
    return header["shape"], values


class Runs(unittest.TestCase):
    def test_every_stage_runs_by_default_and_is_right(self):
        self.assertTrue(STAGES, f"no stage in {BIN}")
        for stage in STAGES:
            with self.subTest(stage):
                begin = time.monotonic()
                r = run(stage, "--device", "sim")
                self.assertLess(time.monotonic() - begin, 10)
                self.assertEqual(r.returncode, 0, r.stderr + r.stdout)
                self.assertIn("SIMT simulator", r.stdout.splitlines()[1])
                self.assertIn("RIGHT", r.stdout)
                self.assertIn("requested = model, byte for byte", r.stdout)
                self.assertIn("an all-zero output would get", r.stdout)
                self.assertNotIn("\x1b", r.stdout)  # a pipe gets plain text
                self.assertLessEqual(max(map(len, r.stdout.splitlines())), 120)

    def test_every_gpu_of_the_table_and_every_type(self):
        for stage in STAGES:
            for gpu, width in (("h200", 32), ("a100", 32), ("rtx4090", 32), ("mi250x", 64), ("mi300x", 64)):
                for dtype in ("f32", "f16", "bf16"):
                    r = run(stage, "--device", "sim", "--gpu", gpu, "--rows", 3, "--cols", 65, "--dtype", dtype, "--json")
                    self.assertEqual(r.returncode, 0, r.stderr)
                    self.assertEqual(json.loads(r.stdout)["device"]["warp_size"], width)

    def test_grids_are_those_of_the_chapters(self):  # T93
        """One block a row, or ceil(M / rows a block); 03 and 04 put 4 rows of 1024 columns into a block."""
        for stage in STAGES:
            rows_a_block = 4 if stage in ("stage-03", "stage-04") else 1
            r = run(stage, "--device", "sim", "--rows", 1000, "--cols", 1024, "--check", "rows:8", "--json")
            for launch in json.loads(r.stdout)["runs"][0]["simulator"]["launches"]:
                self.assertEqual((launch["grid"], launch["shared_bytes"]), (1000 // rows_a_block, 0), stage)

    def test_numbers_are_shown_with_six_digits(self):  # T94
        row = [5.4334, 3.5017, 1.1042, -4.9523, 1.7309, 2.4248, 3.0710, -2.9635, 2.5460, -1.7663, 0.5645, 12.3819, -3.1641, -3.6385,
               0.5742, -1.3508, -2.2765]
        with tempfile.TemporaryDirectory() as folder:
            x = npy(Path(folder) / "x.npy", (1, 17), data=struct.pack("<17f", *row))
            r = run(STAGES[0], "--device", "sim", "--input", x, "--output", Path(folder) / "y.npy")
            self.assertEqual(r.returncode, 0, r.stderr)
            _, y = read_npy(Path(folder) / "y.npy")
        self.assertAlmostEqual(y[0], 9.58785e-04, delta=5e-9)
        self.assertAlmostEqual(y[11], 0.998657, delta=5e-7)
        shown = re.search(r"nearest to its limit: row 0, col \d+: (\S+), want (\S+) ", r.stdout)
        for number in shown.groups():
            self.assertRegex(number, r"^\d\.\d{5,}(e[-+]\d+)?$")

    def test_several_shapes_in_one_call(self):
        r = run(STAGES[0], "--device", "sim", "--rows", "1,5", "--cols", "7,33,64", "--json")
        shapes = [(x["rows"], x["cols"]) for x in json.loads(r.stdout)["runs"]]
        self.assertEqual(shapes, [(1, 7), (1, 33), (1, 64), (5, 7), (5, 33), (5, 64)])
        self.assertTrue(all(x["pass"] for x in json.loads(r.stdout)["runs"]))

    def test_empty_matrices(self):
        for stage in STAGES:
            for rows, cols in ((0, 128), (10, 0), (0, 0)):
                r = run(stage, "--device", "sim", "--rows", rows, "--cols", cols)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertIn("an empty matrix", r.stdout)
            self.assertEqual(run(stage, "--device", "sim", "--rows", 16, "--cols", 0, "--ld-in", 4).returncode, 0)

    def test_real_input_is_verified_and_written(self):
        for stage in STAGES:
            for name in sorted(DATA.glob("*.npy")):
                with self.subTest(f"{stage} {name.name}"), tempfile.TemporaryDirectory() as folder:
                    out = Path(folder) / "y.npy"
                    r = run(stage, "--device", "sim", "--input", name, "--output", out)
                    self.assertEqual(r.returncode, 0, r.stderr + r.stdout)
                    shape, values = read_npy(out)
                    source, _ = read_npy(name)
                    self.assertEqual(shape, source)
                    for row in range(0, shape[0], 97):
                        self.assertAlmostEqual(sum(values[row * shape[1]:(row + 1) * shape[1]]), 1, places=2)
                    self.assertEqual(os.listdir(folder), ["y.npy"])

    def test_input_without_rows_or_columns_of_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            source = npy(Path(folder) / "x.npy", (2, 3, 4))
            r = run(STAGES[0], "--device", "sim", "--input", source, "--json")
            self.assertEqual([(x["rows"], x["cols"]) for x in json.loads(r.stdout)["runs"]], [(6, 4)])

    def test_json_is_strict_and_locale_free(self):
        def no_constant(name):
            raise ValueError(name)
        for dist in ("normal", "special"):
            texts = [run(STAGES[0], "--device", "sim", "--rows", 10, "--cols", 9, "--dist", dist, "--json",
                         env={"LC_ALL": locale}).stdout for locale in ("C", "de_DE.UTF-8")]
            json.loads(texts[0], parse_constant=no_constant)
            self.assertEqual(texts[0], texts[1])

    def test_bytes_in_json_follow_the_formula(self):
        for dtype, element in (("f32", 4), ("f16", 2)):
            r = run("stage-00", "--device", "sim", "--rows", 16, "--cols", 64, "--ld-in", 80, "--dtype", dtype, "--json")
            one = json.loads(r.stdout)["runs"][0]
            self.assertEqual(one["useful_bytes"], 2 * 16 * 64 * element)
            self.assertEqual(one["simulator"]["requested_read"], one["model"]["read_bytes"])

    def test_repeat_compares_bits(self):
        one = json.loads(run(STAGES[0], "--device", "sim", "--repeat", 5, "--json").stdout)["runs"][0]
        self.assertTrue(one["steady"])

    def test_no_check_runs_and_says_that_nothing_was_counted(self):
        r = run(STAGES[0], "--device", "sim", "--no-check")
        self.assertEqual(r.returncode, 0)
        self.assertNotIn("requested = model", r.stdout)
        self.assertIn("counted by the simulator", r.stdout)

    def test_empty_matrices_of_any_size_cost_nothing(self):
        for rows, cols in ((10**18, 0), (9223372036854775807, 0), (0, 4611686018427387904)):
            for stage in ("stage-00", "stage-05"):
                begin = time.monotonic()
                r = run(stage, "--device", "sim", "--rows", rows, "--cols", cols)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertLess(time.monotonic() - begin, 5)

    def test_many_host_threads(self):
        for threads in (0, 1, 3, 16):
            r = run("stage-00", "--device", "sim", "--threads", threads, "--rows", 64, "--cols", 8)
            self.assertEqual(r.returncode, 0, r.stderr)

    def test_clusters_read_and_write_once(self):
        shape = ("--device", "sim", "--rows", 8, "--cols", 65536, "--json")
        for options, kernels, reads in (([], ["reduce_parts", "normalise_parts"], 2), (["--clusters"], ["softmax_cluster"], 1)):
            counted = json.loads(run("stage-07", *shape, *options).stdout)["runs"][0]["simulator"]
            self.assertEqual([launch["kernel"] for launch in counted["launches"]], kernels)
            self.assertEqual(counted["requested_read"] // (8 * 65536 * 4), reads)
        r = run("stage-07", *shape, "--clusters", "--gpu", "mi250x")
        self.assertEqual((r.returncode, r.stdout), (2, ""))
        self.assertIn("--clusters: the AMD Instinct MI250X, one of its two dies has none; use --gpu h200", r.stderr)

    def test_an_odd_nan_in_a_file_is_an_ordinary_nan(self):
        with tempfile.TemporaryDirectory() as folder:
            data = b"\xff\xff\xff\xff" + struct.pack("<5f", 1, 2, 3, 4, 5)
            source = npy(Path(folder) / "x.npy", (2, 3), data=data)
            self.assertEqual(run("stage-01", "--device", "sim", "--input", source).returncode, 0)

    def test_a_link_stays_a_link(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "target.npy").write_text("old")
            (folder / "link.npy").symlink_to("target.npy")
            r = run("stage-00", "--device", "sim", "--rows", 2, "--cols", 2, "--output", folder / "link.npy")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertTrue((folder / "link.npy").is_symlink())
            self.assertEqual(read_npy(folder / "target.npy")[0], (2, 2))

    def test_output_that_goes_nowhere_is_no_success(self):
        with open("/dev/full", "w") as full:
            r = subprocess.run([str(BIN.resolve() / "stage-00"), "--device", "sim"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 2)
        self.assertIn("standard output", r.stderr)

    def test_pitfalls_show_what_they_promise(self):
        for stage, names in (("stage-02", ("zero-padding", "no-max", "short-block")), ("stage-03", ("one-row-a-block",)),
                             ("stage-05", ("fp16-sum",)), ("stage-06", ("own-maximum",))):
            for name in names:
                for gpu in ("h200", "mi250x"):
                    r = run(stage, "--device", "sim", "--gpu", gpu, "--pitfall", name)
                    self.assertEqual(r.returncode, 0, f"{stage} {name}\n{r.stdout}{r.stderr}")
                    self.assertIn(name, r.stdout)
                    if name != "one-row-a-block":
                        self.assertIn("kernel  RIGHT", r.stdout)
                        self.assertIn("mistake WRONG", r.stdout)
            self.assertIn("SKIP", run(stage, "--device", "sim", "--pitfall", "timing-the-allocator").stdout)

    def test_the_tuner_ranks_by_a_model_and_says_so(self):
        for gpu in ("h200", "mi250x"):
            r = run("stage-04", "--device", "sim", "--gpu", gpu, "--tune", "--rows", 64, "--cols", "32,781,4096")
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertEqual(r.stdout.count("ranked by a model"), 3)
            self.assertEqual(r.stdout.count("best: "), 3)
            self.assertNotIn("WRONG", r.stdout)
            result = json.loads(run("stage-04", "--device", "sim", "--gpu", gpu, "--tune", "--rows", 8, "--cols", 100, "--json").stdout)
            self.assertFalse(result["timed"])
            self.assertEqual(result["tuned"][0]["rule"]["rows"], 8)

    def test_the_rules_for_rows_and_warps(self):
        for gpu, width in (("h200", 32), ("mi250x", 64)):
            for cols in (1, 32, 512, 513, 781, 1024, 1025, 2048, 2049, 8192, 8193, 16384):
                rows = 8 if cols <= 512 else 4 if cols <= 1024 else 2 if cols <= 2048 else 1  # 4096 / N in powers of two
                self.assertLessEqual(rows, max(1, 4096 // cols))
                warps = 4 if cols <= 2048 else 8 if cols <= 8192 else 16
                for stage, threads in (("stage-02", None), ("stage-03", 256), ("stage-04", warps * width)):
                    r = run(stage, "--device", "sim", "--gpu", gpu, "--rows", 13, "--cols", cols, "--json")
                    launch = json.loads(r.stdout)["runs"][0]["simulator"]["launches"][0]
                    if threads is None:
                        self.assertEqual((launch["grid"], launch["block"]), (13, 256))
                    else:
                        self.assertEqual((launch["grid"], launch["block"]), (-(-13 // rows), threads), f"{stage} {gpu} {cols}")

    def test_plans_can_be_chosen(self):
        for warps, rows in ((1, 1), (2, 4), (32, 8)):
            r = run("stage-04", "--device", "sim", "--warps", warps, "--rows-per-block", rows, "--rows", 13, "--cols", 200)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_the_profile_adds_up_to_the_counts_of_the_launch(self):
        shape = ("--device", "sim", "--rows", 5, "--cols", 130)
        for stage in STAGES:
            for gpu in ("h200", "mi250x"):
                totals = json.loads(run(stage, *shape, "--gpu", gpu, "--json").stdout)["runs"][0]["simulator"]["launches"]
                profile = json.loads(run(stage, *shape, "--gpu", gpu, "--profile=json").stdout)["runs"][0]
                self.assertTrue(profile["pass"])
                self.assertEqual(len(totals), len(profile["launches"]))
                for total, launch in zip(totals, profile["launches"]):
                    for kind in ("global_load", "global_store", "shared_load", "shared_store"):
                        for count, value in total[kind].items():
                            self.assertEqual(sum(line[kind][count] for line in launch["lines"]), value, f"{stage} {kind} {count}")
                    costs = [line["cost"] for line in launch["lines"]]
                    self.assertEqual(costs, sorted(costs, reverse=True))
                    for line in launch["lines"]:
                        self.assertTrue(line["file"].startswith(("stages/", "common/kernels/")), line["file"])
                        self.assertTrue(line["source"])

    def test_the_profile_fits_a_terminal_and_shows_the_source(self):
        for stage in STAGES:
            r = run(stage, "--device", "sim", "--profile", "--rows", 64)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertLessEqual(max(map(len, r.stdout.splitlines())), 100)
            for words in (".cuh:", "occupancy", "Little's law", "barriers and", "misaligned: ", "conflicts"):
                self.assertIn(words, r.stdout)
            self.assertNotIn("\x1b", r.stdout)
        r = run("stage-02", "--device", "sim", "--profile", "--rows", 64)
        self.assertIn("a thread passes 4 barriers and 10 shuffles", r.stdout)
        self.assertIn("out[col] = static_cast<T>", r.stdout)
        self.assertIn("broadcast: ", r.stdout)
        aligned = run("stage-02", "--device", "sim", "--profile", "--rows", 64, "--cols", 1024).stdout
        self.assertNotIn("misaligned", aligned)
        self.assertIn("loaded again: ", run("stage-05", "--device", "sim", "--profile", "--rows", 4).stdout)
        pieces = re.sub(r"\s+", " ", run("stage-06", "--device", "sim", "--profile", "--rows", 64, "--cols", 33).stdout)
        self.assertIn("a request touches 17.0 sectors where 15.0 would do", pieces)  # four rows, two of which begin inside a sector

    def test_the_profile_does_without_the_source(self):
        r = run("stage-02", "--device", "sim", "--profile", "--rows", 4, env={"SOFTMAX_SOURCES": "/nowhere"})
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("kernel.cuh:", r.stdout)
        self.assertNotIn("static_cast", r.stdout)

    def test_the_annotated_source_is_one_whole_file(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "report.html"
            r = run("stage-00", "--device", "sim", f"--profile=html:{page}", "--rows", 8)
            self.assertEqual(r.returncode, 0, r.stderr)
            text = page.read_text()
            self.assertEqual(os.listdir(folder), ["report.html"])
            self.assertTrue(text.startswith("<!doctype html>") and text.endswith("</html>\n"))
            self.assertNotRegex(text, "https?:|src=|<script|<link")
            self.assertIn("prefers-color-scheme: dark", text)
            self.assertIn("__global__ void", text)
            self.assertIn("template &lt;int WarpSize", text)

    def test_a_trace_shows_the_reduction(self):
        for gpu, width in (("h200", 32), ("mi250x", 64)):
            r = run("stage-01", "--device", "sim", "--gpu", gpu, "--trace", "row=3,warp=1", "--rows", 5, "--cols", 600, "--json")
            launch = json.loads(r.stdout)["runs"][0]["launches"][0]
            self.assertEqual((launch["kernel"], launch["block"], launch["warp_of_block"]), ("max_rows", 3, 1))
            shuffles = [s for s in launch["steps"] if s["what"] == "shuffle"]
            self.assertEqual([s["exchange"] for s in shuffles], [f"xor {width >> i}" for i in range(1, width.bit_length())])
            for step, after in zip(shuffles, shuffles[1:]):
                mask = int(step["exchange"].split()[1])
                self.assertEqual(after["given"], [max(v, step["given"][lane ^ mask]) for lane, v in enumerate(step["given"])])
            self.assertEqual([s["what"] for s in launch["steps"]][-2:], ["barrier", "barrier"])

    def test_a_trace_fits_a_terminal(self):
        for stage in STAGES:
            for gpu in ("h200", "mi250x"):
                r = run(stage, "--device", "sim", "--gpu", gpu, "--trace", "--rows", 4, "--cols", 300, "--dist", "mixed")
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertLessEqual(max(map(len, r.stdout.splitlines())), 100)
                self.assertIn("shuffle xor", r.stdout)
                self.assertEqual("two values" in r.stdout, stage == "stage-05")

    def test_help(self):
        r = run(STAGES[0], "--help")
        self.assertEqual(r.returncode, 0)
        for word in ("--rows", "--dist", "Examples:", "mi250x", "Exit codes"):
            self.assertIn(word, r.stdout)
        for stage in STAGES:  # each value has a name of its own, or the words it may be
            self.assertNotRegex(run(stage, "--help").stdout, r"\b(TEXT|INT|FLOAT|UINT)\b")

    def test_auto_says_why_there_is_no_gpu(self):
        r = run(STAGES[0], "--rows", 4, "--cols", 4, env={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(r.returncode, 0)
        self.assertRegex(r.stdout, "SIMT simulator")


class Mistakes(unittest.TestCase):
    """Each is one sentence on stderr, exit code 2, and nothing on stdout."""

    def refused(self, *args, says, **options):
        for stage in STAGES:
            with self.subTest(f"{stage} {args}"):
                r = run(stage, *args, **options)
                self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
                self.assertEqual(r.stdout, "")
                self.assertEqual(len(r.stderr.strip().splitlines()), 1, r.stderr)
                self.assertTrue(r.stderr.startswith(stage + ": "), r.stderr)
                self.assertTrue(r.stderr.strip().endswith("."), r.stderr)
                self.assertRegex(r.stderr, says)

    def test_options(self):
        self.refused("--rowz", 5, says="--rowz is no option of this program: see --help")
        self.refused("7", says="7 is no option")
        self.refused("--rows", says="--rows")
        self.refused("--rows", "-1", says="--rows -1 is out of range: use 0 to")
        self.refused("--cols", "-5", says="--cols -5 is out of range")
        self.refused("--rows", "ten", says="--rows ten is no whole number")
        self.refused("--rows", "1.5", says="no whole number")
        self.refused("--rows", "5x", says="no whole number")
        self.refused("--rows", "", says="no whole number|--rows")
        self.refused("--rows", "1,,2", says="no whole number|--rows")
        self.refused("--rows", "99999999999999999999", says="does not fit in 64 bits")
        self.refused("--dtype", "fp64", says="--dtype fp64 is not known: use f32, f16 or bf16")
        self.refused("--dist", "gauss", says="--dist gauss is not known: use one of mixed")
        self.refused("--dist", "const:x", says="needs a number")
        self.refused("--check", "none", says="--check none is not known")
        self.refused("--check", "rows:0", says="out of range")
        self.refused("--repeat", 0, says="--repeat 0 is out of range")
        self.refused("--seed", "x", says="--seed x is no whole number")
        self.refused("--device", "gpu", says="--device gpu is not known: use auto, cuda, hip or sim")
        self.refused("--gpu", "voodoo", says="--gpu voodoo is not known: use one of h200")
        self.refused("--threads", "-2", says="out of range")
        self.refused("--threads", "17", says="out of range: use 0 to 16")
        self.refused("--offset", "-1", says="out of range")

    def test_shapes(self):
        sim = ("--device", "sim")
        self.refused(*sim, "--rows", 4, "--cols", 8, "--ld-in", 7, says="--ld-in 7 is below the 8 columns")
        self.refused(*sim, "--rows", 4, "--cols", 8, "--ld-in", 0, says="--ld-in 0 is below the 8 columns")
        self.refused(*sim, "--rows", 4, "--cols", 8, "--ld-out", 0, says="--ld-out 0 is below the 8 columns")
        self.refused(*sim, "--rows", 4, "--cols", 8, "--ld-out", "-8", says="out of range")
        self.refused(*sim, "--rows", 10000000, "--cols", 1000, says="needs .* GB .* free: use fewer --rows or --cols")
        self.refused(*sim, "--rows", 4611686018427387904, "--cols", 4, says="64 bits|64-bit")
        self.refused(*sim, "--rows", 9223372036854775807, "--cols", 9223372036854775807, says="64 bits|64-bit|use stage 0[57]")
        self.refused(*sim, "--rows", 9223372036854775807, "--cols", 1, says="64 bits|64-bit")
        self.refused(*sim, "--rows", 3, "--cols", 1, "--ld-in", 9223372036854775807, says="64 bits|64-bit")
        self.refused(*sim, "--rows", 2305843009213693951, "--cols", 1, says="GB|64")

    def test_input_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text = folder / "text.npy"
            text.write_text("1 2 3")
            cut = npy(folder / "cut.npy", (100, 100), data=b"1234")
            ints = npy(folder / "ints.npy", (2, 2), descr="<i8", data=b"0" * 32)
            fortran = npy(folder / "fortran.npy", (2, 2), fortran=True)
            good = npy(folder / "good.npy", (2, 2))
            self.refused("--input", folder / "none.npy", says="Cannot read --input .*none.npy: No such file")
            self.refused("--input", folder, says="directory")
            self.refused("--input", text, says="no .npy file")
            self.refused("--input", cut, says="truncated")
            self.refused("--input", ints, says="'<i8'; convert it")
            self.refused("--input", fortran, says="Fortran")
            self.refused("--input", good, "--rows", 5, says="brings its own shape")
            self.refused("--input", "", says="--input|Cannot read")

    def test_output_files(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.refused("--output", folder / "none" / "y.npy", says="no directory .*none")
            self.refused("--output", folder, says="directory")
            self.refused("--output", folder / "y.npy", "--rows", "1,2", says="one matrix")
            self.assertEqual(os.listdir(folder), [])

    def test_outputs_that_are_no_files_stay_as_they_are(self):
        with tempfile.TemporaryDirectory() as name:
            pipe = Path(name) / "pipe"
            os.mkfifo(pipe)
            self.refused("--output", pipe, says="device or a pipe")
            self.refused("--input", pipe, says="no regular file")
            self.assertTrue(pipe.is_fifo())
        self.refused("--output", "/dev/null", says="device or a pipe")

    def test_pitfalls_and_plans(self):
        self.refused("--pitfall", "nonsense", "--device", "sim", says="--pitfall nonsense is not known to stage")
        self.refused("--rows", 1, "--rows", 2, says="--rows needs exactly one value")
        for args, says in ((("--warps", 3), "no power of two"), (("--warps", 64), "out of range"), (("--rows-per-block", 9), "out of range"),
                           (("--warps", 1, "--rows-per-block", 8), "fewer than 8 threads"), (("--warps", 1, "--cols", 4000), "does not fit"),
                           (("--warps", 32, "--gpu", "mi250x"), "1024"), (("--warps", 1, "--cols", 1000), "does not fit"),
                           (("--rows-per-block", 8, "--cols", 4096), "does not fit"), (("--warps", 1, "--cols", 33), "fewer than 8 threads"),
                           (("--tune", "--warps", 4), "leave out --warps"), (("--tune", "--output", "y.npy"), "leave out --output"),
                           (("--tune", "--pitfall", "no-max"), "leave out --tune"),
                           (("--pitfall", "timing-the-allocator", "--json"), "leave out --json")):
            r = run("stage-04", "--device", "sim", *args)
            self.assertEqual(r.returncode, 2, f"{args} {r.stdout}")
            self.assertRegex(r.stderr, says)

    def test_profiles_and_traces(self):
        sim = ("--device", "sim", "--rows", 4, "--cols", 8)
        self.refused(*sim, "--profile=xml", says="--profile=xml is not known: use text, json, or html:FILE")
        self.refused(*sim, "--profile=html:", says="needs a path")
        self.refused(*sim, "--profile=html:/nowhere/report.html", says="Cannot write --profile=html: /nowhere/report.html: there is no directory")
        self.refused(*sim, "--profile", "--no-check", says="leave out --no-check")
        self.refused(*sim, "--profile", "--trace", says="leave out --trace")
        self.refused(*sim, "--profile", "--output", "y.npy", says="leave out --output")
        self.refused(*sim, "--trace", "--repeat", 2, says="leave out --repeat")
        self.refused(*sim, "--trace", "line=1", says="--trace line=1 is not known: write row=R,warp=W")
        self.refused(*sim, "--trace", "row=x", says="--trace row= x is no whole number")
        self.refused(*sim, "--trace", "row=4", says="--trace row=4 is out of range: use 0 to 3")
        self.refused(*sim, "--trace", "row=-1", says="out of range")
        self.refused(*sim, "--trace", "warp=40", says="out of range: use 0 to 31")
        self.refused(*sim, "--trace", "row=1,warp=7", says="--trace warp=7 is out of range: .* works on row 1 with 1 warp, so use 0")
        self.refused("--device", "sim", "--rows", 0, "--trace", says="--trace needs a row")
        r = run("stage-02", "--device", "sim", "--pitfall", "no-max", "--profile")
        self.assertEqual(r.returncode, 2)

    def test_a_gpu_that_is_not_there(self):
        hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
        for device in ("cuda", "hip"):
            self.refused("--device", device, env=hidden, says="run on the simulator with --device sim")

    def test_nothing_is_written_when_the_run_is_refused(self):
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "y.npy"
            self.refused("--device", "sim", "--rows", 4, "--cols", 8, "--ld-in", 7, "--output", out, says="--ld-in 7")
            self.assertFalse(out.exists())

    def test_interrupt_leaves_no_file(self):
        with tempfile.TemporaryDirectory() as name:
            process = subprocess.Popen([str(BIN.resolve() / STAGES[0]), "--device", "sim", "--rows", "20000", "--cols", "1000",
                                        "--output", str(Path(name) / "y.npy")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
            self.assertNotEqual(process.returncode, 0)
            self.assertEqual(os.listdir(name), [])


@unittest.skipUnless("cuda" in os.environ.get("SOFTMAX_BACKENDS", ""), "built without CUDA")
class OldDriver(unittest.TestCase):
    """A driver older than the toolkit, played by a library that reports CUDA 11.4."""

    def test_it_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "libcuda.c"
            source.write_text("""#define _GNU_SOURCE
                #include <dlfcn.h>
                int cuInit(unsigned f) { return 0; }
                int cuDriverGetVersion(int *v) { *v = 11040; return 0; }
                int cuGetProcAddress_v2(const char *s, void **p, int v, unsigned long f, void *q) {
                  *p = dlsym(RTLD_DEFAULT, s); return *p ? 0 : 500; }
                int cuGetProcAddress(const char *s, void **p, int v, unsigned long f) {
                  return cuGetProcAddress_v2(s, p, v, f, 0); }
                int cuGetExportTable(void **t, void *id) { return 500; }
                """)
            built = subprocess.run(["cc", "-shared", "-fPIC", "-o", str(Path(name) / "libcuda.so.1"), str(source)])
            self.assertEqual(built.returncode, 0)
            r = run(STAGES[0], "--device", "cuda", env={"LD_LIBRARY_PATH": name})
            self.assertEqual(r.returncode, 2, r.stdout + r.stderr)
            self.assertRegex(r.stderr, "driver supports version 11.4, but this program was built with toolkit")


if __name__ == "__main__":
    unittest.main()
