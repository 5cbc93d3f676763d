/* Each kernel of the host device against the reference, on sizes that are no multiple of a vector or a tile, with one
 * thread and with three. */
#include "base/array.h"
#include "exec/host/kernels.h"

#include <cblas.h>

#include "exec/host/kernels_math.h"
#include "tests/unit/kernel_check.h"

static const int64_t odd[] = {1, 31, 33, 65, 130};
#define N_ODD COUNT(odd)
#define MANY 400 /* rows enough that every thread gets some */

/* ---- */

static void test_exp(void)
{
	double worst = 0.0;
	for (double x = -87.3; x <= 88.3; x += 1e-3) {
		double exact = exp((double)(float)x);
		worst = fmax(worst, fabs((double)fast_expf((float)x) - exact) / exact);
	}
	CU_ASSERT(worst <= 3e-7);
	CU_ASSERT_EQUAL(fast_expf(0.0f), 1.0f);
	CU_ASSERT_EQUAL(fast_expf(-87.7f), 0.0f);
	CU_ASSERT_EQUAL(fast_expf(-1e30f), 0.0f);
	CU_ASSERT_EQUAL(fast_expf(-INFINITY), 0.0f);
	CU_ASSERT(isnan(fast_expf(NAN)));
	CU_ASSERT(isfinite(fast_expf(1e30f)));
	CU_ASSERT(isnormal(fast_sigmoidf(-1e30f)));
	CU_ASSERT_EQUAL(fast_sigmoidf(1e30f), 1.0f);
}

/* Press et al.: 8 heads have 1/2 .. 1/256; 12 heads those, then every second slope of 16. */
static void test_alibi_slopes(void)
{
	for (int h = 0; h < 8; h++) {
		CU_ASSERT_DOUBLE_EQUAL(alibi_slope(h, 8), pow(0.5, h + 1), 1e-15);
		CU_ASSERT_DOUBLE_EQUAL(alibi_slope(h, 12), alibi_slope(h, 8), 1e-15);
	}
	for (int h = 0; h < 4; h++)
		CU_ASSERT_DOUBLE_EQUAL(alibi_slope(8 + h, 12), alibi_slope(2 * h, 16), 1e-15);
	CU_ASSERT_DOUBLE_EQUAL(alibi_slope(0, 1), 1.0 / 256.0, 1e-15);
}

static void test_gemm(void)
{
	static const int64_t sizes[][3] = {{1, 1, 1}, {31, 33, 65}, {65, 130, 31}, {130, 1, 33}, {1, 130, 65},
		{65, 66, 130}};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned flags = 0; flags < 8; flags++) /* OP_ACCUMULATE, OP_TRANS_A, OP_TRANS_B */
			for (unsigned absent = 0; absent <= 4; absent += 4)
				check_op(rig_op(OP_GEMM, flags, 0, sizes[i][0], sizes[i][1], sizes[i][2], 0, 0), absent,
					SUMS);
	check_op(rig_op(OP_GEMM, OP_TRANS_B, 0, MANY, 130, 65, 0, 0), 0, SUMS); /* large enough for a grid */
	check_op(rig_op(OP_GEMM, OP_TRANS_A | OP_ACCUMULATE, 0, 65, MANY, 130, 0, 0), 1 << 2, SUMS);
	openblas_set_num_threads(2); /* then one call at a time; so small that OpenBLAS leaves its second thread asleep,
	                                which valgrind would never get past */
	check_op(rig_op(OP_GEMM, OP_TRANS_B, 0, 65, 130, 31, 0, 0), 0, SUMS);
	check_op(rig_op(OP_ATTN_SCORES, OP_CAUSAL, 0, 2, 4, 2, 65, 16), 0, SUMS);
	openblas_set_num_threads(1);
}

/* b, H, K, s, D */
static const int64_t attentions[][5] = {{1, 1, 1, 1, 2}, {2, 3, 1, 31, 6}, {1, 2, 2, 33, 64}, {1, 4, 2, 65, 16},
	{1, 2, 1, 130, 10}, {1, 1, 1, 66, 80}};
static const unsigned masks[] = {0, OP_CAUSAL, OP_ALIBI, OP_CAUSAL | OP_ALIBI};
#define FOR_ATTENTIONS(d, flags) \
	for (size_t i_ = 0; i_ < COUNT(attentions); i_++) \
		for (size_t m_ = 0; m_ < COUNT(masks); m_++) \
			for (unsigned once_ = 1, flags = masks[m_]; once_; once_ = 0) \
				for (const int64_t *d = attentions[i_]; d; d = NULL)

/* ALiBi's biases reach 65 here, and the exponential makes their rounding (fp32: 4e-6) a relative error. */
static double attention_tolerance(unsigned flags) { return flags & OP_ALIBI ? 4.0 * SUMS : SUMS; }

static void open_attention(struct rig *r, enum op_kind kind, unsigned flags, const int64_t *d)
{
	rig_open(r, rig_op(kind, flags, 0, d[0], d[1], d[2], d[3], d[4]), 0);
	r->env.tensor_coord = 1;
	r->env.heads = 2 * d[1];
}

static void copy_argument(struct rig *to, int a, const struct rig *from, int b)
{
	memcpy(to->ref[a], from->ref[b], to->n[a] * sizeof(double));
	rig_sync(to, a);
}

static void test_attention(void)
{
	FOR_ATTENTIONS(d, flags)
	{
		struct rig forward, r;
		open_attention(&r, OP_ATTENTION, flags, d);
		check(&r, attention_tolerance(flags));
		open_attention(&forward, OP_ATTENTION, flags, d);
		rig_reference(&forward);
		open_attention(&r, OP_ATTENTION_GRAD, flags, d);
		for (int a = 0; a < 3; a++) /* qkv, out, lse */
			copy_argument(&r, a, &forward, a);
		check(&r, attention_tolerance(flags));
		rig_close(&forward);
	}
}

/* Windows narrower and wider than a tile of 32 or 64 keys, and than the sequence by one. */
static void test_window(void)
{
	static const int64_t windows[] = {1, 2, 31, 33, 64, 65, 129};
	for (size_t i = 0; i < COUNT(attentions); i++)
		for (size_t k = 0; k < COUNT(windows); k++)
			for (unsigned flags = OP_CAUSAL; windows[k] < attentions[i][3]; flags |= OP_ALIBI) {
				struct rig forward, r;
				open_attention(&r, OP_ATTENTION, flags, attentions[i]);
				r.op.attn.window = windows[k];
				check(&r, attention_tolerance(flags));
				open_attention(&forward, OP_ATTENTION, flags, attentions[i]);
				open_attention(&r, OP_ATTENTION_GRAD, flags, attentions[i]);
				forward.op.attn.window = r.op.attn.window = windows[k];
				rig_reference(&forward);
				for (int a = 0; a < 3; a++)
					copy_argument(&r, a, &forward, a);
				check(&r, attention_tolerance(flags));
				rig_close(&forward);
				if (flags & OP_ALIBI)
					break;
			}
}

static void test_naive_attention(void)
{
	static const enum op_kind kinds[] = {OP_ATTN_SCORES, OP_ATTN_SOFTMAX, OP_ATTN_VALUES, OP_ATTN_VALUES_GRAD,
		OP_ATTN_SOFTMAX_GRAD, OP_ATTN_SCORES_GRAD};
	FOR_ATTENTIONS(d, flags)
	for (size_t k = 0; k < COUNT(kinds); k++) {
		struct rig r;
		open_attention(&r, kinds[k], flags, d);
		r.terms = kinds[k] == OP_ATTN_SOFTMAX ? 0.0
		                                      : 1.0; /* probabilities are small without being differences */
		check(&r, attention_tolerance(flags));
	}
	/* masked scores have probability zero, whatever else the row holds */
	struct rig r;
	open_attention(&r, OP_ATTN_SOFTMAX, OP_CAUSAL, attentions[4]);
	for (size_t i = 0; i < r.n[0]; i += 2)
		((double *)r.ref[0])[i] = -INFINITY;
	rig_sync(&r, 0);
	check(&r, SUMS);
}

static void test_rope(void)
{
	static const int64_t sizes[][5] = {{1, 1, 1, 1, 2}, {2, 3, 1, 31, 6}, {2, 4, 2, 130, 16}, {1, 2, 2, 300, 64},
		{1, 1, 1, 2500, 66}};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned inverse = 0; inverse < 2; inverse++)
			check_op(rig_op(OP_ROPE, inverse ? OP_INVERSE : 0, 0, sizes[i][0], sizes[i][1], sizes[i][2],
					 sizes[i][3], sizes[i][4]),
				0, ROUNDS);
}

/* Rows and columns: every pair of the odd sizes, and one that several threads share. */
static void for_sizes(void (*test)(int64_t rows, int64_t cols))
{
	for (size_t i = 0; i < N_ODD; i++)
		for (size_t j = 0; j < N_ODD; j++)
			test(odd[i], odd[j]);
	test(MANY, 130);
	test(3, 12000);
}

static void norm_of(int64_t rows, int64_t cols)
{
	for (unsigned rms = 0; rms < 2; rms++)
		for (unsigned bias = 0; bias < 2; bias++) {
			unsigned flags = rms ? OP_RMS : 0;
			check_op(rig_op(OP_NORM, flags, 0, rows, cols, 0, 0, 0), bias ? 0 : 1 << 2, SUMS);
			check_op(rig_op(OP_ADD_NORM, flags, 0, rows, cols, 0, 0, 0), bias ? 0 : 1 << 2 | 1 << 4, SUMS);
		}
}

static void norm_grad_of(int64_t rows, int64_t cols)
{
	for (unsigned variant = 0; variant < 16; variant++) {
		struct rig forward, r;
		unsigned rms = variant & 1 ? OP_RMS : 0;
		rig_open(&forward, rig_op(OP_NORM, rms, 0, rows, cols, 0, 0, 0), 0);
		rig_reference(&forward);
		rig_open(&r,
			rig_op(OP_NORM_GRAD,
				rms | (variant & 2 ? OP_ACCUMULATE : 0) | (variant & 4 ? OP_DX_ACCUMULATE : 0), 0, rows,
				cols, 0, 0, 0),
			variant & 8 ? 1 << 6 : 0);
		copy_argument(&r, 1, &forward, 0);
		copy_argument(&r, 3, &forward, 4);
		/* dx is a difference of terms of the size of 1 / sigma, of equal ones where a row has a single column
		 */
		for (int64_t i = 0; i < rows; i++)
			r.terms = fmax(r.terms, ((double *)r.ref[3])[2 * i + 1]);
		check(&r, SUMS);
		rig_close(&forward);
	}
}

static void test_norm(void)
{
	for_sizes(norm_of);
	for_sizes(norm_grad_of);
}

/* b, H, K, s, D of `attentions`; by head and over all heads, with and without a mean, sums and new weights' gradients.
 */
static void qk_norm_of(const int64_t *d, unsigned variant)
{
	const unsigned rms = variant & 1 ? OP_RMS : 0, sums = variant & 4 ? OP_ACCUMULATE : 0;
	struct rig forward, r;
	struct op op = rig_op(OP_QK_NORM, rms, 0, d[0], d[1], d[2], d[3], d[4]);
	op.attn.full = variant & 2 ? 1 : 0;
	check_op(op, 0, SUMS);
	rig_open(&forward, op, 0);
	rig_reference(&forward);
	op.kind = OP_QK_NORM_GRAD;
	op.flags = (uint32_t)(rms | sums);
	rig_open(&r, op, 0);
	copy_argument(&r, ARG_QK_NORM_GRAD_x, &forward, ARG_QK_NORM_x);
	copy_argument(&r, ARG_QK_NORM_GRAD_stats, &forward, ARG_QK_NORM_stats);
	for (size_t i = 1; i < r.n[ARG_QK_NORM_GRAD_stats]; i += 2)
		r.terms = fmax(r.terms, ((double *)r.ref[ARG_QK_NORM_GRAD_stats])[i]);
	check(&r, SUMS);
	rig_close(&forward);
}

static void test_qk_norm(void)
{
	for (size_t i = 0; i < COUNT(attentions); i++)
		for (unsigned variant = 0; variant < 8; variant++)
			qk_norm_of(attentions[i], variant);
}

static void add_of(int64_t rows, int64_t cols)
{
	check_op(rig_op(OP_ADD, 0, 0, rows, cols, 0, 0, 0), 0, ROUNDS);
	check_op(rig_op(OP_ADD, 0, 0, rows, cols, 0, 0, 0), 1 << 2, ROUNDS);
	check_op(rig_op(OP_BIAS, 0, 0, rows, cols, 0, 0, 0), 0, ROUNDS);
	check_op(rig_op(OP_BIAS_GRAD, 0, 0, rows, cols, 0, 0, 0), 0, SUMS);
	check_op(rig_op(OP_BIAS_GRAD, OP_ACCUMULATE, 0, rows, cols, 0, 0, 0), 0, SUMS);
}

static void act_of(int64_t rows, int64_t cols)
{
	for (int mlp = 0; mlp < ACTIVATION_COUNT; mlp++) {
		check_op(rig_op(OP_ACT, 0, mlp, rows, cols, 0, 0, 0), 0, ROUNDS);
		check_op(rig_op(OP_ACT_GRAD, 0, mlp, rows, cols, 0, 0, 0), 0, ROUNDS);
		check_op(rig_op(OP_WEIGHTED_ACT, 0, mlp, rows, cols, 0, 0, 0), 0, ROUNDS);
		check_op(rig_op(OP_WEIGHTED_ACT_GRAD, 0, mlp, rows, cols, 0, 0, 0), 0, SUMS);
	}
	for (int mlp = MLP_SWIGLU; mlp <= MLP_GEGLU; mlp++)
		check_op(rig_op(OP_GATE_ACT, 0, mlp, rows, cols, 0, 0, 0), 0, ROUNDS);
	check_op(rig_op(OP_GATE_MUL, 0, MLP_SWIGLU, rows, cols, 0, 0, 0), 0, ROUNDS);
}

static void test_elementwise(void)
{
	for_sizes(add_of);
	for_sizes(act_of);
}

/* Activations far from zero: saturated, no overflow. */
static void test_act_extremes(void)
{
	for (int mlp = 0; mlp < ACTIVATION_COUNT; mlp++)
		for (int grad = 0; grad < 2; grad++) {
			struct rig r;
			rig_open(&r, rig_op(grad ? OP_ACT_GRAD : OP_ACT, 0, mlp, 1, 65, 0, 0, 0), 0);
			for (size_t i = 0; i < r.n[0]; i++)
				((double *)r.ref[0])[i] = ((double)i - 32.0) * 8.0;
			rig_sync(&r, 0);
			check(&r, ROUNDS);
		}
}

static void embed_of(int64_t rows, int64_t cols)
{
	for (int vocab_parallel = 0; vocab_parallel < 2; vocab_parallel++)
		for (int grad = 0; grad < 2; grad++) {
			struct rig r;
			rig_open(&r,
				rig_op(grad ? OP_EMBED_GRAD : OP_EMBED, vocab_parallel ? OP_VOCAB_PARALLEL : 0, 0, rows,
					cols, 7, 0, 0),
				0);
			r.env.tensor_coord = 1;
			rig_ids(&r, 0, 0, vocab_parallel ? 21 : 7);
			check(&r, SUMS);
		}
	for (unsigned absent = 0; absent < 3; absent++)
		for (int grad = 0; grad < 2; grad++) {
			struct rig r;
			rig_open(&r,
				rig_op(grad ? OP_POSITION_GRAD : OP_POSITION, absent == 1 ? OP_SEQUENCE_PARALLEL : 0, 0,
					rows, cols, 17, 0, 0),
				grad ? absent << 1 : absent);
			r.env.tensor_coord = 3;
			check(&r, SUMS);
		}
}

static void test_embed(void) { for_sizes(embed_of); }

/* Every fifth row has no target. */
static void set_targets(struct rig *r, int64_t vocab)
{
	int32_t *targets = rig_ids(r, 1, 0, vocab);
	for (size_t i = 2; i < r->n[1]; i += 5)
		targets[i] = -100;
}

static void loss_of(int64_t rows, int64_t cols)
{
	struct rig r, max, sum;
	rig_open(&r, rig_op(OP_LOSS, 0, 0, rows, cols, 0, 0, 0), 0);
	r.terms = r.env.loss_scale;
	r.env.tensor_coord = 1; /* without meaning here */
	set_targets(&r, cols);
	check(&r, SUMS);
	rig_open(&r, rig_op(OP_LOSS, 0, 0, rows, cols, 4, 0, 0), 0);
	r.terms = 5 * r.env.loss_scale;
	set_targets(&r, cols);
	check(&r, SUMS);
	rig_open(&max, rig_op(OP_LOSS_MAX, 0, 0, rows, cols, 0, 0, 0), 0);
	check_op(max.op, 0, 0.0);
	rig_reference(&max);
	for (int grad = 0; grad < 2; grad++) {
		rig_open(&sum, rig_op(OP_LOSS_SUM, 0, 0, rows, cols, 0, 0, 0), 0);
		sum.env.tensor_coord = 1;
		copy_argument(&sum, 0, &max, 0);
		set_targets(&sum, 3 * cols); /* a third of them is this rank's */
		copy_argument(&sum, 2, &max, 1);
		if (!grad) {
			check(&sum, SUMS);
			continue;
		}
		rig_reference(&sum);
		rig_open(&r, rig_op(OP_LOSS_GRAD, 0, 0, rows, cols, 0, 0, 0), 0);
		r.terms = r.env.loss_scale;
		r.env.tensor_coord = 1;
		copy_argument(&r, 0, &max, 0);
		memcpy(r.fast[1], sum.fast[1], r.n[1] * 4);
		copy_argument(&r, 2, &max, 1);
		copy_argument(&r, 3, &sum, 3);
		check(&r, SUMS);
		rig_close(&sum);
	}
	rig_close(&max);
}

static void test_loss(void) { for_sizes(loss_of); }

static void optimizer_of(enum optimizer o, int64_t n, unsigned fused, unsigned absent)
{
	struct rig r;
	rig_open(&r, rig_op(OP_OPTIMIZER, fused ? OP_FUSED : 0, (int)o, n, 0, 0, 0, 0), absent);
	for (size_t i = 0; i < r.n[3] && !r.absent[3]; i++) /* a second moment is not negative */
		((double *)r.ref[3])[i] = fabs(((double *)r.ref[3])[i]) + 1e-3;
	if (!r.absent[3])
		rig_sync(&r, 3);
	check(&r, ROUNDS);
}

static void test_optimizer(void)
{
	static const int64_t sizes[] = {1, 31, 33, 65, 130, 50003};
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (unsigned fused = 0; fused < 2; fused++)
			for (unsigned master = 0; master < 2; master++) {
				unsigned no_master = master ? 0 : 1 << 4, no_v = 1 << 3, no_m = 1 << 2;
				optimizer_of(OPT_ADAMW, sizes[i], fused, no_master);
				optimizer_of(OPT_ADAM, sizes[i], fused, no_master);
				optimizer_of(OPT_LION, sizes[i], fused, no_master | no_v);
				optimizer_of(OPT_SGD, sizes[i], fused, no_master | no_v);
				optimizer_of(OPT_SGD, sizes[i], fused, no_master | no_v | no_m);
			}
}

static void test_memory(void)
{
	static const int64_t sizes[] = {1, 31, 33, 65, 130, 50003};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		check_op(rig_op(OP_FILL, 0, 0, sizes[i], 0, 0, 0, 0), 0, 0.0);
		check_op(rig_op(OP_CAST, 0, 0, sizes[i], 0, 0, 0, 0), 0, 0.0);
		struct rig r;
		rig_open(&r, rig_op(OP_COPY, 0, 0, 4 * sizes[i], 0, 0, 0, 0), 0);
		rig_ids(&r, 0, 0, 1 << 20);
		char *blocks[OP_MAX_ARGS];
		struct tools t;
		tools_open(&t, &r, 1);
		run_kernel(&r, &t, blocks);
		CU_ASSERT_EQUAL(memcmp(blocks[0], blocks[1], 2 * GUARD_B + r.n[0] * 4), 0);
		free(blocks[0]);
		free(blocks[1]);
		tools_close(&t);
		rig_close(&r);
	}
}

/* A written argument may be the very memory of a read one. */
static void test_in_place(void)
{
	struct rig r;
	rig_open(&r, rig_op(OP_ADD, 0, 0, MANY, 130, 0, 0, 0), 0);
	struct tools t;
	tools_open(&t, &r, 3);
	struct error e = {0};
	rig_reference(&r);
	CU_ASSERT_EQUAL(host_kernel_run(&t.env, &r.op,
				(void *const[OP_MAX_ARGS]){r.fast[0], r.fast[1], r.fast[2], r.fast[0]}, &e),
		ST_OK);
	check_argument(&r, 3, r.block[0], NULL, ROUNDS, 3);
	tools_close(&t);
	rig_close(&r);
}

static void refused(struct op op, unsigned absent, int32_t id, const char *words)
{
	struct rig r;
	struct tools t;
	struct error e = {0};
	rig_open(&r, op, absent);
	for (int a = 0; a < r.n_args; a++)
		if (r.is_int[a])
			((int32_t *)r.fast[a])[r.n[a] - 1] = id;
	tools_open(&t, &r, 1);
	CU_ASSERT_EQUAL(host_kernel_run(&t.env, &op, r.fast, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, words));
	tools_close(&t);
	rig_close(&r);
}

static void test_errors(void)
{
	refused(rig_op(OP_EMBED, 0, 0, 3, 4, 5, 0, 0), 0, 5, "token 2 is 5, the table has 5 rows");
	refused(rig_op(OP_EMBED_GRAD, 0, 0, 3, 4, 5, 0, 0), 0, -1, "token 2 is -1");
	refused(rig_op(OP_LOSS, 0, 0, 3, 4, 0, 0, 0), 0, 4, "target 2 is 4, there are 4 logits");
	refused(rig_op(OP_OPTIMIZER, OP_FUSED, OPT_LAMB, 4, 0, 0, 0, 0), 1 << 4, 0, "no kernel for optimizer lamb");
	refused(rig_op(OP_OPTIMIZER, OP_FUSED, OPT_ADAMW, 4, 0, 0, 0, 0), 1 << 3 | 1 << 4, 0, "without its state");
	refused(rig_op(OP_GATE_ACT, 0, MLP_GELU, 2, 2, 0, 0, 0), 0, 0, "without a gate");
	refused(rig_op(OP_COLLECTIVE, 0, 0, 4, 0, 0, 0, 0), 0, 0, "no kernel");
	struct error e = {0};
	struct op op = rig_op(OP_GEMM, 0, 0, INT64_C(1) << 31, 1, 1, 0, 0);
	CU_ASSERT_EQUAL(host_kernel_run(&(struct host_env){0}, &op, (void *const[OP_MAX_ARGS]){NULL}, &e), ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "too large for BLAS"));
	e = (struct error){0};
	op = rig_op(OP_ATTENTION, 0, 0, 1, 1, 1, 64, 64);
	CU_ASSERT_EQUAL(host_kernel_run(&(struct host_env){.scratch_B = 64}, &op, (void *const[OP_MAX_ARGS]){NULL}, &e),
		ST_RUN);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "scratch"));
}

/* No n^2 buffer: twice the sequence, at most twice the scratch. */
static void test_scratch_is_linear(void)
{
	for (int64_t s = 64; s <= 1 << 20; s *= 2) {
		struct op one = rig_op(OP_ATTENTION, 0, 0, 1, 1, 1, s, 64), two = one;
		two.attn.seq = 2 * s;
		CU_ASSERT(host_kernel_scratch_B(&two, 2) <= 2 * host_kernel_scratch_B(&one, 2));
		one.kind = two.kind = OP_ATTENTION_GRAD;
		CU_ASSERT(host_kernel_scratch_B(&two, 2) <= 2 * host_kernel_scratch_B(&one, 2));
	}
}

int main(void)
{
	openblas_set_num_threads(1);
	static const struct unit_test tests[] = {
		{"exp", test_exp},
		{"alibi slopes", test_alibi_slopes},
		{"gemm", test_gemm},
		{"attention", test_attention},
		{"attention through a window", test_window},
		{"naive attention", test_naive_attention},
		{"rope", test_rope},
		{"norm", test_norm},
		{"norms of queries and keys", test_qk_norm},
		{"elementwise", test_elementwise},
		{"activations far out", test_act_extremes},
		{"embed", test_embed},
		{"loss", test_loss},
		{"optimizer", test_optimizer},
		{"memory", test_memory},
		{"in place", test_in_place},
		{"errors", test_errors},
		{"scratch is linear", test_scratch_is_linear},
	};
	return unit_main("kernels", tests, COUNT(tests));
}
