/* Hugging Face models of GPT's kind: learned positions or none, plain MLPs, biases, branches side by side. Each is as
 * the transformers class of its name builds it, as in step/import/hf_dense.c. */
#include <string.h>

#include "step/import/hf_reader.h"

/* The sizes under GPT-2's names, with learned positions. */
static void read_gpt2_sizes(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "n_layer", KEY_model_layers, 12);
	m->hidden = hf_int(r, "n_embd", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, "n_head", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, "n_embd");
	m->ffn_hidden = hf_int(r, "n_inner", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 50257);
	hf_read_positions(r, m, "n_positions", 1024);
	m->max_positions = m->seq_len;
	m->position = POS_LEARNED;
	m->norm = NORM_LAYERNORM;
	m->mlp = hf_activation(r, "activation_function", "gelu_new", false);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

/* Phi-1.5 and Phi-2: both branches read one norm, which are two here. */
void hf_type_phi(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = hf_activation(r, "hidden_act", "gelu_new", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, true, true);
	m->parallel_residual = true;
}

void hf_type_gpt2(struct hf_reader *r, struct model *m)
{
	read_gpt2_sizes(r, m);
	hf_set_bias(m, true, true);
}

void hf_type_gpt_bigcode(struct hf_reader *r, struct model *m)
{
	read_gpt2_sizes(r, m);
	m->mlp = hf_activation(r, "activation_function", "gelu_pytorch_tanh", false);
	m->kv_heads = hf_bool(r, "multi_query", true) ? 1 : m->heads;
	hf_set_bias(m, true, true);
}

void hf_type_gptj(struct hf_reader *r, struct model *m)
{
	read_gpt2_sizes(r, m);
	m->max_positions = 0;
	m->position = POS_ROPE;
	hf_set_bias(m, false, true);
	m->parallel_residual = true;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", false);
}

void hf_type_gpt_neox(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = hf_activation(r, "hidden_act", "gelu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "attention_bias", true), true);
	m->parallel_residual = hf_bool(r, "use_parallel_residual", true);
}

void hf_type_opt(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 12);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 768);
	m->heads = m->kv_heads = hf_int(r, "num_attention_heads", KEY_model_heads, 12);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, "ffn_dim", KEY_model_ffn_hidden, 3072);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 50272);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->max_positions = m->seq_len + 2; /* OPTLearnedPositionalEmbedding begins at 2 */
	m->position = POS_LEARNED;
	m->mlp = hf_activation(r, "activation_function", "relu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "enable_bias", true), hf_bool(r, "enable_bias", true));
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	if (hf_int(r, "word_embed_proj_dim", KEY_model_hidden, m->hidden) != m->hidden)
		hf_fail(r, "word_embed_proj_dim", "an embedding of another width than the model's cannot be described");
	if (!hf_bool(r, "do_layer_norm_before", true))
		hf_fail(r, "do_layer_norm_before", "false cannot be described");
}

void hf_type_bloom(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "n_layer", KEY_model_layers, 2);
	m->hidden = hf_int(r, hf_get(r, "hidden_size") ? "hidden_size" : "n_embed", KEY_model_hidden, 64);
	m->heads = m->kv_heads = hf_int(r, hf_get(r, "n_head") ? "n_head" : "num_attention_heads", KEY_model_heads, 8);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = 4 * m->hidden;
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 250880);
	hf_read_positions(r, m, "seq_length", 2048);
	m->position = POS_ALIBI;
	m->mlp = MLP_GELU;
	m->composed_gelu = true; /* modeling_bloom.py, bloom_gelu_forward */
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, true, true);
	m->embedding_norm = m->tied_embeddings = true;
}

/* Falcon 7B: one norm serves both branches, which are two here. Its norms have biases, which are left out with those of
 * the linear layers. */
void hf_type_falcon(struct hf_reader *r, struct model *m)
{
	const bool later = hf_bool(r, "new_decoder_architecture", false);
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, 32);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 4544);
	m->heads = hf_int(r, "num_attention_heads", KEY_model_heads, 71);
	m->kv_heads = later                             ? hf_int(r, "num_kv_heads", KEY_model_kv_heads, m->heads)
	              : hf_bool(r, "multi_query", true) ? 1
	                                                : m->heads;
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, "ffn_hidden_size", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 65024);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->position = hf_bool(r, "alibi", false) ? POS_ALIBI : POS_ROPE;
	m->mlp = MLP_GELU;
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "bias", false), hf_bool(r, "bias", false));
	m->parallel_residual = later || hf_bool(r, "parallel_attn", true);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

void hf_type_mpt(struct hf_reader *r, struct model *m)
{
	struct hf_reader attention = hf_inside(r, "attn_config");
	m->layers = hf_int(r, "n_layers", KEY_model_layers, 24);
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, 2048);
	m->heads = m->kv_heads = hf_int(r, "n_heads", KEY_model_heads, 16);
	m->head_dim = hf_head_dim_of(r, m, "d_model");
	m->ffn_hidden = m->hidden * hf_int(r, "expansion_ratio", KEY_model_heads, 4);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 50368);
	hf_read_positions(r, m, "max_seq_len", 2048);
	m->position = hf_bool(&attention, "alibi", true) ? POS_ALIBI : POS_LEARNED;
	m->max_positions = m->position == POS_LEARNED ? m->seq_len : 0;
	m->mlp = MLP_GELU;
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, !hf_bool(r, "no_bias", true), !hf_bool(r, "no_bias", true));
	m->tied_embeddings = true;
}

void hf_type_starcoder2(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = hf_activation(r, "hidden_act", "gelu_pytorch_tanh", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, hf_bool(r, "use_bias", true), hf_bool(r, "use_bias", true));
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	hf_read_window(r, m, true, 0);
}

/* Returns whether every second layer of GPT-Neo has a window: [[["global", "local"], 12]]. */
static bool alternates(const struct hf_reader *r)
{
	const json_t *kinds = json_array_get(json_array_get(hf_get(r, "attention_types"), 0), 0);
	const char *second = json_string_value(json_array_get(kinds, 1));
	return !hf_get(r, "attention_types") || (second && strcmp(second, "local") == 0);
}

/* GPT-Neo: every second layer has a window; that is the first of two here. */
void hf_type_gpt_neo(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_layers", KEY_model_layers, 24);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 2048);
	m->heads = m->kv_heads = hf_int(r, "num_heads", KEY_model_heads, 16);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, "intermediate_size", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 50257);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->max_positions = m->seq_len;
	m->position = POS_LEARNED;
	m->norm = NORM_LAYERNORM;
	m->mlp = hf_activation(r, "activation_function", "gelu_new", false);
	hf_set_bias(m, false, true);
	m->proj_bias = true;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	if (alternates(r)) {
		m->sliding_window = hf_int(r, "window_size", KEY_model_sliding_window, 256);
		m->global_attention_every = 2;
	}
}

/* The first GPT: norms behind the branches, and none behind the last. */
void hf_type_openai_gpt(struct hf_reader *r, struct model *m)
{
	read_gpt2_sizes(r, m);
	m->max_positions = m->seq_len = r->out->longest_seq = hf_int(r, "n_positions", KEY_model_seq_len, 512);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 40478);
	m->mlp = hf_activation(r, "afn", "gelu", false);
	m->composed_gelu = m->mlp == MLP_GELU; /* modeling_openai.py, ACT_FNS: "gelu" is gelu_new */
	hf_set_bias(m, true, true);
	m->post_norm = true;
	m->final_norm = false;
}

/* XGLM: positions are sines. */
void hf_type_xglm(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_layers", KEY_model_layers, 24);
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, 1024);
	m->heads = m->kv_heads = hf_int(r, "attention_heads", KEY_model_heads, 16);
	m->head_dim = hf_head_dim_of(r, m, "d_model");
	m->ffn_hidden = hf_int(r, "ffn_dim", KEY_model_ffn_hidden, 4096);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 256008);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->position = POS_SINCOS;
	m->max_positions = m->seq_len;
	m->norm = NORM_LAYERNORM;
	m->mlp = hf_activation(r, "activation_function", "gelu", false);
	hf_set_bias(m, true, true);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

/* BioGPT: GPT-2 under BERT's names. */
void hf_type_biogpt(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->position = POS_LEARNED;
	m->max_positions = m->seq_len + 2; /* BioGptLearnedPositionalEmbedding begins at 2 */
	m->mlp = hf_activation(r, "hidden_act", "gelu", false);
	m->norm = NORM_LAYERNORM;
	hf_set_bias(m, true, true);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}
