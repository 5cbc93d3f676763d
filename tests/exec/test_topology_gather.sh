#!/usr/bin/env bash
# The ranks of one host give a cluster of that host, under its name, and each rank has its placement
# (test_topology_gather.c). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
program=${1:-build/release/tests/exec/test_topology_gather}
host=$(hostname)

# Prints what is wrong with the log of a run of that many ranks.
complaint() {
	local ranks=$1 code=$2 rank
	if [ "$code" -ne 0 ]; then
		echo "exit code $code"
	elif ! grep -Eq '^hosts 1 devices [0-9]+$' "$log"; then
		echo 'it is not one host'
	elif [ "$(grep -c '^host ' "$log")" -ne 1 ] || ! grep -Eq "^host $host gpus [0-9]+ nics [0-9]+\$" "$log"; then
		echo "the host is not named $host"
	elif [ "$(grep -c '^rank ' "$log")" -ne "$ranks" ]; then
		echo "not $ranks placements"
	else
		for rank in $(seq 0 $((ranks - 1))); do
			sed -n "$((3 + rank))p" "$log" |
				grep -Eq "^rank $rank: host $host, cores [0-9,-]+( \(shared\))?, no GPU\$" ||
				echo "no placement of rank $rank in its place"
		done
	fi
}

for ranks in 1 2 4; do
	timeout 60 mpirun "${mpirun_flags[@]}" -np "$ranks" "$program" >"$log" 2>&1 </dev/null
	verdict "$ranks ranks" "$(complaint "$ranks" $?)"
done
timeout 60 "$program" >"$log" 2>&1 </dev/null
verdict 'without a launcher' "$(complaint 1 $?)"

# Ranks that one CPU was left to share it, and say so.
first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
timeout 60 taskset -c "$first" mpirun "${mpirun_flags[@]}" -np 2 "$program" >"$log" 2>&1 </dev/null
code=$?
wrong=$(complaint 2 "$code")
[ -n "$wrong" ] || [ "$(grep -c "cores $first (shared)" "$log")" -eq 2 ] || wrong='two ranks do not share the one CPU'
verdict 'one CPU for two ranks' "$wrong"

# A host that cannot be read: one line that names it, on all ranks the same end.
printf '<system version="1"><cpu' >"$scratch/broken.xml"
NCCL_TOPO_FILE=$scratch/broken.xml timeout 60 mpirun "${mpirun_flags[@]}" -np 2 "$program" >"$log" 2>&1 </dev/null
code=$?
wrong=''
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || wrong="exit code $code"
[ "$(grep -c "^test_topology_gather: the topology of host $host: .*broken.xml" "$log")" -eq 1 ] ||
	wrong='no line that names the host and the file'
verdict 'a host that cannot be read' "$wrong"

verdicts
