#!/usr/bin/env python3
"""Writes configs for other frameworks, reads them back and compares what was resolved: round_trip.py CONFIG..."""
import json
import subprocess
import sys

FRAMEWORKS = ("torchtitan", "megatron", "deepspeed", "nanotron", "accelerate")
# Two ways to say train.global_batch, which is compared.
SAID_OTHERWISE = {"train.tokens_per_step", "train.batch_per_gpu"}


def stepsim(*words, text=None):
    return subprocess.run(["stepsim", *words], input=text, capture_output=True, text=True, check=True).stdout


def resolved(path, text=None):
    answer = json.loads(stepsim("predict", path, "-q", "--json", "-", text=text))
    keys = {
        f"{section}.{key}": value for section, table in answer["config"].items() for key, value in table.items()
    }
    keys["step_time_s"] = answer["prediction"]["step_time_s"]
    return {key: value for key, value in keys.items() if key not in SAID_OTHERWISE}


def main():
    for path in sys.argv[1:]:
        before = resolved(path)
        for framework in FRAMEWORKS:
            after = resolved("-", stepsim("export", path, "--to", framework))
            differ = sorted(key for key in before | after if before.get(key) != after.get(key))
            print(path.rsplit("/", 1)[-1], framework, *(differ or ["same"]))


main()
