/* What several types of Hugging Face models share. */
#include <string.h>

#include "base/array.h"
#include "step/import/hf_reader.h"

int64_t hf_head_dim_of(struct hf_reader *r, const struct model *m, const char *hidden_key)
{
	if (hf_get(r, "head_dim"))
		return hf_int(r, "head_dim", KEY_model_head_dim, 0);
	/* transformers rounds down for qwen3_moe, glm4_moe and others with experts, whose heads have columns of their
	 * own */
	const bool rounds = hf_get(r, "kv_lora_rank") || hf_get(r, "num_experts") || hf_get(r, "n_routed_experts");
	if (m->hidden % m->heads != 0 && !rounds)
		hf_fail(r, hidden_key, "not a multiple of the number of heads");
	return m->hidden / m->heads;
}

void hf_read_positions(struct hf_reader *r, struct model *m, const char *key, int64_t missing)
{
	m->seq_len = r->out->longest_seq = hf_int(r, key, KEY_model_seq_len, missing);
}

/* Returns the name of the MLPs' width; where only experts have one, theirs stands for it. */
static const char *width_key(const struct hf_reader *r)
{
	static const char *const others[] = {"block_ff_dim", "moe_intermediate_size"};
	for (size_t i = 0; i < COUNT(others) && !hf_get(r, "intermediate_size"); i++)
		if (json_is_integer(hf_get(r, others[i])))
			return others[i];
	return "intermediate_size";
}

void hf_read_sizes(struct hf_reader *r, struct model *m)
{
	/* Nemotron-H's list stands for their number */
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers,
		(int64_t)json_array_size(hf_get(r, "layers_block_type")));
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 0);
	m->heads = hf_int(r, "num_attention_heads", KEY_model_heads, 0);
	m->kv_heads = hf_int(r, "num_key_value_heads", KEY_model_kv_heads, m->heads);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, width_key(r), KEY_model_ffn_hidden, 0);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 0);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->position = POS_ROPE;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", false);
}

void hf_set_bias(struct model *m, bool attention, bool mlp)
{
	m->qkv_bias = m->proj_bias = attention;
	m->bias = mlp;
}

void hf_read_llama_like(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = hf_activation(r, "hidden_act", "silu", true);
	m->norm = NORM_RMSNORM;
}

void hf_read_window(struct hf_reader *r, struct model *m, bool used, int64_t missing)
{
	if (hf_bool(r, "use_sliding_window", used) && (missing || hf_get(r, "sliding_window")))
		m->sliding_window = hf_int(r, "sliding_window", KEY_model_sliding_window, missing);
}

void hf_read_mixed_window(struct hf_reader *r, struct model *m, int64_t window, int64_t every)
{
	const json_t *types = hf_get(r, "layer_types"), *v;
	size_t i;
	m->sliding_window = hf_int(r, "sliding_window", KEY_model_sliding_window, window);
	const char *letters = json_string_value(hf_get(r, "sliding_window_pattern")); /* "LLLG" */
	m->global_attention_every = letters ? (int64_t)strlen(letters)
	                                    : hf_int(r, "sliding_window_pattern", KEY_model_global_attention_every,
						      every);
	if (letters && (m->global_attention_every < 2 || strchr(letters, 'G') != letters + strlen(letters) - 1))
		hf_fail(r, "sliding_window_pattern", "expected one G behind at least an L");
	json_array_foreach(types, i, v)
	{
		const char *type = json_string_value(v);
		const bool global = (int64_t)(i + 1) % m->global_attention_every == 0;
		if (!type || (strcmp(type, "full_attention") == 0) != global) {
			hf_fail(r, "layer_types", "expected full attention in the last of every so many layers alone");
			return;
		}
	}
}

void hf_read_listed_window(struct hf_reader *r, struct model *m)
{
	const json_t *kinds = hf_get(r, "layer_types"), *v;
	int64_t every = 0, windows = 0;
	size_t i;
	json_array_foreach(kinds, i, v)
	{
		const bool full = json_is_string(v) && strcmp(json_string_value(v), "full_attention") == 0;
		every = every == 0 && full ? (int64_t)i + 1 : every;
		windows += !full;
	}
	if (every == 0)
		hf_read_window(r, m, true, 0);
	else if (windows > 0 && hf_get(r, "sliding_window"))
		hf_read_mixed_window(r, m, 4096, every);
}

void hf_read_no_rope(struct hf_reader *r, struct model *m, int64_t every)
{
	const json_t *layers = hf_get(r, "no_rope_layers"), *v;
	size_t i;
	m->no_rope_every = hf_int(r, "no_rope_layer_interval", KEY_model_no_rope_every, every);
	json_array_foreach(layers, i, v)
	{
		const bool without = m->no_rope_every > 0 && (int64_t)(i + 1) % m->no_rope_every == 0;
		if (!json_is_integer(v) || (json_integer_value(v) == 0) != without) {
			hf_fail(r, "no_rope_layers", "expected 0 for the last of every so many layers alone");
			return;
		}
	}
}
