/* The watchdog: one thread a rank that ends the job when a rank of this host died or makes no progress, so that nobody
 * waits for ever.
 *
 * It is the one place below cli/ that ends the process: every other thread may be inside MPI, and MPI has no way out of
 * a collective whose member is gone. One rank of a host writes one line to standard error, all exit with status 1:
 *   stepsim: rank 1 (node3, process 4711) died in op 512 L3 qkv backward ...; rank 0 was in op 514 ...; the job ends
 *   stepsim: no progress for 60 s: rank 1 (node3, process 4711) hangs in op ...; rank 0 was in op ...; the job ends
 * What it acts on:
 * - a process of the board that is gone (or a zombie) before it said BOARD_FINISHED;
 * - SIGTERM, as a launcher sends it when a rank died: the same is looked for during half a second; SIGINT alike;
 * - every rank of this host armed, and none of them with progress for the timeout: a rank that is stopped, or whose
 * kernel does not end, stops the others sooner or later
 *   ("is stopped in", "left in" stand for "hangs in" where that is known).
 * Of other hosts it knows what their ranks tell rank 0 (heartbeat.h). Rank 0 speaks for them, and its host before
 * theirs: each of these ends has one line, too.
 */
#ifndef STEPSIM_EXEC_WATCHDOG_H
#define STEPSIM_EXEC_WATCHDOG_H

#include "exec/board.h"
#include "exec/heartbeat.h"

struct watchdog;

/* `slot` is this rank's place on the board; `rank0_here`: rank 0 of the job is on this host. `end_job` (may be NULL)
 * tells the launcher to end the other hosts' ranks; it may hang. One watchdog a process. */
struct watchdog_site {
	struct board *board;
	int64_t slot;
	bool rank0_here, second_host; /* the second speaks if rank 0's host cannot */
	char host[64];
	double timeout_s;
	struct heartbeat *heartbeat; /* borrowed; NULL: none */
	bool heard;                  /* some rank of the job has one: rank 0 knows of the other hosts */
	void (*end_job)(void);
};
enum status watchdog_start(const struct watchdog_site *site, struct watchdog **out, struct error *e);
void watchdog_stop(struct watchdog *w); /* says BOARD_FINISHED, ends the thread; NULL-safe */

void watchdog_timeout(struct watchdog *w, double timeout_s);

/* From arm to disarm this rank has to make progress. `doing` stands in the line while no lane is at an op; arming again
 * changes it. */
void watchdog_arm(struct watchdog *w, const char *doing);
void watchdog_disarm(struct watchdog *w);
void watchdog_progress(struct watchdog *w);
struct beacon *watchdog_beacon(struct watchdog *w);

/* The roles whose ops the beacons count, and which of them this rank's is; NULL when they go. Borrowed between the two
 * calls. */
void watchdog_roles(struct watchdog *w, const struct role *roles, size_t n, size_t mine);

/* Ends the job because of an error of this rank that leaves others waiting: one line "stepsim: rank 2 (node3): <text>".
 * Does not return. */
void watchdog_fail(struct watchdog *w, const char *text) __attribute__((noreturn));

#endif
