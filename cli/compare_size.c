/* The number of hosts of a system: for equal GPUs, as many as the budget buys, or the fewest that reach
 * the target. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/gcd.h"
#include "base/quantity.h"
#include "cli/compare.h"

#define NODES_MOST 1000000
#define GUESSED_MFU \
	0.4         /* where the search for a target begins; no result depends on it but by the counts that are tried */
#define DOUBLINGS 6 /* of the first guess, before a target is given up: below 1 % MFU */
#define TRIES 40

/* ---- which counts ---- */

bool compare_splits(const struct config *c, int64_t ranks)
{
	const struct parallel *p = &c->parallel;
	const int64_t factor[] = {config_global_batch(c, ranks), c->model.layers, c->model.heads, p->tensor,
		p->pipeline, p->context};
	int64_t left = ranks;
	while (left && left % 2 == 0)
		left /= 2;
	for (size_t i = 0; i < COUNT(factor); i++)
		left /= gcd(left, factor[i]);
	return left == 1;
}

/* Returns the nearest count of hosts from n upward or downward that splits the work; 0 if there is none. */
static int64_t next_count(const struct config *c, int64_t per_node, int64_t n, int64_t step)
{
	for (; n >= 1 && n <= NODES_MOST; n += step)
		if (compare_splits(c, n * per_node))
			return n;
	return 0;
}

/* ---- one row at one size ---- */

static void drop(struct compare_row *r)
{
	compare_row_free(r);
	r->fits = false;
	r->missing_B = 0;
	r->plan[0] = r->reason[0] = '\0';
}

/* The count that a search passed over because the solver refuses it. */
struct refused {
	int64_t gpus; /* 0: none */
	char reason[sizeof((struct compare_row *)0)->reason];
};

static void refuse(struct refused *f, const struct compare_row *r)
{
	f->gpus = r->gpus;
	memcpy(f->reason, r->reason, sizeof f->reason);
}

/* Returns how many hosts of the system can be joined. */
static int64_t hosts_most(const struct asked_system *a) { return a->spec.nics > 0 ? NODES_MOST : 1; }

#define NO_NIC "a host has no NIC to join it to others"

static enum status solve(const struct compare_solver *s, const struct asked_system *a, struct size size,
	struct compare_row *r, struct error *e)
{
	drop(r);
	compare_figures(&a->spec, s->config, size, r);
	return s->solve(s->ctx, a, size, r, e);
}

/* ---- equal GPUs ---- */

static enum status by_gpus(int64_t gpus, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e)
{
	int64_t host = a->spec.gpus;
	struct size size = {.nodes = 1, .per_node = gpus};
	if (a->spec.nodes > 0 && a->gpus == 0) {
		size = (struct size){a->spec.nodes, host};
	} else if (gpus >= host) {
		size = (struct size){(gpus + host - 1) / host, host};
		if (gpus % host)
			snprintf(r->size_note, sizeof r->size_note,
				"%" PRId64 " GPUs are rounded up to %" PRId64 " whole hosts of %" PRId64, gpus,
				size.nodes, host);
	} else {
		snprintf(r->size_note, sizeof r->size_note,
			"%" PRId64 " of a host's %" PRId64 " GPUs work; that share of its power and price is counted",
			gpus, host);
	}
	if (size.nodes > NODES_MOST)
		return error_set(e, ST_INPUT, "%s: %" PRId64 " hosts are more than %d", a->name, size.nodes,
			NODES_MOST);
	return solve(s, a, size, r, e);
}

/* ---- an equal budget ---- */

/* Returns the part of the budget that one host costs, USD, and writes it in words; NAN if it is not known. */
static double host_price(const struct compare *c, const struct compare_row *host, char words[128])
{
	const struct compare_figure *price = &host->price_usd;
	char q[QUANTITY_MAX], years[QUANTITY_MAX];
	double usd = money_for_years(price->value, host->rent_usd_per_hour.value, c->amortize_years.value);
	if (isfinite(price->value))
		snprintf(words, 128, "%s a host%s", quantity_format(q, usd, UNIT_USD),
			price->partial ? " (its GPUs alone)" : "");
	else
		snprintf(words, 128, "not for sale: %s for renting a host over %s years",
			quantity_format(q, usd, UNIT_USD), quantity_format(years, c->amortize_years.value, UNIT_NONE));
	return usd;
}

/* The largest count up to `most` that fits, or of which no plan fits for want of memory; 0: no count splits the work.
 * `refused` becomes the largest that the solver refused. */
static enum status buy(const struct compare_solver *s, const struct asked_system *a, int64_t most,
	struct compare_row *r, int64_t *taken, struct refused *refused, struct error *e)
{
	enum status st = ST_OK;
	*taken = 0;
	for (int64_t n = next_count(s->config, a->spec.gpus, most, -1), tries = 0; n && tries < TRIES && !st;
		n = next_count(s->config, a->spec.gpus, n - 1, -1), tries++) {
		*taken = n;
		st = solve(s, a, (struct size){n, a->spec.gpus}, r, e);
		if (r->fits || r->missing_B)
			break;
		if (!refused->gpus)
			refuse(refused, r);
	}
	return st;
}

/* Says what is bought, and why it is less than the budget pays for. */
static void say_bought(int64_t n, int64_t paid, const char *words, double left_usd, const char *why,
	struct compare_row *r)
{
	char left[QUANTITY_MAX], *at = r->size_note;
	at += snprintf(at, sizeof r->size_note, "%" PRId64 " host%s: %s; %s left", n, n == 1 ? "" : "s", words,
		quantity_format(left, left_usd, UNIT_USD));
	if (n < paid)
		snprintf(at, sizeof r->size_note - (size_t)(at - r->size_note),
			", which would pay for %" PRId64 ", but %s", paid, why);
}

static enum status by_budget(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e)
{
	char words[128];
	int64_t n = 0;
	compare_figures(&a->spec, s->config, (struct size){1, a->spec.gpus}, r);
	double host_usd = host_price(c, r, words);
	const int64_t paid = money_hosts(c->budget_usd, host_usd, NODES_MOST),
		      most = paid < hosts_most(a) ? paid : hosts_most(a);
	struct refused refused = {0};
	compare_figures(&a->spec, s->config, (struct size){0, a->spec.gpus}, r); /* until something is bought */
	if (!(host_usd > 0))
		snprintf(r->reason, sizeof r->reason,
			"neither a price nor a rent above 0 is known, so what the budget pays for is not known");
	else if (paid == 0)
		snprintf(r->reason, sizeof r->reason, "the budget pays for no whole host: %s", words);
	if (r->reason[0])
		return ST_OK;
	enum status st = buy(s, a, most, r, &n, &refused, e);
	if (n == 0) {
		snprintf(r->reason, sizeof r->reason,
			"no count of hosts of %" PRId64 " GPUs, up to %" PRId64 ", can share this batch", a->spec.gpus,
			most);
		return st;
	}
	r->spent_usd = (double)n * host_usd;
	say_bought(n, paid, words, c->budget_usd - r->spent_usd,
		most < paid    ? NO_NIC
		: refused.gpus ? refused.reason
			       : "so many cannot share this batch",
		r);
	return st;
}

/* ---- an equal target ---- */

struct bracket {
	int64_t per_node, first, most;
	int64_t below,
		above; /* the largest count tried that misses the target, the smallest that reaches it; 0: none yet */
	double missed_by;       /* time over the target's, at `below` */
	double reached_by;      /* the same at `above` */
	struct refused refused; /* the smallest count that the solver refused */
};

static void note_refusal(struct bracket *b, const struct compare_row *tried)
{
	if (tried->reason[0] && (!b->refused.gpus || tried->gpus < b->refused.gpus))
		refuse(&b->refused, tried);
}

/* Returns the next count to try; 0 if none is left. */
static int64_t next_try(const struct config *c, const struct bracket *b)
{
	int64_t n;
	if (!b->above) {
		n = next_count(c, b->per_node,
			(int64_t)fmin(fmax((double)b->below + 1, (double)b->below * fmin(b->missed_by, 4)), NODES_MOST),
			1);
		return n <= b->most ? n : 0;
	}
	n = b->below ? (int64_t)sqrt((double)b->below * (double)b->above)
	             : (int64_t)((double)b->above * b->reached_by * 0.9);
	n = next_count(c, b->per_node, n > b->below ? n : b->below + 1, 1);
	if (!n || n >= b->above)
		n = next_count(c, b->per_node, b->above - 1, -1);
	return n > b->below ? n : 0;
}

static int64_t first_guess(const struct compare *c, const struct config *config, const struct asked_system *a)
{
	double peak = a->spec.device.matrix_flop_per_s[config->train.dtype], per_s = c->tokens / c->within_s;
	double hosts = peak > 0 ? per_s * model_flop_per_token(&config->model) /
	                                  (peak * GUESSED_MFU * (double)a->spec.gpus)
	                        : 1;
	return hosts < 1 ? 1 : hosts > NODES_MOST ? NODES_MOST : (int64_t)hosts;
}

/* Tries counts until two neighbours are found of which one misses the target and one reaches it. More hosts are taken
 * to be faster, so what lies between a miss and a success is halved. */
static enum status try_counts(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct bracket *b, struct compare_row *tried, struct compare_row *best, struct error *e)
{
	const struct compare_row empty = *best;
	enum status st = ST_OK;
	int64_t n = next_count(s->config, b->per_node, b->first, 1);
	if (!n)
		n = next_count(s->config, b->per_node, b->first, -1);
	for (int i = 0; i < TRIES && n && !st; i++, n = next_try(s->config, b)) {
		if ((st = solve(s, a, (struct size){n, a->spec.gpus}, tried, e)))
			break;
		double ratio = tried->fits ? compare_time(c, tried) / c->within_s : 2;
		note_refusal(b, tried);
		if (ratio > 1) {
			b->below = n;
			b->missed_by = ratio;
		} else {
			b->above = n;
			b->reached_by = ratio;
		}
		if (ratio <= 1 || (tried->fits && !b->above)) { /* the fewest that reach it, or as near as any came */
			drop(best);
			*best = *tried;
			*tried = empty;
		}
	}
	return st;
}

/* The first guess was more than can share the batch: the largest count that can. */
static enum status try_fewer(const struct compare_solver *s, const struct asked_system *a, struct bracket *b,
	struct compare_row *best, struct error *e)
{
	enum status st = ST_OK;
	int64_t n = next_count(s->config, b->per_node, b->first, -1);
	for (int i = 0; i < TRIES && n && !st && !best->fits; i++, n = next_count(s->config, b->per_node, n - 1, -1)) {
		st = solve(s, a, (struct size){n, a->spec.gpus}, best, e);
		note_refusal(b, best);
	}
	return st;
}

static void say_reached(const struct compare *c, const struct bracket *b, struct compare_row *r)
{
	char q[QUANTITY_MAX];
	snprintf(r->size_note, sizeof r->size_note, "%" PRId64 " host%s of %" PRId64 " GPUs: the target in %s%s",
		b->above, b->above == 1 ? "" : "s", b->per_node, quantity_format(q, compare_time(c, r), UNIT_SECOND),
		b->below ? "" : ", with the smallest count that splits the batch");
	if (b->below)
		snprintf(r->size_note + strlen(r->size_note), sizeof r->size_note - strlen(r->size_note),
			"; %" PRId64 " miss it", b->below);
}

/* Returns why no count above the row's reaches the target. */
static const char *why_no_more(const struct bracket *b, const struct compare_row *r, int64_t hosts_most, char buf[700])
{
	if (hosts_most == 1)
		return NO_NIC;
	if (b->refused.gpus > r->gpus)
		snprintf(buf, 700, "%" PRId64 " are refused: %.600s", b->refused.gpus, b->refused.reason);
	else
		snprintf(buf, 700, "no larger count that can share this batch, up to %" PRId64 " GPUs, reaches it",
			b->most * b->per_node);
	return buf;
}

static void say_missed(const struct compare *c, const struct bracket *b, int64_t hosts_most, struct compare_row *r)
{
	char reason[sizeof r->reason], why[700], time[QUANTITY_MAX], rate[QUANTITY_MAX], needs[QUANTITY_MAX];
	if (!r->fits) { /* its own reason says more */
		if (!r->missing_B && !r->reason[0])
			snprintf(r->reason, sizeof r->reason,
				"no count of hosts of %" PRId64 " GPUs can share this batch", b->per_node);
		if (hosts_most == 1)
			snprintf(r->size_note, sizeof r->size_note, "one host was tried: " NO_NIC);
		return;
	}
	snprintf(reason, sizeof reason,
		"the target is not reached: %" PRId64 " GPUs take %s, at %s tokens/s of the %s that are needed; %.400s",
		r->gpus, quantity_format(time, compare_time(c, r), UNIT_SECOND),
		quantity_format(rate, c->tokens / compare_time(c, r), UNIT_NONE),
		quantity_format(needs, c->tokens / c->within_s, UNIT_NONE), why_no_more(b, r, hosts_most, why));
	drop(r);
	memcpy(r->reason, reason, sizeof reason);
}

static enum status by_target(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e)
{
	const int64_t joined = hosts_most(a), guess = first_guess(c, s->config, a);
	struct bracket b = {.per_node = a->spec.gpus, .first = guess < joined ? guess : joined};
	b.most = joined == 1 ? 1 : b.first > NODES_MOST >> DOUBLINGS ? NODES_MOST : b.first << DOUBLINGS;
	compare_figures(&a->spec, s->config, (struct size){0, a->spec.gpus}, r); /* until a count is tried */
	struct compare_row tried = *r, best = *r;
	enum status st = try_counts(c, s, a, &b, &tried, &best, e);
	if (!st && !best.predicted && !tried.missing_B)
		st = try_fewer(s, a, &b, &best, e);
	bool any = best.fits;
	*r = any ? best : tried;
	drop(any ? &tried : &best);
	if (st)
		return st;
	if (!b.above) {
		say_missed(c, &b, joined, r);
		return ST_OK;
	}
	say_reached(c, &b, r);
	return compare_near(c, s, a, r, e);
}

enum status compare_size(const struct compare *c, const struct compare_solver *s, const struct asked_system *a,
	struct compare_row *r, struct error *e)
{
	if (c->mode == COMPARE_BUDGET)
		return by_budget(c, s, a, r, e);
	if (c->mode == COMPARE_TARGET)
		return by_target(c, s, a, r, e);
	return by_gpus(a->gpus ? a->gpus : c->gpus, s, a, r, e);
}
