/* A kernel of the host device against the reference: one and three threads, guards around each buffer and the scratch,
 * the same bytes twice. */
#ifndef STEPSIM_TESTS_UNIT_KERNEL_CHECK_H
#define STEPSIM_TESTS_UNIT_KERNEL_CHECK_H

#include "tests/unit/harness.h"
#include "tests/unit/kernel_rig.h"

#define SUMS 5e-6   /* sums of fp32 products, exponentials */
#define ROUNDS 1e-6 /* a few roundings */

static inline char *copy_of(const struct rig *r, int a)
{
	char *copy = rig_alloc(2 * GUARD_B + r->n[a] * 4);
	if (r->block[a])
		memcpy(copy, r->block[a], 2 * GUARD_B + r->n[a] * 4);
	return copy;
}

static inline void check_guards(const char *block, size_t bytes, const char *what)
{
	size_t wrong = 0;
	for (size_t i = 0; i < GUARD_B; i++)
		wrong += (unsigned char)block[i] != GUARD_BYTE ||
		         (unsigned char)block[GUARD_B + bytes + i] != GUARD_BYTE;
	if (wrong)
		fprintf(stderr, "%s: written outside the buffer\n", what);
	CU_ASSERT_EQUAL(wrong, 0);
}

/* Unchanged where the op only reads; where it writes, within `tolerance` of the reference, relative to the buffer's
 * largest value, at least to r->terms. */
static inline void check_argument(const struct rig *r, int a, const char *block, const char *before, double tolerance,
	int threads)
{
	const struct op_kind_info *info = op_kind_info(r->op.kind);
	check_guards(block, r->n[a] * 4, info->arg[a].name);
	if (!(op_access(&r->op, a) & ACC_W) || r->is_int[a]) {
		if (r->op.kind != OP_COPY)
			CU_ASSERT_EQUAL(memcmp(block, before, 2 * GUARD_B + r->n[a] * 4), 0);
		return;
	}
	const float *x = (const float *)(block + GUARD_B);
	const double *y = r->ref[a];
	double largest = r->terms;
	for (size_t i = 0; i < r->n[a]; i++)
		if (isfinite(y[i]))
			largest = fmax(largest, fabs(y[i]));
	for (size_t i = 0; i < r->n[a]; i++) {
		bool same = isfinite(y[i]) ? fabs((double)x[i] - y[i]) <= tolerance * largest
		            : isnan(y[i])  ? isnan(x[i])
		                           : (double)x[i] == y[i];
		if (same)
			continue;
		fprintf(stderr, "%s flags %x, %d threads: %s[%zu] is %.9g, the reference says %.9g\n", info->name,
			r->op.flags, threads, info->arg[a].name, i, (double)x[i], y[i]);
		CU_FAIL("differs from the reference");
		return;
	}
}

struct tools {
	struct pool *pool;
	char *scratch_block; /* guard, scratch, guard */
	struct host_env env;
	size_t scratch_B;
};

/* Scratch of exactly the size that the op asks for. */
static inline void tools_open(struct tools *t, const struct rig *r, int threads)
{
	struct error e = {0};
	*t = (struct tools){.env = r->env};
	if (pool_create(threads, &t->pool, &e))
		abort();
	t->scratch_B = host_kernel_scratch_B(&r->op, threads);
	t->scratch_block = aligned_alloc(64, (2 * GUARD_B + t->scratch_B + 63) / 64 * 64);
	if (!t->scratch_block)
		abort();
	memset(t->scratch_block, GUARD_BYTE, 2 * GUARD_B + t->scratch_B);
	t->env.pool = t->pool;
	t->env.scratch = t->scratch_block + GUARD_B;
	t->env.scratch_B = t->scratch_B;
}

static inline void tools_close(struct tools *t)
{
	pool_destroy(t->pool);
	free(t->scratch_block);
}

/* Runs the kernel on copies of the arguments; `blocks` gets them. */
static inline void run_kernel(const struct rig *r, const struct tools *t, char *blocks[OP_MAX_ARGS])
{
	struct error e = {0};
	void *arg[OP_MAX_ARGS] = {0};
	for (int a = 0; a < r->n_args; a++) {
		blocks[a] = copy_of(r, a);
		arg[a] = r->absent[a] ? NULL : blocks[a] + GUARD_B;
	}
	CU_ASSERT_EQUAL(host_kernel_run(&t->env, &r->op, arg, &e), ST_OK);
	if (e.status)
		fprintf(stderr, "%s\n", e.text);
}

/* One and three threads against the reference, and twice the same bytes. Consumes the rig. */
static inline void check(struct rig *r, double tolerance)
{
	char *before[OP_MAX_ARGS], *blocks[OP_MAX_ARGS], *again[OP_MAX_ARGS];
	for (int a = 0; a < r->n_args; a++)
		before[a] = copy_of(r, a);
	rig_reference(r);
	for (int threads = 1; threads <= 3; threads += 2) {
		struct tools t;
		tools_open(&t, r, threads);
		run_kernel(r, &t, blocks);
		run_kernel(r, &t, again);
		check_guards(t.scratch_block, t.scratch_B, "scratch");
		for (int a = 0; a < r->n_args; a++) {
			if (!r->absent[a]) {
				check_argument(r, a, blocks[a], before[a], tolerance, threads);
				CU_ASSERT_EQUAL(memcmp(blocks[a], again[a], 2 * GUARD_B + r->n[a] * 4), 0);
			}
			free(blocks[a]);
			free(again[a]);
		}
		tools_close(&t);
	}
	for (int a = 0; a < r->n_args; a++)
		free(before[a]);
	rig_close(r);
}

static inline void check_op(struct op op, unsigned absent, double tolerance)
{
	struct rig r;
	rig_open(&r, op, absent);
	check(&r, tolerance);
}

#endif
