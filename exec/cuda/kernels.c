#include "exec/cuda/kernels.h"

#include <assert.h>

/* Matrix products, and the products of naive attention, are gemm.c's; collectives and copies are no kernels. */
static cuda_launcher *const launchers[] = {
	[OP_ATTENTION] = launch_attention, [OP_ATTENTION_GRAD] = launch_attention_grad, [OP_ATTN_SOFTMAX] = launch_attn_softmax, [OP_ATTN_SOFTMAX_GRAD] = launch_attn_softmax_grad,
	[OP_ROPE] = launch_rope, [OP_NORM] = launch_norm, [OP_NORM_GRAD] = launch_norm_grad, [OP_ADD] = launch_add, [OP_ADD_NORM] = launch_add_norm,
	[OP_BIAS] = launch_bias, [OP_BIAS_GRAD] = launch_bias_grad, [OP_ACT] = launch_act, [OP_ACT_GRAD] = launch_act_grad, [OP_GATE_ACT] = launch_gate_act, [OP_GATE_MUL] = launch_gate_mul,
	[OP_EMBED] = launch_embed, [OP_EMBED_GRAD] = launch_embed_grad, [OP_POSITION] = launch_position, [OP_POSITION_GRAD] = launch_position_grad,
	[OP_LOSS] = launch_loss, [OP_LOSS_MAX] = launch_loss_max, [OP_LOSS_SUM] = launch_loss_sum, [OP_LOSS_GRAD] = launch_loss_grad,
	[OP_OPTIMIZER] = launch_optimizer, [OP_FILL] = launch_fill, [OP_CAST] = launch_cast,
	[OP_COPY] = NULL,
};
static_assert(sizeof launchers / sizeof launchers[0] == OP_KIND_COUNT, "a row for each kind of op");

enum status cuda_kernel_run(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	cuda_launcher *launch = launchers[op->kind];
	return launch ? launch(env, op, arg, e) : error_set(e, ST_RUN, "%s is no kernel of the GPU's", op_kind_info(op->kind)->name);
}
