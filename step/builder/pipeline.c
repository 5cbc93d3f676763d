/* A stage's actions in the order of its schedule (step/schedule.h), and the messages between stages. With one stage
 * this is the plain step: each micro-batch forward and backward. With expert_overlap the next one runs forward beside
 * its backward pass (megatron/core/pipeline_parallel/combined_1f1b.py, combined_1f1b_schedule_for_no_pipelining).
 *
 * A receive is posted when the action before the one that needs it begins, so that one action can hide the transfer. It
 * stands behind the receives of all that its sender sends earlier on the same lane. With zbv a lane carries activations
 * of one chunk and gradients of the other, which are used in another order. Otherwise at most one message of a kind is
 * early.
 *
 * An action begins when its message has arrived. The peer works in order, so the message also proves that the peer had
 * used certain earlier messages. The compute lane then waits for those sends, which takes no time and frees their
 * buffers.
 */
#include "step/builder/blocks.h"

#include <stdlib.h>
#include <string.h>

enum { NEXT, PREVIOUS };

static void fail_nomem(struct builder *b) { build_nomem(b, "the pipeline"); }

/* ---- the schedule ---- */

/* True where a micro-batch is through before the next one begins. */
static bool one_by_one(const struct builder *b) { return b->stages == 1 && !b->c->parallel.expert_overlap; }

static size_t place_of(const struct builder *b, enum action_kind kind, int64_t chunk, int64_t micro)
{
	return (size_t)(((int64_t)kind * b->chunks + chunk) * b->c->micro_batches + micro);
}

static void meet(struct builder *b, struct peer *p, const struct schedule_shape *s, int64_t stage)
{
	const action_list *list = &p->actions;
	p->stage = stage;
	p->place = calloc((size_t)(ACTION_KIND_COUNT * b->chunks * b->c->micro_batches), sizeof *p->place);
	if (!p->place || schedule_actions(s, stage, &p->actions, b->e))
		fail_nomem(b);
	for (size_t i = 0; i < list->n && !b->st; i++)
		p->place[place_of(b, list->at[i].kind, list->at[i].chunk, list->at[i].micro)] = (int32_t)i;
}

void build_schedule(struct builder *b)
{
	struct schedule_shape s = {b->stages > 1 ? b->c->parallel.schedule : SCHED_1F1B, b->stages, b->chunks,
		b->c->micro_batches, b->c->parallel.expert_overlap};
	b->defers_weights = schedule_splits_backward(s.kind);
	b->st = schedule_actions(&s, b->stage, &b->actions, b->e);
	if (b->stages > 1) {
		meet(b, &b->peer[NEXT], &s, (b->stage + 1) % b->stages);
		meet(b, &b->peer[PREVIOUS], &s, (b->stage + b->stages - 1) % b->stages);
	}
	b->slots = schedule_in_flight(&b->actions, b->chunks, b->defers_weights);
	if (b->stages > 1) /* for an early message */
		b->slots++;
	b->acts = malloc((size_t)(b->slots * model_blocks(b->m)) * sizeof *b->acts); /* filled by forward passes */
	b->flights = calloc((size_t)(b->slots * b->chunks), sizeof *b->flights);
	b->arrivals = calloc((size_t)(ACTION_WEIGHTS * b->chunks * b->c->micro_batches), sizeof *b->arrivals);
	if (!b->acts || !b->flights || !b->arrivals)
		fail_nomem(b);
}

void build_pipeline_free(struct builder *b)
{
	vec_free(&b->actions);
	for (int i = 0; i < 2; i++) {
		vec_free(&b->peer[i].actions);
		free(b->peer[i].place);
		vec_free(&b->peer[i].sent);
	}
	vec_free(&b->deferred);
	free(b->acts);
	free(b->flights);
	free(b->arrivals);
}

static struct flight *flight_of(struct builder *b, int64_t chunk, int64_t micro)
{
	return &b->flights[micro % b->slots * b->chunks + chunk];
}

struct acts *acts_of(struct builder *b, int64_t layer)
{
	return &b->acts[b->micro % b->slots * model_blocks(b->m) + layer];
}

/* ---- messages ---- */

/* Returns the part of the model that sends an action on `part` its input (arrives), or that receives its result.
 * Activations go to the next part, gradients to the previous one. -1: the model ends here. */
static int64_t other_part(const struct builder *b, enum action_kind kind, int64_t part, bool arrives)
{
	int64_t other = (kind == ACTION_BACKWARD) == arrives ? part + 1 : part - 1;
	return kind == ACTION_WEIGHTS || other >= b->stages * b->chunks ? -1 : other;
}

static int64_t part_of(const struct builder *b, int64_t stage, int64_t chunk)
{
	return schedule_part(b->c->parallel.schedule, b->stages, stage, chunk);
}

static struct schedule_place place_of_part(const struct builder *b, int64_t part)
{
	return schedule_place(b->c->parallel.schedule, b->stages, part);
}

/* A message between an action of this stage and one of a peer. */
struct crossing {
	struct peer *peer; /* NULL: nothing crosses */
	enum lane lane;
	int64_t chunk; /* the peer's */
};

/* Returns how an action's input arrives or its result leaves. With two stages both neighbours are the same stage: then
 * the direction decides, down to the next or back to the previous one. */
static struct crossing crossing_of(struct builder *b, const struct action *a, bool arrives)
{
	static const enum lane lanes[2][2] =
		{[NEXT] = {LANE_SEND_NEXT, LANE_RECV_NEXT}, [PREVIOUS] = {LANE_SEND_PREV, LANE_RECV_PREV}};
	int64_t other = other_part(b, a->kind, part_of(b, b->stage, a->chunk), arrives);
	if (other < 0)
		return (struct crossing){0};
	struct schedule_place at = place_of_part(b, other);
	if (at.stage == b->stage)
		return (struct crossing){0};
	bool back = schedule_traits[b->c->parallel.schedule].turns_back && a->chunk % 2 == 1;
	int direction = ((a->kind == ACTION_BACKWARD) == arrives) != back ? NEXT : PREVIOUS;
	return (struct crossing){&b->peer[direction], lanes[direction][arrives], at.chunk};
}

static struct arrival *arrival_of(struct builder *b, enum action_kind kind, int64_t chunk, int64_t micro)
{
	return &b->arrivals[place_of(b, kind, chunk, micro)];
}

/* Appends a send or a receive. layer: the block whose input, or whose input's gradient, is sent. */
static void message(struct builder *b, enum collective coll, const struct crossing *x, int64_t layer, struct view v)
{
	struct op op = build_collective(b, coll, DIM_PP, x->lane, b->act, b->rows * b->m->hidden,
		b->phase == PHASE_FORWARD ? "activations" : "gradient", NONE);
	op.layer = (int32_t)layer;
	op.message.peer = x->peer->stage;
	op.message.own = b->stage;
	struct view none = view_of(NONE);
	build_op(b, &op, coll == COLL_SEND ? (const struct view[]){v, none} : (const struct view[]){none, v});
}

static void at(struct builder *b, const struct action *a)
{
	b->micro = (int16_t)a->micro;
	b->phase = a->kind == ACTION_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD;
	b->chunk = a->chunk;
	b->part = stage_part(b->c, b->stage, a->chunk);
	b->now = flight_of(b, a->chunk, a->micro);
}

/* Posts the receive of the input of action `a`. */
static void post(struct builder *b, const struct action *a, const struct crossing *x)
{
	at(b, a);
	int32_t buffer = build_rows(b);
	build_after(b, x->lane, build_last(b, LANE_COMPUTE));
	message(b, COLL_RECV, x, a->kind == ACTION_FORWARD ? b->part.first : b->part.first + b->part.layers,
		view_of(buffer));
	*arrival_of(b, a->kind, a->chunk, a->micro) = (struct arrival){buffer, build_last(b, x->lane)};
}

/* Receives the input of action `i` from another stage, after all earlier messages on the same lane. */
static void receive(struct builder *b, size_t i)
{
	if (i >= b->actions.n || b->st)
		return;
	const struct action *a = &b->actions.at[i];
	const struct crossing x = crossing_of(b, a, true);
	if (!x.peer)
		return;
	const size_t made_at = (size_t)x.peer->place[place_of(b, a->kind, x.chunk, a->micro)];
	for (; x.peer->heard <= made_at && !b->st; x.peer->heard++) {
		struct action sent = x.peer->actions.at[x.peer->heard];
		int64_t mine = other_part(b, sent.kind, part_of(b, x.peer->stage, sent.chunk), false);
		if (mine < 0 || place_of_part(b, mine).stage != b->stage)
			continue;
		sent.chunk = (int32_t)place_of_part(b, mine).chunk;
		const struct crossing y = crossing_of(b, &sent, true);
		if (y.peer == x.peer)
			post(b, &sent, &y);
	}
}

/* Makes the next compute op wait for the action's message, and for the sends that the message proves to have ended. */
static void await(struct builder *b, const struct action *a)
{
	const struct crossing x = crossing_of(b, a, true);
	if (b->st || !x.peer)
		return;
	int32_t made_at = x.peer->place[place_of(b, a->kind, x.chunk, a->micro)];
	build_after(b, LANE_COMPUTE, arrival_of(b, a->kind, a->chunk, a->micro)->message);
	for (int i = 0; i < 2; i++) {
		struct peer *p = &b->peer[i];
		size_t known = p->known;
		while (p->stage == x.peer->stage && p->known < p->sent.n && p->sent.at[p->known].used_at <= made_at)
			p->known++;
		if (p->known > known)
			build_after(b, LANE_COMPUTE, p->sent.at[p->known - 1].op); /* sends to a peer end in order */
	}
}

/* Passes the action's result to another stage, or to another chunk of this one. */
static void pass_on(struct builder *b, const struct action *a, int32_t buffer)
{
	const struct crossing x = crossing_of(b, a, false);
	if (b->st)
		return;
	if (!x.peer) {
		int64_t other = other_part(b, a->kind, part_of(b, b->stage, a->chunk), false);
		*arrival_of(b, a->kind, place_of_part(b, other).chunk, a->micro) = (struct arrival){buffer, NONE};
		return;
	}
	message(b, COLL_SEND, &x, a->kind == ACTION_FORWARD ? b->part.first + b->part.layers : b->part.first,
		view_of(buffer));
	struct sent s = {(int64_t)b->r->ops.n - 1, x.peer->place[place_of(b, a->kind, x.chunk, a->micro)]};
	if (!vec_push(&x.peer->sent, s))
		fail_nomem(b);
}

/* ---- actions ---- */

bool build_runs_again(const struct builder *b, int64_t layer)
{
	const int64_t n = b->c->train.recompute_layers;
	return layer < n || n == b->m->layers;
}

bool build_recomputes(const struct builder *b, int64_t layer)
{
	return train_reruns_blocks(&b->c->train) && build_runs_again(b, layer);
}

static void forward(struct builder *b, const struct action *a)
{
	if (b->part.head && !b->part.embedding && b->has_embedding)
		b->now->input = flight_of(b, 0, a->micro)->input; /* the embedding's, in the other chunk */
	else if (b->part.embedding || b->part.head)
		feed_micro_begin(b);
	if (one_by_one(b))
		build_micro_begin(b);
	gather_begin(b);
	int32_t x = b->part.embedding ? stack_begin(b) : arrival_of(b, ACTION_FORWARD, a->chunk, a->micro)->buffer;
	for (int64_t l = b->part.first; l < b->part.first + b->part.layers && !b->st; l++) {
		struct acts *acts = acts_of(b, l);
		if (l > 0 && l == b->m->encoder_layers)
			x = decoder_begin(b, x);
		gather_use_begin(b);
		build_gather_next(b, l);
		b->layer = (int32_t)l;
		memset(acts, 0xff, sizeof *acts); /* NONE */
		offload_room(b, l);
		x = block_forward(b, x, acts);
		offload_acts(b, acts);
		b->layer = NONE;
		gather_use_end(b);
	}
	b->now->kept_message = NONE;
	offload_room(b, b->part.first + b->part.layers);
	if (b->part.head) {
		build_gather_next(b, NONE);
		head_forward(b, x);
		mtp_forward(b, x);
		return;
	}
	pass_on(b, a, x);
	if (crossing_of(b, a, false).peer)
		b->now->kept_message = build_hold(b, COMP_ACTIVATIONS,
			(double)(b->rows * b->m->hidden) * b->c->stack.memory.message_B, "sent activations");
}

/* The head, and what predicts further tokens: both read the last block's output. */
static int32_t ends_backward(struct builder *b)
{
	const int32_t further = mtp_backward(b), dx = head_backward(b);
	b->head_begun = false;
	if (further != NONE)
		build_on(b, made_op(build_matrix(b, OP_ADD, "residual grad", b->rows, b->m->hidden)), dx, further, NONE,
			dx);
	return dx;
}

static void backward(struct builder *b, const struct action *a)
{
	build_release(b, &b->now->kept_message);
	if (b->stages > 1 && b->shards_gradients)
		build_backward_begin(b);
	gather_begin(b);
	int32_t dx = b->part.head ? ends_backward(b) : arrival_of(b, ACTION_BACKWARD, a->chunk, a->micro)->buffer;
	for (int64_t l = b->part.first + b->part.layers - 1; l >= b->part.first && !b->st; l--) {
		struct acts *acts = acts_of(b, l);
		offload_fetch(b, l);
		gather_use_begin(b);
		b->layer = (int32_t)l;
		block_backward(b, acts, &dx);
		b->layer = NONE;
		gather_use_end(b);
		if (l > 0 && l == b->m->encoder_layers)
			dx = decoder_end(b, dx);
	}
	if (b->part.embedding)
		stack_end(b, dx);
	else
		pass_on(b, a, dx);
	if (b->part.head)
		build_unused_gradients(b);
	if (one_by_one(b) || b->shards_gradients)
		build_reductions_end(b);
}

static void weights(struct builder *b, const struct action *a)
{
	b->defers_weights = false;
	for (size_t i = b->deferred_done; i < b->deferred.n && !b->st; i++) {
		struct deferred_weights w = b->deferred.at[i];
		if (w.chunk == a->chunk && w.micro == a->micro) {
			b->layer = w.layer;
			build_weight_grad(b, &w.linear, w.dy, w.x);
			b->layer = NONE;
			b->deferred.at[i].chunk = NONE;
		}
		b->deferred_done += i == b->deferred_done && b->deferred.at[i].chunk == NONE;
	}
	b->defers_weights = true;
}

static void run_action(struct builder *b, const struct action *a)
{
	static build_action_fn *const act[] =
		{[ACTION_FORWARD] = forward, [ACTION_BACKWARD] = backward, [ACTION_WEIGHTS] = weights};
	at(b, a);
	await(b, a);
	act[a->kind](b, a);
}

/* Forward actions before the first backward one. */
static int64_t forwards_first(const struct builder *b)
{
	size_t n = 0;
	while (n < b->actions.n && b->actions.at[n].kind == ACTION_FORWARD)
		n++;
	return (int64_t)n;
}

/* True for a stage whose actions may be built in pairs. One that runs all its forward actions first is no more than
 * one ahead of the next stage with the last of them: there the two of a pair would wait for each other. */
static bool has_pairs(const struct builder *b)
{
	const bool waits = b->stages > 1 && forwards_first(b) == b->chunks * b->c->micro_batches;
	return b->c->parallel.expert_overlap && !waits;
}

/* True where an action and the next one are a forward one and the backward one of other activations; of the other chunk
 * where these turn back (dualpipev.py, _forward_backward_chunk). */
static bool is_pair(const struct builder *b, size_t i)
{
	const struct action *a = &b->actions.at[i], *next = a + 1;
	return i + 1 < b->actions.n && a->kind == ACTION_FORWARD && next->kind == ACTION_BACKWARD &&
	       (a->chunk != next->chunk ||
		       (a->micro != next->micro && !schedule_traits[b->c->parallel.schedule].turns_back));
}

void build_actions(struct builder *b)
{
	const bool pairs = has_pairs(b);
	if (!one_by_one(b))
		build_micro_begin(b);
	receive(b, 0);
	for (size_t i = 0; i < b->actions.n && !b->st; i++) {
		const struct action *a = &b->actions.at[i];
		receive(b, i + 1);
		if (!pairs || !is_pair(b, i)) {
			run_action(b, a);
			continue;
		}
		receive(b, i + 2);
		build_together(b, a, a + 1, run_action);
		i++;
	}
	if (one_by_one(b))
		return;
	b->micro = (int16_t)(b->c->micro_batches - 1);
	build_reductions_end(b);
	build_ends_reduction(b);
}
