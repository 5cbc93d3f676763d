#!/usr/bin/env bash
# CUDA's libraries and driver as machines have them: old, missing, among PyTorch's wheels. One line says what is wrong;
# GPUs that cannot be used are never passed over in silence. On doubles. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
needs_cuda
export STEPSIM_HOME=$root XDG_CACHE_HOME=$scratch/cache
config=configs/ddp-tiny.yaml
quick=(--set run.steps=1 --set run.warmup=0)

# A copy of the program whose CUDA part was changed by sed.
changed() { # folder, sed's script
	mkdir -p "$scratch/$1"
	cp "$stepsim" build/release/libstepsim_exec.so "$scratch/$1"
	LC_ALL=C sed "$2" build/release/libstepsim_cuda.so >"$scratch/$1/libstepsim_cuda.so"
}

# Runs on doubles; sets `wrong` unless it ends with this code and has exactly one line like the pattern.
wrong=''
expect() { # code, pattern, command
	local code=$1 pattern=$2 found
	shift 2
	LD_LIBRARY_PATH=${at:-$doubles}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 120 "$@" >"$log" 2>&1 </dev/null
	found=$?
	wrong=''
	[ "$found" -eq "$code" ] || wrong="exit code $found"
	[ "$(grep -Ec "$pattern" "$log")" -eq 1 ] || wrong=${wrong:-not one line like: $pattern}
}

# The driver serves an older CUDA.
old='the driver.* is too old: it serves CUDA 12.4, and CUDA.s runtime here is 13.0, which needs driver 580.65'
STEPSIM_DOUBLE_FAULT=olddriver expect 1 "^stepsim: no CUDA device on .*: $old" "$stepsim" $config --set run.backend=cuda
verdict 'an old driver: an error when GPUs are asked for' "$wrong"
STEPSIM_DOUBLE_FAULT=olddriver expect 0 "^stepsim: warning: the GPUs here are not used, cores are .*: $old" \
	"$stepsim" $config "${quick[@]}"
verdict 'an old driver: a warning when GPUs are taken where they are' "$wrong"
STEPSIM_DOUBLE_FAULT=olddriver CUDA_VISIBLE_DEVICES='' expect 0 '^step time' "$stepsim" $config "${quick[@]}"
grep -q 'not used' "$log" && wrong=${wrong:-a warning}
verdict 'GPUs that the user hides are no reason for a warning' "$wrong"
expect 0 'Executed on doubles of the CUDA libraries' "$stepsim" $config "${quick[@]}"
verdict 'GPUs are taken where NVML alone shows them' "$wrong"

# No library of that name.
changed missing 's/libcudnn\.so\.9/libcudnn.so.7/g'
missing='the CUDA part does not load: it needs libcudnn.so.7 \(cuDNN 9.0 or newer\), which is neither where'
expect 1 "^stepsim: $missing" "$scratch/missing/stepsim" $config --set run.backend=cuda
verdict 'no cuDNN: an error when GPUs are asked for' "$wrong"
expect 0 "^stepsim: warning: the GPUs here are not used, cores are \(.* GPUs.*\): $missing" \
	"$scratch/missing/stepsim" $config "${quick[@]}"
verdict 'no cuDNN: a warning when GPUs are taken where they are' "$wrong"
expect 0 "^CUDA: none: $missing.*another one is here: libcudnn.so.9" "$scratch/missing/stepsim" --version
verdict 'no cuDNN: --version names it, and the one that is here' "$wrong"

# The same library among PyTorch's wheels, for the active environment and for the python3 of PATH.
wheel=$scratch/venv/lib/python3.12/site-packages/nvidia/cudnn/lib
mkdir -p "$wheel" "$scratch/venv/bin" && ln -s /bin/true "$scratch/venv/bin/python3"
LC_ALL=C sed 's/libcudnn\.so\.9/libcudnn.so.7/g' "$doubles/libcudnn.so.9" >"$wheel/libcudnn.so.7"
VIRTUAL_ENV=$scratch/venv expect 0 \
	'libcudnn.so.7 is from Python.s packages: .*/site-packages/nvidia/cudnn/lib/libcudnn.so.7$' \
	"$scratch/missing/stepsim" $config "${quick[@]}" --set run.backend=cuda --set train.dtype=bf16 -v
grep -q 'Executed on doubles' "$log" || wrong=${wrong:-not executed}
verdict 'cuDNN among the wheels of the active environment' "$wrong"
PATH=$PATH:$scratch/venv/bin expect 0 '^CUDA: runtime .* cuDNN 9' "$scratch/missing/stepsim" --version
verdict "cuDNN among the wheels of PATH's python3" "$wrong"

# NCCL without what came later.
mkdir "$scratch/nccl"
ln -s "$doubles"/* "$scratch/nccl/"
rm "$scratch/nccl/libnccl.so.2"
LC_ALL=C sed 's/ncclAlltoAll/ncclAlltoAlk/g; s/ncclGroupSimulateEnd/ncclGroupSimulateEnk/g
	s/ncclCommRegister/ncclCommRegistek/g' "$doubles/libnccl.so.2" >"$scratch/nccl/libnccl.so.2"
export STEPSIM_DOUBLE_NCCL=21803
at=$scratch/nccl expect 0 '^stepsim: warning: NCCL 2.18.3 has no ncclAlltoAll, .* 2.28: .*sends and receives' \
	mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" configs/ep-tiny.yaml "${quick[@]}" --set run.backend=cuda \
	--set parallel.expert=2 -v
grep -q 'every collective.s sum verified' "$log" || wrong=${wrong:-not verified}
grep -q 'NCCL 2.18.3 registers no memory' "$log" || wrong=${wrong:-nothing about registered memory}
verdict 'NCCL 2.18: all-to-alls of messages, verified' "$wrong"
LC_ALL=C sed 's/ncclCommSplit/ncclCommSplik/g' "$doubles/libnccl.so.2" >"$scratch/nccl/libnccl.so.2"
STEPSIM_DOUBLE_NCCL=21403 at=$scratch/nccl expect 1 \
	'^stepsim: the CUDA part does not load: .*libnccl.so.2 is NCCL 2.14, without ncclCommSplit; 2.18 or newer' \
	"$stepsim" $config --set run.backend=cuda
verdict 'NCCL 2.14 is named, with its version and the one that is needed' "$wrong"

verdicts
