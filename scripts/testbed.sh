#!/usr/bin/env bash
# A test-bed of several hosts on one machine, for root:
#   scripts/testbed.sh HOSTS COMMAND [ARGUMENT ...]         HOSTS: how many (1-9), or a YAML file
# Each host h1, h2, ... has a name, an address, /tmp and /dev/shm of its own (namespaces). The command runs on h1 with
# TESTBED_HOSTS="h1:64,h2:64,..." and Open MPI set up to reach the others:
#   scripts/testbed.sh 2 mpirun --host h1:2,h2:2 --bind-to none build/release/stepsim configs/ddp-tiny.yaml
# The file says how many hosts of a kind there are, in order; each key but `count` may be left out:
#   hosts:
#     - {count: 2, rack: left, rate: 1Gb/s, cores: 1}      # rate: of each direction of a host's link
#     - {count: 2, rack: right, rate: 1Gb/s, cores: 0.5}   # cores: whole ones, or a share of one
#   racks: {rate: 300Mb/s}                                  # of the link between a rack and the others
# Rates are shaped by tc tbf with a burst of 16 KB; they add no latency, as netem would. Exit code: the command's; 2 for
# a wrong file, and where namespaces cannot be made. Nothing is left when it ends.
set -u
if [ $# -lt 2 ] || ! { [[ $1 =~ ^[1-9]$ ]] || [ -f "$1" ]; }; then
	echo 'usage: scripts/testbed.sh HOSTS(1-9)|FILE.yaml COMMAND [ARGUMENT ...]' >&2
	exit 2
fi

# Prints "host RACK RATE CORES" for each host, then "racks RATE"; "-" is what the file does not say. It reads the form
# above and no more of YAML, so that a mistake has its line.
read_file() {
	python3 - "$1" <<'PYTHON'
import re, sys

path, hosts, rack_rate, number = sys.argv[1], [], '-', 0
keys = {'count': r'[1-9]', 'rack': r'[A-Za-z0-9_-]+', 'rate': r'[0-9.]+ ?[kMG]b/s', 'cores': r'[0-9]*\.?[0-9]+'}


def stop(text):
    sys.exit(f'{path}:{number}: {text}')


def fields(text, known):
    found = {}
    for part in text.split(','):
        key, colon, value = (x.strip() for x in part.partition(':'))
        if key not in known:
            stop(f"unknown key '{key}' (known are: {', '.join(known)})")
        if not re.fullmatch(keys[key], value):
            stop(f"{key}: '{value}' is not like {dict(count='2', rack='left', rate='300Mb/s', cores='0.5')[key]}")
        found[key] = value
    return found


for number, line in enumerate(open(path), 1):
    line = re.sub(r'(^|\s)#.*', '', line).rstrip()
    if host := re.fullmatch(r'\s*- \{(.*)\}', line):
        f = fields(host[1], list(keys))
        hosts += [(f.get('rack', 'rack'), f.get('rate', '-'), f.get('cores', '-'))] * int(f.get('count', 1))
    elif racks := re.fullmatch(r'racks: \{(.*)\}', line):
        rack_rate = fields(racks[1], ['rate'])['rate']
    elif line not in ('', 'hosts:'):
        stop("expected 'hosts:', '- {count: 2, rate: 1Gb/s, cores: 1}' or 'racks: {rate: 300Mb/s}'")
if not 1 <= len(hosts) <= 9:
    stop(f'{len(hosts)} hosts: expected 1 to 9')
for rack, rate, cores in hosts:
    print('host', rack, rate.replace(' ', ''), cores)
print('racks', rack_rate.replace(' ', ''))
PYTHON
}

if [ -f "$1" ]; then
	plan=$(read_file "$1") || exit 2
else
	plan=$(for _ in $(seq "$1"); do echo 'host rack - -'; done && echo 'racks -')
fi
shift
mapfile -t racks < <(awk '$1 == "host" { print $2 }' <<<"$plan")
mapfile -t rates < <(awk '$1 == "host" { print $3 }' <<<"$plan")
mapfile -t shares < <(awk '$1 == "host" { print $4 }' <<<"$plan")
rack_rate=$(awk '$1 == "racks" { print $2 }' <<<"$plan")
hosts=${#racks[@]}
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! command -v nsenter >/dev/null; then
	echo 'testbed: needs root, ip (iproute2) and nsenter (util-linux)' >&2
	exit 2
fi

bed=$(mktemp -d /var/tmp/testbed.XXXXXX)
groups=() # folders of control groups
nets=()   # networks, held open so that no other gets the name of one whose processes have died
cleanup() {
	local net process folder
	trap - EXIT TERM INT HUP
	# All processes of a host are in its network, daemons too.
	for net in "${nets[@]}"; do
		for process in /proc/[0-9]*; do
			[ "$(readlink "$process/ns/net" 2>/dev/null)" != "$net" ] ||
				kill -KILL "${process#/proc/}" 2>/dev/null
		done
	done
	for folder in "${groups[@]}"; do
		for _ in $(seq 100); do
			rmdir "$folder" 2>/dev/null && break
			sleep 0.02
		done
	done
	rm -rf "$bed"
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP
fail() {
	echo "testbed: $1" >&2
	exit 2
}

# A process that holds the namespaces of a host or a switch; its network ends with it.
hold() {
	unshare --uts --mount --net bash -c "
		hostname $1 && mount -t tmpfs tmpfs /tmp && mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
		ip link set lo up && touch '$bed/ready.$1' && exec sleep infinity" &
	local holder=$! fd
	disown # its end is no news
	echo "$holder" >"$bed/pid.$1"
	for _ in $(seq 100); do
		[ -e "$bed/ready.$1" ] && break
		sleep 0.05
	done
	[ -e "$bed/ready.$1" ] && exec {fd}<"/proc/$holder/ns/net" || fail "host $1 cannot be made"
	nets+=("$(readlink "/proc/$holder/ns/net")")
}
# Runs in the namespaces of a host or a switch.
inside() {
	nsenter -t "$(cat "$bed/pid.$1")" --uts --mount --net "${@:2}"
}
# A bucket of 16 KB is a tenth of a millisecond at 1 Gb/s: next to nothing fits into it. A queue of 512 KB is a small
# switch's. Segments of nearly the bucket's size stand for those that a NIC cuts and joins: shaped one by one, packets
# of 1,500 bytes would cost a timer each, which takes a core's time that no NIC takes.
shape() { # host, device, rate
	[ "$3" != - ] || return 0
	inside "$1" ip link set "$2" gso_max_size 15000 gso_ipv4_max_size 15000 2>/dev/null ||
		inside "$1" ip link set "$2" gso_max_size 15000 || fail "segments of $1 cannot be limited"
	inside "$1" tc qdisc add dev "$2" root tbf rate "${3%b/s}bit" burst 16kb limit 512kb ||
		fail "tc cannot shape $1's link to $3"
}
cable() { # one end, its device, the other end, its device, rate of both directions
	inside "$1" ip link add "$2" type veth peer name "$4" netns "$(cat "$bed/pid.$3")" &&
		inside "$1" ip link set "$2" up && inside "$3" ip link set "$4" up || fail "$1 and $3 cannot be joined"
	shape "$1" "$2" "$5"
	shape "$3" "$4" "$5"
}
plug() { # switch, device
	inside "$1" ip link set "$2" master bridge || fail "$1 takes no link"
}

# A switch for each rack, and one that joins them: the machine's own network is left alone.
make_network() {
	local i rack switches=()
	mapfile -t switches < <(printf '%s\n' "${racks[@]}" | sort -u)
	[ "${#switches[@]}" -eq 1 ] || switches+=('')
	for rack in "${switches[@]}"; do
		hold "switch$rack"
		inside "switch$rack" ip link add bridge type bridge && inside "switch$rack" ip link set bridge up ||
			fail 'no bridge can be made'
		[ "${#switches[@]}" -eq 1 ] || [ -z "$rack" ] || uplinks+=("$rack")
	done
	for i in "${!uplinks[@]}"; do
		cable "switch${uplinks[i]}" uplink switch "rack$i" "$rack_rate"
		plug "switch${uplinks[i]}" uplink
		plug switch "rack$i"
	done
	for i in $(seq "$hosts"); do
		hold "h$i"
		cable "h$i" eth0 "switch${racks[i - 1]}" "h$i" "${rates[i - 1]}"
		plug "switch${racks[i - 1]}" "h$i"
		inside "h$i" ip address add "10.77.0.$i/24" dev eth0 || fail "h$i gets no address"
		echo "10.77.0.$i h$i"
	done >"$bed/hosts"
}

# A control group of the host for its cores, one for its share of a core; cgroup version 1 has a tree for each.
group() { # host, controller, then FILE VALUE ...
	local folder=/sys/fs/cgroup/$2/${bed##*/}.$1
	if [ ! -d "/sys/fs/cgroup/$2" ]; then
		folder=/sys/fs/cgroup/${bed##*/}.$1
		# version 2: its groups have the controller
		{ echo "+$2" >/sys/fs/cgroup/cgroup.subtree_control; } 2>/dev/null
	fi
	if [ ! -d "$folder" ]; then
		mkdir "$folder" 2>/dev/null || return
		groups+=("$folder")
		echo "$folder/cgroup.procs" >>"$bed/groups.$1"
	fi
	shift 2
	while [ $# -gt 0 ]; do
		{ echo "$2" >"$folder/$1"; } 2>/dev/null || return
		shift 2
	done
}
# Whole cores follow each other, round and round; shares of a core go where most is free.
give_cores() {
	local i cpu cpus quota given n=0 period=5000 missing=''
	mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)), sep="\n")')
	for i in $(seq "$hosts"); do
		[ "${shares[i - 1]}" != - ] || continue
		given=''
		for _ in $(seq "$(awk "BEGIN { print int(${shares[i - 1]} + 0.999) }")"); do
			cpu=${cpus[n++ % ${#cpus[@]}]}
			[[ ,$given, == *,$cpu,* ]] || given+=${given:+,}$cpu
		done
		quota=$(awk "BEGIN { printf \"%d\", ${shares[i - 1]} * $period }")
		group "h$i" cpuset cpuset.mems 0 cpuset.cpus "$given" || missing="cores (cpuset)"
		[ $((quota % period)) -eq 0 ] ||
			if [ -d /sys/fs/cgroup/cpu ]; then
				group "h$i" cpu cpu.cfs_period_us $period cpu.cfs_quota_us "$quota"
			else
				group "h$i" cpu cpu.max "$quota $period"
			fi || missing="shares of a core (CPU quota)"
	done
	[ -z "$missing" ] || echo "testbed: hosts do not get their $missing: control groups cannot be made here" >&2
	[ "$n" -le "${#cpus[@]}" ] || [ "$(awk '$1 == "host" { x += $4 } END { print int(x) }' <<<"$plan")" \
		-le "${#cpus[@]}" ] ||
		echo "testbed: the hosts share the ${#cpus[@]} cores of this machine" >&2
}

uplinks=()
make_network
give_cores
echo '127.0.0.1 localhost' >>"$bed/hosts"
for i in $(seq "$hosts"); do
	touch "$bed/groups.h$i"
	inside "h$i" mount --bind "$bed/hosts" /etc/hosts || exit 2
done
cat >"$bed/agent" <<AGENT
#!/bin/bash
host=\$1
shift
while read -r group; do echo \$\$ >"\$group"; done <"$bed/groups.\$host"
exec nsenter -t "\$(cat "$bed/pid.\$host")" --uts --mount --net --wd="\$PWD" /bin/bash -c "\$*"
AGENT
chmod +x "$bed/agent"
export OMPI_MCA_plm_rsh_agent=$bed/agent OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 \
	OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
TESTBED_HOSTS=$(seq -s, -f 'h%.0f:64' "$hosts")
export TESTBED_HOSTS
"$bed/agent" h1 "$(printf '%q ' "$@")"
