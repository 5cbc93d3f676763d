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
 *
 * A gated delta rule (Yang et al. 2024, arXiv:2412.06464), as transformers has it (models/qwen3_next/
 * modeling_qwen3_next.py, Qwen3NextGatedDeltaNet, with flash-linear-attention's kernels), is the same with v for x, k
 * for B, q for C, a column more for each head, no bias of the convolution, and norm(y) silu(z), the norm of each head.
 * Its convolution is kept, too, and so are the inverses of chunks, in 16 bits.
 */
#include "step/builder/blocks.h"

/* What differs between the two. */
static const struct kinds {
	enum op_kind scan, scan_grad, gate, gate_grad;
	enum param_kind heads;
	int64_t further;
} mamba = {OP_SSM_SCAN, OP_SSM_SCAN_GRAD, OP_SSM_GATE, OP_SSM_GATE_GRAD, PARAM_SSM_HEADS, 0},
  delta = {OP_DELTA_SCAN, OP_DELTA_SCAN_GRAD, OP_DELTA_GATE, OP_DELTA_GATE_GRAD, PARAM_DELTA_HEADS, 1};

static bool is_delta(const struct builder *b) { return model_layer_kind(b->m, b->layer) == LAYER_DELTA; }

static const struct kinds *kinds_of(const struct builder *b) { return is_delta(b) ? &delta : &mamba; }

static struct linear linear_in(const struct builder *b)
{
	const struct model *m = b->m;
	const int64_t width = 2 * m->ssm_heads * m->ssm_head_dim + 2 * m->ssm_groups * m->ssm_state +
	                      (1 + kinds_of(b)->further) * m->ssm_heads;
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
	op.ssm.further = kinds_of(b)->further;
	if (k == OP_SSM_CONV || k == OP_SSM_CONV_GRAD)
		op.ssm.conv = m->ssm_conv;
	else if (op_class_of(&op) == CLASS_SCAN)
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
	const struct op op = ssm_op(b, kinds_of(b)->scan, "scan");
	const int64_t rows = op.ssm.batch * (int64_t)op_chunks(&op) * channels(b);
	return is_delta(b) ? build_act(b, rows, b->m->ssm_state) : build_fp32(b, rows * b->m->ssm_state);
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
	const struct kinds *k = kinds_of(b);
	const struct op scan = ssm_op(b, k->scan, "scan");
	int32_t xbc = convolve(b, s), states = states_of(b);
	s->y = build_act(b, b->tokens, channels(b));
	build_with(b, scan, view_of(xbc), view_of(s->in), weight_of(b, b->layer, k->heads), view_of(states),
		view_of(s->y));
	s->xbc = is_delta(b) ? xbc : NONE;
	s->kept_inverse = is_delta(b) && (b->recomputing || !build_recomputes(b, b->layer))
	                          ? build_hold(b, COMP_ACTIVATIONS,
					    (double)(b->tokens * scan.ssm.heads * scan.ssm.chunk) * dtype_bytes(b->act),
					    "inverses of chunks")
	                          : NONE;
	s->gated = build_act(b, b->tokens, channels(b));
	s->sigma = build_fp32(b, b->tokens * (is_delta(b) ? scan.ssm.heads : scan.ssm.groups));
	build_with(b, ssm_op(b, k->gate, "gated norm"), view_of(s->y), view_of(s->in),
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
	struct op op = ssm_op(b, kinds_of(b)->gate_grad, "gated norm");
	struct view dw = gradient_of(b, b->layer, PARAM_SSM_NORM_W, &accumulate);
	writes_weights(b, &op, accumulate);
	build_with(b, op, view_of(dgated), view_of(s->y), view_of(s->in), weight_of(b, b->layer, PARAM_SSM_NORM_W),
		view_of(s->sigma), view_of(dy), view_of(din), dw);
	gradient_done(b, b->layer, PARAM_SSM_NORM_W);
}

static int32_t convolve_again(struct builder *b, const struct ssm_acts *s)
{
	const bool recomputing = b->recomputing;
	b->recomputing = true;
	int32_t xbc = convolve(b, s);
	b->recomputing = recomputing;
	return xbc;
}

static void scan_backward(struct builder *b, struct ssm_acts *s, int32_t dy, int32_t dxbc, int32_t din)
{
	bool accumulate = false;
	const enum param_kind heads = kinds_of(b)->heads;
	int32_t xbc = s->xbc != NONE ? s->xbc : convolve_again(b, s);
	struct op op = ssm_op(b, kinds_of(b)->scan_grad, "scan");
	struct view dheads = gradient_of(b, b->layer, heads, &accumulate);
	writes_weights(b, &op, accumulate);
	build_with(b, op, view_of(xbc), view_of(s->in), weight_of(b, b->layer, heads), view_of(dy),
		view_of(states_of(b)), view_of(dxbc), view_of(din), dheads);
	gradient_done(b, b->layer, heads);
	build_release(b, &s->kept_inverse);
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
	struct ssm_acts *s = &a->ssm;
	again_norm1(b, a);
	int32_t dgated = rows_backward(b, &out, dout, s->gated, "ssm out grad");
	int32_t dy = build_act(b, b->tokens, channels(b)), din = build_act(b, b->tokens, in.out),
		dxbc = build_act(b, b->tokens, conv_cols(b));
	gate_backward(b, s, dgated, dy, din);
	scan_backward(b, s, dy, dxbc, din);
	conv_backward(b, s, dxbc, din);
	return columns_backward(b, &in, din, a->n1, "ssm input", "ssm input grad");
}
