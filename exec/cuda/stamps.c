/* When each op began and ended, by events on its stream; nothing waits for them. */
#include <stdlib.h>

#include "exec/cuda/device.h"

#define TRIES 4 /* of tying the two clocks together: the shortest is the best */

/* An op of the compute lane that waits for no other lane begins when the one before ends. The other lanes stand empty
 * until the host comes to their next op: there the end of the one before says nothing. */
static bool needs_begin(const struct cuda_device *d, uint32_t i)
{
	const struct op *op = &d->job->role->ops.at[i];
	if (d->options.span)
		return i == 0;
	return !op_on_host(op) && (op->lane != LANE_COMPUTE || d->before[i] == 0 || op->n_dep > 0);
}

static bool needs_end(const struct cuda_device *d, uint32_t i)
{
	return !d->options.span || i + 1 == d->job->role->ops.n;
}

enum status cuda_stamps_prepare(struct cuda_device *d, struct error *e)
{
	const uint32_t n = (uint32_t)d->job->role->ops.n;
	enum status st = ST_OK;
	if (d->timed)
		return ST_OK;
	if (!d->begin)
		d->begin = calloc((size_t)n + 1, sizeof(cudaEvent_t));
	if (!d->end)
		d->end = calloc((size_t)n + 1, sizeof(cudaEvent_t));
	if (!d->begin || !d->end)
		return error_nomem(e, "events");
	if (!d->anchor)
		st = CUDA_CHECK(cudaEventCreate(&d->anchor), e);
	for (uint32_t i = 0; i < n && !st; i++) {
		if (op_on_host(&d->job->role->ops.at[i]))
			continue;
		if (!d->end[i] && needs_end(d, i))
			st = CUDA_CHECK(cudaEventCreate(&d->end[i]), e);
		if (!st && !d->begin[i] && needs_begin(d, i))
			st = CUDA_CHECK(cudaEventCreate(&d->begin[i]), e);
	}
	d->timed = !st;
	return st;
}

/* The event lies somewhere between the two looks at the host's clock. */
enum status cuda_stamps_anchor(struct cuda_device *d, int64_t *at_ns, struct error *e)
{
	int64_t least = INT64_MAX;
	enum status st = ST_OK;
	/* the last try is the event that stays, so a bad one is tried again */
	for (int i = 0; i < TRIES && !st; i++) {
		int64_t from = stamp_now_ns();
		if ((st = CUDA_CHECK(cudaEventRecord(d->anchor, d->lane[LANE_COMPUTE].stream), e)) ||
			(st = CUDA_CHECK(cudaEventSynchronize(d->anchor), e)))
			break;
		int64_t to = stamp_now_ns();
		*at_ns = from + (to - from) / 2;
		if (i > 0 && to - from <= least + least / 4)
			break;
		least = to - from < least ? to - from : least;
	}
	return st;
}

static enum status time_of(const struct cuda_device *d, cudaEvent_t event, int64_t anchor_ns, int64_t *out,
	struct error *e)
{
	float ms = 0.0f;
	enum status st = CUDA_CHECK(cudaEventElapsedTime(&ms, d->anchor, event), e);
	*out = anchor_ns + (int64_t)((double)ms * 1e6);
	return st;
}

enum status cuda_stamps_read(const struct cuda_device *d, int64_t anchor_ns, struct stamp *out, struct error *e)
{
	const uint32_t n = (uint32_t)d->job->role->ops.n;
	enum status st = ST_OK;
	for (uint32_t i = 0; i < n && !st; i++) {
		if (op_on_host(&d->job->role->ops.at[i]))
			continue;
		if (d->begin[i])
			st = time_of(d, d->begin[i], anchor_ns, &out[i].begin_ns, e);
		else if (d->before[i])
			out[i].begin_ns = out[d->before[i] - 1].end_ns;
		if (!st && d->end[i])
			st = time_of(d, d->end[i], anchor_ns, &out[i].end_ns, e);
	}
	return st;
}
