/* The end of the model: final norm, heads and losses.
 *
 * The vocabulary head sees all rows of a sequence, or its first `predictions` ones: which rows a loader has masked does
 * not change what the step costs. A class head sees the first row of each sequence, through a pooler where the model
 * has one (BERT: Devlin et al. 2019, arXiv:1810.04805, sections 3.1 and 4.1). Each has a loss, and the losses add up,
 * each the mean over its rows. A head of patches predicts
 * numbers, and its loss is their mean squared error.
 */
#include "step/builder/blocks.h"

static struct view targets_view(const struct builder *b) { return feed_view(b, INPUT_PART_TARGETS); }

static struct op loss_op(const struct builder *b, enum op_kind k)
{
	return build_matrix(b, k, "loss", b->tokens, b->vocab);
}

static void reduce_loss(struct builder *b, enum reduce_op reduce, int32_t buffer, int64_t elements, const char *what)
{
	struct op op = build_collective(b, COLL_ALL_REDUCE, DIM_TP, LANE_MODEL_COMM, DT_FP32, elements, what, NONE);
	op.reduce = (uint8_t)reduce;
	build_on(b, &op, buffer, buffer);
}

/* Vocabulary-parallel cross-entropy (Shoeybi et al. 2019, section 3): the tensor group reduces maxima, then sums, in
 * place of logits. */
static void parallel_loss(struct builder *b, int32_t logits, struct view targets)
{
	int32_t max = build_fp32(b, b->tokens), sums = build_fp32(b, 2 * b->tokens);
	build_on(b, made_op(loss_op(b, OP_LOSS_MAX)), logits, max);
	reduce_loss(b, RED_MAX, max, b->tokens, "logit maxima");
	build_with(b, made_op(loss_op(b, OP_LOSS_SUM)), view_of(logits), targets, view_of(max), view_of(sums));
	reduce_loss(b, RED_SUM, sums, 2 * b->tokens, "logit sums");
	build_with(b, made_op(loss_op(b, OP_LOSS_GRAD)), view_of(logits), targets, view_of(max), view_of(sums),
		view_of(b->r->loss));
}

static struct linear linear_head(const struct builder *b)
{
	return (struct linear){"head", b->tokens, b->vocab, b->m->hidden,
		model_ties(b->m) ? PARAM_TOKEN_EMBEDDING : PARAM_HEAD_W, PARAM_HEAD_B, 0};
}

/* ---- rows that a head sees ---- */

/* Takes the first `n` rows of each sequence. What follows has sequences of so many rows. */
static int32_t pick(struct builder *b, int32_t x, int64_t n, const char *what)
{
	if (n == b->m->seq_len)
		return x;
	int32_t picked = build_act(b, b->c->train.micro_batch * n, b->m->hidden);
	build_on(b, made_op(build_sequence_op(b, OP_PICK, what, n)), x, picked);
	build_span(b, n);
	return picked;
}

/* Returns the gradient of all rows: that of the first ones added to `into`, or beside zeros in a new buffer. */
static int32_t pick_grad(struct builder *b, int32_t dy, int64_t n, const char *what, int32_t into)
{
	if (n == b->m->seq_len)
		return dy;
	build_span(b, b->m->seq_len);
	struct op op = build_sequence_op(b, OP_PICK_GRAD, what, n);
	int32_t dx = into == NONE ? build_rows(b) : into;
	op.flags |= into == NONE ? 0 : OP_ACCUMULATE;
	build_on(b, &op, dy, dx);
	return dx;
}

/* ---- a dense layer before a head ---- */

static struct linear linear_dense(const struct builder *b, const char *what, enum param_kind w)
{
	return (struct linear){what, b->rows, b->m->hidden, b->m->hidden, w, w + 1, 0};
}

static struct op act_op(const struct builder *b, enum op_kind k, const char *what, int act)
{
	struct op op = build_matrix(b, k, what, b->rows, b->m->hidden);
	op.mlp = (uint8_t)act;
	return op;
}

static int32_t dense_forward(struct builder *b, const struct linear *l, int act, int32_t x, int32_t *before)
{
	int32_t y = build_rows(b);
	*before = build_linear(b, l, x);
	build_on(b, made_op(act_op(b, OP_ACT, l->what, act)), *before, y);
	return y;
}

static int32_t dense_backward(struct builder *b, const struct linear *l, int act, int32_t x, int32_t before, int32_t dy)
{
	int32_t dh = build_rows(b);
	build_on(b, made_op(act_op(b, OP_ACT_GRAD, l->what, act)), before, dy, dh);
	int32_t dx = build_linear_grad(b, l, dh);
	build_bias_grad(b, l->what, l->rows, l->out, dh, l->bias);
	build_weight_grad(b, l, dh, x);
	return dx;
}

/* ---- the vocabulary head ---- */

/* Returns the tokens whose logits are there at once. */
static int64_t logit_rows(const struct builder *b)
{
	int64_t rows = b->c->train.loss_chunk;
	if (rows == AUTO && b->c->stack.chunks_loss) {
		const int64_t parts = (b->m->vocab + b->m->hidden - 1) / b->m->hidden;
		for (rows = 1; rows * parts < b->tokens;)
			rows *= 2;
	}
	return rows > 0 && rows < b->tokens ? rows : b->tokens;
}

/* Lets the logits count as those of a chunk of tokens. The program has one product and one loss over all of them. */
static void keep_chunk(struct builder *b, struct head_acts *a, int64_t rows)
{
	a->kept_chunk = NONE;
	if (rows == b->tokens || b->st || a->logits == NONE)
		return;
	b->r->buffers.at[a->logits].inside = b->r->buffers.at[a->capped].inside = true;
	a->kept_chunk = build_hold(b, COMP_ACTIVATIONS,
		(double)(rows * b->vocab) * dtype_bytes(b->act) * (a->capped == a->logits ? 1 : 2),
		"logits of a chunk");
}

static struct op cap_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "logits");
	op.cap = (struct op_cap){b->tokens, b->vocab, b->m->logit_softcap};
	return op;
}

/* The transform's activation is the MLP's, without its gate (ModernBERT). */
static int transform_activation(const struct builder *b)
{
	const enum mlp mlp = b->m->mlp;
	return mlp == MLP_GEGLU ? (int)MLP_GELU : mlp == MLP_SWIGLU ? (int)ACTIVATION_SILU : (int)mlp;
}

void vocabulary_forward(struct builder *b, struct head_acts *a, int32_t normed, struct view targets)
{
	a->seen = pick(b, normed, model_targets(b->m), "predictions");
	int32_t x = a->seen;
	if (b->m->head_transform) {
		const struct linear dense = linear_dense(b, "head transform", PARAM_HEAD_DENSE_W);
		a->active = dense_forward(b, &dense, transform_activation(b), x, &a->dense);
		x = build_norm(b, dense.what, a->active, PARAM_HEAD_NORM_W, &a->dense_stats);
	}
	const struct linear head = linear_head(b);
	a->in = tp_gather(b, x, "head input");
	a->logits = a->capped = build_linear(b, &head, a->in);
	if (b->m->logit_softcap > 0) {
		a->capped = build_act(b, b->tokens, b->vocab);
		build_on(b, made_op(cap_op(b, OP_SOFTCAP)), a->logits, a->capped);
	}
	const int64_t rows = logit_rows(b);
	keep_chunk(b, a, rows);
	const struct stack_memory *mem = &b->c->stack.memory;
	double more_B = mem->loss_B + (b->tensor > 1 ? mem->loss_tensor_B : 0) - dtype_bytes(b->act);
	int32_t copies = build_hold(b, COMP_ACTIVATIONS, (double)(rows * b->vocab) * (more_B > 0 ? more_B : 0),
		"logit copies");
	if (b->tensor > 1)
		parallel_loss(b, a->capped, targets);
	else
		build_with(b, made_op(loss_op(b, OP_LOSS)), view_of(a->capped), targets, view_of(b->r->loss));
	build_release(b, &copies);
	build_span(b, b->m->seq_len);
}

int32_t vocabulary_backward(struct builder *b, struct head_acts *a)
{
	const int64_t n = model_targets(b->m);
	build_span(b, n);
	const struct linear head = linear_head(b), dense = linear_dense(b, "head transform", PARAM_HEAD_DENSE_W);
	if (b->m->logit_softcap > 0)
		build_on(b, made_op(cap_op(b, OP_SOFTCAP_GRAD)), a->logits, a->capped);
	int32_t full = build_linear_grad(b, &head, a->capped), dx = tp_reduce(b, full, "head input grad");
	build_bias_grad(b, "head", head.rows, head.out, a->capped, head.bias);
	build_weight_grad(b, &head, a->capped, a->in);
	build_release(b, &a->kept_chunk);
	if (b->m->head_transform) {
		dx = build_norm_grad(b, dense.what, dx, a->active, a->dense_stats, PARAM_HEAD_NORM_W, NONE);
		dx = dense_backward(b, &dense, transform_activation(b), a->seen, a->dense, dx);
	}
	return pick_grad(b, dx, n, "predictions", NONE);
}

/* ---- the class head: replicated over the tensor group, as Megatron-LM's heads of BERT are ---- */

static struct linear linear_classes(const struct builder *b)
{
	return (struct linear){"classes", b->rows, b->m->classes, b->m->hidden, PARAM_CLASS_W, PARAM_CLASS_B, 0};
}

static void classes_forward(struct builder *b, int32_t normed)
{
	struct head_acts *a = &b->now->head;
	a->first = a->pooled = pick(b, normed, 1, "classes");
	const struct linear pooler = linear_dense(b, "pooler", PARAM_POOLER_W), head = linear_classes(b);
	if (b->m->pooler)
		a->pooled = dense_forward(b, &pooler, ACTIVATION_TANH, a->first, &a->pooler);
	a->class_logits = build_linear(b, &head, a->pooled);
	struct op op = build_matrix(b, OP_LOSS, "classes", head.rows, head.out);
	op.loss.more = model_targets(b->m) - 1;
	build_with(b, &op, view_of(a->class_logits), feed_view(b, INPUT_PART_CLASSES), view_of(b->r->loss));
	build_span(b, b->m->seq_len);
}

/* Adds to `dx`, or returns a new gradient. */
static int32_t classes_backward(struct builder *b, int32_t dx)
{
	const struct head_acts *a = &b->now->head;
	build_span(b, 1);
	const struct linear pooler = linear_dense(b, "pooler", PARAM_POOLER_W), head = linear_classes(b);
	int32_t dy = build_linear_grad(b, &head, a->class_logits);
	build_bias_grad(b, "classes", head.rows, head.out, a->class_logits, head.bias);
	build_weight_grad(b, &head, a->class_logits, a->pooled);
	if (b->m->pooler)
		dy = dense_backward(b, &pooler, ACTIVATION_TANH, a->first, a->pooler, dy);
	return pick_grad(b, dy, 1, "classes", dx);
}

/* ---- the head of patches: replicated over the tensor group ---- */

static struct linear linear_output(const struct builder *b)
{
	const int64_t patch = b->m->patch_size * b->m->patch_size;
	return (struct linear){"output", b->rows, patch * b->m->output_channels, b->m->hidden, PARAM_OUTPUT_W,
		PARAM_OUTPUT_B, 0};
}

static void output_forward(struct builder *b, int32_t normed)
{
	struct head_acts *a = &b->now->head;
	const struct linear l = linear_output(b);
	a->in = normed;
	a->predicted = build_linear(b, &l, normed);
	build_with(b, made_op(build_matrix(b, OP_SQUARE_LOSS, "loss", l.rows, l.out)), view_of(a->predicted),
		targets_view(b), view_of(b->r->loss));
}

static int32_t output_backward(struct builder *b)
{
	const struct head_acts *a = &b->now->head;
	const struct linear l = linear_output(b);
	int32_t dx = build_linear_grad(b, &l, a->predicted);
	build_bias_grad(b, l.what, l.rows, l.out, a->predicted, l.bias);
	build_weight_grad(b, &l, a->predicted, a->in);
	return dx;
}

/* ---- */

void head_forward(struct builder *b, int32_t x)
{
	struct head_acts *a = &b->now->head;
	if (model_is_conv(b->m))
		x = conv_mean_forward(b, x);
	int32_t normed = x;
	a->x = x;
	a->stats = NONE;
	if (b->m->adaptive_norm) {
		adapt_forward(b, &a->adapt, PARAM_FINAL_ADAPT_W);
		normed = adapt_norm(b, "final norm", &a->adapt, 0, x, &a->stats);
	} else if (b->m->final_norm) {
		normed = build_norm(b, "final norm", x, PARAM_FINAL_NORM_W, &a->stats);
	}
	if (b->m->lm_head)
		vocabulary_forward(b, a, normed, targets_view(b));
	if (b->m->classes > 0)
		classes_forward(b, normed);
	if (b->m->output_channels > 0)
		output_forward(b, normed);
}

int32_t head_backward(struct builder *b)
{
	struct head_acts *a = &b->now->head;
	int32_t dx = b->m->lm_head ? vocabulary_backward(b, a) : b->m->output_channels > 0 ? output_backward(b) : NONE;
	if (b->m->classes > 0)
		dx = classes_backward(b, dx);
	if (model_is_conv(b->m))
		return conv_mean_backward(b, dx);
	if (b->m->adaptive_norm) {
		int32_t dmod = NONE;
		dx = adapt_norm_grad(b, "final norm", &a->adapt, 0, dx, a->x, a->stats, NONE, &dmod);
		adapt_backward(b, &a->adapt, PARAM_FINAL_ADAPT_W, dmod);
		return dx;
	}
	if (!b->m->final_norm)
		return dx;
	return build_stream_norm_grad(b, "final norm", dx, a->x, a->stats, PARAM_FINAL_NORM_W, NONE);
}
