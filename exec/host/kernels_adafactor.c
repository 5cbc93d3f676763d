/* Adafactor's ops (step/ops.def). What lies where in sums and factors: step/factored.h. */
#include <math.h>
#include <string.h>

#include "exec/host/kernels_private.h"
#include "step/factored.h"

struct factored {
	const struct factored_tensor *t;
	const float *g;
	float *w, *p;       /* w: the master copy where there is one, else p itself */
	float *row, *col;   /* of the tensor: sums, or factors */
	float *v;           /* of a vector's elements */
	double *partial;    /* a sum a part */
	float decay, scale; /* of means; of a step */
	float share;        /* one over the sum of all squares of a matrix */
};

/* ---- a tensor's elements row by row ---- */

/* Columns [begin, end) of row `row` of the tensor that this rank has, and where they stand in its part. */
struct stretch {
	int64_t begin, end, at;
};

static int64_t first_row(const struct factored_tensor *t) { return t->from / t->cols; }

static int64_t rows_here(const struct factored_tensor *t)
{
	return t->n > 0 ? (t->from + t->n - 1) / t->cols - first_row(t) + 1 : 0;
}

static struct stretch stretch_of(const struct factored_tensor *t, int64_t row)
{
	const int64_t begin = row * t->cols < t->from ? t->from - row * t->cols : 0,
		      left = t->from + t->n - row * t->cols;
	return (struct stretch){begin, left < t->cols ? left : t->cols, t->begin + row * t->cols - t->from};
}

/* ---- sums ---- */

static void row_sums(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct factored *f = ctx;
	for (int64_t r = first_row(f->t) + begin; r < first_row(f->t) + end; r++) {
		const struct stretch s = stretch_of(f->t, r);
		const float *g = f->g + s.at;
		double sum = 0;
		for (int64_t c = s.begin; c < s.end; c++)
			sum += (double)g[c] * (double)g[c];
		f->row[r] = (float)sum;
	}
}

/* Columns [from, to), so that no two threads add to one. */
static void col_sums(void *ctx, int64_t from, int64_t to, int part, int thread)
{
	(void)part, (void)thread;
	const struct factored *f = ctx;
	for (int64_t r = first_row(f->t), end = r + rows_here(f->t); r < end; r++) {
		const struct stretch s = stretch_of(f->t, r);
		const float *g = f->g + s.at;
		float *col = f->col;
		const int64_t last = s.end < to ? s.end : to;
		for (int64_t c = s.begin > from ? s.begin : from; c < last; c++)
			col[c] += g[c] * g[c];
	}
}

static double squares(const float *w, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += (double)w[i] * (double)w[i];
	return sum;
}

enum status kernel_adafactor_sums(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_SUMS_bounds];
	float *sums = arg[ARG_ADAFACTOR_SUMS_sums];
	const float *w = arg[ARG_ADAFACTOR_SUMS_master] ? arg[ARG_ADAFACTOR_SUMS_master] : arg[ARG_ADAFACTOR_SUMS_w];
	memset(sums, 0, (size_t)op->factored.sums * sizeof *sums);
	for (int64_t i = 0; i < op->factored.tensors; i++, t++) {
		struct factored f = {.t = t,
			.g = arg[ARG_ADAFACTOR_SUMS_g],
			.row = sums + t->at_row,
			.col = sums + t->at_col};
		sums[t->at_sum] = (float)squares(w + t->begin, t->n);
		if (t->n == 0 || t->cols == 1)
			continue;
		const int64_t rows = rows_here(t);
		kernel_split(env, kernel_parts(env, rows, t->cols), rows, row_sums, &f);
		kernel_split(env, kernel_parts(env, t->cols, rows), t->cols, col_sums, &f);
	}
	return ST_OK;
}

/* ---- norms ---- */

/* The mean's weight of what was: 1 - step^-0.8 (algorithm 4; section 7.2). */
static float decay_of(const struct host_env *env)
{
	return (float)(1 - pow((double)env->step, -(double)ADAFACTOR_DECAY));
}

static void mean(float *factor, const float *sum, int64_t n, float decay, int64_t summed)
{
	for (int64_t i = 0; i < n; i++)
		factor[i] = decay * factor[i] + (1.0f - decay) * (sum[i] + (float)summed * ADAFACTOR_EPS);
}

/* One over the sum of all squares, by the factors that no tensor group cuts. */
static float share_of(const struct factored *f)
{
	const bool by_cols = f->t->cols == f->t->all_cols;
	const int64_t n = by_cols ? f->t->cols : f->t->rows;
	const float *x = by_cols ? f->col : f->row;
	double sum = 0;
	for (int64_t k = 0; k < n; k++)
		sum += (double)x[k];
	return (float)(1 / sum);
}

/* u of a row's columns is g by_row / sqrt(column). */
static float by_row(const struct factored *f, int64_t row) { return 1.0f / sqrtf(f->row[row] * f->share); }

static void matrix_norm(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct factored *f = ctx;
	double sum = 0;
	for (int64_t r = first_row(f->t) + begin; r < first_row(f->t) + end; r++) {
		const struct stretch s = stretch_of(f->t, r);
		const float *g = f->g + s.at, scale = by_row(f, r);
		for (int64_t c = s.begin; c < s.end; c++) {
			const float u = g[c] * scale / sqrtf(f->col[c]);
			sum += (double)u * (double)u;
		}
	}
	f->partial[part] = sum;
}

static void vector_norm(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)thread;
	const struct factored *f = ctx;
	const float *g = f->g + f->t->begin;
	double sum = 0;
	for (int64_t i = begin; i < end; i++) {
		f->v[i] = f->decay * f->v[i] + (1.0f - f->decay) * (g[i] * g[i] + ADAFACTOR_EPS);
		const float u = g[i] / sqrtf(f->v[i]);
		sum += (double)u * (double)u;
	}
	f->partial[part] = sum;
}

size_t scratch_adafactor_norms(const struct op *op, int threads)
{
	(void)op;
	return (size_t)threads * sizeof(double);
}

enum status kernel_adafactor_norms(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_NORMS_bounds];
	const float *sums = arg[ARG_ADAFACTOR_NORMS_sums], decay = decay_of(env);
	float *factors = arg[ARG_ADAFACTOR_NORMS_factors], *norms = arg[ARG_ADAFACTOR_NORMS_norms],
	      *v = arg[ARG_ADAFACTOR_NORMS_v];
	for (int64_t i = 0; i < op->factored.tensors; i++, t++) {
		const bool vector = t->cols == 1;
		struct factored f = {.t = t,
			.g = arg[ARG_ADAFACTOR_NORMS_g],
			.row = factors + t->at_row,
			.col = factors + t->at_col,
			.v = vector ? v + t->at_vector : NULL,
			.partial = env->scratch,
			.decay = decay};
		if (!vector) {
			mean(f.row, sums + t->at_row, t->rows, decay, t->all_cols);
			mean(f.col, sums + t->at_col, t->cols, decay, t->all_rows);
			f.share = share_of(&f);
		}
		const int64_t rows = vector ? t->n : rows_here(t);
		const int parts = rows > 0 ? kernel_parts_summed(env, rows, t->cols) : 0;
		double sum = 0;
		if (parts > 0)
			kernel_split(env, parts, rows, vector ? vector_norm : matrix_norm, &f);
		for (int k = 0; k < parts; k++)
			sum += f.partial[k];
		norms[i] = (float)sum;
	}
	return ST_OK;
}

/* ---- step ---- */

static void update(const struct factored *f, int64_t at, float u)
{
	const float x = f->w[at] - f->scale * u;
	f->w[at] = x;
	f->p[at] = x;
}

static void matrix_step(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct factored *f = ctx;
	for (int64_t r = first_row(f->t) + begin; r < first_row(f->t) + end; r++) {
		const struct stretch s = stretch_of(f->t, r);
		const float scale = by_row(f, r);
		for (int64_t c = s.begin; c < s.end; c++)
			update(f, s.at + c, f->g[s.at + c] * scale / sqrtf(f->col[c]));
	}
}

static void vector_step(void *ctx, int64_t begin, int64_t end, int part, int thread)
{
	(void)part, (void)thread;
	const struct factored *f = ctx;
	for (int64_t i = begin; i < end; i++)
		update(f, f->t->begin + i, f->g[f->t->begin + i] / sqrtf(f->v[i]));
}

/* The tensor's learning rate over what clips its step. */
static float scale_of(double w_squares, double u_squares, double elements)
{
	const double size = sqrt(w_squares / elements), longest = sqrt(u_squares / elements) / (double)ADAFACTOR_CLIP;
	return (float)((double)ADAFACTOR_LR * fmax((double)ADAFACTOR_LEAST, size) / fmax(1, longest));
}

enum status kernel_adafactor_step(const struct host_env *env, const struct op *op, void *const arg[], struct error *e)
{
	(void)e;
	const struct factored_tensor *t = arg[ARG_ADAFACTOR_STEP_bounds];
	const float *sums = arg[ARG_ADAFACTOR_STEP_sums], *norms = arg[ARG_ADAFACTOR_STEP_norms];
	float *factors = arg[ARG_ADAFACTOR_STEP_factors], *v = arg[ARG_ADAFACTOR_STEP_v];
	for (int64_t i = 0; i < op->factored.tensors; i++, t++) {
		const bool vector = t->cols == 1;
		struct factored f = {.t = t,
			.g = arg[ARG_ADAFACTOR_STEP_g],
			.p = arg[ARG_ADAFACTOR_STEP_w],
			.w = arg[ARG_ADAFACTOR_STEP_master] ? arg[ARG_ADAFACTOR_STEP_master]
		                                            : arg[ARG_ADAFACTOR_STEP_w],
			.row = factors + t->at_row,
			.col = factors + t->at_col,
			.v = vector ? v + t->at_vector : NULL,
			.scale = scale_of((double)sums[t->at_sum], (double)norms[i], (double)t->elements)};
		const int64_t rows = vector ? t->n : rows_here(t);
		f.share = vector ? 0 : share_of(&f);
		if (rows > 0)
			kernel_split(env, kernel_parts(env, rows, t->cols), rows, vector ? vector_step : matrix_step,
				&f);
	}
	return ST_OK;
}
