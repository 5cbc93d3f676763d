#include <math.h>

#include "tests/unit/graph_rig.h"
#include "tests/unit/group_case.h"
#include "topology/graph/group.h"

static struct cluster *two_nodes(int32_t nics, const char *cpu_model)
{
	struct graph *g = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 1,
		.pcie_gen = 5,
		.cpu_model = cpu_model,
		.nics = nics,
		.nic_bits_per_s = 400e9});
	rig_nvswitch(g, 18, 90);
	return hosts(g, 2);
}

static void test_two_nodes(void)
{
	struct cluster *c = two_nodes(1, "Intel Xeon 6767P");
	/* All 16 with a NIC of 50 a host, beside GPU0: the rings leave there. */
	struct group g = mesh(c, 16, 1);
	NEAR(g.ring_Bps, 50);
	NEAR(g.network_Bps, 50. / 8);
	CU_ASSERT_EQUAL(g.hosts, 2);
	CU_ASSERT_FALSE(g.in_node);
	CU_ASSERT_FALSE(g.nvlink_switch);
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "network between NIC0 and NET, 50.0 GB/s");
	CU_ASSERT_DOUBLE_EQUAL(g.ring_latency_s, (2 * 4e-6 + 14 * 1.9e-6) / 16,
		1e-15); /* two hops of sixteen between hosts */
	NEAR(first(c, 16, 1).ring_Bps, 50);
	/* Eight groups of one GPU of each node at once: an eighth each; one such group alone: all of it. */
	g = mesh(c, 2, 8);
	NEAR(g.ring_Bps, 6.25);
	NEAR(g.network_Bps, 6.25);
	CU_ASSERT_DOUBLE_EQUAL(g.ring_latency_s, 4e-6, 1e-15);
	NEAR(g.pair_Bps, 50); /* a lone transfer */
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "network between NIC0 and NET, 8 flows share 50.0 GB/s");
	NEAR(pair(c, 0, 8).ring_Bps, 50);
	cluster_destroy(c);
	/* Between two EPYCs (16) the four groups on the far socket have 4 each, before the NIC's 6.25. All 16 still
	 * leave by GPU0. */
	c = two_nodes(1, "AMD EPYC 9654");
	NEAR(mesh(c, 2, 8).ring_Bps, 4);
	CU_ASSERT_STRING_EQUAL(mesh(c, 2, 8).bottleneck_text, "socket between CPU0 and CPU1, 4 flows share 16.0 GB/s");
	NEAR(mesh(c, 16, 1).ring_Bps, 50);
	NEAR(pair(c, 7, 15).ring_Bps, 16);
	cluster_destroy(c);
	c = two_nodes(8, "");
	g = mesh(c, 16, 1); /* 8 x 50 would do, NVLink's 370.8 does not */
	NEAR(g.ring_Bps, 370.8);
	NEAR(g.network_Bps, 50);
	NEAR(g.ring_datasheet_Bps, 400); /* by datasheets NVLink (450) is not the limit */
	NEAR(mesh(c, 2, 8).ring_Bps, 50);
	NEAR(mesh(c, 4, 4).ring_Bps, 100); /* two of each node: two NICs */
	NEAR(mesh(c, 8, 1).ring_Bps, 370.8);
	CU_ASSERT_TRUE(mesh(c, 8, 1).in_node);
	CU_ASSERT_EQUAL(mesh(c, 8, 1).hosts, 1);
	CU_ASSERT_TRUE(isinf(mesh(c, 1, 1).ring_Bps));
	cluster_destroy(c);
}

/* Published: nccl-tests on 10 nodes of 8 H100 gave bus bandwidths of 49, 98, 196 and 345 GB/s for all-reduces over 1,
 * 2, 4 and 8 GPUs a node. */
static void test_published_bus_bandwidth(void)
{
	static const double busbw[] = {49e9, 98e9, 196e9, 345e9};
	struct graph *g = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 1,
		.pcie_gen = 5,
		.nics = 8,
		.nic_bits_per_s = 400e9});
	rig_nvswitch(g, 18, 90);
	struct cluster *c = hosts(g, 10);
	for (int64_t k = 0; k < 4; k++) {
		double rate = first(c, 10 << k, 8 >> k).ring_Bps;
		CU_ASSERT_TRUE(rate >= busbw[k]);
		CU_ASSERT_TRUE(rate <= 1.1 * busbw[k]);
	}
	cluster_destroy(c);
}

static void test_nics_shared(void)
{
	/* p4d: 8 A100, 4 NICs of 12.5, two GPUs beside each. One GPU of each node, all eight groups at once: half a
	 * NIC; alone: the NIC beside it, not all four. Half of each node: two NICs. */
	struct graph *p4d = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 2,
		.pcie_gen = 4,
		.nics = 4,
		.nic_bits_per_s = 100e9});
	rig_nvswitch(p4d, 12, 80);
	struct cluster *c = hosts(p4d, 4);
	NEAR(mesh(c, 4, 8).ring_Bps, 6.25);
	NEAR(first(c, 4, 8).ring_Bps, 12.5);
	NEAR(mesh(c, 32, 1).ring_Bps, 50);
	NEAR(of(c, (int64_t[]){0, 1, 2, 3, 8, 9, 10, 11}, 8).ring_Bps, 25);
	NEAR(of(c, (int64_t[]){0, 1, 2, 3, 8}, 5).ring_Bps, 12.5); /* the second host's one GPU has one NIC */
	cluster_destroy(c);
	/* p5: 32 NICs, four beside each GPU: all of them: 4 x 12.5. */
	struct graph *p5 = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 1,
		.pcie_gen = 5,
		.nics = 32,
		.nic_bits_per_s = 100e9});
	rig_nvswitch(p5, 18, 90);
	c = hosts(p5, 2);
	NEAR(mesh(c, 2, 8).ring_Bps, 50);
	CU_ASSERT_STRING_EQUAL(mesh(c, 2, 8).bottleneck_text, "network between NIC0 and NET, 12.5 GB/s");
	cluster_destroy(c);
	/* A NIC faster than its GPU's slot: nine tenths of what 16 lanes of gen 3 have by the datasheet, 15.75; 200
	 * Gb/s would be 25. */
	c = hosts(rig_host(&(struct rig){.gpus = 2, .cpus = 1, .pcie_gen = 3, .nics = 1, .nic_bits_per_s = 200e9}), 2);
	NEAR(pair(c, 0, 2).ring_Bps, 0.9 * 15.753846153846154);
	CU_ASSERT_EQUAL(pair(c, 0, 2).bottleneck, LINK_PCIE);
	cluster_destroy(c);
}

static void test_straddling(void)
{
	/* Groups of 3 on nodes of 4: nodes hold 3+1, 2+2, 1+3: the ones with a single member on a host have one NIC of
	 * 50; the whole ones 370.8. */
	struct graph *g = rig_host(&(struct rig){.gpus = 4,
		.cpus = 1,
		.gpus_per_switch = 1,
		.pcie_gen = 5,
		.nics = 4,
		.nic_bits_per_s = 400e9});
	rig_nvswitch(g, 18, 90);
	struct cluster *c = hosts(g, 3);
	struct group w = mesh(c, 3, 1);
	NEAR(w.ring_Bps, 50);
	CU_ASSERT_EQUAL(w.hosts, 2);
	CU_ASSERT_FALSE(w.in_node);
	w = mesh(c, 6, 1); /* 4+2, 2+4: two NICs at the narrower end */
	NEAR(w.ring_Bps, 100);
	w = mesh(c, 5, 1); /* 4+1 and 3+2; devices 10 and 11 are in no group */
	NEAR(w.ring_Bps, 50);
	struct error e = {0};
	CU_ASSERT_EQUAL(cluster_mesh_groups(c, 13, 1, &w, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "groups of 13 devices 1 apart on 12 devices");
	cluster_destroy(c);
}

static void test_meshes(void)
{
	/* MI300X: eight GPUs, a link of 48 (64 by the datasheet) between any two: 7 links a GPU, and the 56 directed
	 * ones part into 7 rings. */
	struct graph *mi300x = rig_host(&(struct rig){.gpus = 8, .cpus = 2, .gpus_per_switch = 1, .pcie_gen = 5});
	for (int32_t i = 0; i < 8; i++)
		for (int32_t j = i + 1; j < 8; j++)
			rig_join(mi300x, i, j, LINK_XGMI, 1, rate_xgmi(0x942));
	struct cluster *c = hosts(mi300x, 1);
	struct group g = first(c, 8, 1);
	CU_ASSERT_EQUAL(g.rings, 7);
	NEAR(g.ring_Bps, 336);
	NEAR(g.ring_datasheet_Bps, 448);
	CU_ASSERT_EQUAL(g.bottleneck, LINK_XGMI);
	/* Four of them: K4 has 12 directed links, but not three rings of four: two. Three: a ring each way. Two: the
	 * link. */
	NEAR(first(c, 4, 1).ring_Bps, 96);
	NEAR(first(c, 3, 1).ring_Bps, 96);
	NEAR(first(c, 2, 1).ring_Bps, 48);
	cluster_destroy(c);
	/* Four A100 with four links between any two: K4 has three undirected rings, each leaves out one pairing; each
	 * of them twice uses every link: 6 each way round: 12 x 20. */
	struct graph *a100 = rig_host(&(struct rig){.gpus = 4, .cpus = 1, .pcie_gen = 4});
	for (int32_t i = 0; i < 4; i++)
		for (int32_t j = i + 1; j < 4; j++)
			rig_join(a100, i, j, LINK_NVLINK, 4, rate_nvlink(80));
	c = hosts(a100, 1);
	g = first(c, 4, 1);
	CU_ASSERT_EQUAL(g.rings, 12);
	NEAR(g.ring_Bps, 240);
	NEAR(g.ring_datasheet_Bps, 300);
	NEAR(first(c, 3, 1).ring_Bps, 160); /* four rings each way */
	NEAR(first(c, 2, 1).ring_Bps, 80);
	cluster_destroy(c);
}

static void test_mixed_hosts(void)
{
	struct graph *fast = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 1,
		.pcie_gen = 5,
		.nics = 8,
		.nic_bits_per_s = 400e9});
	rig_nvswitch(fast, 18, 90);
	struct graph *slow = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 4,
		.pcie_gen = 4,
		.cpu_model = "EPYC",
		.nics = 1,
		.nic_bits_per_s = 100e9});
	struct cluster *c = hosts(fast, 1);
	struct error e = {0};
	CU_ASSERT_EQUAL(cluster_add(c, slow, 1, NULL, &e), ST_OK);
	NEAR(mesh(c, 8, 1).ring_Bps, 16);    /* the second host's socket link */
	NEAR(mesh(c, 16, 1).ring_Bps, 12.5); /* its NIC */
	NEAR(mesh(c, 2, 8).ring_Bps, 12.5 / 8);
	NEAR(first(c, 8, 1).ring_Bps, 370.8);
	cluster_destroy(c);
}

UNIT_MAIN("groups over hosts", {"two nodes", test_two_nodes}, {"published bus bandwidth", test_published_bus_bandwidth},
	{"NICs shared", test_nics_shared}, {"straddling", test_straddling}, {"meshes", test_meshes},
	{"mixed hosts", test_mixed_hosts})
