#!/usr/bin/env bash
# Tests that take too long for every change: fuzzers under the sanitizers (SECONDS_EACH, default 60; SEED), and under
# libFuzzer for half as long where clang-14 is there; laws on plans drawn for LAW_SECONDS (300); 1,000 runs in a row;
# NOMEM_POINTS (60) allocations of each of some commands failing; MPICH where it is there;
# all random cases of the properties and the kernels' twins with all threads of a block under them,
# every preset predicted and, made small, executed, valgrind over the unit tests and over an executed step,
# calibration of 8 ranks. The CUDA part is built for all its architectures, and the PTX of those that the test
# command leaves out is executed.
# The last line is "N passed, N failed".
set -u
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../scripts/env.sh"
cd "$root" || exit 2
seconds=${SECONDS_EACH:-60}
seed=${SEED:-$RANDOM}
passed=0 failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache

bash scripts/setup.sh long || exit 1
make -s -j"$(cores)" all || exit 1
make -s VARIANT=asan CUDA=0 -j"$(cores)" all tests || exit 1
make -s VARIANT=asan -j"$(cores)" twins || exit 1
# The debug variant: its kernels are not built for this very processor, whose newest instructions valgrind may not know.
make -s VARIANT=debug CUDA=0 -j"$(cores)" all tests || exit 1

check() {
	local name=$1 code
	shift
	"$@" >"$scratch/log" 2>&1 </dev/null
	code=$?
	if [ $code -eq 0 ]; then
		passed=$((passed + 1))
		echo "passed $name"
	else
		failed=$((failed + 1))
		echo "FAILED $name (exit code $code)"
		sed 's/^/    /' "$scratch/log"
	fi
}

for source in tests/fuzz/fuzz_*.c; do
	check "$source, $seconds s, seed $seed" timeout $((seconds + 60)) "build/asan/${source%.c}" "$seconds" "$seed"
done

if command -v clang-14 >/dev/null; then
	check 'the fuzzers under libFuzzer' env SECONDS_EACH=$((seconds / 2)) bash tests/fuzz/run_libfuzzer.sh
fi
check "laws, seed $seed" env STEPSIM_LAW_SECONDS="${LAW_SECONDS:-300}" STEPSIM_LAW_SEED="$seed" \
	build/asan/tests/property/test_law_properties
check "plan's best" python3 tests/property/plan_law.py
check '1,000 runs in a row' bash tests/property/soak.sh
${CC:-cc} -shared -fPIC -O1 -I. -o "$scratch/nomem.so" tests/nomem/nomem.c || exit 1
check 'commands whose memory runs out' python3 tests/nomem/check.py "$scratch/nomem.so" "${NOMEM_POINTS:-60}" "$seed"
check 'MPICH' bash tests/exec/test_mpich.sh

for source in tests/property/test_*.c; do
	check "sanitizers, $source" "build/asan/${source%.c}"
done
for program in $(make -s VARIANT=asan list-twins); do
	check "sanitizers, $program" "$program"
done

# The test command executes the PTX of 9.0 alone; 10.0 has a newer compiler.
if [ -e build/release/libstepsim_cuda.so ]; then
	make -s -j"$(cores)" gpu-tests
	for arch in 80 100; do
		make -s -j"$(cores)" PTX_ARCH=$arch ptx
		check "kernels as PTX of compute capability $arch" env PTX_ARCH=$arch bash tests/ptx/run.sh
	done
fi

check "the table of models" python3 tests/models_table.py

memcheck=(valgrind --quiet --error-exitcode=9)
for source in tests/unit/test_*.c tests/property/test_*.c; do
	check "valgrind $source" "${memcheck[@]}" --leak-check=full --errors-for-leak-kinds=definite \
		"build/debug/${source%.c}"
done

# A step of a tiny model, executed by two ranks. The profile is the release variant's: what it measures is time, and
# here only the prediction reads it.
tiny=(configs/ddp-tiny.yaml --set model.layers=1 --set train.global_batch=8 --set run.steps=1 --set run.warmup=0
	--set run.timeout_s=600)
run=(mpirun "${mpirun_flags[@]}" -np 2)
check 'a profile' "${run[@]}" build/release/stepsim calibrate -o "$scratch/profile.yaml"
check 'a profile of 8 ranks' mpirun "${mpirun_flags[@]}" -np 8 build/release/stepsim calibrate \
	-o "$scratch/profile8.yaml"
tiny+=(--set "cluster.profile=$scratch/profile.yaml")
memcheck+=(--suppressions=tests/valgrind.supp)
for file in /usr/share/openmpi/openmpi-valgrind.supp /usr/share/openmpi-*/openmpi-valgrind.supp; do
	[ -e "$file" ] && memcheck+=("--suppressions=$file")
done
check 'valgrind, an executed step' "${run[@]}" "${memcheck[@]}" build/debug/stepsim "${tiny[@]}"
# Open MPI keeps memory until the process ends: leaks are looked for in the unit tests.
check 'sanitizers, an executed step' env ASAN_OPTIONS=detect_leaks=0 "${run[@]}" build/asan/stepsim "${tiny[@]}"

for kind in dist wheel deb; do
	check "package: $kind" bash tests/package/long_packages.sh "$kind"
done
check 'the archive for GPU machines' bash tests/package/long_gpu_bundle.sh

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
