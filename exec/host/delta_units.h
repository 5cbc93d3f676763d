/* Keys and queries of delta rules, which have the length 1 and 1 / sqrt(N): those of a group, and their gradients. */
#ifndef STEPSIM_EXEC_HOST_DELTA_UNITS_H
#define STEPSIM_EXEC_HOST_DELTA_UNITS_H

#include <math.h>
#include <string.h>

#include "exec/host/ssm_jobs.h"

/* The columns of a group in the first row of a sequence's xbc: values, then k [N] and q [N]. */
static inline const float *delta_group(const struct scan_job *j, int64_t sequence, int64_t g)
{
	return j->xbc + sequence * j->s.seq * j->s.conv_row + g * j->s.conv;
}

static inline float inverse_length(const float *x, int64_t N) { return 1.0f / sqrtf(row_dot(x, x, N) + UNIT_EPS); }

/* Fills k and q [seq, N]. */
static inline void delta_units(const struct scan_job *j, int64_t sequence, int64_t g, float *k, float *q)
{
	const struct shape *s = &j->s;
	const int64_t N = s->N;
	const float scale = 1.0f / sqrtf((float)N);
	for (int64_t t = 0; t < s->seq; t++) {
		const float *of = delta_group(j, sequence, g) + t * s->conv_row + s->x;
		const float by_k = inverse_length(of, N), by_q = scale * inverse_length(of + N, N);
		for (int64_t i = 0; i < N; i++) {
			k[t * N + i] = of[i] * by_k;
			q[t * N + i] = of[N + i] * by_q;
		}
	}
}

/* The gradients of k and q in the first row of a sequence's dxbc. */
static inline float *delta_units_at(const struct scan_job *j, int64_t sequence, int64_t g)
{
	return j->dxbc + sequence * j->s.seq * j->s.conv_row + g * j->s.conv + j->s.x;
}

static inline void delta_units_clear(const struct scan_job *j, int64_t sequence, int64_t g)
{
	float *d = delta_units_at(j, sequence, g);
	for (int64_t t = 0; t < j->s.seq; t++)
		memset(d + t * j->s.conv_row, 0, (size_t)(2 * j->s.N) * sizeof *d);
}

/* Turns the gradient of u = scale x / |x| into that of x. */
static inline void unit_grad(const float *x, const float *u, float scale, int64_t N, float *d)
{
	const float inverse = inverse_length(x, N), along = row_dot(u, d, N) / scale;
	for (int64_t i = 0; i < N; i++)
		d[i] = inverse * (scale * d[i] - u[i] * along);
}

/* Turns the gradients of k and q [seq, N], which stand in dxbc, into those of xbc's columns. */
static inline void delta_units_grad(const struct scan_job *j, int64_t sequence, int64_t g, const float *k,
	const float *q)
{
	const struct shape *s = &j->s;
	const int64_t N = s->N;
	float *d = delta_units_at(j, sequence, g);
	for (int64_t t = 0; t < s->seq; t++) {
		const float *of = delta_group(j, sequence, g) + t * s->conv_row + s->x;
		unit_grad(of, k + t * N, 1.0f, N, d + t * s->conv_row);
		unit_grad(of + N, q + t * N, 1.0f / sqrtf((float)N), N, d + t * s->conv_row + N);
	}
}

#endif
