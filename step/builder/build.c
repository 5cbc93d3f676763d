/* program_build builds a program for each pipeline stage. */
#include "step/builder/blocks.h"

#include <stdlib.h>
#include <string.h>

/* Copying it takes vectors of a processor, where so short a memset would be a slow string instruction. */
static struct op blank_op(const struct builder *b)
{
	struct op op = {.lane = LANE_COMPUTE, .bucket = NONE};
	op.dtype = op.out_dtype = (uint8_t)b->act;
	op.mlp = (uint8_t)b->m->mlp;
	op.images = model_is_conv(b->m);
	return op;
}

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
	b->wide_gathered = b->gathers && c->parallel.gather_dtype == DT_FP32;
	b->written_grad = b->gathers && b->shards_gradients && !b->wide_gathered ? b->act : b->grad;
	b->reduce = c->train.reduce_dtype;
	b->blank = blank_op(b);
	b->layer = b->micro = NONE;
	b->gradient_copies = NONE;
	b->reduced[0] = b->reduced[1] = NONE;
	b->uneven = c->model.capacity_factor > 0
	                    ? c->model.capacity_factor
	                    : model_fullest_rank(&c->model, c->data.distinct_tokens, c->parallel.expert);
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

/* Makes room for so many: vectors that grow copy all that they hold. */
static void reserve(struct builder *b, size_t ops, size_t buffers, size_t deps, size_t args)
{
	struct role *r = b->r;
	if (!vec_reserve(&r->ops, ops) || !vec_reserve(&r->when, ops) || !vec_reserve(&r->deps, deps) ||
		!vec_reserve(&r->args, args) || !vec_reserve(&r->buffers, buffers) ||
		!vec_reserve(&b->usage, buffers) || !vec_reserve(&b->clocks.at, ops) ||
		!vec_reserve(&b->clocks.place, ops))
		build_nomem(b, "the step program");
}

static size_t some_more(size_t n) { return n + n / RESERVE_MORE; }

/* Most stages are like the one before. */
static void reserve_as(struct builder *b, const struct role *before)
{
	reserve(b, some_more(before->ops.n), some_more(before->buffers.n), some_more(before->deps.n),
		some_more(before->args.n));
}

/* About the most that blocks of GPT-3 with tensor parallelism have on average in a pass, and each stage beside its
 * blocks. Room that is not used is never touched. */
#define OPS_A_PASS 32
#define ARGS_AN_OP 4
#define OPS_BESIDE 64

static void reserve_first(struct builder *b)
{
	const int64_t layers = (b->m->layers + b->stages * b->chunks - 1) / (b->stages * b->chunks);
	const size_t ops = OPS_BESIDE + OPS_A_PASS * b->actions.n * (size_t)layers;
	reserve(b, ops, ops, ops, ARGS_AN_OP * ops);
}

static enum status build_role(struct program *p, int64_t stage, void (*build)(struct builder *), struct error *e)
{
	struct builder b;
	p->roles[stage].ranks = p->mesh.ranks / p->mesh.size[DIM_PP];
	p->roles[stage].representative = mesh_member(&p->mesh, 0, DIM_PP, stage);
	if (!builder_init(&b, &p->config, p, stage, e)) {
		if (stage > 0 && p->roles[stage - 1].ops.n > 0)
			reserve_as(&b, &p->roles[stage - 1]);
		else if (build == build_step)
			reserve_first(&b);
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
