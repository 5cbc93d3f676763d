/* program_check proves the invariants from the dependencies alone, whatever way the builder found them. */
#include <stdlib.h>
#include <string.h>

#include "step/clocks.h"
#include "step/gathers.h"
#include "step/program.h"
#include "step/stages.h"

struct touch {
	int64_t writer, reader[LANE_COUNT];
};

static enum status violation(const struct role *r, uint32_t id, struct error *e, const char *what)
{
	char name[OP_NAME_MAX];
	return error_set(e, ST_RUN, "op %u (%s): %s", id, op_name(&r->ops.at[id], name), what);
}

static enum status check_deps(const struct role *r, struct error *e)
{
	for (uint32_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		for (uint32_t k = 0; k < op->n_dep; k++) {
			uint32_t dep = r->deps.at[op->dep0 + k];
			if (dep >= i)
				return violation(r, i, e, "depends on an op that is issued later");
			if (r->ops.at[dep].lane == op->lane)
				return violation(r, i, e, "names a dependency on its own lane");
		}
	}
	return ST_OK;
}

static enum status check_arg(const struct role *r, const struct clocks *c, uint32_t id, int arg,
	const struct mesh *mesh, int64_t group, struct touch *touch, struct error *e)
{
	const struct op *op = &r->ops.at[id];
	const struct view *v = op_arg(r, op, arg);
	if (v->buffer < 0)
		return ST_OK;
	const struct buffer *buf = &r->buffers.at[v->buffer];
	struct touch *t = &touch[v->buffer];
	if (v->offset_B + (uint64_t)(mesh->size[v->along] - 1) * v->stride_B + op_arg_bytes(op, arg, group) >
		buf->bytes)
		return violation(r, id, e, "a view ends outside its buffer");
	enum access how = op_access(op, arg);
	if (how & ACC_R && t->writer < 0 && !buf->persistent)
		return violation(r, id, e, "reads a buffer that nothing has written");
	if (t->writer >= 0 && t->writer != id && !clocks_before(c, r, (uint32_t)t->writer, id))
		return violation(r, id, e, "is not ordered after the last writer of what it touches");
	if (how & ACC_W)
		for (int l = 0; l < LANE_COUNT; l++)
			if (t->reader[l] >= 0 && t->reader[l] != id && !clocks_before(c, r, (uint32_t)t->reader[l], id))
				return violation(r, id, e, "is not ordered after a reader of what it writes");
	return ST_OK;
}

static void record(const struct role *r, uint32_t id, struct touch *touch)
{
	const struct op *op = &r->ops.at[id];
	for (int pass = 0; pass < 2; pass++) /* reads first: an op may write what it reads */
		for (int a = 0; a < op_kind_info(op->kind)->n_args; a++) {
			int32_t buffer = op_arg(r, op, a)->buffer;
			bool writes = op_access(op, a) & ACC_W;
			if (buffer < 0 || writes != (pass == 1))
				continue;
			struct touch *t = &touch[buffer];
			if (!writes) {
				t->reader[op->lane] = id;
				continue;
			}
			t->writer = id;
			for (int l = 0; l < LANE_COUNT; l++)
				t->reader[l] = -1;
		}
}

static enum status check_buffers(const struct program *p, const struct role *r, struct error *e)
{
	struct clocks c;
	enum status st = clocks_of(r, &c, e);
	if (st)
		return st;
	struct touch *touch = malloc((r->buffers.n + 1) * sizeof *touch);
	if (!touch) {
		st = error_nomem(e, "the program check");
		goto out;
	}
	memset(touch, 0xff, (r->buffers.n + 1) * sizeof *touch); /* -1 */
	for (uint32_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		int64_t group = op->kind == OP_COLLECTIVE ? op_group_size(&p->mesh, op) : 1;
		if (op->kind == OP_COLLECTIVE && (group < 2 || p->mesh.size[op->group] < 2)) {
			st = violation(r, i, e, "a collective of one rank");
			goto out;
		}
		for (int a = 0; a < op_kind_info(op->kind)->n_args; a++)
			if ((st = check_arg(r, &c, i, a, &p->mesh, group, touch, e)))
				goto out;
		record(r, i, touch);
	}
out:
	free(touch);
	clocks_free(&c);
	return st;
}

/* The number of a strategy's collectives for each bucket in one step. */
struct expected {
	int64_t all_reduce, reduce_scatter, all_gather;
};

static struct expected expected_of(const struct program *p, const struct role *r, int32_t bucket)
{
	const struct config *c = &p->config;
	int64_t micro = c->micro_batches, one = optimizer_updates(c->train.optimizer);
	bool root = false;
	for (size_t i = 0; i < r->params.n; i++)
		root = root || (r->params.at[i].bucket == bucket && r->params.at[i].param.layer < 0);
	int64_t uses = !root && c->parallel.reshard_after_forward ? 2 * micro : c->parallel.pipeline > 1 ? 1 : micro;
	const enum strategy s = c->parallel.strategy;
	const bool replicas = p->mesh.size[DIM_REPLICA] > 1, shares = p->mesh.size[r->buckets.at[bucket].along] > 1;
	if (!shares && !replicas)
		return (struct expected){0, 0, 0};
	const bool whole = strategy_has(s, STRATEGY_CUTS_WEIGHTS) && r->buckets.at[bucket].shards == 1;
	if (!r->buckets.at[bucket].trained)
		return (struct expected){0, 0, shares && !whole && strategy_has(s, STRATEGY_CUTS_WEIGHTS) ? uses : 0};
	/* A rank that has a bucket's gradients alone in its group keeps them whole, and so until the last micro-batch,
	 * but where it frees them with the weights. */
	const bool each = parallel_reduces_each(&c->parallel) && (shares || strategy_has(s, STRATEGY_CUTS_WEIGHTS));
	const int64_t reductions = !strategy_has(s, STRATEGY_REDUCES) ? 0 : each ? micro : 1;
	if (!strategy_has(s, STRATEGY_CUTS_STATES))
		return (struct expected){reductions, 0, 0};
	if (whole) /* experts that FSDP leaves alone (parallel.shard_experts) */
		return (struct expected){(shares + replicas) * reductions, 0, 0};
	return (struct expected){replicas ? reductions : 0, shares ? reductions : 0,
		!shares                                  ? 0
		: strategy_has(s, STRATEGY_CUTS_WEIGHTS) ? uses
							 : one * gathers_of_bucket(c)};
}

/* Returns the elements that an op updates; 0: it is no update. */
static int64_t updated_by(const struct op *op)
{
	return op->kind == OP_OPTIMIZER        ? op->update.elements
	       : op->kind == OP_LAMB_STEP      ? op->tensors.elements
	       : op->kind == OP_ADAFACTOR_STEP ? op->factored.elements
	       : op->kind == OP_MUON_STEP      ? op->muon.groups * op->muon.rows * op->muon.cols
	                                       : 0;
}

static enum status check_bucket(const struct program *p, const struct role *r, int32_t bucket, struct error *e)
{
	const struct bucket *k = &r->buckets.at[bucket];
	struct expected got = {0, 0, 0}, want = expected_of(p, r, bucket);
	int64_t updates = 0, updated = 0;
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		if (op->bucket != bucket)
			continue;
		updates += updated_by(op) > 0;
		updated += updated_by(op);
		bool replicas = op->group == DIM_REPLICA;
		if (op->kind != OP_COLLECTIVE || (op->group != k->along && !replicas))
			continue;
		const bool narrow = k->narrow > 0 && op->coll == COLL_ALL_GATHER;
		const int64_t whole = narrow ? bucket_wire_B(k) : (int64_t)k->padded;
		if (op->collective.elements != whole / (replicas ? k->shards : 1))
			return violation(r, (uint32_t)i, e,
				replicas ? "does not move its whole part" : "does not move its whole bucket");
		got.all_reduce += op->coll == COLL_ALL_REDUCE;
		got.reduce_scatter += op->coll == COLL_REDUCE_SCATTER;
		got.all_gather += op->coll == COLL_ALL_GATHER;
	}
	if (got.all_reduce != want.all_reduce || got.reduce_scatter != want.reduce_scatter ||
		got.all_gather != want.all_gather)
		return error_set(e, ST_RUN,
			"bucket %d: %lld all-reduces, %lld reduce-scatters, %lld all-gathers; "
			"its strategy asks for %lld, %lld, %lld",
			bucket, (long long)got.all_reduce, (long long)got.reduce_scatter, (long long)got.all_gather,
			(long long)want.all_reduce, (long long)want.reduce_scatter, (long long)want.all_gather);
	const enum optimizer o = p->config.train.optimizer; /* muon steps matrices one by one */
	const bool one = updates == 1 || optimizer_traits[o].orthogonal;
	if (optimizer_updates(o) && k->trained && (!one || updated != bucket_part(k)))
		return error_set(e, ST_RUN, "bucket %d: %lld optimizer ops on %lld elements, one on %lld is right",
			bucket, (long long)updates, (long long)updated, (long long)bucket_part(k));
	return ST_OK;
}

/* ---- between stages ---- */

static size_t next_on(const struct role *r, size_t from, enum lane lane)
{
	while (from < r->ops.n && r->ops.at[from].lane != lane)
		from++;
	return from;
}

static enum status check_messages(const struct program *p, size_t from, size_t to, enum lane sends, enum lane receives,
	struct error *e)
{
	const struct role *a = &p->roles[from], *b = &p->roles[to];
	size_t i = next_on(a, 0, sends), k = next_on(b, 0, receives);
	while (i < a->ops.n && k < b->ops.n) {
		const struct op *x = &a->ops.at[i], *y = &b->ops.at[k];
		bool meet = op_is_message(x) && op_is_message(y) && x->coll == COLL_SEND && y->coll == COLL_RECV &&
		            x->message.peer == (int64_t)to && y->message.peer == (int64_t)from &&
		            x->message.own == (int64_t)from && y->message.own == (int64_t)to;
		if (!meet || x->message.elements != y->message.elements || x->dtype != y->dtype ||
			x->micro != y->micro || x->layer != y->layer || x->phase != y->phase)
			return error_set(e, ST_RUN, "op %zu of stage %zu is not what op %zu of stage %zu receives", i,
				from, k, to);
		i = next_on(a, i + 1, sends);
		k = next_on(b, k + 1, receives);
	}
	if (i < a->ops.n || k < b->ops.n)
		return error_set(e, ST_RUN, "stage %zu sends more or fewer messages than stage %zu receives", from, to);
	return ST_OK;
}

static enum status check_owners(const struct program *p, struct error *e)
{
	const struct model *m = &p->config.model;
	const int64_t n = model_param_count(m);
	for (int64_t i = 0; i < n; i++) {
		struct param param = model_param(m, i, p->config.parallel.tensor);
		size_t owners = 0;
		for (size_t r = 0; r < p->n_roles; r++)
			for (size_t k = 0; k < p->roles[r].params.n; k++) {
				const struct param *q = &p->roles[r].params.at[k].param;
				owners += q->kind == param.kind && q->layer == param.layer;
			}
		if (owners != (stages_share(&p->config, &param) ? 2 : 1))
			return error_set(e, ST_RUN, "%s of layer %lld belongs to %zu stages",
				param_kind_name(param.kind), (long long)param.layer, owners);
	}
	return ST_OK;
}

static enum status check_ends(const struct program *p, struct error *e)
{
	for (size_t r = 0; r < p->n_roles; r++) {
		bool end = (r == 0 || r == p->n_roles - 1) && model_trains(&p->config.model, PARAM_TOKEN_EMBEDDING);
		size_t sums = 0;
		for (size_t i = 0; i < p->roles[r].ops.n; i++)
			sums += (p->roles[r].ops.at[i].flags & OP_ENDS) != 0;
		if (sums != (end && model_table_ends(&p->config.model) && stages_head(&p->config) != 0 ? 1 : 0))
			return error_set(e, ST_RUN, "stage %zu sums the tied table's gradient %zu times", r, sums);
	}
	return ST_OK;
}

static enum status check_stages(const struct program *p, struct error *e)
{
	enum status st;
	if ((int64_t)p->n_roles != p->mesh.size[DIM_PP])
		return error_set(e, ST_RUN, "%zu roles for %lld stages", p->n_roles, (long long)p->mesh.size[DIM_PP]);
	for (size_t i = 0; i < p->n_roles; i++) {
		size_t next = (i + 1) % p->n_roles;
		if ((st = check_messages(p, i, next, LANE_SEND_NEXT, LANE_RECV_PREV, e)) ||
			(st = check_messages(p, next, i, LANE_SEND_PREV, LANE_RECV_NEXT, e)))
			return st;
	}
	return (st = check_owners(p, e)) ? st : check_ends(p, e);
}

enum status program_check(const struct program *p, struct error *e)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < p->n_roles && !st; i++) {
		const struct role *r = &p->roles[i];
		if ((st = check_deps(r, e)) || (st = check_buffers(p, r, e)))
			return st;
		for (int32_t k = 0; k < (int32_t)r->buckets.n && !st; k++)
			st = check_bucket(p, r, k, e);
	}
	if (!st && p->mesh.size[DIM_PP] > 1)
		st = check_stages(p, e);
	return st;
}
