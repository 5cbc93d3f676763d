#!/usr/bin/env bash
# scripts/gpu_check.sh without a GPU: refused in one line; on doubles, short, with a verdict for each part and no
# figure; without mpirun those of several ranks are skipped. Then what it asks: which GPUs nvcc is to serve, whether
# package servers answer, how results become one file. The last line counts.
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
grep -q '^| run: t5-tiny-np1 | skipped | .*encoder_layers: executed on cores alone' "$scratch/out/summary.md" ||
	wrong=${wrong:-what GPUs refuse is not skipped}
verdict 'on doubles' "$wrong"

# All that is in it, and none of it a figure.
verdict 'results.json on doubles' "$(python3 - "$scratch/out/results.json" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
runs = j["runs"]
good = (
    j["doubles"] and [p["verdict"] for p in j["parts"]] == ["passed"] * 5 + ["skipped", "passed"] and len(runs) == 2
    and all(r["comparison"] is None and "step_time_s" not in r["measurement"] for r in runs.values())
    and j["machine"]["cpu"] and any(v.startswith("CUDA: runtime") for v in j["versions"]) and j["topology"]["gpus"]
)
print("" if good else "wrong")
PY
)"

# The programs of PATH, without Open MPI's launcher.
mkdir "$scratch/bin"
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do
	find "$folder" -maxdepth 1 -not -type d -exec ln -s -t "$scratch/bin" {} + 2>/dev/null
done
rm -f "$scratch"/bin/{mpirun,mpiexec,orterun}*
PATH=$scratch/bin LD_LIBRARY_PATH=$PWD/build/release/doubles${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout 300 \
	bash scripts/gpu_check.sh --quick "$scratch/out" >"$scratch/log" 2>&1
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
[ "$(grep -c '| passed |' "$scratch/out/summary.md")" -eq 5 ] || wrong=${wrong:-not five parts passed}
grep -q '^| ddp-tiny, 2 ranks share a GPU | skipped | 0 | no mpirun here |' "$scratch/out/summary.md" ||
	wrong=${wrong:-not skipped}
verdict 'without mpirun' "$wrong"

# What the kernels are compiled for: the GPUs here, and not beyond what nvcc knows.
archs() { # compute capabilities of the GPUs, those that nvcc knows
	printf '#!/bin/sh\nprintf "%s"\n' "$1" >"$scratch/tools/nvidia-smi"
	printf '#!/bin/sh\nprintf "%s"\n' "$2" >"$scratch/cuda/bin/nvcc"
	CUDA_HOME=$scratch/cuda PATH=$scratch/tools:$PATH bash scripts/find_cuda.sh archs 2>&1
}
mkdir -p "$scratch/tools" "$scratch/cuda/bin" "$scratch/cuda/include"
: >"$scratch/cuda/include/cuda_runtime_api.h"
touch "$scratch/tools/nvidia-smi" "$scratch/cuda/bin/nvcc"
chmod +x "$scratch/tools/nvidia-smi" "$scratch/cuda/bin/nvcc"
known='compute_80\\ncompute_90\\ncompute_100\\n'
archs_are() { # what is wanted, then as archs
	local want=$1
	shift
	archs "$@" >"$scratch/log"
	verdict "kernels for: $1" "$([ "$(cat "$scratch/log")" = "$want" ] || echo "not '$want'")"
}
archs_are 90 '9.0\\n9.0\\n' "$known"
archs_are '80 100' '10.0\\n8.0\\n' "$known"
archs_are 100 '12.0\\n' "$known"
archs_are 90 '9.0\\n' ''
archs_are '' 'NVIDIA-SMI has failed\\n' "$known"

# No package server: told at once, with what to do. Port 9 of this host answers nobody.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get --print-uris update 2>/dev/null |
	grep -q "^'http"; then
	rm -f "$scratch/bin/pkg-config"
	begin=$SECONDS
	PATH=$scratch/bin http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 timeout 60 \
		bash scripts/setup.sh gpu >"$scratch/log" 2>&1
	code=$?
	wrong=''
	[ "$code" -eq 1 ] || wrong="exit code $code"
	[ $((SECONDS - begin)) -le 20 ] || wrong=${wrong:-$((SECONDS - begin)) s}
	grep -q '^setup: no package server answers. Three ways to get what is missing:' "$scratch/log" ||
		wrong=${wrong:-not said}
	verdict 'no package server' "$wrong"
else
	skipped=$((skipped + 1))
fi

# What a GPU's run leaves becomes one file and four tables. The numbers are made up.
mkdir -p "$scratch/made/cache/stepsim"
echo 'made: up' >"$scratch/made/cache/stepsim/gpu.yaml"
printf 'name, driver_version\nA GPU, 1.2\n' >"$scratch/made/gpus.csv"
echo '{"prediction": {"step_time_s": 0.2}, "measurement": {"step_time_s": 0.25, "verified": true},
	"comparison": {"step_time_error": -0.2}, "system": {}}' >"$scratch/made/run-x-np1.json"
echo '{"results": [{"what": "stepsim executed", "step_time_s": 0.25}, {"what": "PyTorch eager", "step_time_s": 0.5},
	{"what": "PyTorch compiled", "error": "no compiler"}]}' >"$scratch/made/pytorch-x.json"
echo '{"rows": [{"size_bytes": 8, "out_of_place": {"time_s": 1e-5, "busbw_Bps": 8e5}, "predicted_s": 2e-5}]}' \
	>"$scratch/made/bench-all_reduce.json"
echo '{"roofs": [{"kind": "matrix", "dtype": "bf16", "flop_per_s": 5e13, "datasheet_flop_per_s": 1e14}],
	"memory_Bps": 2e12}' >"$scratch/made/roofline.json"
echo '| facts | passed | 1 |  |' >"$scratch/made/rows"
python3 scripts/gpu_results.py "$scratch/made" "$scratch/made/rows" '1 x A GPU' false 7 >"$scratch/log" 2>&1
code=$?
wrong=''
[ "$code" -eq 0 ] || wrong="exit code $code"
for line in '| x-np1 | 200.000 | 250.000 | -20.0 % | yes |' '| x | - | 250.000 | 500.000 | - |' \
	'| all_reduce | 8 | 10.0 | 20.0 | 0.0 |' '| matrix bf16 | 50.0 | 100.0 |' 'Memory: 2000 GB/s'; do
	grep -qxF "$line" "$scratch/log" || wrong=${wrong:-no line: $line}
done
python3 - "$scratch/made/results.json" >>"$scratch/log" 2>&1 <<'PY' || wrong=${wrong:-results.json}
import json, sys
j = json.load(open(sys.argv[1]))
assert not j["doubles"] and j["machine"]["gpus"] == [{"name": "A GPU", "driver_version": "1.2"}]
assert j["profiles"] == {"gpu.yaml": ["made: up"]} and list(j["runs"]["x-np1"]) == [
	"prediction", "measurement", "comparison"]
assert j["pytorch"]["x"]["results"] and j["collectives"]["all_reduce"]["rows"] and j["roofline"]["roofs"]
PY
verdict 'results of a GPU in one file and in tables' "$wrong"

for config in fsdp-tiny zero1-tiny quickstart gpt2-124m-gpu llama-1b-gpu; do
	python3 scripts/compare_pytorch.py "configs/$config.yaml" --check-params >"$scratch/log" 2>&1
	code=$?
	verdict "compare_pytorch.py counts $config as stepsim does" "$([ "$code" -eq 0 ] || echo "exit code $code")"
done
python3 scripts/compare_pytorch.py configs/fsdp-tiny.yaml --check-params --set model.positon=rope >"$scratch/log" 2>&1
code=$?
verdict 'compare_pytorch.py: a wrong config' "$([ "$code" -eq 2 ] || echo "exit code $code")"

verdicts
