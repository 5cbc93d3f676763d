/* Mamba-2's columns, shared by the kernels of its ops and of the gated delta rule (step/ops.def). */
#ifndef STEPSIM_EXEC_HOST_SSM_SHAPE_H
#define STEPSIM_EXEC_HOST_SSM_SHAPE_H

#include <math.h>

#include "exec/host/kernels_math.h"
#include "step/op.h"

/* Where the columns of a group stand in a row of `in` and of xbc. */
struct shape {
	int64_t batch, seq, heads, P, groups, N, per_group /* heads */;
	int64_t x;                /* channels of a group */
	int64_t z;                /* columns of a group before those of the convolution */
	int64_t conv, in;         /* columns of a group in xbc and in `in`; of all groups: times groups */
	int64_t conv_row, in_row; /* columns of a row */
	int64_t rows, chunk, chunks /* of a sequence; of the scan alone */;
};

static inline struct shape shape_of(const struct op *op)
{
	const struct op_ssm *d = &op->ssm;
	struct shape s = {.batch = d->batch,
		.seq = d->seq,
		.heads = d->heads,
		.P = d->head_dim,
		.groups = d->groups,
		.N = d->state,
		.per_group = d->heads / d->groups};
	s.x = s.per_group * s.P;
	s.conv = s.x + 2 * s.N;
	const bool apart = d->layout == SSM_LAYOUT_KDA, gates = apart && op_class_of(op) == CLASS_NORM;
	s.z = apart ? 0 : s.x;
	s.in = gates ? s.x : s.z + s.conv + SSM_NUMBERS(d->layout) * s.per_group;
	s.conv_row = s.groups * s.conv;
	s.in_row = s.groups * s.in;
	s.rows = s.batch * s.seq;
	if (op_class_of(op) == CLASS_SCAN) {
		s.chunk = d->chunk;
		s.chunks = (d->seq + d->chunk - 1) / d->chunk;
	}
	return s;
}

/* log(1 + exp x), which is x where exp x would lose the 1. */
static inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

static inline float silu(float x) { return x * fast_sigmoidf(x); }

static inline float silu_slope(float x)
{
	const float s = fast_sigmoidf(x);
	return s * (1.0f + x * (1.0f - s));
}

#endif
