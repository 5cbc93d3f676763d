#!/usr/bin/env bash
# A run that goes wrong ends: all ranks gone in time, exit code not 0, one line of reason that names rank and op
# (test_faults.c). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
program=${1:-build/release/tests/exec/test_faults}
config=tests/exec/tiny.yaml
long=(run.steps=4000 model.layers=8 train.global_batch=32) # some minutes, were it not for the fault
over_s=45 # in which a job is over; most take a second or two

lives() { # a process that has ended and waits to be collected is gone
	[ -d "/proc/$1" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null
}

# Prints the fault of the end of a job: exit code, the line, how many lines, who is left. Arguments: exit code, pattern.
complaint() {
	local code=$1 pattern=$2 lines left=''
	lines=$(grep -c '^stepsim: ' "$log")
	while read -r pid; do
		for _ in $(seq 50); do # the last ranks may end a moment after the launcher
			lives "$pid" || continue 2
			sleep 0.1
		done
		left+=" $pid"
	done < <(sed -n 's/^rank [0-9]* process //p' "$log")
	if [ "$code" -eq 0 ]; then
		echo 'exit code 0'
	elif [ "$code" -eq 124 ]; then
		echo 'it did not end'
	elif [ "$lines" -ne 1 ]; then
		echo "$lines lines of reason"
	elif ! grep -Eq "^stepsim: $pattern" "$log"; then
		echo "no line like: $pattern"
	elif [ -n "$left" ]; then
		echo "processes are left:$left"
	fi
}

# name, ranks, mode, pattern, KEY=VALUE...
ends() {
	local name=$1 ranks=$2 mode=$3 pattern=$4
	shift 4
	timeout 60 mpirun "${mpirun_flags[@]}" -np "$ranks" "$program" "$mode" "$config" "$@" >"$log" 2>&1 </dev/null
	verdict "$name" "$(complaint $? "$pattern")"
}

# Starts a long run, sends a signal to one rank (or to the launcher, -1) in the middle of it, and waits. name, ranks,
# signal, whom, pattern, KEY=VALUE...
struck() {
	local name=$1 ranks=$2 signal=$3 whom=$4 pattern=$5 launcher target begin code
	shift 5
	mpirun "${mpirun_flags[@]}" -np "$ranks" "$program" steps "$config" "${long[@]}" "$@" >"$log" 2>&1 </dev/null &
	launcher=$!
	for _ in $(seq 600); do
		[ "$(grep -c '^rank [0-9]* process ' "$log")" -eq "$ranks" ] && break
		sleep 0.1
	done
	# The timed steps begin after 0.3 s of each rank's CPU time.
	while read -r pid; do has_worked "$pid" 60; done < <(sed -n 's/^rank [0-9]* process //p' "$log")
	target=$launcher
	[ "$whom" -ge 0 ] && target=$(sed -n "s/^rank $whom process //p" "$log")
	begin=$SECONDS
	kill -"$signal" "$target"
	while kill -0 "$launcher" 2>/dev/null && [ $((SECONDS - begin)) -le "$over_s" ]; do
		sleep 0.1
	done
	if kill -0 "$launcher" 2>/dev/null; then
		kill -KILL "$launcher"
		wait "$launcher" 2>/dev/null
		verdict "$name" "not over after $over_s s"
		while read -r pid; do kill -KILL "$pid" 2>/dev/null; done \
			< <(sed -n 's/^rank [0-9]* process //p' "$log")
		return
	fi
	wait "$launcher"
	code=$?
	verdict "$name" "$(complaint $code "$pattern")"
}

# A wrong sum is found, by name, and only while it is wrong: this one must end well.
# Parts of the reason, as extended regular expressions.
process='\(.*, process [0-9]+\)'
end='; rank 0 was in .*; the job ends$'

found() { # NAME, words of the failure, arguments of the program
	local name=$1 words=$2
	shift 2
	if timeout 60 mpirun "${mpirun_flags[@]}" -np 4 "$program" "$@" >"$log" 2>&1 </dev/null; then
		verdict "$name" ''
	else
		verdict "$name" "$words"
	fi
}
found 'a wrong sum' 'it was not found as it should' sum "$config"
found 'wrong groups' 'they were not found as they should' groups "$config" parallel.tensor=2
found 'a wrong message' 'it was not found as it should' message "$config" parallel.pipeline=4 model.layers=4
ends 'a rank dies in a receive' 4 receive \
	"rank 3 $process died in op [0-9]+ L3 activations forward recv mb0 from stage 2 .*of stage 3$end" \
	parallel.pipeline=4 model.layers=4
ends 'a communicator breaks' 4 broken 'rank 3 \(.*\): op [0-9]+ .*all_reduce bucket 1 .*: the wire is cut$'
ends 'a kernel fails on one rank' 4 kernel 'op [0-9]+ embedding .*: token 0 is -5, the table has 64 rows'
ends 'out of memory' 2 steps 'not enough memory on .*: its 2 ranks need .*, .* are available, .* are missing' \
	model.hidden=65536
struck 'a rank is killed' 2 KILL 1 \
	'rank 1 \(.*, process [0-9]+\) died in (.*op [0-9]+ .*|the timed steps); rank 0 was in .*; the job ends$'
struck 'a rank of eight is killed' 8 KILL 5 \
	'rank 5 \(.*, process [0-9]+\) died in .*; rank 0 was in .*; the job ends$'
struck 'the first rank is killed' 4 KILL 0 \
	'rank 0 \(.*, process [0-9]+\) died in .*; rank 1 was in .*; the job ends$'
struck 'a stage of a pipeline is killed' 4 KILL 2 \
	"rank 2 $process died in (.*op [0-9]+ .* of stage 2|the timed steps)$end" parallel.pipeline=4
struck 'a rank crashes' 2 SEGV 1 'rank 1 \(.*, process [0-9]+\) died in .*; rank 0 was in .*; the job ends$'
struck 'a rank is stopped' 2 STOP 1 \
	"no progress for [0-9]+ s: rank 1 $process is stopped in (.*op [0-9]+ .*|the timed steps)$end" run.timeout_s=2
# By itself mpirun kills ranks a second after it told them to end: too soon for the line where cores are busy.
OMPI_MCA_odls_base_sigkill_timeout=5 struck 'the launcher is told to end' 2 TERM -1 \
	'told to end .*while rank 0 was in .*; the job ends$'

verdicts
