/* Rows on their way to their experts and back, of a layer of experts (step/builder/moe.c). */
#include <math.h>

#include "step/builder/blocks.h"

int64_t moe_local_experts(const struct builder *b) { return b->m->experts / b->c->parallel.expert; }

int64_t moe_capacity(const struct builder *b) { return model_expert_capacity(b->m, b->rows, b->uneven); }

int64_t moe_slots(const struct builder *b) { return b->m->experts * moe_capacity(b); }

int64_t moe_received_slots(const struct builder *b) { return b->c->parallel.expert_tensor * moe_slots(b); }

int64_t moe_width(const struct builder *b) { return b->m->moe_latent > 0 ? b->m->moe_latent : b->m->hidden; }

int64_t moe_senders(const struct builder *b) { return b->c->parallel.expert * b->c->parallel.expert_tensor; }

/* Returns on how many of the equal parts of the experts (hosts, ranks) the k of a row lie, on average over all choices
 * of k among those that it may choose. With groups it may choose those of as many parts as its groups lie on. */
static double parts_of_row(const struct builder *b, int64_t parts)
{
	const struct model *m = b->m;
	const double h = (double)parts, groups = (double)m->expert_groups, chosen = (double)m->groups_per_token;
	const double reach = m->expert_groups == 0 ? h : fmin(h, groups >= h ? chosen : ceil(chosen * h / groups));
	const double experts = (double)m->experts * reach / h;
	double none = 1; /* that no expert lies on a certain one of these parts */
	for (int64_t i = 0; i < m->experts_per_token; i++)
		none *= fmax(0, experts - experts / reach - (double)i) / (experts - (double)i);
	return reach * (1 - none);
}

static bool goes_once(const struct builder *b) { return b->c->parallel.expert_dispatch != DISPATCH_ALL_TO_ALL; }

/* To the part that most go to, which has `uneven` times as many as the others: no more than there are slots, and each
 * row once at the most. */
static int64_t elements_to(const struct builder *b, int64_t parts)
{
	const double reached = fmin(fmax(1, b->uneven) * parts_of_row(b, parts), (double)parts);
	const int64_t elements = llround(reached * (double)(b->rows * moe_width(b))), all = moe_slots(b) * moe_width(b);
	return elements < all ? elements : all;
}

/* Elements that cross hosts (struct op_collective), where rows go to each host once. */
static int64_t crossing(const struct builder *b)
{
	const int64_t e = b->c->parallel.expert, stride = b->p->mesh.stride[DIM_EP], host = b->c->node_ranks;
	const bool whole_hosts = host > 0 && host % stride == 0 && e * stride > host && e * stride % host == 0;
	return goes_once(b) && whole_hosts ? elements_to(b, e * stride / host) : 0;
}

/* Those to ranks, where rows go to each rank once. */
static int64_t once(const struct builder *b) { return goes_once(b) ? elements_to(b, b->c->parallel.expert) : 0; }

/* fp8 travels with an fp32 scale for each 128 values (DeepSeek-V3, section 3.3.1). */
#define SCALED 128
static int64_t travelling(enum dtype dt, int64_t elements)
{
	return dt == DT_FP8 ? elements + elements / SCALED * (int64_t)sizeof(float) : elements;
}

/* A kind of rows on their way: how many columns each has, in which format, and their op's name. */
struct cargo {
	int64_t cols;
	enum dtype dt;
	const char *what;
	bool rides; /* in the messages of other rows, where these go once to a host: gates do (DeepEP) */
};

static int64_t sent_elements(const struct builder *b, struct cargo c)
{
	return travelling(c.dt, moe_slots(b) * c.cols);
}

static struct cargo rows_of(const struct builder *b, enum dtype dt, const char *what)
{
	return (struct cargo){moe_width(b), dt, what, false};
}

static struct cargo gates_of(const char *what) { return (struct cargo){1, DT_FP32, what, true}; }

/* place: where a block that recomputes op by op saves what arrives; SAVED_COUNT: nowhere. */
static int32_t exchange(struct builder *b, int32_t buffer, struct cargo c, enum saved_place place)
{
	const int32_t saved = place < SAVED_COUNT ? saved_buffer(b, place) : NONE;
	if (b->c->parallel.expert == 1 || saved != NONE || (c.rides && goes_once(b)))
		return saved != NONE ? saved : buffer;
	const int64_t n = sent_elements(b, c);
	struct op op = build_collective(b, COLL_ALLTOALL, DIM_EP, LANE_MODEL_COMM, c.dt, n, c.what, NONE);
	op.collective.crossing = travelling(c.dt, crossing(b));
	op.collective.once = travelling(c.dt, once(b));
	if (b->c->parallel.expert_dispatch == DISPATCH_DEEPEP)
		op.collective.rows = once(b) / moe_width(b);
	int32_t out = build_buffer(b, COMP_ACTIVATIONS, c.dt, n, false);
	build_on(b, &op, buffer, out);
	return place < SAVED_COUNT ? save_buffer(b, place, out) : out;
}

/* Among the ranks that cut an expert. */
static int32_t exchange_cut(struct builder *b, enum collective coll, int32_t buffer, struct cargo c)
{
	if (b->c->parallel.expert_tensor == 1)
		return buffer;
	const int64_t part = sent_elements(b, c), n = b->c->parallel.expert_tensor * part;
	int32_t out = build_buffer(b, COMP_ACTIVATIONS, c.dt, coll == COLL_REDUCE_SCATTER ? part : n, false);
	build_on(b, made_op(build_collective(b, coll, DIM_ETP, LANE_MODEL_COMM, c.dt, n, c.what, NONE)), buffer, out);
	return out;
}

static void take_turns(struct builder *b)
{
	if (moe_senders(b) > 1)
		build_take_turns(b);
}

/* Swaps [outer, inner, a rank's slots of an expert] to [inner, outer, ...]: by rank or by expert first. */
static int32_t swap(struct builder *b, int32_t buffer, struct cargo c, int64_t outer, int64_t inner)
{
	if (goes_once(b) && moe_senders(b) > 1)
		return buffer;
	return build_swap(b, "by expert", buffer, c.dt, outer, inner, moe_capacity(b) * c.cols);
}

/* Returns fp8 as activations: as it is to products in fp8, which read nothing else. */
static int32_t widened(struct builder *b, int32_t narrow, const char *what)
{
	if (narrow_experts(b) && b->c->train.dtype == DT_FP8) {
		narrow_is_own(b, view_of(narrow));
		return narrow;
	}
	int32_t wide = build_act(b, moe_received_slots(b), moe_width(b));
	build_cast(b, view_of(narrow), DT_FP8, view_of(wide), b->act, moe_received_slots(b) * moe_width(b), what);
	return wide;
}

int32_t moe_to_experts(struct builder *b, int32_t slots, const char *what, enum saved_place place)
{
	const bool fp8 = b->c->parallel.dispatch_dtype == DT_FP8 && moe_senders(b) > 1;
	const struct cargo c = rows_of(b, fp8 ? DT_FP8 : b->act, what);
	int32_t sent = slots;
	if (fp8) {
		sent = build_buffer(b, COMP_ACTIVATIONS, c.dt, sent_elements(b, c), false);
		build_cast(b, view_of(slots), b->act, view_of(sent), c.dt, moe_slots(b) * c.cols, what);
	}
	const int32_t received = exchange_cut(b, COLL_ALL_GATHER, exchange(b, sent, c, place), c);
	take_turns(b);
	const int32_t sorted = swap(b, received, c, moe_senders(b), moe_local_experts(b));
	return fp8 ? widened(b, sorted, what) : sorted;
}

int32_t moe_from_experts(struct builder *b, int32_t rows, const char *what, enum saved_place place)
{
	const struct cargo c = rows_of(b, b->act, what);
	const int32_t sorted = swap(b, rows, c, moe_local_experts(b), moe_senders(b));
	const int32_t back = exchange(b, exchange_cut(b, COLL_REDUCE_SCATTER, sorted, c), c, place);
	take_turns(b);
	return back;
}

int32_t moe_gates_to_experts(struct builder *b, const struct moe_acts *a)
{
	const struct cargo c = gates_of("gates");
	struct op op = build_new(b, OP_DISPATCH, "gates");
	op.dtype = op.out_dtype = DT_FP32;
	op.dispatch.rows = b->rows * b->m->experts_per_token;
	op.dispatch.cols = op.dispatch.choices = 1;
	op.dispatch.slots = moe_slots(b);
	int32_t sent = build_fp32(b, moe_slots(b));
	build_on(b, &op, a->gates, a->taken, sent);
	const int32_t received = exchange_cut(b, COLL_ALL_GATHER, exchange(b, sent, c, SAVED_COUNT), c);
	return swap(b, received, c, moe_senders(b), moe_local_experts(b));
}

int32_t moe_gates_from_experts(struct builder *b, int32_t dweights)
{
	const struct cargo c = gates_of("gates grad");
	const int32_t sorted = swap(b, dweights, c, moe_local_experts(b), moe_senders(b));
	return exchange(b, exchange_cut(b, COLL_REDUCE_SCATTER, sorted, c), c, SAVED_COUNT);
}
