/* The double of cuBLASLt: products against sums by hand, and what it refuses. Runs on the doubles alone: elsewhere it
 * is skipped. */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tests/unit/harness.h"

#define M 16
#define N 5
#define K 32
#define ROOM 65536
#define CANDIDATES 8

static cublasLtHandle_t handle;
static cudaStream_t stream;
static char *memory; /* four parts of ROOM bytes, and the workspace */

struct product {
	cublasComputeType_t compute;
	cudaDataType_t a, b, c, d;
	int32_t ta, tb;
	cublasLtOrder_t order;
	int32_t batch;
	uint32_t epilogue;
	float alpha, beta;
	size_t workspace_B;
	int shift_B;      /* of A's address */
	int bias_later_B; /* by which the bias is moved between the question and the product */
	int candidate;    /* of the answers */
	int64_t short_ld; /* taken from A's leading dimension */
	uint64_t k_of_b;  /* 0: K */
	bool device_scalars, no_algo;
	float scale_a;            /* 0: no pointer */
	cudaDataType_t bias_type; /* 0: not set */
};

static const struct product plain = {
	.compute = CUBLAS_COMPUTE_32F,
	.a = CUDA_R_32F,
	.b = CUDA_R_32F,
	.c = CUDA_R_32F,
	.d = CUDA_R_32F,
	.order = CUBLASLT_ORDER_COL,
	.batch = 1,
	.epilogue = CUBLASLT_EPILOGUE_DEFAULT,
	.alpha = 1,
	.workspace_B = 1 << 20,
};

/* ---- numbers: small ones, which every format holds ---- */

static size_t size_of(cudaDataType_t t) { return t == CUDA_R_32F ? 4 : t == CUDA_R_16F || t == CUDA_R_16BF ? 2 : 1; }

static void put(cudaDataType_t t, char *at, size_t i, float x)
{
	static const uint8_t e4m3[] = {0xc0, 0xb8, 0x00, 0x38, 0x40},
			     e5m2[] = {0xc0, 0xbc, 0x00, 0x3c, 0x40}; /* -2 ... 2 */
	_Float16 h = (_Float16)x;
	uint32_t bits;
	memcpy(&bits, &x, 4);
	uint16_t high = (uint16_t)(bits >> 16);
	if (t == CUDA_R_32F)
		memcpy(at + 4 * i, &x, 4);
	else if (t == CUDA_R_16F)
		memcpy(at + 2 * i, &h, 2);
	else if (t == CUDA_R_16BF)
		memcpy(at + 2 * i, &high, 2);
	else
		at[i] = (char)(t == CUDA_R_8F_E4M3 ? e4m3 : e5m2)[(int)x + 2];
}

static float get(cudaDataType_t t, const char *at, size_t i)
{
	_Float16 h;
	float x;
	uint16_t high;
	uint32_t bits;
	if (t == CUDA_R_32F) {
		memcpy(&x, at + 4 * i, 4);
		return x;
	}
	if (t == CUDA_R_16F) {
		memcpy(&h, at + 2 * i, 2);
		return (float)h;
	}
	if (t == CUDA_R_16BF) {
		memcpy(&high, at + 2 * i, 2);
		bits = (uint32_t)high << 16;
		memcpy(&x, &bits, 4);
		return x;
	}
	uint8_t byte = (uint8_t)at[i]; /* E4M3 */
	int exponent = (byte >> 3) & 15, mantissa = byte & 7;
	x = exponent ? ldexpf(1 + (float)mantissa / 8, exponent - 7) : ldexpf((float)mantissa / 8, -6);
	return byte & 0x80 ? -x : x;
}

static float value(uint64_t row, uint64_t col, int32_t batch, int which)
{
	return (float)((int)((row * 3 + col * 7 + (uint64_t)batch * 5 + (uint64_t)which * 2) % 5) - 2);
}

static float bias_of(uint64_t row) { return (float)(row % 3) - 1; }

/* ---- one product ---- */

struct matrix {
	cublasLtMatrixLayout_t layout;
	char *at;
	cudaDataType_t type;
	uint64_t rows, cols, ld;
	int64_t stride;
	bool by_row;
};

static size_t place(const struct matrix *x, uint64_t row, uint64_t col, int32_t batch)
{
	return (size_t)batch * (size_t)x->stride + (x->by_row ? row * x->ld + col : row + col * x->ld);
}

static struct matrix matrix(const struct product *p, int which, cudaDataType_t type, uint64_t rows, uint64_t cols,
	bool turned, int64_t short_ld)
{
	struct matrix x = {.at = memory + ROOM * which + (which == 0 ? p->shift_B : 0),
		.type = type,
		.by_row = p->order == CUBLASLT_ORDER_ROW};
	x.rows = turned ? cols : rows;
	x.cols = turned ? rows : cols;
	x.ld = (x.by_row ? x.cols : x.rows) + 16;
	x.stride = (int64_t)(x.ld * (x.by_row ? x.rows : x.cols));
	CU_ASSERT_EQUAL_FATAL(cublasLtMatrixLayoutCreate(&x.layout, type, x.rows, x.cols, (int64_t)x.ld - short_ld),
		CUBLAS_STATUS_SUCCESS);
	int32_t order = (int32_t)p->order;
	CU_ASSERT_EQUAL(cublasLtMatrixLayoutSetAttribute(x.layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order),
		CUBLAS_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(cublasLtMatrixLayoutSetAttribute(x.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &p->batch,
				sizeof p->batch),
		CUBLAS_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(cublasLtMatrixLayoutSetAttribute(x.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
				&x.stride, sizeof x.stride),
		CUBLAS_STATUS_SUCCESS);
	if (short_ld == 0)
		for (int32_t b = 0; b < p->batch; b++)
			for (uint64_t r = 0; r < x.rows; r++)
				for (uint64_t c = 0; c < x.cols; c++)
					put(type, x.at, place(&x, r, c, b),
						turned ? value(c, r, b, which) : value(r, c, b, which));
	return x;
}

static cublasLtMatmulDesc_t description(const struct product *p)
{
	cublasLtMatmulDesc_t d;
	int32_t mode = CUBLASLT_POINTER_MODE_DEVICE, type = (int32_t)p->bias_type;
	const void *bias = memory + 4 * ROOM, *scale = memory + 4 * ROOM + 4096;
	CU_ASSERT_EQUAL_FATAL(cublasLtMatmulDescCreate(&d, p->compute, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
	cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &p->ta, sizeof p->ta);
	cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSB, &p->tb, sizeof p->tb);
	cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_EPILOGUE, &p->epilogue, sizeof p->epilogue);
	cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
	if (p->bias_type)
		cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
	if (p->device_scalars)
		cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
	if (p->scale_a != 0) {
		memcpy(memory + 4 * ROOM + 4096, &p->scale_a, 4);
		cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale);
	}
	return d;
}

static float expected(const struct product *p, uint64_t r, uint64_t c, int32_t batch)
{
	float sum = 0;
	for (uint64_t k = 0; k < K; k++)
		sum += value(r, k, batch, 0) * value(k, c, batch, 1);
	sum = p->alpha * (p->scale_a != 0 ? p->scale_a : 1) * sum + p->beta * value(r, c, batch, 3);
	if (p->epilogue & CUBLASLT_EPILOGUE_BIAS)
		sum += bias_of(r);
	return p->epilogue & CUBLASLT_EPILOGUE_RELU && sum < 0 ? 0 : sum;
}

/* The status of the heuristic, else of the product; sets *wrong to the places that are. */
static cublasStatus_t run(const struct product *p, int *wrong)
{
	struct matrix a = matrix(p, 0, p->a, M, K, p->ta, p->short_ld),
		      b = matrix(p, 1, p->b, p->k_of_b ? p->k_of_b : K, N, p->tb, 0);
	struct matrix c = matrix(p, p->c == p->d ? 3 : 2, p->c, M, N, false, 0), d = matrix(p, 3, p->d, M, N, false, 0);
	for (int32_t i = 0; i < p->batch && p->c != p->d; i++)
		for (uint64_t r = 0; r < M; r++)
			for (uint64_t col = 0; col < N; col++)
				put(p->c, c.at, place(&c, r, col, i), value(r, col, i, 3));
	cublasLtMatmulDesc_t desc = description(p);
	cublasLtMatmulPreference_t pref;
	cublasLtMatmulHeuristicResult_t found[CANDIDATES];
	int n = 0;
	uint64_t limit = 1 << 20;
	cublasLtMatmulPreferenceCreate(&pref);
	cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
	cublasStatus_t st = cublasLtMatmulAlgoGetHeuristic(handle, desc, a.layout, b.layout, c.layout, d.layout, pref,
		CANDIDATES, found, &n);
	for (uint64_t i = 0; i < M; i++)
		put(p->bias_type ? p->bias_type : p->d, memory + 4 * ROOM, i, bias_of(i));
	const float scalars[2] = {p->alpha, p->beta};
	memcpy(memory + 4 * ROOM + 4200, scalars, sizeof scalars);
	const char *at = p->device_scalars ? memory + 4 * ROOM + 4200 : (const char *)scalars;
	if (st == CUBLAS_STATUS_SUCCESS) {
		CU_ASSERT_EQUAL(n, CANDIDATES);
		CU_ASSERT(found[0].workspaceSize > 0 && found[1].workspaceSize == 0);
		const void *bias = memory + 4 * ROOM + p->bias_later_B;
		cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
		st = cublasLtMatmul(handle, desc, at, a.at, a.layout, b.at, b.layout, at + 4, c.at, c.layout, d.at,
			d.layout, p->no_algo ? NULL : &found[p->candidate].algo, memory + 5 * ROOM, p->workspace_B,
			stream);
	}
	CU_ASSERT_EQUAL(cudaStreamSynchronize(stream), cudaSuccess);
	*wrong = 0;
	for (int32_t i = 0; i < p->batch && st == CUBLAS_STATUS_SUCCESS; i++)
		for (uint64_t r = 0; r < M; r++)
			for (uint64_t col = 0; col < N; col++)
				*wrong += get(p->d, d.at, place(&d, r, col, i)) != expected(p, r, col, i);
	cublasLtMatmulPreferenceDestroy(pref);
	cublasLtMatmulDescDestroy(desc);
	cublasLtMatrixLayoutDestroy(a.layout), cublasLtMatrixLayoutDestroy(b.layout),
		cublasLtMatrixLayoutDestroy(c.layout), cublasLtMatrixLayoutDestroy(d.layout);
	return st;
}

static void good(struct product p)
{
	int wrong = 0;
	CU_ASSERT_EQUAL(run(&p, &wrong), CUBLAS_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(wrong, 0);
}

static void refused(struct product p, cublasStatus_t as)
{
	int wrong;
	CU_ASSERT_EQUAL(run(&p, &wrong), as);
}

static struct product of(cudaDataType_t ab, cudaDataType_t cd)
{
	struct product p = plain;
	p.a = p.b = ab;
	p.c = p.d = cd;
	return p;
}

static struct product fp8(cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d)
{
	struct product p = plain;
	p.a = a, p.b = b, p.c = c, p.d = d;
	p.ta = CUBLAS_OP_T;
	return p;
}

/* ---- tests ---- */

static void test_formats(void)
{
	static const cublasComputeType_t fast[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
		CUBLAS_COMPUTE_32F_FAST_16BF, CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_PEDANTIC};
	for (size_t i = 0; i < COUNT(fast); i++) {
		struct product p = plain;
		p.compute = fast[i];
		good(p);
	}
	good(of(CUDA_R_16F, CUDA_R_16F));
	good(of(CUDA_R_16F, CUDA_R_32F));
	good(of(CUDA_R_16BF, CUDA_R_16BF));
	good(of(CUDA_R_16BF, CUDA_R_32F));
	good(fp8(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF));
	good(fp8(CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F));
	good(fp8(CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUDA_R_16F));
	struct product p = fp8(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F);
	p.scale_a = 0.5f;
	good(p);
}

static void test_forms(void)
{
	for (int i = 0; i < 64; i++) {
		struct product p = i & 8 ? of(CUDA_R_16BF, CUDA_R_32F) : plain;
		p.ta = i & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
		p.tb = i & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
		p.order = i & 4 ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
		p.batch = i & 16 ? 3 : 1;
		p.beta = i & 32 ? 1.0f : 0.0f;
		p.alpha = i & 8 ? 0.5f : 1;
		p.device_scalars = i & 1;
		p.no_algo = i & 2;
		good(p);
	}
}

static void test_epilogues(void)
{
	static const uint32_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
		CUBLASLT_EPILOGUE_RELU_BIAS};
	for (size_t i = 0; i < 3; i++) {
		struct product p = plain;
		p.epilogue = epilogues[i];
		good(p);
		p.a = p.b = p.c = p.d = CUDA_R_16BF;
		good(p);
		p.bias_type = CUDA_R_16BF;
		good(p);
		p.bias_type = CUDA_R_16F; /* bf16 takes a bias of bf16, fp32 one of fp32 */
		if (p.epilogue & CUBLASLT_EPILOGUE_BIAS)
			refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	}
	struct product p = plain;
	p.epilogue = CUBLASLT_EPILOGUE_DGELU;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
}

/* tf32 has ten bits: 1 + 2^-11 is 1 there. */
static void test_tf32_rounds(void)
{
	const float x = 1 + 1.0f / 2048, one = 1, zero = 0;
	for (int i = 0; i < 2; i++) {
		cublasLtMatmulDesc_t d;
		cublasLtMatrixLayout_t l;
		float *at = (float *)(void *)memory, out;
		at[0] = x, at[64] = 1;
		cublasLtMatmulDescCreate(&d, i ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
		cublasLtMatrixLayoutCreate(&l, CUDA_R_32F, 1, 1, 1);
		CU_ASSERT_EQUAL(cublasLtMatmul(handle, d, &one, at, l, at + 64, l, &zero, at + 128, l, at + 128, l,
					NULL, NULL, 0, stream),
			CUBLAS_STATUS_SUCCESS);
		cudaStreamSynchronize(stream);
		memcpy(&out, at + 128, 4);
		CU_ASSERT(i ? out == 1 : out == x);
		cublasLtMatmulDescDestroy(d);
		cublasLtMatrixLayoutDestroy(l);
	}
}

static void test_refusals(void)
{
	struct product p = plain;
	p.short_ld = 17;
	refused(p, CUBLAS_STATUS_INVALID_VALUE);
	p = plain;
	p.k_of_b = K + 1;
	refused(p, CUBLAS_STATUS_INVALID_VALUE);
	p = plain;
	p.workspace_B = 16;
	refused(p, CUBLAS_STATUS_INVALID_VALUE);
	p = plain;
	p.shift_B = 2;
	refused(p, CUBLAS_STATUS_INVALID_VALUE);
	p.shift_B = 4; /* an algorithm for addresses of 16 bytes and more */
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p.no_algo = true;
	good(p);
	p = plain;
	p.epilogue = CUBLASLT_EPILOGUE_BIAS;
	p.bias_later_B = 4; /* it was a multiple of 16 when the algorithm was chosen */
	refused(p, CUBLAS_STATUS_EXECUTION_FAILED);
	p = plain;
	p.candidate = 1; /* one of those that do not work */
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p.candidate = 2;
	good(p);
	p = plain;
	p.d = p.c = CUDA_R_16BF;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p = of(CUDA_R_16BF, CUDA_R_16BF);
	p.b = CUDA_R_16F;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p = of(CUDA_R_16BF, CUDA_R_16BF);
	p.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	refused(fp8(CUDA_R_8F_E5M2, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_16BF), CUBLAS_STATUS_NOT_SUPPORTED);
	p = fp8(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF);
	p.ta = CUBLAS_OP_N;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p = plain;
	p.scale_a = 2;
	refused(p, CUBLAS_STATUS_NOT_SUPPORTED);
	p = plain;
	p.order = CUBLASLT_ORDER_COL32;
	refused(p, CUBLAS_STATUS_INVALID_VALUE);
}

static void test_attributes(void)
{
	cublasLtMatmulDesc_t d;
	int32_t t = 0;
	size_t written = 0;
	uint64_t wide = 1;
	CU_ASSERT_EQUAL(cublasLtMatmulDescCreate(&d, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
	CU_ASSERT_EQUAL(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide),
		CUBLAS_STATUS_INVALID_VALUE);
	CU_ASSERT_EQUAL(cublasLtMatmulDescGetAttribute(d, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &t, sizeof t, &written),
		CUBLAS_STATUS_SUCCESS);
	CU_ASSERT(t == CUDA_R_32F && written == sizeof t);
	cublasLtMatmulDescDestroy(d);
	CU_ASSERT_STRING_EQUAL(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
	CU_ASSERT(cublasLtGetVersion() >= 130000);
}

static void set_up(void)
{
	CU_ASSERT_EQUAL_FATAL(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
	CU_ASSERT_EQUAL_FATAL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
	CU_ASSERT_EQUAL_FATAL(cudaMalloc((void **)&memory, 5 * ROOM + (1 << 20)), cudaSuccess);
}

static void tear_down(void)
{
	CU_ASSERT_EQUAL(cudaFree(memory), cudaSuccess);
	CU_ASSERT_EQUAL(cudaStreamDestroy(stream), cudaSuccess);
	CU_ASSERT_EQUAL(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
}

int main(void)
{
	static const struct unit_test tests[] = {
		{"set-up", set_up},
		{"formats", test_formats},
		{"forms", test_forms},
		{"epilogues", test_epilogues},
		{"tf32 rounds", test_tf32_rounds},
		{"refusals", test_refusals},
		{"attributes", test_attributes},
		{"tear-down", tear_down},
	};
	if (!dlsym(RTLD_DEFAULT, "stepsim_double")) {
		puts("skipped: the libraries at hand are no doubles");
		return 0;
	}
	return unit_main("cublaslt_double", tests, COUNT(tests));
}
