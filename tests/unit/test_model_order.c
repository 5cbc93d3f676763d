#include <string.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/model_case.h"

static void check_order(const struct model *m, const char *const *kinds, const int64_t *layers, size_t n)
{
	CU_ASSERT_EQUAL_FATAL(model_param_count(m), (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		struct param p = model_param(m, (int64_t)i, 1);
		CU_ASSERT_STRING_EQUAL(param_kind_name(p.kind), kinds[i]);
		CU_ASSERT_EQUAL(p.layer, layers[i]);
	}
}

static void test_order_of_gpt(void)
{
	static const char *const kinds[] = {"token_embedding", "position_embedding", "norm1.weight", "norm1.bias",
		"qkv.weight", "qkv.bias", "proj.weight", "proj.bias", "norm2.weight", "norm2.bias", "fc1.weight",
		"fc1.bias", "fc2.weight", "fc2.bias", "norm1.weight", "norm1.bias", "qkv.weight", "qkv.bias",
		"proj.weight", "proj.bias", "norm2.weight", "norm2.bias", "fc1.weight", "fc1.bias", "fc2.weight",
		"fc2.bias", "final_norm.weight", "final_norm.bias", "head.weight"};
	static const int64_t layers[] = {-1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		-1, -1, -1};
	struct model m = loaded(
		"model: {layers: 2, hidden: 8, heads: 2, vocab: 11, seq_len: 5, tied_embeddings: false}");
	check_order(&m, kinds, layers, COUNT(kinds));
	/* by hand: 2 x 11 x 8 tables, 5 x 8 positions, per layer 4 x 8 norms + 24 x 8 + 24 + 8 x 8 + 8 + 32 x 8 + 32 +
	 * 8 x 32 + 8, final norm 16 */
	CU_ASSERT_EQUAL(model_parameters(&m), 2 * 88 + 40 + 2 * (32 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8) + 16);
}

static void test_order_of_bert(void)
{
	static const char *const kinds[] = {"token_embedding", "position_embedding", "type_embedding",
		"embedding_norm.weight", "embedding_norm.bias", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias",
		"norm1.weight", "norm1.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "norm2.weight",
		"norm2.bias", "pooler.weight", "pooler.bias", "head.dense.weight", "head.dense.bias",
		"head.norm.weight", "head.norm.bias", "head.bias"};
	static const int64_t layers[] = {-1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1,
		-1};
	struct model m = loaded("model: {preset: bert-base, layers: 1}");
	check_order(&m, kinds, layers, COUNT(kinds));
}

/* A picture of 4 x 4 patches and a class token, as the table of transformers' ViTForImageClassification has it. */
static void test_vit(void)
{
	static const char *const kinds[] = {"class_token", "patch_embedding.weight", "patch_embedding.bias",
		"position_embedding", "norm1.weight", "norm1.bias", "qkv.weight", "qkv.bias", "proj.weight",
		"proj.bias", "norm2.weight", "norm2.bias", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
		"final_norm.weight", "final_norm.bias", "classes.weight", "classes.bias"};
	static const int64_t layers[] = {-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1};
	struct model m = loaded("model: {layers: 1, hidden: 8, heads: 2, input: patches, image_size: 32, patch_size: "
				"8, class_token: true, classes: 10, lm_head: false, causal: false}");
	check_order(&m, kinds, layers, COUNT(kinds));
	const double block = 32 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8, patch = 8 * (3 * 64 + 1), head = 10 * 9;
	CU_ASSERT_EQUAL(m.seq_len, 17);
	CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m), 8 + patch + 17 * 8 + block + 16 + head, 0);
	/* Patches multiply 16 rows, the class head one, the rest all 17; attention 12 h s a token. */
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m) * 17,
		6 * (8 + patch * 16 + 17 * 8 * 17 + (block + 16) * 17 + head) + 12.0 * 8 * 17 * 17, 1e-6);
}

/* A further block has a product of 2 hidden columns and three norms beside a block like the last; the head works once
 * more. DeepSeek-V3: 671 B, and 685 B on Hugging Face's hub with a copy of table and head beside its further block
 * (https://huggingface.co/deepseek-ai/DeepSeek-V3). */
static void test_further_tokens(void)
{
	static const char text[] =
		"model: {layers: 2, hidden: 8, heads: 2, vocab: 11, seq_len: 5, tied_embeddings: false, "
		"norm: rmsnorm, bias: false, position: rope, mtp_layers: %d}";
	char one[256], none[256];
	snprintf(one, sizeof one, text, 1);
	snprintf(none, sizeof none, text, 0);
	struct model m = loaded(one), without = loaded(none);
	const double block = 16 + 192 + 64 + 256 + 256, further = block + 2 * 64 + 24;
	CU_ASSERT_EQUAL(model_blocks(&m), 3);
	CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m) - (double)model_parameters(&without), further, 0);
	CU_ASSERT_EQUAL(model_param_count(&m) - model_param_count(&without), 6 + 5);
	CU_ASSERT_EQUAL(sum_of_table(&m, 1, false), model_parameters(&m));
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m) - model_flop_per_token(&without),
		6 * (further + 88) + 12.0 * 8 * 5, 1e-6);
	m = preset("deepseek-v3", 0);
	CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m) / 671e9, 1, 0.001);
	m.mtp_layers = 1;
	CU_ASSERT_DOUBLE_EQUAL((double)(model_parameters(&m) + 2 * 129280 * 7168) / 685e9, 1, 0.001);
}

/* A block of DiT has no weights of norms; what conditions sees a picture once, all else its 4 patches. */
static void test_dit(void)
{
	static const char *const kinds[] = {"patch_embedding.weight", "patch_embedding.bias", "timestep.fc1.weight",
		"timestep.fc1.bias", "timestep.fc2.weight", "timestep.fc2.bias", "condition.weight",
		"position_embedding", "qkv.weight", "qkv.bias", "proj.weight", "proj.bias", "fc1.weight", "fc1.bias",
		"fc2.weight", "fc2.bias", "adapt.weight", "adapt.bias", "final_adapt.weight", "final_adapt.bias",
		"output.weight", "output.bias"};
	static const int64_t layers[] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1};
	struct model m = loaded("model: {layers: 1, hidden: 8, heads: 2, input: patches, image_size: 4, patch_size: 2, "
				"channels: 3, adaptive_norm: true, timestep_features: 16, condition_classes: 5, "
				"output_channels: 6, lm_head: false, causal: false, position: sincos}");
	check_order(&m, kinds, layers, COUNT(kinds));
	const double patch = 8 * (3 * 4 + 1), block = 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8, output = 24 * 9;
	const double once = 8 * 17 + 8 * 9 + 5 * 8 + 48 * 9 + 16 * 9; /* of a picture */
	CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m), patch + block + output + once + 4 * 8, 0);
	CU_ASSERT_DOUBLE_EQUAL((double)model_trained_parameters(&m), patch + block + output + once, 0);
	CU_ASSERT_EQUAL(model_targets(&m), 4);
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m) * 4,
		6 * (4 * (patch + block + output) + once) + 4 * (4 * 8 * 4) + 12.0 * 8 * 4 * 4, 1e-6);
}

/* BERT's vocabulary head sees the masked rows alone, 3 of 5, and so does the table that it shares. */
static void test_predictions(void)
{
	struct model m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, predictions: 3, "
				"head_transform: true, head_bias: true, classes: 2, pooler: true}");
	const double block = 32 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8, head = 88 + 64 + 8 + 16 + 11;
	CU_ASSERT_EQUAL(model_targets(&m), 3);
	CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m), 40 + block + 16 + head + (64 + 8) + 18, 0);
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m) * 5,
		6 * ((40 + block + 16) * 5 + head * 3 + 72 + 18) + 12.0 * 8 * 5 * 5, 1e-6);
}

static void test_order_of_llama(void)
{
	static const char *const kinds[] = {"token_embedding", "norm1.weight", "qkv.weight", "proj.weight",
		"norm2.weight", "fc1.weight", "fc2.weight", "final_norm.weight", "head.weight"};
	static const int64_t layers[] = {-1, 0, 0, 0, 0, 0, 0, -1, -1};
	struct model m = loaded("model: {preset: llama3-8b, layers: 1}");
	check_order(&m, kinds, layers, COUNT(kinds));
	struct param qkv = model_param(&m, 2, 1), fc1 = model_param(&m, 5, 1), fc2 = model_param(&m, 6, 1);
	CU_ASSERT_EQUAL(qkv.rows, (32 + 2 * 8) * 128);
	CU_ASSERT_EQUAL(qkv.cols, 4096);
	CU_ASSERT_EQUAL(qkv.split, TP_QKV);
	CU_ASSERT_EQUAL(fc1.rows, 2 * 14336);
	CU_ASSERT_EQUAL(fc1.split, TP_HALVES);
	CU_ASSERT_EQUAL(fc2.rows, 4096);
	CU_ASSERT_EQUAL(fc2.cols, 14336);
	CU_ASSERT_EQUAL(fc2.split, TP_COLS);
	CU_ASSERT_EQUAL(model_param(&m, 1, 1).split, TP_REPLICATED);
}

static void check_repeats(const struct model *m, int64_t leading, int64_t period, int64_t repeats, int64_t rest)
{
	const struct layer_order o = model_layer_order(m);
	CU_ASSERT(o.leading == leading && o.period == period && o.repeats == repeats && o.rest == rest);
}

static void test_layer_order(void)
{
	struct model m = {.layers = 12, .seq_len = 4096, .position = POS_ROPE, .causal = true, .sliding_window = 4096};
	check_repeats(&m, 0, 1, 12, 0);
	m.sliding_window = 512;
	m.global_attention_every = 6; /* Gemma 3: five windows, one layer that sees all */
	m.layers = 62;
	check_repeats(&m, 0, 6, 10, 2);
	m.layers = 11; /* no two whole times */
	check_repeats(&m, 0, 0, 0, 0);
	m.layers = 48; /* Llama 4 Maverick: experts in every 2nd layer, one of four sees all and has no rope */
	m.global_attention_every = m.no_rope_every = 4;
	m.experts = 128;
	m.moe_layer_freq = 2;
	check_repeats(&m, 0, 4, 12, 0);
	m = (struct model){.layers = 61,
		.seq_len = 4096,
		.sliding_window = 4096,
		.experts = 256,
		.first_dense_layers = 3};
	check_repeats(&m, 3, 1, 58, 0); /* DeepSeek-V3 */
	m.mtp_layers = 1;
	check_repeats(&m, 3, 1, 58, 0);
}

UNIT_MAIN("order of parameters", {"order of a GPT", test_order_of_gpt}, {"order of a BERT", test_order_of_bert},
	{"patches and classes", test_vit}, {"diffusion", test_dit}, {"further tokens", test_further_tokens},
	{"rows that a head sees", test_predictions}, {"order of a Llama", test_order_of_llama},
	{"the order of layers", test_layer_order})
