/* All-reduce in two levels (sim/price/hierarchical.c). */
#include "tests/unit/constants.h"
#include "tests/unit/harness.h"
#include "tests/unit/rates.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "sim/price/cost.h"
#include "topology/profile.h"

#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL((a) / (b), 1, 1e-12)
#define FORCED(a) ((struct collective_choice){ALGO_##a, PROTO_AUTO})

static struct collective_price price(const struct machine *m, enum collective c, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes)
{
	return collective_price(RATES(m), c, size, stride, forced, bytes, NULL);
}

static struct machine load(const char *system, int64_t hosts)
{
	struct machine m;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load(system, hosts, 0, &m, &e), ST_OK);
	return m;
}

/* Four hosts of eight; 3 us and 100 GB/s inside, 10 us and 25 GB/s a GPU between them. Of 800 MB:
 *   reduce-scatter of 8    7 x (3 us + 100 MB / 100 GB/s) = 7.021 ms
 *   all-reduce of 4        6 x (10 us + 25 MB / 25 GB/s)  = 6.060 ms, of 100 MB
 *   all-gather of 8        as the reduce-scatter          = 7.021 ms        sum 20.102 ms
 * Of no bytes: 7 x 3 + 6 x 10 + 7 x 3 us = 102 us. */
static void test_worked(void)
{
	const struct machine m = {.parameters = read_constants(),
		.name = "round",
		.nodes = 4,
		.devices_per_node = 8,
		.intra = {3e-6, 100e9},
		.inter = {10e-6, 25e9}};
	struct collective_price p = price(&m, COLL_ALL_REDUCE, 32, 1, FORCED(HIERARCHICAL), 800e6);
	NEAR(p.time_s, 20.102e-3);
	CU_ASSERT_STRING_EQUAL(p.algorithm, "hierarchical");
	CU_ASSERT_EQUAL(p.bound, BOUND_LINK);
	p = price(&m, COLL_ALL_REDUCE, 32, 1, FORCED(HIERARCHICAL), 0);
	NEAR(p.time_s, 102e-6);
	CU_ASSERT_EQUAL(p.bound, BOUND_LATENCY);
	/* Every second GPU: four a host. 3 x (3 us + 25 MB / 100 GB/s) twice, 6 x (10 us + 6.25 MB / 25 GB/s). */
	NEAR(price(&m, COLL_ALL_REDUCE, 16, 2, FORCED(HIERARCHICAL), 100e6).time_s, 2 * 3 * 253e-6 + 6 * 260e-6);
}

/* It takes as long as its parts, so longer than each, and longer for more bytes. On many
 * hosts it passes far fewer steps than a ring over all ranks, so it is faster where latency is all. */
static void test_against_parts_and_ring(void)
{
	static const char *const systems[] = {"dgx-h100", "dgx-a100", "gpu:8 mi300x nic:8x400Gb/s"};
	for (size_t s = 0; s < COUNT(systems); s++)
		for (int64_t hosts = 2; hosts <= 64; hosts *= 2) {
			struct machine m = load(systems[s], hosts);
			double before = 0;
			for (double b = 8; b < 1e10; b *= 3.1) {
				const double now = price(&m, COLL_ALL_REDUCE, 8 * hosts, 1, FORCED(HIERARCHICAL), b)
				                           .time_s,
					     scatter = price(&m, COLL_REDUCE_SCATTER, 8, 1, FORCED(AUTO), b).time_s,
					     across = price(&m, COLL_ALL_REDUCE, hosts, 8, FORCED(RING), b / 8).time_s,
					     gather = price(&m, COLL_ALL_GATHER, 8, 1, FORCED(AUTO), b).time_s;
				NEAR(now, scatter + across + gather);
				CU_ASSERT_TRUE(now > scatter && now > across && now > gather);
				CU_ASSERT_TRUE(now >= before);
				before = now;
				if (hosts >= 8 && b < 65536)
					CU_ASSERT_TRUE(
						now < price(&m, COLL_ALL_REDUCE, 8 * hosts, 1, FORCED(RING), b).time_s);
			}
			machine_free(&m);
		}
}

/* Where there are no two levels, and for other collectives, the choice is free. */
static void test_falls_back(void)
{
	static const struct {
		enum collective c;
		int64_t size, stride;
	} cases[] = {{COLL_ALL_REDUCE, 8, 1}, {COLL_ALL_REDUCE, 4, 1}, {COLL_ALL_REDUCE, 4, 8},
		{COLL_ALL_REDUCE, 12, 1}, {COLL_ALL_REDUCE, 8, 3}, {COLL_ALL_GATHER, 32, 1},
		{COLL_REDUCE_SCATTER, 32, 1}, {COLL_ALLTOALL, 32, 1}, {COLL_ALL_REDUCE, 1, 1}};
	struct machine m = load("dgx-h100", 4);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct collective_price forced = price(&m, cases[i].c, cases[i].size, cases[i].stride,
						FORCED(HIERARCHICAL), 1e6),
					free_choice = price(&m, cases[i].c, cases[i].size, cases[i].stride,
						COLLECTIVE_ANY, 1e6);
		CU_ASSERT_EQUAL(forced.time_s, free_choice.time_s);
		CU_ASSERT_STRING_EQUAL(forced.algorithm, free_choice.algorithm);
	}
	/* A protocol that is forced as well reaches the parts, and what falls back. */
	const struct collective_choice ll = {ALGO_HIERARCHICAL, PROTO_LL}, any_ll = {ALGO_AUTO, PROTO_LL};
	CU_ASSERT_TRUE(price(&m, COLL_ALL_REDUCE, 32, 1, ll, 1e9).time_s >
		       price(&m, COLL_ALL_REDUCE, 32, 1, FORCED(HIERARCHICAL), 1e9).time_s);
	CU_ASSERT_EQUAL(price(&m, COLL_ALL_REDUCE, 8, 1, ll, 1e9).time_s,
		price(&m, COLL_ALL_REDUCE, 8, 1, any_ll, 1e9).time_s);
	machine_free(&m);
}

/* Curves of the parts are measured: their sum is. Two hosts of two ranks. */
static void test_measured(void)
{
	const double bytes[] = {1e3, 1e6}, scatter_s[] = {1e-4, 1e-3}, gather_s[] = {2e-4, 2e-3},
		     reduce_s[] = {3e-4, 5e-3};
	struct profile *profile = profile_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(profile);
	profile->key.ranks_per_host = 2;
	profile->key.ranks = 4;
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "reduce_scatter.2", bytes, scatter_s, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_gather.2", bytes, gather_s, 2, NULL), ST_OK);
	CU_ASSERT_EQUAL_FATAL(profile_set_curve(profile, "all_reduce.2.stride2", bytes, reduce_s, 2, NULL), ST_OK);
	const struct machine m = {.parameters = read_constants(),
		.name = "cores",
		.nodes = 2,
		.devices_per_node = 2,
		.device = {.name = "1 core", .is_host = true},
		.profile = profile};
	struct collective_price p = price(&m, COLL_ALL_REDUCE, 4, 1, FORCED(HIERARCHICAL), 1e6);
	const double across_s = price(&m, COLL_ALL_REDUCE, 2, 2, FORCED(RING), 5e5).time_s;
	NEAR(p.time_s, 1e-3 + across_s + 2e-3);
	CU_ASSERT_TRUE(across_s > 3e-4 && across_s < 5e-3);
	CU_ASSERT_TRUE(p.measured);
	profile_destroy(profile);
}

/* The same machine, all-to-all of 64 MB at each of 32 ranks, of which 8 MB leave for each host once:
 *   inside, 8 ranks     7 x 3 us + 7/8 x 64 MB / 100 GB/s = 581 us
 *   across, 4 hosts     3 x 10 us + 3/4 x 40 MB / 25 GB/s = 1.230 ms    the longer one
 * and with 8 MB across 270 us: the inside one. A group of one host has no two levels. */
static void test_once_a_host(void)
{
	const struct machine m = {.parameters = read_constants(),
		.name = "round",
		.nodes = 4,
		.devices_per_node = 8,
		.intra = {3e-6, 100e9},
		.inter = {10e-6, 25e9}};
	NEAR(price_once_a_host(RATES(&m), 32, 1, COLLECTIVE_ANY, 64e6, 40e6, NULL).time_s, 1.23e-3);
	NEAR(price_once_a_host(RATES(&m), 32, 1, COLLECTIVE_ANY, 64e6, 8e6, NULL).time_s, 581e-6);
	CU_ASSERT_STRING_EQUAL(price_once_a_host(RATES(&m), 32, 1, COLLECTIVE_ANY, 64e6, 8e6, NULL).algorithm,
		"once a host");
	NEAR(price_once_a_host(RATES(&m), 8, 1, COLLECTIVE_ANY, 64e6, 8e6, NULL).time_s, 581e-6);
	struct op op = {.coll = COLL_ALLTOALL, .dtype = DT_FP8};
	op.collective.crossing = 40000000;
	NEAR(collective_price_of(RATES(&m), &op, 32, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, 1.23e-3);
	op.collective.crossing = 0;
	NEAR(collective_price_of(RATES(&m), &op, 32, 1, COLLECTIVE_ANY, 64e6, NULL).time_s,
		price(&m, COLL_ALLTOALL, 32, 1, COLLECTIVE_ANY, 64e6).time_s);
	op.collective.once = 32000000; /* of the 64 MB: rows that go to each rank once */
	NEAR(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s,
		price(&m, COLL_ALLTOALL, 8, 1, COLLECTIVE_ANY, 32e6).time_s);
}

/* The same inside a host: 4,096 rows of 7,168 numbers, 8 of 256 experts on 8 ranks, DeepEP's kernels on H800
 * (docs/legacy.md: to the experts in fp8 153 GB/s, back 158) and on H100 (NVIDIA-NeMo/Automodel@18007663a86f
 * docs/deepep_vs_hybridep_benchmark.md, 24 SMs: bf16 335 and 326 GB/s). Rates count a row once for each of its ranks,
 * its own too: 8 (1 - 224/256 ... 217/249) = 5.3 of them. Within 20 %, and no constant was fitted to them. */
static void test_deepep_inside(void)
{
	static const struct {
		const char *line;
		double element_B, GBps;
	} rows[] = {{"gpu:8 h800-sxm", 1 + 4.0 / 128, 153}, {"gpu:8 h800-sxm", 2, 158}, {"gpu:8 h100-sxm", 2, 335},
		{"gpu:8 h100-sxm", 2, 326}};
	double none = 1;
	for (int i = 0; i < 8; i++)
		none *= (224.0 - i) / (256.0 - i);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m = load(rows[i].line, 1);
		struct op op = {.coll = COLL_ALLTOALL, .dtype = DT_BF16};
		op.collective.once = llround(4096 * 8 * (1 - none) * 7168 * rows[i].element_B / 2);
		const double s =
			collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 4096 * 8 * 7168 * 2.0, NULL).time_s;
		CU_ASSERT_DOUBLE_EQUAL(s / (2 * (double)op.collective.once / (rows[i].GBps * 1e9)), 1, 0.2);
		machine_free(&m);
	}
}

/* DeepEP's 20 SMs take 48 ns and 47 ps a byte for a row: 16,384 rows of 4,096 B in (48 + 192.3) x 16,384 / 20 = 196.9
 * us, and of 14,336 B in 590.7. Links of 900 GB/s carry seven eighths of these bytes in 65 and 228 us, links of 100 in
 * 587 us and 2.06 ms, the longer ones. Other kernels, other vendors and a rank alone know no such limit. */
static void test_deepep_sms(void)
{
	struct machine m = {.parameters = read_constants(),
		.name = "round",
		.nodes = 1,
		.devices_per_node = 8,
		.intra = {0, 900e9},
		.device = {.compute_capability = 100}};
	struct op op = {.coll = COLL_ALLTOALL, .dtype = DT_BF16, .collective = {.once = 16384 * 2048, .rows = 16384}};
	CU_ASSERT_DOUBLE_EQUAL(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, 196.9e-6,
		1e-7);
	CU_ASSERT_EQUAL(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).channels, 20);
	op.collective.once = 16384 * 7168;
	CU_ASSERT_DOUBLE_EQUAL(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, 590.7e-6,
		1e-7);
	m.intra.Bps = 100e9;
	const double link_s = 7.0 / 8 * 16384 * 14336 / 100e9;
	NEAR(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, link_s);
	m.intra.Bps = 900e9;
	m.device.compute_capability = 0;
	NEAR(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, link_s / 9);
	m.device.compute_capability = 100;
	CU_ASSERT_TRUE(collective_price_of(RATES(&m), &op, 1, 1, COLLECTIVE_ANY, 64e6, NULL).time_s < 1e-6);
	op.collective.rows = 0;
	NEAR(collective_price_of(RATES(&m), &op, 8, 1, COLLECTIVE_ANY, 64e6, NULL).time_s, link_s / 9);
}

/* Rates of rows of 14,336 B that DeepEP's repository prints for 16 and for 24 SMs (docs/README_Hybrid-EP.md), to the
 * experts and back: 348/302 and 494/420 GB/s on B200, 362/310 and 513/426 on GB200. Their mean is met within 8 %. */
static void test_deepep_blackwell(void)
{
	static const struct {
		double sms, GBps[4];
	} rows[] = {{16, {348, 302, 362, 310}}, {24, {494, 420, 513, 426}}};
	struct machine m = load("gpu:8 b200", 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		double mean = 0;
		for (size_t k = 0; k < 4; k++)
			mean += rows[i].GBps[k] / 4;
		const double row_s = (m.parameters->deepep.row_s + 14336 / m.parameters->deepep.Bps) / rows[i].sms;
		CU_ASSERT_DOUBLE_EQUAL(14336 / row_s / 1e9 / mean, 1, 0.08);
	}
	machine_free(&m);
}

/* DeepEP's published rates of its kernels (docs/legacy.md): 4,096 rows of 7,168 numbers on H800 with a NIC of 400 Gb/s
 * each, 8 of 256 experts in at most 4 hosts, there and back as fp8 with scales and as bf16. The rate counts each row
 * once for each of its hosts, its own too. Within 5 %, and no constant was fitted to them. */
static void test_deepep(void)
{
	static const struct {
		int64_t hosts;
		double rows_hosts, to_GBps, from_GBps; /* hosts of a row, on average: worked out as in test_dispatch of
		                                          tests/unit/test_program_experts.c */
	} rows[] = {{2, 1.9935, 43, 43}, {4, 3.6145, 58, 57}, {8, 3.6287, 51, 50}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m = load("gpu:8 h800-sxm nic:8x400Gb/s", rows[i].hosts);
		const double slots = 4096 * 8 * 7168.0, crossing = 4096 * rows[i].rows_hosts * 7168,
			     fp8 = 1 + 4.0 / 128;
		const double to_s = price_once_a_host(RATES(&m), 8 * rows[i].hosts, 1, COLLECTIVE_ANY, fp8 * slots,
				     fp8 * crossing, NULL)
		                            .time_s,
			     from_s = price_once_a_host(RATES(&m), 8 * rows[i].hosts, 1, COLLECTIVE_ANY, 2 * slots,
				     2 * crossing, NULL)
		                              .time_s;
		CU_ASSERT_DOUBLE_EQUAL(to_s / (fp8 * crossing / (rows[i].to_GBps * 1e9)), 1, 0.05);
		CU_ASSERT_DOUBLE_EQUAL(from_s / (2 * crossing / (rows[i].from_GBps * 1e9)), 1, 0.05);
		machine_free(&m);
	}
}

UNIT_MAIN("hierarchical", {"rows once a host", test_once_a_host}, {"DeepEP", test_deepep},
	{"DeepEP inside a host", test_deepep_inside}, {"DeepEP's SMs", test_deepep_sms},
	{"DeepEP on Blackwell", test_deepep_blackwell}, {"worked by hand", test_worked},
	{"against its parts and a ring", test_against_parts_and_ring}, {"falls back", test_falls_back},
	{"of measured parts", test_measured})
