/* The plain reference of the optimizers that update each element by itself, and of LAMB. */
#include <math.h>

#include "exec/host/kernels_optimizer.h"
#include "exec/host/reference_private.h"

struct state {
	double w, g, *m, *v; /* m, v: NULL where absent */
};

static double adam_with_decay(const struct state *x, double step, double decay)
{
	*x->m = (double)ADAM_BETA1 * *x->m + (1.0 - (double)ADAM_BETA1) * x->g;
	*x->v = (double)ADAM_BETA2 * *x->v + (1.0 - (double)ADAM_BETA2) * x->g * x->g;
	double m = *x->m / (1.0 - pow((double)ADAM_BETA1, step)), v = *x->v / (1.0 - pow((double)ADAM_BETA2, step));
	return x->w - (double)ADAM_LR * (decay * x->w + m / (sqrt(v) + (double)ADAM_EPS));
}

static double adamw_step(const struct state *x, double step) { return adam_with_decay(x, step, (double)ADAMW_DECAY); }

static double adam_step(const struct state *x, double step) { return adam_with_decay(x, step, 0.0); }

static double lion_step(const struct state *x, double step)
{
	(void)step;
	double c = (double)LION_BETA1 * *x->m + (1.0 - (double)LION_BETA1) * x->g;
	*x->m = (double)LION_BETA2 * *x->m + (1.0 - (double)LION_BETA2) * x->g;
	return x->w - (double)LION_LR * ((double)LION_DECAY * x->w + (c > 0.0) - (c < 0.0));
}

static double sgd_step(const struct state *x, double step)
{
	(void)step;
	if (!x->m)
		return x->w - (double)SGD_LR * x->g;
	*x->m = (double)SGD_MOMENTUM * *x->m + x->g;
	return x->w - (double)SGD_LR * *x->m;
}

/* Returns an element's new weight and updates its moments; NULL: none. `step` counts from 1. */
static double (*const optimizer_steps[OPT_COUNT])(const struct state *x, double step) = {
	[OPT_ADAMW] = adamw_step,
	[OPT_ADAM] = adam_step,
	[OPT_LION] = lion_step,
	[OPT_SGD] = sgd_step,
};

REFERENCE(ref_optimizer)
{
	if (!optimizer_steps[op->optimizer])
		return error_set(e, ST_RUN, "the reference has no such optimizer");
	double *p = arg[0], *m = arg[2], *v = arg[3], *master = arg[4];
	for (int64_t i = 0; i < op->update.elements; i++) {
		struct state x = {master ? master[i] : p[i], ((double *)arg[1])[i], m ? m + i : NULL, v ? v + i : NULL};
		p[i] = optimizer_steps[op->optimizer](&x, (double)env->step);
		if (master)
			master[i] = p[i];
	}
	return ST_OK;
}

REFERENCE(ref_lamb_direction)
{
	(void)e;
	const double *w = arg[ARG_LAMB_DIRECTION_master] ? arg[ARG_LAMB_DIRECTION_master] : arg[ARG_LAMB_DIRECTION_w];
	double *g = arg[ARG_LAMB_DIRECTION_g], *m = arg[ARG_LAMB_DIRECTION_m], *v = arg[ARG_LAMB_DIRECTION_v];
	double *norms = arg[ARG_LAMB_DIRECTION_norms];
	const int64_t *bounds = arg[ARG_LAMB_DIRECTION_bounds], tensors = op->tensors.tensors;
	const double b1 = (double)ADAM_BETA1, b2 = (double)ADAM_BETA2, step = (double)env->step;
	for (int64_t t = 0; t < tensors; t++) {
		norms[t] = norms[tensors + t] = 0.0;
		for (int64_t i = bounds[t]; i < bounds[t + 1]; i++) {
			m[i] = b1 * m[i] + (1.0 - b1) * g[i];
			v[i] = b2 * v[i] + (1.0 - b2) * g[i] * g[i];
			const double mean = m[i] / (1.0 - pow(b1, step)), square = v[i] / (1.0 - pow(b2, step));
			g[i] = mean / (sqrt(square) + (double)LAMB_EPS) + (double)LAMB_DECAY * w[i];
			norms[t] += w[i] * w[i];
			norms[tensors + t] += g[i] * g[i];
		}
	}
	return ST_OK;
}

REFERENCE(ref_lamb_step)
{
	UNUSED();
	const int64_t *bounds = arg[ARG_LAMB_STEP_bounds], tensors = op->tensors.tensors;
	const double *norms = arg[ARG_LAMB_STEP_norms], *direction = arg[ARG_LAMB_STEP_direction];
	double *w = arg[ARG_LAMB_STEP_w], *master = arg[ARG_LAMB_STEP_master];
	for (int64_t t = 0; t < tensors; t++) {
		const bool both = norms[t] > 0.0 && norms[tensors + t] > 0.0;
		const double ratio = both ? sqrt(norms[t]) / sqrt(norms[tensors + t]) : 1.0;
		for (int64_t i = bounds[t]; i < bounds[t + 1]; i++) {
			w[i] = (master ? master[i] : w[i]) - (double)LAMB_LR * ratio * direction[i];
			if (master)
				master[i] = w[i];
		}
	}
	return ST_OK;
}
