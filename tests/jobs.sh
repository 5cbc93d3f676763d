#!/usr/bin/env bash
# The main job as users start it: every example plan on 1, 2, 4 and 8 ranks, what it writes, and how it fails. The last
# line is "N passed, N failed".
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/verdicts.sh"
stepsim=${STEPSIM:-$root/build/release/stepsim}

# Jobs of one and two ranks take what tests/run.sh measured, or measure for themselves; those of more take the profile
# of four.
launch() { # ranks, then the arguments of stepsim
	local ranks=$1 known=()
	shift
	[ "$ranks" -le 2 ] || [ "$1" = calibrate ] || known=(--set "cluster.profile=$scratch/profile.yaml")
	timeout 300 mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" "$@" \
		${known[@]+"${known[@]}"} </dev/null >"$scratch/out" 2>"$scratch/err"
}

# Counts one check: its name, then a condition that was evaluated by the caller as $?.
expect() {
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $1"
		sed 's/^/    /' "$scratch/out" "$scratch/err"
	fi
}

launch 4 calibrate -o "$scratch/profile.yaml" && grep -q 'matrix rate' "$scratch/out" &&
	"$stepsim" predict configs/ddp-tiny.yaml --set parallel.data=4 --set cluster.profile="$scratch/profile.yaml" \
		-v >"$scratch/out" 2>"$scratch/err" && grep -q "profile: $scratch/profile.yaml" "$scratch/err"
expect 'calibrate writes a profile that predict reads' $?

# ---- every plan executes, and every collective's sum is right ----

# Tensor plans need as many ranks as their tensor size, or a multiple; their model has 4 heads for keys and values.
plans='ddp-tiny 1 2 4 8
zero1-tiny 1 2 4 8
zero2-tiny 1 2 4 8
fsdp-tiny 1 2 4 8
tp-tiny 1 2 4 8
tp-sp-tiny 1 2 4 8
tp-dp-tiny 2 4 8
cp-tiny 2 4 8
t5-tiny 1 2 4'
while read -r plan ranks; do
	for n in $ranks; do
		options=()
		case $plan in tp-tiny | tp-sp-tiny) options=(--set "parallel.tensor=$((n < 4 ? n : 4))") ;; esac
		launch "$n" "configs/$plan.yaml" ${options[@]+"${options[@]}"} --json "$scratch/result.json" &&
			grep -q '"verified": true' "$scratch/result.json"
		expect "$plan on $n ranks" $?
	done
done <<<"$plans"

# ranks, what it is, --set ...
while read -r n name options; do
	sets=()
	for o in $options; do sets+=(--set "$o"); done
	launch "$n" configs/ddp-tiny.yaml --set run.steps=2 "${sets[@]}" --json "$scratch/result.json" &&
		grep -q '"verified": true' "$scratch/result.json" && grep -q '"bubble_s": 0.' "$scratch/result.json"
	expect "a pipeline on $n ranks: $name" $?
done <<'PIPELINES'
2 1f1b parallel.pipeline=2
2 interleaved parallel.pipeline=2 parallel.schedule=interleaved parallel.virtual_stages=2 model.layers=4
4 gpipe,zero1 parallel.pipeline=2 parallel.schedule=gpipe parallel.strategy=zero1
4 zero_bubble,untied parallel.pipeline=4 parallel.schedule=zero_bubble model.layers=4 model.tied_embeddings=false
4 fsdp parallel.pipeline=2 parallel.strategy=fsdp parallel.bucket_mb=25
8 1f1b,tensor parallel.pipeline=4 parallel.tensor=2 model.layers=4
PIPELINES

launch 2 configs/ddp-tiny.yaml --set run.steps=2 --set 'cluster.slow_ranks={1: 3}' --json "$scratch/result.json" &&
	grep -q '"verified": true' "$scratch/result.json" && grep -q 'computes 3 times as long' "$scratch/result.json"
expect 'a slow rank is slowed, and verified' $?

launch 8 configs/ddp-tiny.yaml && grep -q 'warning: 8 ranks share' "$scratch/out"
said=$?
[ "$(cores)" -ge 8 ] && said=0
expect 'more ranks than cores is said' $said

# Something else runs on the cores while steps are timed: which is no measurement of the machine, and said.
burners=()
for ((i = 0; i < $(cores); i++)); do
	(trap 'exit 0' TERM; while :; do :; done) &
	burners+=($!)
done
launch 2 configs/ddp-tiny.yaml --set run.steps=40 && grep -q 'warning: other processes took .* while steps were timed' \
	"$scratch/out"
said=$?
kill "${burners[@]}"
expect 'a busy machine is said' $said

# ---- what it writes ----

launch 2 configs/quickstart.yaml --set run.steps=2 --trace "$scratch/trace.json" &&
	grep -q 'predicted *measured *error' "$scratch/out" &&
	[ "$(grep -c '"process_name"' "$scratch/trace.json")" -eq 3 ]
expect 'a table, and a trace with the predicted role and two ranks' $?

launch 2 configs/ddp-tiny.yaml --set run.steps=2 --json - && [ "$(head -c 1 "$scratch/out")" = '{' ] &&
	[ "$(tail -n 1 "$scratch/out")" = '}' ]
expect '--json - is all there is on standard output' $?

"$stepsim" configs/ddp-tiny.yaml </dev/null >"$scratch/out" 2>"$scratch/err" &&
	grep -q 'Measured: median' "$scratch/out"
expect 'alone, one rank is executed without a launcher' $?

"$stepsim" configs/ddp-tiny.yaml --set parallel.data=2 </dev/null >"$scratch/out" 2>"$scratch/err" &&
	grep -q 'Not executed: the plan needs 2 ranks: `mpirun -np 2' "$scratch/out"
expect 'alone, a plan for two ranks is predicted, and how to execute it is said' $?

# ---- limits and errors ----

launch 2 configs/ddp-tiny.yaml --max-error 0
[ $? -eq 3 ] && grep -q 'more than --max-error 0' "$scratch/err"
expect 'a missed limit ends with 3' $?

launch 2 configs/ddp-tiny.yaml --max-error 100000
expect 'a kept limit ends with 0' $?

launch 2 configs/ddp-tiny.yaml --set parallel.data=64 --set train.global_batch=128
[ $? -eq 2 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ] && grep -q 'mpirun -np 64' "$scratch/err"
expect 'a plan for 64 ranks on 2: one line says what to do' $?

launch 2 configs/ddp-tiny.yaml --bogus
[ $? -eq 2 ] && [ "$(wc -l <"$scratch/err")" -eq 1 ]
expect 'a wrong option is said once, not by every rank' $?

launch 2 predict configs/llama3-8b-fsdp-64xh100.yaml && [ "$(grep -c 'step time' "$scratch/out")" -eq 1 ]
expect 'a prediction under mpirun is printed once' $?

# ---- a rank that dies ----

# One of two ranks is killed in the middle of a run that would last for minutes: the job ends, with a reason, and nobody
# is left.
children() { # of a process
	tr ' ' '\n' 2>/dev/null <"/proc/$1/task/$1/children"
}

alive() { # a process that has ended and waits to be collected is gone
	local state
	state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ "${state:0:1}" != Z ]
}

killed_rank() {
	local job launcher ranks victim deadline left
	timeout 300 mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" configs/quickstart.yaml --set run.steps=100000 \
		--set run.timeout_s=10 </dev/null >"$scratch/out" 2>"$scratch/err" &
	job=$!
	for _ in $(seq 600); do
		launcher=$(children "$job" | head -n 1)
		ranks=$([ -n "$launcher" ] && children "$launcher" | grep .)
		[ "$(wc -l <<<"$ranks")" -eq 2 ] && break
		sleep 0.1
	done
	victim=$(tail -n 1 <<<"$ranks")
	has_worked "$victim" 100 || return 1
	kill -KILL "$victim" || return 1
	deadline=$((SECONDS + 45))
	while kill -0 "$job" 2>/dev/null && [ $SECONDS -lt $deadline ]; do sleep 0.2; done
	if kill -0 "$job" 2>/dev/null; then
		kill -KILL "$launcher" "$job"
		echo 'the job outlived its rank' >>"$scratch/err"
		return 1
	fi
	wait "$job" && return 1
	for left in $ranks; do
		while alive "$left"; do
			if [ $SECONDS -ge $deadline ]; then
				echo "rank process $left is left" >>"$scratch/err"
				return 1
			fi
			sleep 0.2
		done
	done
	# A busy machine may warn beside it.
	[ "$(grep '^stepsim: ' "$scratch/err" | grep -vc '^stepsim: warning: others disturbed')" -eq 1 ] &&
		grep -q 'rank' "$scratch/err"
}
killed_rank
expect 'kill -9 of a rank ends the job with one line' $?

verdicts
