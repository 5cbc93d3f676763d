#include <string.h>

#include "exec/host/kernels_private.h"

/* Columns [begin, end) of all rows, or rows [begin, end) of all columns: gathers are cut by rows; scatter-adds by
 * columns, so that two tokens with the same id never meet and the order of the sums does not depend on the threads. */
struct embed {
	const int32_t *tokens;
	const float *w, *type, *dy;
	float *y, *dw, *dtype;
	int64_t T, cols, first, rows, s,
		token0; /* s: this rank's rows of a sequence; token0: the row among the rank's tokens that row 0 is */
	struct cut cut;
};

/* The row of this rank's table that token t reads, or -1. */
static int64_t table_row(const struct embed *m, int64_t t)
{
	int64_t row = m->tokens[t] - m->first;
	return row >= 0 && row < m->rows ? row : -1;
}

static enum status embed_setup(struct embed *m, const struct host_env *env, const struct op *op, struct error *e)
{
	m->T = op->embed.rows;
	m->cols = op->embed.cols;
	m->rows = op->embed.table_rows;
	if (op->flags & OP_VOCAB_PARALLEL) {
		m->first = env->tensor_coord * m->rows;
		return ST_OK;
	}
	for (int64_t t = 0; t < m->T; t++)
		if (table_row(m, t) < 0)
			return error_set(e, ST_RUN, "token %lld is %d, the table has %lld rows", (long long)t,
				m->tokens[t], (long long)m->rows);
	return ST_OK;
}

static void embed_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct embed *m = ctx;
	const size_t bytes = (size_t)m->cols * sizeof(float);
	for (int64_t t = begin; t < end; t++) {
		int64_t row = table_row(m, t);
		if (row >= 0)
			memcpy(m->y + t * m->cols, m->w + row * m->cols, bytes);
		else
			memset(m->y + t * m->cols, 0, bytes);
	}
}

enum status kernel_embed(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct embed m = {.tokens = arg[0], .w = arg[1], .y = arg[2]};
	enum status st = embed_setup(&m, env, op, e);
	if (st)
		return st;
	kernel_split(env, kernel_parts(env, m.T, m.cols), m.T, embed_part, &m);
	return ST_OK;
}

static void add_columns(float *restrict to, const float *restrict from, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		to[i] += from[i];
}

/* Parts of whole cache lines of columns. */
static void split_columns(const struct host_env *env, const struct embed *m, part_fn *fn)
{
	int64_t lines = padded(m->cols) / 16;
	kernel_split(env, kernel_parts_summed(env, lines, m->T * 16), lines, fn, (void *)m);
}

static int64_t column(const struct embed *m, int64_t line) { return line * 16 < m->cols ? line * 16 : m->cols; }

static void embed_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct embed *m = ctx;
	for (int64_t t = 0; t < m->T; t++) {
		int64_t row = table_row(m, t);
		if (row >= 0)
			add_columns(m->dw + row * m->cols, m->dy + t * m->cols, column(m, begin), column(m, end));
	}
}

enum status kernel_embed_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	struct embed m = {.tokens = arg[0], .dy = arg[1], .dw = arg[2]};
	enum status st = embed_setup(&m, env, op, e);
	if (st)
		return st;
	split_columns(env, &m, embed_grad_part);
	return ST_OK;
}

static struct embed position_setup(const struct host_env *env, const struct op *op)
{
	return (struct embed){.T = op->embed.rows,
		.cols = op->embed.cols,
		.s = op->embed.table_rows / cut_ranks(&env->cut),
		.token0 = op->flags & OP_SEQUENCE_PARALLEL ? env->tensor_coord * op->embed.rows : 0,
		.cut = env->cut};
}

static int64_t position_of(const struct embed *m, int64_t t)
{
	return cut_position(&m->cut, m->s, (m->token0 + t) % m->s);
}

static void position_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct embed *m = ctx;
	for (int64_t t = begin; t < end; t++) {
		const float *restrict w = m->w ? m->w + position_of(m, t) * m->cols : NULL, *restrict type = m->type;
		float *restrict x = m->y + t * m->cols;
		if (w && type)
			for (int64_t i = 0; i < m->cols; i++)
				x[i] += w[i] + type[i];
		else if (w || type)
			add_columns(x, w ? w : type, 0, m->cols);
	}
}

enum status kernel_position(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct embed m = position_setup(env, op);
	m.w = arg[0];
	m.type = arg[1];
	m.y = arg[2];
	kernel_split(env, kernel_parts(env, m.T, m.cols), m.T, position_part, &m);
	return ST_OK;
}

static void position_grad_part(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct embed *m = ctx;
	for (int64_t t = 0; t < m->T; t++) {
		const float *dx = m->dy + t * m->cols;
		if (m->dw)
			add_columns(m->dw + position_of(m, t) * m->cols, dx, column(m, begin), column(m, end));
		if (m->dtype)
			add_columns(m->dtype, dx, column(m, begin), column(m, end));
	}
}

enum status kernel_position_grad(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	struct embed m = position_setup(env, op);
	m.dy = arg[0];
	m.dw = arg[1];
	m.dtype = arg[2];
	split_columns(env, &m, position_grad_part);
	return ST_OK;
}
