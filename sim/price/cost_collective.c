/* The cost of a collective or message: its time from the machine's links, what hides behind products, and what it takes
 * from compute and memory beside it. */
#include "sim/price/cost_parts.h"

#include <math.h>

/* Sets the weight w and the compute demand d of a collective, so that together with one compute op (weight 1, demand 1)
 * both run at the rates measured for that pair: x_g for compute, x_c for the collective. Max-min filling stops where
 * t + d w t = 1. With w = x_c / x_g and d = (1 - x_g) / x_c that gives t = x_g, and the collective moves at w t = x_c.
 */
static void set_overlap(struct activity *use, const struct rates *r, double compute_rate, double comm_rate)
{
	double x_g = fmin(1, fmax(r->parameters->cost.least_overlap_rate, compute_rate)),
	       x_c = fmin(1, fmax(r->parameters->cost.least_overlap_rate, comm_rate));
	use->weight = x_c / x_g;
	use->demand[RES_COMPUTE] = (1 - x_g) / x_c;
}

/* Sets what a transfer between hosts takes of compute on cores, and compute of it. Each byte that comes or goes costs
 * both, at any rate of the network; and a thread polls for as long as a transfer is under way, the same for all of a
 * rank. That thread gets the core late when a message has come, which each message of the transfer costs. Returns false
 * where no profile has it. */
static bool use_between(const struct rates *r, const struct op *op, int64_t size, int64_t stride, struct op_cost *out)
{
	const struct overlap_between *b = &r->between;
	if (b->turn_s < 0 || machine_group_in_node(r->machine, size, stride))
		return false;
	const double both_ways_B = op_wire_B(op, size) * (op_is_message(op) ? 1 : 2),
		     beside_s = out->alone_s + b->comm_s_per_B * both_ways_B +
	                        b->turn_s * collective_rounds((enum collective)op->coll, size),
		     moving = b->compute_s_per_B * both_ways_B / beside_s,
		     most = 1 - r->parameters->cost.least_overlap_rate;
	out->use.beside = out->alone_s / beside_s;
	out->use.held = fmin(b->wait_share, most);
	out->use.demand[RES_COMPUTE] = fmin(moving / (1 - out->use.held), most) / out->use.beside;
	return true;
}

static void use_of_collective(const struct program *p, const struct op *op, const struct rates *r, int64_t size,
	int64_t stride, struct op_cost *out)
{
	out->use.demand[machine_group_in_node(r->machine, size, stride) ? RES_LINK_INTRA : RES_LINK_INTER] = 1;
	if (use_between(r, op, size, stride, out))
		return;
	if (r->overlap_compute > 0 && r->overlap_comm > 0) {
		set_overlap(&out->use, r, r->overlap_compute, r->overlap_comm); /* the measured rates include memory */
		return;
	}
	if (!r->is_host && !r->link_engines) {
		set_overlap(&out->use, r, 1 - p->config.stack.overlap_tax, 1); /* the fitted tax includes memory */
		return;
	}
	if (r->is_host)
		set_overlap(&out->use, r, 1 - r->parameters->cost.collective_compute_share, 1);
	cost_use_memory(r->parameters->cost.collective_memory_passes * op_wire_B(op, size), r, out);
}

/* A message uses one direction of the link, half of a collective's demand. Across a slower link, such as that between
 * racks, it fills no more of its host's than its own rate. The executor's holds its thread blocks while it waits for
 * the other end and while it moves. Without a profile the prediction is of other software, whose constants were fitted
 * without such a share. */
static void use_of_message(const struct op *op, const struct rates *r, int64_t stride, struct op_cost *out)
{
	double *link = &out->use.demand[machine_group_in_node(r->machine, 2, stride) ? RES_LINK_INTRA : RES_LINK_INTER];
	*link = 0.5;
	if (use_between(r, op, 2, stride, out)) {
		*link *= fmin(1, op_wire_B(op, 2) / r->inter.Bps / out->alone_s);
		return;
	}
	cost_use_memory(op_wire_B(op, 2), r, out);
	if (r->measured && !r->is_host) {
		out->use.held = fmin(MESSAGE_BLOCKS / (double)r->device.sms,
			1 - r->parameters->cost.least_overlap_rate);
		set_overlap(&out->use, r, 1 - out->use.held, 1);
	}
}

bool cost_hides_tensor(const struct program *p, const struct rates *r)
{
	return p->config.parallel.tensor_overlap && !r->is_host;
}

/* A collective cut into a piece for each member has one piece exposed: a gather until the first product can begin, a
 * scatter after the last has ended (Wang et al. 2023, Overlap Communication with Dependent Computation via
 * Decomposition, ASPLOS, https://doi.org/10.1145/3567955.3567959). The stack's tensor_exposed replaces that where it is
 * known. */
static double exposed_beside_tiles(const struct config *c)
{
	return c->stack.tensor_exposed > 0 ? c->stack.tensor_exposed : 1 / (double)c->parallel.tensor;
}

/* True where an exchange of rows stays whole: a sum of products (OP_WHOLE), and with DTensor gathers before products of
 * fp8 with a scale a row, which Inductor does not match (pytorch/pytorch issue 149990). */
static bool stays_whole(const struct config *c, const struct op *op)
{
	const bool by_rows = op->coll == COLL_ALL_GATHER && c->train.dtype == DT_FP8 &&
	                     stack_recipe(&c->stack) == FP8_ROWWISE;
	return op->flags & OP_WHOLE || (c->stack.dtensor && by_rows);
}

/* True where products surround a collective. Sums of the loss and of replicated parameters' gradients have none. */
static bool lies_beside_products(const struct program *p, const struct op *op, const struct rates *r)
{
	return cost_hides_tensor(p, r) && op->group == DIM_TP && op->lane == LANE_MODEL_COMM &&
	       (op->coll == COLL_ALL_GATHER || op->coll == COLL_REDUCE_SCATTER) && !stays_whole(&p->config, op);
}

/* Returns what such a collective of so many bytes takes longer than NCCL's: its pieces go to the next rank alone
 * (transformer_engine/common/comm_gemm_overlap/comm_gemm_overlap.cpp, _next_rank). Without a switch they use the links
 * of one pair, where NCCL's rings use those of all. */
static double next_rank_s(const struct rates *r, int64_t size, int64_t stride, double bytes)
{
	struct group g;
	if (rates_group(r, size, stride, &g, NULL) || !g.in_node || !(g.pair_Bps > 0) || g.pair_Bps >= g.ring_Bps)
		return 0;
	return bytes * (double)(size - 1) / (double)size * (1 / g.pair_Bps - 1 / g.ring_Bps);
}

/* Returns the time of copying gathered slices into place, or those of gradients before they are scattered. They arrive
 * by rank, and a kernel for each rank's slice of each tensor copies it. The host issues these kernels behind the
 * collective, no faster than it launches. The executor gathers in place and copies nothing. */
static double copies_back_s(const struct op *op, const struct rates *r, int64_t size)
{
	double slices = (op->coll == COLL_ALL_GATHER || op->coll == COLL_REDUCE_SCATTER) && !r->is_host && !r->measured
	                        ? (double)(op->collective.tensors * size)
	                        : 0;
	return slices > 0 ? fmax(slices * r->launch_s,
				    2 * (double)op->collective.elements * dtype_bytes(op->dtype) / r->memory_Bps)
	                  : 0;
}

/* Returns the time of the kernels around an exchange of rows between tensor ranks with PyTorch's DTensor. Rows of the
 * same sequence lie side by side, but ranks' rows come one rank behind the other. They are put in order behind a
 * gather, where one sequence needs nothing, and before a scatter (torch/distributed/_functional_collectives.py,
 * all_gather_tensor and reduce_scatter_tensor: torch.cat of chunks; torch/_utils.py, _maybe_view_chunk_cat). In fp8
 * both products of a backward pass want the sum's axis innermost, so gathered rows are transposed, too
 * (torchao/float8/float8_ops.py, preprocess_addmm). Asynchronous tensor parallelism copies piece by piece, but adds all
 * ranks' pieces in a kernel behind a scatter (torch/distributed/_symmetric_memory, _fused_matmul_reduce_scatter_impl).
 */
static double rows_copied_s(const struct program *p, const struct op *op, const struct rates *r, int64_t size,
	bool hidden)
{
	const bool gathers = op->coll == COLL_ALL_GATHER, one_sequence = p->config.train.micro_batch == 1;
	const double bytes = (double)op->collective.elements * dtype_bytes(op->dtype);
	if (!p->config.stack.dtensor || op->group != DIM_TP || op->lane != LANE_MODEL_COMM || r->is_host ||
		r->measured || (!gathers && op->coll != COLL_REDUCE_SCATTER))
		return 0;
	const double transposed = gathers && op->dtype == DT_FP8 ? 2 : 0,
		     copied = hidden                    ? (gathers ? 0 : 1 + 1 / (double)size)
	                      : gathers && one_sequence ? 0
	                                                : 2;
	return (copied + transposed) * bytes / r->memory_Bps;
}

/* Returns over how many tensor ranks a message is scattered (D. Narayanan et al. 2021, arXiv:2104.04473, section 4.1):
 * each sends a part, and the receivers gather it. The executor sends all of it. */
static int64_t message_parts(const struct program *p, const struct op *op, const struct rates *r)
{
	const struct parallel *l = &p->config.parallel;
	return op_is_message(op) && p->config.stack.scatters_messages && !l->sequence_parallel && !r->is_host &&
	                       !r->measured
	               ? l->tensor
	               : 1;
}

/* Returns the collective as the stack calls it: an all-reduce in place of a reduce-scatter of gradients where it
 * reduces_whole. The executor scatters. */
static struct op as_called(const struct program *p, const struct op *op, const struct rates *r)
{
	struct op called = *op;
	if (op->coll == COLL_REDUCE_SCATTER && op->lane == LANE_COMM && op->bucket >= 0 &&
		p->config.stack.reduces_whole && !strategy_has(p->config.parallel.strategy, STRATEGY_CUTS_WEIGHTS) &&
		!r->is_host && !r->measured)
		called.coll = COLL_ALL_REDUCE;
	return called;
}

enum status cost_collective(const struct program *p, const struct op *asked, const struct rates *r, struct op_cost *out,
	struct error *e)
{
	const struct op called = as_called(p, asked, r), *op = &called;
	int64_t size = op_group_size(&p->mesh, op), stride = p->mesh.stride[op->group];
	struct rates lone; /* of a message: without the traffic of the host's other stages */
	const struct rates *seen = r;
	if (op_is_message(op) || op->flags & OP_ENDS) {
		lone = *r;
		lone.network_factor *= stage_relief(r, stride, e);
		seen = &lone;
		stride = op_is_message(op) ? pair_stride(r, stride, op->message.own, op->message.peer)
		                           : pair_stride(r, stride, 0, p->mesh.size[op->group] - 1);
	}
	if (size <= 1)
		return ST_OK;
	enum collective c = (enum collective)op->coll;
	const struct collective_choice forced = p->config.collectives;
	const int64_t parts = message_parts(p, op, r);
	const double bytes = (double)op->collective.elements * dtype_bytes(op->dtype);
	struct collective_price price = collective_price_of(seen, op, size, stride, forced, bytes / (double)parts, e);
	price.time_s += collective_time_s(r, COLL_ALL_GATHER, parts, p->mesh.stride[DIM_TP], bytes, e);
	if (r->compute_capability <= 0 &&
		(forced.protocol != PROTO_AUTO || !algorithm_traits[forced.algorithm].portable))
		return error_set(e, ST_INPUT, "collectives.%s: %s runs no NCCL; only NVIDIA's GPUs do",
			forced.protocol != PROTO_AUTO ? "protocol" : "algorithm", r->machine->device.name);
	const bool hidden = lies_beside_products(p, op, r) && !price.measured;
	if (hidden)
		price.time_s += next_rank_s(r, size, stride, bytes);
	out->alone_s = price.time_s + copies_back_s(op, r, size) + rows_copied_s(p, op, r, size, hidden);
	if (hidden)
		out->tile_overlap_s = price.time_s * (1 - exposed_beside_tiles(&p->config));
	if (!isfinite(out->alone_s) || !(out->alone_s > 0))
		return error_set(e, ST_INPUT,
			"%s over %lld ranks: no rate of the link between them is known; measure it with `stepsim "
			"calibrate` under mpirun",
			collective_name(c), (long long)size);
	out->issue_s = r->is_host ? 0 : cost_issue_s(p, r);
	if (op->group == DIM_TP && p->config.parallel.pipeline > 1 && r->nodes > 1)
		out->issue_s += p->config.stack.tensor_call_s * (double)size * r->launch_factor;
	out->bound = price.bound;
	out->rel_sigma = price.rel_sigma;
	out->guessed = r->measured && !price.measured &&
	               !op_is_message(op); /* a pair's link is what a profile measures */
	if (op_is_message(op))
		use_of_message(op, r, stride, out);
	else
		use_of_collective(p, op, r, size, stride, out);
	return ST_OK;
}
