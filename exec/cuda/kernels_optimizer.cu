/* Optimizers over a whole bucket's part: fused, each number crosses the memory interface once; else the elementwise
 * passes of PyTorch's for-each implementations (torch/optim/adamw.py, sgd.py; "multi_tensor"), each over memory on its
 * own, so that what they cost is what they cost there. Rules and constants: exec/host/kernels.h. Sizes have no limit.
 */
#include "exec/cuda/stream.cuh"
extern "C" {
#include "exec/host/dynamic_map.h"
#include "exec/host/kernels.h"
}

#define SPAN 4 /* fp32 state in 16-byte accesses, 16-bit weights and gradients in 8 */
#define CHUNK_B \
	((size_t)256 << 20) /* unfused: bytes of an intermediate at once, larger than every L2 cache, so that each \
	                       pass still goes to memory */

enum rule { RULE_ADAM, RULE_LION, RULE_SGD, RULE_PLAIN, RULE_NONE };

/* The kernels of an optimizer. */
struct optimizer_kernels {
	enum rule rule; /* RULE_NONE: there are none */
	float decay;    /* lr x weight decay */
};

static struct optimizer_kernels kernels_of(const struct op *op)
{
	switch ((enum optimizer)op->optimizer) {
	case OPT_ADAMW: return {RULE_ADAM, ADAM_LR * ADAMW_DECAY};
	case OPT_ADAM: return {RULE_ADAM, 0.0f};
	case OPT_LION: return {RULE_LION, LION_LR * LION_DECAY};
	case OPT_SGD: return {RULE_SGD, 0.0f};
	case OPT_LAMB:
	case OPT_MUON:
	case OPT_ADAFACTOR:
	case OPT_NONE:
	case OPT_COUNT: break;
	}
	return {RULE_NONE, 0.0f};
}

/* 1 - beta^step, without the cancellation of the first steps; log_beta is below 0. */
static __device__ __forceinline__ float correction(const int64_t *step, float log_beta)
{
	return -expm1f((float)*step * log_beta);
}

static __device__ __forceinline__ float sign_of(float x) { return (x > 0.0f ? 1.0f : 0.0f) - (x < 0.0f ? 1.0f : 0.0f); }

/* One element's step: moments m and v, weight w, gradient g. */
template <int R>
static __device__ __forceinline__ void update(float &m, float &v, float &w, float g, float keep, float rate,
	float correct2)
{
	if constexpr (R == RULE_ADAM) {
		m = ADAM_BETA1 * m + (1.0f - ADAM_BETA1) * g;
		v = ADAM_BETA2 * v + (1.0f - ADAM_BETA2) * g * g;
		w = keep * w - rate * m / (sqrtf(v * correct2) + ADAM_EPS);
	} else if constexpr (R == RULE_LION) {
		w = keep * w - LION_LR * sign_of(LION_BETA1 * m + (1.0f - LION_BETA1) * g);
		m = LION_BETA2 * m + (1.0f - LION_BETA2) * g;
	} else if constexpr (R == RULE_SGD) {
		m = SGD_MOMENTUM * m + g;
		w -= SGD_LR * m;
	} else {
		w -= SGD_LR * g;
	}
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

template <class P, class G, int R>
__global__ void __launch_bounds__(STREAM_THREADS) optimizer_kernel(struct state<P, G> s, struct rates c)
{
	const float rate = R == RULE_ADAM ? ADAM_LR / correction(s.step, c.log_beta1) : 0.0f;
	const float correct2 = R == RULE_ADAM ? 1.0f / correction(s.step, c.log_beta2) : 0.0f;
	for_spans<SPAN>(s.n, s.spans, [&](int64_t i, auto count) {
		constexpr int C = decltype(count)::value;
		float g[C], w[C], m[C] = {}, v[C] = {};
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
		for (int k = 0; k < C; k++)
			update<R>(m[k], v[k], w[k], g[k], c.keep, rate, correct2);
		if constexpr (R != RULE_PLAIN)
			store_vec<float, C>(s.m + i, m);
		if constexpr (R == RULE_ADAM)
			store_vec<float, C>(s.v + i, v);
		if (s.master)
			store_vec<float, C>(s.master + i, w);
		store_vec<P, C>(s.p + i, w);
	});
}

template <int R, class P, class G>
static enum status run_fused(const struct cuda_env *env, const struct state<P, G> *s, const struct rates *c,
	struct error *e)
{
	return start<optimizer_kernel<P, G, R>>(env->stream, stream_grid(env, s->n, STREAM_THREADS * SPAN),
		STREAM_THREADS, e, *s, *c);
}

/* ---- one pass with moments in 8 bits (step/op.h, struct states_8) ---- */

struct moment_8 {
	float *scale;  /* by block */
	uint8_t *code; /* NULL: no such moment */
};

static __device__ __forceinline__ uint8_t nearest(const float *middle, float y)
{
	int c = 0;
	UNROLL
	for (int half = DYNAMIC_MAP_CODES / 2; half > 0; half /= 2)
		c += y > middle[c + half - 1] ? half : 0;
	return (uint8_t)c;
}

/* A thread block takes a block of elements at a time; what a thread keeps over the search for the block's largest value
 * lies in shared memory, at places of its own. */
template <class P, class G, int R>
__global__ void __launch_bounds__(OPTIMIZER_BLOCK)
	optimizer_8_kernel(struct state<P, G> s, struct moment_8 m8, struct moment_8 v8, struct rates c)
{
	__shared__ float value[2][DYNAMIC_MAP_CODES], middle[2][DYNAMIC_MAP_CODES], m[OPTIMIZER_BLOCK],
		v[OPTIMIZER_BLOCK];
	const float rate = R == RULE_ADAM ? ADAM_LR / correction(s.step, c.log_beta1) : 0.0f;
	const float correct2 = R == RULE_ADAM ? 1.0f / correction(s.step, c.log_beta2) : 0.0f;
	for (int k = thread_rank(); k < 2 * DYNAMIC_MAP_CODES; k += thread_count()) {
		const int code = k % DYNAMIC_MAP_CODES, map = k / DYNAMIC_MAP_CODES;
		value[map][code] = dynamic_map_value(code, map == 0);
		middle[map][code] = code + 1 < DYNAMIC_MAP_CODES ? dynamic_map_middle(code, map == 0) : 1.0f;
	}
	block_sync();
	for (int64_t block = blockIdx.x; block * OPTIMIZER_BLOCK < s.n; block += gridDim.x) {
		const int64_t first = block * OPTIMIZER_BLOCK;
		const int n = (int)(s.n - first < OPTIMIZER_BLOCK ? s.n - first : OPTIMIZER_BLOCK);
		float largest_m = 0.0f, largest_v = 0.0f;
		for (int k = thread_rank(); k < n; k += thread_count()) {
			const int64_t i = first + k;
			float w = s.master ? s.master[i] : to_float(s.p[i]);
			m[k] = value[0][m8.code[i]] * m8.scale[block];
			v[k] = R == RULE_ADAM ? value[1][v8.code[i]] * v8.scale[block] : 0.0f;
			update<R>(m[k], v[k], w, to_float(s.g[i]), c.keep, rate, correct2);
			if (s.master)
				s.master[i] = w;
			s.p[i] = from_float<P>(w);
			largest_m = fmaxf(largest_m, fabsf(m[k]));
			largest_v = fmaxf(largest_v, v[k]);
		}
		largest_m = block_max(largest_m);
		largest_v = R == RULE_ADAM ? block_max(largest_v) : 0.0f;
		if (thread_rank() == 0) {
			m8.scale[block] = largest_m;
			if (R == RULE_ADAM)
				v8.scale[block] = largest_v;
		}
		for (int k = thread_rank(); k < n; k += thread_count()) {
			const float y = m[k] / (largest_m > 0.0f ? largest_m : 1.0f);
			const uint8_t code = nearest(middle[0], y);
			m8.code[first + k] = (uint8_t)(code - (code == DYNAMIC_MAP_ZERO && y < 0.0f));
			if (R == RULE_ADAM)
				v8.code[first + k] = nearest(middle[1], v[k] / (largest_v > 0.0f ? largest_v : 1.0f));
		}
	}
}

static struct moment_8 moment_of(float *at, const struct states_8 *l, int64_t block, int64_t code)
{
	return at ? moment_8{at + block, (uint8_t *)at + l->codes_B + code} : moment_8{NULL, NULL};
}

/* The state of elements [first, first + n), without moments. */
template <class P, class G> static struct state<P, G> part_of(const struct state<P, G> *s, int64_t first, int64_t n) {
	return {s->p + first, s->g + first, NULL, NULL, s->master ? s->master + first : NULL, n, s->step, false};
}

template <int R, class P, class G>
static enum status run_8(const struct cuda_env *env, const struct op *op, const struct state<P, G> *s,
	const struct rates *c, struct error *e)
{
	const int64_t from = op->update.wide_from, to = op->update.wide_to, first[2] = {0, to},
		      n[2] = {from, op->update.elements - to};
	const struct states_8 l = states_8_of(op->update.elements, from, to);
	enum status st = ST_OK;
	for (int k = 0; k < 2 && !st; k++)
		if (n[k] > 0)
			st = start<optimizer_8_kernel<P, G, R>>(env->stream, stream_grid(env, n[k], OPTIMIZER_BLOCK),
				OPTIMIZER_BLOCK, e, part_of(s, first[k], n[k]),
				moment_of(s->m, &l, k ? l.blocks[0] : 0, k ? from : 0),
				moment_of(s->v, &l, k ? l.blocks[0] : 0, k ? from : 0), *c);
	if (st || from == to)
		return st;
	struct state<P, G> wide = part_of(s, from, to - from);
	wide.m = s->m ? s->m + l.wide_B / sizeof(float) : NULL;
	wide.v = s->v ? s->v + l.wide_B / sizeof(float) : NULL;
	return run_fused<R>(env, &wide, c, e);
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

template <int K, class Y, class X>
__global__ void __launch_bounds__(STREAM_THREADS)
	pass_kernel(Y *y, const X *x, const float *z, int64_t n, struct pass_numbers c, bool spans)
{
	constexpr bool READS_Y = K != PASS_LERP && K != PASS_SQRT && K != PASS_COPY,
		       READS_X = K != PASS_MUL && K != PASS_ADD && K != PASS_CORRECT && K != PASS_SIGN;
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

/* A part of the state whose intermediate fits into the scratch memory. The first launch that fails ends the sequence.
 */
struct sequence {
	const struct cuda_env *env;
	int64_t n;
	struct error *e;
	enum status st;
};

template <int K, class Y, class X>
static void pass(struct sequence *q, Y *y, const X *x, const float *z, float a, float b)
{
	const bool spans = span_fits<SPAN>(y) && span_fits<SPAN>(x) && span_fits<SPAN>(z);
	if (!q->st)
		q->st = start<pass_kernel<K, Y, X>>(q->env->stream, stream_grid(q->env, q->n, STREAM_THREADS * SPAN),
			STREAM_THREADS, q->e, y, x, z, q->n, pass_numbers{a, b, q->env->step}, spans);
}

#define NOTHING ((const float *)NULL)

template <int R, class W, class G>
static void passes(struct sequence *q, W *w, const G *g, float *m, float *v, float *between, const struct rates *c)
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
	const enum rule rule = kernels_of(op).rule;
	return !(op->flags & OP_FUSED) && (rule == RULE_ADAM || rule == RULE_LION);
}

extern "C" size_t cuda_scratch_optimizer_B(const struct op *op)
{
	const size_t all = (size_t)op->update.elements * sizeof(float);
	return !has_between(op) ? 0 : all < CHUNK_B ? all : CHUNK_B;
}

template <class T> static T *at_or_null(T *p, int64_t i) { return p ? p + i : NULL; }

template <int R, class P, class G>
static enum status run_passes(const struct cuda_env *env, const struct op *op, const struct state<P, G> *s,
	const struct rates *c, struct error *e)
{
	/* whole vectors of every format, so that all chunks begin as aligned as the first */
	const int64_t room = (int64_t)((env->scratch_B < CHUNK_B ? env->scratch_B : CHUNK_B) / sizeof(float)),
		      chunk = !has_between(op) || room >= s->n ? s->n : room / 8 * 8;
	if (chunk == 0)
		return error_set(e, ST_RUN, "optimizer: no scratch memory");
	struct sequence q = {env, 0, e, ST_OK};
	for (int64_t i = 0; i < s->n && !q.st; i += chunk) {
		q.n = s->n - i < chunk ? s->n - i : chunk;
		if (s->master) {
			passes<R>(&q, s->master + i, s->g + i, at_or_null(s->m, i), at_or_null(s->v, i),
				(float *)env->scratch, c);
			pass<PASS_COPY>(&q, s->p + i, (const float *)(s->master + i), NOTHING, 0.0f, 0.0f);
		} else {
			passes<R>(&q, s->p + i, s->g + i, at_or_null(s->m, i), at_or_null(s->v, i),
				(float *)env->scratch, c);
		}
	}
	return q.st;
}

/* ---- */

template <int R>
static enum status run_rule(const struct cuda_env *env, const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS],
	float decay, struct error *e)
{
	return with_formats(arg[0].dtype, arg[1].dtype, e, [&](auto x, auto y) {
		using P = typename decltype(x)::type;
		using G = typename decltype(y)::type;
		struct state<P, G> s = {
			(P *)arg[0].at, (const G *)arg[1].at, (float *)arg[2].at, (float *)arg[3].at,
				(float *)arg[4].at, op->update.elements, env->step, false
		};
		s.spans = span_fits<SPAN>(s.p) && span_fits<SPAN>(s.g) && span_fits<SPAN>(s.m) &&
		          span_fits<SPAN>(s.v) && span_fits<SPAN>(s.master);
		const struct rates c = {1.0f - decay, (float)log((double)ADAM_BETA1), (float)log((double)ADAM_BETA2)};
		if constexpr (R != RULE_PLAIN)
			if (op->flags & OP_STATES_8)
				return run_8<R>(env, op, &s, &c, e);
		return op->flags & OP_FUSED ? run_fused<R>(env, &s, &c, e) : run_passes<R>(env, op, &s, &c, e);
	});
}

static enum status optimizer_check(const struct op *op, const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const struct op_kind_info *info = op_kind_info((enum op_kind)op->kind);
	const struct optimizer_traits *o = &optimizer_traits[op->optimizer];
	const bool stateless = o->runs_stateless && !(op->flags & OP_STATES_8);
	if (kernels_of(op).rule == RULE_NONE)
		return error_set(e, ST_RUN, "the GPU has no kernel for optimizer %s", o->name);
	if (!stateless && ((o->moments > 0 && !arg[2].at) || (o->moments > 1 && !arg[3].at)))
		return error_set(e, ST_RUN, "optimizer %s without its state", o->name);
	for (int i = 2; i < 5; i++)
		if (arg[i].at && arg[i].dtype != DT_FP32)
			return error_set(e, ST_RUN, "optimizer: no kernel for %s as %s, only as fp32",
				info->arg[i].name, dtype_name(arg[i].dtype));
	return ST_OK;
}

extern "C" enum status launch_optimizer(const struct cuda_env *env, const struct op *op,
	const struct cuda_arg arg[OP_MAX_ARGS], struct error *e)
{
	const enum status st = op->update.elements ? optimizer_check(op, arg, e) : ST_OK;
	if (st || op->update.elements == 0)
		return st;
	const struct optimizer_kernels k = kernels_of(op);
	switch (k.rule) {
	case RULE_ADAM: return run_rule<RULE_ADAM>(env, op, arg, k.decay, e);
	case RULE_LION: return run_rule<RULE_LION>(env, op, arg, k.decay, e);
	case RULE_SGD:
		if (arg[2].at)
			return run_rule<RULE_SGD>(env, op, arg, k.decay, e);
		return run_rule<RULE_PLAIN>(env, op, arg, k.decay, e);
	case RULE_PLAIN:
	case RULE_NONE: break;
	}
	return ST_OK;
}
