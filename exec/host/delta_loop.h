/* The loops of a delta rule over a head's rows, one text for both files of kernels. Whoever includes it has defined
 *   struct head  v with the distance `row` of its rows; k and q [seq, N]
 *   struct room  state [P, N] and, backward, a channel's states in a chunk [chunk + 1, N]; dstate [N]
 *   step         runs a channel's state [N] through row t
 *   row_grad     a channel's gradients in row t. before, after: its states around the row. r->dstate: the gradient of
 *                the state behind it on the way in, of that before it on the way out. Those of the unit key and query
 *                are added to dk and dq. Returns that of v. */
#ifndef STEPSIM_EXEC_HOST_DELTA_LOOP_H
#define STEPSIM_EXEC_HOST_DELTA_LOOP_H

#include "exec/host/delta_units.h"

/* Runs a head through a sequence; j->y NULL: for the states alone. */
static void run_head(const struct scan_job *j, int64_t sequence, int64_t h, const struct head *head,
	const struct room *r)
{
	const struct shape *s = &j->s;
	const int64_t N = s->N;
	memset(r->state, 0, (size_t)(s->P * N) * sizeof *r->state);
	for (int64_t t = 0; t < s->seq; t++) {
		if (t % s->chunk == 0)
			memcpy(scan_states(j, sequence, t / s->chunk, h), r->state,
				(size_t)(s->P * N) * sizeof *r->state);
		for (int64_t p = 0; p < s->P; p++) {
			float *state = r->state + p * N;
			step(state, head, r, t, N, head->v[t * head->row + p]);
			if (j->y)
				j->y[((sequence * s->seq + t) * s->heads + h) * s->P + p] = row_dot(state,
					head->q + t * N, N);
		}
	}
}

/* A channel's gradients in one chunk, rows from the last to the first. r->dstate is that of the state behind it. */
static void channel_grad(const struct scan_job *j, const struct head *head, int64_t sequence, int64_t h, int64_t p,
	int64_t chunk, const struct room *r)
{
	const struct shape *s = &j->s;
	const int64_t N = s->N, first = chunk * s->chunk, g = h / s->per_group;
	const int64_t n = s->seq - first < s->chunk ? s->seq - first : s->chunk;
	float *history = r->state;
	memcpy(history, scan_states(j, sequence, chunk, h) + p * N, (size_t)N * sizeof *history);
	for (int64_t i = 0; i < n; i++) {
		const int64_t t = first + i;
		memcpy(history + (i + 1) * N, history + i * N, (size_t)N * sizeof *history);
		step(history + (i + 1) * N, head, r, t, N, head->v[t * head->row + p]);
	}
	for (int64_t i = n; i-- > 0;) {
		const int64_t t = first + i, row = sequence * s->seq + t;
		float *dv = j->dxbc + row * s->conv_row + g * s->conv, *dk = dv + s->x;
		dv[h % s->per_group * s->P + p] = row_grad(head, t, N, head->v[t * head->row + p],
			j->dy[(row * s->heads + h) * s->P + p], history + i * N, history + (i + 1) * N, r, dk, dk + N);
	}
}

/* The gradients of all channels of a head. */
static void channels_grad(const struct scan_job *j, const struct head *head, int64_t sequence, int64_t h,
	const struct room *r)
{
	for (int64_t p = 0; p < j->s.P; p++) {
		memset(r->dstate, 0, (size_t)j->s.N * sizeof *r->dstate);
		for (int64_t chunk = j->s.chunks; chunk-- > 0;)
			channel_grad(j, head, sequence, h, p, chunk, r);
	}
}

#endif
