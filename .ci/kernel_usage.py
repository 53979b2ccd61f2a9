#!/usr/bin/env python3
"""Reads the output of a build whose ptxas reports what each kernel uses (-DSOFTMAX_PTXAS_REPORT=ON), passes everything else on,
and fails if a kernel spills registers or uses more shared memory than every GPU gives unasked.

    make test CMAKE_FLAGS=... 2>&1 | .ci/kernel_usage.py [--expect KERNELS]

Exit codes: 0 no kernel does, 1 one does, or fewer kernels than expected were compiled.
"""
import argparse
import re
import subprocess
import sys

SHARED_UNASKED = 48 * 1024
# Kernels that may spill, as a part of the name: the reason. Each belongs into the chapter of its stage as well.
EXPLAINED = {}


def readable(name):
    try:
        return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return name


class Usage:
    """What ptxas said about kernels, line by line."""

    def __init__(self):
        self.kernels, self.problems = 0, []
        self.registers = self.shared = 0
        self.name = self.machine = ""

    def takes(self, line):
        """True for a line that belongs to the report of ptxas."""
        if found := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            self.name, self.machine = found.groups()
            self.kernels += 1
        elif found := re.search(r"Function properties for (\S+)", line):
            self.name = found[1]
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stores, loads = int(found[2]), int(found[3])
            if stores + loads > 0 and not any(part in readable(self.name) for part in EXPLAINED):
                self.problems.append(f"{readable(self.name)} for {self.machine} spills {stores} bytes and loads {loads} back")
        elif found := re.search(r"Used (\d+) registers", line):
            self.registers = max(self.registers, int(found[1]))
            shared = int((re.search(r"(\d+) bytes smem", line) or [0, 0])[1])
            self.shared = max(self.shared, shared)
            if shared > SHARED_UNASKED:
                self.problems.append(f"{readable(self.name)} for {self.machine} uses {shared} bytes of shared memory")
        else:
            return line.startswith("ptxas info")
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expect", type=int, default=0, help="fewest kernels that the build compiles")
    args = parser.parse_args()
    usage = Usage()
    for line in sys.stdin:
        if not usage.takes(line):
            print(line, end="", flush=True)
    for problem in usage.problems:
        print(f"kernel usage: {problem}")
    if usage.kernels < args.expect:
        print(f"kernel usage: ptxas reported {usage.kernels} kernels, and {args.expect} were expected")
        return 1
    print(f"kernel usage: {usage.kernels} kernels, {len(usage.problems)} with a problem, at most {usage.registers} registers "
          f"and {usage.shared} bytes of shared memory")
    return 1 if usage.problems else 0


if __name__ == "__main__":
    sys.exit(main())
