/* An op: its lane, its kind, its dimensions, and what follows from these alone. step/ops.def tells each kind once. */
#ifndef STEPSIM_STEP_OP_H
#define STEPSIM_STEP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "step/config/config.h"
#include "step/mesh.h"

/* ---- lanes, phases, classes ---- */

enum lane {
	LANE_COMPUTE,
	LANE_COMM,         /* data-parallel collectives: gradient reduction, parameter gathering */
	LANE_REPLICA_COMM, /* hsdp's sums over replicas: PyTorch's FSDP2 has a stream for them, beside the gathers and
	                      scatters (torch/distributed/fsdp/_fully_shard, FSDPCommContext.all_reduce_stream) */
	LANE_MODEL_COMM,   /* collectives inside a layer (tensor, sequence, context, expert): never queued behind
	                      gradients */
	LANE_COPY,         /* host-device copies */
	LANE_HOST, /* the host thread: its ops hold up what it has not yet issued. OPTIMIZER here: by the host's cores,
	              in its memory */
	LANE_LOAD, /* the data loader's workers, all together */
	/* messages between pipeline stages: each direction has a lane of its own at either end, so that their order
	   cannot deadlock. The stage after the last is the first, and the other way round (interleaving) */
	LANE_SEND_NEXT,
	LANE_RECV_PREV, /* activations */
	LANE_SEND_PREV,
	LANE_RECV_NEXT, /* their gradients */
	LANE_COUNT
};
enum phase { PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER, PHASE_COUNT };

enum op_class {
	CLASS_GEMM,
	CLASS_CONVOLUTION,
	CLASS_ATTENTION,
	CLASS_SCAN /* state-space */,
	CLASS_NORM,
	CLASS_ELEMENTWISE,
	CLASS_EMBEDDING,
	CLASS_ROUTING /* tokens to experts and back */,
	CLASS_LOSS,
	CLASS_MEMORY /* fills and casts */,
	CLASS_OPTIMIZER,
	CLASS_ALL_REDUCE,
	CLASS_ALL_GATHER,
	CLASS_REDUCE_SCATTER,
	CLASS_BROADCAST,
	CLASS_ALLTOALL,
	CLASS_SENDRECV,
	CLASS_COPY,
	CLASS_HOST,
	CLASS_COUNT
};

const char *lane_name(enum lane l);
bool lane_is_comm(enum lane l); /* its ops are collectives, and no other lane's are */
const char *phase_name(enum phase p);
const char *op_class_name(enum op_class c);
bool op_class_is_comm(enum op_class c);

/* ---- kinds ---- */

/* clang-format off */
enum op_kind {
#define OP(kind, ...) OP_##kind,
#include "step/ops.def"
	OP_KIND_COUNT
};

/* enum args_GEMM { ARG_GEMM_A, ..., N_ARGS_GEMM }: places among a kind's arguments, and how many they are. */
#define OP(kind, name, class_, family, shown, flop, work, suffix, like, args) enum args_##kind { args N_ARGS_##kind };
#define ARG_PART(kind, name, ...) ARG_##kind##_##name,
#include "step/ops.def"
/* clang-format on */

/* A case of a switch over the kinds: `d` is the dimensions of `op`, as the formulas of step/ops.def have it. */
#define OP_CASE(kind, family, ...) \
	case OP_##kind: { \
		const struct op_##family *d = &op->family; \
		(void)d; \
		__VA_ARGS__; \
		break; \
	}

/* A backend's table has a row for each kind. Its rows are a list ROWS(ROW); `enum { ROWS(OP_HAS_ROW) };`, followed by
 * step/ops.def with `#define OP(kind, ...) OP_NEEDS_ROW(kind)`, fails to compile where a kind has none. */
#define OP_HAS_ROW(kind, ...) HAS_ROW_##kind,
#define OP_NEEDS_ROW(kind) static_assert(HAS_ROW_##kind >= 0, "a row for " #kind);

#define OP_MAX_ARGS 10
#define OP_MAX_DIMS 8

enum access {
	ACC_NONE = 0,
	ACC_R = 1,
	ACC_W = 2,
	ACC_RW = 3,
	ACC_A,   /* in the table only, as the two below: W, or RW with OP_ACCUMULATE */
	ACC_DX,  /* W, or RW with OP_DX_ACCUMULATE */
	ACC_OWN, /* RW, or W where attn.keys > 0 */
};

enum arg_type { TYPE_OPERAND, TYPE_OUT, TYPE_FP32, TYPE_INT32, TYPE_BYTE };

struct op_kind_info {
	const char *name;
	enum op_class class_; /* CLASS_COUNT: its collective's */
	uint8_t n_args;
	uint8_t n_dims; /* that its name shows */
	struct {
		const char *name;
		enum access access; /* op_access resolves ACC_A, ACC_DX and ACC_OWN */
		enum arg_type type;
	} arg[OP_MAX_ARGS];
};
const struct op_kind_info *op_kind_info(enum op_kind k);

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
	OP_FUSED = 1 << 11,      /* the optimizer as one pass; unset: as a sequence of elementwise passes */
	OP_MASTER = 1 << 12,     /* the optimizer keeps an fp32 copy of narrower weights */
	OP_ENDS = 1 << 13,       /* a collective along DIM_PP of its first and last coordinate alone */
	OP_STATES_8 = 1 << 14,   /* the optimizer's moments in 8 bits (struct states_8) */
	OP_PAGEABLE = 1 << 15,   /* a copy from memory that is not pinned */
	/* a collective between tensor ranks: products do not hide it, whatever parallel.tensor_overlap */
	OP_WHOLE = 1 << 16,
	/* an adapter's: in fp32 while its arguments, cast to it, are narrower (train.lora_dtype). Predicted alone */
	OP_WIDE = 1 << 17,
	/* done inside the kernel of the product beside it (train.fused_experts). Predicted alone */
	OP_IN_PRODUCT = 1 << 18,
	/* flash attention is given a mask, and computes what it hides (train.attention_mask) */
	OP_MASK = 1 << 19,
};

enum collective {
	COLL_ALL_REDUCE,
	COLL_ALL_GATHER,
	COLL_REDUCE_SCATTER,
	COLL_BROADCAST,
	COLL_ALLTOALL,
	COLL_SENDRECV,
	COLL_SEND,
	COLL_RECV, /* between pipeline stages */
	COLL_COUNT,
	COLL_OF_GROUPS = COLL_SEND /* so many that a whole group does */
};
enum reduce_op { RED_SUM, RED_MAX, RED_COUNT };

/* Thread blocks of NCCL's kernel of a SEND or a RECV, at most, as the executor sets them. A receive that is posted
 * early holds them while it waits for the sender: up to 32 by default (NCCL's documentation, ncclConfig_t.maxCTAs). */
#define MESSAGE_BLOCKS 4

const char *collective_name(enum collective c);
bool collective_reduces(enum collective c); /* its result is a sum or a maximum */
bool collective_cuts(enum collective c);    /* it sends one part a member: the elements divide by the group's size */

/* ---- dimensions, one struct a shape family ---- */

/* GEMM, GROUPED_GEMM: C [m, n] from operands of depth k. */
struct op_gemm {
	int64_t m, n, k;
	int64_t groups; /* GROUPED_GEMM: products, one behind the other; else 0 */
	int64_t units;  /* GEMM of an adapter: FSDP units of their own whose factors it takes; 0: none */
};

/* Attention and ROPE. */
struct op_attn {
	int64_t batch, heads, kv_heads, seq, head_dim;
	union {
		int64_t window;  /* ATTENTION, ATTENTION_GRAD: keys that a query sees, itself the last; 0: all; below
		                    0: those of its own chunk of -window positions */
		int64_t full;    /* QK_NORM*: 1: one norm for all heads of a row */
		int64_t rotated; /* ROPE: a head's last columns, which alone rotate; 0: all */
		int64_t keys;    /* the others: keys a sequence where they are not this rank's own; 0: they are */
	};
	union {
		int64_t value_dim; /* ATTENTION, ATTENTION_GRAD: columns of a head's values; 0: head_dim */
		int64_t back;      /* ATTENTION_PART*: keys of the rank so many places before; 0: of the whole group;
		                      these and ATTN_*: OTHER_SEQUENCE */
	};
	int64_t seen;    /* ATTENTION_PART* with back 0: as window, of the whole group's keys */
	int64_t softcap; /* ATTENTION*, flash: c of c tanh(score / c), before the mask and ALiBi; 0: none */
};

#define OTHER_SEQUENCE (-1) /* op_attn.back: keys and values of a sequence that the queries are not of */

/* RELATIVE_BIAS*. */
struct op_relative {
	int64_t heads, seq, buckets;
};

/* CONV*, MAX_POOL*, MEAN_POOL*: images of side x side pixels. */
struct op_conv {
	int64_t batch, side, in, out, kernel, stride;
	int64_t flat; /* CONV*: 1: an image is a row of `side` pixels, and a kernel one of `kernel` taps; else 0 */
};

/* The columns of a group in `in` (step/ops.def): z, those of the convolution, dt; b behind these, of a gated delta
 * rule; those of the convolution and b alone, where gates and decays of channels have buffers of their own. */
enum ssm_layout { SSM_LAYOUT_MAMBA, SSM_LAYOUT_DELTA, SSM_LAYOUT_KDA };
/* Columns of a head behind the convolution's: dt, dt and b, or b. */
#define SSM_NUMBERS(layout) ((layout) == SSM_LAYOUT_DELTA ? 2 : 1)

/* SSM_*, DELTA_*, KDA_*. */
struct op_ssm {
	int64_t batch, seq, heads, head_dim, groups, state;
	union {
		int64_t conv;  /* SSM_CONV*: taps */
		int64_t chunk; /* *_SCAN*: rows of a chunk, at most seq */
	};
	int64_t layout; /* enum ssm_layout */
};

/* SHORT_CONV*. */
struct op_short_conv {
	int64_t batch, seq, channels, taps;
};

/* SIGMOID_GATE*: each gate is that of cols / gates neighbouring columns. */
struct op_gate {
	int64_t rows, cols, gates;
};

/* KV_PACK, KV_UNPACK. */
struct op_pack {
	int64_t rows;
	int64_t kv_cols;  /* 2 kv_heads head_dim */
	int64_t qkv_cols; /* (heads + 2 kv_heads) head_dim */
};

/* LATENT_KEYS, LATENT_KEYS_GRAD. */
struct op_latent {
	int64_t batch, heads, seq;
	int64_t head_dim, rope_dim; /* of a head's keys: all columns; the last of them, which all heads share */
	int64_t value_dim;
	int64_t width; /* columns of a row of the latent, of which the last rope_dim are read */
	int64_t still; /* 1: these do not rotate; else 0 */
};

/* Norms, elementwise ops, losses: a matrix of rows (tokens) and columns. */
struct op_matrix {
	int64_t rows, cols;
	int64_t width; /* NORM, NORM_GRAD: columns of a row of x and dx, of which the first `cols` are normed; 0: cols
	                */
};

/* MODULATE*, GATED_ADD*: sequences of rows, and what of a row of `width` columns for each shifts, scales or gates them.
 */
struct op_modulate {
	int64_t batch, seq, cols, width, at;
};

/* SOFTCAP, SOFTCAP_GRAD. */
struct op_cap {
	int64_t rows, cols;
	int64_t cap;
};

/* LOSS: its matrix, and how many times more than loss_scale says its rows count. */
struct op_loss {
	int64_t rows, cols, more;
};

/* PICK*, PREPEND*: sequences of `seq` rows, of which the `first` ones stand apart. */
struct op_sequence {
	int64_t batch, seq, first, cols;
};

/* EMBED*, POSITION*. */
struct op_embed {
	int64_t rows, cols;
	int64_t table_rows; /* EMBED*: of this rank's part of the table; POSITION*: positions of the whole sequence */
};

/* ROUTE, ROUTE_GRAD. */
struct op_route {
	int64_t rows, experts;
	int64_t choices;  /* experts a token */
	int64_t capacity; /* places of these rows at each expert */
};

/* DISPATCH, COMBINE, COMBINE_GRAD. */
struct op_dispatch {
	int64_t rows, cols;
	int64_t slots; /* experts x capacity */
	int64_t choices;
};

/* SWAP: from [outer, inner, cols] to [inner, outer, cols]. */
struct op_swap {
	int64_t outer, inner, cols;
};

/* OPTIMIZER. */
struct op_update {
	int64_t elements;
	int64_t wide_from, wide_to; /* OP_STATES_8: elements whose moments stay in 32 bits */
	int64_t halved;             /* 1: the moments have 16 bits; else 0 */
	int64_t tensors;            /* that kernels of their own update (IMPL_FOR_LOOP); 0: none has */
};

/* LAMB_DIRECTION, LAMB_STEP. */
struct op_tensors {
	int64_t elements; /* of the part of a bucket that this rank updates */
	int64_t tensors;  /* of the bucket, those of which this rank has nothing included */
};

/* ADAFACTOR kinds. */
struct op_factored {
	int64_t elements; /* of the part of a bucket that this rank updates */
	int64_t tensors;  /* of the bucket, those of which this rank has nothing included */
	int64_t sums;     /* rows and columns of its matrices, and a number for each tensor (step/factored.h) */
	int64_t vectors;  /* elements, at most, of the part that are of no matrix */
};

/* MUON kinds: `groups` matrices one behind the other. */
struct op_muon {
	int64_t groups, rows, cols;
};

/* FILL, CAST. */
struct op_vector {
	int64_t elements;
};

/* COLLECTIVE of a group. */
struct op_collective {
	int64_t elements; /* of the full buffer: all-gather: out; reduce-scatter: in; all-reduce: both */
	int64_t tensors;  /* all-gather, reduce-scatter: tensors that are copied rank by rank beside it, or 0 */
	int64_t crossing; /* alltoall of rows that go to each host once, and there on to their members: elements of the
	                     full buffer of the first exchange, between the members of one place on each host; else 0 */
	int64_t once; /* alltoall of rows that go to each rank once: elements of the full buffer without the repeats;
	                 0: none repeats */
	int64_t rows; /* of these the rows, where DeepEP's kernels move them; 0: links alone bound them */
};

/* COLLECTIVE between pipeline stages: coordinates along DIM_PP. */
struct op_message {
	int64_t elements, peer, own;
};

/* COPY, LOAD. */
struct op_copy {
	int64_t bytes;
};

/* PAUSE. */
struct op_pause {
	int64_t of_step; /* 1: once a step; 0: once a micro-batch */
};

/* ---- adapters ---- */

/* What PyTorch runs around the products of an adapter's factors beside what they read and write, as PEFT writes it
 * (peft/tuners/lora/layer.py, Linear.forward: result + lora_B(lora_A(dropout(x))) * scaling). */
enum adapter_part {
	ADAPTER_NONE,
	ADAPTER_SUM,        /* ADD: of the scaled result and the frozen weight's */
	ADAPTER_SUM_GRAD,   /* product with B: its operand is the scaled gradient */
	ADAPTER_INPUT,      /* product with A: its operand is cast to A's format, and to the products' */
	ADAPTER_INPUT_GRAD, /* product with A: so is its result, and then added */
};

/* ---- an op ---- */

struct op {
	uint8_t kind, lane, phase;   /* enum op_kind, lane, phase */
	uint8_t dtype, out_dtype;    /* enum dtype; out_dtype: of what it writes (gradients, casts) */
	uint8_t coll, reduce, group; /* COLLECTIVE: enum collective, reduce_op, mesh_dim */
	uint8_t mlp;                 /* ACT and GATE kinds: enum mlp, or ACT: enum activation_only */
	uint8_t optimizer;           /* OPTIMIZER: enum optimizer */
	uint32_t flags;              /* enum op_flag */
	int16_t micro;               /* micro-step, -1 outside */
	uint8_t images;   /* 1: of a convolutional network, whose kernels move their arguments and nothing else */
	uint8_t adapter;  /* enum adapter_part */
	uint8_t modules;  /* of a product with A: the linear modules whose adapters it stands for, a kernel each */
	uint8_t dropout;  /* 1: dropout of its elements runs with it, of the forward or the backward pass
	                   * (step/dropout.h)
	                   */
	uint8_t frozen8;  /* 1: GEMM kinds: B is a frozen weight that is stored in fp8, or gathered in it */
	uint8_t dtensors; /* ops on DTensors that PyTorch dispatches for it (struct stack, dtensor) */
	uint8_t linears; /* of a product with weights: the linear modules that call it for columns of their own; 0: 1 */
	int32_t layer;   /* -1 outside the blocks */
	int32_t bucket;  /* index in role.buckets, -1 */
	const char *what; /* static: "qkv", "fc1", "grad bucket", ... */
	union { /* dimensions: the member of the kind's shape family, or all in order for code that serves any kind */
		int64_t d[OP_MAX_DIMS];
		struct op_gemm gemm;
		struct op_attn attn;
		struct op_relative relative;
		struct op_conv conv;
		struct op_ssm ssm;
		struct op_short_conv short_conv;
		struct op_gate gate;
		struct op_pack pack;
		struct op_latent latent;
		struct op_matrix matrix;
		struct op_modulate modulate;
		struct op_cap cap;
		struct op_loss loss;
		struct op_sequence sequence;
		struct op_embed embed;
		struct op_route route;
		struct op_dispatch dispatch;
		struct op_swap swap;
		struct op_update update;
		struct op_tensors tensors;
		struct op_factored factored;
		struct op_muon muon;
		struct op_vector vector;
		struct op_collective collective;
		struct op_message message;
		struct op_copy copy;
		struct op_pause pause;
	};
	uint32_t arg0; /* first argument in role.args (op_kind_info.n_args of them) */
	uint32_t dep0; /* first dependency in role.deps */
	uint32_t n_dep;
};

/* "L3 fc1 backward gemm mb0 [4096 768 3072]"; returns buf. */
#define OP_NAME_MAX 128
char *op_name(const struct op *op, char buf[OP_NAME_MAX]);

enum op_class op_class_of(const struct op *op);
bool op_on_host(const struct op *op);          /* work of the host's threads: LOAD, PAUSE, SYNC */
bool op_is_product(const struct op *op);       /* GEMM, GROUPED_GEMM */
bool op_is_naive_product(const struct op *op); /* ATTN_SCORES, ATTN_VALUES and their gradients */
bool op_is_flash(const struct op *op);         /* ATTENTION, ATTENTION_PART and their gradients */
bool op_is_message(const struct op *op);       /* SEND, RECV */
bool op_is_conv(const struct op *op);          /* CONV, CONV_DATA, CONV_WEIGHT */
bool op_is_gated(const struct op *op);         /* ACT and GATE kinds: swiglu, geglu */
/* Returns the product that one of the above is. */
struct op_gemm op_as_gemm(const struct op *op);
/* CONV*, MAX_POOL*: returns the rows and columns of the result. */
int64_t op_conv_side(const struct op *op);
/* Ranks that meet in a collective: 2 for messages and with OP_ENDS. */
int64_t op_group_size(const struct mesh *m, const struct op *op);

enum access op_access(const struct op *op, int arg);
/* Bytes that argument i covers from its view's beginning. */
uint64_t op_arg_bytes(const struct op *op, int arg, int64_t group_size);
/* The format in which it is stored, where nothing else is said (weights may be kept in fp32); bytes: fp32. */
enum dtype op_arg_dtype(const struct op *op, int arg);

/* ---- work of an op: pure functions of it ---- */

/* FLOP that it executes: the formula of its row. */
double op_flop(const struct op *op);
/* Bytes that must cross the memory interface once. */
double op_read_B(const struct op *op);
/* Elements of parameters' gradients that an op of the backward pass writes; 0: none. */
double op_gradient_elements(const struct op *op);
/* How many tensors these are. Modules whose products are one op (Q, K and V) count once. */
int64_t op_gradients(const struct op *op);
/* How many tensors that are not trained a module keeps: a batch norm's mean, variance and count of batches. */
int64_t op_buffers(const struct op *op);
double op_write_B(const struct op *op);
/* Kernels that a framework launches for it; on cores one call does all. */
int64_t op_calls(const struct op *op);
/* Bytes that one rank sends: 2(n-1)/n S for all-reduce by a ring, (n-1)/n S where parts are cut (Thakur et al. 2005), S
 * for broadcast along a chain, for sendrecv and for a message, at either end; over the time this is the busbw of
 * nccl-tests (doc/PERFORMANCE.md). 0 in a group of one. */
double op_wire_B(const struct op *op, int64_t group_size);
double collective_wire_factor(enum collective c, int64_t group_size); /* wire bytes over S */
/* Messages that follow each other: 2(n-1) for all-reduce by a ring, 1 for sendrecv and for a message, else n-1. 0 in a
 * group of one. */
double collective_rounds(enum collective c, int64_t group_size);

/* Columns of a head's values; whether all rows' queries lie before all rows' keys and values (step/ops.def). */
int64_t op_value_dim(const struct op *op);
bool op_keys_apart(const struct op *op);
/* Returns whether an op of attention has keys of another sequence: cross-attention. */
bool op_is_cross(const struct op *op);
/* Attention: keys a sequence; (query, key) pairs that flash attention needs, of one head and sequence; its window, or
 * the chunks of positions that see themselves alone, 0: none. */
int64_t op_keys(const struct op *op);
double op_pairs(const struct op *op);
/* SSM_SCAN*, DELTA_SCAN*, KDA_SCAN*: chunks of a sequence. */
double op_chunks(const struct op *op);
int64_t op_window(const struct op *op);
int64_t op_chunk(const struct op *op);
/* True where flash attention's queries see their own keys, so that a causal mask has its diagonal here. */
bool op_sees_itself(const struct op *op);
/* How often the mask cuts a query's keys off: at its own place and, beyond `window` queries, at the far end of the
 * window. A kernel of tiles does half a tile more at each. */
double op_masked_ends(const struct op *op);

/* One moment in 8 bits, of elements [0, elements) of which [from, to) stay in 32 (Dettmers et al. 2022, 8-bit
 * Optimizers via Block-wise Quantization, ICLR, arXiv:2110.02861). In its memory: the scales, fp32, of the blocks of
 * OPTIMIZER_BLOCK of [0, from), then of those of [to, elements); fp32 values of [from, to); a byte for each other
 * element. Which value a byte stands for: exec/host/dynamic_map.h. */
struct states_8 {
	int64_t blocks[2];        /* before the range, and behind it */
	uint64_t wide_B, codes_B; /* where the range's values begin, and the bytes */
	uint64_t bytes;           /* of all, in whole words of 4 */
};
struct states_8 states_8_of(int64_t elements, int64_t from, int64_t to);
#define OPTIMIZER_BLOCK 256    /* as bitsandbytes has them (bitsandbytes/optim/optimizer.py) */
#define OPTIMIZER_LEAST_8 4096 /* a tensor of fewer elements keeps 32 bits (there, min_8bit_size) */

#endif
