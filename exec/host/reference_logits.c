/* The reference of sinks and of soft-capping. */
#include <math.h>

#include "exec/host/reference_private.h"

REFERENCE(ref_attn_sinks)
{
	UNUSED();
	const struct op_attn *d = &op->attn;
	double *out = arg[0], *lse = arg[1];
	const double *sinks = arg[2];
	for (int64_t i = 0; i < d->batch * d->heads * d->seq; i++) {
		const int64_t b = i / (d->heads * d->seq), h = i / d->seq % d->heads, row = b * d->seq + i % d->seq;
		const double share = 1.0 / (1.0 + exp(sinks[h] - lse[i]));
		lse[i] = log(exp(lse[i]) + exp(sinks[h]));
		for (int64_t k = 0; k < d->head_dim; k++)
			out[(row * d->heads + h) * d->head_dim + k] *= share;
	}
	return ST_OK;
}

REFERENCE(ref_attn_sinks_grad)
{
	UNUSED();
	const struct op_attn *d = &op->attn;
	const double *lse = arg[0], *delta = arg[1], *sinks = arg[2];
	double *dsinks = arg[3];
	for (int64_t h = 0; h < d->heads && !(op->flags & OP_ACCUMULATE); h++)
		dsinks[h] = 0.0;
	for (int64_t i = 0; i < d->batch * d->heads * d->seq; i++)
		dsinks[i / d->seq % d->heads] -= exp(sinks[i / d->seq % d->heads] - lse[i]) * delta[i];
	return ST_OK;
}

REFERENCE(ref_softcap)
{
	UNUSED();
	const double cap = (double)op->cap.cap;
	for (int64_t i = 0; i < op->cap.rows * op->cap.cols; i++)
		((double *)arg[1])[i] = cap * tanh(((double *)arg[0])[i] / cap);
	return ST_OK;
}

REFERENCE(ref_softcap_grad)
{
	UNUSED();
	const double cap = (double)op->cap.cap;
	for (int64_t i = 0; i < op->cap.rows * op->cap.cols; i++) {
		const double t = tanh(((double *)arg[0])[i] / cap);
		((double *)arg[1])[i] *= 1.0 - t * t;
	}
	return ST_OK;
}
