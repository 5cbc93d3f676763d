#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "exec/host/kernels_private.h"

struct bias_rows {
	const float *bias;
	float *c;
	int64_t n;
	bool add;
};

static void bias_rows_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct bias_rows *b = ctx;
	const float *restrict bias = b->bias;
	for (int64_t r = begin; r < end; r++) {
		float *restrict c = b->c + r * b->n;
		if (!b->add)
			memcpy(c, bias, (size_t)b->n * sizeof *c);
		else
			for (int64_t i = 0; i < b->n; i++)
				c[i] += bias[i];
	}
}

/* A bias is laid into C before the product is added to it: with beta = 0 OpenBLAS would fill C with zeros there. */
enum status kernel_gemm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	const int64_t m = op->d[0], n = op->d[1], k = op->d[2];
	if (m > INT_MAX || n > INT_MAX || k > INT_MAX)
		return error_set(e, ST_RUN, "a GEMM of %lld x %lld x %lld is too large for BLAS", (long long)m, (long long)n, (long long)k);
	const bool trans_a = op->flags & OP_TRANS_A, trans_b = op->flags & OP_TRANS_B;
	bool add = op->flags & OP_ACCUMULATE;
	if (arg[2]) {
		struct bias_rows b = {arg[2], arg[3], n, add};
		kernel_split(env, kernel_parts(env, m, n), m, bias_rows_part, &b);
		add = true;
	}
	cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, 1.0f, arg[0], (blasint)(trans_a ? m : k), arg[1],
		(blasint)(trans_b ? k : n), add ? 1.0f : 0.0f, arg[3], (blasint)n);
	return ST_OK;
}
