/* The backward pass of a transformer block. `dx` is the gradient of the residual stream: one buffer runs through all
 * blocks, and each branch adds its part to it. */
#include "step/build.h"

static int32_t new_rows(struct builder *b, const char *what) { return build_act(b, b->rows, b->m->hidden, what); }

int32_t build_activation_grad(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, int32_t dg)
{
	int32_t dh = build_act(b, rows, build_act_width(b, ffn), "fc1 grad");
	struct op op = build_new(b, OP_ACT_GRAD, "act");
	op.matrix.rows = rows;
	op.matrix.cols = ffn;
	build_op(b, op, (const struct view[]){view_of(a->h), view_of(dg), view_of(dh)});
	build_release(b, &a->kept_gate);
	return dh;
}

int32_t mlp_backward(struct builder *b, const struct mlp_shape *s, struct mlp_acts *a, int32_t normed, int32_t dout)
{
	int64_t T = b->tokens, H = b->m->hidden, F = s->ffn, width = build_act_width(b, F);
	build_bias_grad(b, "fc2", b->rows, H, dout, s->fc2_bias);
	int32_t dy = tp_gather(b, dout, "fc2 grad");
	int32_t dg = build_act(b, T, F, "act grad");
	build_linear_grad(b, "fc2", T, H, F, dy, s->fc2, dg);
	build_weight_grad(b, "fc2", T, H, F, dy, a->g, s->fc2);
	int32_t dh = build_activation_grad(b, T, F, a, dg);
	build_bias_grad(b, "fc1", T, width, dh, s->fc1_bias);
	int32_t x = tp_gather(b, normed, "mlp input");
	int32_t full = build_act(b, T, H, "mlp input grad");
	build_linear_grad(b, "fc1", T, width, H, dh, s->fc1, full);
	int32_t dn = tp_reduce(b, full, "mlp input grad");
	build_weight_grad(b, "fc1", T, width, H, dh, x, s->fc1);
	return dn;
}

static int32_t mlp_branch_grad(struct builder *b, struct acts *a, int32_t dout)
{
	if (model_has_experts(b->m, b->layer))
		return moe_backward(b, a, dout);
	const struct mlp_shape dense = mlp_dense(b);
	return mlp_backward(b, &dense, &a->mlp, a->n2, dout);
}

bool build_recomputes_scores(const struct builder *b)
{
	return b->c->train.recompute == REC_SELECTIVE && b->layer < b->c->train.recompute_layers;
}

static int32_t attention_core_grad(struct builder *b, struct acts *a, int32_t datt)
{
	int64_t width = (b->heads + 2 * b->kv_heads) * b->m->head_dim;
	int32_t dqkv = build_act(b, b->tokens, width, "qkv grad");
	if (b->c->train.attention == ATT_FLASH) {
		int32_t delta = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq, "delta");
		if (b->context > 1)
			context_attention_grad(b, a, datt, delta, dqkv);
		else
			build_op(b, build_attention_op(b, OP_ATTENTION_GRAD),
				(const struct view[]){view_of(a->qkv), view_of(a->att), view_of(a->lse), view_of(datt),
					view_of(delta), view_of(dqkv)});
		return dqkv;
	}
	int32_t probs = a->probs, kv = NONE, dkv = NONE;
	if (b->context > 1) {
		kv = context_keys(b, a->qkv);
		dkv = build_act(b, b->context * b->tokens, 2 * b->kv_heads * b->m->head_dim, "gathered kv grad");
	}
	if (build_recomputes_scores(b)) { /* selective recomputation: Korthikanti et al. 2022, section 5 */
		b->recomputing = true;
		probs = build_probs(b, a->qkv, kv);
		b->recomputing = false;
	}
	int32_t dprobs = build_act(b, b->c->train.micro_batch * b->heads * b->seq, b->m->seq_len, "scores grad");
	build_release(b, &a->kept_scores);
	build_op(b, build_attention_op(b, OP_ATTN_VALUES_GRAD),
		(const struct view[]){view_of(probs), view_of(kv != NONE ? kv : a->qkv), view_of(datt), view_of(dprobs),
			view_of(dkv != NONE ? dkv : dqkv)});
	build_op(b, build_attention_op(b, OP_ATTN_SOFTMAX_GRAD),
		(const struct view[]){view_of(probs), view_of(dprobs)});
	build_op(b, build_attention_op(b, OP_ATTN_SCORES_GRAD),
		(const struct view[]){view_of(dprobs), view_of(a->qkv), view_of(dqkv), view_of(kv), view_of(dkv)});
	if (kv != NONE)
		context_keys_grad(b, dkv, dqkv);
	return dqkv;
}

/* Returns the gradient of attention's normed input rows, given that of its output rows. */
static int32_t attention_backward(struct builder *b, struct acts *a, int32_t dout)
{
	int64_t T = b->tokens, H = b->m->hidden, att = b->heads * b->m->head_dim,
		width = (b->heads + 2 * b->kv_heads) * b->m->head_dim;
	build_bias_grad(b, "proj", b->rows, H, dout, PARAM_PROJ_B);
	build_release(b, &a->kept_masks);
	int32_t dy = tp_gather(b, dout, "proj grad");
	int32_t datt = build_act(b, T, att, "attention grad");
	build_linear_grad(b, "proj", T, H, att, dy, PARAM_PROJ_W, datt);
	build_weight_grad(b, "proj", T, H, att, dy, a->att, PARAM_PROJ_W);
	int32_t dqkv = attention_core_grad(b, a, datt);
	if (b->m->position == POS_ROPE) {
		struct op op = build_attention_op(b, OP_ROPE);
		op.flags |= OP_INVERSE;
		build_op(b, op, (const struct view[]){view_of(dqkv)});
	}
	build_bias_grad(b, "qkv", T, width, dqkv, PARAM_QKV_B);
	build_release(b, &a->kept_rotated);
	int32_t x = tp_gather(b, a->n1, "attention input");
	int32_t full = build_act(b, T, H, "attention input grad");
	build_linear_grad(b, "qkv", T, width, H, dqkv, PARAM_QKV_W, full);
	int32_t dn = tp_reduce(b, full, "attention input grad");
	build_weight_grad(b, "qkv", T, width, H, dqkv, x, PARAM_QKV_W);
	return dn;
}

static void add_into(struct builder *b, int32_t x, int32_t y)
{
	struct op op = build_new(b, OP_ADD, "residual grad");
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	build_op(b, op, (const struct view[]){view_of(x), view_of(y), view_of(NONE), view_of(x)});
}

/* A branch's part of the residual gradient: added in place, unless deferred products still read what stands
 * there. */
static void add_branch(struct builder *b, int32_t *dx, int32_t branch)
{
	if (!b->defers_weights) {
		add_into(b, *dx, branch);
		return;
	}
	add_into(b, branch, *dx);
	*dx = branch;
}

static void add_norm_grad(struct builder *b, const char *what, int32_t dn, int32_t x, int32_t stats,
	enum param_kind weight, enum param_kind bias, int32_t *dx)
{
	int32_t branch = b->defers_weights ? new_rows(b, "residual grad") : *dx;
	build_norm_grad(b, what, dn, x, stats, weight, bias, branch, !b->defers_weights);
	if (b->defers_weights)
		add_branch(b, dx, branch);
}

static void post_norm_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	int32_t dsum = new_rows(b, "residual grad");
	build_norm_grad(b, "norm2", *dx, a->sum2, a->stats2, PARAM_NORM2_W, PARAM_NORM2_B, dsum, false);
	add_branch(b, &dsum, mlp_branch_grad(b, a, dsum));
	int32_t dsum1 = new_rows(b, "residual grad");
	build_norm_grad(b, "norm1", dsum, a->x_mid, a->stats1, PARAM_NORM1_W, PARAM_NORM1_B, dsum1, false);
	add_branch(b, &dsum1, attention_backward(b, a, dsum1));
	*dx = dsum1;
}

void block_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	if (b->m->post_norm) {
		post_norm_backward(b, a, dx);
		return;
	}
	if (b->m->parallel_residual) { /* both branches see the gradient of the block's output, before either adds to it
		                        */
		int32_t dn2 = mlp_branch_grad(b, a, *dx), dn1 = attention_backward(b, a, *dx);
		add_norm_grad(b, "norm2", dn2, a->x_in, a->stats2, PARAM_NORM2_W, PARAM_NORM2_B, dx);
		add_norm_grad(b, "norm1", dn1, a->x_in, a->stats1, PARAM_NORM1_W, PARAM_NORM1_B, dx);
		return;
	}
	int32_t dn2 = mlp_branch_grad(b, a, *dx);
	add_norm_grad(b, "norm2", dn2, a->x_mid, a->stats2, PARAM_NORM2_W, PARAM_NORM2_B, dx);
	int32_t dn1 = attention_backward(b, a, *dx);
	add_norm_grad(b, "norm1", dn1, a->x_in, a->stats1, PARAM_NORM1_W, PARAM_NORM1_B, dx);
}
