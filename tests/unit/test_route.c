/* Routes and link words: the order PIX, PXB, PHB, NODE, SYS, NVLink before all of them, host memory where peers cannot
 * talk, and the fabric's name. */
#include <math.h>

#include "base/array.h"
#include "tests/unit/graph_rig.h"
#include "topology/graph/route.h"

static struct route route(const struct graph *g, int32_t a, int32_t b)
{
	struct route r;
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_route(g, a, b, &r, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	return r;
}

static void word_is(const struct graph *g, int32_t a, int32_t b, const char *expected)
{
	char word[GRAPH_WORD] = "", back[GRAPH_WORD] = "";
	struct error e = {0};
	CU_ASSERT_EQUAL(graph_word(g, a, b, word, &e), ST_OK);
	CU_ASSERT_EQUAL(graph_word(g, b, a, back, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(word, expected);
	CU_ASSERT_STRING_EQUAL(back, expected);
}

static void passes(const struct graph *g, const struct route *r, int32_t from, const char *labels)
{
	char text[256] = "";
	for (int32_t i = 0, at = from; i < r->n; i++) {
		const struct link *l = &g->link.at[r->link[i]];
		CU_ASSERT_EQUAL(r->reverse[i] ? l->b : l->a, at);
		at = r->reverse[i] ? l->a : l->b;
		strcat(strcat(text, i ? " " : ""), g->vertex.at[at].label);
	}
	CU_ASSERT_STRING_EQUAL(text, labels);
}

/* CPU0: HB0 - PCI0 - {GPU0, GPU1, PCI1 - GPU2}, HB1 - GPU3; CPU1: HB2 - GPU4. NIC0 on PCI0, NIC1 on HB2. */
static struct graph *levels(void)
{
	struct graph *g = graph_create(SAID_BY_LINE);
	int32_t cpu0 = rig_vertex(g, VERTEX_CPU), cpu1 = rig_vertex(g, VERTEX_CPU), hb0 = rig_vertex(g, VERTEX_BRIDGE),
		hb1 = rig_vertex(g, VERTEX_BRIDGE), hb2 = rig_vertex(g, VERTEX_BRIDGE);
	int32_t pci0 = rig_vertex(g, VERTEX_PCI_SWITCH), pci1 = rig_vertex(g, VERTEX_PCI_SWITCH),
		net = rig_vertex(g, VERTEX_NETWORK), hang[] = {pci0, pci0, pci1, hb1, hb2};
	rig_link(g, cpu0, cpu1, LINK_SOCKET, 0, rate_socket("EPYC", 0));
	rig_link(g, hb0, cpu0, LINK_LOCAL, 0, rate_local());
	rig_link(g, hb1, cpu0, LINK_LOCAL, 0, rate_local());
	rig_link(g, hb2, cpu1, LINK_LOCAL, 0, rate_local());
	rig_link(g, pci0, hb0, LINK_PCIE, 16, rate_pcie(4, 16));
	rig_link(g, pci1, pci0, LINK_PCIE, 8, rate_pcie(4, 8));
	for (int i = 0; i < 5; i++)
		rig_link(g, rig_vertex(g, VERTEX_GPU), hang[i], LINK_PCIE, 16, rate_pcie(4, 16));
	for (int i = 0; i < 2; i++) {
		int32_t nic = rig_vertex(g, VERTEX_NIC);
		rig_link(g, nic, i ? hb2 : pci0, LINK_PCIE, 8, rate_pcie(3, 8));
		rig_link(g, nic, net, LINK_NETWORK, 0, rate_network(50e9));
	}
	return g;
}

static void test_words(void)
{
	struct graph *g = levels();
	const int32_t *gpu = g->gpu.at, *nic = g->nic.at;
	CU_ASSERT_EQUAL(topology_check(g, NULL), ST_OK);
	word_is(g, gpu[0], gpu[0], "X");
	word_is(g, gpu[0], gpu[1], "PIX");
	word_is(g, gpu[0], gpu[2], "PXB");
	word_is(g, gpu[0], gpu[3], "NODE");
	word_is(g, gpu[0], gpu[4], "SYS");
	word_is(g, gpu[1], nic[0], "PIX");
	word_is(g, gpu[2], nic[0], "PXB");
	word_is(g, gpu[4], nic[1], "PHB");
	word_is(g, nic[0], nic[1], "SYS");                  /* not through the network */
	rig_join(g, 0, 4, LINK_NVLINK, 4, rate_nvlink(80)); /* crosses sockets */
	word_is(g, gpu[0], gpu[4], "NV4");
	rig_join(g, 1, 2, LINK_XGMI, 1, rate_xgmi(0x942));
	word_is(g, gpu[1], gpu[2], "NV1");
	g->words = calloc(7 * 7, sizeof *g->words);
	strcpy(g->words[0 * 7 + 4], "SOC"); /* what the dump said counts, from either side */
	word_is(g, gpu[0], gpu[4], "SOC");
	word_is(g, gpu[0], gpu[1], ""); /* and what it does not say is not made up */
	word_is(g, nic[0], gpu[1], "");
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "bridge");
	rig_join(g, 0, 1, LINK_NVLINK, 4, rate_nvlink(80));
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "mesh");
	graph_destroy(g);
}

static void test_levels(void)
{
	static const struct {
		const char *word;
		int level;
	} all[] = {{"X", ROUTE_SELF}, {"NV1", ROUTE_NV}, {"NV18", ROUTE_NV}, {"PIX", ROUTE_PIX}, {"PSB", ROUTE_PIX},
		{"PXB", ROUTE_PXB}, {"PHB", ROUTE_PHB}, {"NODE", ROUTE_NODE}, {"SYS", ROUTE_SYS}, {"SOC", ROUTE_SYS},
		{"", -1}, {"NV", -1}, {"NV1x", -1}, {"pix", -1}, {"PI", -1}};
	for (size_t i = 0; i < COUNT(all); i++)
		CU_ASSERT_EQUAL(route_level_of_word(all[i].word), all[i].level);
}

static void test_routes(void)
{
	struct graph *g = levels();
	const int32_t *gpu = g->gpu.at;
	struct route r = route(g, gpu[0], gpu[2]);
	passes(g, &r, gpu[0], "PCI0 PCI1 GPU2");
	CU_ASSERT_EQUAL(r.Bps, 12e9);         /* 8 lanes of gen 4 */
	CU_ASSERT_EQUAL(r.latency_s, 2.5e-6); /* of the hop, not of each link */
	CU_ASSERT_FALSE(r.through_memory);
	r = route(g, gpu[0], gpu[4]);
	passes(g, &r, gpu[0], "PCI0 HB0 CPU0 CPU1 HB2 GPU4");
	CU_ASSERT_EQUAL(r.Bps, 16e9);
	r = route(g, gpu[2], gpu[2]);
	CU_ASSERT_EQUAL(r.n, 0);
	CU_ASSERT_TRUE(isinf(r.Bps));
	int32_t net = graph_find_label(g, "NET");
	r = route(g, gpu[4], net);
	passes(g, &r, gpu[4], "HB2 NIC1 NET");
	r = route(g, net, gpu[1]);
	passes(g, &r, net, "NIC0 PCI0 GPU1");
	/* Without peers: up to the CPU of the first and down again; the level stays the fabric's. */
	g->vertex.at[gpu[1]].gpu.no_peer = true;
	r = route(g, gpu[0], gpu[1]);
	passes(g, &r, gpu[0], "PCI0 HB0 CPU0 HB0 PCI0 GPU1");
	CU_ASSERT_TRUE(r.through_memory);
	CU_ASSERT_EQUAL(r.level, ROUTE_PIX);
	CU_ASSERT_EQUAL(r.Bps, 24e9);
	word_is(g, gpu[0], gpu[1], "PIX");
	r = route(g, g->nic.at[0], gpu[1]);
	passes(g, &r, g->nic.at[0], "PCI0 HB0 CPU0 HB0 PCI0 GPU1");
	r = route(g, gpu[0], gpu[3]); /* both can */
	CU_ASSERT_FALSE(r.through_memory);
	rig_join(g, 0, 1, LINK_NVLINK, 4, rate_nvlink(80)); /* NVLink does not need the driver's leave */
	r = route(g, gpu[0], gpu[1]);
	CU_ASSERT_FALSE(r.through_memory);
	CU_ASSERT_EQUAL(r.Bps, 80e9);
	graph_destroy(g);
}

static void test_choice(void)
{
	/* Two CPUs joined directly by a narrow link and by a third one with wide links: the fewest sockets are crossed,
	 * however narrow. */
	struct graph *g = rig_host(&(struct rig){.gpus = 2, .cpus = 2, .pcie_gen = 4, .cpu_model = "E5-"});
	int32_t third = rig_vertex(g, VERTEX_CPU);
	rig_link(g, graph_find_label(g, "CPU0"), third, LINK_SOCKET, 0, rate_socket("Xeon 6767P", 0));
	rig_link(g, graph_find_label(g, "CPU1"), third, LINK_SOCKET, 0, rate_socket("Xeon 6767P", 0));
	CU_ASSERT_EQUAL(route(g, g->gpu.at[0], g->gpu.at[1]).Bps, 6e9);
	/* A second, wider bridge to the same CPU: the wider one. */
	int32_t wide = rig_vertex(g, VERTEX_BRIDGE);
	rig_link(g, wide, graph_find_label(g, "CPU0"), LINK_LOCAL, 0, rate_local());
	rig_link(g, g->gpu.at[0], wide, LINK_PCIE, 16, rate_pcie(5, 16));
	CU_ASSERT_EQUAL(route(g, g->gpu.at[0], graph_find_label(g, "CPU0")).Bps, 48e9);
	graph_destroy(g);
	/* GPUs do not forward: 0-1 and 1-2 by NVLink leave 0-2 to PCIe. */
	g = rig_host(&(struct rig){.gpus = 3, .cpus = 1, .pcie_gen = 3});
	rig_join(g, 0, 1, LINK_NVLINK, 2, rate_nvlink(70));
	rig_join(g, 1, 2, LINK_NVLINK, 2, rate_nvlink(70));
	CU_ASSERT_EQUAL(route(g, g->gpu.at[0], g->gpu.at[2]).Bps, 12e9);
	word_is(g, g->gpu.at[0], g->gpu.at[2], "NODE");
	graph_destroy(g);
	/* Over a switch; the word has the GPU's links to it. */
	g = rig_host(&(struct rig){.gpus = 4, .cpus = 1, .pcie_gen = 4});
	rig_nvswitch(g, 12, 80);
	struct route r = route(g, g->gpu.at[0], g->gpu.at[3]);
	passes(g, &r, g->gpu.at[0], "NVS0 GPU3");
	CU_ASSERT_EQUAL(r.Bps, 240e9);
	CU_ASSERT_EQUAL(r.latency_s, 1.9e-6);
	word_is(g, g->gpu.at[0], g->gpu.at[3], "NV12");
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "nvswitch");
	graph_destroy(g);
	/* Grace Hopper without NVLink between GPUs: C2C, CPU, CPU, C2C. */
	g = graph_create(SAID_BY_LINE);
	int32_t cpu[] = {rig_vertex(g, VERTEX_CPU), rig_vertex(g, VERTEX_CPU)};
	rig_link(g, cpu[0], cpu[1], LINK_SOCKET, 0, rate_socket("Xeon 6767P", 0));
	for (int i = 0; i < 2; i++)
		rig_link(g, rig_vertex(g, VERTEX_GPU), cpu[i], LINK_C2C, 0, rate_c2c());
	word_is(g, g->gpu.at[0], g->gpu.at[1], "SYS");
	CU_ASSERT_EQUAL(route(g, g->gpu.at[0], g->gpu.at[1]).Bps, 40e9);
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "pcie");
	graph_destroy(g);
}

/* What is asked of a NIC alone is what its route and its links say. */
static void test_nics(void)
{
	struct graph *g = levels();
	struct router *r = router_create(g);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	for (size_t n = 0; n < g->nic.n; n++) {
		const int32_t port = router_port(r, g->nic.at[n]);
		CU_ASSERT_FATAL(port >= 0);
		CU_ASSERT_EQUAL(g->link.at[port].kind, LINK_NETWORK);
		CU_ASSERT(g->link.at[port].a == g->nic.at[n] || g->link.at[port].b == g->nic.at[n]);
		for (size_t i = 0; i < g->gpu.n; i++)
			CU_ASSERT_EQUAL(router_level_of_nic(r, g->gpu.at[i], g->nic.at[n]),
				route(g, g->gpu.at[i], g->nic.at[n]).level);
	}
	const int32_t lone = rig_vertex(g, VERTEX_NIC);
	router_destroy(r);
	r = router_create(g);
	CU_ASSERT_EQUAL(router_port(r, lone), -1);
	CU_ASSERT_EQUAL(router_level_of_nic(r, g->gpu.at[0], lone), ROUTE_LEVELS);
	router_destroy(r);
	graph_destroy(g);
}

/* A torus of SIDE x SIDE chips: the nearest way is as long as the distance along rows and along columns, and no vertex
 * that was reached by a longer way first keeps it. */
static void test_torus(void)
{
	enum { SIDE = 9 };
	struct graph *g = graph_create(SAID_BY_LINE);
	g->torus = true;
	for (int i = 0; i < SIDE * SIDE; i++)
		rig_vertex(g, VERTEX_GPU);
	for (int i = 0; i < SIDE * SIDE; i++) {
		const int row = i / SIDE, column = i % SIDE;
		rig_link(g, i, row * SIDE + (column + 1) % SIDE, LINK_NVLINK, 1, rate_nvlink(90));
		rig_link(g, i, (row + 1) % SIDE * SIDE + column, LINK_NVLINK, 1, rate_nvlink(90));
	}
	for (int to = 1; to < SIDE * SIDE; to++) {
		const int down = to / SIDE, right = to % SIDE,
			  hops = (down <= SIDE / 2 ? down : SIDE - down) + (right <= SIDE / 2 ? right : SIDE - right);
		CU_ASSERT_EQUAL(route(g, 0, to).n, hops);
	}
	graph_destroy(g);
}

static void test_none(void)
{
	struct graph *g = graph_create(SAID_BY_LINE);
	struct route r;
	struct error e = {0};
	CU_ASSERT_STRING_EQUAL(graph_fabric(g), "none");
	int32_t a = rig_vertex(g, VERTEX_GPU), b = rig_vertex(g, VERTEX_GPU);
	CU_ASSERT_EQUAL(graph_route(g, a, b, &r, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "no link leads from GPU0 to GPU1");
	/* A chain of more CPUs than a route can hold. */
	int32_t at = a;
	for (int i = 0; i < 60; i++) {
		int32_t cpu = rig_vertex(g, VERTEX_CPU);
		rig_link(g, at, cpu, i ? LINK_SOCKET : LINK_PCIE, 0, rate_pcie(3, 16));
		at = cpu;
	}
	rig_link(g, at, b, LINK_PCIE, 0, rate_pcie(3, 16));
	e = (struct error){0};
	CU_ASSERT_EQUAL(graph_route(g, a, b, &r, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "the route from GPU0 to GPU1 has more than 48 links");
	graph_destroy(g);
}

UNIT_MAIN("route", {"words", test_words}, {"levels of words", test_levels}, {"routes", test_routes},
	{"choice", test_choice}, {"NICs", test_nics}, {"torus", test_torus}, {"none", test_none})
