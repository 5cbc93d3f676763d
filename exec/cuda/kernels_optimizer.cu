/* Optimizers over a whole bucket's part: fused, each number crosses the memory interface once; else the elementwise passes of PyTorch's for-each implementations (torch/optim/adamw.py, sgd.py;
 * "multi_tensor"), each over memory on its own, so that what they cost is what they cost there. Rules and constants: exec/host/kernels.h. Sizes have no limit. */
#include "exec/cuda/stream.cuh"
extern "C" {
#include "exec/host/kernels.h"
}

#define SPAN 4 /* fp32 state in 16-byte accesses, 16-bit weights and gradients in 8 */
#define CHUNK_B ((size_t)256 << 20) /* unfused: bytes of an intermediate at once, larger than every L2 cache, so that each pass still goes to memory */

enum rule { RULE_ADAM, RULE_LION, RULE_SGD, RULE_PLAIN };

/* 1 - beta^step, without the cancellation of the first steps; log_beta is below 0. */
static __device__ __forceinline__ float correction(const int64_t *step, float log_beta)
{
	return -expm1f((float)*step * log_beta);
}

static __device__ __forceinline__ float sign_of(float x)
{
	return (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f);
}

/* ---- one pass ---- */

template <class P, class G> struct state {
	P *p;
	const G *g;
	float *m, *v, *master; /* NULL: absent */
	int64_t n;
	const int64_t *step;
	bool spans;
};

struct rates {
	float keep; /* 1 - lr x weight decay */
	float log_beta1, log_beta2;
};

template <class P, class G, int R> __global__ void __launch_bounds__(STREAM_THREADS) optimizer_kernel(struct state<P, G> s, struct rates c)
{
	const float rate = R == RULE_ADAM ? ADAM_LR / correction(s.step, c.log_beta1) : 0.0f;
	const float correct2 = R == RULE_ADAM ? 1.0f / correction(s.step, c.log_beta2) : 0.0f;
	for_spans<SPAN>(s.n, s.spans, [&](int64_t i, auto count) {
		constexpr int C = decltype(count)::value;
		float g[C], w[C];
		[[maybe_unused]] float m[C], v[C];
		load_vec<G, C>(s.g + i, g);
		if (s.master)
			load_vec<float, C>(s.master + i, w);
		else
			load_vec<P, C>(s.p + i, w);
		if constexpr (R != RULE_PLAIN)
			load_vec<float, C>(s.m + i, m);
		if constexpr (R == RULE_ADAM)
			load_vec<float, C>(s.v + i, v);
		UNROLL
		for (int k = 0; k < C; k++) {
			if constexpr (R == RULE_ADAM) {
				m[k] = ADAM_BETA1 * m[k] + (1.0f - ADAM_BETA1) * g[k];
				v[k] = ADAM_BETA2 * v[k] + (1.0f - ADAM_BETA2) * g[k] * g[k];
				w[k] = c.keep * w[k] - rate * m[k] / (sqrtf(v[k] * correct2) + ADAM_EPS);
			} else if constexpr (R == RULE_LION) {
				w[k] = c.keep * w[k] - LION_LR * sign_of(LION_BETA1 * m[k] + (1.0f - LION_BETA1) * g[k]);
				m[k] = LION_BETA2 * m[k] + (1.0f - LION_BETA2) * g[k];
			} else if constexpr (R == RULE_SGD) {
				m[k] = SGD_MOMENTUM * m[k] + g[k];
				w[k] -= SGD_LR * m[k];
			} else {
				w[k] -= SGD_LR * g[k];
			}
		}
		if constexpr (R != RULE_PLAIN)
			store_vec<float, C>(s.m + i, m);
		if constexpr (R == RULE_ADAM)
			store_vec<float, C>(s.v + i, v);
		if (s.master)
			store_vec<float, C>(s.master + i, w);
		store_vec<P, C>(s.p + i, w);
	});
}

template <int R, class P, class G> static enum status run_fused(const struct cuda_env *env, const struct state<P, G> *s, const struct rates *c, struct error *e)
{
	return start<optimizer_kernel<P, G, R>>(env->stream, stream_grid(env, s->n, STREAM_THREADS * SPAN), STREAM_THREADS, e, *s, *c);
}

/* ---- the same in passes, named as the for-each functions are ---- */

enum pass {
	PASS_MUL,     /* y = a y */
	PASS_ADD,     /* y = y + a */
	PASS_LERP,    /* y = a z + b x */
	PASS_ADDCMUL, /* y = y + a x x */
	PASS_SQRT,    /* y = sqrt(x) */
	PASS_CORRECT, /* y = y / sqrt(1 - beta^step), log beta in b */
	PASS_ADDCDIV, /* y = y - a / (1 - beta^step) x / z */
	PASS_SIGN,    /* y = sign(y) */
	PASS_AXPY,    /* y = y - a x */
	PASS_COPY,    /* y = x */
};

struct pass_numbers {
	float a, b;
	const int64_t *step;
};

template <int K, class Y, class X> __global__ void __launch_bounds__(STREAM_THREADS) pass_kernel(Y *y, const X *x, const float *z, int64_t n, struct pass_numbers c, bool spans)
{
	constexpr bool READS_Y = K != PASS_LERP && K != PASS_SQRT && K != PASS_COPY, READS_X = K != PASS_MUL && K != PASS_ADD && K != PASS_CORRECT && K != PASS_SIGN;
	constexpr bool READS_Z = K == PASS_LERP || K == PASS_ADDCDIV;
	float factor = c.a;
	if constexpr (K == PASS_CORRECT)
		factor = 1.0f / sqrtf(correction(c.step, c.b));
	if constexpr (K == PASS_ADDCDIV)
		factor = c.a / correction(c.step, c.b);
	for_spans<SPAN>(n, spans, [&](int64_t i, auto count) {
		constexpr int C = decltype(count)::value;
		float u[C] = {}, v[C] = {}, w[C] = {};
		if constexpr (READS_Y)
			load_vec<Y, C>(y + i, u);
		if constexpr (READS_X)
			load_vec<X, C>(x + i, v);
		if constexpr (READS_Z)
			load_vec<float, C>(z + i, w);
		UNROLL
		for (int k = 0; k < C; k++)
			switch (K) {
			case PASS_MUL:
			case PASS_CORRECT: u[k] *= factor; break;
			case PASS_ADD: u[k] += factor; break;
			case PASS_LERP: u[k] = factor * w[k] + c.b * v[k]; break;
			case PASS_ADDCMUL: u[k] += factor * v[k] * v[k]; break;
			case PASS_SQRT: u[k] = sqrtf(v[k]); break;
			case PASS_ADDCDIV: u[k] -= factor * v[k] / w[k]; break;
			case PASS_SIGN: u[k] = sign_of(u[k]); break;
			case PASS_AXPY: u[k] -= factor * v[k]; break;
			case PASS_COPY: u[k] = v[k]; break;
			}
		store_vec<Y, C>(y + i, u);
	});
}

/* A part of the state whose intermediate fits into the scratch memory. The first launch that fails ends the sequence. */
struct sequence {
	const struct cuda_env *env;
	int64_t n;
	struct error *e;
	enum status st;
};

template <int K, class Y, class X> static void pass(struct sequence *q, Y *y, const X *x, const float *z, float a, float b)
{
	const bool spans = span_fits<SPAN>(y) && span_fits<SPAN>(x) && span_fits<SPAN>(z);
	if (!q->st)
		q->st = start<pass_kernel<K, Y, X>>(q->env->stream, stream_grid(q->env, q->n, STREAM_THREADS * SPAN), STREAM_THREADS, q->e, y, x, z, q->n, pass_numbers{a, b, q->env->step}, spans);
}

#define NOTHING ((const float *)NULL)

template <int R, class W, class G> static void passes(struct sequence *q, W *w, const G *g, float *m, float *v, float *between, const struct rates *c)
{
	if (c->keep < 1.0f)
		pass<PASS_MUL>(q, w, NOTHING, NOTHING, c->keep, 0.0f);
	if constexpr (R == RULE_ADAM) {
		pass<PASS_LERP>(q, m, g, m, ADAM_BETA1, 1.0f - ADAM_BETA1);
		pass<PASS_MUL>(q, v, NOTHING, NOTHING, ADAM_BETA2, 0.0f);
		pass<PASS_ADDCMUL>(q, v, g, NOTHING, 1.0f - ADAM_BETA2, 0.0f);
		pass<PASS_SQRT>(q, between, (const float *)v, NOTHING, 0.0f, 0.0f);
		pass<PASS_CORRECT>(q, between, NOTHING, NOTHING, 0.0f, c->log_beta2);
		pass<PASS_ADD>(q, between, NOTHING, NOTHING, ADAM_EPS, 0.0f);
		pass<PASS_ADDCDIV>(q, w, (const float *)m, between, ADAM_LR, c->log_beta1);
	} else if constexpr (R == RULE_LION) {
		pass<PASS_LERP>(q, between, g, m, LION_BETA1, 1.0f - LION_BETA1);
		pass<PASS_SIGN>(q, between, NOTHING, NOTHING, 0.0f, 0.0f);
		pass<PASS_AXPY>(q, w, (const float *)between, NOTHING, LION_LR, 0.0f);
		pass<PASS_LERP>(q, m, g, m, LION_BETA2, 1.0f - LION_BETA2);
	} else if constexpr (R == RULE_SGD) {
		pass<PASS_MUL>(q, m, NOTHING, NOTHING, SGD_MOMENTUM, 0.0f);
		pass<PASS_AXPY>(q, m, g, NOTHING, -1.0f, 0.0f);
		pass<PASS_AXPY>(q, w, (const float *)m, NOTHING, SGD_LR, 0.0f);
	} else {
		pass<PASS_AXPY>(q, w, g, NOTHING, SGD_LR, 0.0f);
	}
}

static bool has_between(const struct op *op)
{
	return !(op->flags & OP_FUSED) && (op->mlp == OPT_ADAMW || op->mlp == OPT_ADAM || op->mlp == OPT_LION);
}

extern "C" size_t cuda_scratch_optimizer_B(const struct op *op)
{
	const size_t all = (size_t)op->d[0] * sizeof(float);
	return !has_between(op) ? 0 : all < CHUNK_B ? all : CHUNK_B;
}

template <class T> static T *at_or_null(T *p, int64_t i)
{
	return p ? p + i : NULL;
}

template <int R, class P, class G> static enum status run_passes(const struct cuda_env *env, const struct op *op, const struct state<P, G> *s, const struct rates *c, struct error *e)
{
	/* whole vectors of every format, so that all chunks begin as aligned as the first */
	const int64_t room = (int64_t)((env->scratch_B < CHUNK_B ? env->scratch_B : CHUNK_B) / sizeof(float)), chunk = !has_between(op) || room >= s->n ? s->n : room / 8 * 8;
	if (chunk == 0)
		return error_set(e, ST_RUN, "optimizer: no scratch memory");
	struct sequence q = {env, 0, e, ST_OK};
	for (int64_t i = 0; i < s->n && !q.st; i += chunk) {
		q.n = s->n - i < chunk ? s->n - i : chunk;
		if (s->master) {
			passes<R>(&q, s->master + i, s->g + i, at_or_null(s->m, i), at_or_null(s->v, i), (float *)env->scratch, c);
			pass<PASS_COPY>(&q, s->p + i, (const float *)(s->master + i), NOTHING, 0.0f, 0.0f);
		} else {
			passes<R>(&q, s->p + i, s->g + i, at_or_null(s->m, i), at_or_null(s->v, i), (float *)env->scratch, c);
		}
	}
	return q.st;
}

/* ---- */

template <int R> static enum status run_rule(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], float decay, struct error *e)
{
	return with_formats(arg[0].dtype, arg[1].dtype, e, [&](auto x, auto y) {
		using P = typename decltype(x)::type;
		using G = typename decltype(y)::type;
		struct state<P, G> s = {(P *)arg[0].at, (const G *)arg[1].at, (float *)arg[2].at, (float *)arg[3].at, (float *)arg[4].at, op->d[0], env->step, false};
		s.spans = span_fits<SPAN>(s.p) && span_fits<SPAN>(s.g) && span_fits<SPAN>(s.m) && span_fits<SPAN>(s.v) && span_fits<SPAN>(s.master);
		const struct rates c = {1.0f - decay, (float)log((double)ADAM_BETA1), (float)log((double)ADAM_BETA2)};
		return op->flags & OP_FUSED ? run_fused<R>(env, &s, &c, e) : run_passes<R>(env, op, &s, &c, e);
	});
}

static enum status optimizer_check(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	const bool adam = op->mlp == OPT_ADAMW || op->mlp == OPT_ADAM;
	if (op->mlp == OPT_LAMB || op->mlp == OPT_NONE)
		return error_set(e, ST_RUN, "the GPU has no kernel for optimizer %s", optimizer_name((enum optimizer)op->mlp));
	if ((adam && !arg[3].at) || (!arg[2].at && op->mlp != OPT_SGD))
		return error_set(e, ST_RUN, "optimizer %s without its state", optimizer_name((enum optimizer)op->mlp));
	for (int i = 2; i < 5; i++)
		if (arg[i].at && arg[i].dtype != DT_FP32)
			return error_set(e, ST_RUN, "optimizer: no kernel for %s as %s, only as fp32", info->arg_name[i], dtype_name(arg[i].dtype));
	return ST_OK;
}

extern "C" enum status launch_optimizer(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = op->d[0] ? optimizer_check(op, arg, e) : ST_OK;
	if (st || op->d[0] == 0)
		return st;
	switch (op->mlp) {
	case OPT_ADAMW: return run_rule<RULE_ADAM>(env, op, arg, ADAM_LR * ADAMW_DECAY, e);
	case OPT_ADAM: return run_rule<RULE_ADAM>(env, op, arg, 0.0f, e);
	case OPT_LION: return run_rule<RULE_LION>(env, op, arg, LION_LR * LION_DECAY, e);
	default: return arg[2].at ? run_rule<RULE_SGD>(env, op, arg, 0.0f, e) : run_rule<RULE_PLAIN>(env, op, arg, 0.0f, e);
	}
}
