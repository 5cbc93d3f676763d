/* Our own flash attention against the reference: odd sizes, masks, groups, ALiBi, all formats, with one thread a block
 * and with real ones; gradients also against differences. On a GPU, or on the doubles of its libraries, cuDNN's too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#ifdef CUDA_RIG_ON_GPU
#include "exec/cuda/attention.h"
#endif
#include "exec/cuda/kernels.h"
#include "exec/host/reference.h"
#include "tests/cuda/rig_memory.h"
#include "tests/unit/harness.h"

/* A flat array that is stored in the format of a tensor, between guards. */
struct tensor {
	enum dtype dtype;
	int64_t n;
	struct rig_block block;
	void *at;      /* the host's */
	double *exact; /* the same values, as the reference takes them */
};

static float half_to_float(uint16_t x)
{
	int exponent = x >> 10 & 31, mantissa = x & 1023;
	float y = exponent == 31 ? (mantissa ? NAN : INFINITY)
	          : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
	                         : ldexpf((float)mantissa, -24);
	return x & 0x8000 ? -y : y;
}

static float bf16_to_float(uint16_t x)
{
	uint32_t bits = (uint32_t)x << 16;
	float y;
	memcpy(&y, &bits, sizeof y);
	return y;
}

/* Multiples of 1/64 within (-2, 2): exact in every format. */
static double draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return ((double)(*state >> 24) - 127.5 + 0.5) / 64.0;
}

static void put(struct tensor *t, int64_t i, double x)
{
	float f = (float)x;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (t->dtype == DT_FP32) {
		((float *)t->at)[i] = f;
	} else if (t->dtype == DT_BF16) {
		((uint16_t *)t->at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
	} else {
		/* the nearest of 2^-10 steps of the binade, ties to even by rint */
		int exponent;
		frexp(x, &exponent);
		double step = ldexp(1.0, exponent < -13 ? -24 : exponent - 11), y = rint(x / step) * step;
		uint16_t h = x < 0 ? 0x8000 : 0;
		if (y != 0.0) {
			frexp(y, &exponent);
			h |= (uint16_t)(exponent < -13
						? (int)ldexp(fabs(y), 24)
						: (exponent + 14) << 10 | ((int)ldexp(fabs(y), 11 - exponent) & 1023));
		}
		((uint16_t *)t->at)[i] = h;
	}
}

static double get(const struct tensor *t, int64_t i)
{
	return t->dtype == DT_FP32   ? ((float *)t->at)[i]
	       : t->dtype == DT_BF16 ? bf16_to_float(((uint16_t *)t->at)[i])
	                             : half_to_float(((uint16_t *)t->at)[i]);
}

/* `skew` bytes beyond a multiple of 16. */
static struct tensor tensor_make(enum dtype d, int64_t n, size_t skew)
{
	struct tensor t = {d, n, rig_block_new((size_t)n * (d == DT_FP32 ? 4 : 2), skew), NULL,
		calloc((size_t)n + 1, sizeof(double))};
	t.at = rig_host(&t.block);
	memset(t.at, 0xff, t.block.bytes); /* not a number: what a kernel leaves is seen */
	return t;
}

static void tensor_fill(struct tensor *t, uint32_t *state, double scale)
{
	for (int64_t i = 0; i < t->n; i++) {
		put(t, i, scale * draw(state));
		t->exact[i] = get(t, i);
	}
}

static void tensor_free(struct tensor *t)
{
	rig_block_free(&t->block);
	free(t->exact);
}

/* Who computes. */
enum way { OWN_KERNEL, CUDNN };

#ifdef CUDA_RIG_ON_GPU
/* A role of this op alone, its arguments one buffer each. */
static enum status run_by_cudnn(const struct cuda_env *env, const struct op *op, struct tensor *t, size_t n,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	struct role role = {0};
	struct attention_plans *plans = NULL;
	struct cuda_env with = *env;
	char why[256];
	for (size_t i = 0; i < n; i++) {
		const struct buffer b = {.component = COMP_BUFFERS,
			.dtype = t[i].dtype,
			.bytes = t[i].block.bytes,
			.persistent = true};
		const struct view v = {.buffer = (int32_t)i};
		CU_ASSERT_FATAL(vec_push(&role.buffers, b) && vec_push(&role.args, v));
	}
	CU_ASSERT_FATAL(vec_push(&role.ops, *op));
	enum status st = attention_plans_create(&role, 0, &plans, why, e);
	if (!st && !attention_by_cudnn(plans, op))
		st = error_set(e, ST_RUN, "%s", why);
	if (!st) {
		struct rig_block scratch = rig_block_new(attention_workspace_B(plans), 0);
		rig_block_upload(&scratch);
		with.scratch = rig_device(&scratch);
		with.scratch_B = scratch.bytes;
		st = attention_run(plans, &with, op, arg, e);
		rig_wait();
		CU_ASSERT_TRUE(rig_block_download(&scratch));
		rig_block_free(&scratch);
	}
	attention_plans_destroy(plans);
	vec_free(&role.ops);
	vec_free(&role.args);
	vec_free(&role.buffers);
	return st;
}
#endif

static enum status run_by(enum way way, const struct cuda_env *env, const struct op *op, struct tensor *t, size_t n,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
#ifdef CUDA_RIG_ON_GPU
	if (way == CUDNN)
		return run_by_cudnn(env, op, t, n, arg, e);
#endif
	(void)way, (void)t, (void)n;
	return cuda_kernel_run(env, op, arg, e);
}

/* The op on all of them. */
static void compute(enum way way, const struct cuda_env *env, const struct op *op, struct tensor *t, size_t n,
	const struct cuda_arg arg[OP_MAX_ARGS])
{
	struct error e = {0};
	for (size_t i = 0; i < n; i++)
		rig_block_upload(&t[i].block);
	CU_ASSERT_EQUAL(run_by(way, env, op, t, n, arg, &e), ST_OK);
	if (e.status)
		fprintf(stderr, "%s\n", e.text);
	rig_wait();
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_TRUE(rig_block_download(&t[i].block));
}

/* Largest error over the largest value. */
static double error_of(const struct tensor *t)
{
	double worst = 0.0, largest = 1e-30;
	for (int64_t i = 0; i < t->n; i++) {
		double d = fabs(get(t, i) - t->exact[i]);
		worst = isnan(worst) || d <= worst ? worst : d; /* a NaN is the worst, and stays */
		largest = fmax(largest, fabs(t->exact[i]));
	}
	return worst / largest;
}

struct attention_case {
	int64_t b, H, K, s, D;
	unsigned flags;
	size_t skew;
	int64_t tensor_coord, heads;
};

static double limit_of(enum dtype d) { return d == DT_FP32 ? 1e-5 : d == DT_FP16 ? 4e-3 : 2e-2; }

static void check(const char *what, const struct attention_case *c, const struct tensor *t, enum dtype format)
{
	double error = error_of(t);
	if (!(error <= limit_of(format))) {
		fprintf(stderr, "%s [%ld %ld %ld %ld %ld] flags %x %s: error %g\n", what, (long)c->b, (long)c->H,
			(long)c->K, (long)c->s, (long)c->D, c->flags, dtype_name(format), error);
		CU_FAIL("error beyond the limit");
	}
}

enum { QKV, OUT, LSE, DOUT, DELTA, DQKV, TENSORS };

static void run_case(enum way way, const struct attention_case *c, enum dtype d, int64_t window)
{
	const int64_t tokens = c->b * c->s, width = (c->H + 2 * c->K) * c->D;
	const int64_t n[TENSORS] = {tokens * width, tokens * c->H * c->D, tokens * c->H, tokens * c->H * c->D,
		tokens * c->H, tokens * width};
	struct tensor t[TENSORS];
	struct cuda_arg forward[OP_MAX_ARGS] = {0}, backward[OP_MAX_ARGS] = {0};
	void *exact[OP_MAX_ARGS] = {0};
	uint32_t state = (uint32_t)(c->s * 31 + c->D);
	for (int i = 0; i < TENSORS; i++) {
		t[i] = tensor_make(i == LSE || i == DELTA ? DT_FP32 : d, n[i], c->skew);
		exact[i] = t[i].exact;
		backward[i] = (struct cuda_arg){rig_device(&t[i].block), t[i].dtype};
		if (i < 3)
			forward[i] = backward[i];
	}
	tensor_fill(&t[QKV], &state, 1.0);
	tensor_fill(&t[DOUT], &state, 1.0);
	struct op op = {.kind = OP_ATTENTION,
		.dtype = (uint8_t)d,
		.flags = (uint32_t)c->flags,
		.attn = {c->b, c->H, c->K, c->s, c->D, {window}}};
	struct cuda_env env = {.tensor_coord = c->tensor_coord, .heads = c->heads ? c->heads : c->H, .loss_scale = 1.0};
	struct host_env host = {.tensor_coord = env.tensor_coord, .heads = env.heads, .loss_scale = 1.0};
	struct error e = {0};
	CU_ASSERT_EQUAL(reference_run(&host, &op, exact, &e), ST_OK);
	compute(way, &env, &op, t, 3, forward);
	check("out", c, &t[OUT], d);
	check("lse", c, &t[LSE], DT_FP32);
	/* backward from what forward gave, rounded: the error is of this op alone */
	for (int i = OUT; i <= LSE; i++)
		for (int64_t j = 0; j < n[i]; j++)
			t[i].exact[j] = get(&t[i], j);
	op.kind = OP_ATTENTION_GRAD;
	CU_ASSERT_EQUAL(reference_run(&host, &op, exact, &e), ST_OK);
	compute(way, &env, &op, t, TENSORS, backward);
	check("delta", c, &t[DELTA], DT_FP32);
	check("dqkv", c, &t[DQKV], d);
	if (e.status)
		fprintf(stderr, "%s\n", e.text);
	for (int i = 0; i < TENSORS; i++)
		tensor_free(&t[i]);
}

static const enum dtype formats[] = {DT_FP32, DT_BF16, DT_FP16};

/* Sequences around the sizes of tiles; heads as they are, padded, not whole vectors, and addresses that are not
 * aligned. */
static const struct attention_case cases[] = {
	{1, 1, 1, 1, 32, OP_CAUSAL, 0, 0, 0},
	{1, 1, 1, 1, 64, 0, 0, 0, 0},
	{2, 4, 2, 31, 64, OP_CAUSAL, 0, 0, 0},
	{1, 2, 1, 33, 80, OP_CAUSAL, 0, 0, 0},
	{1, 2, 2, 65, 96, 0, 0, 0, 0},
	{2, 3, 1, 70, 128, OP_CAUSAL, 0, 0, 0},
	{1, 6, 2, 47, 32, OP_CAUSAL | OP_ALIBI, 0, 1, 12},
	{1, 3, 3, 47, 32, OP_ALIBI, 0, 0, 0},
	{1, 1, 1, 37, 160, OP_CAUSAL, 0, 0, 0},
	{1, 2, 1, 19, 256, 0, 0, 0, 0},
	{1, 2, 2, 45, 20, OP_CAUSAL, 0, 0, 0},
	{1, 2, 2, 35, 33, OP_CAUSAL, 0, 0, 0},
	{1, 2, 1, 40, 64, OP_CAUSAL, 4, 0, 0},
	{0, 2, 1, 33, 64, OP_CAUSAL, 0, 0, 0},
};
#define N_CASES COUNT(cases)

static void run_cases(const struct attention_case *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t f = 0; f < COUNT(formats); f++)
			run_case(OWN_KERNEL, &c[i], formats[f], 0);
}

/* Windows shorter than a tile, of several, and all but of the sequence: of a warp's queries some have no key in the
 * first tile that it meets. */
static void run_windows(int64_t s)
{
	static const int64_t windows[] = {1, 7, 16, 40, 100};
	for (size_t w = 0; w < COUNT(windows); w++) {
		const struct attention_case c = {1, 2, 1, s, w % 2 ? 64 : 32, OP_CAUSAL | (w % 2 ? OP_ALIBI : 0u), 0, 0,
			0};
		if (windows[w] < s)
			run_case(OWN_KERNEL, &c, formats[w % 3], windows[w]);
	}
}

static void test_one_thread(void)
{
	static const struct attention_case longer[] = {{1, 2, 1, 257, 64, OP_CAUSAL, 0, 0, 0},
		{1, 1, 1, 200, 128, 0, 0, 0, 0}};
	static const struct attention_case longest[] = {{1, 1, 1, 1023, 32, OP_CAUSAL, 0, 0, 0},
		{1, 1, 1, 1025, 32, OP_CAUSAL, 0, 0, 0}};
	rig_real_threads(false);
	run_cases(cases, N_CASES);
	run_cases(longer, 2);
	for (size_t i = 0; i < 2; i++)
		run_case(OWN_KERNEL, &longest[i], DT_BF16, 0);
	run_windows(33);
	run_windows(300);
}

static bool one_thread_asked(void)
{
	const char *threads = getenv("STEPSIM_TWIN_THREADS");
	return threads && strcmp(threads, "one") == 0;
}

static void test_real_threads(void)
{
	static const struct attention_case longer[] = {{1, 2, 1, 150, 32, OP_CAUSAL, 0, 0, 0}};
	if (one_thread_asked())
		return;
	rig_real_threads(true);
	run_cases(cases, N_CASES);
	run_cases(longer, 1);
	run_windows(130);
	rig_real_threads(false);
}

/* Compute capability 8.6, 8.9 and 12.0: blocks of fewer warps, from 7 down to a single one, and sequences around their
 * tiles. */
static void test_little_shared_memory(void)
{
	static const struct attention_case some[] = {{1, 2, 1, 113, 128, OP_CAUSAL, 0, 0, 0},
		{1, 1, 1, 33, 256, OP_CAUSAL, 0, 0, 0}};
	if (RIG_ON_GPU || one_thread_asked())
		return;
	rig_real_threads(true);
	rig_shared_limit(99 << 10);
	run_cases(some, COUNT(some));
	rig_shared_limit(227 << 10);
	rig_real_threads(false);
}

/* Graphs of every kind: heads as they are, shared by some and by all, causal or not, odd sequences, dims that are no
 * power of two. A cuDNN before 9.10 masks with the lowest number. */
static void test_cudnn(void)
{
	static const struct attention_case some[] = {{2, 4, 4, 64, 64, OP_CAUSAL, 0, 0, 0},
		{1, 2, 2, 128, 64, 0, 0, 0, 0}, {2, 6, 2, 100, 128, OP_CAUSAL, 0, 0, 0}, {1, 4, 1, 65, 80, 0, 0, 0, 0},
		{1, 4, 1, 33, 96, OP_CAUSAL, 0, 0, 0}, {1, 2, 1, 48, 256, OP_CAUSAL, 0, 0, 0},
		{2, 2, 2, 17, 16, OP_CAUSAL, 0, 0, 0}};
	if (!RIG_ON_GPU || getenv("STEPSIM_PTX")) /* the interpreter of PTX executes kernels of ours alone */
		return;
	for (size_t i = 0; i < COUNT(some); i++)
		for (size_t f = 1; f < COUNT(formats); f++)
			run_case(CUDNN, &some[i], formats[f], 0);
	setenv("STEPSIM_DOUBLE_CUDNN", "90800", 1);
	run_case(CUDNN, &some[0], DT_BF16, 0);
	unsetenv("STEPSIM_DOUBLE_CUDNN");
}

/* Compares the gradient with finite differences of a loss, the sum of out x dout, over single elements of qkv. */
static void test_gradients_are_differences(void)
{
	enum { B = 1, H = 2, K = 1, S = 5, D = 32, WIDTH = (H + 2 * K) * D };
	static const int64_t n[TENSORS] = {B * S * WIDTH, B * S * H * D, B * H * S, B * S * H * D, B * H * S,
		B * S * WIDTH};
	struct tensor t[TENSORS];
	struct cuda_arg arg[OP_MAX_ARGS] = {{NULL, DT_COUNT}};
	uint32_t state = 7;
	for (int i = 0; i < TENSORS; i++) {
		t[i] = tensor_make(DT_FP32, n[i], 0);
		arg[i] = (struct cuda_arg){rig_device(&t[i].block), DT_FP32};
	}
	tensor_fill(&t[QKV], &state, 1.0);
	tensor_fill(&t[DOUT], &state, 1.0);
	float *qkv = t[QKV].at, *out = t[OUT].at, *dout = t[DOUT].at, *dqkv = t[DQKV].at;
	struct cuda_env env = {.heads = H};
	struct op op = {.kind = OP_ATTENTION, .dtype = DT_FP32, .flags = OP_CAUSAL | OP_ALIBI, .attn = {B, H, K, S, D}};
	compute(OWN_KERNEL, &env, &op, t, TENSORS, arg);
	op.kind = OP_ATTENTION_GRAD;
	compute(OWN_KERNEL, &env, &op, t, TENSORS, arg);
	op.kind = OP_ATTENTION;
	for (int64_t i = 0; i < n[QKV]; i += 3) {
		const float x = qkv[i], step = 1.0f / 64.0f;
		double loss[2];
		for (int side = 0; side < 2; side++) {
			qkv[i] = side ? x + step : x - step;
			loss[side] = 0.0;
			compute(OWN_KERNEL, &env, &op, t, TENSORS, arg);
			for (int64_t j = 0; j < n[OUT]; j++)
				loss[side] += (double)out[j] * (double)dout[j];
		}
		qkv[i] = x;
		CU_ASSERT_DOUBLE_EQUAL((loss[1] - loss[0]) / (2.0 * (double)step), dqkv[i], 2e-3);
	}
	for (int i = 0; i < TENSORS; i++)
		tensor_free(&t[i]);
}

static void test_refusals(void)
{
	float x[4] = {0};
	struct cuda_env env = {.heads = 1};
	struct cuda_arg arg[OP_MAX_ARGS] = {{x, DT_FP32}, {x, DT_FP32}, {x, DT_FP32}};
	struct op op = {.kind = OP_ATTENTION, .attn = {1, 1, 1, 1, 257}};
	struct error e = {0};
	CU_ASSERT_EQUAL(cuda_kernel_run(&env, &op, arg, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "flash attention: no kernel for heads of 257 values: 1 to 256");
	op.attn.head_dim = 1;
	op.attn.heads = 3;
	op.attn.kv_heads = 2;
	e.status = ST_OK;
	CU_ASSERT_EQUAL(cuda_kernel_run(&env, &op, arg, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "flash attention: 3 query heads do not share 2 key heads evenly");
	op.attn.heads = op.attn.kv_heads = 1;
	arg[0].dtype = arg[1].dtype = DT_FP8;
	e.status = ST_OK;
	CU_ASSERT_EQUAL(cuda_kernel_run(&env, &op, arg, &e), ST_RUN);
	CU_ASSERT_STRING_EQUAL(e.text, "no kernel for format fp8");
	arg[0].dtype = DT_BF16;
	e.status = ST_OK;
	CU_ASSERT_EQUAL(cuda_kernel_run(&env, &op, arg, &e), ST_RUN);
	CU_ASSERT(strstr(e.text, "as fp8 beside") != NULL);
	op.attn.seq = 0; /* nothing to do */
	arg[1].dtype = DT_BF16;
	CU_ASSERT_EQUAL(cuda_kernel_run(&env, &op, arg, NULL), ST_OK);
}

UNIT_MAIN("cuda attention", {"one thread a block", test_one_thread}, {"real threads", test_real_threads},
	{"little shared memory", test_little_shared_memory}, {"cuDNN", test_cudnn},
	{"gradients are differences", test_gradients_are_differences}, {"refusals", test_refusals})
