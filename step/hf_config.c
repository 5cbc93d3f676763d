#include "step/hf_config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/suggest.h"
#include "step/config_keys.h"

#define FILE_LIMIT_B ((size_t)1 << 20)

struct reader {
	const json_t *root;
	const char *name;
	struct error *e;
	enum status st; /* the first failure; readers do nothing after it */
};

static void fail(struct reader *r, const char *key, const char *what)
{
	if (!r->st)
		r->st = error_set(r->e, ST_INPUT, "%s: %s: %s", r->name, key, what);
}

/* null counts as missing, as in transformers. */
static const json_t *get(const struct reader *r, const char *key)
{
	const json_t *v = json_object_get(r->root, key);
	return v && !json_is_null(v) ? v : NULL;
}

/* An integer in the range that the config's own key has; `missing` 0: the key must be there. */
static int64_t get_int(struct reader *r, const char *key, enum key_id range, int64_t missing)
{
	const json_t *v = get(r, key);
	const struct config_key *k = config_key(range);
	char what[96];
	if (!v && missing != 0)
		return missing;
	if (json_is_integer(v) && (double)json_integer_value(v) >= k->low && (double)json_integer_value(v) <= k->high)
		return json_integer_value(v);
	snprintf(what, sizeof what, "%s an integer from %.0f to %.0f", v ? "expected" : "missing: expected", k->low,
		k->high);
	fail(r, key, what);
	return 1;
}

static bool get_bool(struct reader *r, const char *key, bool missing)
{
	const json_t *v = get(r, key);
	if (!v)
		return missing;
	if (!json_is_boolean(v))
		fail(r, key, "expected true or false");
	return json_is_true(v);
}

static const struct activation {
	const char *name;
	enum mlp plain, gated; /* MLP_COUNT: there is none */
} activations[] = {
	{"gelu", MLP_GELU, MLP_GEGLU},
	{"gelu_new", MLP_GELU, MLP_GEGLU},
	{"gelu_fast", MLP_GELU, MLP_GEGLU},
	{"gelu_pytorch_tanh", MLP_GELU, MLP_GEGLU},
	{"relu", MLP_RELU, MLP_COUNT},
	{"relu2", MLP_SQUARED_RELU, MLP_COUNT},
	{"silu", MLP_COUNT, MLP_SWIGLU},
	{"swish", MLP_COUNT, MLP_SWIGLU},
};

static enum mlp get_activation(struct reader *r, const char *key, const char *missing, bool gated)
{
	const json_t *v = get(r, key);
	const char *name = v ? json_string_value(v) : missing;
	for (size_t i = 0; name && i < COUNT(activations); i++) {
		enum mlp m = gated ? activations[i].gated : activations[i].plain;
		if (strcmp(activations[i].name, name) == 0 && m != MLP_COUNT)
			return m;
	}
	fail(r, key, gated ? "expected silu or a gelu" : "expected a gelu, relu or relu2");
	return MLP_GELU;
}

static int64_t head_dim_of(struct reader *r, const struct model *m, const char *hidden_key)
{
	if (m->hidden % m->heads != 0)
		fail(r, hidden_key, "not a multiple of the number of heads");
	return m->hidden / m->heads;
}

/* ---- the model types ---- */

/* The sizes under the names that most types use. */
static void read_sizes(struct reader *r, struct model *m)
{
	m->layers = get_int(r, "num_hidden_layers", KEY_model_layers, 0);
	m->hidden = get_int(r, "hidden_size", KEY_model_hidden, 0);
	m->heads = m->kv_heads = get_int(r, "num_attention_heads", KEY_model_heads, 0);
	m->ffn_hidden = get_int(r, "intermediate_size", KEY_model_ffn_hidden, 0);
	m->vocab = get_int(r, "vocab_size", KEY_model_vocab, 0);
	m->seq_len = get_int(r, "max_position_embeddings", KEY_model_seq_len, 2048);
	m->position = POS_ROPE;
	m->tied_embeddings = get_bool(r, "tie_word_embeddings", false);
}

/* Llama and its kin: pre-norm RMSNorm, rope, gated MLP. */
static void read_llama_like(struct reader *r, struct model *m)
{
	read_sizes(r, m);
	m->kv_heads = get_int(r, "num_key_value_heads", KEY_model_kv_heads, m->heads);
	m->head_dim = get(r, "head_dim") ? get_int(r, "head_dim", KEY_model_head_dim, 0)
	                                 : head_dim_of(r, m, "hidden_size");
	m->mlp = get_activation(r, "hidden_act", "silu", true);
	m->norm = NORM_RMSNORM;
}

static void read_llama(struct reader *r, struct model *m)
{
	read_llama_like(r, m);
	bool attention = get_bool(r, "attention_bias", false), mlp = get_bool(r, "mlp_bias", false);
	if (attention != mlp)
		fail(r, attention ? "attention_bias" : "mlp_bias",
			"a bias on attention or on the MLP alone cannot be described");
	m->bias = m->qkv_bias = attention;
}

static void read_mistral(struct reader *r, struct model *m)
{
	read_llama_like(r, m);
	m->sliding_window = get(r, "sliding_window") ? get_int(r, "sliding_window", KEY_model_sliding_window, 0) : 0;
}

static void read_mixtral(struct reader *r, struct model *m)
{
	read_mistral(r, m);
	m->experts = get_int(r, "num_local_experts", KEY_model_experts, 8);
	m->experts_per_token = get_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 2);
	m->moe_ffn_hidden = m->ffn_hidden;
}

/* The norms of each head's queries and keys are left out: 2 x head_dim weights a layer. */
static void read_qwen3_moe(struct reader *r, struct model *m)
{
	read_llama_like(r, m);
	m->experts = get_int(r, "num_experts", KEY_model_experts, 128);
	m->experts_per_token = get_int(r, "num_experts_per_tok", KEY_model_experts_per_token, 8);
	m->moe_ffn_hidden = get_int(r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 768);
	bool dense = json_array_size(get(r, "mlp_only_layers")) > 0;
	if (dense || get_int(r, "decoder_sparse_step", KEY_model_moe_layer_freq, 1) != 1)
		fail(r, dense ? "mlp_only_layers" : "decoder_sparse_step",
			"dense layers between those with experts cannot be described");
	if (get_bool(r, "attention_bias", false))
		fail(r, "attention_bias", "a bias on attention alone cannot be described");
	if (get_bool(r, "use_sliding_window", false))
		m->sliding_window = get_int(r, "sliding_window", KEY_model_sliding_window, 4096);
}

static void read_qwen2(struct reader *r, struct model *m)
{
	read_llama_like(r, m);
	m->qkv_bias = true; /* transformers' Qwen2Attention: q, k and v have a bias, o has none */
	if (get_bool(r, "use_sliding_window", false))
		m->sliding_window = get_int(r, "sliding_window", KEY_model_sliding_window, 4096);
}

static void read_gpt2(struct reader *r, struct model *m)
{
	m->layers = get_int(r, "n_layer", KEY_model_layers, 12);
	m->hidden = get_int(r, "n_embd", KEY_model_hidden, 768);
	m->heads = m->kv_heads = get_int(r, "n_head", KEY_model_heads, 12);
	m->head_dim = head_dim_of(r, m, "n_embd");
	m->ffn_hidden = get_int(r, "n_inner", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = get_int(r, "vocab_size", KEY_model_vocab, 50257);
	m->seq_len = m->max_positions = get_int(r, "n_positions", KEY_model_seq_len, 1024);
	m->mlp = get_activation(r, "activation_function", "gelu_new", false);
	m->norm = NORM_LAYERNORM;
	m->position = POS_LEARNED;
	m->bias = m->qkv_bias = true;
	m->tied_embeddings = get_bool(r, "tie_word_embeddings", true);
}

static void read_gpt_neox(struct reader *r, struct model *m)
{
	read_sizes(r, m);
	m->head_dim = head_dim_of(r, m, "hidden_size");
	m->mlp = get_activation(r, "hidden_act", "gelu", false);
	m->norm = NORM_LAYERNORM;
	m->bias = m->qkv_bias = true;
	if (!get_bool(r, "attention_bias", true))
		fail(r, "attention_bias", "a bias on the MLP alone cannot be described");
	m->parallel_residual = get_bool(r, "use_parallel_residual", true);
}

static const struct {
	const char *name;
	void (*read)(struct reader *r, struct model *m);
} types[] = {
	{"llama", read_llama},
	{"mistral", read_mistral},
	{"mixtral", read_mixtral},
	{"gpt2", read_gpt2},
	{"gpt_neox", read_gpt_neox},
	{"qwen2", read_qwen2},
	{"qwen3_moe", read_qwen3_moe},
};

static void unknown_type(struct reader *r, const char *type)
{
	const char *names[COUNT(types)];
	for (size_t i = 0; i < COUNT(types); i++)
		names[i] = types[i].name;
	if (!type)
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: missing%s", r->name,
			suggest_known("", names, COUNT(types)).text);
	else
		r->st = error_set(r->e, ST_INPUT, "%s: model_type: unknown value \"%.60s\"%s", r->name, type,
			suggest_known(type, names, COUNT(types)).text);
}

static void read_model(struct reader *r, struct model *m)
{
	const char *type = json_string_value(get(r, "model_type"));
	memset(m, 0, sizeof *m); /* its bytes are sent: no padding may be undefined */
	m->causal = m->final_norm = m->lm_head = true;
	m->vocab_padding = m->moe_layer_freq = 1;
	m->experts_per_token = 2;
	for (size_t i = 0; type && i < COUNT(types); i++) {
		if (strcmp(types[i].name, type) != 0)
			continue;
		snprintf(m->name, sizeof m->name, "%s", type);
		types[i].read(r, m);
		if (m->experts == 0)
			m->moe_ffn_hidden = m->ffn_hidden;
		return;
	}
	unknown_type(r, type);
}

enum status hf_config_parse(const char *text, size_t len, const char *name, struct model *m, struct error *e)
{
	json_error_t where;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	if (!root)
		return error_set(e, ST_INPUT, "%s:%d:%d: %s", name, where.line, where.column, where.text);
	struct reader r = {.root = root, .name = name, .e = e};
	if (json_is_object(root))
		read_model(&r, m);
	else
		r.st = error_set(e, ST_INPUT, "%s:1:1: expected a JSON object", name);
	json_decref(root);
	return r.st;
}

enum status hf_config_load(const char *path, struct model *m, struct error *e)
{
	char *text = NULL;
	size_t len = 0;
	enum status st = file_read(path, FILE_LIMIT_B, &text, &len, e);
	if (!st)
		st = hf_config_parse(text, len, path, m, e);
	free(text);
	return st;
}
