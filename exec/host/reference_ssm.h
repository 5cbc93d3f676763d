/* Where the reference finds Mamba-2's columns (step/ops.def). */
#ifndef STEPSIM_EXEC_HOST_REFERENCE_SSM_H
#define STEPSIM_EXEC_HOST_REFERENCE_SSM_H

#include <math.h>
#include <string.h>

#include "step/op.h"

/* Columns of a group in a row of `in`: z [x], x [x], B [N], C [N], dt [heads of the group], `further` as many;
 * of xbc: x, B, C. */
struct place {
	const struct op_ssm *d;
	int64_t heads, x, conv, in; /* of a group */
};

static inline struct place place_of(const struct op *op)
{
	const struct op_ssm *d = &op->ssm;
	const int64_t heads = d->heads / d->groups, x = heads * d->head_dim;
	return (struct place){d, heads, x, x + 2 * d->state, 2 * x + 2 * d->state + (1 + d->further) * heads};
}

/* The element of row r and column c of xbc, and where the convolution finds its input: behind z. */
static inline int64_t xbc_at(const struct place *p, int64_t r, int64_t c) { return r * p->d->groups * p->conv + c; }

static inline int64_t conv_at(const struct place *p, int64_t r, int64_t c)
{
	return r * p->d->groups * p->in + c / p->conv * p->in + p->x + c % p->conv;
}

static inline int64_t z_at(const struct place *p, int64_t r, int64_t c)
{
	return r * p->d->groups * p->in + c / p->x * p->in + c % p->x;
}

static inline int64_t dt_at(const struct place *p, int64_t r, int64_t h)
{
	return r * p->d->groups * p->in + h / p->heads * p->in + p->x + p->conv + h % p->heads;
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

static inline double silu_slope(double x) { return sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))); }

#endif
