/* The link graph: labels, PCI addresses, what the check refuses, and JSON there and back. Rates by generation. */
#include <math.h>

#include "base/array.h"
#include "tests/unit/graph_rig.h"
#include "topology/graph/route.h"

static struct graph *plain(void)
{
	return rig_host(&(struct rig){.gpus = 4,
		.cpus = 2,
		.gpus_per_switch = 2,
		.pcie_gen = 4,
		.nics = 2,
		.nic_bits_per_s = 100e9});
}

static void test_vertices(void)
{
	struct graph *g = plain();
	CU_ASSERT_EQUAL(graph_entries(g), 6);
	CU_ASSERT_STRING_EQUAL(g->vertex.at[graph_entry(g, 3)].label, "GPU3");
	CU_ASSERT_STRING_EQUAL(g->vertex.at[graph_entry(g, 4)].label, "NIC0");
	CU_ASSERT_TRUE(graph_find_label(g, "HB1") >= 0);
	CU_ASSERT_TRUE(graph_find_label(g, "NET") >= 0);
	CU_ASSERT_EQUAL(graph_find_label(g, "HB2"), -1);
	CU_ASSERT_EQUAL(g->vertex.at[graph_find_label(g, "PCI1")].numa, -1);
	int32_t gpu0 = g->gpu.at[0], pci0 = graph_find_label(g, "PCI0");
	CU_ASSERT_PTR_NOT_NULL(graph_link(g, gpu0, pci0, LINK_PCIE));
	CU_ASSERT_PTR_EQUAL(graph_link(g, gpu0, pci0, LINK_PCIE), graph_link(g, pci0, gpu0, LINK_KINDS));
	CU_ASSERT_PTR_NULL(graph_link(g, gpu0, pci0, LINK_NVLINK));
	strcpy(g->vertex.at[gpu0].pci, "0000:1b:00.0");
	CU_ASSERT_EQUAL(graph_find_pci(g, "00000000:1B:00.0"), gpu0);
	CU_ASSERT_EQUAL(graph_find_pci(g, "1b:00.0"), gpu0);
	CU_ASSERT_EQUAL(graph_find_pci(g, "1b:00.1"), -1);
	CU_ASSERT_EQUAL(graph_find_pci(g, "gpu"), -1);
	graph_destroy(g);
	graph_destroy(NULL);
}

static void test_pci(void)
{
	static const struct {
		const char *text, *normal;
	} rows[] = {{"00000000:1B:00.0", "0000:1b:00.0"}, {"1b:00.0", "0000:1b:00.0"}, {"0001:00:00.0", "0001:00:00.0"},
		{"10000:e1:1f.7", "10000:e1:1f.7"}, {"ffffffff:ff:ff.0", "ffffffff:ff:ff.0"}, {"", NULL},
		{"1b:00", NULL}, {"1b:00.0x", NULL}, {" 1b:00.0", NULL}, {"-1:00.0", NULL}, {"0000:1b:00.0.0", NULL},
		{"N/A", NULL}, {"0x00:1b:00.0", NULL}, {"0000:-b:00.0", NULL}, {"0000: b:00.0", NULL}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[GRAPH_PCI] = "";
		bool ok = graph_normal_pci(rows[i].text, out);
		CU_ASSERT_EQUAL(ok, rows[i].normal != NULL);
		if (ok != (rows[i].normal != NULL))
			fprintf(stderr, "'%s' gave '%s'\n", rows[i].text, out);
		if (ok && rows[i].normal)
			CU_ASSERT_STRING_EQUAL(out, rows[i].normal);
	}
}

/* ---- the check ---- */

static void words(struct graph *g, const char *a, const char *b)
{
	g->words = calloc(36, sizeof *g->words);
	strcpy(g->words[1], a);
	strcpy(g->words[6], b);
}

static void twice(struct graph *g)
{
	graph_add_link(g,
		&(struct link){.a = g->link.at[0].b, .b = g->link.at[0].a, .kind = g->link.at[0].kind, .Bps = 1});
}
static void label(struct graph *g) { strcpy(g->vertex.at[g->gpu.at[2]].label, "GPU1"); }
static void order(struct graph *g) { strcpy(g->vertex.at[g->gpu.at[2]].label, "GPU7"); }
static void card(struct graph *g) { strcpy(g->vertex.at[g->gpu.at[2]].label, "card2"); }
static void list(struct graph *g) { g->gpu.n--; }
static void listed(struct graph *g) { g->gpu.at[1] = g->nic.at[0]; }
static void slots(struct graph *g)
{
	strcpy(g->vertex.at[g->gpu.at[0]].pci, "0000:01:00.0"), strcpy(g->vertex.at[g->nic.at[0]].pci, "0000:01:00.0");
}
static void slot(struct graph *g) { strcpy(g->vertex.at[g->gpu.at[0]].pci, "0000:1B:00.0"); }
static void range(struct graph *g) { g->link.at[3].a = 1000; }
static void loop(struct graph *g) { g->link.at[3].a = g->link.at[3].b; }
static void still(struct graph *g) { g->link.at[0].Bps = 0; }
static void infinite(struct graph *g) { g->link.at[0].Bps = INFINITY; }
static void late(struct graph *g) { g->link.at[0].latency_s = NAN; }
static void ports(struct graph *g)
{
	struct vertex v = graph_vertex_init(VERTEX_NETWORK, SAID_BY_LINE);
	strcpy(v.label, "NET1");
	graph_add_vertex(g, &v);
}
static void apart(struct graph *g) { rig_vertex(g, VERTEX_GPU); }
static void wordless(struct graph *g) { words(g, "SIX", ""); }
static void unequal(struct graph *g) { words(g, "PIX", "NV4"); }
static void selfless(struct graph *g) { words(g, "X", ""); }

static void test_check(void)
{
	static const struct {
		void (*spoil)(struct graph *);
		const char *complaint;
	} rows[] = {
		{twice, "CPU0 and CPU1 are joined twice by socket"},
		{label, "two vertices have the label GPU1"},
		{order, "GPU 3 is labelled 'GPU3': labels are GPU and a number that rises"},
		{card, "GPU 2 is labelled 'card2': labels are GPU and a number that rises"},
		{list, "3 of 4 GPUs are listed"},
		{listed, "the list of GPUs names vertex 11, which is none"},
		{slots, "two vertices have the PCI address 0000:01:00.0"},
		{slot, "GPU0: '0000:1B:00.0' is no PCI address as it is kept"},
		{range, "link 3 joins vertices 1000 and 4 of 13"},
		{loop, "link 3 joins vertices 4 and 4 of 13"},
		{still, "link CPU0-CPU1: a rate of 0 B/s (0 by the datasheet)"},
		{infinite, "link CPU0-CPU1: a rate of inf B/s (0 by the datasheet)"},
		{late, "link CPU0-CPU1: a latency of nan s"},
		{ports, "2 network ports"},
		{apart, "no link leads from GPU0 to GPU4"},
		{wordless, "GPU0 to GPU1: 'SIX' is no word for a link"},
		{unequal, "GPU0 to GPU1 is PIX, but back it is NV4"},
		{selfless, "GPU0 to GPU1: the word is X"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct graph *g = plain();
		struct error e = {0};
		CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
		rows[i].spoil(g);
		CU_ASSERT_EQUAL(topology_check(g, &e), ST_INPUT);
		CU_ASSERT_STRING_EQUAL(e.text, rows[i].complaint);
		if (strcmp(e.text, rows[i].complaint))
			fprintf(stderr, "expected: %s\nfound:    %s\n", rows[i].complaint, e.text);
		graph_destroy(g);
	}
	/* GPUs that reach each other by NVLink alone are joined as well. */
	struct graph *g = graph_create(SAID_BY_LINE);
	rig_vertex(g, VERTEX_GPU);
	rig_vertex(g, VERTEX_GPU);
	rig_join(g, 0, 1, LINK_NVLINK, 2, rate_nvlink(70));
	CU_ASSERT_EQUAL(topology_check(g, NULL), ST_OK);
	graph_destroy(g);
}

/* ---- JSON ---- */

static struct graph *there_and_back(const struct graph *g)
{
	struct error e = {0};
	json_t *j = graph_json(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	char *text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	j = json_loads(text, 0, NULL);
	free(text);
	struct graph *back = NULL;
	CU_ASSERT_EQUAL(graph_parse(j, &back, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	json_decref(j);
	CU_ASSERT_PTR_NOT_NULL_FATAL(back);
	return back;
}

static void test_json(void)
{
	struct graph *g = plain();
	struct vertex *v = &g->vertex.at[g->gpu.at[2]];
	strcpy(g->host, "node7");
	strcpy(g->model, "A \"machine\" \xc3\xa9");
	strcpy(v->name, "NVIDIA H100");
	strcpy(v->pci, "0000:1b:00.0");
	strcpy(v->cores, "0-31,64-95");
	v->numa = 0;
	v->gpu = (struct gpu_facts){"h100-sxm", UINT64_C(85520809984), 90, 4, 5, 8, 16, 18, 4, 1.98e9, 1.0 / 3, 350,
		700, UINT64_C(0x8000000000000004), true, true};
	g->vertex.at[g->nic.at[1]].nic = (struct nic_facts){12.5e9, 2, true};
	g->vertex.at[0].cpu = (struct cpu_facts){0, "AMD EPYC", 1};
	g->link.at[1].assumed = true;
	g->link.at[1].Bps = 0.1 + 0.2;
	CU_ASSERT_EQUAL(graph_remark(g, true, NULL, "%d and %d differ", 1, 2), ST_OK);
	words(g, "SYS", "");
	struct graph *back = there_and_back(g);
	CU_ASSERT_TRUE(graph_same(g, back));
	CU_ASSERT_STRING_EQUAL(back->host, "node7");
	struct vertex *w = &back->vertex.at[back->gpu.at[2]];
	CU_ASSERT_EQUAL(w->gpu.throttle, UINT64_C(0x8000000000000004));
	CU_ASSERT_EQUAL(w->gpu.clock_max_Hz, 1.0 / 3);
	CU_ASSERT_EQUAL(back->link.at[1].Bps, 0.1 + 0.2);
	CU_ASSERT_EQUAL(back->vertex.at[0].cpu.package, 0);
	CU_ASSERT_EQUAL(back->vertex.at[1].cpu.package, -1);
	CU_ASSERT_STRING_EQUAL(back->remark.at[0].text, "1 and 2 differ");
	CU_ASSERT_STRING_EQUAL(back->words[1], "SYS");
	strcpy(back->host, "another");
	CU_ASSERT_TRUE(graph_same(g, back));
	w->gpu.power_limit_W = 351;
	CU_ASSERT_FALSE(graph_same(g, back));
	w->gpu.power_limit_W = 350;
	back->link.at[2].assumed = true;
	CU_ASSERT_FALSE(graph_same(g, back));
	graph_destroy(back);
	graph_destroy(g);
	/* Labels that rise while vertices do not: the order of the labels is kept. */
	g = plain();
	int32_t keep = g->gpu.at[0];
	strcpy(g->vertex.at[g->gpu.at[0]].label, "GPU8");
	strcpy(g->vertex.at[g->gpu.at[1]].label, "GPU10");
	strcpy(g->vertex.at[g->gpu.at[2]].label, "GPU0");
	memmove(&g->gpu.at[0], &g->gpu.at[2], 2 * sizeof keep);
	g->gpu.at[2] = keep;
	g->gpu.at[3] = g->gpu.at[2] + 1;
	for (size_t i = 0; i < g->vertex.n; i++)
		if (strcmp(g->vertex.at[i].label, "GPU10") == 0)
			g->gpu.at[3] = (int32_t)i;
	CU_ASSERT_EQUAL(topology_check(g, NULL), ST_OK);
	back = there_and_back(g);
	CU_ASSERT_EQUAL(memcmp(g->gpu.at, back->gpu.at, 4 * sizeof keep), 0);
	graph_destroy(back);
	graph_destroy(g);
}

static void refuses(const char *text, const char *complaint)
{
	struct graph *g = NULL;
	struct error e = {0};
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_EQUAL(graph_parse(j, &g, &e), ST_INPUT);
	CU_ASSERT_STRING_EQUAL(e.text, complaint);
	if (strcmp(e.text, complaint))
		fprintf(stderr, "expected: %s\nfound:    %s\n", complaint, e.text);
	CU_ASSERT_EQUAL(graph_parse(j, &g, NULL), ST_INPUT);
	json_decref(j);
}

#define GRAPH(more) \
	"{\"source\": \"hwloc\", \"vertices\": [{\"kind\": \"GPU\", \"label\": \"GPU0\", \"from\": \"hwloc\"}" more "}"

static void test_json_refusals(void)
{
	struct graph *g = NULL;
	refuses("[]", "topology: expected an object");
	refuses("{}", "topology: 'source' is missing");
	refuses("{\"source\": \"hearsay\"}", "topology: 'source': expected one of the words for it");
	refuses("{\"source\": \"hwloc\"}", "topology: 'vertices': expected a list");
	refuses(GRAPH("]"), "topology: 'links': expected a list");
	refuses(GRAPH(", {\"kind\": \"GPU\", \"label\": \"GPU1\", \"from\": \"hwloc\", \"colour\": 1}], \"links\": []"),
		"topology: vertices[1]: a key that does not belong here");
	refuses(GRAPH(", {\"kind\": \"GPU\", \"from\": \"hwloc\"}], \"links\": []"),
		"topology: vertices[1]: 'label' is missing");
	refuses(GRAPH(", {\"kind\": \"CPU\", \"label\": \"CPU0\", \"from\": \"hwloc\", \"numa\": 1e3}], \"links\": []"),
		"topology: vertices[1]: 'numa': expected a whole number of 32 bits");
	refuses(GRAPH(", {\"kind\": \"CPU\", \"label\": \"a label that is too long here\", \"from\": \"hwloc\"}], "
		      "\"links\": []"),
		"topology: vertices[1]: 'label': expected a text of less than 24 bytes");
	refuses(GRAPH("], \"links\": [{\"a\": 0, \"b\": 1, \"kind\": \"PCIe\", \"from\": \"hwloc\", \"Bps\": 1}]"),
		"topology: link 0 joins vertices 0 and 1 of 1");
	refuses(GRAPH("], \"links\": [{\"kind\": \"PCIe\", \"from\": \"hwloc\", \"Bps\": \"fast\"}]"),
		"topology: links[0]: 'Bps': expected a number");
	refuses(GRAPH("], \"links\": [], \"words\": [[\"X\"], []]"), "topology: words: expected 1 rows");
	refuses(GRAPH("], \"links\": [], \"more\": 1"), "topology: a key that does not belong here");
	CU_ASSERT_EQUAL(graph_parse(NULL, &g, NULL), ST_INPUT);
	CU_ASSERT_PTR_NULL(g);
}

static void test_rates(void)
{
	CU_ASSERT_EQUAL(rate_pcie(3, 16).Bps, 12e9);
	CU_ASSERT_EQUAL(rate_pcie(5, 8).Bps, 24e9);
	CU_ASSERT_EQUAL(rate_pcie(0, 0).Bps, 12e9);
	CU_ASSERT_EQUAL(rate_pcie(9, 16).Bps, rate_pcie(7, 16).Bps);
	CU_ASSERT_DOUBLE_EQUAL(rate_pcie(4, 16).datasheet_Bps, 31.507692e9, 1e3);
	CU_ASSERT_DOUBLE_EQUAL(rate_pcie(1, 16).datasheet_Bps, 4e9, 1);
	CU_ASSERT_EQUAL(pcie_gen_of_speed(16), 4);
	CU_ASSERT_EQUAL(pcie_gen_of_speed(2.5), 1);
	CU_ASSERT_EQUAL(pcie_gen_of_speed(7), 0);
	CU_ASSERT_EQUAL(rate_nvlink(90).Bps, 20.6e9);
	CU_ASSERT_EQUAL(rate_nvlink(0).Bps, 20e9);
	CU_ASSERT_EQUAL(rate_nvlink(89).Bps, 12e9);
	CU_ASSERT_EQUAL(rate_nvlink(120).Bps, 40.1e9);
	CU_ASSERT_EQUAL(nvlinks_most(80), 12);
	CU_ASSERT_EQUAL(nvlinks_most(0), 18);
	CU_ASSERT_EQUAL(rate_xgmi(0x90a).Bps, 36e9);
	CU_ASSERT_EQUAL(rate_xgmi(0x942).Bps, 48e9);
	CU_ASSERT_EQUAL(rate_xgmi(0x950).Bps, 57.6e9);
	CU_ASSERT_EQUAL(rate_socket("AMD EPYC 9654", 0).Bps, 16e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz", 0).Bps, 6e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) Platinum 8480+", 0).Bps, 22e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) Platinum 8168", 0).Bps, 10e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) Platinum 8167M CPU @ 2.00GHz", 0).Bps,
		10e9); /* of 2017: not the 67 of "Xeon 6767P" */
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) 6767P", 0).Bps, 40e9);
	CU_ASSERT_EQUAL(rate_socket("INTEL(R) XEON(R) PLATINUM 8570", 0).Bps, 40e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) Gold 5418Y", 0).Bps, 22e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) Silver 4410Y", 0).Bps, 22e9);
	CU_ASSERT_EQUAL(rate_socket("Intel(R) Xeon(R) CPU Max 9480", 0).Bps, 22e9);
	CU_ASSERT_EQUAL(rate_socket("Intel Xeon 6 (Granite Rapids)", 0).Bps, 40e9);
	CU_ASSERT_EQUAL(rate_socket("", 0).Bps, 10e9);
	CU_ASSERT_EQUAL(rate_socket("AMD EPYC 7763", 1).Bps, 48e9);
	CU_ASSERT_EQUAL(rate_network(0).Bps, 12.5e9);
	CU_ASSERT_EQUAL(rate_network(400e9).Bps, 50e9);
}

UNIT_MAIN("graph", {"vertices", test_vertices}, {"PCI addresses", test_pci}, {"check", test_check}, {"JSON", test_json},
	{"JSON refusals", test_json_refusals}, {"rates", test_rates})
