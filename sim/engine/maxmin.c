#include "sim/engine/maxmin.h"

#include <math.h>
#include <stdbool.h>

#define GROWING (-1.0)

/* Fills the level t at which each resource is full if every activity that still grows keeps growing. It is infinite
 * where no growing activity uses the resource. */
static void levels_when_full(const struct activity *const *act, size_t n, const double cap[RES_COUNT],
	const double *rate, double level, double full_at[RES_COUNT])
{
	for (size_t r = 0; r < RES_COUNT; r++) {
		double taken = 0, slope = 0;
		for (size_t i = 0; i < n; i++) {
			double demand = act[i]->demand[r];
			if (rate[i] < 0)
				slope += demand * act[i]->weight;
			else
				taken += demand * rate[i];
		}
		/* The level never falls: where two resources fill at once, rounding may leave the second slightly over
		 * its capacity. */
		full_at[r] = slope > 0 ? fmax(level, (cap[r] - taken) / slope) : INFINITY;
	}
}

static bool meets_full(const struct activity *a, const double full_at[RES_COUNT], double level)
{
	for (size_t r = 0; r < RES_COUNT; r++)
		if (a->demand[r] > 0 && full_at[r] <= level)
			return true;
	return false;
}

void maxmin_rates(const struct activity *const *act, size_t n, const double cap[RES_COUNT], double *rate)
{
	for (size_t i = 0; i < n; i++)
		rate[i] = GROWING;
	double level = 0;
	for (size_t growing = n; growing > 0;) {
		double full_at[RES_COUNT];
		levels_when_full(act, n, cap, rate, level, full_at);
		level = INFINITY;
		for (size_t r = 0; r < RES_COUNT; r++)
			level = fmin(level, full_at[r]);
		for (size_t i = 0; i < n; i++)
			if (rate[i] < 0)
				level = fmin(level, 1 / act[i]->weight);
		for (size_t i = 0; i < n; i++) {
			if (rate[i] >= 0)
				continue;
			if (1 / act[i]->weight <= level)
				rate[i] = 1; /* exactly: w x (1 / w) need not be 1 */
			else if (meets_full(act[i], full_at, level))
				rate[i] = fmin(1, act[i]->weight * level);
			else
				continue;
			growing--;
		}
	}
}
