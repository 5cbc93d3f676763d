#include "exec/host/reference.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* ---- norms ---- */

static void norm_row(const struct op *op, const double *x, const double *w, const double *b, double *y, double *stats)
{
	const int64_t n = op->d[1];
	double mean = 0.0, square = 0.0;
	for (int64_t i = 0; i < n && !(op->flags & OP_RMS); i++)
		mean += x[i] / (double)n;
	for (int64_t i = 0; i < n; i++)
		square += (x[i] - mean) * (x[i] - mean) / (double)n;
	stats[0] = mean;
	stats[1] = 1.0 / sqrt(square + (double)NORM_EPS);
	for (int64_t i = 0; i < n; i++)
		y[i] = (x[i] - mean) * stats[1] * w[i] + (b ? b[i] : 0.0);
}

static REFERENCE(ref_norm)
{
	UNUSED();
	for (int64_t r = 0; r < op->d[0]; r++)
		norm_row(op, (double *)arg[0] + r * op->d[1], arg[1], arg[2], (double *)arg[3] + r * op->d[1], (double *)arg[4] + 2 * r);
	return ST_OK;
}

static REFERENCE(ref_norm_grad)
{
	UNUSED();
	const int64_t n = op->d[1];
	const double *w = arg[2];
	double *dw = arg[5], *db = arg[6];
	for (int64_t i = 0; i < n && !(op->flags & OP_ACCUMULATE); i++) {
		dw[i] = 0.0;
		if (db)
			db[i] = 0.0;
	}
	for (int64_t r = 0; r < op->d[0]; r++) {
		const double *dy = (double *)arg[0] + r * n, *x = (double *)arg[1] + r * n, *stats = (double *)arg[3] + 2 * r;
		double *dx = (double *)arg[4] + r * n, mean_g = 0.0, mean_gh = 0.0;
		for (int64_t i = 0; i < n; i++) {
			double h = (x[i] - stats[0]) * stats[1];
			mean_g += op->flags & OP_RMS ? 0.0 : dy[i] * w[i] / (double)n;
			mean_gh += dy[i] * w[i] * h / (double)n;
			dw[i] += dy[i] * h;
			if (db)
				db[i] += dy[i];
		}
		for (int64_t i = 0; i < n; i++)
			dx[i] = (op->flags & OP_DX_ACCUMULATE ? dx[i] : 0.0) + stats[1] * (dy[i] * w[i] - mean_g - (x[i] - stats[0]) * stats[1] * mean_gh);
	}
	return ST_OK;
}

static REFERENCE(ref_add)
{
	UNUSED();
	const double *x = arg[0], *y = arg[1], *bias = arg[2];
	double *sum = arg[3];
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++)
		sum[i] = x[i] + y[i] + (bias ? bias[i % op->d[1]] : 0.0);
	return ST_OK;
}

static REFERENCE(ref_add_norm)
{
	ref_add(env, op, (void *const[]){arg[0], arg[1], arg[2], arg[5]}, e);
	return ref_norm(env, op, (void *const[]){arg[5], arg[3], arg[4], arg[6], arg[7]}, e);
}

/* ---- elementwise ---- */

static REFERENCE(ref_bias)
{
	UNUSED();
	double *x = arg[0];
	const double *bias = arg[1];
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++)
		x[i] += bias[i % op->d[1]];
	return ST_OK;
}

static REFERENCE(ref_bias_grad)
{
	UNUSED();
	const double *dy = arg[0];
	double *db = arg[1];
	for (int64_t i = 0; i < op->d[1]; i++) {
		double sum = op->flags & OP_ACCUMULATE ? db[i] : 0.0;
		for (int64_t r = 0; r < op->d[0]; r++)
			sum += dy[r * op->d[1] + i];
		db[i] = sum;
	}
	return ST_OK;
}

static double activation(enum mlp mlp, double x)
{
	switch (mlp) {
	case MLP_RELU: return fmax(x, 0.0);
	case MLP_SQUARED_RELU: return fmax(x, 0.0) * fmax(x, 0.0);
	case MLP_SWIGLU: return x / (1.0 + exp(-x));
	default: return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
	}
}

static double activation_slope(enum mlp mlp, double x)
{
	double s = 1.0 / (1.0 + exp(-x)), t = tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
	switch (mlp) {
	case MLP_RELU: return x > 0.0 ? 1.0 : 0.0;
	case MLP_SQUARED_RELU: return 2.0 * fmax(x, 0.0);
	case MLP_SWIGLU: return s * (1.0 + x * (1.0 - s));
	default: return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
	}
}

static bool is_gated(const struct op *op)
{
	return op->mlp == MLP_SWIGLU || op->mlp == MLP_GEGLU;
}

static REFERENCE(ref_act)
{
	UNUSED();
	const int64_t f = op->d[1], width = is_gated(op) ? 2 * f : f;
	for (int64_t i = 0; i < op->d[0] * f; i++) {
		const double *x = (double *)arg[0] + i / f * width + i % f;
		((double *)arg[1])[i] = activation(op->mlp, x[0]) * (is_gated(op) ? x[f] : 1.0);
	}
	return ST_OK;
}

static REFERENCE(ref_act_grad)
{
	UNUSED();
	const int64_t f = op->d[1], width = is_gated(op) ? 2 * f : f;
	const double *dy = arg[1];
	for (int64_t i = 0; i < op->d[0] * f; i++) {
		const double *x = (double *)arg[0] + i / f * width + i % f;
		double *dx = (double *)arg[2] + i / f * width + i % f, up = is_gated(op) ? x[f] : 1.0, gate = x[0], d = dy[i];
		dx[0] = d * up * activation_slope(op->mlp, gate);
		if (is_gated(op))
			dx[f] = d * activation(op->mlp, gate);
	}
	return ST_OK;
}

static REFERENCE(ref_gate_act)
{
	UNUSED();
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++)
		((double *)arg[1])[i] = activation(op->mlp, ((double *)arg[0])[i / op->d[1] * 2 * op->d[1] + i % op->d[1]]);
	return ST_OK;
}

static REFERENCE(ref_gate_mul)
{
	UNUSED();
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++)
		((double *)arg[2])[i] = ((double *)arg[1])[i] * ((double *)arg[0])[i / op->d[1] * 2 * op->d[1] + op->d[1] + i % op->d[1]];
	return ST_OK;
}

/* ---- embeddings ---- */

/* Row of this rank's table, -1: another rank's. */
static int64_t table_row(const struct host_env *env, const struct op *op, int64_t token)
{
	int64_t row = token - (op->flags & OP_VOCAB_PARALLEL ? env->tensor_coord * op->d[2] : 0);
	return row >= 0 && row < op->d[2] ? row : -1;
}

static REFERENCE(ref_embed)
{
	UNUSED();
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++) {
		int64_t row = table_row(env, op, ((int32_t *)arg[0])[i / op->d[1]]);
		((double *)arg[2])[i] = row < 0 ? 0.0 : ((double *)arg[1])[row * op->d[1] + i % op->d[1]];
	}
	return ST_OK;
}

static REFERENCE(ref_embed_grad)
{
	UNUSED();
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++) {
		int64_t row = table_row(env, op, ((int32_t *)arg[0])[i / op->d[1]]);
		if (row >= 0)
			((double *)arg[2])[row * op->d[1] + i % op->d[1]] += ((double *)arg[1])[i];
	}
	return ST_OK;
}

/* Element of the position table that belongs to element i of the activations. */
static int64_t position_element(const struct host_env *env, const struct op *op, int64_t i)
{
	int64_t token = i / op->d[1] + (op->flags & OP_SEQUENCE_PARALLEL ? env->tensor_coord * op->d[0] : 0);
	const int64_t s = op->d[2] / cut_ranks(&env->cut);
	return cut_position(&env->cut, s, token % s) * op->d[1] + i % op->d[1];
}

static REFERENCE(ref_position)
{
	UNUSED();
	const double *w = arg[0], *type = arg[1];
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++)
		((double *)arg[2])[i] += (w ? w[position_element(env, op, i)] : 0.0) + (type ? type[i % op->d[1]] : 0.0);
	return ST_OK;
}

static REFERENCE(ref_position_grad)
{
	UNUSED();
	double *dw = arg[1], *dtype = arg[2];
	for (int64_t i = 0; i < op->d[0] * op->d[1]; i++) {
		if (dw)
			dw[position_element(env, op, i)] += ((double *)arg[0])[i];
		if (dtype)
			dtype[i % op->d[1]] += ((double *)arg[0])[i];
	}
	return ST_OK;
}

/* ---- loss ---- */

static double exp_sum(const double *x, int64_t n, double max)
{
	double sum = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += exp(x[i] - max);
	return sum;
}

static double maximum(const double *x, int64_t n)
{
	double max = -INFINITY;
	for (int64_t i = 0; i < n; i++)
		max = fmax(max, x[i]);
	return max;
}

/* `target` counts from this rank's first column; `ignored`: the row has no target at all. */
static void loss_grad_row(double *x, int64_t n, double max, double sum, int64_t target, bool ignored, double scale)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = ignored ? 0.0 : scale * (exp(x[i] - max) / sum - (i == target ? 1.0 : 0.0));
}

static REFERENCE(ref_loss)
{
	UNUSED();
	const int64_t V = op->d[1];
	const int32_t *targets = arg[1];
	for (int64_t t = 0; t < op->d[0]; t++) {
		double *x = (double *)arg[0] + t * V, max = maximum(x, V), sum = exp_sum(x, V, max);
		if (targets[t] >= 0)
			*(double *)arg[2] += env->loss_scale * (log(sum) + max - x[targets[t]]);
		loss_grad_row(x, V, max, sum, targets[t], targets[t] < 0, env->loss_scale);
	}
	return ST_OK;
}

static REFERENCE(ref_loss_max)
{
	UNUSED();
	for (int64_t t = 0; t < op->d[0]; t++)
		((double *)arg[1])[t] = maximum((double *)arg[0] + t * op->d[1], op->d[1]);
	return ST_OK;
}

static REFERENCE(ref_loss_sum)
{
	UNUSED();
	const int64_t V = op->d[1];
	const int32_t *targets = arg[1];
	const double *max = arg[2];
	double *sums = arg[3];
	for (int64_t t = 0; t < op->d[0]; t++) {
		const double *x = (double *)arg[0] + t * V;
		const int64_t target = targets[t] - env->tensor_coord * V;
		sums[t] = exp_sum(x, V, max[t]);
		sums[op->d[0] + t] = targets[t] >= 0 && target >= 0 && target < V ? x[target] - max[t] : 0.0;
	}
	return ST_OK;
}

static REFERENCE(ref_loss_grad)
{
	UNUSED();
	const int64_t V = op->d[1];
	const int32_t *targets = arg[1];
	const double *max = arg[2], *sums = arg[3];
	for (int64_t t = 0; t < op->d[0]; t++) {
		if (targets[t] >= 0)
			*(double *)arg[4] += env->loss_scale * (log(sums[t]) - sums[op->d[0] + t]);
		loss_grad_row((double *)arg[0] + t * V, V, max[t], sums[t], targets[t] - env->tensor_coord * V, targets[t] < 0, env->loss_scale);
	}
	return ST_OK;
}

/* ---- optimizer and memory ---- */

struct state {
	double w, g, *m, *v; /* m, v: NULL where absent */
};

static double adam_step(const struct state *x, double step, double decay)
{
	*x->m = (double)ADAM_BETA1 * *x->m + (1.0 - (double)ADAM_BETA1) * x->g;
	*x->v = (double)ADAM_BETA2 * *x->v + (1.0 - (double)ADAM_BETA2) * x->g * x->g;
	double m = *x->m / (1.0 - pow((double)ADAM_BETA1, step)), v = *x->v / (1.0 - pow((double)ADAM_BETA2, step));
	return x->w - (double)ADAM_LR * (decay * x->w + m / (sqrt(v) + (double)ADAM_EPS));
}

static double lion_step(const struct state *x)
{
	double c = (double)LION_BETA1 * *x->m + (1.0 - (double)LION_BETA1) * x->g;
	*x->m = (double)LION_BETA2 * *x->m + (1.0 - (double)LION_BETA2) * x->g;
	return x->w - (double)LION_LR * ((double)LION_DECAY * x->w + (c > 0.0) - (c < 0.0));
}

static double sgd_step(const struct state *x)
{
	if (!x->m)
		return x->w - (double)SGD_LR * x->g;
	*x->m = (double)SGD_MOMENTUM * *x->m + x->g;
	return x->w - (double)SGD_LR * *x->m;
}

static REFERENCE(ref_optimizer)
{
	if (op->mlp == OPT_LAMB || op->mlp == OPT_NONE)
		return error_set(e, ST_RUN, "the reference has no such optimizer");
	double *p = arg[0], *m = arg[2], *v = arg[3], *master = arg[4];
	for (int64_t i = 0; i < op->d[0]; i++) {
		struct state x = {master ? master[i] : p[i], ((double *)arg[1])[i], m ? m + i : NULL, v ? v + i : NULL};
		p[i] = op->mlp == OPT_LION ? lion_step(&x) : op->mlp == OPT_SGD ? sgd_step(&x) : adam_step(&x, (double)env->step, op->mlp == OPT_ADAMW ? (double)ADAMW_DECAY : 0.0);
		if (master)
			master[i] = p[i];
	}
	return ST_OK;
}

static REFERENCE(ref_fill)
{
	UNUSED();
	memset(arg[0], 0, (size_t)op->d[0] * sizeof(double));
	return ST_OK;
}

static REFERENCE(ref_cast)
{
	UNUSED();
	memmove(arg[1], arg[0], (size_t)op->d[0] * sizeof(double));
	return ST_OK;
}

static REFERENCE(ref_copy)
{
	UNUSED();
	memmove(arg[1], arg[0], (size_t)op->d[0]);
	return ST_OK;
}

/* ---- */

static reference_fn *const references[] = {
	[OP_GEMM] = ref_gemm,
	[OP_ATTENTION] = ref_attention,
	[OP_ATTENTION_GRAD] = ref_attention_grad,
	[OP_ATTENTION_PART] = ref_attention_part,
	[OP_ATTENTION_PART_GRAD] = ref_attention_part_grad,
	[OP_KV_PACK] = ref_kv_pack,
	[OP_KV_UNPACK] = ref_kv_unpack,
	[OP_ATTN_SCORES] = ref_attn_scores,
	[OP_ATTN_SOFTMAX] = ref_attn_softmax,
	[OP_ATTN_VALUES] = ref_attn_values,
	[OP_ATTN_VALUES_GRAD] = ref_attn_values_grad,
	[OP_ATTN_SOFTMAX_GRAD] = ref_attn_softmax_grad,
	[OP_ATTN_SCORES_GRAD] = ref_attn_scores_grad,
	[OP_ROPE] = ref_rope,
	[OP_NORM] = ref_norm,
	[OP_NORM_GRAD] = ref_norm_grad,
	[OP_ADD] = ref_add,
	[OP_ADD_NORM] = ref_add_norm,
	[OP_BIAS] = ref_bias,
	[OP_BIAS_GRAD] = ref_bias_grad,
	[OP_ACT] = ref_act,
	[OP_ACT_GRAD] = ref_act_grad,
	[OP_GATE_ACT] = ref_gate_act,
	[OP_GATE_MUL] = ref_gate_mul,
	[OP_GROUPED_GEMM] = ref_grouped_gemm,
	[OP_ROUTE] = ref_route,
	[OP_ROUTE_GRAD] = ref_route_grad,
	[OP_DISPATCH] = ref_dispatch,
	[OP_COMBINE] = ref_combine,
	[OP_COMBINE_GRAD] = ref_combine_grad,
	[OP_SWAP] = ref_swap,
	[OP_EMBED] = ref_embed,
	[OP_EMBED_GRAD] = ref_embed_grad,
	[OP_POSITION] = ref_position,
	[OP_POSITION_GRAD] = ref_position_grad,
	[OP_LOSS] = ref_loss,
	[OP_LOSS_MAX] = ref_loss_max,
	[OP_LOSS_SUM] = ref_loss_sum,
	[OP_LOSS_GRAD] = ref_loss_grad,
	[OP_OPTIMIZER] = ref_optimizer,
	[OP_FILL] = ref_fill,
	[OP_CAST] = ref_cast,
	[OP_COLLECTIVE] = NULL,
	[OP_COPY] = ref_copy,
	[OP_LOAD] = NULL, /* the host lane's, as the two below (exec/host_work.h) */
	[OP_PAUSE] = NULL,
	[OP_SYNC] = NULL,
};
static_assert(sizeof references / sizeof references[0] == OP_KIND_COUNT && OP_KIND_COUNT == 47, "a row for each op kind");

enum status reference_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS], struct error *e)
{
	if (!references[op->kind])
		return error_set(e, ST_RUN, "%s is no kernel", op_kind_info(op->kind)->name);
	return references[op->kind](env, op, arg, e);
}
