#!/usr/bin/env python3
"""Predicts the published runs that ran out of memory (tests/validation/out-of-memory.csv), and counts those that
stepsim says fit, and tests/validation/outside.csv's that ran and are said not to fit.

    scripts/out_of_memory.py [STEPSIM]        # build/release/stepsim
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = os.path.join(HERE, "..", "tests", "validation")


def judged(stepsim, table):
    """Returns what `stepsim validate` says of each row. A run without a step time is not predicted, so it gets one."""
    with open(os.path.join(TABLES, table), newline="") as f:
        reader = csv.DictReader(f)
        columns, rows = reader.fieldnames, list(reader)
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "rows.csv"), os.path.join(folder, "rows.json")
        with open(path, "w", newline="") as f:
            writer = csv.DictWriter(f, columns, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                row["step_time_s"] = row["step_time_s"] or (row["tokens_per_s"] and "" or "1")
                writer.writerow(row)
        subprocess.run([stepsim, "validate", path, "--json", out, "-q"], check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            return json.load(f)["results"]


def main():
    stepsim = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "build", "release", "stepsim")
    failed = judged(stepsim, "out-of-memory.csv")
    fit = [r["id"] for r in failed if r["fits"]]
    refused = [f'{r["id"]}: {r["reason"]}' for r in failed if r["fits"] is None]
    ran = [r for r in judged(stepsim, "outside.csv") if r["fits"] is not None]
    missed = [r["id"] for r in ran if not r["fits"]]
    asked = len(failed) - len(refused)
    print(f"ran out of memory: {asked - len(fit)} of {asked} are said not to fit")
    print(f"  said to fit: {' '.join(fit) or 'none'}")
    print(f"ran: {len(ran) - len(missed)} of {len(ran)} are said to fit")
    print(f"  said not to fit: {' '.join(missed) or 'none'}")
    for line in refused:
        print(f"not predicted: {line}")


main()
