/* A layer of experts (step/program.h says how tokens are routed). Tokens travel to the ranks of their experts and back,
 * forward and backward: four exposed exchanges of all slots in a layer, as Megatron-LM's all-to-all dispatcher does
 * unless told to overlap. With sequence parallelism each tensor rank routes its own rows. Shared experts are one more
 * MLP, cut as the dense one is.
 *
 * Where parallel.expert_tensor ranks cut an expert, they gather one another's slots behind the exchange and scatter the
 * sums of their products before the exchange back (megatron/core/transformer/moe/token_dispatcher.py,
 * MoEAlltoAllTokenDispatcher: gather_from_sequence_parallel_region, reduce_scatter_to_sequence_parallel_region).
 *
 * parallel.expert_dispatch once_a_host: a row goes to each host of its experts once, to the rank of the sender's place
 * there, which passes it on inside the host, to each rank once; results are summed up on the way and come back as once
 * (DeepSeek-AI 2024, DeepSeek-V3, arXiv:2412.19437, section 3.2.2; https://github.com/deepseek-ai/DeepEP). The kernel
 * gathers the rows that it sends: they are put in the experts' order behind it alone, not before it, too.
 *
 * A token's result is the sum of its experts', each times its gate. The gate multiplies the expert's result, whose rows
 * then stay for its gradient; or the activation between the expert's products (train.expert_gates activation), where
 * gates travel beside their rows and results are just summed up: DeepSeek's and Megatron-Core's way since 0.12
 * (megatron/core/transformer/moe/experts.py, permuted_probs).
 *
 * model.moe_latent: experts are of rows that a product made narrower, and another makes wide again (NVIDIA 2025,
 * Nemotron 3; megatron/core/transformer/moe/moe_layer.py, fc1_latent_proj, fc2_latent_proj).
 */
#include "step/builder/blocks.h"

static bool weighs_early(const struct builder *b) { return b->c->stack.gates_activation; }

/* ---- the products ---- */

/* One product for each of this rank's experts, of the rows that it receives from all ranks of its group. */
static struct linear expert_linear(const struct builder *b, const char *what, int64_t out, int64_t in,
	enum param_kind w)
{
	return (struct linear){what, moe_senders(b) * moe_capacity(b), out, in, w, NO_PARAM, moe_local_experts(b)};
}

static int64_t expert_width(const struct builder *b) { return b->m->moe_ffn_hidden / b->c->parallel.expert_tensor; }

static struct linear expert_fc1(const struct builder *b)
{
	return expert_linear(b, "expert fc1", build_act_width(b, expert_width(b)), moe_width(b), PARAM_EXPERT_FC1_W);
}

static struct linear expert_fc2(const struct builder *b)
{
	return expert_linear(b, "expert fc2", moe_width(b), expert_width(b), PARAM_EXPERT_FC2_W);
}

static struct linear router_of(const struct builder *b)
{
	return (struct linear){"router", b->rows, b->m->experts, b->m->hidden, PARAM_ROUTER_W, NO_PARAM, 0};
}

static struct linear narrow_down(const struct builder *b)
{
	return (struct linear){"latent down", b->rows, b->m->moe_latent, b->m->hidden, PARAM_MOE_DOWN_W, NO_PARAM, 0};
}

static struct linear narrow_up(const struct builder *b)
{
	return (struct linear){"latent up", b->rows, b->m->hidden, b->m->moe_latent, PARAM_MOE_UP_W, NO_PARAM, 0};
}

static struct mlp_layers shared_mlp(const struct builder *b)
{
	struct mlp_layers shared = mlp_layers_of(b, b->m->shared_experts * b->m->moe_ffn_hidden / b->tensor,
		PARAM_SHARED_FC1_W, NO_PARAM, PARAM_SHARED_FC2_W, NO_PARAM);
	shared.again = build_recomputes_part(b, REC_MOE | REC_SHARED_EXPERTS);
	return shared;
}

static struct linear shared_gate_of(const struct builder *b)
{
	return (struct linear){"shared gate", b->rows, 1, b->m->hidden, PARAM_SHARED_GATE_W, NO_PARAM, 0};
}

/* ---- the bias of the router ---- */

void build_router_bias(struct builder *b)
{
	int64_t layers = 0;
	for (size_t i = 0; i < b->r->params.n; i++)
		layers += b->r->params.at[i].param.kind == PARAM_ROUTER_W;
	const int64_t n = layers * b->m->experts;
	if (!b->m->router_bias || n == 0 || b->st)
		return;
	int32_t bias = build_buffer(b, COMP_WEIGHTS, DT_FP32, n, true),
		loads = build_buffer(b, COMP_BUFFERS, DT_FP32, n, true);
	if (b->p->mesh.size[b->p->mesh.params] > 1)
		build_all_reduce(b, b->p->mesh.params, LANE_COMM, DT_FP32, n, view_of(loads), "router bias", NONE);
	struct op op = build_matrix(b, OP_ADD, "router bias", 1, n);
	op.dtype = op.out_dtype = DT_FP32;
	build_on(b, &op, bias, loads, NONE, bias);
}

/* ---- forward ---- */

static struct op routing_op(const struct builder *b, enum op_kind k)
{
	struct op op = build_new(b, k, "router");
	op.route.rows = b->rows;
	op.route.experts = b->m->experts;
	op.route.choices = b->m->experts_per_token;
	op.route.capacity = moe_capacity(b);
	return op;
}

static struct op slots_op(const struct builder *b, enum op_kind k, const char *what)
{
	struct op op = build_new(b, k, what);
	op.dispatch.rows = b->rows;
	op.dispatch.cols = moe_width(b);
	op.dispatch.slots = moe_slots(b);
	op.dispatch.choices = b->m->experts_per_token;
	return op;
}

static int32_t ids(struct builder *b, int64_t n) { return build_buffer(b, COMP_ACTIVATIONS, DT_INT32, n, false); }

static void route(struct builder *b, struct moe_acts *a, int32_t normed)
{
	const struct linear router = router_of(b);
	int64_t choices = b->rows * b->m->experts_per_token;
	a->logits = build_linear(b, &router, normed);
	a->gates = build_fp32(b, choices);
	a->slots = ids(b, choices);
	a->taken = ids(b, moe_slots(b));
	build_on(b, made_op(routing_op(b, OP_ROUTE)), a->logits, a->gates, a->slots, a->taken);
}

static void activate_experts(struct builder *b, struct acts *a, bool again)
{
	a->mlp.weights = a->moe.weights;
	build_activation(b, moe_received_slots(b), expert_width(b), &a->mlp, again);
}

/* The first product's kernel activates its result and leaves that in mxfp8, along both axes, beside the 16 bits that
 * the activation's gradient reads (train.fused_experts; NVIDIA/TransformerEngine
 * transformer_engine/pytorch/ops/fused/forward_grouped_mlp.py, ForwardGroupedMLP_CuTeGEMMSwiGLU_MXFP8: c_tensor,
 * d_tensor, d_col_tensor). What selective recomputation activates again, kernels of their own do. */
static void activate_in_product(struct builder *b, struct acts *a)
{
	b->in_product = b->c->train.fused_experts;
	activate_experts(b, a, build_recomputes_part(b, REC_MOE | REC_MOE_ACT));
	if (b->in_product)
		narrow_copy_of(b, view_of(a->mlp.g), moe_received_slots(b) * expert_width(b));
	b->in_product = false;
}

/* The kernel of the second product's input gradient reads what was activated, and leaves the gradient of that in mxfp8
 * alone (backward_grouped_mlp.py, BackwardGroupedMLP_CuTeGEMMDSwiGLU_MXFP8). */
static int32_t activate_back_in_product(struct builder *b, struct acts *a, int32_t dg)
{
	b->in_product = b->c->train.fused_experts;
	const int32_t dh = build_activation_grad(b, moe_received_slots(b), expert_width(b), &a->mlp, dg);
	if (b->in_product)
		narrow_copy_of(b, view_of(dh), moe_received_slots(b) * build_act_width(b, expert_width(b)));
	b->in_product = false;
	return dh;
}

/* The results are for the gradient of their gates, so a block that runs again stops before them where gates have been
 * multiplied already. */
static void experts_forward(struct builder *b, struct acts *a, int32_t rows)
{
	const struct linear fc1 = expert_fc1(b), fc2 = expert_fc2(b);
	int32_t sent = build_act(b, moe_slots(b), moe_width(b));
	build_on(b, made_op(slots_op(b, OP_DISPATCH, "dispatch")), rows, a->moe.taken, sent);
	a->moe.weights = weighs_early(b) ? moe_gates_to_experts(b, &a->moe) : NONE;
	a->moe.in = moe_to_experts(b, sent, "dispatch", SAVED_DISPATCH);
	a->mlp.h = build_linear(b, &fc1, a->moe.in);
	activate_in_product(b, a);
	if (!weighs_early(b) || !build_ends_early(b) || b->m->moe_latent > 0)
		a->moe.out = moe_from_experts(b, build_linear(b, &fc2, a->mlp.g), "combine", SAVED_COMBINE);
}

/* Appends out (+)= the sum of each token's slots. */
static void combine(struct builder *b, const struct moe_acts *a, const char *what, int32_t slots, int32_t gates,
	int32_t out, bool adds)
{
	struct op op = slots_op(b, OP_COMBINE, what);
	op.flags |= adds ? OP_ACCUMULATE : 0;
	build_on(b, &op, slots, a->slots, gates, out);
}

/* Adds the experts' results to `out`, or puts them there. Without one, as where a block that runs again ends early, it
 * stops behind what the backward pass reads. */
static void combine_results(struct builder *b, struct moe_acts *a, int32_t out, bool adds)
{
	const struct linear up = narrow_up(b);
	const int32_t gates = weighs_early(b) ? NONE : a->gates;
	if (b->m->moe_latent == 0) {
		if (out != NONE)
			combine(b, a, "combine", a->out, gates, out, adds);
		return;
	}
	a->summed = build_act(b, b->rows, b->m->moe_latent);
	combine(b, a, "combine", a->out, gates, a->summed, false);
	if (out == NONE)
		return;
	if (!adds) {
		build_linear_at(b, &up, a->summed, view_of(out));
		return;
	}
	const int32_t wide = build_linear(b, &up, a->summed);
	build_on(b, made_op(build_matrix(b, OP_ADD, "latent up", b->rows, b->m->hidden)), out, wide, NONE, out);
}

/* Returns the shared experts' result; NONE when recomputing. */
static int32_t shared_forward(struct builder *b, struct moe_acts *m, int32_t normed)
{
	const struct mlp_layers shared = shared_mlp(b);
	const struct linear gate = shared_gate_of(b);
	int32_t out = mlp_forward(b, &shared, &m->shared, normed, !build_ends_early(b));
	if (build_ends_early(b))
		return NONE;
	out = tp_reduce(b, out, "shared fc2");
	if (!b->m->shared_expert_gate)
		return out;
	m->shared_out = out;
	m->shared_gate = build_linear(b, &gate, normed);
	int32_t gated = build_rows(b);
	build_on(b, made_op(build_gate_op(b, OP_SIGMOID_GATE, "shared gate", b->rows, b->m->hidden, 1)), out,
		m->shared_gate, gated);
	return gated;
}

int32_t moe_forward(struct builder *b, struct acts *a, int32_t normed)
{
	const bool has_shared = b->m->shared_experts > 0;
	int32_t out = has_shared ? shared_forward(b, &a->moe, normed) : NONE;
	if (!has_shared && !build_ends_early(b))
		out = build_rows(b);
	const struct linear down = narrow_down(b);
	route(b, &a->moe, normed);
	experts_forward(b, a, b->m->moe_latent > 0 ? build_linear(b, &down, normed) : normed);
	combine_results(b, &a->moe, out, has_shared);
	if (weighs_early(b))
		a->moe.out = NONE; /* no gradient reads it */
	return out;
}

void moe_again_shared(struct builder *b, struct acts *a) { shared_forward(b, &a->moe, a->n2); }

/* ---- backward ---- */

/* Returns the gradient of the slots' rows; *dgates becomes that of their gates where these travelled. */
static int32_t experts_backward(struct builder *b, struct acts *a, int32_t dy, int32_t *dgates)
{
	const struct linear fc1 = expert_fc1(b), fc2 = expert_fc2(b);
	int32_t dout = moe_to_experts(b, dy, "combine grad", SAVED_COUNT), dg = build_linear_grad(b, &fc2, dout);
	if (build_recomputes_part(b, REC_MOE_ACT) && !build_recomputes_part(b, REC_MOE)) {
		mlp_restore_input(b, &a->mlp);
		b->recomputing = true;
		activate_experts(b, a, true);
		b->recomputing = false;
	}
	build_weight_grad(b, &fc2, dout, a->mlp.g);
	const int32_t dh = activate_back_in_product(b, a, dg);
	if (weighs_early(b))
		*dgates = moe_gates_from_experts(b, a->mlp.dweights);
	int32_t dx = build_linear_grad(b, &fc1, dh);
	build_weight_grad(b, &fc1, dh, a->moe.in);
	return moe_from_experts(b, dx, "dispatch grad", SAVED_COUNT);
}

/* The gradient of the normed rows by way of the router. */
static int32_t router_backward(struct builder *b, const struct acts *a, int32_t dgates)
{
	const struct linear router = router_of(b);
	const struct moe_acts *m = &a->moe;
	int32_t dlogits = build_act(b, router.rows, router.out);
	build_on(b, made_op(routing_op(b, OP_ROUTE_GRAD)), m->logits, m->gates, m->slots, dgates, dlogits);
	int32_t dn = build_linear_grad(b, &router, dlogits);
	build_weight_grad(b, &router, dlogits, a->n2);
	return dn;
}

/* Returns the gradient of the shared MLP's result, and adds that of the gate's input to dn. */
static int32_t shared_gate_backward(struct builder *b, const struct acts *a, int32_t dout, int32_t dn)
{
	const struct linear gate = shared_gate_of(b);
	int32_t dmlp = build_rows(b), dgate = build_act(b, b->rows, 1);
	build_on(b, made_op(build_gate_op(b, OP_SIGMOID_GATE_GRAD, "shared gate", b->rows, b->m->hidden, 1)), dout,
		a->moe.shared_out, a->moe.shared_gate, dmlp, dgate);
	int32_t by_gate = build_linear_grad(b, &gate, dgate);
	build_weight_grad(b, &gate, dgate, a->n2);
	build_on(b, made_op(build_matrix(b, OP_ADD, "shared gate grad", b->rows, b->m->hidden)), dn, by_gate, NONE, dn);
	return dmlp;
}

/* Returns the gradient of the experts' results by slot; *dgates becomes that of the gates where these multiply them. */
static int32_t combine_backward(struct builder *b, const struct moe_acts *m, int32_t dout, int32_t *dgates)
{
	const struct linear up = narrow_up(b);
	int32_t dy = build_act(b, moe_slots(b), moe_width(b)), dsum = dout;
	if (b->m->moe_latent > 0) {
		dsum = build_linear_grad(b, &up, dout);
		build_weight_grad(b, &up, dout, m->summed);
	}
	if (weighs_early(b)) {
		build_on(b, made_op(slots_op(b, OP_DISPATCH, "combine grad")), dsum, m->taken, dy);
		return dy;
	}
	*dgates = build_fp32(b, moe_slots(b));
	build_on(b, made_op(slots_op(b, OP_COMBINE_GRAD, "combine")), m->out, dsum, m->taken, m->gates, dy, *dgates);
	return dy;
}

/* Adds the gradient of the slots' rows to that of the normed ones. */
static void dispatch_backward(struct builder *b, const struct acts *a, int32_t dslots, int32_t dn)
{
	const struct linear down = narrow_down(b);
	if (b->m->moe_latent == 0) {
		combine(b, &a->moe, "dispatch", dslots, NONE, dn, true);
		return;
	}
	const int32_t dlatent = build_act(b, b->rows, b->m->moe_latent);
	combine(b, &a->moe, "dispatch", dslots, NONE, dlatent, false);
	const int32_t by_latent = build_linear_grad(b, &down, dlatent);
	build_weight_grad(b, &down, dlatent, a->n2);
	build_on(b, made_op(build_matrix(b, OP_ADD, "latent down grad", b->rows, b->m->hidden)), dn, by_latent, NONE,
		dn);
}

/* The router waits for the experts where its gates' gradients come from there. */
int32_t moe_backward(struct builder *b, struct acts *a, int32_t dout)
{
	struct moe_acts *m = &a->moe;
	const bool early = weighs_early(b);
	int32_t dgates = NONE, dn = NONE, dy = combine_backward(b, m, dout, &dgates);
	if (!early)
		dn = router_backward(b, a, dgates);
	const int32_t dslots = experts_backward(b, a, dy, &dgates);
	if (early)
		dn = router_backward(b, a, dgates);
	dispatch_backward(b, a, dslots, dn);
	if (b->m->shared_experts == 0)
		return dn;
	const struct mlp_layers shared = shared_mlp(b);
	int32_t dmlp = b->m->shared_expert_gate ? shared_gate_backward(b, a, dout, dn) : dout;
	int32_t dshared = mlp_backward(b, &shared, &m->shared, a->n2, dmlp);
	build_on(b, made_op(build_matrix(b, OP_ADD, "shared grad", b->rows, b->m->hidden)), dn, dshared, NONE, dn);
	return dn;
}
