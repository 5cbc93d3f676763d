#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "tests/unit/cost_case.h"

/* ---- profile ---- */

static void test_fit(void)
{
	mesh(1, 1);
	struct machine m = host();
	const double coef[] = {1e-6, 2e-11, 3e-10, 4e-10, 5e-10};
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn", coef, 5, 0.04, NULL), ST_OK);
	struct op_cost c = cost(&m, gemm(DT_FP32, 100, 200, 300));
	NEAR(c.alone_s, 1e-6 + 2e-11 * 2 * 100 * 200 * 300 + 3e-10 * 100 * 300 + 4e-10 * 300 * 200 + 5e-10 * 100 * 200);
	CU_ASSERT_EQUAL(c.issue_s, 0); /* calling is part of it */
	CU_ASSERT_EQUAL(c.rel_sigma, 0.04);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_FALSE(c.guessed);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_FP32, 1, 2, 3)).bound, BOUND_LATENCY);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_FP32, 1, 100000, 1)).bound, BOUND_MEMORY);
	/* Cores that are faster now than then, and memory that is slower; the call takes what it took. */
	m.pace = (struct pace){1.25, 0.5};
	c = cost(&m, gemm(DT_FP32, 100, 200, 300));
	NEAR(c.alone_s, 1e-6 + 2e-11 * 2 * 100 * 200 * 300 / 1.25 +
				2 * (3e-10 * 100 * 300 + 4e-10 * 300 * 200 + 5e-10 * 100 * 200));
}

static void test_curve(void)
{
	mesh(1, 1);
	struct machine m = host();
	const double x[] = {1e3, 1e5, 1e7}, y[] = {1e-10, 1e-10, 4e-10};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "fill", x, y, 3, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, "call_s", 1e-6, NULL), ST_OK);
	struct op fill = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {25000}};
	NEAR(cost(&m, fill).alone_s, 1e-6 + 25000 * 1e-10);
	fill.vector.elements = 250000; /* half way between 1e5 and 1e7 bytes, in log-log */
	NEAR(cost(&m, fill).alone_s, 1e-6 + 250000 * 2e-10);
	fill.vector.elements = 250000000; /* the end value goes on */
	struct op_cost c = cost(&m, fill);
	NEAR(c.alone_s, 1e-6 + 250000000 * 4e-10);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT_DOUBLE_EQUAL(c.use.demand[RES_MEMORY], 1, 1e-4); /* all but the call */
	fill.vector.elements = 10;
	CU_ASSERT_EQUAL(cost(&m, fill).bound, BOUND_LATENCY);

	/* Ten times slower than memory would be: arithmetic. */
	const double slow[] = {1e-9, 1e-8, 1e-8};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "act.gelu", x, slow, 3, NULL), ST_OK);
	struct op act = {.kind = OP_ACT,
		.mlp = MLP_GELU,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.matrix = {1000, 4000}};
	c = cost(&m, act);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	NEAR(c.use.demand[RES_MEMORY], 32e6 / 10e9 / c.alone_s);
}

static void test_missing_entry(void)
{
	mesh(1, 1);
	struct machine m = host();
	struct op_cost c = cost(&m, gemm(DT_FP32, 1000, 1000, 1000));
	NEAR(c.alone_s, 2e-6 + 2e9 / 100e9);
	CU_ASSERT_EQUAL(c.issue_s, 0);
	CU_ASSERT(c.guessed);
	CU_ASSERT(c.rel_sigma > 0.3);
	const double coef[] = {1, 1}; /* a fit of another form is none */
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn", coef, 2, 0, NULL), ST_OK);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 1000, 1000, 1000)).guessed);
}

/* What calibration repeats in the L2 cache is faster than a step's op: it takes the largest size's rate, on GPUs alone.
 * A small op's latency stays. */
static void test_cached_curve(void)
{
	mesh(1, 1);
	const double x[] = {1e4, 1e7, 1e9}, y[] = {1e-10, 1e-13, 3e-13};
	const struct op small = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {2500}},
			middle = {.kind = OP_FILL, .dtype = DT_FP32, .out_dtype = DT_FP32, .vector = {2500000}};
	struct machine cores = host();
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "fill", x, y, 3, NULL), ST_OK);
	machine_attach_profile(&cores, profile);
	const double call_s = profile_get_value(profile, PROFILE_CALL_S, 0);
	NEAR(cost(&cores, middle).alone_s - call_s, 2500000 * 1e-13);
	struct machine m = gpu();
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	machine_attach_profile(&m, profile);
	NEAR(cost(&m, middle).alone_s - call_s, 1e7 * 3e-13);
	NEAR(cost(&m, small).alone_s - call_s, 1e4 * 1e-10);
}

/* A GPU's profile: fit or memory, a curve of bytes, the launch, copies; 100 SMs whatever the catalogue says. */
static void test_gpu_profile(void)
{
	mesh(1, 1);
	host(); /* an empty profile */
	struct machine m = gpu();
	m.device.sms = 132;
	strcpy(profile->key.backend, "cuda");
	profile->key.ranks_per_host = 8;
	const double coef[] = {3e-6, 1.5e-15, 1e-13, 0, 0}, x[] = {1e6, 1e9}, y[] = {1e-12, 1e-12};
	CU_ASSERT_EQUAL_FATAL(profile_set_fit(profile, "gemm.nn.bf16", coef, 5, 0.04, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "add", x, y, 2, NULL), ST_OK);
	static const struct {
		const char *name;
		double value;
	} values[] = {{"sms", 100}, {"mem_Bps", 1e12}, {"launch_s", 5e-6}, {"call_s", 2e-6}, {"copy.h2d_Bps", 25e9},
		{"peak.fp32", 1}};
	for (size_t i = 0; i < COUNT(values); i++)
		CU_ASSERT_EQUAL_FATAL(profile_set_value(profile, values[i].name, values[i].value, NULL), ST_OK);
	machine_attach_profile(&m, profile);
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_BF16], 1000e12); /* the datasheet's peaks stay */
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_FP32], 50e12);
	CU_ASSERT_EQUAL(m.device.mem_Bps, 2e12);
	CU_ASSERT_EQUAL(m.device.mem_share, 0.5);
	CU_ASSERT_EQUAL(m.intra.Bps, 100e9);

	const struct work_device d = {.gpu = true, .sms = 100, .tiles = TILE_MODEL};
	struct op square = gemm(DT_BF16, 4096, 4096, 4096);
	struct work w;
	work_of(&square, &d, &w);
	struct op_cost c = cost(&m, square);
	NEAR(c.alone_s, 3e-6 + 1.5e-15 * w.term[1] + 1e-13 * w.term[2]);
	CU_ASSERT_EQUAL(c.issue_s, 5e-6);
	CU_ASSERT_EQUAL(c.bound, BOUND_COMPUTE);
	CU_ASSERT_EQUAL(c.rel_sigma, 0.04);
	CU_ASSERT_FALSE(c.guessed);
	struct op flat = gemm(DT_BF16, 65536, 65536, 16); /* memory takes longer than the fit */
	c = cost(&m, flat);
	NEAR(c.alone_s, (op_read_B(&flat) + op_write_B(&flat)) / 1e12);
	CU_ASSERT_EQUAL(c.bound, BOUND_MEMORY);
	CU_ASSERT_EQUAL(cost(&m, gemm(DT_BF16, 16, 16, 16)).bound, BOUND_LATENCY);
	CU_ASSERT(cost(&m, gemm(DT_FP32, 4096, 4096, 4096)).guessed); /* no such entry: the catalogue's roofline */

	struct op add = {.kind = OP_ADD, .dtype = DT_BF16, .out_dtype = DT_BF16, .matrix = {4096, 4096}};
	c = cost(&m, add);
	NEAR(c.alone_s, 2e-6 + (op_read_B(&add) + op_write_B(&add)) * 1e-12);
	CU_ASSERT_EQUAL(c.issue_s, 5e-6);
	struct op copy = {.kind = OP_COPY, .lane = LANE_COPY, .copy = {50000000}};
	NEAR(cost(&m, copy).alone_s, 50e6 / 25e9);

	/* A collective that was measured inside a host says nothing of one between hosts. */
	const double bytes[] = {1e6, 1e8}, s[] = {1e-4, 1e-2};
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.4", bytes, s, 2, NULL), ST_OK);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 1, 1e8, NULL), 1e-2);
	CU_ASSERT(collective_price(RATES(&m), COLL_ALL_REDUCE, 4, 1, COLLECTIVE_ANY, 4096, NULL).measured);
	NEAR(collective_time_s(RATES(&m), COLL_ALL_REDUCE, 4, 8, 400e6, NULL), 6 * (10e-6 + 100e6 / 25e9));
	CU_ASSERT_FALSE(collective_price(RATES(&m), COLL_ALL_REDUCE, 4, 8, COLLECTIVE_ANY, 4096, NULL).measured);
}

UNIT_MAIN("cost from a profile", {"a profile's fit", test_fit}, {"a profile's curve", test_curve},
	{"an entry that the profile lacks", test_missing_entry}, {"a GPU's profile", test_gpu_profile},
	{"what a cache held", test_cached_curve})
