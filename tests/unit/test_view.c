/* Tests the output of `stepsim topo` for graphs made by hand and system lines: exact cells, groups, JSON keys, dot
 * lines, and a picture that is XML with every device in it. */
#include "base/array.h"
#include "harness.h"

#include <expat.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topology/catalogue/system.h"
#include "topology/view/view.h"

static int32_t vertex(struct graph *g, enum vertex_kind kind, const char *name, int32_t numa)
{
	struct vertex v = graph_vertex_init(kind, SAID_BY_HWLOC_XML);
	snprintf(v.name, sizeof v.name, "%s", name);
	v.numa = numa;
	if (kind == VERTEX_CPU)
		v.cpu.package = numa;
	if (kind == VERTEX_NIC)
		v.nic = (struct nic_facts){.Bps = 12.5e9, .infiniband = true};
	int32_t at = graph_add_vertex(g, &v);
	CU_ASSERT_FATAL(at >= 0);
	return at;
}

static void join(struct graph *g, int32_t a, int32_t b, enum link_kind kind, int32_t width, int32_t gen, double Bps)
{
	struct link l = {.a = a,
		.b = b,
		.kind = kind,
		.width = width,
		.gen = gen,
		.Bps = Bps,
		.datasheet_Bps = Bps * 1.25,
		.latency_s = 1e-6,
		.from = SAID_BY_HWLOC_XML,
		.assumed = kind == LINK_SOCKET};
	CU_ASSERT_FATAL(graph_add_link(g, &l) >= 0);
}

/* Two sockets with a PCIe switch each; two GPUs and a bridge of four NVLinks below each switch; a NIC below the first.
 */
static struct graph *two_pairs(const char *name)
{
	struct graph *g = graph_create(SAID_BY_HWLOC_XML);
	CU_ASSERT_FATAL(g != NULL);
	int32_t cpu[2], gpu[4], pci[2];
	for (int32_t i = 0; i < 2; i++) {
		cpu[i] = vertex(g, VERTEX_CPU, "", i);
		int32_t hb = vertex(g, VERTEX_BRIDGE, "", i);
		pci[i] = vertex(g, VERTEX_PCI_SWITCH, "", i);
		join(g, hb, cpu[i], LINK_LOCAL, 0, 0, 5000e9);
		join(g, pci[i], hb, LINK_PCIE, 16, 4, 24e9);
	}
	for (int32_t i = 0; i < 4; i++) {
		gpu[i] = vertex(g, VERTEX_GPU, name, i / 2);
		join(g, gpu[i], pci[i / 2], LINK_PCIE, 16, 4, 24e9);
	}
	struct vertex *first = &g->vertex.at[gpu[0]];
	first->gpu = (struct gpu_facts){.mem_B = 48ULL << 30,
		.pcie_gen = 4,
		.pcie_width = 8,
		.pcie_gen_max = 4,
		.pcie_width_max = 16};
	snprintf(first->pci, sizeof first->pci, "0000:01:00.0");
	snprintf(first->cores, sizeof first->cores, "0-15");
	int32_t nic = vertex(g, VERTEX_NIC, "mlx5_0", 0), net = vertex(g, VERTEX_NETWORK, "", -1);
	join(g, nic, pci[0], LINK_PCIE, 16, 4, 24e9);
	join(g, nic, net, LINK_NETWORK, 0, 0, 12.5e9);
	join(g, cpu[0], cpu[1], LINK_SOCKET, 0, 0, 10e9);
	join(g, gpu[0], gpu[1], LINK_NVLINK, 4, 3, 48e9);
	join(g, gpu[2], gpu[3], LINK_NVLINK, 4, 3, 48e9);
	snprintf(g->host, sizeof g->host, "node7");
	snprintf(g->model, sizeof g->model, "Example 4000");
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_remark(g, false, &e, "GPU0 runs at x8"), ST_OK);
	CU_ASSERT_EQUAL(graph_remark(g, true, &e, "two sources disagree about GPU1"), ST_OK);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	return g;
}

static struct cluster *alone(struct graph *g, int64_t hosts)
{
	struct error e = {0};
	struct cluster *c = cluster_create(5e-6);
	CU_ASSERT_FATAL(c != NULL);
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, g, hosts, NULL, &e), ST_OK);
	return c;
}

static struct cluster *from_line(const char *line, int64_t hosts)
{
	struct error e = {0};
	struct system_spec s;
	struct graph *g = NULL;
	CU_ASSERT_EQUAL_FATAL(system_load(line, &s, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(system_graph(&s, 0, &g, &e), ST_OK);
	return alone(g, hosts);
}

static enum status plain_text(const struct cluster *c, FILE *out, struct error *e)
{
	struct view_beside beside = {.links = true};
	return view_text(c, &beside, out, e);
}

static char *text_of(view_fn *view, const struct cluster *c)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(view_to_text(view, c, &text, &len, &e), ST_OK);
	CU_ASSERT_EQUAL(strlen(text), len);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

#define HAS(text, what) CU_ASSERT_PTR_NOT_NULL(strstr(text, what))
#define HAS_NOT(text, what) CU_ASSERT_PTR_NULL(strstr(text, what))

static void test_words(void)
{
	char buf[VIEW_TEXT], rate[VIEW_RATE];
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 370.8e9), "371");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 12.5e9), "12.5");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 0.125e9), "0.125");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 999.7e9), "1000");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 5000e9), "5000");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, INFINITY), "-");
	CU_ASSERT_STRING_EQUAL(view_rate(rate, 0), "-");
	struct link l = {.kind = LINK_PCIE, .gen = 5, .width = 8};
	CU_ASSERT_STRING_EQUAL(view_link(buf, &l), "PCIe gen 5 x8");
	l = (struct link){.kind = LINK_NVLINK, .width = 18};
	CU_ASSERT_STRING_EQUAL(view_link(buf, &l), "NVLink x18");
	l = (struct link){.kind = LINK_SOCKET, .width = 2};
	CU_ASSERT_STRING_EQUAL(view_link(buf, &l), "socket");
}

static void check_cell(const struct graph *g, const char *a, const char *b, const char *word, double Bps, bool assumed)
{
	struct view_cell cell;
	struct error e = {0};
	struct router *router = router_create(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(router);
	CU_ASSERT_EQUAL_FATAL(view_cell(g, router, graph_find_label(g, a), graph_find_label(g, b), &cell, &e), ST_OK);
	router_destroy(router);
	CU_ASSERT_STRING_EQUAL(cell.word, word);
	CU_ASSERT_EQUAL(cell.Bps, Bps);
	CU_ASSERT_EQUAL(cell.assumed, assumed);
	CU_ASSERT_FALSE(cell.through_memory);
}

static void test_cells(void)
{
	struct graph *g = two_pairs("A6000");
	check_cell(g, "GPU0", "GPU0", "X", 0, false);
	check_cell(g, "GPU0", "GPU1", "NV4", 48e9, false);
	check_cell(g, "GPU0", "GPU2", "SYS", 10e9, true);
	check_cell(g, "GPU1", "NIC0", "PIX", 24e9, false);
	check_cell(g, "NIC0", "GPU3", "SYS", 10e9, true);
	graph_destroy(g);
}

static struct view_groups groups_of(const struct cluster *c)
{
	struct view_groups groups;
	struct view_makes makes;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(view_makes(c, &makes, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(view_groups(c, &makes, &groups, &e), ST_OK);
	view_makes_free(&makes);
	return groups;
}

static void test_groups(void)
{
	struct cluster *c = alone(two_pairs("A6000"), 1);
	struct view_groups groups = groups_of(c);
	/* the sockets hold the same GPUs as the islands: said once */
	CU_ASSERT_EQUAL_FATAL(groups.list.n, 3);
	CU_ASSERT_STRING_EQUAL(groups.list.at[0].what, "all GPUs");
	CU_ASSERT_EQUAL(groups.list.at[0].n, 4);
	CU_ASSERT_EQUAL(groups.list.at[0].group.ring_Bps, 10e9);
	CU_ASSERT_EQUAL(groups.list.at[0].group.bottleneck, LINK_SOCKET);
	CU_ASSERT_STRING_EQUAL(groups.list.at[1].what, "NVLink island");
	CU_ASSERT_EQUAL(groups.list.at[1].group.ring_Bps, 48e9);
	CU_ASSERT_EQUAL(groups.list.at[2].device[0], 2);
	CU_ASSERT_FALSE(groups.list.at[0].nvls);
	view_groups_free(&groups);
	cluster_destroy(c);

	/* over PCIe alone the sockets are groups of their own */
	c = from_line("gpu:8 rtx4090 pcie4 switch:4 cpu:2", 1);
	groups = groups_of(c);
	CU_ASSERT_EQUAL_FATAL(groups.list.n, 3);
	CU_ASSERT_STRING_EQUAL(groups.list.at[1].what, "socket");
	CU_ASSERT_EQUAL(groups.list.at[1].n, 4);
	CU_ASSERT_EQUAL(groups.list.at[2].device[3], 7);
	view_groups_free(&groups);
	cluster_destroy(c);

	/* one switch: one group; two hosts: all of them first */
	c = from_line("gpu:8 h100-sxm nic:8x400Gb/s", 2);
	groups = groups_of(c);
	CU_ASSERT_EQUAL_FATAL(groups.list.n, 2);
	CU_ASSERT_TRUE(groups.list.at[0].everywhere);
	CU_ASSERT_EQUAL(groups.list.at[0].n, 16);
	CU_ASSERT_FALSE(groups.list.at[0].nvls);
	CU_ASSERT_TRUE(groups.list.at[1].nvls);
	CU_ASSERT_DOUBLE_EQUAL(groups.list.at[1].group.ring_Bps, 370.8e9, 1);
	view_groups_free(&groups);
	cluster_destroy(c);
}

static void test_text(void)
{
	struct cluster *c = alone(two_pairs("A|6000\033[1m"), 1);
	char *text = text_of(plain_text, c);
	HAS(text, "GPU1  A/6000?[1m ");
	HAS(text, "node7: Example 4000; 4 GPUs, 1 NIC; source: hwloc xml\n");
	HAS(text, "GPU0  X        NV4 48   SYS ~10  SYS ~10  PIX 24      0  0-15\n");
	HAS(text, "NIC0  PIX 24   PIX 24   SYS ~10  SYS ~10  X           0\n");
	HAS(text, "Fabric: bridge");
	HAS(text, "A datasheet counts both directions: 120 GB/s are 4 links x 2 directions; one direction is 60, of "
		  "which 48 carry data.\n");
	HAS(text, "each NVLink island of 2: GPU0-1; GPU2-3");
	HAS(text, "gen 4 x8 (can x16)");
	HAS(text, "48.0 GiB");
	HAS(text, "mlx5_0");
	HAS(text, "CPU0  CPU1  socket");
	HAS(text, "hwloc xml, rate assumed\n");
	HAS(text, "warning: GPU0 runs at x8\n");
	HAS(text, "sources disagree: two sources disagree about GPU1\n");
	HAS_NOT(text, "PXB");
	free(text);
	cluster_destroy(c);
}

/* One text for hosts alike; a text for each make. */
static void test_text_of_hosts(void)
{
	struct cluster *c = from_line("gpu:8 h100-sxm nic:8x400Gb/s", 4);
	char *text = text_of(plain_text, c);
	HAS(text, "(4 hosts alike)");
	CU_ASSERT_EQUAL(count(text, "Fabric:"), 1);
	HAS(text, "all 32 GPUs of 4 hosts");
	HAS(text, "all 8 GPUs of a host");
	free(text);
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, two_pairs("A6000"), 1, NULL, &e), ST_OK);
	text = text_of(plain_text, c);
	CU_ASSERT_EQUAL(count(text, "Fabric:"), 2);
	HAS(text, "all 36 GPUs of 5 hosts");
	free(text);
	cluster_destroy(c);
}

/* Hosts whose NICs nobody knows are shown all the same. */
static void test_hosts_without_nics(void)
{
	struct cluster *c = from_line("gpu:4 h100-sxm", 2);
	char *text = text_of(plain_text, c);
	HAS(text, "all 4 GPUs of a host");
	HAS(text, "\nNo ring over all hosts: no NIC is known of these hosts.\n");
	HAS_NOT(text, "GPUs of 2 hosts");
	free(text);
	cluster_destroy(c);
}

static json_t *json_of(const struct cluster *c)
{
	struct view_beside beside = {0};
	struct error e = {0};
	json_t *j = NULL;
	CU_ASSERT_EQUAL_FATAL(view_json(c, &beside, &j, &e), ST_OK);
	return j;
}

static json_t *cell_of(const json_t *j, const char *table, size_t row, size_t column)
{
	return json_array_get(json_array_get(json_object_get(json_object_get(j, "matrix"), table), row), column);
}

static void test_json(void)
{
	struct cluster *c = alone(two_pairs("A6000 \xff"), 1);
	json_t *j = json_of(c);
	static const char *const keys[] = {"hosts", "gpus", "nics", "matrix", "fabric", "warnings", "source", "cpus",
		"links", "groups", "contradictions", "model", "inventory", "pci_devices", "messages"};
	for (size_t i = 0; i < COUNT(keys); i++)
		CU_ASSERT_PTR_NOT_NULL(json_object_get(j, keys[i]));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(j, "hosts"), 0)), "node7");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "fabric")), "bridge");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "source")), "hwloc xml");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "warnings")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "contradictions")), 1);
	const json_t *gpu = json_array_get(json_object_get(j, "gpus"), 0),
		     *other = json_array_get(json_object_get(j, "gpus"), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "label")), "GPU0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "host")), "node7");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "name")), "A6000 ?");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "pci")), "0000:01:00.0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(gpu, "cores")), "0-15");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(gpu, "pcie_width")), 8);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(gpu, "memory_bytes")), 48LL << 30);
	CU_ASSERT_TRUE(json_is_null(json_object_get(other, "pcie_gen")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(other, "memory_bytes")));
	CU_ASSERT_EQUAL(json_real_value(
				json_object_get(json_array_get(json_object_get(j, "nics"), 0), "bandwidth_Bps")),
		12.5e9);
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 0, 0)), "X");
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 2, 3)), "NV4");
	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_TRUE(json_is_null(cell_of(j, "bandwidth_Bps", i, i)));
		for (size_t k = 0; k < i; k++)
			CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", i, k)),
				json_real_value(cell_of(j, "bandwidth_Bps", k, i)));
	}
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 0, 1)), 48e9);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 13);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "groups")), 3);
	json_decref(j);
	cluster_destroy(c);
}

static void test_json_of_hosts(void)
{
	struct cluster *c = alone(two_pairs("A6000"), 2);
	json_t *j = json_of(c), *labels = json_object_get(json_object_get(j, "matrix"), "labels");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "hosts")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "gpus")), 8);
	CU_ASSERT_EQUAL_FATAL(json_array_size(labels), 10);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(labels, 0)), "node70:GPU0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(labels, 9)), "node71:NIC0");
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 0, 5)), "NET");
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 0, 5)), 12.5e9); /* the NIC */
	CU_ASSERT_EQUAL(json_real_value(cell_of(j, "bandwidth_Bps", 3, 5)), 10e9);   /* the way to it */
	CU_ASSERT_STRING_EQUAL(json_string_value(cell_of(j, "link", 5, 6)), "NV4");
	json_decref(j);
	cluster_destroy(c);
}

static struct graph *idle(double clock_Hz, const char *pci, const char *remark)
{
	struct error e = {0};
	struct graph *g = two_pairs("A6000");
	struct vertex *first = &g->vertex.at[g->gpu.at[0]];
	first->gpu.clock_Hz = clock_Hz;
	first->gpu.throttle = clock_Hz > 1e9;
	first->gpu.pcie_gen = clock_Hz > 1e9 ? 4 : 1;
	first->gpu.mem_B -= (uint64_t)clock_Hz / 1000;
	snprintf(first->pci, sizeof first->pci, "%s", pci);
	if (*remark)
		CU_ASSERT_EQUAL(graph_remark(g, false, &e, "%s", remark), ST_OK);
	return g;
}

/* Clocks, PCI addresses and the like make no difference to what is shown; names and links do. */
static void test_makes(void)
{
	struct error e = {0};
	struct cluster *c = cluster_create(5e-6);
	CU_ASSERT_FATAL(c != NULL);
	for (int i = 0; i < 64; i++) {
		char name[16];
		snprintf(name, sizeof name, "n%02d", i);
		CU_ASSERT_EQUAL_FATAL(cluster_add(c,
					      idle(210e6 + 15e6 * i, i % 2 ? "0000:01:00.0" : "0000:81:00.0",
						      i == 5 || i == 9 ? "GPU3 is hot" : ""),
					      1, name, &e),
			ST_OK);
	}
	CU_ASSERT_EQUAL_FATAL(c->shape.n, 64);
	struct view_makes makes;
	CU_ASSERT_EQUAL_FATAL(view_makes(c, &makes, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(makes.list.n, 1);
	CU_ASSERT_EQUAL(makes.list.at[0].hosts, 64);
	view_makes_free(&makes);
	char *text = text_of(plain_text, c);
	CU_ASSERT_EQUAL(count(text, "Fabric:"), 1);
	HAS(text, "n00, n01, n02, n03, n04, n05, n06, n07, ... (64 hosts alike): Example 4000; 4 GPUs, 1 NIC; source: "
		  "hwloc xml\n");
	HAS(text, "all 256 GPUs of 64 hosts");
	HAS(text, "all 4 GPUs of a host");
	HAS(text, "\nwarning: GPU0 runs at x8\n");
	HAS(text, "\nwarning: n05, n09: GPU3 is hot\n");
	CU_ASSERT_EQUAL(count(text, "GPU3 is hot"), 1);
	free(text);
	text = text_of(view_dot, c);
	HAS(text, "n00 (64 hosts alike)");
	CU_ASSERT_EQUAL(count(text, " -- "), 13);
	free(text);
	json_t *j = json_of(c), *warnings = json_object_get(j, "warnings");
	CU_ASSERT_EQUAL_FATAL(json_array_size(warnings), 3);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(warnings, 2)), "n05, n09: GPU3 is hot");
	CU_ASSERT_EQUAL(json_real_value(json_object_get(json_array_get(json_object_get(j, "gpus"), 4), "clock_Hz")),
		225e6); /* each host's own */
	json_decref(j);

	/* the names of two GPUs differ; then a link's rate */
	struct graph *other = two_pairs("A6000"), *slow = two_pairs("A6000");
	snprintf(other->vertex.at[other->gpu.at[2]].name, GRAPH_NAME, "A5000");
	slow->link.at[1].Bps /= 2;
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, other, 1, "other", &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, slow, 1, "slow", &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, two_pairs("A6000"), 1, "late", &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(view_makes(c, &makes, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(makes.list.n, 3);
	CU_ASSERT_EQUAL(makes.list.at[0].hosts, 65);
	CU_ASSERT_EQUAL(makes.list.at[2].shape, 65);
	CU_ASSERT_EQUAL(makes.of_shape[66], 0);
	view_makes_free(&makes);
	cluster_destroy(c);
}

/* Beyond VIEW_MATRIX_MOST entries: a matrix of each make, whatever the number of hosts. */
static void test_json_of_many(void)
{
	struct cluster *c = alone(two_pairs("A6000"), 102);
	json_t *j = json_of(c);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(j, "matrix"), "labels")), 510);
	CU_ASSERT_PTR_NULL(json_object_get(j, "matrices"));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 102 * 13);
	json_decref(j);
	cluster_destroy(c);
	c = alone(two_pairs("A6000"), 1024);
	j = json_of(c);
	const json_t *one = json_array_get(json_object_get(j, "matrices"), 0);
	CU_ASSERT_TRUE(json_is_null(json_object_get(j, "matrix")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "matrices")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "gpus")), 4096);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "links")), 13);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(one, "hosts")), 1024);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(one, "hosts"), 1023)), "node71023");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(one, "labels"), 4)), "NIC0");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_array_get(json_object_get(one, "link"), 2), 3)),
		"NV4");
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_array_get(json_object_get(one, "bandwidth_Bps"), 0), 1)),
		48e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 0)), 12.5e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 3)), 10e9);
	CU_ASSERT_EQUAL(json_real_value(json_array_get(json_object_get(one, "egress_Bps"), 4)), 12.5e9);
	json_decref(j);
	cluster_destroy(c);
}

/* A matrix wider than a page: GPUs by GPUs, then GPUs by NICs. */
static void test_wide(void)
{
	struct cluster *c = from_line("gpu:16 h100-sxm nic:16x400Gb/s", 1);
	char *text = text_of(plain_text, c);
	HAS(text, "\n       NIC0");
	HAS(text, "Rows of NICs would not fit here: --json has them.\n");
	size_t widest = 0;
	const char *legend = strstr(text, "Each cell");
	CU_ASSERT_PTR_NOT_NULL_FATAL(legend);
	for (const char *at = text; at < legend; at = strchr(at, '\n') + 1)
		widest = strcspn(at, "\n") > widest ? strcspn(at, "\n") : widest;
	CU_ASSERT_TRUE(widest > 100 && widest <= 200);
	CU_ASSERT_TRUE(count(text, "\nGPU15 ") >= 3); /* two blocks or more, and the table of GPUs */
	free(text);
	cluster_destroy(c);
	c = from_line("gpu:72 b200 nic:72x400Gb/s", 1);
	text = text_of(plain_text, c);
	HAS(text, "  GPU71\n");
	HAS(text, "  NIC71\n");
	free(text);
	cluster_destroy(c);
}

static void test_dot(void)
{
	struct cluster *c = alone(two_pairs("a \"quoted\" name"), 1);
	char *text = text_of(view_dot, c);
	CU_ASSERT_EQUAL(count(text, " -- "), 13);
	CU_ASSERT_EQUAL(count(text, "shape="), 12);
	CU_ASSERT_EQUAL(count(text, "{"), count(text, "}"));
	CU_ASSERT_EQUAL(count(text, "subgraph"), 3);
	HAS(text, "a \\\"quoted\\\" name");
	HAS(text, "xlabel=\"NVLink gen 3 x4\\n48 GB/s\"");
	HAS(text, ", label=\"PCIe gen 4 x16\\n24 GB/s\"");
	HAS(text, "label=\"socket\\n~10 GB/s\"");
	free(text);
	cluster_destroy(c);
}

static void check_svg(const struct cluster *c)
{
	char *text = text_of(view_svg, c);
	XML_Parser parser = XML_ParserCreate(NULL);
	CU_ASSERT_FATAL(parser != NULL);
	CU_ASSERT_EQUAL(XML_Parse(parser, text, (int)strlen(text), 1), XML_STATUS_OK);
	XML_ParserFree(parser);
	HAS_NOT(text, "nan");
	HAS_NOT(text, "inf");
	for (size_t s = 0; s < c->shape.n; s++) {
		const struct graph *g = c->shape.at[s].graph;
		for (size_t i = 0; i < graph_entries(g); i++) {
			char label[GRAPH_LABEL + 2];
			snprintf(label, sizeof label, ">%s<", g->vertex.at[graph_entry(g, i)].label);
			HAS(text, label);
		}
	}
	free(text);
}

static void test_svg(void)
{
	static const char *const lines[] = {"gpu:1 rtx4090", "gpu:2 h100-pcie bridge",
		"gpu:4 a100-sxm-40 mesh nic:2x100Gb/s", "gpu:8 h100-sxm nic:10x400Gb/s", "gpu:8 rtx4090 pcie4 switch:4",
		"gpu:16 h100-sxm nic:8x400Gb/s", "gpu:72 b200 cpu:36 nic:72x400Gb/s", "gpu:72 b200 cpu:1",
		"gpu:12 h100-sxm mesh"};
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct cluster *c = from_line(lines[i], 1);
		check_svg(c);
		cluster_destroy(c);
	}
	struct cluster *c = alone(two_pairs("<A6000> & more"), 2);
	check_svg(c);
	char *text = text_of(view_svg, c);
	CU_ASSERT_EQUAL(count(text, "class=\"nv\""), 3); /* two bridges, and one in the key */
	CU_ASSERT_EQUAL(count(text, "class=\"wire\""), 1);
	CU_ASSERT_EQUAL(count(text, ">48 GB/s</text>"), 2); /* on each bridge */
	HAS(text, ">~10 GB/s</text>");
	HAS(text, ">net 12.5 GB/s</text>");
	HAS(text, ">PCIe 4 x16</text>");
	HAS_NOT(text, "Gb/s");
	HAS(text, "Example 4000");
	HAS(text, "prefers-color-scheme:dark");
	free(text);
	cluster_destroy(c);

	/* NICs' wires go around the bar of NVLink switches; sockets on two lines are joined along the margin, with
	 * their rate */
	c = from_line("gpu:16 h100-sxm nic:16x400Gb/s cpu:2", 1);
	text = text_of(view_svg, c);
	HAS_NOT(text, "class=\"wire\"");
	CU_ASSERT_EQUAL(count(text, "class=\"rail\""), 16 + 2);
	CU_ASSERT_EQUAL(count(text, "class=\"dot\""), 16);
	CU_ASSERT_EQUAL(count(text, "class=\"rate\""), 1);
	HAS(text, ">network (the same)<");
	free(text);
	cluster_destroy(c);

	/* too small for words that are cut: the rate alone */
	c = from_line("gpu:72 b200 cpu:1 switch:2", 1);
	text = text_of(view_svg, c);
	HAS(text, "rotate(-90)");
	HAS_NOT(text, "&#8230;");
	CU_ASSERT_EQUAL(count(text, ">48 GB/s</text>"), 36);
	free(text);
	cluster_destroy(c);
}

/* A host without anything on PCI, and one without anything. */
static void test_bare(void)
{
	struct graph *g = graph_create(SAID_BY_HWLOC);
	CU_ASSERT_FATAL(g != NULL);
	vertex(g, VERTEX_CPU, "", 0);
	struct cluster *c = alone(g, 1);
	char *text = text_of(plain_text, c);
	HAS(text, "0 GPUs, 0 NICs; source: hwloc");
	HAS(text, "CPU0");
	HAS_NOT(text, "Each cell");
	free(text);
	check_svg(c);
	json_t *j = json_of(c);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "fabric")), "none");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json_object_get(j, "matrix"), "labels")), 0);
	json_decref(j);
	cluster_destroy(c);
	c = alone(graph_create(SAID_BY_HWLOC), 1);
	check_svg(c);
	free(text_of(view_dot, c));
	free(text_of(plain_text, c));
	cluster_destroy(c);
}

static void test_inventory(void)
{
	static const char xml[] =
		"<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
		"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" "
		"nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
		"<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
		"complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1073741824\"/>\n"
		"<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
		"complete_nodeset=\"0x1\" gp_index=\"3\"/>\n"
		"<object type=\"Bridge\" gp_index=\"4\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-01]\">\n"
		"<object type=\"PCIDev\" gp_index=\"5\" pci_busid=\"0000:01:00.0\" pci_type=\"0108 [144d:a80a] "
		"[144d:a801] 00\" pci_link_speed=\"7.876923\">\n"
		"<object type=\"OSDev\" gp_index=\"6\" name=\"nvme0n1\" osdev_type=\"0\"/>\n</object>\n</object>\n"
		"</object>\n</topology>\n";
	struct inventory list;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(inventory_read(xml, sizeof xml - 1, "small.xml", &list, &e), ST_OK);
	CU_ASSERT_EQUAL(list.threads, 1);
	CU_ASSERT_EQUAL(list.packages, 0);
	CU_ASSERT_EQUAL(list.numa_nodes, 1);
	CU_ASSERT_EQUAL(list.mem_B, 1 << 30);
	CU_ASSERT_EQUAL_FATAL(list.device.n, 1);
	const struct pci_device *d = &list.device.at[0];
	CU_ASSERT_STRING_EQUAL(d->address, "0000:01:00.0");
	CU_ASSERT_STRING_EQUAL(d->what, "NVMe storage");
	CU_ASSERT_STRING_EQUAL(d->name, "144d:a80a");
	CU_ASSERT_STRING_EQUAL(d->os, "nvme0n1");
	CU_ASSERT_DOUBLE_EQUAL(d->Bps, 7.876923e9, 1e3);
	CU_ASSERT_EQUAL(d->numa, 0);
	inventory_free(&list);
	CU_ASSERT_EQUAL(inventory_read("nothing", 7, "bad.xml", &list, &e), ST_INPUT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "bad.xml:1: "));
	CU_ASSERT_EQUAL(list.device.n, 0);
	e = (struct error){0};
	CU_ASSERT_EQUAL(inventory_read(NULL, 0, "this host", &list, &e), ST_OK);
	CU_ASSERT_TRUE(list.threads >= 1 && list.mem_B > 0);
	inventory_free(&list);
}

UNIT_MAIN("view", {"words", test_words}, {"cells", test_cells}, {"groups", test_groups}, {"text", test_text},
	{"text of hosts", test_text_of_hosts}, {"hosts without NICs", test_hosts_without_nics}, {"makes", test_makes},
	{"wide", test_wide}, {"json", test_json}, {"json of hosts", test_json_of_hosts},
	{"json of many", test_json_of_many}, {"dot", test_dot}, {"svg", test_svg}, {"bare", test_bare},
	{"inventory", test_inventory})
