#include "sim/search_space.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS_LEAST 1024   /* of a sequence, on a rank of context parallelism */
#define MICRO_BATCH_ALL 8   /* every divisor up to here */

static bool is_power_of_two(int64_t n)
{
	return n > 0 && (n & (n - 1)) == 0;
}

static bool held(const struct search_space *s, enum plan_key k)
{
	return s->held >> k & 1;
}

/* `n` is what the config has, or the key is free. */
static bool may_be(const struct search_space *s, enum plan_key k, int64_t n)
{
	return !held(s, k) || (int64_t)plan_get(&s->start, k) == n;
}

struct walker {
	struct search_space *s;
	struct shape now;
	int64_t data, micro_batches;
	enum status st;
	struct error *e;
};

/* Of the keys of a shape, how many the config has otherwise. */
static int32_t apart(const struct search_space *s, const struct shape *x)
{
	const struct parallel *p = &s->start.parallel;
	return (x->tensor != p->tensor) + (x->pipeline != p->pipeline) + (x->chunks != p->virtual_stages) + (x->context != p->context) + (x->expert != p->expert) + (x->micro_batch != s->start.train.micro_batch) +
	       (x->strategy != (int)p->strategy) + (x->schedule != (int)p->schedule) + (x->recompute != (int)s->start.train.recompute) + (x->recompute_layers != s->start.train.recompute_layers) +
	       (x->sequence_parallel != p->sequence_parallel) + (x->tensor_overlap != p->tensor_overlap) + (x->reshard != p->reshard_after_forward);
}

static void push(struct walker *w)
{
	w->now.apart = apart(w->s, &w->now);
	if (!w->st && !vec_push(&w->s->shapes, w->now))
		w->st = error_nomem(w->e, "plans");
}

/* ---- from the innermost key outwards ---- */

static void each_recompute(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t all = s->start.model.layers, half = all / 2, kept = s->start.train.recompute_layers;
	for (int r = 0; r < REC_COUNT; r++) {
		const bool nothing = r == REC_SELECTIVE && s->start.train.attention == ATT_FLASH; /* which keeps no scores */
		if (!may_be(s, PLAN_RECOMPUTE, r) || (nothing && !held(s, PLAN_RECOMPUTE)))
			continue;
		w->now.recompute = (int8_t)r;
		w->now.recompute_layers = AUTO;
		if (held(s, PLAN_RECOMPUTE_LAYERS))
			w->now.recompute_layers = r == REC_NONE ? AUTO : (int32_t)kept;
		push(w);
		if (r == REC_NONE || held(s, PLAN_RECOMPUTE_LAYERS))
			continue;
		if (half > 0 && half < all && w->now.pipeline == 1) {
			w->now.recompute_layers = (int32_t)half;
			push(w);
		}
		if (kept > 0 && kept < all && (kept != half || w->now.pipeline > 1)) {
			w->now.recompute_layers = (int32_t)kept;
			push(w);
		}
	}
}

static void each_micro_batch(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t start = s->start.train.micro_batch, share = s->start.train.global_batch / w->data;
	if (s->start.train.global_batch % w->data != 0)
		return;
	for (int64_t mb = 1; mb <= share; mb++) {
		const bool usual = mb <= MICRO_BATCH_ALL || is_power_of_two(mb) || mb == start;
		if (!usual || share % mb != 0 || !may_be(s, PLAN_MICRO_BATCH, mb))
			continue;
		w->now.micro_batch = (int32_t)mb;
		w->micro_batches = share / mb;
		if (w->now.schedule == SCHED_INTERLEAVED && w->micro_batches % w->now.pipeline != 0)
			continue;
		each_recompute(w);
	}
}

static void each_reshard(struct walker *w)
{
	const bool units = w->now.strategy == STRAT_FSDP || w->now.strategy == STRAT_HSDP;
	for (int kept = 0; kept < 2; kept++) {
		w->now.reshard = !kept;
		if (units ? may_be(w->s, PLAN_RESHARD_AFTER_FORWARD, !kept) : !kept)
			each_micro_batch(w);
	}
}

static void each_shard(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t data = w->data, node = s->start.node_ranks / (w->now.tensor * w->now.context);
	w->now.shard = AUTO;
	if (w->now.strategy != STRAT_HSDP || held(s, PLAN_SHARD)) {
		w->now.shard = w->now.strategy == STRAT_HSDP ? (int32_t)s->start.parallel.shard : AUTO;
		each_reshard(w);
		return;
	}
	for (int64_t n = 2; n < data; n++)
		if (data % n == 0 && (is_power_of_two(n) || n == node)) {
			w->now.shard = (int32_t)n;
			each_reshard(w);
		}
}

static void each_strategy(struct walker *w)
{
	const struct search_space *s = w->s;
	const enum strategy start = s->start.parallel.strategy;
	const bool one = w->data * w->now.context == 1, compresses = s->start.train.grad_compression != COMP_NONE;
	for (int strategy = 0; strategy < STRAT_COUNT; strategy++) {
		const bool replicated = strategy != STRAT_NONE && !one, alone = one && strategy == (start == STRAT_NONE ? STRAT_NONE : STRAT_DDP);
		if (held(s, PLAN_STRATEGY) ? strategy != (int)start : !replicated && !alone)
			continue;
		const bool per_micro = strategy == STRAT_ZERO2 || strategy == STRAT_FSDP || strategy == STRAT_HSDP; /* communicates in each micro-batch */
		if (compresses && strategy != STRAT_DDP) /* a key of ddp's */
			continue;
		if (per_micro && w->now.pipeline > 1 && (strategy != (int)start || s->start.parallel.pipeline == 1)) {
			w->s->left_cuts = true;
			continue;
		}
		w->now.strategy = (int8_t)strategy;
		each_shard(w);
	}
}

static void each_expert(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t experts = s->start.model.experts, ranks = w->data * w->now.tensor * w->now.context;
	for (int64_t n = 1; n <= (experts > 0 ? experts : 1); n++)
		if ((n == 1 || (experts % n == 0 && ranks % n == 0)) && may_be(s, PLAN_EXPERT, n)) {
			w->now.expert = (int32_t)n;
			each_strategy(w);
		}
}

static void each_schedule(struct walker *w)
{
	const struct search_space *s = w->s;
	static const enum schedule plain[] = {SCHED_1F1B, SCHED_GPIPE, SCHED_ZERO_BUBBLE};
	const int64_t stages = w->now.pipeline, layers = s->start.model.layers / stages;
	w->now.chunks = 1;
	for (size_t i = 0; i < sizeof plain / sizeof plain[0] && (stages > 1 || i == 0) && may_be(s, PLAN_VIRTUAL_STAGES, 1); i++)
		if (may_be(s, PLAN_SCHEDULE, plain[i]) || stages == 1) {
			w->now.schedule = (int8_t)plain[i];
			each_expert(w);
		}
	if (stages > 1 && s->start.parallel.schedule == SCHED_ZBV && s->start.model.layers % (2 * stages) == 0 && may_be(s, PLAN_SCHEDULE, SCHED_ZBV) && may_be(s, PLAN_VIRTUAL_STAGES, 2)) {
		w->now.schedule = SCHED_ZBV; /* each must be predicted: only where the config asks for it */
		w->now.chunks = 2;
		each_expert(w);
		w->now.chunks = 1;
	}
	for (int64_t chunks = 2; chunks <= layers && stages > 1 && may_be(s, PLAN_SCHEDULE, SCHED_INTERLEAVED); chunks++)
		if ((s->start.model.layers % (stages * chunks) == 0 || held(s, PLAN_VIRTUAL_STAGES)) && may_be(s, PLAN_VIRTUAL_STAGES, chunks)) {
			w->now.schedule = SCHED_INTERLEAVED;
			w->now.chunks = (int32_t)chunks;
			each_expert(w);
		}
}

static void each_pipeline(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t left = s->ranks / w->now.tensor / w->now.context;
	for (int64_t n = 1; n <= left && n <= s->start.model.layers; n++)
		if (left % n == 0 && may_be(s, PLAN_PIPELINE, n)) {
			w->now.pipeline = (int32_t)n;
			w->data = left / n;
			if (s->start.parallel.data == AUTO || s->start.parallel.data == w->data)
				each_schedule(w);
		}
}

static void each_context(struct walker *w)
{
	const struct search_space *s = w->s;
	const int64_t left = s->ranks / w->now.tensor;
	for (int64_t n = 1; n <= left; n++) {
		const bool usual = n == 1 || (is_power_of_two(n) && s->start.model.seq_len / n >= TOKENS_LEAST) || n == s->start.parallel.context;
		if (usual && left % n == 0 && may_be(s, PLAN_CONTEXT, n)) {
			w->now.context = (int32_t)n;
			each_pipeline(w);
		}
	}
}

static void each_sequence_parallel(struct walker *w)
{
	const struct search_space *s = w->s;
	const bool cut = w->now.tensor > 1;
	for (int sequence = 0; sequence < 2; sequence++) {
		if (cut ? !may_be(s, PLAN_SEQUENCE_PARALLEL, sequence) : sequence)
			continue;
		w->now.sequence_parallel = sequence;
		for (int overlap = 0; overlap < 2; overlap++) {
			if (sequence && s->start.parallel.tensor_overlap ? !may_be(s, PLAN_TENSOR_OVERLAP, overlap) : overlap)
				continue;
			w->now.tensor_overlap = overlap;
			each_context(w);
		}
	}
}

enum status search_space_create(const struct config *start, int64_t ranks, uint32_t held_keys, struct search_space *out, struct error *e)
{
	*out = (struct search_space){.start = *start, .ranks = ranks, .held = held_keys};
	struct walker w = {.s = out, .e = e};
	const struct model *m = &start->model;
	if (!plan_holds_data(start))
		out->start.parallel.data = AUTO;
	for (int64_t n = 1; n <= ranks && n <= m->heads; n++)
		if (ranks % n == 0 && m->heads % n == 0 && m->kv_heads % n == 0 && m->ffn_hidden % n == 0 && may_be(out, PLAN_TENSOR, n)) {
			w.now.tensor = (int32_t)n;
			if (n <= start->node_ranks || n == start->parallel.tensor)
				each_sequence_parallel(&w);
			else
				out->left_tensor = true;
		}
	return w.st;
}

void search_space_free(struct search_space *s)
{
	vec_free(&s->shapes);
}

/* ---- variants ---- */

static size_t add_value(double *list, size_t n, double value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == value)
			return n;
	list[n] = value;
	return n + 1;
}

/* The config's own value first. */
static size_t values_of(const struct search_space *s, enum plan_key k, const double *usual, size_t n_usual, double *out)
{
	size_t n = add_value(out, 0, plan_get(&s->start, k));
	for (size_t i = 0; i < n_usual && !held(s, k); i++)
		n = add_value(out, n, usual[i]);
	return n;
}

size_t search_variants(const struct search_space *s, const struct shape *shape, struct variant v[VARIANTS_MAX])
{
	static const double buckets[] = {25, 100}, ahead[] = {0, 1, 2};
	const struct parallel *p = &s->start.parallel;
	const struct variant start = {p->bucket_mb, p->prefetch, p->overlap};
	const bool units = shape->strategy == STRAT_FSDP || shape->strategy == STRAT_HSDP, alone = s->ranks == (int64_t)shape->tensor * shape->pipeline;
	double bucket[3], prefetch[4];
	size_t n = 0, n_buckets = values_of(s, PLAN_BUCKET_MB, buckets, 2, bucket), n_ahead = values_of(s, PLAN_PREFETCH, ahead, 3, prefetch);
	if (shape->strategy == STRAT_NONE || alone) {
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
				v[n++] = (struct variant){start.bucket_mb, (int64_t)prefetch[a], overlap};
	}
	return n;
}

/* A value that is the config's own stays as it was given, or not given. */
static void put(struct config *c, enum plan_key k, double value)
{
	if (plan_get(c, k) != value)
		plan_put(c, k, value);
}

void search_config(const struct search_space *s, const struct shape *shape, const struct variant *v, struct config *out)
{
	const bool units = shape->strategy == STRAT_FSDP || shape->strategy == STRAT_HSDP;
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
	else if (shape->strategy != STRAT_NONE)
		put(out, PLAN_BUCKET_MB, v->bucket_mb);
	if (shape->strategy != STRAT_NONE)
		put(out, PLAN_OVERLAP, v->overlap);
}
