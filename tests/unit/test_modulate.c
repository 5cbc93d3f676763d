/* Adaptive norms, gated additions and the loss of predicted numbers: the reference against finite differences, the
 * kernels against the reference. */
#include "base/array.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/harness.h"
#include "tests/unit/kernel_check.h"

/* batch, seq, cols, width, at */
static const int64_t shapes[][5] = {{1, 1, 1, 2, 0}, {2, 3, 5, 30, 10}, {3, 7, 33, 198, 99}, {2, 65, 64, 128, 0}};

static struct op op_of(enum op_kind kind, unsigned flags, const int64_t d[5])
{
	return rig_op(kind, flags, 0, d[0], d[1], d[2], d[3], d[4]);
}

/* The columns of a gradient of `mod` that the op does not write are no gradient: zeros take their place. */
static void clear_others(struct rig *grad, const char *name, const int64_t d[5], int64_t cols)
{
	double *dmod = rig_ref(grad, name);
	for (int64_t i = 0; i < d[0] * d[3]; i++)
		if (i % d[3] < d[4] || i % d[3] >= d[4] + cols)
			dmod[i] = 0;
}

/* absent: of the forward op's mod and stats, by name */
static void check_modulate(const int64_t d[5], unsigned flags, bool mod, bool stats)
{
	struct rig f, g;
	rig_open(&f, op_of(OP_MODULATE, flags, d),
		(mod ? 0 : 1u << ARG_MODULATE_mod) | (stats ? 0 : 1u << ARG_MODULATE_stats));
	rig_open(&g, op_of(OP_MODULATE_GRAD, flags, d),
		(mod ? 0 : 1u << ARG_MODULATE_GRAD_mod | 1u << ARG_MODULATE_GRAD_dmod) |
			(stats ? 0 : 1u << ARG_MODULATE_GRAD_stats));
	rig_reference(&f);
	copy_named(&g, "x", rig_ref(&f, "x"));
	if (mod)
		copy_named(&g, "mod", rig_ref(&f, "mod"));
	if (stats)
		copy_named(&g, "stats", rig_ref(&f, "stats"));
	rig_reference(&g);
	check_gradient(&f, "x", "y", rig_ref(&g, "dy"), rig_ref(&g, "dx"));
	if (mod) {
		clear_others(&g, "dmod", d, 2 * d[2]);
		check_gradient(&f, "mod", "y", rig_ref(&g, "dy"), rig_ref(&g, "dmod"));
	}
	rig_close(&f);
	rig_close(&g);
}

static void test_modulate_gradient(void)
{
	for (size_t i = 1; i < 3; i++)
		for (unsigned way = 0; way < 4; way++)
			for (unsigned rms = 0; rms < 2; rms++)
				check_modulate(shapes[i], rms ? OP_RMS : 0, way & 1, way & 2);
}

static void test_gate_gradient(void)
{
	for (size_t i = 0; i < 3; i++)
		for (unsigned bias = 0; bias < 2; bias++) {
			struct rig f, g;
			const int64_t *d = shapes[i];
			rig_open(&f, op_of(OP_GATED_ADD, 0, d), bias ? 0 : 1u << ARG_GATED_ADD_bias);
			rig_open(&g, op_of(OP_GATED_ADD_GRAD, 0, d), bias ? 0 : 1u << ARG_GATED_ADD_GRAD_bias);
			copy_named(&g, "y", rig_ref(&f, "y"));
			copy_named(&g, "mod", rig_ref(&f, "mod"));
			if (bias)
				copy_named(&g, "bias", rig_ref(&f, "bias"));
			rig_reference(&f);
			rig_reference(&g);
			check_gradient(&f, "y", "sum", rig_ref(&g, "dsum"), rig_ref(&g, "dy"));
			check_gradient(&f, "x", "sum", rig_ref(&g, "dsum"), rig_ref(&g, "dsum"));
			clear_others(&g, "dmod", d, d[2]);
			check_gradient(&f, "mod", "sum", rig_ref(&g, "dsum"), rig_ref(&g, "dmod"));
			rig_close(&f);
			rig_close(&g);
		}
}

/* The op leaves the loss's gradient in the place of what was predicted. */
static void test_loss_gradient(void)
{
	struct rig f;
	double x[12], one = 1;
	rig_open(&f, rig_op(OP_SQUARE_LOSS, 0, 0, 3, 4, 0, 0, 0), 0);
	memcpy(x, rig_ref(&f, "prediction"), sizeof x);
	rig_reference(&f);
	double gradient[12];
	memcpy(gradient, rig_ref(&f, "prediction"), sizeof gradient);
	copy_named(&f, "prediction", x);
	rig_ref(&f, "loss")[0] = 0;
	check_gradient(&f, "prediction", "loss", &one, gradient);
	rig_close(&f);
}

/* Two rows of two columns by hand. */
static void test_by_hand(void)
{
	struct error e = {0};
	const struct host_env env = {.loss_scale = 0.5};
	double x[] = {1, 3, 0, 4}, mod[] = {10, 20, 1, 0, 2, 3}, y[4], stats[4], sum[4], loss = 1;
	struct op op = rig_op(OP_MODULATE, 0, 0, 1, 2, 2, 6, 0);
	CU_ASSERT_EQUAL(reference_run(&env, &op, (void *const[OP_MAX_ARGS]){x, mod, y, stats}, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(stats[0], 2, 0);
	CU_ASSERT_DOUBLE_EQUAL(y[0], -1 / sqrt(1 + 1e-5) * 2 + 10, 1e-12); /* (1 - 2) / 1, times 1 + 1 */
	CU_ASSERT_DOUBLE_EQUAL(y[3], 2 / sqrt(4 + 1e-5) + 20, 1e-12);
	op = rig_op(OP_GATED_ADD, 0, 0, 1, 2, 2, 6, 4);
	CU_ASSERT_EQUAL(reference_run(&env, &op, (void *const[OP_MAX_ARGS]){x, x, NULL, mod, sum}, &e), ST_OK);
	CU_ASSERT(sum[0] == 1 + 2 * 1 && sum[1] == 3 + 3 * 3 && sum[3] == 4 + 3 * 4);
	op = rig_op(OP_SQUARE_LOSS, 0, 0, 2, 2, 0, 0, 0);
	double target[] = {0, 3, 2, 4};
	CU_ASSERT_EQUAL(reference_run(&env, &op, (void *const[OP_MAX_ARGS]){x, target, &loss}, &e), ST_OK);
	CU_ASSERT_DOUBLE_EQUAL(loss, 1 + 0.5 * (1 + 4) / 2, 1e-15);
	CU_ASSERT(x[0] == 0.5 && x[1] == 0 && x[2] == -1 && x[3] == 0);
}

static void test_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		for (unsigned flags = 0; flags < 4; flags++) {
			const int64_t *d = shapes[i];
			const unsigned f = (flags & 1 ? OP_RMS : 0) |
			                   (flags & 2 ? OP_DX_ACCUMULATE | OP_ACCUMULATE : 0);
			for (unsigned way = 0; way < 4; way++) {
				const unsigned no_mod = way & 1, no_stats = way >> 1;
				check_op(op_of(OP_MODULATE, f & OP_RMS, d),
					no_mod << ARG_MODULATE_mod | no_stats << ARG_MODULATE_stats, SUMS);
				check_op(op_of(OP_MODULATE_GRAD, f, d),
					no_mod << ARG_MODULATE_GRAD_mod | no_mod << ARG_MODULATE_GRAD_dmod |
						no_stats << ARG_MODULATE_GRAD_stats,
					SUMS);
			}
			check_op(op_of(OP_GATED_ADD, 0, d), (flags & 1) << ARG_GATED_ADD_bias, ROUNDS);
			check_op(op_of(OP_GATED_ADD_GRAD, f & OP_ACCUMULATE, d), (flags & 1) << ARG_GATED_ADD_GRAD_bias,
				SUMS);
			check_op(rig_op(OP_SQUARE_LOSS, 0, 0, d[1], d[2], 0, 0, 0), 0, SUMS);
		}
}

UNIT_MAIN("modulate", {"gradient of shifts and scales", test_modulate_gradient},
	{"gradient of gates", test_gate_gradient}, {"gradient of the loss", test_loss_gradient},
	{"by hand", test_by_hand}, {"kernels", test_kernels})
