/* The memory plan of a role: where each buffer lies in one arena, and how much of what is alive at the peak.
 *
 * A buffer lives from the last compute op known to have ended when its first access may begin, to the first compute op that is known to come after its last access
 * ("known" by vector clocks over the lanes): two buffers share bytes only where the program itself orders their accesses. Persistent buffers live throughout.
 * Offsets: first fit, largest first among equals in time (the strip-packing heuristic of TensorFlow Lite's greedy-by-size planner, Pisarchyk & Lee 2020, arXiv:2001.03288).
 */
#ifndef STEPSIM_STEP_LAYOUT_H
#define STEPSIM_STEP_LAYOUT_H

#include <stdint.h>

#include "step/program.h"

#define LAYOUT_ALIGN 256

struct layout {
	uint64_t *offset_B; /* by buffer; host buffers count in an arena of their own */
	uint64_t total_B;   /* of the device arena: at least peak_B, more by what first fit wastes */
	uint64_t host_B;
	uint64_t peak_B;    /* the largest sum of live bytes */
	uint64_t peak_component_B[COMP_KIND_COUNT]; /* at that moment; adds up to peak_B (COMP_HOST apart) */
};

enum status layout_plan(const struct role *r, struct layout *out, struct error *e);
/* Only the peaks, with what the stack holds (struct held, which an executor does not), without offsets: linear in the program, for prediction. */
enum status layout_peak(const struct role *r, struct layout *out, struct error *e);
void layout_free(struct layout *l); /* NULL-safe */

/* (*live_B)[k]: what is alive on the device once k of the role's compute ops have ended and the next is about to begin, k = 0 ... *n - 1 (with what the stack holds); the largest is layout_peak's peak_B. Freed with free(). */
enum status layout_live(const struct role *r, uint64_t **live_B, size_t *n, struct error *e);

#endif
