/* The two ends of the model: the embedding; and the final norm, vocabulary head and loss. */
#include "step/build.h"

static bool has_positions(const struct builder *b) { return b->m->position == POS_LEARNED || b->m->type_vocab > 0; }

static struct view tokens_view(const struct builder *b) { return view_of(b->now->input); }

static struct view targets_view(const struct builder *b) { return view_at(b->now->input, 4 * (uint64_t)b->tokens); }

static enum dtype gradient_format(const struct builder *b) { return b->gathers ? b->act : b->grad; }

static struct op embedding_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "embedding");
	op.out_dtype = (uint8_t)(k == OP_EMBED ? b->act : gradient_format(b));
	op.flags |= b->tensor > 1 ? OP_VOCAB_PARALLEL : 0;
	op.embed.rows = b->tokens;
	op.embed.cols = b->m->hidden;
	op.embed.table_rows = b->vocab;
	return op;
}

static struct op position_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "position");
	op.out_dtype = (uint8_t)(k == OP_POSITION ? b->act : gradient_format(b));
	op.flags |= b->sequence_parallel ? OP_SEQUENCE_PARALLEL : 0;
	op.embed.rows = b->rows;
	op.embed.cols = b->m->hidden;
	op.embed.table_rows = b->m->seq_len;
	return op;
}

int32_t embedding_forward(struct builder *b)
{
	int32_t full = build_act(b, b->tokens, b->m->hidden, "embedding");
	build_op(b, embedding_op(b, OP_EMBED),
		(const struct view[]){tokens_view(b), weight_of(b, NONE, PARAM_TOKEN_EMBEDDING), view_of(full)});
	int32_t x = tp_reduce(b, full, "embedding");
	if (has_positions(b)) {
		struct view pos = weight_of(b, NONE, PARAM_POSITION_EMBEDDING),
			    type = weight_of(b, NONE, PARAM_TYPE_EMBEDDING);
		build_op(b, position_op(b, OP_POSITION), (const struct view[]){pos, type, view_of(x)});
	}
	b->now->embedded = x;
	if (!b->m->embedding_norm)
		return x;
	int32_t normed = build_act(b, b->rows, b->m->hidden, "embedding norm");
	b->now->embedding_stats = build_fp32(b, 2 * b->rows, "norm stats");
	build_norm(b, "embedding norm", x, PARAM_EMBEDDING_NORM_W, PARAM_EMBEDDING_NORM_B, normed,
		b->now->embedding_stats);
	return normed;
}

/* Returns the place of a table's gradient. Rows add to it one by one, so its first writer clears it. */
static struct view table_gradient(struct builder *b, enum param_kind k, bool cleared)
{
	bool accumulate = false;
	struct view g = gradient_of(b, NONE, k, &accumulate);
	if (g.buffer >= 0 && !accumulate && !cleared)
		build_fill(b, g, gradient_format(b), (int64_t)b->r->params.at[b->param_index[k]].elements,
			"embedding grad");
	return g;
}

void embedding_backward(struct builder *b, int32_t dx)
{
	if (b->m->embedding_norm) {
		int32_t d = build_act(b, b->rows, b->m->hidden, "embedding grad");
		build_norm_grad(b, "embedding norm", dx, b->now->embedded, b->now->embedding_stats,
			PARAM_EMBEDDING_NORM_W, PARAM_EMBEDDING_NORM_B, d, false);
		dx = d;
	}
	if (has_positions(b)) {
		struct view pos = table_gradient(b, PARAM_POSITION_EMBEDDING, false),
			    type = table_gradient(b, PARAM_TYPE_EMBEDDING, false);
		build_op(b, position_op(b, OP_POSITION_GRAD), (const struct view[]){view_of(dx), pos, type});
		gradient_done(b, NONE, PARAM_POSITION_EMBEDDING);
		gradient_done(b, NONE, PARAM_TYPE_EMBEDDING);
	}
	int32_t dy = tp_gather(b, dx, "embedding grad");
	struct view dw = table_gradient(b, PARAM_TOKEN_EMBEDDING, b->m->tied_embeddings && b->has_head);
	build_op(b, embedding_op(b, OP_EMBED_GRAD), (const struct view[]){tokens_view(b), view_of(dy), dw});
	gradient_done(b, NONE, PARAM_TOKEN_EMBEDDING);
}

static struct op loss_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "loss");
	op.matrix.rows = b->tokens;
	op.matrix.cols = b->vocab;
	return op;
}

/* Vocabulary-parallel cross-entropy (Shoeybi et al. 2019, section 3): the tensor group reduces maxima, then sums, in
 * place of logits. */
static void parallel_loss(struct builder *b, int32_t logits)
{
	int32_t max = build_fp32(b, b->tokens, "logit maxima"), sums = build_fp32(b, 2 * b->tokens, "logit sums");
	build_op(b, loss_op(b, OP_LOSS_MAX), (const struct view[]){view_of(logits), view_of(max)});
	build_collective(b, COLL_ALL_REDUCE, RED_MAX, DIM_TP, LANE_MODEL_COMM, DT_FP32, b->tokens, view_of(max),
		view_of(max), "logit maxima", NONE);
	build_op(b, loss_op(b, OP_LOSS_SUM),
		(const struct view[]){view_of(logits), targets_view(b), view_of(max), view_of(sums)});
	build_collective(b, COLL_ALL_REDUCE, RED_SUM, DIM_TP, LANE_MODEL_COMM, DT_FP32, 2 * b->tokens, view_of(sums),
		view_of(sums), "logit sums", NONE);
	build_op(b, loss_op(b, OP_LOSS_GRAD),
		(const struct view[]){view_of(logits), targets_view(b), view_of(max), view_of(sums),
			view_of(b->r->loss)});
}

static enum param_kind head_weight(const struct builder *b)
{
	return b->m->tied_embeddings ? PARAM_TOKEN_EMBEDDING : PARAM_HEAD_W;
}

void head_forward(struct builder *b, int32_t x)
{
	int64_t T = b->tokens, H = b->m->hidden, V = b->vocab;
	struct head_acts *a = &b->now->head;
	int32_t normed = x;
	a->x = x;
	a->stats = NONE;
	if (b->m->final_norm) {
		normed = build_act(b, b->rows, H, "final norm");
		a->stats = build_fp32(b, 2 * b->rows, "norm stats");
		build_norm(b, "final norm", x, PARAM_FINAL_NORM_W, PARAM_FINAL_NORM_B, normed, a->stats);
	}
	a->in = tp_gather(b, normed, "head input");
	a->logits = build_act(b, T, V, "logits");
	build_linear(b, "head", T, V, H, a->in, head_weight(b), PARAM_KIND_COUNT, a->logits);
	double more_B = b->c->stack.memory.loss_B - dtype_bytes(b->act);
	int32_t copies = build_hold(b, COMP_ACTIVATIONS, (double)(T * V) * (more_B > 0 ? more_B : 0), "logit copies");
	if (b->tensor > 1)
		parallel_loss(b, a->logits);
	else
		build_op(b, loss_op(b, OP_LOSS),
			(const struct view[]){view_of(a->logits), targets_view(b), view_of(b->r->loss)});
	build_release(b, &copies);
}

int32_t head_backward(struct builder *b)
{
	int64_t T = b->tokens, H = b->m->hidden, V = b->vocab;
	const struct head_acts *a = &b->now->head;
	int32_t full = build_act(b, T, H, "head input grad");
	build_linear_grad(b, "head", T, V, H, a->logits, head_weight(b), full);
	int32_t dx = tp_reduce(b, full, "head input grad");
	build_weight_grad(b, "head", T, V, H, a->logits, a->in, head_weight(b));
	if (!b->m->final_norm)
		return dx;
	int32_t dnormed = dx;
	dx = build_act(b, b->rows, H, "residual grad");
	build_norm_grad(b, "final norm", dnormed, a->x, a->stats, PARAM_FINAL_NORM_W, PARAM_FINAL_NORM_B, dx, false);
	return dx;
}
