/* The order in which a pipeline stage does its forward and backward passes. Pure: no times, no program.
 *
 *   gpipe        all forwards, then all backwards, each in the order of the micro-batches (Huang et al. 2019, arXiv:1811.06965; Narayanan et al. 2021, figure 3)
 *   1f1b         stage i of p begins with min(p - 1 - i, m) forwards, then one forward and one backward in turn, then the backwards that are left (PipeDream-Flush; Narayanan et al. 2021, arXiv:2104.04473, figure 4)
 *   interleaved  a stage has v chunks of the model; forwards run in groups of p micro-batches through chunk 0, 1, ..., backwards through chunk v-1, ..., 0. It begins with
 *                min(2 (p - 1 - i) + (v - 1) p, v m) forwards (section 2.2; Megatron-LM, megatron/core/pipeline_parallel/schedules.py). m is a multiple of p
 *   zero_bubble  1f1b whose backward is parted into that of the inputs (B) and that of the weights (W): stage i does W of micro-batch j after B of micro-batch j + i, and the last i of them at the end, where
 *                1f1b waits (ZB-H1: Qi et al. 2023, arXiv:2401.10241, section 2; as in sail-sg/zero-bubble-pipeline-parallelism)
 *   zbv          two chunks a stage, placed as a V (below), with B and W apart. Stage i begins with 2 (p - i) - 1 forwards of chunk 0, i of each chunk in turn, and p - i times forward, B and W of chunk 1; then F B W of chunk 0
 *                and of chunk 1 in turn; at the end, where there is nothing left to do forward, i B of each chunk, p - i times B and W of chunk 0, and the W that are left. With m < 2 p - 1 the actions of the micro-batches that are not there
 *                drop out. p micro-batches' activations on every stage, as 1f1b's first stage (V-ZB: Qi et al. 2024, arXiv:2405.15362, section 3; phases as torch.distributed.pipelining's ScheduleZBVZeroBubble)
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

/* W stands apart from B. */
static inline bool schedule_parts_backward(enum schedule kind)
{
	return kind == SCHED_ZERO_BUBBLE || kind == SCHED_ZBV;
}

/* The model is cut into stages x chunks parts in order; part k is chunk k / stages of stage k mod stages (Narayanan et al. 2021, arXiv:2104.04473, section 2.2). zbv: the first chunks go down the stages and the second ones come back, so that
 * stage i has the parts i and 2 p - 1 - i, and the two ends of the model meet on the first stage (arXiv:2405.15362, figure 2). */
struct schedule_place {
	int64_t stage, chunk;
};
struct schedule_place schedule_place(enum schedule kind, int64_t stages, int64_t part);
int64_t schedule_part(enum schedule kind, int64_t stages, int64_t stage, int64_t chunk);

/* Appends the stage's actions to an empty list, which the caller frees with vec_free. */
enum status schedule_actions(const struct schedule_shape *s, int64_t stage, action_list *out, struct error *e);

/* The largest number of micro-batches of one chunk whose activations are held at once: from the forward to the last action that needs them. */
int64_t schedule_in_flight(const action_list *actions, int64_t chunks, bool parted);

#endif
