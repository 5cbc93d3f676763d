#!/usr/bin/env bash
# Faults of a job as its users meet them, on one host and (as root) on two hosts of the test-bed: `make check-faults`.
# For each: it ends in bounded time, with the right exit code and one line of reason; outputs are whole or absent;
# nothing is left running, and no shared memory. Prints a table: fault, seconds from the fault on, exit code, line.
# FAULTS=PATTERN selects by name; FAULTS_CACHE=FOLDER (not in /tmp) keeps the profiles; FAULTS_REPEATS=20 tries so often
# what hangs on chance. The last line counts.
set -u
# For root: shared memory of its own, so that what is left in it is these jobs'.
if [ "$(id -u)" -eq 0 ] && [ -z "${FAULTS_ALONE:-}" ]; then
	FAULTS_ALONE=1 exec unshare --mount --ipc bash -c \
		'mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec bash "$0"' "$0"
fi
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
stepsim=$PWD/$stepsim
rm -rf "$scratch"
scratch=$(mktemp -d "$root/build/faults.XXXXXX") # where all hosts of the test-bed see it
log=$scratch/log
export XDG_CACHE_HOME=${FAULTS_CACHE:-$scratch/cache} STEPSIM_FAULTS=$scratch
mkdir -p "$XDG_CACHE_HOME"
over_s=60 # in which every job is over after its fault
tiny=$PWD/configs/ddp-tiny.yaml
long=(--set run.steps=20000 --set run.timeout_s=30)
table=$scratch/table
# What is said of profiles and of busy machines is no reason.
said='^stepsim: (warning: others (disturbed|took)|no profile of this machine|others disturbed)'
shown() { tail -n 30 "$log"; }

# ---- what is there before and after ----

# Processes of this script's jobs: they have its scratch folder in their environment. Not its own children of bash.
ours() {
	local p
	for p in /proc/[0-9]*; do
		[ "${p#/proc/}" != $$ ] && grep -qzs "^STEPSIM_FAULTS=$scratch\$" "$p/environ" &&
			grep -Eqs '^Name:.*(stepsim|mpirun|orted)$' "$p/status" &&
			! grep -qs '^State:[[:space:]]*Z' "$p/status" && echo "${p#/proc/}"
	done
}

ranks_of() { # the processes of the ranks, in order of their start
	local p
	for p in $(ours); do
		grep -Eqs '^Name:.*stepsim$' "/proc/$p/status" &&
			grep -qzs '^OMPI_COMM_WORLD_RANK=' "/proc/$p/environ" &&
			echo "$(tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p') $p"
	done | sort -n | awk '{ print $2 }'
}

segments() {
	find /dev/shm -maxdepth 1 \( -name 'stepsim*' -o -name 'vader_segment*' \) | sort
	[ -z "${FAULTS_ALONE:-}" ] || sed 1d /proc/sysvipc/shm
}

# Outputs that are neither whole nor absent, and what was written beside them.
broken_outputs() { # folder
	local f
	for f in "$1"/*; do
		case $f in
		*.json) python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$f" 2>/dev/null ||
			echo "$f is broken" ;;
		*.html) [ "$(tail -c 8 "$f" | tr -d '\n')" = '</html>' ] || echo "$f is cut" ;;
		*.tmp) echo "$f is left" ;;
		esac
	done
}

# ---- a fault ----

selected() { [[ $1 =~ ${FAULTS:-.} ]]; }

# Judges a job that has ended. name, seconds, its exit code, codes that are right ("1" or "1 137"), pattern of the line
# on standard error ("" none at all), folder of the outputs.
judge() {
	local name=$1 took=$2 code=$3 right=$4 pattern=$5 folder=$6 wrong='' line left i
	for i in $(seq 50); do # the last ranks may end a moment after the launcher
		left=$(ours)
		[ -z "$left" ] && break
		sleep 0.1
	done
	grep '^stepsim: ' "$log" | grep -Ev "$said" >"$scratch/lines"
	line=$(head -n 1 "$scratch/lines")
	[ -z "$line" ] && line=$(grep -E "${pattern:-^\$}" "$log" | head -n 1)
	[[ " $right " == *" $code "* ]] || wrong="exit code $code, not $right"
	if [[ " $right " == *' launcher '* ]] && [ "$code" -eq 139 ] && grep -q 'PMIx_Finalize' "$log"; then
		wrong='' line='(mpirun crashed in PMIx_Finalize, at its end)'
	fi
	[ "$(wc -l <"$scratch/lines")" -le 1 ] || wrong="$(wc -l <"$scratch/lines") lines"
	if [ -n "$pattern" ]; then
		grep -Eq "$pattern" "$log" || wrong="no line like $pattern"
	else
		[ -s "$scratch/lines" ] && wrong='a line'
	fi
	[ -z "$left" ] || wrong="left running: $left"
	[ "$(segments)" = "$segments_before" ] || wrong='shared memory is left'
	[ -z "$(broken_outputs "$folder")" ] || wrong=$(broken_outputs "$folder" | head -n 1)
	[ -z "$left" ] || kill -KILL $left 2>/dev/null
	printf '%-44s %6.1f %4s  %s\n' "$name" "$took" "$code" "$line" | tee -a "$table"
	verdict "$name" "$wrong"
}

now() { date +%s.%N; }

# name, codes, pattern, function that strikes, command...: starts the command in the background, lets the ranks work for
# a second of CPU time each, strikes, and waits. timed=TENTHS: strikes half a second after their steps began, which it
# waits for so long: what the ranks gather after their last step would hide a stop.
struck() {
	local name=$1 codes=$2 pattern=$3 strike=$4 job begin code rank
	shift 4
	selected "$name" || return 0
	out=$scratch/out
	rm -rf "$out"
	mkdir "$out"
	segments_before=$(segments)
	"$@" >"$log" 2>&1 </dev/null &
	job=$!
	for _ in $(seq 600); do
		[ "$(ranks_of | wc -l)" -ge 2 ] || ! kill -0 "$job" 2>/dev/null && break
		sleep 0.1
	done
	if [ -n "${timed:-}" ]; then
		for _ in $(seq "$timed"); do
			grep -q '^executing ' "$log" || ! kill -0 "$job" 2>/dev/null && break
			sleep 0.1
		done
		sleep 0.5
	else
		for rank in $(ranks_of); do has_worked "$rank" "${worked:-150}"; done
	fi
	begin=$(now)
	"$strike" "$job" >>"$log" 2>&1
	while kill -0 "$job" 2>/dev/null && [ "$(awk -v b="$begin" -v n="$(now)" 'BEGIN { print int(n - b) }')" \
		-lt "$over_s" ]; do
		sleep 0.1
	done
	if kill -0 "$job" 2>/dev/null; then
		kill -KILL "$job" $(ours) 2>/dev/null
		wait "$job" 2>/dev/null
		code=never
	else
		wait "$job"
		code=$?
	fi
	judge "$name" "$(awk -v b="$begin" -v n="$(now)" 'BEGIN { print n - b }')" "$code" "$codes" "$pattern" "$out"
}

# The same without a strike: the command itself is at fault.
faulty() { # name, codes, pattern, command...
	local name=$1 codes=$2 pattern=$3 begin code
	shift 3
	selected "$name" || return 0
	out=$scratch/out
	rm -rf "$out"
	mkdir "$out"
	segments_before=$(segments)
	begin=$(now)
	timeout $over_s "$@" >"$log" 2>&1 </dev/null
	code=$?
	judge "$name" "$(awk -v b="$begin" -v n="$(now)" 'BEGIN { print n - b }')" "$code" "$codes" "$pattern" "$out"
}

mpi=(mpirun "${mpirun_flags[@]}")
outputs=(--json "$scratch/out/result.json" --trace "$scratch/out/trace.json" --html "$scratch/out/page.html")
job=("${mpi[@]}" -np 2 "$stepsim" "$tiny" "${long[@]}" "${outputs[@]}")
# A profile of a placement: its name, then what starts the ranks. Jobs name it, so that none measures in mid-fault.
measured() {
	local file=$XDG_CACHE_HOME/$1.yaml
	shift
	[ -e "$file" ] || "$@" "$stepsim" calibrate -o "$file" >"$log" 2>&1 </dev/null || { cat "$log"; exit 1; }
}
measured one "${mpi[@]}" -np 2
one=(--set "cluster.profile=$XDG_CACHE_HOME/one.yaml") two=(--set "cluster.profile=$XDG_CACHE_HOME/two.yaml")
job+=("${one[@]}")
printf '%-44s %6s %4s  %s\n' fault seconds exit line | tee "$table"

# ---- on one host ----

nth_rank() { ranks_of | sed -n "$(($1 + 1))p"; }
kill_rank() { kill -KILL "$(nth_rank 1)"; }
kill_launcher() { kill -KILL "$1"; }
end_launcher() { kill -TERM "$1"; }
stop_rank() { kill -STOP "$(nth_rank 1)"; }
pause_rank() {
	local p
	p=$(nth_rank 1)
	kill -STOP "$p"
	sleep 3
	kill -CONT "$p"
}
process='\(.*, process [0-9]+\)'
struck 'a rank is killed' '1 137' "^stepsim: rank 1 $process died in .*; the job ends\$" kill_rank "${job[@]}"
struck 'mpirun is killed' '137' '' kill_launcher "${job[@]}"
# By itself mpirun kills ranks a second after it told them to end: too soon for the line where cores are busy.
OMPI_MCA_odls_base_sigkill_timeout=5 struck 'mpirun is told to end' '1 143' '^stepsim: told to end' end_launcher \
	"${job[@]}"
struck 'a rank is stopped for good' '1' "^stepsim: no progress for [0-9]+ s: rank 1 $process is stopped in " stop_rank \
	"${job[@]}" --set run.timeout_s=4
# Stopped in an op of its own it is named; in a collective all ranks wait alike.
over_s=300 timed=600 struck 'a rank is stopped for 3 s of 30' '0' \
	'warning: (step [0-9]+ took .* rank 1 \(|1 step took more than 5 times the median)' pause_rank "${mpi[@]}" \
	-np 2 \
	"$stepsim" "$tiny" "${one[@]}" "${outputs[@]}" --progress always --set run.timeout_s=30 --set run.steps=200

short=("$stepsim" predict "$tiny" --set parallel.data=2 "${one[@]}")
faulty 'standard output is full (/dev/full)' '1' '^stepsim: cannot write standard output: No space left' \
	bash -c '"$@" >/dev/full' full "${short[@]}"
closed='import os, signal, sys
end, begin = os.pipe()
os.close(end)
os.dup2(begin, 1)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])'
faulty 'standard output is a closed pipe' '1 141' '' python3 -c "$closed" "${short[@]}"
# Then mpirun is who meets the closed pipe. It ends the ranks or lets them end, and Open MPI 4.1's own crashes in
# PMIx_Finalize now and then: 139. So the codes of ranks that end by themselves are kept, and none may be a crash.
code_kept='"$@"
echo $? >"$0.$OMPI_COMM_WORLD_RANK"'
for repeat in $(seq "${FAULTS_REPEATS:-1}"); do
	faulty "the same under mpirun$([ "$repeat" -eq 1 ] || echo ", again $repeat")" '0 1 141 launcher' '' \
		bash -c 'set -o pipefail; "$@" | true' pipe "${mpi[@]}" -np 2 \
		bash -c "$code_kept" "$scratch/out/code" "$stepsim" "$tiny" "${one[@]}" --set run.steps=2
	selected 'the same under mpirun' &&
		verdict 'none of its ranks crashes' "$(grep -Evhxs '0|1|137|141|143' "$scratch"/out/code.*)"
done
if [ "$(id -u)" -eq 0 ]; then
	small=(unshare --mount bash -c 'mount -t tmpfs -o size=4k tmpfs "$0" && "$@"; code=$?; ls -A "$0" >"$0.files"
		exit $code' "$scratch/out")
	faulty 'a full disk for the outputs' '1' '^stepsim: cannot write .*: No space left on device$' \
		"${small[@]}" "${mpi[@]}" -np 2 "$stepsim" "$tiny" "${one[@]}" --set run.steps=2 \
		--trace "$scratch/out/trace.json"
	selected 'a full disk for the outputs' &&
		verdict 'nothing is left on the full disk' "$(cat "$scratch/out.files")"
	over_s=500 faulty 'a full disk for the profile' '0' \
		'^stepsim: warning: the profile is not kept: .*No space left' \
		"${small[@]}" env XDG_CACHE_HOME="$scratch/out" "${mpi[@]}" -np 2 "$stepsim" "$tiny" --set run.steps=2
fi

# ---- files that others write ----

change_config() { echo 'model: {layers: [' >"$scratch/changed.yaml"; }
cp "$tiny" "$scratch/changed.yaml"
over_s=300 struck 'the config is changed while it runs' '0' 'Measured: median of 100 steps' change_config "${mpi[@]}" \
	-np 2 "$stepsim" "$scratch/changed.yaml" "${one[@]}" --set run.steps=100 "${outputs[@]}"
twice() {
	"${mpi[@]}" -np 2 "$stepsim" "$tiny" "${one[@]}" --set run.steps=50 "${outputs[@]}" >"$scratch/second" 2>&1 \
		</dev/null
}
over_s=300 struck 'two runs at once in one folder' '0' 'Measured: median of 50 steps' twice "${mpi[@]}" -np 2 \
	"$stepsim" "$tiny" "${one[@]}" --set run.steps=50 "${outputs[@]}"
selected 'two runs at once in one folder' &&
	verdict 'the second of two runs' "$(grep -q 'Measured: median of 50 steps' "$scratch/second" ||
		echo 'it failed')"

# A profile that is cut, of noise, of another kind: said in one line with the file, and where it is the cached one
# measured anew.
profile=$XDG_CACHE_HOME/one.yaml
head -c 700 "$profile" >"$scratch/cut.yaml"
head -c 4000 /dev/urandom >"$scratch/noise.yaml"
: >"$scratch/empty.yaml"
for kind in cut noise empty; do
	faulty "a corrupted profile: $kind" '2' "^stepsim: .*$scratch/$kind.yaml:" "$stepsim" predict "$tiny" --set \
		parallel.data=2 --set "cluster.profile=$scratch/$kind.yaml"
done
damaged=$scratch/damaged
mkdir "$damaged"
twice_cached=(env XDG_CACHE_HOME="$damaged" "${mpi[@]}" -np 2 "$stepsim" "$tiny" --set run.steps=2 "${outputs[@]}")
if selected 'the cached profile is corrupted'; then
	mkdir -p "$scratch/out"
	"${twice_cached[@]}" >"$log" 2>&1 </dev/null
	cached=$(ls "$damaged"/stepsim/profile-*.yaml)
	head -n 20 "$profile" >"$cached" # whole lines: YAML has nothing to complain of
	over_s=500 faulty 'the cached profile is corrupted' '0' \
		"^stepsim: warning: the cached profile is not used: $cached: not a (whole )?profile" \
		"${twice_cached[@]}"
fi

# Wall clock time that jumps by an hour and back: only monotonic time is measured.
faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null | head -n 1)
if [ -n "$faketime" ]; then
	echo '+0' >"$scratch/faketimerc"
	jump_clock() {
		echo '+1h' >"$scratch/faketimerc"
		sleep 1
		echo '-1h' >"$scratch/faketimerc"
	}
	over_s=300 timed=600 struck 'the clock jumps' '0' 'Measured: median of 300 steps' jump_clock \
		env LD_PRELOAD="$faketime" \
		FAKETIME_TIMESTAMP_FILE="$scratch/faketimerc" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \
		"${mpi[@]}" -np 2 "$stepsim" "$tiny" "${one[@]}" --progress always --set run.steps=300 "${outputs[@]}"
	selected 'the clock jumps' && verdict 'steps take no hour' "$(python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))["measurement"]
if not 0 < m["step_time_min_s"] <= m["step_time_max_s"] < 60: print(m["step_time_min_s"], m["step_time_max_s"])' \
		"$scratch/out/result.json" 2>&1)"
else
	skipped=$((skipped + 1))
	echo 'skipped: the clock jumps (no libfaketime)'
fi

# ---- on two hosts with a core and a link of 1 Gb/s each ----

cat >"$scratch/bed.yaml" <<'BED'
hosts:
  - {count: 2, rate: 1Gb/s, cores: 1}
BED
bed=(bash scripts/testbed.sh "$scratch/bed.yaml")
if ! "${bed[@]}" true >"$log" 2>&1; then
	tail -n 1 "$log"
	skipped=$((skipped + 1))
	verdicts
	exit
fi
hosts=("${bed[@]}" mpirun "${mpirun_flags[@]}" --host h1:1,h2:1 -np 2)
measured two "${hosts[@]}"
job=("${hosts[@]}" "$stepsim" "$tiny" "${two[@]}" "${long[@]}" "${outputs[@]}")
quick=("${hosts[@]}" "$stepsim" "$tiny" "${two[@]}" "${outputs[@]}" --progress always --set run.steps=200)
kill_first() { kill -KILL "$(nth_rank 0)"; }
in_h2() { nsenter -t "$(nth_rank 1)" --net "$@"; }
cut_link() { in_h2 ip link set eth0 down; }
link_down_and_up() {
	in_h2 ip link set eth0 down
	sleep 3
	in_h2 ip link set eth0 up
}
slow_link() { in_h2 tc qdisc replace dev eth0 root tbf rate 100mbit burst 16kb limit 512kb; }
# The second host's rank stands still for nine tenths of the time, as where a hypervisor gives its core away. Loops on
# that core would not do: what else runs on the first host's core would make up for them.
slow_host() {
	nice -n -20 python3 - "$(nth_rank 1)" <<'PYTHON' &
import os, signal, sys, time
try:
    while True:
        os.kill(int(sys.argv[1]), signal.SIGSTOP)
        time.sleep(0.09)
        os.kill(int(sys.argv[1]), signal.SIGCONT)
        time.sleep(0.01)
except ProcessLookupError:
    pass
PYTHON
}
struck 'hosts: the rank of the second is killed' '1 137' \
	"^stepsim: rank 1 \(h2, process [0-9]+\) died or was cut off in" kill_rank "${job[@]}"
struck 'hosts: the rank of the first is killed' '1 137' \
	"^stepsim: rank 0 \(h1, process [0-9]+\) died or was cut off in" kill_first "${job[@]}"
struck 'hosts: the rank of the second is stopped' '1' \
	'^stepsim: no progress for [0-9]+ s: rank 1 \(h2, .*\) has not been heard of for' stop_rank "${job[@]}" \
	--set run.timeout_s=4
struck 'hosts: the link of the second is cut' '137' \
	'^stepsim: no progress for [0-9]+ s: rank 1 \(h2, .*\) has not been heard of for' cut_link "${job[@]}" \
	--set run.timeout_s=4
over_s=300 timed=600 struck 'hosts: a link is down for 3 s' '0' \
	'warning: [0-9]+ steps? took more than .*: no rank computed longer' link_down_and_up "${quick[@]}"
over_s=300 timed=600 struck 'hosts: a link falls to a tenth of its rate' '0' \
	'warning: the link between hosts h1 and h2 became slow while steps were timed' slow_link "${quick[@]}"
over_s=300 worked=0 struck 'hosts: the second is slow' '0' 'warning: rank 1 \(h2\) computes [0-9.]+ times as long' \
	slow_host "${quick[@]}" --set run.steps=60

cat "$table" >"$root/build/faults.txt"
verdicts
