/* Products planned: what cuBLASLt is asked for, column by column, and which algorithm serves it. Private to gemm*.c. */
#ifndef STEPSIM_EXEC_CUDA_GEMM_PLAN_H
#define STEPSIM_EXEC_CUDA_GEMM_PLAN_H

#include "base/vec.h"
#include "exec/cuda/check.h"
#include "exec/cuda/gemm.h"

enum { SIDE_A, SIDE_B, SIDE_C, SIDE_COUNT };

/* In cuBLAS's order: C [m, n] = op(A) op(B), columns contiguous. All that the choice of an algorithm depends on; equal
 * bytes are equal products (no padding). */
struct product {
	int64_t m, n, k, batch;
	int64_t ld[SIDE_COUNT], stride[SIDE_COUNT]; /* stride: elements from one of the batch to the next */
	int32_t trans[2];
	int32_t type[SIDE_COUNT], bias; /* cudaDataType; bias -1: none */
	int32_t align[SIDE_COUNT];      /* bytes, at most 256 */
	int32_t bias_align;             /* likewise; 0: no bias */
	int32_t compute;                /* cublasComputeType_t */
	int32_t adds;                   /* C is read, too */
};
_Static_assert(sizeof(struct product) == 10 * sizeof(int64_t) + 12 * sizeof(int32_t), "compared by bytes");

struct plan {
	struct product product;
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t layout[SIDE_COUNT];
	cublasLtMatmulAlgo_t algo;
	size_t workspace_B;
};

struct gemm_plans {
	cublasLtHandle_t handle;
	VEC(struct plan *) plans;
	size_t *by_op; /* of the role: the plan of a GEMM op, as far as load() knew its addresses */
	size_t n_ops;
	bool tune;
};

struct operands {
	const void *a, *b, *bias;
	void *c;
	float alpha;
};

enum status plan_enqueue(const struct gemm_plans *g, const struct plan *p, const cublasLtMatmulAlgo_t *algo,
	const struct operands *o, void *workspace, size_t workspace_B, cudaStream_t stream, struct error *e);

/* The quickest of the heuristic's first `n`, on random data; the first one where there is no memory to try them in.
 * Candidates that fail are passed over; ST_RUN when all do. */
enum status gemm_tune(const struct gemm_plans *g, const struct plan *p, const cublasLtMatmulHeuristicResult_t *found,
	int n, int *best, struct error *e);

#endif
