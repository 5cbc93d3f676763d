/* `stepsim plan CONFIG.yaml`: the plans of the config's model and batch on its cluster, best first. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_stream.h"
#include "base/paths.h"
#include "base/quantity.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/machine.h"
#include "cli/source.h"
#include "report/plan.h"
#include "sim/search/search.h"
#include "step/import/export.h"

/* ---- the machine ---- */

struct place {
	struct config config; /* parsed, for these ranks */
	struct target target;
	int64_t ranks;
	char system[256];
};

static enum status place_elsewhere(const struct options *o, struct place *p, struct error *e)
{
	struct config *c = &p->config;
	enum status st;
	if (o->gpus && (st = target_take_gpus(c, o->gpus, e)))
		return st;
	if (target_system(c, &p->target, e))
		return config_blame_system(c, e);
	c->cluster.nodes = p->target.machine.nodes; /* a system line may have said it */
	p->ranks = p->target.machine.nodes * p->target.machine.devices_per_node;
	return ST_OK;
}

static enum status place_here(struct context *x, struct place *p, struct error *e)
{
	struct config *c = &p->config;
	const int64_t given = job_fixed_ranks(c);
	c->executed = 1;
	p->ranks = x->options->gpus ? x->options->gpus : given ? given : job_replica_ranks(c);
	enum status st = x->options->gpus ? target_take_gpus(c, p->ranks, e) : ST_OK;
	return st ? st : target_here(x, c, p->ranks, &p->target, e);
}

static enum status find_place(struct context *x, struct place *p, struct error *e)
{
	const struct options *o = x->options;
	enum status st = source_parse(o, &p->config, e);
	if (!st)
		st = strcmp(p->config.cluster.system, "auto") == 0 ? place_here(x, p, e) : place_elsewhere(o, p, e);
	if (st)
		return st;
	const struct machine *m = &p->target.machine;
	p->config.node_ranks = m->devices_per_node;
	snprintf(p->system, sizeof p->system, "%lld x %.100s (%.100s)", (long long)p->ranks, m->device.name, m->name);
	return ST_OK;
}

/* ---- the output ---- */

static enum status write_winner(const struct search_result *r, const struct options *o, const char *system,
	struct error *e)
{
	char *text = NULL, heading[CONFIG_TEXT + 512], words[PLAN_WORDS], step[QUANTITY_MAX];
	size_t len = 0;
	if (r->n_best == 0)
		return error_set(e, ST_INPUT, "--write: no plan fits, and there is nothing to write");
	FILE *out = memory_stream(&text, &len);
	if (!out)
		return error_nomem(e, "the plan");
	snprintf(heading, sizeof heading, "# %s on %s: %s\n# stepsim plan %s; predicted: %s a step\n",
		r->best[0].config.model.name, system, plan_words(&r->best[0].config, words), source_argument(o),
		quantity_format(step, r->best[0].full.time.step_s, UNIT_SECOND));
	enum status st = plan_write_yaml(&r->best[0].chosen, heading, out, e);
	const bool good = memory_stream_close(out);
	if (!st)
		st = good ? file_write(o->write, text, len, e) : error_nomem(e, "the plan");
	free(text);
	return st;
}

static enum status emit_winner(const struct search_result *r, const char *to, struct error *e)
{
	if (r->n_best == 0)
		return error_set(e, ST_INPUT, "--emit: no plan fits, and there is nothing to print");
	return export_write(&r->best[0].config, to, stdout, e);
}

static enum status write_all(const struct options *o, const struct plan_report *p, const struct search_result *r,
	struct error *e)
{
	struct wrap w;
	enum status st = ST_OK;
	if (o->to)
		st = emit_winner(r, o->to, e);
	else if (!options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, report_plan_text(p, w.out, e), e);
	if (!st && o->csv)
		st = report_plan_csv(p, o->csv, e);
	if (!st && o->json)
		st = report_plan_json(p, o->json, e);
	if (!st && o->plot)
		st = report_plan_svg(p, o->plot, e);
	if (!st && o->html)
		st = report_plan_html(p, o->html, e);
	if (!st && o->require_fit && p->rows == 0)
		st = error_set(e, ST_LIMIT, "--require-fit: no plan fits in memory");
	if (!st && o->write)
		st = write_winner(r, o, p->system, e);
	return st;
}

static enum status report(const struct options *o, const struct place *where, const struct search_result *r,
	struct error *e)
{
	struct plan_row *rows = calloc(r->n_best + 1, sizeof *rows);
	struct plan_point *points = calloc(r->front.n + 1, sizeof *points);
	const struct search_counts *n = &r->counts;
	enum status st = rows && points ? ST_OK : error_nomem(e, "the plans");
	for (size_t i = 0; i < r->n_best && !st; i++)
		rows[i] = (struct plan_row){&r->best[i].config, &r->best[i].full};
	for (size_t i = 0; i < r->front.n && !st; i++)
		points[r->front.n - 1 - i] = (struct plan_point){&r->front.at[i].config, r->front.at[i].step_s,
			r->front.at[i].memory_B};
	const struct plan_report p = {
		.system = where->system,
		.system_json = where->target.system,
		.ranks = where->ranks,
		.row = rows,
		.rows = r->n_best,
		.start = {&r->start.config, r->start_legal ? &r->start.full : NULL},
		.start_reason = r->start_reason,
		.least = {&r->least.config, r->has_least ? &r->least.full : NULL},
		.missing_B = r->missing_B,
		.point = points,
		.points = r->front.n,
		.front = SEARCH_FRONT,
		.plans = n->plans,
		.illegal = n->illegal,
		.too_large = n->too_large,
		.pruned = n->pruned,
		.left = n->left,
		.timed = n->timed,
		.exhaustive = o->exhaustive,
		.memory_share = r->memory_share,
		.usual_share = r->usual_share,
		.left_cuts = r->left_cuts,
		.left_tensor = r->left_tensor,
	};
	if (!st)
		st = write_all(o, &p, r, e);
	free(rows);
	free(points);
	return st;
}

/* ---- the command ---- */

static void show_progress(double fraction, int64_t plans, void *context)
{
	const double lasted_s = clock_s() - *(const double *)context;
	char text[64];
	snprintf(text, sizeof text, "%lld plans, %.0f plans/s", (long long)plans,
		lasted_s > 0 ? (double)plans / lasted_s : 0);
	progress_update(fraction, text);
}

enum status cmd_plan(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct place *where = calloc(1, sizeof *where);
	struct search_result *r = calloc(1, sizeof *r);
	double began_s = clock_s();
	enum status st = where && r ? ST_OK : error_nomem(e, "the plans");
	if (!st)
		st = find_place(x, where, e);
	if (!st) {
		const struct search_options options = {.held = plan_held(&where->config),
			.exhaustive = o->exhaustive,
			.progress = show_progress,
			.context = &began_s};
		progress_begin("plans");
		st = search(&where->config, &where->target.machine, where->ranks, &options, r, e);
		progress_end();
	}
	if (!st)
		st = report(o, where, r, e);
	if (where)
		target_free(&where->target);
	if (r)
		search_free(r);
	free(where);
	free(r);
	return st;
}
