#include "sim/engine/sums.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "sim/price/price.h"
#include "sim/engine/predict.h"
#include "sim/engine/summary.h"
#include "step/layout.h"

void sums_free(struct sums *s)
{
	vec_free(&s->guessed);
	free(s->roles);
	*s = (struct sums){0};
}

/* ---- of a program ---- */

static enum status role_memory(const struct program *p, const struct role *role, const struct machine *m,
	struct role_sums *out, struct error *e)
{
	struct layout l;
	enum status st = layout_peak(role, &l, e);
	if (st)
		return st;
	struct result_memory *mem = &out->memory;
	summary_overhead(&p->config, &p->mesh, m, mem);
	mem->weights_B = l.peak_component_B[COMP_WEIGHTS];
	mem->gradients_B = l.peak_component_B[COMP_GRADIENTS];
	mem->optimizer_B = l.peak_component_B[COMP_OPTIMIZER];
	mem->activations_B = l.peak_component_B[COMP_ACTIVATIONS];
	mem->buffers_B = l.peak_component_B[COMP_BUFFERS];
	mem->first_B = l.peak_B;
	mem->total_B = l.peak_B + mem->overhead_B;
	out->inputs_B = role->input_stride_B * (uint64_t)p->config.micro_batches;
	out->host_B = l.host_B;
	layout_free(&l);
	return ST_OK;
}

enum status sums_of_memory(const struct program *p, const struct machine *m, struct sums *out, struct error *e)
{
	*out = (struct sums){.roles = calloc(p->n_roles + 1, sizeof *out->roles), .n_roles = p->n_roles};
	enum status st = out->roles ? ST_OK : error_nomem(e, "the stages");
	for (size_t r = 0; r < p->n_roles && !st; r++)
		st = role_memory(p, &p->roles[r], m, &out->roles[r], e);
	return st;
}

/* ---- of its timeline ---- */

static double lasts_s(const struct span *s) { return (double)(s->end_ps - s->start_ps) * 1e-12; }

static enum status add_guessed(struct sums *out, const struct prices *prices, const struct span *s, bool *known,
	struct error *e)
{
	const uint32_t price = prices->of_op[prices->first_op[s->actor] + s->op];
	if (!prices->different.at[price].guessed || known[price])
		return ST_OK;
	known[price] = true;
	return vec_push(&out->guessed, s->op) ? ST_OK : error_nomem(e, "the prices");
}

static enum status add_spans(const struct prices *prices, const struct timeline *t, struct sums *out, struct error *e)
{
	enum status st = ST_OK;
	bool *known = calloc(prices->different.n + 1, sizeof *known);
	if (!known)
		return error_nomem(e, "the prices");
	for (size_t i = 0; i < t->spans.n && !st; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->lane == LANE_COMPUTE && s->phase != PHASE_OPTIMIZER)
			out->roles[s->actor].busy_s += lasts_s(s);
		if (s->actor != out->actor)
			continue;
		const struct op_cost *c = price_of(prices, s->actor, s->op);
		const double moving_s = (double)(s->end_ps - s->move_ps) * 1e-12;
		out->by_bound_s[s->class_][c->bound] += moving_s;
		out->sigma_s[s->class_] += c->rel_sigma * moving_s;
		out->capped_s += c->capped > 0 ? moving_s : 0;
		out->at_burst_s += c->capped * moving_s;
		if (s->lane == LANE_HOST && s->class_ == CLASS_OPTIMIZER)
			out->host_update_s += lasts_s(s);
		st = add_guessed(out, prices, s, known, e);
	}
	free(known);
	return st;
}

enum status sums_of(const struct simulation *s, uint32_t actor, struct sums *out, struct error *e)
{
	const struct role *role = &s->p->roles[actor];
	const struct prices *prices = s->prices;
	const struct timeline *t = &s->timeline;
	enum status st = out->roles ? ST_OK : sums_of_memory(s->p, s->rates->machine, out, e);
	out->actor = actor;
	out->host_thread_s = s->host_thread_s;
	if (st || (st = timeline_breakdown(t, actor, &out->time, e)) || (st = add_spans(prices, t, out, e)))
		return st;
	for (size_t i = 0; i < role->ops.n; i++) {
		const struct op_cost *c = price_of(prices, actor, i);
		out->launching_s += c->issue_s;
		out->loading_s += role->ops.at[i].lane == LANE_LOAD ? c->alone_s : 0;
	}
	out->host_cause = timeline_host_cause(t, role, actor);
	return ST_OK;
}

/* ---- along the line ---- */

static double along(double a, double b, double t)
{
	double x = a + (b - a) * t;
	return x > 0 ? x : 0;
}

/* Moves along the line as `along` does; t is a whole number. */
static uint64_t along_B(uint64_t a, uint64_t b, double t)
{
	int64_t x = (int64_t)a + ((int64_t)b - (int64_t)a) * (int64_t)t;
	return x > 0 ? (uint64_t)x : 0;
}

/* Makes the parts add up to the step. Parts of waiting may change places while a pipeline fills: a stage that waited
 * for others comes to wait for its host. The line of one then ends below 0, where it is cut, and the other parts of
 * waiting give up the difference. */
static void balance(struct breakdown *x, bool loads)
{
	double *waiting[] = {&x->idle_s, &x->bubble_s, &x->exposed_comm_s};
	double missing_s = x->step_s - (x->compute_s + x->exposed_comm_s + x->copy_s + x->host_s + x->bubble_s +
					       x->optimizer_s + x->idle_s);
	if (missing_s > 0)
		*(loads ? &x->host_s : &x->idle_s) += missing_s;
	for (size_t i = 0; i < COUNT(waiting) && missing_s < 0; i++) {
		double cut_s = fmin(*waiting[i], -missing_s);
		*waiting[i] -= cut_s;
		missing_s += cut_s;
	}
	x->step_s -= fmin(0, missing_s); /* the working parts alone take longer */
}

/* The memory of a steady step does not grow with its micro-batches, but for inputs that were copied and wait. */
static void extend_memory(struct role_sums *a, const struct role_sums *b, double t)
{
	const uint64_t grown_B = b->memory.buffers_B > a->memory.buffers_B ? b->memory.buffers_B - a->memory.buffers_B
	                                                                   : 0,
		       most_B = b->inputs_B - a->inputs_B;
	const uint64_t further_B = (grown_B < most_B ? grown_B : most_B) * (uint64_t)(t - 1);
	a->memory = b->memory;
	a->memory.buffers_B += further_B;
	a->memory.first_B += further_B;
	a->memory.total_B += further_B;
	a->host_B = along_B(a->host_B, b->host_B, t);
	a->busy_s = along(a->busy_s, b->busy_s, t);
}

void sums_extend(struct sums *s, const struct sums *more, double t)
{
	struct breakdown *x = &s->time;
#define ALONG(field) s->field = along(s->field, more->field, t)
	ALONG(time.step_s);
	ALONG(time.compute_s);
	ALONG(time.exposed_comm_s);
	ALONG(time.copy_s);
	ALONG(time.host_s);
	ALONG(time.bubble_s);
	ALONG(time.optimizer_s);
	ALONG(time.idle_s);
	ALONG(time.comm_s);
	ALONG(time.wait_s);
	ALONG(capped_s);
	ALONG(at_burst_s);
	ALONG(launching_s);
	ALONG(host_update_s);
	ALONG(loading_s);
	ALONG(host_thread_s);
	for (int c = 0; c < CLASS_COUNT; c++) {
		ALONG(time.class_s[c]);
		ALONG(sigma_s[c]);
		x->class_n[c] = (int64_t)along_B((uint64_t)x->class_n[c], (uint64_t)more->time.class_n[c], t);
		for (int b = 0; b < BOUND_COUNT; b++)
			ALONG(by_bound_s[c][b]);
	}
#undef ALONG
	for (size_t r = 0; r < s->n_roles; r++)
		extend_memory(&s->roles[r], &more->roles[r], t);
	s->host_cause = more->host_cause;
	/* A device that is slower than the host thread or the loader for few micro-batches may be faster for many. Then
	 * it waits for them. */
	x->step_s = fmax(x->step_s, fmax(s->host_thread_s, s->loading_s));
	balance(x, s->loading_s > s->host_thread_s);
	x->comm_s = fmax(x->comm_s, x->exposed_comm_s);
	x->overlap = x->comm_s > 0 ? 1 - x->exposed_comm_s / x->comm_s : 1;
}
