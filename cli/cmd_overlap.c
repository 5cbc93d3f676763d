/* `stepsim overlap TRACE... [CONFIG.yaml]`: overlap in the traces of a real run; with a config also the prediction's.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/source.h"
#include "report/overlap.h"
#include "report/report.h"

static enum status find_config(const struct options *o, const char **config, struct error *e)
{
	*config = NULL;
	for (size_t i = 0; i < o->n_positional; i++) {
		if (!source_is_config(o->positional[i]))
			continue;
		if (*config)
			return error_set(e, ST_INPUT, "two configs, %s and %s: one can be compared", *config,
				o->positional[i]);
		*config = o->positional[i];
	}
	if (!*config && o->sets.n)
		return error_set(e, ST_INPUT, "--set %s: without a config there is nothing to set", o->sets.at[0]);
	if (!*config && o->max_error_percent >= 0)
		return error_set(e, ST_INPUT, "--max-error: without a config there is no prediction");
	return o->n_positional > (*config ? 1u : 0u)
	               ? ST_OK
	               : error_set(e, ST_INPUT,
				 "TRACE missing: traces of a run (PyTorch's profiler: .json, .json.gz; Nsight "
				 "Systems: .sqlite)");
}

/* ---- the traces ---- */

struct progress {
	double total_B, done_B;
	const char *path;
};

static double size_of(const char *path)
{
	struct stat s;
	return stat(path, &s) == 0 ? (double)s.st_size : 0;
}

static void tell(void *ctx, uint64_t read_B)
{
	const struct progress *p = ctx;
	progress_update(p->total_B > 0 ? (p->done_B + (double)read_B) / p->total_B : 0, p->path);
}

static enum status read_all(const struct options *o, struct trace_set *set, struct error *e)
{
	struct progress p = {0};
	enum status st = ST_OK;
	for (size_t i = 0; i < o->n_positional; i++)
		p.total_B += source_is_config(o->positional[i]) ? 0 : size_of(o->positional[i]);
	progress_begin("reading traces");
	for (size_t i = 0; i < o->n_positional && !st; i++) {
		p.path = o->positional[i];
		if (source_is_config(p.path))
			continue;
		st = trace_read(p.path, set, tell, &p, e);
		p.done_B += size_of(p.path);
	}
	progress_end();
	return st ? st : trace_finish(set, e);
}

/* ---- both ---- */

static enum status write_all(const struct options *o, const struct overlap *found, const struct result *predicted,
	struct error *e)
{
	struct wrap w;
	enum status st = ST_OK;
	if (!options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, report_overlap_text(found, predicted, w.out, e), e);
	if (st || !o->json)
		return st;
	json_t *j = report_overlap_json(found, predicted);
	st = j ? report_write_json(j, o->json, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

static enum status check_limit(const struct options *o, const struct overlap *found, const struct result *predicted,
	struct error *e)
{
	double percent = 100 * (predicted->time.step_s / found->step_s - 1);
	if (o->max_error_percent < 0 || (percent <= o->max_error_percent && -percent <= o->max_error_percent))
		return ST_OK;
	return error_set(e, ST_LIMIT, "the predicted step time is off by %+.1f %%; --max-error %g", percent,
		o->max_error_percent);
}

enum status cmd_overlap(struct context *x, struct error *e)
{
	const char *config;
	struct trace_set set = {0};
	struct overlap found = {0};
	struct result predicted;
	struct job job;
	enum status st = find_config(x->options, &config, e);
	if (!st && config)
		st = job_predict_file(x->options, config, &job, &predicted, e);
	if (!st)
		st = read_all(x->options, &set, e);
	if (!st)
		st = overlap_of(&set, &found, e);
	if (!st)
		st = write_all(x->options, &found, config ? &predicted : NULL, e);
	if (!st && config)
		st = check_limit(x->options, &found, &predicted, e);
	overlap_free(&found);
	trace_free(&set);
	return st;
}
