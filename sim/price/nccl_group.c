/* The rates that a machine's links give a group that runs NCCL. */
#include <math.h>

#include "sim/price/nccl.h"
#include "sim/price/rates.h"

static enum nccl_arch arch_of(int64_t capability)
{
	return capability >= 100  ? NCCL_BLACKWELL
	       : capability >= 90 ? NCCL_HOPPER
	       : capability >= 80 ? NCCL_AMPERE
	                          : NCCL_VOLTA;
}

bool nccl_runs_on(const struct rates *r) { return r->has_links && !r->is_host && r->compute_capability > 0; }

enum status nccl_group_of(const struct rates *r, int64_t size, int64_t stride, struct nccl_group *out, struct error *e)
{
	struct group all, inside;
	if (!nccl_runs_on(r))
		return error_set(e, ST_INPUT, "%s: NCCL runs on NVIDIA's GPUs whose links are known", r->machine->name);
	enum status st = rates_group(r, size, stride, &all, e);
	if (st)
		return st;
	int64_t per_host = (size + all.hosts - 1) / all.hosts;
	inside = all;
	if (all.hosts > 1 && per_host > 1 && (st = rates_group(r, per_host, stride, &inside, e)))
		return st;
	double exit_Bps = 0;
	if (all.hosts > 1 && (st = rates_exit(r, &exit_Bps, e)))
		return st;
	bool alone = all.hosts > 1 && per_host <= 1;
	*out = (struct nccl_group){
		.parameters = r->parameters,
		.ranks = size,
		.hosts = all.hosts,
		.per_host = per_host,
		.arch = arch_of(r->compute_capability),
		.nvlink = alone ? r->nvlink_links > 0 : inside.nvlink_switch || inside.bottleneck == LINK_NVLINK,
		.peer = r->peer_to_peer,
		.amd = r->amd_cpus,
		.whole_box = inside.nvlink_switch && r->compute_capability >= 90 &&
	                     (per_host == r->box_gpus || (double)per_host >= r->parameters->nccl.nvls_ranks),
		.inside_Bps = alone ? INFINITY : inside.ring_Bps,
		.link_Bps = alone ? INFINITY : inside.pair_Bps,
		.nics_Bps = all.hosts > 1 ? all.network_Bps * (double)per_host : 0,
		.network = r->network,
		.latency_factor = r->latency_factor,
	};
	out->pair_Bps = fmin(out->nics_Bps,
		fmax(exit_Bps, all.network_Bps)); /* NICs exceed NCCL's rate of a slot, which a lone route counts */
	if (!(out->inside_Bps > 0) || (all.hosts > 1 && !(out->nics_Bps > 0)))
		return error_set(e, ST_INPUT, "%s: no rate of the links between %lld ranks is known", r->machine->name,
			(long long)size);
	return ST_OK;
}
