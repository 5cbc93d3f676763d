#include "step/operators.h"

#include <math.h>

#include "base/array.h"
#include "base/sourced.h"
#include "base/suggest.h"
#include "step/op.h"
#include "step/stack.h"

/* ---- reading ---- */

#define OPERATOR_NAME(id, name) #name,
static const char *const names[] = {"", OPERATORS(OPERATOR_NAME)};

const char *operator_name(enum operator_kind k) { return names[k]; }

static enum status read_list(const struct ynode *n, double *number, size_t count, struct error *e)
{
	struct sourced entry;
	enum status st = sourced_read(n, &entry, e);
	if (st)
		return st;
	if (entry.value->kind != Y_SEQ || entry.value->n != count)
		return ynode_error(entry.value, e, "%s: expected a list of %zu numbers", n->key, count);
	for (size_t i = 0; i < count && !st; i++)
		st = ynode_quantity_with_unit(entry.value->child[i], UNIT_NONE, 0, 1000, &number[i], e);
	return st;
}

static enum status read_pairs(const struct ynode *n, struct accesses out[2], struct error *e)
{
	double x[4];
	const enum status st = read_list(n, x, COUNT(x), e);
	if (!st) {
		out[false] = (struct accesses){x[0], x[1]};
		out[true] = (struct accesses){x[2], x[3]};
	}
	return st;
}

static enum status read_accesses(const struct ynode *n, size_t k, struct operators *out, struct error *e)
{
	return read_pairs(n, out->of[k], e);
}

static enum status read_reduced(const struct ynode *n, size_t k, struct operators *out, struct error *e)
{
	return read_pairs(n, out->reduced[k], e);
}

static enum status read_passes(const struct ynode *n, size_t k, struct operators *out, struct error *e)
{
	double x[6];
	const enum status st = read_list(n, x, COUNT(x), e);
	if (!st) {
		out->unvectorized[k][false] = (struct unvectorized){x[0], {x[1], x[2]}};
		out->unvectorized[k][true] = (struct unvectorized){x[3], {x[4], x[5]}};
	}
	return st;
}

static enum status read_kernels(const struct ynode *n, size_t k, struct operators *out, struct error *e)
{
	return read_list(n, out->kernels[k], 2, e);
}

static enum status read_map(const struct ynode *map, struct operators *out,
	enum status (*read)(const struct ynode *n, size_t k, struct operators *out, struct error *e), struct error *e)
{
	enum status st = ST_OK;
	if (map->kind != Y_MAP)
		return ynode_error(map, e, "%s: expected a mapping", map->key);
	for (size_t i = 0; i < map->n && !st; i++) {
		const struct ynode *n = map->child[i];
		const size_t k = suggest_find(n->key, names, COUNT(names));
		st = k < COUNT(names) ? read(n, k, out, e)
		                      : ynode_error_key(n, e, "%s: unknown operator%s", n->key,
						suggest(n->key, names + 1, COUNT(names) - 1, NULL).text);
	}
	return st;
}

enum status operators_read_unvectorized(const struct ynode *map, struct operators *out, struct error *e)
{
	return read_map(map, out, read_passes, e);
}

enum status operators_read_reductions(const struct ynode *map, struct operators *out, struct error *e)
{
	return read_map(map, out, read_reduced, e);
}

enum status operators_read_kernels(const struct ynode *map, struct operators *out, struct error *e)
{
	return read_map(map, out, read_kernels, e);
}

enum status operators_read(const struct ynode *map, struct operators *out, struct error *e)
{
	enum status st = read_map(map, out, read_accesses, e);
	for (size_t k = 1; k < OPERATOR_LOGITS && !st && !out->counted; k++)
		if (!ynode_get(map, names[k]))
			st = ynode_error(map, e, "%s: '%s' is missing", map->key, names[k]);
	out->counted = !st;
	return st;
}

/* ---- which operator an op is ---- */

/* OPERATOR_NONE: kinds that nobody counted. */
static const uint8_t operator_of_kind[OP_KIND_COUNT] = {
	[OP_NORM] = OPERATOR_LAYER_NORM,
	[OP_NORM_GRAD] = OPERATOR_LAYER_NORM_GRAD,
	[OP_QK_NORM] = OPERATOR_RMS_NORM,
	[OP_QK_NORM_GRAD] = OPERATOR_RMS_NORM_GRAD,
	[OP_ADD] = OPERATOR_RESIDUAL,
	[OP_BIAS] = OPERATOR_BIAS,
	[OP_BIAS_GRAD] = OPERATOR_BIAS_GRAD,
	[OP_ACT] = OPERATOR_ACTIVATION,
	[OP_ACT_GRAD] = OPERATOR_ACTIVATION_GRAD,
	[OP_GATE_ACT] = OPERATOR_ACTIVATION,
	[OP_GATE_MUL] = OPERATOR_GATE,
	[OP_ROPE] = OPERATOR_ROTARY,
	[OP_MODULATE] = OPERATOR_MODULATION,
	[OP_MODULATE_GRAD] = OPERATOR_MODULATION_GRAD,
	[OP_GATED_ADD] = OPERATOR_GATED_RESIDUAL,
	[OP_GATED_ADD_GRAD] = OPERATOR_GATED_RESIDUAL_GRAD,
	[OP_ATTN_SOFTMAX] = OPERATOR_SOFTMAX,
	[OP_ATTN_SOFTMAX_GRAD] = OPERATOR_SOFTMAX_GRAD,
	[OP_EMBED_GRAD] = OPERATOR_EMBED_GRAD,
};

/* Returns the kernel in place of an operator's where the stack fuses that; OPERATOR_NONE: it does not. */
static enum operator_kind fused_of(const struct op *op, int fused)
{
	const bool grad = op->kind == OP_NORM_GRAD || op->kind == OP_QK_NORM_GRAD || op->kind == OP_ACT_GRAD ||
	                  (op->kind == OP_ROPE && op->flags & OP_INVERSE);
	const enum operator_kind norm = fused & FUSE_NORM         ? OPERATOR_FUSED_NORM + grad
	                                : fused & FUSE_TORCH_NORM ? OPERATOR_TORCH_NORM + grad
	                                                          : OPERATOR_NONE;
	switch (op->kind) {
	case OP_NORM:
	case OP_NORM_GRAD: return op->flags & OP_RMS ? norm : OPERATOR_NONE;
	case OP_QK_NORM:
	case OP_QK_NORM_GRAD:
		return norm == OPERATOR_NONE ? norm : norm + (OPERATOR_FUSED_QK_NORM - OPERATOR_FUSED_NORM);
	case OP_ROPE: return fused & FUSE_ROTARY ? OPERATOR_FUSED_ROTARY + grad : OPERATOR_NONE;
	case OP_ACT:
	case OP_ACT_GRAD: return fused & FUSE_GATE && op_is_gated(op) ? OPERATOR_FUSED_GATE + grad : OPERATOR_NONE;
	default: return OPERATOR_NONE;
	}
}

/* Returns the kernels around an adapter's op. */
static enum operator_kind around_adapter(const struct op *op, enum operator_kind k)
{
	return op->flags & OP_WIDE ? k + (OPERATOR_WIDE_ADAPTER_SUM - OPERATOR_ADAPTER_SUM) : k;
}

/* Kernels of images are not counted here. */
static enum operator_kind operator_of(const struct op *op, const struct stack *s)
{
	const enum operator_kind k = operator_of_kind[op->kind], fused = fused_of(op, s->fused_kernels);
	if (op->images)
		return OPERATOR_NONE;
	if (op->kind == OP_ADD && op->adapter == ADAPTER_SUM)
		return around_adapter(op, OPERATOR_ADAPTER_SUM);
	if (fused != OPERATOR_NONE)
		return fused;
	if (op->kind == OP_NORM && op->flags & OP_RMS)
		return OPERATOR_RMS_NORM;
	if (op->kind == OP_NORM_GRAD && op->flags & OP_RMS)
		return OPERATOR_RMS_NORM_GRAD;
	if (op->kind == OP_ROPE)
		return (s->complex_rotary ? OPERATOR_COMPLEX_ROTARY : OPERATOR_ROTARY) + !!(op->flags & OP_INVERSE);
	if (op->kind == OP_ACT_GRAD && op_is_gated(op))
		return OPERATOR_GATE_GRAD;
	if (op->kind == OP_ATTN_SOFTMAX && op->dtype == DT_FP16)
		return OPERATOR_SOFTMAX_FP16;
	if (op->kind == OP_ATTN_SOFTMAX_GRAD && op->dtype == DT_FP16)
		return OPERATOR_SOFTMAX_FP16_GRAD;
	return k;
}

/* ---- its bytes ---- */

double operators_elements(const struct op *op)
{
	const struct op_attn *a = &op->attn;
	const double rows = (double)a->batch * (double)a->seq;
	switch (op->kind) {
	case OP_QK_NORM:
	case OP_QK_NORM_GRAD: return rows * (double)(a->heads + a->kv_heads) * (double)a->head_dim;
	case OP_ROPE:
		return rows * (double)(a->heads + a->kv_heads) * (double)(a->rotated > 0 ? a->rotated : a->head_dim);
	case OP_ATTN_SOFTMAX:
	case OP_ATTN_SOFTMAX_GRAD: return rows * (double)a->heads * (double)op_keys(op);
	case OP_MODULATE:
	case OP_MODULATE_GRAD:
	case OP_GATED_ADD:
	case OP_GATED_ADD_GRAD:
		return (double)op->modulate.batch * (double)op->modulate.seq * (double)op->modulate.cols;
	case OP_EMBED:
	case OP_EMBED_GRAD:
	case OP_POSITION: return (double)op->embed.rows * (double)op->embed.cols;
	default: return (double)op->matrix.rows * (double)op->matrix.cols;
	}
}

static void add(struct accesses *sum, const struct stack *s, enum operator_kind k, double times)
{
	sum->operand += times * s->operators.of[k][s->autocast].operand;
	sum->fp32 += times * s->operators.of[k][s->autocast].fp32;
}

/* What is around an adapter has the format that its op leaves. */
static double accesses_B(const struct op *op, const struct accesses *a)
{
	const uint8_t operand = op->adapter != ADAPTER_NONE ? op->out_dtype : op->dtype;
	return a->operand * dtype_bytes((enum dtype)operand) + a->fp32 * dtype_bytes(DT_FP32);
}

/* Returns the kernels of a gelu that is written out, or of its gradient, which stand for an activation's one;
 * OPERATOR_NONE: the op has none. */
static enum operator_kind composed_gelu_of(const struct op *op, const struct stack *s)
{
	const bool activates = op->kind == OP_ACT || op->kind == OP_GATE_ACT || op->kind == OP_ACT_GRAD;
	if (!s->composed_gelu || !activates || !activation_is_gelu(op->mlp))
		return OPERATOR_NONE;
	return op->kind == OP_ACT_GRAD ? OPERATOR_COMPOSED_GELU_GRAD : OPERATOR_COMPOSED_GELU;
}

double operators_heads_B(const struct op *op, const struct stack *s)
{
	const struct op_attn *a = &op->attn;
	const double rows = (double)a->batch * (double)(a->seq + op_keys(op));
	return s->operators.counted ? rows * (double)a->heads * (double)a->head_dim *
	                                      accesses_B(op, &s->operators.of[OPERATOR_HEADS][s->autocast])
	                            : 0;
}

/* Elements of what an adapter's product reads, or of the gradient that it writes, in each of its modules. */
static double adapter_elements(const struct op *op)
{
	const struct op_gemm *d = &op->gemm;
	const double rows = (double)d->m * (op->kind == OP_GROUPED_GEMM ? (double)d->groups : 1);
	switch ((enum adapter_part)op->adapter) {
	case ADAPTER_SUM_GRAD: return rows * (double)d->k;
	case ADAPTER_INPUT: return rows * (double)d->k * op->modules;
	case ADAPTER_INPUT_GRAD: return rows * (double)d->n * op->modules;
	case ADAPTER_NONE:
	case ADAPTER_SUM: break;
	}
	return 0;
}

/* Returns the kernels around the product of an adapter's factor; OPERATOR_NONE, without accesses, of other ops. */
static enum operator_kind adapter_operator(const struct op *op, const struct stack *s)
{
	static const enum operator_kind kernels[] = {[ADAPTER_SUM_GRAD] = OPERATOR_ADAPTER_SUM_GRAD,
		[ADAPTER_INPUT] = OPERATOR_ADAPTER_INPUT,
		[ADAPTER_INPUT_GRAD] = OPERATOR_ADAPTER_INPUT_GRAD};
	const bool counted = s->operators.counted && op_is_product(op) && op->adapter != ADAPTER_NONE;
	return counted ? around_adapter(op, kernels[op->adapter]) : OPERATOR_NONE;
}

double operators_adapter_B(const struct op *op, const struct stack *s)
{
	const enum operator_kind k = adapter_operator(op, s);
	return adapter_elements(op) * accesses_B(op, &s->operators.of[k][s->autocast]);
}

/* Operators that an op runs besides its own; OPERATOR_NONE: none. */
struct further {
	enum operator_kind k[4];
};

/* Returns what the gate of gpt-oss's experts, or its gradient, runs besides. */
static enum operator_kind clamped_of(const struct op *op, const struct stack *s)
{
	if (!s->clamped_gate || (op->kind != OP_GATE_MUL && (op->kind != OP_ACT_GRAD || !op_is_gated(op))))
		return OPERATOR_NONE;
	return op->kind == OP_ACT_GRAD ? OPERATOR_CLAMPED_GATE_GRAD : OPERATOR_CLAMPED_GATE;
}

static struct further further_of(const struct op *op, const struct stack *s)
{
	const bool scores = op->kind == OP_ATTN_SOFTMAX || op->kind == OP_ATTN_SOFTMAX_GRAD;
	return (struct further){{scores ? OPERATOR_SCALE : OPERATOR_NONE,
		scores && op->flags & OP_CAUSAL ? OPERATOR_MASK : OPERATOR_NONE,
		op->flags & OP_DX_ACCUMULATE ? OPERATOR_RESIDUAL : OPERATOR_NONE, clamped_of(op, s)}};
}

double operators_B(const struct op *op, const struct stack *s)
{
	const enum operator_kind k = s->operators.counted ? operator_of(op, s) : OPERATOR_NONE;
	if (k == OPERATOR_NONE)
		return -1;
	struct accesses sum = s->operators.of[k][s->autocast];
	const enum operator_kind gelu = composed_gelu_of(op, s);
	if (gelu != OPERATOR_NONE) {
		add(&sum, s, gelu, 1);
		add(&sum, s, operator_of_kind[op->kind], -1); /* the gate's product stays */
	}
	const struct further further = further_of(op, s);
	for (size_t i = 0; i < COUNT(further.k); i++)
		add(&sum, s, further.k[i], 1);
	return operators_elements(op) * accesses_B(op, &sum);
}

static double kernels_of(const struct stack *s, enum operator_kind k)
{
	return fmax(1, s->operators.kernels[k][s->autocast]);
}

double operators_kernels(const struct op *op, const struct stack *s)
{
	const enum operator_kind own = s->operators.counted ? operator_of(op, s) : OPERATOR_NONE;
	if (own == OPERATOR_NONE)
		return 1;
	const enum operator_kind gelu = composed_gelu_of(op, s), k = gelu != OPERATOR_NONE ? gelu : own;
	const bool both = op->kind == OP_QK_NORM || op->kind == OP_QK_NORM_GRAD;
	double sum = kernels_of(s, k) * (both ? 2 : 1);
	const struct further further = further_of(op, s);
	for (size_t i = 0; i < COUNT(further.k); i++)
		sum += further.k[i] == OPERATOR_NONE ? 0 : kernels_of(s, further.k[i]);
	return sum;
}

double operators_reduced_B(const struct op *op, const struct stack *s)
{
	const enum operator_kind k = s->operators.counted ? operator_of(op, s) : OPERATOR_NONE;
	return operators_elements(op) * accesses_B(op, &s->operators.reduced[k][s->autocast]);
}

void operators_set_logit_casts(struct operators *o, double casts)
{
	for (int autocast = 0; autocast < 2; autocast++)
		o->unvectorized[OPERATOR_LOGITS][autocast] = (struct unvectorized){casts, {casts, casts}};
}

/* Returns the operator whose kernels that are not vectorized an op runs. */
static enum operator_kind unvectorized_of(const struct op *op, const struct stack *s)
{
	if (op_is_product(op))
		return adapter_operator(op, s);
	if (op_class_of(op) == CLASS_LOSS)
		return OPERATOR_LOGITS;
	const enum operator_kind gelu = composed_gelu_of(op, s), clamped = clamped_of(op, s);
	if (gelu != OPERATOR_NONE)
		return gelu;
	if (clamped != OPERATOR_NONE)
		return clamped; /* all of a gate's own kernels are vectorized */
	return s->operators.counted ? operator_of(op, s) : OPERATOR_NONE;
}

struct slow_kernels operators_unvectorized(const struct op *op, const struct stack *s)
{
	const struct unvectorized *u = &s->operators.unvectorized[unvectorized_of(op, s)][s->autocast];
	if (!(u->passes > 0))
		return (struct slow_kernels){0, 0};
	const double elements = op_is_product(op) ? adapter_elements(op) : operators_elements(op);
	return (struct slow_kernels){elements * u->passes, elements * accesses_B(op, &u->accesses)};
}
