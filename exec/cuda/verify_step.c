/* A step for verification: hooks look at the buffers before and after each collective. The lanes go on beside each
 * other, as in any step: who ended one collective before he began the next in program order would, in a pipeline, wait
 * for a message whose sender waits for him. The host keeps the order between lanes, so that nothing stands on a stream
 * before it is ready. */
#include <sched.h>

#include "exec/cuda/device.h"

struct walk {
	struct cuda_device *d;
	const struct step_hooks *hooks;
	uint32_t next[LANE_COUNT]; /* places in the lanes' lists */
	bool under_way[LANE_COUNT];
};

static enum status start(struct walk *w, uint32_t op, struct error *e)
{
	struct cuda_device *d = w->d;
	w->hooks->before(w->hooks->ctx, op);
	enum status st = cuda_flush(d, e);
	if (!st)
		st = cuda_collective(d, op, e);
	return st ? st : CUDA_CHECK(cudaEventRecord(d->mark[op], d->lane[d->job->role->ops.at[op].lane].stream), e);
}

static enum status finish(struct walk *w, uint32_t op, bool *done, struct error *e)
{
	cudaError_t code = cudaEventQuery(w->d->mark[op]);
	*done = code == cudaSuccess;
	if (code == cudaErrorNotReady)
		return ST_OK;
	if (*done)
		w->hooks->after(w->hooks->ctx, op);
	return CUDA_CHECK(code, e);
}

static void pass(struct walk *w, int lane)
{
	struct cuda_lane *l = &w->d->lane[lane];
	w->under_way[lane] = false;
	w->next[lane]++;
	while (l->passed < l->n_marks && l->marks[l->passed] < w->next[lane])
		l->passed++;
	atomic_fetch_add_explicit(&w->d->job->beacon->progress, 1, memory_order_relaxed);
}

/* A group's first call may keep the host until all members have made theirs (NCCL 2.22 and later connect ranks then),
 * so a message that one of them waits for goes first where the program has it first. Messages keep nobody: their pairs
 * met at set-up. */
static bool is_held(const struct walk *w, enum lane lane, uint32_t op)
{
	if (!lane_is_comm(lane) || lane >= LANE_SEND_NEXT)
		return false;
	for (int l = 0; l < LANE_COUNT; l++) {
		const uint32_t next = w->next[l] + w->under_way[l];
		if (l != (int)lane && lane_is_comm((enum lane)l) && next < w->d->lane[l].n &&
			w->d->lane[l].ops[next] < op)
			return true;
	}
	return false;
}

/* As far as the lane can go. *moved: something changed. */
static enum status advance(struct walk *w, int lane, bool *moved, struct error *e)
{
	const struct cuda_lane *l = &w->d->lane[lane];
	for (; w->next[lane] < l->n; *moved = true) {
		uint32_t op = l->ops[w->next[lane]];
		bool done = !lane_is_comm((enum lane)lane);
		enum status st = ST_OK;
		if (!w->under_way[lane] && (cuda_op_waits(w->d, op) || is_held(w, (enum lane)lane, op)))
			return ST_OK;
		if (!done && !w->under_way[lane]) {
			w->under_way[lane] = *moved = true;
			return start(w, op, e);
		}
		if (!done && ((st = finish(w, op, &done, e)) || !done))
			return st;
		pass(w, lane);
	}
	return ST_OK;
}

enum status cuda_verify_step(struct cuda_device *d, const struct step_hooks *hooks, struct error *e)
{
	struct walk w = {.d = d, .hooks = hooks};
	enum status st = ST_OK;
	d->issued = (uint32_t)d->job->role->ops.n;
	for (bool left = true; left && !st;) {
		bool moved = left = false;
		for (int l = 0; l < LANE_COUNT && !st; l++) {
			st = advance(&w, l, &moved, e);
			left = left || w.next[l] < d->lane[l].n;
		}
		cuda_tell(d);
		if (st || moved)
			continue;
		st = cuda_ask_communicators(d, e);
		sched_yield();
	}
	return st;
}
