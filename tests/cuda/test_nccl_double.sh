#!/usr/bin/env bash
# The room's communicators on the doubles, at 1, 2, 4 and 8 ranks, and what becomes of faults (test_nccl_double.c). Then
# NCCL's own calls (test_nccl_calls.c). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
programs=${1:-build/release/tests/cuda}
doubles=${2:-build/release/doubles}
export LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

shown() {
	head -20 "$log"
}

# run RANKS MODE [FAULT] [PROGRAM]: the exit code.
run() {
	STEPSIM_DOUBLE_FAULT=${3:-} timeout 90 mpirun "${mpirun_flags[@]}" -np "$1" \
		"$programs/${4:-test_nccl_double}" "$2" >"$log" 2>&1 </dev/null
}

# wants CODE ACTUAL PATTERN...: what is missing.
wants() {
	local code=$1 actual=$2 pattern
	shift 2
	[ "$actual" -eq "$code" ] || { echo "exit code $actual"; return; }
	for pattern in "$@"; do
		grep -Eq "$pattern" "$log" || { echo "no line with \"$pattern\""; return; }
	done
}

for ranks in 1 2 4 8; do
	for seed in 1 2; do
		STEPSIM_DOUBLE_SEED=$seed run "$ranks" all
		code=$?
		wrong=$(wants 0 "$code" '^[678][0-9][0-9] checked$')
		[ -n "$wrong" ] || [ "$(grep -c ' checked$' "$log")" -eq "$ranks" ] ||
			wrong='not every rank came to its end'
		verdict "$ranks ranks, seed $seed" "$wrong"
	done
	run "$ranks" - '' test_nccl_calls
	verdict "NCCL's own calls, $ranks ranks" "$(wants 0 $? '^[0-9]+ checked$')"
done

gone='all 2 ranks: asynchronous error: .*injected: a peer is gone'
run 2 calls nccl:5
verdict 'an asynchronous error' \
	"$(wants 1 $? '^rank [01] \(device [01]\): NCCL: (after )?all_reduce of 64 fp32 elements, '"$gone")"
run 1 calls nccl:5
verdict 'an asynchronous error of one rank' "$(wants 1 $? '^rank 0 \(device 0\): NCCL: .*injected: a peer is gone')"
run 4 calls rank:1:hang:3
verdict 'a collective that never ends' "$(wants 1 $? '^a stream did not end within 3 s')"
run 2 calls rank:1:die:3
verdict 'a rank that dies' "$(wants 137 $?)"
run 2 strangers
verdict 'set-up that never ends' \
	"$(wants 1 $? '^rank 0 \(device [01]\): NCCL: set-up, all 2 ranks: not done after 2 s' \
	'^rank 1 \(device [01]\): NCCL: set-up')"
run 2 same
verdict 'two ranks on one GPU' "$(wants 1 $? 'NCCL: set-up, all 2 ranks: .*Duplicate GPU detected : rank 0 and rank 1')"
run 2 hosts
verdict 'two ranks on one GPU that say they are two hosts' "$(wants 0 $? '^0 checked$')"
run 2 ahead
verdict 'receives ahead that hold few thread blocks' "$(wants 0 $? '^0 checked$')"
run 2 wide
verdict 'receives ahead that hold more thread blocks than there are SMs' \
	"$(wants 1 $? \
		'asynchronous error: .*160 thread blocks held on 132 SMs by communicators [1-5] \(32\), [1-5] \(32\)')"

verdicts
