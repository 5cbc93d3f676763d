#!/bin/bash
# `stepsim predict` on every system of the catalogue, and on a host of eight of every GPU, ends with exit code 0, and
# warns where the catalogue marks a number as unverified.
# STEPSIM: another binary than build/release/stepsim.
set -u
cd "$(dirname "$0")/../.." || exit 1
stepsim=${STEPSIM:-build/${VARIANT:-release}/stepsim}
passed=0
failed=0
config=$(mktemp --suffix=.yaml)
trap 'rm -f "$config"' EXIT
cat >"$config" <<'YAML'
model: {preset: gpt2-124m, layers: 1}
train: {stack: pytorch-ddp, micro_batch: 1, global_batch: 4608}
YAML

# The system, the nodes and the format; prints what was predicted.
predict() {
	"$stepsim" predict "$config" --set "cluster.system=$1" --set "cluster.nodes=$2" \
		--set "train.dtype=$3" 2>&1 </dev/null
}

expect() {
	local what=$1 code=$2 text=$3 unverified=$4
	local warned=false
	[[ $text == *"unverified numbers"* ]] && warned=true
	if [ "$code" -eq 0 ] && [ "$warned" = "$unverified" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf '%s: exit code %d, unverified: %s, warned: %s\n%s\n' "$what" "$code" "$unverified" "$warned" \
			"$(tail -n 1 <<<"$text")"
	fi
}

# The file, and behind it the file that it is like: whoever asks for the first line of a key gets the file's own.
lines() {
	local file=$1 like
	cat "$file"
	like=$(awk '$1 == "like:" { print $2 }' "$file")
	[ -z "$like" ] || lines "$(dirname "$file")/$like.yaml"
}

# A number of the file counts, but not that of a price, a rent or the power of a host: no step time depends on them.
marked() {
	lines "$1" | awk '/^[^ #]/ { figure = /^(price|power|rent_usd_per_hour):/ } !figure' |
		grep -q 'unverified: true'
}

format_of() {
	local dtype
	for dtype in bf16 fp16 fp32; do
		if grep -qE "^  $dtype: " <(lines "configs/gpus/$1.yaml" | sed -n '/^matrix:/,/^[a-z]*:/p'); then
			echo "$dtype"
			return
		fi
	done
}

for file in configs/systems/*.yaml; do
	name=$(basename "$file" .yaml)
	gpu=$(lines "$file" | awk '$1 == "gpu:" { print $2; exit }')
	nodes=2
	lines "$file" | grep -m 1 -E '^  count: ' | grep -q 'value: 0,' && nodes=1
	unverified=false
	if marked "$file" || marked "configs/gpus/$gpu.yaml"; then unverified=true; fi
	text=$(predict "$name" "$nodes" "$(format_of "$gpu")")
	expect "$name" $? "$text" $unverified
done
for file in configs/gpus/*.yaml; do
	gpu=$(basename "$file" .yaml)
	unverified=false
	marked "$file" && unverified=true
	text=$(predict "gpu:8 $gpu" 1 "$(format_of "$gpu")")
	expect "gpu:8 $gpu" $? "$text" $unverified
done
text=$(predict "node:4 gpu:8 rtx4090 pcie4 nic:1x100Gb/s" 1 fp16)
code=$?
if [ $code -eq 0 ] && [[ $text == *"on 32 ranks"* ]]; then
	passed=$((passed + 1))
else
	failed=$((failed + 1))
	echo "a line with nodes: exit code $code, $(head -n 1 <<<"$text")"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
