/* Mamba-2's ops: each kernel against the reference, the reference's gradients against finite differences of its forward
 * ops, and the scan against the chunked form of Dao & Gu 2024 (arXiv:2405.21060), listing 1. */
#include "base/array.h"
#include "exec/host/kernels.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/kernel_check.h"

/* batch, seq, heads, head_dim, groups, state, conv or chunk */
static const int64_t shapes[][7] = {{1, 1, 1, 1, 1, 1, 1}, {2, 5, 4, 3, 2, 7, 4}, {1, 33, 2, 5, 1, 33, 8},
	{3, 17, 6, 2, 3, 4, 17}, {2, 70, 4, 8, 4, 16, 32}, {1, 9, 3, 31, 3, 2, 3}};

static struct op ssm_op(enum op_kind kind, unsigned flags, const int64_t d[7])
{
	struct op op = rig_op(kind, flags, 0, d[0], d[1], d[2], d[3], d[4]);
	op.ssm.state = d[5];
	if (kind != OP_SSM_GATE && kind != OP_SSM_GATE_GRAD)
		op.ssm.chunk = d[6];
	return op;
}

static void test_kernels(void)
{
	static const enum op_kind kinds[] = {OP_SSM_CONV, OP_SSM_CONV_GRAD, OP_SSM_SCAN, OP_SSM_SCAN_GRAD, OP_SSM_GATE,
		OP_SSM_GATE_GRAD};
	for (size_t i = 0; i < COUNT(shapes); i++)
		for (size_t k = 0; k < COUNT(kinds); k++)
			for (unsigned flags = 0; flags <= OP_ACCUMULATE; flags += OP_ACCUMULATE)
				check_op(ssm_op(kinds[k], flags, shapes[i]), 0, 2 * SUMS);
}

static void test_conv_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, ssm_op(OP_SSM_CONV, 0, shapes[1]), 0);
	rig_open(&grad, ssm_op(OP_SSM_CONV_GRAD, 0, shapes[1]), 0);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_SSM_CONV_GRAD_din] * sizeof(double));
	for (int a = 0; a < 3; a++)
		copy_argument(&grad, a, &forward, a);
	rig_reference(&grad);
	const double *dy = rig_ref(&grad, "dxbc");
	check_gradient_of(&forward, ARG_SSM_CONV_in, ARG_SSM_CONV_xbc, dy, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_SSM_CONV_w, ARG_SSM_CONV_xbc, dy, rig_ref(&grad, "dw"));
	check_gradient_of(&forward, ARG_SSM_CONV_b, ARG_SSM_CONV_xbc, dy, rig_ref(&grad, "db"));
	rig_close(&forward);
	rig_close(&grad);
}

static void test_scan_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, ssm_op(OP_SSM_SCAN, 0, shapes[1]), 0);
	rig_open(&grad, ssm_op(OP_SSM_SCAN_GRAD, 0, shapes[1]), 0);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_SSM_SCAN_GRAD_din] * sizeof(double));
	for (int a = 0; a < 3; a++)
		copy_argument(&grad, a, &forward, a);
	rig_reference(&grad);
	const double *dy = rig_ref(&grad, "dy");
	check_gradient_of(&forward, ARG_SSM_SCAN_xbc, ARG_SSM_SCAN_y, dy, rig_ref(&grad, "dxbc"));
	check_gradient_of(&forward, ARG_SSM_SCAN_in, ARG_SSM_SCAN_y, dy, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_SSM_SCAN_heads, ARG_SSM_SCAN_y, dy, rig_ref(&grad, "dheads"));
	rig_close(&forward);
	rig_close(&grad);
}

static void test_gate_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, ssm_op(OP_SSM_GATE, 0, shapes[1]), 0);
	rig_open(&grad, ssm_op(OP_SSM_GATE_GRAD, 0, shapes[1]), 0);
	rig_reference(&forward);
	for (int a = 0; a < 3; a++) /* y, in, w */
		copy_argument(&grad, a + 1, &forward, a);
	copy_argument(&grad, ARG_SSM_GATE_GRAD_sigma, &forward, ARG_SSM_GATE_sigma);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_SSM_GATE_GRAD_din] * sizeof(double));
	rig_reference(&grad);
	const double *dout = rig_ref(&grad, "dout");
	check_gradient_of(&forward, ARG_SSM_GATE_y, ARG_SSM_GATE_out, dout, rig_ref(&grad, "dy"));
	check_gradient_of(&forward, ARG_SSM_GATE_in, ARG_SSM_GATE_out, dout, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_SSM_GATE_w, ARG_SSM_GATE_out, dout, rig_ref(&grad, "dw"));
	rig_close(&forward);
	rig_close(&grad);
}

/* One head, channel and state: y_t = sum over i <= t of C_t B_i exp(sum of dt A behind i) dt_i x_i + D x_t. */
static void test_scan_by_hand(void)
{
	static const int64_t d[7] = {1, 4, 1, 1, 1, 1, 2};
	struct rig r;
	rig_open(&r, ssm_op(OP_SSM_SCAN, 0, d), 0);
	rig_reference(&r);
	const double *xbc = rig_ref(&r, "xbc"), *in = rig_ref(&r, "in"), *heads = rig_ref(&r, "heads");
	double dt[4];
	for (int t = 0; t < 4; t++)
		dt[t] = log(1.0 + exp(in[5 * t + 4] + heads[1]));
	for (int t = 0; t < 4; t++) {
		double y = heads[2] * xbc[3 * t];
		for (int i = 0; i <= t; i++) {
			double decay = 0;
			for (int k = i + 1; k <= t; k++)
				decay -= dt[k] * exp(heads[0]);
			y += xbc[3 * t + 2] * xbc[3 * i + 1] * exp(decay) * dt[i] * xbc[3 * i];
		}
		CU_ASSERT_DOUBLE_EQUAL(rig_ref(&r, "y")[t], y, 1e-12);
	}
	/* The second chunk begins with what two rows left. */
	CU_ASSERT_EQUAL(rig_ref(&r, "states")[0], 0.0);
	CU_ASSERT_DOUBLE_EQUAL(rig_ref(&r, "states")[1],
		exp(-dt[1] * exp(heads[0])) * dt[0] * xbc[0] * xbc[1] + dt[1] * xbc[3] * xbc[4], 1e-12);
	rig_close(&r);
}

/* FLOP of the products, counted by hand: 2 sequences of 8 rows in chunks of 4; 4 heads of 3 channels, 2 groups, 5. */
static void test_flop(void)
{
	const int64_t d[7] = {2, 8, 4, 3, 2, 5, 4};
	const double pairs = 4 * 10 /* chunks x 4 x 5 / 2 */, rows = 16, channels = 12;
	const double cb = 2 * pairs * 2 * 5, inside = 2 * pairs * channels, state = 2 * rows * channels * 5,
		     passed = 2 * 4 * channels * 5;
	struct op op = ssm_op(OP_SSM_SCAN, 0, d);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), cb + inside + 2 * state + passed, 1e-9);
	op = ssm_op(OP_SSM_SCAN_GRAD, 0, d);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), 2 * (cb + inside + 2 * state + passed) + cb + state, 1e-9);
	CU_ASSERT_EQUAL(op_chunks(&op), 2);
	op.ssm.seq = 9;
	CU_ASSERT_EQUAL(op_chunks(&op), 3);
}

UNIT_MAIN("ssm", {"kernels", test_kernels}, {"gradient of the convolution", test_conv_gradient},
	{"gradient of the scan", test_scan_gradient}, {"gradient of the gated norm", test_gate_gradient},
	{"the scan by hand", test_scan_by_hand}, {"FLOP of the scan", test_flop})
