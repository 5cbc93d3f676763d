/* The descriptors of cuBLASLt's double, and the rules for the products that it takes. For cublaslt.cc alone. */
#ifndef STEPSIM_TESTS_DOUBLES_CUBLASLT_RULES_H
#define STEPSIM_TESTS_DOUBLES_CUBLASLT_RULES_H

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "tests/doubles/double.h"

namespace
{

const uint32_t ALGO_MAGIC = 0x6c745f64;
const size_t WORKSPACE_ALIGNMENT_B = 256;

struct layout {
	uint32_t type;
	int32_t order, batch, mode;
	uint64_t rows, cols;
	int64_t ld, stride;
};

struct desc {
	int32_t compute, scale, pointer_mode, trans[3], fill;
	uint32_t epilogue;
	const void *bias;
	int64_t bias_stride;
	void *aux;
	int64_t aux_ld, aux_stride;
	int32_t sm_target, aux_type, bias_type;
	int8_t fast_accumulation;
	int32_t scale_mode[4];
	const void *scale_of[4]; /* A, B, C, D */
	void *amax_d;
};

struct preference {
	uint32_t search, reduction;
	uint64_t workspace_B;
	uint32_t alignment[4];
	float waves;
	uint64_t impl;
};

struct algorithm {
	uint32_t magic, id;
	uint64_t workspace_B;
	uint32_t alignment[4];
	uint32_t bias_alignment; /* that of the bias at the question; without one what a kernel would like best */
};
static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t) &&
		      sizeof(desc) <= sizeof(cublasLtMatmulDescOpaque_t),
	"they live in the caller's space");
static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) &&
		      sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t),
	"they live in the caller's space");

/* ---- attributes ---- */

struct attribute {
	int name;
	size_t offset, bytes;
};
#define FIELD(name, type, member) \
	{ \
		name, offsetof(type, member), sizeof(((type *)0)->member) \
	}

const attribute layout_attributes[] = {
	FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, layout, type),
	FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, layout, order),
	FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, layout, rows),
	FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, layout, cols),
	FIELD(CUBLASLT_MATRIX_LAYOUT_LD, layout, ld),
	FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, layout, batch),
	FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, layout, stride),
	FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, layout, mode),
};

const attribute desc_attributes[] = {
	FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, desc, compute),
	FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, desc, scale),
	FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, desc, pointer_mode),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSA, desc, trans[0]),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSB, desc, trans[1]),
	FIELD(CUBLASLT_MATMUL_DESC_TRANSC, desc, trans[2]),
	FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, desc, fill),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, desc, epilogue),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, desc, bias),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, desc, bias_stride),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, desc, aux),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, desc, aux_ld),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, desc, aux_stride),
	FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, desc, sm_target),
	FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, desc, aux_type),
	FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, desc, bias_type),
	FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, desc, fast_accumulation),
	FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, desc, scale_mode[0]),
	FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, desc, scale_mode[1]),
	FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, desc, scale_mode[2]),
	FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, desc, scale_mode[3]),
	FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, desc, scale_of[0]),
	FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, desc, scale_of[1]),
	FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, desc, scale_of[2]),
	FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, desc, scale_of[3]),
	FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, desc, amax_d),
};

const attribute preference_attributes[] = {
	FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, preference, search),
	FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, preference, workspace_B),
	FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, preference, reduction),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, preference, alignment[0]),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, preference, alignment[1]),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, preference, alignment[2]),
	FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, preference, alignment[3]),
	FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, preference, waves),
	FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, preference, impl),
};

template <size_t N> const attribute *find(const attribute (&table)[N], int name)
{
	for (const attribute &a : table)
		if (a.name == name)
			return &a;
	return nullptr;
}

cublasStatus_t set(void *object, const attribute *a, const void *from, size_t bytes)
{
	if (!object || !a || !from || bytes != a->bytes)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy((char *)object + a->offset, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get(const void *object, const attribute *a, void *to, size_t bytes, size_t *written)
{
	if (written)
		*written = a ? a->bytes : 0;
	if (!object || !a || (bytes == 0 && !written) || (bytes && bytes < a->bytes))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (bytes)
		memcpy(to, (const char *)object + a->offset, a->bytes);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- numbers ---- */

size_t bytes_of(uint32_t type)
{
	return type == CUDA_R_32F                                 ? 4
	       : type == CUDA_R_16F || type == CUDA_R_16BF        ? 2
	       : type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2 ? 1
	                                                          : 0;
}

bool is_fp8(uint32_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

float load(const void *base, uint32_t type, size_t i)
{
	switch (type) {
	case CUDA_R_16F: return __half2float(((const __half *)base)[i]);
	case CUDA_R_16BF: return __bfloat162float(((const __nv_bfloat16 *)base)[i]);
	case CUDA_R_8F_E4M3: return float(((const __nv_fp8_e4m3 *)base)[i]);
	case CUDA_R_8F_E5M2: return float(((const __nv_fp8_e5m2 *)base)[i]);
	default: return ((const float *)base)[i];
	}
}

void store(void *base, uint32_t type, size_t i, float x)
{
	switch (type) {
	case CUDA_R_16F: ((__half *)base)[i] = __float2half_rn(x); break;
	case CUDA_R_16BF: ((__nv_bfloat16 *)base)[i] = __float2bfloat16_rn(x); break;
	case CUDA_R_8F_E4M3: ((__nv_fp8_e4m3 *)base)[i] = __nv_fp8_e4m3(x); break; /* saturates */
	case CUDA_R_8F_E5M2: ((__nv_fp8_e5m2 *)base)[i] = __nv_fp8_e5m2(x); break;
	default: ((float *)base)[i] = x;
	}
}

/* Ten bits of mantissa, to nearest even. */
float to_tf32(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, 4);
	if ((bits & 0x7f800000) != 0x7f800000)
		bits = (bits + 0xfff + ((bits >> 13) & 1)) & ~0x1fffu;
	memcpy(&x, &bits, 4);
	return x;
}

float narrowed(float x, int compute)
{
	switch (compute) {
	case CUBLAS_COMPUTE_32F_FAST_TF32: return to_tf32(x);
	case CUBLAS_COMPUTE_32F_FAST_16BF: return __bfloat162float(__float2bfloat16_rn(x));
	case CUBLAS_COMPUTE_32F_FAST_16F: return __half2float(__float2half_rn(x));
	default: return x;
	}
}

/* ---- what is allowed ---- */

struct combination {
	int a, b, c, d, bias;
};

/* Of CUBLAS_COMPUTE_32F with scales of fp32. */
const combination combinations[] = {
	{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_8F_E4M3, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16BF, CUDA_R_8F_E5M2, CUDA_R_16BF},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUDA_R_8F_E4M3, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_16F, CUDA_R_8F_E5M2, CUDA_R_16F},
	{CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, CUDA_R_32F, CUDA_R_16BF},
};

const combination *combination_of(const desc &d, const layout &A, const layout &B, const layout &C, const layout &D)
{
	if (d.scale != CUDA_R_32F)
		return nullptr;
	bool fast = d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 || d.compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
	            d.compute == CUBLAS_COMPUTE_32F_FAST_16F;
	if (!fast && d.compute != CUBLAS_COMPUTE_32F && d.compute != CUBLAS_COMPUTE_32F_PEDANTIC)
		return nullptr;
	uint32_t a = A.type, b = B.type;
	if (a == CUDA_R_8F_E5M2 && b == CUDA_R_8F_E4M3) /* the table is symmetric in these */
		std::swap(a, b);
	for (const combination &c : combinations)
		if (c.a == (int)a && c.b == (int)b && c.c == (int)C.type && c.d == (int)D.type)
			return (fast && c.a != CUDA_R_32F) || (is_fp8(a) && d.compute != CUBLAS_COMPUTE_32F) ? nullptr
			                                                                                     : &c;
	return nullptr;
}

struct shape {
	uint64_t m, n, k;
	int32_t batch;
};

bool sound(const layout &l)
{
	return l.rows > 0 && l.cols > 0 && l.batch > 0 &&
	       (l.order == CUBLASLT_ORDER_COL || l.order == CUBLASLT_ORDER_ROW) &&
	       l.ld >= (int64_t)(l.order == CUBLASLT_ORDER_COL ? l.rows : l.cols);
}

const uint32_t EPILOGUES[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS,
	CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_BGRADA,
	CUBLASLT_EPILOGUE_BGRADB};

bool has_bias(const desc &d) { return d.epilogue & CUBLASLT_EPILOGUE_BIAS; }
bool has_bias_gradient(const desc &d)
{
	return d.epilogue == CUBLASLT_EPILOGUE_BGRADA || d.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

cublasStatus_t check_fp8(const desc &d, const layout &A, const layout &B, const layout &C, const layout &D,
	const shape &s)
{
	if (double_capability() < 89)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	bool tn = d.trans[0] == CUBLAS_OP_T && d.trans[1] == CUBLAS_OP_N && A.order == CUBLASLT_ORDER_COL &&
	          B.order == CUBLASLT_ORDER_COL && D.order == CUBLASLT_ORDER_COL;
	bool aligned = s.k % 16 == 0 && s.m * bytes_of(D.type) % 16 == 0 && A.ld % 16 == 0 && B.ld % 16 == 0 &&
	               (size_t)C.ld * bytes_of(C.type) % 16 == 0 && (size_t)D.ld * bytes_of(D.type) % 16 == 0;
	return tn && aligned && !has_bias_gradient(d) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t check(const desc &d, const layout &A, const layout &B, const layout &C, const layout &D, shape *s)
{
	bool ta = d.trans[0] != CUBLAS_OP_N, tb = d.trans[1] != CUBLAS_OP_N;
	*s = {ta ? A.cols : A.rows, tb ? B.rows : B.cols, ta ? A.rows : A.cols, A.batch};
	if (!sound(A) || !sound(B) || !sound(C) || !sound(D) || s->k != (tb ? B.cols : B.rows) || D.rows != s->m ||
		D.cols != s->n || C.rows != D.rows || C.cols != D.cols)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (B.batch != A.batch || C.batch != A.batch || D.batch != A.batch || (A.batch > 1 && D.stride == 0))
		return CUBLAS_STATUS_INVALID_VALUE;
	const combination *c = combination_of(d, A, B, C, D);
	bool known = std::find(std::begin(EPILOGUES), std::end(EPILOGUES), d.epilogue) != std::end(EPILOGUES);
	if (!c || !known || d.trans[2] != CUBLAS_OP_N || d.fill != CUBLAS_FILL_MODE_FULL || A.mode || B.mode ||
		C.mode || D.mode || C.order != D.order)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (has_bias(d) && d.bias_type >= 0 && d.bias_type != c->bias)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if ((d.pointer_mode != CUBLASLT_POINTER_MODE_HOST && d.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) ||
		std::any_of(d.scale_mode, d.scale_mode + 4, [](int32_t m) { return m != 0; }))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!is_fp8(A.type) && (d.scale_of[0] || d.scale_of[1] || d.scale_of[2] || d.scale_of[3] || d.amax_d))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return is_fp8(A.type) ? check_fp8(d, A, B, C, D, *s) : CUBLAS_STATUS_SUCCESS;
}

} // namespace

#endif
