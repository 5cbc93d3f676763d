/* Plans without a pipeline. */
#include "sim/search/pieces.h"

#include <stdlib.h>

#include "sim/price/rates.h"
#include "step/layout.h"

void pieces_flat_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out)
{
	*out = *c;
	out->model.layers = layers;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? layers : 0;
	out->micro_batches = c->micro_batches < micro_batches ? c->micro_batches : micro_batches;
	out->train.global_batch = out->micro_batches * c->train.micro_batch * c->parallel.data;
}

void pieces_flat_static_config(const struct config *c, int64_t layers, struct config *out)
{
	pieces_flat_config(c, layers, 1, out);
	out->train.micro_batch = 1;
	out->train.recompute = REC_NONE;
	out->train.recompute_layers = 0;
	out->train.global_batch = c->parallel.data;
	out->parallel.sequence_parallel = false;
	out->data.bytes = 8 * (uint64_t)(c->model.seq_len / c->parallel.context);
}

/* Layers of the shorter program; the longer has one more. Layers whose collectives are of several kinds (replicas
 * beside shards, context beside either) delay one another, which evens out only after more layers. */
#define FLAT_LAYERS 4
#define FLAT_LAYERS_MIXED 8

int64_t pieces_flat_layers(const struct config *c)
{
	const bool units = strategy_has(c->parallel.strategy, STRATEGY_UNITS);
	if (strategy_has(c->parallel.strategy, STRATEGY_REPLICAS) || c->parallel.context > 1)
		return FLAT_LAYERS_MIXED;
	return units ? 1 + (c->parallel.prefetch > 1 ? c->parallel.prefetch : 1) : FLAT_LAYERS;
}

static enum status run_flat(const struct config *c, const struct machine *m, struct breakdown *out, double *host_s,
	struct error *e)
{
	struct program *p = NULL;
	struct timeline t = {0};
	const struct rates rates = rates_of(m);
	enum status st = program_build(c, &p, e);
	if (!st && !(st = predict_timeline(p, &rates, &t, host_s, e)))
		st = timeline_breakdown(&t, 0, out, e);
	timeline_free(&t);
	program_destroy(p);
	return st;
}

static enum status read_role(const struct config *c, bool peak, double *out_B, struct error *e)
{
	struct program *p = NULL;
	struct layout l;
	enum status st = program_build(c, &p, e);
	if (!st && !peak) {
		*out_B = pieces_static_B(&p->roles[0], COMP_KIND_COUNT);
	} else if (!st && !(st = layout_peak(&p->roles[0], &l, e))) {
		*out_B = (double)l.peak_B;
		layout_free(&l);
	}
	program_destroy(p);
	return st;
}

enum status pieces_measure_flat_static(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	double static_B[2] = {0, 0};
	enum status st = reduced ? ST_OK : error_nomem(e, "pieces");
	for (int i = 0; i < 2 && !st; i++) {
		pieces_flat_static_config(c, layers + i, reduced);
		st = read_role(reduced, false, &static_B[i], e);
	}
	*out = (struct flat_memory){.whole_B = line_through(layers, static_B[0], static_B[1])};
	free(reduced);
	return st;
}

/* Sharded memory is measured on these two numbers of shards. */
static const int64_t fewer_shards = 8, more_shards = 64;

static bool is_cut(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return p->data >= fewer_shards && p->context == 1 &&
	       strategy_fits(p->strategy, STRATEGY_CUTS_GRADIENTS, STRATEGY_REPLICAS);
}

static void set_shards(struct config *c, int64_t shards)
{
	c->parallel.data = c->parallel.shard = shards;
	c->ranks = c->parallel.tensor * shards;
	c->train.global_batch = c->micro_batches * c->train.micro_batch * shards;
}

void pieces_flat_memory_config(const struct config *c, int64_t layers, struct config *out)
{
	pieces_flat_config(c, layers, FLAT_MICRO_BATCHES, out);
	if (is_cut(c))
		set_shards(out, fewer_shards);
}

struct line pieces_flat_memory(const struct flat_memory *m, const struct config *c)
{
	const double n = (double)c->parallel.data;
	return (struct line){m->whole_B.base + m->shard_B.base / n, m->whole_B.per_layer + m->shard_B.per_layer / n};
}

enum status pieces_measure_flat_memory(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	const int programs = layers < c->model.layers ? 2 : 1, times = is_cut(c) ? 2 : 1;
	struct line peak_B[2] = {{0, 0}, {0, 0}};
	enum status st = reduced ? ST_OK : error_nomem(e, "pieces");
	for (int k = 0; k < times && !st; k++) {
		double of_B[2] = {0, 0};
		for (int i = 0; i < programs && !st; i++) {
			pieces_flat_memory_config(c, layers + i, reduced);
			if (k > 0)
				set_shards(reduced, more_shards);
			st = read_role(reduced, true, &of_B[i], e);
		}
		peak_B[k] = programs == 2 ? line_through(layers, of_B[0], of_B[1]) : (struct line){of_B[0], 0};
	}
	*out = (struct flat_memory){.whole_B = peak_B[0]};
	if (times == 2) {
		const double differ = 1 / (double)fewer_shards - 1 / (double)more_shards;
		out->shard_B = (struct line){(peak_B[0].base - peak_B[1].base) / differ,
			(peak_B[0].per_layer - peak_B[1].per_layer) / differ};
		out->whole_B.base -= out->shard_B.base / (double)fewer_shards;
		out->whole_B.per_layer -= out->shard_B.per_layer / (double)fewer_shards;
	}
	free(reduced);
	return st;
}

enum status pieces_measure_flat(const struct config *c, const struct machine *m, struct flat_pieces *out,
	struct error *e)
{
	struct config *reduced = malloc(sizeof *reduced);
	struct breakdown run[2] = {0}, more[2] = {0};
	double host_s[2] = {0, 0}, unused_s;
	const int64_t layers = pieces_flat_layers(c);
	*out = (struct flat_pieces){.linear = true};
	enum status st = reduced ? ST_OK : error_nomem(e, "pieces");
	for (int i = 0; i < 2 && !st; i++) {
		pieces_flat_config(c, layers + i, FLAT_MICRO_BATCHES, reduced);
		if (!(st = run_flat(reduced, m, &run[i], &host_s[i], e)) && c->micro_batches > FLAT_MICRO_BATCHES) {
			pieces_flat_config(c, layers + i, FLAT_MICRO_BATCHES + 1, reduced);
			st = run_flat(reduced, m, &more[i], &unused_s, e);
		}
		out->linear = out->linear && host_s[i] < m->parameters->step.host_ahead * run[i].step_s;
	}
#define LINE(field) out->field = line_through(layers, run[0].field, run[1].field)
	LINE(step_s);
	LINE(compute_s);
	LINE(exposed_comm_s);
	LINE(optimizer_s);
#undef LINE
	out->micro_s = line_through(layers, more[0].step_s - run[0].step_s, more[1].step_s - run[1].step_s);
	out->host_s = line_through(layers, host_s[0], host_s[1]);
	free(reduced);
	return st;
}
