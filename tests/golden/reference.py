"""Holds the remarks of configs/reference.yaml against the program: reference.py REFERENCE.yaml TINY.yaml. Prints what
is not as it is remarked, and how much was looked at.

Every word that a key takes is named beside it, no word that is refused is without "(later)", what is "(later)" is
refused as not modelled yet and the rest is not; and what is "not executed" is refused where execution is asked for, the
rest executed.
"""

import re
import sys

from later import answer, known_words, wrong_later

reference, tiny = sys.argv[1:]
TRIED = {  # in a small step on one rank
    "model.sliding_window": "16",
    "train.optimizer_bits": "8",
    "train.offload": "optimizer",
    "train.optimizer": "lion",
    "train.sync_every": "1",
    "train.cuda_graph": "true",
    "train.recompute": "full",
    "data.load_time": "1ms",
    "cluster.slow_ranks": "{0: 1.1}",
    "collectives.algorithm": "hierarchical",
}


def keys():
    """Yields (section.key, value, remark) of each key; a remark goes on in lines that hold nothing else."""
    section = None
    text = re.sub(r"\n {20,}# +", " ", open(reference).read())
    for line in text.splitlines():
        if found := re.match(r"([a-z]+):", line):
            section = found[1]
        elif found := re.match(r"  ([a-z_0-9]+):\s*([^#]*?)\s*(?:#\s*(.*))?$", line):
            yield f"{section}.{found[1]}", found[2], found[3] or ""


def wrong_words(key, value, remark):
    later = set(re.findall(r"(\S+) \(later\)", remark))
    known = [] if key.endswith(("preset", "system", "stack")) else known_words(reference, key)
    for word in known:
        if word != value and not re.search(rf"(?<![\w+]){re.escape(word)}(?![\w+])", remark):
            yield f"{key}: {word} is not named"
    if remark == "(later)":
        later = {str(int(value) + 1)}
    yield from wrong_later(reference, key, re.findall(r"[a-z0-9_+]+", remark) if known else [], later)


def wrong_execution(key, remark):
    value = TRIED[key]
    once = ["--set", "run.execute=true", "--set", "run.steps=1", "--set", "run.warmup=0"]
    status, said = answer("stepsim", tiny, "-q", *once, "--set", f"{key}={value}")
    if ("not executed" in remark) != (status != 0 and "not executed" in said) or (
        "not executed" not in remark and status
    ):
        yield f"{key}={value}: {said or 'is executed'}"


seen = list(keys())
for key, value, remark in seen:
    for wrong in [*wrong_words(key, value, remark), *(wrong_execution(key, remark) if key in TRIED else [])]:
        print(wrong)
print(f"{len(seen)} keys, {sum(key in TRIED for key, *_ in seen)} executed")
