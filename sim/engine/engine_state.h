/* The inside of the engine: what engine.c and engine_setup.c share. Nothing else includes it. */
#ifndef STEPSIM_SIM_ENGINE_STATE_H
#define STEPSIM_SIM_ENGINE_STATE_H

#include <stdbool.h>

#include "sim/engine/engine.h"

#define NONE UINT32_MAX
#define NOT_ENDED (-1)

/* A slot is a lane of an actor and the task at its head. No other task of the lane can act before that one ends. */
enum slot_state {
	SLOT_EMPTY,
	SLOT_BLOCKED, /* on dependencies */
	SLOT_ISSUING, /* due when its task is issued */
	SLOT_WAITING, /* resident, on the other members of its join */
	SLOT_MOVING,  /* its leader is due when they end */
	SLOT_STATES
};

struct slot {
	uint32_t task;
	uint32_t deps_ended; /* so many of the head's first dependencies have ended */
	uint32_t awaits;     /* the next of them when it was last looked at, NONE: not yet looked at */
	enum slot_state state;
	double own_rate; /* what its actor grants */

	/* The leader carries the progress of all members and stands in the heap for them. It is the first member to
	 * arrive, or the task itself without a join. */
	uint32_t leader, next_member;
	bool repace;
	double rate, left_ps; /* left_ps of alone time at since_ps */
	int64_t since_ps;

	uint32_t heap_at; /* NONE: not due */
};

struct due {
	int64_t at_ps;
	uint64_t sequence;
	uint32_t slot;
};

/* The lanes of an actor by the state of their slots, a bit a lane: most are empty or blocked at any instant. */
struct lanes {
	uint32_t in[SLOT_STATES];
};

struct task_state {
	uint32_t next_on_lane;
	uint32_t held_by;  /* the task before it that held the host thread last, NONE */
	int64_t issued_ps; /* from the end of that one */
	bool released;     /* its dependents may start */
};

struct join {
	uint32_t members, arrived;
	uint32_t leader;
	int64_t alone_ps;
};

/* The rates of tasks that move together. Layers and micro-batches repeat the same few sets of tasks, so that the last
 * sets are remembered, each at a place that follows from its tasks. */
#define SHARES_BITS 7
struct shares {
	const struct activity *act[ENGINE_LANES]; /* n of them */
	size_t n;                                 /* 0: none yet */
	double compute;                           /* capacity; the other resources have 1 */
	double rate[ENGINE_LANES];
};

struct engine {
	const struct task *tasks;
	const uint32_t *deps;
	struct task_time *times;
	size_t n;
	uint32_t actors, n_slots;

	int64_t now_ps;
	uint64_t sequence;
	size_t ended;
	struct slot *slots;  /* actors x ENGINE_LANES */
	struct lanes *lanes; /* by actor */
	uint32_t *queue;     /* by actor: the first queued task that has not started, NONE */
	struct task_state *state;
	struct join *joins;
	struct due *heap; /* of due slots */
	uint32_t n_heap;
	uint32_t *lists;              /* owns due, changed and leaders, an entry a slot each */
	uint32_t *due;                /* slots collected at this instant */
	uint32_t *changed, n_changed; /* actors whose lanes or moving tasks changed at this instant */
	bool *is_changed;
	uint32_t *leaders, n_leaders; /* whose members' rates changed at this instant */
	struct shares shares[1 << SHARES_BITS];
};

static inline void set_state(struct engine *g, uint32_t slot, enum slot_state state)
{
	struct lanes *l = &g->lanes[slot / ENGINE_LANES];
	const uint32_t lane = 1u << slot % ENGINE_LANES;
	l->in[g->slots[slot].state] &= ~lane;
	l->in[state] |= lane;
	g->slots[slot].state = state;
}

/* Returns the first queued task of an actor from task `from` on; NONE where there is none. */
static inline uint32_t engine_first_queued(const struct engine *g, size_t from, uint32_t actor)
{
	while (from < g->n && g->tasks[from].actor == actor && !g->tasks[from].queued)
		from++;
	return from < g->n && g->tasks[from].actor == actor ? (uint32_t)from : NONE;
}

/* Checks the tasks, makes the arrays, and puts the first task of each lane into its slot. engine_tear_down frees them,
 * also after a failure. */
enum status engine_set_up(struct engine *g, struct error *e);
void engine_tear_down(struct engine *g);

#endif
