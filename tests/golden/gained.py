"""Applies each lever that a prediction prints through the command line, and compares what is gained with what was
printed; no text of a lever says what the plan has already: gained.py CONFIG [--set KEY=VALUE ...]. One line a config;
exit code 1 where a lever does not keep its word."""

import json
import subprocess
import sys


def predict(arguments):
    out = subprocess.run(["stepsim", "predict", *arguments, "--json", "-"], check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def with_sets(arguments, texts):
    return predict([*arguments, "-q", *[word for text in texts for word in ("--set", text)]])


def idle_texts(arguments, row, after):
    """Texts of a row without which the config is the same; one that cannot be left out alone is needed."""
    idle = []
    for i in range(len(row["set"]) if len(row["set"]) > 1 else 0):
        try:
            if with_sets(arguments, row["set"][:i] + row["set"][i + 1:])["config"] == after["config"]:
                idle.append(row["set"][i])
        except subprocess.CalledProcessError:
            pass
    return idle


def main():
    arguments = sys.argv[1:]
    before = predict(arguments)["prediction"]
    wrong = 0
    exact = [row for row in before["advice"] if not row["estimated"]]
    for row in exact:
        changed = with_sets(arguments, row["set"])
        for text in idle_texts(arguments, row, changed):
            wrong += 1
            print(f"{row['what']} {row['set']}: changes nothing: {text}")
        after = changed["prediction"]
        gained = before["step_time_s"] - after["step_time_s"]
        good = (
            abs(gained - row["saves_s"]) < 1e-12
            and after["memory"]["fits"]
            and after["memory"]["total_bytes"] == row["memory_bytes"]
        )
        if not good:
            wrong += 1
            print(
                f"{row['what']} {row['set']}: {row['saves_s']} s promised, {gained} s gained, "
                f"{row['memory_bytes']} and {after['memory']['total_bytes']} bytes"
            )
    saved = [row["saves_s"] for row in before["advice"]]
    if (
        before["memory"]["fits"]
        and any(s < 0.005 * before["step_time_s"] for s in saved)
        or saved != sorted(saved, reverse=True)
    ):
        wrong += 1
        print("not best first, or below what counts:", saved)
    elasticities = [row["elasticity"] for row in before["sensitivity"] if row["elasticity"] is not None]
    if (
        any(x < -1e-3 for x in elasticities)
        or sum(elasticities) > 1.02
        or any(row["limit_s"] > before["step_time_s"] * (1 + 1e-6) for row in before["sensitivity"])
    ):
        wrong += 1
        print("sensitivities:", before["sensitivity"])
    print(f"{before['symptom']}: {len(exact)} levers as promised" if not wrong else f"{wrong} wrong")
    return wrong > 0


sys.exit(main())
