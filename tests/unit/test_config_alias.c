/* Other names of keys: the table, and what a config and --set make of them. */
#include <string.h>

#include "base/array.h"
#include "step/config/keys.h"
#include "tests/unit/harness.h"

#define LLAMA "model: {preset: llama3-8b}\n"

static struct config parsed(const char *text, const char *const *sets, size_t n)
{
	struct config c;
	struct error e = {0};
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), "cfg.yaml", sets, n, &c, &e), ST_OK);
	if (e.status)
		printf("\n%s\n%s\n", text, e.text);
	return c;
}

static struct config with_set(const char *set) { return parsed(LLAMA, &set, 1); }

static void refused(const char *text, const char *set, const char *message)
{
	struct config c;
	struct error e = {0};
	CU_ASSERT_EQUAL(config_parse(text, strlen(text), "cfg.yaml", &set, set != NULL, &c, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, message);
	if (strcmp(e.text, message) != 0)
		printf("\ngot %s\n", e.text);
}

/* A name leads to this key alone, and is the name of none. */
static void check_name(enum key_id id, const char *name)
{
	const char *value = "";
	enum key_id found;
	CU_ASSERT_EQUAL(config_alias_key(name), id);
	config_alias_read("none such", name, &value, &found, NULL);
	CU_ASSERT_EQUAL(found, KEY_COUNT);
	for (int i = 0; i < KEY_COUNT; i++)
		CU_ASSERT_FALSE(suggest_same(name, config_key((enum key_id)i)->name));
}

/* A name's own value becomes one of the key's. */
static void check_value(enum key_id id, const char *name, const char *from, const char *to)
{
	const struct config_key *k = config_key(id);
	const char *value = from;
	enum key_id found;
	struct config c = {0};
	CU_ASSERT_EQUAL(config_alias_read(k->section, name, &value, &found, NULL), ST_OK);
	CU_ASSERT_STRING_EQUAL(value, to);
	const struct ynode n = {.kind = Y_SCALAR, .file = "x", .text = value};
	CU_ASSERT_EQUAL(key_read(k, &n, &c, NULL), ST_OK);
}

static void test_table(void)
{
	struct config_key_words k;
	const char *seen[256];
	char texts[KEY_COUNT][CONFIG_NAMES_MAX];
	size_t n = 0, i = 0;
	for (; config_key_words(i, &k); i++) {
		CU_ASSERT_STRING_EQUAL(k.path, config_key((enum key_id)i)->path);
		CU_ASSERT_TRUE(strlen(k.names) < CONFIG_NAMES_MAX - 1);
		strcpy(texts[i], k.names);
		for (char *rest = texts[i], *row; (row = strsep(&rest, ";"));) {
			char *values = strchr(row, '('), *saved, from[32], to[32];
			if (values)
				*values++ = '\0';
			for (char *name = strtok_r(row, " ,", &saved); name; name = strtok_r(NULL, " ,", &saved)) {
				check_name((enum key_id)i, name);
				seen[n++] = name;
			}
			for (char *v = values; v && sscanf(v, " %31[^:]: %31[^,)]", from, to) == 2;
				v += strcspn(v, ",)") + 1)
				check_value((enum key_id)i, seen[n - 1], from, to);
		}
	}
	CU_ASSERT_EQUAL(i, KEY_COUNT);
	CU_ASSERT_TRUE(n > 80);
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < a; b++)
			CU_ASSERT_FALSE(suggest_same(seen[a], seen[b]));
}

static void test_files(void)
{
	struct config c = parsed("model: {num_layers: 24, Hidden-Size: 1024, n_head: 16, vocab_size: 1000,\n"
				 "  untie_embeddings_and_output_weights: true}\n"
				 "train: {MBS: 2, gbs: 32, gradient_checkpointing: true}\n"
				 "parallel: {TP: 4, pp: 2, sp: yes, zero_stage: 1}\n"
				 "cluster: {nnodes: 2, nproc-per-node: 8}\n",
		NULL, 0);
	CU_ASSERT(c.model.layers == 24 && c.model.hidden == 1024 && c.model.vocab == 1000 && !c.model.tied_embeddings);
	CU_ASSERT(c.train.micro_batch == 2 && c.train.global_batch == 32 && c.train.recompute == REC_FULL);
	CU_ASSERT(c.parallel.tensor == 4 && c.parallel.pipeline == 2 && c.parallel.sequence_parallel);
	CU_ASSERT_EQUAL(c.parallel.strategy, STRAT_ZERO1);
	CU_ASSERT(c.cluster.nodes == 2 && c.cluster.gpus_per_node == 8);
	CU_ASSERT(c.origin[KEY_parallel_tensor].kind == ORIGIN_FILE && c.origin[KEY_parallel_tensor].line == 4);

	refused(LLAMA "train: {\n  tp: 2}\n", NULL, "cfg.yaml:3:3: train.tp: unknown key (nearest: parallel.tensor)");
	refused(LLAMA "tp: 2\n", NULL, "cfg.yaml:2:1: tp: unknown key (nearest: parallel.tensor)");
	refused(LLAMA "parallel:\n  tensor: 2\n  tp: 2\n", NULL,
		"cfg.yaml:4:3: parallel.tp: line 3 gives parallel.tensor already");
	refused(LLAMA "parallel:\n  tp: 2\n  tensor: 2\n", NULL,
		"cfg.yaml:4:3: parallel.tensor: line 3 gives parallel.tensor already");
	refused(LLAMA "parallel:\n  fsdp: true\n  zero: 3\n", NULL,
		"cfg.yaml:4:3: parallel.zero: line 3 gives parallel.strategy already");
	refused(LLAMA "parallel:\n  fsdp: false\n", NULL,
		"cfg.yaml:3:9: parallel.fsdp: unknown value \"false\" (known: true)");
	refused(LLAMA "parallel:\n  fsdp: [1]\n", NULL,
		"cfg.yaml:3:9: parallel.fsdp: unknown value \"\" (known: true)");
	refused(LLAMA "parallel:\n  tp: two\n", NULL,
		"cfg.yaml:3:7: parallel.tensor: expected an integer from 1 to 65536, got \"two\"");
	refused(LLAMA "train:\n  gradient_accumulation_steps: 2\n", NULL,
		"cfg.yaml:3:3: train.gradient_accumulation_steps: unknown key (nearest: train.global_batch)");
}

static void test_sets(void)
{
	static const char *const last_wins[] = {"tp=2", "parallel.tensor=4", "parallel.TP=8"};
	CU_ASSERT_EQUAL(parsed(LLAMA "parallel: {tensor: 1}\n", last_wins, 2).parallel.tensor, 4);
	CU_ASSERT_EQUAL(parsed(LLAMA "parallel: {tensor: 1}\n", last_wins, 3).parallel.tensor, 8);
	CU_ASSERT_EQUAL(with_set("tensor=2").parallel.tensor, 2);
	CU_ASSERT_EQUAL(with_set("data=2").parallel.data, 2); /* a section, too, which has no value */
	CU_ASSERT_EQUAL(with_set("Zero-Stage=3").parallel.strategy, STRAT_FSDP);
	CU_ASSERT_EQUAL(with_set("use_distributed_optimizer=False").parallel.strategy, STRAT_DDP);
	CU_ASSERT_EQUAL(with_set("tp=2").origin[KEY_parallel_tensor].kind, ORIGIN_SET);

	refused(LLAMA, "train.tp=2", "--set train.tp=2: unknown key (nearest: parallel.tensor)");
	refused(LLAMA, "prefetch=2", "--set prefetch=2: unknown key (nearest: data.prefetch, parallel.prefetch)");
	refused(LLAMA, "zero_stage=4", "--set zero_stage=4: unknown value \"4\" (known: 0, 1, 2, 3)");
	refused(LLAMA, "world_size=8", "--set world_size=8: unknown key (nearest: cluster.nodes)");
	refused(LLAMA, "run.frames=8",
		"--set run.frames=8: unknown key (known: run.execute, run.backend, run.share_gpu, run.warmup, "
		"run.steps, run.timeout_s, run.verify)");
	refused(LLAMA, "quota=8", "--set quota=8: unknown key (`stepsim list keys` lists them)");

	const char *key = "Zero", *value = "2";
	struct error e = {0};
	CU_ASSERT_EQUAL(config_key_typed(&key, &value, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(key, "parallel.strategy");
	CU_ASSERT_STRING_EQUAL(value, "zero2");
}

/* Words: case, '-' and '_' do not matter, and others for the same are known. */
static void test_words(void)
{
	static const struct {
		const char *set, *becomes;
	} cases[] = {
		{"train.optimizer=AdamW", "adamw"},
		{"train.attention=Flash", "flash"},
		{"train.attention=Flash-Attn", "flash"},
		{"train.attention=flash_attention", "flash"},
		{"train.dtype=BF16", "bf16"},
		{"train.dtype=bfloat16", "bf16"},
		{"train.dtype=float16", "fp16"},
		{"train.dtype=Half", "fp16"},
		{"train.dtype=float32", "fp32"},
		{"train.grad_dtype=float", "fp32"},
		{"train.attention_kernel=AUTO", "auto"},
		{"model.norm=LayerNorm", "layernorm"},
		{"normalization=layer-norm", "layernorm"},
		{"model.position=Rotary", "rope"},
		{"parallel.strategy=FSDP", "fsdp"},
		{"parallel.strategy=ZeRO-3", "fsdp"},
		{"parallel.context_kind=all-gather", "all_gather"},
		{"parallel.schedule=GPipe", "gpipe"},
		{"collectives.protocol=LL128", "ll128"},
		{"run.execute=False", "false"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char key[64], text[KEY_VALUE_MAX];
		const char *equals = strchr(cases[i].set, '='), *value = equals + 1;
		enum key_id id;
		struct config c = with_set(cases[i].set);
		snprintf(key, sizeof key, "%.*s", (int)(equals - cases[i].set), cases[i].set);
		CU_ASSERT_EQUAL(config_key_read(key, &value, &id, NULL), ST_OK);
		CU_ASSERT_STRING_EQUAL(value, cases[i].becomes);
		CU_ASSERT_STRING_EQUAL(key_value_text(config_key(id), &c, text), cases[i].becomes);
	}
	/* those of files, too, which are not read by --set; no word for another key's */
	CU_ASSERT_EQUAL(parsed(LLAMA "train: {optimizer: Lion, dtype: Float16}", NULL, 0).train.dtype, DT_FP16);
	CU_ASSERT_EQUAL(with_set("parallel.data=AUTO").parallel.data, AUTO);
	CU_ASSERT_EQUAL(with_set("parallel.order=TP-CP-EP-PP-DP").parallel.order[DIM_COUNT - 1], DIM_DP);
	CU_ASSERT_EQUAL(with_set("cost.system_price_usd=0.3M").cost.system_price_usd, 3e5);
	refused(LLAMA, "train.recompute=half",
		"--set train.recompute=half: unknown value \"half\" (known: none, selective, full)");
	refused(LLAMA, "train.optimizer=-_",
		"--set train.optimizer=-_: unknown value \"-_\" (known: adamw, adam, lamb, muon, adafactor, lion, sgd, "
		"none)");
}

UNIT_MAIN("config: other names", {"the table", test_table}, {"files", test_files}, {"--set", test_sets},
	{"words", test_words})
