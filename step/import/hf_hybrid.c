/* Hugging Face models whose layers have attention in some and another mixer in the others, each before an MLP or
 * experts: two layers of one branch here (model.layer_pattern). Those with Mamba layers alone are in hf_mamba.c. */
#include <math.h>
#include <string.h>

#include "step/import/hf_reader.h"

/* ---- the pattern ---- */

static bool is_listed(const json_t *list, int64_t i)
{
	const json_t *v;
	size_t at;
	json_array_foreach(list, at, v) if (json_is_integer(v) && json_integer_value(v) == i) return true;
	return false;
}

/* Returns the mixer of layer i: by layer_types, by the layers that are listed, or by its place. */
static char mixer_of(const struct hf_reader *r, const struct hf_mixers *m, int64_t i)
{
	const char *kind = json_string_value(json_array_get(hf_get(r, "layer_types"), (size_t)i));
	const json_t *listed = m->listed ? hf_get(m->list ? m->list : r, m->listed) : NULL;
	const json_t *flags = hf_get(r, "attn_type_list"); /* MiniMax: 1 of a layer with attention, 0 of the others */
	const bool attends = kind     ? strcmp(kind, "full_attention") == 0 || strcmp(kind, "attention") == 0
	                     : flags  ? json_integer_value(json_array_get(flags, (size_t)i)) == 1
	                     : listed ? is_listed(listed, i + m->first)
	                              : m->every > 0 && (i + 1) % m->every == 0;
	return attends ? m->attention : m->other;
}

void hf_set_mixers(struct hf_reader *r, struct model *m, const struct hf_mixers *mixers, hf_has_experts_fn *has_experts)
{
	char pattern[2 * LAYER_PATTERN] = "";
	const json_t *kinds = hf_get(r, "layer_types");
	size_t n = 0, period = 1;
	if (kinds && json_array_size(kinds) != (size_t)m->layers)
		hf_fail(r, "layer_types", "expected a kind for each of num_hidden_layers");
	for (int64_t i = 0; i < m->layers && n + 2 < sizeof pattern; i++) {
		pattern[n++] = mixer_of(r, mixers, i);
		pattern[n++] = m->experts > 0 && (!has_experts || has_experts(r, m, i)) ? 'E' : '-';
	}
	while (period < n && (n % period != 0 || strncmp(pattern, pattern + period, n - period) != 0))
		period++;
	if (period >= sizeof m->layer_pattern || 2 * m->layers != (int64_t)n)
		hf_fail(r, "num_hidden_layers", "too many layers to be described");
	else
		memcpy(m->layer_pattern, pattern, period); /* the rest of it is zero */
	m->layers *= 2;
}

/* ---- gated delta rules ---- */

/* The names that Qwen3-Next has for them. */
static void read_delta(struct hf_reader *r, struct model *m, int64_t value_heads)
{
	m->ssm_groups = hf_int(r, "linear_num_key_heads", KEY_model_ssm_groups, 16);
	m->ssm_state = hf_int(r, "linear_key_head_dim", KEY_model_ssm_state, 128);
	m->ssm_heads = hf_int(r, "linear_num_value_heads", KEY_model_ssm_heads, value_heads);
	m->ssm_head_dim = hf_int(r, "linear_value_head_dim", KEY_model_ssm_head_dim, 128);
	m->ssm_conv = hf_int(r, "linear_conv_kernel_dim", KEY_model_ssm_conv, 4);
	m->ssm_chunk = DELTA_CHUNK;
}

static bool qwen_has_experts(const struct hf_reader *r, const struct model *m, int64_t i)
{
	return (i + 1) % m->moe_layer_freq == 0 && !is_listed(hf_get(r, "mlp_only_layers"), i);
}

static void read_qwen_experts(struct hf_reader *r, struct model *m, int64_t experts, int64_t per_token)
{
	m->experts = hf_int(r, "num_experts", KEY_model_experts, experts);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, per_token);
	m->moe_ffn_hidden = hf_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 512);
	const json_t *width = hf_get(r, "shared_expert_intermediate_size");
	const int64_t shared = width && json_integer_value(width) == 0
	                               ? 0
	                               : hf_int(r, "shared_expert_intermediate_size", KEY_model_ffn_hidden, 512);
	m->shared_experts = shared / m->moe_ffn_hidden;
	m->shared_expert_gate = shared > 0;
	if (shared % m->moe_ffn_hidden != 0)
		hf_fail(r, "shared_expert_intermediate_size", "expected a multiple of moe_intermediate_size");
	m->moe_layer_freq = hf_int(r, "decoder_sparse_step", KEY_model_moe_layer_freq, 1);
}

/* Qwen's layers: three delta rules, then attention with norms of its heads and a gate. */
static void set_qwen_layers(struct hf_reader *r, struct model *m, int64_t value_heads)
{
	read_delta(r, m, value_heads);
	m->qk_norm = QK_NORM_HEAD;
	m->attention_gate = hf_bool(r, "attn_output_gate", true);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	hf_set_mixers(r, m,
		&(struct hf_mixers){.attention = '*',
			.other = 'G',
			.every = hf_int(r, "full_attention_interval", KEY_model_global_attention_every, 4)},
		qwen_has_experts);
	m->moe_layer_freq = 1; /* told by the pattern */
}

void hf_type_qwen3_next(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	read_qwen_experts(r, m, 512, 10);
	set_qwen_layers(r, m, 32);
}

static void read_qwen3_5(struct hf_reader *outer, struct model *m, bool experts)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	if (hf_get(outer, "vision_config"))
		hf_leaves_out(outer, "the vision tower");
	hf_read_llama_like(&r, m);
	m->tied_embeddings = hf_bool(outer, "tie_word_embeddings", m->tied_embeddings);
	if (experts)
		read_qwen_experts(&r, m, 256, 8);
	set_qwen_layers(&r, m, 32);
	if (hf_get(&r, "mtp_num_hidden_layers"))
		hf_leaves_out(outer, "layers that predict further tokens (mtp_num_hidden_layers)");
	outer->st = r.st;
}

void hf_type_qwen3_5(struct hf_reader *r, struct model *m) { read_qwen3_5(r, m, false); }

void hf_type_qwen3_5_moe(struct hf_reader *r, struct model *m) { read_qwen3_5(r, m, true); }

/* OLMo Hybrid: attention has norms of all heads, and its layers' norms stand behind the branches. */
void hf_type_olmo_hybrid(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->position = hf_get(r, "rope_parameters") || hf_get(r, "rope_theta") ? POS_ROPE : POS_NONE;
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	m->qk_norm = QK_NORM_FULL;
	read_delta(r, m, m->heads);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'G', .every = 4}, NULL);
	hf_leaves_out(r, "that norms of layers with attention stand behind its branches");
}

/* Kimi Linear: latent attention without rope between layers of Kimi delta attention, which has as many heads of keys as
 * of values. Its own file has other names than transformers writes. */
static bool kimi_has_experts(const struct hf_reader *r, const struct model *m, int64_t i)
{
	const char *kind = json_string_value(json_array_get(hf_get(r, "mlp_layer_types"), (size_t)i));
	return kind ? strcmp(kind, "sparse") == 0 : i >= m->first_dense_layers;
}

/* The name that a file has of two. */
static const char *either(const struct hf_reader *r, const char *own, const char *other)
{
	return hf_get(r, own) ? own : other;
}

void hf_type_kimi_linear(struct hf_reader *r, struct model *m)
{
	struct hf_reader linear = hf_inside(r, "linear_attn_config");
	hf_read_llama_like(r, m);
	hf_read_positions(r, m, either(r, "model_max_length", "max_position_embeddings"), 1048576);
	hf_read_latent(r, m, 128);
	m->position = hf_bool(r, "mla_use_nope", true) ? POS_NONE : POS_ROPE;
	m->ssm_heads = m->ssm_groups = hf_int(&linear, either(&linear, "num_heads", "linear_num_heads"),
		KEY_model_ssm_heads, 32);
	m->ssm_head_dim = m->ssm_state = hf_int(&linear, either(&linear, "head_dim", "linear_head_dim"),
		KEY_model_ssm_head_dim, 128);
	m->ssm_conv = hf_int(&linear, either(&linear, "short_conv_kernel_size", "linear_conv_kernel_dim"),
		KEY_model_ssm_conv, 4);
	m->ssm_chunk = DELTA_CHUNK;
	m->experts = hf_int(r, either(r, "num_experts", "num_local_experts"), KEY_model_experts, 256);
	m->experts_per_token = hf_int(r, either(r, "num_experts_per_token", "num_experts_per_tok"),
		KEY_model_experts_per_token, 8);
	m->moe_ffn_hidden = hf_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 1024);
	m->shared_experts = hf_int(r, either(r, "num_shared_experts", "n_shared_experts"), KEY_model_shared_experts, 1);
	m->first_dense_layers = hf_int(r, "first_k_dense_replace", KEY_model_first_dense_layers, 1);
	m->router_bias = true;
	hf_set_mixers(r, m, &(struct hf_mixers){'*', 'K', "full_attn_layers", 4, &linear, 1}, kimi_has_experts);
	m->first_dense_layers = 0; /* told by the pattern */
	r->st = r->st ? r->st : linear.st;
}

/* ---- Mamba-2 beside attention ---- */

void hf_type_falcon_h1(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_set_bias(m, hf_bool(r, "attention_bias", false), hf_bool(r, "mlp_bias", false));
	m->ssm_heads = hf_int(r, "mamba_n_heads", KEY_model_ssm_heads, 128);
	m->ssm_groups = hf_int(r, "mamba_n_groups", KEY_model_ssm_groups, 1);
	m->ssm_state = hf_int(r, "mamba_d_state", KEY_model_ssm_state, 256);
	m->ssm_conv = hf_int(r, "mamba_d_conv", KEY_model_ssm_conv, 4);
	m->ssm_chunk = hf_int(r, "mamba_chunk_size", KEY_model_ssm_chunk, 256);
	const int64_t width = hf_int(r, "mamba_d_ssm", KEY_model_hidden,
		hf_int(r, "mamba_expand", KEY_model_ssm_conv, 2) * m->hidden);
	m->ssm_head_dim = width / m->ssm_heads;
	if (width % m->ssm_heads != 0)
		hf_fail(r, "mamba_n_heads", "expected a divisor of mamba_d_ssm");
	memcpy(m->layer_pattern, "P-", 2);
	m->layers *= 2;
	if (!hf_bool(r, "mamba_rms_norm", false))
		hf_leaves_out(r, "that Mamba's result is gated without a norm");
}

/* MiniMax: lightning attention (Qin et al. 2024, arXiv:2401.04658) is the scan of a state for each head, whose keys and
 * queries are its own: as many groups as heads. Its blocks of 256 rows are chunks. */
void hf_type_minimax(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->experts = hf_int(r, "num_local_experts", KEY_model_experts, 8);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 2);
	m->moe_ffn_hidden = m->ffn_hidden;
	m->ssm_heads = m->ssm_groups = m->heads;
	m->ssm_head_dim = m->ssm_state = m->head_dim;
	m->ssm_conv = 1;
	m->ssm_chunk = hf_int(r, "block_size", KEY_model_ssm_chunk, 256);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'M'}, NULL);
	hf_leaves_out(r, "lightning attention, taken as Mamba-2's scan of as many groups as heads");
}

/* ---- short convolutions ---- */

/* The width of LFM2's MLPs, as Lfm2MLP makes it of block_ff_dim. */
static int64_t lfm2_width(struct hf_reader *r, int64_t width)
{
	const json_t *times = hf_get(r, "block_ffn_dim_multiplier");
	const int64_t multiple = hf_int(r, "block_multiple_of", KEY_model_ffn_hidden, 256);
	if (!hf_bool(r, "block_auto_adjust_ff_dim", true) || r->st)
		return width;
	const double two_thirds = floor(2.0 * (double)width / 3.0),
		     scaled = floor((times ? json_number_value(times) : 1.0) * two_thirds);
	if (!(scaled >= 1 && scaled <= config_key(KEY_model_ffn_hidden)->high)) {
		hf_fail(r, "block_ffn_dim_multiplier", "out of range");
		return width;
	}
	return (int64_t)ceil(scaled / (double)multiple) * multiple;
}

static void read_lfm2(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qk_norm = QK_NORM_HEAD;
	m->ssm_conv = hf_int(r, "conv_L_cache", KEY_model_ssm_conv, 3);
	m->tied_embeddings = hf_bool(r, hf_get(r, "tie_embedding") ? "tie_embedding" : "tie_word_embeddings", true);
	if (hf_int(r, "conv_dim", KEY_model_hidden, m->hidden) != m->hidden)
		hf_fail(r, "conv_dim", "convolutions of another width than the model's cannot be described");
	if (hf_bool(r, "conv_bias", false))
		hf_fail(r, "conv_bias", "true cannot be described");
}

void hf_type_lfm2(struct hf_reader *r, struct model *m)
{
	read_lfm2(r, m);
	m->ffn_hidden = lfm2_width(r, m->ffn_hidden);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'C', .listed = "full_attn_idxs"}, NULL);
}

static bool lfm2_has_experts(const struct hf_reader *r, const struct model *m, int64_t i)
{
	(void)r;
	return i >= m->first_dense_layers;
}

void hf_type_lfm2_moe(struct hf_reader *r, struct model *m)
{
	read_lfm2(r, m);
	m->experts = hf_int(r, "num_experts", KEY_model_experts, 32);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 4);
	m->moe_ffn_hidden = hf_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 1792);
	m->router_bias = hf_bool(r, "use_expert_bias", true);
	m->first_dense_layers = hf_int(r, "num_dense_layers", KEY_model_first_dense_layers, 2);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'C', .listed = "full_attn_idxs"},
		lfm2_has_experts);
	m->first_dense_layers = 0; /* told by the pattern */
}
