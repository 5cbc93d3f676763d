/* What a machine's links give a group that runs NCCL. */
#include <math.h>
#include <string.h>

#include "sim/nccl.h"

#define NVLS_RANKS 8 /* of a larger NVLink domain, a part of so many sums in the switch too */

static enum nccl_arch arch_of(int64_t capability)
{
	return capability >= 100 ? NCCL_BLACKWELL : capability >= 90 ? NCCL_HOPPER : capability >= 80 ? NCCL_AMPERE : NCCL_VOLTA;
}

/* The make of the hosts' CPUs decides what posting a transfer costs. Where nobody names them: PCIe 4 came with AMD's, for as long as A100s were new. */
static bool has_amd(const struct graph *g)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		if (g->vertex.at[i].kind == VERTEX_CPU && g->vertex.at[i].cpu.model[0])
			return strstr(g->vertex.at[i].cpu.model, "AMD") || strstr(g->vertex.at[i].cpu.model, "EPYC");
	return g->gpu.n > 0 && g->vertex.at[g->gpu.at[0]].gpu.pcie_gen == 4;
}

static bool has_peer(const struct graph *g)
{
	return g->gpu.n > 0 && !g->vertex.at[g->gpu.at[0]].gpu.no_peer;
}

enum status nccl_group_of(const struct machine *m, int64_t size, int64_t stride, struct nccl_group *out, struct error *e)
{
	struct group all, inside;
	if (!m->cluster || m->cluster->shape.n == 0 || m->device.is_host || m->device.compute_capability <= 0)
		return error_set(e, ST_INPUT, "%s: NCCL runs on NVIDIA's GPUs whose links are known", m->name);
	const struct graph *host = m->cluster->shape.at[0].graph;
	enum status st = machine_group(m, size, stride, &all, e);
	if (st)
		return st;
	int64_t per_host = (size + all.hosts - 1) / all.hosts;
	inside = all;
	if (all.hosts > 1 && per_host > 1 && (st = machine_group(m, per_host, stride, &inside, e)))
		return st;
	double exit_Bps = 0;
	if (all.hosts > 1 && (st = machine_exit(m, &exit_Bps, e)))
		return st;
	bool alone = all.hosts > 1 && per_host <= 1;
	int64_t box = m->box_gpus > 0 ? m->box_gpus : m->devices_per_node;
	*out = (struct nccl_group){
		.ranks = size,
		.hosts = all.hosts,
		.per_host = per_host,
		.arch = arch_of(m->device.compute_capability),
		.nvlink = alone ? m->device.nvlink_links > 0 : inside.nvlink_switch || inside.bottleneck == LINK_NVLINK,
		.peer = has_peer(host),
		.amd = has_amd(host),
		.whole_box = inside.nvlink_switch && m->device.compute_capability >= 90 && (per_host == box || per_host >= NVLS_RANKS),
		.inside_Bps = alone ? INFINITY : inside.ring_Bps,
		.link_Bps = alone ? INFINITY : inside.pair_Bps,
		.nics_Bps = all.hosts > 1 ? all.network_Bps * (double)per_host : 0,
		.network = m->network,
		.latency = m->what_if.latency,
	};
	out->pair_Bps = fmin(out->nics_Bps, fmax(exit_Bps, all.network_Bps)); /* a lone route counts NCCL's rate of a slot, which NICs exceed */
	if (!(out->inside_Bps > 0) || (all.hosts > 1 && !(out->nics_Bps > 0)))
		return error_set(e, ST_INPUT, "%s: no rate of the links between %lld ranks is known", m->name, (long long)size);
	return ST_OK;
}
