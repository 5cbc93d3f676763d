#include "sim/price/rates.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double factor(double x) { return x > 0 ? x : 1; }

static double value_of(const struct machine *m, const char *name, double missing)
{
	return m->profile ? profile_get_value(m->profile, name, missing) : missing;
}

/* ---- one device ---- */

/* Since Hopper cuBLAS runs 16-bit products whose rows are not aligned by instructions of older GPUs, however fast the
 * others are: Ampere's, or Turing's where rows are no whole multiples of half_aligned_B. Software pads those of 8 bits,
 * which no kernel takes. */
static void set_unaligned(const struct device_spec *d, const struct parameters *x, struct rates *r)
{
	const double old[] = {x->gpu.half_aligned_flop, x->gpu.unaligned_flop};
	const bool newer = (double)d->compute_capability >= x->gpu.unaligned_since;
	for (int t = 0; t < DT_COUNT; t++)
		for (int k = 0; k < 2; k++) {
			const double per_s = (double)d->sms * d->boost_Hz * old[k];
			const bool known = newer && per_s > 0 && dtype_bytes((enum dtype)t) == 2;
			const double slower = known ? d->matrix_flop_per_s[t] / per_s : 0;
			r->unaligned_slower[t][k] = fmax(x->gpu.unaligned_slower, slower);
		}
}

static void set_products(const struct device_spec *d, const struct parameters *x, struct rates *r)
{
	const double usual[][2] = {{x->gpu.first_forward_of_gemm, x->gpu.first_backward_of_gemm},
		{x->gpu.forward_of_gemm, x->gpu.backward_of_gemm}};
	for (int t = 0; t < DT_COUNT; t++) {
		const double share = d->format_share[t] > 0 ? d->format_share[t] : d->gemm_share;
		r->product_flop_per_s[t] = r->matrix_flop_per_s[t] * share;
		r->batched_flop_per_s[t] = r->matrix_flop_per_s[t] * (t == DT_FP32 ? share : d->gemm_share);
	}
	for (int k = 0; k < DEVICE_KERNELS; k++)
		for (int backward = 0; backward < 2; backward++) {
			const double share = d->attention_share[k][backward];
			r->attention_share[k][backward] = share > 0 ? share
			                                            : d->gemm_share * usual[k != KERNEL_FA1][backward];
		}
	memcpy(r->attention8_share, d->attention8_share, sizeof r->attention8_share);
	r->matrix_array = d->matrix_array;
	r->chip_devices = d->chip_devices > 0 ? (double)d->chip_devices : 1;
	r->attention_share[KERNEL_MASKED][0] = r->attention_share[KERNEL_FA2][0] * x->gpu.masked_forward;
	r->attention_share[KERNEL_MASKED][1] = r->attention_share[KERNEL_FA2][1] * x->gpu.masked_backward;
}

static double copy_Bps(const struct machine *m, const char *measured)
{
	const struct device_spec *d = &m->device;
	const double rate = value_of(m, measured, d->c2c_Bps > 0 ? d->c2c_Bps : d->pcie_Bps);
	return rate > 0 ? rate : m->parameters->cost.usual_pcie_Bps;
}

/* A kind may have several kernels, and a library's call comes before some of them. */
static void set_issues(const struct machine *m, double launch_factor, struct rates *r)
{
	for (int k = 0; k < OP_KIND_COUNT && m->profile && !m->device.is_host; k++) {
		char name[PROFILE_NAME];
		snprintf(name, sizeof name, PROFILE_ISSUE "%s", op_kind_info((enum op_kind)k)->name);
		r->issue_s[k] = value_of(m, name, 0) * launch_factor;
	}
}

static void set_device(const struct machine *m, const struct what_if *w, struct rates *r)
{
	const struct device_spec *d = &m->device;
	const double sms = value_of(m, PROFILE_SMS, (double)d->sms);
	r->is_host = d->is_host;
	r->link_engines = d->link_engines;
	r->device = (struct work_device){.gpu = !d->is_host,
		.sms = sms >= 1 ? (int64_t)sms : 1,
		.tiles = {m->parameters->gpu.tile_step, m->parameters->gpu.tile, m->parameters->gpu.split_k,
			m->parameters->gpu.attention_tile}};
	for (int t = 0; t < DT_COUNT; t++)
		r->matrix_flop_per_s[t] = d->matrix_flop_per_s[t] * factor(w->compute);
	set_products(d, m->parameters, r);
	set_unaligned(d, m->parameters, r);
	r->repeated_data = factor(d->repeated_data);
	r->exp_per_s = (double)d->sms * d->boost_Hz * m->parameters->gpu.exp_clock * factor(w->compute);
	r->vector_flop_per_s = d->vector_flop_per_s * factor(w->compute);
	if (d->compute_capability > 0) {
		const double clocks_per_s = d->boost_Hz * factor(w->compute);
		r->sm_clocks_per_s = (double)d->sms * clocks_per_s;
		r->unvectorized_per_s = r->sm_clocks_per_s * m->parameters->gpu.unvectorized;
		r->reduced_Bps = (double)d->sms * clocks_per_s * m->parameters->gpu.reduction_B;
		r->summed_rows_per_s = clocks_per_s * m->parameters->gpu.summed_rows;
		r->added_rows_per_s = clocks_per_s * m->parameters->gpu.added_rows;
		r->fp4_per_s[0] = (double)d->sms * clocks_per_s * m->parameters->gpu.fp4_cast;
		r->fp4_per_s[1] = (double)d->sms * clocks_per_s * m->parameters->gpu.fp4_grad_cast;
	}
	r->memory_Bps = d->mem_Bps * factor(w->memory) * d->mem_share;
	r->launch_s = d->launch_s * factor(w->launch);
	set_issues(m, factor(w->launch), r);
	r->copy_Bps[0] = copy_Bps(m, PROFILE_COPY_H2D_BPS);
	r->copy_Bps[1] = copy_Bps(m, PROFILE_COPY_D2H_BPS);
	r->cores = m->profile && m->profile->key.cores_per_rank > 0 ? (double)m->profile->key.cores_per_rank : 1;
	if (m->profile && !d->is_host)
		rates_power(m->profile, r);
	for (int t = 0; t < DT_COUNT; t++)
		r->power_cap[t].J_per_flop /= factor(w->compute);
	r->overlap_compute = value_of(m, PROFILE_COMPUTE_RATE, 0);
	r->overlap_comm = value_of(m, PROFILE_COMM_RATE, 0);
	r->between = (struct overlap_between){value_of(m, PROFILE_BETWEEN_TURN_S, -1),
		value_of(m, PROFILE_BETWEEN_COMM_S_PER_B, 0), value_of(m, PROFILE_BETWEEN_S_PER_B, 0),
		value_of(m, PROFILE_BETWEEN_WAIT_SHARE, 0), value_of(m, PROFILE_BETWEEN_ALONE_LATENCY, 1)};
}

/* ---- links ---- */

/* The make of the hosts' CPUs decides the cost of posting a transfer. Where it is not named, PCIe 4 means AMD, as it
 * did while A100s were new. */
static bool has_amd(const struct graph *g)
{
	for (size_t i = 0; i < g->vertex.n; i++)
		if (g->vertex.at[i].kind == VERTEX_CPU && g->vertex.at[i].cpu.model[0])
			return strstr(g->vertex.at[i].cpu.model, "AMD") || strstr(g->vertex.at[i].cpu.model, "EPYC");
	return g->gpu.n > 0 && g->vertex.at[g->gpu.at[0]].gpu.pcie_gen == 4;
}

static bool has_peer(const struct graph *g) { return g->gpu.n > 0 && !g->vertex.at[g->gpu.at[0]].gpu.no_peer; }

static void set_links(const struct machine *m, struct rates *r)
{
	r->intra = m->intra;
	r->inter = m->inter;
	r->intra.Bps *= r->inside_factor;
	r->inter.Bps *= r->network_factor;
	r->intra.latency_s *= r->latency_factor;
	r->inter.latency_s *= r->latency_factor * factor(m->links.network_latency);
	r->only_pairs = machine_has_pairs_only(m);
	r->path_is_measured = value_of(m, PROFILE_P2P_BPS, 0) > 0;
	r->network = m->network;
	r->network.node_Bps *= r->network_factor;
	r->network.alltoall_node_Bps *= r->network_factor;
	network_scale_times(&r->network, factor(m->links.network_latency));
	r->has_links = m->cluster && m->cluster->shape.n > 0;
	if (r->has_links) {
		const struct graph *host = m->cluster->shape.at[0].graph;
		r->amd_cpus = has_amd(host);
		r->peer_to_peer = has_peer(host);
	}
	r->compute_capability = m->device.compute_capability;
	r->nvlink_links = m->device.nvlink_links;
	r->box_gpus = m->box_gpus > 0 ? m->box_gpus : m->devices_per_node;
}

/* A GPU's kernels start and drain whatever a launch costs the host. */
static void set_factors(const struct machine *m, const struct what_if *w, struct rates *r)
{
	r->launch_factor = factor(w->launch);
	r->latency_factor = factor(w->latency) * factor(m->links.inside_latency);
	r->inside_factor = factor(w->inside) * factor(m->links.inside);
	r->network_factor = factor(w->network) * factor(m->links.network);
	r->placement_factor = factor(m->borrowed_scale);
	for (int b = 0; b < BOUND_COUNT; b++)
		r->entry_factor[b] = m->device.is_host ? factor(w->launch) : 1;
	r->entry_factor[BOUND_COMPUTE] = 1 / (factor(w->compute) * factor(m->pace.compute));
	r->entry_factor[BOUND_MEMORY] = 1 / (factor(w->memory) * factor(m->pace.memory));
}

struct rates rates_what_if(const struct machine *m, const struct what_if *w)
{
	struct rates r = {.machine = m,
		.parameters = m->parameters,
		.measured = m->profile != NULL,
		.nodes = m->nodes,
		.devices_per_node = m->devices_per_node};
	set_device(m, w, &r);
	set_factors(m, w, &r);
	set_links(m, &r);
	return r;
}

struct rates rates_of(const struct machine *m) { return rates_what_if(m, &(struct what_if){0}); }

/* ---- groups ---- */

/* Across hosts a ring runs at the lower of its rate inside a host and the rate of the NICs. */
static enum status scale_group(const struct rates *r, int64_t stride, struct group *g, struct error *e)
{
	g->ring_latency_s *= r->latency_factor;
	if (g->hosts > 1)
		g->ring_latency_s *= factor(r->machine->links.network_latency);
	if (g->hosts <= 1) {
		g->ring_Bps *= r->inside_factor;
		g->pair_Bps *= r->inside_factor;
		return ST_OK;
	}
	const int64_t per_host = (g->size + g->hosts - 1) / g->hosts;
	const double out_Bps = g->network_Bps * (double)per_host;
	const bool by_network = out_Bps <= g->ring_Bps;
	struct group here = {.ring_Bps = by_network ? INFINITY : g->ring_Bps};
	enum status st = by_network && per_host > 1 ? machine_group(r->machine, per_host, stride, &here, e) : ST_OK;
	g->network_Bps *= r->network_factor;
	g->pair_Bps *= r->network_factor;
	g->ring_Bps = fmin((by_network ? g->ring_Bps : out_Bps) * r->network_factor, here.ring_Bps * r->inside_factor);
	return st;
}

enum status rates_group(const struct rates *r, int64_t size, int64_t stride, struct group *out, struct error *e)
{
	if (r->only_pairs && size > 1) {
		machine_group_by_pairs(r->machine, r->intra, r->inter, size, stride, out);
		return ST_OK;
	}
	enum status st = machine_group(r->machine, size, stride, out, e);
	return st ? st : scale_group(r, stride, out, e);
}

enum status rates_exit(const struct rates *r, double *out_Bps, struct error *e)
{
	enum status st = machine_exit(r->machine, out_Bps, e);
	*out_Bps *= r->network_factor;
	return st;
}
