/* Tests the results of bench: sizes, rates, verdicts, NCCL's log, and the factors of nccl-tests' doc/PERFORMANCE.md. */
#include "tests/unit/harness.h"

#include <math.h>
#include <string.h>

#include "exec/bench.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-12 * fabs(b))

static struct bench_table table_of(enum collective coll, enum dtype dtype, uint64_t min_B, uint64_t max_B,
	int64_t factor, int64_t ranks)
{
	struct bench_plan p = {.coll = coll,
		.dtype = dtype,
		.min_B = min_B,
		.max_B = max_B,
		.factor = factor,
		.iters = 20,
		.warmup = 5,
		.check = true};
	struct bench_table t;
	CU_ASSERT_EQUAL_FATAL(bench_sizes(&p, ranks, &t, NULL), ST_OK);
	return t;
}

static void test_factors(void)
{
	static const double of_8[COLL_OF_GROUPS] = {[COLL_ALL_REDUCE] = 1.75,
		[COLL_ALL_GATHER] = 0.875,
		[COLL_REDUCE_SCATTER] = 0.875,
		[COLL_BROADCAST] = 1,
		[COLL_ALLTOALL] = 0.875,
		[COLL_SENDRECV] = 1};
	static const double rounds_of_8[COLL_OF_GROUPS] = {[COLL_ALL_REDUCE] = 14,
		[COLL_ALL_GATHER] = 7,
		[COLL_REDUCE_SCATTER] = 7,
		[COLL_BROADCAST] = 7,
		[COLL_ALLTOALL] = 7,
		[COLL_SENDRECV] = 1};
	for (int c = 0; c < COLL_OF_GROUPS; c++) {
		NEAR(collective_rounds((enum collective)c, 8), rounds_of_8[c]);
		CU_ASSERT_EQUAL(collective_rounds((enum collective)c, 1), 0);
		NEAR(collective_wire_factor((enum collective)c, 8), of_8[c]);
		CU_ASSERT_EQUAL(collective_wire_factor((enum collective)c, 1), 0);
		struct op op = {.kind = OP_COLLECTIVE, .coll = (uint8_t)c, .dtype = DT_BF16, .collective = {1000}};
		NEAR(op_wire_B(&op, 8), 2000 * of_8[c]);
		CU_ASSERT_TRUE(op_class_is_comm(op_class_of(&op)));
		CU_ASSERT_STRING_EQUAL(op_class_name(op_class_of(&op)), collective_name((enum collective)c));
	}
	CU_ASSERT_FALSE(op_class_is_comm(CLASS_COPY));
}

static void test_sizes(void)
{
	struct bench_table t = table_of(COLL_ALL_REDUCE, DT_FP32, 8, 128 << 20, 2, 3);
	CU_ASSERT_EQUAL(t.n, 25);
	CU_ASSERT_EQUAL(t.rows[0].bytes, 8);
	CU_ASSERT_EQUAL(t.rows[0].count, 2);
	CU_ASSERT_EQUAL(t.rows[24].bytes, 128 << 20);
	bench_free(&t);
	/* Parts are whole elements, and what comes out alike appears once: 1 and 10 B are an element each of three
	 * ranks, 100 B eight of them. */
	t = table_of(COLL_ALLTOALL, DT_FP32, 1, 100, 10, 3);
	CU_ASSERT_EQUAL_FATAL(t.n, 2);
	CU_ASSERT_EQUAL(t.rows[0].bytes, 12);
	CU_ASSERT_EQUAL(t.rows[0].count, 1);
	CU_ASSERT_EQUAL(t.rows[1].bytes, 96);
	CU_ASSERT_EQUAL(t.rows[1].count, 8);
	bench_free(&t);
	t = table_of(COLL_BROADCAST, DT_FP16, 7, 7, 2, 4);
	CU_ASSERT_EQUAL_FATAL(t.n, 1);
	CU_ASSERT_EQUAL(t.rows[0].count, 3);
	bench_free(&t);
	/* The largest size that there can be does not run over. */
	t = table_of(COLL_BROADCAST, DT_FP32, 1, UINT64_MAX, 1000000000, 4);
	CU_ASSERT_EQUAL(t.n, 3);
	bench_free(&t);
}

static void test_verdicts(void)
{
	struct bench_table t = table_of(COLL_ALL_REDUCE, DT_FP32, 1 << 18, 1 << 26, 4, 4);
	static const struct {
		double measured_s;
		const char *verdict;
	} cases[] = {{1e-3, "latency"}, {1e-3, "normal"}, {1.2e-3, "normal"}, {1 / 0.43e3, "slow: 43 % of expected"},
		{0.5e-3, "fast: 200 % of expected"}};
	char buf[BENCH_VERDICT];
	struct bench_summary s;
	CU_ASSERT_EQUAL_FATAL(t.n, 5);
	for (size_t i = 0; i < t.n; i++) {
		t.rows[i].predicted_s = 1e-3;
		t.rows[i].latency = i == 0;
		CU_ASSERT_STRING_EQUAL(bench_verdict(&t, &t.rows[i], buf), ""); /* not measured yet */
		t.rows[i].out_of_place = (struct bench_side){true, cases[i].measured_s, i};
		CU_ASSERT_STRING_EQUAL(bench_verdict(&t, &t.rows[i], buf), cases[i].verdict);
	}
	NEAR(bench_algbw_Bps(&t.rows[1], &t.rows[1].out_of_place), (1 << 20) / 1e-3);
	NEAR(bench_busbw_Bps(&t, &t.rows[1], &t.rows[1].out_of_place), 1.5 * (1 << 20) / 1e-3);
	NEAR(bench_error(&t, &t.rows[4]), 1.0);
	CU_ASSERT_TRUE(isnan(bench_busbw_Bps(&t, &t.rows[1], &t.rows[1].in_place)));
	CU_ASSERT_EQUAL_FATAL(bench_summarize(&t, &s, NULL), ST_OK);
	CU_ASSERT_EQUAL(s.wrong, 10);
	CU_ASSERT_DOUBLE_EQUAL(s.error, (1 - 1 / 1.2 + 0.57) / 2, 1e-9); /* of 0, 0.167, 0.57, 1 */
	CU_ASSERT_DOUBLE_EQUAL(s.share, (1 / 1.2 + 1) / 2, 1e-9);
	CU_ASSERT_PTR_EQUAL(s.largest, &t.rows[4]);
	t.doubles = true;
	CU_ASSERT_STRING_EQUAL(bench_verdict(&t, &t.rows[1], buf), "");
	CU_ASSERT_EQUAL_FATAL(bench_summarize(&t, &s, NULL), ST_OK);
	CU_ASSERT_TRUE(isnan(s.error) && isnan(s.share) && !s.largest);
	t.doubles = false;
	t.meaningless = true; /* nor is what ranks that share a GPU take */
	CU_ASSERT_STRING_EQUAL(bench_verdict(&t, &t.rows[1], buf), "");
	CU_ASSERT_EQUAL_FATAL(bench_summarize(&t, &s, NULL), ST_OK);
	CU_ASSERT_TRUE(isnan(s.error) && isnan(s.share) && !s.largest);
	bench_free(&t);
}

static void test_choice(void)
{
	struct bench_row r = {.channels = 0};
	CU_ASSERT_FALSE(bench_read_choice("", &r));
	CU_ASSERT_FALSE(bench_read_choice("vm:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING\n", &r));
	CU_ASSERT_STRING_EQUAL(r.algorithm, "");
	CU_ASSERT_TRUE(bench_read_choice(
		"vm:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}\n"
		"vm:1:2 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..23}\n",
		&r));
	CU_ASSERT_STRING_EQUAL(r.algorithm, "RING");
	CU_ASSERT_STRING_EQUAL(r.protocol, "LL128");
	CU_ASSERT_EQUAL(r.channels, 24);
	CU_ASSERT_TRUE(bench_read_choice(
		"AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 nthreads 512 nWorks 1", &r));
	CU_ASSERT_STRING_EQUAL(r.algorithm, "AllReduce_AGxLL_R");
	CU_ASSERT_STRING_EQUAL(r.protocol, "");
	CU_ASSERT_EQUAL(r.channels, 4);
	CU_ASSERT_FALSE(
		bench_read_choice("-> Algo AN_ALGORITHM_WITH_A_VERY_LONG_NAME proto LL channel{Lo..Hi}={0..1}", &r));
}

UNIT_MAIN("bench", {"wire factors", test_factors}, {"sizes", test_sizes}, {"verdicts", test_verdicts},
	{"what NCCL chose", test_choice})
