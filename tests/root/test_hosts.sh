#!/usr/bin/env bash
# Tests that need root: ranks on several hosts (scripts/testbed.sh) give one cluster, and a CPU quota limits the ranks'
# shares (tests/exec/test_topology_gather.c). The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
program=$(realpath "${1:-build/release/tests/exec/test_topology_gather}")
rm -rf "$scratch"
scratch=$(mktemp -d "$root/build/hosts.XXXXXX") # where all hosts of the test-bed see it
log=$scratch/log

if ! bash scripts/testbed.sh 1 true >"$log" 2>&1; then
	skip_all "$(tail -n 1 "$log")"
fi

# name, hosts, mpirun's host list, ranks, the hosts of the ranks in order
gathers() {
	local name=$1 hosts=$2 list=$3 ranks=$4 wrong='' code
	timeout 60 bash scripts/testbed.sh "$hosts" mpirun "${mpirun_flags[@]}" --host "$list" -np "$ranks" \
		"$program" >"$log" 2>&1 </dev/null
	code=$?
	[ "$code" -eq 0 ] || wrong="exit code $code"
	[ "$(sed -n 's/^hosts \([0-9]*\) .*/\1/p' "$log")" = "$hosts" ] || wrong="not $hosts hosts"
	[ "$(sed -n 's/^host \(h[0-9]*\) .*/\1/p' "$log" | xargs)" = "$(seq -f 'h%.0f' "$hosts" | xargs)" ] ||
		wrong='the hosts are not named in order'
	[ "$(sed -n 's/^rank [0-9]*: host \(h[0-9]*\), .*/\1/p' "$log" | xargs)" = "$5" ] ||
		wrong='the ranks are not on their hosts'
	verdict "$name" "$wrong"
}

gathers 'two hosts, one rank each' 2 h1:1,h2:1 2 'h1 h2'
gathers 'two hosts, two ranks each' 2 h1:2,h2:2 4 'h1 h1 h2 h2'
gathers 'three hosts, uneven' 3 h1:1,h2:2,h3:1 4 'h1 h2 h2 h3'

# One host of two cannot be read: its name and the file, in one line on rank 0.
printf '<system version="1"><cpu' >"$scratch/broken.xml"
printf '#!/bin/sh\n[ "$(hostname)" = h2 ] && export NCCL_TOPO_FILE=%s\nexec %s\n' "$scratch/broken.xml" \
	"$program" >"$scratch/rank"
chmod +x "$scratch/rank"
timeout 60 bash scripts/testbed.sh 2 mpirun "${mpirun_flags[@]}" --host h1:2,h2:2 -np 4 \
	"$scratch/rank" >"$log" 2>&1 </dev/null
code=$?
wrong=''
[ "$code" -ne 0 ] && [ "$code" -ne 124 ] || wrong="exit code $code"
[ "$(grep -c '^test_topology_gather: the topology of host h2: .*broken.xml' "$log")" -eq 1 ] ||
	wrong='no line that names the host and the file'
verdict 'a host of two cannot be read' "$wrong"

# name, cpu.max, how many of two ranks share
quota() {
	timeout 60 unshare --mount bash \
		-c 'mount -t tmpfs tmpfs /sys/fs/cgroup && echo "$1" >/sys/fs/cgroup/cpu.max && shift && exec "$@"' \
		quota "$2" mpirun "${mpirun_flags[@]}" -np 2 "$program" >"$log" 2>&1 </dev/null
	code=$?
	wrong=''
	[ "$code" -eq 0 ] || wrong="exit code $code"
	[ "$(grep -c '(shared)' "$log")" -eq "$3" ] || wrong="not $3 ranks share"
	verdict "$1" "$wrong"
}
if [ "$(cores)" -ge 2 ]; then
	quota 'CPU time of one core and a half for two ranks' '150000 100000' 2
	quota 'CPU time of two cores for two ranks' '200000 100000' 0
	quota 'no CPU quota' 'max 100000' 0
fi

verdicts
