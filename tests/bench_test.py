#!/usr/bin/env python3
"""The benchmark programs and the scripts around them, on the simulator: counts and no times, and every mistake with its
sentence and exit code.

Run by CTest as: bench_test.py BIN_FOLDER. Needs no package beyond Python itself.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = (Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build/bin").resolve()
PROGRAMS = sorted(p.name for p in BIN.glob("bench-[0-9][0-9]"))
SMALL = ("--dtype", "f32,bf16", "--rows", "5", "--cols", "33,1024")


def call(command, env=None):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(env or {})})


def strict(text):
    def no_constant(name):
        raise ValueError(name)
    return json.loads(text, parse_constant=no_constant)


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def measure(self, program, *args, env=None, code=0):
        """The benchmarks of a run on the simulator."""
        out = self.folder / "out.json"
        to = (f"--benchmark_out={out}", "--benchmark_out_format=json")
        r = call([BIN / program, "--device", "sim", *args, *to], env)
        self.assertEqual(r.returncode, code, r.stderr)
        return strict(out.read_text())

    def bin_with(self, **links):
        """A folder of programs: name -> the program behind it."""
        place = self.folder / "bin"
        place.mkdir()
        for name, behind in links.items():
            (place / name.replace("_", "-")).symlink_to(BIN / behind)
        return place

    def one_sentence(self, r, code, says):
        self.assertEqual(r.returncode, code, r.stderr)
        self.assertRegex(r.stderr, says)
        self.assertEqual(len(r.stderr.strip().splitlines()), 1, r.stderr)
        self.assertTrue(r.stderr.rstrip().endswith("."), r.stderr)


class Programs(Folder):
    def test_every_program_counts_and_takes_no_time(self):
        self.assertTrue(PROGRAMS, f"no benchmark in {BIN}")
        for program in PROGRAMS:
            with self.subTest(program):
                data = self.measure(program, *SMALL)
                self.assertEqual(data["context"]["backend"], "sim")
                self.assertEqual(data["context"]["program"], program)
                self.assertEqual([e["run_name"].split("/iterations")[0] for e in data["benchmarks"]],
                                 [f"stage-{program[-2:]}/dtype:{d}/rows:5/cols:{n}" for d in ("f32", "bf16")
                                  for n in (33, 1024)])
                for e in data["benchmarks"]:
                    self.assertNotIn("error_occurred", e)
                    self.assertEqual(e["real_time"], 0)
                    self.assertNotIn("bytes_per_second", e)
                    self.assertNotIn("of_copy", e)
                    self.assertEqual(e["requested_bytes"], e["model_bytes"])
                    self.assertGreaterEqual(e["sector_bytes"], e["requested_bytes"])
                    self.assertGreaterEqual(e["launches"], 1)
                    self.assertTrue(0 < e["occupancy"] <= 1)

    def test_bytes_per_call(self):
        data = self.measure("bench-02", "--dtype", "f32,f16,bf16", "--rows", "1024", "--cols", "4096")
        self.assertEqual([e["bytes_per_call"] for e in data["benchmarks"]], [33554432, 16777216, 16777216])

    def test_every_width_in_every_size(self):
        data = self.measure("bench-02", "--dtype", "f32", "--cols", "8,64", "--elements", "32,256")
        self.assertEqual([(e["rows"], e["cols"]) for e in data["benchmarks"]], [(4, 8), (32, 8), (1, 64), (4, 64)])
        data = self.measure("bench-02", "--dtype", "f32", "--cols", "64", "--elements", "32,64")
        self.assertEqual([(e["rows"], e["cols"]) for e in data["benchmarks"]], [(1, 64)])

    def test_neither_time_nor_locale_changes_a_number(self):
        locale = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
        if call(["sh", "-c", f"localedef -i de_DE -f UTF-8 {self.folder}/de_DE.UTF-8"]).returncode == 0:
            locale["LOCPATH"] = str(self.folder)
        runs = [self.measure("bench-01", *SMALL, f"--benchmark_min_time={t}", env=env)["benchmarks"]
                for t, env in (("0.01", None), ("1", None), ("0.01", locale))]
        for e in (e for r in runs for e in r):
            e.pop("cpu_time")
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_a_point_that_is_too_wide_is_an_error_beside_the_others(self):
        data = self.measure("bench-02", "--dtype", "f32", "--rows", "1", "--cols", "32,65536,64")
        self.assertEqual([e.get("error_occurred", False) for e in data["benchmarks"]], [False, True, False])
        self.assertIn("takes at most", data["benchmarks"][1]["error_message"])
        self.assertEqual(data["benchmarks"][2]["requested_bytes"], 2 * 64 * 4)

    def test_mistakes(self):
        for args, says in ((("--set", "x"), "--set x is not known: use ladder"),
                           (("--lie", "x"), "--lie x is not known: use one of allocate"),
                           (("--lie", "zeros"), "--lie needs a GPU"),
                           (("--dtype", "f64"), "--dtype f64 is not known: use f32"),
                           (("--device", "x"), "--device x is not known: use auto"),
                           (("--gpu", "x"), "--gpu x is not known"),
                           (("--rows", "4"), "--rows needs --cols"),
                           (("--rows", "1,2,3", "--cols", "1,2"), "--rows and --cols go in pairs"),
                           (("--cols", "0"), "--cols 0 is no list of whole numbers"),
                           (("--rows", "2", "--cols", "8", "--elements", "32"), "--elements is for --cols without --rows"),
                           (("--cols", "8", "--elements", "1,x"), "--elements 1,x is no list of whole numbers"),
                           (("--nonsense",), "--nonsense is no option")):
            with self.subTest(args):
                device = () if "--device" in args else ("--device", "sim")
                r = call([BIN / "bench-00", *device, *args])
                self.one_sentence(r, 2, f"^bench-00: {says}")
                self.assertEqual(r.stdout, "")

    def test_a_filter_that_leaves_nothing(self):
        r = call([BIN / "bench-00", "--device", "sim", "--benchmark_filter=nothing"])
        self.assertEqual(r.returncode, 2)
        self.assertEqual(r.stderr.strip().splitlines()[-1], "bench-00: --benchmark_filter leaves nothing to run.")


class Scripts(Folder):
    def run_all(self, place, *args):
        return [sys.executable, str(ROOT / "bench" / "run.py"), "--bin", str(place), "--out", str(self.folder / "out"),
                "--device", "sim", *([] if "--study" in args else ["--quick"]), *args]

    def test_run_ends_with_the_files_it_wrote(self):
        place = self.bin_with(bench_02="bench-02", bench_03="bench-03", stage_00="stage-00")
        r = call(self.run_all(place, "--dtype", "f32"))
        self.assertEqual(r.returncode, 0, r.stderr)
        files = [Path(line) for line in r.stdout.splitlines()]
        self.assertEqual([f.name for f in files], ["bench-02.json", "bench-03.json"])
        for f in files:
            self.assertTrue(strict(f.read_text())["benchmarks"])
        self.assertEqual(sorted(p.name for p in (self.folder / "out").iterdir()), [f.name for f in files])

    def test_run_says_what_is_missing(self):
        (self.folder / "empty").mkdir()
        self.one_sentence(call(self.run_all(self.folder / "empty")), 2, "^run: there is no benchmark program in .*")
        (self.folder / "out").write_text("a file, and no folder")
        place = self.bin_with(bench_02="bench-02", stage_00="stage-00")
        self.one_sentence(call(self.run_all(place)), 2, "^run: cannot write to .*out: File exists")

    def test_studies_have_folders_of_their_own(self):
        """Programs that say they run on a GPU stand for those that do."""
        place = self.bin_with()
        def write(name, text):
            (place / name).write_text(f"#!/bin/sh\n{text}\n")
            (place / name).chmod(0o755)
        write("stage-00", """echo '{"device": {"simulated": false}}'""")
        for number in ("06", "07"):
            write(f"bench-{number}", f"""echo "$@" >> {self.folder}/told-{number}
for a; do case $a in --benchmark_out*|--benchmark_list*) kept="$kept $a";; esac; done
exec {BIN}/bench-{number} --device sim --dtype f32 --rows 2 --cols 40 $kept""")
        r = call(self.run_all(place, "--study", "narrow,between,narrow", "--dtype", "f32"))
        self.assertEqual(r.returncode, 0, r.stderr)
        files = [Path(line).relative_to(self.folder) for line in r.stdout.splitlines()]
        self.assertEqual([str(f) for f in files], ["out-narrow/bench-06.json", "out-between/bench-06.json", "out-between/bench-07.json"])
        for f in files:
            self.assertTrue(strict((self.folder / f).read_text())["benchmarks"])
        self.assertFalse((self.folder / "out").exists())
        told = (self.folder / "told-07").read_text()
        self.assertIn("--dtype f32 --cols 2047,", told)
        self.assertIn("--benchmark_repetitions=11", told)

    def test_studies_that_cannot_be(self):
        place = self.bin_with(bench_06="bench-06", stage_00="stage-00")
        self.one_sentence(call(self.run_all(place, "--study", "x")), 2, "^run: --study x is not known: use narrow, between, sizes")
        self.one_sentence(call(self.run_all(place, "--study", "between")), 2, "^run: there is no bench-07 in .*")
        self.one_sentence(call(self.run_all(place, "--study", "narrow")), 2, "^run: --study needs a GPU: the simulator takes no times")
        self.one_sentence(call(self.run_all(place, "--study", "narrow", "--quick")), 2, "^run: --study measures what it is made of")
        self.assertEqual(list(self.folder.glob("out*")), [])

    def test_interrupted_runs_keep_what_is_finished(self):
        place = self.bin_with(bench_02="bench-02", bench_09="bench-00", stage_00="stage-00")
        process = subprocess.Popen(self.run_all(place, "--dtype", "f32"), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        first = self.folder / "out" / "bench-02.json"
        late = time.monotonic() + 60
        while not first.exists() and time.monotonic() < late:
            time.sleep(0.02)
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the script and the program it runs
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertNotIn("Traceback", error)
        self.assertIn(str(first), out.splitlines())
        for line in out.splitlines():
            for e in strict(Path(line).read_text())["benchmarks"]:
                self.assertNotEqual(e.get("error_message"), "interrupted")
        self.assertEqual(len(strict(first.read_text())["benchmarks"]), 7)
        self.assertEqual([p.name for p in (self.folder / "out").glob("*.unfinished")], [])

    def test_peers_without_pytorch(self):
        (self.folder / "torch.py").write_text("raise ImportError('not here')\n")
        r = call([sys.executable, ROOT / "bench" / "peers.py", "--out", self.folder / "peers.json"],
                 {"PYTHONPATH": str(self.folder)})
        self.one_sentence(r, 77, "^peers: PyTorch with a GPU is not here")
        self.assertFalse((self.folder / "peers.json").exists())

    @unittest.skipUnless((ROOT / "build" / "bin" / "stage-00").exists(), "stage-00 is not in build/bin")
    def test_counters_without_permission(self):
        ncu = self.folder / "ncu"
        ncu.write_text("#!/bin/sh\necho '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission.'\nexit 1\n")
        ncu.chmod(0o755)
        r = call([sys.executable, ROOT / "bench" / "counters.py", "stage-00", "--rows", "4", "--cols", "32", "--json",
                  self.folder / "c.json"], {"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.one_sentence(r, 3, "does not permit GPU counters .ERR_NVGPUCTRPERM.")
        self.assertEqual(r.stdout, "")
        self.assertFalse((self.folder / "c.json").exists())


# Nsight Compute and cuobjdump for stage-01: what the simulator counts, but for the loads of sum_rows, which are merged as in
# the machine code below (LOADS), and behind a branch.
COUNTERS_NCU = r"""#!/usr/bin/env python3
import json, os, subprocess, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
names = option("--metrics").split(",")
at = next(i for i, a in enumerate(sys.argv) if a.endswith("stage-01"))
command = ["sim" if a == "cuda" else a for a in sys.argv[at:] if a != "--no-time"]
rows = ['"ID","Kernel Name",' + ",".join('"%s"' % n for n in names), '"","",' + ",".join('""' for n in names)]
launches = [l for r in json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["runs"] for l in r["simulator"]["launches"]]
for i, l in enumerate(launches):
    def count(name):
        group = l[("shared_" if "shared" in name else "global_") + ("load" if name.endswith("_ld.sum") else "store")]
        if "dram" in name:
            return 0
        if l["kernel"] == "sum_rows" and name.endswith("_ld.sum") and "shared" in name:
            rows = l["barriers"] // 4
            return {"inst": 10, "wavefronts": 12}["inst" if "inst" in name else "wavefronts"] * rows if "conflicts" not in name else 0
        if "inst" in name:
            return group["requests"]
        if l["kernel"] == os.environ.get("FAKE_COUNTS") and "smsp" in name:
            return 3
        return group[next(k for k in ("requests", "sectors", "wavefronts", "conflicts") if k in name).replace("conf", "bank_conf")]
    rows.append('"%d","_Z%s"' % (i, l["kernel"]) + "".join(',"%s"' % format(count(n), ",") for n in names))
assert option("--print-kernel-base") == "mangled"
open(option("--log-file"), "w").write("==PROF== Connected\n" + "\n".join(rows) + "\n")
"""
LOADS = ("        /*0020*/              @!P5 STS [UR4], R4 ;  /* 0x1 */", "        /*0030*/                   LDS R16, [UR4] ;  /* 0x1 */",
         "        /*0040*/               @P5 BRA 0x70 ;  /* 0x1 */", "        /*0050*/                   LDS.128 R4, [R14] ;  /* 0x1 */",
         "        /*0060*/                   LDS.128 R8, [R14+0x10] ;  /* 0x1 */", "        /*0070*/                   EXIT ;  /* 0x1 */")
PLAIN = ("        /*0030*/                   LDS R16, [UR4] ;  /* 0x1 */", "        /*0070*/                   EXIT ;  /* 0x1 */")


@unittest.skipUnless((BIN / "stage-01").exists(), f"stage-01 is not in {BIN}")
class SharedCounters(Folder):
    """bench/counters.py --shared against tools that print what NVIDIA's print."""

    def check(self, code, sass, **environment):
        place = self.folder / "tools"
        place.mkdir()
        smi = "#!/bin/sh\ncase $1 in *compute_cap*) echo 9.0;; *) echo 'NVIDIA H200, 580.1, 1, 2, 3, 4, 700.00 W';; esac\n"
        older = "\tcode for sm_80\n\t\tFunction : _Zsum_rows\n" + "\n".join(PLAIN)
        text = older + "\n\tcode for sm_90\n\t\tFunction : _Zsum_rows\n" + "\n".join(sass)
        for name, script in (("ncu", COUNTERS_NCU), ("nvidia-smi", smi), ("cuobjdump", f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")):
            (place / name).write_text(script)
            (place / name).chmod(0o755)
        r = call([sys.executable, ROOT / "bench" / "counters.py", "stage-01", "--bin", BIN, "--rows", "5", "--cols", "33,781", "--shared",
                  "--quiet", "--json", self.folder / "c.json"], {"PATH": f"{place}:{os.environ['PATH']}", **environment})
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        return [x for result in strict((self.folder / "c.json").read_text())["results"] for x in result["launches"]], r.stdout

    def test_the_machine_code_explains(self):
        launches, said = self.check(0, LOADS)
        self.assertIn("34 of 36 counts are equal, 2 differ as the machine code explains, 0 are unexplained", said)
        code = next(x for x in launches if x["kernel"] == "sum_rows")
        self.assertEqual(code["shared_code"], {"arch": "sm_90", "instructions": {"STS": 1, "LDS": 1, "LDS.128": 2},
                                               "behind_a_branch": {"STS": 1, "LDS.128": 2}})
        self.assertEqual(code["sh_ld"], {"verdict": "explained", "why": "merged into LDS.128; behind a branch, run by fewer warps"})
        self.assertEqual({x["sh_st"]["verdict"] for x in launches}, {"equal"})

    def test_the_machine_code_does_not_explain(self):
        """Neither wide loads nor a branch; or no kernel of that name."""
        launches, said = self.check(1, PLAIN, FAKE_COUNTS="normalise")
        self.assertIn("30 of 36 counts are equal, 0 differ as the machine code explains, 6 are unexplained", said)
        self.assertEqual({x["sh_ld"]["verdict"] for x in launches if x["kernel"] != "max_rows"}, {"unexplained"})
        self.assertIn("its machine code was not found", said)


# What NVIDIA's tools print, as far as bench/wrong_kernels_gpu.py reads it. The first line of each report says what is wrong.
COMPUTE_SANITIZER = r"""#!/usr/bin/env python3
import os, sys, time
if sys.argv[1] == "--version":
    print("NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1"); sys.exit()
if sys.argv[1] == "--help":
    print("  --tool arg", os.environ.get("FAKE_HELP", "")); sys.exit()
tool, kernel = sys.argv[sys.argv.index("--tool") + 1], sys.argv[-1]
where = "(const float *, float *)+0x90 in /src/tests/wrong_kernels/"
race = ["Error: Race reported between Write access at missing_barrier_wrong<(int)32>" + where + "races.cuh:11",
        "    and Read access at missing_barrier_wrong<(int)32>" + where + "races.cuh:13 [1792 hazards]"]
access = lambda head, line, address: [head, "    at " + kernel + where + "memory.cuh:" + str(line), "    by thread (0,0,0) in block (1,0,0)", address]
outside = "    Address 0x7f21ac0007d0 is out of bounds"
barrier = lambda line: ["Barrier error detected. Divergent thread(s) in block.", "    at " + kernel + where + "barriers.cuh:" + str(line)]
says = {("racecheck", "missing_barrier_wrong"): race,
        ("racecheck", "reused_array_wrong"): ["Warning: Race reported between Read access at x+0x1 in races.cuh:33"],
        ("racecheck", "warp_in_step_wrong"): ["Warning: Race reported between Read access at x+0x1 in races.cuh:68"],
        ("synccheck", "early_return_wrong"): barrier(22) if os.environ.get("FAKE_BARRIER") else [],
        ("memcheck", "off_by_one_wrong"): access("Invalid __global__ read of size 4 bytes", 9, outside),
        ("initcheck", "unwritten_workspace_wrong"): access("Uninitialized __global__ memory read of size 4 bytes", 43, "    Address 0x7f21ac000200"),
        ("memcheck", "shared_index_wrong"): access("Invalid __shared__ write of size 4 bytes", 53, outside),
        ("memcheck", "misaligned_rows_wrong"): access("Invalid __global__ read of size 16 bytes", 77, "    Address 0x7f21ac000204 is misaligned"),
        ("memcheck", "released_buffer_wrong"): access("Invalid __global__ read of size 4 bytes", 87, outside),
        ("memcheck", "host_buffer_wrong"): access("Invalid __global__ read of size 4 bytes", 87, outside)}
found = says.get((tool, kernel), [])
if kernel == os.environ.get("FAKE_SILENT"):
    found = []
if kernel == os.environ.get("FAKE_HANG"):
    print("========= COMPUTE-SANITIZER", flush=True)
    time.sleep(60)
print("========= COMPUTE-SANITIZER\n" + kernel + ": launched; this GPU reads the host's memory: no")
for line in found:
    print("========= " + line)
if tool == "racecheck":
    print("========= RACECHECK SUMMARY: %d hazard displayed (%d errors, 0 warnings)" % ((len(found) > 0,) * 2))
else:
    print("========= ERROR SUMMARY: %d error" % (len(found) > 0))
sys.exit(1 if found else 0)
"""
# Counts of wrong-kernels-sim, in Nsight Compute's form, and some of them wrong if that is asked for.
NCU = r"""#!/usr/bin/env python3
import json, os, subprocess, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
names = option("--metrics").split(",")
at = next(i for i, a in enumerate(sys.argv) if a.endswith("wrong-kernels-cuda"))
rows = ['"ID","Kernel Name",' + ",".join('"%s"' % n for n in names), '"","",' + ",".join('""' for n in names)]
for i, kernel in enumerate(sys.argv[at + 1:]):
    said = json.loads(subprocess.run([sys.argv[at].replace("cuda", "sim"), kernel], capture_output=True, text=True).stdout)
    def count(name):
        if kernel == os.environ.get("FAKE_COUNTS") and "sectors" in name:
            return 7
        group = ("shared_" if "shared" in name else "global_") + ("load" if name.endswith("_ld.sum") else "store")
        return said[group][next(k for k in ("requests", "sectors", "wavefronts", "bank_conflicts") if k in name)]
    rows.append('"%d","%s(const float *, float *)",' % (i, kernel) + ",".join('"%s"' % format(count(n), ",") for n in names))
open(option("--log-file"), "w").write("==PROF== Connected\n" + "\n".join(rows) + "\n")
"""


@unittest.skipUnless((BIN / "wrong-kernels-sim").exists(), f"wrong-kernels-sim is not in {BIN}")
class WrongKernels(Folder):
    """bench/wrong_kernels_gpu.py against tools that print what NVIDIA's print."""

    def check(self, code, *args, **environment):
        place = self.folder / "bin"
        place.mkdir(exist_ok=True)
        smi = "#!/bin/sh\necho 'NVIDIA H200, 580.1, 1980 MHz, 3201 MHz, 1980 MHz, 3201 MHz, 700.00 W'\n"
        for name, text in (("compute-sanitizer", COMPUTE_SANITIZER), ("ncu", NCU), ("nvidia-smi", smi), ("wrong-kernels-cuda", "#!/bin/sh\n")):
            (place / name).write_text(text)
            (place / name).chmod(0o755)
        if not (place / "wrong-kernels-sim").exists():
            (place / "wrong-kernels-sim").symlink_to(BIN / "wrong-kernels-sim")
        r = call([sys.executable, ROOT / "bench" / "wrong_kernels_gpu.py", "--bin", place, "--commit", "0123456", "--out",
                  self.folder / "out.json", "--jobs", "4", "--quick", *args], {"PATH": f"{place}:{os.environ['PATH']}", **environment})
        self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        report = strict((self.folder / "out.json").read_text())
        return {c["name"]: c for c in report["cases"]}, report, r.stdout

    def test_tools_that_see_what_the_simulator_sees(self):
        cases, report, said = self.check(0)
        self.assertIn("13 of 22 agree, 9 are such as no tool sees, 0 disagree", said)
        self.assertEqual(report["device"]["name"], "NVIDIA H200")
        self.assertEqual(report["compute_sanitizer"], "Version 2025.3.1")
        race = cases["missing_barrier"]["wrong"]
        self.assertEqual((race["seen_by"], race["same_line"]), (["racecheck"], True))
        self.assertEqual(race["runs"][0]["says"], "Error: Race reported between Write access at races.cuh:11")
        self.assertEqual(cases["misaligned_rows"]["wrong"]["runs"][0]["address"], "Address 0x... is misaligned")
        self.assertEqual(cases["shift_in_place"]["wrong"]["seen_by"], [])
        self.assertEqual(len(cases["shift_in_place"]["wrong"]["runs"]), 4)
        self.assertEqual((cases["bank_conflict"]["wrong"]["measured"], cases["bank_conflict"]["right"]["measured"]), (1024, 32))
        self.assertEqual((cases["shifted_rows"]["wrong"]["measured"], cases["shifted_rows"]["right"]["measured"]), (5, 4))
        self.assertFalse(cases["partials_of_32"]["launched"])
        self.assertEqual(cases["early_return"]["verdict"], "blind")

    def test_a_tool_that_sees_less_counts_other_sectors_or_hangs(self):
        """A sanitizer that says it looks at shared memory must see what nobody wrote there."""
        cases, _, said = self.check(1, "--timeout", "4", FAKE_SILENT="off_by_one_wrong", FAKE_COUNTS="column_walk_wrong",
                                    FAKE_HANG="barrier_in_branch_wrong", FAKE_HELP="--initcheck-address-space arg", FAKE_BARRIER="1")
        self.assertEqual(sorted(n for n, c in cases.items() if c["launched"] and not c["agree"]),
                         ["barrier_in_branch", "column_walk", "off_by_one", "unwritten_partial"])
        self.assertIn("still running at the time limit", said)
        self.assertEqual(cases["early_return"]["verdict"], "agree")  # a tool that sees more than is known of it
        self.assertIn("12 of 22 agree, 6 are such as no tool sees, 4 disagree", said)

    def test_nothing_to_run(self):
        (self.folder / "empty").mkdir()
        r = call([sys.executable, ROOT / "bench" / "wrong_kernels_gpu.py", "--bin", self.folder / "empty", "--out", self.folder / "o"])
        self.one_sentence(r, 2, "^counters: wrong-kernels-sim is not in .*: build it first")


if __name__ == "__main__":
    unittest.main()
