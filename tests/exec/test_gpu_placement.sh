#!/usr/bin/env bash
# Where ranks with GPUs sit, what their GPUs' clocks are said to have done, and which buffers NCCL was told of: on
# doubles of the CUDA libraries, of NVML and of nvidia-smi.
# Skipped where the CUDA part is not built. The last line counts.
# shellcheck disable=SC2016 # wrappers' lines are for the shells that run them
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
unset NCCL_TOPO_FILE CUDA_VISIBLE_DEVICES NCCL_LOCAL_REGISTER

needs_cuda

shown() {
	grep '^stepsim: \|double:' "$log" | head -20
}

# RANKS [WRAPPER]: a job on the doubles, told in detail; its exit code. SMI=1: with the double of nvidia-smi, whose four
# GPUs are those of the others; LIMIT: the launcher's CPU.
job() {
	local ranks=$1 wrapper=("${@:2}")
	PATH=${SMI:+$PWD/tests/doubles:}$PATH LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
		STEPSIM_DOUBLE_TELL=1 \
		${LIMIT:+taskset -c "$LIMIT"} timeout 120 mpirun "${mpirun_flags[@]}" -np "$ranks" \
		${wrapper[@]+"${wrapper[@]}"} "$stepsim" configs/ddp-tiny.yaml -v --set run.backend=cuda \
		--set run.steps="${STEPS:-1}" --set run.warmup=0 \
		--set run.timeout_s=20 ${SET:+--set "$SET"} >"$log" 2>&1 </dev/null
}

# Parts of lines, as extended regular expressions.
unbound='^stepsim: warning: ranks on .* are not bound to the cores of their GPUs: the topology of host .*'
clocks='^stepsim: clocks as the doubles have them:'
how=run.share_gpu
boost='its SMs ran at [0-9]+ % of boost'
h100='\(NVIDIA H100 80GB HBM3, 0000:1b:00.0\)'
share='[0-9]+ % of [0-9]+ samples'

# CODE ACTUAL PATTERN...: what is missing. A pattern that begins with ! must not be there.
wants() {
	local code=$1 actual=$2 pattern
	shift 2
	[ "$actual" -eq "$code" ] || { echo "exit code $actual"; return; }
	for pattern in "$@"; do
		case $pattern in
		!*) grep -Eq "${pattern#!}" "$log" && { echo "a line with \"${pattern#!}\""; return; } ;;
		*) grep -Eq "$pattern" "$log" || { echo "no line with \"$pattern\""; return; } ;;
		esac
	done
}

wrapper() { # name, then its lines: a program that starts another one differently by rank
	printf '%s\n' '#!/usr/bin/env bash' "rank=\$OMPI_COMM_WORLD_LOCAL_RANK" "${@:2}" 'exec "$@"' >"$scratch/$1"
	chmod +x "$scratch/$1"
}
bare='^stepsim: rank 0: host [^,]*, cores [^G]*, GPU at 000'

# ---- which GPU ----

job 2
verdict 'the r-th GPU for rank r' \
	"$(wants 0 $? '^stepsim: rank 0: host [^,]*, GPU0 \(.*0000:1b:00.0\), cores ' \
	'^stepsim: rank 1: host [^,]*, GPU1 \(.*0000:3d:00.0\), cores ' '!not bound')"
CUDA_VISIBLE_DEVICES=5,2 job 2
verdict 'those that are visible, by address' \
	"$(wants 0 $? '^stepsim: rank 0: .*, GPU5 \(.*0000:cd:00.0\)' '^stepsim: rank 1: .*, GPU2 \(.*0000:9b:00.0\)')"
wrapper one 'export CUDA_VISIBLE_DEVICES=$((3 - rank))'
job 4 "$scratch/one"
verdict 'a wrapper shows each rank one device' \
	"$(wants 0 $? '^stepsim: rank 0: .*, GPU3 \(.*0000:bd:00.0\)' '^stepsim: rank 3: .*, GPU0 \(.*0000:1b:00.0\)' \
	'!several ranks share a GPU')"
CUDA_VISIBLE_DEVICES=1 job 2
verdict 'one device for two ranks' \
	"$(wants 1 $? \
	'^stepsim: 2 ranks on [^,]*, which has 1 GPU for them \(ranks 0 and 1 both have 0000:3d:00.0\): .*'"$how")"
wrapper same 'export CUDA_VISIBLE_DEVICES=$((rank == 3 ? 0 : rank))'
job 4 "$scratch/same"
verdict 'a wrapper shows two ranks the same device' \
	"$(wants 1 $? \
	'^stepsim: 4 ranks on [^,]*, which has 3 GPUs for them \(ranks 0 and 3 both have 0000:1b:00.0\): .*'"$how")"
SET=run.share_gpu=true job 4 "$scratch/same"
verdict 'the same, shared' "$(wants 0 $? '^warning: several ranks share a GPU' '!NCCL double: [1-9]' '!clocks')"

# ---- which cores ----

STEPSIM_DOUBLE_GPUS=12 CUDA_VISIBLE_DEVICES=11 job 1
verdict 'a GPU that the topology lacks' \
	"$(wants 0 $? "$unbound has 8 GPUs, none at 0001:bd:00.0, which CUDA gives to rank 0\$" "$bare")"
read -r first second <<<"$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')"
if [ -n "$second" ]; then
	SMI=1 STEPSIM_DOUBLE_GPUS=4 SMI_DOUBLE_CORES="$second $first $first $first" job 2
	verdict 'the cores that the driver gives each GPU, and the NIC beside it' \
		"$(wants 0 $? \
			"^stepsim: rank 0: .*, GPU0 $h100, cores $second, NIC[0-9]+ \\(mlx5_0\\)$" \
			"^stepsim: rank 1: .*, GPU1 .*, cores $first, NIC")"
	wrapper bound "exec taskset -c \$((rank ? $second : $first)) \"\$@\""
	SMI=1 STEPSIM_DOUBLE_GPUS=4 SMI_DOUBLE_CORES="$second $first $first $first" job 2 "$scratch/bound"
	verdict 'ranks that their user bound stay there' \
		"$(wants 0 $? "^stepsim: rank 0: .*, GPU0 .*, cores $first, NIC" \
		"^stepsim: rank 1: .*, GPU1 .*, cores $second, NIC")"
	LIMIT=$second SMI=1 STEPSIM_DOUBLE_GPUS=4 SMI_DOUBLE_CORES="$first $second $first $first" job 2
	verdict 'a limit on the launcher holds' \
		"$(wants 0 $? "^stepsim: rank 0: .*, GPU0 .*, cores $second \\(shared\\), NIC" \
		"^stepsim: rank 1: .*, GPU1 .*, cores $second \\(shared\\), NIC")"
else
	skipped=$((skipped + 1))
fi
SMI=1 SMI_DOUBLE=fail STEPSIM_DOUBLE_GPUS=4 NVML_DOUBLE=nodriver job 2
verdict 'a driver that says nothing' \
	"$(wants 0 $? "$unbound has 0 GPUs" "$bare" '^stepsim: NVML does not answer')"

# ---- clocks ----

export STEPS=4
job 2
verdict 'nothing holds the clocks down' \
	"$(wants 0 $? '^stepsim: clocks as the doubles have them: [0-9]+ samples of 2 GPUs$' '!was slowed' \
	'!was shared')"
STEPSIM_DOUBLE_CLOCKS=1:0x4:2 job 2
verdict 'the power cap, in every second sample' \
	"$(wants 0 $? \
	"$clocks rank 1's GPU was slowed in $share: power cap; $boost on average \\(1 of 2 GPUs\\)$" \
	'!^warning: .*slowed')"
STEPSIM_DOUBLE_CLOCKS=0:0x48:1 job 2
verdict 'a slowdown is told with its cause' \
	"$(wants 0 $? \
	"rank 0's GPU was slowed in 100 % of [0-9]+ samples: thermal slowdown by the hardware; ${boost/\[0-9]+/50}" \
		'!hardware slowdown')"
STEPSIM_DOUBLE_CLOCKS=0:0x2:1 job 2
verdict 'clocks that somebody set are no slowdown' "$(wants 0 $? 'samples of 2 GPUs$' '!was slowed')"
STEPSIM_DOUBLE_CLOCKS=0:0x1:1 job 2
verdict 'an idle GPU says nothing' "$(wants 0 $? 'samples of 1 GPU$' '!was slowed')"
STEPSIM_DOUBLE_INTRUDER=1:1 job 2
verdict 'another process appears' \
	"$(wants 0 $? "rank 1's GPU was shared with another process in 100 % of [0-9]+ samples" '!was slowed')"
STEPSIM_DOUBLE_INTRUDER=1:0 job 2
verdict 'another process was there before' "$(wants 1 $? '^stepsim: GPU 1 of .* is used by another process')"
export -n STEPS
unset STEPS

# ---- registered buffers ----

job 2
verdict 'the arena is registered, and deregistered before it goes' \
	"$(wants 0 $? '^NCCL double: 1 buffers registered, 1 deregistered$' '!double: .*Deregister')"
SET=train.cuda_graph=true job 2
verdict 'the same with a graph' "$(wants 0 $? '^NCCL double: 1 buffers registered, 1 deregistered$')"
NCCL_LOCAL_REGISTER=0 job 2
verdict 'not against the user' "$(wants 0 $? '^NCCL double: 0 buffers registered' '!double: [1-9]')"
STEPSIM_DOUBLE_FAULT=rank:1:register job 2
verdict 'all or none' \
	"$(wants 0 $? '^NCCL double: 1 buffers registered, 1 deregistered$' '^NCCL double: 0 buffers registered')"

verdicts
