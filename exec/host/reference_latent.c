/* The reference of latent attention's keys and values, element by element. */
#include <string.h>

#include "exec/host/reference_private.h"

/* Column of the joined row: of head h's keys, of its values. */
static int64_t k_col(const struct op_latent *d, int64_t h, int64_t i) { return h * d->head_dim + i; }

static int64_t v_col(const struct op_latent *d, int64_t h, int64_t i)
{
	return d->heads * d->head_dim + h * d->value_dim + i;
}

REFERENCE(ref_latent_keys)
{
	(void)e;
	const struct op_latent *d = &op->latent;
	const int64_t own = d->head_dim - d->rope_dim, each = own + d->value_dim;
	for (int64_t row = 0; row < d->batch * d->seq; row++) {
		const double *kv = (double *)arg[0] + row * d->heads * each, *latent = arg[1];
		const int64_t shared = (row + 1) * d->width - d->rope_dim;
		double *keys = (double *)arg[2] + row * d->heads * (d->head_dim + d->value_dim);
		for (int64_t h = 0; h < d->heads; h++) {
			for (int64_t i = 0; i < d->head_dim; i++)
				keys[k_col(d, h, i)] = i < own ? kv[h * each + i] : latent[shared + i - own];
			for (int64_t i = 0; i < d->value_dim; i++)
				keys[v_col(d, h, i)] = kv[h * each + own + i];
			reference_rotate(keys + k_col(d, h, own), d->still ? 0 : d->rope_dim,
				cut_position(&env->cut, d->seq, row % d->seq));
		}
	}
	return ST_OK;
}

REFERENCE(ref_latent_keys_grad)
{
	(void)e;
	const struct op_latent *d = &op->latent;
	const int64_t own = d->head_dim - d->rope_dim, each = own + d->value_dim;
	for (int64_t row = 0; row < d->batch * d->seq; row++) {
		const double *dkeys = (double *)arg[0] + row * d->heads * (d->head_dim + d->value_dim);
		double *dkv = (double *)arg[1] + row * d->heads * each, *drope = arg[2];
		for (int64_t i = 0; i < d->rope_dim; i++) {
			drope[row * d->rope_dim + i] = 0.0;
			for (int64_t h = 0; h < d->heads; h++)
				drope[row * d->rope_dim + i] += dkeys[k_col(d, h, own + i)];
		}
		if (d->rope_dim > 0 && !d->still)
			reference_rotate(drope + row * d->rope_dim, d->rope_dim,
				-cut_position(&env->cut, d->seq, row % d->seq));
		for (int64_t h = 0; h < d->heads; h++)
			for (int64_t i = 0; i < each; i++)
				dkv[h * each + i] = dkeys[i < own ? k_col(d, h, i) : v_col(d, h, i - own)];
	}
	return ST_OK;
}
