#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

/* ---- roofline ---- */

static void test_roofline(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	program.config.stack = stack_default();
	struct op square = gemm(DT_BF16, 4096, 4096, 4096);
	struct op_cost c = cost(&m, square);
	NEAR(c.alone_s, KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 800e12 +
				2 * 4096.0 * 4096 / 1.8e12); /* the result's way to memory */
	CU_ASSERT_EQUAL(c.issue_s, 4e-6);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 1);
	NEAR(c.use.demand[RES_MEMORY], (op_read_B(&square) + op_write_B(&square)) / 1.8e12 / c.alone_s);
	CU_ASSERT_FALSE(c.guessed);

	/* The same in fp32 has a twentieth of the rate. */
	NEAR(cost(&m, gemm(DT_FP32, 4096, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 40e12 + 4 * 4096.0 * 4096 / 1.8e12);

	/* 64 images of 56 x 56 pixels, 256 channels, 3 x 3: 200,704 x 256 x 2,304, of which Winograd's algorithm leaves
	 * 16 products of 36; it has no form for steps of 2. */
	struct op conv = {.kind = OP_CONV, .dtype = DT_FP32, .out_dtype = DT_FP32, .conv = {64, 56, 256, 256, 3, 1, 0}};
	NEAR(cost(&m, conv).alone_s,
		KERNEL_S + 2 * 200704.0 * 256 * 2304 * 16 / 36 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	/* On vector units of half the rate it gains half of that; of a quarter, direct products are faster. */
	m.device.vector_flop_per_s /= 2;
	NEAR(cost(&m, conv).alone_s,
		KERNEL_S + 2 * 200704.0 * 256 * 2304 * 32 / 36 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	m.device.vector_flop_per_s /= 2;
	NEAR(cost(&m, conv).alone_s, KERNEL_S + 2 * 200704.0 * 256 * 2304 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);
	m.device.vector_flop_per_s *= 4;
	conv.conv = (struct op_conv){64, 112, 256, 256, 3, 2, 0};
	NEAR(cost(&m, conv).alone_s, KERNEL_S + 2 * 200704.0 * 256 * 2304 / 40e12 + 4 * 200704.0 * 256 / 1.8e12);

	struct op norm = {.kind = OP_NORM, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {65536, 4096}};
	c = cost(&m, norm);
	NEAR(c.alone_s, KERNEL_S + (op_read_B(&norm) + op_write_B(&norm)) / 1.8e12);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT(c.use.demand[RES_MEMORY] > 0.99 && c.use.demand[RES_MEMORY] <= 1);
	program.config.stack.elementwise_passes = 2.5; /* an eager stack moves more than the least */
	NEAR(cost(&m, norm).alone_s, KERNEL_S + 2.5 * (c.alone_s - KERNEL_S));
	program.config.stack = stack_default();

	/* Softmax over stored scores runs on vector units and is bound by memory there. */
	struct op softmax = {.kind = OP_ATTN_SOFTMAX,
		.dtype = DT_BF16,
		.out_dtype = DT_BF16,
		.attn = {8, 16, 16, 1024, 64}};
	c = cost(&m, softmax);
	NEAR(c.alone_s, KERNEL_S + 2 * 2 * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	/* Under autocast a cast to 4 bytes (2 + 4), the passes in 4 bytes (3 x 8), and a cast back (4 + 2). */
	program.config.stack.elementwise_passes = 3;
	program.config.stack.autocast = true;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 24 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	program.config.stack = stack_default();
	/* One by one: a cast to 4 bytes, scaling and softmax in 4 bytes, a cast back; backward softmax reads two. */
	program.config.stack.elementwise_passes = 3;
	program.config.stack.softmax_apart = true;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 8 + 8 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	softmax.kind = OP_ATTN_SOFTMAX_GRAD;
	NEAR(cost(&m, softmax).alone_s, KERNEL_S + (6 + 12 + 8 + 6) * 8 * 16 * 1024.0 * 1024 / 1.8e12);
	program.config.stack = stack_default();

	CU_ASSERT_EQUAL(cost(&m, gemm(DT_BF16, 64, 64, 64)).bound, BOUND_LATENCY); /* shorter than its launch */
}

/* Small and odd shapes pay for whole tiles, split k and alignment. Of shapes whose rows are whole 16 bytes, the larger
 * is never the faster. */
static void test_shapes_of_products(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	m.device.sms = 100;
	NEAR(cost(&m, gemm(DT_BF16, 4096, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4096.0 * 4096 * 4096 / 800e12 + 2 * 4096.0 * 4096 / 1.8e12);
	/* one tile, k in 4 parts: 4 of 100 SMs */
	NEAR(cost(&m, gemm(DT_BF16, 128, 128, 1024)).alone_s,
		KERNEL_S + 2 * 128.0 * 128 * 1024 / (0.04 * 800e12) + 2 * 128.0 * 128 / 1.8e12);
	/* 4104 rows are 4160 */
	NEAR(cost(&m, gemm(DT_BF16, 4104, 4096, 4096)).alone_s,
		KERNEL_S + 2 * 4160.0 * 4096 * 4096 / 800e12 + 2 * 4104.0 * 4096 / 1.8e12);
	/* GPT-2's vocabulary, as it is and padded */
	double odd_s = cost(&m, gemm(DT_BF16, 8192, 50257, 768)).alone_s,
	       padded_s = cost(&m, gemm(DT_BF16, 8192, 50304, 768)).alone_s;
	CU_ASSERT(odd_s > 1.5 * padded_s && odd_s < 2.1 * padded_s);
	/* GPUs with faster instructions than those of before keep 817 FLOP an SM and clock, or 1,693 where rows are
	 * whole multiples of 4 bytes */
	struct machine newer = m;
	newer.device.compute_capability = 90;
	newer.device.boost_Hz = 1.8e9;
	const double share = 800e12 / m.device.matrix_flop_per_s[DT_BF16], clocks = 100 * 1.8e9,
		     flop = 2 * 8192.0 * 768 * 50304, written_s = 8192 * 2 / 1.8e12;
	NEAR(cost(&newer, gemm(DT_BF16, 8192, 50257, 768)).alone_s,
		KERNEL_S + flop / (share * clocks * 817) + 50257 * written_s);
	NEAR(cost(&newer, gemm(DT_BF16, 8192, 50258, 768)).alone_s,
		KERNEL_S + flop / (share * clocks * 1693) + 50258 * written_s);
	newer.device.compute_capability = 80;
	NEAR(cost(&newer, gemm(DT_BF16, 8192, 50258, 768)).alone_s - 50258 * written_s, odd_s - 50257 * written_s);
	newer.device.compute_capability = 90;
	NEAR(cost(&newer, gemm(DT_BF16, 8192, 50304, 768)).alone_s, padded_s);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 8192, 50257, 768)).alone_s <=
		  cost(&m, gemm(DT_FP32, 8192, 50304, 768)).alone_s); /* no Tensor Cores to lose */

	static const int64_t sides[] = {8, 64, 72, 128, 136, 256, 1000, 1024, 4096, 4104, 16384};
	enum { N = COUNT(sides) };
	for (int i = 0; i < N * N * N; i++) {
		int64_t a = sides[i % N], b = sides[i / N % N], k = sides[i / N / N];
		double t = cost(&m, gemm(DT_BF16, a, b, k)).alone_s;
		CU_ASSERT(cost(&m, gemm(DT_BF16, a + 8, b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b + 8, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b, k + 8)).alone_s >= t);
		CU_ASSERT(cost(&m, gemm(DT_BF16, 2 * a, b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, 2 * b, k)).alone_s >= t &&
			  cost(&m, gemm(DT_BF16, a, b, 2 * k)).alone_s >= t);
	}
}

/* On a TPU an expert of 1,536 rows has a part in 1,535 / 512 + 1 tiles of 512 rows: 2,047 rows. Columns are whole
 * arrays: 2,880 are 3,072. */
static void test_tiles_of_experts(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	struct op experts = gemm(DT_BF16, 1536, 2048, 7168);
	experts.kind = OP_GROUPED_GEMM;
	experts.gemm.groups = 8;
	const double before_s = cost(&m, experts).alone_s, flop_s = 8 * 2 * 2048.0 * 7168 / 800e12;
	program.config.stack.expert_tile = 512;
	NEAR(cost(&m, experts).alone_s, before_s); /* no systolic array */
	m.device.matrix_array = 256;
	NEAR(cost(&m, experts).alone_s, before_s + flop_s * 511);
	m.device.chip_devices = 2; /* each has 768 rows: 1,279 */
	NEAR(cost(&m, experts).alone_s, before_s + flop_s * 2 * 511);
	experts.gemm.m = 1; /* each has less than a row, and computes a tile */
	CU_ASSERT_TRUE(cost(&m, experts).alone_s > flop_s * 512);
	m.device.chip_devices = 1;
	program.config.stack.expert_tile = 0;
	experts.gemm = (struct op_gemm){1536, 2880, 7168, 8, 0};
	const double narrow_s = cost(&m, experts).alone_s;
	program.config.stack.expert_tile = 1; /* no tile is shared */
	NEAR(cost(&m, experts).alone_s, narrow_s + flop_s / 2048 * 1536 * (3072 - 2880));
	experts.flags |= OP_TRANS_A; /* the gradient of weights of 2,880 x 2,880 sums up 1,536 rows */
	experts.gemm = (struct op_gemm){2880, 2880, 1536, 8, 0};
	program.config.stack.expert_tile = 512;
	NEAR(cost(&m, experts).alone_s,
		KERNEL_S + 8 * (2 * 3072.0 * 3072 * 2047 / 800e12 + 2 * 2880.0 * 2880 / 1.8e12));
	program.config.stack = stack_default();
}

/* A rank's experts are as many products: they fill the device together, and none is for nothing. */
static void test_grouped_products(void)
{
	struct machine m = gpu();
	m.device.sms = 1024; /* one wave of 32 x 32 tiles */
	mesh(1, 1);
	struct op one = gemm(DT_BF16, 4096, 4096, 4096), grouped = one;
	grouped.kind = OP_GROUPED_GEMM;
	grouped.gemm.groups = 8;
	const double one_s = cost(&m, one).alone_s - KERNEL_S, grouped_s = cost(&m, grouped).alone_s - KERNEL_S,
		     weights_B = 4096 * 4096 * 2.0, streams_Bps = RATES(&m)->memory_Bps;
	NEAR(grouped_s, 8 * (one_s + weights_B / streams_Bps)); /* nothing hides the weights' traffic */
	grouped.flags |= OP_TRANS_A;                            /* a gradient of weights has none */
	NEAR(cost(&m, grouped).alone_s - KERNEL_S, 8 * one_s);
	grouped.flags &= (uint32_t)~OP_TRANS_A;
	CU_ASSERT_TRUE(grouped_s >= op_flop(&grouped) / m.device.matrix_flop_per_s[DT_BF16]);
	/* four waves of 32 x 32 tiles: the first waits for its weights */
	m.device.sms = 256;
	NEAR(cost(&m, grouped).alone_s - KERNEL_S, 8 * (one_s + weights_B / 4 / streams_Bps));
	/* so few tiles that one product leaves most SMs without one */
	m.device.sms = 100;
	struct op small = gemm(DT_BF16, 128, 128, 256), smalls = small;
	smalls.kind = OP_GROUPED_GEMM;
	smalls.gemm.groups = 50;
	CU_ASSERT_TRUE(cost(&m, smalls).alone_s < 4 * cost(&m, small).alone_s);
}

/* PyTorch's own kernel for a group reaches a share of that rate on Blackwell, in 16 bits. */
static void test_torch_grouped(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	struct op grouped = gemm(DT_BF16, 4096, 4096, 4096), one = grouped;
	grouped.kind = OP_GROUPED_GEMM;
	grouped.gemm.groups = 8;
	grouped.flags |= OP_TRANS_A;
	const double usual_s = cost(&m, grouped).alone_s, one_s = cost(&m, one).alone_s,
		     flop_s = op_flop(&grouped) / RATES(&m)->product_flop_per_s[DT_BF16],
		     share = m.parameters->gpu.grouped_blackwell;
	static const struct {
		double capability;
		bool slower;
	} cases[] = {{0, false}, {90, false}, {100, true}, {103, true}, {120, false}};
	program.config.stack.torch_grouped = true;
	for (size_t i = 0; i < COUNT(cases); i++) {
		m.device.compute_capability = (int64_t)cases[i].capability;
		NEAR(cost(&m, grouped).alone_s, usual_s + (cases[i].slower ? flop_s * (1 / share - 1) : 0));
	}
	m.device.compute_capability = 100;
	NEAR(cost(&m, one).alone_s, one_s);
	m.device.matrix_flop_per_s[DT_MXFP8] = 2000e12;
	grouped.dtype = DT_MXFP8;
	const double narrow_s = cost(&m, grouped).alone_s;
	program.config.stack.torch_grouped = false;
	NEAR(cost(&m, grouped).alone_s, narrow_s);
	program.config.stack = stack_default();
}

static struct op routed(enum op_kind k)
{
	struct op op = {.kind = k, .dtype = DT_BF16, .out_dtype = DT_BF16};
	op.dispatch.rows = 4096;
	op.dispatch.cols = 2048;
	op.dispatch.slots = 32768;
	op.dispatch.choices = 8;
	return op;
}

/* Rows in the experts' order stream more slowly than others. Where atomic additions sum a token's slots up they are the
 * longer part; where products with masks take rows to their slots those are. */
static void test_routed_rows(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	const struct rates *r = RATES(&m);
	const double rows = 4096 * 2048, slots = 32768 * 2048, ids = 4 * 32768.0,
		     streams_Bps = r->memory_Bps * r->parameters->gpu.permuted_share;
	const struct op to = routed(OP_DISPATCH), from = routed(OP_COMBINE), grad = routed(OP_COMBINE_GRAD);
	NEAR(cost(&m, to).alone_s - KERNEL_S, (2 * rows + 2 * slots + ids) / streams_Bps);
	const double fused_s = cost(&m, from).alone_s;
	program.config.stack.atomic_sums = true;
	const double atomic_s = slots * r->parameters->gpu.atomic_add_flop / r->vector_flop_per_s;
	CU_ASSERT_TRUE(atomic_s + KERNEL_S > fused_s);
	NEAR(cost(&m, from).alone_s - KERNEL_S, atomic_s);
	NEAR(cost(&m, to).alone_s - KERNEL_S, (2 * rows + 2 * slots + ids) / streams_Bps);
	struct op wide = from;
	wide.dtype = DT_FP32; /* a native addition */
	CU_ASSERT_TRUE(cost(&m, wide).alone_s - KERNEL_S != atomic_s);
	program.config.stack.mask_rows = 4096;
	const double product_s = 2 * slots * 4096 / r->product_flop_per_s[DT_BF16];
	NEAR(cost(&m, to).alone_s - KERNEL_S, product_s);
	NEAR(cost(&m, from).alone_s - KERNEL_S, product_s);
	NEAR(cost(&m, grad).alone_s - KERNEL_S, 2 * product_s);
	program.config.stack.mask_rows = 0;
	program.config.stack.atomic_sums = false;
}

/* A format's own share stands in for that of large products; the other formats keep theirs. fp32's is of its batched
 * products, too, while those of naive attention keep 16 bits beside fp8. */
static void test_share_of_a_format(void)
{
	struct machine m = gpu();
	mesh(1, 1);
	const struct rates *r = RATES(&m);
	const double bf16 = r->product_flop_per_s[DT_BF16], fp32 = r->product_flop_per_s[DT_FP32];
	NEAR(fp32, 0.8 * 50e12);
	m.device.format_share[DT_FP32] = 0.4;
	m.device.format_share[DT_FP8] = 0.4;
	m.device.matrix_flop_per_s[DT_FP8] = 2000e12;
	r = RATES(&m);
	NEAR(r->product_flop_per_s[DT_FP32], 0.5 * fp32);
	NEAR(r->batched_flop_per_s[DT_FP32], 0.5 * fp32);
	NEAR(r->product_flop_per_s[DT_BF16], bf16);
	NEAR(r->product_flop_per_s[DT_FP8], 0.4 * 2000e12);
	NEAR(r->batched_flop_per_s[DT_FP8], 0.8 * 2000e12);
}

static void test_unsupported_format(void)
{
	mesh(1, 1);
	struct machine m = gpu();
	struct op op = gemm(DT_FP8, 128, 128, 128);
	struct op_cost c;
	error = (struct error){0};
	CU_ASSERT_EQUAL(cost_op(&program, &op, RATES(&m), &c, &error), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(error.text, "matrices are not multiplied in fp8 on round GPU (they are in: fp32, bf16)"));
	op.kind = OP_CAST; /* it may still convert to it */
	CU_ASSERT_EQUAL(cost_op(&program, &op, RATES(&m), &c, NULL), ST_OK);
}

static void test_copies(void)
{
	mesh(1, 1);
	struct op copy = {.kind = OP_COPY, .lane = LANE_COPY, .copy = {50000000}};
	struct machine m = gpu();
	struct op_cost c = cost(&m, copy);
	NEAR(c.alone_s, 1e-3);
	CU_ASSERT_EQUAL(c.bound, BOUND_LINK);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 0);
	m.device.pcie_Bps = 0;
	NEAR(cost(&m, copy).alone_s, 50e6 / 31.5e9);

	m = host();
	c = cost(&m, copy);
	NEAR(c.alone_s, 2e-6 + 2 * 50e6 / 10e9);
	CU_ASSERT_EQUAL(c.use.demand[RES_COMPUTE], 0.5); /* one core of two */
	CU_ASSERT_EQUAL(c.issue_s, 0);
}

/* Products ran at 75 % of the burst clock and 400 TFLOP/s on a board of 700 W, 100 W at rest: a FLOP costs 1.5 pJ.
 * Products and attention take it, other ops pay for bytes. fp32 met no limit. Without a limit or power nothing is said.
 */
static void test_power(void)
{
	mesh(1, 1);
	host();
	struct machine m = gpu();
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	const double tflop = 1e12, coef[] = {0, 1 / 500e12, 0, 0, 0}, x[] = {1e6, 1e9}, y[] = {1e-12, 1e-12};
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "sms", 100, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "mem_Bps", 1e12, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.bf16", coef, 5, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.fp32", coef, 5, 0, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, y, 2, NULL), ST_OK);
	const struct profile_products found = {.name = "gemm.nn.bf16",
		.n = 4,
		.flop = {tflop, tflop, tflop, tflop},
		.time_s = {1 / 300.0, 1 / 500.0, 1 / 100.0, 1 / 50.0},
		.clock_Hz = {1.4e9, 1.6e9, 2e9, 1e9}, /* 1 GHz, but not for power */
		.power_W = {700, 700, 100, 400},
		.heat_s = {0.15, 0.15, 0, 0.15},
		.capped = {1, 0.5, 0, 0}};
	CU_ASSERT_EQUAL_FATAL(profile_set_products(profile, &found, NULL), ST_OK);
	machine_attach_profile(&m, profile);
	const struct op large = gemm(DT_BF16, 8192, 8192, 8192), thin = gemm(DT_BF16, 8192, 8192, 64),
			fp32 = gemm(DT_FP32, 8192, 8192, 8192),
			add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {1000, 1000}};
	CU_ASSERT_EQUAL(cost(&m, large).matrix_J, 0);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, PROFILE_POWER_LIMIT_W, 700, NULL), ST_OK);
	const struct rates r = rates_of(&m);
	NEAR(r.power_cap[DT_BF16].J_per_flop, 1.5e-12);
	NEAR(r.power_cap[DT_BF16].clock, 0.75);
	CU_ASSERT_EQUAL(r.power_cap[DT_FP32].J_per_flop, 0);
	struct op_cost c = cost(&m, large);
	NEAR(c.matrix_J, 1.5e-12 * op_flop(&large));
	NEAR(c.clocked_s, c.alone_s);
	CU_ASSERT_EQUAL(c.spare_s, 0);
	CU_ASSERT_EQUAL(c.byte_J, 0);
	c = cost(&m, thin); /* memory takes longer, and hides some of a slower clock */
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	NEAR(c.clocked_s + c.spare_s, c.alone_s);
	CU_ASSERT(c.spare_s > 0 && c.clocked_s > 0);
	c = cost(&m, fp32);
	CU_ASSERT_EQUAL(c.matrix_J, 0); /* it follows the clock that others set */
	NEAR(c.clocked_s, c.alone_s);
	c = cost(&m, add); /* 1e-12 s a byte are memory's rate; a curve of ten times that is bound by arithmetic */
	NEAR(c.byte_J, (op_read_B(&add) + op_write_B(&add)) * r.parameters->gpu.byte_energy);
	CU_ASSERT_EQUAL(c.clocked_s, 0);
	const double slow[] = {1e-11, 1e-11};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, slow, 2, NULL), ST_OK);
	c = cost(&m, add);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	NEAR(c.clocked_s, c.alone_s);
	CU_ASSERT_EQUAL(c.matrix_J, 0);
}

UNIT_MAIN("cost", {"grouped products", test_grouped_products}, {"PyTorch's grouped kernel", test_torch_grouped},
	{"tiles of experts", test_tiles_of_experts}, {"rows on their way to experts", test_routed_rows},
	{"roofline", test_roofline}, {"shapes of products", test_shapes_of_products},
	{"a share of one format", test_share_of_a_format},
	{"a format that the device does not support", test_unsupported_format}, {"copies", test_copies},
	{"what a GPU's ops draw", test_power})
