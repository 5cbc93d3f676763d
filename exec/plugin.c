#include "exec/plugin.h"

/* Builds for other machines compile the kernels for x86-64-v3 (AVX2, FMA), and say so to this file alone. */
static bool runs_here(void)
{
#ifdef STEPSIM_KERNELS_X86_64_V3
	return __builtin_cpu_supports("x86-64-v3");
#else
	return true;
#endif
}

#define EXEC_SLOT(call) .call = call,
const struct exec_plugin stepsim_exec_plugin = {.version = STEPSIM_VERSION,
	.layout = EXEC_LAYOUT,
	.runs_here = runs_here,
	EXEC_CALLS(EXEC_SLOT)};
