#!/usr/bin/env bash
# A test-bed of several hosts on one machine, for root: scripts/testbed.sh HOSTS COMMAND [ARGUMENT ...]
# Each host h1, h2, ... has a name, an address, /tmp and /dev/shm of its own (namespaces). The command runs on h1 with
# TESTBED_HOSTS="h1:64,h2:64,..." and Open MPI set up to reach the others:
#   scripts/testbed.sh 2 mpirun --host h1:2,h2:2 --bind-to none build/release/stepsim configs/ddp-tiny.yaml
# Exit code: the command's; 2 where namespaces cannot be made. Nothing is left when it ends.
set -u
if [ $# -lt 2 ] || ! [[ $1 =~ ^[1-9]$ ]]; then
	echo 'usage: scripts/testbed.sh HOSTS(1-9) COMMAND [ARGUMENT ...]' >&2
	exit 2
fi
hosts=$1
shift
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
if [ "$(id -u)" -ne 0 ] || ! command -v ip >/dev/null || ! command -v nsenter >/dev/null; then
	echo 'testbed: needs root, ip (iproute2) and nsenter (util-linux)' >&2
	exit 2
fi

bed=$(mktemp -d /var/tmp/testbed.XXXXXX)
holders=() names=''
cleanup() {
	local pid
	for pid in "${holders[@]}"; do kill -KILL "$pid" 2>/dev/null; done
	rm -rf "$bed"
}
trap cleanup EXIT
trap 'exit 143' TERM INT HUP

# A process that holds a host's namespaces; its network ends with it.
for i in $(seq "$hosts"); do
	unshare --uts --mount --net bash -c "
		hostname h$i && mount -t tmpfs tmpfs /tmp && mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
		ip link set lo up && touch '$bed/ready$i' && exec sleep infinity" &
	disown # its end is no news
	holders+=($!)
	echo $! >"$bed/h$i"
	names+=${names:+,}h$i:64
done
for i in $(seq "$hosts"); do
	for _ in $(seq 100); do
		[ -e "$bed/ready$i" ] && break
		sleep 0.05
	done
	[ -e "$bed/ready$i" ] || { echo "testbed: host h$i cannot be made" >&2; exit 2; }
done

# The switch is a bridge in the first host's network, so that the machine's own network is left alone.
inside() {
	nsenter -t "${holders[$1 - 1]}" --uts --mount --net "${@:2}"
}
{
	inside 1 ip link add bed type bridge && inside 1 ip link set bed up &&
		inside 1 ip address add 10.77.0.1/24 dev bed
	for i in $(seq 2 "$hosts"); do
		inside 1 ip link add "port$i" type veth peer name eth0 netns "${holders[i - 1]}" &&
			inside 1 ip link set "port$i" master bed up &&
			inside "$i" ip address add "10.77.0.$i/24" dev eth0 && inside "$i" ip link set eth0 up || exit 2
	done
} || { echo 'testbed: the hosts cannot be joined' >&2; exit 2; }

for i in $(seq "$hosts"); do echo "10.77.0.$i h$i"; done >"$bed/hosts"
echo '127.0.0.1 localhost' >>"$bed/hosts"
for i in $(seq "$hosts"); do inside "$i" mount --bind "$bed/hosts" /etc/hosts || exit 2; done
cat >"$bed/agent" <<AGENT
#!/bin/bash
host=\$1
shift
exec nsenter -t "\$(cat "$bed/\$host")" --uts --mount --net --wd="\$PWD" /bin/bash -c "\$*"
AGENT
chmod +x "$bed/agent"
export OMPI_MCA_plm_rsh_agent=$bed/agent OMPI_MCA_btl=self,vader,tcp OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 \
	OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
export TESTBED_HOSTS=$names
inside 1 --wd="$PWD" "$@"
