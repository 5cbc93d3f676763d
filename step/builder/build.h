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
 * Reading order: build.c (program_build, the primitives), pipeline.c (a stage's actions), block.c and
 * backward.c (the model), products.c (products and norms of both), params.c and reduce.c
 * (buckets, reductions, the optimizer), then the variants: gather (fsdp), context, cross, moe, narrow, offload.
 */
#ifndef STEPSIM_STEP_BUILD_H
#define STEPSIM_STEP_BUILD_H

#include "step/clocks.h"
#include "step/inputs.h"
#include "step/program.h"
#include "step/schedule.h"
#include "step/stages.h"

#define NONE (-1)
#define NO_PARAM PARAM_KIND_COUNT

/* The ops that touched a buffer last: its writer, and the latest reader since then on each lane. */
struct usage {
	int32_t writer, reader[LANE_COUNT];
};

/* Buffers that an MLP's forward pass keeps for its backward pass. */
struct mlp_acts {
	int32_t h, g;      /* input and output of the activation */
	int32_t kept_gate; /* held: the gate's activation (stack_memory.gate_B) */
};

/* Buffers that a layer of experts keeps for its backward pass, besides those of its experts' MLP. */
struct moe_acts {
	int32_t logits, gates, slots, taken; /* arguments of ROUTE (step/ops.def) */
	int32_t in;                          /* the rows that this rank's experts received, expert by expert */
	int32_t out;                         /* the experts' results, back in the slots of the rank that routed */
	struct mlp_acts shared;
};

/* Buffers that latent attention keeps for its backward pass. */
struct latent_acts {
	int32_t q, q_normed, q_stats, kv, kv_normed, kv_stats; /* this rank's rows of the latents */
};

/* Buffers that cross-attention keeps for its backward pass. */
struct cross_acts {
	int32_t x, n, stats; /* the residual stream before it, and its norm */
	int32_t q, kv;       /* kv: [encoder rows, 2 kv_heads head_dim] */
	int32_t att, lse, probs;
	int32_t kept_scores; /* held, as acts.kept_scores */
};

/* Biases of the scores of a stack, and their gradient. */
struct bias_acts {
	int32_t bias, dbias;
};

/* Buffers that a Mamba layer keeps for its backward pass: arguments of SSM_GATE (step/ops.def). */
struct ssm_acts {
	int32_t in, y, gated, sigma;
};

/* Buffers of a convolution: what it reads, what it makes, and the statistics of its norm. */
struct conv_unit {
	int32_t x, made, stats;
};

#define ADAPTED 2 /* norms with the same numbers, at most */
/* What adaptive norms and gates keep (adapt.c): the activated condition, the numbers that it makes of them, the norms'
 * results where the shift is an op of its own. */
struct adapt_acts {
	int32_t active, mod, normed[ADAPTED];
};

/* Buffers of what conditions a picture: its timestep's numbers, before and behind their activation; the sum with its
 * class, whose gradient the blocks add up. */
struct condition {
	int32_t features, before, active, sum, grad;
};

/* Buffers that a block of a convolutional network keeps for its backward pass. */
struct conv_acts {
	struct conv_unit unit[4]; /* CONV_LAYERS */
	int32_t out;
};

/* The same of its stem, with what its pool took (step/ops.def). */
struct conv_stem {
	struct conv_unit unit;
	int32_t active, taken;
};

#define LORA_PRODUCTS 4
#define OFFLOADED_ACTS 28

/* Buffers that a block's forward pass keeps for its backward pass; NONE where the block has none. */
struct acts {
	int32_t x_in, n1, stats1, qkv, att, lse, probs;
	int32_t att_heads;         /* context_kind all_to_all: attention's result of this rank's heads */
	int32_t raw_qkv, qk_stats; /* before the norms of queries and keys */
	struct latent_acts latent;
	struct cross_acts cross;
	struct ssm_acts ssm;
	struct conv_acts conv;
	int32_t lora_in[LORA_PRODUCTS];                         /* x A^T of each product with an adapter */
	int32_t att_out, att_out_stats, mlp_out, mlp_out_stats; /* branch norms and gates: their inputs */
	struct adapt_acts adapt;
	int32_t x_mid, n2, stats2; /* x_mid: the residual stream after attention */
	struct mlp_acts mlp;       /* of the experts where the block has any */
	struct moe_acts moe;
	int32_t sum2;                 /* post-norm: the sum before norm2 */
	int32_t away[OFFLOADED_ACTS]; /* copies in the host's memory */
	int64_t out_at;               /* the last copy to the host */
	int32_t kept_rotated;         /* held: rotated copies of queries and keys */
	int32_t kept_masks;           /* held: dropout masks */
	int32_t kept_scores;          /* held: masks of stored scores, and the scores after dropout */
};

/* A layer's product y = x W^T + bias, W [out, in]. `what` names its ops. */
struct linear {
	const char *what;
	int64_t rows, out, in;
	enum param_kind w, bias;
	int64_t experts; /* > 0: one GROUPED_GEMM, a product of `rows` rows for each of so many experts of this rank */
};

/* An MLP. FC2's bias is added with the residual. */
struct mlp_layers {
	struct linear fc1, fc2;
	enum param_kind fc2_bias;
	bool again; /* selective recomputation runs its forward pass again */
};

/* A copy, in a format narrower than 16 bits, of the matrix at offset_B of a buffer. */
struct narrow_copy {
	uint64_t offset_B;
	int32_t copy; /* buffer */
	int32_t next; /* the next copy of the same buffer, an index in builder.narrow */
};

/* Buffers that the head's forward pass keeps for its backward pass. */
struct head_acts {
	int32_t x, stats;                   /* input and statistics of the final norm */
	int32_t seen;                       /* rows that the vocabulary head sees */
	int32_t dense, active, dense_stats; /* its transform: before and behind the activation, and of the norm */
	int32_t in;                         /* input of the head's product */
	int32_t logits;
	int32_t capped; /* the logits after soft-capping; logits themselves without; the loss leaves its gradient here
	                 */
	int32_t first, pooler, pooled; /* the class head: first rows, before the pooler's activation, behind it */
	int32_t class_logits;
	struct adapt_acts adapt;
	int32_t predicted; /* of patches; the loss leaves its gradient here */
};

/* Buffers that a block of mtp_layers keeps besides its own: what it joins, normed, and its head's. */
struct mtp_acts {
	int32_t hidden, hidden_normed, hidden_stats, tokens, tokens_normed, tokens_stats;
	struct head_acts head;
};

/* A micro-batch in flight in one chunk of the stage: from its forward pass to its last backward action. */
struct flight {
	int32_t input;                     /* tokens and targets on the device */
	int32_t embedded, embedding_stats; /* input and statistics of the embedding's norm */
	struct condition condition;
	struct conv_stem stem;
	struct bias_acts bias[2];           /* of the decoder, or all layers; of the encoder */
	int32_t encoder_out, encoder_stats; /* input and statistics of the encoder's norm */
	int32_t encoded, dencoded;          /* the encoder's output; its gradient, the sum so far */
	struct head_acts head;
	struct mtp_acts mtp[MTP_MOST];
	int32_t x;            /* the chunk's output */
	int32_t kept_message; /* held: the message to the next stage (stack_memory.message_B) */
};

/* The input of an action: activations from the part before it, or gradients from the part after it. */
struct arrival {
	int32_t buffer;
	int64_t message; /* the receive; NONE where that part is on this stage */
};

#define UNIT_BUCKETS 4 /* of a block, at most: its experts', the rest, what of it is frozen, and that in fewer bits */
/* fsdp: one use of a block's weights, which are gathered for it. */
struct unit_use {
	int32_t first, last;          /* buckets */
	int32_t buffer[UNIT_BUCKETS]; /* by bucket */
	int64_t again;                /* elements of the first bucket that are gathered once more (unit_params) */
	int64_t end;                  /* the compute op that ended the use; NONE: not yet used */
};

/* A gradient of weights that a schedule defers to ACTION_WEIGHTS: the arguments of build_weight_grad. */
struct deferred_weights {
	struct linear linear;
	int32_t dy, x, layer;
	int16_t micro;
	int32_t chunk; /* NONE: done */
};

/* A bucket's buffers and counts while the program is built. */
struct bucket_state {
	int32_t weights; /* in use; NONE: not gathered */
	int32_t grads;   /* in use; NONE: not begun */
	int32_t missing; /* gradients still to come in this micro-batch; NONE: the action does not touch the bucket */
	int32_t reduced; /* scratch: the reduced bucket, still to be added or cast into place */
	int32_t moment1, moment2, master, bounds; /* of the optimizer */
	uint64_t partial;    /* elements before those of whose gradients a tensor rank has its heads' part */
	uint64_t replicated; /* elements before those that tensor parallelism replicates */
};

/* A neighbour stage: the order of its actions, and the messages sent to it. */
struct peer {
	int64_t stage;
	action_list actions;
	int32_t *place; /* an action's place in that order: [(kind x chunks + chunk) x micro-batches + micro] */
	size_t heard;   /* the first `heard` of its actions: their messages have receives here */
	VEC(struct sent {
		int64_t op;
		int32_t used_at; /* place of the peer's action that uses it */
	})
	sent;
	size_t known; /* the first `known` messages have certainly arrived */
};

struct builder {
	const struct config *c;
	const struct model *m;
	struct program *p;
	struct role *r;
	struct error *e;
	enum status st;
	struct clocks clocks;
	VEC(struct usage) usage;        /* by buffer */
	VEC(int64_t) after[LANE_COUNT]; /* dependencies that build_after gives the next op of each lane */

	struct op blank; /* all zero: copied in vectors; gcc makes a slow string instruction of so short a memset */

	/* derived once */
	int64_t stage, stages, chunks;
	bool has_embedding, has_head; /* of the stage */
	int64_t tensor;               /* ranks of the tensor group */
	int64_t dp;                   /* ranks that hold the same parameters; hsdp: of a shard group */
	int64_t tokens;               /* of a micro-batch, this rank's */
	int64_t rows;                 /* of these, the rows of a sequence-parallel rank; else all */
	int64_t seq, context;         /* tokens of a sequence, this rank's; ranks that share a sequence */
	int64_t heads, kv_heads;      /* of this tensor rank, as the two below */
	int64_t ffn, vocab;
	bool sequence_parallel;
	bool encodes;            /* the position is in an encoder before a decoder */
	bool gathers;            /* weights are cut, and gathered for each use */
	bool shards_gradients;   /* gradients are cut, and reduced with each micro-batch */
	enum dtype act;          /* storage formats: activations, */
	enum dtype weight;       /* stored weights, */
	enum dtype grad;         /* stored gradients, */
	enum dtype written_grad; /* gradients as backward writes them: fsdp computes them in the compute format and
	                            converts them for the reduction; else as stored */
	enum dtype reduce;       /* gradients while they are reduced */
	int32_t *layer_chunk;    /* by layer: the chunk of the stage that has it; NONE: another stage has */
	int32_t *param_index; /* into role.params: [(layer + 1) x PARAM_KIND_COUNT + kind]; NONE: the model has none */

	/* the position of the builder */
	enum phase phase;
	int16_t micro;
	int32_t layer;
	bool recomputing;       /* ops are marked OP_RECOMPUTED */
	struct stage_part part; /* the chunk's part of the model */
	int32_t chunk;
	struct flight *now;
	struct acts *acts_now;            /* of the block at hand */
	int32_t lora_grad[LORA_PRODUCTS]; /* the gradient of lora_in, from that of the input to that of A */
	bool further_tokens;              /* mtp.c: the head adds to its gradient once more, */
	bool head_begun;                  /* and has begun it */
	bool defers_weights;              /* gradients of weights wait for ACTION_WEIGHTS */
	struct build_pair *pair;          /* overlap.c: the two actions that are built together; NULL: one alone */
	int32_t *batch; /* by micro-batch: the data loader's buffer on the host; NULL without a loader */

	int32_t gradient_copies;      /* held: further gradients (stack_memory.gradient_B) */
	struct bucket_state *buckets; /* by bucket */
	int32_t *cast_now;            /* by parameter: its copy in the compute format for this micro-batch */
	int32_t next_bucket;          /* the next one to reduce: buckets are reduced in order */
	int64_t reduced[2];           /* the two latest reductions of transient buckets, latest first */

	/* fsdp: the uses of blocks in one micro-batch, forward then backward; with several stages, in one action */
	int32_t n_units; /* buckets of blocks; those of the rest stand behind them */
	struct unit_use *uses;
	int64_t n_uses;
	int64_t gathered;      /* the first `gathered` uses have their gathers in the program */
	int64_t used;          /* the first `used` uses have ended */
	int64_t gathers_after; /* the op that the first gathers wait for */

	/* by slot: the micro-batch modulo `slots`, the largest number of them in flight */
	int64_t slots;
	struct acts *acts;      /* [slot x layers + layer] */
	struct flight *flights; /* [slot x chunks + chunk] */

	/* pipeline.c */
	action_list actions;
	struct peer peer[2];      /* the next stage, the previous stage */
	struct arrival *arrivals; /* indexed as peer.place, without ACTION_WEIGHTS */
	VEC(struct deferred_weights) deferred;
	size_t deferred_done; /* the first `deferred_done` are done; later ones may be */

	/* narrow.c: fp8, mxfp8, nvfp4 */
	VEC(struct narrow_copy) narrow;
	VEC(int32_t) narrow_first; /* by buffer: its first copy, an index in `narrow` */
};

/* ---- build.c: buffers and ops ---- */

/* Sets the status to "out of memory", unless it failed before. */
void build_nomem(struct builder *b, const char *what);

/* Each appends a buffer and returns it: any; an activation in the compute format; rows of the residual stream
 * [b->rows, hidden]; fp32 statistics. */
int32_t build_buffer(struct builder *b, enum component comp, enum dtype dt, int64_t elements, bool persistent);
int32_t build_act(struct builder *b, int64_t rows, int64_t cols);
int32_t build_rows(struct builder *b);
int32_t build_fp32(struct builder *b, int64_t elements);

/* Holds bytes (struct held) from the next op on, until build_release or else throughout. Returns NONE for no bytes. */
int32_t build_hold(struct builder *b, enum component comp, double bytes, const char *what);
/* Ends *held after the latest op and sets it to NONE. Does nothing with NONE. */
void build_release(struct builder *b, int32_t *held);

struct view view_of(int32_t buffer);
struct view view_at(int32_t buffer, uint64_t offset_B);

/* Returns an op of the builder's position, on LANE_COMPUTE, in the format of activations. Its dimensions are 0, or
 * those of a matrix. */
struct op build_new(const struct builder *b, enum op_kind k, const char *what);
struct op build_matrix(const struct builder *b, enum op_kind k, const char *what, int64_t rows, int64_t cols);
/* Appends an op, with the dependencies that its arguments and build_after bring. Arguments are views with build_with,
 * whole buffers with build_on. */
void build_op(struct builder *b, struct op op, const struct view *args);
void build_on_buffers(struct builder *b, struct op op, const int32_t *buffers);
#define build_with(b, op, ...) build_op(b, op, (const struct view[]){__VA_ARGS__})
#define build_on(b, op, ...) build_on_buffers(b, op, (const int32_t[]){__VA_ARGS__})
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

/* ---- reduce.c: weights, gradients and their reductions, the optimizer ---- */

/* Gathers the weights that the step before has updated, where the stack gathers them so late. */
void build_gather_ahead(struct builder *b);
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
/* Appends the update of a bucket by AdamW, or by the optimizer, from element `from` of its part on, and what follows.
 */
void update_from(struct builder *b, int32_t bucket, enum optimizer o, int64_t from);
/* Gathers updated weights where forward expects them whole. */
void gather_bucket(struct builder *b, int32_t bucket);

/* ---- muon.c ---- */

/* True where muon steps a parameter by its orthogonalized momentum: a matrix of a block that is not replicated. */
bool build_steps_matrix(const struct builder *b, const struct param *p);
/* Returns the elements of a rank's part of a bucket that are no such matrices'. */
int64_t build_other_elements(const struct bucket *k);
void build_muon(struct builder *b);

/* ---- offload.c: copies to and from the host's memory; nothing happens without train.offload ---- */

/* Makes a block's forward pass wait until the block two before it is copied out. NULL: there is none. */
void offload_room(struct builder *b, const struct acts *two_before);
/* Copies a block's activations out, after its forward pass. */
void offload_acts(struct builder *b, struct acts *a);
/* Copies them back, before the backward pass of the block after it. */
void offload_fetch(struct builder *b, struct acts *a);
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

/* ---- block.c, backward.c, ends.c, head.c: the model ---- */

/* Append what recompute_modules runs again of the present block, before its backward pass reads it: the norm before
 * attention, the one before the MLP with that MLP's own modules, and attention between its products. */
void again_norm1(struct builder *b, struct acts *a);
void again_mlp(struct builder *b, struct acts *a);
void again_attention(struct builder *b, struct acts *a);
/* Appends the forward pass of block b->layer. Returns its output, or NONE when recomputing and nothing needs it. */
int32_t block_forward(struct builder *b, int32_t x_in, struct acts *a);
/* Replaces the gradient of the block's output in *dx by that of its input. */
void block_backward(struct builder *b, struct acts *a, int32_t *dx);
/* Returns the place of a table's gradient. Rows add to it one by one, so its first writer clears it, unless it is
 * `cleared`. */
struct view build_table_gradient(struct builder *b, enum param_kind k, bool cleared);
/* Returns the rows of tokens in the table, and appends their gradient: into a table that is `begun`,
 * or cleared. done: nothing else adds to it. */
int32_t embed_tokens(struct builder *b, struct view tokens);
void embed_tokens_grad(struct builder *b, struct view tokens, int32_t dx, bool begun, bool done);
/* Append the vocabulary head and its loss, and return the gradient of its rows. */
void vocabulary_forward(struct builder *b, struct head_acts *a, int32_t normed, struct view targets);
int32_t vocabulary_backward(struct builder *b, const struct head_acts *a);
int32_t embedding_forward(struct builder *b);
void embedding_backward(struct builder *b, int32_t dx);
/* Appends the final norm, the heads and their losses. */
void head_forward(struct builder *b, int32_t x);
/* Returns the gradient of head_forward's x. */
int32_t head_backward(struct builder *b);

/* Appends the backward pass of a column-parallel product. Returns the gradient of its input rows `x`, given that of its
 * output. */
int32_t columns_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *input,
	const char *grad);

/* The same of a row-parallel product: returns the gradient of its input `x`, given that of its output rows. */
int32_t rows_backward(struct builder *b, const struct linear *l, int32_t dy, int32_t x, const char *grad);

struct linear linear_qkv(const struct builder *b);
struct linear linear_proj(const struct builder *b);
struct mlp_layers mlp_dense(const struct builder *b);
/* Returns an MLP of a width on this tensor rank. */
struct mlp_layers mlp_layers_of(const struct builder *b, int64_t ffn, enum param_kind fc1, enum param_kind fc1_bias,
	enum param_kind fc2, enum param_kind fc2_bias);
/* Returns the MLP's output without FC2's bias. project: false leaves FC2's product out. */
int32_t mlp_forward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, bool project);
/* Returns the gradient of `normed`. */
int32_t mlp_backward(struct builder *b, const struct mlp_layers *s, struct mlp_acts *a, int32_t normed, int32_t dout);
/* Returns the columns of the activation's input: ffn, or twice as many where it is gated. */
int64_t build_act_width(const struct builder *b, int64_t ffn);
/* Appends the activation of `rows` rows of a->h. again: selective recomputation runs it again. */
void build_activation(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, bool again);
int32_t build_activation_grad(struct builder *b, int64_t rows, int64_t ffn, struct mlp_acts *a, int32_t dg);

/* ---- latent.c: multi-head latent attention in place of one product for Q, K and V ---- */

/* Returns the rows of Q, K and V, given the normed rows of the block's input. */
int32_t latent_forward(struct builder *b, struct acts *a, int32_t normed);
/* Appends the up products and the rotation once more, from the normed latents, and returns Q, K and V. */
int32_t latent_up(struct builder *b, const struct acts *a);
/* Returns the gradient of the normed rows. */
int32_t latent_backward(struct builder *b, struct acts *a, int32_t dqkv);

/* ---- adapt.c: diffusion transformers ---- */

/* Makes the vector that conditions each picture of the micro-batch. */
void condition_forward(struct builder *b);
/* Appends its backward pass, from the gradient that adapt_backward has added up. */
void condition_backward(struct builder *b);
/* Makes the numbers of a block, or of the final norm, of that vector; w: PARAM_ADAPT_W or PARAM_FINAL_ADAPT_W. */
void adapt_forward(struct builder *b, struct adapt_acts *a, enum param_kind w);
/* Appends its backward pass, given the gradient of the numbers. */
void adapt_backward(struct builder *b, const struct adapt_acts *a, enum param_kind w, int32_t dmod);
/* Returns norm(x) (1 + scale) + shift with the numbers of branch i, and its statistics. */
int32_t adapt_norm(struct builder *b, const char *what, struct adapt_acts *a, int i, int32_t x, int32_t *stats);
/* Returns the gradient of x, added to `into` or in new rows where that is NONE. That of the numbers goes to *dmod,
 * which is made where it is NONE. */
int32_t adapt_norm_grad(struct builder *b, const char *what, const struct adapt_acts *a, int i, int32_t dn, int32_t x,
	int32_t stats, int32_t into, int32_t *dmod);
/* Returns x + gate (y + bias) with the gate of branch i. */
int32_t adapt_add(struct builder *b, const struct adapt_acts *a, int i, int32_t x, int32_t y, enum param_kind bias);
/* Returns the gradient of y; that of the gate goes to *dmod as above. */
int32_t adapt_add_grad(struct builder *b, const struct adapt_acts *a, int i, int32_t dsum, int32_t y,
	enum param_kind bias, int32_t *dmod);

/* ---- cross.c: an encoder before a decoder, and biases of scores ---- */

/* Append the embedding of the model's first stack, with its biases; the end of that stack's backward pass. */
int32_t stack_begin(struct builder *b);
void stack_end(struct builder *b, int32_t dx);
/* Ends the encoder, whose last layer's output is x, and returns the decoder's embedded tokens. */
int32_t decoder_begin(struct builder *b, int32_t x);
/* Ends the decoder's backward pass, given the gradient of its embedded tokens, and returns that of the encoder's last
 * layer's output. */
int32_t decoder_end(struct builder *b, int32_t dx);
/* Add the present stack's biases to scores, and dscores to their gradient, where it has any. */
void build_score_bias(struct builder *b, int32_t scores);
void build_score_bias_grad(struct builder *b, int32_t dscores);
/* Returns the rows that cross-attention adds to the residual stream, without PROJ's bias, given those of a->n. */
int32_t cross_forward(struct builder *b, struct cross_acts *a);
/* Forgets what the backward pass makes again. */
void cross_forget(const struct builder *b, struct cross_acts *a);
/* Returns the gradient of a->n. */
int32_t cross_backward(struct builder *b, struct cross_acts *a, int32_t dout);

/* ---- mtp.c: multi-token prediction ---- */

/* Appends the blocks that predict further tokens, given the last layer's output, and their losses. */
void mtp_forward(struct builder *b, int32_t x);
/* Returns the gradient of that output; NONE without such blocks. */
int32_t mtp_backward(struct builder *b);

/* ---- conv.c: convolutional networks ---- */

int32_t conv_block_forward(struct builder *b, int32_t x_in, struct acts *a);
void conv_block_backward(struct builder *b, struct acts *a, int32_t *dx);
int32_t conv_stem_forward(struct builder *b);
void conv_stem_backward(struct builder *b, int32_t dx);
/* Return the mean of each channel over its image, and the gradient of the images. */
int32_t conv_mean_forward(struct builder *b, int32_t x);
int32_t conv_mean_backward(struct builder *b, int32_t dy);

/* ---- ssm.c: a Mamba layer's branch ---- */

/* Returns the branch's output, given the normed rows of the block's input; NONE when recomputing and nothing needs it.
 */
int32_t ssm_forward(struct builder *b, struct acts *a, int32_t normed);
/* Returns the gradient of the normed rows. */
int32_t ssm_backward(struct builder *b, struct acts *a, int32_t dout);

/* ---- moe.c: a layer of experts in place of the MLP ---- */

/* Returns the layer's output; NONE when recomputing. */
int32_t moe_forward(struct builder *b, struct acts *a, int32_t normed);
/* Appends the shared experts' forward pass once more. */
void moe_again_shared(struct builder *b, struct acts *a);
int32_t moe_backward(struct builder *b, struct acts *a, int32_t dout);
/* Appends the sum of the experts' loads over all ranks and the step of router_bias (Megatron-Core,
 * distributed/finalize_model_grads.py: _update_router_expert_bias). */
void build_router_bias(struct builder *b);

/* ---- context.c: attention where each rank has a part of the sequence ---- */

void context_attention(struct builder *b, struct acts *a);
/* Returns the keys and values of the whole sequence for naive attention: [batch, c s, 2 kv_heads head_dim]. */
int32_t context_keys(struct builder *b, int32_t qkv);
void context_keys_grad(struct builder *b, int32_t dkv, int32_t dqkv);
/* Returns the gradient of Q, K and V. */
int32_t context_attention_grad(struct builder *b, const struct acts *a, int32_t datt, int32_t delta);

/* ---- narrow.c ---- */

/* True where this layer's products run in a format narrower than 16 bits. */
bool narrow_here(const struct builder *b);
/* Says that a buffer already has that format. */
void narrow_is_own(struct builder *b, int32_t buffer);
/* Returns a copy of `v` in that format, and makes it where there is none yet. */
struct view narrow_copy_of(struct builder *b, struct view v, int64_t elements);

/* ---- ops that forward and backward share ---- */

struct op build_attention_op(const struct builder *b, enum op_kind k);
/* Returns softmax(Q K^T) of naive attention in a new buffer. kv: context_keys, or NONE. */
int32_t build_probs(struct builder *b, int32_t qkv, int32_t kv);
/* True where the backward pass of b->layer runs one of these again alone: bits of enum recompute_module. */
bool build_recomputes_part(const struct builder *b, int modules);
/* Returns a new buffer for the scores of naive attention. */
int32_t build_scores(struct builder *b);
/* Holds what the framework keeps of scores of so many keys besides them: masks, and scores after dropout. */
int32_t build_kept_scores(struct builder *b, int64_t keys);

/* ---- products.c ---- */

/* Appends y = x W^T + bias. */
void build_linear_at(struct builder *b, const struct linear *l, int32_t x, struct view y);
/* Append y = x W^T + bias and dx = dy W, and return y and dx in new buffers. */
int32_t build_linear(struct builder *b, const struct linear *l, int32_t x);
int32_t build_linear_grad(struct builder *b, const struct linear *l, int32_t dy);
/* Appends dW += dy^T x, or defers it (struct deferred_weights). It completes the gradient, except that of a table to
 * which the embedding still adds. */
void build_weight_grad(struct builder *b, const struct linear *l, int32_t dy, int32_t x);
void build_bias_grad(struct builder *b, const char *what, int64_t rows, int64_t cols, int32_t dy, enum param_kind bias);
/* Returns a norm's op on this rank's rows. */
struct op build_norm_op(const struct builder *b, enum op_kind k, const char *what, int64_t cols);
/* Returns norm(x) of the residual stream's rows, and its statistics. The bias is the kind behind w (step/model.h). */
int32_t build_norm(struct builder *b, const char *what, int32_t x, enum param_kind w, int32_t *stats);
/* Returns the gradient of x: added to `into`, or in new rows where that is NONE. */
int32_t build_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int32_t stats, enum param_kind w,
	int32_t into);
/* The same of latents, without a bias: of the first `cols` of the `width` columns of x and its gradient. */
int32_t build_latent_norm(struct builder *b, const char *what, int32_t x, int64_t cols, int64_t width,
	enum param_kind w, int32_t *stats);
int32_t build_latent_norm_grad(struct builder *b, const char *what, int32_t dy, int32_t x, int64_t cols, int64_t width,
	int32_t stats, enum param_kind w);

/* Tensor parallelism around a pair of matrix products. tp_gather returns the full rows that the column-parallel product
 * reads. tp_reduce returns the completed rows of the row-parallel product. Rows have `hidden` columns, or `cols`. */
int32_t tp_gather(struct builder *b, int32_t rows, const char *what);
int32_t tp_gather_cols(struct builder *b, int32_t rows, int64_t cols, const char *what);
int32_t tp_reduce(struct builder *b, int32_t full, const char *what);
int32_t tp_reduce_cols(struct builder *b, int32_t full, int64_t cols, const char *what);

#endif
