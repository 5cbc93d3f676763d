#include "step/work.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What stands behind the kind's name: that which changes the kernel without changing its shape. */
enum suffix { SUF_NONE, SUF_TRANS, SUF_NORM, SUF_MLP, SUF_OPTIMIZER };

/* Terms (FORM_FIT) or elements (FORM_CURVE, in term[0]) from the dimensions. */
typedef void (*measure_fn)(const struct op *op, double *term);
/* Terms on a GPU of so many SMs. */
typedef void (*gpu_measure_fn)(const struct op *op, int64_t sms, double *term);

static double dim(const struct op *op, int i)
{
	return (double)op->d[i];
}

static void gemm_terms(const struct op *op, double *term)
{
	double m = dim(op, 0), n = dim(op, 1), k = dim(op, 2);
	term[0] = 1;
	term[1] = 2 * m * n * k;
	term[2] = m * k;
	term[3] = k * n;
	term[4] = op->flags & OP_ACCUMULATE ? 2 * m * n : m * n;
}

/* Products one after the other. */
static void grouped_terms(const struct op *op, double *term)
{
	gemm_terms(op, term);
	for (int i = 0; i < WORK_TERMS; i++)
		term[i] *= dim(op, 3);
}

static bool is_grad(const struct op *op)
{
	return op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD;
}

static double keys_of(const struct op *op)
{
	bool own = op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD || op->d[5] == 0; /* there d[5] is the window */
	return own ? dim(op, 3) : dim(op, 5);
}

/* (query, key) pairs: causal, each tile of queries with the keys up to the tile's end, and half of those of other ranks. Where queries are the vectors, a tile of them is computed `whole`, whatever part of the last
 * one is there. */
static double flash_pairs(const struct op *op, bool whole)
{
	double s = dim(op, 3), keys = keys_of(op), tiles = ceil(s / FLASH_TILE), last = whole ? FLASH_TILE : s - FLASH_TILE * (tiles - 1), queries = FLASH_TILE * (tiles - 1) + last;
	if (!(op->flags & OP_CAUSAL))
		return queries * keys;
	if (!op_sees_itself(op))
		return queries * keys / 2;
	if (op_window(op) > 0)
		return fmin(s * s, op_pairs(op) + op_masked_ends(op) * FLASH_TILE / 2);
	return FLASH_TILE * FLASH_TILE * tiles * (tiles - 1) / 2 + last * s + queries * (keys - s) / 2;
}

static void flash_terms(const struct op *op, double *term)
{
	double b = dim(op, 0), heads = dim(op, 1), kv = dim(op, 2), s = dim(op, 3), width = dim(op, 4), pairs = flash_pairs(op, true), products = pairs * width;
	if (is_grad(op)) /* two of its five products have D as their vectors, in whole vectors of FLASH_LANES */
		products = (3 * products + 2 * flash_pairs(op, false) * ceil(width / FLASH_LANES) * FLASH_LANES) / 5;
	term[0] = 1;
	term[1] = b * heads * products;
	term[2] = b * heads * pairs;
	term[3] = b * (s * heads + keys_of(op) * 2 * kv) * width;
	term[4] = b * heads;
}

static void naive_terms(const struct op *op, double *term)
{
	double b = dim(op, 0), heads = dim(op, 1), s = dim(op, 3), width = dim(op, 4), keys = keys_of(op);
	term[0] = 1;
	term[1] = b * heads * s * keys * width;
	term[2] = b * heads * s * keys;
	term[3] = b * (s + keys) / 2 * heads * width;
	term[4] = b * heads;
}

/* ---- on a GPU ---- */

/* Output tiles of cuBLAS, and what their loops reach beside the largest one's: they load more for each product (DU-09799, section 3, names the order, not the figures: these are ours, unmeasured). */
static const struct tile {
	double m, n, efficiency;
} tiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.93}, {128, 64, 0.8}, {64, 128, 0.8}, {64, 64, 0.65}};

/* Half of what a later wave leaves idle counts. */
static double waves(double ctas, double sms)
{
	double w = ctas / sms;
	return w <= 1 ? 1 : (w + ceil(w)) / 2;
}

/* The least over all tiles, K of a part: k / split + GEMM_SPLIT_K where it is split. */
static double padded(double groups, double m, double n, double k, double sms, int most_split)
{
	double least = INFINITY;
	for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
		for (int split = 1; split <= most_split; split *= 2) {
			const struct tile *t = &tiles[i];
			double ctas = groups * ceil(m / t->m) * ceil(n / t->n) * split, part = k / split + (split > 1 ? GEMM_SPLIT_K : 0);
			least = fmin(least, waves(ctas, sms) * sms * 2 * t->m * t->n * part / t->efficiency);
		}
	return least;
}

/* Products of a group fill the device together. */
static void gpu_gemm_terms(const struct op *op, int64_t sms, double *term)
{
	double groups = op->kind == OP_GROUPED_GEMM ? dim(op, 3) : 1;
	term[0] = 1;
	term[1] = padded(groups, dim(op, 0), dim(op, 1), dim(op, 2), (double)sms, 8);
	term[2] = padded(groups, dim(op, 0), dim(op, 1), 1, (double)sms, 1);
}

/* Head dims that flash kernels are built for; larger ones as they are. */
static int64_t kernel_width(int64_t width)
{
	static const int64_t widths[] = {64, 128, 256};
	for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
		if (width <= widths[i])
			return widths[i];
	return width;
}

static void gpu_flash_terms(const struct op *op, int64_t sms, double *term)
{
	(void)sms;
	double s = dim(op, 3), pairs = op_pairs(op), products = is_grad(op) ? 5 : 2;
	pairs = fmin(s * keys_of(op), pairs + op_masked_ends(op) * FLASH_GPU_TILE / 2);
	term[0] = 1;
	term[1] = products * 2 * dim(op, 0) * dim(op, 1) * pairs * (double)kernel_width(op->d[4]);
	term[2] = op_read_B(op) + op_write_B(op);
}

static void gpu_naive_terms(const struct op *op, int64_t sms, double *term)
{
	(void)sms;
	term[0] = 1;
	term[1] = op_flop(op);
	term[2] = dim(op, 0) * dim(op, 1) * dim(op, 3) * keys_of(op);
}

/* ---- */

static void vector_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 0);
}

static void matrix_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 0) * dim(op, 1);
}

static void slot_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 1) * dim(op, 2);
}

static void block_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 0) * dim(op, 1) * dim(op, 2);
}

static void score_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 0) * dim(op, 1) * dim(op, 3) * keys_of(op);
}

static void rotated_elements(const struct op *op, double *term)
{
	term[0] = dim(op, 0) * dim(op, 3) * (dim(op, 1) + dim(op, 2)) * dim(op, 4);
}

static const struct {
	enum work_form form;
	enum suffix suffix;
	measure_fn measure;
	gpu_measure_fn on_gpu; /* FORM_FIT */
	const char *like;      /* (optional) the kind whose kernel does it too, default its own */
} rows[] = {
	[OP_GEMM] = {FORM_FIT, SUF_TRANS, gemm_terms, gpu_gemm_terms},
	[OP_ATTENTION] = {FORM_FIT, SUF_NONE, flash_terms, gpu_flash_terms},
	[OP_ATTENTION_GRAD] = {FORM_FIT, SUF_NONE, flash_terms, gpu_flash_terms},
	[OP_ATTENTION_PART] = {FORM_FIT, SUF_NONE, flash_terms, gpu_flash_terms, "attention"},
	[OP_ATTENTION_PART_GRAD] = {FORM_FIT, SUF_NONE, flash_terms, gpu_flash_terms, "attention_grad"},
	[OP_KV_PACK] = {FORM_CURVE, SUF_NONE, matrix_elements, NULL, "cast"},
	[OP_KV_UNPACK] = {FORM_CURVE, SUF_NONE, matrix_elements, NULL, "cast"},
	[OP_ATTN_SCORES] = {FORM_FIT, SUF_NONE, naive_terms, gpu_naive_terms},
	[OP_ATTN_SOFTMAX] = {FORM_CURVE, SUF_NONE, score_elements},
	[OP_ATTN_VALUES] = {FORM_FIT, SUF_NONE, naive_terms, gpu_naive_terms},
	[OP_ATTN_VALUES_GRAD] = {FORM_FIT, SUF_NONE, naive_terms, gpu_naive_terms},
	[OP_ATTN_SOFTMAX_GRAD] = {FORM_CURVE, SUF_NONE, score_elements},
	[OP_ATTN_SCORES_GRAD] = {FORM_FIT, SUF_NONE, naive_terms, gpu_naive_terms},
	[OP_ROPE] = {FORM_CURVE, SUF_NONE, rotated_elements},
	[OP_NORM] = {FORM_CURVE, SUF_NORM, matrix_elements},
	[OP_NORM_GRAD] = {FORM_CURVE, SUF_NORM, matrix_elements},
	[OP_ADD] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_ADD_NORM] = {FORM_CURVE, SUF_NORM, matrix_elements},
	[OP_BIAS] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_BIAS_GRAD] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_ACT] = {FORM_CURVE, SUF_MLP, matrix_elements},
	[OP_ACT_GRAD] = {FORM_CURVE, SUF_MLP, matrix_elements},
	[OP_GATE_ACT] = {FORM_CURVE, SUF_MLP, matrix_elements},
	[OP_GATE_MUL] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_GROUPED_GEMM] = {FORM_FIT, SUF_TRANS, grouped_terms, gpu_gemm_terms, "gemm"},
	[OP_ROUTE] = {FORM_CURVE, SUF_NONE, matrix_elements, NULL, "loss_max"}, /* a look at each row's columns */
	[OP_ROUTE_GRAD] = {FORM_CURVE, SUF_NONE, matrix_elements, NULL, "loss_max"},
	[OP_DISPATCH] = {FORM_CURVE, SUF_NONE, slot_elements, NULL, "cast"},
	[OP_COMBINE] = {FORM_CURVE, SUF_NONE, slot_elements, NULL, "cast"},
	[OP_COMBINE_GRAD] = {FORM_CURVE, SUF_NONE, slot_elements, NULL, "add"},
	[OP_SWAP] = {FORM_CURVE, SUF_NONE, block_elements, NULL, "cast"},
	[OP_EMBED] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_EMBED_GRAD] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_POSITION] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_POSITION_GRAD] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_LOSS] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_LOSS_MAX] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_LOSS_SUM] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_LOSS_GRAD] = {FORM_CURVE, SUF_NONE, matrix_elements},
	[OP_OPTIMIZER] = {FORM_CURVE, SUF_OPTIMIZER, vector_elements},
	[OP_FILL] = {FORM_CURVE, SUF_NONE, vector_elements},
	[OP_CAST] = {FORM_CURVE, SUF_NONE, vector_elements},
	[OP_COLLECTIVE] = {FORM_NONE, SUF_NONE, NULL},
	[OP_COPY] = {FORM_NONE, SUF_NONE, NULL},
	[OP_LOAD] = {FORM_NONE, SUF_NONE, NULL},
	[OP_PAUSE] = {FORM_NONE, SUF_NONE, NULL},
	[OP_SYNC] = {FORM_NONE, SUF_NONE, NULL},
};
static_assert(sizeof rows / sizeof rows[0] == OP_KIND_COUNT, "a row for each op kind");

static const char *const mlp_words[] = {"gelu", "relu", "squared_relu", "swiglu", "geglu"};
static_assert(sizeof mlp_words / sizeof mlp_words[0] == MLP_COUNT, "a word for each activation");

static const char *suffix_of(const struct op *op)
{
	switch (rows[op->kind].suffix) {
	case SUF_TRANS: return op->flags & OP_TRANS_A ? "tn" : op->flags & OP_TRANS_B ? "nt" : "nn"; /* no gradient transposes both */
	case SUF_NORM: return op->flags & OP_RMS ? "rmsnorm" : "layernorm";
	case SUF_MLP: return mlp_words[op->mlp];
	case SUF_OPTIMIZER: return optimizer_name((enum optimizer)op->mlp);
	case SUF_NONE: break;
	}
	return NULL;
}

static void on_host(const struct op *op, struct work *out)
{
	if (out->form == FORM_FIT)
		rows[op->kind].measure(op, out->term);
	else if (out->form == FORM_CURVE)
		rows[op->kind].measure(op, &out->elements);
}

static void on_gpu(const struct op *op, int64_t sms, struct work *out)
{
	size_t n = strlen(out->name);
	if (out->form == FORM_CURVE)
		out->elements = out->footprint_B;
	if (out->form != FORM_FIT)
		return;
	rows[op->kind].on_gpu(op, sms, out->term);
	n += (size_t)snprintf(out->name + n, sizeof out->name - n, ".%s", dtype_name((enum dtype)op->dtype));
	if (op_is_flash(op))
		snprintf(out->name + n, sizeof out->name - n, ".%lld", (long long)kernel_width(op->d[4]));
}

void work_of(const struct op *op, const struct work_device *device, struct work *out)
{
	*out = (struct work){.form = rows[op->kind].form};
	const char *suffix = suffix_of(op);
	bool passes = op->kind == OP_OPTIMIZER && !(op->flags & OP_FUSED); /* another kernel: one pass over memory for each term */
	snprintf(out->name, sizeof out->name, "%s%s%s%s%s", rows[op->kind].like ? rows[op->kind].like : op_kind_info(op->kind)->name, suffix ? "." : "", suffix ? suffix : "", passes ? ".unfused" : "", op->flags & OP_STATES_8 ? ".8" : "");
	if (out->form == FORM_CURVE)
		out->footprint_B = op_read_B(op) + op_write_B(op);
	if (device && device->gpu)
		on_gpu(op, device->sms, out);
	else
		on_host(op, out);
}
