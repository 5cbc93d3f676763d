#include "exec/gather.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mpi_check.h"
#include "step/peers.h"

#define PS_PER_NS 1000

/* The times that rank 0 makes a timeline of. Each rank sends begin_ns, then begin and end of each op of its role. */
struct gathered {
	const struct session *s;
	const struct program *p;
	int64_t *all;       /* ranks one after the other */
	int *at, *n;        /* by rank: in words */
	int64_t *zero_ns;   /* by rank: where time begins */
	uint32_t **peer_op; /* by role */
};

static const struct role *role_at(const struct program *p, int64_t rank) { return &p->roles[role_of_rank(p, rank)]; }

static int words(const struct role *r) { return (int)(1 + 2 * r->ops.n); }

static int64_t begin_of(const struct gathered *g, int64_t rank, size_t op)
{
	return g->all[(size_t)g->at[rank] + 1 + 2 * op] - g->zero_ns[rank];
}

static int64_t end_of(const struct gathered *g, int64_t rank, size_t op)
{
	return g->all[(size_t)g->at[rank] + 2 + 2 * op] - g->zero_ns[rank];
}

static void find_zero(struct gathered *g)
{
	const struct session *s = g->s;
	for (int64_t r = 0; r < s->info.ranks; r++) {
		g->zero_ns[r] = g->all[g->at[r]];
		for (int64_t other = 0; other < s->info.ranks; other++)
			if (s->host_of[other] == s->host_of[r] && g->all[g->at[other]] < g->zero_ns[r])
				g->zero_ns[r] = g->all[g->at[other]];
	}
}

/* The last arrival of the op's group, in the time of `rank`. */
static int64_t last_arrival(const struct gathered *g, int64_t rank, const struct op *op, size_t i)
{
	const struct mesh *mesh = &g->p->mesh;
	int64_t last = 0;
	if (op_is_message(op) || op->flags & OP_ENDS)
		return begin_of(g, peer_rank(mesh, rank, op), g->peer_op[role_of_rank(g->p, rank)][i]);
	for (int64_t m = 0; m < mesh->size[op->group]; m++) {
		int64_t at = begin_of(g, mesh_member(mesh, rank, op->group, m), i);
		last = at > last ? at : last;
	}
	return last;
}

static bool sends(const struct op *op) { return op->kind == OP_COLLECTIVE && op->coll == COLL_SEND; }

/* The end of a rank's op. MPI calls a message sent when a socket has taken it; it moves until its receiver has it. */
static int64_t moved_by(const struct gathered *g, int64_t rank, const struct op *op, size_t i)
{
	int64_t end = end_of(g, rank, i);
	if (!sends(op))
		return end;
	int64_t there = end_of(g, peer_rank(&g->p->mesh, rank, op), g->peer_op[role_of_rank(g->p, rank)][i]);
	return there > end ? there : end;
}

static struct span span_of(const struct gathered *g, int64_t rank, const struct op *op, size_t i)
{
	int64_t begin = begin_of(g, rank, i), end = moved_by(g, rank, op, i), move = begin;
	if (op->kind == OP_COLLECTIVE) {
		int64_t last = last_arrival(g, rank, op, i);
		move = last < begin ? begin : last > end ? end : last;
	}
	return (struct span){.actor = (uint32_t)rank,
		.op = (uint32_t)i,
		.lane = op->lane,
		.class_ = (uint8_t)op_class_of(op),
		.phase = op->phase,
		.recomputed = (op->flags & OP_RECOMPUTED) != 0,
		.start_ps = begin * PS_PER_NS,
		.move_ps = move * PS_PER_NS,
		.end_ps = end * PS_PER_NS};
}

/* A lane is busy with one op at a time: a message that still travels when the next one begins ends there. */
static void cut_at(struct span *before, int64_t begin_ps)
{
	if (before->end_ps > begin_ps)
		before->end_ps = begin_ps;
	if (before->move_ps > before->end_ps)
		before->move_ps = before->end_ps;
}

static enum status build(const struct gathered *g, size_t spans, struct timeline *out, struct error *e)
{
	*out = (struct timeline){.actors = (uint32_t)g->s->info.ranks};
	if (!vec_reserve(&out->spans, spans))
		return error_nomem(e, "the timeline");
	for (int64_t rank = 0; rank < g->s->info.ranks; rank++) {
		const struct role *role = role_at(g->p, rank);
		struct span *last[LANE_COUNT] = {0};
		for (size_t i = 0; i < role->ops.n; i++) {
			const struct op *op = &role->ops.at[i];
			struct span *span = &out->spans.at[out->spans.n++];
			*span = span_of(g, rank, op, i);
			if (!sends(op))
				continue;
			if (last[op->lane])
				cut_at(last[op->lane], span->start_ps);
			last[op->lane] = span;
		}
	}
	for (size_t i = 0; i < out->spans.n; i++)
		out->step_ps = out->spans.at[i].end_ps > out->step_ps ? out->spans.at[i].end_ps : out->step_ps;
	return timeline_check(out, e);
}

/* Room for all ranks' words; *spans: how many ops they have together. */
static enum status make_room(struct gathered *g, size_t *spans, struct error *e)
{
	size_t ranks = (size_t)g->s->info.ranks, sum = 0;
	enum status st = ST_OK;
	*spans = 0;
	g->at = malloc(ranks * sizeof *g->at);
	g->n = malloc(ranks * sizeof *g->n);
	g->zero_ns = malloc(ranks * sizeof *g->zero_ns);
	g->peer_op = calloc(g->p->n_roles, sizeof *g->peer_op);
	if (!g->at || !g->n || !g->zero_ns || !g->peer_op)
		return error_nomem(e, "the ranks' times");
	for (size_t i = 0; i < ranks; i++) {
		const struct role *r = role_at(g->p, (int64_t)i);
		g->at[i] = (int)sum;
		g->n[i] = words(r);
		*spans += r->ops.n;
		sum += (size_t)g->n[i];
	}
	if (sum > INT_MAX)
		return error_set(e, ST_RUN, "%zu times of a step's ops: one MPI call carries at most %d", sum, INT_MAX);
	for (size_t i = 0; i < g->p->n_roles && !st; i++)
		st = peer_ops(g->p, i, &g->peer_op[i], e);
	if (!st && !(g->all = malloc(sum * sizeof *g->all)))
		st = error_nomem(e, "the ranks' times");
	return st;
}

static void gathered_free(struct gathered *g)
{
	for (size_t i = 0; g->peer_op && i < g->p->n_roles; i++)
		free(g->peer_op[i]);
	free(g->peer_op);
	free(g->all);
	free(g->at);
	free(g->n);
	free(g->zero_ns);
}

enum status gather_timeline(struct session *s, const struct program *p, const struct record *mine, struct timeline *out,
	struct error *e)
{
	const struct role *role = role_at(p, s->info.rank);
	struct gathered g = {.s = s, .p = p};
	size_t spans = 0;
	int n = words(role);
	int64_t *own = malloc((size_t)n * sizeof *own);
	MPI_Request r;
	*out = (struct timeline){0};
	enum status st = own ? ST_OK : error_nomem(e, "the ranks' times");
	if (!st && s->info.rank == 0)
		st = make_room(&g, &spans, e);
	if ((st = session_agree(s, st, e)))
		goto out;
	own[0] = mine->begin_ns;
	memcpy(own + 1, mine->stamps, role->ops.n * sizeof *mine->stamps);
	if ((st = MPI_CHECK(MPI_Igatherv(own, n, MPI_INT64_T, g.all, g.n, g.at, MPI_INT64_T, 0, s->world, &r), e)) ||
		(st = session_wait(s, &r, e)))
		goto out;
	if (s->info.rank == 0) {
		find_zero(&g);
		st = build(&g, spans, out, e);
	}
out:
	if (st)
		timeline_free(out);
	free(own);
	gathered_free(&g);
	return st;
}
