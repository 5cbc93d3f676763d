/* The step program says what one training step does, once for each role. It holds shapes and buffers, never costs.
 *
 * A role is a class of ranks that do the same: a pipeline stage, whose number is its ranks' coordinate along DIM_PP.
 * Its ops stand in issue order, the order in which the host thread issues them to all lanes. An op starts when
 *   1. it has been issued,
 *   2. the op before it on its lane has ended,
 *   3. the ops that it names as dependencies have ended, and
 *   4. every member of its group has arrived, if it is a collective.
 * Dependencies name earlier ops of other lanes only, because a lane is in order by itself. So issue order is a
 * topological order.
 *
 * All matrices are row-major and contiguous. A rank holds T = micro_batch x seq_len tokens of a micro-batch. Sequence
 * parallelism cuts the token rows over the t ranks of the tensor group: rank i has rows [i T/t, (i+1) T/t).
 *
 * Context parallelism cuts each sequence over c ranks: T = micro_batch x seq_len / c, and a rank has s = seq_len / c
 * tokens of each. Without a causal mask rank i has tokens [i s, (i+1) s). With one, the sequence is cut into 2c chunks,
 * and rank i has chunks i and 2c-1-i, in this order, so that all ranks have the same work (Llama 3, arXiv:2407.21783,
 * section 3.3.2; Megatron-LM). Positions (ROPE, POSITION, ALiBi) count from the beginning of the whole sequence. Keys
 * and values reach the queries in one of two ways:
 *   ring        They travel around the group in c - 1 exchanges, while attention works on those that arrived before
 *               (Liu et al. 2023, arXiv:2310.01889). In the backward pass they travel again, and their gradients go
 *               with them, in c - 1 exchanges, to the rank that owns them.
 *   all_gather  They are gathered before attention, and again before its backward pass. Their gradients are
 *               reduce-scattered. Naive attention, which stores the scores of all keys, has this way only.
 *
 * Experts (model.experts E > 0). A rank routes R rows: its tokens, or its part of them under sequence parallelism. Each
 * row goes to the k experts with the largest router logits; of equal logits the lower expert number wins. Its gates
 * weight the results: the softmax over these k logits (Mixtral, arXiv:2401.04088, section 2.1), or over all E logits
 * when k = 1 (Switch, arXiv:2101.03961, equation 2).
 *   capacity    A rank has C = min(R, ceil(capacity_factor x R k / E)) slots at each expert. First choices take slots
 *               before second ones, each in row order (GShard, arXiv:2006.16668, algorithm 1). A choice without a
 *               slot is dropped: it adds nothing, and the row's other gates stay as they are.
 *   factor 0    means training without dropping, modelled as balanced: the shape of factor 1, each expert with its
 *               share. Executed routing is not balanced, so an execution drops with 0 what it drops with 1. With
 *               factor E / k nothing is ever dropped.
 *   exchange    All E C slots are sent, empty ones as zeros, so that every rank's program has the same shape. The e
 *               ranks of the expert group (mesh.h) have E / e experts each, in order. There is no auxiliary loss.
 *
 * The data loader (data.load_time > 0). LOAD ops prepare batches, one for each micro-batch, and COPY ops bring them to
 * the device. At most A = min(workers x prefetch, micro-batches) batches are prepared ahead; prefetch counts per
 * worker, like PyTorch's prefetch_factor. They are ready when the step begins: the step before has prepared them, and
 * this step prepares as many for the next. So the load after the copy of micro-batch k is for micro-batch (k + A) mod
 * micro-batches. Loads run one after the other on LANE_LOAD in load_time / workers each, the rate of all workers
 * together. The step takes the longer of its own work and micro-batches x load_time / workers. With A = 0 the host
 * thread loads each micro-batch itself, in load_time, after the device has ended the one before. */
#ifndef STEPSIM_STEP_PROGRAM_H
#define STEPSIM_STEP_PROGRAM_H

#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "step/config/config.h"
#include "step/mesh.h"
#include "step/op.h"

/* ---- buffers ---- */

enum component {
	COMP_WEIGHTS,
	COMP_GRADIENTS,
	COMP_OPTIMIZER,
	COMP_ACTIVATIONS,
	COMP_BUFFERS /* buckets, gathered units, scratch, input */,
	COMP_HOST /* host memory, not on the device */,
	COMP_KIND_COUNT
};

struct buffer {
	enum component component;
	enum dtype dtype;
	uint64_t bytes;
	bool persistent; /* keeps its contents from step to step; else it holds nothing before its first write */
	bool inside;     /* the stack keeps it inside another buffer, or a part of it at a time, which is held, so it
	                    does not count in the peak; an executor allocates it on its own */
	bool freed;      /* persistent, but the stack frees it behind the step: each step allocates it at its first
	                    access (struct stack, frees_gradients); an executor keeps it */
	bool updated;    /* freed, and that behind its last access (train.optimizer_in_backward) */
	bool together;   /* freed, but allocated at the first access to any of those (struct stack, scans_blocks) */
};

/* A view covers a buffer from byte offset_B + coord x stride_B on, where coord is the rank's coordinate along the mesh
 * dimension `along`. How far it reaches follows from the op (op_arg_bytes). */
struct view {
	int32_t buffer; /* -1: absent */
	enum mesh_dim along;
	uint64_t offset_B;
	uint64_t stride_B; /* ZeRO: from one rank's part of a shared layout to the next; else 0 */
};

/* A bucket holds parameters that are stored, reduced and sharded together. ddp, zero1 and zero2 fill buckets by
 * size, as PyTorch DDP does (step/builder/params.c). fsdp and hsdp, both named `fsdp` below, have one bucket a unit:
 * a block, or the root unit with all else. Experts that other ranks share than the rest of their block have one of
 * their own. A table that the first and the last pipeline stage share has a bucket to itself on both.
 *
 * Parameters lie one after the other in `elements`, padded to a multiple of `shards`. Those that tensor parallelism
 * replicates stand last, so that one all-reduce over the tensor group completes all their gradients under sequence
 * parallelism. With moments of 8 bits, tensors too small for them stand together in the middle; a bucket that is cut
 * counts as one flat tensor. */
struct bucket {
	uint64_t elements, padded;   /* of this tensor rank */
	int64_t products;            /* matrices that products read */
	uint64_t matrices;           /* muon: elements of the matrices that it steps; they stand first */
	uint64_t narrow;             /* elements of matrices that are stored or gathered in fp8; they stand first */
	enum dtype narrow_dtype;     /* train.dtype, fp8 or mxfp8, where there are any */
	uint64_t wide_from, wide_to; /* train.optimizer_bits 8: the elements, of those that the optimizer updates,
	                                whose moments stay in 32 bits */
	enum mesh_dim along;         /* the dimension over which it is reduced and cut: mesh.params, or mesh.experts
	                                for experts, which have buckets of their own where the two differ */
	enum dtype stored;           /* train.param_dtype, or train.lora_base */
	bool trained;                /* its parameters have gradients and states; else it has weights alone */
	int64_t shards;              /* the ranks among which it is cut: 1, or the size of `along` */
	struct view weights;         /* the whole bucket, persistent; absent under fsdp when shards > 1, where each
	                                gather writes a buffer of its own */
	struct view shard;           /* what the optimizer updates: the rank's persistent part under fsdp, its part of
	                                `weights` under zero1 and zero2, else all of `weights` */
	struct view gradients;       /* the whole bucket, persistent; absent under fsdp and zero2 when shards > 1,
	                                where a buffer lives from the first gradient to the reduction */
	struct view grad_shard;      /* what the optimizer reads, persistent; `gradients` when shards == 1 */
	struct view host, host_grad; /* train.offload: of optimizer: what the host updates and reads, in its memory.
	                                `shard` is copied from `host`, and `grad_shard` to `host_grad`. `host` is
	                                `shard` with optimizer+params, `host_grad` is `grad_shard` where `gradients` is
	                                absent. Without such offloading both are absent */
};

/* Returns the elements of one rank's part of a bucket. */
static inline int64_t bucket_part(const struct bucket *k) { return (int64_t)k->padded / k->shards; }

/* Returns the bytes before an element of a bucket whose matrices are in fp8, everything else in 16 bits. */
static inline int64_t bucket_narrow_B(const struct bucket *k, uint64_t element)
{
	const double narrow = (double)(element < k->narrow ? element : k->narrow);
	return (int64_t)(narrow * dtype_bytes(k->narrow_dtype) + 2 * ((double)element - narrow) + 0.5);
}

/* Returns the bytes of all of it, in whole parts for the ranks that cut it. */
static inline int64_t bucket_wire_B(const struct bucket *k)
{
	const int64_t bytes = bucket_narrow_B(k, k->padded);
	return (bytes + k->shards - 1) / k->shards * k->shards;
}

struct role_param {
	struct param param;
	int32_t bucket;
	uint64_t offset;   /* elements before it in the bucket */
	uint64_t elements; /* of this tensor rank's part */
};

/* Memory that the stack's framework keeps beyond what the ops need (struct stack_memory). It counts in the peak, but no
 * op touches it and the executor does not allocate it. It is alive from the beginning of the compute op that is, or
 * follows, op `from` to the end of the compute op that is, or precedes, op `to`. */
struct held {
	enum component component;
	uint64_t bytes;
	uint32_t from, to; /* indices of ops; to HELD_ALWAYS: throughout */
	const char *what;  /* static string */
};
#define HELD_ALWAYS UINT32_MAX

/* When an op begins and has ended, counted in ops of LANE_COMPUTE, as the vector clocks say (step/clocks.h). */
struct op_when {
	uint32_t begins; /* so many have certainly ended when it begins */
	uint32_t over;   /* it has certainly ended once so many have; OVER_NEVER: none of them waits for it */
};
#define OVER_NEVER UINT32_MAX

struct role {
	int64_t ranks;          /* the number of ranks that have this role */
	int64_t representative; /* one of these ranks */
	VEC(struct op) ops;
	VEC(struct op_when) when; /* by op */
	VEC(uint32_t) deps;
	VEC(struct view) args;
	VEC(struct buffer) buffers;
	VEC(struct held) held;
	VEC(struct bucket) buckets;
	/* The stage's own parameters, in the order of model.parameters(). A tied table that the last stage shares with
	 * the first stands last there. */
	VEC(struct role_param) params;
	/* The host buffer (COMP_HOST) with the step's input, -1 where no op needs it. Each micro-batch has
	 * input_stride_B bytes: the parts of step/inputs.h. */
	int32_t input;
	uint64_t input_stride_B;
	int32_t loss; /* buffer, fp32 [1]; -1 where the role has no head */
};

struct program {
	struct config config;
	struct mesh mesh;
	double loss_scale; /* 1 / (global_batch x model_targets): with it, gradients summed over micro-batches and ranks
	                      are those of the mean loss */
	size_t n_roles;
	struct role *roles;
};

/* Builds the program of a resolved config, which it copies. The caller destroys *out; it is NULL after a failure. Fails
 * with ST_RUN when memory is short. */
enum status program_build(const struct config *c, struct program **out, struct error *e);
/* The same of the first and the last stage alone: the roles between are empty. */
enum status program_build_ends(const struct config *c, struct program **out, struct error *e);
/* Builds the stages that program_build_ends has left out. */
enum status program_build_between(struct program *p, struct error *e);
/* The same without ops: parameters and buckets alone, with the buffers that keep them from step to step. The whole
 * program's peak is no smaller than these. */
enum status program_build_stored(const struct config *c, struct program **out, struct error *e);
void program_destroy(struct program *p); /* NULL-safe */

/* Checks the invariants of a program and fails with ST_RUN at the first violation:
 *
 * - Dependencies name earlier ops of other lanes.
 * - Of two accesses to a buffer, one of them a write, one happens before the other.
 * - A buffer that is not persistent is written before it is read. Views lie inside their buffers.
 * - Collectives of a group come in the same order and shape for every role.
 * - The k-th send of a stage is the k-th receive of its peer.
 * - Each parameter's gradient is reduced exactly as its strategy says, and its optimizer runs once.
 * - Each parameter of the model belongs to one pipeline stage. A tied table belongs to the first and the last, which
 * sum its gradient. */
enum status program_check(const struct program *p, struct error *e);

/* Prints one line for each op. */
void program_dump(const struct program *p, FILE *out);

/* Returns argument i of an op of the role. The role owns it. */
const struct view *op_arg(const struct role *r, const struct op *op, int i);

/* Returns A of the data loader's rule above: how many batches are prepared ahead, 0 for none. */
int64_t program_loads_ahead(const struct config *c);

#endif
