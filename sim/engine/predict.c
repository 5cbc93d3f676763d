#include "sim/engine/predict.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/tile_overlap.h"
#include "sim/engine/engine.h"
#include "sim/engine/stragglers.h"
#include "sim/price/power.h"
#include "sim/price/price.h"
#include "sim/engine/summary.h"

#define PS_PER_S 1e12
#define NO_JOIN (-1)
static_assert(LANE_COUNT <= ENGINE_LANES, "a lane of the engine for each");

/* ---- joins ---- */

/* Two roles meet in the groups along `d` when their ranks differ along it alone. Returns the first role that role `r`
 * meets there, itself if none before it. */
static size_t first_met(const struct program *p, size_t r, enum mesh_dim d)
{
	for (size_t q = 0; q < r; q++) {
		bool meets = true;
		for (int other = 0; other < DIM_COUNT; other++)
			if (other != (int)d &&
				mesh_coord(&p->mesh, p->roles[q].representative, (enum mesh_dim)other) !=
					mesh_coord(&p->mesh, p->roles[r].representative, (enum mesh_dim)other))
				meets = false;
		if (meets)
			return q;
	}
	return r;
}

static bool is_met(const struct program *p, size_t r, enum mesh_dim d)
{
	if (first_met(p, r, d) != r)
		return true;
	for (size_t q = r + 1; q < p->n_roles; q++)
		if (first_met(p, q, d) == r)
			return true;
	return false;
}

static bool is_collective_along(const struct op *op, int d)
{
	return op->kind == OP_COLLECTIVE && op->group == d && !op_is_message(op);
}

/* A role's collectives along each dimension: the k-th of one is the k-th of all roles that it meets there. Their joins
 * are named by the task of the first role. */
static enum status set_joins(const struct program *p, struct task *tasks, const size_t *first_task, struct error *e)
{
	for (size_t r = 0; r < p->n_roles; r++) {
		const struct role *role = &p->roles[r];
		for (int d = 0; d < DIM_COUNT; d++) {
			size_t other = first_met(p, r, (enum mesh_dim)d), at = 0;
			if (!is_met(p, r, (enum mesh_dim)d))
				continue; /* all members of its groups do the same at the same time: nobody is waited
				             for */
			const struct role *first = &p->roles[other];
			for (size_t i = 0; i < role->ops.n; i++) {
				if (!is_collective_along(&role->ops.at[i], d))
					continue;
				while (at < first->ops.n && !is_collective_along(&first->ops.at[at], d))
					at++;
				if (at == first->ops.n)
					return error_set(e, ST_RUN,
						"role %zu has more collectives along %s than role %zu", r,
						mesh_dim_name((enum mesh_dim)d), other);
				tasks[first_task[r] + i].join = (int32_t)(first_task[other] + at++);
			}
		}
	}
	return ST_OK;
}

/* Returns the next task of a lane from task `at` on, `end` without one. Tasks are half as long as ops. */
static size_t next_on_lane(const struct task *tasks, size_t at, size_t end, enum lane lane)
{
	while (at < end && tasks[at].lane != lane)
		at++;
	return at;
}

/* The k-th message that a stage sends on a lane is the k-th that its peer receives on the lane of the other end. The
 * task of the send names their join. */
static enum status join_messages(struct task *tasks, const size_t *first_task, size_t from, size_t to, enum lane sends,
	enum lane receives, struct error *e)
{
	const size_t end = first_task[from + 1], receiver_end = first_task[to + 1];
	size_t at = first_task[to];
	for (size_t i = first_task[from]; (i = next_on_lane(tasks, i, end, sends)) < end; i++, at++) {
		at = next_on_lane(tasks, at, receiver_end, receives);
		if (at == receiver_end)
			return error_set(e, ST_RUN, "stage %zu sends more messages than stage %zu receives", from, to);
		tasks[i].join = tasks[at].join = (int32_t)i;
	}
	return ST_OK;
}

static enum status set_message_joins(const struct program *p, struct task *tasks, const size_t *first_task,
	struct error *e)
{
	enum status st = ST_OK;
	size_t stages = (size_t)p->mesh.size[DIM_PP];
	for (size_t i = 0; i < stages && stages > 1 && !st; i++) {
		size_t next = (i + 1) % stages;
		if (!(st = join_messages(tasks, first_task, i, next, LANE_SEND_NEXT, LANE_RECV_PREV, e)))
			st = join_messages(tasks, first_task, next, i, LANE_SEND_PREV, LANE_RECV_NEXT, e);
	}
	return st;
}

/* ---- tasks ---- */

/* The clock is int64 picoseconds, 107 days. A step takes at most the sum of its tasks. */
#define STEP_MAX_S 1e6

static enum status check_range(const struct role *role, const struct prices *prices, size_t r, struct error *e)
{
	double sum_s = 0;
	for (size_t i = 0; i < role->ops.n; i++)
		sum_s += price_of(prices, r, i)->alone_s + price_of(prices, r, i)->issue_s;
	if (sum_s > STEP_MAX_S)
		return error_set(e, ST_INPUT,
			"one step would take up to %.0f days: that is out of the simulator's range (%.0f days)",
			sum_s / 86400, STEP_MAX_S / 86400);
	return ST_OK;
}

static int64_t ps(double s) { return llround(s * PS_PER_S); }

/* A price in picoseconds: alone on the host, on the compute lane and on any other lane of a device. */
struct price_ps {
	int64_t on_host, on_compute, on_device, issue, tile_overlap;
};

static struct price_ps price_ps_of(const struct op_cost *c, double slowdown, double slow)
{
	return (struct price_ps){ps(c->alone_s), ps(c->alone_s * slowdown * slow), ps(c->alone_s * slowdown),
		ps(c->issue_s), ps(c->tile_overlap_s * slowdown)};
}

/* True where all kernels of a GPU stand in one queue. Before compute capability 10.0 Megatron wants
 * CUDA_DEVICE_MAX_CONNECTIONS=1 for tensor and context ranks, but more for FSDP (megatron/training/arguments.py,
 * validate_args). Gradients of experts are reduced on a stream of their own, which LANE_COMM does not show: models with
 * experts are left out. */
static bool has_one_queue(const struct program *p, const struct rates *r)
{
	const struct parallel *l = &p->config.parallel;
	return p->config.stack.one_queue && (l->tensor > 1 || l->context > 1) && p->config.model.experts == 0 &&
	       !strategy_has(l->strategy, STRATEGY_CUTS_WEIGHTS) && !r->is_host && r->compute_capability > 0 &&
	       r->compute_capability < 100;
}

/* Messages are left out: a receive is posted early here, and the one before it may not have come. */
static bool stands_in_queue(const struct op *op)
{
	return op->lane == LANE_COMPUTE || op->lane == LANE_COMM || op->lane == LANE_REPLICA_COMM ||
	       op->lane == LANE_MODEL_COMM;
}

/* What the engine runs. By op, role after role, but for `deps` and `tail_use`. */
struct run_input {
	size_t n, n_deps;
	struct task *tasks;
	uint32_t *deps;
	int64_t *tile_overlap_ps;  /* the time beside products, 0 for most ops */
	struct activity *tail_use; /* by price: of a tail, whose effect on products is part of the exposed share */
};

static void run_input_free(struct run_input *in)
{
	free(in->tasks);
	free(in->deps);
	free(in->tile_overlap_ps);
	free(in->tail_use);
}

static enum status run_input_create(const struct program *p, const struct prices *prices, struct run_input *in,
	struct error *e)
{
	*in = (struct run_input){.n = prices->first_op[p->n_roles]};
	for (size_t r = 0; r < p->n_roles; r++)
		in->n_deps += p->roles[r].deps.n;
	in->tasks = malloc((in->n + 1) * sizeof *in->tasks);
	in->deps = malloc((in->n_deps + 1) * sizeof *in->deps);
	in->tile_overlap_ps = malloc((in->n + 1) * sizeof *in->tile_overlap_ps);
	in->tail_use = malloc((prices->different.n + 1) * sizeof *in->tail_use);
	if (!in->tasks || !in->deps || !in->tile_overlap_ps || !in->tail_use || in->n > INT32_MAX ||
		in->n_deps > INT32_MAX)
		return error_nomem(e, "simulation");
	for (size_t k = 0; k < prices->different.n; k++) {
		in->tail_use[k] = prices->different.at[k].use;
		in->tail_use[k].demand[RES_COMPUTE] = 0;
	}
	return ST_OK;
}

/* Fills the tasks of a role, whose dependencies begin at `first_dep`. `slowdown` (stragglers_slowdown) lengthens all
 * work of the device, `slow` its compute lane. */
static enum status fill_tasks(const struct role *role, uint32_t actor, const struct prices *prices, double slowdown,
	double slow, bool one_queue, size_t first_dep, struct run_input *in, struct error *e)
{
	const size_t first_task = prices->first_op[actor];
	struct price_ps *all = malloc((prices->different.n + 1) * sizeof *all);
	if (!all)
		return error_nomem(e, "simulation");
	for (size_t k = 0; k < prices->different.n; k++)
		all[k] = price_ps_of(&prices->different.at[k], slowdown, slow);
	for (size_t i = 0; i < role->ops.n; i++) {
		const struct op *op = &role->ops.at[i];
		const uint32_t price = prices->of_op[first_task + i];
		const struct op_cost *c = &prices->different.at[price];
		const struct price_ps *x = &all[price];
		const int64_t tail_ps = tile_overlap_is_tail(op) ? x->tile_overlap : 0,
			      whole_ps = op_on_host(op)             ? x->on_host
		                         : op->lane == LANE_COMPUTE ? x->on_compute
		                                                    : x->on_device;
		in->tile_overlap_ps[first_task + i] = x->tile_overlap;
		in->tasks[first_task + i] = (struct task){
			.actor = actor,
			.lane = op->lane,
			.holds = c->holds,
			.queued = one_queue && stands_in_queue(op),
			.alone_ps = whole_ps - (x->tile_overlap - tail_ps),
			.tail_ps = tail_ps,
			.issue_ps = x->issue,
			.join = NO_JOIN,
			.dep0 = (uint32_t)first_dep + op->dep0,
			.n_dep = op->n_dep,
			.use = tail_ps > 0 ? &in->tail_use[price] : &c->use,
		};
	}
	for (size_t i = 0; i < role->deps.n; i++)
		in->deps[first_dep + i] = (uint32_t)first_task + role->deps.at[i];
	free(all);
	return ST_OK;
}

static enum status fill_timeline(const struct program *p, const size_t *first_task, const struct task_time *times,
	const int64_t *tile_overlap_ps, struct timeline *t, struct error *e)
{
	*t = (struct timeline){.actors = (uint32_t)p->n_roles};
	if (!vec_reserve(&t->spans, first_task[p->n_roles]))
		return error_nomem(e, "timeline");
	for (size_t r = 0; r < p->n_roles; r++) {
		const struct role *role = &p->roles[r];
		for (size_t i = 0; i < role->ops.n; i++) {
			const struct op *op = &role->ops.at[i];
			const struct task_time *at = &times[first_task[r] + i];
			t->spans.at[t->spans.n++] = (struct span){
				.actor = (uint32_t)r,
				.op = (uint32_t)i,
				.lane = op->lane,
				.class_ = (uint8_t)op_class_of(op),
				.phase = op->phase,
				.recomputed = op->flags & OP_RECOMPUTED ? 1 : 0,
				.start_ps = at->start_ps,
				.move_ps = at->move_ps,
				.end_ps = at->end_ps,
			};
			t->step_ps = at->end_ps > t->step_ps ? at->end_ps : t->step_ps;
		}
		tile_overlap_draw(role, &tile_overlap_ps[first_task[r]], &t->spans.at[first_task[r]]);
	}
	return ST_OK;
}

/* ---- the host thread ---- */

/* Lets the host thread of each role begin earlier by so much. */
static void start_ahead(const size_t *first_task, size_t n_roles, int64_t by_ps, struct task *tasks)
{
	for (size_t r = 0; r < n_roles; r++)
		if (first_task[r + 1] > first_task[r])
			tasks[first_task[r]].issue_ps -= by_ps;
}

/* Returns the host thread's time in a step of a role: it issues tasks, and waits for those that hold it. */
static int64_t host_thread_ps(const struct task *tasks, size_t from, size_t to)
{
	int64_t sum = 0;
	for (size_t i = from; i < to; i++)
		sum += tasks[i].issue_ps + (tasks[i].holds ? tasks[i].alone_ps : 0);
	return sum;
}

static double host_thread_s(const struct program *p, const struct prices *prices)
{
	double most = 0;
	for (size_t r = 0; r < p->n_roles; r++) {
		double sum = 0;
		for (size_t i = 0; i < p->roles[r].ops.n; i++) {
			const struct op_cost *c = price_of(prices, r, i);
			sum += c->issue_s + (c->holds ? c->alone_s : 0);
		}
		most = fmax(most, sum);
	}
	return most;
}

static int64_t last_end_ps(const struct task_time *times, size_t n)
{
	int64_t last = 0;
	for (size_t i = 0; i < n; i++)
		last = times[i].end_ps > last ? times[i].end_ps : last;
	return last;
}

/* Every n-th step begins with nothing launched. On the mean, an n-th of that cost goes to the synchronisation, the host
 * thread's last op. */
static void share_sync(const struct program *p, const size_t *first_task, int64_t costs_ps, struct task_time *times)
{
	for (size_t r = 0; r < p->n_roles; r++)
		for (size_t i = 0; i < p->roles[r].ops.n; i++)
			if (p->roles[r].ops.at[i].kind == OP_SYNC)
				times[first_task[r] + i].end_ps += costs_ps / p->config.train.sync_every;
}

/* True where each step begins with nothing launched: the host thread has waited for the device, or for each launch, or
 * updated the weights when all else was done. */
static bool begins_drained(const struct program *p)
{
	const struct train *t = &p->config.train;
	return t->sync_every == 1 || (t->launch_blocking && !t->cuda_graph) || t->offload == OFF_OPTIMIZER ||
	       t->offload == OFF_OPTIMIZER_PARAMS;
}

/* A lead is sought with which a step takes as long as the host thread does. Each try comes nearer; the first mostly
 * suffices. Tries end when the step outlasts the host thread by less than its time over RUN_AHEAD_TOLERANCE. */
#define RUN_AHEAD_TRIES 8
#define RUN_AHEAD_TOLERANCE 1000

/* Runs a step whose host thread goes on from the step before. Where the thread is the faster, all is launched when the
 * step begins. (CUDA's queue of some thousand launches is not modelled: it is longer than a GPU's work meanwhile.)
 * Where the thread is the slower, it gains the time by which the step outlasts it, until the step no longer does. After
 * a synchronisation a step begins with nothing launched (drained). */
static enum status run_ahead(const struct program *p, const size_t *first_task, struct task *tasks,
	const uint32_t *deps, struct task_time *times, struct error *e)
{
	const size_t n = first_task[p->n_roles];
	const uint32_t actors = (uint32_t)p->n_roles;
	int64_t host_ps = 0;
	for (size_t r = 0; r < p->n_roles; r++) {
		int64_t here_ps = host_thread_ps(tasks, first_task[r], first_task[r + 1]);
		host_ps = here_ps > host_ps ? here_ps : host_ps;
	}
	start_ahead(first_task, p->n_roles, host_ps, tasks);
	enum status st = engine_run(tasks, n, deps, actors, times, e);
	int64_t step_ps = st ? 0 : last_end_ps(times, n);
	const bool faster = step_ps >= host_ps;
	if (st || (faster && p->config.train.sync_every == 0))
		return st;
	start_ahead(first_task, p->n_roles, -host_ps, tasks);
	struct task_time *drained = malloc((n + 1) * sizeof *drained);
	if (!drained)
		return error_nomem(e, "simulation");
	st = engine_run(tasks, n, deps, actors, drained, e);
	const int64_t drained_ps = st ? 0 : last_end_ps(drained, n);
	if (!st && !faster) {
		memcpy(times, drained, n * sizeof *times);
		step_ps = drained_ps;
	}
	for (int i = 0; i < RUN_AHEAD_TRIES && !st && !faster && step_ps - host_ps > host_ps / RUN_AHEAD_TOLERANCE;
		i++) {
		start_ahead(first_task, p->n_roles, step_ps - host_ps, tasks);
		st = engine_run(tasks, n, deps, actors, times, e);
		step_ps = st ? 0 : last_end_ps(times, n);
	}
	if (!st && p->config.train.sync_every > 0 && drained_ps > step_ps)
		share_sync(p, first_task, drained_ps - step_ps, times);
	free(drained);
	return st;
}

static enum status simulate(const struct program *p, const struct rates *rates, const struct prices *prices,
	struct timeline *timeline, struct error *e)
{
	const size_t *first_task = prices->first_op;
	const double slowdown = stragglers_slowdown(rates->machine, rates->nodes);
	const bool one_queue = has_one_queue(p, rates);
	struct run_input in;
	struct task_time *times = NULL;
	enum status st = run_input_create(p, prices, &in, e);
	if (!st && !(times = malloc((in.n + 1) * sizeof *times)))
		st = error_nomem(e, "simulation");
	for (size_t r = 0, first_dep = 0; r < p->n_roles && !st; first_dep += p->roles[r++].deps.n)
		st = fill_tasks(&p->roles[r], (uint32_t)r, prices, slowdown,
			stragglers_role_factor(p, r, rates->machine), one_queue, first_dep, &in, e);
	if (!st && p->config.train.cuda_graph && !rates->is_host) /* launched once a step */
		start_ahead(first_task, p->n_roles, -ps(rates->launch_s), in.tasks);
	if (st || (st = set_joins(p, in.tasks, first_task, e)) ||
		(st = set_message_joins(p, in.tasks, first_task, e)) ||
		(st = rates->is_host || begins_drained(p)
	                        ? engine_run(in.tasks, in.n, in.deps, (uint32_t)p->n_roles, times, e)
	                        : run_ahead(p, first_task, in.tasks, in.deps, times, e)) ||
		(st = fill_timeline(p, first_task, times, in.tile_overlap_ps, timeline, e)))
		goto out;
	st = timeline_check(timeline, e);
out:
	run_input_free(&in);
	free(times);
	return st;
}

static enum status price_and_simulate(const struct program *p, const struct rates *rates, struct prices *prices,
	struct timeline *timeline, double *host_s, struct error *e)
{
	enum status st = price_further(p, rates, prices, e);
	if (!st)
		power_hold(p, rates, prices);
	for (size_t r = 0; r < p->n_roles && !st; r++)
		st = check_range(&p->roles[r], prices, r, e);
	if (!st)
		st = simulate(p, rates, prices, timeline, e);
	*host_s = st || rates->is_host ? 0 : host_thread_s(p, prices);
	return st;
}

enum status simulation_run(const struct program *p, const struct rates *rates, struct simulation *out, struct error *e)
{
	*out = (struct simulation){.p = p, .rates = rates, .prices = calloc(1, sizeof *out->prices)};
	return out->prices ? price_and_simulate(p, rates, out->prices, &out->timeline, &out->host_thread_s, e)
	                   : error_nomem(e, "prediction");
}

void simulation_free(struct simulation *s)
{
	prices_free(s->prices);
	free(s->prices);
	timeline_free(&s->timeline);
	*s = (struct simulation){0};
}

enum status simulation_result(const struct simulation *s, struct sums *sums, struct result *out, struct error *e)
{
	enum status st = sums_of(s, timeline_critical_actor(&s->timeline), sums, e);
	if (!st)
		summarize(sums, s->p, s->rates, out);
	return st;
}

/* Moves the timeline out of the simulation, and frees that. */
static void keep_timeline(struct simulation *s, enum status st, struct timeline *out)
{
	*out = (struct timeline){0};
	if (!st) {
		*out = s->timeline;
		s->timeline = (struct timeline){0};
	}
	simulation_free(s);
}

enum status predict(const struct program *p, const struct machine *m, struct result *out, struct timeline *timeline,
	struct error *e)
{
	const struct rates rates = rates_of(m);
	struct simulation s;
	struct sums sums = {0};
	enum status st = simulation_run(p, &rates, &s, e);
	if (!st)
		st = simulation_result(&s, &sums, out, e);
	sums_free(&sums);
	keep_timeline(&s, st, timeline);
	return st;
}

enum status predict_timeline(const struct program *p, const struct rates *rates, struct prices *prices,
	struct timeline *timeline, double *host_s, struct error *e)
{
	struct prices own = {0};
	*timeline = (struct timeline){0};
	enum status st = price_and_simulate(p, rates, prices ? prices : &own, timeline, host_s, e);
	if (st)
		timeline_free(timeline);
	prices_free(&own);
	return st;
}
