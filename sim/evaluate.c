#include "sim/evaluate.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fold.h"
#include "sim/pieces.h"
#include "sim/summary.h"
#include "sim/walk.h"

/* ---- memory of pieces: open addressing by a 128-bit hash of all that they depend on ---- */

enum { PIECES_BLOCK, PIECES_MEMORY, PIECES_DATA, PIECES_STATIC, PIECES_FLAT_MEMORY, PIECES_FLAT, PIECES_WALK, PIECES_KINDS };
static const size_t piece_size[PIECES_KINDS] = {sizeof(struct block_pieces), sizeof(struct memory_pieces), sizeof(struct data_pieces), sizeof(struct flat_memory), sizeof(struct flat_memory), sizeof(struct flat_pieces), 2 * sizeof(double)};

struct known {
	uint64_t key[2];
	void *piece; /* owned; NULL: free */
};

struct evaluator {
	const struct machine *m;
	struct program shape; /* no roles: what costs of single messages are asked with */
	struct config plan, small;
	struct known *known;
	size_t slots, n;
	bool only_fold;
	struct evaluator_counts counts;
};

static void hash(uint64_t h[2], const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
		uint64_t w = 0;
		memcpy(&w, at + i, bytes - i < sizeof w ? bytes - i : sizeof w);
		h[0] = (h[0] ^ w) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio (Knuth, TAOCP 3, section 6.4) */
		h[0] ^= h[0] >> 29;
		h[1] = (h[1] + w) * UINT64_C(0xd1342543de82ef95); /* Steele and Vigna 2021, arXiv:2001.05304, table 4 */
		h[1] ^= h[1] >> 32;
	}
}

static struct known *slot_of(struct evaluator *v, const uint64_t key[2])
{
	size_t at = key[0] & (v->slots - 1);
	while (v->known[at].piece && (v->known[at].key[0] != key[0] || v->known[at].key[1] != key[1]))
		at = (at + 1) & (v->slots - 1);
	return &v->known[at];
}

static enum status grow(struct evaluator *v, struct error *e)
{
	if (2 * v->n < v->slots)
		return ST_OK;
	struct known *old = v->known;
	size_t slots = v->slots;
	v->known = calloc(slots ? 2 * slots : 1024, sizeof *v->known);
	if (!v->known) {
		v->known = old;
		return error_nomem(e, "plans");
	}
	v->slots = slots ? 2 * slots : 1024;
	for (size_t i = 0; i < slots; i++)
		if (old[i].piece)
			*slot_of(v, old[i].key) = old[i];
	free(old);
	return ST_OK;
}

/* The piece of a key; *fresh: it was not known and is still to be filled. */
static enum status find(struct evaluator *v, int kind, const void *of, size_t bytes, void **out, bool *fresh, struct error *e)
{
	uint64_t key[2] = {(uint64_t)kind, 1};
	hash(key, of, bytes);
	enum status st = grow(v, e);
	if (st)
		return st;
	struct known *k = slot_of(v, key);
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

#define CONFIG_MEANT offsetof(struct config, origin) /* what comes behind is for messages */

static enum status find_block(struct evaluator *v, const struct block_pieces **out, struct error *e)
{
	void *piece;
	bool fresh;
	block_config(&v->plan, 1, 1, &v->small);
	enum status st = find(v, PIECES_BLOCK, &v->small, CONFIG_MEANT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 8;
		st = block_pieces_measure(&v->plan, v->m, piece, e);
	}
	*out = piece;
	return st;
}

static enum status find_memory(struct evaluator *v, const struct block_pieces *block, const struct memory_pieces **out, struct error *e)
{
	void *piece;
	bool fresh;
	memory_config(&v->plan, &v->small);
	enum status st = find(v, PIECES_MEMORY, &v->small, CONFIG_MEANT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured++;
		st = memory_pieces_measure(&v->plan, block, piece, e);
	}
	*out = piece;
	return st;
}

static enum status find_data(struct evaluator *v, const struct block_pieces *block, const struct data_pieces **out, struct error *e)
{
	void *piece;
	bool fresh;
	data_config(&v->plan, 1, &v->small);
	enum status st = find(v, PIECES_DATA, &v->small, CONFIG_MEANT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = data_pieces_measure(&v->plan, v->m, block, piece, e);
	}
	*out = piece;
	return st;
}

/* ---- what folds ---- */

#define BUCKETS_A_LAYER 3

static bool folds(const struct evaluator *v, const struct config *c)
{
	const struct parallel *p = &c->parallel;
	const int64_t parts = p->pipeline * p->virtual_stages;
	const bool some_recompute = c->train.recompute_layers > 0 && c->train.recompute_layers < c->model.layers;
	const bool reduces = p->data * p->context > 1 && (p->strategy == STRAT_DDP || p->strategy == STRAT_ZERO1 || p->strategy == STRAT_ZERO2);
	const double parameters = (double)model_parameters(&c->model) / (double)(c->model.layers * p->tensor) * dtype_bytes(dtype_stored(c->train.grad_dtype));
	const bool spans = reduces && p->bucket_mb * 1048576 * BUCKETS_A_LAYER > parameters; /* a bucket that spans layers comes at another place in each */
	const bool casts = parts > 1 && dtype_stored(c->train.param_dtype) != dtype_stored(c->train.dtype); /* copies of weights live from stage to stage in other ways */
	const bool paced = c->data.load_time_s > 0 || c->train.sync_every > 0;
	const bool links = v->m->nodes * v->m->devices_per_node > 1; /* pieces are measured on two stages */
	return links && !v->m->device.is_host && c->train.offload == OFF_NONE && !some_recompute && !paced && !spans && !casts && !schedule_parts_backward(p->schedule) && c->model.experts == 0 && p->n_layers_per_stage == 0 && c->model.layers % parts == 0 && (parts == 1 || (c->stack.stage_split != SPLIT_COST && c->model.layers > parts)) &&
	       (parts > 1 ? p->order[DIM_COUNT - 1] == DIM_PP /* else replicas lie further apart than in a short pipeline */ : c->model.layers >= flat_layers(c)) && (parts == 1 || p->strategy == STRAT_DDP || p->strategy == STRAT_ZERO1 || p->strategy == STRAT_NONE);
}

bool evaluator_folds(const struct evaluator *v, const struct config *c)
{
	return folds(v, c);
}

static double scale_of(const struct evaluator *v, const struct config *c)
{
	int64_t per = v->m->devices_per_node, nodes = (c->ranks + per - 1) / per;
	return predict_spread(v->m, nodes) / predict_spread(v->m, v->m->nodes);
}

static uint64_t overhead_B(const struct evaluator *v, const struct config *c)
{
	struct result_memory mem = {0};
	const struct mesh mesh = mesh_of(c);
	summary_overhead(c, &mesh, v->m, &mem);
	return mem.overhead_B;
}

static void set_memory(const struct evaluator *v, const struct config *c, double peak_B, struct evaluation *out)
{
	out->memory_B = (uint64_t)(peak_B + 0.5) + overhead_B(v, c);
	out->fits = out->memory_B <= v->m->device.mem_B;
}

/* ---- a pipeline ---- */

/* ZeRO-1 cuts the optimizer's state and, where the stack does, keeps the reduced gradients' part. */
static double static_B(const struct config *c, const struct block_pieces *b, int end, int64_t layers)
{
	const double shards = c->parallel.strategy == STRAT_ZERO1 ? (double)(c->parallel.data * c->parallel.context) : 1;
	const double part_B = c->stack.shard_inside ? 0 : line_at(b->gradients_B[end], layers) / shards, cut_B = shards > 1 ? part_B - line_at(b->optimizer_B[end], layers) * (1 - 1 / shards) : 0;
	return line_at(b->static_B[end], layers) + cut_B;
}

/* A message lives until its receiver is known to have used it, and while a stage warms up it hears nothing of that. Where little else is kept, the warm-up's end is the peak: messages of what is in flight beyond the short program. With sequence parallelism they are too small to move it. */
static double unheard_B(const struct config *c, const struct block_pieces *b, const struct memory_pieces *mem, double kept_B)
{
	const int64_t rows = c->train.micro_batch * c->model.seq_len / c->parallel.context / (c->parallel.sequence_parallel ? c->parallel.tensor : 1);
	const double more = c->train.recompute == REC_FULL && !c->parallel.sequence_parallel ? kept_B / of_flight_B(c, b) - mem->flights : 0;
	return more > 0 ? more * (double)(rows * c->model.hidden) * dtype_bytes(dtype_stored(c->train.dtype)) : 0;
}

/* mem, d: NULL: what passes, what is there at the step's ends alone, does not count. */
static enum status pipeline_memory(const struct evaluator *v, const struct block_pieces *b, const struct memory_pieces *mem, const struct data_pieces *d, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t layers = c->model.layers / c->parallel.pipeline;
	double peak_B = 0;
	for (int s = 0; s < END_COUNT; s++) {
		double kept_B = most_kept_B(c, b, s, e);
		if (kept_B < 0)
			return e->status;
		if (mem && s == END_FIRST)
			kept_B += unheard_B(c, b, mem, kept_B);
		peak_B = fmax(peak_B, fmax((mem ? mem->passing_B[s] : 0) + kept_B + static_B(c, b, s, layers), d ? line_at(d->least_B[s], layers) : 0));
	}
	set_memory(v, c, peak_B, out);
	return ST_OK;
}

static enum status message_s(struct evaluator *v, int64_t from, int64_t to, double *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t rows = c->train.micro_batch * c->model.seq_len / c->parallel.context / (c->parallel.sequence_parallel ? c->parallel.tensor : 1);
	struct op op = {.kind = OP_COLLECTIVE, .coll = COLL_SEND, .lane = LANE_SEND_NEXT, .group = DIM_PP, .dtype = (uint8_t)dtype_stored(c->train.dtype), .d = {rows * c->model.hidden, to, from}};
	struct op_cost cost;
	enum status st = cost_op(&v->shape, &op, v->m, &cost, e);
	*out = st ? 0 : cost.alone_s * predict_spread(v->m, v->m->nodes);
	return st;
}

/* The tied table's gradient travels between the ends of the pipeline, which lie further apart than in a short one. */
static enum status ends_s(struct evaluator *v, int64_t stages, double *out, struct error *e)
{
	const struct config *c = &v->plan;
	const int64_t shards = c->parallel.strategy == STRAT_ZERO1 ? c->parallel.data * c->parallel.context : 1, table = model_padded_vocab(&c->model, c->parallel.tensor) / c->parallel.tensor * c->model.hidden;
	const struct op op = {.kind = OP_COLLECTIVE, .coll = COLL_ALL_REDUCE, .flags = OP_ENDS, .lane = LANE_COMM, .group = DIM_PP, .dtype = (uint8_t)dtype_stored(c->train.grad_dtype), .d = {table / shards}};
	struct op_cost cost;
	v->shape.mesh.size[DIM_PP] = stages;
	enum status st = cost_op(&v->shape, &op, v->m, &cost, e);
	*out = st ? 0 : cost.alone_s * predict_spread(v->m, v->m->nodes);
	return st;
}

struct walked {
	double ends_s[END_COUNT]; /* the first and the last stage have ended their actions */
	double message_s;         /* between the first two stages */
	double further_s;         /* the tied table's gradient takes longer than in a short pipeline */
};

static enum status walk(struct evaluator *v, const struct block_pieces *b, struct walked *out, struct error *e)
{
	const struct parallel *p = &v->plan.parallel;
	const struct schedule_shape shape = {p->schedule, p->pipeline, p->virtual_stages, v->plan.micro_batches};
	const int64_t layers = v->plan.model.layers / p->pipeline / p->virtual_stages;
	struct walk_times t;
	memset(&t, 0, sizeof t);
	for (int k = 0; k < ACTION_KIND_COUNT; k++) {
		t.begin_s[0][k] = line_at(b->begin_s[END_FIRST][k], layers);
		t.steady_s[0][k] = line_at(b->steady_s[END_FIRST][k], layers);
		t.begin_s[1][k] = b->begin_s[END_FIRST][k].each * (double)layers;
		t.steady_s[1][k] = b->steady_s[END_FIRST][k].each * (double)layers;
		t.begin_s[2][k] = line_at(b->begin_s[END_LAST][k], layers);
		t.steady_s[2][k] = line_at(b->steady_s[END_LAST][k], layers);
	}
	v->shape.config = v->plan;
	v->shape.mesh = mesh_of(&v->plan);
	enum status st = ST_OK;
	int64_t known = -1; /* the pair's stride that the last message was priced with */
	for (int64_t i = 0; i < p->pipeline && !st; i++) {
		const int64_t next = (i + 1) % p->pipeline, stride = pair_stride(v->m, v->shape.mesh.stride[DIM_PP], i, next);
		if (stride == known)
			t.message_s[i] = t.message_s[i - 1];
		else
			st = message_s(v, i, next, &t.message_s[i], e);
		known = stride;
	}
	struct {
		struct schedule_shape shape;
		struct walk_times times;
	} key;
	memset(&key, 0, sizeof key);
	key.shape.kind = p->schedule; /* member by member: padding is hashed too */
	key.shape.stages = p->pipeline;
	key.shape.chunks = p->virtual_stages;
	key.shape.micro_batches = v->plan.micro_batches;
	key.times = t;
	void *piece;
	bool fresh;
	if (!st && !(st = find(v, PIECES_WALK, &key, sizeof key, &piece, &fresh, e))) {
		double *known_s = piece;
		if (fresh)
			st = walk_pipeline(&shape, &t, &known_s[0], &known_s[1], e);
		memcpy(out->ends_s, known_s, sizeof out->ends_s);
	}
	out->message_s = t.message_s[0];
	out->further_s = 0;
	double near_s, far_s;
	if (!st && v->plan.model.tied_embeddings && !(st = ends_s(v, 2, &near_s, e)) && !(st = ends_s(v, p->pipeline, &far_s, e)))
		out->further_s = far_s - near_s;
	return st;
}

/* Reductions of the parts before the last that are still to come when its backward begins: each had as many actions to hide behind as there are stages. */
static double backlog_s(double comm_s, double beside_s, int64_t chunks)
{
	return comm_s > beside_s ? (double)(chunks - 1) * (comm_s - beside_s) : 0;
}

/* False: the host thread sets the pace. */
static bool compose(const struct evaluator *v, const struct block_pieces *b, const struct data_pieces *d, const struct walked *w, struct evaluation *out)
{
	const struct config *c = &v->plan;
	const struct parallel *p = &c->parallel;
	const int64_t layers = c->model.layers / p->pipeline, part = layers / p->virtual_stages, chunks = p->virtual_stages, m = c->micro_batches;
	double latest_s = 0, scale = scale_of(v, c);
	bool good = b->straight;
	for (int s = 0; s < END_COUNT; s++) {
		const double comm_s = d->comm_s[s].each * (double)part /* of a part with neither table: on either stage all but one */, beside_s = line_at(b->steady_s[s][ACTION_BACKWARD], part) * (double)p->pipeline;
		/* While an earlier part's reductions move, messages of the actions beside them take longer. */
		const double earlier_s = p->overlap ? (double)(chunks - 1) * (c->stack.overlap_tax * comm_s + fmin(1, comm_s / beside_s) * (double)p->pipeline * (d->message_s - w->message_s)) : 0;
		const double first_s = line_at(d->slowed_s[END_FIRST], part), last_s = line_at(d->slowed_s[END_LAST], part);
		const double slowed_s = s == END_LAST ? last_s : p->schedule == SCHED_ZERO_BUBBLE ? first_s : last_s + (double)(p->pipeline - 1) * (first_s + d->message_s - w->message_s);
		const double reduce_s = line_at(d->reduce_s[s], p->overlap ? part : layers) + w->further_s + (p->overlap ? backlog_s(comm_s, beside_s, chunks) : 0), optimize_s = line_at(d->optimize_s[s], layers);
		const double end_s = (line_at(d->gathered_s[END_FIRST], part) + w->ends_s[s] + slowed_s + earlier_s + reduce_s + optimize_s) * scale;
		if (end_s <= latest_s)
			continue;
		latest_s = end_s;
		double busy_s = 0, blocked_s = 0;
		for (int k = 0; k < ACTION_KIND_COUNT; k++)
			blocked_s += b->steady_s[s][k].at0 + b->steady_s[s][k].each * (double)layers;
		busy_s = line_at(b->compute_s[s], layers);
		out->compute_s = ((double)m * busy_s + line_at(d->slowed_s[s], part) + earlier_s) * scale;
		out->exposed_comm_s = ((double)m * fmax(0, blocked_s - busy_s) + fmax(0, reduce_s)) * scale;
		out->optimizer_s = optimize_s * scale;
		out->bubble_s = fmax(0, end_s - out->compute_s - out->exposed_comm_s - out->optimizer_s);
		good = good && (double)m * line_at(b->host_s[s], layers) < end_s;
	}
	out->step_s = latest_s;
	out->other_s = latest_s - out->compute_s - out->exposed_comm_s - out->optimizer_s - out->bubble_s;
	return good;
}

static enum status evaluate_pipeline(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct block_pieces *b;
	const struct data_pieces *d;
	const struct memory_pieces *mem;
	struct walked w;
	enum status st = find_block(v, &b, e);
	if (st || (st = pipeline_memory(v, b, NULL, NULL, out, e)) || !out->fits || (st = find_memory(v, b, &mem, e)) || (st = pipeline_memory(v, b, mem, NULL, out, e)) || !out->fits ||
	    (st = find_data(v, b, &d, e)) || (st = pipeline_memory(v, b, mem, d, out, e)) || !out->fits || (st = walk(v, b, &w, e)))
		return st;
	out->folded = compose(v, b, d, &w, out);
	return ST_OK;
}

/* ---- one stage ---- */

static enum status find_flat_memory(struct evaluator *v, int kind, int64_t layers, enum status (*measure)(const struct config *, int64_t, struct flat_memory *, struct error *), struct line *out, struct error *e)
{
	void *piece;
	bool fresh;
	enum status st = find(v, kind, &v->small, CONFIG_MEANT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = measure(&v->plan, layers, piece, e);
	}
	*out = st ? (struct line){0} : flat_memory_of(piece, &v->plan);
	return st;
}

/* The peak of few layers may be where hardly any activation lives; with more layers another moment takes over, and the line through few says too little: then all layers are laid out. */
#define BENT 0.001
#define FEW_LAYERS 6

/* What is there always, and then with what all layers keep, may be too much already. */
static enum status flat_memory(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	const struct block_pieces *b;
	const int64_t layers = c->model.layers;
	struct line always, peak;
	flat_static_config(c, 1, &v->small);
	enum status st = find_flat_memory(v, PIECES_STATIC, 1, flat_static_measure, &always, e);
	if (st)
		return st;
	set_memory(v, c, line_at(always, layers), out);
	if (!out->fits || (st = find_block(v, &b, e)))
		return st;
	const double each_B = always.each + b->kept_B[END_FIRST].each;
	set_memory(v, c, line_at(always, layers) + b->kept_B[END_FIRST].each * (double)layers, out);
	if (!out->fits)
		return ST_OK;
	const int64_t few = FEW_LAYERS + 2 * c->parallel.prefetch; /* by then so many units are gathered at once as ever */
	for (int64_t from = few < layers ? few : layers; !st; from = layers) {
		flat_memory_config(c, from, &v->small);
		if (!(st = find_flat_memory(v, PIECES_FLAT_MEMORY, from, flat_memory_measure, &peak, e)))
			set_memory(v, c, line_at(peak, layers), out);
		if (from == layers || (double)(layers - from - 1) * (each_B - peak.each) <= BENT * line_at(peak, layers))
			break;
	}
	return st;
}

static enum status evaluate_flat(struct evaluator *v, struct evaluation *out, struct error *e)
{
	const struct config *c = &v->plan;
	void *piece;
	bool fresh;
	enum status st = flat_memory(v, out, e);
	if (st || !out->fits)
		return st;
	flat_config(c, 1, c->micro_batches > FLAT_MICROS ? FLAT_MICROS + 1 : FLAT_MICROS, &v->small);
	st = find(v, PIECES_FLAT, &v->small, CONFIG_MEANT, &piece, &fresh, e);
	if (!st && fresh) {
		v->counts.measured += 2;
		st = flat_pieces_measure(c, v->m, piece, e);
	}
	if (st)
		return st;
	const struct flat_pieces *f = piece;
	const int64_t layers = c->model.layers;
	const double more = c->micro_batches > FLAT_MICROS ? (double)(c->micro_batches - FLAT_MICROS) : 0, scale = scale_of(v, c);
	out->step_s = (line_at(f->step_s, layers) + more * line_at(f->micro_s, layers)) * scale;
	/* what a further micro-batch is made of: as those that were counted */
	const double compute_s = line_at(f->compute_s, layers), comm_s = line_at(f->exposed_comm_s, layers), grows = 1 + more * line_at(f->micro_s, layers) / fmax(1e-12, compute_s + comm_s);
	out->optimizer_s = line_at(f->optimizer_s, layers) * scale;
	out->compute_s = compute_s * grows * scale;
	out->exposed_comm_s = comm_s * grows * scale;
	out->other_s = out->step_s - out->optimizer_s - out->compute_s - out->exposed_comm_s;
	out->folded = f->straight && line_at(f->host_s, layers) * (double)c->micro_batches / FLAT_MICROS < out->step_s;
	return ST_OK;
}

/* ---- any plan ---- */

static enum status predict_plan(const struct evaluator *v, struct evaluation *out, struct error *e)
{
	struct result *r = malloc(sizeof *r);
	struct machine here = *v->m;
	here.nodes = (v->plan.ranks + here.devices_per_node - 1) / here.devices_per_node;
	enum status st = r ? predict_fitting(&v->plan, &here, r, e) : error_nomem(e, "a plan");
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

enum status evaluate_plan(struct evaluator *v, const struct config *c, int64_t ranks, struct evaluation *out, struct error *e)
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
	const bool may = folds(v, &v->plan);
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
	return ST_OK;
}

void evaluator_destroy(struct evaluator *v)
{
	for (size_t i = 0; v && i < v->slots; i++)
		free(v->known[i].piece);
	if (v)
		free(v->known);
	free(v);
}

void evaluator_only_fold(struct evaluator *v)
{
	v->only_fold = true;
}

struct evaluator_counts evaluator_counts(const struct evaluator *v)
{
	return v->counts;
}
