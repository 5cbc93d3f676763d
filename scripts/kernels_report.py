#!/usr/bin/env python3
"""What ptxas made of each kernel, from the build's own logs (build/release/cuda/*.cu.log) and the launch bounds in the
kernels' PTX (build/release/ptx/90/*.ptx): registers, spilled bytes, static shared memory, blocks that an SM has
registers for (fit). `make kernels-report` prints the table. --check [FILE] compares with tests/cuda/spills.txt, or
FILE: a kernel that spills more than stands there, or that does not fit an SM as often as its launch bounds say, is
named. The last line counts."""

import glob
import re
import subprocess
import sys

LOGS, PTX, LIMITS = "build/release/cuda/*.cu.log", "build/release/ptx/90/*.ptx", "tests/cuda/spills.txt"
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the same from 8.0 to 10.0. A warp gets
# registers in units of 256.
SM_REGISTERS, WARP, UNIT, THREADS_MAX = 65536, 32, 256, 1024


def entries(pattern=LOGS):
    """[sm, mangled name, registers, spilled B, stack B, shared B] of each kernel in each log."""
    for path in sorted(glob.glob(pattern)):
        now = None
        for line in open(path):
            if found := re.search(r"Compiling entry function '(\S+)' for 'sm_(\d+)'", line):
                now = {"sm": int(found[2]), "name": found[1]}
            elif now and (found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line)):
                now.setdefault("stack", int(found[1]))  # those of the entry come first, then its functions
                now["spill"] = now.get("spill", 0) + int(found[2])
            elif now and (found := re.search(r"Used (\d+) registers", line)):
                shared = re.search(r"(\d+) bytes smem", line)
                yield dict(now, registers=int(found[1]), shared=int(shared[1]) if shared else 0)
                now = None


def bounds():
    """Launch bounds of each kernel: threads (all that a block may have where it says none), blocks an SM."""
    of = {}
    for path in glob.glob(PTX):
        name = None
        for line in open(path):
            if found := re.search(r"\.entry (\w+)", line):
                name = found[1]
                of[name] = [THREADS_MAX, 1]
            elif found := re.match(r"\.maxntid (\d+)", line):
                of[name][0] = int(found[1])
            elif found := re.match(r"\.minnctapersm (\d+)", line):
                of[name][1] = int(found[1])
    return of


def plain(names):
    """Demangled, without result and arguments: norm_kernel<float, float, 4, 2, block_row, true>."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return {n: re.sub(r"\(.*", "", re.sub(r"^void ", "", t)) for n, t in zip(names, text.splitlines())}


def fitting(registers, threads):
    """Blocks that the registers of an SM are enough for."""
    a_warp = -(-registers * WARP // UNIT) * UNIT
    return SM_REGISTERS // (a_warp * -(-threads // WARP))


def limits(path):
    """{(sm, kernel): spilled B}, the release of CUDA and the architectures that they hold for."""
    allowed, release, known = {}, "", set()
    for line in open(path):
        if found := re.match(r"# CUDA (\S+), sm((?: \d+)+)$", line):
            release, known = found[1], {int(sm) for sm in found[2].split()}
        elif found := re.match(r"(\d+) +(\d+) +(.*\S)", line):
            allowed[int(found[1]), found[3]] = int(found[2])
    return allowed, release, known


def main():
    rows = list(entries())
    if not rows:
        sys.exit("kernels_report: no log of a build with CUDA in build/release/cuda (make kernels-report)")
    of, name = bounds(), plain(sorted({r["name"] for r in rows}))
    for r in rows:
        r["kernel"] = name[r["name"]]
        r["threads"], r["blocks"] = of.get(r["name"], [THREADS_MAX, 1])
        r["fit"] = fitting(r["registers"], r["threads"])
    rows.sort(key=lambda r: (r["kernel"], r["sm"]))
    if sys.argv[1:2] != ["--check"]:
        print("sm   threads  blocks  fit  registers  spilled B  stack B  shared B  kernel")
        for r in rows:
            print(f"{r['sm']:<4} {r['threads']:7}  {r['blocks']:6}  {r['fit']:3}  {r['registers']:9}  {r['spill']:9}  "
                  f"{r['stack']:7}  {r['shared']:8}  {r['kernel']}")
        return 0
    path = sys.argv[2] if len(sys.argv) > 2 else LIMITS
    allowed, release, known = limits(path)
    nvcc = subprocess.run(["bash", "scripts/find_cuda.sh", "nvcc"], capture_output=True, text=True).stdout.strip()
    if f"release {release}," not in subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout:
        print(f"the limits are those of CUDA {release}\n0 passed, 0 failed, 1 skipped")
        return 0
    rows = [r for r in rows if r["sm"] in known]
    bad = 0
    for r in rows:
        most = allowed.get((r["sm"], r["kernel"]), 0)
        if r["spill"] > most:
            print(f"sm_{r['sm']} {r['kernel']}: {r['spill']} B spilled, at most {most} B ({path})")
        if r["fit"] < r["blocks"]:
            print(f"sm_{r['sm']} {r['kernel']}: registers for {r['fit']} blocks of {r['threads']} threads an SM, its "
                  f"launch bounds say {r['blocks']}")
        bad += r["spill"] > most or r["fit"] < r["blocks"]
    print(f"{len(rows) - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
