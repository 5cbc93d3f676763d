/* The main job in pieces: what is to be done (decided by the leading rank from config and rank count), and doing it. */
#ifndef STEPSIM_CLI_JOB_H
#define STEPSIM_CLI_JOB_H

#include "cli/command.h"
#include "step/config.h"
#include "step/result.h"

#define JOB_MODE (3 * CONFIG_TEXT)

/* POD: the leading rank broadcasts it. */
struct job {
	struct config config; /* resolved for the ranks that are predicted */
	bool here;            /* cluster.system is auto: this machine */
	bool execute;
	bool gpus;            /* executed on this machine's GPUs */
	char mode[JOB_MODE]; /* why nothing is executed; "" when it is */
};

/* Ranks that a parsed config fixes, by the GPUs of its cluster or by its plan; 0 when it leaves them open. */
int64_t job_fixed_ranks(const struct config *c);
/* The fewest ranks that hold one model replica, all of its experts and a whole shard group. */
int64_t job_replica_ranks(const struct config *c);

/* Reads the config and decides. `started`: ranks that a launcher started; 0: none did. ST_INPUT when what the config or --max-error demands cannot be. */
enum status job_decide(const struct options *o, int64_t started, bool may_execute, struct job *out, struct error *e);

/* How many ranks to start for it on this machine: those that the plan fixes, else 2 (the fewest in which something is communicated) or one model replica where that
 * is more, else 1; 0 when nothing would be executed here. */
enum status job_suggest_ranks(const struct options *o, int64_t *ranks, struct error *e);

/* Decides and predicts, for commands that compare predictions: `x` without a session may get one, which the caller closes. */
enum status job_predict(struct context *x, struct job *job, struct result *out, struct error *e);

/* Predicts, executes when the job says so, and writes the result. With a session: all ranks together. */
enum status job_perform(struct context *x, const struct job *job, struct error *e);

#endif
