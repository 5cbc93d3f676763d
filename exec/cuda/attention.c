#include "exec/cuda/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/attention_cudnn.h"
#include "exec/cuda/check.h"

/* The identity of a plan. */
struct key {
	uint8_t kind, dtype;
	uint32_t flags;
	int64_t d[5];
};

struct plan {
	struct key key;
	struct cudnn_attention *cudnn; /* NULL: our own kernel */
};

struct attention_plans {
	cudnnHandle_t handle; /* NULL: cuDNN does not start */
	VEC(struct plan) plans;
	size_t workspace_B;
};

static bool is_attention(const struct op *op) { return op->kind == OP_ATTENTION || op->kind == OP_ATTENTION_GRAD; }

static struct key key_of(const struct op *op)
{
	struct key k = {.kind = op->kind, .dtype = op->dtype, .flags = op->flags & (OP_CAUSAL | OP_ALIBI)};
	memcpy(k.d, op->d, sizeof k.d);
	return k;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->kind == b->kind && a->dtype == b->dtype && a->flags == b->flags &&
	       memcmp(a->d, b->d, sizeof a->d) == 0;
}

static const struct plan *find(const struct attention_plans *a, const struct op *op)
{
	const struct key k = key_of(op);
	for (size_t i = 0; i < a->plans.n; i++)
		if (same_key(&a->plans.at[i].key, &k))
			return &a->plans.at[i];
	return NULL;
}

/* lse and delta are fp32 always. */
static bool is_statistic(const struct op *op, int arg)
{
	return arg == 2 || (op->kind == OP_ATTENTION_GRAD && arg == 4);
}

static enum status formats_check(const struct role *role, const struct op *op, struct error *e)
{
	for (int i = 0; i < op_kind_info((enum op_kind)op->kind)->n_args; i++) {
		enum dtype d = role->buffers.at[op_arg(role, op, i)->buffer].dtype;
		if (!is_statistic(op, i) && d != (enum dtype)op->dtype)
			return error_set(e, ST_RUN, "%s is stored as %s, not %s",
				op_kind_info((enum op_kind)op->kind)->arg[i].name, dtype_name(d),
				dtype_name((enum dtype)op->dtype));
	}
	return ST_OK;
}

/* Of the first shape alone: one line is enough to know where to look. */
static void say(char why[256], const struct op *op, const char *reason)
{
	char name[OP_NAME_MAX];
	if (!why[0])
		snprintf(why, 256, "%s takes our own kernel: %.100s", op_name(op, name), reason);
}

static enum status plan_add(struct attention_plans *a, const struct role *role, const struct op *op,
	const char *no_handle, char why[256], struct error *e)
{
	struct plan p = {.key = key_of(op)};
	struct error reason = {0};
	const struct cudnn_target target = {.handle = a->handle};
	if (!a->handle)
		say(why, op, no_handle);
	else if (op_window(op) > 0)
		say(why, op, "a sliding window");
	else if (formats_check(role, op, &reason) ||
		 cudnn_attention_create(&target, op, (enum dtype)op->dtype, &p.cudnn, &reason))
		say(why, op, reason.text);
	if (!vec_push(&a->plans, p)) {
		cudnn_attention_destroy(p.cudnn);
		return error_nomem(e, "plans of attention");
	}
	if (p.cudnn && cudnn_attention_workspace_B(p.cudnn) > a->workspace_B)
		a->workspace_B = cudnn_attention_workspace_B(p.cudnn);
	return ST_OK;
}

enum status attention_plans_create(const struct role *role, int device, struct attention_plans **out, char why[256],
	struct error *e)
{
	why[0] = '\0';
	struct attention_plans *a = calloc(1, sizeof *a);
	if (!a)
		return error_nomem(e, "plans of attention");
	struct error no_handle = {0};
	bool asked = false;
	enum status st = CUDA_CHECK(cudaSetDevice(device), e);
	for (size_t i = 0; !st && i < role->ops.n; i++) {
		const struct op *op = &role->ops.at[i];
		if (!is_attention(op) || find(a, op))
			continue;
		if (!asked && CUDNN_CHECK(cudnnCreate(&a->handle), &no_handle))
			a->handle = NULL;
		asked = true;
		st = plan_add(a, role, op, no_handle.text, why, e);
	}
	if (st) {
		attention_plans_destroy(a);
		return st;
	}
	*out = a;
	return ST_OK;
}

void attention_plans_destroy(struct attention_plans *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->plans.n; i++)
		cudnn_attention_destroy(a->plans.at[i].cudnn);
	vec_free(&a->plans);
	if (a->handle)
		(void)cudnnDestroy(a->handle);
	free(a);
}

size_t attention_workspace_B(const struct attention_plans *a) { return a->workspace_B; }

bool attention_by_cudnn(const struct attention_plans *a, const struct op *op)
{
	const struct plan *p = find(a, op);
	return p && p->cudnn;
}

/* Returns whether the plan fits the arguments: their formats, and rows that begin at multiples of 16 bytes. */
static bool plan_serves(const struct cuda_env *env, const struct op *op, const struct cuda_arg *arg,
	const struct cudnn_attention *plan)
{
	for (int i = 0; i < op_kind_info((enum op_kind)op->kind)->n_args; i++)
		if ((uintptr_t)arg[i].at % 16 ||
			arg[i].dtype != (is_statistic(op, i) ? DT_FP32 : (enum dtype)op->dtype))
			return false;
	return env->scratch_B >= cudnn_attention_workspace_B(plan);
}

enum status attention_run(struct attention_plans *a, const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct plan *p = find(a, op);
	if (!p || !p->cudnn || !plan_serves(env, op, arg, p->cudnn))
		return cuda_kernel_run(env, op, arg, e);
	enum status st = CUDNN_CHECK(cudnnSetStream(a->handle, env->stream), e);
	return st ? st : cudnn_attention_run(p->cudnn, a->handle, arg, env->scratch, e);
}
