/* The rows of step/ops.def as a table, and the pure functions over them. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "step/factored.h"

/* clang-format off */
static const struct op_kind_info kinds[] = {
#define OP(kind, name, class_, family, shown, flop, work, suffix, like, args) \
	[OP_##kind] = {#name, CLASS_##class_, N_ARGS_##kind, shown, {args}},
#define ARG_PART(kind, name, access, type, ...) {#name, ACC_##access, TYPE_##type},
#include "step/ops.def"
};
/* clang-format on */

const struct op_kind_info *op_kind_info(enum op_kind k) { return &kinds[k]; }

enum access op_access(const struct op *op, int arg)
{
	const enum access a = kinds[op->kind].arg[arg].access;
	switch (a) {
	case ACC_A: return op->flags & OP_ACCUMULATE ? ACC_RW : ACC_W;
	case ACC_DX: return op->flags & OP_DX_ACCUMULATE ? ACC_RW : ACC_W;
	case ACC_OWN: return op->attn.keys > 0 ? ACC_W : ACC_RW;
	case ACC_NONE:
	case ACC_R:
	case ACC_W:
	case ACC_RW: break;
	}
	return a;
}

bool lane_is_comm(enum lane l) { return l != LANE_COMPUTE && l != LANE_COPY && l != LANE_HOST && l != LANE_LOAD; }

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

enum dtype op_arg_dtype(const struct op *op, int arg)
{
	switch (kinds[op->kind].arg[arg].type) {
	case TYPE_OPERAND: return (enum dtype)op->dtype;
	case TYPE_OUT: return (enum dtype)op->out_dtype;
	case TYPE_INT32: return DT_INT32;
	case TYPE_FP32:
	case TYPE_BYTE: break;
	}
	return DT_FP32;
}

static double arg_type_bytes(const struct op *op, int arg)
{
	return kinds[op->kind].arg[arg].type == TYPE_BYTE ? 1.0 : dtype_bytes(op_arg_dtype(op, arg));
}

/* A gated activation's input has a gate and an up half. */
bool op_is_gated(const struct op *op) { return op->mlp == MLP_SWIGLU || op->mlp == MLP_GEGLU; }

static int64_t blocks_of(int64_t elements) { return (elements + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK; }

struct states_8 states_8_of(int64_t elements, int64_t from, int64_t to)
{
	struct states_8 s = {.blocks = {blocks_of(from), blocks_of(elements - to)}};
	uint64_t wide = (uint64_t)(to - from);
	s.wide_B = 4 * (uint64_t)(s.blocks[0] + s.blocks[1]);
	s.codes_B = s.wide_B + 4 * wide;
	s.bytes = (s.codes_B + (uint64_t)elements - wide + 3) / 4 * 4;
	return s;
}

/* One of the optimizer's moments. */
static double moment_B(const struct op *op)
{
	const struct op_update *d = &op->update;
	return op->flags & OP_STATES_8 ? (double)states_8_of(d->elements, d->wide_from, d->wide_to).bytes
	                               : (d->halved ? 2.0 : 4.0) * (double)d->elements;
}

/* How large an argument is, and how much of it an access reads or writes, in elements. */
struct extent {
	double whole, touched;
};

/* clang-format off */
static struct extent extent_of(const struct op *op, int arg)
{
	switch ((enum op_kind)op->kind) {
#define OP(kind, name, class_, family, shown, flop, work, suffix, like, args) \
	OP_CASE(kind, family, switch ((enum args_##kind)arg) { args case N_ARGS_##kind: break; })
#define ARG_PART(kind, name, access, type, elements, touched) \
	case ARG_##kind##_##name: return (struct extent){elements, touched};
#include "step/ops.def"
	case OP_KIND_COUNT: break;
	}
	return (struct extent){0, 0};
}
/* clang-format on */

uint64_t op_arg_bytes(const struct op *op, int arg, int64_t group_size)
{
	double bytes = extent_of(op, arg).whole * arg_type_bytes(op, arg);
	if (op->kind == OP_COLLECTIVE &&
		((op->coll == COLL_ALL_GATHER && arg == 0) || (op->coll == COLL_REDUCE_SCATTER && arg == 1)))
		bytes /= (double)group_size;
	return (uint64_t)(bytes + 0.5);
}

static double moved_B(const struct op *op, enum access what)
{
	double sum = 0.0;
	for (int i = 0; i < kinds[op->kind].n_args; i++)
		if (op_access(op, i) & what)
			sum += extent_of(op, i).touched * arg_type_bytes(op, i);
	return sum;
}

static double optimizer_state_B(const struct op *op, enum access what)
{
	const struct optimizer_traits *o = &optimizer_traits[op->optimizer];
	double n = (double)op->update.elements, p = dtype_bytes(op->dtype),
	       g = what == ACC_R ? dtype_bytes(op->out_dtype) : 0.0;
	bool has_master = op->flags & OP_MASTER;
	double bytes = n * (p + g + 4.0 * has_master) + moment_B(op) * o->moments;
	return op->flags & OP_FUSED ? bytes : bytes * o->unfused_passes;
}

/* PyTorch's elementwise kernels in place of one of adafactor's ops, counted in transformers/optimization.py,
 * Adafactor.step: there is no fused kernel. Kernels of a tensor, and values of fp32 read and written for an element. */
static const struct elementwise_loop {
	int calls;
	double read, written;
} adafactor_loops[OP_KIND_COUNT] = {
	[OP_ADAFACTOR_SUMS] = {10, 5, 2},
	[OP_ADAFACTOR_NORMS] = {10, 3, 2},
	[OP_ADAFACTOR_STEP] = {4, 5, 4},
};

/* A narrow format is copied to fp32 before the first op, weights also back after the last. */
static double adafactor_B(const struct op *op, enum access what)
{
	const struct elementwise_loop *loop = &adafactor_loops[op->kind];
	const double of_w = dtype_bytes(op->dtype), of_g = dtype_bytes(op->out_dtype);
	const bool reads = what == ACC_R, copies_w = of_w < 4, copies_g = of_g < 4;
	double bytes = 4 * (reads ? loop->read : loop->written);
	if (op->kind == OP_ADAFACTOR_SUMS)
		bytes += copies_w * (reads ? of_w : 4) + copies_g * (reads ? of_g : 4);
	if (op->kind == OP_ADAFACTOR_STEP)
		bytes += copies_w * (reads ? 4 : of_w);
	return bytes * (double)op->factored.elements;
}

static double op_moved_B(const struct op *op, enum access what)
{
	if (op->kind == OP_OPTIMIZER)
		return optimizer_state_B(op, what);
	return adafactor_loops[op->kind].calls > 0 ? adafactor_B(op, what) : moved_B(op, what);
}

int64_t op_calls(const struct op *op)
{
	const int calls = adafactor_loops[op->kind].calls;
	return calls > 0 ? calls * op->factored.tensors : 1;
}

double op_gradient_elements(const struct op *op)
{
	const enum op_class c = op_class_of(op);
	const bool product = op_is_product(op) || op_is_conv(op);
	double elements = 0.0;
	if (product ? !(op->flags & OP_TRANS_A) : c != CLASS_NORM && c != CLASS_ELEMENTWISE && c != CLASS_EMBEDDING)
		return 0.0;
	for (int i = 0; i < kinds[op->kind].n_args; i++)
		if (kinds[op->kind].arg[i].type == TYPE_OUT)
			elements += extent_of(op, i).whole;
	return elements;
}

int64_t op_gradients(const struct op *op)
{
	int64_t n = 0;
	if (op_gradient_elements(op) > 0)
		for (int i = 0; i < kinds[op->kind].n_args; i++)
			n += kinds[op->kind].arg[i].type == TYPE_OUT && extent_of(op, i).whole > 0;
	return n;
}

int64_t op_buffers(const struct op *op) { return op->kind == OP_BATCH_NORM ? 3 : 0; }

double op_read_B(const struct op *op) { return op_moved_B(op, ACC_R); }

double op_write_B(const struct op *op) { return op_moved_B(op, ACC_W); }

static const struct {
	const char *name;
	enum op_class class_;
	bool reduces, cuts;
	double passes; /* of the whole buffer, or of all parts but a rank's own where it is sent in parts, over a rank's
	                  link */
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

double collective_rounds(enum collective c, int64_t group_size)
{
	if (group_size < 2)
		return 0.0;
	return collectives[c].passes * (collectives[c].class_ == CLASS_SENDRECV ? 1.0 : (double)(group_size - 1));
}

double op_wire_B(const struct op *op, int64_t group_size)
{
	if (op->kind != OP_COLLECTIVE)
		return 0;
	const bool once = op->coll == COLL_ALLTOALL && op->collective.once > 0;
	return collective_wire_factor((enum collective)op->coll, group_size) *
	       (double)(once ? op->collective.once : op->collective.elements) * dtype_bytes(op->dtype);
}

static bool is_part(const struct op *op) { return op->kind == OP_ATTENTION_PART || op->kind == OP_ATTENTION_PART_GRAD; }

bool op_is_flash(const struct op *op)
{
	return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD || is_part(op);
}

bool op_sees_itself(const struct op *op) { return !is_part(op) || op->attn.back == 0; }

/* Returns the window, above 0, or the chunk, below 0. */
static int64_t seen_of(const struct op *op)
{
	const bool has_window = op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD;
	return has_window ? op->attn.window : is_part(op) ? op->attn.seen : 0;
}

int64_t op_window(const struct op *op) { return seen_of(op) > 0 ? seen_of(op) : 0; }

int64_t op_chunk(const struct op *op) { return seen_of(op) < 0 ? -seen_of(op) : 0; }

int64_t op_value_dim(const struct op *op)
{
	const bool has_own = op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD;
	return has_own && op->attn.value_dim > 0 ? op->attn.value_dim : op->attn.head_dim;
}

bool op_keys_apart(const struct op *op)
{
	return (op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD) && op->attn.value_dim > 0;
}

bool op_is_cross(const struct op *op)
{
	const bool has_other = op->kind == OP_ATTENTION_PART || op->kind == OP_ATTENTION_PART_GRAD ||
	                       (op->kind >= OP_ATTN_SCORES && op->kind <= OP_ATTN_BIAS_GRAD);
	return has_other && op->attn.back == OTHER_SEQUENCE;
}

int64_t op_keys(const struct op *op)
{
	const bool has_window = op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD;
	return has_window || op->attn.keys == 0 ? op->attn.seq : op->attn.keys;
}

double op_masked_ends(const struct op *op)
{
	bool diagonal = op->flags & OP_CAUSAL && op_sees_itself(op);
	const double keys = (double)op_keys(op), window = (double)op_window(op), own = (double)op->attn.seq / keys;
	return (diagonal ? (double)op->attn.seq : 0) + (window > 0 ? (keys - window) * own : 0);
}

bool op_is_naive_product(const struct op *op)
{
	return op->kind == OP_ATTN_SCORES || op->kind == OP_ATTN_VALUES || op->kind == OP_ATTN_VALUES_GRAD ||
	       op->kind == OP_ATTN_SCORES_GRAD;
}

bool op_is_product(const struct op *op) { return op->kind == OP_GEMM || op->kind == OP_GROUPED_GEMM; }

bool op_is_conv(const struct op *op)
{
	return op->kind == OP_CONV || op->kind == OP_CONV_DATA || op->kind == OP_CONV_WEIGHT;
}

int64_t op_conv_side(const struct op *op) { return (op->conv.side + op->conv.stride - 1) / op->conv.stride; }

/* The gradient of x with a stride is a product for each of stride^2 sorts of pixels, with as many taps less. */
struct op_gemm op_as_gemm(const struct op *op)
{
	const struct op_conv *d = &op->conv;
	if (!op_is_conv(op))
		return op->gemm;
	const int64_t side = op_conv_side(op), taps = d->kernel * (d->flat ? 1 : d->kernel);
	const int64_t rows = d->batch * side * (d->flat ? 1 : side), sorts = d->stride * (d->flat ? 1 : d->stride);
	const int64_t reached = (taps * d->out + sorts - 1) / sorts;
	if (op->kind == OP_CONV)
		return (struct op_gemm){rows, d->out, taps * d->in, 0, 0};
	if (op->kind == OP_CONV_DATA)
		return (struct op_gemm){d->batch * d->side * (d->flat ? 1 : d->side), d->in, reached, 0, 0};
	return (struct op_gemm){d->out, taps * d->in, rows, 0, 0};
}

double op_pairs(const struct op *op)
{
	double s = (double)op->attn.seq, keys = (double)op_keys(op), window = (double)op_window(op), own = s / keys;
	if (op_chunk(op) > 0) { /* of all keys' queries, those of this rank: their mean over the group */
		const double chunk = (double)op_chunk(op), rest = keys - chunk * floor(keys / chunk);
		return own * (floor(keys / chunk) * chunk * (chunk + 1.0) / 2.0 + rest * (rest + 1.0) / 2.0);
	}
	if (window > 0)
		return op->flags & OP_CAUSAL ? own * (window * (window + 1.0) / 2.0 + (keys - window) * window)
		                             : s * window;
	if (!(op->flags & OP_CAUSAL))
		return s * keys;
	return op_sees_itself(op) ? s * (s + 1.0) / 2.0 + s * (keys - s) / 2.0 : s * keys / 2.0;
}

double op_chunks(const struct op *op) { return ceil((double)op->ssm.seq / (double)op->ssm.chunk); }

/* clang-format off */
double op_flop(const struct op *op)
{
	switch ((enum op_kind)op->kind) {
#define OP(kind, name, class_, family, shown, flop, ...) OP_CASE(kind, family, return flop)
#include "step/ops.def"
	case OP_KIND_COUNT: break;
	}
	return 0.0;
}
/* clang-format on */

bool op_on_host(const struct op *op) { return kinds[op->kind].class_ == CLASS_HOST; }

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

static const char *const lane_names[] = {"compute", "comm", "replica_comm", "model_comm", "copy", "host", "load",
	"send_next", "recv_prev", "send_prev", "recv_next"};
static const char *const phase_names[] = {"forward", "backward", "optimizer"};
static const char *const class_names[] = {"gemm", "convolution", "attention", "scan", "norm", "elementwise",
	"embedding", "routing", "loss", "memory", "optimizer", "all_reduce", "all_gather", "reduce_scatter",
	"broadcast", "alltoall", "sendrecv", "copy", "host"};
static_assert(sizeof lane_names / sizeof lane_names[0] == LANE_COUNT, "lanes");
static_assert(sizeof phase_names / sizeof phase_names[0] == PHASE_COUNT, "phases");
static_assert(sizeof class_names / sizeof class_names[0] == CLASS_COUNT, "classes");

const char *lane_name(enum lane l) { return lane_names[l]; }
const char *phase_name(enum phase p) { return phase_names[p]; }
const char *op_class_name(enum op_class c) { return class_names[c]; }

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
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, " %s stage %lld", op->coll == COLL_SEND ? "to" : "from",
			(long long)op->message.peer);
	for (int i = 0; n < OP_NAME_MAX && i < kinds[op->kind].n_dims; i++)
		n += (size_t)snprintf(buf + n, OP_NAME_MAX - n, "%s%lld%s", i ? " " : " [", (long long)op->d[i],
			i + 1 == kinds[op->kind].n_dims ? "]" : "");
	return buf;
}
