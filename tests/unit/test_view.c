/* Tests the text of `stepsim topo` for graphs made by hand and system lines: exact cells, groups, makes of hosts, and
 * the inventory of a host. */
#include "base/array.h"
#include "viewed.h"

#include <math.h>

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
	{"wide", test_wide}, {"inventory", test_inventory})
