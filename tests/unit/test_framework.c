#include "base/array.h"
#include "tests/unit/harness.h"

#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "step/config/config.h"
#include "step/framework.h"

static struct error error;
static struct frameworks known;

static const char *stack_of(const char *word)
{
	const struct framework *f = framework_of(&known, word);
	return f ? f->stack : "";
}

/* Words of tables, and the stack that each must be. */
static void test_words(void)
{
	static const char *const words[][2] = {
		{"Megatron-LM", "megatron-lm"},
		{"Megatron-LM 2021", "megatron-lm"},
		{"Megatron-LM (SC21)", "megatron-lm"},
		{"megatron lm", "megatron-lm"},
		{"Megatron-Core 0.8", "megatron-core"},
		{"Megatron-Core (FlagScale)", "megatron-lm"},
		{"Megatron-Bridge 26.04.01", "megatron-core"},
		{"NeMo 24.07", "megatron-core"},
		{"NeMo-Aligner", "megatron-core"},
		{"Megatron-DeepSpeed 2022", "megatron-deepspeed"},
		{"Megatron-DeepSpeed (HabanaAI)", "habana-megatron"},
		{"optimum-habana 1.19", "habana-lazy"},
		{"Megatron(-DeepSpeed) 2021", "megatron-deepspeed"},
		{"Megatron + DeepSpeed 2021", "megatron-deepspeed"},
		{"Megatron-LM core, TE 2.11", "megatron-lm"},
		{"LitGPT benchmark, eager (FSDP2)", "pytorch-fsdp-eager"},
		{"LitGPT benchmark, torch.compile (FSDP2)", "pytorch-fsdp"},
		{"GPT-NeoX (DeepSpeed ZeRO-1)", "gpt-neox"},
		{"DeepSpeed ZeRO-3", "deepspeed"},
		{"PyTorch DDP, compiled model", "pytorch-ddp-model"},
		{"PyTorch DDP, compiled", "pytorch-ddp"},
		{"PyTorch, compiled", "pytorch-ddp"},
		{"PyTorch, eager", "pytorch-ddp-eager"},
		{"PyTorch 2.5 (eager)", "pytorch-ddp-eager"},
		{"PyTorch FSDP, eager", "pytorch-fsdp-eager"},
		{"PyTorch FSDP1 (Hugging Face), eager", "pytorch-fsdp-eager"},
		{"HF Trainer, torch.compile", "pytorch-ddp-model"},
		{"HF Trainer, FSDP, torch.compile", "pytorch-fsdp"},
		{"HF Trainer, compile, FSDP2", "pytorch-fsdp"},
		{"accelerate, FSDP2, compile", "pytorch-fsdp"},
		{"accelerate, FSDP2", "pytorch-fsdp-eager"},
		{"Axolotl, FSDP, compiled", "pytorch-fsdp"},
		{"Lightning, FSDP, compile", "pytorch-fsdp"},
		{"Colossal-AI", "deepspeed"},
		{"ColossalAI 0.3", "deepspeed"},
		{"MiCS", "deepspeed"},
		{"InternEvo 2023", "internlm"},
		{"InternLM", "internlm"},
		{"llm-foundry/Composer FSDP1", "composer-fsdp"},
		{"Composer", "composer-fsdp"},
		{"LLM Foundry", "composer-fsdp"},
		{"MaxText", "maxtext"},
		{"JAX MaxText", "maxtext"},
		{"levanter", "maxtext"},
		{"JAX PAX", "jax-pax"},
		{"Praxis", "jax-pax"},
		{"Alpa", "alpa"},
		{"Alpaca", ""},
		{"nanotron v0.5", "nanotron"},
		{"torchtitan", "pytorch-fsdp"},
		{"torchtitan FSDP2, compiled", "pytorch-fsdp"},
		{"torchtitan FSDP2, eager", "pytorch-fsdp-eager"},
		{"TorchTitan (no compile, eager)", "pytorch-fsdp-eager"},
		{"FSDP2", "pytorch-fsdp"},
		{"FSDP2 (eager)", "pytorch-fsdp-eager"},
		{"PyTorch FSDP1 + compile", "pytorch-fsdp"},
		{"PyTorch FSDP", "pytorch-fsdp-eager"},
		{"pytorch-fsdp", "pytorch-fsdp"},
		{"fms-fsdp FSDP1, eager", "pytorch-fsdp-eager"},
		{"OLMo-core", "pytorch-fsdp"},
		{"OLMo", "pytorch-fsdp"},
		{"litgpt", "pytorch-fsdp"},
		{"torchtune", "pytorch-fsdp-eager"},
		{"torchtune, compiled", "pytorch-fsdp"},
		{"FairScale FSDP", "pytorch-fsdp-eager"},
		{"metaseq", "pytorch-fsdp-eager"},
		{"LLaMA-Factory", "pytorch-ddp-eager"},
		{"LLaMA-Factory, DeepSpeed ZeRO-3", "deepspeed"},
		{"HF Trainer", "pytorch-ddp-eager"},
		{"HF Trainer + FSDP", "pytorch-fsdp-eager"},
		{"HuggingFace accelerate, ZeRO-2", "deepspeed"},
		{"TRL", "pytorch-ddp-eager"},
		{"TRLX", ""},
		{"Axolotl", "pytorch-ddp-eager"},
		{"PyTorch Lightning", "pytorch-ddp-eager"},
		{"nanoGPT DDP, eager", "pytorch-ddp-eager"},
		{"nanoGPT", "pytorch-ddp"},
		{"nanochat", "pytorch-ddp"},
		{"modded-nanogpt", "pytorch-ddp"},
		{"llm.c", "llm.c"},
		{"LLM.Q", "llm.c"},
		{"NGC PyTorch", "pytorch-ddp-eager"},
		{"PyTorch 21.11 DDP+apex", "pytorch-ddp"},
		{"SimuMax", "megatron-lm"},
		{"", ""},
	};
	for (size_t i = 0; i < COUNT(words); i++)
		if (strcmp(stack_of(words[i][0]), words[i][1]) != 0) {
			fprintf(stderr, "%s: %s\n", words[i][0], stack_of(words[i][0]));
			CU_FAIL("another stack");
		}
}

static void test_blanks(void)
{
	const struct framework *f = framework_of(&known, "PyTorch FSDP1 + compile");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->reduces_narrow && !f->bias);
	CU_ASSERT_FALSE(f->waits);
	f = framework_of(&known, "HF Trainer, Liger, FSDP1, eager");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->waits && f->reduces_narrow && f->wraps_adapters && f->fuses_norms && f->fuses_gates);
	CU_ASSERT_STRING_EQUAL(f->attention, "flash");
	f = framework_of(&known, "YaFSDP, eager");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_FALSE(f->reduces_narrow);
	f = framework_of(&known, "Megatron-Core MoE");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->sums_wide && f->stores_wide && f->interleaves);
	f = framework_of(&known, "NeMo Automodel FSDP2");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->fuses_sums && f->gates_activation);
	f = framework_of(&known, "prime-rl, torch dispatch FSDP2, compiled");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->fuses_sums && !f->gates_activation && f->loss_B == 14 && f->logit_B == 48);
	f = framework_of(&known, "prime-rl FSDP2, eager");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_STRING_EQUAL(f->stack, "pytorch-fsdp-eager");
	CU_ASSERT_TRUE(!f->fuses_sums && !f->borrows && f->loss_B == 14);
	f = framework_of(&known, "LiBai");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->ddp_overlaps && f->logit_B == 36);
	f = framework_of(&known, "Fast-LLM");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->loss_B == 2 && f->logit_B == 4);
	f = framework_of(&known, "torchtitan 2026 FSDP2, compiled");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->fuses_sums && f->loss_B == 4);
	f = framework_of(&known, "torchtitan FSDP2, compiled");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_FALSE(f->fuses_sums);
	f = framework_of(&known, "prime-rl, Mega MoE FSDP2, compiled");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->fuses_sums);
	f = framework_of(&known, "NeMo 24.07");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->interleaves && !f->sums_wide && f->logit_B == 0 && f->loss_B == 0);
	f = framework_of(&known, "NeMo 25.09, TE 2.8");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(f->interleaves && f->logit_B == 10 && f->loss_B == 2);
	f = framework_of(&known, "Megatron-DeepSpeed 2022");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_STRING_EQUAL(f->bf16_stack, "megatron-deepspeed-bf16");
	CU_ASSERT_TRUE(f->bf16_shards);
	CU_ASSERT_STRING_EQUAL(f->position, "learned");
	CU_ASSERT_STRING_EQUAL(f->recompute, "full");
	CU_ASSERT_TRUE(f->bias);
	for (size_t i = 0; i < known.name.n; i++) { /* a stack that is named is a file */
		char path[PATH_MAX_LEN];
		struct stat s;
		f = &known.name.at[i];
		CU_ASSERT_EQUAL(path_catalogue("stacks", *f->bf16_stack ? f->bf16_stack : f->stack, path, NULL), ST_OK);
		CU_ASSERT_EQUAL(stat(path, &s), 0);
	}
}

/* As a config's word the name is the whole word. */
static void test_named(void)
{
	static const char text[] = "model: {preset: gpt2-124m}\ntrain: {stack: TorchTitan}\n";
	struct config c;
	CU_ASSERT_PTR_NOT_NULL(framework_named(&known, "torchtitan"));
	CU_ASSERT_PTR_NOT_NULL(framework_named(&known, "FSDP2, eager"));
	CU_ASSERT_PTR_NOT_NULL(framework_named(&known, "PyTorch FSDP1 + compiled"));
	CU_ASSERT_PTR_NULL(framework_named(&known, "torchtitan 2024"));
	CU_ASSERT_PTR_NULL(framework_named(&known, "FSDP2 not eager"));
	error = (struct error){0};
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "t.yaml", NULL, 0, &c, &error), ST_OK);
	CU_ASSERT_STRING_EQUAL(c.train.stack, "pytorch-fsdp");
	CU_ASSERT_STRING_EQUAL(c.stack_given, "TorchTitan");
	const char *const set = "train.stack=InternEvo";
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "t.yaml", &set, 1, &c, &error), ST_OK);
	CU_ASSERT_STRING_EQUAL(c.train.stack, "internlm");
	CU_ASSERT_STRING_EQUAL(framework_hint(&known, "torchtitian").text, " (nearest: torchtitan)");
	CU_ASSERT_STRING_EQUAL(framework_hint(&known, "Quux 3").text, " (`stepsim list stacks` lists them)");
}

/* Reads a catalogue of two stacks, the second with this text. */
static const char *wrong(const char *text)
{
	char home[] = "/tmp/stepsim-names-XXXXXX", path[128];
	struct frameworks f;
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(home));
	static const char *const folders[] = {"", "/stacks", "/gpus"}; /* the last makes it a home */
	for (size_t i = 0; i < COUNT(folders); i++) {
		snprintf(path, sizeof path, "%s/configs%s", home, folders[i]);
		CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	}
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/configs/stacks/%c.yaml", home, (int)('a' + i));
		const char *body = i ? text : "names: [{name: Foo-X, source: s}]\n";
		CU_ASSERT_EQUAL_FATAL(file_write(path, body, strlen(body), NULL), ST_OK);
	}
	setenv("STEPSIM_HOME", home, 1);
	error = (struct error){0};
	CU_ASSERT_EQUAL(frameworks_load(&f, &error), ST_INPUT);
	unsetenv("STEPSIM_HOME");
	snprintf(path, sizeof path, "rm -r %s", home);
	CU_ASSERT_EQUAL(system(path), 0);
	const char *slash = strrchr(error.text, '/');
	return slash ? slash + 1 : error.text;
}

static void test_wrong(void)
{
	static const char *const cases[][2] = {
		{"names: Foo\n", "b.yaml:1:8: names: expected a list"},
		{"names: [{name: Foo}]\n", "b.yaml:1:9: names: expected entries {name: ..., source: ...}"},
		{"names: [{name: foo_x, source: s}]\n", "b.yaml:1:16: names: \"foo_x\" is a name of a already"},
		{"names: [{name: B, source: s, biased: true}]\n",
			"b.yaml:1:30: biased: unknown key of a name (nearest: bias)"},
		{"names: [{name: B, source: s, attention: flsh}]\n",
			"b.yaml:1:41: attention: \"flsh\" is not known (nearest: flash; known: flash, naive)"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *said = wrong(cases[i][0]);
		if (strcmp(said, cases[i][1]) != 0)
			fprintf(stderr, "%s\n", said);
		CU_ASSERT_STRING_EQUAL(said, cases[i][1]);
	}
}

static void test_load(void) { CU_ASSERT_EQUAL_FATAL(frameworks_load(&known, &error), ST_OK); }

static void test_free(void) { frameworks_free(&known); }

UNIT_MAIN("framework", {"load", test_load}, {"words of tables", test_words}, {"what they leave blank", test_blanks},
	{"as a config's word", test_named}, {"what is wrong", test_wrong}, {"free", test_free})
