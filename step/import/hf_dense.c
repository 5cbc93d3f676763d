/* Hugging Face models without experts, each as the transformers class of its name builds it
 * (https://github.com/huggingface/transformers, src/transformers/models/TYPE/modeling_TYPE.py). */
#include <string.h>

#include "step/import/hf_reader.h"

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

void hf_type_ministral(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	hf_read_listed_window(r, m);
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

/* Sizes of Gemma 3 and 4, with the defaults of their text configs. */
static void read_gemma_sizes(struct hf_reader *r, struct model *m, int64_t layers, int64_t vocab)
{
	m->layers = hf_int(r, "num_hidden_layers", KEY_model_layers, layers);
	m->hidden = hf_int(r, "hidden_size", KEY_model_hidden, 2304);
	m->heads = hf_int(r, "num_attention_heads", KEY_model_heads, 8);
	m->kv_heads = hf_int(r, "num_key_value_heads", KEY_model_kv_heads, 4);
	m->head_dim = hf_int(r, "head_dim", KEY_model_head_dim, 256);
	m->ffn_hidden = hf_int(r, "intermediate_size", KEY_model_ffn_hidden, 9216);
	m->vocab = hf_int(r, "vocab_size", KEY_model_vocab, vocab);
	hf_read_positions(r, m, "max_position_embeddings", 131072);
}

/* What Gemma has from its third version on: rope, gated GELU, norms around each branch, of heads, tied embeddings. */
static void read_gemma_norms(struct hf_reader *r, struct model *m)
{
	m->position = POS_ROPE;
	m->mlp = hf_activation(r, "hidden_activation", "gelu_pytorch_tanh", true);
	m->norm = NORM_RMSNORM;
	m->tied_embeddings = hf_bool(r, "tie_word_embeddings", true);
	m->qk_norm = QK_NORM_HEAD;
	m->branch_norm = BRANCH_NORM_SANDWICH;
}

/* Gemma 3 with pictures has its sizes in text_config, with defaults of Gemma3TextConfig for those that are missing. */
void hf_type_gemma3(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	if (hf_get(outer, "vision_config"))
		hf_leaves_out(outer, "the vision tower");
	read_gemma_sizes(&r, m, 26, 262208);
	read_gemma_norms(&r, m);
	hf_read_mixed_window(&r, m, 4096, 6);
	if (hf_bool(&r, "use_bidirectional_attention", false)) { /* EmbeddingGemma */
		m->causal = false;
		m->sliding_window = m->global_attention_every = 0;
		hf_leaves_out(outer, "windows of its local layers, and its loss on pairs of texts");
	}
	outer->st = outer->st ? outer->st : r.st;
}

/* What Gemma 3n and Gemma 4 share in text_config: windows, and what they have of Gemma 3. */
static void read_newer_gemma(struct hf_reader *r, struct model *m, int64_t every)
{
	read_gemma_norms(r, m);
	hf_read_listed_window(r, m);
	if (!hf_get(r, "layer_types"))
		hf_read_mixed_window(r, m, 512, every);
	m->logit_softcap = hf_whole(r, "final_logit_softcapping", KEY_model_logit_softcap);
}

/* Gemma 4: layers that see all keys have wider heads and, with attention_k_eq_v, one product for keys and values;
 * layers that share keys and values may have MLPs twice as wide. Experts stand beside an MLP, a shared expert here. */
void hf_type_gemma4(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	read_gemma_sizes(&r, m, 30, 262144);
	read_newer_gemma(&r, m, 6);
	const int64_t shared = json_integer_value(hf_get(&r, "num_kv_shared_layers"));
	const json_t *own = hf_get(&r, "hidden_size_per_layer_input");
	if (hf_bool(&r, "enable_moe_block", false)) {
		m->experts = hf_int(&r, "num_experts", KEY_model_experts, 0);
		m->experts_per_token = hf_int(&r, "top_k_experts", KEY_model_experts_per_token, 0);
		m->moe_ffn_hidden = hf_int(&r, "moe_intermediate_size", KEY_model_moe_ffn_hidden, 0);
		m->shared_experts = r.st ? 0 : m->ffn_hidden / m->moe_ffn_hidden;
	}
	if (shared < 0 || shared > m->layers)
		hf_fail(&r, "num_kv_shared_layers", "expected at most num_hidden_layers");
	if (hf_bool(&r, "use_double_wide_mlp", false)) {
		m->ffn_hidden = m->ffn_hidden * (m->layers + shared) / m->layers;
		hf_leaves_out(outer, "MLPs of two widths, taken as their mean");
	}
	if (hf_int(&r, "global_head_dim", KEY_model_head_dim, 512) != m->head_dim)
		hf_leaves_out(outer, "wider heads where all keys are seen");
	if (!own || json_integer_value(own) != 0)
		hf_leaves_out(outer, "embeddings of each layer");
	if (shared > 0)
		hf_leaves_out(outer, "keys that layers share");
	if (hf_get(outer, "vision_config"))
		hf_leaves_out(outer, "towers");
	outer->st = outer->st ? outer->st : r.st;
}

/* Gemma 3n: intermediate_size may be a list of one number. */
void hf_type_gemma3n(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	const json_t *widths = hf_get(&r, "intermediate_size"), *v;
	size_t i;
	m->layers = hf_int(&r, "num_hidden_layers", KEY_model_layers, 35);
	m->hidden = hf_int(&r, "hidden_size", KEY_model_hidden, 2048);
	m->heads = hf_int(&r, "num_attention_heads", KEY_model_heads, 8);
	m->kv_heads = hf_int(&r, "num_key_value_heads", KEY_model_kv_heads, 2);
	m->head_dim = hf_int(&r, "head_dim", KEY_model_head_dim, 256);
	m->vocab = hf_int(&r, "vocab_size", KEY_model_vocab, 262400);
	m->ffn_hidden = json_is_array(widths) ? json_integer_value(json_array_get(widths, 0))
	                                      : hf_int(&r, "intermediate_size", KEY_model_ffn_hidden, 16384);
	json_array_foreach(widths, i, v) if (json_integer_value(v) != m->ffn_hidden || m->ffn_hidden < 1)
		hf_fail(&r, "intermediate_size", "expected one width of all layers");
	hf_read_positions(&r, m, "max_position_embeddings", 32768);
	read_newer_gemma(&r, m, 5);
	hf_leaves_out(outer, "embeddings of each layer, three further residual streams and low-rank branches, "
			     "keys that layers share, towers");
	outer->st = outer->st ? outer->st : r.st;
}

/* Llama 3.2 that sees pictures: of its layers those of cross-attention have the shapes of the others. */
void hf_type_mllama(struct hf_reader *outer, struct model *m)
{
	struct hf_reader r = hf_inside(outer, "text_config");
	hf_type_llama(&r, m);
	hf_leaves_out(outer, "the vision tower; layers that attend to pictures are taken as layers of text");
	outer->st = outer->st ? outer->st : r.st;
}

/* LLaVA as its own code writes it: the sizes of the text beside those of the tower. */
void hf_type_llava_llama(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	hf_leaves_out(r, "the vision tower");
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

/* Phi-4 that sees and hears has the sizes of the text beside those of its towers. */
void hf_type_phi4_multimodal(struct hf_reader *r, struct model *m)
{
	hf_type_phi3(r, m);
	hf_leaves_out(r, "all of it but the language model, and its adapters");
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

void hf_type_jais2(struct hf_reader *r, struct model *m)
{
	hf_type_nemotron(r, m);
	hf_set_bias(m, hf_bool(r, "attention_bias", true), hf_bool(r, "mlp_bias", true));
}

/* nanochat: its norms have no weights, which are counted here. */
void hf_type_nanochat(struct hf_reader *r, struct model *m)
{
	hf_type_arcee(r, m);
	m->qk_norm = QK_NORM_HEAD;
	m->embedding_norm = true;
	m->logit_softcap = hf_get(r, "final_logit_softcapping")
	                           ? hf_whole(r, "final_logit_softcapping", KEY_model_logit_softcap)
	                           : 15;
}

/* HyperCLOVA X: Granite with norms behind its branches, too. */
void hf_type_hyperclovax(struct hf_reader *r, struct model *m)
{
	hf_type_llama(r, m);
	if (hf_bool(r, "use_post_norm", true))
		m->branch_norm = BRANCH_NORM_SANDWICH;
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

/* GLM-OCR's language model: GLM-4's, without biases. */
void hf_type_glm_ocr(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->branch_norm = BRANCH_NORM_SANDWICH;
}

void hf_type_glm4(struct hf_reader *r, struct model *m)
{
	hf_read_llama_like(r, m);
	m->qkv_bias = hf_bool(r, "attention_bias", true);
	m->branch_norm = BRANCH_NORM_SANDWICH;
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

/* dots.ocr: Qwen 2's sizes beside those of the tower. */
void hf_type_dots_ocr(struct hf_reader *r, struct model *m)
{
	hf_type_qwen2(r, m);
	hf_leaves_out(r, "the vision tower");
}

/* MiniCPM-V: Qwen 2 behind the tower, and Qwen 3 from version 4.5 on. */
void hf_type_minicpmv(struct hf_reader *r, struct model *m)
{
	if (json_number_value(hf_get(r, "version")) >= 4.5)
		hf_type_qwen3(r, m);
	else
		hf_type_qwen2(r, m);
	hf_leaves_out(r, "the vision tower, and its resampler");
}

#define LEAVES_OUT_MASKS "that masked tokens alone have a loss"

/* Dream: Qwen 2 that fills in masked tokens, each of which sees all. */
void hf_type_dream(struct hf_reader *r, struct model *m)
{
	hf_type_qwen2(r, m);
	m->causal = false;
	hf_leaves_out(r, LEAVES_OUT_MASKS);
}

/* LLaDA: Llama that fills in masked tokens, under OLMo's first names. */
void hf_type_llada(struct hf_reader *r, struct model *m)
{
	m->layers = hf_int(r, "n_layers", KEY_model_layers, 0);
	m->hidden = hf_int(r, "d_model", KEY_model_hidden, 0);
	m->heads = hf_int(r, "n_heads", KEY_model_heads, 0);
	m->kv_heads = hf_int(r, "n_kv_heads", KEY_model_kv_heads, m->heads);
	m->head_dim = hf_head_dim_of(r, m, "d_model");
	m->ffn_hidden = hf_int(r, "mlp_hidden_size", KEY_model_ffn_hidden, 4 * m->hidden);
	m->vocab = hf_int(r, hf_get(r, "embedding_size") ? "embedding_size" : "vocab_size", KEY_model_vocab, 0);
	hf_read_positions(r, m, "max_sequence_length", 4096);
	m->position = POS_ROPE;
	m->mlp = hf_activation(r, "activation_type", "silu", true);
	m->norm = NORM_RMSNORM;
	hf_set_bias(m, hf_bool(r, "include_qkv_bias", false), hf_bool(r, "include_bias", false));
	m->tied_embeddings = hf_bool(r, "weight_tying", false);
	m->causal = false;
	hf_leaves_out(r, LEAVES_OUT_MASKS);
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
