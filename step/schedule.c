#include "step/schedule.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The forwards before the first backward. */
static int64_t warm_up(const struct schedule_shape *s, int64_t stage)
{
	int64_t later = s->stages - 1 - stage, all = s->chunks * s->micro_batches;
	switch (s->kind) {
	case SCHED_GPIPE: return all;
	case SCHED_INTERLEAVED: return least(2 * later + (s->chunks - 1) * s->stages, all);
	default: return least(later, all);
	}
}

/* The k-th of a kind: groups of as many micro-batches as there are stages go through all chunks, first to last or last to first. */
static struct action nth(const struct schedule_shape *s, enum action_kind kind, int64_t k)
{
	int64_t group = s->stages * s->chunks, chunk = k % group / s->stages;
	struct action a = {kind, 0, (int32_t)k};
	if (s->chunks > 1) {
		a.chunk = (int32_t)(kind == ACTION_FORWARD ? chunk : s->chunks - 1 - chunk);
		a.micro = (int32_t)(k / group * s->stages + k % s->stages);
	}
	return a;
}

enum status schedule_actions(const struct schedule_shape *s, int64_t stage, action_list *out, struct error *e)
{
	bool parted = s->kind == SCHED_ZERO_BUBBLE;
	int64_t n = s->chunks * s->micro_batches, ahead = warm_up(s, stage), delay = parted ? least(stage, n) : 0;
	if (!vec_reserve(out, (size_t)(3 * n)))
		return error_nomem(e, "the schedule");
	for (int64_t k = 0; k < ahead; k++)
		out->at[out->n++] = nth(s, ACTION_FORWARD, k);
	for (int64_t k = 0; k < n; k++) {
		if (ahead + k < n)
			out->at[out->n++] = nth(s, ACTION_FORWARD, ahead + k);
		out->at[out->n++] = nth(s, ACTION_BACKWARD, k);
		if (parted && k >= delay)
			out->at[out->n++] = nth(s, ACTION_WEIGHTS, k - delay);
	}
	for (int64_t k = n - delay; parted && k < n; k++)
		out->at[out->n++] = nth(s, ACTION_WEIGHTS, k);
	return ST_OK;
}

int64_t schedule_in_flight(const action_list *actions, int64_t chunks, bool parted)
{
	int64_t most = 1;
	for (int64_t c = 0; c < chunks; c++) {
		int64_t held = 0;
		for (size_t i = 0; i < actions->n; i++) {
			const struct action *a = &actions->at[i];
			if (a->chunk != c)
				continue;
			held += a->kind == ACTION_FORWARD;
			most = held > most ? held : most;
			held -= a->kind == (parted ? ACTION_WEIGHTS : ACTION_BACKWARD);
		}
	}
	return most;
}
