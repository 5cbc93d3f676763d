/* The main job in two parts: the leading rank decides what to do from config and rank count; then all ranks do it. */
#ifndef STEPSIM_CLI_JOB_H
#define STEPSIM_CLI_JOB_H

#include "cli/command.h"
#include "step/config/config.h"
#include "step/result.h"

#define JOB_MODE (3 * CONFIG_TEXT)

/* POD, because the leading rank broadcasts it. */
struct job {
	struct config config; /* resolved for the ranks that are predicted */
	bool here;            /* cluster.system is auto: this machine */
	bool execute;
	bool gpus;           /* executed on this machine's GPUs */
	char mode[JOB_MODE]; /* why nothing is executed; "" when it is */
};

/* Returns the ranks that a parsed config fixes, by its cluster's GPUs or its plan; 0 if it leaves them open. */
int64_t job_fixed_ranks(const struct config *c);
/* Returns the fewest ranks that hold one model replica, all of its experts and a whole shard group. */
int64_t job_replica_ranks(const struct config *c);

/* Reads the config and decides. `started` is the number of ranks that a launcher started; 0: none did. Asks
 * the plug-in only where NVIDIA's driver is there and the config leaves the backend open. ST_INPUT if the demands of
 * the config or of --max-error cannot be met. */
enum status job_decide(struct context *x, int64_t started, bool may_execute, struct job *out, struct error *e);

/* Returns how many ranks to start on this machine: those that the plan fixes, else 2 (the fewest that communicate) or
 * one model replica if that is more. 0: nothing would be executed here. */
enum status job_suggest_ranks(const struct options *o, int64_t *ranks, struct error *e);

/* Decides and predicts, for commands that compare predictions. If `x` has no session it may get one, which the caller
 * closes. */
enum status job_predict(struct context *x, struct job *job, struct result *out, struct error *e);

/* The same for a config beside other files, with the --set texts of the options: on this process alone, whatever a
 * launcher started, and without a limit of --max-error. */
enum status job_predict_file(const struct options *options, const char *config, struct job *job, struct result *out,
	struct error *e);

/* Predicts, executes if the job says so, and writes the result. With a session all ranks call it. */
enum status job_perform(struct context *x, const struct job *job, struct error *e);

/* Predicts the first two arguments, and prints them beside each other, with the keys that differ. */
enum status predict_two(const struct options *o, struct error *e);

#endif
