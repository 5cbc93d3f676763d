#include "sim/search/pipeline_walk.h"

#include <stdlib.h>

struct stage {
	action_list actions;
	size_t next;
	double free_s, before_s; /* ends of the last action and of the one before it; a message may come from then on */
	double sent_s[2];        /* arrival of the last message to the next stage, and to the one before */
};

struct walk {
	const struct pipeline *p;
	struct stage *stage;
	double *done_s; /* [(kind x parts + part) x micro-batches + micro-batch], < 0: not yet */
};

static int64_t parts_of(const struct walk *w) { return w->p->shape.stages * w->p->shape.chunks; }

static double *done_at(const struct walk *w, enum action_kind kind, int64_t part, int64_t micro)
{
	return &w->done_s[((int64_t)kind * parts_of(w) + part) * w->p->shape.micro_batches + micro];
}

/* fmax minds NaN, which no time is, and is a call. */
static double later(double a_s, double b_s) { return a_s > b_s ? a_s : b_s; }

/* Ends the next action of stage i. Returns false while its input from another stage is not there yet. */
static bool advance(struct walk *w, int64_t i)
{
	struct stage *s = &w->stage[i];
	const struct action *a = &s->actions.at[s->next];
	const bool forward = a->kind == ACTION_FORWARD;
	const int64_t stages = w->p->shape.stages, parts = parts_of(w), part = a->chunk * stages + i,
		      from = part + (forward ? -1 : 1);
	double start_s = s->free_s;
	if (from >= 0 && from < parts) {
		const int64_t sender = forward          ? (i > 0 ? i : stages) - 1
		                       : i + 1 < stages ? i + 1
		                                        : 0,
			      link = forward ? sender : i;
		const double made_s = *done_at(w, a->kind, from, a->micro);
		if (made_s < 0)
			return false;
		double *sent_s = &w->stage[sender].sent_s[a->kind];
		*sent_s = later(later(made_s, s->before_s), *sent_s) + w->p->message_s[link];
		start_s = later(start_s, *sent_s);
	}
	const int place = part == 0 ? 0 : part == parts - 1 ? 2 : 1;
	s->before_s = s->free_s;
	s->free_s = start_s + (a->micro == 0 ? w->p->begin_s : w->p->steady_s)[place][a->kind];
	*done_at(w, a->kind, part, a->micro) = s->free_s;
	s->next++;
	return true;
}

enum status pipeline_walk(const struct pipeline *p, double ends_s[END_COUNT], struct error *e)
{
	const int64_t stages = p->shape.stages;
	struct walk w = {.p = p, .stage = calloc((size_t)stages, sizeof *w.stage)};
	const size_t n = (size_t)(PASS_COUNT * parts_of(&w) * p->shape.micro_batches);
	enum status st = w.stage && (w.done_s = malloc(n * sizeof *w.done_s)) ? ST_OK : error_nomem(e, "the pipeline");
	for (size_t i = 0; i < n && !st; i++)
		w.done_s[i] = -1;
	for (int64_t i = 0; i < stages && !st; i++)
		st = schedule_actions(&p->shape, i, &w.stage[i].actions, e);
	for (bool moved = true; moved && !st;) {
		moved = false;
		for (int64_t k = 0; k < 2 * stages; k++) { /* down for activations, up for gradients */
			int64_t i = k < stages ? k : 2 * stages - 1 - k;
			while (w.stage[i].next < w.stage[i].actions.n && advance(&w, i))
				moved = true;
		}
	}
	for (int64_t i = 0; i < stages && w.stage; i++) {
		if (!st && w.stage[i].next < w.stage[i].actions.n)
			st = error_set(e, ST_RUN, "the pipeline's schedule never ends");
		vec_free(&w.stage[i].actions);
	}
	if (!st) {
		ends_s[END_FIRST] = w.stage[0].free_s;
		ends_s[END_LAST] = w.stage[stages - 1].free_s;
	}
	free(w.stage);
	free(w.done_s);
	return st;
}

struct pipeline_fold pipeline_fold(const struct schedule_shape *s)
{
	const int64_t period = schedule_traits[s->kind].grouped ? s->stages : 2,
		      shorter = 2 * s->stages + s->micro_batches % period, longer = shorter + period;
	return s->micro_batches <= longer
	               ? (struct pipeline_fold){0, 0, 0}
	               : (struct pipeline_fold){shorter, longer, (double)((s->micro_batches - longer) / period)};
}
