#!/usr/bin/env bash
# Runs everything that must never break, against what `make all tests` has built. The last line is "N passed, N failed[, N skipped]".
set -u
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../scripts/env.sh"
cd "$root" || exit 2
build=build/release
passed=0 failed=0 skipped=0

# One cache for the whole run: each placement of ranks is calibrated once, and the user's own cache is left alone.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache

heading() {
	printf '== %s\n' "$1"
}

# Counts one check: its name, then the command. What it prints is shown only when it fails.
check() {
	local name=$1
	shift
	if "$@" >"$scratch/log" 2>&1 </dev/null; then
		passed=$((passed + 1))
	else
		local code=$?
		failed=$((failed + 1))
		printf 'FAILED %s (exit code %d)\n' "$name" "$code"
		sed 's/^/    /' "$scratch/log"
	fi
}

# A CUnit program: each of its tests counts. One that ends without its summary (a crash, a sanitizer's report) counts as one failure, unless it says that it was skipped.
suite() {
	local name=$1 good bad code
	shift
	timeout 600 "$@" >"$scratch/log" 2>&1 </dev/null
	code=$?
	read -r good bad < <(awk '$1 == "tests" && NF >= 5 { print $4, $5 }' "$scratch/log")
	good=${good:-0} bad=${bad:-0}
	[ "$code" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
	if [ "$code" -eq 0 ] && [ "$good" -eq 0 ] && grep -q 'skipped' "$scratch/log"; then
		skipped=$((skipped + 1))
		return
	fi
	[ "$code" -eq 0 ] && [ "$good" -eq 0 ] && bad=1
	passed=$((passed + good))
	failed=$((failed + bad))
	if [ "$bad" -ne 0 ]; then
		printf 'FAILED %s (exit code %d)\n' "$name" "$code"
		sed 's/^/    /' "$scratch/log"
	fi
}

# The last line of a script of ours says how many of its checks passed and failed.
counted() {
	local name=$1 last
	shift
	"$@" >"$scratch/log" 2>&1 </dev/null
	last=$(tail -n 1 "$scratch/log")
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + ${BASH_REMATCH[4]:-0}))
		[ "${BASH_REMATCH[2]}" -eq 0 ] && return
	else
		failed=$((failed + 1))
		printf 'FAILED %s: it did not end in a count\n' "$name"
	fi
	sed 's/^/    /' "$scratch/log"
}

# A forbidden arrow must be found: the same script on a tree that has one.
arrow_is_found() {
	mkdir -p "$scratch/tree/sim" "$scratch/tree/exec"
	: >"$scratch/tree/exec/exec.h"
	printf '#include "exec/exec.h"\n' >"$scratch/tree/sim/bad.c"
	! bash tests/arrows.sh "$scratch/tree"
}

heading 'arrows between rooms'
check 'arrows' bash tests/arrows.sh
check 'arrows: a forbidden one is found' arrow_is_found

heading 'unit and property tests'
for source in tests/unit/test_*.c tests/property/test_*.c; do
	suite "$source" "$build/${source%.c}"
done

heading 'the CUDA room on doubles of its libraries'
if [ -e "$build/libstepsim_cuda.so" ]; then
	doubles=$PWD/$build/doubles
	for source in tests/cuda/test_*.c tests/cuda/test_*.cc; do
		name=${source%.*}
		[ "$name" = tests/cuda/test_nccl_double ] || suite "$source" env LD_LIBRARY_PATH="$doubles" "$build/$name"
	done
	counted tests/cuda/test_nccl_double.sh bash tests/cuda/test_nccl_double.sh
else
	skipped=$((skipped + 1))
fi

heading 'the command line'
for script in tests/golden/run*.sh; do
	counted "$script" bash "$script"
done

heading 'published measurements'
check 'the arithmetic of the validation' python3 tests/validation/test_arithmetic.py
check 'a sample of published steps' python3 scripts/validate.py --sample

heading 'execution'
for script in tests/exec/*.sh tests/jobs.sh; do
	[ -e "$script" ] && counted "$script" bash "$script"
done

heading 'unit tests, property tests and kernels under AddressSanitizer and UndefinedBehaviorSanitizer'
if make -s VARIANT=asan -j"$(cores)" unit twins >"$scratch/log" 2>&1; then
	for source in tests/unit/test_*.c tests/property/test_*.c; do
		# A quarter of the random cases, all of which the release variant has tried.
		suite "asan $source" env STEPSIM_TEST_PART=4 "build/asan/${source%.c}"
	done
	# What is built stands in one place, the Makefile. One thread a block for the kernels whose many contexts take their time here: test_twin tries those, tests/run_long.sh all.
	for program in $(make -s VARIANT=asan list-twins); do
		case $program in
		*act | *attention | *context | *elementwise | *norm) suite "asan $program" env STEPSIM_TEST_PART=4 STEPSIM_TWIN_THREADS=one "$program" ;;
		*) suite "asan $program" "$program" ;;
		esac
	done
else
	failed=$((failed + 1))
	echo 'FAILED: the asan variant does not build'
	sed 's/^/    /' "$scratch/log"
fi

text="$passed passed, $failed failed"
[ "$skipped" -gt 0 ] && text+=", $skipped skipped"
echo "$text"
[ "$failed" -eq 0 ]
