#include "exec/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
#include "base/stats.h"
#include "step/peers.h"

/* Less is what machines of one kind, and their other work, differ by. */
#define SLOW_FACTOR 1.5
#define SLOW_OF_STEP 0.1
#define LONG_FACTOR 5.0
#define LONG_S 0.5

enum status late_init(struct late *l, int64_t ranks, int64_t steps, struct error *e)
{
	*l = (struct late){ranks, steps, calloc((size_t)(ranks * steps) + 1, sizeof *l->busy_s)};
	return l->busy_s ? ST_OK : error_nomem(e, "the ranks' compute times");
}

void late_free(struct late *l) { free(l->busy_s); }

void late_add(struct late *l, int64_t step, const struct timeline *t)
{
	for (size_t i = 0; i < t->spans.n; i++) {
		const struct span *s = &t->spans.at[i];
		if (s->lane == LANE_COMPUTE && s->actor < l->ranks)
			l->busy_s[step * l->ranks + s->actor] += 1e-12 * (double)(s->end_ps - s->start_ps);
	}
}

/* By rank: the median over the steps. */
static void usual(const struct late *l, double *column, double *out)
{
	for (int64_t r = 0; r < l->ranks; r++) {
		for (int64_t i = 0; i < l->steps; i++)
			column[i] = l->busy_s[i * l->ranks + r];
		out[r] = stats_median(column, (size_t)l->steps);
	}
}

static void say_slow(const struct late *l, const struct session *s, const struct program *p, const double *usual_s,
	double step_s, double *column, struct result *out)
{
	int64_t slowest = -1;
	double most = SLOW_FACTOR;
	for (size_t role = 0; role < p->n_roles; role++) {
		size_t n = 0;
		for (int64_t r = 0; r < l->ranks; r++)
			if (role_of_rank(p, r) == role)
				column[n++] = usual_s[r];
		if (n < 2)
			continue;
		stats_median(column, n);
		const double median_s =
			column[(n - 1) / 2]; /* the lower: of two, the slow one is not its own measure */
		for (int64_t r = 0; r < l->ranks; r++)
			if (role_of_rank(p, r) == role && usual_s[r] > most * median_s &&
				usual_s[r] - median_s > SLOW_OF_STEP * step_s) {
				most = usual_s[r] / median_s;
				slowest = r;
			}
	}
	if (slowest >= 0)
		result_warn(out, "rank %lld (%s) computes %.1f times as long as the other ranks: the step is its",
			(long long)slowest, session_host_name(s, slowest), most);
}

static void say_long(const struct late *l, const struct session *s, const double *usual_s, const double *step_s,
	double median_s, struct result *out)
{
	char took[QUANTITY_MAX];
	int64_t worst = 0, rank = -1, outliers = 0;
	for (int64_t i = 0; i < l->steps; i++) {
		worst = step_s[i] > step_s[worst] ? i : worst;
		outliers += step_s[i] > LONG_FACTOR * median_s;
	}
	const double more_s = step_s[worst] - median_s;
	if (step_s[worst] <= LONG_FACTOR * median_s || more_s < LONG_S)
		return;
	double most_s = more_s / 2;
	for (int64_t r = 0; r < l->ranks; r++) {
		const double longer_s = l->busy_s[worst * l->ranks + r] - usual_s[r];
		if (longer_s > most_s) {
			most_s = longer_s;
			rank = r;
		}
	}
	quantity_format(took, step_s[worst], UNIT_SECOND);
	if (rank >= 0)
		result_warn(out,
			"step %lld took %s, %.0f times the median: rank %lld (%s) stood still or was slow for %.1f s",
			(long long)worst + 1, took, step_s[worst] / median_s, (long long)rank,
			session_host_name(s, rank), most_s);
	else
		result_warn(out,
			"%lld step%s took more than %.0f times the median, step %lld the longest (%s): no rank "
			"computed longer, messages came late",
			(long long)outliers, outliers == 1 ? "" : "s", LONG_FACTOR, (long long)worst + 1, took);
}

void late_say(const struct late *l, const struct session *s, const struct program *p, const double *step_s,
	struct result *out)
{
	double *usual_s = malloc((size_t)l->ranks * sizeof *usual_s);
	double *column = malloc((size_t)(l->ranks > l->steps ? l->ranks : l->steps) * sizeof *column);
	if (usual_s && column && l->steps > 0) {
		memcpy(column, step_s, (size_t)l->steps * sizeof *column);
		const double median_s = stats_median(column, (size_t)l->steps);
		usual(l, column, usual_s);
		if (!s->info.oversubscribed && !s->info.gpu_shared && p->config.cluster.n_slow_ranks == 0)
			say_slow(l, s, p, usual_s, median_s, column, out);
		say_long(l, s, usual_s, step_s, median_s, out);
	}
	free(usual_s);
	free(column);
}
