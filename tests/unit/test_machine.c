/* Machines: systems of the catalogue, this host, what a profile fills in, and the link of a group. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/paths.h"
#include "tests/unit/harness.h"
#include "topology/discover/discover.h"
#include "topology/discover/inventory.h"
#include "topology/machine.h"

static struct machine load(const char *system, int64_t nodes, int64_t gpus)
{
	struct machine m = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(machine_load(system, nodes, gpus, &m, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return m;
}

/* Of a group's rings: the mean latency of a hop, and the rate of all of them together. */
static struct link_spec link_of(const struct machine *m, int64_t size, int64_t stride)
{
	struct group g = {0};
	struct error e = {0};
	CU_ASSERT_EQUAL(machine_group(m, size, stride, &g, &e), ST_OK);
	return (struct link_spec){g.ring_latency_s, g.ring_Bps};
}

static void test_system(void)
{
	struct machine m = load("dgx-h100", 4, 0);
	CU_ASSERT_STRING_EQUAL(m.device.id, "h100-sxm");
	CU_ASSERT_EQUAL(m.nodes, 4);
	CU_ASSERT_EQUAL(m.devices_per_node, 8);
	CU_ASSERT_DOUBLE_EQUAL(m.intra.Bps, 370.8e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(m.inter.Bps, 50e9, 1);
	CU_ASSERT_DOUBLE_EQUAL(m.device.matrix_flop_per_s[DT_BF16], 989.4e12, 1);
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_NVFP4], 0);
	CU_ASSERT_FALSE(m.unverified);
	CU_ASSERT_STRING_EQUAL(m.source, "catalogue configs/systems/dgx-h100.yaml");
	CU_ASSERT_EQUAL(m.cluster->hosts, 4);
	CU_ASSERT_EQUAL(m.cluster->devices, 32);
	machine_free(&m);
	CU_ASSERT_PTR_NULL(m.cluster);
	machine_free(&m);
	m = load("dgx-h200", 1, 0);
	CU_ASSERT_TRUE(m.unverified);
	machine_free(&m);
}

/* A GPU's share of the NICs: the JSON's figure equals what the link graph gives one GPU of each of two nodes while the
 * others send too. */
static void test_nic_share(void)
{
	static const struct {
		const char *system;
		int64_t gpus;
		double Bps;
	} rows[] = {
		/* p4d: 8 GPUs, 4 NICs of 12.5 GB/s. */
		{"aws-p4d", 0, 6.25e9},
		{"aws-p4d", 4, 12.5e9},
		{"aws-p4d", 1, 12.5e9}, /* not all four: one GPU reaches one NIC */
		/* p5: 32 NICs, four to a GPU. */
		{"aws-p5", 0, 50e9},
		{"aws-p5", 1, 50e9},
		{"aws-p5en", 0, 50e9},
		{"server-8xrtxpro6000", 0,
			4e9}, /* one NIC of 50 GB/s, but four of the GPUs reach it over 16 GB/s between the sockets */
		{"dgx-a100", 0, 25e9},
		{"dgx-b300", 0, 100e9},
		{"gcp-a3-high", 0, 12.5e9},
		{"gcp-a2-high", 0, 1.5625e9},
		{"azure-ndv2", 0, 1.5625e9},
		{"oci-gpu4", 0, 25e9},
		{"gb200-nvl72", 0, 50e9},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m = load(rows[i].system, 2, rows[i].gpus);
		struct link_spec across = link_of(&m, 2, m.devices_per_node);
		CU_ASSERT_DOUBLE_EQUAL(m.inter.Bps, rows[i].Bps, 1);
		CU_ASSERT_DOUBLE_EQUAL(across.Bps, rows[i].Bps, 1);
		if (fabs(across.Bps - rows[i].Bps) > 1)
			fprintf(stderr, "%s with %lld: %g\n", rows[i].system, (long long)rows[i].gpus, across.Bps);
		CU_ASSERT_EQUAL(across.latency_s, m.inter.latency_s);
		machine_free(&m);
	}
}

static void refuses(const char *system, int64_t nodes, int64_t gpus, const char *complaint)
{
	struct machine m;
	struct error e = {0};
	CU_ASSERT_EQUAL(machine_load(system, nodes, gpus, &m, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, complaint));
	if (!strstr(e.text, complaint))
		fprintf(stderr, "%s: %s\n", system, e.text);
}

static void test_refusals(void)
{
	refuses("dgx-h10", 1, 0, "unknown system 'dgx-h10' (nearest: dgx-h100)");
	refuses("node:4 gpu:8 rtx4090 pcie4", 1, 0, "no NIC, so 4 nodes of it cannot be joined");
	refuses("node:4 gpu:8 rtx4090 nic:1x100Gb", 2, 0,
		"cluster.nodes is 2, but the system line 'node:4 gpu:8 rtx4090 nic:1x100Gb' has node:4: give one of "
		"them");
	refuses("gpu:8 rtx4090 nik:1x100Gb", 1, 0, "word 3 'nik:1x100Gb': unknown (nearest: nic)");
	refuses("dgx-h100", 1, 65536, "65536 GPUs a host: expected 1 to 1024");
	refuses("dgx-h100", 0, 0, "at least one");
	refuses("dgx-h100", 1, -1, "at least one");
	refuses("./no-such-system.yaml", 1, 0, "no-such-system");
	refuses("", 1, 0, "unknown system");
}

static void test_system_file(void)
{
	static const char text[] =
		"name: Mine\ngpu: a100-sxm-80\ngpus_per_node: {value: 4, source: mine}\n"
		"intra:\n  fabric: nvlink\n  datasheet: {value: 100GB/s, source: mine}\n"
		"  usable: {value: 80GB/s, source: mine, unverified: true}\n  latency: {value: 2us, source: mine}\n"
		"nic:\n  count: {value: 0, source: mine}\n  rate: {value: 10Gb/s, source: mine}\n"
		"  latency: {value: 5us, source: mine}\n";
	char path[] = "/tmp/stepsim-system-XXXXXX.yaml";
	int fd = mkstemps(path, 5);
	CU_ASSERT_FATAL(fd >= 0);
	close(fd);
	struct error e = {0};
	CU_ASSERT_EQUAL(file_write(path, text, strlen(text), &e), ST_OK);
	struct machine m = load(path, 1, 0);
	CU_ASSERT_STRING_EQUAL(m.name, "Mine");
	CU_ASSERT_EQUAL(m.intra.Bps, 80e9);
	CU_ASSERT_EQUAL(m.inter.Bps, 0);
	CU_ASSERT_TRUE(m.unverified);
	machine_free(&m);
	refuses(path, 2, 0, "no NIC");
	unlink(path);
}

static void test_group_link(void)
{
	struct machine m = load("dgx-h100", 4, 0);
	struct link_spec l = link_of(&m, 1, 1);
	CU_ASSERT_EQUAL(l.latency_s, 0);
	CU_ASSERT_TRUE(isinf(l.Bps));
	l = link_of(&m, 8, 1); /* one node */
	CU_ASSERT_EQUAL(l.Bps, m.intra.Bps);
	CU_ASSERT_EQUAL(l.latency_s, m.intra.latency_s);
	l = link_of(&m, 4, 8); /* one GPU of each node: its own NIC */
	CU_ASSERT_EQUAL(l.Bps, 50e9);
	CU_ASSERT_EQUAL(l.latency_s, m.inter.latency_s);
	l = link_of(&m, 32, 1); /* all: 8 NICs a node would give 400 GB/s, NVLink does not */
	CU_ASSERT_EQUAL(l.Bps, m.intra.Bps);
	CU_ASSERT_DOUBLE_EQUAL(l.latency_s, (4 * m.inter.latency_s + 28 * m.intra.latency_s) / 32, 1e-15);
	l = link_of(&m, 8, 4); /* two of each node: two NICs */
	CU_ASSERT_EQUAL(l.Bps, 100e9);
	l = link_of(&m, 2, 4); /* both in one node */
	CU_ASSERT_EQUAL(l.Bps, m.intra.Bps);
	machine_free(&m);
}

/* Without a cluster, or with a measured path, the pair of links answers. */
static void test_groups_without_a_graph(void)
{
	struct machine m = {.nodes = 4, .devices_per_node = 8, .intra = {3e-6, 100e9}, .inter = {10e-6, 25e9}};
	struct group g;
	struct error e = {0};
	CU_ASSERT_EQUAL(machine_group(&m, 8, 1, &g, &e), ST_OK);
	CU_ASSERT_TRUE(g.in_node);
	CU_ASSERT_EQUAL(g.ring_Bps, 100e9);
	CU_ASSERT_EQUAL(machine_group(&m, 4, 8, &g, &e), ST_OK);
	CU_ASSERT_FALSE(g.in_node);
	CU_ASSERT_EQUAL(g.hosts, 4);
	CU_ASSERT_EQUAL(g.ring_Bps, 25e9);
	CU_ASSERT_EQUAL(g.bottleneck, LINK_NETWORK);
	CU_ASSERT_EQUAL(machine_group(&m, 8, 4, &g, &e), ST_OK); /* two of each node */
	CU_ASSERT_EQUAL(g.ring_Bps, 50e9);
	CU_ASSERT_EQUAL(machine_group(&m, 1, 1, &g, &e), ST_OK);
	CU_ASSERT_TRUE(isinf(g.ring_Bps));

	struct machine measured = load("dgx-h100", 4, 0);
	struct profile *p = profile_create();
	strcpy(p->date, "2026-01-02");
	profile_set_value(p, "p2p.Bps", 300e9, &e);
	machine_attach_profile(&measured, p);
	CU_ASSERT_EQUAL(machine_group(&measured, 8, 1, &g, &e), ST_OK);
	CU_ASSERT_EQUAL(g.ring_Bps, 300e9);
	machine_free(&measured);
	profile_destroy(p);
}

/* Rates of groups on PCIe machines, computed by hand from NCCL's 24 GB/s a slot of PCIe 4. */
static void test_groups_on_pcie(void)
{
	static const struct {
		const char *line;
		int64_t size, stride;
		double GBps;
	} rows[] = {
		{"gpu:4 l40s switch:4", 4, 1, 24}, /* inside the switch each slot carries one flow in and one out */
		{"gpu:8 l40s switch:4 cpu:1", 2, 4,
			6}, /* four rings of two cross both uplinks at once: four flows on 24 GB/s */
		{"gpu:8 l40s switch:4 cpu:2", 2, 4,
			4}, /* and four on the 16 GB/s that NCCL counts between AMD's sockets, with which PCIe 4 came */
		{"gpu:8 l40s switch:4", 4, 1, 24}, /* each ring stays below its switch */
		{"gpu:8 rtx-pro-6000", 8, 1,
			16}, /* one flow each way between sockets; processors with PCIe 5 are of a newer make */
		{"gpu:2 a100-pcie-80 bridge", 2, 1, 240},       /* 12 links of 20 GB/s */
		{"gpu:4 a100-pcie-80 bridge cpu:1", 2, 1, 240}, /* two pairs, each on its own bridge */
		{"gpu:4 a100-pcie-80 bridge cpu:1", 4, 1, 24},  /* between pairs over PCIe */
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m = load(rows[i].line, 1, 0);
		double rate = link_of(&m, rows[i].size, rows[i].stride).Bps;
		CU_ASSERT_DOUBLE_EQUAL(rate, rows[i].GBps * 1e9, 1);
		if (fabs(rate - rows[i].GBps * 1e9) > 1)
			fprintf(stderr, "%s, %lld by %lld: %g\n", rows[i].line, (long long)rows[i].size,
				(long long)rows[i].stride, rate);
		machine_free(&m);
	}
	/* Peers that may not talk: written to host memory and read from it, so a slot's and a root port's directions
	 * carry two flows each. */
	struct machine yes = load("gpu:8 l40s switch:4", 1, 0), no = load("gpu:8 rtx4090 switch:4", 1, 0);
	struct group g;
	struct error e = {0};
	CU_ASSERT_TRUE(link_of(&no, 8, 1).Bps < link_of(&yes, 8, 1).Bps);
	CU_ASSERT_TRUE(link_of(&no, 4, 1).Bps <= link_of(&yes, 4, 1).Bps / 3);
	CU_ASSERT_EQUAL(machine_group(&no, 4, 1, &g, &e), ST_OK);
	CU_ASSERT_EQUAL(g.bottleneck, LINK_PCIE);
	CU_ASSERT_PTR_NOT_NULL(strstr(g.bottleneck_text, "flows share"));
	machine_free(&yes);
	machine_free(&no);
}

/* The line's hosts count where the config leaves its own at 1, and where both agree. */
static void test_nodes_of_a_line(void)
{
	struct machine m = load("node:4 gpu:8 rtx4090 nic:1x100Gb", 1, 0);
	CU_ASSERT_EQUAL(m.nodes, 4);
	CU_ASSERT_STRING_EQUAL(m.name, "hosts of 8 x NVIDIA GeForce RTX 4090");
	CU_ASSERT_STRING_EQUAL(m.source, "system line: node:4 gpu:8 rtx4090 nic:1x100Gb");
	machine_free(&m);
	m = load("node:4 gpu:8 rtx4090 nic:1x100Gb", 4, 2);
	CU_ASSERT_EQUAL(m.nodes, 4);
	CU_ASSERT_EQUAL(m.devices_per_node, 2);
	machine_free(&m);
	m = load("gpu:8 rtx4090 nic:1x100Gb", 16, 0);
	CU_ASSERT_EQUAL(m.nodes, 16);
	machine_free(&m);
}

/* Published: nccl-tests on 10 nodes of 8 H100 gave bus bandwidths of 49, 98, 196 and 345 GB/s for all-reduces over 1,
 * 2, 4 and 8 GPUs a node. The rate of the link is what bus bandwidth tends to. */
static void test_published_bus_bandwidth(void)
{
	static const struct {
		int64_t per_node;
		double busbw_Bps;
	} rows[] = {{1, 49e9}, {2, 98e9}, {4, 196e9}, {8, 345e9}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct machine m = load("dgx-h100", 10, rows[i].per_node);
		double rate = link_of(&m, 10 * rows[i].per_node, 1).Bps;
		CU_ASSERT_TRUE(rate >= rows[i].busbw_Bps);
		CU_ASSERT_TRUE(rate <= 1.1 * rows[i].busbw_Bps);
		machine_free(&m);
	}
}

static void test_this_host(void)
{
	struct machine m;
	struct host_facts h;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(host_facts_read(&h, &e), ST_OK);
	CU_ASSERT_TRUE(h.cores >= 1);
	CU_ASSERT_TRUE(h.cores <= sysconf(_SC_NPROCESSORS_CONF));
	CU_ASSERT_TRUE(h.packages >= 1);
	CU_ASSERT_TRUE(h.numa_nodes >= 1);
	CU_ASSERT_TRUE(h.mem_available_B > 0);
	CU_ASSERT_TRUE(h.mem_available_B <= h.mem_total_B);
	CU_ASSERT_TRUE(h.mem_total_B >= (uint64_t)64 << 20 &&
		       h.mem_total_B < (uint64_t)1 << 50); /* a container may show less than the machine has */
	CU_ASSERT_NOT_EQUAL(h.cpu[0], '\0');
	CU_ASSERT_EQUAL_FATAL(machine_this(2, 1, &m, &e), ST_OK);
	CU_ASSERT_TRUE(m.device.is_host);
	CU_ASSERT_EQUAL(m.devices_per_node, 2);
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_FP32], 0); /* unknown until it is measured: never guessed */
	CU_ASSERT_TRUE(m.device.mem_B <= h.mem_total_B / 2);
}

/* What `topo` prints of this host is what a prediction counts with. */
static void test_memory_of_this_host(void)
{
	struct machine m;
	struct inventory list;
	struct host_facts h;
	struct graph *g = NULL;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(host_facts_read(&h, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(machine_this(2, 1, &m, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(inventory_read(NULL, 0, "this host", &list, &e), ST_OK);
	CU_ASSERT_EQUAL(list.mem_B, h.mem_total_B);
	CU_ASSERT_DOUBLE_EQUAL((double)list.mem_available_B / (double)m.device.mem_B, 2, 0.2); /* of two ranks */
	CU_ASSERT_EQUAL_FATAL(discover(&(struct dumps){0}, &g, &e), ST_OK);
	uint64_t nodes_B = 0;
	for (size_t i = 0; i < g->vertex.n; i++)
		nodes_B += g->vertex.at[i].kind == VERTEX_CPU ? g->vertex.at[i].cpu.mem_B : 0;
	if (list.numa_nodes == 1)
		CU_ASSERT_EQUAL(nodes_B, h.mem_total_B);
	graph_destroy(g);
	inventory_free(&list);
}

static void test_attach_profile(void)
{
	struct machine m;
	struct error e = {0};
	struct profile *p = profile_create();
	CU_ASSERT_EQUAL_FATAL(machine_this(2, 1, &m, &e), ST_OK);
	strcpy(p->date, "2026-01-02");
	profile_set_value(p, "peak.fp32", 1e11, &e);
	profile_set_value(p, "mem_Bps", 2e10, &e);
	profile_set_value(p, "call_s", 3e-7, &e);
	profile_set_value(p, "p2p.latency_s", 4e-7, &e);
	profile_set_value(p, "p2p.Bps", 5e9, &e);
	machine_attach_profile(&m, p);
	CU_ASSERT_EQUAL(m.profile, p);
	CU_ASSERT_EQUAL(m.device.matrix_flop_per_s[DT_FP32], 1e11);
	CU_ASSERT_EQUAL(m.device.mem_Bps, 2e10);
	CU_ASSERT_EQUAL(m.device.launch_s, 3e-7);
	CU_ASSERT_EQUAL(m.intra.latency_s, 4e-7);
	CU_ASSERT_EQUAL(m.inter.Bps, 5e9);
	CU_ASSERT_STRING_EQUAL(m.source, "hwloc + profile of 2026-01-02");
	json_t *j = machine_json(&m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_EQUAL(json_real_value(
				json_object_get(json_object_get(json_object_get(j, "device"), "matrix_flop_per_s"),
					"fp32")),
		1e11);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(j, "profile"), "date")), "2026-01-02");
	json_decref(j);
	profile_destroy(p);
}

static void test_json_of_a_system(void)
{
	struct machine m = load("dgx-h100", 2, 0);
	json_t *j = machine_json(&m);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_TRUE(json_is_null(json_object_get(j, "profile")));
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "nodes")), 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "source")),
		"catalogue configs/systems/dgx-h100.yaml");
	json_decref(j);
	machine_free(&m);
}

UNIT_MAIN("machine", {"a system", test_system}, {"NIC share", test_nic_share}, {"refusals", test_refusals},
	{"a system file", test_system_file}, {"group link", test_group_link},
	{"groups without a graph", test_groups_without_a_graph}, {"groups on PCIe", test_groups_on_pcie},
	{"nodes of a line", test_nodes_of_a_line}, {"published bus bandwidth", test_published_bus_bandwidth},
	{"this host", test_this_host}, {"memory of this host", test_memory_of_this_host},
	{"a profile attached", test_attach_profile}, {"JSON of a system", test_json_of_a_system})
