#include "sim/fold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/summary.h"
#include "sim/width.h"

#define FOLD_FEW 3
#define FOLD_MORE 5

/* fitting: a program that does not fit is not simulated, and leaves an empty timeline. The timeline is the caller's to free in any case. */
static enum status predict_with(const struct config *c, int64_t micro_batches, const struct machine *m, bool fitting, struct result *out, struct timeline *timeline, struct error *e)
{
	struct config *some = malloc(sizeof *some);
	struct program *p = NULL;
	*timeline = (struct timeline){0};
	if (!some)
		return error_nomem(e, "a prediction");
	*some = *c;
	some->micro_batches = micro_batches;
	enum status st = program_build(some, &p, e);
	if (!st && fitting) {
		*out = (struct result){0};
		st = summary_memory(p, m, out, e);
	}
	if (!st && (!fitting || out->memory.fits))
		st = predict(p, m, out, timeline, e);
	program_destroy(p);
	free(some);
	return st;
}

/* Along the line through two points, a (at 0) and b (at 1). */
static double along(double a, double b, double t)
{
	double x = a + (b - a) * t;
	return x > 0 ? x : 0;
}

/* The parts make the step. Parts of waiting may change places while a pipeline fills (a stage that waited for others comes to wait for its host), and the line of one then ends below 0, where it is cut: what it lacks is the others' of them. */
static void balance(struct breakdown *x)
{
	double *waiting[] = {&x->idle_s, &x->bubble_s, &x->exposed_comm_s};
	double missing_s = x->step_s - (x->compute_s + x->exposed_comm_s + x->copy_s + x->host_s + x->bubble_s + x->optimizer_s + x->idle_s);
	if (missing_s > 0)
		x->idle_s += missing_s;
	for (size_t i = 0; i < sizeof waiting / sizeof waiting[0] && missing_s < 0; i++) {
		double cut_s = fmin(*waiting[i], -missing_s);
		*waiting[i] -= cut_s;
		missing_s += cut_s;
	}
}

static void extend(const struct result *few, const struct result *more, double t, const struct config *config, const struct machine *m, struct result *out)
{
	const struct breakdown *a = &few->time, *b = &more->time;
	struct breakdown *x = &out->time;
	*out = *more;
	x->step_s = along(a->step_s, b->step_s, t);
#define ALONG(field) x->field = along(a->field, b->field, t)
	ALONG(compute_s);
	ALONG(exposed_comm_s);
	ALONG(copy_s);
	ALONG(host_s);
	ALONG(bubble_s);
	ALONG(optimizer_s);
	ALONG(idle_s);
	ALONG(comm_s);
	ALONG(wait_s);
#undef ALONG
	/* A device that is the slower for few micro-batches may be the faster for many: then it waits for the host. */
	out->host_thread_s = along(few->host_thread_s, more->host_thread_s, t);
	x->step_s = fmax(x->step_s, out->host_thread_s);
	balance(x);
	x->overlap = x->comm_s > 0 ? 1 - x->exposed_comm_s / x->comm_s : 1;
	for (int c = 0; c < CLASS_COUNT; c++) {
		x->class_s[c] = along(a->class_s[c], b->class_s[c], t);
		x->class_n[c] = (int64_t)along((double)a->class_n[c], (double)b->class_n[c], t);
	}
	double scale = x->step_s / b->step_s;
	out->interval90_s[0] *= scale;
	out->interval90_s[1] *= scale;
	if (!m->profile && config->train.offload == OFF_NONE) /* with offloading the host's update widens it, by its share of the step */
		published_interval(&config->stack, m, out);
	double rates = (double)b->step_s / x->step_s; /* the rates of `more` count all tokens of the step in its own time */
	out->tokens_per_s *= rates;
	out->tokens_per_s_per_gpu *= rates;
	out->tflops_per_gpu *= rates;
	out->mfu *= rates;
	out->hfu *= rates;
}

struct folds {
	int64_t few, more; /* micro-batches that are simulated; 0: the step as it is */
};

static struct folds folds_of(const struct config *c)
{
	int64_t fill = c->parallel.pipeline > 1 ? (c->parallel.schedule == SCHED_ZBV ? 2 : 1) * c->parallel.pipeline : 0; /* by then every stage is in its steady order */
	int64_t period = c->parallel.pipeline > 1 ? c->parallel.pipeline : FOLD_MORE - FOLD_FEW; /* interleaved schedules repeat with as many micro-batches as there are stages */
	int64_t few = fill + (fill ? period : FOLD_FEW);
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

/* From `large`, the step of folds.more micro-batches, whose memory it has; `actor` ends it, and may not be the one that ends a shorter step. */
static enum status count_rest(const struct config *c, const struct machine *m, struct folds folds, const struct result *large, uint32_t actor, struct result *out, struct error *e)
{
	struct timeline timeline = {0};
	struct result *small = malloc(sizeof *small);
	enum status st = small ? predict_with(c, folds.few, m, false, small, &timeline, e) : error_nomem(e, "a prediction");
	if (!st && !(st = timeline_breakdown(&timeline, actor, &small->time, e)))
		extend(small, large, (double)(c->micro_batches - folds.few) / (double)(folds.more - folds.few), c, m, out);
	timeline_free(&timeline);
	free(small);
	return st;
}

static enum status fold(const struct config *c, const struct machine *m, bool fitting, struct result *out, struct error *e)
{
	const struct folds folds = folds_of(c);
	struct timeline timeline = {0};
	enum status st = fold_check(c, e);
	if (st)
		return st;
	if (folds.more == 0) {
		st = predict_with(c, c->micro_batches, m, fitting, out, &timeline, e);
		timeline_free(&timeline);
		return st;
	}
	struct result *large = malloc(sizeof *large);
	st = large ? predict_with(c, folds.more, m, fitting, large, &timeline, e) : error_nomem(e, "a prediction");
	const uint32_t actor = timeline_critical_actor(&timeline);
	timeline_free(&timeline);
	if (!st)
		*out = *large;
	if (!st && (!fitting || large->memory.fits))
		st = count_rest(c, m, folds, large, actor, out, e);
	free(large);
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
	struct config *some = malloc(sizeof *some);
	struct result *large = malloc(sizeof *large);
	enum status st = some && large ? ST_OK : error_nomem(e, "a prediction");
	if (!st) {
		*some = *c;
		some->micro_batches = folds.more;
		st = program_build(some, program, e);
	}
	if (!st && !(st = predict(*program, m, large, timeline, e))) {
		(*program)->config.micro_batches = c->micro_batches; /* reports say what was asked for */
		st = count_rest(c, m, folds, large, timeline_critical_actor(timeline), out, e);
	}
	if (!st)
		result_warn(out, "a step of %lld micro-batches is long: %lld of them were simulated, and the rest counted; the timeline ends with those", (long long)c->micro_batches, (long long)folds.more);
	free(large);
	free(some);
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
