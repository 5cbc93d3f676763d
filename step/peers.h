/* Who meets whom when stages differ: a collective of one stage's ranks has one number at all its members, a message and what the two ends sum have one of their own at either end. */
#ifndef STEPSIM_STEP_PEERS_H
#define STEPSIM_STEP_PEERS_H

#include "step/program.h"

/* By op of role `role`: for messages and with OP_ENDS the number, in its own role, of the op that it meets at the other end; for every other op its own number.
 * The caller frees *out. ST_RUN where nobody is met, which program_check refuses as well. */
enum status peer_ops(const struct program *p, size_t role, uint32_t **out, struct error *e);

/* The rank that `rank` meets at the op, a message or one with OP_ENDS. */
int64_t peer_rank(const struct mesh *m, int64_t rank, const struct op *op);

/* The role of a rank: its stage's. */
size_t role_of_rank(const struct program *p, int64_t rank);

/* The lane of the other end of a message. */
enum lane peer_lane(enum lane l);

#endif
