/* Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, arXiv:2405.04434, section 2.1): queries, and keys with
 * values, come from low-rank latents of the hidden state. In training keys and values are made whole, as Megatron-Core
 * does (megatron/core/transformer/multi_latent_attention.py):
 *
 *   latent = norm(down x), of queries (where they have one) and of keys and values    each rank's own rows
 *   all-gathers of the latents and of the keys' shared columns, with sequence parallelism
 *   Q, and K with V, = up latent                                                      heads cut by tensor parallelism
 *
 * The down products are replicated over the tensor group, the up products are cut by heads. rope_head_dim columns of
 * the keys leave the down product behind the latent, rotate, and are copied to each head. What is kept for the backward
 * pass: latents before and after their norms, and Q, K and V (step/ops.def, ATTENTION: how they lie).
 */
#include "step/builder/blocks.h"

/* One of the two ways from the hidden state to heads. */
struct path {
	struct linear down, up;
	enum param_kind norm;
	int64_t width; /* of what the down product leaves: the latent, and the keys' columns that rotate */
};

static int64_t value_cols(const struct builder *b)
{
	return b->heads * (b->m->head_dim - b->m->rope_head_dim + b->m->v_head_dim);
}

static struct linear q_up(const struct builder *b)
{
	const int64_t in = b->m->q_lora_rank > 0 ? b->m->q_lora_rank : b->m->hidden;
	return (struct linear){"q up", b->tokens, b->heads * b->m->head_dim, in, PARAM_Q_UP_W, NO_PARAM, 0};
}

static struct path q_path(const struct builder *b)
{
	const int64_t rank = b->m->q_lora_rank;
	return (struct path){{"q down", b->rows, rank, b->m->hidden, PARAM_Q_DOWN_W, NO_PARAM, 0}, q_up(b),
		PARAM_Q_LATENT_NORM_W, rank};
}

static struct path kv_path(const struct builder *b)
{
	const int64_t rank = b->m->kv_lora_rank, width = rank + b->m->rope_head_dim;
	return (struct path){{"kv down", b->rows, width, b->m->hidden, PARAM_KV_DOWN_W, NO_PARAM, 0},
		{"kv up", b->tokens, value_cols(b), rank, PARAM_KV_UP_W, NO_PARAM, 0}, PARAM_KV_LATENT_NORM_W, width};
}

static int32_t to_latent(struct builder *b, const struct path *p, int32_t x, int32_t *latent, int32_t *normed,
	int32_t *stats)
{
	*latent = build_linear(b, &p->down, x);
	*normed = build_latent_norm(b, "latent norm", *latent, p->up.in, p->width, p->norm, stats);
	return tp_gather_cols(b, *normed, p->up.in, "latent");
}

/* Rotates the last columns of queries; without rope they stay as they are (Kimi Linear). */
static void rotate(struct builder *b, int32_t qkv, uint32_t flags)
{
	struct op op = build_attention_op(b, OP_ROPE);
	op.flags |= flags;
	op.attn.kv_heads = 0;
	op.attn.rotated = b->m->rope_head_dim;
	if (b->m->rope_head_dim > 0 && b->m->position == POS_ROPE)
		build_on(b, &op, qkv);
}

/* The K and V columns of qkv: behind all of Q. */
static struct view keys_of(const struct builder *b, int32_t qkv)
{
	return view_at(qkv, (uint64_t)((double)(b->tokens * q_up(b).out) * dtype_bytes(b->act)));
}

/* width: columns of the rows in which the shared ones stand last. */
static struct op keys_op(const struct builder *b, enum op_kind k, int64_t width)
{
	struct op op = build_new(b, k, "keys and values");
	op.latent = (struct op_latent){b->c->train.micro_batch, b->heads, b->seq, b->m->head_dim, b->m->rope_head_dim,
		b->m->v_head_dim, width, b->m->position != POS_ROPE};
	return op;
}

/* The keys' shared columns in this rank's rows of the latent, packed and back. */
static struct op shared_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "shared keys");
	op.pack.rows = b->rows;
	op.pack.kv_cols = b->m->rope_head_dim;
	op.pack.qkv_cols = kv_path(b).width;
	return op;
}

/* Appends K with V, given their latent before its norm and what the up product makes of it. */
static void make_keys(struct builder *b, int32_t latent, int32_t values, int32_t qkv)
{
	const int64_t shared = b->m->rope_head_dim;
	int64_t width = kv_path(b).width;
	int32_t rows = shared > 0 ? latent : NONE;
	if (shared > 0 && b->sequence_parallel) {
		int32_t packed = build_act(b, b->rows, shared);
		build_on(b, made_op(shared_op(b, OP_KV_PACK)), latent, packed);
		rows = tp_gather_cols(b, packed, shared, "shared keys");
		width = shared;
	}
	build_with(b, made_op(keys_op(b, OP_LATENT_KEYS, width)), view_of(values), view_of(rows), keys_of(b, qkv));
}

/* Returns Q, K and V of what the paths' up products read, given the keys' latent before its norm. */
static int32_t up(struct builder *b, int32_t q_in, int32_t kv_in, int32_t latent)
{
	const struct path q = q_path(b), kv = kv_path(b);
	int32_t qkv = build_act(b, b->tokens, linear_qkv(b).out);
	build_linear_at(b, &q.up, q_in, view_of(qkv));
	int32_t values = build_linear(b, &kv.up, kv_in);
	make_keys(b, latent, values, qkv);
	rotate(b, qkv, 0);
	return qkv;
}

int32_t latent_forward(struct builder *b, struct acts *a, int32_t normed)
{
	struct latent_acts *l = &a->latent;
	const struct path q = q_path(b), kv = kv_path(b);
	int32_t q_in = b->m->q_lora_rank > 0 ? to_latent(b, &q, normed, &l->q, &l->q_normed, &l->q_stats)
	                                     : tp_gather(b, normed, "attention input");
	int32_t kv_in = to_latent(b, &kv, normed, &l->kv, &l->kv_normed, &l->kv_stats);
	return up(b, q_in, kv_in, l->kv);
}

int32_t latent_up(struct builder *b, const struct acts *a)
{
	const struct latent_acts *l = &a->latent;
	int32_t q_in = b->m->q_lora_rank > 0 ? tp_gather_cols(b, l->q_normed, b->m->q_lora_rank, "latent")
	                                     : tp_gather(b, a->n1, "attention input");
	return up(b, q_in, tp_gather_cols(b, l->kv_normed, b->m->kv_lora_rank, "latent"), l->kv);
}

/* Returns the gradient of the rows that a path reads, given that of its heads, and, on the keys' path, that of their
 * shared columns from this rank's heads. */
static int32_t path_backward(struct builder *b, const struct path *p, int32_t dy, int32_t shared, int32_t x,
	int32_t latent, int32_t normed, int32_t stats)
{
	int32_t full_x = tp_gather_cols(b, normed, p->up.in, "latent"), full = build_linear_grad(b, &p->up, dy);
	int32_t dlatent = tp_reduce_cols(b, full, p->up.in, "latent grad");
	build_weight_grad(b, &p->up, dy, full_x);
	int32_t ddown = build_latent_norm_grad(b, "latent norm", dlatent, latent, p->up.in, p->width, stats, p->norm);
	if (shared != NONE)
		build_on(b, made_op(shared_op(b, OP_KV_UNPACK)),
			tp_reduce_cols(b, shared, b->m->rope_head_dim, "shared keys grad"), ddown);
	int32_t dx = build_linear_grad(b, &p->down, ddown);
	build_weight_grad(b, &p->down, ddown, x);
	return dx;
}

int32_t latent_backward(struct builder *b, struct acts *a, int32_t dqkv)
{
	const struct latent_acts *l = &a->latent;
	const struct path q = q_path(b), kv = kv_path(b);
	int32_t dvalues = build_act(b, b->tokens, value_cols(b));
	int32_t dshared = b->m->rope_head_dim > 0 ? build_act(b, b->tokens, b->m->rope_head_dim) : NONE;
	build_with(b, made_op(keys_op(b, OP_LATENT_KEYS_GRAD, b->m->rope_head_dim)), keys_of(b, dqkv), view_of(dvalues),
		view_of(dshared));
	rotate(b, dqkv, OP_INVERSE);
	int32_t dx = path_backward(b, &kv, dvalues, dshared, a->n1, l->kv, l->kv_normed, l->kv_stats), dq;
	if (b->m->q_lora_rank > 0)
		dq = path_backward(b, &q, dqkv, NONE, a->n1, l->q, l->q_normed, l->q_stats);
	else
		dq = columns_backward(b, &q.up, dqkv, a->n1, "attention input", "attention input grad");
	build_on(b, made_op(build_matrix(b, OP_ADD, "latent grad", b->rows, b->m->hidden)), dx, dq, NONE, dx);
	return dx;
}
