#include "exec/host/reference.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* ---- sums of rows ---- */

REFERENCE(ref_add)
{
	UNUSED();
	const double *x = arg[0], *y = arg[1], *bias = arg[2];
	double *sum = arg[3];
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++)
		sum[i] = x[i] + y[i] + (bias ? bias[i % op->matrix.cols] : 0.0);
	return ST_OK;
}

REFERENCE(ref_add_norm)
{
	ref_add(env, op, (void *const[]){arg[0], arg[1], arg[2], arg[5]}, e);
	return ref_norm(env, op, (void *const[]){arg[5], arg[3], arg[4], arg[6], arg[7]}, e);
}

/* ---- elementwise ---- */

REFERENCE(ref_bias)
{
	UNUSED();
	double *x = arg[0];
	const double *bias = arg[1];
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++)
		x[i] += bias[i % op->matrix.cols];
	return ST_OK;
}

REFERENCE(ref_bias_grad)
{
	UNUSED();
	const double *dy = arg[0];
	double *db = arg[1];
	for (int64_t i = 0; i < op->matrix.cols; i++) {
		double sum = op->flags & OP_ACCUMULATE ? db[i] : 0.0;
		for (int64_t r = 0; r < op->matrix.rows; r++)
			sum += dy[r * op->matrix.cols + i];
		db[i] = sum;
	}
	return ST_OK;
}

static double activation(int act, double x)
{
	switch (act) {
	case ACTIVATION_TANH: return tanh(x);
	case ACTIVATION_SILU: return x / (1.0 + exp(-x));
	case MLP_RELU: return fmax(x, 0.0);
	case MLP_SQUARED_RELU: return fmax(x, 0.0) * fmax(x, 0.0);
	case MLP_SWIGLU: return x / (1.0 + exp(-x));
	default: return 0.5 * x * (1.0 + tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
	}
}

static double activation_slope(int act, double x)
{
	double s = 1.0 / (1.0 + exp(-x)), t = tanh(sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
	switch (act) {
	case ACTIVATION_TANH: return 1.0 - tanh(x) * tanh(x);
	case ACTIVATION_SILU: return s * (1.0 + x * (1.0 - s));
	case MLP_RELU: return x > 0.0 ? 1.0 : 0.0;
	case MLP_SQUARED_RELU: return 2.0 * fmax(x, 0.0);
	case MLP_SWIGLU: return s * (1.0 + x * (1.0 - s));
	default: return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * sqrt(2.0 / M_PI) * (1.0 + 3.0 * 0.044715 * x * x);
	}
}

static bool is_gated(const struct op *op) { return op->mlp == MLP_SWIGLU || op->mlp == MLP_GEGLU; }

REFERENCE(ref_act)
{
	UNUSED();
	const int64_t f = op->matrix.cols, width = is_gated(op) ? 2 * f : f;
	for (int64_t i = 0; i < op->matrix.rows * f; i++) {
		const double *x = (double *)arg[0] + i / f * width + i % f;
		((double *)arg[1])[i] = activation(op->mlp, x[0]) * (is_gated(op) ? x[f] : 1.0);
	}
	return ST_OK;
}

REFERENCE(ref_act_grad)
{
	UNUSED();
	const int64_t f = op->matrix.cols, width = is_gated(op) ? 2 * f : f;
	const double *dy = arg[1];
	for (int64_t i = 0; i < op->matrix.rows * f; i++) {
		const double *x = (double *)arg[0] + i / f * width + i % f;
		double *dx = (double *)arg[2] + i / f * width + i % f, up = is_gated(op) ? x[f] : 1.0, gate = x[0],
		       d = dy[i];
		dx[0] = d * up * activation_slope(op->mlp, gate);
		if (is_gated(op))
			dx[f] = d * activation(op->mlp, gate);
	}
	return ST_OK;
}

REFERENCE(ref_weighted_act)
{
	enum status st = ref_act(env, op, (void *const[]){arg[0], arg[2]}, e);
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++)
		((double *)arg[2])[i] *= ((double *)arg[1])[i / op->matrix.cols];
	return st;
}

REFERENCE(ref_weighted_act_grad)
{
	UNUSED();
	const int64_t f = op->matrix.cols, width = is_gated(op) ? 2 * f : f;
	const double *weights = arg[1], *dy = arg[2];
	double *dweights = arg[4];
	memset(dweights, 0, (size_t)op->matrix.rows * sizeof *dweights);
	for (int64_t i = 0; i < op->matrix.rows * f; i++) {
		const int64_t at = i / f * width + i % f;
		const double *x = (double *)arg[0] + at, up = is_gated(op) ? x[f] : 1.0, d = dy[i] * weights[i / f];
		double *dx = (double *)arg[3] + at;
		dweights[i / f] += dy[i] * activation(op->mlp, x[0]) * up;
		dx[0] = d * up * activation_slope(op->mlp, x[0]);
		if (is_gated(op))
			dx[f] = d * activation(op->mlp, x[0]);
	}
	return ST_OK;
}

REFERENCE(ref_gate_act)
{
	UNUSED();
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++)
		((double *)arg[1])[i] = activation(op->mlp,
			((double *)arg[0])[i / op->matrix.cols * 2 * op->matrix.cols + i % op->matrix.cols]);
	return ST_OK;
}

REFERENCE(ref_gate_mul)
{
	UNUSED();
	for (int64_t i = 0; i < op->matrix.rows * op->matrix.cols; i++)
		((double *)arg[2])[i] = ((double *)arg[1])[i] *
		                        ((double *)arg[0])[i / op->matrix.cols * 2 * op->matrix.cols + op->matrix.cols +
							   i % op->matrix.cols];
	return ST_OK;
}

/* ---- embeddings ---- */

/* Row of this rank's table, -1: another rank's. */
static int64_t table_row(const struct host_env *env, const struct op *op, int64_t token)
{
	int64_t row = token - (op->flags & OP_VOCAB_PARALLEL ? env->tensor_coord * op->embed.table_rows : 0);
	return row >= 0 && row < op->embed.table_rows ? row : -1;
}

REFERENCE(ref_embed)
{
	UNUSED();
	for (int64_t i = 0; i < op->embed.rows * op->embed.cols; i++) {
		int64_t row = table_row(env, op, ((int32_t *)arg[0])[i / op->embed.cols]);
		((double *)arg[2])[i] = row < 0 ? 0.0 : ((double *)arg[1])[row * op->embed.cols + i % op->embed.cols];
	}
	return ST_OK;
}

REFERENCE(ref_embed_grad)
{
	UNUSED();
	for (int64_t i = 0; i < op->embed.rows * op->embed.cols; i++) {
		int64_t row = table_row(env, op, ((int32_t *)arg[0])[i / op->embed.cols]);
		if (row >= 0)
			((double *)arg[2])[row * op->embed.cols + i % op->embed.cols] += ((double *)arg[1])[i];
	}
	return ST_OK;
}

/* Element of the position table that belongs to element i of the activations. */
static int64_t position_element(const struct host_env *env, const struct op *op, int64_t i)
{
	int64_t token = i / op->embed.cols +
	                (op->flags & OP_SEQUENCE_PARALLEL ? env->tensor_coord * op->embed.rows : 0);
	const int64_t s = op->embed.table_rows / cut_ranks(&env->cut);
	return cut_position(&env->cut, s, token % s) * op->embed.cols + i % op->embed.cols;
}

REFERENCE(ref_position)
{
	UNUSED();
	const double *w = arg[0], *type = arg[1];
	for (int64_t i = 0; i < op->embed.rows * op->embed.cols; i++)
		((double *)arg[2])[i] += (w ? w[position_element(env, op, i)] : 0.0) +
		                         (type ? type[i % op->embed.cols] : 0.0);
	return ST_OK;
}

REFERENCE(ref_position_grad)
{
	UNUSED();
	double *dw = arg[1], *dtype = arg[2];
	for (int64_t i = 0; i < op->embed.rows * op->embed.cols; i++) {
		if (dw)
			dw[position_element(env, op, i)] += ((double *)arg[0])[i];
		if (dtype)
			dtype[i % op->embed.cols] += ((double *)arg[0])[i];
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

REFERENCE(ref_loss)
{
	UNUSED();
	const int64_t V = op->loss.cols;
	const double scale = env->loss_scale * (double)(1 + op->loss.more);
	const int32_t *targets = arg[1];
	for (int64_t t = 0; t < op->loss.rows; t++) {
		double *x = (double *)arg[0] + t * V, max = maximum(x, V), sum = exp_sum(x, V, max);
		if (targets[t] >= 0)
			*(double *)arg[2] += scale * (log(sum) + max - x[targets[t]]);
		loss_grad_row(x, V, max, sum, targets[t], targets[t] < 0, scale);
	}
	return ST_OK;
}

REFERENCE(ref_loss_max)
{
	UNUSED();
	for (int64_t t = 0; t < op->matrix.rows; t++)
		((double *)arg[1])[t] = maximum((double *)arg[0] + t * op->matrix.cols, op->matrix.cols);
	return ST_OK;
}

REFERENCE(ref_loss_sum)
{
	UNUSED();
	const int64_t V = op->matrix.cols;
	const int32_t *targets = arg[1];
	const double *max = arg[2];
	double *sums = arg[3];
	for (int64_t t = 0; t < op->matrix.rows; t++) {
		const double *x = (double *)arg[0] + t * V;
		const int64_t target = targets[t] - env->tensor_coord * V;
		sums[t] = exp_sum(x, V, max[t]);
		sums[op->matrix.rows + t] = targets[t] >= 0 && target >= 0 && target < V ? x[target] - max[t] : 0.0;
	}
	return ST_OK;
}

REFERENCE(ref_loss_grad)
{
	UNUSED();
	const int64_t V = op->matrix.cols;
	const int32_t *targets = arg[1];
	const double *max = arg[2], *sums = arg[3];
	for (int64_t t = 0; t < op->matrix.rows; t++) {
		if (targets[t] >= 0)
			*(double *)arg[4] += env->loss_scale * (log(sums[t]) - sums[op->matrix.rows + t]);
		loss_grad_row((double *)arg[0] + t * V, V, max[t], sums[t], targets[t] - env->tensor_coord * V,
			targets[t] < 0, env->loss_scale);
	}
	return ST_OK;
}

/* ---- memory ---- */

REFERENCE(ref_fill)
{
	UNUSED();
	memset(arg[0], 0, (size_t)op->vector.elements * sizeof(double));
	return ST_OK;
}

REFERENCE(ref_cast)
{
	UNUSED();
	memmove(arg[1], arg[0], (size_t)op->vector.elements * sizeof(double));
	return ST_OK;
}

REFERENCE(ref_copy)
{
	UNUSED();
	memmove(arg[1], arg[0], (size_t)op->copy.bytes);
	return ST_OK;
}

/* ---- the table ---- */

/* One row a kind. No kernel: collectives are the communicator's; LOAD, PAUSE and SYNC the host lane's
 * (exec/host_work.h). */
#define REFERENCES(ROW) \
	ROW(GEMM, ref_gemm) \
	ROW(ATTENTION, ref_attention) \
	ROW(ATTENTION_GRAD, ref_attention_grad) \
	ROW(ATTENTION_PART, ref_attention_part) \
	ROW(ATTENTION_PART_GRAD, ref_attention_part_grad) \
	ROW(KV_PACK, ref_kv_pack) \
	ROW(KV_UNPACK, ref_kv_unpack) \
	ROW(ATTN_SCORES, ref_attn_scores) \
	ROW(ATTN_SOFTMAX, ref_attn_softmax) \
	ROW(ATTN_VALUES, ref_attn_values) \
	ROW(ATTN_VALUES_GRAD, ref_attn_values_grad) \
	ROW(ATTN_SOFTMAX_GRAD, ref_attn_softmax_grad) \
	ROW(ATTN_SCORES_GRAD, ref_attn_scores_grad) \
	ROW(ROPE, ref_rope) \
	ROW(ATTN_BIAS, ref_attn_bias) \
	ROW(ATTN_BIAS_GRAD, ref_attn_bias_grad) \
	ROW(RELATIVE_BIAS, ref_relative_bias) \
	ROW(RELATIVE_BIAS_GRAD, ref_relative_bias_grad) \
	ROW(ATTN_SINKS, ref_attn_sinks) \
	ROW(ATTN_SINKS_GRAD, ref_attn_sinks_grad) \
	ROW(SOFTCAP, ref_softcap) \
	ROW(SOFTCAP_GRAD, ref_softcap_grad) \
	ROW(LATENT_KEYS, ref_latent_keys) \
	ROW(LATENT_KEYS_GRAD, ref_latent_keys_grad) \
	ROW(QK_NORM, ref_qk_norm) \
	ROW(QK_NORM_GRAD, ref_qk_norm_grad) \
	ROW(NORM, ref_norm) \
	ROW(NORM_GRAD, ref_norm_grad) \
	ROW(ADD, ref_add) \
	ROW(ADD_NORM, ref_add_norm) \
	ROW(BIAS, ref_bias) \
	ROW(MODULATE, ref_modulate) \
	ROW(MODULATE_GRAD, ref_modulate_grad) \
	ROW(GATED_ADD, ref_gated_add) \
	ROW(GATED_ADD_GRAD, ref_gated_add_grad) \
	ROW(BIAS_GRAD, ref_bias_grad) \
	ROW(ACT, ref_act) \
	ROW(ACT_GRAD, ref_act_grad) \
	ROW(WEIGHTED_ACT, ref_weighted_act) \
	ROW(WEIGHTED_ACT_GRAD, ref_weighted_act_grad) \
	ROW(GATE_ACT, ref_gate_act) \
	ROW(GATE_MUL, ref_gate_mul) \
	ROW(CONV, ref_conv) \
	ROW(CONV_DATA, ref_conv_data) \
	ROW(CONV_WEIGHT, ref_conv_weight) \
	ROW(BATCH_NORM, ref_batch_norm) \
	ROW(BATCH_NORM_GRAD, ref_batch_norm_grad) \
	ROW(MAX_POOL, ref_max_pool) \
	ROW(MAX_POOL_GRAD, ref_max_pool_grad) \
	ROW(MEAN_POOL, ref_mean_pool) \
	ROW(MEAN_POOL_GRAD, ref_mean_pool_grad) \
	ROW(SSM_CONV, ref_ssm_conv) \
	ROW(SSM_CONV_GRAD, ref_ssm_conv_grad) \
	ROW(SSM_SCAN, ref_ssm_scan) \
	ROW(SSM_SCAN_GRAD, ref_ssm_scan_grad) \
	ROW(SSM_GATE, ref_ssm_gate) \
	ROW(SSM_GATE_GRAD, ref_ssm_gate_grad) \
	ROW(DELTA_SCAN, ref_delta_scan) \
	ROW(DELTA_SCAN_GRAD, ref_delta_scan_grad) \
	ROW(KDA_SCAN, ref_kda_scan) \
	ROW(KDA_SCAN_GRAD, ref_kda_scan_grad) \
	ROW(DELTA_GATE, ref_delta_gate) \
	ROW(DELTA_GATE_GRAD, ref_delta_gate_grad) \
	ROW(SHORT_CONV, ref_short_conv) \
	ROW(SHORT_CONV_GRAD, ref_short_conv_grad) \
	ROW(SIGMOID_GATE, ref_sigmoid_gate) \
	ROW(SIGMOID_GATE_GRAD, ref_sigmoid_gate_grad) \
	ROW(GROUPED_GEMM, ref_grouped_gemm) \
	ROW(ROUTE, ref_route) \
	ROW(ROUTE_GRAD, ref_route_grad) \
	ROW(DISPATCH, ref_dispatch) \
	ROW(COMBINE, ref_combine) \
	ROW(COMBINE_GRAD, ref_combine_grad) \
	ROW(SWAP, ref_swap) \
	ROW(EMBED, ref_embed) \
	ROW(EMBED_GRAD, ref_embed_grad) \
	ROW(POSITION, ref_position) \
	ROW(POSITION_GRAD, ref_position_grad) \
	ROW(PICK, ref_pick) \
	ROW(PICK_GRAD, ref_pick_grad) \
	ROW(PREPEND, ref_prepend) \
	ROW(PREPEND_GRAD, ref_prepend_grad) \
	ROW(LOSS, ref_loss) \
	ROW(LOSS_MAX, ref_loss_max) \
	ROW(LOSS_SUM, ref_loss_sum) \
	ROW(LOSS_GRAD, ref_loss_grad) \
	ROW(SQUARE_LOSS, ref_square_loss) \
	ROW(OPTIMIZER, ref_optimizer) \
	ROW(LAMB_DIRECTION, ref_lamb_direction) \
	ROW(LAMB_STEP, ref_lamb_step) \
	ROW(ADAFACTOR_SUMS, ref_adafactor_sums) \
	ROW(ADAFACTOR_NORMS, ref_adafactor_norms) \
	ROW(ADAFACTOR_STEP, ref_adafactor_step) \
	ROW(MUON_DIRECTION, ref_muon_direction) \
	ROW(MUON_MIX, ref_muon_mix) \
	ROW(MUON_STEP, ref_muon_step) \
	ROW(FILL, ref_fill) \
	ROW(CAST, ref_cast) \
	ROW(COLLECTIVE, NULL) \
	ROW(COPY, ref_copy) \
	ROW(LOAD, NULL) \
	ROW(PAUSE, NULL) \
	ROW(SYNC, NULL)

static reference_fn *const references[] = {
#define ROW(kind, run) [OP_##kind] = run,
	REFERENCES(ROW)};

enum { REFERENCES(OP_HAS_ROW) };
#define OP(kind, ...) OP_NEEDS_ROW(kind)
#include "step/ops.def"

enum status reference_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS],
	struct error *e)
{
	if (!references[op->kind])
		return error_set(e, ST_RUN, "%s is no kernel", op_kind_info(op->kind)->name);
	return references[op->kind](env, op, arg, e);
}
