/* A Mamba-2 layer (Dao & Gu 2024, arXiv:2405.21060, section 7), as Megatron-Core has it (megatron/core/ssm/
 * mamba_mixer.py, with mamba_ssm's mamba_split_conv1d_scan_combined):
 *
 *   z, x, B, C, dt = in(n1)        cut by groups of heads over the tensor group
 *   x, B, C = silu(conv(x, B, C))
 *   y = scan(x, dt, B, C)
 *   out(norm(y silu(z)))           the norm of each group by itself
 *
 * Kept for the backward pass: the first product's result, y, and what the last product reads. The convolution and the
 * states of chunks are made again.
 */
#include "step/builder/blocks.h"

static struct linear linear_in(const struct builder *b)
{
	const struct model *m = b->m;
	const int64_t width = 2 * m->ssm_heads * m->ssm_head_dim + 2 * m->ssm_groups * m->ssm_state + m->ssm_heads;
	return (struct linear){"ssm in", b->tokens, width / b->tensor, m->hidden, PARAM_SSM_IN_W, NO_PARAM, 0};
}

static struct linear linear_out(const struct builder *b)
{
	return (struct linear){"ssm out", b->tokens, b->m->hidden, b->m->ssm_heads * b->m->ssm_head_dim / b->tensor,
		PARAM_SSM_OUT_W, NO_PARAM, 0};
}

static struct op ssm_op(const struct builder *b, enum op_kind k, const char *what)
{
	const struct model *m = b->m;
	struct op op = build_new(b, k, what);
	op.ssm.batch = b->c->train.micro_batch;
	op.ssm.seq = b->seq;
	op.ssm.heads = m->ssm_heads / b->tensor;
	op.ssm.head_dim = m->ssm_head_dim;
	op.ssm.groups = m->ssm_groups / b->tensor;
	op.ssm.state = m->ssm_state;
	if (k == OP_SSM_CONV || k == OP_SSM_CONV_GRAD)
		op.ssm.conv = m->ssm_conv;
	else if (k == OP_SSM_SCAN || k == OP_SSM_SCAN_GRAD)
		op.ssm.chunk = m->ssm_chunk < b->seq ? m->ssm_chunk : b->seq;
	else
		op.flags |= OP_RMS;
	return op;
}

static int64_t channels(const struct builder *b) { return linear_out(b).in; }

/* Columns of the convolution: channels, B and C. */
static int64_t conv_cols(const struct builder *b)
{
	return channels(b) + 2 * b->m->ssm_groups / b->tensor * b->m->ssm_state;
}

static int32_t states_of(struct builder *b)
{
	const struct op op = ssm_op(b, OP_SSM_SCAN, "scan");
	return build_fp32(b, op.ssm.batch * (int64_t)op_chunks(&op) * channels(b) * b->m->ssm_state);
}

static int32_t convolve(struct builder *b, const struct ssm_acts *s)
{
	int32_t xbc = build_act(b, b->tokens, conv_cols(b));
	build_with(b, ssm_op(b, OP_SSM_CONV, "conv"), view_of(s->in), weight_of(b, b->layer, PARAM_SSM_CONV_W),
		weight_of(b, b->layer, PARAM_SSM_CONV_B), view_of(xbc));
	return xbc;
}

int32_t ssm_forward(struct builder *b, struct acts *a, int32_t normed)
{
	const struct linear in = linear_in(b), out = linear_out(b);
	struct ssm_acts *s = &a->ssm;
	s->in = build_linear(b, &in, tp_gather(b, normed, "ssm input"));
	int32_t xbc = convolve(b, s), states = states_of(b);
	s->y = build_act(b, b->tokens, channels(b));
	build_with(b, ssm_op(b, OP_SSM_SCAN, "scan"), view_of(xbc), view_of(s->in),
		weight_of(b, b->layer, PARAM_SSM_HEADS), view_of(states), view_of(s->y));
	s->gated = build_act(b, b->tokens, channels(b));
	s->sigma = build_fp32(b, b->tokens * b->m->ssm_groups / b->tensor);
	build_with(b, ssm_op(b, OP_SSM_GATE, "gated norm"), view_of(s->y), view_of(s->in),
		weight_of(b, b->layer, PARAM_SSM_NORM_W), view_of(s->gated), view_of(s->sigma));
	return build_ends_early(b) ? NONE : tp_reduce(b, build_linear(b, &out, s->gated), "ssm out");
}

/* Makes an op write gradients of weights, added to what earlier micro-batches left. */
static void writes_weights(const struct builder *b, struct op *op, bool accumulate)
{
	op->out_dtype = (uint8_t)b->written_grad;
	op->flags |= accumulate ? OP_ACCUMULATE : 0;
}

static void gate_backward(struct builder *b, const struct ssm_acts *s, int32_t dgated, int32_t dy, int32_t din)
{
	bool accumulate = false;
	struct op op = ssm_op(b, OP_SSM_GATE_GRAD, "gated norm");
	struct view dw = gradient_of(b, b->layer, PARAM_SSM_NORM_W, &accumulate);
	writes_weights(b, &op, accumulate);
	build_with(b, op, view_of(dgated), view_of(s->y), view_of(s->in), weight_of(b, b->layer, PARAM_SSM_NORM_W),
		view_of(s->sigma), view_of(dy), view_of(din), dw);
	gradient_done(b, b->layer, PARAM_SSM_NORM_W);
}

static void scan_backward(struct builder *b, const struct ssm_acts *s, int32_t dy, int32_t dxbc, int32_t din)
{
	bool accumulate = false;
	const bool recomputing = b->recomputing;
	b->recomputing = true;
	int32_t xbc = convolve(b, s);
	b->recomputing = recomputing;
	struct op op = ssm_op(b, OP_SSM_SCAN_GRAD, "scan");
	struct view dheads = gradient_of(b, b->layer, PARAM_SSM_HEADS, &accumulate);
	writes_weights(b, &op, accumulate);
	build_with(b, op, view_of(xbc), view_of(s->in), weight_of(b, b->layer, PARAM_SSM_HEADS), view_of(dy),
		view_of(states_of(b)), view_of(dxbc), view_of(din), dheads);
	gradient_done(b, b->layer, PARAM_SSM_HEADS);
}

static void conv_backward(struct builder *b, const struct ssm_acts *s, int32_t dxbc, int32_t din)
{
	bool accumulate = false, same = false;
	struct op op = ssm_op(b, OP_SSM_CONV_GRAD, "conv");
	struct view dw = gradient_of(b, b->layer, PARAM_SSM_CONV_W, &accumulate),
		    db = gradient_of(b, b->layer, PARAM_SSM_CONV_B, &same);
	writes_weights(b, &op, accumulate);
	build_with(b, op, view_of(s->in), weight_of(b, b->layer, PARAM_SSM_CONV_W),
		weight_of(b, b->layer, PARAM_SSM_CONV_B), view_of(dxbc), view_of(din), dw, db);
	gradient_done(b, b->layer, PARAM_SSM_CONV_W);
	gradient_done(b, b->layer, PARAM_SSM_CONV_B);
}

int32_t ssm_backward(struct builder *b, struct acts *a, int32_t dout)
{
	const struct linear in = linear_in(b), out = linear_out(b);
	const struct ssm_acts *s = &a->ssm;
	again_norm1(b, a);
	int32_t dgated = rows_backward(b, &out, dout, s->gated, "ssm out grad");
	int32_t dy = build_act(b, b->tokens, channels(b)), din = build_act(b, b->tokens, in.out),
		dxbc = build_act(b, b->tokens, conv_cols(b));
	gate_backward(b, s, dgated, dy, din);
	scan_backward(b, s, dy, dxbc, din);
	conv_backward(b, s, dxbc, din);
	return columns_backward(b, &in, din, a->n1, "ssm input", "ssm input grad");
}
