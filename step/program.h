/* The step program: what one training step does, for one role. Shapes and buffers, never costs.
 *
 * A role is a class of ranks that do the same: a pipeline stage, whose number is its ranks' coordinate along DIM_PP. Its ops stand in issue order, the order in which the host thread issues them to all lanes. An op starts when
 * (1) it has been issued, (2) the op before it on its lane has ended, (3) the ops it names as dependencies have ended, and (4), for a collective, every
 * member of its group has arrived. Dependencies name only ops of other lanes (a lane is in order by itself) and always earlier ones: issue order is a topological order.
 *
 * All matrices are row-major and contiguous. A rank holds T = micro_batch x seq_len tokens of a micro-batch (T / tensor of them where sequence parallelism
 * cuts the token rows: rank i of the tensor group has rows [i T/t, (i+1) T/t)).
 *
 * Context parallelism cuts each sequence: T = micro_batch x seq_len / c, and s below is seq_len / c. Attention that is not causal: rank i has tokens [i s, (i+1) s). Causal: the sequence is cut into 2 c chunks and rank i has
 * chunks i and 2c-1-i, in this order, so that all have the same work (Llama 3, arXiv:2407.21783, section 3.3.2; Megatron-LM). Positions (ROPE, POSITION, ALIBI) are those in the whole sequence. Keys and values
 *   ring        travel around the group, c - 1 exchanges, while attention works on what came before (Liu et al. 2023, arXiv:2310.01889); backward they travel again, and their gradients with them, c - 1 exchanges to the rank they belong to
 *   all_gather  are gathered before attention, and again before its backward; their gradients are reduced and scattered. Naive attention, which keeps the scores of all keys, has this way alone
 *
 * Experts (model.experts E > 0). Of the R rows that a rank routes (its tokens; with sequence parallelism its part of them), each goes to the k experts with the largest router logits (ties: the lower number), weighted by its gates:
 * the softmax over these k logits (Mixtral, arXiv:2401.04088, section 2.1), or over all of them when k = 1 (Switch, arXiv:2101.03961, equation 2). A rank has C places at each expert,
 *   C = min(R, ceil(capacity_factor x R k / E)), dealt first choices first, each in the order of rows (GShard, arXiv:2006.16668, algorithm 1);
 * a choice that finds none is dropped: it adds nothing, and the other gates stay. capacity_factor 0 is training without dropping, taken as balanced: the shape of factor 1, each expert with its share. (Routing that is executed is
 * not balanced, so an execution drops with 0 what it drops with 1; with E / k nothing is ever dropped.) All E C slots are sent, empty ones as zeros, so that every rank's program has one shape.
 * Experts are dealt in order to the ranks of the expert group (mesh.h), E / e each; there is no auxiliary loss. */
#ifndef STEPSIM_STEP_PROGRAM_H
#define STEPSIM_STEP_PROGRAM_H

#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "step/config.h"
#include "step/mesh.h"

/* ---- lanes, phases, classes ---- */

enum lane {
	LANE_COMPUTE,
	LANE_COMM,       /* data-parallel collectives: gradient reduction, parameter gathering */
	LANE_REPLICA_COMM, /* hsdp's sums over replicas: PyTorch's FSDP2 has a stream for them, beside the gathers and scatters (torch/distributed/fsdp/_fully_shard, FSDPCommContext.all_reduce_stream) */
	LANE_MODEL_COMM, /* collectives inside a layer (tensor, sequence, context, expert): never queued behind gradients */
	LANE_COPY,       /* host-device copies */
	LANE_HOST,       /* the host thread: its ops hold up what it has not yet issued. OPTIMIZER here: by the host's cores, in its memory */
	LANE_LOAD,       /* the data loader's workers, all together */
	/* messages between pipeline stages: each direction has a lane of its own at either end, so that their order cannot deadlock. The stage after the last is the first, and the other way round (interleaving) */
	LANE_SEND_NEXT, LANE_RECV_PREV, /* activations */
	LANE_SEND_PREV, LANE_RECV_NEXT, /* their gradients */
	LANE_COUNT
};
enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COUNT };

enum op_class {
	CLASS_GEMM, CLASS_ATTENTION, CLASS_NORM, CLASS_ELEMENTWISE, CLASS_EMBEDDING, CLASS_ROUTING /* tokens to experts and back */, CLASS_LOSS, CLASS_MEMORY /* fills and casts */, CLASS_OPTIMIZER,
	CLASS_ALL_REDUCE, CLASS_ALL_GATHER, CLASS_REDUCE_SCATTER, CLASS_BROADCAST, CLASS_ALLTOALL, CLASS_SENDRECV, CLASS_COPY, CLASS_HOST, CLASS_COUNT
};

/* ---- ops: kinds, their dimensions d[] and their arguments ----
 *
 * `r` reads, `w` writes, `rw` both; `a` writes, or adds to what stands there when OP_ACCUMULATE is set; `?` may be absent (buffer -1).
 * T rows of tokens, b batch, s sequence, H heads, K kv_heads, D head_dim.
 *
 * GEMM            d = m, n, k            A r, B r, bias r?, C a         C = op(A) op(B) (+ bias, one value a column, forward only); TRANS_A: A is stored [k, m]; TRANS_B: B is stored [n, k]
 * GROUPED_GEMM    d = m, n, k, g         A r, B r, C a                 g products as GEMM, operands one after the other
 * ATTENTION       d = b, H, K, s, D, w   qkv r, out w, lse w            flash; w > 0: query i sees keys i-w+1 to i alone (model.sliding_window; causal); out [b s, H D]; qkv [b s, (H + 2 K) D], columns Q heads, K heads, V heads; lse fp32 [b, H, s]; scale 1/sqrt(D)
 * ATTENTION_GRAD  d = b, H, K, s, D, w   qkv r, out r, lse r, dout r, delta w, dqkv w     delta fp32 [b, H, s] is scratch: row sums of dout x out
 * ATTENTION_PART  d = b, H, K, s, D, k, j         qkv r, kv r, out a, lse a     flash, of these queries with k keys: j = 0: all that the group has (k = c s), this rank's own among them; j > 0: those of the rank j places before (k = s);
 *                                                                       ACCUMULATE: the result over the keys seen before and these. kv [b k, 2 K D], rank by rank (all sequences of the first, then of the next; j = 0), columns K heads, V heads. With CAUSAL a visitor's pairs are s s / 2:
 *                                                                       all queries see the first half of keys from an earlier place, the second half of queries sees all keys from a later one
 * ATTENTION_PART_GRAD   "                         qkv r, kv r, out r, lse r, dout r, delta a, dqkv a, dkv w     lse of all keys; dqkv: the Q columns alone; ACCUMULATE: delta is there already and dqkv is added to; dkv [b k, 2 K D]
 * KV_PACK         d = T, 2 K D, (H + 2K) D        qkv r, kv w           the K and V columns by themselves
 * KV_UNPACK       d = T, 2 K D, (H + 2K) D        kv r, qkv rw          puts them back (ACCUMULATE: adds)
 * ATTN_SCORES     d = b, H, K, s, D, k   qkv r, scores w, kv r?         naive: scores [b, H, s, s] = Q K^T / sqrt(D) (+ alibi bias; masked entries -inf). k > 0: of these queries with all k = c s keys of the group, scores [b, H, s, k];
 *                                                                       kv [b, k, 2 K D], each sequence's rank by rank, and so below, where kv and dkv stand in the place of qkv and dqkv for V's columns
 * ATTN_SOFTMAX    d = b, H, K, s, D      scores rw                      in place, rows
 * ATTN_VALUES     d = b, H, K, s, D      probs r, qkv r, out w
 * ATTN_VALUES_GRAD   "                   probs r, qkv r, dout r, dprobs w, dqkv w          writes the V columns of dqkv
 * ATTN_SOFTMAX_GRAD  "                   probs r, dprobs rw             dscores, in place (with the 1/sqrt(D) of the scores still to come)
 * ATTN_SCORES_GRAD  "                    dscores r, qkv r, dqkv rw, kv r?, dkv rw?     writes the Q and K columns of dqkv, with 1/sqrt(D); k > 0: dqkv w, Q's alone; K's of dkv
 * ROPE            d = b, H, K, s, D      qkv rw                         rotates Q and K by position, pairs (i, i + D/2), theta 10000; INVERSE rotates back (the gradient)
 * NORM            d = T, cols            x r, w r, b r?, y w, stats w   stats fp32 [T, 2]: mean (0 for RMS), 1/sigma; eps 1e-5
 * NORM_GRAD       d = T, cols            dy r, x r, w r, stats r, dx w (rw with DX_ACCUMULATE), dw a, db a?
 * ADD             d = T, cols            x r, y r, bias r?, sum w       sum = x + y + bias
 * ADD_NORM        d = T, cols            x r, y r, bias r?, w r, b r?, sum w, out w, stats w     sum as ADD, out = norm(sum)
 * BIAS            d = T, cols            x rw, bias r                   unfused bias add
 * BIAS_GRAD       d = T, cols            dy r, db a                     column sums
 * ACT             d = T, f               x r, y w                       gelu (tanh form), relu, squared_relu: x [T, f]; swiglu, geglu: x [T, 2 f], gate columns then up columns, y = act(gate) x up
 * ACT_GRAD        d = T, f               x r, dy r, dx w
 * GATE_ACT        d = T, f               x r, y w                       unfused swiglu/geglu, first half: y = act(gate)
 * GATE_MUL        d = T, f               x r, a r, y w                  second half: y = a x up
 * EMBED           d = T, cols, rows      tokens r, w r, y w             rows: of this rank's part of the table; VOCAB_PARALLEL: tokens of other parts give zeros, the part begins at row coord(tp) x rows
 * EMBED_GRAD      d = T, cols, rows      tokens r, dy r, dw rw          scatter-add
 * POSITION        d = T, cols, c s       w r?, type r?, x rw            x[i] += w[position of row i] + type[0]; SEQUENCE_PARALLEL: row i is token coord(tp) x T + i
 * POSITION_GRAD   d = T, cols, c s         dx r, dw rw?, dtype rw?        scatter-add
 * ROUTE           d = R, E, k, C         logits r, gates w, slots w, taken w    gates fp32 [R, k]; slots int32 [R, k]: expert x C + place, or -1 - expert where dropped; taken int32 [E C]: row x k + choice that has the slot, -1: empty
 * ROUTE_GRAD      d = R, E, k, C         logits r, gates r, slots r, dgates r, dlogits w    dgates fp32 [E C], by slot
 * DISPATCH        d = R, cols, S, k      x r, taken r, y w              S = E C rows: y[slot] = x[row], zeros where empty
 * COMBINE         d = R, cols, S, k      y r, slots r, gates r?, x a    x[row] = sum over its slots of gate x y[slot]; gates absent: 1 each, the gradient of DISPATCH
 * COMBINE_GRAD    d = R, cols, S, k      y r, dx r, taken r, gates r, dy w, dgates w     dy[slot] = gate x dx[row], dgates[slot] = dx[row] . y[slot]; zeros where empty
 * SWAP            d = a, b, cols         x r, y w                       y [b, a, cols] from x [a, b, cols]
 * LOSS            d = T, V               logits rw, targets r, loss rw  cross-entropy and its gradient in one pass: logits become loss_scale x (softmax - onehot); loss fp32 [1] += loss_scale x sum of -log p
 * LOSS_MAX        d = T, V               logits r, max w                vocabulary-parallel: row maxima fp32 [T]
 * LOSS_SUM        d = T, V               logits r, targets r, max r, sums w     fp32 [2, T]: sum of exp(logit - max), then the target's logit - max (0 when another rank holds the target)
 * LOSS_GRAD       d = T, V               logits rw, targets r, max r, sums r, loss rw      sums as reduced; every rank of the group adds the same loss
 * OPTIMIZER       d = elements           p rw, g r, m rw?, v rw?, master rw?    Adam bias correction by the step number, which the executor holds. STATES_8: m and v in 8 bits but for elements d[1] to d[2] (struct states_8)
 * FILL            d = elements           x w                            zeros
 * CAST            d = elements           x r, y w                       dtype to out_dtype
 * COLLECTIVE      d = elements           in r, out w                    over group `group`; elements counts the FULL buffer (all-gather: out; reduce-scatter: in; all-reduce: both);
 *                                                                       shards lie in the order of the members' coordinates; all-reduce may be in place (in == out);
 *                                                                       all-gather of updated weights: d[1] tensors, each copied back rank by rank (stack: copies_gathered), or 0;
 *                                                                       broadcast: member 0's in to every out; alltoall: part i of in to member i, out by sender; sendrecv: in to the next member, out from the one before
 *                 d = elements, peer, own    in r?, out w?              SEND (in) and RECV (out): one message between coordinates `own` and `peer` along DIM_PP; both ends have the same elements, micro and layer, which is
 *                                                                       the block whose input the message is, or is the gradient of. A send and its receive move together and end together
 * COPY            d = bytes              src r, dst w                   host to device; INVERSE: device to host; PAGEABLE: through a pinned buffer of the driver's, and the host thread waits for it
 * LOAD            d = bytes              data r, batch w                prepares a micro-batch (below)
 * PAUSE           d = 0 or 1             -                              the stack's own time for a micro-batch (0) or a step (1), for which the device waits
 * SYNC            -                      -                              the host thread waits for all that the step has issued (.item()), every train.sync_every-th step
 *
 * The data loader (data.load_time > 0). The input is copied from batches that LOAD ops prepare, one for each micro-batch. What is prepared ahead, at most A = min(workers x prefetch, micro-batches) batches
 * (prefetch is each worker's, as PyTorch's prefetch_factor), is there when the step begins: the step before has prepared it, and this one prepares as much for the next. So the load that follows the copy of
 * micro-batch k is that of micro-batch (k + A) mod micro-batches. Loads run on LANE_LOAD, one after the other in load_time / workers each (the pace of all workers together): the step is the longer of its
 * own work and micro-batches x load_time / workers. Without workers or prefetch nothing is prepared ahead: the host thread loads each micro-batch, in load_time, when the device has ended the one before.
 */
enum op_kind {
	OP_GEMM, OP_ATTENTION, OP_ATTENTION_GRAD, OP_ATTENTION_PART, OP_ATTENTION_PART_GRAD, OP_KV_PACK, OP_KV_UNPACK, OP_ATTN_SCORES, OP_ATTN_SOFTMAX, OP_ATTN_VALUES, OP_ATTN_VALUES_GRAD, OP_ATTN_SOFTMAX_GRAD, OP_ATTN_SCORES_GRAD,
	OP_ROPE, OP_NORM, OP_NORM_GRAD, OP_ADD, OP_ADD_NORM, OP_BIAS, OP_BIAS_GRAD, OP_ACT, OP_ACT_GRAD, OP_GATE_ACT, OP_GATE_MUL,
	OP_GROUPED_GEMM, OP_ROUTE, OP_ROUTE_GRAD, OP_DISPATCH, OP_COMBINE, OP_COMBINE_GRAD, OP_SWAP,
	OP_EMBED, OP_EMBED_GRAD, OP_POSITION, OP_POSITION_GRAD, OP_LOSS, OP_LOSS_MAX, OP_LOSS_SUM, OP_LOSS_GRAD,
	OP_OPTIMIZER, OP_FILL, OP_CAST, OP_COLLECTIVE, OP_COPY, OP_LOAD, OP_PAUSE, OP_SYNC,
	OP_KIND_COUNT
};

enum op_flag {
	OP_ACCUMULATE = 1 << 0,
	OP_TRANS_A = 1 << 1,
	OP_TRANS_B = 1 << 2,
	OP_DX_ACCUMULATE = 1 << 3,
	OP_CAUSAL = 1 << 4,
	OP_ALIBI = 1 << 5,
	OP_INVERSE = 1 << 6,
	OP_RMS = 1 << 7,
	OP_VOCAB_PARALLEL = 1 << 8,
	OP_SEQUENCE_PARALLEL = 1 << 9,
	OP_RECOMPUTED = 1 << 10, /* a forward op done again in backward: counts in HFU, not in MFU */
	OP_ENDS = 1 << 13,       /* a collective along DIM_PP of its first and last coordinate alone */
	OP_MASTER = 1 << 12,     /* the optimizer keeps an fp32 copy of narrower weights */
	OP_FUSED = 1 << 11,      /* the optimizer as one pass; unset: as a sequence of elementwise passes */
	OP_STATES_8 = 1 << 14,   /* the optimizer's moments in 8 bits (struct states_8) */
	OP_PAGEABLE = 1 << 15,   /* a copy from memory that is not pinned */
};

enum collective {
	COLL_ALL_REDUCE, COLL_ALL_GATHER, COLL_REDUCE_SCATTER, COLL_BROADCAST, COLL_ALLTOALL, COLL_SENDRECV,
	COLL_SEND, COLL_RECV, /* between pipeline stages */
	COLL_COUNT,
	COLL_OF_GROUPS = COLL_SEND /* so many that a whole group does */
};
enum reduce_op { RED_SUM, RED_MAX, RED_COUNT };

#define OP_MAX_ARGS 8
#define OP_MAX_DIMS 7

/* Bytes [offset_B + coord x stride_B, ...) of a buffer, coord along the mesh's dimension `along`. buffer -1: absent. */
struct view {
	int32_t buffer;
	enum mesh_dim along;
	uint64_t offset_B;
	uint64_t stride_B; /* ZeRO: a rank's own part of a shared layout */
};

struct op {
	uint8_t kind, lane, phase, dtype, out_dtype; /* enum op_kind, lane, phase, dtype; out_dtype: of what it writes (gradients, casts) */
	uint8_t coll, reduce, group;                 /* COLLECTIVE: enum collective, reduce_op, mesh_dim */
	uint8_t mlp;                                 /* ACT family: enum mlp; OPTIMIZER: enum optimizer */
	uint16_t flags;
	int16_t micro;  /* micro-step, -1 outside */
	int32_t layer;  /* -1 outside the blocks */
	int32_t bucket; /* index in role.buckets, -1 */
	const char *what; /* static: "qkv", "fc1", "grad bucket", ... */
	int64_t d[OP_MAX_DIMS];
	uint32_t arg0, dep0; /* first argument in role.args (op_kind_info.n_args of them), first dependency in role.deps */
	uint32_t n_dep;
};

enum access { ACC_NONE = 0, ACC_R = 1, ACC_W = 2, ACC_RW = 3, ACC_A = 4 /* in the table only: W, or RW with OP_ACCUMULATE */, ACC_DX = 5 /* W, or RW with OP_DX_ACCUMULATE */ };

struct op_kind_info {
	const char *name;
	enum op_class class_;
	uint8_t n_args, n_dims;
	const char *arg_name[OP_MAX_ARGS];
	uint8_t access[OP_MAX_ARGS]; /* enum access; op_access resolves ACC_A and ACC_DX */
};
const struct op_kind_info *op_kind_info(enum op_kind k);

/* ---- buffers ---- */

enum component { COMP_WEIGHTS, COMP_GRADIENTS, COMP_OPTIMIZER, COMP_ACTIVATIONS, COMP_BUFFERS /* buckets, unsharded units, scratch, input */, COMP_HOST /* host memory, not on the device */, COMP_KIND_COUNT };

struct buffer {
	enum component component;
	enum dtype dtype;
	uint64_t bytes;
	bool persistent; /* keeps its contents from step to step; else dead before its first write of the step */
	int32_t layer;   /* -1 */
	const char *what; /* static */
	bool inside;      /* the stack has it inside another buffer: it has a place of its own where it is executed, and does not count in the peak */
};

/* A bucket: parameters that are stored, reduced and sharded together. ddp, zero1, zero2: PyTorch DDP's rule (below); fsdp and hsdp, which `fsdp` below names both: a unit (a block; the root unit has the rest).
 * A table that the first and the last pipeline stage share has a bucket to itself on both. Parameters lie one after the other in `elements`, padded to a multiple of the shard count; those that tensor parallelism replicates stand last, so that under
 * sequence parallelism one all-reduce over the tensor group completes all their gradients. Where moments have 8 bits, tensors too small for them stand together in the middle; a bucket that is cut is one flat tensor. */
struct bucket {
	uint64_t elements, padded; /* local to this tensor rank */
	uint64_t wide_from, wide_to; /* train.optimizer_bits 8: elements of the part that the optimizer updates whose moments stay in 32 bits */
	enum mesh_dim along;       /* over which it is reduced and cut: mesh.params; mesh.experts where it holds experts, in buckets of their own where the two differ */
	int64_t shards;            /* ranks among which it is cut: 1, or the size of `along` */
	struct view weights;       /* the whole bucket, persistent; absent (-1) when shards > 1 under fsdp: gathers then write buffers of their own */
	struct view shard;         /* what the optimizer updates: fsdp: the rank's persistent part; zero1, zero2: its part of `weights`; else all of `weights` */
	struct view gradients;     /* the whole bucket, persistent; absent when shards > 1 under fsdp and zero2, whose buckets live from their first gradient to their reduction */
	struct view grad_shard;    /* what the optimizer reads, persistent; shards == 1: `gradients` */
	struct view host, host_grad; /* train.offload: of optimizer: what the host updates, and reads, in its memory; `shard` is then copied from `host` (optimizer+params: is it), and `grad_shard` to `host_grad` (where `gradients` is absent: is it). Else absent */
};

struct role_param {
	struct param param;
	int32_t bucket;
	uint64_t offset; /* elements from the bucket's beginning */
	uint64_t elements; /* of this tensor rank's part */
};

/* Memory that the framework of the stack keeps beside what the ops need (struct stack_memory): counted in the peak, touched by no op, given no place by the executor. */
struct held {
	enum component component;
	uint64_t bytes;
	uint32_t from, to; /* alive from the beginning of the compute op that is, or follows, op `from` to the end of the one that is, or precedes, op `to`; HELD_ALWAYS: throughout */
	const char *what;  /* static */
};
#define HELD_ALWAYS UINT32_MAX

struct role {
	int64_t ranks;          /* how many ranks do this */
	int64_t representative; /* one of them */
	VEC(struct op) ops;
	VEC(uint32_t) deps;
	VEC(struct view) args;
	VEC(struct buffer) buffers;
	VEC(struct held) held;
	VEC(struct bucket) buckets;
	VEC(struct role_param) params; /* model.parameters() order; of a stage its own, a tied table that the last stage shares with the first stands last there */
	int32_t input;                 /* -1 where no op needs it; else host buffer (COMP_HOST): for each micro-step input_stride_B bytes: T int32 tokens, then T int32 targets; COPY ops bring them to the device */
	uint64_t input_stride_B;
	int32_t loss;                  /* fp32 [1]; -1 where the role has no head */
};

struct program {
	struct config config;
	struct mesh mesh;
	double loss_scale; /* 1 / (global_batch x seq_len): summed over micro-steps and ranks, the gradient of the mean loss */
	size_t n_roles;
	struct role *roles;
};

/* Builds the program of a resolved config. Owns everything in it. */
enum status program_build(const struct config *c, struct program **out, struct error *e);
void program_destroy(struct program *p); /* NULL-safe */

/* The invariants: dependencies point back and across lanes; of two accesses to a buffer of which one writes, one happens before the other; a non-persistent
 * buffer is written before it is read; views lie inside their buffers; collectives of a group come in the same order and shape for every role; every parameter's gradient
 * is reduced exactly as its strategy says, and its optimizer runs once; every parameter of the model belongs to one pipeline stage, a tied table to the first and the last, which sum its gradient; the k-th send of a stage
 * is the k-th receive of its peer. ST_RUN with the first violation. */
enum status program_check(const struct program *p, struct error *e);

/* One line an op. */
void program_dump(const struct program *p, FILE *out);

/* "L3 fc1 backward gemm mb0 [4096 768 3072]"; returns buf. */
#define OP_NAME_MAX 128
char *op_name(const struct op *op, char buf[OP_NAME_MAX]);
const char *lane_name(enum lane l);
const char *phase_name(enum phase p);
const char *op_class_name(enum op_class c);
bool op_on_host(const struct op *op);     /* work of the host's threads: LOAD, PAUSE, SYNC */
int64_t program_loads_ahead(const struct config *c); /* A of the data loader's rule; 0 where nothing is prepared ahead */
const char *collective_name(enum collective c);
bool collective_reduces(enum collective c); /* its result is a sum or a maximum */
bool collective_cuts(enum collective c);    /* it deals with one part a member: the elements divide by the group's size */
const char *component_name(enum component c);
enum op_class op_class_of(const struct op *op);
bool op_class_is_comm(enum op_class c);
bool lane_is_comm(enum lane l); /* its ops are collectives, and no other lane's are */
const struct view *op_arg(const struct role *r, const struct op *op, int i);
enum access op_access(const struct op *op, int arg);
/* True of SEND and RECV. */
bool op_is_message(const struct op *op);
/* Ranks that meet in a collective: 2 for messages and with OP_ENDS. */
int64_t op_group_size(const struct mesh *m, const struct op *op);
/* Bytes that argument i covers from its view's beginning. */
uint64_t op_arg_bytes(const struct op *op, int arg, int64_t group_size);
enum dtype op_arg_dtype(const struct op *op, int arg); /* in which it is stored, where nothing else is said (weights may be kept in fp32); bytes: fp32 */

/* Work of an op: pure functions of it. FLOP counts multiply and add as two; causal attention counts the lower triangle only in op_flop (what is executed).
 * Bytes are those that must cross the memory interface once. Wire bytes: what one rank sends: 2(n-1)/n S for all-reduce by a ring, (n-1)/n S where parts are cut (Thakur et al. 2005), S for broadcast along
 * a chain, for sendrecv and for a message, at either end; over the time this is the busbw of nccl-tests (doc/PERFORMANCE.md). 0 in a group of one. */
double op_flop(const struct op *op);
/* One moment in 8 bits, of elements [0, elements) of which [from, to) stay in 32 (Dettmers et al. 2022, 8-bit Optimizers via Block-wise Quantization, ICLR, arXiv:2110.02861). In its memory: the scales, fp32, of the blocks of
 * OPTIMIZER_BLOCK of [0, from), then of those of [to, elements); fp32 values of [from, to); a byte for each other element. Which value a byte stands for: exec/host/dynamic_map.h. */
struct states_8 {
	int64_t blocks[2];      /* before the range, and behind it */
	uint64_t wide_B, codes_B; /* where the range's values begin, and the bytes */
	uint64_t bytes;         /* of all, in whole words of 4 */
};
struct states_8 states_8_of(int64_t elements, int64_t from, int64_t to);
#define OPTIMIZER_BLOCK 256 /* as bitsandbytes has them (bitsandbytes/optim/optimizer.py) */
#define OPTIMIZER_LEAST_8 4096 /* a tensor of fewer elements keeps 32 bits (there, min_8bit_size) */
bool op_is_product(const struct op *op); /* GEMM, GROUPED_GEMM */
double op_pairs(const struct op *op); /* (query, key) pairs that flash attention needs, of one head and sequence */
int64_t op_window(const struct op *op); /* w of flash attention; 0: none */
double op_masked_ends(const struct op *op); /* how often the mask cuts a query's keys off: at its own place and, beyond w queries, at the far end of the window. A kernel of tiles does half a tile more at each */
bool op_is_flash(const struct op *op);
bool op_sees_itself(const struct op *op); /* flash: its queries' own keys are among the keys, so that a causal mask has its diagonal here */
double op_read_B(const struct op *op);
double op_write_B(const struct op *op);
double op_wire_B(const struct op *op, int64_t group_size);
double collective_wire_factor(enum collective c, int64_t group_size); /* wire bytes over S */

#endif
