/* The demand of a running op on its device's shared resources. sim/engine shares them by it. */
#ifndef STEPSIM_SIM_ACTIVITY_H
#define STEPSIM_SIM_ACTIVITY_H

enum resource { RES_COMPUTE, RES_MEMORY, RES_LINK_INTRA, RES_LINK_INTER, RES_COUNT };

struct activity {
	double weight;            /* > 0: its part where a resource is scarce */
	double demand[RES_COUNT]; /* >= 0, of its actor's resources (capacity 1 each), at rate 1 */
	double held;              /* >= 0, < 1: of RES_COMPUTE, while it waits for its join; others share the rest */
	double beside; /* > 0: a transfer that cores carry, and its greatest rate while others use compute; else 0.
	                  What it demands of compute it gets (sim/engine/maxmin.h). `held` is its thread's, one
	                  for all of an actor's transfers, while it moves, too. */
};

#endif
