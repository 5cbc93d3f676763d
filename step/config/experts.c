/* Mixtures of experts: what the plan of ranks must allow for them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "step/config/keys.h"
#include "step/schedule.h"

#define EXPERT_TENSOR_TEXT 48

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

/* The ranks that have each expert once. */
static int64_t group_ranks(const struct parallel *p) { return p->expert * p->expert_tensor; }

int64_t config_expert_shard(const struct config *c, int64_t shard)
{
	const struct parallel *p = &c->parallel;
	while (shard < p->data && (p->data % shard != 0 || p->tensor * p->context * shard % group_ranks(p) != 0))
		shard++;
	return shard;
}

/* " x expert_tensor 2"; "" where it is 1. */
static const char *expert_tensor_text(const struct parallel *p, char buf[EXPERT_TENSOR_TEXT])
{
	buf[0] = '\0';
	if (p->expert_tensor > 1)
		snprintf(buf, EXPERT_TENSOR_TEXT, " x expert_tensor %" PRId64, p->expert_tensor);
	return buf;
}

static enum status check_expert_groups(const struct config *c, struct error *e)
{
	const struct model *m = &c->model;
	const struct parallel *p = &c->parallel;
	const int64_t ranks = p->tensor * p->context * p->data, shared = p->tensor * p->context * p->shard;
	char near[NEAREST_MAX], cut[EXPERT_TENSOR_TEXT];
	if (m->experts % p->expert != 0)
		return config_error(c, KEY_parallel_expert, e,
			"%" PRId64 " does not divide the %" PRId64 " experts (nearest that do: %s)", p->expert,
			m->experts, nearest_divisors(m->experts, p->expert, near));
	if (m->moe_ffn_hidden % p->expert_tensor != 0)
		return config_error(c, KEY_parallel_expert_tensor, e,
			"%" PRId64 " does not divide moe_ffn_hidden %" PRId64 " (nearest that do: %s)",
			p->expert_tensor, m->moe_ffn_hidden,
			nearest_divisors(m->moe_ffn_hidden, p->expert_tensor, near));
	if (ranks % p->expert_tensor != 0)
		return config_error(c, KEY_parallel_expert_tensor, e,
			"%" PRId64 " does not divide the %" PRId64
			" rank%s of a stage, tensor x context x data (nearest that do: %s)",
			p->expert_tensor, ranks, ranks == 1 ? "" : "s",
			nearest_divisors(ranks, p->expert_tensor, near));
	if (ranks % group_ranks(p) != 0)
		return config_error(c, KEY_parallel_expert, e,
			"%" PRId64 "%s does not divide the %" PRId64
			" rank%s of a stage, tensor x context x data (nearest that do: %s)",
			p->expert, expert_tensor_text(p, cut), ranks, ranks == 1 ? "" : "s",
			nearest_divisors(ranks / p->expert_tensor, p->expert, near));
	if (!strategy_has(p->strategy, STRATEGY_REDUCES) && group_ranks(p) != ranks)
		return config_error(c, KEY_parallel_strategy, e,
			"%s sums no gradients, and %" PRId64 " ranks hold the same experts (nearest: ddp)",
			strategy_name(p->strategy), ranks / group_ranks(p));
	if (shared % group_ranks(p) != 0 && config_is_given(c, KEY_parallel_replicate))
		return config_error_key(c, KEY_parallel_replicate, e,
			"%" PRId64 " groups have %" PRId64 " ranks each, which hold no whole groups of expert %" PRId64
			"%s (nearest: %" PRId64 ")",
			p->data / p->shard, shared, p->expert, expert_tensor_text(p, cut),
			p->data / config_expert_shard(c, p->shard));
	if (shared % group_ranks(p) != 0)
		return config_error(c, KEY_parallel_shard, e,
			"%" PRId64 " x tensor x context are %" PRId64
			" ranks, which hold no whole groups of expert %" PRId64 "%s (nearest: %" PRId64 ")",
			p->shard, shared, p->expert, expert_tensor_text(p, cut), config_expert_shard(c, p->shard));
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
 * and neither of a pair waits for the other. With one stage nothing waits. */
static enum status check_overlap(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	if (!p->expert_overlap)
		return ST_OK;
	if (p->pipeline > 1 && !schedule_traits[p->schedule].pairs)
		return config_error(c, KEY_parallel_expert_overlap, e,
			"true needs schedule: interleaved or dualpipev in a pipeline (nearest: false)");
	if (p->pipeline == 1 && strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS))
		return config_error(c, KEY_parallel_strategy, e,
			"%s is not modelled yet with expert_overlap and one stage (nearest: zero1)",
			strategy_name(p->strategy));
	if (parallel_reduces_each(p))
		return config_error(c, KEY_parallel_strategy, e,
			"%s is not modelled yet with expert_overlap (nearest: zero1, fsdp)",
			strategy_name(p->strategy));
	return ST_OK;
}

static enum status check_unused(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	const struct {
		enum key_id id;
		bool given;
	} keys[] = {{KEY_parallel_expert, p->expert > 1}, {KEY_parallel_expert_tensor, p->expert_tensor > 1},
		{KEY_parallel_expert_overlap, p->expert_overlap}, {KEY_train_expert_loop, c->train.expert_loop},
		{KEY_train_wide_experts, c->train.wide_experts}, {KEY_train_fused_experts, c->train.fused_experts},
		{KEY_train_expert_gates, config_is_changed(c, KEY_train_expert_gates)},
		{KEY_train_expert_sums, config_is_changed(c, KEY_train_expert_sums)},
		{KEY_parallel_dispatch_dtype, config_is_changed(c, KEY_parallel_dispatch_dtype)},
		{KEY_parallel_expert_dispatch, config_is_changed(c, KEY_parallel_expert_dispatch)}};
	for (size_t i = 0; i < COUNT(keys); i++)
		if (keys[i].given)
			return config_error_key(c, keys[i].id, e, "not used without experts (model.experts)");
	return ST_OK;
}

/* Products of 16 bits read weights of 16 bits. */
static enum status check_wide(const struct config *c, struct error *e)
{
	if (!c->train.wide_experts)
		return ST_OK;
	if (!dtype_is_narrow(c->train.dtype))
		return config_error(c, KEY_train_wide_experts, e, "not used with %s products (train.dtype)",
			dtype_name(c->train.dtype));
	if (dtype_is_narrow(c->train.param_dtype))
		return config_error(c, KEY_train_wide_experts, e, "wants weights of 16 bits (train.param_dtype is %s)",
			dtype_name(c->train.param_dtype));
	if (c->parallel.gather_dtype == DT_FP8)
		return config_error(c, KEY_train_wide_experts, e,
			"wants weights of 16 bits (parallel.gather_dtype is %s)", dtype_name(c->parallel.gather_dtype));
	return ST_OK;
}

/* Transformer Engine's kernels multiply mxfp8, all experts at once, and keep their first product in 16 bits. */
static enum status check_fused(const struct config *c, struct error *e)
{
	if (!c->train.fused_experts)
		return ST_OK;
	if (c->train.dtype != DT_MXFP8 || c->train.wide_experts)
		return config_error(c, KEY_train_fused_experts, e, "goes with experts in mxfp8, not in %s",
			dtype_name(c->train.wide_experts ? DT_BF16 : c->train.dtype));
	if (c->train.expert_loop)
		return config_error(c, KEY_train_fused_experts, e, "not used with train.expert_loop");
	if (c->train.act_input_dtype == DT_FP8)
		return config_error(c, KEY_train_fused_experts, e, "not used with train.act_input_dtype fp8");
	return ST_OK;
}

enum status config_check_experts(const struct config *c, struct error *e)
{
	const struct parallel *p = &c->parallel;
	enum status st;
	if (c->model.experts == 0)
		return check_unused(c, e);
	const struct optimizer_traits *o = &optimizer_traits[c->train.optimizer];
	if ((o->orthogonal || o->factored) && p->expert_tensor > 1)
		return config_error(c, KEY_parallel_expert_tensor, e,
			"%" PRId64 " is not modelled yet with %s (accepted: 1)", p->expert_tensor, o->name);
	if (o->orthogonal && c->train.expert_loop)
		return config_error(c, KEY_train_expert_loop, e, "true is not modelled yet with %s (accepted: false)",
			o->name);
	if (c->train.expert_loop && c->train.cuda_graph)
		return config_error(c, KEY_train_expert_loop, e,
			"a replayed graph (train.cuda_graph) cannot wait for the host (accepted: false)");
	if ((st = check_wide(c, e)) || (st = check_fused(c, e)) || (st = check_tensor_experts(c, e)) ||
		(st = check_overlap(c, e)))
		return st;
	return p->tensor * group_ranks(p) > 1 ? check_expert_groups(c, e) : ST_OK;
}
