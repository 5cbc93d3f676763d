/* The forward pass of a transformer block, and the linear and norm helpers that forward and backward share.
 *
 * Tensor parallelism follows Shoeybi et al. 2019 (Megatron-LM, section 3): QKV and FC1 are cut by columns, PROJ and FC2
 * by rows, and an all-reduce completes the rows after each pair. Sequence parallelism follows Korthikanti et al. 2022
 * (section 4.2): between the pairs each rank has T/t of the token rows. An all-gather before a pair and a
 * reduce-scatter after it replace the all-reduce. The backward pass gathers the pair's input again instead of keeping
 * all of it.
 */
#include "step/build.h"

/* Appends a product with the weights `w`. The router's product stays in the wider format. */
static void product(struct builder *b, const char *what, enum param_kind w, uint16_t flags, int64_t m, int64_t n,
	int64_t k, enum dtype out_dtype, struct view A, struct view B, struct view bias, struct view C)
{
	bool narrow = narrow_here(b) && w != PARAM_ROUTER_W,
	     grouped = w == PARAM_EXPERT_FC1_W || w == PARAM_EXPERT_FC2_W;
	int64_t groups = grouped ? moe_local_experts(b) : 1;
	if (narrow) {
		A = narrow_copy_of(b, A, groups * m * k);
		B = narrow_copy_of(b, B, groups * n * k);
	}
	struct op op = build_new(b, grouped ? OP_GROUPED_GEMM : OP_GEMM, what);
	op.dtype = (uint8_t)(narrow || b->c->train.dtype == DT_TF32 ? b->c->train.dtype
								    : b->act); /* tf32 stays a way to multiply */
	op.out_dtype = (uint8_t)out_dtype;
	op.flags |= flags;
	op.gemm.m = m;
	op.gemm.n = n;
	op.gemm.k = k;
	op.gemm.groups = grouped ? groups : 0;
	build_op(b, op, grouped ? (const struct view[]){A, B, C} : (const struct view[]){A, B, bias, C});
}

void build_gemm(struct builder *b, const char *what, uint16_t flags, int64_t m, int64_t n, int64_t k,
	enum dtype out_dtype, struct view A, struct view B, struct view bias, struct view C)
{
	product(b, what, PARAM_KIND_COUNT, flags, m, n, k, out_dtype, A, B, bias, C);
}

void build_linear(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t x,
	enum param_kind w, enum param_kind bias, int32_t y)
{
	struct view wv = weight_of(b, b->layer, w);
	struct view bv = weight_of(b, b->layer, bias);
	bool epilogue = b->c->train.fused;
	product(b, what, w, OP_TRANS_B, rows, out, in, b->act, view_of(x), wv, epilogue ? bv : view_of(NONE),
		view_of(y));
	if (epilogue || bv.buffer < 0)
		return;
	struct op op = build_new(b, OP_BIAS, what);
	op.matrix.rows = rows;
	op.matrix.cols = out;
	build_op(b, op, (const struct view[]){view_of(y), bv});
}

void build_weight_grad(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t dy,
	int32_t x, enum param_kind w)
{
	bool accumulate = false;
	bool shared = w == PARAM_TOKEN_EMBEDDING &&
	              b->has_embedding; /* the embedding adds to the gradient that the head begins */
	if (b->defers_weights && !shared) {
		if (!b->st && !vec_push(&b->deferred, ((struct deferred_weights){what, rows, out, in, dy, x, b->layer,
							      w, b->micro, b->chunk})))
			b->st = error_nomem(b->e, "the gradients of weights");
		return;
	}
	struct view dw = gradient_of(b, b->layer, w, &accumulate);
	product(b, what, w, (uint16_t)(OP_TRANS_A | (accumulate ? OP_ACCUMULATE : 0)), out, in, rows,
		b->gathers ? b->act : b->grad, view_of(dy), view_of(x), view_of(NONE), dw);
	if (!shared)
		gradient_done(b, b->layer, w);
}

void build_linear_grad(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t dy,
	enum param_kind w, int32_t dx)
{
	product(b, what, w, 0, rows, in, out, b->act, view_of(dy), weight_of(b, b->layer, w), view_of(NONE),
		view_of(dx));
}

void build_bias_grad(struct builder *b, const char *what, int64_t rows, int64_t cols, int32_t dy, enum param_kind bias)
{
	bool accumulate = false;
	struct view db = gradient_of(b, b->layer, bias, &accumulate);
	if (db.buffer < 0)
		return;
	struct op op = build_new(b, OP_BIAS_GRAD, what);
	op.out_dtype = (uint8_t)(b->gathers ? b->act : b->grad);
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	op.matrix.rows = rows;
	op.matrix.cols = cols;
	build_op(b, op, (const struct view[]){view_of(dy), db});
	gradient_done(b, b->layer, bias);
}

static uint16_t rms_flag(const struct builder *b) { return b->m->norm == NORM_RMSNORM ? OP_RMS : 0; }

void build_norm(struct builder *b, const char *what, int32_t x, enum param_kind w, enum param_kind bias, int32_t y,
	int32_t stats)
{
	struct op op = build_new(b, OP_NORM, what);
	op.flags |= rms_flag(b);
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	struct view wv = weight_of(b, b->layer, w), bv = weight_of(b, b->layer, bias);
	build_op(b, op, (const struct view[]){view_of(x), wv, bv, view_of(y), view_of(stats)});
}

void build_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats, enum param_kind w,
	enum param_kind bias, int32_t dx, bool dx_accumulate)
{
	bool accumulate = false, unused = false;
	struct op op = build_new(b, OP_NORM_GRAD, what);
	struct view dw = gradient_of(b, b->layer, w, &accumulate), db = gradient_of(b, b->layer, bias, &unused);
	op.out_dtype = (uint8_t)(b->gathers ? b->act : b->grad);
	op.flags |= (uint16_t)(rms_flag(b) | (accumulate ? OP_ACCUMULATE : 0) | (dx_accumulate ? OP_DX_ACCUMULATE : 0));
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	build_op(b, op,
		(const struct view[]){view_of(dy), view_of(x), weight_of(b, b->layer, w), view_of(stats), view_of(dx),
			dw, db});
	gradient_done(b, b->layer, w);
	gradient_done(b, b->layer, bias);
}

int32_t tp_gather(struct builder *b, int32_t rows_buffer, const char *what)
{
	if (!b->sequence_parallel)
		return rows_buffer;
	int32_t full = build_act(b, b->tokens, b->m->hidden, what);
	build_collective(b, COLL_ALL_GATHER, RED_SUM, DIM_TP, LANE_MODEL_COMM, b->act, b->tokens * b->m->hidden,
		view_of(rows_buffer), view_of(full), what, NONE);
	return full;
}

int32_t tp_reduce(struct builder *b, int32_t full_buffer, const char *what)
{
	if (b->tensor == 1)
		return full_buffer;
	int64_t elements = b->tokens * b->m->hidden;
	if (!b->sequence_parallel) {
		build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_TP, LANE_MODEL_COMM, b->act, elements,
			view_of(full_buffer), view_of(full_buffer), what, NONE);
		return full_buffer;
	}
	int32_t rows = build_act(b, b->rows, b->m->hidden, what);
	build_collective(b, COLL_REDUCE_SCATTER, RED_SUM, DIM_TP, LANE_MODEL_COMM, b->act, elements,
		view_of(full_buffer), view_of(rows), what, NONE);
	return rows;
}

struct op build_attention_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "attention");
	op.flags |= (uint16_t)((b->m->causal ? OP_CAUSAL : 0) | (b->m->position == POS_ALIBI ? OP_ALIBI : 0));
	op.attn.batch = b->c->train.micro_batch;
	op.attn.heads = b->heads;
	op.attn.kv_heads = b->kv_heads;
	op.attn.seq = b->seq;
	op.attn.head_dim = b->m->head_dim;
	if (k == OP_ATTENTION || k == OP_ATTENTION_GRAD)
		op.attn.window = model_window(b->m);
	if (k >= OP_ATTN_SCORES && k <= OP_ATTN_SCORES_GRAD && b->context > 1)
		op.attn.keys = b->m->seq_len;
	return op;
}

int32_t build_probs(struct builder *b, int32_t qkv, int32_t kv)
{
	int32_t probs = build_act(b, b->c->train.micro_batch * b->heads * b->seq, b->m->seq_len, "scores");
	build_op(b, build_attention_op(b, OP_ATTN_SCORES),
		(const struct view[]){view_of(qkv), view_of(probs), view_of(kv)});
	build_op(b, build_attention_op(b, OP_ATTN_SOFTMAX), (const struct view[]){view_of(probs)});
	return probs;
}

/* A recomputed block keeps nothing of its first forward pass. */
static bool keeps(const struct builder *b) { return b->recomputing || !build_recomputes(b, b->layer); }

static void attention_core(struct builder *b, struct acts *a)
{
	a->att = build_act(b, b->tokens, b->heads * b->m->head_dim, "attention out");
	a->lse = a->probs = NONE;
	if (b->c->train.attention == ATT_FLASH) {
		a->lse = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq, "lse");
		if (b->context > 1)
			context_attention(b, a);
		else
			build_op(b, build_attention_op(b, OP_ATTENTION),
				(const struct view[]){view_of(a->qkv), view_of(a->att), view_of(a->lse)});
		return;
	}
	int32_t kv = b->context > 1 ? context_keys(b, a->qkv) : NONE;
	a->probs = build_probs(b, a->qkv, kv);
	double dropout_B = b->c->stack.memory.dropout_B;
	if (keeps(b) && dropout_B > 0 && !build_recomputes_scores(b))
		a->kept_scores = build_hold(b, COMP_ACTIVATIONS,
			(dropout_B + dtype_bytes(b->act)) *
				(double)(b->c->train.micro_batch * b->heads * b->seq * b->m->seq_len),
			"dropped scores");
	build_op(b, build_attention_op(b, OP_ATTN_VALUES),
		(const struct view[]){view_of(a->probs), view_of(kv != NONE ? kv : a->qkv), view_of(a->att)});
}

/* Returns attention's output rows without PROJ's bias, given normed rows. project: false leaves the projection out. */
static int32_t attention_forward(struct builder *b, struct acts *a, int32_t normed, bool project)
{
	int64_t width = (b->heads + 2 * b->kv_heads) * b->m->head_dim, att = b->heads * b->m->head_dim;
	int32_t x = tp_gather(b, normed, "attention input");
	a->qkv = build_act(b, b->tokens, width, "qkv");
	build_linear(b, "qkv", b->tokens, width, b->m->hidden, x, PARAM_QKV_W, PARAM_QKV_B, a->qkv);
	a->kept_rotated = NONE;
	if (b->m->position == POS_ROPE) {
		build_op(b, build_attention_op(b, OP_ROPE), (const struct view[]){view_of(a->qkv)});
		if (keeps(b))
			a->kept_rotated = build_hold(b, COMP_ACTIVATIONS,
				(double)(b->tokens * (b->heads + b->kv_heads) * b->m->head_dim) *
					b->c->stack.memory.rotated_B,
				"rotated queries and keys");
	}
	attention_core(b, a);
	if (!project)
		return NONE;
	int32_t out = build_act(b, b->tokens, b->m->hidden, "proj");
	build_linear(b, "proj", b->tokens, b->m->hidden, att, a->att, PARAM_PROJ_W, PARAM_KIND_COUNT, out);
	return out;
}

static bool gated(const struct builder *b) { return b->m->mlp == MLP_SWIGLU || b->m->mlp == MLP_GEGLU; }

int64_t build_act_width(const struct builder *b, int64_t ffn) { return gated(b) ? 2 * ffn : ffn; }

void build_activation(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a)
{
	struct op op = build_new(b, OP_ACT, "act");
	op.matrix.rows = rows;
	op.matrix.cols = ffn;
	a->g = build_act(b, rows, ffn, "act");
	a->kept_gate = NONE;
	if (!gated(b) || b->c->train.fused) {
		build_op(b, op, (const struct view[]){view_of(a->h), view_of(a->g)});
		return;
	}
	int32_t half = build_act(b, rows, ffn, "gate");
	op.kind = OP_GATE_ACT;
	build_op(b, op, (const struct view[]){view_of(a->h), view_of(half)});
	op.kind = OP_GATE_MUL;
	build_op(b, op, (const struct view[]){view_of(a->h), view_of(half), view_of(a->g)});
	if (keeps(b))
		a->kept_gate = build_hold(b, COMP_ACTIVATIONS, (double)(rows * ffn) * b->c->stack.memory.gate_B,
			"gate");
}

struct mlp_shape mlp_dense(const struct builder *b)
{
	return (struct mlp_shape){PARAM_FC1_W, PARAM_FC1_B, PARAM_FC2_W, PARAM_FC2_B, b->ffn};
}

int32_t mlp_forward(struct builder *b, const struct mlp_shape *s, struct mlp_acts *a, int32_t normed, bool project)
{
	int64_t width = build_act_width(b, s->ffn);
	int32_t x = tp_gather(b, normed, "mlp input");
	a->h = build_act(b, b->tokens, width, "fc1");
	build_linear(b, "fc1", b->tokens, width, b->m->hidden, x, s->fc1, s->fc1_bias, a->h);
	build_activation(b, b->tokens, s->ffn, a);
	if (!project)
		return NONE;
	int32_t out = build_act(b, b->tokens, b->m->hidden, "fc2");
	build_linear(b, "fc2", b->tokens, b->m->hidden, s->ffn, a->g, s->fc2, PARAM_KIND_COUNT, out);
	return out;
}

bool build_ends_early(const struct builder *b) { return b->recomputing && !b->c->stack.recompute_last_gemm; }

/* Returns the second branch's output without FC2's bias, given normed rows. A recomputed block stops at FC2's input. */
static int32_t mlp_branch(struct builder *b, struct acts *a, int32_t normed)
{
	if (model_has_experts(b->m, b->layer))
		return moe_forward(b, a, normed);
	const struct mlp_shape dense = mlp_dense(b);
	int32_t out = mlp_forward(b, &dense, &a->mlp, normed, !build_ends_early(b));
	return build_ends_early(b) ? NONE : tp_reduce(b, out, "fc2");
}

static int32_t residual_add(struct builder *b, const char *what, int32_t x, int32_t y, enum param_kind bias)
{
	int32_t sum = build_act(b, b->rows, b->m->hidden, what);
	struct op op = build_new(b, OP_ADD, what);
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	struct view bv = weight_of(b, b->layer, bias);
	build_op(b, op, (const struct view[]){view_of(x), view_of(y), bv, view_of(sum)});
	return sum;
}

/* Appends sum = x + y + bias and normed = norm(sum): one op when fused. */
static void add_and_norm(struct builder *b, int32_t x, int32_t y, enum param_kind bias, enum param_kind w,
	enum param_kind wb, int32_t *sum, int32_t *normed, int32_t *stats)
{
	*normed = build_act(b, b->rows, b->m->hidden, "norm");
	*stats = build_fp32(b, 2 * b->rows, "norm stats");
	if (!b->c->train.fused) {
		*sum = residual_add(b, "residual", x, y, bias);
		build_norm(b, "norm", *sum, w, wb, *normed, *stats);
		return;
	}
	*sum = build_act(b, b->rows, b->m->hidden, "residual");
	struct op op = build_new(b, OP_ADD_NORM, "residual");
	op.flags |= rms_flag(b);
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	struct view bv = weight_of(b, b->layer, bias), wv = weight_of(b, b->layer, w), wbv = weight_of(b, b->layer, wb);
	build_op(b, op,
		(const struct view[]){view_of(x), view_of(y), bv, wv, wbv, view_of(*sum), view_of(*normed),
			view_of(*stats)});
}

/* GPT-NeoX and GPT-J: both branches read the block's input, and one reduction serves their sum. */
static int32_t parallel_block(struct builder *b, struct acts *a)
{
	bool project = !build_ends_early(b);
	a->n2 = build_act(b, b->rows, b->m->hidden, "norm");
	a->stats2 = build_fp32(b, 2 * b->rows, "norm stats");
	build_norm(b, "norm2", a->x_in, PARAM_NORM2_W, PARAM_NORM2_B, a->n2, a->stats2);
	a->x_mid = a->x_in;
	const struct mlp_shape dense = mlp_dense(b);
	int32_t att = attention_forward(b, a, a->n1, project), mlp = mlp_forward(b, &dense, &a->mlp, a->n2, project);
	if (!project)
		return NONE;
	struct op op = build_new(b, OP_ADD, "branches");
	op.matrix.rows = b->tokens;
	op.matrix.cols = b->m->hidden;
	int32_t both = build_act(b, b->tokens, b->m->hidden, "branches");
	build_op(b, op, (const struct view[]){view_of(att), view_of(mlp), view_of(NONE), view_of(both)});
	both = tp_reduce(b, both, "branches");
	int32_t x = residual_add(b, "residual", a->x_in, both, PARAM_PROJ_B);
	struct view bias = weight_of(b, b->layer, PARAM_FC2_B);
	if (bias.buffer >= 0) {
		struct op add = build_new(b, OP_BIAS, "fc2");
		add.matrix.rows = b->rows;
		add.matrix.cols = b->m->hidden;
		build_op(b, add, (const struct view[]){view_of(x), bias});
	}
	return x;
}

int32_t block_forward(struct builder *b, int32_t x_in, struct acts *a)
{
	a->x_in = x_in;
	a->kept_scores = NONE;
	a->kept_masks = keeps(b) ? build_hold(b, COMP_ACTIVATIONS,
					   2 * (double)(b->rows * b->m->hidden) * b->c->stack.memory.dropout_B,
					   "dropout masks")
	                         : NONE;
	if (b->m->post_norm) {
		a->n1 = x_in;
		int32_t att = tp_reduce(b, attention_forward(b, a, x_in, true), "proj");
		add_and_norm(b, x_in, att, PARAM_PROJ_B, PARAM_NORM1_W, PARAM_NORM1_B, &a->x_mid, &a->n2, &a->stats1);
		int32_t mlp = mlp_branch(b, a, a->n2), out;
		add_and_norm(b, a->n2, mlp, PARAM_FC2_B, PARAM_NORM2_W, PARAM_NORM2_B, &a->sum2, &out, &a->stats2);
		return out;
	}
	a->n1 = build_act(b, b->rows, b->m->hidden, "norm");
	a->stats1 = build_fp32(b, 2 * b->rows, "norm stats");
	build_norm(b, "norm1", x_in, PARAM_NORM1_W, PARAM_NORM1_B, a->n1, a->stats1);
	if (b->m->parallel_residual)
		return parallel_block(b, a);
	int32_t att = tp_reduce(b, attention_forward(b, a, a->n1, true), "proj");
	add_and_norm(b, x_in, att, PARAM_PROJ_B, PARAM_NORM2_W, PARAM_NORM2_B, &a->x_mid, &a->n2, &a->stats2);
	int32_t mlp = mlp_branch(b, a, a->n2);
	return build_ends_early(b) ? NONE : residual_add(b, "residual", a->x_mid, mlp, PARAM_FC2_B);
}
