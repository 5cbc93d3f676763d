/* Optimizers against the reference, in one pass and in several. Weights are as small as the steps, so that a step that
 * is missing or wrong is seen in 16-bit weights too. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"
#include "tests/unit/states8_check.h"

static const int64_t sizes[] = {0, 1, 31, 33, 1023, 1025};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};
static const enum optimizer rules[] = {OPT_ADAMW, OPT_ADAM, OPT_LION, OPT_SGD};
static const int64_t steps[] = {1, 2, 1000};

#define ARG_M 2
#define ARG_V 3
#define ARG_MASTER 4

static void open_case(struct cuda_rig *r, enum optimizer rule, unsigned flags, int64_t n, enum dtype p, enum dtype g,
	unsigned absent, size_t shift)
{
	absent |= rule == OPT_SGD || rule == OPT_LION ? 1u << ARG_V : 0;
	absent |= flags & OP_MASTER ? 0 : 1u << ARG_MASTER;
	cuda_rig_open(r, cuda_rig_op(OP_OPTIMIZER, flags, (int)rule, p, g, n, 0, 0, 0, 0),
		(struct cuda_rig_options){.absent = absent, .shift = shift});
	static const int weights[] = {0, ARG_MASTER};
	for (size_t w = 0; w < 2; w++) {
		for (size_t i = 0; i < r->n[weights[w]]; i++)
			((double *)r->ref[weights[w]])[i] *= 1e-3;
		cuda_rig_sync(r, weights[w]);
	}
	for (size_t i = 0; i < r->n[ARG_V]; i++)
		((double *)r->ref[ARG_V])[i] = fabs(((double *)r->ref[ARG_V])[i]);
	cuda_rig_sync(r, ARG_V);
	r->terms = 1e-3;
}

static void optimizer_case(enum optimizer rule, unsigned flags, int64_t n, enum dtype p, enum dtype g, unsigned absent,
	size_t shift, int64_t step)
{
	struct cuda_rig r;
	open_case(&r, rule, flags, n, p, g, absent, shift);
	r.env.step = step;
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void all_cases(unsigned flags)
{
	for (size_t o = 0; o < COUNT(rules); o++)
		for (size_t n = 0; n < COUNT(sizes); n++)
			for (size_t p = 0; p < COUNT(formats); p++)
				for (size_t g = 0; g < COUNT(formats); g++) {
					const int64_t step = steps[(n + p + g) % COUNT(steps)];
					optimizer_case(rules[o], flags, sizes[n], formats[p], formats[g], 0, 0, step);
					optimizer_case(rules[o], flags | OP_MASTER, sizes[n], formats[p], formats[g], 0,
						1, step);
				}
	for (size_t p = 0; p < COUNT(formats); p++) /* without momentum */
		for (size_t g = 0; g < COUNT(formats); g++) {
			optimizer_case(OPT_SGD, flags, 1025, formats[p], formats[g], 1u << ARG_M, 0, 1);
			optimizer_case(OPT_SGD, flags | OP_MASTER, 1025, formats[p], formats[g], 1u << ARG_M, 0, 1);
		}
}

static void test_fused(void) { all_cases(OP_FUSED); }

static void test_passes(void) { all_cases(0); }

static void fill_moment(struct cuda_rig *r, int a, bool has_sign)
{
	if (r->absent[a])
		return;
	free(r->ref[a]);
	r->ref[a] = rig_memory((size_t)r->op.update.elements * sizeof(double));
	states8_fill(&r->op, has_sign, cuda_rig_random, rig_host(&r->block[a]), r->ref[a]);
}

/* The reference's moments are not rounded; weights do not see the rounding. */
static void states8_case(enum optimizer rule, int64_t n, int64_t from, int64_t to, enum dtype p, enum dtype g,
	unsigned master)
{
	struct cuda_rig r;
	struct error e = {0};
	open_case(&r, rule, OP_FUSED | OP_STATES_8 | master, n, p, g, 0, master ? 1 : 0);
	r.op.update.wide_from = from;
	r.op.update.wide_to = to;
	for (int a = ARG_M; a <= ARG_V; a++) { /* with the range, the moments have another size */
		if (r.absent[a])
			continue;
		rig_block_free(&r.block[a]);
		r.block[a] = rig_block_new(op_arg_bytes(&r.op, a, 1), 0);
		fill_moment(&r, a, a == ARG_M);
	}
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_OK);
	CU_ASSERT_EQUAL(reference_run(&r.env, &r.op, r.ref, &e), ST_OK);
	CU_ASSERT_EQUAL(cuda_rig_wrong(&r, 0), 0);
	CU_ASSERT_EQUAL(cuda_rig_wrong(&r, 1), 0);
	if (master)
		CU_ASSERT_EQUAL(cuda_rig_wrong(&r, ARG_MASTER), 0);
	for (int a = ARG_M; a <= ARG_V; a++)
		if (!r.absent[a])
			CU_ASSERT_EQUAL(states8_wrong(&r.op, a == ARG_M, rig_host(&r.block[a]), r.ref[a]), 0);
	cuda_rig_close(&r);
}

static void test_states8(void)
{
	static const int64_t blocks[] = {1, 255, 257, 1025, 20011};
	for (size_t o = 0; o < COUNT(rules); o++)
		for (size_t n = 0; n < COUNT(blocks); n++) {
			const int64_t all = blocks[n];
			states8_case(rules[o], all, 0, 0, formats[n % 3], formats[(n + o) % 3], 0);
			states8_case(rules[o], all, all / 3, all - all / 5, formats[(n + 1) % 3], formats[o % 3],
				OP_MASTER);
			states8_case(rules[o], all, 0, all, DT_FP32, DT_FP32, 0);
		}
	for (size_t o = 0; o < COUNT(rules); o++)
		for (size_t p = 0; p < COUNT(formats); p++)
			for (size_t g = 0; g < COUNT(formats); g++)
				states8_case(rules[o], 513, 0, 0, formats[p], formats[g], 0);
}

/* ---- LAMB ---- */

static const int64_t tensor_sizes[] = {1, 33, 0, 5003, 130};
#define PADDING 7

static void open_lamb(struct cuda_rig *r, enum op_kind kind, int bounds, unsigned absent, enum dtype p, enum dtype g)
{
	struct op op = cuda_rig_op(kind, OP_FUSED, 0, p, g, PADDING, COUNT(tensor_sizes), 0, 0, 0);
	enum dtype stored[OP_MAX_ARGS];
	int64_t at[COUNT(tensor_sizes) + 1] = {0};
	for (int a = 0; a < OP_MAX_ARGS; a++)
		stored[a] = a == bounds ? DT_INT32 : DT_COUNT; /* two words each */
	for (size_t t = 0; t < COUNT(tensor_sizes); t++) {
		at[t + 1] = at[t] + tensor_sizes[t];
		op.tensors.elements += tensor_sizes[t];
	}
	op.optimizer = OPT_ADAM;
	cuda_rig_open(r, op, (struct cuda_rig_options){.absent = absent, .formats = stored});
	memcpy(r->ref[bounds], at, sizeof at);
	cuda_rig_sync(r, bounds);
}

static void make_positive(struct cuda_rig *r, int a, double least)
{
	for (size_t i = 0; i < r->n[a]; i++)
		((double *)r->ref[a])[i] = fabs(((double *)r->ref[a])[i]) + least;
	cuda_rig_sync(r, a);
}

static void test_lamb(void)
{
	for (size_t p = 0; p < COUNT(formats); p++)
		for (size_t g = 0; g < COUNT(formats); g++)
			for (unsigned master = 0; master < 2; master++) {
				struct cuda_rig r;
				open_lamb(&r, OP_LAMB_DIRECTION, ARG_LAMB_DIRECTION_bounds,
					master ? 0 : 1u << ARG_LAMB_DIRECTION_master, formats[p], formats[g]);
				make_positive(&r, ARG_LAMB_DIRECTION_v, 1e-3);
				cuda_rig_check(&r);
				cuda_rig_close(&r);
				open_lamb(&r, OP_LAMB_STEP, ARG_LAMB_STEP_bounds,
					master ? 0 : 1u << ARG_LAMB_STEP_master, formats[p], formats[g]);
				make_positive(&r, ARG_LAMB_STEP_norms, 0);
				((double *)r.ref[ARG_LAMB_STEP_norms])[1] = 0;
				cuda_rig_sync(&r, ARG_LAMB_STEP_norms);
				cuda_rig_check(&r);
				cuda_rig_close(&r);
			}
}

static void test_refused(void)
{
	struct cuda_rig r;
	struct error e = {0};
	open_case(&r, OPT_LAMB, OP_FUSED, 33, DT_FP32, DT_FP32, 0, 0);
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "the GPU has no kernel for optimizer lamb");
	cuda_rig_close(&r);
	e = (struct error){0};
	open_case(&r, OPT_ADAMW, OP_FUSED, 33, DT_FP32, DT_FP32, 1u << ARG_V, 0);
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "optimizer adamw without its state");
	cuda_rig_close(&r);
	e = (struct error){0};
	const enum dtype narrow[OP_MAX_ARGS] = {DT_BF16, DT_BF16, DT_BF16, DT_FP32, DT_FP32};
	cuda_rig_open(&r, cuda_rig_op(OP_OPTIMIZER, OP_FUSED, OPT_ADAMW, DT_BF16, DT_BF16, 33, 0, 0, 0, 0),
		(struct cuda_rig_options){.formats = narrow});
	CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "optimizer: no kernel for m as bf16, only as fp32");
	cuda_rig_close(&r);
}

/* Less scratch memory than the state: in parts, with the same result; none at all: refused. */
static void test_little_scratch(void)
{
	struct cuda_rig r;
	struct error e = {0};
	open_case(&r, OPT_ADAMW, OP_MASTER, 1001, DT_BF16, DT_BF16, 0, 0);
	r.env.step = 5;
	r.scratch = rig_block_new(24 * sizeof(float), 0);
	r.step = rig_block_new(sizeof(int64_t), 0);
	memcpy(rig_host(&r.step), &r.env.step, sizeof r.env.step);
	rig_block_upload(&r.scratch);
	rig_block_upload(&r.step);
	struct cuda_arg arg[OP_MAX_ARGS] = {{NULL, DT_COUNT}};
	for (int a = 0; a < r.n_args; a++) {
		rig_block_upload(&r.block[a]);
		arg[a] = (struct cuda_arg){rig_device(&r.block[a]), r.format[a]};
	}
	r.cuda.step = rig_device(&r.step);
	r.cuda.scratch = rig_device(&r.scratch);
	CU_ASSERT_EQUAL(cuda_kernel_run(&r.cuda, &r.op, arg, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "optimizer: no scratch memory");
	r.cuda.scratch_B = r.scratch.bytes;
	CU_ASSERT_EQUAL(cuda_kernel_run(&r.cuda, &r.op, arg, &e), ST_OK);
	CU_ASSERT_TRUE(rig_block_download(&r.scratch));
	for (int a = 0; a < r.n_args; a++)
		CU_ASSERT_TRUE(rig_block_download(&r.block[a]));
	CU_ASSERT_EQUAL(reference_run(&r.env, &r.op, r.ref, &e), ST_OK);
	cuda_rig_compare(&r);
	cuda_rig_close(&r);
}

CUDA_MAIN("cuda optimizers", {"fused", test_fused}, {"in passes", test_passes}, {"moments in 8 bits", test_states8},
	{"LAMB", test_lamb}, {"refused", test_refused}, {"little scratch memory", test_little_scratch})
