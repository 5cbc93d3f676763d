/* The shapes that calibration times.
 *
 * Sizes are 16 times a prime (or times 7 x 7 and the like): rows begin on cache lines, as those of real models do, but
 * no sane model is made of such numbers. */
#include <string.h>

#include "base/array.h"
#include "exec/calibrate/calibrate.h"

#define BIT(arg) ((uint8_t)(1u << (arg)))

/* Changes where kernels or collectives are run or timed in another way: an older profile does not say how long they
 * take now. */
static const char timed_as[] = "medians and stalls; Rabenseifner, recursive doubling, trains between hosts, pace now";

const uint64_t calibration_comm_sizes[CALIBRATION_COMM_SIZES] = {2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10,
	2 << 20, 8 << 20, 24 << 20, 40 << 20, 64 << 20};
const uint64_t calibration_gpu_comm_sizes[CALIBRATION_COMM_SIZES] = {4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20,
	8 << 20, 25 << 20, 50 << 20, 100 << 20, 256 << 20};

bool calibration_add(calibration_cases *out, const struct work_device *d, const struct op *op, unsigned hot,
	unsigned absent)
{
	struct calibration_case c = {.op = *op, .hot = (uint8_t)hot, .absent = (uint8_t)absent};
	c.op.bucket = c.op.layer = c.op.micro = -1;
	c.op.what = "calibration";
	work_of(&c.op, d, &c.work);
	return vec_push(out, c);
}

static bool add(calibration_cases *out, const struct op *op, unsigned hot, unsigned absent)
{
	struct op o = *op;
	o.dtype = o.out_dtype = DT_FP32;
	return calibration_add(out, NULL, &o, hot, absent);
}

/* ---- GEMM ---- */

/* tokens x out x in features, spread over sizes and aspect ratios; `accumulate` also as a weight gradient that is added
 * to. Two have the width of a vocabulary. */
static const struct gemm_shape {
	int64_t tokens, out, in;
	bool accumulate;
} gemms[] = {
	{112, 368, 752, false},
	{112, 1552, 208, false},
	{176, 2288, 976, true},
	{208, 112, 2288, false},
	{208, 752, 752, true},
	{304, 208, 496, false},
	{368, 368, 368, false},
	{368, 3056, 368, true},
	{464, 9008, 112, false},
	{496, 112, 1552, false},
	{496, 976, 2288, true},
	{496, 15088, 304, false},
	{592, 1552, 496, false},
	{752, 304, 976, true},
	{752, 752, 208, false},
	{848, 496, 3056, false},
	{976, 208, 208, false},
	{976, 976, 976, true},
	{976, 2288, 368, false},
	{1264, 112, 592, false},
	{1552, 752, 368, false},
	{1552, 368, 1552, true},
	{2032, 304, 752, false},
	{2032, 1552, 112, false},
	{3056, 368, 208, false},
	{3056, 752, 752, true},
	{4048, 208, 976, false},
	{4048, 592, 304, false},
};

/* The three products of a linear layer: forward, input gradient, weight gradient. What comes first is what was just
 * computed. */
static bool add_gemm(calibration_cases *out, const struct gemm_shape *g)
{
	struct op forward = {.kind = OP_GEMM,
		.phase = PHASE_FORWARD,
		.flags = OP_TRANS_B,
		.gemm = {g->tokens, g->out, g->in}};
	struct op input = {.kind = OP_GEMM, .phase = PHASE_BACKWARD, .gemm = {g->tokens, g->in, g->out}};
	struct op weight = {.kind = OP_GEMM,
		.phase = PHASE_BACKWARD,
		.flags = OP_TRANS_A,
		.gemm = {g->out, g->in, g->tokens}};
	if (g->accumulate)
		weight.flags |= OP_ACCUMULATE;
	return add(out, &forward, BIT(0), BIT(2)) && add(out, &input, BIT(0), BIT(2)) &&
	       add(out, &weight, BIT(0), BIT(2));
}

/* ---- attention ---- */

/* At least 8 heads of keys each, in even numbers: threads share out whole heads in the gradient, and one head more than
 * threads would show as a term that no shape has. */
static const struct attention_shape {
	int64_t b, heads, kv_heads, s, width;
	bool causal;
} attentions[] = {
	{2, 4, 4, 112, 64, true},
	{2, 8, 8, 112, 80, true},
	{3, 8, 8, 208, 112, true},
	{2, 4, 4, 496, 48, true},
	{2, 8, 4, 496, 128, true},
	{2, 6, 6, 368, 80, false},
	{1, 8, 8, 752, 64, true},
	{1, 8, 8, 752, 32, false},
	{4, 2, 2, 752, 112, true},
	{4, 6, 6, 304, 40, true},
	{2, 6, 6, 368, 56, true},
	{4, 8, 4, 176, 52, true},
	{2, 8, 8, 592, 32, true},
	{3, 8, 8, 176, 128, true},
};

static const struct {
	enum op_kind kind;
	unsigned hot;
} attention_ops[] = {
	{OP_ATTENTION, BIT(0)},
	{OP_ATTENTION_GRAD, BIT(3)},
	{OP_ATTN_SCORES, BIT(0)},
	{OP_ATTN_VALUES, BIT(0)},
	{OP_ATTN_VALUES_GRAD, BIT(2)},
	{OP_ATTN_SCORES_GRAD, BIT(0) | BIT(2)},
};

/* ---- the rest: one time an element, by the bytes that an op touches ---- */

static const double footprints_B[] = {128 * 1024, 1024 * 1024, 8 * 1024 * 1024, 64 * 1024 * 1024};

/* One entry of a profile: an op kind with what tells its name. `cols`: the row's length (attention: of s); rows follow
 * from the footprint. `third`: d[2] where the kind has it (rows of the embedding's table, positions). */
static const struct curve_row {
	enum op_kind kind;
	uint8_t variant; /* enum mlp; OP_OPTIMIZER: enum optimizer */
	uint32_t flags;
	int64_t cols, third;
	unsigned hot, absent;
} curves[] = {
	{OP_NORM, 0, 0, 368, 0, BIT(0), 0},
	{OP_NORM, 0, OP_RMS, 368, 0, BIT(0), BIT(2)},
	{OP_NORM_GRAD, 0, OP_DX_ACCUMULATE, 368, 0, BIT(0), 0}, /* the residual stream's gradient is there already */
	{OP_NORM_GRAD, 0, OP_RMS | OP_DX_ACCUMULATE, 368, 0, BIT(0), BIT(6)},
	{OP_ADD, 0, 0, 752, 0, BIT(0) | BIT(1), BIT(2)},
	{OP_ADD_NORM, 0, 0, 368, 0, BIT(0) | BIT(1), 0},
	{OP_ADD_NORM, 0, OP_RMS, 368, 0, BIT(0) | BIT(1), BIT(2) | BIT(4)},
	{OP_BIAS, 0, 0, 752, 0, BIT(0), 0},
	{OP_BIAS_GRAD, 0, 0, 752, 0, BIT(0), 0},
	{OP_ACT, MLP_GELU, 0, 2288, 0, BIT(0), 0},
	{OP_ACT, MLP_RELU, 0, 2288, 0, BIT(0), 0},
	{OP_ACT, MLP_SQUARED_RELU, 0, 2288, 0, BIT(0), 0},
	{OP_ACT, MLP_SWIGLU, 0, 2288, 0, BIT(0), 0},
	{OP_ACT, MLP_GEGLU, 0, 2288, 0, BIT(0), 0},
	{OP_ACT_GRAD, MLP_GELU, 0, 2288, 0, BIT(1), 0},
	{OP_ACT_GRAD, MLP_RELU, 0, 2288, 0, BIT(1), 0},
	{OP_ACT_GRAD, MLP_SQUARED_RELU, 0, 2288, 0, BIT(1), 0},
	{OP_ACT_GRAD, MLP_SWIGLU, 0, 2288, 0, BIT(1), 0},
	{OP_ACT_GRAD, MLP_GEGLU, 0, 2288, 0, BIT(1), 0},
	{OP_GATE_ACT, MLP_SWIGLU, 0, 2288, 0, BIT(0), 0},
	{OP_GATE_ACT, MLP_GEGLU, 0, 2288, 0, BIT(0), 0},
	{OP_GATE_MUL, MLP_SWIGLU, 0, 2288, 0, BIT(0) | BIT(1), 0},
	{OP_EMBED, 0, 0, 368, 9008, 0, 0},
	{OP_EMBED_GRAD, 0, 0, 368, 9008, BIT(1), 0},
	{OP_POSITION, 0, 0, 368, 496, BIT(2), BIT(1)},
	{OP_POSITION_GRAD, 0, 0, 368, 496, BIT(0), BIT(2)},
	{OP_LOSS, 0, 0, 9008, 0, BIT(0), 0},
	{OP_LOSS_MAX, 0, 0, 9008, 0, BIT(0), 0},
	{OP_LOSS_SUM, 0, 0, 9008, 0, BIT(0), 0},
	{OP_LOSS_GRAD, 0, 0, 9008, 0, BIT(0), 0},
	{OP_FILL, 0, 0, 1, 0, 0, 0},
	{OP_CAST, 0, 0, 1, 0, 0, 0},
};

/* The op of a row in a format: fp32 is cast to bf16 and the other way round, and narrower weights have an fp32 copy in
 * the optimizer. */
static struct op curve_op(const struct curve_row *r, enum dtype dtype, int64_t widen, unsigned *absent)
{
	struct op op = {.kind = (uint8_t)r->kind,
		.mlp = r->kind == OP_OPTIMIZER ? 0 : r->variant,
		.optimizer = r->kind == OP_OPTIMIZER ? r->variant : 0,
		.flags = r->flags,
		.dtype = (uint8_t)dtype,
		.out_dtype = (uint8_t)dtype};
	bool vector = op_kind_info(r->kind)->n_dims == 1, vocabulary = op_class_of(&op) == CLASS_LOSS;
	*absent = r->absent;
	op.d[1] = vector ? 0 : vocabulary ? r->cols : r->cols * widen;
	op.d[2] = r->third;
	op.d[0] = vector ? 1 << 20 : 1;
	if (r->kind == OP_CAST && widen > 1) /* the host casts fp32 to itself */
		op.out_dtype = dtype == DT_FP32 ? DT_BF16 : DT_FP32;
	if (r->kind == OP_OPTIMIZER && dtype != DT_FP32) {
		op.flags |= OP_MASTER;
		*absent &= ~(1u << 4);
	}
	return op;
}

/* The formats and sizes in which a row is timed. */
struct curve_sizes {
	enum dtype dtype;
	int64_t widen;
	const double *footprints;
	size_t n;
};

static bool add_curve(calibration_cases *out, const struct work_device *d, const struct curve_row *r,
	const struct curve_sizes *s)
{
	unsigned absent;
	struct op op = curve_op(r, s->dtype, s->widen, &absent);
	double row_B = (op_read_B(&op) + op_write_B(&op)) / (double)op.d[0];
	for (size_t i = 0; i < s->n; i++) {
		int64_t rows = (int64_t)(s->footprints[i] / row_B);
		op.d[0] = rows | 1; /* odd, and at least one */
		if (!calibration_add(out, d, &op, r->hot, absent))
			return false;
	}
	return true;
}

/* Every optimizer that one op updates: fused, in separate passes, and with moments in 8 bits. LAMB's two take the
 * entries of ops that do the same (step/ops.def). */
static bool add_optimizer_curves(calibration_cases *out, const struct work_device *d, const struct curve_sizes *s)
{
	static const uint32_t flags[] = {OP_FUSED, 0, OP_FUSED | OP_STATES_8};
	bool ok = true;
	for (int o = 0; o < OPT_COUNT; o++) {
		const struct optimizer_traits *t = &optimizer_traits[o];
		const unsigned absent = BIT(4) | (t->moments < 2 ? BIT(3) : 0) | (t->moments < 1 ? BIT(2) : 0);
		const bool one_op = optimizer_updates((enum optimizer)o) && !optimizer_needs_tensors((enum optimizer)o);
		for (size_t i = 0; i < COUNT(flags) && one_op; i++) {
			const struct curve_row r = {OP_OPTIMIZER, (uint8_t)o, flags[i], 1, 0, 0, absent};
			ok = ok && add_curve(out, d, &r, s);
		}
	}
	return ok;
}

bool calibration_add_curves(calibration_cases *out, const struct work_device *d, enum dtype dtype, int64_t widen,
	const double *footprints, size_t n)
{
	const struct curve_sizes s = {dtype, widen, footprints, n};
	for (size_t k = 0; k < COUNT(curves); k++)
		if (!add_curve(out, d, &curves[k], &s))
			return false;
	return add_optimizer_curves(out, d, &s);
}

/* Softmax over stored scores and the rotation of q and k have attention's dimensions. */
static bool add_attention_curves(calibration_cases *out)
{
	static const int64_t rows[COUNT(footprints_B)] = {112, 368, 1072, 1072};
	static const int64_t heads[COUNT(footprints_B)] = {1, 1, 1, 7};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct op softmax = {.kind = OP_ATTN_SOFTMAX,
			.flags = OP_CAUSAL,
			.attn = {1, heads[i], heads[i], rows[i], 80}};
		struct op grad = softmax;
		struct op rope = {.kind = OP_ROPE, .attn = {1, 3 * heads[i], 3 * heads[i], rows[i], 80}};
		grad.kind = OP_ATTN_SOFTMAX_GRAD;
		if (!add(out, &softmax, BIT(0), 0) || !add(out, &grad, BIT(0) | BIT(1), 0) ||
			!add(out, &rope, BIT(0), 0))
			return false;
	}
	return true;
}

enum status calibration_grid(const struct work_device *d, calibration_cases *out, struct error *e)
{
	bool ok = true;
	if (d && d->gpu)
		return calibration_grid_gpu(d, out, e);
	for (size_t i = 0; i < COUNT(gemms) && ok; i++)
		ok = add_gemm(out, &gemms[i]);
	for (size_t i = 0; i < COUNT(attentions) && ok; i++)
		for (size_t j = 0; j < COUNT(attention_ops) && ok; j++) {
			const struct attention_shape *a = &attentions[i];
			struct op op = {.kind = (uint8_t)attention_ops[j].kind,
				.flags = a->causal ? OP_CAUSAL : 0,
				.attn = {a->b, a->heads, a->kv_heads, a->s, a->width}};
			ok = add(out, &op, attention_ops[j].hot, 0);
		}
	ok = ok && calibration_add_curves(out, NULL, DT_FP32, 1, footprints_B, COUNT(footprints_B)) &&
	     add_attention_curves(out);
	struct op nothing = {.kind = OP_FILL, .vector = {1}}; /* what a call costs */
	ok = ok && add(out, &nothing, 0, 0);
	return ok ? ST_OK : error_nomem(e, "the calibration grid");
}

/* FNV-1a, 32 bits. */
static uint32_t mix(uint32_t h, const void *bytes, size_t n)
{
	for (const unsigned char *b = bytes; n--; b++)
		h = (h ^ *b) * UINT32_C(0x01000193);
	return h;
}

uint32_t calibration_checksum(const struct work_device *d)
{
	uint32_t h = UINT32_C(0x811c9dc5);
	calibration_cases cases = {0};
	struct error ignored = {0};
	if (calibration_grid(d, &cases, &ignored) == ST_OK)
		for (size_t i = 0; i < cases.n; i++) {
			const struct work *w = &cases.at[i].work;
			h = mix(h, w->name, strlen(w->name));
			h = mix(h, w->term, sizeof w->term);
			h = mix(h, &w->elements, sizeof w->elements);
			h = mix(h, &w->footprint_B, sizeof w->footprint_B);
			h = mix(h, &cases.at[i].hot, sizeof cases.at[i].hot);
		}
	if (!d || !d->gpu)
		h = mix(h, timed_as, sizeof timed_as);
	const uint64_t *sizes = d && d->gpu ? calibration_gpu_comm_sizes : calibration_comm_sizes;
	h = mix(h, sizes, CALIBRATION_COMM_SIZES * sizeof *sizes);
	vec_free(&cases);
	return h;
}

/* ---- cases that stand for others ---- */

const struct calibration_case *calibration_typical_gemm(const calibration_cases *cases, bool gpu)
{
	const double wanted_flop = gpu ? 1e11 : 1e9;
	const struct calibration_case *best = NULL;
	for (size_t i = 0; i < cases->n; i++) {
		const struct calibration_case *c = &cases->at[i];
		bool forward = c->op.kind == OP_GEMM && (c->op.flags & OP_TRANS_B) &&
		               (!gpu || (c->op.dtype == DT_BF16 && c->time_s > 0));
		double off = op_flop(&c->op) > wanted_flop ? op_flop(&c->op) / wanted_flop
		                                           : wanted_flop / op_flop(&c->op);
		double best_off = !best                              ? 0
		                  : op_flop(&best->op) > wanted_flop ? op_flop(&best->op) / wanted_flop
		                                                     : wanted_flop / op_flop(&best->op);
		if (forward && (!best || off < best_off))
			best = c;
	}
	return best;
}

const struct calibration_case *calibration_largest_add(const calibration_cases *cases)
{
	const struct calibration_case *largest = NULL;
	for (size_t i = 0; i < cases->n; i++)
		if (cases->at[i].op.kind == OP_ADD && (!largest || cases->at[i].work.elements > largest->work.elements))
			largest = &cases->at[i];
	return largest;
}
