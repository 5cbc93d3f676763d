#include "sim/price/power.h"

#include <math.h>

#define LEAST_CLOCK 0.2 /* of the burst clock: no limit holds a GPU lower, and bisection needs an end */
#define HALVINGS 30

/* A role's sums at the burst clock. */
struct draw {
	double clocked_s, spare_s, other_s, issue_s; /* of its computing ops */
	double byte_J;
	struct {
		double J, clock; /* at that share of the burst clock */
	} matrix[DT_COUNT];
};

static struct draw draw_of(const struct program *p, size_t role, const struct rates *r, const struct prices *prices)
{
	struct draw d = {0};
	for (size_t i = 0; i < p->roles[role].ops.n; i++) {
		const struct op *op = &p->roles[role].ops.at[i];
		const struct op_cost *c = price_of(prices, role, i);
		d.issue_s += c->issue_s;
		if (op->lane != LANE_COMPUTE)
			continue;
		d.clocked_s += c->clocked_s;
		d.spare_s += c->spare_s;
		d.other_s += c->burst_s - c->clocked_s - c->spare_s;
		d.matrix[op->dtype].J += c->matrix_J;
		d.byte_J += c->byte_J;
	}
	for (int t = 0; t < DT_COUNT; t++)
		d.matrix[t].clock = r->power_cap[t].clock;
	return d;
}

/* Returns the energy beyond what the limit allows in the step's time. */
static double excess_J(const struct draw *d, const struct rates *r, double clock)
{
	const double busy_s = d->other_s + fmax(d->clocked_s / clock, d->clocked_s + d->spare_s);
	double J = d->byte_J - (r->power_limit_W - r->power_idle_W) * fmax(busy_s, d->issue_s);
	for (int t = 0; t < DT_COUNT; t++)
		if (d->matrix[t].J > 0)
			J += d->matrix[t].J * pow(clock / d->matrix[t].clock, r->parameters->gpu.energy_growth);
	return J;
}

/* Energy falls with the clock and time grows, so the excess has one zero at most. */
static double clock_of(const struct draw *d, const struct rates *r)
{
	double low = LEAST_CLOCK, high = 1;
	if (excess_J(d, r, 1) <= 0)
		return 1;
	for (int i = 0; i < HALVINGS; i++) {
		const double mid = (low + high) / 2;
		*(excess_J(d, r, mid) > 0 ? &high : &low) = mid;
	}
	return low;
}

static void set_clock(struct op_cost *c, double clock)
{
	if (!(c->clocked_s > 0))
		return;
	const double more_s = fmax(0, c->clocked_s / clock - c->clocked_s - c->spare_s);
	c->alone_s = c->burst_s + more_s;
	c->capped = more_s > 0 ? c->burst_s / c->alone_s : 0;
}

void power_hold(const struct program *p, const struct rates *r, struct prices *prices)
{
	double clock = 1;
	if (!(r->power_limit_W > 0) || r->is_host)
		return;
	for (size_t role = 0; role < p->n_roles; role++) {
		const struct draw d = draw_of(p, role, r, prices);
		clock = fmin(clock, clock_of(&d, r));
	}
	for (size_t i = 0; i < prices->different.n; i++)
		set_clock(&prices->different.at[i], clock);
}
