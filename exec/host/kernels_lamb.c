/* LAMB in its two ops (step/ops.def). Sums of squares run in double over fixed parts, in order. */
#include <math.h>

#include "exec/host/kernels_private.h"

struct lamb {
	float *w, *g, *m, *v, *p; /* w: the master copy where there is one, else p itself */
	float correct1, correct2; /* 1 / (1 - beta^step) */
	float rate;               /* of LAMB_STEP: learning rate times trust ratio */
	int64_t first;            /* element of the tensor at hand */
	double *sums;             /* two a part: of w and of the direction */
};

static void direction_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct lamb *l = ctx;
	const float *restrict w = l->w + l->first;
	float *restrict g = l->g + l->first, *restrict m = l->m + l->first, *restrict v = l->v + l->first;
	double of_w = 0, of_direction = 0;
	for (int64_t i = begin; i < end; i++) {
		m[i] = ADAM_BETA1 * m[i] + (1.0f - ADAM_BETA1) * g[i];
		v[i] = ADAM_BETA2 * v[i] + (1.0f - ADAM_BETA2) * g[i] * g[i];
		g[i] = l->correct1 * m[i] / (sqrtf(v[i] * l->correct2) + LAMB_EPS) + LAMB_DECAY * w[i];
		of_w += (double)w[i] * (double)w[i];
		of_direction += (double)g[i] * (double)g[i];
	}
	l->sums[2 * part] = of_w;
	l->sums[2 * part + 1] = of_direction;
}

static void step_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct lamb *l = ctx;
	const float *restrict g = l->g + l->first;
	float *w = l->w + l->first, *p = l->p + l->first;
	for (int64_t i = begin; i < end; i++) {
		const float x = w[i] - l->rate * g[i];
		w[i] = x;
		p[i] = x;
	}
}

size_t scratch_lamb_direction(const struct op *op, int threads)
{
	(void)op;
	return (size_t)threads * 2 * sizeof(double);
}

enum status kernel_lamb_direction(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const int64_t *bounds = arg[ARG_LAMB_DIRECTION_bounds], tensors = op->tensors.tensors;
	float *norms = arg[ARG_LAMB_DIRECTION_norms];
	struct lamb l = {.w = arg[ARG_LAMB_DIRECTION_master] ? arg[ARG_LAMB_DIRECTION_master]
	                                                     : arg[ARG_LAMB_DIRECTION_w],
		.g = arg[ARG_LAMB_DIRECTION_g],
		.m = arg[ARG_LAMB_DIRECTION_m],
		.v = arg[ARG_LAMB_DIRECTION_v],
		.correct1 = (float)(1.0 / (1.0 - pow((double)ADAM_BETA1, (double)env->step))),
		.correct2 = (float)(1.0 / (1.0 - pow((double)ADAM_BETA2, (double)env->step))),
		.sums = env->scratch};
	for (int64_t t = 0; t < tensors; t++) {
		const int64_t n = bounds[t + 1] - bounds[t];
		const int parts = n > 0 ? kernel_parts_summed(env, n, 1) : 0;
		double of_w = 0, of_direction = 0;
		l.first = bounds[t];
		if (parts > 0)
			kernel_split(env, parts, n, direction_part, &l);
		for (int i = 0; i < parts; i++) {
			of_w += l.sums[2 * i];
			of_direction += l.sums[2 * i + 1];
		}
		norms[t] = (float)of_w;
		norms[tensors + t] = (float)of_direction;
	}
	return ST_OK;
}

enum status kernel_lamb_step(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const int64_t *bounds = arg[ARG_LAMB_STEP_bounds], tensors = op->tensors.tensors;
	const float *norms = arg[ARG_LAMB_STEP_norms];
	struct lamb l = {.p = arg[ARG_LAMB_STEP_w],
		.w = arg[ARG_LAMB_STEP_master] ? arg[ARG_LAMB_STEP_master] : arg[ARG_LAMB_STEP_w],
		.g = arg[ARG_LAMB_STEP_direction]};
	for (int64_t t = 0; t < tensors; t++) {
		const int64_t n = bounds[t + 1] - bounds[t];
		const float of_w = norms[t], of_direction = norms[tensors + t];
		l.first = bounds[t];
		l.rate = LAMB_LR * (of_w > 0 && of_direction > 0 ? sqrtf(of_w / of_direction) : 1.0f);
		if (n > 0)
			kernel_split(env, kernel_parts(env, n, 1), n, step_part, &l);
	}
	return ST_OK;
}
