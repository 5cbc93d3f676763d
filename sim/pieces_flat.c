/* Plans without a pipeline. */
#include "sim/pieces.h"

#include <stdlib.h>

#include "step/layout.h"

void flat_config(const struct config *c, int64_t layers, int64_t micro_batches, struct config *out)
{
	*out = *c;
	out->model.layers = layers;
	out->train.recompute_layers = c->train.recompute_layers > 0 ? layers : 0;
	out->micro_batches = c->micro_batches < micro_batches ? c->micro_batches : micro_batches;
	out->train.global_batch = out->micro_batches * c->train.micro_batch * c->parallel.data;
}

void flat_static_config(const struct config *c, int64_t layers, struct config *out)
{
	flat_config(c, layers, 1, out);
	out->train.micro_batch = 1;
	out->train.recompute = REC_NONE;
	out->train.recompute_layers = 0;
	out->train.global_batch = c->parallel.data;
	out->parallel.sequence_parallel = false;
	out->data.bytes = 8 * (uint64_t)(c->model.seq_len / c->parallel.context);
}

/* Programs of so many layers, and of one more. Where a layer's collectives are of several kinds, of replicas beside shards or of context beside either, what one leaves to the next evens out after more of them. */
#define FLAT_LAYERS 4
#define FLAT_LAYERS_MIXED 8

int64_t flat_layers(const struct config *c)
{
	const bool units = c->parallel.strategy == STRAT_FSDP || c->parallel.strategy == STRAT_HSDP;
	if (c->parallel.strategy == STRAT_HSDP || c->parallel.context > 1)
		return FLAT_LAYERS_MIXED;
	return units ? 1 + (c->parallel.prefetch > 1 ? c->parallel.prefetch : 1) : FLAT_LAYERS;
}

static enum status run_flat(const struct config *c, const struct machine *m, struct breakdown *out, double *host_s, struct error *e)
{
	struct program *p = NULL;
	struct timeline t = {0};
	enum status st = program_build(c, &p, e);
	if (!st && !(st = predict_timeline(p, m, &t, host_s, e)))
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
		*out_B = static_of_role_B(&p->roles[0], COMP_KIND_COUNT);
	} else if (!st && !(st = layout_peak(&p->roles[0], &l, e))) {
		*out_B = (double)l.peak_B;
		layout_free(&l);
	}
	program_destroy(p);
	return st;
}

enum status flat_static_measure(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e)
{
	struct config *some = malloc(sizeof *some);
	double static_B[2] = {0, 0};
	enum status st = some ? ST_OK : error_nomem(e, "pieces");
	for (int i = 0; i < 2 && !st; i++) {
		flat_static_config(c, layers + i, some);
		st = read_role(some, false, &static_B[i], e);
	}
	*out = (struct flat_memory){.whole_B = line_through(layers, static_B[0], static_B[1])};
	free(some);
	return st;
}

/* What is cut among ranks: measured on so many, and on so many more. */
static const int64_t shards_few = 8, shards_many = 64;

static bool is_cut(const struct config *c)
{
	const struct parallel *p = &c->parallel;
	return p->data >= shards_few && p->context == 1 && (p->strategy == STRAT_FSDP || p->strategy == STRAT_ZERO2);
}

static void set_shards(struct config *c, int64_t shards)
{
	c->parallel.data = c->parallel.shard = shards;
	c->ranks = c->parallel.tensor * shards;
	c->train.global_batch = c->micro_batches * c->train.micro_batch * shards;
}

void flat_memory_config(const struct config *c, int64_t layers, struct config *out)
{
	flat_config(c, layers, FLAT_MICROS, out);
	if (is_cut(c))
		set_shards(out, shards_few);
}

struct line flat_memory_of(const struct flat_memory *m, const struct config *c)
{
	const double n = (double)c->parallel.data;
	return (struct line){m->whole_B.at0 + m->shard_B.at0 / n, m->whole_B.each + m->shard_B.each / n};
}

enum status flat_memory_measure(const struct config *c, int64_t layers, struct flat_memory *out, struct error *e)
{
	struct config *some = malloc(sizeof *some);
	const int programs = layers < c->model.layers ? 2 : 1, times = is_cut(c) ? 2 : 1;
	struct line peak_B[2] = {{0, 0}, {0, 0}};
	enum status st = some ? ST_OK : error_nomem(e, "pieces");
	for (int k = 0; k < times && !st; k++) {
		double of_B[2] = {0, 0};
		for (int i = 0; i < programs && !st; i++) {
			flat_memory_config(c, layers + i, some);
			if (k > 0)
				set_shards(some, shards_many);
			st = read_role(some, true, &of_B[i], e);
		}
		peak_B[k] = programs == 2 ? line_through(layers, of_B[0], of_B[1]) : (struct line){of_B[0], 0};
	}
	*out = (struct flat_memory){.whole_B = peak_B[0]};
	if (times == 2) {
		const double differ = 1 / (double)shards_few - 1 / (double)shards_many;
		out->shard_B = (struct line){(peak_B[0].at0 - peak_B[1].at0) / differ, (peak_B[0].each - peak_B[1].each) / differ};
		out->whole_B.at0 -= out->shard_B.at0 / (double)shards_few;
		out->whole_B.each -= out->shard_B.each / (double)shards_few;
	}
	free(some);
	return st;
}

enum status flat_pieces_measure(const struct config *c, const struct machine *m, struct flat_pieces *out, struct error *e)
{
	struct config *some = malloc(sizeof *some);
	struct breakdown run[2] = {0}, more[2] = {0};
	double host_s[2] = {0, 0}, unused_s;
	const int64_t base = flat_layers(c);
	*out = (struct flat_pieces){.straight = true};
	enum status st = some ? ST_OK : error_nomem(e, "pieces");
	for (int i = 0; i < 2 && !st; i++) {
		flat_config(c, base + i, FLAT_MICROS, some);
		if (!(st = run_flat(some, m, &run[i], &host_s[i], e)) && c->micro_batches > FLAT_MICROS) {
			flat_config(c, base + i, FLAT_MICROS + 1, some);
			st = run_flat(some, m, &more[i], &unused_s, e);
		}
		out->straight = out->straight && host_s[i] < HOST_AHEAD * run[i].step_s;
	}
#define LINE(field) out->field = line_through(base, run[0].field, run[1].field)
	LINE(step_s);
	LINE(compute_s);
	LINE(exposed_comm_s);
	LINE(optimizer_s);
#undef LINE
	out->micro_s = line_through(base, more[0].step_s - run[0].step_s, more[1].step_s - run[1].step_s);
	out->host_s = line_through(base, host_s[0], host_s[1]);
	free(some);
	return st;
}
