#include "sim/cost.h"

#include <math.h>
#include <stdio.h>

#include "sim/gpu.h"
#include "step/blame.h"

/* ---- parameters that no datasheet and no profile gives ---- */

/* What a running collective takes from compute when nothing was measured: a tenth of the compute unit, and its own memory traffic (below). Its CTAs hold SMs of their own
 * (24 of an H100's 132 in NVIDIA's forum, thread 337991), so that compute cannot push it back: it is slowed by memory alone. Overlapped compute is 18.9 % slower on the mean
 * of four GPU types (arXiv:2507.03114), memory included. */
#define COLLECTIVE_COMPUTE_SHARE 0.1
/* A ring collective reads what it sends and writes what it receives. */
#define COLLECTIVE_MEMORY_PASSES 2.0
/* Measured rates are kept away from 0, where a weight or a demand would be infinite. */
#define LEAST_OVERLAP_RATE 0.02
/* Host-device copies where the catalogue names no PCIe rate: x16 of generation 4, one direction. */
#define DEFAULT_PCIE_Bps 31.5e9
/* What copies from pageable memory reach of that: pinned ones are "more than twice as fast" (M. Harris, How to Optimize Data Transfers in CUDA C/C++, NVIDIA developer blog, 2012). */
#define PAGEABLE_SHARE 0.5

/* What AdamW on a host's cores, all its ranks at once, makes of its memory, bytes of parameters, gradients and moments counted once each way. DeepSpeed's CPUAdam: 40 GB/s (11.6 G parameters in 8.2 s: github.com/microsoft/DeepSpeed/pull/735),
 * 51 GB/s (72.7 G parameters on 4 hosts in about 10 s: deepspeedai/DeepSpeed#6834, copies included); Megatron-Core's with one GPU in use 18 GB/s (0.6 G in 0.93 s more a step: NVIDIA-NeMo/RL#3628); on a host of 8 H200 with cores bound
 * to their memory some 390 GB/s (30.5 G in 2.2 s more a step: PrimeIntellect-ai/prime-rl#3234). Hence the factor. */
#define HOST_UPDATE_Bps 50e9
#define HOST_UPDATE_FACTOR 4

/* Relative uncertainties, one standard deviation: how far from the truth each way of pricing is expected to be. */
#define SIGMA_CURVE 0.10     /* a measured curve, interpolated */
#define SIGMA_CATALOGUE 0.15 /* datasheet x the share that its kind of op usually reaches */
#define SIGMA_GUESSED 0.5    /* a profile without the entry */

/* The host thread's time for one op on a GPU; a graph launches all that it holds at once (sim/predict.c). */
static double issue_s(const struct program *p, const struct machine *m)
{
	if (p->config.train.cuda_graph)
		return 0;
	return p->config.stack.op_s > 0 ? p->config.stack.op_s * what_if_factor(m->what_if.launch) : m->device.launch_s;
}

/* By how much a time that is spent on `b` and comes from a profile is longer than measured. A GPU's kernels start and drain whatever a launch costs the host. */
static double profile_what_if(const struct machine *m, enum bound b)
{
	const struct what_if *w = &m->what_if;
	return b == BOUND_COMPUTE ? 1 / what_if_factor(w->compute) : b == BOUND_MEMORY ? 1 / what_if_factor(w->memory) : m->device.is_host ? what_if_factor(w->launch) : 1;
}

/* ---- compute ---- */

static double bytes_of(const struct op *op)
{
	return op_read_B(op) + op_write_B(op);
}

static double mem_rate_Bps(const struct machine *m)
{
	return m->device.mem_Bps * m->device.mem_share;
}

static double memory_s(const struct op *op, const struct machine *m)
{
	double rate = mem_rate_Bps(m);
	return rate > 0 ? bytes_of(op) / rate : 0;
}

/* Matrix units do these; softmax over stored scores is vector work. */
static bool uses_matrix_units(const struct op *op)
{
	enum op_class c = op_class_of(op);
	return (c == CLASS_GEMM || c == CLASS_ATTENTION) && op->kind != OP_ATTN_SOFTMAX && op->kind != OP_ATTN_SOFTMAX_GRAD;
}

static void price_host_by_roofline(const struct op *op, const struct machine *m, struct op_cost *out)
{
	const struct device_spec *d = &m->device;
	double peak = uses_matrix_units(op) ? d->matrix_flop_per_s[op->dtype] * d->gemm_share : d->vector_flop_per_s;
	double compute_s = peak > 0 ? op_flop(op) / peak : 0, mem_s = memory_s(op, m), work_s = fmax(compute_s, mem_s);
	out->alone_s = d->launch_s + work_s;
	out->bound = d->launch_s > work_s ? BOUND_LATENCY : compute_s > mem_s ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* On a GPU, a kernel that is over before the next one is launched waits for the host. */
static void bound_by_launch(struct op_cost *out)
{
	if (out->issue_s > out->alone_s)
		out->bound = BOUND_LATENCY;
}

static void price_by_roofline(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out)
{
	if (m->device.is_host) {
		price_host_by_roofline(op, m, out);
	} else {
		out->alone_s = gpu_op_s(op, &m->device, &p->config.stack, &out->bound);
		bound_by_launch(out);
	}
	out->rel_sigma = m->profile ? SIGMA_GUESSED : SIGMA_CATALOGUE;
	out->guessed = m->profile != NULL;
}

struct work_device cost_device(const struct machine *m)
{
	double sms = m->profile ? profile_get_value(m->profile, "sms", (double)m->device.sms) : (double)m->device.sms;
	return (struct work_device){.gpu = !m->device.is_host, .sms = sms >= 1 ? (int64_t)sms : 1};
}

/* What each term of a fit (step/work.h) is spent on. */
static const uint8_t gemm_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY, BOUND_MEMORY, BOUND_MEMORY};
static const uint8_t flash_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_LATENCY};
static const uint8_t naive_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY, BOUND_MEMORY, BOUND_LATENCY};

static const uint8_t gpu_gemm_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_COMPUTE};
static const uint8_t gpu_attention_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY};

static const uint8_t *term_bounds(const struct op *op, bool gpu)
{
	if (gpu)
		return op_is_product(op) ? gpu_gemm_terms : gpu_attention_terms;
	if (op_is_product(op))
		return gemm_terms;
	return op_is_flash(op) ? flash_terms : naive_terms;
}

static enum bound largest(const double spent_s[BOUND_COUNT])
{
	enum bound most = BOUND_COMPUTE;
	for (int b = 0; b < BOUND_COUNT; b++)
		most = spent_s[b] > spent_s[most] ? (enum bound)b : most;
	return most;
}

static bool price_by_fit(const struct op *op, const struct work *w, const struct machine *m, struct op_cost *out)
{
	const struct profile_fit *fit = profile_get_fit(m->profile, w->name);
	if (!fit || fit->n != WORK_TERMS)
		return false;
	const uint8_t *bound_of = term_bounds(op, !m->device.is_host);
	double spent_s[BOUND_COUNT] = {0};
	out->alone_s = 0;
	for (int i = 0; i < WORK_TERMS; i++) {
		const double term_s = fit->coef[i] * w->term[i] * profile_what_if(m, (enum bound)bound_of[i]);
		out->alone_s += term_s;
		spent_s[bound_of[i]] += term_s;
	}
	out->bound = largest(spent_s);
	out->rel_sigma = fit->residual;
	if (!m->device.is_host && memory_s(op, m) > out->alone_s) {
		out->alone_s = memory_s(op, m);
		out->bound = BOUND_MEMORY;
	}
	bound_by_launch(out);
	return true;
}

static bool price_by_curve(const struct op *op, const struct work *w, const struct machine *m, struct op_cost *out)
{
	const struct profile_curve *curve = profile_get_curve(m->profile, w->name);
	if (!curve)
		return false;
	double call_s = profile_get_value(m->profile, "call_s", 0) * what_if_factor(m->what_if.launch), work_s = w->elements * profile_curve_at(curve, w->footprint_B, 1);
	/* In cache it moves its bytes faster than memory could, out of cache at memory's rate; arithmetic shows as a time well above that. */
	const enum bound bound = memory_s(op, m) * what_if_factor(m->what_if.memory) >= work_s / 2 ? BOUND_MEMORY : BOUND_COMPUTE;
	work_s *= profile_what_if(m, bound);
	out->alone_s = call_s + work_s;
	out->bound = call_s > work_s ? BOUND_LATENCY : bound;
	out->rel_sigma = SIGMA_CURVE;
	bound_by_launch(out);
	return true;
}

static enum status no_such_format(const struct config *c, const struct op *op, const struct device_spec *d, struct error *e)
{
	char known[128] = "";
	size_t n = 0;
	for (int t = 0; t < DT_COUNT; t++)
		if (d->matrix_flop_per_s[t] > 0)
			n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", dtype_name((enum dtype)t));
	error_set(e, ST_INPUT, "matrices are not multiplied in %s on %s (they are in: %s)", dtype_name(op->dtype), d->name, n ? known : "none that is known");
	return config_blame_dtype(c, e);
}

static enum status cost_compute(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out, struct error *e)
{
	if (uses_matrix_units(op) && !(m->device.matrix_flop_per_s[op->dtype] > 0))
		return no_such_format(&p->config, op, &m->device, e);
	if (!m->device.is_host)
		out->issue_s = issue_s(p, m);
	struct work w;
	struct work_device device = cost_device(m);
	work_of(op, &device, &w);
	bool priced = m->profile && (w.form == FORM_FIT ? price_by_fit(op, &w, m, out) : price_by_curve(op, &w, m, out));
	if (!priced)
		price_by_roofline(p, op, m, out);
	else if (m->borrowed_scale > 0)
		out->alone_s *= m->borrowed_scale;
	out->use.demand[RES_COMPUTE] = 1;
	out->use.demand[RES_MEMORY] = out->alone_s > 0 ? fmin(1, memory_s(op, m) / out->alone_s) : 0;
	return ST_OK;
}

/* ---- copies ---- */

static void cost_copy(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out)
{
	const struct device_spec *d = &m->device;
	if (d->is_host) {
		/* A thread copies: it takes one core of the rank's. */
		int64_t cores = m->profile && m->profile->key.cores_per_rank > 0 ? m->profile->key.cores_per_rank : 1;
		out->alone_s = d->launch_s + memory_s(op, m);
		out->use.demand[RES_COMPUTE] = 1 / (double)cores;
		out->bound = memory_s(op, m) > d->launch_s ? BOUND_MEMORY : BOUND_LATENCY;
	} else {
		double rate = m->profile ? profile_get_value(m->profile, op->flags & OP_INVERSE ? "copy.d2h_Bps" : "copy.h2d_Bps", d->pcie_Bps) : d->pcie_Bps;
		out->alone_s = op_write_B(op) / (rate > 0 ? rate : DEFAULT_PCIE_Bps) / (op->flags & OP_PAGEABLE ? PAGEABLE_SHARE : 1);
		out->issue_s = p->config.train.cuda_graph ? 0 : d->launch_s;
		/* "The function will return once the pageable buffer has been copied to the staging memory" (CUDA Runtime API, API synchronization behavior) */
		out->holds = op->flags & OP_PAGEABLE;
		out->bound = out->alone_s > d->launch_s ? BOUND_LINK : BOUND_LATENCY;
	}
	out->use.demand[RES_MEMORY] = out->alone_s > 0 ? fmin(1, memory_s(op, m) / out->alone_s) : 0;
	out->rel_sigma = SIGMA_CATALOGUE;
}

/* ---- the host's own work ---- */

double cost_host_update_Bps(const struct program *p, const struct machine *m)
{
	int64_t ranks = p->mesh.ranks < m->devices_per_node ? p->mesh.ranks : m->devices_per_node;
	return HOST_UPDATE_Bps / (double)ranks;
}

double cost_host_update_factor(void)
{
	return HOST_UPDATE_FACTOR;
}

/* The host thread calls the update and waits for its cores. */
static void cost_host_update(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out)
{
	out->alone_s = bytes_of(op) / cost_host_update_Bps(p, m);
	out->bound = BOUND_HOST;
	out->holds = true;
	out->rel_sigma = 0; /* the interval takes the factor by itself (sim/summary.c) */
}

static double load_s(const struct config *c)
{
	return program_loads_ahead(c) > 0 ? c->data.load_time_s / (double)c->data.workers : c->data.load_time_s;
}

/* A synchronisation's own cost is the launch with which the device begins again; that nothing has been launched ahead by then is what it does to the step (sim/predict.c). */
static void cost_host(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out)
{
	const struct config *c = &p->config;
	switch (op->kind) {
	case OP_LOAD: out->alone_s = load_s(c); break;
	case OP_PAUSE: out->alone_s = op->d[0] ? c->stack.step_s : c->stack.micro_batch_s; break;
	default: out->alone_s = m->device.is_host ? 0 : m->device.launch_s / (double)c->train.sync_every;
	}
	out->bound = BOUND_HOST;
	out->holds = op->lane == LANE_HOST && !m->device.is_host;
}

/* ---- collectives ---- */

/* Weight and compute demand with which one collective beside one op of compute (weight 1, demand 1) gives exactly the rates measured for that pair: max-min filling stops where
 * t + d w t = 1; with w = x_c / x_g and d = (1 - x_g) / x_c that is t = x_g, and the collective moves at w t = x_c. */
static void set_overlap(struct activity *use, double compute_rate, double comm_rate)
{
	double x_g = fmin(1, fmax(LEAST_OVERLAP_RATE, compute_rate)), x_c = fmin(1, fmax(LEAST_OVERLAP_RATE, comm_rate));
	use->weight = x_c / x_g;
	use->demand[RES_COMPUTE] = (1 - x_g) / x_c;
}

static void use_of_collective(const struct program *p, const struct op *op, const struct machine *m, int64_t size, int64_t stride, struct op_cost *out)
{
	out->use.demand[machine_group_in_node(m, size, stride) ? RES_LINK_INTRA : RES_LINK_INTER] = 1;
	double x_g = m->profile ? profile_get_value(m->profile, "overlap.compute_rate", 0) : 0;
	double x_c = m->profile ? profile_get_value(m->profile, "overlap.comm_rate", 0) : 0;
	if (x_g > 0 && x_c > 0) {
		set_overlap(&out->use, x_g, x_c); /* memory is part of what was measured */
		return;
	}
	if (!m->device.is_host) {
		set_overlap(&out->use, 1 - p->config.stack.overlap_tax, 1); /* memory is part of what was fitted */
		return;
	}
	set_overlap(&out->use, 1 - COLLECTIVE_COMPUTE_SHARE, 1);
	double moved_s = mem_rate_Bps(m) > 0 ? COLLECTIVE_MEMORY_PASSES * op_wire_B(op, size) / mem_rate_Bps(m) : 0;
	out->use.demand[RES_MEMORY] = fmin(1, moved_s / out->alone_s);
}

/* A message uses one direction of the link, half of what it is to a collective; its few channels take next to nothing from compute. */
static void use_of_message(const struct op *op, const struct machine *m, int64_t stride, struct op_cost *out)
{
	double moved_s = mem_rate_Bps(m) > 0 ? op_wire_B(op, 2) / mem_rate_Bps(m) : 0;
	out->use.demand[machine_group_in_node(m, 2, stride) ? RES_LINK_INTRA : RES_LINK_INTER] = 0.5;
	out->use.demand[RES_MEMORY] = fmin(1, moved_s / out->alone_s);
}

bool cost_hides_tensor(const struct program *p, const struct machine *m)
{
	return p->config.parallel.tensor_overlap && !m->device.is_host;
}

/* Cut into a piece for each member, a gather is bare until the first product can begin, a scatter once the last has ended: one piece of t (Wang et al. 2023, Overlap Communication with Dependent Computation via
 * Decomposition, ASPLOS, https://doi.org/10.1145/3567955.3567959), unless the stack's runs tell more. */
static double exposed_beside_tiles(const struct config *c)
{
	return c->stack.tensor_exposed > 0 ? c->stack.tensor_exposed : 1 / (double)c->parallel.tensor;
}

/* Sums of the loss and of replicated parameters' gradients have no product around them. */
static bool lies_beside_products(const struct program *p, const struct op *op, const struct machine *m)
{
	return cost_hides_tensor(p, m) && op->group == DIM_TP && op->lane == LANE_MODEL_COMM && (op->coll == COLL_ALL_GATHER || op->coll == COLL_REDUCE_SCATTER);
}

/* What was gathered lies by rank, and a kernel for each rank's slice of each tensor copies it to where it belongs: the host issues them behind the collective, and no faster than it launches. What is executed gathers in place. */
static double copies_back_s(const struct op *op, const struct machine *m, int64_t size)
{
	double slices = op->coll == COLL_ALL_GATHER && !m->device.is_host && !m->profile ? (double)(op->d[1] * size) : 0;
	return slices > 0 ? fmax(slices * m->device.launch_s, 2 * (double)op->d[0] * dtype_bytes(op->dtype) / mem_rate_Bps(m)) : 0;
}

static enum status cost_collective(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out, struct error *e)
{
	int64_t size = op_group_size(&p->mesh, op), stride = p->mesh.stride[op->group];
	if (op_is_message(op))
		stride = pair_stride(m, stride, op->d[2], op->d[1]);
	else if (op->flags & OP_ENDS)
		stride = pair_stride(m, stride, 0, p->mesh.size[op->group] - 1);
	if (size <= 1)
		return ST_OK;
	enum collective c = (enum collective)op->coll;
	struct nccl_choice forced = collective_choice(&p->config);
	struct collective_price price = collective_price(m, c, size, stride, forced, (double)op->d[0] * dtype_bytes(op->dtype));
	if (price.algo < 0 && m->device.compute_capability <= 0 && (forced.proto >= 0 || (forced.algo >= 0 && forced.algo != NCCL_RING)))
		return error_set(e, ST_INPUT, "collectives.%s: %s runs no NCCL; only NVIDIA's GPUs do", forced.proto >= 0 ? "protocol" : "algorithm", m->device.name);
	out->alone_s = price.time_s + copies_back_s(op, m, size);
	if (lies_beside_products(p, op, m) && !price.measured)
		out->beside_s = price.time_s * (1 - exposed_beside_tiles(&p->config));
	if (!isfinite(out->alone_s) || !(out->alone_s > 0))
		return error_set(e, ST_INPUT, "%s over %lld ranks: no rate of the link between them is known; measure it with `stepsim calibrate` under mpirun", collective_name(c), (long long)size);
	out->issue_s = m->device.is_host ? 0 : issue_s(p, m);
	if (op->group == DIM_TP && p->config.parallel.pipeline > 1 && m->nodes > 1)
		out->issue_s += p->config.stack.tensor_call_s * (double)size * what_if_factor(m->what_if.launch);
	out->bound = price.bound;
	out->rel_sigma = price.rel_sigma;
	out->guessed = m->profile && !price.measured && !op_is_message(op); /* a pair's link is what a profile measures */
	if (op_is_message(op))
		use_of_message(op, m, stride, out);
	else
		use_of_collective(p, op, m, size, stride, out);
	return ST_OK;
}

enum status cost_op(const struct program *p, const struct op *op, const struct machine *m, struct op_cost *out, struct error *e)
{
	*out = (struct op_cost){.use.weight = 1};
	if (op->kind == OP_COLLECTIVE)
		return cost_collective(p, op, m, out, e);
	if (op->kind == OP_COPY)
		cost_copy(p, op, m, out);
	else if (op_on_host(op))
		cost_host(p, op, m, out);
	else if (op->lane == LANE_HOST && !m->device.is_host)
		cost_host_update(p, op, m, out);
	else
		return cost_compute(p, op, m, out, e);
	return ST_OK;
}
