#include "cli/logs.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "cli/source.h"
#include "report/figures.h"

#define STAMPS_MAY_DIFFER 0.05 /* saving and evaluating beside the steps is more than this */

static enum status add_log(const char *log, const char *config, const struct job *job, const struct result *predicted,
	log_runs *out, struct error *e)
{
	struct train_log read;
	struct log_run r = {.log = log, .config = config, .job = *job, .predicted = *predicted};
	const double tokens = predicted->tokens_per_s * predicted->time.step_s;
	enum status st = train_log_read(log, &read, e);
	r.framework = read.framework;
	r.memory_B = read.memory_B;
	if (!st)
		st = train_log_sum(&read, tokens, tokens / (double)job->config.model.seq_len,
			round(predicted->tokens_per_s / predicted->tokens_per_s_per_gpu), job->config.run.warmup,
			&r.measured, e);
	train_log_free(&read);
	if (!st && !vec_push(out, r))
		st = error_nomem(e, "the logs");
	return st;
}

enum status log_runs_read(const struct options *o, log_runs *out, struct error *e)
{
	size_t first = 0; /* of the logs that wait for their config */
	enum status st = ST_OK;
	for (size_t i = 0; i < o->n_positional && !st; i++) {
		struct job job;
		struct result predicted;
		if (!source_is_config(o->positional[i]))
			continue;
		if (first == i)
			return error_set(e, ST_INPUT, "%s: no log before this config (LOG... CONFIG.yaml)",
				o->positional[i]);
		st = job_predict_file(o, o->positional[i], &job, &predicted, e);
		for (; first < i && !st; first++)
			st = add_log(o->positional[first], o->positional[i], &job, &predicted, out, e);
		first = i + 1;
	}
	if (!st && first < o->n_positional)
		st = error_set(e, ST_INPUT, "%s: no config behind this log (LOG... CONFIG.yaml)", o->positional[first]);
	return st;
}

double log_run_error(const struct log_run *r) { return figure_error(r->predicted.time.step_s, r->measured.median_s); }

void log_run_warn(const struct log_run *r)
{
	const struct train_log_summary *m = &r->measured;
	const int64_t batch = r->job.config.train.global_batch;
	if (m->global_batch && m->global_batch != batch)
		log_warn("%s: its global batch is %lld, and train.global_batch of %s is %lld: another run", r->log,
			(long long)m->global_batch, r->config, (long long)batch);
	if (strcmp(r->framework, "torchtitan") == 0 && m->stamped_s > 0 &&
		fabs(m->median_s / m->stamped_s - 1) > STAMPS_MAY_DIFFER)
		log_warn(
			"%s: %s's tokens a step over its tps say %.3g s a step, the times of its lines %.3g s: another "
			"batch or number of GPUs, or work between the steps",
			r->log, r->config, m->median_s, m->stamped_s);
}

const char *log_run_name(const struct log_run *r)
{
	const char *slash = strrchr(r->log, '/');
	return slash ? slash + 1 : r->log;
}
