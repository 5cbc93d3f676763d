/* A layer of experts (step/program.h says how tokens are routed). Tokens travel to the ranks of their experts and back,
 * forward and backward: four exposed exchanges of all slots in a layer, as Megatron-LM's all-to-all dispatcher does
 * unless told to overlap. With sequence parallelism each tensor rank routes its own rows. Shared experts are one more
 * MLP, cut as the dense one is.
 */
#include "step/build.h"

int64_t moe_local_experts(const struct builder *b) { return b->m->experts / b->c->parallel.expert; }

static int64_t capacity(const struct builder *b) { return model_expert_capacity(b->m, b->rows); }

static int64_t slots_of(const struct builder *b) { return b->m->experts * capacity(b); }

/* Returns the rows that one expert receives from all ranks of its group. */
static int64_t expert_rows(const struct builder *b) { return b->c->parallel.expert * capacity(b); }

/* ---- to the experts and back ---- */

static int32_t exchange(struct builder *b, int32_t buffer, const char *what)
{
	int64_t elements = slots_of(b) * b->m->hidden;
	if (b->c->parallel.expert == 1)
		return buffer;
	int32_t arrived = build_act(b, slots_of(b), b->m->hidden, what);
	build_collective(b, COLL_ALLTOALL, RED_SUM, DIM_EP, LANE_MODEL_COMM, b->act, elements, view_of(buffer),
		view_of(arrived), what, NONE);
	return arrived;
}

/* Swaps [outer, inner, a rank's slots of an expert] to [inner, outer, ...]: by rank or by expert first. */
static int32_t swap(struct builder *b, int32_t buffer, int64_t outer, int64_t inner)
{
	if (outer == 1 || inner == 1)
		return buffer;
	struct op op = build_new(b, OP_SWAP, "by expert");
	int32_t swapped = build_act(b, slots_of(b), b->m->hidden, "slots");
	op.swap.outer = outer;
	op.swap.inner = inner;
	op.swap.cols = capacity(b) * b->m->hidden;
	build_op(b, op, (const struct view[]){view_of(buffer), view_of(swapped)});
	return swapped;
}

static int32_t to_experts(struct builder *b, int32_t slots, const char *what)
{
	return swap(b, exchange(b, slots, what), b->c->parallel.expert, moe_local_experts(b));
}

static int32_t from_experts(struct builder *b, int32_t rows, const char *what)
{
	return exchange(b, swap(b, rows, moe_local_experts(b), b->c->parallel.expert), what);
}

/* ---- forward ---- */

static struct op routing_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "router");
	op.route.rows = b->rows;
	op.route.experts = b->m->experts;
	op.route.choices = b->m->experts_per_token;
	op.route.capacity = capacity(b);
	return op;
}

static struct op slots_op(const struct builder *b, enum op_kind k, const char *what)
{
	struct op op = build_new(b, k, what);
	op.dispatch.rows = b->rows;
	op.dispatch.cols = b->m->hidden;
	op.dispatch.slots = slots_of(b);
	op.dispatch.choices = b->m->experts_per_token;
	return op;
}

static int32_t ids(struct builder *b, int64_t n, const char *what)
{
	return build_buffer(b, COMP_ACTIVATIONS, DT_INT32, n, what, false);
}

static void route(struct builder *b, struct moe_acts *a, int32_t normed)
{
	int64_t R = b->rows, E = b->m->experts, k = b->m->experts_per_token;
	a->logits = build_act(b, R, E, "router logits");
	build_linear(b, "router", R, E, b->m->hidden, normed, PARAM_ROUTER_W, PARAM_KIND_COUNT, a->logits);
	a->gates = build_fp32(b, R * k, "gates");
	a->slots = ids(b, R * k, "slots of tokens");
	a->taken = ids(b, slots_of(b), "tokens of slots");
	build_op(b, routing_op(b, OP_ROUTE),
		(const struct view[]){view_of(a->logits), view_of(a->gates), view_of(a->slots), view_of(a->taken)});
}

static void experts_forward(struct builder *b, struct acts *a, int32_t normed)
{
	int64_t rows = expert_rows(b), all = slots_of(b), F = b->m->moe_ffn_hidden, width = build_act_width(b, F),
		H = b->m->hidden;
	int32_t sent = build_act(b, all, H, "dispatched"), y = build_act(b, all, H, "expert fc2");
	build_op(b, slots_op(b, OP_DISPATCH, "dispatch"),
		(const struct view[]){view_of(normed), view_of(a->moe.taken), view_of(sent)});
	a->moe.in = to_experts(b, sent, "dispatch");
	a->mlp.h = build_act(b, all, width, "expert fc1");
	build_linear(b, "expert fc1", rows, width, H, a->moe.in, PARAM_EXPERT_FC1_W, PARAM_KIND_COUNT, a->mlp.h);
	build_activation(b, all, F, &a->mlp);
	build_linear(b, "expert fc2", rows, H, F, a->mlp.g, PARAM_EXPERT_FC2_W, PARAM_KIND_COUNT, y);
	a->moe.out = from_experts(b, y, "combine");
}

static struct mlp_shape shared_shape(const struct builder *b)
{
	return (struct mlp_shape){PARAM_SHARED_FC1_W, PARAM_KIND_COUNT, PARAM_SHARED_FC2_W, PARAM_KIND_COUNT,
		b->m->shared_experts * b->m->moe_ffn_hidden / b->tensor};
}

/* Appends out (+)= the sum of each token's slots. */
static void combine(struct builder *b, const struct moe_acts *a, const char *what, int32_t slots, int32_t gates,
	int32_t out, bool adds)
{
	struct op op = slots_op(b, OP_COMBINE, what);
	op.flags |= adds ? OP_ACCUMULATE : 0;
	build_op(b, op, (const struct view[]){view_of(slots), view_of(a->slots), view_of(gates), view_of(out)});
}

int32_t moe_forward(struct builder *b, struct acts *a, int32_t normed)
{
	const struct mlp_shape shared = shared_shape(b);
	const bool has_shared = b->m->shared_experts > 0;
	int32_t out = has_shared ? mlp_forward(b, &shared, &a->moe.shared, normed, !build_ends_early(b)) : NONE;
	if (!build_ends_early(b))
		out = has_shared ? tp_reduce(b, out, "shared fc2") : build_act(b, b->rows, b->m->hidden, "combined");
	route(b, &a->moe, normed);
	experts_forward(b, a, normed);
	if (build_ends_early(b))
		return NONE;
	combine(b, &a->moe, "combine", a->moe.out, a->moe.gates, out, has_shared);
	return out;
}

/* ---- backward ---- */

static int32_t experts_backward(struct builder *b, struct acts *a, int32_t dy)
{
	int64_t rows = expert_rows(b), all = slots_of(b), F = b->m->moe_ffn_hidden, width = build_act_width(b, F),
		H = b->m->hidden;
	int32_t dout = to_experts(b, dy, "combine grad"), dg = build_act(b, all, F, "act grad"),
		dx = build_act(b, all, H, "expert input grad");
	build_linear_grad(b, "expert fc2", rows, H, F, dout, PARAM_EXPERT_FC2_W, dg);
	build_weight_grad(b, "expert fc2", rows, H, F, dout, a->mlp.g, PARAM_EXPERT_FC2_W);
	int32_t dh = build_activation_grad(b, all, F, &a->mlp, dg);
	build_linear_grad(b, "expert fc1", rows, width, H, dh, PARAM_EXPERT_FC1_W, dx);
	build_weight_grad(b, "expert fc1", rows, width, H, dh, a->moe.in, PARAM_EXPERT_FC1_W);
	return from_experts(b, dx, "dispatch grad");
}

/* The gradient of the normed rows by way of the router. */
static int32_t router_backward(struct builder *b, const struct acts *a, int32_t dgates)
{
	int64_t R = b->rows, E = b->m->experts, H = b->m->hidden;
	const struct moe_acts *m = &a->moe;
	int32_t dlogits = build_act(b, R, E, "router logits grad"), dn = build_act(b, R, H, "mlp input grad");
	build_op(b, routing_op(b, OP_ROUTE_GRAD),
		(const struct view[]){view_of(m->logits), view_of(m->gates), view_of(m->slots), view_of(dgates),
			view_of(dlogits)});
	build_linear_grad(b, "router", R, E, H, dlogits, PARAM_ROUTER_W, dn);
	build_weight_grad(b, "router", R, E, H, dlogits, a->n2, PARAM_ROUTER_W);
	return dn;
}

int32_t moe_backward(struct builder *b, struct acts *a, int32_t dout)
{
	struct moe_acts *m = &a->moe;
	int32_t dy = build_act(b, slots_of(b), b->m->hidden, "combine grad"),
		dgates = build_fp32(b, slots_of(b), "gates grad");
	build_op(b, slots_op(b, OP_COMBINE_GRAD, "combine"),
		(const struct view[]){view_of(m->out), view_of(dout), view_of(m->taken), view_of(m->gates), view_of(dy),
			view_of(dgates)});
	int32_t dn = router_backward(b, a, dgates), dslots = experts_backward(b, a, dy);
	combine(b, m, "dispatch", dslots, NONE, dn, true);
	if (b->m->shared_experts == 0)
		return dn;
	const struct mlp_shape shared = shared_shape(b);
	int32_t dshared = mlp_backward(b, &shared, &m->shared, a->n2, dout);
	struct op op = build_new(b, OP_ADD, "shared grad");
	op.matrix.rows = b->rows;
	op.matrix.cols = b->m->hidden;
	build_op(b, op, (const struct view[]){view_of(dn), view_of(dshared), view_of(NONE), view_of(dn)});
	return dn;
}
