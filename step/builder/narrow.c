/* Formats narrower than 16 bits. Only the blocks' matrix products use them: NVIDIA Transformer Engine's recipes keep
 * attention, norms, head and loss in bf16. A head that is a layer of theirs multiplies in the narrow format, too
 * (train.narrow_head). Each operand is cast once and serves every product that reads it:
 *
 *   activation         forward, and the gradient of its weights
 *   output's gradient  both products of backward
 *   stored weight      all micro-batches (Transformer Engine's cache of fp8 weights)
 *   gathered weight    all uses while it is gathered
 *
 * A stack may keep attention's result once, as attention's own gradient reads it, and cast it for the next product's
 * again (struct stack, keeps_attention_once).
 *
 * Weights that are stored in fp8 (train.param_dtype), or gathered in it (parallel.gather_dtype), are read as they are.
 */
#include "step/builder/blocks.h"

bool narrow_here(const struct builder *b) { return dtype_is_narrow(b->c->train.dtype) && b->layer != NONE; }

bool narrow_head(const struct builder *b, enum param_kind w)
{
	return dtype_is_narrow(b->c->train.dtype) && b->c->train.narrow_head && b->layer == NONE &&
	       w == (model_ties(b->m) ? PARAM_TOKEN_EMBEDDING : PARAM_HEAD_W);
}

bool narrow_experts(const struct builder *b) { return narrow_here(b) && !b->c->train.wide_experts; }

/* Returns the earlier copy of this view, or NONE. */
static int32_t find(const struct builder *b, struct view v)
{
	if ((size_t)v.buffer >= b->narrow_first.n)
		return NONE;
	for (int32_t i = b->narrow_first.at[v.buffer]; i != NONE; i = b->narrow.at[i].next)
		if (b->narrow.at[i].offset_B == v.offset_B)
			return b->narrow.at[i].copy;
	return NONE;
}

static void remember(struct builder *b, struct view v, int32_t copy)
{
	while (b->narrow_first.n <= (size_t)v.buffer)
		if (!vec_push(&b->narrow_first, NONE)) {
			build_nomem(b, "the step program");
			return;
		}
	struct narrow_copy n = {v.offset_B, copy, b->narrow_first.at[v.buffer]};
	b->narrow_first.at[v.buffer] = (int32_t)b->narrow.n;
	if (!vec_push(&b->narrow, n))
		build_nomem(b, "the step program");
}

void narrow_forget(struct builder *b, int32_t buffer)
{
	if (!b->st && buffer >= 0 && (size_t)buffer < b->narrow_first.n)
		b->narrow_first.at[buffer] = NONE;
}

void narrow_is_own(struct builder *b, struct view v)
{
	if (!b->st && find(b, v) == NONE)
		remember(b, v, v.buffer);
}

struct view narrow_copy_of(struct builder *b, struct view v, int64_t elements)
{
	if (b->st || v.buffer == NONE)
		return v;
	int32_t copy = find(b, v);
	if (copy == v.buffer)
		return v;
	if (copy == NONE) {
		enum dtype to = b->c->train.dtype;
		copy = build_buffer(b, COMP_ACTIVATIONS, to, elements, false);
		build_cast(b, v, b->act, view_of(copy), to, elements, "narrow copy");
		remember(b, v, copy);
	}
	return view_of(copy);
}
