/* A device: what executes one rank's part of a program. {ops, ctx}; the host's cores are one (exec/host/device.h).
 *
 * A device holds two arenas (its own memory, and host memory for what is copied to it) at the layout's offsets, runs
 * each lane in order, lets lanes go on beside each other, and stamps each op. It knows roles, not programs: a role made
 * by hand runs as well, which is how calibration times what a collective and a GEMM cost each other.
 */
#ifndef STEPSIM_EXEC_DEVICE_H
#define STEPSIM_EXEC_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "exec/board.h"
#include "exec/comm.h"
#include "exec/host_work.h"
#include "exec/pattern.h"
#include "step/cut.h"
#include "step/layout.h"
#include "step/program.h"

/* One rank's part. Everything is borrowed until the device is destroyed. */
struct device_job {
	const struct role *role;
	const struct layout *layout; /* of layout_plan */
	int64_t coord[DIM_ALL];      /* this rank's, in the mesh */
	int64_t heads;               /* query heads of the whole model */
	struct cut cut;              /* its place in the context group */
	double loss_scale;
	/* By lane and mesh dimension: a communicator of its own for each pair that the role's collectives use, since
	 * ranks agree on the order of calls within a lane only. ops == NULL: absent. Along DIM_PP a communicator has
	 * two members: sender and receiver of a message lane's messages; on the other lanes the first and the last
	 * stage. */
	struct comm comm[LANE_COUNT][DIM_ALL];
	struct host_times host;  /* of the ops on the host's lanes */
	const uint32_t *peer_op; /* by op, of peer_ops (step/peers.h); NULL: every op has the same number at all members
	                            of its group. For verification alone */
	struct beacon *beacon;
	double slowness;     /* above 1: each op of the compute lane takes so many times as long (cluster.slow_ranks) */
	int64_t cores;       /* of this rank */
	bool oversubscribed; /* other ranks compute on them too */
	/* Called on any thread when a communicator fails in the middle of a step: the other ranks wait, so it must not
	 * return. */
	void (*broken)(void *ctx, const char *text);
	void *broken_ctx;
};

/* CLOCK_MONOTONIC. A collective begins when this rank has arrived at it. */
struct stamp {
	int64_t begin_ns, end_ns;
};

static inline int64_t stamp_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Sleeps between two polls: short beside a step, long enough that the core serves other threads. */
static inline void device_nap(void)
{
	const struct timespec nap = {0, 20000};
	nanosleep(&nap, NULL);
}

/* Around each collective, before it starts and when it has ended, one call at a time. With collectives_only alone. */
struct step_hooks {
	void (*before)(void *ctx, uint32_t op);
	void (*after)(void *ctx, uint32_t op);
	void *ctx;
};

struct device_step {
	int64_t number;                 /* of the optimizer's step, from 1 */
	struct stamp *stamps;           /* by op; NULL: none wanted */
	const struct step_hooks *hooks; /* NULL: none */
	bool collectives_only;          /* the other ops take their turn but do nothing */
};

struct device_ops {
	enum status (*load)(void *ctx, const struct device_job *job, struct error *e);
	/* Runs one step; returns when all lanes have ended. After an error of a kernel the rest of the step goes on
	 * with collectives only, so that no other rank waits for this one. */
	enum status (*step)(void *ctx, const struct device_step *s, struct error *e);
	/* Between steps, or in a hook. Offsets are from the buffer's beginning. */
	void (*write)(void *ctx, int32_t buffer, uint64_t offset_B, const void *from, uint64_t bytes);
	void (*read)(void *ctx, int32_t buffer, uint64_t offset_B, void *to, uint64_t bytes);
	/* (optional) The device writes n elements of a pattern, or looks for the first of n that differs from it; *at
	 * is n where none does. False: not done, the caller writes or reads. Default: false. */
	bool (*fill)(void *ctx, int32_t buffer, uint64_t offset_B, uint64_t n, enum dtype d, const struct pattern *p);
	bool (*check)(void *ctx, int32_t buffer, uint64_t offset_B, uint64_t n, enum dtype d, const struct pattern *p,
		uint64_t *at);
	void (*clear)(void *ctx);          /* zeros everywhere; a GPU has random numbers where ops only read */
	uint64_t (*overhead_B)(void *ctx); /* memory beside the two arenas, the libraries' included on a GPU */
	/* (optional) Once loaded: the memory in which collectives' buffers lie, for communicators that want to know it
	 * before; *bytes 0 where there is none. Default: no such memory. */
	void (*collective_memory)(void *ctx, void **at, uint64_t *bytes);
	void (*destroy)(void *ctx);
};

struct device {
	const struct device_ops *ops;
	void *ctx;
};

/* Destroys a device of any kind and clears its ops. Does nothing where ops is NULL. */
static inline void device_destroy(struct device *d)
{
	if (d->ops)
		d->ops->destroy(d->ctx);
	d->ops = NULL;
}

/* Returns the offset in bytes at which a view begins in its buffer, for this rank. */
static inline uint64_t view_offset_B(const struct device_job *job, const struct view *v)
{
	return v->offset_B + (uint64_t)job->coord[v->along] * v->stride_B;
}

#endif
