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

# name, hosts, mpirun's host list or a hostfile, ranks, the hosts of the ranks in order
gathers() {
	local name=$1 hosts=$2 list=$3 ranks=$4 wrong='' code option=--host
	[ -f "$list" ] && option=--hostfile
	timeout 60 bash scripts/testbed.sh "$hosts" mpirun "${mpirun_flags[@]}" "$option" "$list" -np "$ranks" \
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
printf 'h1 slots=1\nh2 slots=2\n' >"$scratch/hosts"
gathers 'two hosts, by a hostfile' 2 "$scratch/hosts" 3 'h1 h2 h2'
gathers 'three hosts, uneven' 3 h1:1,h2:2,h3:1 4 'h1 h2 h2 h3'

# Hosts of a file: rates, racks and cores are there, and nothing is left of them.
cat >"$scratch/bed.yaml" <<BED
hosts: # two kinds
  - {count: 1, rack: left, rate: 200Mb/s, cores: 1}
  - {rack: right, cores: 0.5}
racks: {rate: 50 Mb/s}
BED
left_behind() { ls -d /var/tmp/testbed.* /sys/fs/cgroup/testbed.* /sys/fs/cgroup/*/testbed.* 2>/dev/null | sort; }
before=$(left_behind)
timeout 60 bash scripts/testbed.sh "$scratch/bed.yaml" bash -c '
	echo "hosts $TESTBED_HOSTS"
	tc qdisc show dev eth0
	grep Cpus_allowed_list /proc/self/status
	"$OMPI_MCA_plm_rsh_agent" h2 "hostname; tc qdisc show dev eth0; cat /proc/self/cgroup"
	exit 7' >"$log" 2>&1 </dev/null
code=$?
wrong=''
[ "$code" -eq 7 ] || wrong="exit code $code"
grep -q '^hosts h1:64,h2:64$' "$log" || wrong='not two hosts'
grep -q '^qdisc tbf .* rate 200Mbit burst 16Kb' "$log" || wrong='the link of h1 has no rate'
[ "$(grep -c '^qdisc tbf' "$log")" -eq 1 ] || wrong='the link of h2 has a rate'
grep -q '^h2$' "$log" || wrong='h2 is not reached'
[ "$(left_behind)" = "$before" ] || wrong='something is left'
if ! grep -q 'control groups cannot be made' "$log"; then
	grep -q '^Cpus_allowed_list:[[:space:]]*[0-9]*$' "$log" || wrong='h1 has more than one core'
	grep -q 'testbed.*\.h2$' "$log" || wrong='h2 is in no control group'
fi
verdict 'hosts of a file' "$wrong"

# Classes of links, and racks, from messages between ranks.
printf '%s\n' 'hosts:' '  - {count: 2, rack: left, rate: 400Mb/s}' '  - {rack: right, rate: 400Mb/s}' \
	'racks: {rate: 40Mb/s}' >"$scratch/racks.yaml"
timeout 60 bash scripts/testbed.sh "$scratch/racks.yaml" mpirun "${mpirun_flags[@]}" --host h1:2,h2:1,h3:1 -np 4 \
	build/release/stepsim topo >"$log" 2>&1 </dev/null
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
grep -q '^3 hosts in 2 racks: h1 h2 | h3$' "$log" || wrong='the racks are not found'
grep -qE '^inside a host +1 ' "$log" || wrong='no link inside a host'
# 400 Mb/s are 50 MB/s, 40 Mb/s 5 MB/s: less what TCP adds, and more by bursts.
grep -qE '^between hosts +1 .* (4[0-9]|5[0-5])(\.[0-9])? MB/s$' "$log" ||
	wrong='the link between hosts has another rate'
grep -qE '^between racks +2 .* (4\.[0-9]+|5\.[0-5][0-9]*) MB/s$' "$log" ||
	wrong='the link between racks has another rate'
verdict 'classes of links under mpirun' "$wrong"

# name, what replaces `cores: 0.5`, the complaint
refuses() {
	sed "s/cores: 0.5/$2/" "$scratch/bed.yaml" >"$scratch/wrong.yaml"
	bash scripts/testbed.sh "$scratch/wrong.yaml" true >"$log" 2>&1 </dev/null
	code=$?
	wrong=''
	[ "$code" -eq 2 ] || wrong="exit code $code"
	[ "$(cat "$log")" = "$scratch/wrong.yaml:3: $3" ] || wrong="it says $(cat "$log")"
	verdict "$1" "$wrong"
}
refuses 'an unknown key in the file' 'core: 1' "unknown key 'core' (known are: count, rack, rate, cores)"
refuses 'a rate without a unit in the file' 'rate: 5' "rate: '5' is not like 300Mb/s"

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
