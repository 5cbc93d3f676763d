/* Weights that are stored in fp8, or gathered in it: bytes, copies and collectives against closed forms. */
#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/tiny_config.h"

#include "step/program.h"

/* A block of hidden 64 without biases: matrices, and the rest of the model with the vectors. */
#define MATRICES (64.0 * (192 + 64 + 256 + 256))
#define REST (64.0 * (96 + 32 + 3))

static struct program *built(enum strategy strategy, enum dtype param, enum dtype gather, enum dtype grad)
{
	struct config c = tiny_config();
	struct error e = {0};
	struct program *p = NULL;
	c.model.bias = c.model.qkv_bias = c.model.proj_bias = false;
	c.train.recompute_layers = 0;
	c.train.dtype = gather == DT_FP32 ? DT_BF16 : DT_FP8;
	c.train.param_dtype = param;
	c.train.grad_dtype = c.train.reduce_dtype = grad;
	c.train.master_weights = param != DT_FP32;
	c.parallel.strategy = strategy;
	c.parallel.gather_dtype = gather;
	CU_ASSERT_EQUAL_FATAL(program_build(&c, &p, &e), ST_OK);
	const enum status st = program_check(p, &e);
	if (st)
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_EQUAL(st, ST_OK);
	return p;
}

struct found {
	double weights_B, gradients_B, gathered_B, reduced_B, cast_weights, scales;
};

static struct found found_in(const struct program *p)
{
	const struct role *r = &p->roles[0];
	struct found f = {0};
	for (size_t i = 0; i < r->buffers.n; i++) {
		const double bytes = r->buffers.at[i].persistent ? (double)r->buffers.at[i].bytes : 0;
		f.weights_B += r->buffers.at[i].component == COMP_WEIGHTS ? bytes : 0;
		f.gradients_B += r->buffers.at[i].component == COMP_GRADIENTS ? bytes : 0;
	}
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		const double bytes = (double)op->collective.elements * dtype_bytes((enum dtype)op->dtype);
		if (op->kind == OP_COLLECTIVE) {
			f.gathered_B += op->coll == COLL_ALL_GATHER && op->micro <= 0 ? bytes : 0;
			f.reduced_B += op->coll == COLL_REDUCE_SCATTER ? bytes : 0;
			f.scales += op->reduce == RED_MAX && op->phase == PHASE_OPTIMIZER
			                    ? (double)op->collective.elements
			                    : 0;
		}
		const struct view *from = op->kind == OP_CAST ? op_arg(r, op, 0) : NULL;
		if (from && op->out_dtype == DT_FP8 && r->buffers.at[from->buffer].component == COMP_WEIGHTS)
			f.cast_weights += (double)op->vector.elements;
	}
	return f;
}

/* zero1, two ranks: Megatron-LM's --fp8-param-gather. */
static void test_stored(void)
{
	struct program *p = built(STRAT_ZERO1, DT_BF16, DT_COUNT, DT_FP32);
	struct found f = found_in(p);
	CU_ASSERT_EQUAL(f.weights_B, 2 * (MATRICES + REST));
	CU_ASSERT_EQUAL(f.gathered_B, 2 * (MATRICES + REST));
	CU_ASSERT_EQUAL(f.cast_weights, MATRICES);
	CU_ASSERT_EQUAL(f.scales, 0);
	program_destroy(p);
	p = built(STRAT_ZERO1, DT_FP8, DT_COUNT, DT_FP32);
	f = found_in(p);
	CU_ASSERT_EQUAL(f.weights_B, MATRICES + 2 * REST);
	CU_ASSERT_EQUAL(f.gathered_B, MATRICES + 2 * REST);
	CU_ASSERT_EQUAL(f.cast_weights, 0); /* products read them as they are */
	CU_ASSERT_EQUAL(f.scales, 4);
	program_destroy(p);
	p = built(STRAT_DDP, DT_FP8, DT_COUNT, DT_FP32);
	f = found_in(p);
	CU_ASSERT_EQUAL(f.weights_B, MATRICES + 2 * REST);
	CU_ASSERT_EQUAL(f.scales, 0); /* each rank has whole matrices */
	program_destroy(p);
}

/* fsdp, two ranks: shards as they were, gathers in fp8 (torchao: enable_fsdp_float8_all_gather). A block is gathered
 * for each pass, the rest once. */
static void test_gathered(void)
{
	const double vectors = 2 * 64, root = REST - vectors;
	struct program *p = built(STRAT_FSDP, DT_FP32, DT_COUNT, DT_FP32);
	struct found f = found_in(p);
	CU_ASSERT_EQUAL(f.gathered_B, 2 * 2 * (MATRICES + vectors) + 2 * root);
	program_destroy(p);
	p = built(STRAT_FSDP, DT_FP32, DT_FP8, DT_FP32);
	f = found_in(p);
	CU_ASSERT_EQUAL(f.weights_B, 4 * (MATRICES + REST) / 2);
	CU_ASSERT_EQUAL(f.gathered_B, 2 * (MATRICES + 2 * vectors) + 2 * root);
	CU_ASSERT_EQUAL(f.scales, 4);
	program_destroy(p);
	p = built(STRAT_FSDP, DT_FP8, DT_COUNT, DT_FP32);
	f = found_in(p);
	CU_ASSERT_EQUAL(f.weights_B, (MATRICES + 2 * REST) / 2);
	CU_ASSERT_EQUAL(f.gathered_B, 2 * (MATRICES + 2 * vectors) + 2 * root);
	program_destroy(p);
	p = built(STRAT_FSDP, DT_FP32, DT_FP32, DT_FP32); /* autocast casts behind the gather, and gradients are fp32 */
	f = found_in(p);
	CU_ASSERT_EQUAL(f.gathered_B, 2 * 4 * (MATRICES + vectors) + 4 * root);
	CU_ASSERT_EQUAL(f.reduced_B, 2 * 4 * (MATRICES + REST)); /* each micro-batch */
	program_destroy(p);
}

/* A stack that makes matrices fp8 before it gathers them (XLA) does so with fsdp in fp8, where nobody says otherwise.
 * "auto" written out is the same as left out. */
static void test_stack_gathers(void)
{
	const char *const texts[] = {"dtype: fp8, stack: maxtext}\nparallel: {strategy: fsdp}\n",
		"dtype: fp8, stack: maxtext}\nparallel: {strategy: fsdp, gather_dtype: auto}\n",
		"dtype: fp8, stack: maxtext}\nparallel: {strategy: fsdp, gather_dtype: bf16}\n",
		"dtype: bf16, stack: maxtext}\nparallel: {strategy: fsdp}\n",
		"dtype: fp8, stack: maxtext}\nparallel: {strategy: zero1}\n",
		"dtype: fp8, stack: jax-pax}\nparallel: {strategy: fsdp}\n"};
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct config c;
		struct error e = {0};
		char text[256];
		snprintf(text, sizeof text, "model: {preset: gpt2-124m}\ntrain: {global_batch: 16, %s", texts[i]);
		CU_ASSERT_EQUAL_FATAL(config_parse(text, strlen(text), "t.yaml", NULL, 0, &c, &e), ST_OK);
		if (config_resolve(&c, 2, &e))
			fprintf(stderr, "%s\n", e.text);
		CU_ASSERT_EQUAL_FATAL(e.status, ST_OK);
		CU_ASSERT_EQUAL(c.parallel.gather_dtype, i < 2 ? DT_FP8 : i == 2 ? DT_BF16 : DT_COUNT);
	}
}

static void test_gradients(void)
{
	struct program *p = built(STRAT_ZERO1, DT_FP8, DT_COUNT, DT_FP8);
	struct found f = found_in(p);
	CU_ASSERT_EQUAL(f.gradients_B, 1.5 * (MATRICES + REST)); /* whole, and a rank's half of the sums */
	CU_ASSERT_EQUAL(f.reduced_B, MATRICES + REST);
	program_destroy(p);
}

UNIT_MAIN("narrow", {"stored", test_stored}, {"gathered", test_gathered},
	{"gathered as the stack has it", test_stack_gathers}, {"gradients", test_gradients})
