#include "sim/engine/stragglers.h"

#include <float.h>
#include <math.h>

#include "step/peers.h"

/* Beyond so many standard deviations no one of 10^15 values is left. The integrand is smooth: Simpson's rule in such
 * steps is exact to 10 digits. */
#define FARTHEST 10.0
#define STEPS 4000

/* Returns 1 - F(x)^n - F(-x)^n, without loss of digits where F is next to 1. */
static double tails(double x, double n)
{
	double above = 0.5 * erfc(x / sqrt(2));
	return -expm1(n * log1p(-above)) - pow(above, n);
}

double stragglers_expected_max(double n)
{
	double h = FARTHEST / STEPS, sum = tails(0, n) + tails(FARTHEST, n);
	for (int i = 1; i < STEPS; i++)
		sum += (i % 2 ? 4 : 2) * tails(i * h, n);
	return sum * h / 3;
}

double stragglers_role_factor(const struct program *p, size_t role, const struct machine *m)
{
	const struct cluster_config *c = &p->config.cluster;
	double most = c->jitter > 0 ? 1 + c->jitter * stragglers_expected_max((double)p->roles[role].ranks) : 1;
	for (int64_t i = 0; i < c->n_slow_ranks; i++) {
		const struct slow_rank *s = &c->slow_ranks[i];
		int64_t first = s->is_host ? s->index * m->devices_per_node : s->index,
			n = s->is_host ? m->devices_per_node : 1;
		for (int64_t rank = first; rank < first + n && rank < p->mesh.ranks; rank++)
			if (role_of_rank(p, rank) == role)
				most = fmax(most, s->factor);
	}
	return most;
}

double stragglers_slowdown(const struct machine *m, int64_t nodes)
{
	return m->device.is_host || nodes < 2 ? 1 : 1 + m->parameters->step.node_doubling * log2((double)nodes);
}

struct goodput stragglers_best_goodput(double mtbf_s, double checkpoint_s)
{
	double x = checkpoint_s / (2 * mtbf_s), interval_s = mtbf_s;
	if (x < 1)
		interval_s = sqrt(2 * checkpoint_s * mtbf_s) * (1 + sqrt(x) / 3 + x / 9) - checkpoint_s;
	double spent_s = mtbf_s * exp(checkpoint_s / mtbf_s) * expm1((interval_s + checkpoint_s) / mtbf_s);
	return (struct goodput){interval_s,
		fmax(interval_s / spent_s, DBL_MIN)}; /* a job that never gets on is not one that does not fail */
}
