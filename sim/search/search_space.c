#include "sim/search/search_space.h"

#include "base/array.h"
#include "step/stages.h"

#define TOKENS_LEAST 1024 /* of a sequence, on a rank of context parallelism */
#define MICRO_BATCH_ALL 8 /* every divisor up to here */

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

static bool held(const struct search_space *s, enum plan_key k) { return s->held >> k & 1; }

/* True when the key may take the value n: the key is free, or n is the config's own value. */
static bool may_be(const struct search_space *s, enum plan_key k, int64_t n)
{
	return !held(s, k) || (int64_t)plan_get(&s->start, k) == n;
}

struct enumerator {
	struct search_space *s;
	struct shape now;
	int64_t data; /* replicas */
	enum status st;
	struct error *e;
};

static bool is_of_variant(int k) { return k == PLAN_BUCKET_MB || k == PLAN_OVERLAP || k == PLAN_PREFETCH; }

/* Gives a key the value n, where it may take it, and goes on with the next keys. */
static void take(struct enumerator *en, enum plan_key k, int64_t n, void (*next)(struct enumerator *))
{
	if (!may_be(en->s, k, n))
		return;
	en->now.value[k] = (int32_t)n;
	next(en);
}

/* Gives a key both values, where it matters; else the first alone. */
static void each_way(struct enumerator *en, enum plan_key k, bool first, bool matters,
	void (*next)(struct enumerator *))
{
	en->now.value[k] = first;
	if (!matters) {
		next(en);
		return;
	}
	take(en, k, first, next);
	take(en, k, !first, next);
}

/* Returns the number of keys in which a shape differs from the config; shards count with their strategy. */
static int32_t keys_changed(const struct search_space *s, const struct shape *x)
{
	int32_t n = 0;
	for (int k = 0; k < PLAN_KEYS; k++)
		n += !is_of_variant(k) && k != PLAN_SHARD && x->value[k] != plan_get(&s->start, (enum plan_key)k);
	return n;
}

static void push(struct enumerator *en, int64_t recompute_layers)
{
	en->now.value[PLAN_RECOMPUTE_LAYERS] = (int32_t)recompute_layers;
	en->now.keys_changed = keys_changed(en->s, &en->now);
	if (!en->st && !vec_push(&en->s->shapes, en->now))
		en->st = error_nomem(en->e, "plans");
}

/* ---- from the innermost key outwards ---- */

static void each_recompute_layers(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t all = s->start.model.layers, half = all / 2, kept = s->start.train.recompute_layers;
	const bool none = en->now.value[PLAN_RECOMPUTE] == REC_NONE, flat = en->now.value[PLAN_PIPELINE] == 1,
		   only_kept = held(s, PLAN_RECOMPUTE_LAYERS);
	push(en, only_kept && !none ? kept : AUTO);
	if (none || only_kept)
		return;
	if (half > 0 && flat)
		push(en, half);
	if (kept > 0 && kept < all && (kept != half || !flat))
		push(en, kept);
}

static void each_recompute(struct enumerator *en)
{
	struct train selective = en->s->start.train;
	selective.recompute = REC_SELECTIVE;
	const bool some = train_recomputes(&selective, ~0); /* flash attention by itself keeps no scores */
	for (int r = 0; r < REC_COUNT; r++)
		if (r != REC_SELECTIVE || some || held(en->s, PLAN_RECOMPUTE))
			take(en, PLAN_RECOMPUTE, r, each_recompute_layers);
}

static void each_micro_batch(struct enumerator *en)
{
	const struct train *t = &en->s->start.train;
	const bool grouped = schedule_traits[en->now.value[PLAN_SCHEDULE]].grouped;
	const int64_t share = t->global_batch / en->data;
	if (t->global_batch % en->data != 0)
		return;
	for (int64_t mb = 1; mb <= share; mb++) {
		const bool usual = mb <= MICRO_BATCH_ALL || is_power_of_two(mb) || mb == t->micro_batch;
		if (usual && share % mb == 0 && (!grouped || share / mb % en->now.value[PLAN_PIPELINE] == 0))
			take(en, PLAN_MICRO_BATCH, mb, each_recompute);
	}
}

static bool has(const struct enumerator *en, unsigned traits)
{
	return strategy_has((enum strategy)en->now.value[PLAN_STRATEGY], traits);
}

static void each_reshard(struct enumerator *en)
{
	each_way(en, PLAN_RESHARD_AFTER_FORWARD, true, has(en, STRATEGY_UNITS), each_micro_batch);
}

/* The ranks that have each expert once; 1 without experts. */
static int64_t expert_ranks(const struct enumerator *en)
{
	return (int64_t)en->now.value[PLAN_EXPERT] * en->now.value[PLAN_EXPERT_TENSOR];
}

static void each_shard(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t data = en->data, cut = en->now.value[PLAN_TENSOR] * en->now.value[PLAN_CONTEXT],
		      node = s->start.node_ranks / cut, group = expert_ranks(en);
	if (!has(en, STRATEGY_REPLICAS) || held(s, PLAN_SHARD)) {
		en->now.value[PLAN_SHARD] = held(s, PLAN_SHARD) && has(en, STRATEGY_GROUPS)
		                                    ? (int32_t)s->start.parallel.shard
		                                    : AUTO;
		each_reshard(en);
		return;
	}
	for (int64_t n = 2; n < data; n++)
		if (data % n == 0 && cut * n % group == 0 && (is_power_of_two(n) || n == node))
			take(en, PLAN_SHARD, n, each_reshard);
}

static void each_strategy(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const enum strategy start = s->start.parallel.strategy,
			    alone = strategy_has(start, STRATEGY_REDUCES) ? STRAT_DDP : start;
	const bool one = en->data * en->now.value[PLAN_CONTEXT] == 1,
		   compresses = s->start.train.grad_compression != COMPRESS_NONE,
		   pipelined = en->now.value[PLAN_PIPELINE] > 1;
	for (int i = 0; i < STRAT_COUNT; i++) {
		const enum strategy strategy = (enum strategy)i;
		const bool usual = one ? strategy == alone : strategy_has(strategy, STRATEGY_REDUCES),
			   per_micro_batch = strategy_has(strategy, STRATEGY_CUTS_GRADIENTS),
			   overlaps = en->now.value[PLAN_EXPERT_OVERLAP],
			   each_reduces = per_micro_batch && (!pipelined || !strategy_has(strategy, STRATEGY_UNITS));
		if (!may_be(s, PLAN_STRATEGY, i) || (!usual && !held(s, PLAN_STRATEGY)) ||
			(compresses && !strategy_has(strategy, STRATEGY_COMPRESSES)) || (overlaps && each_reduces))
			continue;
		if (per_micro_batch && pipelined && (strategy != start || s->start.parallel.pipeline == 1))
			en->s->left_cuts = true;
		else
			take(en, PLAN_STRATEGY, i, each_shard);
	}
}

/* Exchanges hide behind another micro-batch's compute where a stage has one for each chunk, or is alone
 * (step/config/experts.c). */
static void each_expert_overlap(struct enumerator *en)
{
	const bool pairs = en->now.value[PLAN_PIPELINE] == 1 || schedule_traits[en->now.value[PLAN_SCHEDULE]].pairs;
	each_way(en, PLAN_EXPERT_OVERLAP, false, pairs && expert_ranks(en) > 1, each_strategy);
}

/* Experts whole, or cut as attention is (Megatron-LM's default). */
static void each_expert_tensor(struct enumerator *en)
{
	const struct config *start = &en->s->start;
	const int64_t ranks = en->data * en->now.value[PLAN_TENSOR] * en->now.value[PLAN_CONTEXT],
		      usual[] = {1, en->now.value[PLAN_TENSOR], start->parallel.expert_tensor};
	for (size_t i = 0; i < COUNT(usual); i++) {
		const bool again = (i > 0 && usual[i] == usual[0]) || (i > 1 && usual[i] == usual[1]),
			   divides = start->model.moe_ffn_hidden % usual[i] == 0 &&
		                     ranks % (usual[i] * en->now.value[PLAN_EXPERT]) == 0;
		if (!again && (usual[i] == 1 || (start->model.experts > 0 && divides)))
			take(en, PLAN_EXPERT_TENSOR, usual[i], each_expert_overlap);
	}
}

static void each_expert(struct enumerator *en)
{
	const int64_t experts = en->s->start.model.experts,
		      ranks = en->data * en->now.value[PLAN_TENSOR] * en->now.value[PLAN_CONTEXT];
	for (int64_t n = 1; n <= (experts > 0 ? experts : 1); n++)
		if (n == 1 || (experts % n == 0 && ranks % n == 0))
			take(en, PLAN_EXPERT, n, each_expert_tensor);
}

/* Chunks 1, 2, ... as far as the schedule takes them and the layers go. */
static void each_chunks(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const struct schedule_traits *t = &schedule_traits[en->now.value[PLAN_SCHEDULE]];
	const int64_t stages = en->now.value[PLAN_PIPELINE], layers = s->start.model.layers;
	for (int64_t n = t->chunks_least; n <= t->chunks_most && (n == 1 || n <= layers / stages); n++)
		if (n == 1 || layers % (stages * n) == 0 || (held(s, PLAN_VIRTUAL_STAGES) && t->grouped))
			take(en, PLAN_VIRTUAL_STAGES, n, each_expert);
}

/* 1f1b comes first: it wins ties. A schedule of chunks that splits the backward pass is predicted in full, so only a
 * config that has it asks for it. */
static void each_schedule(struct enumerator *en)
{
	en->now.value[PLAN_SCHEDULE] = SCHED_1F1B;
	if (en->now.value[PLAN_PIPELINE] == 1) {
		each_chunks(en);
		return;
	}
	take(en, PLAN_SCHEDULE, SCHED_1F1B, each_chunks);
	for (int i = 0; i < SCHED_COUNT; i++) {
		const bool weak = schedule_traits[i].splits_backward && schedule_traits[i].chunks_least > 1;
		if (i != SCHED_1F1B && (!weak || (int)en->s->start.parallel.schedule == i))
			take(en, PLAN_SCHEDULE, i, each_chunks);
	}
}

static void each_pipeline(struct enumerator *en)
{
	const struct config *start = &en->s->start;
	const int64_t left = en->s->ranks / en->now.value[PLAN_TENSOR] / en->now.value[PLAN_CONTEXT];
	for (int64_t n = 1; n <= left && n <= start->model.layers; n++) {
		en->data = left / n;
		if (left % n == 0 && (start->parallel.data == AUTO || start->parallel.data == en->data))
			take(en, PLAN_PIPELINE, n, each_schedule);
	}
}

static void each_context(struct enumerator *en)
{
	const struct config *start = &en->s->start;
	const int64_t left = en->s->ranks / en->now.value[PLAN_TENSOR];
	for (int64_t n = 1; n <= left; n++) {
		const bool usual = n == 1 || (is_power_of_two(n) && start->model.seq_len / n >= TOKENS_LEAST) ||
		                   n == start->parallel.context;
		if (usual && left % n == 0)
			take(en, PLAN_CONTEXT, n, each_pipeline);
	}
}

static void each_tensor_overlap(struct enumerator *en)
{
	const bool matters = en->now.value[PLAN_SEQUENCE_PARALLEL] && en->s->start.parallel.tensor_overlap;
	each_way(en, PLAN_TENSOR_OVERLAP, false, matters, each_context);
}

/* Experts beside tensor ranks need it (step/config/experts.c). */
static void each_sequence_parallel(struct enumerator *en)
{
	const bool cuts = en->now.value[PLAN_TENSOR] > 1;
	if (cuts && en->s->start.model.experts > 0)
		take(en, PLAN_SEQUENCE_PARALLEL, true, each_tensor_overlap);
	else
		each_way(en, PLAN_SEQUENCE_PARALLEL, false, cuts, each_tensor_overlap);
}

enum status search_space_create(const struct config *start, int64_t ranks, uint32_t held_keys, struct search_space *out,
	struct error *e)
{
	*out = (struct search_space){.start = *start, .ranks = ranks, .held = held_keys};
	struct enumerator en = {.s = out, .e = e};
	const struct model *m = &start->model;
	out->start.train.global_batch = config_global_batch(start, ranks);
	if (!plan_holds_data(start))
		out->start.parallel.data = AUTO;
	for (int64_t n = 1; n <= ranks && n <= m->heads; n++) {
		const bool given = n == start->parallel.tensor,
			   keys = m->kv_heads % n == 0 || (given && model_shares_kv_heads(m, n)),
			   divides = ranks % n == 0 && m->heads % n == 0 && keys && m->ffn_hidden % n == 0,
			   usual = n <= start->node_ranks || given;
		if (divides && usual)
			take(&en, PLAN_TENSOR, n, each_sequence_parallel);
		else if (divides && may_be(out, PLAN_TENSOR, n))
			out->left_tensor = true;
	}
	return en.st;
}

void search_space_free(struct search_space *s) { vec_free(&s->shapes); }

/* ---- variants ---- */

/* Fills the values of a key, the config's own first. Returns their number. */
static size_t values_of(const struct search_space *s, enum plan_key k, const double *usual, size_t n_usual, double *out)
{
	size_t n = 1;
	out[0] = plan_get(&s->start, k);
	for (size_t i = 0; i < n_usual && !held(s, k); i++)
		if (usual[i] != out[0])
			out[n++] = usual[i];
	return n;
}

size_t search_variants(const struct search_space *s, const struct shape *shape, struct variant v[VARIANTS_MAX])
{
	static const double buckets[] = {25 * MIB_B, 100 * MIB_B}, ahead[] = {0, 1, 2};
	const struct parallel *p = &s->start.parallel;
	const struct variant start = {p->bucket_B, p->prefetch, p->overlap};
	const enum strategy strategy = (enum strategy)shape->value[PLAN_STRATEGY];
	const bool alone = s->ranks == (int64_t)shape->value[PLAN_TENSOR] * shape->value[PLAN_PIPELINE];
	double value[4];
	size_t n = 0;
	if (!strategy_has(strategy, STRATEGY_REDUCES) || alone) {
		v[0] = start;
		return 1;
	}
	if (may_be(s, PLAN_OVERLAP, true) && strategy_has(strategy, STRATEGY_UNITS))
		for (size_t i = 0, all = values_of(s, PLAN_PREFETCH, ahead, COUNT(ahead), value); i < all; i++)
			v[n++] = (struct variant){start.bucket_B, (int64_t)value[i], true};
	const size_t n_buckets = values_of(s, PLAN_BUCKET_MB, buckets, COUNT(buckets), value);
	if (may_be(s, PLAN_OVERLAP, true) && !strategy_has(strategy, STRATEGY_UNITS))
		for (size_t i = 0; i < n_buckets; i++)
			v[n++] = (struct variant){value[i], start.prefetch, true};
	if (may_be(s, PLAN_OVERLAP, false))
		v[n++] = (struct variant){value[n_buckets - 1], start.prefetch, false};
	return n;
}

/* Keys that have their value already stay as they were given. */
void search_config(const struct search_space *s, const struct shape *shape, const struct variant *v, struct config *out)
{
	*out = s->start;
	if (out->parallel.pipeline != shape->value[PLAN_PIPELINE] ||
		out->parallel.virtual_stages != shape->value[PLAN_VIRTUAL_STAGES])
		stages_forget(&out->parallel);
	if (shape->value[PLAN_PIPELINE] == 1)
		out->parallel.count_ends = ENDS_AUTO; /* refused there */
	if (!shape->value[PLAN_SEQUENCE_PARALLEL])
		out->parallel.tensor_overlap = false;
	if (!held(s, PLAN_SHARD) || !strategy_has((enum strategy)shape->value[PLAN_STRATEGY], STRATEGY_GROUPS))
		out->parallel.replicate = AUTO;
	if (shape->value[PLAN_RECOMPUTE] != REC_SELECTIVE)
		out->train.recompute_modules = out->train.recompute_saves = AUTO;
	if (shape->value[PLAN_RECOMPUTE] != REC_FULL)
		out->train.recompute_early_stop = TRI_AUTO;
	if (!strategy_cuts_states_alone((enum strategy)shape->value[PLAN_STRATEGY]) || !v->overlap)
		out->parallel.gather_overlap = TRI_AUTO;
	for (int i = 0; i < PLAN_KEYS; i++) {
		const enum plan_key k = (enum plan_key)i;
		const double value = k == PLAN_BUCKET_MB  ? v->bucket_B
		                     : k == PLAN_PREFETCH ? (double)v->prefetch
		                     : k == PLAN_OVERLAP  ? v->overlap
		                                          : shape->value[k];
		if ((k == PLAN_SHARD || plan_key_used(k, (enum strategy)shape->value[PLAN_STRATEGY])) &&
			plan_get(out, k) != value)
			plan_put(out, k, value);
	}
}
