/* The shapes that calibration times on a GPU: those of the host's grid that have a curve, wider, and products and
 * attention of its own in every format.
 *
 * Most sizes are multiples of a tile, as those of models are, but such as no sane model has. */
#include <stdlib.h>

#include "base/array.h"
#include "exec/calibrate/calibrate.h"

#define WIDEN 8 /* rows of the host's grid have hundreds of elements, those of models on GPUs thousands */

/* From what takes a kernel's least time, up to what no L2 cache holds. */
static const double footprints_B[] = {64 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30};

/* In the order in which they are timed. What is needed most comes first where time is short. */
enum section { SECTION_MEMORY, SECTION_GEMM, SECTION_ATTENTION, SECTION_OTHERS };

static const enum dtype gemm_formats[] = {DT_BF16, DT_FP16, DT_TF32, DT_FP32}, curve_formats[] = {DT_BF16, DT_FP32};

/* ---- products ---- */

/* tokens x out x in features, as the host's. From less than a wave to many, K short and long, few tokens, a vocabulary.
 */
static const struct gemm_shape {
	int64_t tokens, out, in;
	bool accumulate;
} gemms[] = {
	{128, 128, 64, false},
	{384, 384, 128, false},
	{128, 640, 384, false},
	{640, 640, 640, true},
	{896, 2944, 384, false},
	{720, 1360, 2320, true},
	{1408, 896, 3712, false},
	{1792, 1792, 1792, true},
	{2944, 640, 2944, false},
	{384, 4864, 4864, false},
	{128, 9472, 2944, false},
	{3712, 3712, 896, false},
	{2944, 2944, 2944, true},
	{896, 896, 13184, false},
	{7936, 1408, 1408, true},
	{4864, 4864, 4864, true},
	{3712, 13184, 3712, false},
	{7936, 4864, 4864, true},
	{3712, 33024, 1792, false},
	{7936, 7936, 7936, true},
};

static bool add_gemm(calibration_cases *out, const struct work_device *d, const struct gemm_shape *g, enum dtype dtype)
{
	const uint8_t t = (uint8_t)dtype, stored = dtype == DT_TF32 ? DT_FP32 : t;
	const unsigned no_bias = 1u << 2;
	struct op forward = {.kind = OP_GEMM,
		.phase = PHASE_FORWARD,
		.flags = OP_TRANS_B,
		.dtype = t,
		.out_dtype = stored,
		.gemm = {g->tokens, g->out, g->in}};
	struct op input = {.kind = OP_GEMM,
		.phase = PHASE_BACKWARD,
		.dtype = t,
		.out_dtype = stored,
		.gemm = {g->tokens, g->in, g->out}};
	struct op weight = {.kind = OP_GEMM,
		.phase = PHASE_BACKWARD,
		.flags = OP_TRANS_A,
		.dtype = t,
		.out_dtype = stored,
		.gemm = {g->out, g->in, g->tokens}};
	if (g->accumulate)
		weight.flags |= OP_ACCUMULATE;
	return calibration_add(out, d, &forward, 0, no_bias) && calibration_add(out, d, &input, 0, no_bias) &&
	       calibration_add(out, d, &weight, 0, no_bias);
}

static bool add_gemms(calibration_cases *out, const struct work_device *d)
{
	for (size_t i = 0; i < COUNT(gemms); i++)
		for (size_t t = 0; t < COUNT(gemm_formats); t++)
			if (!add_gemm(out, d, &gemms[i], gemm_formats[t]))
				return false;
	return true;
}

/* ---- attention ---- */

/* Each not so much larger than the one before that its time, foretold from that one's, seems beyond the limit. In bf16
 * those of LEADING_SEQ come first, as a measure for the longest, which come then: where time is short, the small ones
 * are left out. */
#define LEADING_SEQ 2048
static const struct attention_shape {
	int64_t b, heads, kv_heads, s;
	bool causal;
} bf16_attentions[] = {{1, 2, 2, 64, true}, {1, 8, 8, 256, true}, {2, 12, 12, 1024, true}, {1, 24, 6, 1024, false},
	{6, 14, 14, 1024, true}, {1, 24, 6, 2048, true}, {2, 12, 3, 4096, false}, {1, 24, 6, 4096, true},
	{1, 24, 6, 8192, true}, {1, 12, 3, 16384, true}},
  other_attentions[] = {{1, 2, 2, 64, true}, {1, 8, 8, 256, true}, {1, 24, 6, 1024, false}, {1, 24, 6, 2048, true},
	  {1, 24, 6, 4096, true}},
  naive_attentions[] = {{1, 2, 2, 64, true}, {1, 8, 8, 256, true}, {2, 12, 12, 512, true}, {1, 24, 6, 1024, true},
	  {1, 12, 3, 2048, true}};

static bool add_attention(calibration_cases *out, const struct work_device *d, enum op_kind kind,
	const struct attention_shape *a, enum dtype dtype, int64_t width)
{
	struct op op = {.kind = (uint8_t)kind,
		.flags = a->causal ? OP_CAUSAL : 0,
		.dtype = (uint8_t)dtype,
		.out_dtype = (uint8_t)dtype,
		.attn = {a->b, a->heads, a->kv_heads, a->s, width}};
	return calibration_add(out, d, &op, 0, 0);
}

/* Forward and backward, of both head dims that kernels are built for. */
static bool add_flash(calibration_cases *out, const struct work_device *d, const struct attention_shape *a, size_t n,
	enum dtype dtype)
{
	for (size_t i = 0; i < n; i++)
		for (int64_t width = 64; width <= 128; width *= 2)
			if (!add_attention(out, d, OP_ATTENTION, &a[i], dtype, width) ||
				!add_attention(out, d, OP_ATTENTION_GRAD, &a[i], dtype, width))
				return false;
	return true;
}

static bool add_naive(calibration_cases *out, const struct work_device *d, enum dtype dtype)
{
	static const enum op_kind kinds[] = {OP_ATTN_SCORES, OP_ATTN_VALUES, OP_ATTN_VALUES_GRAD, OP_ATTN_SCORES_GRAD};
	for (size_t i = 0; i < COUNT(naive_attentions); i++)
		for (size_t k = 0; k < COUNT(kinds); k++)
			if (!add_attention(out, d, kinds[k], &naive_attentions[i], dtype, i % 2 ? 128 : 64))
				return false;
	return true;
}

/* ---- what is bound by memory ---- */

/* Softmax over stored scores, its gradient, and the rotation of q and k. */
static bool add_attention_curves(calibration_cases *out, const struct work_device *d, enum dtype dtype)
{
	static const int64_t tokens[COUNT(footprints_B)] = {112, 208, 1008, 1008, 1008};
	for (size_t i = 0; i < COUNT(footprints_B); i++) {
		const int64_t elements = (int64_t)(footprints_B[i] / dtype_bytes(dtype) / 2), s = tokens[i];
		const struct attention_shape scores = {1, elements / (s * s) + 1, 1, s, true},
					     rows = {1, 24, 6, elements / (36 * 128), false};
		if (!add_attention(out, d, OP_ATTN_SOFTMAX, &scores, dtype, 128) ||
			!add_attention(out, d, OP_ATTN_SOFTMAX_GRAD, &scores, dtype, 128) ||
			!add_attention(out, d, OP_ROPE, &rows, dtype, 128))
			return false;
	}
	return true;
}

static bool add_memory(calibration_cases *out, const struct work_device *d)
{
	const struct op nothing = {.kind = OP_FILL,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.vector = {1}}; /* the least time of an op */
	for (size_t t = 0; t < COUNT(curve_formats); t++)
		if (!calibration_add_curves(out, d, curve_formats[t], WIDEN, footprints_B, COUNT(footprints_B)) ||
			!add_attention_curves(out, d, curve_formats[t]))
			return false;
	return calibration_add(out, d, &nothing, 0, 0);
}

/* ---- */

static void mark(calibration_cases *out, size_t from, enum section section)
{
	for (size_t i = from; i < out->n; i++) {
		out->at[i].section = (uint8_t)section;
		out->at[i].hot = 0;
	}
}

/* Returns a rough time of a case, by which cases are sorted: 500 TFLOP/s in 16 bits and less, else 50, and 2 TB/s. */
static double size_s(const struct calibration_case *c)
{
	return op_flop(&c->op) / (dtype_bytes((enum dtype)c->op.dtype) < 4 ? 5e14 : 5e13) +
	       (op_read_B(&c->op) + op_write_B(&c->op)) / 2e12;
}

static int by_section_and_size(const void *x, const void *y)
{
	const struct calibration_case *a = x, *b = y;
	if (a->section != b->section)
		return a->section < b->section ? -1 : 1;
	double d = size_s(a) - size_s(b);
	return d < 0 ? -1 : d > 0;
}

static int in_order(const void *x, const void *y)
{
	const struct calibration_case *a = x, *b = y;
	if (a->section != SECTION_ATTENTION || b->section != SECTION_ATTENTION)
		return by_section_and_size(a, b);
	const bool a_leads = a->op.attn.seq == LEADING_SEQ, b_leads = b->op.attn.seq == LEADING_SEQ;
	return a_leads != b_leads ? b_leads - a_leads : by_section_and_size(b, a);
}

void calibration_small_first(calibration_cases *cases)
{
	qsort(cases->at, cases->n, sizeof *cases->at, by_section_and_size);
}

enum status calibration_grid_gpu(const struct work_device *d, calibration_cases *out, struct error *e)
{
	size_t n = out->n;
	bool ok = add_memory(out, d);
	mark(out, n, SECTION_MEMORY);
	n = out->n;
	ok = ok && add_gemms(out, d);
	mark(out, n, SECTION_GEMM);
	n = out->n;
	ok = ok && add_flash(out, d, bf16_attentions, COUNT(bf16_attentions), DT_BF16);
	mark(out, n, SECTION_ATTENTION);
	n = out->n;
	ok = ok && add_flash(out, d, other_attentions, COUNT(other_attentions), DT_FP16) &&
	     add_flash(out, d, other_attentions, COUNT(other_attentions), DT_FP32) && add_naive(out, d, DT_BF16) &&
	     add_naive(out, d, DT_FP16) && add_naive(out, d, DT_FP32);
	mark(out, n, SECTION_OTHERS);
	if (!ok)
		return error_nomem(e, "the calibration grid");
	qsort(out->at, out->n, sizeof *out->at, in_order);
	return ST_OK;
}
