/* The order in which a pipeline stage does its forward and backward passes. Pure: no times, no program.
 *
 *   gpipe        all forwards, then all backwards, each in the order of the micro-batches (Huang et al. 2019, arXiv:1811.06965; Narayanan et al. 2021, figure 3)
 *   1f1b         stage i of p begins with min(p - 1 - i, m) forwards, then one forward and one backward in turn, then the backwards that are left (PipeDream-Flush; Narayanan et al. 2021, arXiv:2104.04473, figure 4)
 *   interleaved  a stage has v chunks of the model; forwards run in groups of p micro-batches through chunk 0, 1, ..., backwards through chunk v-1, ..., 0. It begins with
 *                min(2 (p - 1 - i) + (v - 1) p, v m) forwards (section 2.2; Megatron-LM, megatron/core/pipeline_parallel/schedules.py). m is a multiple of p
 *   zero_bubble  1f1b whose backward is parted into that of the inputs (B) and that of the weights (W): stage i does W of micro-batch j after B of micro-batch j + i, and the last i of them at the end, where
 *                1f1b waits (ZB-H1: Qi et al. 2023, arXiv:2401.10241, section 2; as in sail-sg/zero-bubble-pipeline-parallelism)
 * With one stage all of them are forward, backward, forward, backward, but for gpipe.
 */
#ifndef STEPSIM_STEP_SCHEDULE_H
#define STEPSIM_STEP_SCHEDULE_H

#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"
#include "step/config.h"

enum action_kind { ACTION_FORWARD, ACTION_BACKWARD, ACTION_WEIGHTS /* gradients of the weights, where B leaves them out */, ACTION_KIND_COUNT };

struct action {
	enum action_kind kind;
	int32_t chunk, micro;
};

typedef VEC(struct action) action_list;

struct schedule_shape {
	enum schedule kind;
	int64_t stages, chunks, micro_batches;
};

/* Appends the stage's actions to an empty list, which the caller frees with vec_free. */
enum status schedule_actions(const struct schedule_shape *s, int64_t stage, action_list *out, struct error *e);

/* The largest number of micro-batches of one chunk whose activations are held at once: from the forward to the last action that needs them. */
int64_t schedule_in_flight(const action_list *actions, int64_t chunks, bool parted);

#endif
