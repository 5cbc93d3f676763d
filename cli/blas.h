/* Which kernels OpenBLAS takes, decided before the plug-in loads it. */
#ifndef STEPSIM_CLI_BLAS_H
#define STEPSIM_CLI_BLAS_H

#include "exec/plugin.h"

struct blas_choice {
	char text[192]; /* what was chosen and why; "": OpenBLAS's own choice stands, or its user's */
	bool slow;      /* nothing better was found */
};

/* OpenBLAS takes its oldest kernels (SSE3) on a CPU that is newer than it. Where it would, and the CPU has AVX2, sets
 * OPENBLAS_CORETYPE to the fastest kernels that compute rightly here. Processes of its own find out, as OpenBLAS
 * chooses once, when it is loaded: `open` opens the plug-in in each. Its user's OPENBLAS_CORETYPE always stands. */
void blas_choose(enum status (*open)(const struct exec_plugin **out, struct error *e), struct blas_choice *out);

#endif
