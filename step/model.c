/* The parameter table: which tensors a model has, in which order and shape. Everything else about parameters is read
 * off it. */
#include "step/model.h"

#include "base/array.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

/* The place of a parameter: before the blocks, in every block, only in dense or mixture-of-experts blocks, after the
 * blocks. */
enum place { BEFORE, BLOCK, BLOCK_DENSE, BLOCK_MOE, AFTER };

struct shape {
	int64_t rows, cols, copies;
	enum tp_split split;
};

static bool gated(const struct model *m) { return m->mlp == MLP_SWIGLU || m->mlp == MLP_GEGLU; }

static int64_t fc1_rows(const struct model *m, int64_t ffn) { return gated(m) ? 2 * ffn : ffn; }

static enum tp_split fc1_split(const struct model *m) { return gated(m) ? TP_HALVES : TP_ROWS; }

static int64_t qkv_rows(const struct model *m) { return (m->heads + 2 * m->kv_heads) * m->head_dim; }

/* ---- presence ---- */

static bool always(const struct model *m)
{
	(void)m;
	return true;
}

static bool has_positions(const struct model *m) { return m->position == POS_LEARNED; }

static bool has_types(const struct model *m) { return m->type_vocab > 0; }

static bool has_bias(const struct model *m) { return m->bias; }

static bool has_qkv_bias(const struct model *m) { return m->qkv_bias; }

/* RMSNorm has no bias (Zhang & Sennrich 2019), whatever the linear layers have. */
static bool has_norm_bias(const struct model *m) { return m->bias && m->norm == NORM_LAYERNORM; }

static bool has_embedding_norm(const struct model *m) { return m->embedding_norm; }

static bool has_embedding_norm_bias(const struct model *m) { return m->embedding_norm && has_norm_bias(m); }

static bool has_final_norm(const struct model *m) { return m->final_norm; }

static bool has_final_norm_bias(const struct model *m) { return m->final_norm && has_norm_bias(m); }

static bool has_own_head(const struct model *m) { return m->lm_head && !m->tied_embeddings; }

static bool has_shared(const struct model *m) { return m->shared_experts > 0; }

static bool has_pooler(const struct model *m) { return m->pooler; }

static bool has_pooler_bias(const struct model *m) { return m->pooler && m->bias; }

static bool norms_first(const struct model *m) { return !m->post_norm; }

static bool norms_first_bias(const struct model *m) { return norms_first(m) && has_norm_bias(m); }

static bool norms_last(const struct model *m) { return m->post_norm; }

static bool norms_last_bias(const struct model *m) { return norms_last(m) && has_norm_bias(m); }

/* ---- shapes; `v` is the vocabulary that is stored ---- */

static struct shape table_shape(const struct model *m, int64_t v) { return (struct shape){v, m->hidden, 1, TP_ROWS}; }

static struct shape positions_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->max_positions, m->hidden, 1, TP_REPLICATED};
}

static struct shape types_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->type_vocab, m->hidden, 1, TP_REPLICATED};
}

static struct shape vector_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, 1, 1, TP_REPLICATED};
}

static struct shape square_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, m->hidden, 1, TP_REPLICATED};
}

static struct shape qkv_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){qkv_rows(m), m->hidden, 1, TP_QKV};
}

static struct shape qkv_bias_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){qkv_rows(m), 1, 1, TP_QKV};
}

static struct shape proj_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, m->heads * m->head_dim, 1, TP_COLS};
}

static struct shape fc1_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){fc1_rows(m, m->ffn_hidden), m->hidden, 1, fc1_split(m)};
}

static struct shape fc1_bias_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){fc1_rows(m, m->ffn_hidden), 1, 1, fc1_split(m)};
}

static struct shape fc2_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, m->ffn_hidden, 1, TP_COLS};
}

static struct shape router_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->experts, m->hidden, 1, TP_REPLICATED};
}

static struct shape expert_fc1_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){fc1_rows(m, m->moe_ffn_hidden), m->hidden, m->experts, CUT_EXPERTS};
}

static struct shape expert_fc2_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, m->moe_ffn_hidden, m->experts, CUT_EXPERTS};
}

static struct shape shared_fc1_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){fc1_rows(m, m->shared_experts * m->moe_ffn_hidden), m->hidden, 1, fc1_split(m)};
}

static struct shape shared_fc2_shape(const struct model *m, int64_t v)
{
	(void)v;
	return (struct shape){m->hidden, m->shared_experts * m->moe_ffn_hidden, 1, TP_COLS};
}

/* In the order of model.parameters() of GPT-2, and of BERT where norms follow. Norms therefore have two rows each, of
 * which a model has one. */
static const struct row {
	enum param_kind kind;
	enum place place;
	bool (*present)(const struct model *m);
	struct shape (*shape)(const struct model *m, int64_t v);
} rows[] = {
	{PARAM_TOKEN_EMBEDDING, BEFORE, always, table_shape},
	{PARAM_POSITION_EMBEDDING, BEFORE, has_positions, positions_shape},
	{PARAM_TYPE_EMBEDDING, BEFORE, has_types, types_shape},
	{PARAM_EMBEDDING_NORM_W, BEFORE, has_embedding_norm, vector_shape},
	{PARAM_EMBEDDING_NORM_B, BEFORE, has_embedding_norm_bias, vector_shape},
	{PARAM_NORM1_W, BLOCK, norms_first, vector_shape},
	{PARAM_NORM1_B, BLOCK, norms_first_bias, vector_shape},
	{PARAM_QKV_W, BLOCK, always, qkv_shape},
	{PARAM_QKV_B, BLOCK, has_qkv_bias, qkv_bias_shape},
	{PARAM_PROJ_W, BLOCK, always, proj_shape},
	{PARAM_PROJ_B, BLOCK, has_bias, vector_shape},
	{PARAM_NORM1_W, BLOCK, norms_last, vector_shape},
	{PARAM_NORM1_B, BLOCK, norms_last_bias, vector_shape},
	{PARAM_NORM2_W, BLOCK, norms_first, vector_shape},
	{PARAM_NORM2_B, BLOCK, norms_first_bias, vector_shape},
	{PARAM_FC1_W, BLOCK_DENSE, always, fc1_shape},
	{PARAM_FC1_B, BLOCK_DENSE, has_bias, fc1_bias_shape},
	{PARAM_FC2_W, BLOCK_DENSE, always, fc2_shape},
	{PARAM_FC2_B, BLOCK_DENSE, has_bias, vector_shape},
	{PARAM_ROUTER_W, BLOCK_MOE, always, router_shape},
	{PARAM_EXPERT_FC1_W, BLOCK_MOE, always, expert_fc1_shape},
	{PARAM_EXPERT_FC2_W, BLOCK_MOE, always, expert_fc2_shape},
	{PARAM_SHARED_FC1_W, BLOCK_MOE, has_shared, shared_fc1_shape},
	{PARAM_SHARED_FC2_W, BLOCK_MOE, has_shared, shared_fc2_shape},
	{PARAM_NORM2_W, BLOCK, norms_last, vector_shape},
	{PARAM_NORM2_B, BLOCK, norms_last_bias, vector_shape},
	{PARAM_FINAL_NORM_W, AFTER, has_final_norm, vector_shape},
	{PARAM_FINAL_NORM_B, AFTER, has_final_norm_bias, vector_shape},
	{PARAM_POOLER_W, AFTER, has_pooler, square_shape},
	{PARAM_POOLER_B, AFTER, has_pooler_bias, vector_shape},
	{PARAM_HEAD_W, AFTER, has_own_head, table_shape},
};
#define ROWS COUNT(rows)
static_assert(ROWS == PARAM_KIND_COUNT + 4, "one row for each kind, two for the four of a block's norms");

/* The part of the list that repeats: blocks in periods of moe_layer_freq, the first of a period with experts
 * (Megatron-LM's --moe-layer-freq). */
static bool row_in(const struct row *r, const struct model *m, enum place part, bool moe)
{
	bool here = part == BLOCK ? r->place == BLOCK || r->place == (moe ? BLOCK_MOE : BLOCK_DENSE) : r->place == part;
	return here && r->present(m);
}

static int64_t rows_in(const struct model *m, enum place part, bool moe)
{
	int64_t n = 0;
	for (size_t i = 0; i < ROWS; i++)
		n += row_in(&rows[i], m, part, moe);
	return n;
}

static int64_t moe_period(const struct model *m)
{
	return m->experts > 0 && m->moe_layer_freq > 1 ? m->moe_layer_freq : 1;
}

bool model_has_experts(const struct model *m, int64_t layer) { return m->experts > 0 && layer % moe_period(m) == 0; }

int64_t model_expert_capacity(const struct model *m, int64_t tokens)
{
	double share = (double)tokens * (double)m->experts_per_token / (double)m->experts,
	       factor = m->capacity_factor > 0 ? m->capacity_factor : 1;
	double places = ceil(factor * share * (1 - 1e-12)); /* 1.1 x 10 is 11 */
	return places < (double)tokens ? (int64_t)places : tokens;
}

static int64_t moe_layers(const struct model *m)
{
	return m->experts > 0 ? (m->layers + moe_period(m) - 1) / moe_period(m) : 0;
}

int64_t model_param_count(const struct model *m)
{
	int64_t moe = moe_layers(m);
	return rows_in(m, BEFORE, false) + moe * rows_in(m, BLOCK, true) +
	       (m->layers - moe) * rows_in(m, BLOCK, false) + rows_in(m, AFTER, false);
}

static struct param nth(const struct model *m, enum place part, bool moe, int64_t i, int64_t layer, int64_t vocab)
{
	const struct row *r = rows;
	for (;; r++) {
		if (!row_in(r, m, part, moe))
			continue;
		if (i-- == 0)
			break;
	}
	struct shape s = r->shape(m, vocab);
	return (struct param){.kind = r->kind,
		.layer = layer,
		.rows = s.rows,
		.cols = s.cols,
		.copies = s.copies,
		.split = s.split};
}

static struct param param_at(const struct model *m, int64_t i, int64_t vocab)
{
	int64_t before = rows_in(m, BEFORE, false);
	if (i < before)
		return nth(m, BEFORE, false, i, -1, vocab);
	i -= before;
	bool has_moe = m->experts > 0;
	int64_t first = rows_in(m, BLOCK, has_moe),
		other = rows_in(m, BLOCK, false); /* of a period's first block, of its others */
	int64_t period = moe_period(m), per_period = first + (period - 1) * other;
	int64_t layer = i / per_period * period, rest = i % per_period;
	bool is_first = rest < first;
	if (!is_first) {
		layer += 1 + (rest - first) / other;
		rest = (rest - first) % other;
	}
	if (layer < m->layers)
		return nth(m, BLOCK, is_first && has_moe, rest, layer, vocab);
	int64_t moe = moe_layers(m);
	return nth(m, AFTER, false, i - moe * first - (m->layers - moe) * other, -1, vocab);
}

struct param model_param(const struct model *m, int64_t i, int64_t tensor)
{
	return param_at(m, i, model_padded_vocab(m, tensor));
}

const char *param_kind_name(enum param_kind k)
{
	static const char *const names[] = {
		[PARAM_TOKEN_EMBEDDING] = "token_embedding",
		[PARAM_POSITION_EMBEDDING] = "position_embedding",
		[PARAM_TYPE_EMBEDDING] = "type_embedding",
		[PARAM_EMBEDDING_NORM_W] = "embedding_norm.weight",
		[PARAM_EMBEDDING_NORM_B] = "embedding_norm.bias",
		[PARAM_NORM1_W] = "norm1.weight",
		[PARAM_NORM1_B] = "norm1.bias",
		[PARAM_QKV_W] = "qkv.weight",
		[PARAM_QKV_B] = "qkv.bias",
		[PARAM_PROJ_W] = "proj.weight",
		[PARAM_PROJ_B] = "proj.bias",
		[PARAM_NORM2_W] = "norm2.weight",
		[PARAM_NORM2_B] = "norm2.bias",
		[PARAM_FC1_W] = "fc1.weight",
		[PARAM_FC1_B] = "fc1.bias",
		[PARAM_FC2_W] = "fc2.weight",
		[PARAM_FC2_B] = "fc2.bias",
		[PARAM_ROUTER_W] = "router.weight",
		[PARAM_EXPERT_FC1_W] = "expert.fc1.weight",
		[PARAM_EXPERT_FC2_W] = "expert.fc2.weight",
		[PARAM_SHARED_FC1_W] = "shared.fc1.weight",
		[PARAM_SHARED_FC2_W] = "shared.fc2.weight",
		[PARAM_FINAL_NORM_W] = "final_norm.weight",
		[PARAM_FINAL_NORM_B] = "final_norm.bias",
		[PARAM_HEAD_W] = "head.weight",
		[PARAM_POOLER_W] = "pooler.weight",
		[PARAM_POOLER_B] = "pooler.bias",
	};
	static_assert(COUNT(names) == PARAM_KIND_COUNT, "one name for each kind");
	return names[k];
}

/* ---- counts ---- */

int64_t model_padded_vocab(const struct model *m, int64_t tensor)
{
	if (m->vocab_padding <= 1)
		return m->vocab;
	int64_t multiple = m->vocab_padding * tensor;
	return (m->vocab + multiple - 1) / multiple * multiple;
}

uint64_t param_elements(const struct param *p) { return (uint64_t)p->rows * (uint64_t)p->cols * (uint64_t)p->copies; }

uint64_t param_local_elements(const struct param *p, int64_t ranks)
{
	return p->split == TP_REPLICATED ? param_elements(p) : param_elements(p) / (uint64_t)ranks;
}

/* One block of each sort stands for all of its sort, so that a count costs the same for any depth. */
static uint64_t count(const struct model *m, bool active_only)
{
	uint64_t total = 0, moe = (uint64_t)moe_layers(m);
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		if (!r->present(m))
			continue;
		struct shape s = r->shape(m, m->vocab);
		uint64_t copies = (uint64_t)s.copies, layers = 1;
		if (r->place == BLOCK)
			layers = (uint64_t)m->layers;
		else if (r->place == BLOCK_DENSE)
			layers = (uint64_t)m->layers - moe;
		else if (r->place == BLOCK_MOE)
			layers = moe;
		if (active_only && s.split == CUT_EXPERTS)
			copies = (uint64_t)m->experts_per_token;
		total += (uint64_t)s.rows * (uint64_t)s.cols * copies * layers;
	}
	return total;
}

uint64_t model_parameters(const struct model *m) { return count(m, false); }

uint64_t model_active_parameters(const struct model *m) { return count(m, true); }

int64_t model_window(const struct model *m) { return m->sliding_window < m->seq_len ? m->sliding_window : 0; }

double model_flop_per_token(const struct model *m)
{
	int64_t keys = model_window(m) > 0 ? model_window(m) : m->seq_len;
	return 6.0 * (double)model_active_parameters(m) +
	       12.0 * (double)m->layers * (double)(m->heads * m->head_dim) * (double)keys;
}
