/* Values of a Hugging Face config.json. Private to step/import/hf_*.c. */
#ifndef STEPSIM_STEP_HF_READER_H
#define STEPSIM_STEP_HF_READER_H

#include <jansson.h>

#include "step/config/keys.h"
#include "step/import/hf_config.h"

struct hf_reader {
	const json_t *root;
	const char *name;
	struct hf_model *out;
	struct error *e;
	enum status st; /* the first failure; readers do nothing after it */
};

/* Records "name: key: what", unless the reader failed before. */
void hf_fail(struct hf_reader *r, const char *key, const char *what);
/* Adds to what the description leaves out. */
void hf_leaves_out(struct hf_reader *r, const char *what);

/* Returns a value; NULL where it is missing or null, as in transformers. */
const json_t *hf_get(const struct hf_reader *r, const char *key);
/* Returns an integer in the range that the config's own key has; `missing` 0: the key must be there. */
int64_t hf_int(struct hf_reader *r, const char *key, enum key_id range, int64_t missing);
/* Returns a whole number that may be written as 50.0; 0 where it is missing. */
int64_t hf_whole(struct hf_reader *r, const char *key, enum key_id range);
bool hf_bool(struct hf_reader *r, const char *key, bool missing);
/* Returns the MLP of an activation by its name, gated or not. */
enum mlp hf_activation(struct hf_reader *r, const char *key, const char *missing, bool gated);

/* Reads the rest from an object inside the file, where that is there: "text_config", "attn_config". */
struct hf_reader hf_inside(const struct hf_reader *r, const char *key);

/* ---- hf_reader.c: what several types share ---- */

/* Returns head_dim, or hidden / heads, which means nothing to latent attention. */
int64_t hf_head_dim_of(struct hf_reader *r, const struct model *m, const char *hidden_key);
/* Reads the longest sequence, which seq_len is at first. */
void hf_read_positions(struct hf_reader *r, struct model *m, const char *key, int64_t missing);
/* Reads the sizes under the names that most types use, with rope. */
void hf_read_sizes(struct hf_reader *r, struct model *m);
/* The same of Llama and its kin: pre-norm RMSNorm, rope, gated MLP. */
void hf_read_llama_like(struct hf_reader *r, struct model *m);
/* Sets the biases of attention's products, and of the MLP's with the norms'. */
void hf_set_bias(struct model *m, bool attention, bool mlp);
/* Reads a window on every layer, where use_sliding_window says so; `used`, where that is missing. missing 0: no window
 * where sliding_window is missing. */
void hf_read_window(struct hf_reader *r, struct model *m, bool used, int64_t missing);
/* Reads a window on all layers but the last of every so many. Where layer_types says otherwise, it is refused. */
void hf_read_mixed_window(struct hf_reader *r, struct model *m, int64_t window, int64_t every);

/* The letters (model.layer_pattern) of a layer's mixer where it has attention, and where not. */
struct hf_mixers {
	char attention, other;
	const char *listed; /* key of a list of the layers with attention; NULL: none */
	int64_t every;      /* where there is no list: attention in the last of so many; 0: in none */
};
/* Returns whether layer i has experts in place of an MLP. */
typedef bool hf_has_experts_fn(const struct hf_reader *r, const struct model *m, int64_t i);
/* Sets the pattern, as short as its repetitions allow: each layer is its mixer, as layer_types has it where that is
 * there, and an MLP or experts. has_experts NULL: all have, where the model does. Doubles m->layers. */
void hf_set_mixers(struct hf_reader *r, struct model *m, const struct hf_mixers *mixers,
	hf_has_experts_fn *has_experts);

/* Reads which layers have no rope: the last of every so many, of which no_rope_layers must not say otherwise. */
void hf_read_no_rope(struct hf_reader *r, struct model *m, int64_t every);

/* ---- hf_dense.c, hf_experts.c, hf_mamba.c, hf_hybrid.c, hf_encoders.c, hf_stacks.c: a function for each type;
 * hf_types.c: their table ---- */

/* X(model_type, function). */
#define HF_TYPES(X) \
	X("llama", llama) \
	X("mistral", mistral) \
	X("mixtral", mixtral) \
	X("gpt2", gpt2) \
	X("gpt_neox", gpt_neox) \
	X("qwen2", qwen2) \
	X("qwen2_moe", qwen2_moe) \
	X("qwen3", qwen3) \
	X("qwen3_moe", qwen3_moe) \
	X("gemma", gemma) \
	X("gemma2", gemma2) \
	X("gemma3", gemma3) \
	X("gemma3_text", gemma3) \
	X("phi", phi) \
	X("phi3", phi3) \
	X("phimoe", phimoe) \
	X("olmo", olmo) \
	X("olmo2", olmo2) \
	X("olmo3", olmo3) \
	X("olmoe", olmoe) \
	X("gpt_oss", gpt_oss) \
	X("deepseek_v2", deepseek) \
	X("deepseek_v3", deepseek) \
	X("kimi_k2", deepseek) \
	X("deepseek", deepseek_moe) \
	X("deepseek_v32", deepseek_v32) \
	X("minimax_m2", minimax_m2) \
	X("glm4_moe", glm4_moe) \
	X("llama4", llama4) \
	X("llama4_text", llama4) \
	X("smollm3", smollm3) \
	X("dbrx", dbrx) \
	X("grok-1", grok) \
	X("falcon", falcon) \
	X("mpt", mpt) \
	X("opt", opt) \
	X("bloom", bloom) \
	X("gptj", gptj) \
	X("gpt_bigcode", gpt_bigcode) \
	X("starcoder2", starcoder2) \
	X("stablelm", stablelm) \
	X("cohere", cohere) \
	X("cohere2", cohere2) \
	X("granite", llama) \
	X("nemotron", nemotron) \
	X("nemotron_h", nemotron_h) \
	X("mamba2", mamba2) \
	X("jamba", jamba) \
	X("internlm2", internlm2) \
	X("chatglm", chatglm) \
	X("bert", bert) \
	X("roberta", roberta) \
	X("xlm-roberta", roberta) \
	X("camembert", roberta) \
	X("distilbert", distilbert) \
	X("modernbert", modernbert) \
	X("vit", vit) \
	X("seed_oss", seed_oss) \
	X("ernie4_5", ernie4_5) \
	X("ernie4_5_moe", ernie4_5_moe) \
	X("exaone", exaone) \
	X("exaone4", exaone4) \
	X("hunyuan_v1_dense", hunyuan) \
	X("arcee", arcee) \
	X("apertus", apertus) \
	X("glm", glm) \
	X("glm4", glm4) \
	X("glm4v_text", glm4) \
	X("glm4v_moe_text", glm4_moe) \
	X("gpt_neo", gpt_neo) \
	X("codegen", gptj) \
	X("dots1", dots1) \
	X("granitemoe", granitemoe) \
	X("granitemoeshared", granitemoe) \
	X("bamba", bamba) \
	X("granitemoehybrid", granitemoehybrid) \
	X("qwen2_vl", qwen2_vl) \
	X("qwen2_5_vl", qwen2_vl) \
	X("qwen2_vl_text", qwen2) \
	X("qwen2_5_vl_text", qwen2) \
	X("qwen3_vl_text", qwen3) \
	X("qwen3_vl_moe_text", qwen3_moe) \
	X("t5", t5) \
	X("mt5", mt5) \
	X("whisper", whisper) \
	X("qwen3_next", qwen3_next) \
	X("qwen3_5", qwen3_5) \
	X("qwen3_5_text", qwen3_5) \
	X("qwen3_5_moe", qwen3_5_moe) \
	X("qwen3_5_moe_text", qwen3_5_moe) \
	X("olmo_hybrid", olmo_hybrid) \
	X("falcon_h1", falcon_h1) \
	X("lfm2", lfm2) \
	X("minimax", minimax) \
	X("minimax_m1", minimax) \
	X("minimax_text_01", minimax) \
	X("lfm2_moe", lfm2_moe) \
	X("glm4_moe_lite", glm4_moe_lite) \
	X("glm_moe_dsa", deepseek_v32) \
	X("bailing_moe", bailing_moe) \
	X("bailing_moe_v2", bailing_moe_v2) \
	X("hunyuan_v1_moe", hunyuan_moe) \
	X("afmoe", afmoe) \
	X("flex_olmo", flex_olmo) \
	X("minicpm", minicpm) \
	X("minicpm3", minicpm3) \
	X("mimo", mimo) \
	X("vaultgemma", vaultgemma) \
	X("internlm3", internlm3) \
	X("ministral", ministral) \
	X("ministral3", ministral) \
	X("helium", llama)

typedef void hf_type_fn(struct hf_reader *r, struct model *m);
#define HF_TYPE_FN(name, fn) hf_type_fn hf_type_##fn;
HF_TYPES(HF_TYPE_FN)

/* X(model_type, what its blocks have that cannot be described). */
#define HF_MISSING(X) \
	X("kimi_linear", "a decay for each channel of its delta rules") \
	X("bailing_moe_linear", "lightning attention") \
	X("longcat_flash", "two attentions a layer, and zero-computation experts") \
	X("step3", "multi-matrix factorization attention") \
	X("step3_text", "multi-matrix factorization attention") \
	X("mimo_v2_flash", "windows with other heads than full attention") \
	X("ouro", "layers that run several times") \
	X("deepseek_v4", "attention over compressed keys, and several residual streams") \
	X("nemotron-nas", "layers of different widths") \
	X("albert", "layers that share their weights") \
	X("mllama", "cross-attention to pictures between its layers") \
	X("swin", "shifted windows, and patches that are merged from stage to stage") \
	X("wav2vec2", "convolutions of sound before its layers") \
	X("hubert", "convolutions of sound before its layers") \
	X("xlstm", "matrix memory cells in place of attention") \
	X("rwkv7", "time mixing in place of attention") \
	X("zamba2", "attention that several layers share") \
	X("mamba", "Mamba-1 (mamba2 is known)") \
	X("falcon_mamba", "Mamba-1 (mamba2 is known)") \
	X("rwkv", "time mixing in place of attention") \
	X("recurrent_gemma", "gated linear recurrences") \
	X("gemma3n", "embeddings of each layer, and several residual streams") \
	X("gemma3n_text", "embeddings of each layer, and several residual streams") \
	X("deberta", "disentangled attention") \
	X("deberta-v2", "disentangled attention") \
	X("clip", "two towers and a loss between them") \
	X("siglip", "two towers and a loss between them") \
	X("siglip2", "two towers and a loss between them")

/* Fills the model of a type that transformers builds. ST_INPUT: an unknown type, with those that are known. */
void hf_read_type(struct hf_reader *r, const char *type);

#endif
