#include "exec/cuda/kernels.h"

#include <assert.h>

struct cuda_kernel {
	cuda_launcher *launch;
	size_t (*scratch_B)(const struct op *op); /* (optional), default none */
};

/* Matrix products, and the products of naive attention, are gemm.c's; collectives and copies are no kernels. */
static const struct cuda_kernel kernels[] = {
	[OP_ATTENTION] = {launch_attention, NULL},
	[OP_ATTENTION_GRAD] = {launch_attention_grad, NULL},
	[OP_ATTENTION_PART] = {launch_attention_part, NULL},
	[OP_ATTENTION_PART_GRAD] = {launch_attention_part_grad, NULL},
	[OP_KV_PACK] = {launch_kv_pack, NULL},
	[OP_KV_UNPACK] = {launch_kv_unpack, NULL},
	[OP_ATTN_SOFTMAX] = {launch_attn_softmax, NULL},
	[OP_ATTN_SOFTMAX_GRAD] = {launch_attn_softmax_grad, NULL},
	[OP_ROPE] = {launch_rope, NULL},
	[OP_NORM] = {launch_norm, NULL},
	[OP_NORM_GRAD] = {launch_norm_grad, cuda_scratch_norm_grad_B},
	[OP_ADD] = {launch_add, NULL},
	[OP_ADD_NORM] = {launch_add_norm, NULL},
	[OP_BIAS] = {launch_bias, NULL},
	[OP_BIAS_GRAD] = {launch_bias_grad, cuda_scratch_bias_grad_B},
	[OP_ACT] = {launch_act, NULL},
	[OP_ACT_GRAD] = {launch_act_grad, NULL},
	[OP_GATE_ACT] = {launch_gate_act, NULL},
	[OP_GATE_MUL] = {launch_gate_mul, NULL},
	[OP_ROUTE] = {launch_route, NULL},
	[OP_ROUTE_GRAD] = {launch_route_grad, NULL},
	[OP_DISPATCH] = {launch_dispatch, NULL},
	[OP_COMBINE] = {launch_combine, NULL},
	[OP_COMBINE_GRAD] = {launch_combine_grad, NULL},
	[OP_SWAP] = {launch_swap, NULL},
	[OP_EMBED] = {launch_embed, NULL},
	[OP_EMBED_GRAD] = {launch_embed_grad, NULL},
	[OP_POSITION] = {launch_position, NULL},
	[OP_POSITION_GRAD] = {launch_position_grad, cuda_scratch_position_grad_B},
	[OP_LOSS] = {launch_loss, NULL},
	[OP_LOSS_MAX] = {launch_loss_max, NULL},
	[OP_LOSS_SUM] = {launch_loss_sum, NULL},
	[OP_LOSS_GRAD] = {launch_loss_grad, NULL},
	[OP_OPTIMIZER] = {launch_optimizer, cuda_scratch_optimizer_B},
	[OP_FILL] = {launch_fill, NULL},
	[OP_CAST] = {launch_cast, NULL},
	[OP_COPY] = {NULL, NULL},
	[OP_LOAD] = {NULL, NULL},
	[OP_PAUSE] = {NULL, NULL},
	[OP_SYNC] = {NULL, NULL},
};
static_assert(sizeof kernels / sizeof kernels[0] == OP_KIND_COUNT, "a row for each kind of op");

size_t cuda_scratch_B(const struct op *op)
{
	const struct cuda_kernel *k = &kernels[op->kind];
	return k->scratch_B ? k->scratch_B(op) : 0;
}

enum status cuda_kernel_run(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct cuda_kernel *k = &kernels[op->kind];
	return k->launch ? k->launch(env, op, arg, e) : error_set(e, ST_RUN, "%s is no kernel of the GPU's", op_kind_info((enum op_kind)op->kind)->name);
}
