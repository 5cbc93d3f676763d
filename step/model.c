/* The parameter table: which tensors a model has, in which order and shape. Everything else about parameters is read
 * off it. */
#include "step/model_conv.h"

#include "base/array.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The places of a parameter: kinds of layers, before the blocks, behind an encoder's, or after them. */
#define IN(kind) (1u << LAYER_##kind)
enum place {
	BLOCK_DENSE = IN(DENSE) | IN(MLP) | IN(CROSS),
	BLOCK_MOE = IN(MOE) | IN(EXPERTS),
	ATTENDS = IN(DENSE) | IN(MOE) | IN(ATTENTION) | IN(CROSS) | IN(PARALLEL),
	TWO_BRANCHES = IN(DENSE) | IN(MOE) | IN(CROSS),
	CROSSES = IN(CROSS),
	MAMBAS = IN(MAMBA) | IN(PARALLEL),
	DELTAS = IN(DELTA),
	SCANS = MAMBAS | DELTAS, /* a model has layers of one of both */
	SHORT_CONVS = IN(SHORT_CONV),
	BLOCK = IN(KIND_COUNT) - 1,
	BEFORE = IN(KIND_COUNT),
	AFTER = BEFORE << 1,
	BETWEEN = BEFORE << 2,
	FURTHER = BEFORE << 3, /* blocks of mtp_layers */
};

static bool gated(const struct model *m) { return m->mlp == MLP_SWIGLU || m->mlp == MLP_GEGLU; }

struct row {
	enum param_kind kind;
	enum place place;
	bool present;
	int64_t rows, cols, copies;
	enum tp_split split;
};

/* Norms have two rows each, of which a model has one. */
#define CONV_KINDS (PARAM_SHORTCUT_NORM_B - PARAM_STEM_W + 1) /* step/model_conv.c has these */
#define ROWS (PARAM_KIND_COUNT + 4 - CONV_KINDS)

/* Fills all rows in the order of model.parameters() of GPT-2, and of BERT where norms follow. `vocab` and `kv_heads`
 * are the vocabulary and the heads of keys that are stored. RMSNorm has no bias (Zhang & Sennrich 2019), whatever the
 * linear layers have. */
static void fill_rows(const struct model *m, int64_t vocab, int64_t kv_heads, struct row out[ROWS])
{
	const bool bias = m->bias, norm_bias = bias && m->norm == NORM_LAYERNORM, last = m->post_norm;
	const bool first = !last && !m->adaptive_norm && m->branch_norm != BRANCH_NORM_REORDERED;
	const bool branch = m->branch_norm != BRANCH_NORM_NONE, heads = m->qk_norm != QK_NORM_NONE;
	const bool latent = m->kv_lora_rank > 0, latent_q = latent && m->q_lora_rank > 0;
	const int64_t h = m->hidden, q = m->heads * m->head_dim, kv = kv_heads * m->head_dim, qkv = q + 2 * kv;
	const int64_t up_kv = m->heads * (m->head_dim - m->rope_head_dim + m->v_head_dim);
	const int64_t attn = m->heads * model_value_dim(m), full = m->qk_norm == QK_NORM_FULL;
	const int64_t ffn = m->ffn_hidden, moe = m->moe_ffn_hidden, shared = m->shared_experts * moe,
		      narrow = m->moe_latent;
	const int64_t scan = m->ssm_heads * m->ssm_head_dim, conv = scan + 2 * m->ssm_groups * m->ssm_state;
	const bool delta = strchr(m->layer_pattern, 'G') != NULL;
	const int64_t r = m->lora_rank;
	const enum lora_targets targets = m->lora_targets;
	const int64_t halves = gated(m) ? 2 : 1;
	const enum tp_split whole = TP_REPLICATED, fc1 = gated(m) ? TP_HALVES : TP_ROWS;
	const bool encoder = m->encoder_layers > 0, relative = m->position == POS_RELATIVE;
	const bool learned = model_has_positions(m), between = norm_bias && m->final_norm;
	const bool frames = m->input == INPUT_FRAMES;
	const bool patches = m->input == INPUT_PATCHES, transform = m->lm_head && m->head_transform;
	const int64_t patch = m->patch_size * m->patch_size, pixels = patch * m->channels;
	const bool adapts = m->adaptive_norm, final_norm = m->final_norm && !adapts;
	const int64_t predicted = patch * m->output_channels;
	const struct row rows[] = {
		{PARAM_TOKEN_EMBEDDING, BEFORE, !patches, vocab, h, 1, TP_ROWS},
		{PARAM_CLASS_TOKEN, BEFORE, m->class_token, h, 1, 1, whole},
		{PARAM_PATCH_W, BEFORE, patches, h, pixels, 1, whole},
		{PARAM_PATCH_B, BEFORE, patches && bias, h, 1, 1, whole},
		{PARAM_FRAMES1_W, BEFORE, frames, h, 3 * m->channels, 1, whole},
		{PARAM_FRAMES1_B, BEFORE, frames && bias, h, 1, 1, whole},
		{PARAM_FRAMES2_W, BEFORE, frames, h, 3 * h, 1, whole},
		{PARAM_FRAMES2_B, BEFORE, frames && bias, h, 1, 1, whole},
		{PARAM_TIME_FC1_W, BEFORE, adapts, h, m->timestep_features, 1, whole},
		{PARAM_TIME_FC1_B, BEFORE, adapts && bias, h, 1, 1, whole},
		{PARAM_TIME_FC2_W, BEFORE, adapts, h, h, 1, whole},
		{PARAM_TIME_FC2_B, BEFORE, adapts && bias, h, 1, 1, whole},
		{PARAM_CONDITION_TABLE, BEFORE, m->condition_classes > 0, m->condition_classes, h, 1, whole},
		{PARAM_ENCODER_POSITION, BEFORE, encoder && learned, m->encoder_seq_len, h, 1, whole},
		{PARAM_ENCODER_RELATIVE_BIAS, BEFORE, encoder && relative, m->relative_buckets, m->heads, 1, TP_COLS},
		{PARAM_ENCODER_NORM_W, BETWEEN, m->final_norm, h, 1, 1, whole},
		{PARAM_ENCODER_NORM_B, BETWEEN, between, h, 1, 1, whole},
		{PARAM_POSITION_EMBEDDING, encoder ? BETWEEN : BEFORE, learned, m->max_positions, h, 1, whole},
		{PARAM_RELATIVE_BIAS, encoder ? BETWEEN : BEFORE, relative, m->relative_buckets, m->heads, 1, TP_COLS},
		{PARAM_TYPE_EMBEDDING, BEFORE, m->type_vocab > 0, m->type_vocab, h, 1, whole},
		{PARAM_EMBEDDING_NORM_W, BEFORE, m->embedding_norm, h, 1, 1, whole},
		{PARAM_EMBEDDING_NORM_B, BEFORE, m->embedding_norm && norm_bias, h, 1, 1, whole},
		{PARAM_NORM1_W, BLOCK, first, h, 1, 1, whole},
		{PARAM_NORM1_B, BLOCK, first && norm_bias, h, 1, 1, whole},
		{PARAM_QKV_W, ATTENDS, !latent, qkv, h, 1, TP_QKV},
		{PARAM_QKV_B, ATTENDS, !latent && m->qkv_bias, qkv, 1, 1, TP_QKV},
		{PARAM_Q_DOWN_W, ATTENDS, latent_q, m->q_lora_rank, h, 1, whole},
		{PARAM_Q_LATENT_NORM_W, ATTENDS, latent_q, m->q_lora_rank, 1, 1, whole},
		{PARAM_Q_UP_W, ATTENDS, latent, q, latent_q ? m->q_lora_rank : h, 1, TP_ROWS},
		{PARAM_KV_DOWN_W, ATTENDS, latent, m->kv_lora_rank + m->rope_head_dim, h, 1, whole},
		{PARAM_KV_LATENT_NORM_W, ATTENDS, latent, m->kv_lora_rank, 1, 1, whole},
		{PARAM_KV_UP_W, ATTENDS, latent, up_kv, m->kv_lora_rank, 1, TP_ROWS},
		{PARAM_ATTENTION_GATE_W, ATTENDS, m->attention_gate, attn, h, 1, TP_ROWS},
		{PARAM_PROJ_W, ATTENDS, true, h, attn, 1, TP_COLS},
		{PARAM_PROJ_B, ATTENDS, m->proj_bias, h, 1, 1, whole},
		{PARAM_SINKS, ATTENDS, m->attention_sinks, m->heads, 1, 1, TP_ROWS},
		{PARAM_Q_NORM_W, ATTENDS, heads, full ? q : m->head_dim, 1, 1, TP_PARTIAL},
		{PARAM_K_NORM_W, ATTENDS, heads, full ? m->kv_heads * m->head_dim : m->head_dim, 1, 1, TP_PARTIAL},
		{PARAM_SSM_IN_W, SCANS, true, scan + conv + (delta ? 2 : 1) * m->ssm_heads, h, 1, TP_ROWS},
		{PARAM_SSM_CONV_W, SCANS, true, conv, m->ssm_conv, 1, TP_ROWS},
		{PARAM_SSM_CONV_B, MAMBAS, true, conv, 1, 1, TP_ROWS},
		{PARAM_SSM_HEADS, MAMBAS, true, m->ssm_heads, 3, 1, TP_ROWS},
		{PARAM_DELTA_HEADS, DELTAS, true, m->ssm_heads, 2, 1, TP_ROWS},
		{PARAM_SSM_NORM_W, SCANS, true, delta ? m->ssm_head_dim : scan, 1, 1, delta ? TP_PARTIAL : TP_ROWS},
		{PARAM_SSM_OUT_W, SCANS, true, h, scan, 1, TP_COLS},
		{PARAM_SHORT_IN_W, SHORT_CONVS, true, 3 * h, h, 1, TP_ROWS},
		{PARAM_SHORT_CONV_W, SHORT_CONVS, true, h, m->ssm_conv, 1, TP_ROWS},
		{PARAM_SHORT_OUT_W, SHORT_CONVS, true, h, h, 1, TP_COLS},
		{PARAM_NORM1_W, BLOCK, last, h, 1, 1, whole},
		{PARAM_NORM1_B, BLOCK, last && norm_bias, h, 1, 1, whole},
		{PARAM_ATTENTION_NORM_W, ATTENDS, branch, h, 1, 1, whole},
		{PARAM_ATTENTION_NORM_B, ATTENDS, branch && norm_bias, h, 1, 1, whole},
		{PARAM_CROSS_NORM_W, CROSSES, true, h, 1, 1, whole},
		{PARAM_CROSS_NORM_B, CROSSES, norm_bias, h, 1, 1, whole},
		{PARAM_CROSS_Q_W, CROSSES, true, q, h, 1, TP_ROWS},
		{PARAM_CROSS_Q_B, CROSSES, m->qkv_bias, q, 1, 1, TP_ROWS},
		{PARAM_CROSS_KV_W, CROSSES, true, 2 * kv, h, 1, TP_HALVES},
		{PARAM_CROSS_KV_B, CROSSES, m->qkv_bias, 2 * kv, 1, 1, TP_HALVES},
		{PARAM_CROSS_PROJ_W, CROSSES, true, h, attn, 1, TP_COLS},
		{PARAM_CROSS_PROJ_B, CROSSES, m->proj_bias, h, 1, 1, whole},
		{PARAM_NORM2_W, TWO_BRANCHES, first, h, 1, 1, whole},
		{PARAM_NORM2_B, TWO_BRANCHES, first && norm_bias, h, 1, 1, whole},
		{PARAM_FC1_W, BLOCK_DENSE, true, halves * ffn, h, 1, fc1},
		{PARAM_FC1_B, BLOCK_DENSE, bias, halves * ffn, 1, 1, fc1},
		{PARAM_FC2_W, BLOCK_DENSE, true, h, ffn, 1, TP_COLS},
		{PARAM_FC2_B, BLOCK_DENSE, bias, h, 1, 1, whole},
		{PARAM_ADAPT_W, BLOCK_DENSE, adapts, 6 * h, h, 1, whole},
		{PARAM_ADAPT_B, BLOCK_DENSE, adapts && bias, 6 * h, 1, 1, whole},
		{PARAM_ROUTER_W, BLOCK_MOE, true, m->experts, h, 1, whole},
		{PARAM_MOE_DOWN_W, BLOCK_MOE, narrow > 0, narrow, h, 1, whole},
		{PARAM_MOE_UP_W, BLOCK_MOE, narrow > 0, h, narrow, 1, whole},
		{PARAM_EXPERT_FC1_W, BLOCK_MOE, true, halves * moe, narrow > 0 ? narrow : h, m->experts, fc1},
		{PARAM_EXPERT_FC2_W, BLOCK_MOE, true, narrow > 0 ? narrow : h, moe, m->experts, TP_COLS},
		{PARAM_SHARED_GATE_W, BLOCK_MOE, m->shared_expert_gate, 1, h, 1, whole},
		{PARAM_SHARED_FC1_W, BLOCK_MOE, shared > 0, halves * shared, h, 1, fc1},
		{PARAM_SHARED_FC2_W, BLOCK_MOE, shared > 0, h, shared, 1, TP_COLS},
		{PARAM_LORA_QKV_A, ATTENDS, r > 0, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_QKV_B, ATTENDS, r > 0, qkv, r, 1, TP_QKV},
		{PARAM_LORA_PROJ_A, ATTENDS, r > 0 && targets <= LORA_ATTENTION, r, attn, 1, TP_COLS},
		{PARAM_LORA_PROJ_B, ATTENDS, r > 0 && targets <= LORA_ATTENTION, h, r, 1, TP_PARTIAL},
		{PARAM_LORA_FC1_A, BLOCK_DENSE, r > 0 && targets == LORA_ALL, r, h, 1, TP_PARTIAL},
		{PARAM_LORA_FC1_B, BLOCK_DENSE, r > 0 && targets == LORA_ALL, halves * ffn, r, 1, fc1},
		{PARAM_LORA_FC2_A, BLOCK_DENSE, r > 0 && targets == LORA_ALL, r, ffn, 1, TP_COLS},
		{PARAM_LORA_FC2_B, BLOCK_DENSE, r > 0 && targets == LORA_ALL, h, r, 1, TP_PARTIAL},
		{PARAM_NORM2_W, TWO_BRANCHES, last, h, 1, 1, whole},
		{PARAM_NORM2_B, TWO_BRANCHES, last && norm_bias, h, 1, 1, whole},
		{PARAM_MLP_NORM_W, BLOCK, branch, h, 1, 1, whole},
		{PARAM_MLP_NORM_B, BLOCK, branch && norm_bias, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_MTP_TOKEN_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_TOKEN_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_MTP_HIDDEN_W, FURTHER, true, h, h, 1, whole},
		{PARAM_MTP_TOKEN_W, FURTHER, true, h, h, 1, whole},
		{PARAM_MTP_FINAL_NORM_W, FURTHER, true, h, 1, 1, whole},
		{PARAM_MTP_FINAL_NORM_B, FURTHER, norm_bias, h, 1, 1, whole},
		{PARAM_FINAL_NORM_W, AFTER, final_norm, h, 1, 1, whole},
		{PARAM_FINAL_NORM_B, AFTER, final_norm && norm_bias, h, 1, 1, whole},
		{PARAM_FINAL_ADAPT_W, AFTER, adapts, 2 * h, h, 1, whole},
		{PARAM_FINAL_ADAPT_B, AFTER, adapts && bias, 2 * h, 1, 1, whole},
		{PARAM_POOLER_W, AFTER, m->pooler, h, h, 1, whole},
		{PARAM_POOLER_B, AFTER, m->pooler && bias, h, 1, 1, whole},
		{PARAM_HEAD_DENSE_W, AFTER, transform, h, h, 1, whole},
		{PARAM_HEAD_DENSE_B, AFTER, transform && bias, h, 1, 1, whole},
		{PARAM_HEAD_NORM_W, AFTER, transform, h, 1, 1, whole},
		{PARAM_HEAD_NORM_B, AFTER, transform && norm_bias, h, 1, 1, whole},
		{PARAM_HEAD_W, AFTER, m->lm_head && !m->tied_embeddings, vocab, h, 1, TP_ROWS},
		{PARAM_HEAD_B, AFTER, m->lm_head && m->head_bias, vocab, 1, 1, TP_ROWS},
		{PARAM_CLASS_W, AFTER, m->classes > 0, m->classes, h, 1, whole},
		{PARAM_CLASS_B, AFTER, m->classes > 0 && bias, m->classes, 1, 1, whole},
		{PARAM_OUTPUT_W, AFTER, predicted > 0, predicted, h, 1, whole},
		{PARAM_OUTPUT_B, AFTER, predicted > 0 && bias, predicted, 1, 1, whole},
	};
	static_assert(COUNT(rows) == ROWS, "one row for each kind, two for the four of a block's norms");
	memcpy(out, rows, sizeof rows);
}

static bool row_in(const struct row *r, enum place part) { return r->present && (r->place & part); }

static int64_t rows_in(const struct row rows[ROWS], enum place part)
{
	int64_t n = 0;
	for (size_t i = 0; i < ROWS; i++)
		n += row_in(&rows[i], part);
	return n;
}

bool model_attends(const struct model *m, int64_t layer) { return ATTENDS & 1u << model_layer_kind(m, layer); }

/* Calls model_conv_params for each layer: of all, the sum of their numbers, or of their elements. */
static int64_t conv_count(const struct model *m, bool elements)
{
	struct param layer[3 * CONV_LAYERS];
	int64_t sum = 0;
	for (int64_t i = -1; i <= m->layers; i++) {
		const int n = model_conv_params(m, i, layer);
		for (int k = 0; k < n; k++)
			sum += elements ? (int64_t)param_elements(&layer[k]) : 1;
	}
	return sum;
}

int64_t model_param_count(const struct model *m)
{
	if (model_is_conv(m))
		return conv_count(m, false);
	const struct layer_counts layers = model_layer_counts(m);
	struct row rows[ROWS];
	fill_rows(m, m->vocab, m->kv_heads, rows);
	int64_t n = rows_in(rows, BEFORE) + rows_in(rows, AFTER) +
	            (m->encoder_layers > 0 ? rows_in(rows, BETWEEN) : 0) + m->mtp_layers * rows_in(rows, FURTHER);
	for (int k = 0; k < LAYER_KIND_COUNT; k++)
		n += layers.of[k] * rows_in(rows, 1u << k);
	return n;
}

/* The parts of a block's parameters. */
static enum place block_places(const struct model *m, int64_t layer)
{
	return 1u << model_layer_kind(m, layer) | (layer >= m->layers ? FURTHER : 0);
}

static struct param param_of(const struct row *r, int64_t layer)
{
	return (struct param){r->kind, layer, r->rows, r->cols, r->copies, r->split};
}

/* Appends the parameters of a part to out. Returns the end of out. */
static struct param *append(const struct row rows[ROWS], enum place part, int64_t layer, struct param *out)
{
	for (const struct row *r = rows; r < rows + ROWS; r++)
		if (row_in(r, part))
			*out++ = param_of(r, layer);
	return out;
}

void model_params(const struct model *m, int64_t tensor, struct param *out)
{
	struct row rows[ROWS];
	if (model_is_conv(m)) {
		for (int64_t i = -1; i <= m->layers; i++)
			out += model_conv_params(m, i, out);
		return;
	}
	fill_rows(m, model_padded_vocab(m, tensor), model_stored_kv_heads(m, tensor), rows);
	out = append(rows, BEFORE, -1, out);
	for (int64_t layer = 0; layer < model_blocks(m); layer++) {
		if (layer > 0 && layer == m->encoder_layers)
			out = append(rows, BETWEEN, -1, out);
		out = append(rows, block_places(m, layer), layer, out);
	}
	append(rows, AFTER, -1, out);
}

static struct param nth(const struct row *r, enum place part, int64_t i, int64_t layer)
{
	while (!row_in(r, part) || i-- > 0)
		r++;
	return param_of(r, layer);
}

static struct param conv_param(const struct model *m, int64_t i)
{
	struct param layer[3 * CONV_LAYERS] = {{0}};
	for (int64_t k = -1; k <= m->layers; k++) {
		const int n = model_conv_params(m, k, layer);
		if (i < n)
			break;
		i -= n;
	}
	return layer[i];
}

struct param model_param(const struct model *m, int64_t i, int64_t tensor)
{
	struct row rows[ROWS];
	if (model_is_conv(m))
		return conv_param(m, i);
	fill_rows(m, model_padded_vocab(m, tensor), model_stored_kv_heads(m, tensor), rows);
	const int64_t before = rows_in(rows, BEFORE);
	if (i < before)
		return nth(rows, BEFORE, i, -1);
	i -= before;
	for (int64_t layer = 0; layer < model_blocks(m); layer++) {
		const enum place part = block_places(m, layer);
		if (layer > 0 && layer == m->encoder_layers) {
			if (i < rows_in(rows, BETWEEN))
				return nth(rows, BETWEEN, i, -1);
			i -= rows_in(rows, BETWEEN);
		}
		if (i < rows_in(rows, part))
			return nth(rows, part, i, layer);
		i -= rows_in(rows, part);
	}
	return nth(rows, AFTER, i, -1);
}

const char *param_kind_name(enum param_kind k)
{
#define NAME(kind, name) name,
	static const char *const names[] = {PARAM_KINDS(NAME)};
#undef NAME
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

bool model_shares_kv_heads(const struct model *m, int64_t tensor)
{
	return tensor > m->kv_heads && tensor % m->kv_heads == 0;
}

int64_t model_stored_kv_heads(const struct model *m, int64_t tensor)
{
	return model_shares_kv_heads(m, tensor) ? tensor : m->kv_heads;
}

uint64_t param_elements(const struct param *p) { return (uint64_t)p->rows * (uint64_t)p->cols * (uint64_t)p->copies; }

uint64_t param_local_elements(const struct param *p, int64_t ranks)
{
	return p->split <= TP_PARTIAL ? param_elements(p) : param_elements(p) / (uint64_t)ranks;
}

bool param_is_expert(enum param_kind k) { return k == PARAM_EXPERT_FC1_W || k == PARAM_EXPERT_FC2_W; }

bool param_is_product(enum param_kind k)
{
	static const enum param_kind products[] = {PARAM_QKV_W, PARAM_PROJ_W, PARAM_CROSS_Q_W, PARAM_CROSS_KV_W,
		PARAM_CROSS_PROJ_W, PARAM_FC1_W, PARAM_FC2_W, PARAM_EXPERT_FC1_W, PARAM_EXPERT_FC2_W,
		PARAM_SHARED_FC1_W, PARAM_SHARED_FC2_W, PARAM_Q_UP_W, PARAM_KV_UP_W, PARAM_SSM_IN_W, PARAM_SSM_OUT_W,
		PARAM_ATTENTION_GATE_W, PARAM_SHORT_IN_W, PARAM_SHORT_OUT_W};
	for (size_t i = 0; i < COUNT(products); i++)
		if (products[i] == k)
			return true;
	return false;
}

bool param_is_lora(enum param_kind k) { return k >= PARAM_LORA_QKV_A && k <= PARAM_LORA_FC2_B; }

enum param_kind param_lora_of(enum param_kind w)
{
	static const struct {
		enum param_kind w, a;
	} adapters[] = {{PARAM_QKV_W, PARAM_LORA_QKV_A}, {PARAM_PROJ_W, PARAM_LORA_PROJ_A},
		{PARAM_FC1_W, PARAM_LORA_FC1_A}, {PARAM_FC2_W, PARAM_LORA_FC2_A}};
	for (size_t i = 0; i < COUNT(adapters); i++)
		if (adapters[i].w == w)
			return adapters[i].a;
	return PARAM_KIND_COUNT;
}

bool model_freezes(const struct model *m)
{
	return m->lora_rank > 0 || m->freeze != FREEZE_NONE || m->position == POS_SINCOS || m->input == INPUT_FRAMES;
}

bool model_trains(const struct model *m, enum param_kind k)
{
	if (m->lora_rank > 0)
		return param_is_lora(k);
	if ((k == PARAM_POSITION_EMBEDDING || k == PARAM_ENCODER_POSITION) && m->position == POS_SINCOS)
		return false;
	if (k == PARAM_ENCODER_POSITION && m->input == INPUT_FRAMES) /* sines */
		return false;
	switch (m->freeze) {
	case FREEZE_EMBEDDING: return k > PARAM_EMBEDDING_NORM_B;
	case FREEZE_ATTENTION: return k < PARAM_NORM1_W || k > PARAM_CROSS_PROJ_B;
	case FREEZE_MLP: return k < PARAM_NORM2_W || k > PARAM_SHARED_FC2_W;
	case FREEZE_NONE:
	case FREEZE_COUNT: break;
	}
	return true;
}

enum counted { COUNT_ALL, COUNT_EXPERTS, COUNT_TRAINED, COUNT_ACTIVE, COUNT_LORA };

static bool counts(const struct model *m, enum counted what, enum param_kind k)
{
	switch (what) {
	case COUNT_TRAINED: return model_trains(m, k);
	case COUNT_LORA: return param_is_lora(k);
	case COUNT_EXPERTS: return param_is_expert(k);
	case COUNT_ALL:
	case COUNT_ACTIVE: break;
	}
	return !param_is_lora(k);
}

/* One block of each sort stands for all of its sort. */
static int64_t times_of(const struct model *m, const struct layer_counts *layers, enum place place)
{
	if (place & FURTHER)
		return m->mtp_layers;
	int64_t times = place & (BEFORE | AFTER) || (place & BETWEEN && m->encoder_layers > 0) ? 1 : 0;
	for (int k = 0; k < LAYER_KIND_COUNT; k++)
		times += place & 1u << k ? layers->of[k] : 0;
	return times;
}

static uint64_t count(const struct model *m, enum counted what)
{
	const struct layer_counts layers = model_layer_counts(m);
	uint64_t total = 0;
	if (model_is_conv(m))
		return what == COUNT_LORA || what == COUNT_EXPERTS ? 0 : (uint64_t)conv_count(m, true);
	struct row rows[ROWS];
	fill_rows(m, m->vocab, m->kv_heads, rows);
	for (const struct row *r = rows; r < rows + ROWS; r++) {
		int64_t copies = what >= COUNT_ACTIVE && param_is_expert(r->kind) ? m->experts_per_token : r->copies;
		if (r->present && counts(m, what, r->kind))
			total += (uint64_t)r->rows * (uint64_t)r->cols * (uint64_t)copies *
			         (uint64_t)times_of(m, &layers, r->place);
	}
	return total;
}

uint64_t model_parameters(const struct model *m) { return count(m, COUNT_ALL); }

uint64_t model_expert_parameters(const struct model *m) { return count(m, COUNT_EXPERTS); }

uint64_t model_active_parameters(const struct model *m) { return count(m, COUNT_ACTIVE); }

uint64_t model_lora_parameters(const struct model *m) { return count(m, COUNT_LORA); }

uint64_t model_trained_parameters(const struct model *m) { return count(m, COUNT_TRAINED); }

/* Rows of a sequence that a parameter of a layer, or of none, multiplies or is added to. */
static int64_t rows_of(const struct model *m, enum param_kind k, bool encodes)
{
	if (k == PARAM_PATCH_W || k == PARAM_PATCH_B)
		return model_patches(m);
	if ((k >= PARAM_TIME_FC1_W && k <= PARAM_FINAL_ADAPT_B) || k == PARAM_CLASS_TOKEN || k == PARAM_POOLER_W ||
		k == PARAM_POOLER_B || k == PARAM_CLASS_W || k == PARAM_CLASS_B)
		return 1;
	if ((k >= PARAM_HEAD_DENSE_W && k <= PARAM_HEAD_B) || (k == PARAM_TOKEN_EMBEDDING && model_ties(m)))
		return model_targets(m);
	if (k == PARAM_FRAMES1_W || k == PARAM_FRAMES1_B)
		return 2 * m->encoder_seq_len;
	encodes = encodes || k == PARAM_FRAMES2_W || k == PARAM_FRAMES2_B || k == PARAM_CROSS_KV_W ||
	          k == PARAM_CROSS_KV_B || k == PARAM_ENCODER_NORM_W || k == PARAM_ENCODER_NORM_B ||
	          k == PARAM_ENCODER_POSITION;
	return encodes ? m->encoder_seq_len : m->seq_len;
}

/* The same of all layers, and other places, that have the parameter. */
static double all_rows_of(const struct model *m, const struct layer_counts *layers, const struct row *r)
{
	const int64_t encoders = r->place & IN(DENSE) && m->encoder_layers > 0 ? layers->of[LAYER_DENSE] : 0;
	return (double)encoders * (double)rows_of(m, r->kind, true) +
	       (double)(times_of(m, layers, r->place) - encoders) * (double)rows_of(m, r->kind, false);
}

/* 6 for each element and token; 4 where no gradient is made of it. */
static double flop_of_weights(const struct model *m)
{
	const struct layer_counts layers = model_layer_counts(m);
	double flop = 0;
	struct row rows[ROWS];
	fill_rows(m, m->vocab, m->kv_heads, rows);
	for (const struct row *r = rows; r < rows + ROWS; r++) {
		const int64_t copies = param_is_expert(r->kind) ? m->experts_per_token : r->copies;
		if (r->present)
			flop += (model_trains(m, r->kind) ? 6.0 : 4.0) *
			        (double)(r->rows * r->cols * copies *
					 (r->kind == PARAM_HEAD_W ? 1 + m->mtp_layers : 1)) *
			        (all_rows_of(m, &layers, r) / (double)m->seq_len);
	}
	return flop;
}

/* Keys that the queries of a layer see, of a token's share of them all. */
static double keys_of(const struct model *m, int64_t layer)
{
	const double rows = (double)model_rows(m, layer), seq = (double)m->seq_len;
	if (!model_attends(m, layer))
		return 0;
	const double own = model_window(m, layer) > 0 ? (double)model_window(m, layer) : rows;
	return own * (rows / seq) + (model_layer_kind(m, layer) == LAYER_CROSS ? (double)m->encoder_seq_len : 0);
}

double model_flop_per_token(const struct model *m)
{
	if (model_is_conv(m))
		return model_conv_flop(m);
	const double width = (double)(m->heads * (m->head_dim + model_value_dim(m))) / 2;
	const struct layer_counts layers = model_layer_counts(m);
	const double scans = 21.0 * (double)(layers.of[LAYER_MAMBA] + layers.of[LAYER_PARALLEL]) +
	                     24.0 * (double)layers.of[LAYER_DELTA];
	const double states = (double)(m->ssm_heads * m->ssm_head_dim * m->ssm_state);
	double keys = 0; /* of all layers */
	for (int64_t i = 0; i < model_blocks(m); i++)
		keys += keys_of(m, i);
	return flop_of_weights(m) + 12.0 * width * keys + scans * states;
}
