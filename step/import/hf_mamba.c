/* Hugging Face models with Mamba layers, as step/import/hf_dense.c has the others. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/import/hf_reader.h"

/* Attention has no positions of its own beside Mamba layers. */
static void read_hybrid(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->position = POS_NONE;
	m->norm = NORM_RMSNORM;
}

static void set_pattern(struct hf_reader *r, struct model *m, const char *key, const char *pattern)
{
	if (strlen(pattern) >= sizeof m->layer_pattern)
		hf_fail(r, key, "too many layers to be described");
	snprintf(m->layer_pattern, sizeof m->layer_pattern, "%s", pattern);
}

/* Reads what is left of a model whose layers are all Mamba's: of the size of its heads. */
static void read_mamba_alone(struct hf_reader *r, struct model *m, int64_t vocab, bool tied)
{
	m->heads = m->kv_heads = m->ssm_heads;
	m->head_dim = m->ssm_head_dim;
	m->ffn_hidden = 4 * m->hidden; /* nobody's: no layer has an MLP */
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, vocab);
	m->seq_len = HF_SEQ_LEN;
	m->position = POS_NONE;
	m->norm = NORM_RMSNORM;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", tied);
	set_pattern(r, m, "num_hidden_layers", "M");
}

void hf_type_mamba2(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 64);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 4096);
	m->ssm_heads = hf_int(r, "num_heads", KEY_model_ssm_heads, 128);
	m->ssm_head_dim = hf_int(r, "head_dim", KEY_model_ssm_head_dim, 64);
	m->ssm_groups = hf_int(r, "n_groups", KEY_model_ssm_groups, 8);
	m->ssm_state = hf_int(r, "state_size", KEY_model_ssm_state, 128);
	m->ssm_conv = hf_int(r, "conv_kernel", KEY_model_ssm_conv, 4);
	m->ssm_chunk = hf_int(r, "chunk_size", KEY_model_ssm_chunk, 256);
	read_mamba_alone(r, m, 32768, false);
}

/* Mamba-1 (Gu & Dao 2023, arXiv:2312.00752): each channel has a decay of its own, which heads of 64 share here. */
void hf_type_mamba(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 32);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 768);
	m->ssm_head_dim = 64;
	m->ssm_state = hf_int(r, "state_size", KEY_model_ssm_state, 16);
	m->ssm_conv = hf_int(r, "conv_kernel", KEY_model_ssm_conv, 4);
	const int64_t width = hf_int(r, "intermediate_size", KEY_model_ffn_hidden,
		hf_int(r, "expand", KEY_model_ssm_conv, 2) * m->hidden);
	m->ssm_heads = r->st ? 1 : width / m->ssm_head_dim;
	if (width % m->ssm_head_dim != 0 || m->ssm_heads < 1)
		hf_fail(r, "intermediate_size", "expected a multiple of 64 channels");
	read_mamba_alone(r, m, 50280, true);
	hf_leaves_out(r, "Mamba-1's scan, taken as Mamba-2's of the same width and state, which is faster");
}

/* One shared expert is as wide as several of the others. */
static void read_nemotron_experts(struct hf_reader *r, struct model *m)
{
	m->experts = hf_int(r, "n_routed_experts", KEY_model_experts, 8);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 2);
	m->moe_ffn_hidden = hf_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, m->ffn_hidden);
	const int64_t shared = hf_int(r, "n_shared_experts", KEY_model_shared_experts, 1) *
	                       hf_int(r, "moe_shared_expert_intermediate_size", KEY_model_ffn_hidden,
				       m->moe_ffn_hidden);
	m->shared_experts = shared / m->moe_ffn_hidden;
	if (shared % m->moe_ffn_hidden != 0)
		hf_fail(r, "moe_shared_expert_intermediate_size", "expected a multiple of moe_intermediate_size");
}

/* Sets the pattern of nemotron_h: a letter for each layer, or a list of their kinds. */
static void read_nemotron_pattern(struct hf_reader *r, struct model *m)
{
	static const struct {
		const char *kind;
		char letter;
	} kinds[] = {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}, {"linear_attention", 'M'},
		{"full_attention", '*'}}; /* the last two are what transformers 5 writes */
	const json_t *text = hf_get(r, "hybrid_override_pattern"), *list = hf_get(r, "layers_block_type"), *v;
	const char *key = text || !list ? "hybrid_override_pattern" : "layers_block_type";
	char pattern[LAYER_PATTERN + 1] = "";
	size_t at;
	json_array_foreach(list, at,
		v) for (size_t k = 0; k < COUNT(kinds) && at < LAYER_PATTERN;
			k++) if (json_is_string(v) && strcmp(json_string_value(v), kinds[k].kind) == 0)
		pattern[at] = kinds[k].letter;
	if (text ? !json_is_string(text) : !json_is_array(list))
		hf_fail(r, key,
			text || list ? "expected a letter for each layer"
				     : "missing: expected a letter for each layer");
	else
		set_pattern(r, m, key, text ? json_string_value(text) : pattern);
	if (strlen(m->layer_pattern) != (size_t)m->layers)
		hf_fail(r, key,
			text ? "expected a letter for each of num_hidden_layers"
			     : "expected mamba, attention, mlp or moe for each of num_hidden_layers");
}

void hf_type_nemotron_h(struct hf_reader *r, struct model *m)
{
	read_hybrid(r, m);
	if (hf_get(r, "attention_head_dim"))
		m->head_dim = hf_int(r, "attention_head_dim", KEY_model_head_dim, 128);
	m->mlp = hf_activation(r, "mlp_hidden_act", "relu2", false);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	m->bias = hf_bool(r, "mlp_bias", false);
	m->ssm_heads = hf_int(r, "mamba_num_heads", KEY_model_ssm_heads, 128);
	m->ssm_head_dim = hf_int(r, "mamba_head_dim", KEY_model_ssm_head_dim, 64);
	m->ssm_groups = hf_int(r, "n_groups", KEY_model_ssm_groups, 8);
	m->ssm_state = hf_int(r, "ssm_state_size", KEY_model_ssm_state, 128);
	m->ssm_conv = hf_int(r, "conv_kernel", KEY_model_ssm_conv, 4);
	m->ssm_chunk = hf_int(r, "chunk_size", KEY_model_ssm_chunk, 128);
	read_nemotron_pattern(r, m);
	if (json_is_integer(hf_get(r, "moe_latent_size")) && strchr(m->layer_pattern, 'E'))
		m->moe_latent = hf_int(r, "moe_latent_size", KEY_model_moe_latent, 0);
	if (strchr(m->layer_pattern, 'E'))
		read_nemotron_experts(r, m);
}

/* Each of Jamba's layers is two here: attention or Mamba, then experts or an MLP. Its Mamba layers are Mamba-1's. */
void hf_type_jamba(struct hf_reader *r, struct model *m)
{
	char pattern[LAYER_PATTERN + 2] = "";
	const int64_t attends = hf_int(r, "attn_layer_period", KEY_model_layers, 8),
		      chooses = hf_int(r, "expert_layer_period", KEY_model_layers, 2);
	const json_t *attention_at = hf_get(r, "attn_layer_offset"), *experts_at = hf_get(r, "expert_layer_offset");
	const int64_t first_attention = attention_at ? json_integer_value(attention_at) : 4,
		      first_experts = experts_at ? json_integer_value(experts_at) : 1;
	read_hybrid(r, m);
	m->mlp = hf_activation(r, "hidden_act", "silu", true);
	m->experts = hf_int(r, "num_experts", KEY_model_experts, 16);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 2);
	m->moe_ffn_hidden = m->ffn_hidden;
	for (int64_t i = 0; i < m->layers && 2 * i < LAYER_PATTERN; i++) {
		pattern[2 * i] = i % attends == first_attention ? '*' : 'M';
		pattern[2 * i + 1] = m->experts > 1 && i % chooses == first_experts ? 'E' : '-';
	}
	if (m->experts == 1)
		m->experts = 0;
	m->layers *= 2;
	set_pattern(r, m, "num_hidden_layers", pattern);
	m->ssm_state = hf_int(r, "mamba_d_state", KEY_model_ssm_state, 16);
	m->ssm_conv = hf_int(r, "mamba_d_conv", KEY_model_ssm_conv, 4);
	m->ssm_heads = hf_int(r, "mamba_expand", KEY_model_ssm_conv, 2) * m->hidden / m->ssm_head_dim;
	if (m->ssm_heads < 1)
		hf_fail(r, "hidden_size", "expected at least a head of 64 channels");
	hf_leaves_out(r, "Mamba-1's scan, taken as Mamba-2's of the same width and state, which is faster");
}

/* ---- Mamba-2 or attention, then an MLP or experts: each layer is two here ---- */

/* The Mamba-2 layers of Bamba and Granite 4. */
static void read_mamba2_parts(struct hf_reader *r, struct model *m, int64_t groups)
{
	m->ssm_heads = hf_int(r, "mamba_n_heads", KEY_model_ssm_heads, 128);
	m->ssm_groups = hf_int(r, "mamba_n_groups", KEY_model_ssm_groups, groups);
	m->ssm_state = hf_int(r, "mamba_d_state", KEY_model_ssm_state, 256);
	m->ssm_conv = hf_int(r, "mamba_d_conv", KEY_model_ssm_conv, 4);
	m->ssm_chunk = hf_int(r, "mamba_chunk_size", KEY_model_ssm_chunk, 256);
	const int64_t width = hf_int(r, "mamba_expand", KEY_model_ssm_conv, 2) * m->hidden;
	m->ssm_head_dim = r->st ? 1 : width / m->ssm_heads;
	if (width % m->ssm_heads != 0)
		hf_fail(r, "mamba_n_heads", "expected a divisor of mamba_expand x hidden_size");
}

void hf_type_bamba(struct hf_reader *r, struct model *m)
{
	read_hybrid(r, m);
	m->position = POS_ROPE;
	m->mlp = hf_activation(r, "hidden_act", "silu", true);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	read_mamba2_parts(r, m, 1);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'M', .listed = "attn_layer_indices"}, NULL);
}

void hf_type_granitemoehybrid(struct hf_reader *r, struct model *m)
{
	const char *position = json_string_value(hf_get(r, "position_embedding_type"));
	const bool experts = hf_int(r, "num_local_experts", KEY_model_experts, 8) > 0;
	if (experts)
		hf_type_granitemoe(r, m);
	else
		hf_read_llama_like(r, m);
	if (!experts) /* its one MLP is the shared one */
		m->ffn_hidden = hf_int(r, "shared_intermediate_size", KEY_model_ffn_hidden, 1024);
	m->position = position && strcmp(position, "rope") == 0 ? POS_ROPE : POS_NONE;
	read_mamba2_parts(r, m, 1);
	hf_set_mixers(r, m, &(struct hf_mixers){.attention = '*', .other = 'M'}, NULL);
}
