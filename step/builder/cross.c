/* An encoder before a decoder (Vaswani et al. 2017, arXiv:1706.03762, section 3.1).
 *
 * The layers of the encoder come first, on sequences of model.encoder_seq_len rows; what follows them begins with the
 * decoder's own embedding, on seq_len tokens. Each decoder layer attends once more, behind its self-attention: queries
 * are a product of its rows, keys and values one of the encoder's output, which lives until the last decoder layer has
 * read it. In the backward pass each decoder layer adds its part to that output's gradient, and the encoder's backward
 * pass begins when all have. Under tensor parallelism each layer reduces its part, as it reduces that of its input.
 *
 * A relative bias is made once for each stack and micro-batch, and added to the scores of all its layers; their
 * gradients add up before the table's is made of them (transformers, modeling_t5.py, T5Stack and T5Attention).
 */
#include "step/builder/blocks.h"

/* Makes what follows work on the encoder's sequences, or on the decoder's. */
static void turn_to(struct builder *b, bool encodes)
{
	b->encodes = encodes;
	build_span(b, encodes ? b->m->encoder_seq_len : b->m->seq_len);
}

/* ---- relative biases ---- */

static enum param_kind table_kind(const struct builder *b)
{
	return b->encodes ? PARAM_ENCODER_RELATIVE_BIAS : PARAM_RELATIVE_BIAS;
}

static struct op table_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "relative bias");
	op.flags |= b->m->causal && !b->encodes ? OP_CAUSAL : 0;
	op.relative = (struct op_relative){b->heads, b->seq, b->m->relative_buckets};
	return op;
}

static int32_t build_biases(struct builder *b) { return build_act(b, b->heads * b->seq, b->seq); }

/* Makes the biases of the stack at hand. */
static void biases_begin(struct builder *b)
{
	struct bias_acts *a = &b->now->bias[b->encodes];
	*a = (struct bias_acts){NONE, NONE};
	if (b->m->position != POS_RELATIVE)
		return;
	a->bias = build_biases(b);
	build_with(b, made_op(table_op(b, OP_RELATIVE_BIAS)), weight_of(b, NONE, table_kind(b)), view_of(a->bias));
}

/* Ends the backward pass of the stack at hand with the gradient of its table. */
static void biases_end(struct builder *b)
{
	bool accumulate = false;
	struct op op = table_op(b, OP_RELATIVE_BIAS_GRAD);
	const struct view dtable = gradient_of(b, NONE, table_kind(b), &accumulate);
	if (dtable.buffer < 0)
		return;
	op.out_dtype = (uint8_t)b->written_grad;
	op.flags |= accumulate ? OP_ACCUMULATE : 0;
	build_with(b, &op, view_of(b->now->bias[b->encodes].dbias), dtable);
	gradient_done(b, NONE, table_kind(b));
}

void build_score_bias(struct builder *b, int32_t scores)
{
	const int32_t bias = b->now->bias[b->encodes].bias;
	struct op op = build_attention_op(b, OP_ATTN_BIAS);
	op.what = "relative bias";
	if (b->m->position == POS_RELATIVE)
		build_on(b, &op, scores, bias);
}

void build_score_bias_grad(struct builder *b, int32_t dscores)
{
	int32_t *dbias = &b->now->bias[b->encodes].dbias;
	struct op op = build_attention_op(b, OP_ATTN_BIAS_GRAD);
	op.what = "relative bias";
	if (!trained_of(b, NONE, table_kind(b)))
		return;
	op.flags |= *dbias == NONE ? 0 : OP_ACCUMULATE;
	if (*dbias == NONE)
		*dbias = build_biases(b);
	build_on(b, &op, dscores, *dbias);
}

/* ---- between the stacks ---- */

int32_t stack_begin(struct builder *b)
{
	turn_to(b, b->m->encoder_layers > 0);
	b->now->encoded = b->now->dencoded = NONE;
	int32_t x = embedding_forward(b);
	biases_begin(b);
	return x;
}

void stack_end(struct builder *b, int32_t dx)
{
	biases_end(b);
	embedding_backward(b, dx);
	turn_to(b, false);
}

int32_t decoder_begin(struct builder *b, int32_t x)
{
	struct flight *now = b->now;
	now->encoder_out = now->encoded = x;
	if (b->m->final_norm)
		now->encoded = build_norm(b, "encoder norm", x, PARAM_ENCODER_NORM_W, &now->encoder_stats);
	turn_to(b, false);
	x = embedding_forward(b);
	biases_begin(b);
	return x;
}

int32_t decoder_end(struct builder *b, int32_t dx)
{
	struct flight *now = b->now;
	biases_end(b);
	embedding_backward(b, dx);
	turn_to(b, true);
	return b->m->final_norm ? build_stream_norm_grad(b, "encoder norm", now->dencoded, now->encoder_out,
					  now->encoder_stats, PARAM_ENCODER_NORM_W, NONE)
	                        : now->dencoded;
}

/* ---- cross-attention ---- */

static struct linear linear_q(const struct builder *b)
{
	return (struct linear){"cross q", b->tokens, b->heads * b->m->head_dim, b->m->hidden, PARAM_CROSS_Q_W,
		PARAM_CROSS_Q_B, 0};
}

/* Of the encoder's rows. */
static struct linear linear_kv(const struct builder *b)
{
	return (struct linear){"cross kv", b->tokens, 2 * b->kv_heads * b->m->head_dim, b->m->hidden, PARAM_CROSS_KV_W,
		PARAM_CROSS_KV_B, 0};
}

static struct linear linear_out(const struct builder *b)
{
	return (struct linear){"cross proj", b->tokens, b->m->hidden, b->heads * b->m->head_dim, PARAM_CROSS_PROJ_W,
		NO_PARAM, 0};
}

static struct op cross_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_attention_op(b, k);
	op.what = "cross attention";
	op.flags &= (uint32_t)~OP_CAUSAL;
	op.attn.keys = b->m->encoder_seq_len;
	op.attn.back = OTHER_SEQUENCE;
	return op;
}

static int32_t cross_scores(struct builder *b)
{
	return build_act(b, b->c->train.micro_batch * b->heads * b->seq, b->m->encoder_seq_len);
}

static int32_t cross_probs(struct builder *b, const struct cross_acts *a)
{
	int32_t probs = cross_scores(b);
	build_on(b, made_op(cross_op(b, OP_ATTN_SCORES)), a->q, probs, a->kv);
	build_on(b, made_op(cross_op(b, OP_ATTN_SOFTMAX)), probs);
	return probs;
}

static int32_t keys_forward(struct builder *b)
{
	turn_to(b, true);
	const struct linear l = linear_kv(b);
	int32_t kv = build_linear(b, &l, tp_gather(b, b->now->encoded, "encoder output"));
	turn_to(b, false);
	return kv;
}

static void keys_backward(struct builder *b, int32_t dkv)
{
	int32_t *sum = &b->now->dencoded;
	turn_to(b, true);
	const struct linear l = linear_kv(b);
	build_bias_grad(b, l.what, l.rows, l.out, dkv, l.bias);
	int32_t part = columns_backward(b, &l, dkv, b->now->encoded, "encoder output", "encoder output grad");
	if (*sum == NONE)
		*sum = part;
	else
		build_on(b, made_op(build_matrix(b, OP_ADD, "encoder output grad", b->rows, b->m->hidden)), *sum, part,
			NONE, *sum);
	turn_to(b, false);
}

static void cross_core(struct builder *b, struct cross_acts *a)
{
	a->lse = a->probs = NONE;
	a->att = build_act(b, b->tokens, linear_out(b).in);
	if (b->c->train.attention == ATT_FLASH) {
		a->lse = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq);
		build_on(b, made_op(cross_op(b, OP_ATTENTION_PART)), a->q, a->kv, a->att, a->lse);
		return;
	}
	a->probs = cross_probs(b, a);
	build_on(b, made_op(cross_op(b, OP_ATTN_VALUES)), a->probs, a->kv, a->att);
}

int32_t cross_forward(struct builder *b, struct cross_acts *a)
{
	const struct linear q = linear_q(b), out = linear_out(b);
	a->q = build_linear(b, &q, tp_gather(b, a->n, "cross attention input"));
	a->kv = keys_forward(b);
	cross_core(b, a);
	if (b->c->train.attention == ATT_NAIVE)
		a->kept_scores = build_kept_scores(b, b->m->encoder_seq_len);
	return tp_reduce(b, build_linear(b, &out, a->att), "cross proj");
}

void cross_forget(const struct builder *b, struct cross_acts *a)
{
	if (build_recomputes_part(b, REC_LAYERNORM))
		a->n = a->stats = NONE;
	if (build_recomputes_part(b, REC_CORE_ATTN))
		a->lse = a->probs = NONE;
}

/* Runs again what the backward pass reads and the forward pass has not kept. */
static void again(struct builder *b, struct cross_acts *a)
{
	b->recomputing = true;
	if (build_recomputes_part(b, REC_LAYERNORM))
		a->n = build_norm(b, "cross norm", a->x, PARAM_CROSS_NORM_W, &a->stats);
	if (build_recomputes_part(b, REC_CORE_ATTN) && b->c->train.attention == ATT_FLASH)
		cross_core(b, a);
	else if (build_recomputes_part(b, REC_CORE_ATTN))
		a->probs = cross_probs(b, a);
	b->recomputing = false;
}

static void core_backward(struct builder *b, struct cross_acts *a, int32_t datt, int32_t dq, int32_t dkv)
{
	if (b->c->train.attention == ATT_FLASH) {
		int32_t delta = build_fp32(b, b->c->train.micro_batch * b->heads * b->seq);
		build_on(b, made_op(cross_op(b, OP_ATTENTION_PART_GRAD)), a->q, a->kv, a->att, a->lse, datt, delta, dq,
			dkv);
		return;
	}
	int32_t dprobs = cross_scores(b);
	build_release(b, &a->kept_scores);
	build_on(b, made_op(cross_op(b, OP_ATTN_VALUES_GRAD)), a->probs, a->kv, datt, dprobs, dkv);
	build_on(b, made_op(cross_op(b, OP_ATTN_SOFTMAX_GRAD)), a->probs, dprobs);
	build_on(b, made_op(cross_op(b, OP_ATTN_SCORES_GRAD)), dprobs, a->q, dq, a->kv, dkv);
}

int32_t cross_backward(struct builder *b, struct cross_acts *a, int32_t dout)
{
	const struct linear q = linear_q(b), out = linear_out(b);
	build_bias_grad(b, out.what, b->rows, b->m->hidden, dout, PARAM_CROSS_PROJ_B);
	int32_t datt = rows_backward(b, &out, dout, a->att, "cross proj grad");
	again(b, a);
	int32_t dq = build_act(b, b->tokens, q.out),
		dkv = build_act(b, b->c->train.micro_batch * b->m->encoder_seq_len, 2 * b->kv_heads * b->m->head_dim);
	core_backward(b, a, datt, dq, dkv);
	keys_backward(b, dkv);
	build_bias_grad(b, q.what, q.rows, q.out, dq, q.bias);
	return columns_backward(b, &q, dq, a->n, "cross attention input", "cross attention input grad");
}
