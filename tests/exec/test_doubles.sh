#!/usr/bin/env bash
# The main job on GPUs, with doubles of the CUDA libraries in their place (tests/doubles): every strategy at 1, 2, 4 and
# 8 ranks, verified; formats and graphs; faults end in one line and in time.
# Skipped where the CUDA part is not built. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"

needs_cuda

shown() {
	head -20 "$log"
}

# RANKS CONFIG [--set ...]: a job on the doubles; its exit code. FAULT and SEED are the doubles'.
job() {
	local ranks=$1 config=configs/$2.yaml
	shift 2
	STEPSIM_DOUBLE_FAULT=${FAULT:-} STEPSIM_DOUBLE_SEED=${SEED:-1} \
		LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} \
		timeout 120 mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" "$config" --set run.backend=cuda \
		--set run.steps=1 --set run.warmup=0 --set run.timeout_s=60 "$@" >"$log" 2>&1 </dev/null
}

verified() { # name, then as job
	local name=$1 code wrong=''
	shift
	job "$@"
	code=$?
	[ "$code" -eq 0 ] || wrong="exit code $code"
	grep -q "^Executed on doubles of the CUDA libraries: every .* verified; nothing of it was measured" "$log" ||
		wrong=${wrong:-no verdict}
	grep -q 'measured  ' "$log" && wrong=${wrong:-a figure of doubles is reported}
	verdict "$name" "$wrong"
}

for ranks in 1 2 4 8; do
	for config in ddp-tiny zero1-tiny zero2-tiny fsdp-tiny tp-tiny tp-sp-tiny tp-dp-tiny cp-tiny; do
		case $ranks-$config in 1-tp* | 1-cp* | 2-tp-dp*) continue ;; esac
		SEED=$ranks verified "$config at $ranks" "$ranks" "$config"
	done
done
job 2 ddp-tiny -v --set run.steps=3
grep -q '^stepsim: 3 steps timed as wholes, 3 more with an event around each op$' "$log"
verdict 'steps timed without events' "$([ $? -eq 0 ] || echo 'the line is missing')"
verified 'bf16, fp32 weights' 2 ddp-tiny --set train.dtype=bf16
FAULT=no_engine verified 'bf16, attention by our own kernel' 2 ddp-tiny --set train.dtype=bf16 -v
grep -q 'takes our own kernel: cuDNN [0-9]* has no engine for it' "$log" ||
	verdict 'the fall-back is told' 'no line'
verified 'bf16 throughout, fp32 master weights' 2 fsdp-tiny --set train.dtype=bf16 --set train.param_dtype=bf16 \
	--set train.grad_dtype=bf16 --set train.reduce_dtype=bf16 --set train.master_weights=true
verified 'fp16, naive attention, unfused' 2 zero1-tiny --set train.dtype=fp16 --set train.attention=naive \
	--set train.fused=false
verified 'tf32 in a graph' 2 ddp-tiny --set train.dtype=tf32 --set train.cuda_graph=true
verified 'a sliding window, bf16' 2 ddp-tiny --set model.sliding_window=20 --set train.dtype=bf16
verified 'moments in 8 bits, bf16' 2 ddp-tiny --set train.optimizer_bits=8 --set train.dtype=bf16
verified 'activations offloaded, bf16, in a graph' 2 ddp-tiny --set train.offload=activations --set model.layers=4 \
	--set train.dtype=bf16 --set train.cuda_graph=true

verified 'a pipeline' 2 ddp-tiny --set parallel.pipeline=2
verified 'a pipeline, bf16, interleaved' 2 ddp-tiny --set parallel.pipeline=2 --set parallel.schedule=interleaved \
	--set parallel.virtual_stages=2 --set model.layers=4 --set train.dtype=bf16
SEED=4 verified 'a pipeline, gpipe, untied' 4 ddp-tiny --set parallel.pipeline=4 --set parallel.schedule=gpipe \
	--set model.layers=4 --set model.tied_embeddings=false
SEED=8 verified 'a pipeline, zero bubble, with tensor and data' 8 zero1-tiny --set parallel.pipeline=2 \
	--set parallel.tensor=2 --set parallel.schedule=zero_bubble
SEED=3 verified 'a pipeline as a V, bf16' 4 ddp-tiny --set parallel.pipeline=4 --set parallel.schedule=zbv \
	--set model.layers=8 --set train.dtype=bf16
SEED=6 verified 'a pipeline of fsdp' 4 fsdp-tiny --set parallel.pipeline=2
SEED=3 verified 'hsdp, whose sums over replicas have a stream of their own' 4 fsdp-tiny --set parallel.strategy=hsdp \
	--set parallel.shard=2
SEED=7 verified 'a pipeline of zero2, interleaved, bf16' 4 zero2-tiny --set parallel.pipeline=2 \
	--set parallel.schedule=interleaved --set parallel.virtual_stages=2 --set model.layers=4 --set train.dtype=bf16
SEED=9 verified 'context gathered, with tensor and sequence, bf16, alibi' 8 cp-tiny \
	--set parallel.context_kind=all_gather --set parallel.tensor=2 --set parallel.sequence_parallel=true \
	--set train.dtype=bf16 --set model.position=alibi
SEED=7 verified 'context with stored scores, bf16' 4 cp-tiny --set parallel.context_kind=all_gather \
	--set train.attention=naive --set train.dtype=bf16
SEED=5 verified 'context in a graph' 4 cp-tiny --set parallel.context=4 --set train.cuda_graph=true

for ranks in 2 4 8; do
	SEED=$ranks verified "ep-tiny at $ranks" "$ranks" ep-tiny --set parallel.expert="$ranks"
done
SEED=8 verified 'experts, bf16, with tensor, shared, zero1' 8 ep-tiny --set parallel.expert=4 --set parallel.tensor=2 \
	--set parallel.sequence_parallel=true --set model.shared_experts=1 --set parallel.strategy=zero1 \
	--set train.dtype=bf16
verified 'experts in a graph' 2 ep-tiny --set train.cuda_graph=true --set model.capacity_factor=0
wrong=''
grep -q 'capacity_factor 0 stands for training without dropping; executed' "$log" || wrong='no warning'
verdict 'what is dropped is said' "$wrong"
verified 'experts in a pipeline' 4 ep-tiny --set parallel.pipeline=2

# The double estimates 10 us and what a ring sends at 100 GB/s.
job 2 tp-tiny -v
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
grep -Eq '^all_reduce, tp, fp32 +2 .* 1[0-9]\.[0-9] us +-$' "$log" || wrong=${wrong:-"no estimate of NCCL's"}
verdict "NCCL's estimates" "$wrong"

# name, exit code, pattern, then as job: one line that says what happened, and no hanging
ends() {
	local name=$1 want=$2 pattern=$3 code wrong=''
	shift 3
	job "$@"
	code=$?
	[ "$code" -eq "$want" ] || wrong="exit code $code, not $want"
	grep -Eq "^stepsim: .*$pattern" "$log" || wrong=${wrong:-"no line with \"$pattern\""}
	verdict "$name" "$wrong"
}
FAULT=nogpu ends 'no GPU' 1 'no CUDA device' 2 ddp-tiny
STEPSIM_DOUBLE_MEM_B=5000000 ends 'no memory for the plan' 1 'not enough memory on GPU 0 .* are missing' 2 ddp-tiny
STEPSIM_DOUBLE_MEM_B=12000000 ends 'no memory for the workspace' 1 'cudaMalloc.*out of memory' 2 ddp-tiny
FAULT=rank:1:heuristic:2 ends 'no algorithm' 1 'gemm .*cuBLASLt has no algorithm for this product' 2 ddp-tiny
FAULT=rank:1:kernel:40 ends 'a kernel fails' 1 'illegal memory access' 2 ddp-tiny
# The fourth call of the verification's step: its last element is wrong, which the GPU itself finds.
for config in ddp-tiny fsdp-tiny ep-tiny; do
	FAULT=rank:1:corrupt:4 ends "a wrong result, $config" 1 \
		'verification failed: [a-z_]+ .* rank 1 element [0-9]+: got .*, expected [0-9]' 2 $config
done
FAULT=rank:0:nccl:3 ends 'an asynchronous NCCL error' 1 'nccl' 2 ddp-tiny
FAULT=rank:1:hang:3 ends 'a collective that never ends' 1 'no progress for 5 s' 2 ddp-tiny --set run.timeout_s=5
FAULT=rank:1:die:3 ends 'a rank dies' 137 'rank 1 .* died' 2 ddp-tiny
FAULT=rank:1:die:5 ends 'a rank of a pipeline dies' 137 'rank 1 .* died' 2 ddp-tiny --set parallel.pipeline=2
FAULT=rank:1:hang:5 ends 'a message that never comes' 1 'no progress for 3 s: .*(send|recv).* of stage [01]' 2 \
	ddp-tiny --set parallel.pipeline=2 --set run.timeout_s=3
ends 'a pipeline as a graph' 1 'train.cuda_graph: pipeline stages' 2 ddp-tiny --set parallel.pipeline=2 \
	--set train.cuda_graph=true
FAULT=busy ends 'a GPU in use' 1 'GPU|device' 2 ddp-tiny
STEPSIM_DOUBLE_GPUS=1 ends 'two ranks, one GPU' 1 'run.share_gpu' 2 ddp-tiny
STEPSIM_DOUBLE_GPUS=1 verified 'two ranks share a GPU' 2 ddp-tiny --set run.share_gpu=true

# Calibration runs as on real GPUs, up to what the doubles do within its time; none of it is kept.
calibrates() {
	local ranks=$1 code wrong=''
	LD_LIBRARY_PATH=$doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} XDG_CACHE_HOME=$scratch/cache$ranks timeout 300 \
		mpirun "${mpirun_flags[@]}" -np "$ranks" "$stepsim" calibrate --backend cuda -v \
		-o "$scratch/profile$ranks.yaml" \
		>"$log" 2>&1 </dev/null
	code=$?
	[ "$code" -eq 0 ] || wrong="exit code $code"
	grep -q '^Doubles of the CUDA libraries: everything was run, nothing was measured, no profile is written$' \
		"$log" || wrong=${wrong:-no verdict}
	grep -q 'GPU section 4: [1-9]' "$log" || wrong=${wrong:-a section is missing}
	[ -z "$(find "$scratch" -name 'profile*')" ] || wrong=${wrong:-a profile is written}
	verdict "calibration at $ranks" "$wrong"
}
calibrates 1
calibrates 2
# Plans that take long to build do not keep attention from being timed: 40 cases, of two plans each.
STEPSIM_DOUBLE_FAULT=plan_ms:60,attention_idle calibrates 1
verdict 'every attention is timed, however long plans take' \
	"$(grep -q 'GPU section 3: 40 of 40 cases' "$log" || grep 'GPU section 3' "$log")"
STEPSIM_DOUBLE_FAULT=launch:7100 calibrates 1
[ "$(grep -c '^stepsim: warning: calibration leaves out one op: timing .* was not launched' "$log")" -eq 1 ] ||
	verdict 'a case that fails is left out, and told' 'no line'

# Without doubles and without a driver the libraries find no device.
if [ ! -e /dev/nvidiactl ]; then
	timeout 60 "$stepsim" configs/ddp-tiny.yaml --set run.backend=cuda >"$log" 2>&1 </dev/null
	code=$?
	wrong=''
	[ "$code" -eq 1 ] || wrong="exit code $code"
	[ "$(grep -c '^stepsim: no CUDA device on ' "$log")" -eq 1 ] || wrong=${wrong:-no line}
	verdict 'the real libraries without a GPU' "$wrong"
fi
LD_LIBRARY_PATH=$doubles "$stepsim" configs/ddp-tiny.yaml --set run.backend=cuda --set run.steps=1 \
	--json "$scratch/out.json" >"$log" 2>&1
verdict 'JSON of doubles' "$(python3 - "$scratch/out.json" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
good = j["comparison"] is None and j["measurement"] == {"double": True, "steps": 1, "verified": True}
print('' if good else j["measurement"])
PY
)"
STEPSIM_DOUBLE_TELL=1 job 2 fsdp-tiny --set collectives.algorithm=pat --set collectives.protocol=simple
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
[ "$(grep -c 'NCCL double: rank [01]: NCCL_ALGO=allgather:pat;reducescatter:pat' "$log")" -eq 2 ] ||
	wrong=${wrong:-not every rank has the algorithm}
[ "$(grep -c 'NCCL double: rank [01]: NCCL_PROTO=Simple' "$log")" -eq 2 ] ||
	wrong=${wrong:-not every rank has the protocol}
verdict 'an algorithm and a protocol are forced upon NCCL' "$wrong"
STEPSIM_DOUBLE_TELL=1 job 2 ddp-tiny --set parallel.pipeline=2
wrong=''
grep -q 'NCCL double: split: blocking, at most 4 blocks' "$log" || wrong="a pair's messages may hold more than 4 blocks"
grep -q 'NCCL double: split: blocking, at most 32 blocks' "$log" || wrong=${wrong:-no other communicator}
grep -q 'NCCL double: split: not blocking' "$log" && wrong=${wrong:-a call of a lane goes through a thread}
verdict 'communicators of lanes' "$wrong"
STEPSIM_DOUBLE_TELL=1 NCCL_PROTO=LL job 2 ddp-tiny --set collectives.protocol=simple
wrong=''
[ "$(grep -c 'NCCL double: rank [01]: NCCL_PROTO=LL$' "$log")" -eq 2 ] || wrong="the user's own was changed"
grep -q 'NCCL_PROTO=LL stands' "$log" || wrong=${wrong:-not said}
grep -q 'NCCL_ALGO' "$log" && wrong=${wrong:-an algorithm that nobody asked for}
verdict "the user's own NCCL_PROTO stands" "$wrong"
ldd build/release/libstepsim_cuda.so >"$log" 2>&1
wrong=''
for library in libcudart libcublasLt libcudnn libnccl; do
	grep -q "$library" "$log" || wrong="the object does not load $library"
	ldd "$stepsim" | grep -q "$library" && wrong="stepsim itself loads $library"
done
verdict 'what is linked where' "$wrong"

verdicts
