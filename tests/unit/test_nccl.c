#include "base/array.h"
#include "tests/unit/harness.h"
#include "tests/unit/constants.h"
#include "tests/unit/rates.h"

#include <math.h>
#include <string.h>

#include "sim/price/cost.h"
#include "sim/price/nccl.h"

/* ---- NCCL's own composition ---- */

/* Eight H100 on an NVSwitch as NCCL's search finds them: 12 channels of 30 GB/s, 8 of 40 for NVLS. */
static struct nccl_group h100 = {.ranks = 8,
	.hosts = 1,
	.arch = NCCL_HOPPER,
	.nvlink = true,
	.channels = 12,
	.channel_GBps = 30,
	.nvls_channels = 8,
	.nvls_channel_GBps = 40};

static void test_constants(void) { h100.parameters = read_constants(); }

static double us(const struct nccl_group *c, enum nccl_algo a, enum nccl_proto p, double bytes)
{
	double latency_us, GBps;
	CU_ASSERT_TRUE_FATAL(nccl_tuner(c, COLL_ALL_REDUCE, a, p, &latency_us, &GBps));
	return latency_us + bytes / (1e3 * GBps);
}

/* Worked by hand from NVIDIA/nccl 2.30.7 src/graph/tuning.cc, all-reduce, trees without their factor. */
static void test_worked_table(void)
{
	static const struct {
		double bytes, ring_ll, ring_ll128, ring_simple, nvls, tree_simple;
	} rows[] = {
		{8, 15.0, 40.6, 56.0, 25.0, 64.4},
		{65536, 15.8, 40.9, 56.3, 25.2, 64.8},
		{1048576, 28.0, 46.1, 61.1, 28.9, 70.7},
		{26214400, 340.4, 179.1, 183.4, 121.4, 222.7},
		{104857600, 1316.4, 594.6, 565.7, 410.5, 697.6},
		{1073741824, 13341.6, 5714.1, 5275.6, 3972.6, 6548.3},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		CU_ASSERT_DOUBLE_EQUAL(us(&h100, NCCL_RING, NCCL_LL, rows[i].bytes), rows[i].ring_ll, 0.06);
		CU_ASSERT_DOUBLE_EQUAL(us(&h100, NCCL_RING, NCCL_LL128, rows[i].bytes), rows[i].ring_ll128, 0.06);
		CU_ASSERT_DOUBLE_EQUAL(us(&h100, NCCL_RING, NCCL_SIMPLE, rows[i].bytes), rows[i].ring_simple, 0.06);
		CU_ASSERT_DOUBLE_EQUAL(us(&h100, NCCL_NVLS, NCCL_SIMPLE, rows[i].bytes), rows[i].nvls, 0.06);
		CU_ASSERT_DOUBLE_EQUAL(us(&h100, NCCL_TREE, NCCL_SIMPLE, rows[i].bytes), rows[i].tree_simple, 0.06);
	}
}

static void test_versions_differ(void)
{
	struct nccl_group old = h100;
	double lat, bw;
	old.version = 21800;
	CU_ASSERT_DOUBLE_EQUAL(us(&old, NCCL_TREE, NCCL_SIMPLE, 0), 2 * 7 * 28,
		1e-9); /* 2.18 kept trees with Simple from short messages */
	CU_ASSERT_DOUBLE_EQUAL(us(&old, NCCL_NVLS, NCCL_SIMPLE, 0), 23, 1e-9);
	old.version = 22300;
	CU_ASSERT_DOUBLE_EQUAL(us(&old, NCCL_NVLS, NCCL_SIMPLE, 0), 23, 1e-9); /* the last one that is not newer */
	old.version = 99999;
	CU_ASSERT_DOUBLE_EQUAL(us(&old, NCCL_NVLS, NCCL_SIMPLE, 0), 25, 1e-9);
	struct nccl_group pat = h100;
	pat.ranks = pat.hosts = 8;
	CU_ASSERT_TRUE(nccl_tuner(&pat, COLL_ALL_GATHER, NCCL_PAT, NCCL_SIMPLE, &lat, &bw));
	pat.version = 21800;
	CU_ASSERT_FALSE(nccl_tuner(&pat, COLL_ALL_GATHER, NCCL_PAT, NCCL_SIMPLE, &lat, &bw));
	CU_ASSERT_FALSE(nccl_tuner(&h100, COLL_ALL_GATHER, NCCL_TREE, NCCL_SIMPLE, &lat, &bw));
}

/* Closed forms: a ring moves 2 (n - 1) / n of the bytes and waits 2 (n - 1) times, half of each for all-gather; a tree
 * moves them twice. */
static void test_closed_forms(void)
{
	for (int64_t n = 2; n <= 16; n++) {
		struct nccl_group c = h100;
		double lat, bw;
		c.ranks = n;
		double share = (double)(n - 1) / (double)n, bus = 360;
		CU_ASSERT_TRUE(nccl_tuner(&c, COLL_ALL_REDUCE, NCCL_RING, NCCL_SIMPLE, &lat, &bw));
		CU_ASSERT_DOUBLE_EQUAL(bw, bus / (2 * share), 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(lat, 8.4 + 2 * (double)(n - 1) * 3.4, 1e-9);
		CU_ASSERT_TRUE(nccl_tuner(&c, COLL_REDUCE_SCATTER, NCCL_RING, NCCL_SIMPLE, &lat, &bw));
		CU_ASSERT_DOUBLE_EQUAL(bw, bus / share, 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(lat, 8.4 + (double)(n - 1) * 3.4, 1e-9);
		CU_ASSERT_TRUE(nccl_tuner(&c, COLL_ALL_REDUCE, NCCL_TREE, NCCL_SIMPLE, &lat, &bw));
		CU_ASSERT_DOUBLE_EQUAL(bw, 0.92 * bus / 2, 1e-9);
	}
	CU_ASSERT_EQUAL(nccl_steps(COLL_ALL_REDUCE, 64), 126);
	CU_ASSERT_EQUAL(nccl_steps(COLL_ALL_GATHER, 64), 63);
	CU_ASSERT_EQUAL(nccl_steps(COLL_BROADCAST, 64), 64);
}

static void test_tree_factor(void)
{
	CU_ASSERT_EQUAL(nccl_tree_factor(h100.parameters, NCCL_SIMPLE, 1), 0.9);
	CU_ASSERT_EQUAL(nccl_tree_factor(h100.parameters, NCCL_LL, 64.0 * 4096), 0.4);
	CU_ASSERT_EQUAL(nccl_tree_factor(h100.parameters, NCCL_LL128, 1e12), 1);
	for (int p = 0; p < NCCL_PROTOS; p++)
		for (double b = 1, before = 0; b < 1e10; b *= 1.01) {
			double now = b / nccl_tree_factor(h100.parameters, (enum nccl_proto)p, b);
			CU_ASSERT_TRUE(now >= before * (1 - 1e-12));
			before = now;
		}
}

/* ---- the corrected model ---- */

static struct nccl_group group_on(const char *line, int64_t hosts, int64_t per_host, struct machine *m)
{
	struct nccl_group g = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load(line, hosts, per_host, m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(nccl_group_of(RATES(m), hosts * (per_host ? per_host : m->devices_per_node), 1, &g, &e),
		ST_OK);
	return g;
}

static struct nccl_group group(const char *line, int64_t hosts, int64_t per_host)
{
	struct machine m;
	struct nccl_group g = group_on(line, hosts, per_host, &m);
	machine_free(&m);
	return g;
}

static double busbw(const struct nccl_group *g, enum collective c, double bytes)
{
	double n = (double)g->ranks;
	return 1e-9 * bytes / nccl_time(g, c, NCCL_ANY, bytes).time_s * (c == COLL_ALL_REDUCE ? 2 : 1) * (n - 1) / n;
}

/* Checks the facts of the links that groups get. */
static void test_groups(void)
{
	struct nccl_group g = group("dgx-h100", 4, 0);
	CU_ASSERT_TRUE(g.nvlink && g.peer && g.whole_box && !g.amd);
	CU_ASSERT_EQUAL(g.hosts, 4);
	CU_ASSERT_EQUAL(g.per_host, 8);
	CU_ASSERT_DOUBLE_EQUAL(g.inside_Bps, 370.8e9, 1e6);
	CU_ASSERT_DOUBLE_EQUAL(g.nics_Bps, 400e9, 1e6);
	CU_ASSERT_STRING_EQUAL(g.network.id, "infiniband");
	g = group("dgx-h100", 4, 2); /* rails: each GPU has a NIC */
	CU_ASSERT_FALSE(g.whole_box);
	CU_ASSERT_DOUBLE_EQUAL(g.nics_Bps, 100e9, 1e6);
	CU_ASSERT_TRUE(group("dgx-a100", 2, 0).amd);
	g = group("gpu:8 rtx4090 nic:1x100Gb/s", 2, 0);
	CU_ASSERT_FALSE(g.nvlink || g.peer || g.whole_box);
	CU_ASSERT_STRING_EQUAL(g.network.id, "ethernet-unknown");
	CU_ASSERT_STRING_EQUAL(group("aws-p5", 2, 0).network.id, "efa");
	CU_ASSERT_STRING_EQUAL(group("gpu:8 h100-sxm nic:8x400Gb/s fabric:slingshot", 2, 0).network.id, "slingshot");
}

/* Published asymptotes of busbw: 8 H100 482 (NVLS) and 365 (rings), 4 of 8 367, 8 A100 232, two hosts of 8 H200 478. */
static void test_asymptotes(void)
{
	struct nccl_group h8 = group("dgx-h100", 1, 0), h4 = group("dgx-h100", 1, 4), a8 = group("dgx-a100", 1, 0),
			  h16 = group("dgx-h200", 2, 0), pcie = group("gpu:8 rtx4090", 1, 0);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&h8, COLL_ALL_REDUCE, 16e9), 482, 10);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&h8, COLL_ALL_GATHER, 16e9), 363, 7);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&h4, COLL_ALL_REDUCE, 16e9), 367, 10);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&a8, COLL_ALL_REDUCE, 4e9), 232, 5);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&h16, COLL_ALL_REDUCE, 16e9), 478, 10);
	CU_ASSERT_DOUBLE_EQUAL(busbw(&pcie, COLL_ALL_REDUCE, 4e9), 14.9, 1); /* through host memory */
	CU_ASSERT_EQUAL(nccl_time(&h8, COLL_ALL_REDUCE, NCCL_ANY, 16e9).algo, NCCL_NVLS);
	CU_ASSERT_EQUAL(nccl_time(&h4, COLL_ALL_REDUCE, NCCL_ANY, 16e9).algo, NCCL_RING);
	CU_ASSERT_EQUAL(nccl_time(&h16, COLL_ALL_REDUCE, NCCL_ANY, 16e9).algo, NCCL_NVLS_TREE);
}

/* NVLS moves each GPU's bytes once, whatever their number; an NVLS tree fills its crossings first. */
static void test_nvls(void)
{
	struct nccl_group of8 = group("gb300-nvl72", 1, 8), of72 = group("gb300-nvl72", 1, 72),
			  two = group("dgx-h100", 2, 0), four = group("dgx-h100", 4, 0);
	const struct nccl_choice nvls = {NCCL_NVLS, -1};
	const double eight_s = nccl_time(&of8, COLL_ALL_REDUCE, nvls, 16e9).time_s;
	CU_ASSERT_DOUBLE_EQUAL(nccl_time(&of72, COLL_ALL_REDUCE, nvls, 16e9).time_s / eight_s, 1, 0.01);
	/* 16 channels x 8 GPUs x 128 KiB up and down, over 380 GB/s; four hosts have two levels and chunks of 64 KiB */
	const double fill_s = 2 * 16 * 8 * 131072.0 / 380e9;
	struct nccl_group endless = two;
	endless.nics_Bps = 1e18;
	const double with_s = nccl_time(&two, COLL_ALL_REDUCE, nvls, 256e6).time_s,
		     without_s = nccl_time(&endless, COLL_ALL_REDUCE, nvls, 256e6).time_s;
	CU_ASSERT_DOUBLE_EQUAL(with_s - without_s, fill_s, 1e-7);
	/* from there on two hosts reach 255 GB/s (H200: 251 to 255), four the half of their NICs */
	const double at_1_s = nccl_time(&two, COLL_ALL_REDUCE, nvls, 8e9).time_s,
		     at_2_s = nccl_time(&two, COLL_ALL_REDUCE, nvls, 16e9).time_s;
	CU_ASSERT_DOUBLE_EQUAL(8e9 / (at_2_s - at_1_s), 255e9, 3e9);
	CU_ASSERT_DOUBLE_EQUAL(16e9 / nccl_time(&four, COLL_ALL_REDUCE, nvls, 16e9).time_s, 190e9, 3e9);
}

/* Of two hosts each byte leaves once: 90.6 GB/s over four NICs of 25 (hpe-gh200 rows). More hosts reach half of it. */
static void test_tree_of_two(void)
{
	const char *line = "gpu:4 gh200 mesh nic:4x200Gb/s fabric:slingshot";
	struct nccl_group two = group(line, 2, 0), four = group(line, 4, 0);
	const struct nccl_choice tree = {NCCL_TREE, NCCL_SIMPLE};
	CU_ASSERT_DOUBLE_EQUAL(8e9 / nccl_time(&two, COLL_ALL_REDUCE, tree, 8e9).time_s, 90.6e9, 3e9);
	CU_ASSERT_TRUE(8e9 / nccl_time(&four, COLL_ALL_REDUCE, tree, 8e9).time_s < 50e9);
}

static void test_forced(void)
{
	struct nccl_group g = group("dgx-h100", 4, 0);
	struct nccl_result r = nccl_time(&g, COLL_ALL_REDUCE, (struct nccl_choice){NCCL_TREE, NCCL_LL}, 1e9),
			   any = nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1e9);
	CU_ASSERT_EQUAL(r.algo, NCCL_TREE);
	CU_ASSERT_EQUAL(r.proto, NCCL_LL);
	CU_ASSERT_TRUE(r.time_s > any.time_s);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_GATHER, (struct nccl_choice){NCCL_TREE, -1}, 1e9).algo,
		NCCL_RING); /* there is no tree of it: NCCL runs what there is */
	r = nccl_time(&g, COLL_ALL_REDUCE, (struct nccl_choice){NCCL_COLLNET_DIRECT, -1}, 1e9);
	CU_ASSERT_TRUE(r.algo == NCCL_COLLNET_DIRECT || r.algo == NCCL_COLLNET_CHAIN);
	CU_ASSERT_TRUE(any.channels >= 16 && any.channels <= 64);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 8).channels, 1);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 8).bound, NCCL_BY_LATENCY);
	CU_ASSERT_EQUAL(any.bound, NCCL_BY_LINK);
	g = group("gpu:8 h100-sxm nic:4x400Gb/s", 4, 0);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1e9).bound, NCCL_BY_NETWORK);
}

static const char *const lines[] = {
	"dgx-h100",
	"dgx-a100",
	"dgx-b200",
	"aws-p5",
	"dgx-1-v100",
	"gpu:4 a100-sxm-40 mesh nic:2x200Gb/s fabric:slingshot",
	"gpu:8 h100-sxm nic:8x400Gb/s fabric:tcp",
	"gpu:8 h100-sxm nic:8x400Gb/s fabric:efa-shared",
	"gpu:8 rtx4090 nic:1x100Gb/s",
	"gpu:8 rtx-pro-6000 nic:1x400Gb/s fabric:roce",
	"gpu:4 rtx-a6000 bridge nic:1x100Gb/s",
};
#define LINES COUNT(lines)

/* No time falls when bytes grow, whatever the machine, the collective and the forced choice. */
/* What a network's software keeps NCCL from, for a small and a large all-reduce on two hosts. */
static void test_kept_from(void)
{
	struct nccl_group g = group("aws-p4d", 2, 0);
	CU_ASSERT_STRING_EQUAL(g.network.id, "efa-p4d");
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1024).proto, NCCL_SIMPLE);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, (struct nccl_choice){-1, NCCL_LL}, 1024).proto, NCCL_SIMPLE);
	g.network.simple_only = false;
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1024).proto, NCCL_LL);
	g = group("dgx-h100", 2, 0);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1e9).algo, NCCL_NVLS_TREE);
	g.network.no_nvls = true;
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1e9).algo, NCCL_RING);
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1024).algo, NCCL_TREE);
	g.network.no_tree = true;
	CU_ASSERT_EQUAL(nccl_time(&g, COLL_ALL_REDUCE, NCCL_ANY, 1024).algo, NCCL_RING);
}

static void test_monotone_in_bytes(void)
{
	static const struct nccl_choice choices[] = {{-1, -1}, {NCCL_RING, -1}, {NCCL_TREE, NCCL_LL128},
		{NCCL_NVLS, -1}, {NCCL_COLLNET_DIRECT, -1}, {-1, NCCL_SIMPLE}};
	static const int64_t hosts[] = {1, 2, 9, 64};
	for (size_t i = 0; i < LINES; i++)
		for (size_t h = 0; h < COUNT(hosts); h++) {
			struct nccl_group g = group(lines[i], hosts[h], 0);
			for (int c = 0; c <= COLL_SENDRECV; c++)
				for (size_t k = 0; k < COUNT(choices); k++)
					for (double b = 1, before = 0; b < 1e11; b *= 1.19) {
						double now = nccl_time(&g, (enum collective)c, choices[k], b).time_s;
						if (!(isfinite(now) && now > 0 && now >= before * (1 - 1e-12))) {
							printf("    %s x %d, %s, choice %zu: %g B %g s, before %g s\n",
								lines[i], (int)hosts[h],
								collective_name((enum collective)c), k, b, now, before);
							CU_FAIL_FATAL("time falls with bytes");
						}
						before = now;
					}
		}
}

/* ... nor when hosts are added. */
static void test_monotone_in_hosts(void)
{
	static const int64_t hosts[] = {2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 32, 64, 128, 512};
	enum { SIZES = COUNT(hosts) };
	for (size_t i = 0; i < LINES; i++) {
		struct nccl_group g[SIZES];
		for (size_t h = 0; h < SIZES; h++)
			g[h] = group(lines[i], hosts[h], 0);
		for (int c = 0; c <= COLL_SENDRECV; c++)
			for (double b = 8; b < 1e11; b *= 4.7)
				for (size_t h = 1; h < SIZES; h++) {
					double before = nccl_time(&g[h - 1], (enum collective)c, NCCL_ANY, b).time_s,
					       now = nccl_time(&g[h], (enum collective)c, NCCL_ANY, b).time_s;
					if (now >= before * (1 - 1e-9))
						continue;
					printf("    %s x %d, %s, %g B: %g s, before %g s\n", lines[i], (int)hosts[h],
						collective_name((enum collective)c), b, now, before);
					CU_FAIL_FATAL("time falls with hosts");
				}
	}
}

/* ... nor when ranks are added on one host. */
static void test_monotone_in_ranks(void)
{
	for (int c = 0; c <= COLL_SENDRECV; c++)
		for (double b = 8; b < 1e11; b *= 2.9)
			for (int64_t n = 3; n <= 8; n++) {
				struct nccl_group fewer = group("dgx-a100", 1, n - 1), more = group("dgx-a100", 1, n);
				CU_ASSERT_TRUE(nccl_time(&more, (enum collective)c, NCCL_ANY, b).time_s >=
					       nccl_time(&fewer, (enum collective)c, NCCL_ANY, b).time_s * (1 - 1e-9));
			}
}

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(nccl_algo_name(NCCL_NVLS_TREE), "NVLS tree");
	CU_ASSERT_STRING_EQUAL(nccl_proto_name(NCCL_LL128), "LL128");
}

/* Not NVIDIA's GPUs: said, not guessed. */
static void test_refused(void)
{
	struct machine m;
	struct nccl_group g;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:8 mi300x nic:8x400Gb/s", 2, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL(nccl_group_of(RATES(&m), 16, 1, &g, &e), ST_INPUT);
	machine_free(&m);
}

/* A config's choice reaches the price; where no NCCL runs it is refused, not ignored. */
static void test_in_a_program(void)
{
	static struct program p;
	struct machine m;
	struct op op = {.kind = OP_COLLECTIVE,
		.coll = COLL_ALL_REDUCE,
		.dtype = DT_BF16,
		.group = DIM_DP,
		.collective = {1 << 28}};
	struct op_cost ring, any;
	struct error e = {0};
	for (int d = 0; d < DIM_COUNT; d++)
		p.mesh.size[d] = p.mesh.stride[d] = 1;
	p.mesh.size[DIM_DP] = 8;
	CU_ASSERT_EQUAL_FATAL(machine_load("dgx-h100", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL(collective_price(RATES(&m), COLL_ALL_REDUCE, 8, 1, COLLECTIVE_ANY, 1e9, NULL).algo, NCCL_NVLS);
	CU_ASSERT_EQUAL(collective_price(RATES(&m), COLL_ALL_REDUCE, 1, 1, COLLECTIVE_ANY, 1e9, NULL).time_s, 0);
	p.config.collectives.algorithm = ALGO_AUTO;
	CU_ASSERT_EQUAL(cost_op(&p, &op, RATES(&m), &any, &e), ST_OK);
	CU_ASSERT_EQUAL(any.alone_s, collective_time_s(RATES(&m), COLL_ALL_REDUCE, 8, 1, 2.0 * (1 << 28), NULL));
	p.config.collectives.algorithm = ALGO_RING;
	CU_ASSERT_EQUAL(cost_op(&p, &op, RATES(&m), &ring, &e), ST_OK);
	CU_ASSERT_TRUE(ring.alone_s > any.alone_s);
	machine_free(&m);
	CU_ASSERT_EQUAL_FATAL(machine_load("gpu:8 mi300x", 1, 0, &m, &e), ST_OK);
	CU_ASSERT_EQUAL(cost_op(&p, &op, RATES(&m), &ring, &e), ST_OK); /* its maker's library is a ring here too */
	p.config.collectives.algorithm = ALGO_TREE;
	CU_ASSERT_EQUAL(cost_op(&p, &op, RATES(&m), &ring, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "collectives.algorithm"));
	machine_free(&m);
}

UNIT_MAIN("nccl", {"constants", test_constants}, {"in a program", test_in_a_program},
	{"NCCL's own table, worked by hand", test_worked_table}, {"versions", test_versions_differ},
	{"closed forms", test_closed_forms}, {"trees' factor", test_tree_factor}, {"groups", test_groups},
	{"asymptotes", test_asymptotes}, {"NVLS", test_nvls}, {"a tree of two hosts", test_tree_of_two},
	{"forced algorithms", test_forced}, {"kept from", test_kept_from},
	{"time grows with bytes", test_monotone_in_bytes}, {"time grows with hosts", test_monotone_in_hosts},
	{"time grows with ranks", test_monotone_in_ranks}, {"names", test_names}, {"refused", test_refused})
