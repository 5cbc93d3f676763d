/* Hugging Face config.json: real models by their published counts, and what is refused. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "step/config/config.h"
#include "step/import/hf_config.h"
#include "tests/unit/harness.h"

static struct hf_model read_whole(const char *text)
{
	struct hf_model m;
	struct error e = {0};
	CU_ASSERT_EQUAL(hf_config_parse(text, strlen(text), "config.json", &m, &e), ST_OK);
	if (e.status)
		printf("\n%s\n", e.text);
	return m;
}

static struct model read_ok(const char *text) { return read_whole(text).model; }

static void same_as_preset(const struct model *m, const char *preset)
{
	struct config c;
	struct error e = {0};
	char text[100];
	snprintf(text, sizeof text, "model: {preset: %s}\n", preset);
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "preset", NULL, 0, &c, &e), ST_OK);
	CU_ASSERT_EQUAL(model_parameters(&c.model), model_parameters(m));
	CU_ASSERT_EQUAL(model_active_parameters(&c.model), model_active_parameters(m));
	CU_ASSERT_EQUAL(model_window(&c.model, 0), model_window(m, 0));
	CU_ASSERT_EQUAL(c.model.parallel_residual, m->parallel_residual);
	if (model_parameters(&c.model) != model_parameters(m))
		printf("\n%s\n", preset);
}

/* tests/hf_models.json: sizes of real repositories in the words of their config.json, and the parameter counts of their
 * safetensors files or of transformers' class (unverified: the count was summed by hand over transformers' modeling
 * files, or the sizes are from memory). The count comes out, exactly or within 0.5 % where parts are left out (Gemma 3
 * and Llama 4: 4 %, their vision towers; models whose page rounds: 1 %), and so does the preset's. */
static void test_published(void)
{
	json_error_t where;
	json_t *all = json_load_file("tests/hf_models.json", 0, &where), *row;
	const char *name;
	size_t n = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	json_object_foreach(all, name, row)
	{
		const json_t *config = json_object_get(row, "config");
		char *text = json_dumps(config, 0);
		const struct hf_model m = read_whole(text);
		const double parameters = (double)model_parameters(&m.model),
			     published = (double)json_integer_value(json_object_get(row, "parameters")),
			     off = fabs(parameters / published - 1),
			     most = json_object_get(config, "vision_config") ? 0.04
		                    : fmod(published, 1e9) == 0              ? 0.01
		                                                             : 0.005;
		CU_ASSERT(off <= most);
		if (off > most)
			printf("\n%s: %.0f, published %.0f\n", name, parameters, published);
		const char *preset = json_string_value(json_object_get(row, "preset"));
		if (preset)
			same_as_preset(&m.model, preset);
		free(text);
		n++;
	}
	CU_ASSERT(n >= 60);
	json_decref(all);
}

static void test_fields(void)
{
	struct model m = read_ok("{\"model_type\": \"gpt2\"}"); /* transformers' own defaults */
	CU_ASSERT_EQUAL(model_parameters(&m), 124439808);
	CU_ASSERT_EQUAL(m.max_positions, 1024);
	CU_ASSERT_EQUAL(m.mlp, MLP_GELU);
	CU_ASSERT_TRUE(m.composed_gelu); /* gelu_new */
	CU_ASSERT_FALSE(read_ok("{\"model_type\": \"gpt2\", \"activation_function\": \"gelu\"}").composed_gelu);
	CU_ASSERT_STRING_EQUAL(m.name, "gpt2");
	m = read_ok("{\"model_type\": \"qwen3_moe\", \"hidden_size\": 64, \"intermediate_size\": 128, "
		    "\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 100, "
		    "\"moe_intermediate_size\": 32, \"num_local_experts\": 64}"); /* as transformers 5 writes it */
	CU_ASSERT_EQUAL(m.experts, 64);
	m = read_ok("{\"model_type\": \"mt5\"}");
	CU_ASSERT_EQUAL(m.layers, 16);
	CU_ASSERT_EQUAL(m.encoder_layers, 8);
	m = read_ok("{\"model_type\": \"t5\"}");
	CU_ASSERT_EQUAL(m.layers, 12);

	m = read_ok("{\"model_type\": \"gpt_neox\", \"hidden_size\": 512, \"intermediate_size\": 2048, "
		    "\"num_attention_heads\": 8, \"num_hidden_layers\": 6, \"vocab_size\": 50304}");
	CU_ASSERT_TRUE(m.parallel_residual);
	CU_ASSERT_TRUE(m.bias);
	CU_ASSERT_EQUAL(m.position, POS_ROPE);
	CU_ASSERT_FALSE(m.tied_embeddings);

	m = read_ok(
		"{\"model_type\": \"mistral\", \"hidden_size\": 64, \"intermediate_size\": 128, "
		"\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 100, \"sliding_window\": 32, "
		"\"hidden_act\": \"gelu\"}");
	CU_ASSERT_EQUAL(m.sliding_window, 32);
	CU_ASSERT_EQUAL(m.kv_heads, 4);
	CU_ASSERT_EQUAL(m.mlp, MLP_GEGLU);
	CU_ASSERT_EQUAL(m.norm, NORM_RMSNORM);
	CU_ASSERT_EQUAL(m.seq_len, 2048);

	m = read_ok(
		"{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": "
		"4, \"num_hidden_layers\": 2, \"vocab_size\": 100, "
		"\"attention_bias\": true, \"mlp_bias\": true}");
	CU_ASSERT_TRUE(m.bias && m.qkv_bias);
	m = read_ok(
		"{\"model_type\": \"qwen2\", \"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": "
		"4, \"num_hidden_layers\": 2, \"vocab_size\": 100, "
		"\"use_sliding_window\": true}");
	CU_ASSERT_TRUE(!m.bias && m.qkv_bias);
	CU_ASSERT_EQUAL(m.sliding_window, 4096);

	/* the language model inside one that sees: Qwen's has its sizes beside the tower's, others in a table */
	const struct hf_model outer = read_whole(
		"{\"model_type\": \"llava_something\", \"vision_config\": {}, "
		"\"text_config\": {\"model_type\": \"llama\", "
		"\"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, "
		"\"num_hidden_layers\": 2, \"vocab_size\": 100}}");
	CU_ASSERT_EQUAL(outer.model.hidden, 64);
	CU_ASSERT_STRING_EQUAL(outer.left_out, "all of it but the language model");
	const struct hf_model qwen = read_whole(
		"{\"model_type\": \"qwen2_5_vl\", \"vision_config\": {}, "
		"\"hidden_size\": 64, \"intermediate_size\": 128, "
		"\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 100, "
		"\"tie_word_embeddings\": true}");
	CU_ASSERT_TRUE(qwen.model.tied_embeddings && qwen.model.qkv_bias);
	CU_ASSERT_STRING_EQUAL(qwen.left_out, "the vision tower");
	m = read_ok(
		"{\"model_type\": \"exaone4\", \"hidden_size\": 64, \"intermediate_size\": 128, "
		"\"num_attention_heads\": 4, \"num_hidden_layers\": 8, \"vocab_size\": 100, \"sliding_window\": 16, "
		"\"sliding_window_pattern\": \"LLLG\"}");
	CU_ASSERT_EQUAL(m.global_attention_every, 4);
	CU_ASSERT_EQUAL(m.no_rope_every, 4);
	m = read_ok("{\"model_type\": \"granitemoehybrid\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"shared_intermediate_size\": 128, \"num_hidden_layers\": 2, "
		    "\"num_local_experts\": 0, \"mamba_n_heads\": 2, \"vocab_size\": 100, "
		    "\"layer_types\": [\"mamba\", \"attention\"]}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "M-*-");
	CU_ASSERT_EQUAL(m.ffn_hidden, 128);

	m = read_ok("{\"model_type\": \"minimax_text_01\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 4, \"vocab_size\": 100, "
		    "\"attn_type_list\": [0, 1, 0, 1]}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "ME*E");
	CU_ASSERT(m.ssm_groups == 4 && m.ssm_state == 16 && m.ssm_conv == 1 && m.layers == 8);

	m = read_ok("{\"model_type\": \"nemotron_h\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 3, \"vocab_size\": 100, "
		    "\"layers_block_type\": [\"mamba\", \"attention\", \"mlp\"]}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "M*-");
	m = read_ok("{\"model_type\": \"nemotron_h\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"vocab_size\": 100, \"note\": \"5\\\" NaN\\\\\", "
		    "\"time_step_limit\": [0.0, Infinity], "
		    "\"layers_block_type\": [\"linear_attention\", \"full_attention\", \"mlp\"]}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "M*-"); /* as transformers 5 writes it */
	m = read_ok("{\"model_type\": \"ministral\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 4, \"vocab_size\": 100, \"sliding_window\": 16, "
		    "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\", "
		    "\"full_attention\"]}");
	CU_ASSERT(m.sliding_window == 16 && m.global_attention_every == 2);

	/* patterns: as short as their repetitions allow; experts by place */
	m = read_ok("{\"model_type\": \"qwen3_next\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 8, \"vocab_size\": 100, \"num_experts\": 4}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "GEGEGE*E");
	CU_ASSERT(m.layers == 16 && m.attention_gate && m.shared_expert_gate && m.ssm_chunk == 64);
	m = read_ok("{\"model_type\": \"qwen3_next\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 4, \"vocab_size\": 100, \"num_experts\": 4, "
		    "\"mlp_only_layers\": [1], \"shared_expert_intermediate_size\": 0}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "GEG-GE*E");
	CU_ASSERT(m.shared_experts == 0 && !m.shared_expert_gate);
	m = read_ok("{\"model_type\": \"lfm2_moe\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
		    "\"intermediate_size\": 32, \"num_hidden_layers\": 4, \"vocab_size\": 100, \"num_experts\": 4, "
		    "\"full_attn_idxs\": [1], \"num_dense_layers\": 1}");
	CU_ASSERT_STRING_EQUAL(m.layer_pattern, "C-*ECECE");
	CU_ASSERT(m.ssm_conv == 3 && m.first_dense_layers == 0);
}

/* Types that are read without a part of theirs, which is named. */
static void test_partly_read(void)
{
	/* Gemma 4: 60 layers of 5376, of which every sixth sees all keys */
	struct hf_model h = read_whole(
		"{\"model_type\": \"gemma4\", \"vision_config\": {}, "
		"\"text_config\": {\"model_type\": \"gemma4_text\", "
		"\"num_hidden_layers\": 12, \"hidden_size\": 64, \"num_attention_heads\": 4, "
		"\"num_key_value_heads\": 2, "
		"\"head_dim\": 16, \"global_head_dim\": 32, \"intermediate_size\": 96, \"vocab_size\": 100, "
		"\"sliding_window\": 8, \"hidden_size_per_layer_input\": 0, \"num_kv_shared_layers\": 0, "
		"\"enable_moe_block\": true, \"num_experts\": 8, \"top_k_experts\": 2, "
		"\"moe_intermediate_size\": 32}}");
	CU_ASSERT_EQUAL(h.model.global_attention_every, 6);
	CU_ASSERT_EQUAL(h.model.sliding_window, 8);
	CU_ASSERT_EQUAL(h.model.shared_experts, 3);
	CU_ASSERT_STRING_EQUAL(h.left_out, "wider heads where all keys are seen, towers");
	h = read_whole(
		"{\"model_type\": \"gemma4_text\", \"num_hidden_layers\": 10, \"hidden_size\": 64, \"head_dim\": 16, "
		"\"global_head_dim\": 16, \"intermediate_size\": 100, \"vocab_size\": 100, "
		"\"num_kv_shared_layers\": 5, \"use_double_wide_mlp\": true}");
	CU_ASSERT_EQUAL(h.model.ffn_hidden, 150);
	CU_ASSERT_STRING_EQUAL(h.left_out,
		"MLPs of two widths, taken as their mean, embeddings of each layer, keys that layers share");
	h = read_whole("{\"model_type\": \"gemma3n\", \"text_config\": {\"intermediate_size\": [96, 96], "
		       "\"num_hidden_layers\": 2, \"hidden_size\": 64, \"vocab_size\": 100}}");
	CU_ASSERT_EQUAL(h.model.ffn_hidden, 96);
	CU_ASSERT_EQUAL(h.model.global_attention_every, 5);
	/* DeBERTa-v3 base: 184 M with its head, of which 128,100 x 768 are the table */
	h = read_whole("{\"model_type\": \"deberta-v2\", \"hidden_size\": 768, \"num_hidden_layers\": 12, "
		       "\"num_attention_heads\": 12, \"intermediate_size\": 3072, \"vocab_size\": 128100, "
		       "\"type_vocab_size\": 0, \"position_biased_input\": false, \"relative_attention\": true}");
	CU_ASSERT_EQUAL(h.model.position, POS_NONE);
	CU_ASSERT(fabs((double)model_parameters(&h.model) / 184e6 - 1) < 0.005);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.left_out, "train.attention: naive"));
	/* CLIP ViT-B/32: 87.46 M in its tower, and a projection of 768 x 512 */
	h = read_whole("{\"model_type\": \"clip\", \"text_config\": {}, \"vision_config\": {}}");
	CU_ASSERT_EQUAL(h.model.seq_len, 50);
	CU_ASSERT(fabs((double)model_parameters(&h.model) / 87.85e6 - 1) < 0.005);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.left_out, "the tower of text"));
	h = read_whole("{\"model_type\": \"siglip2\", \"vision_config\": {\"num_patches\": 256}}");
	CU_ASSERT_EQUAL(h.model.image_size, 256);
	CU_ASSERT_EQUAL(h.model.seq_len, 256);
	h = read_whole(
		"{\"model_type\": \"mllama\", \"text_config\": {\"hidden_size\": 64, \"intermediate_size\": 128, "
		"\"num_attention_heads\": 4, \"num_hidden_layers\": 5, \"vocab_size\": 100, "
		"\"cross_attention_layers\": [3]}}");
	CU_ASSERT_EQUAL(h.model.layers, 5);
}

/* Experts of 32 columns of a model of 64: a product of each, and two around them. */
/* What transformers 5 writes of DeepSeek-V3's kind: dense layers by their list, a bias of the router by the type. */
static void test_listed_dense_layers(void)
{
	static const char sizes[] = "\"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 5, "
				    "\"num_hidden_layers\": 3, \"vocab_size\": 100, \"kv_lora_rank\": 16, "
				    "\"n_routed_experts\": 4, \"moe_intermediate_size\": 32, ";
	char text[512];
	snprintf(text, sizeof text,
		"{\"model_type\": \"deepseek_v3\", %s\"mlp_layer_types\": [\"dense\", \"dense\", \"sparse\"]}", sizes);
	struct model m = read_ok(text);
	CU_ASSERT(m.first_dense_layers == 2 && m.router_bias);
	snprintf(text, sizeof text, "{\"model_type\": \"deepseek_v3\", %s\"topk_method\": \"greedy\"}", sizes);
	m = read_ok(text);
	CU_ASSERT(m.first_dense_layers == 0 && !m.router_bias);
	snprintf(text, sizeof text, "{\"model_type\": \"glm4_moe\", %s\"mlp_layer_types\": [\"dense\"]}", sizes);
	m = read_ok(text);
	CU_ASSERT(m.first_dense_layers == 1 && m.head_dim == 12); /* 64 / 5, rounded down */
}

static void test_narrow_experts(void)
{
	struct model m = read_ok("{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"ME\", "
				 "\"num_hidden_layers\": 2, \"hidden_size\": 64, \"intermediate_size\": 128, "
				 "\"num_attention_heads\": 4, \"vocab_size\": 100, \"moe_latent_size\": 32, "
				 "\"n_routed_experts\": 4, \"num_experts_per_tok\": 2, \"n_shared_experts\": 1, "
				 "\"moe_intermediate_size\": 48, \"moe_shared_expert_intermediate_size\": 48, "
				 "\"mamba_num_heads\": 2, \"mamba_head_dim\": 64, \"n_groups\": 1, "
				 "\"ssm_state_size\": 16, \"mlp_hidden_act\": \"relu2\"}");
	CU_ASSERT_EQUAL(m.moe_latent, 32);
	struct model wide = m;
	wide.moe_latent = 0;
	/* 4 experts of two matrices 48 x 64 become 48 x 32, with two matrices 64 x 32 beside them */
	CU_ASSERT_EQUAL((int64_t)(model_parameters(&wide) - model_parameters(&m)), 4 * 2 * 48 * 32 - 2 * 64 * 32);
}

static void refused(const char *text, const char *message)
{
	struct hf_model m;
	struct error e = {0};
	CU_ASSERT_EQUAL(hf_config_parse(text, strlen(text), "config.json", &m, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, message);
	if (strcmp(e.text, message) != 0)
		printf("\n%s\n", e.text);
}

#define SIZES \
	"\"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, \"num_hidden_layers\": 2, " \
	"\"vocab_size\": 100"
#define KNOWN "docs/reference.md lists those that are known)"

static void test_refusals(void)
{
	refused("{}", "config.json: model_type: missing (" KNOWN);
	refused("{\"model_type\": 3}", "config.json: model_type: missing (" KNOWN);
	refused("{\"model_type\": \"lama\"}",
		"config.json: model_type: unknown value \"lama\" (nearest: llama; " KNOWN);
	refused("{\"model_type\": \"exaone4\", \"sliding_window\": 16, \"sliding_window_pattern\": \"LGL\", " SIZES "}",
		"config.json: sliding_window_pattern: expected one G behind at least an L");
	refused("{\"model_type\": \"some_vl\", \"text_config\": {\"model_type\": \"of_nobody\"}}",
		"config.json: model_type: unknown value \"some_vl\" (" KNOWN);
	refused("{\"model_type\": \"bailing_moe_linear\"}",
		"config.json: model_type: bailing_moe_linear has lightning attention, which cannot be described "
		"(nearest: bailing_moe_v2; " KNOWN);
	refused("{\"model_type\": \"some_vl\", \"text_config\": {\"model_type\": \"recurrent_gemma\"}}",
		"config.json: model_type: recurrent_gemma has gated linear recurrences, which cannot be described "
		"(nearest: mamba2; " KNOWN);
	refused("{\"model_type\": \"electra\", \"embedding_size\": 32, " SIZES "}",
		"config.json: embedding_size: an embedding of another width than the model's cannot be described "
		"(nearest type: bert)");
	refused("{\"model_type\": \"resnet\", \"hidden_sizes\": [256, 500]}",
		"config.json: hidden_sizes: expected twice the channels from stage to stage");
	refused("{\"model_type\": \"hy_v3\", \"mlp_layer_types\": [\"sparse\", \"dense\"], " SIZES "}",
		"config.json: mlp_layer_types: dense layers between those with experts cannot be described");
	refused("{\"model_type\": \"mellum\", \"sliding_window\": 16, \"layer_types\": [\"full_attention\", "
		"\"sliding_attention\"], " SIZES "}",
		"config.json: layer_types: expected full attention in the last of every so many layers alone");
	refused("{\"model_type\": \"qwen3_next\", \"layer_types\": [\"full_attention\"], " SIZES "}",
		"config.json: layer_types: expected a kind for each of num_hidden_layers");
	refused("{\"model_type\": \"falcon_h1\", \"mamba_n_heads\": 7, \"mamba_d_ssm\": 64, " SIZES "}",
		"config.json: mamba_n_heads: expected a divisor of mamba_d_ssm");
	refused("{\"model_type\": \"nemotron_h\", \"layers_block_type\": [\"mamba\", \"hyena\"], " SIZES "}",
		"config.json: layers_block_type: expected mamba, attention, mlp or moe for each of num_hidden_layers");
	refused("{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": 5, \"layers_block_type\": [\"mamba\", "
		"\"mlp\"], " SIZES "}",
		"config.json: hybrid_override_pattern: expected a letter for each layer");
	refused("{\"model_type\": \"lfm2\", \"conv_dim\": 32, " SIZES "}",
		"config.json: conv_dim: convolutions of another width than the model's cannot be described");
	refused("{\"model_type\": \"lfm2\", \"conv_bias\": true, " SIZES "}",
		"config.json: conv_bias: true cannot be described");
	refused("{\"model_type\": \"lfm2\", \"block_ffn_dim_multiplier\": 1e300, " SIZES "}",
		"config.json: block_ffn_dim_multiplier: out of range");
	refused("{\"model_type\": \"hunyuan_v1_moe\", \"num_experts\": [100000, 100000], " SIZES "}",
		"config.json: num_experts: out of range");
	refused("{\"model_type\": \"hunyuan_v1_moe\", \"num_experts\": [4, 8], " SIZES "}",
		"config.json: num_experts: expected one number for all layers");
	refused("[]", "config.json:1:1: expected a JSON object");
	refused("{\"model_type\": \"llama\"}",
		"config.json: num_hidden_layers: missing: expected an integer from 1 to 10000");
	refused("{\"model_type\": \"gpt2\", \"n_head\": \"12\"}",
		"config.json: n_head: expected an integer from 1 to 65536");
	refused("{\"model_type\": \"gpt2\", \"n_head\": 0}",
		"config.json: n_head: expected an integer from 1 to 65536");
	refused("{\"model_type\": \"gpt2\", \"n_embd\": 770}",
		"config.json: n_embd: not a multiple of the number of heads");
	refused("{\"model_type\": \"llama\", \"hidden_size\": 66, \"intermediate_size\": 128, \"num_attention_heads\": "
		"4, \"num_hidden_layers\": 2, \"vocab_size\": 100}",
		"config.json: hidden_size: not a multiple of the number of heads");
	refused("{\"model_type\": \"gpt2\", \"n_layer\": 1e3}",
		"config.json: n_layer: expected an integer from 1 to 10000");
	refused("{\"model_type\": \"gpt2\", \"activation_function\": \"tanh\"}",
		"config.json: activation_function: expected a gelu, relu or relu2");
	refused("{\"model_type\": \"llama\", " SIZES ", \"hidden_act\": \"relu\"}",
		"config.json: hidden_act: expected silu or a gelu");
	refused("{\"model_type\": \"llama\", " SIZES ", \"tie_word_embeddings\": 1}",
		"config.json: tie_word_embeddings: expected true or false");
	refused("{\"model_type\": \"qwen3_moe\", " SIZES ", \"mlp_only_layers\": [1]}",
		"config.json: mlp_only_layers: dense layers between those with experts cannot be described");
	refused("{\"model_type\": \"gemma2\", " SIZES ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
		"config.json: layer_types: expected full attention in the last of every so many layers alone");
	refused("{\"model_type\": \"opt\", \"word_embed_proj_dim\": 512}",
		"config.json: word_embed_proj_dim: an embedding of another width than the model's cannot be described");
	struct model mixture = read_ok(
		"{\"model_type\": \"qwen3_moe\", " SIZES
		", \"num_experts\": 6, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 32}");
	CU_ASSERT(mixture.experts == 6 && mixture.experts_per_token == 3 && mixture.moe_ffn_hidden == 32 &&
		  !mixture.bias);

	/* jansson's words differ between versions; the place does not */
	static const struct {
		const char *text, *place;
	} broken[] = {{"{\"model_type\": \"llama\",\n \"hidden_size\": }", "config.json:2:"},
		{"{\"model_type\": \"gpt2\", \"model_type\": \"gpt2\"}", "config.json:1:"}, {"", "config.json:1:"}};
	for (size_t i = 0; i < COUNT(broken); i++) {
		struct hf_model m;
		struct error e = {0};
		CU_ASSERT_EQUAL(hf_config_parse(broken[i].text, strlen(broken[i].text), "config.json", &m, &e),
			ST_INPUT);
		CU_ASSERT_EQUAL(strncmp(e.text, broken[i].place, strlen(broken[i].place)), 0);
	}
}

static void test_kinds(void)
{
	struct model m = read_ok("{\"model_type\": \"llama\", " SIZES ", \"attention_bias\": true}");
	CU_ASSERT(m.qkv_bias && m.proj_bias && !m.bias);
	m = read_ok("{\"model_type\": \"gpt_neox\", " SIZES ", \"attention_bias\": false}");
	CU_ASSERT(!m.qkv_bias && !m.proj_bias && m.bias);
	m = read_ok("{\"model_type\": \"qwen3_moe\", " SIZES ", \"mlp_only_layers\": [0], \"attention_bias\": true}");
	CU_ASSERT(m.first_dense_layers == 1 && !model_has_experts(&m, 0) && model_has_experts(&m, 1));
	CU_ASSERT(m.qk_norm == QK_NORM_HEAD && m.qkv_bias && m.proj_bias && m.experts == 128);
	m = read_ok("{\"model_type\": \"gemma2\", " SIZES ", \"sliding_window\": 1024}");
	CU_ASSERT(model_window(&m, 0) == 1024 && model_window(&m, 1) == 0);
	CU_ASSERT(m.branch_norm == BRANCH_NORM_SANDWICH && m.mlp == MLP_GEGLU && m.tied_embeddings);

	/* seq_len is not what the model can take */
	struct hf_model whole = read_whole(
		"{\"model_type\": \"llama\", " SIZES ", \"max_position_embeddings\": 131072}");
	CU_ASSERT(whole.model.seq_len == 4096 && whole.longest_seq == 131072 && whole.left_out[0] == '\0');
	whole = read_whole("{\"model_type\": \"gpt_oss\", " SIZES ", \"max_position_embeddings\": 1024}");
	CU_ASSERT(whole.model.seq_len == 1024);
	CU_ASSERT_STRING_EQUAL(whole.left_out, "the experts' biases");
	CU_ASSERT(whole.model.attention_sinks && whole.model.expert_bias);
	m = read_ok("{\"model_type\": \"gemma2\", " SIZES ", \"attn_logit_softcapping\": 50.0, "
		    "\"final_logit_softcapping\": 30.0}");
	CU_ASSERT(m.attention_softcap == 50 && m.logit_softcap == 30);
	m = read_ok("{\"model_type\": \"smollm3\", " SIZES ", \"no_rope_layers\": [1, 1, 1, 0]}");
	CU_ASSERT(model_has_rope(&m, 2) && !model_has_rope(&m, 3) && model_has_rope(&m, 4));
	m = read_ok("{\"model_type\": \"llama4_text\", " SIZES "}");
	CU_ASSERT(m.window_kind == WINDOW_CHUNKED && m.no_rope_every == 4 && m.global_attention_every == 4);
	CU_ASSERT(hf_config_is("{\"model_type\": \"x\"}", 19) && !hf_config_is("{model: {layers: 2}}", 20));
}

/* From a config: relative to the config's folder, keys override it, later origins win. */
static void test_in_a_config(void)
{
	char folder[] = "/tmp/stepsim-hf-XXXXXX", path[64], name[64], set[96];
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/config.json", folder);
	snprintf(name, sizeof name, "%s/run.yaml", folder);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs("{\"model_type\": \"llama\", " SIZES ", \"num_key_value_heads\": 2}", f);
	fclose(f);

	const char *text = "model: {hf_config: config.json, layers: 3, seq_len: 77}";
	struct config c;
	struct error e = {0};
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), name, NULL, 0, &c, &e), ST_OK);
	CU_ASSERT_EQUAL(c.model.layers, 3);
	CU_ASSERT_EQUAL(c.model.seq_len, 77);
	CU_ASSERT_EQUAL(c.model.hidden, 64);
	CU_ASSERT_EQUAL(c.model.kv_heads, 2);
	CU_ASSERT_STRING_EQUAL(c.model.name, "llama");
	CU_ASSERT_STRING_EQUAL(c.hf_config, "config.json");

	const char *preset[] = {"model.preset=gpt2-124m"};
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), name, preset, 1, &c, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(c.model.name, "gpt2-124m");
	CU_ASSERT_EQUAL(c.model.hidden, 768);
	CU_ASSERT_STRING_EQUAL(c.hf_config, "");

	snprintf(set, sizeof set, "model.hf_config=%s", path);
	const char *hf[] = {set};
	text = "model: {preset: gpt2-124m}";
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), name, hf, 1, &c, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(c.model.name, "llama");
	CU_ASSERT_EQUAL(c.model.hidden, 64);
	CU_ASSERT_FALSE(c.model.tied_embeddings);
	unlink(path);
	rmdir(folder);
}

UNIT_MAIN("hf_config", {"published counts", test_published}, {"fields", test_fields}, {"refusals", test_refusals},
	{"kinds", test_kinds}, {"partly read", test_partly_read}, {"narrow experts", test_narrow_experts},
	{"listed dense layers", test_listed_dense_layers}, {"in a config", test_in_a_config})
