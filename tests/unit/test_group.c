/* Tests the rates of groups against computations by hand. Rates in GB/s: PCIe x16 gen 3, 4, 5: 12, 24, 48 usable; a
 * link of V100 or A100 20 usable and 25 by the datasheet, of H100 20.6 and 25; sockets: EPYC 16, Xeon E5 6. */
#include <math.h>

#include "tests/unit/graph_rig.h"
#include "tests/unit/group_case.h"
#include "topology/graph/group.h"
#include "topology/graph/group_parts.h"

static void test_cube_mesh(void)
{
	struct cluster *c = hosts(rig_dgx1(), 1);
	/* All 8: 6 links a GPU make three rings each way round: 6 x 20. */
	struct group g = first(c, 8, 1);
	CU_ASSERT_EQUAL(g.rings, 6);
	NEAR(g.ring_Bps, 120);
	NEAR(g.ring_datasheet_Bps, 150);
	CU_ASSERT_EQUAL(g.bottleneck, LINK_NVLINK);
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "NVLink among 8 GPUs, 6 rings of 20.0 GB/s");
	CU_ASSERT_TRUE(g.in_node);
	CU_ASSERT_FALSE(g.nvlink_switch);
	CU_ASSERT_DOUBLE_EQUAL(g.ring_latency_s, 1.9e-6, 1e-12);
	CU_ASSERT_EQUAL(g.n_order, 8);
	/* One socket: 01 02 13 single, 03 12 23 double. GPU0 has 4 links there, so no more than two rings each way;
	 * 0-1-2-3 and 0-2-1-3 are two. */
	g = first(c, 4, 1);
	CU_ASSERT_EQUAL(g.rings, 4);
	NEAR(g.ring_Bps, 80);
	NEAR(g.ring_datasheet_Bps, 100);
	g = mesh(c, 4, 1); /* both sockets at once: no link in common */
	NEAR(g.ring_Bps, 80);
	g = pair(c, 0, 3); /* NV2 */
	NEAR(g.ring_Bps, 40);
	NEAR(g.pair_Bps, 40);
	NEAR(g.ring_datasheet_Bps, 50);
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "NVLink between GPU0 and GPU3, 40.0 GB/s");
	g = pair(c, 0, 5); /* no link: PCIe gen 3 (12) and the socket link of a Xeon E5 (6) */
	NEAR(g.ring_Bps, 6);
	CU_ASSERT_EQUAL(g.ring_datasheet_Bps, 0); /* of a socket link no datasheet rate is known */
	CU_ASSERT_EQUAL(g.bottleneck, LINK_SOCKET);
	g = of(c, (int64_t[]){0, 1, 2}, 3); /* a triangle of single links (12 is double): one ring each way */
	CU_ASSERT_EQUAL(g.rings, 2);
	NEAR(g.ring_Bps, 40);
	/* 0, 1, 6: 0-1 and no way back but over PCIe and the sockets: GPU1 to GPU6 and GPU6 to GPU0 cross the socket
	 * link, one flow each way: 6. */
	g = of(c, (int64_t[]){0, 1, 6}, 3);
	NEAR(g.ring_Bps, 6);
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "socket between CPU0 and CPU1, 6.00 GB/s");
	/* Pairs (i, i + 5) cannot all be looked at by a stride; four pairs 0-7 1-6 .. would share the socket link;
	 * stride 4 pairs are 0-4 1-5 (double) 2-6 3-7 (single). */
	g = mesh(c, 2, 4);
	NEAR(g.ring_Bps, 20);
	cluster_destroy(c);
}

static void test_switches(void)
{
	struct graph *a100 = rig_host(
		&(struct rig){.gpus = 8, .cpus = 2, .gpus_per_switch = 2, .pcie_gen = 4, .cpu_model = "AMD EPYC 7742"});
	rig_nvswitch(a100, 12, 80);
	struct cluster *c = hosts(a100, 1);
	for (int64_t n = 2; n <= 8; n++) {
		struct group g = first(c, n, 1);
		NEAR(g.ring_Bps, 240); /* 12 x 20 */
		NEAR(g.ring_datasheet_Bps, 300);
		CU_ASSERT_TRUE(g.nvlink_switch);
		CU_ASSERT_EQUAL(g.rings, 1);
		CU_ASSERT_DOUBLE_EQUAL(g.ring_latency_s, 1.9e-6, 1e-12);
	}
	NEAR(mesh(c, 2, 4).ring_Bps, 240); /* four groups at once */
	CU_ASSERT_STRING_EQUAL(mesh(c, 2, 4).bottleneck_text, "NVLink between GPU0 and NVS0, 240 GB/s");
	cluster_destroy(c);

	struct graph *h100 = rig_host(&(struct rig){.gpus = 8, .cpus = 2, .gpus_per_switch = 1, .pcie_gen = 5});
	rig_nvswitch(h100, 18, 90);
	c = hosts(h100, 1);
	NEAR(first(c, 8, 1).ring_Bps, 370.8); /* 18 x 20.6 */
	NEAR(first(c, 8, 1).ring_datasheet_Bps, 450);
	NEAR(first(c, 2, 7).ring_Bps, 370.8);
	cluster_destroy(c);

	struct graph *dgx2 = rig_host(&(struct rig){.gpus = 16, .cpus = 2, .gpus_per_switch = 4, .pcie_gen = 3});
	rig_nvswitch(dgx2, 6, 70);
	c = hosts(dgx2, 1);
	NEAR(first(c, 16, 1).ring_Bps, 120); /* 6 x 20 */
	NEAR(first(c, 16, 1).ring_datasheet_Bps, 150);
	cluster_destroy(c);

	struct graph *nvl72 = rig_host(&(struct rig){.gpus = 72, .cpus = 8, .gpus_per_switch = 2, .pcie_gen = 5});
	rig_nvswitch(nvl72, 18, 100);
	c = hosts(nvl72, 1);
	struct group g = first(c, 72, 1);
	NEAR(g.ring_Bps, 721.8); /* 18 x 40.1 */
	CU_ASSERT_EQUAL(g.n_order, 72);
	CU_ASSERT_EQUAL(g.order[71], 71);
	cluster_destroy(c);
}

static void test_bridges(void)
{
	/* Four A100 PCIe, each on a root port of its own; bridges of 12 links 0-1 and 2-3. */
	for (int32_t cpus = 1; cpus <= 2; cpus++) {
		struct graph *host = rig_host(
			&(struct rig){.gpus = 4, .cpus = cpus, .pcie_gen = 4, .cpu_model = "AMD EPYC 7763"});
		rig_join(host, 0, 1, LINK_NVLINK, 12, rate_nvlink(80));
		rig_join(host, 2, 3, LINK_NVLINK, 12, rate_nvlink(80));
		struct cluster *c = hosts(host, 1);
		NEAR(pair(c, 0, 1).ring_Bps, 240);
		NEAR(mesh(c, 2, 1).ring_Bps, 240);
		/* The ring 0-1-2-3 has one hop each way between the pairs: PCIe's 24 in one socket, 16 between two
		 * EPYCs. */
		NEAR(first(c, 4, 1).ring_Bps, cpus == 1 ? 24 : 16);
		CU_ASSERT_EQUAL(first(c, 4, 1).bottleneck, cpus == 1 ? LINK_PCIE : LINK_SOCKET);
		CU_ASSERT_EQUAL(first(c, 4, 1).rings, 1);
		/* Two pairs 0-2 and 1-3 at once: each its own slots within a socket; the socket link carries two flows
		 * each way. */
		NEAR(mesh(c, 2, 2).ring_Bps, cpus == 1 ? 24 : 8);
		NEAR(pair(c, 0, 2).ring_Bps, cpus == 1 ? 24 : 16);
		cluster_destroy(c);
	}
	/* Bridges 0-2 and 1-3: in the order of the numbers 1-2 and 3-0 would cross the socket link. The ring 0-2-3-1
	 * crosses by the bridges alone, and PCIe within the sockets is its slowest hop. */
	struct graph *host = rig_host(&(struct rig){.gpus = 4, .cpus = 2, .pcie_gen = 4, .cpu_model = "AMD EPYC 7763"});
	rig_join(host, 0, 2, LINK_NVLINK, 12, rate_nvlink(80));
	rig_join(host, 1, 3, LINK_NVLINK, 12, rate_nvlink(80));
	struct cluster *c = hosts(host, 1);
	struct group g = first(c, 4, 1);
	NEAR(g.ring_Bps, 24);
	CU_ASSERT_EQUAL(g.bottleneck, LINK_PCIE);
	static const int32_t best[] = {0, 2, 3, 1};
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(g.order[i], best[i]);
	cluster_destroy(c);
}

static void test_no_peer(void)
{
	/* Eight RTX 4090 (PCIe gen 4) behind two switches: every hop is a write to host memory and a read from it. All
	 * four GPUs of a switch send up its uplink at once and all four read down it: 24 / 4. The two hops between the
	 * CPUs cross the socket link (16) one each way. */
	struct cluster *c = hosts(rig_host(&(struct rig){.gpus = 8,
					  .cpus = 2,
					  .gpus_per_switch = 4,
					  .pcie_gen = 4,
					  .no_peer = true,
					  .cpu_model = "AMD EPYC 7302"}),
		1);
	struct group g = first(c, 8, 1);
	NEAR(g.ring_Bps, 6);
	CU_ASSERT_STRING_EQUAL(g.bottleneck_text, "PCIe between PCI0 and HB0, 4 flows share 24.0 GB/s");
	NEAR(g.pair_Bps, 24);
	NEAR(g.ring_datasheet_Bps, 0); /* the socket link's is not known */
	NEAR(first(c, 4, 1).ring_Bps, 6);
	NEAR(pair(c, 0, 1).ring_Bps, 12); /* two up, two down */
	NEAR(mesh(c, 2, 1).ring_Bps, 6);  /* two such pairs at once behind each switch */
	NEAR(mesh(c, 2, 4).ring_Bps, 4); /* four pairs across: the socket link carries four flows each way: 16 / 4, less
	                                    than the uplink's 24 / 4 */
	CU_ASSERT_EQUAL(mesh(c, 2, 4).bottleneck, LINK_SOCKET);
	NEAR(first(c, 4, 1).ring_datasheet_Bps, 31.507692307692308 / 4); /* 16 lanes x 16 GT/s x 128/130 / 8 */
	cluster_destroy(c);
	/* Each on a root port of its own and peers that talk: no link carries two flows; between the sockets 16. */
	c = hosts(rig_host(&(struct rig){.gpus = 8, .cpus = 2, .pcie_gen = 4, .cpu_model = "AMD EPYC 7302"}), 1);
	NEAR(first(c, 8, 1).ring_Bps, 16);
	NEAR(first(c, 4, 1).ring_Bps, 24);
	NEAR(mesh(c, 4, 1).ring_Bps, 24);
	cluster_destroy(c);
}

static void test_peers_behind_switches(void)
{
	/* Two switches of four on one CPU: hops inside a switch do not touch its uplink, the two crossing hops do, one
	 * each way. */
	struct cluster *c = hosts(rig_host(&(struct rig){.gpus = 8, .cpus = 1, .gpus_per_switch = 4, .pcie_gen = 4}),
		1);
	NEAR(first(c, 8, 1).ring_Bps, 24);
	NEAR(first(c, 4, 1).ring_Bps, 24);
	NEAR(first(c, 8, 1).ring_datasheet_Bps, 31.507692307692308);
	/* The stride pairs 0-4 1-5 2-6 3-7 all cross: four flows each way on both uplinks. */
	NEAR(mesh(c, 2, 4).ring_Bps, 6);
	NEAR(mesh(c, 4, 2).ring_Bps, 12); /* 0 2 4 6 and 1 3 5 7: two rings, one crossing each way each */
	NEAR(pair(c, 0, 4).ring_Bps, 24);
	/* Members given in an order that jumps: the search puts neighbours together. */
	NEAR(of(c, (int64_t[]){0, 4, 1, 5, 2, 6, 3, 7}, 8).ring_Bps, 24);
	cluster_destroy(c);
}

static void test_refusals(void)
{
	struct cluster *c = hosts(rig_host(&(struct rig){.gpus = 2, .cpus = 1, .pcie_gen = 3}), 2);
	struct group g;
	struct error e = {0};
	CU_ASSERT_EQUAL(cluster_group(c, (int64_t[]){0, 4}, 2, &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "device 4 of a group: the cluster has 4");
	e = (struct error){0};
	CU_ASSERT_EQUAL(cluster_group(c, (int64_t[]){1, 0, 1}, 3, &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, "device 1 is in a group twice");
	e = (struct error){0};
	CU_ASSERT_EQUAL(cluster_group(c, NULL, 0, &g, &e), ST_INPUT);
	e = (struct error){0};
	CU_ASSERT_EQUAL(cluster_group(c, (int64_t[]){0, 2}, 2, &g, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "GPU0 has no NIC that leads out of its host");
	e = (struct error){0};
	CU_ASSERT_EQUAL(cluster_mesh_groups(c, 0, 1, &g, &e), ST_INPUT);
	e = (struct error){0};
	CU_ASSERT_EQUAL(cluster_mesh_groups(c, INT64_MAX, INT64_MAX, &g, &e), ST_INPUT);
	CU_ASSERT_EQUAL(cluster_group(c, (int64_t[]){3}, 1, &g, &e), ST_OK);
	CU_ASSERT_TRUE(isinf(g.ring_Bps) && g.in_node && g.hosts == 1 && g.n_order == 1 && g.order[0] == 1);
	cluster_destroy(c);
}

static void test_cluster(void)
{
	struct error e = {0};
	struct rig r = {.gpus = 8, .cpus = 2, .gpus_per_switch = 2, .pcie_gen = 4, .nics = 4, .nic_bits_per_s = 100e9};
	struct cluster *c = cluster_create(1e-6);
	for (int i = 0; i < 3; i++) {
		char name[8] = {'n', (char)('0' + i)};
		struct graph *g = rig_host(&r);
		strcpy(g->host, name);
		CU_ASSERT_EQUAL(cluster_add(c, g, 1, name, &e), ST_OK);
	}
	CU_ASSERT_EQUAL(c->shape.n, 1); /* alike in all but the name */
	CU_ASSERT_EQUAL(c->shape.at[0].hosts, 3);
	CU_ASSERT_STRING_EQUAL(c->host_name.at[2], "n2");
	struct graph *other = rig_host(&r);
	strcpy(other->vertex.at[other->gpu.at[0]].name, "another");
	CU_ASSERT_EQUAL(cluster_add(c, other, 2, NULL, &e), ST_OK);
	CU_ASSERT_EQUAL(c->shape.n, 2);
	CU_ASSERT_EQUAL(c->distinct.n, 1); /* its links are the same */
	CU_ASSERT_EQUAL(c->host_name.n, 5);
	CU_ASSERT_STRING_EQUAL(c->host_name.at[4], "");
	CU_ASSERT_EQUAL(c->devices, 40);
	struct device_place p = cluster_device(c, 27);
	CU_ASSERT_EQUAL(p.host, 3);
	CU_ASSERT_PTR_EQUAL(p.graph, other);
	CU_ASSERT_STRING_EQUAL(p.graph->vertex.at[p.vertex].label, "GPU3");
	CU_ASSERT_PTR_NULL(cluster_device(c, 40).graph);
	CU_ASSERT_PTR_NULL(cluster_device(c, -1).graph);
	/* Across hosts: GPU3 and its neighbour NIC1; NIC 12.5 of 100 Gb/s; the slowest hop on the way has 4 us. */
	struct cluster_route way;
	CU_ASSERT_EQUAL(cluster_route(c, 3, 27, &way, &e), ST_OK);
	CU_ASSERT_FALSE(way.in_node);
	NEAR(way.Bps, 12.5);
	CU_ASSERT_DOUBLE_EQUAL(way.latency_s, 4e-6, 1e-15);
	CU_ASSERT_STRING_EQUAL(other->vertex.at[way.nic_b].label, "NIC1");
	CU_ASSERT_EQUAL(way.nics, 1);
	CU_ASSERT_EQUAL(way.out.n, 2);
	CU_ASSERT_EQUAL(cluster_route(c, 0, 1, &way, &e), ST_OK);
	CU_ASSERT_TRUE(way.in_node);
	NEAR(way.Bps, 24);
	CU_ASSERT_EQUAL(cluster_route(c, 0, 40, &way, &e), ST_INPUT);
	CU_ASSERT_EQUAL(cluster_add(c, rig_host(&r), 0, NULL, NULL), ST_INPUT);
	CU_ASSERT_EQUAL(cluster_add(c, rig_host(&r), 2, "two", NULL), ST_INPUT);
	CU_ASSERT_EQUAL(cluster_add(c, rig_host(&r), INT64_MAX, NULL, NULL), ST_INPUT);
	CU_ASSERT_EQUAL(c->devices, 40);
	CU_ASSERT_EQUAL(c->host_name.n, 5);
	cluster_destroy(c);
	cluster_destroy(NULL);
}

/* Returns how many members a walk over the links in `width` visits until it is back at member 0; each member has two.
 */
static int32_t length_of_ring(int32_t n, const int32_t *width)
{
	int32_t at = 0, before = -1, length = 0;
	do {
		int32_t next = -1;
		for (int32_t v = 0; v < n && next < 0; v++)
			next = width[at * n + v] && v != before ? v : -1;
		before = at;
		at = next;
		length++;
	} while (at > 0 && length <= n);
	return length;
}

/* A square torus: all links go into two rings of all members, each both ways. */
static void test_square_torus(void)
{
	static const int32_t sides[] = {9, 12, 16};
	for (size_t k = 0; k < COUNT(sides); k++) {
		const int32_t side = sides[k], n = side * side;
		int32_t *width = calloc((size_t)(n * n), sizeof *width), order[RING_PACK_MOST];
		CU_ASSERT_PTR_NOT_NULL_FATAL(width);
		for (int32_t i = 0; i < n; i++) {
			const int32_t right = i / side * side + (i + 1) % side, down = (i + side) % n;
			width[i * n + right] = width[right * n + i] = 1;
			width[i * n + down] = width[down * n + i] = 1;
		}
		CU_ASSERT_EQUAL(ring_pack(n, width, order), 4);
		for (int32_t i = 0; i < n; i++) {
			const int32_t a = order[i], b = order[(i + 1) % n];
			CU_ASSERT_EQUAL(width[a * n + b]--, 1);
			width[b * n + a]--;
		}
		CU_ASSERT_EQUAL(length_of_ring(n, width), n); /* what is left is a ring, too */
		free(width);
	}
}

/* A torus of 8 x 16 chips, links of 48 both ways: 192 a chip. */
static void test_torus_axes(void)
{
	struct graph *g = rig_host(&(struct rig){.gpus = 128, .cpus = 1, .pcie_gen = 4});
	for (int32_t i = 0; i < 128; i++) {
		rig_join(g, i, i / 16 * 16 + (i + 1) % 16, LINK_XGMI, 1, rate_xgmi(0x942));
		rig_join(g, i, (i + 16) % 128, LINK_XGMI, 1, rate_xgmi(0x942));
	}
	g->torus = true;
	struct cluster *c = hosts(g, 1);
	struct group row = mesh(c, 16, 1); /* an axis: a ring each way round */
	NEAR(row.ring_Bps, 96);
	CU_ASSERT_EQUAL(row.rings, 2);
	struct group half = mesh(c, 8, 1); /* of 2^7 chips 2^3: no ring over direct links, so 3/7 of a chip's links */
	NEAR(half.ring_Bps, 192.0 * 3 / 7);
	NEAR(half.ring_datasheet_Bps, 256.0 * 3 / 7);
	CU_ASSERT_EQUAL(half.bottleneck, LINK_XGMI);
	NEAR(half.pair_Bps, 48);
	struct group rest = mesh(c, 16, 8); /* the other 2^4 */
	NEAR(rest.ring_Bps, 192.0 * 4 / 7);
	CU_ASSERT_EQUAL(rest.rings, 2);
	NEAR(rest.pair_Bps, 48);           /* over other chips, never over PCIe */
	NEAR(mesh(c, 2, 64).ring_Bps, 48); /* a link at least */
	cluster_destroy(c);
}

UNIT_MAIN("group", {"cube mesh", test_cube_mesh}, {"NVLink switches", test_switches}, {"bridges", test_bridges},
	{"no peers", test_no_peer}, {"peers behind switches", test_peers_behind_switches}, {"refusals", test_refusals},
	{"clusters", test_cluster}, {"a square torus", test_square_torus}, {"axes of a torus", test_torus_axes})
