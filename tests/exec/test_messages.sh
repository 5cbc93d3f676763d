#!/usr/bin/env bash
# Messages between stages in a measured timeline: a send lasts until its receiver has the message, or until the next
# send of its lane begins, though MPI calls it sent earlier. The second stage is slow and takes
# messages late. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

shown() {
	head -5 "$log"
}

# Prints what is wrong with the measured messages of a trace.
messages() {
	python3 - "$1" <<'PY'
import json, re, sys

events = json.load(open(sys.argv[1]))["traceEvents"]
ranks = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
stage = {p: int(n.split()[-1]) for p, n in ranks.items() if n.startswith("measured")}  # as many stages as ranks
sends, receipts = {}, {}
for e in events:
    match = e["ph"] == "X" and e["pid"] in stage and re.match(r"(.*) (send|recv) (mb\d+) \w+ stage (\d+)", e["name"])
    if match:
        what, kind, micro, peer = match.groups()
        here, there = stage[e["pid"]], int(peer)
        ends = (here, there) if kind == "send" else (there, here)
        (sends if kind == "send" else receipts)[(what, micro, *ends)] = e
if not sends or sends.keys() != receipts.keys():
    print(len(sends), "sends,", len(receipts), "receipts")
for key, s in sends.items():
    end, arrived = s["ts"] + s["dur"], receipts[key]["ts"] + receipts[key]["dur"]
    later = [o["ts"] for o in sends.values() if (o["pid"], o["tid"]) == (s["pid"], s["tid"]) and o["ts"] > s["ts"]]
    if end < min([arrived, *later]) - 0.01:
        print(f"{key}: sent until {end:.2f} us, received at {arrived:.2f} us")
PY
}

for schedule in 1f1b gpipe; do
	timeout 120 mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" tests/exec/tiny.yaml --set parallel.pipeline=2 \
		--set parallel.strategy=ddp --set "parallel.schedule=$schedule" --set model.seq_len=8 \
		--set 'cluster.slow_ranks={1: 5}' --trace "$scratch/t.json" -q >"$log" 2>&1 </dev/null
	code=$?
	verdict "messages, $schedule" "$([ "$code" -eq 0 ] && messages "$scratch/t.json" || echo "exit code $code")"
done
verdicts
