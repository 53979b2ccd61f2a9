#!/usr/bin/env python3
"""Configuring where compilers are missing, hidden, broken or in a folder of their own; and what the programs hold in the end:
each backend's kernels, and no kernel that spills.

Run by CTest as: build_test.py BIN_FOLDER CMAKE GENERATOR. Takes settings from SOFTMAX_BACKENDS.
"""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN, CMAKE, GENERATOR = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
STAGES = sorted(p.name for p in BIN.glob("stage-[0-9][0-9]"))
BACKENDS = ["sim", *os.environ.get("SOFTMAX_BACKENDS", "").split()]

PLAIN_PATH = "/usr/bin:/bin"
# Where find_program looks whatever the PATH.
HIDDEN = ["/usr/bin", "/bin", "/usr/local/bin", "/usr/local/cuda/bin", "/opt/cuda/bin", "/opt/rocm/bin"]


def program(path, text="exit 1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Configure:
    """One run of cmake in a folder of its own. The C++ compiler is looked for first; compilers for GPUs only in `env`."""

    def __init__(self, folder, *options, hide=True, **env):
        folder.mkdir()
        after_project = folder / "hide.cmake"
        after_project.write_text(f"list(APPEND CMAKE_IGNORE_PATH {' '.join(HIDDEN)})\n" if hide else "")
        clean = {k: v for k, v in os.environ.items() if not re.match("CUDA|ROCM|HIP|CXX|CC$", k)}
        r = subprocess.run([CMAKE, "-S", ROOT, "-B", folder / "build", "-G", GENERATOR, "-DSOFTMAX_TESTS=OFF",
                            f"-DCMAKE_PROJECT_softmax_workbook_INCLUDE={after_project}", *options],
                           capture_output=True, text=True, env={**clean, "PATH": PLAIN_PATH, **env}, timeout=120)
        self.code = r.returncode
        self.text = " ".join((r.stdout + r.stderr).split())
        cache = folder / "build" / "CMakeCache.txt"
        self.cache = cache.read_text() if cache.exists() else ""


@unittest.skipIf(shutil.which("nvcc", path=PLAIN_PATH), "nvcc is among the system's programs and cannot be hidden")
class Configuring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = Path(cls.temporary.name)
        rocm, broken, others = folder / "rocm", folder / "broken", folder / "others"
        program(rocm / "bin" / "hipcc")
        (rocm / "lib").mkdir()
        (rocm / "lib" / "libamdhip64.so").write_text("")
        program(broken / "bin" / "nvcc")
        program(others / "clang++")
        cases = {
            "nothing": ((), {}),
            "hip on": (("-DSOFTMAX_CUDA=OFF", "-DSOFTMAX_HIP=ON"), {}),
            "cuda on": (("-DSOFTMAX_CUDA=ON", "-DSOFTMAX_HIP=OFF"), {}),
            "rocm elsewhere": (("-DSOFTMAX_CUDA=OFF", "-DSOFTMAX_HIP=ON"), {"ROCM_PATH": str(rocm)}),
            "clang alone": (("-DSOFTMAX_CUDA=OFF",), {"PATH": f"{others}:{PLAIN_PATH}"}),
            "broken nvcc": (("-DSOFTMAX_HIP=OFF",), {"CUDA_PATH": str(broken)}),
            "broken nvcc on": (("-DSOFTMAX_CUDA=ON", "-DSOFTMAX_HIP=OFF"), {"CUDA_PATH": str(broken)}),
        }
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = {name: pool.submit(Configure, folder / name.replace(" ", "-"), *options, **env)
                    for name, (options, env) in cases.items()}
            cls.runs = {name: job.result() for name, job in jobs.items()}
        cls.rocm = rocm

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def works(self, name, backends):
        run = self.runs[name]
        self.assertEqual(run.code, 0, run.text)
        self.assertIn(f"Backends: {backends}", run.text)
        return run

    def fails(self, name, sentence):
        run = self.runs[name]
        self.assertNotEqual(run.code, 0, run.text)
        self.assertIn(sentence, run.text)

    def test_without_compilers_for_gpus_there_is_the_simulator(self):  # T55 (a), T81 (b)
        self.works("nothing", "simulator ON, CUDA OFF, HIP OFF")

    def test_a_backend_that_is_asked_for_must_be_there(self):  # T55 (a), T81 (c)
        self.fails("hip on", "SOFTMAX_HIP=ON, but hipcc or libamdhip64 was not found: run make setup-hip, or set ROCM_PATH.")
        self.fails("cuda on", "SOFTMAX_CUDA=ON, but nvcc was not found or cannot compile with this C++ compiler: set CUDA_PATH")

    def test_other_compilers_are_not_taken_for_hip(self):  # T55 (b)
        self.works("clang alone", "simulator ON, CUDA OFF, HIP OFF")

    def test_rocm_in_a_folder_of_its_own(self):  # T55 (c)
        run = self.works("rocm elsewhere", "simulator ON, CUDA OFF, HIP ON")
        self.assertIn(f"SOFTMAX_HIPCC:FILEPATH={self.rocm}/bin/hipcc\n", run.cache)
        self.assertIn(f"SOFTMAX_HIP_RUNTIME:FILEPATH={self.rocm}/lib/libamdhip64.so\n", run.cache)

    def test_a_compiler_that_does_not_work_is_none(self):
        run = self.works("broken nvcc", "simulator ON, CUDA OFF, HIP OFF")
        self.assertIn("broken/bin/nvcc cannot compile with this C++ compiler: set CUDA_PATH", run.text)
        self.fails("broken nvcc on", "SOFTMAX_CUDA=ON, but nvcc was not found or cannot compile")

    def test_nvcc_is_found_off_the_path(self):  # T81 (a)
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if not nvcc:
            self.skipTest("there is no nvcc here")
        home = Path(nvcc).resolve().parent.parent
        run = Configure(Path(self.temporary.name) / "off-path", "-DSOFTMAX_HIP=OFF", CUDA_PATH=str(home))
        self.assertEqual(run.code, 0, run.text)
        self.assertIn("Backends: simulator ON, CUDA ON, HIP OFF", run.text)

    def test_the_oldest_cmake_is_the_same_everywhere(self):  # T55 (d): CMake itself refuses an older one by this line
        first = (ROOT / "CMakeLists.txt").read_text().splitlines()[0]
        version = re.fullmatch(r"cmake_minimum_required\(VERSION (\d+)\.(\d+)\)", first)
        self.assertIsNotNone(version, first)
        least = json.loads((ROOT / "CMakePresets.json").read_text())["cmakeMinimumRequired"]
        self.assertEqual([str(least["major"]), str(least["minor"])], list(version.groups()))
        self.assertIn(f"CMake {version[1]}.{version[2]} or newer", (ROOT / "README.md").read_text())


class Programs(unittest.TestCase):
    def test_each_backend_has_its_kernels(self):  # T56
        if not shutil.which("nm"):
            self.skipTest("nm is missing")
        self.assertTrue(STAGES, f"no stage in {BIN}")
        for stage in STAGES:
            listed = subprocess.run([BIN / stage, "--device", "sim", "--rows", "1", "--cols", "1", "--json"],
                                    capture_output=True, text=True, check=True).stdout
            kernels = {launch["kernel"] for launch in json.loads(listed)["runs"][0]["simulator"]["launches"]}
            symbols = subprocess.run(["nm", BIN / stage], capture_output=True, text=True, check=True).stdout
            sections = subprocess.run(["readelf", "-SW", BIN / stage], capture_output=True, text=True, check=True).stdout
            for backend in BACKENDS:
                with self.subTest(f"{stage} {backend}"):
                    self.assertIn(f"make_{backend}_backend", symbols)
                    for kernel in kernels:
                        # The host's side of a kernel for a GPU is a stub that launches it.
                        pattern = {"sim": rf"GLOBAL__N_1\d+{kernel}", "cuda": rf"__device_stub__\w*{kernel}",
                                   "hip": rf"\d+__device_stub__{kernel}"}[backend]
                        self.assertRegex(symbols, pattern)
                    code = {"cuda": ".nv_fatbin", "hip": ".hip_fatbin"}.get(backend)
                    if code:
                        size = re.search(rf"{re.escape(code)}\s+\w+\s+\w+\s+\w+\s+(\w+)", sections)
                        self.assertGreater(int(size[1], 16) if size else 0, 1000, sections)


@unittest.skipUnless("hip" in BACKENDS and shutil.which("hipcc"), "this build has no HIP")
class VectorAccesses(unittest.TestCase):
    def test_an_amd_gpu_moves_16_bytes_an_instruction(self):
        """The machine code of stage 06 for 64 lanes."""
        source = ('#define SIMT_BACKEND_HIP\n#define SIMT_HIP_WARP_SIZE 64\n#include "kernel.cuh"\n'
                  "void use(const float* x, float* y, const softmax::matrix_shape& s) { softmax::softmax<64>(x, y, nullptr, s, nullptr); }\n")
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "use.cpp").write_text(source)
            r = subprocess.run(["hipcc", "-x", "hip", "--offload-arch=gfx90a", "--offload-device-only", "-S", "-O3", "-std=c++17",
                                f"-I{ROOT}/common", f"-I{ROOT}/stages/06_vectorized", "use.cpp", "-o", "use.s"], cwd=folder,
                               capture_output=True, text=True, env={**os.environ, "HIP_PLATFORM": "amd"}, timeout=300)
            self.assertEqual(r.returncode, 0, r.stderr[-2000:])
            code = (Path(folder) / "use.s").read_text()
        for instruction in ("global_load_dwordx4", "global_store_dwordx4"):
            self.assertIn(instruction, code)


class KernelUsage(unittest.TestCase):
    """What CI makes of the report of ptxas. [T15 T17]"""

    LINES = """[1/2] Building CUDA object
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3rowv' for 'sm_90'
ptxas info    : Function properties for _Z3rowv
    {frame} bytes stack frame, {spill} bytes spill stores, {spill} bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, {shared} bytes smem, 400 bytes cmem[0]
[2/2] Linking
"""

    def usage(self, *options, frame=0, spill=0, shared=256):
        return subprocess.run([sys.executable, ROOT / ".ci" / "kernel_usage.py", *options], capture_output=True, text=True,
                              input=self.LINES.format(frame=frame, spill=spill, shared=shared))

    def test_it_passes_what_is_fine_and_keeps_the_rest_of_the_output(self):
        r = self.usage("--expect", "1")
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual(r.stdout.splitlines()[:2], ["[1/2] Building CUDA object", "[2/2] Linking"])
        self.assertIn("1 kernels, 0 with a problem, at most 128 registers and 256 bytes", r.stdout)

    def test_it_refuses_spills_much_shared_memory_and_silence(self):
        for r, says in ((self.usage(frame=8, spill=8), "spills 8 bytes"), (self.usage(shared=49153), "uses 49153 bytes"),
                        (self.usage("--expect", "2"), "reported 1 kernels, and 2 were expected")):
            self.assertEqual(r.returncode, 1, r.stdout)
            self.assertIn(says, r.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
