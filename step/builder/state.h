/* What the builder knows while it appends a role's program: the buffers that passes keep, the state of buckets, of
 * messages and of the schedule. The rules of step/builder/build.h hold. */
#ifndef STEPSIM_STEP_BUILDER_STATE_H
#define STEPSIM_STEP_BUILDER_STATE_H

#include "step/clocks.h"
#include "step/inputs.h"
#include "step/program.h"
#include "step/schedule.h"
#include "step/stages.h"

#define NONE (-1)
#define NO_PARAM PARAM_KIND_COUNT

/* The ops that touched a buffer last: its writer, and the latest reader since then on each lane. */
struct usage {
	int32_t writer;
	uint32_t readers; /* 1 << lane, of those whose `reader` counts */
	int32_t reader[LANE_COUNT];
};

/* Buffers that an MLP's forward pass keeps for its backward pass. */
struct mlp_acts {
	int32_t h, g;              /* input and output of the activation */
	int32_t kept_gate;         /* held: the gate's activation (stack_memory.gate_B) */
	int32_t h8;                /* train.act_input_dtype fp8: the copy of h that is kept in its place */
	int32_t weights, dweights; /* of experts' rows whose gates multiply g (train.expert_gates); NONE: not */
};

/* Buffers that a layer of experts keeps for its backward pass, besides those of its experts' MLP. */
struct moe_acts {
	int32_t logits, gates, slots, taken; /* arguments of ROUTE (step/ops.def) */
	int32_t in;                          /* the rows that this rank's experts received, expert by expert */
	int32_t out;                         /* the experts' results, back in the slots of the rank that routed */
	int32_t weights;                     /* gates, beside the rows of `in`; NONE: they stayed */
	int32_t summed;                      /* moe_latent: results of a token, before they are made wide */
	struct mlp_acts shared;
	int32_t shared_out, shared_gate; /* shared_expert_gate: what it gates, and its product */
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

/* Buffers that a Mamba layer keeps for its backward pass: arguments of SSM_GATE (step/ops.def); a gated delta rule
 * keeps the convolution's result, too. */
struct ssm_acts {
	int32_t in, xbc, y, gated, sigma;
	int32_t decay_low, decay, gate_low, gate; /* Kimi delta attention: rows of low rank, and what is made of them */
	int32_t kept_inverse;                     /* held: inverses of chunks */
};

/* Buffers of a gated short convolution: arguments of SHORT_CONV. */
struct short_acts {
	int32_t in, out;
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

/* Buffers of the two convolutions that embed frames of sound: made, and behind the activation. */
struct frame_acts {
	int32_t made[2], active;
};

/* The same of its stem, with what its pool took (step/ops.def). */
struct conv_stem {
	struct conv_unit unit;
	int32_t active, taken;
};

/* What recomputation op by op saves (saved.c): products, and rows behind a collective. */
#define SAVED_PRODUCTS 10
enum saved_place { SAVED_PROJ_ROWS = SAVED_PRODUCTS, SAVED_FC2_ROWS, SAVED_DISPATCH, SAVED_COMBINE, SAVED_COUNT };
struct saved {
	int32_t buffer[SAVED_COUNT]; /* results that the recomputed block reads */
	int32_t held[SAVED_COUNT];   /* held: columns of results, and results that nothing reads */
};

/* Rows of all tensor ranks, gathered from `rows`, that a block's gradients of weights read again. */
#define GATHERED_INPUTS 2
struct gathered {
	int32_t rows, full; /* NONE: none */
};

#define LORA_PRODUCTS 17
#define OFFLOADED_ACTS 52

/* Buffers that a block's forward pass keeps for its backward pass; NONE where the block has none. */
struct acts {
	int32_t x_in, n1, stats1, qkv, att, lse, probs;
	int32_t att_heads;         /* context_kind all_to_all: attention's result of this rank's heads */
	int32_t gate, gated;       /* attention_gate: its product, and attention's result behind it */
	int32_t raw_qkv, qk_stats; /* before the norms of queries and keys */
	struct latent_acts latent;
	struct cross_acts cross;
	struct ssm_acts ssm;
	struct short_acts short_conv;
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
	int32_t kept_norms;           /* held: what unfused norms keep (stack_memory.rms_norm_B) */
	int32_t kept_masks;           /* held: dropout masks */
	int32_t kept_scores;          /* held: build_kept_scores */
	struct saved saved;
	struct gathered gathered[GATHERED_INPUTS];
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
	int32_t kept_chunk; /* held: the logits of a chunk of tokens, where the loss runs by chunks */
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
	struct frame_acts frames;
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

/* Of a block, at most: its experts', the rest, what of it is frozen, and that in fewer bits; or one for each matrix. */
#define UNIT_BUCKETS 24
/* fsdp: one use of a block's weights, which are gathered for it. */
struct unit_use {
	int32_t first, last;          /* buckets */
	int32_t buffer[UNIT_BUCKETS]; /* by bucket */
	int64_t again;                /* elements of the first bucket that are gathered once more (unit_params) */
	int64_t end;                  /* the compute op that ended the use; NONE: not yet used */
};

/* The uses of blocks in one micro-batch, forward then backward; with several stages, in one action. */
struct unit_uses {
	struct unit_use *at; /* has room for all blocks twice; NULL: not begun */
	int64_t n;
	int64_t gathered; /* the first `gathered` uses have their gathers in the program */
	int64_t used;     /* the first `used` uses have ended */
	int64_t after;    /* the op that the first gathers wait for */
	int32_t held;     /* what counts of the gathered matrices of the use at hand, where those do not */
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
	int32_t moment1, moment2, master, bounds; /* of the optimizer; adafactor: factors, and v of vectors */
	uint64_t partial;    /* elements before those of whose gradients a tensor rank has its heads' part */
	uint64_t replicated; /* elements before those that tensor parallelism replicates */
	bool updated;        /* in the backward pass (train.optimizer_in_backward) */
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
	VEC(uint32_t) on_lane[LANE_COUNT]; /* ops of each lane but LANE_COMPUTE, in order */
	uint32_t heard[LANE_COUNT];        /* the first so many of them: an op of LANE_COMPUTE knows that they ended */
	uint32_t unheard;                  /* 1 << lane, of those with more ops than that */
	VEC(struct usage) usage;           /* by buffer */
	VEC(int64_t) after[LANE_COUNT];    /* dependencies that build_after gives the next op of each lane */

	struct op blank; /* what all ops of the role begin with (build_new) */

	/* derived once */
	int64_t stage, stages, chunks;
	bool has_embedding, has_head; /* of the stage */
	int64_t tensor;               /* ranks of the tensor group */
	int64_t dp;                   /* ranks that hold the same parameters; hsdp: of a shard group */
	int64_t tokens;               /* of a micro-batch, this rank's */
	int64_t rows;                 /* of these, the rows of a sequence-parallel rank; else all */
	double uneven;                /* how many times its share of the experts' rows the fullest rank has */
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
	bool narrow_stored;      /* the blocks' matrices in fp8, */
	bool narrow_gathered;    /* and so they are gathered */
	bool wide_gathered;      /* in fp32, and autocast casts what was gathered */
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
	bool in_product;        /* ops are marked OP_IN_PRODUCT */
	struct stage_part part; /* the chunk's part of the model */
	int32_t chunk;
	struct flight *now;
	struct acts *acts_now;            /* of the block at hand */
	int32_t lora_grad[LORA_PRODUCTS]; /* the gradient of lora_in, from that of the input to that of A */
	bool further_tokens;              /* mtp.c: the head adds to its gradient once more, */
	bool head_begun;                  /* and has begun it */
	bool drops;                       /* the norm whose gradient is built stands behind dropout */
	bool defers_weights;              /* gradients of weights wait for ACTION_WEIGHTS */
	struct build_pair *pair;          /* overlap.c: the two actions that are built together; NULL: one alone */
	int32_t *batch; /* by micro-batch: the data loader's buffer on the host; NULL without a loader */

	int32_t gradient_copies;      /* held: further gradients (stack_memory.gradient_B) */
	struct bucket_state *buckets; /* by bucket */
	int32_t *cast_now;            /* by parameter: its copy in the compute format for this micro-batch */
	int32_t next_bucket;          /* the next one to reduce: buckets are reduced in order */
	int32_t to_gather;  /* zero1: buckets whose updated weights are still to be gathered, from the last on */
	int64_t reduced[2]; /* the two latest reductions of transient buckets, latest first */

	int32_t n_units; /* fsdp: buckets of blocks; those of the rest stand behind them */
	struct unit_uses units;

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

#endif
