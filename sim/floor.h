/* A time that a step cannot fall below, and memory that it cannot do with less of, found without simulating it.
 *
 * A program is a graph: an op starts when the op before it on its lane and the ops that it depends on have ended, and lasts at least what it takes alone (sim/cost.h); what else the engine knows - the host thread, contention,
 * late peers - only makes it later. So a pass of a micro-batch through a layer occupies the compute lane for no less than it does where every op runs alone, with the collectives inside of the layer, and with neither data parallelism nor
 * the casts, fills and copies that only some strategies have. With f, b, w a stage's forward, backward and weight gradients of a micro-batch (w is part of b), M micro-batches, and f', b' of its first chunk: stage s begins when
 * the first micro-batch has come through the stages before it, and when it has ended its last backward, that still has to go back through them:
 *     step >= sum over r < s of (f'_r + b'_r) + M (f_s + b_s)            for each s (Narayanan et al. 2021, arXiv:2104.04473, section 2.2: the pipeline bubble)
 * Under zero_bubble stage s leaves the weights of s micro-batches for after its last backward: w is in none of the b', and in M - s of the b. Under zbv stages behind the first may put off all w.
 * A pass through a part's layers takes, once, less by the longest wait between two layers and by what the collectives with which a layer begins add: a stage may fill both with another micro-batch. Under zbv backward passes count their compute lane alone.
 * Groups across nodes count as nothing: a pass waits so long for them that the next one may hide it.
 * Nor is it shorter than all that passes over the parameters of a stage's layers, micro-batch by micro-batch (fsdp, hsdp; once a step where a pipeline keeps them gathered), one collective after the other on their lane. Buckets of gradients may share layers, and count as nothing.
 *
 * Memory: what the layers of the first stage have always, and what it keeps of the micro-batches that its schedule has in flight at once.
 */
#ifndef STEPSIM_SIM_FLOOR_H
#define STEPSIM_SIM_FLOOR_H

#include "topology/machine.h"
#include "step/config.h"

struct floors; /* what was found once: of one config's plans on one machine */

enum status floors_create(const struct machine *m, struct floors **out, struct error *e); /* borrows m */
void floors_destroy(struct floors *f); /* NULL-safe */

struct plan_floor {
	double step_s, memory_B;
};

/* Of a resolved config; 0 where nothing is known (mixtures of experts, whose layers differ). */
enum status floor_of(struct floors *f, const struct config *c, struct plan_floor *out, struct error *e);

#endif
