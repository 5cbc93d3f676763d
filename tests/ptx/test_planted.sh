#!/usr/bin/env bash
# The interpreter of PTX has to find each defect that tests/ptx/planted.cu holds, in the right words and at the right
# line of the source, and none where there is none. The last line counts.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=build/release/ptx
passed=0 failed=0

run() {
	STEPSIM_PTX=$build/planted LD_LIBRARY_PATH=$build timeout 60 "$build/planted/planted" "$1" 2>&1
}

result() { # name, whether it is good, what was printed
	if [ "$2" = true ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED planted %s\n%s\n' "$1" "$3"
	fi
}

# What cannot be a defect of a kernel.
for line in 'clean no error, 8160 8160 64' 'refused error 1, 0 63 64'; do
	text=$(run "${line%% *}")
	[ "$text" = "${line#* }" ] && good=true || good=false
	result "${line%% *}" "$good" "$text"
done

# Each defect: its kernel, then its words.
while IFS='|' read -r name words; do
	text=$(run "$name")
	code=$?
	good=false
	from=$(sed -n 's/^  from //p' <<<"$text")
	line=$(grep -o 'planted.cu:[0-9]*$' <<<"$from" | cut -d: -f2)
	[ $code -eq 9 ] && grep -Eq "^ptx: $words" <<<"$text" && grep -Eq "^  in $name\(float\*, int\)" <<<"$text" &&
		grep -Eq "^  at $build/planted/planted.ptx:[0-9]+: [a-z@]" <<<"$text" && [ -n "$line" ] &&
		sed -n "${line}p" tests/ptx/planted.cu | grep -q "/\* $name \*/" && good=true
	result "$name" "$good" "$text"
done <<'EOF'
bounds_behind|out of bounds: read of 4 B of global memory at 0x[0-9a-f]+, 0 B behind the end of an array of 1024 B
bounds_before|out of bounds: write of 4 B of global memory at 0x[0-9a-f]+, [0-9]+ B before an array of 1024 B
bounds_shared|out of bounds: write of 4 B of shared memory at 256, of 256 B
bounds_local|out of bounds: write of 4 B of local memory at 16, of 16 B
misaligned|misaligned: read of 4 B of global memory
misaligned_vector|misaligned: read of 16 B of global memory
race_read|race: (read|write) of shared memory at [0-9]+ that warp [01] (wrote|read), no barrier between
race_write|race: write of shared memory at 0 that warp [01] wrote, no barrier between
race_loop|race: (read|write) of shared memory at [0-9]+ that warp [01] (wrote|read), no barrier between
unwritten|read of shared memory at [0-9]+ that nobody has written
copy_early|read of shared memory at 0 before the cp.async of warp 0 to it was waited for
copy_never|a cp.async that its thread never waits for
copy_race|race: (read|write) of shared memory at [0-9]+ that warp [01] (wrote|read), no barrier between
barrier_branch|divergence: 20 lanes wait here, and lane 20 at line [0-9]+: they never meet
barrier_return|divergence: lane 18 takes part, but it has ended
shuffle_branch|divergence: lane 16 takes part, but it has ended
endless|the warp has executed 50000000 instructions and does not end
unknown|this instruction is not known
EOF

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
