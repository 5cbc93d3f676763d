/* Placements of ranks on hosts that are built by hand: the graph here, the cores by hwloc's synthetic description. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "topology/machine.h"
#include "topology/placement.h"

#define TWO_NODES "numa:2 core:64 pu:1" /* CPUs 0-63 and 64-127 */

#define MANY 200

static struct placement placements[MANY];

static struct error e;

/* The same list for each rank. */
static const char *const *all(const char *allowed)
{
	static const char *lists[MANY];
	for (size_t i = 0; i < MANY; i++)
		lists[i] = allowed;
	return lists;
}

static enum status place(const char *host, const struct graph *g, const char *allowed, int64_t ranks, bool use_gpus,
	bool share_gpu)
{
	e = (struct error){ST_OK, ""};
	memset(placements, 0xff, sizeof placements);
	setenv("HWLOC_SYNTHETIC", host, 1);
	enum status st = placement_choose(g, all(allowed), ranks, use_gpus, share_gpu, placements, &e);
	unsetenv("HWLOC_SYNTHETIC");
	return st;
}

/* The quota of the machine that runs this test takes its part; what it does is tested by test_quota. */
static void same_placement(int64_t rank, int64_t ranks, const char *cores, int64_t n_cores, int64_t host_cores,
	bool shared)
{
	const struct placement *s = &placements[rank];
	int64_t quota = host_quota(host_cores), each = quota > ranks ? quota / ranks : 1;
	CU_ASSERT_STRING_EQUAL(s->cores, cores);
	CU_ASSERT_EQUAL(s->n_cores, n_cores < each ? n_cores : each);
	CU_ASSERT_EQUAL(s->host_cores, quota);
	CU_ASSERT_EQUAL(s->shared, shared || quota < ranks);
}

static int32_t add(struct graph *g, enum vertex_kind kind, int32_t numa, const char *name, const char *pci)
{
	struct vertex v = graph_vertex_init(kind, SAID_BY_HWLOC);
	v.numa = numa;
	snprintf(v.name, sizeof v.name, "%s", name);
	snprintf(v.pci, sizeof v.pci, "%s", pci);
	return graph_add_vertex(g, &v);
}

static void join(struct graph *g, int32_t a, int32_t b, enum link_kind kind)
{
	CU_ASSERT_TRUE_FATAL(graph_add_link(g, &(struct link){.a = a,
						       .b = b,
						       .kind = kind,
						       .Bps = 24e9,
						       .latency_s = 1e-6,
						       .from = SAID_BY_HWLOC}) >= 0);
}

/* Two NUMA nodes with four GPUs each; two GPUs and two NICs behind each PCIe switch. */
static struct graph *eight_gpus(void)
{
	struct graph *g = graph_create(SAID_BY_HWLOC);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	int32_t cpu[2], device = 0;
	for (int32_t n = 0; n < 2; n++)
		cpu[n] = add(g, VERTEX_CPU, n, "", "");
	join(g, cpu[0], cpu[1], LINK_SOCKET);
	for (int32_t s = 0; s < 4; s++) {
		int32_t bridge = add(g, VERTEX_BRIDGE, s / 2, "", ""), pci = add(g, VERTEX_PCI_SWITCH, s / 2, "", "");
		join(g, bridge, cpu[s / 2], LINK_LOCAL);
		join(g, pci, bridge, LINK_PCIE);
		for (int32_t i = 0; i < 4; i++) {
			char address[GRAPH_PCI], name[16];
			snprintf(address, sizeof address, "0000:%02x:00.0", 16 + device++);
			snprintf(name, sizeof name, "mlx5_%d", 2 * s + i % 2);
			int32_t v = i < 2 ? add(g, VERTEX_GPU, s / 2, "NVIDIA H100 80GB HBM3", address)
			                  : add(g, VERTEX_NIC, s / 2, name, address);
			join(g, v, pci, LINK_PCIE);
		}
	}
	int32_t port = add(g, VERTEX_NETWORK, -1, "", "");
	for (size_t i = 0; i < g->nic.n; i++)
		join(g, g->nic.at[i], port, LINK_NETWORK);
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	return g;
}

static void set_cores(struct graph *g, int32_t vertex, const char *cores)
{
	snprintf(g->vertex.at[vertex].cores, GRAPH_CORES, "%s", cores);
}

/* ---- without GPUs ---- */

static void test_cores(void)
{
	CU_ASSERT_EQUAL(place("core:4 pu:1", NULL, "", 2, false, false), ST_OK);
	same_placement(0, 2, "0-1", 2, 4, false);
	same_placement(1, 2, "2-3", 2, 4, false);
	CU_ASSERT_EQUAL(placements[0].gpu, -1);
	CU_ASSERT_STRING_EQUAL(placements[0].nic, "");
	/* Cores that do not divide evenly stay unused, because a step waits for the smallest share. */
	CU_ASSERT_EQUAL(place(TWO_NODES, NULL, "0-127", 3, false, false), ST_OK);
	same_placement(0, 3, "0-41", 42, 128, false);
	same_placement(2, 3, "84-125", 42, 128, false);
	CU_ASSERT_EQUAL(place("core:2 pu:1", NULL, "0-1", 4, false, false), ST_OK);
	same_placement(0, 4, "0", 1, 2, true);
	same_placement(1, 4, "0", 1, 2, true);
	same_placement(2, 4, "1", 1, 2, true);
	same_placement(3, 4, "1", 1, 2, true);
	CU_ASSERT_EQUAL(place("core:1 pu:1", NULL, "", 1, false, false), ST_OK);
	same_placement(0, 1, "0", 1, 1, false);
}

/* A core goes with all of its hardware threads, as far as they are allowed. */
static void test_threads(void)
{
	CU_ASSERT_EQUAL(place("core:8 pu:2", NULL, "", 4, false, false), ST_OK);
	same_placement(0, 4, "0-3", 2, 8, false);
	same_placement(3, 4, "12-15", 2, 8, false);
	CU_ASSERT_EQUAL(place("core:8 pu:2", NULL, "0,2-5,15", 2, false, false), ST_OK);
	same_placement(0, 2, "0,2-3", 2, 4, false);
	same_placement(1, 2, "4-5,15", 2, 4, false);
	/* Threads numbered as Linux does on x86: all first ones, then all second ones. */
	CU_ASSERT_EQUAL(place("core:4 pu:2(indexes=0,4,1,5,2,6,3,7)", NULL, "", 2, false, false), ST_OK);
	same_placement(0, 2, "0-1,4-5", 2, 4, false);
	same_placement(1, 2, "2-3,6-7", 2, 4, false);
}

static void test_lists(void)
{
	static const char *const bad[] = {"x", "0-", "-3", "3-1", "0,,1", "0,", "0 1", "0-1-2", "0x3",
		"99999999999999999999", "65536", "0-3;5", "1.5"};
	for (size_t i = 0; i < COUNT(bad); i++) {
		CU_ASSERT_EQUAL(place(TWO_NODES, NULL, bad[i], 1, false, false), ST_INPUT);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, bad[i]));
	}
	CU_ASSERT_EQUAL(place(TWO_NODES, NULL, "3,1,7-8,64,7", 1, false, false), ST_OK);
	same_placement(0, 1, "1,3,7-8,64", 5, 5, false);
	/* CPUs that this host does not have: one is left, or none. */
	CU_ASSERT_EQUAL(place(TWO_NODES, NULL, "127-65535", 1, false, false), ST_OK);
	same_placement(0, 1, "127", 1, 1, false);
	CU_ASSERT_EQUAL(place(TWO_NODES, NULL, "128", 1, false, false), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "hwloc finds none of the CPUs that this process may use");
}

static void scattered(unsigned cpus, char *list)
{
	for (unsigned cpu = 0; cpu < cpus; cpu += 2)
		list += sprintf(list, "%s%u", cpu ? "," : "", cpu);
}

/* A placement's list is complete or refused: a shortened one would bind to fewer cores in silence. */
static void test_long_lists(void)
{
	static char list[4 * PLACEMENT_CORES], text[PLACEMENT_TEXT];
	scattered(1024, list);
	CU_ASSERT_EQUAL(place("core:2048 pu:1", NULL, list, 1, false, false), ST_OK);
	same_placement(0, 1, list, 512, 512, false);
	placement_text(&placements[0], NULL, "vm", 0, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "cores 0,2,4,6,"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, ",106,..., no GPU"));
	scattered(2048, list);
	CU_ASSERT_EQUAL(place("core:2048 pu:1", NULL, list, 1, false, false), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "the CPUs of local rank 0 are too scattered"));
	CU_ASSERT_EQUAL(place("core:2048 pu:1", NULL, list, 4, false, false), ST_OK);
	CU_ASSERT_EQUAL(strncmp(placements[3].cores, "1536,1538,", 10), 0);
}

/* ---- with GPUs ---- */

static void test_gpus(void)
{
	struct graph *g = eight_gpus();
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 8, true, false), ST_OK);
	static const char *const cores[] = {"0-15", "16-31", "32-47", "48-63", "64-79", "80-95", "96-111", "112-127"};
	static const char *const nics[] = {"NIC0", "NIC1", "NIC2", "NIC3", "NIC4", "NIC5", "NIC6", "NIC7"};
	for (int32_t r = 0; r < 8; r++) {
		same_placement(r, 8, cores[r], 16, 128, false);
		CU_ASSERT_EQUAL(placements[r].gpu, r);
		CU_ASSERT_STRING_EQUAL(placements[r].nic, nics[r]);
	}
	/* Four ranks have the first four GPUs, all on node 0: node 1's cores are left to nobody. */
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 4, true, false), ST_OK);
	same_placement(0, 4, "0-15", 16, 128, false);
	same_placement(3, 4, "48-63", 16, 128, false);
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 5, true, false), ST_OK);
	same_placement(3, 5, "48-63", 16, 128, false);
	same_placement(4, 5, "64-127", 64, 128, false);
	/* GPUs are there, but the run does not want them. */
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 4, false, false), ST_OK);
	same_placement(1, 4, "32-63", 32, 128, false);
	CU_ASSERT_EQUAL(placements[1].gpu, -1);
	CU_ASSERT_STRING_EQUAL(placements[1].nic, "");
	graph_destroy(g);
}

/* CUDA's numbers need not be the graph's: each rank gets what belongs to its own GPU, two ranks of one GPU share that
 * out. */
static void test_given_gpus(void)
{
	static const int32_t crossed[] = {7, 0, 4}, twice[] = {5, 5};
	struct graph *g = eight_gpus();
	setenv("HWLOC_SYNTHETIC", TWO_NODES, 1);
	CU_ASSERT_EQUAL(placement_choose_at(g, all(""), 3, crossed, placements, &e), ST_OK);
	same_placement(0, 3, "64-95", 32, 128, false);
	same_placement(1, 3, "0-63", 64, 128, false);
	same_placement(2, 3, "96-127", 32, 128, false);
	CU_ASSERT_EQUAL(placements[0].gpu, 7);
	CU_ASSERT_STRING_EQUAL(placements[0].nic, "NIC7");
	CU_ASSERT_STRING_EQUAL(placements[1].nic, "NIC0");
	CU_ASSERT_EQUAL(placement_choose_at(g, all("60-70"), 2, twice, placements, &e), ST_OK);
	same_placement(0, 2, "64-66", 3, 11, false);
	same_placement(1, 2, "67-69", 3, 11, false);
	CU_ASSERT_EQUAL(placement_choose_at(g, all("a"), 2, twice, placements, &e), ST_INPUT);
	unsetenv("HWLOC_SYNTHETIC");
	graph_destroy(g);
}

static void place_bound(const struct graph *g, const char *const *own, int64_t ranks)
{
	setenv("HWLOC_SYNTHETIC", TWO_NODES, 1);
	CU_ASSERT_EQUAL_FATAL(placement_choose(g, own, ranks, g != NULL, false, placements, &e), ST_OK);
	unsetenv("HWLOC_SYNTHETIC");
}

/* Ranks that their user bound: each keeps to its own CPUs, also those that are far from its GPU. */
static void test_bound(void)
{
	static const char *const apart[] = {"5-6", "0", "70-71"}, *const equal[] = {"8-11", "8-11", "0"},
				 *const inside[] = {"1", "0-1"}, *const outside[] = {"0-2", "3"};
	place_bound(NULL, apart, 3);
	same_placement(0, 3, "5-6", 2, 5, false);
	same_placement(1, 3, "0", 1, 5, false);
	same_placement(2, 3, "70-71", 2, 5, false);
	place_bound(NULL, equal, 3);
	same_placement(0, 3, "8-9", 2, 5, false);
	same_placement(1, 3, "10-11", 2, 5, false);
	same_placement(2, 3, "0", 1, 5, false);
	place_bound(NULL, inside, 2);
	same_placement(0, 2, "1", 1, 2, true);
	same_placement(1, 2, "0-1", 2, 2, true);
	struct graph *g = eight_gpus();
	place_bound(g, outside, 2);
	same_placement(0, 2, "0-2", 3, 4, false);
	same_placement(1, 2, "3", 1, 4, false);
	graph_destroy(g);
}

/* Who says where a GPU is: its own list before its node, the graph's list of a node before hwloc's. */
static void test_lists_of_the_graph(void)
{
	struct graph *g = eight_gpus();
	set_cores(g, 0, "0-31"); /* node 0 */
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 8, true, false), ST_OK);
	same_placement(0, 8, "0-7", 8, 128, false);
	same_placement(3, 8, "24-31", 8, 128, false);
	same_placement(4, 8, "64-79", 16, 128, false);
	for (int32_t r = 0; r < 4; r++)
		set_cores(g, g->gpu.at[r], r < 2 ? "40-43" : "44-51");
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 4, true, false), ST_OK);
	same_placement(0, 4, "40-41", 2, 128, false);
	same_placement(1, 4, "42-43", 2, 128, false);
	same_placement(2, 4, "44-47", 4, 128, false);
	same_placement(3, 4, "48-51", 4, 128, false);
	/* Lists that overlap are divided as one, so that no core goes to two ranks. */
	set_cores(g, g->gpu.at[1], "42-47");
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 4, true, false), ST_OK);
	same_placement(0, 4, "40-42", 3, 128, false);
	same_placement(1, 4, "43-45", 3, 128, false);
	same_placement(3, 4, "49-51", 3, 128, false);
	set_cores(g, g->gpu.at[2], "44-");
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 4, true, false), ST_INPUT);
	CU_ASSERT_EQUAL(strncmp(e.text, "GPU2: '44-' is no list of CPUs", 30), 0);
	graph_destroy(g);
}

static void test_odd_nodes(void)
{
	struct graph *g = eight_gpus();
	/* Odd lists. Node 0 keeps five cores for four ranks, node 1 two. */
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "1,3,5,60-61,100,127", 8, true, false), ST_OK);
	same_placement(0, 8, "1", 1, 7, false);
	same_placement(3, 8, "60", 1, 7, false);
	same_placement(4, 8, "100", 1, 7, true);
	same_placement(5, 8, "100", 1, 7, true);
	same_placement(6, 8, "127", 1, 7, true);
	/* Node 1 has none allowed: its ranks get of what there is, and with that the eight share it evenly. */
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "0-15", 8, true, false), ST_OK);
	for (int64_t r = 0; r < 8; r++) {
		char cores[16];
		snprintf(cores, sizeof cores, "%lld-%lld", (long long)(2 * r), (long long)(2 * r + 1));
		same_placement(r, 8, cores, 2, 16, false);
	}
	/* A GPU whose node is not known, or that hwloc does not have. */
	static const int32_t nodes[] = {-1, 7};
	for (size_t i = 0; i < 2; i++) {
		g->vertex.at[g->gpu.at[0]].numa = nodes[i];
		CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 1, true, false), ST_OK);
		same_placement(0, 1, "0-127", 128, 128, false);
	}
	graph_destroy(g);
}

static void test_too_few_gpus(void)
{
	struct graph *g = eight_gpus(), *none = graph_create(SAID_BY_HWLOC);
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 9, true, false), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text,
		"this host has 8 GPUs for 9 ranks; run.share_gpu=true lets ranks share them, for correctness only");
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 10, true, true), ST_OK);
	CU_ASSERT_EQUAL(placements[7].gpu, 7);
	CU_ASSERT_EQUAL(placements[8].gpu, 0);
	CU_ASSERT_EQUAL(placements[9].gpu, 1);
	CU_ASSERT_STRING_EQUAL(placements[9].nic, "NIC1");
	/* Six ranks on node 0, four on node 1 */
	same_placement(0, 10, "0-9", 10, 128, false);
	same_placement(8, 10, "40-49", 10, 128, false);
	same_placement(4, 10, "64-79", 16, 128, false);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(place(TWO_NODES, i ? none : NULL, "", 1, true, true), ST_RUN);
		CU_ASSERT_STRING_EQUAL(e.text, "this host has no GPU");
	}
	graph_destroy(g);
	graph_destroy(none);
}

/* The links decide, as they do for the rates that are predicted; a NIC that leads nowhere is none. */
static void test_nics(void)
{
	struct graph *g = eight_gpus();
	for (size_t i = g->link.n; i-- > 0;)
		if (g->link.at[i].kind == LINK_NETWORK &&
			(g->link.at[i].a == g->nic.at[0] || g->link.at[i].a == g->nic.at[4] ||
				g->link.at[i].a == g->nic.at[5]))
			g->link.at[i] = g->link.at[--g->link.n];
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 6, true, false), ST_OK);
	CU_ASSERT_STRING_EQUAL(placements[0].nic, "NIC1");
	CU_ASSERT_STRING_EQUAL(placements[1].nic, "NIC1");
	CU_ASSERT_STRING_EQUAL(placements[2].nic, "NIC2");
	CU_ASSERT_STRING_EQUAL(placements[3].nic, "NIC3"); /* the second of two: GPU 3 is odd */
	CU_ASSERT_STRING_EQUAL(placements[4].nic,
		"NIC6"); /* none behind its own switch: those of the next one on its socket */
	CU_ASSERT_STRING_EQUAL(placements[5].nic, "NIC7");
	for (size_t i = g->link.n; i-- > 0;)
		if (g->link.at[i].kind == LINK_NETWORK)
			g->link.at[i] = g->link.at[--g->link.n];
	CU_ASSERT_EQUAL(place(TWO_NODES, g, "", 1, true, false), ST_OK);
	CU_ASSERT_STRING_EQUAL(placements[0].nic, "");
	graph_destroy(g);
}

static void test_text(void)
{
	struct graph *g = eight_gpus();
	char text[PLACEMENT_TEXT];
	placement_text(&(struct placement){.gpu = -1, .cores = "3"}, NULL, "vm", 3, text);
	CU_ASSERT_STRING_EQUAL(text, "rank 3: host vm, cores 3, no GPU");
	placement_text(&(struct placement){.gpu = -1, .cores = "3", .shared = true}, g, "vm", 12, text);
	CU_ASSERT_STRING_EQUAL(text, "rank 12: host vm, cores 3 (shared), no GPU");
	struct placement s = {.gpu = 3, .cores = "24-31", .nic = "NIC3"};
	placement_text(&s, g, "h1", 3, text);
	CU_ASSERT_STRING_EQUAL(text,
		"rank 3: host h1, GPU3 (NVIDIA H100 80GB HBM3, 0000:15:00.0), cores 24-31, NIC3 (mlx5_3)");
	g->vertex.at[g->gpu.at[3]].pci[0] = g->vertex.at[g->nic.at[3]].name[0] = '\0';
	placement_text(&s, g, "h1", 3, text);
	CU_ASSERT_STRING_EQUAL(text, "rank 3: host h1, GPU3 (NVIDIA H100 80GB HBM3), cores 24-31, NIC3");
	s.nic[0] = '\0';
	g->vertex.at[g->gpu.at[3]].name[0] = '\0';
	placement_text(&s, g, "h1", 3, text);
	CU_ASSERT_STRING_EQUAL(text, "rank 3: host h1, GPU3 (GPU), cores 24-31, no NIC");
	graph_destroy(g);
}

UNIT_MAIN("placement", {"even shares of all cores", test_cores}, {"hardware threads", test_threads},
	{"lists of CPUs", test_lists}, {"long lists", test_long_lists}, {"GPUs on two nodes", test_gpus},
	{"GPUs that were chosen before", test_given_gpus}, {"the graph's lists of CPUs", test_lists_of_the_graph},
	{"odd nodes", test_odd_nodes}, {"too few GPUs", test_too_few_gpus}, {"the nearest NIC", test_nics},
	{"ranks that are bound", test_bound}, {"a placement in words", test_text})
