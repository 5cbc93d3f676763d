/* A stage's actions in the order of its schedule (step/schedule.h), and the messages between stages. One stage alone is the plain step: each micro-batch forward and backward.
 *
 * A receive is posted when the action before the one that needs it begins, so that a transfer has the time of one action to hide in and at most one message of a kind is early.
 * An action begins when its message has arrived. That also says that the peer, which works in order, had used certain earlier messages before it sent this one: the compute lane then waits for those sends,
 * which takes no time and sets their buffers free.
 */
#include "step/build.h"

#include <stdlib.h>

enum { NEXT, PREVIOUS };

static void fail_nomem(struct builder *b)
{
	if (!b->st)
		b->st = error_nomem(b->e, "the pipeline");
}

/* ---- the schedule ---- */

static size_t place_of(const struct builder *b, enum action_kind kind, int64_t chunk, int64_t micro)
{
	return (size_t)(((int64_t)kind * b->chunks + chunk) * b->c->micro_batches + micro);
}

static void meet(struct builder *b, struct peer *p, const struct schedule_shape *s, int64_t stage)
{
	action_list list = {0};
	p->stage = stage;
	p->place = calloc((size_t)(ACTION_KIND_COUNT * b->chunks * b->c->micro_batches), sizeof *p->place);
	if (!p->place || schedule_actions(s, stage, &list, b->e))
		fail_nomem(b);
	for (size_t i = 0; i < list.n && !b->st; i++)
		p->place[place_of(b, list.at[i].kind, list.at[i].chunk, list.at[i].micro)] = (int32_t)i;
	vec_free(&list);
}

void build_schedule(struct builder *b)
{
	struct schedule_shape s = {b->stages > 1 ? b->c->parallel.schedule : SCHED_1F1B, b->stages, b->chunks, b->c->micro_batches};
	b->puts_off = s.kind == SCHED_ZERO_BUBBLE;
	b->st = schedule_actions(&s, b->stage, &b->actions, b->e);
	if (b->stages > 1) {
		meet(b, &b->peer[NEXT], &s, (b->stage + 1) % b->stages);
		meet(b, &b->peer[PREVIOUS], &s, (b->stage + b->stages - 1) % b->stages);
	}
	b->slots = 1;
	if (b->stages > 1) /* and one whose message has come */
		b->slots = schedule_in_flight(&b->actions, b->chunks, b->puts_off) + 1;
	b->acts = calloc((size_t)(b->slots * b->m->layers), sizeof *b->acts);
	b->flights = calloc((size_t)(b->slots * b->chunks), sizeof *b->flights);
	if (!b->acts || !b->flights)
		fail_nomem(b);
}

void build_pipeline_free(struct builder *b)
{
	vec_free(&b->actions);
	for (int i = 0; i < 2; i++) {
		free(b->peer[i].place);
		vec_free(&b->peer[i].sent);
	}
	vec_free(&b->put_off);
	free(b->acts);
	free(b->flights);
}

static struct flight *flight_of(struct builder *b, int64_t chunk, int64_t micro)
{
	return &b->flights[micro % b->slots * b->chunks + chunk];
}

static struct acts *acts_of(struct builder *b, int64_t layer)
{
	return &b->acts[b->micro % b->slots * b->m->layers + layer];
}

/* ---- messages ---- */

/* Gradients run against the activations. `arrives`: from a stage, else to one. */
static struct peer *peer_of(struct builder *b, enum action_kind kind, bool arrives)
{
	return &b->peer[(kind == ACTION_BACKWARD) == arrives ? NEXT : PREVIOUS];
}

/* The peer's chunk whose neighbour `chunk` is: behind the last stage comes the first one with the next chunk. */
static int64_t peer_chunk(const struct builder *b, const struct peer *p, int64_t chunk)
{
	if (p == &b->peer[NEXT])
		return chunk + (b->stage == b->stages - 1);
	return chunk - (b->stage == 0);
}

static bool crosses(const struct stage_part *part, enum action_kind kind, bool arrives)
{
	if (kind == ACTION_WEIGHTS)
		return false;
	return (kind == ACTION_BACKWARD) == arrives ? !part->head : !part->embedding;
}

static void message(struct builder *b, enum collective coll, enum lane lane, const struct peer *p, const struct stage_part *part, struct view v)
{
	struct op op = build_new(b, OP_COLLECTIVE, b->phase == PHASE_FORWARD ? "activations" : "gradient");
	op.coll = (uint8_t)coll;
	op.lane = (uint8_t)lane;
	op.group = DIM_PP;
	op.layer = (int32_t)(p == &b->peer[NEXT] ? part->first + part->layers : part->first);
	op.d[0] = b->rows * b->m->hidden;
	op.d[1] = p->stage;
	op.d[2] = b->stage;
	struct view none = view_of(NONE);
	build_op(b, op, coll == COLL_SEND ? (const struct view[]){v, none} : (const struct view[]){none, v});
}

static void at(struct builder *b, const struct action *a)
{
	b->micro = (int16_t)a->micro;
	b->phase = a->kind == ACTION_FORWARD ? PHASE_FORWARD : PHASE_BACKWARD;
	b->part = stage_part(b->c, b->stage, a->chunk);
	b->now = flight_of(b, a->chunk, a->micro);
}

/* What the action `i` needs from another stage. */
static void receive(struct builder *b, size_t i)
{
	if (i >= b->actions.n || b->st)
		return;
	const struct action *a = &b->actions.at[i];
	at(b, a);
	if (!crosses(&b->part, a->kind, true))
		return;
	enum lane lane = a->kind == ACTION_BACKWARD ? LANE_RECV_NEXT : LANE_RECV_PREV;
	int32_t buffer = build_act(b, b->rows, b->m->hidden, "received");
	build_after(b, lane, build_last(b, LANE_COMPUTE));
	message(b, COLL_RECV, lane, peer_of(b, a->kind, true), &b->part, view_of(buffer));
	b->now->arrived[a->kind] = buffer;
	b->now->message[a->kind] = build_last(b, lane);
}

/* The next op that computes waits for the action's message, and for the sends that it proves to be over. */
static void await(struct builder *b, const struct action *a)
{
	if (b->st || !crosses(&b->part, a->kind, true))
		return;
	const struct peer *from = peer_of(b, a->kind, true);
	int32_t made_at = from->place[place_of(b, a->kind, peer_chunk(b, from, a->chunk), a->micro)];
	build_after(b, LANE_COMPUTE, b->now->message[a->kind]);
	for (int i = 0; i < 2; i++) {
		struct peer *p = &b->peer[i];
		size_t known = p->known;
		while (p->stage == from->stage && p->known < p->sent.n && p->sent.at[p->known].used_at <= made_at)
			p->known++;
		if (p->known > known)
			build_after(b, LANE_COMPUTE, p->sent.at[p->known - 1].op); /* the last one says it of all before it */
	}
}

static void send(struct builder *b, const struct action *a, int32_t buffer)
{
	struct peer *to = peer_of(b, a->kind, false);
	if (b->st)
		return;
	message(b, COLL_SEND, a->kind == ACTION_BACKWARD ? LANE_SEND_PREV : LANE_SEND_NEXT, to, &b->part, view_of(buffer));
	struct sent s = {(int64_t)b->r->ops.n - 1, to->place[place_of(b, a->kind, peer_chunk(b, to, a->chunk), a->micro)]};
	if (!vec_push(&to->sent, s))
		fail_nomem(b);
}

/* ---- actions ---- */

bool build_recomputes(const struct builder *b, int64_t layer)
{
	const struct train *t = &b->c->train;
	return t->recompute == REC_FULL && layer < t->recompute_layers;
}

static void forward(struct builder *b, const struct action *a)
{
	if (b->part.embedding || b->part.head)
		feed_micro_begin(b);
	if (b->stages == 1)
		build_micro_begin(b);
	gather_begin(b);
	int32_t x = b->part.embedding ? embedding_forward(b) : b->now->arrived[ACTION_FORWARD];
	for (int64_t l = b->part.first; l < b->part.first + b->part.layers && !b->st; l++) {
		gather_use_begin(b);
		b->layer = (int32_t)l;
		x = block_forward(b, x, acts_of(b, l));
		b->layer = NONE;
		gather_use_end(b);
	}
	b->now->kept_message = NONE;
	if (b->part.head) {
		head_forward(b, x);
		return;
	}
	send(b, a, x);
	b->now->kept_message = build_hold(b, COMP_ACTIVATIONS, (double)(b->rows * b->m->hidden) * b->c->stack.memory.message_B, "sent activations");
}

static void backward(struct builder *b, const struct action *a)
{
	build_release(b, &b->now->kept_message);
	if (b->stages > 1 && b->shards_gradients)
		build_backward_begin(b);
	gather_begin(b);
	int32_t dx = b->part.head ? head_backward(b) : b->now->arrived[ACTION_BACKWARD];
	for (int64_t l = b->part.first + b->part.layers - 1; l >= b->part.first && !b->st; l--) {
		struct acts *acts = acts_of(b, l);
		gather_use_begin(b);
		b->layer = (int32_t)l;
		if (build_recomputes(b, l)) {
			b->recomputing = true;
			block_forward(b, acts->x_in, acts);
			b->recomputing = false;
		}
		block_backward(b, acts, &dx);
		b->layer = NONE;
		gather_use_end(b);
	}
	if (b->part.embedding)
		embedding_backward(b, dx);
	else
		send(b, a, dx);
	if (b->part.head)
		build_unused_gradients(b);
	if (b->stages == 1 || b->shards_gradients)
		build_reductions_end(b);
}

static void weights(struct builder *b, const struct action *a)
{
	b->puts_off = false;
	for (; b->caught_up < b->put_off.n && !b->st; b->caught_up++) {
		struct put_off w = b->put_off.at[b->caught_up];
		if (w.micro != a->micro)
			break;
		b->layer = w.layer;
		build_weight_grad(b, w.what, w.rows, w.out, w.in, w.dy, w.x, w.w);
		b->layer = NONE;
	}
	b->puts_off = true;
}

void build_actions(struct builder *b)
{
	static void (*const act[])(struct builder *, const struct action *) = {[ACTION_FORWARD] = forward, [ACTION_BACKWARD] = backward, [ACTION_WEIGHTS] = weights};
	if (b->stages > 1)
		build_micro_begin(b);
	receive(b, 0);
	for (size_t i = 0; i < b->actions.n && !b->st; i++) {
		const struct action *a = &b->actions.at[i];
		receive(b, i + 1);
		at(b, a);
		await(b, a);
		act[a->kind](b, a);
	}
	if (b->stages == 1)
		return;
	b->micro = (int16_t)(b->c->micro_batches - 1);
	build_reductions_end(b);
	build_ends_reduction(b);
}
