# shellcheck shell=bash
# Sourced by the test scripts that count their checks: one verdict each, and the last line, which tests/run.sh reads.
# They run in the repository's root, with a folder of their own that goes when they end.
# shellcheck source=scripts/env.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/env.sh"
# shellcheck disable=SC2154 # of env.sh
cd "$root" || exit 2
# shellcheck disable=SC2034 # for those scripts
stepsim=build/release/stepsim doubles=$PWD/build/release/doubles
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
passed=0 failed=0 skipped=0
export COLUMNS=9999 # patterns are compared with whole lines

# Shows the log of a check that failed. A script may define it anew.
shown() {
	cat "$log"
}

verdict() { # name, then what is wrong ("" for nothing)
	if [ -z "$2" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED $1: $2"
		shown | sed 's/^/    /'
	fi
}

# A check that is a command: its exit code decides, and its output is shown where it failed.
check() { # name, command
	local name=$1
	shift
	"$@" >"$log" 2>&1 </dev/null
	local code=$?
	verdict "$name" "$([ $code -eq 0 ] || echo "exit code $code")"
}

# Waits until a process has used that many hundredths of a second of CPU time, which tells how far it has come on a
# busy machine too. False when it ends before, or does not get there.
has_worked() { # process, hundredths
	local stat ticks
	for _ in $(seq 600); do
		stat=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ -n "$stat" ] || return 1
		ticks=$(awk '{ print $12 + $13 }' <<<"$stat")
		[ $((ticks * 100 / $(getconf CLK_TCK))) -ge "$2" ] && return
		sleep 0.1
	done
	return 1
}

# Ends a script that can check nothing here: why.
skip_all() {
	echo "skipped: $1"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
}

needs_cuda() {
	[ -e build/release/libstepsim_cuda.so ] || skip_all 'this build has no CUDA part'
}

# The last line; false when something failed.
verdicts() {
	echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
	[ "$failed" -eq 0 ]
}
