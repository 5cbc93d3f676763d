/* Frames of sound become an encoder's rows: two convolutions of three taps along the sequence, each with a bias and the
 * MLP's activation, of which the second takes every second place (Radford et al. 2022, Whisper, arXiv:2212.04356,
 * section 2.2). They are priced as the products that they are. Every tensor rank makes all of them. */
#include "step/builder/blocks.h"

#define TAPS 3

/* The two convolutions. */
static struct op conv_op(const struct builder *b, enum op_kind k, int second)
{
	struct op op = build_new(b, k, second ? "frames2" : "frames1");
	op.dtype = (uint8_t)(b->c->train.dtype == DT_TF32 ? DT_TF32 : b->act);
	op.flags |= k == OP_CONV ? OP_TRANS_B : k == OP_CONV_WEIGHT ? OP_TRANS_A : 0;
	op.conv = (struct op_conv){.batch = b->c->train.micro_batch,
		.side = 2 * b->seq,
		.in = second ? b->m->hidden : b->m->channels,
		.out = b->m->hidden,
		.kernel = TAPS,
		.stride = second ? 2 : 1,
		.flat = 1};
	return op;
}

static enum param_kind weight_kind(int second) { return second ? PARAM_FRAMES2_W : PARAM_FRAMES1_W; }

static int64_t rows_of(const struct builder *b, int second) { return (second ? 1 : 2) * b->tokens; }

static int32_t forward(struct builder *b, int second, int32_t x)
{
	const int64_t rows = rows_of(b, second);
	const char *what = conv_op(b, OP_CONV, second).what;
	int32_t made = build_act(b, rows, b->m->hidden), y = build_act(b, rows, b->m->hidden);
	const struct view bias = weight_of(b, NONE, weight_kind(second) + 1);
	build_with(b, made_op(conv_op(b, OP_CONV, second)), view_of(x), weight_of(b, NONE, weight_kind(second)),
		view_of(made));
	if (bias.buffer >= 0)
		build_with(b, made_op(build_matrix(b, OP_BIAS, what, rows, b->m->hidden)), view_of(made), bias);
	build_on(b, made_op(build_matrix(b, OP_ACT, what, rows, b->m->hidden)), made, y);
	b->now->frames.made[second] = made;
	return y;
}

/* Returns the gradient of x, where the second convolution reads it. */
static int32_t backward(struct builder *b, int second, int32_t x, int32_t dy)
{
	const int64_t rows = rows_of(b, second);
	bool accumulate = false;
	struct op act = build_matrix(b, OP_ACT_GRAD, conv_op(b, OP_CONV, second).what, rows, b->m->hidden),
		  weight = conv_op(b, OP_CONV_WEIGHT, second);
	int32_t dmade = build_act(b, rows, b->m->hidden),
		dx = second ? build_act(b, 2 * b->tokens, b->m->hidden) : NONE;
	build_on(b, &act, b->now->frames.made[second], dy, dmade);
	build_bias_grad(b, act.what, rows, b->m->hidden, dmade, weight_kind(second) + 1);
	if (second)
		build_with(b, made_op(conv_op(b, OP_CONV_DATA, second)), view_of(dmade),
			weight_of(b, NONE, weight_kind(second)), view_of(dx));
	const struct view dw = gradient_of(b, NONE, weight_kind(second), &accumulate);
	if (dw.buffer < 0)
		return dx;
	weight.out_dtype = (uint8_t)b->written_grad;
	weight.flags |= accumulate ? OP_ACCUMULATE : 0;
	build_with(b, &weight, view_of(dmade), view_of(x), dw);
	gradient_done(b, NONE, weight_kind(second));
	return dx;
}

int32_t frames_forward(struct builder *b)
{
	b->now->frames.active = forward(b, 0, b->now->input);
	return forward(b, 1, b->now->frames.active);
}

void frames_backward(struct builder *b, int32_t dx)
{
	if (!trained_of(b, NONE, PARAM_FRAMES1_W))
		return;
	backward(b, 0, b->now->input, backward(b, 1, b->now->frames.active, dx));
}
