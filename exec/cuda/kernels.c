#include "exec/cuda/kernels.h"

#include <assert.h>

struct cuda_kernel {
	enum cuda_way way;
	cuda_launcher *launch;                    /* of CUDA_KERNEL, and of CUDA_ATTENTION where cuDNN has no graph */
	size_t (*scratch_B)(const struct op *op); /* (optional), default none */
};

/* One row a kind: how it is done, its launcher, and its scratch. CUDA_NONE: collectives are the communicator's; LOAD,
 * PAUSE and SYNC the host lane's (exec/host_work.h); QK_NORM, LATENT_KEYS, ATTN_BIAS, RELATIVE_BIAS, ATTN_SINKS,
 * SOFTCAP, SSM_*, DELTA_*, KDA_*, SHORT_CONV*, SIGMOID_GATE*, WEIGHTED_ACT*, MUON_*, ADAFACTOR_*, PICK*, PREPEND*,
 * MODULATE*, GATED_ADD*, SQUARE_LOSS and what convolutional networks need are executed on cores alone
 * (runner_supports). */
#define KERNELS(ROW) \
	ROW(GEMM, PRODUCT, NULL, NULL) \
	ROW(ATTENTION, ATTENTION, launch_attention, NULL) \
	ROW(ATTENTION_GRAD, ATTENTION, launch_attention_grad, NULL) \
	ROW(ATTENTION_PART, KERNEL, launch_attention_part, NULL) \
	ROW(ATTENTION_PART_GRAD, KERNEL, launch_attention_part_grad, NULL) \
	ROW(KV_PACK, KERNEL, launch_kv_pack, NULL) \
	ROW(KV_UNPACK, KERNEL, launch_kv_unpack, NULL) \
	ROW(ATTN_SCORES, NAIVE_PRODUCT, NULL, NULL) \
	ROW(ATTN_SOFTMAX, KERNEL, launch_attn_softmax, NULL) \
	ROW(ATTN_VALUES, NAIVE_PRODUCT, NULL, NULL) \
	ROW(ATTN_VALUES_GRAD, NAIVE_PRODUCT, NULL, NULL) \
	ROW(ATTN_SOFTMAX_GRAD, KERNEL, launch_attn_softmax_grad, NULL) \
	ROW(ATTN_SCORES_GRAD, NAIVE_PRODUCT, NULL, NULL) \
	ROW(ROPE, KERNEL, launch_rope, NULL) \
	ROW(ATTN_BIAS, NONE, NULL, NULL) \
	ROW(ATTN_BIAS_GRAD, NONE, NULL, NULL) \
	ROW(RELATIVE_BIAS, NONE, NULL, NULL) \
	ROW(RELATIVE_BIAS_GRAD, NONE, NULL, NULL) \
	ROW(ATTN_SINKS, NONE, NULL, NULL) \
	ROW(ATTN_SINKS_GRAD, NONE, NULL, NULL) \
	ROW(SOFTCAP, NONE, NULL, NULL) \
	ROW(SOFTCAP_GRAD, NONE, NULL, NULL) \
	ROW(LATENT_KEYS, NONE, NULL, NULL) \
	ROW(LATENT_KEYS_GRAD, NONE, NULL, NULL) \
	ROW(QK_NORM, NONE, NULL, NULL) \
	ROW(QK_NORM_GRAD, NONE, NULL, NULL) \
	ROW(NORM, KERNEL, launch_norm, NULL) \
	ROW(NORM_GRAD, KERNEL, launch_norm_grad, cuda_scratch_norm_grad_B) \
	ROW(ADD, KERNEL, launch_add, NULL) \
	ROW(ADD_NORM, KERNEL, launch_add_norm, NULL) \
	ROW(BIAS, KERNEL, launch_bias, NULL) \
	ROW(MODULATE, NONE, NULL, NULL) \
	ROW(MODULATE_GRAD, NONE, NULL, NULL) \
	ROW(GATED_ADD, NONE, NULL, NULL) \
	ROW(GATED_ADD_GRAD, NONE, NULL, NULL) \
	ROW(BIAS_GRAD, KERNEL, launch_bias_grad, cuda_scratch_bias_grad_B) \
	ROW(ACT, KERNEL, launch_act, NULL) \
	ROW(ACT_GRAD, KERNEL, launch_act_grad, NULL) \
	ROW(WEIGHTED_ACT, NONE, NULL, NULL) \
	ROW(WEIGHTED_ACT_GRAD, NONE, NULL, NULL) \
	ROW(GATE_ACT, KERNEL, launch_gate_act, NULL) \
	ROW(GATE_MUL, KERNEL, launch_gate_mul, NULL) \
	ROW(CONV, NONE, NULL, NULL) \
	ROW(CONV_DATA, NONE, NULL, NULL) \
	ROW(CONV_WEIGHT, NONE, NULL, NULL) \
	ROW(BATCH_NORM, NONE, NULL, NULL) \
	ROW(BATCH_NORM_GRAD, NONE, NULL, NULL) \
	ROW(MAX_POOL, NONE, NULL, NULL) \
	ROW(MAX_POOL_GRAD, NONE, NULL, NULL) \
	ROW(MEAN_POOL, NONE, NULL, NULL) \
	ROW(MEAN_POOL_GRAD, NONE, NULL, NULL) \
	ROW(SSM_CONV, NONE, NULL, NULL) \
	ROW(SSM_CONV_GRAD, NONE, NULL, NULL) \
	ROW(SSM_SCAN, NONE, NULL, NULL) \
	ROW(SSM_SCAN_GRAD, NONE, NULL, NULL) \
	ROW(SSM_GATE, NONE, NULL, NULL) \
	ROW(SSM_GATE_GRAD, NONE, NULL, NULL) \
	ROW(DELTA_SCAN, NONE, NULL, NULL) \
	ROW(DELTA_SCAN_GRAD, NONE, NULL, NULL) \
	ROW(KDA_SCAN, NONE, NULL, NULL) \
	ROW(KDA_SCAN_GRAD, NONE, NULL, NULL) \
	ROW(DELTA_GATE, NONE, NULL, NULL) \
	ROW(DELTA_GATE_GRAD, NONE, NULL, NULL) \
	ROW(SHORT_CONV, NONE, NULL, NULL) \
	ROW(SHORT_CONV_GRAD, NONE, NULL, NULL) \
	ROW(SIGMOID_GATE, NONE, NULL, NULL) \
	ROW(SIGMOID_GATE_GRAD, NONE, NULL, NULL) \
	ROW(GROUPED_GEMM, PRODUCT, NULL, NULL) \
	ROW(ROUTE, KERNEL, launch_route, NULL) \
	ROW(ROUTE_GRAD, KERNEL, launch_route_grad, NULL) \
	ROW(DISPATCH, KERNEL, launch_dispatch, NULL) \
	ROW(COMBINE, KERNEL, launch_combine, NULL) \
	ROW(COMBINE_GRAD, KERNEL, launch_combine_grad, NULL) \
	ROW(SWAP, KERNEL, launch_swap, NULL) \
	ROW(EMBED, KERNEL, launch_embed, NULL) \
	ROW(EMBED_GRAD, KERNEL, launch_embed_grad, NULL) \
	ROW(POSITION, KERNEL, launch_position, NULL) \
	ROW(POSITION_GRAD, KERNEL, launch_position_grad, cuda_scratch_position_grad_B) \
	ROW(PICK, NONE, NULL, NULL) \
	ROW(PICK_GRAD, NONE, NULL, NULL) \
	ROW(PREPEND, NONE, NULL, NULL) \
	ROW(PREPEND_GRAD, NONE, NULL, NULL) \
	ROW(LOSS, KERNEL, launch_loss, NULL) \
	ROW(LOSS_MAX, KERNEL, launch_loss_max, NULL) \
	ROW(LOSS_SUM, KERNEL, launch_loss_sum, NULL) \
	ROW(LOSS_GRAD, KERNEL, launch_loss_grad, NULL) \
	ROW(SQUARE_LOSS, NONE, NULL, NULL) \
	ROW(OPTIMIZER, KERNEL, launch_optimizer, cuda_scratch_optimizer_B) \
	ROW(LAMB_DIRECTION, KERNEL, launch_lamb_direction, cuda_scratch_lamb_direction_B) \
	ROW(LAMB_STEP, KERNEL, launch_lamb_step, NULL) \
	ROW(ADAFACTOR_SUMS, NONE, NULL, NULL) \
	ROW(ADAFACTOR_NORMS, NONE, NULL, NULL) \
	ROW(ADAFACTOR_STEP, NONE, NULL, NULL) \
	ROW(MUON_DIRECTION, NONE, NULL, NULL) \
	ROW(MUON_MIX, NONE, NULL, NULL) \
	ROW(MUON_STEP, NONE, NULL, NULL) \
	ROW(FILL, KERNEL, launch_fill, NULL) \
	ROW(CAST, KERNEL, launch_cast, NULL) \
	ROW(COLLECTIVE, NONE, NULL, NULL) \
	ROW(COPY, COPY, NULL, NULL) \
	ROW(LOAD, NONE, NULL, NULL) \
	ROW(PAUSE, NONE, NULL, NULL) \
	ROW(SYNC, NONE, NULL, NULL)

static const struct cuda_kernel kernels[] = {
#define ROW(kind, way, launch, scratch) [OP_##kind] = {CUDA_##way, launch, scratch},
	KERNELS(ROW)};

enum { KERNELS(OP_HAS_ROW) };
#define OP(kind, ...) OP_NEEDS_ROW(kind)
#include "step/ops.def"

enum cuda_way cuda_way_of(const struct op *op) { return kernels[op->kind].way; }

size_t cuda_scratch_B(const struct op *op)
{
	const struct cuda_kernel *k = &kernels[op->kind];
	return k->scratch_B ? k->scratch_B(op) : 0;
}

enum status cuda_kernel_run(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	struct error *e)
{
	const struct cuda_kernel *k = &kernels[op->kind];
	return k->launch ? k->launch(env, op, arg, e)
	                 : error_set(e, ST_RUN, "%s is no kernel of the GPU's",
				   op_kind_info((enum op_kind)op->kind)->name);
}
