#include "sim/search/evaluator.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/fold.h"
#include "sim/engine/stragglers.h"
#include "sim/engine/summary.h"
#include "step/stages.h"

/* ---- pieces, by a hash of all that they depend on ---- */

static void mix(uint64_t h[2], uint64_t w)
{
	h[0] = (h[0] ^ w) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio (Knuth, TAOCP 3, section 6.4) */
	h[0] ^= h[0] >> 29;
	h[1] = (h[1] + w) * UINT64_C(0xd1342543de82ef95); /* Steele and Vigna 2021, arXiv:2001.05304, table 4 */
	h[1] ^= h[1] >> 32;
}

static uint64_t word_at(const unsigned char *data, size_t i)
{
	uint64_t w;
	memcpy(&w, data + i * sizeof w, sizeof w);
	return w;
}

/* Hashes `bytes`, a multiple of 8. Every other word goes apart: a processor works on both chains of multiplications at
 * once. */
static void hash(uint64_t h[2], const void *data, size_t bytes)
{
	const size_t n = bytes / sizeof(uint64_t);
	uint64_t odd[2] = {0, 0};
	for (size_t i = 0; i + 1 < n; i += 2) {
		mix(h, word_at(data, i));
		mix(odd, word_at(data, i + 1));
	}
	if (n % 2)
		mix(h, word_at(data, n - 1));
	mix(h, odd[0]);
	mix(h, odd[1]);
}

/* A piece that is to be measured with an evaluator. */
struct measurement {
	struct evaluator *v;
	piece_measure *measure;
};

/* A piece may need others, which have programs and prices of their own. */
static enum status measure_apart(void *measurement, void *figures, struct error *e)
{
	const struct measurement *x = measurement;
	struct evaluator *v = x->v;
	const struct prices outer = v->prices;
	v->prices = (struct prices){0};
	enum status st = x->measure(v, figures, e);
	prices_free(&v->prices);
	v->prices = outer;
	return st;
}

static const void *find(struct evaluator *v, piece_measure *measure, size_t size, const uint64_t key[2],
	struct error *e)
{
	struct measurement x = {v, measure};
	return piece_table_find(v->pieces, key, size, measure_apart, &x, e);
}

const void *evaluator_find(struct evaluator *v, piece_measure *measure, size_t size, const void *of, size_t bytes,
	struct error *e)
{
	uint64_t key[2] = {(uintptr_t)measure, 1};
	assert(bytes % sizeof(uint64_t) == 0);
	hash(key, of, bytes);
	return find(v, measure, size, key, e);
}

/* The members of a config from one on and before another, which are 8-byte aligned. */
#define MEMBERS(from, to) offsetof(struct config, from), offsetof(struct config, to) - offsetof(struct config, from)

static void hash_members(uint64_t h[2], const struct config *c, size_t offset, size_t bytes)
{
	hash(h, (const char *)c + offset, bytes);
}

/* The stack is most of what is hashed, and mostly the same as the last time. */
static void hash_stack(struct evaluator *v, uint64_t h[2])
{
	if (memcmp(&v->stack, &v->small.stack, sizeof v->stack) != 0) {
		v->stack = v->small.stack;
		v->stack_hash[0] = v->stack_hash[1] = 0;
		hash(v->stack_hash, &v->stack, sizeof v->stack);
	}
	mix(h, v->stack_hash[0]);
	mix(h, v->stack_hash[1]);
}

static void copy_members(struct config *to, const struct config *from, size_t offset, size_t bytes)
{
	memcpy((char *)to + offset, (const char *)from + offset, bytes);
}

void evaluator_copy(struct config *to, const struct config *from)
{
	copy_members(to, from, MEMBERS(model, cluster)); /* before it are paths */
	copy_members(to, from, MEMBERS(node_ranks, origin));
}

const void *evaluator_find_config(struct evaluator *v, piece_measure *measure, size_t size, struct error *e)
{
	uint64_t key[2] = {(uintptr_t)measure, 1};
	static_assert(offsetof(struct config, model) % 8 == 0 && offsetof(struct config, stack) % 8 == 0 &&
			      offsetof(struct config, stack_given) % 8 == 0 && sizeof(struct stack) % 8 == 0 &&
			      offsetof(struct config, cluster) % 8 == 0 &&
			      offsetof(struct config, node_ranks) % 8 == 0 && offsetof(struct config, origin) % 8 == 0,
		"words are hashed");
	hash_members(key, &v->small, MEMBERS(model, stack));
	hash_stack(v, key);
	hash_members(key, &v->small, MEMBERS(stack_given, parallel.layers_per_stage));
	if (v->small.parallel.n_layers_per_stage > 0)
		hash_members(key, &v->small, MEMBERS(parallel.layers_per_stage, parallel.n_layers_per_stage));
	hash_members(key, &v->small, MEMBERS(parallel.n_layers_per_stage, cluster));
	hash_members(key, &v->small, MEMBERS(node_ranks, origin));
	return find(v, measure, size, key, e);
}

void evaluator_know(struct evaluator *v)
{
	const struct model *m = &v->plan.model;
	if (memcmp(&v->model, m, sizeof *m) == 0)
		return;
	v->model = *m;
	v->order = model_layer_order(m);
	v->small = v->shape.config = v->plan;
	v->parameters = (double)model_parameters(m);
	v->expert_parameters = (double)model_expert_parameters(m);
}

/* ---- what folds ---- */

#define BUCKETS_A_LAYER 3

/* Returns the bytes of gradients that a rank has of a layer. */
static double layer_gradients_B(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	return ((v->parameters - v->expert_parameters) / (double)c->parallel.tensor +
		       v->expert_parameters / (double)(c->parallel.expert * c->parallel.expert_tensor)) /
	       (double)c->model.layers * dtype_bytes(dtype_stored(c->train.grad_dtype));
}

/* True where buckets may close at other parameters in each layer. A chunk that is one bucket has none that do
 * (step/builder/params.c, one_bucket). */
static bool buckets_span(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	const struct parallel *p = &c->parallel;
	const bool reduces = p->data * p->context > 1 && strategy_has(p->strategy, STRATEGY_BUCKETS),
		   one_bucket = c->stack.buckets_lead_only && !p->overlap && !parallel_reduces_each(p);
	return reduces && !one_bucket && p->bucket_B * BUCKETS_A_LAYER > layer_gradients_B(v);
}

/* True for layers that differ in their ops. */
static bool layers_differ(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	const bool some_recompute = c->train.recompute_layers > 0 && c->train.recompute_layers < c->model.layers;
	const bool parts = c->model.experts > 0 &&
	                   strategy_fits(c->parallel.strategy, STRATEGY_CUTS_GRADIENTS, STRATEGY_UNITS);
	return some_recompute || parts || v->order.period == 0;
}

/* True for a pipeline whose stages differ, or whose actions are not those that pieces are measured on. True, too, for a
 * single stage that is shorter than its pieces. */
static bool stages_differ(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	const struct parallel *p = &c->parallel;
	const int64_t parts = p->pipeline * p->virtual_stages;
	const struct layer_order o = v->order;
	if (parts == 1)
		return o.repeats < flat_repeats(v); /* no further layer is like those before it */
	const bool leads = o.leading > 0 || c->model.mtp_layers > 0;
	const bool casts = dtype_stored(c->train.param_dtype) !=
	                   dtype_stored(c->train.dtype); /* copies of weights live from stage to stage in other ways */
	const bool uneven = o.rest > 0 || o.repeats % parts != 0 || o.repeats <= parts ||
	                    c->stack.stage_split == SPLIT_COST;
	const bool cut = strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS);
	const bool apart = p->order[DIM_COUNT - 1] != DIM_PP; /* replicas lie further apart than in a short pipeline */
	return leads || casts || uneven || cut || apart || p->expert_overlap ||
	       p->pipeline > CONFIG_MAX_STAGES /* of a walk */;
}

/* True where buckets that span layers may come to the same parameters again (evaluate_spanning): one bucket is open at
 * a time, as neither experts nor frozen weights have buckets of their own. */
static bool may_repeat(const struct evaluator *v)
{
	const struct model *m = &v->plan.model;
	return v->plan.parallel.pipeline == 1 && m->experts == 0 && !model_freezes(m);
}

/* Returns false where v->plan is sure to be predicted, wherever its buckets close. */
static bool folds_but_for_buckets(const struct evaluator *v)
{
	const struct config *c = &v->plan;
	const bool links = v->m->nodes * v->m->devices_per_node > 1; /* pieces are measured on two stages */
	const bool groups = c->parallel.shard < c->parallel.data &&
	                    !strategy_has(c->parallel.strategy, STRATEGY_UNITS); /* of zero1: no piece has them */
	const bool paced = c->data.load_time_s > 0 || c->train.launch_blocking || c->train.expert_loop ||
	                   (c->parallel.adapter_units && c->model.lora_rank > 0);
	const bool meets = c->parallel.pipeline == 1 ||
	                   (gradients_meet_activations(c) && !parallel_holds_buckets(c)); /* no piece has buckets */
	return links && !v->m->device.is_host && !paced && !groups && meets && c->train.offload == OFF_NONE &&
	       !schedule_splits_backward(c->parallel.schedule) && !stages_by_hand(c) && !layers_differ(v) &&
	       !stages_differ(v);
}

bool evaluator_folds(const struct evaluator *v) { return folds_but_for_buckets(v) && !buckets_span(v); }

/* ---- what both ways of putting together need ---- */

static int64_t nodes_of(const struct evaluator *v)
{
	return (v->plan.ranks + v->m->devices_per_node - 1) / v->m->devices_per_node;
}

double evaluator_scale(const struct evaluator *v)
{
	return stragglers_slowdown(v->m, nodes_of(v)) / stragglers_slowdown(v->m, v->m->nodes);
}

void evaluator_set_memory(const struct evaluator *v, double peak_B, struct evaluation *out)
{
	struct result_memory mem = {0};
	const struct mesh mesh = mesh_of(&v->plan);
	summary_overhead(&v->plan, &mesh, v->m, &mem);
	out->memory_B = (uint64_t)(peak_B + 0.5) + mem.overhead_B;
	out->fits = out->memory_B <= v->m->device.mem_B;
}

/* By so much, at most, the memory of pieces is above that of a prediction. */
#define PIECES_ABOVE 0.01

bool evaluator_dominates(const struct evaluator *v, struct evaluation *out)
{
	out->dominated = out->fits && (double)out->memory_B >= (1 + PIECES_ABOVE) * (double)v->below_B;
	return out->dominated;
}

/* ---- any plan ---- */

/* Fills memory_B and fits from what a step keeps of parameters alone: weights, gradients, states. */
static enum status stored_memory(const struct evaluator *v, struct evaluation *out, struct error *e)
{
	struct program *p = NULL;
	enum status st = program_build_stored(&v->plan, &p, e);
	double most_B = 0;
	for (size_t r = 0; r < (st ? 0 : p->n_roles); r++)
		most_B = fmax(most_B, pieces_static_B(&p->roles[r], COMP_KIND_COUNT));
	program_destroy(p);
	evaluator_set_memory(v, most_B, out);
	return st;
}

static enum status predict_plan(const struct evaluator *v, struct evaluation *out, struct error *e)
{
	struct result r;
	struct machine here = *v->m;
	here.nodes = nodes_of(v);
	enum status st = fold_check(&v->plan, e);
	if (!st && !v->exact_memory)
		st = stored_memory(v, out, e);
	if (st || (!v->exact_memory && !out->fits))
		return st;
	st = v->exact_memory ? fold_fitting(&v->plan, &here, &r, e) : fold_below(&v->plan, &here, v->below_B, &r, e);
	if (st)
		return st;
	out->memory_B = r.memory.total_B;
	out->fits = r.memory.fits;
	out->dominated = out->fits && out->memory_B >= v->below_B;
	out->step_s = out->fits && !out->dominated ? r.time.step_s : 0;
	return ST_OK;
}

enum status evaluate_plan(struct evaluator *v, const struct config *c, int64_t ranks, struct evaluation *out,
	struct error *e)
{
	*out = (struct evaluation){0};
	v->plan = *c;
	if (config_resolve(&v->plan, ranks, NULL)) /* it fails with ST_INPUT alone */
		return ST_OK;
	out->legal = true;
	evaluator_know(v);
	const bool spans = buckets_span(v);
	enum status st = ST_OK;
	if (folds_but_for_buckets(v) && (!spans || may_repeat(v)))
		st = (spans                              ? evaluate_spanning
			: v->plan.parallel.pipeline == 1 ? evaluate_flat
							 : evaluate_pipeline)(v, out, e);
	if (st || out->folded || out->dominated || (out->memory_B > 0 && !out->fits))
		return st;
	*out = (struct evaluation){.legal = true};
	return v->only_fold ? ST_OK : predict_plan(v, out, e);
}

enum status evaluator_create(const struct machine *m, struct evaluator **out, struct error *e)
{
	struct evaluator *v = *out = calloc(1, sizeof *v);
	if (!v)
		return error_nomem(e, "plans");
	v->m = m;
	v->below_B = UINT64_MAX;
	v->rates = rates_of(m);
	enum status st = piece_table_create(&v->pieces, e);
	v->owns_pieces = !st;
	return st;
}

enum status evaluator_create_beside(const struct evaluator *other, struct evaluator **out, struct error *e)
{
	struct evaluator *v = *out = calloc(1, sizeof *v);
	if (!v)
		return error_nomem(e, "plans");
	v->m = other->m;
	v->below_B = UINT64_MAX;
	v->rates = other->rates;
	v->pieces = other->pieces;
	return ST_OK;
}

void evaluator_destroy(struct evaluator *v)
{
	if (v && v->owns_pieces)
		piece_table_destroy(v->pieces);
	free(v);
}

void evaluator_only_fold(struct evaluator *v) { v->only_fold = true; }

void evaluator_exact_memory(struct evaluator *v) { v->exact_memory = true; }

void evaluator_time_below(struct evaluator *v, uint64_t below_B) { v->below_B = below_B; }
