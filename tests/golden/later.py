"""Asks the program what it says of a key's words, for the tests of configs/reference.yaml and docs/reference.md."""

import re
import subprocess


def answer(*words):
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    return run.returncode, run.stderr.strip()


def predicted(reference, key, value):
    """Returns what `stepsim predict` of the config `reference` complains of with this value of the key."""
    return answer("stepsim", "predict", reference, "-q", "--set", "cluster.system=dgx-h100", "--set", f"{key}={value}")[
        1
    ]


def known_words(reference, key):
    """Returns the words that a key takes, from the line that refuses another; none where it takes other values."""
    known = re.search(r"known: (.*)\)$", predicted(reference, key, "there-is-none"))
    return known[1].split(", ") if known else []


def wrong_later(reference, key, words, later):
    """Yields a line for each of these words that is refused as not modelled yet, unless it is one of `later`, and for
    each of `later` that is not refused."""
    for word in sorted({*words, *later}):
        refused = "not modelled yet" in predicted(reference, key, word)
        if refused and word not in later:
            yield f"{key}: {word} is refused"
        if not refused and word in later:
            yield f"{key}: {word} (later) is not refused"
