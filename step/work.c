#include "step/work.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The suffix of a kind's name tells kernels of one shape apart. */
enum suffix { SUF_NONE, SUF_TRANS, SUF_NORM, SUF_MLP, SUF_OPTIMIZER };

static void gemm_terms(const struct op *op, double *term)
{
	const struct op_gemm d = op_as_gemm(op);
	double m = (double)d.m, n = (double)d.n, k = (double)d.k;
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
		term[i] *= (double)op->gemm.groups;
}

static bool is_grad(const struct op *op) { return op->kind == OP_ATTENTION_GRAD || op->kind == OP_ATTENTION_PART_GRAD; }

/* (query, key) pairs: causal, each tile of queries with the keys up to the tile's end, and half of those of other
 * ranks. Where queries are the vectors, a tile of them is computed `whole`, whatever part of the last one is there. */
static double flash_pairs(const struct op *op, bool whole)
{
	double s = (double)op->attn.seq, keys = (double)op_keys(op), tiles = ceil(s / FLASH_TILE),
	       last = whole ? FLASH_TILE : s - FLASH_TILE * (tiles - 1), queries = FLASH_TILE * (tiles - 1) + last;
	if (!(op->flags & OP_CAUSAL))
		return queries * keys;
	if (!op_sees_itself(op))
		return queries * keys / 2;
	if (op_window(op) > 0 || op_chunk(op) > 0)
		return fmin(s * keys, op_pairs(op) + op_masked_ends(op) * FLASH_TILE / 2);
	return FLASH_TILE * FLASH_TILE * tiles * (tiles - 1) / 2 + last * s + queries * (keys - s) / 2;
}

static void flash_terms(const struct op *op, double *term)
{
	double b = (double)op->attn.batch, heads = (double)op->attn.heads, kv = (double)op->attn.kv_heads,
	       s = (double)op->attn.seq, width = (double)op->attn.head_dim, value = (double)op_value_dim(op),
	       pairs = flash_pairs(op, true), products = pairs * (width + value) / 2;
	if (is_grad(op)) /* two of its five products have D as their vectors, in whole vectors of FLASH_LANES */
		products = (pairs * (2 * width + value) +
				   flash_pairs(op, false) * (ceil(width / FLASH_LANES) + ceil(value / FLASH_LANES)) *
					   FLASH_LANES) /
		           5;
	term[0] = 1;
	term[1] = b * heads * products;
	term[2] = b * heads * pairs;
	term[3] = b * (s * heads * width + (double)op_keys(op) * kv * (width + value));
	term[4] = b * heads;
}

static void naive_terms(const struct op *op, double *term)
{
	double b = (double)op->attn.batch, heads = (double)op->attn.heads, s = (double)op->attn.seq,
	       width = (double)op->attn.head_dim, keys = (double)op_keys(op);
	term[0] = 1;
	term[1] = b * heads * s * keys * width;
	term[2] = b * heads * s * keys;
	term[3] = b * (s + keys) / 2 * heads * width;
	term[4] = b * heads;
}

/* The recurrence as it stands, whatever the chunks. */
static void scan_terms(const struct op *op, double *term)
{
	const struct op_ssm *d = &op->ssm;
	const double rows = (double)d->batch * (double)d->seq, channels = (double)d->heads * (double)d->head_dim;
	term[0] = 1;
	term[1] = rows * channels * (double)d->state;
	term[2] = rows * channels;
	term[3] = rows * (double)d->groups * (double)d->state;
	term[4] = (double)d->batch * (double)d->heads;
}

/* ---- on a GPU ---- */

/* The products of a group fill the device together. */
static void gpu_gemm_terms(const struct op *op, const struct work_device *device, double *term)
{
	const struct op_gemm d = op_as_gemm(op);
	const double groups = op->kind == OP_GROUPED_GEMM ? (double)d.groups : 1;
	term[0] = 1;
	term[1] = tiles_of(&device->tiles, groups, d.m, d.n, d.k, device->sms).full_flop;
	term[2] = tiles_of(&device->tiles, groups, d.m, d.n, 1, device->sms).full_flop;
}

/* Returns the head dim that a flash kernel pads to. Those beyond the largest kernel stay as they are. */
static int64_t kernel_width(int64_t width)
{
	static const int64_t widths[] = {64, 128, 256};
	for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
		if (width <= widths[i])
			return widths[i];
	return width;
}

/* Returns the bytes of flash attention's arguments if each head had keys and values of its own. A tile belongs to a
 * head of queries: it loads keys and values, and the gradient's sums of them, as often as there are such heads. */
static double flash_B(const struct op *op)
{
	struct op own = *op;
	own.attn.kv_heads = own.attn.heads;
	return op_read_B(&own) + op_write_B(&own);
}

static void gpu_flash_terms(const struct op *op, const struct work_device *device, double *term)
{
	double s = (double)op->attn.seq, pairs = op_pairs(op), own = is_grad(op) ? 3 : 1, values = is_grad(op) ? 2 : 1;
	pairs = fmin(s * (double)op_keys(op), pairs + op_masked_ends(op) * device->tiles.attention / 2);
	term[0] = 1;
	term[1] = 2 * (double)op->attn.batch * (double)op->attn.heads * pairs *
	          (own * (double)kernel_width(op->attn.head_dim) + values * (double)kernel_width(op_value_dim(op)));
	term[2] = flash_B(op);
}

static void gpu_naive_terms(const struct op *op, const struct work_device *device, double *term)
{
	(void)device;
	term[0] = 1;
	term[1] = op_flop(op);
	term[2] = (double)op->attn.batch * (double)op->attn.heads * (double)op->attn.seq * (double)op_keys(op);
}

static void gpu_scan_terms(const struct op *op, const struct work_device *device, double *term)
{
	(void)device;
	term[0] = 1;
	term[1] = op_flop(op);
	term[2] = op_read_B(op) + op_write_B(op);
}

/* ---- the rows of step/ops.def ---- */

/* clang-format off */
static const struct {
	enum work_form form;
	enum suffix suffix;
	enum op_kind like;
} rows[] = {
#define FIT(host_terms, gpu_terms) FORM_FIT
#define CURVE(elements) FORM_CURVE
#define NO_FORM FORM_NONE
#define OP(kind, name, class_, family, shown, flop, work, suffix, like, args) \
	[OP_##kind] = {work, SUF_##suffix, OP_##like},
#include "step/ops.def"
#undef FIT
#undef CURVE
#undef NO_FORM
};

/* Fills the terms of a fit, or the elements of a curve on the host's cores. */
static void measure(const struct op *op, const struct work_device *device, struct work *out)
{
	const bool gpu = device && device->gpu;
	switch ((enum op_kind)op->kind) {
#define FIT(host_terms, gpu_terms) gpu ? gpu_terms(op, device, out->term) : host_terms(op, out->term)
#define CURVE(count) out->elements = gpu ? out->footprint_B : (count)
#define NO_FORM (void)out
#define OP(kind, name, class_, family, shown, flop, work, ...) OP_CASE(kind, family, work)
#include "step/ops.def"
	case OP_KIND_COUNT: break;
	}
}
/* clang-format on */

/* A pooler's few rows take gelu's time, which has a tanh in it too. */
static const char *const mlp_words[] = {"gelu", "relu", "squared_relu", "swiglu",
	"geglu", [ACTIVATION_TANH] = "gelu", [ACTIVATION_SILU] = "gelu"};
static_assert(sizeof mlp_words / sizeof mlp_words[0] == ACTIVATION_COUNT, "a word for each activation");

static const char *suffix_of(const struct op *op)
{
	switch (rows[op->kind].suffix) {
	case SUF_TRANS:
		return op->flags & OP_TRANS_A   ? "tn"
		       : op->flags & OP_TRANS_B ? "nt"
		                                : "nn"; /* no gradient transposes both */
	case SUF_NORM: return op->flags & OP_RMS ? "rmsnorm" : "layernorm";
	case SUF_MLP: return mlp_words[op->mlp];
	case SUF_OPTIMIZER: return optimizer_name((enum optimizer)op->optimizer);
	case SUF_NONE: break;
	}
	return NULL;
}

/* On a GPU the name of a fit carries the format of the operands, that of flash attention also the kernel's width. */
static void add_gpu_name(const struct op *op, struct work *out)
{
	size_t n = strlen(out->name);
	if (out->form != FORM_FIT)
		return;
	n += (size_t)snprintf(out->name + n, sizeof out->name - n, ".%s", dtype_name((enum dtype)op->dtype));
	if (op_is_flash(op))
		snprintf(out->name + n, sizeof out->name - n, ".%lld", (long long)kernel_width(op->attn.head_dim));
}

void work_of(const struct op *op, const struct work_device *device, struct work *out)
{
	*out = (struct work){.form = rows[op->kind].form};
	const char *suffix = suffix_of(op);
	bool passes = op->kind == OP_OPTIMIZER &&
	              !(op->flags & OP_FUSED); /* another kernel: one pass over memory for each term */
	snprintf(out->name, sizeof out->name, "%s%s%s%s%s", op_kind_info(rows[op->kind].like)->name, suffix ? "." : "",
		suffix ? suffix : "", passes ? ".unfused" : "", op->flags & OP_STATES_8 ? ".8" : "");
	if (out->form == FORM_CURVE)
		out->footprint_B = op_read_B(op) + op_write_B(op);
	measure(op, device, out);
	if (device && device->gpu)
		add_gpu_name(op, out);
}
