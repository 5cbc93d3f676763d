#include "sim/engine/maxmin.h"

#include <math.h>
#include <stdbool.h>

#define GROWING (-1.0)

/* fmin and fmax mind NaN, which nothing here is, and are calls. */
static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }

/* The activities that fill up together: all transfers that cores carry, or all others. */
struct filling {
	const struct activity *const *act;
	size_t n;
	bool transfers, beside_compute;
	const double *cap;
	double *rate;
};

static bool takes_part(const struct filling *f, size_t i) { return (f->act[i]->beside > 0) == f->transfers; }

static double greatest(const struct filling *f, size_t i)
{
	return f->transfers && f->beside_compute ? f->act[i]->beside : 1;
}

static double weight(const struct filling *f, size_t i) { return f->transfers ? greatest(f, i) : f->act[i]->weight; }

static double demand(const struct filling *f, size_t i, size_t r)
{
	return f->transfers && r == RES_COMPUTE ? 0 : f->act[i]->demand[r];
}

/* Fills the level t at which each resource is full if every activity that still grows keeps growing. It is infinite
 * where no growing activity uses the resource. */
static void levels_when_full(const struct filling *f, double level, double full_at[RES_COUNT])
{
	for (size_t r = 0; r < RES_COUNT; r++) {
		double taken = 0, slope = 0;
		for (size_t i = 0; i < f->n; i++) {
			if (!takes_part(f, i))
				continue;
			if (f->rate[i] < 0)
				slope += demand(f, i, r) * weight(f, i);
			else
				taken += demand(f, i, r) * f->rate[i];
		}
		/* The level never falls: where two resources fill at once, rounding may leave the second slightly over
		 * its capacity. */
		full_at[r] = slope > 0 ? most(level, (f->cap[r] - taken) / slope) : INFINITY;
	}
}

static bool meets_full(const struct filling *f, size_t i, const double full_at[RES_COUNT], double level)
{
	for (size_t r = 0; r < RES_COUNT; r++)
		if (demand(f, i, r) > 0 && full_at[r] <= level)
			return true;
	return false;
}

static void fill(const struct filling *f, size_t growing)
{
	double level = 0;
	while (growing > 0) {
		double full_at[RES_COUNT];
		levels_when_full(f, level, full_at);
		level = INFINITY;
		for (size_t r = 0; r < RES_COUNT; r++)
			level = least(level, full_at[r]);
		for (size_t i = 0; i < f->n; i++)
			if (takes_part(f, i) && f->rate[i] < 0)
				level = least(level, greatest(f, i) / weight(f, i));
		for (size_t i = 0; i < f->n; i++) {
			if (!takes_part(f, i) || f->rate[i] >= 0)
				continue;
			if (greatest(f, i) / weight(f, i) <= level)
				f->rate[i] = greatest(f, i); /* exactly: w x (1 / w) need not be 1 */
			else if (meets_full(f, i, full_at, level))
				f->rate[i] = least(greatest(f, i), weight(f, i) * level);
			else
				continue;
			growing--;
		}
	}
}

void maxmin_rates(const struct activity *const *act, size_t n, const double cap[RES_COUNT], double *rate)
{
	double left[RES_COUNT];
	struct filling f = {.act = act, .n = n, .cap = cap, .rate = rate};
	size_t transfers = 0;
	for (size_t i = 0; i < n; i++) {
		rate[i] = GROWING;
		transfers += act[i]->beside > 0;
		f.beside_compute = f.beside_compute || (!(act[i]->beside > 0) && act[i]->demand[RES_COMPUTE] > 0);
	}
	if (transfers > 0) {
		f.transfers = true;
		fill(&f, transfers);
		for (size_t r = 0; r < RES_COUNT; r++)
			left[r] = cap[r];
		for (size_t i = 0; i < n; i++)
			if (takes_part(&f, i))
				left[RES_COMPUTE] *= 1 - act[i]->demand[RES_COMPUTE] * rate[i];
		f.cap = left;
		f.transfers = false;
	}
	fill(&f, n - transfers);
}
