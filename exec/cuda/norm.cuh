/* What norms and their gradients share. */
#ifndef STEPSIM_EXEC_CUDA_NORM_CUH
#define STEPSIM_EXEC_CUDA_NORM_CUH

#include "exec/cuda/columns.cuh"
#include "exec/cuda/map.cuh"

#include <limits.h>

extern "C" {
#include "exec/host/kernels.h"
}

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline int sms_of(const struct cuda_env *env) { return env->sms > 0 ? env->sms : 1; }

static inline enum status check_cols(const struct op *op, struct error *e)
{
	return op->matrix.cols <= INT_MAX / 2
	               ? ST_OK
	               : error_set(e, ST_RUN, "%s: %lld columns, at most %d",
				 op_kind_info((enum op_kind)op->kind)->name, (long long)op->matrix.cols, INT_MAX / 2);
}

#endif
