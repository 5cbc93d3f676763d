#include "exec/cuda/attention_cudnn.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/vec.h"
#include "exec/cuda/check.h"

/* From 9.6 on cuDNN itself clears what it sums dQ in. */
#define CUDNN_OLDEST 90600
/* From here on its kernels know a mask of -inf. Before, NVIDIA's own graphs mask with the lowest number
 * (cudnn-frontend, get_negative_inf_value). */
#define CUDNN_INFINITE_MASKS 91000
#if CUDNN_VERSION < 90800 /* which named them */
#define CUDNN_ATTR_ENGINEHEUR_DEVICEPROP ((cudnnBackendAttributeName_t)204)
#define CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP ((cudnnBackendAttributeName_t)407)
#endif

/* ---- the graphs, as tables ---- */

/* Dimensions and strides in values; cuDNN takes batch, heads, rows, columns. In qkv a row of W = (H + 2 K) D values
 * holds all heads of a token. */
enum shape { QKV_ROWS, QKV_COLS, OUT_ROWS, SCORES, SCORES_COLS, STATISTIC, HEADS_FULL, OUT_PRODUCT, ONE_VALUE };
enum place {
	VIRTUAL,   /* never in memory */
	ARGUMENT,  /* of the op; qkv and dqkv from `part` on */
	WORKSPACE, /* behind the plan's own workspace */
	CONSTANT,  /* by value */
};
enum format { AS_STORED, FLOAT, INT, BOOL };
enum part { WHOLE, Q_PART, K_PART, V_PART };
enum constant { SOFTMAX_SCALE, MASKED, ONE, CONSTANT_COUNT };

struct tensor_row {
	const char *name;
	uint8_t shape, format, place;
	uint8_t arg; /* ARGUMENT: of the op; CONSTANT: which */
	uint8_t part;
};

enum node_kind { MATMUL, POINTWISE, REDUCE, RESHAPE, SAME /* y is another name of x */ };
enum when { ALWAYS, CAUSAL, NOT_CAUSAL, GROUPED, NOT_GROUPED };

struct node_row {
	uint8_t kind, when;
	int mode;          /* POINTWISE: cudnnPointwiseMode_t; REDUCE: cudnnReduceTensorOp_t */
	int8_t x, b, t, y; /* tensors; -1: none */
	uint8_t compute;   /* enum format */
	int8_t axis;       /* of GEN_INDEX, else -1 */
};

#define POINT1(mode, x, y) \
	{ \
		POINTWISE, ALWAYS, mode, x, -1, -1, y, FLOAT, -1 \
	}
#define POINT2(mode, x, b, y) \
	{ \
		POINTWISE, ALWAYS, mode, x, b, -1, y, FLOAT, -1 \
	}
#define SUM_OR_MAX(mode, x, y) \
	{ \
		REDUCE, ALWAYS, mode, x, -1, -1, y, FLOAT, -1 \
	}
#define PRODUCT(x, b, y) \
	{ \
		MATMUL, ALWAYS, 0, x, b, -1, y, FLOAT, -1 \
	}
#define VIEW(x, y) \
	{ \
		RESHAPE, ALWAYS, 0, x, -1, -1, y, FLOAT, -1 \
	}
#define NAME_OF(when, x, y) \
	{ \
		SAME, when, 0, x, -1, -1, y, FLOAT, -1 \
	}
/* y = row >= column ? x : masked */
#define CAUSAL_MASK(x, row, col, keep, masked, y) \
	{POINTWISE, CAUSAL, CUDNN_POINTWISE_GEN_INDEX, x, -1, -1, row, FLOAT, 2}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_GEN_INDEX, x, -1, -1, col, FLOAT, 3}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_CMP_GE, row, col, -1, keep, BOOL, -1}, \
		{POINTWISE, CAUSAL, CUDNN_POINTWISE_BINARY_SELECT, x, masked, keep, y, FLOAT, -1}, \
	{ \
		SAME, NOT_CAUSAL, 0, x, -1, -1, y, FLOAT, -1 \
	}

enum forward_tensor {
	F_Q,
	F_KT,
	F_V,
	F_SCALE,
	F_NEVER,
	F_S,
	F_SCALED,
	F_ROW,
	F_COL,
	F_KEEP,
	F_MASKED,
	F_MAX,
	F_SHIFTED,
	F_EXP,
	F_SUM,
	F_LOG,
	F_LSE,
	F_P,
	F_OUT,
	F_COUNT
};
static const struct tensor_row forward_tensors[] = {
	[F_Q] = {"q", QKV_ROWS, AS_STORED, ARGUMENT, 0, Q_PART},
	[F_KT] = {"k transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, K_PART},
	[F_V] = {"v", QKV_ROWS, AS_STORED, ARGUMENT, 0, V_PART},
	[F_SCALE] = {"scale", ONE_VALUE, FLOAT, CONSTANT, SOFTMAX_SCALE, WHOLE},
	[F_NEVER] = {"masked", ONE_VALUE, FLOAT, CONSTANT, MASKED, WHOLE},
	[F_S] = {"scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SCALED] = {"scaled scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_ROW] = {"row", SCORES, INT, VIRTUAL, 0, WHOLE},
	[F_COL] = {"column", SCORES, INT, VIRTUAL, 0, WHOLE},
	[F_KEEP] = {"row >= column", SCORES, BOOL, VIRTUAL, 0, WHOLE},
	[F_MASKED] = {"masked scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_MAX] = {"row maxima", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SHIFTED] = {"scores - max", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_EXP] = {"exponentials", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[F_SUM] = {"row sums", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_LOG] = {"log of row sums", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[F_LSE] = {"lse", STATISTIC, FLOAT, ARGUMENT, 2, WHOLE},
	[F_P] = {"probabilities", SCORES, AS_STORED, VIRTUAL, 0, WHOLE},
	[F_OUT] = {"out", OUT_ROWS, AS_STORED, ARGUMENT, 1, WHOLE},
};
static const struct node_row forward_nodes[] = {
	PRODUCT(F_Q, F_KT, F_S),
	POINT2(CUDNN_POINTWISE_MUL, F_S, F_SCALE, F_SCALED),
	CAUSAL_MASK(F_SCALED, F_ROW, F_COL, F_KEEP, F_NEVER, F_MASKED),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_MAX, F_MASKED, F_MAX),
	POINT2(CUDNN_POINTWISE_SUB, F_MASKED, F_MAX, F_SHIFTED),
	POINT1(CUDNN_POINTWISE_EXP, F_SHIFTED, F_EXP),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_ADD, F_EXP, F_SUM),
	POINT1(CUDNN_POINTWISE_LOG, F_SUM, F_LOG),
	POINT2(CUDNN_POINTWISE_ADD, F_MAX, F_LOG, F_LSE),
	POINT2(CUDNN_POINTWISE_DIV, F_EXP, F_SUM, F_P),
	PRODUCT(F_P, F_V, F_OUT),
};

enum grad_tensor {
	G_Q,
	G_KT,
	G_VT,
	G_OUT,
	G_DOUT,
	G_LSE,
	G_DELTA,
	G_DQ,
	G_DK,
	G_DV,
	G_SCALE,
	G_NEVER,
	G_ONE,
	G_DOUT_OUT,
	G_ROW_SUM,
	G_S,
	G_SCALED,
	G_SHIFTED,
	G_ROW,
	G_COL,
	G_KEEP,
	G_MASKED,
	G_P,
	G_PT,
	G_DV_FULL,
	G_DP,
	G_DP_DELTA,
	G_DP_P,
	G_DS,
	G_DST,
	G_DK_FULL,
	G_K,
	G_DQ_SUM,
	G_COUNT
};
static const struct tensor_row grad_tensors[] = {
	[G_Q] = {"q", QKV_ROWS, AS_STORED, ARGUMENT, 0, Q_PART},
	[G_KT] = {"k transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, K_PART},
	[G_VT] = {"v transposed", QKV_COLS, AS_STORED, ARGUMENT, 0, V_PART},
	[G_OUT] = {"out", OUT_ROWS, AS_STORED, ARGUMENT, 1, WHOLE},
	[G_DOUT] = {"dout", OUT_ROWS, AS_STORED, ARGUMENT, 3, WHOLE},
	[G_LSE] = {"lse", STATISTIC, FLOAT, ARGUMENT, 2, WHOLE},
	[G_DELTA] = {"delta", STATISTIC, FLOAT, ARGUMENT, 4, WHOLE},
	[G_DQ] = {"dq", QKV_ROWS, AS_STORED, ARGUMENT, 5, Q_PART},
	[G_DK] = {"dk", QKV_ROWS, AS_STORED, ARGUMENT, 5, K_PART},
	[G_DV] = {"dv", QKV_ROWS, AS_STORED, ARGUMENT, 5, V_PART},
	[G_SCALE] = {"scale", ONE_VALUE, FLOAT, CONSTANT, SOFTMAX_SCALE, WHOLE},
	[G_NEVER] = {"masked", ONE_VALUE, FLOAT, CONSTANT, MASKED, WHOLE},
	[G_ONE] = {"1", ONE_VALUE, FLOAT, CONSTANT, ONE, WHOLE},
	[G_DOUT_OUT] = {"dout x out", OUT_PRODUCT, FLOAT, VIRTUAL, 0, WHOLE},
	[G_ROW_SUM] = {"row sums of dout x out", STATISTIC, FLOAT, VIRTUAL, 0, WHOLE},
	[G_S] = {"scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_SCALED] = {"scaled scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_SHIFTED] = {"scores - lse", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_ROW] = {"row", SCORES, INT, VIRTUAL, 0, WHOLE},
	[G_COL] = {"column", SCORES, INT, VIRTUAL, 0, WHOLE},
	[G_KEEP] = {"row >= column", SCORES, BOOL, VIRTUAL, 0, WHOLE},
	[G_MASKED] = {"masked scores", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_P] = {"probabilities", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_PT] = {"probabilities transposed", SCORES_COLS, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DV_FULL] = {"dv of each query head", HEADS_FULL, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DP] = {"dp", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DP_DELTA] = {"dp - delta", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DP_P] = {"(dp - delta) p", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DS] = {"ds", SCORES, FLOAT, VIRTUAL, 0, WHOLE},
	[G_DST] = {"ds transposed", SCORES_COLS, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_DK_FULL] = {"dk of each query head", HEADS_FULL, AS_STORED, VIRTUAL, 0, WHOLE},
	[G_K] = {"k", QKV_ROWS, AS_STORED, VIRTUAL, 0, K_PART},
	[G_DQ_SUM] = {"sum of dq", HEADS_FULL, FLOAT, WORKSPACE, 0, WHOLE},
};
static const struct node_row grad_nodes[] = {
	/* delta; the engines know the pattern with a factor, which dropout needs */
	POINT2(CUDNN_POINTWISE_MUL, G_DOUT, G_OUT, G_DOUT_OUT),
	SUM_OR_MAX(CUDNN_REDUCE_TENSOR_ADD, G_DOUT_OUT, G_ROW_SUM),
	POINT2(CUDNN_POINTWISE_MUL, G_ROW_SUM, G_ONE, G_DELTA),
	/* P = exp(S - lse); dV = P^T dO */
	PRODUCT(G_Q, G_KT, G_S),
	POINT2(CUDNN_POINTWISE_MUL, G_S, G_SCALE, G_SCALED),
	POINT2(CUDNN_POINTWISE_SUB, G_SCALED, G_LSE, G_SHIFTED),
	CAUSAL_MASK(G_SHIFTED, G_ROW, G_COL, G_KEEP, G_NEVER, G_MASKED),
	POINT1(CUDNN_POINTWISE_EXP, G_MASKED, G_P),
	VIEW(G_P, G_PT),
	NAME_OF(NOT_GROUPED, G_DV, G_DV_FULL),
	PRODUCT(G_PT, G_DOUT, G_DV_FULL),
	{REDUCE, GROUPED, CUDNN_REDUCE_TENSOR_ADD, G_DV_FULL, -1, -1, G_DV, FLOAT, -1},
	/* dS = P x (dO V^T - delta) x scale; dK = dS^T Q */
	PRODUCT(G_DOUT, G_VT, G_DP),
	POINT2(CUDNN_POINTWISE_SUB, G_DP, G_DELTA, G_DP_DELTA),
	POINT2(CUDNN_POINTWISE_MUL, G_DP_DELTA, G_P, G_DP_P),
	POINT2(CUDNN_POINTWISE_MUL, G_DP_P, G_SCALE, G_DS),
	VIEW(G_DS, G_DST),
	NAME_OF(NOT_GROUPED, G_DK, G_DK_FULL),
	PRODUCT(G_DST, G_Q, G_DK_FULL),
	{REDUCE, GROUPED, CUDNN_REDUCE_TENSOR_ADD, G_DK_FULL, -1, -1, G_DK, FLOAT, -1},
	/* dQ = dS K, summed over blocks of keys in fp32 */
	VIEW(G_KT, G_K),
	PRODUCT(G_DS, G_K, G_DQ_SUM),
	POINT1(CUDNN_POINTWISE_IDENTITY, G_DQ_SUM, G_DQ),
};

#define MAX_TENSORS 40
#define MAX_NODES 40
static_assert(F_COUNT <= MAX_TENSORS && G_COUNT <= MAX_TENSORS, "room for every tensor");
static_assert(COUNT(forward_nodes) <= MAX_NODES && COUNT(grad_nodes) <= MAX_NODES, "room for every node");

static const struct graph {
	const struct tensor_row *tensors;
	const struct node_row *nodes;
	int n_tensors, n_nodes;
} graphs[] = {
	{forward_tensors, forward_nodes, F_COUNT, COUNT(forward_nodes)},
	{grad_tensors, grad_nodes, G_COUNT, COUNT(grad_nodes)},
};

/* ---- building ---- */

struct cudnn_attention {
	const struct graph *graph;
	int64_t b, H, K, s, D;
	enum dtype stored;
	bool causal;
	float constants[CONSTANT_COUNT];
	VEC(cudnnBackendDescriptor_t) made; /* all of them, destroyed in reverse */
	cudnnBackendDescriptor_t tensors[MAX_TENSORS];
	bool used[MAX_TENSORS]; /* a node of this graph names it */
	cudnnBackendDescriptor_t ops[MAX_NODES], op_graph, config, plan;
	int64_t n_ops;
	int64_t plan_B; /* workspace of the plan; dQ's sums follow */
};

struct attribute {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t count;
	const void *value;
};

static enum status add(struct cudnn_attention *a, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out,
	struct error *e)
{
	if (!vec_reserve(&a->made, 1))
		return error_nomem(e, "a graph of cuDNN's");
	enum status st = CUDNN_CHECK(cudnnBackendCreateDescriptor(type, out), e);
	if (!st)
		(void)vec_push(&a->made, *out);
	return st;
}

static enum status make(struct cudnn_attention *a, cudnnBackendDescriptorType_t type, const struct attribute *set,
	size_t n, cudnnBackendDescriptor_t *out, struct error *e)
{
	enum status st = add(a, type, out, e);
	for (size_t i = 0; !st && i < n; i++)
		st = CUDNN_CHECK(cudnnBackendSetAttribute(*out, set[i].name, set[i].type, set[i].count, set[i].value),
			e);
	return st ? st : CUDNN_CHECK(cudnnBackendFinalize(*out), e);
}
#define MAKE(a, type, out, e, ...) \
	make((a), (type), (const struct attribute[]){__VA_ARGS__}, \
		sizeof((const struct attribute[]){__VA_ARGS__}) / sizeof(struct attribute), (out), (e))

static cudnnDataType_t data_type(const struct cudnn_attention *a, int format)
{
	static const cudnnDataType_t plain[] =
		{[FLOAT] = CUDNN_DATA_FLOAT, [INT] = CUDNN_DATA_INT32, [BOOL] = CUDNN_DATA_BOOLEAN};
	return format == AS_STORED ? (a->stored == DT_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF) : plain[format];
}

static void shape_of(const struct cudnn_attention *a, const struct tensor_row *t, int64_t dim[4], int64_t stride[4])
{
	const int64_t b = a->b, H = a->H, s = a->s, D = a->D, W = (H + 2 * a->K) * D,
		      heads = t->part == K_PART || t->part == V_PART ? a->K : H;
	const int64_t shapes[][2][4] = {
		[QKV_ROWS] = {{b, heads, s, D}, {s * W, D, W, 1}},
		[QKV_COLS] = {{b, heads, D, s}, {s * W, D, 1, W}},
		[OUT_ROWS] = {{b, H, s, D}, {s * H * D, D, H * D, 1}},
		[SCORES] = {{b, H, s, s}, {H * s * s, s * s, s, 1}},
		[SCORES_COLS] = {{b, H, s, s}, {H * s * s, s * s, 1, s}},
		[STATISTIC] = {{b, H, s, 1}, {H * s, s, 1, 1}},
		[HEADS_FULL] = {{b, H, s, D}, {H * s * D, s * D, D, 1}},
		[OUT_PRODUCT] = {{b, H, s, D},
			{H * s * D, s * D, H * D, 1}}, /* virtual: the strides that the engines expect */
		[ONE_VALUE] = {{1, 1, 1, 1}, {1, 1, 1, 1}},
	};
	for (int i = 0; i < 4; i++) {
		dim[i] = shapes[t->shape][0][i];
		stride[i] = shapes[t->shape][1][i];
	}
}

/* Made when a node first names it. */
static enum status tensor(struct cudnn_attention *a, int i, struct error *e)
{
	const struct tensor_row *t = &a->graph->tensors[i];
	a->used[i] = true;
	if (a->tensors[i])
		return ST_OK;
	int64_t dim[4], stride[4], id = i + 1, alignment_B = 16;
	bool is_virtual = t->place == VIRTUAL, by_value = t->place == CONSTANT;
	cudnnDataType_t type = data_type(a, t->format);
	shape_of(a, t, dim, stride);
	enum status st = MAKE(a, CUDNN_BACKEND_TENSOR_DESCRIPTOR, &a->tensors[i], e,
		{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
		{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
		{CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim},
		{CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride},
		{CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment_B},
		{CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual},
		{CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value});
	if (st)
		error_context(e, "tensor \"%s\"", t->name);
	return st;
}

static enum status matmul(struct cudnn_attention *a, const struct node_row *n, cudnnBackendDescriptor_t *op,
	struct error *e)
{
	cudnnDataType_t compute = data_type(a, n->compute);
	cudnnBackendDescriptor_t how;
	enum status st = MAKE(a, CUDNN_BACKEND_MATMUL_DESCRIPTOR, &how, e,
		{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute});
	return st ? st
	          : MAKE(a, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, op, e,
			    {CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how},
			    {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->x]},
			    {CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->b]},
			    {CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->y]});
}

static enum status reduce(struct cudnn_attention *a, const struct node_row *n, cudnnBackendDescriptor_t *op,
	struct error *e)
{
	cudnnDataType_t compute = data_type(a, n->compute);
	cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)n->mode;
	cudnnBackendDescriptor_t how;
	enum status st = MAKE(a, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, &how, e,
		{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode},
		{CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute});
	return st ? st
	          : MAKE(a, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, op, e,
			    {CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &how},
			    {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->x]},
			    {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
				    &a->tensors[n->y]});
}

static enum status reshape(struct cudnn_attention *a, const struct node_row *n, cudnnBackendDescriptor_t *op,
	struct error *e)
{
	return MAKE(a, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, op, e,
		{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->x]},
		{CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->y]});
}

static enum status pointwise(struct cudnn_attention *a, const struct node_row *n, cudnnBackendDescriptor_t *op,
	struct error *e)
{
	cudnnDataType_t compute = data_type(a, n->compute);
	cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)n->mode;
	const int64_t axis = n->axis;
	const float one = 1.0f;
	struct attribute how_set[3] = {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
		{CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute},
		{CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis}};
	cudnnBackendDescriptor_t how;
	enum status st = make(a, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, how_set, n->axis >= 0 ? 3 : 2, &how, e);
	if (st)
		return st;
	struct attribute set[7] = {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
					   &how},
		{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->x]},
		{CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a->tensors[n->y]},
		{CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &one},
		{CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1, &one}};
	size_t count = 5;
	if (n->b >= 0)
		set[count++] = (struct attribute){CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR,
			1, &a->tensors[n->b]};
	if (n->t >= 0)
		set[count++] = (struct attribute){CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR,
			1, &a->tensors[n->t]};
	return make(a, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, set, count, op, e);
}

static bool applies(const struct cudnn_attention *a, int when)
{
	const bool grouped = a->H != a->K;
	const bool answers[] = {[ALWAYS] = true,
		[CAUSAL] = a->causal,
		[NOT_CAUSAL] = !a->causal,
		[GROUPED] = grouped,
		[NOT_GROUPED] = !grouped};
	return answers[when];
}

static enum status node(struct cudnn_attention *a, const struct node_row *n, struct error *e)
{
	static enum status (*const makers[])(struct cudnn_attention *, const struct node_row *,
		cudnnBackendDescriptor_t *,
		struct error *) = {[MATMUL] = matmul, [POINTWISE] = pointwise, [REDUCE] = reduce, [RESHAPE] = reshape};
	const int named[] = {n->x, n->b, n->t, n->kind == SAME ? -1 : n->y};
	enum status st = ST_OK;
	for (int i = 0; !st && i < 4; i++)
		if (named[i] >= 0)
			st = tensor(a, named[i], e);
	if (!st && n->kind == SAME) {
		a->tensors[n->y] = a->tensors[n->x];
		return ST_OK;
	}
	if (!st && !(st = makers[n->kind](a, n, &a->ops[a->n_ops], e)))
		a->n_ops++;
	if (st)
		error_context(e, "node that makes \"%s\"", a->graph->tensors[n->y].name);
	return st;
}

static enum status build(struct cudnn_attention *a, const struct cudnn_target *target, struct error *e)
{
	enum status st = ST_OK;
	for (int i = 0; !st && i < a->graph->n_nodes; i++)
		if (applies(a, a->graph->nodes[i].when))
			st = node(a, &a->graph->nodes[i], e);
	const struct attribute set[] = {{CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, a->n_ops,
						a->ops},
		{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target->handle}};
	return st ? st : make(a, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, set, target->handle ? 2 : 1, &a->op_graph, e);
}

/* ---- choosing an engine ---- */

#define MAX_CONFIGS 16

static bool plan_works(struct cudnn_attention *a, const struct cudnn_target *target, cudnnBackendDescriptor_t config,
	struct error *e)
{
	int64_t count;
	const struct attribute whom = target->handle ? (struct attribute){CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
							       CUDNN_TYPE_HANDLE, 1, &target->handle}
	                                             : (struct attribute){CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
							       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device};
	return MAKE(a, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &a->plan, e, whom,
		       {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config}) == ST_OK &&
	       CUDNN_CHECK(cudnnBackendGetAttribute(a->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
				   1, &count, &a->plan_B),
		       e) == ST_OK;
}

/* The first plan, in the heuristic's order, that finalizes; `last` says why the last one did not. */
static enum status choose(struct cudnn_attention *a, const struct cudnn_target *target, cudnnBackendHeurMode_t mode,
	struct error *last)
{
	cudnnBackendDescriptor_t heuristic, configs[MAX_CONFIGS];
	int64_t found = 0;
	const struct attribute set[] = {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
						&a->op_graph},
		{CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode},
		{CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target->device}};
	enum status st = make(a, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, set, target->device ? 3 : 2, &heuristic, last);
	for (int i = 0; !st && i < MAX_CONFIGS; i++)
		st = add(a, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i], last);
	if (!st)
		st = CUDNN_CHECK(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
					 CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, &found, configs),
			last);
	for (int64_t i = 0; !st && i < found && i < MAX_CONFIGS; i++) {
		*last = (struct error){0};
		a->config = configs[i];
		if (plan_works(a, target, configs[i], last))
			return ST_OK;
	}
	return error_set(last, ST_RUN, "cuDNN %zu has no engine for it", cudnnGetVersion());
}

enum status cudnn_attention_engine(struct cudnn_attention *a, int64_t *engine, struct error *e)
{
	cudnnBackendDescriptor_t d;
	int64_t n = 0;
	enum status st = add(a, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &d, e);
	if (!st)
		st = CUDNN_CHECK(cudnnBackendGetAttribute(a->config, CUDNN_ATTR_ENGINECFG_ENGINE,
					 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &d),
			e);
	return st ? st
	          : CUDNN_CHECK(cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
					engine),
			    e);
}

static enum status limits_check(const struct op *op, enum dtype format, struct error *e)
{
	if (format != DT_BF16 && format != DT_FP16)
		return error_set(e, ST_RUN, "cuDNN's fused attention takes bf16 and fp16, not %s", dtype_name(format));
	if (op->flags & OP_ALIBI)
		return error_set(e, ST_RUN, "the graph for cuDNN has no ALiBi");
	if (op->attn.head_dim % 8)
		return error_set(e, ST_RUN, "heads of %lld values are not whole vectors of 16 bytes",
			(long long)op->attn.head_dim);
	for (int i = 0; i < 5; i++)
		if (op->d[i] < 1)
			return error_set(e, ST_RUN, "nothing to do");
	if (cudnnGetVersion() < CUDNN_OLDEST)
		return error_set(e, ST_RUN, "cuDNN %zu is older than %d", cudnnGetVersion(), CUDNN_OLDEST);
	return ST_OK;
}

enum status cudnn_attention_create(const struct cudnn_target *target, const struct op *op, enum dtype format,
	struct cudnn_attention **out, struct error *e)
{
	static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
	enum status st = limits_check(op, format, e);
	if (st)
		return st;
	struct cudnn_attention *a = calloc(1, sizeof *a);
	if (!a)
		return error_nomem(e, "attention by cuDNN");
	const struct op_attn *d = &op->attn;
	a->graph = &graphs[op->kind == OP_ATTENTION_GRAD];
	a->b = d->batch, a->H = d->heads, a->K = d->kv_heads, a->s = d->seq, a->D = d->head_dim;
	a->stored = format;
	a->causal = op->flags & OP_CAUSAL;
	a->constants[SOFTMAX_SCALE] = 1.0f / sqrtf((float)d->head_dim);
	a->constants[MASKED] = cudnnGetVersion() < CUDNN_INFINITE_MASKS ? -FLT_MAX : -INFINITY;
	a->constants[ONE] = 1.0f;
	struct error last = {0};
	st = build(a, target, &last);
	for (size_t i = 0; !st && i < COUNT(modes); i++) {
		last = (struct error){0};
		if (!choose(a, target, modes[i], &last)) {
			*out = a;
			return ST_OK;
		}
	}
	cudnn_attention_destroy(a);
	return error_set(e, ST_RUN, "%s", last.text);
}

void cudnn_attention_destroy(struct cudnn_attention *a)
{
	if (!a)
		return;
	while (a->made.n > 0)
		(void)cudnnBackendDestroyDescriptor(a->made.at[--a->made.n]);
	vec_free(&a->made);
	free(a);
}

/* ---- running ---- */

#define WORKSPACE_ALIGN ((size_t)256)

static size_t sums_offset_B(const struct cudnn_attention *a)
{
	return ((size_t)a->plan_B + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
}

size_t cudnn_attention_workspace_B(const struct cudnn_attention *a)
{
	const bool sums = a->graph == &graphs[1];
	return sums_offset_B(a) + (sums ? (size_t)(a->b * a->H * a->s * a->D) * sizeof(float) : 0);
}

static void *address_of(struct cudnn_attention *a, const struct tensor_row *t, const struct cuda_arg *arg,
	void *workspace)
{
	const int64_t first[] = {[WHOLE] = 0, [Q_PART] = 0, [K_PART] = a->H, [V_PART] = a->H + a->K};
	switch ((enum place)t->place) {
	case ARGUMENT:
		return (char *)arg[t->arg].at +
		       (size_t)(first[t->part] * a->D) * 2; /* parts are of what is stored: 2 bytes a value */
	case WORKSPACE: return (char *)workspace + sums_offset_B(a);
	case CONSTANT: return &a->constants[t->arg];
	case VIRTUAL: break;
	}
	return NULL;
}

enum status cudnn_attention_run(struct cudnn_attention *a, cudnnHandle_t handle, const struct cuda_arg arg[OP_MAX_ARGS],
	void *workspace, struct error *e)
{
	int64_t ids[MAX_TENSORS], n = 0;
	void *at[MAX_TENSORS];
	for (int i = 0; i < a->graph->n_tensors; i++) {
		const struct tensor_row *t = &a->graph->tensors[i];
		if (!a->used[i] || t->place == VIRTUAL)
			continue;
		ids[n] = i + 1;
		at[n++] = address_of(a, t, arg, workspace);
	}
	cudnnBackendDescriptor_t pack;
	enum status st = CUDNN_CHECK(cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack), e);
	if (st)
		return st;
	if (!(st = CUDNN_CHECK(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n,
				       ids),
		      e)) &&
		!(st = CUDNN_CHECK(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
					   CUDNN_TYPE_VOID_PTR, n, at),
			  e)) &&
		!(st = CUDNN_CHECK(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
					   CUDNN_TYPE_VOID_PTR, 1, &workspace),
			  e)) &&
		!(st = CUDNN_CHECK(cudnnBackendFinalize(pack), e)))
		st = CUDNN_CHECK(cudnnBackendExecute(handle, a->plan, pack), e);
	(void)cudnnBackendDestroyDescriptor(pack);
	return st;
}
