/* The kinds of a model's layers, and what their rows see (step/model.h). */
#include "step/model.h"

#include "base/array.h"

#include <math.h>
#include <string.h>

/* ---- kinds ---- */

static int64_t moe_period(const struct model *m)
{
	return m->experts > 0 && m->moe_layer_freq > 1 ? m->moe_layer_freq : 1;
}

/* Blocks before the first with experts. */
static int64_t dense_first(const struct model *m)
{
	return m->experts == 0 || m->first_dense_layers > m->layers ? m->layers : m->first_dense_layers;
}

static const struct {
	char letter;
	enum layer_kind kind;
} letters[] = {{'M', LAYER_MAMBA}, {'*', LAYER_ATTENTION}, {'-', LAYER_MLP}, {'E', LAYER_EXPERTS}, {'G', LAYER_DELTA},
	{'K', LAYER_KDA}, {'P', LAYER_PARALLEL}, {'C', LAYER_SHORT_CONV}};

enum layer_kind model_layer_of_letter(char letter)
{
	for (size_t i = 0; i < COUNT(letters); i++)
		if (letters[i].letter == letter)
			return letters[i].kind;
	return LAYER_KIND_COUNT;
}

/* Without a pattern: behind the first dense blocks, the first of each moe_layer_freq has experts (Megatron-LM's
 * --moe-layer-freq). */
enum layer_kind model_layer_kind(const struct model *m, int64_t layer)
{
	const int64_t from = dense_first(m);
	if (model_is_conv(m))
		return LAYER_CONV;
	if (layer >= m->layers && m->mtp_layers > 0)
		return model_layer_kind(m, m->layers - 1);
	if (m->layer_pattern[0])
		return model_layer_of_letter(m->layer_pattern[(size_t)layer % strlen(m->layer_pattern)]);
	if (m->encoder_layers > 0)
		return model_encodes(m, layer) ? LAYER_DENSE : LAYER_CROSS;
	return layer >= from && (layer - from) % moe_period(m) == 0 ? LAYER_MOE : LAYER_DENSE;
}

bool model_scans(enum layer_kind kind) { return kind == LAYER_MAMBA || kind == LAYER_DELTA || kind == LAYER_KDA; }

bool model_has_experts(const struct model *m, int64_t layer)
{
	const enum layer_kind kind = model_layer_kind(m, layer);
	return kind == LAYER_MOE || kind == LAYER_EXPERTS;
}

int64_t model_blocks(const struct model *m) { return m->layers + m->mtp_layers; }

struct layer_counts model_layer_counts(const struct model *m)
{
	struct layer_counts n = {{0}};
	if (model_is_conv(m) || m->layer_pattern[0] || m->encoder_layers > 0) {
		for (int64_t i = 0; i < model_blocks(m); i++)
			n.of[model_layer_kind(m, i)]++;
		return n;
	}
	/* A search asks this of every plan, so the layers without a pattern are counted at once. */
	n.of[LAYER_MOE] = (m->layers - dense_first(m) + moe_period(m) - 1) / moe_period(m);
	n.of[LAYER_DENSE] = m->layers - n.of[LAYER_MOE];
	if (m->mtp_layers > 0)
		n.of[model_layer_kind(m, m->layers)] += m->mtp_layers;
	return n;
}

bool model_encodes(const struct model *m, int64_t layer) { return layer < m->encoder_layers; }

bool model_masks(const struct model *m, int64_t layer) { return m->causal && !model_encodes(m, layer); }

int64_t model_rows(const struct model *m, int64_t layer)
{
	return model_encodes(m, layer) ? m->encoder_seq_len : m->seq_len;
}

bool model_is_conv(const struct model *m) { return m->conv_stages[0]; }

bool model_has_attention(const struct model *m)
{
	for (int64_t i = 0; i < model_blocks(m); i++)
		if (model_attends(m, i))
			return true;
	return false;
}

static bool layers_alike(const struct model *m, int64_t a, int64_t b)
{
	return model_layer_kind(m, a) == model_layer_kind(m, b) && model_is_windowed(m, a) == model_is_windowed(m, b) &&
	       model_has_rope(m, a) == model_has_rope(m, b);
}

struct layer_order model_layer_order(const struct model *m)
{
	for (int64_t n = 1; n <= MODEL_PERIOD_MAX && (n == 1 || 2 * n <= m->layers) && !model_is_conv(m); n++) {
		int64_t leading = m->layers - n;
		while (leading > 0 && layers_alike(m, leading - 1, leading - 1 + n))
			leading--;
		const int64_t here = m->layers - leading;
		if ((leading == 0 || leading == m->first_dense_layers) && (n == 1 || here >= 2 * n))
			return (struct layer_order){leading, n, here / n, here % n};
	}
	return (struct layer_order){0, 0, 0, 0};
}

int64_t model_expert_capacity(const struct model *m, int64_t tokens, double factor)
{
	double share = (double)tokens * (double)m->experts_per_token / (double)m->experts;
	double places = ceil(factor * share * (1 - 1e-12)); /* 1.1 x 10 is 11 */
	return places < (double)tokens ? (int64_t)places : tokens;
}

/* ---- rows and what they see ---- */

bool model_ties(const struct model *m) { return m->tied_embeddings && m->lm_head; }

bool model_table_ends(const struct model *m) { return model_ties(m) || m->mtp_layers > 0; }

bool model_has_positions(const struct model *m) { return m->position == POS_LEARNED || m->position == POS_SINCOS; }

int64_t model_patches(const struct model *m)
{
	const int64_t side = m->image_size / m->patch_size;
	return side * side;
}

int64_t model_targets(const struct model *m)
{
	if (!m->lm_head)
		return m->output_channels > 0 ? m->seq_len : 1;
	return m->predictions > 0 ? m->predictions : m->seq_len;
}

const char *model_samples(const struct model *m)
{
	return m->input == INPUT_PATCHES || m->input == INPUT_PIXELS ? "image" : NULL;
}

bool model_is_windowed(const struct model *m, int64_t layer)
{
	const bool global = m->global_attention_every > 0 && (layer + 1) % m->global_attention_every == 0;
	return m->sliding_window > 0 && m->sliding_window <= m->seq_len && !global;
}

int64_t model_window(const struct model *m, int64_t layer)
{
	return model_is_windowed(m, layer) && m->sliding_window < m->seq_len ? m->sliding_window : 0;
}

bool model_has_rope(const struct model *m, int64_t layer)
{
	const bool without = m->no_rope_every > 0 && (layer + 1) % m->no_rope_every == 0;
	return m->position == POS_ROPE && !without;
}

int64_t model_value_dim(const struct model *m) { return m->kv_lora_rank > 0 ? m->v_head_dim : m->head_dim; }
