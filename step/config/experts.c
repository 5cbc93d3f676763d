/* Mixtures of experts: what the plan of ranks must allow for them. */
#include <inttypes.h>

#include "step/config/keys.h"

/* The experts of a stage are dealt to its ranks side by side, so nothing else may stand between these, and neighbours
 * share them. */
static enum status check_places(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const int64_t size[DIM_COUNT] =
		{[DIM_TP] = p->tensor, [DIM_CP] = p->context, [DIM_EP] = 1, [DIM_DP] = p->data, [DIM_PP] = p->pipeline};
	int64_t seen = 1, before_pp = 1;
	bool ep_first = false, dp_seen = false;
	for (int i = 0; i < DIM_COUNT; i++) {
		enum mesh_dim d = p->order[i];
		ep_first |= d == DIM_EP && !dp_seen;
		dp_seen |= d == DIM_DP;
		before_pp = d == DIM_PP ? seen : before_pp;
		seen *= d == DIM_PP ? 1 : size[d];
	}
	if (p->expert > 1 && !ep_first)
		return config_error(c, KEY_parallel_order, e,
			"expert %" PRId64 " needs ep before dp (nearest: tp-cp-ep-dp-pp)", p->expert);
	if (p->pipeline > 1 && before_pp > 1 && before_pp < seen)
		return config_error(c, KEY_parallel_order, e,
			"experts are dealt to all ranks of a stage, and pp stands between these (nearest: "
			"tp-cp-ep-dp-pp)");
	return ST_OK;
}

int64_t config_expert_shard(const struct config *c, int64_t shard)
{
	const struct parallel *p = &c->parallel;
	while (shard < p->data && (p->data % shard != 0 || p->tensor * p->context * shard % p->expert != 0))
		shard++;
	return shard;
}

static enum status check_expert_groups(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	int64_t ranks = p->tensor * p->context * p->data;
	char near[NEAREST_MAX];
	if (c->model.experts % p->expert != 0)
		return config_error(c, KEY_parallel_expert, e,
			"%" PRId64 " does not divide the %" PRId64 " experts (nearest that do: %s)", p->expert,
			c->model.experts, nearest_divisors(c->model.experts, p->expert, near));
	if (ranks % p->expert != 0)
		return config_error(c, KEY_parallel_expert, e,
			"%" PRId64 " does not divide the %" PRId64
			" rank%s of a stage, tensor x context x data (nearest that do: %s)",
			p->expert, ranks, ranks == 1 ? "" : "s", nearest_divisors(ranks, p->expert, near));
	if (!strategy_has(p->strategy, STRATEGY_REDUCES) && p->expert != ranks)
		return config_error(c, KEY_parallel_strategy, e,
			"%s sums no gradients, and %" PRId64 " ranks hold the same experts (nearest: ddp)",
			strategy_name(p->strategy), ranks / p->expert);
	if (p->tensor * p->context * p->shard % p->expert != 0)
		return config_error(c, KEY_parallel_shard, e,
			"%" PRId64 " x tensor x context are %" PRId64
			" ranks, which hold no whole groups of expert %" PRId64 " (nearest: %" PRId64 ")",
			p->shard, p->tensor * p->context * p->shard, p->expert, config_expert_shard(c, p->shard));
	return check_places(c, e);
}

static enum status check_tensor_experts(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	const struct parallel *p = &c->parallel;
	int64_t shared = m->shared_experts * m->moe_ffn_hidden;
	char near[NEAREST_MAX];
	if (p->tensor > 1 && !p->sequence_parallel)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64
			" beside experts needs sequence_parallel: true, with which each rank sends them tokens of "
			"its own",
			p->tensor);
	if (shared % p->tensor != 0)
		return config_error(c, KEY_parallel_tensor, e,
			"%" PRId64 " does not divide the shared experts' width %" PRId64 " (nearest that do: %s)",
			p->tensor, shared, nearest_divisors(shared, p->tensor, near));
	return ST_OK;
}

/* Megatron-Core asks for chunks of stages, too: with them the forward pass runs two actions ahead of the next stage's,
 * and neither of a pair waits for the other. */
static enum status check_overlap(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	char names[STRATEGY_NAMES];
	if (!p->expert_overlap)
		return ST_OK;
	if (p->pipeline == 1 || p->schedule != SCHED_INTERLEAVED)
		return config_error(c, KEY_parallel_expert_overlap, e,
			"true needs pipeline of 2 or more with schedule: interleaved (nearest: false)");
	if (strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS))
		return config_error(c, KEY_parallel_strategy, e,
			"%s is not modelled yet with expert_overlap (accepted: %s)", strategy_name(p->strategy),
			strategy_names(0, STRATEGY_CUTS_GRADIENTS, names));
	return ST_OK;
}

enum status config_check_experts(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	enum status st;
	if (c->model.experts == 0)
		return p->expert > 1 || p->expert_overlap
		               ? config_error_key(c, p->expert > 1 ? KEY_parallel_expert : KEY_parallel_expert_overlap,
					 e, "not used without experts (model.experts)")
		               : ST_OK;
	if ((st = check_tensor_experts(c, e)) || (st = check_overlap(c, e)))
		return st;
	return p->tensor * p->expert > 1 ? check_expert_groups(c, e) : ST_OK;
}
