/* Hugging Face mixtures of experts, as step/import/hf_dense.c has the others. */
#include <string.h>

#include "base/array.h"
#include "step/import/hf_reader.h"

/* The key that counts experts: `usual`, or the other's name, which transformers 5 writes for some types whose files had
 * num_experts (attribute_map of its configuration_TYPE.py). */
static const char *count_key(const struct hf_reader *r, const char *usual)
{
	static const char *const names[] = {"num_experts", "num_local_experts"};
	for (size_t i = 0; i < COUNT(names) && !hf_get(r, usual); i++)
		usual = hf_get(r, names[i]) ? names[i] : usual;
	return usual;
}

/* `missing`, `per_token`: the counts of a file that has none. */
static void read_experts(struct hf_reader *r, struct model *m, const char *count, int64_t missing, int64_t per_token,
	const char *width)
{
	m->experts = hf_int(r, count_key(r, count), KEY_model_experts, missing);
	m->experts_per_token = hf_int(r, "num_experts_per_tok", KEY_model_experts_per_token, per_token);
	m->moe_ffn_hidden = hf_int(r, width, KEY_model_moe_ffn_hidden, m->ffn_hidden);
}

/* mlp_only_layers: layers without experts, which must be the first ones. */
static void read_dense_layers(struct hf_reader *r, struct model *m)
{
	const json_t *dense = hf_get(r, "mlp_only_layers"), *v;
	size_t i;
	m->moe_layer_freq = hf_int(r, "decoder_sparse_step", KEY_model_moe_layer_freq, 1);
	m->first_dense_layers = (int64_t)json_array_size(dense);
	json_array_foreach(dense, i, v) if (json_integer_value(v) != (json_int_t)i)
		hf_fail(r, "mlp_only_layers", "dense layers between those with experts cannot be described");
}

void hf_type_mixtral(struct hf_reader *r, struct model *m)
{
	hf_type_mistral(r, m);
	read_experts(r, m, "num_local_experts", 8, 2, "intermediate_size");
}

void hf_type_phimoe(struct hf_reader *r, struct model *m)
{
	hf_type_mixtral(r, m);
	m->norm = NORM_LAYERNORM;
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
}

void hf_type_qwen2_moe(struct hf_reader *r, struct model *m)
{
	hf_type_qwen2(r, m);
	read_experts(r, m, "num_experts", 60, 4, "moe_intermediate_size");
	const int64_t shared = hf_int(r, "shared_expert_intermediate_size", KEY_model_ffn_hidden, m->moe_ffn_hidden);
	m->shared_experts = shared / m->moe_ffn_hidden;
	m->shared_expert_gate = true;
	if (shared % m->moe_ffn_hidden != 0)
		hf_fail(r, "shared_expert_intermediate_size", "expected a multiple of moe_intermediate_size");
	read_dense_layers(r, m);
}

void hf_type_qwen3_moe(struct hf_reader *r, struct model *m)
{
	hf_type_qwen3(r, m);
	read_experts(r, m, "num_experts", 128, 8, "moe_intermediate_size");
	read_dense_layers(r, m);
}

void hf_type_olmoe(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qk_norm = QK_NORM_FULL;
	read_experts(r, m, "num_experts", 64, 8, "intermediate_size");
}

/* The experts' biases are left out: 3 x their width and hidden an expert. */
void hf_type_gpt_oss(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->head_dim = hf_int(r, "head_dim", KEY_model_head_dim, 64);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", true);
	read_experts(r, m, "num_local_experts", 128, 4, "intermediate_size");
	hf_read_mixed_window(r, m, 128, 2);
	m->attention_sinks = m->expert_bias = true;
	hf_leaves_out(r, "the experts' biases");
}

/* One group is none. A correction bias has the router without a loss of its own (topk_method noaux_tc). */
static void read_groups(struct hf_reader *r, struct model *m)
{
	const char *method = json_string_value(hf_get(r, "topk_method"));
	const int64_t groups = hf_get(r, "n_group") ? hf_int(r, "n_group", KEY_model_expert_groups, 0) : 0;
	m->router_bias = method && strcmp(method, "noaux_tc") == 0;
	if (groups <= 1)
		return;
	m->expert_groups = groups;
	m->groups_per_token = hf_int(r, "topk_group", KEY_model_groups_per_token, 1);
}

/* mlp_layer_types: "dense" of the first layers alone; `missing` of them where the list is. */
static void read_first_dense(struct hf_reader *r, struct model *m, int64_t missing)
{
	const json_t *kinds = hf_get(r, "mlp_layer_types"), *v;
	size_t i;
	m->first_dense_layers = hf_get(r, "first_k_dense_replace")
	                                ? hf_int(r, "first_k_dense_replace", KEY_model_first_dense_layers, missing)
	                                : missing;
	if (kinds)
		m->first_dense_layers = 0;
	json_array_foreach(kinds, i, v)
	{
		const char *kind = json_string_value(v);
		if (!kind || strcmp(kind, "dense") != 0)
			continue;
		if ((json_int_t)i != m->first_dense_layers++)
			hf_fail(r, "mlp_layer_types", "dense layers between those with experts cannot be described");
	}
}

/* Shared experts, dense layers first, as DeepSeek names them. */
static void read_deepseek_experts(struct hf_reader *r, struct model *m)
{
	const char *shared = hf_get(r, "num_shared_experts") ? "num_shared_experts" : "n_shared_experts";
	read_experts(r, m, hf_get(r, "num_experts") ? "num_experts" : "n_routed_experts", 0, 8,
		"moe_intermediate_size"); /* Sarvam's own names are the first ones */
	m->shared_experts = hf_get(r, shared) ? hf_int(r, shared, KEY_model_shared_experts, 0) : 0;
	read_first_dense(r, m, 0);
	m->moe_layer_freq = hf_int(r, "moe_layer_freq", KEY_model_moe_layer_freq, 1);
	read_groups(r, m);
	if (hf_get(r, "num_nextn_predict_layers"))
		hf_leaves_out(r, "layers that predict further tokens (num_nextn_predict_layers; model.mtp_layers)");
}

void hf_read_latent(struct hf_reader *r, struct model *m, int64_t value_dim)
{
	const int64_t nope = hf_int(r, "qk_nope_head_dim", KEY_model_head_dim, 128);
	m->kv_heads = m->heads;
	m->kv_lora_rank = hf_int(r, "kv_lora_rank", KEY_model_kv_lora_rank, 512);
	m->q_lora_rank = hf_get(r, "q_lora_rank") ? hf_int(r, "q_lora_rank", KEY_model_q_lora_rank, 0) : 0;
	m->rope_head_dim = hf_int(r, "qk_rope_head_dim", KEY_model_rope_head_dim, 64);
	m->v_head_dim = hf_int(r, "v_head_dim", KEY_model_v_head_dim, value_dim);
	m->head_dim = nope + m->rope_head_dim;
}

void hf_type_deepseek(struct hf_reader *r, struct model *m)
{
	if (!hf_bool(r, "use_mla", true)) { /* DeepSeek-OCR's language model */
		hf_type_deepseek_moe(r, m);
		return;
	}
	hf_read_llama_like(r, m);
	hf_read_latent(r, m, 128);
	read_deepseek_experts(r, m);
}

/* DeepSeek-V3, whose router always has a correction bias in transformers 5: its files name no topk_method. */
void hf_type_deepseek_v3(struct hf_reader *r, struct model *m)
{
	hf_type_deepseek(r, m);
	m->router_bias |= !hf_get(r, "topk_method");
}

/* MiniCPM 3: latent attention, and no experts. */
void hf_type_minicpm3(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	const int64_t width = m->head_dim; /* of a value, where that is not given */
	hf_read_latent(r, m, width);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

/* GLM-4.7-Flash. */
void hf_type_glm4_moe_lite(struct hf_reader *r, struct model *m)
{
	hf_type_deepseek(r, m);
	m->router_bias = true;
}

/* DeepSeekMoE 16B: Llama's attention. */
void hf_type_deepseek_moe(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	read_deepseek_experts(r, m);
}

/* DeepSeek-V3.2: an indexer chooses the keys that a query sees. */
void hf_type_deepseek_v32(struct hf_reader *r, struct model *m)
{
	hf_type_deepseek_v3(r, m);
	hf_leaves_out(r, "the indexer of its sparse attention: a query sees all keys");
}

/* MiniMax-M2: one norm for all heads' queries, one for their keys. */
void hf_type_minimax_m2(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	read_experts(r, m, "num_local_experts", 256, 8, "intermediate_size");
	m->qk_norm = hf_bool(r, "use_qk_norm", true) ? QK_NORM_FULL : QK_NORM_NONE;
	m->router_bias = hf_bool(r, "use_routing_bias", true);
	if (hf_bool(r, "use_mtp", false))
		hf_leaves_out(r, "layers that predict further tokens (use_mtp; model.mtp_layers)");
}

void hf_type_glm4_moe(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "attention_bias", false);
	m->qk_norm = hf_bool(r, "use_qk_norm", false) ? QK_NORM_HEAD : QK_NORM_NONE;
	read_deepseek_experts(r, m);
	m->router_bias = true;
}

/* Experts under the names that K-EXAONE and Hy3 have. */
static void read_shared_experts(struct hf_reader *r, struct model *m, int64_t count)
{
	read_experts(r, m, "num_experts", count, 8, "moe_intermediate_size");
	m->shared_experts = hf_int(r, "num_shared_experts", KEY_model_shared_experts, 1);
	m->router_bias = true;
	read_first_dense(r, m, 1);
	if (hf_get(r, "num_nextn_predict_layers"))
		hf_leaves_out(r, "layers that predict further tokens (num_nextn_predict_layers; model.mtp_layers)");
}

/* K-EXAONE: EXAONE 4's attention behind norms before the branches. */
void hf_type_exaone_moe(struct hf_reader *r, struct model *m)
{
	hf_type_exaone4(r, m);
	m->branch_norm = BRANCH_NORM_NONE;
	read_shared_experts(r, m, 64);
}

/* Hunyuan 3. */
void hf_type_hy_v3(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	m->qk_norm = QK_NORM_HEAD;
	read_shared_experts(r, m, 192);
}

/* Mellum 2: Qwen 3's layers, whose windows layer_types tells. */
void hf_type_mellum(struct hf_reader *r, struct model *m)
{
	hf_type_qwen3(r, m);
	m->sliding_window = 0;
	read_experts(r, m, "num_experts", 64, 8, "moe_intermediate_size");
	read_first_dense(r, m, 0);
	if (!r->st && hf_get(r, "layer_types"))
		hf_read_listed_window(r, m);
}

/* Sarvam 30B: GLM-4.5's blocks, with norms of queries and keys. */
void hf_type_sarvam_moe(struct hf_reader *r, struct model *m)
{
	hf_type_glm4_moe(r, m);
	m->qkv_bias = hf_bool(r, hf_get(r, "use_qkv_bias") ? "use_qkv_bias" : "attention_bias", false);
	m->qk_norm = hf_bool(r, "use_qk_norm", true) ? QK_NORM_HEAD : QK_NORM_NONE;
}

void hf_type_llama4(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	if (hf_get(outer, "vision_config"))
		hf_leaves_out(outer, "the vision tower");
	hf_read_llama_like(&r, m);
	read_experts(&r, m, "num_local_experts", 16, 1, "intermediate_size");
	m->ffn_hidden = hf_int(&r, "intermediate_size_mlp", KEY_model_ffn_hidden, m->ffn_hidden);
	m->shared_experts = 1;
	m->moe_layer_freq = hf_int(&r, "interleave_moe_layer_step", KEY_model_moe_layer_freq, 1);
	m->sliding_window = hf_int(&r, "attention_chunk_size", KEY_model_sliding_window, 8192);
	m->window_kind = WINDOW_CHUNKED;
	hf_read_no_rope(&r, m, 4);
	m->global_attention_every = m->no_rope_every;
	outer->st = r.st;
}

void hf_type_dbrx(struct hf_reader *r, struct model *m)
{
	struct hf_reader attention = hf_inside(r, "attn_config"), ffn = hf_inside(r, "ffn_config");
	m->layers = hf_int(r, "n_layers", KEY_model_layers, 24);
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, 2048);
	m->heads = hf_int(r, "n_heads", KEY_model_heads, 16);
	m->kv_heads = hf_int(&attention, "kv_n_heads", KEY_model_kv_heads, 1);
	m->head_dim = hf_head_dim_of(r, m, "d_model");
	m->ffn_hidden = m->moe_ffn_hidden = hf_int(&ffn, "ffn_hidden_size", KEY_model_ffn_hidden, 3584);
	m->experts = hf_int(&ffn, "moe_num_experts", KEY_model_experts, 4);
	m->experts_per_token = hf_int(&ffn, "moe_top_k", KEY_model_experts_per_token, 1);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 32000);
	hf_read_positions(r, m, "max_seq_len", 2048);
	m->position = POS_ROPE;
	m->mlp = MLP_SWIGLU;
	m->norm = NORM_LAYERNORM;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", false);
	r->st = r->st ? r->st : attention.st ? attention.st : ffn.st;
}

/* Grok-1: four norms a layer, gated experts (the port of hpcai-tech/grok-1). */
void hf_type_grok(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->mlp = MLP_GEGLU;
	m->branch_norm = BRANCH_NORM_SANDWICH;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	m->experts = hf_int(r, "num_experts", KEY_model_experts, 8);
	m->experts_per_token = hf_int(r, "num_experts_per_token", KEY_model_experts_per_token, 2);
	m->moe_ffn_hidden = m->ffn_hidden;
	m->attention_softcap = hf_whole(r, "max_attn_value", KEY_model_attention_softcap);
}

void hf_type_dots1(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	m->qk_norm = QK_NORM_HEAD;
	read_deepseek_experts(r, m);
}

/* ERNIE 4.5: experts in every layer from moe_layer_start_index to the last. */
void hf_type_ernie4_5_moe(struct hf_reader *r, struct model *m)
{
	hf_type_ernie4_5(r, m);
	m->experts = hf_int(r, "moe_num_experts", KEY_model_experts, 64);
	m->experts_per_token = hf_int(r, "moe_k", KEY_model_experts_per_token, 6);
	m->moe_ffn_hidden = hf_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 1536);
	m->shared_experts = hf_int(r, "moe_num_shared_experts", KEY_model_shared_experts, 2);
	m->first_dense_layers = hf_int(r, "moe_layer_start_index", KEY_model_first_dense_layers, 1);
	const json_t *end = hf_get(r, "moe_layer_end_index");
	if (hf_int(r, "moe_layer_interval", KEY_model_moe_layer_freq, 1) != 1)
		hf_fail(r, "moe_layer_interval", "expected 1");
	if (end && json_integer_value(end) >= 0 && json_integer_value(end) != m->layers - 1)
		hf_fail(r, "moe_layer_end_index", "dense layers behind those with experts cannot be described");
}

/* Granite's experts; the shared one is as wide as several of the others. */
void hf_type_granitemoe(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	read_experts(r, m, "num_local_experts", 8, 2, "intermediate_size");
	const json_t *width = hf_get(r, "shared_intermediate_size");
	const int64_t shared = width && json_integer_value(width) != 0
	                               ? hf_int(r, "shared_intermediate_size", KEY_model_ffn_hidden, 0)
	                               : 0;
	m->shared_experts = shared / m->moe_ffn_hidden;
	if (shared % m->moe_ffn_hidden != 0)
		hf_fail(r, "shared_intermediate_size", "expected a multiple of intermediate_size");
}

/* FlexOlmo: OLMo 2 with experts. */
void hf_type_flex_olmo(struct hf_reader *r, struct model *m)
{
	hf_type_olmo2(r, m);
	read_experts(r, m, "num_experts", 7, 5, "intermediate_size");
}

/* Ling and Ring, whose second version has norms of queries and keys. */
static void read_bailing(struct hf_reader *r, struct model *m, bool normed)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "use_qkv_bias", false);
	m->bias = m->proj_bias = hf_bool(r, "use_bias", false);
	m->qk_norm = hf_bool(r, "use_qk_norm", normed) ? QK_NORM_HEAD : QK_NORM_NONE;
	read_experts(r, m, "num_experts", 16, 2, "moe_intermediate_size");
	m->first_dense_layers = hf_get(r, "first_k_dense_replace")
	                                ? hf_int(r, "first_k_dense_replace", KEY_model_first_dense_layers, 0)
	                                : 0;
	m->shared_experts = hf_get(r, "num_shared_experts")
	                            ? hf_int(r, "num_shared_experts", KEY_model_shared_experts, 0)
	                            : 0;
	read_groups(r, m);
	m->router_bias = hf_bool(r, "moe_router_enable_expert_bias", normed);
	const json_t *further = hf_get(r, "num_nextn_predict_layers");
	if (further && json_integer_value(further) > 0)
		hf_leaves_out(r, "layers that predict further tokens (num_nextn_predict_layers; model.mtp_layers)");
}

void hf_type_bailing_moe(struct hf_reader *r, struct model *m) { read_bailing(r, m, false); }

void hf_type_bailing_moe_v2(struct hf_reader *r, struct model *m) { read_bailing(r, m, true); }

/* Returns a number that is also given as a list of every layer's, which must be alike. */
static int64_t of_all_layers(struct hf_reader *r, const char *key, enum key_id range, int64_t missing)
{
	const json_t *list = hf_get(r, key), *v;
	const json_int_t first = json_integer_value(json_array_get(list, 0));
	size_t i;
	if (!json_is_array(list))
		return hf_int(r, key, range, missing);
	json_array_foreach(list, i, v) if (!json_is_integer(v) || json_integer_value(v) != first)
		hf_fail(r, key, "expected one number for all layers");
	if ((double)first < config_key(range)->low || (double)first > config_key(range)->high)
		hf_fail(r, key, "out of range");
	return r->st ? 1 : first;
}

/* Hunyuan-A13B: its MLPs' width is that of an expert. */
void hf_type_hunyuan_moe(struct hf_reader *r, struct model *m)
{
	hf_type_hunyuan(r, m);
	m->experts = of_all_layers(r, "num_experts", KEY_model_experts, 1);
	m->experts_per_token = of_all_layers(r, "moe_topk", KEY_model_experts_per_token, 1);
	m->moe_ffn_hidden = of_all_layers(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, m->ffn_hidden);
	if (hf_bool(r, "use_mixed_mlp_moe", true))
		m->shared_experts = of_all_layers(r, "num_shared_expert", KEY_model_shared_experts, 1);
}

/* Trinity: attention with a gate, windows with rope and every fourth layer without both. */
void hf_type_afmoe(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->branch_norm = BRANCH_NORM_SANDWICH;
	m->qk_norm = QK_NORM_HEAD;
	m->attention_gate = true;
	hf_read_mixed_window(r, m, 2048, hf_int(r, "global_attn_every_n_layers", KEY_model_global_attention_every, 4));
	m->no_rope_every = m->global_attention_every;
	read_experts(r, m, "num_experts", 64, 6, "moe_intermediate_size");
	m->shared_experts = hf_int(r, "num_shared_experts", KEY_model_shared_experts, 2);
	m->first_dense_layers = hf_int(r, "num_dense_layers", KEY_model_first_dense_layers, 1);
	m->router_bias = true;
}
