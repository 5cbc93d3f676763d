/* The parameter table: which tensors a model has, in which order and shape. Everything else about parameters is read
 * off it. */
#include "step/model_rows.h"

#include "base/array.h"

#include <stddef.h>

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
	model_fill_rows(m, m->vocab, m->kv_heads, rows);
	int64_t n = rows_in(rows, BEFORE) + rows_in(rows, AFTER) +
	            (m->encoder_layers > 0 ? rows_in(rows, BETWEEN) : 0) + m->mtp_layers * rows_in(rows, FURTHER);
	for (int k = 0; k < LAYER_KIND_COUNT; k++)
		n += layers.of[k] > 0 ? layers.of[k] * rows_in(rows, 1u << k) : 0;
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
	model_fill_rows(m, model_padded_vocab(m, tensor), model_stored_kv_heads(m, tensor), rows);
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
	model_fill_rows(m, model_padded_vocab(m, tensor), model_stored_kv_heads(m, tensor), rows);
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

bool activation_is_gelu(int activation) { return activation == MLP_GELU || activation == MLP_GEGLU; }

bool model_gated(const struct model *m) { return m->mlp == MLP_SWIGLU || m->mlp == MLP_GEGLU; }

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

bool param_is_expert(enum param_kind k)
{
	return k == PARAM_EXPERT_FC1_W || k == PARAM_EXPERT_FC2_W ||
	       (k >= PARAM_LORA_EXPERT_FC1_A && k <= PARAM_LORA_EXPERT_FC2_B);
}

bool param_is_product(enum param_kind k)
{
	static const enum param_kind products[] = {PARAM_QKV_W, PARAM_PROJ_W, PARAM_CROSS_Q_W, PARAM_CROSS_KV_W,
		PARAM_CROSS_PROJ_W, PARAM_FC1_W, PARAM_FC2_W, PARAM_EXPERT_FC1_W, PARAM_EXPERT_FC2_W,
		PARAM_SHARED_FC1_W, PARAM_SHARED_FC2_W, PARAM_Q_UP_W, PARAM_KV_UP_W, PARAM_SSM_IN_W, PARAM_SSM_OUT_W,
		PARAM_KDA_DECAY_UP_W, PARAM_KDA_GATE_UP_W, PARAM_ATTENTION_GATE_W, PARAM_SHORT_IN_W, PARAM_SHORT_OUT_W};
	for (size_t i = 0; i < COUNT(products); i++)
		if (products[i] == k)
			return true;
	return false;
}

bool param_is_matrix(const struct param *p)
{
	static const enum param_kind none[] = {PARAM_SSM_CONV_W, PARAM_SSM_HEADS, PARAM_DELTA_HEADS, PARAM_KDA_HEADS,
		PARAM_SHORT_CONV_W};
	for (size_t i = 0; i < COUNT(none); i++)
		if (none[i] == p->kind)
			return false;
	return p->cols > 1;
}

bool param_is_lora(enum param_kind k) { return k >= PARAM_LORA_QKV_A && k <= PARAM_LORA_SHARED_FC2_B; }

enum param_kind param_lora_of(enum param_kind w)
{
	static const struct {
		enum param_kind w, a;
	} adapters[] = {{PARAM_QKV_W, PARAM_LORA_QKV_A}, {PARAM_PROJ_W, PARAM_LORA_PROJ_A},
		{PARAM_FC1_W, PARAM_LORA_FC1_A}, {PARAM_FC2_W, PARAM_LORA_FC2_A},
		{PARAM_ATTENTION_GATE_W, PARAM_LORA_GATE_A}, {PARAM_SSM_IN_W, PARAM_LORA_SSM_IN_A},
		{PARAM_SSM_OUT_W, PARAM_LORA_SSM_OUT_A}, {PARAM_SHORT_IN_W, PARAM_LORA_SHORT_IN_A},
		{PARAM_SHORT_OUT_W, PARAM_LORA_SHORT_OUT_A}, {PARAM_Q_DOWN_W, PARAM_LORA_Q_DOWN_A},
		{PARAM_Q_UP_W, PARAM_LORA_Q_UP_A}, {PARAM_KV_DOWN_W, PARAM_LORA_KV_DOWN_A},
		{PARAM_KV_UP_W, PARAM_LORA_KV_UP_A}, {PARAM_EXPERT_FC1_W, PARAM_LORA_EXPERT_FC1_A},
		{PARAM_EXPERT_FC2_W, PARAM_LORA_EXPERT_FC2_A}, {PARAM_SHARED_FC1_W, PARAM_LORA_SHARED_FC1_A},
		{PARAM_SHARED_FC2_W, PARAM_LORA_SHARED_FC2_A}};
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
	case COUNT_EXPERTS: return param_is_expert(k) && !param_is_lora(k);
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
	model_fill_rows(m, m->vocab, m->kv_heads, rows);
	for (const struct row *r = rows; r < rows + ROWS; r++) {
		int64_t copies = what == COUNT_ACTIVE && param_is_expert(r->kind) ? m->experts_per_token : r->copies;
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
	model_fill_rows(m, m->vocab, m->kv_heads, rows);
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
	                     24.0 * (double)(layers.of[LAYER_DELTA] + layers.of[LAYER_KDA]);
	const double states = (double)(m->ssm_heads * m->ssm_head_dim * m->ssm_state);
	double keys = 0; /* of all layers */
	for (int64_t i = 0; i < model_blocks(m); i++)
		keys += keys_of(m, i);
	return flop_of_weights(m) + 12.0 * width * keys + scans * states;
}
