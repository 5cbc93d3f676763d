/* Hugging Face config.json: real models by their published counts, and what is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "step/config.h"
#include "step/hf_config.h"
#include "tests/unit/harness.h"

static struct model read_ok(const char *text)
{
	struct model m;
	struct error e = {0};
	CU_ASSERT_EQUAL(hf_config_parse(text, strlen(text), "config.json", &m, &e), ST_OK);
	if (e.status)
		printf("\n%s\n", e.text);
	return m;
}

/* The figures are the parameter counts of the repositories' safetensors files. */
static void test_published(void)
{
	static const struct {
		const char *name, *text;
		uint64_t parameters;
	} rows[] = {
		{"openai-community/gpt2",
			"{\"model_type\": \"gpt2\", \"activation_function\": \"gelu_new\", \"architectures\": "
			"[\"GPT2LMHeadModel\"], \"n_ctx\": 1024, \"n_embd\": 768, \"n_head\": 12, \"n_layer\": 12, "
			"\"n_positions\": 1024, \"resid_pdrop\": 0.1, \"vocab_size\": 50257}",
			124439808},
		{"meta-llama/Llama-2-7b-hf",
			"{\"model_type\": \"llama\", \"hidden_act\": \"silu\", \"hidden_size\": 4096, "
			"\"intermediate_size\": 11008, \"max_position_embeddings\": 4096, \"num_attention_heads\": 32, "
			"\"num_hidden_layers\": 32, \"num_key_value_heads\": 32, \"rope_scaling\": null, "
			"\"tie_word_embeddings\": false, \"vocab_size\": 32000}",
			6738415616},
		{"meta-llama/Meta-Llama-3-8B",
			"{\"model_type\": \"llama\", \"attention_bias\": false, \"hidden_act\": \"silu\", "
			"\"hidden_size\": 4096, \"intermediate_size\": 14336, \"max_position_embeddings\": 8192, "
			"\"num_attention_heads\": 32, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
			"\"vocab_size\": 128256}",
			8030261248},
		{"mistralai/Mistral-7B-v0.1",
			"{\"model_type\": \"mistral\", \"hidden_act\": \"silu\", \"hidden_size\": 4096, "
			"\"intermediate_size\": 14336, \"max_position_embeddings\": 32768, \"num_attention_heads\": "
			"32, "
			"\"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"sliding_window\": 4096, "
			"\"tie_word_embeddings\": false, \"vocab_size\": 32000}",
			7241732096},
		{"mistralai/Mistral-Nemo-Base-2407",
			"{\"model_type\": \"mistral\", \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": "
			"5120, \"intermediate_size\": 14336, \"max_position_embeddings\": 131072, "
			"\"num_attention_heads\": 32, \"num_hidden_layers\": 40, \"num_key_value_heads\": 8, "
			"\"sliding_window\": null, \"tie_word_embeddings\": false, \"vocab_size\": 131072}",
			12247782400},
		{"mistralai/Mixtral-8x7B-v0.1",
			"{\"model_type\": \"mixtral\", \"hidden_act\": \"silu\", \"hidden_size\": 4096, "
			"\"intermediate_size\": 14336, \"max_position_embeddings\": 32768, \"num_attention_heads\": "
			"32, "
			"\"num_experts_per_tok\": 2, \"num_hidden_layers\": 32, \"num_key_value_heads\": 8, "
			"\"num_local_experts\": 8, \"sliding_window\": null, \"vocab_size\": 32000}",
			46702792704},
		{"mistralai/Mixtral-8x22B-v0.1",
			"{\"model_type\": \"mixtral\", \"hidden_act\": \"silu\", \"hidden_size\": 6144, "
			"\"intermediate_size\": 16384, \"max_position_embeddings\": 65536, \"num_attention_heads\": "
			"48, "
			"\"num_experts_per_tok\": 2, \"num_hidden_layers\": 56, \"num_key_value_heads\": 8, "
			"\"num_local_experts\": 8, \"sliding_window\": null, \"vocab_size\": 32000}",
			140620634112},
		{"Qwen/Qwen3-30B-A3B", /* 30532122624 with the 48 x 2 x 128 weights of its head norms */
			"{\"model_type\": \"qwen3_moe\", \"decoder_sparse_step\": 1, \"head_dim\": 128, "
			"\"hidden_act\": \"silu\", \"hidden_size\": 2048, \"intermediate_size\": 6144, "
			"\"max_position_embeddings\": 40960, "
			"\"mlp_only_layers\": [], \"moe_intermediate_size\": 768, \"num_attention_heads\": 32, "
			"\"num_experts\": 128, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 48, "
			"\"num_key_value_heads\": 4, "
			"\"tie_word_embeddings\": false, \"use_sliding_window\": false, \"vocab_size\": 151936}",
			30532122624 - 48 * 2 * 128},
		{"EleutherAI/pythia-70m",
			"{\"model_type\": \"gpt_neox\", \"hidden_act\": \"gelu\", \"hidden_size\": 512, "
			"\"intermediate_size\": 2048, \"max_position_embeddings\": 2048, \"num_attention_heads\": 8, "
			"\"num_hidden_layers\": 6, \"rotary_pct\": 0.25, \"tie_word_embeddings\": false, "
			"\"use_parallel_residual\": true, \"vocab_size\": 50304}",
			70426624},
		{"EleutherAI/gpt-neox-20b",
			"{\"model_type\": \"gpt_neox\", \"hidden_act\": \"gelu_fast\", \"hidden_size\": 6144, "
			"\"intermediate_size\": 24576, \"max_position_embeddings\": 2048, \"num_attention_heads\": 64, "
			"\"num_hidden_layers\": 44, \"rotary_pct\": 0.25, \"vocab_size\": 50432}",
			20554567680},
		{"Qwen/Qwen2-0.5B",
			"{\"model_type\": \"qwen2\", \"hidden_act\": \"silu\", \"hidden_size\": 896, "
			"\"intermediate_size\": 4864, \"max_position_embeddings\": 131072, \"num_attention_heads\": "
			"14, "
			"\"num_hidden_layers\": 24, \"num_key_value_heads\": 2, \"sliding_window\": 131072, "
			"\"tie_word_embeddings\": true, \"use_sliding_window\": false, \"vocab_size\": 151936}",
			494032768},
		{"Qwen/Qwen2-7B",
			"{\"model_type\": \"qwen2\", \"hidden_act\": \"silu\", \"hidden_size\": 3584, "
			"\"intermediate_size\": 18944, \"max_position_embeddings\": 131072, \"num_attention_heads\": "
			"28, "
			"\"num_hidden_layers\": 28, \"num_key_value_heads\": 4, \"tie_word_embeddings\": false, "
			"\"use_sliding_window\": false, \"vocab_size\": 152064}",
			7615616512},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct model m = read_ok(rows[i].text);
		CU_ASSERT_EQUAL(model_parameters(&m), rows[i].parameters);
		if (model_parameters(&m) != rows[i].parameters)
			printf("\n%s: %llu\n", rows[i].name, (unsigned long long)model_parameters(&m));
	}
}

static void test_fields(void)
{
	struct model m = read_ok("{\"model_type\": \"gpt2\"}"); /* transformers' own defaults */
	CU_ASSERT_EQUAL(model_parameters(&m), 124439808);
	CU_ASSERT_EQUAL(m.max_positions, 1024);
	CU_ASSERT_EQUAL(m.mlp, MLP_GELU);
	CU_ASSERT_STRING_EQUAL(m.name, "gpt2");

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
}

static void refused(const char *text, const char *message)
{
	struct model m;
	struct error e = {0};
	CU_ASSERT_EQUAL(hf_config_parse(text, strlen(text), "config.json", &m, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, message);
	if (strcmp(e.text, message) != 0)
		printf("\n%s\n", e.text);
}

#define SIZES \
	"\"hidden_size\": 64, \"intermediate_size\": 128, \"num_attention_heads\": 4, \"num_hidden_layers\": 2, " \
	"\"vocab_size\": 100"
#define KNOWN "known: llama, mistral, mixtral, gpt2, gpt_neox, qwen2, qwen3_moe)"

static void test_refusals(void)
{
	refused("{}", "config.json: model_type: missing (" KNOWN);
	refused("{\"model_type\": 3}", "config.json: model_type: missing (" KNOWN);
	refused("{\"model_type\": \"lama\"}",
		"config.json: model_type: unknown value \"lama\" (nearest: llama; " KNOWN);
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
	refused("{\"model_type\": \"llama\", " SIZES ", \"attention_bias\": true}",
		"config.json: attention_bias: a bias on attention or on the MLP alone cannot be described");
	refused("{\"model_type\": \"llama\", " SIZES ", \"tie_word_embeddings\": 1}",
		"config.json: tie_word_embeddings: expected true or false");
	refused("{\"model_type\": \"gpt_neox\", " SIZES ", \"attention_bias\": false}",
		"config.json: attention_bias: a bias on the MLP alone cannot be described");
	refused("{\"model_type\": \"qwen3_moe\", " SIZES ", \"mlp_only_layers\": [0]}",
		"config.json: mlp_only_layers: dense layers between those with experts cannot be described");
	refused("{\"model_type\": \"qwen3_moe\", " SIZES ", \"decoder_sparse_step\": 2}",
		"config.json: decoder_sparse_step: dense layers between those with experts cannot be described");
	refused("{\"model_type\": \"qwen3_moe\", " SIZES ", \"attention_bias\": true}",
		"config.json: attention_bias: a bias on attention alone cannot be described");
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
		struct model m;
		struct error e = {0};
		CU_ASSERT_EQUAL(hf_config_parse(broken[i].text, strlen(broken[i].text), "config.json", &m, &e),
			ST_INPUT);
		CU_ASSERT_EQUAL(strncmp(e.text, broken[i].place, strlen(broken[i].place)), 0);
	}
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
	{"in a config", test_in_a_config})
