/* Plans without a pipeline: two short programs, extended by repeats of the layers and by micro-batches. */
#include "sim/search/evaluator.h"

#include <string.h>

/* ---- programs of fewer layers ---- */

#define FLAT_MICRO_BATCHES 2 /* the steady ones are like the second */

/* Returns the layers that repeat so often, with those of the plan that do not. */
static int64_t layers_of(const struct evaluator *v, int64_t repeats)
{
	return v->order.leading + v->order.rest + repeats * v->order.period;
}

static void flat_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out)
{
	evaluator_copy(out, c);
	out->model.layers = layers;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? layers : 0;
	out->micro_batches = c->micro_batches < micro_batches ? c->micro_batches : micro_batches;
	out->train.global_batch = out->micro_batches * c->train.micro_batch * c->parallel.data;
	if (strategy_has(c->parallel.strategy, STRATEGY_UNITS) && c->parallel.shard > 1)
		pieces_forget_buckets(out); /* a bucket is a unit, whatever the size that follows from the replicas */
}

static void static_config(const struct evaluator *v, int64_t repeats, struct config *out)
{
	flat_config(&v->plan, layers_of(v, repeats), 1, out);
	pieces_forget_micro_batch(out);
}

/* Layers of the shorter program; the longer has one more. Layers whose collectives are of several kinds (replicas
 * beside shards, context beside either) delay one another, which evens out only after more layers. */
#define FLAT_LAYERS 4
#define FLAT_LAYERS_MIXED 8

/* Returns the repeats that have at least so many layers. */
static int64_t repeats_for(const struct evaluator *v, int64_t layers)
{
	return (layers + v->order.period - 1) / v->order.period;
}

int64_t flat_repeats(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	const bool units = strategy_has(c->parallel.strategy, STRATEGY_UNITS);
	if (strategy_has(c->parallel.strategy, STRATEGY_REPLICAS) || c->parallel.context > 1)
		return repeats_for(v, FLAT_LAYERS_MIXED);
	return repeats_for(v, units ? 1 + (c->parallel.prefetch > 1 ? c->parallel.prefetch : 1) : FLAT_LAYERS);
}

/* ---- memory ---- */

/* Memory by repeats: whole_B + shard_B / ranks that share it. */
struct flat_memory {
	struct line whole_B, shard_B;
};

/* Sharded memory is measured on these two numbers of shards. */
static const int64_t fewer_shards = 8, more_shards = 64;

/* Where gradients come as activations go, the peak is no line over what shards divide. */
static bool is_cut(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return p->data >= fewer_shards && gradients_meet_activations(c) && p->context == 1 && c->model.experts == 0 &&
	       strategy_fits(p->strategy, STRATEGY_CUTS_GRADIENTS, STRATEGY_REPLICAS);
}

static void set_shards(struct config *c, int64_t shards)
{
	c->parallel.data = c->parallel.shard = shards;
	c->ranks = c->parallel.tensor * shards;
	c->train.global_batch = c->micro_batches * c->train.micro_batch * shards;
}

/* The same for any shards. */
static void memory_config(const struct evaluator *v, int64_t repeats, struct config *out)
{
	const struct config *c = &v->plan;
	flat_config(c, layers_of(v, repeats), FLAT_MICRO_BATCHES, out);
	if (is_cut(c))
		set_shards(out, fewer_shards);
}

/* Static memory by repeats, and its gradients. */
struct flat_static {
	struct line all_B, gradients_B;
};

static enum status measure_static(struct evaluator *v, void *piece, struct error *e)
{
	struct flat_static *out = piece;
	struct short_run run[2];
	for (int i = 0; i < 2; i++) {
		static_config(v, 1 + i, &v->small);
		enum status st = pieces_run_short(v, READ_MEMORY, &run[i], e);
		if (st)
			return st;
	}
	const struct short_stage *a = &run[0].stage[0], *b = &run[1].stage[0];
	*out = (struct flat_static){line_through(1, a->static_B, b->static_B),
		line_through(1, a->gradients_B, b->gradients_B)};
	return ST_OK;
}

/* Measures the peak on programs of v->small's repeats and of one more; on one program where these are all of the
 * plan. */
static enum status measure_memory(struct evaluator *v, void *piece, struct error *e)
{
	struct flat_memory *out = piece;
	const struct config *c = &v->plan;
	const struct layer_order o = v->order;
	const int64_t repeats = (v->small.model.layers - layers_of(v, 0)) / o.period;
	const int programs = repeats < o.repeats ? 2 : 1, times = is_cut(c) ? 2 : 1;
	struct line peak_B[2];
	for (int k = 0; k < times; k++) {
		struct short_run run[2];
		for (int i = 0; i < programs; i++) {
			memory_config(v, repeats + i, &v->small);
			if (k > 0)
				set_shards(&v->small, more_shards);
			enum status st = pieces_run_short(v, READ_MEMORY, &run[i], e);
			if (st)
				return st;
		}
		peak_B[k] = programs == 2 ? line_through(repeats, run[0].stage[0].peak_B, run[1].stage[0].peak_B)
		                          : (struct line){run[0].stage[0].peak_B, 0};
	}
	out->whole_B = peak_B[0];
	if (times == 2) {
		const double differ = 1 / (double)fewer_shards - 1 / (double)more_shards;
		out->shard_B = (struct line){(peak_B[0].base - peak_B[1].base) / differ,
			(peak_B[0].each - peak_B[1].each) / differ};
		out->whole_B.base -= out->shard_B.base / (double)fewer_shards;
		out->whole_B.each -= out->shard_B.each / (double)fewer_shards;
	}
	return ST_OK;
}

static enum status find_peak(struct evaluator *v, int64_t repeats, struct line *out, struct error *e)
{
	memory_config(v, repeats, &v->small);
	const struct flat_memory *m = evaluator_find_config(v, measure_memory, sizeof(struct flat_memory), e);
	if (!m)
		return e->status;
	const double shards = (double)v->plan.parallel.data;
	*out = (struct line){m->whole_B.base + m->shard_B.base / shards, m->whole_B.each + m->shard_B.each / shards};
	return ST_OK;
}

/* The peak of a program of MEMORY_LAYERS layers may be where hardly any activation lives. With more layers the peak
 * moves elsewhere, and the line through the short programs says too little. All layers are laid out where that may be
 * more than PEAK_TOLERANCE of the peak. */
#define PEAK_TOLERANCE 0.001
#define MEMORY_LAYERS 6

/* Returns early if the static memory, or static memory plus all layers' activations, exceeds the limit. The latter
 * leaves gradients out that activations need not meet. */
static enum status flat_memory(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t repeats = v->order.repeats;
	static_config(v, 1, &v->small);
	const struct flat_static *always = evaluator_find_config(v, measure_static, sizeof *always, e);
	if (!always)
		return e->status;
	evaluator_set_memory(v, line_at(always->all_B, repeats), out);
	if (!out->fits)
		return ST_OK;
	const struct block_pieces *b = pieces_find_block(v, e);
	if (!b)
		return e->status;
	const double kept_B = b->kept_B[END_FIRST].each;
	const double apart_B = gradients_meet_activations(c) ? 0 : line_at(always->gradients_B, repeats);
	evaluator_set_memory(v, line_at(always->all_B, repeats) - apart_B + kept_B * (double)repeats, out);
	if (!out->fits)
		return ST_OK;
	/* from so many layers on no more units are gathered at once */
	const int64_t first = repeats_for(v, MEMORY_LAYERS + 2 * c->parallel.prefetch);
	for (int64_t from = first < repeats ? first : repeats;; from = repeats) {
		struct line peak;
		if (find_peak(v, from, &peak, e))
			return e->status;
		evaluator_set_memory(v, line_at(peak, repeats), out);
		if (from == repeats || (double)(repeats - from - 1) * (always->all_B.each + kept_B - peak.each) <=
					       PEAK_TOLERANCE * line_at(peak, repeats))
			return ST_OK;
	}
}

/* ---- times ---- */

/* By repeats. step_s: of a step of FLAT_MICRO_BATCHES micro-batches, or of all where there are fewer. micro_s: of each
 * further one. */
struct flat_times {
	struct line step_s, micro_s, host_s;
	bool linear; /* as block_pieces.linear */
};

static enum status measure_times(struct evaluator *v, void *piece, struct error *e)
{
	struct flat_times *out = piece;
	const struct config *c = &v->plan;
	const int64_t repeats = flat_repeats(v);
	struct short_run run[2], more;
	double micro_s[2] = {0, 0};
	out->linear = true;
	for (int i = 0; i < 2; i++) {
		flat_config(c, layers_of(v, repeats + i), FLAT_MICRO_BATCHES, &v->small);
		enum status st = pieces_run_short(v, READ_TIMES, &run[i], e);
		if (!st && c->micro_batches > FLAT_MICRO_BATCHES) {
			flat_config(c, layers_of(v, repeats + i), FLAT_MICRO_BATCHES + 1, &v->small);
			st = pieces_run_short(v, READ_TIMES, &more, e);
			micro_s[i] = more.step_s - run[i].step_s;
		}
		if (st)
			return st;
		out->linear = out->linear && pieces_host_is_ahead(v, &run[i]);
	}
	out->step_s = line_through(repeats, run[0].step_s, run[1].step_s);
	out->micro_s = line_through(repeats, micro_s[0], micro_s[1]);
	out->host_s = line_through(repeats, run[0].host_s, run[1].host_s);
	return ST_OK;
}

enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t repeats = v->order.repeats, more = c->micro_batches - FLAT_MICRO_BATCHES;
	enum status st = flat_memory(v, out, e);
	if (st || !out->fits || evaluator_dominates(v, out))
		return st;
	flat_config(c, layers_of(v, flat_repeats(v)), FLAT_MICRO_BATCHES + 1, &v->small);
	const struct flat_times *f = evaluator_find_config(v, measure_times, sizeof(struct flat_times), e);
	if (!f)
		return e->status;
	out->step_s = (line_at(f->step_s, repeats) + (more > 0 ? (double)more * line_at(f->micro_s, repeats) : 0)) *
	              evaluator_scale(v);
	out->folded = f->linear &&
	              line_at(f->host_s, repeats) * (double)c->micro_batches / FLAT_MICRO_BATCHES < out->step_s;
	return ST_OK;
}

/* ---- buckets that span layers ---- */

#define SPAN_MOST 4 /* repeats of the layers; where buckets span more, a plan is predicted */

/* Returns after how many repeats of the layers buckets close at the same parameters again; 0: after more than there
 * are. Buckets are filled from the last parameter on, each from nothing (step/builder/params.c, assign_by_size). So
 * they repeat from where one begins at a parameter at which an earlier one began in another layer. */
static int64_t span_of(const struct role *r, int64_t period)
{
	int64_t began[MODEL_PERIOD_MAX][PARAM_KIND_COUNT]; /* by place among the layers that repeat: layer, -1: none */
	memset(began, 0xff, sizeof began);
	for (size_t i = r->params.n; i-- > 1;) {
		const struct param *p = &r->params.at[i - 1].param;
		if (p->layer < 0 || r->params.at[i - 1].bucket == r->params.at[i].bucket)
			continue;
		int64_t *layer = &began[p->layer % period][p->kind];
		if (*layer >= 0)
			return (*layer - p->layer) / period;
		*layer = p->layer;
	}
	return 0;
}

static void span_config(const struct evaluator *v, struct config *out)
{
	flat_config(&v->plan, layers_of(v, 2 * SPAN_MOST), 1, out);
	pieces_forget_micro_batch(out);
}

static enum status measure_span(struct evaluator *v, void *piece, struct error *e)
{
	struct program *p = NULL;
	span_config(v, &v->small);
	enum status st = program_build_stored(&v->small, &p, e);
	if (!st)
		*(int64_t *)piece = span_of(&p->roles[0], v->order.period);
	program_destroy(p);
	return st;
}

enum status evaluate_spanning(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct layer_order o = v->order;
	span_config(v, &v->small);
	const int64_t *span = evaluator_find_config(v, measure_span, sizeof *span, e);
	if (!span)
		return e->status;
	if (*span == 0 || *span > SPAN_MOST)
		return ST_OK;
	/* so many layers count as one that repeats */
	v->order.period *= *span;
	v->order.repeats = o.repeats / *span;
	v->order.rest += o.repeats % *span * o.period;
	enum status st = v->order.repeats < flat_repeats(v) ? ST_OK : evaluate_flat(v, out, e);
	v->order = o;
	return st;
}
