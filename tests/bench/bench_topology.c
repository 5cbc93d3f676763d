/* Figures of the topology: building a cluster of 1,024 hosts with 8 GPUs each, the groups of every mesh of powers of
 * two on it, and routes between random devices; the same groups on two hosts that are each a torus of 1,024 chips. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "topology/graph/group.h"
#include "topology/graph/rates.h"
#include "topology/machine.h"

#define HOSTS 1024
#define GPUS 8
#define ROUTES 10000

static void link_to(struct graph *g, int32_t a, int32_t b, enum link_kind kind, struct rate r)
{
	struct link l = {.a = a,
		.b = b,
		.kind = kind,
		.Bps = r.Bps,
		.datasheet_Bps = r.datasheet_Bps,
		.latency_s = r.latency_s};
	if (graph_add_link(g, &l) < 0)
		abort();
}

static int32_t add(struct graph *g, enum vertex_kind kind)
{
	struct vertex v = graph_vertex_init(kind, SAID_BY_LINE);
	int32_t at = graph_add_vertex(g, &v);
	if (at < 0)
		abort();
	return at;
}

/* DGX-like: two CPUs, four PCIe switches with two GPUs and two NICs each; an NVLink switch, or none. */
enum unlike { ALIKE, IN_CLOCKS, IN_LINKS };

static struct graph *host(int nvswitch, enum unlike unlike, int number)
{
	struct graph *g = graph_create(SAID_BY_LINE);
	if (!g)
		abort();
	int32_t cpu[2] = {add(g, VERTEX_CPU), add(g, VERTEX_CPU)}, net = add(g, VERTEX_NETWORK),
		nvs = nvswitch ? add(g, VERTEX_NVSWITCH) : -1, pci = -1;
	link_to(g, cpu[0], cpu[1], LINK_SOCKET, rate_socket("EPYC", 0));
	for (int i = 0; i < GPUS; i++) {
		if (i % 2 == 0) {
			int32_t bridge = add(g, VERTEX_BRIDGE);
			pci = add(g, VERTEX_PCI_SWITCH);
			link_to(g, bridge, cpu[i / 4], LINK_LOCAL, rate_local());
			link_to(g, pci, bridge, LINK_PCIE, rate_pcie(5, 16));
		}
		int32_t gpu = add(g, VERTEX_GPU), nic = add(g, VERTEX_NIC);
		g->vertex.at[gpu].gpu.clock_Hz = unlike == IN_CLOCKS ? 1e9 + number : 1e9;
		link_to(g, gpu, pci, LINK_PCIE, rate_pcie(5, 16));
		link_to(g, nic, pci, LINK_PCIE, rate_pcie(5, 16));
		link_to(g, nic, net, LINK_NETWORK, rate_network(400e9));
		if (nvswitch)
			link_to(g, gpu, nvs, LINK_NVLINK, rate_nvlink(90));
	}
	if (unlike == IN_LINKS)
		g->link.at[g->link.n - 1].Bps -= number;
	return g;
}

static int run(const char *what, int nvswitch, enum unlike unlike)
{
	struct error e = {0};
	double begin_s = clock_s();
	struct cluster *c = cluster_create(4e-6);
	int failed = !c;
	for (int i = 0; i < HOSTS && !failed; i++)
		failed = cluster_add(c, host(nvswitch, unlike, i), 1, NULL, &e) != ST_OK;
	double built_s = clock_s();
	int meshes = 0;
	for (int64_t size = 1; size <= HOSTS * GPUS && !failed; size *= 2)
		for (int64_t stride = 1; size * stride <= HOSTS * GPUS && !failed; stride *= 2, meshes++) {
			struct group g;
			failed = cluster_mesh_groups(c, size, stride, &g, &e) != ST_OK;
		}
	double grouped_s = clock_s();
	uint64_t state = 1;
	double sum = 0;
	for (int i = 0; i < ROUTES && !failed; i++) {
		struct cluster_route r;
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		int64_t a = (int64_t)(state >> 40) % (HOSTS * GPUS),
			b = (int64_t)(state >> 16 & 0xffffff) % (HOSTS * GPUS);
		failed = cluster_route(c, a, b, &r, &e) != ST_OK;
		sum += r.Bps;
	}
	double routed_s = clock_s();
	cluster_destroy(c);
	struct rusage usage = {0};
	getrusage(RUSAGE_SELF, &usage);
	if (failed)
		fprintf(stderr, "%s: %s\n", what, e.text);
	else
		printf("topology: %-34s build %.1f ms, %d meshes %.1f ms, %d routes %.1f ms (mean %.1f GB/s), at most "
		       "%ld MB\n",
			what, 1e3 * (built_s - begin_s), meshes, 1e3 * (grouped_s - built_s), ROUTES,
			1e3 * (routed_s - grouped_s), sum / ROUTES / 1e9, usage.ru_maxrss / 1024);
	return failed;
}

/* As a system line says it. CPU time hardly differs from this: one thread works. */
static int run_torus(void)
{
	struct error e = {0};
	struct machine m;
	double begin_s = clock_s();
	int failed = machine_load("node:2 gpu:1024 tpu-v6e torus nic:512x200Gb", 2, 0, &m, &e) != ST_OK, meshes = 0;
	double built_s = clock_s();
	const int64_t chips = 2048;
	for (int64_t size = 2; size <= chips && !failed; size *= 2)
		for (int64_t stride = 1; size * stride <= chips && !failed; stride *= 2, meshes++) {
			struct group g;
			failed = machine_group(&m, size, stride, &g, &e) != ST_OK;
		}
	if (failed)
		fprintf(stderr, "two tori: %s\n", e.text);
	else
		printf("topology: 2 hosts, each a torus of 1,024    build %.1f ms, %d meshes %.1f ms\n",
			1e3 * (built_s - begin_s), meshes, 1e3 * (clock_s() - built_s));
	machine_free(&m);
	return failed;
}

int main(void)
{
	int failed = run("1,024 equal hosts, NVLink switch", 1, ALIKE);
	failed |= run("1,024 equal hosts, PCIe", 0, ALIKE);
	failed |= run("1,024 hosts of other clocks, PCIe", 0, IN_CLOCKS);
	failed |= run("1,024 hosts of other links, PCIe", 0, IN_LINKS);
	failed |= run_torus();
	return failed;
}
