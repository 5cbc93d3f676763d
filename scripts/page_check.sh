#!/usr/bin/env bash
# Pages of --html and pictures of --plot as readers see them: written by the commands, opened in headless Chromium at
# 1280 and 400 pixels, light and dark (tests/page/check.py). One of them has 85,000 ops in its timeline.
#   bash scripts/page_check.sh [FOLDER]     # the pages and a PNG of each are kept in FOLDER
# The last line is "N passed, N failed"; "skipped" where there is no Chromium. Times count: leave the machine alone
# meanwhile.
set -eu
cd "$(dirname "$0")/.."
stepsim=build/release/stepsim
[ -x "$stepsim" ] || make -s all
folder=${1:-$(mktemp -d)}
[ $# -gt 0 ] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$folder/cache}

# shellcheck source=scripts/env.sh
. scripts/env.sh
mpirun "${mpirun_flags[@]}" -np 2 "$stepsim" configs/quickstart.yaml --html "$folder/executed.html" \
	-q >"$folder/executed.txt"
"$stepsim" predict configs/llama3-8b-fsdp-64xh100.yaml --html "$folder/fsdp.html" -q >"$folder/fsdp.txt"
"$stepsim" predict configs/pp-llama3-70b-64xh100.yaml --html "$folder/pipeline.html" -q >"$folder/pipeline.txt"
"$stepsim" sweep configs/llama3-8b-fsdp-64xh100.yaml --vary cluster.nodes=2,4,8,16,32,64 --set train.global_batch=1024 \
	--vary train.recompute=none,full --html "$folder/sweep.html" -q >"$folder/sweep.txt"
"$stepsim" predict configs/llama3-8b-fsdp-64xh100.yaml --set cluster.nodes=2 --set train.recompute=none \
	--html "$folder/too-large.html" -q >"$folder/too-large.txt"
"$stepsim" sweep configs/llama3-8b-fsdp-64xh100.yaml --vary parallel.strategy=ddp,zero1,zero2,fsdp,hsdp \
	--vary train.recompute=none,full --html "$folder/sweep-words.html" -q >"$folder/sweep-words.txt"
"$stepsim" compare configs/llama3-8b-fsdp-64xh100.yaml --systems dgx-h100,dgx-a100,dgx-h200 --fixed-plan \
	--html "$folder/compare.html" -q >"$folder/compare.txt"
"$stepsim" plan configs/llama3-8b-fsdp-64xh100.yaml --gpus 8 --html "$folder/plan.html" -q >"$folder/plan.txt"
"$stepsim" plan configs/llama3-8b-fsdp-64xh100.yaml --gpus 8 --plot "$folder/plan-picture.svg" -q >"$folder/plan.txt"
"$stepsim" roofline --time 2 --plot "$folder/roofline.svg" -q >"$folder/roofline.txt"
python3 tests/page/check.py --shots "$folder" "$folder"/*.html "$folder"/*.svg
