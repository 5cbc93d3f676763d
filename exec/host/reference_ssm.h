/* Where the reference finds Mamba-2's columns (step/ops.def). */
#ifndef STEPSIM_EXEC_HOST_REFERENCE_SSM_H
#define STEPSIM_EXEC_HOST_REFERENCE_SSM_H

#include <math.h>
#include <string.h>

#include "step/op.h"

/* Columns of a group in a row of `in`: z [x], x [x], B [N], C [N], dt [heads of the group], or as its layout has them;
 * of xbc: x, B, C. */
struct place {
	const struct op_ssm *d;
	int64_t heads, x, z, conv, in; /* of a group */
};

static inline struct place place_of(const struct op *op)
{
	const struct op_ssm *d = &op->ssm;
	const int64_t heads = d->heads / d->groups, x = heads * d->head_dim;
	const int64_t conv = x + 2 * d->state, numbers = d->layout == SSM_LAYOUT_DELTA ? 2 * heads : heads;
	const int64_t z = d->layout == SSM_LAYOUT_KDA ? 0 : x;
	if (z == 0 && op_class_of(op) == CLASS_NORM)
		return (struct place){d, heads, x, z, conv, x};
	return (struct place){d, heads, x, z, conv, z + conv + numbers};
}

/* The element of row r and column c of xbc, and where the convolution finds its input: behind z. */
static inline int64_t xbc_at(const struct place *p, int64_t r, int64_t c) { return r * p->d->groups * p->conv + c; }

static inline int64_t conv_at(const struct place *p, int64_t r, int64_t c)
{
	return r * p->d->groups * p->in + c / p->conv * p->in + p->z + c % p->conv;
}

static inline int64_t z_at(const struct place *p, int64_t r, int64_t c)
{
	return r * p->d->groups * p->in + c / p->x * p->in + c % p->x;
}

static inline int64_t dt_at(const struct place *p, int64_t r, int64_t h)
{
	return r * p->d->groups * p->in + h / p->heads * p->in + p->z + p->conv + h % p->heads;
}

/* Keeps the state of head h before row r where a chunk begins. */
static inline void keep_state(const struct place *p, int64_t r, int64_t h, const double *state, double *states)
{
	const int64_t t = r % p->d->seq, chunks = (p->d->seq + p->d->chunk - 1) / p->d->chunk;
	const int64_t size = p->d->head_dim * p->d->state;
	if (t % p->d->chunk == 0)
		memcpy(states + ((r / p->d->seq * chunks + t / p->d->chunk) * p->d->heads + h) * size, state,
			(size_t)size * sizeof *state);
}

static inline double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* ---- delta rules: where the keys of head h stand in xbc, queries behind them, and its values ---- */

static inline int64_t key_column(const struct place *p, int64_t h) { return h / p->heads * p->conv + p->x; }

static inline int64_t value_column(const struct place *p, int64_t h)
{
	return h / p->heads * p->conv + h % p->heads * p->d->head_dim;
}

static inline double key_length(const struct place *p, const double *xbc, int64_t r, int64_t column)
{
	double sum = (double)UNIT_EPS;
	for (int64_t n = 0; n < p->d->state; n++)
		sum += xbc[xbc_at(p, r, column + n)] * xbc[xbc_at(p, r, column + n)];
	return sqrt(sum);
}

/* Adds the gradient of x by way of x / |x| x scale, given that of the result. */
static inline void add_unit_grad(const struct place *p, const double *xbc, int64_t r, int64_t column, double scale,
	const double *d, double *dxbc)
{
	const double size = key_length(p, xbc, r, column);
	double along = 0.0;
	for (int64_t n = 0; n < p->d->state; n++)
		along += d[n] * xbc[xbc_at(p, r, column + n)];
	for (int64_t n = 0; n < p->d->state; n++) {
		const int64_t at = xbc_at(p, r, column + n);
		dxbc[at] += scale * (d[n] / size - xbc[at] * along / (size * size * size));
	}
}

static inline double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }

#endif
