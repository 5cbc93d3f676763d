#!/usr/bin/env bash
# Everything worth knowing about stepsim on a machine with GPUs, in one command: bash scripts/gpu_check.sh [FOLDER]
# (default: $OUT, else build/gpu_check)
# Builds for the GPU at hand, records the machine, tests every kernel on the GPU against the host's reference,
# calibrates, executes the example configs, compares predicted with measured and with PyTorch. FOLDER/summary.md holds
# the verdict of each part, FOLDER/results.json all figures, and FOLDER/NN-part.log what a part printed. Parts come in
# order of worth; what does not fit into BUDGET_S=520, or needs what is not here (several GPUs, mpirun, PyTorch), is
# skipped and says so. On the doubles of the CUDA libraries (LD_LIBRARY_PATH) the same flow runs without a figure;
# --quick: a short one, built already; --built: all of it with what is built, in build/release or in an archive of
# `make gpu-bundle`. Exit code: 1 when a part failed, or where there is no GPU.
set -u
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
quick=false built=false
case ${1:-} in
--quick) quick=true built=true && shift ;;
--built) built=true && shift ;;
esac
out=${1:-${OUT:-$root/build/gpu_check}}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
cd "$root" || exit 1
stepsim=$root/build/release/stepsim plugins=$root/build/release
if [ -x bin/stepsim ]; then
	stepsim=$root/bin/stepsim plugins=$root/lib/stepsim
fi
export STEPSIM=$stepsim # for scripts/compare_pytorch.py
budget_s=${BUDGET_S:-520}
started=$SECONDS number=0 failures=0
export XDG_CACHE_HOME=$out/cache
summary=$out/summary.md
rows=$out/rows
: >"$rows"
rm -f "$out"/*.log "$out"/{run,bench,pytorch}-*.json "$out"/{topo,roofline,results}.json \
	"$out"/{versions,lscpu}.txt "$out/gpus.csv"

row() { # part, verdict, seconds, what
	printf '| %s | %s | %s | %s |\n' "$@" >>"$rows"
	printf '%-44s %-8s %4s s  %s\n' "$@"
}

patience=some # none: a part that is not done in time is no failure (checkers that make a program many times slower)
left_s() { echo $((budget_s - (SECONDS - started))); }

# stepsim says why in its last line, other programs in the first that speaks of it.
reason() { # log
	{
		grep '^stepsim: ' "$1" | grep -v '^stepsim: warning' | tail -1
		grep -E 'fail|[Ee]rror|not found' "$1" | head -1
	} | head -1 | cut -c -160 | tr '|' '/'
}

# Words of exec/runner.c for what no GPU executes: such a config is no failure.
not_on_gpus='executed on cores alone|predicted, not executed|GPUs execute fp32|GPUs are not slowed'

# part NAME LIMIT_S COMMAND...: one row of the summary. A part that would pass the budget is skipped, or gets what is
# left where that is worth something.
part() {
	local name=$1 limit=$2 asked=$2 left begin=$SECONDS code log
	shift 2
	number=$((number + 1))
	log=$out/$(printf '%02d' $number)-${name//[^a-zA-Z0-9._-]/-}.log
	left=$(left_s)
	if [ "$left" -lt 10 ]; then
		row "$name" skipped 0 "the $budget_s s are used up"
		return 1
	fi
	[ "$limit" -le "$left" ] || limit=$left
	timeout -k 5 "$limit" "$@" >"$log" 2>&1 </dev/null
	code=$?
	if [ $code -eq 0 ]; then
		row "$name" passed $((SECONDS - begin)) ''
	elif [ $code -eq 1 ] && tail -n 1 "$log" | grep -qE "^stepsim: .*($not_on_gpus)"; then
		row "$name" skipped $((SECONDS - begin)) "$(reason "$log")"
	elif [ $code -eq 124 ] && { [ "$limit" -lt "$asked" ] || [ "$patience" = none ]; }; then
		row "$name" skipped $((SECONDS - begin)) "not done after $limit s"
	elif [ $code -eq 124 ] || [ $code -eq 137 ]; then
		failures=$((failures + 1))
		row "$name" failed $((SECONDS - begin)) "not done after $limit s, or killed: $(basename "$log")"
	else
		failures=$((failures + 1))
		row "$name" failed $((SECONDS - begin)) \
			"exit code $code: $(reason "$log")"
	fi
	return $code
}

skip() { row "$1" skipped 0 "$2"; }

# Extra parts: a failure is told, and the exit code is left alone.
extra() {
	local before=$failures
	part "$@"
	failures=$before
}

finish() {
	{
		echo '# stepsim on GPUs'
		echo
		echo "$(date -u '+%Y-%m-%d %H:%M UTC'), $("$stepsim" --version 2>/dev/null | head -n 1), $what," \
			"$((SECONDS - started)) s"
		$doubles &&
			printf '\n**%s %s**\n' 'On doubles of the CUDA libraries: this tried the script, not a GPU.' \
				'There are no figures.'
		printf '\n| part | verdict | seconds | |\n| --- | --- | ---: | --- |\n'
		cat "$rows"
		if command -v python3 >/dev/null; then
			python3 scripts/gpu_results.py "$out" "$rows" "$what" "$doubles" $((SECONDS - started))
		else
			printf '\n%s\n' 'There is no python3 here: no results.json, no tables.'
		fi
	} >"$summary"
	rm -f "$rows"
	echo "$summary"
	exit $((failures > 0))
}

# ---- is there a GPU? ----

doubles=false what=''
case ${LD_LIBRARY_PATH:-} in */doubles*) doubles=true ;; esac
gpus=0
if $doubles; then
	gpus=${STEPSIM_DOUBLE_GPUS:-2}
	export STEPSIM_DOUBLE_GPUS=$gpus
	what="$gpus doubled GPUs"
elif command -v nvidia-smi >/dev/null && gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ') && [ "$gpus" -gt 0 ]; then
	what="$gpus x $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)"
else
	echo 'gpu_check: there is no GPU here (nvidia-smi finds none);' \
		'LD_LIBRARY_PATH=build/release/doubles tries the script itself' >&2
	exit 1
fi

# ---- build, facts ----

export stepsim doubles out
export -f cores

build() {
	local archs
	timeout 120 bash scripts/setup.sh gpu || echo 'scripts/setup.sh has not got all; going on with what is here'
	bash scripts/find_cuda.sh
	archs=$(bash scripts/find_cuda.sh archs)
	archs=${CUDA_ARCHS:-$archs}
	echo "kernels for: ${archs:-all architectures}"
	make -s -j"$(cores)" CUDA=1 ${archs:+"CUDA_ARCHS=$archs"} all gpu-tests
}

facts() {
	local gpu=name,driver_version,compute_cap,memory.total,clocks.max.sm,clocks.max.mem,power.limit,vbios_version
	date -u
	"$stepsim" --version >"$out/versions.txt" || return 1
	cat "$out/versions.txt"
	uname -a
	lscpu | tee "$out/lscpu.txt"
	free -m
	! $doubles || return 0
	nvidia-smi --query-gpu=$gpu,pcie.link.gen.max,pcie.link.width.max,mig.mode.current --format=csv >"$out/gpus.csv"
	nvidia-smi
	nvidia-smi topo -m
	nvidia-smi -q
}

export -f build facts
if ! $built; then
	part 'build with CUDA' 330 bash -c build || finish
fi
[ -x "$stepsim" ] && [ -e "$plugins/libstepsim_cuda.so" ] || {
	skip 'everything else' 'there is no build with CUDA'
	failures=1
	finish
}
part facts 40 bash -c facts
part topo 30 "$stepsim" topo -v --json "$out/topo.json"

# ---- kernels against the host's reference ----

# The tests link CUDA's libraries, which stepsim itself also finds among Python's packages.
if LD_TRACE_LOADED_OBJECTS=1 "$plugins/tests/gpu/test_cuda_memory" 2>&1 | grep -q 'lib\(cu\|nccl\).* => not found'; then
	wheels=$(python3 -c 'import glob, sys
for folder in sys.path: print(*glob.glob(folder + "/nvidia/*/lib"), sep="\n")' 2>/dev/null | grep . | paste -sd :)
	export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$wheels
fi
kernels=(memory elementwise act norm embed loss softmax optimizer attention context moe gemm micro device step)
$quick && kernels=(memory loss)
kernel_s=60
$doubles && kernel_s=200 # cores compute a step many times
for kernel in "${kernels[@]}"; do
	part "kernels: $kernel" $kernel_s "$plugins/tests/gpu/test_cuda_$kernel"
done

# ---- calibration, then the example configs ----

# ranked PART-KIND NAME LIMIT_S RANKS COMMAND...: a part of that many ranks; one starts without mpirun as well.
ranked() {
	local kind=$1 name=$2 limit=$3 ranks=$4 launch=()
	shift 4
	if command -v mpirun >/dev/null; then
		launch=(mpirun "${mpirun_flags[@]}" -np "$ranks")
	elif [ "$ranks" -gt 1 ]; then
		skip "$name" 'no mpirun here'
		return
	fi
	"$kind" "$name" "$limit" ${launch[@]+"${launch[@]}"} "$@"
}

run_example() { # ranks, config, label, limit, then options; skipped where the config does not take so many ranks
	local ranks=$1 config=$2 label=$3 limit=$4 name refusal
	shift 4
	name=$(basename "$config" .yaml)-np$ranks${label:+-$label}
	refusal=$("$stepsim" predict "$config" --set cluster.system=dgx-h100 --set cluster.gpus_per_node="$ranks" \
		--set cluster.nodes=1 -q "$@" 2>&1 >/dev/null) || {
		skip "run: $name" "$(echo "$refusal" | tail -1 | cut -c -140)"
		return
	}
	ranked part "run: $name" "$limit" "$ranks" "$stepsim" "$config" --set run.backend=cuda "$@" \
		--json "$out/run-$name.json"
}

if $quick; then
	ranked part 'ddp-tiny, bf16' 60 1 "$stepsim" configs/ddp-tiny.yaml \
		--set run.backend=cuda --set train.dtype=bf16 --set run.steps=1 --set run.warmup=0 \
		--json "$out/run-ddp-tiny-np1-bf16.json"
	run_example 1 configs/t5-tiny.yaml '' 60
	export STEPSIM_DOUBLE_GPUS=1
	ranked part 'ddp-tiny, 2 ranks share a GPU' 60 2 "$stepsim" configs/ddp-tiny.yaml \
		--set run.backend=cuda --set run.share_gpu=true --set run.steps=1 --set run.warmup=0 \
		--json "$out/run-ddp-tiny-np2-share.json"
	finish
fi

part 'calibrate, 1 GPU' 110 "$stepsim" calibrate --backend cuda

# Those that name no other system: the others are predicted alone.
mapfile -t examples < <(grep -L '^  system:' configs/*.yaml)
mapfile -t tiny < <(grep -L '^  system:' configs/*-tiny.yaml)
graphs=(configs/ddp-tiny.yaml configs/gpt2-124m-gpu.yaml)
$doubles && examples=("${tiny[@]}") graphs=(configs/ddp-tiny.yaml) # what a CPU can compute

for config in "${examples[@]}"; do
	run_example 1 "$config" bf16 45 --set train.dtype=bf16
done

# ---- PyTorch beside both ----

if $doubles || ! python3 -c 'import torch' 2>/dev/null; then
	skip 'PyTorch beside stepsim' 'no PyTorch here'
else
	for config in gpt2-124m llama-1b; do
		extra "PyTorch beside stepsim: $config" 90 python3 scripts/compare_pytorch.py \
			"configs/$config-gpu.yaml" --json "$out/pytorch-$config.json"
	done
fi

# ---- several GPUs, the machine's ceilings ----

if [ "$gpus" -lt 2 ]; then
	skip 'several GPUs, collectives' 'one GPU'
else
	ranked extra "calibrate, $gpus GPUs" 110 "$gpus" "$stepsim" calibrate --backend cuda
	most=256M
	$doubles && most=64K
	for collective in all_reduce all_gather reduce_scatter alltoall; do
		ranked part "bench $collective" 60 "$gpus" "$stepsim" bench $collective --backend cuda -b 8 -e $most \
			-f 4 --json "$out/bench-$collective.json"
	done
	for config in "${examples[@]}"; do
		run_example "$gpus" "$config" bf16 60 --set train.dtype=bf16
	done
fi
part roofline 60 "$stepsim" roofline --backend cuda --json "$out/roofline.json" --plot "$out/roofline.svg"

# ---- graphs, ranks that share a GPU ----

for config in "${graphs[@]}"; do
	run_example 1 "$config" bf16-graph 45 --set train.dtype=bf16 --set train.cuda_graph=true
done
for ranks in 2 4; do
	for config in "${tiny[@]}"; do
		run_example $ranks "$config" share 40 --set run.share_gpu=true --set run.steps=1 --set run.warmup=0
	done
	run_example $ranks configs/ddp-tiny.yaml share-pipeline 40 --set run.share_gpu=true --set run.steps=1 \
		--set run.warmup=0 --set parallel.pipeline=2
done

# ---- compute-sanitizer ----

if $doubles || ! command -v compute-sanitizer >/dev/null; then
	skip compute-sanitizer 'not here'
else
	patience=none
	for kernel in elementwise norm act softmax loss memory moe; do
		# Blocks that end where the memory ends: reads beyond it are seen too.
		part "memcheck: $kernel" 60 env STEPSIM_RIG_BARE=1 compute-sanitizer --error-exitcode 9 --padding 64 \
			"$plugins/tests/gpu/test_cuda_$kernel"
	done
	for kernel in attention norm softmax; do
		part "racecheck: $kernel" 60 compute-sanitizer --tool racecheck --error-exitcode 9 \
			"$plugins/tests/gpu/test_cuda_$kernel"
	done
fi
finish
