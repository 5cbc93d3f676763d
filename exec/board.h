/* The board: memory that the ranks of one host share, on which each says what it is doing. The watchdogs of the host
 * read it.
 *
 * The board never waits: every field is written by its rank alone (the verdict apart, which is taken by
 * compare-and-swap) and read at any time. Texts may be torn while they are rewritten, but always end.
 */
#ifndef STEPSIM_EXEC_BOARD_H
#define STEPSIM_EXEC_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "step/program.h"

enum board_state {
	BOARD_QUIET,    /* alive, but nobody waits for its progress (reading a config, writing a report) */
	BOARD_ARMED,    /* has to make progress */
	BOARD_FINISHED, /* leaves on its own account: that it is gone is no failure */
};

/* The state of a rank's lanes, written by the lanes themselves. */
struct beacon {
	_Atomic uint64_t progress;      /* grows with every op that ends and every set-up step done */
	_Atomic int64_t op[LANE_COUNT]; /* 0: nothing; i + 1: op i runs; -(i + 1): waits for what op i needs */
};

#define BOARD_TEXT 96
#define BOARD_CPU_WORDS 128 /* 8192 CPUs */

/* The CPUs of a rank as it started, as bits: its own, and those of the launcher that may have bound it more narrowly
 * than itself (mpirun: one core a rank, when nobody asks). */
struct affinity {
	uint64_t own[BOARD_CPU_WORDS], launcher[BOARD_CPU_WORDS];
	bool asked; /* the user chose `own`: a wrapper with taskset or numactl, an option of mpirun's, a batch system */
};

struct board_slot {
	struct beacon beacon;
	_Atomic int state; /* enum board_state */
	_Atomic int pid;
	_Atomic int64_t rank, role;
	struct affinity affinity; /* read between two barriers */
	char doing[BOARD_TEXT];   /* when no lane is at an op */
	char padding[64];
};

struct board {
	_Atomic int64_t verdict; /* 0, or 1 + the rank that reports why the job ends */
	_Atomic int reported;    /* its line is out */
	int64_t slots;
	struct board_slot slot[];
};

/* Creates the board under `name` (one rank), or opens it (the others). The name goes with board_unlink once all have
 * it. */
enum status board_create(const char *name, int64_t slots, struct board **out, struct error *e);
enum status board_open(const char *name, int64_t slots, struct board **out, struct error *e);
void board_unlink(const char *name);
void board_close(struct board *b); /* NULL-safe */

void board_doing(struct board_slot *s, const char *text);

#endif
