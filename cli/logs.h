/* Logs of training runs beside predictions: what compare-log and fit share. */
#ifndef STEPSIM_CLI_LOGS_H
#define STEPSIM_CLI_LOGS_H

#include "base/vec.h"
#include "cli/job.h"
#include "report/import/train_log.h"

/* A log and the config of its run. */
struct log_run {
	const char *log, *config; /* borrowed of the options */
	const char *framework;
	double memory_B; /* printed by the log; 0: it does not say */
	struct train_log_summary measured;
	struct job job;
	struct result predicted;
};
typedef VEC(struct log_run) log_runs;

/* Reads the arguments "LOG... CONFIG [LOG... CONFIG]...": each config is that of the logs before it. Predicts each
 * config, and sums up each log. ST_INPUT: no log, no config behind a log, or a file that is neither. The caller frees
 * *out with vec_free. */
enum status log_runs_read(const struct options *o, log_runs *out, struct error *e);

/* Returns (predicted - measured) / measured. */
double log_run_error(const struct log_run *r);

/* Prints what may make a log and its config different runs: another batch, times of lines that contradict. */
void log_run_warn(const struct log_run *r);

/* The name of a log without its folder. */
const char *log_run_name(const struct log_run *r);

#endif
