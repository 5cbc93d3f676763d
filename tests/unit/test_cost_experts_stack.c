/* What a software stack adds to the prices of experts: calls one by one, biases, activations, counts of rows. */

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

/* With expert_loop a grouped product is as many calls, which keep neither the SMs nor the host thread busy for one
 * another; in the forward pass the host thread waits for them. */
static void test_expert_loop(void)
{
	mesh(1, 1);
	struct machine m = gpu(), cores = host();
	struct op one = gemm(DT_BF16, 128, 4096, 4096), backward;
	one.kind = OP_GROUPED_GEMM;
	one.gemm.groups = 1;
	one.flags |= OP_TRANS_B;
	struct op eight = one, on_cores = gemm(DT_FP32, 64, 64, 64);
	eight.gemm.groups = on_cores.gemm.groups = 8;
	on_cores.kind = OP_GROUPED_GEMM;
	backward = eight;
	backward.flags &= (uint32_t)~OP_TRANS_B;
	const struct op_cost alone = cost(&m, one), grouped = cost(&m, eight), slow = cost(&cores, on_cores);
	CU_ASSERT_FALSE(grouped.holds);
	program.config.train.expert_loop = true;
	const struct op_cost loop = cost(&m, eight);
	NEAR(loop.alone_s, 8 * alone.alone_s);
	NEAR(loop.issue_s, 8 * alone.issue_s);
	CU_ASSERT_TRUE(loop.alone_s > grouped.alone_s && loop.holds);
	CU_ASSERT_FALSE(cost(&m, backward).holds || cost(&m, gemm(DT_BF16, 128, 4096, 4096)).holds);
	CU_ASSERT_EQUAL(cost(&cores, on_cores).alone_s, slow.alone_s);
	program.config.train.expert_loop = false;
}

/* Biases of experts are added by kernels of their own, expert by expert: 28 B an element of 2,880 columns forward, 40 B
 * backward, and 8 and 10 B an element of 2 x 1,024 columns for clamps. What runs again only clamps. */
static void test_expert_biases(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op act = {.kind = OP_WEIGHTED_ACT, .dtype = DT_BF16, .out_dtype = DT_BF16}, grad, again;
	act.matrix = (struct op_matrix){.rows = 4096, .cols = 1024};
	grad = again = act;
	grad.kind = OP_WEIGHTED_ACT_GRAD;
	again.flags = OP_RECOMPUTED;
	const struct op_cost plain = cost(&m, act), plain_grad = cost(&m, grad);
	const double Bps = 2e12 * 0.9, launch_s = m.device.launch_s;
	program.config.stack.biased_cols = 2880;
	program.config.model.experts = 32;
	program.config.parallel.expert = 8;
	NEAR(cost(&m, act).alone_s, plain.alone_s + 4096 * (28 * 2880.0 + 8 * 2048) / Bps);
	NEAR(cost(&m, grad).alone_s, plain_grad.alone_s + 4096 * (40 * 2880.0 + 10 * 2048) / Bps);
	NEAR(cost(&m, again).alone_s, plain.alone_s + 4096 * 8 * 2048.0 / Bps);
	NEAR(cost(&m, act).issue_s, plain.issue_s + 4 * 2 * launch_s);
	NEAR(cost(&m, grad).issue_s, plain_grad.issue_s + 4 * 6 * launch_s);
	NEAR(cost(&m, again).issue_s, plain.issue_s);
	struct op ops[] = {act, again};
	struct role role = {.ranks = 1, .ops = {.at = ops, .n = COUNT(ops)}};
	struct program both = program;
	struct prices prices;
	both.roles = &role;
	both.n_roles = 1;
	CU_ASSERT_EQUAL_FATAL(price_program(&both, RATES(&m), &prices, &error), ST_OK);
	CU_ASSERT(prices.of_op[0] != prices.of_op[1]); /* so they share no price */
	prices_free(&prices);
	program.config.stack.biased_cols = 0;
	program.config.model.experts = 0;
	program.config.parallel.expert = 1;
}

/* Inside an experts' product an activation of 4096 x 1024 costs nothing more. Casts write a byte an element along both
 * axes. The gradient reads the activation's input, of 2 x 1,024 columns, and saves the 2 bytes of what it reads, which
 * the product counts as written. Nothing of it is launched, nor are experts called one by one. */
static void test_fused_experts(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	m.device.matrix_flop_per_s[DT_FP8] = 2000e12;
	struct op act = {.kind = OP_ACT, .dtype = DT_BF16, .out_dtype = DT_BF16, .flags = OP_IN_PRODUCT}, grad, cast;
	act.matrix = (struct op_matrix){.rows = 4096, .cols = 1024};
	grad = cast = act;
	grad.kind = OP_ACT_GRAD;
	cast.kind = OP_CAST;
	cast.out_dtype = DT_FP8;
	cast.vector.elements = (int64_t)4096 * 1024;
	const double Bps = 2e12 * 0.9, elements = 4096 * 1024.0, halves = op_read_B(&grad) / (2 * elements) - 1;
	CU_ASSERT(halves == 1 || halves == 2); /* of the config's activation */
	CU_ASSERT_EQUAL(cost(&m, act).alone_s, 0);
	NEAR(cost(&m, cast).alone_s, 2 * elements / Bps);
	NEAR(cost(&m, grad).alone_s + 1, (halves - 1) * 2 * elements / Bps + 1);
	CU_ASSERT_EQUAL(cost(&m, act).issue_s + cost(&m, grad).issue_s + cost(&m, cast).issue_s, 0);
	struct op product = gemm(DT_FP8, 128, 4096, 4096);
	product.kind = OP_GROUPED_GEMM;
	product.gemm.groups = 8;
	program.config.stack.expert_calls = true;
	const struct op_cost called = cost(&m, product);
	program.config.train.fused_experts = true;
	CU_ASSERT_TRUE(cost(&m, product).issue_s < called.issue_s);
	NEAR(cost(&m, product).issue_s, m.device.launch_s);
	program.config.train.fused_experts = program.config.stack.expert_calls = false;
}

/* With expert_calls the host thread calls each expert's product, and two kernels more for each in fp8; the products
 * themselves run at once, as without. On AMD's GPUs such a call is a launch. */
static void test_expert_calls(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	m.device.matrix_flop_per_s[DT_FP8] = 2000e12;
	struct op eight = gemm(DT_BF16, 128, 4096, 4096), narrow, one = eight;
	eight.kind = OP_GROUPED_GEMM;
	eight.gemm.groups = 8;
	narrow = eight;
	narrow.dtype = DT_FP8;
	const struct op_cost at_once = cost(&m, eight), single = cost(&m, one);
	program.config.stack.expert_calls = true;
	NEAR(cost(&m, eight).issue_s, at_once.issue_s + 8 * 33.4e-6 - m.device.launch_s);
	NEAR(cost(&m, narrow).issue_s, at_once.issue_s + 8 * 33.4e-6 + 15 * m.device.launch_s);
	NEAR(cost(&m, eight).alone_s, at_once.alone_s);
	NEAR(cost(&m, one).issue_s, single.issue_s);
	strcpy(m.device.gfx, "gfx950");
	NEAR(cost(&m, eight).issue_s, at_once.issue_s + 7 * m.device.launch_s);
	NEAR(cost(&m, narrow).issue_s, at_once.issue_s + 23 * m.device.launch_s);
	m.device.gfx[0] = '\0';
	program.config.train.cuda_graph = true;
	CU_ASSERT_EQUAL(cost(&m, eight).issue_s, 0);
	program.config.train.cuda_graph = program.config.stack.expert_calls = false;
}

/* With expert_counts the host thread waits for the router of experts on several ranks, which exchange their counts. A
 * capacity factor fixes the numbers beforehand, and a graph has no host thread. */
static void test_expert_counts(void)
{
	mesh(8, 8);
	struct machine m = gpu();
	struct op route = {.kind = OP_ROUTE, .dtype = DT_BF16, .out_dtype = DT_FP32};
	route.route.rows = 4096;
	route.route.experts = 64;
	route.route.choices = 8;
	route.route.capacity = 512;
	const struct op_cost before = cost(&m, route);
	program.config.stack.expert_counts = true;
	CU_ASSERT_FALSE(before.holds || cost(&m, route).holds); /* experts of one rank */
	program.mesh.size[DIM_EP] = 8;
	program.mesh.stride[DIM_EP] = 1;
	const struct op_cost counted = cost(&m, route);
	CU_ASSERT_TRUE(counted.holds && counted.alone_s > before.alone_s);
	CU_ASSERT_FALSE(cost(&m, gemm(DT_BF16, 128, 4096, 4096)).holds);
	program.config.model.capacity_factor = 1;
	CU_ASSERT_FALSE(cost(&m, route).holds);
	NEAR(cost(&m, route).alone_s, before.alone_s);
	program.config.model.capacity_factor = 0;
	program.config.train.cuda_graph = true;
	CU_ASSERT_FALSE(cost(&m, route).holds);
	program.config.train.cuda_graph = program.config.stack.expert_counts = false;
	program.mesh.size[DIM_EP] = 1;
}

UNIT_MAIN("cost_experts_stack", {"counts of experts' rows", test_expert_counts},
	{"experts one by one", test_expert_loop}, {"experts called one by one", test_expert_calls},
	{"experts' biases", test_expert_biases}, {"experts' activations in products", test_fused_experts})
