#!/usr/bin/env python3
"""Compares predictions with measurements on test-beds with shaped links (scripts/testbed.sh), as root.

    python3 scripts/bench_testbed.py [--out FOLDER] [--slice COMMAND] [--only NAME ...] [--keep]

Three profiles are calibrated: two hosts at 1 Gb/s with a rank each, and four hosts in two racks with a rank each and two
ranks each. All else is predicted from them: other rates (cluster.network_factor), other sizes, other groups. What is measured is that whole
slices of at most two minutes. --slice is put before the command of each, to keep a shared machine quiet; --keep takes
what FOLDER has already. The result is FOLDER/testbed.json. Exit codes: 0; 2 no test-bed here; 3 a goal is missed.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEDS = os.path.join(ROOT, "tests/testbed")
STEPSIM = os.path.join(ROOT, "build/release/stepsim")
GOALS = {"step, median": 7, "step, worst": 20, "exposed communication, worst": 10, "collectives, median": 10}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
STEADY_B = 64 << 10

# Bed, ranks a host, profile, and keys that all its commands have; then sizes of collectives or steps.
TWO = {"bed": "two", "hosts": 2, "each": 1, "profile": "two"}
SLOW = {**TWO, "bed": "slow", "sets": ["cluster.network_factor=0.3"]}
FOUR = {"bed": "four", "hosts": 4, "each": 1, "profile": "four"}
EIGHT = {**FOUR, "each": 2, "profile": "eight"}
ORIGINS = {"two": TWO, "four": FOUR, "eight": EIGHT}
FOUR_OF_EIGHT = {**FOUR, "profile": "eight"}  # one rank a host, predicted from two
SMALL = ("1K", "1M", 10)  # first and last size, calls of each; calibration times none of them


def steps(model, **cases):
    return {name: (model, sets.split()) for name, sets in cases.items()}


SLICES = {
    "two-collectives": (TWO, {"sizes": [SMALL, ("4M", "64M", 2)]}),
    "slow-collectives": (SLOW, {"sizes": [SMALL, ("4M", "16M", 2)]}),
    "four-collectives": (FOUR, {"sizes": [SMALL, ("4M", "4M", 2)]}),
    "four-of-eight-collectives": (FOUR_OF_EIGHT, {"sizes": [SMALL, ("4M", "4M", 2)]}),
    "eight-collectives": (EIGHT, {"sizes": [SMALL, ("4M", "4M", 2)]}),
    "two-ddp": (
        TWO,
        steps("medium", **{f"ddp-bucket-{b}": f"parallel.bucket_mb={b}" for b in (1, 5, 25, 100)}),
    ),
    "two-fsdp": (
        TWO,
        steps(
            "medium",
            **{f"fsdp-prefetch-{n}": f"parallel.strategy=fsdp parallel.prefetch={n}" for n in (0, 1, 2)},
        ),
    ),
    "slow-steps": (
        SLOW,
        steps(
            "medium",
            **{f"ddp-bucket-{b}": f"parallel.bucket_mb={b} run.steps=3" for b in (1, 25)},
            **{"fsdp-prefetch-1": "parallel.strategy=fsdp run.steps=3"},
        ),
    ),
    "four-steps": (
        FOUR,
        steps(
            "small",
            **{
                "ddp-bucket-2": "parallel.strategy=ddp parallel.data=4 parallel.bucket_mb=2",
                "pipeline-across-racks": "parallel.pipeline=2 parallel.data=2 parallel.strategy=ddp",
            },
        ),
    ),
    "eight-steps": (
        EIGHT,
        steps("small", **{"tensor-inside": "parallel.tensor=2 parallel.data=4 parallel.strategy=ddp run.steps=3"}),
    ),
}


def stop(text, code=2):
    print(f"bench_testbed: {text}", file=sys.stderr)
    sys.exit(code)


def mpirun(place, arguments):
    hosts = ",".join(f"h{i + 1}:{place['each']}" for i in range(place["hosts"]))
    ranks = str(place["hosts"] * place["each"])
    return ["mpirun", "--host", hosts, "--oversubscribe", "--bind-to", "none", "-np", ranks, STEPSIM, *arguments]


def commands(name, place, work, folder):
    """Shell lines of a slice, and the results that they write."""
    sets = [f"cluster.profile={folder}/{place['profile']}.yaml", *place.get("sets", [])]
    lines, results = [], []

    def add(result, arguments, more=()):
        words = [*arguments, "-q", *(w for s in (*sets, *more) for w in ("--set", s)), "--json", result]
        # A run that fails has no result: the others go on, and the table says so.
        lines.append(" ".join(map(shlex.quote, mpirun(place, words))) + " >/dev/null </dev/null || true")
        results.append(result)

    for k, (first, last, calls) in enumerate(work.get("sizes", [])):
        for collective in COLLECTIVES:
            words = ["bench", collective, "-b", first, "-e", last, "-n", str(calls), "-w", str(min(calls, 5)), "-c", "0"]
            add(f"{folder}/{name}.{collective}.{k}.json", words)
    for step, (model, more) in work.items() if "sizes" not in work else ():
        add(f"{folder}/{name}.{step}.json", [f"{BEDS}/{model}.yaml"], more)
    return lines, results


def run(bed, lines, before):
    script = "export OMPI_MCA_orte_execute_quiet=1\n" + "\n".join(lines)
    bench = ["bash", f"{ROOT}/scripts/testbed.sh", f"{BEDS}/{bed}.yaml", "bash", "-c", script]
    return subprocess.run([*shlex.split(before), *bench]).returncode


def calibrate(place, folder, before, keep):
    profile = f"{folder}/{place['profile']}.yaml"
    if keep and os.path.exists(profile):
        return
    line = " ".join(map(shlex.quote, mpirun(place, ["calibrate", "-o", profile, "-q"]))) + " >/dev/null"
    if run(place["bed"], [line], before):
        stop(f"the test-bed {place['bed']} cannot be calibrated")


def read(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def collective_rows(name, results):
    rows = []
    for path in results:
        table = read(path)
        for r in table["rows"] if table else []:
            # As steps do: sums in place, parts in buffers of their own.
            side = "in_place" if table["collective"] == "all_reduce" else "out_of_place"
            measured = (r.get(side) or {}).get("time_s")
            if measured and r.get("predicted_s"):
                rows.append(
                    {
                        "slice": name,
                        "case": path.split(".")[-3],
                        "bytes": r["size_bytes"],
                        "predicted_s": r["predicted_s"],
                        "measured_s": measured,
                        "error": 100 * (r["predicted_s"] / measured - 1),
                    }
                )
    return rows


def step_rows(name, results):
    rows = []
    for path in results:
        found = read(path)
        if not found or not found.get("measurement"):
            print(f"{os.path.basename(path)}: no result", file=sys.stderr)
            continue
        p, m = found["prediction"], found["measurement"]
        step = m["step_time_s"]
        overlap = [1 - x["exposed_comm_s"] / x["comm_s"] if x["comm_s"] else 0 for x in (p, m)]
        rows.append(
            {
                "slice": name,
                "case": path.split(".")[-2],
                "predicted_s": p["step_time_s"],
                "measured_s": step,
                "error": 100 * (p["step_time_s"] / step - 1),
                "exposed": [100 * x["exposed_comm_s"] / step for x in (p, m)],
                "exposed_error": 100 * (p["exposed_comm_s"] - m["exposed_comm_s"]) / step,
                "overlap": [100 * x for x in overlap],
            }
        )
    return rows


def size(n):
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n / 1024:g} KiB"


def print_tables(collectives, steps_):
    print(f"\n{'collective':<34}{'size':>9}{'predicted':>13}{'measured':>13}{'error':>9}")
    for r in collectives:
        print(
            f"{r['slice'] + ' ' + r['case']:<34}{size(r['bytes']):>9}{1e3 * r['predicted_s']:>10.2f} ms"
            f"{1e3 * r['measured_s']:>10.2f} ms{r['error']:>+8.1f}%"
        )
    print(f"\n{'step':<34}{'predicted':>12}{'measured':>12}{'error':>8}{'exposed, of the step':>24}{'overlap':>16}")
    for r in steps_:
        exposed = f"{r['exposed'][0]:.1f}% {r['exposed'][1]:.1f}% ({r['exposed_error']:+.1f})"
        overlap = f"{r['overlap'][0]:.0f}% {r['overlap'][1]:.0f}%"
        print(
            f"{r['slice'].split('-')[0] + ' ' + r['case']:<34}{1e3 * r['predicted_s']:>9.0f} ms"
            f"{1e3 * r['measured_s']:>9.0f} ms{r['error']:>+7.1f}%{exposed:>24}{overlap:>16}"
        )


def judge(collectives, steps_):
    sizes = [abs(r["error"]) for r in collectives if r["bytes"] >= STEADY_B]
    errors = [abs(r["error"]) for r in steps_]
    exposed = [abs(r["exposed_error"]) for r in steps_]
    found = {
        "step, median": statistics.median(errors) if errors else None,
        "step, worst": max(errors, default=None),
        "exposed communication, worst": max(exposed, default=None),
        "collectives, median": statistics.median(sizes) if sizes else None,
    }
    print(f"\n{'error':<34}{'found':>9}{'goal':>9}")
    for name, goal in GOALS.items():
        print(f"{name:<34}" + (f"{found[name]:>8.1f}%" if found[name] is not None else f"{'-':>9}") + f"{goal:>8}%")
    return found, all(x is None or x <= GOALS[name] for name, x in found.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "build/testbed"))
    parser.add_argument("--slice", default="", metavar="COMMAND")
    parser.add_argument("--only", nargs="+", choices=SLICES, default=list(SLICES))
    parser.add_argument("--keep", action="store_true")
    a = parser.parse_args()
    os.makedirs(a.out, exist_ok=True)
    if subprocess.run(["bash", f"{ROOT}/scripts/testbed.sh", "1", "true"]).returncode:
        sys.exit(2)
    print("load of the machine before the first run:", *os.getloadavg())
    collectives, steps_, calibrated = [], [], set()
    for name in a.only:
        place, work = SLICES[name]
        lines, results = commands(name, place, work, a.out)
        for path in results:
            if not a.keep and os.path.exists(path):
                os.remove(path)
        missing = [line for line, path in zip(lines, results) if not os.path.exists(path)]
        origin = ORIGINS[place["profile"]]
        if place["profile"] not in calibrated and missing:
            calibrate(origin, a.out, a.slice, a.keep)
            calibrated.add(place["profile"])
        if missing:
            run(place["bed"], missing, a.slice)
        if "sizes" in work:
            collectives += collective_rows(name, results)
        else:
            steps_ += step_rows(name, results)
    print_tables(collectives, steps_)
    found, met = judge(collectives, steps_)
    with open(f"{a.out}/testbed.json", "w") as f:
        json.dump({"collectives": collectives, "steps": steps_, "errors": found, "goals": GOALS}, f, indent=1)
    sys.exit(0 if met else 3)


main()
