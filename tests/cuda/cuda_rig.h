/* An op with its arguments twice: in the stored formats for a kernel of exec/cuda, and in double, rounded to the same
 * values, for the reference. Guards of known bytes stand before and behind each buffer of the kernel's, scratch
 * included (rig_memory.h).
 *
 *   struct cuda_rig r;
 *   cuda_rig_open(&r, cuda_rig_op(OP_NORM, OP_RMS, 0, DT_BF16, DT_BF16, 7, 33, 0, 0, 0), (struct
 * cuda_rig_options){.absent = 1u << 2}); cuda_rig_check(&r); cuda_rig_close(&r);
 *
 * Runs on the kernels' twins, in host memory; with CUDA_RIG_ON_GPU defined (tests/gpu in the Makefile) on the device,
 * linked with the kernels themselves.
 */
#ifndef STEPSIM_TESTS_CUDA_RIG_H
#define STEPSIM_TESTS_CUDA_RIG_H

#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "exec/cuda/kernels.h"
#include "exec/host/reference.h"
#include "step/program.h"
#include "tests/cuda/rig_memory.h"
#include "tests/unit/harness.h"

#define RIG_FAILURES_SHOWN 20

struct cuda_rig_options {
	unsigned absent;           /* bit mask of arguments that stay away */
	size_t shift;              /* elements by which every buffer begins behind an aligned address */
	const enum dtype *formats; /* by argument, DT_COUNT: as the op says; NULL: all as the op says */
	const char *in_place[2];   /* names: the second argument is the same memory as the first */
};

struct cuda_rig {
	struct op op;
	struct host_env env; /* without pool and scratch */
	struct cuda_env cuda;
	int n_args;
	bool absent[OP_MAX_ARGS]; /* has no memory of its own */
	int same_as[OP_MAX_ARGS]; /* its memory is that of this argument; -1 */
	enum dtype format[OP_MAX_ARGS];
	size_t n[OP_MAX_ARGS], row[OP_MAX_ARGS]; /* elements; of a row, whose largest value errors are relative to */
	double limit[OP_MAX_ARGS];               /* of the relative error, by the stored format */
	double terms; /* least size of what errors are relative to: that of the terms of sums. 1, as the arguments */
	struct rig_block block[OP_MAX_ARGS], scratch, flag, step;
	void *ref[OP_MAX_ARGS]; /* double, or int32; NULL: absent */
};

/* ---- numbers ---- */

static uint64_t cuda_rig_state = 88172645463325252u;

/* xorshift64 (Marsaglia 2003), in [-1, 1) */
static inline double cuda_rig_random(void)
{
	cuda_rig_state ^= cuda_rig_state << 13;
	cuda_rig_state ^= cuda_rig_state >> 7;
	cuda_rig_state ^= cuda_rig_state << 17;
	return (double)(cuda_rig_state >> 11) / 9007199254740992.0 * 2.0 - 1.0;
}

static inline size_t rig_size(enum dtype d) { return d == DT_BF16 || d == DT_FP16 ? 2 : 4; }

static inline void rig_store(enum dtype d, void *at, size_t i, double x)
{
	float f = (float)x;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (d == DT_BF16)
		((uint16_t *)at)[i] = (uint16_t)(f != f ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
	else if (d == DT_FP16)
		((_Float16 *)at)[i] = (_Float16)f;
	else if (d == DT_INT32)
		((int32_t *)at)[i] = (int32_t)x;
	else
		((float *)at)[i] = f;
}

static inline double rig_load(enum dtype d, const void *at, size_t i)
{
	if (d == DT_FP16)
		return (double)((const _Float16 *)at)[i];
	if (d == DT_INT32)
		return (double)((const int32_t *)at)[i];
	if (d != DT_BF16)
		return (double)((const float *)at)[i];
	uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

/* ---- the op ---- */

static inline struct op cuda_rig_op(enum op_kind kind, unsigned flags, int variant, enum dtype dtype,
	enum dtype out_dtype, int64_t d0, int64_t d1, int64_t d2, int64_t d3, int64_t d4)
{
	return (struct op){.kind = (uint8_t)kind,
		.dtype = (uint8_t)dtype,
		.out_dtype = (uint8_t)out_dtype,
		.flags = (uint32_t)flags,
		.mlp = (uint8_t)(kind == OP_OPTIMIZER ? 0 : variant),
		.optimizer = (uint8_t)(kind == OP_OPTIMIZER ? variant : 0),
		.d = {d0, d1, d2, d3, d4}};
}

/* The op's own format of an argument, from what its size depends on. */
static inline enum dtype rig_format_of(const struct op *op, int a)
{
	if (op->kind == OP_COPY || op_arg_dtype(op, a) == DT_INT32)
		return DT_INT32;
	struct op probe = *op;
	for (int i = 0; i < OP_MAX_DIMS; i++)
		probe.d[i] = 8;
	uint64_t bytes[2][2];
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++) {
			probe.dtype = i ? DT_BF16 : DT_FP32;
			probe.out_dtype = j ? DT_BF16 : DT_FP32;
			bytes[i][j] = op_arg_bytes(&probe, a, 1);
		}
	return bytes[1][0] < bytes[0][0]   ? (enum dtype)op->dtype
	       : bytes[0][1] < bytes[0][0] ? (enum dtype)op->out_dtype
	                                   : DT_FP32;
}

static inline size_t rig_elements(const struct op *op, int a)
{
	struct op probe = *op;
	probe.dtype = probe.out_dtype = DT_FP32;
	return op_arg_bytes(&probe, a, 1) / 4;
}

/* One value for each row or position has errors of its own; of the others a row of columns, or a head. */
static inline size_t rig_row(const struct op *op, int a)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	static const char *const single[] = {"stats", "max", "sums", "lse", "delta", "loss", "gates", "dgates"};
	for (size_t i = 0; i < COUNT(single); i++)
		if (!strcmp(info->arg[a].name, single[i]))
			return 1;
	int64_t row = info->n_dims == 5 ? op->d[4] : info->n_dims >= 2 ? op->d[1] : 64;
	return row > 0 ? (size_t)row : 1;
}

static inline double cuda_rig_limit(enum dtype d) { return d == DT_BF16 ? 1.6e-2 : d == DT_FP16 ? 2e-3 : 1e-5; }

/* The reference's value becomes the kernel's, rounded; then both hold the same number. */
static inline void cuda_rig_sync(struct cuda_rig *r, int a)
{
	if (r->absent[a])
		return;
	void *at = rig_host(&r->block[a]);
	if (r->format[a] == DT_INT32) {
		memcpy(at, r->ref[a], r->n[a] * sizeof(int32_t));
		return;
	}
	for (size_t i = 0; i < r->n[a]; i++) {
		rig_store(r->format[a], at, i, ((double *)r->ref[a])[i]);
		((double *)r->ref[a])[i] = rig_load(r->format[a], at, i);
	}
}

static inline int rig_arg_of(const struct op *op, const char *name)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	for (int a = 0; a < info->n_args; a++)
		if (!strcmp(info->arg[a].name, name))
			return a;
	abort();
}

static inline int cuda_rig_arg(const struct cuda_rig *r, const char *name) { return rig_arg_of(&r->op, name); }

/* Opens a rig. Arguments that are only written begin as NaN, ids as zero, all others random in [-1, 1). */
static inline void cuda_rig_open(struct cuda_rig *r, struct op op, struct cuda_rig_options o)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op.kind);
	*r = (struct cuda_rig){.op = op,
		.env = {.heads = 12, .loss_scale = 0.125, .step = 3},
		.n_args = info->n_args,
		.terms = 1.0};
	r->cuda = (struct cuda_env){.heads = r->env.heads, .loss_scale = r->env.loss_scale, .sms = 3, .op = 7};
	for (int a = 0; a < r->n_args; a++) {
		r->same_as[a] = o.in_place[1] && a == rig_arg_of(&op, o.in_place[1]) ? rig_arg_of(&op, o.in_place[0])
		                                                                     : -1;
		r->absent[a] = (o.absent >> a & 1) || r->same_as[a] >= 0;
		if (r->absent[a])
			continue;
		r->n[a] = rig_elements(&op, a);
		r->row[a] = rig_row(&op, a);
		r->format[a] = o.formats && o.formats[a] != DT_COUNT ? o.formats[a] : rig_format_of(&op, a);
		r->limit[a] = cuda_rig_limit(r->format[a]);
		r->block[a] = rig_block_new(r->n[a] * rig_size(r->format[a]), o.shift * rig_size(r->format[a]));
		r->ref[a] = rig_memory(r->n[a] * sizeof(double));
		for (size_t i = 0; i < r->n[a]; i++) {
			if (r->format[a] == DT_INT32)
				((int32_t *)r->ref[a])[i] = 0;
			else
				((double *)r->ref[a])[i] = op_access(&op, a) == ACC_W ? (double)NAN : cuda_rig_random();
		}
		cuda_rig_sync(r, a);
	}
	for (int a = 0; a < r->n_args; a++)
		if (r->same_as[a] >= 0) {
			r->ref[a] = r->ref[r->same_as[a]];
			r->format[a] = r->format[r->same_as[a]];
		}
}

static inline void cuda_rig_close(struct cuda_rig *r)
{
	for (int a = 0; a < r->n_args; a++) {
		rig_block_free(&r->block[a]);
		if (r->same_as[a] < 0)
			free(r->ref[a]);
	}
	rig_block_free(&r->scratch);
	rig_block_free(&r->flag);
	rig_block_free(&r->step);
}

/* Random ids in [low, high) for an argument of tokens or targets. */
static inline void cuda_rig_ids(struct cuda_rig *r, int a, int64_t low, int64_t high)
{
	for (size_t i = 0; i < r->n[a]; i++)
		((int32_t *)r->ref[a])[i] = (int32_t)(low + (int64_t)((cuda_rig_random() + 1.0) / 2.0 *
								      (double)(high - low)));
	cuda_rig_sync(r, a);
}

/* The kernel, once, on what `block` holds; its results and the flag stand in `block` then. */
static inline enum status cuda_rig_run(struct cuda_rig *r, struct error *e)
{
	struct cuda_arg arg[OP_MAX_ARGS] = {{NULL, DT_COUNT}};
	struct rig_block *const extra[] = {&r->scratch, &r->flag, &r->step};
	for (size_t i = 0; i < 3; i++)
		rig_block_free(extra[i]);
	r->scratch = rig_block_new(cuda_scratch_B(&r->op), 0);
	r->flag = rig_block_new(sizeof(int32_t), 0);
	r->step = rig_block_new(sizeof(int64_t), 0);
	*(int32_t *)rig_host(&r->flag) = 0;
	*(int64_t *)rig_host(&r->step) = r->env.step;
	memset(rig_host(&r->scratch), 0xFF, r->scratch.bytes); /* NaN in every format */
	r->cuda.scratch = rig_device(&r->scratch);
	r->cuda.scratch_B = r->scratch.bytes;
	r->cuda.flag = rig_device(&r->flag);
	r->cuda.step = rig_device(&r->step);
	r->cuda.heads = r->env.heads;
	r->cuda.cut = r->env.cut;
	r->cuda.tensor_coord = r->env.tensor_coord;
	r->cuda.loss_scale = r->env.loss_scale;
	for (size_t i = 0; i < 3; i++)
		rig_block_upload(extra[i]);
	for (int a = 0; a < r->n_args; a++) {
		rig_block_upload(&r->block[a]);
		int at = r->same_as[a] >= 0 ? r->same_as[a] : a;
		if (!r->absent[at])
			arg[a] = (struct cuda_arg){rig_device(&r->block[at]), r->format[at]};
	}
	enum status st = cuda_kernel_run(&r->cuda, &r->op, arg, e);
	rig_wait();
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_TRUE(rig_block_download(extra[i]));
	for (int a = 0; a < r->n_args; a++) {
		bool intact = rig_block_download(&r->block[a]);
		if (!intact)
			fprintf(stderr, "%s: wrote beside %s\n", op_kind_info((enum op_kind)r->op.kind)->name,
				op_kind_info((enum op_kind)r->op.kind)->arg[a].name);
		CU_ASSERT_TRUE(intact);
	}
	return st;
}

static inline int32_t cuda_rig_flag(const struct cuda_rig *r) { return *(const int32_t *)rig_host(&r->flag); }

static inline void rig_complain(const struct cuda_rig *r, int a, size_t i, double got, double want, double scale)
{
	static int shown;
	const struct op *op = &r->op;
	if (shown++ >= RIG_FAILURES_SHOWN)
		return;
	char name[OP_NAME_MAX];
	fprintf(stderr,
		"%s, flags %x, mlp %d, optimizer %d, %s: %s[%zu] of %zu as %s is %.9g, reference %.9g, scale %.3g\n",
		op_name(op, name), (unsigned)op->flags, op->mlp, op->optimizer, dtype_name((enum dtype)op->dtype),
		op_kind_info((enum op_kind)op->kind)->arg[a].name, i, r->n[a], dtype_name(r->format[a]), got, want,
		scale);
}

/* Returns whether the op writes an argument. One that is only read must keep its bytes. */
static inline bool rig_written(const struct cuda_rig *r, int a)
{
	for (int i = 0; i < r->n_args; i++)
		if ((i == a || r->same_as[i] == a) && op_access(&r->op, i) & ACC_W)
			return true;
	return false;
}

/* Elements of argument `a` that are wrong. */
static inline size_t cuda_rig_wrong(const struct cuda_rig *r, int a)
{
	const void *at = rig_host(&r->block[a]);
	const double *ref = r->ref[a];
	const double limit = rig_written(r, a) ? r->limit[a] : 0.0;
	size_t wrong = 0;
	for (size_t first = 0; first < r->n[a]; first += r->row[a]) {
		size_t end = first + r->row[a] < r->n[a] ? first + r->row[a] : r->n[a];
		double scale = r->terms;
		for (size_t i = first; i < end; i++)
			scale = fmax(scale, isfinite(ref[i]) ? fabs(ref[i]) : 0.0);
		for (size_t i = first; i < end; i++) {
			double got = rig_load(r->format[a], at, i);
			if (got == ref[i] || fabs(got - ref[i]) <= limit * scale)
				continue;
			wrong++;
			rig_complain(r, a, i, got, ref[i], scale);
		}
	}
	return wrong;
}

static inline void cuda_rig_compare(struct cuda_rig *r)
{
	for (int a = 0; a < r->n_args; a++) {
		if (r->absent[a])
			continue;
		if (r->format[a] == DT_INT32) {
			CU_ASSERT_EQUAL(memcmp(rig_host(&r->block[a]), r->ref[a], r->n[a] * sizeof(int32_t)), 0);
		} else {
			CU_ASSERT_EQUAL(cuda_rig_wrong(r, a), 0);
		}
	}
}

/* Kernel and reference, then all arguments compared. */
static inline void cuda_rig_check(struct cuda_rig *r)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(cuda_rig_run(r, &e), ST_OK);
	if (e.status)
		fprintf(stderr, "%s\n", e.text);
	CU_ASSERT_EQUAL(reference_run(&r->env, &r->op, r->ref, &e), ST_OK);
	cuda_rig_compare(r);
}

/* UNIT_MAIN, and once more with as many threads in a block as the launch asks for. */
#define CUDA_MAIN(suite, ...) \
	int main(int argc, char **argv) \
	{ \
		static const struct unit_test tests[] = {__VA_ARGS__}; \
		(void)argc; \
		int failed = unit_main(suite, tests, COUNT(tests)); \
		if (failed || getenv("STEPSIM_TWIN_THREADS") || RIG_ON_GPU) \
			return failed; \
		setenv("STEPSIM_TWIN_THREADS", "real", 1); \
		fflush(NULL); \
		execv("/proc/self/exe", argv); \
		return 2; \
	}

#endif
