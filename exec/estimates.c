/* execute_estimates(): NCCL's own opinion on the collectives of a program, asked on buffers and communicators made for
 * it. */
#include <math.h>

#include "base/log.h"
#include "exec/gpus.h"

/* The first op that does the same: it has the same estimate. */
static size_t first_alike(const struct role *r, size_t op)
{
	const struct op *a = &r->ops.at[op];
	size_t i = 0;
	for (;; i++) {
		const struct op *b = &r->ops.at[i];
		if (b->kind == a->kind && b->coll == a->coll && b->reduce == a->reduce && b->dtype == a->dtype &&
			b->group == a->group && b->collective.elements == a->collective.elements)
			return i;
	}
}

static uint64_t largest_B(const struct role *r)
{
	uint64_t most = 0;
	for (size_t i = 0; i < r->ops.n; i++) {
		uint64_t bytes = r->ops.at[i].kind == OP_COLLECTIVE
		                         ? (uint64_t)((double)r->ops.at[i].collective.elements *
						      dtype_bytes((enum dtype)r->ops.at[i].dtype))
		                         : 0;
		most = bytes > most ? bytes : most;
	}
	return most;
}

enum status execute_estimates(struct session *s, const struct program *p, double *seconds, struct error *e)
{
	const struct role *r = &p->roles[0];
	const struct gpus *g = s->gpus;
	struct comm comm[DIM_ALL] = {{0}};
	struct cuda_scratch scratch = {0};
	for (size_t i = 0; i < r->ops.n; i++)
		seconds[i] = NAN;
	if (!g || !g->world.ops || largest_B(r) == 0)
		return ST_OK;
	watchdog_arm(s->watchdog, "asking NCCL for estimates");
	enum status st = session_agree(s, g->backend->scratch_open(g->device, largest_B(r), &scratch, e), e);
	for (size_t i = 0; i < r->ops.n && !st; i++) {
		const struct op *op = &r->ops.at[i];
		struct comm *c = &comm[op->group];
		int64_t size = p->mesh.size[op->group];
		if (op->kind != OP_COLLECTIVE || op->group == DIM_PP || size < 2)
			continue;
		size_t alike = first_alike(r, i);
		if (alike < i) {
			seconds[i] = seconds[alike];
			continue;
		}
		if (!c->ops && (st = session_agree(s, gpus_comm(s, size, p->mesh.stride[op->group], c, e), e)))
			break;
		struct comm_call call = {(enum collective)op->coll, (enum reduce_op)op->reduce, (enum dtype)op->dtype,
			(uint64_t)op->collective.elements, scratch.memory[0], scratch.memory[1], scratch.queue};
		struct error none = {ST_OK, ""};
		if (g->backend->nccl_estimate(c, &call, &seconds[i], &none)) {
			seconds[i] = NAN;
			log_detail("no estimate of NCCL's: %s", none.text);
		}
		watchdog_progress(s->watchdog);
	}
	if (!st)
		st = session_barrier(s, e);
	watchdog_disarm(s->watchdog);
	for (int d = 0; d < DIM_ALL; d++)
		comm_destroy(&comm[d]);
	g->backend->scratch_close(&scratch);
	return st;
}
