/* A gated short convolution (Liquid AI 2025, LFM2), as transformers has it (models/lfm2/modeling_lfm2.py,
 * Lfm2ShortConv):
 *
 *   b, c, x = in(n1)               cut by channels over the tensor group
 *   out(c conv(b x))
 *
 * Kept for the backward pass: the first product's result, and what the last product reads.
 */
#include "step/builder/blocks.h"

static struct linear linear_in(const struct builder *b)
{
	return (struct linear){"conv in", b->tokens, 3 * b->m->hidden / b->tensor, b->m->hidden, PARAM_SHORT_IN_W,
		NO_PARAM, 0};
}

static struct linear linear_out(const struct builder *b)
{
	return (struct linear){"conv out", b->tokens, b->m->hidden, b->m->hidden / b->tensor, PARAM_SHORT_OUT_W,
		NO_PARAM, 0};
}

static struct op short_conv_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "short conv");
	op.short_conv.batch = b->c->train.micro_batch;
	op.short_conv.seq = b->seq;
	op.short_conv.channels = linear_out(b).in;
	op.short_conv.taps = b->m->ssm_conv;
	return op;
}

int32_t short_conv_forward(struct builder *b, struct acts *a, int32_t normed)
{
	const struct linear in = linear_in(b), out = linear_out(b);
	struct short_acts *s = &a->short_conv;
	s->in = build_linear(b, &in, tp_gather(b, normed, "conv input"));
	s->out = build_act(b, b->tokens, out.in);
	build_with(b, made_op(short_conv_op(b, OP_SHORT_CONV)), view_of(s->in),
		weight_of(b, b->layer, PARAM_SHORT_CONV_W), view_of(s->out));
	return build_ends_early(b) ? NONE : tp_reduce(b, build_linear(b, &out, s->out), "conv out");
}

int32_t short_conv_backward(struct builder *b, struct acts *a, int32_t dout)
{
	const struct linear in = linear_in(b), out = linear_out(b);
	const struct short_acts *s = &a->short_conv;
	bool accumulate = false;
	again_norm1(b, a);
	int32_t dconv = rows_backward(b, &out, dout, s->out, "conv out grad"), din = build_act(b, b->tokens, in.out);
	struct op op = short_conv_op(b, OP_SHORT_CONV_GRAD);
	struct view dw = gradient_or_scratch(b, PARAM_SHORT_CONV_W, &accumulate);
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	build_with(b, &op, view_of(s->in), weight_of(b, b->layer, PARAM_SHORT_CONV_W), view_of(dconv), view_of(din),
		dw);
	gradient_done(b, b->layer, PARAM_SHORT_CONV_W);
	return columns_backward(b, &in, din, a->n1, "conv input", "conv input grad");
}
