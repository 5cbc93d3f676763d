/* The money of each row of a comparison, and the ranking. */
#include "report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void compare_row_free(struct compare_row *r)
{
	for (size_t i = 0; i < r->n_near; i++)
		compare_row_free(&r->near[i]);
	free(r->near);
	free(r->config);
	free(r->predicted);
	json_decref(r->system);
	r->near = NULL;
	r->n_near = 0;
	r->config = NULL;
	r->predicted = NULL;
	r->system = NULL;
}

void compare_free(struct compare *c)
{
	for (size_t i = 0; i < c->rows.n; i++)
		compare_row_free(&c->rows.at[i]);
	vec_free(&c->rows);
}

double compare_goodput(const struct result *p) { return p->goodput > 0 ? p->goodput : 1; }

double compare_time(const struct compare *c, const struct compare_row *r)
{
	return c->tokens / (r->predicted->tokens_per_s * compare_goodput(r->predicted));
}

static void count_row(const struct compare *c, struct compare_row *r)
{
	const struct result *p = r->predicted;
	const double mtbf_hours = r->config ? config_mtbf_hours(r->config) : 0;
	const struct money_terms t = {
		.tokens_per_s = r->fits ? p->tokens_per_s : NAN,
		.goodput = r->fits ? compare_goodput(p) : 1,
		.mtbf_s = mtbf_hours > 0 ? 3600 * mtbf_hours : NAN,
		.power_W = r->power_W.value,
		.pue = c->pue.value,
		.usd_per_kwh = c->power_usd_per_kwh.value,
		.co2_kg_per_kwh = c->co2_kg_per_kwh.value,
		.rent_usd_per_hour = r->rent_usd_per_hour.value,
		.price_usd = r->price_usd.value,
		.years = c->amortize_years.value,
	};
	r->money = money_of(&t, c->tokens);
	for (size_t i = 0; i < r->n_near; i++)
		count_row(c, &r->near[i]);
}

void compare_count(struct compare *c)
{
	for (size_t i = 0; i < c->rows.n; i++)
		count_row(c, &c->rows.at[i]);
}

double compare_steps(const struct compare *c)
{
	const struct config *plan = c->rows.at[0].config;
	return c->tokens / ((double)plan->train.global_batch * (double)plan->model.seq_len);
}

double compare_value(const struct compare_row *r, enum compare_basis basis, double interval[2])
{
	double v = basis == BY_OWNED ? r->money.owned_usd : basis == BY_RENTED ? r->money.rented_usd : r->money.time_s;
	for (int i = 0; i < 2; i++)
		interval[i] = v * r->predicted->interval90_s[i] / r->predicted->time.step_s;
	return v;
}

/* ---- the criterion ---- */

/* Returns the first row that lacks it; NULL: none does. */
static const struct compare_row *lacking(const struct compare *c, enum compare_basis basis)
{
	for (size_t i = 0; i < c->rows.n; i++) {
		double interval[2];
		if (c->rows.at[i].fits && !isfinite(compare_value(&c->rows.at[i], basis, interval)))
			return &c->rows.at[i];
	}
	return NULL;
}

/* Returns the first row whose counted quantity differs from that of row 0; NULL: none. */
static const struct compare_row *unlike(const struct compare *c)
{
	const struct compare_row *first = NULL;
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		if (!r->fits)
			continue;
		if (first && (r->price_usd.partial != first->price_usd.partial ||
				     r->power_W.partial != first->power_W.partial))
			return r->price_usd.partial || r->power_W.partial ? r : first;
		first = first ? first : r;
	}
	return NULL;
}

bool compare_known(const struct compare *c, enum compare_basis basis, char why[160])
{
	const struct compare_row *row = lacking(c, basis), *other = !row && basis == BY_OWNED ? unlike(c) : NULL;
	why[0] = '\0';
	if (row)
		snprintf(why, 160, "what %s %.100s costs is not known", basis == BY_OWNED ? "owning" : "renting",
			row->name);
	else if (other)
		snprintf(why, 160, "of %.100s the GPUs alone are counted", other->name);
	return !row && !other;
}

/* Returns the first row of which a budget bought the GPUs alone while it bought or rented whole hosts of another; NULL:
 * none. */
static const struct compare_row *bought_bare(const struct compare *c)
{
	const struct compare_row *bare = NULL;
	bool whole = false;
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		whole |= r->fits && !r->price_usd.partial;
		bare = !bare && r->fits && r->price_usd.partial ? r : bare;
	}
	return whole ? bare : NULL;
}

static void choose_basis(struct compare *c)
{
	char owned[160], rented[160];
	bool by_owned = compare_known(c, BY_OWNED, owned), by_rented = compare_known(c, BY_RENTED, rented);
	c->basis_note[0] = '\0';
	c->basis = c->mode == COMPARE_BUDGET ? BY_TIME : by_owned ? BY_OWNED : by_rented ? BY_RENTED : BY_TIME;
	const struct compare_row *bare = c->mode == COMPARE_BUDGET ? bought_bare(c) : NULL;
	if (bare)
		snprintf(c->basis_note, sizeof c->basis_note,
			"not for the same things: the budget buys the GPUs of %.100s without their hosts", bare->name);
	if (c->mode != COMPARE_BUDGET && !by_owned)
		snprintf(c->basis_note, sizeof c->basis_note, "%s%s%s", owned, by_rented ? "" : "; ", rented);
}

/* ---- in order ---- */

struct key {
	size_t at; /* in the rows */
	bool fits;
	double value;
};

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	if (x->fits != y->fits)
		return x->fits ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static void sort_rows(struct compare *c, struct key *keys, struct compare_row *copy)
{
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		double interval[2];
		copy[i] = *r;
		keys[i] = (struct key){.at = i,
			.fits = r->fits,
			.value = r->fits        ? compare_value(r, c->basis, interval)
		                 : r->missing_B ? (double)r->missing_B
		                                : INFINITY};
	}
	qsort(keys, c->rows.n, sizeof *keys, by_key);
	for (size_t i = 0; i < c->rows.n; i++)
		c->rows.at[i] = copy[keys[i].at];
}

static void number_rows(struct compare *c)
{
	double before[2] = {0}, own[2];
	for (size_t i = 0; i < c->rows.n; i++) {
		struct compare_row *r = &c->rows.at[i];
		r->rank = r->fits ? i + 1 : 0;
		r->overlaps = false;
		if (!r->fits)
			continue;
		compare_value(r, c->basis, own);
		r->overlaps = i > 0 && own[0] <= before[1];
		memcpy(before, own, sizeof own);
	}
}

enum status compare_rank(struct compare *c, struct error *e)
{
	struct key *keys = calloc(c->rows.n + 1, sizeof *keys);
	struct compare_row *copy = calloc(c->rows.n + 1, sizeof *copy);
	enum status st = keys && copy ? ST_OK : error_nomem(e, "the ranking");
	if (!st) {
		choose_basis(c);
		sort_rows(c, keys, copy);
		number_rows(c);
	}
	free(keys);
	free(copy);
	return st;
}
