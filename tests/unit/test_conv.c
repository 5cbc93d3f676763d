/* Convolutions, batch norm and pools: each kernel against the reference, and the reference's gradients against finite
 * differences of its forward ops. */
#include "base/array.h"
#include "exec/host/kernels.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/kernel_check.h"

/* batch, side, in, out, kernel, stride */
static const int64_t shapes[][6] = {{1, 1, 1, 1, 1, 1}, {2, 5, 3, 4, 3, 1}, {3, 7, 2, 5, 3, 2}, {2, 8, 5, 3, 1, 2},
	{2, 9, 3, 8, 7, 2}, {5, 6, 33, 31, 3, 1}, {4, 6, 4, 4, 3, 2}};

static struct op conv_op(enum op_kind kind, unsigned flags, const int64_t d[6])
{
	struct op op = rig_op(kind, flags, 0, d[0], d[1], d[2], d[3], d[4]);
	op.conv.stride = d[5];
	return op;
}

/* The same of rows of pixels. */
static struct op flat_op(enum op_kind kind, unsigned flags, const int64_t *d)
{
	struct op op = conv_op(kind, flags, d);
	op.conv.flat = 1;
	return op;
}

static void test_flat(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		check_op(flat_op(OP_CONV, OP_TRANS_B, shapes[i]), 0, SUMS);
		check_op(flat_op(OP_CONV_DATA, 0, shapes[i]), 0, SUMS);
		check_op(flat_op(OP_CONV_WEIGHT, OP_TRANS_A, shapes[i]), 0, SUMS);
		check_op(flat_op(OP_CONV_WEIGHT, OP_TRANS_A | OP_ACCUMULATE, shapes[i]), 0, SUMS);
	}
	for (size_t i = 1; i < 5; i++) {
		struct rig forward, data, weight;
		rig_open(&forward, flat_op(OP_CONV, OP_TRANS_B, shapes[i]), 0);
		rig_open(&data, flat_op(OP_CONV_DATA, 0, shapes[i]), 0);
		rig_open(&weight, flat_op(OP_CONV_WEIGHT, OP_TRANS_A, shapes[i]), 0);
		copy_argument(&data, ARG_CONV_DATA_w, &forward, ARG_CONV_w);
		copy_argument(&weight, ARG_CONV_WEIGHT_x, &forward, ARG_CONV_x);
		copy_argument(&weight, ARG_CONV_WEIGHT_dy, &data, ARG_CONV_DATA_dy);
		rig_reference(&data);
		rig_reference(&weight);
		check_gradient(&forward, "x", "y", rig_ref(&data, "dy"), rig_ref(&data, "dx"));
		check_gradient(&forward, "w", "y", rig_ref(&data, "dy"), rig_ref(&weight, "dw"));
		rig_close(&forward);
		rig_close(&data);
		rig_close(&weight);
	}
	/* Whisper's second: 6 places of 2 channels, three taps, every second place, 5 channels out */
	struct op op = {.kind = OP_CONV,
		.conv = {.batch = 3, .side = 6, .in = 2, .out = 5, .kernel = 3, .stride = 2, .flat = 1}};
	struct op_gemm g = op_as_gemm(&op);
	CU_ASSERT(g.m == 3 * 3 && g.n == 5 && g.k == 3 * 2);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), 2.0 * 9 * 5 * 6, 0);
	op.kind = OP_CONV_DATA;
	g = op_as_gemm(&op);
	CU_ASSERT(g.m == 3 * 6 && g.n == 2 && g.k == 8); /* 15 / 2, rounded up */
}

static void test_convolutions(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		check_op(conv_op(OP_CONV, OP_TRANS_B, shapes[i]), 0, SUMS);
		check_op(conv_op(OP_CONV_DATA, 0, shapes[i]), 0, SUMS);
		check_op(conv_op(OP_CONV_WEIGHT, OP_TRANS_A, shapes[i]), 0, SUMS);
		check_op(conv_op(OP_CONV_WEIGHT, OP_TRANS_A | OP_ACCUMULATE, shapes[i]), 0, SUMS);
	}
}

static void test_conv_gradient(void)
{
	for (size_t i = 1; i < 5; i++) {
		struct rig forward, data, weight;
		rig_open(&forward, conv_op(OP_CONV, OP_TRANS_B, shapes[i]), 0);
		rig_open(&data, conv_op(OP_CONV_DATA, 0, shapes[i]), 0);
		rig_open(&weight, conv_op(OP_CONV_WEIGHT, OP_TRANS_A, shapes[i]), 0);
		copy_argument(&data, ARG_CONV_DATA_w, &forward, ARG_CONV_w);
		copy_argument(&weight, ARG_CONV_WEIGHT_x, &forward, ARG_CONV_x);
		copy_argument(&weight, ARG_CONV_WEIGHT_dy, &data, ARG_CONV_DATA_dy);
		rig_reference(&data);
		rig_reference(&weight);
		const double *dy = rig_ref(&data, "dy");
		check_gradient_of(&forward, ARG_CONV_x, ARG_CONV_y, dy, rig_ref(&data, "dx"));
		check_gradient_of(&forward, ARG_CONV_w, ARG_CONV_y, dy, rig_ref(&weight, "dw"));
		rig_close(&forward);
		rig_close(&data);
		rig_close(&weight);
	}
}

/* One channel, an image of 3 x 3 and a kernel of ones: sums of neighbours; with a stride of 2 those of the corners. */
static void test_by_hand(void)
{
	static const double sums[] = {12, 21, 16, 27, 45, 33, 24, 39, 28};
	for (int64_t stride = 1; stride <= 2; stride++) {
		const int64_t d[6] = {1, 3, 1, 1, 3, stride};
		struct rig r;
		rig_open(&r, conv_op(OP_CONV, OP_TRANS_B, d), 0);
		CU_ASSERT_EQUAL(r.n[ARG_CONV_y], stride == 1 ? 9 : 4);
		for (int i = 0; i < 9; i++) {
			rig_ref(&r, "x")[i] = i + 1;
			rig_ref(&r, "w")[i] = 1;
		}
		rig_reference(&r);
		for (size_t i = 0; i < r.n[ARG_CONV_y]; i++)
			CU_ASSERT_EQUAL(rig_ref(&r, "y")[i], stride == 1 ? sums[i] : sums[i / 2 * 6 + i % 2 * 2]);
		rig_close(&r);
	}
}

static void test_batch_norm(void)
{
	static const int64_t sizes[][2] = {{2, 1}, {31, 33}, {400, 130}, {5, 7}};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned flags = 0; flags <= OP_ACCUMULATE; flags += OP_ACCUMULATE) {
			struct rig forward, r;
			check_op(rig_op(OP_BATCH_NORM, 0, 0, sizes[i][0], sizes[i][1], 0, 0, 0), 0, 2 * SUMS);
			rig_open(&forward, rig_op(OP_BATCH_NORM, 0, 0, sizes[i][0], sizes[i][1], 0, 0, 0), 0);
			rig_reference(&forward);
			rig_open(&r, rig_op(OP_BATCH_NORM_GRAD, flags, 0, sizes[i][0], sizes[i][1], 0, 0, 0), 0);
			copy_argument(&r, ARG_BATCH_NORM_GRAD_x, &forward, ARG_BATCH_NORM_x);
			copy_argument(&r, ARG_BATCH_NORM_GRAD_stats, &forward, ARG_BATCH_NORM_stats);
			for (int a = ARG_BATCH_NORM_GRAD_x; a <= ARG_BATCH_NORM_GRAD_stats; a++)
				rig_sync(&r, a);
			for (size_t k = 0; k < (size_t)sizes[i][1]; k++) /* terms as large as 1 / sigma */
				r.terms = fmax(r.terms, rig_ref(&r, "stats")[(size_t)sizes[i][1] + k]);
			check(&r, 2 * SUMS);
			rig_close(&forward);
		}
}

static void test_batch_norm_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, rig_op(OP_BATCH_NORM, 0, 0, 6, 3, 0, 0, 0), 0);
	rig_open(&grad, rig_op(OP_BATCH_NORM_GRAD, 0, 0, 6, 3, 0, 0, 0), 0);
	rig_reference(&forward);
	copy_argument(&grad, ARG_BATCH_NORM_GRAD_x, &forward, ARG_BATCH_NORM_x);
	copy_argument(&grad, ARG_BATCH_NORM_GRAD_w, &forward, ARG_BATCH_NORM_w);
	copy_argument(&grad, ARG_BATCH_NORM_GRAD_stats, &forward, ARG_BATCH_NORM_stats);
	rig_reference(&grad);
	const double *dy = rig_ref(&grad, "dy");
	check_gradient_of(&forward, ARG_BATCH_NORM_x, ARG_BATCH_NORM_y, dy, rig_ref(&grad, "dx"));
	check_gradient_of(&forward, ARG_BATCH_NORM_w, ARG_BATCH_NORM_y, dy, rig_ref(&grad, "dw"));
	check_gradient_of(&forward, ARG_BATCH_NORM_b, ARG_BATCH_NORM_y, dy, rig_ref(&grad, "db"));
	rig_close(&forward);
	rig_close(&grad);
}

static void test_pools(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		int64_t d[6];
		memcpy(d, shapes[i], sizeof d);
		d[3] = d[2];
		struct rig forward, grad;
		rig_open(&forward, conv_op(OP_MAX_POOL, 0, d), 0);
		rig_open(&grad, conv_op(OP_MAX_POOL_GRAD, 0, d), 0);
		rig_reference(&forward);
		memcpy(grad.fast[ARG_MAX_POOL_GRAD_taken], forward.fast[ARG_MAX_POOL_taken],
			grad.n[ARG_MAX_POOL_GRAD_taken] * sizeof(int32_t));
		struct rig check_grad = grad;
		rig_reference(&grad);
		check_gradient_of(&forward, ARG_MAX_POOL_x, ARG_MAX_POOL_y, rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
		check(&check_grad, SUMS);
		check(&forward, 0.0);
		d[4] = d[5] = d[1];
		check_op(conv_op(OP_MEAN_POOL, 0, d), 0, SUMS);
		check_op(conv_op(OP_MEAN_POOL_GRAD, 0, d), 0, ROUNDS);
	}
}

static void test_mean_gradient(void)
{
	const int64_t d[6] = {2, 3, 4, 4, 3, 3};
	struct rig forward, grad;
	rig_open(&forward, conv_op(OP_MEAN_POOL, 0, d), 0);
	rig_open(&grad, conv_op(OP_MEAN_POOL_GRAD, 0, d), 0);
	rig_reference(&grad);
	check_gradient_of(&forward, ARG_MEAN_POOL_x, ARG_MEAN_POOL_y, rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
	rig_close(&forward);
	rig_close(&grad);
}

/* The products that a convolution of 2 images of 8 x 8 is: 3 channels to 5, a kernel of 3, a stride of 2. */
static void test_products(void)
{
	const int64_t d[6] = {2, 8, 3, 5, 3, 2};
	struct op op = conv_op(OP_CONV, OP_TRANS_B, d);
	struct op_gemm g = op_as_gemm(&op);
	CU_ASSERT_EQUAL(op_conv_side(&op), 4);
	CU_ASSERT(g.m == 32 && g.n == 5 && g.k == 27);
	CU_ASSERT_EQUAL(op_flop(&op), 2.0 * 32 * 5 * 27);
	op = conv_op(OP_CONV_WEIGHT, OP_TRANS_A, d);
	g = op_as_gemm(&op);
	CU_ASSERT(g.m == 5 && g.n == 27 && g.k == 32);
	op = conv_op(OP_CONV_DATA, 0, d);
	g = op_as_gemm(&op);
	CU_ASSERT(g.m == 128 && g.n == 3 && g.k == 12); /* 9 x 5 taps for four sorts of pixels */
}

UNIT_MAIN("conv", {"convolutions", test_convolutions}, {"of rows of pixels", test_flat},
	{"gradients of a convolution", test_conv_gradient}, {"a convolution by hand", test_by_hand},
	{"batch norm", test_batch_norm}, {"gradients of batch norm", test_batch_norm_gradient}, {"pools", test_pools},
	{"gradient of the mean", test_mean_gradient}, {"products of convolutions", test_products})
