/* How uneven experts' loads are where a step's data have few different tokens (step/model.h). */
#include "step/model.h"

#include <math.h>

#define UNLIKELY 1e-9 /* that the fullest rank has more: the sum ends */

/* Fills chance[0 .. most] with those that `slots` experts are chosen c times, each with probability p. */
static void binomial(double *chance, int64_t most, int64_t slots, double p)
{
	double log_chance = (double)slots * log1p(-p);
	for (int64_t c = 0; c <= most; c++) {
		chance[c] = c <= slots ? exp(log_chance) : 0;
		if (c < slots)
			log_chance += log((double)(slots - c) / (double)(c + 1) * p / (1 - p));
	}
}

/* Returns the chance that `ranks` ranks have at most `most` choices each, and `choices` in all. */
static double all_within(const double *chance, int64_t most, int64_t ranks, int64_t choices)
{
	double sum[ROUTED_CHOICES_MAX + 1] = {1};
	for (int64_t r = 0; r < ranks; r++)
		for (int64_t i = choices; i >= 0; i--) {
			double here = 0;
			for (int64_t c = 0; c <= most && c <= i; c++)
				here += chance[c] * sum[i - c];
			sum[i] = here;
		}
	return sum[choices];
}

double model_fullest_rank(const struct model *m, int64_t kinds, int64_t ranks)
{
	const int64_t choices = kinds * m->experts_per_token, slots = kinds * m->experts / ranks;
	const double p = (double)m->experts_per_token / (double)m->experts;
	if (choices == 0 || ranks == 1 || m->experts_per_token == m->experts)
		return 1;
	double chance[ROUTED_CHOICES_MAX + 1], total[ROUTED_CHOICES_MAX + 1];
	binomial(chance, choices, slots, p);
	binomial(total, choices, kinds * m->experts, p);
	int64_t most = (choices + ranks - 1) / ranks;
	double expected = (double)most, above = 1;
	for (; most < choices && above > UNLIKELY; most++) {
		above = 1 - all_within(chance, most, ranks, choices) / total[choices];
		expected += above;
	}
	return expected * (double)ranks / (double)choices;
}
