#!/usr/bin/env python3
"""Compares predictions with measurements on test-beds with shaped links (scripts/testbed.sh), as root.

    python3 scripts/bench_testbed.py [--out FOLDER] [--slice COMMAND] [--only NAME ...] [--rounds N] [--fresh] [--docs]

Three profiles are calibrated: two hosts at 1 Gb/s with a rank each, and four hosts in two racks with a rank each and
two ranks each. All else is predicted from them: other rates (cluster.network_factor), other sizes, other groups. It
runs in pieces of about two minutes at most; standard error says how much is left. A run that was stopped goes on where
it was: FOLDER keeps what was measured, for as long as neither the program nor the beds change; --fresh begins anew.
--slice is put before the command of each piece, to keep a shared machine quiet.

Steps are calibrated, predicted and measured in N rounds (3), and means over the rounds are compared. The cores of a
virtual machine change their speed within seconds, where others use the same ones; a round is of too few of such phases.

The result is FOLDER/testbed.json and, with --docs, the tables of docs/clusters.md. Exit codes: 0; 2 no test-bed here,
or a part is missing; 3 a goal is missed.
"""

import argparse
import collections
import datetime
import glob
import hashlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEDS = os.path.join(ROOT, "tests/testbed")
STEPSIM = os.path.join(ROOT, "build/release/stepsim")
PAGE = os.path.join(ROOT, "docs/clusters.md")
GOALS = {
    "step, median": 7,
    "step, worst": 20,
    "exposed communication, worst": 10,
    "collectives, median": 10,
    "bucket that sweep finds, behind the best": 5,
}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
STEADY_B = 64 << 10

# Bed, ranks a host, profile, keys that all its commands have, and keys that say of the bed what the profile does not:
# of the prediction alone. `s`: seconds of its calibration, about.
TWO = {"bed": "two", "hosts": 2, "each": 1, "profile": "two", "s": 65}
SLOW = {**TWO, "bed": "slow", "sets": ["cluster.network_factor=0.3"]}
UNEVEN = {**TWO, "bed": "uneven", "predicted": ["cluster.slow_ranks={n1: 2}"]}  # executed as the host is
FOUR = {"bed": "four", "hosts": 4, "each": 1, "profile": "four", "s": 95}
EIGHT = {**FOUR, "each": 2, "profile": "eight", "s": 125}
ORIGINS = {"two": TWO, "four": FOUR, "eight": EIGHT}
FOUR_OF_EIGHT = {**FOUR, "profile": "eight"}  # one rank a host, predicted from two
SMALL = ("1K", "1M", 10)  # first and last size, calls of each; calibration times none of them
MIDDLE, LARGE = ("4M", "4M", 2), ("16M", "64M", 1)


def steps(model, **cases):
    return {"steps": {name: (model, sets.split()) for name, sets in cases.items()}}


def buckets(model, sizes, more=""):
    """A step with buckets of each size in MiB, and `stepsim sweep` over these."""
    cases = {f"ddp-bucket-{b}": f"parallel.bucket_mb={b} {more}" for b in sizes}
    return {**steps(model, **cases), "sweep": (model, more.split(), sizes)}


# Place, seconds that it takes about, and its work.
SLICES = {
    "two-collectives": (TWO, 30, {"sizes": [SMALL, ("4M", "64M", 2)]}),
    "two-ddp": (TWO, 25, buckets("medium", (1, 5, 25, 100))),
    "two-fsdp": (
        TWO,
        30,
        steps("medium", **{f"fsdp-prefetch-{n}": f"parallel.strategy=fsdp parallel.prefetch={n}" for n in (0, 1, 2)}),
    ),
    "slow-collectives": (SLOW, 25, {"sizes": [SMALL, ("4M", "16M", 2)]}),
    "slow-ddp": (SLOW, 20, buckets("medium", (1, 25), "run.steps=3")),
    "slow-fsdp": (SLOW, 20, steps("medium", **{"fsdp-prefetch-1": "parallel.strategy=fsdp run.steps=3"})),
    "uneven-steps": (
        UNEVEN,
        20,
        steps("medium", **{"ddp-bucket-25": "run.steps=3", "fsdp-prefetch-1": "parallel.strategy=fsdp run.steps=3"}),
    ),
    "four-collectives": (FOUR, 20, {"sizes": [SMALL, MIDDLE]}),
    "four-large": (FOUR, 65, {"sizes": [LARGE]}),
    "four-steps": (
        FOUR,
        25,
        steps(
            "small",
            **{
                "ddp-bucket-2": "parallel.strategy=ddp parallel.data=4 parallel.bucket_mb=2",
                "pipeline-across-racks": "parallel.pipeline=2 parallel.data=2 parallel.strategy=ddp",
            },
        ),
    ),
    "eight-collectives": (EIGHT, 30, {"sizes": [SMALL, MIDDLE]}),
    "eight-large": (EIGHT, 90, {"sizes": [LARGE]}),
    "eight-steps": (
        EIGHT,
        15,
        steps("small", **{"tensor-inside": "parallel.tensor=2 parallel.data=4 parallel.strategy=ddp"}),
    ),
    "four-of-eight-collectives": (FOUR_OF_EIGHT, 20, {"sizes": [SMALL, MIDDLE]}),
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
        line = " ".join(map(shlex.quote, mpirun(place, words))) + " >/dev/null </dev/null"
        if "predicted" in place:
            told = [w for s in (*sets, *more, *place["predicted"]) for w in ("--set", s)]
            line += " && " + " ".join(
                map(shlex.quote, [STEPSIM, "predict", arguments[0], *told, "-q", "--json", f"{result}.predicted"])
            )
        # A run that fails has no result: the others go on, and the table says so.
        lines.append(f"{line} >/dev/null || rm -f {shlex.quote(result)}")
        results.append(result)

    for k, (first, last, calls) in enumerate(work.get("sizes", [])):
        for collective in COLLECTIVES:
            counts = ["-n", str(calls), "-w", str(min(calls, 5)), "-c", "0"]
            words = ["bench", collective, "-b", first, "-e", last, *counts]
            add(f"{folder}/{name}.{collective}.{k}.json", words)
    for step, (model, more) in work.get("steps", {}).items():
        add(f"{folder}/{name}.{step}.json", [f"{BEDS}/{model}.yaml"], more)
    if "sweep" in work:
        model, more, sizes = work["sweep"]
        told = [w for s in (*sets, *more) for w in ("--set", s)]
        vary = ["--vary", f"parallel.bucket_mb={','.join(map(str, sizes))}", "-q", "--json", sweep_path(name, folder)]
        words = [STEPSIM, "sweep", f"{BEDS}/{model}.yaml", *told, *vary]
        lines.append(" ".join(map(shlex.quote, words)) + " >/dev/null")
        results.append(sweep_path(name, folder))
    return lines, results


def sweep_path(name, folder):
    return f"{folder}/{name}.sweep.json"


def run(bed, lines, before):
    script = "export OMPI_MCA_orte_execute_quiet=1\n" + "\n".join(lines)
    bench = ["bash", f"{ROOT}/scripts/testbed.sh", f"{BEDS}/{bed}.yaml", "bash", "-c", script]
    return subprocess.run([*shlex.split(before), *bench]).returncode


def calibration(place, folder):
    """The shell line, and the profile that it writes: under another name until it is whole."""
    profile = f"{folder}/{place['profile']}.yaml"
    words = mpirun(place, ["calibrate", "-o", f"{profile}.part", "-q"])
    return " ".join(map(shlex.quote, words)) + f" >/dev/null </dev/null && mv {profile}.part {profile}", profile


def stamp():
    """What results depend on: the program, what it executes with, and the beds and models."""
    files = [STEPSIM, os.path.join(os.path.dirname(STEPSIM), "libstepsim_exec.so"), f"{ROOT}/scripts/testbed.sh"]
    digest = hashlib.sha256()
    for path in [*files, *sorted(glob.glob(f"{BEDS}/*.yaml"))]:
        with open(path, "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()


def clear(folder, fresh):
    """Removes the results of another program or bed, and all where `fresh`."""
    path, now = f"{folder}/stamp", stamp()
    old = open(path).read() if os.path.exists(path) else None
    if fresh or old != now:
        for name in glob.glob(f"{folder}/*.json*") + glob.glob(f"{folder}/*.yaml*"):
            os.remove(name)
    with open(path, "w") as f:
        f.write(now)


def pieces(names, folder):
    """What is to be run: name, seconds about, bed, shell lines; calibrations before what needs them."""
    found, profiles = [], set()
    for name in names:
        place, seconds, work = SLICES[name]
        lines, results = commands(name, place, work, folder)
        lines = [line for line, path in zip(lines, results) if not os.path.exists(path)]
        origin = ORIGINS[place["profile"]]
        line, profile = calibration(origin, folder)
        if lines and not os.path.exists(profile) and profile not in profiles:
            found.append((f"calibration of {place['profile']}", origin["s"], origin["bed"], [line]))
            profiles.add(profile)
        if lines:
            found.append((name, seconds * len(lines) / len(results), place["bed"], lines))
    return found


def run_all(todo, before):
    """Runs the pieces. What has passed corrects what is left."""
    total, expected, begin = sum(p[1] for p in todo), 0, time.time()
    for k, (name, seconds, bed, lines) in enumerate(todo, 1):
        pace = (time.time() - begin + 60) / (expected + 60)
        left = (total - expected) * pace / 60
        print(f"bench_testbed: {k} of {len(todo)}, {name}: about {left:.0f} min left", file=sys.stderr, flush=True)
        if run(bed, lines, before) and name.startswith("calibration"):
            stop(f"{name} failed")
        expected += seconds


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
        p, m = (read(f"{path}.predicted") or found)["prediction"], found["measurement"]
        rows.append(
            {
                "slice": name,
                "case": path.split(".")[-2],
                "predicted_s": p["step_time_s"],
                "measured_s": m["step_time_s"],
                "p": {"exposed_s": p["exposed_comm_s"], "comm_s": p["comm_s"]},
                "m": {"exposed_s": m["exposed_comm_s"], "comm_s": m["comm_s"]},
            }
        )
    return rows


def mean_of_rounds(rows):
    """Rows of a step in several rounds: means, and errors of these."""
    mean = {k: statistics.mean(r[k] for r in rows) for k in ("predicted_s", "measured_s")}
    step = mean["measured_s"]
    sides = ("exposed_s", "comm_s")
    predicted, measured = ({k: statistics.mean(r[side][k] for r in rows) for k in sides} for side in ("p", "m"))
    return {
        "slice": rows[0]["slice"],
        "case": rows[0]["case"],
        "rounds": len(rows),
        **mean,
        "error": 100 * (mean["predicted_s"] / step - 1),
        "exposed": [100 * x["exposed_s"] / step for x in (predicted, measured)],
        "exposed_error": 100 * (predicted["exposed_s"] - measured["exposed_s"]) / step,
        "overlap": [100 * (1 - x["exposed_s"] / x["comm_s"]) if x["comm_s"] else None for x in (predicted, measured)],
    }


def sweep_row(name, folders, steps_):
    """The bucket that `stepsim sweep` finds, and how far its measured step is behind the best measured one."""
    found = [read(sweep_path(name, folder)) for folder in folders]
    key = "parallel.bucket_mb"
    measured = {r["case"].rpartition("-")[2]: r["measured_s"] for r in steps_ if r["slice"] == name}
    if None in found or not measured:
        return []
    sums = collections.Counter()
    for r in (r for f in found for r in f["results"]):
        sums[r["set"][key]] += r["prediction"]["step_time_s"]
    best = min(sums, key=sums.get)
    if best not in measured:
        return []
    fastest = min(measured, key=measured.get)
    behind = 100 * (measured[best] / measured[fastest] - 1)
    return [{"slice": name, "sweep": best, "measured": fastest, "behind": behind}]


# How docs/clusters.md calls the beds.
PLACES = {
    "two": "two hosts at 1 Gb/s",
    "slow": "the same at 300 Mb/s",
    "four": "four hosts in two racks",
    "eight": "the same with two ranks a host",
    "four-of-eight": "one rank a host, from the profile of two",
}


def size(n):
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n / 1024:g} KiB"


def print_tables(sums, steps_):
    print(f"\n{'collective':<34}{'size':>9}{'predicted':>13}{'measured':>13}{'error':>9}")
    for r in sums:
        print(
            f"{r['slice'] + ' ' + r['case']:<34}{size(r['bytes']):>9}{1e3 * r['predicted_s']:>10.2f} ms"
            f"{1e3 * r['measured_s']:>10.2f} ms{r['error']:>+8.1f}%"
        )
    print(f"\n{'step':<34}{'predicted':>12}{'measured':>12}{'error':>8}{'exposed, of the step':>24}{'overlap':>16}")
    for r in steps_:
        exposed = f"{r['exposed'][0]:.1f}% {r['exposed'][1]:.1f}% ({r['exposed_error']:+.1f})"
        overlap = " ".join("-" if x is None else f"{x:.0f}%" for x in r["overlap"])
        print(
            f"{r['slice'].split('-')[0] + ' ' + r['case']:<34}{1e3 * r['predicted_s']:>9.0f} ms"
            f"{1e3 * r['measured_s']:>9.0f} ms{r['error']:>+7.1f}%{exposed:>24}{overlap:>16}"
        )


def judge(collectives, steps_, sweeps):
    sizes = [abs(r["error"]) for r in collectives if r["bytes"] >= STEADY_B]
    errors = [abs(r["error"]) for r in steps_]
    exposed = [abs(r["exposed_error"]) for r in steps_]
    found = {
        "step, median": statistics.median(errors) if errors else None,
        "step, worst": max(errors, default=None),
        "exposed communication, worst": max(exposed, default=None),
        "collectives, median": statistics.median(sizes) if sizes else None,
        "bucket that sweep finds, behind the best": max((r["behind"] for r in sweeps), default=None),
    }
    for r in sweeps:
        words = f"{r['sweep']} MiB, {r['measured']} MiB is the best measured, {r['behind']:.1f} % shorter"
        print(f"\n{r['slice']}: stepsim sweep finds a bucket of {words}")
    print(f"\n{'error':<42}{'found':>9}{'goal':>9}")
    for name, goal in GOALS.items():
        print(f"{name:<42}" + (f"{found[name]:>8.1f}%" if found[name] is not None else f"{'-':>9}") + f"{goal:>8}%")
    return found, all(x is None or x <= GOALS[name] for name, x in found.items())


def pages_table(collectives, steps_, sweeps, found):
    """The tables of docs/clusters.md."""
    lines = [
        f"Steps are means of {steps_[0]['rounds']} rounds. {datetime.date.today()}, commit `{commit()}`:",
        "",
        "| collectives from 64 KiB | sizes | error: median | worst |",
        "| --- | --- | --- | --- |",
    ]
    for name in dict.fromkeys(PLACES[r["slice"].rpartition("-")[0]] for r in collectives):
        rows = [r for r in collectives if PLACES[r["slice"].rpartition("-")[0]] == name and r["bytes"] >= STEADY_B]
        worst = max(rows, key=lambda r: abs(r["error"]))
        median = statistics.median(abs(r["error"]) for r in rows)
        what = f"{worst['case']} of {size(worst['bytes'])}"
        lines.append(f"| {name} | {len(rows)} | {median:.1f} % | {worst['error']:+.1f} %: {what} |")
    lines += [
        "",
        "| step | predicted | measured | error | exposed, points of the step | overlap |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for r in steps_:
        overlap = " and ".join("-" if x is None else f"{x:.0f} %" for x in r["overlap"])
        lines.append(
            f"| {r['slice'].split('-')[0]}: {r['case'].replace('-', ' ')} | {1e3 * r['predicted_s']:.0f} ms |"
            f" {1e3 * r['measured_s']:.0f} ms | {r['error']:+.1f} % | {r['exposed_error']:+.1f} | {overlap} |"
        )
    lines += ["", "| bucket | that `stepsim sweep` finds | best measured | behind it |", "| --- | --- | --- | --- |"]
    for r in sweeps:
        place = PLACES[r["slice"].rpartition("-")[0]]
        lines.append(f"| {place} | {r['sweep']} MiB | {r['measured']} MiB | {r['behind']:.1f} % |")
    lines += ["", "| error | found | goal |", "| --- | --- | --- |"]
    lines += [f"| {name} | {found[name]:.1f} % | {goal} % |" for name, goal in GOALS.items()]
    return lines


def commit():
    return subprocess.run(
        ["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout.strip()


def write_page(script, lines):
    """Puts the tables between the marks of a script in docs/clusters.md."""
    begin, end = (f"<!-- {script} --docs: {k} -->" for k in ("begin", "end"))
    with open(PAGE) as f:
        before, _, rest = f.read().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        stop(f"{PAGE} has no place for the tables: {begin} and {end}")
    with open(f"{PAGE}.part", "w") as f:
        f.write("\n".join([before + begin, "", *lines, "", mark]) + after)
    os.replace(f"{PAGE}.part", PAGE)


def of_round(names, k):
    """Collectives are of the first round alone: each of their times is of many calls."""
    return [n for n in names if k == 0 or "steps" in SLICES[n][2]]


def results_of(names, folders):
    """Rows of collectives, of steps (means over the rounds) and of sweeps, and how many results are missing."""
    sums, steps_, sweeps, missing = [], [], [], 0
    for name in names:
        place, _, work = SLICES[name]
        of_rounds = [f for k, f in enumerate(folders) if name in of_round(names, k)]
        by_case = collections.defaultdict(list)
        for folder in of_rounds:
            results = commands(name, place, work, folder)[1]
            missing += sum(not os.path.exists(path) for path in results)
            if "sizes" in work:
                sums += collective_rows(name, results)
                continue
            for row in step_rows(name, [r for r in results if r != sweep_path(name, folder)]):
                by_case[row["case"]].append(row)
        steps_ += [mean_of_rounds(rows) for rows in by_case.values()]
        if "sweep" in work:
            sweeps += sweep_row(name, of_rounds, steps_)
    return sums, steps_, sweeps, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "build/testbed"))
    parser.add_argument("--slice", default="", metavar="COMMAND")
    parser.add_argument("--only", nargs="+", choices=SLICES, default=list(SLICES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fresh", action="store_true", help="measure all anew")
    parser.add_argument("--docs", action="store_true", help="write the tables of docs/clusters.md")
    a = parser.parse_args()
    folders = [os.path.join(a.out, str(k)) for k in range(1, a.rounds + 1)]
    if subprocess.run(["bash", f"{ROOT}/scripts/testbed.sh", "1", "true"]).returncode:
        sys.exit(2)
    print("bench_testbed: load of the machine before the first run:", *os.getloadavg(), file=sys.stderr)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
        clear(folder, a.fresh)
    run_all([piece for k, folder in enumerate(folders) for piece in pieces(of_round(a.only, k), folder)], a.slice)
    sums, steps_, sweeps, missing = results_of(a.only, folders)
    print_tables(sums, steps_)
    found, met = judge(sums, steps_, sweeps)
    with open(f"{a.out}/testbed.json", "w") as f:
        parts = {"collectives": sums, "steps": steps_, "sweeps": sweeps, "errors": found, "goals": GOALS}
        json.dump(parts, f, indent=1)
    if missing:
        stop(f"{missing} results are missing; the same command measures them")
    if a.docs and a.only == list(SLICES):
        write_page("bench_testbed.py", pages_table(sums, steps_, sweeps, found))
    sys.exit(0 if met else 3)


if __name__ == "__main__":
    main()
