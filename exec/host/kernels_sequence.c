/* The first rows of each sequence: taken out, put before. */
#include <string.h>

#include "exec/host/kernels_private.h"

struct sequence {
	const float *from, *w;
	float *to, *dw;
	struct op_sequence d;
	bool adds;
};

static size_t bytes_of(const struct sequence *s, int64_t rows) { return (size_t)(rows * s->d.cols) * sizeof(float); }

static void run(const struct host_env *env, struct sequence *s, part_fn *fn)
{
	kernel_split(env, kernel_parts(env, s->d.batch, s->d.seq * s->d.cols), s->d.batch, fn, s);
}

static void pick_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct sequence *s = ctx;
	const int64_t first = s->d.first * s->d.cols, all = s->d.seq * s->d.cols;
	for (int64_t b = begin; b < end; b++)
		memcpy(s->to + b * first, s->from + b * all, bytes_of(s, s->d.first));
}

enum status kernel_pick(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct sequence s = {.from = arg[0], .to = arg[1], .d = op->sequence};
	run(env, &s, pick_part);
	return ST_OK;
}

static void pick_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct sequence *s = ctx;
	const int64_t first = s->d.first * s->d.cols, all = s->d.seq * s->d.cols;
	for (int64_t b = begin; b < end; b++) {
		const float *restrict dy = s->from + b * first;
		float *restrict dx = s->to + b * all;
		if (!s->adds) {
			memcpy(dx, dy, bytes_of(s, s->d.first));
			memset(dx + first, 0, bytes_of(s, s->d.seq - s->d.first));
			continue;
		}
		for (int64_t i = 0; i < first; i++)
			dx[i] += dy[i];
	}
}

enum status kernel_pick_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct sequence s = {.from = arg[0], .to = arg[1], .d = op->sequence, .adds = op->flags & OP_ACCUMULATE};
	run(env, &s, pick_grad_part);
	return ST_OK;
}

static void prepend_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct sequence *s = ctx;
	const int64_t first = s->d.first * s->d.cols, all = s->d.seq * s->d.cols;
	for (int64_t b = begin; b < end; b++) {
		memcpy(s->to + b * all, s->w, bytes_of(s, s->d.first));
		memcpy(s->to + b * all + first, s->from + b * (all - first), bytes_of(s, s->d.seq - s->d.first));
	}
}

enum status kernel_prepend(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct sequence s = {.w = arg[0], .from = arg[1], .to = arg[2], .d = op->sequence};
	run(env, &s, prepend_part);
	return ST_OK;
}

static void prepend_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct sequence *s = ctx;
	const int64_t first = s->d.first * s->d.cols, all = s->d.seq * s->d.cols;
	for (int64_t b = begin; b < end; b++)
		memcpy(s->to + b * (all - first), s->from + b * all + first, bytes_of(s, s->d.seq - s->d.first));
}

/* Sequences in order, so that the sum does not depend on the threads: a few rows. */
static void sum_first(const struct sequence *s)
{
	if (!s->adds)
		memset(s->dw, 0, bytes_of(s, s->d.first));
	for (int64_t b = 0; b < s->d.batch; b++)
		for (int64_t i = 0; i < s->d.first * s->d.cols; i++)
			s->dw[i] += s->from[b * s->d.seq * s->d.cols + i];
}

enum status kernel_prepend_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct sequence s = {.from = arg[0],
		.dw = arg[1],
		.to = arg[2],
		.d = op->sequence,
		.adds = op->flags & OP_ACCUMULATE};
	run(env, &s, prepend_grad_part);
	if (s.dw)
		sum_first(&s);
	return ST_OK;
}
