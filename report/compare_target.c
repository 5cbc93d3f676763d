/* The table below a prediction with a target: what the tokens take and cost, and what each figure rests on. */
#include <math.h>

#include "base/quantity.h"
#include "report/compare_parts.h"
#include "report/figures.h"

#define BASIS 400
#define TONNE_KG 1000

/* What qualifies a figure; the lines below the table name its source. */
static const char *marks(const struct compare_figure *f)
{
	return f->partial ? f->unverified ? " (its GPUs alone, unverified)" : " (its GPUs alone)"
	                  : (f->unverified ? " (unverified)" : "");
}

/* Writes "10.2 kW a host"; without a figure, why there is none. Returns whether there is one. */
static bool each(char buf[BASIS], const struct compare_figure *f, enum unit unit)
{
	char q[QUANTITY_MAX];
	if (isfinite(f->value))
		snprintf(buf, BASIS, "%s a %s%s", quantity_format(q, f->each, unit), f->of, marks(f));
	else
		snprintf(buf, BASIS, "not known: %s", f->source);
	return isfinite(f->value);
}

static enum status time_row(const struct compare *c, struct table *t, struct error *e)
{
	char q[2][QUANTITY_MAX], range[QUANTITY_RANGE], goodput[48] = "";
	const struct compare_row *r = c->rows.at;
	double interval[2];
	if (!r->fits)
		return table_row(t, e, "time|-|the plan does not fit in memory");
	const double s = compare_value(r, BY_TIME, interval);
	if (r->predicted->goodput > 0)
		snprintf(goodput, sizeof goodput, ", goodput %.1f %%", 100 * r->predicted->goodput);
	return table_row(t, e, "time|%s|%s (90 %% interval), %s steps%s", quantity_format(q[0], s, UNIT_SECOND),
		quantity_format_range(range, interval[0], interval[1], UNIT_SECOND),
		quantity_format(q[1], compare_steps(c), UNIT_NONE), goodput);
}

/* Interruptions come where the config knows the rate of failures. */
static enum status failures_row(const struct compare *c, struct table *t, struct error *e)
{
	char q[3][QUANTITY_MAX];
	const struct compare_row *r = c->rows.at;
	if (!(r->money.interruptions >= 0))
		return ST_OK;
	return table_row(t, e, "interruptions|%s|one every %s, a checkpoint every %s",
		quantity_format(q[0], r->money.interruptions, UNIT_NONE),
		quantity_format(q[1], 3600 * config_mtbf_hours(r->config), UNIT_SECOND),
		quantity_format(q[2], r->predicted->checkpoint_interval_s, UNIT_SECOND));
}

static enum status energy_rows(const struct compare *c, struct table *t, struct error *e)
{
	char q[QUANTITY_MAX], basis[BASIS], pue[32] = "";
	const struct compare_row *r = c->rows.at;
	const struct money *m = &r->money;
	const bool tonnes = m->co2_kg >= TONNE_KG;
	if (each(basis, &r->power_W, UNIT_WATT))
		snprintf(pue, sizeof pue, ", PUE %.3g", c->pue.value);
	enum status st = table_row(t, e, "energy|%s|%s%s", compare_energy(q, m->energy_kWh), basis, pue);
	return st ? st
	          : table_row(t, e, "CO2|%s%s|%.3g kg/kWh%s",
			    quantity_format(q, m->co2_kg / (tonnes ? TONNE_KG : 1), UNIT_NONE),
			    !isfinite(m->co2_kg) ? ""
			    : tonnes             ? " t"
						 : " kg",
			    c->co2_kg_per_kwh.value, marks(&c->co2_kg_per_kwh));
}

static enum status money_rows(const struct compare *c, struct table *t, struct error *e)
{
	char q[2][QUANTITY_MAX], basis[BASIS], rest[64] = "";
	const struct compare_row *r = c->rows.at;
	const char *hourly = each(basis, &r->rent_usd_per_hour, UNIT_USD) ? " and hour" : "";
	enum status st = table_row(t, e, "rented|%s|%s%s", quantity_format(q[0], r->money.rented_usd, UNIT_USD), basis,
		hourly);
	if (each(basis, &r->price_usd, UNIT_USD))
		snprintf(rest, sizeof rest, ", %s years; energy at %s a kWh",
			quantity_format(q[0], c->amortize_years.value, UNIT_NONE),
			quantity_format(q[1], c->power_usd_per_kwh.value, UNIT_USD));
	return st ? st
	          : table_row(t, e, "owned|%s|%s%s", quantity_format(q[0], r->money.owned_usd, UNIT_USD), basis, rest);
}

enum status compare_target_table(const struct compare *c, struct table **out, struct error *e)
{
	struct table *t = *out = table_create("<|amount|<from");
	enum status st = t ? ST_OK : error_nomem(e, "the table");
	if (st || (st = time_row(c, t, e)) || (st = failures_row(c, t, e)) || (st = energy_rows(c, t, e)))
		return st;
	return money_rows(c, t, e);
}

void compare_target_title(const struct compare *c, FILE *out)
{
	char q[QUANTITY_MAX];
	fprintf(out, "For %s tokens on %lld GPU%s:\n", quantity_format(q, c->tokens, UNIT_TOKEN), (long long)c->gpus,
		c->gpus == 1 ? "" : "s");
}

enum status compare_target_text(const struct compare *c, FILE *out, struct error *e)
{
	struct table *t = NULL;
	enum status st = compare_target_table(c, &t, e);
	if (!st) {
		fputc('\n', out);
		compare_target_title(c, out);
		table_print(t, out);
		compare_sources(c, out);
	}
	table_destroy(t);
	return st;
}
