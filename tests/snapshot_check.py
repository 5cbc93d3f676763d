#!/usr/bin/python3
"""Checks snapshots of memory (stepsim predict --memory-snapshot): snapshot_check.py SNAPSHOT RESULT.json.

What PyTorch's viewer takes for granted must hold: no block is given out twice, all that is freed was there, a segment's
blocks fill it and are what the events leave, times do not go back. The largest sum is the predicted memory without what
lies outside the allocator. Only opcodes that torch/utils/viz/MemoryViz.js knows may be in the pickle.
"""

import json
import pickle
import pickletools
import sys

KNOWN = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEMS", "APPENDS", "BINUNICODE", "BININT", "LONG1", "STOP"}


def replay(trace):
    """Returns the peak, and the blocks alive at the end."""
    live, peak, last = {}, 0, 0
    for event in trace:
        if event["time_us"] < last:
            sys.exit("time goes back")
        last = event["time_us"]
        if event["action"] == "alloc":
            if any(a < event["addr"] + event["size"] and event["addr"] < a + live[a] for a in live):
                sys.exit("a block lies in another one")
            live[event["addr"]] = event["size"]
            peak = max(peak, sum(live.values()))
        elif event["action"] == "free_completed":
            if live.pop(event["addr"], None) != event["size"]:
                sys.exit("a block is freed that is not there")
    return peak, live


text = open(sys.argv[1], "rb").read()
unknown = {op.name for op, _, _ in pickletools.genops(text)} - KNOWN
if unknown:
    sys.exit(f"opcodes that the viewer does not know: {unknown}")
snapshot = pickle.loads(text)
predicted = json.load(open(sys.argv[2]))["prediction"]["memory"]
peaks = []
for device, trace in enumerate(snapshot["device_traces"]):
    peak, live = replay(trace)
    (segment,) = (s for s in snapshot["segments"] if s["device"] == device)
    left = {b["address"]: b["size"] for b in segment["blocks"] if b["state"] == "active_allocated"}
    if left != live or sum(b["size"] for b in segment["blocks"]) != segment["total_size"]:
        sys.exit("the segment is not what the events leave")
    peaks.append(peak)
same = max(peaks) == predicted["total_bytes"] - predicted["overhead_bytes"]
print(f"{len(peaks)} devices; the peak is the predicted memory: {same}")
