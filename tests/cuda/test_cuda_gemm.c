/* The room's products against the reference, on whatever libraries stand behind (the doubles, or a GPU's own): formats,
 * turns, bias, accumulation, addresses of any alignment, naive attention's with shared heads. Sentinels stand behind
 * every C. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exec/cuda/check.h"
#include "exec/cuda/gemm.h"
#include "exec/host/reference.h"
#include "tests/unit/harness.h"

#define GUARD 16 /* elements behind each operand */

/* ---- numbers ---- */

static uint64_t state = 7;

static double random_number(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (double)(int32_t)(state >> 32) / 2147483648.0;
}

static size_t size_of(enum dtype d) { return (size_t)dtype_bytes(d); }

/* Rounds to nearest even; the value that is stored comes back. fp8: E4M3, halves only, which it holds exactly. */
static double store(enum dtype d, void *at, double x)
{
	float f = (float)x;
	uint32_t bits;
	_Float16 h = (_Float16)f;
	switch (d) {
	case DT_BF16:
		memcpy(&bits, &f, 4);
		bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
		*(uint16_t *)at = (uint16_t)(bits >> 16);
		memcpy(&f, &bits, 4);
		return (double)f;
	case DT_FP16: memcpy(at, &h, 2); return (double)(float)h;
	case DT_FP8:
		*(uint8_t *)at = x < -0.25 ? 0xb8 : x > 0.25 ? 0x38 : 0x30;
		return x < -0.25 ? -1.0 : x > 0.25 ? 1.0 : 0.5;
	default: memcpy(at, &f, 4); return (double)f;
	}
}

static double load(enum dtype d, const void *at)
{
	float f;
	uint32_t bits;
	_Float16 h;
	switch (d) {
	case DT_BF16:
		bits = (uint32_t)(*(const uint16_t *)at) << 16;
		memcpy(&f, &bits, 4);
		return (double)f;
	case DT_FP16: memcpy(&h, at, 2); return (double)(float)h;
	default: memcpy(&f, at, 4); return (double)f;
	}
}

/* Unit roundoff of what is stored, and of what tf32's operands are rounded to (10 bits of mantissa). */
static double roundoff(enum dtype d)
{
	return d == DT_BF16 ? ldexp(1.0, -8) : d == DT_FP16 || d == DT_TF32 ? ldexp(1.0, -11) : ldexp(1.0, -23);
}

/* ---- an op on both sides ---- */

struct side {
	struct role role; /* one op, a buffer an argument */
	struct op op;
	double *ref[OP_MAX_ARGS];
	unsigned char *host[OP_MAX_ARGS], *device[OP_MAX_ARGS];
	struct cuda_arg arg[OP_MAX_ARGS];
	size_t n[OP_MAX_ARGS], shift[OP_MAX_ARGS];
};

static struct error error;

static void open_side(struct side *s, struct op op)
{
	memset(s, 0, sizeof *s);
	error = (struct error){ST_OK, ""};
	s->op = op;
	CU_ASSERT_FATAL(vec_push(&s->role.ops, op));
}

/* An argument of n elements that begins `shift` elements behind an aligned address; n 0: absent. Filled with random
 * numbers. */
static void argument(struct side *s, int i, enum dtype d, size_t n, size_t shift)
{
	struct view v = {.buffer = n ? (int32_t)s->role.buffers.n : -1, .offset_B = shift * size_of(d)};
	CU_ASSERT_FATAL(vec_push(&s->role.args, v));
	if (n == 0)
		return;
	struct buffer b = {.component = COMP_BUFFERS,
		.dtype = d,
		.bytes = (n + shift + GUARD) * size_of(d),
		.persistent = true};
	CU_ASSERT_FATAL(vec_push(&s->role.buffers, b));
	s->n[i] = n;
	s->shift[i] = shift;
	s->ref[i] = calloc(n, sizeof(double));
	s->host[i] = calloc(1, b.bytes);
	CU_ASSERT_FATAL(s->ref[i] && s->host[i]);
	memset(s->host[i], 0x5a, b.bytes);
	for (size_t k = 0; k < n; k++)
		s->ref[i][k] = store(d, s->host[i] + (shift + k) * size_of(d), random_number());
	CU_ASSERT_EQUAL_FATAL(CUDA_CHECK(cudaMalloc((void **)&s->device[i], b.bytes), &error), ST_OK);
	CU_ASSERT_EQUAL_FATAL(CUDA_CHECK(cudaMemcpy(s->device[i], s->host[i], b.bytes, cudaMemcpyHostToDevice), &error),
		ST_OK);
	s->arg[i] = (struct cuda_arg){s->device[i] + shift * size_of(d), d};
}

static void close_side(struct side *s)
{
	for (int i = 0; i < OP_MAX_ARGS; i++) {
		free(s->ref[i]);
		free(s->host[i]);
		cudaFree(s->device[i]);
	}
	vec_free(&s->role.ops);
	vec_free(&s->role.args);
	vec_free(&s->role.buffers);
}

static void shown(const char *what, const struct side *s)
{
	char name[OP_NAME_MAX];
	if (error.status)
		printf("%s: %s: %s\n", what, op_name(&s->op, name), error.text);
}

/* Against sums of `terms` products of numbers below 1. */
static void compare(const struct side *s, int i, double terms)
{
	enum dtype d = s->arg[i].dtype;
	size_t bytes = (s->n[i] + s->shift[i] + GUARD) * size_of(d);
	double worst = 0.0;
	unsigned char *got = malloc(bytes);
	CU_ASSERT_FATAL(got != NULL);
	CU_ASSERT_EQUAL(CUDA_CHECK(cudaMemcpy(got, s->device[i], bytes, cudaMemcpyDeviceToHost), &error), ST_OK);
	for (size_t k = 0; k < s->n[i]; k++) {
		double x = load(d, got + (s->shift[i] + k) * size_of(d));
		worst = fmax(worst, isfinite(x) ? fabs(x - s->ref[i][k]) : INFINITY);
	}
	double limit = (roundoff(d) + 2.0 * roundoff(s->op.dtype == DT_TF32 ? DT_TF32 : DT_FP32)) * (2.0 + terms);
	CU_ASSERT(worst <= limit);
	if (!(worst <= limit)) {
		char name[OP_NAME_MAX];
		printf("%s, flags %x, in %s: argument %d off by %g, allowed %g\n", op_name(&s->op, name), s->op.flags,
			dtype_name(s->arg[0].dtype), i, worst, limit);
	}
	CU_ASSERT_EQUAL(memcmp(got, s->host[i], s->shift[i] * size_of(d)), 0);
	CU_ASSERT_EQUAL(memcmp(got + (s->n[i] + s->shift[i]) * size_of(d),
				s->host[i] + (s->n[i] + s->shift[i]) * size_of(d), GUARD * size_of(d)),
		0);
	free(got);
}

/* Runs the op twice the same way where it does not accumulate: a workspace's remains must not matter. */
static enum status run(struct side *s, bool tune)
{
	struct gemm_plans *g = NULL;
	cudaStream_t stream = NULL;
	void *scratch = NULL;
	enum status st;
	if ((st = gemm_plans_create(&s->role, 0, tune, &g, &error)) ||
		(st = CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), &error)) ||
		(st = CUDA_CHECK(cudaMalloc(&scratch, GEMM_WORKSPACE_B), &error)))
		goto out;
	struct cuda_env env = {.stream = stream, .scratch = scratch, .scratch_B = GEMM_WORKSPACE_B};
	for (int i = 0; i < (s->op.flags & OP_ACCUMULATE ? 1 : 2) && !st; i++)
		st = op_is_product(&s->op) ? gemm_run(g, &env, &s->op, s->arg, &error)
		                           : gemm_attention_run(g, &env, &s->op, s->arg, &error);
	if (!st)
		st = CUDA_CHECK(cudaStreamSynchronize(stream), &error);
	struct host_env host = {.heads = s->op.attn.heads, .step = 1};
	void *ref[OP_MAX_ARGS];
	for (int i = 0; i < OP_MAX_ARGS; i++)
		ref[i] = s->ref[i];
	if (!st)
		st = reference_run(&host, &s->op, ref, &error);
out:
	gemm_plans_destroy(g);
	cudaFree(scratch);
	if (stream)
		cudaStreamDestroy(stream);
	return st;
}

/* ---- GEMM ---- */

struct shape {
	int64_t m, n, k;
};

static struct op gemm_op(enum dtype how, enum dtype out, unsigned flags, struct shape z)
{
	return (struct op){.kind = OP_GEMM,
		.dtype = (uint8_t)how,
		.out_dtype = (uint8_t)out,
		.flags = (uint32_t)flags,
		.layer = -1,
		.bucket = -1,
		.what = "test",
		.gemm = {z.m, z.n, z.k}};
}

static void one_gemm(enum dtype how, enum dtype out, unsigned flags, struct shape z, bool bias, size_t shift, bool tune)
{
	struct side s;
	const enum dtype in = how == DT_TF32 ? DT_FP32 : how;
	open_side(&s, gemm_op(how, out, flags, z));
	argument(&s, 0, in, (size_t)(z.m * z.k), shift);
	argument(&s, 1, in, (size_t)(z.n * z.k), shift);
	argument(&s, 2, out, bias ? (size_t)z.n : 0, shift);
	argument(&s, 3, out, (size_t)(z.m * z.n), shift);
	CU_ASSERT_EQUAL(run(&s, tune), ST_OK);
	shown("gemm", &s);
	if (!error.status)
		compare(&s, 3, (double)z.k);
	close_side(&s);
}

static const struct shape shapes[] = {{1, 1, 1}, {5, 7, 3}, {33, 17, 31}, {64, 48, 32}};
static const unsigned turns[] = {0, OP_TRANS_A, OP_TRANS_B, OP_TRANS_A | OP_TRANS_B};

static void test_turns(void)
{
	static const enum dtype how[] = {DT_FP32, DT_TF32, DT_BF16, DT_FP16};
	for (size_t f = 0; f < 4; f++)
		for (size_t z = 0; z < COUNT(shapes); z++)
			for (size_t t = 0; t < 4; t++)
				one_gemm(how[f], how[f] == DT_TF32 ? DT_FP32 : how[f], turns[t], shapes[z], false, 0,
					false);
}

static void test_bias(void)
{
	for (size_t z = 0; z < COUNT(shapes); z++) {
		one_gemm(DT_FP32, DT_FP32, OP_TRANS_B, shapes[z], true, 0, false);
		one_gemm(DT_BF16, DT_BF16, OP_TRANS_B, shapes[z], true, 0, false);
		one_gemm(DT_FP16, DT_FP16, OP_TRANS_B, shapes[z], true, 0, false);
	}
}

static void test_accumulate(void)
{
	for (size_t z = 0; z < COUNT(shapes); z++) {
		one_gemm(DT_FP32, DT_FP32, OP_TRANS_A | OP_ACCUMULATE, shapes[z], false, 0, false);
		one_gemm(DT_BF16, DT_BF16, OP_TRANS_A | OP_ACCUMULATE, shapes[z], false, 0, false);
		one_gemm(DT_BF16, DT_FP32, OP_TRANS_A | OP_ACCUMULATE, shapes[z], false, 0, false);
		one_gemm(DT_FP16, DT_FP32, OP_TRANS_A, shapes[z], false, 0, false);
	}
}

/* Parameters lie one after the other in their bucket. */
static void test_alignment(void)
{
	for (size_t shift = 1; shift <= 8; shift++) {
		one_gemm(DT_BF16, DT_BF16, OP_TRANS_B, shapes[3], true, shift, false);
		one_gemm(DT_FP32, DT_FP32, OP_TRANS_A, shapes[2], false, shift, false);
	}
}

/* cuBLASLt multiplies fp8 from compute capability 8.9 on. */
static void test_fp8(void)
{
	int major = 0, minor = 0;
	CU_ASSERT_EQUAL(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), cudaSuccess);
	CU_ASSERT_EQUAL(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), cudaSuccess);
	if (10 * major + minor < 89) {
		printf("test_cuda_gemm: fp8 left out: compute capability %d.%d has none\n", major, minor);
		return;
	}
	one_gemm(DT_FP8, DT_BF16, OP_TRANS_B, (struct shape){32, 48, 64}, false, 0, false);
	one_gemm(DT_FP8, DT_BF16, OP_TRANS_B, (struct shape){16, 16, 16}, true, 0, false);
}

static void test_tuned(void)
{
	one_gemm(DT_BF16, DT_BF16, OP_TRANS_B, shapes[3], true, 0, true);
	one_gemm(DT_FP32, DT_FP32, OP_TRANS_A | OP_ACCUMULATE, shapes[2], false, 3, true);
}

static void test_refused(void)
{
	struct side s;
	open_side(&s, gemm_op(DT_BF16, DT_BF16, OP_TRANS_B, shapes[3]));
	argument(&s, 0, DT_INT32, (size_t)(shapes[3].m * shapes[3].k), 0);
	argument(&s, 1, DT_BF16, (size_t)(shapes[3].n * shapes[3].k), 0);
	argument(&s, 2, DT_BF16, 0, 0);
	argument(&s, 3, DT_BF16, (size_t)(shapes[3].m * shapes[3].n), 0);
	CU_ASSERT_EQUAL(run(&s, false), ST_RUN);
	CU_ASSERT(strstr(error.text, "no products in int32") != NULL && strstr(error.text, "test") != NULL);
	close_side(&s);
}

/* ---- the products of several experts ---- */

static void one_group(enum dtype how, enum dtype out, unsigned flags, struct shape z, int64_t groups, size_t shift)
{
	struct side s;
	struct op op = gemm_op(how, out, flags, z);
	op.kind = OP_GROUPED_GEMM;
	op.gemm.groups = groups;
	open_side(&s, op);
	argument(&s, 0, how, (size_t)(groups * z.m * z.k), shift);
	argument(&s, 1, how, (size_t)(groups * z.n * z.k), shift);
	argument(&s, 2, out, (size_t)(groups * z.m * z.n), shift);
	CU_ASSERT_EQUAL(run(&s, false), ST_OK);
	shown("grouped", &s);
	if (!error.status)
		compare(&s, 2, (double)z.k);
	close_side(&s);
}

static void test_groups(void)
{
	for (size_t z = 0; z < COUNT(shapes); z++)
		for (int64_t groups = 1; groups <= 3; groups++)
			for (size_t t = 0; t < 3; t++) { /* forward, the input's gradient, the weights' */
				one_group(DT_FP32, DT_FP32, turns[t], shapes[z], groups, 0);
				one_group(DT_BF16, DT_BF16, turns[t], shapes[z], groups, 1);
				one_group(DT_BF16, DT_FP32, turns[t] | OP_ACCUMULATE, shapes[z], groups, 0);
			}
}

/* ---- naive attention ---- */

struct heads {
	int64_t b, H, K, s, D;
};
static const struct heads all_heads[] = {{1, 1, 1, 1, 1}, {2, 4, 2, 5, 8}, {1, 4, 4, 7, 8}, {3, 2, 1, 6, 4},
	{3, 6, 2, 9, 16}};

/* ranks > 1: with the keys of so many, in rows of their own. */
static void one_attention(enum op_kind kind, enum dtype d, const struct heads *h, int64_t ranks)
{
	const int64_t keys = ranks * h->s;
	const size_t square = (size_t)(h->b * h->H * h->s * keys),
		     qkv = (size_t)(h->b * h->s * (h->H + 2 * h->K) * h->D), out = (size_t)(h->b * h->s * h->H * h->D),
		     all = (size_t)(h->b * keys * 2 * h->K * h->D);
	const size_t kv = ranks > 1 ? all : qkv;
	const struct {
		int n;
		size_t of[5];
	} sizes[OP_KIND_COUNT] = {[OP_ATTN_SCORES] = {ranks > 1 ? 3 : 2, {qkv, square, all}},
		[OP_ATTN_VALUES] = {3, {square, kv, out}},
		[OP_ATTN_VALUES_GRAD] = {5, {square, kv, out, square, kv}},
		[OP_ATTN_SCORES_GRAD] = {ranks > 1 ? 5 : 3, {square, qkv, qkv, all, all}}};
	struct side s;
	open_side(&s, (struct op){.kind = (uint8_t)kind,
			      .dtype = (uint8_t)d,
			      .out_dtype = (uint8_t)d,
			      .layer = -1,
			      .bucket = -1,
			      .what = "attention",
			      .attn = {h->b, h->H, h->K, h->s, h->D, {ranks > 1 ? keys : 0}}});
	for (int i = 0; i < sizes[kind].n; i++)
		argument(&s, i, d, sizes[kind].of[i], 0);
	CU_ASSERT_EQUAL(run(&s, false), ST_OK);
	shown("attention", &s);
	/* of shared heads each one's sum is rounded before the next is added */
	double terms = (double)(keys > h->D ? keys : h->D) * (double)(h->H / h->K + 1);
	for (int i = 0; i < sizes[kind].n && !error.status; i++)
		compare(&s, i, terms);
	close_side(&s);
}

static void test_attention(void)
{
	static const enum op_kind kinds[] = {OP_ATTN_SCORES, OP_ATTN_VALUES, OP_ATTN_VALUES_GRAD, OP_ATTN_SCORES_GRAD};
	for (size_t k = 0; k < 4; k++)
		for (size_t h = 0; h < COUNT(all_heads); h++) {
			for (int64_t ranks = 1; ranks <= 3; ranks += 2) {
				one_attention(kinds[k], DT_FP32, &all_heads[h], ranks);
				one_attention(kinds[k], DT_BF16, &all_heads[h], ranks);
			}
		}
}

UNIT_MAIN("cuda gemm", {"turns", test_turns}, {"bias", test_bias}, {"accumulate", test_accumulate},
	{"alignment", test_alignment}, {"fp8", test_fp8}, {"tuned", test_tuned}, {"refused", test_refused},
	{"experts", test_groups}, {"attention", test_attention})
