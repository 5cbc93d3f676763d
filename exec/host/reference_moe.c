/* Experts once more, slow and plain, in double. */
#include <math.h>
#include <string.h>

#include "exec/host/reference_private.h"

/* ---- routing ---- */

/* How many logits stand before expert e's: larger ones, and equal ones of lower numbers. */
static int64_t rank_of(const double *logits, int64_t E, int64_t e)
{
	int64_t before = 0;
	for (int64_t i = 0; i < E; i++)
		before += logits[i] > logits[e] || (logits[i] == logits[e] && i < e);
	return before;
}

static int64_t choice_of(const double *logits, int64_t E, int64_t place)
{
	int64_t e = 0;
	while (rank_of(logits, E, e) != place)
		e++;
	return e;
}

REFERENCE(ref_route)
{
	UNUSED();
	const int64_t R = op->route.rows, E = op->route.experts, k = op->route.choices, C = op->route.capacity;
	double *gates = arg[1];
	int32_t *slots = arg[2], *taken = arg[3];
	memset(taken, 0xff, (size_t)(E * C) * sizeof *taken);
	for (int64_t j = 0; j < k; j++)
		for (int64_t r = 0; r < R; r++) {
			const double *logits = (double *)arg[0] + r * E;
			int64_t own = choice_of(logits, E, j), place = 0;
			double sum = 0.0;
			for (int64_t i = 0; i < E; i++)
				sum += k == 1 || rank_of(logits, E, i) < k ? exp(logits[i] - logits[own]) : 0.0;
			gates[r * k + j] = 1.0 / sum;
			while (place < C && taken[own * C + place] >= 0)
				place++;
			slots[r * k + j] = (int32_t)(place < C ? own * C + place : -1 - own);
			if (place < C)
				taken[own * C + place] = (int32_t)(r * k + j);
		}
	return ST_OK;
}

/* The slope of every gate by every logit that its softmax has. */
REFERENCE(ref_route_grad)
{
	UNUSED();
	const int64_t R = op->route.rows, E = op->route.experts, k = op->route.choices, C = op->route.capacity;
	const int32_t *slots = arg[2];
	for (int64_t r = 0; r < R; r++) {
		const double *logits = (double *)arg[0] + r * E, *gates = (double *)arg[1] + r * k;
		double *out = (double *)arg[4] + r * E;
		for (int64_t i = 0; i < E; i++) {
			out[i] = 0.0;
			for (int64_t j = 0; j < k; j++) {
				int32_t slot = slots[r * k + j];
				int64_t own = slot < 0 ? -1 - slot : slot / C;
				bool in_softmax = k == 1 || rank_of(logits, E, i) < k;
				double p = in_softmax ? gates[j] * exp(logits[i] - logits[own]) : 0.0;
				out[i] += slot < 0 ? 0.0
				                   : ((double *)arg[3])[slot] * gates[j] * ((i == own ? 1.0 : 0.0) - p);
			}
		}
	}
	return ST_OK;
}

/* ---- rows to slots and back ---- */

REFERENCE(ref_dispatch)
{
	UNUSED();
	const int64_t cols = op->dispatch.cols;
	const int32_t *taken = arg[1];
	for (int64_t i = 0; i < op->dispatch.slots * cols; i++)
		((double *)arg[2])[i] =
			taken[i / cols] < 0
				? 0.0
				: ((double *)arg[0])[taken[i / cols] / op->dispatch.choices * cols + i % cols];
	return ST_OK;
}

REFERENCE(ref_combine)
{
	UNUSED();
	const int64_t cols = op->dispatch.cols, k = op->dispatch.choices;
	const int32_t *slots = arg[1];
	const double *gates = arg[2];
	double *x = arg[3];
	for (int64_t i = 0; i < op->dispatch.rows * cols; i++) {
		x[i] = op->flags & OP_ACCUMULATE ? x[i] : 0.0;
		for (int64_t j = i / cols * k; j < (i / cols + 1) * k; j++)
			x[i] += slots[j] < 0
			                ? 0.0
			                : (gates ? gates[j] : 1.0) * ((double *)arg[0])[slots[j] * cols + i % cols];
	}
	return ST_OK;
}

REFERENCE(ref_combine_grad)
{
	UNUSED();
	const int64_t cols = op->dispatch.cols;
	const int32_t *taken = arg[2];
	for (int64_t s = 0; s < op->dispatch.slots; s++) {
		double *dgate = (double *)arg[5] + s;
		*dgate = 0.0;
		for (int64_t i = 0; i < cols; i++) {
			double d = taken[s] < 0 ? 0.0 : ((double *)arg[1])[taken[s] / op->dispatch.choices * cols + i];
			((double *)arg[4])[s * cols + i] = taken[s] < 0 ? 0.0 : ((double *)arg[3])[taken[s]] * d;
			*dgate += taken[s] < 0 ? 0.0 : d * ((double *)arg[0])[s * cols + i];
		}
	}
	return ST_OK;
}

REFERENCE(ref_swap)
{
	UNUSED();
	const int64_t a = op->swap.outer, b = op->swap.inner, cols = op->swap.cols;
	for (int64_t i = 0; i < a; i++)
		for (int64_t j = 0; j < b; j++)
			memcpy((double *)arg[1] + (j * a + i) * cols, (double *)arg[0] + (i * b + j) * cols,
				(size_t)cols * sizeof(double));
	return ST_OK;
}

REFERENCE(ref_grouped_gemm)
{
	struct op one = *op;
	const int64_t m = op->gemm.m, n = op->gemm.n, k = op->gemm.k;
	enum status st = ST_OK;
	one.kind = OP_GEMM;
	for (int64_t g = 0; g < op->gemm.groups && !st; g++)
		st = ref_gemm(env, &one,
			(void *const[]){(double *)arg[0] + g * m * k, (double *)arg[1] + g * n * k, NULL,
				(double *)arg[2] + g * m * n},
			e);
	return st;
}
