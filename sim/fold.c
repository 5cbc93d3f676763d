#include "sim/fold.h"

#include <stdlib.h>
#include <string.h>

#include "sim/width.h"

#define FOLD_FEW 3
#define FOLD_MORE 5

static enum status predict_with(const struct config *c, int64_t micro_batches, const struct machine *m, struct result *out, struct error *e)
{
	struct config *some = malloc(sizeof *some);
	struct program *p = NULL;
	struct timeline timeline = {0};
	if (!some)
		return error_nomem(e, "a prediction");
	*some = *c;
	some->micro_batches = micro_batches;
	enum status st = program_build(some, &p, e);
	if (!st)
		st = predict(p, m, out, &timeline, e);
	timeline_free(&timeline);
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

static void extend(const struct result *few, const struct result *more, double t, const struct stack *stack, const struct machine *m, struct result *out)
{
	const struct breakdown *a = &few->time, *b = &more->time;
	struct breakdown *x = &out->time;
	*out = *more;
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
	double work_s = x->compute_s + x->exposed_comm_s + x->copy_s + x->host_s + x->bubble_s + x->optimizer_s + x->idle_s, host_s = along(few->host_thread_s, more->host_thread_s, t);
	x->idle_s += host_s > work_s ? host_s - work_s : 0;
	x->step_s = x->compute_s + x->exposed_comm_s + x->copy_s + x->host_s + x->bubble_s + x->optimizer_s + x->idle_s;
	x->overlap = x->comm_s > 0 ? 1 - x->exposed_comm_s / x->comm_s : 1;
	for (int c = 0; c < CLASS_COUNT; c++) {
		x->class_s[c] = along(a->class_s[c], b->class_s[c], t);
		x->class_n[c] = (int64_t)along((double)a->class_n[c], (double)b->class_n[c], t);
	}
	out->host_thread_s = host_s;
	double scale = x->step_s / b->step_s;
	out->interval90_s[0] *= scale;
	out->interval90_s[1] *= scale;
	if (!m->profile)
		published_interval(stack, m, out);
	double rates = (double)b->step_s / x->step_s; /* the rates of `more` count all tokens of the step in its own time */
	out->tokens_per_s *= rates;
	out->tokens_per_s_per_gpu *= rates;
	out->tflops_per_gpu *= rates;
	out->mfu *= rates;
	out->hfu *= rates;
}

enum status predict_folded(const struct config *c, const struct machine *m, struct result *out, struct error *e)
{
	int64_t fill = c->parallel.pipeline > 1 ? c->parallel.pipeline : 0; /* by then every stage is in its steady order */
	int64_t period = c->parallel.pipeline > 1 ? c->parallel.pipeline : FOLD_MORE - FOLD_FEW; /* interleaved schedules repeat with as many micro-batches as there are stages */
	int64_t few = fill + (fill ? period : FOLD_FEW), more = few + period;
	/* what is counted must be whole periods */
	few += (c->micro_batches - few) % period;
	more = few + period;
	const bool all_in_flight = c->parallel.pipeline > 1 && c->parallel.schedule == SCHED_GPIPE; /* memory depends on their number */
	if (c->micro_batches <= more || all_in_flight)
		return predict_with(c, c->micro_batches, m, out, e);
	struct result *small = malloc(sizeof *small), *large = malloc(sizeof *large);
	enum status st = small && large ? ST_OK : error_nomem(e, "a prediction");
	if (!st && !(st = predict_with(c, few, m, small, e)) && !(st = predict_with(c, more, m, large, e)))
		extend(small, large, (double)(c->micro_batches - few) / (double)(more - few), &c->stack, m, out);
	free(small);
	free(large);
	return st;
}
