/* Attention under context parallelism. The ranks of a group share each sequence (step/program.h says how). Queries stay
 * on their rank; keys and values travel.
 *
 * ring: While attention works on one rank's keys and values, the next rank's arrive. In the backward pass they travel
 * once more, followed by their gradients, to which each rank adds its part and which end on their own rank. That takes
 * c - 1 exchanges forward and 2 (c - 1) backward (Liu et al. 2023, arXiv:2310.01889; Megatron-LM through Transformer
 * Engine's p2p). The gradients of a visitor have a buffer of their own, so that attention hides the exchange of the
 * ones before.
 *
 * ring_contiguous: The same of sequences that are cut into one piece a rank, under a causal mask. The last rank sees
 * all keys of all others, each of which waits for it at every exchange (zhuzilin/ring-flash-attention,
 * ring_flash_attn/ring_flash_attn.py; picotron, context_parallel.py). So ops have the last rank's pairs.
 *
 * all_gather: One all-gather forward, another backward instead of keeping all keys, and one reduce-scatter. All are
 * exposed (Llama 3, arXiv:2407.21783, section 3.3.2). Naive attention gathers, and then brings each sequence's rows
 * together, so that each product of a head is one matrix.
 *
 * all_to_all: Heads are dealt out in place of keys. An exchange brings each rank the whole sequence of its part of the
 * heads, attention works on them alone, and another exchange brings the results back; the backward pass does the same
 * (Jacobs et al. 2023, DeepSpeed-Ulysses, arXiv:2309.14509, section 3.1). All are exposed. Q, K and V travel together,
 * with a copy before and after, which brings their columns in order. Sequences are cut into one chunk a rank.
 */
#include "step/builder/blocks.h"

static int64_t kv_width(const struct builder *b) { return 2 * b->kv_heads * b->m->head_dim; }

static const struct context_traits *kind(const struct builder *b)
{
	return &context_traits[b->c->parallel.context_kind];
}

static struct op part_op(const struct builder *b, enum op_kind k, int64_t keys, int64_t place)
{
	struct op op = build_attention_op(b, k);
	op.attn.keys = keys;
	op.attn.back = place;
	op.attn.seen = build_window(b);
	op.flags |= place > 0 ? OP_ACCUMULATE : 0;
	if (place > 0 && !kind(b)->mirrors)
		op.flags &= (uint32_t)~OP_CAUSAL;
	return op;
}

static struct op pack_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "kv");
	op.pack.rows = b->tokens;
	op.pack.kv_cols = kv_width(b);
	op.pack.qkv_cols = linear_qkv(b).out;
	return op;
}

static int32_t pack(struct builder *b, int32_t qkv)
{
	int32_t kv = build_act(b, b->tokens, kv_width(b));
	build_on(b, made_op(pack_op(b, OP_KV_PACK)), qkv, kv);
	return kv;
}

static void unpack(struct builder *b, int32_t dkv, int32_t dqkv, bool adds)
{
	struct op op = pack_op(b, OP_KV_UNPACK);
	op.what = "kv grad";
	op.flags |= adds ? OP_ACCUMULATE : 0;
	build_on(b, &op, dkv, dqkv);
}

/* Sends a buffer to the next rank and returns what the previous rank sent. */
static int32_t pass_on(struct builder *b, int32_t buffer, const char *what)
{
	return build_exchange(b, COLL_SENDRECV, DIM_CP, buffer, b->tokens, kv_width(b), what);
}

static int32_t gather_kv(struct builder *b, int32_t qkv)
{
	return build_exchange(b, COLL_ALL_GATHER, DIM_CP, pack(b, qkv), b->context * b->tokens, kv_width(b), "kv");
}

/* Reorders blocks, each a rank's part of a sequence: by rank and sequence, or by sequence and rank. */
static int32_t regroup(struct builder *b, int32_t buffer, int64_t outer, int64_t inner, const char *what)
{
	return build_swap(b, what, buffer, b->act, outer, inner, b->seq * kv_width(b));
}

int32_t context_keys(struct builder *b, int32_t qkv)
{
	return regroup(b, gather_kv(b, qkv), b->context, b->c->train.micro_batch, "kv by sequence");
}

/* Sums all ranks' gradients of keys and values, and puts this rank's part into its own columns. */
static void scatter_grad(struct builder *b, int32_t dall, int32_t dqkv)
{
	int64_t rows = b->context * b->tokens;
	unpack(b, build_exchange(b, COLL_REDUCE_SCATTER, DIM_CP, dall, rows, kv_width(b), "kv grad"), dqkv, false);
}

void context_keys_grad(struct builder *b, int32_t dkv, int32_t dqkv)
{
	scatter_grad(b, regroup(b, dkv, b->c->train.micro_batch, b->context, "kv grad by rank"), dqkv);
}

/* ---- all_to_all ---- */

/* Attention of this rank's heads over the whole sequence. */
static struct op heads_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_attention_op(b, k);
	op.attn.heads /= b->context;
	op.attn.kv_heads /= b->context;
	op.attn.seq *= b->context;
	return op;
}

/* Exchanges [tokens, cols] of all heads with the whole sequence of a part of them, or back: copy, exchange, copy. */
static int32_t deal(struct builder *b, int32_t buffer, int64_t cols, const char *what)
{
	const int64_t c = b->context, part = cols / c;
	int32_t sent = build_swap(b, what, buffer, b->act, b->tokens, c, part);
	int32_t got = build_exchange(b, COLL_ALLTOALL, DIM_CP, sent, b->tokens, cols, what);
	return build_swap(b, what, got, b->act, c, b->c->train.micro_batch, b->seq * part);
}

static void dealt_attention(struct builder *b, struct acts *a)
{
	a->qkv = deal(b, a->qkv, linear_qkv(b).out, "qkv by heads");
	a->att_heads = build_act(b, b->tokens, linear_proj(b).in);
	build_on(b, made_op(heads_op(b, OP_ATTENTION)), a->qkv, a->att_heads, a->lse);
	a->att = deal(b, a->att_heads, linear_proj(b).in, "attention by tokens");
}

static int32_t dealt_attention_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta)
{
	int32_t dheads = deal(b, datt, linear_proj(b).in, "attention grad by heads");
	int32_t dqkv = build_act(b, b->tokens, linear_qkv(b).out);
	build_on(b, made_op(heads_op(b, OP_ATTENTION_GRAD)), a->qkv, a->att_heads, a->lse, dheads, delta, dqkv);
	return deal(b, dqkv, linear_qkv(b).out, "qkv grad by tokens");
}

void context_attention(struct builder *b, struct acts *a)
{
	if (kind(b)->deals_heads) {
		dealt_attention(b, a);
		return;
	}
	a->att = build_act(b, b->tokens, linear_proj(b).in);
	if (!kind(b)->passes_keys) {
		int32_t all = gather_kv(b, a->qkv);
		build_on(b, made_op(part_op(b, OP_ATTENTION_PART, b->context * b->seq, 0)), a->qkv, all, a->att,
			a->lse);
		return;
	}
	int32_t visitor = pass_on(b, pack(b, a->qkv), "kv");
	build_on(b, made_op(build_attention_op(b, OP_ATTENTION)), a->qkv, a->att, a->lse);
	for (int64_t place = 1; place < b->context; place++) {
		int32_t kv = visitor;
		if (place + 1 < b->context)
			visitor = pass_on(b, kv, "kv");
		build_on(b, made_op(part_op(b, OP_ATTENTION_PART, b->seq, place)), a->qkv, kv, a->att, a->lse);
	}
}

static void gathered_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta, int32_t dqkv)
{
	int32_t all = gather_kv(b, a->qkv), dall = build_act(b, b->context * b->tokens, kv_width(b));
	build_on(b, made_op(part_op(b, OP_ATTENTION_PART_GRAD, b->context * b->seq, 0)), a->qkv, all, a->att, a->lse,
		datt, delta, dqkv, dall);
	scatter_grad(b, dall, dqkv);
}

int32_t context_attention_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta)
{
	if (kind(b)->deals_heads)
		return dealt_attention_grad(b, a, datt, delta);
	int32_t dqkv = build_act(b, b->tokens, linear_qkv(b).out);
	if (!kind(b)->passes_keys) {
		gathered_grad(b, a, datt, delta, dqkv);
		return dqkv;
	}
	int32_t visitor = pass_on(b, pack(b, a->qkv), "kv"), arrived = NONE;
	build_on(b, made_op(build_attention_op(b, OP_ATTENTION_GRAD)), a->qkv, a->att, a->lse, datt, delta, dqkv);
	for (int64_t place = 1; place < b->context; place++) {
		int32_t kv = visitor, part = build_act(b, b->tokens, kv_width(b));
		if (place + 1 < b->context)
			visitor = pass_on(b, kv, "kv");
		build_on(b, made_op(part_op(b, OP_ATTENTION_PART_GRAD, b->seq, place)), a->qkv, kv, a->att, a->lse,
			datt, delta, dqkv, part);
		if (arrived != NONE) /* this rank's part joins those that the visitor has brought */
			build_on(b, made_op(build_matrix(b, OP_ADD, "kv grad", b->tokens, kv_width(b))), part, arrived,
				NONE, part);
		arrived = pass_on(b, part, "kv grad");
	}
	unpack(b, arrived, dqkv, true);
	return dqkv;
}
