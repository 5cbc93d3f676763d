#include "sim/search/pipeline_walk.h"

#include <math.h>
#include <stdlib.h>

struct stage {
	action_list actions;
	size_t next;
	double free_s, before_s; /* ends of the last action and of the one before it; a message may come from then on */
	double sent_s[2];        /* arrival of the last message to the next stage, and to the one before */
};

struct walk {
	const struct schedule_shape *shape;
	const struct pipeline_walk_times *times;
	struct stage *stage;
	double *done_s; /* [(kind x parts + part) x micro-batches + micro-batch], < 0: not yet */
};

static int64_t parts_of(const struct walk *w) { return w->shape->stages * w->shape->chunks; }

static double *done_at(const struct walk *w, enum action_kind kind, int64_t part, int64_t micro)
{
	return &w->done_s[((int64_t)(kind == ACTION_FORWARD ? 0 : 1) * parts_of(w) + part) * w->shape->micro_batches +
			  micro];
}

/* Ends the next action of stage i. Returns false while its input from another stage is not there yet. */
static bool advance(struct walk *w, int64_t i)
{
	struct stage *s = &w->stage[i];
	const struct action *a = &s->actions.at[s->next];
	const int64_t parts = parts_of(w), part = a->chunk * w->shape->stages + i,
		      from = part + (a->kind == ACTION_FORWARD ? -1 : 1);
	double start_s = s->free_s;
	if (a->kind != ACTION_WEIGHTS && from >= 0 && from < parts) {
		const int64_t sender = from % w->shape->stages, link = a->kind == ACTION_FORWARD ? sender : i;
		const double made_s = *done_at(w, a->kind, from, a->micro);
		if (made_s < 0)
			return false;
		double *sent_s = &w->stage[sender].sent_s[a->kind];
		*sent_s = fmax(fmax(made_s, s->before_s), *sent_s) + w->times->message_s[link];
		start_s = fmax(start_s, *sent_s);
	}
	const int place = part == 0 ? 0 : part == parts - 1 ? 2 : 1;
	s->before_s = s->free_s;
	s->free_s = start_s + (a->micro == 0 ? w->times->begin_s : w->times->steady_s)[place][a->kind];
	if (a->kind != ACTION_WEIGHTS)
		*done_at(w, a->kind, part, a->micro) = s->free_s;
	s->next++;
	return true;
}

static enum status walk_all(const struct schedule_shape *shape, const struct pipeline_walk_times *t, double *first_s,
	double *last_s, struct error *e)
{
	struct walk w = {shape, t, calloc((size_t)shape->stages, sizeof *w.stage), NULL};
	const size_t n = (size_t)(2 * parts_of(&w) * shape->micro_batches);
	enum status st = w.stage && (w.done_s = malloc(n * sizeof *w.done_s)) ? ST_OK : error_nomem(e, "the pipeline");
	for (size_t i = 0; i < n && !st; i++)
		w.done_s[i] = -1;
	for (int64_t i = 0; i < shape->stages && !st; i++)
		st = schedule_actions(shape, i, &w.stage[i].actions, e);
	for (bool moved = true; moved && !st;) {
		moved = false;
		for (int64_t k = 0; k < 2 * shape->stages; k++) { /* down for activations, up for gradients */
			int64_t i = k < shape->stages ? k : 2 * shape->stages - 1 - k;
			while (w.stage[i].next < w.stage[i].actions.n && advance(&w, i))
				moved = true;
		}
	}
	for (int64_t i = 0; i < shape->stages && w.stage; i++) {
		if (!st && w.stage[i].next < w.stage[i].actions.n)
			st = error_set(e, ST_RUN, "the pipeline's schedule never ends");
		vec_free(&w.stage[i].actions);
	}
	if (!st) {
		*first_s = w.stage[0].free_s;
		*last_s = w.stage[shape->stages - 1].free_s;
	}
	free(w.stage);
	free(w.done_s);
	return st;
}

enum status pipeline_walk(const struct schedule_shape *s, const struct pipeline_walk_times *t, double *first_s,
	double *last_s, struct error *e)
{
	const int64_t period = schedule_traits[s->kind].grouped ? s->stages : 2;
	struct schedule_shape shorter = *s, longer = *s;
	shorter.micro_batches = 2 * s->stages + (s->micro_batches % period + period) % period;
	longer.micro_batches = shorter.micro_batches + period;
	if (s->micro_batches <= longer.micro_batches)
		return walk_all(s, t, first_s, last_s, e);
	double shorter_s[2];
	enum status st = walk_all(&shorter, t, &shorter_s[0], &shorter_s[1], e);
	if (!st && !(st = walk_all(&longer, t, first_s, last_s, e))) {
		const double periods = (double)((s->micro_batches - longer.micro_batches) / period);
		*first_s += periods * (*first_s - shorter_s[0]);
		*last_s += periods * (*last_s - shorter_s[1]);
	}
	return st;
}
