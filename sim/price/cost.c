#include "sim/price/cost_parts.h"

#include <math.h>
#include <stdio.h>

#include "sim/price/gpu.h"
#include "step/dropout.h"

double cost_issue_s(const struct program *p, const struct rates *r)
{
	if (p->config.train.cuda_graph)
		return 0;
	return p->config.stack.op_s > 0 ? p->config.stack.op_s * r->launch_factor : r->launch_s;
}

/* Returns the host's time to issue a computing op. A stack's own time is of any op; but no module of Python calls a
 * cast of autocast's or of gathered weights. */
static double op_issue_s(const struct program *p, const struct op *op, const struct rates *r)
{
	if (op->flags & OP_IN_PRODUCT)
		return 0;
	const struct stack *s = &p->config.stack;
	if (s->kernel_s > 0 && op->kind == OP_CAST && !dtype_is_narrow((enum dtype)op->out_dtype))
		return p->config.train.cuda_graph ? 0 : s->kernel_s * r->launch_factor;
	const double measured_s = r->issue_s[op->kind];
	return measured_s > 0 && !(p->config.stack.op_s > 0) && !p->config.train.cuda_graph ? measured_s
	                                                                                    : cost_issue_s(p, r);
}

/* ---- compute ---- */

static double bytes_of(const struct op *op) { return op_read_B(op) + op_write_B(op); }

static double move_s(double bytes, const struct rates *r) { return r->memory_Bps > 0 ? bytes / r->memory_Bps : 0; }

static double memory_s(const struct op *op, const struct rates *r) { return move_s(bytes_of(op), r); }

void cost_use_memory(double bytes, const struct rates *r, struct op_cost *out)
{
	out->use.demand[RES_MEMORY] = out->alone_s > 0 ? fmin(1, move_s(bytes, r) / out->alone_s) : 0;
}

/* True for ops on matrix units. Softmax over stored scores runs on vector units. */
static bool uses_matrix_units(const struct op *op)
{
	enum op_class c = op_class_of(op);
	const bool products = c == CLASS_GEMM || c == CLASS_CONVOLUTION || c == CLASS_ATTENTION || c == CLASS_SCAN;
	return products && op->kind != OP_ATTN_SOFTMAX && op->kind != OP_ATTN_SOFTMAX_GRAD;
}

static void price_host_by_roofline(const struct op *op, const struct rates *r, struct op_cost *out)
{
	double peak = uses_matrix_units(op) ? r->product_flop_per_s[op->dtype] : r->vector_flop_per_s;
	double compute_s = peak > 0 ? op_flop(op) / peak : 0, mem_s = memory_s(op, r), work_s = fmax(compute_s, mem_s);
	out->alone_s = r->launch_s + work_s;
	out->bound = r->launch_s > work_s ? BOUND_LATENCY : compute_s > mem_s ? BOUND_COMPUTE : BOUND_MEMORY;
}

/* A GPU that ends a kernel before the next one is launched waits for the host: the kernel is bound by latency. */
static void bound_by_launch(struct op_cost *out)
{
	if (out->issue_s > out->alone_s)
		out->bound = BOUND_LATENCY;
}

static void price_by_roofline(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out)
{
	if (r->is_host) {
		price_host_by_roofline(op, r, out);
	} else {
		out->alone_s = gpu_op_s(op, r, &p->config.stack, &out->bound);
		bound_by_launch(out);
	}
	out->rel_sigma = r->measured ? r->parameters->cost.sigma_guessed : r->parameters->cost.sigma_catalogue;
	out->guessed = r->measured;
}

/* The bound of each term of a fit (step/work.h). */
static const uint8_t gemm_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY, BOUND_MEMORY, BOUND_MEMORY};
static const uint8_t flash_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_COMPUTE, BOUND_MEMORY,
	BOUND_LATENCY};
static const uint8_t naive_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY, BOUND_MEMORY,
	BOUND_LATENCY};

static const uint8_t gpu_gemm_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_COMPUTE};
static const uint8_t gpu_attention_terms[WORK_TERMS] = {BOUND_LATENCY, BOUND_COMPUTE, BOUND_MEMORY};

static const uint8_t *term_bounds(const struct op *op, bool gpu)
{
	if (gpu)
		return op_is_product(op) || op_is_conv(op) ? gpu_gemm_terms : gpu_attention_terms;
	if (op_is_product(op) || op_is_conv(op))
		return gemm_terms;
	return op_is_flash(op) ? flash_terms : naive_terms;
}

/* Fills what the power limit's clock depends on. `fit_s`: the profile's time, memory's rate aside. Norms' gradients and
 * the like wait for sums within SMs, not for memory: they have the clock of these, too. */
static void note_power(const struct op *op, const struct rates *r, double fit_s, struct op_cost *out)
{
	if (!(r->power_limit_W > 0))
		return;
	const struct power_cap *cap = &r->power_cap[op->dtype];
	if (cap->J_per_flop > 0 && (op_is_product(op) || op_is_conv(op) || op_is_flash(op))) {
		out->clocked_s = fit_s;
		out->spare_s = out->alone_s - fit_s;
		out->matrix_J = op_flop(op) * cap->J_per_flop;
	} else {
		out->byte_J = bytes_of(op) * r->parameters->gpu.byte_energy;
		out->clocked_s = out->bound == BOUND_COMPUTE ? fit_s : 0;
	}
}

static bool price_by_profile(const struct op *op, const struct rates *r, struct op_cost *out)
{
	struct work w;
	struct measured_time t;
	work_of(op, &r->device, &w);
	if (!(w.form == FORM_FIT ? rates_fit(r, &w, term_bounds(op, !r->is_host), &t)
				 : rates_curve(r, &w, bytes_of(op), &t)))
		return false;
	out->alone_s = t.time_s;
	out->bound = t.bound;
	out->rel_sigma = t.rel_sigma;
	if (w.form == FORM_FIT && !r->is_host && memory_s(op, r) > out->alone_s) {
		out->alone_s = memory_s(op, r);
		out->bound = BOUND_MEMORY;
	}
	note_power(op, r, t.time_s, out);
	bound_by_launch(out);
	return true;
}

static enum status no_such_format(const struct config *c, const struct op *op, const struct rates *r, struct error *e)
{
	char known[128] = "";
	size_t n = 0;
	for (int t = 0; t < DT_COUNT; t++)
		if (r->matrix_flop_per_s[t] > 0)
			n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "",
				dtype_name((enum dtype)t));
	error_set(e, ST_INPUT, "matrices are not multiplied in %s on %s (they are in: %s%s)", dtype_name(op->dtype),
		r->machine->device.name, n ? known : "none that is known",
		r->is_host ? "; cluster.system names another machine" : "");
	return config_blame_dtype(c, e);
}

/* With train.expert_loop each expert's product is a call of its own. In the forward pass the host thread asks the
 * device for an expert's tokens before it calls it, and so waits for the expert before (huggingface/transformers,
 * MixtralSparseMoeBlock.forward: torch.where). */
static double loop_of(const struct program *p, const struct op *op, const struct rates *r)
{
	return p->config.train.expert_loop && op->kind == OP_GROUPED_GEMM && !r->is_host ? (double)op->gemm.groups : 1;
}

/* Returns the host thread's time to call an expert's product. AMD's library keeps the algorithms that it chose. */
static double expert_call_s(const struct rates *r)
{
	return r->machine->device.gfx[0] ? r->launch_s : r->parameters->gpu.expert_call_s * r->launch_factor;
}

/* Returns the host thread's time for a grouped product whose experts it calls one by one, behind its own launch. */
static double more_experts_s(const struct program *p, const struct op *op, const struct rates *r)
{
	if (op->kind != OP_GROUPED_GEMM || !p->config.stack.expert_calls || p->config.train.cuda_graph ||
		p->config.train.fused_experts)
		return 0;
	const double quantizers = dtype_is_narrow((enum dtype)op->dtype) ? r->parameters->gpu.expert_quantizers : 0;
	return (double)op->gemm.groups * (expert_call_s(r) + quantizers * r->launch_s) - r->launch_s;
}

/* Returns the host thread's time for the launches that add experts' biases, one expert after the other. */
static double biases_s(const struct program *p, const struct op *op, const struct rates *r)
{
	const bool grad = op->kind == OP_WEIGHTED_ACT_GRAD;
	if (!(p->config.stack.biased_cols > 0) || (!grad && (op->kind != OP_WEIGHTED_ACT || op->flags & OP_RECOMPUTED)))
		return 0;
	const double each = grad ? r->parameters->gpu.expert_bias_grad_launches
	                         : r->parameters->gpu.expert_bias_launches;
	return (double)(p->config.model.experts / p->config.parallel.expert) * each * r->launch_s;
}

/* Returns the time in which gradients of two biases, which experts look up row by row, add the rows of the fullest
 * expert one after the other (aten/src/ATen/native/cuda/Indexing.cu, indexing_backward_kernel). */
static double look_ups_s(const struct program *p, const struct op *op, const struct rates *r)
{
	const struct config *c = &p->config;
	if (!c->stack.clamped_gate || op->kind != OP_ACT_GRAD || !op_is_gated(op) || r->is_host)
		return 0;
	const int64_t kinds = c->data.distinct_tokens, ranks = c->parallel.expert, experts = c->model.experts;
	const double mean = (double)op->matrix.rows * (double)ranks / (double)experts,
		     fullest = model_fullest_rank(&c->model, kinds, experts) /
	                       model_fullest_rank(&c->model, kinds, ranks);
	return 2 * mean * fullest * r->parameters->gpu.look_up_row_s;
}

/* Returns whether an update's tensors are DTensors, in stacks that know their cost: those that fully_shard cuts, and
 * tensor ranks. */
static bool updates_dtensors(const struct config *c)
{
	return strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS) ||
	       (c->stack.dtensor && c->parallel.tensor > 1);
}

/* Returns what dispatch on DTensors adds to the host thread's time for an op. An update tensor by tensor is an op for
 * each kernel. */
static double dtensors_s(const struct program *p, const struct op *op, const struct rates *r)
{
	const struct config *c = &p->config;
	const double updates = updates_dtensors(c) ? gpu_loop_kernels(op) : 0;
	return c->train.cuda_graph ? 0 : (op->dtensors + updates) * c->stack.dtensor_op_s * r->launch_factor;
}

/* Returns how many kernels autocast adds to an op that gpu_op_kernels does not count, as they are small: casts of the
 * gradients of biases and of convolutions' weights; and for each of a product's linear modules beside the first its own
 * casts of weight and rows and, backward, of their gradients, with a sum. An RMS norm counts those of rows. */
static double small_casts(const struct program *p, const struct op *op)
{
	if (!p->config.stack.autocast)
		return 0;
	if (op->kind == OP_BIAS_GRAD || op->kind == OP_CONV_WEIGHT)
		return 1;
	const double more = fmax(1, op->linears) - 1, of_rows = p->config.model.norm == NORM_LAYERNORM ? 1 : 0;
	return more * (op->flags & OP_TRANS_A ? 1 : op->flags & OP_TRANS_B ? 1 + of_rows : 2 * of_rows);
}

/* Returns the host thread's time for what an op is beside its first kernel, where the stack tells kernels apart: its
 * further kernels, and the modules that call a product for columns of their own. */
static double further_kernels_s(const struct program *p, const struct op *op, const struct rates *r)
{
	const struct stack *s = &p->config.stack;
	if (!s->operators.counted || p->config.train.fused || p->config.train.cuda_graph || op->flags & OP_IN_PRODUCT)
		return 0;
	return ((gpu_op_kernels(op, s) - 1 + small_casts(p, op)) * s->kernel_s + (fmax(1, op->linears) - 1) * s->op_s) *
	       r->launch_factor;
}

/* Returns the ops that the host thread issues to carry a gradient through a bucket. */
static double more_copies(const struct program *p, const struct op *op)
{
	return op_gradient_elements(op) > 0 ? p->config.stack.gradient_calls : 0;
}

/* Returns the host thread's time to launch kernels for each tensor by itself. The executor, which a profile speaks of,
 * has none. */
static double more_kernels_s(const struct program *p, const struct op *op, const struct rates *r)
{
	return p->config.train.cuda_graph || r->measured ? 0 : gpu_each_tensor(op, &p->config.stack) * r->launch_s;
}

/* An adapter's factor in an FSDP unit of its own is gathered for each use, and its gradient is scattered. The host
 * thread issues that for each module, beside the module's own product. Its rate limiter lets two gathers at most be
 * under way, and waits on the host for the use of the one before (torch/distributed/fsdp/_runtime_utils.py, _unshard:
 * event.synchronize); an adapter has two factors. So the host thread is taken to wait for each use. Gradients are
 * scattered behind its back (OP_TRANS_A). */
static void add_units(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out,
	struct error *e)
{
	const int64_t units = op->kind == OP_GEMM && !r->is_host ? op->gemm.units : 0;
	if (units == 0)
		return;
	const enum mesh_dim along = p->mesh.params;
	const bool gathers = !(op->flags & OP_TRANS_A);
	const double factor_B = (double)(op->gemm.n * op->gemm.k) / (double)units * dtype_bytes((enum dtype)op->dtype);
	out->issue_s *= 2 * (double)units;
	out->holds = gathers;
	if (gathers)
		out->alone_s += (double)units * collective_time_s(r, COLL_ALL_GATHER, p->mesh.size[along],
							p->mesh.stride[along], factor_B, e);
}

/* True where the host thread waits until the rows of each expert are counted (struct stack, expert_counts). Slots of a
 * capacity are known without that. */
static bool counts_rows(const struct program *p, const struct op *op, const struct rates *r)
{
	return op->kind == OP_ROUTE && p->config.stack.expert_counts && p->mesh.size[DIM_EP] > 1 &&
	       !(p->config.model.capacity_factor > 0) && !p->config.train.cuda_graph && !r->is_host;
}

/* Adds dropout, and its own kernel where it has one. */
static void add_dropout(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out)
{
	const double kernels = r->is_host ? 0 : dropout_kernels(op, &p->config.stack);
	out->alone_s += move_s(dropout_B(op, &p->config.stack), r) + kernels * r->parameters->gpu.kernel_s;
	out->issue_s += p->config.train.cuda_graph ? 0 : kernels * r->launch_s;
}

static enum status cost_compute(const struct program *p, const struct op *op, const struct rates *r,
	struct op_cost *out, struct error *e)
{
	if (uses_matrix_units(op) && !(r->matrix_flop_per_s[op->dtype] > 0))
		return no_such_format(&p->config, op, r, e);
	const double loop = loop_of(p, op, r);
	struct op one = *op;
	if (loop > 1)
		one.gemm.groups = 1;
	if (op->flags & OP_WIDE)
		one.dtype = DT_FP32;
	if (!r->is_host)
		out->issue_s = op_issue_s(p, op, r) * (1 + more_copies(p, op)) +
		               (loop > 1 ? 0 : more_experts_s(p, op, r)) + biases_s(p, op, r) + dtensors_s(p, op, r) +
		               more_kernels_s(p, op, r) + further_kernels_s(p, op, r);
	if (op->flags & OP_IN_PRODUCT || !price_by_profile(&one, r, out))
		price_by_roofline(p, &one, r, out);
	out->issue_s *= loop;
	out->alone_s *= loop;
	out->clocked_s *= loop;
	out->spare_s *= loop;
	out->matrix_J *= loop;
	out->holds = loop > 1 && (op->flags & OP_TRANS_B); /* forward: rows times a weight's transpose */
	if (counts_rows(p, op, r)) {                       /* the ranks tell one another their counts */
		out->holds = true;
		out->alone_s += collective_time_s(r, COLL_ALL_GATHER, p->mesh.size[DIM_EP], p->mesh.stride[DIM_EP],
			(double)(op->route.experts * p->mesh.size[DIM_EP]) * dtype_bytes(DT_INT32), e);
	}
	add_dropout(p, op, r, out);
	out->alone_s += look_ups_s(p, op, r);
	const int64_t calls = r->is_host ? 1 : op_calls(op);
	if (calls > 1 && (double)calls * r->launch_s > out->alone_s) {
		out->alone_s = (double)calls * r->launch_s;
		out->bound = BOUND_LATENCY;
	}
	out->use.demand[RES_COMPUTE] = 1;
	cost_use_memory(bytes_of(op), r, out);
	add_units(p, op, r, out, e);
	out->burst_s = out->alone_s;
	return ST_OK;
}

/* ---- copies ---- */

static void cost_copy(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out)
{
	if (r->is_host) {
		/* A thread does the copy and takes one of the rank's cores. */
		out->alone_s = r->launch_s + memory_s(op, r);
		out->use.demand[RES_COMPUTE] = 1 / r->cores;
		out->bound = memory_s(op, r) > r->launch_s ? BOUND_MEMORY : BOUND_LATENCY;
	} else {
		out->alone_s = op_write_B(op) / r->copy_Bps[op->flags & OP_INVERSE ? 1 : 0] /
		               (op->flags & OP_PAGEABLE ? r->parameters->cost.pageable_share : 1);
		out->issue_s = p->config.train.cuda_graph ? 0 : r->launch_s;
		/* "The function will return once the pageable buffer has been copied to the staging memory" (CUDA
		 * Runtime API, API synchronization behavior) */
		out->holds = op->flags & OP_PAGEABLE;
		out->bound = out->alone_s > r->launch_s ? BOUND_LINK : BOUND_LATENCY;
	}
	cost_use_memory(bytes_of(op), r, out);
	out->rel_sigma = r->parameters->cost.sigma_catalogue;
}

/* ---- the host's own work ---- */

double cost_host_update_Bps(const struct program *p, const struct rates *r)
{
	int64_t ranks = p->mesh.ranks < r->devices_per_node ? p->mesh.ranks : r->devices_per_node;
	const double own_Bps = p->config.stack.host_update_Bps;
	return (own_Bps > 0 ? own_Bps : r->parameters->cost.host_update_Bps) / (double)ranks;
}

/* The host thread calls the update and waits until the cores have done it. */
static void cost_host_update(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out)
{
	out->alone_s = bytes_of(op) / cost_host_update_Bps(p, r);
	out->bound = BOUND_HOST;
	out->holds = true;
	out->rel_sigma = 0; /* the interval takes the factor by itself (sim/engine/summary.c) */
}

static double load_s(const struct config *c)
{
	return program_loads_ahead(c) > 0 ? c->data.load_time_s / (double)c->data.workers : c->data.load_time_s;
}

/* A synchronisation costs the launch with which the device begins again. Its other effect on the step, that nothing has
 * been launched ahead by then, is in sim/engine/predict.c. */
static void cost_host(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out)
{
	const struct config *c = &p->config;
	if (op->kind == OP_LOAD)
		out->alone_s = load_s(c);
	else if (op->kind == OP_PAUSE)
		out->alone_s = op->pause.of_step ? c->stack.step_s : c->stack.micro_batch_s;
	else
		out->alone_s = r->is_host ? 0 : r->launch_s / (double)c->train.sync_every;
	out->bound = BOUND_HOST;
	out->holds = op->lane == LANE_HOST && !r->is_host;
}

/* ---- the kinds of ops ---- */

/* With CUDA_LAUNCH_BLOCKING=1 the host thread waits for each kernel before it goes on (CUDA C++ Programming Guide, CUDA
 * Environment Variables). Messages between stages are left out: a send that waits for a receive that is not yet posted
 * would wait for ever, and a real run orders them so that none does. A graph is one launch. */
static bool launch_blocks(const struct program *p, const struct op *op, const struct rates *r)
{
	return p->config.train.launch_blocking && !p->config.train.cuda_graph && !r->is_host && !op_is_message(op);
}

enum status cost_op(const struct program *p, const struct op *op, const struct rates *r, struct op_cost *out,
	struct error *e)
{
	enum status st = ST_OK;
	*out = (struct op_cost){.use.weight = 1};
	if (op->kind == OP_COLLECTIVE)
		st = cost_collective(p, op, r, out, e);
	else if (op->kind == OP_COPY)
		cost_copy(p, op, r, out);
	else if (op_on_host(op))
		cost_host(p, op, r, out);
	else if (op->lane == LANE_HOST && !r->is_host)
		cost_host_update(p, op, r, out);
	else
		st = cost_compute(p, op, r, out, e);
	out->holds |= launch_blocks(p, op, r);
	return st;
}
