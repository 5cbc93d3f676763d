/* The memory plan of a role: the offset of each buffer in one arena, and the bytes alive at the peak by component.
 *
 * A buffer is alive from the last compute op known to have ended before its first access to the first compute op known
 * to begin after its last access. Vector clocks over the lanes (step/clocks.h) say what is known. So two buffers share
 * bytes only where the program itself orders their accesses. Persistent buffers are alive throughout. Those that a
 * stack frees behind each step (struct buffer, freed) are alive from their first access on, but an executor keeps them,
 * too.
 *
 * Offsets come from first fit, largest buffer first among equals in time: the greedy-by-size planner of TensorFlow Lite
 * (Pisarchyk & Lee 2020, arXiv:2001.03288).
 */
#ifndef STEPSIM_STEP_LAYOUT_H
#define STEPSIM_STEP_LAYOUT_H

#include <stdint.h>

#include "step/program.h"

#define LAYOUT_ALIGN 256

struct layout {
	uint64_t *offset_B;                         /* by buffer; host buffers lie in an arena of their own */
	uint64_t total_B;                           /* size of the device arena: peak_B and what first fit wastes */
	uint64_t host_B;                            /* size of the host arena */
	uint64_t peak_B;                            /* the largest sum of bytes alive on the device */
	uint64_t peak_component_B[COMP_KIND_COUNT]; /* the parts of peak_B; COMP_HOST stands apart */
};

/* Plans the memory of a role. The caller frees *out with layout_free. Fails with ST_RUN when memory is short. */
enum status layout_plan(const struct role *r, struct layout *out, struct error *e);
/* Fills only the peaks, for prediction. They include what the stack holds (struct held), which an executor does not
 * allocate. Takes time linear in the program. */
enum status layout_peak(const struct role *r, struct layout *out, struct error *e);
void layout_free(struct layout *l); /* NULL-safe */

/* Fills (*live_B)[k], k = 0 ... *n - 1: the bytes alive on the device after k of the role's compute ops, before the
 * next begins. They include what the stack holds; the largest is layout_peak's peak_B. The caller frees *live_B. */
enum status layout_live(const struct role *r, uint64_t **live_B, size_t *n, struct error *e);

/* A buffer on the device, or what the stack holds, in time: alive after `begin` compute ops, and no longer after `end`
 * of them; INT64_MAX: to the end of the step and on. */
struct layout_life {
	enum component component;
	uint64_t bytes;
	int64_t begin, end;
	int64_t first_op; /* index of the op that touches it first; -1: none, the stack holds it */
	const char *what; /* the name of what the stack holds (static); NULL: a buffer */
	bool persistent;
};
/* Fills *out with those behind layout_live, buffers first; the caller frees it. */
enum status layout_lives(const struct role *r, struct layout_life **out, size_t *n, struct error *e);

#endif
