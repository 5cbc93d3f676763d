/* The inside of the builder: what the files of step/builder/ share. Nothing else includes it.
 *
 * Dependencies between lanes are derived, not written by hand. Each op waits for the last writer of what it reads, and
 * for the last writer and the readers of what it writes, unless its lane already knows that they have ended. Only
 * policies (how far ahead to gather, no overlap) name dependencies of their own, with build_after.
 *
 * The first failure is kept in `st`. Every function does nothing after it, so callers check once.
 *
 * A buffer or op that does not exist is NONE. "The latest op" is the last one appended to the role's program.
 *
 * Reading order: build.c (program_build), append.c (buffers and ops), pipeline.c (a stage's actions), block.c,
 * attention.c and backward.c (the model), products.c (products and norms of both), params.c and reduce.c
 * (buckets, reductions, the optimizer), then the variants: gather (fsdp), context, cross, moe, narrow, offload.
 */
#ifndef STEPSIM_STEP_BUILD_H
#define STEPSIM_STEP_BUILD_H

#include "step/builder/state.h"

/* ---- append.c: buffers and ops ---- */

/* Sets the status to "out of memory", unless it failed before. */
void build_nomem(struct builder *b, const char *what);

/* Each appends a buffer and returns it: any; an activation in the compute format; rows of the residual stream
 * [b->rows, hidden]; fp32 statistics. */
int32_t build_buffer(struct builder *b, enum component comp, enum dtype dt, int64_t elements, bool persistent);
int32_t build_act(struct builder *b, int64_t rows, int64_t cols);
int32_t build_rows(struct builder *b);
int32_t build_fp32(struct builder *b, int64_t elements);

/* Returns the elements of a buffer that is there. */
int64_t build_size(const struct builder *b, int32_t buffer);

/* Holds bytes (struct held) from the next op on, until build_release or else throughout. Returns NONE for no bytes. */
int32_t build_hold(struct builder *b, enum component comp, double bytes, const char *what);
/* Ends *held after the latest op and sets it to NONE. Does nothing with NONE. */
void build_release(struct builder *b, int32_t *held);

static inline struct view view_at(int32_t buffer, uint64_t offset_B)
{
	return (struct view){.buffer = buffer, .offset_B = offset_B};
}
static inline struct view view_of(int32_t buffer) { return view_at(buffer, 0); }

/* Returns an op of the builder's position, on LANE_COMPUTE, in the format of activations. Its dimensions are 0, or
 * those of a matrix. */
static inline struct op build_new(const struct builder *b, enum op_kind k, const char *what)
{
	struct op op = b->blank;
	op.kind = (uint8_t)k;
	op.phase = (uint8_t)b->phase;
	op.flags = (b->recomputing ? OP_RECOMPUTED : 0u) | (b->in_product ? OP_IN_PRODUCT : 0u);
	op.micro = b->micro;
	op.layer = b->layer;
	op.what = what;
	return op;
}
struct op build_matrix(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols);
/* Appends an op, with the dependencies that its arguments and build_after bring. Arguments are views with build_with,
 * whole buffers with build_on. */
void build_op(struct builder *b, const struct op *op, const struct view *args);
void build_on_buffers(struct builder *b, const struct op *op, const int32_t *buffers);
#define build_with(b, op, ...) build_op(b, op, (const struct view[]){__VA_ARGS__})
#define build_on(b, op, ...) build_on_buffers(b, op, (const int32_t[]){__VA_ARGS__})
/* The op that a function returns, as the above take it: it is made where it lies. */
#define made_op(made) ((const struct op[1]){made})
/* Makes the next op on `lane` wait for `op` too. Does nothing with NONE. */
void build_after(struct builder *b, enum lane lane, int64_t op);
/* Returns the latest op of a lane. */
int64_t build_last(const struct builder *b, enum lane lane);

/* Makes what follows work on sequences of so many rows: sets seq, tokens and rows. */
void build_span(struct builder *b, int64_t seq);
/* Returns an op on the first rows of each sequence of the model's length (struct op_sequence). */
struct op build_sequence_op(const struct builder *b, enum op_kind k, const char *what, int64_t first);
/* Returns a sum, or another collective, of `elements` in the full buffer (struct op_collective). */
struct op build_collective(const struct builder *b, enum collective coll, enum mesh_dim group, enum lane lane,
	enum dtype dt, int64_t elements, const char *what, int32_t bucket);
/* Appends a sum in place. */
void build_all_reduce(struct builder *b, enum mesh_dim group, enum lane lane, enum dtype dt, int64_t elements,
	struct view v, const char *what, int32_t bucket);
/* Appends a collective of activations inside a layer, [rows, cols] in the full buffer, and returns its result. */
int32_t build_exchange(struct builder *b, enum collective coll, enum mesh_dim group, int32_t in, int64_t rows,
	int64_t cols, const char *what);
/* Returns x [outer, inner, cols] as [inner, outer, cols]: x itself where that is the same. */
int32_t build_swap(struct builder *b, const char *what, int32_t x, enum dtype dt, int64_t outer, int64_t inner,
	int64_t cols);
/* Fills a view with zeros. */
void build_fill(struct builder *b, struct view v, enum dtype dt, int64_t elements, const char *what);
void build_cast(struct builder *b, struct view x, enum dtype from, struct view y, enum dtype to, int64_t elements,
	const char *what);

/* ---- pipeline.c: the stage's actions in order, and the messages between stages ---- */

/* Lists the actions and makes room for the micro-batches in flight. */
void build_schedule(struct builder *b);
void build_actions(struct builder *b);
void build_pipeline_free(struct builder *b);
/* Returns the buffers of a layer in this micro-batch. */
struct acts *acts_of(struct builder *b, int64_t layer);
/* True for layers among recompute_layers; those of mtp_layers, where these are all. */
bool build_runs_again(const struct builder *b, int64_t layer);
/* True where the backward pass recomputes the whole layer. */
bool build_recomputes(const struct builder *b, int64_t layer);
/* True where a recomputed block stops at its last product's input, because the stack does not run that product again.
 */
bool build_ends_early(const struct builder *b);

/* ---- overlap.c: exchanges of experts behind another micro-batch's compute ---- */

/* Appends all ops of an action. */
typedef void build_action_fn(struct builder *b, const struct action *a);
/* Runs two actions that do not depend on each other. They take turns at each exchange. */
void build_together(struct builder *b, const struct action *forward, const struct action *backward,
	build_action_fn *run);
/* Lets the other action go on, where there is one. */
void build_take_turns(struct builder *b);

/* ---- feed.c: input, data loader, pauses, synchronisation ---- */

/* Makes the step's input on the host. */
void feed_begin(struct builder *b);
/* Brings the micro-batch's input to the device. */
void feed_micro_begin(struct builder *b);
/* Returns where a part of the micro-batch's input begins. */
struct view feed_view(const struct builder *b, enum input_part part);
/* Ends the step, after everything else. */
void feed_end(struct builder *b);

/* ---- params.c: parameters in buckets ---- */

void build_buckets(struct builder *b);
/* Returns the number of parameters in a bucket. */
int64_t build_tensors_in(const struct builder *b, int32_t bucket);
/* Returns the elements of all buckets with gradients, with their padding. */
double build_elements(const struct builder *b);
/* Returns whether few of a bucket's gathered matrices count in the peak: gathers run ahead where memory allows alone.
 */
bool build_gathers_late(const struct builder *b, int32_t bucket);

/* ---- reduce.c: weights, gradients and their reductions, the optimizer ---- */

/* Gathers the weights that the step before has updated, where the stack gathers them so late: those of the first two
 * buckets, and before a block those of its own and of the next bucket (Megatron's forward hooks, finish_param_sync);
 * NONE: all that are left. What is read before that is gathered when it is read. */
void build_gather_ahead(struct builder *b);
void build_gather_next(struct builder *b, int64_t layer);
/* Forgets the casts of the last micro-batch and counts the gradients to come. With several stages: once a step. */
void build_micro_begin(struct builder *b);
/* Counts the gradients of this backward action, on a stage that shards gradients. */
void build_backward_begin(struct builder *b);
/* Returns a parameter of the role; NULL where the model has none, or k is NO_PARAM. */
struct role_param *param_of(const struct builder *b, int32_t layer, enum param_kind k);
/* The same of parameters that are trained. */
struct role_param *trained_of(const struct builder *b, int32_t layer, enum param_kind k);
/* Returns the weights in the compute format; absent where there is no such parameter. */
struct view weight_of(struct builder *b, int32_t layer, enum param_kind k);
/* Returns the place of a gradient, absent as above, or where the parameter is frozen. *accumulate: earlier
 * micro-batches have written it. */
struct view gradient_of(struct builder *b, int32_t layer, enum param_kind k, bool *accumulate);
/* The same of the block at hand, with a place that nobody reads where the parameter is frozen: kernels of norms write
 * it all the same. */
struct view gradient_or_scratch(struct builder *b, enum param_kind k, bool *accumulate);
/* Marks a gradient as complete. It may append the reductions that are then ready. */
void gradient_done(struct builder *b, int32_t layer, enum param_kind k);
/* Writes zeros for parameters that the loss does not depend on. */
void build_unused_gradients(struct builder *b);
/* Appends reductions that wait for the end of backward (overlap: false), and puts reduced buckets into place. */
void build_reductions_end(struct builder *b);
/* Sums a tied table's gradient over the first and the last stage. */
void build_ends_reduction(struct builder *b);
void build_optimizer(struct builder *b);
/* Returns an update of a bucket's part. Its dimensions are still to be set. */
struct op update_op(const struct builder *b, enum op_kind kind, enum optimizer o, int32_t bucket);
/* Appends the update of a bucket by AdamW, or by the optimizer, from element `from` of its part on, and what follows.
 */
void update_from(struct builder *b, int32_t bucket, enum optimizer o, int64_t from);
/* Appends it to the backward pass with train.optimizer_in_backward, else nothing. */
void update_in_backward(struct builder *b, int32_t bucket);
/* Makes the next op on `lane` wait for every reduction so far. */
void after_reductions(struct builder *b, enum lane lane);
/* Gathers updated weights where forward expects them whole. */
void gather_bucket(struct builder *b, int32_t bucket);

/* ---- muon.c ---- */

/* True where muon steps a parameter by its orthogonalized momentum: a matrix of a block that is not replicated. */
bool build_steps_matrix(const struct builder *b, const struct param *p);
/* Returns the elements of a rank's part of a bucket that are no such matrices'. */
int64_t build_other_elements(const struct bucket *k);
void build_muon(struct builder *b);

/* ---- adafactor.c ---- */

/* Makes the state that adafactor keeps of a bucket. */
void store_factors(struct builder *b, int32_t bucket);
void build_adafactor(struct builder *b);

/* ---- offload.c: copies to and from the host's memory; nothing happens without train.offload ---- */

/* Makes a layer's forward pass, or what follows the last one, wait until the block whose time to be copied out has
 * ended is. */
void offload_room(struct builder *b, int64_t layer);
/* Copies a block's activations out, after its forward pass. */
void offload_acts(struct builder *b, struct acts *a);
/* Copies a block's back whose time to come begins with this layer's backward pass. */
void offload_fetch(struct builder *b, int64_t layer);
bool offloads_states(const struct builder *b);
/* Copies the reduced part of a bucket's gradients out. */
void offload_gradient(struct builder *b, int32_t bucket, struct view from);
/* Returns, on the device, the sum that earlier micro-batches left of the rank's part of the gradients. */
struct view offload_sum(struct builder *b, int32_t bucket);
/* Copies the updated weights to the device. */
void offload_updated(struct builder *b, int32_t bucket);
/* Returns, on the device, the part that a gather sends. Its copy waits for `after`. */
struct view offload_shard(struct builder *b, int32_t bucket, int64_t after);

/* ---- gather.c: fsdp's all-gathers of units ---- */

/* Begins a micro-batch; with several stages, an action. */
void gather_begin(struct builder *b);
void gather_use_begin(struct builder *b);
void gather_use_end(struct builder *b);

#endif
