#include "exec/plugin.h"

/* Builds for other machines compile the kernels with AVX2, FMA and BMI, and say so to this file alone. */
static bool runs_here(void)
{
#ifdef STEPSIM_KERNELS_AVX2
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2");
#else
	return true;
#endif
}

#define EXEC_SLOT(call) .call = call,
const struct exec_plugin stepsim_exec_plugin = {.version = STEPSIM_VERSION,
	.layout = EXEC_LAYOUT,
	.runs_here = runs_here,
	EXEC_CALLS(EXEC_SLOT)};
