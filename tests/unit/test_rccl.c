/* RCCL's collectives beside sums worked by hand. */
#include <math.h>
#include <string.h>

#include "sim/price/collective.h"
#include "sim/price/rccl.h"
#include "topology/machine.h"

#include "harness.h"
#include "rates.h"

#define GIB 1073741824.0

static struct rccl_result timed(const char *line, int64_t hosts, enum collective c, int64_t ranks, double bytes)
{
	struct machine m;
	struct rccl_result r = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load(line, hosts, 0, &m, &e), ST_OK);
	CU_ASSERT_TRUE(rccl_runs_on(RATES(&m)));
	CU_ASSERT_EQUAL(rccl_time(RATES(&m), c, ranks, 1, false, bytes, &r, &e), ST_OK);
	CU_ASSERT_EQUAL(collective_time_s(RATES(&m), c, ranks, 1, bytes, &e), r.time_s);
	machine_free(&m);
	return r;
}

static void near_us(struct rccl_result r, double us, const char *algorithm)
{
	CU_ASSERT_DOUBLE_EQUAL(1e6 * r.time_s, us, 1e-3 * us);
	CU_ASSERT_STRING_EQUAL(r.algorithm, algorithm);
}

static const char *const mi300x = "gpu:8 mi300x", *const mi355x = "gpu:8 mi355x nic:8x400Gb/s fabric:roce";

static void test_one_host(void)
{
	/* 12 + 2 x 0.8 */
	near_us(timed(mi300x, 1, COLL_ALL_REDUCE, 8, 8), 13.6, "all pairs");
	/* 2 x 7/8 x 1 MiB over half of 0.98 x 7 x 48 GB/s: 11.15 */
	near_us(timed(mi300x, 1, COLL_ALL_REDUCE, 8, 1 << 20), 24.75, "all pairs");
	/* 17 + 14 x 2.1 + 14/8 x 1 GiB / (0.98 x 336 GB/s) + 5e-9 x 32768 s */
	near_us(timed(mi300x, 1, COLL_ALL_REDUCE, 8, GIB), 17 + 29.4 + 5706.5 + 163.84, "ring");
	/* one hop: 12 + 0.8 */
	near_us(timed(mi300x, 1, COLL_ALL_GATHER, 8, 8), 12.8, "all pairs");
	/* no algorithm of pairs: 12 + 7 x 0.8 */
	near_us(timed(mi300x, 1, COLL_REDUCE_SCATTER, 8, 8), 17.6, "ring");
	/* four GPUs of eight have no links to spare: 12 + 6 x 0.8 */
	near_us(timed(mi300x, 1, COLL_ALL_REDUCE, 4, 8), 16.8, "ring");
	/* over PCIe: 12 + 2 x 2.2 */
	near_us(timed("gpu:2 mi210 pcie4 pcie", 1, COLL_ALL_REDUCE, 2, 8), 16.4, "ring");
}

static void test_hosts(void)
{
	/* 12 + 2 x 7 x 0.9 + 2 x 10.5 */
	near_us(timed(mi355x, 2, COLL_ALL_REDUCE, 16, 16), 45.6, "tree");
	/* four hosts: two levels */
	near_us(timed(mi355x, 4, COLL_ALL_REDUCE, 32, 16), 66.6, "tree");
	/* 17 + 25; half of it leaves: 0.5 GiB x 8 / (0.9 x 400 GB/s) */
	near_us(timed(mi355x, 2, COLL_ALLTOALL, 16, GIB), 42 + 11930.5, "pairs");
	/* NICs, not a ring's 329 GB/s inside: chains reach 8/7 of it. 15/8 x 16 GiB / 360 GB/s = 89478 us */
	const struct rccl_result r = timed("gpu:8 mi300x nic:8x400Gb/s fabric:roce", 2, COLL_ALL_REDUCE, 16, 16 * GIB);
	CU_ASSERT_TRUE(1e6 * r.time_s > 89478 && 1e6 * r.time_s < 1.02 * 89478);
	CU_ASSERT_STRING_EQUAL(r.algorithm, "ring");
}

/* No time falls when bytes or hosts are added. */
static void test_grows(void)
{
	for (int c = COLL_ALL_REDUCE; c < COLL_OF_GROUPS; c++) {
		double before = 0;
		for (double bytes = 8; bytes < 16 * GIB; bytes *= 2) {
			const double two = timed(mi355x, 2, (enum collective)c, 16, bytes).time_s;
			CU_ASSERT_TRUE(two >= before && isfinite(two));
			before = two;
			if (c <= COLL_ALLTOALL)
				CU_ASSERT_TRUE(timed(mi355x, 4, (enum collective)c, 32, bytes).time_s >= two);
		}
	}
}

/* A ring that a config forces: 12 + 14 x 0.8 in place of all pairs; 17 + 28 x max(2.1, 3 x 1) + 2 x 25 with Simple, 12
 * + 28 x max(0.8, 1) + 2 x 9.5 with LL in place of a tree. */
static void test_forced(void)
{
	struct machine m;
	struct rccl_result r;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load(mi355x, 2, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL(rccl_time(RATES(&m), COLL_ALL_REDUCE, 8, 1, true, 8, &r, &e), ST_OK);
	near_us(r, 23.2, "ring");
	CU_ASSERT_EQUAL(rccl_time(RATES(&m), COLL_ALL_REDUCE, 16, 1, true, 8, &r, &e), ST_OK);
	near_us(r, 12 + 28 + 19, "ring");
	machine_free(&m);
}

/* The interval is narrower where nothing is between the GPUs but links of their own, and where bytes decide. */
static void test_interval(void)
{
	const double small = timed(mi300x, 1, COLL_ALL_REDUCE, 8, 8).rel_sigma,
		     large = timed(mi300x, 1, COLL_ALL_REDUCE, 8, GIB).rel_sigma;
	CU_ASSERT_TRUE(large > 0 && large < small);
	CU_ASSERT_TRUE(timed(mi355x, 2, COLL_ALL_REDUCE, 16, 8).rel_sigma > small);
	CU_ASSERT_TRUE(timed(mi355x, 2, COLL_ALL_REDUCE, 16, GIB).rel_sigma > large);
}

static void test_not_theirs(void)
{
	struct machine m;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_FALSE(rccl_runs_on(RATES(&m)));
	machine_free(&m);
}

UNIT_MAIN("rccl", {"one host", test_one_host}, {"hosts", test_hosts}, {"time grows", test_grows},
	{"forced", test_forced}, {"interval", test_interval}, {"other makers", test_not_theirs})
