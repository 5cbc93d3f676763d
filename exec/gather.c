#include "exec/gather.h"

#include <stdlib.h>
#include <string.h>

#include "exec/mpi_check.h"

#define PS_PER_NS 1000

/* On the wire: begin_ns, then begin and end of each op. */
static size_t words(const struct role *r)
{
	return 1 + 2 * r->ops.n;
}

static int64_t begin_of(const int64_t *record, size_t op)
{
	return record[1 + 2 * op];
}

static int64_t end_of(const int64_t *record, size_t op)
{
	return record[2 + 2 * op];
}

/* Where time begins for each rank. */
static void find_zero(const struct session *s, const int64_t *all, size_t n, int64_t *zero_ns)
{
	for (int64_t r = 0; r < s->info.ranks; r++) {
		zero_ns[r] = all[(size_t)r * n];
		for (int64_t other = 0; other < s->info.ranks; other++)
			if (s->host_of[other] == s->host_of[r] && all[(size_t)other * n] < zero_ns[r])
				zero_ns[r] = all[(size_t)other * n];
	}
}

/* The last arrival of the op's group, in the time of `rank`. Ranks run one role: the op has one index. */
static int64_t last_arrival(const struct program *p, const int64_t *all, size_t n, const int64_t *zero_ns, int64_t rank, const struct op *op, size_t i)
{
	int64_t last = 0;
	for (int64_t m = 0; m < p->mesh.size[op->group]; m++) {
		int64_t member = mesh_member(&p->mesh, rank, op->group, m);
		int64_t at = begin_of(all + (size_t)member * n, i) - zero_ns[member];
		last = at > last ? at : last;
	}
	return last;
}

static enum status build(const struct session *s, const struct program *p, const int64_t *all, const int64_t *zero_ns, struct timeline *out, struct error *e)
{
	const struct role *role = &p->roles[0];
	size_t n = words(role);
	*out = (struct timeline){.actors = (uint32_t)s->info.ranks};
	if (!vec_reserve(&out->spans, (size_t)s->info.ranks * role->ops.n))
		return error_nomem(e, "the timeline");
	for (int64_t rank = 0; rank < s->info.ranks; rank++)
		for (size_t i = 0; i < role->ops.n; i++) {
			const struct op *op = &role->ops.at[i];
			const int64_t *record = all + (size_t)rank * n;
			int64_t begin = begin_of(record, i) - zero_ns[rank], end = end_of(record, i) - zero_ns[rank], move = begin;
			if (op->kind == OP_COLLECTIVE) {
				int64_t last = last_arrival(p, all, n, zero_ns, rank, op, i);
				move = last < begin ? begin : last > end ? end : last;
			}
			struct span span = {.actor = (uint32_t)rank, .op = (uint32_t)i, .lane = op->lane, .class_ = (uint8_t)op_class_of(op), .phase = op->phase, .recomputed = (op->flags & OP_RECOMPUTED) != 0,
			                    .start_ps = begin * PS_PER_NS, .move_ps = move * PS_PER_NS, .end_ps = end * PS_PER_NS};
			out->spans.at[out->spans.n++] = span;
			out->step_ps = span.end_ps > out->step_ps ? span.end_ps : out->step_ps;
		}
	return timeline_check(out, e);
}

enum status gather_timeline(struct session *s, const struct program *p, const struct record *mine, struct timeline *out, struct error *e)
{
	const struct role *role = &p->roles[0];
	size_t n = words(role), ranks = (size_t)s->info.ranks;
	bool root = s->info.rank == 0;
	enum status st = ST_OK;
	int64_t *own = malloc(n * sizeof *own), *all = root ? malloc(ranks * n * sizeof *all) : NULL, *zero_ns = root ? malloc(ranks * sizeof *zero_ns) : NULL;
	*out = (struct timeline){0};
	if (!own || (root && (!all || !zero_ns)))
		st = error_nomem(e, "the ranks' times");
	if ((st = session_agree(s, st, e)))
		goto out;
	own[0] = mine->begin_ns;
	memcpy(own + 1, mine->stamps, role->ops.n * sizeof *mine->stamps);
	MPI_Request r;
	if ((st = MPI_CHECK(MPI_Igather(own, (int)n, MPI_INT64_T, all, (int)n, MPI_INT64_T, 0, s->world, &r), e)) || (st = session_wait(s, &r, e)))
		goto out;
	if (root) {
		find_zero(s, all, n, zero_ns);
		st = build(s, p, all, zero_ns, out, e);
	}
out:
	if (st)
		timeline_free(out);
	free(own);
	free(all);
	free(zero_ns);
	return st;
}
