/* A runner: this rank's device and communicators for one program, ready to step. execute() is a loop around it; tests
 * look inside. */
#ifndef STEPSIM_EXEC_RUNNER_H
#define STEPSIM_EXEC_RUNNER_H

#include "exec/device.h"
#include "exec/exec.h"

struct runner {
	struct session *session;
	const struct program *program;
	int64_t rank;            /* whose part this is, in the program's mesh */
	const struct role *role; /* of its stage */
	uint32_t *peer_op;
	struct layout layout;
	struct device_job job;
	struct device device;
	int64_t steps; /* done */
};

/* Refuses what is not executed: formats other than fp32 on the host, or narrower than 16 bits on GPUs; pipeline stages
 * in a CUDA graph; algorithms of collectives that NCCL lacks. No communication. */
enum status runner_supports(const struct program *p, bool gpus, struct error *e);

/* The bytes that rank `rank` of the program's mesh needs. No communication. */
enum status runner_plan(const struct program *p, int64_t rank, struct runner *r, struct error *e);

/* Communicators, memory, threads, for the rank that was planned. Collective over the session. */
enum status runner_open(struct session *s, struct runner *r, struct error *e);
/* The model and the data as they are before the first step; everything else zero. */
void runner_reset(struct runner *r);
/* One optimizer step. stamps (by op): NULL or where they go. After an error of a kernel the step goes on with its
 * collectives, and no further one is run. */
enum status runner_step(struct runner *r, struct stamp *stamps, struct error *e);
/* This rank's sum in the loss buffer after a step; 0 where its role has none. */
double runner_loss(const struct runner *r);
void runner_close(struct runner *r); /* NULL-safe; of a zeroed runner too */

#endif
