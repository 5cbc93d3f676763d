#include "exec/cuda/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/cuda/gemm_plan.h"

#define ALIGN_MOST 256
#define CANDIDATES 8 /* to be timed */
#define NO_PLAN SIZE_MAX
/* Kernels with a bias in their epilogue may read it in vectors of 16 bytes, and no preference of cuBLASLt's tells them
 * otherwise: a misaligned read is a fault from which the process does not recover. */
#define BIAS_ALIGN 16

/* ---- formats ---- */

static const struct {
	int32_t type; /* -1: no operand of a product */
} types[] = {
	[DT_FP32] = {CUDA_R_32F},
	[DT_TF32] = {CUDA_R_32F},
	[DT_FP16] = {CUDA_R_16F},
	[DT_BF16] = {CUDA_R_16BF},
	[DT_FP8] = {CUDA_R_8F_E4M3},
	[DT_MXFP8] = {-1},
	[DT_NVFP4] = {-1},
	[DT_INT32] = {-1},
	[DT_INT8] = {-1},
	[DT_NF4] = {-1},
	[DT_NF4_DOUBLE] = {-1},
};
_Static_assert(COUNT(types) == DT_COUNT, "a row for each format");

/* Largest power of two that divides the address, as far as it matters. */
static int32_t alignment(uint64_t address)
{
	uint64_t low = address & (~address + 1);
	return low == 0 || low > ALIGN_MOST ? ALIGN_MOST : (int32_t)low;
}

/* ---- one product ---- */

enum status plan_enqueue(const struct gemm_plans *g, const struct plan *p, const cublasLtMatmulAlgo_t *algo,
	const struct operands *o, void *workspace, size_t workspace_B, cudaStream_t stream, struct error *e)
{
	const float beta = p->product.adds ? 1.0f : 0.0f;
	enum status st = ST_OK;
	if (o->bias && (st = CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
						  &o->bias, sizeof o->bias),
				e)))
		return st;
	return CUBLAS_CHECK(cublasLtMatmul(g->handle, p->desc, &o->alpha, o->a, p->layout[SIDE_A], o->b,
				    p->layout[SIDE_B], &beta, o->c, p->layout[SIDE_C], o->c, p->layout[SIDE_C], algo,
				    workspace, workspace_B, stream),
		e);
}

static enum status describe(struct plan *p, struct error *e)
{
	const struct product *q = &p->product;
	enum status st = CUBLAS_CHECK(cublasLtMatmulDescCreate(&p->desc, (cublasComputeType_t)q->compute, CUDA_R_32F),
		e);
	cublasOperation_t op[2] = {q->trans[0] ? CUBLAS_OP_T : CUBLAS_OP_N, q->trans[1] ? CUBLAS_OP_T : CUBLAS_OP_N};
	if (!st)
		st = CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op[0],
					  sizeof op[0]),
			e);
	if (!st)
		st = CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op[1],
					  sizeof op[1]),
			e);
	if (st || q->bias < 0)
		return st;
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
	const void *like = (const void *)(uintptr_t)q->bias_align; /* the heuristic sees an address so aligned */
	if ((st = CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
				       sizeof epilogue),
		     e)) ||
		(st = CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
					   &q->bias, sizeof q->bias),
			 e)))
		return st;
	return CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &like,
				    sizeof like),
		e);
}

static enum status lay_out(struct plan *p, int side, struct error *e)
{
	const struct product *q = &p->product;
	int64_t rows = side == SIDE_B ? q->k : q->m, cols = side == SIDE_A ? q->k : q->n;
	bool turned = side != SIDE_C && q->trans[side];
	int32_t batch = (int32_t)q->batch;
	cublasLtMatrixLayout_t *l = &p->layout[side];
	enum status st = CUBLAS_CHECK(cublasLtMatrixLayoutCreate(l, (cudaDataType_t)q->type[side],
					      (uint64_t)(turned ? cols : rows), (uint64_t)(turned ? rows : cols),
					      q->ld[side]),
		e);
	if (st || q->batch == 1)
		return st;
	if (!(st = CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
					sizeof batch),
		      e)))
		st = CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
					  &q->stride[side], sizeof q->stride[side]),
			e);
	return st;
}

static enum status prefer(cublasLtMatmulPreference_t pref, const struct product *q, struct error *e)
{
	static const cublasLtMatmulPreferenceAttributes_t align[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
		CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES};
	const uint64_t workspace_B = GEMM_WORKSPACE_B;
	enum status st = CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(pref,
					      CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_B,
					      sizeof workspace_B),
		e);
	for (int i = 0; i < SIDE_COUNT && !st; i++) {
		uint32_t bytes = (uint32_t)q->align[i];
		st = CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(pref, align[i], &bytes, sizeof bytes), e);
		if (i == SIDE_C && !st) /* C and D are the same memory */
			st = CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(pref,
						  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &bytes, sizeof bytes),
				e);
	}
	return st;
}

static enum status choose(const struct gemm_plans *g, struct plan *p, struct error *e)
{
	cublasLtMatmulHeuristicResult_t found[CANDIDATES];
	cublasLtMatmulPreference_t pref = NULL;
	int n = 0, best = 0;
	enum status st = CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&pref), e);
	if (st || (st = prefer(pref, &p->product, e)))
		goto out;
	cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(g->handle, p->desc, p->layout[SIDE_A], p->layout[SIDE_B],
		p->layout[SIDE_C], p->layout[SIDE_C], pref, g->tune ? CANDIDATES : 1, found, &n);
	if (code != CUBLAS_STATUS_SUCCESS || n == 0) {
		st = error_set(e, ST_RUN, "cuBLASLt has no algorithm for this product (%s)",
			code == CUBLAS_STATUS_SUCCESS ? "none found" : cublasLtGetStatusString(code));
		goto out;
	}
	if (n > 1 && (st = gemm_tune(g, p, found, n, &best, e)))
		goto out;
	p->algo = found[best].algo;
	p->workspace_B = found[best].workspaceSize;
out:
	if (pref)
		cublasLtMatmulPreferenceDestroy(pref);
	return st;
}

static void plan_free(struct plan *p)
{
	if (!p)
		return;
	for (int i = 0; i < SIDE_COUNT; i++)
		if (p->layout[i])
			cublasLtMatrixLayoutDestroy(p->layout[i]);
	if (p->desc)
		cublasLtMatmulDescDestroy(p->desc);
	free(p);
}

/* The product's plan, made when it is the first of its kind. */
static enum status plan_of(struct gemm_plans *g, const struct product *q, size_t *out, struct error *e)
{
	for (size_t i = 0; i < g->plans.n; i++)
		if (!memcmp(&g->plans.at[i]->product, q, sizeof *q)) {
			*out = i;
			return ST_OK;
		}
	struct plan *p = calloc(1, sizeof *p);
	if (!p)
		return error_nomem(e, "the plan of a product");
	p->product = *q;
	enum status st = describe(p, e);
	for (int i = 0; i < SIDE_COUNT && !st; i++)
		st = lay_out(p, i, e);
	if (st || (st = choose(g, p, e))) {
		plan_free(p);
		return st;
	}
	if (!vec_push(&g->plans, p)) {
		plan_free(p);
		return error_nomem(e, "the plan of a product");
	}
	*out = g->plans.n - 1;
	return ST_OK;
}

static enum status run_plan(struct gemm_plans *g, const struct cuda_env *env, size_t plan, const struct operands *o,
	struct error *e)
{
	const struct plan *p = g->plans.at[plan];
	if (p->workspace_B > env->scratch_B)
		return error_set(e, ST_RUN, "a product needs %zu bytes of workspace, and there are %zu", p->workspace_B,
			env->scratch_B);
	return plan_enqueue(g, p, &p->algo, o, env->scratch, env->scratch_B, env->stream, e);
}

/* ---- GEMM ops ---- */

static enum status type_of(enum dtype d, int32_t *out, struct error *e)
{
	*out = types[d].type;
	return *out >= 0 ? ST_OK : error_set(e, ST_RUN, "no products in %s on this device", dtype_name(d));
}

static int32_t compute_of(const struct op *op)
{
	return op->dtype == DT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* The argument that is C. A grouped product has no bias. */
static int result_of(const struct op *op) { return op->kind == OP_GEMM ? 3 : 2; }

/* Whether the product's epilogue adds the bias. */
static bool bias_inside(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS])
{
	return op->kind == OP_GEMM && arg[2].at && alignment((uintptr_t)arg[2].at) >= BIAS_ALIGN;
}

/* Row-major C = op(A) op(B) is column-major C' = op(B)' op(A)': the operands change places, and keep their own turns.
 */
static enum status product_of(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct product *q,
	struct error *e)
{
	const int64_t m = op->gemm.m, n = op->gemm.n, k = op->gemm.k,
		      groups = op->kind == OP_GROUPED_GEMM ? op->gemm.groups : 1;
	const struct cuda_arg *side[SIDE_COUNT] = {&arg[1], &arg[0], &arg[result_of(op)]};
	const bool ta = op->flags & OP_TRANS_A, tb = op->flags & OP_TRANS_B;
	memset(q, 0, sizeof *q);
	*q = (struct product){.m = n,
		.n = m,
		.k = k,
		.batch = groups,
		.ld = {tb ? k : n, ta ? m : k, n},
		.trans = {tb, ta},
		.bias = -1,
		.compute = compute_of(op),
		.adds = (op->flags & OP_ACCUMULATE) != 0};
	const int64_t stride[SIDE_COUNT] = {n * k, m * k, m * n};
	enum status st = ST_OK;
	for (int i = 0; i < SIDE_COUNT && !st; i++) {
		q->stride[i] = groups > 1 ? stride[i] : 0;
		q->align[i] = alignment(
			(uintptr_t)side[i]->at | (uint64_t)q->stride[i] * (uint64_t)dtype_bytes(side[i]->dtype));
		st = type_of(side[i]->dtype, &q->type[i], e);
	}
	if (st || !bias_inside(op, arg))
		return st;
	q->bias_align = alignment((uintptr_t)arg[2].at);
	return type_of(arg[2].dtype, &q->bias, e);
}

static enum status gemm_context(const struct op *op, enum status st, struct error *e)
{
	char name[OP_NAME_MAX];
	return st ? error_context(e, "%s", op_name(op, name)) : ST_OK;
}

/* After a product whose epilogue does not. */
static enum status add_bias(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	struct error *e)
{
	const struct op bias = {.kind = OP_BIAS, .matrix = {op->gemm.m, op->gemm.n}};
	const struct cuda_arg of_bias[OP_MAX_ARGS] = {arg[3], arg[2]};
	return launch_bias(env, &bias, of_bias, e);
}

enum status gemm_run(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	struct product q;
	const bool inside = bias_inside(op, arg);
	enum status st = product_of(op, arg, &q, e);
	if (st)
		return gemm_context(op, st, e);
	size_t plan = env->op < g->n_ops ? g->by_op[env->op] : NO_PLAN;
	if (plan == NO_PLAN || memcmp(&g->plans.at[plan]->product, &q, sizeof q))
		st = plan_of(g, &q, &plan, e);
	struct operands o = {arg[1].at, arg[0].at, inside ? arg[2].at : NULL, arg[result_of(op)].at, 1.0f};
	if (!st)
		st = run_plan(g, env, plan, &o, e);
	if (!st && op->kind == OP_GEMM && arg[2].at && !inside)
		st = add_bias(env, op, arg, e);
	return gemm_context(op, st, e);
}

/* ---- naive attention ---- */

/* A matrix for each batch row and head: element (i, j) at from + b x of_batch + h x of_head + i x ld + j; `shared`: the
 * heads are key and value heads. */
struct heads {
	int arg;
	int64_t from, of_batch, of_head, ld;
	bool shared;
};

/* Row-major C = alpha op(A) op(B) for all heads; C of shared heads is the sum over the query heads that share one. */
struct batched {
	struct heads a, b, c;
	bool ta, tb;
	int64_t m, n, k;
	float alpha;
};

static void *at(const struct cuda_arg arg[OP_MAX_ARGS], const struct heads *x, int64_t batch, int64_t kv,
	int64_t member, int64_t group)
{
	int64_t element = x->from + batch * x->of_batch + (x->shared ? kv : kv * group + member) * x->of_head;
	return (char *)arg[x->arg].at + (uint64_t)element * (uint64_t)dtype_bytes(arg[x->arg].dtype);
}

/* Distance from one matrix to the next along batch rows, or along key and value heads. */
static int64_t along(const struct heads *x, bool rows, int64_t group)
{
	return rows ? x->of_batch : x->of_head * (x->shared ? 1 : group);
}

static enum status one_batch(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct batched *w, const struct cuda_arg arg[OP_MAX_ARGS], bool rows, int64_t fixed, int64_t member,
	struct error *e)
{
	const int64_t group = op->attn.heads / op->attn.kv_heads, count = rows ? op->attn.batch : op->attn.kv_heads,
		      batch = rows ? 0 : fixed, kv = rows ? fixed : 0;
	const struct heads *side[SIDE_COUNT] = {&w->b, &w->a, &w->c};
	void *address[SIDE_COUNT];
	struct product q;
	memset(&q, 0, sizeof q);
	q = (struct product){.m = w->n,
		.n = w->m,
		.k = w->k,
		.batch = count,
		.trans = {w->tb, w->ta},
		.bias = -1,
		.compute = compute_of(op),
		.adds = w->c.shared && member > 0};
	enum status st = ST_OK;
	for (int i = 0; i < SIDE_COUNT && !st; i++) {
		address[i] = at(arg, side[i], batch, kv, member, group);
		q.ld[i] = side[i]->ld;
		q.stride[i] = count > 1 ? along(side[i], rows, group) : 0;
		st = type_of(arg[side[i]->arg].dtype, &q.type[i], e);
		int32_t step = alignment((uint64_t)q.stride[i] * (uint64_t)dtype_bytes(arg[side[i]->arg].dtype)),
			first = alignment((uint64_t)(uintptr_t)address[i]);
		q.align[i] = step < first ? step : first;
	}
	size_t plan = 0;
	if (st || (st = plan_of(g, &q, &plan, e)) || !env)
		return st;
	struct operands o = {address[SIDE_A], address[SIDE_B], NULL, address[SIDE_C], w->alpha};
	return run_plan(g, env, plan, &o, e);
}

/* `env` NULL: only plans. One call covers either all batch rows of a head or all key and value heads of a batch row,
 * whichever needs fewer calls; the query heads that share one follow one another. */
static enum status all_heads(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct batched *w, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t group = op->attn.heads / op->attn.kv_heads;
	const bool rows = op->attn.batch > op->attn.kv_heads;
	const int64_t calls = rows ? op->attn.kv_heads : op->attn.batch;
	enum status st = ST_OK;
	for (int64_t member = 0; member < group && !st; member++)
		for (int64_t i = 0; i < calls && !st; i++)
			st = one_batch(g, env, op, w, arg, rows, i, member, e);
	return st;
}

enum status gemm_attention_run(struct gemm_plans *g, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const int64_t H = op->attn.heads, K = op->attn.kv_heads, s = op->attn.seq, D = op->attn.head_dim,
		      width = (H + 2 * K) * D;
	const bool all = op->attn.keys > 0; /* keys and values of all ranks of a context group, in rows of their own */
	const int64_t keys = all ? op->attn.keys : s, before = all ? 0 : H, of_keys = all ? 2 * K * D : width;
	const float scale = (float)(1.0 / sqrt((double)D));
#define QUERIES(argument) \
	{ \
		.arg = (argument), .of_batch = s * width, .of_head = D, .ld = width \
	} /* of qkv or dqkv */
#define SHARED(argument, first) \
	{ \
		.arg = (argument), .from = (before + (first)) * D, .of_batch = keys * of_keys, .of_head = D, \
		.ld = of_keys, .shared = true \
	} /* of keys and values, or of their gradients */
#define SCORES(argument) \
	{ \
		.arg = (argument), .of_batch = H * s * keys, .of_head = s * keys, .ld = keys \
	}
#define ROWS(argument) \
	{ \
		.arg = (argument), .of_batch = s * H * D, .of_head = D, .ld = H * D \
	}
	const struct batched scores = {QUERIES(0), SHARED(all ? 2 : 0, 0), SCORES(1), false, true, s, keys, D, scale};
	const struct batched values = {SCORES(0), SHARED(1, K), ROWS(2), false, false, s, D, keys, 1.0f};
	const struct batched values_grad[] = {{ROWS(2), SHARED(1, K), SCORES(3), false, true, s, keys, D, 1.0f},
		{SCORES(0), ROWS(2), SHARED(4, K), true, false, keys, D, s, 1.0f}};
	const struct batched scores_grad[] = {{SCORES(0), SHARED(all ? 3 : 1, 0), QUERIES(2), false, false, s, D, keys,
						      scale},
		{SCORES(0), QUERIES(1), SHARED(all ? 4 : 2, 0), true, false, keys, D, s, scale}};
#undef QUERIES
#undef SHARED
#undef SCORES
#undef ROWS
	const struct {
		const struct batched *first;
		int n;
	} work[OP_KIND_COUNT] = {[OP_ATTN_SCORES] = {&scores, 1},
		[OP_ATTN_VALUES] = {&values, 1},
		[OP_ATTN_VALUES_GRAD] = {values_grad, 2},
		[OP_ATTN_SCORES_GRAD] = {scores_grad, 2}};
	if (work[op->kind].n == 0)
		return error_set(e, ST_RUN, "%s is no product of attention", op_kind_info(op->kind)->name);
	enum status st = ST_OK;
	for (int i = 0; i < work[op->kind].n && !st; i++)
		st = all_heads(g, env, op, &work[op->kind].first[i], arg, e);
	return gemm_context(op, st, e);
}

/* ---- planning ahead ---- */

/* Returns an address with the alignment that the view will have, before memory is allocated; never NULL. Buffers begin
 * at multiples of ALIGN_MOST bytes, and a rank's part begins whole strides behind. */
static void *address_of(const struct view *v) { return (void *)(uintptr_t)(v->offset_B | v->stride_B | ALIGN_MOST); }

static enum status plan_op(struct gemm_plans *g, const struct role *role, size_t i, struct error *e)
{
	const struct op *op = &role->ops.at[i];
	const int n = op_kind_info(op->kind)->n_args;
	struct cuda_arg arg[OP_MAX_ARGS] = {{0}};
	for (int a = 0; a < n; a++) {
		const struct view *v = op_arg(role, op, a);
		if (v->buffer >= 0)
			arg[a] = (struct cuda_arg){address_of(v), role->buffers.at[v->buffer].dtype};
	}
	if (!op_is_product(op))
		return gemm_attention_run(g, NULL, op, arg, e);
	struct product q;
	enum status st = product_of(op, arg, &q, e);
	return gemm_context(op, st ? st : plan_of(g, &q, &g->by_op[i], e), e);
}

static bool is_product(const struct op *op)
{
	return op_is_product(op) || op->kind == OP_ATTN_SCORES || op->kind == OP_ATTN_VALUES ||
	       op->kind == OP_ATTN_VALUES_GRAD || op->kind == OP_ATTN_SCORES_GRAD;
}

enum status gemm_plans_create(const struct role *role, int device, bool tune, struct gemm_plans **out, struct error *e)
{
	*out = NULL;
	struct gemm_plans *g = calloc(1, sizeof *g);
	if (!g || !(g->by_op = malloc((role->ops.n + 1) * sizeof *g->by_op))) {
		free(g);
		return error_nomem(e, "the plans of products");
	}
	g->n_ops = role->ops.n;
	g->tune = tune;
	for (size_t i = 0; i < g->n_ops; i++)
		g->by_op[i] = NO_PLAN;
	enum status st = CUDA_CHECK(cudaSetDevice(device), e);
	if (!st)
		st = CUBLAS_CHECK(cublasLtCreate(&g->handle), e);
	for (size_t i = 0; i < g->n_ops && !st; i++)
		if (is_product(&role->ops.at[i]))
			st = plan_op(g, role, i, e);
	if (st) {
		gemm_plans_destroy(g);
		return st;
	}
	*out = g;
	return ST_OK;
}

void gemm_plans_destroy(struct gemm_plans *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->plans.n; i++)
		plan_free(g->plans.at[i]);
	vec_free(&g->plans);
	if (g->handle)
		cublasLtDestroy(g->handle);
	free(g->by_op);
	free(g);
}
