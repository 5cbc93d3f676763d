/* Diffusion transformers (Peebles & Xie 2022, DiT, arXiv:2212.09748, section 3.2): a vector for each picture, from its
 * timestep and its class, and what each block makes of it (adaLN-Zero): shift, scale and gate of the branch of
 * attention, then those of the MLP, 6 x hidden numbers. The final norm has a shift and a scale. All of it is replicated
 * over the tensor group.
 *
 * Not fused, the shift and scale of a norm's result are an op of their own, as PyTorch runs them.
 */
#include "step/builder/blocks.h"

/* ---- what conditions ---- */

static struct linear linear_time(const struct builder *b, enum param_kind w, int64_t in)
{
	return (struct linear){"timestep", b->c->train.micro_batch, b->m->hidden, in, w, w + 1, 0};
}

/* The class's row of the table, of one "token" a picture. */
static struct op table_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "condition");
	op.out_dtype = (uint8_t)(k == OP_EMBED ? b->act : b->written_grad);
	op.embed.rows = b->c->train.micro_batch;
	op.embed.cols = b->m->hidden;
	op.embed.table_rows = b->m->condition_classes;
	return op;
}

static struct op silu_op(const struct builder *b, enum op_kind k, const char *what)
{
	struct op op = build_matrix(b, k, what, b->c->train.micro_batch, b->m->hidden);
	op.mlp = ACTIVATION_SILU;
	return op;
}

static int32_t vectors(struct builder *b) { return build_act(b, b->c->train.micro_batch, b->m->hidden); }

void condition_forward(struct builder *b)
{
	struct condition *c = &b->now->condition;
	const int64_t n = b->c->train.micro_batch, features = b->m->timestep_features;
	const struct linear fc1 = linear_time(b, PARAM_TIME_FC1_W, features),
			    fc2 = linear_time(b, PARAM_TIME_FC2_W, b->m->hidden);
	c->grad = NONE;
	c->features = build_act(b, n, features);
	build_cast(b, feed_view(b, INPUT_PART_TIMES), b->act, view_of(c->features), b->act, n * features, "timestep");
	c->before = build_linear(b, &fc1, c->features);
	c->active = vectors(b);
	build_on(b, made_op(silu_op(b, OP_ACT, fc1.what)), c->before, c->active);
	c->sum = build_linear(b, &fc2, c->active);
	if (b->m->condition_classes == 0)
		return;
	int32_t class = vectors(b), time = c->sum;
	build_with(b, made_op(table_op(b, OP_EMBED)), feed_view(b, INPUT_PART_CLASSES),
		weight_of(b, NONE, PARAM_CONDITION_TABLE), view_of(class));
	c->sum = vectors(b);
	build_on(b, made_op(build_matrix(b, OP_ADD, "condition", n, b->m->hidden)), time, class, NONE, c->sum);
}

void condition_backward(struct builder *b)
{
	const struct condition *c = &b->now->condition;
	const struct linear fc1 = linear_time(b, PARAM_TIME_FC1_W, b->m->timestep_features),
			    fc2 = linear_time(b, PARAM_TIME_FC2_W, b->m->hidden);
	if (b->m->condition_classes > 0) {
		bool begun = false;
		const struct view dw = build_table_gradient(b, PARAM_CONDITION_TABLE, &begun);
		build_with(b, made_op(table_op(b, OP_EMBED_GRAD)), feed_view(b, INPUT_PART_CLASSES), view_of(c->grad),
			dw);
		gradient_done(b, NONE, PARAM_CONDITION_TABLE);
	}
	int32_t dactive = build_linear_grad(b, &fc2, c->grad), dbefore = vectors(b);
	build_bias_grad(b, fc2.what, fc2.rows, fc2.out, c->grad, fc2.bias);
	build_weight_grad(b, &fc2, c->grad, c->active);
	build_on(b, made_op(silu_op(b, OP_ACT_GRAD, fc1.what)), c->before, dactive, dbefore);
	build_bias_grad(b, fc1.what, fc1.rows, fc1.out, dbefore, fc1.bias);
	build_weight_grad(b, &fc1, dbefore, c->features);
}

/* ---- the numbers of a block, or of the final norm ---- */

static int64_t numbers(const struct builder *b, enum param_kind w)
{
	return (w == PARAM_ADAPT_W ? 6 : 2) * b->m->hidden;
}

static struct linear linear_numbers(const struct builder *b, enum param_kind w)
{
	return (struct linear){"adapt", b->c->train.micro_batch, numbers(b, w), b->m->hidden, w, w + 1, 0};
}

void adapt_forward(struct builder *b, struct adapt_acts *a, enum param_kind w)
{
	const struct linear l = linear_numbers(b, w);
	a->active = vectors(b);
	build_on(b, made_op(silu_op(b, OP_ACT, l.what)), b->now->condition.sum, a->active);
	a->mod = build_linear(b, &l, a->active);
	for (int i = 0; i < ADAPTED; i++)
		a->normed[i] = NONE;
}

void adapt_backward(struct builder *b, const struct adapt_acts *a, enum param_kind w, int32_t dmod)
{
	struct condition *c = &b->now->condition;
	const struct linear l = linear_numbers(b, w);
	int32_t dactive = build_linear_grad(b, &l, dmod), dsum = vectors(b);
	build_on(b, made_op(silu_op(b, OP_ACT_GRAD, l.what)), c->sum, dactive, dsum);
	if (c->grad == NONE)
		c->grad = dsum;
	else
		build_on(b, made_op(build_matrix(b, OP_ADD, "condition grad", l.rows, b->m->hidden)), c->grad, dsum,
			NONE, c->grad);
	build_bias_grad(b, l.what, l.rows, l.out, dmod, l.bias);
	build_weight_grad(b, &l, dmod, a->active);
}

/* ---- their use ---- */

/* Returns an op on columns of the numbers from `at` hidden widths on. The final norm's have two of those in all. */
static struct op modulate_op(const struct builder *b, enum op_kind k, const char *what, int64_t at)
{
	struct op op = build_new(b, k, what);
	const int64_t h = b->m->hidden;
	op.flags |= b->m->norm == NORM_RMSNORM ? OP_RMS : 0;
	op.modulate = (struct op_modulate){b->c->train.micro_batch, b->seq, h,
		numbers(b, b->layer == NONE ? PARAM_FINAL_ADAPT_W : PARAM_ADAPT_W), at * h};
	return op;
}

int32_t adapt_norm(struct builder *b, const char *what, struct adapt_acts *a, int i, int32_t x, int32_t *stats)
{
	const struct op op = modulate_op(b, OP_MODULATE, what, 3 * i);
	*stats = build_fp32(b, 2 * b->rows);
	if (b->c->train.fused) {
		int32_t y = build_rows(b);
		build_on(b, &op, x, a->mod, y, *stats);
		return y;
	}
	a->normed[i] = build_rows(b);
	build_on(b, &op, x, NONE, a->normed[i], *stats);
	int32_t y = build_rows(b);
	build_on(b, &op, a->normed[i], a->mod, y, NONE);
	return y;
}

/* Returns the flag of an op that adds its columns to *dmod, which is made where it is NONE. */
static uint16_t other_columns(struct builder *b, const struct op *op, int32_t *dmod)
{
	const bool begun = *dmod != NONE;
	if (!begun)
		*dmod = build_act(b, op->modulate.batch, op->modulate.width);
	return begun ? OP_ACCUMULATE : 0;
}

int32_t adapt_norm_grad(struct builder *b, const char *what, const struct adapt_acts *a, int i, int32_t dn, int32_t x,
	int32_t stats, int32_t into, int32_t *dmod)
{
	struct op op = modulate_op(b, OP_MODULATE_GRAD, what, 3 * i), norm = op;
	int32_t dx = into == NONE ? build_rows(b) : into;
	op.flags |= other_columns(b, &op, dmod);
	norm.flags |= into == NONE ? 0 : OP_DX_ACCUMULATE;
	if (b->c->train.fused) {
		op.flags |= norm.flags;
		build_on(b, &op, dn, x, a->mod, stats, dx, *dmod);
		return dx;
	}
	int32_t dnormed = build_rows(b);
	build_on(b, &op, dn, a->normed[i], a->mod, NONE, dnormed, *dmod);
	build_on(b, &norm, dnormed, x, NONE, stats, dx, NONE);
	return dx;
}

int32_t adapt_add(struct builder *b, const struct adapt_acts *a, int i, int32_t x, int32_t y, enum param_kind bias)
{
	int32_t sum = build_rows(b);
	build_with(b, made_op(modulate_op(b, OP_GATED_ADD, "residual", 3 * i + 2)), view_of(x), view_of(y),
		weight_of(b, b->layer, bias), view_of(a->mod), view_of(sum));
	return sum;
}

int32_t adapt_add_grad(struct builder *b, const struct adapt_acts *a, int i, int32_t dsum, int32_t y,
	enum param_kind bias, int32_t *dmod)
{
	struct op op = modulate_op(b, OP_GATED_ADD_GRAD, "residual grad", 3 * i + 2);
	int32_t dy = build_rows(b);
	op.flags |= other_columns(b, &op, dmod);
	build_with(b, &op, view_of(dsum), view_of(y), weight_of(b, b->layer, bias), view_of(a->mod), view_of(dy),
		view_of(*dmod));
	return dy;
}
