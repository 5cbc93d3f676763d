#include "step/schedule.h"

#define ROW(id, ...) [SCHED_##id] = {__VA_ARGS__},

const struct schedule_traits schedule_traits[] = {SCHEDULES(ROW)};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the forward passes before the first backward pass. */
static int64_t warm_up(const struct schedule_shape *s, int64_t stage)
{
	const struct schedule_traits *t = &schedule_traits[s->kind];
	const int64_t later = s->stages - 1 - stage, all = s->chunks * s->micro_batches;
	if (t->all_in_flight)
		return all;
	const int64_t each = t->grouped && !t->splits_backward ? 2 : 1;
	return least(s->ahead + each * later + (s->chunks - 1) * s->stages, all);
}

int64_t schedule_first_in_flight(const struct schedule_shape *s)
{
	if (schedule_traits[s->kind].turns_back)
		return least(2 * s->stages - 1, s->micro_batches);
	return least(warm_up(s, 0) + 1, s->chunks * s->micro_batches);
}

int64_t schedule_weights_within(const struct schedule_shape *s, int64_t stage)
{
	if (s->stages == 1 || !schedule_traits[s->kind].splits_backward)
		return s->micro_batches;
	if (schedule_traits[s->kind].turns_back && stage > 0)
		return 0;
	return s->micro_batches > stage ? s->micro_batches - stage : 0;
}

/* Returns the k-th action of a kind. Groups of as many micro-batches as there are stages run through all chunks:
 * forward from the first to the last, backward from the last to the first. */
static struct action nth(const struct schedule_shape *s, enum action_kind kind, int64_t k)
{
	struct action a = {kind, 0, (int32_t)k};
	if (s->chunks > 1) {
		/* in 32 bits: a division of 64 takes several times as long, and searches list millions of actions */
		const int32_t stages = (int32_t)s->stages, chunks = (int32_t)s->chunks, group = stages * chunks,
			      at = (int32_t)k, chunk = at % group / stages;
		a.chunk = kind == ACTION_FORWARD ? chunk : chunks - 1 - chunk;
		a.micro = at / group * stages + at % stages;
	}
	return a;
}

struct schedule_place schedule_place(enum schedule kind, int64_t stages, int64_t part)
{
	int64_t chunk = part / stages, down = part % stages;
	return (struct schedule_place){schedule_traits[kind].turns_back && chunk % 2 ? stages - 1 - down : down, chunk};
}

int64_t schedule_part(enum schedule kind, int64_t stages, int64_t stage, int64_t chunk)
{
	return chunk * stages + (schedule_traits[kind].turns_back && chunk % 2 ? stages - 1 - stage : stage);
}

/* ---- two chunks a stage, down and up ---- */

struct v_order {
	const struct schedule_shape *s;
	action_list *out;                   /* has room for all actions */
	int64_t done[ACTION_KIND_COUNT][2]; /* by chunk */
	size_t weighed;                     /* of the first so many actions no W is left */
};

static void next_of(struct v_order *v, enum action_kind kind, int64_t chunk)
{
	int64_t micro = v->done[kind][chunk]++;
	if (micro < v->s->micro_batches)
		v->out->at[v->out->n++] = (struct action){kind, (int32_t)chunk, (int32_t)micro};
}

static void back_of(struct v_order *v, int64_t chunk)
{
	next_of(v, ACTION_BACKWARD, chunk);
	next_of(v, ACTION_WEIGHTS, chunk);
}

static void next_backward(struct v_order *v, int64_t chunk) { next_of(v, ACTION_BACKWARD, chunk); }

static void v_actions(const struct schedule_shape *s, int64_t stage, action_list *out)
{
	struct v_order v = {.s = s, .out = out};
	int64_t later = s->stages - stage,
		n = s->micro_batches > 2 * s->stages - 1 ? s->micro_batches : 2 * s->stages - 1;
	for (int64_t i = 0; i < 2 * later - 1; i++)
		next_of(&v, ACTION_FORWARD, 0);
	for (int64_t i = 0; i < stage; i++) {
		next_of(&v, ACTION_FORWARD, 1);
		next_of(&v, ACTION_FORWARD, 0);
	}
	for (int64_t i = 0; i < later; i++) {
		next_of(&v, ACTION_FORWARD, 1);
		back_of(&v, 1);
	}
	while (v.done[ACTION_FORWARD][1] < n) {
		if (v.done[ACTION_FORWARD][0] < n)
			next_of(&v, ACTION_FORWARD, 0);
		back_of(&v, 0);
		next_of(&v, ACTION_FORWARD, 1);
		back_of(&v, 1);
	}
	for (int64_t i = 0; i < stage; i++) {
		next_of(&v, ACTION_BACKWARD, 0);
		next_of(&v, ACTION_BACKWARD, 1);
	}
	for (int64_t i = 0; i < later; i++)
		back_of(&v, 0);
	while (v.done[ACTION_WEIGHTS][1] < n)
		next_of(&v, ACTION_WEIGHTS, 1);
	while (v.done[ACTION_WEIGHTS][0] < n)
		next_of(&v, ACTION_WEIGHTS, 0);
}

/* Appends the W of the first backward pass that none follows at once. */
static void oldest_weights(struct v_order *v)
{
	const action_list *l = v->out;
	for (size_t i = v->weighed; i < l->n; i++) {
		const struct action a = l->at[i], *next = i + 1 < l->n ? &l->at[i + 1] : NULL;
		v->weighed = i + 1;
		if (a.kind != ACTION_BACKWARD ||
			(next && next->kind == ACTION_WEIGHTS && next->chunk == a.chunk && next->micro == a.micro))
			continue;
		next_of(v, ACTION_WEIGHTS, a.chunk);
		return;
	}
}

/* A forward pass of a chunk, and then a backward pass of the other one. */
static void both_of(struct v_order *v, int64_t chunk)
{
	next_of(v, ACTION_FORWARD, chunk);
	back_of(v, 1 - chunk);
}

static void dual_actions(const struct schedule_shape *s, int64_t stage, action_list *out)
{
	struct v_order v = {.s = s, .out = out};
	const int64_t later = s->stages - stage - 1, half = (stage + 1) / 2,
		      n = s->micro_batches > 2 * s->stages ? s->micro_batches : 2 * s->stages;
	for (int64_t i = 0; i < 2 * later; i++)
		next_of(&v, ACTION_FORWARD, 0);
	for (int64_t i = 0; i < stage + 1; i++) {
		next_of(&v, ACTION_FORWARD, 0);
		next_of(&v, ACTION_FORWARD, 1);
	}
	for (int64_t i = 0; i < later; i++) {
		back_of(&v, 1);
		next_of(&v, ACTION_FORWARD, 1);
	}
	for (int64_t i = 0; i < n - 2 * s->stages + stage + 1; i++) {
		both_of(&v, 0);
		both_of(&v, 1);
	}
	for (int64_t i = 0; i < later; i++) {
		back_of(&v, 1);
		both_of(&v, 1);
	}
	v.weighed = out->n;
	for (int64_t i = 0; i < stage + 1; i++) {
		(i < half || (i == half && stage % 2 == 0) ? back_of : next_backward)(&v, 1);
		(i < half ? back_of : next_backward)(&v, 0);
	}
	for (int64_t i = 0; i < later; i++) {
		oldest_weights(&v);
		next_backward(&v, 0);
	}
	while (v.weighed < out->n)
		oldest_weights(&v);
}

typedef void v_actions_fn(const struct schedule_shape *s, int64_t stage, action_list *out);
static v_actions_fn *const turned[SCHED_COUNT] = {[SCHED_ZBV] = v_actions, [SCHED_DUALPIPEV] = dual_actions};

enum status schedule_actions(const struct schedule_shape *s, int64_t stage, action_list *out, struct error *e)
{
	bool splits = schedule_splits_backward(s->kind);
	int64_t n = s->chunks * s->micro_batches, ahead = warm_up(s, stage), delay = splits ? least(stage, n) : 0;
	if (!vec_reserve(out, (size_t)(3 * n)))
		return error_nomem(e, "the schedule");
	if (schedule_traits[s->kind].turns_back) {
		turned[s->kind](s, stage, out);
		return ST_OK;
	}
	for (int64_t k = 0; k < ahead; k++)
		out->at[out->n++] = nth(s, ACTION_FORWARD, k);
	for (int64_t k = 0; k < n; k++) {
		if (ahead + k < n)
			out->at[out->n++] = nth(s, ACTION_FORWARD, ahead + k);
		out->at[out->n++] = nth(s, ACTION_BACKWARD, k);
		if (splits && k >= delay)
			out->at[out->n++] = nth(s, ACTION_WEIGHTS, k - delay);
	}
	for (int64_t k = n - delay; splits && k < n; k++)
		out->at[out->n++] = nth(s, ACTION_WEIGHTS, k);
	return ST_OK;
}

int64_t schedule_in_flight(const action_list *actions, int64_t chunks, bool splits)
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
			held -= a->kind == (splits ? ACTION_WEIGHTS : ACTION_BACKWARD);
		}
	}
	return most;
}
