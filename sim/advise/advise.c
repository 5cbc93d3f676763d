#include "sim/advise/advise.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/threads.h"
#include "base/vec.h"
#include "sim/search/evaluate.h"
#include "sim/engine/fold.h"
#include "sim/advise/levers.h"

struct trial {
	struct advice_row row;
	size_t lever;
	int variant;
	struct config *config; /* owned, resolved */
	bool wanted;           /* for the symptom that there is */
	bool known, fits;      /* the row's step and memory are */
	struct error error;    /* why it could not be predicted, but for a plan that is wrong */
};

struct advisor {
	const struct advise_case *a;
	struct advice *out;
	VEC(struct trial) trials;
	struct trial **chosen; /* those that are predicted in full, in order */
	size_t n_chosen;
	int64_t ops; /* of the program there is */
};

/* ---- diagnosis ---- */

static enum symptom of_compute(const struct program *p, const struct machine *m, const struct result *r)
{
	double memory_s = 0, matrix_s = 0;
	for (int c = 0; c < CLASS_COUNT; c++) {
		if (op_class_is_comm((enum op_class)c) || c == CLASS_HOST || c == CLASS_COPY)
			continue;
		*(r->class_bound[c] == BOUND_MEMORY ? &memory_s : &matrix_s) += r->time.class_s[c];
	}
	const double half = fmax(m->device.matrix_flop_per_s[DT_BF16], m->device.matrix_flop_per_s[DT_FP16]),
		     now = m->device.matrix_flop_per_s[p->config.train.dtype];
	if (memory_s > matrix_s)
		return SYMPTOM_MEMORY;
	return half > now ? SYMPTOM_DTYPE : SYMPTOM_COMPUTE;
}

enum symptom diagnose(const struct program *p, const struct machine *m, const struct result *r)
{
	const struct breakdown *t = &r->time;
	const bool loads = p->config.data.load_time_s > 0,
		   drains = p->config.train.sync_every > 0 || p->config.train.launch_blocking ||
	                    p->config.train.expert_loop,
		   launching = r->host_thread_s > m->parameters->step.launch_bound * t->step_s;
	const struct {
		enum symptom symptom;
		double s;
	} parts[] = {
		{SYMPTOM_DATA, loads ? t->host_s + t->idle_s + t->copy_s : t->copy_s},
		{SYMPTOM_SYNC, !loads && drains ? t->host_s + t->idle_s : 0},
		{SYMPTOM_LAUNCH, !loads && !drains && launching ? t->idle_s : 0},
		{SYMPTOM_COMM, t->exposed_comm_s},
		{SYMPTOM_BUBBLE, t->bubble_s},
	};
	size_t most = 0;
	for (size_t i = 1; i < COUNT(parts); i++)
		most = parts[i].s > parts[most].s ? i : most;
	return parts[most].s > m->parameters->advise.symptom * t->step_s ? parts[most].symptom : of_compute(p, m, r);
}

/* ---- the changes ---- */

static bool same(const struct config *a, const struct config *b)
{
	return memcmp(a, b, offsetof(struct config, origin)) == 0; /* what comes behind is for messages */
}

/* Loads the config as the command line would: the file, its own --set texts, then the row's. *out is NULL where that is
 * refused, or changes nothing. */
static enum status load_change(const struct advise_case *a, const struct advice_row *row, struct config **out,
	struct error *e)
{
	const struct config *base = &a->program->config;
	const char **sets = calloc(a->n_sets + ADVICE_SETS, sizeof *sets);
	struct config *c = malloc(sizeof *c);
	struct error refused = {0};
	*out = NULL;
	if (!sets || !c) {
		free(sets);
		free(c);
		return error_nomem(e, "advice");
	}
	for (size_t i = 0; i < a->n_sets; i++)
		sets[i] = a->sets[i];
	for (size_t i = 0; i < row->n_sets; i++)
		sets[a->n_sets + i] = row->set[i];
	enum status st = config_read(a->reader, sets, a->n_sets + row->n_sets, c, &refused);
	c->cluster.nodes = base->cluster.nodes; /* what a system's file or line says */
	c->node_ranks = base->node_ranks;
	c->executed = base->executed;
	if (!st)
		st = config_resolve(c, base->ranks, &refused);
	free(sets);
	if (!st && !same(c, base)) {
		*out = c;
		return ST_OK;
	}
	free(c);
	return !st || st == ST_INPUT ? ST_OK : error_set(e, st, "%s", refused.text);
}

static void drop_set(struct advice_row *row, size_t i)
{
	memmove(row->set[i], row->set[i + 1], (row->n_sets - i - 1) * sizeof row->set[0]);
	row->n_sets--;
}

/* Takes out the texts that the config, or another text of the row, says already. */
static enum status drop_idle_sets(const struct advise_case *a, struct advice_row *row, const struct config *changed,
	struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = row->n_sets; i-- > 0 && row->n_sets > 1 && !st;) {
		struct advice_row less = *row;
		struct config *c;
		drop_set(&less, i);
		st = load_change(a, &less, &c, e);
		if (!st && c && same(c, changed))
			*row = less;
		free(c);
	}
	return st;
}

/* True where another lever led to the same config. */
static bool is_known(const struct advisor *v, const struct config *c)
{
	for (size_t i = 0; i < v->trials.n; i++)
		if (same(v->trials.at[i].config, c))
			return true;
	return false;
}

static enum status collect_lever(struct advisor *v, const struct lever_case *k, size_t lever, struct error *e)
{
	const struct lever *l = &levers[lever];
	const bool wanted = l->symptoms & (v->out->fits ? 1u << v->out->symptom : LEVER_FITS);
	for (int i = 0;; i++) {
		struct trial t = {.lever = lever,
			.variant = i,
			.wanted = wanted,
			.row = {.what = l->what, .stage = l->stage}};
		if (!lever_variant(l, k, i, &t.row))
			return ST_OK;
		enum status st = load_change(v->a, &t.row, &t.config, e);
		const bool fresh = !st && t.config && !is_known(v, t.config);
		if (fresh)
			st = drop_idle_sets(v->a, &t.row, t.config, e);
		if (fresh && !st && vec_push(&v->trials, t))
			t.config = NULL;
		else if (fresh && !st)
			st = error_nomem(e, "advice");
		free(t.config);
		if (st)
			return st;
	}
}

static enum status collect(struct advisor *v, struct error *e)
{
	const struct config *c = &v->a->program->config;
	const struct lever_case k = {.c = c,
		.m = v->a->machine,
		.fits = v->out->fits,
		.mesh_is_free = strcmp(c->cluster.system, "auto") != 0};
	enum status st = ST_OK;
	for (size_t i = 0; i < n_levers && !st; i++)
		st = collect_lever(v, &k, i, e);
	return st;
}

/* ---- their steps ---- */

/* Returns the ops of a trial's program, in proportion to its micro-batches: layers and micro-batches make nearly all
 * ops. */
static int64_t cost_ops(const struct advisor *v, const struct trial *t)
{
	return (int64_t)((double)v->ops * (double)fold_simulated(t->config) /
			 (double)fold_simulated(&v->a->program->config));
}

/* A trial that does not fit has no row, and its step is of no interest. */
static void predict_trial(const struct advisor *v, struct trial *t)
{
	struct result *r = malloc(sizeof *r);
	enum status st = r ? fold_result_fitting(t->config, v->a->machine, r, &t->error)
	                   : error_nomem(&t->error, "advice");
	t->known = !st;
	t->fits = !st && r->memory.fits;
	t->row.estimated = false;
	if (t->fits) {
		t->row.step_s = r->time.step_s;
		t->row.memory_B = r->memory.total_B;
	}
	if (st == ST_INPUT)
		t->error = (struct error){0};
	free(r);
}

/* Estimates the trials that fold. Where the present plan folds too, estimates are scaled by its prediction. */
static enum status estimate(struct advisor *v, struct error *e)
{
	const struct advise_case *a = v->a;
	struct evaluator *plans = NULL;
	struct evaluation base, x;
	enum status st = evaluator_create(a->machine, &plans, e);
	if (st)
		return st;
	evaluator_only_fold(plans);
	st = evaluate_plan(plans, &a->program->config, a->program->config.ranks, &base, e);
	const double step_s = a->predicted->time.step_s, scale = !st && base.folded ? step_s / base.step_s : 1;
	for (size_t i = 0; i < v->trials.n && !st; i++) {
		struct trial *t = &v->trials.at[i];
		struct error refused = {0};
		enum status one = evaluate_plan(plans, t->config, t->config->ranks, &x, &refused);
		if (one && one != ST_INPUT)
			st = error_set(e, one, "%s", refused.text);
		if (one || !x.folded)
			continue;
		t->row.step_s = scale * x.step_s;
		t->row.memory_B = x.memory_B;
		t->row.estimated = t->known = t->fits = true;
	}
	evaluator_destroy(plans);
	return st;
}

/* ---- what is worth a line ---- */

static double saves_s(const struct advisor *v, const struct trial *t)
{
	return v->a->predicted->time.step_s - t->row.step_s;
}

/* Orders trials: known ones first, the fastest first. Of the others, levers for the symptom come first, and each
 * lever's mildest variant before its next ones. */
static int by_promise(const void *a, const void *b)
{
	const struct trial *x = *(const struct trial *const *)a, *y = *(const struct trial *const *)b;
	if (x->known != y->known)
		return x->known ? -1 : 1;
	if (x->known && x->row.step_s != y->row.step_s)
		return x->row.step_s < y->row.step_s ? -1 : 1;
	if (x->wanted != y->wanted)
		return x->wanted ? -1 : 1;
	if (x->variant != y->variant)
		return x->variant < y->variant ? -1 : 1;
	return x->lever < y->lever ? -1 : x->lever > y->lever;
}

static int by_step(const void *a, const void *b)
{
	const struct advice_row *x = a, *y = b;
	if (x->step_s != y->step_s)
		return x->step_s < y->step_s ? -1 : 1;
	return x->stage < y->stage ? -1 : x->stage > y->stage ? 1 : strcmp(x->set[0], y->set[0]);
}

/* Picks of each lever's variants the mildest that no other beats by more than noise. */
static void pick(struct advisor *v)
{
	const struct parameters *k = v->a->machine->parameters;
	const double noise_s = k->advise.least_saving * v->a->predicted->time.step_s;
	struct advice *out = v->out;
	for (size_t l = 0; l < n_levers; l++) {
		const struct trial *best = NULL;
		for (size_t i = 0; i < v->trials.n; i++) {
			const struct trial *t = &v->trials.at[i];
			if (t->lever == l && t->known && t->fits &&
				(!best || t->row.step_s < best->row.step_s - noise_s))
				best = t;
		}
		const double least_s = best && best->row.estimated
		                               ? k->advise.least_estimate / k->advise.least_saving * noise_s
		                               : noise_s;
		if (!best || (out->fits && saves_s(v, best) < least_s) || out->n == ADVICE_ROWS)
			continue;
		out->row[out->n] = best->row;
		out->row[out->n++].saves_s = saves_s(v, best);
	}
	qsort(out->row, out->n, sizeof *out->row, by_step);
}

/* Chooses the trials that are predicted in full, as far as the budget goes. `left`: its ops. */
static void choose(struct advisor *v, struct trial *const *order, int64_t left)
{
	const double least_s = v->a->machine->parameters->advise.least_saving * v->a->predicted->time.step_s;
	for (size_t i = 0; i < v->trials.n; i++) {
		struct trial *t = order[i];
		const int64_t ops = cost_ops(v, t);
		const bool promises = !t->known || !v->out->fits || saves_s(v, t) > least_s,
			   room = promises && ops <= left;
		*(t->known || room ? &v->out->tried : &v->out->untried) += 1;
		if (!room)
			continue;
		left -= ops;
		v->chosen[v->n_chosen++] = t;
	}
}

static void predict_chosen(void *advisor, int thread, size_t i)
{
	struct advisor *v = advisor;
	(void)thread;
	progress_update((double)i / (double)v->n_chosen, NULL);
	predict_trial(v, v->chosen[i]);
}

/* Predicts the chosen trials on as many cores as keep the programs that exist at once below a usual budget's ops. */
static enum status predict_all(struct advisor *v, struct error *e)
{
	const int64_t programs = ADVICE_BUDGET_OPS / (v->ops + 1), cores = threads_here();
	progress_begin("looking for what would shorten the step");
	threads_run((int)(programs < cores ? programs : cores), v->n_chosen, predict_chosen, v);
	progress_end();
	for (size_t i = 0; i < v->n_chosen; i++)
		if (v->chosen[i]->error.status)
			return error_set(e, v->chosen[i]->error.status, "%s", v->chosen[i]->error.text);
	return ST_OK;
}

static enum status try_all(struct advisor *v, struct error *e)
{
	int64_t total = 0;
	for (size_t i = 0; i < v->trials.n; i++)
		total += cost_ops(v, &v->trials.at[i]);
	const bool scarce = total > v->a->budget_ops;
	struct trial **order = malloc((v->trials.n + 1) * sizeof *order);
	v->chosen = malloc((v->trials.n + 1) * sizeof *v->chosen);
	enum status st = order && v->chosen ? ST_OK : error_nomem(e, "advice");
	for (size_t i = 0; i < v->trials.n && !st; i++)
		order[i] = &v->trials.at[i];
	if (!st && scarce && !(st = estimate(v, e)))
		qsort(order, v->trials.n, sizeof *order, by_promise);
	if (!st) {
		choose(v, order, v->a->budget_ops);
		st = predict_all(v, e);
	}
	free(order);
	return st;
}

enum status advise(const struct advise_case *a, struct advice *out, struct error *e)
{
	struct advisor v = {.a = a, .out = out};
	*out = (struct advice){.fits = a->predicted->memory.fits,
		.symptom = diagnose(a->program, a->machine, a->predicted)};
	for (size_t r = 0; r < a->program->n_roles; r++)
		v.ops += (int64_t)a->program->roles[r].ops.n;
	enum status st = collect(&v, e);
	if (!st && !(st = try_all(&v, e)))
		pick(&v);
	const bool whole = fold_simulated(&a->program->config) == a->program->config.micro_batches;
	if (!st && a->sensitivity && whole && v.ops * 2 * SENSITIVITIES <= a->budget_ops)
		st = sensitivities(a->program, a->machine, a->predicted->time.step_s, out, e);
	for (size_t i = 0; i < v.trials.n; i++)
		free(v.trials.at[i].config);
	vec_free(&v.trials);
	free(v.chosen);
	return st;
}
