/* The ops and ranks that meet when stages differ. A collective among one stage's ranks has the same op number at all
 * members. A message, or a sum over the two end stages, has its own number at either end. */
#ifndef STEPSIM_STEP_PEERS_H
#define STEPSIM_STEP_PEERS_H

#include "step/program.h"

/* Fills (*out)[op] for each op of role `role`, which the caller frees. For a message, and with OP_ENDS, it is the
 * number that the other end's op has in its own role; for any other op its own number. Fails with ST_RUN where an op
 * has no peer, which program_check refuses as well. */
enum status peer_ops(const struct program *p, size_t role, uint32_t **out, struct error *e);

/* Returns the rank that `rank` meets at the op, which is a message or has OP_ENDS. */
int64_t peer_rank(const struct mesh *m, int64_t rank, const struct op *op);

/* Returns the role of a rank, which is its stage's. */
size_t role_of_rank(const struct program *p, int64_t rank);

/* Returns the lane at the other end of a message. */
enum lane peer_lane(enum lane l);

#endif
