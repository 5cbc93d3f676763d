#include <assert.h>
#include <math.h>

#include "exec/host/kernels_optimizer.h"

#include "base/array.h"

/* ---- one pass over all state ---- */

static void adam_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m, *restrict v = u->v, *p = u->p, *w = u->w;
	const float b1 = u->beta1, b2 = u->beta2, rate = u->lr * u->correct1, keep = 1.0f - u->decay,
		    correct2 = u->correct2;
#pragma GCC ivdep
	for (int64_t i = begin; i < end; i++) {
		m[i] = b1 * m[i] + (1.0f - b1) * g[i];
		v[i] = b2 * v[i] + (1.0f - b2) * g[i] * g[i];
		float x = keep * w[i] - rate * m[i] / (sqrtf(v[i] * correct2) + ADAM_EPS);
		w[i] = x;
		p[i] = x;
	}
}

static void lion_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m, *p = u->p, *w = u->w;
	const float b1 = u->beta1, b2 = u->beta2, lr = u->lr, keep = 1.0f - u->decay;
#pragma GCC ivdep
	for (int64_t i = begin; i < end; i++) {
		float c = b1 * m[i] + (1.0f - b1) * g[i];
		float sign = (c > 0.0f ? 1.0f : 0.0f) - (c < 0.0f ? 1.0f : 0.0f);
		float x = keep * w[i] - lr * sign;
		m[i] = b2 * m[i] + (1.0f - b2) * g[i];
		w[i] = x;
		p[i] = x;
	}
}

static void sgd_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m, *p = u->p, *w = u->w;
	const float lr = u->lr;
#pragma GCC ivdep
	for (int64_t i = begin; i < end; i++) {
		m[i] = SGD_MOMENTUM * m[i] + g[i];
		float x = w[i] - lr * m[i];
		w[i] = x;
		p[i] = x;
	}
}

static void plain_sgd_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *p = u->p, *w = u->w;
	const float lr = u->lr;
#pragma GCC ivdep
	for (int64_t i = begin; i < end; i++) {
		float x = w[i] - lr * g[i];
		w[i] = x;
		p[i] = x;
	}
}

/* ---- the same as a sequence of elementwise passes, each over memory on its own ---- */

static void decay_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float keep = 1.0f - u->decay;
	for (int64_t i = begin; i < end; i++)
		u->w[i] *= keep;
}

static void adam_m_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m;
	const float b1 = u->beta1;
	for (int64_t i = begin; i < end; i++)
		m[i] = b1 * m[i] + (1.0f - b1) * g[i];
}

static void adam_v_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict v = u->v;
	const float b2 = u->beta2;
	for (int64_t i = begin; i < end; i++)
		v[i] = b2 * v[i] + (1.0f - b2) * g[i] * g[i];
}

static void adam_update_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict m = u->m, *restrict v = u->v;
	float *restrict w = u->w;
	const float rate = u->lr * u->correct1, correct2 = u->correct2;
	for (int64_t i = begin; i < end; i++)
		w[i] -= rate * m[i] / (sqrtf(v[i] * correct2) + ADAM_EPS);
}

static void lion_update_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g, *restrict m = u->m;
	float *restrict w = u->w;
	const float b1 = u->beta1, lr = u->lr;
	for (int64_t i = begin; i < end; i++) {
		float c = b1 * m[i] + (1.0f - b1) * g[i];
		w[i] -= lr * ((c > 0.0f ? 1.0f : 0.0f) - (c < 0.0f ? 1.0f : 0.0f));
	}
}

static void lion_m_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m;
	const float b2 = u->beta2;
	for (int64_t i = begin; i < end; i++)
		m[i] = b2 * m[i] + (1.0f - b2) * g[i];
}

static void sgd_m_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict g = u->g;
	float *restrict m = u->m;
	for (int64_t i = begin; i < end; i++)
		m[i] = SGD_MOMENTUM * m[i] + g[i];
}

static void sgd_update_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict m = u->m;
	float *restrict w = u->w;
	const float lr = u->lr;
	for (int64_t i = begin; i < end; i++)
		w[i] -= lr * m[i];
}

static void publish_pass(const struct update *u, int64_t begin, int64_t end)
{
	const float *restrict w = u->w;
	float *restrict p = u->p;
	for (int64_t i = begin; i < end; i++)
		p[i] = w[i];
}

/* ---- */

#define MAX_PASSES 4
struct rule {
	pass_fn *fused, *unfused[MAX_PASSES]; /* fused NULL: not on the host; unfused ends with NULL or the array */
	float lr, beta1, beta2, decay;
};
static const struct rule rules[OPT_COUNT] = {
	[OPT_ADAMW] = {adam_pass, {decay_pass, adam_m_pass, adam_v_pass, adam_update_pass}, ADAM_LR, ADAM_BETA1,
		ADAM_BETA2, ADAMW_DECAY},
	[OPT_ADAM] = {adam_pass, {adam_m_pass, adam_v_pass, adam_update_pass}, ADAM_LR, ADAM_BETA1, ADAM_BETA2, 0.0f},
	[OPT_LION] = {lion_pass, {decay_pass, lion_update_pass, lion_m_pass}, LION_LR, LION_BETA1, LION_BETA2,
		LION_DECAY},
	[OPT_SGD] = {sgd_pass, {sgd_m_pass, sgd_update_pass}, SGD_LR, 0.0f, 0.0f, 0.0f},
};

struct pass_job {
	const struct update *u;
	pass_fn *pass;
};

static void pass_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct pass_job *j = ctx;
	j->pass(j->u, begin, end);
}

void kernel_update(const struct host_env *env, const struct update *u, int64_t n, pass_fn *pass)
{
	struct pass_job j = {u, pass};
	kernel_split(env, kernel_parts(env, n, 1), n, pass_part, &j);
}

enum status kernel_optimizer(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	const struct rule *r = &rules[op->optimizer];
	const struct optimizer_traits *o = &optimizer_traits[op->optimizer];
	const bool stateless = o->runs_stateless && !(op->flags & OP_STATES_8);
	const int64_t n = op->update.elements;
	struct update u = {.p = arg[0],
		.g = arg[1],
		.m = arg[2],
		.v = arg[3],
		.w = arg[4] ? arg[4] : arg[0],
		.lr = r->lr,
		.beta1 = r->beta1,
		.beta2 = r->beta2,
		.decay = r->lr * r->decay};
	if (!r->fused)
		return error_set(e, ST_RUN, "the host device has no kernel for optimizer %s", o->name);
	if (!stateless && ((o->moments > 0 && !u.m) || (o->moments > 1 && !u.v)))
		return error_set(e, ST_RUN, "optimizer %s without its state", o->name);
	u.correct1 = (float)(1.0 / (1.0 - pow((double)r->beta1, (double)env->step)));
	u.correct2 = (float)(1.0 / (1.0 - pow((double)r->beta2, (double)env->step)));
	if (op->flags & OP_STATES_8) {
		kernel_optimizer_8(env, op, &u, r->fused);
		return ST_OK;
	}
	if (op->flags & OP_FUSED || !u.m) {
		kernel_update(env, &u, n, u.m ? r->fused : plain_sgd_pass);
		return ST_OK;
	}
	for (int i = 0; i < MAX_PASSES && r->unfused[i]; i++)
		kernel_update(env, &u, n, r->unfused[i]);
	if (u.w != u.p)
		kernel_update(env, &u, n, publish_pass);
	return ST_OK;
}
