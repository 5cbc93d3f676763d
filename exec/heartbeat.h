/* Signs of life across hosts: each rank of another host than rank 0's tells rank 0 some times a second, by UDP, that it
 * is there and what it is at; rank 0 answers. So the watchdog of either side can name who is gone, which a launcher
 * that ends the job does not say. Where no datagram passes, nobody is ever missed.
 *
 * Used by the watchdog's thread alone, once it is open.
 */
#ifndef STEPSIM_EXEC_HEARTBEAT_H
#define STEPSIM_EXEC_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct session;
struct heartbeat;

#define HEARTBEAT_TEXT 256

/* What a rank says of itself. */
struct heartbeat_sign {
	int64_t rank;
	int pid;
	bool computes; /* in an op of the compute lane */
	bool reported; /* its host has said why the job ends */
	bool finished; /* it leaves on its own account */
	char host[64], doing[HEARTBEAT_TEXT];
};

/* Collective. *out is NULL where no signs are exchanged: on a single host, on rank 0's host but rank 0, and where rank
 * 0 has no socket. */
enum status heartbeat_open(struct session *s, struct heartbeat **out, struct error *e);
void heartbeat_close(struct heartbeat *h); /* NULL-safe */

/* Takes what has arrived, and sends `mine` if it is time for it, or `now`. */
void heartbeat_beat(struct heartbeat *h, const struct heartbeat_sign *mine, bool now);

/* Of those that were heard of once and have not finished, the one that has been silent longest, if that is more than
 * silent_s; *since_s: for how long. NULL: nobody. */
const struct heartbeat_sign *heartbeat_lost(const struct heartbeat *h, double silent_s, double *since_s);
/* The first that says it computes; NULL: nobody. */
const struct heartbeat_sign *heartbeat_computing(const struct heartbeat *h);
/* Whether any has said why the job ends. */
bool heartbeat_reported(const struct heartbeat *h);

#endif
