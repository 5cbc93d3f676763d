/* Residual convolutional networks (step/model_conv.h). A convolution, its batch norm and its ReLU are three ops, as
 * PyTorch runs them; ReLU and the sum with the shortcut are in place. Kept for the backward pass: what each convolution
 * made, and what each ReLU left, which is the next convolution's input.
 */
#include "step/builder/blocks.h"
#include "step/model_conv.h"

static int64_t rows_of(const struct builder *b, int64_t side) { return b->c->train.micro_batch * side * side; }

static int64_t side_after(const struct conv_layer *l) { return (l->side + l->stride - 1) / l->stride; }

static struct op conv_op(const struct builder *b, enum op_kind k, const struct conv_layer *l)
{
	struct op op = build_new(b, k, l->what);
	op.dtype = (uint8_t)(b->c->train.dtype == DT_TF32 ? DT_TF32 : b->act);
	op.flags |= k == OP_CONV ? OP_TRANS_B : k == OP_CONV_WEIGHT ? OP_TRANS_A : 0;
	op.conv.batch = b->c->train.micro_batch;
	op.conv.side = l->side;
	op.conv.in = l->in;
	op.conv.out = l->out;
	op.conv.kernel = l->kernel;
	op.conv.stride = l->stride;
	return op;
}

static int32_t images(struct builder *b, int64_t side, int64_t channels)
{
	return build_act(b, rows_of(b, side), channels);
}

static struct op relu_op(const struct builder *b, enum op_kind k, int64_t rows, int64_t cols)
{
	struct op op = build_matrix(b, k, "relu", rows, cols);
	op.mlp = MLP_RELU;
	return op;
}

/* Appends a convolution and its norm; returns what the norm leaves. */
static int32_t unit_forward(struct builder *b, const struct conv_layer *l, struct conv_unit *u, int32_t x)
{
	const int64_t rows = rows_of(b, side_after(l));
	u->x = x;
	u->made = images(b, side_after(l), l->out);
	u->stats = build_fp32(b, 2 * l->out);
	build_with(b, made_op(conv_op(b, OP_CONV, l)), view_of(x), weight_of(b, b->layer, l->w), view_of(u->made));
	int32_t y = images(b, side_after(l), l->out);
	build_with(b, made_op(build_matrix(b, OP_BATCH_NORM, l->what, rows, l->out)), view_of(u->made),
		weight_of(b, b->layer, l->w + 1), weight_of(b, b->layer, l->w + 2), view_of(y), view_of(u->stats));
	return y;
}

static void relu(struct builder *b, int32_t x, int64_t side, int64_t channels)
{
	build_on(b, made_op(relu_op(b, OP_ACT, rows_of(b, side), channels)), x, x);
}

/* Where ReLU left more than 0, its slope is 1: what it left says as much as what it read. */
static int32_t relu_grad(struct builder *b, int32_t left, int32_t dy, int64_t side, int64_t channels)
{
	int32_t dx = images(b, side, channels);
	build_on(b, made_op(relu_op(b, OP_ACT_GRAD, rows_of(b, side), channels)), left, dy, dx);
	return dx;
}

static void writes_weights(const struct builder *b, struct op *op, bool accumulate)
{
	op->out_dtype = (uint8_t)b->written_grad;
	op->flags |= accumulate ? OP_ACCUMULATE : 0;
}

/* Returns the gradient of the convolution's input, given that of what its norm left; NONE where nobody reads it. */
static int32_t unit_backward(struct builder *b, const struct conv_layer *l, const struct conv_unit *u, int32_t dy,
	bool read)
{
	bool accumulate = false, same = false;
	const int64_t rows = rows_of(b, side_after(l));
	int32_t dmade = images(b, side_after(l), l->out), dx = read ? images(b, l->side, l->in) : NONE;
	struct view dw = gradient_of(b, b->layer, l->w + 1, &accumulate),
		    db = gradient_of(b, b->layer, l->w + 2, &same);
	struct op norm = build_matrix(b, OP_BATCH_NORM_GRAD, l->what, rows, l->out);
	writes_weights(b, &norm, accumulate);
	build_with(b, &norm, view_of(dy), view_of(u->made), weight_of(b, b->layer, l->w + 1), view_of(u->stats),
		view_of(dmade), dw, db);
	gradient_done(b, b->layer, l->w + 1);
	gradient_done(b, b->layer, l->w + 2);
	if (read)
		build_with(b, made_op(conv_op(b, OP_CONV_DATA, l)), view_of(dmade), weight_of(b, b->layer, l->w),
			view_of(dx));
	struct op weight = conv_op(b, OP_CONV_WEIGHT, l);
	struct view dweight = gradient_of(b, b->layer, l->w, &accumulate);
	writes_weights(b, &weight, accumulate);
	build_with(b, &weight, view_of(dmade), view_of(u->x), dweight);
	gradient_done(b, b->layer, l->w);
	return dx;
}

static void add_into(struct builder *b, const char *what, int32_t x, int32_t y, int64_t side, int64_t channels)
{
	build_on(b, made_op(build_matrix(b, OP_ADD, what, rows_of(b, side), channels)), x, y, NONE, x);
}

/* ---- blocks ---- */

int32_t conv_block_forward(struct builder *b, int32_t x_in, struct acts *a)
{
	struct conv_layer l[CONV_LAYERS];
	bool shortcut;
	const int n = model_conv_layers(b->m, b->layer, l, &shortcut), last = n - shortcut - 1;
	int32_t x = x_in, beside = x_in;
	a->x_in = x_in;
	b->acts_now = a;
	for (int i = 0; i <= last; i++) {
		x = unit_forward(b, &l[i], &a->conv.unit[i], x);
		if (i < last)
			relu(b, x, side_after(&l[i]), l[i].out);
	}
	if (shortcut)
		beside = unit_forward(b, &l[n - 1], &a->conv.unit[n - 1], x_in);
	add_into(b, "residual", x, beside, side_after(&l[last]), l[last].out);
	relu(b, x, side_after(&l[last]), l[last].out);
	a->conv.out = x;
	return x;
}

void conv_block_backward(struct builder *b, struct acts *a, int32_t *dx)
{
	struct conv_layer l[CONV_LAYERS];
	bool shortcut;
	const int n = model_conv_layers(b->m, b->layer, l, &shortcut), last = n - shortcut - 1;
	b->acts_now = a;
	int32_t dout = relu_grad(b, a->conv.out, *dx, side_after(&l[last]), l[last].out), d = dout;
	for (int i = last; i >= 0; i--) {
		d = unit_backward(b, &l[i], &a->conv.unit[i], d, true);
		if (i > 0)
			d = relu_grad(b, a->conv.unit[i].x, d, l[i].side, l[i].in);
	}
	int32_t beside = shortcut ? unit_backward(b, &l[n - 1], &a->conv.unit[n - 1], dout, true) : dout;
	add_into(b, "residual grad", d, beside, l[0].side, l[0].in);
	*dx = d;
}

/* ---- the ends ---- */

/* The pool behind the stem: 3 x 3 with a stride of 2. */
static struct conv_layer stem_pool(const struct conv_layer *stem)
{
	return (struct conv_layer){"pool", NO_PARAM, side_after(stem), stem->out, stem->out, 3, 2};
}

static struct op mean_op(const struct builder *b, enum op_kind k)
{
	const int64_t side = model_conv_side(b->m), channels = b->m->hidden;
	return conv_op(b, k, &(struct conv_layer){"mean", NO_PARAM, side, channels, channels, side, side});
}

int32_t conv_stem_forward(struct builder *b)
{
	struct conv_layer l[CONV_LAYERS];
	bool shortcut;
	struct conv_stem *s = &b->now->stem;
	model_conv_layers(b->m, NONE, l, &shortcut);
	const struct conv_layer pool = stem_pool(&l[0]);
	s->active = unit_forward(b, &l[0], &s->unit, b->now->input);
	relu(b, s->active, pool.side, pool.in);
	s->taken = build_buffer(b, COMP_ACTIVATIONS, DT_INT32, rows_of(b, side_after(&pool)) * pool.out, false);
	int32_t x = images(b, side_after(&pool), pool.out);
	build_on(b, made_op(conv_op(b, OP_MAX_POOL, &pool)), s->active, x, s->taken);
	return x;
}

void conv_stem_backward(struct builder *b, int32_t dx)
{
	struct conv_layer l[CONV_LAYERS];
	bool shortcut;
	const struct conv_stem *s = &b->now->stem;
	model_conv_layers(b->m, NONE, l, &shortcut);
	const struct conv_layer pool = stem_pool(&l[0]);
	int32_t d = images(b, pool.side, pool.in);
	build_on(b, made_op(conv_op(b, OP_MAX_POOL_GRAD, &pool)), dx, s->taken, d);
	unit_backward(b, &l[0], &s->unit, relu_grad(b, s->active, d, pool.side, pool.in), false);
}

int32_t conv_mean_forward(struct builder *b, int32_t x)
{
	int32_t y = build_act(b, b->c->train.micro_batch, b->m->hidden);
	build_on(b, made_op(mean_op(b, OP_MEAN_POOL)), x, y);
	return y;
}

int32_t conv_mean_backward(struct builder *b, int32_t dy)
{
	int32_t dx = images(b, model_conv_side(b->m), b->m->hidden);
	build_on(b, made_op(mean_op(b, OP_MEAN_POOL_GRAD)), dy, dx);
	return dx;
}
