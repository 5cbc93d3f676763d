/* Muon's ops beside its products (step/ops.def). Sums of squares run in double over fixed parts, in order. */
#include <math.h>

#include "exec/host/kernels_private.h"

struct muon {
	float *m, *x, *w, *p; /* w: the master copy where there is one, else p itself */
	const float *g, *from;
	float scale, other;
	double *sums; /* one a part */
};

static void direction_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct muon *u = ctx;
	const float *restrict g = u->g;
	float *restrict m = u->m, *restrict x = u->x;
	double sum = 0;
	for (int64_t i = begin; i < end; i++) {
		m[i] = MUON_MOMENTUM * m[i] + g[i];
		x[i] = g[i] + MUON_MOMENTUM * m[i];
		sum += (double)x[i] * (double)x[i];
	}
	u->sums[part] = sum;
}

static void scale_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct muon *u = ctx;
	for (int64_t i = begin; i < end; i++)
		u->x[i] *= u->scale;
}

static void mix_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct muon *u = ctx;
	const float *restrict from = u->from;
	float *restrict x = u->x;
	for (int64_t i = begin; i < end; i++)
		x[i] = u->scale * from[i] + u->other * x[i];
}

static void step_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct muon *u = ctx;
	const float *restrict from = u->from;
	float *w = u->w, *p = u->p;
	for (int64_t i = begin; i < end; i++) {
		const float y = u->other * w[i] - u->scale * from[i];
		w[i] = y;
		p[i] = y;
	}
}

size_t scratch_muon_direction(const struct op *op, int threads)
{
	(void)op;
	return (size_t)threads * sizeof(double);
}

enum status kernel_muon_direction(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const int64_t n = op->muon.rows * op->muon.cols;
	for (int64_t k = 0; k < op->muon.groups; k++) {
		struct muon u = {.g = (const float *)arg[ARG_MUON_DIRECTION_g] + k * n,
			.m = (float *)arg[ARG_MUON_DIRECTION_m] + k * n,
			.x = (float *)arg[ARG_MUON_DIRECTION_x] + k * n,
			.sums = env->scratch};
		const int parts = kernel_parts_summed(env, n, 1);
		double sum = 0;
		kernel_split(env, parts, n, direction_part, &u);
		for (int i = 0; i < parts; i++)
			sum += u.sums[i];
		u.scale = 1.0f / ((float)sqrt(sum) + MUON_EPS);
		kernel_split(env, kernel_parts(env, n, 1), n, scale_part, &u);
	}
	return ST_OK;
}

static int64_t elements_of(const struct op *op) { return op->muon.groups * op->muon.rows * op->muon.cols; }

enum status kernel_muon_mix(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const bool last = op->flags & OP_ACCUMULATE;
	struct muon u = {.from = arg[ARG_MUON_MIX_x],
		.x = arg[ARG_MUON_MIX_y],
		.scale = last ? MUON_A : MUON_B,
		.other = last ? 1.0f : MUON_C};
	kernel_split(env, kernel_parts(env, elements_of(op), 1), elements_of(op), mix_part, &u);
	return ST_OK;
}

enum status kernel_muon_step(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const int64_t longest = op->muon.rows > op->muon.cols ? op->muon.rows : op->muon.cols;
	struct muon u = {.from = arg[ARG_MUON_STEP_x],
		.p = arg[ARG_MUON_STEP_w],
		.w = arg[ARG_MUON_STEP_master] ? arg[ARG_MUON_STEP_master] : arg[ARG_MUON_STEP_w],
		.scale = MUON_LR * MUON_RMS * sqrtf((float)longest),
		.other = 1.0f - MUON_LR * MUON_DECAY};
	kernel_split(env, kernel_parts(env, elements_of(op), 1), elements_of(op), step_part, &u);
	return ST_OK;
}
