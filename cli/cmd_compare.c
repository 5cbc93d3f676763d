/* `stepsim compare CONFIG.yaml --systems A,B,C`: one workload on several systems, each with the best plan that it can
 * run, or with the config's own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/compare.h"
#include "cli/job.h"
#include "cli/source.h"
#include "sim/engine/fold.h"
#include "sim/search/search.h"
#include "step/plan.h"
#include "topology/machine.h"

#define TOKENS 1e12 /* where nobody says how many: what a thousand billion of them take and cost */

/* ---- one system at one size ---- */

struct work {
	const struct config *config; /* parsed */
	bool fixed_plan;
	size_t system, systems; /* of how many, for the progress line */
};

static enum status keep(struct compare_row *r, const struct config *resolved, const struct result *p, struct error *e)
{
	if (!(r->config = malloc(sizeof *r->config)) || !(r->predicted = malloc(sizeof *r->predicted)))
		return error_nomem(e, "the comparison");
	*r->config = *resolved;
	*r->predicted = *p;
	r->fits = p->memory.fits;
	r->missing_B = p->memory.fits ? 0 : p->memory.total_B - p->memory.capacity_B;
	plan_words(resolved, r->plan);
	return ST_OK;
}

static enum status predict_given(const struct config *c, const struct machine *m, int64_t ranks, struct compare_row *r,
	struct error *e)
{
	struct config *resolved = malloc(sizeof *resolved);
	struct result p;
	enum status st = resolved ? ST_OK : error_nomem(e, "the comparison");
	if (!st) {
		*resolved = *c;
		st = config_resolve(resolved, ranks, e);
	}
	if (!st && !(st = fold_result(resolved, m, &p, e)))
		st = keep(r, resolved, &p, e);
	free(resolved);
	return st;
}

static void tell(double fraction, int64_t plans, void *context)
{
	const struct work *w = context;
	char detail[48];
	snprintf(detail, sizeof detail, "%lld plans", (long long)plans);
	progress_update(((double)w->system + fraction) / (double)w->systems, detail);
}

static enum status predict_best(const struct work *w, const struct config *c, const struct machine *m, int64_t ranks,
	struct compare_row *r, struct error *e)
{
	struct search_result found = {0};
	const struct search_options o = {.held = plan_held(c),
		.best = 1,
		.best_alone = true,
		.progress = tell,
		.context = (void *)(uintptr_t)w};
	enum status st = search(c, m, ranks, &o, &found, e);
	if (!st && found.n_best > 0)
		st = keep(r, &found.best[0].config, &found.best[0].full, e);
	else if (!st && found.has_least)
		st = keep(r, &found.least.config, &found.least.full, e);
	else if (!st)
		st = error_set(e, ST_INPUT, "no plan on %lld GPUs: %s", (long long)ranks, found.start_reason);
	r->plans_left = found.counts.left;
	search_free(&found);
	return st;
}

/* Predicts one config on a system. A plan or a machine that cannot be is this row's reason, and no failure of the
 * comparison. */
static enum status solve_config(const struct work *w, const struct config *config, bool fixed_plan,
	const struct asked_system *a, struct size size, struct compare_row *r, struct error *e)
{
	struct machine m = {0};
	struct error why = {0};
	struct config *c = malloc(sizeof *c);
	if (!c)
		return error_nomem(e, "the comparison");
	*c = *config;
	snprintf(c->cluster.system, sizeof c->cluster.system, "%s", a->name);
	plan_put_cluster(c, size.nodes, size.per_node);
	enum status st = machine_load(a->name, size.nodes, size.per_node, &m, &why);
	if (!st) {
		c->node_ranks = m.devices_per_node;
		if (!(r->system = machine_json(&m)))
			st = error_nomem(&why, "the system's description");
	}
	if (!st)
		st = fixed_plan ? predict_given(c, &m, m.nodes * m.devices_per_node, r, &why)
		                : predict_best(w, c, &m, m.nodes * m.devices_per_node, r, &why);
	machine_free(&m);
	free(c);
	if (st == ST_INPUT) {
		snprintf(r->reason, sizeof r->reason, "%.599s", why.text);
		return ST_OK;
	}
	return st ? error_set(e, st, "%s", why.text) : ST_OK;
}

static enum status solve(void *context, const struct asked_system *a, struct size size, struct compare_row *r,
	struct error *e)
{
	const struct work *w = context;
	return solve_config(w, w->config, w->fixed_plan, a, size, r, e);
}

static enum status solve_given(void *context, const struct asked_system *a, struct size size, const struct config *plan,
	struct compare_row *r, struct error *e)
{
	return solve_config(context, plan, true, a, size, r, e);
}

/* ---- all of them ---- */

/* GPUs of the config's own cluster, or those that its plan fixes. */
static enum status config_gpus(const struct config *c, int64_t *out, struct error *e)
{
	struct machine m;
	*out = job_fixed_ranks(c);
	if (strcmp(c->cluster.system, "auto") == 0)
		return *out ? ST_OK
		            : error_set(e, ST_INPUT,
				      "%s: cluster.system is auto, and no number of GPUs is given: --gpus N, "
				      "--budget or --target says how many",
				      c->path);
	enum status st = machine_load(c->cluster.system, c->cluster.nodes, c->cluster.gpus_per_node, &m, e);
	if (st)
		return config_blame_system(c, e);
	*out = m.nodes * m.devices_per_node;
	machine_free(&m);
	return ST_OK;
}

static enum status check_sizes(const struct options *o, const asked_systems *asked, struct compare *c, struct error *e)
{
	const char *by = o->budget_usd > 0 ? "--budget" : c->within_s > 0 ? "--target" : o->gpus ? "--gpus" : NULL;
	for (size_t i = 0; i < asked->n; i++) {
		const struct asked_system *a = &asked->at[i];
		bool own = a->gpus || a->spec.nodes;
		if (own && by)
			return error_set(e, ST_INPUT,
				"--systems %s%s: has a size of its own, and %s decides it: give one of them", a->name,
				a->gpus ? "@..." : "", by);
		c->own_sizes |= own;
	}
	return ST_OK;
}

static enum status read_question(const struct options *o, const struct config *config, const asked_systems *asked,
	struct compare *c, struct error *e)
{
	enum status st = ST_OK;
	c->fixed_plan = o->fixed_plan;
	c->tokens = TOKENS;
	c->budget_usd = o->budget_usd;
	const double step_tokens = config->train.batch_per_gpu > 0
	                                   ? 0 /* each system's own */
	                                   : (double)config_global_batch(config, 1) * (double)config->model.seq_len;
	if (o->target && (st = compare_read_target(o->target, step_tokens, &c->tokens, &c->within_s, e)))
		return st;
	c->tokens_given = o->target != NULL;
	if ((o->gpus != 0) + (o->budget_usd > 0) + (c->within_s > 0) > 1)
		return error_set(e, ST_INPUT, "%s and %s both say how many hosts: give one of them%s",
			o->gpus ? "--gpus" : "--budget", c->within_s > 0 ? "--target" : "--budget",
			c->within_s > 0 ? ", or the tokens without a time" : "");
	if ((st = check_sizes(o, asked, c, e)))
		return st;
	c->mode = o->budget_usd > 0 ? COMPARE_BUDGET : c->within_s > 0 ? COMPARE_TARGET : COMPARE_GPUS;
	c->gpus = o->gpus;
	bool all_own = true;
	for (size_t i = 0; i < asked->n; i++)
		all_own &= asked->at[i].gpus || asked->at[i].spec.nodes;
	return c->mode == COMPARE_GPUS && !c->gpus && !all_own ? config_gpus(config, &c->gpus, e) : ST_OK;
}

static enum status fill(const struct config *config, const asked_systems *asked, struct compare *c, struct error *e)
{
	struct work w = {.config = config, .fixed_plan = c->fixed_plan, .systems = asked->n};
	const struct compare_solver solver = {.solve = solve, .ctx = &w, .config = config, .predict = solve_given};
	enum status st = vec_reserve(&c->rows, asked->n) ? ST_OK : error_nomem(e, "the comparison");
	progress_begin(c->fixed_plan ? "predicting" : "searching plans");
	for (; w.system < asked->n && !st; w.system++) {
		const struct asked_system *a = &asked->at[w.system];
		struct compare_row r = {.spent_usd = NAN};
		snprintf(r.name, sizeof r.name, "%.100s", a->name);
		if (compare_asks_again(asked, a)) /* another size of it is compared, too */
			snprintf(r.name + strlen(r.name), sizeof r.name - strlen(r.name), "@%lld", (long long)a->gpus);
		snprintf(r.full, sizeof r.full, "%.127s", a->spec.name);
		st = compare_size(c, &solver, a, &r, e);
		c->rows.at[c->rows.n++] = r;
		progress_update((double)(w.system + 1) / (double)asked->n, a->name);
	}
	progress_end();
	return st;
}

/* A config that is wrong on every system says why, as a command that predicts one does. What a budget or a target leads
 * to is an answer. */
static enum status check_any(const struct compare *c, struct error *e)
{
	for (size_t i = 0; i < c->rows.n; i++)
		if (c->mode != COMPARE_GPUS || c->rows.at[i].predicted)
			return ST_OK;
	return error_set(e, ST_INPUT, "%s", c->rows.at[0].reason);
}

static enum status write_all(const struct options *o, const struct compare *c, struct error *e)
{
	struct wrap w;
	enum status st = ST_OK;
	if (!options_take_stdout(o) && !(st = wrap_open(&w, stdout, e)))
		st = wrap_close(&w, report_compare_text(c, w.out, e), e);
	if (!st && o->csv)
		st = report_compare_csv(c, o->csv, e);
	if (!st && o->json)
		st = report_compare_json(c, o->json, e);
	if (!st && o->plot)
		st = report_compare_svg(c, o->plot, e);
	if (!st && o->html)
		st = report_compare_html(c, o->html, e);
	return st;
}

enum status cmd_compare(struct context *x, struct error *e)
{
	const struct options *o = x->options;
	struct compare c = {0};
	asked_systems asked = {0};
	struct config *config = malloc(sizeof *config);
	enum status st = config ? ST_OK : error_nomem(e, "the comparison");
	if (st || (st = source_parse(o, config, e)) ||
		(st = compare_read_systems(o->systems.at, o->systems.n, &asked, e)) ||
		(st = read_question(o, config, &asked, &c, e)) || (st = compare_assumptions(config, &c, e)))
		goto out;
	if (config->cluster.fabric[0])
		log_note("cluster.fabric is left out: each system is taken with its own network");
	if (config->cluster.profile[0])
		log_note("cluster.profile is left out: a measured machine and catalogue machines are priced by "
			 "different rules");
	if ((st = fill(config, &asked, &c, e)) || (st = check_any(&c, e)))
		goto out;
	compare_count(&c);
	if (!(st = compare_rank(&c, e)))
		st = write_all(o, &c, e);
out:
	compare_free(&c);
	vec_free(&asked);
	free(config);
	return st;
}
