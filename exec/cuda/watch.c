/* The end of a step: polled, so that the watchdog learns how far each lane is, and a communicator's failure is seen
 * while its stream stands still. */
#include <sched.h>

#include "base/array.h"
#include "exec/cuda/device.h"

#define ASK_NS 1000000 /* between two questions to the communicators */

/* The op's index of a mark. */
static uint32_t marked(const struct cuda_lane *l, uint32_t mark) { return l->ops[l->marks[mark]]; }

static bool has_ended(const struct cuda_device *d, uint32_t op)
{
	const struct cuda_lane *l = &d->lane[d->job->role->ops.at[op].lane];
	if (op_on_host(&d->job->role->ops.at[op]))
		return cuda_host_lanes_ended(d, op);
	return l->passed > 0 && op <= marked(l, l->passed - 1);
}

bool cuda_op_waits(const struct cuda_device *d, uint32_t op)
{
	const struct op *o = &d->job->role->ops.at[op];
	for (uint32_t i = 0; i < o->n_dep; i++)
		if (!has_ended(d, d->job->role->deps.at[o->dep0 + i]))
			return true;
	return false;
}

/* Between two marks the first op that waits is where the lane stands; when none waits, the first runs, as far as can be
 * told. */
static int64_t stands_at(const struct cuda_device *d, const struct cuda_lane *l)
{
	if (l->passed == l->n_marks)
		return 0;
	const uint32_t first = l->passed ? l->marks[l->passed - 1] + 1 : 0;
	for (uint32_t k = first; k <= l->marks[l->passed] && l->ops[k] < d->issued; k++)
		if (cuda_op_waits(d, l->ops[k]))
			return -((int64_t)l->ops[k] + 1);
	return l->ops[first] < d->issued ? (int64_t)l->ops[first] + 1 : 0;
}

void cuda_tell(struct cuda_device *d)
{
	for (int i = 0; i < LANE_COUNT; i++)
		atomic_store_explicit(&d->job->beacon->op[i], stands_at(d, &d->lane[i]), memory_order_relaxed);
}

void cuda_watch(struct cuda_device *d)
{
	for (int i = 0; i < LANE_COUNT; i++) {
		struct cuda_lane *l = &d->lane[i];
		while (l->passed < l->n_marks && marked(l, l->passed) < d->issued &&
			cudaEventQuery(d->mark[marked(l, l->passed)]) == cudaSuccess) {
			l->passed++;
			atomic_fetch_add_explicit(&d->job->beacon->progress, 1, memory_order_relaxed);
		}
	}
	cuda_tell(d);
}

/* Where the lanes stood when something broke: "op N name". */
static void where(const struct cuda_device *d, enum lane only, struct error *e)
{
	static const enum lane by_weight[] = {LANE_COMPUTE, LANE_MODEL_COMM, LANE_COMM, LANE_REPLICA_COMM,
		LANE_RECV_PREV, LANE_RECV_NEXT, LANE_SEND_NEXT, LANE_SEND_PREV, LANE_COPY, LANE_HOST, LANE_LOAD};
	char name[OP_NAME_MAX];
	for (size_t i = 0; i < COUNT(by_weight); i++) {
		int64_t op = stands_at(d, &d->lane[by_weight[i]]);
		if (op == 0 || (only != LANE_COUNT && only != by_weight[i]))
			continue;
		op = op < 0 ? -op : op;
		error_context(e, "op %lld %s", (long long)op - 1, op_name(&d->job->role->ops.at[op - 1], name));
		return;
	}
}

static bool has_communicators(const struct cuda_device *d)
{
	for (int l = 0; l < LANE_COUNT; l++)
		for (int g = 0; g < DIM_ALL; g++)
			if (d->job->comm[l][g].ops)
				return true;
	return false;
}

enum status cuda_broken(struct cuda_device *d, const struct error *why, struct error *e)
{
	if (d->job->broken && has_communicators(d))
		d->job->broken(d->job->broken_ctx, why->text);
	return error_set(e, why->status, "%s", why->text);
}

enum status cuda_ask_communicators(struct cuda_device *d, struct error *e)
{
	for (int l = 0; l < LANE_COUNT; l++)
		for (int g = 0; g < DIM_ALL; g++) {
			const struct comm *c = &d->job->comm[l][g];
			struct error why = {ST_OK, ""};
			bool done;
			if (!c->ops || comm_test(c, &done, &why) == ST_OK)
				continue;
			where(d, (enum lane)l, &why);
			return cuda_broken(d, &why, e);
		}
	return ST_OK;
}

/* Whether all streams have drained. A device that fails does so for good, and takes its collectives with it. */
static enum status drained(struct cuda_device *d, bool *all, struct error *e)
{
	*all = true;
	for (int l = 0; l < LANE_COUNT; l++) {
		if (!d->lane[l].stream || (d->in_graph && l != LANE_COMPUTE))
			continue;
		cudaError_t code = cudaStreamQuery(d->lane[l].stream);
		if (code == cudaErrorNotReady) {
			*all = false;
			continue;
		}
		struct error why = {ST_OK, ""};
		if (cuda_check(code, "cudaStreamQuery", __FILE__, __LINE__, &why) == ST_OK)
			continue;
		where(d, LANE_COUNT, &why);
		return cuda_broken(d, &why, e);
	}
	return ST_OK;
}

static void pause_polling(const struct cuda_device *d)
{
	if (d->job->oversubscribed)
		device_nap();
	else
		sched_yield();
}

enum status cuda_wait(struct cuda_device *d, struct error *e)
{
	int64_t asked_ns = stamp_now_ns();
	for (;;) {
		bool all = false;
		enum status st = drained(d, &all, e);
		cuda_watch(d);
		if (st || all)
			return st;
		if (stamp_now_ns() - asked_ns > ASK_NS) {
			if ((st = cuda_ask_communicators(d, e)))
				return st;
			asked_ns = stamp_now_ns();
		}
		pause_polling(d);
	}
}
