/* A time that a step cannot fall below, found without simulating it.
 *
 * A stage's compute lane is in order, and what it runs beside only slows it, so a stage is busy for the sum of what its ops take alone (sim/cost.h). Of those only the ones count that every strategy, bucket and overlap has:
 * matrix products, attention, norms, elementwise work and the loss, forward and backward, recomputation included. With f, b, w a stage's forward, backward and weight gradients of a micro-batch (w is part of b unless the
 * schedule parts them), M micro-batches, and f', b' of its first chunk, stage s begins when the first micro-batch has come through the stages before it, and when it has ended its last backward, that still has to go back through them:
 *     step >= sum over r < s of (f'_r + b'_r) + M (f_s + b_s)            for each s (Narayanan et al. 2021, arXiv:2104.04473, section 2.2: the pipeline bubble)
 * Under zero_bubble stage s leaves the weights of s micro-batches for after its last backward: M (f_s + b_s) + (M - s) w_s.
 */
#ifndef STEPSIM_SIM_FLOOR_H
#define STEPSIM_SIM_FLOOR_H

#include "topology/machine.h"
#include "step/config.h"

struct floors; /* what was found once: of one config's plans on one machine */

enum status floors_create(const struct machine *m, struct floors **out, struct error *e); /* borrows m */
void floors_destroy(struct floors *f); /* NULL-safe */

/* Of a resolved config; 0 where nothing is known (mixtures of experts, whose layers differ). */
enum status floor_s(struct floors *f, const struct config *c, double *out_s, struct error *e);

#endif
