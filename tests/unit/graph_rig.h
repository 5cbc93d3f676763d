/* Link graphs for tests, built by the API: hosts with CPUs, PCIe switches, GPUs and NICs from a few numbers, and
 * NVLinks on top. */
#ifndef STEPSIM_TESTS_UNIT_GRAPH_RIG_H
#define STEPSIM_TESTS_UNIT_GRAPH_RIG_H

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/harness.h"
#include "topology/graph/graph.h"
#include "topology/graph/rates.h"

#define RIG __attribute__((unused)) static

struct rig {
	int32_t gpus, cpus;      /* spread evenly */
	int32_t gpus_per_switch; /* 0: each GPU on a host bridge of its own */
	int32_t pcie_gen;
	bool no_peer;
	const char *cpu_model;
	int32_t nics; /* spread evenly: NIC k hangs where GPU k x gpus / nics hangs */
	double nic_bits_per_s;
};

RIG int32_t rig_vertex(struct graph *g, enum vertex_kind kind)
{
	struct vertex v = graph_vertex_init(kind, SAID_BY_LINE);
	int32_t at = graph_add_vertex(g, &v);
	CU_ASSERT_FATAL(at >= 0);
	return at;
}

RIG int32_t rig_link(struct graph *g, int32_t a, int32_t b, enum link_kind kind, int32_t width, struct rate rate)
{
	struct link l = {.a = a,
		.b = b,
		.kind = kind,
		.width = width,
		.Bps = rate.Bps,
		.datasheet_Bps = rate.datasheet_Bps,
		.latency_s = rate.latency_s,
		.from = SAID_BY_LINE};
	int32_t at = graph_add_link(g, &l);
	CU_ASSERT_FATAL(at >= 0);
	return at;
}

/* Returns the vertex to which a GPU and the NICs beside it connect. */
RIG int32_t rig_root(struct graph *g, const struct rig *r, const int32_t *cpu, int32_t gpu, int32_t *switches)
{
	int32_t on = cpu[(int64_t)gpu * r->cpus / r->gpus];
	if (r->gpus_per_switch && switches[gpu / r->gpus_per_switch] >= 0)
		return switches[gpu / r->gpus_per_switch];
	int32_t bridge = rig_vertex(g, VERTEX_BRIDGE);
	rig_link(g, bridge, on, LINK_LOCAL, 0, rate_local());
	if (!r->gpus_per_switch)
		return bridge;
	int32_t at = rig_vertex(g, VERTEX_PCI_SWITCH);
	rig_link(g, at, bridge, LINK_PCIE, 16, rate_pcie(r->pcie_gen, 16));
	return switches[gpu / r->gpus_per_switch] = at;
}

RIG struct graph *rig_host(const struct rig *r)
{
	struct graph *g = graph_create(SAID_BY_LINE);
	int32_t cpu[8], switches[64], roots[128];
	CU_ASSERT_FATAL(g != NULL && r->cpus <= 8 && r->gpus <= 128);
	memset(switches, -1, sizeof switches);
	for (int32_t i = 0; i < r->cpus; i++) {
		cpu[i] = rig_vertex(g, VERTEX_CPU);
		g->vertex.at[cpu[i]].numa = i;
		for (int32_t k = 0; k < i; k++)
			rig_link(g, cpu[k], cpu[i], LINK_SOCKET, 0, rate_socket(r->cpu_model ? r->cpu_model : "", 0));
	}
	for (int32_t i = 0; i < r->gpus; i++) {
		int32_t gpu = rig_vertex(g, VERTEX_GPU);
		g->vertex.at[gpu].gpu.no_peer = r->no_peer;
		roots[i] = rig_root(g, r, cpu, i, switches);
		rig_link(g, gpu, roots[i], LINK_PCIE, 16, rate_pcie(r->pcie_gen, 16));
	}
	int32_t net = r->nics ? rig_vertex(g, VERTEX_NETWORK) : -1;
	for (int32_t k = 0; k < r->nics; k++) {
		int32_t nic = rig_vertex(g, VERTEX_NIC), beside = (int32_t)((int64_t)k * r->gpus / r->nics);
		g->vertex.at[nic].nic.Bps = r->nic_bits_per_s / 8;
		rig_link(g, nic, roots[beside], LINK_PCIE, 16, rate_pcie(r->pcie_gen, 16));
		rig_link(g, nic, net, LINK_NETWORK, 0, rate_network(r->nic_bits_per_s));
	}
	return g;
}

RIG struct rate rig_times(struct rate one, int32_t n)
{
	one.Bps *= n;
	one.datasheet_Bps *= n;
	return one;
}

RIG void rig_join(struct graph *g, int32_t i, int32_t j, enum link_kind kind, int32_t links, struct rate one)
{
	rig_link(g, g->gpu.at[i], g->gpu.at[j], kind, links, rig_times(one, links));
}

RIG void rig_nvswitch(struct graph *g, int32_t links, int32_t compute_capability)
{
	int32_t at = rig_vertex(g, VERTEX_NVSWITCH);
	for (size_t i = 0; i < g->gpu.n; i++)
		rig_link(g, g->gpu.at[i], at, LINK_NVLINK, links, rig_times(rate_nvlink(compute_capability), links));
}

/* NVIDIA DGX-1 (V100), as recorded machines print it: 6 links a GPU; two CPUs, two PCIe switches a CPU with two GPUs
 * and a NIC each. */
RIG struct graph *rig_dgx1(void)
{
	static const int8_t links[][3] = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {1, 2, 2}, {1, 3, 1}, {2, 3, 2}, {4, 5, 1},
		{4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}, {0, 4, 2}, {1, 5, 2}, {2, 6, 1}, {3, 7, 1}};
	struct graph *g = rig_host(&(struct rig){.gpus = 8,
		.cpus = 2,
		.gpus_per_switch = 2,
		.pcie_gen = 3,
		.cpu_model = "Intel Xeon E5-2698 v4",
		.nics = 4,
		.nic_bits_per_s = 100e9});
	for (size_t i = 0; i < COUNT(links); i++)
		rig_join(g, links[i][0], links[i][1], LINK_NVLINK, links[i][2], rate_nvlink(70));
	return g;
}

#endif
