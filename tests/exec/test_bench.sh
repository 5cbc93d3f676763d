#!/usr/bin/env bash
# `stepsim bench` on the host at 1, 2, 3 and 4 ranks and on doubles of the CUDA libraries: every collective's result is
# right, the columns are nccl-tests', files parse, exit codes hold. Times are not judged.
# The same collectives through the verification of runs (test_collectives.c). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
out=$scratch/out err=$scratch/err

shown() {
	head -30 "$out" "$err"
}

# Ranks, then as the command line.
bench() {
	local ranks=$1
	shift
	timeout 120 mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" bench "$@" >"$out" 2>"$err" </dev/null
}

on_doubles() {
	LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} bench "$@" --backend cuda
}

# Prints the faults of a table: exit code, collective, rows, "measured" or "double".
table() {
	local code=$1 coll=$2 rows=$3 kind=$4
	[ "$code" -eq 0 ] || { echo "exit code $code"; return; }
	grep -q '^# Out of bounds values : 0 OK$' "$out" || { echo 'no verdict on values'; return; }
	grep -q '^# Avg bus bandwidth    : ' "$out" || { echo 'no average'; return; }
	awk -v coll="$coll" -v rows="$rows" -v kind="$kind" '
		/^#/ { next }
		{
			n++
			alone = coll == "alltoall" || coll == "sendrecv"
			if ($4 != (coll ~ /reduce/ ? "sum" : "none") || $5 != (coll == "broadcast" ? 0 : -1))
				print "redop or root: " $0
			if ($9 != "0" || $13 != (alone ? "N/A" : "0")) print "#wrong: " $0
			for (i = 6; i <= 12; i++)
				if (i != 9 && (i < 9 || !alone) && 
					(kind == "double" ? $i != "double" : $i !~ /^[0-9]+\.?[0-9]*$/))
					print "column " i ": " $0
		}
		END { if (n != rows) print n " rows" }' "$out" | head -1
}

for coll in all_reduce all_gather reduce_scatter broadcast alltoall sendrecv; do
	for ranks in 1 2 3 4; do
		options=(-b 4 -e 300K -f 16 -n 2 -w 1)
		[ "$ranks" = 3 ] && options+=(-d int32)
		bench "$ranks" "$coll" "${options[@]}"
		code=$?
		rows=5
		# 4 B are less than an element for each of four ranks, and come out as 16.
		verdict "$coll at $ranks" "$(table "$code" "$coll" "$rows" measured)"
	done
done

for ranks in 1 2 3 4; do
	timeout 60 mpirun "${mpirun_flags[@]}" -np "$ranks" build/release/tests/exec/test_collectives >"$out" \
		2>"$err" </dev/null
	code=$?
	verdict "the verification of runs at $ranks" "$([ "$code" -eq 0 ] || echo "exit code $code")"
done

bench 2 all_gather -b 1M -e 1M -n 2 --json "$scratch/j.json" --csv "$scratch/t.csv"
code=$?
verdict 'JSON and CSV' "$([ "$code" -eq 0 ] || echo "exit code $code"
python3 - "$scratch" <<'PY'
import csv, json, sys
j = json.load(open(sys.argv[1] + "/j.json"))
r = list(csv.DictReader(open(sys.argv[1] + "/t.csv")))
row = j["rows"][0]
good = len(r) == 1 and len(j["rows"]) == 1 and row["size_bytes"] == 1 << 20 and row["count"] == 1 << 17
good = good and row["predicted_s"] > 0 and row["nccl"] is None and j["summary"]["wrong"] == 0 and not j["double"]
good = good and abs(row["out_of_place"]["busbw_Bps"] * 2 - row["out_of_place"]["algbw_Bps"]) < 1
good = good and len(j["ranks"]) == 2 and j["system"] and j["summary"]["verdict"]
good = good and abs(float(r[0]["time_us"]) - 1e6 * row["out_of_place"]["time_s"]) < 1e-3 and r[0]["wrong"] == "0"
good = good and list(r[0])[:7] == "size_bytes,count,type,time_us,algbw_GBps,busbw_GBps,wrong".split(",")
print("" if good else [j, r])
PY
)"
bench 2 all_reduce -b 1M -e 1M -n 2 -w 0 -c 0 --max-error 0
code=$?
wrong=''
[ "$code" -eq 3 ] || wrong="exit code $code, not 3"
grep -q 'more than --max-error 0' "$err" || wrong=${wrong:-no line}
grep -q 'N/A (-c 0)' "$out" || wrong=${wrong:-values that were not checked are called right}
verdict 'a missed limit' "$wrong"
bench 2 all_reduce -b 1M -e 1M -n 2 --json -
code=$?
verdict '--json - is all there is' \
	"$([ "$code" -eq 0 ] && python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$out" 2>&1 | tail -1)"

if [ -e build/release/libstepsim_cuda.so ]; then
	for coll in all_reduce all_gather reduce_scatter broadcast alltoall sendrecv; do
		on_doubles 2 "$coll" -b 4K -e 1M -f 16 -n 3 -w 1 -d bf16
		code=$?
		wrong=$(table "$code" "$coll" 3 double)
		[ "$(grep -c ' RING/SIMPLE/2 ' "$out")" -eq 3 ] || wrong=${wrong:-what NCCL chose is not told}
		grep -q 'nothing was measured' "$out" || wrong=${wrong:-no word on doubles}
		verdict "$coll on doubles" "$wrong"
	done
	NCCL_DEBUG=WARN on_doubles 2 all_reduce -b 4K -e 4K
	code=$?
	verdict "the user's own NCCL_DEBUG" "$(table "$code" all_reduce 1 double)$(grep RING "$out")"
	on_doubles 1 all_reduce -b 4K -e 4K
	code=$?
	verdict 'one GPU alone' "$(table "$code" all_reduce 1 double)"
	STEPSIM_DOUBLE_GPUS=1 on_doubles 2 alltoall -b 4K -e 4K -d half --share-gpu
	code=$?
	verdict 'two ranks share a GPU' "$(table "$code" alltoall 1 double)"

	ends() { # name, exit code, pattern, then as bench
		local name=$1 want=$2 pattern=$3 wrong=''
		shift 3
		on_doubles "$@"
		code=$?
		[ "$code" -eq "$want" ] || wrong="exit code $code, not $want"
		[ "$(grep -Ec "^stepsim: .*$pattern" "$err")" -eq 1 ] || wrong=${wrong:-"no line with \"$pattern\""}
		verdict "$name" "$wrong"
	}
	STEPSIM_DOUBLE_MEM_B=1000000 ends 'not enough memory' 1 'not enough memory on GPU [01] .*-e sets' 2 all_reduce \
		-e 1M
	STEPSIM_DOUBLE_FAULT=rank:1:die:3 ends 'a rank dies' 137 'rank 1 .* died' 2 all_reduce -e 1M
	STEPSIM_DOUBLE_FAULT=rank:0:nccl:3 ends 'NCCL breaks' 1 'injected: a peer is gone' 2 all_reduce -e 1M
	ends 'a limit on doubles' 1 'doubles of the CUDA libraries give none' 2 all_reduce -e 1M -f 64 -n 1 \
		--max-error 5
else
	skipped=1
fi

verdicts
