#!/usr/bin/env bash
# Runs everything that must never break, against what `make all tests` has built. Jobs of several ranks run one after
# another; beside them, at a lower priority, as many checks as there are cores. STEPSIM_TEST_TIMES=1 prints the seconds
# of each check: elapsed, user, system. The last line is "N passed, N failed[, N skipped]". It takes no arguments.
set -u
[ $# -eq 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../scripts/env.sh"
cd "$root" || exit 2
build=build/release

# One cache for the whole run: each placement of ranks is calibrated once, and the user's own cache is left alone.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache
mkdir "$scratch/counts"

# ---- kinds of checks: each adds a line "PASSED FAILED SKIPPED" to the counts, and prints only what failed ----

count() { # passed failed skipped, [name and exit code], of the check whose output is in $log
	echo "$1 $2 $3" >>"$scratch/counts/$BASHPID"
	[ "$2" -eq 0 ] && return
	printf 'FAILED %s\n%s\n' "$4" "$(sed 's/^/    /' "$log")"
}

# Counts one check: its name, then the command.
check() {
	local name=$1 code
	shift
	"$@" >"$log" 2>&1 </dev/null
	code=$?
	if [ $code -eq 0 ]; then count 1 0 0; else count 0 1 0 "$name (exit code $code)"; fi
}

# A CUnit program: each of its tests counts. One that ends without its summary (a crash, a sanitizer's report) counts as
# one failure, unless it says that it was skipped.
suite() {
	local name=$1 good bad code
	shift
	timeout 900 "$@" >"$log" 2>&1 </dev/null
	code=$?
	read -r good bad < <(awk '$1 == "tests" && NF >= 5 { print $4, $5 }' "$log")
	good=${good:-0} bad=${bad:-0}
	[ "$code" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
	if [ "$code" -eq 0 ] && [ "$good" -eq 0 ] && grep -q 'skipped' "$log"; then
		count 0 0 1
		return
	fi
	[ "$code" -eq 0 ] && [ "$good" -eq 0 ] && bad=1
	count "$good" "$bad" 0 "$name (exit code $code)"
}

# The last line of a script of ours says how many of its checks passed and failed.
counted() {
	local name=$1 last
	shift
	"$@" >"$log" 2>&1 </dev/null
	last=$(tail -n 1 "$log")
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]:-0}" "$name"
	else
		count 0 1 0 "$name: it did not end in a count"
	fi
}

# Runs a check, its kind and then that kind's arguments, with a log of its own.
run_check() {
	log=$scratch/log.$BASHPID
	if [ -z "${STEPSIM_TEST_TIMES:-}" ]; then
		"$@"
	else
		TIMEFORMAT="time %R %U %S ${*:2}"
		time "$@"
	fi
}

# Starts a check beside the jobs of several ranks as soon as there is room. Those jobs often wait, and the checks fill
# their waits; the lower priority keeps the checks from delaying them.
lower=5
begin() {
	while [ "$(jobs -rp | wc -l)" -gt "$(cores)" ]; do wait -n; done
	{
		renice -n "$lower" -p "$BASHPID" >/dev/null 2>&1
		run_check "$@"
	} &
}

heading() {
	printf '== %s\n' "$1"
}

# A forbidden arrow must be found: the same script on a tree that has one.
arrow_is_found() {
	mkdir -p "$scratch/tree/sim/price" "$scratch/tree/cli" "$scratch/tree/exec"
	: >"$scratch/tree/exec/exec.h"
	printf '#include "exec/exec.h"\n' | tee "$scratch/tree/sim/price/bad.c" >"$scratch/tree/cli/bad.c"
	[ "$(bash tests/arrows.sh "$scratch/tree" | grep -c '^arrows: [a-z/]*bad.c')" -eq 2 ]
}

# A constant of physics in the code that prices must be found, too.
literal_is_found() {
	local room=$scratch/literal/sim/price
	mkdir -p "$room"
	printf 'double fit(void); /* 0.93 */\ndouble fit(void) { return 2 * 0.93; }\n' >"$room/bad.c"
	python3 tests/literals.py "$scratch/literal" | grep -q ':2: 0.93 stands in code'
}

# A comment that names a file which is not there must be found, too.
pointer_is_found() {
	mkdir -p "$scratch/stale/sim/price"
	printf '/* As %s/none.h says. */\n' sim/price >"$scratch/stale/sim/price/bad.h"
	! bash tests/pointers.sh "$scratch/stale"
}

# A kernel that spills more than its limit must be found: without limits there are some.
spill_is_found() {
	grep '^# CUDA' tests/cuda/spills.txt >"$scratch/no_limits"
	python3 scripts/kernels_report.py --check "$scratch/no_limits" | grep -Eq 'B spilled, at most 0 B|1 skipped$'
}

# Jobs of several ranks, one after another: the longest chain of all.
jobs_in_turn() {
	local script
	for script in "$@"; do run_check counted "$script" bash "$script"; done
}

# Before anything runs beside: a profile that others disturbed is looked at again at each start.
heading 'profiles of one and two ranks'
for ranks in 1 2; do
	run_check check "a profile of $ranks ranks" mpirun "${mpirun_flags[@]}" -np "$ranks" "$build/stepsim" calibrate
done

heading 'execution, beside all that follows'
scripts=(tests/exec/*.sh tests/jobs.sh)
[ -e "$build/libstepsim_cuda.so" ] && scripts+=(tests/cuda/test_nccl_double.sh)
jobs_in_turn "${scripts[@]}" &

heading 'arrows between rooms'
begin check 'arrows' bash tests/arrows.sh
begin check 'arrows: a forbidden one is found' arrow_is_found
begin check 'numbers in sim/price and sim/engine' python3 tests/literals.py
begin check 'numbers in sim/price: a planted one is found' literal_is_found

heading 'names of files in comments'
begin check 'pointers' bash tests/pointers.sh
begin check 'pointers: a stale one is found' pointer_is_found

heading 'format'
begin counted 'the look of .clang-format' bash scripts/format.sh --count

heading 'unit and property tests'
for source in tests/unit/test_*.c tests/property/test_*.c; do
	begin suite "$source" "$build/${source%.c}"
done

heading 'the CUDA backend on doubles of its libraries'
if [ -e "$build/libstepsim_cuda.so" ]; then
	doubles=$PWD/$build/doubles
	for source in tests/cuda/test_*.c tests/cuda/test_*.cc; do
		name=${source%.*}
		[[ $name = tests/cuda/test_nccl_* ]] ||
			begin suite "$source" env LD_LIBRARY_PATH="$doubles" "$build/$name"
	done
	# cuDNN itself builds the graphs of attention, for GPUs that are described.
	begin counted "attention's engines" env LD_LIBRARY_PATH="$PWD/$build/tests/cudnn" \
		"$build/tests/cudnn/attention_engines" sample tests/cudnn/attention_engines.csv
	# GPUs with less shared memory for a block, and without fp8.
	begin suite 'attention, by cuDNN and our own, on compute capability 8.9' env LD_LIBRARY_PATH="$doubles" \
		STEPSIM_DOUBLE_CC=8.9 "$build/tests/gpu/test_cuda_attention"
	begin suite 'products on compute capability 8.0' env LD_LIBRARY_PATH="$doubles" STEPSIM_DOUBLE_CC=8.0 \
		"$build/tests/cuda/test_cuda_gemm"
else
	begin count 0 0 1
fi

heading 'the kernels as PTX, instruction by instruction; what ptxas made of them'
if [ -e "$build/libstepsim_cuda.so" ]; then
	begin counted tests/ptx/run.sh bash tests/ptx/run.sh
	begin counted tests/ptx/test_planted.sh bash tests/ptx/test_planted.sh
	begin counted 'registers and spills of kernels' python3 scripts/kernels_report.py --check
	begin check 'registers and spills: a kernel above its limit is found' spill_is_found
else
	begin count 0 0 1
fi

heading 'the command line'
for script in tests/golden/run*.sh; do
	begin counted "$script" bash "$script"
done

heading 'man page, completions and packages'
for script in tests/package/test_*.sh; do
	begin counted "$script" bash "$script"
done
begin check 'the Python module' env PATH="$PWD/$build:$PATH" PYTHONPATH=python python3 tests/python/test_stepsim.py

heading 'published measurements'
begin check 'the arithmetic of the validation' python3 tests/validation/test_arithmetic.py
begin check 'a sample of published steps' python3 scripts/validate.py --sample

heading 'unit tests, property tests and kernels under AddressSanitizer and UndefinedBehaviorSanitizer'
if nice -n "$lower" make -s VARIANT=asan -j"$(cores)" unit replays twins >"$scratch/build" 2>&1; then
	for source in tests/unit/test_*.c tests/property/test_*.c; do
		# A quarter of the random cases, all of which the release variant has tried.
		begin suite "asan $source" env STEPSIM_TEST_PART=4 "build/asan/${source%.c}"
	done
	for folder in tests/fuzz/corpus/*; do
		begin check "asan $folder" env STEPSIM_HOME="$root" "build/asan/tests/fuzz/replay_${folder##*/}" \
			"$folder"/*
	done
	# The Makefile alone names these programs. Kernels with many contexts run with one thread a block: test_twin
	# tries those, and tests/run_long.sh all.
	for program in $(make -s VARIANT=asan list-twins); do
		case $program in
		*act | *attention | *context | *elementwise | *norm)
			begin suite "asan $program" env STEPSIM_TEST_PART=4 STEPSIM_TWIN_THREADS=one "$program"
			;;
		*) begin suite "asan $program" "$program" ;;
		esac
	done
else
	begin check 'the asan variant builds' sh -c "cat '$scratch/build'; false"
fi
wait

read -r passed failed skipped < <(cat "$scratch"/counts/* | awk '{ p += $1; f += $2; s += $3 } END { print p, f, s }')
text="$passed passed, $failed failed"
[ "$skipped" -gt 0 ] && text+=", $skipped skipped"
echo "$text"
[ "$failed" -eq 0 ]
