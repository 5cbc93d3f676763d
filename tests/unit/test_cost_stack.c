/* What a software stack adds to the prices of a step: casts, copies, launches one by one, waits of the host. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

/* Ops that are alike are priced once; ops that differ in anything that matters are told apart. */
static void test_prices(void)
{
	mesh(2, 16);
	struct machine m = gpu();
	struct op ops[] = {
		gemm(DT_BF16, 128, 128, 4096),
		gemm(DT_BF16, 128, 128, 4096),
		gemm(DT_BF16, 128, 4096, 128),
		gemm(DT_FP32, 128, 128, 4096),
		gemm(DT_BF16, 128, 128, 4096),
		collective(COLL_ALL_REDUCE, DIM_TP, 1 << 20),
		collective(COLL_ALL_REDUCE, DIM_DP, 1 << 20),
		collective(COLL_ALL_GATHER, DIM_DP, 1 << 20),
		collective(COLL_ALL_REDUCE, DIM_DP, 1 << 20),
	};
	ops[1].layer = 3; /* where and when it stands does not matter */
	ops[1].phase = PHASE_BACKWARD;
	ops[1].flags = OP_RECOMPUTED;
	ops[4].flags = OP_ACCUMULATE;
	static const uint32_t same_as[] = {0, 0, 2, 3, 4, 5, 6, 7, 6};
	struct role roles[] = {{.ranks = 32}, {.ranks = 32}};
	struct program two = program;
	two.roles = roles;
	two.n_roles = COUNT(roles);
	roles[0].ops.at = ops;
	roles[0].ops.n = COUNT(ops);
	roles[1].ops.at = &ops[2]; /* roles share prices */
	roles[1].ops.n = COUNT(ops) - 2;
	struct prices prices;
	CU_ASSERT_EQUAL_FATAL(price_program(&two, RATES(&m), &prices, &error), ST_OK);
	CU_ASSERT_EQUAL(prices.different.n, 7);
	for (size_t i = 0; i < COUNT(ops); i++) {
		CU_ASSERT_EQUAL(prices.of_op[i], prices.of_op[same_as[i]]);
		CU_ASSERT_EQUAL(price_of(&prices, 0, i)->alone_s, cost(&m, ops[i]).alone_s);
		if (i >= 2)
			CU_ASSERT_PTR_EQUAL(price_of(&prices, 1, i - 2), price_of(&prices, 0, i));
	}
	prices_free(&prices);
	prices_free(NULL);

	ops[6].lane = LANE_MODEL_COMM; /* and a bucket's collective may be called otherwise than others */
	ops[8].lane = LANE_COMM;
	ops[7].lane = LANE_COMM;
	ops[7].coll = COLL_ALL_REDUCE;
	ops[7].bucket = 0;
	ops[8].bucket = -1;
	CU_ASSERT_EQUAL_FATAL(price_program(&two, RATES(&m), &prices, &error), ST_OK);
	CU_ASSERT(prices.of_op[6] != prices.of_op[8] && prices.of_op[7] != prices.of_op[8]);
	prices_free(&prices);

	ops[3].dtype = DT_FP8;
	error = (struct error){0};
	CU_ASSERT_EQUAL(price_program(&two, RATES(&m), &prices, &error), ST_INPUT);
	prices_free(&prices);
}

/* A stack whose sums of gradients are added by kernels of their own: the product writes 2 B an element, the kernel
 * reads them and the sum and writes it, 12 B in all in place of the 4 or 8 of a product that adds. */
static void test_adds_gradients(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op first = gemm(DT_BF16, 4096, 4096, 4096), later, forward = first;
	first.out_dtype = DT_FP32;
	first.flags = OP_TRANS_A;
	later = first;
	later.flags |= OP_ACCUMULATE;
	const double elements_s = 4096.0 * 4096 / (2e12 * 0.9), forward_s = cost(&m, forward).alone_s,
		     first_s = cost(&m, first).alone_s, later_s = cost(&m, later).alone_s;
	program.config.stack.adds_gradients = true;
	NEAR(cost(&m, first).alone_s, first_s + (12 - 4) * elements_s);
	NEAR(cost(&m, later).alone_s, later_s + (12 - 8) * elements_s);
	NEAR(cost(&m, forward).alone_s, forward_s);
	first.out_dtype = DT_BF16; /* sums in the format of the operands: the product adds */
	const double narrow_s = cost(&m, first).alone_s;
	program.config.stack.adds_gradients = false;
	NEAR(cost(&m, first).alone_s, narrow_s);
	program.config.stack.sums_apart = true; /* 2 B written, 2 + 2 read, 2 written, in place of 2 */
	NEAR(cost(&m, first).alone_s, narrow_s + (8 - 2) * elements_s);
	NEAR(cost(&m, later).alone_s, later_s + (12 - 8) * elements_s);
	NEAR(cost(&m, forward).alone_s, forward_s);
	program.config.stack.sums_apart = false;
	program.config.stack.sums_fused = program.config.stack.adds_gradients = true;
	NEAR(cost(&m, later).alone_s, later_s);
	program.config.stack.sums_fused = program.config.stack.adds_gradients = false;
}

/* Autograd adds a gradient to that of an earlier micro-batch by a kernel of its own: 8 B an element in bf16 in place of
 * 4. Where a trainer carries gradients through buckets, it does not. */
static void test_autograd_adds(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op grad = gemm(DT_BF16, 4096, 4096, 4096);
	grad.flags = OP_TRANS_A;
	const double elements_s = 4096.0 * 4096 / (2e12 * 0.9), first_s = cost(&m, grad).alone_s;
	program.config.stack.operators.counted = true;
	NEAR(cost(&m, grad).alone_s, first_s);
	grad.flags |= OP_ACCUMULATE;
	NEAR(cost(&m, grad).alone_s, first_s + (8 - 2) * elements_s);
	program.config.stack.operators.counted = false;
	NEAR(cost(&m, grad).alone_s, first_s + (4 - 2) * elements_s);
}

/* Kernels that carry a gradient through a bucket: twice read and written, 8 B an element in bf16, and three ops more of
 * the host thread. A product of activations and a norm's forward pass have no gradient to carry. */
static void test_copies_gradients(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op weight = gemm(DT_BF16, 4096, 4096, 4096), norm = {.kind = OP_NORM_GRAD};
	const struct op forward = weight;
	weight.flags = OP_TRANS_A;
	norm.dtype = norm.out_dtype = DT_BF16;
	norm.matrix = (struct op_matrix){.rows = 1024, .cols = 4096};
	const struct op_cost product = cost(&m, weight), plain = cost(&m, norm), before = cost(&m, forward);
	program.config.stack.gradient_passes = 2;
	program.config.stack.gradient_calls = 3;
	NEAR(cost(&m, weight).alone_s, product.alone_s + 8 * 4096.0 * 4096 / (2e12 * 0.9));
	NEAR(cost(&m, weight).issue_s, 4 * product.issue_s);
	NEAR(cost(&m, norm).alone_s, plain.alone_s + 8 * 2 * 4096 / (2e12 * 0.9)); /* weight and bias */
	NEAR(cost(&m, forward).alone_s, before.alone_s);
	NEAR(cost(&m, forward).issue_s, before.issue_s);
	program.config.stack.gradient_calls = 0;
	program.config.stack.gradient_kernels = 2; /* a norm has two gradients */
	NEAR(cost(&m, weight).issue_s, product.issue_s + 2 * m.device.launch_s);
	NEAR(cost(&m, norm).issue_s, plain.issue_s + 4 * m.device.launch_s);
	NEAR(cost(&m, forward).issue_s, before.issue_s);
	const double copied_s = cost(&m, norm).alone_s;
	program.config.stack.gradient_kernels = 0;
	NEAR(copied_s, cost(&m, norm).alone_s + 4 * 1.5e-6);
	struct op batch = norm;
	batch.kind = OP_BATCH_NORM;
	const double issue_s = cost(&m, batch).issue_s;
	program.config.stack.buffer_kernels = 0.25; /* of mean, variance and count, in one of four micro-batches */
	NEAR(cost(&m, batch).issue_s, issue_s + 0.75 * m.device.launch_s);
	NEAR(cost(&m, norm).issue_s, plain.issue_s);
	struct op experts = weight;
	experts.kind = OP_GROUPED_GEMM;
	experts.gemm.groups = 2;
	const double alone_s = cost(&m, experts).alone_s; /* a single rank holds them */
	program.config.stack.expert_passes = 1;
	NEAR(cost(&m, experts).alone_s, alone_s + 4 * 2 * 4096.0 * 4096 / (2e12 * 0.9));
}

/* Products of one repeated token run at a clock that less power allows; their result is written as fast as any. A
 * device that says nothing of it, and kernels that memory bounds, take as long as with other data. */
static void test_repeated_data(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	const struct op product = gemm(DT_BF16, 4096, 4096, 4096);
	const double usual_s = cost(&m, product).alone_s,
		     multiply_s = 2 * pow(4096, 3) / (m.device.matrix_flop_per_s[DT_BF16] * m.device.gemm_share);
	program.config.stack.repeated_data = true;
	NEAR(cost(&m, product).alone_s, usual_s);
	m.device.repeated_data = 1.25;
	NEAR(cost(&m, product).alone_s, usual_s - multiply_s * 0.2);
	program.config.stack.repeated_data = false;
	NEAR(cost(&m, product).alone_s, usual_s);
}

/* Two reads of 2 B and two writes of 1 B in place of one of each; a copy with a scale for each block of 32 is made in
 * one pass. */
static void test_dynamic_scales(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op copy = {.kind = OP_CAST, .dtype = DT_BF16, .out_dtype = DT_FP8, .vector = {1 << 26}}, blocks = copy;
	blocks.out_dtype = DT_MXFP8;
	const double element_s = (double)(1 << 26) / (2e12 * 0.9) * program.config.stack.elementwise_passes,
		     copy_s = cost(&m, copy).alone_s, blocks_s = cost(&m, blocks).alone_s;
	program.config.stack.dynamic_scales = true;
	NEAR(cost(&m, copy).alone_s, copy_s + 3 * element_s);
	NEAR(cost(&m, blocks).alone_s, blocks_s);
	/* a recipe of the config's own: blockwise reads once and writes both ways, whatever the stack does */
	program.config.stack.fp8_recipe = FP8_BLOCKWISE;
	NEAR(cost(&m, copy).alone_s, copy_s + element_s);
	program.config.stack.fp8_recipe = FP8_DELAYED;
	NEAR(cost(&m, copy).alone_s, copy_s);
	program.config.stack.dynamic_scales = false;
	program.config.stack.fp8_recipe = FP8_ROWWISE; /* a third read finds the largest values of columns */
	NEAR(cost(&m, copy).alone_s, copy_s + 5 * element_s);
	/* one copy behind the look for the largest value: 2 + 2 + 1 bytes, whatever the stack's passes */
	program.config.stack.fp8_recipe = FP8_TENSORWISE_ONCE;
	program.config.stack.elementwise_passes = 3;
	NEAR(cost(&m, copy).alone_s, KERNEL_S + 5 * (double)(1 << 26) / (2e12 * 0.9));
	NEAR(cost(&m, blocks).alone_s, KERNEL_S + 3 * (blocks_s - KERNEL_S));
	program.config.stack.fp8_recipe = FP8_AUTO;
	program.config.stack.elementwise_passes = 1;
}

/* A gather that says how many tensors it holds lays them back slice by slice: each a launch, or both passes over the
 * memory where those take longer. */
static void test_copies_gathered(void)
{
	mesh(1, 16);
	struct machine m = gpu();
	struct op gather = collective(COLL_ALL_GATHER, DIM_DP, 1 << 20),
		  sum = collective(COLL_ALL_REDUCE, DIM_DP, 1 << 20);
	gather.dtype = gather.out_dtype = sum.dtype = sum.out_dtype = DT_BF16;
	const double plain_s = cost(&m, gather).alone_s, sum_s = cost(&m, sum).alone_s;
	gather.collective.tensors = sum.collective.tensors = 3;
	NEAR(cost(&m, gather).alone_s, plain_s + 3 * 16 * 4e-6);
	NEAR(cost(&m, sum).alone_s, sum_s);
	struct op scatter = gather;
	scatter.coll = COLL_REDUCE_SCATTER;
	scatter.collective.tensors = 0;
	const double scatter_s = cost(&m, scatter).alone_s;
	scatter.collective.tensors = 3;
	NEAR(cost(&m, scatter).alone_s, scatter_s + 3 * 16 * 4e-6);
	gather.collective.tensors = 0;
	gather.collective.elements = 1 << 30;
	const double large_s = cost(&m, gather).alone_s;
	gather.collective.tensors = 3;
	NEAR(cost(&m, gather).alone_s, large_s + 2 * 2.0 * (1 << 30) / (2e12 * 0.9));
}

/* PyTorch's DTensor puts rows in order behind a gather of several sequences and before each scatter, and transposes
 * those in fp8. With tensor_overlap it adds the pieces behind a scatter; the gradient of several products stays whole.
 */
static void test_rows_copied(void)
{
	mesh(8, 1);
	struct machine m = gpu();
	struct op gather = collective(COLL_ALL_GATHER, DIM_TP, 1 << 30), scatter = gather;
	const double pass_s = 2.0 * (1 << 30) / (2e12 * 0.9);
	gather.lane = scatter.lane = LANE_MODEL_COMM;
	gather.dtype = gather.out_dtype = scatter.dtype = scatter.out_dtype = DT_BF16;
	scatter.coll = COLL_REDUCE_SCATTER;
	struct op narrow = gather, sum = scatter;
	narrow.dtype = narrow.out_dtype = DT_FP8;
	sum.flags = OP_WHOLE;
	const double gather_s = cost(&m, gather).alone_s, scatter_s = cost(&m, scatter).alone_s,
		     narrow_s = cost(&m, narrow).alone_s;
	program.config.stack.dtensor = true;
	program.config.train.micro_batch = 2;
	NEAR(cost(&m, gather).alone_s, gather_s + 2 * pass_s);
	NEAR(cost(&m, scatter).alone_s, scatter_s + 2 * pass_s);
	NEAR(cost(&m, narrow).alone_s, narrow_s + 4 * pass_s / 2);
	program.config.train.micro_batch = 1;
	NEAR(cost(&m, gather).alone_s, gather_s);
	NEAR(cost(&m, scatter).alone_s, scatter_s + 2 * pass_s);
	program.config.parallel.tensor_overlap = true;
	program.config.parallel.tensor = 8;
	NEAR(cost(&m, scatter).alone_s, scatter_s + 1.125 * pass_s);
	NEAR(cost(&m, sum).alone_s, scatter_s + 2 * pass_s);
	CU_ASSERT_TRUE(cost(&m, scatter).tile_overlap_s > 0 && cost(&m, sum).tile_overlap_s == 0);
	program.config.train.dtype = DT_FP8;
	program.config.stack.fp8_recipe = FP8_ROWWISE;
	CU_ASSERT_EQUAL(cost(&m, gather).tile_overlap_s, 0);
	program.config.stack.fp8_recipe = FP8_AUTO;
	program.config.train.dtype = DT_BF16;
	program.config.parallel.tensor = 1;
	program.config.parallel.tensor_overlap = program.config.stack.dtensor = false;
}

/* Where the update is one kernel, its traffic is that of stacks that count it apart. Without a number it is the other.
 */
static void test_fused_optimizer(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op update = {.kind = OP_OPTIMIZER, .optimizer = OPT_ADAMW, .dtype = DT_FP32, .out_dtype = DT_FP32};
	update.update.elements = 1000000000;
	program.config.stack.optimizer_B = 105;
	const double foreach_s = cost(&m, update).alone_s;
	update.flags = OP_FUSED;
	NEAR(cost(&m, update).alone_s, foreach_s);
	program.config.stack.optimizer_fused_B = 40;
	NEAR(cost(&m, update).alone_s, foreach_s - 65e9 / (2e12 * 0.9));
	/* 320 blocks of a launch are three for some of 132 SMs, where as many SMs would have 2.4 */
	const double kernel_s = cost(&m, (struct op){.kind = OP_OPTIMIZER, .dtype = DT_FP32}).alone_s;
	program.config.stack.optimizer_blocks = 320;
	m.device.sms = 132;
	NEAR(cost(&m, update).alone_s, foreach_s - 65e9 / (2e12 * 0.9)); /* not NVIDIA's */
	m.device.compute_capability = 90;
	NEAR(cost(&m, update).alone_s, kernel_s + 40e9 / (2e12 * 0.9) * 3 * 132 / 320);
	m.device.sms = 160;
	NEAR(cost(&m, update).alone_s, kernel_s + 40e9 / (2e12 * 0.9));
	update.flags = 0;
	NEAR(cost(&m, update).alone_s, foreach_s);
	/* 16 bits everywhere are half the bytes at 0.8 of the rate. With a copy or a gradient in fp32 the moments alone
	 * save 8 B in each of 3.5 passes */
	const double rate = 2e12 * 0.9;
	update.dtype = update.out_dtype = DT_BF16;
	NEAR(cost(&m, update).alone_s, foreach_s);
	update.update.halved = 1;
	NEAR(m.parameters->gpu.narrow_update, 0.8);
	NEAR(cost(&m, update).alone_s, kernel_s + 52.5e9 / (0.8 * rate));
	update.flags = OP_MASTER;
	NEAR(cost(&m, update).alone_s, kernel_s + 77e9 / rate);
	update.flags = 0;
	update.out_dtype = DT_FP32;
	NEAR(cost(&m, update).alone_s, kernel_s + 77e9 / rate);
	program.config.stack.optimizer_B = program.config.stack.optimizer_fused_B = 0;
	program.config.stack.optimizer_blocks = 0;
}

/* Without foreach AdamW and its clipping launch 10 kernels for each tensor, and sgd 4. Each takes the host thread a
 * launch, and on DTensors dispatch besides: those of fully_shard and of tensor ranks. */
static void test_update_in_a_loop(void)
{
	mesh(2, 1);
	struct machine m = gpu();
	const double launch_s = m.device.launch_s;
	struct op update = {.kind = OP_OPTIMIZER, .optimizer = OPT_ADAMW, .dtype = DT_FP32, .out_dtype = DT_FP32};
	update.update.elements = 1000000;
	const struct op_cost lists = cost(&m, update);
	update.update.tensors = 12;
	NEAR(cost(&m, update).issue_s, lists.issue_s + 120 * launch_s);
	NEAR(cost(&m, update).alone_s, lists.alone_s + 120 * KERNEL_S);
	update.optimizer = OPT_SGD;
	NEAR(cost(&m, update).issue_s, lists.issue_s + 48 * launch_s);
	update.optimizer = OPT_ADAMW;
	program.config.stack.dtensor_op_s = 20e-6;
	program.config.stack.dtensor = true;
	program.config.parallel.tensor = 1;
	NEAR(cost(&m, update).issue_s, lists.issue_s + 120 * launch_s);
	program.config.parallel.tensor = 2;
	NEAR(cost(&m, update).issue_s, lists.issue_s + 120 * (launch_s + 20e-6));
	program.config.parallel.tensor = 1;
	program.config.parallel.strategy = STRAT_FSDP;
	NEAR(cost(&m, update).issue_s, lists.issue_s + 120 * (launch_s + 20e-6));
	update.update.tensors = 0;
	NEAR(cost(&m, update).issue_s, lists.issue_s);
	update.update.tensors = 12;
	program.config.train.cuda_graph = true;
	CU_ASSERT_EQUAL(cost(&m, update).issue_s, 0);
	program.config.train.cuda_graph = false;
	program.config.parallel.strategy = STRAT_DDP;
	program.config.stack.dtensor = false;
	program.config.stack.dtensor_op_s = 0;
}

/* Dispatch on DTensors takes the host thread longer for each op, but not in a graph. */
static void test_dtensors(void)
{
	mesh(2, 1);
	struct machine m = gpu();
	struct op product = gemm(DT_BF16, 4096, 4096, 4096);
	const double plain_s = cost(&m, product).issue_s;
	product.dtensors = 12;
	NEAR(cost(&m, product).issue_s, plain_s);
	program.config.stack.dtensor_op_s = 20e-6;
	NEAR(cost(&m, product).issue_s, plain_s + 240e-6);
	program.config.train.cuda_graph = true;
	CU_ASSERT_EQUAL(cost(&m, product).issue_s, 0);
	program.config.train.cuda_graph = false;
	program.config.stack.dtensor_op_s = 0;
}

/* An adapter's factors in units of their own are as many calls as modules, each with a gather that the host thread
 * waits for. The scatters of their gradients are only issued. */
static void test_adapter_units(void)
{
	mesh(1, 4);
	program.mesh.params = DIM_DP;
	struct machine m = gpu(), cores = host();
	const struct op plain = gemm(DT_BF16, 4096, 64, 512), on_cores = gemm(DT_FP32, 64, 64, 64);
	struct op two = plain, gradient = plain, two_on_cores = on_cores,
		  gather = collective(COLL_ALL_GATHER, DIM_DP, 64 * 512 / 2);
	gather.dtype = gather.out_dtype = DT_BF16;
	two.gemm.units = gradient.gemm.units = two_on_cores.gemm.units = 2;
	gradient.flags |= OP_TRANS_A;
	const struct op_cost alone = cost(&m, plain), units = cost(&m, two), behind = cost(&m, gradient);
	NEAR(units.issue_s, 4 * alone.issue_s);
	NEAR(units.alone_s, alone.alone_s + 2 * cost(&m, gather).alone_s);
	NEAR(behind.issue_s, 4 * alone.issue_s);
	NEAR(behind.alone_s, alone.alone_s);
	CU_ASSERT_TRUE(units.holds && !alone.holds && !behind.holds);
	CU_ASSERT_EQUAL(cost(&cores, two_on_cores).alone_s, cost(&cores, on_cores).alone_s);
}

/* With launch_blocking kernels and collectives hold the host thread, messages do not; nor does anything on cores. */
static void test_launch_blocking(void)
{
	mesh(1, 2);
	struct machine m = gpu(), cores = host();
	const struct op product = gemm(DT_BF16, 256, 256, 256), sum = collective(COLL_ALL_REDUCE, DIM_DP, 1024),
			on_cores = gemm(DT_FP32, 64, 64, 64);
	struct op send = collective(COLL_SEND, DIM_PP, 1024);
	program.mesh.size[DIM_PP] = 2;
	send.message.peer = 1;
	CU_ASSERT_FALSE(cost(&m, product).holds || cost(&m, sum).holds || cost(&m, send).holds);
	program.config.train.launch_blocking = true;
	CU_ASSERT_TRUE(cost(&m, product).holds && cost(&m, sum).holds);
	CU_ASSERT_FALSE(cost(&m, send).holds || cost(&cores, on_cores).holds);
	program.config.train.cuda_graph = true;
	CU_ASSERT_FALSE(cost(&m, product).holds);
	program.config.train.launch_blocking = program.config.train.cuda_graph = false;
}

#define KERNEL_S 1.5e-6 /* starts and drains */

/* Returns what dropout adds to the time of an op, less a kernel's start; *calls: launches that it adds. */
static double dropout_adds_s(struct op op, double *calls)
{
	struct machine m = gpu();
	const struct op_cost plain = cost(&m, op);
	op.dropout = 1;
	const struct op_cost with = cost(&m, op);
	*calls = (with.issue_s - plain.issue_s) / 4e-6;
	return with.alone_s - plain.alone_s - *calls * KERNEL_S;
}

/* A kernel of its own reads x, and writes the result and a mask of a byte; one that is there anyway writes the mask. */
static void test_dropout(void)
{
	mesh(1, 1);
	struct stack *s = &program.config.stack;
	const struct stack before = *s;
	struct op add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {1 << 12, 1 << 10, 0}},
		  scores = {.kind = OP_ATTN_SOFTMAX,
			  .dtype = DT_BF16,
			  .out_dtype = DT_BF16,
			  .attn = {.batch = 2, .heads = 4, .kv_heads = 4, .seq = 1 << 10, .head_dim = 64}};
	struct op norm = add;
	norm.kind = OP_NORM_GRAD;
	const double rows = 1 << 22, all = 2 * 4 * (double)(1 << 20), Bps = 2e12 * 0.9;
	double calls;
	s->dropout = 2;
	s->dropout_grad = 1;
	s->score_dropout = 2;
	NEAR(dropout_adds_s(add, &calls), rows * (2 * 2 + 1) / Bps);
	CU_ASSERT_DOUBLE_EQUAL(calls, 1, 1e-6);
	NEAR(dropout_adds_s(norm, &calls), rows * (2 + 1) / Bps);
	CU_ASSERT_DOUBLE_EQUAL(calls, 0, 1e-6);
	NEAR(dropout_adds_s(scores, &calls), all * (2 * 2 + 1) / Bps);
	s->autocast = true; /* softmax leaves fp32 */
	NEAR(dropout_adds_s(scores, &calls), all * (2 * 4 + 1) / Bps);
	s->dropout = 0;
	NEAR(dropout_adds_s(add, &calls), rows / Bps);
	CU_ASSERT_DOUBLE_EQUAL(calls, 0, 1e-6);
	s->passes_hold_dropout = true;
	CU_ASSERT_EQUAL(dropout_adds_s(scores, &calls), 0);
	*s = before;
}

UNIT_MAIN("cost_stack", {"dropout", test_dropout}, {"launches that are waited for", test_launch_blocking},
	{"scales of fp8 copies", test_dynamic_scales}, {"gathered weights copied back", test_copies_gathered},
	{"rows of DTensor", test_rows_copied}, {"dispatch on DTensors", test_dtensors},
	{"fused optimizers", test_fused_optimizer}, {"updates in a loop", test_update_in_a_loop},
	{"adapters' units", test_adapter_units}, {"sums of gradients by kernels of their own", test_adds_gradients},
	{"autograd's sums", test_autograd_adds}, {"gradients through buckets", test_copies_gradients},
	{"products of one repeated token", test_repeated_data}, {"prices of a role", test_prices})
