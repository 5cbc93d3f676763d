/* Experts: choosing them, bringing rows to their slots and back, and the products of all of a rank's experts. */
#include <math.h>
#include <string.h>

#include "exec/host/kernels_private.h"

/* ---- routing ---- */

struct route {
	const float *logits, *dgates;
	float *gates, *dlogits;
	int32_t *slots, *taken;
	int64_t E, k, C;
};

/* Whether one of the row's first n choices is expert e; slots hold their numbers until places are dealt. */
static bool is_chosen(const int32_t *slots, int64_t n, int64_t e)
{
	for (int64_t j = 0; j < n; j++)
		if (slots[j] == e)
			return true;
	return false;
}

static void choose(const float *logits, int64_t E, int64_t k, int32_t *slots)
{
	for (int64_t j = 0; j < k; j++) {
		int64_t best = -1;
		for (int64_t e = 0; e < E; e++)
			if (!is_chosen(slots, j, e) && (best < 0 || logits[e] > logits[best]))
				best = e;
		slots[j] = (int32_t)best;
	}
}

/* Sum of exp(logit - max) over the experts that share the softmax: the chosen ones, all when one is chosen. */
static float softmax_sum(const float *logits, int64_t E, int64_t k, const int32_t *chosen, float max)
{
	float sum = 0.0f;
	for (int64_t j = 0; j < (k > 1 ? k : E); j++)
		sum += expf(logits[k > 1 ? chosen[j] : j] - max);
	return sum;
}

static void route_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct route *m = ctx;
	for (int64_t r = begin; r < end; r++) {
		const float *logits = m->logits + r * m->E;
		int32_t *chosen = m->slots + r * m->k;
		choose(logits, m->E, m->k, chosen);
		float max = logits[chosen[0]], sum = softmax_sum(logits, m->E, m->k, chosen, max);
		for (int64_t j = 0; j < m->k; j++)
			m->gates[r * m->k + j] = expf(logits[chosen[j]] - max) / sum;
	}
}

/* First choices first, each in the order of rows. */
static void deal_places(const struct route *m, int64_t rows, int64_t *used)
{
	memset(used, 0, (size_t)m->E * sizeof *used);
	for (int64_t i = 0; i < m->E * m->C; i++)
		m->taken[i] = -1;
	for (int64_t j = 0; j < m->k; j++)
		for (int64_t r = 0; r < rows; r++) {
			int32_t *slot = m->slots + r * m->k + j, expert = *slot;
			if (used[expert] == m->C) {
				*slot = -1 - expert;
				continue;
			}
			*slot = (int32_t)(expert * m->C + used[expert]++);
			m->taken[*slot] = (int32_t)(r * m->k + j);
		}
}

size_t scratch_route(const struct op *op, int threads)
{
	(void)threads;
	return (size_t)op->route.experts * sizeof(int64_t);
}

enum status kernel_route(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct route m = {.logits = arg[0],
		.gates = arg[1],
		.slots = arg[2],
		.taken = arg[3],
		.E = op->route.experts,
		.k = op->route.choices,
		.C = op->route.capacity};
	kernel_split(env, kernel_parts(env, op->route.rows, m.E * m.k), op->route.rows, route_part, &m);
	deal_places(&m, op->route.rows, env->scratch);
	return ST_OK;
}

static int64_t expert_of(const struct route *m, int32_t slot) { return slot < 0 ? -1 - (int64_t)slot : slot / m->C; }

/* Of a softmax: dlogit = gate x (dgate - sum of gate x dgate) for the chosen; of one among all: gate x dgate x (its own
 * 1 - p). */
static void route_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct route *m = ctx;
	for (int64_t r = begin; r < end; r++) {
		const float *logits = m->logits + r * m->E, *gates = m->gates + r * m->k;
		const int32_t *slots = m->slots + r * m->k;
		float *out = m->dlogits + r * m->E, mean = 0.0f;
		memset(out, 0, (size_t)m->E * sizeof *out);
		for (int64_t j = 0; j < m->k; j++)
			mean += slots[j] < 0 ? 0.0f : gates[j] * m->dgates[slots[j]];
		if (m->k == 1) {
			int64_t own = expert_of(m, slots[0]);
			for (int64_t i = 0; i < m->E; i++) /* gate x exp(l_i - l_own) is p_i */
				out[i] = mean * ((i == own ? 1.0f : 0.0f) - gates[0] * expf(logits[i] - logits[own]));
			continue;
		}
		for (int64_t j = 0; j < m->k; j++)
			out[expert_of(m, slots[j])] = gates[j] * ((slots[j] < 0 ? 0.0f : m->dgates[slots[j]]) - mean);
	}
}

enum status kernel_route_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct route m = {.logits = arg[0],
		.gates = arg[1],
		.slots = arg[2],
		.dgates = arg[3],
		.dlogits = arg[4],
		.E = op->route.experts,
		.k = op->route.choices,
		.C = op->route.capacity};
	kernel_split(env, kernel_parts(env, op->route.rows, m.E), op->route.rows, route_grad_part, &m);
	return ST_OK;
}

/* ---- rows to slots and back ---- */

struct slots {
	const float *x, *dx, *gates; /* gates: (optional), default 1 each */
	const int32_t *ids;          /* slots of rows, or what takes the slots */
	float *y, *dgates;
	int64_t cols, k;
	bool adds;
};

static void dispatch_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct slots *m = ctx;
	const size_t bytes = (size_t)m->cols * sizeof(float);
	for (int64_t s = begin; s < end; s++) {
		if (m->ids[s] < 0)
			memset(m->y + s * m->cols, 0, bytes);
		else
			memcpy(m->y + s * m->cols, m->x + m->ids[s] / m->k * m->cols, bytes);
	}
}

enum status kernel_dispatch(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct slots m = {.x = arg[0],
		.ids = arg[1],
		.y = arg[2],
		.cols = op->dispatch.cols,
		.k = op->dispatch.choices};
	kernel_split(env, kernel_parts(env, op->dispatch.slots, m.cols), op->dispatch.slots, dispatch_part, &m);
	return ST_OK;
}

static void combine_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct slots *m = ctx;
	for (int64_t r = begin; r < end; r++) {
		float *restrict out = m->y + r * m->cols;
		if (!m->adds)
			memset(out, 0, (size_t)m->cols * sizeof *out);
		for (int64_t j = r * m->k; j < (r + 1) * m->k; j++) {
			if (m->ids[j] < 0)
				continue;
			const float *restrict from = m->x + m->ids[j] * m->cols, gate = m->gates ? m->gates[j] : 1.0f;
			for (int64_t i = 0; i < m->cols; i++)
				out[i] += gate * from[i];
		}
	}
}

enum status kernel_combine(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct slots m = {.x = arg[0],
		.ids = arg[1],
		.gates = arg[2],
		.y = arg[3],
		.cols = op->dispatch.cols,
		.k = op->dispatch.choices,
		.adds = op->flags & OP_ACCUMULATE};
	kernel_split(env, kernel_parts(env, op->dispatch.rows, m.cols * m.k), op->dispatch.rows, combine_part, &m);
	return ST_OK;
}

static void combine_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct slots *m = ctx;
	for (int64_t s = begin; s < end; s++) {
		const int32_t choice = m->ids[s];
		float *restrict out = m->y + s * m->cols, dot = 0.0f;
		if (choice < 0) {
			memset(out, 0, (size_t)m->cols * sizeof *out);
			m->dgates[s] = 0.0f;
			continue;
		}
		const float *restrict d = m->dx + choice / m->k * m->cols, *restrict x = m->x + s * m->cols,
				      gate = m->gates[choice];
		for (int64_t i = 0; i < m->cols; i++) {
			out[i] = gate * d[i];
			dot += d[i] * x[i];
		}
		m->dgates[s] = dot;
	}
}

enum status kernel_combine_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct slots m = {.x = arg[0],
		.dx = arg[1],
		.ids = arg[2],
		.gates = arg[3],
		.y = arg[4],
		.dgates = arg[5],
		.cols = op->dispatch.cols,
		.k = op->dispatch.choices};
	kernel_split(env, kernel_parts(env, op->dispatch.slots, m.cols), op->dispatch.slots, combine_grad_part, &m);
	return ST_OK;
}

/* ---- between ranks and experts ---- */

struct swap {
	const float *x;
	float *y;
	int64_t a, b, cols;
};

static void swap_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct swap *m = ctx;
	for (int64_t i = begin; i < end; i++)
		memcpy(m->y + i * m->cols, m->x + (i % m->a * m->b + i / m->a) * m->cols,
			(size_t)m->cols * sizeof *m->y);
}

enum status kernel_swap(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct swap m = {arg[0], arg[1], op->swap.outer, op->swap.inner, op->swap.cols};
	kernel_split(env, kernel_parts(env, m.a * m.b, m.cols), m.a * m.b, swap_part, &m);
	return ST_OK;
}

enum status kernel_grouped_gemm(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct op one = *op;
	float *A = arg[0], *B = arg[1], *C = arg[2];
	const int64_t m = op->gemm.m, n = op->gemm.n, k = op->gemm.k;
	enum status st = ST_OK;
	one.kind = OP_GEMM;
	for (int64_t g = 0; g < op->gemm.groups && !st; g++)
		st = kernel_gemm(env, &one, (void *const[]){A + g * m * k, B + g * n * k, NULL, C + g * m * n}, e);
	return st;
}
