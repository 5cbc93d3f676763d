#!/usr/bin/env bash
# RUNS (default 1000) short runs in a row leave nothing: predictions, and every fiftieth time two ranks that execute.
# Files in /tmp, the cache and the working folder, shared memory and processes are counted before and after; a run of
# many predictions inside one process (a sweep) must not keep open files or memory. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
runs=${RUNS:-1000}
stepsim=$PWD/$stepsim
export TMPDIR=$scratch/tmp XDG_CACHE_HOME=$scratch/cache
mkdir "$TMPDIR" "$XDG_CACHE_HOME" "$scratch/here"
profile=$scratch/profile.yaml
mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" calibrate -o "$profile" >"$log" 2>&1 </dev/null || { cat "$log"; exit 1; }
cd "$scratch/here" || exit 2

# Of this user alone; other programs' names in /dev/shm are not ours.
there() {
	find "$TMPDIR" "$scratch/here" "$XDG_CACHE_HOME" | sort
	find /dev/shm -maxdepth 1 -name 'stepsim*' | sort
}
before=$(there)
wrong='' configs=("$root"/configs/*-tiny.yaml)
for ((i = 0; i < runs && ${#wrong} == 0; i++)); do
	config=${configs[i % ${#configs[@]}]}
	if ((i % 50 == 49)); then
		mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" "$root/configs/ddp-tiny.yaml" --set run.steps=1 \
			--set run.warmup=0 --set "cluster.profile=$profile" -q --json r.json >"$log" 2>&1 </dev/null ||
			wrong="run $i: exit code $?"
	else
		"$stepsim" predict "$config" --set cluster.system=dgx-h100 --set cluster.nodes=1 -q --json r.json \
			--trace t.json >"$log" 2>&1 </dev/null || wrong="run $i ($config): exit code $?"
	fi
	rm -f r.json t.json
done
verdict "$runs runs" "$wrong"
verdict 'nothing is left' "$(diff <(echo "$before") <(there) | grep '^[<>]')"

# The exit code and the most memory of a process that predicts so many times, of 16 files at most that may be open.
grown() { # how many
	local list
	list=$(seq -s, 1 "$1")
	/usr/bin/env python3 - "$stepsim" "$root/configs/llama3-8b-fsdp-64xh100.yaml" "$list" <<'PYTHON'
import resource, subprocess, sys
done = subprocess.run([sys.argv[1], 'sweep', sys.argv[2], '--set', 'parallel.strategy=zero2', '--vary',
                       'parallel.bucket_mb=' + sys.argv[3], '-q'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
PYTHON
}
read -r few_code few_kB < <(grown 20)
read -r many_code many_kB < <(grown 400)
echo "20 predictions: exit code $few_code, $few_kB KiB; 400: $many_code, $many_kB KiB" | tee "$log"
verdict 'open files do not grow' "$([ "$few_code $many_code" = '0 0' ] || echo "exit codes $few_code, $many_code")"
# The results of a sweep are kept to its end, some KB each.
verdict 'memory grows by no more than results' "$([ $((many_kB - few_kB)) -le $((380 * 64)) ] ||
	echo "$few_kB, then $many_kB KiB")"
verdicts
