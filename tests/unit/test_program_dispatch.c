#include <math.h>
#include <string.h>

#include "base/array.h"
#include "step/program.h"
#include "tests/unit/experts_case.h"
#include "tests/unit/harness.h"

static const struct op *find_op(const struct role *r, enum op_kind kind, const char *what, enum phase phase)
{
	for (size_t i = 0; i < r->ops.n; i++)
		if (r->ops.at[i].kind == kind && strcmp(r->ops.at[i].what, what) == 0 && r->ops.at[i].phase == phase)
			return &r->ops.at[i];
	return NULL;
}

/* 8 ranks on two hosts of 4, 2 of 8 experts a row: a host has none of a row's experts with probability 4/8 x 3/7 =
 * 3/14, so they lie on 2 x 11/14 hosts. In one of 4 groups they lie on one host; of two groups of experts, each is a
 * host. 128 rows of a rank, 64 columns. */
static void test_dispatch(void)
{
	static const struct {
		const char *more;
		double hosts;
	} cases[] = {{"", 2 * 11.0 / 14}, {" model.expert_groups=4", 1}, {" model.expert_groups=2", 1},
		{" model.expert_groups=4 model.groups_per_token=2", 2 * 11.0 / 14}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[256];
		snprintf(text, sizeof text, "parallel.expert=8 parallel.expert_dispatch=once_a_host%s", cases[i].more);
		struct program *p = program_of(text, 8);
		const struct op *op = find_op(&p->roles[0], OP_COLLECTIVE, "dispatch", PHASE_FORWARD);
		CU_ASSERT_PTR_NOT_NULL_FATAL(op);
		CU_ASSERT_EQUAL(op->collective.crossing, llround(cases[i].hosts * 128 * H));
		CU_ASSERT_EQUAL(op->collective.once, 2 * 128 * H); /* an expert a rank: none is sent twice */
		program_destroy(p);
	}
	struct program *p = program_of("parallel.expert=4 parallel.expert_dispatch=once_a_host", 8); /* inside a host */
	const struct op *op = find_op(&p->roles[0], OP_COLLECTIVE, "dispatch", PHASE_FORWARD);
	CU_ASSERT_EQUAL(op->collective.crossing, 0);
	CU_ASSERT_EQUAL(op->collective.once, llround(4 * (1 - 6.0 / 8 * 5 / 7) * 128 * H)); /* two experts a rank */
	CU_ASSERT_EQUAL(op->collective.rows, 0);
	CU_ASSERT_PTR_NULL(find_op(&p->roles[0], OP_SWAP, "by expert", PHASE_FORWARD));
	program_destroy(p);
	p = program_of("parallel.expert=4 parallel.expert_dispatch=deepep", 8); /* the same, by its SMs: 237.7 rows */
	CU_ASSERT_EQUAL(find_op(&p->roles[0], OP_COLLECTIVE, "dispatch", PHASE_FORWARD)->collective.rows, 237);
	program_destroy(p);
	/* One token, 2 a rank: the fullest has 16/7 times its share, but no rank has a row twice. */
	p = program_of("data.distinct_tokens=1 parallel.expert=4 parallel.expert_dispatch=once_a_host", 8);
	CU_ASSERT_EQUAL(find_op(&p->roles[0], OP_COLLECTIVE, "dispatch", PHASE_FORWARD)->collective.once, 4 * 128 * H);
	program_destroy(p);
	p = program_of("parallel.expert=4", 8);
	CU_ASSERT_EQUAL(find_op(&p->roles[0], OP_COLLECTIVE, "dispatch", PHASE_FORWARD)->collective.once, 0);
	CU_ASSERT_PTR_NOT_NULL(find_op(&p->roles[0], OP_SWAP, "by expert", PHASE_FORWARD));
	program_destroy(p);
}

/* Tokens, and the gradients of results, go to experts in fp8 with 4 bytes for each 128; what comes back has the format
 * of activations. Products in fp8 read what came; others a wide copy. */
static void test_narrow_dispatch(void)
{
	static const struct {
		const char *what;
		enum phase phase;
		enum dtype dtype;
	} exchanges[] = {{"dispatch", PHASE_FORWARD, DT_FP8}, {"combine", PHASE_FORWARD, DT_BF16},
		{"combine grad", PHASE_BACKWARD, DT_FP8}, {"dispatch grad", PHASE_BACKWARD, DT_BF16}};
	static const char *const formats[] = {"bf16", "fp8"};
	for (size_t f = 0; f < COUNT(formats); f++) {
		char text[256];
		int64_t narrow = 0, wide = 0;
		snprintf(text, sizeof text, "train.dtype=%s parallel.expert=4 parallel.dispatch_dtype=fp8", formats[f]);
		struct program *p = program_of(text, 8);
		const struct role *r = &p->roles[0];
		for (size_t i = 0; i < COUNT(exchanges); i++) {
			const struct op *op = find_op(r, OP_COLLECTIVE, exchanges[i].what, exchanges[i].phase);
			CU_ASSERT_PTR_NOT_NULL_FATAL(op);
			const int64_t slots = 128 * K * H; /* factor 0: as many as choices */
			CU_ASSERT_EQUAL(op->dtype, exchanges[i].dtype);
			CU_ASSERT_EQUAL(op->collective.elements,
				exchanges[i].dtype == DT_FP8 ? slots + slots / 128 * 4 : slots);
		}
		for (size_t i = 0; i < r->ops.n; i++) {
			const struct op *op = &r->ops.at[i];
			narrow += op->kind == OP_CAST && op->out_dtype == DT_FP8 &&
			          strcmp(op->what, "narrow copy") != 0;
			wide += op->kind == OP_CAST && op->dtype == DT_FP8;
		}
		CU_ASSERT_EQUAL(narrow, 2 * L);
		CU_ASSERT_EQUAL(wide, f == 0 ? 2 * L : 0);
		program_destroy(p);
	}
}

/* A number for each expert of each layer is summed up over all ranks once a step. */
static void test_router_bias(void)
{
	struct program *p = program_of("model.router_bias=true parallel.expert=4", 8);
	const struct op *op = find_op(&p->roles[0], OP_COLLECTIVE, "router bias", PHASE_OPTIMIZER);
	CU_ASSERT_PTR_NOT_NULL_FATAL(op);
	CU_ASSERT_EQUAL(op->collective.elements, L * E);
	CU_ASSERT_EQUAL(op->dtype, DT_FP32);
	CU_ASSERT_PTR_NOT_NULL(find_op(&p->roles[0], OP_ADD, "router bias", PHASE_OPTIMIZER));
	program_destroy(p);
	p = program_of("parallel.expert=4", 8);
	CU_ASSERT_PTR_NULL(find_op(&p->roles[0], OP_COLLECTIVE, "router bias", PHASE_OPTIMIZER));
	program_destroy(p);
}

/* Returns how many gathers of weights the host thread has issued when it comes to the first expert. */
static int issued_before_experts(const char *more)
{
	struct program *p = program_of(more, 4);
	const struct role *r = &p->roles[0];
	int gathers = 0;
	for (size_t i = 0; i < r->ops.n && r->ops.at[i].kind != OP_GROUPED_GEMM; i++)
		gathers += r->ops.at[i].kind == OP_COLLECTIVE && r->ops.at[i].coll == COLL_ALL_GATHER;
	program_destroy(p);
	return gathers;
}

/* A host thread that waits for experts asks for no weights ahead. */
static void test_loop_gathers(void)
{
	const int ahead = issued_before_experts("parallel.strategy=fsdp parallel.prefetch=1"),
		  loop = issued_before_experts("parallel.strategy=fsdp parallel.prefetch=1 train.expert_loop=true");
	CU_ASSERT_TRUE(loop > 0 && ahead > loop);
	CU_ASSERT_EQUAL(loop, issued_before_experts("parallel.strategy=fsdp parallel.prefetch=0"));
}

/* Experts that are called one by one are products of cuBLAS. */
static void test_grouped_kernel(void)
{
	static const char *const stacks[] = {"pytorch-fsdp", "pytorch-fsdp-eager", "megatron-core"};
	for (size_t i = 0; i < COUNT(stacks); i++) {
		char text[256];
		snprintf(text, sizeof text, "train.stack=%s", stacks[i]);
		struct program *p = program_of(text, 4);
		CU_ASSERT_EQUAL(p->config.stack.torch_grouped, i < 2);
		program_destroy(p);
		snprintf(text, sizeof text, "train.stack=%s train.expert_loop=true", stacks[i]);
		p = program_of(text, 4);
		CU_ASSERT_FALSE(p->config.stack.torch_grouped);
		program_destroy(p);
	}
}

/* Returns how many products of experts, or of all else in a block, run in a format. */
static int products_in(const struct program *p, enum op_kind kind, enum dtype dt)
{
	const struct role *r = &p->roles[0];
	int n = 0;
	for (size_t i = 0; i < r->ops.n; i++)
		n += r->ops.at[i].kind == kind && r->ops.at[i].dtype == dt;
	return n;
}

/* Beside fp8 products those of experts may keep 16 bits, and then nothing is cast for them. A block has two of experts
 * forward and four backward. */
static void test_wide_experts(void)
{
	struct program *narrow = program_of("train.dtype=fp8", 4),
		       *wide = program_of("train.dtype=fp8 train.wide_experts=true", 4);
	const int experts = products_in(narrow, OP_GROUPED_GEMM, DT_FP8);
	CU_ASSERT_TRUE(experts > 0 && experts % 6 == 0);
	CU_ASSERT_EQUAL(products_in(wide, OP_GROUPED_GEMM, DT_FP8), 0);
	CU_ASSERT_EQUAL(products_in(wide, OP_GROUPED_GEMM, DT_BF16), experts);
	CU_ASSERT_EQUAL(products_in(wide, OP_GEMM, DT_FP8), products_in(narrow, OP_GEMM, DT_FP8));
	CU_ASSERT_TRUE(products_in(wide, OP_CAST, DT_BF16) < products_in(narrow, OP_CAST, DT_BF16));
	program_destroy(narrow);
	program_destroy(wide);
}

/* A head in the products' format is three products of each micro-batch: forward, its input's gradient, its weight's. */
static void test_narrow_head(void)
{
	struct program *wide = program_of("train.dtype=fp8", 4),
		       *narrow = program_of("train.dtype=fp8 train.narrow_head=true", 4);
	const int head = 3 * (int)wide->config.micro_batches;
	CU_ASSERT_EQUAL(products_in(narrow, OP_GEMM, DT_FP8), products_in(wide, OP_GEMM, DT_FP8) + head);
	CU_ASSERT_EQUAL(products_in(narrow, OP_GEMM, DT_BF16), products_in(wide, OP_GEMM, DT_BF16) - head);
	program_destroy(wide);
	program_destroy(narrow);
}

/* Returns how many ops of a kind are part of a product's kernel. */
static int in_products(const struct program *p, enum op_kind kind)
{
	const struct role *r = &p->roles[0];
	int n = 0;
	for (size_t i = 0; i < r->ops.n; i++)
		n += r->ops.at[i].kind == kind && r->ops.at[i].flags & OP_IN_PRODUCT;
	return n;
}

/* Of a block's experts the activation and its gradient, and a cast behind each, are part of a product; nothing else is,
 * and no op is more or less. What moe_act activates again is a kernel of its own. */
static void test_fused_experts(void)
{
	static const char *const plans[] = {"train.dtype=mxfp8 train.fused_experts=false",
		"train.dtype=mxfp8 train.fused_experts=true",
		"train.dtype=mxfp8 train.fused_experts=true train.recompute=selective train.recompute_modules=moe_act"};
	size_t ops[COUNT(plans)];
	for (size_t i = 0; i < COUNT(plans); i++) {
		struct program *p = program_of(plans[i], 4);
		const bool early = p->config.stack.gates_activation;
		const int blocks = (int)p->config.micro_batches * (int)p->config.model.layers,
			  want = i == 0 ? 0 : blocks;
		ops[i] = p->roles[0].ops.n;
		CU_ASSERT_EQUAL(in_products(p, early ? OP_WEIGHTED_ACT : OP_ACT), want);
		CU_ASSERT_EQUAL(in_products(p, early ? OP_WEIGHTED_ACT_GRAD : OP_ACT_GRAD), want);
		CU_ASSERT_EQUAL(in_products(p, OP_CAST), 2 * want);
		CU_ASSERT_EQUAL(in_products(p, OP_GROUPED_GEMM) + in_products(p, OP_GEMM), 0);
		program_destroy(p);
	}
	CU_ASSERT_EQUAL(ops[0], ops[1]);
}

UNIT_MAIN("program of dispatches", {"experts' activations in products", test_fused_experts},
	{"experts in 16 bits", test_wide_experts}, {"a head in fp8", test_narrow_head},
	{"a kernel for all experts", test_grouped_kernel}, {"weights gathered beside a loop", test_loop_gathers},
	{"rows once a host", test_dispatch}, {"tokens in fp8", test_narrow_dispatch}, {"router bias", test_router_bias})
