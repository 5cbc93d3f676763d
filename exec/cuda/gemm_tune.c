/* Trying the heuristic's candidates. Data that cost no power make every candidate look alike (zeros run up to 14 %
 * faster), so the operands are random. */
#include "base/array.h"
#include "exec/cuda/gemm_plan.h"
#include "exec/init.h"

#define RUNS 5

struct trial {
	void *side[SIDE_COUNT], *bias, *workspace;
	size_t workspace_B; /* what the candidate that wants most wants */
	cudaStream_t stream;
	cudaEvent_t begin, end;
};

static bool random_operand(struct trial *t, const struct product *q, int side)
{
	static const struct {
		int32_t type;
		enum dtype dtype;
	} formats[] = {{CUDA_R_32F, DT_FP32}, {CUDA_R_16BF, DT_BF16}, {CUDA_R_16F, DT_FP16}};
	const int64_t cols = side == SIDE_A                  ? (q->trans[0] ? q->m : q->k)
	                     : side == SIDE_B && q->trans[1] ? q->k
	                                                     : q->n,
		      n = (q->batch - 1) * q->stride[side] + cols * q->ld[side];
	for (size_t i = 0; i < COUNT(formats); i++)
		if (formats[i].type == q->type[side])
			return cudaMalloc(&t->side[side], (size_t)n * (size_t)dtype_bytes(formats[i].dtype)) ==
			               cudaSuccess &&
			       cuda_fill_normal(t->stream, t->side[side], formats[i].dtype, n, (uint64_t)side,
				       INIT_SIGMA, NULL) == ST_OK;
	return false;
}

static bool trial_open(const struct product *q, struct trial *t)
{
	const size_t bias_B = (size_t)q->m * sizeof(float);
	bool ok = cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking) == cudaSuccess &&
	          cudaEventCreate(&t->begin) == cudaSuccess && cudaEventCreate(&t->end) == cudaSuccess &&
	          (t->workspace_B == 0 || cudaMalloc(&t->workspace, t->workspace_B) == cudaSuccess) &&
	          (q->bias < 0 || cudaMalloc(&t->bias, bias_B) == cudaSuccess) &&
	          (q->bias < 0 || cudaMemsetAsync(t->bias, 0, bias_B, t->stream) == cudaSuccess);
	for (int i = 0; i < SIDE_COUNT && ok; i++)
		ok = random_operand(t, q, i);
	return ok;
}

static void trial_close(struct trial *t)
{
	for (int i = 0; i < SIDE_COUNT; i++)
		cudaFree(t->side[i]);
	cudaFree(t->bias);
	cudaFree(t->workspace);
	if (t->begin)
		cudaEventDestroy(t->begin);
	if (t->end)
		cudaEventDestroy(t->end);
	if (t->stream)
		cudaStreamDestroy(t->stream);
	cudaGetLastError(); /* no memory for a trial is no error */
}

static enum status time_one(const struct gemm_plans *g, const struct plan *p, const cublasLtMatmulAlgo_t *algo,
	struct trial *t, float *ms, struct error *e)
{
	struct operands o = {t->side[SIDE_A], t->side[SIDE_B], t->bias, t->side[SIDE_C], 1.0f};
	enum status st = plan_enqueue(g, p, algo, &o, t->workspace, t->workspace_B, t->stream, e);
	if (!st)
		st = CUDA_CHECK(cudaEventRecord(t->begin, t->stream), e);
	for (int i = 0; i < RUNS && !st; i++)
		st = plan_enqueue(g, p, algo, &o, t->workspace, t->workspace_B, t->stream, e);
	if (!st)
		st = CUDA_CHECK(cudaEventRecord(t->end, t->stream), e);
	if (!st)
		st = CUDA_CHECK(cudaEventSynchronize(t->end), e);
	return st ? st : CUDA_CHECK(cudaEventElapsedTime(ms, t->begin, t->end), e);
}

enum status gemm_tune(const struct gemm_plans *g, const struct plan *p, const cublasLtMatmulHeuristicResult_t *found,
	int n, int *best, struct error *e)
{
	struct trial t = {0};
	struct error why = {ST_OK, ""};
	float least = 0.0f;
	bool tried = false;
	*best = 0;
	for (int i = 0; i < n; i++)
		t.workspace_B = found[i].workspaceSize > t.workspace_B ? found[i].workspaceSize : t.workspace_B;
	enum status st = ST_OK;
	if (trial_open(&p->product, &t))
		for (int i = 0; i < n && !st; i++) {
			float ms = 0.0f;
			tried = true;
			if (found[i].state != CUBLAS_STATUS_SUCCESS || time_one(g, p, &found[i].algo, &t, &ms, &why)) {
				st = CUDA_CHECK(cudaStreamSynchronize(t.stream), e); /* a broken GPU breaks them all */
				continue;
			}
			if (least == 0.0f || ms < least) {
				least = ms;
				*best = i;
			}
		}
	trial_close(&t);
	if (st)
		return st;
	return tried && least == 0.0f ? error_set(e, ST_RUN, "none of cuBLASLt's %d algorithms works: %s", n, why.text)
	                              : ST_OK;
}
