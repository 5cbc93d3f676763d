/* Products with a layer's weights, their adapters, norms, and the collectives of tensor parallelism around products:
 * what forward and backward passes share.
 *
 * Tensor parallelism follows Shoeybi et al. 2019 (Megatron-LM, section 3): QKV and FC1 are cut by columns, PROJ and FC2
 * by rows, and an all-reduce completes the rows after each pair. Sequence parallelism follows Korthikanti et al. 2022
 * (section 4.2): between the pairs each rank has T/t of the token rows. An all-gather before a pair and a
 * reduce-scatter after it replace the all-reduce. The backward pass gathers the pair's input again instead of keeping
 * all of it; PyTorch's DTensor keeps it (struct stack, dtensor).
 */
#include "step/builder/blocks.h"

/* Returns the modules whose results a product has side by side. Q, K and V, and gate and up, are modules of their own
 * in Hugging Face's and torchtitan's models. */
static int64_t modules_of(const struct builder *b, enum param_kind w)
{
	const bool qkv = w == PARAM_QKV_W || w == PARAM_LORA_QKV_A || w == PARAM_LORA_QKV_A + 1,
		   fc1 = w == PARAM_FC1_W || w == PARAM_SHARED_FC1_W || w == PARAM_LORA_FC1_A ||
	                 w == PARAM_LORA_FC1_B || w == PARAM_LORA_SHARED_FC1_A || w == PARAM_LORA_SHARED_FC1_B ||
	                 w == PARAM_LORA_EXPERT_FC1_A || w == PARAM_LORA_EXPERT_FC1_B;
	return qkv ? 3 : fc1 && model_gated(b->m) ? 2 : 1;
}

/* Returns the modules that call a product. Decoders with layer norms have one for Q, K and V (GPT-2's c_attn,
 * query_key_value of GPT-NeoX, BLOOM and Falcon, nanoGPT's c_attn). Experts' products are called otherwise. */
static uint8_t linears_of(const struct builder *b, const struct linear *l)
{
	const struct model *m = b->m;
	const bool one = l->w == PARAM_QKV_W && m->norm == NORM_LAYERNORM && m->causal && m->encoder_layers == 0;
	return one || l->experts > 0 || param_is_lora(l->w) ? 1 : (uint8_t)modules_of(b, l->w);
}

/* Returns the units that hold the weight of an adapter's product: one for each module. */
static int64_t adapter_units(const struct builder *b, enum param_kind w)
{
	return b->gathers && b->c->parallel.adapter_units && param_is_lora(w) ? modules_of(b, w) : 0;
}

/* Returns the ops on DTensors of a product's linear modules: forward two views, the weight's transpose and mm; for the
 * rows' gradient two views, two transposes and mm, and the modules' gradients summed; for the weight's two transposes,
 * mm, and its hand-over. Counted by a dispatch mode around torchtitan's tensor-parallel block in PyTorch 2.10. Experts'
 * products take plain tensors. */
static int64_t linear_dtensors(const struct builder *b, enum param_kind w, uint32_t flags)
{
	const int64_t modules = modules_of(b, w);
	return flags & (OP_TRANS_A | OP_TRANS_B) ? 4 * modules : 6 * modules - 1;
}

uint8_t build_dtensors(const struct builder *b, int64_t ops)
{
	return b->c->stack.dtensor && b->tensor > 1 ? (uint8_t)ops : 0;
}

/* Returns whether the weight of a product is frozen, and lies in fp8. */
static bool frozen_in_8_bits(const struct builder *b, enum param_kind w)
{
	const struct role_param *rp = param_of(b, b->layer, w);
	if (b->c->train.dtype != DT_FP8 || !rp)
		return false;
	const struct bucket *unit = &b->r->buckets.at[rp->bucket];
	return !unit->trained && rp->offset < unit->narrow;
}

/* Returns whether a weight is the factor of an adapter that multiplies first. */
static bool is_first_factor(enum param_kind w) { return param_is_lora(w) && (w - PARAM_LORA_QKV_A) % 2 == 0; }

/* Returns what runs around a product with one of an adapter's factors. */
static enum adapter_part adapter_part(const struct builder *b, enum param_kind w, uint32_t flags)
{
	const bool of_a = is_first_factor(w), grad = !(flags & OP_TRANS_B);
	if (!param_is_lora(w) || b->c->train.fused || flags & OP_TRANS_A || (!of_a && !grad))
		return ADAPTER_NONE;
	return !of_a ? ADAPTER_SUM_GRAD : grad ? ADAPTER_INPUT_GRAD : ADAPTER_INPUT;
}

/* Returns OP_WIDE where adapters run in a wider format than what is around them. */
static uint32_t wide(const struct builder *b)
{
	return b->c->train.lora_dtype == DT_FP32 && dtype_bytes(b->act) < dtype_bytes(DT_FP32) ? OP_WIDE : 0;
}

/* Appends a product with a layer's weights. The products of the router and of what conditions stay in the wider format:
 * they have few columns, or few rows. */
static void product(struct builder *b, const struct linear *l, uint32_t flags, int64_t m, int64_t n, int64_t k,
	enum dtype out_dtype, struct view A, struct view B, struct view bias, struct view C)
{
	const bool grouped = l->experts > 0,
		   here = grouped ? narrow_experts(b) : narrow_here(b) || narrow_head(b, l->w),
		   narrow = here && l->w != PARAM_ROUTER_W && l->w != PARAM_ADAPT_W && !param_is_lora(l->w);
	int64_t groups = grouped ? l->experts : 1;
	if (narrow) {
		A = narrow_copy_of(b, A, groups * m * k);
		B = narrow_copy_of(b, B, groups * n * k);
	}
	struct op op = build_new(b, grouped ? OP_GROUPED_GEMM : OP_GEMM, l->what);
	op.dtype = (uint8_t)(narrow || b->c->train.dtype == DT_TF32 ? b->c->train.dtype
								    : b->act); /* tf32 stays a way to multiply */
	op.out_dtype = (uint8_t)out_dtype;
	op.flags |= flags | (param_is_lora(l->w) ? wide(b) : 0);
	op.gemm.m = m;
	op.gemm.n = n;
	op.gemm.k = k;
	op.gemm.groups = l->experts;
	op.gemm.units = adapter_units(b, l->w);
	op.adapter = (uint8_t)adapter_part(b, l->w, flags);
	op.modules = is_first_factor(l->w) && !b->c->train.fused ? (uint8_t)modules_of(b, l->w) : 0;
	op.linears = linears_of(b, l);
	op.frozen8 = frozen_in_8_bits(b, l->w);
	op.dtensors = build_dtensors(b, grouped ? 0 : linear_dtensors(b, l->w, flags));
	build_op(b, &op, grouped ? (const struct view[]){A, B, C} : (const struct view[]){A, B, bias, C});
}

static int64_t all_rows(const struct linear *l) { return l->experts > 0 ? l->experts * l->rows : l->rows; }

/* ---- adapters ---- */

/* Returns the place of a product's adapter among LORA_PRODUCTS; NONE without one. */
static int lora_place(const struct builder *b, const struct linear *l)
{
	const enum param_kind a = param_lora_of(l->w);
	return param_of(b, b->layer, a) ? (int)(a - PARAM_LORA_QKV_A) / 2 : NONE;
}

/* x A^T and u B^T of a product. */
static struct linear lora_a(const struct builder *b, const struct linear *l)
{
	return (struct linear){"lora a", l->rows, b->m->lora_rank, l->in, param_lora_of(l->w), NO_PARAM, l->experts};
}

static struct linear lora_b(const struct builder *b, const struct linear *l)
{
	return (struct linear){"lora b", l->rows, l->out, b->m->lora_rank, param_lora_of(l->w) + 1, NO_PARAM,
		l->experts};
}

/* Appends y += (x A^T) B^T. Not fused, the sum is a kernel of its own (enum adapter_part). */
static void lora_forward(struct builder *b, const struct linear *l, int32_t x, struct view y)
{
	const int place = lora_place(b, l);
	const bool fused = b->c->train.fused;
	if (place == NONE)
		return;
	const struct linear down = lora_a(b, l), up = lora_b(b, l);
	int32_t u = build_linear(b, &down, x);
	struct view sum = fused ? y : view_of(build_act(b, all_rows(&up), up.out));
	product(b, &up, OP_TRANS_B | (fused ? OP_ACCUMULATE : 0), up.rows, up.out, up.in, b->act, view_of(u),
		weight_of(b, b->layer, up.w), view_of(NONE), sum);
	if (!fused) {
		struct op add = build_matrix(b, OP_ADD, "lora add", all_rows(&up), up.out);
		add.adapter = ADAPTER_SUM;
		add.flags |= wide(b);
		build_with(b, &add, y, sum, view_of(NONE), y);
	}
	b->acts_now->lora_in[place] = u;
}

/* Appends dx += (dy B) A. */
static void lora_input_grad(struct builder *b, const struct linear *l, int32_t dy, int32_t dx)
{
	const int place = lora_place(b, l);
	if (place == NONE)
		return;
	const struct linear down = lora_a(b, l), up = lora_b(b, l);
	int32_t du = build_linear_grad(b, &up, dy);
	product(b, &down, OP_ACCUMULATE, down.rows, down.in, down.out, b->act, view_of(du),
		weight_of(b, b->layer, down.w), view_of(NONE), view_of(dx));
	b->lora_grad[place] = du;
}

/* Appends dB += dy^T u and dA += du^T x, where the product has an adapter. */
static void lora_weight_grad(struct builder *b, const struct linear *l, int32_t dy, int32_t x)
{
	const int place = lora_place(b, l);
	if (place == NONE)
		return;
	const struct linear down = lora_a(b, l), up = lora_b(b, l);
	build_weight_grad(b, &up, dy, b->acts_now->lora_in[place]);
	build_weight_grad(b, &down, b->lora_grad[place], x);
}

static void linear_at(struct builder *b, const struct linear *l, int32_t x, struct view y)
{
	struct view w = weight_of(b, b->layer, l->w), bias = weight_of(b, b->layer, l->bias);
	const int64_t cols = saved_again_cols(b, l);
	bool epilogue = b->c->train.fused;
	if (cols == 0)
		return;
	product(b, l, OP_TRANS_B, l->rows, cols, l->in, b->act, view_of(x), w, epilogue ? bias : view_of(NONE), y);
	if (!epilogue && bias.buffer >= 0)
		build_with(b, made_op(build_matrix(b, OP_BIAS, l->what, l->rows, cols)), y, bias);
	lora_forward(b, l, x, y);
}

void build_linear_at(struct builder *b, const struct linear *l, int32_t x, struct view y)
{
	linear_at(b, l, x, y);
	saved_product(b, l, NONE);
}

int32_t build_linear(struct builder *b, const struct linear *l, int32_t x)
{
	const int32_t saved = saved_product_buffer(b, l);
	if (saved != NONE)
		return saved;
	int32_t y = build_act(b, all_rows(l), l->out);
	linear_at(b, l, x, view_of(y));
	saved_product(b, l, y);
	return y;
}

int32_t build_linear_grad(struct builder *b, const struct linear *l, int32_t dy)
{
	int32_t dx = build_act(b, all_rows(l), l->in);
	product(b, l, 0, l->rows, l->in, l->out, b->act, view_of(dy), weight_of(b, b->layer, l->w), view_of(NONE),
		view_of(dx));
	lora_input_grad(b, l, dy, dx);
	return dx;
}

void build_weight_grad(struct builder *b, const struct linear *l, int32_t dy, int32_t x)
{
	bool accumulate = false;
	if (!trained_of(b, b->layer, l->w)) {
		lora_weight_grad(b, l, dy, x);
		return;
	}
	bool shared = (l->w == PARAM_TOKEN_EMBEDDING && b->has_embedding) ||
	              (l->w == PARAM_HEAD_W &&
			      b->further_tokens); /* the embedding adds to the gradient that the head begins */
	if (b->defers_weights && !shared) {
		struct deferred_weights later = {*l, dy, x, b->layer, b->micro, b->chunk};
		if (!b->st && !vec_push(&b->deferred, later))
			build_nomem(b, "the gradients of weights");
		return;
	}
	struct view dw = gradient_of(b, b->layer, l->w, &accumulate);
	product(b, l, (uint16_t)(OP_TRANS_A | (accumulate ? OP_ACCUMULATE : 0)), l->out, l->in, l->rows,
		b->written_grad, view_of(dy), view_of(x), view_of(NONE), dw);
	if (!shared)
		gradient_done(b, b->layer, l->w);
}

void build_bias_grad(struct builder *b, const char *what, int64_t rows, int64_t cols, int32_t dy, enum param_kind bias)
{
	bool accumulate = false;
	struct view db = gradient_of(b, b->layer, bias, &accumulate);
	if (db.buffer < 0)
		return;
	struct op op = build_matrix(b, OP_BIAS_GRAD, what, rows, cols);
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	build_with(b, &op, view_of(dy), db);
	gradient_done(b, b->layer, bias);
}

struct op build_norm_op(const struct builder *b, enum op_kind k, const char *what, int64_t cols)
{
	struct op op = build_matrix(b, k, what, b->rows, cols);
	op.flags |= b->m->norm == NORM_RMSNORM ? OP_RMS : 0;
	op.dtensors = build_dtensors(b, k == OP_NORM_GRAD ? 2 : 1); /* the weight's gradient is handed over */
	return op;
}

/* `cols` of the rows' `width` columns are normed. */
static int32_t norm_cols(struct builder *b, const char *what, int32_t x, int64_t cols, int64_t width, enum param_kind w,
	enum param_kind bias, int32_t *stats)
{
	int32_t normed = build_act(b, b->rows, cols);
	struct op op = build_norm_op(b, OP_NORM, what, cols);
	op.matrix.width = width == cols ? 0 : width;
	*stats = build_fp32(b, 2 * b->rows);
	build_with(b, &op, view_of(x), weight_of(b, b->layer, w), weight_of(b, b->layer, bias), view_of(normed),
		view_of(*stats));
	return normed;
}

struct view gradient_or_scratch(struct builder *b, enum param_kind k, bool *accumulate)
{
	const struct role_param *rp = param_of(b, b->layer, k);
	const struct view at = gradient_of(b, b->layer, k, accumulate);
	if (at.buffer >= 0 || b->st || !rp)
		return at;
	return view_of(build_buffer(b, COMP_BUFFERS, b->written_grad, (int64_t)rp->elements, false));
}

static int32_t norm_grad_cols(struct builder *b, const char *what, int32_t dy, int32_t x, int64_t cols, int64_t width,
	int32_t stats, enum param_kind w, enum param_kind bias, int32_t into)
{
	bool accumulate = false, unused = false;
	int32_t dx = into == NONE ? build_act(b, b->rows, width) : into;
	struct op op = build_norm_op(b, OP_NORM_GRAD, what, cols);
	op.dropout = b->drops;
	op.matrix.width = width == cols ? 0 : width;
	struct view dw = gradient_or_scratch(b, w, &accumulate), db = gradient_of(b, b->layer, bias, &unused);
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= (uint32_t)((accumulate ? OP_ACCUMULATE : 0) | (into == NONE ? 0 : OP_DX_ACCUMULATE));
	build_with(b, &op, view_of(dy), view_of(x), weight_of(b, b->layer, w), view_of(stats), view_of(dx), dw, db);
	gradient_done(b, b->layer, w);
	gradient_done(b, b->layer, bias);
	return dx;
}

int32_t build_norm(struct builder *b, const char *what, int32_t x, enum param_kind w, int32_t *stats)
{
	return norm_cols(b, what, x, b->m->hidden, b->m->hidden, w, w + 1, stats);
}

int32_t build_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats, enum param_kind w,
	int32_t into)
{
	return norm_grad_cols(b, what, dy, x, b->m->hidden, b->m->hidden, stats, w, w + 1, into);
}

int32_t build_stream_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats,
	enum param_kind w, int32_t into)
{
	b->drops = b->m->dropout > 0;
	const int32_t dx = build_norm_grad(b, what, dy, x, stats, w, into);
	b->drops = false;
	return dx;
}

int32_t build_latent_norm(struct builder *b, const char *what, int32_t x, int64_t cols, int64_t width,
	enum param_kind w, int32_t *stats)
{
	return norm_cols(b, what, x, cols, width, w, NO_PARAM, stats);
}

int32_t build_latent_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int64_t cols, int64_t width,
	int32_t stats, enum param_kind w)
{
	return norm_grad_cols(b, what, dy, x, cols, width, stats, w, NO_PARAM, NONE);
}

/* Lets the next exchange of tensor ranks wait for the kernels that the host thread has issued to compute: the stream
 * of NCCL waits for the current one (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, syncStream). */
static void after_compute(struct builder *b)
{
	if (b->c->stack.dtensor)
		build_after(b, LANE_MODEL_COMM, build_last(b, LANE_COMPUTE));
}

int32_t tp_gather_cols(struct builder *b, int32_t rows, int64_t cols, const char *what)
{
	if (!b->sequence_parallel)
		return rows;
	after_compute(b);
	return build_exchange(b, COLL_ALL_GATHER, DIM_TP, rows, b->tokens, cols, what);
}

/* Adapters read the rows in 16 bits. */
static bool gathers_narrow_rows(const struct builder *b)
{
	return b->c->stack.dtensor && narrow_here(b) && b->c->train.dtype == DT_FP8 && b->m->lora_rank == 0 &&
	       stack_recipe(&b->c->stack) == FP8_TENSORWISE;
}

int32_t tp_gather(struct builder *b, int32_t rows, const char *what)
{
	if (!b->sequence_parallel || !gathers_narrow_rows(b))
		return tp_gather_cols(b, rows, b->m->hidden, what);
	const int64_t mine = b->rows * b->m->hidden, all = b->tokens * b->m->hidden;
	int32_t part = build_buffer(b, COMP_ACTIVATIONS, DT_FP8, mine, false),
		full = build_buffer(b, COMP_ACTIVATIONS, DT_FP8, all, false);
	build_cast(b, view_of(rows), b->act, view_of(part), DT_FP8, mine, "narrow copy");
	after_compute(b);
	build_on(b, made_op(build_collective(b, COLL_ALL_GATHER, DIM_TP, LANE_MODEL_COMM, DT_FP8, all, what, NONE)),
		part, full);
	narrow_is_own(b, view_of(full));
	return full;
}

int32_t tp_gather_input(struct builder *b, int32_t rows, const char *what)
{
	struct gathered *g = b->acts_now->gathered, *const end = g + GATHERED_INPUTS;
	const bool once = b->c->stack.gathers_matrices;
	if (!b->sequence_parallel || (!b->c->stack.dtensor && !once) || b->st)
		return tp_gather(b, rows, what);
	while (g < end && g->rows != NONE && g->rows != rows)
		g++;
	if (g < end && g->rows == rows)
		return g->full;
	const int32_t full = tp_gather(b, rows, what);
	/* XLA gathers once in the body of a scan, and the forward pass is a scan of its own. */
	if (g < end && (!once || b->recomputing))
		*g = (struct gathered){rows, full};
	return full;
}

int32_t tp_reduce_cols(struct builder *b, int32_t full, int64_t cols, const char *what)
{
	if (b->tensor > 1)
		after_compute(b);
	if (b->sequence_parallel)
		return build_exchange(b, COLL_REDUCE_SCATTER, DIM_TP, full, b->tokens, cols, what);
	if (b->tensor > 1)
		build_all_reduce(b, DIM_TP, LANE_MODEL_COMM, b->act, b->tokens * cols, view_of(full), what, NONE);
	return full;
}

int32_t tp_reduce(struct builder *b, int32_t full, const char *what)
{
	return tp_reduce_cols(b, full, b->m->hidden, what);
}

int32_t tp_reduce_grad(struct builder *b, int32_t full, int products, const char *what)
{
	const int32_t dx = tp_reduce(b, full, what);
	if (b->sequence_parallel && b->c->stack.dtensor && products > 1 && !b->st)
		b->r->ops.at[build_last(b, LANE_MODEL_COMM)].flags |= OP_WHOLE;
	return dx;
}
