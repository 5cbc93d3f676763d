/* Graphs of one host, and the remarks on them. */
#ifndef STEPSIM_TESTS_UNIT_MERGE_CASE_H
#define STEPSIM_TESTS_UNIT_MERGE_CASE_H

#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/remarked.h"
#include "topology/discover/discover.h"
#include "topology/discover/join.h"
#include "topology/graph/rates.h"
#include "topology/graph/route.h"

#define HEADER \
	"index, pci.bus_id, name, memory.total [MiB], compute_cap, pcie.link.gen.current, pcie.link.gen.max, " \
	"pcie.link.width.current, pcie.link.width.max, " \
	"clocks.current.sm [MHz], clocks.max.sm [MHz], power.limit [W], power.default_limit [W], " \
	"clocks_throttle_reasons.active\n"
#define A100(index, bus) \
	index ", 00000000:" bus \
	      ":00.0, NVIDIA A100-SXM4-80GB, 81920 MiB, 8.0, 4, 4, 16, 16, 1410 MHz, 1410 MHz, 400.00 W, 400.00 W, " \
	      "0x0000000000000000\n"

static inline void add_link(struct graph *g, int32_t a, int32_t b, enum link_kind kind, int32_t width, double Bps)
{
	struct link l =
		{.a = a, .b = b, .kind = kind, .width = width, .Bps = Bps, .latency_s = 1e-6, .from = g->source};
	CU_ASSERT_FATAL(graph_add_link(g, &l) >= 0);
}

static inline int32_t add(struct graph *g, enum vertex_kind kind, int32_t numa, const char *pci, const char *name)
{
	struct vertex v = graph_vertex_init(kind, g->source);
	v.numa = numa;
	snprintf(v.pci, sizeof v.pci, "%s", pci);
	snprintf(v.name, sizeof v.name, "%s", name);
	int32_t at = graph_add_vertex(g, &v);
	CU_ASSERT_FATAL(at >= 0);
	return at;
}

static const char *const gpu_pci[] = {"0000:1b:00.0", "0000:3d:00.0", "0000:9b:00.0", "0000:bd:00.0"};

/* Two sockets, two GPUs under a PCIe switch on each, a NIC beside the first `nics` switches. Addresses and NIC names
 * where the source has them. */
static inline struct graph *host(enum evidence source, size_t gpus, size_t nics, bool with_pci)
{
	static const char *const nic_pci[] = {"0000:1c:00.0", "0000:9c:00.0"}, *const nic_name[] = {"mlx5_0", "mlx5_1"};
	struct graph *g = graph_create(source);
	CU_ASSERT_PTR_NOT_NULL_FATAL(g);
	int32_t cpu[2], pci_switch[2], net = -1;
	for (int i = 0; i < 2; i++) {
		cpu[i] = add(g, VERTEX_CPU, i, "", "");
		int32_t bridge = add(g, VERTEX_BRIDGE, i, "", "");
		pci_switch[i] = add(g, VERTEX_PCI_SWITCH, i, "", "");
		add_link(g, bridge, cpu[i], LINK_LOCAL, 0, rate_local().Bps);
		add_link(g, pci_switch[i], bridge, LINK_PCIE, 16, rate_pcie(4, 16).Bps);
	}
	add_link(g, cpu[0], cpu[1], LINK_SOCKET, 0, 16e9);
	for (size_t i = 0; i < gpus; i++)
		add_link(g, add(g, VERTEX_GPU, (int32_t)i / 2, with_pci ? gpu_pci[i] : "", ""), pci_switch[i / 2],
			LINK_PCIE, 16, rate_pcie(4, 16).Bps);
	for (size_t i = 0; i < nics; i++) {
		int32_t nic = add(g, VERTEX_NIC, (int32_t)i, with_pci ? nic_pci[i] : "", nic_name[i]);
		net = net < 0 ? add(g, VERTEX_NETWORK, -1, "", "") : net;
		add_link(g, nic, pci_switch[i], LINK_PCIE, 16, rate_pcie(4, 16).Bps);
		add_link(g, nic, net, LINK_NETWORK, 0, 25e9);
	}
	return g;
}

static inline void mesh(struct graph *g, int32_t width)
{
	for (size_t i = 0; i < g->gpu.n; i++)
		for (size_t j = i + 1; j < g->gpu.n; j++)
			add_link(g, g->gpu.at[i], g->gpu.at[j], LINK_NVLINK, width, width * 20e9);
}

static inline const struct vertex *gpu(const struct graph *g, size_t i) { return &g->vertex.at[g->gpu.at[i]]; }

static inline void sound(const struct graph *g)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(topology_check(g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
}

static inline void query(struct graph *g, const char *text)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(smi_query_read(text, strlen(text), "query.csv", g, &e), ST_OK);
	CU_ASSERT_STRING_EQUAL(e.text, "");
	sound(g);
}

#endif
