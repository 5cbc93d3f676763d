#!/usr/bin/env bash
# Everything worth knowing about stepsim on a machine with GPUs, in one command: bash scripts/gpu_check.sh [FOLDER]
# (default: $OUT, else build/gpu_check)
# Builds, records the machine, tests every kernel on the GPU against the host's reference, calibrates, executes the
# example configs, compares predicted with measured. FOLDER/summary.md holds the verdict of each part, and
# FOLDER/NN-part.log what it printed. Parts come in order of worth; what does not fit into BUDGET_S=520 is skipped and
# says so. On the doubles of the CUDA libraries (LD_LIBRARY_PATH) the same flow runs without a figure;
# --quick: a short one, built already; --built: all of it with what is in build/ (a machine without compilers, or
# without a network to get the libraries from). Exit code: 1 when a part failed, or where there is no GPU.
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
stepsim=$root/build/release/stepsim
budget_s=${BUDGET_S:-520}
started=$SECONDS number=0 failures=0
export XDG_CACHE_HOME=$out/cache
summary=$out/summary.md
rows=$out/rows
: >"$rows"
rm -f "$out"/*.log "$out"/run-*.json

row() { # part, verdict, seconds, what
	printf '| %s | %s | %s | %s |\n' "$@" >>"$rows"
	printf '%-44s %-8s %4s s  %s\n' "$@"
}

patience=some # none: a part that is not done in time is no failure (checkers that make a program many times slower)
left_s() { echo $((budget_s - (SECONDS - started))); }

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
	elif [ $code -eq 124 ] && { [ "$limit" -lt "$asked" ] || [ "$patience" = none ]; }; then
		row "$name" skipped $((SECONDS - begin)) "not done after $limit s"
	elif [ $code -eq 124 ] || [ $code -eq 137 ]; then
		failures=$((failures + 1))
		row "$name" failed $((SECONDS - begin)) "not done after $limit s, or killed: $(basename "$log")"
	else
		failures=$((failures + 1))
		row "$name" failed $((SECONDS - begin)) \
			"exit code $code: $(grep -E '^stepsim: |fail|[Ee]rror' "$log" | head -1 | cut -c -160 |
			tr '|' '/')"
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

# Predicted and measured of every run so far.
table() {
	python3 - "$out" <<'PY'
import glob, json, os, statistics, sys
errors = []
print("| run | predicted, ms | measured, ms | error | verified |\n| --- | ---: | ---: | ---: | --- |")
for path in sorted(glob.glob(os.path.join(sys.argv[1], "run-*.json"))):
    name = os.path.basename(path)[4:-5]
    try:
        j = json.load(open(path))
    except ValueError:
        continue
    m = j.get("measurement") or {}
    p, v = j["prediction"]["step_time_s"], "yes" if m.get("verified") else "no"
    if "step_time_s" not in m or not j.get("comparison") or "share" in name:
        print(f"| {name} | {p * 1e3:.3f} | {'doubles' if m.get('double') else 'correctness only'} | | {v} |")
        continue
    e = (p - m["step_time_s"]) / m["step_time_s"]
    errors.append(abs(e))
    print(f"| {name} | {p * 1e3:.3f} | {m['step_time_s'] * 1e3:.3f} | {100 * e:+.1f} % | {v} |")
if errors:
    print(f"\nMedian of the absolute error of {len(errors)} runs: {100 * statistics.median(errors):.1f} %; "
          f"largest: {100 * max(errors):.1f} %")
PY
}

finish() {
	{
		echo '# stepsim on GPUs'
		echo
		echo "$(date -u '+%Y-%m-%d %H:%M UTC'), commit $(git describe --always --dirty 2>/dev/null ||
			echo unknown), $what, $((SECONDS - started)) s"
		$doubles &&
			printf '\n**%s %s**\n' 'On doubles of the CUDA libraries: this tried the script, not a GPU.' \
				'There are no figures.'
		printf '\n| part | verdict | seconds | |\n| --- | --- | ---: | --- |\n'
		cat "$rows"
		echo
		command -v python3 >/dev/null && table
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

export stepsim doubles
export -f cores

build() {
	if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }; then
		timeout 120 bash scripts/setup.sh test ||
			echo 'scripts/setup.sh did not come to its end; going on with what is here'
	fi
	bash scripts/find_cuda.sh
	make -s -j"$(cores)" CUDA=1 all && make -s -j"$(cores)" CUDA=1 gpu-tests
}

facts() {
	date -u
	"$stepsim" --version || return 1
	uname -a
	lscpu
	free -m
	! $doubles || return 0
	nvidia-smi
	nvidia-smi topo -m
	nvidia-smi -q
}

export -f build facts
if ! $built; then
	part 'build with CUDA' 330 bash -c build || finish
fi
[ -x "$stepsim" ] && [ -e build/release/libstepsim_cuda.so ] || {
	skip 'everything else' 'there is no build with CUDA'
	failures=1
	finish
}
part facts 40 bash -c facts
part topo 30 "$stepsim" topo -v --json "$out/topo.json"

# ---- kernels against the host's reference ----

kernels=(memory elementwise act norm embed loss softmax optimizer attention gemm micro device)
$quick && kernels=(memory loss)
for kernel in "${kernels[@]}"; do
	part "kernels: $kernel" 60 "build/release/tests/gpu/test_cuda_$kernel"
done

# ---- calibration, then the example configs ----

if $quick; then
	part 'ddp-tiny, bf16' 60 mpirun "${mpirun_flags[@]}" -np 1 "$stepsim" configs/ddp-tiny.yaml \
		--set run.backend=cuda --set train.dtype=bf16 --set run.steps=1 --set run.warmup=0 \
		--json "$out/run-ddp-tiny-np1-bf16.json"
	part 'ddp-tiny, 2 ranks share a GPU' 60 env STEPSIM_DOUBLE_GPUS=1 mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" \
		configs/ddp-tiny.yaml --set run.backend=cuda --set run.share_gpu=true --set run.steps=1 \
		--set run.warmup=0 \
		--json "$out/run-ddp-tiny-np2-share.json"
	finish
fi

part 'calibrate, 1 GPU' 90 "$stepsim" calibrate --backend cuda

# Those that name no other system.
mapfile -t examples < <(grep -L '^  system:' configs/*.yaml)
graphs=(configs/ddp-tiny.yaml configs/gpt2-124m-gpu.yaml)
$doubles && examples=(configs/*-tiny.yaml) graphs=(configs/ddp-tiny.yaml) # what a CPU can compute
run_example() { # ranks, config, label, limit, then options; skipped where the config does not take so many ranks
	local ranks=$1 config=$2 label=$3 limit=$4 name refusal launch
	shift 4
	launch=(mpirun "${mpirun_flags[@]}" -np "$ranks")
	[ "$ranks" -gt 1 ] || command -v mpirun >/dev/null || launch=() # a rank alone starts without
	name=$(basename "$config" .yaml)-np$ranks${label:+-$label}
	refusal=$("$stepsim" predict "$config" --set cluster.system=dgx-h100 --set cluster.gpus_per_node="$ranks" \
		--set cluster.nodes=1 -q "$@" 2>&1 >/dev/null) || {
		skip "run: $name" "$(echo "$refusal" | tail -1 | cut -c -140)"
		return
	}
	part "run: $name" "$limit" "${launch[@]}" "$stepsim" "$config" --set run.backend=cuda "$@" \
		--json "$out/run-$name.json"
}

for config in "${examples[@]}"; do
	run_example 1 "$config" bf16 45 --set train.dtype=bf16
done
for config in "${graphs[@]}"; do
	run_example 1 "$config" bf16-graph 45 --set train.dtype=bf16 --set train.cuda_graph=true
done
if [ "$gpus" -gt 1 ]; then
	extra "calibrate, $gpus GPUs" 90 mpirun "${mpirun_flags[@]}" -np "$gpus" "$stepsim" calibrate --backend cuda
	for config in "${examples[@]}"; do
		run_example "$gpus" "$config" bf16 60 --set train.dtype=bf16
	done
fi
for ranks in 2 4; do
	for config in configs/*-tiny.yaml; do
		run_example $ranks "$config" share 40 --set run.share_gpu=true --set run.steps=1 --set run.warmup=0
	done
done

# ---- the machine's ceilings ----

has() { "$stepsim" --help | grep -q "^ *\(usage: \)\?stepsim $1 "; }
if has roofline; then
	part roofline 60 "$stepsim" roofline --csv "$out/roofline.csv" --plot "$out/roofline.svg"
else
	skip roofline 'this build has no such command'
fi
if [ "$gpus" -lt 2 ]; then
	skip 'bench all_reduce' 'one GPU'
elif has bench; then
	part 'bench all_reduce' 60 mpirun "${mpirun_flags[@]}" -np "$gpus" "$stepsim" bench all_reduce -b 8 -e 256M -f 4
else
	skip 'bench all_reduce' 'this build has no such command'
fi

# ---- compute-sanitizer, PyTorch ----

if $doubles || ! command -v compute-sanitizer >/dev/null; then
	skip compute-sanitizer 'not here'
else
	patience=none
	for kernel in elementwise norm act softmax loss memory; do
		# Blocks that end where the memory ends: reads beyond it are seen too.
		part "memcheck: $kernel" 60 env STEPSIM_RIG_BARE=1 compute-sanitizer --error-exitcode 9 --padding 64 \
			"build/release/tests/gpu/test_cuda_$kernel"
	done
	for kernel in attention norm softmax; do
		part "racecheck: $kernel" 60 compute-sanitizer --tool racecheck --error-exitcode 9 \
			"build/release/tests/gpu/test_cuda_$kernel"
	done
	patience=some
fi
if ! $doubles && python3 -c 'import torch' 2>/dev/null; then
	extra 'PyTorch beside stepsim: gpt2-124m' 90 python3 scripts/compare_pytorch.py configs/gpt2-124m-gpu.yaml \
		--json "$out/pytorch-gpt2-124m.json"
	extra 'PyTorch beside stepsim: llama-1b' 90 python3 scripts/compare_pytorch.py configs/llama-1b-gpu.yaml \
		--json "$out/pytorch-llama-1b.json"
else
	skip 'PyTorch beside stepsim' 'no PyTorch here'
fi
finish
