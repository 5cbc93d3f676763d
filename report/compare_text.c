/* The comparison as tables for people: speed, money, who is ahead and how surely, and where every number comes from. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/quantity.h"
#include "base/table.h"
#include "report/compare_parts.h"
#include "report/verdict.h"

#define CELL 48

const char *const compare_basis_words[BASIS_COUNT] =
	{[BY_OWNED] = "what owning costs", [BY_RENTED] = "what renting costs", [BY_TIME] = "time"};

char *compare_energy(char buf[QUANTITY_MAX], double kWh)
{
	quantity_format(buf, 1e3 * kWh, UNIT_WATT);
	return isfinite(kWh) ? strcat(buf, "h") : buf;
}

/* "*": unverified, "+": of the GPUs alone, "-": not known. */
static const char *usd(char cell[CELL], double v, bool unverified, bool partial)
{
	char q[QUANTITY_MAX];
	const bool known = isfinite(v);
	snprintf(cell, CELL, "%s%s%s", known ? quantity_format(q, v, UNIT_USD) : "-", known && partial ? " +" : "",
		known && unverified ? " *" : "");
	return cell;
}

static const char *rank_cell(char cell[CELL], const struct compare_row *r)
{
	snprintf(cell, CELL, r->rank ? "%zu" : "-", r->rank);
	return cell;
}

/* ---- speed ---- */

static bool may_fit(const struct compare_row *r) { return r->predicted && verdict_may_fit(&r->predicted->memory); }

static enum status speed_row(struct table *t, const struct compare_row *r, struct error *e)
{
	char rank[CELL], q[5][QUANTITY_MAX], range[QUANTITY_RANGE];
	const struct result *p = r->predicted;
	if (!r->fits)
		return table_row(t, e, "-|%s|%lld|-|-|-|-|%s|%s|-|%s", r->name, (long long)r->gpus,
			p ? quantity_format(q[0], (double)p->memory.total_B, UNIT_BYTE) : "-",
			may_fit(r)     ? "may fit"
			: r->missing_B ? "too much"
				       : "-",
			r->missing_B ? "nothing fits" : "none");
	return table_row(t, e, "%s|%s|%lld|%s|%s|%s|%.1f %%|%s|%s|%s|%s", rank_cell(rank, r), r->name,
		(long long)r->gpus, quantity_format(q[0], p->time.step_s, UNIT_SECOND),
		quantity_format_range(range, p->interval90_s[0], p->interval90_s[1], UNIT_SECOND),
		quantity_format(q[1], p->tokens_per_s, UNIT_NONE), 100 * p->mfu,
		quantity_format(q[2], (double)p->memory.total_B, UNIT_BYTE),
		quantity_format(q[3], (double)p->memory.capacity_B - (double)p->memory.total_B, UNIT_BYTE),
		quantity_format(q[4], p->time.exposed_comm_s, UNIT_SECOND), r->plan);
}

enum status compare_speed_table(const struct compare *c, struct table **out, struct error *e)
{
	struct table *t = *out = table_create(
		"#|<system|GPUs|step time|90 % interval|tokens/s|MFU|memory|free|exposed|<plan");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < c->rows.n && !st; i++)
		st = speed_row(t, &c->rows.at[i], e);
	return st;
}

/* ---- money ---- */

static bool owned_partial(const struct compare_row *r) { return r->price_usd.partial || r->power_W.partial; }

static bool owned_unverified(const struct compare_row *r) { return r->price_usd.unverified || r->power_W.unverified; }

static enum status money_row(const struct compare *c, struct table *t, const struct compare_row *r, struct error *e)
{
	char rank[CELL], rented[CELL], owned[CELL], rented_each[CELL], owned_each[CELL], power[CELL],
		hosts[QUANTITY_MAX], time[QUANTITY_MAX], energy[QUANTITY_MAX], q[QUANTITY_MAX];
	const struct money *m = &r->money;
	double billions = c->tokens / 1e9;
	snprintf(power, sizeof power, "%s%s%s", !(r->hosts > 0) ? "-" : quantity_format(q, r->power_W.value, UNIT_WATT),
		r->hosts > 0 && r->power_W.partial ? " +" : "", r->hosts > 0 && r->power_W.unverified ? " *" : "");
	return table_row(t, e, "%s|%s|%s|%s|%s|%s|%s|%s|%s|%s", rank_cell(rank, r), r->name,
		quantity_format(hosts, r->hosts, UNIT_NONE), power, quantity_format(time, m->time_s, UNIT_SECOND),
		compare_energy(energy, m->energy_kWh),
		usd(rented, m->rented_usd, r->rent_usd_per_hour.unverified, false),
		usd(owned, m->owned_usd, owned_unverified(r), owned_partial(r)),
		usd(rented_each, m->rented_usd / billions, r->rent_usd_per_hour.unverified, false),
		usd(owned_each, m->owned_usd / billions, owned_unverified(r), owned_partial(r)));
}

void compare_tokens(const struct compare *c, FILE *out)
{
	char q[QUANTITY_MAX];
	fprintf(out, "\nFor %s tokens%s:\n", quantity_format(q, c->tokens, UNIT_TOKEN),
		c->tokens_given ? "" : " (--target \"15e12 tokens\" counts others)");
}

enum status compare_money_table(const struct compare *c, struct table **out, struct error *e)
{
	struct table *t = *out = table_create(
		"#|<system|hosts|power|time|energy|rented|owned|rented for 1 B|owned for 1 B");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < c->rows.n && !st; i++)
		st = money_row(c, t, &c->rows.at[i], e);
	return st;
}

/* ---- batches that need fewer hosts ---- */

bool compare_has_near(const struct compare *c)
{
	for (size_t i = 0; i < c->rows.n; i++)
		if (c->rows.at[i].n_near)
			return true;
	return false;
}

static enum status near_row(struct table *t, const struct compare_row *r, struct error *e)
{
	char rented[CELL], owned[CELL], q[3][QUANTITY_MAX];
	return table_row(t, e, "%s|%lld|%s|%lld|%s|%s|%s|%s|%s", r->name, (long long)r->config->train.global_batch,
		quantity_format(q[0], r->hosts, UNIT_NONE), (long long)r->gpus,
		quantity_format(q[1], r->predicted->tokens_per_s, UNIT_NONE),
		quantity_format(q[2], r->money.time_s, UNIT_SECOND),
		usd(rented, r->money.rented_usd, r->rent_usd_per_hour.unverified, false),
		usd(owned, r->money.owned_usd, owned_unverified(r), owned_partial(r)), r->plan);
}

enum status compare_near_table(const struct compare *c, struct table **out, struct error *e)
{
	struct table *t = *out = table_create("<system|batch|hosts|GPUs|tokens/s|time|rented|owned|<plan");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	for (size_t i = 0; i < c->rows.n && !st; i++) {
		const struct compare_row *r = &c->rows.at[i];
		if (r->n_near)
			st = near_row(t, r, e); /* the stated batch and what it costs */
		for (size_t k = 0; k < r->n_near && !st; k++)
			st = near_row(t, &r->near[k], e);
	}
	return st;
}

void compare_near_title(FILE *out)
{
	fputs("\nBatches near the stated one (first line of a system) reach the target on fewer hosts, with the same "
	      "plan:\n",
		out);
}

static void legend(const struct compare *c, FILE *out)
{
	bool partial = false, unverified = false;
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_figure *f[] = {&c->rows.at[i].power_W, &c->rows.at[i].price_usd,
			&c->rows.at[i].rent_usd_per_hour};
		for (size_t k = 0; k < COUNT(f); k++) {
			partial |= isfinite(f[k]->value) && f[k]->partial;
			unverified |= isfinite(f[k]->value) && f[k]->unverified;
		}
	}
	if (partial)
		fputs("+ of the GPUs alone, without their hosts\n", out);
	if (unverified)
		fputs("* uses a number without a checked source (unverified: true in the catalogue)\n", out);
}

/* ---- who is ahead ---- */

/* The figure whose intervals are compared. */
static const char *const interval_of[BASIS_COUNT] = {[BY_OWNED] = "costs", [BY_RENTED] = "costs", [BY_TIME] = "times"};

static void leader(const struct compare *c, enum compare_basis basis, const char *word, FILE *out)
{
	char why[160], times[QUANTITY_MAX];
	const struct compare_row *best = NULL, *next = NULL;
	double a[2], b[2], least = INFINITY, second = INFINITY;
	if (!compare_known(c, basis, why)) {
		fprintf(out, "  %s %s\n", word, why);
		return;
	}
	for (size_t i = 0; i < c->rows.n; i++) {
		double v = c->rows.at[i].fits ? compare_value(&c->rows.at[i], basis, a) : NAN;
		if (v < least) {
			second = least;
			next = best;
			least = v;
			best = &c->rows.at[i];
		} else if (v < second) {
			second = v;
			next = &c->rows.at[i];
		}
	}
	compare_value(best, basis, a);
	compare_value(next, basis, b);
	fprintf(out, "  %s %s, %s times ahead of %s: %s\n", word, best->name,
		quantity_format(times, second / least, UNIT_NONE), next->name,
		a[1] < b[0] ? "their 90 % intervals are apart" : "their 90 % intervals overlap");
}

void compare_ranking(const struct compare *c, FILE *out)
{
	size_t there = 0;
	bool overlap = false;
	legend(c, out);
	for (size_t i = 0; i < c->rows.n; i++) {
		there += c->rows.at[i].fits;
		overlap |= c->rows.at[i].overlaps;
	}
	if (there < 2)
		return;
	fprintf(out, "\nRanked by %s%s%s%s.\n", compare_basis_words[c->basis], c->basis_note[0] ? " (" : "",
		c->basis_note, c->basis_note[0] ? ")" : "");
	leader(c, BY_TIME, "fastest:              ", out);
	leader(c, BY_RENTED, "cheapest when rented: ", out);
	leader(c, BY_OWNED, "cheapest when owned:  ", out);
	for (size_t i = 1; i < there && overlap; i++)
		if (c->rows.at[i].overlaps)
			fprintf(out, "  places %zu and %zu (%s, %s) may change: the intervals of their %s overlap\n", i,
				i + 1, c->rows.at[i - 1].name, c->rows.at[i].name, interval_of[c->basis]);
	fputs("Intervals of costs are those of the step time; prices have none.\n"
	      "Rows share a part of their error: model, software, and the GPU if it is the same.\n"
	      "That part cancels in a comparison, so an order can be right although intervals overlap.\n"
	      "The size of that part is not known, so no probability is given.\n",
		out);
}

/* What the better row has more of, in the words behind "1.41 times". */
static const char *const ahead[BASIS_COUNT] = {[BY_OWNED] = "the tokens per dollar of owning",
	[BY_RENTED] = "the tokens per dollar of rent",
	[BY_TIME] = "as fast"};

static double ratio(const struct compare_row row[2], enum compare_basis basis)
{
	double interval[2];
	return compare_value(&row[1], basis, interval) / compare_value(&row[0], basis, interval);
}

/* A search would have taken another plan if there were one. */
static void print_tight(const struct compare_row *r, FILE *out)
{
	if (verdict_fit(&r->predicted->memory) != FIT_TIGHT)
		return;
	fprintf(out, " On %s it is tight: ", r->name);
	verdict_tight(&r->predicted->memory, out);
	putc('.', out);
}

static bool lacks_memory(const struct compare *c)
{
	for (size_t i = 0; i < c->rows.n; i++)
		if (c->rows.at[i].missing_B)
			return true;
	return false;
}

/* The rows are ranked: the first that fits leads, else the one that lacks least. */
void compare_verdict(const struct compare *c, FILE *out)
{
	const struct compare_row *row = c->rows.at;
	if (!c->rows.n || !row[0].fits) {
		fputs(lacks_memory(c) ? "Nothing fits on any of the systems."
				      : "No system has a result; each row has its reason.",
			out);
		if (c->rows.n && row[0].missing_B && row[0].predicted &&
			verdict_fit(&row[0].predicted->memory) == FIT_NOT) {
			fprintf(out, " On %s ", row[0].name);
			verdict_missing(&row[0].predicted->memory, out);
			verdict_error(&row[0].predicted->memory, out);
			putc('.', out);
		}
		return;
	}
	if (c->rows.n < 2 || !row[1].fits) {
		fprintf(out, "It fits on %s%s.", row[0].name, c->rows.n < 2 ? "" : " alone");
		print_tight(&row[0], out);
		return;
	}
	fprintf(out, "%s is ahead of %s: %.2f times %s", row[0].name, row[1].name, ratio(row, c->basis),
		ahead[c->basis]);
	if (c->basis != BY_TIME)
		fprintf(out, ", at %.2f times the speed", ratio(row, BY_TIME));
	fprintf(out, ". The 90 %% intervals of their %s %s.", interval_of[c->basis],
		row[1].overlaps ? "overlap: the order is not sure" : "are apart");
	if (c->mode == COMPARE_BUDGET && c->basis_note[0])
		fprintf(out, " The comparison is %s.", c->basis_note);
	print_tight(&row[0], out);
}

/* ---- notes and sources ---- */

static bool warns(const struct compare_row *r, const char *text)
{
	for (size_t k = 0; k < r->predicted->n_warnings; k++)
		if (strcmp(r->predicted->warning[k], text) == 0)
			return true;
	return false;
}

static bool of_all(const struct compare *c, const char *text)
{
	for (size_t i = 0; i < c->rows.n; i++)
		if (c->rows.at[i].fits && !warns(&c->rows.at[i], text))
			return false;
	return true;
}

void compare_notes(const struct compare *c, FILE *out)
{
	char q[QUANTITY_MAX];
	uint32_t terms = 0;
	for (size_t i = 0; i < c->rows.n; i++)
		terms |= plan_terms(c->rows.at[i].plan);
	plan_terms_explain(terms, out);
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		if (r->missing_B)
			fprintf(out, "%s: does not fit, %s a GPU are missing%s; the plan%s: %s\n", r->name,
				quantity_format(q, (double)r->missing_B, UNIT_BYTE),
				may_fit(r) ? ", less than such predictions may be too high" : "",
				c->fixed_plan ? "" : " that needs least", r->plan);
		else if (r->reason[0])
			fprintf(out, "%s: %s\n", r->name, r->reason);
		if (r->size_note[0])
			fprintf(out, "%s: %s\n", r->name, r->size_note);
		if (r->plans_left)
			fprintf(out,
				"%s: %lld plans were not evaluated, because each needs a simulation; one may be "
				"better (fewer plans: hold keys with --set)\n",
				r->name, (long long)r->plans_left);
		for (size_t k = 0; r->fits && k < r->predicted->n_warnings; k++)
			if (!of_all(c, r->predicted->warning[k]))
				fprintf(out, "%s: warning: %s\n", r->name, r->predicted->warning[k]);
	}
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		for (size_t k = 0; r->fits && k < r->predicted->n_warnings; k++)
			if (of_all(c, r->predicted->warning[k]))
				fprintf(out, "warning: %s\n", r->predicted->warning[k]);
		if (r->fits)
			return;
	}
}

static void source(const char *what, const struct compare_figure *f, enum unit unit, const char *behind, FILE *out)
{
	char q[QUANTITY_MAX];
	if (!isfinite(f->value)) {
		fprintf(out, "    %-6s not known: %s\n", what, f->source);
		return;
	}
	fprintf(out, "    %-6s %s%s%s%s: %s%s\n", what, quantity_format(q, f->of ? f->each : f->value, unit), behind,
		f->of ? " a " : "", f->of ? f->of : "", f->source, f->unverified ? " *" : "");
}

void compare_sources(const struct compare *c, FILE *out)
{
	fputs("\nCounted with\n", out);
	source("life", &c->amortize_years, UNIT_NONE, " years", out);
	source("energy", &c->power_usd_per_kwh, UNIT_USD, " a kWh", out);
	source("PUE", &c->pue, UNIT_NONE, "", out);
	source("CO2", &c->co2_kg_per_kwh, UNIT_NONE, " kg/kWh", out);
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct compare_row *r = &c->rows.at[i];
		fprintf(out, "  %s (%s)\n", r->name, r->full);
		source("power", &r->power_W, UNIT_WATT, "", out);
		source("rent", &r->rent_usd_per_hour, UNIT_USD, " an hour", out);
		source("price", &r->price_usd, UNIT_USD, "", out);
	}
}

void compare_title(const struct compare *c, FILE *out)
{
	const char *plan = c->fixed_plan ? "the plan as given" : "each with its best plan";
	char amount[QUANTITY_MAX], time[QUANTITY_MAX], rate[QUANTITY_MAX];
	if (c->mode == COMPARE_BUDGET)
		fprintf(out, "Equal budget: %s of hosts; %s\n\n", quantity_format(amount, c->budget_usd, UNIT_USD),
			plan);
	else if (c->mode == COMPARE_TARGET)
		fprintf(out, "Equal target: %s tokens in %s, which needs %s tokens/s; %s\n\n",
			quantity_format(amount, c->tokens, UNIT_TOKEN), quantity_format(time, c->within_s, UNIT_SECOND),
			quantity_format(rate, c->tokens / c->within_s, UNIT_NONE), plan);
	else if (c->own_sizes)
		fprintf(out, "Systems of the sizes asked for; %s\n\n", plan);
	else
		fprintf(out, "Equal number of GPUs: %lld; %s\n\n", (long long)c->gpus, plan);
}

enum status report_compare_text(const struct compare *c, FILE *out, struct error *e)
{
	struct table *speed = NULL, *money = NULL, *near = NULL;
	enum status st = compare_speed_table(c, &speed, e);
	if (!st && !(st = compare_money_table(c, &money, e)) && !(st = compare_near_table(c, &near, e))) {
		fputs((c->rows.n && c->rows.at[0].fits) || !lacks_memory(c) ? "" : "DOES NOT FIT. ", out);
		compare_verdict(c, out);
		fputs("\n\n", out);
		compare_title(c, out);
		table_print(speed, out);
		compare_tokens(c, out);
		table_print(money, out);
		compare_ranking(c, out);
		if (compare_has_near(c)) {
			compare_near_title(out);
			table_print(near, out);
		}
		fputc('\n', out);
		compare_notes(c, out);
		compare_sources(c, out);
	}
	table_destroy(speed);
	table_destroy(money);
	table_destroy(near);
	return st;
}
