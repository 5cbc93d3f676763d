/* An op with its arguments, twice: fp32 for a kernel and double for the reference, filled alike. Guards of known bytes
 * stand before and behind each fp32 buffer. */
#ifndef STEPSIM_TESTS_UNIT_KERNEL_RIG_H
#define STEPSIM_TESTS_UNIT_KERNEL_RIG_H

#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/host/reference.h"
#include "step/program.h"

#define GUARD_B 64
#define GUARD_BYTE 0xA5

struct rig {
	struct op op;
	struct host_env env; /* without pool and scratch */
	int n_args;
	double terms; /* size of the terms that results are sums of: what rounding errors are relative to where the
	                 terms cancel. 1, as the arguments; 0: that of the results */
	bool is_int[OP_MAX_ARGS], absent[OP_MAX_ARGS];
	size_t n[OP_MAX_ARGS];    /* elements */
	void *block[OP_MAX_ARGS]; /* guard, fp32 or int32 elements, guard */
	void *fast[OP_MAX_ARGS];  /* inside block; NULL: absent */
	void *ref[OP_MAX_ARGS];   /* double elements, or int32 in `fast` */
};

static uint64_t rig_state = 88172645463325252u;

/* xorshift64 (Marsaglia 2003): the same numbers on every machine */
static inline double rig_random(void)
{
	rig_state ^= rig_state << 13;
	rig_state ^= rig_state >> 7;
	rig_state ^= rig_state << 17;
	return (double)(rig_state >> 11) / 9007199254740992.0 * 2.0 - 1.0;
}

static inline void *rig_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);
	if (!p)
		abort();
	return p;
}

/* The reference's value of an argument becomes the kernel's too, rounded; then both hold the same fp32 number. */
static inline void rig_sync(struct rig *r, int a)
{
	for (size_t i = 0; i < r->n[a] && !r->is_int[a] && !r->absent[a]; i++) {
		float x = (float)((double *)r->ref[a])[i];
		((float *)r->fast[a])[i] = x;
		((double *)r->ref[a])[i] = (double)x;
	}
}

/* Arguments in the bit mask `absent` stay away. What is only written begins as NaN, everything else random in [-1, 1),
 * ids as zero. */
static inline void rig_open(struct rig *r, struct op op, unsigned absent)
{
	const struct op_kind_info *info = op_kind_info(op.kind);
	*r = (struct rig){.op = op, .env = {.heads = 12, .loss_scale = 0.125, .step = 3}, .terms = 1.0};
	r->n_args = info->n_args;
	for (int a = 0; a < r->n_args; a++) {
		r->n[a] = op_arg_bytes(&op, a, 1) / 4;
		r->is_int[a] = op.kind == OP_COPY || !strcmp(info->arg[a].name, "tokens") ||
		               !strcmp(info->arg[a].name, "targets") || !strcmp(info->arg[a].name, "bounds") ||
		               !strcmp(info->arg[a].name, "taken");
		r->absent[a] = absent >> a & 1;
		if (r->absent[a])
			continue;
		r->block[a] = rig_alloc(2 * GUARD_B + r->n[a] * 4);
		memset(r->block[a], GUARD_BYTE, 2 * GUARD_B + r->n[a] * 4);
		r->fast[a] = (char *)r->block[a] + GUARD_B;
		r->ref[a] = r->is_int[a] ? r->fast[a] : rig_alloc(r->n[a] * sizeof(double));
		if (r->is_int[a])
			memset(r->fast[a], 0, r->n[a] * 4);
		for (size_t i = 0; i < r->n[a] && !r->is_int[a]; i++)
			((double *)r->ref[a])[i] = op_access(&op, a) == ACC_W ? (double)NAN : rig_random();
		rig_sync(r, a);
	}
}

static inline void rig_close(struct rig *r)
{
	for (int a = 0; a < r->n_args; a++) {
		free(r->block[a]);
		if (!r->is_int[a])
			free(r->ref[a]);
	}
}

static inline void rig_reference(struct rig *r)
{
	struct error e = {0};
	CU_ASSERT_EQUAL(reference_run(&r->env, &r->op, r->ref, &e), ST_OK);
}

static inline double *rig_ref(struct rig *r, const char *name)
{
	const struct op_kind_info *info = op_kind_info(r->op.kind);
	for (int a = 0; a < r->n_args; a++)
		if (!strcmp(info->arg[a].name, name))
			return r->ref[a];
	abort();
}

static inline int32_t *rig_ids(struct rig *r, int a, int64_t low, int64_t high)
{
	int32_t *ids = r->fast[a];
	for (size_t i = 0; i < r->n[a]; i++)
		ids[i] = (int32_t)(low + (int64_t)((rig_random() + 1.0) / 2.0 * (double)(high - low)));
	return ids;
}

/* An op of fp32 arguments. */
static inline struct op rig_op(enum op_kind kind, unsigned flags, int variant, int64_t d0, int64_t d1, int64_t d2,
	int64_t d3, int64_t d4)
{
	return (struct op){.kind = (uint8_t)kind,
		.dtype = DT_FP32,
		.out_dtype = DT_FP32,
		.flags = (uint32_t)flags,
		.mlp = (uint8_t)(kind == OP_OPTIMIZER ? 0 : variant),
		.optimizer = (uint8_t)(kind == OP_OPTIMIZER ? variant : 0),
		.d = {d0, d1, d2, d3, d4}};
}

#endif
