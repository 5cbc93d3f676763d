/* The gated delta rule's ops, Kimi delta attention's, gates by a sigmoid and short convolutions: each kernel against
 * the reference, the reference's gradients against finite differences of its forward ops, and the recurrence against
 * the chunked form of Yang et al. 2024 (arXiv:2412.06464), section 3.3. */
#include "base/array.h"
#include "exec/host/kernels.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/kernel_check.h"

/* batch, seq, heads, head_dim, groups, state, chunk or taps */
static const int64_t shapes[][7] = {{1, 1, 1, 1, 1, 1, 1}, {2, 5, 4, 3, 2, 7, 4}, {1, 33, 2, 5, 1, 33, 8},
	{3, 17, 6, 2, 3, 4, 17}, {2, 70, 4, 8, 4, 16, 32}, {1, 9, 3, 31, 3, 2, 3}};

static struct op delta_op(enum op_kind kind, unsigned flags, const int64_t d[7])
{
	struct op op = rig_op(kind, flags, 0, d[0], d[1], d[2], d[3], d[4]);
	op.ssm.state = d[5];
	op.ssm.layout = SSM_LAYOUT_DELTA;
	if (kind != OP_DELTA_GATE && kind != OP_DELTA_GATE_GRAD)
		op.ssm.chunk = d[6];
	return op;
}

static struct op kda_op(enum op_kind kind, unsigned flags, const int64_t d[7])
{
	struct op op = delta_op(kind, flags, d);
	op.ssm.layout = SSM_LAYOUT_KDA;
	return op;
}

/* Checks each shape of these scans, and of the ops beside them, against the reference. `of` makes the op. */
static void check_kernels(enum op_kind scan, enum op_kind scan_grad,
	struct op (*of)(enum op_kind kind, unsigned flags, const int64_t d[7]))
{
	const enum op_kind kinds[] = {OP_SSM_CONV, OP_SSM_CONV_GRAD, scan, scan_grad, OP_DELTA_GATE,
		OP_DELTA_GATE_GRAD};
	const unsigned no_bias = 1u << ARG_SSM_CONV_b,
		       no_dbias = 1u << ARG_SSM_CONV_GRAD_b | 1u << ARG_SSM_CONV_GRAD_db;
	for (size_t i = 0; i < COUNT(shapes); i++)
		for (size_t k = 0; k < COUNT(kinds); k++)
			for (unsigned flags = 0; flags <= OP_ACCUMULATE; flags += OP_ACCUMULATE)
				check_op(of(kinds[k], flags, shapes[i]),
					kinds[k] == OP_SSM_CONV        ? no_bias
					: kinds[k] == OP_SSM_CONV_GRAD ? no_dbias
								       : 0,
					4 * SUMS);
}

static void test_kernels(void) { check_kernels(OP_DELTA_SCAN, OP_DELTA_SCAN_GRAD, delta_op); }

static void test_kda_kernels(void) { check_kernels(OP_KDA_SCAN, OP_KDA_SCAN_GRAD, kda_op); }

static void test_kda_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, kda_op(OP_KDA_SCAN, 0, shapes[1]), 0);
	rig_open(&grad, kda_op(OP_KDA_SCAN_GRAD, 0, shapes[1]), 0);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_KDA_SCAN_GRAD_din] * sizeof(double));
	for (int a = ARG_KDA_SCAN_xbc; a <= ARG_KDA_SCAN_heads; a++)
		copy_argument(&grad, a, &forward, a);
	rig_reference(&grad);
	const double *dy = rig_ref(&grad, "dy");
	check_gradient_of(&forward, ARG_KDA_SCAN_xbc, ARG_KDA_SCAN_y, dy, rig_ref(&grad, "dxbc"));
	check_gradient_of(&forward, ARG_KDA_SCAN_in, ARG_KDA_SCAN_y, dy, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_KDA_SCAN_f, ARG_KDA_SCAN_y, dy, rig_ref(&grad, "df"));
	check_gradient_of(&forward, ARG_KDA_SCAN_heads, ARG_KDA_SCAN_y, dy, rig_ref(&grad, "dheads"));
	rig_close(&forward);
	rig_close(&grad);
}

/* Where all channels of a head decay alike, the scan is the gated delta rule's. */
static void test_kda_of_equal_decays(void)
{
	static const int64_t d[7] = {2, 9, 4, 3, 2, 5, 4};
	enum { ROWS = 18, HEADS = 4, KEYS = 5, GROUPS = 2, CONVOLVED = 2 * 3 + 2 * KEYS, PER_GROUP = 2 };
	struct rig delta, kda;
	rig_open(&delta, delta_op(OP_DELTA_SCAN, 0, d), 0);
	rig_open(&kda, kda_op(OP_KDA_SCAN, 0, d), 0);
	copy_argument(&kda, ARG_KDA_SCAN_xbc, &delta, ARG_DELTA_SCAN_xbc);
	const double *in = rig_ref(&delta, "in"), *heads = rig_ref(&delta, "heads");
	double *b = rig_ref(&kda, "in"), *f = rig_ref(&kda, "f"), *own = rig_ref(&kda, "heads");
	for (int r = 0; r < ROWS; r++)
		for (int h = 0; h < HEADS; h++) {
			const int g = h / PER_GROUP, i = h % PER_GROUP, wide = 2 * 3 + CONVOLVED + 2 * PER_GROUP;
			const double *of = in + (r * GROUPS + g) * wide + 2 * 3 + CONVOLVED + i;
			b[(r * GROUPS + g) * (CONVOLVED + PER_GROUP) + CONVOLVED + i] = of[PER_GROUP];
			for (int n = 0; n < KEYS; n++)
				f[(r * HEADS + h) * KEYS + n] = of[0];
		}
	for (int h = 0; h < HEADS; h++) {
		own[h * (1 + KEYS)] = heads[2 * h];
		for (int n = 0; n < KEYS; n++)
			own[h * (1 + KEYS) + 1 + n] = heads[2 * h + 1];
	}
	rig_reference(&delta);
	rig_reference(&kda);
	agree(rig_ref(&kda, "y"), rig_ref(&delta, "y"), ROWS * HEADS * 3);
	agree(rig_ref(&kda, "states"), rig_ref(&delta, "states"), 2 * 3 * HEADS * 3 * KEYS);
	rig_close(&delta);
	rig_close(&kda);
}

/* The gradients of a gate, of which both ops are given. */
static void check_gate_gradient(struct op op, struct op grad_op)
{
	struct rig forward, grad;
	rig_open(&forward, op, 0);
	rig_open(&grad, grad_op, 0);
	rig_reference(&forward);
	for (int a = 0; a < 3; a++) /* y, in, w */
		copy_argument(&grad, a + 1, &forward, a);
	copy_argument(&grad, ARG_DELTA_GATE_GRAD_sigma, &forward, ARG_DELTA_GATE_sigma);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_DELTA_GATE_GRAD_din] * sizeof(double));
	rig_reference(&grad);
	const double *dout = rig_ref(&grad, "dout");
	check_gradient_of(&forward, ARG_DELTA_GATE_y, ARG_DELTA_GATE_out, dout, rig_ref(&grad, "dy"));
	check_gradient_of(&forward, ARG_DELTA_GATE_in, ARG_DELTA_GATE_out, dout, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_DELTA_GATE_w, ARG_DELTA_GATE_out, dout, rig_ref(&grad, "dw"));
	rig_close(&forward);
	rig_close(&grad);
}

static void test_gate_gradient(void)
{
	check_gate_gradient(delta_op(OP_DELTA_GATE, 0, shapes[1]), delta_op(OP_DELTA_GATE_GRAD, 0, shapes[1]));
}

static void test_kda_gate_gradient(void)
{
	check_gate_gradient(kda_op(OP_DELTA_GATE, 0, shapes[1]), kda_op(OP_DELTA_GATE_GRAD, 0, shapes[1]));
}

static void test_scan_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, delta_op(OP_DELTA_SCAN, 0, shapes[1]), 0);
	rig_open(&grad, delta_op(OP_DELTA_SCAN_GRAD, 0, shapes[1]), 0);
	memset(rig_ref(&grad, "din"), 0, grad.n[ARG_DELTA_SCAN_GRAD_din] * sizeof(double));
	for (int a = 0; a < 3; a++)
		copy_argument(&grad, a, &forward, a);
	rig_reference(&grad);
	const double *dy = rig_ref(&grad, "dy");
	check_gradient_of(&forward, ARG_DELTA_SCAN_xbc, ARG_DELTA_SCAN_y, dy, rig_ref(&grad, "dxbc"));
	check_gradient_of(&forward, ARG_DELTA_SCAN_in, ARG_DELTA_SCAN_y, dy, rig_ref(&grad, "din"));
	check_gradient_of(&forward, ARG_DELTA_SCAN_heads, ARG_DELTA_SCAN_y, dy, rig_ref(&grad, "dheads"));
	rig_close(&forward);
	rig_close(&grad);
}

/* ---- the chunked form ---- */

enum { SEQ = 12, CHUNK = 4, P = 3, N = 5, CONV = P + 2 * N, IN = P + CONV + 2 };

static double unit(const double *x, double v[N])
{
	double square = (double)UNIT_EPS;
	for (int n = 0; n < N; n++)
		square += x[n] * x[n];
	for (int n = 0; n < N; n++)
		v[n] = x[n] / sqrt(square);
	return square;
}

/* A chunk of one head: u = (I + tril(diag(beta) (decay * K K^T), -1))^-1 diag(beta) (V - decay K S^T), then y and S. */
static void chunk_forward(const double *xbc, const double *in, const double *heads, double S[P][N], double y[CHUNK][P])
{
	double k[CHUNK][N], q[CHUNK][N], g[CHUNK], beta[CHUNK], u[CHUNK][P];
	for (int t = 0; t < CHUNK; t++) {
		unit(xbc + t * CONV + P, k[t]);
		unit(xbc + t * CONV + P + N, q[t]);
		g[t] = (t ? g[t - 1] : 0) - exp(heads[0]) * log1p(exp(in[t * IN + P + CONV] + heads[1]));
		beta[t] = 1 / (1 + exp(-in[t * IN + P + CONV + 1]));
	}
	for (int t = 0; t < CHUNK; t++)
		for (int p = 0; p < P; p++) {
			double value = xbc[t * CONV + p];
			for (int n = 0; n < N; n++) {
				value -= exp(g[t]) * S[p][n] * k[t][n];
				for (int i = 0; i < t; i++)
					value -= exp(g[t] - g[i]) * k[t][n] * k[i][n] * u[i][p];
			}
			u[t][p] = beta[t] * value;
		}
	for (int t = 0; t < CHUNK; t++)
		for (int p = 0; p < P; p++) {
			y[t][p] = 0;
			for (int n = 0; n < N; n++) {
				y[t][p] += exp(g[t]) * S[p][n] * q[t][n] / sqrt(N);
				for (int i = 0; i <= t; i++)
					y[t][p] += exp(g[t] - g[i]) * q[t][n] * k[i][n] * u[i][p] / sqrt(N);
			}
		}
	for (int p = 0; p < P; p++)
		for (int n = 0; n < N; n++) {
			S[p][n] *= exp(g[CHUNK - 1]);
			for (int i = 0; i < CHUNK; i++)
				S[p][n] += exp(g[CHUNK - 1] - g[i]) * u[i][p] * k[i][n];
		}
}

static void test_chunked_form(void)
{
	static const int64_t d[7] = {1, SEQ, 1, P, 1, N, CHUNK};
	struct rig r;
	double S[P][N] = {{0}}, y[CHUNK][P];
	rig_open(&r, delta_op(OP_DELTA_SCAN, 0, d), 0);
	rig_reference(&r);
	for (int c = 0; c < SEQ / CHUNK; c++) {
		agree(&S[0][0], rig_ref(&r, "states") + c * P * N, P * N);
		chunk_forward(rig_ref(&r, "xbc") + c * CHUNK * CONV, rig_ref(&r, "in") + c * CHUNK * IN,
			rig_ref(&r, "heads"), S, y);
		agree(&y[0][0], rig_ref(&r, "y") + c * CHUNK * P, CHUNK * P);
	}
	rig_close(&r);
}

/* FLOP of the products, counted by hand: 2 sequences of 8 rows in chunks of 4; 4 heads of 3 channels, keys of 5. */
static void test_flop(void)
{
	const int64_t d[7] = {2, 8, 4, 3, 2, 5, 4};
	const double chunks = 4 * 4 /* of all heads */, triangle = chunks * 2 * 10, cube = chunks * 4 * 4 * 4 / 3.0,
		     whole = chunks * 2 * 4 * 3 * 5, decays = chunks * 2 * 3 * 5;
	struct op op = delta_op(OP_DELTA_SCAN, 0, d);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), triangle * (3 * 5 + 2 * 3) + cube + 3 * whole + decays, 1e-9);
	op = delta_op(OP_DELTA_SCAN_GRAD, 0, d);
	CU_ASSERT_DOUBLE_EQUAL(op_flop(&op), triangle * (10 * 5 + 5 * 3) + 2 * cube + 8 * whole + 2 * decays, 1e-9);
}

/* ---- gates ---- */

static const int64_t gates[][3] = {{1, 1, 1}, {5, 12, 12}, {7, 12, 3}, {33, 40, 1}};

static void test_sigmoid_gate(void)
{
	struct rig forward, grad;
	for (size_t i = 0; i < COUNT(gates); i++) {
		const struct op op = rig_op(OP_SIGMOID_GATE, 0, 0, gates[i][0], gates[i][1], gates[i][2], 0, 0);
		const struct op back = rig_op(OP_SIGMOID_GATE_GRAD, 0, 0, gates[i][0], gates[i][1], gates[i][2], 0, 0);
		check_op(op, 0, SUMS);
		check_op(back, 0, SUMS);
		rig_open(&forward, op, 0);
		rig_open(&grad, back, 0);
		copy_argument(&grad, ARG_SIGMOID_GATE_GRAD_x, &forward, ARG_SIGMOID_GATE_x);
		copy_argument(&grad, ARG_SIGMOID_GATE_GRAD_gate, &forward, ARG_SIGMOID_GATE_gate);
		rig_reference(&grad);
		check_gradient(&forward, "x", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
		check_gradient(&forward, "gate", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dgate"));
		rig_close(&forward);
		rig_close(&grad);
	}
}

/* batch, seq, channels, taps */
static const int64_t shorts[][4] = {{1, 1, 1, 1}, {2, 5, 4, 3}, {3, 2, 7, 4}, {2, 33, 40, 3}};

static void test_short_conv(void)
{
	struct rig forward, grad;
	for (size_t i = 0; i < COUNT(shorts); i++)
		for (unsigned flags = 0; flags <= OP_ACCUMULATE; flags += OP_ACCUMULATE) {
			const int64_t *d = shorts[i];
			check_op(rig_op(OP_SHORT_CONV, flags, 0, d[0], d[1], d[2], d[3], 0), 0, SUMS);
			check_op(rig_op(OP_SHORT_CONV_GRAD, flags, 0, d[0], d[1], d[2], d[3], 0), 0, SUMS);
		}
	const int64_t *d = shorts[1];
	rig_open(&forward, rig_op(OP_SHORT_CONV, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
	rig_open(&grad, rig_op(OP_SHORT_CONV_GRAD, 0, 0, d[0], d[1], d[2], d[3], 0), 0);
	copy_argument(&grad, ARG_SHORT_CONV_GRAD_in, &forward, ARG_SHORT_CONV_in);
	copy_argument(&grad, ARG_SHORT_CONV_GRAD_w, &forward, ARG_SHORT_CONV_w);
	rig_reference(&grad);
	check_gradient(&forward, "in", "out", rig_ref(&grad, "dout"), rig_ref(&grad, "din"));
	check_gradient(&forward, "w", "out", rig_ref(&grad, "dout"), rig_ref(&grad, "dw"));
	rig_close(&forward);
	rig_close(&grad);
}

UNIT_MAIN("delta", {"kernels", test_kernels}, {"gradient of the scan", test_scan_gradient},
	{"gradient of the norm and its gate", test_gate_gradient}, {"the chunked form", test_chunked_form},
	{"FLOP of the scan", test_flop}, {"kernels of KDA", test_kda_kernels}, {"gradient of KDA", test_kda_gradient},
	{"KDA of equal decays", test_kda_of_equal_decays}, {"gradient of KDA's gates", test_kda_gate_gradient},
	{"gates by a sigmoid", test_sigmoid_gate}, {"short convolutions", test_short_conv})
