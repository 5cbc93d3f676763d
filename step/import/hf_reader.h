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
/* Returns the MLP of an activation by its name, gated or not, and sets the model's composed_gelu. */
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

/* Reads latent attention under DeepSeek's names. */
void hf_read_latent(struct hf_reader *r, struct model *m, int64_t value_dim);

/* The letters (model.layer_pattern) of a layer's mixer where it has attention, and where not. */
struct hf_mixers {
	char attention, other;
	const char *listed;           /* key of a list of the layers with attention; NULL: none */
	int64_t every;                /* where there is no list: attention in the last of so many; 0: in none */
	const struct hf_reader *list; /* where the list stands; NULL: beside the sizes */
	int64_t first;                /* how it calls the first layer */
};
/* Returns whether layer i has experts in place of an MLP. */
typedef bool hf_has_experts_fn(const struct hf_reader *r, const struct model *m, int64_t i);
/* Sets the pattern, as short as its repetitions allow: each layer is its mixer, as layer_types has it where that is
 * there, and an MLP or experts. has_experts NULL: all have, where the model does. Doubles m->layers. */
void hf_set_mixers(struct hf_reader *r, struct model *m, const struct hf_mixers *mixers,
	hf_has_experts_fn *has_experts);

/* Reads a window on all layers, or on all but the last of every so many, as layer_types has it. */
void hf_read_listed_window(struct hf_reader *r, struct model *m);

/* Reads which layers have no rope: the last of every so many, of which no_rope_layers must not say otherwise. */
void hf_read_no_rope(struct hf_reader *r, struct model *m, int64_t every);

/* ---- hf_dense.c, hf_gpt.c, hf_experts.c, hf_mamba.c, hf_hybrid.c, hf_encoders.c, hf_stacks.c: a function for each
 * type; hf_types.c: their table ---- */

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
	X("deepseek_v3", deepseek_v3) \
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
	X("mamba", mamba) \
	X("falcon_mamba", mamba) \
	X("Dream", dream) \
	X("llada", llada) \
	X("dots_ocr", dots_ocr) \
	X("minicpmv", minicpmv) \
	X("minicpmo", minicpmv) \
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
	X("kimi_linear", kimi_linear) \
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
	X("helium", llama) \
	X("iquestcoder", llama) \
	X("hunyuan_vl_text", hunyuan) \
	X("hyperclovax", hyperclovax) \
	X("jais2", jais2) \
	X("nanochat", nanochat) \
	X("phi4_multimodal", phi4_multimodal) \
	X("phi4mm", phi4_multimodal) \
	X("openai-gpt", openai_gpt) \
	X("biogpt", biogpt) \
	X("solar_open", glm4_moe) \
	X("mistral4", deepseek) \
	X("youtu", minicpm3) \
	X("exaone_moe", exaone_moe) \
	X("hy_v3", hy_v3) \
	X("mellum", mellum) \
	X("qwen2_5_omni_text", qwen2) \
	X("qwen3_omni_moe_text", qwen3_moe) \
	X("electra", electra) \
	X("esm", esm) \
	X("eurobert", eurobert) \
	X("data2vec-text", roberta) \
	X("mpnet", mpnet) \
	X("megatron-bert", megatron_bert) \
	X("roberta-prelayernorm", roberta_prelayernorm) \
	X("xlm-roberta-xl", xlm_roberta_xl) \
	X("deit", deit) \
	X("dinov2", dinov2) \
	X("dinov2_with_registers", dinov2) \
	X("resnet", resnet) \
	X("umt5", umt5) \
	X("bart", bart) \
	X("plbart", bart) \
	X("mbart", mbart) \
	X("marian", marian) \
	X("pegasus", pegasus) \
	X("m2m_100", pegasus) \
	X("blenderbot", blenderbot) \
	X("gte", gte) \
	X("new", gte) \
	X("nomic_bert", nomic_bert) \
	X("xglm", xglm) \
	X("phi3_v", phi4_multimodal) \
	X("glm_ocr_text", glm_ocr) \
	X("sarvam_moe", sarvam_moe) \
	X("sarvam_mla", deepseek) \
	X("gemma3n", gemma3n) \
	X("gemma3n_text", gemma3n) \
	X("gemma4", gemma4) \
	X("gemma4_text", gemma4) \
	X("mllama", mllama) \
	X("mllama_text_model", mllama) \
	X("llava_llama", llava_llama) \
	X("deberta", deberta) \
	X("deberta-v2", deberta_v2) \
	X("layoutlm", layoutlm) \
	X("layoutlmv3", layoutlmv3) \
	X("clip", clip) \
	X("clip_vision_model", clip) \
	X("siglip", siglip) \
	X("siglip_vision_model", siglip) \
	X("siglip2", siglip) \
	X("siglip2_vision_model", siglip)

typedef void hf_type_fn(struct hf_reader *r, struct model *m);
#define HF_TYPE_FN(name, fn) hf_type_fn hf_type_##fn;
HF_TYPES(HF_TYPE_FN)

/* X(model_type, what its blocks have that cannot be described, the nearest type that is known). */
#define HF_MISSING(X) \
	X("bailing_moe_linear", "lightning attention", "bailing_moe_v2") \
	X("bailing_hybrid", "lightning attention", "bailing_moe_v2") \
	X("longcat_flash", "two attentions a layer, and zero-computation experts", "deepseek_v3") \
	X("step3", "multi-matrix factorization attention", "qwen3_moe") \
	X("step3_text", "multi-matrix factorization attention", "qwen3_moe") \
	X("step3p5", "windows with other heads than full attention", "qwen3_moe") \
	X("mimo_v2_flash", "windows with other heads than full attention", "qwen3_moe") \
	X("ouro", "layers that run several times", "llama") \
	X("deepseek_v4", "attention over compressed keys, and several residual streams", "deepseek_v32") \
	X("qwen4_exp", "delta rules beside sparse attention", "qwen3_5_moe") \
	X("qwen4_exp_text", "delta rules beside sparse attention", "qwen3_5_moe") \
	X("glm5_next", "several residual streams", "kimi_linear") \
	X("glm5_next_text", "several residual streams", "kimi_linear") \
	X("hy_v4", "several residual streams", "glm_moe_dsa") \
	X("axk2", "a gate of sparse attention", "deepseek_v32") \
	X("minimax_m3_vl", "attention to chosen blocks of keys", "minimax_m2") \
	X("minimax_m3_vl_text", "attention to chosen blocks of keys", "minimax_m2") \
	X("mistral_large4", "attention to chosen keys, with towers", "glm_moe_dsa") \
	X("zaya", "attention by convolutions of compressed keys", "qwen3_moe") \
	X("jetmoe", "experts of attention", "qwen3_moe") \
	X("nemotron-nas", "layers of different widths", "llama") \
	X("openelm", "layers of different widths", "llama") \
	X("bitnet", "weights of 1.58 bits", "llama") \
	X("albert", "layers that share their weights", "bert") \
	X("swin", "shifted windows, and patches that are merged from stage to stage", "vit") \
	X("swinv2", "shifted windows, and patches that are merged from stage to stage", "vit") \
	X("segformer", "patches that are merged from stage to stage", "vit") \
	X("beit", "biases of scores by distance for patches", "vit") \
	X("dinov3_vit", "rope for patches", "dinov2") \
	X("vit_mae", "an encoder of some patches before a decoder of all", "vit") \
	X("detr", "a convolutional network before an encoder and a decoder", "vit") \
	X("sam", "windows of patches, and a decoder of masks", "vit") \
	X("sam2", "patches that are merged from stage to stage, and a memory", "vit") \
	X("convnext", "convolutions of each channel by itself", "resnet") \
	X("convnextv2", "convolutions of each channel by itself", "resnet") \
	X("efficientnet", "convolutions of each channel by itself", "resnet") \
	X("mobilenet_v2", "convolutions of each channel by itself", "resnet") \
	X("wav2vec2", "convolutions of sound before its layers", "whisper") \
	X("wav2vec2-bert", "convolutions of sound in its layers", "whisper") \
	X("wavlm", "convolutions of sound before its layers", "whisper") \
	X("hubert", "convolutions of sound before its layers", "whisper") \
	X("xlstm", "matrix memory cells in place of attention", "mamba2") \
	X("rwkv7", "time mixing in place of attention", "mamba2") \
	X("zamba2", "attention that several layers share", "nemotron_h") \
	X("rwkv", "time mixing in place of attention", "mamba2") \
	X("recurrent_gemma", "gated linear recurrences", "mamba2") \
	X("xlnet", "two streams of attention to relative positions", "bert") \
	X("longformer", "windows around a row, and global rows", "modernbert") \
	X("big_bird", "windows around a row, and random keys", "modernbert") \
	X("switch_transformers", "experts of an encoder before a decoder", "t5") \
	X("longt5", "windows of an encoder before a decoder", "t5") \
	X("blip", "a tower of pictures that text attends to", "vit") \
	X("layoutlmv2", "places of words on a page", "bert") \
	X("ernie4_5_vl_moe", "experts of text beside those of pictures", "ernie4_5_moe") \
	X("ernie4_5_vl_moe_text", "experts of text beside those of pictures", "ernie4_5_moe") \
	X("ernie4_5_moe_vl", "experts of text beside those of pictures", "ernie4_5_moe") \
	X("t5gemma", "Gemma's attention in an encoder and a decoder", "t5") \
	X("led", "windows of an encoder before a decoder", "bart") \
	X("cohere2_moe", "experts beside attention, behind one norm", "cohere2") \
	X("laguna", "windows with other heads than full attention", "afmoe") \
	X("trocr", "a tower of pictures before a decoder", "whisper") \
	X("vision-encoder-decoder", "a tower of pictures before a decoder", "whisper") \
	X("seamless_m4t_v2", "several stacks of sound and text", "whisper") \
	X("speecht5", "convolutions of sound before and behind its layers", "whisper") \
	X("vits", "flows and convolutions of sound", "whisper") \
	X("videomae", "an encoder of some patches before a decoder of all", "vit") \
	X("florence2", "a tower of pictures before an encoder", "bart")

/* Fills the model of a type that transformers builds. ST_INPUT: an unknown type, with those that are known. */
void hf_read_type(struct hf_reader *r, const char *type);

#endif
