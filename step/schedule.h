/* The order in which a pipeline stage runs its forward and backward passes. It is pure: it knows no times and no
 * program.
 *
 * Of p stages, stage i runs m micro-batches of v chunks (parts of the model). F is a forward pass, B a backward pass. A
 * schedule that splits the backward pass has B for the gradients of the inputs, and W for those of the weights.
 *
 *   gpipe        All F, then all B, each in the order of the micro-batches (Huang et al. 2019, arXiv:1811.06965;
 *                Narayanan et al. 2021, figure 3).
 *   1f1b         min(p - 1 - i, m) F, then one F and one B in turn, then the B that are left (PipeDream-Flush;
 *                Narayanan et al. 2021, arXiv:2104.04473, figure 4).
 *   interleaved  min(2 (p - 1 - i) + (v - 1) p, v m) F first, then as 1f1b. F run in groups of p micro-batches through
 *                chunk 0, 1, ..., B through chunk v-1, ..., 0. m is a multiple of p (section 2.2; Megatron-LM,
 *                megatron/core/pipeline_parallel/schedules.py).
 *   zero_bubble  1f1b with B and W apart: W of micro-batch j follows B of micro-batch j + i. The last i W stand at the
 *                end, where 1f1b waits (ZB-H1: Qi et al. 2023, arXiv:2401.10241, section 2; as in
 *                sail-sg/zero-bubble-pipeline-parallelism).
 *   interleaved_zb
 *                interleaved with B and W apart as in zero_bubble. One F a stage ahead is enough, not two: min((p - 1 -
 *                i) + (v - 1) p, v m) F come first (ScheduleInterleavedZeroBubble of torch/distributed/pipelining).
 *   zbv          Two chunks a stage, placed as a V (schedule_place), with B and W apart (V-ZB: Qi et al. 2024,
 *                arXiv:2405.15362, section 3; phases as torch.distributed.pipelining's ScheduleZBVZeroBubble):
 *                1. 2 (p - i) - 1 F of chunk 0, i F of each chunk in turn, p - i times F B W of chunk 1
 *                2. F B W of chunk 0 and of chunk 1 in turn
 *                3. without F left: i B of each chunk, p - i times B W of chunk 0, then the W that are left
 *                With m < 2 p - 1 the actions of absent micro-batches drop out. Each stage holds the activations of p
 *                micro-batches, as the first stage of 1f1b does.
 *
 *   dualpipev    Placed as zbv. A forward pass of one chunk stands before a backward pass of the other, beside which it
 *                may run (parallel.expert_overlap); B is split at the ends alone (DeepSeek-AI,
 *                https://github.com/deepseek-ai/DualPipe, dualpipe/dualpipev.py, step; Qi et al. 2025,
 *                https://hackmd.io/@ufotalent/r1lVXsa9Jg):
 *                1. 2 (p - i - 1) F of chunk 0, i + 1 times F of each chunk, p - i - 1 times B W F of chunk 1
 *                2. F of chunk 0, B W of chunk 1, F of chunk 1, B W of chunk 0 in turn
 *                3. p - i - 1 times B W of chunk 1, F of chunk 1, B W of chunk 0, then i + 1 times B of each chunk, in
 *                   the first half with their W
 *                4. p - i - 1 times the oldest W that is left and B of chunk 0, then the W that are left
 *                With m < 2 p the actions of absent micro-batches drop out.
 *                DualPipe itself (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1) is two of these: of its 2 p ranks
 *                the one half mirrors the other with the same weights, as a replica more does here.
 *
 * With one stage every schedule but gpipe runs F, B, F, B, ...
 */
#ifndef STEPSIM_STEP_SCHEDULE_H
#define STEPSIM_STEP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

/* X(id, word of parallel.schedule, chunks_least, chunks_most, splits_backward, turns_back, all_in_flight, grouped,
 * pairs):
 * struct schedule_traits says what the columns mean. */
#define SCHEDULES(X) \
	X(GPIPE, "gpipe", 1, 1, false, false, true, false, false) \
	X(1F1B, "1f1b", 1, 1, false, false, false, false, false) \
	X(INTERLEAVED, "interleaved", 2, INT64_MAX, false, false, false, true, true) \
	X(ZERO_BUBBLE, "zero_bubble", 1, 1, true, false, false, false, false) \
	X(INTERLEAVED_ZB, "interleaved_zb", 2, INT64_MAX, true, false, false, true, false) \
	X(ZBV, "zbv", 2, 2, true, true, false, false, false) \
	X(DUALPIPEV, "dualpipev", 2, 2, true, true, false, false, true)

#define SCHEDULE_ID(id, ...) SCHED_##id,
enum schedule { SCHEDULES(SCHEDULE_ID) SCHED_COUNT };
#undef SCHEDULE_ID

struct schedule_traits {
	const char *name;
	int64_t chunks_least, chunks_most; /* parts of the model on a stage (parallel.virtual_stages) */
	bool splits_backward;              /* W stands apart from B */
	bool turns_back;                   /* odd chunks run from the last stage to the first */
	bool all_in_flight;                /* all micro-batches are in flight at once: memory grows with their number */
	bool grouped;                      /* micro-batches run in groups of as many as there are stages */
	bool pairs;                        /* a forward and a backward action may run together (expert_overlap) */
};

extern const struct schedule_traits schedule_traits[SCHED_COUNT];

enum action_kind {
	ACTION_FORWARD,
	ACTION_BACKWARD,
	ACTION_WEIGHTS /* W of a split backward pass */,
	ACTION_KIND_COUNT
};

struct action {
	enum action_kind kind;
	int32_t chunk, micro;
};

typedef VEC(struct action) action_list;

struct schedule_shape {
	enum schedule kind;
	int64_t stages, chunks, micro_batches;
	int64_t ahead; /* further forward passes before the first backward one: 1 where a forward and a backward action
	                  run together, so that the last stage's do not depend on each other */
};

static inline bool schedule_splits_backward(enum schedule kind) { return schedule_traits[kind].splits_backward; }

/* Returns a lower bound of the parts whose activations the first stage holds at once. With a schedule that turns back
 * it counts the first chunk alone. */
int64_t schedule_first_in_flight(const struct schedule_shape *s);

/* Returns a lower bound of the micro-batches whose W stage `stage` runs before its last B. */
int64_t schedule_weights_within(const struct schedule_shape *s, int64_t stage);

/* The model is cut into stages x chunks parts, in order. Part k is chunk k / stages of stage k mod stages (Narayanan et
 * al. 2021, arXiv:2104.04473, section 2.2). With zbv the first chunks go down the stages and the second ones come back:
 * stage i has parts i and 2 p - 1 - i. So both ends of the model are on the first stage (arXiv:2405.15362, figure 2).
 * schedule_place returns the place of a part, schedule_part the part at a place. */
struct schedule_place {
	int64_t stage, chunk;
};
struct schedule_place schedule_place(enum schedule kind, int64_t stages, int64_t part);
int64_t schedule_part(enum schedule kind, int64_t stages, int64_t stage, int64_t chunk);

/* Appends the stage's actions to an empty list, which the caller frees with vec_free. Fails with ST_RUN when memory is
 * short. */
enum status schedule_actions(const struct schedule_shape *s, int64_t stage, action_list *out, struct error *e);

/* Returns the largest number of micro-batches of one chunk in flight at once. Activations are held from F to the last
 * action that needs them: W where the backward pass is split, else B. */
int64_t schedule_in_flight(const action_list *actions, int64_t chunks, bool splits_backward);

#endif
