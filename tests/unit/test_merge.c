/* Joining sources: nvidia-smi's list of GPUs, two graphs of one host, and the remarks on what is found. The graphs are
 * built here; recorded machines are in test_discover.c. */
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/merge_case.h"
#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

static void test_query(void)
{
	struct graph *g = host(SAID_BY_HWLOC, 4, 2, true);
	query(g, HEADER A100("0", "1B") A100("1", "3D") A100("2", "9B") A100("3", "BD"));
	silent("a merged graph", g);
	const struct vertex *v = gpu(g, 2);
	CU_ASSERT_STRING_EQUAL(v->name, "NVIDIA A100-SXM4-80GB");
	CU_ASSERT_STRING_EQUAL(v->pci, "0000:9b:00.0");
	CU_ASSERT_EQUAL(v->gpu.mem_B, UINT64_C(81920) << 20);
	CU_ASSERT_EQUAL(v->gpu.compute_capability, 80);
	CU_ASSERT_EQUAL(v->gpu.pcie_gen, 4);
	CU_ASSERT_EQUAL(v->gpu.pcie_gen_max, 4);
	CU_ASSERT_EQUAL(v->gpu.pcie_width, 16);
	CU_ASSERT_EQUAL(v->gpu.pcie_width_max, 16);
	CU_ASSERT_EQUAL(v->gpu.clock_Hz, 1410e6);
	CU_ASSERT_EQUAL(v->gpu.clock_max_Hz, 1410e6);
	CU_ASSERT_EQUAL(v->gpu.power_limit_W, 400);
	CU_ASSERT_EQUAL(v->gpu.power_default_W, 400);
	CU_ASSERT_EQUAL(v->gpu.throttle, 0);
	CU_ASSERT_EQUAL(v->numa, 1);
	graph_destroy(g);
}

static void test_query_spellings(void)
{
	/* no header, in SMI_QUERY's order, without units */
	struct graph *g = host(SAID_BY_HWLOC, 1, 0, true);
	query(g, "0, 00000000:1B:00.0, Tesla V100-SXM2-16GB, 16384, 7.0, 3, 3, 16, 16, 135, 1530, 300.00, 300.00, "
		 "0x0000000000000001\r\n");
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.mem_B, UINT64_C(16384) << 20);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.clock_Hz, 135e6);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.throttle, 1);
	graph_destroy(g);
	/* the newer name of the mask, other columns between, another order, no answer in several ways */
	g = host(SAID_BY_HWLOC, 1, 0, true);
	query(g, "timestamp, clocks_event_reasons.active, uuid, gpu_name, gpu_bus_id, memory.total [MiB], power.limit "
		 "[W], pcie.link.gen.max, compute_cap\n"
		 "2026/01/01 00:00:00.000, 0x0000000000000044, GPU-1, NVIDIA GB10, 00000000:1B:00.0, [N/A], [Not "
		 "Supported], N/A, 12.1\n\n");
	CU_ASSERT_STRING_EQUAL(gpu(g, 0)->name, "NVIDIA GB10");
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.throttle, 0x44);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.compute_capability, 121);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.mem_B, 0);
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.power_limit_W, 0);
	silent("a merged graph", g);
	graph_destroy(g);
}

/* By number where the graph has no addresses; a GPU that the graph lacks gets a slot of its own. */
static void test_query_joins(void)
{
	struct graph *g = host(SAID_BY_SMI_TOPO, 2, 0, false);
	query(g, HEADER A100("0", "1B") A100("1", "3D"));
	CU_ASSERT_STRING_EQUAL(gpu(g, 1)->pci, "0000:3d:00.0");
	query(g, HEADER A100("0", "1B") A100("1", "3D") A100("2", "9B"));
	CU_ASSERT_EQUAL(g->gpu.n, 3);
	CU_ASSERT_STRING_EQUAL(gpu(g, 2)->label, "GPU2");
	silent("a merged graph", g);
	graph_destroy(g);
	g = graph_create(SAID_BY_HWLOC);
	query(g, HEADER A100("0", "1B") A100("1", "3D"));
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	graph_destroy(g);
}

static void test_query_trouble(void)
{
	struct graph *g = host(SAID_BY_HWLOC, 4, 0, true);
	query(g,
		HEADER A100("0",
			"1B") "Unable to determine the device handle for GPU0000:3D:00.0: GPU is lost.  Reboot the "
			      "system to recover this GPU\n"
			      "2, 00000000:9B:00.0, NVIDIA A100-SXM4-80GB, [GPU requires reset], 8.0, ERR!, 4, 16, 16, "
			      "1410 MHz, 1410 MHz, 400.00 W, 400.00 W, 0x0\n" A100("3", "BD"));
	CU_ASSERT_EQUAL(g->remark.n, 3);
	CU_ASSERT_TRUE(remarked(g, false,
		"nvidia-smi: Unable to determine the device handle for GPU0000:3D:00.0: GPU is lost."));
	CU_ASSERT_TRUE(remarked(g, true, "hwloc has 4 GPUs, nvidia-smi lists 3: GPU1 is missing there"));
	graph_destroy(g);
	g = host(SAID_BY_HWLOC, 1, 0, true);
	query(g, "index, name, pci.bus_id\n0, [Unknown Error], 00000000:1B:00.0\n");
	CU_ASSERT_TRUE(remarked(g, false, "GPU0 does not answer the driver in full: nvidia-smi says [Unknown Error]"));
	graph_destroy(g);
	g = graph_create(SAID_BY_HWLOC);
	query(g, "No devices were found\n");
	CU_ASSERT_TRUE(remarked(g, false, "nvidia-smi: No devices were found"));
	graph_destroy(g);
}

static void refuses(const char *text, const char *complaint)
{
	struct graph *g = host(SAID_BY_HWLOC, 1, 1, true);
	struct error e = {0};
	CU_ASSERT_EQUAL(smi_query_read(text, strlen(text), "query.csv", g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, complaint);
	graph_destroy(g);
}

static void test_query_refusals(void)
{
	refuses("", "query.csv:1: empty: expected what nvidia-smi --query-gpu --format=csv prints");
	refuses("hello\n", "query.csv:1: 1 cells where nvidia-smi --query-gpu=index,pci.bus_id,... has 14 columns");
	refuses("index, name\n0, A, B\n", "query.csv:2: 3 cells where the header has 2 columns");
	refuses("name, compute_cap\nA, 9.0\n",
		"query.csv:1: neither index nor pci.bus_id is among the columns: nobody can say which GPU a row is");
	refuses("index, memory.total [MiB]\n0, 80 apples\n",
		"query.csv:2: memory.total: '80 apples' is not a quantity in range");
	refuses("index, memory.total [MiB]\n\n0, -1 MiB\n",
		"query.csv:3: memory.total: '-1 MiB' is not a quantity in range");
	refuses("index, compute_cap\n0, ninety\n",
		"query.csv:2: compute_cap: 'ninety' is not a compute capability like 9.0");
	refuses("index, pcie.link.width.max\n0, 1000000\n",
		"query.csv:2: pcie.link.width.max: '1000000' is not a number in range");
	refuses("index, pcie.link.gen.max\n0, 3.5\n", "query.csv:2: pcie.link.gen.max: '3.5' is not a whole number");
	refuses("index, clocks_event_reasons.active\n0, Active\n",
		"query.csv:2: clocks_throttle_reasons.active: 'Active' is not a mask like 0x0000000000000004");
	refuses("index, pci.bus_id\n0, there\n", "query.csv:2: pci.bus_id: 'there' is not a PCI address");
	refuses("index, pci.bus_id\n0, 00000000:1C:00.0\n",
		"query.csv:2: the device at 0000:1c:00.0 is a NIC, not a GPU");
}

static void merge(struct graph *base, struct graph *more)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_merge(base, more, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	sound(base);
	sound(more);
	graph_destroy(more);
}

static void test_merge_facts(void)
{
	struct graph *g = host(SAID_BY_HWLOC, 4, 2, true), *more = host(SAID_BY_SMI_TOPO, 4, 2, false);
	snprintf(more->vertex.at[more->gpu.at[3]].cores, GRAPH_CORES, "16-31");
	mesh(more, 4);
	merge(g, more);
	silent("a merged graph", g);
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	CU_ASSERT_EQUAL(g->nic.n, 2);
	CU_ASSERT_STRING_EQUAL(gpu(g, 3)->cores, "16-31");
	struct link *l = graph_link(g, g->gpu.at[0], g->gpu.at[3], LINK_NVLINK);
	CU_ASSERT_PTR_NOT_NULL_FATAL(l);
	CU_ASSERT_EQUAL(l->width, 4);
	CU_ASSERT_EQUAL(l->from, SAID_BY_SMI_TOPO);
	graph_destroy(g);
}

static void test_merge_contradictions(void)
{
	/* NUMA: the tree's own source stays; lanes: the driver is believed */
	struct graph *g = host(SAID_BY_HWLOC, 2, 0, true), *more = host(SAID_BY_SMI_TOPO, 2, 0, true);
	g->vertex.at[g->gpu.at[0]].gpu.pcie_width = 16;
	more->vertex.at[more->gpu.at[0]].gpu.pcie_width = 8;
	more->vertex.at[more->gpu.at[1]].numa = 1;
	merge(g, more);
	CU_ASSERT_TRUE(remarked(g, true, "GPU0 has PCIe x16 according to hwloc, x8 according to nvidia-smi topo"));
	CU_ASSERT_TRUE(remarked(g, true,
		"GPU1 is on NUMA node 0 according to hwloc, on 1 according to nvidia-smi topo: hwloc is believed"));
	CU_ASSERT_EQUAL(gpu(g, 0)->gpu.pcie_width, 8);
	CU_ASSERT_EQUAL(gpu(g, 1)->numa, 0);
	CU_ASSERT_EQUAL(g->remark.n, 2);
	graph_destroy(g);
	/* the number of GPUs */
	g = host(SAID_BY_HWLOC_XML, 2, 0, true);
	merge(g, host(SAID_BY_NCCL_XML, 4, 0, true));
	CU_ASSERT_EQUAL(g->gpu.n, 4);
	CU_ASSERT_TRUE(remarked(g, true, "hwloc xml has 2 GPUs, nccl xml 4"));
	char word[GRAPH_WORD];
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[2], g->gpu.at[3], word, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, "PIX");
	graph_destroy(g);
	/* the tree: GPU1 on the other socket */
	g = host(SAID_BY_HWLOC, 2, 0, true);
	more = host(SAID_BY_NCCL_XML, 4, 0, true);
	for (size_t i = 1; i < 4; i++)
		snprintf(more->vertex.at[more->gpu.at[i]].pci, GRAPH_PCI, "%s", gpu_pci[4 - i]); /* 1b, bd, 9b, 3d */
	merge(g, more);
	CU_ASSERT_TRUE(remarked(g, true, "GPU0-GPU1 is PIX according to hwloc, SYS according to nccl xml"));
	graph_destroy(g);
}

static void test_merge_nvlinks(void)
{
	/* the same count: only the better witness is noted */
	struct graph *g = host(SAID_BY_NCCL_XML, 4, 0, true), *more = host(SAID_BY_SMI_TOPO, 4, 0, false);
	mesh(g, 4);
	mesh(more, 4);
	merge(g, more);
	silent("a merged graph", g);
	CU_ASSERT_EQUAL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->from, SAID_BY_SMI_TOPO);
	/* a worse witness loses, and is named */
	more = host(SAID_BY_HWLOC, 4, 0, true);
	mesh(more, 3);
	merge(g, more);
	CU_ASSERT_TRUE(remarked(g, true,
		"GPU0 has 12 NVLinks according to nvidia-smi topo, 9 according to hwloc, and other GPUs differ as "
		"well: nvidia-smi topo is believed"));
	CU_ASSERT_EQUAL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK)->width, 4);
	graph_destroy(g);
	/* a better one wins: links to a switch in place of a mesh, the old switch gone */
	g = host(SAID_BY_SMI_TOPO, 4, 0, false);
	mesh(g, 4);
	g->words = calloc(16, sizeof *g->words);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->words);
	for (size_t i = 0; i < 16; i++)
		strcpy(g->words[i], i % 5 == 0 ? "X" : "NV4");
	more = graph_create(SAID_BY_NVML);
	int32_t nvswitch = add(more, VERTEX_NVSWITCH, -1, "", "");
	for (size_t i = 0; i < 4; i++)
		add_link(more, add(more, VERTEX_GPU, -1, gpu_pci[i], ""), nvswitch, LINK_NVLINK, 12, 240e9);
	merge(g, more);
	CU_ASSERT_TRUE(remarked(g, true,
		"NVLinks join other GPUs according to nvidia-smi topo than according to nvml: nvml is believed"));
	CU_ASSERT_PTR_NULL(graph_link(g, g->gpu.at[0], g->gpu.at[1], LINK_NVLINK));
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	CU_ASSERT_STRING_EQUAL(g->words[0 * 4 + 3], "NV12");
	/* and NVML's word that there are none */
	more = graph_create(SAID_BY_NVML);
	for (size_t i = 0; i < 4; i++)
		add(more, VERTEX_GPU, -1, gpu_pci[i], "");
	struct error e = {0};
	g->vertex.at[g->gpu.at[0]].from = SAID_BY_SMI_TOPO;
	for (size_t i = 0; i < g->link.n; i++)
		g->link.at[i].from = SAID_BY_SMI_TOPO;
	CU_ASSERT_EQUAL(graph_merge(g, more, &e), ST_OK);
	graph_destroy(more);
	CU_ASSERT_TRUE(remarked(g, true, "GPU0 has 12 NVLinks according to nvidia-smi topo, 0 according to nvml"));
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "pcie");
	CU_ASSERT_STRING_EQUAL(g->words[0 * 4 + 3],
		""); /* the dump had an NVLink there, and nothing tells the PCIe way below it */
	sound(g);
	graph_destroy(g);
	/* hwloc's silence is no statement */
	g = host(SAID_BY_SMI_TOPO, 4, 0, false);
	mesh(g, 4);
	merge(g, host(SAID_BY_HWLOC, 4, 0, true));
	silent("a merged graph", g);
	graph_destroy(g);
}

/* A NIC without address, which the matrix puts beside GPU2, goes under GPU2's switch. */
static void test_merge_nics(void)
{
	struct graph *g = host(SAID_BY_NCCL_XML, 4, 0, true), *more = host(SAID_BY_SMI_TOPO, 4, 2, false);
	char word[GRAPH_WORD];
	struct error e = {0};
	merge(g, more);
	silent("a merged graph", g);
	CU_ASSERT_EQUAL_FATAL(g->nic.n, 2);
	CU_ASSERT_STRING_EQUAL(g->vertex.at[g->nic.at[1]].name, "mlx5_1");
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[2], g->nic.at[1], word, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, "PIX");
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[0], g->nic.at[1], word, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, "SYS");
	graph_destroy(g);
}

/* Words keep their places when GPUs come and go. */
static void test_words(void)
{
	struct graph *g = host(SAID_BY_SMI_TOPO, 2, 1, false);
	static const char *const words[9] = {"X", "NV4", "PIX", "NV4", "X", "PXB", "PIX", "PXB", "X"};
	g->words = calloc(9, sizeof *g->words);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->words);
	for (size_t i = 0; i < 9; i++)
		snprintf(g->words[i], GRAPH_WORD, "%s", words[i]);
	struct vertex v = graph_vertex_init(VERTEX_GPU, SAID_BY_SMI_QUERY);
	int32_t at = join_add(g, &v);
	struct error e = {0};
	CU_ASSERT_EQUAL(join_attach(g, at, 4, 16, SAID_BY_SMI_QUERY, &e), ST_OK);
	sound(g);
	CU_ASSERT_STRING_EQUAL(g->words[0 * 4 + 3], "PIX");
	CU_ASSERT_STRING_EQUAL(g->words[3 * 4 + 1], "PXB");
	CU_ASSERT_STRING_EQUAL(g->words[2 * 4 + 2], "X");
	CU_ASSERT_STRING_EQUAL(g->words[2 * 4 + 0], "");
	bool keep[32];
	int32_t moved[32];
	for (size_t i = 0; i < g->vertex.n; i++)
		keep[i] = (int32_t)i != g->gpu.at[0];
	CU_ASSERT_EQUAL(join_keep(g, keep, moved, &e), ST_OK);
	sound(g);
	CU_ASSERT_EQUAL(g->gpu.n, 2);
	CU_ASSERT_STRING_EQUAL(gpu(g, 0)->label, "GPU0");
	CU_ASSERT_STRING_EQUAL(g->words[0 * 3 + 2], "PXB");
	CU_ASSERT_STRING_EQUAL(g->words[2 * 3 + 0], "PXB");
	graph_destroy(g);
}

/* Words that the dump leaves out come from the other source, where that has them. */
static void test_words_filled(void)
{
	struct graph *g = host(SAID_BY_SMI_TOPO, 3, 1, false), *more = host(SAID_BY_HWLOC_XML, 3, 1, false);
	char word[GRAPH_WORD], theirs[GRAPH_WORD];
	struct error e = {0};
	g->words = calloc(16, sizeof *g->words);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g->words);
	for (size_t i = 0; i < 4; i++)
		strcpy(g->words[i * 4 + i], "X");
	strcpy(g->words[0 * 4 + 1], "PHB");
	strcpy(g->words[1 * 4 + 0], "PHB");
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[1], g->gpu.at[2], word, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, "");
	CU_ASSERT_EQUAL(graph_merge(g, more, &e), ST_OK);
	sound(g);
	CU_ASSERT_EQUAL(graph_word(more, more->gpu.at[1], more->gpu.at[2], theirs, &e), ST_OK);
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[1], g->gpu.at[2], word, &e), ST_OK);
	CU_ASSERT_NOT_EQUAL(theirs[0], '\0');
	CU_ASSERT_STRING_EQUAL(word, theirs);
	CU_ASSERT_EQUAL(graph_word(g, g->gpu.at[0], g->gpu.at[1], word, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, "PHB");
	graph_destroy(g);
	graph_destroy(more);
}

UNIT_MAIN("merge", {"nvidia-smi's list", test_query}, {"its spellings", test_query_spellings},
	{"its joins", test_query_joins}, {"GPUs in trouble", test_query_trouble}, {"refusals", test_query_refusals},
	{"facts", test_merge_facts}, {"contradictions", test_merge_contradictions}, {"NVLinks", test_merge_nvlinks},
	{"NICs", test_merge_nics}, {"words", test_words}, {"words filled", test_words_filled})
