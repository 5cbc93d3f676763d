/* A communicator without anybody else: a call is done after so many polls and leaves the buffers as they are. Counts
 * what it is asked. */
#ifndef STEPSIM_TESTS_DOUBLES_COMM_DOUBLE_H
#define STEPSIM_TESTS_DOUBLES_COMM_DOUBLE_H

#include "exec/comm.h"

struct comm_double {
	int polls; /* a call takes so many */
	int left;  /* of the call under way */
	bool under_way;
	int64_t started, ended;
	bool misused; /* a second call before the first was done, or a poll without a call */
};

static enum status comm_double_start(void *ctx, const struct comm_call *call, struct error *e)
{
	struct comm_double *d = ctx;
	(void)call;
	(void)e;
	d->misused = d->misused || d->under_way;
	d->under_way = true;
	d->left = d->polls;
	d->started++;
	return ST_OK;
}

static enum status comm_double_test(void *ctx, bool *done, struct error *e)
{
	struct comm_double *d = ctx;
	(void)e;
	d->misused = d->misused || !d->under_way;
	*done = d->left-- == 0;
	if (*done) {
		d->under_way = false;
		d->ended++;
	}
	return ST_OK;
}

static void comm_double_destroy(void *ctx) { (void)ctx; }

/* The communicator of member `rank` of `size` over `d`, which the caller owns. */
static inline struct comm comm_double(struct comm_double *d, int64_t size, int64_t rank, int polls)
{
	static const struct comm_ops ops = {comm_double_start, comm_double_test, comm_double_destroy};
	*d = (struct comm_double){.polls = polls};
	return (struct comm){&ops, d, size, rank};
}

#endif
