#include "step/tiles.h"

#include <math.h>

static double whole(const struct tile_model *x, int64_t rows) { return ceil((double)rows / x->step) * x->step; }

/* full_flop has no division, so that rounding cannot make it fall: flop / parts is 2 min(result, tile) min(k, split_k).
 */
struct tiles tiles_of(const struct tile_model *x, double groups, int64_t m, int64_t n, int64_t k, int64_t sms)
{
	const double tile = x->side * x->side, result = groups * whole(x, m) * whole(x, n), depth = (double)k;
	const double parts = fmax(1, result / tile) * fmax(1, depth / x->split_k), flop = 2 * result * depth;
	return (struct tiles){.flop = flop,
		.busy = fmin(1, parts / (double)sms),
		.full_flop = fmax(flop, 2 * fmin(result, tile) * fmin(depth, x->split_k) * (double)sms)};
}

double tiles_waves(const struct tile_model *x, int64_t m, int64_t n, int64_t sms)
{
	return sms > 0 ? whole(x, m) * whole(x, n) / (x->side * x->side) / (double)sms : 0;
}
