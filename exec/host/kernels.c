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

static const struct kernel kernels[] = {
	[OP_GEMM] = {kernel_gemm, NULL},
	[OP_ATTENTION] = {kernel_attention, scratch_attention},
	[OP_ATTENTION_GRAD] = {kernel_attention_grad, scratch_attention_grad},
	[OP_ATTENTION_PART] = {kernel_attention_part, scratch_attention},
	[OP_ATTENTION_PART_GRAD] = {kernel_attention_part_grad, scratch_attention_part_grad},
	[OP_KV_PACK] = {kernel_kv_pack, NULL},
	[OP_KV_UNPACK] = {kernel_kv_unpack, NULL},
	[OP_ATTN_SCORES] = {kernel_attn_scores, NULL},
	[OP_ATTN_SOFTMAX] = {kernel_attn_softmax, NULL},
	[OP_ATTN_VALUES] = {kernel_attn_values, NULL},
	[OP_ATTN_VALUES_GRAD] = {kernel_attn_values_grad, NULL},
	[OP_ATTN_SOFTMAX_GRAD] = {kernel_attn_softmax_grad, NULL},
	[OP_ATTN_SCORES_GRAD] = {kernel_attn_scores_grad, NULL},
	[OP_ROPE] = {kernel_rope, scratch_rope},
	[OP_NORM] = {kernel_norm, NULL},
	[OP_NORM_GRAD] = {kernel_norm_grad, scratch_norm_grad},
	[OP_ADD] = {kernel_add, NULL},
	[OP_ADD_NORM] = {kernel_add_norm, NULL},
	[OP_BIAS] = {kernel_bias, NULL},
	[OP_BIAS_GRAD] = {kernel_bias_grad, scratch_bias_grad},
	[OP_ACT] = {kernel_act, NULL},
	[OP_ACT_GRAD] = {kernel_act_grad, NULL},
	[OP_GATE_ACT] = {kernel_gate_act, NULL},
	[OP_GATE_MUL] = {kernel_gate_mul, NULL},
	[OP_GROUPED_GEMM] = {kernel_grouped_gemm, NULL},
	[OP_ROUTE] = {kernel_route, scratch_route},
	[OP_ROUTE_GRAD] = {kernel_route_grad, NULL},
	[OP_DISPATCH] = {kernel_dispatch, NULL},
	[OP_COMBINE] = {kernel_combine, NULL},
	[OP_COMBINE_GRAD] = {kernel_combine_grad, NULL},
	[OP_SWAP] = {kernel_swap, NULL},
	[OP_EMBED] = {kernel_embed, NULL},
	[OP_EMBED_GRAD] = {kernel_embed_grad, NULL},
	[OP_POSITION] = {kernel_position, NULL},
	[OP_POSITION_GRAD] = {kernel_position_grad, NULL},
	[OP_LOSS] = {kernel_loss, scratch_loss},
	[OP_LOSS_MAX] = {kernel_loss_max, NULL},
	[OP_LOSS_SUM] = {kernel_loss_sum, NULL},
	[OP_LOSS_GRAD] = {kernel_loss_grad, scratch_loss},
	[OP_OPTIMIZER] = {kernel_optimizer, NULL},
	[OP_FILL] = {kernel_fill, NULL},
	[OP_CAST] = {kernel_cast, NULL},
	[OP_COLLECTIVE] = {NULL, NULL}, /* the communicator's */
	[OP_COPY] = {kernel_copy, NULL},
	[OP_LOAD] = {NULL, NULL}, /* the host lane's, as the two below (exec/host_work.h) */
	[OP_PAUSE] = {NULL, NULL},
	[OP_SYNC] = {NULL, NULL},
};
static_assert(sizeof kernels / sizeof kernels[0] == OP_KIND_COUNT && OP_KIND_COUNT == 47, "a row for each op kind");

size_t host_kernel_scratch_B(const struct op *op, int threads)
{
	const struct kernel *k = &kernels[op->kind];
	return k->scratch ? k->scratch(op, threads > 1 ? threads : 1) : 0;
}

enum status host_kernel_run(const struct host_env *env, const struct op *op, void *const arg[OP_MAX_ARGS], struct error *e)
{
	const struct kernel *k = &kernels[op->kind];
	if (!k->run)
		return error_set(e, ST_RUN, "%s is no kernel", op_kind_info(op->kind)->name);
	if (k->scratch && env->scratch_B < k->scratch(op, pool_threads(env->pool)))
		return error_set(e, ST_RUN, "%s needs %zu B of scratch, has %zu B", op_kind_info(op->kind)->name, k->scratch(op, pool_threads(env->pool)), env->scratch_B);
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
