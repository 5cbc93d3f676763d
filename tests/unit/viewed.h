/* Clusters made by hand, and their output as a text, for the tests of `stepsim topo`. */
#ifndef STEPSIM_TESTS_VIEWED_H
#define STEPSIM_TESTS_VIEWED_H

#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "topology/catalogue/system.h"
#include "topology/view/view.h"

static inline int32_t vertex(struct graph *g, enum vertex_kind kind, const char *name, int32_t numa)
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

static inline void join(struct graph *g, int32_t a, int32_t b, enum link_kind kind, int32_t width, int32_t gen,
	double Bps)
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
static inline struct graph *two_pairs(const char *name)
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

static inline struct cluster *alone(struct graph *g, int64_t hosts)
{
	struct error e = {0};
	struct cluster *c = cluster_create(5e-6);
	CU_ASSERT_FATAL(c != NULL);
	CU_ASSERT_EQUAL_FATAL(cluster_add(c, g, hosts, NULL, &e), ST_OK);
	return c;
}

static inline struct cluster *from_line(const char *line, int64_t hosts)
{
	struct error e = {0};
	struct system_spec s;
	struct graph *g = NULL;
	CU_ASSERT_EQUAL_FATAL(system_load(line, &s, &e), ST_OK);
	CU_ASSERT_EQUAL_FATAL(system_graph(&s, 0, &g, &e), ST_OK);
	return alone(g, hosts);
}

static inline enum status plain_text(const struct cluster *c, FILE *out, struct error *e)
{
	struct view_beside beside = {.links = true};
	return view_text(c, &beside, out, e);
}

static inline char *text_of(view_fn *view, const struct cluster *c)
{
	char *text = NULL;
	size_t len = 0;
	struct error e = {0};
	CU_ASSERT_EQUAL_FATAL(view_to_text(view, c, &text, &len, &e), ST_OK);
	CU_ASSERT_EQUAL(strlen(text), len);
	return text;
}

static inline size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

static inline json_t *json_of(const struct cluster *c)
{
	struct view_beside beside = {0};
	struct error e = {0};
	json_t *j = NULL;
	CU_ASSERT_EQUAL_FATAL(view_json(c, &beside, &j, &e), ST_OK);
	return j;
}

#define HAS(text, what) CU_ASSERT_PTR_NOT_NULL(strstr(text, what))
#define HAS_NOT(text, what) CU_ASSERT_PTR_NULL(strstr(text, what))

#endif
