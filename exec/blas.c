/* exec_blas_kernels() */
#include <cblas.h>
#include <math.h>
#include <stdio.h>

#include "base/array.h"
#include "exec/exec.h"

#define SIDE_MOST 160

/* Below and above the limits of the kernels for small products, and no multiple of a block. */
static const struct {
	int m, n, k;
} SIZES[] = {{3, 5, 7}, {17, 33, 65}, {64, 96, 128}, {129, 67, SIDE_MOST}};

/* Small whole numbers: each sum is exact in fp32, whatever the order of its terms. */
static void fill(float *x, int n, int step)
{
	for (int i = 0; i < n; i++)
		x[i] = (float)(i * step % 11 - 5);
}

static float plain(const float *a, const float *b, int m, int n, int k, int at, bool trans_a, bool trans_b)
{
	const int row = at / n, col = at % n;
	float sum = 0;
	for (int i = 0; i < k; i++)
		sum += a[trans_a ? i * m + row : row * k + i] * b[trans_b ? col * k + i : i * n + col];
	return sum;
}

/* Compares C + A B with a plain sum for each element; `add` false: A B, over what C held. */
static bool product_is_right(int m, int n, int k, bool trans_a, bool trans_b, bool add)
{
	static float a[SIDE_MOST * SIDE_MOST], b[SIDE_MOST * SIDE_MOST], c[SIDE_MOST * SIDE_MOST];
	fill(a, m * k, 7);
	fill(b, k * n, 5);
	for (int i = 0; i < m * n; i++)
		c[i] = add ? (float)(i % 9) : NAN;
	cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, m, n, k,
		1.0f, a, trans_a ? m : k, b, trans_b ? k : n, add ? 1.0f : 0.0f, c, n);
	for (int i = 0; i < m * n; i++)
		if (c[i] != (add ? (float)(i % 9) : 0.0f) + plain(a, b, m, n, k, i, trans_a, trans_b))
			return false;
	return true;
}

void exec_blas_kernels(struct blas_kernels *out)
{
	snprintf(out->name, sizeof out->name, "%s", openblas_get_corename());
	out->right = true;
	for (size_t i = 0; i < COUNT(SIZES) && out->right; i++)
		for (int way = 0; way < 8 && out->right; way++)
			out->right = product_is_right(SIZES[i].m, SIZES[i].n, SIZES[i].k, way & 1, way & 2, way & 4);
}
