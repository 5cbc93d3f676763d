/* Hugging Face models without experts, each as the transformers class of its name builds it
 * (https://github.com/huggingface/transformers, src/transformers/models/TYPE/modeling_TYPE.py). */
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

void hf_type_llama(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_set_bias(m, hf_bool(r, "attention_bias", false), hf_bool(r, "mlp_bias", false));
}

void hf_type_mistral(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_read_window(r, m, true, 0);
}

/* Ministral: windows on all layers, or on all but the last of every so many. */
void hf_type_ministral(struct hf_reader *r, struct model *m)
{
	const json_t *kinds = hf_get(r, "layer_types"), *v;
	int64_t every = 0;
	size_t i;
	hf_read_llama_like(r, m);
	json_array_foreach(kinds, i, v) if (every == 0 && json_is_string(v) &&
					    strcmp(json_string_value(v), "full_attention") == 0) every = (int64_t)i + 1;
	if (every == 0)
		hf_read_window(r, m, true, 0);
	else if (every > 1 && hf_get(r, "sliding_window"))
		hf_read_mixed_window(r, m, 4096, every);
}

void hf_type_qwen2(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = true; /* o_proj has none */
	hf_read_window(r, m, false, 4096);
}

void hf_type_qwen3(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	m->qk_norm = QK_NORM_HEAD;
	hf_read_window(r, m, false, 4096);
}

void hf_type_gemma(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	const char *key = hf_get(r, "hidden_activation") ? "hidden_activation" : "hidden_act";
	m->mlp = hf_activation(r, key, "gelu_pytorch_tanh", true);
	m->norm = NORM_RMSNORM;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

void hf_type_gemma2(struct hf_reader *r, struct model *m)
{
	hf_type_gemma(r, m);
	m->branch_norm = BRANCH_NORM_SANDWICH;
	hf_read_mixed_window(r, m, 4096, 2);
	m->attention_softcap = hf_whole(r, "attn_logit_softcapping", KEY_model_attention_softcap);
	m->logit_softcap = hf_whole(r, "final_logit_softcapping", KEY_model_logit_softcap);
}

/* Gemma 3 with pictures has its sizes in text_config, with defaults of Gemma3TextConfig for those that are missing. */
void hf_type_gemma3(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	if (hf_get(outer, "vision_config"))
		hf_leaves_out(outer, "the vision tower");
	m->layers = hf_int(&r, "num_hidden_layers", KEY_model_layers, 26);
	m->hidden = hf_int(&r, "hidden_size", KEY_model_hidden, 2304);
	m->heads = hf_int(&r, "num_attention_heads", KEY_model_heads, 8);
	m->kv_heads = hf_int(&r, "num_key_value_heads", KEY_model_kv_heads, 4);
	m->head_dim = hf_int(&r, "head_dim", KEY_model_head_dim, 256);
	m->ffn_hidden = hf_int(&r, "intermediate_size", KEY_model_ffn_hidden, 9216);
	m->vocab = hf_int(&r, "vocab_size", KEY_model_vocab, 262208);
	hf_read_positions(&r, m, "max_position_embeddings", 131072);
	m->position = POS_ROPE;
	m->mlp = hf_activation(&r, "hidden_activation", "gelu_pytorch_tanh", true);
	m->norm = NORM_RMSNORM;
	m->tied_embeddings = hf_bool(&r, "tie_word_embeddings", true);
	m->qk_norm = QK_NORM_HEAD;
	m->branch_norm = BRANCH_NORM_SANDWICH;
	hf_read_mixed_window(&r, m, 4096, 6);
	outer->st = r.st;
}

/* OLMo: its layer norms have no weights, which are 2 x hidden a layer here. */
void hf_type_olmo(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->norm = NORM_LAYERNORM;
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
}

void hf_type_olmo2(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->branch_norm = BRANCH_NORM_REORDERED;
	m->qk_norm = QK_NORM_FULL;
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
}

void hf_type_olmo3(struct hf_reader *r, struct model *m)
{
	hf_type_olmo2(r, m);
	hf_read_mixed_window(r, m, 4096, 4);
}

void hf_type_phi3(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_read_window(r, m, true, 0);
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

void hf_type_stablelm(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->norm = NORM_LAYERNORM;
	m->qkv_bias = hf_bool(r, "use_qkv_bias", false);
	m->parallel_residual = hf_bool(r, "use_parallel_residual", false);
	if (hf_bool(r, "qk_layernorm", false))
		m->qk_norm = QK_NORM_HEAD;
}

/* no_rope_layers: a 1 for each layer that rotates; where it is missing, every so many have none. */
void hf_type_smollm3(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	hf_read_no_rope(r, m, 4);
}

/* Command R: both branches read one norm, which are two here. */
void hf_type_cohere(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->norm = NORM_LAYERNORM;
	m->qkv_bias = m->proj_bias = hf_bool(r, "attention_bias", false);
	m->qk_norm = hf_bool(r, "use_qk_norm", false) ? QK_NORM_HEAD : QK_NORM_NONE;
	m->parallel_residual = true;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

void hf_type_cohere2(struct hf_reader *r, struct model *m)
{
	hf_type_cohere(r, m);
	hf_read_mixed_window(r, m, 4096, 4);
	m->no_rope_every = m->global_attention_every;
}

/* Arcee: Llama with squared ReLU and no gate. */
void hf_type_arcee(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = hf_activation(r, "hidden_act", "relu2", false);
	m->norm = NORM_RMSNORM;
	hf_set_bias(m, hf_bool(r, "attention_bias", false), hf_bool(r, "mlp_bias", false));
}

void hf_type_nemotron(struct hf_reader *r, struct model *m)
{
	hf_type_arcee(r, m);
	m->norm = NORM_LAYERNORM;
}

void hf_type_internlm2(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = m->proj_bias = hf_bool(r, "bias", true);
}

void hf_type_chatglm(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_layers", KEY_model_layers, 0);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 0);
	m->heads = hf_int(r, "num_attention_heads", KEY_model_heads, 0);
	m->kv_heads = hf_bool(r, "multi_query_attention", false)
	                      ? hf_int(r, "multi_query_group_num", KEY_model_kv_heads, 1)
	                      : m->heads;
	m->head_dim = hf_int(r, "kv_channels", KEY_model_head_dim, 128);
	m->ffn_hidden = hf_int(r, "ffn_hidden_size", KEY_model_ffn_hidden, 0);
	m->vocab = hf_int(r, "padded_vocab_size", KEY_model_vocab, 65024);
	hf_read_positions(r, m, "seq_length", 2048);
	m->position = POS_ROPE;
	m->mlp = MLP_SWIGLU;
	m->norm = hf_bool(r, "rmsnorm", true) ? NORM_RMSNORM : NORM_LAYERNORM;
	m->bias = m->proj_bias = hf_bool(r, "add_bias_linear", false);
	m->qkv_bias = m->bias || hf_bool(r, "add_qkv_bias", false);
}

void hf_type_seed_oss(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "attention_bias", true);
	m->proj_bias = hf_bool(r, "attention_out_bias", false);
	m->bias = hf_bool(r, "mlp_bias", false);
}

void hf_type_ernie4_5(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_set_bias(m, hf_bool(r, "use_bias", false), hf_bool(r, "use_bias", false));
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}

/* EXAONE 3: Llama's blocks under GPT-2's names. */
void hf_type_exaone(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "num_layers", KEY_model_layers, 32);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 2048);
	m->heads = hf_int(r, "num_attention_heads", KEY_model_heads, 32);
	m->kv_heads = hf_int(r, "num_key_value_heads", KEY_model_kv_heads, m->heads);
	m->head_dim = hf_head_dim_of(r, m, "hidden_size");
	m->ffn_hidden = hf_int(r, "intermediate_size", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, 102400);
	hf_read_positions(r, m, "max_position_embeddings", 2048);
	m->position = POS_ROPE;
	m->mlp = hf_activation(r, "activation_function", "silu", true);
	m->norm = NORM_RMSNORM;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", false);
}

/* EXAONE 4: where layers have a window, those that see all keys have no rope. */
void hf_type_exaone4(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->branch_norm = BRANCH_NORM_REORDERED;
	m->qk_norm = QK_NORM_HEAD;
	if (!hf_get(r, "sliding_window"))
		return;
	hf_read_mixed_window(r, m, 4096, 4);
	m->no_rope_every = m->global_attention_every;
}

void hf_type_hunyuan(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	m->qk_norm = QK_NORM_HEAD;
}

/* xIELU moves what squared ReLU moves, and has two scalars a layer that are left out. */
void hf_type_apertus(struct hf_reader *r, struct model *m)
{
	hf_read_sizes(r, m);
	m->mlp = MLP_SQUARED_RELU;
	m->norm = NORM_RMSNORM;
	m->qk_norm = QK_NORM_HEAD;
	hf_set_bias(m, hf_bool(r, "attention_bias", false), hf_bool(r, "mlp_bias", false));
	hf_leaves_out(r, "xIELU, taken as squared ReLU");
}

void hf_type_glm(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "attention_bias", true);
}

void hf_type_glm4(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "attention_bias", true);
	m->branch_norm = BRANCH_NORM_SANDWICH;
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

/* Qwen's models that see pictures have the sizes of the text in text_config, or beside those of the vision tower. */
void hf_type_qwen2_vl(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	hf_leaves_out(outer, "the vision tower");
	hf_type_qwen2(&r, m);
	m->tied_embeddings = hf_bool(outer, "tie_word_embeddings", m->tied_embeddings);
	outer->st = outer->st ? outer->st : r.st;
}

/* MiMo: Qwen 2's blocks. */
void hf_type_mimo(struct hf_reader *r, struct model *m)
{
	hf_type_qwen2(r, m);
	if (hf_get(r, "num_nextn_predict_layers"))
		hf_leaves_out(r, "layers that predict further tokens (num_nextn_predict_layers; model.mtp_layers)");
}

/* VaultGemma: Gemma 2 without norms behind the branches. */
void hf_type_vaultgemma(struct hf_reader *r, struct model *m)
{
	hf_type_gemma2(r, m);
	m->branch_norm = BRANCH_NORM_NONE;
}

void hf_type_internlm3(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "qkv_bias", false);
	m->bias = m->proj_bias = hf_bool(r, "bias", false);
}

void hf_type_minicpm(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
}
