#!/usr/bin/env bash
# The tests of kernels on the interpreter of PTX (tests/ptx/ptx.h), against what `make tests` has built: each program of
# tests/gpu that needs no library of NVIDIA's but cudart. Counts what was executed, and fails where no test launches a
# kernel. PTX_ARCH is the compute capability that the PTX is for (90).
# The last line is "N passed, N failed". Arguments: names of programs (norm); without: all.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=build/release
programs=(act attention context elementwise embed loss memory micro moe norm optimizer softmax)
all=true
[ $# -eq 0 ] || { programs=("$@") all=false; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Arrays end where the kernel's memory ends: guards would hide what is read beyond it.
export STEPSIM_PTX=$build/ptx/${PTX_ARCH:-90} STEPSIM_PTX_LOG=$scratch/launched STEPSIM_RIG_BARE=1
passed=0 failed=0

# name, [settings]
execute() {
	local name=$1
	shift
	if env "$@" LD_LIBRARY_PATH="$build/ptx:$build/doubles" timeout 600 "$build/tests/gpu/test_cuda_$name" \
		>"$scratch/out" 2>&1 && grep -q '^ *tests ' "$scratch/out"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAILED test_cuda_$name on the interpreter of PTX $*"
		sed 's/^/    /' "$scratch/out"
	fi
}

for name in "${programs[@]}"; do
	execute "$name"
	# Compute capability 8.6, 8.9 and 12.0 have less shared memory a block: other tiles.
	[ "$name" != attention ] || execute "$name" STEPSIM_PTX_SHARED_B=$((99 << 10))
done

sed -n 's/.*\.entry \([A-Za-z0-9_]*\).*/\1/p' "$STEPSIM_PTX"/*.ptx | sort -u >"$scratch/compiled"
touch "$scratch/launched"
cut -d' ' -f1 "$scratch/launched" | sort -u >"$scratch/executed"
if $all; then
	comm -23 "$scratch/compiled" "$scratch/executed" >"$scratch/missing"
	if [ -s "$scratch/missing" ]; then
		failed=$((failed + 1))
		echo 'FAILED no test launches these kernels:'
		c++filt <"$scratch/missing" | sed 's/^/    /'
	else
		passed=$((passed + 1))
	fi
fi
kernels="$(wc -l <"$scratch/executed") of $(wc -l <"$scratch/compiled") kernels"
awk -v what="${#programs[@]} programs, $kernels" '
	{ launches += $2; instructions += $3 }
	END { printf "%s, %d launches, %.0f million instructions of warps\n", what, launches, instructions / 1e6 }' \
	"$scratch/launched"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
