/* What latent attention needs of kernels: keys joined of two parts, values of another width than keys, a rotation and a
 * norm of a part of the columns. The reference against finite differences, the kernels against the reference. */
#include "base/array.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/harness.h"
#include "tests/unit/kernel_check.h"

/* ---- the reference ---- */

/* Values narrower and wider than keys, behind all queries. */
static void test_value_dim_gradient(void)
{
	for (int64_t value = 1; value <= 5; value += 4) {
		struct rig forward, grad;
		struct op op = rig_op(OP_ATTENTION, OP_CAUSAL, 0, 2, 2, 2, 4, 3);
		op.attn.value_dim = value;
		rig_open(&forward, op, 0);
		CU_ASSERT_EQUAL(forward.n[1], (size_t)(2 * 4 * 2 * value));
		op.kind = OP_ATTENTION_GRAD;
		rig_open(&grad, op, 0);
		check_attention_gradient(&forward, &grad);
		/* the first row sees itself alone: its result is its value, behind the queries and its two keys */
		for (int64_t i = 0; i < value; i++)
			CU_ASSERT_DOUBLE_EQUAL(rig_ref(&forward, "out")[i],
				rig_ref(&forward, "qkv")[2 * 4 * 2 * 3 + 2 * 3 + i], 1e-12);
		rig_close(&forward);
		rig_close(&grad);
	}
}

/* Heads' own columns, values and shared columns go to their places; gradients are differences. */
static void check_latent_keys(bool still)
{
	struct rig forward, grad;
	struct op op = rig_op(OP_LATENT_KEYS, 0, 0, 2, 3, 4, 5, 2);
	op.latent.value_dim = 2;
	op.latent.width = 6;
	op.latent.still = still;
	rig_open(&forward, op, 0);
	op.kind = OP_LATENT_KEYS_GRAD;
	rig_open(&grad, op, 0);
	rig_reference(&forward);
	const double *kv = rig_ref(&forward, "kv"), *latent = rig_ref(&forward, "latent"),
		     *keys = rig_ref(&forward, "keys");
	for (int64_t h = 0; h < 3; h++) { /* of the first row, whose position rotates nothing */
		agree(keys + h * 5, kv + h * 5, 3);
		agree(keys + h * 5 + 3, latent + 4, 2);
		agree(keys + 15 + h * 2, kv + h * 5 + 3, 2);
	}
	CU_ASSERT_DOUBLE_EQUAL(keys[21 + 3], still ? latent[10] : latent[10] * cos(1.0) - latent[11] * sin(1.0), 1e-12);
	rig_reference(&grad);
	const double *dkeys = rig_ref(&grad, "dkeys"), *drope = rig_ref(&grad, "drope");
	check_gradient(&forward, "kv", "keys", dkeys, rig_ref(&grad, "dkv"));
	double dlatent[8 * 6] = {0};
	for (int64_t i = 0; i < 16; i++)
		dlatent[i / 2 * 6 + 4 + i % 2] = drope[i];
	check_gradient(&forward, "latent", "keys", dkeys, dlatent);
	rig_close(&forward);
	rig_close(&grad);
}

/* A rotation of a head's last columns alone, of rows without keys: as one of heads of that width. */
static void test_rope_part(void)
{
	struct rig part, whole;
	struct op op = rig_op(OP_ROPE, 0, 0, 1, 2, 0, 4, 6);
	op.attn.rotated = 4;
	rig_open(&part, op, 0);
	rig_open(&whole, rig_op(OP_ROPE, 0, 0, 1, 2, 0, 4, 4), 0);
	double *x = part.ref[0], *y = whole.ref[0];
	for (int64_t i = 0; i < 4 * 2 * 4; i++)
		y[i] = x[i / 4 * 6 + 2 + i % 4];
	struct saved before = save(&part);
	rig_reference(&part);
	rig_reference(&whole);
	for (int64_t i = 0; i < 4 * 2 * 6; i++)
		CU_ASSERT_DOUBLE_EQUAL(x[i], i % 6 < 2 ? before.at[0][i] : y[i / 6 * 4 + i % 6 - 2], 1e-12);
	drop(&before);
	rig_close(&part);
	rig_close(&whole);
}

/* A norm of the first columns of wider rows is that of rows of those alone; the other columns of dx stay. */
static void test_norm_of_part(void)
{
	struct rig part, whole;
	struct op op = rig_op(OP_NORM_GRAD, OP_RMS, 0, 3, 5, 7, 0, 0);
	rig_open(&part, op, 1 << 6);
	op.matrix.width = 0;
	rig_open(&whole, op, 1 << 6);
	for (int a = 0; a < part.n_args - 1; a++)
		for (size_t i = 0; i < whole.n[a]; i++)
			((double *)whole.ref[a])[i] = ((double *)part.ref[a])[a == 1 || a == 4 ? i / 5 * 7 + i % 5 : i];
	double *dx = rig_ref(&part, "dx");
	for (size_t i = 0; i < part.n[4]; i++)
		dx[i] = 11.0;
	rig_reference(&part);
	rig_reference(&whole);
	for (size_t i = 0; i < part.n[4]; i++)
		CU_ASSERT_DOUBLE_EQUAL(dx[i], i % 7 < 5 ? rig_ref(&whole, "dx")[i / 7 * 5 + i % 7] : 11.0, 1e-12);
	agree(rig_ref(&part, "dw"), rig_ref(&whole, "dw"), 5);
	rig_close(&part);
	rig_close(&whole);
}

static void test_latent_keys(void)
{
	check_latent_keys(false);
	check_latent_keys(true);
}

/* ---- kernels ---- */

/* b, H, s, head_dim, value_dim, columns that rotate, width of the latent's rows */
static const int64_t shapes[][7] = {{1, 1, 1, 4, 2, 2, 2}, {2, 3, 31, 6, 10, 2, 9}, {1, 2, 66, 24, 16, 8, 8},
	{1, 4, 130, 10, 17, 6, 40}, {2, 2, 65, 48, 80, 0, 0}};

static void test_keys_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *d = shapes[i];
		struct op op = rig_op(OP_LATENT_KEYS, 0, 0, d[0], d[1], d[2], d[3], d[5]);
		op.latent.value_dim = d[4];
		op.latent.width = d[6];
		check_op(op, d[5] > 0 ? 0 : 1 << 1, ROUNDS);
		op.kind = OP_LATENT_KEYS_GRAD;
		check_op(op, d[5] > 0 ? 0 : 1 << 2, ROUNDS);
		op.latent.still = 1;
		check_op(op, d[5] > 0 ? 0 : 1 << 2, ROUNDS);
		op.kind = OP_LATENT_KEYS;
		check_op(op, d[5] > 0 ? 0 : 1 << 1, ROUNDS);
	}
}

static void test_attention_kernels(void)
{
	static const unsigned masks[] = {0, OP_CAUSAL, OP_CAUSAL | OP_ALIBI};
	for (size_t i = 0; i < COUNT(shapes) * COUNT(masks); i++) {
		const int64_t *d = shapes[i / COUNT(masks)];
		struct op op = rig_op(OP_ATTENTION, masks[i % COUNT(masks)], 0, d[0], d[1], d[1], d[2], d[3]);
		op.attn.value_dim = d[4];
		const double tolerance = op.flags & OP_ALIBI ? 4.0 * SUMS : SUMS;
		struct rig forward, r;
		check_op(op, 0, tolerance);
		rig_open(&forward, op, 0);
		rig_reference(&forward);
		op.kind = OP_ATTENTION_GRAD;
		rig_open(&r, op, 0);
		for (int a = 0; a < 3; a++) { /* qkv, out, lse */
			memcpy(r.ref[a], forward.ref[a], r.n[a] * sizeof(double));
			rig_sync(&r, a);
		}
		check(&r, tolerance);
		rig_close(&forward);
	}
}

static void test_part_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *d = shapes[i];
		struct op op = rig_op(OP_ROPE, 0, 0, d[0], d[1], 0, d[2], d[3]);
		op.attn.rotated = d[5];
		if (d[5] > 0)
			check_op(op, 0, ROUNDS);
		check_op(rig_op(OP_NORM, OP_RMS, 0, d[2], d[3], d[3] + d[4], 0, 0), 1 << 2, SUMS);
		struct rig r;
		rig_open(&r, rig_op(OP_NORM_GRAD, OP_RMS | OP_DX_ACCUMULATE, 0, d[2], d[3], d[3] + d[4], 0, 0), 1 << 6);
		check(&r, SUMS);
	}
}

UNIT_MAIN("latent", {"values of another width", test_value_dim_gradient}, {"keys of two parts", test_latent_keys},
	{"rope of a part", test_rope_part}, {"norm of a part", test_norm_of_part},
	{"kernels of keys", test_keys_kernels}, {"kernels of attention", test_attention_kernels},
	{"kernels of parts", test_part_kernels})
