/* Collectives in two levels: all-reduce, and an all-to-all of rows that go to each host once.
 *
 * All-reduce: a reduce-scatter inside each host, an all-reduce of the parts across hosts by rings of one rank a host,
 * and an all-gather inside each host. The groups of a level run at once, the levels one after another:
 *
 *   T(S) = T_reduce_scatter(g, S) + T_all_reduce(h, S/g) + T_all_gather(g, S)      g ranks on each of h hosts
 *
 * (Mikami et al. 2018, arXiv:1811.05233, on a torus of two dimensions; Goyal et al. 2017,
 * arXiv:1706.02677, section 4, and Jia et al. 2018, arXiv:1807.11205, section 3.3, reduce to one rank a host instead;
 * Horovod's HOROVOD_HIERARCHICAL_ALLREDUCE.) A ring over all ranks passes 2(gh - 1) steps, this one
 * 2(g - 1) + 2(h - 1): fewer latencies, while the links of one level idle during the other. */
#include <math.h>

#include "base/array.h"
#include "sim/price/collective.h"

/* Returns the ranks of the group on each of its hosts; 0: it has one host, one rank a host, or hosts that differ. */
static int64_t ranks_a_host(const struct rates *r, int64_t size, int64_t stride)
{
	const int64_t here = r->devices_per_node / stride;
	const bool two_levels = r->devices_per_node % stride == 0 && here > 1 && size > here && size % here == 0;
	return two_levels ? here : 0;
}

struct collective_price price_hierarchical(const struct rates *r, enum collective c, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, struct error *e)
{
	const int64_t here = c == COLL_ALL_REDUCE ? ranks_a_host(r, size, stride) : 0;
	const struct collective_choice any = {ALGO_AUTO, forced.protocol}, ring = {ALGO_RING, forced.protocol};
	if (here == 0)
		return price_flat(r, c, size, stride, any, bytes, e);
	const struct collective_price parts[] = {
		price_flat(r, COLL_REDUCE_SCATTER, here, stride, any, bytes, e),
		price_flat(r, COLL_ALL_REDUCE, size / here, r->devices_per_node, ring, bytes / (double)here, e),
		price_flat(r, COLL_ALL_GATHER, here, stride, any, bytes, e),
	};
	struct collective_price p = {.measured = true,
		.algo = -1,
		.proto = -1,
		.algorithm = algorithm_traits[ALGO_HIERARCHICAL].name};
	double latency_bound_s = 0;
	for (size_t i = 0; i < COUNT(parts); i++) {
		p.time_s += parts[i].time_s;
		latency_bound_s += parts[i].bound == BOUND_LATENCY ? parts[i].time_s : 0;
		p.rel_sigma = fmax(p.rel_sigma, parts[i].rel_sigma); /* as if the parts erred alike */
		p.measured = p.measured && parts[i].measured;
		p.channels = parts[i].channels > p.channels ? parts[i].channels : p.channels;
	}
	p.bound = latency_bound_s > p.time_s / 2 ? BOUND_LATENCY : BOUND_LINK;
	return p;
}

/* The ranks of one place on each host exchange rows, one for each host, while those of a host pass on what has come
 * (DeepEP, docs/legacy.md: kernels that forward from RDMA to NVLink): so the longer of both counts. */
struct collective_price price_once_a_host(const struct rates *r, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, double crossing_B, struct error *e)
{
	const int64_t here = ranks_a_host(r, size, stride);
	if (here == 0)
		return collective_price(r, COLL_ALLTOALL, size, stride, forced, bytes, e);
	const struct collective_price across = price_flat(r, COLL_ALLTOALL, size / here, r->devices_per_node, forced,
					      crossing_B, e),
				      inside = price_flat(r, COLL_ALLTOALL, here, stride, forced, bytes, e);
	struct collective_price p = across.time_s >= inside.time_s ? across : inside;
	p.rel_sigma = fmax(across.rel_sigma, inside.rel_sigma);
	p.measured = across.measured && inside.measured;
	p.algorithm = "once a host";
	return p;
}

/* DeepEP's warps copy each row through their registers, so its few SMs may move rows more slowly than links do
 * (csrc/kernels/intranode.cu). All rows that a rank receives count, its own too: they go through the same buffers. */
static double deepep_s(const struct rates *r, double rows, double bytes)
{
	return (rows * r->parameters->deepep.row_s + bytes / r->parameters->deepep.Bps) / r->parameters->deepep.sms;
}

struct collective_price collective_price_of(const struct rates *r, const struct op *op, int64_t size, int64_t stride,
	struct collective_choice forced, double bytes, struct error *e)
{
	const double element_B = dtype_bytes((enum dtype)op->dtype);
	const bool exchange = op->coll == COLL_ALLTOALL;
	if (exchange && op->collective.once > 0)
		bytes = (double)op->collective.once * element_B;
	struct collective_price p = exchange && op->collective.crossing > 0
	                                    ? price_once_a_host(r, size, stride, forced, bytes,
						      (double)op->collective.crossing * element_B, e)
	                                    : collective_price(r, (enum collective)op->coll, size, stride, forced,
						      bytes, e);
	const bool by_sms = exchange && op->collective.rows > 0 && size > 1 && r->compute_capability > 0 && !p.measured;
	const double least_s = by_sms ? deepep_s(r, (double)op->collective.rows, bytes) : 0;
	if (by_sms)
		p.channels = (int32_t)r->parameters->deepep.sms;
	if (least_s > p.time_s) {
		p.time_s = least_s;
		p.bound = BOUND_LINK;
	}
	return p;
}
