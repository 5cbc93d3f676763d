#include "sim/engine/summary.h"

#include <inttypes.h>
#include <math.h>

#include "base/quantity.h"
#include "base/stats.h"
#include "sim/price/cost.h"
#include "sim/engine/predict.h"
#include "sim/engine/stragglers.h"
#include "sim/engine/interval.h"
#include "step/config/keys.h"
#include "step/work.h"

/* ---- memory ---- */

void summary_overhead(const struct config *c, const struct mesh *mesh, const struct machine *m,
	struct result_memory *mem)
{
	const struct stack_memory *s = &c->stack.memory;
	if (m->device.is_host)
		return;
	for (int d = 0; d < DIM_COUNT; d++)
		mem->communicators += mesh->size[d] > 1;
	mem->communicators += mesh->size[DIM_REPLICA] > 1; /* hsdp has two in dp's place */
	mem->communicators += mesh->size[DIM_ETP] > 1;
	mem->communicators += mesh->experts == DIM_EDP && mesh->size[DIM_EDP] > 1; /* the experts' gradients */
	mem->context_B = m->device.reserved_B > 0 ? m->device.reserved_B : (uint64_t)s->context_B;
	mem->communicators_B = m->device.reserved_B > 0 ? 0
	                                                : (uint64_t)(s->communicator_B * (double)mem->communicators);
	mem->overhead_B = mem->context_B + mem->communicators_B;
}

static void warn_memory(const struct result_memory *mem, double full_share, struct result *out)
{
	double total_B = (double)mem->total_B, capacity_B = (double)mem->capacity_B;
	char lacks[QUANTITY_MAX], needs[QUANTITY_MAX], has[QUANTITY_MAX];
	if (!mem->fits)
		result_warn(out, "does not fit in memory: %s are missing (%s needed, %s there)%s",
			quantity_format(lacks, total_B - capacity_B, UNIT_BYTE),
			quantity_format(needs, total_B, UNIT_BYTE), quantity_format(has, capacity_B, UNIT_BYTE),
			mem->low_B > 0 && mem->low_B <= mem->capacity_B
				? "; that is within the error of such predictions: it may fit"
				: "");
	else if (mem->overhead_B > 0 && total_B > full_share * capacity_B)
		result_warn(out,
			"memory is %.0f %% full: where the allocator has to free its cache and try again, steps "
			"take 12 to 28 %% longer; one in ten published peaks is over %.0f %% higher than predicted",
			100 * total_B / capacity_B, 100 * ((double)mem->high_B / total_B - 1));
}

/* Says where rows go to each rank although they were to go to each host once. */
static void warn_dispatch(const struct program *p, struct result *out)
{
	const struct config *c = &p->config;
	const int64_t ranks = p->mesh.size[DIM_EP] * p->mesh.stride[DIM_EP];
	if (c->parallel.expert_dispatch == DISPATCH_ALL_TO_ALL || (c->node_ranks > 0 && ranks <= c->node_ranks))
		return;
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op *op = &p->roles[r].ops.at[i];
			if (op->kind == OP_COLLECTIVE && op->coll == COLL_ALLTOALL && op->collective.crossing > 0)
				return;
		}
	result_warn(out, "expert_dispatch %s is taken as all_to_all: %s",
		key_word(config_key(KEY_parallel_expert_dispatch), (int)c->parallel.expert_dispatch),
		c->node_ranks > 0 ? "hosts do not divide the group of experts"
				  : "it is not known how many ranks a host has");
}

static void warn_offload(const struct program *p, const struct rates *rates, uint64_t host_B, struct result *out)
{
	const enum offload o = p->config.train.offload;
	int64_t ranks = p->mesh.ranks < rates->devices_per_node ? p->mesh.ranks : rates->devices_per_node;
	if (o == OFF_NONE || rates->is_host)
		return;
	char text[QUANTITY_MAX];
	result_warn(out, "offload: %s of each host's memory are in use",
		quantity_format(text, (double)host_B * (double)ranks, UNIT_BYTE));
	if (o != OFF_ACTIVATIONS)
		result_warn(out,
			"offload: the host's update is taken at %s for all ranks of a host; hosts, threads "
			"and bindings differ by a factor of %.0f either way, and so does the interval",
			quantity_format(text, cost_host_update_Bps(p, rates) * (double)ranks, UNIT_BYTE_PER_S),
			rates->parameters->cost.host_update_factor);
}

void summary_memory(const struct sums *s, const struct program *p, const struct rates *rates, struct result *out)
{
	struct result_memory *mem = &out->memory;
	uint64_t host_B = 0;
	*mem = (struct result_memory){0};
	for (size_t i = 0; i < s->n_roles; i++) {
		const struct role_sums *r = &s->roles[i];
		host_B = r->host_B > host_B ? r->host_B : host_B;
		if (r->memory.total_B > mem->total_B)
			*mem = r->memory;
	}
	mem->first_B = s->roles[0].memory.first_B;
	mem->capacity_B = rates->machine->device.mem_B;
	mem->usual_B = (uint64_t)(machine_usual_share(rates->machine) * (double)mem->capacity_B);
	mem->fits = mem->total_B <= mem->capacity_B;
	if (!rates->is_host) {
		mem->low_B = (uint64_t)(rates->parameters->step.memory_low * (double)mem->total_B);
		mem->high_B = (uint64_t)(rates->parameters->step.memory_high * (double)mem->total_B);
	}
	warn_memory(mem, rates->parameters->step.memory_full, out);
	warn_offload(p, rates, host_B, out);
	warn_dispatch(p, out);
}

/* ---- bounds and uncertainty ---- */

static void warn_guessed(const struct op *op, const struct rates *rates, struct result *out)
{
	struct work w;
	work_of(op, &rates->device, &w);
	if (op->kind == OP_COLLECTIVE)
		result_warn(out,
			"the profile has no curve for %s over this number of ranks: scaled from another, or from "
			"the link's latency and bandwidth",
			collective_name((enum collective)op->coll));
	else
		result_warn(out, "the profile has no entry for %s: priced from peak rates", w.name);
}

/* Widens the interval by an update on the host that may take `factor` times as long, or as short. Below the parts are
 * ratios, so that they never add up to the whole step. */
static void widen_by_update(struct result *r, double update_s, double factor)
{
	const double step_s = r->time.step_s, below = log(step_s / r->interval90_s[0]),
		     quick = log(step_s / (step_s - fmin(update_s, step_s) * (1 - 1 / factor)));
	r->interval90_s[0] = step_s * exp(-hypot(below, quick));
	r->interval90_s[1] = step_s + hypot(r->interval90_s[1] - step_s, update_s * (factor - 1));
}

static void fill_bounds_and_interval(const struct sums *sums, const struct program *p, const struct rates *rates,
	struct result *out)
{
	const struct machine *m = rates->machine;
	const struct role *role = &p->roles[sums->actor];
	for (size_t i = 0; i < sums->guessed.n; i++)
		warn_guessed(&role->ops.at[sums->guessed.at[i]], rates, out);
	double exposed = out->time.comm_s > 0 ? out->time.exposed_comm_s / out->time.comm_s : 0, variance = 0;
	for (int c = 0; c < CLASS_COUNT; c++) {
		/* Errors of one class add up (one wrong coefficient); those of different classes are independent.
		 * Hidden communication does not lengthen the step. */
		double s = op_class_is_comm((enum op_class)c) ? sums->sigma_s[c] * exposed : sums->sigma_s[c];
		variance += s * s;
		enum bound most = BOUND_COMPUTE;
		for (int b = 0; b < BOUND_COUNT; b++)
			most = sums->by_bound_s[c][b] > sums->by_bound_s[c][most] ? (enum bound)b : most;
		out->class_bound[c] = most;
	}
	const struct parameters *k = rates->parameters;
	double in_step_s = k->interval.in_step_sigma * out->time.step_s;
	double below_s = NORMAL_90 * sqrt(variance + in_step_s * in_step_s), above_s = below_s;
	if (m->profile && m->borrowed_scale > 0) {
		below_s = out->time.step_s * (1 - 1 / k->interval.borrowed_factor);
		above_s = out->time.step_s * (k->interval.borrowed_factor - 1);
	}
	if (m->profile) { /* its times may be too long; as much may be taken from the run, at another pace */
		const double computed_s = out->time.compute_s + out->time.optimizer_s,
			     pace_s = NORMAL_90 * profile_get_value(m->profile, PROFILE_PACE_SPREAD, 0) * computed_s,
			     others_s = hypot(profile_too_long(m->profile) * out->time.step_s, pace_s);
		below_s = hypot(below_s, others_s);
		above_s = hypot(above_s, others_s);
	}
	out->interval90_s[0] = fmax(0, out->time.step_s - below_s);
	out->interval90_s[1] = out->time.step_s + above_s;
	if (!m->profile)
		interval_set_published(&p->config, m, out);
	if (!m->device.is_host && sums->host_update_s > 0)
		widen_by_update(out, sums->host_update_s, k->cost.host_update_factor);
}

/* ---- bottleneck ---- */

/* Returns the cause of the device's idle time where launching fills the step, else NULL. */
static const char *name_of_idle(const struct sums *s, const struct parameters *k)
{
	return s->launching_s > k->step.launch_bound * s->time.step_s
	               ? "kernel launches on the host leave the device idle"
	               : NULL;
}

/* Warns of a slowest stage, which paces all others. */
static void warn_pacing(const struct sums *s, const struct parameters *k, struct result *out)
{
	double sum_s = 0;
	size_t slowest = 0;
	for (size_t r = 0; r < s->n_roles; r++) {
		sum_s += s->roles[r].busy_s;
		slowest = s->roles[r].busy_s > s->roles[slowest].busy_s ? r : slowest;
	}
	double share = sum_s > 0 ? s->roles[slowest].busy_s * (double)s->n_roles / sum_s : 1;
	if (share > k->step.pacing)
		result_warn(out,
			"stage %zu computes %.0f %% longer than the mean of the stages and paces them all; "
			"parallel.layers_per_stage moves layers to the others",
			slowest, 100 * (share - 1));
}

/* Warns of the time that the others wait for the slowest rank of the critical role. */
static void warn_slowest(const struct program *p, const struct machine *m, uint32_t actor, struct result *out)
{
	double slow = stragglers_role_factor(p, actor, m), compute_s = out->time.compute_s + out->time.optimizer_s;
	char wait[QUANTITY_MAX], times[QUANTITY_MAX];
	if (slow > 1)
		result_warn(out,
			"the slowest rank computes %s times as long as the mean (cluster.slow_ranks, jitter): %s "
			"of this step, for which the others wait",
			quantity_format(times, slow, UNIT_NONE),
			quantity_format(wait, compute_s * (1 - 1 / slow), UNIT_SECOND));
}

void summarize(const struct sums *s, const struct program *p, const struct rates *rates, struct result *out)
{
	const struct machine *m = rates->machine;
	*out = (struct result){.verified = -1, .host_thread_s = s->host_thread_s, .time = s->time};
	if (m->device.is_host && m->profile && m->profile->key.cores_per_rank == 1)
		out->time.overlap =
			NAN; /* progress and compute take turns on the one core, so that overlap means nothing */
	if (!m->profile)
		result_warn(out, "nothing was measured on this machine: the rates of hardware and software come from "
				 "published runs");
	else if (m->borrowed_scale > 0)
		result_warn(out,
			"measured with %lld rank%s of %lld cores on this host, not with this plan's: a factor of "
			"two either way is normal; `mpirun -np %lld stepsim calibrate` measures it",
			(long long)m->profile->key.ranks, m->profile->key.ranks == 1 ? "" : "s",
			(long long)m->profile->key.cores_per_rank, (long long)p->mesh.ranks);
	if (m->profile && profile_too_long(m->profile) > 0)
		result_warn(out,
			"others took %.0f %% of a rank's cores during %.0f %% of the profile's measurements, so the "
			"interval is wider: `stepsim calibrate` on a quiet machine makes a better one",
			100 * profile_get_value(m->profile, PROFILE_CPU_STEAL_SHARE, 0),
			100 * profile_disturbed(m->profile));
	if (m->profile &&
		profile_get_value(m->profile, PROFILE_PACE_SPREAD, 0) > rates->parameters->interval.in_step_sigma)
		result_warn(out,
			"the cores' speed varied by %.0f %% while the profile was measured, as on a machine that is "
			"shared: the interval is wider",
			100 * profile_get_value(m->profile, PROFILE_PACE_SPREAD, 0));
	if (s->capped_s > 0)
		result_warn(out,
			"power-capped: arithmetic of %.3g ms of the step run at %.0f %% of their burst "
			"clock, as the board's power limit allows over the step",
			1e3 * s->capped_s, 100 * s->at_burst_s / s->capped_s);
	const struct train *train = &p->config.train;
	if (train->recompute == REC_SELECTIVE && !train_recomputes(train, ~0))
		result_warn(out,
			"recompute: selective recomputes the scores that naive attention stores; flash stores none, "
			"so nothing is recomputed (train.recompute_modules names other parts)");
	if (p->config.data.repeated_token && !(m->device.repeated_data > 0))
		result_warn(out,
			"data.repeated_token changes nothing here: configs/gpus has no reached.repeated_data for %.64s",
			m->device.name);
	if (p->config.parallel.tensor_overlap && (m->device.is_host || m->profile))
		result_warn(out, "tensor_overlap: what was measured here, and what stepsim executes, does not hide "
				 "tensor-parallel collectives beside products");
	if (m->unverified)
		result_warn(out, "the catalogue holds unverified numbers for %.128s", m->name);
	result_rates(out, p, m->device.matrix_flop_per_s[p->config.train.dtype]);
	fill_bounds_and_interval(s, p, rates, out);
	result_bottleneck(out, name_of_idle(s, rates->parameters), s->host_cause);
	warn_slowest(p, m, s->actor, out);
	const double mtbf_hours = config_mtbf_hours(&p->config);
	if (mtbf_hours > 0) {
		struct goodput g = stragglers_best_goodput(3600 * mtbf_hours, p->config.cluster.checkpoint_s);
		out->goodput = g.goodput;
		out->checkpoint_interval_s = g.interval_s;
	}
	if (p->config.parallel.pipeline > 1)
		warn_pacing(s, rates->parameters, out);
	summary_memory(s, p, rates, out);
}
