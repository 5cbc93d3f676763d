#!/usr/bin/env bash
# OpenBLAS takes its oldest kernels on a CPU that is newer than it; stepsim makes it take others, if they compute
# rightly. A double of two of its functions plays such a CPU and kernels that fail. The last line counts.
set -u
# shellcheck source=tests/verdicts.sh
. "$(dirname "$0")/../verdicts.sh"
unset OPENBLAS_CORETYPE
flags=$(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null)
[[ $flags == *\ avx2* && $flags == *\ fma* ]] || skip_all 'this CPU has no AVX2'
best=Haswell
[[ $flags == *\ avx512f* && $flags == *\ avx512bw* && $flags == *\ avx512cd* && $flags == *\ avx512dq* &&
	$flags == *\ avx512vl* ]] && best=SkylakeX

kernels() { # environment...: what the plug-in computes with; the whole answer is in $log
	env "$@" "$stepsim" --version >"$log" 2>&1 </dev/null
	awk -F'; ' '/^execution: / { n = split($2, words, " "); print words[n] }' "$log"
}

# Those of this machine's OpenBLAS itself.
wrong=''
found=$(kernels)
if grep -q DYNAMIC_ARCH "$log"; then
	[[ $found =~ ^(Prescott|Core2|Penryn|Dunnington|Nehalem|Opteron|Opteron_SSE3|Barcelona|Atom|Nano)$ ]] &&
		wrong="kernels of $found"
	verdict 'a CPU with AVX2 gets kernels that use it' "$wrong"
	wrong=''
	[ "$(kernels OPENBLAS_CORETYPE=Haswell)" = Haswell ] || wrong='not Haswell'
	[ "$(kernels OPENBLAS_CORETYPE=Prescott)" = Prescott ] || wrong=${wrong:-not Prescott}
	grep -q 'does not know this CPU' "$log" && wrong=${wrong:-a choice beside its user\'s}
	verdict "its user's own choice stands" "$wrong"
else
	skipped=2
fi

# The functions that train, with the kernels that runs take.
wrong=''
OPENBLAS_CORETYPE=$found build/release/tests/unit/test_kernels >"$log" 2>&1 || wrong='a failed test'
verdict 'products are right with these kernels' "$wrong"

cat >"$scratch/double.c" <<'C'
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

char *openblas_get_corename(void);
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

char *openblas_get_corename(void) { return getenv("OPENBLAS_CORETYPE") ? getenv("OPENBLAS_CORETYPE") : "Prescott"; }

static int fails(const char *how)
{
	return getenv(how) && strstr(getenv(how), openblas_get_corename());
}

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
	int ldb, float beta, float *c, int ldc)
{
	void (*real)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
	*(void **)&real = dlsym(RTLD_NEXT, "cblas_sgemm");
	if (fails("CRASHES"))
		raise(SIGILL);
	if (!real)
		*(void **)&real = dlsym(dlopen("libopenblas.so.0", RTLD_NOW), "cblas_sgemm");
	real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	if (fails("WRONG") && m > 100)
		c[(m - 1) * ldc + n - 1] += 1;
}
C
if ! ${CC:-cc} -shared -fPIC -o "$scratch/double.so" "$scratch/double.c" -ldl >"$log" 2>&1; then
	skipped=$((skipped + 4))
	verdicts
	exit
fi
double() { kernels LD_PRELOAD="$scratch/double.so" "$@"; }

wrong=''
found=$(double)
[ "$found" = "$best" ] || wrong="$found, not $best"
grep -q "; OPENBLAS_CORETYPE=$best is set: " "$log" || wrong=${wrong:-it is not said}
verdict 'a CPU that OpenBLAS does not know' "$wrong"

for how in WRONG CRASHES; do
	wrong=''
	found=$(double $how=SkylakeX)
	[ "$found" = Haswell ] || wrong="$found, not Haswell"
	verdict "kernels that fail are not taken: $how" "$wrong"
done

wrong=''
found=$(double WRONG=SkylakeX,Haswell)
[ "$found" = Prescott ] || wrong="$found, not Prescott"
grep -q '; OpenBLAS does not know this CPU' "$log" || wrong=${wrong:-it is not said}
LD_PRELOAD=$scratch/double.so WRONG=SkylakeX,Haswell "$stepsim" bench all_reduce -b 1024 -e 1024 >"$log" 2>&1
grep -q '^stepsim: OpenBLAS does not know this CPU' "$log" || wrong=${wrong:-a run does not say it}
verdict 'where no other kernels compute rightly it is said' "$wrong"

wrong=''
mpirun "${mpirun_flags[@]}" -np 2 -x LD_PRELOAD="$scratch/double.so" "$stepsim" bench all_reduce -b 1024 -e 1024 -v \
	--json "$scratch/bench.json" >"$log" 2>&1 </dev/null
[ "$(grep -c "^stepsim: OPENBLAS_CORETYPE=$best is set" "$log")" -eq 1 ] || wrong='not said once'
verdict 'under mpirun' "$wrong"

verdicts
