/* The backward pass of a transformer block. `dx` is the gradient of the residual stream: one buffer runs through all
 * blocks, and each branch adds its part to it. */
#include "step/builder/blocks.h"

void mlp_restore_input(struct builder *b, struct mlp_acts *a)
{
	if (a->h != NONE || a->h8 == NONE || b->st)
		return;
	const int64_t n = build_size(b, a->h8);
	a->h = build_act(b, n, 1);
	build_cast(b, view_of(a->h8), DT_FP8, view_of(a->h), b->act, n, "activation's input");
}

int32_t build_activation_grad(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, int32_t dg)
{
	mlp_restore_input(b, a);
	int32_t dh = build_act(b, rows, build_act_width(b, ffn));
	if (a->weights != NONE) {
		a->dweights = build_fp32(b, rows);
		build_on(b, made_op(build_matrix(b, OP_WEIGHTED_ACT_GRAD, "act", rows, ffn)), a->h, a->weights, dg, dh,
			a->dweights);
	} else {
		build_on(b, made_op(build_matrix(b, OP_ACT_GRAD, "act", rows, ffn)), a->h, dg, dh);
	}
	build_release(b, &a->kept_gate);
	return dh;
}

/* The reduction of the one gradient hides behind the other, that of the weights. With DTensor it does not: autograd
 * makes both in one node, and reduces the input's when the nodes of all products that read it are through
 * (tools/autograd/derivatives.yaml, mm; torch/distributed/tensor/parallel/style.py, PrepareModuleInput). */
int32_t columns_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *input,
	const char *grad)
{
	int32_t full_x = tp_gather_input(b, x, input), full = build_linear_grad(b, l, dy);
	if (b->c->stack.dtensor) {
		build_weight_grad(b, l, dy, full_x);
		return tp_reduce_grad(b, full, l->w == PARAM_QKV_W ? 3 : model_gated(b->m) ? 2 : 1, grad);
	}
	int32_t dx = tp_reduce(b, full, grad);
	build_weight_grad(b, l, dy, full_x);
	return dx;
}

int32_t rows_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *grad)
{
	int32_t full_dy = tp_gather(b, dy, grad), dx = build_linear_grad(b, l, full_dy);
	build_weight_grad(b, l, full_dy, x);
	return dx;
}

int32_t mlp_backward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, int32_t dout)
{
	build_bias_grad(b, "fc2", b->rows, b->m->hidden, dout, s->fc2_bias);
	int32_t dg = rows_backward(b, &s->fc2, dout, a->g, "fc2 grad");
	int32_t dh = build_activation_grad(b, b->tokens, s->fc2.in, a, dg);
	build_bias_grad(b, "fc1", b->tokens, s->fc1.out, dh, s->fc1.bias);
	return columns_backward(b, &s->fc1, dh, normed, "mlp input", "mlp input grad");
}

static int32_t mlp_branch_grad(struct builder *b, struct acts *a, int32_t dout)
{
	again_mlp(b, a);
	if (model_has_experts(b->m, b->layer))
		return moe_backward(b, a, dout);
	const struct mlp_layers dense = mlp_dense(b);
	return mlp_backward(b, &dense, &a->mlp, a->n2, dout);
}

static void naive_attention_grad(struct builder *b, struct acts *a, int32_t datt, int32_t dqkv)
{
	int32_t probs = a->probs, kv = NONE, dkv = NONE;
	if (b->context > 1) {
		kv = context_keys(b, a->qkv);
		dkv = build_act(b, b->context * b->tokens, 2 * b->kv_heads * b->m->head_dim);
	}
	if (build_recomputes_part(b, REC_CORE_ATTN)) { /* selective recomputation: Korthikanti et al. 2022, section 5 */
		b->recomputing = true;
		probs = build_probs(b, a->qkv, kv);
		b->recomputing = false;
	}
	int32_t dprobs = build_scores(b);
	build_release(b, &a->kept_scores);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_VALUES_GRAD)), probs, kv != NONE ? kv : a->qkv, datt, dprobs,
		kv != NONE ? dkv : dqkv);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_SOFTMAX_GRAD)), probs, dprobs);
	build_score_bias_grad(b, dprobs);
	build_on(b, made_op(build_attention_op(b, OP_ATTN_SCORES_GRAD)), dprobs, a->qkv, dqkv, kv, dkv);
	if (kv != NONE)
		context_keys_grad(b, dkv, dqkv);
}

/* Appends the gradient of sinks, where they are trained. */
static void sinks_grad(struct builder *b, const struct acts *a, int32_t delta)
{
	bool accumulate = false;
	const struct view dsinks = gradient_of(b, b->layer, PARAM_SINKS, &accumulate);
	struct op op = build_attention_op(b, OP_ATTN_SINKS_GRAD);
	op.what = "sinks";
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	if (dsinks.buffer < 0)
		return;
	build_with(b, &op, view_of(a->lse), view_of(delta), weight_of(b, b->layer, PARAM_SINKS), dsinks);
	gradient_done(b, b->layer, PARAM_SINKS);
}

/* Returns the gradient of Q, K and V. */
static int32_t flash_attention_grad(struct builder *b, struct acts *a, int32_t datt)
{
	int32_t delta = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq), dqkv;
	if (b->context > 1) {
		dqkv = context_attention_grad(b, a, datt, delta);
	} else {
		dqkv = build_act(b, b->tokens, linear_qkv(b).out);
		build_on(b, made_op(build_attention_op(b, OP_ATTENTION_GRAD)), a->qkv, a->att, a->lse, datt, delta,
			dqkv);
	}
	sinks_grad(b, a, delta);
	return dqkv;
}

/* Replaces the gradient of normed queries and keys by that of what came in. */
static void norm_heads_grad(struct builder *b, const struct acts *a, int32_t dqkv)
{
	bool accumulate = false, unused = false;
	struct op op = build_attention_op(b, OP_QK_NORM_GRAD);
	struct view dwq = gradient_or_scratch(b, PARAM_Q_NORM_W, &accumulate),
		    dwk = gradient_or_scratch(b, PARAM_K_NORM_W, &unused);
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	build_with(b, &op, view_of(dqkv), view_of(a->raw_qkv), weight_of(b, b->layer, PARAM_Q_NORM_W),
		weight_of(b, b->layer, PARAM_K_NORM_W), view_of(a->qk_stats), dwq, dwk);
	gradient_done(b, b->layer, PARAM_Q_NORM_W);
	gradient_done(b, b->layer, PARAM_K_NORM_W);
}

/* Replaces the gradient of what the gate leaves by that of attention's result. Returns that of the gate's product. */
static int32_t attention_gate_grad(struct builder *b, const struct acts *a, int32_t *datt)
{
	const int64_t cols = linear_proj(b).in;
	int32_t dgated = *datt, dgate = build_act(b, b->tokens, cols);
	*datt = build_act(b, b->tokens, cols);
	build_on(b, made_op(build_gate_op(b, OP_SIGMOID_GATE_GRAD, "attention gate", b->tokens, cols, cols)), dgated,
		a->att, a->gate, *datt, dgate);
	return dgate;
}

/* As columns_backward, of Q, K and V with the gate's product. */
static int32_t gated_columns_backward(struct builder *b, const struct acts *a, int32_t dqkv, int32_t dgate)
{
	const struct linear qkv = linear_qkv(b), gate = linear_attention_gate(b);
	int32_t full_x = tp_gather_input(b, a->n1, "attention input");
	int32_t dx = build_linear_grad(b, &qkv, dqkv), by_gate = build_linear_grad(b, &gate, dgate);
	build_on(b, made_op(build_matrix(b, OP_ADD, "attention gate grad", b->tokens, b->m->hidden)), dx, by_gate, NONE,
		dx);
	if (!b->c->stack.dtensor)
		dx = tp_reduce(b, dx, "attention input grad");
	build_weight_grad(b, &qkv, dqkv, full_x);
	build_weight_grad(b, &gate, dgate, full_x);
	return b->c->stack.dtensor ? tp_reduce_grad(b, dx, 4, "attention input grad") : dx;
}

/* Returns the gradient of attention's normed input rows, given that of its output rows. */
static int32_t attention_backward(struct builder *b, struct acts *a, int32_t dout)
{
	const struct linear qkv = linear_qkv(b), proj = linear_proj(b);
	again_norm1(b, a);
	build_bias_grad(b, "proj", b->rows, b->m->hidden, dout, PARAM_PROJ_B);
	build_release(b, &a->kept_masks);
	int32_t datt = rows_backward(b, &proj, dout, attention_result(a), "proj grad"), dqkv;
	again_attention(b, a);
	int32_t dgate = a->gate != NONE ? attention_gate_grad(b, a, &datt) : NONE;
	if (b->c->train.attention == ATT_FLASH) {
		dqkv = flash_attention_grad(b, a, datt);
	} else {
		dqkv = build_act(b, b->tokens, qkv.out);
		naive_attention_grad(b, a, datt, dqkv);
	}
	if (b->m->kv_lora_rank > 0)
		return latent_backward(b, a, dqkv);
	if (model_has_rope(b->m, b->layer)) {
		struct op op = build_attention_op(b, OP_ROPE);
		op.flags |= OP_INVERSE;
		build_on(b, &op, dqkv);
	}
	if (b->m->qk_norm != QK_NORM_NONE)
		norm_heads_grad(b, a, dqkv);
	build_bias_grad(b, "qkv", b->tokens, qkv.out, dqkv, PARAM_QKV_B);
	build_release(b, &a->kept_rotated);
	build_release(b, &a->kept_norms);
	if (dgate != NONE)
		return gated_columns_backward(b, a, dqkv, dgate);
	return columns_backward(b, &qkv, dqkv, a->n1, "attention input", "attention input grad");
}

static void add_into(struct builder *b, int32_t x, int32_t y)
{
	build_on(b, made_op(build_matrix(b, OP_ADD, "residual grad", b->rows, b->m->hidden)), x, y, NONE, x);
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
	enum param_kind weight, int32_t *dx)
{
	int32_t branch = build_stream_norm_grad(b, what, dn, x, stats, weight, b->defers_weights ? NONE : *dx);
	if (b->defers_weights)
		add_branch(b, dx, branch);
}

static void post_norm_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	int32_t dsum = build_stream_norm_grad(b, "norm2", *dx, a->sum2, a->stats2, PARAM_NORM2_W, NONE);
	add_branch(b, &dsum, mlp_branch_grad(b, a, dsum));
	*dx = build_stream_norm_grad(b, "norm1", dsum, a->x_mid, a->stats1, PARAM_NORM1_W, NONE);
	add_branch(b, dx, attention_backward(b, a, *dx));
}

/* Dropout stands behind the last norm of a branch. */
static int32_t branch_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats,
	enum param_kind w)
{
	return b->m->branch_norm == BRANCH_NORM_SANDWICH ? build_norm_grad(b, what, dy, x, stats, w, NONE)
	                                                 : build_stream_norm_grad(b, what, dy, x, stats, w, NONE);
}

static void branch_norm_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	const bool sandwich = b->m->branch_norm == BRANCH_NORM_SANDWICH;
	int32_t dmlp = branch_norm_grad(b, "mlp norm", *dx, a->mlp_out, a->mlp_out_stats, PARAM_MLP_NORM_W);
	int32_t dn = mlp_branch_grad(b, a, dmlp);
	if (sandwich)
		add_norm_grad(b, "norm2", dn, a->x_mid, a->stats2, PARAM_NORM2_W, dx);
	else
		add_branch(b, dx, dn);
	int32_t datt = branch_norm_grad(b, "attention norm", *dx, a->att_out, a->att_out_stats, PARAM_ATTENTION_NORM_W);
	dn = attention_backward(b, a, datt);
	if (sandwich)
		add_norm_grad(b, "norm1", dn, a->x_in, a->stats1, PARAM_NORM1_W, dx);
	else
		add_branch(b, dx, dn);
}

static void adaptive_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	int32_t dmod = NONE;
	int32_t dmlp = adapt_add_grad(b, &a->adapt, 1, *dx, a->mlp_out, PARAM_FC2_B, &dmod);
	int32_t dn = mlp_branch_grad(b, a, dmlp);
	adapt_norm_grad(b, "norm2", &a->adapt, 1, dn, a->x_mid, a->stats2, *dx, &dmod);
	int32_t datt = adapt_add_grad(b, &a->adapt, 0, *dx, a->att_out, PARAM_PROJ_B, &dmod);
	dn = attention_backward(b, a, datt);
	adapt_norm_grad(b, "norm1", &a->adapt, 0, dn, a->x_in, a->stats1, *dx, &dmod);
	adapt_backward(b, &a->adapt, PARAM_ADAPT_W, dmod);
}

/* A layer of one branch. */
static void single_branch_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	const enum layer_kind kind = model_layer_kind(b->m, b->layer);
	const bool attends = kind == LAYER_ATTENTION || kind == LAYER_PARALLEL;
	int32_t dn = kind == LAYER_SHORT_CONV ? short_conv_backward(b, a, *dx)
	             : model_scans(kind)      ? ssm_backward(b, a, *dx)
	             : attends                ? attention_backward(b, a, *dx)
	                                      : mlp_branch_grad(b, a, *dx);
	if (kind == LAYER_PARALLEL)
		add_into(b, dn, ssm_backward(b, a, *dx));
	add_norm_grad(b, "norm1", dn, a->x_in, a->stats1, PARAM_NORM1_W, dx);
}

/* Pre-norm. Both branches of a parallel block see the gradient of its output, before either adds to it. */
static void pre_norm_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	bool parallel = b->m->parallel_residual;
	int32_t dn2 = mlp_branch_grad(b, a, *dx), dn1 = parallel ? attention_backward(b, a, *dx) : NONE;
	add_norm_grad(b, "norm2", dn2, a->x_mid, a->stats2, PARAM_NORM2_W, dx);
	if (model_layer_kind(b->m, b->layer) == LAYER_CROSS) {
		int32_t dn = cross_backward(b, &a->cross, *dx);
		add_norm_grad(b, "cross norm", dn, a->cross.x, a->cross.stats, PARAM_CROSS_NORM_W, dx);
	}
	if (!parallel)
		dn1 = attention_backward(b, a, *dx);
	add_norm_grad(b, "norm1", dn1, a->x_in, a->stats1, PARAM_NORM1_W, dx);
}

/* Runs the block's forward pass again. Where that does not end early, it returns the result, held: a variable keeps it
 * while the gradient is computed from it (PyTorch, torch/utils/checkpoint.py, and Megatron-Core,
 * tensor_parallel/random.py: `outputs` in CheckpointFunction.backward). */
static int32_t run_again(struct builder *b, struct acts *a)
{
	b->recomputing = true;
	const int32_t result = block_forward(b, a->x_in, a);
	b->recomputing = false;
	const bool held = b->c->stack.recompute_last_gemm && result != NONE && result != a->conv.out;
	return held ? build_hold(b, COMP_ACTIVATIONS, (double)b->r->buffers.at[result].bytes, "recomputed result")
	            : NONE;
}

void block_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	int32_t held = build_recomputes(b, b->layer) ? run_again(b, a) : NONE;
	b->acts_now = a;
	if (model_is_conv(b->m))
		conv_block_backward(b, a, dx);
	else if (b->m->layer_pattern[0])
		single_branch_backward(b, a, dx);
	else if (b->m->adaptive_norm)
		adaptive_backward(b, a, dx);
	else if (b->m->branch_norm != BRANCH_NORM_NONE)
		branch_norm_backward(b, a, dx);
	else if (b->m->post_norm)
		post_norm_backward(b, a, dx);
	else
		pre_norm_backward(b, a, dx);
	build_release(b, &held);
}
