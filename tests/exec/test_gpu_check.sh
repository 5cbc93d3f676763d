#!/usr/bin/env bash
# scripts/gpu_check.sh without a GPU: refused in one line; on doubles, short, with a verdict for each part and no
# figure. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
needs_cuda
shown() {
	cat "$scratch/log" "$scratch/out/summary.md" 2>/dev/null
}

if ! command -v nvidia-smi >/dev/null; then
	bash scripts/gpu_check.sh "$scratch/none" >"$scratch/log" 2>&1
	code=$?
	wrong=''
	[ "$code" -eq 1 ] || wrong="exit code $code"
	[ "$(grep -c 'there is no GPU here' "$scratch/log")" -eq 1 ] && [ "$(wc -l <"$scratch/log")" -eq 1 ] ||
		wrong=${wrong:-not one line}
	verdict 'no GPU' "$wrong"
fi
LD_LIBRARY_PATH=$PWD/build/release/doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 300 bash scripts/gpu_check.sh \
	--quick "$scratch/out" >"$scratch/log" 2>&1
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
grep -q 'There are no figures' "$scratch/out/summary.md" || wrong=${wrong:-the summary does not say doubles}
[ "$(grep -c '| passed |' "$scratch/out/summary.md")" -eq 6 ] || wrong=${wrong:-not six parts passed}
grep -q '^| ddp-tiny-np1-bf16 | .* | doubles | | yes |' "$scratch/out/summary.md" || wrong=${wrong:-no line for the run}
verdict 'on doubles' "$wrong"

for config in fsdp-tiny zero1-tiny quickstart gpt2-124m-gpu llama-1b-gpu; do
	python3 scripts/compare_pytorch.py "configs/$config.yaml" --check-params >"$scratch/log" 2>&1
	code=$?
	verdict "compare_pytorch.py counts $config as stepsim does" "$([ "$code" -eq 0 ] || echo "exit code $code")"
done
python3 scripts/compare_pytorch.py configs/fsdp-tiny.yaml --check-params --set model.positon=rope >"$scratch/log" 2>&1
code=$?
verdict 'compare_pytorch.py: a wrong config' "$([ "$code" -eq 2 ] || echo "exit code $code")"

verdicts
