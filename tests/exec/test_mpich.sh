#!/usr/bin/env bash
# The same sources on MPICH (`make MPI=mpich`), in build/mpich: a step is executed, three plans are trained and compared
# with a single rank, and a rank that is stopped ends the job in one line. Needs MPICH beside Open MPI (Debian: mpich,
# libmpich-dev). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
here=build/mpich
launcher=$(command -v mpiexec.mpich || command -v mpiexec.hydra)
{ pkg-config --exists mpich && [ -n "$launcher" ]; } || skip_all 'MPICH is not here'
make -s -j"$(cores)" B=$here MPI=mpich CUDA=0 $here/stepsim $here/libstepsim_exec.so $here/tests/exec/test_train \
	>"$log" 2>&1 || { cat "$log"; exit 1; }
export XDG_CACHE_HOME=$scratch/cache
profile=$scratch/profile.yaml

"$launcher" -n 2 $here/stepsim calibrate -o "$profile" >"$log" 2>&1 </dev/null
verdict 'a profile' "$([ $? -eq 0 ] && grep -q '^  mpi: "MPICH Version: ' "$profile" ||
	echo 'it failed, or MPICH is not named')"
run=($here/stepsim configs/ddp-tiny.yaml --set "cluster.profile=$profile")
"$launcher" -n 2 "${run[@]}" --set run.steps=10 >"$log" 2>&1 </dev/null
verdict 'a step' "$([ $? -eq 0 ] && grep -q "every collective's sum verified" "$log" || echo 'it failed')"

tiny=tests/exec/tiny.yaml
"$launcher" -n 4 $here/tests/exec/test_train $tiny parallel.tensor=2 -- $tiny parallel.strategy=fsdp \
	parallel.bucket_mb=25 -- $tiny parallel.pipeline=4 model.layers=4 >"$log" 2>&1 </dev/null
verdict 'training on 4 ranks' "$([ "$(grep -c '^passed ' "$log")" -eq 3 ] ||
	echo "$(grep -c '^passed ' "$log") of 3 passed")"

"$launcher" -n 2 "${run[@]}" --set run.steps=20000 --set run.timeout_s=3 >"$log" 2>&1 </dev/null &
job=$!
# A rank's first child, which tries OpenBLAS, has its command line; ranks are children of MPICH's own process.
last_rank() { pgrep -P "$(pgrep -d, -x hydra_pmi_proxy)" -f "^${run[*]}" | tail -n 1; }
for _ in $(seq 300); do
	[ -n "$(last_rank)" ] && break
	sleep 0.1
done
has_worked "$(last_rank)" 150
kill -STOP "$(last_rank)"
wait $job
code=$?
verdict 'a rank is stopped' "$([ $code -eq 1 ] &&
	grep -Eq '^stepsim: no progress for [0-9]+ s: rank [01] \(.*\) is stopped in ' "$log" ||
	echo "exit code $code")"
for _ in $(seq 80); do
	pgrep -f "^${run[*]}" >/dev/null || break
	sleep 0.1
done
verdict 'no rank is left' "$(pgrep -f "^${run[*]}")"
verdicts
