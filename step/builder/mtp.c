/* Multi-token prediction (DeepSeek-AI 2024, DeepSeek-V3, arXiv:2412.19437, section 2.2; Megatron-Core,
 * transformer/multi_token_prediction.py): behind the last block, blocks that predict the token after the next one, and
 * so on. Each norms the hidden state before it and the next token's embedding, joins them by a product of 2 hidden
 * columns, here one of each half and a sum, and runs a block, a norm and the model's own head. The table and the head
 * so have further uses, which write their gradients first. All losses weigh alike; the targets are as many as the first
 * head's.
 */
#include "step/builder/blocks.h"

#include <string.h>

static struct linear linear_half(const struct builder *b, const char *what, enum param_kind w)
{
	return (struct linear){what, b->rows, b->m->hidden, b->m->hidden, w, NO_PARAM, 0};
}

static struct linear linear_hidden(const struct builder *b) { return linear_half(b, "mtp hidden", PARAM_MTP_HIDDEN_W); }

static struct linear linear_token(const struct builder *b) { return linear_half(b, "mtp token", PARAM_MTP_TOKEN_W); }

static struct op add_op(const struct builder *b, const char *what)
{
	return build_matrix(b, OP_ADD, what, b->rows, b->m->hidden);
}

/* The tokens of block i, the targets of the one before it. */
static enum input_part part_of(int64_t i) { return (enum input_part)(INPUT_PART_TARGETS + i); }

static int32_t joined(struct builder *b, struct mtp_acts *a, int32_t x)
{
	const struct linear of_hidden = linear_hidden(b), of_token = linear_token(b);
	a->hidden = x;
	a->hidden_normed = build_norm(b, "mtp hidden", x, PARAM_MTP_HIDDEN_NORM_W, &a->hidden_stats);
	a->tokens_normed = build_norm(b, "mtp token", a->tokens, PARAM_MTP_TOKEN_NORM_W, &a->tokens_stats);
	int32_t hidden = build_linear(b, &of_hidden, a->hidden_normed),
		token = build_linear(b, &of_token, a->tokens_normed);
	int32_t sum = build_rows(b);
	build_on(b, made_op(add_op(b, "mtp")), hidden, token, NONE, sum);
	return sum;
}

void mtp_forward(struct builder *b, int32_t x)
{
	for (int64_t i = 0; i < b->m->mtp_layers && !b->st; i++) {
		struct mtp_acts *a = &b->now->mtp[i];
		struct acts *acts = acts_of(b, b->m->layers + i);
		a->tokens = embed_tokens(b, feed_view(b, part_of(i)));
		b->layer = (int32_t)(b->m->layers + i);
		memset(acts, 0xff, sizeof *acts); /* NONE */
		x = block_forward(b, joined(b, a, x), acts);
		a->head.x = x;
		int32_t normed = build_norm(b, "final norm", x, PARAM_MTP_FINAL_NORM_W, &a->head.stats);
		b->layer = NONE;
		vocabulary_forward(b, &a->head, normed, feed_view(b, part_of(i + 1)));
	}
}

/* Returns the gradient of a half's input, before its norm. */
static int32_t half_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t normed, int32_t x,
	int32_t stats, enum param_kind norm)
{
	int32_t dn = build_linear_grad(b, l, dy);
	build_weight_grad(b, l, dy, normed);
	return build_norm_grad(b, l->what, dn, x, stats, norm, NONE);
}

/* `later`: the gradient of the block's output by way of the block behind it, or NONE. */
static int32_t block_i_backward(struct builder *b, int64_t i, int32_t later)
{
	struct mtp_acts *a = &b->now->mtp[i];
	const struct linear of_hidden = linear_hidden(b), of_token = linear_token(b);
	struct acts *acts = acts_of(b, b->m->layers + i);
	int32_t dx = vocabulary_backward(b, &a->head);
	b->head_begun = true;
	b->layer = (int32_t)(b->m->layers + i);
	dx = build_norm_grad(b, "final norm", dx, a->head.x, a->head.stats, PARAM_MTP_FINAL_NORM_W, NONE);
	if (later != NONE)
		build_on(b, made_op(add_op(b, "residual grad")), dx, later, NONE, dx);
	block_backward(b, acts, &dx);
	int32_t dtokens = half_backward(b, &of_token, dx, a->tokens_normed, a->tokens, a->tokens_stats,
		PARAM_MTP_TOKEN_NORM_W);
	int32_t dhidden = half_backward(b, &of_hidden, dx, a->hidden_normed, a->hidden, a->hidden_stats,
		PARAM_MTP_HIDDEN_NORM_W);
	b->layer = NONE;
	embed_tokens_grad(b, feed_view(b, part_of(i)), dtokens, i < b->m->mtp_layers - 1, i == 0 && !b->has_embedding);
	return dhidden;
}

int32_t mtp_backward(struct builder *b)
{
	int32_t dx = NONE;
	b->head_begun = false;
	b->further_tokens = true;
	for (int64_t i = b->m->mtp_layers - 1; i >= 0 && !b->st; i--)
		dx = block_i_backward(b, i, dx);
	b->further_tokens = false;
	return dx;
}
