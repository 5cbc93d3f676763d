/* The two ends of the model: the embedding; and the final norm, vocabulary head and loss. */
#include "step/build.h"

static bool has_positions(const struct builder *b) { return b->m->position == POS_LEARNED || b->m->type_vocab > 0; }

static struct view tokens_view(const struct builder *b) { return view_of(b->now->input); }

static struct view targets_view(const struct builder *b) { return view_at(b->now->input, 4 * (uint64_t)b->tokens); }

static struct op table_op(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t table_rows)
{
	struct op op = build_new(b, k, what);
	op.out_dtype = (uint8_t)(k == OP_EMBED || k == OP_POSITION ? b->act : b->written_grad);
	op.embed.rows = rows;
	op.embed.cols = b->m->hidden;
	op.embed.table_rows = table_rows;
	return op;
}

static struct op embedding_op(const struct builder *b, enum op_kind k)
{
	struct op op = table_op(b, k, "embedding", b->tokens, b->vocab);
	op.flags |= b->tensor > 1 ? OP_VOCAB_PARALLEL : 0;
	return op;
}

static struct op position_op(const struct builder *b, enum op_kind k)
{
	struct op op = table_op(b, k, "position", b->rows, b->m->seq_len);
	op.flags |= b->sequence_parallel ? OP_SEQUENCE_PARALLEL : 0;
	return op;
}

int32_t embedding_forward(struct builder *b)
{
	int32_t full = build_act(b, b->tokens, b->m->hidden);
	build_with(b, embedding_op(b, OP_EMBED), tokens_view(b), weight_of(b, NONE, PARAM_TOKEN_EMBEDDING),
		view_of(full));
	int32_t x = tp_reduce(b, full, "embedding");
	if (has_positions(b)) {
		struct view pos = weight_of(b, NONE, PARAM_POSITION_EMBEDDING),
			    type = weight_of(b, NONE, PARAM_TYPE_EMBEDDING);
		build_with(b, position_op(b, OP_POSITION), pos, type, view_of(x));
	}
	b->now->embedded = x;
	if (!b->m->embedding_norm)
		return x;
	return build_norm(b, "embedding norm", x, PARAM_EMBEDDING_NORM_W, &b->now->embedding_stats);
}

/* Returns the place of a table's gradient. Rows add to it one by one, so its first writer clears it. */
static struct view table_gradient(struct builder *b, enum param_kind k, bool cleared)
{
	bool accumulate = false;
	struct view g = gradient_of(b, NONE, k, &accumulate);
	if (g.buffer >= 0 && !accumulate && !cleared)
		build_fill(b, g, b->written_grad, (int64_t)param_of(b, NONE, k)->elements, "embedding grad");
	return g;
}

void embedding_backward(struct builder *b, int32_t dx)
{
	if (b->m->embedding_norm)
		dx = build_norm_grad(b, "embedding norm", dx, b->now->embedded, b->now->embedding_stats,
			PARAM_EMBEDDING_NORM_W, NONE);
	if (has_positions(b) &&
		(trained_of(b, NONE, PARAM_POSITION_EMBEDDING) || trained_of(b, NONE, PARAM_TYPE_EMBEDDING))) {
		struct view pos = table_gradient(b, PARAM_POSITION_EMBEDDING, false),
			    type = table_gradient(b, PARAM_TYPE_EMBEDDING, false);
		build_with(b, position_op(b, OP_POSITION_GRAD), view_of(dx), pos, type);
		gradient_done(b, NONE, PARAM_POSITION_EMBEDDING);
		gradient_done(b, NONE, PARAM_TYPE_EMBEDDING);
	}
	if (!trained_of(b, NONE, PARAM_TOKEN_EMBEDDING))
		return;
	int32_t dy = tp_gather(b, dx, "embedding grad");
	struct view dw = table_gradient(b, PARAM_TOKEN_EMBEDDING, b->m->tied_embeddings && b->has_head);
	build_with(b, embedding_op(b, OP_EMBED_GRAD), tokens_view(b), view_of(dy), dw);
	gradient_done(b, NONE, PARAM_TOKEN_EMBEDDING);
}

static struct op loss_op(const struct builder *b, enum op_kind k)
{
	return build_matrix(b, k, "loss", b->tokens, b->vocab);
}

static void reduce_loss(struct builder *b, enum reduce_op reduce, int32_t buffer, int64_t elements, const char *what)
{
	struct op op = build_collective(b, COLL_ALL_REDUCE, DIM_TP, LANE_MODEL_COMM, DT_FP32, elements, what, NONE);
	op.reduce = (uint8_t)reduce;
	build_on(b, op, buffer, buffer);
}

/* Vocabulary-parallel cross-entropy (Shoeybi et al. 2019, section 3): the tensor group reduces maxima, then sums, in
 * place of logits. */
static void parallel_loss(struct builder *b, int32_t logits)
{
	int32_t max = build_fp32(b, b->tokens), sums = build_fp32(b, 2 * b->tokens);
	build_on(b, loss_op(b, OP_LOSS_MAX), logits, max);
	reduce_loss(b, RED_MAX, max, b->tokens, "logit maxima");
	build_with(b, loss_op(b, OP_LOSS_SUM), view_of(logits), targets_view(b), view_of(max), view_of(sums));
	reduce_loss(b, RED_SUM, sums, 2 * b->tokens, "logit sums");
	build_with(b, loss_op(b, OP_LOSS_GRAD), view_of(logits), targets_view(b), view_of(max), view_of(sums),
		view_of(b->r->loss));
}

static struct linear linear_head(const struct builder *b)
{
	return (struct linear){"head", b->tokens, b->vocab, b->m->hidden,
		b->m->tied_embeddings ? PARAM_TOKEN_EMBEDDING : PARAM_HEAD_W, NO_PARAM, 0};
}

static struct op cap_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "logits");
	op.cap = (struct op_cap){b->tokens, b->vocab, b->m->logit_softcap};
	return op;
}

void head_forward(struct builder *b, int32_t x)
{
	const struct linear head = linear_head(b);
	struct head_acts *a = &b->now->head;
	int32_t normed = x;
	a->x = x;
	a->stats = NONE;
	if (b->m->final_norm)
		normed = build_norm(b, "final norm", x, PARAM_FINAL_NORM_W, &a->stats);
	a->in = tp_gather(b, normed, "head input");
	a->logits = a->capped = build_linear(b, &head, a->in);
	if (b->m->logit_softcap > 0) {
		a->capped = build_act(b, b->tokens, b->vocab);
		build_on(b, cap_op(b, OP_SOFTCAP), a->logits, a->capped);
	}
	double more_B = b->c->stack.memory.loss_B - dtype_bytes(b->act);
	int32_t copies = build_hold(b, COMP_ACTIVATIONS, (double)(b->tokens * b->vocab) * (more_B > 0 ? more_B : 0),
		"logit copies");
	if (b->tensor > 1)
		parallel_loss(b, a->capped);
	else
		build_with(b, loss_op(b, OP_LOSS), view_of(a->capped), targets_view(b), view_of(b->r->loss));
	build_release(b, &copies);
}

int32_t head_backward(struct builder *b)
{
	const struct linear head = linear_head(b);
	const struct head_acts *a = &b->now->head;
	if (b->m->logit_softcap > 0)
		build_on(b, cap_op(b, OP_SOFTCAP_GRAD), a->logits, a->capped);
	int32_t full = build_linear_grad(b, &head, a->capped), dx = tp_reduce(b, full, "head input grad");
	build_weight_grad(b, &head, a->capped, a->in);
	if (!b->m->final_norm)
		return dx;
	return build_norm_grad(b, "final norm", dx, a->x, a->stats, PARAM_FINAL_NORM_W, NONE);
}
