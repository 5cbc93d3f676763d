/* Softmax of naive attention's scores. The kernel takes Q K^T / sqrt(D) and biases and masks itself; the reference's
 * scores have both already. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

#define HEADS 3
#define BATCH 2
static const int64_t lengths[] = {0, 1, 31, 33, 64, 127};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
static const unsigned masks[] = {0, OP_CAUSAL, OP_ALIBI, OP_CAUSAL | OP_ALIBI};

static struct op softmax_op(enum op_kind kind, unsigned flags, enum dtype format, int64_t b, int64_t H, int64_t s)
{
	return cuda_rig_op(kind, flags, 0, format, format, b, H, H, s, 8);
}

/* Adds mask and bias to a product, as the reference's ATTN_SCORES does. */
static double with_bias(const struct cuda_rig *r, size_t element, double x)
{
	const int64_t s = r->op.attn.seq, H = r->op.attn.heads, j = (int64_t)element % s, i = (int64_t)element / s % s,
		      h = (int64_t)element / (s * s) % H;
	if (r->op.flags & OP_CAUSAL && j > i)
		return -INFINITY;
	return x + (r->op.flags & OP_ALIBI ? alibi_slope(r->env.tensor_coord * H + h, r->env.heads) * (double)(j - i)
					   : 0.0);
}

static void softmax_case(unsigned flags, enum dtype format, int64_t b, int64_t H, int64_t s, size_t shift)
{
	struct cuda_rig r;
	struct error e = {0};
	cuda_rig_open(&r, softmax_op(OP_ATTN_SOFTMAX, flags, format, b, H, s),
		(struct cuda_rig_options){.shift = shift});
	r.env.tensor_coord = 2;
	r.row[0] = s ? (size_t)s : 1;
	r.terms = 0.0;
	double *x = r.ref[0];
	for (size_t i = 0; i < r.n[0]; i++)
		x[i] *= 4.0;
	cuda_rig_sync(&r, 0);
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_OK);
	for (size_t i = 0; i < r.n[0]; i++)
		x[i] = with_bias(&r, i, x[i]);
	CU_ASSERT_EQUAL(reference_run(&r.env, &r.op, r.ref, &e), ST_OK);
	cuda_rig_compare(&r);
	size_t unmasked = 0;
	for (size_t i = 0; i < r.n[0]; i++)
		unmasked += flags & OP_CAUSAL && (int64_t)i % s > (int64_t)i / s % s &&
		            rig_load(format, rig_host(&r.block[0]), i) != 0.0;
	CU_ASSERT_EQUAL(unmasked, 0);
	cuda_rig_close(&r);
}

static void test_softmax(void)
{
	for (size_t n = 0; n < COUNT(lengths); n++)
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t m = 0; m < COUNT(masks); m++) {
				softmax_case(masks[m], formats[f], BATCH, HEADS, lengths[n], 0);
				softmax_case(masks[m], formats[f], BATCH, HEADS, lengths[n], 1);
			}
	for (size_t f = 0; f < COUNT(formats); f++) {
		softmax_case(OP_CAUSAL, formats[f], 1, 1, 1023, 0);
		softmax_case(OP_CAUSAL, formats[f], 1, 1, 1025, 0);
	}
}

/* Probabilities of a causal row are 0 behind its place, and what dprobs holds there is not looked at. */
static void prepare_grad(struct cuda_rig *r)
{
	const int64_t s = r->op.attn.seq;
	for (size_t i = 0; i < r->n[0]; i++)
		if (r->op.flags & OP_CAUSAL && (int64_t)i % s > (int64_t)i / s % s)
			((double *)r->ref[0])[i] = 0.0;
	cuda_rig_sync(r, 0);
	r->row[0] = r->row[1] = s ? (size_t)s : 1;
}

static void grad_case(unsigned flags, enum dtype format, int64_t s, size_t shift)
{
	struct cuda_rig r;
	cuda_rig_open(&r, softmax_op(OP_ATTN_SOFTMAX_GRAD, flags, format, BATCH, HEADS, s),
		(struct cuda_rig_options){.shift = shift});
	prepare_grad(&r);
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void test_softmax_grad(void)
{
	for (size_t n = 0; n < COUNT(lengths); n++)
		for (size_t f = 0; f < COUNT(formats); f++)
			for (size_t m = 0; m < 2; m++) {
				grad_case(masks[m], formats[f], lengths[n], 0);
				grad_case(masks[m], formats[f], lengths[n], 1);
			}
	grad_case(OP_CAUSAL, DT_BF16, 301, 0);
}

/* The two matrices begin at different places of a vector. */
static void test_unlike_alignment(void)
{
	struct cuda_rig r;
	struct error e = {0};
	cuda_rig_open(&r, softmax_op(OP_ATTN_SOFTMAX_GRAD, OP_CAUSAL, DT_BF16, 1, 2, 64), (struct cuda_rig_options){0});
	prepare_grad(&r);
	struct rig_block probs = rig_block_new(r.block[0].bytes, 2);
	memcpy(rig_host(&probs), rig_host(&r.block[0]), probs.bytes);
	rig_block_upload(&probs);
	rig_block_upload(&r.block[1]);
	const struct cuda_arg arg[OP_MAX_ARGS] = {{rig_device(&probs), DT_BF16}, {rig_device(&r.block[1]), DT_BF16}};
	CU_ASSERT_EQUAL(cuda_kernel_run(&r.cuda, &r.op, arg, &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&probs) && rig_block_download(&r.block[1]));
	CU_ASSERT_EQUAL(reference_run(&r.env, &r.op, r.ref, &e), ST_OK);
	cuda_rig_compare(&r);
	rig_block_free(&probs);
	cuda_rig_close(&r);
}

CUDA_MAIN("cuda softmax", {"softmax", test_softmax}, {"its gradient", test_softmax_grad},
	{"unlike alignment", test_unlike_alignment})
