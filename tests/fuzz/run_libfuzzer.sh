#!/usr/bin/env bash
# The fuzzers under libFuzzer: SECONDS_EACH (default 60) of each that the arguments name, or of all. They begin with the
# texts of tests/fuzz/corpus/NAME, the fuzzer's own seeds and the tree's files of its kind; MERGE=1 keeps in the corpus
# what of this run's finds adds coverage (20 small files at a time). Needs clang-14 and libclang-rt-14-dev.
# The last line is "N passed, N failed".
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
seconds=${SECONDS_EACH:-60}
make -s VARIANT=fuzz CUDA=0 EXEC=0 -j"$(cores)" fuzzers >"$log" 2>&1 || { cat "$log"; exit 1; }
make -s VARIANT=asan CUDA=0 -j"$(cores)" fuzzers >"$log" 2>&1 || { cat "$log"; exit 1; }
export STEPSIM_HOME=$root ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=$scratch/lsan:print_suppressions=0
echo 'leak:libhwloc' >"$scratch/lsan"
[ $# -gt 0 ] || set -- $(basename -s .c tests/fuzz/fuzz_*.c)
for name in "$@"; do
	corpus=tests/fuzz/corpus/${name#fuzz_} found=$scratch/$name
	mkdir -p "$corpus" "$found/seeds" "$found/new"
	case $name in
	fuzz_config | fuzz_yaml) cp configs/*.yaml tests/golden/bad/*.yaml "$found/seeds" ;;
	fuzz_hwloc_xml) cp tests/xml/hwloc-*.xml "$found/seeds" ;;
	fuzz_nccl_xml) cp tests/xml/nccl-*.xml "$found/seeds" ;;
	fuzz_smi) cp tests/smi/*.txt "$found/seeds" ;;
	esac
	case $name in
	fuzz_config | fuzz_*_xml | fuzz_smi) ;;
	*) "build/asan/tests/fuzz/$name" seeds "$found/seeds" ;;
	esac
	nice -n 19 "build/fuzz/tests/fuzz/$name" -max_total_time="$seconds" -max_len=8192 -timeout=20 \
		-rss_limit_mb=4096 \
		-print_final_stats=1 -artifact_prefix="$found/" "$found/new" "$corpus" "$found/seeds" >"$log" 2>&1
	code=$?
	echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") texts," \
		"$(grep -c . <(ls "$found/new")) new, coverage $(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
	[ $code -eq 0 ] || cp "$found"/crash-* "$found"/timeout-* "$found"/leak-* build/ 2>/dev/null
	verdict "$name" "$([ $code -eq 0 ] || echo "exit code $code; its text is in build/")"
	if [ -n "${MERGE:-}" ] && [ $code -eq 0 ]; then
		mkdir "$found/merged"
		"build/fuzz/tests/fuzz/$name" -merge=1 "$found/merged" "$corpus" "$found/seeds" "$found/new" \
			>/dev/null 2>&1
		for text in $(ls -S -r "$found/merged" | head -n 20); do
			[ "$(wc -c <"$found/merged/$text")" -le 2000 ] && cp "$found/merged/$text" "$corpus/"
		done
	fi
done
verdicts
