/* Attention in the forward pass of a block: its products, norms of heads, rope, the kernel, its gate. */
#include "step/builder/blocks.h"

int64_t build_window(const struct builder *b)
{
	return model_window(b->m, b->layer) * (b->m->window_kind == WINDOW_CHUNKED ? -1 : 1);
}

static bool is_given_mask(const struct builder *b)
{
	const enum attention_mask mask = b->c->train.attention_mask;
	return mask == MASK_ALL || (mask == MASK_WINDOWS && model_is_windowed(b->m, b->layer));
}

struct op build_attention_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "attention");
	op.flags |= (uint32_t)((model_masks(b->m, b->layer) ? OP_CAUSAL : 0) |
			       (b->m->position == POS_ALIBI ? OP_ALIBI : 0));
	op.attn.batch = b->c->train.micro_batch;
	op.attn.heads = b->heads;
	op.attn.kv_heads = b->kv_heads;
	op.attn.seq = b->seq;
	op.attn.head_dim = b->m->head_dim;
	if (k == OP_ATTN_SOFTMAX || k == OP_ATTN_SOFTMAX_GRAD || op_is_flash(&op))
		op.dropout = b->m->attention_dropout > 0;
	if (k == OP_ATTENTION || k == OP_ATTENTION_GRAD) {
		op.attn.window = build_window(b);
		op.flags |= (uint32_t)(is_given_mask(b) ? OP_MASK : 0);
	}
	if (op_is_flash(&op))
		op.attn.softcap = b->m->attention_softcap;
	if ((k == OP_ATTENTION || k == OP_ATTENTION_GRAD) && b->m->kv_lora_rank > 0)
		op.attn.value_dim = b->m->v_head_dim;
	if (k == OP_QK_NORM || k == OP_QK_NORM_GRAD) {
		op.attn.full = b->m->qk_norm == QK_NORM_FULL;
		op.flags |= b->m->norm == NORM_RMSNORM ? OP_RMS : 0;
		op.dtensors = build_dtensors(b, k == OP_QK_NORM_GRAD ? 7 : 5); /* two norms; Q, K and V as heads */
	}
	if (k >= OP_ATTN_SCORES && k <= OP_ATTN_SCORES_GRAD && b->context > 1)
		op.attn.keys = b->seq * b->context;
	return op;
}

int32_t build_scores(struct builder *b)
{
	return build_act(b, b->c->train.micro_batch * b->heads * b->seq, b->seq * b->context);
}

int32_t build_probs(struct builder *b, int32_t qkv, int32_t kv)
{
	int32_t probs = build_scores(b);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_SCORES)), qkv, probs, kv);
	build_score_bias(b, probs);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_SOFTMAX)), probs);
	return probs;
}

struct linear linear_qkv(const struct builder *b)
{
	int64_t width = b->heads * b->m->head_dim + b->kv_heads * (b->m->head_dim + model_value_dim(b->m));
	return (struct linear){"qkv", b->tokens, width, b->m->hidden, PARAM_QKV_W, PARAM_QKV_B, 0};
}

struct linear linear_proj(const struct builder *b)
{
	return (struct linear){"proj", b->tokens, b->m->hidden, b->heads * model_value_dim(b->m), PARAM_PROJ_W,
		NO_PARAM, 0};
}

struct linear linear_attention_gate(const struct builder *b)
{
	return (struct linear){"attention gate", b->tokens, linear_proj(b).in, b->m->hidden, PARAM_ATTENTION_GATE_W,
		NO_PARAM, 0};
}

int32_t build_kept_scores(struct builder *b, int64_t keys)
{
	const struct stack *stack = &b->c->stack;
	/* Beside what the product of values reads: softmax's result where that is another array, in fp32 under autocast
	 * or before dropout, and dropout's mask (PyTorch, tools/autograd/derivatives.yaml: _softmax, native_dropout,
	 * bmm; aten/src/ATen/autocast_mode.h). */
	const double mask_B = dropout_mask_B(b->m->attention_dropout, stack),
		     softmax_B = stack->autocast ? dtype_bytes(DT_FP32)
	                         : mask_B > 0    ? dtype_bytes(b->act)
	                                         : 0,
		     kept_B = mask_B + softmax_B;
	if (!build_keeps(b) || kept_B <= 0 || build_recomputes_part(b, REC_CORE_ATTN))
		return NONE;
	return build_hold(b, COMP_ACTIVATIONS, kept_B * (double)(b->c->train.micro_batch * b->heads * b->seq * keys),
		"kept scores");
}

/* Lets each head's sink take part in the softmax. */
static void add_sinks(struct builder *b, const struct acts *a)
{
	struct op op = build_attention_op(b, OP_ATTN_SINKS);
	op.what = "sinks";
	if (b->m->attention_sinks)
		build_with(b, &op, view_of(a->att), view_of(a->lse), weight_of(b, b->layer, PARAM_SINKS));
}

void attention_core(struct builder *b, struct acts *a)
{
	if (b->recomputing && saved_attention(b))
		return;
	a->lse = a->probs = a->att_heads = NONE;
	if (b->c->train.attention == ATT_FLASH) {
		a->lse = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq);
		if (b->context > 1) {
			context_attention(b, a);
		} else {
			a->att = build_act(b, b->tokens, linear_proj(b).in);
			build_on(b, made_op(build_attention_op(b, OP_ATTENTION)), a->qkv, a->att, a->lse);
		}
		add_sinks(b, a);
		return;
	}
	a->att = build_act(b, b->tokens, linear_proj(b).in);
	int32_t kv = b->context > 1 ? context_keys(b, a->qkv) : NONE;
	a->probs = build_probs(b, a->qkv, kv);
	a->kept_scores = build_kept_scores(b, b->seq * b->context);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_VALUES)), a->probs, kv != NONE ? kv : a->qkv, a->att);
}

/* Norms a->qkv by heads: what came in stays as a->raw_qkv. */
static void norm_heads(struct builder *b, struct acts *a)
{
	const struct op op = build_attention_op(b, OP_QK_NORM);
	const int64_t norms = op.attn.full ? 2 : b->heads + b->kv_heads;
	a->raw_qkv = a->qkv;
	a->qkv = build_act(b, b->tokens, linear_qkv(b).out);
	a->qk_stats = build_fp32(b, 2 * b->tokens * norms);
	build_with(b, &op, view_of(a->raw_qkv), weight_of(b, b->layer, PARAM_Q_NORM_W),
		weight_of(b, b->layer, PARAM_K_NORM_W), view_of(a->qkv), view_of(a->qk_stats));
}

/* Holds what the block's norms keep beside what their buffers do. */
static void keep_norms(struct builder *b, struct acts *a)
{
	const struct model *m = b->m;
	const struct stack *s = &b->c->stack;
	const struct stack_memory *held = &s->memory;
	const bool rms = m->norm == NORM_RMSNORM, apart = m->branch_norm == BRANCH_NORM_SANDWICH,
		   one_kernel = s->fused_kernels & (FUSE_NORM | FUSE_TORCH_NORM);
	const double norms = m->parallel_residual ? 1
	                     : apart              ? 4
	                                          : 2,
		     of_heads = m->qk_norm != QK_NORM_NONE && rms ? held->rms_norm_B : 0,
		     of_rows = !rms          ? (s->autocast ? held->layer_norm_autocast_B : 0)
	                       : s->autocast ? held->rms_norm_autocast_B
	                                     : held->rms_norm_B;
	a->kept_norms = NONE;
	if (!build_keeps(b) || b->c->train.fused || m->adaptive_norm || one_kernel)
		return;
	a->kept_norms = build_hold(b, COMP_ACTIVATIONS,
		norms * of_rows * (double)(b->rows * m->hidden) +
			of_heads * (double)(b->tokens * (b->heads + b->kv_heads) * m->head_dim),
		"norms");
}

int32_t attention_result(const struct acts *a) { return a->gated != NONE ? a->gated : a->att; }

int32_t attention_forward(struct builder *b, struct acts *a, int32_t normed, bool project)
{
	const struct linear qkv = linear_qkv(b), proj = linear_proj(b);
	a->kept_rotated = a->raw_qkv = NONE;
	keep_norms(b, a);
	a->gate = a->gated = NONE;
	if (b->m->kv_lora_rank > 0) {
		a->qkv = latent_forward(b, a, normed);
	} else {
		const struct linear gate = linear_attention_gate(b);
		int32_t full = tp_gather_input(b, normed, "attention input");
		a->qkv = build_linear(b, &qkv, full);
		a->gate = b->m->attention_gate ? build_linear(b, &gate, full) : NONE;
	}
	if (b->m->qk_norm != QK_NORM_NONE)
		norm_heads(b, a);
	if (model_has_rope(b->m, b->layer) && b->m->kv_lora_rank == 0) {
		build_on(b, made_op(build_attention_op(b, OP_ROPE)), a->qkv);
		if (build_keeps(b))
			a->kept_rotated = build_hold(b, COMP_ACTIVATIONS,
				(double)(b->tokens * (b->heads + b->kv_heads) * b->m->head_dim) *
					b->c->stack.memory.rotated_B,
				"rotated queries and keys");
	}
	attention_core(b, a);
	if (b->m->attention_gate) {
		a->gated = build_act(b, b->tokens, proj.in);
		build_on(b, made_op(build_gate_op(b, OP_SIGMOID_GATE, "attention gate", b->tokens, proj.in, proj.in)),
			a->att, a->gate, a->gated);
	}
	return project ? build_linear(b, &proj, attention_result(a)) : NONE;
}
