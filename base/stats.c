#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

double stats_mean(const double *x, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

double stats_min(const double *x, size_t n)
{
	double least = x[0];
	for (size_t i = 1; i < n; i++)
		least = fmin(least, x[i]);
	return least;
}

double stats_max(const double *x, size_t n)
{
	double most = x[0];
	for (size_t i = 1; i < n; i++)
		most = fmax(most, x[i]);
	return most;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double stats_median(double *x, size_t n) { return stats_percentile(x, n, 50); }

double stats_percentile(double *x, size_t n, double p)
{
	qsort(x, n, sizeof *x, ascending);
	double at = p / 100 * (double)(n - 1);
	size_t below = (size_t)at;
	if (below + 1 >= n)
		return x[n - 1];
	double share = at - (double)below;
	return x[below] + share * (x[below + 1] - x[below]);
}

/* The columns are scaled to norm 1 (and y too), so that one stopping rule serves seconds beside bytes. */
struct normal_equations {
	size_t p;
	double gram[STATS_NNLS_MAX][STATS_NNLS_MAX]; /* A'A */
	double target[STATS_NNLS_MAX];               /* A'y */
	double norm[STATS_NNLS_MAX];                 /* of the column; 0: it says nothing and its coefficient stays 0 */
};

static double norm_of(const double *x, size_t n, size_t stride)
{
	double norm = 0;
	for (size_t i = 0; i < n; i++)
		norm = hypot(norm, x[i * stride]);
	return norm;
}

static void normal_equations_build(struct normal_equations *q, const double *a, const double *y, size_t n, size_t p,
	double y_norm)
{
	q->p = p;
	for (size_t j = 0; j < p; j++)
		q->norm[j] = norm_of(a + j, n, p);
	for (size_t j = 0; j < p; j++) {
		double target = 0;
		for (size_t i = 0; i < n && q->norm[j] > 0; i++)
			target += (a[i * p + j] / q->norm[j]) * (y[i] / y_norm);
		q->target[j] = target;
		for (size_t k = 0; k < p; k++) {
			double dot = 0;
			for (size_t i = 0; i < n && q->norm[j] > 0 && q->norm[k] > 0; i++)
				dot += (a[i * p + j] / q->norm[j]) * (a[i * p + k] / q->norm[k]);
			q->gram[j][k] = dot;
		}
	}
}

/* One pass over the coordinates, each set to its exact minimum; returns the largest change. `gradient` is A'A c - A'y.
 */
static double sweep(const struct normal_equations *q, double *c, double *gradient)
{
	double largest = 0;
	for (size_t j = 0; j < q->p; j++) {
		if (q->norm[j] <= 0)
			continue;
		double moved = fmax(0, c[j] - gradient[j] / q->gram[j][j]);
		double change = moved - c[j];
		if (change == 0)
			continue;
		c[j] = moved;
		for (size_t k = 0; k < q->p; k++)
			gradient[k] += change * q->gram[k][j];
		largest = fmax(largest, fabs(change));
	}
	return largest;
}

void stats_nnls(const double *a, const double *y, size_t n, size_t p, double *c)
{
	const size_t sweeps_max = 200000; /* columns that nearly agree converge slowly; a sweep costs p * p */
	const double tolerance = 1e-15;   /* of coefficients whose natural size is 1 */

	for (size_t j = 0; j < p; j++)
		c[j] = 0;
	double y_norm = norm_of(y, n, 1);
	if (y_norm <= 0)
		return;
	struct normal_equations q;
	normal_equations_build(&q, a, y, n, p, y_norm);
	double gradient[STATS_NNLS_MAX];
	for (size_t j = 0; j < p; j++)
		gradient[j] = -q.target[j];
	for (size_t i = 0; i < sweeps_max; i++)
		if (sweep(&q, c, gradient) <= tolerance)
			break;
	for (size_t j = 0; j < p; j++)
		if (q.norm[j] > 0)
			c[j] *= y_norm / q.norm[j];
}
