/* Activations, gated or not, and their gradients. */
#include "base/array.h"
#include "tests/cuda/cuda_rig.h"

static const int64_t sizes[] = {0, 1, 31, 32, 33, 256, 1023, 1024, 1025};
static const int64_t row_counts[] = {0, 1, 3, 17};
static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

/* `span`: of x, so that the flat ends of the curves are met as well. */
static void check_as(struct op op, struct cuda_rig_options o, double span)
{
	struct cuda_rig r;
	cuda_rig_open(&r, op, o);
	double *x = r.ref[0];
	for (size_t i = 0; i < r.n[0]; i++)
		x[i] *= span;
	cuda_rig_sync(&r, 0);
	r.terms = span * span; /* squared_relu */
	cuda_rig_check(&r);
	cuda_rig_close(&r);
}

static void check(enum op_kind kind, int mlp, const char *in, const char *out)
{
	for (size_t f = 0; f < COUNT(formats); f++)
		for (size_t c = 0; c < COUNT(sizes); c++)
			for (size_t t = 0; t < COUNT(row_counts); t++) {
				struct op op = cuda_rig_op(kind, 0, mlp, formats[f], formats[f], row_counts[t],
					sizes[c], 0, 0, 0);
				check_as(op, (struct cuda_rig_options){0}, 1.0);
				check_as(op, (struct cuda_rig_options){.shift = 1}, 4.0);
				if (in)
					check_as(op, (struct cuda_rig_options){.in_place = {in, out}}, 1.0);
			}
}

static void test_act(void)
{
	check(OP_ACT, MLP_GELU, "x", "y");
	check(OP_ACT, MLP_RELU, "x", "y");
	check(OP_ACT, MLP_SQUARED_RELU, "x", "y");
	check(OP_ACT, MLP_SWIGLU, NULL, NULL);
	check(OP_ACT, MLP_GEGLU, NULL, NULL);
}

static void test_act_grad(void)
{
	for (int mlp = 0; mlp < MLP_COUNT; mlp++)
		check(OP_ACT_GRAD, mlp, "x", "dx");
}

static void test_gate(void)
{
	check(OP_GATE_ACT, MLP_SWIGLU, NULL, NULL);
	check(OP_GATE_ACT, MLP_GEGLU, NULL, NULL);
	check(OP_GATE_MUL, MLP_SWIGLU, "a", "y");
	check(OP_GATE_MUL, MLP_GEGLU, "a", "y");
}

/* Where exp overflows and where it vanishes: the curves end at x and at 0, never at a NaN. */
static void test_ends(void)
{
	static const double at[] = {-30000.0, -1000.0, -100.0, -88.5, -87.0, -20.0, -0.0, 0.0, 20.0, 88.0, 100.0,
		1000.0, 30000.0, 0.5, -0.5, 1e-6};
	static const struct {
		enum op_kind kind;
		int mlp;
	} kinds[] = {{OP_ACT, MLP_GELU}, {OP_ACT_GRAD, MLP_GELU}, {OP_ACT, MLP_SWIGLU}, {OP_ACT_GRAD, MLP_SWIGLU},
		{OP_ACT, MLP_GEGLU}, {OP_ACT_GRAD, MLP_GEGLU}, {OP_GATE_ACT, MLP_SWIGLU}};
	for (size_t f = 0; f < COUNT(formats); f++)
		for (size_t k = 0; k < COUNT(kinds); k++) {
			struct cuda_rig r;
			cuda_rig_open(&r,
				cuda_rig_op(kinds[k].kind, 0, kinds[k].mlp, formats[f], formats[f], (int64_t)COUNT(at),
					1, 0, 0, 0),
				(struct cuda_rig_options){0});
			size_t halves = r.n[0] / COUNT(at);
			for (size_t i = 0; i < COUNT(at); i++)
				((double *)r.ref[0])[halves * i] = at[i];
			cuda_rig_sync(&r, 0);
			cuda_rig_check(&r);
			cuda_rig_close(&r);
		}
}

static void test_refused(void)
{
	const enum dtype odd[OP_MAX_ARGS] = {DT_BF16, DT_FP32};
	const struct {
		struct op op;
		const enum dtype *formats;
		const char *text;
	} cases[] = {
		{cuda_rig_op(OP_GATE_ACT, 0, MLP_GELU, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), NULL,
			"gate_act of an MLP without a gate"},
		{cuda_rig_op(OP_ACT, 0, MLP_GELU, DT_BF16, DT_BF16, 2, 8, 0, 0, 0), odd,
			"act: no kernel for y as fp32 beside x as bf16"},
		{cuda_rig_op(OP_ACT, 0, MLP_SWIGLU, DT_INT32, DT_INT32, 2, 8, 0, 0, 0), NULL,
			"no kernel for format int32"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cuda_rig r;
		struct error e = {0};
		cuda_rig_open(&r, cases[i].op, (struct cuda_rig_options){.formats = cases[i].formats});
		CU_ASSERT_EQUAL(cuda_rig_run(&r, &e), ST_RUN);
		CU_ASSERT_STRING_EQUAL(e.text, cases[i].text);
		cuda_rig_close(&r);
	}
}

CUDA_MAIN("cuda_act", {"act", test_act}, {"act_grad", test_act_grad}, {"gate_act and gate_mul", test_gate},
	{"far from 0", test_ends}, {"refused", test_refused})
