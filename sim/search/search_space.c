#include "sim/search/search_space.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

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
	int64_t data, micro_batches;
	enum status st;
	struct error *e;
};

/* Returns the number of keys in which a shape differs from the config. */
static int32_t keys_changed(const struct search_space *s, const struct shape *x)
{
	const struct parallel *p = &s->start.parallel;
	return (x->tensor != p->tensor) + (x->pipeline != p->pipeline) + (x->chunks != p->virtual_stages) +
	       (x->context != p->context) + (x->expert != p->expert) + (x->micro_batch != s->start.train.micro_batch) +
	       (x->strategy != (int)p->strategy) + (x->schedule != (int)p->schedule) +
	       (x->recompute != (int)s->start.train.recompute) +
	       (x->recompute_layers != s->start.train.recompute_layers) +
	       (x->sequence_parallel != p->sequence_parallel) + (x->tensor_overlap != p->tensor_overlap) +
	       (x->reshard != p->reshard_after_forward);
}

static void push(struct enumerator *en)
{
	en->now.keys_changed = keys_changed(en->s, &en->now);
	if (!en->st && !vec_push(&en->s->shapes, en->now))
		en->st = error_nomem(en->e, "plans");
}

/* ---- from the innermost key outwards ---- */

static void each_recompute(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t all = s->start.model.layers, half = all / 2, kept = s->start.train.recompute_layers;
	for (int r = 0; r < REC_COUNT; r++) {
		const bool nothing = r == REC_SELECTIVE &&
		                     s->start.train.attention == ATT_FLASH; /* which keeps no scores */
		if (!may_be(s, PLAN_RECOMPUTE, r) || (nothing && !held(s, PLAN_RECOMPUTE)))
			continue;
		en->now.recompute = (int8_t)r;
		en->now.recompute_layers = AUTO;
		if (held(s, PLAN_RECOMPUTE_LAYERS))
			en->now.recompute_layers = r == REC_NONE ? AUTO : (int32_t)kept;
		push(en);
		if (r == REC_NONE || held(s, PLAN_RECOMPUTE_LAYERS))
			continue;
		if (half > 0 && half < all && en->now.pipeline == 1) {
			en->now.recompute_layers = (int32_t)half;
			push(en);
		}
		if (kept > 0 && kept < all && (kept != half || en->now.pipeline > 1)) {
			en->now.recompute_layers = (int32_t)kept;
			push(en);
		}
	}
}

static void each_micro_batch(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t start = s->start.train.micro_batch, share = s->start.train.global_batch / en->data;
	if (s->start.train.global_batch % en->data != 0)
		return;
	for (int64_t mb = 1; mb <= share; mb++) {
		const bool usual = mb <= MICRO_BATCH_ALL || is_power_of_two(mb) || mb == start;
		if (!usual || share % mb != 0 || !may_be(s, PLAN_MICRO_BATCH, mb))
			continue;
		en->now.micro_batch = (int32_t)mb;
		en->micro_batches = share / mb;
		if (schedule_traits[en->now.schedule].grouped && en->micro_batches % en->now.pipeline != 0)
			continue;
		each_recompute(en);
	}
}

static void each_reshard(struct enumerator *en)
{
	const bool units = strategy_has((enum strategy)en->now.strategy, STRATEGY_UNITS);
	for (int kept = 0; kept < 2; kept++) {
		en->now.reshard = !kept;
		if (units ? may_be(en->s, PLAN_RESHARD_AFTER_FORWARD, !kept) : !kept)
			each_micro_batch(en);
	}
}

static void each_shard(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t data = en->data, node = s->start.node_ranks / (en->now.tensor * en->now.context);
	const bool replicas = strategy_has((enum strategy)en->now.strategy, STRATEGY_REPLICAS);
	en->now.shard = AUTO;
	if (!replicas || held(s, PLAN_SHARD)) {
		en->now.shard = replicas ? (int32_t)s->start.parallel.shard : AUTO;
		each_reshard(en);
		return;
	}
	for (int64_t n = 2; n < data; n++)
		if (data % n == 0 && (is_power_of_two(n) || n == node)) {
			en->now.shard = (int32_t)n;
			each_reshard(en);
		}
}

static void each_strategy(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const enum strategy start = s->start.parallel.strategy;
	const bool one = en->data * en->now.context == 1, compresses = s->start.train.grad_compression != COMPRESS_NONE;
	const enum strategy alone = strategy_has(start, STRATEGY_REDUCES) ? STRAT_DDP : start;
	for (int i = 0; i < STRAT_COUNT; i++) {
		const enum strategy strategy = (enum strategy)i;
		const bool usual = one ? strategy == alone : strategy_has(strategy, STRATEGY_REDUCES);
		if (held(s, PLAN_STRATEGY) ? strategy != start : !usual)
			continue;
		const bool per_micro_batch = strategy_has(strategy, STRATEGY_CUTS_GRADIENTS);
		if (compresses && !strategy_has(strategy, STRATEGY_COMPRESSES))
			continue;
		if (per_micro_batch && en->now.pipeline > 1 && (strategy != start || s->start.parallel.pipeline == 1)) {
			en->s->left_cuts = true;
			continue;
		}
		en->now.strategy = (int8_t)strategy;
		each_shard(en);
	}
}

static void each_expert(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t experts = s->start.model.experts, ranks = en->data * en->now.tensor * en->now.context;
	for (int64_t n = 1; n <= (experts > 0 ? experts : 1); n++)
		if ((n == 1 || (experts % n == 0 && ranks % n == 0)) && may_be(s, PLAN_EXPERT, n)) {
			en->now.expert = (int32_t)n;
			each_strategy(en);
		}
}

/* A schedule with chunks 1, 2, ... as far as it takes them and the layers go. */
static void each_chunks(struct enumerator *en, enum schedule kind)
{
	const struct search_space *s = en->s;
	const struct schedule_traits *t = &schedule_traits[kind];
	const int64_t stages = en->now.pipeline, layers = s->start.model.layers;
	for (int64_t n = t->chunks_least; n <= t->chunks_most && (n == 1 || n <= layers / stages); n++) {
		const bool even = n == 1 || layers % (stages * n) == 0 || (held(s, PLAN_VIRTUAL_STAGES) && t->grouped);
		if (!even || !may_be(s, PLAN_VIRTUAL_STAGES, n))
			continue;
		en->now.schedule = (int8_t)kind;
		en->now.chunks = (int32_t)n;
		each_expert(en);
	}
}

/* 1f1b comes first: it wins ties. A schedule that turns back has a weak lower bound and is predicted in full, so only a
 * config that has it asks for it. */
static void each_schedule(struct enumerator *en)
{
	const struct search_space *s = en->s;
	if (en->now.pipeline == 1 || may_be(s, PLAN_SCHEDULE, SCHED_1F1B))
		each_chunks(en, SCHED_1F1B);
	for (int i = 0; i < SCHED_COUNT && en->now.pipeline > 1; i++) {
		const enum schedule kind = (enum schedule)i;
		const bool asked = kind != SCHED_1F1B &&
		                   (!schedule_traits[kind].turns_back || s->start.parallel.schedule == kind);
		if (asked && may_be(s, PLAN_SCHEDULE, kind))
			each_chunks(en, kind);
	}
}

static void each_pipeline(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t left = s->ranks / en->now.tensor / en->now.context;
	for (int64_t n = 1; n <= left && n <= s->start.model.layers; n++)
		if (left % n == 0 && may_be(s, PLAN_PIPELINE, n)) {
			en->now.pipeline = (int32_t)n;
			en->data = left / n;
			if (s->start.parallel.data == AUTO || s->start.parallel.data == en->data)
				each_schedule(en);
		}
}

static void each_context(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const int64_t left = s->ranks / en->now.tensor;
	for (int64_t n = 1; n <= left; n++) {
		const bool usual = n == 1 || (is_power_of_two(n) && s->start.model.seq_len / n >= TOKENS_LEAST) ||
		                   n == s->start.parallel.context;
		if (usual && left % n == 0 && may_be(s, PLAN_CONTEXT, n)) {
			en->now.context = (int32_t)n;
			each_pipeline(en);
		}
	}
}

static void each_sequence_parallel(struct enumerator *en)
{
	const struct search_space *s = en->s;
	const bool cut = en->now.tensor > 1;
	for (int sequence = 0; sequence < 2; sequence++) {
		if (cut ? !may_be(s, PLAN_SEQUENCE_PARALLEL, sequence) : sequence)
			continue;
		en->now.sequence_parallel = sequence;
		for (int overlap = 0; overlap < 2; overlap++) {
			if (sequence && s->start.parallel.tensor_overlap ? !may_be(s, PLAN_TENSOR_OVERLAP, overlap)
									 : overlap)
				continue;
			en->now.tensor_overlap = overlap;
			each_context(en);
		}
	}
}

enum status search_space_create(const struct config *start, int64_t ranks, uint32_t held_keys, struct search_space *out,
	struct error *e)
{
	*out = (struct search_space){.start = *start, .ranks = ranks, .held = held_keys};
	struct enumerator en = {.s = out, .e = e};
	const struct model *m = &start->model;
	if (!plan_holds_data(start))
		out->start.parallel.data = AUTO;
	for (int64_t n = 1; n <= ranks && n <= m->heads; n++)
		if (ranks % n == 0 && m->heads % n == 0 && m->kv_heads % n == 0 && m->ffn_hidden % n == 0 &&
			may_be(out, PLAN_TENSOR, n)) {
			en.now.tensor = (int32_t)n;
			if (n <= start->node_ranks || n == start->parallel.tensor)
				each_sequence_parallel(&en);
			else
				out->left_tensor = true;
		}
	return en.st;
}

void search_space_free(struct search_space *s) { vec_free(&s->shapes); }

/* ---- variants ---- */

static size_t add_value(double *list, size_t n, double value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == value)
			return n;
	list[n] = value;
	return n + 1;
}

/* Fills the values of a key, the config's own first. Returns their number. */
static size_t values_of(const struct search_space *s, enum plan_key k, const double *usual, size_t n_usual, double *out)
{
	size_t n = add_value(out, 0, plan_get(&s->start, k));
	for (size_t i = 0; i < n_usual && !held(s, k); i++)
		n = add_value(out, n, usual[i]);
	return n;
}

size_t search_variants(const struct search_space *s, const struct shape *shape, struct variant v[VARIANTS_MAX])
{
	static const double buckets[] = {25 * MIB_B, 100 * MIB_B}, ahead[] = {0, 1, 2};
	const struct parallel *p = &s->start.parallel;
	const struct variant start = {p->bucket_B, p->prefetch, p->overlap};
	const bool units = strategy_has((enum strategy)shape->strategy, STRATEGY_UNITS),
		   alone = s->ranks == (int64_t)shape->tensor * shape->pipeline;
	double bucket[3], prefetch[4];
	size_t n = 0, n_buckets = values_of(s, PLAN_BUCKET_MB, buckets, 2, bucket),
	       n_ahead = values_of(s, PLAN_PREFETCH, ahead, 3, prefetch);
	if (!strategy_has((enum strategy)shape->strategy, STRATEGY_REDUCES) || alone) {
		v[0] = start;
		return 1;
	}
	for (int i = 0; i < 2; i++) {
		const bool overlap = !i;
		if (!may_be(s, PLAN_OVERLAP, overlap))
			continue;
		if (!overlap)
			v[n++] = (struct variant){bucket[n_buckets - 1], start.prefetch, overlap};
		else if (!units)
			for (size_t b = 0; b < n_buckets; b++)
				v[n++] = (struct variant){bucket[b], start.prefetch, overlap};
		else
			for (size_t a = 0; a < n_ahead; a++)
				v[n++] = (struct variant){start.bucket_B, (int64_t)prefetch[a], overlap};
	}
	return n;
}

/* Sets a key unless it has the value already, so that the config's own value stays as it was given. */
static void put(struct config *c, enum plan_key k, double value)
{
	if (plan_get(c, k) != value)
		plan_put(c, k, value);
}

void search_config(const struct search_space *s, const struct shape *shape, const struct variant *v, struct config *out)
{
	const bool units = strategy_has((enum strategy)shape->strategy, STRATEGY_UNITS);
	*out = s->start;
	if (out->parallel.pipeline != shape->pipeline || out->parallel.virtual_stages != shape->chunks)
		out->parallel.n_layers_per_stage = 0;
	put(out, PLAN_STRATEGY, shape->strategy);
	put(out, PLAN_SHARD, shape->shard);
	put(out, PLAN_TENSOR, shape->tensor);
	put(out, PLAN_SEQUENCE_PARALLEL, shape->sequence_parallel);
	if (shape->sequence_parallel)
		put(out, PLAN_TENSOR_OVERLAP, shape->tensor_overlap);
	else
		out->parallel.tensor_overlap = false;
	put(out, PLAN_PIPELINE, shape->pipeline);
	put(out, PLAN_VIRTUAL_STAGES, shape->chunks);
	put(out, PLAN_SCHEDULE, shape->schedule);
	put(out, PLAN_CONTEXT, shape->context);
	put(out, PLAN_EXPERT, shape->expert);
	put(out, PLAN_MICRO_BATCH, shape->micro_batch);
	put(out, PLAN_RECOMPUTE, shape->recompute);
	put(out, PLAN_RECOMPUTE_LAYERS, shape->recompute_layers);
	if (units)
		put(out, PLAN_PREFETCH, (double)v->prefetch), put(out, PLAN_RESHARD_AFTER_FORWARD, shape->reshard);
	else if (strategy_has((enum strategy)shape->strategy, STRATEGY_BUCKETS))
		put(out, PLAN_BUCKET_MB, v->bucket_B);
	if (strategy_has((enum strategy)shape->strategy, STRATEGY_REDUCES))
		put(out, PLAN_OVERLAP, v->overlap);
}
