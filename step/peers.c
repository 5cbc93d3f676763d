#include "step/peers.h"

#include <stdlib.h>

enum lane peer_lane(enum lane l)
{
	switch (l) {
	case LANE_SEND_NEXT: return LANE_RECV_PREV;
	case LANE_RECV_PREV: return LANE_SEND_NEXT;
	case LANE_SEND_PREV: return LANE_RECV_NEXT;
	case LANE_RECV_NEXT: return LANE_SEND_PREV;
	default: return l;
	}
}

size_t role_of_rank(const struct program *p, int64_t rank)
{
	return p->n_roles > 1 ? (size_t)mesh_coord(&p->mesh, rank, DIM_PP) : 0;
}

static int64_t peer_stage(const struct mesh *m, int64_t stage, const struct op *op)
{
	return op_is_message(op) ? op->message.peer : stage == 0 ? m->size[DIM_PP] - 1 : 0;
}

int64_t peer_rank(const struct mesh *m, int64_t rank, const struct op *op)
{
	return mesh_member(m, rank, DIM_PP, peer_stage(m, mesh_coord(m, rank, DIM_PP), op));
}

/* The k-th op on a lane meets the k-th op on the peer's lane. Sums over the two ends are counted apart. */
static bool meets(const struct op *own, const struct op *other)
{
	if (!op_is_message(own))
		return (other->flags & OP_ENDS) != 0;
	return op_is_message(other) && other->lane == peer_lane((enum lane)own->lane);
}

enum status peer_ops(const struct program *p, size_t role, uint32_t **out, struct error *e)
{
	const struct role *r = &p->roles[role];
	size_t at[LANE_COUNT] = {0};
	uint32_t *peer = *out = malloc((r->ops.n + 1) * sizeof *peer);
	if (!peer)
		return error_nomem(e, "who meets whom");
	for (size_t i = 0; i < r->ops.n; i++) {
		const struct op *op = &r->ops.at[i];
		peer[i] = (uint32_t)i;
		if (!op_is_message(op) && !(op->flags & OP_ENDS))
			continue;
		const struct role *other = &p->roles[peer_stage(&p->mesh, (int64_t)role, op)];
		size_t *k = &at[op->lane];
		while (*k < other->ops.n && !meets(op, &other->ops.at[*k]))
			++*k;
		if (*k == other->ops.n) {
			free(peer);
			*out = NULL;
			return error_set(e, ST_RUN, "op %zu of stage %zu meets nobody", i, role);
		}
		peer[i] = (uint32_t)(*k)++;
	}
	return ST_OK;
}
