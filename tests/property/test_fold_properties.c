/* The folded prediction is the full one within 1 %. */
#include "tests/unit/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fold.h"

static uint64_t state = 88172645463325252u;

static unsigned below(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state % n);
}

static void random_plan(char *text, size_t size)
{
	static const char *const strategies[] = {"ddp", "zero1", "fsdp", "hsdp"}, *const stacks[] = {"pytorch-ddp", "composer-fsdp", "nanotron", "megatron-core"};
	unsigned heads = 8u << below(2), tensor = 1u << below(3), context = 1u << below(2), micro = 7 + below(20), data = 8 / tensor / context;
	snprintf(text, size,
	         "model: {layers: %u, hidden: %u, heads: %u, vocab: %u, seq_len: %u}\n"
	         "train: {stack: %s, dtype: bf16, micro_batch: %u, global_batch: %u, recompute: %s}\n"
	         "parallel: {strategy: %s, tensor: %u, context: %u}\n",
	         2 + below(4), 64 * heads, heads, 512 * (1 + below(20)), 256u << below(4), stacks[below(4)], 1u, data * micro, below(2) ? "full" : "none", data * context > 1 ? strategies[below(4)] : "none", tensor, context);
}

static void compare(const char *text, const struct machine *m)
{
	struct error e = {0};
	struct config c;
	struct program *p = NULL;
	struct timeline t;
	struct result full, folded;
	if (config_parse(text, strlen(text), "plan", NULL, 0, &c, &e) || config_resolve(&c, 8, &e) || program_build(&c, &p, &e) || predict(p, m, &full, &t, &e) || predict_folded(&c, m, &folded, &e)) {
		fprintf(stderr, "%s%s\n", text, e.text);
		CU_FAIL("a plan that cannot be predicted");
	} else {
		double off = fabs(folded.time.step_s / full.time.step_s - 1);
		if (off > 0.01)
			fprintf(stderr, "%s%.4g %.4g\n", text, folded.time.step_s, full.time.step_s);
		CU_ASSERT_TRUE(off <= 0.01);
		CU_ASSERT_DOUBLE_EQUAL(folded.mfu / full.mfu, 1, 0.011);
		CU_ASSERT_DOUBLE_EQUAL(folded.time.class_s[CLASS_GEMM] / full.time.class_s[CLASS_GEMM], 1, 0.01);
		CU_ASSERT_DOUBLE_EQUAL((double)folded.memory.total_B / (double)full.memory.total_B, 1, 0.01);
		timeline_free(&t);
	}
	program_destroy(p);
}

static void load(struct machine *m)
{
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:8 h100-sxm nic:8x400Gb/s", 1, 0, m, &e), ST_OK);
}

static void test_folded(void)
{
	struct machine m;
	load(&m);
	for (int i = 0; i < 60; i++) {
		char text[512];
		random_plan(text, sizeof text);
		compare(text, &m);
	}
	machine_free(&m);
}

/* Those that part the backward are not put together from pieces, so that searches rest on this. */
static void test_parted(void)
{
	struct machine m;
	load(&m);
	for (unsigned i = 0; i < 8; i++) {
		char text[512];
		unsigned stages = i & 2 ? 4 : 2;
		snprintf(text, sizeof text, "model: {layers: 8, hidden: 2048, heads: 16, vocab: 4096, seq_len: 1024}\ntrain: {stack: megatron-core, dtype: bf16, micro_batch: 1, global_batch: %u}\nparallel: {strategy: zero1, pipeline: %u, schedule: %s}\n",
		         8 / stages * (6 * stages + below(9)), stages, i & 1 ? "zbv" : "zero_bubble");
		compare(text, &m);
	}
	machine_free(&m);
}

UNIT_MAIN("fold", {"folded and full", test_folded}, {"schedules with B and W apart", test_parted})
