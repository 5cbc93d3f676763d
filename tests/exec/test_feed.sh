#!/usr/bin/env bash
# A data loader that cannot keep up, executed at 1 and 2 ranks on the host, and on doubles of the CUDA libraries: sums
# verified, and on the host the device's wait for data is most of the step, as only a loader
# that really takes its time makes it. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

shown() {
	head -20 "$log"
}

# RANKS [--set ...]: 2 micro-batches a rank, 500 ms each where two workers prepare them.
starved() {
	local ranks=$1
	shift
	timeout 120 mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" configs/starved.yaml --set data.load_time=1s \
		--set train.global_batch=$((4 * ranks)) --set run.steps=2 "$@" >"$log" 2>&1 </dev/null
}

# Prints the faults of the JSON: the measured step is at least `least` seconds, mostly the host's, and the
# bottleneck says why.
measured() {
	python3 - "$scratch/j.json" "$1" <<'PY'
import json, sys
m = json.load(open(sys.argv[1]))["measurement"]
good = m["verified"] is True and m["host_s"] > 0.3 * m["step_time_s"]
good = good and m["step_time_s"] > float(sys.argv[2]) and m["bottleneck"].startswith("loading data")
print("" if good else m)
PY
}

for ranks in 1 2; do
	for case in '0.7' '1.99 --set data.prefetch=0' '1.99 --set data.workers=0 --set train.sync_every=1'; do
		read -ra args <<<"$case"
		starved "$ranks" --json "$scratch/j.json" "${args[@]:1}"
		code=$?
		verdict "starved at $ranks, $case" \
			"$([ "$code" -eq 0 ] && measured "${args[0]}" || echo "exit code $code")"
	done
done

if [ -e build/release/libstepsim_cuda.so ]; then
	for case in '' 'data.workers=0' 'data.pin_memory=false train.sync_every=2' \
		'train.cuda_graph=true data.prefetch=1' 'data.load_time=0ms data.pin_memory=false train.sync_every=1';
		do
		args=()
		for set in $case; do args+=(--set "$set"); done
		LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} starved 2 --set run.backend=cuda \
			--set data.load_time=20ms "${args[@]}"
		code=$?
		verdict "on doubles, $case" \
			"$([ "$code" -eq 0 ] || echo "exit code $code"; \
			grep -q "Executed on doubles of the CUDA libraries: every collective's sum verified" "$log" ||
			echo 'no verdict')"
	done
fi

verdicts
