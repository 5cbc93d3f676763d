/* The parameter table against published counts, and against sums written down by hand. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/paths.h"
#include "base/yaml.h"
#include "step/config/config.h"
#include "tests/unit/harness.h"
#include "tests/unit/model_case.h"

/* Every file of the catalogue: exact where an exact count is published, or within 0.5 % where the file says what it
 * leaves out (Gemma 3: 4 %, its vision tower); within 2 % where the source rounds (GPT-3's table: its "350M" is 356
 * million, its "13.0B" 12.9). */
static void test_published_counts(void)
{
	char **names = NULL;
	size_t n = 0, exact = 0, rounded = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(path_catalogue_names("models", &names, &n, &e), ST_OK);
	for (size_t i = 0; i < n; i++) {
		char path[PATH_MAX_LEN];
		struct ydoc *doc = NULL;
		CU_ASSERT_EQUAL_FATAL(path_catalogue("models", names[i], path, &e), ST_OK);
		CU_ASSERT_EQUAL_FATAL(ydoc_load(path, &doc, &e), ST_OK);
		const struct ynode *published = ynode_get(ydoc_root(doc), "published_parameters"),
				   *about = ynode_get(ydoc_root(doc), "published_parameters_rounded");
		struct model m = preset(names[i], 0);
		CU_ASSERT_PTR_NOT_NULL(ynode_get(ydoc_root(doc), "source"));
		CU_ASSERT_STRING_EQUAL(m.name, names[i]);
		CU_ASSERT_EQUAL(sum_of_table(&m, 1, false), model_parameters(&m));
		int64_t count = 0;
		double size = 0;
		if (published) {
			CU_ASSERT_EQUAL(ynode_int(published, 1, INT64_MAX, &count, &e), ST_OK);
			const double off = fabs((double)model_parameters(&m) / (double)count - 1.0);
			const char *left_out = "";
			if (ynode_get(ydoc_root(doc), "left_out"))
				CU_ASSERT_EQUAL(ynode_string(ynode_get(ydoc_root(doc), "left_out"), &left_out, &e),
					ST_OK);
			const double most = strstr(left_out, "vision") ? 0.04 : left_out[0] ? 0.005 : 0;
			CU_ASSERT(off <= most);
			if (off > most)
				printf("\n%s: %llu, published %lld\n", names[i],
					(unsigned long long)model_parameters(&m), (long long)count);
			exact++;
		} else {
			CU_ASSERT_PTR_NOT_NULL_FATAL(about);
			CU_ASSERT_EQUAL(ynode_quantity(about, UNIT_NONE, 1, 1e15, &size, &e), ST_OK);
			CU_ASSERT(fabs((double)model_parameters(&m) / size - 1.0) < 0.02);
			rounded++;
		}
		ydoc_destroy(doc);
	}
	CU_ASSERT(exact >= 75);
	CU_ASSERT(rounded >= 8 + 4);
	path_names_free(names, n);
}

/* The active parameters that pages of mixtures name, in billions and rounded. Some count the tables of the vocabulary
 * (Mixtral), some do not (MiniMax-M2): within half a unit or 3 % of a count with both, one or none. */
static const struct {
	const char *name;
	double billions;
} active_counts[] = {
	{"dbrx", 36},
	{"deepseek-moe-16b", 2.8},
	{"deepseek-v2", 21},
	{"deepseek-v2-lite", 2.4},
	{"deepseek-v3", 37},
	{"dots.llm1", 14},
	{"ernie-4.5-21b-a3b", 3},
	{"glm-4.5", 32},
	{"glm-4.5-air", 12},
	{"glm-4.7-flash", 3},
	{"gpt-oss-120b", 5.1},
	{"gpt-oss-20b", 3.6},
	{"granite4-h-small", 9},
	{"hunyuan-a13b", 13},
	{"hy3-295b-a21b", 21},
	{"jamba-v0.1", 12},
	{"kimi-k2", 32},
	{"kimi-linear-48b-a3b", 3},
	{"lfm2-8b-a1b", 1.5},
	{"llama4-maverick", 17},
	{"llama4-scout", 17},
	{"mellum2-12b-a2.5b", 2.5},
	{"minimax-m2", 10},
	{"minimax-text-01", 45.9},
	{"mixtral-8x22b", 39},
	{"mixtral-8x7b", 12.9},
	{"nemotron3-super-120b-a12b", 12},
	{"olmoe-1b-7b", 1.3},
	{"qwen1.5-moe-a2.7b", 2.7},
	{"qwen3-235b-a22b", 22},
	{"qwen3-30b-a3b", 3.3},
	{"qwen3-next-80b-a3b", 3},
	{"qwen3.5-35b-a3b", 3},
	{"solar-open-100b", 12},
	{"trinity-mini", 3},
};

static void test_published_active(void)
{
	for (size_t i = 0; i < COUNT(active_counts); i++) {
		const struct model m = preset(active_counts[i].name, 0);
		const double active = (double)model_active_parameters(&m) / 1e9, named = active_counts[i].billions,
			     tables = (m.tied_embeddings ? 1 : 2) * (double)m.vocab * (double)m.hidden / 1e9,
			     half = named > floor(named) ? 0 : 0.5, near = fmax(0.03 * named, half);
		const bool well = named <= active + near && named >= active - tables - near;
		CU_ASSERT(well);
		if (!well)
			printf("\n%s: %.2f G active, published %g\n", active_counts[i].name, active, named);
	}
}

/* The counts that llm-foundry's benchmark prints for its sequence lengths (billions with 8 digits): the position table
 * grows with the sequence. */
static void test_mpt_by_length(void)
{
	static const struct {
		const char *name;
		int64_t seq_len;
		double billions;
	} rows[] = {
		{"mpt-125m", 512, 0.12413184},
		{"mpt-125m", 32768, 0.14890445},
		{"mpt-350m", 65536, 0.42099712},
		{"mpt-760m", 8192, 0.76990771},
		{"mpt-1b", 1024, 1.31385344},
		{"mpt-3b", 16384, 2.6885376},
		{"mpt-7b", 512, 6.65256755},
		{"mpt-7b", 65536, 6.91890586},
		{"mpt-13b", 8192, 12.88541184},
		{"mpt-30b", 1024, 29.96787405},
		{"mpt-30b", 8192, 30.01925427},
		{"mpt-70b", 2048, 64.86243738},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct model m = preset(rows[i].name, rows[i].seq_len);
		CU_ASSERT_DOUBLE_EQUAL((double)model_parameters(&m) / 1e9, rows[i].billions, 0.5e-8);
	}
}

/* Biases and norms by their switches: bias off leaves norm weights; RMSNorm never has a bias; Qwen2 keeps the one of Q,
 * K, V. */
static void test_bias_switches(void)
{
	struct model m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, bias: false}");
	CU_ASSERT_EQUAL(model_parameters(&m), 88 + 40 + (16 + 192 + 64 + 256 + 256) + 8);
	m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, bias: false, qkv_bias: true}");
	CU_ASSERT_EQUAL(model_parameters(&m), 88 + 40 + (16 + 192 + 24 + 64 + 256 + 256) + 8);
	m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, norm: rmsnorm}");
	CU_ASSERT_EQUAL(model_parameters(&m), 88 + 40 + (16 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8) + 8);
	m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, final_norm: false, lm_head: false, "
		   "tied_embeddings: false}");
	CU_ASSERT_EQUAL(model_parameters(&m), 88 + 40 + (32 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8));
}

static void test_matrices(void)
{
	static const enum param_kind none[] = {PARAM_SSM_CONV_W, PARAM_SSM_HEADS, PARAM_DELTA_HEADS, PARAM_KDA_HEADS,
		PARAM_SHORT_CONV_W};
	for (size_t i = 0; i < COUNT(none); i++)
		CU_ASSERT_FALSE(param_is_matrix(&(struct param){.kind = none[i], .rows = 4, .cols = 2}));
	CU_ASSERT_TRUE(param_is_matrix(&(struct param){.kind = PARAM_SSM_IN_W, .rows = 4, .cols = 2}));
	CU_ASSERT_FALSE(param_is_matrix(&(struct param){.kind = PARAM_NORM1_W, .rows = 4, .cols = 1}));
}

/* Adapters of rank 2 of the products of latent attention, of a delta rule, and of attention's gate. */
static void test_adapters_of_others(void)
{
	struct model m = loaded("model: {layers: 1, hidden: 8, heads: 2, vocab: 11, seq_len: 5, kv_lora_rank: 6, "
				"q_lora_rank: 4, head_dim: 6, rope_head_dim: 2, v_head_dim: 3, position: rope, "
				"norm: rmsnorm, bias: false, ffn_hidden: 16, mlp: gelu}");
	m.lora_rank = 2;
	m.lora_targets = LORA_QKV; /* down: 8 to 4, 8 to 8; up: 4 to 12, 6 to 14 */
	CU_ASSERT_EQUAL(model_lora_parameters(&m), 2 * (8 + 4 + 8 + 8 + 4 + 12 + 6 + 14));
	m.lora_targets = LORA_ATTENTION; /* and 6 to 8 */
	CU_ASSERT_EQUAL(model_trained_parameters(&m), 2 * (8 + 4 + 8 + 8 + 4 + 12 + 6 + 14 + 6 + 8));
	m = loaded("model: {layers: 3, hidden: 8, heads: 2, vocab: 11, seq_len: 5, layer_pattern: 'G*C', "
		   "attention_gate: true, position: none, norm: rmsnorm, bias: false, ssm_groups: 1, ssm_state: 4, "
		   "ssm_heads: 2, ssm_head_dim: 3}");
	m.lora_rank = 2;
	const int64_t attention = 8 + 24 + 8 + 8 + 8 + 8, delta = 8 + (2 * 6 + 2 * 4 + 2 * 2) + 6 + 8,
		      shorts = 8 + 24 + 16;
	CU_ASSERT_EQUAL((int64_t)model_lora_parameters(&m), 2 * (attention + delta + shorts));
	m.lora_targets = LORA_ATTENTION;
	CU_ASSERT_EQUAL((int64_t)model_lora_parameters(&m), 2 * attention);
}

/* Adapters of rank 2 of each of three experts, of 8 columns or of 5, and of the shared one. */
static void test_adapters_of_experts(void)
{
	struct model m = loaded(
		"model: {layers: 2, hidden: 8, heads: 2, vocab: 11, seq_len: 5, mlp: swiglu, experts: 3, "
		"experts_per_token: 2, moe_ffn_hidden: 6, shared_experts: 2, position: rope, "
		"norm: rmsnorm, bias: false, first_dense_layers: 1, ffn_hidden: 16}");
	m.lora_rank = 2;
	const int64_t attention = 8 + 24 + 8 + 8, dense = 8 + 32 + 16 + 8, shared = 8 + 24 + 12 + 8;
	const uint64_t experts = model_expert_parameters(&m);
	CU_ASSERT_EQUAL((int64_t)model_lora_parameters(&m),
		2 * (2 * attention + dense + shared + 3 * (8 + 12 + 6 + 8)));
	CU_ASSERT_EQUAL(model_trained_parameters(&m), model_lora_parameters(&m));
	m.moe_latent = 5;
	CU_ASSERT_EQUAL((int64_t)model_lora_parameters(&m),
		2 * (2 * attention + dense + shared + 3 * (5 + 12 + 6 + 5)));
	m.moe_latent = 0;
	m.lora_targets = LORA_ATTENTION;
	CU_ASSERT_EQUAL((int64_t)model_lora_parameters(&m), 2 * 2 * attention);
	CU_ASSERT_EQUAL(experts, 3 * 3 * 6 * 8); /* without adapters */
}

/* Llama 2 7B with adapters of rank 16: 16 x (in + out) for each of the products that NeMo has. */
static void test_adapters(void)
{
	struct model m = preset("llama2-7b", 0);
	const double whole = model_flop_per_token(&m);
	const uint64_t all = model_parameters(&m), qkv = 32ull * 16 * (4096 + 3 * 4096),
		       proj = 32ull * 16 * (4096 + 4096);
	const uint64_t mlp = 32ull * 16 * (4096 + 2 * 11008 + 11008 + 4096);
	m.lora_rank = 16;
	CU_ASSERT_EQUAL(model_parameters(&m), all);
	CU_ASSERT_EQUAL(model_lora_parameters(&m), qkv + proj + mlp);
	CU_ASSERT_EQUAL(model_trained_parameters(&m), qkv + proj + mlp);
	CU_ASSERT_EQUAL(sum_of_table(&m, 1, false), all + qkv + proj + mlp);
	/* A frozen weight needs the gradient of its input, not its own: 4 FLOP in place of 6 */
	CU_ASSERT(fabs(model_flop_per_token(&m) - (whole - 2.0 * (double)all + 6.0 * (double)(qkv + proj + mlp))) < 1);
	m.lora_targets = LORA_QKV;
	CU_ASSERT_EQUAL(model_trained_parameters(&m), qkv);
	m.lora_rank = 0;
	m.freeze = FREEZE_EMBEDDING;
	CU_ASSERT_EQUAL(model_trained_parameters(&m), all - 32000ull * 4096);
}

static void test_experts(void)
{
	struct model m = preset("mixtral-8x7b", 0);
	CU_ASSERT_EQUAL(model_active_parameters(&m),
		12879925248ull); /* 46702792704 - 6 unused experts of 3 x 4096 x 14336 in 32 layers */

	CU_ASSERT_EQUAL(model_expert_parameters(&m), 32ull * 8 * 3 * 4096 * 14336);

	m = preset("qwen3-30b-a3b", 0); /* "3.3B activated" on its page */
	CU_ASSERT_EQUAL(model_active_parameters(&m),
		2ull * 151936 * 2048 + 2048 +
			48ull * (2 * 2048 + 2 * 128 + 2048 * 128 * (2 * 32 + 2 * 4) + 128 * 2048 + 8 * 3 * 2048 * 768));
	CU_ASSERT(fabs((double)model_active_parameters(&m) / 3.3e9 - 1) < 0.02);
	m = preset("qwen3-235b-a22b", 0);
	CU_ASSERT(fabs((double)model_active_parameters(&m) / 22e9 - 1) < 0.02);

	/* every second block of five has experts: blocks 0, 2, 4 */
	m = loaded(
		"model: {layers: 5, hidden: 8, heads: 2, vocab: 16, position: none, mlp: swiglu, ffn_hidden: 12, bias: "
		"false, norm: rmsnorm, experts: 4, experts_per_token: 1, "
		"shared_experts: 1, moe_ffn_hidden: 3, moe_layer_freq: 2}");
	CU_ASSERT_EQUAL(sum_of_table(&m, 1, false), model_parameters(&m));
	int64_t routers = 0;
	for (int64_t i = 0; i < model_param_count(&m); i++) {
		struct param p = model_param(&m, i, 1);
		bool expert = p.kind == PARAM_ROUTER_W || p.kind == PARAM_EXPERT_FC1_W ||
		              p.kind == PARAM_EXPERT_FC2_W || p.kind == PARAM_SHARED_FC1_W ||
		              p.kind == PARAM_SHARED_FC2_W;
		if (expert)
			CU_ASSERT_EQUAL(p.layer % 2, 0);
		if (p.kind == PARAM_FC1_W || p.kind == PARAM_FC2_W)
			CU_ASSERT_EQUAL(p.layer % 2, 1);
		if (p.kind == PARAM_EXPERT_FC1_W)
			CU_ASSERT_EQUAL(p.copies, 4);
		routers += p.kind == PARAM_ROUTER_W;
	}
	CU_ASSERT_EQUAL(routers, 3);
	CU_ASSERT_EQUAL(model_param(&m, model_param_count(&m) - 1, 1).kind, PARAM_FINAL_NORM_W);
	uint64_t attention = 16 + 24 * 8 + 8 * 8, dense = 24 * 8 + 8 * 12, expert = 6 * 8 + 8 * 3;
	CU_ASSERT_EQUAL(model_parameters(&m), 16 * 8 + 5 * attention + 2 * dense + 3 * (4 * 8 + 5 * expert) + 8);
	CU_ASSERT_EQUAL(model_active_parameters(&m), 16 * 8 + 5 * attention + 2 * dense + 3 * (4 * 8 + 2 * expert) + 8);
}

/* Places at an expert: its share, rounded up, times the factor; a row takes one at the most. */
static void test_capacity(void)
{
	struct model m = {.experts = 8, .experts_per_token = 2};
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 4096, 1), 1024);
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 5, 1), 2);
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 40, 1.1), 11);
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 4096, 1.25), 1280);
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 4096, 4), 4096);
	CU_ASSERT_EQUAL(model_expert_capacity(&m, 4096, 100), 4096);
}

/* One token chooses 2 of 4 experts, on 2 ranks: of 6 pairs 2 lie on one rank. So the fullest has (4 x 1 + 2 x 2) / 6
 * = 4/3 choices, of a share of 1. Two tokens: 4 of 8 slots, 4 slots a rank. Of 70 choices 36 are 2 and 2, 32 are 3 and
 * 1, 2 are 4 and 0: (36 x 2 + 32 x 3 + 2 x 4) / 70 of a share of 2. */
static void test_fullest_rank(void)
{
	struct model m = {.experts = 4, .experts_per_token = 2};
	CU_ASSERT_DOUBLE_EQUAL(model_fullest_rank(&m, 1, 2), 4.0 / 3, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(model_fullest_rank(&m, 2, 2), 176.0 / 140, 1e-6);
	CU_ASSERT_EQUAL(model_fullest_rank(&m, 0, 2), 1);
	CU_ASSERT_EQUAL(model_fullest_rank(&m, 2, 1), 1);
	/* An expert a rank: the fullest has 1 of one token's choices, and a share is half of that. */
	CU_ASSERT_DOUBLE_EQUAL(model_fullest_rank(&m, 1, 4), 2, 1e-6);
	m.experts_per_token = 4;
	CU_ASSERT_EQUAL(model_fullest_rank(&m, 3, 2), 1);
	/* The more tokens, the more even: 64 of 512 experts with 16 choices each lie within a few per cent. */
	m = (struct model){.experts = 512, .experts_per_token = 16};
	CU_ASSERT(model_fullest_rank(&m, 64, 2) < model_fullest_rank(&m, 8, 2));
	CU_ASSERT(model_fullest_rank(&m, 64, 2) > 1 && model_fullest_rank(&m, 64, 2) < 1.05);
}

/* The parts of t ranks add up to the cut tensors once and the replicated ones t times. */
static void test_tensor_parts(void)
{
	static const char *const names[] = {"gpt2-124m", "llama3-8b", "bert-base"};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct model m = preset(names[i], 0);
		m.vocab_padding = 128;
		for (int64_t t = 1; t <= 4; t *= 2) {
			uint64_t replicated = 0;
			for (int64_t j = 0; j < model_param_count(&m); j++) {
				struct param p = model_param(&m, j, t);
				if (p.split == TP_REPLICATED)
					replicated += param_elements(&p);
			}
			CU_ASSERT_EQUAL((uint64_t)t * sum_of_table(&m, t, true),
				sum_of_table(&m, t, false) + (uint64_t)(t - 1) * replicated);
		}
	}
}

/* Tensor ranks that are several to a head of keys have a copy of it each: of 32 heads of queries and 8 of keys, 16
 * ranks store 16. Other numbers of ranks, and the model's own count, are as they were. */
static void test_shared_kv_heads(void)
{
	const struct model m = preset("llama3-8b", 0);
	const int64_t width = m.hidden * m.head_dim, heads[] = {0, 8, 16, 32}, ranks[] = {1, 8, 16, 32};
	for (size_t i = 0; i < COUNT(ranks); i++) {
		const int64_t kv = i < 2 ? 8 : heads[i];
		uint64_t qkv = 0;
		for (int64_t j = 0; j < model_param_count(&m); j++) {
			const struct param p = model_param(&m, j, ranks[i]);
			qkv += p.kind == PARAM_QKV_W ? param_local_elements(&p, ranks[i]) : 0;
		}
		CU_ASSERT_EQUAL(qkv, (uint64_t)(m.layers * (32 + 2 * kv) * width / ranks[i]));
		CU_ASSERT_EQUAL(model_stored_kv_heads(&m, ranks[i]), kv);
	}
	CU_ASSERT_FALSE(model_shares_kv_heads(&m, 8));
	CU_ASSERT_TRUE(model_shares_kv_heads(&m, 16));
	CU_ASSERT_FALSE(model_shares_kv_heads(&m, 12));
}

static void test_padded_vocabulary(void)
{
	struct model m = {.vocab = 50257, .vocab_padding = 1};
	CU_ASSERT_EQUAL(model_padded_vocab(&m, 1), 50257);
	CU_ASSERT_EQUAL(model_padded_vocab(&m, 8), 50257);
	m.vocab_padding = 128;
	CU_ASSERT_EQUAL(model_padded_vocab(&m, 1), 50304);
	CU_ASSERT_EQUAL(model_padded_vocab(&m, 8),
		51200); /* Megatron-LM's well-known figure for GPT-2's vocabulary at tensor parallel 8 */
	m.vocab = 1024;
	CU_ASSERT_EQUAL(model_padded_vocab(&m, 8), 1024);
}

/* 6N + 12 L h s, by hand for GPT-3 175B at 2048: N from the table. */
static void test_flop(void)
{
	struct model m = preset("gpt3-175b", 0);
	double n = 50257.0 * 12288 + 2048.0 * 12288 + 96.0 * (12.0 * 12288 * 12288 + 13.0 * 12288) + 2.0 * 12288;
	CU_ASSERT_DOUBLE_EQUAL(model_flop_per_token(&m) / (6.0 * n + 12.0 * 96 * 12288 * 2048), 1.0, 1e-14);
}

UNIT_MAIN("model", {"published counts", test_published_counts}, {"published active counts", test_published_active},
	{"MPT by length", test_mpt_by_length}, {"bias switches", test_bias_switches}, {"matrices", test_matrices},
	{"adapters", test_adapters}, {"adapters of others", test_adapters_of_others},
	{"adapters of experts", test_adapters_of_experts}, {"experts", test_experts}, {"capacity", test_capacity},
	{"fullest rank", test_fullest_rank}, {"tensor-parallel parts", test_tensor_parts},
	{"shared heads of keys", test_shared_kv_heads}, {"padded vocabulary", test_padded_vocabulary},
	{"FLOP a token", test_flop})
