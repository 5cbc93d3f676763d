#include "exec/cuda/attention_cudnn.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/vec.h"
#include "exec/cuda/attention_graph.h"
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

/* ---- building ---- */

struct cudnn_attention {
	const struct attention_graph *graph;
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
	a->graph = op->kind == OP_ATTENTION_GRAD ? &attention_grad_graph : &attention_forward_graph;
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
	const bool sums = a->graph == &attention_grad_graph;
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
