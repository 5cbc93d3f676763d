#!/usr/bin/env python3
"""Reads Chrome traces as Perfetto does and fails on what it would drop: fields that an event of its kind needs (Trace
Event Format), flows without both ends or outside of slices, counters that are no numbers.

    python3 tests/trace_check.py TRACE.json ...

Prints what each trace holds; exit code 1 when one is bad."""

import bisect
import collections
import json
import sys

NEEDS = {
    "X": ("name", "ts", "dur", "pid", "tid"),
    "M": ("name", "pid", "tid", "args"),
    "C": ("name", "ts", "pid", "tid", "args"),
    "s": ("name", "cat", "ts", "pid", "tid", "id"),
    "f": ("name", "cat", "ts", "pid", "tid", "id"),
}


def check_fields(event):
    kind = event.get("ph")
    if kind not in NEEDS:
        raise ValueError(f"no kind of event that we write: {event}")
    for field in NEEDS[kind]:
        if field not in event:
            raise ValueError(f"{field} is missing: {event}")
    for field in ("ts", "dur"):
        if field in event and not (isinstance(event[field], (int, float)) and event[field] >= 0):
            raise ValueError(f"{field} is no time: {event}")
    if kind == "C" and not all(isinstance(v, (int, float)) and v >= 0 for v in event["args"].values()):
        raise ValueError(f"a counter that is no number from 0: {event}")
    if kind == "f" and event.get("bp") != "e":
        raise ValueError(f"this end would bind to the next slice: {event}")


def slice_at(track, ts):
    """The innermost slice of a track, in order of begin, that holds `ts`; None where there is none."""
    starts, slices = track
    for i in range(bisect.bisect_right(starts, ts) - 1, max(-1, bisect.bisect_right(starts, ts) - 4), -1):
        if slices[i]["ts"] <= ts <= slices[i]["ts"] + slices[i]["dur"] + 1e-6:
            return slices[i]
    return None


def check(path):
    with open(path) as f:
        events = json.load(f)["traceEvents"]
    count, tracks, ends = collections.Counter(), collections.defaultdict(list), collections.defaultdict(dict)
    for event in events:
        check_fields(event)
        count[event["ph"]] += 1
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
        elif event["ph"] in "sf":
            if event["ph"] in ends[event["id"]]:
                raise ValueError(f"two events of one end of a flow: {event}")
            ends[event["id"]][event["ph"]] = event
    tracks = {k: sorted(v, key=lambda x: (x["ts"], -x["dur"])) for k, v in tracks.items()}
    tracks = {k: ([x["ts"] for x in v], v) for k, v in tracks.items()}
    kinds = collections.Counter()
    for number, pair in ends.items():
        if set(pair) != {"s", "f"} or pair["s"]["ts"] > pair["f"]["ts"]:
            raise ValueError(f"flow {number} lacks an end, or ends before it begins")
        begin, end = (slice_at(tracks[pair[k]["pid"], pair[k]["tid"]], pair[k]["ts"]) for k in "sf")
        if not begin or not end:
            raise ValueError(f"flow {number} begins or ends outside of slices")
        if begin["ts"] + begin["dur"] > end["ts"] + end["dur"]:
            raise ValueError(f"flow {number} leads to a slice that ends before")
        kinds[
            (
                f'{"compute" if begin["tid"] == 0 else "communication"} to {end["cat"]}'
                if end["tid"]
                else f'{begin["cat"]} to compute'
            )
        ] += 1
    return count, kinds, len({e["name"] for e in events if e["ph"] == "C"})


def main(paths):
    for path in paths:
        try:
            count, kinds, counters = check(path)
        except (ValueError, KeyError, OSError) as why:
            print(f"{path}: {why}")
            return 1
        print(
            f'{path}: {count["X"]} slices, {count["C"]} points of {counters} counters, {count["s"]} flows',
            *(f"{n} {k}" for k, n in sorted(kinds.items())),
            sep="; ",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
