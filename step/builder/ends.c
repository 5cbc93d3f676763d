/* The beginning of the model: tables of tokens and positions, or the product that embeds patches. */
#include "step/builder/blocks.h"
#include "step/inputs.h"

static bool has_positions(const struct builder *b) { return model_has_positions(b->m) || b->m->type_vocab > 0; }

static enum param_kind position_kind(const struct builder *b)
{
	return b->encodes ? PARAM_ENCODER_POSITION : PARAM_POSITION_EMBEDDING;
}

static struct view tokens_view(const struct builder *b)
{
	const bool decodes = b->m->encoder_layers > 0 && !b->encodes;
	return view_at(b->now->input,
		inputs_offset_B(b->c, b->c->train.micro_batch, decodes ? INPUT_PART_DECODER : INPUT_PART_DATA));
}

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
	op.dropout = k == OP_EMBED && b->m->dropout > 0 && !has_positions(b);
	return op;
}

static struct op position_op(const struct builder *b, enum op_kind k)
{
	struct op op = table_op(b, k, "position", b->rows, b->seq * b->context);
	op.flags |= b->sequence_parallel ? OP_SEQUENCE_PARALLEL : 0;
	op.dropout = k == OP_POSITION && b->m->dropout > 0;
	return op;
}

/* ---- patches: a matrix product for each, and a row of parameters before those of a picture ---- */

static struct linear linear_patches(const struct builder *b)
{
	const struct model *m = b->m;
	return (struct linear){"patches", b->c->train.micro_batch * model_patches(m), m->hidden,
		m->patch_size * m->patch_size * m->channels, PARAM_PATCH_W, PARAM_PATCH_B, 0};
}

static struct op prepend_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_sequence_op(b, k, "class token", 1);
	op.out_dtype = (uint8_t)(k == OP_PREPEND ? b->act : b->written_grad);
	return op;
}

static int32_t patches_forward(struct builder *b)
{
	const struct linear l = linear_patches(b);
	int32_t y = build_linear(b, &l, b->now->input);
	if (!b->m->class_token)
		return y;
	int32_t x = build_rows(b);
	build_with(b, made_op(prepend_op(b, OP_PREPEND)), weight_of(b, NONE, PARAM_CLASS_TOKEN), view_of(y),
		view_of(x));
	return x;
}

static void patches_backward(struct builder *b, int32_t dx)
{
	const struct linear l = linear_patches(b);
	int32_t dy = dx;
	if (b->m->class_token) {
		bool accumulate = false;
		struct op op = prepend_op(b, OP_PREPEND_GRAD);
		struct view dw = gradient_of(b, NONE, PARAM_CLASS_TOKEN, &accumulate);
		dy = build_act(b, l.rows, l.out);
		op.flags |= accumulate ? OP_ACCUMULATE : 0;
		build_with(b, &op, view_of(dx), dw, view_of(dy));
		gradient_done(b, NONE, PARAM_CLASS_TOKEN);
	}
	if (!trained_of(b, NONE, PARAM_PATCH_W))
		return;
	build_bias_grad(b, "patches", l.rows, l.out, dy, PARAM_PATCH_B);
	build_weight_grad(b, &l, dy, b->now->input);
}

/* ---- */

int32_t embed_tokens(struct builder *b, struct view tokens)
{
	int32_t full = build_act(b, b->tokens, b->m->hidden);
	build_with(b, made_op(embedding_op(b, OP_EMBED)), tokens, weight_of(b, NONE, PARAM_TOKEN_EMBEDDING),
		view_of(full));
	return tp_reduce(b, full, "embedding");
}

int32_t embedding_forward(struct builder *b)
{
	if (b->m->input == INPUT_PIXELS)
		return conv_stem_forward(b);
	const bool frames = b->m->input == INPUT_FRAMES && b->encodes;
	int32_t x = b->m->input == INPUT_PATCHES ? patches_forward(b)
	            : frames                     ? frames_forward(b)
	                                         : embed_tokens(b, tokens_view(b));
	if (has_positions(b)) {
		struct view pos = weight_of(b, NONE, position_kind(b)), type = weight_of(b, NONE, PARAM_TYPE_EMBEDDING);
		build_with(b, made_op(position_op(b, OP_POSITION)), pos, type, view_of(x));
	}
	if (b->m->adaptive_norm)
		condition_forward(b);
	b->now->embedded = x;
	if (!b->m->embedding_norm)
		return x;
	return build_norm(b, "embedding norm", x, PARAM_EMBEDDING_NORM_W, &b->now->embedding_stats);
}

struct view build_table_gradient(struct builder *b, enum param_kind k, bool *begun)
{
	bool accumulate = false;
	struct view g = gradient_of(b, NONE, k, &accumulate);
	*begun = *begun || accumulate;
	if (g.buffer >= 0 && !*begun)
		build_fill(b, g, b->written_grad, (int64_t)param_of(b, NONE, k)->elements, "embedding grad");
	return g;
}

void embed_tokens_grad(struct builder *b, struct view tokens, int32_t dx, bool begun, bool done)
{
	if (!trained_of(b, NONE, PARAM_TOKEN_EMBEDDING))
		return;
	int32_t dy = tp_gather(b, dx, "embedding grad");
	struct view dw = build_table_gradient(b, PARAM_TOKEN_EMBEDDING, &begun);
	struct op op = embedding_op(b, OP_EMBED_GRAD);
	op.flags |= begun ? OP_ACCUMULATE : 0;
	build_with(b, &op, tokens, view_of(dy), dw);
	if (done)
		gradient_done(b, NONE, PARAM_TOKEN_EMBEDDING);
}

void embedding_backward(struct builder *b, int32_t dx)
{
	if (b->m->input == INPUT_PIXELS) {
		conv_stem_backward(b, dx);
		return;
	}
	if (b->m->adaptive_norm)
		condition_backward(b);
	if (b->m->embedding_norm)
		dx = build_stream_norm_grad(b, "embedding norm", dx, b->now->embedded, b->now->embedding_stats,
			PARAM_EMBEDDING_NORM_W, NONE);
	if (has_positions(b) && (trained_of(b, NONE, position_kind(b)) || trained_of(b, NONE, PARAM_TYPE_EMBEDDING))) {
		bool begun[2] = {false, false};
		struct view pos = build_table_gradient(b, position_kind(b), &begun[0]),
			    type = build_table_gradient(b, PARAM_TYPE_EMBEDDING, &begun[1]);
		build_with(b, made_op(position_op(b, OP_POSITION_GRAD)), view_of(dx), pos, type);
		gradient_done(b, NONE, position_kind(b));
		gradient_done(b, NONE, PARAM_TYPE_EMBEDDING);
	}
	if (b->m->input == INPUT_PATCHES)
		patches_backward(b, dx);
	if (b->m->input == INPUT_FRAMES && b->encodes) {
		frames_backward(b, dx);
		return;
	}
	/* The decoder's tokens come before the encoder's, which complete the gradient. */
	const bool begun = (model_table_ends(b->m) && b->has_head) || b->encodes,
		   more = b->m->encoder_layers > 0 && !b->encodes && b->m->input == INPUT_TOKENS;
	embed_tokens_grad(b, tokens_view(b), dx, begun, !more);
}
