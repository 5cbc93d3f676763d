/* Gradients of the reference against finite differences of its forward ops, in double. */
#ifndef STEPSIM_TESTS_UNIT_GRADIENT_CHECK_H
#define STEPSIM_TESTS_UNIT_GRADIENT_CHECK_H

#include "base/array.h"
#include "tests/unit/kernel_rig.h"

#define STEP 1e-5
#define CLOSE 1e-7 /* of central differences with that step, relative to the largest element */

/* An argument of the op by its name, which it has. */
static inline int argument(const struct rig *r, const char *name)
{
	const struct op_kind_info *info = op_kind_info(r->op.kind);
	int a = 0;
	while (a + 1 < r->n_args && strcmp(info->arg[a].name, name) != 0)
		a++;
	CU_ASSERT_STRING_EQUAL(info->arg[a].name, name);
	return a;
}

/* Sum of weight x output: the scalar that is differentiated. */
static inline double weighted(const struct rig *r, int out, const double *weight)
{
	double sum = 0.0;
	for (size_t i = 0; i < r->n[out]; i++)
		sum += weight[i] * ((double *)r->ref[out])[i];
	return sum;
}

/* Arguments that a run changes, put back before each run. */
struct saved {
	double *at[OP_MAX_ARGS];
};

static inline struct saved save(const struct rig *r)
{
	struct saved s = {{0}};
	for (int a = 0; a < r->n_args; a++)
		if (!r->is_int[a] && !r->absent[a]) {
			s.at[a] = rig_alloc(r->n[a] * sizeof(double));
			memcpy(s.at[a], r->ref[a], r->n[a] * sizeof(double));
		}
	return s;
}

static inline void restore(struct rig *r, const struct saved *s)
{
	for (int a = 0; a < r->n_args; a++)
		if (s->at[a])
			memcpy(r->ref[a], s->at[a], r->n[a] * sizeof(double));
}

static inline void drop(struct saved *s)
{
	for (int a = 0; a < OP_MAX_ARGS; a++)
		free(s->at[a]);
}

/* gradient [n] of `weighted` with respect to argument `in` of the forward op, element by element. */
static inline void check_gradient_of(struct rig *forward, int in, int out, const double *weight, const double *gradient)
{
	const struct op_kind_info *info = op_kind_info(forward->op.kind);
	struct saved before = save(forward);
	double largest = 1e-3, worst = 0.0;
	for (size_t i = 0; i < forward->n[in]; i++) {
		double side[2];
		for (int k = 0; k < 2; k++) {
			restore(forward, &before);
			((double *)forward->ref[in])[i] += k ? STEP : -STEP;
			rig_reference(forward);
			side[k] = weighted(forward, out, weight);
		}
		worst = fmax(worst, fabs((side[1] - side[0]) / (2.0 * STEP) - gradient[i]));
		largest = fmax(largest, fabs(gradient[i]));
	}
	if (!(worst <= CLOSE * largest))
		fprintf(stderr, "%s flags %x: d %s / d %s is off by %g of %g\n", info->name, forward->op.flags,
			info->arg[out].name, info->arg[in].name, worst, largest);
	CU_ASSERT(worst <= CLOSE * largest);
	restore(forward, &before);
	drop(&before);
}

static inline void check_gradient(struct rig *forward, const char *in, const char *out, const double *weight,
	const double *gradient)
{
	check_gradient_of(forward, argument(forward, in), argument(forward, out), weight, gradient);
}

static inline void copy_argument(struct rig *to, int a, const struct rig *from, int b)
{
	memcpy(to->ref[a], from->ref[b], to->n[a] * sizeof(double));
}

static inline void copy_named(struct rig *to, const char *name, const double *from)
{
	const int a = argument(to, name);
	memcpy(to->ref[a], from, to->n[a] * sizeof(double));
}

/* Runs flash attention forward and backward, and checks the gradient of its queries, keys and values. */
static inline void check_attention_gradient(struct rig *forward, struct rig *grad)
{
	static const char *const shared[] = {"qkv", "out", "lse"};
	rig_reference(forward);
	for (size_t i = 0; i < COUNT(shared); i++)
		copy_argument(grad, argument(grad, shared[i]), forward, argument(forward, shared[i]));
	rig_reference(grad);
	check_gradient(forward, "qkv", "out", rig_ref(grad, "dout"), rig_ref(grad, "dqkv"));
}

static inline void agree(const double *x, const double *y, size_t n)
{
	double worst = 0.0, largest = 1e-9;
	for (size_t i = 0; i < n; i++) {
		worst = fmax(worst, fabs(x[i] - y[i]));
		largest = fmax(largest, fabs(x[i]));
		CU_ASSERT(isfinite(x[i]) && isfinite(y[i]));
	}
	CU_ASSERT(worst <= 1e-12 * largest);
}

#endif
