/* Dispatch and what all kernels share. */
#include "exec/host/kernels.h"

#include <assert.h>
#include <string.h>

#include "exec/host/kernels_private.h"

#define GRAIN 16384 /* elements: 64 KiB of fp32, several microseconds of memory traffic */

struct kernel {
	kernel_fn *run;
	scratch_fn *scratch; /* (optional), default none */
};

/* One row a kind: what runs it, and what says how much scratch that needs (NULL: none). No kernel: collectives are the
 * communicator's; LOAD, PAUSE and SYNC the host lane's (exec/host_work.h). */
#define KERNELS(ROW) \
	ROW(GEMM, kernel_gemm, NULL) \
	ROW(ATTENTION, kernel_attention, scratch_attention) \
	ROW(ATTENTION_GRAD, kernel_attention_grad, scratch_attention_grad) \
	ROW(ATTENTION_PART, kernel_attention_part, scratch_attention) \
	ROW(ATTENTION_PART_GRAD, kernel_attention_part_grad, scratch_attention_part_grad) \
	ROW(KV_PACK, kernel_kv_pack, NULL) \
	ROW(KV_UNPACK, kernel_kv_unpack, NULL) \
	ROW(ATTN_SCORES, kernel_attn_scores, NULL) \
	ROW(ATTN_SOFTMAX, kernel_attn_softmax, NULL) \
	ROW(ATTN_VALUES, kernel_attn_values, NULL) \
	ROW(ATTN_VALUES_GRAD, kernel_attn_values_grad, NULL) \
	ROW(ATTN_SOFTMAX_GRAD, kernel_attn_softmax_grad, NULL) \
	ROW(ATTN_SCORES_GRAD, kernel_attn_scores_grad, NULL) \
	ROW(ROPE, kernel_rope, scratch_rope) \
	ROW(ATTN_BIAS, kernel_attn_bias, NULL) \
	ROW(ATTN_BIAS_GRAD, kernel_attn_bias_grad, NULL) \
	ROW(RELATIVE_BIAS, kernel_relative_bias, NULL) \
	ROW(RELATIVE_BIAS_GRAD, kernel_relative_bias_grad, NULL) \
	ROW(ATTN_SINKS, kernel_attn_sinks, NULL) \
	ROW(ATTN_SINKS_GRAD, kernel_attn_sinks_grad, NULL) \
	ROW(SOFTCAP, kernel_softcap, NULL) \
	ROW(SOFTCAP_GRAD, kernel_softcap_grad, NULL) \
	ROW(LATENT_KEYS, kernel_latent_keys, NULL) \
	ROW(LATENT_KEYS_GRAD, kernel_latent_keys_grad, NULL) \
	ROW(QK_NORM, kernel_qk_norm, NULL) \
	ROW(QK_NORM_GRAD, kernel_qk_norm_grad, scratch_qk_norm_grad) \
	ROW(NORM, kernel_norm, NULL) \
	ROW(NORM_GRAD, kernel_norm_grad, scratch_norm_grad) \
	ROW(ADD, kernel_add, NULL) \
	ROW(ADD_NORM, kernel_add_norm, NULL) \
	ROW(BIAS, kernel_bias, NULL) \
	ROW(MODULATE, kernel_modulate, NULL) \
	ROW(MODULATE_GRAD, kernel_modulate_grad, NULL) \
	ROW(GATED_ADD, kernel_gated_add, NULL) \
	ROW(GATED_ADD_GRAD, kernel_gated_add_grad, NULL) \
	ROW(BIAS_GRAD, kernel_bias_grad, scratch_bias_grad) \
	ROW(ACT, kernel_act, NULL) \
	ROW(ACT_GRAD, kernel_act_grad, NULL) \
	ROW(WEIGHTED_ACT, kernel_weighted_act, NULL) \
	ROW(WEIGHTED_ACT_GRAD, kernel_weighted_act_grad, NULL) \
	ROW(GATE_ACT, kernel_gate_act, NULL) \
	ROW(GATE_MUL, kernel_gate_mul, NULL) \
	ROW(CONV, kernel_conv, scratch_conv) \
	ROW(CONV_DATA, kernel_conv_data, scratch_conv) \
	ROW(CONV_WEIGHT, kernel_conv_weight, scratch_conv) \
	ROW(BATCH_NORM, kernel_batch_norm, scratch_batch_norm) \
	ROW(BATCH_NORM_GRAD, kernel_batch_norm_grad, scratch_batch_norm) \
	ROW(MAX_POOL, kernel_max_pool, NULL) \
	ROW(MAX_POOL_GRAD, kernel_max_pool_grad, NULL) \
	ROW(MEAN_POOL, kernel_mean_pool, NULL) \
	ROW(MEAN_POOL_GRAD, kernel_mean_pool_grad, NULL) \
	ROW(SSM_CONV, kernel_ssm_conv, NULL) \
	ROW(SSM_CONV_GRAD, kernel_ssm_conv_grad, scratch_ssm_conv_grad) \
	ROW(SSM_SCAN, kernel_ssm_scan, scratch_ssm_scan) \
	ROW(SSM_SCAN_GRAD, kernel_ssm_scan_grad, scratch_ssm_scan_grad) \
	ROW(SSM_GATE, kernel_ssm_gate, NULL) \
	ROW(SSM_GATE_GRAD, kernel_ssm_gate_grad, scratch_ssm_gate_grad) \
	ROW(DELTA_SCAN, kernel_delta_scan, scratch_delta_scan) \
	ROW(DELTA_SCAN_GRAD, kernel_delta_scan_grad, scratch_delta_scan_grad) \
	ROW(KDA_SCAN, kernel_kda_scan, scratch_kda_scan) \
	ROW(KDA_SCAN_GRAD, kernel_kda_scan_grad, scratch_kda_scan_grad) \
	ROW(DELTA_GATE, kernel_delta_gate, NULL) \
	ROW(DELTA_GATE_GRAD, kernel_delta_gate_grad, scratch_delta_gate_grad) \
	ROW(SHORT_CONV, kernel_short_conv, NULL) \
	ROW(SHORT_CONV_GRAD, kernel_short_conv_grad, scratch_short_conv_grad) \
	ROW(SIGMOID_GATE, kernel_sigmoid_gate, NULL) \
	ROW(SIGMOID_GATE_GRAD, kernel_sigmoid_gate_grad, NULL) \
	ROW(GROUPED_GEMM, kernel_grouped_gemm, NULL) \
	ROW(ROUTE, kernel_route, scratch_route) \
	ROW(ROUTE_GRAD, kernel_route_grad, NULL) \
	ROW(DISPATCH, kernel_dispatch, NULL) \
	ROW(COMBINE, kernel_combine, NULL) \
	ROW(COMBINE_GRAD, kernel_combine_grad, NULL) \
	ROW(SWAP, kernel_swap, NULL) \
	ROW(EMBED, kernel_embed, NULL) \
	ROW(EMBED_GRAD, kernel_embed_grad, NULL) \
	ROW(POSITION, kernel_position, NULL) \
	ROW(POSITION_GRAD, kernel_position_grad, NULL) \
	ROW(PICK, kernel_pick, NULL) \
	ROW(PICK_GRAD, kernel_pick_grad, NULL) \
	ROW(PREPEND, kernel_prepend, NULL) \
	ROW(PREPEND_GRAD, kernel_prepend_grad, NULL) \
	ROW(LOSS, kernel_loss, scratch_loss) \
	ROW(LOSS_MAX, kernel_loss_max, NULL) \
	ROW(LOSS_SUM, kernel_loss_sum, NULL) \
	ROW(LOSS_GRAD, kernel_loss_grad, scratch_loss) \
	ROW(SQUARE_LOSS, kernel_square_loss, scratch_loss) \
	ROW(OPTIMIZER, kernel_optimizer, NULL) \
	ROW(LAMB_DIRECTION, kernel_lamb_direction, scratch_lamb_direction) \
	ROW(LAMB_STEP, kernel_lamb_step, NULL) \
	ROW(ADAFACTOR_SUMS, kernel_adafactor_sums, NULL) \
	ROW(ADAFACTOR_NORMS, kernel_adafactor_norms, scratch_adafactor_norms) \
	ROW(ADAFACTOR_STEP, kernel_adafactor_step, NULL) \
	ROW(MUON_DIRECTION, kernel_muon_direction, scratch_muon_direction) \
	ROW(MUON_MIX, kernel_muon_mix, NULL) \
	ROW(MUON_STEP, kernel_muon_step, NULL) \
	ROW(FILL, kernel_fill, NULL) \
	ROW(CAST, kernel_cast, NULL) \
	ROW(COLLECTIVE, NULL, NULL) \
	ROW(COPY, kernel_copy, NULL) \
	ROW(LOAD, NULL, NULL) \
	ROW(PAUSE, NULL, NULL) \
	ROW(SYNC, NULL, NULL)

static const struct kernel kernels[] = {
#define ROW(kind, run, scratch) [OP_##kind] = {run, scratch},
	KERNELS(ROW)};

enum { KERNELS(OP_HAS_ROW) };
#define OP(kind, ...) OP_NEEDS_ROW(kind)
#include "step/ops.def"

size_t host_kernel_scratch_B(const struct op *op, int threads)
{
	const struct kernel *k = &kernels[op->kind];
	return k->scratch ? k->scratch(op, threads > 1 ? threads : 1) : 0;
}

enum status host_kernel_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS],
	struct error *e)
{
	const struct kernel *k = &kernels[op->kind];
	if (!k->run)
		return error_set(e, ST_RUN, "%s is no kernel", op_kind_info(op->kind)->name);
	if (k->scratch && env->scratch_B < k->scratch(op, pool_threads(env->pool)))
		return error_set(e, ST_RUN, "%s needs %zu B of scratch, has %zu B", op_kind_info(op->kind)->name,
			k->scratch(op, pool_threads(env->pool)), env->scratch_B);
	return k->run(env, op, arg, e);
}

static int64_t grains(int64_t rows, int64_t cols)
{
	int64_t g = rows * cols / GRAIN;
	g = g < rows ? g : rows;
	return g > 1 ? g : 1;
}

int kernel_parts(const struct host_env *env, int64_t rows, int64_t cols)
{
	int threads = pool_threads(env->pool);
	int64_t most = threads > 1 ? (int64_t)threads * PARTS_PER_THREAD : 1, g = grains(rows, cols);
	return (int)(g < most ? g : most);
}

int kernel_parts_summed(const struct host_env *env, int64_t rows, int64_t cols)
{
	int64_t threads = pool_threads(env->pool), g = grains(rows, cols);
	return (int)(g < threads ? g : threads);
}

struct split {
	part_fn *fn;
	void *ctx;
	int64_t rows;
	int parts;
};

static void split_task(void *ctx, int64_t task, int thread)
{
	const struct split *s = ctx;
	s->fn(s->ctx, s->rows * task / s->parts, s->rows * (task + 1) / s->parts, (int)task, thread);
}

void kernel_split(const struct host_env *env, int parts, int64_t rows, part_fn *fn, void *ctx)
{
	struct split s = {fn, ctx, rows, parts};
	pool_run(env->pool, split_task, &s, parts);
}

void kernel_sum_parts(const float *partial, int parts, int64_t stride, int64_t n, float *db, bool accumulate)
{
	for (int p = 0; p < parts; p++, accumulate = true) {
		const float *restrict from = partial + p * stride;
		if (!accumulate)
			memcpy(db, from, (size_t)n * sizeof *db);
		else
			for (int64_t i = 0; i < n; i++)
				db[i] += from[i];
	}
}
