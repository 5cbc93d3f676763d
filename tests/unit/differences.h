/* Finite differences of a reference op: its gradients, element by element, in double. */
#ifndef STEPSIM_TESTS_UNIT_DIFFERENCES_H
#define STEPSIM_TESTS_UNIT_DIFFERENCES_H

#include "tests/unit/kernel_rig.h"

#define DIFFERENCES_STEP 1e-5
#define DIFFERENCES_CLOSE 1e-7 /* of central differences with that step, relative to the largest element */

static inline void differences_copy(struct rig *to, int a, const struct rig *from, int b)
{
	memcpy(to->ref[a], from->ref[b], to->n[a] * sizeof(double));
}

/* Runs the op with element i of argument `in` moved; returns the sum of weight x output. */
static inline double differences_side(struct rig *r, int in, size_t i, double by, int out, const double *weight)
{
	double *at = (double *)r->ref[in] + i, kept = *at, sum = 0.0;
	*at += by;
	rig_reference(r);
	*at = kept;
	for (size_t k = 0; k < r->n[out]; k++)
		sum += weight[k] * ((double *)r->ref[out])[k];
	return sum;
}

/* gradient: of the weighted sum of output `out` with respect to argument `in`, which the op does not write. */
static inline void differences_check(struct rig *forward, int in, int out, const double *weight, const double *gradient)
{
	double largest = 1e-3, worst = 0.0;
	for (size_t i = 0; i < forward->n[in]; i++) {
		const double up = differences_side(forward, in, i, DIFFERENCES_STEP, out, weight),
			     down = differences_side(forward, in, i, -DIFFERENCES_STEP, out, weight);
		worst = fmax(worst, fabs((up - down) / (2.0 * DIFFERENCES_STEP) - gradient[i]));
		largest = fmax(largest, fabs(gradient[i]));
	}
	if (!(worst <= DIFFERENCES_CLOSE * largest))
		fprintf(stderr, "%s: d %s / d %s is off by %g of %g\n", op_kind_info(forward->op.kind)->name,
			op_kind_info(forward->op.kind)->arg[out].name, op_kind_info(forward->op.kind)->arg[in].name,
			worst, largest);
	CU_ASSERT(worst <= DIFFERENCES_CLOSE * largest);
}

#endif
