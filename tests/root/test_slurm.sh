#!/usr/bin/env bash
# stepsim under Slurm, for root: a controller and a slurmd on each of two hosts of the test-bed, with a munged of their
# own (Debian: slurmd, slurmctld, slurm-client, munge, libpmix-dev). srun executes a step, a batch script does, and a
# rank that is killed ends the job in one line. The machine's own Slurm is not touched. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
PATH+=:/usr/sbin:/sbin
for program in slurmctld slurmd srun sbatch munged; do
	command -v $program >/dev/null || [ "${1:-}" = inside ] || skip_all "$program is not here"
done

if [ "${1:-}" != inside ]; then
	rm -rf "$scratch"
	scratch=$(mktemp -d "$root/build/slurm.XXXXXX") # where both hosts see it
	chmod 755 "$scratch"
	log=$scratch/log
	bash scripts/testbed.sh 1 true >"$log" 2>&1 || skip_all "$(tail -n 1 "$log")"
	SLURM_HERE=$scratch timeout 400 bash scripts/testbed.sh 2 bash tests/root/test_slurm.sh inside
	exit
fi

rm -rf "$scratch"
here=$SLURM_HERE
scratch=$here/inside log=$here/log
mkdir "$scratch" "$here/state"
export SLURM_CONF=$here/slurm.conf XDG_CACHE_HOME=$here/cache
unset SLURM_HERE
stepsim=$PWD/$stepsim tiny=$PWD/configs/ddp-tiny.yaml
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=h1(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.socket
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool.%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.%n.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPort=16817
MpiDefault=none
NodeName=h1 NodeAddr=10.77.0.1 Port=17001 CPUs=2 State=UNKNOWN
NodeName=h2 NodeAddr=10.77.0.2 Port=17002 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=h1,h2 Default=YES State=UP
CONF
dd if=/dev/urandom of="$here/munge.key" bs=1024 count=1 2>/dev/null
chmod 400 "$here/munge.key"
munged --force --key-file="$here/munge.key" --socket="$here/munge.socket" --pid-file="$here/munged.pid" \
	--log-file="$here/munged.log" --seed-file="$here/munge.seed" >"$log" 2>&1 &&
	slurmctld >>"$log" 2>&1 && slurmd -N h1 >>"$log" 2>&1 &&
	"$OMPI_MCA_plm_rsh_agent" h2 "SLURM_CONF='$SLURM_CONF' PATH='$PATH' slurmd -N h2" >>"$log" 2>&1
for _ in $(seq 100); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
	sleep 0.2
done
shown() { tail -n 30 "$log" "$here"/*.log; }
if [ "$(sinfo -h -t idle -o %D 2>>"$log")" != 2 ]; then
	verdict 'two nodes of Slurm' 'they do not become idle'
	verdicts
	exit
fi

shown() { tail -n 30 "$log"; }
pmix=(srun --mpi=pmix -N 2 -n 4 --cpu-bind=none)
[ -z "${TRANSCRIPT:-}" ] || { sinfo; srun --mpi=list; } 2>&1
has() { grep -Eq "$1" "$log" || echo "no line like $1"; }

timeout 100 srun -n 1 "$stepsim" predict "$tiny" --set cluster.system=dgx-h100 >"$log" 2>&1 </dev/null
verdict 'srun predicts' "$([ $? -eq 0 ] && has '^step ' || echo 'it failed')"

timeout 200 "${pmix[@]}" "$stepsim" calibrate -o "$here/profile.yaml" >"$log" 2>&1 </dev/null
verdict 'srun calibrates 4 ranks on 2 hosts' "$([ $? -eq 0 ] || echo "it failed")"
run=("$stepsim" "$tiny" --set "cluster.profile=$here/profile.yaml")

timeout 100 "${pmix[@]}" "${run[@]}" --set run.steps=20 -v >"$log" 2>&1 </dev/null
code=$?
[ -z "${TRANSCRIPT:-}" ] || cat "$log"
verdict 'srun executes on 4 ranks of 2 hosts' "$([ $code -eq 0 ] || echo "exit code $code")"
verdict 'its measurement' "$(has "^Measured: median of 20 steps, .* every collective's sum verified")"

cat >"$here/job.sh" <<JOB
#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2 --exclusive
srun --mpi=pmix --cpu-bind=none ${run[*]} --set run.steps=20 --json $here/result.json
JOB
timeout 100 sbatch --wait -o "$log" "$here/job.sh" >"$scratch/batch" 2>&1 </dev/null
verdict 'a batch script' "$([ $? -eq 0 ] || { cat "$scratch/batch"; echo 'it failed'; })"
verdict 'its JSON' "$(python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))
if not m["measurement"]["step_time_s"] > 0: print("no time")' "$here/result.json" 2>&1 | tail -n 1)"

# A rank of the second host is killed in the middle.
timeout 100 "${pmix[@]}" "${run[@]}" --set run.steps=20000 --set run.timeout_s=20 >"$log" 2>&1 </dev/null &
job=$!
victim() { # the rank with the highest number of those that have begun
	local p
	for p in /proc/[0-9]*; do
		grep -qzs '^PMIX_RANK=3$' "$p/environ" && grep -qs '^Name:.*stepsim$' "$p/status" && echo "${p#/proc/}"
	done
}
for _ in $(seq 300); do
	[ -n "$(victim)" ] && break
	sleep 0.1
done
has_worked "$(victim)" 150
kill -KILL "$(victim)"
wait $job
code=$?
verdict 'a rank is killed' "$([ $code -ne 0 ] && [ $code -ne 124 ] || echo "exit code $code")"
verdict 'it is named' "$(has '^stepsim: rank 3 \(h2, process [0-9]+\) died ')"
[ -z "${TRANSCRIPT:-}" ] || cat "$log"
scancel --full --user root 2>/dev/null
for _ in $(seq 100); do
	[ -n "$(victim)" ] || break
	sleep 0.1
done
verdict 'no rank is left' "$(victim)"
verdicts
