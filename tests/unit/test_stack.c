#include "base/array.h"
#include "tests/unit/harness.h"

#include <string.h>

#include "step/config/config.h"
#include "step/stack.h"

static struct error error;

static enum status parse(const char *text, struct stack *s)
{
	struct ydoc *doc = NULL;
	error = (struct error){0};
	*s = stack_default();
	enum status st = ydoc_parse(text, strlen(text), "s.yaml", &doc, &error);
	if (!st)
		st = stack_read(ydoc_root(doc), s, &error);
	ydoc_destroy(doc);
	return st;
}

/* A stack may count some operators anew: the others stay its family's. A family counts all. */
static void test_operators(void)
{
	static const char text[] = "operators:\n  layer_norm: {value: [15, 0, 15, 0], source: x}\n";
	struct stack s = stack_default();
	struct ydoc *doc = NULL;
	CU_ASSERT_EQUAL(parse(text, &s), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "is missing"));
	s = stack_default();
	s.operators.counted = true;
	s.operators.of[OPERATOR_RESIDUAL][false] = (struct accesses){3, 0};
	CU_ASSERT_EQUAL(ydoc_parse(text, strlen(text), "s.yaml", &doc, &error), ST_OK);
	CU_ASSERT_EQUAL(stack_read(ydoc_root(doc), &s, &error), ST_OK);
	ydoc_destroy(doc);
	CU_ASSERT_TRUE(s.operators.counted);
	CU_ASSERT_EQUAL(s.operators.of[OPERATOR_LAYER_NORM][false].operand, 15);
	CU_ASSERT_EQUAL(s.operators.of[OPERATOR_RESIDUAL][false].operand, 3);
}

static void test_read(void)
{
	struct stack s;
	CU_ASSERT_EQUAL(
		parse("numbers:\n  elementwise_passes: {value: 2.5, source: x}\n  op: {value: 40us, source: y}\n"
		      "memory:\n  loss: {value: 12B, source: z}\nhabits:\n  attention_kernel: fa3\n"
		      "  adds_gradients: true\n  copies_gathered: true\n  dynamic_scales: true\n"
		      "  recompute_last_gemm: true\n  scatters_messages: true\n  bucket_per_rank: 4MB\n"
		      "  buckets_lead_only: true\n  expert_calls: true\n  gathers_narrow: true\n  stores_narrow: true\n"
		      "  gates_activation: true\n  keeps_attention_once: true\n  softmax_masked_only: true\n  "
		      "host_update: 390GB/s\n"
		      "  copies_gradients: true\n  reduces_whole: true\n  copies_units: true\n  copies_slices: true\n"
		      "  expert_counts: true\n  one_queue: true\n  atomic_sums: true\n  expert_masks: true\n"
		      "  copies_flat: true\n  biases_apart: true\n  dtensor: true\n  gathers_matrices: true\n"
		      "  reduces_computed: true\n  cudnn_on_blackwell: true\n"
		      "  triton_fp4: true\n  torch_grouped: true\n  gathers_twice: true\n",
			&s),
		ST_OK);
	CU_ASSERT_EQUAL(s.memory.loss_B, 12);
	CU_ASSERT_EQUAL(s.memory.gate_B, 0);
	CU_ASSERT_EQUAL(s.elementwise_passes, 2.5);
	CU_ASSERT_DOUBLE_EQUAL(s.op_s, 40e-6, 1e-15);
	CU_ASSERT_EQUAL(s.attention_kernel, KERNEL_FA3);
	CU_ASSERT_TRUE(s.scatters_messages && s.recompute_last_gemm && s.adds_gradients && s.copies_gathered &&
		       s.dynamic_scales && s.expert_calls && s.gathers_narrow && s.stores_narrow &&
		       s.gates_activation && s.keeps_attention_once && s.softmax_masked_only && s.copies_gradients &&
		       s.reduces_whole && s.copies_units && s.copies_slices && s.expert_counts && s.one_queue &&
		       s.atomic_sums && s.expert_masks && s.copies_flat && s.biases_apart && s.dtensor &&
		       s.gathers_matrices && s.reduces_computed && s.cudnn_on_blackwell && s.triton_fp4 &&
		       s.torch_grouped && s.gathers_twice && s.mask_rows == 0 && s.biased_cols == 0);
	CU_ASSERT_EQUAL(s.host_update_Bps, 390e9);
	CU_ASSERT_EQUAL(s.bucket_per_rank_B, 4e6);
	CU_ASSERT_TRUE(s.buckets_lead_only);
	CU_ASSERT_EQUAL(s.logit_B, 0);
	CU_ASSERT_EQUAL(s.interval, 0);
	CU_ASSERT_EQUAL(parse("interval: {value: 0.1, source: x}\nfitted_on: {gpus: [a100, h100], formats: [fp8]}\n",
				&s),
		ST_OK);
	CU_ASSERT_EQUAL(s.interval, 0.1);
	CU_ASSERT_STRING_EQUAL(s.fitted_gpus, "a100 h100 ");
	CU_ASSERT_TRUE(s.fitted_format[DT_FP8] && !s.fitted_format[DT_BF16]);
}

static void test_wrong(void)
{
	static const char *const texts[][2] = {
		{"numbers:\n  logits: {value: 2, source: x}\n",
			"s.yaml:2:3: logits: unknown number of a stack (nearest: logit)"},
		{"numbers:\n  logit: 2B\n",
			"s.yaml:2:10: logit: expected {value: ..., source: ...}: every number of the catalogue names "
			"its source"},
		{"numbers:\n  logit: {value: 2B}\n",
			"s.yaml:2:10: logit: expected {value: ..., source: ...}: 'source' is missing"},
		{"numbers:\n  op: {value: 0.0001313, source: x}\n",
			"s.yaml:2:15: value: expected a time with its unit such as 50us, got \"0.0001313\""},
		{"memory:\n  context: {value: 0, source: x}\n",
			"s.yaml:2:20: value: expected a size with its unit such as 25MiB, got \"0\""},
		{"memory:\n  gathers: {value: 2, source: x}\n",
			"s.yaml:2:3: gathers: unknown number of a stack (nearest: gate)"},
		{"habits:\n  attention_kernel: fa5\n",
			"s.yaml:2:21: attention_kernel: \"fa5\" is not known (nearest: fa1)"},
		{"habits:\n  recompute_gemm: true\n",
			"s.yaml:2:3: recompute_gemm: unknown habit of a stack (nearest: recompute_last_gemm)"},
		{"habits:\n  stage_split: uneven\n",
			"s.yaml:2:16: stage_split: \"uneven\" is not known (nearest: even)"},
		{"fitted_on: {gpu: [h100-sxm]}\n", "s.yaml:1:13: fitted_on: gpu is not known (nearest: gpus)"},
		{"fitted_on: {gpus: h100-sxm}\n", "s.yaml:1:19: fitted_on.gpus: expected a list"},
		{"fitted_on: {formats: [bf17]}\n", "s.yaml:1:23: formats: \"bf17\" is not known (nearest: bf16)"},
		{"operators: [a]\n", "s.yaml:1:12: operators: expected a mapping"},
		{"operators:\n  rms_norms: {value: [1, 0, 1, 0], source: x}\n",
			"s.yaml:2:3: rms_norms: unknown operator (nearest: rms_norm)"},
		{"operators:\n  bias: {value: [1, 0], source: x}\n", "s.yaml:2:17: bias: expected a list of 4 numbers"},
		{"operators:\n  bias: {value: [0, 0, 0, 0], source: x}\n",
			"s.yaml:2:3: operators: 'layer_norm' is missing"},
		{"unvectorized:\n  bias: {value: [1, 1, 0, 0], source: x}\n",
			"s.yaml:2:17: bias: expected a list of 6 numbers"},
		{"reductions:\n  bias: {value: [1], source: x}\n", "s.yaml:2:17: bias: expected a list of 4 numbers"},
		{"kernels:\n  bias: {value: [1], source: x}\n", "s.yaml:2:17: bias: expected a list of 2 numbers"},
		{"kernels:\n  bias: {value: [1, -1], source: x}\n",
			"s.yaml:2:21: expected a value from 0 to 1000, got \"-1\""},
		{"compiled_twin: [a]\n", "s.yaml:1:16: compiled_twin: expected a text, got a list"},
	};
	struct stack s;
	for (size_t i = 0; i < COUNT(texts); i++) {
		CU_ASSERT_EQUAL(parse(texts[i][0], &s), ST_INPUT);
		if (strcmp(error.text, texts[i][1]))
			printf("\n%s\n", error.text);
		CU_ASSERT_STRING_EQUAL(error.text, texts[i][1]);
	}
	char long_name[STACK_NAME + 40];
	snprintf(long_name, sizeof long_name, "compiled_twin: %0*d\n", STACK_NAME, 1);
	CU_ASSERT_EQUAL(parse(long_name, &s), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(error.text, "s.yaml:1:16: compiled_twin: longer than 255 bytes");
}

/* A stack has its own numbers over those of its family. */
static void test_family(void)
{
	static const char text[] = "model: {preset: gpt2-124m}\ntrain: {stack: composer-fsdp}\n";
	struct config c;
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
	CU_ASSERT_EQUAL(c.stack.attention_kernel, KERNEL_FA1);
	CU_ASSERT_TRUE(c.stack.elementwise_passes > 1 && c.stack.logit_B > 0 && c.stack.overlap_tax > 0);
	CU_ASSERT_TRUE(c.stack.interval > 0 && c.stack.family);
	CU_ASSERT_FALSE(c.stack.operators.counted); /* passes of its own */
	CU_ASSERT_EQUAL(c.stack.operators.unvectorized[OPERATOR_LOGITS][false].passes, 0);
	static const char eager[] = "model: {preset: gpt2-124m}\ntrain: {stack: pytorch-ddp-eager}\n";
	CU_ASSERT_EQUAL_FATAL(config_parse(eager, strlen(eager), "c.yaml", NULL, 0, &c, &error), ST_OK);
	CU_ASSERT_TRUE(c.stack.operators.counted && c.stack.channels_first);
	CU_ASSERT_EQUAL(c.stack.operators.of[OPERATOR_LAYER_NORM][false].operand, 2);
	CU_ASSERT_EQUAL(c.stack.operators.unvectorized[OPERATOR_LOGITS][true].passes, 1);
	CU_ASSERT_EQUAL(c.stack.operators.reduced[OPERATOR_LAYER_NORM][true].fp32, 2);
	CU_ASSERT_EQUAL(c.stack.optimizer_blocks, 320);
}

/* A rotation by complex numbers has its own kernels where each operator is one. */
static void test_complex_rotary(void)
{
	static const char *const stacks[] = {"pytorch-fsdp-eager", "pytorch-fsdp"};
	for (size_t i = 0; i < COUNT(stacks); i++) {
		char text[160];
		struct config c;
		snprintf(text, sizeof text, "model: {preset: llama3-8b, complex_rotary: true}\ntrain: {stack: %s}\n",
			stacks[i]);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
		CU_ASSERT_EQUAL(c.stack.complex_rotary, i == 0);
	}
}

/* A gelu is written out in kernels where nothing fuses them. */
static void test_composed_gelu(void)
{
	static const struct {
		const char *model, *stack;
		bool composed;
	} cases[] = {{"preset: gpt2-124m", "pytorch-ddp-eager", true},
		{"preset: bert-large", "pytorch-ddp-eager", false}, {"preset: gpt2-124m", "pytorch-ddp", false},
		{"preset: gpt2-124m", "composer-fsdp", false}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[128];
		struct config c;
		snprintf(text, sizeof text, "model: {%s}\ntrain: {stack: %s}\n", cases[i].model, cases[i].stack);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
		CU_ASSERT_EQUAL(c.stack.composed_gelu, cases[i].composed);
	}
}

/* Kernels that are one each though the rest is not; where all are, or nobody counted them, the key changes nothing. */
static void test_fused_kernels(void)
{
	static const struct {
		const char *train;
		int fused;
	} cases[] = {{"stack: pytorch-ddp-eager", 0},
		{"stack: pytorch-ddp-eager, fused_kernels: [norm, gate]", FUSE_NORM | FUSE_GATE},
		{"stack: pytorch-ddp, fused_kernels: [norm]", 0}, {"stack: composer-fsdp, fused_kernels: [norm]", 0}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[128];
		struct config c;
		snprintf(text, sizeof text, "model: {preset: llama3-8b}\ntrain: {%s}\n", cases[i].train);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
		CU_ASSERT_EQUAL(c.stack.fused_kernels, cases[i].fused);
	}
}

/* Compiled and eager PyTorch differ in what crosses memory; plain Megatron-LM hides none of tensor parallelism,
 * NVIDIA's recipes do. */
static void test_pairs(void)
{
	static const char *const pairs[][2] = {{"pytorch-fsdp", "pytorch-fsdp-eager"},
		{"pytorch-ddp", "pytorch-ddp-eager"}, {"megatron-core", "megatron-lm"}};
	struct config c[2];
	char text[128];
	for (size_t i = 0; i < COUNT(pairs); i++) {
		for (size_t j = 0; j < 2; j++) {
			snprintf(text, sizeof text, "model: {preset: gpt2-124m}\ntrain: {stack: %s}\n", pairs[i][j]);
			CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c[j], &error),
				ST_OK);
		}
		bool pytorch = i < 2;
		CU_ASSERT_STRING_EQUAL(c[0].stack.compiled_twin, "");
		CU_ASSERT_STRING_EQUAL(c[1].stack.compiled_twin, pytorch ? pairs[i][0] : "");
		CU_ASSERT_EQUAL(c[0].train.fused && !c[1].train.fused, pytorch);
		CU_ASSERT_EQUAL(c[0].stack.elementwise_passes < c[1].stack.elementwise_passes &&
					c[0].stack.logit_B < c[1].stack.logit_B,
			pytorch);
		CU_ASSERT_EQUAL(c[0].stack.tensor_exposed < c[1].stack.tensor_exposed, !pytorch);
	}
}

/* train.attention_kernel stands over the stack's habit. */
static void test_attention_kernel(void)
{
	static const char text[] = "model: {preset: gpt2-124m}\ntrain: {stack: composer-fsdp, attention_kernel: fa3}\n",
			  own[] = "model: {preset: gpt2-124m}\ntrain: {stack: composer-fsdp}\n";
	struct config c;
	CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
	CU_ASSERT_EQUAL(c.stack.attention_kernel, KERNEL_FA3);
	CU_ASSERT_EQUAL_FATAL(config_parse(own, strlen(own), "c.yaml", NULL, 0, &c, &error), ST_OK);
	CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
	CU_ASSERT_EQUAL(c.stack.attention_kernel, KERNEL_FA1);
}

/* PyTorch and Transformer Engine take cuDNN's kernels on compute capability 10.x, where no kernel is asked for. */
static void test_attention_on_blackwell(void)
{
	static const char *const trains[][2] = {{"stack: pytorch-fsdp", "fa3"}, {"stack: pytorch-ddp-eager", "fa3"},
		{"stack: megatron-lm", "fa3"}, {"stack: pytorch-fsdp, attention_kernel: fa2", "fa2"},
		{"stack: pytorch-fsdp, attention_kernel: fa4", "fa4"}, {"stack: nanotron", "fa2"}};
	for (size_t i = 0; i < COUNT(trains); i++) {
		char text[256];
		struct config c;
		snprintf(text, sizeof text, "model: {preset: gpt2-124m}\ntrain: {%s}\n", trains[i][0]);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "c.yaml", NULL, 0, &c, &error), ST_OK);
		CU_ASSERT_EQUAL_FATAL(config_resolve(&c, 1, &error), ST_OK);
		CU_ASSERT_STRING_EQUAL(attention_kernel_name(attention_kernel_on(&c.stack, 100)), trains[i][1]);
		CU_ASSERT_STRING_EQUAL(attention_kernel_name(attention_kernel_on(&c.stack, 103)), trains[i][1]);
		CU_ASSERT_EQUAL(attention_kernel_on(&c.stack, 90), c.stack.attention_kernel);
		CU_ASSERT_EQUAL(attention_kernel_on(&c.stack, 120), c.stack.attention_kernel);
		CU_ASSERT_EQUAL(attention_kernel_on(&c.stack, 0), c.stack.attention_kernel);
	}
}

UNIT_MAIN("stack", {"numbers and habits", test_read}, {"what is wrong", test_wrong}, {"operators", test_operators},
	{"family", test_family}, {"composed gelu", test_composed_gelu}, {"complex rotary", test_complex_rotary},
	{"fused kernels", test_fused_kernels}, {"eager and compiled, plain and tuned", test_pairs},
	{"the flash kernel of a config", test_attention_kernel},
	{"the flash kernel on Blackwell", test_attention_on_blackwell})
