/* The links between hosts, timed before and after the timed steps: one that lost its rate meanwhile is named. On cores,
 * where MPI's messages take the links that collectives take. */
#ifndef STEPSIM_EXEC_LINKS_H
#define STEPSIM_EXEC_LINKS_H

#include "exec/session.h"

/* Link i joins host i and the next one, in a ring; two hosts have one. Seconds of a message there and back, the least
 * of several. n 0: one host, or GPUs. */
struct links {
	int64_t n;
	double *before_s, *after_s;
};

/* All collective. links_end times again what seems slower. */
enum status links_begin(struct session *s, struct links *l, struct error *e);
enum status links_end(struct session *s, struct links *l, struct error *e);
void links_free(struct links *l);

/* Warns of each link that became so much slower that steps show it. */
void links_say(const struct links *l, const struct session *s, struct result *out);

#endif
