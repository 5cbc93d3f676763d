#include "sim/predict.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "sim/summary.h"

#define PS_PER_S 1e12
#define NO_JOIN (-1)
static_assert(LANE_COUNT <= ENGINE_LANES, "a lane of the engine for each");

/* ---- joins ---- */

/* Two roles meet in the groups along `d` when their ranks differ along it alone. Returns the first role that role `r` meets there, itself if none before it. */
static size_t first_met(const struct program *p, size_t r, enum mesh_dim d)
{
	for (size_t q = 0; q < r; q++) {
		bool meets = true;
		for (int other = 0; other < DIM_COUNT; other++)
			if (other != (int)d && mesh_coord(&p->mesh, p->roles[q].representative, (enum mesh_dim)other) != mesh_coord(&p->mesh, p->roles[r].representative, (enum mesh_dim)other))
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

/* A role's collectives along each dimension: the k-th of one is the k-th of all roles that it meets there. Their joins are named by the task of the first role. */
static enum status set_joins(const struct program *p, struct task *tasks, const size_t *first_task, struct error *e)
{
	for (size_t r = 0; r < p->n_roles; r++) {
		const struct role *role = &p->roles[r];
		for (int d = 0; d < DIM_COUNT; d++) {
			size_t other = first_met(p, r, (enum mesh_dim)d), at = 0;
			if (!is_met(p, r, (enum mesh_dim)d))
				continue; /* all members of its groups do the same at the same time: nobody is waited for */
			const struct role *first = &p->roles[other];
			for (size_t i = 0; i < role->ops.n; i++) {
				if (!is_collective_along(&role->ops.at[i], d))
					continue;
				while (at < first->ops.n && !is_collective_along(&first->ops.at[at], d))
					at++;
				if (at == first->ops.n)
					return error_set(e, ST_RUN, "role %zu has more collectives along %s than role %zu", r, mesh_dim_name((enum mesh_dim)d), other);
				tasks[first_task[r] + i].join = (int32_t)(first_task[other] + at++);
			}
		}
	}
	return ST_OK;
}

/* The k-th message that a stage sends on a lane is the k-th that its peer receives on the lane of the other end. Their join is named by the send. */
static enum status join_messages(const struct program *p, struct task *tasks, const size_t *first_task, size_t from, size_t to, enum lane sends, enum lane receives, struct error *e)
{
	const struct role *sender = &p->roles[from], *receiver = &p->roles[to];
	size_t at = 0;
	for (size_t i = 0; i < sender->ops.n; i++) {
		if (sender->ops.at[i].lane != sends)
			continue;
		while (at < receiver->ops.n && receiver->ops.at[at].lane != receives)
			at++;
		if (at == receiver->ops.n)
			return error_set(e, ST_RUN, "stage %zu sends more messages than stage %zu receives", from, to);
		tasks[first_task[from] + i].join = tasks[first_task[to] + at++].join = (int32_t)(first_task[from] + i);
	}
	return ST_OK;
}

static enum status set_message_joins(const struct program *p, struct task *tasks, const size_t *first_task, struct error *e)
{
	enum status st = ST_OK;
	size_t stages = (size_t)p->mesh.size[DIM_PP];
	for (size_t i = 0; i < stages && stages > 1 && !st; i++) {
		size_t next = (i + 1) % stages;
		if (!(st = join_messages(p, tasks, first_task, i, next, LANE_SEND_NEXT, LANE_RECV_PREV, e)))
			st = join_messages(p, tasks, first_task, next, i, LANE_SEND_PREV, LANE_RECV_NEXT, e);
	}
	return st;
}

/* ---- tasks ---- */

/* The clock is int64 picoseconds, 107 days; a step is the sum of its tasks at the most. */
#define STEP_MAX_S 1e6

static enum status check_range(const struct role *role, const struct prices *prices, struct error *e)
{
	double sum_s = 0;
	for (size_t i = 0; i < role->ops.n; i++)
		sum_s += prices->different.at[prices->of_op[i]].alone_s + prices->different.at[prices->of_op[i]].issue_s;
	return sum_s > STEP_MAX_S ? error_set(e, ST_INPUT, "one step would take up to %.0f days: that is out of the simulator's range (%.0f days)", sum_s / 86400, STEP_MAX_S / 86400) : ST_OK;
}

static int64_t ps(double s)
{
	return llround(s * PS_PER_S);
}

/* The slowest of many nodes paces all: whole steps of published FSDP runs take 0.83 % longer with each doubling of the nodes beyond what their collectives explain (mosaicml/llm-foundry, 1 to 64 nodes). */
#define SPREAD_PER_DOUBLING 0.0083

static double node_spread(const struct machine *m)
{
	return m->device.is_host || m->nodes < 2 ? 1 : 1 + SPREAD_PER_DOUBLING * log2((double)m->nodes);
}

static void fill_tasks(const struct role *role, const struct prices *prices, double spread, uint32_t actor, size_t first_task, size_t first_dep, struct task *tasks, uint32_t *deps)
{
	for (size_t i = 0; i < role->ops.n; i++) {
		const struct op *op = &role->ops.at[i];
		const struct op_cost *c = &prices->different.at[prices->of_op[i]];
		tasks[first_task + i] = (struct task){
			.actor = actor,
			.lane = op->lane,
			.alone_ps = ps(c->alone_s * spread),
			.issue_ps = ps(c->issue_s),
			.join = NO_JOIN,
			.dep0 = (uint32_t)first_dep + op->dep0,
			.n_dep = op->n_dep,
			.use = c->use,
		};
	}
	for (size_t i = 0; i < role->deps.n; i++)
		deps[first_dep + i] = (uint32_t)first_task + role->deps.at[i];
}

static enum status fill_timeline(const struct program *p, const size_t *first_task, const struct task_time *times, struct timeline *t, struct error *e)
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
	}
	return ST_OK;
}

/* first_task: by role, and one more for the number of all tasks. */
static enum status simulate(const struct program *p, const struct machine *m, const struct prices *prices, size_t *first_task, struct timeline *timeline, struct error *e)
{
	enum status st = ST_OK;
	size_t n_deps = 0;
	for (size_t r = 0; r < p->n_roles; r++) {
		first_task[r + 1] = first_task[r] + p->roles[r].ops.n;
		n_deps += p->roles[r].deps.n;
	}
	size_t n = first_task[p->n_roles];
	struct task *tasks = calloc(n + 1, sizeof *tasks);
	struct task_time *times = calloc(n + 1, sizeof *times);
	uint32_t *deps = calloc(n_deps + 1, sizeof *deps);
	if (!tasks || !times || !deps || n > INT32_MAX || n_deps > INT32_MAX) {
		st = error_nomem(e, "simulation");
		goto out;
	}
	for (size_t r = 0, first_dep = 0; r < p->n_roles; first_dep += p->roles[r++].deps.n)
		fill_tasks(&p->roles[r], &prices[r], node_spread(m), (uint32_t)r, first_task[r], first_dep, tasks, deps);
	if ((st = set_joins(p, tasks, first_task, e)) || (st = set_message_joins(p, tasks, first_task, e)) || (st = engine_run(tasks, n, deps, (uint32_t)p->n_roles, times, e)) || (st = fill_timeline(p, first_task, times, timeline, e)))
		goto out;
	st = timeline_check(timeline, e);
out:
	free(tasks);
	free(times);
	free(deps);
	return st;
}

enum status predict(const struct program *p, const struct machine *m, struct result *out, struct timeline *timeline, struct error *e)
{
	*timeline = (struct timeline){0};
	enum status st = ST_OK;
	struct prices *prices = calloc(p->n_roles, sizeof *prices);
	size_t *first_task = calloc(p->n_roles + 1, sizeof *first_task);
	if (!prices || !first_task) {
		st = error_nomem(e, "prediction");
		goto out;
	}
	for (size_t r = 0; r < p->n_roles && !st; r++) {
		st = price_role(p, &p->roles[r], m, &prices[r], e);
		if (!st)
			st = check_range(&p->roles[r], &prices[r], e);
	}
	if (st || (st = simulate(p, m, prices, first_task, timeline, e)))
		goto out;
	st = summarize(p, m, prices, timeline, out, e);
out:
	for (size_t r = 0; prices && r < p->n_roles; r++)
		prices_free(&prices[r]);
	free(prices);
	free(first_task);
	if (st)
		timeline_free(timeline);
	return st;
}
