/* The reference is right: its gradients are finite differences of its forward ops, in double; ops that do the same in
 * different steps agree; first optimizer steps have closed forms. */
#include "base/array.h"
#include "exec/host/reference.h"

#include "tests/unit/gradient_check.h"
#include "tests/unit/harness.h"

/* ---- */

static void test_gemm(void)
{
	/* [1 2; 3 4] times [5 6; 7 8], and its transposes */
	double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, bias[] = {10, 20};
	static const double expected[4][4] = {{19, 22, 43, 50}, {26, 30, 38, 44}, {17, 23, 39, 53}, {23, 31, 34, 46}};
	for (unsigned i = 0; i < 4; i++) {
		double c[4] = {100, 100, 100, 100};
		struct op op = rig_op(OP_GEMM, (i & 1 ? OP_TRANS_A : 0) | (i & 2 ? OP_TRANS_B : 0), 0, 2, 2, 2, 0, 0);
		struct error e = {0};
		CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){a, b, NULL, c},
					&e),
			ST_OK);
		agree(c, expected[i], 4);
		op.flags |= OP_ACCUMULATE;
		CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){a, b, bias, c},
					&e),
			ST_OK);
		for (int j = 0; j < 4; j++)
			CU_ASSERT_DOUBLE_EQUAL(c[j], 2.0 * expected[i][j] + bias[j % 2], 1e-12);
	}
	/* not square: A [2, 3] stored transposed, B [3, 1] */
	double at[] = {1, 4, 2, 5, 3, 6}, column[] = {1, 10, 100}, c[2];
	struct op op = rig_op(OP_GEMM, OP_TRANS_A, 0, 2, 1, 3, 0, 0);
	CU_ASSERT_EQUAL(reference_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){at, column, NULL, c},
				NULL),
		ST_OK);
	CU_ASSERT_EQUAL(c[0], 321.0);
	CU_ASSERT_EQUAL(c[1], 654.0);
}

static const unsigned masks[] = {0, OP_CAUSAL, OP_ALIBI, OP_CAUSAL | OP_ALIBI};
#define N_MASKS COUNT(masks)

static void open_attention(struct rig *r, enum op_kind kind, unsigned flags)
{
	rig_open(r, rig_op(kind, flags, 0, 2, 4, 2, 5, 2), 0);
	r->env.tensor_coord = 1;
}

static void test_attention_gradient(void)
{
	for (size_t i = 0; i < N_MASKS + 2; i++) {
		struct rig forward, grad;
		open_attention(&forward, OP_ATTENTION, masks[i < N_MASKS ? i : i == N_MASKS ? 1 : 3]);
		open_attention(&grad, OP_ATTENTION_GRAD, (unsigned)forward.op.flags);
		forward.op.attn.window = grad.op.attn.window = i < N_MASKS ? 0 : 2; /* a window, in causal attention */
		check_attention_gradient(&forward, &grad);
		rig_close(&forward);
		rig_close(&grad);
	}
}

/* A window of one key gives each query its own value; one of two, the mean of two where scores are equal. */
static void test_window(void)
{
	for (int64_t w = 1; w <= 2; w++) {
		struct rig r;
		rig_open(&r, rig_op(OP_ATTENTION, OP_CAUSAL, 0, 1, 1, 1, 4, 1), 0);
		r.op.attn.window = w;
		double *qkv = r.ref[0];
		const double *out = r.ref[1];
		for (int64_t i = 0; i < 4; i++) {
			qkv[3 * i] = qkv[3 * i + 1] = 0;
			qkv[3 * i + 2] = (double)(10 * i * i);
		}
		rig_reference(&r);
		for (int64_t i = 0; i < 4; i++)
			CU_ASSERT_DOUBLE_EQUAL(out[i],
				w == 1 || i == 0 ? (double)(10 * i * i) : 5.0 * (double)(i * i + (i - 1) * (i - 1)),
				1e-12);
		rig_close(&r);
	}
}

/* Flash and naive attention are the same function with the same gradient, and exp(score - lse) sums to one. */
static void test_naive_is_flash(void)
{
	for (size_t i = 0; i < N_MASKS; i++) {
		struct rig flash, flash_grad, scores, softmax, values, values_grad, softmax_grad, scores_grad;
		open_attention(&flash, OP_ATTENTION, masks[i]);
		open_attention(&flash_grad, OP_ATTENTION_GRAD, masks[i]);
		open_attention(&scores, OP_ATTN_SCORES, masks[i]);
		open_attention(&softmax, OP_ATTN_SOFTMAX, masks[i]);
		open_attention(&values, OP_ATTN_VALUES, masks[i]);
		open_attention(&values_grad, OP_ATTN_VALUES_GRAD, masks[i]);
		open_attention(&softmax_grad, OP_ATTN_SOFTMAX_GRAD, masks[i]);
		open_attention(&scores_grad, OP_ATTN_SCORES_GRAD, masks[i]);
		const double *qkv = rig_ref(&flash, "qkv"), *dout = rig_ref(&flash_grad, "dout");
		rig_reference(&flash);
		copy_named(&flash_grad, "qkv", qkv);
		copy_named(&flash_grad, "out", rig_ref(&flash, "out"));
		copy_named(&flash_grad, "lse", rig_ref(&flash, "lse"));
		rig_reference(&flash_grad);

		copy_named(&scores, "qkv", qkv);
		rig_reference(&scores);
		copy_named(&softmax, "scores", rig_ref(&scores, "scores"));
		rig_reference(&softmax);
		const double *p = rig_ref(&softmax, "scores"), *lse = rig_ref(&flash, "lse");
		for (size_t row = 0; row < flash.n[2]; row++)
			for (size_t j = 0; j < 5; j++)
				CU_ASSERT_DOUBLE_EQUAL(p[row * 5 + j],
					exp(rig_ref(&scores, "scores")[row * 5 + j] - lse[row]), 1e-12);
		copy_named(&values, "probs", p);
		copy_named(&values, "qkv", qkv);
		rig_reference(&values);
		agree(rig_ref(&values, "out"), rig_ref(&flash, "out"), flash.n[1]);

		copy_named(&values_grad, "probs", p);
		copy_named(&values_grad, "qkv", qkv);
		copy_named(&values_grad, "dout", dout);
		rig_reference(&values_grad);
		copy_named(&softmax_grad, "probs", p);
		copy_named(&softmax_grad, "dprobs", rig_ref(&values_grad, "dprobs"));
		rig_reference(&softmax_grad);
		copy_named(&scores_grad, "dscores", rig_ref(&softmax_grad, "dprobs"));
		copy_named(&scores_grad, "qkv", qkv);
		copy_named(&scores_grad, "dqkv", rig_ref(&values_grad, "dqkv"));
		rig_reference(&scores_grad);
		agree(rig_ref(&scores_grad, "dqkv"), rig_ref(&flash_grad, "dqkv"), flash.n[0]);

		struct rig *all[] = {&flash, &flash_grad, &scores, &softmax, &values, &values_grad, &softmax_grad,
			&scores_grad};
		for (size_t k = 0; k < COUNT(all); k++)
			rig_close(all[k]);
	}
}

/* A rotation: position 0 stays, lengths stay, the inverse undoes it, and a product of a query and a key depends on the
 * distance alone. */
static void test_rope(void)
{
	struct rig r;
	rig_open(&r, rig_op(OP_ROPE, 0, 0, 1, 1, 1, 6, 4), 0);
	double *qkv = r.ref[0];
	for (int row = 1; row < 6; row++)
		memcpy(qkv + row * 12, qkv, 12 * sizeof *qkv);
	struct saved before = save(&r);
	rig_reference(&r);
	agree(qkv, before.at[0], 12);
	for (int row = 0; row < 6; row++) {
		agree(qkv + row * 12 + 8, before.at[0] + 8, 4); /* values are not rotated */
		for (int i = 0; i < 2; i++)
			CU_ASSERT_DOUBLE_EQUAL(hypot(qkv[row * 12 + i], qkv[row * 12 + i + 2]),
				hypot(before.at[0][i], before.at[0][i + 2]), 1e-12);
	}
	for (int distance = 0; distance < 4; distance++) {
		double dot[2] = {0.0, 0.0};
		for (int shift = 0; shift < 2; shift++)
			for (int i = 0; i < 4; i++)
				dot[shift] += qkv[(distance + shift) * 12 + i] * qkv[shift * 12 + 4 + i];
		CU_ASSERT_DOUBLE_EQUAL(dot[0], dot[1], 1e-12);
	}
	CU_ASSERT_DOUBLE_EQUAL(qkv[12], before.at[0][0] * cos(1.0) - before.at[0][2] * sin(1.0), 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(qkv[13], before.at[0][1] * cos(0.01) - before.at[0][3] * sin(0.01), 1e-12);
	r.op.flags = OP_INVERSE;
	rig_reference(&r);
	for (size_t i = 0; i < r.n[0]; i++)
		CU_ASSERT_DOUBLE_EQUAL(qkv[i], before.at[0][i], 1e-12);
	drop(&before);
	rig_close(&r);
}

static void test_norm_gradient(void)
{
	for (unsigned rms = 0; rms < 2; rms++) {
		struct rig forward, grad;
		unsigned flag = rms ? OP_RMS : 0;
		rig_open(&forward, rig_op(OP_NORM, flag, 0, 3, 7, 0, 0, 0), 0);
		rig_open(&grad, rig_op(OP_NORM_GRAD, flag, 0, 3, 7, 0, 0, 0), 0);
		rig_reference(&forward);
		copy_named(&grad, "x", rig_ref(&forward, "x"));
		copy_named(&grad, "w", rig_ref(&forward, "w"));
		copy_named(&grad, "stats", rig_ref(&forward, "stats"));
		rig_reference(&grad);
		check_gradient(&forward, "x", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
		check_gradient(&forward, "w", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dw"));
		check_gradient(&forward, "b", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "db"));
		rig_close(&forward);
		rig_close(&grad);
	}
}

/* With OP_ACCUMULATE and OP_DX_ACCUMULATE the gradients are added to what stood there. */
static void test_norm_accumulates(void)
{
	struct rig once, twice;
	rig_open(&once, rig_op(OP_NORM_GRAD, 0, 0, 3, 7, 0, 0, 0), 0);
	rig_open(&twice, rig_op(OP_NORM_GRAD, OP_ACCUMULATE | OP_DX_ACCUMULATE, 0, 3, 7, 0, 0, 0), 0);
	rig_reference(&once);
	for (int a = 0; a < once.n_args; a++)
		memcpy(twice.ref[a], once.ref[a], once.n[a] * sizeof(double));
	rig_reference(&twice);
	for (int a = 4; a < once.n_args; a++)
		for (size_t i = 0; i < once.n[a]; i++)
			CU_ASSERT_DOUBLE_EQUAL(((double *)twice.ref[a])[i], 2.0 * ((double *)once.ref[a])[i], 1e-12);
	rig_close(&once);
	rig_close(&twice);
}

static void test_add_norm(void)
{
	struct rig r, norm;
	rig_open(&r, rig_op(OP_ADD_NORM, 0, 0, 3, 7, 0, 0, 0), 0);
	rig_open(&norm, rig_op(OP_NORM, 0, 0, 3, 7, 0, 0, 0), 0);
	rig_reference(&r);
	const double *x = rig_ref(&r, "x"), *y = rig_ref(&r, "y"), *bias = rig_ref(&r, "bias"),
		     *sum = rig_ref(&r, "sum");
	for (size_t i = 0; i < 21; i++)
		CU_ASSERT_DOUBLE_EQUAL(sum[i], x[i] + y[i] + bias[i % 7], 1e-15);
	copy_named(&norm, "x", sum);
	copy_named(&norm, "w", rig_ref(&r, "w"));
	copy_named(&norm, "b", rig_ref(&r, "b"));
	rig_reference(&norm);
	agree(rig_ref(&norm, "y"), rig_ref(&r, "out"), 21);
	agree(rig_ref(&norm, "stats"), rig_ref(&r, "stats"), 6);
	rig_close(&r);
	rig_close(&norm);
}

static void test_act_gradient(void)
{
	for (int mlp = 0; mlp < ACTIVATION_COUNT; mlp++) {
		struct rig forward, grad;
		rig_open(&forward, rig_op(OP_ACT, 0, mlp, 3, 7, 0, 0, 0), 0);
		rig_open(&grad, rig_op(OP_ACT_GRAD, 0, mlp, 3, 7, 0, 0, 0), 0);
		copy_named(&grad, "x", rig_ref(&forward, "x"));
		rig_reference(&grad);
		check_gradient(&forward, "x", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
		rig_close(&forward);
		rig_close(&grad);
	}
}

static void test_weighted_gradient(void)
{
	for (int mlp = 0; mlp < ACTIVATION_COUNT; mlp++) {
		struct rig forward, grad, plain;
		rig_open(&forward, rig_op(OP_WEIGHTED_ACT, 0, mlp, 3, 7, 0, 0, 0), 0);
		rig_open(&grad, rig_op(OP_WEIGHTED_ACT_GRAD, 0, mlp, 3, 7, 0, 0, 0), 0);
		rig_open(&plain, rig_op(OP_ACT, 0, mlp, 3, 7, 0, 0, 0), 0);
		copy_named(&grad, "x", rig_ref(&forward, "x"));
		copy_named(&grad, "weights", rig_ref(&forward, "weights"));
		copy_named(&plain, "x", rig_ref(&forward, "x"));
		rig_reference(&grad);
		check_gradient(&forward, "x", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dx"));
		check_gradient(&forward, "weights", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dweights"));
		rig_reference(&forward);
		rig_reference(&plain);
		for (int i = 0; i < 21; i++)
			rig_ref(&plain, "y")[i] *= rig_ref(&forward, "weights")[i / 7];
		agree(rig_ref(&forward, "y"), rig_ref(&plain, "y"), 21);
		rig_close(&forward);
		rig_close(&grad);
		rig_close(&plain);
	}
}

/* The two halves of a gated activation make the whole. */
static void test_gate(void)
{
	for (int mlp = MLP_SWIGLU; mlp <= MLP_GEGLU; mlp++) {
		struct rig whole, gate, mul;
		rig_open(&whole, rig_op(OP_ACT, 0, mlp, 3, 7, 0, 0, 0), 0);
		rig_open(&gate, rig_op(OP_GATE_ACT, 0, mlp, 3, 7, 0, 0, 0), 0);
		rig_open(&mul, rig_op(OP_GATE_MUL, 0, mlp, 3, 7, 0, 0, 0), 0);
		copy_named(&gate, "x", rig_ref(&whole, "x"));
		copy_named(&mul, "x", rig_ref(&whole, "x"));
		rig_reference(&whole);
		rig_reference(&gate);
		copy_named(&mul, "a", rig_ref(&gate, "y"));
		rig_reference(&mul);
		agree(rig_ref(&mul, "y"), rig_ref(&whole, "y"), 21);
		rig_close(&whole);
		rig_close(&gate);
		rig_close(&mul);
	}
}

static void test_bias_gradient(void)
{
	struct rig forward, grad;
	rig_open(&forward, rig_op(OP_BIAS, 0, 0, 3, 7, 0, 0, 0), 0);
	rig_open(&grad, rig_op(OP_BIAS_GRAD, 0, 0, 3, 7, 0, 0, 0), 0);
	rig_reference(&grad);
	check_gradient(&forward, "bias", "x", rig_ref(&grad, "dy"), rig_ref(&grad, "db"));
	rig_close(&forward);
	rig_close(&grad);
}

static void clear(struct rig *r, const char *name)
{
	const struct op_kind_info *info = op_kind_info(r->op.kind);
	for (int a = 0; a < r->n_args; a++)
		if (!strcmp(info->arg[a].name, name))
			memset(r->ref[a], 0, r->n[a] * sizeof(double));
}

static void test_embed_gradient(void)
{
	for (unsigned vocab_parallel = 0; vocab_parallel < 2; vocab_parallel++) {
		struct rig forward, grad;
		unsigned flag = vocab_parallel ? OP_VOCAB_PARALLEL : 0;
		rig_open(&forward, rig_op(OP_EMBED, flag, 0, 9, 3, 4, 0, 0), 0);
		rig_open(&grad, rig_op(OP_EMBED_GRAD, flag, 0, 9, 3, 4, 0, 0), 0);
		forward.env.tensor_coord = grad.env.tensor_coord = 1;
		int32_t *ids = rig_ids(&forward, 0, 0, vocab_parallel ? 12 : 4);
		memcpy(grad.fast[0], ids, 9 * sizeof *ids);
		clear(&grad, "dw");
		rig_reference(&grad);
		check_gradient(&forward, "w", "y", rig_ref(&grad, "dy"), rig_ref(&grad, "dw"));
		rig_reference(&forward);
		for (int64_t i = 0; i < 27; i++) {
			int64_t row = ids[i / 3] - (vocab_parallel ? 4 : 0);
			CU_ASSERT_EQUAL(rig_ref(&forward, "y")[i],
				row < 0 || row >= 4 ? 0.0 : rig_ref(&forward, "w")[row * 3 + i % 3]);
		}
		rig_close(&forward);
		rig_close(&grad);
	}
}

static void test_position_gradient(void)
{
	for (unsigned sequence_parallel = 0; sequence_parallel < 2; sequence_parallel++) {
		struct rig forward, grad;
		unsigned flag = sequence_parallel ? OP_SEQUENCE_PARALLEL : 0;
		rig_open(&forward, rig_op(OP_POSITION, flag, 0, 6, 3, 4, 0, 0), 0);
		rig_open(&grad, rig_op(OP_POSITION_GRAD, flag, 0, 6, 3, 4, 0, 0), 0);
		forward.env.tensor_coord = grad.env.tensor_coord = 1;
		clear(&grad, "dw");
		clear(&grad, "dtype");
		rig_reference(&grad);
		check_gradient(&forward, "w", "x", rig_ref(&grad, "dx"), rig_ref(&grad, "dw"));
		check_gradient(&forward, "type", "x", rig_ref(&grad, "dx"), rig_ref(&grad, "dtype"));
		double *x = rig_ref(&forward, "x"), *w = rig_ref(&forward, "w"), *type = rig_ref(&forward, "type");
		clear(&forward, "x");
		rig_reference(&forward);
		for (int64_t i = 0; i < 18;
			i++) /* with sequence parallelism this rank's rows are tokens 6 to 11 of sequences of 4 */
			CU_ASSERT_EQUAL(x[i], w[(i / 3 + (sequence_parallel ? 6 : 0)) % 4 * 3 + i % 3] + type[i % 3]);
		rig_close(&forward);
		rig_close(&grad);
	}
}

/* The gradient that LOSS leaves in the logits is that of the loss it adds. */
static void test_loss_gradient(void)
{
	struct rig r, grad;
	rig_open(&r, rig_op(OP_LOSS, 0, 0, 4, 7, 2, 0, 0), 0); /* counted three times */
	rig_open(&grad, r.op, 0);
	int32_t *targets = rig_ids(&r, 1, 0, 7);
	targets[2] = -100;
	memcpy(grad.fast[1], targets, 4 * sizeof *targets);
	copy_named(&grad, "logits", rig_ref(&r, "logits"));
	rig_reference(&grad);
	double one = 1.0;
	check_gradient(&r, "logits", "loss", &one, rig_ref(&grad, "logits"));
	for (int i = 14; i < 21; i++)
		CU_ASSERT_EQUAL(rig_ref(&grad, "logits")[i], 0.0);
	rig_close(&r);
	rig_close(&grad);
}

/* Equal logits: log of the number of classes, times loss_scale, for each row that has a target; added to what stood
 * there. */
static void test_loss_value(void)
{
	struct rig r;
	rig_open(&r, rig_op(OP_LOSS, 0, 0, 4, 7, 0, 0, 0), 0);
	int32_t *targets = rig_ids(&r, 1, 0, 7);
	targets[2] = -1;
	clear(&r, "logits");
	*rig_ref(&r, "loss") = 5.0;
	rig_reference(&r);
	CU_ASSERT_DOUBLE_EQUAL(*rig_ref(&r, "loss"), 5.0 + 3.0 * 0.125 * log(7.0), 1e-12);
	rig_close(&r);
}

/* The vocabulary over two ranks, reduced as the program does: loss and gradient of the whole. */
static void test_loss_over_ranks(void)
{
	struct rig whole, max[2], sum[2], grad[2];
	rig_open(&whole, rig_op(OP_LOSS, 0, 0, 4, 6, 0, 0, 0), 0);
	int32_t *targets = rig_ids(&whole, 1, 0, 6);
	targets[1] = -100;
	double *logits = rig_ref(&whole, "logits"), row_max[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY},
	       sums[8] = {0};
	for (int rank = 0; rank < 2; rank++) {
		rig_open(&max[rank], rig_op(OP_LOSS_MAX, 0, 0, 4, 3, 0, 0, 0), 0);
		for (int i = 0; i < 12; i++)
			rig_ref(&max[rank], "logits")[i] = logits[i / 3 * 6 + rank * 3 + i % 3];
		rig_reference(&max[rank]);
		for (int i = 0; i < 4; i++)
			row_max[i] = fmax(row_max[i], rig_ref(&max[rank], "max")[i]);
	}
	for (int rank = 0; rank < 2; rank++) {
		rig_open(&sum[rank], rig_op(OP_LOSS_SUM, 0, 0, 4, 3, 0, 0, 0), 0);
		sum[rank].env.tensor_coord = rank;
		memcpy(sum[rank].fast[1], targets, 4 * sizeof *targets);
		copy_named(&sum[rank], "logits", rig_ref(&max[rank], "logits"));
		copy_named(&sum[rank], "max", row_max);
		rig_reference(&sum[rank]);
		for (int i = 0; i < 8; i++)
			sums[i] += rig_ref(&sum[rank], "sums")[i];
	}
	for (int rank = 0; rank < 2; rank++) {
		rig_open(&grad[rank], rig_op(OP_LOSS_GRAD, 0, 0, 4, 3, 0, 0, 0), 0);
		grad[rank].env.tensor_coord = rank;
		memcpy(grad[rank].fast[1], targets, 4 * sizeof *targets);
		copy_named(&grad[rank], "logits", rig_ref(&max[rank], "logits"));
		copy_named(&grad[rank], "max", row_max);
		copy_named(&grad[rank], "sums", sums);
		clear(&grad[rank], "loss");
		rig_reference(&grad[rank]);
	}
	clear(&whole, "loss");
	rig_reference(&whole);
	for (int rank = 0; rank < 2; rank++) {
		CU_ASSERT_DOUBLE_EQUAL(*rig_ref(&grad[rank], "loss"), *rig_ref(&whole, "loss"), 1e-12);
		for (int i = 0; i < 12; i++)
			CU_ASSERT_DOUBLE_EQUAL(rig_ref(&grad[rank], "logits")[i], logits[i / 3 * 6 + rank * 3 + i % 3],
				1e-12);
		rig_close(&max[rank]);
		rig_close(&sum[rank]);
		rig_close(&grad[rank]);
	}
	rig_close(&whole);
}

/* From empty state the first Adam step has length lr against the sign of the gradient, whatever the gradient's size. */
static void test_optimizer(void)
{
	static const struct {
		enum optimizer o;
		unsigned absent;
		double decay, lr;
	} cases[] = {{OPT_ADAMW, 1 << 4, 0.1, 1e-3}, {OPT_ADAM, 1 << 4, 0.0, 1e-3},
		{OPT_LION, 1 << 3 | 1 << 4, 0.1, 1e-4}};
	for (size_t k = 0; k < COUNT(cases); k++) {
		struct rig r;
		rig_open(&r, rig_op(OP_OPTIMIZER, 0, (int)cases[k].o, 8, 0, 0, 0, 0), cases[k].absent);
		r.env.step = 1;
		clear(&r, "m");
		if (cases[k].o != OPT_LION)
			clear(&r, "v");
		struct saved before = save(&r);
		rig_reference(&r);
		for (int i = 0; i < 8; i++) {
			double p = before.at[0][i], g = before.at[1][i];
			CU_ASSERT_DOUBLE_EQUAL(rig_ref(&r, "p")[i],
				p - cases[k].lr *
						(cases[k].decay * p + (cases[k].o == OPT_LION ? copysign(1.0, g)
											      : g / (fabs(g) + 1e-8))),
				1e-9);
		}
		drop(&before);
		rig_close(&r);
	}
	/* SGD with momentum 0.9: the second step with the same gradient moves 1.9 times as far. The master copy is what
	 * is updated. */
	struct rig r;
	rig_open(&r, rig_op(OP_OPTIMIZER, 0, OPT_SGD, 8, 0, 0, 0, 0), 1 << 3);
	clear(&r, "m");
	struct saved before = save(&r);
	rig_reference(&r);
	rig_reference(&r);
	for (int i = 0; i < 8; i++) {
		CU_ASSERT_DOUBLE_EQUAL(rig_ref(&r, "p")[i], before.at[4][i] - 1e-3 * 2.9 * before.at[1][i], 1e-9);
		CU_ASSERT_EQUAL(rig_ref(&r, "p")[i], rig_ref(&r, "master")[i]);
	}
	drop(&before);
	rig_close(&r);
}

UNIT_MAIN("reference", {"gemm", test_gemm}, {"attention gradient", test_attention_gradient}, {"a window", test_window},
	{"naive is flash", test_naive_is_flash}, {"rope", test_rope}, {"norm gradient", test_norm_gradient},
	{"norm accumulates", test_norm_accumulates}, {"add_norm", test_add_norm},
	{"activation gradient", test_act_gradient}, {"gradient of a weighted activation", test_weighted_gradient},
	{"gate", test_gate}, {"bias gradient", test_bias_gradient}, {"embed gradient", test_embed_gradient},
	{"position gradient", test_position_gradient}, {"loss gradient", test_loss_gradient},
	{"loss value", test_loss_value}, {"loss over ranks", test_loss_over_ranks}, {"optimizer", test_optimizer})
