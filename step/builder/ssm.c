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
 *
 * Kimi delta attention (Moonshot AI 2025, arXiv:2510.26692, section 4; models/kimi_linear/modeling_kimi_linear.py) has
 * gates and decays of channels in buffers of their own, each by a product to head_dim columns on each rank's own rows
 * and one from them, cut by heads. The scores of its queries are kept, too.
 */
#include "step/builder/blocks.h"

/* What differs between them. */
static const struct kinds {
	enum op_kind scan, scan_grad, gate, gate_grad;
	enum param_kind heads;
	enum ssm_layout layout;
	int64_t triangles; /* of each chunk, that are kept */
} mamba = {OP_SSM_SCAN, OP_SSM_SCAN_GRAD, OP_SSM_GATE, OP_SSM_GATE_GRAD, PARAM_SSM_HEADS, SSM_LAYOUT_MAMBA, 0},
  delta = {OP_DELTA_SCAN, OP_DELTA_SCAN_GRAD, OP_DELTA_GATE, OP_DELTA_GATE_GRAD, PARAM_DELTA_HEADS, SSM_LAYOUT_DELTA,
	  1},
  kda = {OP_KDA_SCAN, OP_KDA_SCAN_GRAD, OP_DELTA_GATE, OP_DELTA_GATE_GRAD, PARAM_KDA_HEADS, SSM_LAYOUT_KDA, 2};

static const struct kinds *kinds_of(const struct builder *b)
{
	const enum layer_kind kind = model_layer_kind(b->m, b->layer);
	return kind == LAYER_KDA ? &kda : kind == LAYER_DELTA ? &delta : &mamba;
}

static bool is_delta(const struct builder *b) { return kinds_of(b) != &mamba; }

static bool is_kda(const struct builder *b) { return kinds_of(b) == &kda; }

static struct linear linear_in(const struct builder *b)
{
	const struct model *m = b->m;
	const int64_t gates = is_kda(b) ? 0 : m->ssm_heads * m->ssm_head_dim,
		      numbers = SSM_NUMBERS(kinds_of(b)->layout);
	const int64_t width = gates + m->ssm_heads * m->ssm_head_dim + 2 * m->ssm_groups * m->ssm_state +
	                      numbers * m->ssm_heads;
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
	op.ssm.layout = kinds_of(b)->layout;
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
	build_with(b, made_op(ssm_op(b, OP_SSM_CONV, "conv")), view_of(s->in), weight_of(b, b->layer, PARAM_SSM_CONV_W),
		weight_of(b, b->layer, PARAM_SSM_CONV_B), view_of(xbc));
	return xbc;
}

/* ---- products of low rank: decays and gates of Kimi delta attention ---- */

struct low_rank {
	struct linear down, up;
};

static struct low_rank low_rank(const struct builder *b, const char *what, int64_t out, enum param_kind down,
	enum param_kind up)
{
	const int64_t rank = b->m->ssm_head_dim;
	return (struct low_rank){{what, b->rows, rank, b->m->hidden, down, NO_PARAM, 0},
		{what, b->tokens, out / b->tensor, rank, up, NO_PARAM, 0}};
}

static struct low_rank decay_products(const struct builder *b)
{
	return low_rank(b, "kda decay", b->m->ssm_heads * b->m->ssm_state, PARAM_KDA_DECAY_DOWN_W,
		PARAM_KDA_DECAY_UP_W);
}

static struct low_rank gate_products(const struct builder *b)
{
	return low_rank(b, "kda gate", b->m->ssm_heads * b->m->ssm_head_dim, PARAM_KDA_GATE_DOWN_W,
		PARAM_KDA_GATE_UP_W);
}

static int32_t low_rank_forward(struct builder *b, const struct low_rank *l, int32_t normed, int32_t *low)
{
	*low = build_linear(b, &l->down, normed);
	return build_linear(b, &l->up, tp_gather_cols(b, *low, l->up.in, l->up.what));
}

/* Adds the gradient of the normed rows to dx. */
static void low_rank_backward(struct builder *b, const struct low_rank *l, int32_t dy, int32_t low, int32_t normed,
	int32_t dx)
{
	int32_t whole = tp_gather_cols(b, low, l->up.in, l->up.what);
	int32_t dlow = tp_reduce_cols(b, build_linear_grad(b, &l->up, dy), l->up.in, l->up.what);
	build_weight_grad(b, &l->up, dy, whole);
	int32_t more = build_linear_grad(b, &l->down, dlow);
	build_weight_grad(b, &l->down, dlow, normed);
	build_on(b, made_op(build_matrix(b, OP_ADD, l->up.what, b->rows, b->m->hidden)), dx, more, NONE, dx);
}

/* ---- the layer ---- */

/* Returns the buffer in which z stands. */
static int32_t gates_of(const struct builder *b, const struct ssm_acts *s) { return is_kda(b) ? s->gate : s->in; }

static void scan_forward(struct builder *b, const struct ssm_acts *s, int32_t xbc)
{
	const struct kinds *k = kinds_of(b);
	const struct op scan = ssm_op(b, k->scan, "scan");
	const struct view heads = weight_of(b, b->layer, k->heads);
	int32_t states = states_of(b);
	if (is_kda(b))
		build_with(b, &scan, view_of(xbc), view_of(s->in), view_of(s->decay), heads, view_of(states),
			view_of(s->y));
	else
		build_with(b, &scan, view_of(xbc), view_of(s->in), heads, view_of(states), view_of(s->y));
}

int32_t ssm_forward(struct builder *b, struct acts *a, int32_t normed)
{
	const struct linear in = linear_in(b), out = linear_out(b);
	struct ssm_acts *s = &a->ssm;
	s->in = build_linear(b, &in, tp_gather(b, normed, "ssm input"));
	const struct kinds *k = kinds_of(b);
	const struct op scan = ssm_op(b, k->scan, "scan");
	s->decay_low = s->decay = s->gate_low = s->gate = NONE;
	if (is_kda(b)) {
		const struct low_rank decays = decay_products(b), gates = gate_products(b);
		s->decay = low_rank_forward(b, &decays, normed, &s->decay_low);
		s->gate = low_rank_forward(b, &gates, normed, &s->gate_low);
	}
	int32_t xbc = convolve(b, s);
	s->y = build_act(b, b->tokens, channels(b));
	scan_forward(b, s, xbc);
	s->xbc = is_delta(b) ? xbc : NONE;
	s->kept_inverse = is_delta(b) && (b->recomputing || !build_recomputes(b, b->layer))
	                          ? build_hold(b, COMP_ACTIVATIONS,
					    (double)(k->triangles * b->tokens * scan.ssm.heads * scan.ssm.chunk) *
						    dtype_bytes(b->act),
					    "inverses of chunks")
	                          : NONE;
	s->gated = build_act(b, b->tokens, channels(b));
	s->sigma = build_fp32(b, b->tokens * (is_delta(b) ? scan.ssm.heads : scan.ssm.groups));
	build_with(b, made_op(ssm_op(b, k->gate, "gated norm")), view_of(s->y), view_of(gates_of(b, s)),
		weight_of(b, b->layer, PARAM_SSM_NORM_W), view_of(s->gated), view_of(s->sigma));
	return build_ends_early(b) ? NONE : tp_reduce(b, build_linear(b, &out, s->gated), "ssm out");
}

/* Makes an op write gradients of weights, added to what earlier micro-batches left. */
static void writes_weights(const struct builder *b, struct op *op, bool accumulate)
{
	op->out_dtype = (uint8_t)b->written_grad;
	op->flags |= accumulate ? OP_ACCUMULATE : 0;
}

/* dz: the buffer in which z's gradient stands. */
static void gate_backward(struct builder *b, const struct ssm_acts *s, int32_t dgated, int32_t dy, int32_t dz)
{
	bool accumulate = false;
	struct op op = ssm_op(b, kinds_of(b)->gate_grad, "gated norm");
	struct view dw = gradient_or_scratch(b, PARAM_SSM_NORM_W, &accumulate);
	writes_weights(b, &op, accumulate);
	build_with(b, &op, view_of(dgated), view_of(s->y), view_of(gates_of(b, s)),
		weight_of(b, b->layer, PARAM_SSM_NORM_W), view_of(s->sigma), view_of(dy), view_of(dz), dw);
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

/* ddecay: NONE but for Kimi delta attention. */
static void scan_backward(struct builder *b, struct ssm_acts *s, int32_t dy, int32_t dxbc, int32_t din, int32_t ddecay)
{
	bool accumulate = false;
	const enum param_kind heads = kinds_of(b)->heads;
	int32_t xbc = s->xbc != NONE ? s->xbc : convolve_again(b, s);
	struct op op = ssm_op(b, kinds_of(b)->scan_grad, "scan");
	struct view dheads = gradient_or_scratch(b, heads, &accumulate);
	writes_weights(b, &op, accumulate);
	const struct view w = weight_of(b, b->layer, heads), states = view_of(states_of(b));
	if (is_kda(b))
		build_with(b, &op, view_of(xbc), view_of(s->in), view_of(s->decay), w, view_of(dy), states,
			view_of(dxbc), view_of(din), view_of(ddecay), dheads);
	else
		build_with(b, &op, view_of(xbc), view_of(s->in), w, view_of(dy), states, view_of(dxbc), view_of(din),
			dheads);
	gradient_done(b, b->layer, heads);
	build_release(b, &s->kept_inverse);
}

static void conv_backward(struct builder *b, const struct ssm_acts *s, int32_t dxbc, int32_t din)
{
	bool accumulate = false, same = false;
	struct op op = ssm_op(b, OP_SSM_CONV_GRAD, "conv");
	struct view dw = gradient_or_scratch(b, PARAM_SSM_CONV_W, &accumulate),
		    db = gradient_or_scratch(b, PARAM_SSM_CONV_B, &same);
	writes_weights(b, &op, accumulate);
	build_with(b, &op, view_of(s->in), weight_of(b, b->layer, PARAM_SSM_CONV_W),
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
	if (!is_kda(b)) {
		gate_backward(b, s, dgated, dy, din);
		scan_backward(b, s, dy, dxbc, din, NONE);
		conv_backward(b, s, dxbc, din);
		return columns_backward(b, &in, din, a->n1, "ssm input", "ssm input grad");
	}
	const struct low_rank decays = decay_products(b), gates = gate_products(b);
	int32_t dgate = build_act(b, b->tokens, gates.up.out), ddecay = build_act(b, b->tokens, decays.up.out);
	gate_backward(b, s, dgated, dy, dgate);
	scan_backward(b, s, dy, dxbc, din, ddecay);
	conv_backward(b, s, dxbc, din);
	int32_t dx = columns_backward(b, &in, din, a->n1, "ssm input", "ssm input grad");
	low_rank_backward(b, &gates, dgate, s->gate_low, a->n1, dx);
	low_rank_backward(b, &decays, ddecay, s->decay_low, a->n1, dx);
	return dx;
}
