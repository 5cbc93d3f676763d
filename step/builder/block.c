/* The forward pass of a transformer block. */
#include "step/builder/blocks.h"

#include <string.h>

struct op build_gate_op(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols,
	int64_t gates)
{
	struct op op = build_new(b, k, what);
	op.gate.rows = rows;
	op.gate.cols = cols;
	op.gate.gates = gates;
	return op;
}

/* ---- the layers of a block ---- */

int64_t build_act_width(const struct builder *b, int64_t ffn) { return model_gated(b->m) ? 2 * ffn : ffn; }

struct mlp_layers mlp_layers_of(const struct builder *b, int64_t ffn, enum param_kind fc1, enum param_kind fc1_bias,
	enum param_kind fc2, enum param_kind fc2_bias)
{
	int64_t T = b->tokens, H = b->m->hidden;
	return (struct mlp_layers){{"fc1", T, build_act_width(b, ffn), H, fc1, fc1_bias, 0},
		{"fc2", T, H, ffn, fc2, NO_PARAM, 0}, fc2_bias, false};
}

struct mlp_layers mlp_dense(const struct builder *b)
{
	struct mlp_layers dense = mlp_layers_of(b, b->ffn, PARAM_FC1_W, PARAM_FC1_B, PARAM_FC2_W, PARAM_FC2_B);
	dense.again = build_recomputes_part(b, REC_MLP);
	return dense;
}

/* ---- forward ---- */

bool build_keeps(const struct builder *b) { return b->recomputing || !build_recomputes(b, b->layer); }

/* Returns the bytes an element that a gelu keeps beside its input and its result where it is written out: half of x,
 * tanh and 1 + tanh, and under autocast x in fp32, as they are, too (PyTorch, tools/autograd/derivatives.yaml: mul,
 * tanh, pow). */
static double kept_gelu_B(const struct builder *b)
{
	const double act_B = dtype_bytes(b->act), fp32_B = dtype_bytes(DT_FP32);
	if (!b->c->stack.composed_gelu || !activation_is_gelu(b->m->mlp))
		return 0;
	return b->c->stack.autocast ? act_B + 3 * fp32_B : 3 * act_B;
}

static void keep_inside(struct builder *b, struct mlp_acts *a, int64_t elements, double element_B, bool again)
{
	if (element_B > 0 && build_keeps(b) && (b->recomputing || !again))
		a->kept_gate = build_hold(b, COMP_ACTIVATIONS, (double)elements * element_B, "gate");
}

void build_activation(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, bool again)
{
	a->g = build_act(b, rows, ffn);
	a->kept_gate = NONE;
	if (a->weights != NONE) {
		build_on(b, made_op(build_matrix(b, OP_WEIGHTED_ACT, "act", rows, ffn)), a->h, a->weights, a->g);
		return;
	}
	if (!model_gated(b->m) || b->c->train.fused || b->c->stack.fused_kernels & FUSE_GATE) {
		build_on(b, made_op(build_matrix(b, OP_ACT, "act", rows, ffn)), a->h, a->g);
		keep_inside(b, a, rows * ffn, kept_gelu_B(b), again);
		return;
	}
	int32_t half = build_act(b, rows, ffn);
	build_on(b, made_op(build_matrix(b, OP_GATE_ACT, "act", rows, ffn)), a->h, half);
	build_on(b, made_op(build_matrix(b, OP_GATE_MUL, "act", rows, ffn)), a->h, half, a->g);
	const bool clamps = b->m->expert_bias && model_has_experts(b->m, b->layer);
	const double gate_B = clamps ? b->c->stack.memory.clamped_gate_B : b->c->stack.memory.gate_B;
	keep_inside(b, a, rows * ffn, gate_B + kept_gelu_B(b), again);
}

int32_t mlp_forward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, bool project)
{
	a->h = build_linear(b, &s->fc1, tp_gather_input(b, normed, "mlp input"));
	build_activation(b, b->tokens, s->fc2.in, a, s->again);
	return project ? build_linear(b, &s->fc2, a->g) : NONE;
}

/* A norm or a gate behind the last product needs that product's result in its backward pass. */
bool build_ends_early(const struct builder *b)
{
	return b->recomputing && !b->c->stack.recompute_last_gemm && !b->m->post_norm &&
	       b->m->branch_norm == BRANCH_NORM_NONE && !b->m->adaptive_norm &&
	       !(b->m->shared_expert_gate && model_has_experts(b->m, b->layer));
}

/* Returns the second branch's output without FC2's bias, given normed rows. A recomputed block stops at FC2's input. */
static int32_t mlp_branch(struct builder *b, struct acts *a, int32_t normed)
{
	if (model_has_experts(b->m, b->layer))
		return moe_forward(b, a, normed);
	const struct mlp_layers dense = mlp_dense(b);
	int32_t out = mlp_forward(b, &dense, &a->mlp, normed, !build_ends_early(b));
	if (build_ends_early(b))
		return NONE;
	save_unread(b, SAVED_FC2_ROWS, b->sequence_parallel ? b->rows * b->m->hidden : 0);
	return tp_reduce(b, out, "fc2");
}

static int32_t residual_add(struct builder *b, int32_t x, int32_t y, enum param_kind bias)
{
	int32_t sum = build_rows(b);
	struct op op = build_matrix(b, OP_ADD, "residual", b->rows, b->m->hidden);
	op.dropout = b->m->dropout > 0;
	build_with(b, &op, view_of(x), view_of(y), weight_of(b, b->layer, bias), view_of(sum));
	return sum;
}

/* Appends sum = x + y + bias and normed = norm(sum): one op when fused. */
static void add_and_norm(struct builder *b, int32_t x, int32_t y, enum param_kind bias, enum param_kind w, int32_t *sum,
	int32_t *normed, int32_t *stats)
{
	if (!b->c->train.fused) {
		*sum = residual_add(b, x, y, bias);
		*normed = build_norm(b, "norm", *sum, w, stats);
		return;
	}
	*normed = build_rows(b);
	*stats = build_fp32(b, 2 * b->rows);
	*sum = build_rows(b);
	struct op op = build_norm_op(b, OP_ADD_NORM, "residual", b->m->hidden);
	op.dropout = b->m->dropout > 0;
	struct view bv = weight_of(b, b->layer, bias), wv = weight_of(b, b->layer, w),
		    wbv = weight_of(b, b->layer, w + 1);
	build_with(b, &op, view_of(x), view_of(y), bv, wv, wbv, view_of(*sum), view_of(*normed), view_of(*stats));
}

/* Experts' rows are complete when they come back, so attention's are reduced by themselves. */
static int32_t parallel_experts(struct builder *b, struct acts *a)
{
	int32_t att = attention_forward(b, a, a->n1, !build_ends_early(b)), experts = moe_forward(b, a, a->n2);
	if (experts == NONE)
		return NONE;
	int32_t x = residual_add(b, a->x_in, tp_reduce(b, att, "proj"), PARAM_PROJ_B);
	return residual_add(b, x, experts, NO_PARAM);
}

/* GPT-NeoX and GPT-J: both branches read the block's input, and one reduction serves their sum. */
static int32_t parallel_block(struct builder *b, struct acts *a)
{
	bool project = !build_ends_early(b);
	a->n2 = build_norm(b, "norm2", a->x_in, PARAM_NORM2_W, &a->stats2);
	a->x_mid = a->x_in;
	if (model_has_experts(b->m, b->layer))
		return parallel_experts(b, a);
	const struct mlp_layers dense = mlp_dense(b);
	int32_t att = attention_forward(b, a, a->n1, project), mlp = mlp_forward(b, &dense, &a->mlp, a->n2, project);
	if (!project)
		return NONE;
	int32_t both = build_act(b, b->tokens, b->m->hidden);
	build_on(b, made_op(build_matrix(b, OP_ADD, "branches", b->tokens, b->m->hidden)), att, mlp, NONE, both);
	int32_t x = residual_add(b, a->x_in, tp_reduce(b, both, "branches"), PARAM_PROJ_B);
	struct view bias = weight_of(b, b->layer, PARAM_FC2_B);
	if (bias.buffer >= 0)
		build_with(b, made_op(build_matrix(b, OP_BIAS, "fc2", b->rows, b->m->hidden)), view_of(x), bias);
	return x;
}

/* Returns the norm of a branch's rows, which are kept with their bias in *kept. */
static int32_t branch_norm(struct builder *b, const char *what, int32_t rows, enum param_kind bias, enum param_kind w,
	int32_t *kept, int32_t *stats)
{
	const struct view bv = weight_of(b, b->layer, bias);
	if (bv.buffer >= 0)
		build_with(b, made_op(build_matrix(b, OP_BIAS, what, b->rows, b->m->hidden)), view_of(rows), bv);
	*kept = rows;
	return build_norm(b, what, rows, w, stats);
}

/* Gemma 2 (norms around each branch) and OLMo 2 (behind each branch alone). */
static int32_t branch_norm_block(struct builder *b, struct acts *a)
{
	const bool sandwich = b->m->branch_norm == BRANCH_NORM_SANDWICH;
	a->n1 = sandwich ? build_norm(b, "norm1", a->x_in, PARAM_NORM1_W, &a->stats1) : a->x_in;
	int32_t att = tp_reduce(b, attention_forward(b, a, a->n1, true), "proj");
	int32_t normed = branch_norm(b, "attention norm", att, PARAM_PROJ_B, PARAM_ATTENTION_NORM_W, &a->att_out,
		&a->att_out_stats);
	if (sandwich)
		add_and_norm(b, a->x_in, normed, NO_PARAM, PARAM_NORM2_W, &a->x_mid, &a->n2, &a->stats2);
	else
		a->n2 = a->x_mid = residual_add(b, a->x_in, normed, NO_PARAM);
	int32_t mlp = mlp_branch(b, a, a->n2);
	normed = branch_norm(b, "mlp norm", mlp, PARAM_FC2_B, PARAM_MLP_NORM_W, &a->mlp_out, &a->mlp_out_stats);
	return residual_add(b, a->x_mid, normed, NO_PARAM);
}

/* DiT: both norms are shifted and scaled, and both branches gated, by numbers of the picture's own. */
static int32_t adaptive_block(struct builder *b, struct acts *a)
{
	adapt_forward(b, &a->adapt, PARAM_ADAPT_W);
	a->n1 = adapt_norm(b, "norm1", &a->adapt, 0, a->x_in, &a->stats1);
	a->att_out = tp_reduce(b, attention_forward(b, a, a->n1, true), "proj");
	a->x_mid = adapt_add(b, &a->adapt, 0, a->x_in, a->att_out, PARAM_PROJ_B);
	a->n2 = adapt_norm(b, "norm2", &a->adapt, 1, a->x_mid, &a->stats2);
	a->mlp_out = mlp_branch(b, a, a->n2);
	return adapt_add(b, &a->adapt, 1, a->x_mid, a->mlp_out, PARAM_FC2_B);
}

/* A layer of one branch. */
static int32_t single_branch_block(struct builder *b, struct acts *a)
{
	const enum layer_kind kind = model_layer_kind(b->m, b->layer);
	const bool project = !build_ends_early(b);
	a->n1 = a->n2 = build_norm(b, "norm1", a->x_in, PARAM_NORM1_W, &a->stats1);
	if (model_scans(kind) || kind == LAYER_SHORT_CONV) {
		int32_t out = kind == LAYER_SHORT_CONV ? short_conv_forward(b, a, a->n1) : ssm_forward(b, a, a->n1);
		return project ? residual_add(b, a->x_in, out, NO_PARAM) : NONE;
	}
	if (kind == LAYER_ATTENTION || kind == LAYER_PARALLEL) {
		int32_t scan = kind == LAYER_PARALLEL ? ssm_forward(b, a, a->n1) : NONE;
		int32_t out = attention_forward(b, a, a->n1, project);
		if (!project)
			return NONE;
		int32_t x = residual_add(b, a->x_in, tp_reduce(b, out, "proj"), PARAM_PROJ_B);
		return scan != NONE ? residual_add(b, x, scan, NO_PARAM) : x;
	}
	int32_t out = mlp_branch(b, a, a->n1);
	return project ? residual_add(b, a->x_in, out, PARAM_FC2_B) : NONE;
}

/* A decoder's layer behind an encoder. */
static int32_t cross_block(struct builder *b, struct acts *a)
{
	struct cross_acts *c = &a->cross;
	a->n1 = build_norm(b, "norm1", a->x_in, PARAM_NORM1_W, &a->stats1);
	int32_t att = tp_reduce(b, attention_forward(b, a, a->n1, true), "proj");
	add_and_norm(b, a->x_in, att, PARAM_PROJ_B, PARAM_CROSS_NORM_W, &c->x, &c->n, &c->stats);
	int32_t cross = cross_forward(b, c);
	add_and_norm(b, c->x, cross, PARAM_CROSS_PROJ_B, PARAM_NORM2_W, &a->x_mid, &a->n2, &a->stats2);
	int32_t mlp = mlp_branch(b, a, a->n2);
	return build_ends_early(b) ? NONE : residual_add(b, a->x_mid, mlp, PARAM_FC2_B);
}

/* Returns attention's complete rows without PROJ's bias. Their reduce-scatter may be saved. */
static int32_t attention_rows(struct builder *b, struct acts *a)
{
	const int32_t saved = saved_buffer(b, SAVED_PROJ_ROWS);
	int32_t full = attention_forward(b, a, a->n1, saved == NONE || saved_runs_unread(b));
	if (saved != NONE)
		return saved;
	full = tp_reduce(b, full, "proj");
	return b->sequence_parallel ? save_buffer(b, SAVED_PROJ_ROWS, full) : full;
}

static void forget_gathered(struct acts *a)
{
	for (int i = 0; i < GATHERED_INPUTS; i++)
		a->gathered[i] = (struct gathered){NONE, NONE};
}

static int32_t forward(struct builder *b, int32_t x_in, struct acts *a)
{
	const bool crosses = model_layer_kind(b->m, b->layer) == LAYER_CROSS;
	if (model_is_conv(b->m))
		return conv_block_forward(b, x_in, a);
	a->x_in = x_in;
	b->acts_now = a;
	forget_gathered(a);
	a->kept_scores = a->cross.kept_scores = NONE;
	a->kept_masks = build_keeps(b) && !b->m->layer_pattern[0]
	                        ? build_hold(b, COMP_ACTIVATIONS,
					  (crosses ? 3 : 2) * (double)(b->rows * b->m->hidden) *
						  dropout_mask_B(b->m->dropout, &b->c->stack),
					  "dropout masks")
	                        : NONE;
	if (b->m->layer_pattern[0])
		return single_branch_block(b, a);
	if (b->m->post_norm) {
		a->n1 = x_in;
		int32_t att = tp_reduce(b, attention_forward(b, a, x_in, true), "proj");
		add_and_norm(b, x_in, att, PARAM_PROJ_B, PARAM_NORM1_W, &a->x_mid, &a->n2, &a->stats1);
		int32_t mlp = mlp_branch(b, a, a->n2), out;
		add_and_norm(b, a->n2, mlp, PARAM_FC2_B, PARAM_NORM2_W, &a->sum2, &out, &a->stats2);
		return out;
	}
	if (b->m->branch_norm != BRANCH_NORM_NONE)
		return branch_norm_block(b, a);
	if (b->m->adaptive_norm)
		return adaptive_block(b, a);
	if (crosses)
		return cross_block(b, a);
	a->n1 = build_norm(b, "norm1", x_in, PARAM_NORM1_W, &a->stats1);
	if (b->m->parallel_residual)
		return parallel_block(b, a);
	int32_t att = attention_rows(b, a);
	add_and_norm(b, x_in, att, PARAM_PROJ_B, PARAM_NORM2_W, &a->x_mid, &a->n2, &a->stats2);
	int32_t mlp = mlp_branch(b, a, a->n2);
	return build_ends_early(b) ? NONE : residual_add(b, a->x_mid, mlp, PARAM_FC2_B);
}

/* ---- selective recomputation ---- */

bool build_recomputes_part(const struct builder *b, int modules)
{
	return train_recomputes(&b->c->train, modules) && build_runs_again(b, b->layer);
}

static void forget_mlp(const struct builder *b, struct acts *a)
{
	const bool experts = model_has_experts(b->m, b->layer);
	const int32_t kept_gate = a->mlp.kept_gate, shared_gate = a->moe.shared.kept_gate;
	if (experts ? build_recomputes_part(b, REC_MOE) : build_recomputes_part(b, REC_MLP))
		a->mlp.h = a->mlp.g = a->mlp.weights = NONE;
	if (experts && build_recomputes_part(b, REC_MOE_ACT))
		a->mlp.g = NONE;
	if (experts && build_recomputes_part(b, REC_MOE))
		memset(&a->moe, 0xff, sizeof a->moe); /* NONE */
	if (experts && build_recomputes_part(b, REC_SHARED_EXPERTS))
		a->moe.shared.h = a->moe.shared.g = NONE;
	a->mlp.kept_gate = kept_gate;
	a->moe.shared.kept_gate = shared_gate;
}

/* Forgets what the backward pass makes again, so that it is neither kept nor offloaded. */
static void forget(const struct builder *b, struct acts *a)
{
	if (build_recomputes_part(b, REC_LAYERNORM))
		a->n1 = a->n2 = a->stats1 = a->stats2 = a->adapt.normed[0] = a->adapt.normed[1] = NONE;
	if (build_recomputes_part(b, REC_CORE_ATTN))
		a->lse = a->probs = a->att_heads = NONE;
	if (build_recomputes_part(b, REC_MLA_UP_PROJ))
		a->qkv = NONE;
	cross_forget(b, &a->cross);
	forget_mlp(b, a);
	if (!b->recomputing) /* else the gradients read it at once */
		forget_gathered(a);
}

/* Keeps the input of an activation in fp8 (Megatron-Core's activation_func_fp8_input_store). */
static void keep_input_in_8_bits(struct builder *b, struct mlp_acts *a)
{
	if (a->h == NONE || b->st)
		return;
	const int64_t n = build_size(b, a->h);
	a->h8 = build_buffer(b, COMP_ACTIVATIONS, DT_FP8, n, false);
	build_cast(b, view_of(a->h), b->act, view_of(a->h8), DT_FP8, n, "activation's input");
	a->h = NONE;
}

/* Narrows what a block keeps whose forward pass does not run again as a whole. */
static void keep_narrow(struct builder *b, struct acts *a)
{
	if (b->c->train.act_input_dtype == DT_FP8) {
		keep_input_in_8_bits(b, &a->mlp);
		keep_input_in_8_bits(b, &a->moe.shared);
	}
	if (b->c->stack.keeps_attention_once &&
		(b->c->train.dtype != DT_FP8 || stack_recipe(&b->c->stack) != FP8_DELAYED))
		narrow_forget(b, attention_result(a));
}

int32_t block_forward(struct builder *b, int32_t x_in, struct acts *a)
{
	int32_t out = forward(b, x_in, a);
	if (b->c->train.recompute == REC_SELECTIVE)
		forget(b, a);
	if (!b->recomputing && !build_recomputes(b, b->layer))
		keep_narrow(b, a);
	if (b->recomputing)
		saved_release(b);
	return out;
}

void again_norm1(struct builder *b, struct acts *a)
{
	b->recomputing = true;
	if (build_recomputes_part(b, REC_LAYERNORM) && a->n1 == NONE)
		a->n1 = b->m->adaptive_norm ? adapt_norm(b, "norm1", &a->adapt, 0, a->x_in, &a->stats1)
		                            : build_norm(b, "norm1", a->x_in, PARAM_NORM1_W, &a->stats1);
	b->recomputing = false;
}

void again_mlp(struct builder *b, struct acts *a)
{
	const bool experts = model_has_experts(b->m, b->layer), alone = b->m->layer_pattern[0];
	if (alone) {
		again_norm1(b, a);
		a->n2 = a->n1;
	}
	b->recomputing = true;
	if (build_recomputes_part(b, REC_LAYERNORM) && !alone)
		a->n2 = b->m->adaptive_norm ? adapt_norm(b, "norm2", &a->adapt, 1, a->x_mid, &a->stats2)
		                            : build_norm(b, "norm2", a->x_mid, PARAM_NORM2_W, &a->stats2);
	if (build_recomputes_part(b, experts ? REC_MOE : REC_MLP))
		mlp_branch(b, a, a->n2);
	else if (experts && build_recomputes_part(b, REC_SHARED_EXPERTS))
		moe_again_shared(b, a);
	b->recomputing = false;
}

/* Naive attention makes its scores alone again, where they are read: nothing reads the values' product again. */
void again_attention(struct builder *b, struct acts *a)
{
	b->recomputing = true;
	if (build_recomputes_part(b, REC_MLA_UP_PROJ))
		a->qkv = latent_up(b, a);
	if (build_recomputes_part(b, REC_CORE_ATTN) && b->c->train.attention == ATT_FLASH)
		attention_core(b, a);
	b->recomputing = false;
}
