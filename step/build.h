/* The builder's inside: what the files step/build_*.c share. Private to them.
 *
 * Dependencies between lanes are derived, not written by hand: each op waits for the last writer of what it reads, and for the last writer and readers of what it writes,
 * unless its lane knows already that they have ended. Only policies (how far ahead to gather, no overlap) name dependencies of their own, with build_after.
 * The first failure is remembered in `st`; every function is harmless after it, so callers check once.
 */
#ifndef STEPSIM_STEP_BUILD_H
#define STEPSIM_STEP_BUILD_H

#include "step/clocks.h"
#include "step/program.h"
#include "step/schedule.h"
#include "step/stages.h"

#define NONE (-1)

/* Who touched a buffer last: its writer, and since then the latest reader on each lane. */
struct usage {
	int64_t writer, reader[LANE_COUNT];
};

/* What an MLP's forward leaves for its backward. */
struct mlp_acts {
	int32_t h, g;              /* before and after the activation */
	int32_t kept_gate; /* held: the gate's activation */
};

/* What a mixture of experts leaves beside its experts' MLP. */
struct moe_acts {
	int32_t logits, gates, slots, taken; /* as ROUTE has them */
	int32_t in, out;                     /* what the experts got, expert by expert; what they made of it, in the slots of the tokens' ranks */
	struct mlp_acts shared;
};

#define OFFLOADED_ACTS 14

/* What a block's forward leaves for its backward: buffers, NONE where the block has none. */
struct acts {
	int32_t x_in, n1, stats1, qkv, att, lse, probs;
	int32_t x_mid, n2, stats2; /* x_mid: the sum after attention */
	struct mlp_acts mlp;       /* of the experts, where the block has some */
	struct moe_acts moe;
	int32_t sum2;              /* post-norm: the sum before norm2 */
	int32_t away[OFFLOADED_ACTS]; /* copies in the host's memory */
	int64_t out_at;            /* the last of their copies, NONE */
	int32_t kept_rotated, kept_masks, kept_scores; /* held: copies of queries and keys, dropout masks, those of stored scores with the dropped scores */
};

/* An MLP by its parameters; ffn: this tensor rank's width. */
struct mlp_shape {
	enum param_kind fc1, fc1_bias, fc2, fc2_bias;
	int64_t ffn;
};

/* A copy in the narrow compute format of what begins at offset_B of a buffer. */
struct narrow_copy {
	uint64_t offset_B;
	int32_t copy, next; /* next: further copies of the same buffer, NONE */
};

/* What the head's forward leaves for its backward. */
struct head_acts {
	int32_t x, stats; /* before the final norm */
	int32_t in, logits;
};

/* A micro-batch on its way through one chunk of the stage. */
struct flight {
	int32_t input;                     /* tokens and targets on the device */
	int32_t embedded, embedding_stats; /* the embedding before its norm */
	struct head_acts head;
	int32_t x;                         /* what the chunk makes of it */
	int32_t kept_message;              /* held: what was sent to the next stage */
};

/* What an action takes from the part before it, or after it: its buffer, and the receive (NONE where that part is on this stage). */
struct arrival {
	int32_t buffer;
	int64_t message;
};

/* fsdp: a block that needs its weights gathered. */
struct unit_use {
	int32_t bucket, buffer;
	int64_t end; /* the compute op that ended the use, NONE */
};

/* A gradient of weights that zero_bubble leaves for later: the arguments of build_weight_grad. */
struct put_off {
	const char *what;
	int64_t rows, out, in;
	int32_t dy, x, layer;
	enum param_kind w;
	int16_t micro;
	int32_t chunk; /* NONE: done */
};

/* A neighbour stage: the order of its actions, and what it was sent. */
struct peer {
	int64_t stage;
	action_list actions;
	int32_t *place; /* [(kind x chunks + chunk) x micro-batches + micro] in its order of actions */
	size_t heard; /* the messages of so many of its actions have receives */
	VEC(struct sent { int64_t op; int32_t used_at; /* the peer's action that uses it */ }) sent;
	size_t known; /* so many have certainly arrived */
};

struct builder {
	const struct config *c;
	const struct model *m;
	struct program *p;
	struct role *r;
	struct error *e;
	enum status st;
	struct clocks clocks;
	VEC(struct usage) usage; /* by buffer */
	VEC(int64_t) after[LANE_COUNT]; /* policy dependencies of the next op on each lane */

	/* derived once */
	int64_t stage, stages, chunks;
	bool has_embedding, has_head; /* the stage */
	int64_t tensor, dp /* ranks that hold the same parameters, hsdp: of a shard group */, tokens /* of a micro-batch, this rank's */, rows /* of them on a sequence-parallel rank */;
	int64_t seq, context; /* tokens of a sequence, this rank's; ranks that share one */
	int64_t heads, kv_heads, ffn, vocab; /* of this tensor rank */
	bool sequence_parallel, gathers /* fsdp with shards */, shards_gradients /* fsdp or zero2 with shards */;
	enum dtype act, weight, grad, reduce; /* storage formats: activations, stored weights, stored gradients, reduced gradients */
	int32_t *param_index;                 /* [(layer + 1) x PARAM_KIND_COUNT + kind], NONE: the model has none */

	/* where the builder is */
	enum phase phase;
	int16_t micro;
	int32_t layer;
	bool recomputing;
	struct stage_part part; /* of the model: the chunk */
	int32_t chunk;
	struct flight *now;
	bool puts_off;          /* gradients of weights */
	int32_t *batch; /* by micro-step: where the data loader puts it, on the host; NULL without a loader */

	/* by bucket */
	int32_t *weights_now, *grads_now; /* buffers in use; NONE when not gathered, not begun */
	int32_t *missing;                 /* parameters whose gradient this micro-step still lacks; NONE: the action has nothing to do with the bucket */
	int32_t *moment1, *moment2, *master;
	uint64_t *replicated;             /* elements before those that tensor parallelism replicates, which stand last */
	int32_t next_bucket;              /* buckets are reduced in order */
	int64_t reduced[2];               /* the latest reductions of transient buckets, the last one first, NONE */
	int32_t *cast_now;                /* by parameter: this micro-step's copy in the compute format, NONE */
	int64_t *finish;                  /* by bucket: reduced into a scratch buffer that still has to be added or cast into place, NONE */

	/* fsdp: the uses of the block units in one micro-step, forward then backward; of a stage, in one action */
	int32_t n_units;                /* buckets of blocks, before those of the rest */
	struct unit_use *uses;
	int64_t n_uses, gathered, used; /* gathered: whose gather has been emitted */
	int64_t gathers_after;          /* what the first gathers wait for, NONE */

	/* by slot: micro-batch modulo the number of them in flight */
	int64_t slots;
	struct acts *acts;     /* [slot x layers + layer] */
	struct flight *flights; /* [slot x chunks + chunk] */

	/* build_pipeline.c */
	action_list actions;
	struct peer peer[2]; /* the next stage, the one before */
	struct arrival *arrivals; /* as peer.place, without ACTION_WEIGHTS */
	VEC(struct put_off) put_off;
	size_t caught_up; /* so many of them are done, and perhaps some behind */

	/* fp8, mxfp8, nvfp4 */
	VEC(struct narrow_copy) narrow;
	VEC(int32_t) narrow_first; /* by buffer: its first copy, NONE */
};

/* ---- build.c: buffers and ops ---- */
int32_t build_buffer(struct builder *b, enum component comp, enum dtype dt, int64_t elements, const char *what, bool persistent);
int32_t build_act(struct builder *b, int64_t rows, int64_t cols, const char *what); /* an activation in the compute format */
int32_t build_fp32(struct builder *b, int64_t elements, const char *what);          /* statistics */
int32_t build_hold(struct builder *b, enum component comp, double bytes, const char *what); /* from the next op on (struct held), throughout unless released; NONE for no bytes */
void build_release(struct builder *b, int32_t *held);                               /* after the latest op; NONE: nothing. Sets NONE */
struct view view_of(int32_t buffer);
struct view view_at(int32_t buffer, uint64_t offset_B);
struct op build_new(const struct builder *b, enum op_kind k, const char *what);
void build_after(struct builder *b, enum lane lane, int64_t op); /* the next op on `lane` also waits for `op` (NONE: nothing) */
void build_op(struct builder *b, struct op op, const struct view *args);
int64_t build_last(const struct builder *b, enum lane lane);
void build_collective(struct builder *b, enum collective coll, enum reduce_op red, enum mesh_dim group, enum lane lane, enum dtype dt, int64_t elements, struct view in, struct view out, const char *what, int32_t bucket);
void build_fill(struct builder *b, struct view v, enum dtype dt, int64_t elements, const char *what); /* zeros */
void build_cast(struct builder *b, struct view x, enum dtype from, struct view y, enum dtype to, int64_t elements, const char *what);

/* ---- build_pipeline.c: the stage's actions in order, and the messages between them ---- */
void build_schedule(struct builder *b); /* the actions, and room for the micro-batches in flight */
void build_actions(struct builder *b);
void build_pipeline_free(struct builder *b);
bool build_recomputes(const struct builder *b, int64_t layer); /* all of the layer, in backward */
bool build_ends_early(const struct builder *b); /* done again for backward, a block needs no more than its last product's input, unless the stack runs that too */

/* ---- build_feed.c: what feeds the device ---- */
void feed_begin(struct builder *b);       /* the step's input */
void feed_micro_begin(struct builder *b); /* this micro-step's, on the device */
void feed_end(struct builder *b);         /* behind all else */

/* ---- build_params.c: parameters in buckets ---- */
void build_buckets(struct builder *b);
double build_elements(const struct builder *b); /* of all buckets, padded */

/* ---- build_reduce.c: weights, gradients and their reductions, the optimizer ---- */
void build_gather_ahead(struct builder *b);            /* what the step before has updated, where the stack gathers that late */
void build_micro_begin(struct builder *b);             /* forgets last micro-step's copies, counts the gradients to come; with several stages once a step */
void build_backward_begin(struct builder *b);          /* of a stage that shards gradients: counts those that this backward brings */
struct view weight_of(struct builder *b, int32_t layer, enum param_kind k);  /* absent when the model has none, or k is PARAM_KIND_COUNT */
struct view gradient_of(struct builder *b, int32_t layer, enum param_kind k, bool *accumulate);
void gradient_done(struct builder *b, int32_t layer, enum param_kind k);     /* may launch reductions */
void build_unused_gradients(struct builder *b);        /* zeros for parameters that the loss does not depend on */
void build_reductions_end(struct builder *b);          /* what overlap: false put off, and what still has to be put into place */
void build_ends_reduction(struct builder *b);          /* a tied table's gradient over the first and the last stage */
void build_optimizer(struct builder *b);

/* ---- build_offload.c: what waits in the host's memory; without train.offload nothing happens ---- */
void offload_room(struct builder *b, const struct acts *two_before); /* before a block's forward; NULL: there is none */
void offload_acts(struct builder *b, struct acts *a);                /* behind a block's forward: out */
void offload_fetch(struct builder *b, struct acts *a);               /* before the backward of the block behind it: in */
bool offloads_states(const struct builder *b);
void offload_gradient(struct builder *b, int32_t bucket, struct view from); /* the reduced part, out */
struct view offload_sum(struct builder *b, int32_t bucket);                 /* what earlier micro-batches left in a gradient's part, on the device */
void offload_updated(struct builder *b, int32_t bucket);                    /* weights, in */
struct view offload_shard(struct builder *b, int32_t bucket, int64_t after); /* the part that a gather takes, on the device */

/* ---- build_gather.c: fsdp's gathers ---- */
void gather_begin(struct builder *b); /* of a micro-batch; with several stages, of an action */
void gather_use_begin(struct builder *b);
void gather_use_end(struct builder *b);

/* ---- build_block.c, build_backward.c, build_ends.c: the model ---- */
int32_t block_forward(struct builder *b, int32_t x_in, struct acts *a);    /* of b->layer; returns x_out, NONE when recomputing and nothing needs it */
void block_backward(struct builder *b, struct acts *a, int32_t *dx);       /* *dx: gradient of x_out in, of x_in out */
int32_t embedding_forward(struct builder *b);
void embedding_backward(struct builder *b, int32_t dx);
void head_forward(struct builder *b, int32_t x); /* final norm, head, loss */
int32_t head_backward(struct builder *b);        /* returns the gradient of x */

/* Tensor parallelism around a pair of matrix products: the full rows that a column-parallel product reads, and the completed rows of a row-parallel one. */
int32_t tp_gather(struct builder *b, int32_t rows_buffer, const char *what);
int32_t tp_reduce(struct builder *b, int32_t full_buffer, const char *what);

/* An MLP, from normed rows to rows that still miss FC2's bias; and back to the gradient of the normed rows. */
struct mlp_shape mlp_dense(const struct builder *b);
int32_t mlp_forward(struct builder *b, const struct mlp_shape *s, struct mlp_acts *a, int32_t normed, bool project);
int32_t mlp_backward(struct builder *b, const struct mlp_shape *s, struct mlp_acts *a, int32_t normed, int32_t dout);
/* Its activation, of `rows` rows of a->h. */
int64_t build_act_width(const struct builder *b, int64_t ffn); /* columns before the activation: twice as many where it is gated */
void build_activation(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a);
int32_t build_activation_grad(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, int32_t dg);

/* ---- build_moe.c: the same of a layer of experts. When recomputing, the result is NONE ---- */
int32_t moe_forward(struct builder *b, struct acts *a, int32_t normed);
int32_t moe_backward(struct builder *b, struct acts *a, int32_t dout);
int64_t moe_local_experts(const struct builder *b); /* of this rank */

/* ---- build_context.c: attention where each rank has a part of the sequence ---- */
void context_attention(struct builder *b, struct acts *a);
int32_t context_keys(struct builder *b, int32_t qkv); /* gathered for naive attention: [b, c s, 2 K D] */
void context_keys_grad(struct builder *b, int32_t dkv, int32_t dqkv);
void context_attention_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta, int32_t dqkv);

/* ---- build_narrow.c ---- */
bool narrow_here(const struct builder *b); /* products of this layer are done in a format narrower than 16 bits */
struct view narrow_copy_of(struct builder *b, struct view v, int64_t elements);

struct op build_attention_op(const struct builder *b, enum op_kind k);
int32_t build_probs(struct builder *b, int32_t qkv, int32_t kv); /* softmax(Q K^T) of the naive form, into a buffer of its own; kv: context_keys, or NONE */
bool build_recomputes_scores(const struct builder *b); /* of b->layer, in backward */
void build_gemm(struct builder *b, const char *what, uint16_t flags, int64_t m, int64_t n, int64_t k, enum dtype out_dtype, struct view A, struct view B, struct view bias, struct view C);
/* This and the two below, with an expert's weights: a product for each of this rank's experts, of `rows` rows each, as one GROUPED_GEMM. */
void build_linear(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t x, enum param_kind w, enum param_kind bias, int32_t y);
void build_linear_grad(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t dy, enum param_kind w, int32_t dx);
/* Or puts it off. The gradient is then done, but for a table that the embedding still adds its part to. */
void build_weight_grad(struct builder *b, const char *what, int64_t rows, int64_t out, int64_t in, int32_t dy, int32_t x, enum param_kind w);
void build_bias_grad(struct builder *b, const char *what, int64_t rows, int64_t cols, int32_t dy, enum param_kind bias);
void build_norm(struct builder *b, const char *what, int32_t x, enum param_kind w, enum param_kind bias, int32_t y, int32_t stats);
void build_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats, enum param_kind w, enum param_kind bias, int32_t dx, bool accumulate);

#endif
