/* A runner: this rank's device and communicators for one program, ready to step. execute() is a loop around it; tests look inside. */
#ifndef STEPSIM_EXEC_RUNNER_H
#define STEPSIM_EXEC_RUNNER_H

#include "exec/device.h"
#include "exec/exec.h"

struct runner {
	struct session *session;
	const struct program *program;
	int64_t rank; /* whose part this is, in the program's mesh */
	struct layout layout;
	struct device_job job;
	struct device device;
	int64_t steps; /* done */
};

/* Refuses what is not executed: formats other than fp32 on the host, or narrower than 16 bits on GPUs; programs of several roles. No communication. */
enum status runner_supports(const struct program *p, bool gpus, struct error *e);

/* The bytes that one rank needs. No communication. */
enum status runner_plan(const struct program *p, struct runner *r, struct error *e);

/* Communicators, memory, threads. Collective over the session; `rank` is this process's place in the program's mesh. Call runner_plan before. */
enum status runner_open(struct session *s, const struct program *p, int64_t rank, struct runner *r, struct error *e);
/* The model and the data as they are before the first step; everything else zero. */
void runner_reset(struct runner *r);
/* One optimizer step. stamps (by op): NULL or where they go; loss: NULL or this rank's sum in the loss buffer. After an error of a kernel the step goes on with its collectives, and no further one is run. */
enum status runner_step(struct runner *r, struct stamp *stamps, double *loss, struct error *e);
void runner_close(struct runner *r); /* NULL-safe; of a zeroed runner too */

#endif
