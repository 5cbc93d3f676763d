#!/usr/bin/env bash
# A profile that others disturbed, and one of an earlier stepsim: what a calibration of two ranks does about it, and
# the starts after it. /proc/stat is a double (tests/exec/proc_stat.c): no loop runs beside, and nothing depends on
# what the machine really does. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

[ "$(cores)" -ge 2 ] || skip_all 'one core: ranks share it, and take it from each other'
cc -O1 -shared -fPIC -o "$scratch/proc_stat.so" tests/exec/proc_stat.c -ldl || exit 1
export XDG_CACHE_HOME=$scratch/cache
mkdir "$XDG_CACHE_HOME"

# A run of two ranks, or what follows the first argument: "SHARE FROM TO", as the double takes it.
others() {
	local what=$1
	shift
	timeout 240 mpirun "${mpirun_flags[@]}" -np 2 -x LD_PRELOAD="$scratch/proc_stat.so" \
		-x STEPSIM_TEST_OTHERS="$what" "$stepsim" "$@" >"$log" 2>&1 </dev/null
}

start() {
	others "$1" configs/ddp-tiny.yaml --set run.steps=2 --json "$scratch/j.json"
}

# What is wrong with the log: it lacks the pattern, or the exit code.
lacks() { # exit code, pattern
	if [ "$1" -ne 0 ]; then echo "exit code $1"; else grep -qE "$2" "$log" || echo "no '$2'"; fi
}

kept() { # value, in the cached profile
	cat "$XDG_CACHE_HOME"/stepsim/profile-*.yaml | awk -v name="$1:" '$1 == name { print $2 }'
}

interval() {
	python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))["prediction"]
print((p["interval90_s"][1] - p["step_time_s"]) / p["step_time_s"])' "$scratch/j.json"
}

others '0.4 0 1000' calibrate -v
code=$?
verdict 'a busy machine is said' "$(lacks $code 'took 4[0-9] % of .* during 100 % of the measurements, each time')"
verdict 'what others disturb is repeated' "$(lacks $code 'kernels: [1-9][0-9]* times again')"
verdict 'the profile says what stayed disturbed' \
	"$([ "$(kept others.disturbed)" = 1 ] || echo "others.disturbed: $(kept others.disturbed)")"

start '0.4 0 1000'
verdict 'busy still: used, with a wider interval' "$(lacks $? \
	'now other processes took 4[0-9] % .* it is used, with a wider')"
verdict 'busy still: not measured' "$([ "$(kept others.disturbed)" = 1 ] || echo 'the profile is another one')"
verdict 'busy still: the interval is as wide as what others took' \
	"$(awk -v w="$(interval)" 'BEGIN { if (w < 0.4) print w }')"

# As an earlier stepsim wrote it, which did not say how many entries there are.
sed -i '/^entries:/d' "$XDG_CACHE_HOME"/stepsim/profile-*.yaml
start '0.4 0 1000'
verdict 'an earlier one, busy still: used' "$(lacks $? \
	'lacks the number of its entries, and now other .* it is used, ')"

# The cores are quiet at the start; then others come for some seconds.
start '0.4 3 7'
verdict 'quiet: measured again' "$(lacks $? 'lacks .* and the cores are quiet now: measuring it again')"
verdict 'it says how many entries it has' "$([ -n "$(kept entries)" ] || echo 'it does not')"
verdict 'what was repeated is undisturbed' "$([ -z "$(kept others.disturbed)" ] || echo "$(kept others.disturbed)")"

start '0.4 0 1000'
verdict 'an undisturbed profile is used' "$([ $? -eq 0 ] && ! grep -q 'measurements' "$log" ||
	echo 'something is said of it')"

# The same profile, as cores of a tenth of the speed would have given it: they are far faster now.
predicted() {
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
print(j["prediction"]["step_time_s"], j["system"].get("pace", {}).get("compute", 1))' "$scratch/j.json"
}
slowly=$scratch/slow.awk
echo '/^  pace\.(gemm|add)_s:/ { $2 *= 10; print "  " $1, $2; next } { print }' >"$slowly"
read -r then_s _ <<<"$(predicted)"
awk -f "$slowly" "$XDG_CACHE_HOME"/stepsim/profile-*.yaml >"$scratch/slow.yaml"
cp "$scratch/slow.yaml" "$(ls "$XDG_CACHE_HOME"/stepsim/profile-*.yaml)"
start '0 0 0'
verdict 'another speed than then is said' "$(lacks $? 'the cores compute at [0-9.]+ times the speed that they had')"
verdict 'compute is predicted at the speed of now' "$(predicted | awk -v then="$then_s" \
	'$2 < 2 || $1 > then / 2 { print $1 " s, at " $2 " times the speed; then " then " s" }')"

verdicts
