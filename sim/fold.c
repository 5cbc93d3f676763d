#include "sim/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/summary.h"

#define FOLD_FEW 3
#define FOLD_MORE 5

/* A step of fewer micro-batches. */
struct part {
	struct config config;
	struct program *program;
	struct simulation simulation;
	struct sums sums;
};

static enum status part_build(const struct config *c, int64_t micro_batches, struct part **out, struct error *e)
{
	struct part *x = *out = calloc(1, sizeof *x);
	if (!x)
		return error_nomem(e, "a prediction");
	x->config = *c;
	x->config.micro_batches = micro_batches;
	return program_build(&x->config, &x->program, e);
}

static void part_destroy(struct part *x)
{
	if (!x)
		return;
	sums_free(&x->sums);
	if (x->simulation.p)
		simulation_free(&x->simulation);
	program_destroy(x->program);
	free(x);
}

struct folds {
	int64_t few, more; /* micro-batches that are simulated; 0: the step as it is */
};

/* Micro-batches that were loaded before the step: only after them does the loader show. Where they are so many that a step of fewer is not much shorter, it is the loader's time that counts (sim/sums.h). */
#define LOADED_MOST 64

static int64_t waits_for_data(const struct config *c)
{
	const int64_t ahead = c->data.load_time_s > 0 ? program_loads_ahead(c) : 0;
	return ahead < c->micro_batches && ahead <= LOADED_MOST ? ahead : 0;
}

static struct folds folds_of(const struct config *c)
{
	const int64_t rounds = (c->parallel.schedule == SCHED_ZBV ? 2 : 1) * (c->parallel.virtual_stages > 1 ? 2 : 1); /* by then every stage is in its steady order, and waits as in a steady one */
	int64_t fill = c->parallel.pipeline > 1 ? rounds * c->parallel.pipeline : 0;
	int64_t period = c->parallel.pipeline > 1 ? c->parallel.pipeline : FOLD_MORE - FOLD_FEW; /* interleaved schedules repeat with as many micro-batches as there are stages */
	fill += waits_for_data(c);
	int64_t few = fill + (c->parallel.pipeline > 1 ? period : FOLD_FEW);
	few += (c->micro_batches - few) % period; /* what is counted must be whole periods */
	const bool all_in_flight = c->parallel.pipeline > 1 && c->parallel.schedule == SCHED_GPIPE; /* memory depends on their number */
	return c->micro_batches <= few + period || all_in_flight ? (struct folds){0, 0} : (struct folds){few, few + period};
}

enum status fold_check(const struct config *c, struct error *e)
{
	if (!fold_is_long(c) || c->parallel.pipeline == 1 || c->parallel.schedule != SCHED_GPIPE)
		return ST_OK;
	error_set(e, ST_INPUT, "gpipe keeps %lld micro-batches of %lld layers in flight, too many to be simulated (parallel.schedule 1f1b does not)", (long long)c->micro_batches, (long long)c->model.layers);
	return config_blame_batch(c, e);
}

/* The role that ends last once all micro-batches are counted: it may not be the one that ends a shorter step. */
static enum status find_last(const struct part *few, const struct part *more, double t, uint32_t *actor, struct error *e)
{
	const struct timeline *a = &few->simulation.timeline, *b = &more->simulation.timeline;
	double *end_s = calloc(2 * (size_t)a->actors + 1, sizeof *end_s), latest_s = -1;
	if (!end_s)
		return error_nomem(e, "a prediction");
	for (size_t i = 0; i < a->spans.n; i++)
		end_s[a->spans.at[i].actor] = fmax(end_s[a->spans.at[i].actor], (double)a->spans.at[i].end_ps);
	for (size_t i = 0; i < b->spans.n; i++)
		end_s[a->actors + b->spans.at[i].actor] = fmax(end_s[a->actors + b->spans.at[i].actor], (double)b->spans.at[i].end_ps);
	for (uint32_t r = 0; r < a->actors; r++) {
		const double here_s = end_s[r] + (end_s[a->actors + r] - end_s[r]) * t;
		*actor = here_s > latest_s ? r : *actor;
		latest_s = fmax(latest_s, here_s);
	}
	free(end_s);
	return ST_OK;
}

static double line_to(const struct config *c, struct folds folds)
{
	return (double)(c->micro_batches - folds.few) / (double)(folds.more - folds.few);
}

/* few, more: simulated. */
static enum status count_rest(const struct config *c, const struct machine *m, struct folds folds, struct part *few, struct part *more, struct result *out, struct error *e)
{
	const double t = line_to(c, folds);
	uint32_t actor = 0;
	enum status st = find_last(few, more, t, &actor, e);
	if (st || (st = simulation_sums(&few->simulation, actor, &few->sums, e)) || (st = simulation_sums(&more->simulation, actor, &more->sums, e)))
		return st;
	sums_extend(&few->sums, &more->sums, t);
	summarize(&few->sums, few->program, m, out); /* whose ops the sums name */
	return ST_OK;
}

/* Of a step that is simulated as it is. */
static enum status sum_whole(struct part *whole, const struct machine *m, struct result *out, struct error *e)
{
	enum status st = simulation_sums(&whole->simulation, timeline_critical_actor(&whole->simulation.timeline), &whole->sums, e);
	if (!st)
		summarize(&whole->sums, whole->program, m, out);
	return st;
}

/* Whether it fits; out->memory is filled. The parts' memory stays in their sums. */
static enum status find_memory(const struct config *c, const struct machine *m, struct folds folds, struct part *few, struct part *more, struct result *out, struct error *e)
{
	enum status st = sums_of_memory(more->program, m, &more->sums, e);
	*out = (struct result){.verified = -1};
	if (!st && !few)
		summary_memory(&more->sums, more->program, m, out);
	if (st || !few || (st = sums_of_memory(few->program, m, &few->sums, e)))
		return st;
	struct sums all = few->sums;
	all.roles = malloc((all.n_roles + 1) * sizeof *all.roles);
	if (!all.roles)
		return error_nomem(e, "the stages");
	memcpy(all.roles, few->sums.roles, all.n_roles * sizeof *all.roles);
	sums_extend(&all, &more->sums, line_to(c, folds));
	summary_memory(&all, more->program, m, out);
	free(all.roles);
	return ST_OK;
}

/* fitting: a program that does not fit is not simulated. */
static enum status fold(const struct config *c, const struct machine *m, bool fitting, struct result *out, struct error *e)
{
	const struct folds folds = folds_of(c);
	struct part *few = NULL, *more = NULL;
	enum status st = fold_check(c, e);
	if (!st)
		st = part_build(c, folds.more > 0 ? folds.more : c->micro_batches, &more, e);
	if (!st && folds.more > 0)
		st = part_build(c, folds.few, &few, e);
	if (!st && fitting)
		st = find_memory(c, m, folds, few, more, out, e);
	if (st || (fitting && !out->memory.fits))
		goto out;
	if (!(st = simulation_run(more->program, m, &more->simulation, e)) && few)
		st = simulation_run(few->program, m, &few->simulation, e);
	if (!st)
		st = few ? count_rest(c, m, folds, few, more, out, e) : sum_whole(more, m, out, e);
out:
	part_destroy(few);
	part_destroy(more);
	return st;
}

enum status predict_folded(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	return fold(c, m, false, out, e);
}

enum status predict_fitting(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	return fold(c, m, true, out, e);
}

double fold_blocks(const struct config *c)
{
	const struct folds folds = folds_of(c);
	return (double)c->model.layers * (double)(folds.more == 0 ? c->micro_batches : folds.few + folds.more);
}

/* ---- long steps ---- */

#define LONG_BLOCKS 40000

bool fold_is_long(const struct config *c)
{
	return (double)c->model.layers * (double)c->micro_batches > LONG_BLOCKS;
}

static enum status predict_long(const struct config *c, const struct machine *m, struct program **program, struct result *out, struct timeline *timeline, struct error *e)
{
	const struct folds folds = folds_of(c);
	struct part *few = NULL, *more = NULL;
	enum status st = part_build(c, folds.few, &few, e);
	if (!st)
		st = part_build(c, folds.more, &more, e);
	if (!st && !(st = simulation_run(more->program, m, &more->simulation, e)) && !(st = simulation_run(few->program, m, &few->simulation, e)) && !(st = count_rest(c, m, folds, few, more, out, e))) {
		result_warn(out, "a step of %lld micro-batches is long: %lld of them were simulated, and the rest counted; the timeline ends with those", (long long)c->micro_batches, (long long)folds.more);
		*timeline = more->simulation.timeline;
		more->simulation.timeline = (struct timeline){0};
		more->program->config.micro_batches = c->micro_batches; /* reports say what was asked for */
		*program = more->program;
		simulation_free(&more->simulation);
		more->program = NULL;
	}
	part_destroy(few);
	part_destroy(more);
	return st;
}

int64_t fold_simulated(const struct config *c)
{
	const struct folds folds = folds_of(c);
	return fold_is_long(c) && folds.more > 0 ? folds.more : c->micro_batches;
}

enum status predict_step(const struct config *c, const struct machine *m, struct program **program, struct result *out, struct timeline *timeline, struct error *e)
{
	enum status st = fold_check(c, e);
	if (!st && fold_simulated(c) < c->micro_batches)
		return predict_long(c, m, program, out, timeline, e);
	if (!st)
		st = program_build(c, program, e);
	return st ? st : predict(*program, m, out, timeline, e);
}

enum status predict_result(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	struct program *program = NULL;
	struct timeline timeline = {0};
	enum status st = predict_step(c, m, &program, out, &timeline, e);
	timeline_free(&timeline);
	program_destroy(program);
	return st;
}
