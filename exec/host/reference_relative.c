/* The reference of biases of scores by distance. */
#include "exec/host/reference_private.h"

REFERENCE(ref_relative_bias)
{
	UNUSED();
	const struct op_relative *d = &op->relative;
	const double *table = arg[0];
	for (int64_t k = 0; k < d->heads * d->seq * d->seq; k++) {
		const int64_t h = k / (d->seq * d->seq), i = k / d->seq % d->seq, j = k % d->seq;
		((double *)arg[1])[k] = table[relative_bucket(j - i, d->buckets, op->flags & OP_CAUSAL) * d->heads + h];
	}
	return ST_OK;
}

REFERENCE(ref_relative_bias_grad)
{
	UNUSED();
	const struct op_relative *d = &op->relative;
	double *dtable = arg[1];
	for (int64_t k = 0; k < d->buckets * d->heads && !(op->flags & OP_ACCUMULATE); k++)
		dtable[k] = 0.0;
	for (int64_t k = 0; k < d->heads * d->seq * d->seq; k++) {
		const int64_t h = k / (d->seq * d->seq), i = k / d->seq % d->seq, j = k % d->seq;
		dtable[relative_bucket(j - i, d->buckets, op->flags & OP_CAUSAL) * d->heads + h] += ((
			const double *)arg[0])[k];
	}
	return ST_OK;
}

REFERENCE(ref_attn_bias)
{
	UNUSED();
	const int64_t each = op->attn.heads * op->attn.seq * op_keys(op);
	for (int64_t k = 0; k < op->attn.batch * each; k++)
		((double *)arg[0])[k] += ((const double *)arg[1])[k % each];
	return ST_OK;
}

REFERENCE(ref_attn_bias_grad)
{
	UNUSED();
	const int64_t each = op->attn.heads * op->attn.seq * op_keys(op);
	double *dbias = arg[1];
	for (int64_t k = 0; k < each && !(op->flags & OP_ACCUMULATE); k++)
		dbias[k] = 0.0;
	for (int64_t k = 0; k < op->attn.batch * each; k++)
		dbias[k % each] += ((const double *)arg[0])[k];
	return ST_OK;
}
