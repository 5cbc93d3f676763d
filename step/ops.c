/* Op kinds as a table: names, classes, arguments with their sizes and formats; and the pure functions over it. */
#include "step/program.h"

#include <assert.h>
#include <stdio.h>

typedef double (*size_fn)(const int64_t *d);

/* Sizes in elements, by the names that program.h gives the dimensions. */
static double sz_01(const int64_t *d) { return (double)d[0] * (double)d[1]; }
static double sz_02(const int64_t *d) { return (double)d[0] * (double)d[2]; }
static double sz_12(const int64_t *d) { return (double)d[1] * (double)d[2]; }
static double sz_0(const int64_t *d) { return (double)d[0]; }
static double sz_1(const int64_t *d) { return (double)d[1]; }
static double sz_2x0(const int64_t *d) { return 2.0 * (double)d[0]; }
static double sz_3(const int64_t *d) { return (double)d[3]; }
static double sz_012(const int64_t *d) { return (double)d[0] * sz_12(d); }
static double sz_023(const int64_t *d) { return sz_02(d) * sz_3(d); }
static double sz_123(const int64_t *d) { return sz_12(d) * sz_3(d); }
static double sz_013(const int64_t *d) { return sz_01(d) * sz_3(d); }
static double sz_03(const int64_t *d) { return (double)d[0] * sz_3(d); }
static double sz_13(const int64_t *d) { return sz_1(d) * sz_3(d); }
static double sz_2(const int64_t *d) { return (double)d[2]; }
static double sz_one(const int64_t *d) { (void)d; return 1.0; }
static double sz_table(const int64_t *d) { return (double)d[2] * (double)d[1]; }
static double sz_qkv(const int64_t *d) { return (double)d[0] * (double)d[3] * (double)(d[1] + 2 * d[2]) * (double)d[4]; }
static double sz_rows(const int64_t *d) { return (double)d[0] * (double)d[3] * (double)d[1] * (double)d[4]; }
static double sz_lse(const int64_t *d) { return (double)d[0] * (double)d[1] * (double)d[3]; }
static double sz_kv(const int64_t *d) { return 2.0 * (double)d[0] * (double)d[5] * (double)d[2] * (double)d[4]; }
static double sz_gathered(const int64_t *d) { return d[5] > 0 ? sz_kv(d) : sz_qkv(d); }
static double sz_scores(const int64_t *d) { return (double)d[0] * (double)d[1] * (double)d[3] * (double)(d[5] > 0 ? d[5] : d[3]); }

enum arg_type { TYPE_OPERAND, TYPE_OUT, TYPE_FP32, TYPE_INT32, TYPE_BYTE };

struct arg_info {
	size_fn size;
	enum arg_type type;
};

static const struct op_kind_info kinds[] = {
	[OP_GEMM] = {"gemm", CLASS_GEMM, 4, 3, {"A", "B", "bias", "C"}, {ACC_R, ACC_R, ACC_R, ACC_A}},
	[OP_ATTENTION] = {"attention", CLASS_ATTENTION, 3, 6, {"qkv", "out", "lse"}, {ACC_R, ACC_W, ACC_W}},
	[OP_ATTENTION_GRAD] = {"attention_grad", CLASS_ATTENTION, 6, 6, {"qkv", "out", "lse", "dout", "delta", "dqkv"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_W, ACC_W}},
	[OP_ATTENTION_PART] = {"attention_part", CLASS_ATTENTION, 4, 7, {"qkv", "kv", "out", "lse"}, {ACC_R, ACC_R, ACC_A, ACC_A}},
	[OP_ATTENTION_PART_GRAD] = {"attention_part_grad", CLASS_ATTENTION, 8, 7, {"qkv", "kv", "out", "lse", "dout", "delta", "dqkv", "dkv"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_R, ACC_A, ACC_A, ACC_W}},
	[OP_KV_PACK] = {"kv_pack", CLASS_MEMORY, 2, 3, {"qkv", "kv"}, {ACC_R, ACC_W}},
	[OP_KV_UNPACK] = {"kv_unpack", CLASS_MEMORY, 2, 3, {"kv", "qkv"}, {ACC_R, ACC_RW}},
	[OP_ATTN_SCORES] = {"attn_scores", CLASS_ATTENTION, 3, 5, {"qkv", "scores", "kv"}, {ACC_R, ACC_W, ACC_R}},
	[OP_ATTN_SOFTMAX] = {"attn_softmax", CLASS_ATTENTION, 1, 5, {"scores"}, {ACC_RW}},
	[OP_ATTN_VALUES] = {"attn_values", CLASS_ATTENTION, 3, 5, {"probs", "qkv", "out"}, {ACC_R, ACC_R, ACC_W}},
	[OP_ATTN_VALUES_GRAD] = {"attn_values_grad", CLASS_ATTENTION, 5, 5, {"probs", "qkv", "dout", "dprobs", "dqkv"}, {ACC_R, ACC_R, ACC_R, ACC_W, ACC_W}},
	[OP_ATTN_SOFTMAX_GRAD] = {"attn_softmax_grad", CLASS_ATTENTION, 2, 5, {"probs", "dprobs"}, {ACC_R, ACC_RW}},
	[OP_ATTN_SCORES_GRAD] = {"attn_scores_grad", CLASS_ATTENTION, 5, 5, {"dscores", "qkv", "dqkv", "kv", "dkv"}, {ACC_R, ACC_R, ACC_RW, ACC_R, ACC_RW}},
	[OP_ROPE] = {"rope", CLASS_ELEMENTWISE, 1, 5, {"qkv"}, {ACC_RW}},
	[OP_NORM] = {"norm", CLASS_NORM, 5, 2, {"x", "w", "b", "y", "stats"}, {ACC_R, ACC_R, ACC_R, ACC_W, ACC_W}},
	[OP_NORM_GRAD] = {"norm_grad", CLASS_NORM, 7, 2, {"dy", "x", "w", "stats", "dx", "dw", "db"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_DX, ACC_A, ACC_A}},
	[OP_ADD] = {"add", CLASS_ELEMENTWISE, 4, 2, {"x", "y", "bias", "sum"}, {ACC_R, ACC_R, ACC_R, ACC_W}},
	[OP_ADD_NORM] = {"add_norm", CLASS_NORM, 8, 2, {"x", "y", "bias", "w", "b", "sum", "out", "stats"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_R, ACC_W, ACC_W, ACC_W}},
	[OP_BIAS] = {"bias", CLASS_ELEMENTWISE, 2, 2, {"x", "bias"}, {ACC_RW, ACC_R}},
	[OP_BIAS_GRAD] = {"bias_grad", CLASS_ELEMENTWISE, 2, 2, {"dy", "db"}, {ACC_R, ACC_A}},
	[OP_ACT] = {"act", CLASS_ELEMENTWISE, 2, 2, {"x", "y"}, {ACC_R, ACC_W}},
	[OP_ACT_GRAD] = {"act_grad", CLASS_ELEMENTWISE, 3, 2, {"x", "dy", "dx"}, {ACC_R, ACC_R, ACC_W}},
	[OP_GATE_ACT] = {"gate_act", CLASS_ELEMENTWISE, 2, 2, {"x", "y"}, {ACC_R, ACC_W}},
	[OP_GATE_MUL] = {"gate_mul", CLASS_ELEMENTWISE, 3, 2, {"x", "a", "y"}, {ACC_R, ACC_R, ACC_W}},
	[OP_GROUPED_GEMM] = {"grouped_gemm", CLASS_GEMM, 3, 4, {"A", "B", "C"}, {ACC_R, ACC_R, ACC_A}},
	[OP_ROUTE] = {"route", CLASS_ROUTING, 4, 4, {"logits", "gates", "slots", "taken"}, {ACC_R, ACC_W, ACC_W, ACC_W}},
	[OP_ROUTE_GRAD] = {"route_grad", CLASS_ROUTING, 5, 4, {"logits", "gates", "slots", "dgates", "dlogits"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_W}},
	[OP_DISPATCH] = {"dispatch", CLASS_ROUTING, 3, 4, {"x", "taken", "y"}, {ACC_R, ACC_R, ACC_W}},
	[OP_COMBINE] = {"combine", CLASS_ROUTING, 4, 4, {"y", "slots", "gates", "x"}, {ACC_R, ACC_R, ACC_R, ACC_A}},
	[OP_COMBINE_GRAD] = {"combine_grad", CLASS_ROUTING, 6, 4, {"y", "dx", "taken", "gates", "dy", "dgates"}, {ACC_R, ACC_R, ACC_R, ACC_R, ACC_W, ACC_W}},
	[OP_SWAP] = {"swap", CLASS_ROUTING, 2, 3, {"x", "y"}, {ACC_R, ACC_W}},
	[OP_EMBED] = {"embed", CLASS_EMBEDDING, 3, 3, {"tokens", "w", "y"}, {ACC_R, ACC_R, ACC_W}},
	[OP_EMBED_GRAD] = {"embed_grad", CLASS_EMBEDDING, 3, 3, {"tokens", "dy", "dw"}, {ACC_R, ACC_R, ACC_RW}},
	[OP_POSITION] = {"position", CLASS_EMBEDDING, 3, 3, {"w", "type", "x"}, {ACC_R, ACC_R, ACC_RW}},
	[OP_POSITION_GRAD] = {"position_grad", CLASS_EMBEDDING, 3, 3, {"dx", "dw", "dtype"}, {ACC_R, ACC_RW, ACC_RW}},
	[OP_LOSS] = {"loss", CLASS_LOSS, 3, 2, {"logits", "targets", "loss"}, {ACC_RW, ACC_R, ACC_RW}},
	[OP_LOSS_MAX] = {"loss_max", CLASS_LOSS, 2, 2, {"logits", "max"}, {ACC_R, ACC_W}},
	[OP_LOSS_SUM] = {"loss_sum", CLASS_LOSS, 4, 2, {"logits", "targets", "max", "sums"}, {ACC_R, ACC_R, ACC_R, ACC_W}},
	[OP_LOSS_GRAD] = {"loss_grad", CLASS_LOSS, 5, 2, {"logits", "targets", "max", "sums", "loss"}, {ACC_RW, ACC_R, ACC_R, ACC_R, ACC_RW}},
	[OP_OPTIMIZER] = {"optimizer", CLASS_OPTIMIZER, 5, 1, {"p", "g", "m", "v", "master"}, {ACC_RW, ACC_R, ACC_RW, ACC_RW, ACC_RW}},
	[OP_FILL] = {"fill", CLASS_MEMORY, 1, 1, {"x"}, {ACC_W}},
	[OP_CAST] = {"cast", CLASS_MEMORY, 2, 1, {"x", "y"}, {ACC_R, ACC_W}},
	[OP_COLLECTIVE] = {"collective", CLASS_COUNT, 2, 1, {"in", "out"}, {ACC_R, ACC_W}},
	[OP_COPY] = {"copy", CLASS_COPY, 2, 1, {"src", "dst"}, {ACC_R, ACC_W}},
	[OP_LOAD] = {"load", CLASS_HOST, 2, 1, {"data", "batch"}, {ACC_R, ACC_W}},
	[OP_PAUSE] = {"pause", CLASS_HOST, 0, 1, {NULL}, {ACC_NONE}},
	[OP_SYNC] = {"sync", CLASS_HOST, 0, 0, {NULL}, {ACC_NONE}},
};
static_assert(sizeof kinds / sizeof kinds[0] == OP_KIND_COUNT, "a row for each op kind");

/* Sizes and formats of the arguments, in the order of `kinds`. */
static const struct arg_info arguments[][OP_MAX_ARGS] = {
	[OP_GEMM] = {{sz_02, TYPE_OPERAND}, {sz_12, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_01, TYPE_OUT}},
	[OP_ATTENTION] = {{sz_qkv, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}},
	[OP_ATTENTION_GRAD] = {{sz_qkv, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}, {sz_qkv, TYPE_OPERAND}},
	[OP_ATTENTION_PART] = {{sz_qkv, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}},
	[OP_ATTENTION_PART_GRAD] = {{sz_qkv, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}, {sz_rows, TYPE_OPERAND}, {sz_lse, TYPE_FP32}, {sz_qkv, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}},
	[OP_KV_PACK] = {{sz_02, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_KV_UNPACK] = {{sz_01, TYPE_OPERAND}, {sz_02, TYPE_OPERAND}},
	[OP_ATTN_SCORES] = {{sz_qkv, TYPE_OPERAND}, {sz_scores, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}},
	[OP_ATTN_SOFTMAX] = {{sz_scores, TYPE_OPERAND}},
	[OP_ATTN_VALUES] = {{sz_scores, TYPE_OPERAND}, {sz_gathered, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}},
	[OP_ATTN_VALUES_GRAD] = {{sz_scores, TYPE_OPERAND}, {sz_gathered, TYPE_OPERAND}, {sz_rows, TYPE_OPERAND}, {sz_scores, TYPE_OPERAND}, {sz_gathered, TYPE_OPERAND}},
	[OP_ATTN_SOFTMAX_GRAD] = {{sz_scores, TYPE_OPERAND}, {sz_scores, TYPE_OPERAND}},
	[OP_ATTN_SCORES_GRAD] = {{sz_scores, TYPE_OPERAND}, {sz_qkv, TYPE_OPERAND}, {sz_qkv, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}, {sz_kv, TYPE_OPERAND}},
	[OP_ROPE] = {{sz_qkv, TYPE_OPERAND}},
	[OP_NORM] = {{sz_01, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_2x0, TYPE_FP32}},
	[OP_NORM_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_2x0, TYPE_FP32}, {sz_01, TYPE_OPERAND}, {sz_1, TYPE_OUT}, {sz_1, TYPE_OUT}},
	[OP_ADD] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_ADD_NORM] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_2x0, TYPE_FP32}},
	[OP_BIAS] = {{sz_01, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}},
	[OP_BIAS_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_1, TYPE_OUT}},
	[OP_ACT] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_ACT_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_GATE_ACT] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_GATE_MUL] = {{sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_GROUPED_GEMM] = {{sz_023, TYPE_OPERAND}, {sz_123, TYPE_OPERAND}, {sz_013, TYPE_OUT}},
	[OP_ROUTE] = {{sz_01, TYPE_OPERAND}, {sz_02, TYPE_FP32}, {sz_02, TYPE_INT32}, {sz_13, TYPE_INT32}},
	[OP_ROUTE_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_02, TYPE_FP32}, {sz_02, TYPE_INT32}, {sz_13, TYPE_FP32}, {sz_01, TYPE_OPERAND}},
	[OP_DISPATCH] = {{sz_01, TYPE_OPERAND}, {sz_2, TYPE_INT32}, {sz_12, TYPE_OPERAND}},
	[OP_COMBINE] = {{sz_12, TYPE_OPERAND}, {sz_03, TYPE_INT32}, {sz_03, TYPE_FP32}, {sz_01, TYPE_OPERAND}},
	[OP_COMBINE_GRAD] = {{sz_12, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}, {sz_2, TYPE_INT32}, {sz_03, TYPE_FP32}, {sz_12, TYPE_OPERAND}, {sz_2, TYPE_FP32}},
	[OP_SWAP] = {{sz_012, TYPE_OPERAND}, {sz_012, TYPE_OPERAND}},
	[OP_EMBED] = {{sz_0, TYPE_INT32}, {sz_table, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_EMBED_GRAD] = {{sz_0, TYPE_INT32}, {sz_01, TYPE_OPERAND}, {sz_table, TYPE_OUT}},
	[OP_POSITION] = {{sz_table, TYPE_OPERAND}, {sz_1, TYPE_OPERAND}, {sz_01, TYPE_OPERAND}},
	[OP_POSITION_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_table, TYPE_OUT}, {sz_1, TYPE_OUT}},
	[OP_LOSS] = {{sz_01, TYPE_OPERAND}, {sz_0, TYPE_INT32}, {sz_one, TYPE_FP32}},
	[OP_LOSS_MAX] = {{sz_01, TYPE_OPERAND}, {sz_0, TYPE_FP32}},
	[OP_LOSS_SUM] = {{sz_01, TYPE_OPERAND}, {sz_0, TYPE_INT32}, {sz_0, TYPE_FP32}, {sz_2x0, TYPE_FP32}},
	[OP_LOSS_GRAD] = {{sz_01, TYPE_OPERAND}, {sz_0, TYPE_INT32}, {sz_0, TYPE_FP32}, {sz_2x0, TYPE_FP32}, {sz_one, TYPE_FP32}},
	[OP_OPTIMIZER] = {{sz_0, TYPE_OPERAND}, {sz_0, TYPE_OUT}, {sz_0, TYPE_FP32}, {sz_0, TYPE_FP32}, {sz_0, TYPE_FP32}},
	[OP_FILL] = {{sz_0, TYPE_OPERAND}},
	[OP_CAST] = {{sz_0, TYPE_OPERAND}, {sz_0, TYPE_OUT}},
	[OP_COLLECTIVE] = {{sz_0, TYPE_OPERAND}, {sz_0, TYPE_OPERAND}},
	[OP_COPY] = {{sz_0, TYPE_BYTE}, {sz_0, TYPE_BYTE}},
	[OP_LOAD] = {{sz_0, TYPE_BYTE}, {sz_0, TYPE_BYTE}},
	[OP_PAUSE] = {{NULL, TYPE_BYTE}},
	[OP_SYNC] = {{NULL, TYPE_BYTE}},
};
static_assert(sizeof arguments / sizeof arguments[0] == OP_KIND_COUNT, "a row for each op kind");

const struct op_kind_info *op_kind_info(enum op_kind k)
{
	return &kinds[k];
}

enum access op_access(const struct op *op, int arg)
{
	enum access a = kinds[op->kind].access[arg];
	if (a == ACC_A)
		return op->flags & OP_ACCUMULATE ? ACC_RW : ACC_W;
	if (a == ACC_DX)
		return op->flags & OP_DX_ACCUMULATE ? ACC_RW : ACC_W;
	if (op->kind == OP_ATTN_SCORES_GRAD && arg == 2 && op->d[5] > 0) /* the other columns' gradients are those of gathered keys and values */
		return ACC_W;
	return a;
}

bool lane_is_comm(enum lane l)
{
	return l != LANE_COMPUTE && l != LANE_COPY && l != LANE_HOST && l != LANE_LOAD;
}

bool op_is_message(const struct op *op)
{
	return op->kind == OP_COLLECTIVE && (op->coll == COLL_SEND || op->coll == COLL_RECV);
}

int64_t op_group_size(const struct mesh *m, const struct op *op)
{
	return op_is_message(op) || op->flags & OP_ENDS ? 2 : m->size[op->group];
}

const struct view *op_arg(const struct role *r, const struct op *op, int i)
{
	return &r->args.at[op->arg0 + (uint32_t)i];
}

static double type_bytes(const struct op *op, enum arg_type t)
{
	switch (t) {
	case TYPE_OPERAND: return dtype_bytes(op->dtype);
	case TYPE_OUT: return dtype_bytes(op->out_dtype);
	case TYPE_FP32:
	case TYPE_INT32: return 4.0;
	case TYPE_BYTE: return 1.0;
	}
	return 0.0;
}

enum dtype op_arg_dtype(const struct op *op, int arg)
{
	switch (arguments[op->kind][arg].type) {
	case TYPE_OPERAND: return (enum dtype)op->dtype;
	case TYPE_OUT: return (enum dtype)op->out_dtype;
	case TYPE_INT32: return DT_INT32;
	case TYPE_FP32:
	case TYPE_BYTE: break;
	}
	return DT_FP32;
}

/* A gated activation's input holds the gate and the up half. */
static bool is_gated_input(const struct op *op, int arg)
{
	if (op->kind == OP_GATE_ACT || op->kind == OP_GATE_MUL)
		return arg == 0;
	bool gated = op->mlp == MLP_SWIGLU || op->mlp == MLP_GEGLU;
	return gated && ((op->kind == OP_ACT && arg == 0) || (op->kind == OP_ACT_GRAD && (arg == 0 || arg == 2)));
}

static int64_t blocks_of(int64_t elements)
{
	return (elements + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK;
}

struct states_8 states_8_of(int64_t elements, int64_t from, int64_t to)
{
	struct states_8 s = {.blocks = {blocks_of(from), blocks_of(elements - to)}};
	uint64_t wide = (uint64_t)(to - from);
	s.wide_B = 4 * (uint64_t)(s.blocks[0] + s.blocks[1]);
	s.codes_B = s.wide_B + 4 * wide;
	s.bytes = (s.codes_B + (uint64_t)elements - wide + 3) / 4 * 4;
	return s;
}

static double moment_B(const struct op *op)
{
	return op->flags & OP_STATES_8 ? (double)states_8_of(op->d[0], op->d[1], op->d[2]).bytes : 4.0 * (double)op->d[0];
}

static double arg_size_B(const struct op *op, int arg)
{
	const struct arg_info *a = &arguments[op->kind][arg];
	if (op->kind == OP_OPTIMIZER && (arg == 2 || arg == 3))
		return moment_B(op);
	double elements = a->size(op->d);
	if (is_gated_input(op, arg))
		elements *= 2.0;
	return elements * type_bytes(op, a->type);
}

uint64_t op_arg_bytes(const struct op *op, int arg, int64_t group_size)
{
	double bytes = arg_size_B(op, arg);
	if (op->kind == OP_COLLECTIVE && ((op->coll == COLL_ALL_GATHER && arg == 0) || (op->coll == COLL_REDUCE_SCATTER && arg == 1)))
		bytes /= (double)group_size;
	return (uint64_t)(bytes + 0.5);
}

/* Rows of a table that a lookup touches, or columns: not the whole argument. */
static double touched_B(const struct op *op, int arg)
{
	if ((op->kind == OP_EMBED && arg == 1) || (op->kind == OP_EMBED_GRAD && arg == 2) || (op->kind == OP_POSITION && arg == 0) || (op->kind == OP_POSITION_GRAD && arg == 1))
		return sz_01(op->d) * type_bytes(op, arguments[op->kind][arg].type);
	if ((op->kind == OP_ATTENTION_PART && arg == 0) || (op->kind == OP_ATTENTION_PART_GRAD && (arg == 0 || arg == 6))) /* the Q columns */
		return sz_rows(op->d) * type_bytes(op, TYPE_OPERAND);
	if ((op->kind == OP_KV_PACK && arg == 0) || (op->kind == OP_KV_UNPACK && arg == 1))
		return sz_01(op->d) * type_bytes(op, TYPE_OPERAND);
	if (op->kind == OP_GATE_ACT && arg == 0)
		return sz_01(op->d) * type_bytes(op, TYPE_OPERAND);
	if (op->kind == OP_GATE_MUL && arg == 0)
		return sz_01(op->d) * type_bytes(op, TYPE_OPERAND);
	return arg_size_B(op, arg);
}

static double moved_B(const struct op *op, enum access what)
{
	double sum = 0.0;
	for (int i = 0; i < kinds[op->kind].n_args; i++)
		if (op_access(op, i) & what)
			sum += touched_B(op, i);
	return sum;
}

/* A multi-tensor optimizer that is not fused runs its update as separate elementwise passes over the state; PyTorch's foreach AdamW (torch/optim/adamw.py, _multi_tensor_adamw)
 * reads and writes about 3.5 times the state's minimum. */
#define UNFUSED_OPTIMIZER_PASSES 3.5

static double optimizer_state_B(const struct op *op, enum access what)
{
	bool has_m = op->mlp != OPT_NONE, has_v = op->mlp == OPT_ADAM || op->mlp == OPT_ADAMW || op->mlp == OPT_LAMB;
	double n = (double)op->d[0], p = dtype_bytes(op->dtype), g = what == ACC_R ? dtype_bytes(op->out_dtype) : 0.0;
	bool has_master = op->flags & OP_MASTER;
	double bytes = n * (p + g + 4.0 * has_master) + moment_B(op) * (has_m + has_v);
	return op->flags & OP_FUSED ? bytes : bytes * UNFUSED_OPTIMIZER_PASSES;
}

double op_read_B(const struct op *op)
{
	return op->kind == OP_OPTIMIZER ? optimizer_state_B(op, ACC_R) : moved_B(op, ACC_R);
}

double op_write_B(const struct op *op)
{
	return op->kind == OP_OPTIMIZER ? optimizer_state_B(op, ACC_W) : moved_B(op, ACC_W);
}

static const struct {
	const char *name;
	enum op_class class_;
	bool reduces, cuts;
	double passes; /* of the whole buffer, or of all parts but a rank's own where it is sent in parts, over a rank's link */
} collectives[] = {
	[COLL_ALL_REDUCE] = {"all_reduce", CLASS_ALL_REDUCE, true, false, 2},
	[COLL_ALL_GATHER] = {"all_gather", CLASS_ALL_GATHER, false, true, 1},
	[COLL_REDUCE_SCATTER] = {"reduce_scatter", CLASS_REDUCE_SCATTER, true, true, 1},
	[COLL_BROADCAST] = {"broadcast", CLASS_BROADCAST, false, false, 1},
	[COLL_ALLTOALL] = {"alltoall", CLASS_ALLTOALL, false, true, 1},
	[COLL_SENDRECV] = {"sendrecv", CLASS_SENDRECV, false, false, 1},
	[COLL_SEND] = {"send", CLASS_SENDRECV, false, false, 1},
	[COLL_RECV] = {"recv", CLASS_SENDRECV, false, false, 1},
};
static_assert(sizeof collectives / sizeof collectives[0] == COLL_COUNT, "a row for each collective");

const char *collective_name(enum collective c) { return collectives[c].name; }
bool collective_reduces(enum collective c) { return collectives[c].reduces; }
bool collective_cuts(enum collective c) { return collectives[c].cuts; }

double collective_wire_factor(enum collective c, int64_t group_size)
{
	double n = (double)group_size;
	if (group_size < 2)
		return 0.0;
	return collectives[c].passes * (collectives[c].reduces || collectives[c].cuts ? (n - 1.0) / n : 1.0);
}

double op_wire_B(const struct op *op, int64_t group_size)
{
	return op->kind == OP_COLLECTIVE ? collective_wire_factor((enum collective)op->coll, group_size) * (double)op->d[0] * dtype_bytes(op->dtype) : 0.0;
}

static bool is_part(const struct op *op)
{
	return op->kind == OP_ATTENTION_PART || op->kind == OP_ATTENTION_PART_GRAD;
}

bool op_is_flash(const struct op *op)
{
	return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD || is_part(op);
}

bool op_sees_itself(const struct op *op)
{
	return !is_part(op) || op->d[6] == 0;
}

int64_t op_window(const struct op *op)
{
	return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD ? op->d[5] : 0;
}

double op_masked_ends(const struct op *op)
{
	bool diagonal = op->flags & OP_CAUSAL && op_sees_itself(op);
	return (diagonal ? (double)op->d[3] : 0) + (op_window(op) > 0 ? (double)(op->d[3] - op_window(op)) : 0);
}

bool op_is_product(const struct op *op)
{
	return op->kind == OP_GEMM || op->kind == OP_GROUPED_GEMM;
}

double op_pairs(const struct op *op)
{
	double s = (double)op->d[3], keys = is_part(op) ? (double)op->d[5] : s, window = (double)op_window(op);
	if (window > 0)
		return op->flags & OP_CAUSAL ? window * (window + 1.0) / 2.0 + (s - window) * window : s * window;
	if (!(op->flags & OP_CAUSAL))
		return s * keys;
	return op_sees_itself(op) ? s * (s + 1.0) / 2.0 + s * (keys - s) / 2.0 : s * keys / 2.0;
}

static double attention_flop(const struct op *op)
{
	return 2.0 * (double)op->d[0] * (double)op->d[1] * op_pairs(op) * (double)op->d[4]; /* of one of its matrix products */
}

double op_flop(const struct op *op)
{
	double full = 2.0 * sz_scores(op->d) * (double)op->d[4];
	switch (op->kind) {
	case OP_GROUPED_GEMM: return 2.0 * sz_012(op->d) * sz_3(op->d);
	case OP_COMBINE: return 2.0 * sz_013(op->d);
	case OP_COMBINE_GRAD: return 3.0 * sz_12(op->d);
	case OP_GEMM: return 2.0 * (double)op->d[0] * (double)op->d[1] * (double)op->d[2];
	case OP_ATTENTION:
	case OP_ATTENTION_PART: return 2.0 * attention_flop(op);
	case OP_ATTENTION_PART_GRAD:
	case OP_ATTENTION_GRAD: return 5.0 * attention_flop(op); /* scores again, dV, dP, dQ, dK: Dao 2023, FlashAttention-2, section 3.1 */
	case OP_ATTN_SCORES:
	case OP_ATTN_VALUES: return full;
	case OP_ATTN_VALUES_GRAD:
	case OP_ATTN_SCORES_GRAD: return 2.0 * full;
	case OP_ATTN_SOFTMAX:
	case OP_ATTN_SOFTMAX_GRAD: return 5.0 * sz_scores(op->d);
	case OP_COLLECTIVE:
	case OP_COPY:
	case OP_KV_PACK:
	case OP_KV_UNPACK:
	case OP_DISPATCH:
	case OP_SWAP:
	case OP_LOAD:
	case OP_PAUSE:
	case OP_SYNC:
	case OP_FILL:
	case OP_CAST: return 0.0;
	case OP_OPTIMIZER: return 12.0 * (double)op->d[0];
	case OP_ROPE: return 3.0 * (double)op->d[0] * (double)op->d[3] * (double)(op->d[1] + op->d[2]) * (double)op->d[4];
	case OP_NORM:
	case OP_ADD_NORM:
	case OP_LOSS: return 8.0 * sz_01(op->d);
	case OP_NORM_GRAD: return 12.0 * sz_01(op->d);
	case OP_ACT:
	case OP_ACT_GRAD: return 10.0 * sz_01(op->d);
	default: return sz_01(op->d);
	}
}

bool op_on_host(const struct op *op)
{
	return kinds[op->kind].class_ == CLASS_HOST;
}

enum op_class op_class_of(const struct op *op)
{
	return op->kind == OP_COLLECTIVE ? collectives[op->coll].class_ : kinds[op->kind].class_;
}

bool op_class_is_comm(enum op_class c)
{
	for (int i = 0; i < COLL_COUNT; i++)
		if (collectives[i].class_ == c)
			return true;
	return false;
}

static const char *const lane_names[] = {"compute", "comm", "replica_comm", "model_comm", "copy", "host", "load", "send_next", "recv_prev", "send_prev", "recv_next"};
static const char *const phase_names[] = {"forward", "backward", "optimizer"};
static const char *const class_names[] = {"gemm", "attention", "norm", "elementwise", "embedding", "routing", "loss", "memory", "optimizer", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv", "copy", "host"};
static const char *const component_names[] = {"weights", "gradients", "optimizer", "activations", "buffers", "host"};
static_assert(sizeof lane_names / sizeof lane_names[0] == LANE_COUNT, "lanes");
static_assert(sizeof phase_names / sizeof phase_names[0] == PHASE_COUNT, "phases");
static_assert(sizeof class_names / sizeof class_names[0] == CLASS_COUNT, "classes");
static_assert(sizeof component_names / sizeof component_names[0] == COMP_KIND_COUNT, "components");

const char *lane_name(enum lane l) { return lane_names[l]; }
const char *phase_name(enum phase p) { return phase_names[p]; }
const char *op_class_name(enum op_class c) { return class_names[c]; }
const char *component_name(enum component c) { return component_names[c]; }

char *op_name(const struct op *op, char buf[OP_NAME_MAX])
{
	size_t n = 0;
	const char *kind = op->kind == OP_COLLECTIVE ? collectives[op->coll].name : kinds[op->kind].name;
	if (op->layer >= 0)
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, "L%d ", (int)op->layer);
	n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, "%s %s %s", op->what, phase_names[op->phase], kind);
	if (n < OP_NAME_MAX && op->bucket >= 0)
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, " bucket %d", (int)op->bucket);
	if (n < OP_NAME_MAX && op->micro >= 0)
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, " mb%d", (int)op->micro);
	if (n < OP_NAME_MAX && op_is_message(op))
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, " %s stage %lld", op->coll == COLL_SEND ? "to" : "from", (long long)op->d[1]);
	for (int i = 0; n < OP_NAME_MAX && i < kinds[op->kind].n_dims; i++)
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, "%s%lld%s", i ? " " : " [", (long long)op->d[i], i + 1 == kinds[op->kind].n_dims ? "]" : "");
	return buf;
}
