#include "cli/output.h"

#include <math.h>
#include <string.h>

#include "base/wrap.h"
#include "report/figures.h"
#include "report/report.h"

static enum status write_json(const char *path, const struct outcome *outcome, struct error *e)
{
	json_t *j = report_json(outcome);
	enum status st = j ? report_write_json(j, path, e) : error_nomem(e, "the JSON result");
	json_decref(j);
	return st;
}

static enum status write_details(const struct outcome *outcome, struct error *e)
{
	struct wrap w;
	enum status st = wrap_open(&w, stderr, e);
	if (st)
		return st;
	if (!outcome->advice || !(st = report_advice_more(outcome, w.out, e)))
		st = report_prices(outcome, w.out, e);
	if (!st)
		st = report_memory(outcome, w.out, e);
	return wrap_close(&w, st, e);
}

static enum status write_text(const struct outcome *outcome, struct error *e)
{
	struct wrap w;
	enum status st = wrap_open(&w, stdout, e);
	return st ? st : wrap_close(&w, report_text(outcome, w.out, e), e);
}

static enum status check_limit(double limit_percent, const struct outcome *outcome, struct error *e)
{
	if (limit_percent < 0 || !outcome->measured)
		return ST_OK;
	if (outcome->measured->doubles)
		return error_set(e, ST_RUN,
			"--max-error needs a measurement, and doubles of the CUDA libraries give none");
	double error = 100 * figure_error(outcome->predicted->time.step_s, outcome->measured->time.step_s);
	if (fabs(error) <= limit_percent)
		return ST_OK;
	return error_set(e, ST_LIMIT, "the step time is predicted wrong by %+.1f %%, more than --max-error %g", error,
		limit_percent);
}

enum status output(const struct options *o, const struct outcome *outcome, struct error *e)
{
	enum status st;
	if (log_level() == LOG_VERBOSE && (st = write_details(outcome, e)))
		return st;
	if (!options_take_stdout(o) && (st = write_text(outcome, e)))
		return st;
	if (o->json && (st = write_json(o->json, outcome, e)))
		return st;
	if (o->csv && (st = report_csv(outcome, o->csv, e)))
		return st;
	if (o->trace && (st = report_trace(outcome, o->trace, e)))
		return st;
	if (o->snapshot && (st = report_snapshot(outcome, o->snapshot, e)))
		return st;
	if (o->html && (st = report_html(outcome, o->html, e)))
		return st;
	if (o->require_fit && !outcome->predicted->memory.fits)
		return error_set(e, ST_LIMIT, "--require-fit: it does not fit in memory");
	return check_limit(o->max_error_percent, outcome, e);
}
