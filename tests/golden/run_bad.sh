#!/bin/bash
# Wrong configs: each tests/golden/bad/NAME.yaml, with the arguments of NAME.args if there are any, ends with
# exit code 2
# and the line of NAME.txt as the first one on standard error. STEPSIM: another binary than build/release/stepsim.
set -u
cd "$(dirname "$0")/../.." || exit 1
stepsim=${STEPSIM:-build/${VARIANT:-release}/stepsim}
passed=0
failed=0
for config in tests/golden/bad/*.yaml; do
	name=${config%.yaml}
	args=()
	[ -e "$name.args" ] && read -ra args <"$name.args"
	line=$("$stepsim" predict "$config" ${args[@]+"${args[@]}"} 2>&1 >/dev/null </dev/null)
	code=$?
	line=${line%%$'\n'*}
	expected=$(cat "$name.txt")
	if [ "$code" -eq 2 ] && [ "$line" = "$expected" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf '%s\n  expected (exit 2): %s\n  got (exit %d): %s\n' "$config" "$expected" "$code" "$line"
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
