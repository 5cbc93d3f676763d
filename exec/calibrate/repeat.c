/* Measurements that others disturbed are taken again; the profile says what stayed so. */
#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "exec/calibrate/calibrate.h"
#include "exec/cpu_steal.h"

/* ---- rounds of times ---- */

#define ENOUGH 3 /* undisturbed times of a case, for their median */

enum status calibration_rounds_create(struct calibration_rounds *r, size_t cases, size_t rounds, struct error *e)
{
	*r = (struct calibration_rounds){.cases = cases, .rounds = rounds};
	r->time_s = calloc(cases * rounds, sizeof *r->time_s);
	r->mean_s = calloc(cases * rounds, sizeof *r->mean_s);
	r->others = calloc(cases * rounds, sizeof *r->others);
	return r->time_s && r->mean_s && r->others ? ST_OK : error_nomem(e, "calibration's times");
}

void calibration_rounds_free(struct calibration_rounds *r)
{
	free(r->time_s);
	free(r->mean_s);
	free(r->others);
	*r = (struct calibration_rounds){.cases = 0};
}

void calibration_rounds_set(struct calibration_rounds *r, size_t round, size_t index, double time_s, double mean_s)
{
	r->time_s[round * r->cases + index] = time_s;
	r->mean_s[round * r->cases + index] = mean_s;
}

/* Collects the times of a case from round `first` on. Returns how many; *others: the mean share meanwhile. */
static size_t times_of_case(const struct calibration_rounds *r, size_t index, size_t first, bool undisturbed,
	double *time_s, double *others)
{
	size_t n = 0;
	*others = 0;
	for (size_t k = first; k < r->rounds; k++) {
		const size_t at = k * r->cases + index;
		if (r->time_s[at] <= 0 || (undisturbed && r->others[at] > 0))
			continue;
		*others += (r->others[at] - *others) / (double)(n + 1);
		time_s[n++] = r->time_s[at];
	}
	return n;
}

bool calibration_again(const struct calibration_rounds *r, size_t index)
{
	double times[CALIBRATION_ROUNDS_MAX], none, others;
	const size_t undisturbed = times_of_case(r, index, 1, true, times, &none),
		     all = times_of_case(r, index, 0, false, times, &others);
	return all > 0 && others > 0 && undisturbed < ENOUGH;
}

double calibration_kept_s(const struct calibration_rounds *r, size_t index, double *others)
{
	double times[CALIBRATION_ROUNDS_MAX];
	size_t n = times_of_case(r, index, 1, true, times, others);
	if (n >= ENOUGH)
		return stats_median(times, n);
	n = n ? n : times_of_case(r, index, 1, false, times, others);
	n = n ? n : times_of_case(r, index, 0, false, times, others);
	return n ? stats_percentile(times, n, CALIBRATION_PERCENTILE) : 0;
}

double calibration_stalls(const struct calibration_rounds *r)
{
	double times[CALIBRATION_ROUNDS_MAX], others, taken_s = 0, typical_s = 0;
	for (size_t i = 0; i < r->cases; i++) {
		const size_t n = times_of_case(r, i, 1, true, times, &others);
		if (n < ENOUGH)
			continue;
		typical_s += stats_median(times, n);
		for (size_t k = 1; k < r->rounds; k++)
			if (r->time_s[k * r->cases + i] > 0 && !(r->others[k * r->cases + i] > 0))
				taken_s += r->mean_s[k * r->cases + i] / (double)n;
	}
	return taken_s > typical_s ? taken_s / typical_s : 1;
}

double calibration_pace_spread(const struct calibration_rounds *r, const double *kept_s)
{
	double taken_s = 0, usual_s = 0, mean = 0, squares = 0;
	size_t in_window = 0, n = 0;
	for (size_t at = r->cases; at < r->cases * r->rounds; at++) { /* after the warm-up, as they were taken */
		const size_t i = at % r->cases;
		if (!(r->mean_s[at] > 0) || r->others[at] > 0 || !(kept_s[i] > 0))
			continue;
		taken_s += r->mean_s[at];
		usual_s += kept_s[i];
		if (++in_window < CALIBRATION_WINDOW)
			continue;
		const double ratio = taken_s / usual_s, off = ratio - mean;
		mean += off / (double)++n;
		squares += off * (ratio - mean);
		taken_s = usual_s = 0;
		in_window = 0;
	}
	return n > 1 ? sqrt(squares / (double)(n - 1)) / mean : 0;
}

/* ---- what stayed disturbed ---- */

void calibration_noise_add(struct calibration_noise *noise, double measurements, double others)
{
	noise->measured += measurements;
	noise->disturbed += others > 0 ? measurements : 0;
	noise->others += measurements * others;
}

enum status calibration_noise_set(const struct calibration_noise *noise, struct profile *p, struct error *e)
{
	enum status st = noise->pace_spread > 0 ? profile_set_value(p, PROFILE_PACE_SPREAD, noise->pace_spread, e)
	                                        : ST_OK;
	if (st || !(noise->disturbed > 0))
		return st;
	st = profile_set_value(p, PROFILE_DISTURBED_SHARE, noise->disturbed / noise->measured, e);
	return st ? st : profile_set_value(p, PROFILE_CPU_STEAL_SHARE, noise->others / noise->disturbed, e);
}

/* ---- a measurement as a whole ---- */

#define TRIES 3

enum status calibration_undisturbed(struct session *s, const struct calibration_unit *unit, struct profile *p,
	struct calibration_noise *noise, struct error *e)
{
	double least = INFINITY;
	struct profile *scratch = p ? profile_create() : NULL;
	enum status st = session_agree(s, p && !scratch ? error_nomem(e, "a profile") : ST_OK, e);
	for (int k = 0; k < TRIES && !st && least > 0; k++) {
		struct cpu_steal begun;
		struct cpu_steal_worst worst;
		if (p)
			*scratch = *p;
		cpu_steal_begin(&begun);
		if ((st = unit->measure(s, unit, scratch, e)))
			break;
		cpu_steal_wait(&begun);
		if ((st = cpu_steal_end(s, &begun, &worst, e)))
			break;
		const double others = worst.rank < 0 ? 0 : worst.taken + worst.stolen;
		if (others < least && p)
			*p = *scratch;
		least = fmin(least, others);
	}
	if (!st)
		calibration_noise_add(noise, unit->measurements, least);
	profile_destroy(scratch);
	return st;
}
