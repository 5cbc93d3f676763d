#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "sim/advise/advise.h"
#include "sim/price/rates.h"

#define CHANGE 0.1
/* So much faster that what is left of a time is nothing, and no rate overflows. */
#define BOUNDLESS 1e6

/* A row of the table is a what_if: which of its factors, and what they are set to. */
struct part {
	const char *what, *change;
	size_t factor; /* offset in struct what_if */
	bool rate;     /* else a time */
	enum { ALWAYS, MANY_RANKS, MANY_RANKS_OF_A_NODE, MANY_NODES } where;
};

static const struct part parts[] = {
	{"compute rate", "+10 %", offsetof(struct what_if, compute), true, ALWAYS},
	{"memory bandwidth", "+10 %", offsetof(struct what_if, memory), true, ALWAYS},
	{"bandwidth inside a node", "+10 %", offsetof(struct what_if, inside), true, MANY_RANKS_OF_A_NODE},
	{"network bandwidth", "+10 %", offsetof(struct what_if, network), true, MANY_NODES},
	{"latency of communication", "-10 %", offsetof(struct what_if, latency), false, MANY_RANKS},
	{"kernel launches", "-10 %", offsetof(struct what_if, launch), false, ALWAYS},
};

static bool is_there(const struct part *x, const struct program *p, const struct machine *m)
{
	switch (x->where) {
	case MANY_RANKS: return p->mesh.ranks > 1;
	case MANY_RANKS_OF_A_NODE: return p->mesh.ranks > 1 && m->devices_per_node > 1;
	case MANY_NODES: return m->nodes > 1;
	default: return true;
	}
}

static enum status step_if(const struct program *p, const struct machine *m, const struct what_if *w, double *out,
	struct error *e)
{
	const struct rates changed = rates_what_if(m, w);
	struct timeline t = {0};
	double host_s;
	enum status st = predict_timeline(p, &changed, NULL, &t, &host_s, e);
	*out = (double)t.step_ps * 1e-12;
	timeline_free(&t);
	return st;
}

static struct what_if one(size_t factor, double value)
{
	struct what_if w = {0};
	*(double *)(void *)((char *)&w + factor) = value;
	return w;
}

/* With the first-order change d ln(rate) of a tenth: a step that is all one rate has 1. */
static struct sensitivity row_of(const char *what, const char *change, bool rate, double step_s, double changed_s,
	double limit_s)
{
	const double share = (step_s - changed_s) / step_s;
	return (struct sensitivity){what, change, step_s - changed_s, share / (rate ? 1 - 1 / (1 + CHANGE) : CHANGE),
		limit_s};
}

static enum status loader_row(const struct program *p, const struct machine *m, double step_s, struct advice *out,
	struct error *e)
{
	struct program *q = malloc(sizeof *q);
	const struct what_if as_it_is = {0};
	double changed_s, limit_s;
	if (!q)
		return error_nomem(e, "a prediction");
	*q = *p; /* borrows its ops */
	q->config.data.load_time_s *= 1 - CHANGE;
	enum status st = step_if(q, m, &as_it_is, &changed_s, e);
	q->config.data.load_time_s = p->config.data.load_time_s / BOUNDLESS;
	if (!st && !(st = step_if(q, m, &as_it_is, &limit_s, e)))
		out->sensitivity[out->n_sensitivity++] = row_of("data loading", "-10 %", false, step_s, changed_s,
			limit_s);
	free(q);
	return st;
}

enum status sensitivities(const struct program *p, const struct machine *m, double step_s, struct advice *out,
	struct error *e)
{
	enum status st = ST_OK;
	double changed_s, limit_s;
	out->n_sensitivity = 0;
	for (size_t i = 0; i < COUNT(parts) && !st; i++) {
		const struct part *x = &parts[i];
		if (!is_there(x, p, m))
			continue;
		const struct what_if little = one(x->factor, x->rate ? 1 + CHANGE : 1 - CHANGE),
				     all = one(x->factor, x->rate ? BOUNDLESS : 1 / BOUNDLESS);
		if (!(st = step_if(p, m, &little, &changed_s, e)) && !(st = step_if(p, m, &all, &limit_s, e)))
			out->sensitivity[out->n_sensitivity++] = row_of(x->what, x->change, x->rate, step_s, changed_s,
				limit_s);
	}
	if (!st && p->config.data.load_time_s > 0)
		st = loader_row(p, m, step_s, out, e);
	const struct what_if no_comm = {.inside = BOUNDLESS, .network = BOUNDLESS, .latency = 1 / BOUNDLESS};
	if (!st && p->mesh.ranks > 1 && !(st = step_if(p, m, &no_comm, &limit_s, e)))
		out->sensitivity[out->n_sensitivity++] = (struct sensitivity){"all communication", "none", NAN, NAN,
			limit_s};
	return st;
}
