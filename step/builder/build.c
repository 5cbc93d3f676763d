/* program_build builds a program for each pipeline stage. The primitives below it append buffers and ops. */
#include "step/builder/blocks.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void build_nomem(struct builder *b, const char *what)
{
	if (!b->st)
		b->st = error_nomem(b->e, what);
}

static void fail_nomem(struct builder *b) { build_nomem(b, "the step program"); }

/* ---- buffers ---- */

int32_t build_buffer(struct builder *b, enum component comp, enum dtype dt, int64_t elements, bool persistent)
{
	struct buffer buf = {comp, dt, (uint64_t)((double)elements * dtype_bytes(dt) + 0.5), persistent, false};
	const struct usage use = {.writer = NONE};
	if (b->st || !vec_push(&b->r->buffers, buf) || !vec_push(&b->usage, use)) {
		fail_nomem(b);
		return NONE;
	}
	return (int32_t)b->r->buffers.n - 1;
}

int32_t build_hold(struct builder *b, enum component comp, double bytes, const char *what)
{
	struct held h = {comp, (uint64_t)(bytes + 0.5), (uint32_t)b->r->ops.n, HELD_ALWAYS, what};
	if (b->st || h.bytes == 0)
		return NONE;
	if (!vec_push(&b->r->held, h)) {
		fail_nomem(b);
		return NONE;
	}
	return (int32_t)b->r->held.n - 1;
}

void build_release(struct builder *b, int32_t *held)
{
	if (*held != NONE && !b->st)
		b->r->held.at[*held].to = (uint32_t)b->r->ops.n - 1;
	*held = NONE;
}

int32_t build_act(struct builder *b, int64_t rows, int64_t cols)
{
	return build_buffer(b, COMP_ACTIVATIONS, b->act, rows * cols, false);
}

int32_t build_rows(struct builder *b) { return build_act(b, b->rows, b->m->hidden); }

int32_t build_fp32(struct builder *b, int64_t elements)
{
	return build_buffer(b, COMP_ACTIVATIONS, DT_FP32, elements, false);
}

int64_t build_size(const struct builder *b, int32_t buffer)
{
	const struct buffer *at = &b->r->buffers.at[buffer];
	return (int64_t)((double)at->bytes / dtype_bytes(at->dtype));
}

struct view view_at(int32_t buffer, uint64_t offset_B) { return (struct view){.buffer = buffer, .offset_B = offset_B}; }

struct view view_of(int32_t buffer) { return view_at(buffer, 0); }

/* ---- ops ---- */

struct op build_new(const struct builder *b, enum op_kind k, const char *what)
{
	struct op op = b->blank;
	op.kind = (uint8_t)k;
	op.lane = LANE_COMPUTE;
	op.phase = (uint8_t)b->phase;
	op.dtype = op.out_dtype = (uint8_t)b->act;
	op.mlp = (uint8_t)b->m->mlp;
	op.images = model_is_conv(b->m);
	op.flags = b->recomputing ? OP_RECOMPUTED : 0;
	op.micro = b->micro;
	op.layer = b->layer;
	op.bucket = NONE;
	op.what = what;
	return op;
}

struct op build_matrix(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols)
{
	struct op op = build_new(b, k, what);
	op.matrix.rows = rows;
	op.matrix.cols = cols;
	return op;
}

void build_span(struct builder *b, int64_t seq)
{
	b->seq = seq / b->context;
	b->tokens = b->c->train.micro_batch * b->seq;
	b->rows = b->sequence_parallel ? b->tokens / b->tensor : b->tokens;
}

struct op build_sequence_op(const struct builder *b, enum op_kind k, const char *what, int64_t first)
{
	struct op op = build_new(b, k, what);
	op.sequence.batch = b->c->train.micro_batch;
	op.sequence.seq = b->m->seq_len;
	op.sequence.first = first;
	op.sequence.cols = b->m->hidden;
	return op;
}

void build_after(struct builder *b, enum lane lane, int64_t op)
{
	if (op != NONE && !vec_push(&b->after[lane], op))
		fail_nomem(b);
}

int64_t build_last(const struct builder *b, enum lane lane) { return b->clocks.last[lane]; }

static bool is_known(const struct builder *b, uint32_t op, const struct clock *known)
{
	return b->clocks.place.at[op] < known->known[b->r->ops.at[op].lane];
}

/* The arguments of an op that is appended. */
struct touched {
	const struct view *args;
	int n;
	bool writes[OP_MAX_ARGS]; /* else it reads alone */
};

static struct touched touched_by(const struct op *op, const struct view *args)
{
	struct touched t = {args, op_kind_info(op->kind)->n_args, {false}};
	for (int i = 0; i < t.n; i++)
		t.writes[i] = op_access(op, i) & ACC_W;
	return t;
}

/* Fills *out with the ops that an op must follow because of the buffers it touches, but for those that it knows to have
 * ended. Returns their number, at most 1 + LANE_COUNT for each argument. */
static size_t hazards(const struct builder *b, const struct touched *t, const struct clock *known, int64_t *out)
{
	size_t n = 0;
	for (int i = 0; i < t->n; i++) {
		if (t->args[i].buffer < 0)
			continue;
		const struct usage *u = &b->usage.at[t->args[i].buffer];
		if (u->writer != NONE && !is_known(b, (uint32_t)u->writer, known))
			out[n++] = u->writer;
		for (uint32_t left = t->writes[i] ? u->readers : 0; left; left &= left - 1) {
			const int32_t reader = u->reader[__builtin_ctz(left)];
			if (!is_known(b, (uint32_t)reader, known))
				out[n++] = reader;
		}
	}
	return n;
}

/* Sorts a few numbers, the largest first: by insertion, as qsort's calls would take longer than all else of an op. */
static void sort_descending(int64_t *at, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const int64_t x = at[i];
		size_t k = i;
		for (; k > 0 && at[k - 1] < x; k--)
			at[k] = at[k - 1];
		at[k] = x;
	}
}

static void record_use(struct builder *b, const struct touched *t, uint8_t lane, int32_t id)
{
	for (int i = 0; i < t->n; i++) {
		if (t->args[i].buffer < 0)
			continue;
		struct usage *u = &b->usage.at[t->args[i].buffer];
		if (t->writes[i]) {
			u->writer = id;
			u->readers = 0;
		} else if (u->writer != id) {
			u->reader[lane] = id;
			u->readers |= 1u << lane;
		}
	}
}

static bool append_args(struct role *r, const struct touched *t)
{
	if (t->n == 0)
		return true; /* there may be no array yet to copy to */
	if (!vec_reserve(&r->args, (size_t)t->n))
		return false;
	memcpy(&r->args.at[r->args.n], t->args, (size_t)t->n * sizeof *t->args);
	r->args.n += (size_t)t->n;
	return true;
}

/* Appends when the op begins. An op of LANE_COMPUTE also tells which of the other lanes' ops have ended once it has. */
static bool append_when(struct builder *b, const struct op *op, const struct clock *known)
{
	struct role *r = b->r;
	const bool computes = op->lane == LANE_COMPUTE;
	const uint32_t begins = known->known[LANE_COMPUTE], over = computes ? begins + 1 : OVER_NEVER;
	if (!vec_push(&r->when, ((struct op_when){begins, over})) ||
		(!computes && !vec_push(&b->on_lane[op->lane], (uint32_t)r->when.n - 1)))
		return false;
	for (int l = 0; computes && l < LANE_COUNT; l++)
		for (; l != LANE_COMPUTE && b->heard[l] < known->known[l]; b->heard[l]++)
			r->when.at[b->on_lane[l].at[b->heard[l]]].over = over;
	return true;
}

void build_op(struct builder *b, struct op op, const struct view *args)
{
	if (b->st)
		return;
	struct role *r = b->r;
	int64_t wait[OP_MAX_ARGS * (LANE_COUNT + 1) + 16];
	const struct touched touched = touched_by(&op, args);
	struct clock known = clocks_lane(&b->clocks, op.lane);
	size_t n = hazards(b, &touched, &known, wait);
	for (size_t i = 0; i < b->after[op.lane].n && n < COUNT(wait); i++)
		wait[n++] = b->after[op.lane].at[i];
	b->after[op.lane].n = 0;
	sort_descending(wait, n); /* the latest first: they often imply the others */
	op.dep0 = (uint32_t)r->deps.n;
	for (size_t i = 0; i < n; i++) {
		uint32_t dep = (uint32_t)wait[i];
		if (is_known(b, dep, &known))
			continue;
		if (r->ops.at[dep].lane != op.lane && !vec_push(&r->deps, dep))
			fail_nomem(b);
		clocks_join(&b->clocks, r, dep, &known);
	}
	op.n_dep = (uint32_t)r->deps.n - op.dep0;
	op.arg0 = (uint32_t)r->args.n;
	if (b->st || !append_args(r, &touched) || !clocks_append(&b->clocks, &op, &known) ||
		!append_when(b, &op, &known) || !vec_push(&r->ops, op)) {
		fail_nomem(b);
		return;
	}
	record_use(b, &touched, op.lane, (int32_t)r->ops.n - 1);
}

void build_on_buffers(struct builder *b, struct op op, const int32_t *buffers)
{
	struct view args[OP_MAX_ARGS];
	for (int i = 0; i < op_kind_info(op.kind)->n_args; i++)
		args[i] = view_of(buffers[i]);
	build_op(b, op, args);
}

struct op build_collective(const struct builder *b, enum collective coll, enum mesh_dim group, enum lane lane,
	enum dtype dt, int64_t elements, const char *what, int32_t bucket)
{
	struct op op = build_new(b, OP_COLLECTIVE, what);
	op.lane = (uint8_t)lane;
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.coll = (uint8_t)coll;
	op.group = (uint8_t)group;
	op.bucket = bucket;
	op.collective.elements = elements;
	return op;
}

void build_all_reduce(struct builder *b, enum mesh_dim group, enum lane lane, enum dtype dt, int64_t elements,
	struct view v, const char *what, int32_t bucket)
{
	build_with(b, build_collective(b, COLL_ALL_REDUCE, group, lane, dt, elements, what, bucket), v, v);
}

int32_t build_exchange(struct builder *b, enum collective coll, enum mesh_dim group, int32_t in, int64_t rows,
	int64_t cols, const char *what)
{
	int32_t out = build_act(b, coll == COLL_REDUCE_SCATTER ? rows / b->p->mesh.size[group] : rows, cols);
	build_on(b, build_collective(b, coll, group, LANE_MODEL_COMM, b->act, rows * cols, what, NONE), in, out);
	return out;
}

int32_t build_swap(struct builder *b, const char *what, int32_t x, enum dtype dt, int64_t outer, int64_t inner,
	int64_t cols)
{
	if (outer == 1 || inner == 1)
		return x;
	struct op op = build_new(b, OP_SWAP, what);
	int32_t y = build_buffer(b, COMP_ACTIVATIONS, dt, outer * inner * cols, false);
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.swap.outer = outer;
	op.swap.inner = inner;
	op.swap.cols = cols;
	build_on(b, op, x, y);
	return y;
}

void build_cast(struct builder *b, struct view x, enum dtype from, struct view y, enum dtype to, int64_t elements,
	const char *what)
{
	struct op op = build_new(b, OP_CAST, what);
	op.dtype = (uint8_t)from;
	op.out_dtype = (uint8_t)to;
	op.vector.elements = elements;
	build_with(b, op, x, y);
}

void build_fill(struct builder *b, struct view v, enum dtype dt, int64_t elements, const char *what)
{
	struct op op = build_new(b, OP_FILL, what);
	op.dtype = op.out_dtype = (uint8_t)dt;
	op.vector.elements = elements;
	build_op(b, op, &v);
}

/* ---- the step ---- */

static enum status builder_init(struct builder *b, const struct config *c, struct program *p, int64_t stage,
	struct error *e)
{
	memset(b, 0, sizeof *b);
	b->c = c;
	b->m = &p->config.model;
	b->p = p;
	b->r = &p->roles[stage];
	b->e = e;
	clocks_init(&b->clocks);
	b->stage = stage;
	b->stages = c->parallel.pipeline;
	b->chunks = c->parallel.virtual_stages;
	b->has_embedding = stage == 0;
	b->has_head = stage == stages_head(c);
	b->tensor = c->parallel.tensor;
	b->dp = p->mesh.size[p->mesh.params];
	b->context = c->parallel.context;
	b->sequence_parallel = c->parallel.sequence_parallel && b->tensor > 1;
	build_span(b, c->model.seq_len);
	b->heads = c->model.heads / b->tensor;
	b->kv_heads = model_stored_kv_heads(&c->model, b->tensor) / b->tensor;
	b->ffn = c->model.ffn_hidden / b->tensor;
	b->vocab = model_padded_vocab(&c->model, b->tensor) / b->tensor;
	const bool shares = b->dp > 1 || p->mesh.size[p->mesh.experts] > 1; /* any bucket */
	/* A rank alone brings its weights in from the host as it would gather them. */
	b->gathers = strategy_has(c->parallel.strategy, STRATEGY_CUTS_WEIGHTS) &&
	             (shares || c->train.offload == OFF_OPTIMIZER_PARAMS);
	b->shards_gradients = parallel_reduces_each(&c->parallel) && shares;
	b->act = dtype_stored(c->train.dtype);
	b->weight = dtype_stored(c->train.param_dtype);
	b->narrow_stored = dtype_is_narrow(c->train.param_dtype);
	b->narrow_gathered = b->gathers && (b->narrow_stored || c->parallel.gather_dtype == DT_FP8);
	b->grad = c->train.grad_dtype;
	b->written_grad = b->gathers && b->shards_gradients ? b->act : b->grad;
	b->reduce = c->train.reduce_dtype;
	b->layer = b->micro = NONE;
	b->gradient_copies = NONE;
	b->reduced[0] = b->reduced[1] = NONE;
	build_schedule(b);
	return b->st;
}

static void builder_free(struct builder *b)
{
	clocks_free(&b->clocks);
	vec_free(&b->usage);
	for (int l = 0; l < LANE_COUNT; l++) {
		vec_free(&b->after[l]);
		vec_free(&b->on_lane[l]);
	}
	free(b->layer_chunk);
	free(b->param_index);
	free(b->buckets);
	free(b->cast_now);
	free(b->units.at);
	free(b->batch);
	vec_free(&b->narrow);
	vec_free(&b->narrow_first);
	build_pipeline_free(b);
}

/* Makes the input on the stages that embed or compute the loss. */
static void build_inputs(struct builder *b)
{
	struct role *r = b->r;
	r->loss = r->input = NONE;
	if (b->has_head)
		r->loss = build_buffer(b, COMP_BUFFERS, DT_FP32, 1, true);
	if (b->has_head || b->has_embedding)
		feed_begin(b);
	if (b->has_head)
		build_fill(b, view_of(r->loss), DT_FP32, 1, "loss");
}

static void build_step(struct builder *b)
{
	build_buckets(b);
	build_inputs(b);
	build_gather_ahead(b);
	build_actions(b);
	b->micro = NONE;
	b->phase = PHASE_OPTIMIZER;
	build_optimizer(b);
	build_router_bias(b);
	feed_end(b);
}

#define RESERVE_MORE 8 /* one in so many more, for the embedding or the head */

/* Makes room for about as many ops and buffers as the stage before has: most stages are alike, and vectors that grow
 * copy all that they hold. */
static void reserve_as(struct builder *b, const struct role *before)
{
	struct role *r = b->r;
	const size_t ops = before->ops.n + before->ops.n / RESERVE_MORE,
		     buffers = before->buffers.n + before->buffers.n / RESERVE_MORE;
	if (!vec_reserve(&r->ops, ops) || !vec_reserve(&r->when, ops) ||
		!vec_reserve(&r->deps, before->deps.n + before->deps.n / RESERVE_MORE) ||
		!vec_reserve(&r->args, before->args.n + before->args.n / RESERVE_MORE) ||
		!vec_reserve(&r->buffers, buffers) || !vec_reserve(&b->usage, buffers) ||
		!vec_reserve(&b->clocks.at, ops) || !vec_reserve(&b->clocks.place, ops))
		fail_nomem(b);
}

static enum status build_role(struct program *p, int64_t stage, void (*build)(struct builder *), struct error *e)
{
	struct builder b;
	p->roles[stage].ranks = p->mesh.ranks / p->mesh.size[DIM_PP];
	p->roles[stage].representative = mesh_member(&p->mesh, 0, DIM_PP, stage);
	if (!builder_init(&b, &p->config, p, stage, e)) {
		if (stage > 0)
			reserve_as(&b, &p->roles[stage - 1]);
		build(&b);
	}
	builder_free(&b);
	return b.st;
}

/* Builds the first and the last stage (ends), those between, or all. */
static enum status build_roles(struct program *p, void (*build)(struct builder *), bool ends, bool between,
	struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < p->n_roles && !st; i++)
		if (i == 0 || i == p->n_roles - 1 ? ends : between)
			st = build_role(p, (int64_t)i, build, e);
	return st;
}

/* Creates a program and builds its ends; also the stages between where `between`. */
static enum status create(const struct config *c, void (*build)(struct builder *), bool between, struct program **out,
	struct error *e)
{
	int64_t stages = c->parallel.pipeline;
	struct program *p = calloc(1, sizeof *p);
	*out = NULL;
	if (!p || !(p->roles = calloc((size_t)stages, sizeof *p->roles))) {
		program_destroy(p);
		return error_nomem(e, "the step program");
	}
	p->config = *c;
	p->mesh = mesh_of(c);
	p->n_roles = (size_t)stages;
	p->loss_scale = 1.0 / ((double)c->train.global_batch * (double)model_targets(&c->model));
	enum status st = build_roles(p, build, true, between, e);
	if (st) {
		program_destroy(p);
		return st;
	}
	*out = p;
	return ST_OK;
}

enum status program_build(const struct config *c, struct program **out, struct error *e)
{
	return create(c, build_step, true, out, e);
}

enum status program_build_ends(const struct config *c, struct program **out, struct error *e)
{
	return create(c, build_step, false, out, e);
}

enum status program_build_between(struct program *p, struct error *e)
{
	return build_roles(p, build_step, false, true, e);
}

enum status program_build_stored(const struct config *c, struct program **out, struct error *e)
{
	return create(c, build_buckets, true, out, e);
}

void program_destroy(struct program *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_roles; i++) {
		struct role *r = &p->roles[i];
		vec_free(&r->ops);
		vec_free(&r->when);
		vec_free(&r->deps);
		vec_free(&r->args);
		vec_free(&r->buffers);
		vec_free(&r->held);
		vec_free(&r->buckets);
		vec_free(&r->params);
	}
	free(p->roles);
	free(p);
}
