#include "sim/search/evaluator.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/fold.h"
#include "sim/engine/stragglers.h"
#include "sim/engine/summary.h"
#include "sim/search/pipeline_walk.h"

/* ---- memory of pieces: open addressing by a 128-bit hash of all that they depend on ---- */

static const size_t piece_size[PIECES_KINDS] = {sizeof(struct block_pieces), sizeof(struct memory_pieces),
	sizeof(struct data_pieces), sizeof(struct flat_memory), sizeof(struct flat_memory), sizeof(struct flat_pieces),
	sizeof(struct pipeline_ends)};

static void hash(uint64_t h[2], const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t w = 0;
		memcpy(&w, at + i, bytes - i < sizeof w ? bytes - i : sizeof w);
		h[0] = (h[0] ^ w) *
		       UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio (Knuth, TAOCP 3, section 6.4) */
		h[0] ^= h[0] >> 29;
		h[1] = (h[1] + w) * UINT64_C(0xd1342543de82ef95); /* Steele and Vigna 2021, arXiv:2001.05304, table 4 */
		h[1] ^= h[1] >> 32;
	}
}

static struct cached_piece *slot_of(struct evaluator *v, const uint64_t key[2])
{
	size_t at = key[0] & (v->slots - 1);
	while (v->cache[at].piece && (v->cache[at].key[0] != key[0] || v->cache[at].key[1] != key[1]))
		at = (at + 1) & (v->slots - 1);
	return &v->cache[at];
}

static enum status grow(struct evaluator *v, struct error *e)
{
	if (2 * v->n < v->slots)
		return ST_OK;
	struct cached_piece *old = v->cache;
	size_t slots = v->slots;
	v->cache = calloc(slots ? 2 * slots : 1024, sizeof *v->cache);
	if (!v->cache) {
		v->cache = old;
		return error_nomem(e, "plans");
	}
	v->slots = slots ? 2 * slots : 1024;
	for (size_t i = 0; i < slots; i++)
		if (old[i].piece)
			*slot_of(v, old[i].key) = old[i];
	free(old);
	return ST_OK;
}

enum status evaluator_find(struct evaluator *v, int kind, const void *of, size_t bytes, void **out, bool *fresh,
	struct error *e)
{
	uint64_t key[2] = {(uint64_t)kind, 1};
	hash(key, of, bytes);
	enum status st = grow(v, e);
	if (st)
		return st;
	struct cached_piece *k = slot_of(v, key);
	*fresh = !k->piece;
	if (*fresh) {
		if (!(k->piece = calloc(1, piece_size[kind])))
			return error_nomem(e, "plans");
		memcpy(k->key, key, sizeof key);
		v->n++;
	}
	*out = k->piece;
	return ST_OK;
}

enum status evaluator_find_config(struct evaluator *v, int kind, void **out, bool *fresh, struct error *e)
{
	return evaluator_find(v, kind, &v->small, offsetof(struct config, origin), out, fresh,
		e); /* what comes behind is for messages */
}

enum status evaluator_find_block(struct evaluator *v, const struct block_pieces **out, struct error *e)
{
	void *piece;
	bool fresh;
	pieces_block_config(&v->plan, 1, 1, &v->small);
	enum status st = evaluator_find_config(v, PIECES_BLOCK, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 8;
		st = pieces_measure_block(&v->plan, v->m, piece, e);
	}
	*out = piece;
	return st;
}

/* ---- what folds ---- */

#define BUCKETS_A_LAYER 3

/* True for layers that differ in their ops, or in the order of them. */
static bool layers_differ(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const bool some_recompute = c->train.recompute_layers > 0 && c->train.recompute_layers < c->model.layers;
	const bool reduces = p->data * p->context > 1 && strategy_has(p->strategy, STRATEGY_BUCKETS);
	const double layer_B = (double)model_parameters(&c->model) / (double)(c->model.layers * p->tensor) *
	                       dtype_bytes(dtype_stored(c->train.grad_dtype));
	const bool spans = reduces && p->bucket_B * BUCKETS_A_LAYER >
	                                      layer_B; /* a bucket that spans layers comes at another place in each */
	return some_recompute || spans || c->model.experts > 0;
}

/* True for a pipeline whose stages differ, or whose actions are not those that pieces are measured on. True, too, for a
 * single stage that is shorter than its pieces. */
static bool stages_differ(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const int64_t parts = p->pipeline * p->virtual_stages;
	if (parts == 1)
		return c->model.layers < pieces_flat_layers(c); /* no further layer is like those before it */
	const bool casts = dtype_stored(c->train.param_dtype) !=
	                   dtype_stored(c->train.dtype); /* copies of weights live from stage to stage in other ways */
	const bool uneven = c->model.layers % parts != 0 || c->model.layers <= parts ||
	                    c->stack.stage_split == SPLIT_COST;
	const bool cut = strategy_has(p->strategy, STRATEGY_CUTS_GRADIENTS);
	const bool apart = p->order[DIM_COUNT - 1] != DIM_PP; /* replicas lie further apart than in a short pipeline */
	return casts || uneven || cut || apart || p->pipeline > CONFIG_MAX_STAGES /* of a walk */;
}

bool evaluator_folds(const struct evaluator *v, const struct config *c)
{
	const bool links = v->m->nodes * v->m->devices_per_node > 1; /* pieces are measured on two stages */
	const bool paced = c->data.load_time_s > 0 || c->train.sync_every > 0;
	return links && !v->m->device.is_host && !paced && c->train.offload == OFF_NONE &&
	       !schedule_splits_backward(c->parallel.schedule) && c->parallel.n_layers_per_stage == 0 &&
	       !layers_differ(c) && !stages_differ(c);
}

/* ---- what both ways of putting together need ---- */

double evaluator_scale(const struct evaluator *v)
{
	int64_t per = v->m->devices_per_node, nodes = (v->plan.ranks + per - 1) / per;
	return stragglers_slowdown(v->m, nodes) / stragglers_slowdown(v->m, v->m->nodes);
}

void evaluator_set_memory(const struct evaluator *v, double peak_B, struct evaluation *out)
{
	struct result_memory mem = {0};
	const struct mesh mesh = mesh_of(&v->plan);
	summary_overhead(&v->plan, &mesh, v->m, &mem);
	out->memory_B = (uint64_t)(peak_B + 0.5) + mem.overhead_B;
	out->fits = out->memory_B <= v->m->device.mem_B;
}

/* ---- any plan ---- */

static enum status predict_plan(const struct evaluator *v, struct evaluation *out, struct error *e)
{
	struct result *r = malloc(sizeof *r);
	struct machine here = *v->m;
	here.nodes = (v->plan.ranks + here.devices_per_node - 1) / here.devices_per_node;
	enum status st = r ? fold_fitting(&v->plan, &here, r, e) : error_nomem(e, "a plan");
	if (!st) {
		const struct breakdown *t = &r->time;
		out->memory_B = r->memory.total_B;
		out->fits = r->memory.fits;
		if (out->fits) {
			out->step_s = t->step_s;
			out->compute_s = t->compute_s;
			out->exposed_comm_s = t->exposed_comm_s;
			out->bubble_s = t->bubble_s;
			out->optimizer_s = t->optimizer_s;
			out->other_s = t->copy_s + t->host_s + t->idle_s;
		}
	}
	free(r);
	return st;
}

static void count(struct evaluator *v, const struct evaluation *out)
{
	v->counts.plans++;
	v->counts.illegal += !out->legal;
	v->counts.too_large += out->legal && !out->fits;
	v->counts.timed += out->fits;
	v->counts.predicted += out->fits && !out->folded;
}

enum status evaluate_plan(struct evaluator *v, const struct config *c, int64_t ranks, struct evaluation *out,
	struct error *e)
{
	struct error wrong = {0};
	enum status st = ST_OK;
	*out = (struct evaluation){0};
	v->plan = *c;
	if (config_resolve(&v->plan, ranks, &wrong)) {
		snprintf(out->reason, sizeof out->reason, "%.255s", wrong.text);
		count(v, out);
		return wrong.status == ST_INPUT ? ST_OK : error_set(e, wrong.status, "%s", wrong.text);
	}
	out->legal = true;
	const bool may = evaluator_folds(v, &v->plan);
	if (may)
		st = v->plan.parallel.pipeline > 1 ? evaluate_pipeline(v, out, e) : evaluate_flat(v, out, e);
	if (!st && v->only_fold && !out->folded && (!may || out->fits))
		*out = (struct evaluation){.legal = true};
	else if (!st && !out->folded && (!may || out->fits))
		st = predict_plan(v, out, e);
	if (!st)
		count(v, out);
	return st;
}

enum status evaluator_create(const struct machine *m, struct evaluator **out, struct error *e)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return error_nomem(e, "plans");
	(*out)->m = m;
	(*out)->rates = rates_of(m);
	return ST_OK;
}

void evaluator_destroy(struct evaluator *v)
{
	for (size_t i = 0; v && i < v->slots; i++)
		free(v->cache[i].piece);
	if (v)
		free(v->cache);
	free(v);
}

void evaluator_only_fold(struct evaluator *v) { v->only_fold = true; }

struct evaluator_counts evaluator_counts(const struct evaluator *v) { return v->counts; }
