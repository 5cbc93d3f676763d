/* Order statistics over small samples. Inputs are not modified unless said; n >= 1 unless said. */
#ifndef STEPSIM_BASE_STATS_H
#define STEPSIM_BASE_STATS_H

#include <stddef.h>

#define NORMAL_90 1.645 /* standard deviations to either side that hold 90 % of a normal distribution */

double stats_mean(const double *x, size_t n);
double stats_min(const double *x, size_t n);
double stats_max(const double *x, size_t n);
double stats_median(double *x, size_t n);               /* sorts x */
double stats_percentile(double *x, size_t n, double p); /* sorts x; p in [0, 100], linear between neighbours */

/* Non-negative least squares: minimises |A c - y|^2 with c >= 0, by cyclic coordinate descent on the normal equations
 * (convex: it converges). A is n rows by p columns, row-major; p <= STATS_NNLS_MAX. Franc, Hlavac, Navara 2005,
 * "Sequential coordinate-wise algorithm for the NNLS problem". */
#define STATS_NNLS_MAX 16
void stats_nnls(const double *a, const double *y, size_t n, size_t p, double *c);

#endif
