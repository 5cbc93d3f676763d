#!/usr/bin/env python3
"""Predicts, from a committed profile, the steps that a GPU has executed, and prints the errors.

    python3 tests/validation/gpu/predict.py [--profile FILE] [--kinds] [FOLDER ...]

Each FOLDER (default: all here) has the results*.json that scripts/gpu_check.sh left. Nothing is executed. Steps were
timed without events. --kinds: times of kinds, which were taken with an event around each op and hold its time.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
STEPSIM = os.environ.get("STEPSIM", os.path.join(ROOT, "build/release/stepsim"))
GPU_OF = {"h100": "h100-sxm", "h200": "h200-sxm"}  # by folder: the file in configs/gpus, and that in configs/profiles
ROOMS = ("model", "train", "data", "parallel")  # sections of a run's config that the machine does not decide


def predicted(run, gpu, profile):
    config = {key: run["config"][key] for key in ROOMS}
    config["cluster"] = {"system": f"gpu:1 {gpu}", "profile": profile}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as f:
        json.dump(config, f)  # JSON is YAML
        f.flush()
        command = [STEPSIM, "predict", f.name, "-q", "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["prediction"]


def kinds(p, measured):
    mine = {c["class"]: c for c in p["by_class"]}
    for c in measured["by_class"]:
        k = mine.get(c["class"])
        if k and c["class"] not in ("copy", "host"):
            print(f"    {c['class']:12} {c['count']:5} ops {1e6 * k['time_s'] / k['count']:9.2f} us "
                  f"{1e6 * c['time_s'] / c['count']:9.2f} us {100 * (k['time_s'] / c['time_s'] - 1):+7.1f} %")


def report(folder, file, args):
    gpu = GPU_OF[os.path.basename(os.path.normpath(folder))]
    with open(os.path.join(folder, file), encoding="utf-8") as f:
        runs = json.load(f)["runs"]
    errors = []
    print(f"{gpu + ', ' + file:34} {'predicted':>12} {'measured':>12} {'error':>9} {'when run':>9}")
    for name in sorted(runs):
        if "-share" in name:
            continue
        measured_s = runs[name]["measurement"]["step_time_s"]
        p = predicted(runs[name], gpu, args.profile or gpu)
        errors.append(p["step_time_s"] / measured_s - 1)
        then = runs[name]["prediction"]["step_time_s"] / measured_s - 1
        print(f"{name:34} {1e3 * p['step_time_s']:9.3f} ms {1e3 * measured_s:9.3f} ms {100 * errors[-1]:+7.1f} % "
              f"{100 * then:+7.1f} %")
        if args.kinds:
            for w in p["warnings"]:
                print("    " + w)
            kinds(p, runs[name]["measurement"])
    print(f"median of the absolute error of {len(errors)}: {100 * statistics.median(map(abs, errors)):.1f} %, "
          f"largest {100 * max(map(abs, errors)):.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", help="in place of the committed one")
    parser.add_argument("--kinds", action="store_true", help="the times of each kind of op, too")
    parser.add_argument("folders", nargs="*", help="default: all here")
    args = parser.parse_args()
    for folder in args.folders or [os.path.join(HERE, f) for f in sorted(GPU_OF)]:
        for file in sorted(f for f in os.listdir(folder) if re.match(r"results.*\.json$", f)):
            report(folder, file, args)


if __name__ == "__main__":
    main()
