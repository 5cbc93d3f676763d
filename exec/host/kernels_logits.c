/* What is done to logits besides the softmax: sinks of attention, soft-capping. */
#include <math.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

/* ---- attention sinks ---- */

struct sinks {
	int64_t heads, seq, cols; /* cols: of a head's result */
	const float *sinks;
	float *out, *lse;
};

/* Rows of the result: a token's heads. */
static void sinks_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct sinks *a = ctx;
	for (int64_t row = begin; row < end; row++)
		for (int64_t h = 0; h < a->heads; h++) {
			float *lse = a->lse + (row / a->seq * a->heads + h) * a->seq + row % a->seq,
			      *restrict out = a->out + (row * a->heads + h) * a->cols;
			const float share = fast_sigmoidf(*lse - a->sinks[h]); /* of all keys */
			*lse -= logf(share);
			for (int64_t i = 0; i < a->cols; i++)
				out[i] *= share;
		}
}

enum status kernel_attn_sinks(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct op_attn *d = &op->attn;
	struct sinks a = {d->heads, d->seq, d->head_dim, arg[ARG_ATTN_SINKS_sinks], arg[ARG_ATTN_SINKS_out],
		arg[ARG_ATTN_SINKS_lse]};
	const int64_t rows = d->batch * d->seq;
	kernel_split(env, kernel_parts(env, rows, d->heads * d->head_dim), rows, sinks_part, &a);
	return ST_OK;
}

enum status kernel_attn_sinks_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)env, (void)e;
	const struct op_attn *d = &op->attn;
	const float *lse = arg[ARG_ATTN_SINKS_GRAD_lse], *delta = arg[ARG_ATTN_SINKS_GRAD_delta],
		    *sinks = arg[ARG_ATTN_SINKS_GRAD_sinks];
	float *dsinks = arg[ARG_ATTN_SINKS_GRAD_dsinks];
	for (int64_t h = 0; h < d->heads; h++) {
		float sum = op->flags & OP_ACCUMULATE ? dsinks[h] : 0.0f;
		for (int64_t b = 0; b < d->batch; b++) {
			const int64_t at = (b * d->heads + h) * d->seq;
			float lane[LANES] = {0};
			FOR_LANES(d->seq, lane[l] += fast_expf(sinks[h] - lse[at + i]) * delta[at + i];);
			sum -= lanes_sum(lane);
		}
		dsinks[h] = sum;
	}
	return ST_OK;
}

/* ---- soft-capping ---- */

struct cap {
	const float *x;
	float *y; /* the result, or its gradient */
	int64_t cols;
	float cap;
};

static void cap_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct cap *a = ctx;
	for (int64_t i = begin * a->cols; i < end * a->cols; i++)
		a->y[i] = a->cap * fast_tanhf(a->x[i] / a->cap);
}

static void cap_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct cap *a = ctx;
	for (int64_t i = begin * a->cols; i < end * a->cols; i++) {
		const float t = fast_tanhf(a->x[i] / a->cap);
		a->y[i] *= 1.0f - t * t;
	}
}

static enum status cap_run(const struct host_env *env, const struct op *op, void *const arg[], part_fn *fn)
{
	const struct op_cap *d = &op->cap;
	struct cap a = {arg[0], arg[1], d->cols, (float)d->cap};
	kernel_split(env, kernel_parts(env, d->rows, d->cols), d->rows, fn, &a);
	return ST_OK;
}

enum status kernel_softcap(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return cap_run(env, op, arg, cap_part);
}

enum status kernel_softcap_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return cap_run(env, op, arg, cap_grad_part);
}
