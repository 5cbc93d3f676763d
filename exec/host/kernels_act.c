#include <assert.h>

#include "base/array.h"
#include "exec/host/kernels_math.h"
#include "exec/host/kernels_private.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* gelu, tanh form: x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), which is x sigmoid(2 u). */
#define GELU_2A 1.5957691216f  /* 2 sqrt(2/pi) */
#define GELU_2AC 0.0713548163f /* 2 sqrt(2/pi) 0.044715 */

enum shape { GELU, RELU, SQUARED_RELU, SILU, TANH };

ALWAYS_INLINE float value(enum shape s, float x)
{
	if (s == GELU)
		return x * fast_sigmoidf(x * (GELU_2A + GELU_2AC * x * x));
	if (s == SILU)
		return x * fast_sigmoidf(x);
	if (s == TANH)
		return 2.0f * fast_sigmoidf(2.0f * x) - 1.0f;
	float positive = x > 0.0f ? x : 0.0f;
	return s == RELU ? positive : positive * positive;
}

ALWAYS_INLINE float derivative(enum shape s, float x)
{
	if (s == GELU) {
		float p = fast_sigmoidf(x * (GELU_2A + GELU_2AC * x * x));
		return p + x * p * (1.0f - p) * (GELU_2A + 3.0f * GELU_2AC * x * x);
	}
	if (s == SILU) {
		float p = fast_sigmoidf(x);
		return p + x * p * (1.0f - p);
	}
	if (s == TANH) {
		float p = fast_sigmoidf(2.0f * x);
		return 4.0f * p * (1.0f - p);
	}
	float positive = x > 0.0f ? x : 0.0f;
	return s == SQUARED_RELU ? 2.0f * positive : x > 0.0f ? 1.0f : 0.0f;
}

/* value and derivative of the gated forms share the sigmoid */
ALWAYS_INLINE void gated(enum shape s, float x, float *y, float *dy)
{
	float p = fast_sigmoidf(s == GELU ? x * (GELU_2A + GELU_2AC * x * x) : x);
	*y = x * p;
	*dy = p + x * p * (1.0f - p) * (s == GELU ? GELU_2A + 3.0f * GELU_2AC * x * x : 1.0f);
}

struct act {
	const float *x, *a, *dy;
	float *out;
	int64_t f;
	enum shape shape;
};

/* Rows [begin, end). The shape is a constant in each of the functions below, so that the inner loops have no branches.
 */
typedef void rows_fn(const struct act *a, int64_t begin, int64_t end);

ALWAYS_INLINE void plain_rows(enum shape s, const struct act *a, int64_t begin, int64_t end)
{
	const float *x = a->x;
	float *out = a->out;
#pragma GCC ivdep
	for (int64_t i = begin * a->f; i < end * a->f; i++)
		out[i] = value(s, x[i]);
}

ALWAYS_INLINE void plain_grad_rows(enum shape s, const struct act *a, int64_t begin, int64_t end)
{
	const float *x = a->x, *dy = a->dy;
	float *out = a->out;
#pragma GCC ivdep
	for (int64_t i = begin * a->f; i < end * a->f; i++)
		out[i] = dy[i] * derivative(s, x[i]);
}

ALWAYS_INLINE void gated_rows(enum shape s, const struct act *a, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++) {
		const float *gate = a->x + r * 2 * a->f, *up = gate + a->f;
		float *out = a->out + r * a->f;
#pragma GCC ivdep
		for (int64_t i = 0; i < a->f; i++)
			out[i] = value(s, gate[i]) * up[i];
	}
}

ALWAYS_INLINE void gated_grad_rows(enum shape s, const struct act *a, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++) {
		const float *gate = a->x + r * 2 * a->f, *up = gate + a->f, *dy = a->dy + r * a->f;
		float *dgate = a->out + r * 2 * a->f, *dup = dgate + a->f;
#pragma GCC ivdep
		for (int64_t i = 0; i < a->f; i++) {
			float y, slope, d = dy[i];
			gated(s, gate[i], &y, &slope);
			dgate[i] = d * up[i] * slope;
			dup[i] = d * y;
		}
	}
}

ALWAYS_INLINE void gate_rows(enum shape s, const struct act *a, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++) {
		const float *gate = a->x + r * 2 * a->f;
		float *out = a->out + r * a->f;
#pragma GCC ivdep
		for (int64_t i = 0; i < a->f; i++)
			out[i] = value(s, gate[i]);
	}
}

#define ROWS(name, rows, shape) \
	static void name(const struct act *a, int64_t begin, int64_t end) { rows(shape, a, begin, end); }
ROWS(gelu_rows, plain_rows, GELU)
ROWS(relu_rows, plain_rows, RELU)
ROWS(squared_relu_rows, plain_rows, SQUARED_RELU)
ROWS(tanh_rows, plain_rows, TANH)
ROWS(silu_rows, plain_rows, SILU)
ROWS(swiglu_rows, gated_rows, SILU)
ROWS(geglu_rows, gated_rows, GELU)
ROWS(gelu_grad_rows, plain_grad_rows, GELU)
ROWS(relu_grad_rows, plain_grad_rows, RELU)
ROWS(squared_relu_grad_rows, plain_grad_rows, SQUARED_RELU)
ROWS(tanh_grad_rows, plain_grad_rows, TANH)
ROWS(silu_grad_rows, plain_grad_rows, SILU)
ROWS(swiglu_grad_rows, gated_grad_rows, SILU)
ROWS(geglu_grad_rows, gated_grad_rows, GELU)
ROWS(silu_gate_rows, gate_rows, SILU)
ROWS(gelu_gate_rows, gate_rows, GELU)

struct mlp_rows {
	rows_fn *forward, *grad, *gate; /* gate: of the gated forms alone */
	int halves;                     /* of x, in units of f */
};
static const struct mlp_rows mlps[] = {
	[MLP_GELU] = {gelu_rows, gelu_grad_rows, NULL, 1},
	[MLP_RELU] = {relu_rows, relu_grad_rows, NULL, 1},
	[MLP_SQUARED_RELU] = {squared_relu_rows, squared_relu_grad_rows, NULL, 1},
	[MLP_SWIGLU] = {swiglu_rows, swiglu_grad_rows, silu_gate_rows, 2},
	[MLP_GEGLU] = {geglu_rows, geglu_grad_rows, gelu_gate_rows, 2},
	[ACTIVATION_TANH] = {tanh_rows, tanh_grad_rows, NULL, 1},
	[ACTIVATION_SILU] = {silu_rows, silu_grad_rows, NULL, 1},
};
static_assert(COUNT(mlps) == ACTIVATION_COUNT, "a row for each activation");

struct act_job {
	struct act act;
	rows_fn *rows;
};

static void act_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct act_job *j = ctx;
	j->rows(&j->act, begin, end);
}

static enum status run_rows(const struct host_env *env, const struct op *op, const struct act *a, rows_fn *rows)
{
	struct act_job j = {*a, rows};
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols * mlps[op->mlp].halves), op->matrix.rows,
		act_part, &j);
	return ST_OK;
}

enum status kernel_act(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return run_rows(env, op, &(struct act){.x = arg[0], .out = arg[1], .f = op->matrix.cols},
		mlps[op->mlp].forward);
}

enum status kernel_act_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return run_rows(env, op, &(struct act){.x = arg[0], .dy = arg[1], .out = arg[2], .f = op->matrix.cols},
		mlps[op->mlp].grad);
}

/* ---- rows that count by their weights ---- */

struct weighted {
	struct act act;
	const struct mlp_rows *mlp;
	const float *weights;
	float *dweights; /* NULL: forward */
};

static void weighted_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct weighted *w = ctx;
	const int64_t f = w->act.f, out = w->dweights ? w->mlp->halves * f : f;
	for (int64_t r = begin; r < end; r++) {
		struct act row = {.x = w->act.x + r * w->mlp->halves * f, .out = w->act.out + r * out, .f = f};
		w->mlp->forward(&row, 0, 1);
		if (w->dweights) {
			row.dy = w->act.dy + r * f;
			float dot = 0.0f;
			for (int64_t i = 0; i < f; i++)
				dot += row.dy[i] * row.out[i];
			w->dweights[r] = dot;
			w->mlp->grad(&row, 0, 1);
		}
		const float weight = w->weights[r];
		for (int64_t i = 0; i < out; i++)
			row.out[i] *= weight;
	}
}

static enum status run_weighted(const struct host_env *env, const struct op *op, struct weighted w)
{
	w.act.f = op->matrix.cols;
	w.mlp = &mlps[op->mlp];
	kernel_split(env, kernel_parts(env, op->matrix.rows, op->matrix.cols * w.mlp->halves), op->matrix.rows,
		weighted_part, &w);
	return ST_OK;
}

enum status kernel_weighted_act(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return run_weighted(env, op, (struct weighted){.act = {.x = arg[0], .out = arg[2]}, .weights = arg[1]});
}

enum status kernel_weighted_act_grad(const struct host_env *env, const struct op *op, void *const arg[],
	struct error *e)
{
	(void)e;
	return run_weighted(env, op,
		(struct weighted){.act = {.x = arg[0], .dy = arg[2], .out = arg[3]},
			.weights = arg[1],
			.dweights = arg[4]});
}

enum status kernel_gate_act(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	if (!mlps[op->mlp].gate)
		return error_set(e, ST_RUN, "gate_act of an MLP without a gate");
	return run_rows(env, op, &(struct act){.x = arg[0], .out = arg[1], .f = op->matrix.cols}, mlps[op->mlp].gate);
}

static void gate_mul_rows(const struct act *a, int64_t begin, int64_t end)
{
	for (int64_t r = begin; r < end; r++) {
		const float *up = a->x + r * 2 * a->f + a->f, *act = a->a + r * a->f;
		float *out = a->out + r * a->f;
#pragma GCC ivdep
		for (int64_t i = 0; i < a->f; i++)
			out[i] = act[i] * up[i];
	}
}

enum status kernel_gate_mul(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	return run_rows(env, op, &(struct act){.x = arg[0], .a = arg[1], .out = arg[2], .f = op->matrix.cols},
		gate_mul_rows);
}
