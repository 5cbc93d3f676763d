#include <math.h>

#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

struct loss {
	float *logits, *max, *sums;
	const int32_t *targets;
	double *partial;     /* the loss of each part, before `scale` */
	int64_t T, V, first; /* first: the vocabulary id of this rank's column 0 */
	double scale;
};

/* The gradient of a row whose sum of exp(x - max) is known; `x` holds the exponentials. The target's one comes in its
 * own column. */
static void scale_row(float *x, int64_t n, float factor, int64_t target, float scale)
{
	for (int64_t i = 0; i < n; i++)
		x[i] *= factor;
	if (target >= 0 && target < n)
		x[target] -= scale;
}

static void loss_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct loss *s = ctx;
	double total = 0.0;
	for (int64_t t = begin; t < end; t++) {
		float *x = s->logits + t * s->V;
		const int32_t target = s->targets[t];
		if (target < 0) {
			memset(x, 0, (size_t)s->V * sizeof *x);
			continue;
		}
		const float max = row_max(x, s->V), hit = x[target];
		const float sum = row_exp(x, s->V, max);
		total += log((double)sum) - ((double)hit - (double)max);
		scale_row(x, s->V, (float)s->scale / sum, target, (float)s->scale);
	}
	s->partial[part] = total;
}

static void loss_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct loss *s = ctx;
	double total = 0.0;
	for (int64_t t = begin; t < end; t++) {
		float *restrict x = s->logits + t * s->V;
		const int64_t target = s->targets[t];
		if (target < 0) {
			memset(x, 0, (size_t)s->V * sizeof *x);
			continue;
		}
		const float max = s->max[t], factor = (float)s->scale / s->sums[t];
		for (int64_t i = 0; i < s->V; i++)
			x[i] = fast_expf(x[i] - max);
		total += log((double)s->sums[t]) - (double)s->sums[s->T + t];
		scale_row(x, s->V, factor, target - s->first, (float)s->scale);
	}
	s->partial[part] = total;
}

size_t scratch_loss(const struct op *op, int threads)
{
	(void)op;
	return (size_t)threads * PARTS_PER_THREAD * sizeof(double);
}

static struct loss loss_setup(const struct host_env *env, const struct op *op)
{
	return (struct loss){.partial = env->scratch,
		.T = op->matrix.rows,
		.V = op->matrix.cols,
		.first = env->tensor_coord * op->matrix.cols,
		.scale = env->loss_scale};
}

static void run_loss(const struct host_env *env, struct loss *s, part_fn *fn, float *loss)
{
	int parts = kernel_parts(env, s->T, s->V);
	kernel_split(env, parts, s->T, fn, s);
	double total = 0.0;
	for (int i = 0; i < parts; i++)
		total += s->partial[i];
	*loss += (float)(s->scale * total);
}

enum status kernel_loss(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct loss s = loss_setup(env, op);
	s.scale *= (double)(1 + op->loss.more);
	s.logits = arg[0];
	s.targets = arg[1];
	for (int64_t t = 0; t < s.T; t++)
		if (s.targets[t] >= s.V)
			return error_set(e, ST_RUN, "target %lld is %d, there are %lld logits", (long long)t,
				s.targets[t], (long long)s.V);
	run_loss(env, &s, loss_part, arg[2]);
	return ST_OK;
}

enum status kernel_loss_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct loss s = loss_setup(env, op);
	s.logits = arg[0];
	s.targets = arg[1];
	s.max = arg[2];
	s.sums = arg[3];
	run_loss(env, &s, loss_grad_part, arg[4]);
	return ST_OK;
}

struct square_loss {
	float *prediction;
	const float *target;
	double *partial;
	int64_t cols;
	float slope; /* of the gradient */
};

static void square_loss_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct square_loss *s = ctx;
	double total = 0.0;
	for (int64_t r = begin; r < end; r++) {
		float *x = s->prediction + r * s->cols, lane[LANES] = {0};
		const float *target = s->target + r * s->cols;
		FOR_LANES(s->cols, float off = x[i] - target[i]; lane[l] += off * off; x[i] = s->slope * off;);
		total += (double)lanes_sum(lane);
	}
	s->partial[part] = total;
}

enum status kernel_square_loss(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const double each = env->loss_scale / (double)op->matrix.cols;
	struct square_loss s = {arg[ARG_SQUARE_LOSS_prediction], arg[ARG_SQUARE_LOSS_target], env->scratch,
		op->matrix.cols, (float)(2.0 * each)};
	const int parts = kernel_parts(env, op->matrix.rows, s.cols);
	kernel_split(env, parts, op->matrix.rows, square_loss_part, &s);
	double total = 0.0;
	for (int i = 0; i < parts; i++)
		total += s.partial[i];
	*(float *)arg[ARG_SQUARE_LOSS_loss] += (float)(each * total);
	return ST_OK;
}

static void loss_max_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct loss *s = ctx;
	for (int64_t t = begin; t < end; t++)
		s->max[t] = row_max(s->logits + t * s->V, s->V);
}

enum status kernel_loss_max(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct loss s = loss_setup(env, op);
	s.logits = arg[0];
	s.max = arg[1];
	kernel_split(env, kernel_parts(env, s.T, s.V), s.T, loss_max_part, &s);
	return ST_OK;
}

static void loss_sum_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct loss *s = ctx;
	for (int64_t t = begin; t < end; t++) {
		const float *x = s->logits + t * s->V, max = s->max[t];
		const int64_t target = s->targets[t] - s->first;
		float lane[LANES] = {0};
		FOR_LANES(s->V, lane[l] += fast_expf(x[i] - max););
		s->sums[t] = lanes_sum(lane);
		s->sums[s->T + t] = s->targets[t] >= 0 && target >= 0 && target < s->V ? x[target] - max : 0.0f;
	}
}

enum status kernel_loss_sum(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct loss s = loss_setup(env, op);
	s.logits = arg[0];
	s.targets = arg[1];
	s.max = arg[2];
	s.sums = arg[3];
	kernel_split(env, kernel_parts(env, s.T, s.V), s.T, loss_sum_part, &s);
	return ST_OK;
}
