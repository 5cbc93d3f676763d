/* What is done to logits besides the softmax: soft-capping, sinks, chunks that see themselves alone. The reference
 * against finite differences, the kernels against the reference. */
#include "base/array.h"
#include "tests/unit/gradient_check.h"
#include "tests/unit/harness.h"
#include "tests/unit/kernel_check.h"

static void copy_rounded(struct rig *to, int a, const struct rig *from, int b)
{
	memcpy(to->ref[a], from->ref[b], to->n[a] * sizeof(double));
	rig_sync(to, a);
}

/* ---- the reference ---- */

static struct op attention(unsigned flags, int64_t s, int64_t cap, int64_t window)
{
	struct op op = rig_op(OP_ATTENTION, flags, 0, 2, 4, 2, s, 3);
	op.attn.softcap = cap;
	op.attn.window = window;
	return op;
}

static void test_cap_gradient(void)
{
	static const unsigned masks[] = {0, OP_CAUSAL, OP_CAUSAL | OP_ALIBI};
	for (size_t i = 0; i < COUNT(masks); i++) {
		struct rig forward, grad;
		struct op op = attention(masks[i], 5, 1, 0);
		rig_open(&forward, op, 0);
		op.kind = OP_ATTENTION_GRAD;
		rig_open(&grad, op, 0);
		check_attention_gradient(&forward, &grad);
		rig_close(&forward);
		rig_close(&grad);
	}
	struct rig forward, grad;
	struct op op = rig_op(OP_SOFTCAP, 0, 0, 3, 4, 2, 0, 0);
	rig_open(&forward, op, 0);
	op.kind = OP_SOFTCAP_GRAD;
	rig_open(&grad, op, 0);
	double dy[12];
	memcpy(dy, rig_ref(&grad, "dy"), sizeof dy);
	copy_named(&grad, "x", rig_ref(&forward, "x"));
	rig_reference(&forward);
	rig_reference(&grad);
	check_gradient(&forward, "x", "y", dy, rig_ref(&grad, "dy"));
	CU_ASSERT_DOUBLE_EQUAL(rig_ref(&forward, "y")[0], 2.0 * tanh(rig_ref(&forward, "x")[0] / 2.0), 1e-15);
	rig_close(&forward);
	rig_close(&grad);
}

/* Attention with sinks is attention to one more key whose score is the sink and whose value is zero; its gradients are
 * those of ATTENTION_GRAD with the lse and results that sinks leave. */
static void test_sinks(void)
{
	struct rig forward, sinks, grad, sinks_grad;
	struct op op = attention(OP_CAUSAL, 5, 0, 0);
	rig_open(&forward, op, 0);
	op.kind = OP_ATTN_SINKS;
	rig_open(&sinks, op, 0);
	op.kind = OP_ATTENTION_GRAD;
	rig_open(&grad, op, 0);
	op.kind = OP_ATTN_SINKS_GRAD;
	rig_open(&sinks_grad, op, 0);
	rig_reference(&forward);
	const double *s = rig_ref(&sinks, "sinks"), *qkv = rig_ref(&forward, "qkv"), *out = rig_ref(&sinks, "out");
	copy_named(&sinks, "out", rig_ref(&forward, "out"));
	copy_named(&sinks, "lse", rig_ref(&forward, "lse"));
	rig_reference(&sinks);
	/* the first row of the first head: its own key, and the sink */
	double dot = 0;
	for (int d = 0; d < 3; d++)
		dot += qkv[d] * qkv[12 + d] / sqrt(3.0);
	for (int d = 0; d < 3; d++)
		CU_ASSERT_DOUBLE_EQUAL(out[d], qkv[18 + d] * exp(dot) / (exp(dot) + exp(s[0])), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(rig_ref(&sinks, "lse")[0], log(exp(dot) + exp(s[0])), 1e-12);

	copy_named(&grad, "qkv", qkv);
	copy_named(&grad, "out", out);
	copy_named(&grad, "lse", rig_ref(&sinks, "lse"));
	rig_reference(&grad);
	copy_named(&sinks_grad, "lse", rig_ref(&sinks, "lse"));
	copy_named(&sinks_grad, "delta", rig_ref(&grad, "delta"));
	copy_named(&sinks_grad, "sinks", s);
	rig_reference(&sinks_grad);
	const double *dout = rig_ref(&grad, "dout");
	copy_named(&sinks, "out", rig_ref(&forward, "out"));
	copy_named(&sinks, "lse", rig_ref(&forward, "lse"));
	check_gradient(&sinks, "sinks", "out", dout, rig_ref(&sinks_grad, "dsinks"));
	/* of one element of the queries, by way of both ops */
	for (size_t k = 0; k < 60; k += 7) {
		double side[2] = {0, 0}, *moved = (double *)forward.ref[0] + k, before = *moved;
		for (int i = 0; i < 2; i++) {
			*moved = before + (i ? STEP : -STEP);
			rig_reference(&forward);
			copy_named(&sinks, "out", rig_ref(&forward, "out"));
			copy_named(&sinks, "lse", rig_ref(&forward, "lse"));
			rig_reference(&sinks);
			for (size_t j = 0; j < sinks.n[0]; j++)
				side[i] += dout[j] * out[j];
		}
		*moved = before;
		CU_ASSERT_DOUBLE_EQUAL((side[1] - side[0]) / (2 * STEP), rig_ref(&grad, "dqkv")[k], 1e-6);
	}
	rig_close(&forward);
	rig_close(&sinks);
	rig_close(&grad);
	rig_close(&sinks_grad);
}

/* Chunks of positions are sequences of their own: 8 positions in chunks of 4 are 2 sequences of 4; pairs by hand. */
static void test_chunks(void)
{
	struct rig whole, apart;
	struct op op = rig_op(OP_ATTENTION, OP_CAUSAL, 0, 1, 1, 1, 8, 3);
	op.attn.window = -4;
	rig_open(&whole, op, 0);
	rig_open(&apart, rig_op(OP_ATTENTION, OP_CAUSAL, 0, 2, 1, 1, 4, 3), 0);
	copy_named(&apart, "qkv", rig_ref(&whole, "qkv"));
	rig_reference(&whole);
	rig_reference(&apart);
	agree(rig_ref(&whole, "out"), rig_ref(&apart, "out"), 24);
	agree(rig_ref(&whole, "lse"), rig_ref(&apart, "lse"), 8);
	CU_ASSERT_EQUAL(op_pairs(&op), 20);
	op.attn.window = -3;
	CU_ASSERT_EQUAL(op_pairs(&op), 6 + 6 + 3);
	CU_ASSERT_EQUAL(op_window(&op), 0);
	rig_close(&whole);
	rig_close(&apart);
}

/* The parts of a group's ranks have the pairs of the whole sequence between them: 8 queries of 2 ranks. */
static void test_windows_of_parts(void)
{
	static const int64_t seen[] = {0, 3, 8, -4, -3};
	for (size_t i = 0; i < COUNT(seen); i++) {
		struct op part = rig_op(OP_ATTENTION_PART, OP_CAUSAL, 0, 1, 1, 1, 4, 3),
			  whole = rig_op(OP_ATTENTION, OP_CAUSAL, 0, 1, 1, 1, 8, 3);
		part.attn.keys = 8;
		part.attn.seen = whole.attn.window = seen[i];
		CU_ASSERT_EQUAL(2 * op_pairs(&part), op_pairs(&whole));
		CU_ASSERT_EQUAL(2 * op_masked_ends(&part), op_masked_ends(&whole));
	}
}

/* ---- kernels ---- */

/* b, H, K, s, D */
static const int64_t shapes[][5] = {{1, 1, 1, 1, 2}, {2, 3, 1, 31, 6}, {1, 4, 2, 65, 16}, {1, 2, 1, 130, 10}};

static void test_attention_kernels(void)
{
	static const int64_t windows[] = {0, -1, -5, -64, -100, 7};
	for (size_t i = 0; i < COUNT(shapes); i++)
		for (size_t k = 0; k < 2 * COUNT(windows); k++) {
			const int64_t *d = shapes[i];
			struct op op = rig_op(OP_ATTENTION, OP_CAUSAL, 0, d[0], d[1], d[2], d[3], d[4]);
			struct rig forward, r;
			op.attn.window = windows[k / 2];
			op.attn.softcap = k % 2 ? 2 : 0;
			check_op(op, 0, SUMS);
			rig_open(&forward, op, 0);
			rig_reference(&forward);
			op.kind = OP_ATTENTION_GRAD;
			rig_open(&r, op, 0);
			for (int a = 0; a < 3; a++) /* qkv, out, lse */
				copy_rounded(&r, a, &forward, a);
			check(&r, SUMS);
			rig_close(&forward);
		}
}

static void test_logit_kernels(void)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const int64_t *d = shapes[i];
		check_op(rig_op(OP_ATTN_SINKS, 0, 0, d[0], d[1], d[2], d[3], d[4]), 0, SUMS);
		check_op(rig_op(OP_ATTN_SINKS_GRAD, i % 2 ? OP_ACCUMULATE : 0, 0, d[0], d[1], d[2], d[3], d[4]), 0,
			SUMS);
		check_op(rig_op(OP_SOFTCAP, 0, 0, d[3], 33, 2, 0, 0), 0, SUMS);
		check_op(rig_op(OP_SOFTCAP_GRAD, 0, 0, d[3], 33, 2, 0, 0), 0, SUMS);
	}
}

UNIT_MAIN("logits", {"gradient of caps", test_cap_gradient}, {"sinks", test_sinks}, {"chunks", test_chunks},
	{"windows of parts", test_windows_of_parts}, {"kernels of attention", test_attention_kernels},
	{"kernels of logits", test_logit_kernels})
